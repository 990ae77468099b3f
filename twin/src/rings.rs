//! Send and receive rings: doorbells, fetches, flushes, limits of shared receive queues.
use crate::counters::count;
use crate::host::Host;
use crate::memory::Slot;
use crate::Twin;
use ferric_abi::codes::{CqeOpcode, CqeStatus, EventKind};
use ferric_abi::context::RingCtx;
use ferric_abi::csr;
use ferric_abi::host::{Cqe, Doorbell, WqeHead};
use ferric_model::rings::{receive, send};

/// Bytes of a work request that comes with its doorbell.
const LINE: usize = 64;

fn send_ring(r: &RingCtx) -> send::RingModel {
    send::RingModel { function: r.function(), log_size: r.log_size(), stride: r.stride(), epoch: r.epoch(), producer: r.producer(), next: r.fetch(), parked: r.parked(), flush: r.flush() }
}

fn receive_ring(r: &RingCtx) -> receive::RingModel {
    receive::RingModel {
        function: r.function(),
        log_size: r.log_size(),
        stride: r.stride(),
        producer: r.producer(),
        next: r.fetch(),
        flush: r.flush(),
        shared: r.shared(),
        limit: r.limit(),
        error: r.error(),
    }
}

impl Twin {
    /// A posted write to the doorbell space: `bytes` at the window's `offset`.
    pub(crate) fn ring(&mut self, host: &mut dyn Host, function: u16, offset: u32, bytes: &[u8]) {
        if usize::from(function) >= self.registers.functions() {
            return count!(self, 0, "doorbell.db_bad");
        }
        let page = csr::DB_WQE..csr::DB_WQE + csr::DB_WQE_SIZE;
        if page.contains(&offset) && offset as usize % LINE == 0 && bytes.len() == LINE {
            count!(self, function, "doorbell.db_wqe");
            return self.ring_with_request(host, function, bytes);
        }
        let Ok(raw) = <[u8; 8]>::try_from(bytes) else { return count!(self, function, "doorbell.db_bad") };
        let d = Doorbell(raw);
        let known = matches!(offset, csr::DB_SQ | csr::DB_RQ | csr::DB_CQ | csr::DB_EQ);
        if !known {
            return count!(self, function, "doorbell.db_bad");
        }
        count!(self, function, "doorbell.db_rung");
        match offset {
            csr::DB_SQ => self.ring_sq(host, function, d.id(), d.index()),
            csr::DB_RQ => self.ring_rq(host, function, d.id(), d.index()),
            csr::DB_CQ => self.ring_cq(host, function, d.id(), d.index(), d.arm(), d.arm_solicited()),
            _ => self.ring_eq(function, d.id(), d.index()),
        }
    }

    fn ring_with_request(&mut self, host: &mut dyn Host, function: u16, line: &[u8]) {
        let mut head = WqeHead::default();
        head.0.copy_from_slice(&line[..WqeHead::BYTES]);
        let (qpn, index) = (head.qpn(), head.index());
        let Some(ring) = self.tables.sq.get(qpn as usize) else { return count!(self, function, "sq.sq_db_bad") };
        let direct = ring.valid() && ring.function() == function && ring.fetch() == index && ring.producer() == index && ring.stride() == 0 && !ring.parked() && !ring.flush();
        self.ring_sq(host, function, qpn, index.wrapping_add(1));
        // What came with the doorbell need not be fetched.
        if direct && self.requesters[qpn as usize].take_direct(index, line) {
            count!(self, 0, "sq.sq_wqe_direct");
        }
    }

    fn ring_sq(&mut self, host: &mut dyn Host, function: u16, qpn: u32, index: u16) {
        let Some(ring) = self.tables.sq.get_mut(qpn as usize).filter(|r| r.valid() && r.function() == function) else { return count!(self, function, "sq.sq_db_bad") };
        let mut m = send_ring(ring);
        if !m.doorbell(function, index) {
            return count!(self, function, "sq.sq_db_overrun");
        }
        ring.set_producer(m.producer);
        if ring.flush() {
            self.flush_sends(host, qpn);
        } else {
            self.activate(qpn);
        }
    }

    fn ring_rq(&mut self, host: &mut dyn Host, function: u16, number: u32, index: u16) {
        let Some(ring) = self.tables.rq.get_mut(number as usize).filter(|r| r.valid() && r.function() == function) else { return count!(self, function, "rq.rq_db_bad") };
        let mut m = receive_ring(ring);
        if !m.doorbell(function, index) {
            return count!(self, function, "rq.rq_db_overrun");
        }
        ring.set_producer(m.producer);
        if ring.flush() && !ring.shared() {
            self.flush_receives(host, number);
        }
    }

