//! Queue pairs: rings in host memory, posting without locks, allocation or register reads.
use crate::admin::words;
use crate::context::{Inner, PdInner};
use crate::cq::CompletionQueue;
use crate::error::{Error, Result};
use crate::ring::Ring;
use crate::srq::{Numbers, SrqInner};
use crate::types::{Path, QpState, QpStatus, QpType, RtrAttr, RtsAttr};
use ferric_abi::codes::{AdminOpcode, WrOpcode};
use ferric_abi::context::PathCtx;
use ferric_abi::csr;
use ferric_abi::host::{Doorbell, RecvHead, Sge, WqeHead};
use std::net::IpAddr;
use std::sync::atomic::{AtomicPtr, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Local buffer of a work request.
pub type LocalSge = Sge;

/// A scatter/gather entry over `len` bytes from `addr` of the region with `lkey`.
pub fn sge(addr: u64, length: u32, lkey: u32) -> LocalSge {
    Sge::default().with_addr(addr).with_length(length).with_lkey(lkey)
}

/// What a queue pair is made with.
#[derive(Clone, Copy, Debug)]
pub struct QpConfig {
    /// Transport.
    pub qp_type: QpType,
    /// Send requests that may be outstanding (rounded up to a power of two, at most 32768).
    pub max_send: usize,
    /// Receive requests that may be outstanding.
    pub max_recv: usize,
    /// Scatter/gather entries of a send.
    pub max_send_sge: usize,
    /// Scatter/gather entries of a receive.
    pub max_recv_sge: usize,
    /// Inline bytes of a send.
    pub max_inline: usize,
    /// Every send is signalled.
    pub signal_all: bool,
}

impl Default for QpConfig {
    fn default() -> Self {
        Self { qp_type: QpType::Rc, max_send: 64, max_recv: 64, max_send_sge: 4, max_recv_sge: 4, max_inline: 32, signal_all: false }
    }
}

/// Payload of a send.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// From registered memory.
    Sges(&'a [LocalSge]),
    /// Copied into the work request now; the buffer may be reused at once.
    Inline(&'a [u8]),
}

/// A send work request.
#[derive(Clone, Copy, Debug)]
pub struct SendRequest<'a> {
    /// The program's number, given back in the completion.
    pub wr_id: u64,
    /// Operation.
    pub opcode: WrOpcode,
    /// Payload.
    pub payload: Payload<'a>,
    /// Remote address (WRITE).
    pub remote_addr: u64,
    /// Remote key (WRITE).
    pub rkey: u32,
    /// Immediate data (the `Imm` operations), or the peer's key to invalidate (`SendInv`).
    pub imm: u32,
    /// Ask for a completion on success.
    pub signaled: bool,
    /// Ask the peer for a solicited event.
    pub solicited: bool,
}

/// An RDMA READ: bytes of the peer's memory into registered memory of our own (with the right to local writes).
#[derive(Clone, Copy, Debug)]
pub struct ReadRequest<'a> {
    /// The program's number.
    pub wr_id: u64,
    /// Where the bytes go.
    pub sges: &'a [LocalSge],
    /// Where they are.
    pub remote_addr: u64,
    /// Remote key.
    pub rkey: u32,
    /// Ask for a completion on success.
    pub signaled: bool,
    /// Not before the READs and atomics posted earlier are done.
    pub fence: bool,
}

/// What an atomic does to the 8 bytes it is aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOp {
    /// Becomes `swap` if it is `compare`.
    CompareSwap {
        /// Value expected.
        compare: u64,
        /// Value put in its place.
        swap: u64,
    },
    /// Grows by this much, modulo 2^64.
    FetchAdd(u64),
}

/// An atomic operation on 8 aligned bytes of the peer's memory; what was there before comes back.
#[derive(Clone, Copy, Debug)]
pub struct AtomicRequest<'a> {
    /// The program's number.
    pub wr_id: u64,
    /// What to do.
    pub op: AtomicOp,
    /// Where the 8 bytes found go.
    pub sges: &'a [LocalSge],
    /// Address of the 8 bytes.
    pub remote_addr: u64,
    /// Remote key.
    pub rkey: u32,
    /// Ask for a completion on success.
    pub signaled: bool,
    /// Not before the READs and atomics posted earlier are done.
    pub fence: bool,
}

