//! The test plays the context store and the receive queues.
use super::super::model::{Act, Grant, Message, Packet, Qp};
use super::super::*;
use crate::roce::word::opened;
use crate::tb::{Counted, Fields, Sink, Source, Tb};
use std::collections::{BTreeMap, VecDeque};

pub const RAW_QPN: u32 = 11;

/// Context store with a chosen latency: each client one line, no line twice.
pub struct Store {
    pub layout: Fields,
    pub lines: BTreeMap<u32, Vec<u32>>,
    /// Per client: cycle in which the line is shown, id.
    pub due: [Option<(u64, u32)>; 2],
    pub held: [Option<u32>; 2],
    pub latency: (u64, u64),
    pub stall: u32,
}

pub struct Bench {
    pub tb: Tb,
    pub store: Store,
    pub stats: Counted,
    pub rx: Source,
    pub flush: Source,
    pub errors: [Source; 2],
    pub alloc: Sink,
    pub grant: Source,
    pub rq: Sink,
    pub op: Sink,
    pub error: Sink,
    /// What the receive queues answer, and when.
    pub answers: VecDeque<Grant>,
    /// Rings asked, and the rest of what was said to them: `qpn`, `again`, `index`, `taken`, `victim`, `loser`.
    pub asked: Vec<u32>,
    pub allocs: Vec<[u32; 6]>,
    pub answer_at: Option<u64>,
    /// Late allocations that have been made, and how many are told of in the next cycles.
    pub lates: u32,
    untold: u32,
    /// Atomics are over as soon as they have come.
    pub prompt: bool,
    /// Raw frames come through the tunnel of this function, or none of 0xFFF's, and are not the raw queue pair's.
    pub elsewhere: u16,
    /// Of frames that have not been taken: queue pair of an atomic.
    asks: VecDeque<Option<u32>>,
    over: BTreeMap<u32, u64>,
    taken: u64,
    /// Free buffers of a receive unit that is played in full, and what was asked of it and ordered, in order.
    pub pool: Option<Vec<u32>>,
    pub tape: Vec<Step>,
}

/// What a receive unit sees.
pub enum Step {
    /// `qpn`, `again`, `index`, `taken`, `victim`, `loser`, and the buffer granted.
    Alloc([u32; 6], u32),
    /// An order and its cycle.
    Order(Vec<u32>, u64),
}

pub fn write_qp(layout: &Fields, qp: &Qp) -> Vec<u32> {
    let m = qp.message.clone();
    let m = m.unwrap_or(Message { write: false, va: 0, rkey: 0, remaining: 0, bytes: 0 });
    layout.pack(&[
        ("state", qp.state.into()),
        ("qp_type", qp.qp_type.into()),
        ("pmtu", qp.pmtu.into()),
        ("min_rnr_timer", qp.min_rnr_timer.into()),
        ("repeat_nak", qp.repeat_nak.into()),
        ("remote_write", qp.remote_write.into()),
        ("remote_read", qp.remote_read.into()),
        ("remote_atomic", qp.remote_atomic.into()),
        ("remote_flush", qp.remote_flush.into()),
        ("ipv6", qp.ipv6.into()),
        ("vlan", qp.vlan.into()),
        ("nak_sent", qp.nak_sent.into()),
        ("rnr_sent", qp.rnr_sent.into()),
        ("ahead", qp.ahead.into()),
        ("in_msg", qp.message.as_ref().map_or(0, |m| 1 + u128::from(m.write))),
        ("epoch", qp.epoch.into()),
        ("rcqn", qp.rcqn.into()),
        ("pd", qp.pd.into()),
        ("function", qp.function.into()),
        ("pkey", qp.pkey.into()),
        ("qkey", qp.qkey.into()),
        ("dest_qpn", qp.dest_qpn.into()),
        ("epsn", qp.epsn.into()),
        ("msn", qp.msn.into()),
        ("va", m.va.into()),
        ("rkey", m.rkey.into()),
        ("remaining", m.remaining.into()),
        ("msg_bytes", m.bytes.into()),
        ("rq_handle", qp.receive.map_or(0, |(handle, _)| 0x80 | u128::from(handle))),
        ("rq_index", qp.receive.map_or(0, |(_, index)| index.into())),
        ("max_dest_rd_atomic", qp.max_dest_rd_atomic.into()),
        ("rq", qp.rq.into()),
        ("srq", qp.srq.into()),
        ("rq_pd", qp.rq_pd.into()),
    ])
}

