//! libibverbs: calls in any order with any arguments, over a card that does what the fuzzer says. Handles are those of objects that exist, as the
//! interface demands; everything else is any number. At the end all goes in the order in which it may, and nothing may be left.
use crate::card::Card;
use crate::program::*;
use arbitrary::{Arbitrary, Unstructured};
use ferric_abi::host::Cqe;
use ferric_verbs::abi::attr::*;
use ferric_verbs::abi::objects::*;
use ferric_verbs::abi::wr::*;
use ferric_verbs::MODELS;
use std::ffi::c_void;
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::{Arc, OnceLock};

#[derive(Arbitrary, Debug)]
enum Call {
    AllocPd,
    DeallocPd(u8),
    RegMr {
        pd: u8,
        offset: u16,
        length: u16,
        iova: Option<u64>,
        access: u32,
    },
    DeregMr(u8),
    Channel,
    DestroyChannel(u8),
    CreateCq {
        cqe: i8,
        wild: Option<i32>,
        channel: Option<u8>,
        vector: u8,
        extended: Option<u64>,
    },
    ResizeCq(u8, i32),
    DestroyCq(u8),
    CreateSrq {
        pd: u8,
        wr: u8,
        wild: Option<u32>,
        sge: u8,
    },
    ModifySrq(u8, u32, u8),
    DestroySrq(u8),
    CreateQp {
        pd: u8,
        send: u8,
        recv: u8,
        srq: Option<u8>,
        kind: u8,
        cap: [u8; 5],
        wild: Option<u32>,
        all: bool,
        extended: Option<u32>,
    },
    /// On to the next state with the attributes it wants.
    Onwards(u8),
    ModifyQp {
        qp: u8,
        mask: u32,
        state: u8,
        words: [u32; 4],
        bytes: [u8; 12],
    },
    QueryQp(u8),
    DestroyQp(u8),
    CreateAh {
        pd: u8,
        port: u8,
        global: u8,
        index: u8,
        gid: [u8; 16],
    },
    FromWc {
        wc: [u8; 8],
        grh: [u8; 40],
    },
    DestroyAh(u8),
    Send {
        qp: u8,
        wrs: Vec<Request>,
    },
    Recv {
        qp: u8,
        wrs: Vec<Request>,
    },
    SrqRecv {
        srq: u8,
        wrs: Vec<Request>,
    },
    Build {
        qp: u8,
        wrs: Vec<Request>,
        abort: bool,
    },
    Poll {
        cq: u8,
        n: i8,
    },
    PollEx {
        cq: u8,
        n: u8,
    },
    Notify {
        cq: u8,
        solicited: u8,
    },
    Events,
    Completion {
        cq: u8,
        content: [u8; Cqe::BYTES],
    },
    Event {
        kind: u8,
        id: u8,
    },
}

/// What lives as long as the process.
struct Place {
    card: Arc<Card>,
    device: *mut Device,
    /// It keeps the card open.
    _context: *mut Context,
    arena: usize,
}

// The device and the context are made for any thread.
unsafe impl Send for Place {}
unsafe impl Sync for Place {}

fn place() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    static MODEL: OnceLock<Arc<Card>> = OnceLock::new();
    PLACE.get_or_init(|| {
        std::env::set_var("FERRIC_DEVICES", "a-model@10.0.0.1");
        let card = MODEL.get_or_init(|| Arc::new(Card::new())).clone();
        let _ = MODELS.set(|name| if name == "a-model" { MODEL.get().map(|m| m.clone() as _) } else { None });
        let arena = Box::leak(vec![0u8; ARENA].into_boxed_slice()).as_mut_ptr() as usize;
        // SAFETY: as the manual pages have it.
        unsafe {
            let list = ibv_get_device_list(null_mut());
            let device = *list;
            ibv_free_device_list(list);
            let context = ibv_open_device(device);
            assert!(!context.is_null());
            Place { card, device, _context: context, arena }
        }
    })
}

/// More would only be slow.
const MOST: usize = 8;

