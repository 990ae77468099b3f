//! Golden model of key check and translation.
use ferric_abi::context::MrCtx;
use ferric_abi::host::Pte;

/// One access to check.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Key.
    pub key: u32,
    /// Protection domain of the queue pair.
    pub pd: u32,
    /// Function of the queue pair.
    pub function: u16,
    /// Its number.
    pub qpn: u32,
    /// First byte.
    pub va: u64,
    /// Bytes that must lie in the region.
    pub chk_len: u32,
    /// Rights wanted, as in `MrReq`.
    pub access: u8,
    /// The bounds do not count: a FLUSH of the whole region.
    pub whole: bool,
}

/// Bit of [`Access::access`]: FLUSH.
const FLUSH: u8 = 32;

/// The verdict of the card: IOVA of `va`, or the `MrResp` status. `fetch` reads a page-table entry; `None` is a failed read.
pub fn translate(regions: &[MrCtx], a: &Access, mut fetch: impl FnMut(u64) -> Option<Pte>) -> Result<u64, u8> {
    let mr = regions.get((a.key >> 8) as usize).ok_or(1)?;
    if !mr.valid() || mr.variant() != a.key as u8 {
        return Err(1);
    }
    if mr.pd() != a.pd || mr.function() != a.function || mr.window() && mr.fast() && mr.qpn() != a.qpn {
        return Err(2);
    }
    let rights = [!mr.window(), mr.local_write(), mr.remote_write(), mr.remote_read(), mr.remote_atomic(), mr.remote_flush()];
    if (0..6).any(|i| a.access >> i & 1 == 1 && !rights[i]) {
        return Err(4);
    }
    let off = a.va.wrapping_sub(mr.start());
    let inside = a.va >= mr.start() && mr.length().checked_sub(off).is_some_and(|rest| rest >= a.chk_len.into());
    if !inside && !a.whole {
        return Err(3);
    }
    // A FLUSH touches no page: nobody asks where it lies.
    if mr.direct() || a.access & FLUSH != 0 {
        return Ok(mr.table().wrapping_add(off));
    }
    let size = page_bits(mr.page_size());
    let page = (a.va >> size) - (mr.start() >> size);
    let pte = fetch(mr.table().wrapping_add(page * 8)).ok_or(6)?;
    if !pte.valid() {
        return Err(5);
    }
    let in_page = (1 << size) - 1;
    Ok(pte.page() << 12 & !in_page | a.va & in_page)
}

/// log2 of the bytes of a page, of `MrCtx::page_size` (3 is as 2, though nobody may say so).
pub fn page_bits(size: u8) -> u32 {
    [12, 21, 30, 30][usize::from(size & 3)]
}

/// Who asks for a change: a queue pair and what it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Asker {
    /// Protection domain.
    pub pd: u32,
    /// Function.
    pub function: u16,
    /// Number.
    pub qpn: u32,
}

impl Asker {
    fn owns(&self, mr: &MrCtx) -> bool {
        mr.pd() == self.pd && mr.function() == self.function
    }
}

/// Invalidates `key`: for the peer of `by`, or by a work request. The line of a region or window that may not be invalidated stays, and the
/// status says why.
pub fn invalidate(regions: &mut [MrCtx], key: u32, by: Asker, remote: bool) -> u8 {
    let Some(mr) = regions.get_mut((key >> 8) as usize) else { return 1 };
    let peers = mr.remote_write() || mr.remote_read() || mr.remote_atomic();
    if !mr.valid() || remote && !peers || mr.variant() != key as u8 {
        return 1;
    }
    if !by.owns(mr) || mr.window() && mr.fast() && mr.qpn() != by.qpn {
        return 2;
    }
    if !mr.fast() {
        return 4;
    }
    mr.set_valid(false);
    if mr.window() {
        count(regions, regions[(key >> 8) as usize].link(), -1);
    }
    0
}

/// Region `index` has one window more or less.
pub fn count(regions: &mut [MrCtx], index: u32, change: i32) {
    let mr = &mut regions[index as usize];
    mr.set_link(mr.link().wrapping_add_signed(change));
}

/// Gives a free region the key, rights, bounds and page table of `new`; `life` counts.
pub fn register(regions: &mut [MrCtx], key: u32, by: Asker, new: &MrCtx) -> u8 {
    let Some(mr) = regions.get_mut((key >> 8) as usize) else { return 1 };
    if mr.valid() {
        return 1;
    }
    if !by.owns(mr) {
        return 2;
    }
    if !mr.fast() || mr.window() || new.page_size() == 3 {
        return 4;
    }
    *mr = mr
        .with_valid(true)
        .with_variant(key as u8)
        .with_local_write(new.local_write())
        .with_remote_write(new.remote_write())
        .with_remote_read(new.remote_read())
        .with_remote_atomic(new.remote_atomic())
        .with_page_size(new.page_size())
        .with_life(mr.life().wrapping_add(1))
        .with_start(new.start())
        .with_length(new.length())
        .with_table(new.table() & !63);
    0
}

/// Binds the window of `key` to `new`'s bounds of the region with key `region`, with its rights of a peer. No bytes: to nothing.
pub fn bind(regions: &mut [MrCtx], key: u32, region: u32, by: Asker, new: &MrCtx) -> u8 {
    let index = (key >> 8) as usize;
    let Some(&old) = regions.get(index) else { return 1 };
    if old.valid() && old.fast() {
        return 1;
    }
    if !by.owns(&old) {
        return 2;
    }
    if !old.window() || old.fast() && new.length() == 0 {
        return 4;
    }
    if new.length() != 0 {
        let Some(&base) = regions.get((region >> 8) as usize) else { return 1 };
        if !base.valid() || base.window() || base.variant() != region as u8 {
            return 1;
        }
        if !by.owns(&base) {
            return 2;
        }
        let fits = new.start().checked_sub(base.start()).and_then(|off| base.length().checked_sub(off)).is_some_and(|left| left >= new.length());
        if !fits {
            return 3;
        }
        if !base.bind() || (new.remote_write() || new.remote_atomic()) && !base.local_write() {
            return 4;
        }
        let size = page_bits(base.page_size());
        let further = if base.direct() { new.start() - base.start() } else { ((new.start() >> size) - (base.start() >> size)) * 8 };
        regions[index] = old
            .with_valid(true)
            .with_variant(key as u8)
            .with_local_write(false)
            .with_remote_write(new.remote_write())
            .with_remote_read(new.remote_read())
            .with_remote_atomic(new.remote_atomic())
            .with_direct(base.direct())
            .with_page_size(base.page_size())
            .with_life(old.life().wrapping_add(1))
            .with_start(new.start())
            .with_length(new.length())
            .with_table(base.table().wrapping_add(further))
            .with_link(region >> 8)
            .with_qpn(by.qpn);
        count(regions, region >> 8, 1);
    } else {
        regions[index].set_valid(false);
    }
    if old.valid() {
        count(regions, old.link(), -1);
    }
    0
}
