//! Structures of librdmacm.
use super::attr::{AhAttr, GidWords};
use super::c_structs;
use super::objects::{CompChannel, Context, Cq, Pd, Qp, Srq};
use std::ffi::{c_char, c_int, c_uint, c_void};

/// Room for any socket address.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct SockAddr(pub [u8; 128]);

#[repr(C)]
#[derive(Clone, Copy)]
pub union EventParam {
    pub conn: ConnParam,
    pub ud: UdParam,
}

c_structs! {
    IbAddr = "struct rdma_ib_addr" { sgid: GidWords, dgid: GidWords, pkey: u16 }
    Addr = "struct rdma_addr" { src_addr: SockAddr, dst_addr: SockAddr, addr: IbAddr }
    Route = "struct rdma_route" { addr: Addr, path_rec: *mut c_void, num_paths: c_int }
    EventChannel = "struct rdma_event_channel" { fd: c_int }
    CmId = "struct rdma_cm_id" {
        verbs: *mut Context, channel: *mut EventChannel, context: *mut c_void, qp: *mut Qp, route: Route, ps: c_uint, port_num: u8, event: *mut CmEvent,
        send_cq_channel: *mut CompChannel, send_cq: *mut Cq, recv_cq_channel: *mut CompChannel, recv_cq: *mut Cq, srq: *mut Srq, pd: *mut Pd, qp_type: c_uint,
    }
    ConnParam = "struct rdma_conn_param" {
        private_data: *const c_void, private_data_len: u8, responder_resources: u8, initiator_depth: u8, flow_control: u8, retry_count: u8, rnr_retry_count: u8,
        srq: u8, qp_num: u32,
    }
    UdParam = "struct rdma_ud_param" { private_data: *const c_void, private_data_len: u8, ah_attr: AhAttr, qp_num: u32, qkey: u32 }
    JoinAttr = "struct rdma_cm_join_mc_attr_ex" { comp_mask: u32, join_flags: u32, addr: *mut c_void }
    CmEvent = "struct rdma_cm_event" { id: *mut CmId, listen_id: *mut CmId, event: c_uint, status: c_int, param: EventParam }
    AddrInfo = "struct rdma_addrinfo" {
        ai_flags: c_int, ai_family: c_int, ai_qp_type: c_int, ai_port_space: c_int, ai_src_len: u32, ai_dst_len: u32, ai_src_addr: *mut c_void,
        ai_dst_addr: *mut c_void, ai_src_canonname: *mut c_char, ai_dst_canonname: *mut c_char, ai_route_len: usize, ai_route: *mut c_void,
        ai_connect_len: usize, ai_connect: *mut c_void, ai_next: *mut AddrInfo,
    }
}
