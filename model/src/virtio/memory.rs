//! The guest's memory, as the function sees it through the host's IOMMU.

/// Some byte of an access is not mapped for the function, or its direction is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unmapped;

/// What DMA reaches. An access is whole: it is made as one, or it is refused and changes nothing. An access that runs over the end of the address space is refused.
pub trait Memory {
    /// Reads `into.len()` bytes from the bus address `at` on.
    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), Unmapped>;
    /// Writes `from` to the bus address `at` on.
    fn write(&mut self, at: u64, from: &[u8]) -> Result<(), Unmapped>;
}

/// Reads a record of `N` bytes.
pub fn fetch<const N: usize>(memory: &mut dyn Memory, at: u64) -> Result<[u8; N], Unmapped> {
    let mut bytes = [0; N];
    memory.read(at, &mut bytes)?;
    Ok(bytes)
}