impl Program {
    unsafe fn call(&mut self, card: &Card, call: &Call) {
        // SAFETY: handles in use, memory that lives until the call is over.
        unsafe {
            match call {
                Call::AllocPd if self.pds.len() < MOST => keep(&mut self.pds, ibv_alloc_pd(self.context)),
                Call::DeallocPd(n) => end(&mut self.pds, *n, |pd| ibv_dealloc_pd(pd)),
                Call::RegMr { pd, offset, length, iova, access } if self.mrs.len() < MOST => {
                    let Some(pd) = one(&self.pds, *pd) else { return };
                    let length = usize::from(*length) % (ARENA - usize::from(*offset));
                    let addr = self.arena + usize::from(*offset);
                    keep(&mut self.mrs, ibv_reg_mr_iova2(pd, addr as *mut c_void, length, iova.unwrap_or(addr as u64), *access));
                }
                Call::DeregMr(n) => end(&mut self.mrs, *n, |mr| ibv_dereg_mr(mr)),
                Call::Channel if self.channels.len() < MOST => {
                    let made = ibv_create_comp_channel(self.context);
                    non_blocking((*made).fd);
                    self.channels.push(made);
                }
                Call::DestroyChannel(n) => end(&mut self.channels, *n, |c| ibv_destroy_comp_channel(c)),
                Call::CreateCq { cqe, wild, channel, vector, extended } if self.cqs.len() < MOST => self.create_cq(*cqe, *wild, *channel, *vector, *extended),
                Call::ResizeCq(n, cqe) => drop(one(&self.cqs, *n).map(|(cq, _)| ibv_resize_cq(cq, *cqe))),
                Call::DestroyCq(n) => end(&mut self.cqs, *n, |(cq, _)| ibv_destroy_cq(cq)),
                Call::CreateSrq { pd, wr, wild, sge } if self.srqs.len() < MOST => {
                    let Some(pd) = one(&self.pds, *pd) else { return };
                    let attr = SrqAttr { max_wr: wild.map_or((*wr).into(), |w| w | 1 << 20), max_sge: (*sge).into(), srq_limit: 1 };
                    keep(&mut self.srqs, ibv_create_srq(pd, &mut SrqInitAttr { srq_context: null_mut(), attr }));
                }
                Call::ModifySrq(n, limit, mask) => {
                    let Some(srq) = one(&self.srqs, *n) else { return };
                    let mut attr = SrqAttr { max_wr: 1, max_sge: 1, srq_limit: *limit };
                    ibv_modify_srq(srq, &mut attr, (*mask).into());
                    ibv_query_srq(srq, &mut attr);
                }
                Call::DestroySrq(n) => end(&mut self.srqs, *n, |srq| ibv_destroy_srq(srq)),
                Call::CreateQp { pd, send, recv, srq, kind, cap, wild, all, extended } if self.qps.len() < MOST => {
                    let (Some(pd), Some((send_cq, _)), Some((recv_cq, _))) = (one(&self.pds, *pd), one(&self.cqs, *send), one(&self.cqs, *recv)) else { return };
                    let [a, b, c, d, e] = cap.map(u32::from);
                    // Queues that are too large, not large ones: those only take memory.
                    let cap = QpCap { max_send_wr: wild.map_or(a, |w| w | 1 << 20), max_recv_wr: b, max_send_sge: c % 40, max_recv_sge: d % 40, max_inline_data: e * 3 };
                    let srq = srq.and_then(|n| one(&self.srqs, n)).unwrap_or(null_mut());
                    let init = QpInitAttr { qp_context: null_mut(), send_cq, recv_cq, srq, cap, qp_type: 1 + u32::from(kind % 5), sq_sig_all: (*all).into() };
                    self.create_qp(pd, init, *extended);
                }
                Call::Onwards(n) => drop(one(&self.qps, *n).map(|(qp, _)| self.onwards(qp))),
                Call::ModifyQp { qp, mask, state, words, bytes } => {
                    let Some((qp, _)) = one(&self.qps, *qp) else { return };
                    let [a, b, c, d] = *words;
                    let [mtu, port, rd, dest_rd, rnr, timeout, retry, rnr_retry, global, index, key, hop] = *bytes;
                    let grh = GlobalRoute { sgid_index: index, hop_limit: hop, flow_label: a, ..Default::default() };
                    let mut attr = QpAttr {
                        qp_state: (state % 8).into(),
                        cur_qp_state: (state >> 4).into(),
                        path_mtu: mtu.into(),
                        qkey: a,
                        rq_psn: b,
                        sq_psn: c,
                        dest_qp_num: d,
                        qp_access_flags: b,
                        ah_attr: AhAttr { grh, is_global: global, port_num: port, ..Default::default() },
                        pkey_index: key.into(),
                        max_rd_atomic: rd,
                        max_dest_rd_atomic: dest_rd,
                        min_rnr_timer: rnr,
                        port_num: port,
                        timeout,
                        retry_cnt: retry,
                        rnr_retry,
                        ..Default::default()
                    };
                    ibv_modify_qp(qp, &mut attr, *mask as i32);
                }
                Call::QueryQp(n) => {
                    let Some((qp, _)) = one(&self.qps, *n) else { return };
                    let mut init: QpInitAttr = zeroed();
                    ibv_query_qp(qp, &mut QpAttr::default(), 1, &mut init);
                }
                Call::DestroyQp(n) => end(&mut self.qps, *n, |(qp, _)| ibv_destroy_qp(qp)),
                Call::CreateAh { pd, port, global, index, gid } if self.ahs.len() < MOST => {
                    let Some(pd) = one(&self.pds, *pd) else { return };
                    let grh = GlobalRoute { dgid: GidWords(*gid), sgid_index: index / 128, ..Default::default() };
                    keep(&mut self.ahs, ibv_create_ah(pd, &mut AhAttr { grh, is_global: global & 1, port_num: port & 3, ..Default::default() }));
                }
                Call::FromWc { wc, grh } => {
                    let mut wc = Wc { wc_flags: wc[0].into(), src_qp: wc[1].into(), ..Default::default() };
                    ibv_init_ah_from_wc(self.context, 1, &mut wc, grh.as_ptr().cast_mut().cast(), &mut AhAttr::default());
                }
                Call::DestroyAh(n) => end(&mut self.ahs, *n, |ah| ibv_destroy_ah(ah)),
                Call::Send { qp, wrs } => drop(one(&self.qps, *qp).map(|(qp, _)| self.send(qp, wrs))),
                Call::Recv { qp, wrs } => {
                    let Some((qp, _)) = one(&self.qps, *qp) else { return };
                    let post = (*self.context).ops.post_recv.expect("in the table");
                    self.receives(wrs, |wr, bad| post(qp, wr, bad));
                }
                Call::SrqRecv { srq, wrs } => {
                    let Some(srq) = one(&self.srqs, *srq) else { return };
                    let post = (*self.context).ops.post_srq_recv.expect("in the table");
                    self.receives(wrs, |wr, bad| post(srq, wr, bad));
                }
                Call::Build { qp, wrs, abort } => {
                    if let Some((qp, true)) = one(&self.qps, *qp) {
                        self.build(qp, wrs, *abort);
                    }
                }
                Call::Poll { cq, n } => {
                    let Some((cq, _)) = one(&self.cqs, *cq) else { return };
                    let mut wc = [Wc::default(); 16];
                    let n = i32::from(*n).min(16);
                    let got = ((*self.context).ops.poll_cq.expect("in the table"))(cq, n, wc.as_mut_ptr());
                    assert!((0..=n.max(0)).contains(&got));
                }
                Call::PollEx { cq, n } => {
                    if let Some((cq, true)) = one(&self.cqs, *cq) {
                        self.poll_ex(cq.cast(), *n);
                    }
                }
                Call::Notify { cq, solicited } => {
                    let notify = (*self.context).ops.req_notify_cq.expect("in the table");
                    let Some((cq, _)) = one(&self.cqs, *cq) else { return };
                    notify(cq, (*solicited).into());
                }
                Call::Events => self.events(),
                Call::Completion { cq, content } => card.completion((*cq).into(), *content),
                Call::Event { kind, id } => card.event(*kind, (*id).into()),
                // There are enough of them.
                _ => {}
            }
        }
    }
}

