//! Events at random, each first in the model and then as an order to the block.
use super::*;
use ferric_abi::uet::codes::{AckRequest, ControlType, NackCode, ReturnCode};
use ferric_uet::model::{Packet, Peer, Response, To};

pub const PEERS: u64 = 6;

/// What has to be reached: verdicts of orders, codes that are sent and taken.
pub const WANTED: &[&str] = &[
    "post 0",
    "post 1",
    "post 3",
    "post 4",
    "peer full",
    "beside Rud",
    "beside Rod",
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
    "no leave",
    "another close",
];

pub const OK: Response = Response { message: 1, code: ReturnCode::Ok as u8, length: 1, data: None };

/// The one NACK among actions: code and id.
pub fn nack(actions: &[Action]) -> Option<(NackCode, u16)> {
    actions.iter().find_map(|action| match action {
        Action::Transmit { packet: Packet::Nack { code, spdcid, .. }, .. } => Some((*code, *spdcid)),
        _ => None,
    })
}

pub fn counted(actions: &[Action], counter: Counter) -> bool {
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
            96 => self.close(),
            97 => self.garbage(),
            _ => self.reset(),
        }
    }

    /// No message of ours is left waiting, and all places are free in the end.
    pub fn finish(&mut self) {
        for _ in 0..200_000 {
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
        // Not so many wait that nobody else gets a turn.
        if self.waiting.len() >= 3 {
            return;
        }
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
    pub fn told_close(&mut self, model: u16) {
        let id = self.id(model);
        let told = self.block.ask(pdc_ask::CLOSE, &[("id", id.into())]);
        assert_eq!(told.get("verdict"), verdict::DONE);
        self.note(model, &told);
    }

    pub fn note(&mut self, model: u16, told: &Told) {
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
            if self.percent(8) {
                place = pdc.tx.next + 3;
            }
            covered = if self.percent(70) { place + 1 } else { pdc.tx.cack };
            covered = covered.min(pdc.tx.next) + if self.percent(4) { 1 + pdc.tx.next } else { 0 };
            bad = covered > pdc.tx.next;
        }
        let start = known.as_ref().map_or(0, |pdc| pdc.tx.start);
        let req = [AckRequest::None, AckRequest::Clear, AckRequest::Close][match self.below(40) {
            0 => 2,
            1..=4 => 1,
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
        let mut timers = self.pds.timers();
        // Places come back.
        let safe: Vec<_> = timers.iter().copied().filter(|(_, timer, _)| *timer == Timer::Safety).collect();
        if !safe.is_empty() && self.percent(50) {
            timers = safe;
        }
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
            // A close that nobody has asked for does not go out.
            if self.pdc(pair.model).is_some_and(|pdc| !(pdc.initiator && pdc.closing && pdc.stage == Stage::Open)) {
                assert_eq!(self.block.ask(pdc_ask::LEAVE, &[("id", pair.block.into())]).get("verdict"), verdict::NOBODY);
                self.reach("no leave");
            }
            let other = pair.block ^ (1 << LP);
            for kind in [pdc_ask::CLOSE, pdc_ask::LEAVE, pdc_ask::SHUT, pdc_ask::FAIL, pdc_ask::SAFE, pdc_ask::WORK, pdc_ask::LOOK] {
                let told = self.block.ask(kind, &[("id", other.into()), ("peer", pair.peer.into()), ("peer_id", pair.peer_id.into()), ("whole", 1)]);
                assert_eq!(told.get("verdict"), verdict::NOBODY, "order {kind}");
            }
        }
    }

    fn reset(&mut self) {
        if self.waiting.is_empty() && self.percent(30) {
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
