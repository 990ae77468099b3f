//! Placement against a software walk; the test plays receive-queue buffers and memory keys.
use super::*;
use crate::tb::{Fields, Sink, Source, Tb};
use std::collections::{BTreeMap, VecDeque};

/// A message as the test knows it.
type Msg = BTreeMap<&'static str, u128>;

#[derive(Clone)]
struct Sge {
    addr: u64,
    length: u32,
    lkey: u32,
}

struct Bench {
    tb: Tb,
    op: Source,
    done: Sink,
    mr: Sink,
    mr_answer: Source,
    wqe: Sink,
    wqe_answer: Source,
    free: Sink,
    moves: Sink,
    /// Receive requests by buffer: entries, or none when the fetch failed.
    buffers: BTreeMap<u32, Option<Vec<Sge>>>,
    waiting: VecDeque<(u64, Vec<u32>)>,
    latency: u64,
}

/// What the key check answers: a translation that tests can predict.
fn translate(key: u32, va: u64) -> (u64, u8) {
    let status = if key >> 28 == 0xf { (key & 7) as u8 } else { 0 };
    (va.wrapping_mul(1) ^ u64::from(key) << 20 & !0xfff, status)
}

impl Bench {
    fn new(stall: u32, latency: u64) -> Bench {
        let mut tb = Tb::new("place", Place::<4>::default());
        Bench {
            op: tb.source("s_op", stall),
            done: tb.sink("m_done", stall),
            mr: tb.sink("m_mr", stall),
            mr_answer: tb.source("s_mr", stall),
            wqe: tb.sink("m_wqe", stall),
            wqe_answer: tb.source("s_wqe", stall),
            free: tb.sink("m_free", stall),
            moves: tb.sink("m_move", stall),
            tb,
            buffers: BTreeMap::new(),
            waiting: VecDeque::new(),
            latency,
        }
    }

    fn cycle(&mut self, requests: &mut Vec<Vec<u32>>) {
        self.tb.cycle();
        let now = self.tb.cycles();
        if let Some(words) = self.mr.pop() {
            let request = Fields::of::<MrReq>();
            let (iova, status) = translate(request.get(&words, "key") as u32, request.get(&words, "va") as u64);
            let answer = Fields::of::<MrResp>().pack(&[("iova", iova.into()), ("status", status.into())]);
            self.waiting.push_back((now + self.latency, answer));
            requests.push(words);
        }
        while self.waiting.front().is_some_and(|(at, _)| *at <= now) {
            self.mr_answer.push(self.waiting.pop_front().expect("just seen").1);
        }
        if let Some(words) = self.wqe.pop() {
            let read = Fields::of::<WqeRead>();
            let (handle, granule) = (read.get(&words, "handle") as u32, read.get(&words, "granule") as usize);
            let data = match &self.buffers[&handle] {
                None => None,
                Some(list) if granule == 0 => Some(list.len() as u128),
                Some(list) => {
                    let sge = &list[granule - 1];
                    Some(u128::from(sge.lkey) << 96 | u128::from(sge.length) << 64 | u128::from(sge.addr))
                }
            };
            let answer = [("data", data.unwrap_or(7)), ("err", data.is_none().into())];
            self.wqe_answer.push(Fields::of::<WqeData>().pack(&answer));
        }
    }
}

/// The segments of `len` bytes from byte `skip` of a scatter list: (key, va, len). Err: does not fit.
fn scatter(list: &[Sge], mut skip: u64, mut len: u64) -> (Vec<(u32, u64, u64)>, bool) {
    let mut segments = Vec::new();
    for sge in list {
        let size = u64::from(sge.length);
        if skip >= size {
            skip -= size;
            continue;
        }
        let (mut va, mut left) = (sge.addr.wrapping_add(skip), size - skip);
        skip = 0;
        while left > 0 && len > 0 {
            let n = len.min(left).min(4096 - (va & 0xfff));
            segments.push((sge.lkey, va, n));
            (va, left, len) = (va.wrapping_add(n), left - n, len - n);
        }
    }
    (segments, len == 0)
}

