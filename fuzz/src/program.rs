//! What a program of libibverbs has, and its calls of several steps.
#![allow(missing_docs)]
// What the functions are given is alive: the rules of the manual pages, as in the library itself.
#![allow(clippy::missing_safety_doc)]
use arbitrary::Arbitrary;
use ferric_verbs::abi::attr::*;
use ferric_verbs::abi::consts::*;
use ferric_verbs::abi::objects::*;
use ferric_verbs::abi::wr::*;
use std::ffi::{c_int, c_void};
use std::mem::{offset_of, zeroed};
use std::ptr::{null_mut, NonNull};

extern "C" {
    pub fn ibv_get_device_list(n: *mut c_int) -> *mut *mut Device;
    pub fn ibv_free_device_list(list: *mut *mut Device);
    pub fn ibv_open_device(device: *mut Device) -> *mut Context;
    pub fn ibv_close_device(context: *mut Context) -> c_int;
    pub fn ibv_alloc_pd(context: *mut Context) -> *mut Pd;
    pub fn ibv_dealloc_pd(pd: *mut Pd) -> c_int;
    pub fn ibv_reg_mr_iova2(pd: *mut Pd, addr: *mut c_void, length: usize, iova: u64, access: u32) -> *mut Mr;
    pub fn ibv_dereg_mr(mr: *mut Mr) -> c_int;
    pub fn ibv_create_comp_channel(context: *mut Context) -> *mut CompChannel;
    pub fn ibv_destroy_comp_channel(channel: *mut CompChannel) -> c_int;
    pub fn ibv_get_cq_event(channel: *mut CompChannel, cq: *mut *mut Cq, context: *mut *mut c_void) -> c_int;
    pub fn ibv_ack_cq_events(cq: *mut Cq, n: u32);
    pub fn ibv_create_cq(context: *mut Context, cqe: c_int, cq_context: *mut c_void, channel: *mut CompChannel, vector: c_int) -> *mut Cq;
    pub fn ibv_resize_cq(cq: *mut Cq, cqe: c_int) -> c_int;
    pub fn ibv_destroy_cq(cq: *mut Cq) -> c_int;
    pub fn ibv_create_srq(pd: *mut Pd, init: *mut SrqInitAttr) -> *mut Srq;
    pub fn ibv_modify_srq(srq: *mut Srq, attr: *mut SrqAttr, mask: c_int) -> c_int;
    pub fn ibv_query_srq(srq: *mut Srq, attr: *mut SrqAttr) -> c_int;
    pub fn ibv_destroy_srq(srq: *mut Srq) -> c_int;
    pub fn ibv_create_qp(pd: *mut Pd, init: *mut QpInitAttr) -> *mut Qp;
    pub fn ibv_modify_qp(qp: *mut Qp, attr: *mut QpAttr, mask: c_int) -> c_int;
    pub fn ibv_query_qp(qp: *mut Qp, attr: *mut QpAttr, mask: c_int, init: *mut QpInitAttr) -> c_int;
    pub fn ibv_destroy_qp(qp: *mut Qp) -> c_int;
    pub fn ibv_create_ah(pd: *mut Pd, attr: *mut AhAttr) -> *mut Ah;
    pub fn ibv_init_ah_from_wc(context: *mut Context, port: u8, wc: *mut Wc, grh: *mut Grh, attr: *mut AhAttr) -> c_int;
    pub fn ibv_destroy_ah(ah: *mut Ah) -> c_int;
    pub fn ibv_get_async_event(context: *mut Context, event: *mut AsyncEvent) -> c_int;
    pub fn ibv_ack_async_event(event: *mut AsyncEvent);
}

/// A work request of any content.
#[derive(Arbitrary, Debug)]
pub struct Request {
    wr_id: u8,
    opcode: u8,
    flags: u8,
    wild: Option<u32>,
    num_sge: Option<i32>,
    sges: Vec<(u32, u16, u32)>,
    ah: Option<u8>,
    remote: (u64, u32),
}

/// Memory of the program's, behind every address that is read.
pub const ARENA: usize = 1 << 16;

/// One of `list`, if there is one.
pub fn one<T: Copy>(list: &[T], n: u8) -> Option<T> {
    list.get(usize::from(n) % list.len().max(1)).copied()
}

