//! SENDs and WRITEs wait for the atomics in front of them, and for nobody else's.
use super::super::model::{Grant, Packet, Qp};
use super::bench::{write_qp, Bench};
use crate::msg::PlaceOp;
use crate::roce::word::opened;
use std::collections::{BTreeMap, VecDeque};

const READ: u8 = 12;
const ADD: u8 = 0x14;
const SWAP: u8 = 0x13;

/// What the test, in place of everything behind the responder, knows of a queue pair.
#[derive(Default)]
struct Line {
    /// Opcodes on their way to the responder and PSNs.
    sent: VecDeque<(u8, u32)>,
    psn: u32,
    /// Atomics whose order has come and which are not over; over; READs and atomics answered.
    open: u32,
    over: u32,
    answered: u32,
}

struct World {
    bench: Bench,
    lines: BTreeMap<u32, Line>,
    /// When an atomic of a queue pair is over.
    due: Vec<(u64, u32)>,
    orders: u64,
    /// Cycle and queue pair of each order.
    seen: Vec<(u64, u32)>,
}

impl World {
    fn new(stall: u32, latency: (u64, u64), qps: &[u32]) -> World {
        let mut bench = Bench::new("resp", stall, latency);
        bench.prompt = false;
        for id in qps {
            let qp = Qp { state: 3, pmtu: 1, pkey: 0xffff, remote_write: true, remote_read: true, remote_atomic: true, max_dest_rd_atomic: 16, epoch: 9, rq: *id, ..Qp::default() };
            bench.store.lines.insert(*id, write_qp(&bench.store.layout, &qp));
        }
        (0..20).for_each(|_| bench.cycle());
        World { bench, lines: qps.iter().map(|id| (*id, Line::default())).collect(), due: Vec::new(), orders: 0, seen: Vec::new() }
    }

    fn send(&mut self, id: u32, opcode: u8) {
        let line = self.lines.get_mut(&id).expect("there");
        let length = if matches!(opcode, ADD | SWAP | READ) { 0 } else { 64 };
        if matches!(opcode, 4 | 0x17) {
            self.bench.answers.push_back(Grant::Some(7, 9));
        }
        self.bench.send(&Packet { opcode, qpn: id, psn: line.psn, pay_len: length, dma_len: 64, pkey: 0xffff, ..Default::default() });
        line.sent.push_back((opcode, line.psn));
        line.psn += 1;
    }

    /// One cycle; `delay`: how long an atomic may take.
    fn step(&mut self, delay: u64) {
        let now = self.bench.tb.cycles();
        let ripe = self.due.iter().position(|d| d.0 <= now);
        self.bench.tb.set("over", ripe.is_some().into());
        self.bench.tb.set("answered", ripe.is_some().into());
        if let Some(n) = ripe {
            let (_, id) = self.due.swap_remove(n);
            let line = self.lines.get_mut(&id).expect("there");
            line.open -= 1;
            line.over += 1;
            line.answered += 1;
            for (port, value) in [("over_qpn", id), ("over_count", line.over % 512), ("answered_qpn", id), ("answered_epoch", 9), ("answered_count", line.answered % 32)] {
                self.bench.tb.set(port, value.into());
            }
        }
        self.bench.cycle();
        let layout = opened::<PlaceOp>();
        while let Some(words) = self.bench.op.pop() {
            let get = |name: &str| layout.get(&words, name) as u32;
            let (id, kind) = (get("qpn"), get("kind"));
            let line = self.lines.get_mut(&id).expect("there");
            let (opcode, psn) = line.sent.pop_front().expect("an order for nothing");
            let want = match opcode {
                READ => 5,
                ADD | SWAP => 6,
                4 | 0x17 => 2,
                _ => 1,
            };
            assert_eq!((kind, get("psn"), get("atomic")), (want, psn, (want == 6).into()), "queue pair {id}");
            assert!(want >= 5 || line.open == 0, "queue pair {id}: opcode {opcode:#x} has passed {} atomics", line.open);
            if want == 6 {
                line.open += 1;
                let at = self.bench.tb.cycles() + self.bench.tb.rng().range(1, delay);
                self.due.push((at, id));
            } else if want == 5 {
                // A READ is answered at once; the count goes with the next atomic's.
                line.answered += 1;
            }
            self.orders += 1;
            self.seen.push((self.bench.tb.cycles(), id));
        }
    }

