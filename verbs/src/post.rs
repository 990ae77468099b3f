//! The data path: work requests of verbs become the driver's.
use crate::abi::consts::*;
use crate::abi::objects::Qp;
use crate::abi::wr::{RecvWr, SendWr, Sge as CSge};
use crate::ah::AhObject;
use crate::errors::errno_of;
use crate::qp::{QpInner, QpObject};
use crate::shared::lock;
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{LocalSge, Payload};
use ferric_driver::{AtomicOp, AtomicRequest, DatagramRequest, ReadRequest, RecvRequest, SendRequest};
use std::ffi::c_int;

/// Inline bytes of a request at most.
pub const INLINE: usize = 512;

// An entry of verbs and one of the card are the same sixteen bytes on the little-endian machines that can have a card.
const _: () = assert!(size_of::<CSge>() == size_of::<LocalSge>() && cfg!(target_endian = "little"));

/// The entries of a request.
///
/// # Safety
/// `n` of them, or fewer than none, at `list`.
pub unsafe fn entries<'a>(list: *mut CSge, n: c_int, most: u32) -> Result<&'a [LocalSge], c_int> {
    match u32::try_from(n) {
        Ok(0) => Ok(&[]),
        // SAFETY: `n` entries, by the caller's promise, in the card's layout (above).
        Ok(n) if n <= most && !list.is_null() => Ok(unsafe { std::slice::from_raw_parts(list.cast::<LocalSge>(), n as usize) }),
        _ => Err(libc::EINVAL),
    }
}

/// Copies what a request of several entries sends inline.
unsafe fn gather(sges: &[LocalSge], most: u32, room: &mut [u8; INLINE]) -> Result<usize, c_int> {
    let mut n = 0;
    for s in sges {
        let len = s.length() as usize;
        if n + len > (most as usize).min(INLINE) {
            return Err(libc::EINVAL);
        }
        // SAFETY: readable memory of the program, by the rules of IBV_SEND_INLINE; room was checked.
        unsafe { std::ptr::copy_nonoverlapping(s.addr() as *const u8, room.as_mut_ptr().add(n), len) };
        n += len;
    }
    Ok(n)
}