/// A receive work request.
#[derive(Clone, Copy, Debug)]
pub struct RecvRequest<'a> {
    /// The program's number.
    pub wr_id: u64,
    /// Where to put the message.
    pub sges: &'a [LocalSge],
}

/// What completion queues need to know of a queue: the program's numbers and how far it is done.
pub(crate) struct Half {
    wr_ids: Box<[AtomicU64]>,
    posted: AtomicU16,
    pub(crate) done: AtomicU16,
}

impl Half {
    fn new(log_size: u8) -> Self {
        Self { wr_ids: (0..1 << log_size).map(|_| AtomicU64::new(0)).collect(), posted: AtomicU16::new(0), done: AtomicU16::new(0) }
    }

    fn rewind(&self) {
        self.posted.store(0, Ordering::Release);
        self.done.store(0, Ordering::Release);
    }
}

pub(crate) struct Shared {
    send: Half,
    recv: Half,
    /// Receives come from there.
    srq: Option<Arc<Numbers>>,
}

/// Queue pairs by number, so that a completion finds its work request without a lock.
pub(crate) struct QpTable {
    slots: Box<[AtomicPtr<Shared>]>,
    /// Retired halves: a completion queue may still be looking at one, so they live as long as the context.
    retired: Mutex<Vec<Box<Shared>>>,
}

impl QpTable {
    pub(crate) fn new(n: usize) -> Self {
        Self { slots: (0..n).map(|_| AtomicPtr::default()).collect(), retired: Mutex::default() }
    }

    fn set(&self, qpn: u32, shared: Box<Shared>) -> &Shared {
        let raw = Box::into_raw(shared);
        let old = self.slots[qpn as usize].swap(raw, Ordering::AcqRel);
        if !old.is_null() {
            // SAFETY: came from Box::into_raw here and is reachable only through `retired` from now on.
            self.retired.lock().unwrap_or_else(|e| e.into_inner()).push(unsafe { Box::from_raw(old) });
        }
        // SAFETY: freed only in drop of the table.
        unsafe { &*raw }
    }

    /// Marks everything up to `index` done and returns the program's number of that request. `None`: the completion belongs to an
    /// earlier life of the queue pair, before a reset.
    #[inline]
    pub(crate) fn complete(&self, qpn: u32, is_recv: bool, index: u16) -> Option<u64> {
        let ptr = self.slots.get(qpn as usize)?.load(Ordering::Acquire);
        if ptr.is_null() {
            return None;
        }
        // SAFETY: non-null pointers in the table are valid as long as the table.
        let shared = unsafe { &*ptr };
        if let (true, Some(srq)) = (is_recv, &shared.srq) {
            return srq.complete(index);
        }
        let half = if is_recv { &shared.recv } else { &shared.send };
        let done = half.done.load(Ordering::Acquire);
        if index.wrapping_sub(done) >= half.posted.load(Ordering::Acquire).wrapping_sub(done) {
            return None;
        }
        half.done.store(index.wrapping_add(1), Ordering::Release);
        Some(half.wr_ids[index as usize & (half.wr_ids.len() - 1)].load(Ordering::Relaxed))
    }
}

impl Drop for QpTable {
    fn drop(&mut self) {
        for slot in self.slots.iter() {
            let ptr = slot.load(Ordering::Acquire);
            if !ptr.is_null() {
                // SAFETY: from Box::into_raw, nobody else is left.
                drop(unsafe { Box::from_raw(ptr) });
            }
        }
    }
}

/// A queue pair.
pub struct QueuePair {
    pd: Arc<PdInner>,
    qpn: u32,
    config: QpConfig,
    shared: *const Shared,
    send: Ring,
    recv: Ring,
    /// Receives come from there; it lives as long as this queue pair.
    srq: Option<Arc<SrqInner>>,
    state: QpState,
    /// Of a datagram queue pair from RTR on.
    pub(crate) datagram: Option<Datagram>,
}

