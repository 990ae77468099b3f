//! Flows: which frames that no block of the card wants reach a raw packet queue pair. The card has one such place for each function that may have one, and tells frames apart by their station only.
use crate::abi::consts::*;
use crate::abi::objects::{Flow, FlowAttr, FlowSpecEth, Qp};
use crate::config::mac_of;
use crate::errors::{number, pointer, Errno};
use crate::qp::QpObject;
use crate::shared::lock;
use std::ffi::c_int;
use std::sync::atomic::Ordering;

/// A flow.
#[repr(C)]
pub struct FlowObject {
    /// What the program sees.
    flow: Flow,
    /// Its queue pair.
    qp: *mut Qp,
}

/// Whether the flow wants frames for every station; an error if it wants what the card cannot tell.
///
/// # Safety
/// Behind `attr` lie as many specifications as it says.
unsafe fn promiscuous(attr: &FlowAttr, station: [u8; 6]) -> Result<bool, c_int> {
    if attr.comp_mask != 0 || attr.port != 1 || attr.flags & !IBV_FLOW_ATTR_FLAGS_DONT_TRAP != 0 {
        return Err(libc::EINVAL);
    }
    match (attr.r#type, attr.num_of_specs) {
        (_, _) if attr.flags != 0 => Err(libc::EOPNOTSUPP),
        (IBV_FLOW_ATTR_SNIFFER, 0) => Ok(true),
        (IBV_FLOW_ATTR_ALL_DEFAULT, 0) => Ok(false),
        (IBV_FLOW_ATTR_NORMAL, 1) => {
            // SAFETY: one is there; nothing of it but type and size is looked at before they are known.
            let spec = unsafe { &*(&raw const *attr).add(1).cast::<FlowSpecEth>() };
            if spec.r#type != IBV_FLOW_SPEC_ETH {
                return Err(libc::EOPNOTSUPP);
            }
            if usize::from(spec.size) != size_of::<FlowSpecEth>() {
                return Err(libc::EINVAL);
            }
            let (val, mask) = (spec.val, spec.mask);
            let station_alone = mask.dst_mac == [0xff; 6] && mask.src_mac == [0; 6] && mask.ether_type == 0 && mask.vlan_tag == 0;
            if station_alone && val.dst_mac == station {
                Ok(false)
            } else {
                Err(libc::EOPNOTSUPP)
            }
        }
        _ => Err(libc::EOPNOTSUPP),
    }
}

/// `ibv_create_flow`: frames to the card's own station and to groups (`IBV_FLOW_ATTR_NORMAL` with that destination, `IBV_FLOW_ATTR_ALL_DEFAULT`), or all frames
/// (`IBV_FLOW_ATTR_SNIFFER`), that are not RoCE. EOPNOTSUPP: any other choice, and all frames of another function than 0. EBUSY: there is a flow.
pub unsafe extern "C" fn create_flow(qp: *mut Qp, attr: *mut FlowAttr) -> *mut Flow {
    // SAFETY: a handle of ours and the caller's attributes, by its promise.
    let (object, attr) = unsafe { (QpObject::of(qp), &*attr) };
    let create = || -> Result<*mut FlowObject, c_int> {
        let inner = object.inner.lock();
        if inner.kind != IBV_QPT_RAW_PACKET {
            return Err(libc::EINVAL);
        }
        // SAFETY: by the caller's promise.
        let all = unsafe { promiscuous(attr, mac_of(object.shared.named.ip).0) }?;
        let mut taken = lock(&object.shared.flow);
        if *taken {
            return Err(libc::EBUSY);
        }
        let driver = &object.shared.driver;
        if all && driver.capabilities().function != 0 {
            return Err(libc::EOPNOTSUPP);
        }
        if all { driver.set_promiscuous_queue(&inner.driver) } else { driver.set_raw_queue(Some(&inner.driver)) }.errno("flow")?;
        *taken = true;
        object.flows.fetch_add(1, Ordering::AcqRel);
        log::info!("frames that are not RoCE go to queue pair {}", inner.driver.qpn());
        // SAFETY: a queue pair's context is open.
        let context = unsafe { (*object.seen()).qp_base.context };
        Ok(Box::into_raw(Box::new(FlowObject { flow: Flow { comp_mask: 0, context, handle: 0 }, qp })))
    };
    pointer("ibv_create_flow", create()).cast()
}

/// `ibv_destroy_flow`: such frames are dropped from now on.
pub unsafe extern "C" fn destroy_flow(flow: *mut Flow) -> c_int {
    // SAFETY: from Box::into_raw, by the caller's promise; its queue pair cannot be destroyed before it.
    let object = unsafe { QpObject::of((*flow.cast::<FlowObject>()).qp) };
    let mut taken = lock(&object.shared.flow);
    if let Err(n) = object.shared.driver.set_raw_queue(None).errno("flow") {
        return number("ibv_destroy_flow", Err(n));
    }
    *taken = false;
    object.flows.fetch_sub(1, Ordering::AcqRel);
    // SAFETY: as above.
    drop(unsafe { Box::from_raw(flow.cast::<FlowObject>()) });
    0
}
