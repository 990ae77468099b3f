//! Queues that end and begin again, and frames that come in bursts.
use super::*;

/// A queue with nothing in hand ends while another's frame waits for the host's answers, and begins again as soon as it is empty: chains of its new life take frames.
#[test]
fn a_queue_that_begins_again_keeps_its_chains() {
    let mut b = Bench::new(64, 11, 0);
    for queue in [0, 2] {
        let mut ring = Ring::new(queue, 1, if queue == 0 { 16 } else { 64 }, Kind::Receive, false, &mut b.guest);
        ring.stops = queue == 0;
        b.begin(ring);
    }
    while b.rings[1].posted < 6 {
        b.run(100);
    }
    b.rings[1].stops = true;
    b.run(3000);
    b.host.holds = true;
    b.offer(2, 1000);
    b.run(500);
    b.stop(0);
    let mut empty = false;
    for _ in 0..10 {
        b.run(200);
        empty |= b.is_empty(0);
    }
    // It need not wait, but if it does, then for the answers.
    b.host.holds = empty;
    let limit = b.tb.cycles() + 20_000;
    while !b.is_empty(0) {
        assert!(b.tb.cycles() < limit, "the queue does not end");
        b.run(100);
    }
    b.rings.remove(0);
    let ring = Ring::new(0, 1, 16, Kind::Receive, false, &mut b.guest);
    b.begin(ring);
    while b.rings[1].posted < 3 {
        b.run(100);
    }
    b.rings[1].stops = true;
    b.run(3000);
    b.host.holds = false;
    b.run(3000);
    b.offer(0, 800);
    b.offer(0, 900);
    b.run(6000);
    assert_eq!((b.rings[0].received, b.rings[1].received, b.rings[1].returned), (1, 2, 2));
}

/// More frames at once than chains are in stock: each finds its chain in the ring.
fn burst(width: usize) {
    let mut b = Bench::new(width, 12, 10);
    let ring = Ring::new(0, 1, 256, Kind::Receive, true, &mut b.guest);
    b.begin(ring);
    while b.rings[0].posted < 60 {
        b.run(10);
    }
    b.rings[0].stops = true;
    b.run(60_000);
    let frames = b.rings[0].posted as usize;
    (0..frames).for_each(|_| b.offer(0, 60));
    let limit = b.tb.cycles() + 400_000;
    while b.rings[0].received < frames as u64 {
        assert!(b.tb.cycles() < limit && b.told.is_empty(), "{} of {frames} frames: {:?}", b.rings[0].received, b.told);
        b.run(100);
    }
    // Nothing is left.
    b.offer(0, 60);
    b.run(3000);
    assert_eq!((b.told(0, VirtioCause::RxNoBuffer), b.told.len()), (1, 1));
}

#[test]
fn a_burst_finds_all_chains_that_there_are_w64() {
    burst(64);
}

#[test]
fn a_burst_finds_all_chains_that_there_are_w512() {
    burst(512);
}
