//! The receive-queue unit between a random host, a random DMA reader and a responder.

mod bench;

use super::model::RingModel;
use super::RecvQueue;
use crate::msg::{RqAlloc, RqCmd};
use crate::tb::{Fields, Tb};
use bench::{region, Bench};

const LQ: usize = 4;
const QUEUES: u32 = 1 << LQ;

fn scenario(bench: &mut Bench, rounds: u32) {
    bench.run(140);
    for qpn in 0..QUEUES {
        let (ring, shift) = bench.random_ring(qpn);
        bench.lives.insert(qpn, (0, shift));
        bench.create(qpn, ring);
    }
    bench.reads.bad_pages.extend([region(3, 0) >> 12, region(7, 0) >> 12]);
    for _ in 0..rounds {
        for _ in 0..6 {
            let qpn = bench.tb.rng().below(QUEUES.into()) as u32;
            let ring = &bench.rings[&qpn];
            let (room, producer) = ((1u64 << ring.log_size) - u64::from(ring.pending()), ring.producer);
            if room > 0 {
                let index = producer.wrapping_add(bench.tb.rng().range(1, room) as u16);
                bench.post(qpn, index);
            }
        }
        bench.settle();
        bench.flushed();
        for _ in 0..bench.tb.rng().below(12) {
            let qpn = bench.tb.rng().below(QUEUES.into()) as u32;
            bench.ask(qpn);
        }
        bench.settle();
        // Never so many held that a buffer has to be waited for.
        while bench.held.len() > 30 {
            bench.use_one();
        }
        bench.use_one();
        if bench.tb.rng().percent(40) {
            bench.once_more();
        }
        if bench.tb.rng().percent(30) {
            let rng = bench.tb.rng();
            let (ring, limit) = (QUEUES / 2 + rng.below(u64::from(QUEUES / 2)) as u32, rng.below(12) as u16);
            bench.arm(ring, limit);
        }
        if bench.tb.rng().percent(15) {
            let qpn = bench.tb.rng().below(QUEUES.into()) as u32;
            let (ring, shift) = bench.random_ring(qpn);
            bench.remake(qpn, ring, shift);
        }
        if bench.tb.rng().percent(8) {
            let qpn = bench.tb.rng().below(u64::from(QUEUES / 2)) as u32;
            bench.cmd.push(Fields::of::<RqCmd>().pack(&[("qpn", qpn.into())]));
            bench.rings.get_mut(&qpn).expect("it exists").flush = true;
            bench.settle();
        }
    }
    bench.run(600);
    bench.flushed();
    assert!(bench.rings.values().all(|ring| !ring.flush || ring.pending() == 0), "all flushed: {:?}", bench.rings);
    assert!(bench.asked.is_empty());
    while !bench.held.is_empty() {
        bench.use_one();
    }
    assert!(bench.events.is_empty(), "{:?}", bench.events);
    assert_eq!(["rq_db_bad", "rq_db_overrun", "srq_errors"].map(|name| bench.all(name)), [0; 3]);
    let others = ["rq_fetches", "rq_fetch_errors", "rq_empty", "rq_fetched_again", "rq_flushed", "srq_limits", "rq_fetched_ahead"];
    assert!(others.iter().all(|name| bench.all(name) > 0), "{:?}", others.map(|name| bench.all(name)));
    buffers_run_out(bench);
}

/// 64 grants; the next allocation waits until a buffer comes back.
fn buffers_run_out(bench: &mut Bench) {
    bench.remake(0, RingModel { log_size: 7, ..Default::default() }, 0);
    bench.post(0, 128);
    bench.settle();
    (0..64).for_each(|_| bench.ask(0));
    bench.run(1500);
    assert_eq!((bench.held.len(), bench.asked.len()), (64, 0), "all buffers are out");
    bench.ask(0);
    bench.run(3000);
    assert_eq!(bench.asked.len(), 1, "it waits for a buffer");
    bench.use_one();
    bench.run(200);
    assert_eq!((bench.held.len(), bench.asked.len()), (64, 0), "granted again");
    while !bench.held.is_empty() {
        bench.use_one();
    }
}

#[test]
fn slots_are_granted_in_ring_order_and_flushed() {
    scenario(&mut Bench::new(0), 120);
    scenario(&mut Bench::new(40), 120);
    scenario(&mut Bench::large(20), 80);
}