/// What a datagram queue pair sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    /// Over IPv6.
    pub(crate) v6: bool,
}

// The raw pointer is a borrow from the context's table, which `pd` keeps alive.
unsafe impl Send for QueuePair {}

impl QueuePair {
    /// `number`: of one of the port's own queue pairs; otherwise the next free one.
    pub(crate) fn create(pd: &Arc<PdInner>, config: &QpConfig, number: Option<u32>, send_cq: &CompletionQueue, recv_cq: &CompletionQueue, srq: Option<&Arc<SrqInner>>) -> Result<Self> {
        let ctx = &pd.ctx;
        if ctx.caps.features >> config.qp_type as u32 & 1 == 0 {
            return Err(Error::Invalid("the card does not have this transport"));
        }
        // A datagram's address stands in front of its entries.
        let front = WqeHead::BYTES + if config.qp_type == QpType::Ud { 16 } else { 0 };
        let send = Ring::new(ctx, config.max_send, front + (config.max_send_sge * Sge::BYTES).max(config.max_inline))?;
        // With a shared receive queue there is no receive ring; the smallest stands for it.
        let (slots, entries) = if srq.is_some() { (1, 0) } else { (config.max_recv, config.max_recv_sge) };
        let recv = Ring::new(ctx, slots, RecvHead::BYTES + entries * Sge::BYTES)?;
        let qpn = number.map_or_else(|| ctx.qp_ids.take(), Ok)?;
        let ([s0, s1, s2], [r0, r1, r2]) = (send.context(), recv.context());
        let kind = config.qp_type as u32 | (config.signal_all as u32) << 3 | (srq.is_some() as u32) << 4;
        let params = [kind, pd.id, send_cq.id(), recv_cq.id(), s0, s1, s2, r0, r1, r2, srq.map_or(0, |s| s.id())];
        if let Err(e) = ctx.admin("create QP", AdminOpcode::CreateQp, qpn, &params) {
            ctx.qp_ids.give(qpn);
            return Err(e);
        }
        let shared = ctx.qps.set(qpn, Box::new(Shared { send: Half::new(send.log_size), recv: Half::new(recv.log_size), srq: srq.map(|s| s.numbers().clone()) }));
        Ok(Self { pd: pd.clone(), qpn, config: *config, shared, send, recv, srq: srq.cloned(), state: QpState::Reset, datagram: None })
    }

    fn shared(&self) -> &Shared {
        // SAFETY: lives in the context's table as long as the context, which `pd` holds.
        unsafe { &*self.shared }
    }

    fn ctx(&self) -> &Inner {
        &self.pd.ctx
    }

    /// Queue pair number.
    pub fn qpn(&self) -> u32 {
        self.qpn
    }

    /// State the driver last set.
    pub fn state(&self) -> QpState {
        self.state
    }

    pub(crate) fn config(&self) -> &QpConfig {
        &self.config
    }

    pub(crate) fn modify(&mut self, what: &'static str, state: QpState, params: &[u32]) -> Result<()> {
        self.ctx().admin(what, AdminOpcode::ModifyQp, self.qpn, params)?;
        self.state = state;
        Ok(())
    }

    /// RESET -> INIT: receives may be posted. Peers get the rights in `access` on this queue pair.
    pub fn to_init(&mut self, access: crate::Access) -> Result<()> {
        let p1 = (access.remote_write as u32) << 19 | (access.remote_read as u32) << 20 | (access.remote_atomic as u32) << 21;
        self.modify("modify QP to INIT", QpState::Init, &[QpState::Init as u32, p1, 0, 0, 0, 0xffff])
    }

    /// INIT -> RTR: ready to receive.
    pub fn to_rtr(&mut self, access: crate::Access, attr: &RtrAttr) -> Result<()> {
        let line = match &attr.path {
            Some(p) => path_line(p)?,
            None => PathCtx::default(),
        };
        let p1 = attr.mtu as u32
            | (attr.min_rnr_timer as u32 & 31) << 14
            | (access.remote_write as u32) << 19
            | (access.remote_read as u32) << 20
            | (access.remote_atomic as u32) << 21;
        self.modify_to_rtr("modify QP to RTR", p1, [attr.dest_qpn, attr.rq_psn & 0xff_ffff, (attr.max_dest_rd_atomic as u32 & 31) << 8], &line)
    }