/// One input.
pub fn run(data: &[u8]) {
    let Place { card, device, arena, .. } = place();
    let mut input = Unstructured::new(data);
    let Ok((fates, calls)) = <(Vec<u8>, Vec<Call>)>::arbitrary(&mut input) else { return };
    card.fates(fates);
    // SAFETY: the device lives as long as the process.
    unsafe {
        let context = ibv_open_device(*device);
        assert!(!context.is_null());
        non_blocking((*context).async_fd);
        let mut p = Program { context, arena: *arena, pds: vec![], mrs: vec![], channels: vec![], cqs: vec![], srqs: vec![], qps: vec![], ahs: vec![] };
        calls.iter().take(64).for_each(|c| p.call(card, c));
        // Nothing may refuse to go now, and no event holds anything back.
        card.fates(Vec::new());
        p.events();
        let all = [
            p.ahs.into_iter().map(|x| ibv_destroy_ah(x)).sum::<i32>(),
            p.qps.into_iter().map(|x| ibv_destroy_qp(x.0)).sum(),
            p.srqs.into_iter().map(|x| ibv_destroy_srq(x)).sum(),
            p.cqs.into_iter().map(|x| ibv_destroy_cq(x.0)).sum(),
            p.channels.into_iter().map(|x| ibv_destroy_comp_channel(x)).sum(),
            p.mrs.into_iter().map(|x| ibv_dereg_mr(x)).sum(),
            p.pds.into_iter().map(|x| ibv_dealloc_pd(x)).sum(),
            ibv_close_device(context),
        ];
        assert_eq!(all, [0; 8], "something has not gone");
    }
}