#[test]
fn bad_doorbells_are_counted() {
    let mut bench = Bench::new(20);
    bench.run(40);
    bench.create(5, RingModel { function: 3, log_size: 3, ..Default::default() });
    // Wrong function, no such queue, beyond the table, beyond the ring, no news, behind.
    for (qpn, index, function) in [(5, 1, 2), (6, 1, 3), (5 + QUEUES, 1, 3), (5, 9, 3), (5, 0, 3), (5, 0xffff, 3)] {
        bench.doorbell(qpn, index, function);
    }
    bench.settle();
    assert_eq!((bench.of(2, "rq_db_bad"), bench.of(3, "rq_db_bad"), bench.of(3, "rq_db_overrun")), (1, 2, 3), "of whoever rang");
    assert_eq!((bench.all("rq_db_bad"), bench.all("rq_db_overrun")), (3, 3));
    assert_eq!(bench.access(5, 4, None), 0, "nothing moved");
    bench.ask(5);
    // An allocation on a queue that does not exist is answered, too.
    bench.asked.push_back((5, None, false, false));
    bench.alloc.push(Fields::of::<RqAlloc>().pack(&[("ring", 9)]));
    bench.run(100);
    assert!(bench.asked.is_empty());
}

/// A failed fetch is told once, the queue hands out nothing more, others go on; queue pairs' rings have no such state.
#[test]
fn a_failed_fetch_ends_a_shared_queue() {
    let mut bench = Bench::new(20);
    bench.run(40);
    bench.reads.bad_pages.extend([region(4, 0) >> 12, region(12, 0) >> 12]);
    for qpn in [4, 11, 12] {
        let function = (qpn % 5) as u16;
        bench.create(qpn, RingModel { function, log_size: 4, shared: qpn >= QUEUES / 2, ..Default::default() });
        bench.post(qpn, 8);
    }
    bench.settle();
    bench.run(300);
    assert_eq!(bench.all("rq_fetch_errors"), 0, "what fails ahead of its packet is nobody's failure yet");
    bench.events.push_back((7, 12 - QUEUES / 2));
    for round in 0..3 {
        [4, 11, 12].into_iter().for_each(|ring| bench.ask(ring));
        bench.run(1500);
        assert!(bench.asked.is_empty() && bench.events.is_empty(), "round {round}");
        bench.rings.get_mut(&12).expect("it exists").error = true;
    }
    // Rings 4, 11 and 12 are functions 4's, 1's and 2's.
    for (function, fetches, errors) in [(4, 3, 3), (1, 3, 0), (2, 1, 1)] {
        assert_eq!((bench.of(function, "rq_fetches"), bench.of(function, "rq_fetch_errors")), (fetches, errors), "function {function}");
    }
    assert_eq!((bench.all("rq_fetches"), bench.all("rq_fetch_errors"), bench.all("srq_errors"), bench.of(2, "srq_errors")), (7, 4, 1, 1));
    // A limit says nothing of a queue in error that has enough; the state is there to be read.
    assert_eq!(bench.access(12, 2, None) >> 26 & 3, 3, "shared, and in error");
    while !bench.held.is_empty() {
        bench.use_one();
    }
}

#[test]
fn allocations_pipeline() {
    let mut bench = Bench::new(0);
    bench.run(40);
    for qpn in 0..QUEUES {
        bench.create(qpn, RingModel { log_size: 3, ..Default::default() });
        bench.post(qpn, 4);
    }
    bench.settle();
    let start = bench.tb.cycles();
    (0..48).for_each(|i| bench.ask(i % QUEUES));
    while !bench.asked.is_empty() {
        bench.cycle();
        assert!(bench.tb.cycles() - start < 140, "48 allocations of different queues in 140 cycles");
    }
    println!("48 grants in {} cycles", bench.tb.cycles() - start);
}

/// Posted slots are in the card before anybody asks: no read, and their contents a few cycles behind the grant.
#[test]
fn slots_are_fetched_ahead_of_their_packets() {
    let mut bench = Bench::large(0);
    bench.run(140);
    bench.create(5, RingModel { log_size: 6, ..Default::default() });
    bench.post(5, 64);
    bench.run(900);
    assert_eq!(bench.all("rq_fetches"), 0);
    bench.reads.step(&mut bench.tb);
    (0..48).for_each(|_| bench.ask(5));
    let start = bench.tb.cycles();
    while !bench.asked.is_empty() {
        bench.cycle();
    }
    println!("48 grants of one ring in {} cycles", bench.tb.cycles() - start);
    let start = bench.tb.cycles();
    bench.use_one();
    assert!(bench.tb.cycles() - start < 30, "no read is waited for");
    assert_eq!((bench.all("rq_fetches"), bench.all("rq_fetched_ahead")), (48, 48));
    while !bench.held.is_empty() {
        bench.use_one();
    }
}