    /// `p1`: parameter word 1 but for the path's flags. `rest`: parameter words 2, 3 and 6.
    pub(crate) fn modify_to_rtr(&mut self, what: &'static str, p1: u32, rest: [u32; 3], line: &PathCtx) -> Result<()> {
        let p1 = p1 | (line.ipv6() as u32) << 22 | (line.vlan() as u32) << 23;
        let mut params = [0u32; 24];
        params[..7].copy_from_slice(&[QpState::Rtr as u32, p1, rest[0], rest[1], 0, 0xffff, rest[2]]);
        params[8..24].copy_from_slice(&words::<16>(&line.0));
        self.modify(what, QpState::Rtr, &params)
    }

    /// RTR -> RTS: ready to send.
    pub fn to_rts(&mut self, attr: &RtsAttr) -> Result<()> {
        let p1 = (attr.timeout as u32 & 31) << 3 | (attr.retry_cnt as u32 & 7) << 8 | (attr.rnr_retry as u32 & 7) << 11;
        self.modify("modify QP to RTS", QpState::Rts, &[QpState::Rts as u32, p1, 0, 0, attr.sq_psn & 0xff_ffff, 0xffff, attr.max_rd_atomic as u32 & 31])
    }

    /// Any state -> ERROR: outstanding requests are flushed.
    pub fn to_error(&mut self) -> Result<()> {
        self.modify("modify QP to ERROR", QpState::Error, &[QpState::Error as u32])
    }

    /// Any state -> RESET: requests vanish without completion, traffic in flight is drained, the rings start at zero.
    pub fn to_reset(&mut self) -> Result<()> {
        if self.srq.is_some() && self.state != QpState::Reset {
            // A message in progress has a receive of the shared queue: ERROR gives it back as flushed.
            self.to_error()?;
        }
        self.modify("modify QP to RESET", QpState::Reset, &[QpState::Reset as u32])?;
        self.datagram = None;
        self.send.producer = 0;
        self.recv.producer = 0;
        self.shared().send.rewind();
        self.shared().recv.rewind();
        Ok(())
    }

    /// What the card holds.
    pub fn query(&self) -> Result<QpStatus> {
        let r = self.ctx().admin("query QP", AdminOpcode::QueryQp, self.qpn, &[])?;
        let state = |w: u32| QpState::from_u8((w & 7) as u8).ok_or(Error::Invalid("card reports an unknown QP state"));
        Ok(QpStatus {
            state: state(r[0])?,
            next_psn: r[1] & 0xff_ffff,
            una_psn: r[2] & 0xff_ffff,
            responder_state: state(r[4])?,
            expected_psn: r[5] & 0xff_ffff,
            msn: r[6] & 0xff_ffff,
        })
    }

    /// Writes a send request into the ring and rings the doorbell. A request of one 64-byte slot travels with the doorbell.
    #[inline]
    pub fn post_send(&mut self, wr: &SendRequest) -> Result<()> {
        self.post(wr, None, false, None)
    }

    /// The same, but the request waits until all READs and atomics posted before it are done.
    pub fn post_send_fenced(&mut self, wr: &SendRequest) -> Result<()> {
        self.post(wr, None, true, None)
    }

    /// Posts an RDMA READ.
    pub fn post_read(&mut self, wr: &ReadRequest) -> Result<()> {
        let request = SendRequest {
            wr_id: wr.wr_id, opcode: WrOpcode::Read, payload: Payload::Sges(wr.sges), remote_addr: wr.remote_addr, rkey: wr.rkey, imm: 0,
            signaled: wr.signaled, solicited: false,
        };
        self.post(&request, None, wr.fence, None)
    }

