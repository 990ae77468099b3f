//! The other side of the AXI ports in tests: byte-addressed host memory that answers late, out of order and sometimes
//! with an error.

use super::border;
use crate::tb::{Rng, Sink, Source, Tb};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// SLVERR.
const SLVERR: u32 = 2;

/// What a read of host memory returns: a function of function and address.
pub fn host_byte(function: u64, addr: u64) -> u8 {
    let x = (addr >> 3 ^ function << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> (8 * (addr & 7))) as u8
}

/// How the host behaves.
#[derive(Clone, Copy)]
pub struct Temper {
    /// Cycles from address to first data or response, drawn anew for each burst.
    pub latency: (u64, u64),
    /// Per mille of 64-byte lines that answer with an error.
    pub bad: u64,
    /// Reads: beats of the oldest so many bursts interleave at random; 1: bursts in order.
    pub shuffle: usize,
}

impl Temper {
    /// Whether the line of `addr` answers with an error.
    pub fn bad(&self, addr: u64) -> bool {
        (addr >> 6).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32 & 0x3ff < self.bad
    }

    /// Whether any line of `addr .. addr + len` does.
    pub fn any_bad(&self, addr: u64, len: u64) -> bool {
        (addr >> 6..=(addr + len - 1) >> 6).any(|line| self.bad(line << 6))
    }
}

/// One burst on its way.
struct Flight {
    due: u64,
    function: u64,
    addr: u64,
    beats: u64,
}

/// An address (words of addr, len, user), checked against the rules of AXI and of ours: address, beats, function.
fn burst(fields: &[Vec<u32>], lk: usize) -> (u64, u64, u64) {
    let (len, user) = (u64::from(fields[1][0]) + 1, fields[2][0].into());
    let addr = u64::from(fields[0][0]) | u64::from(fields[0][1]) << 32;
    assert_eq!(addr % (1 << lk), 0, "burst not aligned to a beat");
    assert!(len <= 256);
    assert_eq!(addr >> border(lk), (addr + (len << lk) - 1) >> border(lk), "burst across a border");
    (addr, len, user)
}

/// Answers `ar_*` on `r_*`.
pub struct ReadHost {
    ar: Sink,
    r: Source,
    k: usize,
    temper: Temper,
    flights: BTreeMap<u64, VecDeque<Flight>>,
    order: VecDeque<u64>,
    rng: Rng,
    /// Beats answered per function: tests give each command its own.
    pub answered: HashMap<u64, u64>,
    /// Cycle of each address.
    pub addresses: Vec<u64>,
    /// Most bursts in flight at once.
    pub most: usize,
    /// Beats that were asked for and not given yet.
    pub owed: u64,
    flying: usize,
}

impl ReadHost {
    pub fn new(tb: &mut Tb, k: usize, temper: Temper, stall: u32) -> ReadHost {
        let ar = tb.sink_of("ar_", &["addr", "len", "user", "id"], stall);
        let r = tb.source_of("r_", &["id", "data", "resp", "last"], stall);
        let rng = Rng::new(tb.rng().next_u64());
        ReadHost { ar, r, k, temper, rng, flights: BTreeMap::new(), order: VecDeque::new(), answered: HashMap::new(), addresses: Vec::new(), most: 0, owed: 0, flying: 0 }
    }

    /// Once per cycle.
    pub fn step(&mut self, now: u64) {
        while let Some(fields) = self.ar.pop_fields() {
            let id = fields[3][0].into();
            let (addr, beats, function) = burst(&fields, self.k.trailing_zeros() as usize);
            let due = now + self.rng.range(self.temper.latency.0, self.temper.latency.1);
            self.flights.entry(id).or_default().push_back(Flight { due, function, addr, beats });
            self.order.push_back(id);
            self.addresses.push(now);
            self.owed += beats;
            self.flying += 1;
            self.most = self.most.max(self.flying);
        }
        while self.r.pending() < 2 {
            let due: Vec<u64> = self.order.iter().take(self.temper.shuffle).copied().filter(|id| self.flights[id][0].due <= now).collect();
            if due.is_empty() {
                break;
            }
            let id = due[self.rng.below(due.len() as u64) as usize];
            self.beat(id);
        }
    }

