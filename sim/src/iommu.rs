//! The IOMMU: the only way from the card to process memory. One domain per card function; what is not mapped faults.
use crate::pci::dma::ClientMap;
use crate::peer::PeerMemory;
use crate::watch::Watch;
use crate::Rng;
use ferric_driver::mapping::Mapping;
use rand::seq::SliceRandom;
use rand::{Rng as _, SeedableRng};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::atomic::{fence, Ordering};
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

/// What lies behind a mapped piece.
enum Target {
    Memory(*mut u8),
    /// Another device's memory from an offset on.
    Peer(Arc<PeerMemory>, u64),
}

impl Target {
    fn behind(&self, bytes: u64) -> Self {
        match self {
            // Inside what the caller of `map` has promised.
            Self::Memory(p) => Self::Memory(p.wrapping_add(bytes as usize)),
            Self::Peer(peer, offset) => Self::Peer(peer.clone(), offset + bytes),
        }
    }
}

/// Pages one behind the other.
struct Piece {
    bytes: u64,
    target: Target,
    writable: bool,
}

/// Page tables of one card, by function.
pub struct Iommu {
    /// By function and first address.
    pieces: BTreeMap<(u16, u64), Piece>,
    /// Bytes of memory that stay together.
    together: u64,
    next_page: u64,
    rng: Rng,
    faults: Vec<Fault>,
    fault_count: u64,
    /// Functions whose memory is a vfio-user client's.
    clients: HashMap<u16, ClientMap>,
    fresh: Vec<Fault>,
    /// What the card may no longer touch. Pages that are unmapped are watched without being asked for.
    pub watch: Watch,
}

// The pointers are plain memory that `map`'s caller promised to keep.
unsafe impl Send for Iommu {}