    /// Posts an atomic operation.
    pub fn post_atomic(&mut self, wr: &AtomicRequest) -> Result<()> {
        let (opcode, operands) = match wr.op {
            AtomicOp::CompareSwap { compare, swap } => (WrOpcode::CompareSwap, [compare, swap]),
            AtomicOp::FetchAdd(addend) => (WrOpcode::FetchAdd, [addend, 0]),
        };
        let request = SendRequest {
            wr_id: wr.wr_id, opcode, payload: Payload::Sges(wr.sges), remote_addr: wr.remote_addr, rkey: wr.rkey, imm: 0,
            signaled: wr.signaled, solicited: false,
        };
        self.post(&request, Some(operands), wr.fence, None)
    }

    /// `operands`: those of an atomic, in front of the entries; there the address of a datagram, which goes to queue pair `dest`.
    // Inlined into each kind of posting, where most of its questions have answers.
    #[inline(always)]
    pub(crate) fn post(&mut self, wr: &SendRequest, operands: Option<[u64; 2]>, fence: bool, dest: Option<u32>) -> Result<()> {
        if matches!(self.state, QpState::Reset | QpState::Init | QpState::Rtr) {
            return Err(Error::State);
        }
        if dest.is_some() != (self.config.qp_type == QpType::Ud) {
            return Err(Error::Invalid("datagrams are posted with post_send_ud, and nothing else is"));
        }
        let shared = self.shared();
        self.send.check_room(&shared.send)?;
        let slot_bytes = self.send.slot_bytes();
        // Most queues have slots of one line: nothing larger is cleared and copied for them.
        let (mut line, mut lines);
        let slot: &mut [u8] = if slot_bytes == 64 {
            line = [0; 64];
            &mut line
        } else {
            lines = [0; 512];
            &mut lines[..slot_bytes]
        };
        let asks = matches!(wr.opcode, WrOpcode::Read | WrOpcode::CompareSwap | WrOpcode::FetchAdd);
        if asks && matches!(wr.payload, Payload::Inline(_)) {
            return Err(Error::Invalid("what is read goes to registered memory"));
        }
        if operands.is_none() && asks && wr.opcode != WrOpcode::Read {
            return Err(Error::Invalid("atomics are posted with post_atomic"));
        }
        let mut list = WqeHead::BYTES;
        if let Some(operands) = operands {
            for value in operands {
                slot[list..list + 8].copy_from_slice(&value.to_le_bytes());
                list += 8;
            }
        }
        let (length, num_sge) = match wr.payload {
            Payload::Sges(sges) => {
                if list + sges.len() * Sge::BYTES > slot_bytes {
                    return Err(Error::Invalid("more scatter/gather entries than the queue pair was made for"));
                }
                let mut total = 0u64;
                for (i, s) in sges.iter().enumerate() {
                    let at = list + i * Sge::BYTES;
                    slot[at..at + Sge::BYTES].copy_from_slice(&s.0);
                    total += s.length() as u64;
                }
                (total, sges.len() as u8)
            }
            Payload::Inline(bytes) => {
                let end = list + bytes.len();
                if end > slot_bytes {
                    return Err(Error::Invalid("more inline bytes than the queue pair was made for"));
                }
                slot[list..end].copy_from_slice(bytes);
                (bytes.len() as u64, 0)
            }
        };
        if length > i32::MAX as u64 {
            return Err(Error::Invalid("a message has at most 2^31 - 1 bytes"));
        }
        if operands.is_some() && dest.is_none() && length != 8 {
            return Err(Error::Invalid("an atomic gives back 8 bytes"));
        }
        let mut head = WqeHead::default();
        head.set_opcode(wr.opcode as u8)
            .set_signaled(wr.signaled || self.config.signal_all)
            .set_solicited(wr.solicited)
            .set_fence(fence)
            .set_inline_data(matches!(wr.payload, Payload::Inline(_)))
            .set_num_sge(num_sge)
            .set_index(self.send.producer)
            .set_qpn(self.qpn)
            .set_dest_low(dest.unwrap_or(0) as u16)
            .set_dest_high((dest.unwrap_or(0) >> 16) as u8)
            .set_imm(wr.imm)
            .set_raddr(wr.remote_addr)
            .set_rkey(wr.rkey)
            .set_length(length as u32);
        slot[..WqeHead::BYTES].copy_from_slice(&head.0);
        self.post_raw_slot(wr.wr_id, slot);
        Ok(())
    }

