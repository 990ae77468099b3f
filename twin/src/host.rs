//! What a card reaches outside of itself.

/// Bytes of a page of host memory: no access of the card crosses its border.
pub const PAGE: u64 = 4096;

/// Host memory behind its IOMMU. An access stays inside one page of [`PAGE`] bytes.
pub trait Host {
    /// Reads `out.len()` bytes at `iova` as `function`. False: refused, `out` means nothing.
    fn read(&mut self, function: u16, iova: u64, out: &mut [u8]) -> bool;
    /// Writes `data`; its last eight bytes become visible after the others, as drivers that poll the end of a record expect. False: refused.
    fn write(&mut self, function: u16, iova: u64, data: &[u8]) -> bool;
}
