//! Placement against a software walk; the test plays receive-queue buffers and memory keys.
mod golden;

use super::*;
use crate::tb::{Counted, Fields, Sink, Source, Tb};
use golden::Golden;
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
    change: Sink,
    changed: Source,
    /// Keys invalidated, each with the number of key requests that came before.
    changes: Vec<(usize, Vec<u32>)>,
    wqe: Sink,
    wqe_answer: Source,
    late: Source,
    free: Sink,
    answer: Source,
    again: Sink,
    again_answer: Source,
    again_free: Sink,
    /// Send requests by buffer: length of the message, operands in front of the entries, entries.
    sends: BTreeMap<u32, Option<(u32, bool, Vec<Sge>)>>,
    moves: Sink,
    stats: Counted,
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
        let mut tb = Tb::new("place", Place::<4>::new(true));
        Bench {
            op: tb.source("s_op", stall),
            done: tb.sink("m_done", stall),
            mr: tb.sink("m_mr", stall),
            mr_answer: tb.source("s_mr", stall),
            change: tb.sink("m_change", stall),
            changed: tb.source("s_changed", stall),
            changes: Vec::new(),
            wqe: tb.sink("m_wqe", stall),
            wqe_answer: tb.source("s_wqe", stall),
            late: tb.source("s_late", stall),
            free: tb.sink("m_free", stall),
            answer: tb.source("s_answer", stall),
            again: tb.sink("m_again", stall),
            again_answer: tb.source("s_again", stall),
            again_free: tb.sink("m_again_free", stall),
            sends: BTreeMap::new(),
            moves: tb.sink("m_move", stall),
            stats: Counted::new("stat", "stat_function", STATS),
            tb,
            buffers: BTreeMap::new(),
            waiting: VecDeque::new(),
            latency,
        }
    }

    fn cycle(&mut self, requests: &mut Vec<Vec<u32>>) {
        self.tb.cycle();
        self.stats.see(&self.tb);
        let now = self.tb.cycles();
        if let Some(words) = self.mr.pop() {
            let request = Fields::of::<MrReq>();
            let (iova, status) = translate(request.get(&words, "key") as u32, request.get(&words, "va") as u64);
            let answer = Fields::of::<MrResp>().pack(&[("iova", iova.into()), ("status", status.into())]);
            self.waiting.push_back((now + self.latency, answer));
            requests.push(words);
        }
        if let Some(words) = self.change.pop() {
            let refused = Fields::of::<MrChange>().get(&words, "key") >> 28 == 0xf;
            self.changed.push(Fields::of::<MrChanged>().pack(&[("status", if refused { 4 } else { 0 })]));
            self.changes.push((requests.len(), words));
        }
        while self.waiting.front().is_some_and(|(at, _)| *at <= now) {
            self.mr_answer.push(self.waiting.pop_front().expect("just seen").1);
        }
        if let Some(words) = self.again.pop() {
            let read = Fields::of::<WqeRead>();
            let (handle, granule) = (read.get(&words, "handle") as u32, read.get(&words, "granule") as usize);
            let send = &self.sends[&handle];
            let word = |granule: usize| {
                send.as_ref().map(|(length, operands, list)| match granule {
                    0 => (list.len() as u128) << 16 | 0xff00_00aa,
                    1 => u128::from(*length) << 96 | 0x1234,
                    // The first entry is asked for before it is known that there is one.
                    n => list.get(n - 2 - usize::from(*operands)).map_or(u128::MAX / 3, |sge| u128::from(sge.lkey) << 96 | u128::from(sge.length) << 64 | u128::from(sge.addr)),
                })
            };
            // Two granules come together; only of the head is the second one looked at.
            let more = if granule == 0 { word(1) } else { None };
            let answer = [("data", word(granule).unwrap_or(7)), ("more", more.unwrap_or(9)), ("err", send.is_none().into())];
            self.again_answer.push(Fields::of::<WqeData>().pack(&answer));
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
            let first = self.buffers[&handle].as_ref().and_then(|list| list.first());
            let more = first.map_or(0x1234, |sge| u128::from(sge.lkey) << 96 | u128::from(sge.length) << 64 | u128::from(sge.addr));
            let answer = [("data", data.unwrap_or(7)), ("more", more), ("err", data.is_none().into())];
            self.wqe_answer.push(Fields::of::<WqeData>().pack(&answer));
        }
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
        layout.set(&mut words, "late", 0);
        for (name, value) in op {
            layout.set(&mut words, name, *value);
        }
        let full: Msg = PlaceOp::FIELDS.iter().map(|(name, _)| (*name, layout.get(&words, name))).collect();
        if full["late"] == 1 {
            // The receive comes on its own.
            let noise = bench.tb.rng().words(layout.width());
            ["rq_handle", "rq_index"].into_iter().for_each(|name| layout.set(&mut words, name, layout.get(&noise, name)));
            if full["done"] == 1 {
                bench.late.push(Fields::of::<RqGrant>().pack(&[("ok", 1), ("handle", full["rq_handle"]), ("index", full["rq_index"])]));
            }
        }
        if op["kind"] >= 8 { &bench.answer } else { &bench.op }.push(words);
        golden.order(&full, &bench.buffers, &bench.sends);
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
    assert_eq!(bench.stats.events, golden.events, "seed {seed}");
    let change = Fields::of::<MrChange>();
    for (n, (got, want)) in bench.changes.iter().zip(&golden.changes).enumerate() {
        assert_eq!(got.0, want.0, "key requests before change {n}, seed {seed}");
        for (name, value) in &want.1 {
            assert_eq!(change.get(&got.1, name), *value, "change {n} `{name}`");
        }
    }
    assert_eq!(bench.changes.len(), golden.changes.len());
    bench.changes.clear();
    golden.changes.clear();
    same("move", &Fields::of::<MoveOp>(), &bench.moves, &golden.moves, seed);
    same("done", &Fields::of::<DoneOp>(), &bench.done, &golden.dones, seed);
    let frees: Vec<Msg> = golden.frees.iter().map(|handle| BTreeMap::from([("handle", *handle)])).collect();
    same("free", &Fields::of::<WqeFree>(), &bench.free, &frees, seed);
    let frees: Vec<Msg> = golden.again_frees.iter().map(|handle| BTreeMap::from([("handle", *handle)])).collect();
    same("free of a send", &Fields::of::<WqeFree>(), &bench.again_free, &frees, seed);
    (golden.moves, golden.dones, golden.requests, golden.frees, golden.again_frees) = Default::default();
    spent
}