impl Bench {
    pub fn new(name: &str, stall: u32, latency: (u64, u64)) -> Bench {
        let mut tb = Tb::new(name, Responder::<4, 5>::default());
        let store = Store { layout: Fields::of::<RspCtx>(), lines: BTreeMap::new(), due: [None; 2], held: [None; 2], latency, stall };
        tb.set("raw_qpn", u64::from(1 << 31 | RAW_QPN));
        tb.set("barrier", 0);
        tb.set("answered", 0);
        for port in ["acq_ready", "line_valid", "rel_ready", "line_tag", "line_fault"] {
            for client in 0..2 {
                tb.set(&format!("ctx${client}${port}"), 0);
            }
        }
        Bench {
            rx: tb.source("s_rx", stall),
            flush: tb.source("s_flush", stall),
            errors: [tb.source("s_error$0", stall), tb.source("s_error$1", stall)],
            alloc: tb.sink("m_alloc", stall),
            grant: tb.source("s_grant", 0),
            rq: tb.sink("m_rq", stall),
            op: tb.sink("m_op", stall),
            error: tb.sink("m_error", stall),
            stats: Counted::new("stat", "stat_function", STATS),
            tb,
            store,
            answers: VecDeque::new(),
            asked: Vec::new(),
            allocs: Vec::new(),
            answer_at: None,
            lates: 0,
            untold: 0,
            elsewhere: 0,
            prompt: true,
            asks: VecDeque::new(),
            over: BTreeMap::new(),
            taken: 0,
            pool: None,
            tape: Vec::new(),
        }
    }

    /// Resets the block: it counts atomics from nothing again.
    pub fn reset(&mut self) {
        self.tb.reset();
        self.over.clear();
        self.stats.events.clear();
    }

    /// Tells the block of the atomic that it took in the last cycle.
    fn prompt_over(&mut self) {
        self.tb.set("over", 0);
        while self.taken < self.rx.taken() {
            self.taken += 1;
            if let Some(qpn) = self.asks.pop_front().flatten() {
                let count = self.over.entry(qpn).or_default();
                *count += 1;
                self.tb.set("over", 1);
                self.tb.set("over_qpn", qpn.into());
                self.tb.set("over_count", *count % 512);
            }
        }
    }