    /// Slot `index` of a ring of `function`.
    fn fetch(&mut self, host: &mut dyn Host, base: u64, function: u16, stride: u8, offset: u64) -> Slot {
        let mut slot = Slot::empty();
        slot.len = LINE << stride;
        let len = slot.len;
        slot.failed = !self.dma_read(host, function, base.wrapping_add(offset), &mut slot.bytes[..len]);
        slot
    }

    /// Send request `index` of `qpn`.
    pub(crate) fn fetch_send(&mut self, host: &mut dyn Host, qpn: u32, index: u16) -> Slot {
        let ring = self.tables.sq[qpn as usize];
        count!(self, ring.function(), "sq.sq_fetches");
        let slot = self.fetch(host, ring.base(), ring.function(), ring.stride(), send_ring(&ring).offset(index));
        if slot.failed {
            count!(self, ring.function(), "sq.sq_fetch_errors");
        }
        slot
    }

    /// The next receive of ring `number`: its index and the request.
    pub(crate) fn fetch_receive(&mut self, host: &mut dyn Host, number: u32) -> Taken {
        let Some(ring) = self.tables.rq.get_mut(number as usize).filter(|r| r.valid()) else { return Taken::None };
        let mut m = receive_ring(ring);
        let function = ring.function();
        if m.error {
            return Taken::Dead;
        }
        let Some(index) = m.alloc() else {
            count!(self, function, "rq.rq_empty");
            return Taken::None;
        };
        ring.set_fetch(m.next);
        let (base, stride, eqn, shared) = (ring.base(), ring.stride(), ring.eqn(), ring.shared());
        count!(self, function, "rq.rq_fetches");
        let slot = self.fetch(host, base, function, stride, m.offset(index));
        self.limit(host, number);
        if slot.failed {
            count!(self, function, "rq.rq_fetch_errors");
            if shared {
                self.tables.rq[number as usize].set_error(true);
                count!(self, function, "rq.srq_errors");
                self.event(host, eqn, EventKind::SrqError, self.shared_number(number), 0);
            }
        }
        Taken::Slot(index, slot)
    }

    fn shared_number(&self, ring: u32) -> u32 {
        ring - self.tables.sq.len() as u32
    }

    /// Tells that a shared ring has fewer requests left than its limit, once.
    pub(crate) fn limit(&mut self, host: &mut dyn Host, number: u32) {
        let ring = &mut self.tables.rq[number as usize];
        let mut m = receive_ring(ring);
        if !ring.valid() || !m.reached() {
            return;
        }
        ring.set_limit(m.limit);
        let (function, eqn) = (ring.function(), ring.eqn());
        count!(self, function, "rq.srq_limits");
        self.event(host, eqn, EventKind::SrqLimit, self.shared_number(number), 0);
    }

    /// Completes every send request from the ring's next one on as flushed.
    pub(crate) fn flush_sends(&mut self, host: &mut dyn Host, qpn: u32) {
        let n = qpn as usize;
        let (req, mut ring) = (self.tables.req[n], self.tables.sq[n]);
        while ring.fetch() != ring.producer() {
            let entry = Cqe::default().with_wqe_index(ring.fetch()).with_status(CqeStatus::WrFlush as u8).with_qpn(qpn);
            ring.set_fetch(ring.fetch().wrapping_add(1));
            self.tables.sq[n].set_fetch(ring.fetch());
            count!(self, req.function(), "sq.sq_flushed");
            count!(self, req.function(), "req_tx.flushed");
            self.complete(host, req.scqn(), req.function(), entry);
        }
    }

    /// The same for a queue pair's own receives.
    pub(crate) fn flush_receives(&mut self, host: &mut dyn Host, qpn: u32) {
        let n = qpn as usize;
        let rsp = self.tables.rsp[n];
        while self.tables.rq[n].fetch() != self.tables.rq[n].producer() {
            let index = self.tables.rq[n].fetch();
            self.tables.rq[n].set_fetch(index.wrapping_add(1));
            count!(self, rsp.function(), "rq.rq_flushed");
            self.flush_receive(host, qpn, index);
        }
    }

    /// Completes receive `index` of queue pair `qpn` as flushed.
    pub(crate) fn flush_receive(&mut self, host: &mut dyn Host, qpn: u32, index: u16) {
        let rsp = self.tables.rsp[qpn as usize];
        let entry = Cqe::default().with_wqe_index(index).with_status(CqeStatus::WrFlush as u8).with_opcode(CqeOpcode::Recv as u8).with_qpn(qpn).with_is_recv(true);
        count!(self, rsp.function(), "resp.recv_flushed");
        self.complete(host, rsp.rcqn(), rsp.function(), entry);
    }
}

/// What a receive ring gives.
// It goes into its place at once.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Taken {
    /// Nothing is posted.
    None,
    /// A shared ring in error.
    Dead,
    /// A request and its index.
    Slot(u16, Slot),
}
