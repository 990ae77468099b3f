//! Requests that come with their doorbells.

use super::*;

/// `count` queues with rings of 64 slots of 64 bytes.
fn small_rings(bench: &mut Bench, count: u32) -> HashMap<u32, RingModel> {
    bench.run(40);
    let rings: HashMap<_, _> = (0..count).map(|qpn| (qpn, RingModel { log_size: 6, function: qpn as u16 % 4, ..Default::default() })).collect();
    (0..count).for_each(|qpn| bench.create(qpn, &rings[&qpn], true));
    bench.run(100);
    rings
}

/// Rings with the next request in the doorbell.
fn carry(bench: &mut Bench, rings: &mut HashMap<u32, RingModel>, qpn: u32) {
    let ring = rings.get_mut(&qpn).expect("it exists");
    let (index, function) = (ring.producer, ring.function);
    assert!(ring.doorbell(function, index.wrapping_add(1)));
    bench.wqe_doorbell(qpn, index, function);
}

/// Requests in doorbells of many queues, each used as it is.
#[test]
fn requests_in_doorbells_take_three_cycles() {
    let mut bench = Bench::new("sq", 0);
    let mut rings = small_rings(&mut bench, QUEUES as u32);
    let start = bench.tb.cycles();
    for n in 0..96 {
        carry(&mut bench, &mut rings, n % QUEUES as u32);
        // As often as they are used.
        (0..3).for_each(|_| bench.cycle());
        bench.requester(&mut rings);
    }
    bench.drain(&mut rings);
    assert_eq!((bench.works[0], bench.all("sq_fetches")), (96, 0));
    println!("96 requests in doorbells: {} cycles with their checks", bench.tb.cycles() - start);
    no_buffer_was_lost(&mut bench, &mut rings);
}

/// Doorbells come faster than requests can be used: some rings are fetched from, each request is offered once and in order.
#[test]
fn requests_in_doorbells_that_find_no_room_are_fetched() {
    for stall in [0, 30] {
        let mut bench = Bench::new("sq", stall);
        let mut rings = small_rings(&mut bench, QUEUES as u32);
        for n in 0..40 * QUEUES as u32 {
            let qpn = bench.tb.rng().below(QUEUES as u64) as u32;
            if rings[&qpn].pending() < 64 {
                carry(&mut bench, &mut rings, qpn);
            }
            if n % 8 == 0 {
                bench.run(4);
                bench.requester(&mut rings);
            }
        }
        bench.drain(&mut rings);
        assert!(bench.works[0] > 20 && bench.all("sq_fetches") > 20, "{} used, {} fetches", bench.works[0], bench.all("sq_fetches"));
        assert_eq!(bench.works[1], bench.directs, "each was offered once");
        assert_eq!((bench.all("sq_db_bad"), bench.all("sq_db_overrun")), (0, 0));
        no_buffer_was_lost(&mut bench, &mut rings);
    }
}

/// The host answers no read any more, and every place for fetches is taken: doorbells are taken all the same, whoever's they are, and nothing of what they announce is lost.
#[test]
fn doorbells_do_not_wait_for_fetches() {
    let mut bench = Bench::new("sq", 0);
    let mut rings = small_rings(&mut bench, QUEUES as u32);
    bench.answers = false;
    for _ in 0..5 {
        for qpn in 0..QUEUES as u32 {
            let ring = rings.get_mut(&qpn).expect("it exists");
            let (index, function) = (ring.producer + 1, ring.function);
            assert!(ring.doorbell(function, index));
            bench.doorbell(qpn, index, function);
        }
        bench.run(120);
    }
    assert_eq!(bench.all("sq_fetches"), 64, "all fetch numbers are out");
    // Behind jobs that wait: requests that are kept, then such as find no room.
    for n in 0..20 * QUEUES as u32 {
        carry(&mut bench, &mut rings, n % QUEUES as u32);
        bench.run(8);
        assert_eq!(bench.wqe.pending(), 0, "doorbell {n} waits");
    }
    let ring = rings.get_mut(&1).expect("it exists");
    let index = ring.producer + 1;
    assert!(ring.doorbell(1, index));
    bench.doorbell(1, index, 1);
    bench.run(8);
    assert_eq!(bench.db.pending(), 0);
    bench.answers = true;
    bench.drain(&mut rings);
    no_buffer_was_lost(&mut bench, &mut rings);
}

