//! The sending half of a queue pair: state beside its context line, and the end of its requests.
use crate::counters::count;
use crate::host::Host;
use crate::memory::{List, Owner, Slot};
use crate::Twin;
use ferric_abi::codes::{CqeStatus, EventKind, QpState, QpType, WrOpcode};
use ferric_abi::context::ReqCtx;
use ferric_abi::host::{Cqe, WqeHead};
use ferric_abi::wire::pmtu;
use ferric_model::admin::isa::notice;
use ferric_model::roce::requester::{refusal, WorkRequest, LONGEST_TIMEOUT, TIMEOUT_TICKS};
use std::collections::VecDeque;

/// PSNs are numbers of so many bits.
pub(crate) const PSN: u32 = 0xff_ffff;
/// Half of them: a distance from here on is one backwards.
pub(crate) const HALF: u32 = 1 << 23;
/// Most entries of a send request, most bytes inline.
const ENTRIES: u8 = 30;
const INLINE: u32 = 480;
/// Retries for ever.
pub(crate) const FOR_EVER: u8 = 7;

/// A send request that has been fetched.
pub(crate) struct Request {
    pub slot: Slot,
    pub head: WqeHead,
    /// `None`: no such operation.
    pub request: Option<WorkRequest>,
    /// Why it cannot be sent.
    pub refused: Option<CqeStatus>,
    pub first_psn: u32,
    /// PSNs that it takes: none of a NOP and of local operations.
    pub psns: u32,
}

impl Request {
    /// `line`: of the queue pair.
    pub(crate) fn new(slot: Slot, line: &ReqCtx) -> Self {
        let mut head = WqeHead::default();
        head.0.copy_from_slice(&slot.bytes[..WqeHead::BYTES]);
        let operand = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| slot.bytes[at + i]));
        let request = WrOpcode::from_u8(head.opcode()).map(|opcode| WorkRequest {
            opcode,
            signaled: head.signaled(),
            solicited: head.solicited(),
            imm: head.imm(),
            raddr: head.raddr(),
            rkey: head.rkey(),
            length: head.length(),
            operands: (operand(32), operand(40)),
            fence: head.fence(),
        });
        let asks = request.as_ref().is_some_and(WorkRequest::asks);
        let kind = QpType::from_u8(line.qp_type()).unwrap_or(QpType::Raw);
        let refused = if slot.failed {
            Some(CqeStatus::Fatal)
        } else if asks && (line.max_rd_atomic() == 0 || head.inline_data()) {
            Some(CqeStatus::LocalQpOperation)
        } else {
            refusal(kind, head.opcode(), head.length(), pmtu::bytes(line.pmtu()) as u32).and_then(CqeStatus::from_u8)
        };
        Self { slot, head, request, refused, first_psn: 0, psns: 0 }
    }

    pub(crate) fn asks(&self) -> bool {
        self.request.as_ref().is_some_and(WorkRequest::asks)
    }

    /// Where its list, or its inline bytes, begin: behind operands, or behind a datagram's destination.
    pub(crate) fn list_at(&self, datagram: bool) -> usize {
        let atomic = matches!(self.request.as_ref().map(|r| r.opcode), Some(WrOpcode::CompareSwap | WrOpcode::FetchAdd));
        WqeHead::BYTES + if datagram || atomic { 16 } else { 0 }
    }

    /// Its list; `None`: it has too many entries.
    pub(crate) fn list(&self, datagram: bool) -> Option<List<'_>> {
        let entries = self.head.num_sge();
        (entries <= ENTRIES).then(|| List { slot: &self.slot, at: self.list_at(datagram), entries: entries.into() })
    }

    /// Its inline bytes from `offset` on; `None`: more than there may be.
    pub(crate) fn inline(&self, datagram: bool, offset: usize, len: usize) -> Option<&[u8]> {
        let at = self.list_at(datagram) + offset;
        (self.head.length() <= INLINE && at + len <= self.slot.len).then(|| &self.slot.bytes[at..at + len])
    }
}

/// What the context line does not hold.
#[derive(Default)]
pub(crate) struct Requester {
    /// Requests from the oldest that is not complete on, as far as they have been fetched.
    pub work: VecDeque<Request>,
    /// One that came with its doorbell.
    direct: Option<(u16, [u8; 64])>,
    /// When the timer fires, and whether it is the one of an RNR NAK.
    pub deadline: Option<(u64, bool)>,
    /// The earliest deadline that the list of timers has of this queue pair.
    pub listed: Option<u64>,
}

impl Requester {
    /// Reset: nothing of the former life remains.
    pub(crate) fn clear(&mut self) {
        self.work.clear();
        self.direct = None;
        self.deadline = None;
    }