/// Any address, as often as not one from which `len` bytes end with a page, or a byte before or behind its end.
fn anywhere(rng: &mut crate::tb::Rng, len: u32) -> u64 {
    let addr = rng.next_u64() >> rng.below(50);
    if rng.percent(50) {
        return addr;
    }
    (addr | 0xfff).wrapping_add(rng.below(3)).wrapping_sub(u64::from(len))
}

fn random_orders(bench: &mut Bench, count: usize) -> Vec<Msg> {
    let mut offsets = BTreeMap::<u32, u64>::new();
    for handle in 0..8 {
        let rng = bench.tb.rng();
        let entries = rng.below(8);
        let list = (0..entries).map(|_| {
            let length = [0, 1, 100, 4096, 9000][rng.below(5) as usize];
            let lkey = if rng.percent(3) { 0xf000_0000 | rng.range(1, 6) as u32 } else { rng.next_u32() >> 4 };
            Sge { addr: anywhere(rng, length), length, lkey }
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
            ("va", anywhere(rng, pay_len as u32).into()),
            ("key", key.into()),
            ("chk_len", u128::from(pay_len) + u128::from(if rng.percent(10) { 0 } else { rng.below(1 << 20) })),
            ("again", u128::from(rng.percent(30))),
            ("flush", u128::from(kind == 5 && rng.percent(40))),
            ("imm", rng.next_u32().into()),
            ("rq_handle", handle.into()),
            ("msg_off", msg_off.into()),
            ("free_rq", u128::from(end)),
            // Half of the queue pairs are unreliable.
            ("soft", u128::from((kind == 1 || kind == 2) && handle % 2 == 1)),
            ("first", u128::from(rng.percent(40))),
        ]));
        if (kind == 1 || kind == 2) && rng.percent(40) {
            // A message of one packet, or a datagram behind its header.
            let order = orders.last_mut().expect("just pushed");
            let header = kind == 2 && rng.percent(40);
            order.extend([("late", 1), ("rq_index", u128::from(rng.next_u32() & 0xffff)), ("done", 1), ("free_rq", 1), ("msg_off", 0)]);
            offsets.remove(&handle);
            if header {
                order.insert("msg_off", 40);
                let mut area = order.clone();
                area.extend([("done", 0), ("free_rq", 0), ("msg_off", 20), ("pay_len", 20)]);
                orders.insert(orders.len() - 1, area);
            }
        }
    }
    orders
}

