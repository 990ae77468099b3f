//! Numbers of the interface that are used here; `tests/layout.rs` compares them with the headers.
use std::ffi::c_uint;

macro_rules! numbers {
    ($( $name:ident = $value:expr; )*) => {
        $( pub const $name: c_uint = $value; )*
        /// Every number with its C name.
        pub const NUMBERS: &[(&str, u64)] = &[ $( (stringify!($name), $name as u64) ),* ];
    };
}

numbers! {
    IBV_NODE_CA = 1;
    IBV_TRANSPORT_IB = 0;
    IBV_GID_TYPE_IB = 0;
    IBV_GID_TYPE_ROCE_V2 = 2;
    IBV_DEVICE_MEM_WINDOW = 1 << 17;
    IBV_DEVICE_MEM_WINDOW_TYPE_2B = 1 << 24;
    IBV_DEVICE_CURR_QP_STATE_MOD = 1 << 7;
    IBV_DEVICE_PORT_ACTIVE_EVENT = 1 << 10;
    IBV_DEVICE_SYS_IMAGE_GUID = 1 << 11;
    IBV_DEVICE_RC_RNR_NAK_GEN = 1 << 12;
    IBV_ATOMIC_HCA = 1;
    IBV_PORT_DOWN = 1;
    IBV_PORT_ACTIVE = 4;
    IBV_PORT_CM_SUP = 1 << 16;
    IBV_PORT_IP_BASED_GIDS = 1 << 26;
    IBV_LINK_LAYER_ETHERNET = 2;
    IBV_EVENT_CQ_ERR = 0;
    IBV_EVENT_QP_FATAL = 1;
    IBV_EVENT_QP_REQ_ERR = 2;
    IBV_EVENT_QP_ACCESS_ERR = 3;
    IBV_EVENT_COMM_EST = 4;
    IBV_EVENT_SQ_DRAINED = 5;
    IBV_EVENT_DEVICE_FATAL = 8;
    IBV_EVENT_PORT_ACTIVE = 9;
    IBV_EVENT_SRQ_ERR = 14;
    IBV_EVENT_SRQ_LIMIT_REACHED = 15;
    IBV_EVENT_QP_LAST_WQE_REACHED = 16;
    IBV_WC_SUCCESS = 0;
    IBV_WC_GENERAL_ERR = 21;
    IBV_WC_SEND = 0;
    IBV_WC_RDMA_WRITE = 1;
    IBV_WC_RDMA_READ = 2;
    IBV_WC_COMP_SWAP = 3;
    IBV_WC_FETCH_ADD = 4;
    IBV_WC_BIND_MW = 5;
    IBV_WC_LOCAL_INV = 6;
    IBV_WC_ATOMIC_WRITE = 9;
    IBV_WC_RECV = 128;
    IBV_WC_RECV_RDMA_WITH_IMM = 129;
    IBV_WC_GRH = 1;
    IBV_WC_WITH_IMM = 2;
    IBV_WC_WITH_INV = 8;
    IBV_WC_STANDARD_FLAGS = 0x7f;
    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP = 1 << 7;
    IBV_ACCESS_LOCAL_WRITE = 1;
    IBV_ACCESS_REMOTE_WRITE = 2;
    IBV_ACCESS_REMOTE_READ = 4;
    IBV_ACCESS_REMOTE_ATOMIC = 8;
    IBV_ACCESS_MW_BIND = 16;
    IBV_ACCESS_HUGETLB = 128;
    IBV_MW_TYPE_1 = 1;
    IBV_MW_TYPE_2 = 2;
    IBV_REREG_MR_CHANGE_TRANSLATION = 1;
    IBV_REREG_MR_CHANGE_PD = 2;
    IBV_REREG_MR_CHANGE_ACCESS = 4;
    IBV_CQ_INIT_ATTR_MASK_FLAGS = 1;
    IBV_CQ_INIT_ATTR_MASK_PD = 2;
    IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS = 1;
    IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT = 2;
    IBV_ACCESS_OPTIONAL_RANGE = 0x3ff0_0000;
    IBV_QPT_RC = 2;
    IBV_QPT_UC = 3;
    IBV_QPT_UD = 4;
    IBV_QPT_RAW_PACKET = 8;
    IBV_FLOW_ATTR_NORMAL = 0;
    IBV_FLOW_ATTR_ALL_DEFAULT = 1;
    IBV_FLOW_ATTR_SNIFFER = 3;
    IBV_FLOW_ATTR_FLAGS_DONT_TRAP = 2;
    IBV_FLOW_SPEC_ETH = 0x20;
    IBV_QP_INIT_ATTR_PD = 1;
    IBV_SRQ_MAX_WR = 1;
    IBV_SRQ_LIMIT = 2;
    IBV_SRQT_BASIC = 0;
    IBV_SRQ_INIT_ATTR_TYPE = 1;
    IBV_SRQ_INIT_ATTR_PD = 2;
    IBV_QP_INIT_ATTR_CREATE_FLAGS = 4;
    IBV_QP_INIT_ATTR_SEND_OPS_FLAGS = 1 << 6;
    IBV_QP_EX_WITH_RDMA_WRITE = 1;
    IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM = 2;
    IBV_QP_EX_WITH_SEND = 4;
    IBV_QP_EX_WITH_SEND_WITH_IMM = 8;
    IBV_QP_EX_WITH_RDMA_READ = 16;
    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP = 32;
    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD = 64;
    IBV_QP_EX_WITH_LOCAL_INV = 1 << 7;
    IBV_QP_EX_WITH_BIND_MW = 1 << 8;
    IBV_QP_EX_WITH_SEND_WITH_INV = 1 << 9;
    IBV_QP_EX_WITH_ATOMIC_WRITE = 1 << 12;
    IBV_QP_STATE = 1;
    IBV_QP_CUR_STATE = 1 << 1;
    IBV_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2;
    IBV_QP_ACCESS_FLAGS = 1 << 3;
    IBV_QP_PKEY_INDEX = 1 << 4;
    IBV_QP_PORT = 1 << 5;
    IBV_QP_QKEY = 1 << 6;
    IBV_QP_AV = 1 << 7;
    IBV_QP_PATH_MTU = 1 << 8;
    IBV_QP_TIMEOUT = 1 << 9;
    IBV_QP_RETRY_CNT = 1 << 10;
    IBV_QP_RNR_RETRY = 1 << 11;
    IBV_QP_RQ_PSN = 1 << 12;
    IBV_QP_MAX_QP_RD_ATOMIC = 1 << 13;
    IBV_QP_ALT_PATH = 1 << 14;
    IBV_QP_MIN_RNR_TIMER = 1 << 15;
    IBV_QP_SQ_PSN = 1 << 16;
    IBV_QP_MAX_DEST_RD_ATOMIC = 1 << 17;
    IBV_QP_PATH_MIG_STATE = 1 << 18;
    IBV_QP_CAP = 1 << 19;
    IBV_QP_DEST_QPN = 1 << 20;
    IBV_QP_RATE_LIMIT = 1 << 25;
    IBV_QPS_RESET = 0;
    IBV_QPS_INIT = 1;
    IBV_QPS_RTR = 2;
    IBV_QPS_RTS = 3;
    IBV_QPS_SQD = 4;
    IBV_QPS_SQE = 5;
    IBV_QPS_ERR = 6;
    IBV_WR_RDMA_WRITE = 0;
    IBV_WR_RDMA_WRITE_WITH_IMM = 1;
    IBV_WR_SEND = 2;
    IBV_WR_SEND_WITH_IMM = 3;
    IBV_WR_RDMA_READ = 4;
    IBV_WR_ATOMIC_CMP_AND_SWP = 5;
    IBV_WR_ATOMIC_FETCH_AND_ADD = 6;
    IBV_WR_LOCAL_INV = 7;
    IBV_WR_BIND_MW = 8;
    IBV_WR_SEND_WITH_INV = 9;
    IBV_WR_ATOMIC_WRITE = 15;
    IBV_SEND_FENCE = 1;
    IBV_SEND_SIGNALED = 2;
    IBV_SEND_SOLICITED = 4;
    IBV_SEND_INLINE = 8;
    IBV_SEND_IP_CSUM = 16;
    RDMA_CM_EVENT_ADDR_RESOLVED = 0;
    RDMA_CM_EVENT_ADDR_ERROR = 1;
    RDMA_CM_EVENT_ROUTE_RESOLVED = 2;
    RDMA_CM_EVENT_CONNECT_REQUEST = 4;
    RDMA_CM_EVENT_CONNECT_RESPONSE = 5;
    RDMA_CM_EVENT_CONNECT_ERROR = 6;
    RDMA_CM_EVENT_UNREACHABLE = 7;
    RDMA_CM_EVENT_REJECTED = 8;
    RDMA_CM_EVENT_ESTABLISHED = 9;
    RDMA_CM_EVENT_DISCONNECTED = 10;
    RDMA_CM_EVENT_DEVICE_REMOVAL = 11;
    RDMA_CM_EVENT_MULTICAST_JOIN = 12;
    RDMA_CM_EVENT_MULTICAST_ERROR = 13;
    RDMA_CM_EVENT_TIMEWAIT_EXIT = 15;
    RDMA_CM_JOIN_MC_ATTR_ADDRESS = 1;
    RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS = 2;
    RDMA_MC_JOIN_FLAG_FULLMEMBER = 0;
    RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER = 1;
    RDMA_PS_TCP = 0x106;
    RDMA_PS_UDP = 0x111;
    RDMA_OPTION_ID = 0;
    RDMA_OPTION_IB = 1;
    RDMA_OPTION_ID_TOS = 0;
    RDMA_OPTION_ID_REUSEADDR = 1;
    RDMA_OPTION_ID_AFONLY = 2;
    RDMA_OPTION_ID_ACK_TIMEOUT = 3;
    RAI_PASSIVE = 1;
    RAI_NUMERICHOST = 2;
}

