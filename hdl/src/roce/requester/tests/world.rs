//! The world around the requester.

use super::super::model::{packets, Packet, WorkRequest};
use super::super::Requester;
use crate::msg::*;
use crate::records::ReqCtx;
use crate::roce::req_tx::OP_FREE;
use crate::tb::{Fields, Sink, Source, Tb};
use ferric_abi::codes::{QpType, WrOpcode};
use std::collections::{HashMap, HashSet, VecDeque};

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
}

/// A lock-granting table with two clients.
struct Store {
    lines: Vec<Vec<u32>>,
    owner: Vec<Option<usize>>,
    ports: Vec<(Sink, Source, Sink)>,
    /// Per client: id wanted and the cycle from which it may be granted.
    wants: [Option<(u32, u32, u64)>; 2],
}

pub struct World {
    pub tb: Tb,
    pub qps: Vec<Qp>,
    store: Store,
    pub latency: u64,
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
    acks: VecDeque<(u64, usize, u32, u8)>,
    frames: u64,
    freed: u64,
    pub sent: u64,
    /// The peer keeps its acknowledges to itself.
    pub silent: bool,
}

impl World {
    pub fn new(seed: u64, stall: u32) -> World {
        let mut tb = Tb::with_seed("requester3", Requester::<3, 10>::default(), seed);
        let port = |tb: &mut Tb, name: &str| {
            let acq = tb.sink_of(&format!("{name}$acq_"), &["id", "tag"], stall);
            let line = tb.source_of(&format!("{name}$line_"), &["tag", "fault", "data"], stall);
            let rel = tb.sink_of(&format!("{name}$rel_"), &["id", "dirty", "data"], stall);
            (acq, line, rel)
        };
        let ports = vec![port(&mut tb, "tx_ctx"), port(&mut tb, "rx_ctx")];
        let ctx = Fields::of::<ReqCtx>();
        let store = Store { lines: vec![ctx.zero(); QPS], owner: vec![None; QPS], ports, wants: [None; 2] };
        let world = World {
            wqe: tb.source("s_wqe", stall), ops: tb.sink("m_op", stall), frees: tb.sink("m_free", stall),
            cmds: [tb.sink("tx_cmd", stall), tb.sink("rx_cmd", stall)],
            cqe_ports: [tb.sink("tx_cqe", stall), tb.sink("rx_cqe", stall)],
            rx: tb.source("s_rx", stall), tx_done: tb.source("s_tx_done", stall), error_in: tb.source("s_error", stall),
            errors: tb.sink("m_error", stall), events: tb.sink("m_async", stall), cells: tb.sink("m_cell", stall),
            tb, qps: Vec::new(), store, latency: 2, ctx,
            free_handles: (0..64).collect(), buffers: HashMap::new(), gathering: VecDeque::new(), wire: VecDeque::new(),
            acks: VecDeque::new(), frames: 0, freed: 0, sent: 0, silent: false,
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
        *line = self.ctx.pack(&[("state", 3), ("qp_type", kind as u128), ("pmtu", pmtu.into()), ("timeout", 7), ("retry_cnt", 7), ("rnr_retry", 7),
            ("retries_left", 7), ("rnr_left", 7), ("epoch", epoch.into()), ("scqn", 100 + n as u128), ("pd", 200 + n as u128), ("function", 300 + n as u128),
            ("dest_qpn", 400 + n as u128), ("next_psn", psn.into()), ("una_psn", psn.into()), ("max_psn", psn.into()), ("una_wqe_psn", psn.into()),
            ("una_index", index.into()), ("next_index", index.into()), ("sent_index", index.into())]);
        for (name, value) in extra {
            self.ctx.set(line, name, *value);
        }
        self.qps.push(Qp { kind, mtu: 128 << pmtu, trouble, base_index: index, wrs: Vec::new(), next_psn: psn, truth: HashMap::new(), first_psn: psn, acked: psn, fetch: 0, epoch,
            parked: false, flush: false, epsn: psn, nak_sent: false, unanswered: false, tried: HashSet::new(), cqes: Vec::new(), rnr_naks: 0 });
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

    pub fn idle(&self) -> bool {
        self.store.wants == [None; 2] && self.store.owner.iter().all(Option::is_none) && self.buffers.is_empty()
            && self.gathering.is_empty() && self.wire.is_empty() && self.acks.is_empty() && self.frames == self.freed
    }

    /// One cycle of everything.
    pub fn step(&mut self) {
        let cycle = self.tb.cycles();
        if cycle % TICK == 0 {
            self.tb.set("now", cycle / TICK);
        }
        self.tb.cycle();
        self.contexts();
        self.commands();
        self.offer();
        self.gather();
        self.peer();
        for sink in &self.cqe_ports {
            while let Some(cqe) = sink.pop() {
                let f = Fields::of::<CqeReq>();
                let qp = f.get(&cqe, "qpn") as usize;
                let q = &mut self.qps[qp];
                assert_eq!((f.get(&cqe, "cqn"), f.get(&cqe, "function")), (100 + qp as u128, 300 + qp as u128));
                let number = (f.get(&cqe, "wqe_index") as u16).wrapping_sub(q.base_index) as usize;
                q.cqes.push((number, f.get(&cqe, "status") as u8, f.get(&cqe, "opcode") as u8));
            }
        }
        while let Some(cell) = self.cells.pop() {
            let f = Fields::of::<CellRead>();
            assert_eq!((f.get(&cell, "handle"), f.get(&cell, "free"), f.get(&cell, "len")), (self.freed as u128 % 4096, 1, 0));
            self.freed += 1;
        }
    }

    fn contexts(&mut self) {
        let cycle = self.tb.cycles();
        for client in 0..2 {
            let (acq, line, rel) = self.store.ports[client].clone();
            if let Some(got) = rel.pop_fields() {
                let id = got[0][0] as usize;
                assert_eq!(self.store.owner[id], Some(client), "released what was not held");
                self.store.owner[id] = None;
                if got[1][0] == 1 {
                    self.store.lines[id] = got[2].clone();
                } else {
                    assert_eq!(self.store.lines[id], got[2], "changed but not marked dirty");
                }
            }
            if let Some(got) = acq.pop_fields() {
                assert!(self.store.wants[client].is_none() && !self.store.owner.contains(&Some(client)), "one line at a time");
                let wait = self.tb.rng().range(0, self.latency);
                self.store.wants[client] = Some((got[0][0], got[1][0], cycle + wait));
            }
            if let Some((id, tag, from)) = self.store.wants[client] {
                if cycle >= from {
                    if id as usize >= self.qps.len() {
                        line.push_fields(&[&[tag], &[1], &self.ctx.zero()]);
                        self.store.wants[client] = None;
                    } else if self.store.owner[id as usize].is_none() {
                        self.store.owner[id as usize] = Some(client);
                        line.push_fields(&[&[tag], &[0], &self.store.lines[id as usize]]);
                        self.store.wants[client] = None;
                    }
                }
            }
        }
    }

    fn commands(&mut self) {
        let f = Fields::of::<SqCmd>();
        for sink in &self.cmds {
            while let Some(cmd) = sink.pop() {
                let q = &mut self.qps[f.get(&cmd, "qpn") as usize];
                let number = (f.get(&cmd, "index") as u16).wrapping_sub(q.base_index) as usize;
                let op = f.get(&cmd, "op");
                if op == 2 {
                    assert!(q.parked);
                } else {
                    assert_eq!(f.get(&cmd, "epoch") as u8, q.epoch.wrapping_add(1));
                    assert!(number <= q.wrs.len());
                    q.epoch = f.get(&cmd, "epoch") as u8;
                    q.fetch = number;
                }
                q.parked = op == 1;
                q.flush |= op == 3;
            }
        }
    }

    fn offer(&mut self) {
        let qp = self.tb.rng().below(self.qps.len() as u64) as usize;
        let burst = self.tb.rng().range(1, 8);
        if self.tb.rng().percent(70) {
            return;
        }
        for _ in 0..burst {
            let q = &mut self.qps[qp];
            if q.parked || q.fetch == q.wrs.len() || self.wqe.pending() > 8 {
                return;
            }
            let Some(handle) = self.free_handles.pop() else { return };
            let request = &q.wrs[q.fetch];
            let mut head = ferric_abi::host::WqeHead::default();
            head.set_opcode(request.opcode as u8).set_signaled(request.signaled).set_solicited(request.solicited).set_num_sge(1)
                .set_imm(request.imm).set_raddr(request.raddr).set_rkey(request.rkey).set_length(request.length);
            let f = Fields::of::<SqWqe>();
            let index = q.base_index.wrapping_add(q.fetch as u16);
            let mut wqe = f.pack(&[("qpn", qp as u128), ("index", index.into()), ("epoch", q.epoch.into()), ("handle", handle.into()), ("flush", q.flush.into())]);
            let words: Vec<u32> = head.0.chunks(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            f.set_words(&mut wqe, "head", &words);
            self.wqe.push(wqe);
            self.buffers.insert(handle, (qp, q.fetch));
            q.fetch += 1;
        }
    }

    fn free(&mut self, handle: u64) {
        assert!(self.buffers.remove(&handle).is_some(), "buffer {handle} freed twice");
        self.free_handles.insert(0, handle);
    }

    fn gather(&mut self) {
        let (fo, fd) = (Fields::of::<TxOp>(), Fields::of::<TxDone>());
        while let Some(free) = self.frees.pop_u64() {
            assert!(self.gathering.iter().all(|op| fo.get(op, "handle") != free.into()), "freed under the gatherer");
            self.free(free);
        }
        self.gathering.extend(self.ops.pop());
        if self.gathering.len() < 20 && self.tb.rng().percent(50) {
            return;
        }
        let Some(op) = self.gathering.pop_front() else { return };
        let get = |name: &str| fo.get(&op, name);
        let (qp, handle) = (get("qpn") as usize, get("handle") as u64);
        let owner = self.buffers[&handle];
        assert_eq!(owner.0, qp);
        if get("free") == 1 {
            self.free(handle);
        }
        if get("opcode") == OP_FREE.into() {
            assert_eq!(get("free"), 1);
            return;
        }
        self.sent += 1;
        let psn = get("psn") as u32;
        let q = &self.qps[qp];
        let (number, truth) = q.truth.get(&psn).unwrap_or_else(|| panic!("PSN {psn:#x} belongs to no request"));
        assert_eq!(*number, owner.1);
        let reth = (get("raddr") as u64, get("rkey") as u32, get("dma_len") as u32);
        let seen = Packet { psn, opcode: get("opcode") as u8, offset: get("pay_off") as u32, length: get("pay_len") as u32,
            reth: (get("has_reth") == 1).then_some(reth), imm: (get("has_imm") == 1).then_some(get("imm") as u32),
            solicited: get("solicited") == 1, last: truth.last };
        assert_eq!(&seen, truth, "request {number} of queue pair {qp}");
        let reliable = q.kind == QpType::Rc;
        let flight = psn.wrapping_sub(q.acked) & 0xff_ffff;
        assert!(!reliable || flight < WINDOW || flight >> 23 == 1, "{flight} packets not acknowledged");
        assert_eq!((get("function"), get("pd"), get("dest_qpn")), (300 + qp as u128, 200 + qp as u128, 400 + qp as u128));
        assert_eq!(get("wqe_index") as u16, q.base_index.wrapping_add(*number as u16));
        assert!(!truth.last || if reliable { get("ack_req") == 1 } else { get("notify") == 1 });
        assert!(!reliable || get("notify") == 0);
        let mut done = vec![("qpn", qp as u128), ("epoch", get("epoch")), ("psn", psn.into()), ("wqe_index", get("wqe_index"))];
        if q.trouble.local == Some(*number) {
            done.push(("status", 4));
            self.tx_done.push(fd.pack(&done));
        } else if reliable {
            let lost = q.trouble.cut.is_some_and(|from| *number >= from) || self.tb.rng().percent(q.trouble.loss);
            let q = &mut self.qps[qp];
            if !(lost || q.trouble.deaf && q.tried.insert(psn)) {
                let delay = self.tb.rng().range(10, 120);
                let at = self.wire.back().map_or(0, |last| last.0).max(self.tb.cycles() + delay);
                self.wire.push_back((at, qp, psn, get("ack_req") == 1));
            }
        } else if get("notify") == 1 {
            self.tx_done.push(fd.pack(&done));
        }
    }

    fn answer(&mut self, qp: usize, psn: u32, syndrome: u8) {
        let loss = self.qps[qp].trouble.loss;
        if self.tb.rng().percent(loss) {
            return;
        }
        let delay = self.tb.rng().range(10, 120);
        let at = self.acks.back().map_or(0, |last| last.0).max(self.tb.cycles() + delay);
        self.acks.push_back((at, qp, psn & 0xff_ffff, syndrome));
        let echo = self.qps[qp].trouble.echo;
        if syndrome < 0x20 && self.tb.rng().percent(echo) {
            // An old acknowledge overtaken by this one: between the first of all and this.
            let age = u64::from(psn.wrapping_sub(self.qps[qp].first_psn) & 0xff_ffff);
            let back = self.tb.rng().range(0, age.min(300)) as u32;
            self.acks.push_back((at + 1, qp, psn.wrapping_sub(back) & 0xff_ffff, syndrome));
        }
    }

    fn peer(&mut self) {
        let cycle = self.tb.cycles();
        while self.wire.front().is_some_and(|packet| packet.0 <= cycle) {
            let (_, qp, psn, ask) = self.wire.pop_front().expect("looked at");
            let rnr = self.tb.rng().percent(self.qps[qp].trouble.rnr);
            let q = &mut self.qps[qp];
            let ahead = psn.wrapping_sub(q.epsn) & 0xff_ffff;
            let epsn = q.epsn;
            if ahead == 0 {
                let number = q.truth[&psn].0;
                if let Some((_, code)) = q.trouble.refuse.filter(|refuse| refuse.0 == number) {
                    self.answer(qp, psn, 0x60 + code);
                } else if rnr || q.trouble.slow.is_some() && q.tried.insert(psn) {
                    q.rnr_naks += 1;
                    q.nak_sent = true;
                    let code = q.trouble.slow.unwrap_or(1);
                    self.answer(qp, psn, 0x20 + code);
                } else {
                    q.epsn = (epsn + 1) & 0xff_ffff;
                    q.nak_sent = false;
                    q.unanswered |= ask;
                }
            } else if ahead < 1 << 23 {
                // A gap: acknowledge before it, once. The loss of this NAK is made up for by the timer.
                if !q.nak_sent && !self.silent {
                    q.nak_sent = true;
                    self.answer(qp, epsn, 0x60);
                }
            } else {
                q.unanswered = true;
            }
        }
        for qp in 0..self.qps.len() {
            if self.qps[qp].unanswered && !self.silent && self.tb.rng().percent(20) {
                self.qps[qp].unanswered = false;
                let last = self.qps[qp].epsn.wrapping_sub(1);
                self.answer(qp, last, 0x1f);
            }
        }
        while self.acks.front().is_some_and(|ack| ack.0 <= cycle) {
            let (_, qp, psn, syndrome) = self.acks.pop_front().expect("looked at");
            self.receive(qp, psn, 0x11, syndrome);
        }
    }

    /// Acknowledges and NAKs that have not reached the requester.
    pub fn acks_under_way(&self) -> usize {
        self.acks.len()
    }

    /// A response frame for the requester.
    pub fn receive(&mut self, qp: usize, psn: u32, opcode: u8, syndrome: u8) {
        let q = self.qps.get_mut(qp).filter(|_| opcode == 0x11);
        if let Some(q) = q {
            let next = match syndrome {
                0..0x20 => psn.wrapping_add(1),
                _ => psn,
            } & 0xff_ffff;
            if next.wrapping_sub(q.acked) & 0xff_ffff < 1 << 23 {
                q.acked = next;
            }
        }
        let f = Fields::of::<RxDesc>();
        let aeth = u128::from(syndrome) << 24 | 0x123;
        self.rx.push(f.pack(&[("dest_qpn", qp as u128), ("opcode", opcode.into()), ("psn", psn.into()), ("aeth", aeth), ("handle", self.frames as u128 % 4096)]));
        self.frames += 1;
    }

    /// A random request of up to `most` packets.
    pub fn random(&mut self, qp: usize, most: u64) -> WorkRequest {
        let (kind, mtu) = (self.qps[qp].kind, self.qps[qp].mtu);
        let rng = self.tb.rng();
        let opcode = match (kind, rng.below(9)) {
            (_, 0) => WrOpcode::Nop,
            (QpType::Raw, _) | (_, 1..=2) => WrOpcode::Send,
            (QpType::Ud, _) | (_, 3..=4) => WrOpcode::SendImm,
            (_, 5..=6) => WrOpcode::Write,
            _ => WrOpcode::WriteImm,
        };
        let limit = match kind { QpType::Rc | QpType::Uc => most * u64::from(mtu), QpType::Ud => mtu.into(), QpType::Raw => 8000 };
        let length = if kind == QpType::Raw { rng.range(1, limit) } else { rng.below(3).min(1) * rng.range(0, limit) };
        // Whole packets now and then.
        let length = if kind != QpType::Raw && rng.percent(25) { length - length % u64::from(mtu) } else { length };
        WorkRequest { opcode, signaled: rng.percent(60), solicited: rng.percent(30), imm: rng.next_u32(), raddr: rng.next_u64(), rkey: rng.next_u32(), length: length as u32 }
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
        let line = |(n, q): (usize, &Qp)| format!("\nqp {n}: {} requests, fetch {}, parked {}, epsn {:#x}, {} cqes, {:?}", q.wrs.len(), q.fetch, q.parked, q.epsn, q.cqes.len(), self.ctx.unpack(&self.store.lines[n]));
        let lines: String = self.qps.iter().enumerate().map(line).collect();
        format!("{} buffers, {} gathering, {} on the wire, frames {}/{}{lines}", self.buffers.len(), self.gathering.len(), self.wire.len(), self.freed, self.frames)
    }
}
