//! Datagrams over librdmacm (`RDMA_PS_UDP`): no connection, only the question which queue pair serves at the other end (SIDR) and its answer.
use super::connect::{said, UDP_QKEY};
use super::id::{wait, IdObject};
use super::{with_port, Port};
use crate::abi::cma::{CmId, ConnParam};
use crate::errors::errno_of;
use crate::shared::lock;
use ferric_driver::cm::{ip_datagram_service_id, ServiceAnswer, ServiceQuestion, ServiceStatus};
use std::ffi::c_int;

/// Private data of a question, behind the addresses.
const ROOM_ASKING: usize = 180;
/// Private data of an answer.
const ROOM_ANSWERING: usize = 136;

/// Asks which queue pair serves.
///
/// # Safety
/// As `rdma_connect`.
pub unsafe fn ask(id: *mut CmId, param: *const ConnParam) -> Result<(), c_int> {
    // SAFETY: by the caller's promise.
    let (object, private) = unsafe { (IdObject::of(id), said(IdObject::of(id), param, (0, 0)).private) };
    let (own, peer) = (object.own().ok_or(libc::EINVAL)?, object.peer().ok_or(libc::EINVAL)?);
    if private.len() > ROOM_ASKING || peer.ip().is_multicast() {
        return Err(libc::EINVAL);
    }
    let tos = lock(&object.inner).tos;
    let me = id as usize;
    with_port(object.shared()?, |port| {
        let mut to = port.driver.address(peer.ip()).map_err(|e| errno_of(&e))?;
        to.tclass = tos;
        let question = ServiceQuestion { to, from: own.ip(), service_id: ip_datagram_service_id(peer.port()), ip_port: Some(own.port()), private };
        let asked = port.driver.cm.ask_service(port.driver.now(), &question).map_err(|e| errno_of(&e))?;
        port.ids.insert(asked, me);
        lock(&object.inner).connection = Some(asked);
        Ok(())
    })?;
    // SAFETY: as above.
    unsafe { wait(id) }
}

/// Says that a queue pair serves: the identifier's, or the one that the program names.
///
/// # Safety
/// As `rdma_accept`.
pub unsafe fn answer(object: &IdObject, param: *const ConnParam) -> Result<(), c_int> {
    // SAFETY: by the caller's promise.
    let said = unsafe { said(object, param, (0, 0)) };
    if said.private.len() > ROOM_ANSWERING || said.qp_num == 0 {
        return Err(libc::EINVAL);
    }
    let asked = lock(&object.inner).connection.ok_or(libc::EINVAL)?;
    let answer = ServiceAnswer { status: ServiceStatus::Valid, qpn: said.qp_num, qkey: UDP_QKEY };
    with_port(object.shared()?, |port| port.driver.cm.answer_service(port.driver.now(), asked, &answer, &said.private).map_err(|e| errno_of(&e)))
}

/// Says that none does.
pub fn refuse(port: &mut Port, asked: u32, private: &[u8]) -> Result<(), c_int> {
    let answer = ServiceAnswer { status: ServiceStatus::Rejected, qpn: 0, qkey: 0 };
    port.driver.cm.answer_service(port.driver.now(), asked, &answer, private).map_err(|e| errno_of(&e))
}

/// The identifier of a question goes: a peer that has no answer gets one, our own question is given up.
pub fn forget(port: &mut Port, id: u32) {
    let _ = refuse(port, id, &[]);
    port.driver.cm.forget_service(id);
    let _ = port.driver.progress();
}