/// Takes one out if `destroy` says that it has gone.
pub fn end<T: Copy>(list: &mut Vec<T>, n: u8, destroy: impl FnOnce(T) -> c_int) {
    if list.is_empty() {
        return;
    }
    let at = usize::from(n) % list.len();
    if destroy(list[at]) == 0 {
        list.swap_remove(at);
    }
}

/// What a program has.
pub struct Program {
    pub context: *mut Context,
    pub arena: usize,
    pub pds: Vec<*mut Pd>,
    pub mrs: Vec<*mut Mr>,
    pub channels: Vec<*mut CompChannel>,
    /// And whether it is an extended one.
    pub cqs: Vec<(*mut Cq, bool)>,
    pub srqs: Vec<*mut Srq>,
    pub qps: Vec<(*mut Qp, bool)>,
    pub ahs: Vec<*mut Ah>,
}

pub fn keep<T>(list: &mut Vec<*mut T>, made: *mut T) {
    list.extend(NonNull::new(made).map(NonNull::as_ptr));
}

pub fn non_blocking(fd: c_int) {
    // SAFETY: a descriptor of ours.
    unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) };
}

impl Program {
    /// The scatter/gather entries of a request: what is inline is memory of ours, everything else the card's business.
    fn sges(&self, r: &Request) -> Vec<Sge> {
        let inline = u32::from(r.flags) & IBV_SEND_INLINE != 0;
        r.sges
            .iter()
            .take(40)
            .map(|(addr, length, lkey)| {
                let inside = (*addr as usize) % (ARENA / 2);
                let addr = if inline { (self.arena + inside) as u64 } else { u64::from(*addr) << 20 | u64::from(*length) };
                let length = if inline { u32::from(*length) % (ARENA as u32 / 2) } else { u32::from(*length) << (lkey & 15) };
                Sge { addr, length, lkey: *lkey }
            })
            .collect()
    }

    /// As many as there are, or fewer, or a number below zero.
    fn count(r: &Request, sges: &[Sge]) -> c_int {
        r.num_sge.map_or(sges.len() as c_int, |n| n.min(sges.len() as c_int))
    }

    fn kind(&self, r: &Request, datagrams: bool) -> WrKind {
        let (remote_addr, rkey) = r.remote;
        if datagrams {
            let ah = r.ah.and_then(|n| one(&self.ahs, n)).unwrap_or(null_mut());
            return WrKind { ud: WrUd { ah, remote_qpn: rkey, remote_qkey: remote_addr as u32 } };
        }
        // All of it is something, whatever the operation makes of it.
        let mut kind = WrKind { atomic: WrAtomic { remote_addr, compare_add: 1, swap: 2, rkey } };
        if r.opcode % 12 != 5 && r.opcode % 12 != 6 {
            kind.rdma = WrRdma { remote_addr, rkey };
        }
        kind
    }

    pub unsafe fn send(&self, qp: *mut Qp, requests: &[Request]) {
        // SAFETY: a queue pair in use; lists that live until the call is over.
        unsafe {
            let datagrams = (*qp).qp_type == IBV_QPT_UD;
            let mut lists: Vec<Vec<Sge>> = requests.iter().take(8).map(|r| self.sges(r)).collect();
            let mut wrs: Vec<SendWr> = requests
                .iter()
                .zip(&mut lists)
                .map(|(r, list)| SendWr {
                    wr_id: r.wr_id.into(),
                    next: null_mut(),
                    sg_list: list.as_mut_ptr(),
                    num_sge: Self::count(r, list),
                    opcode: r.wild.unwrap_or((r.opcode % 12).into()),
                    send_flags: r.flags.into(),
                    imm_data: r.remote.1,
                    wr: self.kind(r, datagrams),
                    qp_type: 0,
                    bind_mw: WrBind::NONE,
                })
                .collect();
            let base = wrs.as_mut_ptr();
            for i in 1..wrs.len() {
                (*base.add(i - 1)).next = base.add(i);
            }
            let mut bad = null_mut();
            let post = (*self.context).ops.post_send.expect("in the table");
            let refused = post(qp, if wrs.is_empty() { null_mut() } else { base }, &mut bad);
            assert!((refused == 0) == bad.is_null(), "the request that was refused is named");
        }
    }