/// Software placement of one order: translation requests, moves, outcome.
struct Golden {
    marks: BTreeMap<u128, u128>,
    requests: Vec<Msg>,
    moves: Vec<Msg>,
    dones: Vec<Msg>,
    frees: Vec<u128>,
}

impl Golden {
    fn order(&mut self, op: &Msg, buffers: &BTreeMap<u32, Option<Vec<Sge>>>) {
        let kind = op["kind"];
        let reads = kind == 5 || kind == 6;
        let poisoned = (kind < 3 || reads) && self.marks.get(&op["qpn"]) == Some(&op["epoch"]);
        if !poisoned && (kind == 1 || kind == 2 || reads) {
            self.marks.remove(&op["qpn"]);
        }
        let len = op["pay_len"] as u64;
        let (segments, mut failure) = match (kind, len) {
            (5 | 6, _) if op["chk_len"] != 0 => (vec![(op["key"] as u32, op["va"] as u64, 0)], 0),
            (_, 0) | (0, _) | (3.., _) => (Vec::new(), 0),
            (1, _) => (scatter(&[Sge { addr: op["va"] as u64, length: len as u32, lkey: op["key"] as u32 }], 0, len).0, 0),
            _ => match &buffers[&(op["rq_handle"] as u32)] {
                None => (Vec::new(), 2),
                Some(list) => {
                    let (segments, fits) = scatter(list, op["msg_off"] as u64, len);
                    (segments, u128::from(!fits))
                }
            },
        };
        let (mut off, mut writes, mut status) = (op["pay_off"], 0, 0);
        for (n, (key, va, size)) in segments.iter().enumerate() {
            let chk_len = if reads || kind == 1 && n == 0 { op["chk_len"] } else { (*size).into() };
            self.requests.push(BTreeMap::from([
                ("key", (*key).into()),
                ("va", (*va).into()),
                ("chk_len", chk_len),
                ("pd", op["pd"]),
                ("function", op["function"]),
                ("access", [0, 4, 2, 0, 0, 8, 16, 0][kind as usize]),
            ]));
            let (iova, bad) = translate(*key, *va);
            if bad != 0 && status == 0 {
                status = u128::from(bad) + 8;
            }
            let last = n + 1 == segments.len() && failure == 0;
            if status == 0 && !poisoned && !reads {
                writes += 1;
                self.moves.push(BTreeMap::from([
                    ("handle", op["handle"]),
                    ("off", off),
                    ("len", (*size).into()),
                    ("iova", iova.into()),
                    ("function", op["function"]),
                    ("free", u128::from(last && op["has_frame"] == 1)),
                ]));
            } else if last && op["has_frame"] == 1 {
                self.moves.push(BTreeMap::from([("handle", op["handle"]), ("len", 0), ("free", 1)]));
            }
            off += u128::from(*size);
        }
        if (segments.is_empty() || failure != 0) && op["has_frame"] == 1 {
            self.moves.push(BTreeMap::from([("handle", op["handle"]), ("len", 0), ("free", 1)]));
        }
        if status != 0 {
            failure = status;
        }
        if op["free_rq"] == 1 {
            self.frees.push(op["rq_handle"]);
        }
        let hushed = reads && op["again"] == 1 && failure != 0;
        if hushed {
            failure = 0;
        }
        let failed = failure != 0 && !poisoned;
        if failed {
            self.marks.insert(op["qpn"], op["epoch"]);
        }
        let mut done = op.clone();
        done.retain(|name, _| DoneOp::FIELDS.iter().any(|(field, _)| field == name));
        done.insert("writes", writes);
        done.insert("status", if poisoned { 0 } else { failure });
        done.insert("fatal", op["fatal"] | u128::from(failed));
        done.insert("access_local", u128::from(kind == 2));
        if let (6, [(key, va, _)]) = (kind, &segments[..]) {
            done.insert("va", translate(*key, *va).0.into());
        } else if kind == 6 {
            // Nothing was translated: the address means nothing.
            done.remove("va");
        }
        if poisoned || hushed {
            done.insert("kind", 0);
            done.insert("ack", 0);
        }
        self.dones.push(done);
    }
}

