//! libibverbs called as a C program calls it, over a card that is only memory: what the calls promise.
use ferric_abi::csr;
use ferric_fuzz::card::Card;
use ferric_fuzz::program::*;
use ferric_verbs::abi::attr::*;
use ferric_verbs::abi::consts::*;
use ferric_verbs::abi::objects::*;
use ferric_verbs::abi::wr::*;
use ferric_verbs::MODELS;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::mem::{offset_of, zeroed};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, OnceLock};

extern "C" {
    fn ibv_reg_mr(pd: *mut Pd, addr: *mut c_void, length: usize, access: c_int) -> *mut Mr;
    fn ibv_query_device(context: *mut Context, attr: *mut DeviceAttr) -> c_int;
    fn _ibv_query_gid_table(context: *mut Context, entries: *mut GidEntry, max: usize, flags: u32, size: usize) -> isize;
}

thread_local! { static ALLOCATIONS: Cell<u64> = const { Cell::new(0) }; }

/// Counts what each thread allocates.
struct Counting;
// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// A card of its own for each test, with a completion queue and a domain.
struct Place {
    card: Arc<Card>,
    context: *mut Context,
    pd: *mut Pd,
    cq: *mut CqEx,
    memory: Vec<u8>,
}

impl Place {
    fn new(n: usize) -> Self {
        static CARDS: OnceLock<Mutex<HashMap<String, Arc<Card>>>> = OnceLock::new();
        static SET: OnceLock<()> = OnceLock::new();
        SET.get_or_init(|| {
            std::env::set_var("FERRIC_DEVICES", (0..16).map(|n| format!("model{n}@10.0.0.{}", n + 1)).collect::<Vec<_>>().join(","));
            let _ = MODELS.set(|name| Some(CARDS.get_or_init(Mutex::default).lock().unwrap().entry(name.into()).or_insert_with(|| Arc::new(Card::new())).clone()));
        });
        // SAFETY: as the manual pages have it.
        unsafe {
            let list = ibv_get_device_list(null_mut());
            let context = ibv_open_device(*list.add(n));
            ibv_free_device_list(list);
            assert!(!context.is_null());
            let mut attr: CqInitAttrEx = zeroed();
            attr.cqe = 1024;
            let verbs = context.byte_sub(offset_of!(VerbsContext, context)).cast::<VerbsContext>();
            let cq = ((*verbs).create_cq_ex.unwrap())(context, &mut attr);
            let card = CARDS.get().unwrap().lock().unwrap()[&format!("model{n}")].clone();
            Self { card, context, pd: ibv_alloc_pd(context), cq, memory: vec![0; 1 << 16] }
        }
    }

    fn init(&self, kind: u32, cap: QpCap) -> QpInitAttr {
        QpInitAttr { qp_context: null_mut(), send_cq: self.cq.cast(), recv_cq: self.cq.cast(), srq: null_mut(), cap, qp_type: kind, sq_sig_all: 1 }
    }

    /// An extended queue pair that may send, and what it can.
    fn ready(&self, kind: u32, cap: QpCap) -> (*mut Qp, QpCap) {
        // SAFETY: handles in use.
        unsafe {
            let (init, mut attr) = (self.init(kind, cap), zeroed::<QpInitAttrEx>());
            (attr.send_cq, attr.recv_cq, attr.cap, attr.qp_type, attr.pd, attr.sq_sig_all) = (init.send_cq, init.recv_cq, init.cap, kind, self.pd, 1);
            let sends = IBV_QP_EX_WITH_SEND | if kind == IBV_QPT_UD { 0 } else { IBV_QP_EX_WITH_RDMA_WRITE };
            (attr.comp_mask, attr.send_ops_flags) = (IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, sends.into());
            let verbs = self.context.byte_sub(offset_of!(VerbsContext, context)).cast::<VerbsContext>();
            let qp = ((*verbs).create_qp_ex.unwrap())(self.context, &mut attr);
            assert!(!qp.is_null());
            self.start(qp);
            (qp, attr.cap)
        }
    }

