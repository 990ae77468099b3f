//! Completion queues: written by the card into host memory, polled without registers, locks or allocation.
use crate::admin::words;
use crate::dma::DmaBuffer;
use crate::eq::EventQueue;
use crate::error::{Error, Result};
use crate::function::Inner;
use crate::visit::Visit;
use ferric_abi::codes::{AdminOpcode, CqeOpcode, CqeStatus};
use ferric_abi::context::CqCtx;
use ferric_abi::csr;
use ferric_abi::host::{Cqe, Doorbell};
use std::cell::UnsafeCell;
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
    /// Sender's queue pair (datagrams); with raw frames see [`crate::switch::exception`].
    pub src_qp: u32,
    /// The first 40 bytes of the buffer are a GRH, see [`crate::ud::Grh`] (datagrams).
    pub grh: bool,
    /// P_Key table entry that matched (datagrams). The card's table has one entry.
    pub pkey_index: u16,
    /// AETH syndrome or cause behind an error.
    pub syndrome: u8,
}

/// What a completion queue and the queue pairs that report to it share. The card's queue lives as long.
pub(crate) struct CqInner {
    ctx: Arc<Inner>,
    id: u32,
    ring: DmaBuffer,
    /// Entries less one.
    mask: u16,
    /// The card hears of the consumer index after as many completions.
    slack: u16,
    visit: Arc<Visit>,
    /// Changed during a visit, or while visitors are shut out.
    place: UnsafeCell<Place>,
}

/// Most entries of a completion queue.
const MOST: usize = 1 << 15;

/// How far the queue has been consumed, and how far the card knows of it.
struct Place {
    consumer: u16,
    reported: u16,
}

// SAFETY: `place` is changed by one at a time, see there; the rest is plain or has a lock.
unsafe impl Send for CqInner {}
// SAFETY: as above.
unsafe impl Sync for CqInner {}

/// log2 of the entries of a ring for `entries` that a program leaves unpolled, and how many it may take before the card hears of it: a quarter of the ring at most.
/// What the card takes for unpolled, `entries` and those that it has not heard of, must fit: a card may be so fast that it completes at once what takes their place.
fn ring_of(entries: usize) -> (u8, u16) {
    let mut size = entries.next_power_of_two().max(2);
    if size - entries < size / 4 && size < MOST {
        size *= 2;
    }
    (size.trailing_zeros() as u8, (size / 4).min(size - entries + 1).max(1) as u16)
}

/// A completion queue.
pub struct CompletionQueue {
    inner: Arc<CqInner>,
}

impl CompletionQueue {
    pub(crate) fn create(ctx: &Arc<Inner>, entries: usize, eq: &EventQueue) -> Result<Self> {
        if entries == 0 || entries > MOST {
            return Err(Error::Invalid("completion queue size must be 1 to 32768 entries"));
        }
        let (log_size, slack) = ring_of(entries);
        let ring = DmaBuffer::new(&ctx.device, Cqe::BYTES << log_size)?;
        let line = CqCtx::default().with_base(ring.iova()).with_log_size(log_size).with_valid(true).with_eqn(eq.id() as u8);
        let id = ctx.create("create CQ", AdminOpcode::CreateCq, &ctx.cq_ids, &words::<4>(&line.0))?;
        let mask = (1u16 << log_size) - 1;
        let place = UnsafeCell::new(Place { consumer: 0, reported: 0 });
        Ok(Self { inner: Arc::new(CqInner { ctx: ctx.clone(), id, ring, mask, slack, visit: ctx.qps.visits.one(), place }) })
    }

    pub(crate) fn inner(&self) -> &Arc<CqInner> {
        &self.inner
    }

    /// Number of the queue.
    pub fn id(&self) -> u32 {
        self.inner.id
    }

    /// Takes the next completion, if there is one. Those of queue pairs that have been reset or destroyed since are not given.
    #[inline]
    pub fn poll(&mut self) -> Option<Completion> {
        let cq = &*self.inner;
        cq.visit(|place| loop {
            let e = cq.entry(place.consumer)?;
            place.consumer = place.consumer.wrapping_add(1);
            if place.consumer.wrapping_sub(place.reported) >= cq.slack {
                cq.report(place, false, false);
            }
            if let Some(wr_id) = cq.ctx.qps.complete(e.qpn(), e.is_recv(), e.wqe_index()) {
                return Some(completion(&e, wr_id));
            }
        })
    }

    /// Asks for an event at the next completion (`solicited_only`: at the next solicited one or error). If completions
    /// are already waiting the event comes at once, so arm-then-poll-then-wait misses nothing.
    pub fn arm(&mut self, solicited_only: bool) {
        self.inner.visit(|place| self.inner.report(place, !solicited_only, solicited_only));
    }