fn same(what: &str, layout: &Fields, got: &Sink, want: &[Msg], seed: u64) {
    for (n, want) in want.iter().enumerate() {
        let words = got.pop().unwrap_or_else(|| panic!("{what} {n} is missing: {want:?}"));
        for (name, value) in want {
            let seen = layout.get(&words, name);
            assert_eq!(seen, *value, "{what} {n} `{name}` seed {seed}\n{:?}\n{want:?}", layout.unpack(&words));
        }
    }
    assert!(got.is_empty(), "more {what} than expected");
}

/// Runs orders to their end and compares everything.
fn check(bench: &mut Bench, orders: &[Msg], golden: &mut Golden) -> u64 {
    let layout = Fields::of::<PlaceOp>();
    for op in orders {
        let mut words = bench.tb.rng().words(layout.width());
        for (name, value) in op {
            layout.set(&mut words, name, *value);
        }
        bench.op.push(words.clone());
        let full: Msg = PlaceOp::FIELDS.iter().map(|(name, _)| (*name, layout.get(&words, name))).collect();
        golden.order(&full, &bench.buffers);
    }
    let start = bench.tb.cycles();
    let mut requests = Vec::new();
    while bench.done.len() < orders.len() {
        assert!(bench.tb.cycles() - start < 200_000, "{} of {} orders done", bench.done.len(), orders.len());
        bench.cycle(&mut requests);
    }
    let spent = bench.tb.cycles() - start;
    (0..100).for_each(|_| bench.cycle(&mut requests));
    let seed = bench.tb.seed();
    let mr = Fields::of::<MrReq>();
    for (n, (got, want)) in requests.iter().zip(&golden.requests).enumerate() {
        for (name, value) in want {
            assert_eq!(mr.get(got, name), *value, "request {n} `{name}` {:?} {want:?}", mr.unpack(got));
        }
    }
    assert_eq!(requests.len(), golden.requests.len());
    same("move", &Fields::of::<MoveOp>(), &bench.moves, &golden.moves, seed);
    same("done", &Fields::of::<DoneOp>(), &bench.done, &golden.dones, seed);
    let frees: Vec<Msg> = golden.frees.iter().map(|handle| BTreeMap::from([("handle", *handle)])).collect();
    same("free", &Fields::of::<WqeFree>(), &bench.free, &frees, seed);
    (golden.moves, golden.dones, golden.requests, golden.frees) = Default::default();
    spent
}

fn golden() -> Golden {
    Golden { marks: BTreeMap::new(), requests: vec![], moves: vec![], dones: vec![], frees: vec![] }
}

