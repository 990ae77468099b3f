//! What a device and its port are.
use crate::abi::attr::{DeviceAttr, DeviceAttrEx, GidEntry, GidWords, PortAttr};
use crate::abi::consts::*;
use crate::abi::objects::Context;
use crate::config::{gid_of, Config};
use crate::context::ContextObject;
use crate::errors::{minus_one, number};
use ferric_abi::csr::FEATURE_PLACEMENT;
use ferric_abi::host::RECV_FETCHES;
use ferric_abi::{csr, pci};
use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

/// Scatter/gather entries that fit into a request of any kind: the largest has 512 bytes, a datagram's address takes 16 and the head 32.
pub const MAX_SGE: u32 = 28;
/// Requests of a queue, entries of a completion queue.
pub const MAX_DEPTH: u32 = 1 << 15;
/// READs and atomics of a queue pair.
pub const MAX_RD_ATOMIC: u8 = 16;
/// Bytes of a region (docs/rocev2.md): as many as a page table is tested with.
pub const MAX_MR: usize = 1 << 40;
/// The only partition.
const PKEY: u16 = 0xffff;

/// Entries and inline bytes a queue pair may ask for on this card.
pub fn limits(context: &ContextObject) -> (u32, u32) {
    let caps = context.shared.driver.capabilities();
    (caps.max_sge.min(MAX_SGE), caps.max_inline.min(512 - 32 - 16))
}

/// Shared receive queues of this card, and requests of one.
pub fn srq_limits(context: &ContextObject) -> (u32, u32) {
    let caps = context.shared.driver.capabilities();
    // The ring has room for what the card may be fetching besides.
    if caps.features >> csr::FEATURE_SRQ & 1 == 1 {
        (caps.qps, MAX_DEPTH - RECV_FETCHES as u32)
    } else {
        (0, 0)
    }
}

fn device_attr(context: &ContextObject) -> DeviceAttr {
    let caps = context.shared.driver.capabilities();
    // SAFETY: all zeros are numbers.
    let mut a: DeviceAttr = unsafe { std::mem::zeroed() };
    let version = format!("{}.{}", caps.version >> 16, caps.version & 0xffff);
    a.fw_ver.iter_mut().zip(version.bytes()).for_each(|(o, b)| *o = b as c_char);
    (a.node_guid, a.sys_image_guid) = (context.device.guid(), context.device.guid());
    a.max_mr_size = MAX_MR as u64;
    a.page_size_cap = 4096;
    (a.vendor_id, a.vendor_part_id, a.hw_ver) = (pci::VENDOR_ID.into(), pci::DEVICE_ID.into(), caps.version);
    // Number 0 and those of special queue pairs are no program's: function 0 would have everybody's, any other has its own among its numbers.
    let kept = if caps.function == 0 { caps.functions + 1 } else { 1 };
    a.max_qp = caps.qps.saturating_sub(kept) as c_int;
    a.max_qp_wr = MAX_DEPTH as c_int;
    a.max_raw_ethy_qp = if caps.function == 0 { a.max_qp } else { 0 };
    a.device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
    let sge = limits(context).0 as c_int;
    (a.max_sge, a.max_sge_rd) = (sge, sge);
    let (srqs, srq_depth) = srq_limits(context);
    (a.max_srq, a.max_srq_wr, a.max_srq_sge) = (srqs as c_int, srq_depth as c_int, if srqs > 0 { sge } else { 0 });
    if caps.features >> csr::FEATURE_MULTICAST & 1 == 1 {
        (a.max_mcast_grp, a.max_total_mcast_qp_attach) = (csr::MULTICAST_ATTACHMENTS as c_int, csr::MULTICAST_ATTACHMENTS as c_int);
        a.max_mcast_qp_attach = csr::MULTICAST_MEMBERS as c_int;
    }
    a.max_cq = caps.cqs as c_int;
    a.max_cqe = MAX_DEPTH as c_int;
    a.max_mr = caps.mrs.saturating_sub(1) as c_int;
    // Windows have numbers of regions.
    a.max_mw = a.max_mr;
    a.max_pd = caps.pds.saturating_sub(1) as c_int;
    (a.max_qp_rd_atom, a.max_qp_init_rd_atom) = (MAX_RD_ATOMIC.into(), MAX_RD_ATOMIC.into());
    a.max_res_rd_atom = a.max_qp * a.max_qp_rd_atom;
    a.atomic_cap = IBV_ATOMIC_HCA;
    // Address handles cost the card nothing.
    a.max_ah = c_int::MAX;
    (a.max_pkeys, a.phys_port_cnt) = (1, 1);
    a
}

#[no_mangle]
unsafe extern "C" fn ibv_query_device(context: *mut Context, attr: *mut DeviceAttr) -> c_int {
    // SAFETY: a handle of ours and an output of the caller's, by its promise.
    unsafe { attr.write(device_attr(ContextObject::of(context))) };
    0
}

/// `ibv_query_device_ex`; programs built against older headers give a smaller `size`.
pub unsafe extern "C" fn query_device_ex(context: *mut Context, _input: *const c_void, attr: *mut DeviceAttrEx, size: usize) -> c_int {
    if size < size_of::<DeviceAttr>() {
        return number("ibv_query_device_ex", Err(libc::EINVAL));
    }
    // SAFETY: all zeros are numbers.
    let mut all: DeviceAttrEx = unsafe { std::mem::zeroed() };
    // SAFETY: a handle of ours, by the caller's promise.
    let context = unsafe { ContextObject::of(context) };
    all.orig_attr = device_attr(context);
    all.completion_timestamp_mask = u64::MAX;
    // Ticks of 1.024 us, in kHz.
    all.hca_core_clock = 976;
    let placement = if context.shared.driver.capabilities().features >> FEATURE_PLACEMENT & 1 == 1 { IB_UVERBS_DEVICE_FLUSH_GLOBAL | IB_UVERBS_DEVICE_ATOMIC_WRITE } else { 0 };
    all.device_cap_flags_ex = u64::from(all.orig_attr.device_cap_flags) | placement;
    all.phys_port_cnt_ex = 1;
    let known = size.min(size_of::<DeviceAttrEx>());
    // SAFETY: the caller has room for `size` bytes.
    unsafe {
        attr.cast::<u8>().write_bytes(0, size);
        std::ptr::copy_nonoverlapping((&raw const all).cast::<u8>(), attr.cast::<u8>(), known);
    }
    0
}

