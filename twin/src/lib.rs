//! The functional twin: the card as a program, behind the gateware's own boundaries. Registers and doorbells come in by their BAR addresses, work requests, entries and
//! payload go through host memory, frames come and go as bytes, interrupts are requests for MSI-X vectors. It has no clock: what has been asked for is done when
//! [`Twin::poll`] is called, and only protocol timers know the time, in ticks. See README.md for what it has and what it cannot have.
//!
//! Its parts are the golden models that the gateware's blocks are tested against (`ferric-model`); tables and records are those of `ferric-abi`.
#![warn(missing_docs)]

mod acks;
mod admin;
mod ahead;
mod completions;
pub mod counters;
mod csr;
pub mod host;
mod loopback;
mod memory;
mod receive;
mod reply;
mod requester;
mod responder;
mod rings;
mod send;
mod tables;
mod timers;
mod tunnel;

use ahead::Ahead;
use counters::Counters;
use csr::Registers;
use ferric_abi::csr as regs;
use ferric_model::admin::interpreter::Model;
use ferric_model::admin::program::Sizes;
use ferric_model::net::echo::Station;
use ferric_model::net::stations::Listening;
use ferric_model::roce::responder::Act;
pub use host::Host;
use requester::Requester;
use responder::Responder;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use tables::Tables;

/// Cause of an error that a command has asked for.
pub(crate) const CAUSE_ADMIN: u8 = ferric_abi::codes::CqeStatus::WrFlush as u8;

/// Packets of a queue pair before the next one has its turn, of requests and of answers each.
const TURN: usize = 16;

/// How large a twin is: as the gateware of one width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bits of the data path that discovery tells of: 64 or 512. Tables are as large as that gateware's.
    pub width: usize,
    /// PCI functions, a power of two.
    pub functions: usize,
    /// It is the end of tunnels, as a card with the engine `vxlan` is.
    pub tunnels: bool,
}

impl Config {
    /// log2 of the tables' sizes; those of the gateware (`ferric_hdl::engines::sizes`).
    fn sizes(&self) -> Sizes {
        let functions = self.functions.max(1).ilog2();
        let wide = self.width > 64;
        // Two event queues of each function at least.
        let eq = if functions > 2 { functions + 1 } else { 5 };
        Sizes { qp: if wide { 10 } else { 8 }, cq: if wide { 10 } else { 8 }, mr: if wide { 12 } else { 10 }, pd: 8, eq, functions }
    }

    fn capabilities(&self) -> [u32; 4] {
        let s = self.sizes();
        let transports = 1 << regs::TRANSPORT_RC | 1 << regs::TRANSPORT_UC | 1 << regs::TRANSPORT_UD | 1 << regs::TRANSPORT_RAW;
        let features = [
            regs::FEATURE_WQE_DOORBELL,
            regs::FEATURE_READ_ATOMIC,
            regs::FEATURE_SRQ,
            regs::FEATURE_MULTICAST,
            regs::FEATURE_ADDRESSES,
            regs::FEATURE_PAUSE,
            regs::FEATURE_TWIN,
            regs::FEATURE_PLACEMENT,
        ];
        [
            s.qp | s.cq << 8 | s.mr << 16 | s.pd << 24,
            s.eq | s.functions << 8 | (self.width as u32 / 8) << 16 | 1 << 24,
            30 | 480 << 8 | 3 << 24,
            features.iter().fold(transports, |bits, f| bits | 1 << f) | u32::from(self.tunnels) << regs::FEATURE_TUNNEL,
        ]
    }
}

/// A card.
pub struct Twin {
    registers: Registers,
    /// `None` while it is at work.
    admin: Option<Model>,
    tables: Tables,
    /// log2 of the queue pair numbers in a function's share (`ferric_abi::special::special_queue_pair`).
    log_share: u32,
    /// What has been counted.
    pub counters: Counters,
    requesters: Vec<Requester>,
    responders: Vec<Responder>,
    station: Station,
    listening: Listening,
    raw_qpn: Option<u32>,
    /// Queue pairs that may have something to send, each once, and which they are.
    active: VecDeque<u32>,
    is_active: Vec<bool>,
    /// Queue pairs with an acknowledge that waits.
    answering: Vec<u32>,
    timers: BinaryHeap<Reverse<(u64, u32)>>,
    /// Time in ticks of 1.024 us.
    ticks: u64,
    /// Kept for its room.
    acts: Vec<Act>,
    /// Of the request at hand: kind of its first order and syndrome of its answer; whether a receive queue was empty; epoch and cause of its failure.
    verdict: Option<(u8, Option<u8>)>,
    empty: bool,
    /// The host has refused a write of the message at hand.
    broken: bool,
    failure: Option<(u8, u8)>,
    /// Payload of the turn at hand.
    ahead: Ahead,
    /// Frames to the card itself, not yet received, and through whose tunnel they would have come.
    looped: VecDeque<(ferric_model::net::networks::Through, Vec<u8>)>,
    /// Frames to the wire, not yet taken.
    pub sent: VecDeque<Vec<u8>>,
    /// Requests for interrupts (function, vector), not yet taken.
    pub interrupts: VecDeque<(u16, u16)>,
}

