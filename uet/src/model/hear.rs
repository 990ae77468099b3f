//! What a PDC does with ACKs and NACKs (UE 3.5.11, 3.5.12; NACK classes of table 3-58).
use super::pdc::{Cx, Pdc, Stage};
use super::spray::Told;
use super::tx::{Answer, Content};
use super::types::{Action, Counter, Defect, Failure, Packet, Response, Timer};
use ferric_abi::uet::codes::{AckRequest, NackCode, ReturnCode};

impl Pdc {
    /// The peer's id, known from now on.
    fn latch(&mut self, spdcid: u16) -> bool {
        if self.stage == Stage::Syn && spdcid != 0 {
            self.peer_id = spdcid;
            self.stage = Stage::Open;
        }
        self.peer_id == spdcid
    }

    /// An ACK for this PDC.
    pub(super) fn acknowledged(&mut self, packet: &Packet, cx: &mut Cx) {
        let Packet::Ack { cack, psn, sack, marked, retx, req, spdcid, response, .. } = *packet else { return };
        let covered = self.tx.place(cack).wrapping_add(1);
        if covered > self.tx.next || matches!(self.stage, Stage::Linger(_) | Stage::Over) {
            return cx.count(Counter::BadAck);
        }
        if !self.latch(spdcid) {
            return cx.count(Counter::Stray);
        }
        let place = self.tx.place(psn);
        let nothing_new = response.is_some_and(|r| r.code == ReturnCode::Null as u8);
        self.tx.heard(nothing_new, cx.config);
        self.measure(place, retx, sack.map_or(0, |s| s.service), cx);
        let fresh = sack.is_some_and(|sack| self.tx.fresh(&sack));
        let mut progress = false;
        if let Some(sack) = &sack {
            let new = self.tx.sacked(sack);
            progress |= !new.is_empty();
            if cx.defect(Defect::SackCompletes) {
                let answers: Vec<_> = new.into_iter().filter_map(|place| self.tx.answered(place)).collect();
                self.settle(answers, None, cx);
            }
        }
        // The answer to one PSN counts before CACK covers it with a plain one.
        let known = self.tx.records.get(&place).copied();
        if let Some(record) = known {
            self.tx.arrived(&record, if marked { Told::Ecn } else { Told::Ok });
            let plain = matches!(record.content, Content::Close | Content::CloseRequest);
            if plain || response.is_some() && !nothing_new {
                let answer = self.tx.answered(place);
                progress = true;
                self.settle(answer.into_iter().collect(), response, cx);
            } else if let Some(record) = self.tx.records.get_mut(&place).filter(|r| !r.sacked) {
                // It is there; what became of it, CACK or another ACK will say.
                record.sacked = true;
                self.tx.resend.remove(&place);
            }
        }
        let answers = self.tx.covered(covered);
        progress |= !answers.is_empty();
        for (_, record) in &answers {
            self.tx.arrived(record, Told::Ok);
        }
        self.settle(answers, None, cx);
        if covered >= self.tx.cack {
            self.tx.cack = covered;
            if let Some(sack) = sack.filter(|sack| sack.mpr != 0) {
                self.tx.range = u32::from(sack.mpr) * cx.config.mpr_unit;
            }
        }
        if progress {
            (self.tx.tries, self.tx.refusals, self.tx.rewound) = (0, 0, false);
            self.arm(cx);
        }
        if let Some(sack) = sack.filter(|_| fresh) {
            let lost = self.tx.overtaken(&sack, cx.config);
            cx.out.extend((0..lost).map(|_| Action::Count(Counter::PathLoss)));
        }
        match req {
            AckRequest::Close if self.initiator => self.closing = true,
            // A request would bring the clear; there is none.
            AckRequest::Clear if !self.ready(cx.config, cx.shared) && self.stage == Stage::Open => self.clear(cx),
            _ => {}
        }
        if self.closed() {
            cx.count(Counter::Closed);
            self.end(cx);
        }
    }

    /// Round trip of a packet that was sent once, without the time that it spent at the peer.
    fn measure(&mut self, place: u32, retx: bool, service: u16, cx: &Cx) {
        if let Some(record) = self.tx.records.get(&place).filter(|record| !record.again && !retx) {
            self.tx.slowest = self.tx.slowest.max((cx.now - record.time).saturating_sub(service.into()));
        }
    }

    /// Whether the close itself is answered.
    fn closed(&self) -> bool {
        self.stage == Stage::CloseWait && self.tx.records.is_empty()
    }

    /// Tells semantics what is answered.
    fn settle(&mut self, answers: Vec<Answer>, response: Option<Response>, cx: &mut Cx) {
        cx.shared.records -= answers.len();
        for (_, record) in answers {
            match record.content {
                Content::Data(body) => cx.out.push(Action::Answered { message: body.message, offset: body.offset, bytes: body.bytes, response }),
                Content::Close => {}
                // Its time-out runs on until the close comes.
                Content::CloseRequest => {}
            }
        }
    }

    /// A NACK for this PDC.
    pub(super) fn refused(&mut self, code: NackCode, psn: u32, spdcid: u16, payload: u32, cx: &mut Cx) {
        let place = self.tx.place(psn);
        let Some(record) = self.tx.records.get(&place).copied() else { return cx.count(Counter::NackStale) };
        if spdcid != 0 && !self.latch(spdcid) {
            return cx.count(Counter::Stray);
        }
        cx.count(Counter::NackTaken(code as u8));
        match code {
            NackCode::Trimmed | NackCode::TrimmedLastHop | NackCode::InferredLoss | NackCode::AckWithData | NackCode::NotReceived => {
                self.tx.tries = 0;
                self.tx.spray.told(record.slot, Told::Nack);
                if let Some(record) = self.tx.records.get_mut(&place) {
                    record.sacked = false;
                }
                self.tx.resend.insert(place);
            }
            NackCode::NoPdc | NackCode::NoCcc | NackCode::NoBitmap | NackCode::NoPacketBuffer | NackCode::NoGuaranteed | NackCode::NoMessage | NackCode::NoResource => self.later(place, cx),
            // What CACK covers by now is no longer of interest, and has no record.
            NackCode::OutOfWindow => self.later(place, cx),
            NackCode::RodOutOfOrder => {
                let expected = self.tx.place(payload);
                if self.tx.rewind(expected) {
                    self.tx.tries = 0;
                }
            }
            // A peer that forgets at once when it is closed says this to a close that comes again.
            NackCode::InvalidPdc if self.stage == Stage::CloseWait && record.content == Content::Close => {
                cx.count(Counter::ClosedBy0e);
                self.end(cx);
            }
            // The peer has it; the time-out asks again.
            NackCode::InProgress => {}
            _ => self.fail(Failure::Refused(code as u8), cx),
        }
    }

    /// Sends again after a wait.
    fn later(&mut self, place: u32, cx: &Cx) {
        self.tx.wait.insert(place);
        if self.stage == Stage::Syn {
            // A peer that has no room for one has none for the others.
            self.tx.wait.extend(self.tx.records.keys());
        }
        let wait = &self.tx.wait;
        self.tx.resend.retain(|place| !wait.contains(place));
        self.start(Timer::Retry, cx.config.nack_wait, cx.now);
        // This is no silence. But the time-out runs on: refusals of others say nothing of the oldest, whose answer may be what is missing.
        self.tx.tries = 0;
    }
}
