//! Protection domains and memory regions.
use crate::abi::consts::*;
use crate::abi::objects::{Context, Mr, Pd};
use crate::context::ContextObject;
use crate::errors::{number, pointer, set_errno, Errno};
use crate::query::MAX_MR;
use ferric_driver::{Access, Region};
use std::any::Any;
use std::ffi::{c_int, c_uint, c_void};
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// A protection domain.
#[repr(C)]
pub struct PdObject {
    /// What the program sees.
    pub pd: Pd,
    /// The driver's.
    pub driver: ferric_driver::Pd,
    /// What was made in it.
    pub users: AtomicU32,
}

impl PdObject {
    /// # Safety
    /// `pd` is a handle that is in use.
    pub unsafe fn of<'a>(pd: *mut Pd) -> &'a Self {
        // SAFETY: the handle is the first field.
        unsafe { &*pd.cast::<Self>() }
    }
}

#[repr(C)]
struct MrObject {
    mr: Mr,
    /// The driver's region, of whichever kind, as long as the handle.
    _driver: Box<dyn Any + Send>,
}

/// The driver's rights of `ibv_access_flags`.
pub fn access_of(flags: c_uint) -> Access {
    let has = |bit: c_uint| flags & bit != 0;
    Access { local_write: has(IBV_ACCESS_LOCAL_WRITE), remote_write: has(IBV_ACCESS_REMOTE_WRITE), remote_read: has(IBV_ACCESS_REMOTE_READ), remote_atomic: has(IBV_ACCESS_REMOTE_ATOMIC) }
}

/// Makes a protection domain.
#[no_mangle]
pub unsafe extern "C" fn ibv_alloc_pd(context: *mut Context) -> *mut Pd {
    // SAFETY: a handle of ours, by the caller's promise.
    let shared = unsafe { &ContextObject::of(context).shared };
    pointer(
        "ibv_alloc_pd",
        shared.driver.alloc_pd().errno("protection domain").map(|driver| Box::into_raw(Box::new(PdObject { pd: Pd { context, handle: 0 }, driver, users: AtomicU32::new(0) })).cast()),
    )
}

#[no_mangle]
unsafe extern "C" fn ibv_dealloc_pd(pd: *mut Pd) -> c_int {
    // SAFETY: a handle of ours, by the caller's promise.
    if unsafe { PdObject::of(pd) }.users.load(Ordering::Acquire) > 0 {
        return number("ibv_dealloc_pd", Err(libc::EBUSY));
    }
    // SAFETY: from Box::into_raw; nothing made in it is left.
    drop(unsafe { Box::from_raw(pd.cast::<PdObject>()) });
    0
}

/// Makes a region by `make` after the checks that are the same for all, and a handle for it.
///
/// # Safety
/// `pd` is a handle that is in use.
unsafe fn handle<R: Deref<Target = Region> + Send + 'static>(
    pd: *mut Pd,
    addr: *mut c_void,
    length: usize,
    access: c_uint,
    make: impl FnOnce(&ferric_driver::Pd, Access) -> ferric_driver::error::Result<R>,
) -> Result<*mut Mr, c_int> {
    let known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE;
    let remote_change = access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) != 0;
    if access & !known != 0 {
        return Err(libc::EOPNOTSUPP);
    }
    // Who lets others write writes himself (IBTA 10.6.7.2.2).
    if length == 0 || length > MAX_MR || remote_change && access & IBV_ACCESS_LOCAL_WRITE == 0 {
        return Err(libc::EINVAL);
    }
    // SAFETY: a handle of ours.
    let object = unsafe { PdObject::of(pd) };
    let driver = make(&object.driver, access_of(access)).errno("memory region")?;
    object.users.fetch_add(1, Ordering::AcqRel);
    let mr = Mr { context: object.pd.context, pd, addr, length, handle: 0, lkey: driver.lkey(), rkey: driver.rkey() };
    Ok(Box::into_raw(Box::new(MrObject { mr, _driver: Box::new(driver) })).cast())
}

unsafe fn register(pd: *mut Pd, addr: *mut c_void, length: usize, iova: u64, access: c_uint) -> Result<*mut Mr, c_int> {
    // SAFETY: a handle of ours; the program keeps the memory as long as the region, by the rules of `ibv_reg_mr`.
    unsafe { handle(pd, addr, length, access, |driver, access| driver.register_raw(addr.cast(), length, iova, access)) }
}

#[no_mangle]
unsafe extern "C" fn ibv_reg_mr(pd: *mut Pd, addr: *mut c_void, length: usize, access: c_int) -> *mut Mr {
    // SAFETY: by the caller's promise.
    pointer("ibv_reg_mr", unsafe { register(pd, addr, length, addr as u64, access as c_uint) })
}

#[no_mangle]
unsafe extern "C" fn ibv_reg_mr_iova(pd: *mut Pd, addr: *mut c_void, length: usize, iova: u64, access: c_int) -> *mut Mr {
    // SAFETY: by the caller's promise.
    pointer("ibv_reg_mr_iova", unsafe { register(pd, addr, length, iova, access as c_uint) })
}

#[no_mangle]
unsafe extern "C" fn ibv_reg_mr_iova2(pd: *mut Pd, addr: *mut c_void, length: usize, iova: u64, access: c_uint) -> *mut Mr {
    // SAFETY: by the caller's promise.
    pointer("ibv_reg_mr_iova2", unsafe { register(pd, addr, length, iova, access) })
}

#[no_mangle]
unsafe extern "C" fn ibv_dereg_mr(mr: *mut Mr) -> c_int {
    // SAFETY: from Box::into_raw, by the caller's promise.
    let object = unsafe { Box::from_raw(mr.cast::<MrObject>()) };
    // SAFETY: the domain outlives what was made in it.
    unsafe { PdObject::of(object.mr.pd) }.users.fetch_sub(1, Ordering::AcqRel);
    0
}

/// The old region stays as it is: -1 of `ibv_rereg_mr_err_code` says so.
#[no_mangle]
unsafe extern "C" fn ibv_rereg_mr(_mr: *mut Mr, _flags: c_int, _pd: *mut Pd, _addr: *mut c_void, _length: usize, _access: c_int) -> c_int {
    set_errno(libc::EOPNOTSUPP);
    -1
}

#[no_mangle]
unsafe extern "C" fn ibv_reg_dmabuf_mr(pd: *mut Pd, offset: u64, length: usize, iova: u64, fd: c_int, access: c_int) -> *mut Mr {
    let made = if fd < 0 {
        Err(libc::EBADF)
    } else {
        // SAFETY: the program's descriptor, open during the call; a handle of ours, by the caller's promise.
        unsafe { handle(pd, std::ptr::null_mut(), length, access as c_uint, |driver, access| driver.register_dmabuf(BorrowedFd::borrow_raw(fd), offset, length, iova, access).map(Box::new)) }
    };
    pointer("ibv_reg_dmabuf_mr", made)
}