/// All rings have slots posted, more than there are blocks for; the one that is used has its own ahead after a while, and then another one.
#[test]
fn a_ring_that_is_idle_loses_its_blocks() {
    let mut bench = Bench::new(0);
    bench.run(140);
    for qpn in 0..QUEUES {
        bench.create(qpn, RingModel { log_size: 6, ..Default::default() });
        bench.post(qpn, 64);
    }
    bench.run(2000);
    for qpn in 0..QUEUES {
        let before = bench.all("rq_fetched_ahead");
        for _ in 0..48 {
            bench.ask(qpn);
            bench.run(130);
            bench.use_one();
        }
        let ahead = bench.all("rq_fetched_ahead") - before;
        assert!(ahead > 24, "ring {qpn}: {ahead} of 48 slots fetched ahead");
    }
}

/// A read is on its way when its ring ends; what comes is nobody's, and the next life of the number sees only its own.
#[test]
fn what_comes_late_is_dropped() {
    let mut bench = Bench::new(0);
    bench.run(140);
    // Others have the blocks but for a few, so that what is given back is wanted at once.
    for qpn in 6..QUEUES {
        bench.create(qpn, RingModel { log_size: 6, ..Default::default() });
        bench.post(qpn, 64);
        bench.run(60);
        bench.ask(qpn);
        bench.run(300);
        bench.ask(qpn);
        bench.run(300);
    }
    while !bench.held.is_empty() {
        bench.use_one();
    }
    bench.create(5, RingModel { log_size: 5, ..Default::default() });
    for round in 0..40u32 {
        bench.post(5, 32);
        bench.ask(5);
        bench.run(round);
        bench.remake(5, RingModel { log_size: 5, ..Default::default() }, 0);
        bench.post(5, 8);
        bench.run(round % 7);
        (0..8).for_each(|_| bench.ask(5));
        bench.settle();
        while !bench.held.is_empty() {
            bench.use_one();
        }
        bench.remake(5, RingModel { log_size: 5, ..Default::default() }, 0);
    }
    // Every block has come back.
    bench.run(500);
    let before = bench.all("rq_fetched_ahead");
    bench.post(5, 32);
    bench.run(500);
    (0..8).for_each(|_| bench.ask(5));
    bench.settle();
    assert!(bench.all("rq_fetched_ahead") - before >= 7);
    while !bench.held.is_empty() {
        bench.use_one();
    }
}

/// Slots that are copied for long hold up what comes behind them, of which no more is asked for than there is room for.
#[test]
fn what_passes_waits_for_room() {
    let mut bench = Bench::large(0);
    bench.run(140);
    for qpn in 0..5 {
        bench.create(qpn, RingModel { log_size: 5, stride: 3, ..Default::default() });
        bench.post(qpn, 32);
    }
    bench.run(3000);
    // More than each has ahead.
    for _ in 0..12 {
        (0..5).for_each(|qpn| bench.ask(qpn));
    }
    bench.run(3000);
    assert!(bench.asked.is_empty());
    while !bench.held.is_empty() {
        bench.use_one();
    }
}

/// Flushes that nobody takes keep blocks from being given back; until they are, they are not used either.
#[test]
fn blocks_that_are_not_given_back_are_not_used() {
    let mut bench = Bench::with_flushes(Tb::new("rq", RecvQueue::<LQ, 4, 7>::default()), 0, false);
    bench.run(140);
    for qpn in [1, 5] {
        bench.create(qpn, RingModel { log_size: 5, ..Default::default() });
        bench.post(qpn, 32);
    }
    bench.run(500);
    bench.cmd.push(Fields::of::<RqCmd>().pack(&[("qpn", 1)]));
    bench.rings.get_mut(&1).expect("it exists").flush = true;
    bench.run(300);
    bench.remake(5, RingModel { log_size: 5, ..Default::default() }, 0);
    bench.post(5, 32);
    (0..8).for_each(|_| bench.ask(5));
    bench.run(900);
    assert_eq!((bench.held.len(), bench.all("rq_fetched_ahead")), (8, 0));
    while !bench.held.is_empty() {
        bench.use_one();
    }
}