fn port_attr() -> PortAttr {
    PortAttr {
        state: IBV_PORT_ACTIVE,
        max_mtu: 5,
        active_mtu: Config::of_process().mtu as u32,
        gid_tbl_len: 1,
        port_cap_flags: IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
        max_msg_sz: i32::MAX as u32,
        pkey_tbl_len: 1,
        max_vl_num: 1,
        // Four lanes of 25 Gb/s, link up.
        active_width: 2,
        active_speed: 32,
        phys_state: 5,
        link_layer: IBV_LINK_LAYER_ETHERNET as u8,
        ..Default::default()
    }
}

/// `ibv_query_port`, as the header's inline function calls it.
pub unsafe extern "C" fn query_port(_context: *mut Context, port: u8, attr: *mut PortAttr, size: usize) -> c_int {
    if port != 1 {
        return number("ibv_query_port", Err(libc::EINVAL));
    }
    let all = port_attr();
    // SAFETY: the caller has room for `size` bytes.
    unsafe {
        attr.cast::<u8>().write_bytes(0, size);
        std::ptr::copy_nonoverlapping((&raw const all).cast::<u8>(), attr.cast::<u8>(), size.min(size_of::<PortAttr>()));
    }
    0
}

/// For programs built before the structure grew.
#[no_mangle]
unsafe extern "C" fn ibv_query_port(context: *mut Context, port: u8, attr: *mut PortAttr) -> c_int {
    // SAFETY: by the caller's promise there is room for the old structure.
    unsafe { query_port(context, port, attr, offset_of!(PortAttr, port_cap_flags2)) }
}

/// The card's only GID.
fn gid(context: *mut Context, port: u32, index: u32) -> Result<GidWords, c_int> {
    if port != 1 || index != 0 {
        return Err(libc::EINVAL);
    }
    // SAFETY: a handle of ours, by the callers' promise.
    Ok(gid_of(unsafe { ContextObject::of(context) }.shared.named.ip))
}

#[no_mangle]
unsafe extern "C" fn ibv_query_gid(context: *mut Context, port: u8, index: c_int, out: *mut GidWords) -> c_int {
    // SAFETY: an output of the caller's.
    minus_one("ibv_query_gid", gid(context, port.into(), index as u32).map(|g| unsafe { out.write_unaligned(g) }))
}

fn entry(context: *mut Context, port: u32, index: u32) -> Result<GidEntry, c_int> {
    Ok(GidEntry { gid: gid(context, port, index).map_err(|_| libc::ENODATA)?, gid_index: index, port_num: port, gid_type: IBV_GID_TYPE_ROCE_V2, ndev_ifindex: 0 })
}

#[no_mangle]
unsafe extern "C" fn _ibv_query_gid_ex(context: *mut Context, port: u32, index: u32, out: *mut GidEntry, flags: u32, size: usize) -> c_int {
    let r = if flags != 0 || size < size_of::<GidEntry>() { Err(libc::EINVAL) } else { entry(context, port, index) };
    // SAFETY: an output of the caller's with room for an entry.
    number("ibv_query_gid_ex", r.map(|e| unsafe { out.write(e) }))
}

#[no_mangle]
unsafe extern "C" fn _ibv_query_gid_table(context: *mut Context, entries: *mut GidEntry, max: usize, flags: u32, size: usize) -> isize {
    if flags != 0 || size < size_of::<GidEntry>() {
        return -(libc::EINVAL as isize);
    }
    // The table has one entry; without room for all of it rdma-core and the kernel give none.
    match entry(context, 1, 0) {
        Ok(e) if max > 0 => {
            // SAFETY: room for `max` entries, by the caller's promise.
            unsafe { entries.write(e) };
            1
        }
        _ => -(libc::EINVAL as isize),
    }
}

/// For `ibv_devinfo`: sysfs' numbers, 1 is RoCEv2.
#[no_mangle]
unsafe extern "C" fn ibv_query_gid_type(context: *mut Context, port: u8, index: u32, out: *mut u32) -> c_int {
    // SAFETY: an output of the caller's.
    minus_one("ibv_query_gid_type", gid(context, port.into(), index).map(|_| unsafe { out.write(1) }))
}

#[no_mangle]
unsafe extern "C" fn ibv_query_pkey(_context: *mut Context, port: u8, index: c_int, out: *mut u16) -> c_int {
    let r = if port == 1 && index == 0 { Ok(()) } else { Err(libc::EINVAL) };
    // SAFETY: an output of the caller's.
    minus_one("ibv_query_pkey", r.map(|()| unsafe { out.write(PKEY.to_be()) }))
}

#[no_mangle]
unsafe extern "C" fn ibv_get_pkey_index(_context: *mut Context, port: u8, pkey: u16) -> c_int {
    if port == 1 && u16::from_be(pkey) == PKEY {
        return 0;
    }
    minus_one("ibv_get_pkey_index", Err(libc::EINVAL))
}
