//! Extended completion queues: a completion is looked at in place, field by field.
use crate::abi::attr::CqInitAttrEx;
use crate::abi::consts::*;
use crate::abi::objects::{Context, CqEx};
use crate::cq::{wc_of, CqObject};
use crate::errors::pointer;
use crate::mr::PdObject;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::Ordering;

/// `ibv_create_cq_ex`.
pub unsafe extern "C" fn create_cq_ex(context: *mut Context, attr: *mut CqInitAttrEx) -> *mut CqEx {
    // SAFETY: the caller's attributes.
    let attr = unsafe { &*attr };
    let known = u64::from(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
    let has = |bit: u32| attr.comp_mask & bit != 0;
    // Flags: single-threaded (bit 0) asks for nothing, ignoring overruns (bit 1) for what the card does not do.
    if attr.wc_flags & !known != 0 || attr.comp_mask & !(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) != 0 || has(IBV_CQ_INIT_ATTR_MASK_FLAGS) && attr.flags & !1 != 0 {
        return pointer("ibv_create_cq_ex", Err(libc::EOPNOTSUPP));
    }
    // SAFETY: null, or a handle in use.
    let domain = if has(IBV_CQ_INIT_ATTR_MASK_PD) { unsafe { attr.parent_domain.cast::<PdObject>().as_ref() } } else { None };
    if has(IBV_CQ_INIT_ATTR_MASK_PD) && domain.is_none_or(|d| d.parent.is_none()) {
        return pointer("ibv_create_cq_ex", Err(libc::EINVAL));
    }
    // SAFETY: by the caller's promise.
    let made = unsafe { CqObject::create(context, attr.cqe, attr.cq_context, attr.channel, attr.comp_vector) };
    pointer(
        "ibv_create_cq_ex",
        made.map(|object| {
            // SAFETY: just made, nobody else has it.
            let ex = unsafe {
                if let Some(domain) = domain {
                    domain.users.fetch_add(1, Ordering::AcqRel);
                    (*object).domain = attr.parent_domain;
                }
                &mut *(*object).seen()
            };
            ex.start_poll = Some(start_poll);
            ex.next_poll = Some(next_poll);
            ex.end_poll = Some(end_poll);
            ex.read_opcode = Some(read_opcode);
            ex.read_vendor_err = Some(read_vendor_err);
            ex.read_byte_len = Some(read_byte_len);
            ex.read_imm_data = Some(read_imm_data);
            ex.read_qp_num = Some(read_qp_num);
            ex.read_src_qp = Some(read_src_qp);
            ex.read_wc_flags = Some(read_wc_flags);
            ex.read_slid = Some(read_slid);
            ex.read_sl = Some(read_sl);
            ex.read_dlid_path_bits = Some(read_nothing);
            ex.read_completion_ts = Some(read_completion_ts);
            object.cast()
        }),
    )
}

unsafe fn of<'a>(cq: *mut CqEx) -> &'a CqObject {
    // SAFETY: a handle of ours, by the callers' promise.
    unsafe { CqObject::of(cq.cast()) }
}

/// Takes the next completion into the object.
unsafe fn look(cq: *mut CqEx) -> c_int {
    // SAFETY: by the caller's promise.
    let object = unsafe { of(cq) };
    let mut inner = object.inner.lock();
    let Some(c) = object.take(&mut inner) else {
        return object.pause(&inner).err().unwrap_or(libc::ENOENT);
    };
    inner.current = wc_of(&c, inner.headers);
    inner.timestamp = c.timestamp;
    let seen = object.seen();
    // SAFETY: the program that has started polling is the only one that looks at these, and no reference to them exists.
    unsafe { ((*seen).status, (*seen).wr_id) = (inner.current.status, inner.current.wr_id) };
    0
}

unsafe extern "C" fn start_poll(cq: *mut CqEx, attr: *mut c_void) -> c_int {
    // SAFETY: the caller's attributes: a mask that must be zero.
    if unsafe { attr.cast::<u32>().as_ref() }.is_some_and(|mask| *mask != 0) {
        return libc::EINVAL;
    }
    // SAFETY: by the caller's promise.
    let object = unsafe { of(cq) };
    // One thread at a time, until `ibv_end_poll`.
    while object.polling.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
        std::thread::yield_now();
    }
    // SAFETY: as above.
    let r = unsafe { look(cq) };
    if r != 0 {
        object.polling.store(false, Ordering::Release);
    }
    r
}

unsafe extern "C" fn next_poll(cq: *mut CqEx) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe { look(cq) }
}

unsafe extern "C" fn end_poll(cq: *mut CqEx) {
    // SAFETY: by the caller's promise.
    unsafe { of(cq) }.polling.store(false, Ordering::Release);
}

macro_rules! fields {
    ($( $name:ident -> $ty:ty = $field:ident; )*) => { $(
        unsafe extern "C" fn $name(cq: *mut CqEx) -> $ty {
            // SAFETY: by the caller's promise.
            unsafe { of(cq) }.inner.lock().current.$field.into()
        }
    )* };
}

fields! {
    read_opcode -> c_uint = opcode;
    read_vendor_err -> u32 = vendor_err;
    read_byte_len -> u32 = byte_len;
    read_imm_data -> u32 = imm_data;
    read_qp_num -> u32 = qp_num;
    read_src_qp -> u32 = src_qp;
    read_wc_flags -> c_uint = wc_flags;
    read_slid -> u32 = slid;
    read_sl -> u8 = sl;
}

unsafe extern "C" fn read_nothing(_cq: *mut CqEx) -> u8 {
    0
}

unsafe extern "C" fn read_completion_ts(cq: *mut CqEx) -> u64 {
    // SAFETY: by the caller's promise.
    unsafe { of(cq) }.inner.lock().timestamp
}
