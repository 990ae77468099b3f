//! A card that is only memory: it has one function and says yes to every command but that for the functions' ranges, and completes what a test tells it to. It knows what a completion queue's consumer has
//! been told, and refuses to write over entries that nobody has read.
use ferric_abi::codes::{AdminOpcode, AdminStatus};
use ferric_abi::context::{AddressCtx, CqCtx, StationCtx};
use ferric_abi::csr;
use ferric_abi::host::{AdminCommand, AdminCompletion, Cqe, Doorbell};
use ferric_driver::device::{Device, DmaAccess};
use ferric_driver::mapping::Mapping;
use ferric_driver::{Access, CompletionQueue, Config, Context, Error, Mac, Mtu, Path, Pd, QpConfig, QueuePair, RtrAttr, RtsAttr};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

#[derive(Default)]
struct State {
    registers: HashMap<u32, u32>,
    taken: u32,
    /// Base, log2 of the size, producer and consumer of each completion queue.
    cqs: HashMap<u32, (u64, u8, u16, u16)>,
    /// Completions that come with the answer to the next MODIFY_QP, in front of it.
    late: Vec<(u32, Cqe)>,
    /// Doorbells and lines: offset, and first eight bytes.
    rung: Vec<(u32, u64)>,
    /// The card answers for addresses and finds neighbours.
    network: Option<Network>,
    admin: Admin,
}

/// How the card treats its admin queue.
#[derive(Default)]
#[allow(dead_code, reason = "not every test wants all")]
pub struct Admin {
    /// Commands that are answered with this status: opcode, number, first parameter word.
    pub refused: HashMap<(u8, u32, u32), AdminStatus>,
    /// It answers so many more, then none: another driver has reset the function. Its clock runs a second a look then.
    pub left: Option<u32>,
    /// Doorbells, and the opcode and number of what it has executed.
    pub bells: u32,
    pub executed: Vec<(u8, u32)>,
}

/// What a card with addresses has and finds.
#[derive(Default)]
#[allow(dead_code, reason = "not every test wants all")]
pub struct Network {
    pub own: HashMap<u32, AddressCtx>,
    /// MAC addresses of the function, and those that are another's.
    pub stations: HashMap<u32, u64>,
    pub taken: Vec<u64>,
    /// MAC addresses of neighbours, and how many requests and then looks it takes until they are known.
    pub neighbours: HashMap<u128, (u64, u32, u32)>,
    /// Requests sent.
    pub asked: Vec<(u32, u128)>,
    /// The function's search: own address, neighbour, state, requests and looks.
    search: (u32, u128, u32, u32, u32),
    /// All commands about addresses.
    pub commands: u32,
}

impl Network {
    fn set(&mut self, number: u32, line: AddressCtx) -> AdminStatus {
        self.commands += 1;
        assert!(!line.valid() || self.stations.values().any(|mac| *mac == line.mac()), "frames to {:x} are not received", line.mac());
        if self.own.iter().any(|(n, a)| *n != number && line.valid() && a.ip() == line.ip()) {
            return AdminStatus::InUse;
        }
        self.own.remove(&number);
        if line.valid() {
            self.own.insert(number, line);
        }
        AdminStatus::Ok
    }

    fn hear(&mut self, number: u32, line: StationCtx) -> AdminStatus {
        if self.taken.contains(&line.mac()) || self.stations.iter().any(|(n, mac)| *n != number && line.valid() && *mac == line.mac()) {
            return AdminStatus::InUse;
        }
        self.stations.remove(&number);
        if line.valid() {
            self.stations.insert(number, line.mac());
        }
        AdminStatus::Ok
    }

    /// State and MAC address.
    fn resolve(&mut self, source: u32, ip: u128, ask: u32) -> Result<(u32, u64), AdminStatus> {
        self.commands += 1;
        if !self.own.contains_key(&source) {
            return Err(AdminStatus::BadState);
        }
        if (self.search.0, self.search.1) != (source, ip) {
            self.search = (source, ip, 0, 0, 0);
        }
        let (_, _, state, asks, looks) = &mut self.search;
        if ask & 1 == 1 && (*state != 2 || ask & 2 == 2) {
            (*state, *asks, *looks) = (1, *asks + 1, 0);
            self.asked.push((source, ip));
            return Ok((1, 0));
        }
        *looks += 1;
        if let Some((mac, ..)) = self.neighbours.get(&ip).filter(|(_, a, l)| *state == 1 && *asks >= *a && *looks >= *l) {
            (*state, *asks) = (2, 0);
            return Ok((2, *mac));
        }
        Ok((*state, 0))
    }
}

impl State {
    fn put(&mut self, cq: u32, mut e: Cqe) -> bool {
        let Some((base, log_size, producer, consumer)) = self.cqs.get_mut(&cq) else { return false };
        if producer.wrapping_sub(*consumer) == 1 << *log_size {
            return false;
        }
        let slot = usize::from(*producer & ((1 << *log_size) - 1));
        e.0[Cqe::BYTES - 1] = e.0[Cqe::BYTES - 1] & 0x7f | if *producer >> *log_size & 1 == 0 { 0x80 } else { 0 };
        for (i, word) in e.0.chunks_exact(8).enumerate() {
            let value = u64::from_ne_bytes(word.try_into().unwrap());
            // SAFETY: inside the ring: addresses of this card are addresses of this process.
            unsafe { (*base as *mut u64).add(slot * 4 + i).write_volatile(value) };
        }
        *producer = producer.wrapping_add(1);
        true
    }

