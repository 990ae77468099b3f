//! The data path: work requests of verbs become the driver's.
use crate::abi::consts::*;
use crate::abi::objects::Qp;
use crate::abi::wr::{RecvWr, SendWr, Sge as CSge, WrKind};
use crate::ah::AhObject;
use crate::errors::errno_of;
use crate::mw::stage_bind;
use crate::qp::{QpInner, QpObject};
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{LocalSge, Payload, Placed};
use ferric_driver::{AtomicOp, AtomicRequest, AtomicWriteRequest, DatagramRequest, FlushRequest, Flushed, ReadRequest, RecvRequest, SendRequest};
use std::ffi::{c_int, c_uint};

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

/// A request without what it sends.
#[derive(Clone, Copy)]
pub struct Request {
    /// The program's number.
    pub wr_id: u64,
    /// `ibv_send_flags`.
    pub flags: c_uint,
    /// `ibv_wr_opcode`.
    pub opcode: c_uint,
    /// Immediate data or a key, as the program gave them.
    pub imm_data: u32,
    /// The rest, according to the operation.
    pub kind: WrKind,
}

/// Copies what a request sends inline into the next slot of the send queue.
///
/// # Safety
/// `buffers` (address and length each) are readable memory of the program.
pub unsafe fn place_inline(inner: &mut QpInner, buffers: impl Iterator<Item = (*const u8, usize)> + Clone) -> Result<Placed, c_int> {
    let most = inner.cap.max_inline_data as usize;
    buffers.clone().try_fold(0usize, |n, (_, len)| n.checked_add(len).filter(|n| *n <= most)).ok_or(libc::EINVAL)?;
    // SAFETY: by the caller's promise.
    unsafe { inner.driver.place_inline(buffers) }.map_err(|e| errno_of(&e))
}

/// Puts one request of a list into the send queue; the card has not heard of it yet.
///
/// # Safety
/// `wr` is as `ibv_post_send` wants it.
unsafe fn send(inner: &mut QpInner, wr: &SendWr) -> Result<(), c_int> {
    if wr.opcode == IBV_WR_BIND_MW {
        // SAFETY: by the caller's promise. The key of a window of type 1 changes by `ibv_bind_mw` alone.
        return unsafe {
            match wr.bind_mw.mw.as_ref() {
                Some(mw) if mw.r#type == IBV_MW_TYPE_2 => stage_bind(inner, wr.wr_id, wr.send_flags, wr.bind_mw.mw, wr.bind_mw.rkey, &wr.bind_mw.bind_info),
                _ => Err(libc::EINVAL),
            }
        };
    }
    // SAFETY: by the caller's promise.
    let sges = unsafe { entries(wr.sg_list, wr.num_sge, inner.cap.max_send_sge) }?;
    let request = Request { wr_id: wr.wr_id, flags: wr.send_flags, opcode: wr.opcode, imm_data: wr.imm_data, kind: wr.wr };
    let payload = if wr.send_flags & IBV_SEND_INLINE != 0 {
        // SAFETY: by the rules of IBV_SEND_INLINE.
        Payload::Placed(unsafe { place_inline(inner, sges.iter().map(|s| (s.addr() as *const u8, s.length() as usize))) }?)
    } else {
        Payload::Sges(sges)
    };
    // SAFETY: by the caller's promise.
    unsafe { stage(inner, &request, payload) }
}

