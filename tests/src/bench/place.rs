//! Memory whose place is chosen, not left to the allocator: what the cards see of it is the same in every run.
use crate::pair::{Error, Pair};
use ferric_driver::{Access, MemoryRegion};
use memmap2::MmapMut;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the addresses that requests and peers name begin.
const BASE: u64 = 0x10_0000_0000;
/// Addresses are multiples of this.
const STEP: u64 = 2 << 20;

/// A registered region of zeros. It begins with a page, and the address by which the cards know it does not depend on the process's layout.
pub struct Placed {
    region: MemoryRegion,
    /// Unmapped after the region has ended.
    _memory: MmapMut,
}

impl Placed {
    /// `len` bytes of `host`.
    pub fn new(pair: &Pair, host: usize, len: usize) -> Result<Self, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(BASE);
        let mut memory = MmapMut::map_anon(len).map_err(|e| Error::Stuck(format!("{len} bytes: {e}")))?;
        let start = NEXT.fetch_add((len as u64).next_multiple_of(STEP), Ordering::Relaxed);
        // SAFETY: the memory outlives the region, which is dropped first.
        let region = unsafe { pair.hosts[host].pd.register_raw(memory.as_mut_ptr(), len, start, Access::ALL) }?;
        Ok(Self { region, _memory: memory })
    }
}

impl Deref for Placed {
    type Target = MemoryRegion;

    fn deref(&self) -> &MemoryRegion {
        &self.region
    }
}