    /// RESET to RTS.
    fn start(&self, qp: *mut Qp) {
        let p = Program { context: self.context, arena: 0, pds: vec![], mrs: vec![], channels: vec![], cqs: vec![], srqs: vec![], qps: vec![], ahs: vec![] };
        // SAFETY: a queue pair in use.
        unsafe {
            (0..3).for_each(|_| p.onwards(qp));
            assert_eq!((*qp).state, IBV_QPS_RTS);
        }
    }

    fn modify(&self, qp: *mut Qp, state: u32) -> c_int {
        // SAFETY: a queue pair in use.
        unsafe { ibv_modify_qp(qp, &mut QpAttr { qp_state: state, ..Default::default() }, IBV_QP_STATE as c_int) }
    }

    /// Numbers and states of what is complete.
    fn poll(&self) -> Vec<(u64, u32)> {
        let mut wc = [Wc::default(); 128];
        // SAFETY: room for as many.
        let n = unsafe { ((*self.context).ops.poll_cq.unwrap())(self.cq.cast(), 128, wc.as_mut_ptr()) };
        wc[..n as usize].iter().map(|w| (w.wr_id, w.status)).collect()
    }

    fn rung(&self) -> u64 {
        self.card.bells(csr::DB_SQ) + self.card.bells(csr::DB_WQE)
    }

    fn sge(&self, length: usize) -> Sge {
        Sge { addr: self.memory.as_ptr() as u64, length: length as u32, lkey: 1 }
    }

    /// Posts WRITEs (datagrams: SENDs) with so many entries, or so many bytes inline; the error number, and how many were posted.
    fn post(&self, qp: *mut Qp, requests: &[(usize, usize)], to: *mut Ah) -> (c_int, usize) {
        // SAFETY: a queue pair in use; lists that live until the call is over.
        unsafe {
            let ud = (*qp).qp_type == IBV_QPT_UD;
            let kind = if ud { WrKind { ud: WrUd { ah: to, remote_qpn: 2, remote_qkey: 0 } } } else { WrKind { rdma: WrRdma { remote_addr: 0, rkey: 0 } } };
            let mut lists: Vec<Vec<Sge>> = requests.iter().map(|(entries, inline)| if *inline > 0 { vec![self.sge(*inline)] } else { vec![self.sge(8); *entries] }).collect();
            let mut wrs: Vec<SendWr> = requests
                .iter()
                .zip(&mut lists)
                .enumerate()
                .map(|(n, ((_, inline), list))| SendWr {
                    wr_id: n as u64,
                    next: null_mut(),
                    sg_list: list.as_mut_ptr(),
                    num_sge: list.len() as c_int,
                    opcode: if ud { IBV_WR_SEND } else { IBV_WR_RDMA_WRITE },
                    send_flags: if *inline > 0 { IBV_SEND_INLINE } else { 0 },
                    imm_data: 0,
                    wr: kind,
                    qp_type: 0,
                    bind_mw: WrBind::NONE,
                })
                .collect();
            let base = wrs.as_mut_ptr();
            (1..wrs.len()).for_each(|i| (*base.add(i - 1)).next = base.add(i));
            let mut bad = null_mut();
            let n = ((*self.context).ops.post_send.unwrap())(qp, base, &mut bad);
            (n, if n == 0 { wrs.len() } else { bad.offset_from(base) as usize })
        }
    }

    /// The same by `ibv_wr_*`; `None`: given up.
    fn build(&self, qp: *mut Qp, requests: &[(usize, usize)], complete: bool) -> Option<c_int> {
        let ex = qp.cast::<QpEx>();
        // SAFETY: an extended queue pair in use, and the order of calls that it wants.
        unsafe {
            let q = *ex;
            (q.wr_start.unwrap())(ex);
            for (n, (entries, inline)) in requests.iter().enumerate() {
                ((*ex).wr_id, (*ex).wr_flags) = (n as u64, 0);
                (q.wr_rdma_write.unwrap())(ex, 0, 0);
                if *inline > 0 {
                    (q.wr_set_inline_data.unwrap())(ex, self.memory.as_ptr().cast_mut().cast(), *inline);
                } else if *entries == 1 {
                    (q.wr_set_sge.unwrap())(ex, 1, self.memory.as_ptr() as u64, 8);
                } else {
                    let list = vec![self.sge(8); *entries];
                    (q.wr_set_sge_list.unwrap())(ex, list.len(), list.as_ptr());
                }
            }
            if !complete {
                (q.wr_abort.unwrap())(ex);
                return None;
            }
            Some((q.wr_complete.unwrap())(ex))
        }
    }
}

