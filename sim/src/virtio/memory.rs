//! A guest's memory as a virtio function of a served card reaches it.
use crate::iommu::Iommu;
use ferric_model::virtio::{Memory, Unmapped};
use std::sync::atomic::{fence, Ordering};

/// Longest access that is read in one moment: a line of the host's memory, in which descriptors, indices and events lie.
const LINE: usize = 64;
/// How often a line is read at most until it reads the same twice. Whoever writes it without end gets what was read last.
const TRIES: usize = 16;

/// Memory behind the IOMMU, as one function sees it.
pub struct GuestMemory<'a> {
    /// The card's IOMMU.
    pub iommu: &'a mut Iommu,
    /// The function.
    pub function: u16,
}

/// Reads what a driver on another processor may be writing, by `fill`, which copies it in pieces. A record is read again until two readings agree: the driver writes what makes a descriptor good last, so
/// a second reading that sees that, too, began when all of it was there.
pub fn read_whole(into: &mut [u8], mut fill: impl FnMut(&mut [u8]) -> Result<(), Unmapped>) -> Result<(), Unmapped> {
    // What has been written before is visible before this is read: a driver's event, say, behind a used index.
    fence(Ordering::SeqCst);
    fill(into)?;
    if into.len() <= 2 || into.len() > LINE {
        return Ok(());
    }
    let mut again = [0; LINE];
    for _ in 0..TRIES {
        let again = &mut again[..into.len()];
        fence(Ordering::SeqCst);
        fill(again)?;
        if again == into {
            break;
        }
        into.copy_from_slice(again);
    }
    Ok(())
}

impl GuestMemory<'_> {
    fn fill(&mut self, at: u64, into: &mut [u8]) -> Result<(), Unmapped> {
        at.checked_add(into.len() as u64).ok_or(Unmapped)?;
        self.iommu.read_through(self.function, at, into).map_err(|_| Unmapped)
    }
}

impl Memory for GuestMemory<'_> {
    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), Unmapped> {
        read_whole(into, |into| self.fill(at, into))
    }

    fn write(&mut self, at: u64, from: &[u8]) -> Result<(), Unmapped> {
        at.checked_add(from.len() as u64).ok_or(Unmapped)?;
        self.iommu.write_through(self.function, at, from, false).map_err(|_| Unmapped)?;
        fence(Ordering::SeqCst);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pci::dma::Mapping;
    use std::fs::File;
    use std::os::fd::{AsRawFd, FromRawFd};
    use std::sync::atomic::AtomicU64;

    const ROUNDS: u64 = 5000;

    /// A driver writes the halves of a descriptor one behind the other, the one that makes it good last: whoever sees that sees the other, too.
    #[test]
    fn a_descriptor_is_never_half_written() {
        // SAFETY: a name without end of its own; the descriptor is new and nobody else's.
        let file = unsafe { File::from_raw_fd(libc::memfd_create(c"guest".as_ptr(), 0)) };
        file.set_len(4096).unwrap();
        // SAFETY: a new mapping of that file, which is never unmapped.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        assert_ne!(page, libc::MAP_FAILED);
        // SAFETY: two aligned words of that page, which atomics alone touch.
        let [first, last] = [0, 1].map(|n| unsafe { &*page.cast::<AtomicU64>().add(n) });
        let mut iommu = Iommu::new(1);
        let map = iommu.client(4);
        map.enabled = true;
        map.map(0x1000, Mapping { size: 4096, backing: Some((file, 0)), readable: true, writable: true }).unwrap();
        let seen = AtomicU64::new(0);
        std::thread::scope(|s| {
            s.spawn(|| {
                for n in 1..=ROUNDS {
                    first.store(n, Ordering::Relaxed);
                    last.store(n, Ordering::Release);
                    while seen.load(Ordering::Relaxed) < n {
                        std::thread::yield_now();
                    }
                }
            });
            let mut memory = GuestMemory { iommu: &mut iommu, function: 4 };
            for n in 1..=ROUNDS {
                let mut bytes = [0; 16];
                while bytes[8..] != n.to_le_bytes() {
                    memory.read(0x1000, &mut bytes).unwrap();
                }
                let whole = bytes[..8] == n.to_le_bytes();
                // First, so that the other thread ends whatever is found.
                seen.store(if whole { n } else { ROUNDS }, Ordering::Relaxed);
                assert!(whole, "round {n}: {bytes:?}");
            }
        });
        assert_eq!(GuestMemory { iommu: &mut iommu, function: 4 }.read(u64::MAX - 3, &mut [0; 16]), Err(Unmapped));
    }
}
