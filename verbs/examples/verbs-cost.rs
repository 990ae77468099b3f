//! What posting and polling cost a program of libibverbs: the calls that C programs make through the tables in their handles, over a card that is only
//! memory, so that every instruction counted is the library's. callgrind counts inside [`measured`] alone:
//!
//! ```text
//! cargo build --release -p ferric-verbs --example verbs-cost
//! valgrind --tool=callgrind --toggle-collect=measured target/release/examples/verbs-cost
//! ```
//!
//! It prints `requests N allocations M` and, with an argument (`list` or `build`), counts lists of eight or `ibv_wr_*` instead of single requests.
use ferric_abi::codes::{AdminOpcode, AdminStatus, CqeOpcode};
use ferric_abi::context::CqCtx;
use ferric_abi::host::{AdminCommand, AdminCompletion, Cqe};
use ferric_abi::{csr, pci};
use ferric_driver::device::{Device as Card, DmaAccess};
use ferric_driver::mapping::Mapping;
use ferric_driver::window::{Window, WINDOW};
use ferric_driver::Error;
use ferric_verbs::abi::attr::*;
use ferric_verbs::abi::consts::*;
use ferric_verbs::abi::objects::*;
use ferric_verbs::abi::wr::*;
use ferric_verbs::MODELS;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::{offset_of, zeroed};
use std::ptr::{null_mut, NonNull};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Requests posted and polled.
const REQUESTS: u16 = 1000;
/// Requests of a list.
const LIST: usize = 8;

extern "C" {
    fn ibv_get_device_list(n: *mut c_int) -> *mut *mut Device;
    fn ibv_open_device(device: *mut Device) -> *mut Context;
    fn ibv_alloc_pd(context: *mut Context) -> *mut Pd;
    fn ibv_reg_mr(pd: *mut Pd, addr: *mut c_void, length: usize, access: c_int) -> *mut Mr;
    fn ibv_create_cq(context: *mut Context, cqe: c_int, cq_context: *mut c_void, channel: *mut CompChannel, vector: c_int) -> *mut Cq;
    fn ibv_modify_qp(qp: *mut Qp, attr: *mut QpAttr, mask: c_int) -> c_int;
}

thread_local! { static ALLOCATIONS: Cell<u64> = const { Cell::new(0) }; }

/// Counts what is allocated by this thread.
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

/// A card that says yes to every command and does nothing. Its registers are memory behind the same window that a real card has.
struct Memory {
    window: Window,
    /// Base of the completion queue that was made.
    cq: AtomicU64,
    taken: Mutex<u32>,
    opened: Instant,
}

#[repr(align(64))]
struct Registers([u8; WINDOW]);

impl Memory {
    fn new() -> Arc<Self> {
        let registers = Box::leak(Box::new(Registers([0; WINDOW])));
        // SAFETY: leaked memory, aligned, used by nobody else.
        let window = unsafe { Window::new(NonNull::from(&mut registers.0).cast()) }.expect("aligned");
        let value = [(csr::MAGIC, csr::MAGIC_VALUE), (csr::VERSION, csr::VERSION_VALUE), (csr::CAPS0, 0x0505_0505), (csr::CAPS1, 0x0008_0002), (csr::CAPS2, 480 << 8 | 30), (csr::CAPS3, 1)];
        value.iter().for_each(|(r, v)| window.write32(*r, *v));
        Arc::new(Self { window, cq: AtomicU64::new(0), taken: Mutex::new(0), opened: Instant::now() })
    }

