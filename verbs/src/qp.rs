//! Queue pairs: made, asked about, destroyed.
use crate::abi::attr::{GidWords, QpAttr, QpCap, QpInitAttr};
use crate::abi::consts::*;
use crate::abi::objects::{Pd, Qp, QpEx};
use crate::config::ip_of;
use crate::context::ContextObject;
use crate::cq::CqObject;
use crate::errors::{number, pointer, Errno};
use crate::events::Outstanding;
use crate::latch::{Guard, Latch};
use crate::mr::PdObject;
use crate::qp_ex::{wr_flush, Batch};
use crate::query::{limits, MAX_DEPTH};
use crate::shared::{lock, serial, Entry, Shared};
use crate::srq::SrqObject;
use ferric_abi::codes::AdminStatus;
use ferric_driver::{CompletionQueue, Error, QpConfig, QpState, QpType, QueuePair};
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_uint, c_void};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

/// A queue pair.
#[repr(C)]
pub struct QpObject {
    /// What the program sees, and may read and write at any time: only ever reached through [`QpObject::seen`].
    ex: UnsafeCell<QpEx>,
    /// Where rdma-core has had it from 45 on, behind what the headers of Debian 12 know.
    pub wr_flush: Option<WrFlushCall>,
    /// What posting and modifying change.
    pub inner: Latch<QpInner>,
    /// It was made for the functions of [`crate::qp_ex`].
    pub extended: bool,
    /// The program wants to hear when it is drained.
    pub tell_drained: AtomicBool,
    /// Flows that lead to it.
    pub flows: AtomicUsize,
    /// Asynchronous events the program has.
    pub async_events: Outstanding,
    /// The card.
    pub shared: Arc<Shared>,
}

/// `wr_flush` of `struct ibv_qp_ex`: key, address, length, placement type, selectivity level.
pub type WrFlushCall = unsafe extern "C" fn(*mut QpEx, u32, u64, usize, u8, u8);
const _: () = assert!(std::mem::offset_of!(QpObject, wr_flush) == size_of::<QpEx>());

/// Behind the lock.
pub struct QpInner {
    /// The driver's.
    pub driver: QueuePair,
    /// `ibv_qp_type`.
    pub kind: c_uint,
    /// What fits into its queues.
    pub cap: QpCap,
    /// Every send is signalled.
    pub signal_all: bool,
    /// What it was set to.
    pub attr: QpAttr,
    /// Requests being built.
    pub batch: Batch,
}

impl QpObject {
    /// # Safety
    /// `qp` is a handle that is in use.
    pub unsafe fn of<'a>(qp: *mut Qp) -> &'a Self {
        // SAFETY: the handle is the first field.
        unsafe { &*qp.cast::<Self>() }
    }

    /// What the program sees.
    pub fn seen(&self) -> *mut QpEx {
        self.ex.get()
    }

