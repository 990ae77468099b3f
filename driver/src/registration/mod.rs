//! How programs that move many buffers register memory. Registering costs an admin command and pins pages, so that distributed training
//! frameworks do it by one of three policies:
//!
//! | policy | when | per message |
//! |---|---|---|
//! | [`Pool`] | buffers come and go, the program asks for them here | nothing |
//! | [`Bounce`] | buffers are the program's and short-lived, messages small | one copy |
//! | [`Registered`] | buffers are the program's and stay, such as the tensors of a model | nothing after the first |
//!
//! What each costs against registering every time: the `registration` figures of `./scripts/bench`.
mod free;
#[cfg(test)]
mod tests;

use crate::alloc::room;
use crate::error::{Error, Result};
use crate::qp::{sge, LocalSge};
use crate::{Access, MemoryRegion, Pd};
use free::FreeList;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Pieces begin at multiples of this many bytes: a beat of the widest card and a cache line.
pub const ALIGN: usize = 64;

struct Arena {
    region: MemoryRegion,
    free: Mutex<FreeList>,
}

/// The list is whole after every statement that changes it, also where a thread panicked with the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One large region, registered once, from which pieces are handed out. Clones share it.
#[derive(Clone)]
pub struct Pool(Arc<Arena>);

impl Pool {
    /// `bytes` of zeroed memory. Errors: [`Error::NoMemory`]; as [`Pd::register`].
    pub fn new(pd: &Pd, bytes: usize, access: Access) -> Result<Self> {
        let mut memory = room(bytes)?;
        memory.resize(bytes, 0);
        let region = pd.register(memory.into_boxed_slice(), access)?;
        // Offsets of pieces count from the first aligned address.
        let skip = (region.addr().next_multiple_of(ALIGN as u64) - region.addr()) as usize;
        let free = Mutex::new(FreeList::new(skip, bytes.saturating_sub(skip)));
        Ok(Self(Arc::new(Arena { region, free })))
    }

    /// A piece of `len` bytes with whatever was there before; it goes back when it is dropped. None: no room in one piece, or `len` is 0.
    pub fn take(&self, len: usize) -> Option<Piece> {
        let offset = lock(&self.0.free).take(len.checked_next_multiple_of(ALIGN)?)?;
        Some(Piece { arena: self.0.clone(), offset, len })
    }

    /// Bytes that nobody has, in any number of pieces.
    pub fn available(&self) -> usize {
        lock(&self.0.free).available()
    }
}

/// Registered memory on loan. It must outlive the work requests that name it: as with every region, the card does not know of its end.
pub struct Piece {
    arena: Arc<Arena>,
    offset: usize,
    len: usize,
}

impl Piece {
    /// Address of the first byte, for peers.
    pub fn addr(&self) -> u64 {
        self.arena.region.addr() + self.offset as u64
    }
    /// Bytes.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Never true.
    pub fn is_empty(&self) -> bool {
        false
    }
    /// Key for peers.
    pub fn rkey(&self) -> u32 {
        self.arena.region.rkey()
    }
    /// The first `len` bytes as an entry of a work request. Panics outside the piece.
    pub fn sge(&self, len: usize) -> LocalSge {
        assert!(len <= self.len, "outside the piece");
        sge(self.addr(), len as u32, self.arena.region.lkey())
    }
    /// Copies `bytes` into the piece at `offset`. Panics outside the piece.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset.checked_add(bytes.len()).is_some_and(|e| e <= self.len), "outside the piece");
        self.arena.region.write(self.offset + offset, bytes);
    }
    /// Copies bytes out of the piece from `offset`. Panics outside the piece.
    pub fn read(&self, offset: usize, out: &mut [u8]) {
        assert!(offset.checked_add(out.len()).is_some_and(|e| e <= self.len), "outside the piece");
        self.arena.region.read(self.offset + offset, out);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        lock(&self.arena.free).give(self.offset, self.len.next_multiple_of(ALIGN));
    }
}

/// Blocks of one size into which messages are copied on their way out, or from which they are copied when they have come.
#[derive(Clone)]
pub struct Bounce {
    pool: Pool,
    block: usize,
}

impl Bounce {
    /// `blocks` blocks of `block` bytes. Errors: a block of no bytes or a size beyond memory; else as [`Pd::register`].
    pub fn new(pd: &Pd, block: usize, blocks: usize, access: Access) -> Result<Self> {
        let bytes = block.checked_next_multiple_of(ALIGN).and_then(|b| b.checked_mul(blocks)).and_then(|b| b.checked_add(ALIGN));
        let bytes = bytes.filter(|_| block > 0 && blocks > 0).ok_or(Error::Invalid("bounce blocks have at least one byte each and fit into memory"))?;
        Ok(Self { pool: Pool::new(pd, bytes, access)?, block })
    }

    /// A block for a receive, or an answer. None: all are out.
    pub fn take(&self) -> Option<Piece> {
        self.pool.take(self.block)
    }

    /// A block with a copy of `bytes`, to be sent with [`Piece::sge`]`(bytes.len())`. None: all are out, or `bytes` is longer than a block.
    pub fn copy(&self, bytes: &[u8]) -> Option<Piece> {
        let piece = self.take().filter(|p| bytes.len() <= p.len())?;
        piece.write(0, bytes);
        Some(piece)
    }
}

/// Regions over the program's own buffers, each registered when it is met first and kept.
pub struct Registered {
    pd: Pd,
    access: Access,
    /// By address of the first byte. Those that another one covers are not here.
    regions: Mutex<BTreeMap<usize, Arc<MemoryRegion>>>,
}

impl Registered {
    /// Regions of `pd`, all with the same rights.
    pub fn new(pd: Pd, access: Access) -> Self {
        Self { pd, access, regions: Mutex::default() }
    }

    /// A region that covers `ptr..ptr + len`: a known one, or a new one of just that. Errors: as [`Pd::register_raw`].
    ///
    /// # Safety
    /// As [`Pd::register_raw`], until the region is forgotten ([`Registered::forget`]) and the last copy of it dropped.
    pub unsafe fn region(&self, ptr: *mut u8, len: usize) -> Result<Arc<MemoryRegion>> {
        let (start, mut regions) = (ptr as usize, lock(&self.regions));
        let end = start.checked_add(len).ok_or(Error::Invalid("a memory region ends below the end of the address space"))?;
        if let Some((at, region)) = regions.range(..=start).next_back() {
            if end - at <= region.len() {
                return Ok(region.clone());
            }
        }
        // SAFETY: the caller's promise is passed on.
        let region = Arc::new(unsafe { self.pd.register_raw(ptr, len, ptr as u64, self.access) }?);
        regions.retain(|at, r| *at < start || at + r.len() > end);
        regions.insert(start, region.clone());
        Ok(region)
    }

    /// Forgets the regions with a byte in `ptr..ptr + len`, as before memory is freed. They end with their last copy.
    pub fn forget(&self, ptr: *const u8, len: usize) {
        let (start, end) = (ptr as usize, (ptr as usize).saturating_add(len));
        lock(&self.regions).retain(|at, r| *at >= end || at + r.len() <= start);
    }

    /// Regions that are kept.
    pub fn len(&self) -> usize {
        lock(&self.regions).len()
    }
    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
