//! Work requests built call by call (`ibv_wr_start` to `ibv_wr_complete`): gathered here, posted together.
use crate::abi::attr::{QpInitAttr, QpInitAttrEx};
use crate::abi::consts::*;
use crate::abi::objects::{Ah, Context, Qp, QpEx};
use crate::abi::wr::{DataBuf, SendWr, Sge, WrAtomic, WrKind, WrRdma, WrUd};
use crate::errors::{number, pointer};
use crate::post::{send, INLINE};
use crate::qp::QpObject;
use crate::shared::lock;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::Ordering;

/// Requests that a program is building.
#[derive(Default)]
pub struct Batch(Vec<Built>);

struct Built {
    wr_id: u64,
    flags: c_uint,
    opcode: c_uint,
    imm_data: u32,
    kind: WrKind,
    sges: Vec<Sge>,
    inline: Option<Vec<u8>>,
}

// Address handles of the program, used where they are posted.
unsafe impl Send for Built {}

const OPERATIONS: c_uint = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM
    | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

/// `ibv_create_qp_ex`.
pub unsafe extern "C" fn create_qp_ex(_context: *mut Context, attr: *mut QpInitAttrEx) -> *mut Qp {
    // SAFETY: the caller's attributes.
    let attr = unsafe { &mut *attr };
    let extended = attr.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS != 0;
    if attr.comp_mask & !(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0 || extended && attr.send_ops_flags & !u64::from(OPERATIONS) != 0 {
        return pointer("ibv_create_qp_ex", Err(libc::EOPNOTSUPP));
    }
    if attr.comp_mask & IBV_QP_INIT_ATTR_PD == 0 || attr.pd.is_null() {
        return pointer("ibv_create_qp_ex", Err(libc::EINVAL));
    }
    let mut init = QpInitAttr {
        qp_context: attr.qp_context, send_cq: attr.send_cq, recv_cq: attr.recv_cq, srq: attr.srq, cap: attr.cap, qp_type: attr.qp_type, sq_sig_all: attr.sq_sig_all,
    };
    // SAFETY: by the caller's promise.
    let made = unsafe { QpObject::create(attr.pd, &mut init, extended) };
    attr.cap = init.cap;
    pointer("ibv_create_qp_ex", made.map(|object| {
        if extended {
            // SAFETY: just made, nobody else has it.
            fill(unsafe { &mut (*object).ex });
        }
        object.cast()
    }))
}

fn fill(ex: &mut QpEx) {
    ex.wr_atomic_cmp_swp = Some(wr_atomic_cmp_swp);
    ex.wr_atomic_fetch_add = Some(wr_atomic_fetch_add);
    ex.wr_rdma_read = Some(wr_rdma_read);
    ex.wr_rdma_write = Some(wr_rdma_write);
    ex.wr_rdma_write_imm = Some(wr_rdma_write_imm);
    ex.wr_send = Some(wr_send);
    ex.wr_send_imm = Some(wr_send_imm);
    ex.wr_send_inv = Some(wr_send_inv);
    ex.wr_set_ud_addr = Some(wr_set_ud_addr);
    ex.wr_set_inline_data = Some(wr_set_inline_data);
    ex.wr_set_inline_data_list = Some(wr_set_inline_data_list);
    ex.wr_set_sge = Some(wr_set_sge);
    ex.wr_set_sge_list = Some(wr_set_sge_list);
    ex.wr_start = Some(wr_start);
    ex.wr_complete = Some(wr_complete);
    ex.wr_abort = Some(wr_abort);
}

#[no_mangle]
unsafe extern "C" fn ibv_qp_to_qp_ex(qp: *mut Qp) -> *mut QpEx {
    // SAFETY: a handle of ours, by the caller's promise.
    if unsafe { QpObject::of(qp) }.extended { qp.cast() } else { null_mut() }
}

unsafe fn of<'a>(qp: *mut QpEx) -> &'a QpObject {
    // SAFETY: a handle of ours, by the callers' promise.
    unsafe { QpObject::of(qp.cast()) }
}

unsafe fn begin(qp: *mut QpEx, opcode: c_uint, imm_data: u32, kind: WrKind) {
    // SAFETY: by the caller's promise; the program has set both fields before.
    let (object, wr_id, flags) = unsafe { (of(qp), (*qp).wr_id, (*qp).wr_flags) };
    lock(&object.inner).batch.0.push(Built { wr_id, flags: flags & !IBV_SEND_INLINE, opcode, imm_data, kind, sges: Vec::new(), inline: None });
}

/// Changes the request begun last; before the first there is nothing to change.
unsafe fn last(qp: *mut QpEx, f: impl FnOnce(&mut Built)) {
    // SAFETY: by the caller's promise.
    if let Some(built) = lock(&unsafe { of(qp) }.inner).batch.0.last_mut() {
        f(built);
    }
}

const fn rdma(remote_addr: u64, rkey: u32) -> WrKind {
    WrKind { rdma: WrRdma { remote_addr, rkey } }
}

unsafe extern "C" fn wr_start(qp: *mut QpEx) {
    // SAFETY: by the caller's promise.
    let object = unsafe { of(qp) };
    // One thread at a time, until the batch is complete or given up.
    while object.building.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
        std::thread::yield_now();
    }
}

