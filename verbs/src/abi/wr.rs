//! Work requests and completions.
use super::c_structs;
use super::objects::{Ah, Mr, Mw};
use std::ffi::{c_int, c_uint, c_void};

#[repr(C)]
#[derive(Clone, Copy)]
pub union WrKind {
    pub rdma: WrRdma,
    pub atomic: WrAtomic,
    pub ud: WrUd,
    pub flush: WrFlush,
    pub value: WrValue,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WrRdma {
    pub remote_addr: u64,
    pub rkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WrAtomic {
    pub remote_addr: u64,
    pub compare_add: u64,
    pub swap: u64,
    pub rkey: u32,
}

/// Of `ibv_wr_flush`, which no list of requests has: our own layout.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct WrFlush {
    pub remote_addr: u64,
    pub length: u64,
    pub rkey: u32,
    pub placement: u8,
    pub level: u8,
}

/// Of `ibv_wr_atomic_write`: likewise.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct WrValue {
    pub remote_addr: u64,
    pub value: [u8; 8],
    pub rkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WrUd {
    pub ah: *mut Ah,
    pub remote_qpn: u32,
    pub remote_qkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WrBind {
    pub mw: *mut Mw,
    pub rkey: u32,
    pub bind_info: MwBindInfo,
}

impl WrBind {
    /// No window.
    pub const NONE: Self = Self { mw: std::ptr::null_mut(), rkey: 0, bind_info: MwBindInfo { mr: std::ptr::null_mut(), addr: 0, length: 0, mw_access_flags: 0 } };
}

c_structs! {
    Sge = "struct ibv_sge" { addr: u64, length: u32, lkey: u32 }
    DataBuf = "struct ibv_data_buf" { addr: *mut c_void, length: usize }
    SendWr = "struct ibv_send_wr" {
        wr_id: u64, next: *mut SendWr, sg_list: *mut Sge, num_sge: c_int, opcode: c_uint, send_flags: c_uint,
        imm_data: u32, wr: WrKind, qp_type: u32, bind_mw: WrBind,
    }
    MwBindInfo = "struct ibv_mw_bind_info" { mr: *mut Mr, addr: u64, length: u64, mw_access_flags: c_uint }
    MwBind = "struct ibv_mw_bind" { wr_id: u64, send_flags: c_uint, bind_info: MwBindInfo }
    RecvWr = "struct ibv_recv_wr" { wr_id: u64, next: *mut RecvWr, sg_list: *mut Sge, num_sge: c_int }
    #[derive(Default)]
    Wc = "struct ibv_wc" {
        wr_id: u64, status: c_uint, opcode: c_uint, vendor_err: u32, byte_len: u32, imm_data: u32, qp_num: u32, src_qp: u32,
        wc_flags: c_uint, pkey_index: u16, slid: u16, sl: u8, dlid_path_bits: u8,
    }
}
