//! Addresses and routes, and listening: what comes before a connection.
use super::address::{address, ephemeral};
use super::event::{complete, Cause};
use super::id::{context_of, ferric_rdma_migrate_id, happened, IdObject};
use super::queues::ferric_rdma_create_qp;
use super::with_port;
use crate::abi::cma::CmId;
use crate::abi::consts::*;
use crate::config::{search_within, Config};
use crate::context::{devices, ContextObject};
use crate::errors::minus_one;
use crate::neighbour;
use crate::shared::lock;
use ferric_driver::cm::{ip_datagram_service_id, ip_service_id};
use std::ffi::{c_int, c_void};
use std::net::{IpAddr, SocketAddr};
use std::ptr::null_mut;
use std::time::Duration;

/// Binds an identifier to an own address.
#[no_mangle]
pub unsafe extern "C" fn ferric_rdma_bind_addr(id: *mut CmId, addr: *mut c_void) -> c_int {
    // SAFETY: by the caller's promise.
    minus_one("rdma_bind_addr", unsafe { address(addr).and_then(|a| IdObject::of(id).bind_to(a)) })
}

/// Finds the card from which an address is reached: the one bound to, or the first of its family.
#[no_mangle]
pub unsafe extern "C" fn ferric_rdma_resolve_addr(id: *mut CmId, src: *mut c_void, dst: *mut c_void, timeout_ms: c_int) -> c_int {
    // SAFETY: by the caller's promise.
    let object = unsafe { IdObject::of(id) };
    let resolve = || -> Result<(), c_int> {
        // SAFETY: by the caller's promise.
        let to = unsafe { address(dst) }?;
        if !src.is_null() {
            // SAFETY: by the caller's promise.
            object.bind_to(unsafe { address(src) }?)?;
        }
        if object.verbs().is_null() {
            let device = devices().iter().find(|d| d.named.ip.is_ipv4() == to.is_ipv4()).ok_or(libc::ENODEV)?;
            let port = object.own().map_or_else(ephemeral, |a| a.port());
            object.bind(device)?;
            object.set_own(SocketAddr::new(device.ip(), port));
        }
        if object.own().is_none_or(|a| a.is_ipv4() != to.is_ipv4()) {
            return Err(libc::EINVAL);
        }
        object.set_peer(to);
        // The card asks now, and the driver remembers: what follows, the program's queue pair too, need not wait.
        let config = Config::of_process();
        let patience = u64::try_from(timeout_ms).map_or(config.search, |ms| search_within(Duration::from_millis(ms)));
        let search = if patience.wait < config.search.wait { patience } else { config.search };
        // SAFETY: bound to a device above, whose context is never closed.
        let mac = neighbour::mac(&unsafe { ContextObject::of(object.verbs()) }.shared.driver, &config.neighbours, to.ip(), &search);
        log::debug!("{to} has MAC address {:02x?}", mac.0);
        // SAFETY: as above.
        unsafe { happened(id, Cause::AddressResolved) }
    };
    minus_one("rdma_resolve_addr", resolve())
}

/// Every address of the card's family is one hop away.
#[no_mangle]
pub unsafe extern "C" fn ferric_rdma_resolve_route(id: *mut CmId, _timeout_ms: c_int) -> c_int {
    // SAFETY: by the caller's promise.
    let object = unsafe { IdObject::of(id) };
    // SAFETY: as above.
    minus_one("rdma_resolve_route", if object.peer().is_none() { Err(libc::EINVAL) } else { unsafe { happened(id, Cause::RouteResolved) } })
}

/// Requests that may wait for a program that asks for none or for more, as in Linux.
const MOST_REQUESTS: usize = 1024;

/// Listens: on its card, or on all. `backlog`: requests that may wait until the program fetches them; others are not answered, so that they come again.
#[no_mangle]
pub unsafe extern "C" fn ferric_rdma_listen(id: *mut CmId, backlog: c_int) -> c_int {
    // SAFETY: by the caller's promise.
    let object = unsafe { IdObject::of(id) };
    let me = id as usize;
    let listen = || -> Result<(), c_int> {
        let own = match object.own() {
            Some(own) => own,
            None => {
                object.bind_to(SocketAddr::new(IpAddr::V4(0.into()), 0))?;
                object.own().ok_or(libc::EINVAL)?
            }
        };
        let datagrams = object.ps == RDMA_PS_UDP;
        let service = if datagrams { ip_datagram_service_id(own.port()) } else { ip_service_id(own.port()) };
        lock(&object.inner).backlog = usize::try_from(backlog).ok().filter(|n| (1..=MOST_REQUESTS).contains(n)).unwrap_or(MOST_REQUESTS);
        let mut heard = Err(libc::ENODEV);
        for d in devices().iter().filter(|d| own.ip().is_unspecified() || d.ip() == own.ip()) {
            // SAFETY: contexts of connection management are never closed.
            let on = context_of(d).and_then(|c| {
                with_port(&unsafe { ContextObject::of(c) }.shared, |port| {
                    if port.listeners.contains_key(&service) {
                        return Err(libc::EADDRINUSE);
                    }
                    port.listeners.insert(service, me);
                    if datagrams {
                        port.driver.cm.serve(service);
                    } else {
                        port.driver.cm.listen(service);
                    }
                    Ok(())
                })
            });
            heard = if heard.is_ok() { heard } else { on };
        }
        lock(&object.inner).listening = Some(service);
        log::info!("listens at {own}");
        heard
    };
    minus_one("rdma_listen", listen())
}

/// The next request of a listening identifier without a channel of the program's.
#[no_mangle]
unsafe extern "C" fn ferric_rdma_get_request(listen: *mut CmId, id: *mut *mut CmId) -> c_int {
    // SAFETY: by the caller's promise.
    minus_one("rdma_get_request", unsafe {
        complete(listen).and_then(|()| {
            let event = (*listen).event;
            if (*event).event != RDMA_CM_EVENT_CONNECT_REQUEST {
                return Err(libc::EINVAL);
            }
            let new = (*event).id;
            // Its own channel: its calls wait too. The event goes with it, for what the peer has said.
            let _ = ferric_rdma_migrate_id(new, null_mut());
            (*new).event = event;
            (*listen).event = null_mut();
            if let Some((pd, mut init)) = lock(&IdObject::of(listen).inner).for_requests {
                if ferric_rdma_create_qp(new, pd, &mut init) != 0 {
                    return Err(*libc::__errno_location());
                }
            }
            id.write(new);
            Ok(())
        })
    })
}