    pub fn cycle(&mut self) {
        if self.prompt {
            self.prompt_over();
        }
        let now = self.tb.cycles();
        let stall = self.store.stall;
        // So many requests are there for sure; those under way may be counted or not.
        let posted = self.answers.iter().take_while(|answer| matches!(answer, Grant::Some(..))).count().min(15);
        let told = self.untold > 0 && !self.tb.rng().percent(stall);
        self.untold -= u32::from(told);
        self.tb.set("posted", posted as u64);
        self.tb.set("told", told.into());
        let shown = [0, 1].map(|i| self.store.due[i].filter(|(at, id)| *at <= now && self.store.held[1 - i] != Some(*id)).map(|(_, id)| id));
        // A line that the other one wants as well goes to one of them.
        let shown = [shown[0], shown[1].filter(|id| shown[0] != Some(*id))];
        for i in 0..2 {
            let ready = !self.tb.rng().percent(stall);
            self.tb.set(&format!("ctx${i}$acq_ready"), (ready && self.store.due[i].is_none()).into());
            self.tb.set(&format!("ctx${i}$rel_ready"), ready.into());
            self.tb.set(&format!("ctx${i}$line_valid"), shown[i].is_some().into());
            if let Some(id) = shown[i] {
                let line = self.store.lines.get(&id).cloned();
                self.tb.set(&format!("ctx${i}$line_fault"), line.is_none().into());
                let noise = self.tb.rng().words(512);
                self.tb.set_wide(&format!("ctx${i}$line_data"), line.unwrap_or(noise));
            }
        }
        self.tb.begin();
        for (i, shown) in shown.into_iter().enumerate() {
            let get = |tb: &mut Tb, port: &str| tb.get(&format!("ctx${i}${port}"));
            if get(&mut self.tb, "rel_valid") == 1 && get(&mut self.tb, "rel_ready") == 1 {
                let id = get(&mut self.tb, "rel_id") as u32;
                assert_eq!(self.store.held[i].take(), Some(id), "released what it does not hold");
                if get(&mut self.tb, "rel_dirty") == 1 {
                    self.store.lines.insert(id, self.tb.get_wide(&format!("ctx${i}$rel_data")));
                }
            }
            if get(&mut self.tb, "acq_valid") == 1 && get(&mut self.tb, "acq_ready") == 1 {
                let (low, high) = self.store.latency;
                let at = now + self.tb.rng().range(low, high);
                assert_eq!(self.store.held[i], None, "asked for a line with one in hand");
                self.store.due[i] = Some((at, get(&mut self.tb, "acq_id") as u32));
            }
            if let (Some(id), 1) = (shown, get(&mut self.tb, "line_ready")) {
                self.store.due[i] = None;
                self.store.held[i] = self.store.lines.contains_key(&id).then_some(id);
            }
        }
        self.tb.end();
        self.stats.see(&self.tb);
        // Receive queues.
        if let Some(words) = self.alloc.pop() {
            let layout = Fields::of::<RqAlloc>();
            let field = |name: &str| layout.get(&words, name) as u32;
            self.asked.push(field("ring"));
            self.allocs.push(["qpn", "again", "index", "taken", "victim", "loser"].map(field));
            if field("late") == 1 {
                assert!(matches!(self.answers.pop_front(), Some(Grant::Some(..))), "a late allocation is made when there are requests enough");
                assert_eq!((field("again"), field("taken")), (0, 0));
                (self.lates, self.untold) = (self.lates + 1, self.untold + 1);
                return;
            }
            let (low, high) = if stall == 0 { (0, 0) } else { (0, 30) };
            self.answer_at = Some(now + self.tb.rng().range(low, high));
        }
        if let Some(pool) = &mut self.pool {
            let layout = opened::<PlaceOp>();
            while let Some(op) = self.op.pop() {
                if layout.get(&op, "free_rq") == 1 {
                    pool.push(layout.get(&op, "rq_handle") as u32);
                }
                self.tape.push(Step::Order(op, now));
            }
            if self.answer_at.is_some_and(|at| at <= now) && !pool.is_empty() {
                let handle = pool.swap_remove(self.tb.rng().below(pool.len() as u64) as usize);
                let asked = self.allocs.pop().expect("it has asked");
                self.tape.push(Step::Alloc(asked, handle));
                // A request's index is its queue pair's number, so that the test knows it again.
                self.grant.push(Fields::of::<RqGrant>().pack(&[("ok", 1), ("handle", handle.into()), ("index", if asked[1] == 1 { 0xdead } else { asked[0].into() })]));
                self.answer_at = None;
            }
        } else if self.answer_at.is_some_and(|at| at <= now) {
            let layout = Fields::of::<RqGrant>();
            let message = match self.answers.pop_front().unwrap_or_default() {
                Grant::None => layout.pack(&[("handle", 5), ("index", 9)]),
                Grant::Dead => layout.pack(&[("dead", 1), ("handle", 5), ("index", 9)]),
                Grant::Some(handle, index) => layout.pack(&[("ok", 1), ("handle", handle.into()), ("index", index.into())]),
            };
            self.grant.push(message);
            self.answer_at = None;
        }
    }