    pub unsafe fn receives(&self, requests: &[Request], post: impl FnOnce(*mut RecvWr, *mut *mut RecvWr) -> c_int) {
        let mut lists: Vec<Vec<Sge>> = requests.iter().take(8).map(|r| self.sges(r)).collect();
        let mut wrs: Vec<RecvWr> =
            requests.iter().zip(&mut lists).map(|(r, list)| RecvWr { wr_id: r.wr_id.into(), next: null_mut(), sg_list: list.as_mut_ptr(), num_sge: Self::count(r, list) }).collect();
        let base = wrs.as_mut_ptr();
        for i in 1..wrs.len() {
            // SAFETY: inside the list.
            unsafe { (*base.add(i - 1)).next = base.add(i) };
        }
        let mut bad = null_mut();
        let refused = post(if wrs.is_empty() { null_mut() } else { base }, &mut bad);
        assert!((refused == 0) == bad.is_null(), "the request that was refused is named");
    }

    /// Requests call by call.
    pub unsafe fn build(&self, qp: *mut Qp, requests: &[Request], abort: bool) {
        let ex = qp.cast::<QpEx>();
        // SAFETY: an extended queue pair in use, and the order of calls that it wants.
        unsafe {
            let q = *ex;
            (q.wr_start.expect("there"))(ex);
            for r in requests.iter().take(8) {
                ((*ex).wr_id, (*ex).wr_flags) = (r.wr_id.into(), r.flags.into());
                let (remote_addr, rkey) = r.remote;
                match r.opcode % 8 {
                    0 => (q.wr_rdma_write.expect("there"))(ex, rkey, remote_addr),
                    1 => (q.wr_rdma_write_imm.expect("there"))(ex, rkey, remote_addr, 1),
                    2 => (q.wr_send.expect("there"))(ex),
                    3 => (q.wr_send_imm.expect("there"))(ex, 1),
                    4 => (q.wr_rdma_read.expect("there"))(ex, rkey, remote_addr),
                    5 => (q.wr_atomic_cmp_swp.expect("there"))(ex, rkey, remote_addr, 1, 2),
                    6 => (q.wr_atomic_fetch_add.expect("there"))(ex, rkey, remote_addr, 1),
                    _ => (q.wr_send_inv.expect("there"))(ex, rkey),
                }
                // Of datagrams only: for others what it sets is used as an address.
                if let (Some(ah), IBV_QPT_UD) = (r.ah.and_then(|n| one(&self.ahs, n)), q.qp_base.qp_type) {
                    (q.wr_set_ud_addr.expect("there"))(ex, ah, rkey, 0);
                }
                let list = self.sges(r);
                if u32::from(r.flags) & IBV_SEND_INLINE != 0 {
                    let buffers: Vec<DataBuf> = list.iter().map(|s| DataBuf { addr: s.addr as *mut c_void, length: s.length as usize }).collect();
                    (q.wr_set_inline_data_list.expect("there"))(ex, buffers.len(), buffers.as_ptr());
                } else {
                    (q.wr_set_sge_list.expect("there"))(ex, list.len(), list.as_ptr());
                }
            }
            if abort {
                (q.wr_abort.expect("there"))(ex);
            } else {
                (q.wr_complete.expect("there"))(ex);
            }
        }
    }

