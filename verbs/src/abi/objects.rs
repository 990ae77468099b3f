//! Objects that programs hold pointers to, and the tables of functions that inline verbs call through them.
use super::attr::{CqInitAttrEx, DeviceAttrEx, ParentDomainInitAttr, PortAttr, QpInitAttrEx, TdInitAttr};
use super::c_structs;
use super::wr::{DataBuf, MwBind, MwBindInfo, RecvWr, SendWr, Sge, Wc};
use std::ffi::{c_char, c_int, c_uint, c_void};

/// A function that is not there: programs see that the card cannot do it.
pub type Absent = *const c_void;

type PostSend = unsafe extern "C" fn(*mut Qp, *mut SendWr, *mut *mut SendWr) -> c_int;
type PostRecv = unsafe extern "C" fn(*mut Qp, *mut RecvWr, *mut *mut RecvWr) -> c_int;
type PostSrqRecv = unsafe extern "C" fn(*mut Srq, *mut RecvWr, *mut *mut RecvWr) -> c_int;
type QueryPort = unsafe extern "C" fn(*mut Context, u8, *mut PortAttr, usize) -> c_int;
type QueryDeviceEx = unsafe extern "C" fn(*mut Context, *const c_void, *mut DeviceAttrEx, usize) -> c_int;
type CreateCqEx = unsafe extern "C" fn(*mut Context, *mut CqInitAttrEx) -> *mut CqEx;
type GetSrqNum = unsafe extern "C" fn(*mut Srq, *mut u32) -> c_int;
type AllocParentDomain = unsafe extern "C" fn(*mut Context, *mut ParentDomainInitAttr) -> *mut Pd;
type CreateFlow = unsafe extern "C" fn(*mut Qp, *mut FlowAttr) -> *mut Flow;
type CreateQpEx = unsafe extern "C" fn(*mut Context, *mut QpInitAttrEx) -> *mut Qp;