#[test]
fn random_orders_are_placed_as_the_model_does() {
    let mut bench = Bench::new(30, 8);
    let mut golden = Golden::default();
    for round in 0..8 {
        golden.marks.clear();
        let mut orders = random_orders(&mut bench, 240);
        // Lives, those that wipe among them, must not meet the marks of the round before.
        let base = u128::from(32 * round + bench.tb.rng().below(16));
        orders.iter_mut().for_each(|op| *op.get_mut("epoch").expect("set") = (op["epoch"] + base) & 0xff);
        let wipe: Vec<Msg> = (0..16).map(|qpn| plain_write(qpn, (base + 128) & 0xff)).collect();
        check(&mut bench, &wipe, &mut golden);
        check(&mut bench, &orders, &mut golden);
    }
}

fn plain_write(qpn: u128, epoch: u128) -> Msg {
    BTreeMap::from([("kind", 1), ("qpn", qpn), ("epoch", epoch), ("has_frame", 1), ("pay_len", 64), ("va", 0x12340), ("key", 1), ("chk_len", 64), ("free_rq", 0), ("soft", 0), ("flush", 0)])
}

/// A buffer's next list is read, though the message begins where the one before ended: a datagram over IPv4 begins with byte 20.
#[test]
fn a_message_does_not_go_on_in_the_list_of_one_that_is_over() {
    let mut bench = Bench::new(0, 4);
    let mut golden = Golden::default();
    for (n, msg_off) in [(1u64, 0u128), (2, 20)] {
        bench.buffers.insert(0, Some(vec![Sge { addr: 0x1_0000 * n, length: 100, lkey: n as u32 }]));
        let order = BTreeMap::from([
            ("kind", 2),
            ("qpn", 5),
            ("epoch", 3),
            ("has_frame", 1),
            ("pay_len", 20),
            ("pay_off", 14),
            ("va", 0),
            ("key", 0),
            ("chk_len", 0),
            ("again", 0),
            ("rq_handle", 0),
            ("msg_off", msg_off),
            ("free_rq", 1),
            ("done", 1),
            ("soft", 0),
            ("flush", 0),
        ]);
        check(&mut bench, &[order], &mut golden);
    }
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
    let cycles = check(&mut bench, &orders, &mut Golden::default());
    assert!(cycles <= 220, "{cycles} cycles for 100 small writes");
}

/// SENDs of one packet whose receives come while they wait: as fast as small WRITEs.
#[test]
fn a_small_send_takes_few_cycles() {
    let mut bench = Bench::new(0, 8);
    for handle in 0..8 {
        bench.buffers.insert(handle, Some(vec![Sge { addr: 0x1000 * u64::from(handle), length: 100, lkey: 5 }]));
    }
    let send = |n: u128| -> Msg {
        let mut order = plain_write(n % 16, 3);
        order.extend([("kind", 2), ("late", 1), ("done", 1), ("free_rq", 1), ("inv", 0), ("msg_off", 0), ("rq_handle", n % 8)]);
        order
    };
    let orders: Vec<Msg> = (0..100).map(send).collect();
    let cycles = check(&mut bench, &orders, &mut Golden::default());
    assert!(cycles <= 240, "{cycles} cycles for 100 small SENDs");
}

