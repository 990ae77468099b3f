//! More messages in progress than receive buffers: idle ones lose theirs, get the same request once more, and nobody waits for a peer.
use super::super::kept::{AGE, KEPT, SHARE};
use super::super::model::{Packet, Qp};
use super::super::*;
use super::bench::{write_qp, Bench, Step, RAW_QPN};
use super::streams::random_qp;
use crate::roce::word::opened;
use crate::tb::Fields;
use std::collections::{BTreeMap, BTreeSet};

const PERIOD: u64 = 1 << AGE;
/// Cycles between what happens and what a test sees.
const SLACK: u64 = 10;

/// What the receive unit and placement know.
#[derive(Default)]
struct World {
    /// Buffers and whose they are, and when each has been used last.
    owners: BTreeMap<u32, u32>,
    used: BTreeMap<u32, u64>,
    functions: BTreeMap<u32, u32>,
    /// Packets ordered per queue pair, and those that were told to come again or dropped.
    orders: BTreeMap<u32, u32>,
    refused: BTreeMap<u32, u32>,
    /// Buffers taken away, those of them that were in use, requests fetched once more.
    taken: u32,
    robbed: u32,
    again: u32,
}

impl World {
    fn keeps(&self, function: u32) -> u64 {
        self.owners.values().filter(|qpn| self.functions[qpn] == function).count() as u64
    }

    fn follow(&mut self, bench: &mut Bench) {
        let layout = opened::<PlaceOp>();
        let mut victim: Option<(u32, u32, bool)> = None;
        for step in bench.tape.drain(..) {
            match step {
                Step::Alloc([qpn, again, index, taken, lost, loser], handle) => {
                    assert!(!self.owners.values().any(|owner| *owner == qpn), "queue pair {qpn} has one");
                    let told = victim.take();
                    assert_eq!((taken == 1).then_some((lost, loser)), told.map(|v| (v.0, v.1)), "the loser is told of");
                    if let Some((_, loser, true)) = told {
                        let (poor, rich) = (self.functions[&qpn], self.functions[&loser]);
                        assert!(self.keeps(poor) < SHARE, "{qpn} robs {loser}, and its function keeps {}", self.keeps(poor));
                        assert!(self.keeps(rich) >= SHARE && poor != rich, "{qpn} robs {loser}, whose function keeps {}", self.keeps(rich) + 1);
                        self.robbed += 1;
                    }
                    if again == 1 {
                        assert_eq!(index, qpn, "the request that it has in hand");
                        self.again += 1;
                    }
                    assert!(self.owners.insert(handle, qpn).is_none(), "buffer {handle} is another's");
                    assert!(self.owners.len() <= KEPT as usize + 1);
                }
                Step::Order(op, now) => {
                    let field = |name: &str| layout.get(&op, name) as u32;
                    let (kind, qpn, handle) = (field("kind"), field("qpn"), field("rq_handle"));
                    if kind == 2 {
                        assert_eq!(self.owners.get(&handle), Some(&qpn), "of whose buffer");
                        assert_eq!(field("rq_index"), qpn);
                        *self.orders.entry(qpn).or_default() += 1;
                        self.used.insert(handle, now);
                    }
                    if kind == 0 && field("has_frame") == 1 {
                        self.refuse(qpn, now);
                    }
                    if field("free_rq") == 1 {
                        let owner = self.owners.remove(&handle).expect("a buffer comes back once");
                        if kind == 0 {
                            let function = self.functions[&owner];
                            let mates = self.keeps(function);
                            assert!(mates + 1 >= SHARE, "function {function} has only {mates} more");
                            assert_eq!(self.owners.len() as u64 + 1, KEPT, "not before it is needed");
                            self.taken += 1;
                            victim = Some((handle, owner, now - self.used[&handle] < PERIOD - SLACK));
                        } else {
                            assert_eq!(owner, qpn);
                        }
                    }
                }
            }
        }
    }

    /// There was no buffer for queue pair `qpn`.
    fn refuse(&mut self, qpn: u32, now: u64) {
        let function = self.functions[&qpn];
        assert!(self.keeps(function) >= SHARE, "function {function} keeps {}", self.keeps(function));
        assert_eq!(self.owners.len() as u64, KEPT, "there is room");
        if self.functions.values().all(|f| *f == function) {
            for (handle, owner) in &self.owners {
                assert!(now - self.used[handle] < 2 * PERIOD + SLACK, "{qpn} is refused, and {owner} stands still");
            }
        }
        *self.refused.entry(qpn).or_default() += 1;
    }