/// Posts one request.
///
/// # Safety
/// `wr` is as `ibv_post_send` wants it.
pub unsafe fn send(inner: &mut QpInner, wr: &SendWr) -> Result<(), c_int> {
    // SAFETY: by the caller's promise.
    let sges = unsafe { entries(wr.sg_list, wr.num_sge, inner.cap.max_send_sge) }?;
    if wr.send_flags & !31 != 0 {
        return Err(libc::EINVAL);
    }
    let has = |flag: u32| wr.send_flags & flag != 0;
    let mut room = [0; INLINE];
    let payload = if has(IBV_SEND_INLINE) {
        // SAFETY: by the caller's promise.
        let n = unsafe { gather(sges, inner.cap.max_inline_data, &mut room) }?;
        Payload::Inline(&room[..n])
    } else {
        Payload::Sges(sges)
    };
    let (wr_id, signaled, solicited, fence) = (wr.wr_id, has(IBV_SEND_SIGNALED), has(IBV_SEND_SOLICITED), has(IBV_SEND_FENCE));
    let imm = u32::from_be(wr.imm_data);
    let qp = &mut inner.driver;
    // SAFETY: which part of the union is in use follows from the transport and the operation, as the interface has it.
    let done = unsafe {
        if inner.kind == IBV_QPT_UD {
            let imm = match wr.opcode {
                IBV_WR_SEND => None,
                IBV_WR_SEND_WITH_IMM => Some(imm),
                _ => return Err(libc::EINVAL),
            };
            let Some(ah) = wr.wr.ud.ah.cast::<AhObject>().as_ref() else { return Err(libc::EINVAL) };
            let (dest_qpn, qkey) = (wr.wr.ud.remote_qpn, wr.wr.ud.remote_qkey);
            qp.post_send_ud(&DatagramRequest { wr_id, payload, to: &ah.to, dest_qpn, qkey, imm, signaled, solicited })
        } else {
            let (remote_addr, rkey) = (wr.wr.rdma.remote_addr, wr.wr.rdma.rkey);
            let opcode = match wr.opcode {
                IBV_WR_RDMA_WRITE => WrOpcode::Write,
                IBV_WR_RDMA_WRITE_WITH_IMM => WrOpcode::WriteImm,
                IBV_WR_SEND => WrOpcode::Send,
                IBV_WR_SEND_WITH_IMM => WrOpcode::SendImm,
                // In place of immediate data, and in the program's byte order.
                IBV_WR_SEND_WITH_INV if inner.kind == IBV_QPT_RC => WrOpcode::SendInv,
                IBV_WR_RDMA_READ if inner.kind == IBV_QPT_RC && !has(IBV_SEND_INLINE) => {
                    return qp.post_read(&ReadRequest { wr_id, sges, remote_addr, rkey, signaled, fence }).map_err(|e| errno_of(&e));
                }
                IBV_WR_ATOMIC_CMP_AND_SWP | IBV_WR_ATOMIC_FETCH_AND_ADD if inner.kind == IBV_QPT_RC && !has(IBV_SEND_INLINE) => {
                    let a = wr.wr.atomic;
                    let op = if wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD {
                        AtomicOp::FetchAdd(a.compare_add)
                    } else {
                        AtomicOp::CompareSwap { compare: a.compare_add, swap: a.swap }
                    };
                    let request = AtomicRequest { wr_id, op, sges, remote_addr: a.remote_addr, rkey: a.rkey, signaled, fence };
                    return qp.post_atomic(&request).map_err(|e| errno_of(&e));
                }
                _ => return Err(libc::EINVAL),
            };
            let imm = if opcode == WrOpcode::SendInv { wr.imm_data } else { imm };
            let request = SendRequest { wr_id, opcode, payload, remote_addr, rkey, imm, signaled, solicited };
            if fence { qp.post_send_fenced(&request) } else { qp.post_send(&request) }
        }
    };
    done.map_err(|e| errno_of(&e))
}

/// A request in a list of them.
pub trait Listed {
    /// The one behind it, or null.
    fn next(&self) -> *mut Self;
}

impl Listed for SendWr {
    fn next(&self) -> *mut Self {
        self.next
    }
}

impl Listed for RecvWr {
    fn next(&self) -> *mut Self {
        self.next
    }
}

/// Posts a list of requests one by one, until the first that is refused: `bad_wr` points to it then.
///
/// # Safety
/// A list that ends with a null pointer.
pub unsafe fn each<W: Listed>(what: &str, list: *mut W, bad_wr: *mut *mut W, mut post: impl FnMut(&W) -> Result<(), c_int>) -> c_int {
    let mut at = list;
    // SAFETY: by the caller's promise.
    while let Some(one) = unsafe { at.as_ref() } {
        if let Err(n) = post(one) {
            log::debug!("{what}: errno {n}");
            // SAFETY: the caller's.
            unsafe { bad_wr.write(at) };
            return n;
        }
        at = one.next();
    }
    0
}

/// `ibv_post_send`.
pub unsafe extern "C" fn post_send(qp: *mut Qp, wr: *mut SendWr, bad_wr: *mut *mut SendWr) -> c_int {
    // SAFETY: a handle of ours and a list of requests, by the caller's promise.
    unsafe {
        let mut inner = lock(&QpObject::of(qp).inner);
        each("ibv_post_send", wr, bad_wr, |one| send(&mut inner, one))
    }
}

/// `ibv_post_recv`.
pub unsafe extern "C" fn post_recv(qp: *mut Qp, wr: *mut RecvWr, bad_wr: *mut *mut RecvWr) -> c_int {
    // SAFETY: a handle of ours and a list of requests, by the caller's promise.
    unsafe {
        let mut inner = lock(&QpObject::of(qp).inner);
        each("ibv_post_recv", wr, bad_wr, |one| {
            let sges = entries(one.sg_list, one.num_sge, inner.cap.max_recv_sge)?;
            inner.driver.post_recv(&RecvRequest { wr_id: one.wr_id, sges }).map_err(|e| errno_of(&e))
        })
    }
}
