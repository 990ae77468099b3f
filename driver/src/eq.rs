//! Event queues: what an interrupt announces.
use crate::admin::words;
use crate::dma::DmaBuffer;
use crate::error::{Error, Result};
use crate::function::Inner;
use ferric_abi::codes::{AdminOpcode, EventKind};
use ferric_abi::context::EqCtx;
use ferric_abi::csr;
use ferric_abi::host::{Doorbell, Eqe};
use std::sync::Arc;
use std::time::Duration;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// CQ or QP number.
    pub id: u32,
    /// Cause of an asynchronous event (a `CqeStatus`).
    pub cause: u16,
}

/// An event queue with its MSI-X vector.
pub struct EventQueue {
    ctx: Arc<Inner>,
    id: u32,
    vector: u16,
    ring: DmaBuffer,
    log_size: u8,
    consumer: u16,
}

impl EventQueue {
    pub(crate) fn create(ctx: &Arc<Inner>, log_size: u8, vector: u16) -> Result<Self> {
        if !(1..=15).contains(&log_size) {
            return Err(Error::Invalid("event queue size must be 2 to 32768 entries"));
        }
        let ring = DmaBuffer::new(&ctx.device, Eqe::BYTES << log_size)?;
        let line = EqCtx::default().with_base(ring.iova()).with_log_size(log_size).with_valid(true).with_vector(vector);
        let id = ctx.create("create EQ", AdminOpcode::CreateEq, &ctx.eq_ids, &words::<4>(&line.0))?;
        Ok(Self { ctx: ctx.clone(), id, vector, ring, log_size, consumer: 0 })
    }

    /// Number of the queue.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Takes the next event, if there is one.
    pub fn poll(&mut self) -> Option<Event> {
        let slot = self.consumer as usize & ((1 << self.log_size) - 1);
        let phase = self.consumer >> self.log_size & 1 == 0;
        // SAFETY: the ring has `2^log_size` entries.
        let e = Eqe(unsafe { self.ring.record(slot * Eqe::BYTES, phase) }?);
        self.consumer = self.consumer.wrapping_add(1);
        let bell = Doorbell::default().with_id(self.id).with_index(self.consumer);
        self.ctx.device.write64(csr::DB_EQ, u64::from_le_bytes(bell.0));
        let Some(kind) = EventKind::from_u8(e.kind()) else {
            log::warn!("unknown event {e:?}");
            return None;
        };
        Some(Event { kind, id: e.id(), cause: e.cause() })
    }

    /// Waits for the next event by interrupt.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<Event>> {
        let start = self.ctx.device.now();
        loop {
            if let Some(e) = self.poll() {
                return Ok(Some(e));
            }
            let spent = self.ctx.device.now() - start;
            if spent >= timeout || !self.ctx.device.wait_interrupt(self.vector, timeout - spent)? {
                return Ok(self.poll());
            }
        }
    }
}

impl Drop for EventQueue {
    fn drop(&mut self) {
        self.ctx.destroy("destroy EQ", AdminOpcode::DestroyEq, self.id, &self.ctx.eq_ids);
    }
}
