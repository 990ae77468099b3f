//! The responder against its model; the test plays the context store and the receive queues.
use super::model::{self, Act, Grant, Message, Packet, Qp};
use super::*;
use crate::tb::{Fields, Rng, Sink, Source, Tb};
use std::collections::{BTreeMap, VecDeque};

const RAW_QPN: u32 = 11;

/// Context store with a chosen latency: each client one line, no line twice.
struct Store {
    layout: Fields,
    lines: BTreeMap<u32, Vec<u32>>,
    /// Per client: cycle in which the line is shown, id.
    due: [Option<(u64, u32)>; 2],
    held: [Option<u32>; 2],
    latency: (u64, u64),
    stall: u32,
}

struct Bench {
    tb: Tb,
    store: Store,
    rx: Source,
    flush: Source,
    errors: [Source; 2],
    alloc: Sink,
    grant: Source,
    rq: Sink,
    op: Sink,
    error: Sink,
    /// What the receive queues answer, and when.
    answers: VecDeque<Grant>,
    /// Rings asked.
    asked: Vec<u32>,
    answer_at: Option<u64>,
}

fn write_qp(layout: &Fields, qp: &Qp) -> Vec<u32> {
    let m = qp.message.clone();
    let m = m.unwrap_or(Message { write: false, va: 0, rkey: 0, remaining: 0, bytes: 0 });
    layout.pack(&[
        ("state", qp.state.into()),
        ("qp_type", qp.qp_type.into()),
        ("pmtu", qp.pmtu.into()),
        ("min_rnr_timer", qp.min_rnr_timer.into()),
        ("remote_write", qp.remote_write.into()),
        ("remote_read", qp.remote_read.into()),
        ("remote_atomic", qp.remote_atomic.into()),
        ("ipv6", qp.ipv6.into()),
        ("vlan", qp.vlan.into()),
        ("nak_sent", qp.nak_sent.into()),
        ("rnr_sent", qp.rnr_sent.into()),
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
    fn new(name: &str, stall: u32, latency: (u64, u64)) -> Bench {
        let mut tb = Tb::new(name, Responder::<4>::default());
        let store =
            Store { layout: Fields::of::<RspCtx>(), lines: BTreeMap::new(), due: [None; 2], held: [None; 2], latency, stall };
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
            tb,
            store,
            answers: VecDeque::new(),
            asked: Vec::new(),
            answer_at: None,
        }
    }

    fn cycle(&mut self) {
        let now = self.tb.cycles();
        let stall = self.store.stall;
        let shown = [0, 1].map(|i| self.store.due[i].filter(|(at, id)| *at <= now && self.store.held[1 - i] != Some(*id)).map(|(_, id)| id));
        // A line that the other one wants as well goes to one of them.
        let shown = [shown[0], shown[1].filter(|id| shown[0] != Some(*id))];
        for i in 0..2 {
            let ready = !self.tb.rng().percent(stall);
            self.tb.set(&format!("ctx${i}$acq_ready"), (ready && self.store.due[i].is_none() && self.store.held[i].is_none()).into());
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
                self.store.due[i] = Some((at, get(&mut self.tb, "acq_id") as u32));
            }
            if let (Some(id), 1) = (shown, get(&mut self.tb, "line_ready")) {
                self.store.due[i] = None;
                self.store.held[i] = self.store.lines.contains_key(&id).then_some(id);
            }
        }
        self.tb.end();
        // Receive queues.
        if let Some(ring) = self.alloc.pop_u64() {
            self.asked.push(ring as u32);
            let (low, high) = if stall == 0 { (0, 0) } else { (0, 30) };
            self.answer_at = Some(now + self.tb.rng().range(low, high));
        }
        if self.answer_at.is_some_and(|at| at <= now) {
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

    fn settle(&mut self) {
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
    fn answered(&mut self, id: u32, epoch: u8, count: u32) {
        for (port, value) in [("answered", 1), ("answered_qpn", id), ("answered_epoch", epoch.into()), ("answered_count", count % 32)] {
            self.tb.set(port, value.into());
        }
        self.cycle();
        self.tb.set("answered", 0);
    }

    fn send(&mut self, p: &Packet) {
        let layout = Fields::of::<RxDesc>();
        let mut words = self.tb.rng().words(layout.width());
        let fields: [(&str, u128); 22] = [
            ("raw", p.raw.into()),
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
        self.rx.push(words);
    }

    /// Compares everything sent since the last time with the model's acts.
    fn compare(&mut self, acts: &[Act]) {
        let layout = Fields::of::<PlaceOp>();
        let seed = self.tb.seed();
        for (n, act) in acts.iter().enumerate() {
            match act {
                Act::Place(fields) => {
                    let got = self.op.pop().unwrap_or_else(|| panic!("act {n}: no order, expected {fields:?}, seed {seed}"));
                    for (name, value) in fields {
                        let seen = layout.get(&got, name);
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

fn random_qp(rng: &mut Rng, id: u32) -> Qp {
    Qp {
        state: [2, 3, 3, 3, 3, 3, 1, 6][rng.below(8) as usize],
        qp_type: if id == RAW_QPN { 3 } else { [0, 0, 0, 1, 2][rng.below(5) as usize] },
        pmtu: rng.range(1, 5) as u8,
        min_rnr_timer: rng.below(32) as u8,
        remote_write: rng.percent(95),
        remote_read: rng.percent(95),
        remote_atomic: rng.percent(95),
        epoch: rng.next_u32() as u8,
        rcqn: rng.next_u32() >> 8,
        pd: rng.next_u32() >> 8,
        function: (rng.next_u32() >> 20) as u16,
        pkey: 0xffff - rng.below(2) as u16 * 0x8000,
        qkey: rng.next_u32(),
        dest_qpn: rng.next_u32() >> 8,
        ipv6: rng.percent(50),
        vlan: rng.percent(50),
        epsn: if rng.percent(30) { 0xff_ffff - rng.below(20) as u32 } else { rng.next_u32() >> 8 },
        msn: rng.next_u32() >> 8,
        max_dest_rd_atomic: [0, 1, 2, 4, 16, 16, 16, 16][rng.below(8) as usize],
        rq: rng.next_u32() >> 8,
        srq: id != RAW_QPN && rng.percent(50),
        rq_pd: rng.next_u32() >> 8,
        ..Qp::default()
    }
}

/// The next packet a correct peer would send to `qp`, now and then spoilt.
fn random_packet(rng: &mut Rng, id: u32, qp: &Qp) -> Packet {
    let mtu = 128u32 << qp.pmtu;
    let start = qp.message.is_none();
    let write = qp.message.as_ref().map_or(rng.percent(50), |m| m.write);
    let rest = qp.message.as_ref().map_or(0, |m| m.remaining);
    let mut dma_len = rng.below(u64::from(4 * mtu)) as u32;
    let last = if start && write {
        dma_len <= mtu
    } else if write {
        rest <= mtu
    } else {
        rng.percent(40)
    };
    let pay_len = match (last, write) {
        (false, _) => mtu,
        (true, true) => if start { dma_len } else { rest },
        (true, false) => rng.range(u64::from(!start), mtu.into()) as u32,
    };
    let position = match (start, last) {
        (true, false) => 0,
        (false, false) => 1,
        (false, true) => 2 + rng.below(2) as u8,
        (true, true) => 4 + rng.below(2) as u8,
    };
    let class = if qp.qp_type == 1 { 0x20 } else { 0 };
    if qp.qp_type == 2 {
        return random_datagram(rng, id, qp);
    }
    let mut p = Packet {
        raw: id == RAW_QPN,
        handle: rng.next_u32() >> 20,
        frame_len: rng.range(60, 4200) as u32,
        pay_off: rng.range(54, 90) as u32,
        pay_len,
        pad: (4 - pay_len % 4) % 4,
        opcode: class | (position + if write { 6 } else { 0 }),
        ack_req: rng.percent(50),
        solicited: rng.percent(50),
        pkey: 0xffff,
        qpn: id,
        psn: qp.epsn,
        va: rng.next_u64(),
        rkey: rng.next_u32(),
        dma_len,
        imm: rng.next_u32(),
        operand: rng.next_u64(),
        compare: rng.next_u64(),
        qkey: rng.next_u32(),
        src_qpn: rng.next_u32() >> 8,
        v6: rng.percent(50),
        tag: rng.percent(50),
    };
    if qp.qp_type == 0 && rng.percent(if start { 40 } else { 3 }) {
        (p.pay_len, p.pad) = (0, 0);
        p.opcode = [0x0c, 0x0c, 0x13, 0x14][rng.below(4) as usize];
        p.dma_len = [0, 1, mtu, mtu + 1, 5 * mtu, rng.next_u32() >> rng.below(32), 1 << 31][rng.below(7) as usize];
        p.va &= if rng.percent(98) { !7 } else { !0 };
    }
    if last && !write && p.opcode < 6 && rng.percent(30) {
        p.opcode = 0x16 + u8::from(start);
    }
    if rng.percent(20) {
        p.psn = (p.psn + rng.range(1, 8) as u32) & 0xff_ffff;
    } else if rng.percent(20) {
        let far = rng.range(1, 20);
        p.psn = p.psn.wrapping_sub(rng.range(1, 1 << far) as u32) & 0xff_ffff;
    }
    if last && write && p.pay_len > 4 && rng.percent(2) {
        // A message that ends before what its RETH announced, and nothing else wrong.
        p.pay_len -= 4;
    } else if last && mtu < 4096 && rng.percent(2) {
        // Too long for one packet, and nothing else wrong.
        p.pay_len = mtu + 4 * rng.range(1, 16) as u32;
        p.pad = 0;
        if start && write {
            p.dma_len = p.pay_len;
        }
    } else if rng.percent(5) {
        match rng.below(8) {
            0 => p.opcode = rng.next_u32() as u8,
            1 => p.opcode = class | rng.below(24) as u8,
            2 => p.pad = rng.below(4) as u32,
            3 => p.pay_len = rng.below(4097) as u32,
            4 => p.pkey = 0x7fff - rng.below(2) as u16,
            5 => p.qpn = 0x10_0000 + rng.below(20) as u32,
            6 => {
                dma_len = [0, mtu, 1 << 31, 0x8000_0001, u32::MAX][rng.below(5) as usize];
                p.dma_len = dma_len;
            }
            _ => p.psn ^= 1 << 23,
        }
    }
    if p.raw {
        // `net/rx` says nothing of a transport.
        p.opcode = 0;
    }
    p
}

/// A datagram for `qp`, now and then one that it must not take.
fn random_datagram(rng: &mut Rng, id: u32, qp: &Qp) -> Packet {
    let mtu = 128u32 << qp.pmtu;
    let pay_len = if rng.percent(15) { 0 } else { rng.range(1, mtu.into()) as u32 };
    let mut p = Packet {
        handle: rng.next_u32() >> 20,
        frame_len: rng.range(60, 4200) as u32,
        pay_off: rng.range(54, 90) as u32,
        pay_len,
        pad: (4 - pay_len % 4) % 4,
        opcode: 0x64 | rng.below(2) as u8,
        ack_req: rng.percent(50),
        solicited: rng.percent(50),
        pkey: 0xffff,
        qpn: id,
        psn: rng.next_u32() >> 8,
        va: rng.next_u64(),
        rkey: rng.next_u32(),
        dma_len: rng.next_u32(),
        imm: rng.next_u32(),
        qkey: qp.qkey,
        src_qpn: rng.next_u32() >> 8,
        v6: rng.percent(50),
        tag: rng.percent(50),
        ..Packet::default()
    };
    match rng.below(30) {
        0 => p.qkey ^= 1 << rng.below(32),
        1 => p.pkey ^= 1 << rng.below(16),
        2 => p.opcode = 0x60 | rng.below(32) as u8,
        3 => p.opcode ^= 0x20 << rng.below(3),
        4 => p.pad = rng.below(4) as u32,
        5 if mtu < 4096 => (p.pay_len, p.pad) = (mtu + 4, 0),
        _ => {}
    }
    p
}

fn random_streams(name: &str, stall: u32, latency: (u64, u64), rounds: u32, packets: u32) {
    let mut bench = Bench::new(name, stall, latency);
    let mut seen = BTreeMap::<u128, u32>::new();
    for _ in 0..rounds {
        let mut golden = model::Responder { raw_qpn: Some(RAW_QPN), ..Default::default() };
        bench.store.lines.clear();
        for id in 0..12 {
            let qp = random_qp(bench.tb.rng(), id);
            bench.store.lines.insert(id, write_qp(&bench.store.layout, &qp));
            golden.qps.insert(id, qp);
        }
        let mut answered = [0; 12];
        for n in 0..packets {
            if n % 30 == 29 {
                // Replies: some of what is open is answered, while nothing is on its way.
                bench.settle();
                for (id, qp) in &mut golden.qps {
                    for _ in 0..bench.tb.rng().below(u64::from(qp.open) + 1) {
                        qp.open -= 1;
                        answered[*id as usize] += 1;
                        bench.answered(*id, qp.epoch, answered[*id as usize]);
                    }
                    // Of an earlier life, which has no meaning.
                    if answered[*id as usize] == 0 && bench.tb.rng().percent(50) {
                        let count = bench.tb.rng().below(32) as u32;
                        bench.answered(*id, qp.epoch.wrapping_sub(1), count);
                    }
                }
            }
            let id = bench.tb.rng().below(12) as u32;
            let p = random_packet(bench.tb.rng(), id, &golden.qps[&id]);
            let rng = bench.tb.rng();
            let answer = match rng.below(100) {
                // Only shared queues can be in error.
                0 if golden.qps[&id].srq => Grant::Dead,
                0..20 => Grant::None,
                _ => Grant::Some(rng.below(64) as u32, rng.below(1 << 16) as u32),
            };
            golden.grants.push_back(answer);
            golden.packet(&p);
            if golden.grants.pop_front().is_none() {
                bench.answers.push_back(answer);
            }
            bench.send(&p);
        }
        bench.settle();
        bench.compare(&golden.acts);
        assert_eq!(std::mem::take(&mut bench.asked), golden.asked, "receive rings");
        for act in &golden.acts {
            if let Act::Place(fields) = act {
                *seen.entry(fields.get("syndrome").copied().unwrap_or(0) >> 5 << 5 | fields["kind"]).or_default() += 1;
            }
        }
        for (id, qp) in &golden.qps {
            let (expected, layout) = (write_qp(&bench.store.layout, qp), &bench.store.layout);
            let got = &bench.store.lines[id];
            // What is half done no longer matters once the queue pair is in error.
            let names = ["state", "epsn", "msn", "nak_sent", "rnr_sent", "in_msg"];
            for name in &names[..if qp.state == 6 { 3 } else { 6 }] {
                assert_eq!(layout.get(got, name), layout.get(&expected, name), "queue pair {id}: {name}");
            }
        }
    }
    println!("{name}: {seen:x?}");
    assert!(seen.len() >= 5, "the traffic is too tame: {seen:x?}");
}

#[test]
fn random_packets_are_judged_as_the_model_does() {
    random_streams("resp", 30, (2, 40), 40, 150);
}

#[test]
fn slow_contexts_change_nothing() {
    random_streams("resp", 50, (2, 500), 4, 60);
}

/// Orders of 96 packets on `qps` queue pairs in turn, nothing in the way: cycles to the first, and from it to the last.
fn pace(qps: u32) -> (u64, u64) {
    let mut bench = Bench::new("resp", 0, (1, 1));
    let mut golden = model::Responder::default();
    let mut qp = random_qp(&mut Rng::new(1), 1);
    (qp.state, qp.qp_type, qp.remote_write, qp.pkey, qp.epsn) = (3, 0, true, 0xffff, 5);
    for id in 0..qps {
        bench.store.lines.insert(id, write_qp(&bench.store.layout, &qp));
        golden.qps.insert(id, qp.clone());
    }
    for n in 0..97 {
        let p = Packet { opcode: 10, psn: 5 + n / qps, qpn: n % qps, pay_len: 64, dma_len: 64, pkey: 0xffff, ack_req: true, ..Default::default() };
        golden.packet(&p);
        bench.send(&p);
    }
    let start = bench.tb.cycles();
    let mut orders = [0; 2];
    for (n, at) in [1, 97].into_iter().zip(&mut orders) {
        while bench.op.taken() < n {
            bench.cycle();
        }
        *at = bench.tb.cycles() - start;
    }
    bench.settle();
    bench.compare(&golden.acts);
    // A message offered in cycle 0 and taken at once in cycle n has been taken after n + 1 cycles.
    (orders[0] - 1, orders[1] - orders[0])
}

#[test]
fn an_order_comes_after_six_cycles_and_then_every_three() {
    assert_eq!(pace(3), (6, 3 * 96));
    // Of one queue pair eight go on with the line of the first, then it goes back once.
    assert_eq!(pace(1), (6, 3 * 96 + 2 * 12));
}

#[test]
fn a_datagram_takes_few_cycles() {
    let mut bench = Bench::new("resp", 0, (1, 1));
    let mut golden = model::Responder::default();
    let mut qp = random_qp(&mut Rng::new(1), 1);
    (qp.state, qp.qp_type, qp.pkey, qp.qkey) = (3, 2, 0xffff, 0x1234);
    bench.store.lines.insert(1, write_qp(&bench.store.layout, &qp));
    golden.qps.insert(1, qp);
    for n in 0..101 {
        let p = Packet { opcode: 0x64, qpn: 1, pay_len: 64, pkey: 0xffff, qkey: 0x1234, ..Default::default() };
        golden.grants.push_back(Grant::Some(n % 64, n));
        bench.answers.push_back(Grant::Some(n % 64, n));
        golden.packet(&p);
        bench.send(&p);
    }
    let start = bench.tb.cycles();
    while bench.op.taken() < 202 {
        bench.cycle();
    }
    let cycles = bench.tb.cycles() - start;
    println!("resp: {cycles} cycles for 101 datagrams");
    assert!(cycles <= 101 * 12, "{cycles} cycles for 101 datagrams");
    bench.settle();
    bench.compare(&golden.acts);
}

#[test]
fn errors_flush_the_queue_and_the_half_received_send() {
    let mut bench = Bench::new("resp", 30, (2, 20));
    let mut golden = model::Responder::default();
    for id in 0..3 {
        let mut qp = random_qp(bench.tb.rng(), id);
        (qp.state, qp.qp_type, qp.pmtu, qp.pkey, qp.epsn) = (3, 0, 1, 0xffff, 0xff_ffff);
        (qp.epoch, qp.srq) = (7, id == 1);
        bench.store.lines.insert(id, write_qp(&bench.store.layout, &qp));
        golden.qps.insert(id, qp);
    }
    for id in 0..3 {
        let first = Packet { opcode: 0, psn: 0xff_ffff, qpn: id, pay_len: 256, pkey: 0xffff, ..Default::default() };
        golden.grants.push_back(Grant::Some(20 + id, 40 + id));
        bench.answers.push_back(Grant::Some(20 + id, 40 + id));
        golden.packet(&first);
        bench.send(&first);
    }
    bench.settle();
    // 0: from completion; 1: from the requester; 2: of an earlier life, without effect.
    let layout = Fields::of::<QpError>();
    for (port, id, epoch) in [(0, 0, 7), (1, 1, 99), (0, 2, 6)] {
        bench.errors[port].push(layout.pack(&[("qpn", id), ("epoch", epoch), ("cause", 4)]));
        bench.settle();
        golden.error(id as u32, (port == 0).then_some(epoch as u8), 4);
    }
    // A second report changes nothing.
    bench.errors[0].push(layout.pack(&[("qpn", 0), ("epoch", 7), ("cause", 4)]));
    bench.settle();
    bench.compare(&golden.acts);
    assert_eq!(golden.qps[&2].state, 3);
    // Flushed receive requests come back as completions; those of a live queue pair do not.
    let flush = Fields::of::<RqFlush>();
    for (qpn, index) in [(0, 41), (2, 50), (0, 42)] {
        bench.flush.push(flush.pack(&[("qpn", qpn), ("index", index)]));
    }
    bench.settle();
    bench.tb.set("barrier", 1);
    bench.cycle();
    bench.tb.set("barrier", 0);
    bench.settle();
    let op = |index: u128| {
        Act::Place(BTreeMap::from([
            ("kind", 3),
            ("qpn", 0),
            ("epoch", 7),
            ("rq_index", index),
            ("cqe", 1),
            ("done", 1),
            ("free_rq", 0),
            ("has_frame", 0),
            ("opcode", 16),
        ]))
    };
    let barrier = Act::Place(BTreeMap::from([("kind", 4), ("has_frame", 0), ("ack", 0), ("cqe", 0)]));
    bench.compare(&[op(41), op(42), barrier]);
}

#[test]
fn a_reset_in_mid_message_gives_the_receive_back() {
    let mut bench = Bench::new("resp", 30, (2, 20));
    let mut golden = model::Responder::default();
    for id in 0..4 {
        let mut qp = random_qp(bench.tb.rng(), id);
        (qp.state, qp.qp_type, qp.pmtu, qp.pkey, qp.epsn) = (3, u8::from(id == 2), 1, 0xffff, 7);
        (qp.epoch, qp.srq) = (7, id == 1);
        bench.store.lines.insert(id, write_qp(&bench.store.layout, &qp));
        golden.qps.insert(id, qp);
    }
    // The last one is between two messages.
    for id in 0..3 {
        let first = Packet { opcode: 0x20 * golden.qps[&id].qp_type, psn: 7, qpn: id, pay_len: 256, pkey: 0xffff, ..Default::default() };
        golden.grants.push_back(Grant::Some(20 + id, 40 + id));
        bench.answers.push_back(Grant::Some(20 + id, 40 + id));
        golden.packet(&first);
        bench.send(&first);
    }
    bench.settle();
    let layout = Fields::of::<QpError>();
    for id in 0..4 {
        let words = bench.store.lines.get_mut(&id).expect("made above");
        bench.store.layout.set(words, "state", 0);
        bench.store.layout.set(words, "epoch", 8);
        let qp = golden.qps.get_mut(&id).expect("made above");
        (qp.state, qp.epoch) = (0, 8);
        // Of an earlier life, then twice of this one.
        for epoch in [7, 8, 8] {
            bench.errors[0].push(layout.pack(&[("qpn", id.into()), ("epoch", epoch), ("cause", 0)]));
            golden.give_back(id, epoch as u8);
        }
        bench.settle();
    }
    bench.compare(&golden.acts);
    assert_eq!(golden.acts.len(), 3 + 3);
    for (id, words) in &bench.store.lines {
        assert_eq!(bench.store.layout.get(words, "rq_handle") >> 7, 0, "queue pair {id}");
        assert_eq!(bench.store.layout.get(words, "state"), 0, "queue pair {id}");
    }
}

/// As many READs and atomics as were granted, one of them answered, one more, and one too many.
#[test]
fn no_more_is_open_than_was_granted() {
    let mut bench = Bench::new("resp", 20, (2, 20));
    let mut golden = model::Responder::default();
    for most in [1, 3, 16] {
        let mut qp = random_qp(bench.tb.rng(), most);
        (qp.state, qp.qp_type, qp.pmtu, qp.pkey, qp.epsn) = (3, 0, 1, 0xffff, 0);
        (qp.remote_read, qp.remote_atomic, qp.max_dest_rd_atomic) = (true, true, most);
        bench.store.lines.insert(most, write_qp(&bench.store.layout, &qp));
        golden.qps.insert(most, qp);
    }
    let ask = |bench: &mut Bench, golden: &mut model::Responder, id: u32| {
        let psn = golden.qps[&id].epsn;
        let p = Packet { opcode: if psn % 3 == 0 { 0x14 } else { 0x0c }, qpn: id, psn, dma_len: 8, pkey: 0xffff, ..Default::default() };
        golden.packet(&p);
        bench.send(&p);
    };
    // Round and round: the counts are modulo 32.
    for round in 1..=40 {
        for id in [1, 3, 16] {
            while golden.qps[&id].open < id {
                ask(&mut bench, &mut golden, id);
            }
        }
        bench.settle();
        for id in [1, 3, 16] {
            golden.qps.get_mut(&id).expect("made above").open -= 1;
            let epoch = golden.qps[&id].epoch;
            bench.answered(id, epoch, round);
        }
    }
    assert!(golden.qps.values().all(|qp| qp.state == 3));
    for id in [1, 3, 16] {
        ask(&mut bench, &mut golden, id);
        ask(&mut bench, &mut golden, id);
    }
    bench.settle();
    bench.compare(&golden.acts);
    assert!(golden.qps.values().all(|qp| qp.state == 6));
}

/// It is for the congestion hook, which has been told of it.
#[test]
fn a_congestion_notification_is_dropped_in_silence() {
    for qp_type in 0..3 {
        let mut bench = Bench::new("resp", 0, (1, 1));
        let mut golden = model::Responder::default();
        let mut qp = random_qp(bench.tb.rng(), 1);
        (qp.state, qp.qp_type) = (3, qp_type);
        bench.store.lines.insert(1, write_qp(&bench.store.layout, &qp));
        golden.qps.insert(1, qp);
        let p = Packet { opcode: 0x81, qpn: 1, pay_len: 16, pkey: 0xffff, ..Default::default() };
        golden.packet(&p);
        bench.send(&p);
        let mut events = Vec::new();
        for _ in 0..100 {
            bench.cycle();
            events.extend(Some(bench.tb.get("stat")).filter(|stat| *stat != 0));
        }
        bench.settle();
        bench.compare(&golden.acts);
        assert_eq!(events, [1], "a request, and no drop for a cause");
    }
}
