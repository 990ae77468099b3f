//! Work requests and completions.
use super::c_structs;
use super::objects::Ah;
use std::ffi::{c_int, c_uint, c_void};

#[repr(C)]
#[derive(Clone, Copy)]
pub union WrKind {
    pub rdma: WrRdma,
    pub atomic: WrAtomic,
    pub ud: WrUd,
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

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WrUd {
    pub ah: *mut Ah,
    pub remote_qpn: u32,
    pub remote_qkey: u32,
}

c_structs! {
    Sge = "struct ibv_sge" { addr: u64, length: u32, lkey: u32 }
    DataBuf = "struct ibv_data_buf" { addr: *mut c_void, length: usize }
    SendWr = "struct ibv_send_wr" {
        wr_id: u64, next: *mut SendWr, sg_list: *mut Sge, num_sge: c_int, opcode: c_uint, send_flags: c_uint,
        imm_data: u32, wr: WrKind, qp_type: u32, opaque_bind: [u64; 6],
    }
    RecvWr = "struct ibv_recv_wr" { wr_id: u64, next: *mut RecvWr, sg_list: *mut Sge, num_sge: c_int }
    #[derive(Default)]
    Wc = "struct ibv_wc" {
        wr_id: u64, status: c_uint, opcode: c_uint, vendor_err: u32, byte_len: u32, imm_data: u32, qp_num: u32, src_qp: u32,
        wc_flags: c_uint, pkey_index: u16, slid: u16, sl: u8, dlid_path_bits: u8,
    }
}