const CAP: QpCap = QpCap { max_send_wr: 8, max_recv_wr: 8, max_send_sge: 2, max_recv_sge: 2, max_inline_data: 16 };

#[test]
fn a_batch_that_fails_posts_nothing() {
    let p = Place::new(0);
    let (qp, cap) = p.ready(IBV_QPT_RC, CAP);
    let (many, long) = (cap.max_send_sge as usize + 1, cap.max_inline_data as usize + 1);
    let full = vec![(1, 0); cap.max_send_wr as usize + 1];
    for (requests, n) in [
        (&[(many, 0), (1, 0), (1, 0)][..], libc::EINVAL),
        (&[(1, 0), (many, 0), (1, 0)], libc::EINVAL),
        (&[(1, 0), (1, 0), (0, long)], libc::EINVAL),
        (&[(0, 8), (0, usize::MAX), (1, 0)], libc::EINVAL),
        (&full[..], libc::ENOMEM),
    ] {
        let before = p.rung();
        assert_eq!(p.build(qp, requests, true), Some(n));
        assert_eq!((p.rung(), p.poll()), (before, vec![]), "something was posted");
        p.build(qp, &requests[..1], false);
        assert_eq!((p.rung(), p.poll()), (before, vec![]), "something was posted that was given up");
        // The queue is as it was: as much fits as before, all by one bell.
        assert_eq!(p.build(qp, &full[1..], true), Some(0));
        assert_eq!((p.rung(), p.poll()), (before + 1, (0..8).map(|n| (n, IBV_WC_SUCCESS)).collect()));
    }
}

#[test]
fn a_list_is_posted_up_to_the_one_that_is_refused_by_one_bell() {
    let p = Place::new(1);
    let (qp, cap) = p.ready(IBV_QPT_RC, CAP);
    let many = cap.max_send_sge as usize + 1;
    for (requests, (n, posted)) in [(&[(1, 0), (0, 8), (2, 0)][..], (0, 3)), (&[(1, 0), (1, 0), (many, 0), (1, 0)], (libc::EINVAL, 2)), (&[(many, 0), (1, 0)], (libc::EINVAL, 0))] {
        let before = p.rung();
        assert_eq!(p.post(qp, requests, null_mut()), (n, posted));
        assert_eq!(p.rung() - before, u64::from(posted > 0));
        assert_eq!(p.poll().len(), posted);
    }
}

#[test]
fn capabilities_are_what_fits() {
    let p = Place::new(2);
    let mut gid = [0; 16];
    gid[10..].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 2]);
    let grh = GlobalRoute { dgid: GidWords(gid), ..Default::default() };
    // SAFETY: a domain in use.
    let ah = unsafe { ibv_create_ah(p.pd, &mut AhAttr { grh, is_global: 1, port_num: 1, ..Default::default() }) };
    for kind in [IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD] {
        for (wr, sge, inline) in [(1, 1, 0), (3, 1, 33), (16, 5, 0), (5, 28, 400), (0, 0, 0)] {
            let asked = QpCap { max_send_wr: wr, max_recv_wr: wr, max_send_sge: sge, max_recv_sge: sge, max_inline_data: inline };
            let (qp, cap) = p.ready(kind, asked);
            assert!(cap.max_send_wr >= wr && cap.max_recv_wr >= wr && cap.max_send_sge >= sge && cap.max_recv_sge >= sge && cap.max_inline_data >= inline, "{cap:?}");
            // As `rdma_xclient` does, which asks for none.
            assert!(cap.max_inline_data >= 16, "{cap:?}");
            let (mut attr, mut init) = (QpAttr::default(), p.init(kind, asked));
            // SAFETY: a queue pair in use.
            unsafe { ibv_query_qp(qp, &mut attr, 0, &mut init) };
            assert_eq!((attr.cap, init.cap), (cap, cap));
            let (entries, bytes) = (cap.max_send_sge as usize, cap.max_inline_data as usize);
            assert_eq!(p.post(qp, &[(entries, 0), (0, bytes)][..cap.max_send_wr.min(2) as usize], ah).0, 0, "{kind}: {cap:?}");
            assert_eq!(p.post(qp, &[(entries + 1, 0)], ah).0, libc::EINVAL, "{kind}: {cap:?}");
            assert_eq!(p.post(qp, &[(0, bytes + 1)], ah).0, libc::EINVAL, "{kind}: {cap:?}");
            assert_eq!(p.poll().len(), 2);
            // Nothing completes for a while: so many fit, and not one more.
            p.card.fates(vec![0x40; 100]);
            let depth = cap.max_send_wr as usize;
            assert_eq!(p.post(qp, &vec![(1, 0); depth + 1], ah), (libc::ENOMEM, depth), "{kind}: {cap:?}");
            p.card.fates(vec![]);
            // SAFETY: as above.
            unsafe { ibv_destroy_qp(qp) };
        }
    }
}

