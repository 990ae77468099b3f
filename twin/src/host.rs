//! What a card reaches outside of itself.

/// Bytes of a page of host memory: page tables name memory in pieces of so many bytes at least.
pub const PAGE: u64 = 4096;

/// Host memory behind its IOMMU.
pub trait Host {
    /// Reads `out.len()` bytes from `iova` on as `function`. False: refused, `out` means nothing.
    fn read(&mut self, function: u16, iova: u64, out: &mut [u8]) -> bool;
    /// The same of what may be out of reach: a refusal is no error of the card's.
    fn try_read(&mut self, function: u16, iova: u64, out: &mut [u8]) -> bool {
        self.read(function, iova, out)
    }
    /// Writes `data`; its last eight bytes become visible after the others, as drivers that poll the end of a record expect. False: refused.
    fn write(&mut self, function: u16, iova: u64, data: &[u8]) -> bool;
    /// Writes bytes of which nobody looks for the last ones first: payload, behind which something else will say that it is there. False: refused.
    fn place(&mut self, function: u16, iova: u64, data: &[u8]) -> bool {
        self.write(function, iova, data)
    }
}
