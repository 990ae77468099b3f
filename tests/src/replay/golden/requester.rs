//! The requester of a reliable connection (IBTA 9.7.2, 9.7.5.1, 9.7.6).
use super::{Defect, Port};
use crate::replay::endpoint::{rnr_ticks, timeout_ticks, Done, Post, Setup};
use crate::replay::frame::{psn_add, psn_distance, Frame, Kind, Op, Syndrome};
use ferric_abi::wire::{AtomicEth, Ieth, ImmDt, Reth};
use ferric_driver::CqeStatus;
use std::collections::VecDeque;

/// A request with its PSNs.
struct Request {
    post: Post,
    data: Vec<u8>,
    first_psn: u32,
    /// PSNs it takes.
    psns: u32,
    /// READ: response bytes so far.
    read: usize,
}

/// Requester state.
pub struct Requester {
    queue: VecDeque<Request>,
    /// PSN of the next request posted.
    post_psn: u32,
    /// Next PSN to send, oldest unacknowledged PSN, one past the highest PSN sent.
    next: u32,
    una: u32,
    max: u32,
    retries: u8,
    rnr_retries: u8,
    /// Retransmission is due at this tick.
    deadline: Option<u64>,
    /// RNR NAK received: nothing is sent before this tick.
    wait: Option<u64>,
}

impl Requester {
    pub fn new(setup: &Setup) -> Self {
        let psn = setup.sq_psn;
        Self { queue: VecDeque::new(), post_psn: psn, next: psn, una: psn, max: psn, retries: setup.retry_cnt, rnr_retries: setup.rnr_retry, deadline: None, wait: None }
    }

    pub fn post(&mut self, port: &Port, post: &Post) {
        let len = post.local.map_or(0, |l| l.len);
        let data = match post.local {
            Some(l) if !post.kind.brings_data() => port.memory.bytes(l.region.index)[l.offset..l.offset + len].to_vec(),
            _ => Vec::new(),
        };
        let psns = len.div_ceil(port.setup.mtu.bytes()).max(1) as u32;
        self.queue.push_back(Request { post: *post, data, first_psn: self.post_psn, psns, read: 0 });
        self.post_psn = psn_add(self.post_psn, psns);
    }

    /// Completes everything posted, as in the error state.
    pub fn flush(&mut self, port: &mut Port) {
        (self.deadline, self.wait) = (None, None);
        for r in self.queue.drain(..) {
            port.done.push_back(done(&r.post, CqeStatus::WrFlush));
        }
    }

    fn fail(&mut self, port: &mut Port, status: CqeStatus) {
        let status = if port.has(Defect::ErrorReportedAsSuccess) { CqeStatus::Success } else { status };
        if let Some(r) = self.queue.pop_front() {
            port.done.push_back(done(&r.post, status));
        }
        port.error = true;
    }

    /// Sends whatever may be sent.
    pub fn run(&mut self, port: &mut Port) {
        if port.error || self.wait.is_some() {
            return;
        }
        while self.next != self.post_psn {
            let Some(r) = self.queue.iter().find(|r| (0..r.psns as i32).contains(&psn_distance(self.next, r.first_psn))) else { return };
            let step = if r.post.kind == Kind::ReadRequest { r.psns - psn_distance(self.next, r.first_psn) as u32 } else { 1 };
            let frame = packet(port, r, self.next);
            self.next = psn_add(self.next, step);
            if psn_distance(self.next, self.max) > 0 {
                self.max = self.next;
            }
            port.send(frame);
            if self.deadline.is_none() {
                self.start_timer(port);
            }
        }
    }

    fn start_timer(&mut self, port: &Port) {
        let t = timeout_ticks(port.setup.timeout);
        self.deadline = (port.setup.timeout > 0 && self.una != self.max).then_some(port.now + if port.has(Defect::TimeoutHalved) { t / 2 } else { t });
    }

    /// Time has passed.
    pub fn expire(&mut self, port: &mut Port) {
        if self.wait.is_some_and(|w| w <= port.now) {
            self.wait = None;
        }
        if self.wait.is_none() && self.deadline.is_some_and(|d| d <= port.now) {
            self.deadline = None;
            if self.retries == 0 {
                return self.fail(port, CqeStatus::RetryExceeded);
            }
            self.retries -= 1;
            self.next = self.una;
        }
    }

    /// Everything before `psn` is acknowledged.
    fn progress(&mut self, port: &mut Port, psn: u32) {
        if psn_distance(psn, self.una) <= 0 {
            return;
        }
        self.una = psn;
        if psn_distance(self.next, self.una) < 0 {
            self.next = self.una;
        }
        (self.retries, self.rnr_retries) = (port.setup.retry_cnt, port.setup.rnr_retry);
        while let Some(r) = self.queue.front() {
            let complete = psn_distance(psn, psn_add(r.first_psn, r.psns)) >= 0;
            if !complete {
                break;
            }
            port.done.push_back(done(&r.post, CqeStatus::Success));
            self.queue.pop_front();
        }
        self.start_timer(port);
    }

