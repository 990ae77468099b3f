//! The block with its neighbours: cells, egress, control bus; and the model beside it.
use super::frames::*;
use crate::engines::echo::model::{Outcome, Station};
use crate::engines::echo::{Echo, STATS};
use crate::host::testing::Control;
use crate::msg::{CellRead, InlineWrite, RxDesc, SlotGrant, SlotReq, SlotSeal};
use crate::net::rx::model::receive;
use crate::net::within::testing::{origin, words};
use crate::tb::{AxisSource, Fields, Sink, Source, Tb};
use ferric_abi::csr::{ADDRESSES, NEIGHBOUR_LINE};
use ferric_model::net::networks::{Network, Networks, Through};
use std::collections::{BTreeMap, VecDeque};

/// Cells of the buffer, and one for a frame that passes by.
const CELLS: usize = 513;
/// log2 of the bytes of the assembly buffer.
const BASE: u64 = 1 << 18;

/// A frame that has been sent, or is being put together.
struct Slot {
    base: usize,
    bytes: Vec<Option<u8>>,
}

pub struct Bench<const W: usize, const K: usize, const L: usize> {
    pub tb: Tb,
    pub desc_in: Source,
    desc_out: Sink,
    reads: Sink,
    beats: AxisSource,
    slot_in: Sink,
    slot_out: Source,
    inline: Sink,
    seal: Sink,
    control: Control,
    pub station: Station,
    pub now: u32,
    /// Frames in the cell buffer, by handle; each is freed or passed on once.
    cells: BTreeMap<u16, Vec<u8>>,
    /// Where the next frame comes from, and where those in the buffer came from.
    pub network: Network,
    networks: BTreeMap<u16, Network>,
    /// Whose the last frame is that has been sent.
    pub sender: Option<usize>,
    next_handle: u16,
    slots: BTreeMap<u64, Slot>,
    next_slot: u64,
    pub sent: VecDeque<Vec<u8>>,
    pub passed: VecDeque<Vec<u8>>,
    pub freed: u32,
    /// No slot is granted.
    pub egress_closed: bool,
    pub stat: BTreeMap<&'static str, u64>,
}

impl<const W: usize, const K: usize, const L: usize> Bench<W, K, L> {
    pub fn new(name: &str, stall: u32, seed: u64) -> Self {
        Self::of::<2, 6>(name, stall, seed)
    }

    /// With `2^LF` functions; a card has four.
    pub fn of<const LF: usize, const LA: usize>(name: &str, stall: u32, seed: u64) -> Self {
        let mut tb = Tb::with_seed(name, Echo::<W, K, L, LF, LA>::default(), seed);
        Bench {
            desc_in: tb.source("s_desc", stall),
            desc_out: tb.sink("m_desc", stall),
            reads: tb.sink("m_cell", stall),
            beats: tb.axis_source("s_cell", stall),
            slot_in: tb.sink("m_slot", stall),
            slot_out: tb.source("s_slot", stall),
            inline: tb.sink("m_inline", stall),
            seal: tb.sink("m_seal", stall),
            control: Control::new(&mut tb, stall),
            tb,
            station: Station::new(1 << LF),
            now: 5,
            cells: BTreeMap::new(),
            network: Network::default(),
            networks: BTreeMap::new(),
            sender: None,
            next_handle: 0,
            slots: BTreeMap::new(),
            next_slot: 0,
            sent: VecDeque::new(),
            passed: VecDeque::new(),
            freed: 0,
            egress_closed: false,
            stat: STATS.iter().map(|s| (*s, 0)).collect(),
        }
    }

    /// Cells in use.
    pub fn held(&self) -> usize {
        self.cells.len()
    }

    /// A cycle of the block and of what is around it.
    pub fn cycle(&mut self) {
        self.tb.set("now", self.now.into());
        self.tb.cycle();
        let stat = self.tb.get("stat");
        for (i, name) in STATS.iter().enumerate() {
            *self.stat.get_mut(name).expect("a counter") += stat >> i & 1;
        }
        let command = Fields::of::<CellRead>();
        while let Some(c) = self.reads.pop() {
            let get = |name| command.get(&c, name) as usize;
            let frame = self.cells.get(&(get("handle") as u16)).expect("a frame that is there");
            let (off, len) = (get("off"), get("len"));
            if len > 0 {
                assert!(off % 64 == 0 && len <= 64 && off + len <= frame.len(), "{len} bytes from {off} of {}", frame.len());
                self.beats.push(&frame[off..off + len]);
            }
            if get("free") == 1 {
                self.cells.remove(&(get("handle") as u16));
                self.freed += 1;
            } else {
                assert!(len > 0, "an empty read");
            }
        }
        let desc = Fields::of::<RxDesc>();
        while let Some(d) = self.desc_out.pop() {
            let frame = self.cells.remove(&(desc.get(&d, "handle") as u16)).expect("a frame that is there");
            assert_eq!(d, self.descriptor(&frame, desc.get(&d, "handle") as u16), "{frame:02x?}");
            self.passed.push_back(frame);
        }
        self.egress();
    }