    fn execute(&mut self, producer: u32) {
        let wide = |s: &Self, lo, hi| u64::from(s.registers[&lo]) | u64::from(s.registers[&hi]) << 32;
        let slots = 1 << self.registers[&csr::ADMIN_SIZE];
        while self.taken & 0xffff != producer {
            let at = (self.taken % slots) as usize;
            // SAFETY: the driver's rings.
            let command = AdminCommand(unsafe { (wide(self, csr::ADMIN_SQ_LO, csr::ADMIN_SQ_HI) as *const [u8; AdminCommand::BYTES]).add(at).read() });
            if let Some(left) = &mut self.admin.left {
                let Some(less) = left.checked_sub(1) else { return };
                *left = less;
            }
            self.admin.executed.push((command.opcode(), command.id()));
            let mut done = AdminCompletion::default();
            let first = u32::from_le_bytes(command.0[8..12].try_into().unwrap());
            match command.opcode() {
                o if self.admin.refused.contains_key(&(o, command.id(), first)) => drop(done.set_status(self.admin.refused[&(o, command.id(), first)] as u8)),
                o if o == AdminOpcode::QueryRanges as u8 => drop(done.set_status(AdminStatus::BadOpcode as u8)),
                o if o == AdminOpcode::CreateCq as u8 => {
                    let mut line = CqCtx::default();
                    let n = line.0.len();
                    line.0.copy_from_slice(&command.0[8..8 + n]);
                    self.cqs.insert(command.id(), (line.base(), line.log_size(), 0, 0));
                }
                o if o == AdminOpcode::SetAddress as u8 => {
                    let line = AddressCtx(command.0[8..32].try_into().unwrap());
                    done.set_status(self.network.as_mut().map_or(AdminStatus::BadOpcode, |n| n.set(command.id(), line)) as u8);
                }
                o if o == AdminOpcode::SetStation as u8 => {
                    let line = StationCtx(command.0[8..16].try_into().unwrap());
                    done.set_status(self.network.as_mut().map_or(AdminStatus::Ok, |n| n.hear(command.id(), line)) as u8);
                }
                o if o == AdminOpcode::QueryObject as u8 => {
                    if let Some(line) = self.network.as_ref().and_then(|n| n.own.get(&command.id())) {
                        done.0[4..28].copy_from_slice(&line.0);
                    }
                }
                o if o == AdminOpcode::Resolve as u8 => {
                    let (ip, ask) = (u128::from_le_bytes(command.0[8..24].try_into().unwrap()), u32::from_le_bytes(command.0[24..28].try_into().unwrap()));
                    match self.network.as_mut().map_or(Err(AdminStatus::BadOpcode), |n| n.resolve(command.id(), ip, ask)) {
                        Ok((state, mac)) => drop(done.set_r0(state).set_r1(mac as u32).set_r2((mac >> 32) as u32)),
                        Err(status) => drop(done.set_status(status as u8)),
                    }
                }
                o if o == AdminOpcode::DestroyCq as u8 => drop(self.cqs.remove(&command.id())),
                o if o == AdminOpcode::ModifyQp as u8 => std::mem::take(&mut self.late).into_iter().for_each(|(cq, e)| assert!(self.put(cq, e))),
                _ => {}
            }
            let mut done = done.0;
            done[AdminCompletion::BYTES - 1] = if self.taken / slots % 2 == 0 { 0x80 } else { 0 };
            // SAFETY: as above.
            unsafe { (wide(self, csr::ADMIN_CQ_LO, csr::ADMIN_CQ_HI) as *mut [u8; AdminCompletion::BYTES]).add(at).write(done) };
            self.taken += 1;
        }
    }
}

/// The card.
pub struct Card {
    state: Mutex<State>,
    lines: bool,
    started: Instant,
    /// Seconds by which its clock is ahead.
    skipped: Mutex<u32>,
}

impl Card {
    /// One after power-on.
    pub fn new(lines: bool) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), lines, started: Instant::now(), skipped: Mutex::default() })
    }

    /// One that answers for addresses and finds neighbours.
    #[allow(dead_code, reason = "not every test wants all")]
    pub fn with_network() -> Arc<Self> {
        let card = Self::new(false);
        card.state().network = Some(Network::default());
        card
    }

    /// Its addresses and neighbours.
    #[allow(dead_code, reason = "not every test wants all")]
    pub fn network<T>(&self, f: impl FnOnce(&mut Network) -> T) -> T {
        f(self.state().network.as_mut().unwrap())
    }

    /// Its admin queue.
    #[allow(dead_code, reason = "not every test wants all")]
    pub fn admin<T>(&self, f: impl FnOnce(&mut Admin) -> T) -> T {
        f(&mut self.state().admin)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Completes something; false: the queue is full.
    #[allow(dead_code, reason = "not every test wants all")]
    pub fn complete(&self, cq: u32, e: Cqe) -> bool {
        self.state().put(cq, e)
    }

    /// Completes something with the answer to the next MODIFY_QP.
    #[allow(dead_code, reason = "not every test wants all")]
    pub fn complete_late(&self, cq: u32, e: Cqe) {
        self.state().late.push((cq, e));
    }

    /// What has been rung since this was asked last.
    #[allow(dead_code, reason = "not every test wants all")]
    pub fn rung(&self) -> Vec<(u32, u64)> {
        std::mem::take(&mut self.state().rung)
    }
}

