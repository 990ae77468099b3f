//! Page-aligned memory for DMA, in huge pages where they are to be had.
use crate::alloc::spare;
use crate::error::{Error, Result};
use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::ptr::NonNull;

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// Bytes of a huge page.
pub const HUGE: usize = 2 << 20;

/// Zeroed memory of whole pages; freed on drop.
#[derive(Debug)]
pub struct Pages {
    ptr: NonNull<u8>,
    len: usize,
    /// Bytes of the mmap; 0: from the allocator.
    mapped: usize,
}

// SAFETY: plain memory with one owner.
unsafe impl Send for Pages {}
// SAFETY: only its address is given out.
unsafe impl Sync for Pages {}

impl Pages {
    /// At least `len` bytes. From [`HUGE`] on: reserved huge pages when the system has some left (`vm.nr_hugepages`),
    /// else aligned memory that the kernel may put into huge pages. [`Error::NoMemory`]: there is none.
    pub fn new(len: usize) -> Result<Self> {
        let none = Error::NoMemory { bytes: len };
        let Some(len) = len.max(1).checked_next_multiple_of(PAGE).filter(|len| *len <= isize::MAX as usize - HUGE) else { return Err(none) };
        if len >= HUGE {
            if let Some(pages) = Self::huge(len) {
                return spare().map(|()| pages);
            }
        }
        let layout = Self::layout(len);
        // SAFETY: len > 0.
        let Some(ptr) = NonNull::new(unsafe { alloc_zeroed(layout) }) else { return Err(none) };
        if len >= HUGE {
            // SAFETY: this memory is ours; the advice may be ignored.
            unsafe { libc::madvise(ptr.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
        }
        let pages = Self { ptr, len, mapped: 0 };
        spare().map(|()| pages)
    }

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, if len >= HUGE { HUGE } else { PAGE }).expect("page-aligned size")
    }

    fn huge(len: usize) -> Option<Self> {
        let mapped = len.next_multiple_of(HUGE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | libc::MAP_POPULATE;
        // SAFETY: a new anonymous mapping.
        let p = unsafe { libc::mmap(std::ptr::null_mut(), mapped, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if p == libc::MAP_FAILED {
            return None;
        }
        Some(Self { ptr: NonNull::new(p.cast())?, len, mapped })
    }

    /// First byte.
    pub fn ptr(&self) -> NonNull<u8> {
        self.ptr
    }

    /// Bytes, a multiple of [`PAGE`].
    pub fn bytes(&self) -> usize {
        self.len
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: made by `new` in exactly this way; nobody holds the address any more.
        unsafe {
            if self.mapped > 0 {
                libc::munmap(self.ptr.as_ptr().cast(), self.mapped);
            } else {
                dealloc(self.ptr.as_ptr(), Self::layout(self.len));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_alignments_and_zeros() {
        for (len, bytes, align) in [(0, PAGE, PAGE), (1, PAGE, PAGE), (PAGE + 1, 2 * PAGE, PAGE), (HUGE, HUGE, HUGE), (HUGE + 1, HUGE + PAGE, HUGE)] {
            let p = Pages::new(len).unwrap();
            assert_eq!((p.bytes(), p.ptr().as_ptr() as usize % align), (bytes, 0), "{len}");
            // SAFETY: inside the memory.
            assert!(unsafe { std::slice::from_raw_parts(p.ptr().as_ptr(), bytes) }.iter().all(|b| *b == 0));
        }
    }

    #[test]
    fn more_than_there_is_is_an_error() {
        for len in [1 << 60, isize::MAX as usize, usize::MAX] {
            assert!(matches!(Pages::new(len), Err(Error::NoMemory { .. })), "{len}");
        }
    }
}
