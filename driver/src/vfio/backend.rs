//! What the two interfaces of VFIO have in common.
use crate::device::DmaAccess;
use crate::eventfd::EventFd;
use std::io::Result;
use std::ops::Range;
use std::ptr::NonNull;

/// Command register: memory space and bus master enable.
pub const COMMAND_ENABLE: u16 = 6;

/// One function, through one of the interfaces.
pub trait Backend: Send + Sync {
    /// BAR 0, mapped as long as the value lives.
    fn window(&self) -> Option<NonNull<u8>>;
    /// Addresses the IOMMU takes.
    fn iova_ranges(&self) -> Vec<Range<u64>>;
    /// Maps memory for the card.
    ///
    /// # Safety
    /// As [`crate::device::Device::map`].
    unsafe fn map(&self, iova: u64, ptr: *mut u8, len: usize, access: DmaAccess) -> Result<()>;
    /// Takes a whole mapping back.
    fn unmap(&self, iova: u64, len: usize) -> Result<()>;
    /// Wires MSI-X vectors from 0 on; gives how many the function has of them.
    fn interrupts(&self, fds: &[EventFd]) -> Result<usize>;
    /// Lets the function answer and master the bus.
    fn enable(&self) -> Result<()>;
    /// Function-level reset.
    fn reset(&self) -> Result<()>;
}
