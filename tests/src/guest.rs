//! Memory of a virtio function's guest, which its card reads and writes.
use ferric_driver::device::{Device, DmaAccess};
use ferric_driver::mapping::Mapping;
use ferric_driver::Error;
use std::sync::Arc;

const PAGE: usize = 4096;

/// Memory of a function's guest, in one piece for the card.
pub struct Guest {
    memory: Vec<u8>,
    at: usize,
    mapping: Mapping,
    device: Arc<dyn Device>,
}

impl Guest {
    /// So many bytes, zero. Errors: the device's, which cannot map them.
    pub fn new(device: &Arc<dyn Device>, bytes: u64) -> Result<Self, Error> {
        let mut memory = vec![0u8; bytes as usize + PAGE];
        let at = memory.as_ptr().align_offset(PAGE);
        // SAFETY: it lives as long as the mapping, and only one thread runs the cards and the drivers.
        let mapping = unsafe { device.map(memory.as_mut_ptr().wrapping_add(at), bytes as usize, DmaAccess::ReadWrite, true) }?;
        Ok(Self { memory, at, mapping, device: device.clone() })
    }

    /// Where it begins for the card.
    pub fn base(&self) -> u64 {
        self.mapping.runs()[0].iova
    }

    fn place(&self, at: u64) -> *mut u8 {
        let offset = (at - self.base()) as usize;
        assert!(offset < self.memory.len() - PAGE, "{at:#x} is beyond the memory");
        self.memory.as_ptr().wrapping_add(self.at + offset).cast_mut()
    }

    /// Writes bytes at an address of the card's.
    pub fn put(&mut self, at: u64, bytes: &[u8]) {
        // SAFETY: inside of the memory; nobody else runs.
        (0..).zip(bytes).for_each(|(n, byte)| unsafe { self.place(at + n).write_volatile(*byte) });
    }

    /// The bytes at an address of the card's.
    pub fn get(&mut self, at: u64, bytes: usize) -> Vec<u8> {
        // SAFETY: as above.
        (0..bytes as u64).map(|n| unsafe { self.place(at + n).read_volatile() }).collect()
    }

    /// Two bytes, the lower one first.
    pub fn word(&mut self, at: u64) -> u16 {
        let bytes = self.get(at, 2);
        u16::from_le_bytes([bytes[0], bytes[1]])
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.device.unmap(&self.mapping);
    }
}