    /// To post: also waits until no other thread is between `ibv_wr_start` and `ibv_wr_complete`.
    #[inline(always)]
    pub fn sending(&self) -> Guard<'_, QpInner> {
        loop {
            let inner = self.inner.lock();
            if !inner.batch.building {
                return inner;
            }
            drop(inner);
            std::thread::yield_now();
        }
    }

    /// Makes one.
    ///
    /// # Safety
    /// Handles in use; `init` is the caller's.
    pub unsafe fn create(pd: *mut Pd, init: &mut QpInitAttr, extended: bool) -> Result<*mut Self, c_int> {
        let qp_type = match init.qp_type {
            IBV_QPT_RC => QpType::Rc,
            IBV_QPT_UC => QpType::Uc,
            IBV_QPT_UD => QpType::Ud,
            IBV_QPT_RAW_PACKET => QpType::Raw,
            _ => return Err(libc::EOPNOTSUPP),
        };
        if init.send_cq.is_null() || init.recv_cq.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: handles in use.
        let (domain, send_cq, recv_cq) = unsafe { (PdObject::of(pd), CqObject::of(init.send_cq), CqObject::of(init.recv_cq)) };
        // SAFETY: a domain's context is open.
        let open = unsafe { ContextObject::of(domain.pd.context) };
        let (mut cap, (sge, inline)) = (init.cap, limits(open));
        // SAFETY: null, or a handle in use.
        let srq = unsafe { init.srq.cast::<SrqObject>().as_ref() };
        if srq.is_some() {
            if qp_type == QpType::Raw {
                return Err(libc::EOPNOTSUPP);
            }
            // What they say of receives does not matter then.
            (cap.max_recv_wr, cap.max_recv_sge) = (0, 0);
        }
        if cap.max_send_wr.max(cap.max_recv_wr) > MAX_DEPTH || cap.max_send_sge.max(cap.max_recv_sge) > sge || cap.max_inline_data > inline {
            return Err(libc::EINVAL);
        }
        let depth = |n: u32| n.max(2).next_power_of_two();
        (cap.max_send_wr, cap.max_send_sge) = (depth(cap.max_send_wr), cap.max_send_sge.max(1));
        if srq.is_none() {
            (cap.max_recv_wr, cap.max_recv_sge) = (depth(cap.max_recv_wr), cap.max_recv_sge.max(1));
        }
        let config = QpConfig {
            qp_type,
            max_send: cap.max_send_wr as usize,
            max_recv: cap.max_recv_wr as usize,
            max_send_sge: cap.max_send_sge as usize,
            max_recv_sge: cap.max_recv_sge as usize,
            max_inline: cap.max_inline_data as usize,
            signal_all: init.sq_sig_all != 0,
        };
        let driver = {
            let make = |send: &CompletionQueue, recv: &CompletionQueue| match srq {
                Some(srq) => domain.driver.create_qp_on_srq(&config, send, recv, &srq.driver),
                None => domain.driver.create_qp(&config, send, recv),
            };
            let polled = send_cq.inner.lock();
            if init.send_cq == init.recv_cq {
                make(&polled.driver, &polled.driver)
            } else {
                make(&polled.driver, &recv_cq.inner.lock().driver)
            }
        };
        if let (QpType::Raw, Err(Error::Admin { status: AdminStatus::Denied, .. })) = (qp_type, &driver) {
            let function = open.shared.driver.capabilities().function;
            log::warn!("raw packet queue pairs are function 0's and those of functions whose tunnel says so, and this process has function {function}");
            return Err(libc::EPERM);
        }
        let driver = driver.errno("queue pair")?;
        let (qpn, fits) = (driver.qpn(), driver.limits());
        // What fits, which may be more than was asked for.
        let least = |n: usize, most: u32| (n as u32).min(most);
        (cap.max_send_wr, cap.max_send_sge, cap.max_inline_data) = (fits.max_send as u32, least(fits.max_send_sge, sge), least(fits.max_inline, inline));
        if srq.is_none() {
            (cap.max_recv_wr, cap.max_recv_sge) = (fits.max_recv as u32, least(fits.max_recv_sge, sge));
        }
        init.cap = cap;
        // SAFETY: all zeros are null pointers, absent functions and numbers.
        let mut ex: QpEx = unsafe { std::mem::zeroed() };
        ex.qp_base = Qp {
            context: domain.pd.context,
            qp_context: init.qp_context,
            pd,
            send_cq: init.send_cq,
            recv_cq: init.recv_cq,
            srq: init.srq,
            handle: qpn,
            qp_num: qpn,
            state: IBV_QPS_RESET,
            qp_type: init.qp_type,
            mutex: libc::PTHREAD_MUTEX_INITIALIZER,
            cond: libc::PTHREAD_COND_INITIALIZER,
            events_completed: 0,
        };
        let attr = QpAttr { cap, ..Default::default() };
        let inner = QpInner { driver, kind: init.qp_type, cap, signal_all: init.sq_sig_all != 0, attr, batch: Batch::default() };
        let object = Box::into_raw(Box::new(Self {
            ex: UnsafeCell::new(ex),
            wr_flush: extended.then_some(wr_flush as WrFlushCall),
            inner: Latch::new(inner),
            extended,
            tell_drained: AtomicBool::new(false),
            flows: AtomicUsize::new(0),
            async_events: Outstanding::default(),
            shared: open.shared.clone(),
        }));
        domain.users.fetch_add(1, Ordering::AcqRel);
        [send_cq, recv_cq].map(|cq| &cq.users).into_iter().chain(srq.map(|s| &s.users)).for_each(|users| {
            users.fetch_add(1, Ordering::AcqRel);
        });
        let entry = Entry { serial: serial(), object: object as usize, channel: None, errors: open.events.clone() };
        // What is told of an earlier queue pair of this number nobody gets.
        crate::events::hand_out(&open.shared);
        lock(&open.shared.qps).insert(qpn, entry);
        Ok(object)
    }
}

/// Makes a queue pair.
#[no_mangle]
pub unsafe extern "C" fn ibv_create_qp(pd: *mut Pd, init: *mut QpInitAttr) -> *mut Qp {
    // SAFETY: by the caller's promise.
    pointer("ibv_create_qp", unsafe { QpObject::create(pd, &mut *init, false) }).cast()
}

