//! The world around the requester.

use super::super::alone;
use super::super::model::{packets, Packet, WorkRequest};
use crate::msg::*;
use crate::records::ReqCtx;
use crate::roce::{req_rx, req_tx};
use crate::tb::{Counted, Fields, Sink, Source, Tb};
use ferric_abi::codes::{QpType, WrOpcode};
use std::collections::{HashMap, HashSet, VecDeque};

mod peer;
mod placement;
mod queue;

const QPS: usize = 8;
pub const TICK: u64 = 4;
/// Packets that may be under way without acknowledge.
pub const WINDOW: u32 = 512;

/// What goes wrong on purpose.
#[derive(Clone, Copy, Default)]
pub struct Trouble {
    /// Percent of packets and of acknowledges lost.
    pub loss: u32,
    /// Percent of expected packets answered by RNR NAK.
    pub rnr: u32,
    /// The peer refuses request `.0` with NAK code `.1`.
    pub refuse: Option<(usize, u8)>,
    /// Gathering a packet of this request fails.
    pub local: Option<usize>,
    /// Nothing arrives from this request on.
    pub cut: Option<usize>,
    /// Every packet is lost on its first way.
    pub deaf: bool,
    /// RNR NAK instead of the first acceptance of every packet, with this code.
    pub slow: Option<u8>,
    /// Percent of acknowledges after which an older one arrives.
    pub echo: u32,
    /// The answer to request `.0` cannot be placed, with this status.
    pub misplaced: Option<(usize, u8)>,
    /// The answer to this request does not fit it, in way `.1`.
    pub odd: Option<(usize, u8)>,
    /// The key unit refuses this local operation.
    pub refused: Option<usize>,
}

/// A frame under way to the requester.
#[derive(Clone, Copy)]
struct Reply {
    at: u64,
    qp: usize,
    psn: u32,
    opcode: u8,
    syndrome: u8,
    length: u32,
    value: u64,
}

