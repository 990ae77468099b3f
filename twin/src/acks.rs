//! What comes back to a requester: acknowledges, NAKs, answers to READs and atomics; its time-outs.
use crate::counters::count;
use crate::host::Host;
use crate::memory::Fault;
use crate::requester::{FOR_EVER, HALF, PSN};
use crate::Twin;
use ferric_abi::codes::{CqeStatus, WrOpcode};
use ferric_abi::wire::{opcode, pmtu, syndrome};
use ferric_model::net::parse::Parsed;
use ferric_model::roce::requester::rnr_ticks;

/// What a packet says.
#[derive(Clone, Copy, PartialEq)]
enum Says {
    Ack,
    /// RNR NAK with its timer code.
    Rnr(u8),
    Sequence,
    Fatal(CqeStatus),
    /// Answer to a READ.
    Read,
    /// Result of an atomic.
    Atomic,
}

impl Says {
    /// `None`: nothing that there is.
    fn of(p: &Parsed) -> Option<Self> {
        let code = (p.aeth >> 24) as u8;
        Some(match p.opcode {
            opcode::READ_RESPONSE_FIRST..=opcode::READ_RESPONSE_ONLY => Self::Read,
            opcode::ATOMIC_ACKNOWLEDGE => Self::Atomic,
            opcode::ACKNOWLEDGE => match (code >> 5 & 3, code) {
                (syndrome::KIND_ACK, _) => Self::Ack,
                (syndrome::KIND_RNR, _) => Self::Rnr(code & 31),
                (_, syndrome::NAK_SEQUENCE) => Self::Sequence,
                (_, syndrome::NAK_INVALID) => Self::Fatal(CqeStatus::RemoteInvalidRequest),
                (_, syndrome::NAK_ACCESS) => Self::Fatal(CqeStatus::RemoteAccess),
                (_, syndrome::NAK_OPERATION) => Self::Fatal(CqeStatus::RemoteOperation),
                _ => return None,
            },
            _ => return None,
        })
    }

    fn answers(self) -> bool {
        matches!(self, Self::Read | Self::Atomic)
    }
}

/// How far `a` is ahead of `b`.
fn ahead(a: u32, b: u32) -> u32 {
    a.wrapping_sub(b) & PSN
}

impl Twin {
    /// A packet for the requester. `payload`: behind its headers, without pad.
    pub(crate) fn response(&mut self, host: &mut dyn Host, p: &Parsed, payload: &[u8]) {
        let qpn = p.dest_qpn;
        let Some(req) = self.tables.req.get(qpn as usize).copied() else { return count!(self, 0, "req_rx.bad_ack") };
        let f = req.function();
        let Some(says) = Says::of(p) else { return count!(self, f, "req_rx.unexpected_response") };
        let (from_una, inside) = (ahead(p.psn, req.una_psn()), ahead(p.psn, req.max_psn()) >= HALF);
        if !self.is_live(qpn) || req.qp_type() != 0 {
            return count!(self, f, "req_rx.bad_ack");
        }
        if from_una >= HALF {
            return;
        }
        if !inside {
            return count!(self, f, "req_rx.bad_ack");
        }
        let goal = if says == Says::Ack { (p.psn + 1) & PSN } else { p.psn };
        let hole = self.advance(host, qpn, says, goal);
        if !self.is_live(qpn) {
            return;
        }
        match says {
            Says::Read | Says::Atomic if !hole => self.answer(host, qpn, says, p, payload),
            Says::Read | Says::Atomic | Says::Ack => {}
            Says::Fatal(_) if hole => {}
            Says::Fatal(status) => return self.fail(host, qpn, status, (p.aeth >> 24) as u8),
            Says::Sequence => {
                count!(self, f, "req_rx.nak_seq_received");
                if !self.tables.req[qpn as usize].rnr_wait() {
                    self.rewind(qpn);
                }
            }
            Says::Rnr(code) => self.not_ready(host, qpn, code),
        }
        if self.is_live(qpn) {
            self.settle(qpn);
        }
    }

    /// Everything before `goal` is acknowledged, but not beyond a READ or an atomic that has not been answered. True: such a one stands before what the packet is about.
    fn advance(&mut self, host: &mut dyn Host, qpn: u32, says: Says, goal: u32) -> bool {
        let n = qpn as usize;
        let req = self.tables.req[n];
        let una = req.una_psn();
        let sent = usize::from(req.sent_index().wrapping_sub(req.una_index()));
        // The first request in the window that is to be answered, from where on it still is.
        let asked = self.requesters[n].work.iter().take(sent).find(|r| r.asks()).map(|r| if ahead(r.first_psn, una) >= HALF { una } else { r.first_psn });
        let blocked = asked.filter(|at| ahead(*at, una) < ahead(goal, una));
        let to = blocked.unwrap_or(goal);
        if says.answers() && blocked.is_none() && asked != Some(goal) {
            // An answer that nobody asked for says nothing.
            return false;
        }
        if to != una {
            let r = &mut self.tables.req[n];
            r.set_una_psn(to).set_retries_left(req.retry_cnt()).set_rnr_left(req.rnr_retry());
            self.progressed(qpn);
        }
        // Not only when it has moved: NOPs may stand there.
        self.retire(host, qpn);
        let hole = blocked.is_some() && (says.answers() || says == Says::Ack || matches!(says, Says::Fatal(_)));
        if hole && self.is_live(qpn) {
            let r = &mut self.tables.req[n];
            if !r.read_gap() && !r.rnr_wait() {
                // An answer is missing: implied NAK, told once (IBTA 9.7.5.1.2).
                r.set_read_gap(true);
                self.rewind(qpn);
            }
        }
        hole
    }

