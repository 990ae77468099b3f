//! What posting and polling cost the host: the driver over a card that is only memory, so that every instruction counted is the driver's.
//! `./scripts/bench` runs it under callgrind, which counts inside [`measured`] alone.
use ferric_abi::codes::{AdminOpcode, AdminStatus, CqeOpcode, CqeStatus, WrOpcode};
use ferric_abi::context::CqCtx;
use ferric_abi::host::{AdminCommand, AdminCompletion, Cqe};
use ferric_abi::{csr, pci};
use ferric_driver::device::{Device, DmaAccess};
use ferric_driver::mapping::Mapping;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::window::{Window, WINDOW};
use ferric_driver::{Access, CompletionQueue, Config, Context, Error, Mac, Mtu, Path, QpConfig, QueuePair, RtrAttr, RtsAttr, SendRequest};
use std::alloc::{GlobalAlloc, Layout, System};
use std::net::IpAddr;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Requests posted and polled.
const REQUESTS: u16 = 1000;

/// Counts what is allocated.
struct Counting;
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
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

impl Memory {
    /// `registers` stays allocated for ever.
    fn new(registers: &'static mut Registers) -> Arc<Self> {
        let base = NonNull::from(&mut registers.0).cast();
        // SAFETY: leaked memory, aligned, used by nobody else.
        let window = unsafe { Window::new(base) }.expect("aligned");
        let value = [(csr::MAGIC, csr::MAGIC_VALUE), (csr::VERSION, csr::VERSION_VALUE), (csr::CAPS0, 0x0505_0505), (csr::CAPS1, 0x0008_0002), (csr::CAPS2, 480 << 8 | 30), (csr::CAPS3, 1)];
        value.iter().for_each(|(r, v)| window.write32(*r, *v));
        Arc::new(Self { window, cq: AtomicU64::new(0), taken: Mutex::new(0), opened: Instant::now() })
    }

    /// Executes the commands up to `producer`.
    fn execute(&self, producer: u32) {
        let mut taken = self.taken.lock().expect("one thread");
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

impl Device for Memory {
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
    fn wait_interrupt(&self, _: u16, _: Duration) -> Result<bool, Error> {
        Ok(false)
    }
    fn now(&self) -> Duration {
        self.opened.elapsed()
    }
}

#[repr(align(64))]
struct Registers([u8; WINDOW]);

/// One request after the other, each polled before the next. callgrind counts what happens in here.
#[inline(never)]
#[no_mangle]
fn measured(qp: &mut QueuePair, cq: &mut CompletionQueue, from: u64, lkey: u32) -> u64 {
    let mut sum = 0;
    for n in 0..REQUESTS {
        let sges = [sge(from, 8, lkey)];
        let wr = SendRequest { wr_id: n.into(), opcode: WrOpcode::Write, payload: Payload::Sges(&sges), remote_addr: from + 64, rkey: lkey, imm: 0, signaled: true, solicited: false };
        if qp.post_send(&wr).is_err() {
            return 0;
        }
        match cq.poll() {
            Some(c) if c.status == CqeStatus::Success => sum += c.wr_id,
            _ => return 0,
        }
    }
    sum
}

fn main() {
    assert_eq!(pci::BAR_WINDOW_SIZE as usize, WINDOW);
    let card = Memory::new(Box::leak(Box::new(Registers([0; WINDOW]))));
    let ctx = Context::open(card.clone(), Config::default()).expect("a card of memory");
    let pd = ctx.alloc_pd().expect("a domain");
    let eq = ctx.create_eq(4, 0).expect("events");
    let mut cq = ctx.create_cq(2048, &eq).expect("completions");
    let mr = pd.register(vec![0; 4096].into_boxed_slice(), Access::ALL).expect("memory");
    let config = QpConfig { max_send_sge: 1, max_recv_sge: 1, max_inline: 0, ..QpConfig::default() };
    let mut qp = pd.create_qp(&config, &cq, &cq).expect("a queue pair");
    let path =
        Path { dmac: Mac::default(), smac: Mac::default(), dip: IpAddr::from([10, 0, 0, 2]), sip: IpAddr::from([10, 0, 0, 1]), vlan: None, udp_sport: 0xc000, tclass: 0, hop_limit: 64, flow_label: 0 };
    let rtr = RtrAttr { mtu: Mtu::M1024, dest_qpn: 2, rq_psn: 0, min_rnr_timer: 12, repeat_nak: false, max_dest_rd_atomic: 1, path: Some(path) };
    qp.to_init(Access::ALL)
        .and_then(|()| qp.to_rtr(Access::ALL, &rtr))
        .and_then(|()| qp.to_rts(&RtsAttr { sq_psn: 0, timeout: 14, retry_cnt: 7, rnr_retry: 7, max_rd_atomic: 1 }))
        .expect("ready to send");
    (0..REQUESTS).for_each(|n| card.complete(n, qp.qpn()));
    let before = ALLOCATIONS.load(Relaxed);
    let sum = measured(&mut qp, &mut cq, mr.addr(), mr.lkey());
    let allocations = ALLOCATIONS.load(Relaxed) - before;
    assert_eq!(sum, (0..u64::from(REQUESTS)).sum::<u64>(), "every request must have completed");
    println!("requests {REQUESTS} allocations {allocations}");
}
