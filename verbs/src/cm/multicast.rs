//! Multicast groups of identifiers. A group on Ethernet needs nobody's permission: joining attaches the queue pair, and says at once how datagrams reach the group.
use super::address::address;
use super::event::Cause;
use super::id::{happened, IdObject};
use crate::abi::attr::GidWords;
use crate::abi::cma::{CmId, JoinAttr};
use crate::abi::consts::*;
use crate::config::gid_of;
use crate::context::ContextObject;
use crate::errors::minus_one;
use crate::qp::{ibv_attach_mcast, ibv_detach_mcast};
use crate::shared::lock;
use std::ffi::{c_int, c_uint, c_void};
use std::net::SocketAddr;

/// Attaches or detaches the queue pair of an identifier, if it has one.
unsafe fn change(object: &IdObject, group: SocketAddr, call: unsafe extern "C" fn(*mut crate::abi::objects::Qp, *const GidWords, u16) -> c_int) -> Result<(), c_int> {
    if object.qp().is_null() {
        return Ok(());
    }
    // SAFETY: made by `rdma_create_qp`, not destroyed yet.
    match unsafe { call(object.qp(), &gid_of(group.ip()), 0) } {
        0 => Ok(()),
        n => Err(n),
    }
}

unsafe fn join(id: *mut CmId, addr: *const c_void, flags: c_uint, context: *mut c_void) -> Result<(), c_int> {
    // SAFETY: by the caller's promise.
    let (object, group) = unsafe { (IdObject::of(id), address(addr).map_err(|_| libc::EINVAL)?) };
    if object.qp_type != IBV_QPT_UD || object.verbs().is_null() || !group.ip().is_multicast() {
        return Err(libc::EINVAL);
    }
    // SAFETY: a context of connection management is never closed.
    if unsafe { ContextObject::of(object.verbs()) }.shared.named.ip.is_ipv4() != group.is_ipv4() {
        return Err(libc::EINVAL);
    }
    // Who only sends is no receiver.
    let receives = flags == RDMA_MC_JOIN_FLAG_FULLMEMBER;
    // SAFETY: as above.
    let done = if receives { unsafe { change(object, group, ibv_attach_mcast) } } else { Ok(()) };
    if done.is_ok() {
        lock(&object.inner).groups.push((group, receives));
        log::info!("joined {}", group.ip());
    }
    // SAFETY: as above.
    unsafe { happened(id, Cause::Joined { group: group.ip(), context: context as usize, done }) }
}

/// Joins a group: its event says how to send to it, and has the program's `context`.
#[no_mangle]
unsafe extern "C" fn ferric_rdma_join_multicast(id: *mut CmId, addr: *mut c_void, context: *mut c_void) -> c_int {
    // SAFETY: by the caller's promise.
    minus_one("rdma_join_multicast", unsafe { join(id, addr, RDMA_MC_JOIN_FLAG_FULLMEMBER, context) })
}

#[no_mangle]
unsafe extern "C" fn ferric_rdma_join_multicast_ex(id: *mut CmId, attr: *mut JoinAttr, context: *mut c_void) -> c_int {
    let both = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
    // SAFETY: by the caller's promise.
    let attr = unsafe { &*attr };
    let checked = match attr.comp_mask {
        mask if mask & !both != 0 => Err(libc::ENOTSUP),
        mask if mask != both || attr.join_flags > RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER => Err(libc::EINVAL),
        _ => Ok(()),
    };
    // SAFETY: as above.
    minus_one("rdma_join_multicast_ex", checked.and_then(|()| unsafe { join(id, attr.addr, attr.join_flags, context) }))
}

/// Leaves a group.
#[no_mangle]
unsafe extern "C" fn ferric_rdma_leave_multicast(id: *mut CmId, addr: *mut c_void) -> c_int {
    let leave = || -> Result<(), c_int> {
        // SAFETY: by the caller's promise.
        let (object, group) = unsafe { (IdObject::of(id), address(addr).map_err(|_| libc::EINVAL)?) };
        let last_receiver = {
            let groups = &mut lock(&object.inner).groups;
            let at = groups.iter().position(|(g, _)| *g == group).ok_or(libc::EADDRNOTAVAIL)?;
            let (_, receives) = groups.remove(at);
            receives && !groups.iter().any(|(g, receives)| g.ip() == group.ip() && *receives)
        };
        if last_receiver {
            // It may have been detached by hand.
            // SAFETY: as above.
            let _ = unsafe { change(object, group, ibv_detach_mcast) };
        }
        Ok(())
    };
    minus_one("rdma_leave_multicast", leave())
}