unsafe extern "C" fn wr_abort(qp: *mut QpEx) {
    // SAFETY: by the caller's promise.
    let object = unsafe { of(qp) };
    lock(&object.inner).batch.0.clear();
    object.building.store(false, Ordering::Release);
}

/// Posts what was built. An error leaves those before it posted and the rest undone.
unsafe extern "C" fn wr_complete(qp: *mut QpEx) -> c_int {
    // SAFETY: by the caller's promise.
    let object = unsafe { of(qp) };
    let mut inner = lock(&object.inner);
    let mut batch = std::mem::take(&mut inner.batch.0);
    let mut done = Ok(());
    for b in &mut batch {
        let mut whole = Sge { addr: 0, length: 0, lkey: 0 };
        let (list, n) = match &b.inline {
            Some(bytes) => {
                (whole.addr, whole.length) = (bytes.as_ptr() as u64, bytes.len() as u32);
                (&raw mut whole, 1)
            }
            None => (b.sges.as_mut_ptr(), b.sges.len() as c_int),
        };
        let flags = b.flags | if b.inline.is_some() { IBV_SEND_INLINE } else { 0 };
        let wr = SendWr {
            wr_id: b.wr_id, next: null_mut(), sg_list: list, num_sge: n, opcode: b.opcode, send_flags: flags, imm_data: b.imm_data, wr: b.kind, qp_type: 0,
            opaque_bind: [0; 6],
        };
        // SAFETY: a request whose lists live until the call is over.
        done = unsafe { send(&mut inner, &wr) };
        if done.is_err() {
            break;
        }
    }
    batch.clear();
    inner.batch.0 = batch;
    drop(inner);
    object.building.store(false, Ordering::Release);
    number("ibv_wr_complete", done)
}