impl Twin {
    /// A card as after power-on.
    pub fn new(config: Config) -> Self {
        let sizes = config.sizes();
        let functions = 1usize << sizes.functions;
        let tables = Tables::new(&sizes);
        let (qps, stations) = (tables.req.len(), tables.station.len());
        Self {
            registers: Registers::new(functions, config.capabilities()),
            admin: Some(admin::engine(sizes, config.tunnels)),
            tables,
            log_share: sizes.qp - sizes.functions,
            counters: Counters::new(functions),
            requesters: (0..qps).map(|_| Requester::default()).collect(),
            responders: (0..qps).map(|_| Responder::default()).collect(),
            station: Station::new(functions),
            listening: Listening { own: vec![None; stations], promiscuous: false },
            raw_qpn: None,
            active: VecDeque::new(),
            is_active: vec![false; qps],
            answering: Vec::new(),
            timers: BinaryHeap::new(),
            ticks: 0,
            acts: Vec::new(),
            verdict: None,
            empty: false,
            broken: false,
            failure: None,
            ahead: Ahead::default(),
            looped: VecDeque::new(),
            sent: VecDeque::new(),
            interrupts: VecDeque::new(),
        }
    }

    /// Reads a register at its BAR address.
    pub fn read32(&self, address: u32) -> u32 {
        self.registers.read((address >> regs::WINDOW_BITS) as usize, address & ((1 << regs::WINDOW_BITS) - 1), self.ticks as u32)
    }

    /// Writes a register at its BAR address; what follows is done by [`Twin::poll`].
    pub fn write32(&mut self, address: u32, value: u32) {
        self.registers.write((address >> regs::WINDOW_BITS) as usize, address & ((1 << regs::WINDOW_BITS) - 1), value);
    }

    /// A posted write of 8 or 64 bytes to a doorbell, at its BAR address.
    pub fn doorbell(&mut self, host: &mut dyn Host, address: u32, bytes: &[u8]) {
        self.ring(host, (address >> regs::WINDOW_BITS) as u16, address & ((1 << regs::WINDOW_BITS) - 1), bytes);
    }

    /// It is tick `ticks`, for whatever follows.
    pub fn set_time(&mut self, ticks: u64) {
        self.ticks = ticks;
    }

    /// Does what there is to do, with about `packets` packets at most. True: something was done.
    pub fn poll(&mut self, host: &mut dyn Host, packets: usize) -> bool {
        let mut busy = self.run_admin(host) | self.run_timers(host) | self.receive_looped(host);
        let mut left = packets;
        while let Some(qpn) = self.active.pop_front() {
            busy = true;
            self.is_active[qpn as usize] = false;
            let more = self.reply_turn(host, qpn, TURN) | self.send_turn(host, qpn, TURN);
            if more {
                self.activate(qpn);
            }
            left = left.saturating_sub(TURN);
            if left == 0 {
                break;
            }
        }
        while let Some(qpn) = self.answering.pop() {
            self.send_acknowledge(qpn);
        }
        busy
    }

    /// There is nothing to do before the next deadline, unless somebody asks for something.
    pub fn idle(&self) -> bool {
        self.active.is_empty() && self.answering.is_empty() && self.registers.turn().is_none() && self.looped.is_empty() && self.sent.is_empty()
    }

    /// The queue pair may have something to send.
    fn activate(&mut self, qpn: u32) {
        if !std::mem::replace(&mut self.is_active[qpn as usize], true) {
            self.active.push_back(qpn);
        }
    }

    /// It has an acknowledge to send.
    fn activate_answers(&mut self, qpn: u32) {
        if !self.answering.contains(&qpn) {
            self.answering.push(qpn);
        }
    }
}