/// A doorbell with a request behind a fetch that is under way: the older ones are offered first, and it is offered once.
#[test]
fn a_request_in_a_doorbell_waits_for_those_before_it() {
    let mut bench = Bench::new("sq", 0);
    let mut rings = small_rings(&mut bench, 2);
    for round in 0..30u64 {
        for qpn in 0..2 {
            let ring = rings.get_mut(&qpn).expect("it exists");
            let (index, function) = (ring.producer.wrapping_add(3), ring.function);
            assert!(ring.doorbell(function, index));
            bench.doorbell(qpn, index, function);
        }
        bench.run(5 + round);
        carry(&mut bench, &mut rings, 0);
        carry(&mut bench, &mut rings, 0);
        carry(&mut bench, &mut rings, 1);
        bench.run(round);
        while bench.requester(&mut rings) {
            bench.cycle();
        }
        bench.drain(&mut rings);
    }
    assert!(bench.works[0] > 0);
    assert_eq!((bench.works[1], bench.all("sq_db_overrun")), (30 * 9, 0));
    no_buffer_was_lost(&mut bench, &mut rings);
}

/// A request in a doorbell whose queue is another function's, is none, is parked, flushes or has been made anew: it is refused or announced, and never used.
#[test]
fn a_request_in_a_doorbell_is_used_for_its_own_running_queue_only() {
    let mut bench = Bench::new("sq", 10);
    let mut rings = small_rings(&mut bench, 3);
    for qpn in [0, QUEUES as u32 - 1, QUEUES as u32] {
        // More than there are places.
        for _ in 0..20 {
            bench.wqe_doorbell(qpn, 0, 3);
        }
        let begun = bench.tb.cycles();
        while bench.wqe.pending() > 0 {
            bench.cycle();
            assert!(bench.tb.cycles() < begun + 2000, "requests that are not used keep their places, seed {}", bench.tb.seed());
        }
    }
    bench.run(200);
    assert_eq!((bench.works[0], bench.by(3, "sq_db_bad")), (0, 60));
    bench.direct.clear();
    // Parked: announced, and offered after the resume from wherever it is fetched.
    rings.get_mut(&1).expect("it exists").command(1, 0, 1);
    bench.command(1, 1, 0, 1);
    carry(&mut bench, &mut rings, 1);
    bench.run(60);
    assert_eq!((bench.works[0], bench.offers.len()), (0, 0));
    rings.get_mut(&1).expect("it exists").command(2, 0, 0);
    bench.command(1, 2, 0, 0);
    // Flushes.
    rings.get_mut(&2).expect("it exists").command(3, 0, 1);
    bench.command(2, 3, 0, 1);
    carry(&mut bench, &mut rings, 2);
    bench.drain(&mut rings);
    assert_eq!(bench.works[0], 0);
    // A queue's lives, a doorbell of the former on its way at the end of each: it is refused, or its request comes with the former epoch.
    let mut old = Vec::new();
    for life in 0..260u32 {
        let index = rings[&0].producer;
        carry(&mut bench, &mut rings, 0);
        bench.run(u64::from(life % 9));
        bench.ctl(0, 2, Some(0));
        bench.run(150);
        while let Some(offer) = bench.offers.pop() {
            let layout = Fields::of::<SqWqe>();
            old.push((layout.get(&offer, "epoch") as u8, layout.get(&offer, "index") as u16));
            assert_eq!(old.last(), Some(&(rings[&0].epoch, index)));
            bench.free(layout.get(&offer, "handle"));
        }
        let ring = RingModel { epoch: rings[&0].epoch.wrapping_add(1), log_size: 6, ..Default::default() };
        bench.create(0, &ring, true);
        rings.insert(0, ring);
    }
    assert!(old.len() > 50 && old.len() < 260, "{}", old.len());
    no_buffer_was_lost(&mut bench, &mut rings);
}