c_structs! {
    Device = "struct ibv_device" {
        opaque_ops: [Absent; 2], node_type: c_int, transport_type: c_int, name: [c_char; 64], dev_name: [c_char; 64], dev_path: [c_char; 256],
        ibdev_path: [c_char; 256],
    }
    ContextOps = "struct ibv_context_ops" {
        opaque_compat: [Absent; 7], alloc_mw: Option<unsafe extern "C" fn(*mut Pd, c_uint) -> *mut Mw>,
        bind_mw: Option<unsafe extern "C" fn(*mut Qp, *mut Mw, *mut MwBind) -> c_int>, dealloc_mw: Option<unsafe extern "C" fn(*mut Mw) -> c_int>,
        _compat_create_cq: Absent,
        poll_cq: Option<unsafe extern "C" fn(*mut Cq, c_int, *mut Wc) -> c_int>, req_notify_cq: Option<unsafe extern "C" fn(*mut Cq, c_int) -> c_int>,
        opaque_compat2: [Absent; 7], post_srq_recv: Option<PostSrqRecv>, opaque_compat3: [Absent; 4], post_send: Option<PostSend>, post_recv: Option<PostRecv>,
        opaque_compat4: [Absent; 5],
    }
    Context = "struct ibv_context" {
        device: *mut Device, ops: ContextOps, cmd_fd: c_int, async_fd: c_int, num_comp_vectors: c_int, mutex: libc::pthread_mutex_t, abi_compat: *mut c_void,
    }
    VerbsContext = "struct verbs_context" {
        query_port: Option<QueryPort>, advise_mr: Absent, alloc_null_mr: Absent, read_counters: Absent, attach_counters_point_flow: Absent,
        create_counters: Absent, destroy_counters: Absent, reg_dm_mr: Absent, alloc_dm: Absent, free_dm: Absent, modify_flow_action_esp: Absent,
        destroy_flow_action: Absent, create_flow_action_esp: Absent, modify_qp_rate_limit: Absent, alloc_parent_domain: Option<AllocParentDomain>,
        dealloc_td: Option<unsafe extern "C" fn(*mut Td) -> c_int>, alloc_td: Option<unsafe extern "C" fn(*mut Context, *mut TdInitAttr) -> *mut Td>, modify_cq: Absent, post_srq_ops: Absent, destroy_rwq_ind_table: Absent, create_rwq_ind_table: Absent, destroy_wq: Absent,
        modify_wq: Absent, create_wq: Absent, query_rt_values: Absent, create_cq_ex: Option<CreateCqEx>, opaque_priv: Absent, query_device_ex: Option<QueryDeviceEx>,
        ibv_destroy_flow: Option<unsafe extern "C" fn(*mut Flow) -> c_int>, ABI_placeholder2: Absent, ibv_create_flow: Option<CreateFlow>, ABI_placeholder1: Absent, open_qp: Absent,
        create_qp_ex: Option<CreateQpEx>, get_srq_num: Option<GetSrqNum>, create_srq_ex: Absent, open_xrcd: Absent, close_xrcd: Absent,
        _ABI_placeholder3: u64, sz: usize, context: Context,
    }
    Pd = "struct ibv_pd" { context: *mut Context, handle: u32 }
    Td = "struct ibv_td" { context: *mut Context }
    Mw = "struct ibv_mw" { context: *mut Context, pd: *mut Pd, rkey: u32, handle: u32, r#type: c_uint }
    Mr = "struct ibv_mr" { context: *mut Context, pd: *mut Pd, addr: *mut c_void, length: usize, handle: u32, lkey: u32, rkey: u32 }
    CompChannel = "struct ibv_comp_channel" { context: *mut Context, fd: c_int, refcnt: c_int }
    Cq = "struct ibv_cq" {
        context: *mut Context, channel: *mut CompChannel, cq_context: *mut c_void, handle: u32, cqe: c_int, mutex: libc::pthread_mutex_t,
        cond: libc::pthread_cond_t, comp_events_completed: u32, async_events_completed: u32,
    }
    CqEx = "struct ibv_cq_ex" {
        context: *mut Context, channel: *mut CompChannel, cq_context: *mut c_void, handle: u32, cqe: c_int, mutex: libc::pthread_mutex_t,
        cond: libc::pthread_cond_t, comp_events_completed: u32, async_events_completed: u32,
        comp_mask: u32, status: c_uint, wr_id: u64,
        start_poll: Option<unsafe extern "C" fn(*mut CqEx, *mut c_void) -> c_int>, next_poll: Option<unsafe extern "C" fn(*mut CqEx) -> c_int>,
        end_poll: Option<unsafe extern "C" fn(*mut CqEx)>, read_opcode: Option<unsafe extern "C" fn(*mut CqEx) -> c_uint>,
        read_vendor_err: Option<unsafe extern "C" fn(*mut CqEx) -> u32>, read_byte_len: Option<unsafe extern "C" fn(*mut CqEx) -> u32>,
        read_imm_data: Option<unsafe extern "C" fn(*mut CqEx) -> u32>, read_qp_num: Option<unsafe extern "C" fn(*mut CqEx) -> u32>,
        read_src_qp: Option<unsafe extern "C" fn(*mut CqEx) -> u32>, read_wc_flags: Option<unsafe extern "C" fn(*mut CqEx) -> c_uint>,
        read_slid: Option<unsafe extern "C" fn(*mut CqEx) -> u32>, read_sl: Option<unsafe extern "C" fn(*mut CqEx) -> u8>,
        read_dlid_path_bits: Option<unsafe extern "C" fn(*mut CqEx) -> u8>, read_completion_ts: Option<unsafe extern "C" fn(*mut CqEx) -> u64>,
        read_cvlan: Absent, read_flow_tag: Absent, read_tm_info: Absent, read_completion_wallclock_ns: Absent,
    }
    Qp = "struct ibv_qp" {
        context: *mut Context, qp_context: *mut c_void, pd: *mut Pd, send_cq: *mut Cq, recv_cq: *mut Cq, srq: *mut Srq, handle: u32, qp_num: u32,
        state: c_uint, qp_type: c_uint, mutex: libc::pthread_mutex_t, cond: libc::pthread_cond_t, events_completed: u32,
    }
    QpEx = "struct ibv_qp_ex" {
        qp_base: Qp, comp_mask: u64, wr_id: u64, wr_flags: c_uint,
        wr_atomic_cmp_swp: Option<unsafe extern "C" fn(*mut QpEx, u32, u64, u64, u64)>, wr_atomic_fetch_add: Option<unsafe extern "C" fn(*mut QpEx, u32, u64, u64)>,
        wr_bind_mw: Option<unsafe extern "C" fn(*mut QpEx, *mut Mw, u32, *const MwBindInfo)>, wr_local_inv: Option<unsafe extern "C" fn(*mut QpEx, u32)>, wr_rdma_read: Option<unsafe extern "C" fn(*mut QpEx, u32, u64)>,
        wr_rdma_write: Option<unsafe extern "C" fn(*mut QpEx, u32, u64)>, wr_rdma_write_imm: Option<unsafe extern "C" fn(*mut QpEx, u32, u64, u32)>,
        wr_send: Option<unsafe extern "C" fn(*mut QpEx)>, wr_send_imm: Option<unsafe extern "C" fn(*mut QpEx, u32)>, wr_send_inv: Option<unsafe extern "C" fn(*mut QpEx, u32)>, wr_send_tso: Absent,
        wr_set_ud_addr: Option<unsafe extern "C" fn(*mut QpEx, *mut Ah, u32, u32)>, wr_set_xrc_srqn: Absent,
        wr_set_inline_data: Option<unsafe extern "C" fn(*mut QpEx, *mut c_void, usize)>,
        wr_set_inline_data_list: Option<unsafe extern "C" fn(*mut QpEx, usize, *const DataBuf)>,
        wr_set_sge: Option<unsafe extern "C" fn(*mut QpEx, u32, u64, u32)>, wr_set_sge_list: Option<unsafe extern "C" fn(*mut QpEx, usize, *const Sge)>,
        wr_start: Option<unsafe extern "C" fn(*mut QpEx)>, wr_complete: Option<unsafe extern "C" fn(*mut QpEx) -> c_int>,
        wr_abort: Option<unsafe extern "C" fn(*mut QpEx)>, wr_atomic_write: Option<unsafe extern "C" fn(*mut QpEx, u32, u64, *const c_void)>,
    }
    Srq = "struct ibv_srq" {
        context: *mut Context, srq_context: *mut c_void, pd: *mut Pd, handle: u32, mutex: libc::pthread_mutex_t, cond: libc::pthread_cond_t, events_completed: u32,
    }
    Ah = "struct ibv_ah" { context: *mut Context, pd: *mut Pd, handle: u32 }
    Flow = "struct ibv_flow" { comp_mask: u32, context: *mut Context, handle: u32 }
    FlowAttr = "struct ibv_flow_attr" { comp_mask: u32, r#type: c_uint, size: u16, priority: u16, num_of_specs: u8, port: u8, flags: u32 }
    FlowEthFilter = "struct ibv_flow_eth_filter" { dst_mac: [u8; 6], src_mac: [u8; 6], ether_type: u16, vlan_tag: u16 }
    FlowSpecEth = "struct ibv_flow_spec_eth" { r#type: c_uint, size: u16, val: FlowEthFilter, mask: FlowEthFilter }
    AsyncEvent = "struct ibv_async_event" { element: *mut c_void, event_type: c_uint }
}
