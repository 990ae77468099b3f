//! Events at random, each first in the model and then as an order to the block.
use super::*;
use ferric_abi::uet::codes::{AckRequest, ControlType, NackCode, ReturnCode};
use ferric_uet::model::{Body, Packet, Peer, Response, To};
use ferric_uet::wire::Trim;

const PEERS: u64 = 6;

/// What has to be reached: verdicts of orders, codes that are sent and taken.
pub const WANTED: &[&str] = &[
    "post 0",
    "post 1",
    "post 3",
    "post 4",
    "room 0",
    "room 1",
    "arrive 0",
    "arrive 1",
    "arrive 5",
    "arrive 6",
    "arrive 7",
    "ack 0",
    "ack 2",
    "ack 8",
    "ack 9",
    "nack 0",
    "nack 2",
    "nack 9",
    "nack 10",
    "nack 12",
    "nack 13",
    "nack 14",
    "nack 15",
    "shut 5",
    "shut 10",
    "shut 11",
    "sent 4",
    "sent 14",
    "sent 15",
    "sent 16",
    "sent 21",
    "sent 22",
    "sent 25",
    "latched",
    "leave",
    "limit",
    "idle",
    "reset",
    "reset of some",
    "silence",
    "safe rest",
    "safe linger",
    "late done",
    "trimmed syn",
    "closing taken",
    "return",
    "old id",
    "syn of a lingering one",
    "cut to accept",
];

const OK: Response = Response { message: 1, code: ReturnCode::Ok as u8, length: 1, data: None };