    /// Puts raw bytes into the next send slot and rings the doorbell: for tests of what the card does with nonsense.
    #[doc(hidden)]
    #[inline]
    pub fn post_raw_slot(&mut self, wr_id: u64, slot: &[u8]) {
        let shared = self.shared();
        shared.send.wr_ids[self.send.producer as usize & (shared.send.wr_ids.len() - 1)].store(wr_id, Ordering::Relaxed);
        match <&[u8; 64]>::try_from(slot) {
            Ok(line) => self.send.memory.write(self.send.slot(), line),
            Err(_) => self.send.memory.write(self.send.slot(), slot),
        }
        let producer = self.send.producer.wrapping_add(1);
        shared.send.posted.store(producer, Ordering::Release);
        self.send.producer = producer;
        std::sync::atomic::fence(Ordering::Release);
        match <&[u8; 64]>::try_from(slot) {
            Ok(line) => self.ctx().device.write_line(csr::DB_WQE, line),
            Err(_) => {
                let bell = Doorbell::default().with_id(self.qpn).with_index(self.send.producer);
                self.ctx().device.write64(csr::DB_SQ, u64::from_le_bytes(bell.0));
            }
        }
    }

    /// Writes a receive request into the ring and rings the doorbell.
    pub fn post_recv(&mut self, wr: &RecvRequest) -> Result<()> {
        if self.state == QpState::Reset {
            return Err(Error::State);
        }
        if self.srq.is_some() {
            return Err(Error::Invalid("receives of this queue pair are posted to its shared receive queue"));
        }
        let shared = self.shared();
        self.recv.check_room(&shared.recv)?;
        let at = self.recv.producer as usize & (shared.recv.wr_ids.len() - 1);
        self.recv.write_receive(wr.sges)?;
        // Read again: `write_receive` needs the ring to itself.
        let shared = self.shared();
        shared.recv.wr_ids[at].store(wr.wr_id, Ordering::Relaxed);
        let producer = self.recv.producer.wrapping_add(1);
        shared.recv.posted.store(producer, Ordering::Release);
        self.recv.producer = producer;
        self.recv.ring_receive_bell(self.ctx(), self.qpn);
        Ok(())
    }
}

pub(crate) fn path_line(p: &Path) -> Result<PathCtx> {
    let mac = |m: &crate::types::Mac| m.0.iter().fold(0u64, |a, b| a << 8 | *b as u64);
    let (ipv6, dip, sip) = match (p.dip, p.sip) {
        (IpAddr::V4(d), IpAddr::V4(s)) => (false, u32::from(d) as u128, u32::from(s) as u128),
        (IpAddr::V6(d), IpAddr::V6(s)) => (true, u128::from(d), u128::from(s)),
        _ => return Err(Error::Invalid("source and destination address are of different families")),
    };
    Ok(PathCtx::default()
        .with_dmac(mac(&p.dmac))
        .with_smac(mac(&p.smac))
        .with_vlan_tci(p.vlan.unwrap_or(0))
        .with_vlan(p.vlan.is_some())
        .with_udp_sport(p.udp_sport)
        .with_dip(dip)
        .with_sip(sip)
        .with_flow_label(p.flow_label)
        .with_tclass(p.tclass)
        .with_hop_limit(p.hop_limit)
        .with_ipv6(ipv6)
        .with_valid(true)
        .with_pkey(0xffff))
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        if self.srq.is_some() && !matches!(self.state, QpState::Reset | QpState::Error) {
            // Else the receive of a message in progress would be lost for the shared queue.
            if let Err(e) = self.to_error() {
                log::warn!("QP {} to ERROR before it is destroyed: {e}", self.qpn);
            }
        }
        self.ctx().destroy("destroy QP", AdminOpcode::DestroyQp, self.qpn, &self.ctx().qp_ids);
    }
}
