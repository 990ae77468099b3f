//! Queue pairs: made, brought into their states, asked about. Work requests are those of `post.rs`.
use crate::admin::{words, Command};
use crate::cq::{CompletionQueue, CqInner};
use crate::device::AtHand;
use crate::error::{Error, Result};
use crate::function::{Inner, PdInner};
use crate::lives::Shared;
use crate::ring::Ring;
use crate::srq::SrqInner;
use crate::types::{Path, QpState, QpStatus, QpType, RtrAttr, RtsAttr};
use ferric_abi::codes::{AdminOpcode, AdminStatus};
use ferric_abi::context::PathCtx;
use ferric_abi::host::{Cqe, RecvHead, Sge, WqeHead};
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::Arc;

pub use crate::request::{sge, AtomicOp, AtomicRequest, AtomicWriteRequest, FlushRequest, Flushed, LocalSge, Payload, Placed, ReadRequest, RecvRequest, SendRequest};

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

/// A queue pair.
pub struct QueuePair {
    pub(crate) pd: Arc<PdInner>,
    /// The context's, here for posting.
    pub(crate) device: AtHand,
    pub(crate) qpn: u32,
    pub(crate) config: QpConfig,
    shared: *const Shared,
    pub(crate) send: Ring,
    pub(crate) recv: Ring,
    /// Send requests, and receives, up to here the card has been told of.
    pub(crate) rung: u16,
    pub(crate) recv_rung: u16,
    /// Send requests have 64 bytes and travel with their doorbell.
    pub(crate) by_line: bool,
    /// Receives come from there; it lives as long as this queue pair.
    pub(crate) srq: Option<Arc<SrqInner>>,
    pub(crate) state: QpState,
    /// Of a datagram queue pair from RTR on.
    pub(crate) datagram: Option<Datagram>,
    /// Where completions go, which must outlive it.
    send_cq: Arc<CqInner>,
    recv_cq: Arc<CqInner>,
    /// The card has been told to destroy it.
    pub(crate) destroyed: bool,
}

/// A change of state and the command that makes it.
pub(crate) struct Change {
    pub(crate) to: QpState,
    pub(crate) command: Command,
    /// What it sends from then on, if that is datagrams.
    pub(crate) datagram: Option<Datagram>,
}

impl Change {
    /// What the card says, in words where it means one thing only.
    pub(crate) fn answered(&self, answer: Result<()>) -> Result<()> {
        match answer {
            Err(Error::Admin { status: AdminStatus::NoRoom, .. }) if self.to == QpState::Rtr => {
                Err(Error::Invalid("packets of this path MTU do not fit into the underlay of the function's tunnel with the outer header around them; take a smaller path MTU, or a larger underlay (TunnelConfig::underlay_mtu)"))
            }
            answer => answer,
        }
    }
}

/// What a datagram queue pair sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    /// Over IPv6.
    pub(crate) v6: bool,
}

// The raw pointer is a borrow from the context's table, out of which only this queue pair takes it.
unsafe impl Send for QueuePair {}