    /// Queue pair `id`, which expects PSN 0.
    fn queue_pair(&mut self, bench: &mut Bench, id: u32, qp_type: u8, function: u32) -> Qp {
        let mut qp = random_qp(bench.tb.rng(), id);
        (qp.state, qp.qp_type, qp.pmtu, qp.pkey, qp.epsn, qp.epoch) = (3, qp_type, 1, 0xffff, 0, 7);
        (qp.function, qp.remote_write) = (function as u16, true);
        self.functions.insert(id, function);
        bench.store.lines.insert(id, write_qp(&bench.store.layout, &qp));
        qp
    }

    /// What has come of `qpn` packets: ordered, refused.
    fn fate(&self, qpn: u32) -> (u32, u32) {
        (self.orders.get(&qpn).copied().unwrap_or(0), self.refused.get(&qpn).copied().unwrap_or(0))
    }
}

fn packet(bench: &mut Bench, opcode: u8, psn: u32, qpn: u32) {
    bench.send(&Packet { opcode, psn, qpn, pay_len: 256, pkey: 0xffff, ..Default::default() });
}

fn start() -> (Bench, World) {
    let mut bench = Bench::new("resp", 0, (1, 1));
    bench.pool = Some((0..64).collect());
    (bench, World::default())
}

fn wait(bench: &mut Bench, cycles: u64) {
    (0..cycles).for_each(|_| bench.cycle());
}

fn messages(stall: u32, queue_pairs: u32, rounds: u32) {
    let mut bench = Bench::new("resp", stall, if stall == 0 { (1, 1) } else { (2, 20) });
    bench.pool = Some((0..64).collect());
    // So that orders and allocations are seen in the order in which they were made.
    bench.op.set_stall(0);
    let mut world = World::default();
    // Next PSN, and whether a message is in progress.
    let mut peers = vec![(0, false); queue_pairs as usize];
    for id in 0..queue_pairs {
        // Function 0 has most of them.
        let function = [0, 0, 0, 0, 0, 0, 1, 1, 2, 3][bench.tb.rng().below(10) as usize];
        world.queue_pair(&mut bench, id, 0, function);
    }
    let mut refused = 0;
    for round in 0..rounds {
        let mut sent = BTreeMap::new();
        for _ in 0..20 {
            let id = bench.tb.rng().below(queue_pairs.into()) as u32;
            let (psn, open) = peers[id as usize];
            // A third of the peers vanish behind First.
            let opcode = match open {
                false => [0, 0, 0, 4][bench.tb.rng().below(4) as usize],
                true if id % 3 == 0 => continue,
                true => 1 + u8::from(bench.tb.rng().percent(30)),
            };
            if sent.contains_key(&id) {
                continue;
            }
            sent.insert(id, (opcode, world.fate(id)));
            packet(&mut bench, opcode, psn, id);
            if stall > 0 && bench.tb.rng().percent(30) {
                wait(&mut bench, 50);
            }
        }
        if bench.tb.rng().percent(30) {
            wait(&mut bench, PERIOD);
        }
        bench.settle();
        world.follow(&mut bench);
        for (id, (opcode, before)) in sent {
            let (ordered, told) = world.fate(id);
            let again = told - before.1;
            assert_eq!((ordered - before.0) + again, 1, "round {round}: queue pair {id}, opcode {opcode}");
            assert!(again == 0 || opcode < 2, "round {round}: the buffer would have come back at once");
            refused += again;
            if again == 0 {
                let peer = &mut peers[id as usize];
                *peer = (peer.0 + 1, opcode < 2);
            }
        }
        assert_eq!(world.owners.len() + bench.pool.as_ref().map_or(0, Vec::len), 64, "each buffer is in one place");
    }
    let World { taken, again, robbed, .. } = world;
    println!("{taken} taken, {robbed} of them in use, {again} fetched again, {refused} refused");
    assert!(taken > 20 && again > 20 && refused > 20 && robbed > 0, "{taken} taken, {robbed} of them in use, {again} fetched again, {refused} refused");
    // Half of them go to error, then all are reset: each buffer comes back once, from those that have one.
    let layout = Fields::of::<QpError>();
    for id in (0..queue_pairs).step_by(2) {
        bench.errors[0].push(layout.pack(&[("qpn", id.into()), ("epoch", 7), ("cause", 4)]));
    }
    bench.settle();
    world.follow(&mut bench);
    for id in 0..queue_pairs {
        let words = bench.store.lines.get_mut(&id).expect("made above");
        bench.store.layout.set(words, "state", 0);
        bench.errors[0].push(layout.pack(&[("qpn", id.into()), ("epoch", 7), ("cause", 0)]));
    }
    bench.settle();
    world.follow(&mut bench);
    let mut free = bench.pool.take().expect("set above");
    free.sort_unstable();
    assert_eq!(free, (0..64).collect::<Vec<_>>());
}

#[test]
fn a_hundred_messages_in_progress_share_the_buffers() {
    messages(0, 100, 40);
}

