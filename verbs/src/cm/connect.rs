//! Connections: queue pairs are made and brought into their states, requests sent and answered.
use super::datagram;
use super::id::{wait, IdObject};
use super::with_port;
use crate::abi::attr::{AhAttr, GlobalRoute, QpAttr};
use crate::abi::cma::{CmId, ConnParam};
use crate::abi::consts::*;
use crate::config::{gid_of, Config};
use crate::errors::{errno_of, minus_one};
use crate::query::MAX_RD_ATOMIC;
use crate::shared::lock;
use ferric_driver::cm::{ip_service_id, Local, RejectReason, Remote, Request};
use std::ffi::{c_int, c_void};

/// Local ACK timeout of connections, as exponent: 1 s.
const ACK_TIMEOUT: u8 = 18;
/// Retries of programs that do not say how many.
const RETRIES: u8 = 7;
/// 20 ms: a program that is a moment late with its receives, on a machine with much to do, is waited for. (Linux takes 655 ms.)
const MIN_RNR_TIMER: u8 = 22;
/// Q_Key of datagrams over IP.
pub const UDP_QKEY: u32 = 0x0123_4567;

const INIT: u32 = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
const RTR: u32 = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
const RTS: u32 = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

/// Attributes for a state, from what is known of the connection.
fn attributes(object: &IdObject, state: u32) -> Result<(QpAttr, u32), c_int> {
    let inner = lock(&object.inner);
    let mut a = QpAttr { qp_state: state, port_num: 1, ..Default::default() };
    let datagrams = object.qp_type == IBV_QPT_UD;
    match state {
        IBV_QPS_INIT if datagrams => {
            a.qkey = UDP_QKEY;
            Ok((a, INIT | IBV_QP_QKEY))
        }
        IBV_QPS_INIT => {
            a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
            Ok((a, INIT | IBV_QP_ACCESS_FLAGS))
        }
        IBV_QPS_RTR if datagrams => Ok((a, IBV_QP_STATE)),
        IBV_QPS_RTS if datagrams => Ok((a, IBV_QP_STATE | IBV_QP_SQ_PSN)),
        IBV_QPS_RTR => {
            let (remote, peer) = (inner.remote.ok_or(libc::EINVAL)?, inner.peer.ok_or(libc::EINVAL)?);
            let grh = GlobalRoute { dgid: gid_of(peer.ip()), hop_limit: 64, traffic_class: inner.tos, ..Default::default() };
            a.ah_attr = AhAttr { grh, is_global: 1, port_num: 1, ..Default::default() };
            (a.path_mtu, a.dest_qp_num, a.rq_psn) = (remote.mtu as u32, remote.qpn, inner.psn);
            a.max_dest_rd_atomic = inner.local.map_or(remote.initiator_depth, |l| l.responder_resources).min(MAX_RD_ATOMIC);
            a.min_rnr_timer = MIN_RNR_TIMER;
            Ok((a, RTR))
        }
        IBV_QPS_RTS => {
            let remote = inner.remote.ok_or(libc::EINVAL)?;
            (a.timeout, a.retry_cnt, a.rnr_retry) = (inner.ack_timeout.unwrap_or(remote.ack_timeout).max(1), remote.retry_count, remote.rnr_retry);
            a.sq_psn = remote.psn;
            a.max_rd_atomic = inner.local.map_or(MAX_RD_ATOMIC, |l| l.initiator_depth).min(remote.responder_resources).min(MAX_RD_ATOMIC);
            Ok((a, RTS))
        }
        _ => Err(libc::EINVAL),
    }
}

/// Brings the identifier's queue pair into a state.
pub fn bring(object: &IdObject, state: u32) -> Result<(), c_int> {
    let (mut attr, mask) = attributes(object, state)?;
    // SAFETY: made by `rdma_create_qp`, not destroyed yet.
    match unsafe { crate::qp_modify::ibv_modify_qp(object.qp(), &mut attr, mask as c_int) } {
        0 => Ok(()),
        n => Err(n),
    }
}

