//! Requests and control packets that come, as they should be and not quite.
use super::events::{counted, nack, PEERS};
use super::*;
use ferric_abi::uet::codes::{ControlType, NackCode};
use ferric_uet::model::{Body, Packet, Peer, To};
use ferric_uet::wire::Trim;

fn control(order: &mut Vec<(&'static str, u64)>, kind: ControlType) {
    order.push(("control", kind as u64));
}

impl Bench {
    /// A packet from `from`, and what the block makes of it.
    pub fn arrive(&mut self, from: Peer, packet: Packet, trim: Option<Trim>) {
        let (mode, psn, spdcid, to) = match packet {
            Packet::Request { mode, psn, spdcid, to, .. } | Packet::Control { mode, psn, spdcid, to, .. } => (mode, psn, spdcid, to),
            _ => unreachable!(),
        };
        let mut order: Vec<(&'static str, u64)> =
            vec![("peer", from.into()), ("peer_id", spdcid.into()), ("rod", u64::from(mode == Mode::Rod)), ("function", u64::from(from & 1)), ("psn", psn.into()), ("trim", trim.is_some().into())];
        let before = match to {
            To::Syn(offset) => {
                order.extend([("syn", 1), ("offset", u64::from(offset))]);
                self.pds.pdcs().find(|pdc| !pdc.initiator && pdc.peer == from && pdc.peer_id == spdcid).cloned()
            }
            To::Id(id) => {
                order.push(("id", self.id(id).into()));
                self.pdc(id).cloned()
            }
        };
        match packet {
            Packet::Control { kind, .. } => control(&mut order, kind),
            _ => order.push(("request", 1)),
        }
        let closes = matches!(packet, Packet::Control { kind: ControlType::CloseCommand, .. });
        let shuts = closes && before.as_ref().is_some_and(|pdc| pdc.peer == from && pdc.peer_id == spdcid && !pdc.initiator && pdc.stage == Stage::Open);
        let lingers = before.as_ref().is_some_and(|pdc| matches!(pdc.stage, Stage::Linger(_)));
        let actions = self.step(Event::Received { from, packet, trim, ce: false, ev: 0 });
        let refusal = nack(&actions);
        let table = [NackCode::NoPdc, NackCode::InvalidPdc, NackCode::HeaderMismatch, NackCode::Closing, NackCode::InvalidSyn, NackCode::ModeMismatch, NackCode::Unexpected];
        let refused = refusal.filter(|(code, _)| table.contains(code) && !shuts);
        let has = |counter| counted(&actions, counter);
        let expected = match () {
            () if refused.is_some() => verdict::REFUSE,
            () if has(Counter::Accepted) => verdict::OPENED,
            () if has(Counter::CloseAgain) => verdict::AGAIN,
            () if has(Counter::Early) || has(Counter::SynAfterClose) || has(Counter::TrimmedDropped) || has(Counter::Ignored) => verdict::DROP,
            () if lingers && has(Counter::DuplicateDropped) => verdict::DROP,
            () => verdict::DONE,
        };
        self.ignored += u64::from(expected == verdict::DROP && has(Counter::Ignored));
        let told = self.block.ask(pdc_ask::ARRIVE, &order);
        assert_eq!(told.get("verdict"), expected, "{packet:?} {trim:?} for {before:?}: {actions:?}");
        self.reach(format!("arrive {expected}"));
        if let Some((code, own)) = refused {
            assert_eq!((told.get("code"), told.is("own")), (code as u64, own != 0), "{packet:?}");
            assert!(own == 0 || told.id() == self.id(own));
            self.reach(format!("sent {}", code as u64));
            if closes && code == NackCode::Closing {
                self.reach("another close");
            }
        }
        if has(Counter::TrimmedDropped) && before.is_none() && matches!(to, To::Syn(_)) {
            self.reach("trimmed syn");
        }
        if has(Counter::SynAfterClose) {
            self.reach("syn of a lingering one");
        }
        if expected == verdict::OPENED && told.get("cut_id") != 0 {
            self.reach("cut to accept");
        }
        // One that was cut is gone before the new one is there.
        if told.get("cut_id") != 0 {
            self.part(told.get("cut_id") as u16);
        }
        if expected == verdict::OPENED {
            let model = self.pds.pdcs().find(|pdc| !pdc.initiator && pdc.peer == from && pdc.peer_id == spdcid).unwrap().id;
            self.born(model, &told);
        } else if let (verdict::DONE, Some(pdc)) = (expected, &before) {
            assert_eq!(told.id(), self.id(pdc.id));
        }
        if told.get("victim") != victim::NONE {
            let id = told.get("victim_id") as u16;
            assert_eq!(told.get("victim"), victim::ASKED);
            self.live.values_mut().find(|pair| pair.block == id).expect("one that is there").wants = true;
        }
        for action in &actions {
            if let Action::Deliver { pdc, psn, body, .. } = action {
                self.delivered.push((*pdc, *psn, body.bytes));
            }
        }
        if has(Counter::CloseRequestTaken) {
            self.told_close(before.as_ref().unwrap().id);
            self.reach("closing taken");
        }
        if shuts && expected == verdict::DONE {
            self.shut(&before.unwrap(), psn, &actions);
        }
    }

    /// What `window` and `loss` say of a CLOSE_COMMAND, and what comes of it.
    fn shut(&mut self, pdc: &ferric_uet::model::Pdc, psn: u32, actions: &[Action]) {
        let mut rx = pdc.rx.clone();
        rx.clear(rx.newest);
        let (unfinished, whole) = (!pdc.tx.unfinished().is_empty(), rx.place(psn) == rx.base && rx.marks.is_empty());
        let id = self.id(pdc.id);
        let told = self.block.ask(pdc_ask::SHUT, &[("id", id.into()), ("psn", psn.into()), ("unfinished", unfinished.into()), ("whole", whole.into())]);
        let refusal = nack(actions).map(|(code, _)| code);
        let expected = match refusal {
            Some(NackCode::ClosingInError) => verdict::FAILED,
            Some(_) => verdict::REFUSE,
            None => verdict::LINGERS,
        };
        assert_eq!(told.get("verdict"), expected, "{actions:?}");
        assert_eq!(told.get("code"), refusal.map_or(0, |code| code as u64));
        self.reach(format!("shut {expected}"));
        if expected == verdict::FAILED {
            self.part(id);
        } else {
            self.note(pdc.id, &told);
        }
    }

    pub fn body(&mut self) -> Body {
        self.message = self.message.wrapping_add(1);
        Body { message: self.message, offset: 0, bytes: 10, total: 10, fetch: false }
    }

    /// A SYN: of a new PDC, or of one that is there, or not quite.
    pub fn syn(&mut self) {
        let target = self.addressed().filter(|pair| self.pdc(pair.model).is_some()).filter(|pair| !self.initiates(pair));
        let (from, spdcid, start, mut mode) = match target.filter(|_| self.block.tb.rng().percent(45)) {
            Some(pair) => (pair.peer, pair.peer_id, self.pdc(pair.model).unwrap().rx.start, pair.mode),
            None => {
                self.theirs = self.theirs.wrapping_add(if self.percent(50) { 1 } else { 256 }).max(1);
                let mode = if self.percent(30) { Mode::Rod } else { Mode::Rud };
                (self.below(PEERS) as Peer, if self.percent(3) { 0 } else { self.theirs }, self.block.tb.rng().next_u32(), mode)
            }
        };
        if self.percent(4) {
            mode = if mode == Mode::Rod { Mode::Rud } else { Mode::Rod };
        }
        let offset = self.below(4) as u16;
        let mut psn = start.wrapping_add(offset.into());
        let mut to = To::Syn(offset);
        if self.percent(4) {
            psn = psn.wrapping_add(1);
        }
        let known = self.pds.pdcs().any(|pdc| !pdc.initiator && pdc.peer == from && pdc.peer_id == spdcid);
        if !known && self.percent(8) {
            to = To::Syn(WINDOW as u16 + self.block.tb.rng().below(3) as u16 - 1);
        }
        let trim = if self.percent(6) { Some(Trim::Path) } else { None };
        let packet = if self.percent(5) {
            Packet::Control { kind: ControlType::Noop, mode, psn, payload: 0, spdcid, to, retx: false, ar: true }
        } else {
            Packet::Request { mode, psn, clear: -1, spdcid, to, retx: false, ar: false, body: self.body() }
        };
        self.arrive(from, packet, trim);
    }

    /// Whose packet comes: one that is there, or one that was.
    pub fn addressed(&mut self) -> Option<Pair> {
        let gone = self.percent(8);
        if gone {
            let pair = self.any_gone().filter(|pair| self.pdc(pair.model).is_none())?;
            self.reach("old id");
            return Some(pair);
        }
        // Those that linger are few and soon gone.
        let lingers = self.live.values().find(|pair| self.pdc(pair.model).is_some_and(|pdc| matches!(pdc.stage, Stage::Linger(_)))).cloned();
        match lingers {
            Some(pair) if self.percent(30) => Some(pair),
            _ => self.any(),
        }
    }

    /// Ids as they should be, or not quite.
    pub fn ids(&mut self, pair: &Pair) -> (Peer, u16) {
        let peer = if self.percent(4) { (pair.peer + 1) % PEERS as Peer } else { pair.peer };
        let theirs = self.pdc(pair.model).map_or(pair.peer_id, |pdc| pdc.peer_id);
        (peer, if self.percent(4) { theirs ^ 0x100 } else { theirs })
    }

    pub fn request(&mut self) {
        let Some(pair) = self.addressed() else { return };
        let (from, spdcid) = self.ids(&pair);
        let (start, base) = self.pdc(pair.model).map_or((0, 0), |pdc| (pdc.rx.start, pdc.rx.expected()));
        let close = self.pdc(pair.model).and_then(|pdc| if let Stage::Linger(close) = pdc.stage { Some(close) } else { None });
        let place = match close {
            Some(close) => (close + self.below(3) as u32).saturating_sub(1),
            None => base.saturating_sub(self.below(2) as u32),
        };
        let flip = self.percent(4);
        let mode = if flip == (pair.mode == Mode::Rud) { Mode::Rod } else { Mode::Rud };
        // A trimmed packet outside the window is the window's to drop.
        let near = self.pdc(pair.model).is_none_or(|pdc| place.wrapping_sub(pdc.rx.base) < WINDOW || close.is_some());
        let trim = if near && self.percent(4) { Some(Trim::LastHop) } else { None };
        let packet = Packet::Request { mode, psn: start.wrapping_add(place), clear: -1, spdcid, to: To::Id(pair.model), retx: false, ar: self.percent(50), body: self.body() };
        self.arrive(from, packet, trim);
    }

    /// A control packet.
    pub fn order(&mut self) {
        let Some(pair) = self.addressed() else { return };
        let (from, spdcid) = self.ids(&pair);
        let close = self.pdc(pair.model).and_then(|pdc| if let Stage::Linger(close) = pdc.stage { Some(close) } else { None });
        let (start, mut place) = self.pdc(pair.model).map_or((0, 0), |pdc| (pdc.rx.start, pdc.rx.base));
        let kinds = [
            ControlType::Noop,
            ControlType::AckRequest,
            ControlType::ClearCommand,
            ControlType::ClearRequest,
            ControlType::CloseRequest,
            ControlType::Probe,
            ControlType::Credit,
            ControlType::CreditRequest,
            ControlType::Negotiation,
        ];
        let mut kind = ControlType::CloseCommand;
        if let Some(close) = close {
            place = close + u32::from(self.percent(50));
        }
        if self.percent(if close.is_some() { 20 } else { 50 }) {
            kind = kinds[self.below(kinds.len() as u64) as usize];
        } else if close.is_none() && self.percent(15) {
            place += 1;
        }
        let trim = if self.percent(3) { Some(Trim::Path) } else { None };
        let flip = self.percent(8);
        let mode = if flip == (pair.mode == Mode::Rud) { Mode::Rod } else { Mode::Rud };
        let packet = Packet::Control { kind, mode, psn: start.wrapping_add(place), payload: start, spdcid, to: To::Id(pair.model), retx: false, ar: true };
        self.arrive(from, packet, trim);
    }
}