/// What the peer finds where an atomic of PSN `psn` goes.
fn found(psn: u32) -> u64 {
    u64::from(psn).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

pub struct Qp {
    pub kind: QpType,
    pub mtu: u32,
    pub trouble: Trouble,
    pub base_index: u16,
    pub wrs: Vec<WorkRequest>,
    next_psn: u32,
    truth: HashMap<u32, (usize, Packet)>,
    first_psn: u32,
    /// Where the acknowledges stand that have reached the requester.
    acked: u32,
    // Send queue
    pub fetch: usize,
    epoch: u8,
    pub parked: bool,
    /// How often it was told to go on.
    pub resumes: u32,
    pub flush: bool,
    // Peer
    epsn: u32,
    nak_sent: bool,
    unanswered: bool,
    /// PSNs that have been lost or put off once.
    tried: HashSet<u32>,
    /// `(wqe_index, status, opcode)` in order of arrival.
    pub cqes: Vec<(usize, u8, u8)>,
    pub rnr_naks: u32,
    /// Bytes of READs and atomics that placement has been told of, by request; done.
    placed: HashMap<usize, (u32, bool)>,
    /// READs and atomics whose last answer has been sent.
    answered: HashSet<usize>,
    /// Most requests of this kind that waited for their answers together.
    pub asked: u32,
    /// Local operations that the key unit was told of; done.
    worked: HashMap<usize, bool>,
    /// The order behind all its answers has come.
    hushed: bool,
}

/// A lock-granting table with two clients.
struct Store {
    lines: Vec<Vec<u32>>,
    owner: Vec<Option<usize>>,
    ports: Vec<(Sink, Source, Sink)>,
    /// Per client: id wanted and the cycle from which it may be granted.
    wants: [Option<(u32, u32, u64)>; 3],
}

pub struct World {
    pub tb: Tb,
    pub qps: Vec<Qp>,
    store: Store,
    pub latency: u64,
    /// Most cycles from the order to write an answer to its being written.
    pub write_latency: u64,
    ctx: Fields,
    wqe: Source,
    ops: Sink,
    frees: Sink,
    cmds: [Sink; 2],
    cqe_ports: [Sink; 2],
    rx: Source,
    tx_done: Source,
    pub error_in: Source,
    pub errors: Sink,
    pub events: Sink,
    cells: Sink,
    free_handles: Vec<u64>,
    /// Queue pair and request of each buffer in use.
    buffers: HashMap<u64, (usize, usize)>,
    gathering: VecDeque<Vec<u32>>,
    wire: VecDeque<(u64, usize, u32, bool)>,
    acks: VecDeque<Reply>,
    place: Sink,
    placed: Source,
    again: Sink,
    work: Sink,
    worked: Source,
    /// Answers of the key unit on their way.
    works: VecDeque<(u64, usize, usize)>,
    handle: Source,
    /// Buffers of work requests fetched again, and whose they are.
    lists: HashMap<u64, (usize, usize)>,
    free_lists: Vec<u64>,
    /// Acknowledges in the cell buffer.
    told: HashSet<u64>,
    /// READ responses in the cell buffer.
    held: HashMap<u64, Reply>,
    /// Reports of placement on their way.
    reports: VecDeque<(u64, Vec<u32>)>,
    /// Answers on their way to host memory: until when, of which queue pair.
    writes: VecDeque<(u64, usize)>,
    frames: u64,
    freed: u64,
    pub sent: u64,
    /// Packets ordered, by queue pair; what the two halves count.
    ordered: HashMap<usize, u64>,
    /// Round and PSN of the last order, by queue pair; how often the round changed, and how often the queue pair was told to go back.
    rounds: HashMap<usize, (u32, u32, u32)>,
    pub changes: HashMap<usize, u32>,
    /// How often it went back within a round.
    backs: HashMap<usize, u64>,
    rewinds: HashMap<usize, u32>,
    pub tx_stats: Counted,
    pub rx_stats: Counted,
    /// The peer keeps its acknowledges to itself.
    pub silent: bool,
}

impl World {
    pub fn new(seed: u64, stall: u32) -> World {
        let mut tb = Tb::with_seed("requester3", alone::<3, 11>(), seed);
        let port = |tb: &mut Tb, name: &str| {
            let rel = tb.sink_of(&format!("{name}$rel_"), &["id", "dirty", "data"], stall);
            let line = tb.source_of(&format!("{name}$line_"), &["tag", "fault", "data"], stall);
            // The store takes what is asked for beside a release only together with that.
            let acq = tb.sink_of(&format!("{name}$acq_"), &["id", "tag"], stall);
            acq.go_along(&rel);
            (acq, line, rel)
        };
        let ports = vec![port(&mut tb, "tx_ctx"), port(&mut tb, "rx_ctx$0"), port(&mut tb, "rx_ctx$1")];
        let ctx = Fields::of::<ReqCtx>();
        let store = Store { lines: vec![ctx.zero(); QPS], owner: vec![None; QPS], ports, wants: [None; 3] };
        let world = World {
            wqe: tb.source("s_wqe", stall),
            ops: tb.sink("m_op", stall),
            frees: tb.sink("m_free", stall),
            cmds: [tb.sink("tx_cmd", stall), tb.sink("rx_cmd", stall)],
            cqe_ports: [tb.sink("tx_cqe", stall), tb.sink("rx_cqe", stall)],
            rx: tb.source("s_rx", stall),
            tx_done: tb.source("s_tx_done", stall),
            error_in: tb.source("s_error", stall),
            errors: tb.sink("m_error", stall),
            events: tb.sink("m_async", stall),
            cells: tb.sink("m_cell", stall),
            place: tb.sink("m_place", stall),
            placed: tb.source("s_placed", stall),
            again: tb.sink("m_again", stall),
            work: tb.sink("m_work", stall),
            worked: tb.source("s_worked", stall),
            works: VecDeque::new(),
            handle: tb.source("s_again", stall),
            lists: HashMap::new(),
            free_lists: (0..4).collect(),
            told: HashSet::new(),
            held: HashMap::new(),
            reports: VecDeque::new(),
            writes: VecDeque::new(),
            tb,
            qps: Vec::new(),
            store,
            latency: 2,
            write_latency: 200,
            ctx,
            free_handles: (0..64).collect(),
            buffers: HashMap::new(),
            gathering: VecDeque::new(),
            wire: VecDeque::new(),
            acks: VecDeque::new(),
            frames: 0,
            freed: 0,
            sent: 0,
            ordered: HashMap::new(),
            rounds: HashMap::new(),
            changes: HashMap::new(),
            backs: HashMap::new(),
            rewinds: HashMap::new(),
            tx_stats: Counted::new("tx_stat", "tx_stat_function", req_tx::STATS),
            rx_stats: Counted::new("rx_stat", "rx_stat_function", req_rx::STATS),
            silent: false,
        };
        let mut world = world;
        world.tb.set("now", 0);
        world.tb.run(20);
        world
    }

    /// Makes queue pair number `qps.len()`. `pmtu` in IBTA encoding.
    pub fn add_qp(&mut self, kind: QpType, pmtu: u8, trouble: Trouble, extra: &[(&str, u128)]) -> usize {
        let n = self.qps.len();
        let (psn, index, epoch) = (self.tb.rng().next_u32() | 0xff_ff00, self.tb.rng().next_u32() as u16 | 0xfff0, self.tb.rng().next_u32() as u8);
        let psn = psn & 0xff_ffff;
        let line = &mut self.store.lines[n];
        *line = self.ctx.pack(&[
            ("state", 3),
            ("qp_type", kind as u128),
            ("pmtu", pmtu.into()),
            ("timeout", 7),
            ("retry_cnt", 7),
            ("rnr_retry", 7),
            ("retries_left", 7),
            ("rnr_left", 7),
            ("epoch", epoch.into()),
            ("scqn", 100 + n as u128),
            ("pd", 200 + n as u128),
            ("eqn", 150 + n as u128),
            ("function", 300 + n as u128),
            ("dest_qpn", 400 + n as u128),
            ("next_psn", psn.into()),
            ("una_psn", psn.into()),
            ("max_psn", psn.into()),
            ("una_wqe_psn", psn.into()),
            ("una_index", index.into()),
            ("next_index", index.into()),
            ("sent_index", index.into()),
            ("done_index", index.into()),
            ("max_rd_atomic", 16),
        ]);
        for (name, value) in extra {
            self.ctx.set(line, name, *value);
        }
        self.qps.push(Qp {
            kind,
            mtu: 128 << pmtu,
            trouble,
            base_index: index,
            wrs: Vec::new(),
            next_psn: psn,
            truth: HashMap::new(),
            first_psn: psn,
            acked: psn,
            fetch: 0,
            epoch,
            parked: false,
            resumes: 0,
            flush: false,
            epsn: psn,
            nak_sent: false,
            unanswered: false,
            tried: HashSet::new(),
            cqes: Vec::new(),
            rnr_naks: 0,
            placed: HashMap::new(),
            answered: HashSet::new(),
            asked: 0,
            worked: HashMap::new(),
            hushed: false,
        });
        n
    }

    pub fn post(&mut self, qp: usize, request: WorkRequest) {
        let q = &mut self.qps[qp];
        let list = packets(q.kind, &request, q.mtu, q.next_psn);
        q.next_psn = (q.next_psn + list.len() as u32) & 0xff_ffff;
        let number = q.wrs.len();
        q.truth.extend(list.into_iter().map(|packet| (packet.psn, (number, packet))));
        q.wrs.push(request);
    }

    pub fn field(&self, qp: usize, name: &str) -> u64 {
        self.ctx.get(&self.store.lines[qp], name) as u64
    }

    /// Writes a field as the control bus does: `false` while an engine has the line.
    pub fn set_field(&mut self, qp: usize, name: &str, value: u128) -> bool {
        let free = self.store.owner[qp].is_none();
        if free {
            self.ctx.set(&mut self.store.lines[qp], name, value);
        }
        free
    }

    /// Orders that placement has taken.
    pub fn orders(&self) -> u64 {
        self.place.taken()
    }

    /// Answers are on their way to host memory.
    pub fn writing(&self) -> bool {
        !self.writes.is_empty()
    }

    pub fn idle(&self) -> bool {
        self.store.wants == [None; 3]
            && self.store.owner.iter().all(Option::is_none)
            && self.buffers.is_empty()
            && self.gathering.is_empty()
            && self.wire.is_empty()
            && self.acks.is_empty()
            && self.frames == self.freed
            && self.reports.is_empty()
            && self.lists.len() <= 1
            && self.works.is_empty()
            && self.worked.pending() == 0
    }

    /// What is counted is the queue pair's function's, and every packet is counted by the time that its order shows.
    fn counts(&mut self) {
        self.tx_stats.see(&self.tb);
        self.rx_stats.see(&self.tb);
        let known = 300..300 + self.qps.len() as u64;
        // An answer to a queue pair that does not exist is nobody's.
        let strange = self.tx_stats.events.keys().chain(self.rx_stats.events.keys()).find(|key| !known.contains(&key.0) && **key != (0, "bad_ack"));
        assert_eq!(strange, None, "events of nobody's");
        for (qp, ordered) in &self.ordered {
            let counted = self.tx_stats.events.get(&(300 + *qp as u64, "tx_packets"));
            assert!(counted.is_some_and(|n| n >= ordered), "{ordered} packets of queue pair {qp}, counted: {counted:?}");
        }
    }

    /// One cycle of everything.
    pub fn step(&mut self) {
        let cycle = self.tb.cycles();
        if cycle % TICK == 0 {
            self.tb.set("now", cycle / TICK);
        }
        self.tb.cycle();
        self.counts();
        self.contexts();
        self.commands();
        self.offer();
        self.gather();
        self.peer();
        self.placement();
        self.keys();
        for sink in &self.cqe_ports {
            while let Some(cqe) = sink.pop() {
                let f = Fields::of::<CqeReq>();
                let qp = f.get(&cqe, "qpn") as usize;
                let q = &mut self.qps[qp];
                assert_eq!((f.get(&cqe, "cqn"), f.get(&cqe, "function")), (100 + qp as u128, 300 + qp as u128));
                let number = (f.get(&cqe, "wqe_index") as u16).wrapping_sub(q.base_index) as usize;
                let status = f.get(&cqe, "status");
                // After a completion of any other status the buffers are the program's, whichever request's they were.
                let late = self.writes.iter().find(|w| w.1 == qp && status != 0);
                assert!(late.is_none(), "request {number} of queue pair {qp} ends with {status}, an answer is written {late:?} at {cycle}");
                assert!(status != 0 || !q.wrs[number].asks() || q.placed.get(&number).is_some_and(|p| p.1), "request {number} is done before its bytes are there");
                q.cqes.push((number, f.get(&cqe, "status") as u8, f.get(&cqe, "opcode") as u8));
            }
        }
        while let Some(cell) = self.cells.pop() {
            let f = Fields::of::<CellRead>();
            assert_eq!((f.get(&cell, "free"), f.get(&cell, "len")), (1, 0));
            assert!(self.told.remove(&(f.get(&cell, "handle") as u64)), "a frame that is nobody's");
            self.freed += 1;
        }
    }

    /// The key unit: each local operation comes once, an invalidation when all before it is complete.
    fn keys(&mut self) {
        let cycle = self.tb.cycles();
        if let Some(work) = self.work.pop() {
            let f = Fields::of::<MrWork>();
            let get = |name: &str| f.get(&work, name);
            let qp = get("qpn") as usize;
            let index = get("index") as u16;
            let number = index.wrapping_sub(self.qps[qp].base_index) as usize;
            let wr = self.qps[qp].wrs[number].clone();
            let register = wr.opcode == WrOpcode::RegMr;
            assert!(wr.is_local() && self.qps[qp].worked.insert(number, false).is_none(), "request {number} of queue pair {qp} executed twice");
            assert_eq!((get("register"), get("pd"), get("function")), (register.into(), 200 + qp as u128, 300 + qp as u128));
            assert_eq!(get("key") as u32, if register { wr.rkey } else { wr.imm });
            if register {
                assert_eq!((get("start") as u64, get("table") as u64, get("length") as u64), (wr.raddr, wr.operands.0, wr.operands.1));
                assert_eq!(get("access") as u32, wr.imm >> 1 & 15);
            } else {
                assert_eq!(self.field(qp, "done_index") as u16, index, "invalidated before all is complete");
            }
            if wr.fence {
                let q = &self.qps[qp];
                assert!(q.wrs[..number].iter().enumerate().all(|(n, wr)| !wr.asks() || q.placed.get(&n).is_some_and(|p| p.1)), "passed a fence");
            }
            // Long enough now and then for the queue pair to go back meanwhile.
            let most = if self.tb.rng().percent(25) { 3000 } else { 60 };
            let wait = self.tb.rng().range(1, most);
            self.works.push_back((cycle + wait, qp, number));
        }
        if let Some((at, qp, number)) = self.works.front().copied() {
            if at <= cycle {
                self.works.pop_front();
                let q = &mut self.qps[qp];
                let status = if q.trouble.refused == Some(number) { 6 } else { 0xfe };
                q.worked.insert(number, status != 6);
                let index = q.base_index.wrapping_add(number as u16);
                self.worked.push(Fields::of::<TxDone>().pack(&[("qpn", qp as u128), ("wqe_index", index.into()), ("status", status)]));
            }
        }
    }

    /// A random request of up to `most` packets.
    pub fn random(&mut self, qp: usize, most: u64) -> WorkRequest {
        let (kind, mtu) = (self.qps[qp].kind, self.qps[qp].mtu);
        let rng = self.tb.rng();
        let opcode = match (kind, rng.below(11)) {
            (_, 0) => WrOpcode::Nop,
            (QpType::Rc | QpType::Uc, 10) => {
                if rng.percent(50) {
                    WrOpcode::LocalInv
                } else {
                    WrOpcode::RegMr
                }
            }
            (QpType::Rc, 9) => WrOpcode::SendInv,
            (QpType::Raw, _) | (_, 1..=2) => WrOpcode::Send,
            (QpType::Ud, _) | (_, 3..=4) => WrOpcode::SendImm,
            (_, 5..=6) => WrOpcode::Write,
            _ => WrOpcode::WriteImm,
        };
        let limit = match kind {
            QpType::Rc | QpType::Uc => most * u64::from(mtu),
            QpType::Ud => mtu.into(),
            QpType::Raw => 8000,
        };
        let length = if kind == QpType::Raw { rng.range(1, limit) } else { rng.below(3).min(1) * rng.range(0, limit) };
        // Whole packets now and then.
        let length = if kind != QpType::Raw && rng.percent(25) { length - length % u64::from(mtu) } else { length };
        WorkRequest {
            opcode,
            signaled: rng.percent(60),
            solicited: rng.percent(30),
            imm: rng.next_u32(),
            raddr: rng.next_u64(),
            rkey: rng.next_u32(),
            length: length as u32,
            operands: (rng.next_u64(), rng.next_u64()),
            fence: false,
        }
    }

    /// The same with READs, atomics, FLUSHes and ATOMIC WRITEs among them.
    pub fn random_asking(&mut self, qp: usize, most: u64) -> WorkRequest {
        let wr = self.random(qp, most);
        let opcode = match self.tb.rng().below(10) {
            0..=1 => WrOpcode::Read,
            2 => WrOpcode::Flush,
            3 => WrOpcode::AtomicWrite,
            4 => WrOpcode::CompareSwap,
            5 => WrOpcode::FetchAdd,
            _ => wr.opcode,
        };
        let length = match opcode {
            WrOpcode::CompareSwap | WrOpcode::FetchAdd => 8,
            WrOpcode::Flush | WrOpcode::AtomicWrite => 0,
            _ => wr.length,
        };
        WorkRequest { opcode, length, fence: self.tb.rng().percent(10), ..wr }
    }

    /// Steps until `done`, which is asked now and then.
    pub fn run_until(&mut self, limit: u64, mut done: impl FnMut(&World) -> bool) {
        let start = self.tb.cycles();
        while !done(self) {
            assert!(self.tb.cycles() - start < limit, "nothing came of it in {limit} cycles: {}", self.describe());
            (0..8).for_each(|_| self.step());
        }
    }

    pub fn describe(&self) -> String {
        let line = |(n, q): (usize, &Qp)| {
            format!(
                "\nqp {n}: {} requests from {}, fetch {}, epoch {}, parked {}, epsn {:#x}, {} cqes, {:?}",
                q.wrs.len(),
                q.base_index,
                q.fetch,
                q.epoch,
                q.parked,
                q.epsn,
                q.cqes.len(),
                self.ctx.unpack(&self.store.lines[n])
            )
        };
        let lines: String = self.qps.iter().enumerate().map(line).collect();
        let answers = format!(
            "{} frames waiting, {} of READs, {} lists in use; work requests asked for {}, given {}; orders {}; reports {} + {}",
            self.rx.pending(),
            self.held.len(),
            self.lists.len(),
            self.again.taken(),
            self.handle.taken(),
            self.place.taken(),
            self.reports.len(),
            self.placed.pending()
        );
        format!(
            "{} buffers, {} gathering, {} on the wire, frames {}/{}, {answers}, owners {:?}, wants {:?}, wqe {}{lines}",
            self.buffers.len(),
            self.gathering.len(),
            self.wire.len(),
            self.freed,
            self.frames,
            self.store.owner,
            self.store.wants,
            self.wqe.pending()
        )
    }
}
