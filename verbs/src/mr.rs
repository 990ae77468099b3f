//! Protection domains and memory regions.
use crate::abi::consts::*;
use crate::abi::objects::{Context, Mr, Pd};
use crate::context::ContextObject;
use crate::domain::{released, Parent};
use crate::errors::{number, pointer, set_errno, Errno};
use crate::query::MAX_MR;
use ferric_driver::{Access, MemoryRegion, Region};
use std::ffi::{c_int, c_uint, c_void};
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
    /// Of a parent domain.
    pub parent: Option<Parent>,
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
    /// `ibv_access_flags`.
    access: c_uint,
    /// How peers name its first byte.
    iova: u64,
    driver: Registered,
}

/// The driver's region.
enum Registered {
    /// Of this process's memory.
    Memory(MemoryRegion),
    /// Of another device's.
    Elsewhere(Region),
}

impl Registered {
    fn region(&self) -> &Region {
        match self {
            Self::Memory(m) => m,
            Self::Elsewhere(r) => r,
        }
    }

    fn close(&mut self) -> ferric_driver::error::Result<()> {
        match self {
            Self::Memory(m) => m.close(),
            Self::Elsewhere(r) => r.close(),
        }
    }
}

/// The driver's rights of `ibv_access_flags`.
pub fn access_of(flags: c_uint) -> Access {
    let has = |bit: c_uint| flags & bit != 0;
    Access {
        local_write: has(IBV_ACCESS_LOCAL_WRITE),
        remote_write: has(IBV_ACCESS_REMOTE_WRITE),
        remote_read: has(IBV_ACCESS_REMOTE_READ),
        remote_atomic: has(IBV_ACCESS_REMOTE_ATOMIC),
        remote_flush: has(IBV_ACCESS_FLUSH_GLOBAL),
    }
}

/// Makes a protection domain.
#[no_mangle]
pub unsafe extern "C" fn ibv_alloc_pd(context: *mut Context) -> *mut Pd {
    // SAFETY: a handle of ours, by the caller's promise.
    let shared = unsafe { &ContextObject::of(context).shared };
    pointer(
        "ibv_alloc_pd",
        shared.driver.alloc_pd().errno("protection domain").map(|driver| Box::into_raw(Box::new(PdObject { pd: Pd { context, handle: 0 }, driver, users: AtomicU32::new(0), parent: None })).cast()),
    )
}

#[no_mangle]
unsafe extern "C" fn ibv_dealloc_pd(pd: *mut Pd) -> c_int {
    // SAFETY: a handle of ours, by the caller's promise.
    if unsafe { PdObject::of(pd) }.users.load(Ordering::Acquire) > 0 {
        return number("ibv_dealloc_pd", Err(libc::EBUSY));
    }
    // SAFETY: from Box::into_raw; nothing made in it is left, and what it was made of is there.
    unsafe {
        let object = Box::from_raw(pd.cast::<PdObject>());
        if let Some(parent) = &object.parent {
            released(parent);
        }
    }
    0
}

/// The rights of a region that is made or changed.
fn checked(length: usize, access: c_uint) -> Result<Access, c_int> {
    let known = IBV_ACCESS_LOCAL_WRITE
        | IBV_ACCESS_REMOTE_WRITE
        | IBV_ACCESS_REMOTE_READ
        | IBV_ACCESS_REMOTE_ATOMIC
        | IBV_ACCESS_FLUSH_GLOBAL
        | IBV_ACCESS_MW_BIND
        | IBV_ACCESS_HUGETLB
        | IBV_ACCESS_OPTIONAL_RANGE;
    let remote_change = access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) != 0;
    if access & !known != 0 {
        return Err(libc::EOPNOTSUPP);
    }
    // Who lets others write writes himself (IBTA 10.6.7.2.2).
    if length == 0 || length > MAX_MR || remote_change && access & IBV_ACCESS_LOCAL_WRITE == 0 {
        return Err(libc::EINVAL);
    }
    Ok(access_of(access))
}

/// Makes a region by `make` after the checks that are the same for all, and a handle for it.
///
/// # Safety
/// `pd` is a handle that is in use.
unsafe fn handle(
    pd: *mut Pd,
    addr: *mut c_void,
    (length, iova): (usize, u64),
    access: c_uint,
    make: impl FnOnce(&ferric_driver::Pd, Access) -> ferric_driver::error::Result<Registered>,
) -> Result<*mut Mr, c_int> {
    let rights = checked(length, access)?;
    // SAFETY: a handle of ours.
    let object = unsafe { PdObject::of(pd) };
    let driver = make(&object.driver, rights).errno("memory region")?;
    object.users.fetch_add(1, Ordering::AcqRel);
    let mr = Mr { context: object.pd.context, pd, addr, length, handle: 0, lkey: driver.region().lkey(), rkey: driver.region().rkey() };
    Ok(Box::into_raw(Box::new(MrObject { mr, access, iova, driver })).cast())
}

