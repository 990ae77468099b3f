//! What a PDC does with requests and control packets, and when it acknowledges (UE 3.5.11 to 3.5.13).
use super::pdc::{Cx, Pdc, Stage};
use super::rx::{Arrival, Seen};
use super::types::{Action, Body, Counter, Defect, Packet, Response, Sack, Timer, To};
use crate::wire::Trim;
use ferric_abi::uet::codes::{AckRequest, ControlType, NackCode, ReturnCode};
use ferric_abi::uet::BYTES_UNIT;

/// Bits of `rcvd_bytes`.
const BYTES_MASK: u32 = (1 << 24) - 1;

/// The answer that packet delivery gives by itself: nothing new.
const NOTHING_NEW: Response = Response { message: 0, code: ReturnCode::Null as u8, length: 0, data: None };

impl Pdc {
    /// A request for this PDC, its ids and its mode checked.
    pub(super) fn request(&mut self, (psn, clear): (u32, i16), to: To, body: Body, trim: Option<Trim>, seen: Seen, cx: &mut Cx) {
        let (place, syn) = (self.rx.place(psn), matches!(to, To::Syn(_)));
        if let Stage::Linger(close) = self.stage {
            return match () {
                () if trim.is_some() => cx.count(Counter::TrimmedDropped),
                () if syn => cx.count(Counter::SynAfterClose),
                () if place > close => self.refuse(NackCode::Closing, psn, 0, seen, cx),
                () => cx.count(Counter::DuplicateDropped),
            };
        }
        self.heard(cx);
        if trim.is_none() {
            if clear > 0 {
                cx.count(Counter::Ignored);
            } else {
                self.cleared(place.wrapping_add_signed(clear.into()).wrapping_add(1), cx);
            }
        }
        let window = cx.config.window;
        match (self.rx.look(place, self.mode, window, seen.retx), trim) {
            (Arrival::New, Some(trim)) => {
                let code = if trim == Trim::LastHop { NackCode::TrimmedLastHop } else { NackCode::Trimmed };
                self.refuse(code, psn, 0, seen, cx);
            }
            // The oldest that is missing has a place of its own: were it refused, nothing behind it could ever be cleared.
            (Arrival::New, None) if cx.shared.kept >= cx.config.kept && place != self.rx.base => self.refuse(NackCode::NoGuaranteed, psn, 0, seen, cx),
            (Arrival::New, None) => {
                cx.shared.kept += 1;
                let oldest = place == self.rx.base;
                self.rx.take(place, seen);
                cx.out.push(Action::Deliver { pdc: self.id, from: self.peer, psn, body, oldest });
            }
            (Arrival::Outside, Some(_)) => cx.count(Counter::TrimmedDropped),
            (Arrival::Outside, None) => self.refuse(if syn { NackCode::InvalidSyn } else { NackCode::OutOfWindow }, psn, 0, seen, cx),
            (Arrival::Gap(tell), _) => {
                self.rx.told = true;
                if tell {
                    let expected = self.rx.psn(self.rx.expected());
                    self.refuse(NackCode::RodOutOfOrder, psn, expected, seen, cx);
                }
            }
            (Arrival::Old, None) if cx.defect(Defect::DuplicateExecuted) => cx.out.push(Action::Deliver { pdc: self.id, from: self.peer, psn, body, oldest: false }),
            (arrival, trim) => self.duplicate(place, arrival, trim.is_some(), seen, cx),
        }
    }

    fn duplicate(&mut self, place: u32, arrival: Arrival, trimmed: bool, seen: Seen, cx: &mut Cx) {
        if trimmed {
            cx.count(Counter::TrimmedDuplicate);
        }
        match arrival {
            Arrival::Kept(response) => {
                cx.count(Counter::DuplicateAnswered);
                self.acknowledge(place, Some(response), seen, cx);
            }
            // Sources disagree on which duplicates are answered: this satisfies both.
            Arrival::Old if trimmed || seen.ask || seen.retx => {
                cx.count(Counter::DuplicateAnswered);
                self.acknowledge(place, Some(NOTHING_NEW), seen, cx);
            }
            // Its own ACK comes.
            _ => cx.count(Counter::DuplicateDropped),
        }
    }

