//! The IOMMU: the only way from the card to process memory. One domain per card function; what is not mapped faults.
use crate::pci::dma::ClientMap;
use crate::peer::PeerMemory;
use crate::Rng;
use rand::seq::SliceRandom;
use rand::{Rng as _, SeedableRng};
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// An access the IOMMU refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// PCI function of the access.
    pub function: u16,
    /// First refused address.
    pub iova: u64,
    /// Write access.
    pub write: bool,
}

/// What lies behind a page.
enum Target {
    Memory(*mut u8),
    /// Another device's memory from an offset on.
    Peer(Arc<PeerMemory>, u64),
}

struct Page {
    target: Target,
    writable: bool,
}

/// Page tables of one card, by function.
pub struct Iommu {
    pages: HashMap<(u16, u64), Page>,
    next_page: u64,
    rng: Rng,
    faults: Vec<Fault>,
    fault_count: u64,
    /// Functions whose memory is a vfio-user client's.
    clients: HashMap<u16, ClientMap>,
    fresh: Vec<Fault>,
}

// The pointers are plain memory that `map`'s caller promised to keep.
unsafe impl Send for Iommu {}

impl Iommu {
    /// An empty IOMMU whose address choices follow `seed`.
    pub fn new(seed: u64) -> Self {
        Self { pages: HashMap::new(), next_page: 0x10_0000, rng: Rng::seed_from_u64(seed), faults: Vec::new(), fault_count: 0, clients: HashMap::new(), fresh: Vec::new() }
    }

    /// Maps the pages of `ptr..ptr + len` (both page aligned) and returns their IOVAs: in one run when `contiguous`, else scattered
    /// so that nothing can lean on neighbours.
    ///
    /// # Safety
    /// The memory must stay allocated until [`Iommu::unmap`].
    pub unsafe fn map(&mut self, function: u16, ptr: *mut u8, len: usize, writable: bool, contiguous: bool) -> Vec<u64> {
        // SAFETY: inside the caller's range.
        self.map_pages(function, len, writable, contiguous, |i| Target::Memory(unsafe { ptr.add(i * PAGE as usize) }))
    }

    /// The same for the pages of another device's memory from `offset` on, scattered.
    pub fn map_peer(&mut self, function: u16, peer: &Arc<PeerMemory>, offset: u64, len: usize, writable: bool) -> Vec<u64> {
        self.map_pages(function, len, writable, false, |i| Target::Peer(peer.clone(), offset + i as u64 * PAGE))
    }

    fn map_pages(&mut self, function: u16, len: usize, writable: bool, contiguous: bool, target: impl Fn(usize) -> Target) -> Vec<u64> {
        let n = (len as u64).div_ceil(PAGE);
        // A hole behind every mapping: overruns fault.
        let room = if contiguous { n + 1 } else { 2 * n + 1 };
        // Tables and rings may want alignment beyond a page; a fresh 64 KiB line serves all.
        let first = self.next_page.next_multiple_of(16);
        self.next_page = first + room;
        let mut slots: Vec<u64> = if contiguous { (first..first + n).collect() } else { (first..first + 2 * n).collect() };
        if !contiguous {
            slots.shuffle(&mut self.rng);
        }
        // High bits in use, so that truncation of addresses shows.
        let high = if self.rng.gen_bool(0.5) { 0x1_0000_0000u64 } else { 0x7f_0000_0000 };
        slots
            .into_iter()
            .take(n as usize)
            .enumerate()
            .map(|(i, slot)| {
                let page = high + slot;
                self.pages.insert((function, page), Page { target: target(i), writable });
                page * PAGE
            })
            .collect()
    }

    /// Removes mappings.
    pub fn unmap(&mut self, function: u16, iovas: &[u64]) {
        for iova in iovas {
            self.pages.remove(&(function, iova / PAGE));
        }
    }

    /// What `access` says of the page of `iova`, if it may be reached so; a fault if it may not, or `access` says false.
    fn reach(&mut self, function: u16, iova: u64, write: bool, access: impl FnOnce(&Target) -> bool) -> Result<(), Fault> {
        match self.pages.get(&(function, iova / PAGE)) {
            Some(p) if (p.writable || !write) && access(&p.target) => Ok(()),
            _ => Err(self.fault(function, iova, write)),
        }
    }

    fn fault(&mut self, function: u16, iova: u64, write: bool) -> Fault {
        let fault = Fault { function, iova, write };
        self.fault_count += 1;
        if self.faults.len() < 1000 {
            self.faults.push(fault);
        }
        if self.fresh.len() < 64 {
            self.fresh.push(fault);
        }
        fault
    }

    /// The domain of a function that a vfio-user client drives. From the first call on the function reaches nothing but what is
    /// mapped there.
    pub fn client(&mut self, function: u16) -> &mut ClientMap {
        self.clients.entry(function).or_default()
    }

    /// Faults since the last call, the first 64 of them.
    pub fn take_fresh(&mut self) -> Vec<Fault> {
        std::mem::take(&mut self.fresh)
    }

    /// Reads bytes within one page.
    pub fn read(&mut self, function: u16, iova: u64, out: &mut [u8]) -> Result<(), Fault> {
        if let Some(client) = self.clients.get_mut(&function) {
            return if client.read(iova, out) { Ok(()) } else { Err(self.fault(function, iova, false)) };
        }
        let at = iova % PAGE;
        self.reach(function, iova, false, |target| match target {
            // SAFETY: mapped, within one page.
            Target::Memory(p) => {
                unsafe { std::ptr::copy_nonoverlapping(p.add(at as usize), out.as_mut_ptr(), out.len()) };
                true
            }
            Target::Peer(peer, offset) => peer.read(offset + at, out),
        })
    }

    /// Writes the bytes of one beat selected by `strobe` (bit per byte), within one page.
    pub fn write(&mut self, function: u16, iova: u64, data: &[u8], strobe: u64) -> Result<(), Fault> {
        if let Some(client) = self.clients.get_mut(&function) {
            return if client.write(iova, data, strobe) { Ok(()) } else { Err(self.fault(function, iova, true)) };
        }
        let at = iova % PAGE;
        self.reach(function, iova, true, |target| match target {
            Target::Memory(p) => {
                // SAFETY: mapped, within one page.
                unsafe { write_beat(p.add(at as usize), data, strobe) };
                true
            }
            Target::Peer(peer, offset) => peer.write(offset + at, data, strobe),
        })
    }

    /// Faults so far.
    pub fn fault_count(&self) -> u64 {
        self.fault_count
    }

    /// The first faults, with their addresses.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// True when the page of `iova` is mapped for `function`.
    pub fn is_mapped(&self, function: u16, iova: u64) -> bool {
        match self.clients.get(&function) {
            Some(client) => client.is_mapped(iova, 1),
            None => self.pages.contains_key(&(function, iova / PAGE)),
        }
    }
}

/// # Safety
/// `p` takes `data.len()` bytes.
unsafe fn write_beat(p: *mut u8, data: &[u8], strobe: u64) {
    let full = if data.len() == 64 { u64::MAX } else { (1 << data.len()) - 1 };
    if strobe == full {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), p, data.len()) };
    } else {
        for (i, b) in data.iter().enumerate().filter(|(i, _)| strobe >> i & 1 == 1) {
            // SAFETY: as above; volatile because drivers poll bytes of it.
            unsafe { p.add(i).write_volatile(*b) };
        }
    }
}
