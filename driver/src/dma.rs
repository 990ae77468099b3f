//! DMA memory owned by the driver: rings, page tables, admin queues.
use crate::barrier;
use crate::device::{Device, DmaAccess};
use crate::error::Result;
use crate::mapping::Mapping;
use crate::pages::Pages;
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes of a page for DMA mappings.
pub const PAGE: usize = crate::pages::PAGE;

/// Zeroed, page-aligned memory mapped contiguously in IOVA space for the card; unmapped and freed on drop.
pub struct DmaBuffer {
    device: Arc<dyn Device>,
    ptr: NonNull<u8>,
    len: usize,
    mapping: Mapping,
    /// Freed after [`Drop::drop`] has unmapped it.
    _memory: Pages,
}

// SAFETY: plain memory with one owner.
unsafe impl Send for DmaBuffer {}
// SAFETY: what the card writes is read by volatile operations only. What the program writes ([`DmaBuffer::write`], [`DmaBuffer::room`]) by plain ones: the
// card only reads that, from the doorbell on, and each such range has one writer.
unsafe impl Sync for DmaBuffer {}

impl DmaBuffer {
    /// Allocates at least `len` bytes.
    pub fn new(device: &Arc<dyn Device>, len: usize) -> Result<Self> {
        let memory = Pages::new(len)?;
        let (ptr, len) = (memory.ptr(), memory.bytes());
        // SAFETY: the memory lives in the buffer, which unmaps it first.
        let mapping = unsafe { device.map(ptr.as_ptr(), len, DmaAccess::ReadWrite, true) }?;
        Ok(Self { device: device.clone(), ptr, len, mapping, _memory: memory })
    }

    /// IOVA of the first byte.
    pub fn iova(&self) -> u64 {
        self.mapping.iova()
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never true: a buffer has at least one page.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Writes bytes that the card reads after the next doorbell, or entries that it has written and does not write again yet.
    #[inline(always)]
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.len);
        // SAFETY: in bounds; neither the card nor another thread writes this range now (rings have one writer per slot).
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.ptr.as_ptr().add(offset), bytes.len()) }
    }

    /// Room for `len` bytes at `offset`, to be filled in place before the card is told of it.
    ///
    /// # Safety
    /// The buffer has so many bytes there. Whoever posts asks with every request, so it is not asked again.
    #[inline(always)]
    pub(crate) unsafe fn room(&mut self, offset: usize, len: usize) -> &mut [u8] {
        debug_assert!(offset + len <= self.len);
        // SAFETY: in bounds by the caller's promise; the card does not look at this range before the doorbell (rings have one writer per slot).
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr().add(offset), len) }
    }

    /// The record of `N` bytes at `offset`, if the card has written it: the last bit of its last word is `phase`. Whole words at a whole word.
    ///
    /// # Safety
    /// The buffer has so many bytes there, and `offset` is a multiple of 8. Whoever polls asks all the time, so it is not asked again.
    #[inline(always)]
    pub(crate) unsafe fn record<const N: usize>(&self, offset: usize, phase: bool) -> Option<[u8; N]> {
        const { assert!(N % 8 == 0 && N > 0) };
        debug_assert!(offset + N <= self.len && offset % 8 == 0);
        // SAFETY: in bounds by the caller's promise, and aligned: the buffer begins with a page.
        let words = unsafe { self.ptr.as_ptr().add(offset).cast::<u64>() };
        let mut out = [0; N];
        // SAFETY: as above.
        let last = u64::from_le(unsafe { words.add(N / 8 - 1).read_volatile() });
        if (last >> 63 == 1) != phase {
            return None;
        }
        // The card writes the last word last.
        barrier::from_device();
        let (front, back) = out.split_at_mut(N - 8);
        for (i, word) in front.chunks_exact_mut(8).enumerate() {
            // SAFETY: as above.
            word.copy_from_slice(&unsafe { words.add(i).read_volatile() }.to_ne_bytes());
        }
        back.copy_from_slice(&last.to_le_bytes());
        Some(out)
    }

    /// Reads `N` bytes that the card may have written.
    #[inline(always)]
    pub fn read<const N: usize>(&self, offset: usize) -> [u8; N] {
        assert!(offset + N <= self.len);
        // SAFETY: in bounds; byte arrays have no invalid values.
        unsafe { std::ptr::read_volatile(self.ptr.as_ptr().add(offset) as *const [u8; N]) }
    }

    /// Reads one byte that the card may have written (phase bits); what the card has written before it is read behind it.
    #[inline(always)]
    pub fn read_flag(&self, offset: usize) -> u8 {
        assert!(offset < self.len);
        // SAFETY: in bounds.
        let v = unsafe { std::ptr::read_volatile(self.ptr.as_ptr().add(offset)) };
        barrier::from_device();
        v
    }
}

impl Drop for DmaBuffer {
    fn drop(&mut self) {
        self.device.unmap(&self.mapping);
    }
}