    /// Functions of the bursts in flight.
    pub fn functions(&self) -> impl Iterator<Item = u64> + '_ {
        self.flights.values().flatten().map(|flight| flight.function)
    }

    fn beat(&mut self, id: u64) {
        let queue = self.flights.get_mut(&id).expect("an id in flight");
        let flight = &mut queue[0];
        let bad = self.temper.bad(flight.addr);
        let byte = |i: u64| if bad { 0xee } else { host_byte(flight.function, flight.addr + i) };
        let data: Vec<u32> = (0..self.k as u64 / 4).map(|w| (0..4).fold(0, |x, b| x | u32::from(byte(4 * w + b)) << (8 * b))).collect();
        let last = flight.beats == 1;
        let resp = if bad { SLVERR } else { 0 };
        self.r.push_fields(&[&[id as u32], &data, &[resp], &[last.into()]]);
        self.owed -= 1;
        *self.answered.entry(flight.function).or_default() += 1;
        flight.addr += self.k as u64;
        flight.beats -= 1;
        if last {
            queue.pop_front();
            if queue.is_empty() {
                self.flights.remove(&id);
            }
            let at = self.order.iter().position(|other| *other == id).expect("in flight");
            self.order.remove(at);
            self.flying -= 1;
        }
    }
}

/// Takes `aw_*` and `w_*`, answers on `b_*`, in order.
pub struct WriteHost {
    aw: Sink,
    w: Sink,
    b: Source,
    k: usize,
    temper: Temper,
    rng: Rng,
    /// Addresses whose data are still to come.
    open: VecDeque<Flight>,
    /// When each response is due, whether it is an error, and its function.
    due: VecDeque<(u64, bool, u64)>,
    error: bool,
    sent: Vec<u64>,
    /// Bytes written, until a test takes them out.
    pub memory: HashMap<u64, u8>,
    /// Functions in the order of the addresses.
    pub order: Vec<u64>,
    /// Cycles of the first address and of the last data beat.
    pub first: Option<u64>,
    pub last: u64,
}

impl WriteHost {
    pub fn new(tb: &mut Tb, k: usize, temper: Temper, stall: u32) -> WriteHost {
        let aw = tb.sink_of("aw_", &["addr", "len", "user"], stall);
        let w = tb.sink_of("w_", &["data", "strb", "last"], stall);
        let b = tb.source_of("b_", &["resp"], stall);
        let rng = Rng::new(tb.rng().next_u64());
        WriteHost { aw, w, b, k, temper, rng, open: VecDeque::new(), due: VecDeque::new(), error: false, sent: Vec::new(), memory: HashMap::new(), order: Vec::new(), first: None, last: 0 }
    }

    /// Once per cycle.
    pub fn step(&mut self, now: u64) {
        while let Some(fields) = self.aw.pop_fields() {
            let (addr, beats, function) = burst(&fields, self.k.trailing_zeros() as usize);
            self.first.get_or_insert(now);
            self.order.push(function);
            self.open.push_back(Flight { due: 0, function, addr, beats });
        }
        while !self.open.is_empty() {
            let Some(fields) = self.w.pop_fields() else { break };
            self.beat(&fields, now);
        }
        while self.due.front().is_some_and(|(due, _, _)| *due <= now) && self.b.pending() < 2 {
            let (_, error, function) = self.due.pop_front().expect("looked at");
            self.b.push_fields(&[&[if error { SLVERR } else { 0 }]]);
            self.sent.push(function);
        }
    }

    fn beat(&mut self, fields: &[Vec<u32>], now: u64) {
        let flight = &mut self.open[0];
        let strb = fields[1].iter().rev().fold(0u64, |x, w| x << 32 | u64::from(*w));
        for lane in (0..self.k).filter(|lane| strb >> lane & 1 == 1) {
            let byte = (fields[0][lane / 4] >> (8 * (lane % 4))) as u8;
            let addr = flight.addr + lane as u64;
            assert!(self.memory.insert(addr, byte).is_none(), "byte {addr:#x} written twice");
            self.error |= self.temper.bad(addr);
        }
        self.last = now;
        flight.addr += self.k as u64;
        flight.beats -= 1;
        assert_eq!(fields[2][0] == 1, flight.beats == 0, "w_last");
        if flight.beats == 0 {
            let due = now + self.rng.range(self.temper.latency.0, self.temper.latency.1);
            self.due.push_back((due, self.error, flight.function));
            self.error = false;
            self.open.pop_front();
        }
    }

    /// Responses the card has taken for `function`.
    pub fn answered(&self, function: u64) -> usize {
        self.sent[..self.b.taken() as usize].iter().filter(|f| **f == function).count()
    }
}