#[test]
fn they_do_with_stalls() {
    messages(30, 150, 60);
}

/// One peer after the other vanishes behind First, and one message goes on and on: it keeps its buffer, because it uses it. The others have theirs for a
/// period or two.
#[test]
fn a_busy_message_is_not_the_one_that_loses() {
    let (mut bench, mut world) = start();
    for id in 0..=400 {
        world.queue_pair(&mut bench, id, 0, 0);
    }
    for id in 1..=400 {
        if id % 20 == 1 {
            packet(&mut bench, u8::from(id > 1), id / 20, 0);
        }
        packet(&mut bench, 0, 0, id);
        wait(&mut bench, 60);
    }
    bench.settle();
    world.follow(&mut bench);
    assert_eq!((world.fate(0), world.again, world.robbed), ((20, 0), 0, 0));
    assert!(world.owners.values().any(|qpn| *qpn == 0));
    let refused = world.refused.len() as u32;
    assert_eq!(world.taken + refused, 401 - KEPT as u32);
    assert!(world.taken > 120, "{} taken, {refused} refused", world.taken);
}

/// Used once after a long pause, and in the period before: both count.
#[test]
fn one_use_is_enough() {
    let (mut bench, mut world) = start();
    for id in 0..100 {
        world.queue_pair(&mut bench, id, 0, 0);
    }
    for id in 0..KEPT as u32 {
        packet(&mut bench, 0, 0, id);
    }
    wait(&mut bench, 3 * PERIOD);
    packet(&mut bench, 1, 1, 7);
    for id in 40..80 {
        packet(&mut bench, 0, 0, id);
    }
    bench.settle();
    world.follow(&mut bench);
    // The last one found nobody idle.
    assert_eq!((world.fate(7), world.taken, world.fate(79)), ((2, 0), 39, (0, 1)));
    assert!(world.owners.values().any(|qpn| *qpn == 7));
}

/// A function whose 40 messages all move, and the others that come: each gets its share at once, and no more.
#[test]
fn a_function_gets_its_share_of_those_in_use() {
    let (mut bench, mut world) = start();
    for id in 0..100 {
        world.queue_pair(&mut bench, id, 0, if id < 40 { 0 } else { (id - 40) / 15 + 1 });
    }
    for id in 0..40 {
        packet(&mut bench, 0, 0, id);
    }
    for id in 40..85 {
        packet(&mut bench, 0, 0, id);
    }
    bench.settle();
    world.follow(&mut bench);
    let (taken, robbed, refused) = (world.taken, world.robbed, world.refused.len());
    assert_eq!((taken, robbed, refused), (30, 30, 15));
    assert_eq!([0, 1, 2, 3].map(|function| world.keeps(function)), [SHARE; 4]);
    // One that has lost its buffer waits, until there is one.
    let kept: BTreeSet<u32> = world.owners.values().copied().collect();
    let loser = (0..40).find(|id| !kept.contains(id)).expect("30 of them");
    packet(&mut bench, 1, 1, loser);
    bench.settle();
    world.follow(&mut bench);
    assert_eq!((world.fate(loser), world.again), ((1, 1), 0));
    packet(&mut bench, 2, 1, 40);
    packet(&mut bench, 1, 1, loser);
    bench.settle();
    world.follow(&mut bench);
    assert_eq!((world.fate(loser), world.fate(40), world.again, world.taken), ((2, 1), (2, 0), 1, taken));
}

/// The peers of all functions vanish behind First: whoever comes two periods later finds a buffer, of whatever function.
#[test]
fn who_vanishes_stops_nobody() {
    let (mut bench, mut world) = start();
    for id in 0..100 {
        world.queue_pair(&mut bench, id, 0, id % 4);
    }
    for id in 0..40 {
        packet(&mut bench, 0, 0, id);
    }
    wait(&mut bench, 2 * PERIOD);
    for id in 40..44 {
        packet(&mut bench, 0, 0, id);
    }
    bench.settle();
    world.follow(&mut bench);
    assert_eq!((world.taken, world.robbed, world.refused.len()), (4, 0, 0));
    // Three functions' peers with fewer than their share lose none, though they stand still and the fourth has more messages than buffers.
    let (mut bench, mut world) = start();
    for id in 0..100 {
        world.queue_pair(&mut bench, id, 0, if id < 27 { id % 3 + 1 } else { 0 });
    }
    for id in 0..27 {
        packet(&mut bench, 0, 0, id);
    }
    wait(&mut bench, 3 * PERIOD);
    for id in 27..50 {
        packet(&mut bench, 0, 0, id);
    }
    bench.settle();
    world.follow(&mut bench);
    assert_eq!((world.taken, world.refused.len()), (0, 10));
}