/// Answers that are a whole message: their work requests are read while others wait, two reads each.
#[test]
fn a_small_answer_takes_few_cycles() {
    let mut bench = Bench::new(0, 8);
    for handle in 0..8 {
        bench.sends.insert(handle, Some((64, false, vec![Sge { addr: 0x1000 * u64::from(handle), length: 100, lkey: 5 }])));
    }
    let answer = |n: u128| -> Msg {
        let mut order = plain_write(n % 16, 3);
        order.extend([("kind", 8), ("done", 1), ("free_rq", 1), ("msg_off", 0), ("rq_handle", n % 8), ("pay_off", 58), ("again", 0), ("grh", 0)]);
        order
    };
    let orders: Vec<Msg> = (0..100).map(answer).collect();
    let cycles = check(&mut bench, &orders, &mut Golden::default());
    assert!(cycles <= 440, "{cycles} cycles for 100 small answers");
}

/// Of a whole message's answer everything is looked at: the message's length, the first entry's length, the page that it lies in, which may end where the answer ends.
#[test]
fn an_answer_is_what_its_request_asked_for() {
    let mut bench = Bench::new(0, 8);
    let mut golden = Golden::default();
    for (handle, total, entry, at) in [(0, 128, 4096, 0), (1, 64, 63, 0), (2, 64, 64, 0), (3, 64, 4096, 4096 - 64), (4, 64, 4096, 4096 - 63)] {
        let list = vec![Sge { addr: 0x7_0000 + at, length: entry, lkey: 5 }, Sge { addr: 0x9_0000, length: 4096, lkey: 6 }];
        bench.sends.insert(handle, Some((total, false, list)));
    }
    for pay_len in [64, 128, 200] {
        let orders: Vec<Msg> = (0..5)
            .map(|handle: u128| {
                let mut order = plain_write(handle, 3);
                order.extend([("kind", 8), ("done", 1), ("free_rq", 1), ("msg_off", 0), ("rq_handle", handle), ("pay_off", 58), ("pay_len", pay_len), ("again", 0), ("grh", 0)]);
                order
            })
            .collect();
        check(&mut bench, &orders, &mut golden);
    }
}

/// Orders are taken ahead while the list of the first is on its way from the host.
#[test]
fn orders_wait_in_front_of_a_list_that_is_fetched() {
    let mut bench = Bench::new(0, 8);
    let layout = Fields::of::<PlaceOp>();
    for n in 0..40 {
        bench.op.push(layout.pack(&[("kind", 2), ("qpn", n % 16), ("rq_handle", n), ("pay_len", 64), ("free_rq", 1), ("done", 1)]));
    }
    // Nobody answers.
    bench.tb.run(100);
    assert!((16..24).contains(&bench.op.taken()), "{} orders taken", bench.op.taken());
    assert_eq!((bench.wqe.taken(), bench.done.taken()), (1, 0));
}

