//! Memory regions: user memory or another device's (dma-buf), mapped page by page, with a page table in DMA memory.
use crate::admin::words;
use crate::device::{Device, DmaAccess};
use crate::dma::{DmaBuffer, PAGE};
use crate::error::{Error, Result};
use crate::function::PdInner;
use crate::mapping::{Mapping, PageSize};
use crate::own;
use ferric_abi::codes::AdminOpcode;
use ferric_abi::context::MrCtx;
use ferric_abi::host::Pte;
use std::ops::{Deref, Range};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;

/// Permissions of a region; local read is always allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Receives may be placed here.
    pub local_write: bool,
    /// The peer may WRITE.
    pub remote_write: bool,
    /// The peer may READ.
    pub remote_read: bool,
    /// The peer may use atomics.
    pub remote_atomic: bool,
    /// The peer may FLUSH (global placement).
    pub remote_flush: bool,
}

impl Access {
    /// Everything.
    pub const ALL: Self = Self { local_write: true, remote_write: true, remote_read: true, remote_atomic: true, remote_flush: true };
    /// Receives only.
    pub const LOCAL_WRITE: Self = Self { local_write: true, remote_write: false, remote_read: false, remote_atomic: false, remote_flush: false };
    /// Local reads only.
    pub const READ_ONLY: Self = Self { local_write: false, remote_write: false, remote_read: false, remote_atomic: false, remote_flush: false };
}

/// What the card knows of registered memory: a key, and where the pages lie. Dropping it takes the key back and unmaps the pages.
pub struct Region {
    pub(crate) pd: Arc<PdInner>,
    pub(crate) index: u32,
    key: u32,
    pub(crate) start: u64,
    pub(crate) len: usize,
    pub(crate) mapping: Mapping,
    pub(crate) laid: Laid,
    /// The card has let go of it already.
    pub(crate) closed: bool,
}

/// How memory lies for the card.
pub(crate) struct Laid {
    /// The card's line.
    pub(crate) line: MrCtx,
    page_size: PageSize,
    /// Where the pages lie; none if they lie one behind the other.
    _table: Option<DmaBuffer>,
}

/// A registered region of this process's memory. The card may read and, with permission, write it at any time, so its bytes are reached
/// through copies ([`MemoryRegion::read`], [`MemoryRegion::write`]), never through references.
pub struct MemoryRegion {
    pub(crate) region: Region,
    /// Freed after the region has been unmapped.
    pub(crate) memory: Memory,
}

impl Deref for MemoryRegion {
    type Target = Region;

    fn deref(&self) -> &Region {
        &self.region
    }
}

/// Bytes of a region: freed with it if they are its own.
pub(crate) struct Memory {
    pub(crate) ptr: *mut u8,
    pub(crate) len: usize,
    pub(crate) owned: bool,
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: made from a box of this length by `register`; nobody else has it.
            drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.ptr, self.len)) });
        }
    }
}

// SAFETY: raw bytes, reached by copies through pointers and never by references: a copy of what the card writes at this moment may be old in one part and
// new in another, as with any registered memory, and completions say when it is whole.
unsafe impl Send for MemoryRegion {}
// SAFETY: as above; threads that write the same bytes at once get what the program made of that.
unsafe impl Sync for MemoryRegion {}

/// What may become of a region, and how it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Only destroyed.
    Ordinary,
    /// The same, but windows may be bound to it.
    Bindable,
    /// Work requests may change it; it begins with a key that works.
    Fast,
    /// The same, but it begins free.
    Free,
}

/// Key variants differ from one registration to the next, so that a stale key misses.
static VARIANT: AtomicU8 = AtomicU8::new(1);

/// The page-table entry of a page at `iova`.
pub(crate) fn entry(iova: u64) -> Pte {
    Pte::default().with_valid(true).with_page(iova / PAGE as u64)
}

fn page_table(device: &Arc<dyn Device>, pages: impl Iterator<Item = u64> + Clone) -> Result<DmaBuffer> {
    let table = DmaBuffer::new(device, pages.clone().count() * Pte::BYTES)?;
    for (i, iova) in pages.enumerate() {
        table.write(i * Pte::BYTES, &entry(iova).0);
    }
    Ok(table)
}

/// Address for peers of the first byte of the page in which `start` lies: of a mapping's first byte.
fn mapped_from(start: u64) -> u64 {
    start & !(PAGE as u64 - 1)
}

