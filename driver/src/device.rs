//! What the driver needs from a card: one trait, with the simulated card, VFIO or a vfio-user client behind it.
use crate::error::{Error, Result};
use crate::mapping::Mapping;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// Access rights of a DMA mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaAccess {
    /// The card may read.
    Read,
    /// The card may read and write.
    ReadWrite,
}

/// A device at hand: reached without looking up where in its `Arc` it lies, which whoever posts would do with every request.
pub(crate) struct AtHand {
    at: NonNull<dyn Device>,
    _kept: Arc<dyn Device>,
}

impl AtHand {
    pub(crate) fn new(device: &Arc<dyn Device>) -> Self {
        Self { at: NonNull::from(&**device), _kept: device.clone() }
    }
}

// SAFETY: a shared reference to a `Device`, which is `Send` and `Sync`.
unsafe impl Send for AtHand {}
// SAFETY: as above.
unsafe impl Sync for AtHand {}

impl std::ops::Deref for AtHand {
    type Target = dyn Device;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        // SAFETY: `_kept` keeps it where it is.
        unsafe { self.at.as_ref() }
    }
}

/// A function of a card. Offsets are inside the function's BAR window.
///
/// Register reads are for discovery and admin only: the data path uses `write64` and `write_line` (posted) and host memory.
pub trait Device: Send + Sync {
    /// Reads a 32-bit register.
    fn read32(&self, offset: u32) -> u32;
    /// Posts a 32-bit register write.
    fn write32(&self, offset: u32, value: u32);
    /// Posts a 64-bit doorbell write.
    fn write64(&self, offset: u32, value: u64);
    /// A line of 64 bytes reaches the card as one write. Where it does not, requests are announced by [`Device::write64`] and fetched by the card,
    /// which refuses lines in pieces.
    fn has_lines(&self) -> bool {
        false
    }
    /// Posts a 64-byte line, aligned to 64 bytes, as one write. Only where [`Device::has_lines`]; elsewhere nothing is written.
    fn write_line(&self, _offset: u32, _line: &[u8; 64]) {
        debug_assert!(false, "a line for a device that has none");
    }
    /// Maps whole pages of process memory for DMA and returns the IOVA of each 4 KiB page, in order. They need not be contiguous
    /// unless `contiguous` is asked for.
    ///
    /// # Safety
    /// `ptr..ptr + len` must stay allocated until [`Device::unmap`]; the card reads and writes it behind the compiler's back.
    unsafe fn map(&self, ptr: *mut u8, len: usize, access: DmaAccess, contiguous: bool) -> Result<Mapping>;
    /// Maps `len` bytes of a dma-buf, the memory of another device, from `offset` on (both whole pages); otherwise as [`Device::map`].
    fn map_dmabuf(&self, _buffer: BorrowedFd, _offset: u64, len: usize, _access: DmaAccess) -> Result<Mapping> {
        Err(Error::Map { len, reason: "this card cannot reach the memory of other devices".into(), errno: libc::EOPNOTSUPP })
    }
    /// Removes a mapping made by [`Device::map`] or [`Device::map_dmabuf`].
    fn unmap(&self, mapping: &Mapping);
    /// Called in every busy-wait loop. Hardware: a CPU pause. Simulation: steps time.
    fn relax(&self);
    /// The same where the answer is this device's own, as an admin command's is: in a simulation the others may stand meanwhile.
    fn relax_for_answer(&self) {
        self.relax();
    }
    /// Waits until MSI-X `vector` fires or `timeout` (of the device's time) passes; false on time-out.
    fn wait_interrupt(&self, vector: u16, timeout: Duration) -> Result<bool>;
    /// Time on the device's clock, for time-outs in busy-wait loops.
    fn now(&self) -> Duration;
    /// The card was pulled, or whoever served it has ended, as far as is known: registers read all ones, nothing completes any more.
    fn is_gone(&self) -> bool {
        false
    }
}
