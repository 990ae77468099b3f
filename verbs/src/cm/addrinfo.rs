//! Names and addresses, endpoints made in one call, options, the list of cards.
use super::address::{address, sockaddr};
use super::id::{context_of, ferric_rdma_destroy_id, IdObject};
use super::queues::{ferric_rdma_create_qp, ferric_rdma_destroy_qp, ferric_rdma_destroy_srq};
use super::resolve::{ferric_rdma_bind_addr, ferric_rdma_resolve_addr, ferric_rdma_resolve_route};
use crate::abi::attr::QpInitAttr;
use crate::abi::cma::{AddrInfo, CmId};
use crate::abi::consts::*;
use crate::abi::objects::{Context, Pd};
use crate::context::devices;
use crate::errors::{minus_one, pointer, set_errno};
use crate::shared::lock;
use std::ffi::{c_char, c_int, c_void};
use std::net::SocketAddr;
use std::ptr::null_mut;

/// Resolves through the system's resolver, for numbers and names alike.
unsafe fn lookup(node: *const c_char, service: *const c_char, flags: c_int, family: c_int) -> Result<SocketAddr, c_int> {
    // SAFETY: all zeros are no wishes.
    let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
    hints.ai_family = family;
    hints.ai_socktype = libc::SOCK_STREAM;
    hints.ai_flags = if flags as u32 & RAI_PASSIVE != 0 { libc::AI_PASSIVE } else { 0 } | if flags as u32 & RAI_NUMERICHOST != 0 { libc::AI_NUMERICHOST } else { 0 };
    let mut list = null_mut();
    // SAFETY: strings or null, by the caller's promise; the list is freed below.
    unsafe {
        if libc::getaddrinfo(node, service, &hints, &mut list) != 0 {
            return Err(libc::ENODEV);
        }
        let found = address((*list).ai_addr.cast());
        libc::freeaddrinfo(list);
        found
    }
}

fn boxed(a: SocketAddr) -> (*mut c_void, u32) {
    let (raw, len) = sockaddr(a);
    (Box::into_raw(Box::new(raw)).cast(), len)
}

#[no_mangle]
unsafe extern "C" fn ferric_rdma_getaddrinfo(node: *const c_char, service: *const c_char, hints: *const AddrInfo, res: *mut *mut AddrInfo) -> c_int {
    // SAFETY: null or the caller's.
    let hint = unsafe { hints.as_ref() };
    let (flags, family) = hint.map_or((0, 0), |h| (h.ai_flags, h.ai_family));
    let mut space = hint.map_or(0, |h| h.ai_port_space);
    let mut qp_type = hint.map_or(0, |h| h.ai_qp_type);
    if space == 0 {
        space = if qp_type == IBV_QPT_UD as c_int { RDMA_PS_UDP } else { RDMA_PS_TCP } as c_int;
    }
    if qp_type == 0 {
        qp_type = if space == RDMA_PS_UDP as c_int { IBV_QPT_UD } else { IBV_QPT_RC } as c_int;
    }
    let passive = flags as u32 & RAI_PASSIVE != 0;
    // SAFETY: by the caller's promise.
    let found = unsafe {
        if !node.is_null() || !service.is_null() {
            lookup(node, service, flags, family).map(Some)
        } else {
            // The addresses are in the hints already, as far as there are any.
            let of = |at: *mut c_void, len: u32| if len > 0 { address(at).map(Some) } else { Ok(None) };
            hint.ok_or(libc::EINVAL).and_then(|h| if passive { of(h.ai_src_addr, h.ai_src_len) } else { of(h.ai_dst_addr, h.ai_dst_len) })
        }
    };
    minus_one(
        "rdma_getaddrinfo",
        found.map(|a| {
            let (at, len) = a.map_or((null_mut(), 0), boxed);
            let mut info = AddrInfo {
                ai_flags: flags,
                ai_family: a.map_or(family, |a| if a.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }),
                ai_qp_type: qp_type,
                ai_port_space: space,
                ai_src_len: 0,
                ai_dst_len: 0,
                ai_src_addr: null_mut(),
                ai_dst_addr: null_mut(),
                ai_src_canonname: null_mut(),
                ai_dst_canonname: null_mut(),
                ai_route_len: 0,
                ai_route: null_mut(),
                ai_connect_len: 0,
                ai_connect: null_mut(),
                ai_next: null_mut(),
            };
            if passive {
                (info.ai_src_addr, info.ai_src_len) = (at, len);
            } else {
                (info.ai_dst_addr, info.ai_dst_len) = (at, len);
                // The card it would leave from: one that the process has in use already, so that it takes no function of another.
                let own = hint.filter(|h| h.ai_src_len > 0).and_then(|h| address(h.ai_src_addr).ok());
                let fit = || devices().iter().filter(|d| a.is_some_and(|a| d.named.ip.is_ipv4() == a.is_ipv4()));
                let card = || fit().find(|d| d.in_use()).or_else(|| fit().next()).map(|d| SocketAddr::new(super::id::own_ip(d), 0));
                if let Some(own) = own.or_else(card) {
                    (info.ai_src_addr, info.ai_src_len) = boxed(own);
                }
            }
            res.write(Box::into_raw(Box::new(info)));
        }),
    )
}