/// All that may be kept are in use: RC is told to come again, UC loses the message, as with an empty receive queue. Later there are idle ones.
#[test]
fn when_none_can_be_taken_the_answer_is_that_of_an_empty_queue() {
    let (mut bench, mut world) = start();
    let mut qps: Vec<Qp> = (0..42).map(|id| world.queue_pair(&mut bench, id, u8::from(id == 41), 0)).collect();
    for id in 0..40 {
        packet(&mut bench, 0, 0, id);
    }
    bench.settle();
    world.follow(&mut bench);
    let field = |bench: &Bench, id: u32, name: &str| bench.store.layout.get(&bench.store.lines[&id], name);
    let layout = opened::<PlaceOp>();
    for (id, class, psn) in [(40, 0, 0), (41, 0x20, 0), (40, 0, 0), (41, 0x20, 2)] {
        packet(&mut bench, class, psn, id);
        bench.settle();
        let Some(Step::Order(op, _)) = bench.tape.first() else { panic!("no order") };
        let rnr = u128::from(qps[id as usize].min_rnr_timer) | 0x20;
        let reliable = u128::from(id == 40);
        for (name, value) in [("kind", 0), ("has_frame", 1), ("ack", reliable), ("replies", reliable), ("done", 0), ("free_rq", 0), ("cqe", 0)] {
            assert_eq!(layout.get(op, name), value, "{name}");
        }
        assert!(id == 41 || layout.get(op, "syndrome") == rnr);
        assert_eq!(bench.tape.len(), 1, "nothing is asked for");
        world.follow(&mut bench);
        let after = if id == 40 { (1, 0, 0) } else { (0, 0, u128::from(psn) + 1) };
        assert_eq!((field(&bench, id, "rnr_sent"), field(&bench, id, "in_msg"), field(&bench, id, "epsn")), after);
    }
    // The rest of the lost message goes the same way, without a request.
    packet(&mut bench, 0x22, 3, 41);
    bench.settle();
    assert_eq!(bench.tape.len(), 1);
    bench.tape.clear();
    wait(&mut bench, 2 * PERIOD);
    qps.clear();
    for (id, class, psn) in [(40, 0, 0), (41, 0x20, 4)] {
        for n in 0..3 {
            packet(&mut bench, class | n, psn + u32::from(n), id);
        }
    }
    bench.settle();
    world.follow(&mut bench);
    assert_eq!((world.fate(40), world.fate(41), world.taken, world.robbed), ((3, 2), (3, 2), 1, 0));
}

/// A packet that ends its message gives its buffer back at once: it needs nobody else's, however many are in use.
#[test]
fn who_ends_at_once_needs_no_victim() {
    let (mut bench, mut world) = start();
    for id in 0..40 {
        world.queue_pair(&mut bench, id, 0, 0);
    }
    let others = [(40, 0), (41, 1), (42, 2), (RAW_QPN + 32, 0)];
    let qkey = others.map(|(id, qp_type)| world.queue_pair(&mut bench, id, qp_type, 0).qkey)[2];
    for id in (0..=40).filter(|id| *id != RAW_QPN) {
        packet(&mut bench, 0, 0, id);
    }
    world.queue_pair(&mut bench, RAW_QPN, 3, 0);
    world.queue_pair(&mut bench, 44, 0, 1);
    for n in 0..20 {
        // SEND Only on RC, WRITE Only with immediate data on RC, SEND Only on UC, a datagram, a raw frame.
        packet(&mut bench, 4, 2 * n, RAW_QPN + 32);
        bench.send(&Packet { opcode: 11, psn: 2 * n + 1, qpn: RAW_QPN + 32, pay_len: 256, dma_len: 256, pkey: 0xffff, ..Default::default() });
        packet(&mut bench, 0x24, n, 41);
        bench.send(&Packet { opcode: 0x64, qpn: 42, pay_len: 256, pkey: 0xffff, qkey, ..Default::default() });
        bench.send(&Packet { raw: true, frame_len: 100, ..Default::default() });
    }
    bench.settle();
    world.follow(&mut bench);
    let fates = [41, 42, 43, RAW_QPN].map(|id| world.fate(id));
    assert_eq!((fates, world.taken, world.owners.len() as u64), ([(20, 0), (40, 0), (20, 0), (20, 0)], 0, KEPT));
    // One that another function has robbed, with its last packet.
    packet(&mut bench, 0, 0, 44);
    bench.settle();
    world.follow(&mut bench);
    assert_eq!((world.robbed, world.fate(44)), (1, (1, 0)));
    let loser = (0..=40).find(|id| *id != RAW_QPN && !world.owners.values().any(|qpn| qpn == id)).expect("one of them");
    packet(&mut bench, 2, 1, loser);
    bench.settle();
    world.follow(&mut bench);
    assert_eq!((world.fate(loser), world.again, world.taken), ((2, 0), 1, 1));
}
