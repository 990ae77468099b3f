//! A card that is only memory: it executes every command, refuses some, and makes of work requests what the fuzzer says: completions and
//! events, some of which no card would make. What it writes goes nowhere but into the rings it was told of.
use ferric_abi::codes::{AdminOpcode, AdminStatus};
use ferric_abi::context::{CqCtx, EqCtx};
use ferric_abi::csr;
use ferric_abi::host::{AdminCommand, AdminCompletion, Cqe, Doorbell, Eqe, WqeHead};
use ferric_driver::device::{Device, DmaAccess};
use ferric_driver::mapping::Mapping;
use ferric_driver::Error;
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A ring that the card writes.
#[derive(Clone, Copy)]
struct Ring {
    base: u64,
    log_size: u8,
    index: u32,
}

impl Ring {
    /// Writes a record whose last bit is the phase.
    fn put(&mut self, mut record: Vec<u8>) {
        let n = record.len();
        let slot = (self.index & ((1 << self.log_size) - 1)) as usize;
        record[n - 1] = record[n - 1] & 0x7f | if self.index >> self.log_size & 1 == 0 { 0x80 } else { 0 };
        for (i, word) in record.chunks_exact(8).enumerate() {
            let value = u64::from_ne_bytes(word.try_into().expect("eight bytes"));
            // SAFETY: inside the ring: addresses of this card are addresses of this process, and a ring is forgotten when it is destroyed.
            unsafe { (self.base as *mut u64).add(slot * n / 8 + i).write_volatile(value) };
        }
        self.index = self.index.wrapping_add(1);
    }
}

/// Where a queue pair's completions go, and sends and receives so far.
#[derive(Clone, Copy)]
struct Queues {
    send_cq: u32,
    recv_cq: u32,
    sent: u16,
    received: u16,
}

#[derive(Default)]
struct State {
    registers: HashMap<u32, u32>,
    taken: u32,
    cqs: HashMap<u32, Ring>,
    eqs: HashMap<u32, Ring>,
    qps: HashMap<u32, Queues>,
    /// What becomes of what comes next.
    fates: Vec<u8>,
    /// Events not looked at.
    rung: bool,
    /// How often each doorbell was rung.
    bells: HashMap<u32, u64>,
}

/// The card.
#[derive(Default)]
pub struct Card {
    state: Mutex<State>,
    bell: Condvar,
    started: Option<Instant>,
}

