//! Work requests built call by call (`ibv_wr_start` to `ibv_wr_complete`): each is built in its slot of the send queue, and they are posted together.
use crate::abi::attr::{QpInitAttr, QpInitAttrEx};
use crate::abi::consts::*;
use crate::abi::objects::{Ah, Context, Mw, Qp, QpEx};
use crate::abi::wr::{DataBuf, MwBindInfo, Sge, WrAtomic, WrFlush, WrKind, WrRdma, WrUd, WrValue};
use crate::errors::{errno_of, number, pointer};
use crate::mw::stage_bind;
use crate::post::{entries, place_inline, stage, Request};
use crate::qp::{QpInner, QpObject};
use ferric_driver::qp::{Payload, Placed};
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

/// Requests that a program is building. They are built in the send queue itself, of which the card hears when all are complete.
#[derive(Default)]
pub struct Batch {
    /// A program is between `ibv_wr_start` and `ibv_wr_complete`.
    pub building: bool,
    /// What is wrong with the first that cannot be posted; then none is.
    refused: Option<c_int>,
    /// The last one, to which more may be added.
    last: Option<Built>,
}

struct Built {
    request: Request,
    /// What it sends stands in the queue already.
    placed: Placed,
    /// It sends inline.
    inline: bool,
}

// SAFETY: address handles of the program, used where they are posted.
unsafe impl Send for Built {}

const OPERATIONS: c_uint = IBV_QP_EX_WITH_RDMA_WRITE
    | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM
    | IBV_QP_EX_WITH_SEND
    | IBV_QP_EX_WITH_SEND_WITH_IMM
    | IBV_QP_EX_WITH_SEND_WITH_INV
    | IBV_QP_EX_WITH_LOCAL_INV
    | IBV_QP_EX_WITH_BIND_MW
    | IBV_QP_EX_WITH_RDMA_READ
    | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP
    | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD
    | IBV_QP_EX_WITH_FLUSH
    | IBV_QP_EX_WITH_ATOMIC_WRITE;

/// `ibv_create_qp_ex`.
pub unsafe extern "C" fn create_qp_ex(_context: *mut Context, attr: *mut QpInitAttrEx) -> *mut Qp {
    // SAFETY: the caller's attributes.
    let attr = unsafe { &mut *attr };
    let extended = attr.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS != 0;
    let known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    let flags = if attr.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS != 0 { attr.create_flags } else { 0 };
    if attr.comp_mask & !known != 0 || flags != 0 || extended && attr.send_ops_flags & !u64::from(OPERATIONS) != 0 {
        return pointer("ibv_create_qp_ex", Err(libc::EOPNOTSUPP));
    }
    if attr.comp_mask & IBV_QP_INIT_ATTR_PD == 0 || attr.pd.is_null() {
        return pointer("ibv_create_qp_ex", Err(libc::EINVAL));
    }
    let mut init = QpInitAttr { qp_context: attr.qp_context, send_cq: attr.send_cq, recv_cq: attr.recv_cq, srq: attr.srq, cap: attr.cap, qp_type: attr.qp_type, sq_sig_all: attr.sq_sig_all };
    // SAFETY: by the caller's promise.
    let made = unsafe { QpObject::create(attr.pd, &mut init, extended) };
    attr.cap = init.cap;
    pointer(
        "ibv_create_qp_ex",
        made.map(|object| {
            if extended {
                // SAFETY: just made, nobody else has it.
                fill(unsafe { &mut *(*object).seen() });
            }
            object.cast()
        }),
    )
}

fn fill(ex: &mut QpEx) {
    ex.wr_atomic_cmp_swp = Some(wr_atomic_cmp_swp);
    ex.wr_atomic_fetch_add = Some(wr_atomic_fetch_add);
    ex.wr_bind_mw = Some(wr_bind_mw);
    ex.wr_local_inv = Some(wr_local_inv);
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
    ex.wr_atomic_write = Some(wr_atomic_write);
}

