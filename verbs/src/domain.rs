//! Thread domains and parent domains: what a program says of its threads and of its memory. Locks here cost no more for one thread than for many, and the card's rings are the
//! driver's memory; so both are names, which are counted as other domains are. A parent domain's allocators are never called.
use crate::abi::attr::{ParentDomainInitAttr, TdInitAttr};
use crate::abi::consts::*;
use crate::abi::objects::{Context, Pd, Td};
use crate::errors::{number, pointer};
use crate::mr::PdObject;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

/// A thread domain.
#[repr(C)]
pub struct TdObject {
    td: Td,
    /// Parent domains with it.
    users: AtomicU32,
}

/// What a parent domain is made of.
pub struct Parent {
    /// The protection domain.
    pub pd: *mut Pd,
    td: *mut Td,
}

/// `ibv_alloc_td`.
pub unsafe extern "C" fn alloc_td(context: *mut Context, attr: *mut TdInitAttr) -> *mut Td {
    // SAFETY: the caller's.
    let made = if unsafe { (*attr).comp_mask } == 0 { Ok(Box::into_raw(Box::new(TdObject { td: Td { context }, users: AtomicU32::new(0) })).cast()) } else { Err(libc::EINVAL) };
    pointer("ibv_alloc_td", made)
}

/// `ibv_dealloc_td`.
pub unsafe extern "C" fn dealloc_td(td: *mut Td) -> c_int {
    // SAFETY: from `alloc_td`, by the caller's promise; no parent domain has it.
    unsafe {
        if (*td.cast::<TdObject>()).users.load(Ordering::Acquire) > 0 {
            return number("ibv_dealloc_td", Err(libc::EBUSY));
        }
        drop(Box::from_raw(td.cast::<TdObject>()));
    }
    0
}

/// `ibv_alloc_parent_domain`.
pub unsafe extern "C" fn alloc_parent_domain(context: *mut Context, attr: *mut ParentDomainInitAttr) -> *mut Pd {
    // SAFETY: the caller's.
    let attr = unsafe { &*attr };
    if attr.pd.is_null() || attr.comp_mask & !(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) != 0 {
        return pointer("ibv_alloc_parent_domain", Err(libc::EINVAL));
    }
    // SAFETY: handles in use, or null.
    let (below, td) = unsafe { (PdObject::of(attr.pd), attr.td.cast::<TdObject>().as_ref()) };
    below.users.fetch_add(1, Ordering::AcqRel);
    if let Some(td) = td {
        td.users.fetch_add(1, Ordering::AcqRel);
    }
    let parent = Some(Parent { pd: attr.pd, td: attr.td });
    Box::into_raw(Box::new(PdObject { pd: Pd { context, handle: 0 }, driver: below.driver.clone(), users: AtomicU32::new(0), parent })).cast()
}

/// A parent domain goes.
///
/// # Safety
/// What it was made of is in use.
pub unsafe fn released(parent: &Parent) {
    // SAFETY: by the caller's promise.
    unsafe {
        PdObject::of(parent.pd).users.fetch_sub(1, Ordering::AcqRel);
        if let Some(td) = parent.td.cast::<TdObject>().as_ref() {
            td.users.fetch_sub(1, Ordering::AcqRel);
        }
    }
}