    /// A request that came with its doorbell. False: another one waits.
    pub(crate) fn take_direct(&mut self, index: u16, line: &[u8]) -> bool {
        if self.direct.is_some_and(|(other, _)| other != index) {
            return false;
        }
        let mut bytes = [0; 64];
        bytes.copy_from_slice(line);
        self.direct = Some((index, bytes));
        true
    }

    /// The request that came with its doorbell, if it is `index`.
    pub(crate) fn direct(&mut self, index: u16) -> Option<Slot> {
        let (_, line) = self.direct.take().filter(|(at, _)| *at == index)?;
        let mut slot = Slot::empty();
        slot.bytes[..line.len()].copy_from_slice(&line);
        Some(slot)
    }
}

impl Twin {
    pub(crate) fn owner(&self, qpn: u32) -> Owner {
        let req = &self.tables.req[qpn as usize];
        Owner { function: req.function(), pd: req.pd(), qpn }
    }

    /// It sends: RTS, or SQD.
    pub(crate) fn is_live(&self, qpn: u32) -> bool {
        self.tables.req.get(qpn as usize).is_some_and(|r| r.state() == QpState::Rts as u8 || r.state() == QpState::Sqd as u8)
    }

    /// The next request to send is `index`; the ring goes by it.
    pub(crate) fn go_to(&mut self, qpn: u32, index: u16) {
        self.tables.req[qpn as usize].set_next_index(index);
        self.tables.sq[qpn as usize].set_fetch(index);
    }

    /// A request of the queue pair's own failed: it ends the queue pair when it is the oldest.
    pub(crate) fn local_error(&mut self, host: &mut dyn Host, qpn: u32, index: u16, status: CqeStatus) {
        let req = &mut self.tables.req[qpn as usize];
        count!(self, req.function(), "req_rx.local_errors");
        let earlier = !req.error_pending() || (index.wrapping_sub(req.error_index()) as i16) < 0;
        if earlier {
            req.set_error_pending(true).set_error_index(index).set_error_status(status as u8);
        }
        self.retire(host, qpn);
    }

    /// Completes what has been acknowledged, and ends the queue pair if a failed request has become the oldest.
    pub(crate) fn retire(&mut self, host: &mut dyn Host, qpn: u32) {
        let n = qpn as usize;
        loop {
            let req = &mut self.tables.req[n];
            if req.error_pending() && req.una_index() == req.error_index() {
                let status = CqeStatus::from_u8(req.error_status()).unwrap_or(CqeStatus::Fatal);
                return self.fail(host, qpn, status, 0);
            }
            if req.una_index() == req.sent_index() {
                break;
            }
            let Some(oldest) = self.requesters[n].work.front() else { break };
            let end = oldest.first_psn.wrapping_add(oldest.psns) & PSN;
            if req.una_psn().wrapping_sub(end) & PSN >= HALF {
                break;
            }
            let (index, opcode, signaled) = (req.una_index(), oldest.head.opcode(), oldest.head.signaled() || req.sig_all());
            let follower = index.wrapping_add(1);
            if oldest.asks() {
                req.set_rd_out(req.rd_out().wrapping_sub(1));
            }
            req.set_una_index(follower).set_done_index(follower).set_una_wqe_psn(end);
            let (scqn, function, behind) = (req.scqn(), req.function(), (req.next_index().wrapping_sub(follower) as i16) < 0);
            if behind {
                req.set_msg_offset(0).set_in_msg(false);
                self.go_to(qpn, follower);
            }
            self.requesters[n].work.pop_front();
            if signaled {
                self.complete(host, scqn, function, Cqe::default().with_wqe_index(index).with_opcode(opcode).with_qpn(qpn));
            }
        }
        let req = &mut self.tables.req[n];
        if req.state() == QpState::Sqd as u8 && !req.drained() && req.sent_index() == req.una_index() {
            req.set_drained(true);
            let eqn = req.eqn();
            self.event(host, eqn, EventKind::SqDrained, qpn, 0);
        }
    }

    /// Sends again from the oldest packet that is not acknowledged.
    pub(crate) fn rewind(&mut self, qpn: u32) {
        let req = &mut self.tables.req[qpn as usize];
        let packets = req.una_psn().wrapping_sub(req.una_wqe_psn()) & PSN;
        let offset = packets.wrapping_mul(pmtu::bytes(req.pmtu()) as u32);
        let (una, epoch) = (req.una_psn(), req.epoch().wrapping_add(1));
        req.set_next_psn(una).set_msg_offset(offset).set_in_msg(packets != 0).set_epoch(epoch).set_timer_on(false);
        let (index, waits, function) = (req.una_index(), req.rnr_wait(), req.function());
        self.go_to(qpn, index);
        if !waits {
            count!(self, function, "req_rx.retransmits");
            self.requesters[qpn as usize].deadline = None;
            self.activate(qpn);
        }
    }

