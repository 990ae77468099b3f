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
    /// The answer to request `.0` cannot be placed, with this status.
    pub misplaced: Option<(usize, u8)>,
    /// The answer to this request does not fit it, in way `.1`.
    pub odd: Option<(usize, u8)>,
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
    /// Most requests of this kind that were on their way together.
    pub asked: u32,
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
        let ports = vec![port(&mut tb, "tx_ctx"), port(&mut tb, "rx_ctx$0"), port(&mut tb, "rx_ctx$1")];
        let ctx = Fields::of::<ReqCtx>();
        let store = Store { lines: vec![ctx.zero(); QPS], owner: vec![None; QPS], ports, wants: [None; 3] };
        let world = World {
            wqe: tb.source("s_wqe", stall), ops: tb.sink("m_op", stall), frees: tb.sink("m_free", stall),
            cmds: [tb.sink("tx_cmd", stall), tb.sink("rx_cmd", stall)],
            cqe_ports: [tb.sink("tx_cqe", stall), tb.sink("rx_cqe", stall)],
            rx: tb.source("s_rx", stall), tx_done: tb.source("s_tx_done", stall), error_in: tb.source("s_error", stall),
            errors: tb.sink("m_error", stall), events: tb.sink("m_async", stall), cells: tb.sink("m_cell", stall),
            place: tb.sink("m_place", stall), placed: tb.source("s_placed", stall), again: tb.sink("m_again", stall), handle: tb.source("s_again", stall),
            lists: HashMap::new(), free_lists: (0..4).collect(), told: HashSet::new(), held: HashMap::new(), reports: VecDeque::new(),
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
            ("una_index", index.into()), ("next_index", index.into()), ("sent_index", index.into()), ("done_index", index.into()), ("max_rd_atomic", 16)]);
        for (name, value) in extra {
            self.ctx.set(line, name, *value);
        }
        self.qps.push(Qp { kind, mtu: 128 << pmtu, trouble, base_index: index, wrs: Vec::new(), next_psn: psn, truth: HashMap::new(), first_psn: psn, acked: psn, fetch: 0, epoch,
            parked: false, flush: false, epsn: psn, nak_sent: false, unanswered: false, tried: HashSet::new(), cqes: Vec::new(), rnr_naks: 0, placed: HashMap::new(), asked: 0 });
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
        self.store.wants == [None; 3] && self.store.owner.iter().all(Option::is_none) && self.buffers.is_empty()
            && self.gathering.is_empty() && self.wire.is_empty() && self.acks.is_empty() && self.frames == self.freed && self.reports.is_empty()
            && self.lists.len() <= 1
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
        self.placement();
        for sink in &self.cqe_ports {
            while let Some(cqe) = sink.pop() {
                let f = Fields::of::<CqeReq>();
                let qp = f.get(&cqe, "qpn") as usize;
                let q = &mut self.qps[qp];
                assert_eq!((f.get(&cqe, "cqn"), f.get(&cqe, "function")), (100 + qp as u128, 300 + qp as u128));
                let number = (f.get(&cqe, "wqe_index") as u16).wrapping_sub(q.base_index) as usize;
                let status = f.get(&cqe, "status");
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

    fn contexts(&mut self) {
        let cycle = self.tb.cycles();
        for client in 0..3 {
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
            head.set_opcode(request.opcode as u8).set_signaled(request.signaled).set_solicited(request.solicited).set_num_sge(1).set_fence(request.fence)
                .set_dest_low(400 + qp as u16).set_dest_high(0xa5)
                .set_imm(request.imm).set_raddr(request.raddr).set_rkey(request.rkey).set_length(request.length);
            let f = Fields::of::<SqWqe>();
            let index = q.base_index.wrapping_add(q.fetch as u16);
            let mut wqe = f.pack(&[("qpn", qp as u128), ("index", index.into()), ("epoch", q.epoch.into()), ("handle", handle.into()), ("flush", q.flush.into())]);
            let words: Vec<u32> = head.0.chunks(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            f.set_words(&mut wqe, "head", &words);
            let operands = u128::from(request.operands.1) << 64 | u128::from(request.operands.0);
            f.set(&mut wqe, "sge", operands);
            f.set(&mut wqe, "more", !operands);
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
            atomic: (get("has_atomic") == 1).then(|| (get("raddr") as u64, get("rkey") as u32, get("operand") as u64, get("compare") as u64)),
            solicited: get("solicited") == 1, last: truth.last };
        assert_eq!(&seen, truth, "request {number} of queue pair {qp}");
        let reliable = q.kind == QpType::Rc;
        let flight = psn.wrapping_sub(q.acked) & 0xff_ffff;
        let asks = q.wrs.iter().any(WorkRequest::asks);
        assert!(asks || !reliable || flight < WINDOW || flight >> 23 == 1, "{flight} packets not acknowledged");
        let datagram = q.kind == QpType::Ud;
        let dest = if datagram { 0xa5_0000 } else { 0 } + 400 + qp as u128;
        assert_eq!((get("function"), get("pd"), get("dest_qpn"), get("has_deth")), (300 + qp as u128, 200 + qp as u128, dest, datagram.into()));
        if datagram {
            // Address and Q_Key as posted, the first entry behind the address.
            let wr = &q.wrs[*number];
            let operands = u128::from(wr.operands.1) << 64 | u128::from(wr.operands.0);
            assert_eq!((get("raddr") as u64, get("rkey") as u32, get("compare") << 64 | get("operand")), (wr.raddr, wr.rkey, operands));
            assert_eq!(get("sge"), !operands);
        }
        assert_eq!(get("wqe_index") as u16, q.base_index.wrapping_add(*number as u16));
        assert!(!truth.last || if reliable { get("ack_req") == 1 } else { get("notify") == 1 });
        assert!(!reliable || get("notify") == 0);
        if q.wrs[*number].fence {
            let behind = q.wrs[..*number].iter().enumerate().filter(|(_, wr)| wr.asks()).find(|(n, _)| !q.placed.get(n).is_some_and(|p| p.1));
            assert!(behind.is_none(), "request {number} of queue pair {qp} has passed a fence");
        }
        if q.wrs[*number].asks() {
            let out = q.wrs[..*number].iter().enumerate().filter(|(n, wr)| wr.asks() && !q.placed.get(n).is_some_and(|p| p.1)).count() as u32 + 1;
            assert!(u128::from(out) <= self.ctx.get(&self.store.lines[qp], "max_rd_atomic"), "{out} READs and atomics outstanding");
            self.qps[qp].asked = self.qps[qp].asked.max(out);
        }
        let q = &self.qps[qp];
        let number = &q.truth[&psn].0;
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
        let at = self.acks.back().map_or(0, |last| last.at).max(self.tb.cycles() + delay);
        let reply = Reply { at, qp, psn: psn & 0xff_ffff, opcode: 0x11, syndrome, length: 0, value: 0 };
        self.acks.push_back(reply);
        let echo = self.qps[qp].trouble.echo;
        if syndrome < 0x20 && self.tb.rng().percent(echo) {
            // An old acknowledge overtaken by this one: between the first of all and this.
            let age = u64::from(psn.wrapping_sub(self.qps[qp].first_psn) & 0xff_ffff);
            let back = self.tb.rng().range(0, age.min(300)) as u32;
            self.acks.push_back(Reply { at: at + 1, psn: psn.wrapping_sub(back) & 0xff_ffff, ..reply });
        }
    }

    /// The answer to the READ or atomic that begins with `psn`.
    fn respond(&mut self, qp: usize, psn: u32) {
        let q = &self.qps[qp];
        let (number, packet) = q.truth[&psn].clone();
        let mtu = q.mtu;
        let odd = q.trouble.odd.filter(|o| o.0 == number).map(|o| o.1);
        let loss = q.trouble.loss;
        let left = packet.reth.map_or(8, |reth| reth.2);
        let count = left.div_ceil(mtu).max(1);
        for n in 0..count {
            let (first, last) = (n == 0, n + 1 == count);
            let mut reply = Reply {
                at: 0, qp, psn: (psn + n) & 0xff_ffff, syndrome: 0x1f, value: found(psn),
                opcode: match (first, last) { (true, true) => 0x10, (true, false) => 0x0d, (false, false) => 0x0e, (false, true) => 0x0f },
                length: if last { left - n * mtu } else { mtu },
            };
            if packet.atomic.is_some() {
                (reply.opcode, reply.length) = (0x12, 0);
            }
            match odd {
                Some(1) if packet.atomic.is_some() => reply.opcode = 0x10,
                Some(1) if first => reply.opcode = 0x0e,
                Some(2) => reply.syndrome = 0x61,
                Some(3) => reply.length += 1,
                _ => {}
            }
            if self.tb.rng().percent(loss) {
                continue;
            }
            let delay = self.tb.rng().range(10, 120);
            reply.at = self.acks.back().map_or(0, |last| last.at).max(self.tb.cycles() + delay);
            self.acks.push_back(reply);
        }
    }

    /// Placement and the second fetch of work requests.
    fn placement(&mut self) {
        let (fp, fa, fr) = (Fields::of::<PlaceOp>(), Fields::of::<WqeAgain>(), Fields::of::<ReadDone>());
        if !self.free_lists.is_empty() {
            if let Some(want) = self.again.pop() {
                let qp = fa.get(&want, "qpn") as usize;
                let number = (fa.get(&want, "index") as u16).wrapping_sub(self.qps[qp].base_index) as usize;
                assert!(self.qps[qp].wrs[number].asks());
                let handle = self.free_lists.pop().expect("just seen");
                self.lists.insert(handle, (qp, number));
                self.handle.push(Fields::of::<WqeHandle>().pack(&[("handle", handle.into())]));
            }
        }
        while let Some(order) = self.place.pop() {
            let get = |name: &str| fp.get(&order, name);
            let frame = (get("has_frame") == 1).then(|| {
                self.freed += 1;
                self.held.remove(&(get("handle") as u64)).expect("a frame of a READ response")
            });
            if get("kind") == 0 {
                continue;
            }
            assert_eq!(get("kind"), 7);
            let list = get("rq_handle") as u64;
            let (qp, number) = self.lists[&list];
            if get("free_rq") == 1 {
                self.lists.remove(&list);
                self.free_lists.insert(0, list);
            }
            if get("done") == 0 && get("pay_len") == 0 {
                assert!(get("free_rq") == 1 && frame.is_none());
                continue;
            }
            let q = &mut self.qps[qp];
            let request = &q.wrs[number];
            let (_, packet) = &q.truth[&(get("psn") as u32)];
            assert_eq!((get("qpn"), get("function"), get("pd")), (qp as u128, 300 + qp as u128, 200 + qp as u128));
            assert_eq!(get("msg_off"), packet.offset.into());
            if let Some(frame) = frame {
                assert_eq!((frame.qp, frame.psn, u128::from(frame.length), get("pay_off")), (qp, get("psn") as u32, get("pay_len"), 58));
            } else {
                assert_eq!((get("opcode"), get("operand") as u64, get("pay_len")), (0x12, found(get("psn") as u32), 8));
            }
            let entry = q.placed.entry(number).or_default();
            assert_eq!((u128::from(entry.0), entry.1), (get("msg_off"), false), "answers of request {number} out of order");
            entry.0 += get("pay_len") as u32;
            let done = get("done") == 1;
            let wrong = done && entry.0 != request.length;
            let status = match q.trouble.misplaced {
                _ if wrong => 7,
                Some((n, status)) if n == number => status,
                _ => 0,
            };
            if status == 0 && done {
                entry.1 = true;
            }
            if status != 0 || done {
                let at = self.tb.cycles() + self.tb.rng().range(1, 200);
                let at = self.reports.back().map_or(0, |r| r.0).max(at);
                self.reports.push_back((at, fr.pack(&[("qpn", qp as u128), ("psn", get("psn")), ("status", status.into())])));
            }
        }
        while self.reports.front().is_some_and(|r| r.0 <= self.tb.cycles()) {
            let (_, report) = self.reports.pop_front().expect("looked at");
            self.placed.push(report);
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
                let asks = q.wrs[number].asks();
                if let Some((_, code)) = q.trouble.refuse.filter(|refuse| refuse.0 == number) {
                    self.answer(qp, psn, 0x60 + code);
                } else if asks {
                    let packet = &q.truth[&psn].1;
                    let left = packet.reth.map_or(8, |reth| reth.2);
                    q.epsn = (epsn + left.div_ceil(q.mtu).max(1)) & 0xff_ffff;
                    q.nak_sent = false;
                    self.respond(qp, psn);
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
            } else if q.wrs[q.truth[&psn].0].asks() {
                self.respond(qp, psn);
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
        // No more frames than the cell buffer has names for.
        while self.frames - self.freed < 3000 && self.acks.front().is_some_and(|ack| ack.at <= cycle) {
            let reply = self.acks.pop_front().expect("looked at");
            self.reply(reply);
        }
    }

    /// Acknowledges and NAKs that have not reached the requester.
    pub fn acks_under_way(&self) -> usize {
        self.acks.len()
    }

    /// A response frame for the requester.
    pub fn receive(&mut self, qp: usize, psn: u32, opcode: u8, syndrome: u8) {
        self.reply(Reply { at: 0, qp, psn, opcode, syndrome, length: 0, value: 0 });
    }

    fn reply(&mut self, reply: Reply) {
        let Reply { qp, psn, opcode, syndrome, .. } = reply;
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
        self.rx.push(f.pack(&[("dest_qpn", qp as u128), ("opcode", opcode.into()), ("psn", psn.into()), ("aeth", aeth), ("handle", self.frames as u128 % 4096),
            ("pay_off", 58), ("pay_len", reply.length.into()), ("operand", reply.value.into())]));
        if matches!(opcode, 0x0d..=0x10) {
            self.held.insert(self.frames % 4096, reply);
        } else {
            self.told.insert(self.frames % 4096);
        }
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
        WorkRequest { opcode, signaled: rng.percent(60), solicited: rng.percent(30), imm: rng.next_u32(), raddr: rng.next_u64(), rkey: rng.next_u32(), length: length as u32, operands: (rng.next_u64(), rng.next_u64()), fence: false }
    }

    /// The same with READs and atomics among them.
    pub fn random_asking(&mut self, qp: usize, most: u64) -> WorkRequest {
        let wr = self.random(qp, most);
        let opcode = match self.tb.rng().below(10) {
            0..=3 => WrOpcode::Read,
            4 => WrOpcode::CompareSwap,
            5 => WrOpcode::FetchAdd,
            _ => wr.opcode,
        };
        let atomic = matches!(opcode, WrOpcode::CompareSwap | WrOpcode::FetchAdd);
        WorkRequest { opcode, length: if atomic { 8 } else { wr.length }, fence: self.tb.rng().percent(10), ..wr }
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
        let line = |(n, q): (usize, &Qp)| format!("\nqp {n}: {} requests from {}, fetch {}, epoch {}, parked {}, epsn {:#x}, {} cqes, {:?}", q.wrs.len(), q.base_index, q.fetch, q.epoch, q.parked, q.epsn, q.cqes.len(), self.ctx.unpack(&self.store.lines[n]));
        let lines: String = self.qps.iter().enumerate().map(line).collect();
        let answers = format!("{} frames waiting, {} of READs, {} lists in use; work requests asked for {}, given {}; orders {}; reports {} + {}", self.rx.pending(), self.held.len(),
            self.lists.len(), self.again.taken(), self.handle.taken(), self.place.taken(), self.reports.len(), self.placed.pending());
        format!("{} buffers, {} gathering, {} on the wire, frames {}/{}, {answers}, owners {:?}, wants {:?}, wqe {}{lines}", self.buffers.len(), self.gathering.len(), self.wire.len(), self.freed, self.frames, self.store.owner, self.store.wants, self.wqe.pending())
    }
}