    /// An acknowledge or READ response.
    pub fn receive(&mut self, port: &mut Port, f: &Frame) {
        let psn = f.psn();
        if psn_distance(psn, self.una) < 0 || psn_distance(psn, self.max) >= 0 {
            return;
        }
        if matches!(f.op.kind, Kind::ReadResponse | Kind::AtomicAck) {
            return self.response(port, f);
        }
        let Some(aeth) = f.aeth.filter(|_| f.op.kind == Kind::Ack) else { return };
        // An acknowledge behind an unanswered READ acknowledges only what lies before it (9.7.5.1.2: implied NAK).
        let limit = self.queue.iter().find(|r| r.post.kind.has_response()).map(|r| r.first_psn);
        let bounded = |to: u32| limit.filter(|l| psn_distance(to, *l) > 0).unwrap_or(to);
        match Syndrome::of(aeth.syndrome()) {
            Syndrome::Ack => {
                let to = bounded(psn_add(psn, 1));
                self.progress(port, to);
            }
            Syndrome::Rnr(timer) => {
                self.progress(port, psn);
                if port.setup.rnr_retry != 7 {
                    if self.rnr_retries == 0 {
                        return self.fail(port, CqeStatus::RnrRetryExceeded);
                    }
                    self.rnr_retries -= 1;
                }
                self.next = psn;
                self.deadline = None;
                self.wait = (!port.has(Defect::RnrNotWaited)).then_some(port.now + rnr_ticks(timer));
            }
            Syndrome::Sequence => {
                // The peer dropped this packet for want of a receive; its later complaint about the same place says nothing new.
                if self.wait.is_some() {
                    return;
                }
                self.progress(port, psn);
                self.next = if port.has(Defect::RetransmitSkipsOne) { psn_add(psn, 1) } else { psn };
                self.start_timer(port);
            }
            Syndrome::Fatal(code) => {
                self.progress(port, psn);
                self.fail(
                    port,
                    match code {
                        1 => CqeStatus::RemoteInvalidRequest,
                        2 => CqeStatus::RemoteAccess,
                        _ => CqeStatus::RemoteOperation,
                    },
                );
            }
            Syndrome::Reserved => {}
        }
    }

    fn response(&mut self, port: &mut Port, f: &Frame) {
        let Some(r) = self.queue.iter_mut().find(|r| r.post.kind.has_response()) else { return };
        if (f.op.kind == Kind::AtomicAck) != matches!(r.post.kind, Kind::CompareSwap | Kind::FetchAdd) {
            return;
        }
        // What an atomic found lies in memory as the host has it.
        let found = f.atomic_ack.map(|a| a.original().to_le_bytes());
        let bytes = found.as_ref().map_or(&f.payload[..], |b| &b[..]);
        let first = r.first_psn;
        // Responses come in order; a hole is recovered by time-out.
        if psn_distance(f.psn(), first) as usize * port.setup.mtu.bytes() != r.read {
            return;
        }
        if let Some(l) = r.post.local {
            let at = l.offset + r.read;
            if r.read + bytes.len() > l.len {
                return;
            }
            port.memory.bytes_mut(l.region.index)[at..at + bytes.len()].copy_from_slice(bytes);
        }
        r.read += bytes.len();
        self.progress(port, psn_add(f.psn(), 1));
    }
}

fn done(post: &Post, status: CqeStatus) -> Done {
    Done::new(post.id, false, status)
}

/// The request packet with this PSN.
fn packet(port: &Port, r: &Request, psn: u32) -> Frame {
    let mtu = port.setup.mtu.bytes();
    let i = psn_distance(psn, r.first_psn) as usize;
    let is_read = r.post.kind == Kind::ReadRequest;
    let last = r.post.kind.has_response() || i + 1 == r.psns as usize;
    let (imm, invalidate) = (last && r.post.imm.is_some(), last && r.post.invalidate.is_some());
    let op = Op { kind: r.post.kind, first: r.post.kind.has_response() || i == 0, last, imm, invalidate };
    let mut frame = port.frame(op, psn);
    let total = r.post.local.map_or(0, |l| l.len);
    let from = i * mtu;
    if is_read || r.post.kind == Kind::AtomicWrite || r.post.kind == Kind::Write && op.first {
        let (va, rkey) = r.post.remote;
        frame.reth = Some(Reth::default().with_va(va + if is_read { from as u64 } else { 0 }).with_rkey(rkey).with_length((total - if is_read { from } else { 0 }) as u32));
    }
    if let Some(flush) = r.post.flush {
        let (va, rkey) = r.post.remote;
        frame.feth = Some(flush.feth);
        frame.reth = Some(Reth::default().with_va(va).with_rkey(rkey).with_length(flush.len));
    }
    if matches!(r.post.kind, Kind::CompareSwap | Kind::FetchAdd) {
        let ((va, rkey), (swap_add, compare)) = (r.post.remote, r.post.operands);
        frame.atomic = Some(AtomicEth::default().with_va(va).with_rkey(rkey).with_swap_add(swap_add).with_compare(compare));
    }
    if op.imm {
        frame.imm = r.post.imm.map(|v| ImmDt::default().with_imm(v));
    }
    if op.invalidate {
        frame.ieth = r.post.invalidate.map(|key| Ieth::default().with_rkey(key));
    }
    frame.bth.set_solicited(last && r.post.solicited).set_ack_req(last);
    if !r.post.kind.brings_data() {
        frame.payload = r.data[from.min(r.data.len())..r.data.len().min(from + mtu)].to_vec();
    }
    frame
}