fn random_orders(bench: &mut Bench, count: usize) -> Vec<Msg> {
    let mut offsets = BTreeMap::<u32, u64>::new();
    for handle in 0..8 {
        let rng = bench.tb.rng();
        let entries = rng.below(8);
        let list = (0..entries).map(|_| {
            let length = [0, 1, 100, 4096, 9000][rng.below(5) as usize];
            let lkey = if rng.percent(3) { 0xf000_0000 | rng.range(1, 6) as u32 } else { rng.next_u32() >> 4 };
            Sge { addr: rng.next_u64() >> rng.below(50), length, lkey }
        });
        let list = list.collect();
        let fetched = !rng.percent(5);
        bench.buffers.insert(handle, fetched.then_some(list));
    }
    let mut orders = Vec::new();
    for _ in 0..count {
        let rng = bench.tb.rng();
        let kind = [1, 1, 1, 2, 2, 2, 0, 3, 4, 5, 6][rng.below(11) as usize];
        let reads = kind == 5 || kind == 6;
        let handle = rng.below(8) as u32;
        let pay_len = if reads { 0 } else { [0, 1, 64, 256, 1024, 4096][rng.below(6) as usize] };
        let offset = offsets.entry(handle).or_default();
        let fresh = rng.percent(30);
        let end = rng.percent(30);
        if fresh {
            *offset = 0;
        }
        let msg_off = *offset;
        if kind == 2 {
            *offset = if end { 0 } else { *offset + pay_len };
        }
        let key = if rng.percent(5) { 0xf000_0000 | rng.range(1, 6) as u32 } else { rng.next_u32() >> 4 };
        orders.push(BTreeMap::from([
            ("kind", kind),
            // A new life now and then, so that marks come and go.
            ("epoch", (orders.len() / 60) as u128),
            ("qpn", handle.into()),
            ("has_frame", u128::from(kind < 3 || reads)),
            ("pay_len", pay_len.into()),
            ("va", (rng.next_u64() >> rng.below(50)).into()),
            ("key", key.into()),
            ("chk_len", u128::from(pay_len) + u128::from(if rng.percent(10) { 0 } else { rng.below(1 << 20) })),
            ("again", u128::from(rng.percent(30))),
            ("rq_handle", handle.into()),
            ("msg_off", msg_off.into()),
            ("free_rq", u128::from(end)),
            ("fatal", 0),
        ]));
    }
    orders
}

#[test]
fn random_orders_are_placed_as_the_model_does() {
    let mut bench = Bench::new(30, 8);
    let mut golden = golden();
    for _ in 0..8 {
        golden.marks.clear();
        let mut orders = random_orders(&mut bench, 240);
        // Lives must not meet the marks of the round before.
        let base = u128::from(bench.tb.rng().next_u32() as u8);
        orders.iter_mut().for_each(|op| *op.get_mut("epoch").expect("set") = (op["epoch"] + base) & 0xff);
        let wipe: Vec<Msg> = (0..16).map(|qpn| plain_write(qpn, (base + 128) & 0xff)).collect();
        check(&mut bench, &wipe, &mut golden);
        check(&mut bench, &orders, &mut golden);
    }
}

fn plain_write(qpn: u128, epoch: u128) -> Msg {
    BTreeMap::from([
        ("kind", 1), ("qpn", qpn), ("epoch", epoch), ("has_frame", 1), ("pay_len", 64), ("va", 0x12340), ("key", 1),
        ("chk_len", 64), ("free_rq", 0), ("fatal", 0),
    ])
}

/// Exact cycles of the idle path: order in cycle 0, key request shown in 1; answer in n, move and outcome shown in n + 1.
#[test]
fn a_small_write_when_idle() {
    let mut bench = Bench::new(0, 0);
    let layout = Fields::of::<PlaceOp>();
    let write: Vec<_> = plain_write(3, 7).into_iter().collect();
    bench.op.push(layout.pack(&write));
    bench.tb.run(2);
    assert_eq!((bench.op.taken(), bench.mr.taken()), (1, 1), "order, then the key request");
    bench.tb.run(3);
    bench.mr_answer.push(Fields::of::<MrResp>().pack(&[("iova", 0x5000)]));
    bench.tb.run(2);
    assert_eq!((bench.mr_answer.taken(), bench.moves.taken(), bench.done.taken()), (1, 1, 1), "answer, then the move");
}

#[test]
fn a_small_write_takes_few_cycles() {
    let mut bench = Bench::new(0, 8);
    let orders: Vec<Msg> = (0..100).map(|n| plain_write(n % 16, 3)).collect();
    let cycles = check(&mut bench, &orders, &mut golden());
    assert!(cycles <= 220, "{cycles} cycles for 100 small writes");
}
