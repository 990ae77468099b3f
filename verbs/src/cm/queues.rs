//! Queue pairs of identifiers, and what they are made with: completion queues, shared receive queues.
use super::connect::bring;
use super::id::{domain_of, IdObject};
use crate::abi::attr::{QpInitAttr, QpInitAttrEx, SrqInitAttr, SrqInitAttrEx};
use crate::abi::cma::CmId;
use crate::abi::consts::*;
use crate::abi::objects::Pd;
use crate::errors::minus_one;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// Completion queues for a queue pair that comes without.
unsafe fn own_queues(id: *mut CmId, init: &mut QpInitAttr) -> Result<(), c_int> {
    // SAFETY: handles of ours, in use or null.
    unsafe {
        let (verbs, me) = ((*id).verbs, id.cast::<c_void>());
        let make = |entries: u32, cq: *mut *mut _, channel: *mut *mut _| {
            *channel = crate::channel::ibv_create_comp_channel(verbs);
            *cq = crate::cq::ibv_create_cq(verbs, entries.max(1) as c_int, me, *channel, 0);
            if (*cq).is_null() {
                Err(libc::ENOMEM)
            } else {
                Ok(())
            }
        };
        if init.send_cq.is_null() {
            make(init.cap.max_send_wr, &raw mut (*id).send_cq, &raw mut (*id).send_cq_channel)?;
            init.send_cq = (*id).send_cq;
        }
        if init.recv_cq.is_null() {
            make(init.cap.max_recv_wr, &raw mut (*id).recv_cq, &raw mut (*id).recv_cq_channel)?;
            init.recv_cq = (*id).recv_cq;
        }
    }
    Ok(())
}

/// Makes a queue pair; connected ones are brought to INIT, datagram ones to RTS.
#[no_mangle]
pub unsafe extern "C" fn ferric_rdma_create_qp(id: *mut CmId, pd: *mut Pd, init: *mut QpInitAttr) -> c_int {
    // SAFETY: by the caller's promise.
    let (object, init) = unsafe { (IdObject::of(id), &mut *init) };
    let mut make = || -> Result<(), c_int> {
        if object.verbs().is_null() || !object.qp().is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: handles in use.
        unsafe {
            let pd = if !pd.is_null() {
                pd
            } else if !(*id).pd.is_null() {
                (*id).pd
            } else {
                domain_of((*id).verbs)?
            };
            if init.srq.is_null() {
                init.srq = (*id).srq;
            }
            own_queues(id, init)?;
            let made = crate::qp::ibv_create_qp(pd, init);
            if made.is_null() {
                return Err(*libc::__errno_location());
            }
            ((*id).qp, (*id).pd) = (made, pd);
        }
        bring(object, IBV_QPS_INIT)?;
        if object.qp_type == IBV_QPT_UD {
            bring(object, IBV_QPS_RTR)?;
            bring(object, IBV_QPS_RTS)?;
        }
        Ok(())
    };
    let done = make();
    minus_one(
        "rdma_create_qp",
        done.inspect_err(|_| {
            // SAFETY: as above.
            unsafe { ferric_rdma_destroy_qp(id) }
        }),
    )
}

#[no_mangle]
unsafe extern "C" fn ferric_rdma_create_qp_ex(id: *mut CmId, attr: *mut QpInitAttrEx) -> c_int {
    // SAFETY: by the caller's promise.
    let attr = unsafe { &mut *attr };
    if attr.comp_mask & !IBV_QP_INIT_ATTR_PD != 0 {
        return minus_one("rdma_create_qp_ex", Err(libc::EOPNOTSUPP));
    }
    let pd = if attr.comp_mask & IBV_QP_INIT_ATTR_PD != 0 { attr.pd } else { null_mut() };
    let mut init = QpInitAttr { qp_context: attr.qp_context, send_cq: attr.send_cq, recv_cq: attr.recv_cq, srq: attr.srq, cap: attr.cap, qp_type: attr.qp_type, sq_sig_all: attr.sq_sig_all };
    // SAFETY: as above.
    let r = unsafe { ferric_rdma_create_qp(id, pd, &mut init) };
    attr.cap = init.cap;
    r
}

/// Destroys the queue pair, and the completion queues that were made with it.
#[no_mangle]
pub unsafe extern "C" fn ferric_rdma_destroy_qp(id: *mut CmId) {
    // SAFETY: by the caller's promise.
    unsafe {
        let i = &mut *id;
        if !i.qp.is_null() {
            crate::qp::ibv_destroy_qp(std::mem::replace(&mut i.qp, null_mut()));
        }
        for (cq, channel) in [(&mut i.send_cq, &mut i.send_cq_channel), (&mut i.recv_cq, &mut i.recv_cq_channel)] {
            let (cq, channel) = (std::mem::replace(cq, null_mut()), std::mem::replace(channel, null_mut()));
            if !cq.is_null() {
                crate::cq::ibv_destroy_cq(cq);
            }
            if !channel.is_null() {
                crate::channel::ibv_destroy_comp_channel(channel);
            }
        }
    }
}

/// Makes a shared receive queue; the identifier's queue pair takes its receives from it.
#[no_mangle]
pub unsafe extern "C" fn ferric_rdma_create_srq(id: *mut CmId, pd: *mut Pd, init: *mut SrqInitAttr) -> c_int {
    let make = || -> Result<(), c_int> {
        // SAFETY: handles in use and attributes of the caller's, by its promise.
        unsafe {
            if (*id).verbs.is_null() || !(*id).srq.is_null() {
                return Err(libc::EINVAL);
            }
            let pd = if pd.is_null() { (*id).pd } else { pd };
            let made = crate::srq::ibv_create_srq(pd, init);
            if made.is_null() {
                return Err(*libc::__errno_location());
            }
            ((*id).srq, (*id).pd) = (made, pd);
        }
        Ok(())
    };
    minus_one("rdma_create_srq", make())
}

#[no_mangle]
unsafe extern "C" fn ferric_rdma_create_srq_ex(id: *mut CmId, attr: *mut SrqInitAttrEx) -> c_int {
    // SAFETY: by the caller's promise.
    let a = unsafe { &mut *attr };
    let has = |bit: u32| a.comp_mask & bit != 0;
    if a.comp_mask & !(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD) != 0 || has(IBV_SRQ_INIT_ATTR_TYPE) && a.srq_type != IBV_SRQT_BASIC {
        return minus_one("rdma_create_srq_ex", Err(libc::EOPNOTSUPP));
    }
    let pd = if has(IBV_SRQ_INIT_ATTR_PD) { a.pd } else { null_mut() };
    // SAFETY: by the caller's promise; the attributes begin with those of the short form.
    unsafe { ferric_rdma_create_srq(id, pd, attr.cast()) }
}

/// Destroys the shared receive queue.
#[no_mangle]
pub unsafe extern "C" fn ferric_rdma_destroy_srq(id: *mut CmId) {
    // SAFETY: by the caller's promise.
    unsafe {
        let srq = std::mem::replace(&mut (*id).srq, null_mut());
        if !srq.is_null() {
            crate::srq::ibv_destroy_srq(srq);
        }
    }
}