#[test]
fn completions_of_an_earlier_life_are_not_polled() {
    let p = Place::new(3);
    let (qp, _) = p.ready(IBV_QPT_RC, CAP);
    for extended in [false, true] {
        assert_eq!(p.post(qp, &[(1, 0); 4], null_mut()).0, 0);
        assert_eq!(p.modify(qp, IBV_QPS_RESET), 0);
        p.start(qp);
        p.card.fates(vec![0x40; 2]);
        assert_eq!(p.post(qp, &[(1, 0); 2], null_mut()).0, 0);
        if extended {
            // SAFETY: a completion queue in use.
            let found = unsafe { ((*p.cq).start_poll.unwrap())(p.cq, [0u32; 2].as_mut_ptr().cast()) };
            assert_eq!(found, libc::ENOENT);
        }
        assert_eq!(p.poll(), []);
    }
}

/// An event that the card told of a queue pair which is destroyed before the program heard of it.
#[test]
fn events_of_an_earlier_life_are_not_told() {
    let p = Place::new(4);
    // SAFETY: handles in use.
    unsafe {
        non_blocking((*p.context).async_fd);
        for _ in 0..3 {
            let qp = ibv_create_qp(p.pd, &mut p.init(IBV_QPT_RC, CAP));
            let number = (*qp).qp_num;
            p.card.silent_event(ferric_abi::codes::EventKind::QpError as u8, number);
            ibv_destroy_qp(qp);
            // Until the number comes back.
            let mut others = vec![];
            let next = loop {
                let next = ibv_create_qp(p.pd, &mut p.init(IBV_QPT_RC, CAP));
                if (*next).qp_num == number {
                    break next;
                }
                others.push(next);
            };
            // Longer than the thread of events sleeps.
            std::thread::sleep(std::time::Duration::from_millis(120));
            let mut event: AsyncEvent = zeroed();
            assert_eq!((ibv_get_async_event(p.context, &mut event), errno()), (-1, libc::EAGAIN));
            others.into_iter().chain([next]).for_each(|qp| assert_eq!(ibv_destroy_qp(qp), 0));
        }
    }
}

#[test]
fn states_that_do_not_follow_are_refused() {
    let p = Place::new(5);
    let (qp, _) = p.ready(IBV_QPT_RC, CAP);
    assert_eq!(p.modify(qp, IBV_QPS_SQD), 0);
    assert_eq!(p.modify(qp, IBV_QPS_SQD), 0, "nothing is changed");
    // SAFETY: a queue pair in use.
    let retries = unsafe { ibv_modify_qp(qp, &mut QpAttr { qp_state: IBV_QPS_SQD, ..Default::default() }, (IBV_QP_STATE | IBV_QP_RETRY_CNT) as c_int) };
    assert_eq!(retries, libc::EOPNOTSUPP, "verbs have it, the card does not");
    assert_eq!((p.modify(qp, IBV_QPS_ERR), p.modify(qp, IBV_QPS_ERR), p.modify(qp, IBV_QPS_RESET), p.modify(qp, IBV_QPS_RESET)), (0, 0, 0, 0));
    assert_eq!(p.modify(qp, IBV_QPS_ERR), libc::EINVAL, "there is nothing to flush in RESET");
    // SAFETY: as above.
    assert_eq!(unsafe { (*qp).state }, IBV_QPS_RESET);
    p.start(qp);
}

