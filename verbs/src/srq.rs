//! Shared receive queues.
use crate::abi::attr::{SrqAttr, SrqInitAttr};
use crate::abi::consts::*;
use crate::abi::objects::{Pd, Srq};
use crate::abi::wr::RecvWr;
use crate::context::ContextObject;
use crate::errors::{errno_of, number, pointer, Errno};
use crate::events::Outstanding;
use crate::mr::PdObject;
use crate::post::{each, entries};
use crate::query::{limits, srq_limits};
use crate::shared::{lock, serial, Entry, Shared};
use ferric_driver::{RecvRequest, SharedReceiveQueue, SrqConfig};
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// A shared receive queue.
#[repr(C)]
pub struct SrqObject {
    /// What the program sees, and may read and write at any time: only ever reached through a pointer.
    srq: UnsafeCell<Srq>,
    /// The driver's; it has a lock of its own.
    pub driver: SharedReceiveQueue,
    /// What it was made with.
    attr: SrqAttr,
    /// Asynchronous events the program has.
    pub async_events: Outstanding,
    /// Queue pairs that take receives from it.
    pub users: AtomicU32,
    /// The card.
    shared: Arc<Shared>,
}

impl SrqObject {
    /// # Safety
    /// `srq` is a handle that is in use.
    pub unsafe fn of<'a>(srq: *mut Srq) -> &'a Self {
        // SAFETY: the handle is the first field.
        unsafe { &*srq.cast::<Self>() }
    }

    unsafe fn create(pd: *mut Pd, init: &mut SrqInitAttr) -> Result<*mut Self, c_int> {
        // SAFETY: handles in use; a domain's context is open.
        let (domain, open) = unsafe { (PdObject::of(pd), ContextObject::of(PdObject::of(pd).pd.context)) };
        let (queues, depth) = srq_limits(open);
        if queues == 0 {
            return Err(libc::EOPNOTSUPP);
        }
        if init.attr.max_wr == 0 || init.attr.max_wr > depth || init.attr.max_sge > limits(open).0 {
            return Err(libc::EINVAL);
        }
        // A limit is set by `ibv_modify_srq` only.
        let mut attr = SrqAttr { max_wr: init.attr.max_wr, max_sge: init.attr.max_sge.max(1), srq_limit: 0 };
        let config = SrqConfig { max_wr: attr.max_wr as usize, max_sge: attr.max_sge as usize };
        let driver = domain.driver.create_srq(&config, &lock(&open.shared.eq)).errno("shared receive queue")?;
        let id = driver.id();
        // What fits.
        attr.max_sge = (driver.max_sge() as u32).min(limits(open).0);
        init.attr = attr;
        let srq = Srq { context: domain.pd.context, srq_context: init.srq_context, pd, handle: id, mutex: libc::PTHREAD_MUTEX_INITIALIZER, cond: libc::PTHREAD_COND_INITIALIZER, events_completed: 0 };
        let object = Box::into_raw(Box::new(Self { srq: UnsafeCell::new(srq), driver, attr, async_events: Outstanding::default(), users: AtomicU32::new(0), shared: open.shared.clone() }));
        domain.users.fetch_add(1, Ordering::AcqRel);
        // What is told of an earlier queue of this number nobody gets.
        crate::events::hand_out(&open.shared);
        lock(&open.shared.srqs).insert(id, Entry { serial: serial(), object: object as usize, channel: None, errors: open.events.clone() });
        Ok(object)
    }
}

/// Makes a shared receive queue. `ibv_create_srq_ex` is this function for queues of the basic kind; there are no others.
#[no_mangle]
pub unsafe extern "C" fn ibv_create_srq(pd: *mut Pd, init: *mut SrqInitAttr) -> *mut Srq {
    // SAFETY: by the caller's promise.
    pointer("ibv_create_srq", unsafe { SrqObject::create(pd, &mut *init) }).cast()
}

/// Arms the limit; queues keep their size.
#[no_mangle]
unsafe extern "C" fn ibv_modify_srq(srq: *mut Srq, attr: *mut SrqAttr, mask: c_int) -> c_int {
    // SAFETY: a handle and attributes of the caller's, by its promise.
    let (object, attr) = unsafe { (SrqObject::of(srq), &*attr) };
    number(
        "ibv_modify_srq",
        match mask as c_uint {
            0 => Ok(()),
            IBV_SRQ_LIMIT => u16::try_from(attr.srq_limit).map_err(|_| libc::EINVAL).and_then(|limit| object.driver.modify_srq(limit).errno("limit")),
            mask if mask & !(IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR) == 0 => Err(libc::EOPNOTSUPP),
            _ => Err(libc::EINVAL),
        },
    )
}

#[no_mangle]
unsafe extern "C" fn ibv_query_srq(srq: *mut Srq, attr: *mut SrqAttr) -> c_int {
    // SAFETY: a handle of ours, by the caller's promise.
    let object = unsafe { SrqObject::of(srq) };
    let status = object.driver.query_srq().errno("shared receive queue");
    // SAFETY: an output of the caller's.
    number("ibv_query_srq", status.map(|s| unsafe { attr.write(SrqAttr { srq_limit: s.limit.into(), ..object.attr }) }))
}

/// Destroys a shared receive queue that no queue pair uses.
#[no_mangle]
pub unsafe extern "C" fn ibv_destroy_srq(srq: *mut Srq) -> c_int {
    // SAFETY: a handle of ours, by the caller's promise.
    let object = unsafe { SrqObject::of(srq) };
    if object.users.load(Ordering::Acquire) > 0 {
        return number("ibv_destroy_srq", Err(libc::EBUSY));
    }
    lock(&object.shared.srqs).remove(&object.driver.id());
    object.async_events.wait();
    // SAFETY: as above.
    let pd = unsafe { (*object.srq.get()).pd };
    // SAFETY: from Box::into_raw, and out of the table, so nobody finds it; the domain outlives it.
    unsafe {
        drop(Box::from_raw(srq.cast::<SrqObject>()));
        PdObject::of(pd).users.fetch_sub(1, Ordering::AcqRel);
    }
    0
}

/// Its number: what programs tell their peers of, though peers need it for XRC only.
pub unsafe extern "C" fn get_srq_num(srq: *mut Srq, out: *mut u32) -> c_int {
    // SAFETY: a handle of ours and an output of the caller's, by its promise.
    unsafe { out.write(SrqObject::of(srq).driver.id()) };
    0
}

/// `ibv_post_srq_recv`.
pub unsafe extern "C" fn post_srq_recv(srq: *mut Srq, wr: *mut RecvWr, bad_wr: *mut *mut RecvWr) -> c_int {
    // SAFETY: a handle of ours and a list of requests, by the caller's promise.
    unsafe {
        let object = SrqObject::of(srq);
        let mut posting = object.driver.posting();
        each("ibv_post_srq_recv", wr, bad_wr, |one| {
            let sges = entries(one.sg_list, one.num_sge, object.attr.max_sge)?;
            posting.add(&RecvRequest { wr_id: one.wr_id, sges }).map_err(|e| errno_of(&e))
        })
    }
}
