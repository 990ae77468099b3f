//! The IOMMU between the device and the driver's memory: what Linux maps by its DMA interface, and in which direction, is what the device may touch.
use ferric_model::virtio::{Memory, Unmapped};
use std::collections::BTreeMap;

struct Mapping {
    at: *mut u8,
    bytes: u64,
    /// 1: the device reads it; 2: it writes it; 0: both (Linux' `dma_data_direction`).
    direction: i32,
}

/// Mappings by their bus address.
#[derive(Default)]
pub struct Iommu {
    mappings: BTreeMap<u64, Mapping>,
    next: u64,
    /// Accesses that were refused.
    pub faults: u64,
}

impl Iommu {
    /// Maps memory of the driver; its bus address. It lies in a page as the memory does, and no page in front of it or behind it is mapped.
    pub fn map(&mut self, at: *mut u8, bytes: u64, direction: i32) -> u64 {
        // Bus addresses of more than 32 bits, never the same twice.
        let address = (1 << 40) + self.next * 4096 + at as u64 % 4096;
        self.next += bytes.div_ceil(4096) + 2;
        self.mappings.insert(address, Mapping { at, bytes, direction });
        address
    }

    /// The mapping that begins here ends.
    pub fn unmap(&mut self, address: u64, bytes: u64) {
        let mapping = self.mappings.remove(&address).expect("Linux unmaps what it has mapped");
        assert_eq!(mapping.bytes, bytes, "Linux unmaps as much as it has mapped");
    }

    /// Mappings that there are.
    pub fn len(&self) -> usize {
        self.mappings.len()
    }

    fn reach(&mut self, at: u64, bytes: usize, direction: i32) -> Result<*mut u8, Unmapped> {
        let found = self.mappings.range(..=at).next_back().map(|(address, mapping)| (at - address, mapping));
        let inside = found.filter(|(offset, m)| offset + bytes as u64 <= m.bytes && (m.direction == 0 || m.direction == direction));
        match inside {
            Some((offset, mapping)) => Ok(mapping.at.wrapping_add(offset as usize)),
            None => {
                self.faults += 1;
                Err(Unmapped)
            }
        }
    }
}

impl Memory for Iommu {
    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), Unmapped> {
        let from = self.reach(at, into.len(), 1)?;
        // SAFETY: Linux has mapped these bytes, and has not unmapped them; nobody else runs meanwhile.
        unsafe { from.copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    fn write(&mut self, at: u64, from: &[u8]) -> Result<(), Unmapped> {
        let to = self.reach(at, from.len(), 2)?;
        // SAFETY: as above.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }
}