    pub fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..400_000 {
            let before = (self.op.taken(), self.rq.taken(), self.error.taken());
            let pending = self.rx.pending() + self.flush.pending() + self.errors.iter().map(Source::pending).sum::<usize>();
            self.cycle();
            let idle = pending == 0 && self.store.due == [None; 2] && self.store.held == [None; 2];
            let same = before == (self.op.taken(), self.rq.taken(), self.error.taken());
            quiet = if idle && same && self.answer_at.is_none() { quiet + 1 } else { 0 };
            if quiet > 120 {
                return;
            }
        }
        panic!("the responder does not come to rest");
    }

    /// So many READs and atomics of `id` have been answered in life `epoch`.
    pub fn answered(&mut self, id: u32, epoch: u8, count: u32) {
        for (port, value) in [("answered", 1), ("answered_qpn", id), ("answered_epoch", epoch.into()), ("answered_count", count % 32)] {
            self.tb.set(port, value.into());
        }
        self.cycle();
        self.tb.set("answered", 0);
    }

    pub fn send(&mut self, p: &Packet) {
        let layout = Fields::of::<RxRequest>();
        let mut words = self.tb.rng().words(layout.width());
        let fields: [(&str, u128); 23] = [
            ("raw", p.raw.into()),
            // The raw queue pair is the physical function's.
            ("function", if p.raw { u128::from(self.elsewhere) } else { layout.get(&words, "function") }),
            ("handle", p.handle.into()),
            ("frame_len", p.frame_len.into()),
            ("pay_off", p.pay_off.into()),
            ("pay_len", p.pay_len.into()),
            ("pad", p.pad.into()),
            ("opcode", p.opcode.into()),
            ("ack_req", p.ack_req.into()),
            ("solicited", p.solicited.into()),
            ("pkey", p.pkey.into()),
            ("dest_qpn", p.qpn.into()),
            ("psn", p.psn.into()),
            ("va", p.va.into()),
            ("rkey", p.rkey.into()),
            ("dma_len", p.dma_len.into()),
            ("imm", p.imm.into()),
            ("operand", p.operand.into()),
            ("compare", p.compare.into()),
            ("qkey", p.qkey.into()),
            ("src_qpn", p.src_qpn.into()),
            ("ipv6", p.v6.into()),
            ("has_vlan", p.tag.into()),
        ];
        for (name, value) in fields {
            layout.set(&mut words, name, value);
        }
        let counted = !p.raw && matches!(p.opcode & 0x1f, 0x13 | 0x14) && p.qpn < 16;
        self.asks.push_back(counted.then_some(p.qpn));
        self.rx.push(words);
    }

    /// Compares everything sent since the last time with the model's acts.
    /// Packets were counted for whose they are.
    pub fn compare_counts(&self, requests: &BTreeMap<u64, u64>) {
        let seen: BTreeMap<u64, u64> = self.stats.events.iter().filter(|((_, name), _)| *name == "rx_requests").map(|((function, _), n)| (*function, *n)).collect();
        assert_eq!(&seen, requests, "seed {}", self.tb.seed());
    }

    pub fn compare(&mut self, acts: &[Act]) {
        let layout = opened::<PlaceOp>();
        let seed = self.tb.seed();
        for (n, act) in acts.iter().enumerate() {
            match act {
                Act::Place(order) => {
                    let fields = order.fields();
                    let got = self.op.pop().unwrap_or_else(|| panic!("act {n}: no order, expected {fields:?}, seed {seed}"));
                    let late = layout.get(&got, "late") == 1;
                    for (name, value) in &fields {
                        let seen = layout.get(&got, name);
                        // Placement has them from the grant.
                        if late && ["rq_handle", "rq_index"].contains(name) {
                            continue;
                        }
                        assert_eq!(seen, *value, "act {n} `{name}`: {:?}\nexpected {fields:?}", layout.unpack(&got));
                    }
                }
                Act::FlushQueue(qpn) => assert_eq!(self.rq.pop_u64(), Some(u64::from(*qpn)), "act {n}"),
                Act::Error { qpn, epoch, cause } => {
                    let error = Fields::of::<QpError>();
                    let got = self.error.pop().expect("the requester is told");
                    let fields = [("qpn", *qpn), ("epoch", (*epoch).into()), ("side", 1), ("cause", (*cause).into())];
                    for (name, value) in fields {
                        assert_eq!(error.get(&got, name), u128::from(value), "act {n}: {name}");
                    }
                }
            }
        }
        assert!(self.op.is_empty() && self.rq.is_empty() && self.error.is_empty(), "more came than expected");
    }
}