    /// Executes the commands up to `producer`.
    fn execute(&self, producer: u32) {
        let mut taken = self.taken.lock().expect("whole");
        let wide = |lo, hi| u64::from(self.window.read32(lo)) | u64::from(self.window.read32(hi)) << 32;
        let slots = 1 << self.window.read32(csr::ADMIN_SIZE);
        while *taken & 0xffff != producer {
            let at = (*taken % slots) as usize;
            // SAFETY: rings of the driver's; addresses of this card are addresses of this process.
            unsafe {
                let command = AdminCommand((wide(csr::ADMIN_SQ_LO, csr::ADMIN_SQ_HI) as *const [u8; AdminCommand::BYTES]).add(at).read());
                if command.opcode() == AdminOpcode::CreateCq as u8 {
                    let mut line = CqCtx::default();
                    let n = line.0.len();
                    line.0.copy_from_slice(&command.0[8..8 + n]);
                    self.cq.store(line.base(), Relaxed);
                }
                let mut done = AdminCompletion::default();
                if command.opcode() == AdminOpcode::QueryRanges as u8 {
                    // It has one function.
                    done.set_status(AdminStatus::BadOpcode as u8);
                }
                let mut done = done.0;
                done[AdminCompletion::BYTES - 1] = if *taken / slots % 2 == 0 { 0x80 } else { 0 };
                (wide(csr::ADMIN_CQ_LO, csr::ADMIN_CQ_HI) as *mut [u8; AdminCompletion::BYTES]).add(at).write(done);
            }
            *taken += 1;
        }
    }

    /// The completion of request `index`, as the card would write it.
    fn complete(&self, index: u16, qpn: u32) {
        let mut e = Cqe::default().with_wqe_index(index).with_opcode(CqeOpcode::Write as u8).with_qpn(qpn);
        e.0[Cqe::BYTES - 1] |= 0x80;
        // SAFETY: inside the ring, which is larger than the number of requests.
        unsafe { (self.cq.load(Relaxed) as *mut [u8; Cqe::BYTES]).add(index as usize).write(e.0) };
    }
}

impl Card for Memory {
    fn read32(&self, offset: u32) -> u32 {
        if offset == csr::STATUS {
            0
        } else {
            self.window.read32(offset)
        }
    }
    fn write32(&self, offset: u32, value: u32) {
        self.window.write32(offset, value);
        if offset == csr::ADMIN_DOORBELL {
            self.execute(value);
        }
    }
    fn write64(&self, offset: u32, value: u64) {
        self.window.write64(offset, value);
    }
    unsafe fn map(&self, ptr: *mut u8, len: usize, _: DmaAccess, _: bool) -> Result<Mapping, Error> {
        Ok(Mapping::new([(ptr as u64, len.next_multiple_of(4096) as u64)]))
    }
    fn unmap(&self, _: &Mapping) {}
    fn relax(&self) {}
    fn wait_interrupt(&self, _: u16, timeout: Duration) -> Result<bool, Error> {
        std::thread::sleep(timeout);
        Ok(false)
    }
    fn now(&self) -> Duration {
        self.opened.elapsed()
    }
}

/// How requests are posted.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// `ibv_post_send` of one.
    Single,
    /// `ibv_post_send` of [`LIST`].
    List,
    /// `ibv_wr_start` to `ibv_wr_complete` around one.
    Build,
}

/// Requests, each group polled before the next is posted. callgrind counts what happens in here.
///
/// # Safety
/// Handles in use.
#[inline(never)]
#[no_mangle]
unsafe fn measured(context: *mut Context, qp: *mut Qp, cq: *mut Cq, mr: *mut Mr, way: Way) -> u64 {
    // SAFETY: by the caller's promise; what requests name lives in here.
    unsafe {
        let (addr, key) = ((*mr).addr as u64, (*mr).lkey);
        let (post, poll, ex) = ((*context).ops.post_send.expect("there"), (*context).ops.poll_cq.expect("there"), qp.cast::<QpEx>());
        let mut sge = Sge { addr, length: 8, lkey: key };
        let one = SendWr {
            wr_id: 0,
            next: null_mut(),
            sg_list: &raw mut sge,
            num_sge: 1,
            opcode: IBV_WR_RDMA_WRITE,
            send_flags: IBV_SEND_SIGNALED,
            imm_data: 0,
            wr: WrKind { rdma: WrRdma { remote_addr: addr + 64, rkey: key } },
            qp_type: 0,
            bind_mw: WrBind::NONE,
        };
        let mut wrs = [one; LIST];
        let group = if way == Way::List { LIST } else { 1 };
        let base = wrs.as_mut_ptr();
        (1..group).for_each(|i| (*base.add(i - 1)).next = base.add(i));
        let (mut wc, mut bad, mut sum) = ([Wc::default(); LIST], null_mut(), 0);
        for n in (0..u64::from(REQUESTS)).step_by(group) {
            if way == Way::Build {
                ((*ex).wr_start.expect("there"))(ex);
                ((*ex).wr_id, (*ex).wr_flags) = (n, IBV_SEND_SIGNALED);
                ((*ex).wr_rdma_write.expect("there"))(ex, key, addr + 64);
                ((*ex).wr_set_sge.expect("there"))(ex, key, addr, 8);
                if ((*ex).wr_complete.expect("there"))(ex) != 0 {
                    return 0;
                }
            } else {
                (0..group).for_each(|i| (*base.add(i)).wr_id = n + i as u64);
                if post(qp, base, &mut bad) != 0 {
                    return 0;
                }
            }
            let got = poll(cq, group as c_int, wc.as_mut_ptr());
            if got != group as c_int {
                return 0;
            }
            sum += wc[..group].iter().map(|w| w.wr_id).sum::<u64>();
        }
        sum
    }
}