    fn egress(&mut self) {
        let (slot, grant, write, seal) = (Fields::of::<SlotReq>(), Fields::of::<SlotGrant>(), Fields::of::<InlineWrite>(), Fields::of::<SlotSeal>());
        while let Some(s) = if self.egress_closed { None } else { self.slot_in.pop() } {
            let len = slot.get(&s, "frame_len") as usize;
            assert_eq!(s, slot.pack(&[("frame_len", len as u128), ("pay_len", len as u128), ("raw", 1)]));
            self.next_slot = (self.next_slot + 1) % 128;
            let base = self.tb.rng().below(BASE - 8192) as usize;
            self.slots.insert(self.next_slot, Slot { base, bytes: vec![None; len] });
            self.slot_out.push(grant.pack(&[("slot", self.next_slot.into()), ("base", base as u128)]));
        }
        while let Some(w) = self.inline.pop() {
            let (dst, len, data) = (write.get(&w, "dst") as usize, write.get(&w, "len") as usize, write.get_words(&w, "data"));
            assert!((1..=16).contains(&len));
            let open = self.slots.values_mut().last().expect("a slot");
            for (i, byte) in data.iter().flat_map(|word| word.to_le_bytes()).take(len).enumerate() {
                let old = open.bytes[dst + i - open.base].replace(byte);
                assert!(old.is_none(), "byte {} twice", dst + i - open.base);
            }
        }
        while let Some(s) = self.seal.pop() {
            let number = seal.get(&s, "slot") as u64;
            let function = seal.get(&s, "function");
            self.sender = Some(function as usize);
            assert_eq!(s, seal.pack(&[("slot", number.into()), ("function", function)]));
            let done = self.slots.remove(&number).expect("a slot");
            self.sent.push_back(done.bytes.into_iter().map(|b| b.expect("every byte is written")).collect());
        }
    }

    pub fn run(&mut self, cycles: usize) {
        (0..cycles).for_each(|_| self.cycle());
    }

    /// Which functions have a tunnel of their own, and through whose the next frames come.
    pub fn set_network(&mut self, tunnels: u64, through: Option<u16>) {
        self.set_networks(Networks::apart(tunnels), through.map_or(Through::None, Through::Whole));
    }

    pub fn set_networks(&mut self, networks: Networks, through: Through) {
        self.network = Network { through, networks };
        self.tb.set_wide("networks", words(&networks));
    }

    /// Percent of cycles in which no descriptor is taken.
    pub fn set_out_stall(&self, percent: u32) {
        self.desc_out.set_stall(percent);
    }

    /// Everything is forgotten, around the block too.
    pub fn reset(&mut self) {
        while self.desc_in.pending() + self.beats.pending() + self.slot_out.pending() > 0 {
            self.cycle();
        }
        self.tb.reset();
        self.run(1);
        (self.reads.len() + self.inline.len() > 0).then(|| panic!("something happens after a reset"));
        let functions = self.station.neighbours.len();
        self.station = Station::new(functions);
        self.cells.clear();
        self.slots.clear();
        self.passed.clear();
        self.sent.clear();
    }

    /// What `net/rx` says of a frame.
    fn descriptor(&self, frame: &[u8], handle: u16) -> Vec<u32> {
        let p = receive(frame, false).expect("a frame that passes");
        let network = self.networks[&handle];
        let fields: Vec<(&str, u128)> = vec![
            ("handle", handle.into()),
            ("frame_len", p.frame_len.into()),
            ("class", p.class.into()),
            ("ecn", p.ecn.into()),
            ("ipv6", p.ipv6.into()),
            ("has_vlan", p.has_vlan.into()),
            ("vlan_tci", p.vlan_tci.into()),
            ("raw", p.raw.into()),
            ("pay_len", p.pay_len.into()),
            ("pay_off", p.pay_off.into()),
            ("opcode", p.opcode.into()),
            ("psn", p.psn.into()),
            ("flow_hash", p.flow_hash.into()),
            // What software is told: any bits.
            ("src_qpn", ((p.flow_hash ^ u32::from(handle)) & 0xff_ffff).into()),
            ("kind", p.kind.into()),
            ("tunnel", (network.through != Through::None).into()),
            // A plain frame is the physical function's if that has no tunnel.
            origin(network.through, network.networks.get(0).is_none())[1],
        ];
        Fields::of::<RxDesc>().pack(&fields)
    }