/// Destroys a queue pair.
#[no_mangle]
pub unsafe extern "C" fn ibv_destroy_qp(qp: *mut Qp) -> c_int {
    // SAFETY: a handle of ours, by the caller's promise.
    let object = unsafe { QpObject::of(qp) };
    if object.flows.load(Ordering::Acquire) > 0 {
        return number("ibv_destroy_qp", Err(libc::EBUSY));
    }
    // SAFETY: as above.
    let base = unsafe { (*object.seen()).qp_base };
    lock(&object.shared.qps).remove(&base.qp_num);
    object.async_events.wait();
    let (pd, srq, cqs) = (base.pd, base.srq, [base.send_cq, base.recv_cq]);
    // SAFETY: from Box::into_raw, and out of the table, so nobody finds it; what it was made from outlives it.
    unsafe {
        drop(Box::from_raw(qp.cast::<QpObject>()));
        cqs.iter().for_each(|cq| {
            CqObject::of(*cq).users.fetch_sub(1, Ordering::AcqRel);
        });
        if let Some(srq) = srq.cast::<SrqObject>().as_ref() {
            srq.users.fetch_sub(1, Ordering::AcqRel);
        }
        PdObject::of(pd).users.fetch_sub(1, Ordering::AcqRel);
    }
    0
}

#[no_mangle]
unsafe extern "C" fn ibv_query_qp(qp: *mut Qp, attr: *mut QpAttr, _mask: c_int, init: *mut QpInitAttr) -> c_int {
    // SAFETY: a handle of ours, by the caller's promise.
    let object = unsafe { QpObject::of(qp) };
    let inner = object.inner.lock();
    let status = match inner.driver.query().errno("queue pair") {
        Ok(status) => status,
        Err(n) => return number("ibv_query_qp", Err(n)),
    };
    let mut a = inner.attr;
    if status.state == QpState::Error || status.responder_state == QpState::Error {
        // It may have gone there by itself.
        a.qp_state = IBV_QPS_ERR;
    } else if status.state == QpState::SqError {
        a.qp_state = IBV_QPS_SQE;
    }
    a.cur_qp_state = a.qp_state;
    if a.qp_state == IBV_QPS_RTS {
        (a.sq_psn, a.rq_psn) = (status.next_psn, status.expected_psn);
    }
    // SAFETY: as above.
    let base = unsafe { (*object.seen()).qp_base };
    // SAFETY: outputs of the caller's.
    unsafe {
        attr.write(a);
        init.write(QpInitAttr { qp_context: base.qp_context, send_cq: base.send_cq, recv_cq: base.recv_cq, srq: base.srq, cap: inner.cap, qp_type: inner.kind, sq_sig_all: inner.signal_all.into() });
    }
    0
}

/// The card places the bytes of a message in any order.
#[no_mangle]
extern "C" fn ibv_query_qp_data_in_order(_qp: *mut Qp, _op: c_uint, _flags: u32) -> c_int {
    0
}

/// Joins or leaves the group of a GID; LIDs are not RoCE's.
unsafe fn group(what: &str, qp: *mut Qp, gid: *const GidWords, change: fn(&QueuePair, IpAddr) -> Result<(), ferric_driver::Error>) -> c_int {
    // SAFETY: a handle of ours and a GID of the caller's, by its promise.
    let (object, group) = unsafe { (QpObject::of(qp), ip_of(&gid.read_unaligned())) };
    let inner = object.inner.lock();
    if inner.kind != IBV_QPT_UD || !group.is_multicast() {
        return number(what, Err(libc::EINVAL));
    }
    number(what, change(&inner.driver, group).errno("multicast group"))
}

/// Datagrams to a group reach the queue pair from now on.
#[no_mangle]
pub unsafe extern "C" fn ibv_attach_mcast(qp: *mut Qp, gid: *const GidWords, _lid: u16) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe { group("ibv_attach_mcast", qp, gid, QueuePair::attach_multicast) }
}

/// No longer.
#[no_mangle]
pub unsafe extern "C" fn ibv_detach_mcast(qp: *mut Qp, gid: *const GidWords, _lid: u16) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe { group("ibv_detach_mcast", qp, gid, QueuePair::detach_multicast) }
}

macro_rules! not_there {
    ($( $name:ident ( $($arg:ty),* ); )*) => { $(
        #[no_mangle]
        extern "C" fn $name($(_: $arg),*) -> c_int {
            number(stringify!($name), Err(libc::EOPNOTSUPP))
        }
    )* };
}

not_there! {
    ibv_set_ece(*mut Qp, *mut c_void);
    ibv_query_ece(*mut Qp, *mut c_void);
}