#[test]
fn memory_must_be_there_with_its_rights() {
    let p = Place::new(6);
    const PAGE: usize = 4096;
    // SAFETY: three pages of our own, the second without rights, the third read-only.
    unsafe {
        let pages = libc::mmap(null_mut(), 3 * PAGE, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
        let at = |n: usize| pages.byte_add(n * PAGE);
        libc::mprotect(at(1), PAGE, libc::PROT_NONE);
        libc::mprotect(at(2), PAGE, libc::PROT_READ);
        let local = IBV_ACCESS_LOCAL_WRITE;
        for (from, length, access, good) in [
            (at(0), PAGE, local, true),
            (at(0), PAGE + 1, local, false),
            (at(0).byte_add(PAGE - 8), 8, local, true),
            (at(0).byte_add(PAGE - 8), 9, 0, false),
            (at(2), PAGE, 0, true),
            (at(2), PAGE, IBV_ACCESS_REMOTE_READ, true),
            (at(2), PAGE, local, false),
            (at(2).byte_add(8), 8, local | IBV_ACCESS_REMOTE_WRITE, false),
            // Nothing is ever mapped there.
            (PAGE as *mut c_void, 64, 0, false),
        ] {
            let mr = ibv_reg_mr(p.pd, from, length, access as c_int);
            if good {
                assert!(!mr.is_null(), "{length} bytes, {access}: {}", errno());
                ibv_dereg_mr(mr);
            } else {
                assert_eq!((mr, errno()), (null_mut(), libc::EFAULT), "{length} bytes, {access}");
            }
        }
        libc::munmap(pages, 3 * PAGE);
    }
}

#[test]
fn what_a_device_says_of_itself() {
    let p = Place::new(7);
    // SAFETY: a context in use, and outputs.
    unsafe {
        let (mut attr, mut entry) = (zeroed::<DeviceAttr>(), zeroed::<GidEntry>());
        assert_eq!(ibv_query_device(p.context, &mut attr), 0);
        let table = |max| _ibv_query_gid_table(p.context, &raw mut entry, max, 0, size_of::<GidEntry>());
        assert_eq!([0, 1, 5].map(table), [-(libc::EINVAL as isize), 1, 1]);
        let table = include_str!("../../docs/rocev2.md");
        assert!(table.contains("regions to 1 TiB") && attr.max_mr_size == 1 << 40, "{:#x}", attr.max_mr_size);
        assert_eq!((ibv_reg_mr(p.pd, p.memory.as_ptr().cast_mut().cast(), (1 << 40) + 1, 0), errno()), (null_mut(), libc::EINVAL));
    }
}

#[test]
fn posting_and_polling_allocate_nothing() {
    let p = Place::new(8);
    let (qp, _) = p.ready(IBV_QPT_RC, CAP);
    let mut list = [p.sge(8); 2];
    let mut wr = [SendWr {
        wr_id: 1,
        next: null_mut(),
        sg_list: list.as_mut_ptr(),
        num_sge: 2,
        opcode: IBV_WR_RDMA_WRITE,
        send_flags: 0,
        imm_data: 0,
        wr: WrKind { rdma: WrRdma { remote_addr: 0, rkey: 0 } },
        qp_type: 0,
        bind_mw: WrBind::NONE,
    }; 2];
    wr[0].next = &raw mut wr[1];
    (wr[1].send_flags, wr[1].num_sge) = (IBV_SEND_INLINE, 1);
    let mut recv = RecvWr { wr_id: 2, next: null_mut(), sg_list: list.as_mut_ptr(), num_sge: 1 };
    let buffers = [DataBuf { addr: p.memory.as_ptr().cast_mut().cast(), length: 4 }; 2];
    let mut wc = [Wc::default(); 16];
    let mut turn = || {
        let ex = qp.cast::<QpEx>();
        // SAFETY: handles in use, and the order of calls that they want.
        unsafe {
            let (ops, q, c) = ((*p.context).ops, *ex, *p.cq);
            let (mut bad, mut bad_recv) = (null_mut(), null_mut());
            assert_eq!((ops.post_send.unwrap())(qp, wr.as_mut_ptr(), &mut bad), 0);
            assert_eq!((ops.post_recv.unwrap())(qp, &mut recv, &mut bad_recv), 0);
            (q.wr_start.unwrap())(ex);
            (*ex).wr_flags = 0;
            (q.wr_rdma_write.unwrap())(ex, 0, 0);
            (q.wr_set_sge_list.unwrap())(ex, 2, list.as_ptr());
            (q.wr_rdma_write.unwrap())(ex, 0, 0);
            (q.wr_set_inline_data_list.unwrap())(ex, 2, buffers.as_ptr());
            assert_eq!((q.wr_complete.unwrap())(ex), 0);
            assert_eq!((ops.poll_cq.unwrap())(p.cq.cast(), 4, wc.as_mut_ptr()), 4);
            assert_eq!((c.start_poll.unwrap())(p.cq, [0u32; 2].as_mut_ptr().cast()), 0);
            assert_eq!((c.next_poll.unwrap())(p.cq), libc::ENOENT);
            (c.end_poll.unwrap())(p.cq);
        }
    };
    // The model's own tables grow at first; it keeps a completion in a list of its own for a moment, one for each of five.
    turn();
    let before = ALLOCATIONS.get();
    turn();
    assert_eq!(ALLOCATIONS.get() - before, 5, "of which the card of this test makes five");
}

/// Large objects where there is little memory: the process goes on. It is another process, since limits are a process's.
#[test]
fn want_of_memory_is_an_error() {
    const CHILD: &str = "FERRIC_TEST_WITHOUT_MEMORY";
    if std::env::var(CHILD).is_err() {
        let child = std::process::Command::new(std::env::current_exe().unwrap()).args(["--exact", "want_of_memory_is_an_error", "--nocapture", "--test-threads=1"]).env(CHILD, "1").output().unwrap();
        assert!(child.status.success(), "{}\n{}", String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
        return;
    }
    let p = Place::new(9);
    let pages: u64 = std::fs::read_to_string("/proc/self/statm").unwrap().split(' ').next().unwrap().parse().unwrap();
    let limit = libc::rlimit { rlim_cur: pages * 4096 + (4 << 20), rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a limit of this process's; handles in use.
    unsafe {
        assert_eq!(libc::setrlimit(libc::RLIMIT_AS, &limit), 0);
        let (mut qps, mut cqs, mut srqs) = (vec![], vec![], vec![]);
        // Each takes a part of what is left; the last one whatever it wants does not get.
        let cap = QpCap { max_send_wr: 1 << 15, max_recv_wr: 1 << 15, max_send_sge: 28, max_recv_sge: 28, max_inline_data: 0 };
        for (wr, last) in [(1 << 15, false), (4096, false), (1024, true)] {
            let cap = QpCap { max_send_wr: wr, max_recv_wr: wr, ..cap };
            for _ in 0..50 {
                let made = ibv_create_qp(p.pd, &mut p.init(IBV_QPT_RC, cap));
                if made.is_null() {
                    assert_eq!(errno(), libc::ENOMEM);
                    break;
                }
                qps.push(made);
            }
            for _ in 0..50 {
                let made = ibv_create_cq(p.context, wr as c_int, null_mut(), null_mut(), 0);
                if made.is_null() {
                    assert_eq!(errno(), libc::ENOMEM);
                    break;
                }
                cqs.push(made);
            }
            for _ in 0..50 {
                let attr = SrqAttr { max_wr: wr - 64, max_sge: 28, srq_limit: 0 };
                let made = ibv_create_srq(p.pd, &mut SrqInitAttr { srq_context: null_mut(), attr });
                if made.is_null() {
                    assert_eq!(errno(), libc::ENOMEM);
                    break;
                }
                srqs.push(made);
            }
            assert!(!last || qps.len() + cqs.len() + srqs.len() < 100, "the limit was never met");
        }
        qps.into_iter().for_each(|qp| assert_eq!(ibv_destroy_qp(qp), 0));
        cqs.into_iter().for_each(|cq| assert_eq!(ibv_destroy_cq(cq), 0));
        srqs.into_iter().for_each(|srq| assert_eq!(ibv_destroy_srq(srq), 0));
    }
}