pub(crate) fn next_variant() -> u8 {
    VARIANT.fetch_add(1, Ordering::Relaxed)
}

impl Access {
    /// What the card's own mapping of the memory must allow.
    pub(crate) fn dma(self) -> DmaAccess {
        if self.local_write || self.remote_write || self.remote_atomic {
            DmaAccess::ReadWrite
        } else {
            DmaAccess::Read
        }
    }
}

impl Laid {
    /// Memory of `len` bytes from `start` on, as a region whose key ends with `variant`.
    pub(crate) fn new(pd: &PdInner, mapping: &Mapping, start: u64, len: usize, access: Access, mode: Start, variant: u8) -> Result<Self> {
        let page_size = mapping.page_size(mapped_from(start));
        // One behind the other in the card's address space, as an IOMMU lays them: no table, whatever the size, and nothing to miss.
        let direct = matches!(mode, Start::Ordinary | Start::Bindable) && mapping.is_contiguous();
        let table = if direct { None } else { Some(page_table(&pd.ctx.device, mapping.pages(mapped_from(start), start..start + len as u64, page_size))?) };
        let line = MrCtx::default()
            .with_valid(mode != Start::Free)
            .with_local_write(access.local_write)
            .with_remote_write(access.remote_write)
            .with_remote_read(access.remote_read)
            .with_remote_atomic(access.remote_atomic)
            .with_remote_flush(access.remote_flush)
            .with_fast(matches!(mode, Start::Fast | Start::Free))
            .with_bind(mode == Start::Bindable)
            .with_variant(variant)
            .with_pd(pd.id)
            .with_start(start)
            .with_length(len as u64)
            .with_direct(direct)
            .with_page_size(if direct { 0 } else { page_size as u8 })
            .with_table(table.as_ref().map_or(mapping.iova() + start % PAGE as u64, DmaBuffer::iova));
        Ok(Self { line, page_size, _table: table })
    }
}

impl Region {
    /// The region of `len` bytes from `start` on that lies as `mapping` says. It unmaps it in the end; so it does if it fails.
    fn create(pd: &Arc<PdInner>, mapping: Mapping, start: u64, len: usize, access: Access, mode: Start) -> Result<Self> {
        let ctx = &pd.ctx;
        let variant = next_variant();
        let made = Laid::new(pd, &mapping, start, len, access, mode, variant)
            .and_then(|laid| ctx.create("create MR", AdminOpcode::CreateMr, &ctx.mr_ids, &words::<8>(&laid.line.0)).map(|index| (laid, index)));
        match made {
            Ok((laid, index)) => Ok(Self { pd: pd.clone(), index, key: index << 8 | u32::from(variant), start, len, mapping, laid, closed: false }),
            Err(e) => {
                ctx.device.unmap(&mapping);
                Err(e)
            }
        }
    }

    /// As [`crate::Pd::register_dmabuf`].
    pub(crate) fn of_dmabuf(pd: &Arc<PdInner>, buffer: BorrowedFd, offset: u64, len: usize, start: u64, access: Access) -> Result<Self> {
        check(offset, len, start)?;
        let first = offset & !(PAGE as u64 - 1);
        let pages = (offset - first) as usize + len;
        let mapping = pd.ctx.device.map_dmabuf(buffer, first, pages.next_multiple_of(PAGE), access.dma())?;
        Self::create(pd, mapping, start, len, access, Start::Ordinary)
    }

    /// Local key.
    pub fn lkey(&self) -> u32 {
        self.key
    }
    /// Remote key.
    pub fn rkey(&self) -> u32 {
        self.key
    }
    /// Where the pages from that of the first byte on lie for the card.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }
    /// Size of the pages by which the card translates its addresses, unless it lies in one piece.
    pub fn page_size(&self) -> PageSize {
        self.laid.page_size
    }
    /// The pages of a part of it, by the addresses of peers.
    pub(crate) fn pages(&self, part: Range<u64>) -> impl Iterator<Item = u64> + Clone + '_ {
        self.mapping.pages(mapped_from(self.start), part, self.laid.page_size)
    }
    /// Virtual address of the first byte, as work requests name it.
    pub fn addr(&self) -> u64 {
        self.start
    }
    /// Bytes.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Never true.
    pub fn is_empty(&self) -> bool {
        false
    }
}