    /// Something of the peer has come.
    fn heard(&mut self, cx: &Cx) {
        if !self.initiator && self.stage == Stage::Open {
            self.restart(Timer::Reap, cx.config.reap, cx.now);
        }
    }

    /// The peer has the answers of all places in front of this one.
    fn cleared(&mut self, place: u32, cx: &mut Cx) {
        let freed = self.rx.clear(place);
        cx.shared.kept -= freed;
        if freed > 0 {
            cx.count(Counter::KeptCleared);
        }
        if self.rx.held() == 0 {
            self.timers.remove(&Timer::Clear);
        }
    }

    /// Semantics are done with a packet.
    pub fn done(&mut self, psn: u32, response: Response, keep: bool, cx: &mut Cx) {
        let place = self.rx.place(psn);
        let past_kept = cx.defect(Defect::CackPastKept);
        let Some(finished) = self.rx.done(place, keep.then_some(response), past_kept) else { return cx.count(Counter::Ignored) };
        let seen = finished.seen;
        if keep {
            self.start(Timer::Clear, cx.config.clear_wait, cx.now);
        } else {
            cx.shared.kept -= 1;
        }
        self.rx.unacked += seen.bytes.max(cx.config.ack_least);
        if seen.ask || seen.marked || keep || finished.filled || finished.beyond || self.rx.unacked >= cx.config.ack_bytes {
            self.acknowledge(place, Some(response), seen, cx);
        } else {
            self.owed = Some((place, response, seen));
            self.start(Timer::Ack, cx.config.ack_wait, cx.now);
        }
    }

    /// Semantics have no room for a packet.
    pub fn no_room(&mut self, psn: u32, code: NackCode, cx: &mut Cx) {
        let Some(seen) = self.rx.refuse(self.rx.place(psn)) else { return cx.count(Counter::Ignored) };
        cx.shared.kept -= 1;
        self.refuse(code, psn, 0, seen, cx);
    }

    /// Sends an ACK for one place, and with it all that is known.
    pub(super) fn acknowledge(&mut self, place: u32, response: Option<Response>, seen: Seen, cx: &mut Cx) {
        self.rx.unacked = 0;
        self.owed = None;
        self.timers.remove(&Timer::Ack);
        let (base, bitmap) = self.rx.sack();
        let mpr = (cx.config.window / cx.config.mpr_unit).clamp(1, u8::MAX.into()) as u8;
        let bytes = self.rx.bytes.div_ceil(BYTES_UNIT.into()) as u32 & BYTES_MASK;
        let service = (cx.now - seen.at).min(u16::MAX.into()) as u16;
        let sack = response.is_some().then_some(Sack { mpr, base, bitmap, bytes, ooo: self.rx.out_of_order(), service });
        let req = match () {
            () if self.initiator => AckRequest::None,
            () if self.wants_close => AckRequest::Close,
            () if self.rx.held() > 0 => AckRequest::Clear,
            () => AckRequest::None,
        };
        let packet = Packet::Ack { cack: self.rx.cack(), psn: self.rx.psn(place), sack, marked: seen.marked, retx: seen.retx, req, spdcid: self.id, dpdcid: self.peer_id, response };
        cx.out.push(Action::Transmit { to: self.peer, packet, ev: seen.ev, control: true });
    }

