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

impl GuestMemory<'_> {
    fn fill(&mut self, at: u64, into: &mut [u8]) -> Result<(), Unmapped> {
        at.checked_add(into.len() as u64).ok_or(Unmapped)?;
        self.iommu.read_through(self.function, at, into).map_err(|_| Unmapped)
    }
}

impl Memory for GuestMemory<'_> {
    /// A record is read again until two readings agree, since it is copied in pieces while its driver may write it: the driver writes what makes a descriptor good last, so a second reading that
    /// sees that, too, began when all of it was there.
    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), Unmapped> {
        // What has been written before is visible before this is read: a driver's event, say, behind a used index.
        fence(Ordering::SeqCst);
        self.fill(at, into)?;
        if into.len() <= 2 || into.len() > LINE {
            return Ok(());
        }
        let mut again = [0; LINE];
        for _ in 0..TRIES {
            let again = &mut again[..into.len()];
            fence(Ordering::SeqCst);
            self.fill(at, again)?;
            if again == into {
                break;
            }
            into.copy_from_slice(again);
        }
        Ok(())
    }

    fn write(&mut self, at: u64, from: &[u8]) -> Result<(), Unmapped> {
        at.checked_add(from.len() as u64).ok_or(Unmapped)?;
        self.iommu.write_through(self.function, at, from, false).map_err(|_| Unmapped)?;
        fence(Ordering::SeqCst);
        Ok(())
    }
}
