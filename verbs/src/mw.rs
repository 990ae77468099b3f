//! Memory windows: a peer's rights to a part of a region, given and taken away by work requests (docs/decisions/0015).
use crate::abi::consts::*;
use crate::abi::objects::{Mw, Pd, Qp};
use crate::abi::wr::{MwBind, MwBindInfo};
use crate::errors::{errno_of, number, pointer, Errno};
use crate::mr::{access_of, PdObject};
use crate::qp::{QpInner, QpObject};
use ferric_driver::mw::BindRequest;
use ferric_driver::{MemoryWindow, WindowType};
use std::ffi::{c_int, c_uint};
use std::sync::atomic::Ordering;

#[repr(C)]
struct MwObject {
    mw: Mw,
    /// The card's window, as long as the handle.
    _driver: MemoryWindow,
}

/// `ibv_alloc_mw`.
pub unsafe extern "C" fn alloc_mw(pd: *mut Pd, kind: c_uint) -> *mut Mw {
    // SAFETY: a handle of ours, by the caller's promise.
    let domain = unsafe { PdObject::of(pd) };
    let of_card = match kind {
        IBV_MW_TYPE_1 => Ok(WindowType::One),
        IBV_MW_TYPE_2 => Ok(WindowType::Two),
        _ => Err(libc::EINVAL),
    };
    let made = of_card.and_then(|kind| domain.driver.alloc_mw(kind).errno("memory window"));
    pointer(
        "ibv_alloc_mw",
        made.map(|driver| {
            domain.users.fetch_add(1, Ordering::AcqRel);
            let mw = Mw { context: domain.pd.context, pd, rkey: driver.key(), handle: driver.key() >> 8, r#type: kind };
            Box::into_raw(Box::new(MwObject { mw, _driver: driver })).cast()
        }),
    )
}

/// `ibv_dealloc_mw`.
pub unsafe extern "C" fn dealloc_mw(mw: *mut Mw) -> c_int {
    // SAFETY: from `alloc_mw`, by the caller's promise; its domain outlives it.
    unsafe {
        let object = Box::from_raw(mw.cast::<MwObject>());
        PdObject::of(object.mw.pd).users.fetch_sub(1, Ordering::AcqRel);
    }
    0
}

/// Puts a bind into the send queue; the card has not heard of it yet. `rkey`: the one that the window gets.
///
/// # Safety
/// A window and a region in use, or null.
pub unsafe fn stage_bind(inner: &mut QpInner, wr_id: u64, flags: c_uint, mw: *mut Mw, rkey: u32, info: &MwBindInfo) -> Result<(), c_int> {
    let rights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    // SAFETY: by the caller's promise.
    let (window, region) = unsafe { (mw.as_mut().ok_or(libc::EINVAL)?, info.mr.as_ref()) };
    // The number behind a key is the window's own. Local rights are the region's.
    let known = rights | IBV_ACCESS_LOCAL_WRITE;
    if inner.kind == IBV_QPT_UD || rkey >> 8 != window.handle || info.mw_access_flags & !known != 0 || flags & !31 != 0 || flags & IBV_SEND_INLINE != 0 {
        return Err(libc::EINVAL);
    }
    let lkey = match region {
        _ if info.length == 0 && window.r#type == IBV_MW_TYPE_1 => 0,
        Some(mr) if info.length > 0 && info.addr >= mr.addr as u64 && info.addr.checked_add(info.length).is_some_and(|end| end <= mr.addr as u64 + mr.length as u64) => mr.lkey,
        _ => return Err(libc::EINVAL),
    };
    let has = |flag: u32| flags & flag != 0;
    let request = BindRequest { wr_id, rkey, lkey, addr: info.addr, len: info.length, access: access_of(info.mw_access_flags & rights), signaled: has(IBV_SEND_SIGNALED), fence: has(IBV_SEND_FENCE) };
    inner.driver.stage_bind(&request).map_err(|e| errno_of(&e))?;
    window.rkey = rkey;
    Ok(())
}

/// `ibv_bind_mw`, of windows of type 1: the key's last byte is another one from then on.
pub unsafe extern "C" fn bind_mw(qp: *mut Qp, mw: *mut Mw, bind: *mut MwBind) -> c_int {
    // SAFETY: handles of ours and a request of the caller's, by its promise.
    let (mut inner, bind, before) = unsafe { (QpObject::of(qp).sending(), &*bind, (*mw).rkey) };
    let rkey = before & !0xff | before.wrapping_add(1) & 0xff;
    // SAFETY: as above.
    let done = unsafe { stage_bind(&mut inner, bind.wr_id, bind.send_flags, mw, rkey, &bind.bind_info) };
    inner.driver.ring();
    number("ibv_bind_mw", done)
}