impl Device for Card {
    fn read32(&self, offset: u32) -> u32 {
        match offset {
            csr::MAGIC => csr::MAGIC_VALUE,
            csr::VERSION => csr::VERSION_VALUE,
            csr::CAPS0 => 0x0505_0505,
            csr::CAPS1 => 0x0008_0002,
            csr::CAPS2 => 480 << 8 | 30,
            csr::CAPS3 => 7 | 1 << csr::FEATURE_SRQ | u32::from(self.state().network.is_some()) << csr::FEATURE_ADDRESSES,
            _ => 0,
        }
    }
    fn write32(&self, offset: u32, value: u32) {
        let mut s = self.state();
        s.registers.insert(offset, value);
        if offset == csr::ADMIN_DOORBELL {
            s.admin.bells += 1;
            s.execute(value);
        }
    }
    fn write64(&self, offset: u32, value: u64) {
        let (mut s, bell) = (self.state(), Doorbell(value.to_le_bytes()));
        if offset == csr::DB_CQ {
            if let Some((_, _, producer, consumer)) = s.cqs.get_mut(&bell.id()) {
                // It does not go back, as the card has it.
                if bell.index().wrapping_sub(*consumer) <= producer.wrapping_sub(*consumer) {
                    *consumer = bell.index();
                }
            }
        }
        s.rung.push((offset, value));
    }
    fn has_lines(&self) -> bool {
        self.lines
    }
    fn write_line(&self, offset: u32, line: &[u8; 64]) {
        self.state().rung.push((offset, u64::from_le_bytes(line[..8].try_into().unwrap())));
    }
    unsafe fn map(&self, ptr: *mut u8, len: usize, _: DmaAccess, _: bool) -> Result<Mapping, Error> {
        Ok(Mapping::new([(ptr as u64, len.next_multiple_of(4096) as u64)]))
    }
    fn unmap(&self, _: &Mapping) {}
    fn relax(&self) {
        *self.skipped.lock().unwrap() += u32::from(self.state().admin.left == Some(0));
    }
    fn wait_interrupt(&self, _: u16, _: Duration) -> Result<bool, Error> {
        Ok(false)
    }
    fn now(&self) -> Duration {
        self.started.elapsed() + Duration::from_secs(1) * *self.skipped.lock().unwrap()
    }
}

/// A card with a domain and a completion queue.
pub struct Bench {
    pub card: Arc<Card>,
    pub ctx: Context,
    pub pd: Pd,
    pub cq: CompletionQueue,
}

impl Bench {
    pub fn new(card: Arc<Card>, entries: usize) -> Self {
        let ctx = Context::open(card.clone(), Config::default()).unwrap();
        let pd = ctx.alloc_pd().unwrap();
        let cq = ctx.create_cq(entries, &ctx.create_eq(4, 0).unwrap()).unwrap();
        Self { card, ctx, pd, cq }
    }

    /// A queue pair of which both halves report to the completion queue.
    pub fn qp(&self) -> QueuePair {
        self.pd.create_qp(&QpConfig::default(), &self.cq, &self.cq).unwrap()
    }
}

/// What brings a queue pair from INIT to RTS.
#[allow(dead_code, reason = "not every test wants all")]
pub fn attributes() -> (RtrAttr, RtsAttr) {
    let path =
        Path { dmac: Mac::default(), smac: Mac::default(), dip: IpAddr::from([10, 0, 0, 2]), sip: IpAddr::from([10, 0, 0, 1]), vlan: None, udp_sport: 0xc000, tclass: 0, hop_limit: 64, flow_label: 0 };
    let rtr = RtrAttr { mtu: Mtu::M1024, dest_qpn: 2, rq_psn: 0, min_rnr_timer: 12, repeat_nak: false, max_dest_rd_atomic: 1, path: Some(path) };
    (rtr, RtsAttr { sq_psn: 0, timeout: 14, retry_cnt: 7, rnr_retry: 7, max_rd_atomic: 1 })
}

/// INIT -> RTS.
#[allow(dead_code, reason = "not every test wants all")]
pub fn connect(qp: &mut QueuePair) {
    let (rtr, rts) = attributes();
    qp.to_rtr(Access::ALL, &rtr).unwrap();
    qp.to_rts(&rts).unwrap();
}

/// RESET -> RTS.
#[allow(dead_code, reason = "not every test wants all")]
pub fn start(qp: &mut QueuePair) {
    qp.to_init(Access::ALL).unwrap();
    connect(qp);
}