/// Answers to READs and atomics: whole and broken ones, requests that take turns, buffers given back early.
fn random_answers(bench: &mut Bench, count: usize) -> Vec<Msg> {
    bench.sends.clear();
    // Of each buffer: bytes answered so far.
    let mut orders = Vec::new();
    let mut at = BTreeMap::<u32, u64>::new();
    for handle in 0..16 {
        let rng = bench.tb.rng();
        let atomic = rng.percent(25);
        let entry = |rng: &mut crate::tb::Rng| {
            let length = if atomic { rng.below(6) as u32 } else { [0, 1, 100, 4096, 9000][rng.below(5) as usize] };
            let lkey = if rng.percent(3) { 0xf000_0000 | rng.range(1, 6) as u32 } else { rng.next_u32() >> 4 };
            Sge { addr: anywhere(rng, length), length, lkey }
        };
        let mut list: Vec<Sge> = (0..rng.below(8)).map(|_| entry(rng)).collect();
        if rng.percent(10) {
            list = (0..if atomic { 29 } else { 30 }).map(|_| entry(rng)).collect();
        }
        let sum: u32 = list.iter().map(|sge| sge.length).sum();
        // Longer than its entries now and then.
        let length = if atomic { 8 } else { sum + u32::from(rng.percent(10)) };
        bench.sends.insert(handle, (!rng.percent(5)).then_some((length, atomic, list)));
    }
    while orders.len() < count {
        let rng = bench.tb.rng();
        let handle = rng.below(16) as u32;
        let (length, atomic) = bench.sends[&handle].as_ref().map_or((3000, false), |s| (u64::from(s.0), s.1));
        let offset = at.entry(handle).or_default();
        // Several packets of one request in a row, mostly.
        for _ in 0..rng.range(1, 4) {
            let give = rng.percent(5);
            let left = length - *offset;
            let mut pay_len = if atomic { 8 } else { left.min(1024) };
            let mut done = atomic || left <= 1024;
            if rng.percent(3) && !atomic {
                pay_len = (pay_len + 1).min(1024);
            }
            if rng.percent(3) {
                done = !done;
            }
            if give {
                (pay_len, done) = (0, false);
            }
            let msg_off = if atomic { 0 } else { *offset };
            *offset = if done || msg_off + pay_len >= length { 0 } else { msg_off + pay_len };
            orders.push(BTreeMap::from([
                ("kind", if atomic { 9 } else { 8 }),
                ("qpn", handle.into()),
                ("epoch", 3),
                ("has_frame", u128::from(!atomic && !give)),
                ("pay_len", pay_len.into()),
                ("pay_off", if atomic { 0 } else { 58 }),
                ("rq_handle", handle.into()),
                ("msg_off", msg_off.into()),
                ("done", done.into()),
                ("free_rq", u128::from(done || give)),
                ("again", 0),
                ("grh", 0),
            ]));
        }
    }
    orders
}

#[test]
fn answers_are_placed_by_the_list_of_their_request() {
    let mut bench = Bench::new(30, 8);
    let mut golden = Golden::default();
    for _ in 0..8 {
        let orders = random_answers(&mut bench, 150);
        check(&mut bench, &orders, &mut golden);
    }
}

/// Neither the responder's orders nor the answers starve the other.
#[test]
fn both_ports_have_their_turn() {
    let mut bench = Bench::new(0, 4);
    let layout = Fields::of::<PlaceOp>();
    let write: Vec<_> = plain_write(3, 7).into_iter().collect();
    for _ in 0..200 {
        bench.op.push(layout.pack(&write));
        bench.answer.push(layout.pack(&[("kind", 0), ("has_frame", 1)]));
    }
    let mut requests = Vec::new();
    for _ in 0..400 {
        bench.cycle(&mut requests);
    }
    // Orders wait inside, answers do not.
    let (orders, answers) = (bench.op.taken(), bench.answer.taken());
    assert!(orders > 50 && answers > 50 && orders.abs_diff(answers) < 24, "{orders} orders, {answers} answers");
}

/// The ring of a late order has gone when its receive is asked for: its frame is freed, and nothing else comes of it.
#[test]
fn a_late_order_without_a_receive_is_nothing() {
    let mut bench = Bench::new(0, 4);
    let layout = Fields::of::<PlaceOp>();
    bench.buffers.insert(3, Some(vec![Sge { addr: 0x1000, length: 100, lkey: 5 }]));
    let order = [("kind", 2), ("qpn", 4), ("has_frame", 1), ("pay_len", 64), ("late", 1), ("done", 1), ("cqe", 1), ("ack", 1), ("free_rq", 1)];
    for (ok, handle) in [(0, 9), (1, 3)] {
        bench.op.push(layout.pack(&order));
        bench.late.push(Fields::of::<RqGrant>().pack(&[("ok", ok), ("handle", handle)]));
    }
    let mut requests = Vec::new();
    (0..100).for_each(|_| bench.cycle(&mut requests));
    let done = Fields::of::<DoneOp>();
    let kinds: Vec<_> = std::iter::from_fn(|| bench.done.pop()).map(|op| ["kind", "cqe", "ack", "writes"].map(|name| done.get(&op, name))).collect();
    assert_eq!((kinds, requests.len()), (vec![[0, 0, 0, 0], [2, 1, 1, 1]], 1));
    assert_eq!(bench.free.taken(), 1, "the buffer of the second");
}