// Of rdma-core from 45 on; the installed headers may be older, so no test can ask them.
/// Access right: FLUSH with global placement.
pub const IBV_ACCESS_FLUSH_GLOBAL: c_uint = 1 << 8;
/// Access right: FLUSH with persistence. Queue pairs may have it, for programs set both; the card grants none.
pub const IBV_ACCESS_FLUSH_PERSISTENT: c_uint = 1 << 9;
/// Operation of `ibv_wr_flush`.
pub const IBV_QP_EX_WITH_FLUSH: c_uint = 1 << 11;
/// Work request.
pub const IBV_WR_FLUSH: c_uint = 14;
/// Its completion.
pub const IBV_WC_FLUSH: c_uint = 8;
/// Placement types of `ibv_wr_flush`.
pub const IBV_FLUSH_GLOBAL: u8 = 1;
/// See [`IBV_FLUSH_GLOBAL`].
pub const IBV_FLUSH_PERSISTENT: u8 = 2;
/// Selectivity levels of `ibv_wr_flush`.
pub const IBV_FLUSH_RANGE: u8 = 0;
/// See [`IBV_FLUSH_RANGE`].
pub const IBV_FLUSH_MR: u8 = 1;
/// Capabilities in `device_cap_flags_ex` (kernel: `ib_uverbs_device_cap_flags`).
pub const IB_UVERBS_DEVICE_FLUSH_GLOBAL: u64 = 1 << 38;
/// See [`IB_UVERBS_DEVICE_FLUSH_GLOBAL`].
pub const IB_UVERBS_DEVICE_ATOMIC_WRITE: u64 = 1 << 40;