    /// A frame arrives.
    pub fn push(&mut self, frame: &[u8]) {
        assert!(self.cells.len() < CELLS);
        while self.cells.contains_key(&self.next_handle) {
            self.next_handle = (self.next_handle + 1) % CELLS as u16;
        }
        self.cells.insert(self.next_handle, frame.to_vec());
        self.networks.insert(self.next_handle, self.network);
        let words = self.descriptor(frame, self.next_handle);
        self.desc_in.push(words);
        self.next_handle = (self.next_handle + 1) % CELLS as u16;
    }

    /// The access, and the word that was there. `None`: no such word.
    pub fn access(&mut self, line: u32, word: u32, write: Option<u32>) -> Option<u32> {
        self.control.ask(line, word, write);
        for _ in 0..20_000 {
            self.cycle();
            if let Some(answer) = self.control.answer() {
                return answer;
            }
        }
        panic!("no answer from the table");
    }

    fn write(&mut self, line: u32, bytes: [u8; 24]) {
        for (word, bytes) in bytes.chunks(4).enumerate() {
            let value = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
            assert!(self.access(line, word as u32, Some(value)).is_some());
            assert_eq!(self.access(line, word as u32, None), Some(value));
        }
    }

    /// Gives a function an address.
    pub fn set(&mut self, function: usize, number: usize, host: Host) {
        let line = function * ADDRESSES as usize + number;
        self.write(line as u32, host.address().0);
        self.station.addresses[line] = host.address();
    }

    /// A function seeks `ip` from its address `source`.
    pub fn seek(&mut self, function: usize, ip: u128, source: u8) {
        let seek = ferric_abi::context::NeighbourCtx([0; 24]).with_ip(ip).with_source(source).with_state(1);
        self.write(NEIGHBOUR_LINE + function as u32, seek.0);
        self.station.neighbours[function] = seek;
    }

    /// What the card knows of a search is what the model does.
    pub fn check_search(&mut self, function: usize) {
        let seek = self.station.neighbours[function];
        for (word, bytes) in seek.0.chunks(4).enumerate() {
            let value = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
            assert_eq!(self.access(NEIGHBOUR_LINE + function as u32, word as u32, None), Some(value), "word {word}");
        }
    }

    /// The hosts of `frames`, of two functions.
    pub fn set_up(&mut self) {
        self.set(0, 0, CARD4);
        self.set(0, 15, CARD6);
        self.set(1, 3, TAGGED4);
        self.set(1, 4, TAGGED6);
    }

    /// Runs until nothing is left to do.
    pub fn settle(&mut self, limit: usize) {
        let mut left = limit;
        while self.held() > 0 || self.desc_in.pending() > 0 || !self.slots.is_empty() {
            self.cycle();
            left -= 1;
            assert!(left > 0, "nothing came of {} frames, seed {}", self.held(), self.tb.seed());
        }
        self.run(3);
    }

    /// A frame, and all that it leads to, which is what the model says. `None`: of no kind that is looked at.
    pub fn exchange(&mut self, frame: &[u8]) -> Option<Outcome> {
        let (stat, freed) = (self.stat.clone(), self.freed);
        let expected = self.station.receive(frame, self.now, self.network);
        self.push(frame);
        self.settle(40_000 + 40 * frame.len());
        let (sent, passed) = (self.sent.pop_front(), self.passed.pop_front());
        let counted: Vec<_> = STATS.iter().filter(|s| self.stat[*s] != stat[*s]).copied().collect();
        let (name, answer, back) = match &expected {
            None => ("", None, true),
            Some(Outcome::PassedOn) => ("echo_passed_on", None, true),
            Some(Outcome::Limited) => ("echo_limited", None, false),
            Some(Outcome::Malformed) => ("echo_malformed", None, false),
            Some(Outcome::Found) => ("echo_found", None, false),
            Some(Outcome::Answered(name, answer, function)) => {
                assert_eq!(self.sender, Some(*function), "{frame:02x?}");
                (*name, Some(answer.clone()), false)
            }
        };
        let names: Vec<&str> = [name].into_iter().filter(|n| !n.is_empty()).collect();
        assert_eq!((counted, passed.is_some()), (names, back), "seed {}: {frame:02x?}", self.tb.seed());
        assert_eq!(sent, answer, "seed {}: {frame:02x?}", self.tb.seed());
        assert_eq!(self.freed - freed, u32::from(!back));
        assert!(self.sent.is_empty() && self.passed.is_empty());
        expected
    }
}