impl Iommu {
    /// An empty IOMMU whose address choices follow `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            pieces: BTreeMap::new(),
            together: PAGE,
            next_page: 0x10_0000,
            rng: Rng::seed_from_u64(seed),
            faults: Vec::new(),
            fault_count: 0,
            clients: HashMap::new(),
            fresh: Vec::new(),
            watch: Watch::default(),
        }
    }

    /// From now on memory is scattered in pieces of so many bytes (a power of two, a page at least) that begin where their addresses in the process, or offsets in the
    /// device, do: as a host does whose memory comes in huge pages.
    pub fn keep_together(&mut self, bytes: u64) {
        assert!(bytes.is_power_of_two() && bytes >= PAGE, "{bytes} bytes are no page");
        self.together = bytes;
    }

    /// Maps the pages of `ptr..ptr + len` (both page aligned) and returns their IOVAs: in one run when `contiguous`, else scattered
    /// so that nothing can lean on neighbours ([`Iommu::keep_together`]).
    ///
    /// # Safety
    /// The memory must stay allocated until [`Iommu::unmap`].
    pub unsafe fn map(&mut self, function: u16, ptr: *mut u8, len: usize, writable: bool, contiguous: bool) -> Mapping {
        self.place(function, ptr as u64, len as u64, writable, contiguous, &Target::Memory(ptr))
    }

    /// The same for the pages of another device's memory from `offset` on, scattered.
    pub fn map_peer(&mut self, function: u16, peer: &Arc<PeerMemory>, offset: u64, len: usize, writable: bool) -> Mapping {
        self.place(function, offset, len as u64, writable, false, &Target::Peer(peer.clone(), offset))
    }

    /// `at`: where the memory stands in its own address space.
    fn place(&mut self, function: u16, at: u64, len: u64, writable: bool, contiguous: bool, target: &Target) -> Mapping {
        let len = len.next_multiple_of(PAGE);
        // Bytes of a piece's place; the memory's pieces are cut where its addresses are multiples of that.
        let room = if contiguous { len } else { self.together };
        let n = if contiguous { 1 } else { (at % room + len).div_ceil(room) };
        // Tables and rings may want alignment beyond a page; a fresh 64 KiB line serves all.
        let align = if contiguous { 16 } else { 16.max(room / PAGE) };
        let first = self.next_page.next_multiple_of(align);
        let mut slots: Vec<u64> = if contiguous { vec![0] } else { (0..2 * n).collect() };
        // A hole behind every mapping: overruns fault.
        self.next_page = first + slots.len() as u64 * room / PAGE + 1;
        if !contiguous {
            slots.shuffle(&mut self.rng);
        }
        // High bits in use, so that truncation of addresses shows.
        let high = if self.rng.gen_bool(0.5) { 0x1_0000_0000u64 } else { 0x7f_0000_0000 };
        let mut done = 0;
        Mapping::new(slots.into_iter().take(n as usize).map(|slot| {
            let within = if contiguous { 0 } else { (at + done) % room };
            let bytes = (room - within).min(len - done);
            let iova = (high.next_multiple_of(align) + first) * PAGE + slot * room + within;
            self.pieces.insert((function, iova), Piece { bytes, target: target.behind(done), writable });
            done += bytes;
            (iova, bytes)
        }))
    }

    /// Removes mappings.
    pub fn unmap(&mut self, function: u16, mapping: &Mapping) {
        for run in mapping.runs() {
            let end = run.iova + run.len;
            // Pieces that happen to be neighbours are one run.
            while let Some((key, _)) = self.pieces.range((function, run.iova)..(function, end)).next() {
                let key = *key;
                if let Some(piece) = self.pieces.remove(&key) {
                    self.watch.retire(function, key.1..key.1 + piece.bytes);
                }
            }
        }
    }

    fn piece(&self, function: u16, iova: u64) -> Option<(u64, &Piece)> {
        let ((_, start), piece) = self.pieces.range((function, 0)..=(function, iova)).next_back()?;
        (iova - start < piece.bytes).then_some((iova - start, piece))
    }

    /// What `access` says of the memory at `iova`, if it may be reached so; a fault if it may not, or `access` says false.
    fn reach(&mut self, function: u16, iova: u64, write: bool, access: impl FnOnce(&Target) -> bool) -> Result<(), Fault> {
        match self.piece(function, iova) {
            Some((at, p)) if (p.writable || !write) && access(&p.target.behind(at)) => Ok(()),
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

    /// Reads bytes within one page: what they are at this moment.
    pub fn read(&mut self, function: u16, iova: u64, out: &mut [u8]) -> Result<(), Fault> {
        if let Some(client) = self.clients.get_mut(&function) {
            return if client.read(iova, out) { Ok(()) } else { Err(self.fault(function, iova, false)) };
        }
        self.watch.look(function, iova..iova + out.len() as u64, false);
        self.reach(function, iova, false, |target| match target {
            // SAFETY: mapped, within one page.
            Target::Memory(p) => {
                unsafe { std::ptr::copy_nonoverlapping(*p, out.as_mut_ptr(), out.len()) };
                true
            }
            Target::Peer(peer, offset) => peer.read(*offset, out),
        })
    }

    /// Writes the bytes of one beat selected by `strobe` (bit per byte), within one page.
    pub fn write(&mut self, function: u16, iova: u64, data: &[u8], strobe: u64) -> Result<(), Fault> {
        if let Some(client) = self.clients.get_mut(&function) {
            return if client.write(iova, data, strobe) { Ok(()) } else { Err(self.fault(function, iova, true)) };
        }
        if strobe != 0 {
            let (first, end) = (strobe.trailing_zeros() as u64, 64 - strobe.leading_zeros() as u64);
            self.watch.look(function, iova + first..iova + end, true);
        }
        self.reach(function, iova, true, |target| match target {
            Target::Memory(p) => {
                // SAFETY: mapped, within one page.
                unsafe { write_beat(*p, data, strobe) };
                true
            }
            Target::Peer(peer, offset) => peer.write(*offset, data, strobe),
        })
    }

    /// Writes bytes within one page, the last of them behind the others.
    fn store(&mut self, function: u16, iova: u64, data: &[u8]) -> Result<(), Fault> {
        self.watch.look(function, iova..iova + data.len() as u64, true);
        self.reach(function, iova, true, |target| match target {
            Target::Memory(p) => {
                // SAFETY: mapped, within one page.
                unsafe { write_bytes(*p, data) };
                true
            }
            Target::Peer(peer, offset) => peer.write_all(*offset, data),
        })
    }

    /// Reads bytes of any number of pages: at once where they are one mapping of a client's.
    pub fn read_through(&mut self, function: u16, iova: u64, out: &mut [u8]) -> Result<(), Fault> {
        if self.clients.get(&function).is_some_and(|client| client.spans(iova, out.len())) {
            return self.read(function, iova, out);
        }
        pages(iova, out.len()).try_for_each(|(at, range)| self.read(function, at, &mut out[range]))
    }

    /// All of the bytes are mapped for the card to read.
    pub fn can_read(&self, function: u16, iova: u64, len: usize) -> bool {
        match self.clients.get(&function) {
            Some(client) => client.is_mapped(iova, len),
            None => pages(iova, len).all(|(at, _)| self.piece(function, at).is_some()),
        }
    }

    /// Writes bytes of any number of pages, the last of them behind the others. `ordered`: somebody may look for them; a client's are written in one go otherwise.
    pub fn write_through(&mut self, function: u16, iova: u64, data: &[u8], ordered: bool) -> Result<(), Fault> {
        let Some(client) = self.clients.get_mut(&function) else {
            return pages(iova, data.len()).try_for_each(|(at, range)| self.store(function, at, &data[range]));
        };
        let whole = client.spans(iova, data.len());
        let mut store = |at, bytes: &[u8]| if client.store(at, bytes, ordered) { Ok(()) } else { Err(at) };
        let done = if whole { store(iova, data) } else { pages(iova, data.len()).try_for_each(|(at, range)| store(at, &data[range])) };
        done.map_err(|at| self.fault(function, at, true))
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
            None => self.piece(function, iova).is_some(),
        }
    }
}