fn main() {
    assert_eq!(pci::BAR_WINDOW_SIZE as usize, WINDOW);
    let way = match std::env::args().nth(1).as_deref() {
        None => Way::Single,
        Some("list") => Way::List,
        Some("build") => Way::Build,
        Some(other) => panic!("`{other}` is neither `list` nor `build`"),
    };
    static CARD: OnceLock<Arc<Memory>> = OnceLock::new();
    let card = CARD.get_or_init(Memory::new);
    std::env::set_var("FERRIC_DEVICES", "memory@10.0.0.1");
    let _ = MODELS.set(|_| CARD.get().map(|c| c.clone() as _));
    // SAFETY: as the manual pages have it; everything lives as long as the process.
    unsafe {
        let context = ibv_open_device(*ibv_get_device_list(null_mut()));
        let pd = ibv_alloc_pd(context);
        let memory = Box::leak(vec![0u8; 4096].into_boxed_slice());
        let mr = ibv_reg_mr(pd, memory.as_mut_ptr().cast(), 4096, (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) as c_int);
        let cq = ibv_create_cq(context, 2048, null_mut(), null_mut(), 0);
        let mut init: QpInitAttrEx = zeroed();
        (init.send_cq, init.recv_cq, init.qp_type, init.pd) = (cq, cq, IBV_QPT_RC, pd);
        init.cap = QpCap { max_send_wr: 64, max_recv_wr: 1, max_send_sge: 1, max_recv_sge: 1, max_inline_data: 0 };
        (init.comp_mask, init.send_ops_flags) = (IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, IBV_QP_EX_WITH_RDMA_WRITE.into());
        let verbs = context.byte_sub(offset_of!(VerbsContext, context)).cast::<VerbsContext>();
        let qp = ((*verbs).create_qp_ex.expect("there"))(context, &mut init);
        let mut gid = [0; 16];
        gid[10..].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 2]);
        let ah_attr = AhAttr { grh: GlobalRoute { dgid: GidWords(gid), hop_limit: 64, ..Default::default() }, is_global: 1, port_num: 1, ..Default::default() };
        let mut attr = QpAttr { port_num: 1, path_mtu: 3, timeout: 14, ah_attr, ..Default::default() };
        let init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
        let rtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        let rts = IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
        for (state, mask) in [(IBV_QPS_INIT, init), (IBV_QPS_RTR, rtr), (IBV_QPS_RTS, rts)] {
            attr.qp_state = state;
            assert_eq!(ibv_modify_qp(qp, &mut attr, (mask | IBV_QP_STATE) as c_int), 0);
        }
        (0..REQUESTS).for_each(|n| card.complete(n, (*qp).qp_num));
        let before = ALLOCATIONS.get();
        let sum = measured(context, qp, cq, mr, way);
        let allocations = ALLOCATIONS.get() - before;
        assert_eq!(sum, (0..u64::from(REQUESTS)).sum::<u64>(), "every request must have completed");
        println!("requests {REQUESTS} allocations {allocations}");
    }
}