unsafe extern "C" fn wr_atomic_cmp_swp(qp: *mut QpEx, rkey: u32, remote_addr: u64, compare_add: u64, swap: u64) {
    // SAFETY: by the caller's promise.
    unsafe { begin(qp, IBV_WR_ATOMIC_CMP_AND_SWP, 0, WrKind { atomic: WrAtomic { remote_addr, compare_add, swap, rkey } }) }
}
unsafe extern "C" fn wr_atomic_fetch_add(qp: *mut QpEx, rkey: u32, remote_addr: u64, compare_add: u64) {
    // SAFETY: by the caller's promise.
    unsafe { begin(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, WrKind { atomic: WrAtomic { remote_addr, compare_add, swap: 0, rkey } }) }
}
unsafe extern "C" fn wr_rdma_read(qp: *mut QpEx, rkey: u32, remote_addr: u64) {
    // SAFETY: by the caller's promise.
    unsafe { begin(qp, IBV_WR_RDMA_READ, 0, rdma(remote_addr, rkey)) }
}
unsafe extern "C" fn wr_rdma_write(qp: *mut QpEx, rkey: u32, remote_addr: u64) {
    // SAFETY: by the caller's promise.
    unsafe { begin(qp, IBV_WR_RDMA_WRITE, 0, rdma(remote_addr, rkey)) }
}
unsafe extern "C" fn wr_rdma_write_imm(qp: *mut QpEx, rkey: u32, remote_addr: u64, imm: u32) {
    // SAFETY: by the caller's promise.
    unsafe { begin(qp, IBV_WR_RDMA_WRITE_WITH_IMM, imm, rdma(remote_addr, rkey)) }
}
/// Of a SEND: datagrams are given theirs by `ibv_wr_set_ud_addr`.
const NOWHERE: WrKind = WrKind { ud: WrUd { ah: null_mut(), remote_qpn: 0, remote_qkey: 0 } };

unsafe extern "C" fn wr_send(qp: *mut QpEx) {
    // SAFETY: by the caller's promise.
    unsafe { begin(qp, IBV_WR_SEND, 0, NOWHERE) }
}
unsafe extern "C" fn wr_send_imm(qp: *mut QpEx, imm: u32) {
    // SAFETY: by the caller's promise.
    unsafe { begin(qp, IBV_WR_SEND_WITH_IMM, imm, NOWHERE) }
}
unsafe extern "C" fn wr_send_inv(qp: *mut QpEx, rkey: u32) {
    // SAFETY: by the caller's promise.
    unsafe { begin(qp, IBV_WR_SEND_WITH_INV, rkey, NOWHERE) }
}
unsafe extern "C" fn wr_set_ud_addr(qp: *mut QpEx, ah: *mut Ah, remote_qpn: u32, remote_qkey: u32) {
    // SAFETY: by the caller's promise.
    unsafe { last(qp, |b| b.kind = WrKind { ud: WrUd { ah, remote_qpn, remote_qkey } }) }
}
unsafe extern "C" fn wr_set_sge(qp: *mut QpEx, lkey: u32, addr: u64, length: u32) {
    // SAFETY: by the caller's promise.
    unsafe { last(qp, |b| b.sges = vec![Sge { addr, length, lkey }]) }
}
unsafe extern "C" fn wr_set_sge_list(qp: *mut QpEx, n: usize, list: *const Sge) {
    // SAFETY: `n` entries, by the caller's promise.
    unsafe { last(qp, |b| b.sges = if n == 0 { Vec::new() } else { std::slice::from_raw_parts(list, n).to_vec() }) }
}

/// More than a request can have is cut one byte behind the most, so that posting refuses it.
unsafe fn append(to: &mut Vec<u8>, addr: *const c_void, length: usize) {
    let n = length.min((INLINE + 1).saturating_sub(to.len()));
    if n > 0 {
        // SAFETY: readable memory, by the caller's promise.
        to.extend_from_slice(unsafe { std::slice::from_raw_parts(addr.cast::<u8>(), n) });
    }
}

unsafe extern "C" fn wr_set_inline_data(qp: *mut QpEx, addr: *mut c_void, length: usize) {
    // SAFETY: by the caller's promise.
    unsafe {
        last(qp, |b| {
            let mut bytes = Vec::new();
            append(&mut bytes, addr, length);
            b.inline = Some(bytes);
        })
    }
}
unsafe extern "C" fn wr_set_inline_data_list(qp: *mut QpEx, n: usize, list: *const DataBuf) {
    // SAFETY: `n` buffers, by the caller's promise.
    unsafe {
        last(qp, |b| {
            let mut bytes = Vec::new();
            (0..n).for_each(|i| append(&mut bytes, (*list.add(i)).addr, (*list.add(i)).length));
            b.inline = Some(bytes);
        })
    }
}