/// # Safety
/// `p` takes `data.len()` bytes and is a multiple of eight if they are.
unsafe fn write_beat(p: *mut u8, data: &[u8], strobe: u64) {
    let full = if data.len() == 64 { u64::MAX } else { (1 << data.len()) - 1 };
    match data.split_last_chunk::<8>() {
        // Drivers poll the end of a record: it is written after the rest, which a copy of the whole does not promise.
        Some((body, end)) if strobe == full => {
            // SAFETY: the caller's promise.
            unsafe { std::ptr::copy_nonoverlapping(body.as_ptr(), p, body.len()) };
            fence(Ordering::Release);
            // SAFETY: as above.
            unsafe { p.add(body.len()).cast::<u64>().write_volatile(u64::from_ne_bytes(*end)) };
        }
        _ => {
            for (i, b) in data.iter().enumerate().filter(|(i, _)| strobe >> i & 1 == 1) {
                // SAFETY: as above; volatile because drivers poll bytes of it.
                unsafe { p.add(i).write_volatile(*b) };
            }
        }
    }
}

/// `len` bytes from `iova` on, cut at the borders of pages: address and range of each piece.
fn pages(iova: u64, len: usize) -> impl Iterator<Item = (u64, Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let here = iova.wrapping_add(at as u64);
        let n = ((PAGE - here % PAGE) as usize).min(len - at);
        at += n;
        (n > 0).then_some((here, at - n..at))
    })
}

/// Bytes that are written one by one behind the others: the end of a record, or of a message that a program polls.
const END: usize = 8;

/// # Safety
/// `p` takes `data.len()` bytes.
unsafe fn write_bytes(p: *mut u8, data: &[u8]) {
    let (body, end) = data.split_at(data.len().saturating_sub(END));
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(body.as_ptr(), p, body.len()) };
    fence(Ordering::Release);
    for (i, b) in end.iter().enumerate() {
        // SAFETY: as above; volatile because drivers poll bytes of it.
        unsafe { p.add(body.len() + i).write_volatile(*b) };
    }
}
