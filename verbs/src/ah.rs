//! Address handles.
use crate::abi::attr::{AhAttr, GidWords, GlobalRoute, Grh};
use crate::abi::objects::{Ah, Context, Pd};
use crate::abi::wr::Wc;
use crate::config::{gid_of, ip_of, Config};
use crate::context::ContextObject;
use crate::errors::{minus_one, number, pointer};
use crate::mr::PdObject;
use crate::neighbour;
use crate::shared::Shared;
use ferric_driver::types::Mac;
use ferric_driver::{AddressHandle, Grh as Headers};
use std::ffi::c_int;
use std::net::IpAddr;
use std::sync::atomic::Ordering;

/// An address handle.
#[repr(C)]
pub struct AhObject {
    ah: Ah,
    /// Where it leads.
    pub to: AddressHandle,
}

/// Where an address vector leads, from this card. RoCE has global routes only; the card has one GID and one port.
pub fn route(context: &ContextObject, attr: &AhAttr) -> Result<AddressHandle, c_int> {
    if attr.is_global == 0 || attr.grh.sgid_index != 0 || attr.port_num != 1 {
        return Err(libc::EINVAL);
    }
    let ip = ip_of(&attr.grh.dgid);
    if ip.is_ipv4() != context.shared.named.ip.is_ipv4() || ip.is_unspecified() {
        return Err(libc::EINVAL);
    }
    let hop_limit = if attr.grh.hop_limit == 0 { 64 } else { attr.grh.hop_limit };
    Ok(AddressHandle { tclass: attr.grh.traffic_class, hop_limit, ..AddressHandle::new(mac(&context.shared, ip), ip) })
}

/// MAC address of a machine or multicast group.
fn mac(shared: &Shared, ip: IpAddr) -> Mac {
    let config = Config::of_process();
    neighbour::mac(&shared.driver, &config.neighbours, ip, &config.search)
}

/// Makes an address handle.
#[no_mangle]
pub unsafe extern "C" fn ibv_create_ah(pd: *mut Pd, attr: *mut AhAttr) -> *mut Ah {
    // SAFETY: handles and attributes of the caller's, by its promise.
    let (domain, attr) = unsafe { (PdObject::of(pd), *attr) };
    let context = domain.pd.context;
    // SAFETY: a domain's context is open.
    pointer(
        "ibv_create_ah",
        route(unsafe { ContextObject::of(context) }, &attr).map(|to| {
            domain.users.fetch_add(1, Ordering::AcqRel);
            Box::into_raw(Box::new(AhObject { ah: Ah { context, pd, handle: 0 }, to })).cast()
        }),
    )
}

/// Destroys one.
#[no_mangle]
pub unsafe extern "C" fn ibv_destroy_ah(ah: *mut Ah) -> c_int {
    // SAFETY: from Box::into_raw, by the caller's promise; the domain outlives it.
    unsafe {
        let object = Box::from_raw(ah.cast::<AhObject>());
        PdObject::of(object.ah.pd).users.fetch_sub(1, Ordering::AcqRel);
    }
    0
}

/// The way back to the sender of a datagram.
unsafe fn back(context: *mut Context, port: u8, wc: *mut Wc, grh: *mut Grh) -> Result<AhAttr, c_int> {
    // SAFETY: outputs of earlier calls, by the caller's promise.
    let (wc, bytes) = unsafe { (*wc, grh.cast::<[u8; 40]>().read_unaligned()) };
    if port != 1 || wc.wc_flags & crate::abi::consts::IBV_WC_GRH == 0 {
        return Err(libc::EINVAL);
    }
    let from = Headers::parse(&bytes).ok_or(libc::EINVAL)?;
    // SAFETY: a handle of ours, by the caller's promise.
    let own = unsafe { ContextObject::of(context) }.shared.named.ip;
    let dgid: GidWords = gid_of(from.sip);
    if !from.dip.is_multicast() && from.dip != own {
        return Err(libc::EINVAL);
    }
    Ok(AhAttr { grh: GlobalRoute { dgid, hop_limit: 64, traffic_class: from.tclass, ..Default::default() }, is_global: 1, port_num: port, ..Default::default() })
}

#[no_mangle]
unsafe extern "C" fn ibv_init_ah_from_wc(context: *mut Context, port: u8, wc: *mut Wc, grh: *mut Grh, attr: *mut AhAttr) -> c_int {
    // SAFETY: by the caller's promise.
    minus_one("ibv_init_ah_from_wc", unsafe { back(context, port, wc, grh).map(|a| attr.write(a)) })
}

#[no_mangle]
unsafe extern "C" fn ibv_create_ah_from_wc(pd: *mut Pd, wc: *mut Wc, grh: *mut Grh, port: u8) -> *mut Ah {
    // SAFETY: by the caller's promise.
    match unsafe { back(PdObject::of(pd).pd.context, port, wc, grh) } {
        // SAFETY: as above.
        Ok(mut attr) => unsafe { ibv_create_ah(pd, &mut attr) },
        Err(n) => pointer("ibv_create_ah_from_wc", Err(n)),
    }
}

#[no_mangle]
unsafe extern "C" fn ibv_resolve_eth_l2_from_gid(context: *mut Context, attr: *mut AhAttr, eth_mac: *mut u8, vid: *mut u16) -> c_int {
    // SAFETY: a handle of ours and the caller's memory, by its promise.
    number("ibv_resolve_eth_l2_from_gid", unsafe {
        route(ContextObject::of(context), &*attr).map(|to| {
            std::ptr::copy_nonoverlapping(to.dmac.0.as_ptr(), eth_mac, 6);
            // No 802.1Q tag.
            vid.write(0xffff);
        })
    })
}