    fn finish(&mut self, delay: u64, limit: u64) {
        let end = self.bench.tb.cycles() + limit;
        while self.lines.values().any(|line| !line.sent.is_empty()) || !self.due.is_empty() {
            assert!(self.bench.tb.cycles() < end, "requests wait for ever");
            self.step(delay);
        }
    }
}

/// Random requests; queue pairs with and without atomics; at times more wait than there are places.
#[test]
fn requests_wait_for_the_atomics_in_front_of_them() {
    for (stall, latency, delay) in [(0, (1, 1), 8), (20, (1, 20), 60), (0, (1, 2), 700), (30, (2, 60), 300)] {
        let qps: Vec<u32> = (0..14).collect();
        let mut world = World::new(stall, latency, &qps);
        for _ in 0..900 {
            let id = world.bench.tb.rng().below(14) as u32;
            // Queue pairs from 10 on have no atomics. No more than 16 READs and atomics are open.
            let asking = world.lines[&id].sent.iter().filter(|(opcode, _)| matches!(*opcode, READ | ADD | SWAP)).count() as u32 + world.lines[&id].open;
            let opcode = match world.bench.tb.rng().below(10) {
                0..=1 if id < 10 && asking < 12 => ADD,
                2 if id < 10 && asking < 12 => SWAP,
                3 if asking == 0 && world.lines[&id].over > 0 => READ,
                4..=5 => 4,
                6 => 0x17,
                _ => 10,
            };
            // A READ's answer is told with the next atomic's only.
            let opcode = if opcode == READ { 10 } else { opcode };
            world.send(id, opcode);
            let idle = world.bench.tb.rng().below(12);
            (0..idle).for_each(|_| world.step(delay));
        }
        world.finish(delay, 400_000);
        assert_eq!(world.orders, 900);
    }
}

/// READs and atomics pass behind atomics, nothing else does; a request behind one that waits, waits.
#[test]
fn reads_and_atomics_pass_behind_atomics() {
    let mut world = World::new(0, (1, 1), &[3, 4]);
    for opcode in [ADD, READ, SWAP, 10, READ, ADD] {
        world.send(3, opcode);
    }
    (0..300).for_each(|_| world.step(100_000));
    assert_eq!(world.lines[&3].sent.len(), 3, "the WRITE waits, and the READ and the atomic behind it");
    // Another queue pair's pass at once.
    for opcode in [10, 4, READ, ADD] {
        world.send(4, opcode);
    }
    (0..40).for_each(|_| world.step(100_000));
    assert!(world.lines[&4].sent.is_empty());
    world.finish(100_000, 500_000);
}

/// Thirty of one queue pair wait; each of another's comes as fast as if nobody did.
#[test]
fn whoever_waits_stops_nobody_else() {
    let mut world = World::new(0, (1, 1), &[1, 2, 5]);
    world.send(1, ADD);
    (0..30).for_each(|_| world.send(1, 10));
    (0..300).for_each(|_| world.step(1_000_000));
    assert_eq!(world.lines[&1].sent.len(), 30);
    let start = world.bench.tb.cycles();
    for n in 0..60 {
        world.send(if n % 2 == 0 { 2 } else { 5 }, 10);
    }
    while world.orders < 61 {
        world.step(1_000_000);
    }
    let each = (world.bench.tb.cycles() - start) / 60;
    assert!(each <= 3, "{each} cycles each");
    // Then those that have waited, in their order.
    world.due[0].0 = 0;
    world.finish(1, 2000);
}
