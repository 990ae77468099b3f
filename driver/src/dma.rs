//! DMA memory owned by the driver: rings, page tables, admin queues.
use crate::device::{Device, DmaAccess};
use crate::error::Result;
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
    iovas: Vec<u64>,
    /// Freed after [`Drop::drop`] has unmapped it.
    _memory: Pages,
}

// The buffer is plain memory; concurrent access by the card is through volatile operations only.
unsafe impl Send for DmaBuffer {}
unsafe impl Sync for DmaBuffer {}

impl DmaBuffer {
    /// Allocates at least `len` bytes.
    pub fn new(device: &Arc<dyn Device>, len: usize) -> Result<Self> {
        let memory = Pages::new(len);
        let (ptr, len) = (memory.ptr(), memory.bytes());
        // SAFETY: the memory lives in the buffer, which unmaps it first.
        let iovas = unsafe { device.map(ptr.as_ptr(), len, DmaAccess::ReadWrite, true) }?;
        Ok(Self { device: device.clone(), ptr, len, iovas, _memory: memory })
    }

    /// IOVA of the first byte.
    pub fn iova(&self) -> u64 {
        self.iovas[0]
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never true: a buffer has at least one page.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Writes bytes that the card will read after the next doorbell.
    #[inline(always)]
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.len);
        // SAFETY: in bounds; the card does not write this range (rings have one writer per slot).
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.ptr.as_ptr().add(offset), bytes.len()) }
    }

    /// Reads `N` bytes that the card may have written.
    #[inline(always)]
    pub fn read<const N: usize>(&self, offset: usize) -> [u8; N] {
        assert!(offset + N <= self.len);
        // SAFETY: in bounds.
        let from = unsafe { self.ptr.as_ptr().add(offset) };
        if N % 8 != 0 || offset % 8 != 0 {
            // SAFETY: in bounds; byte arrays have no invalid values.
            return unsafe { from.cast::<[u8; N]>().read_volatile() };
        }
        // A volatile array is read byte by byte, words are not.
        let mut out = [0; N];
        for (i, word) in out.chunks_exact_mut(8).enumerate() {
            // SAFETY: in bounds, and aligned: the buffer begins with a page.
            word.copy_from_slice(&unsafe { from.cast::<u64>().add(i).read_volatile() }.to_ne_bytes());
        }
        out
    }

    /// Reads one byte that the card may have written (phase bits), with acquire ordering for what was written before it.
    #[inline(always)]
    pub fn read_flag(&self, offset: usize) -> u8 {
        assert!(offset < self.len);
        // SAFETY: in bounds.
        let v = unsafe { std::ptr::read_volatile(self.ptr.as_ptr().add(offset)) };
        std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
        v
    }
}

impl Drop for DmaBuffer {
    fn drop(&mut self) {
        self.device.unmap(&self.iovas);
    }
}