unsafe fn register(pd: *mut Pd, addr: *mut c_void, length: usize, iova: u64, access: c_uint) -> Result<*mut Mr, c_int> {
    let make = |driver: &ferric_driver::Pd, rights| {
        // SAFETY: the program keeps the memory as long as the region, by the rules of `ibv_reg_mr`.
        let made = unsafe {
            if access & IBV_ACCESS_MW_BIND != 0 {
                driver.register_raw_bindable(addr.cast(), length, iova, rights)
            } else {
                driver.register_raw(addr.cast(), length, iova, rights)
            }
        };
        made.map(Registered::Memory)
    };
    // SAFETY: a handle of ours.
    unsafe { handle(pd, addr, (length, iova), access, make) }
}

#[no_mangle]
pub unsafe extern "C" fn ibv_reg_mr(pd: *mut Pd, addr: *mut c_void, length: usize, access: c_int) -> *mut Mr {
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

/// Not while windows are bound to it.
#[no_mangle]
pub unsafe extern "C" fn ibv_dereg_mr(mr: *mut Mr) -> c_int {
    // SAFETY: from Box::into_raw, by the caller's promise.
    let object = unsafe { &mut *mr.cast::<MrObject>() };
    if let Err(n) = object.driver.close().errno("memory region") {
        return number("ibv_dereg_mr", Err(n));
    }
    // SAFETY: as above; the domain outlives what was made in it.
    unsafe {
        let object = Box::from_raw(mr.cast::<MrObject>());
        PdObject::of(object.mr.pd).users.fetch_sub(1, Ordering::AcqRel);
    }
    0
}

/// The region is as it was.
const REREG_ERR_INPUT: c_int = -1;
/// The region is lost, and can only be deregistered.
const REREG_ERR_CMD: c_int = -4;

unsafe fn rereg(mr: *mut Mr, flags: c_uint, pd: *mut Pd, addr: *mut c_void, length: usize, access: c_uint) -> Result<(), c_int> {
    let has = |bit: c_uint| flags & bit != 0;
    let (translation, domain, rights) = (has(IBV_REREG_MR_CHANGE_TRANSLATION), has(IBV_REREG_MR_CHANGE_PD), has(IBV_REREG_MR_CHANGE_ACCESS));
    let known = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
    if flags & !known != 0 || translation && (addr.is_null() || length == 0) || access != 0 && !rights || domain && pd.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: a handle of ours, by the caller's promise.
    let object = unsafe { &mut *mr.cast::<MrObject>() };
    let Registered::Memory(driver) = &mut object.driver else { return Err(libc::EINVAL) };
    let old = object.mr;
    let (addr, length, iova) = if translation { (addr, length, addr as u64) } else { (old.addr, old.length, object.iova) };
    let access = if rights { access } else { object.access };
    let pd = if domain { pd } else { old.pd };
    let allowed = checked(length, access)?;
    // SAFETY: handles in use; the program keeps the memory as long as the region.
    unsafe {
        driver.reregister(&PdObject::of(pd).driver, (addr.cast(), length, iova), allowed, access & IBV_ACCESS_MW_BIND != 0).errno("memory region")?;
        PdObject::of(old.pd).users.fetch_sub(1, Ordering::AcqRel);
        PdObject::of(pd).users.fetch_add(1, Ordering::AcqRel);
    }
    (object.mr.pd, object.mr.addr, object.mr.length, object.access, object.iova) = (pd, addr, length, access, iova);
    Ok(())
}

/// Registers a region anew; its keys stay. What `ibv_rereg_mr_err_code` says of a failure is whether the region is still there.
#[no_mangle]
unsafe extern "C" fn ibv_rereg_mr(mr: *mut Mr, flags: c_int, pd: *mut Pd, addr: *mut c_void, length: usize, access: c_int) -> c_int {
    // SAFETY: by the caller's promise.
    match unsafe { rereg(mr, flags as c_uint, pd, addr, length, access as c_uint) } {
        Ok(()) => 0,
        Err(n) => {
            set_errno(n);
            // SAFETY: as above.
            let lost = matches!(unsafe { &(*mr.cast::<MrObject>()).driver }, Registered::Memory(m) if m.is_closed());
            if lost {
                REREG_ERR_CMD
            } else {
                REREG_ERR_INPUT
            }
        }
    }
}

#[no_mangle]
unsafe extern "C" fn ibv_reg_dmabuf_mr(pd: *mut Pd, offset: u64, length: usize, iova: u64, fd: c_int, access: c_int) -> *mut Mr {
    let made = if fd < 0 {
        Err(libc::EBADF)
    } else {
        // SAFETY: the program's descriptor, open during the call; a handle of ours, by the caller's promise.
        unsafe {
            handle(pd, std::ptr::null_mut(), (length, iova), access as c_uint, |driver, rights| {
                driver.register_dmabuf(BorrowedFd::borrow_raw(fd), offset, length, iova, rights).map(Registered::Elsewhere)
            })
        }
    };
    pointer("ibv_reg_dmabuf_mr", made)
}