#[no_mangle]
unsafe extern "C" fn ibv_qp_to_qp_ex(qp: *mut Qp) -> *mut QpEx {
    // SAFETY: a handle of ours, by the caller's promise.
    if unsafe { QpObject::of(qp) }.extended {
        qp.cast()
    } else {
        null_mut()
    }
}

unsafe fn of<'a>(qp: *mut QpEx) -> &'a QpObject {
    // SAFETY: a handle of ours, by the callers' promise.
    unsafe { QpObject::of(qp.cast()) }
}

/// Begins a request; the one before it is whole now.
unsafe fn begin(qp: *mut QpEx, opcode: c_uint, imm_data: u32, kind: WrKind) {
    // SAFETY: by the caller's promise; the program has set both fields before.
    let (object, wr_id, flags) = unsafe { (of(qp), (*qp).wr_id, (*qp).wr_flags) };
    let mut inner = object.inner.lock();
    end_last(&mut inner);
    let request = Request { wr_id, flags: flags & !IBV_SEND_INLINE, opcode, imm_data, kind };
    inner.batch.last = Some(Built { request, placed: Placed::default(), inline: false });
}

/// The request begun last is whole: it takes its slot.
fn end_last(inner: &mut QpInner) {
    let Some(built) = inner.batch.last.take() else { return };
    if inner.batch.refused.is_none() {
        let request = Request { flags: built.request.flags | if built.inline { IBV_SEND_INLINE } else { 0 }, ..built.request };
        // SAFETY: the union was filled by the function that stands for the operation.
        inner.batch.refused = unsafe { stage(inner, &request, Payload::Placed(built.placed)) }.err();
    }
}

/// Puts what the request begun last sends into its slot; before the first there is nothing to change.
unsafe fn place(qp: *mut QpEx, inline: bool, f: impl FnOnce(&mut QpInner, bool) -> Result<Placed, c_int>) {
    // SAFETY: by the caller's promise.
    let mut inner = unsafe { of(qp) }.inner.lock();
    let Some(opcode) = inner.batch.last.as_ref().map(|b| b.request.opcode) else { return };
    if inner.batch.refused.is_some() {
        return;
    }
    let done = f(&mut inner, matches!(opcode, IBV_WR_ATOMIC_CMP_AND_SWP | IBV_WR_ATOMIC_FETCH_AND_ADD));
    match (done, &mut inner.batch.last) {
        (Ok(placed), Some(built)) => (built.placed, built.inline) = (placed, inline),
        (Ok(_), None) => {}
        (Err(n), _) => inner.batch.refused = Some(n),
    }
}

const fn rdma(remote_addr: u64, rkey: u32) -> WrKind {
    WrKind { rdma: WrRdma { remote_addr, rkey } }
}

unsafe extern "C" fn wr_start(qp: *mut QpEx) {
    // SAFETY: by the caller's promise. One thread at a time, until the batch is complete or given up.
    unsafe { of(qp) }.sending().batch = Batch { building: true, ..Default::default() };
}

unsafe extern "C" fn wr_abort(qp: *mut QpEx) {
    // SAFETY: by the caller's promise.
    let mut inner = unsafe { of(qp) }.inner.lock();
    inner.driver.unstage();
    inner.batch = Batch::default();
}

/// Posts what was built, all of it or nothing.
unsafe extern "C" fn wr_complete(qp: *mut QpEx) -> c_int {
    // SAFETY: by the caller's promise.
    let mut inner = unsafe { of(qp) }.inner.lock();
    end_last(&mut inner);
    let done = inner.batch.refused.map_or(Ok(()), Err);
    if done.is_err() {
        inner.driver.unstage();
    }
    inner.driver.ring();
    inner.batch = Batch::default();
    drop(inner);
    number("ibv_wr_complete", done)
}

/// A bind is whole with its call.
unsafe extern "C" fn wr_bind_mw(qp: *mut QpEx, mw: *mut Mw, rkey: u32, info: *const MwBindInfo) {
    // SAFETY: by the caller's promise; the program has set both fields before.
    let (mut inner, wr_id, flags, info) = unsafe { (of(qp).inner.lock(), (*qp).wr_id, (*qp).wr_flags, &*info) };
    end_last(&mut inner);
    if inner.batch.refused.is_none() {
        // SAFETY: as above.
        inner.batch.refused = unsafe { stage_bind(&mut inner, wr_id, flags, mw, rkey, info) }.err();
    }
}