/// The peer has accepted. With a queue pair of ours the connection is brought up here; without, the program does it and calls `rdma_establish`.
/// Gives the event and its status.
pub fn answered(object: &IdObject, remote: Remote) -> (u32, c_int) {
    lock(&object.inner).remote = Some(remote);
    if object.qp().is_null() {
        return (RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
    }
    let done = bring(object, IBV_QPS_RTR).and_then(|()| bring(object, IBV_QPS_RTS)).and_then(|()| establish(object));
    match done {
        Ok(()) => (RDMA_CM_EVENT_ESTABLISHED, 0),
        Err(n) => (RDMA_CM_EVENT_CONNECT_ERROR, -n),
    }
}

fn establish(object: &IdObject) -> Result<(), c_int> {
    let connection = {
        let mut inner = lock(&object.inner);
        inner.announced = true;
        inner.connection.ok_or(libc::EINVAL)?
    };
    with_port(object.shared()?, |port| port.driver.cm.confirm(connection, &[]).map_err(|e| errno_of(&e)))
}

#[no_mangle]
unsafe extern "C" fn ferric_rdma_establish(id: *mut CmId) -> c_int {
    // SAFETY: by the caller's promise.
    minus_one("rdma_establish", establish(unsafe { IdObject::of(id) }))
}

/// What a program says of its end; `None` for what it leaves open.
pub struct Said {
    responder_resources: u8,
    initiator_depth: u8,
    retry_count: u8,
    rnr_retry: u8,
    /// Queue pair.
    pub qp_num: u32,
    /// Private data.
    pub private: Vec<u8>,
}

/// What a program says of its end, within what it may have outstanding (`resources`).
///
/// # Safety
/// `param` is null or the caller's.
pub unsafe fn said(object: &IdObject, param: *const ConnParam, resources: (u8, u8)) -> Said {
    let mut s = Said { responder_resources: resources.0, initiator_depth: resources.1, retry_count: RETRIES, rnr_retry: RETRIES, qp_num: 0, private: Vec::new() };
    // SAFETY: the caller's, by its promise.
    if let Some(p) = unsafe { param.as_ref() } {
        s.responder_resources = p.responder_resources.min(resources.0);
        s.initiator_depth = p.initiator_depth.min(resources.1);
        (s.retry_count, s.rnr_retry, s.qp_num) = (p.retry_count & 7, p.rnr_retry_count & 7, p.qp_num & 0xff_ffff);
        if !p.private_data.is_null() {
            // SAFETY: as above.
            s.private = unsafe { std::slice::from_raw_parts(p.private_data.cast::<u8>(), p.private_data_len.into()) }.to_vec();
        }
    }
    // SAFETY: a queue pair of ours.
    if let Some(qp) = unsafe { object.qp().as_ref() } {
        s.qp_num = qp.qp_num;
    }
    s
}

/// Asks for a connection.
#[no_mangle]
pub unsafe extern "C" fn ferric_rdma_connect(id: *mut CmId, param: *const ConnParam) -> c_int {
    // SAFETY: by the caller's promise.
    let object = unsafe { IdObject::of(id) };
    let connect = || -> Result<(), c_int> {
        if object.ps == RDMA_PS_UDP {
            // SAFETY: as above.
            return unsafe { datagram::ask(id, param) };
        }
        let (own, peer) = (object.own().ok_or(libc::EINVAL)?, object.peer().ok_or(libc::EINVAL)?);
        // SAFETY: as above.
        let said = unsafe { said(object, param, (MAX_RD_ATOMIC, MAX_RD_ATOMIC)) };
        if said.private.len() > 56 {
            return Err(libc::EINVAL);
        }
        let (tos, psn) = {
            let inner = lock(&object.inner);
            (inner.tos, inner.psn)
        };
        let local = Local { qpn: said.qp_num, psn, responder_resources: said.responder_resources, initiator_depth: said.initiator_depth, rnr_retry: said.rnr_retry };
        let me = id as usize;
        let shared = object.shared()?;
        with_port(shared, |port| {
            let mut to = port.driver.address(peer.ip()).map_err(|e| errno_of(&e))?;
            to.tclass = tos;
            let request = Request {
                to,
                from: own.ip(),
                service_id: ip_service_id(peer.port()),
                local,
                mtu: Config::of_process().mtu,
                retry_count: said.retry_count,
                ack_timeout: ACK_TIMEOUT.max(shared.least_ack_timeout),
                ip_port: Some(own.port()),
                private: said.private.clone(),
            };
            let connection = port.driver.cm.connect(port.driver.now(), &request).map_err(|e| errno_of(&e))?;
            port.ids.insert(connection, me);
            let mut inner = lock(&object.inner);
            (inner.connection, inner.local, inner.announced) = (Some(connection), Some(local), false);
            Ok(())
        })?;
        // SAFETY: as above.
        unsafe { wait(id) }
    };
    minus_one("rdma_connect", connect())
}

/// Accepts a request.
#[no_mangle]
pub unsafe extern "C" fn ferric_rdma_accept(id: *mut CmId, param: *const ConnParam) -> c_int {
    // SAFETY: by the caller's promise.
    let object = unsafe { IdObject::of(id) };
    let accept = || -> Result<(), c_int> {
        if object.ps == RDMA_PS_UDP {
            // SAFETY: as above.
            return unsafe { datagram::answer(object, param) };
        }
        let (remote, connection, psn) = {
            let inner = lock(&object.inner);
            (inner.remote.ok_or(libc::EINVAL)?, inner.connection.ok_or(libc::EINVAL)?, inner.psn)
        };
        // Not more than the peer can use.
        let most = (remote.initiator_depth.min(MAX_RD_ATOMIC), remote.responder_resources.min(MAX_RD_ATOMIC));
        // SAFETY: as above.
        let said = unsafe { said(object, param, most) };
        if said.private.len() > 196 {
            return Err(libc::EINVAL);
        }
        let local = Local { qpn: said.qp_num, psn, responder_resources: said.responder_resources, initiator_depth: said.initiator_depth, rnr_retry: said.rnr_retry };
        lock(&object.inner).local = Some(local);
        if !object.qp().is_null() {
            bring(object, IBV_QPS_RTR)?;
            bring(object, IBV_QPS_RTS)?;
        }
        with_port(object.shared()?, |port| port.driver.cm.accept(port.driver.now(), connection, &local, &said.private).map_err(|e| errno_of(&e)))?;
        // SAFETY: as above.
        unsafe { wait(id) }
    };
    minus_one("rdma_accept", accept())
}

/// Refuses a request.
#[no_mangle]
pub unsafe extern "C" fn ferric_rdma_reject(id: *mut CmId, private: *const c_void, length: u8) -> c_int {
    // SAFETY: by the caller's promise.
    let object = unsafe { IdObject::of(id) };
    // SAFETY: as above.
    let private = if private.is_null() { Vec::new() } else { unsafe { std::slice::from_raw_parts(private.cast::<u8>(), length.into()) }.to_vec() };
    let connection = lock(&object.inner).connection.take().ok_or(libc::EINVAL);
    minus_one(
        "rdma_reject",
        connection.and_then(|c| {
            with_port(object.shared()?, |port| {
                port.ids.remove(&c);
                if object.ps == RDMA_PS_UDP {
                    return datagram::refuse(port, c, &private);
                }
                port.driver.cm.reject(c, RejectReason::Consumer, &private).map_err(|e| errno_of(&e))
            })
        }),
    )
}

#[no_mangle]
unsafe extern "C" fn ferric_rdma_reject_ece(id: *mut CmId, private: *const c_void, length: u8) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe { ferric_rdma_reject(id, private, length) }
}

