//! A function's BAR window that is mapped into the process: what the device back ends with real memory behind them
//! (VFIO, vfio-user) put under [`crate::device::Device`]. The simulated card has no such memory and does without.
//!
//! The registers' names, offsets and access types come from [`ferric_abi::registers`]: a read-only one cannot be written,
//! a write-only one cannot be read, and both are checked by the compiler.
use crate::barrier;
use ferric_abi::csr;
use std::ptr::NonNull;
use volatile_register::{RO, RW, WO};

/// A register as a type: what [`Window::at`] takes.
pub trait Register {
    /// `RO<u32>`, `RW<u32>` or `WO<u32>`.
    type Cell;
    /// Byte offset in the function's window.
    const OFFSET: u32;
}

macro_rules! cell {
    (ReadOnly) => { RO<u32> };
    (ReadWrite) => { RW<u32> };
    (WriteOnly) => { WO<u32> };
}

macro_rules! types {
    ($( $name:ident $offset:literal $access:ident $doc:literal; )*) => {
        /// One type per register.
        #[allow(non_camel_case_types)]
        pub mod reg {
            use super::*;
            $(
                #[doc = $doc]
                pub struct $name;
                impl Register for $name {
                    type Cell = cell!($access);
                    const OFFSET: u32 = $offset;
                }
            )*
        }
    };
}
ferric_abi::registers!(types);

/// Bytes of a function's window.
pub const WINDOW: usize = 1 << csr::WINDOW_BITS;

/// A mapped window of [`WINDOW`] bytes. It does not own the mapping.
pub struct Window {
    base: NonNull<u8>,
}

// SAFETY: device registers; each access is one volatile load or store of a naturally aligned word.
unsafe impl Send for Window {}
// SAFETY: as above; no access goes through a reference to plain memory.
unsafe impl Sync for Window {}

impl Window {
    /// The window at `base`, or `None` when `base` is not aligned to 64 bytes.
    ///
    /// # Safety
    /// `base..base + WINDOW` stays mapped, readable and writable, as long as the value lives, and is used for nothing but
    /// device registers (or memory that stands for them in a test).
    pub unsafe fn new(base: NonNull<u8>) -> Option<Self> {
        (base.as_ptr() as usize % 64 == 0).then_some(Self { base })
    }

    /// The register `R`.
    pub fn at<R: Register>(&self, _: R) -> &R::Cell {
        // SAFETY: `R::OFFSET` comes from the register list: aligned to 4 and inside the window (`offsets_fit`); the cells
        // have the layout of the `u32` they wrap.
        unsafe { &*self.base.as_ptr().add(R::OFFSET as usize).cast::<R::Cell>() }
    }

    #[inline]
    fn place(&self, offset: u32, bytes: usize) -> *mut u8 {
        let offset = offset as usize;
        // Aligned and inside at once: no bit but those of the multiples of `bytes` below the window's end. Both are powers of two.
        assert!(offset & !(WINDOW - bytes) == 0, "{bytes} bytes at offset {offset:#x} of a BAR window");
        // SAFETY: inside the window, by the line above.
        unsafe { self.base.as_ptr().add(offset) }
    }

    /// Reads the 32-bit register at `offset`. Panics when the offset is unaligned or beyond the window: offsets are constants
    /// of the driver, never input.
    pub fn read32(&self, offset: u32) -> u32 {
        // SAFETY: aligned and inside, by `place`.
        unsafe { self.place(offset, 4).cast::<u32>().read_volatile() }
    }

    /// Posts a 32-bit write, behind everything the caller has written to its rings before.
    pub fn write32(&self, offset: u32, value: u32) {
        barrier::to_device();
        // SAFETY: aligned and inside, by `place`.
        unsafe { self.place(offset, 4).cast::<u32>().write_volatile(value) }
    }

    /// Posts a doorbell: one 64-bit store, behind everything the caller has written to its rings before.
    #[inline]
    pub fn write64(&self, offset: u32, value: u64) {
        barrier::to_device();
        // SAFETY: aligned and inside, by `place`.
        unsafe { self.place(offset, 8).cast::<u64>().write_volatile(value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(64))]
    struct Memory([u8; WINDOW]);

    fn window(memory: &mut Memory) -> Window {
        let base = NonNull::new(memory.0.as_mut_ptr()).expect("a place on the heap");
        // SAFETY: the memory outlives the window in each test.
        unsafe { Window::new(base) }.expect("aligned")
    }

    #[test]
    fn offsets_fit() {
        for register in csr::REGISTERS {
            assert!(register.offset % 4 == 0 && (register.offset as usize) < WINDOW, "{}", register.name);
        }
        assert_eq!(size_of::<RO<u32>>() + size_of::<RW<u32>>() + size_of::<WO<u32>>(), 12);
    }

    #[test]
    fn registers_lie_where_the_list_says() {
        let mut memory = Box::new(Memory([0; WINDOW]));
        memory.0[csr::MAGIC as usize..][..4].copy_from_slice(b"FRIC");
        let w = window(&mut memory);
        assert_eq!(w.at(reg::MAGIC).read(), csr::MAGIC_VALUE);
        assert_eq!(w.read32(csr::MAGIC), csr::MAGIC_VALUE);
        // SAFETY: plain memory.
        unsafe {
            w.at(reg::CONTROL).write(3);
            w.at(reg::ADMIN_DOORBELL).write(9);
        }
        w.write32(csr::ADMIN_SIZE, 5);
        let word = |offset: u32| u32::from_ne_bytes(memory.0[offset as usize..][..4].try_into().expect("four bytes"));
        assert_eq!([word(csr::CONTROL), word(csr::ADMIN_DOORBELL), word(csr::ADMIN_SIZE)], [3, 9, 5]);
    }

    #[test]
    fn doorbells() {
        let mut memory = Box::new(Memory([0; WINDOW]));
        let w = window(&mut memory);
        w.write64(csr::DB_RQ, u64::from_le_bytes([1, 2, 3, 4, 5, 6, 7, 8]));
        assert_eq!(memory.0[csr::DB_RQ as usize..][..8], [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    #[should_panic(expected = "of a BAR window")]
    fn an_offset_beyond_the_window_is_refused() {
        window(&mut Box::new(Memory([0; WINDOW]))).read32(WINDOW as u32);
    }

    #[test]
    fn an_unaligned_base_is_refused() {
        let mut memory = Box::new(Memory([0; WINDOW]));
        let base = NonNull::new(memory.0.as_mut_ptr().wrapping_add(8)).expect("a place");
        // SAFETY: never used.
        assert!(unsafe { Window::new(base) }.is_none());
    }
}