impl Region {
    /// Takes the key back and unmaps the pages, as a drop does, and says whether the card has done it: it does not while windows are bound to the region, which
    /// stays as it was then.
    pub fn close(&mut self) -> Result<()> {
        if self.closed {
            return Ok(());
        }
        let ctx = &self.pd.ctx;
        ctx.try_destroy("destroy MR", AdminOpcode::DestroyMr, self.index, &ctx.mr_ids)?;
        self.closed = true;
        ctx.device.unmap(&self.mapping);
        Ok(())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        let ctx = &self.pd.ctx;
        ctx.destroy("destroy MR", AdminOpcode::DestroyMr, self.index, &ctx.mr_ids);
        ctx.device.unmap(&self.mapping);
    }
}

/// A region of `len` bytes from `start` on can be made of memory at address or offset `at`.
pub(crate) fn check(at: u64, len: usize, start: u64) -> Result<()> {
    if len == 0 {
        return Err(Error::Invalid("a memory region has at least one byte"));
    }
    if len.checked_add(PAGE).and_then(|l| (l as u64).checked_add(at)).is_none() || start.checked_add(len as u64).is_none() {
        return Err(Error::Invalid("a memory region ends below the end of the address space"));
    }
    if (start ^ at) % PAGE as u64 != 0 {
        return Err(Error::Invalid("a memory region's addresses for peers lie in their pages as the memory lies in its own"));
    }
    Ok(())
}

/// Maps the pages of memory for the card.
///
/// # Safety
/// The memory stays allocated until it is unmapped.
pub(crate) unsafe fn map(pd: &PdInner, ptr: *mut u8, len: usize, access: Access) -> Result<Mapping> {
    let first_page = ptr as usize & !(PAGE - 1);
    let pages_len = (ptr as usize + len).next_multiple_of(PAGE) - first_page;
    // SAFETY: by the caller's promise.
    unsafe { pd.ctx.device.map(first_page as *mut u8, pages_len, access.dma(), false) }
}

impl MemoryRegion {
    /// As [`Region::close`]; memory that the region owns is freed by the drop.
    pub fn close(&mut self) -> Result<()> {
        self.region.close()
    }

    pub(crate) fn register(pd: &Arc<PdInner>, memory: Box<[u8]>, access: Access, mode: Start) -> Result<Self> {
        let len = memory.len();
        let ptr = Box::into_raw(memory) as *mut u8;
        // SAFETY: the region owns the memory and frees it after it has been unmapped.
        unsafe { Self::of(pd, Memory { ptr, len, owned: true }, ptr as u64, access, mode) }
    }

    /// # Safety
    /// As [`crate::Pd::register_raw`].
    pub(crate) unsafe fn register_raw(pd: &Arc<PdInner>, ptr: *mut u8, len: usize, start: u64, access: Access, mode: Start) -> Result<Self> {
        check(ptr as u64, len, start)?;
        own::check(ptr as usize, len, access.dma())?;
        // SAFETY: the caller's promise is passed on.
        unsafe { Self::of(pd, Memory { ptr, len, owned: false }, start, access, mode) }
    }

    /// # Safety
    /// `memory` stays allocated until the region is dropped.
    unsafe fn of(pd: &Arc<PdInner>, memory: Memory, start: u64, access: Access, mode: Start) -> Result<Self> {
        let (ptr, len) = (memory.ptr, memory.len);
        check(ptr as u64, len, start)?;
        // SAFETY: the caller keeps the memory, the region unmaps it on drop.
        let mapping = unsafe { map(pd, ptr, len, access) }?;
        Ok(Self { region: Region::create(pd, mapping, start, len, access, mode)?, memory })
    }

    /// Copies `bytes` into the region at `offset`.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset.checked_add(bytes.len()).is_some_and(|e| e <= self.memory.len), "outside the region");
        // SAFETY: in bounds.
        unsafe { std::ptr::copy(bytes.as_ptr(), self.memory.ptr.add(offset), bytes.len()) }
    }

    /// Copies bytes out of the region from `offset`.
    pub fn read(&self, offset: usize, out: &mut [u8]) {
        assert!(offset.checked_add(out.len()).is_some_and(|e| e <= self.memory.len), "outside the region");
        // SAFETY: in bounds.
        unsafe { std::ptr::copy(self.memory.ptr.add(offset), out.as_mut_ptr(), out.len()) }
    }

    /// A copy of `len` bytes from `offset`.
    pub fn to_vec(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut v = vec![0; len];
        self.read(offset, &mut v);
        v
    }
}
