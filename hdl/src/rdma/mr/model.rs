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
    /// First byte.
    pub va: u64,
    /// Bytes that must lie in the region.
    pub chk_len: u32,
    /// Rights wanted, as in `MrReq`.
    pub access: u8,
}

/// The verdict of the card: IOVA of `va`, or the `MrResp` status. `fetch` reads a page-table entry; `None` is a failed read.
pub fn translate(regions: &[MrCtx], a: &Access, mut fetch: impl FnMut(u64) -> Option<Pte>) -> Result<u64, u8> {
    let mr = regions.get((a.key >> 8) as usize).ok_or(1)?;
    if !mr.valid() || mr.variant() != a.key as u8 {
        return Err(1);
    }
    if mr.pd() != a.pd || mr.function() != a.function {
        return Err(2);
    }
    let rights = [true, mr.local_write(), mr.remote_write(), mr.remote_read(), mr.remote_atomic()];
    if (0..5).any(|i| a.access >> i & 1 == 1 && !rights[i]) {
        return Err(4);
    }
    let off = a.va.checked_sub(mr.start()).ok_or(3)?;
    let rest = mr.length().checked_sub(off).ok_or(3)?;
    if rest < a.chk_len as u64 {
        return Err(3);
    }
    if mr.direct() {
        return Ok(mr.table().wrapping_add(off));
    }
    let page = (a.va >> 12) - (mr.start() >> 12);
    let pte = fetch(mr.table().wrapping_add(page * 8)).ok_or(6)?;
    if !pte.valid() {
        return Err(5);
    }
    Ok(pte.page() << 12 | a.va & 0xfff)
}

/// Invalidates `key` for a queue pair of protection domain `pd` and `function`: by the peer, or by a work request. The line of a region that
/// may not be invalidated stays, and the status says why.
pub fn invalidate(regions: &mut [MrCtx], key: u32, pd: u32, function: u16, remote: bool) -> u8 {
    let Some(mr) = regions.get_mut((key >> 8) as usize) else { return 1 };
    let peers = mr.remote_write() || mr.remote_read() || mr.remote_atomic();
    if !mr.valid() || remote && !peers || mr.variant() != key as u8 {
        return 1;
    }
    if mr.pd() != pd || mr.function() != function {
        return 2;
    }
    if !mr.fast() {
        return 4;
    }
    mr.set_valid(false);
    0
}

/// Gives a free region the key, rights, bounds and page table of `new`; `life` counts.
pub fn register(regions: &mut [MrCtx], key: u32, pd: u32, function: u16, new: &MrCtx) -> u8 {
    let Some(mr) = regions.get_mut((key >> 8) as usize) else { return 1 };
    if mr.valid() {
        return 1;
    }
    if mr.pd() != pd || mr.function() != function {
        return 2;
    }
    if !mr.fast() {
        return 4;
    }
    *mr = mr
        .with_valid(true)
        .with_variant(key as u8)
        .with_local_write(new.local_write())
        .with_remote_write(new.remote_write())
        .with_remote_read(new.remote_read())
        .with_remote_atomic(new.remote_atomic())
        .with_life(mr.life().wrapping_add(1))
        .with_start(new.start())
        .with_length(new.length())
        .with_table(new.table() & !63);
    0
}