/// Puts one request into the send queue; the card has not heard of it yet.
///
/// # Safety
/// Which part of the union in `wr` is in use follows from the transport and the operation, as the interface has it.
#[inline(always)]
pub unsafe fn stage(inner: &mut QpInner, wr: &Request, payload: Payload) -> Result<(), c_int> {
    if wr.flags & !31 != 0 {
        return Err(libc::EINVAL);
    }
    let has = |flag: u32| wr.flags & flag != 0;
    let (wr_id, signaled, solicited, fence) = (wr.wr_id, has(IBV_SEND_SIGNALED), has(IBV_SEND_SOLICITED), has(IBV_SEND_FENCE));
    let imm = u32::from_be(wr.imm_data);
    let qp = &mut inner.driver;
    // SAFETY: by the caller's promise.
    let done = unsafe {
        if inner.kind == IBV_QPT_UD {
            let imm = match wr.opcode {
                IBV_WR_SEND => None,
                IBV_WR_SEND_WITH_IMM => Some(imm),
                _ => return Err(libc::EINVAL),
            };
            let Some(ah) = wr.kind.ud.ah.cast::<AhObject>().as_ref() else { return Err(libc::EINVAL) };
            let (dest_qpn, qkey) = (wr.kind.ud.remote_qpn, wr.kind.ud.remote_qkey);
            qp.stage_send_ud(&DatagramRequest { wr_id, payload, to: &ah.to, dest_qpn, qkey, imm, signaled, solicited })
        } else {
            // A raw frame goes out as it stands: nothing computes checksums into it.
            if inner.kind == IBV_QPT_RAW_PACKET && (wr.opcode != IBV_WR_SEND || has(IBV_SEND_IP_CSUM)) {
                return Err(libc::EINVAL);
            }
            let (remote_addr, rkey) = (wr.kind.rdma.remote_addr, wr.kind.rdma.rkey);
            let opcode = match wr.opcode {
                IBV_WR_RDMA_WRITE => WrOpcode::Write,
                IBV_WR_RDMA_WRITE_WITH_IMM => WrOpcode::WriteImm,
                IBV_WR_SEND => WrOpcode::Send,
                IBV_WR_SEND_WITH_IMM => WrOpcode::SendImm,
                // In place of immediate data, and in the program's byte order.
                IBV_WR_SEND_WITH_INV if inner.kind == IBV_QPT_RC => WrOpcode::SendInv,
                IBV_WR_RDMA_READ if inner.kind == IBV_QPT_RC && !has(IBV_SEND_INLINE) => {
                    return qp.stage_read_into(&ReadRequest { wr_id, sges: &[], remote_addr, rkey, signaled, fence }, payload).map_err(|e| errno_of(&e));
                }
                IBV_WR_ATOMIC_CMP_AND_SWP | IBV_WR_ATOMIC_FETCH_AND_ADD if inner.kind == IBV_QPT_RC && !has(IBV_SEND_INLINE) => {
                    let a = wr.kind.atomic;
                    let op = if wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD { AtomicOp::FetchAdd(a.compare_add) } else { AtomicOp::CompareSwap { compare: a.compare_add, swap: a.swap } };
                    let request = AtomicRequest { wr_id, op, sges: &[], remote_addr: a.remote_addr, rkey: a.rkey, signaled, fence };
                    return qp.stage_atomic_into(&request, payload).map_err(|e| errno_of(&e));
                }
                // By `ibv_wr_flush` and `ibv_wr_atomic_write` alone, as in rdma-core: a list of requests has no place for what they say.
                IBV_WR_FLUSH if inner.kind == IBV_QPT_RC && inner.batch.building => {
                    let f = wr.kind.flush;
                    let what = match f.level {
                        IBV_FLUSH_RANGE => Flushed::Range(u32::try_from(f.length).map_err(|_| libc::EINVAL)?),
                        IBV_FLUSH_MR => Flushed::Region,
                        _ => return Err(libc::EINVAL),
                    };
                    if f.placement & !(IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT) != 0 {
                        return Err(libc::EINVAL);
                    }
                    let (global, persistent) = (f.placement & IBV_FLUSH_GLOBAL != 0, f.placement & IBV_FLUSH_PERSISTENT != 0);
                    return qp.stage_flush(&FlushRequest { wr_id, what, global, persistent, remote_addr: f.remote_addr, rkey: f.rkey, signaled, fence }).map_err(|e| errno_of(&e));
                }
                IBV_WR_ATOMIC_WRITE if inner.kind == IBV_QPT_RC && inner.batch.building => {
                    let v = wr.kind.value;
                    return qp.stage_atomic_write(&AtomicWriteRequest { wr_id, value: v.value, remote_addr: v.remote_addr, rkey: v.rkey, signaled, fence }).map_err(|e| errno_of(&e));
                }
                // A key of our own, in the same place; nothing is sent.
                IBV_WR_LOCAL_INV if !has(IBV_SEND_INLINE) => return qp.stage_local_invalidate(wr_id, wr.imm_data, signaled, fence).map_err(|e| errno_of(&e)),
                _ => return Err(libc::EINVAL),
            };
            let imm = if opcode == WrOpcode::SendInv { wr.imm_data } else { imm };
            qp.stage_send(&SendRequest { wr_id, opcode, payload, remote_addr, rkey, imm, signaled, solicited }, fence)
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

/// Goes through a list of requests one by one, until the first that is refused: `bad_wr` points to it then.
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

/// `ibv_post_send`: the card hears of the whole list at once.
pub unsafe extern "C" fn post_send(qp: *mut Qp, wr: *mut SendWr, bad_wr: *mut *mut SendWr) -> c_int {
    // SAFETY: a handle of ours and a list of requests, by the caller's promise.
    unsafe {
        let mut inner = QpObject::of(qp).sending();
        let n = each("ibv_post_send", wr, bad_wr, |one| send(&mut inner, one));
        inner.driver.ring();
        n
    }
}

/// `ibv_post_recv`: the card hears of the whole list at once.
pub unsafe extern "C" fn post_recv(qp: *mut Qp, wr: *mut RecvWr, bad_wr: *mut *mut RecvWr) -> c_int {
    // SAFETY: a handle of ours and a list of requests, by the caller's promise.
    unsafe {
        let mut inner = QpObject::of(qp).inner.lock();
        let n = each("ibv_post_recv", wr, bad_wr, |one| {
            let sges = entries(one.sg_list, one.num_sge, inner.cap.max_recv_sge)?;
            inner.driver.stage_recv(&RecvRequest { wr_id: one.wr_id, sges }).map_err(|e| errno_of(&e))
        });
        inner.driver.ring_recv();
        n
    }
}