fn control(order: &mut Vec<(&'static str, u64)>, kind: ControlType) {
    order.push(("control", kind as u64));
}

/// The one NACK among actions: code and id.
fn nack(actions: &[Action]) -> Option<(NackCode, u16)> {
    actions.iter().find_map(|action| match action {
        Action::Transmit { packet: Packet::Nack { code, spdcid, .. }, .. } => Some((*code, *spdcid)),
        _ => None,
    })
}

fn counted(actions: &[Action], counter: Counter) -> bool {
    actions.contains(&Action::Count(counter))
}

impl Bench {
    pub fn event(&mut self) {
        match self.below(100) {
            0..=9 => self.post(),
            10..=29 => self.grant(),
            30..=37 => self.syn(),
            38..=47 => self.request(),
            48..=53 => self.order(),
            54..=70 => self.ack(),
            71..=75 => self.nack(),
            76..=83 => self.timer(),
            84..=93 => self.semantics(),
            94..=95 => self.back(),
            96..=97 => self.close(),
            98 => self.garbage(),
            _ if self.percent(40) => self.reset(),
            _ => {}
        }
    }

    /// No message of ours is left waiting, and all places are free in the end.
    pub fn finish(&mut self) {
        for _ in 0..20_000 {
            if self.waiting.is_empty() {
                break;
            }
            if self.percent(50) {
                self.timer();
            } else {
                self.grant();
            }
            self.settle();
        }
        assert!(self.waiting.is_empty());
        self.reset_of(0);
        self.reset_of(1);
        while !self.pds.timers().is_empty() {
            self.timer();
            self.settle();
        }
        assert!(self.live.is_empty());
        let told = self.block.ask(pdc_ask::LOOK, &[]);
        assert_eq!(["initiators", "targets", "resting", "lingering"].map(|name| told.get(name)), [0; 4]);
    }

    fn post(&mut self) {
        let (peer, bytes) = (self.below(PEERS) as Peer, 1 + self.below(250) as u32);
        let mode = if self.percent(30) { Mode::Rod } else { Mode::Rud };
        self.message = self.message.wrapping_add(1);
        let message = Message { id: self.message, bytes, fetch: false };
        self.step(Event::Post { peer, mode, message });
        self.waiting.push_back((peer, mode, message));
    }

    fn grant(&mut self) {
        let actions = self.step(Event::Grant);
        let sent = actions.iter().find_map(|action| if let Action::Transmit { packet, .. } = action { Some(*packet) } else { None });
        match sent {
            Some(Packet::Control { kind: ControlType::CloseCommand, spdcid, retx: false, .. }) => {
                let told = self.block.ask(pdc_ask::LEAVE, &[("id", self.id(spdcid).into())]);
                assert_eq!((told.get("verdict"), told.get("line.stage")), (verdict::DONE, stage::CLOSE_WAIT));
                self.reach("leave");
            }
            Some(Packet::Request { spdcid, .. }) if counted(&actions, Counter::LimitReached) => {
                self.told_close(spdcid);
                self.reach("limit");
            }
            _ => {}
        }
    }

    /// CLOSE for one of the model's PDCs.
    fn told_close(&mut self, model: u16) {
        let id = self.id(model);
        let told = self.block.ask(pdc_ask::CLOSE, &[("id", id.into())]);
        assert_eq!(told.get("verdict"), verdict::DONE);
        self.note(model, &told);
    }

    fn note(&mut self, model: u16, told: &Told) {
        if let Some(pair) = self.live.get_mut(&model) {
            (pair.closing, pair.wants, pair.peer_id) = (told.is("line.closing"), told.is("line.wants"), told.get("line.peer_id") as u16);
        }
    }

    fn over(&mut self, model: u16) {
        let id = self.id(model);
        let told = self.block.ask(pdc_ask::FAIL, &[("id", id.into())]);
        assert_eq!(told.get("verdict"), verdict::FAILED);
        self.part(id);
    }

    /// A packet from `from`, and what the block makes of it.
    fn arrive(&mut self, from: Peer, packet: Packet, trim: Option<Trim>) {
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
        let told = self.block.ask(pdc_ask::ARRIVE, &order);
        assert_eq!(told.get("verdict"), expected, "{packet:?} {trim:?} for {before:?}: {actions:?}");
        self.reach(format!("arrive {expected}"));
        if let Some((code, own)) = refused {
            assert_eq!((told.get("code"), told.is("own")), (code as u64, own != 0), "{packet:?}");
            assert!(own == 0 || told.id() == self.id(own));
            self.reach(format!("sent {}", code as u64));
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

    fn body(&mut self) -> Body {
        self.message = self.message.wrapping_add(1);
        Body { message: self.message, offset: 0, bytes: 10, total: 10, fetch: false }
    }

    /// A SYN: of a new PDC, or of one that is there, or not quite.
    fn syn(&mut self) {
        let target = self.any().filter(|pair| !self.initiates(pair));
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
    fn addressed(&mut self) -> Option<Pair> {
        let gone = self.percent(8);
        if gone {
            let pair = self.any_gone().filter(|pair| self.pdc(pair.model).is_none())?;
            self.reach("old id");
            return Some(pair);
        }
        self.any()
    }

    /// Ids as they should be, or not quite.
    fn ids(&mut self, pair: &Pair) -> (Peer, u16) {
        let peer = if self.percent(4) { (pair.peer + 1) % PEERS as Peer } else { pair.peer };
        let theirs = self.pdc(pair.model).map_or(pair.peer_id, |pdc| pdc.peer_id);
        (peer, if self.percent(4) { theirs ^ 0x100 } else { theirs })
    }

    fn request(&mut self) {
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
        let trim = if self.percent(4) { Some(Trim::LastHop) } else { None };
        let packet = Packet::Request { mode, psn: start.wrapping_add(place), clear: -1, spdcid, to: To::Id(pair.model), retx: false, ar: self.percent(50), body: self.body() };
        self.arrive(from, packet, trim);
    }

    /// A control packet.
    fn order(&mut self) {
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
            place = close + u32::from(self.percent(30));
        }
        if self.percent(50) {
            kind = kinds[self.below(kinds.len() as u64) as usize];
        } else if close.is_none() && self.percent(15) {
            place += 1;
        }
        let trim = if self.percent(3) { Some(Trim::Path) } else { None };
        let packet = Packet::Control { kind, mode: pair.mode, psn: start.wrapping_add(place), payload: start, spdcid, to: To::Id(pair.model), retx: false, ar: true };
        self.arrive(from, packet, trim);
    }

    /// The peer's id as an answer says it, perhaps for the first time.
    fn answering(&mut self, pair: &Pair) -> (Peer, u16) {
        let (from, mut spdcid) = self.ids(pair);
        if self.pdc(pair.model).is_some_and(|pdc| pdc.peer_id == 0) {
            self.theirs = self.theirs.wrapping_add(1).max(1);
            spdcid = if self.percent(15) { 0 } else { self.theirs };
        }
        (from, spdcid)
    }

    fn ack(&mut self) {
        let Some(pair) = self.addressed() else { return };
        let (from, spdcid) = self.answering(&pair);
        let (known, syn) = (self.pdc(pair.model).cloned(), self.pdc(pair.model).is_some_and(|pdc| pdc.peer_id == 0));
        let (mut place, mut covered, mut bad) = (0, 0, false);
        if let Some(pdc) = &known {
            let out: Vec<u32> = pdc.tx.records.keys().copied().collect();
            if !out.is_empty() {
                place = out[self.below(out.len() as u64) as usize];
            }
            covered = if self.percent(70) { place + 1 } else { pdc.tx.cack };
            covered = covered.min(pdc.tx.next) + if self.percent(4) { 1 + pdc.tx.next } else { 0 };
            bad = covered > pdc.tx.next;
        }
        let start = known.as_ref().map_or(0, |pdc| pdc.tx.start);
        let req = [AckRequest::None, AckRequest::Clear, AckRequest::Close][match self.below(10) {
            0 => 2,
            1 => 1,
            _ => 0,
        }];
        let (cack, psn) = (start.wrapping_add(covered).wrapping_sub(1), start.wrapping_add(place));
        let packet = Packet::Ack { cack, psn, sack: None, marked: false, retx: false, req, spdcid, dpdcid: pair.model, response: Some(OK) };
        let actions = self.step(Event::Received { from, packet, trim: None, ce: false, ev: 0 });
        let empty = self.pdc(pair.model).is_none_or(|pdc| pdc.tx.records.is_empty());
        let expected = match () {
            () if counted(&actions, Counter::Stray) => verdict::NOBODY,
            () if counted(&actions, Counter::BadAck) => verdict::BAD,
            () if counted(&actions, Counter::Closed) => verdict::CLOSED,
            () => verdict::DONE,
        };
        let wants = u64::from(req == AckRequest::Close);
        let order = [("peer", from.into()), ("id", pair.block.into()), ("peer_id", spdcid.into()), ("bad", bad.into()), ("empty", empty.into()), ("wants", wants)];
        let told = self.block.ask(pdc_ask::ACK, &order);
        assert_eq!(told.get("verdict"), expected, "{packet:?} for {known:?}");
        self.answered("ack", &pair, expected, syn, &told);
    }

    fn answered(&mut self, what: &str, pair: &Pair, expected: u64, syn: bool, told: &Told) {
        self.reach(format!("{what} {expected}"));
        match expected {
            verdict::CLOSED | verdict::FAILED => self.part(pair.block),
            verdict::NOBODY | verdict::BAD | verdict::STALE => {}
            _ => {
                if syn && told.get("line.peer_id") != 0 {
                    self.reach("latched");
                }
                self.note(pair.model, told);
            }
        }
    }

    fn nack(&mut self) {
        let Some(pair) = self.addressed() else { return };
        let (from, mut spdcid) = self.answering(&pair);
        let known = self.pdc(pair.model).cloned();
        let out: Vec<u32> = known.iter().flat_map(|pdc| pdc.tx.records.keys().copied()).collect();
        let place = if out.is_empty() || self.percent(10) { self.below(40) as u32 } else { out[self.below(out.len() as u64) as usize] };
        let closes = known.as_ref().is_some_and(|pdc| pdc.stage == Stage::CloseWait);
        let mut codes: Vec<NackCode> = (1..=0x1a).filter_map(NackCode::from_u8).collect();
        if closes && self.percent(70) {
            codes = vec![NackCode::InvalidPdc];
        }
        let code = codes[self.below(codes.len() as u64) as usize];
        if matches!(code, NackCode::NoPdc | NackCode::NoCcc | NackCode::NoBitmap) {
            spdcid = 0;
        }
        let start = known.as_ref().map_or(0, |pdc| pdc.tx.start);
        let record = known.as_ref().and_then(|pdc| pdc.tx.records.get(&place).copied());
        let is_close = record.is_some_and(|record| record.content == ferric_uet::model::Content::Close);
        let psn = start.wrapping_add(place);
        let packet = Packet::Nack { code, psn, spdcid, dpdcid: pair.model, payload: psn, marked: false, retx: false };
        let actions = self.step(Event::Received { from, packet, trim: None, ce: false, ev: 0 });
        let after = self.pdc(pair.model);
        let expected = match () {
            () if counted(&actions, Counter::NackStale) => verdict::STALE,
            () if counted(&actions, Counter::Stray) => verdict::NOBODY,
            () if counted(&actions, Counter::ClosedBy0e) => verdict::CLOSED,
            () if counted(&actions, Counter::Failed) => verdict::FAILED,
            () if code == NackCode::InProgress => verdict::DONE,
            () if code == NackCode::RodOutOfOrder => verdict::REWIND,
            () if after.is_some_and(|pdc| pdc.tx.wait.contains(&place) && !pdc.tx.resend.contains(&place)) => verdict::RETRY,
            () if after.is_some_and(|pdc| pdc.tx.resend.contains(&place)) => verdict::RESEND,
            () => unreachable!("{packet:?}"),
        };
        let order = [("peer", from.into()), ("id", pair.block.into()), ("peer_id", spdcid.into()), ("code", code as u64), ("stale", record.is_none().into()), ("closes", is_close.into())];
        let told = self.block.ask(pdc_ask::NACK, &order);
        assert_eq!(told.get("verdict"), expected, "{packet:?} for {known:?}");
        let syn = known.is_some_and(|pdc| pdc.peer_id == 0);
        self.answered("nack", &pair, expected, syn, &told);
    }

    fn timer(&mut self) {
        let timers = self.pds.timers();
        let n = timers.len() as u64;
        let Some((model, timer, _)) = (n > 0).then(|| timers[self.below(n) as usize]) else { return };
        let (id, before) = (self.id(model), self.pdc(model).cloned());
        let actions = self.step(Event::Expire { pdc: model, timer });
        match timer {
            Timer::Safety => {
                let told = self.block.ask(pdc_ask::SAFE, &[("id", id.into())]);
                assert_eq!((told.get("verdict"), told.get("line.stage")), (verdict::DONE, stage::FREE));
                self.reach(if before.is_some() { "safe linger" } else { "safe rest" });
                if before.is_some() {
                    self.part(id);
                }
            }
            Timer::Idle => {
                self.told_close(model);
                self.reach("idle");
            }
            _ if self.pdc(model).is_none() => {
                self.quiet += u64::from(!counted(&actions, Counter::Failed));
                self.over(model);
                self.reach("silence");
            }
            _ => {}
        }
    }

    /// Semantics are done with a packet, or have no room for it, or come too late.
    fn semantics(&mut self) {
        let n = self.delivered.len() as u64;
        if n == 0 {
            return;
        }
        let at = self.below(n) as usize;
        let (pdc, psn, _) = self.delivered.swap_remove(at);
        let (alive, id) = (self.pdc(pdc).is_some(), self.id(pdc));
        let told = self.block.ask(pdc_ask::LOOK, &[("id", id.into()), ("bare", 1)]);
        assert_eq!(told.get("verdict"), if alive { verdict::DONE } else { verdict::NOBODY });
        let keep = self.percent(10);
        let last = self.pdc(pdc).is_some_and(|pdc| pdc.rx.psn(pdc.rx.expected()).wrapping_sub(1) == psn);
        if last && self.percent(5) {
            self.step(Event::Refuse { pdc, psn, code: NackCode::NoResource });
        } else {
            self.step(Event::Done { pdc, psn, response: OK, keep });
        }
        if !alive {
            self.reach("late done");
        }
    }

    /// A message in the return direction.
    fn back(&mut self) {
        let Some(pair) = self.any().filter(|pair| self.pdc(pair.model).is_some_and(|pdc| !pdc.initiator && pdc.stage == Stage::Open)) else { return };
        self.message = self.message.wrapping_add(1);
        let message = Message { id: self.message, bytes: 50, fetch: false };
        self.step(Event::Return { pdc: pair.model, message });
        self.reach("return");
    }

    /// The driver wants one closed.
    fn close(&mut self) {
        let Some(pair) = self.any() else { return };
        self.step(Event::Close { pdc: pair.model });
        self.told_close(pair.model);
    }

    /// Ids that nobody has: the place is none, or the life is another one.
    fn garbage(&mut self) {
        let id = (self.below(1 << (16 - LP)) << LP) as u16;
        let packet = Packet::Request { mode: Mode::Rud, psn: 1, clear: -1, spdcid: 3, to: To::Id(id), retx: false, ar: false, body: self.body() };
        self.arrive(1, packet, None);
        if let Some(pair) = self.any() {
            let other = pair.block ^ (1 << LP);
            for kind in [pdc_ask::CLOSE, pdc_ask::LEAVE, pdc_ask::SHUT, pdc_ask::FAIL, pdc_ask::SAFE, pdc_ask::WORK, pdc_ask::LOOK] {
                let told = self.block.ask(kind, &[("id", other.into()), ("peer", pair.peer.into()), ("peer_id", pair.peer_id.into()), ("whole", 1)]);
                assert_eq!(told.get("verdict"), verdict::NOBODY, "order {kind}");
            }
        }
    }

    fn reset(&mut self) {
        if self.waiting.is_empty() {
            let function = self.below(2) as Peer;
            self.reset_of(function);
        }
    }

    /// A function ends: all its PDCs, and nobody else's.
    fn reset_of(&mut self, function: Peer) {
        let ids: Vec<u16> = self.pds.pdcs().filter(|pdc| pdc.peer & 1 == function).map(|pdc| pdc.id).collect();
        for id in &ids {
            self.step(Event::Abort { pdc: *id });
        }
        let mut told = self.block.ask(pdc_ask::RESET, &[("function", function.into())]);
        let mut count = 0;
        while told.is("more") {
            assert_eq!(told.get("verdict"), verdict::FAILED);
            self.part(told.id());
            count += 1;
            told = self.block.wait();
        }
        assert_eq!(count, ids.len());
        self.compare();
        self.reach("reset");
        if count > 1 && !self.live.is_empty() {
            self.reach("reset of some");
        }
    }
}