impl Card {
    /// One after power-on.
    pub fn new() -> Self {
        Self { started: Some(Instant::now()), ..Self::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// What becomes of the next requests and commands, one byte each; all goes well when there is none left.
    pub fn fates(&self, fates: Vec<u8>) {
        self.state().fates = fates;
    }

    /// An event of any kind.
    pub fn event(&self, kind: u8, id: u32) {
        self.state().event(kind, id);
        self.bell.notify_all();
    }

    /// The same, but nobody is woken for it.
    pub fn silent_event(&self, kind: u8, id: u32) {
        let mut s = self.state();
        s.event(kind, id);
        s.rung = false;
    }

    /// How often the doorbell (or the line) at this offset was rung.
    pub fn bells(&self, offset: u32) -> u64 {
        self.state().bells.get(&offset).copied().unwrap_or(0)
    }

    /// A completion of any content in completion queue `cq`.
    pub fn completion(&self, cq: u32, content: [u8; Cqe::BYTES]) {
        if let Some(ring) = self.state().cqs.get_mut(&cq) {
            ring.put(content.to_vec());
        }
    }
}

impl State {
    fn fate(&mut self) -> u8 {
        self.fates.pop().unwrap_or(0)
    }

    fn register(&self, offset: u32) -> u32 {
        self.registers.get(&offset).copied().unwrap_or(0)
    }

    fn event(&mut self, kind: u8, id: u32) {
        if let Some(ring) = self.eqs.values_mut().next() {
            ring.put(Eqe::default().with_kind(kind).with_id(id).0.to_vec());
        }
        self.rung = true;
    }

    fn command(&mut self, c: &AdminCommand) -> u8 {
        let word = |n: usize| u32::from_le_bytes(c.0[8 + 4 * n..12 + 4 * n].try_into().expect("four bytes"));
        let id = c.id();
        let makes = [AdminOpcode::CreatePd, AdminOpcode::CreateMr, AdminOpcode::CreateCq, AdminOpcode::CreateQp, AdminOpcode::CreateSrq, AdminOpcode::ModifyQp, AdminOpcode::ModifySrq];
        // What destroys always succeeds: numbers would run out.
        if makes.iter().any(|o| *o as u8 == c.opcode()) && self.fate() >= 0xf0 {
            return 3;
        }
        match c.opcode() {
            // One function, which has all numbers.
            o if o == AdminOpcode::QueryRanges as u8 => return AdminStatus::BadOpcode as u8,
            o if o == AdminOpcode::CreateCq as u8 => {
                let mut line = CqCtx::default();
                let n = line.0.len();
                line.0.copy_from_slice(&c.0[8..8 + n]);
                self.cqs.insert(id, Ring { base: line.base(), log_size: line.log_size(), index: 0 });
            }
            o if o == AdminOpcode::CreateEq as u8 => {
                let mut line = EqCtx::default();
                let n = line.0.len();
                line.0.copy_from_slice(&c.0[8..8 + n]);
                self.eqs.insert(id, Ring { base: line.base(), log_size: line.log_size(), index: 0 });
            }
            o if o == AdminOpcode::CreateQp as u8 => {
                self.qps.insert(id, Queues { send_cq: word(2), recv_cq: word(3), sent: 0, received: 0 });
            }
            // Rings start at zero.
            o if o == AdminOpcode::ModifyQp as u8 && word(0) == 0 => {
                if let Some(q) = self.qps.get_mut(&id) {
                    (q.sent, q.received) = (0, 0);
                }
            }
            o if o == AdminOpcode::DestroyCq as u8 => drop(self.cqs.remove(&id)),
            o if o == AdminOpcode::DestroyEq as u8 => drop(self.eqs.remove(&id)),
            o if o == AdminOpcode::DestroyQp as u8 => drop(self.qps.remove(&id)),
            _ => {}
        }
        0
    }

    fn commands(&mut self, producer: u32) {
        let wide = |s: &Self, lo, hi| u64::from(s.register(lo)) | u64::from(s.register(hi)) << 32;
        let (from, to) = (wide(self, csr::ADMIN_SQ_LO, csr::ADMIN_SQ_HI), wide(self, csr::ADMIN_CQ_LO, csr::ADMIN_CQ_HI));
        let log_size = self.register(csr::ADMIN_SIZE) as u8;
        while self.taken & 0xffff != producer {
            let at = (self.taken & ((1 << log_size) - 1)) as usize;
            // SAFETY: the driver's ring.
            let command = AdminCommand(unsafe { (from as *const [u8; AdminCommand::BYTES]).add(at).read_volatile() });
            let status = self.command(&command);
            let done = AdminCompletion::default().with_status(status);
            Ring { base: to, log_size, index: self.taken }.put(done.0.to_vec());
            self.taken += 1;
        }
    }

    /// Requests of a queue pair have been announced up to `producer`.
    fn announced(&mut self, qpn: u32, producer: u16, is_recv: bool) {
        loop {
            let Some(q) = self.qps.get_mut(&qpn) else { return };
            let next = if is_recv { &mut q.received } else { &mut q.sent };
            if *next == producer {
                return;
            }
            let index = *next;
            *next = index.wrapping_add(1);
            self.posted(qpn, index, is_recv, if is_recv { 0 } else { 2 });
        }
    }

    /// A request has been posted: nothing, a completion as it should be, or one as it should not.
    fn posted(&mut self, qpn: u32, index: u16, is_recv: bool, opcode: u8) {
        let fate = self.fate();
        let Some(q) = self.qps.get(&qpn).copied() else { return };
        let cq = if is_recv { q.recv_cq } else { q.send_cq };
        let mut e = Cqe::default().with_wqe_index(index).with_qpn(qpn).with_is_recv(is_recv).with_opcode(if is_recv { 16 } else { opcode }).with_byte_len(8);
        match fate {
            0..=0x3f => {}
            0x40..=0x5f => return,
            0x60..=0x7f => e = e.with_status(fate & 31).with_syndrome(fate),
            0x80..=0x8f => e = e.with_wqe_index(index.wrapping_sub(fate.into())),
            0x90..=0x9f => e = e.with_qpn(fate.into()),
            0xa0..=0xaf => e = e.with_is_recv(!is_recv).with_opcode(fate),
            0xb0..=0xbf => e = e.with_imm_valid(fate & 1 == 1).with_inv_valid(fate & 2 == 2).with_imm(fate.into()).with_grh(fate & 4 == 4),
            _ => {
                self.event(fate & 7, if fate & 8 == 0 { qpn } else { cq });
                return;
            }
        }
        if let Some(ring) = self.cqs.get_mut(&cq) {
            ring.put(e.0.to_vec());
        }
    }
}

impl Device for Card {
    fn read32(&self, offset: u32) -> u32 {
        match offset {
            csr::MAGIC => csr::MAGIC_VALUE,
            csr::VERSION => csr::VERSION_VALUE,
            csr::CAPS0 => 0x0606_0606,
            csr::CAPS1 => 0x0008_0002,
            csr::CAPS2 => 480 << 8 | 30,
            csr::CAPS3 => 7 | 1 << csr::FEATURE_SRQ,
            csr::STATUS => 0,
            _ => self.state().register(offset),
        }
    }
    fn write32(&self, offset: u32, value: u32) {
        let mut s = self.state();
        s.registers.insert(offset, value);
        if offset == csr::ADMIN_DOORBELL {
            s.commands(value);
        }
    }
    fn write64(&self, offset: u32, value: u64) {
        let bell = Doorbell(value.to_le_bytes());
        let mut s = self.state();
        *s.bells.entry(offset).or_default() += 1;
        match offset {
            csr::DB_SQ => s.announced(bell.id(), bell.index(), false),
            csr::DB_RQ if s.qps.contains_key(&bell.id()) => s.announced(bell.id(), bell.index(), true),
            // One of a shared ring: some queue pair gets it.
            csr::DB_RQ => {
                let qpn = s.qps.keys().next().copied().unwrap_or(0);
                s.posted(qpn, bell.index().wrapping_sub(1), true, 0);
            }
            csr::DB_CQ if bell.arm() || bell.arm_solicited() => {
                if s.fate() < 0x80 {
                    s.event(1, bell.id());
                }
            }
            _ => {}
        }
        drop(s);
        self.bell.notify_all();
    }
    fn has_lines(&self) -> bool {
        true
    }
    fn write_line(&self, offset: u32, line: &[u8; 64]) {
        let mut head = WqeHead::default();
        head.0.copy_from_slice(&line[..WqeHead::BYTES]);
        let mut s = self.state();
        *s.bells.entry(offset).or_default() += 1;
        if let Some(q) = s.qps.get_mut(&head.qpn()) {
            q.sent = head.index().wrapping_add(1);
        }
        s.posted(head.qpn(), head.index(), false, head.opcode());
        drop(s);
        self.bell.notify_all();
    }
    unsafe fn map(&self, ptr: *mut u8, len: usize, _: DmaAccess, _: bool) -> Result<Mapping, Error> {
        Ok(Mapping::new([(ptr as u64, len.next_multiple_of(4096) as u64)]))
    }
    fn unmap(&self, _: &Mapping) {}
    fn relax(&self) {}
    fn wait_interrupt(&self, _: u16, timeout: Duration) -> Result<bool, Error> {
        let (mut s, late) = self.bell.wait_timeout_while(self.state(), timeout, |s| !s.rung).unwrap_or_else(|e| e.into_inner());
        s.rung = false;
        Ok(!late.timed_out())
    }
    fn now(&self) -> Duration {
        self.started.map_or(Duration::ZERO, |s| s.elapsed())
    }
}