/// Rights of the peer in parameter word 1 of MODIFY_QP.
fn rights(access: crate::Access) -> u32 {
    u32::from(access.remote_write) << 19 | u32::from(access.remote_read) << 20 | u32::from(access.remote_atomic) << 21 | u32::from(access.remote_flush) << 24
}

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
        let shared = Shared::new(send.log_size, recv.log_size, srq.map(|s| s.numbers().clone()))?;
        let ([s0, s1, s2], [r0, r1, r2]) = (send.context(), recv.context());
        let kind = config.qp_type as u32 | (config.signal_all as u32) << 3 | (srq.is_some() as u32) << 4;
        let params = [kind, pd.id, send_cq.id(), recv_cq.id(), s0, s1, s2, r0, r1, r2, srq.map_or(0, |s| s.id())];
        let qpn = match number {
            Some(n) => ctx.admin("create QP", AdminOpcode::CreateQp, n, &params).map(|_| n)?,
            None => ctx.create("create QP", AdminOpcode::CreateQp, &ctx.qp_ids, &params)?,
        };
        let shared = ctx.qps.set(qpn, shared);
        let by_line = send.slot_bytes == 64 && ctx.device.has_lines();
        Ok(Self {
            pd: pd.clone(),
            device: AtHand::new(&ctx.device),
            qpn,
            config: *config,
            shared,
            send,
            recv,
            rung: 0,
            recv_rung: 0,
            by_line,
            srq: srq.cloned(),
            state: QpState::Reset,
            datagram: None,
            send_cq: send_cq.inner().clone(),
            recv_cq: recv_cq.inner().clone(),
            destroyed: false,
        })
    }

    /// Not bound to the borrow of `self`: the rings are changed meanwhile.
    #[inline(always)]
    pub(crate) fn shared<'a>(&self) -> &'a Shared {
        // SAFETY: lives in the context's table until this queue pair is dropped.
        unsafe { &*self.shared }
    }

    pub(crate) fn ctx(&self) -> &Inner {
        &self.pd.ctx
    }

    /// What fits into its queues: at least what it was made with, since slots and rings have sizes that are powers of two.
    pub fn limits(&self) -> QpConfig {
        let caps = &self.ctx().caps;
        let front = WqeHead::BYTES + if self.config.qp_type == QpType::Ud { 16 } else { 0 };
        let room = self.send.slot_bytes - front;
        QpConfig {
            max_send: self.send.slots(),
            max_recv: self.recv.slots(),
            max_send_sge: (room / Sge::BYTES).min(caps.max_sge as usize),
            max_recv_sge: (self.recv.slot_bytes - RecvHead::BYTES) / Sge::BYTES,
            max_inline: room.min(caps.max_inline as usize),
            ..self.config
        }
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

    /// Takes completions of an earlier life out of the completion queues; the shared receive queue gets back what they had of it.
    fn purge(&self, sends_only: bool) {
        let stale = |e: &Cqe| {
            if let (true, Some(srq)) = (e.is_recv(), &self.srq) {
                srq.numbers().complete(e.wqe_index());
            }
        };
        self.send_cq.purge(self.qpn, sends_only, stale);
        if !sends_only && !Arc::ptr_eq(&self.send_cq, &self.recv_cq) {
            self.recv_cq.purge(self.qpn, false, stale);
        }
    }

    /// The first receives, or the first sends, of this life may complete from now on. What completion queues hold of them already belongs to an
    /// earlier one: the card writes all of that before it answers a reset, so this takes out at most what another card would.
    pub(crate) fn open(&mut self, from: QpState, to: QpState) {
        match (from, to) {
            (QpState::Init, QpState::Rtr | QpState::Error) => {
                self.purge(false);
                self.shared().recv.posted.store(self.recv_rung, Ordering::Release);
                self.shared().receives.store(true, Ordering::Release);
            }
            (QpState::Rtr, QpState::Rts) => self.purge(true),
            _ => {}
        }
    }

    /// The change to a state by MODIFY_QP with these parameters.
    pub(crate) fn change(&self, what: &'static str, to: QpState, params: &[u32]) -> Change {
        Change { to, command: Command { what, opcode: AdminOpcode::ModifyQp, id: self.qpn, params: params.to_vec() }, datagram: None }
    }

    /// The card has made the change.
    pub(crate) fn changed(&mut self, change: &Change) {
        self.state = change.to;
        self.datagram = change.datagram.or(self.datagram);
    }

    pub(crate) fn make(&mut self, change: Change) -> Result<()> {
        self.open(self.state, change.to);
        let Command { what, opcode, id, params } = &change.command;
        change.answered(self.ctx().admin(what, *opcode, *id, params).map(drop))?;
        self.changed(&change);
        Ok(())
    }

    fn modify(&mut self, what: &'static str, state: QpState, params: &[u32]) -> Result<()> {
        self.make(self.change(what, state, params))
    }

    pub(crate) fn change_to_init(&self, access: crate::Access) -> Change {
        let p1 = rights(access);
        self.change("modify QP to INIT", QpState::Init, &[QpState::Init as u32, p1, 0, 0, 0, 0xffff])
    }

    pub(crate) fn change_to_rtr(&self, access: crate::Access, attr: &RtrAttr) -> Result<Change> {
        let line = match &attr.path {
            Some(p) => path_line(p)?,
            None => PathCtx::default(),
        };
        let p1 = attr.mtu as u32 | (attr.min_rnr_timer as u32 & 31) << 14 | rights(access) | (attr.repeat_nak as u32) << 25;
        Ok(self.change_to_rtr_by("modify QP to RTR", p1, [attr.dest_qpn, attr.rq_psn & 0xff_ffff, (attr.max_dest_rd_atomic as u32 & 31) << 8], &line))
    }

    /// `p1`: parameter word 1 but for the path's flags. `rest`: parameter words 2, 3 and 6.
    pub(crate) fn change_to_rtr_by(&self, what: &'static str, p1: u32, rest: [u32; 3], line: &PathCtx) -> Change {
        let p1 = p1 | (line.ipv6() as u32) << 22 | (line.vlan() as u32) << 23;
        let mut params = [0u32; 24];
        params[..7].copy_from_slice(&[QpState::Rtr as u32, p1, rest[0], rest[1], 0, 0xffff, rest[2]]);
        params[8..24].copy_from_slice(&words::<16>(&line.0));
        self.change(what, QpState::Rtr, &params)
    }

    pub(crate) fn change_to_rts(&self, attr: &RtsAttr) -> Change {
        let p1 = (attr.timeout as u32 & 31) << 3 | (attr.retry_cnt as u32 & 7) << 8 | (attr.rnr_retry as u32 & 7) << 11;
        self.change("modify QP to RTS", QpState::Rts, &[QpState::Rts as u32, p1, 0, 0, attr.sq_psn & 0xff_ffff, 0xffff, attr.max_rd_atomic as u32 & 31])
    }

    pub(crate) fn change_to_error(&self) -> Change {
        self.change("modify QP to ERROR", QpState::Error, &[QpState::Error as u32])
    }

    /// RESET -> INIT: receives may be posted. Peers get the rights in `access` on this queue pair.
    pub fn to_init(&mut self, access: crate::Access) -> Result<()> {
        self.make(self.change_to_init(access))
    }

    /// INIT -> RTR: ready to receive.
    pub fn to_rtr(&mut self, access: crate::Access, attr: &RtrAttr) -> Result<()> {
        self.make(self.change_to_rtr(access, attr)?)
    }

    /// RTR -> RTS: ready to send.
    pub fn to_rts(&mut self, attr: &RtsAttr) -> Result<()> {
        self.make(self.change_to_rts(attr))
    }

    /// RTS -> SQD (IBTA 10.3.1): no further send request begins; more may be posted, they wait. When all that had begun is complete, at once if there is nothing,
    /// the event queue of the send completion queue gets `EventKind::SqDrained`.
    pub fn to_sqd(&mut self) -> Result<()> {
        self.modify("modify QP to SQD", QpState::Sqd, &[QpState::Sqd as u32])
    }

    /// SQD or SQ error -> RTS: sending goes on. Out of SQ error, in which a failed send request puts an unreliable queue pair, all send requests
    /// posted so far are flushed first.
    pub fn resume(&mut self) -> Result<()> {
        self.modify("modify QP to RTS again", QpState::Rts, &[QpState::Rts as u32])
    }

    /// Any state but RESET -> ERROR (IBTA 10.3.1): outstanding requests are flushed.
    pub fn to_error(&mut self) -> Result<()> {
        if self.state == QpState::Reset {
            return Err(Error::State);
        }
        self.make(self.change_to_error())
    }

    /// Any state -> RESET: requests vanish without completion, traffic in flight is drained, the rings start at zero. Completions that wait in
    /// the completion queues vanish, too; a shared receive queue gets their receives back.
    pub fn to_reset(&mut self) -> Result<()> {
        if self.srq.is_some() && self.state != QpState::Reset {
            // A message in progress has a receive of the shared queue: ERROR gives it back as flushed.
            self.to_error()?;
        }
        let next = Shared::new(self.send.log_size, self.recv.log_size, self.srq.as_ref().map(|s| s.numbers().clone()))?;
        self.modify("modify QP to RESET", QpState::Reset, &[QpState::Reset as u32])?;
        self.purge(false);
        self.shared = self.ctx().qps.set(self.qpn, next);
        self.datagram = None;
        (self.send.producer, self.recv.producer, self.rung, self.recv_rung) = (0, 0, 0, 0);
        Ok(())
    }

    /// What the card holds.
    pub fn query(&self) -> Result<QpStatus> {
        let r = self.ctx().admin("query QP", AdminOpcode::QueryQp, self.qpn, &[])?;
        let state = |w: u32| QpState::from_u8((w & 7) as u8).ok_or(Error::Invalid("card reports an unknown QP state"));
        Ok(QpStatus { state: state(r[0])?, next_psn: r[1] & 0xff_ffff, una_psn: r[2] & 0xff_ffff, responder_state: state(r[4])?, expected_psn: r[5] & 0xff_ffff, msn: r[6] & 0xff_ffff })
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

impl QueuePair {
    /// Must it be in ERROR before it is destroyed? Else the receive of a message in progress would be lost for the shared queue.
    pub(crate) fn holds_receives(&self) -> bool {
        self.srq.is_some() && !matches!(self.state, QpState::Reset | QpState::Error)
    }

    /// The card has let go of it, before another can have its number.
    pub(crate) fn forget(&self) {
        self.purge(false);
        self.ctx().qps.remove(self.qpn);
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        if self.destroyed {
            return;
        }
        if self.holds_receives() {
            if let Err(e) = self.to_error() {
                log::warn!("QP {} to ERROR before it is destroyed: {e}", self.qpn);
            }
        }
        let ctx = self.ctx();
        ctx.destroy_then("destroy QP", AdminOpcode::DestroyQp, self.qpn, &ctx.qp_ids, || self.forget());
    }
}