    /// A control packet for this PDC, its ids checked.
    pub(super) fn ordered(&mut self, kind: ControlType, psn: u32, payload: u32, seen: Seen, cx: &mut Cx) {
        self.heard(cx);
        let place = self.rx.place(psn);
        match kind {
            ControlType::Noop | ControlType::CloseRequest if kind == ControlType::Noop || self.initiator => self.filler(kind, psn, seen, cx),
            ControlType::AckRequest => self.asked(place, psn, seen, cx),
            ControlType::ClearCommand => self.cleared(self.rx.place(payload).wrapping_add(1), cx),
            ControlType::ClearRequest => self.clear(cx),
            ControlType::CloseCommand if !self.initiator => self.close(place, psn, seen, cx),
            // Congestion management, which is not there, and what the other role sends.
            ControlType::Credit | ControlType::CreditRequest => cx.count(Counter::Ignored),
            _ => self.refuse(NackCode::Unexpected, psn, 0, seen, cx),
        }
    }

    /// A packet that takes a PSN and has nothing for semantics.
    fn filler(&mut self, kind: ControlType, psn: u32, seen: Seen, cx: &mut Cx) {
        let place = self.rx.place(psn);
        if matches!(self.stage, Stage::Linger(_)) {
            return cx.count(Counter::DuplicateDropped);
        }
        match self.rx.look(place, self.mode, cx.config.window, seen.retx) {
            Arrival::New => {
                self.rx.take(place, seen);
                self.rx.done(place, None, false);
                if kind == ControlType::CloseRequest {
                    cx.count(Counter::CloseRequestTaken);
                    self.closing = true;
                }
                self.acknowledge(place, None, seen, cx);
            }
            Arrival::Outside => self.refuse(NackCode::OutOfWindow, psn, 0, seen, cx),
            Arrival::Gap(_) => {
                let expected = self.rx.psn(self.rx.expected());
                self.refuse(NackCode::RodOutOfOrder, psn, expected, seen, cx);
            }
            _ => self.acknowledge(place, None, seen, cx),
        }
    }

    /// ACK_REQUEST: what became of a packet.
    fn asked(&mut self, place: u32, psn: u32, seen: Seen, cx: &mut Cx) {
        if matches!(self.stage, Stage::Linger(_)) {
            return cx.count(Counter::DuplicateDropped);
        }
        match self.rx.look(place, super::types::Mode::Rud, cx.config.window, false) {
            Arrival::Kept(response) => {
                cx.count(Counter::AckRequestAnswered);
                self.acknowledge(place, Some(response), seen, cx);
            }
            Arrival::Old => {
                cx.count(Counter::AckRequestAnswered);
                self.acknowledge(place, Some(NOTHING_NEW), seen, cx);
            }
            Arrival::Pending => self.refuse(NackCode::InProgress, psn, 0, seen, cx),
            _ => self.refuse(NackCode::NotReceived, psn, 0, seen, cx),
        }
    }

    /// CLOSE_COMMAND.
    fn close(&mut self, place: u32, psn: u32, seen: Seen, cx: &mut Cx) {
        if let Stage::Linger(close) = self.stage {
            if place == close {
                cx.count(Counter::CloseAgain);
                return self.acknowledge(place, None, seen, cx);
            }
            return self.refuse(NackCode::Closing, psn, 0, seen, cx);
        }
        self.cleared(self.rx.newest, cx);
        if !self.tx.unfinished().is_empty() {
            self.refuse(NackCode::ClosingInError, psn, 0, seen, cx);
            return self.fail(super::types::Failure::Refused(NackCode::ClosingInError as u8), cx);
        }
        if place != self.rx.base || !self.rx.marks.is_empty() {
            // Its source has not been answered everything, and yet closes.
            return self.refuse(NackCode::Unexpected, psn, 0, seen, cx);
        }
        cx.count(Counter::Lingered);
        self.rx.take(place, seen);
        self.rx.done(place, None, false);
        self.acknowledge(place, None, seen, cx);
        self.end(cx);
        if !cx.defect(Defect::NoLinger) {
            self.stage = Stage::Linger(place);
            self.start(Timer::Safety, cx.config.safety, cx.now);
        }
    }
}
