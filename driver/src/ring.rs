//! A ring of work requests in host memory: of a queue pair, or of a shared receive queue.
use crate::admin::words;
use crate::barrier;
use crate::dma::DmaBuffer;
use crate::error::{Error, Result};
use crate::function::Inner;
use crate::lives::Half;
use crate::request::LocalSge;
use ferric_abi::context::RingCtx;
use ferric_abi::csr;
use ferric_abi::host::{Doorbell, RecvHead, Sge};
use std::sync::atomic::Ordering;

/// Writes scatter/gather entries one behind the other; gives the sum of their lengths.
#[inline(always)]
pub(crate) fn put_entries(list: &mut [u8], sges: &[LocalSge]) -> Result<u64> {
    let room = list.get_mut(..sges.len() * Sge::BYTES).ok_or(Error::Invalid("more scatter/gather entries than the queue was made for"))?;
    let mut total = 0;
    for (to, s) in room.chunks_exact_mut(Sge::BYTES).zip(sges) {
        to.copy_from_slice(&s.0);
        total += u64::from(s.length());
    }
    Ok(total)
}

/// One ring of a queue pair, or that of a shared receive queue.
pub(crate) struct Ring {
    pub(crate) memory: DmaBuffer,
    pub(crate) log_size: u8,
    /// Slots less one.
    mask: u16,
    /// Bytes of a slot: 64, 128, 256 or 512.
    pub(crate) slot_bytes: usize,
    pub(crate) producer: u16,
}

impl Ring {
    pub(crate) fn new(ctx: &Inner, slots: usize, bytes: usize) -> Result<Self> {
        Self::make(ctx, slots, bytes, 1)
    }

    /// With as many places for copies behind it as it has slots: of a shared receive queue.
    pub(crate) fn with_copies(ctx: &Inner, slots: usize, bytes: usize) -> Result<Self> {
        Self::make(ctx, slots, bytes, 2)
    }

    fn make(ctx: &Inner, slots: usize, bytes: usize, times: usize) -> Result<Self> {
        if slots == 0 || slots > 1 << 15 {
            return Err(Error::Invalid("a work queue has 1 to 32768 slots"));
        }
        let stride = bytes.div_ceil(64).next_power_of_two().trailing_zeros() as u8;
        if stride > 3 {
            return Err(Error::Invalid("too many scatter/gather entries or inline bytes: a work request has at most 512 bytes"));
        }
        let log_size = slots.next_power_of_two().trailing_zeros().max(1) as u8;
        Ok(Self { memory: DmaBuffer::new(&ctx.device, times * (64 << (log_size + stride)))?, log_size, mask: (1u16 << log_size) - 1, slot_bytes: 64 << stride, producer: 0 })
    }
    /// Requests that it holds.
    pub(crate) fn slots(&self) -> usize {
        self.mask as usize + 1
    }
    pub(crate) fn context(&self) -> [u32; 3] {
        words::<3>(&RingCtx::default().with_base(self.memory.iova()).with_log_size(self.log_size).with_stride((self.slot_bytes / 64).trailing_zeros() as u8).0)
    }
    /// The next slot, to be filled in place: the card looks at it from the doorbell on.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> &mut [u8] {
        self.slot(self.producer)
    }
    /// The slot of request `index`, which the card does not look at: it has not been told of it, or has completed what was there.
    #[inline(always)]
    pub(crate) fn slot(&mut self, index: u16) -> &mut [u8] {
        // SAFETY: there are `mask + 1` slots (`make`).
        unsafe { self.memory.room((index & self.mask) as usize * self.slot_bytes, self.slot_bytes) }
    }
    #[inline(always)]
    pub(crate) fn check_room(&self, half: &Half) -> Result<()> {
        if self.producer.wrapping_sub(half.done.load(Ordering::Acquire)) > self.mask {
            return Err(Error::QueueFull);
        }
        Ok(())
    }

    /// Writes a receive request into the next slot.
    #[inline(always)]
    pub(crate) fn write_receive(&mut self, sges: &[LocalSge]) -> Result<()> {
        let head = RecvHead::default().with_num_sge(sges.len() as u8).with_index(self.producer);
        let (front, list) = self.next().split_at_mut(RecvHead::BYTES);
        put_entries(list, sges)?;
        front.copy_from_slice(&head.0);
        Ok(())
    }

    /// Writes a receive request into the next slot and into the place of copy `copy`, which it names.
    pub(crate) fn write_shared_receive(&mut self, sges: &[LocalSge], copy: u16) -> Result<()> {
        let head = RecvHead::default().with_num_sge(sges.len() as u8).with_index(self.producer).with_copy(copy);
        let behind = self.slots() + usize::from(copy);
        assert!((behind + 1) * self.slot_bytes <= self.memory.len(), "a ring made `with_copies`");
        for place in [behind, usize::from(self.producer & self.mask)] {
            // SAFETY: as the line above says.
            let (front, list) = unsafe { self.memory.room(place * self.slot_bytes, self.slot_bytes) }.split_at_mut(RecvHead::BYTES);
            put_entries(list, sges)?;
            front.copy_from_slice(&head.0);
        }
        Ok(())
    }

    /// Announces the requests written so far as those of receive ring `id`.
    #[inline(always)]
    pub(crate) fn ring_receive_bell(&self, ctx: &Inner, id: u32) {
        barrier::to_device();
        let bell = Doorbell::default().with_id(id).with_index(self.producer);
        ctx.device.write64(csr::DB_RQ, u64::from_le_bytes(bell.0));
    }
}