    pub unsafe fn onwards(&self, qp: *mut Qp) {
        // SAFETY: a queue pair in use.
        unsafe {
            let (kind, state) = ((*qp).qp_type, (*qp).state);
            let (rc, ud) = (kind == IBV_QPT_RC, kind == IBV_QPT_UD);
            let mut gid = [0; 16];
            gid[10..].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 2]);
            let grh = GlobalRoute { dgid: GidWords(gid), hop_limit: 64, ..Default::default() };
            let mut a = QpAttr { port_num: 1, path_mtu: 3, timeout: 14, ah_attr: AhAttr { grh, is_global: 1, port_num: 1, ..Default::default() }, ..Default::default() };
            let mask = match state {
                IBV_QPS_RESET => {
                    a.qp_state = IBV_QPS_INIT;
                    IBV_QP_PKEY_INDEX | IBV_QP_PORT | if ud { IBV_QP_QKEY } else { IBV_QP_ACCESS_FLAGS }
                }
                IBV_QPS_INIT => {
                    a.qp_state = IBV_QPS_RTR;
                    let more = if rc { IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER } else { 0 };
                    if ud {
                        0
                    } else {
                        IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | more
                    }
                }
                IBV_QPS_RTR => {
                    a.qp_state = IBV_QPS_RTS;
                    IBV_QP_SQ_PSN | if rc { IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC } else { 0 }
                }
                _ => 0,
            };
            ibv_modify_qp(qp, &mut a, (mask | IBV_QP_STATE) as c_int);
        }
    }

    pub unsafe fn events(&mut self) {
        // SAFETY: what is got is given back at once, so that what it is about may go.
        unsafe {
            let mut event: AsyncEvent = zeroed();
            while ibv_get_async_event(self.context, &mut event) == 0 {
                ibv_ack_async_event(&mut event);
            }
            for channel in &self.channels {
                let (mut cq, mut of) = (null_mut(), null_mut());
                while ibv_get_cq_event(*channel, &mut cq, &mut of) == 0 {
                    ibv_ack_cq_events(cq, 1);
                }
            }
        }
    }

    pub unsafe fn create_cq(&mut self, cqe: i8, wild: Option<i32>, channel: Option<u8>, vector: u8, extended: Option<u64>) {
        let channel = channel.and_then(|n| one(&self.channels, n)).unwrap_or(null_mut());
        let cqe = wild.map_or(cqe.into(), |w| w | 1 << 20);
        let vector = u32::from(vector / 200);
        // SAFETY: handles in use.
        let made = unsafe {
            match extended {
                None => ibv_create_cq(self.context, cqe, null_mut(), channel, vector as c_int),
                Some(flags) => {
                    let mut attr: CqInitAttrEx = zeroed();
                    (attr.cqe, attr.channel, attr.comp_vector, attr.wc_flags, attr.comp_mask) = (cqe as u32, channel, vector, flags & 0x1ff, (flags >> 60) as u32);
                    let verbs = self.context.byte_sub(offset_of!(VerbsContext, context)).cast::<VerbsContext>();
                    ((*verbs).create_cq_ex.expect("in the table"))(self.context, &mut attr).cast()
                }
            }
        };
        self.cqs.extend(NonNull::new(made).map(|cq| (cq.as_ptr(), extended.is_some())));
    }

    pub unsafe fn create_qp(&mut self, pd: *mut Pd, mut init: QpInitAttr, extended: Option<u32>) {
        // SAFETY: handles in use.
        let made = unsafe {
            match extended {
                None => ibv_create_qp(pd, &mut init),
                Some(ops) => {
                    let mut attr: QpInitAttrEx = zeroed();
                    (attr.send_cq, attr.recv_cq, attr.srq, attr.cap, attr.qp_type, attr.pd) = (init.send_cq, init.recv_cq, init.srq, init.cap, init.qp_type, pd);
                    (attr.comp_mask, attr.send_ops_flags) = (IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, u64::from((ops % 1024) & !0x180));
                    let verbs = self.context.byte_sub(offset_of!(VerbsContext, context)).cast::<VerbsContext>();
                    ((*verbs).create_qp_ex.expect("in the table"))(self.context, &mut attr)
                }
            }
        };
        self.qps.extend(NonNull::new(made).map(|qp| (qp.as_ptr(), extended.is_some())));
    }

    pub unsafe fn poll_ex(&self, cq: *mut CqEx, n: u8) {
        // SAFETY: an extended completion queue in use, and the order of calls that it wants.
        unsafe {
            let c = *cq;
            let mut attr = [0u32; 2];
            if (c.start_poll.expect("there"))(cq, attr.as_mut_ptr().cast()) != 0 {
                return;
            }
            for _ in 0..n % 16 {
                (c.read_opcode.expect("there"))(cq);
                (c.read_imm_data.expect("there"))(cq);
                (c.read_wc_flags.expect("there"))(cq);
                (c.read_completion_ts.expect("there"))(cq);
                if (c.next_poll.expect("there"))(cq) != 0 {
                    break;
                }
            }
            (c.end_poll.expect("there"))(cq);
        }
    }
}
