//! Completion queues: written by the card into host memory, polled without registers, locks or allocation.
use crate::admin::words;
use crate::context::Inner;
use crate::dma::DmaBuffer;
use crate::eq::EventQueue;
use crate::error::{Error, Result};
use crate::visit::Visit;
use ferric_abi::codes::{AdminOpcode, CqeOpcode, CqeStatus};
use ferric_abi::context::CqCtx;
use ferric_abi::csr;
use ferric_abi::host::{Cqe, Doorbell};
use std::sync::Arc;

/// A finished work request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The program's number for the work request.
    pub wr_id: u64,
    /// Outcome.
    pub status: CqeStatus,
    /// What it was.
    pub opcode: CqeOpcode,
    /// Local queue pair.
    pub qpn: u32,
    /// Receive side.
    pub is_recv: bool,
    /// Bytes received.
    pub byte_len: u32,
    /// Immediate data.
    pub imm: Option<u32>,
    /// Key that the message has invalidated (SEND with invalidate).
    pub invalidated: Option<u32>,
    /// The sender asked for a solicited event.
    pub solicited: bool,
    /// Card time in ticks of 1.024 us.
    pub timestamp: u64,
    /// Sender's queue pair (datagrams).
    pub src_qp: u32,
    /// The first 40 bytes of the buffer are a GRH, see [`crate::ud::Grh`] (datagrams).
    pub grh: bool,
    /// P_Key table entry that matched (datagrams). The card's table has one entry.
    pub pkey_index: u16,
    /// AETH syndrome or cause behind an error.
    pub syndrome: u8,
}

/// A completion queue.
pub struct CompletionQueue {
    ctx: Arc<Inner>,
    id: u32,
    ring: DmaBuffer,
    visit: Arc<Visit>,
    /// Entries less one.
    mask: u16,
    /// The card hears of the consumer index after as many completions.
    slack: u16,
    consumer: u16,
    reported: u16,
}

impl CompletionQueue {
    pub(crate) fn create(ctx: &Arc<Inner>, entries: usize, eq: &EventQueue) -> Result<Self> {
        if entries == 0 || entries > 1 << 15 {
            return Err(Error::Invalid("completion queue size must be 1 to 32768 entries"));
        }
        let log_size = entries.next_power_of_two().trailing_zeros().max(1) as u8;
        let ring = DmaBuffer::new(&ctx.device, Cqe::BYTES << log_size)?;
        let id = ctx.cq_ids.take()?;
        let line = CqCtx::default().with_base(ring.iova()).with_log_size(log_size).with_valid(true).with_eqn(eq.id() as u8);
        if let Err(e) = ctx.admin("create CQ", AdminOpcode::CreateCq, id, &words::<4>(&line.0)) {
            ctx.cq_ids.give(id);
            return Err(e);
        }
        // The card needs the consumer index only to detect overflow: a quarter ring of slack is enough.
        Ok(Self { ctx: ctx.clone(), id, ring, visit: ctx.qps.visits.one(), mask: (1u16 << log_size) - 1, slack: 1 << (log_size.max(2) - 2), consumer: 0, reported: 0 })
    }

    /// Number of the queue.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Takes the next completion, if there is one. Those of queue pairs that have been destroyed are not given.
    #[inline]
    pub fn poll(&mut self) -> Option<Completion> {
        // Completions from before a queue pair's reset or end are passed over.
        loop {
            let e = self.take()?;
            if let Some(wr_id) = self.ctx.qps.complete(&self.visit, e.qpn(), e.is_recv(), e.wqe_index()) {
                return Some(completion(&e, wr_id));
            }
        }
    }

    /// The next entry of the ring, if the card has written it.
    #[inline]
    fn take(&mut self) -> Option<Cqe> {
        let e = self.entry(self.consumer)?;
        self.consumer = self.consumer.wrapping_add(1);
        if self.consumer.wrapping_sub(self.reported) >= self.slack {
            self.report(false, false);
        }
        Some(e)
    }

    /// Asks for an event at the next completion (`solicited_only`: at the next solicited one or error). If completions
    /// are already waiting the event comes at once, so arm-then-poll-then-wait misses nothing.
    pub fn arm(&mut self, solicited_only: bool) {
        self.report(!solicited_only, solicited_only);
    }

    /// As [`Self::arm`], but completions that are waiting already make no event: only one that comes later does (IBTA 11.4.2.2). Until the
    /// next report the card takes those that wait for consumed, so it sees an overflow later by as many entries.
    pub fn arm_next(&mut self, solicited_only: bool) {
        let mut index = self.consumer;
        while index.wrapping_sub(self.consumer) <= self.mask && self.entry(index).is_some() {
            index = index.wrapping_add(1);
        }
        self.reported = self.consumer;
        self.bell(index, !solicited_only, solicited_only);
    }

    /// The entry with this index, if the card has written it.
    #[inline(always)]
    fn entry(&self, index: u16) -> Option<Cqe> {
        self.ring.record((index & self.mask) as usize * Cqe::BYTES, index & (self.mask + 1) == 0).map(Cqe)
    }

    fn report(&mut self, arm: bool, arm_solicited: bool) {
        self.reported = self.consumer;
        self.bell(self.consumer, arm, arm_solicited);
    }

    fn bell(&self, index: u16, arm: bool, arm_solicited: bool) {
        let bell = Doorbell::default().with_id(self.id).with_index(index).with_arm(arm).with_arm_solicited(arm_solicited);
        self.ctx.device.write64(csr::DB_CQ, u64::from_le_bytes(bell.0));
    }

    /// Calls the device's wait hook once: for busy-wait loops around [`Self::poll`].
    pub fn relax(&self) {
        self.ctx.device.relax();
    }
}

#[inline]
fn completion(e: &Cqe, wr_id: u64) -> Completion {
    Completion {
        wr_id,
        status: CqeStatus::from_u8(e.status()).unwrap_or(CqeStatus::Fatal),
        opcode: CqeOpcode::from_u8(e.opcode()).unwrap_or(CqeOpcode::Nop),
        qpn: e.qpn(),
        is_recv: e.is_recv(),
        byte_len: e.byte_len(),
        imm: e.imm_valid().then(|| e.imm()),
        invalidated: e.inv_valid().then(|| e.imm()),
        solicited: e.solicited(),
        timestamp: e.timestamp(),
        src_qp: e.src_qp(),
        grh: e.grh(),
        pkey_index: 0,
        syndrome: e.syndrome(),
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        self.ctx.qps.visits.no_more(&self.visit);
        self.ctx.destroy("destroy CQ", AdminOpcode::DestroyCq, self.id, &self.ctx.cq_ids);
    }
}