    /// As [`Self::arm`], but completions that are waiting already make no event: only one that comes later does (IBTA 11.4.2.2). Until the
    /// next report the card takes those that wait for consumed, so it sees an overflow later by as many entries.
    pub fn arm_next(&mut self, solicited_only: bool) {
        let cq = &*self.inner;
        cq.visit(|place| {
            let index = place.consumer.wrapping_add(cq.waiting(place.consumer));
            place.reported = place.consumer;
            cq.bell(index, !solicited_only, solicited_only);
        });
    }

    /// Completions that wait to be polled.
    pub fn waiting(&self) -> usize {
        let cq = &*self.inner;
        // SAFETY: as in `visit`: this thread has the queue, and nobody purges meanwhile.
        cq.visit.during(|| cq.waiting(unsafe { (*cq.place.get()).consumer }).into())
    }

    /// Calls the device's wait hook once: for busy-wait loops around [`Self::poll`].
    pub fn relax(&self) {
        self.inner.ctx.device.relax();
    }
}

impl CqInner {
    /// Runs `f` as the poller.
    #[inline(always)]
    fn visit<T>(&self, f: impl FnOnce(&mut Place) -> T) -> T {
        // SAFETY: those who poll do so one at a time (they have the queue for themselves), and nobody else is there during a visit.
        self.visit.during(|| f(unsafe { &mut *self.place.get() }))
    }

    /// The entry with this index, if the card has written it.
    #[inline(always)]
    fn entry(&self, index: u16) -> Option<Cqe> {
        // SAFETY: the ring has `mask + 1` entries.
        unsafe { self.ring.record(self.offset(index), self.phase(index)) }.map(Cqe)
    }

    #[inline(always)]
    fn offset(&self, index: u16) -> usize {
        (index & self.mask) as usize * Cqe::BYTES
    }

    #[inline(always)]
    fn phase(&self, index: u16) -> bool {
        index & (self.mask + 1) == 0
    }

    /// Entries that wait from `consumer` on.
    fn waiting(&self, consumer: u16) -> u16 {
        (0..=self.mask).find(|n| self.entry(consumer.wrapping_add(*n)).is_none()).unwrap_or(self.mask + 1)
    }

    fn report(&self, place: &mut Place, arm: bool, arm_solicited: bool) {
        place.reported = place.consumer;
        self.bell(place.consumer, arm, arm_solicited);
    }

    fn bell(&self, index: u16, arm: bool, arm_solicited: bool) {
        let bell = Doorbell::default().with_id(self.id).with_index(index).with_arm(arm).with_arm_solicited(arm_solicited);
        self.ctx.device.write64(csr::DB_CQ, u64::from_le_bytes(bell.0));
    }

    /// Takes out all entries that wait and are of `qpn` (`sends_only`: of its send queue): they belong to an earlier life of it. Those of other queue
    /// pairs close up, so that there is as much room as if the others had never come. `stale` gets each one.
    pub(crate) fn purge(&self, qpn: u32, sends_only: bool, stale: impl Fn(&Cqe)) {
        self.visit.shut_out(|| {
            // SAFETY: nobody polls now, and others who purge wait for their turn.
            let place = unsafe { &mut *self.place.get() };
            let n = self.waiting(place.consumer);
            // From the youngest to the oldest: what stays moves towards the youngest. The card writes none of these again before it hears of the consumer.
            let mut room = n;
            for at in (0..n).rev() {
                let Some(e) = self.entry(place.consumer.wrapping_add(at)) else { continue };
                if e.qpn() == qpn && !(sends_only && e.is_recv()) {
                    stale(&e);
                    continue;
                }
                room -= 1;
                if room != at {
                    let to = place.consumer.wrapping_add(room);
                    self.ring.write(self.offset(to), &e.with_phase(self.phase(to)).0);
                }
            }
            if room > 0 {
                place.consumer = place.consumer.wrapping_add(room);
                self.report(place, false, false);
            }
        });
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

impl Drop for CqInner {
    fn drop(&mut self) {
        self.ctx.qps.visits.no_more(&self.visit);
        self.ctx.destroy("destroy CQ", AdminOpcode::DestroyCq, self.id, &self.ctx.cq_ids);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many a program leaves unpolled, with those that the card has not heard of they fit into the ring.
    #[test]
    fn what_the_card_has_not_heard_of_fits() {
        for entries in 1..=MOST {
            let (log_size, slack) = ring_of(entries);
            let size = 1usize << log_size;
            assert!(size <= MOST && slack >= 1 && entries + usize::from(slack) - 1 <= size, "{entries} entries: a ring of {size}, slack {slack}");
        }
        assert_eq!([ring_of(1), ring_of(128), ring_of(90), ring_of(MOST)], [(1, 1), (8, 64), (7, 32), (15, 1)]);
    }
}