#[no_mangle]
unsafe extern "C" fn ferric_rdma_freeaddrinfo(res: *mut AddrInfo) {
    let mut at = res;
    while !at.is_null() {
        // SAFETY: from `rdma_getaddrinfo`, by the caller's promise.
        unsafe {
            let info = Box::from_raw(at);
            for a in [info.ai_src_addr, info.ai_dst_addr] {
                if !a.is_null() {
                    drop(Box::from_raw(a.cast::<crate::abi::cma::SockAddr>()));
                }
            }
            at = info.ai_next;
        }
    }
}

/// An identifier for what `rdma_getaddrinfo` found, with a queue pair if attributes are given (listeners make theirs for each request).
#[no_mangle]
unsafe extern "C" fn ferric_rdma_create_ep(id: *mut *mut CmId, res: *mut AddrInfo, pd: *mut Pd, init: *mut QpInitAttr) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe {
        let info = &*res;
        let mut made: *mut CmId = null_mut();
        if super::id::ferric_rdma_create_id(null_mut(), &mut made, null_mut(), info.ai_port_space as u32) != 0 {
            return -1;
        }
        let passive = info.ai_flags as u32 & RAI_PASSIVE != 0;
        if let Some(init) = init.as_mut() {
            init.qp_type = info.ai_qp_type as u32;
        }
        let ok = if passive {
            ferric_rdma_bind_addr(made, info.ai_src_addr) == 0
        } else {
            ferric_rdma_resolve_addr(made, info.ai_src_addr, info.ai_dst_addr, 2000) == 0 && ferric_rdma_resolve_route(made, 2000) == 0
        };
        let ok = ok && (passive || init.is_null() || ferric_rdma_create_qp(made, pd, init) == 0);
        if !ok {
            let n = *libc::__errno_location();
            ferric_rdma_destroy_id(made);
            set_errno(n);
            return -1;
        }
        if passive && !init.is_null() {
            lock(&IdObject::of(made).inner).for_requests = Some((pd, *init));
        }
        id.write(made);
    }
    0
}

#[no_mangle]
unsafe extern "C" fn ferric_rdma_destroy_ep(id: *mut CmId) {
    // SAFETY: by the caller's promise.
    unsafe {
        ferric_rdma_destroy_qp(id);
        ferric_rdma_destroy_srq(id);
        ferric_rdma_destroy_id(id);
    }
}

#[no_mangle]
unsafe extern "C" fn ferric_rdma_set_option(id: *mut CmId, level: c_int, name: c_int, value: *const c_void, length: usize) -> c_int {
    let known =
        level == RDMA_OPTION_ID as c_int && [(RDMA_OPTION_ID_TOS, 1), (RDMA_OPTION_ID_REUSEADDR, 4), (RDMA_OPTION_ID_AFONLY, 4), (RDMA_OPTION_ID_ACK_TIMEOUT, 1)].contains(&(name as u32, length));
    if !known || value.is_null() {
        return minus_one("rdma_set_option", Err(if level == RDMA_OPTION_IB as c_int { libc::EOPNOTSUPP } else { libc::EINVAL }));
    }
    // SAFETY: a value of the caller's, which has at least a byte, and an identifier in use, by its promise.
    let (byte, object) = unsafe { (*value.cast::<u8>(), IdObject::of(id)) };
    match name as u32 {
        RDMA_OPTION_ID_TOS => lock(&object.inner).tos = byte,
        // Datagrams are not acknowledged.
        RDMA_OPTION_ID_ACK_TIMEOUT if object.qp_type == IBV_QPT_UD || byte > 31 => return minus_one("rdma_set_option", Err(libc::EINVAL)),
        RDMA_OPTION_ID_ACK_TIMEOUT => lock(&object.inner).ack_timeout = Some(byte),
        _ => {}
    }
    0
}

/// A context for every card.
#[no_mangle]
unsafe extern "C" fn ferric_rdma_get_devices(count: *mut c_int) -> *mut *mut Context {
    let open: Vec<*mut Context> = devices().iter().filter_map(|d| context_of(d).ok()).collect();
    if open.is_empty() {
        return pointer("rdma_get_devices", Err(libc::ENODEV));
    }
    // SAFETY: a fresh array with a null behind it; the output is the caller's or null.
    unsafe {
        let list = libc::calloc(open.len() + 1, size_of::<*mut Context>()).cast::<*mut Context>();
        if list.is_null() {
            return pointer("rdma_get_devices", Err(libc::ENOMEM));
        }
        open.iter().enumerate().for_each(|(i, c)| list.add(i).write(*c));
        if !count.is_null() {
            *count = open.len() as c_int;
        }
        list
    }
}

#[no_mangle]
unsafe extern "C" fn ferric_rdma_free_devices(list: *mut *mut Context) {
    // SAFETY: from `rdma_get_devices`, by the caller's promise.
    unsafe { libc::free(list.cast()) };
}