unsafe extern "C" fn wr_local_inv(qp: *mut QpEx, invalidate_rkey: u32) {
    // SAFETY: by the caller's promise.
    unsafe { begin(qp, IBV_WR_LOCAL_INV, invalidate_rkey, rdma(0, 0)) }
}

unsafe extern "C" fn wr_atomic_cmp_swp(qp: *mut QpEx, rkey: u32, remote_addr: u64, compare_add: u64, swap: u64) {
    // SAFETY: by the caller's promise.
    unsafe { begin(qp, IBV_WR_ATOMIC_CMP_AND_SWP, 0, WrKind { atomic: WrAtomic { remote_addr, compare_add, swap, rkey } }) }
}
unsafe extern "C" fn wr_atomic_fetch_add(qp: *mut QpEx, rkey: u32, remote_addr: u64, compare_add: u64) {
    // SAFETY: by the caller's promise.
    unsafe { begin(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, WrKind { atomic: WrAtomic { remote_addr, compare_add, swap: 0, rkey } }) }
}
unsafe extern "C" fn wr_atomic_write(qp: *mut QpEx, rkey: u32, remote_addr: u64, atomic_wr: *const c_void) {
    // SAFETY: 8 bytes of the program's, by the caller's promise; they are taken now.
    unsafe { begin(qp, IBV_WR_ATOMIC_WRITE, 0, WrKind { value: WrValue { remote_addr, value: atomic_wr.cast::<[u8; 8]>().read_unaligned(), rkey } }) }
}
/// `ibv_wr_flush`.
pub unsafe extern "C" fn wr_flush(qp: *mut QpEx, rkey: u32, remote_addr: u64, length: usize, placement: u8, level: u8) {
    // SAFETY: by the caller's promise.
    unsafe { begin(qp, IBV_WR_FLUSH, 0, WrKind { flush: WrFlush { remote_addr, length: length as u64, rkey, placement, level } }) }
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
    if let Some(built) = &mut unsafe { of(qp) }.inner.lock().batch.last {
        built.request.kind = WrKind { ud: WrUd { ah, remote_qpn, remote_qkey } };
    }
}
unsafe extern "C" fn wr_set_sge(qp: *mut QpEx, lkey: u32, addr: u64, length: u32) {
    let one = Sge { addr, length, lkey };
    // SAFETY: by the caller's promise.
    unsafe { wr_set_sge_list(qp, 1, &one) }
}
unsafe extern "C" fn wr_set_sge_list(qp: *mut QpEx, n: usize, list: *const Sge) {
    // SAFETY: `n` entries, by the caller's promise.
    unsafe {
        place(qp, false, |inner, atomic| {
            let n = c_int::try_from(n).map_err(|_| libc::EINVAL)?;
            let sges = entries(list.cast_mut(), n, inner.cap.max_send_sge)?;
            inner.driver.place_entries(atomic, sges).map_err(|e| errno_of(&e))
        })
    }
}
unsafe extern "C" fn wr_set_inline_data(qp: *mut QpEx, addr: *mut c_void, length: usize) {
    // SAFETY: by the caller's promise.
    unsafe { place(qp, true, |inner, _| place_inline(inner, std::iter::once((addr.cast::<u8>().cast_const(), length)))) }
}
unsafe extern "C" fn wr_set_inline_data_list(qp: *mut QpEx, n: usize, list: *const DataBuf) {
    // SAFETY: by the caller's promise.
    unsafe {
        place(qp, true, |inner, _| {
            let buffers = if n == 0 { &[] } else { std::slice::from_raw_parts(list, n) };
            place_inline(inner, buffers.iter().map(|b| (b.addr.cast::<u8>().cast_const(), b.length)))
        })
    }
}