/// Ends a connection; the queue pair flushes.
#[no_mangle]
pub unsafe extern "C" fn ferric_rdma_disconnect(id: *mut CmId) -> c_int {
    // SAFETY: by the caller's promise.
    let object = unsafe { IdObject::of(id) };
    if object.ps == RDMA_PS_UDP {
        return minus_one("rdma_disconnect", Err(libc::EINVAL));
    }
    object.to_error();
    let connection = lock(&object.inner).connection.ok_or(libc::EINVAL);
    minus_one(
        "rdma_disconnect",
        connection.and_then(|c| {
            // The peer may have been first: then it has ended already.
            with_port(object.shared()?, |port| {
                let _ = port.driver.cm.disconnect(port.driver.now(), c, &[]);
                Ok(())
            })?;
            // SAFETY: as above.
            unsafe { wait(id) }
        }),
    )
}

#[no_mangle]
extern "C" fn ferric_rdma_notify(_id: *mut CmId, _event: u32) -> c_int {
    0
}

/// Attributes for a program that brings its queue pair up itself; it asks for a state in `qp_state`.
#[no_mangle]
unsafe extern "C" fn ferric_rdma_init_qp_attr(id: *mut CmId, attr: *mut QpAttr, mask: *mut c_int) -> c_int {
    // SAFETY: by the caller's promise.
    minus_one("rdma_init_qp_attr", unsafe {
        attributes(IdObject::of(id), (*attr).qp_state).map(|(a, m)| {
            attr.write(a);
            mask.write(m as c_int);
        })
    })
}