    fn progressed(&mut self, qpn: u32) {
        if self.tables.req[qpn as usize].timer_on() && !self.tables.req[qpn as usize].rnr_wait() {
            self.restart_timer(qpn);
        }
    }

    /// What follows from any progress.
    fn settle(&mut self, qpn: u32) {
        let req = &self.tables.req[qpn as usize];
        if req.rnr_wait() {
            return;
        }
        if ahead(req.next_psn(), req.una_psn()) >= HALF {
            // Acknowledged beyond the packet that a retransmission was about to send.
            self.rewind(qpn);
        }
        if self.tables.req[qpn as usize].timer_on() && self.tables.req[qpn as usize].next_psn() == self.tables.req[qpn as usize].una_psn() {
            self.restart_timer(qpn);
        }
        self.activate(qpn);
    }

    fn not_ready(&mut self, host: &mut dyn Host, qpn: u32, code: u8) {
        let req = &mut self.tables.req[qpn as usize];
        if req.rnr_wait() {
            return;
        }
        count!(self, req.function(), "req_rx.rnr_received");
        if req.rnr_retry() != FOR_EVER {
            if req.rnr_left() == 0 {
                return self.fail(host, qpn, CqeStatus::RnrRetryExceeded, 0);
            }
            req.set_rnr_left(req.rnr_left() - 1);
        }
        req.set_rnr_wait(true);
        self.rewind(qpn);
        let deadline = self.ticks + u64::from(rnr_ticks(code.into()));
        self.set_deadline(qpn, Some((deadline, true)));
    }

    /// An answer to the READ or atomic at `una_psn`; one for anything else is dropped.
    fn answer(&mut self, host: &mut dyn Host, qpn: u32, says: Says, p: &Parsed, payload: &[u8]) {
        let n = qpn as usize;
        let req = self.tables.req[n];
        let f = req.function();
        let Some(oldest) = self.requesters[n].work.front().filter(|r| r.asks() && req.una_psn() == p.psn && req.sent_index() != req.una_index()) else { return count!(self, f, "req_rx.bad_ack") };
        let atomic = matches!(WrOpcode::from_u8(oldest.head.opcode()), Some(WrOpcode::CompareSwap | WrOpcode::FetchAdd));
        let mtu = pmtu::bytes(req.pmtu()) as u32;
        let number = ahead(p.psn, oldest.first_psn);
        let (at_first, at_last) = (number == 0, number + 1 == oldest.psns);
        let first = matches!(p.opcode, opcode::READ_RESPONSE_FIRST | opcode::READ_RESPONSE_ONLY);
        let last = matches!(p.opcode, opcode::READ_RESPONSE_LAST | opcode::READ_RESPONSE_ONLY);
        let with_aeth = p.opcode != opcode::READ_RESPONSE_MIDDLE;
        let bad = with_aeth && (p.aeth >> 29) as u8 & 3 != syndrome::KIND_ACK;
        let in_place = last == at_last && (first || !at_first) && (u32::from(p.pay_len) == mtu || at_last);
        let fits = !bad && (says == Says::Atomic) == atomic && (atomic || in_place);
        if !fits {
            return self.fail(host, qpn, CqeStatus::BadResponse, 0);
        }
        let offset = number * mtu;
        let rest = oldest.head.length().wrapping_sub(offset);
        let r = &mut self.tables.req[n];
        r.set_una_psn((p.psn + 1) & PSN).set_read_gap(false).set_retries_left(req.retry_cnt()).set_rnr_left(req.rnr_retry());
        let value = p.operand.to_le_bytes();
        let data = if atomic { &value[..] } else { payload };
        if !atomic && at_last && rest != payload.len() as u32 {
            return self.fail(host, qpn, CqeStatus::BadResponse, 0);
        }
        let owner = self.owner(qpn);
        // Taken out meanwhile, so that the list can be read while memory is written.
        let work = std::mem::take(&mut self.requesters[n].work);
        let placed = match work[0].list(false) {
            Some(list) => self.scatter(host, owner, list, offset.into(), data),
            None => Err(Fault::List),
        };
        self.requesters[n].work = work;
        if let Err(fault) = placed {
            return self.fail(host, qpn, fault.of_request(), 0);
        }
        self.progressed(qpn);
        self.retire(host, qpn);
    }

    /// The timer of a queue pair has fired.
    pub(crate) fn timed_out(&mut self, host: &mut dyn Host, qpn: u32, rnr: bool) {
        let live = self.is_live(qpn);
        let req = &mut self.tables.req[qpn as usize];
        if !live || req.rnr_wait() != rnr {
            return;
        }
        if rnr {
            req.set_rnr_wait(false);
            return self.rewind(qpn);
        }
        if !req.timer_on() {
            return;
        }
        req.set_read_gap(false).set_timer_on(false);
        if req.next_psn() == req.una_psn() {
            return;
        }
        count!(self, req.function(), "req_rx.timeouts");
        if req.retries_left() == 0 {
            return self.fail(host, qpn, CqeStatus::RetryExceeded, 0);
        }
        req.set_retries_left(req.retries_left() - 1);
        self.rewind(qpn);
    }
}