    /// The oldest request ends with `status`, and the queue pair with it.
    pub(crate) fn fail(&mut self, host: &mut dyn Host, qpn: u32, status: CqeStatus, syndrome: u8) {
        let req = self.tables.req[qpn as usize];
        let f = req.function();
        match status {
            CqeStatus::BadResponse => count!(self, f, "req_rx.bad_response"),
            CqeStatus::RemoteInvalidRequest => count!(self, f, "req_rx.nak_inv_received"),
            CqeStatus::RemoteAccess => count!(self, f, "req_rx.nak_access_received"),
            CqeStatus::RemoteOperation => count!(self, f, "req_rx.nak_op_received"),
            CqeStatus::RetryExceeded => count!(self, f, "req_rx.retry_exceeded"),
            CqeStatus::RnrRetryExceeded => count!(self, f, "req_rx.rnr_exceeded"),
            _ => {}
        }
        let entry = Cqe::default().with_wqe_index(req.una_index()).with_status(status as u8).with_qpn(qpn).with_syndrome(syndrome);
        self.complete(host, req.scqn(), f, entry);
        self.end(host, qpn, status as u8, true);
    }

    /// The requester goes into ERROR, of unreliable queue pairs into SQ error if it is to `blame` itself, and flushes.
    fn end(&mut self, host: &mut dyn Host, qpn: u32, cause: u8, blame: bool) {
        let n = qpn as usize;
        let req = &mut self.tables.req[n];
        let alone = blame && (req.qp_type() == QpType::Uc as u8 || req.qp_type() == QpType::Ud as u8);
        let flushed = req.state() == QpState::SqError as u8;
        let state = if alone { QpState::SqError } else { QpState::Error };
        req.set_state(state as u8).set_timer_on(false).set_rnr_wait(false).set_parked(false).set_error_pending(false);
        let (from, eqn) = (req.una_index().wrapping_add(u16::from(blame)), req.eqn());
        self.requesters[n].clear();
        if !flushed {
            req.set_epoch(req.epoch().wrapping_add(1));
            let ring = &mut self.tables.sq[n];
            if ring.valid() {
                ring.set_flush(true).set_fetch(from);
                self.flush_sends(host, qpn);
            }
        }
        if !alone {
            let violated = !blame && cause == CqeStatus::RemoteAccess as u8;
            self.event(host, eqn, if violated { EventKind::QpAccessError } else { EventKind::QpError }, qpn, cause.into());
            if blame {
                self.responder_error(host, qpn, None, cause);
            }
        }
    }

    /// The other half, or the admin engine, has ended the queue pair.
    pub(crate) fn requester_error(&mut self, host: &mut dyn Host, qpn: u32, cause: u8) {
        let state = self.tables.req[qpn as usize].state();
        if state != QpState::Error as u8 && state != QpState::Reset as u8 {
            self.end(host, qpn, cause, false);
        }
    }

    /// Into SQD, out of it, or out of SQ error.
    pub(crate) fn redirect(&mut self, host: &mut dyn Host, qpn: u32, how: u32) {
        let live = self.is_live(qpn);
        let req = &mut self.tables.req[qpn as usize];
        match how {
            notice::DRAIN if live => {
                req.set_state(QpState::Sqd as u8).set_drained(false);
                self.retire(host, qpn);
            }
            notice::RESUME if live => {
                req.set_state(QpState::Rts as u8).set_drained(false);
            }
            notice::SQ_RECOVERED if req.state() == QpState::SqError as u8 => {
                req.set_state(QpState::Rts as u8).set_parked(false);
                self.tables.sq[qpn as usize].set_parked(false);
            }
            _ => {}
        }
        self.activate(qpn);
    }

    /// Starts the timer of what is on its way anew, or stops it if nothing is.
    pub(crate) fn restart_timer(&mut self, qpn: u32) {
        let req = &mut self.tables.req[qpn as usize];
        let flying = req.next_psn() != req.una_psn();
        let exponent = u64::from(req.timeout()).min(LONGEST_TIMEOUT);
        req.set_timer_on(flying);
        let runs = flying && req.timeout() != 0;
        let deadline = runs.then(|| (self.ticks + (TIMEOUT_TICKS << exponent), false));
        self.set_deadline(qpn, deadline);
    }
}
