//! Rings that stop and go on, guests that come and go, and what becomes of frames for which there is no room.
use super::*;
use std::time::Duration;

/// More frames than the card has room for, or the bridge carries in one turn. Those that have to wait do so in the guest's ring (a twin may be too quick for that; `frames_go_through_gateware`).
#[test]
fn bursts_are_carried() {
    let mut bench = Bench::new(Body::Twin, 1, &[]);
    let mut front = Front::start(&bench.socket, PLAIN | EVENTS, 128);
    burst(&mut bench, &mut front, 100);
    let counts = bench.end();
    assert_eq!(Counts { waits: 0, ..counts }, Counts { sent: 100, connections: 1, ..Default::default() });
}

/// Frames for which the guest has no buffer, or no ring, are dropped, each for its cause, and do not come later.
#[test]
fn frames_do_not_wait_for_the_guest() {
    let mut bench = Bench::twins();
    (0..3).for_each(|n| bench.say(&frame(OURS, PEER, n, 64)));
    bench.counted("without a guest", |c| c.dropped_no_driver == 3);
    let mut front = Front::start(&bench.socket, PLAIN | MERGES, 16);
    (3..8).for_each(|n| bench.say(&frame(OURS, PEER, n, 64)));
    bench.counted("without buffers", |c| c.dropped_no_buffer == 5);
    front.receive_into(0, 2000);
    bench.say(&frame(OURS, PEER, 8, 64));
    assert_eq!(front.used(RX), (0, 76));
    assert!(front.at(Front::buffer(0), 76)[HEADER..] == frame(OURS, PEER, 8, 64));
    front.receive_into(1, 2000);
    front.wire.set_vring_enable(RX, false).unwrap();
    bench.say(&frame(OURS, PEER, 9, 64));
    bench.counted("into a ring that is not enabled", |c| c.dropped_no_driver == 4);
    front.wire.set_vring_enable(RX, true).unwrap();
    bench.say(&frame(OURS, PEER, 10, 64));
    assert_eq!(front.used(RX), (1, 76));
    assert!(front.at(Front::buffer(1), 76)[HEADER..] == frame(OURS, PEER, 10, 64));
    assert_eq!(bench.end(), Counts { received: 2, dropped_no_driver: 4, dropped_no_buffer: 5, connections: 1, ..Default::default() });
}

/// Both rings stop in the middle of traffic and go on, with other sizes, from where they were: what was made available is carried once, whenever the ring stopped.
#[test]
fn rings_stop_and_go_on() {
    let mut bench = Bench::twins();
    let mut front = Front::start(&bench.socket, PLAIN | MERGES | EVENTS, 16);
    let (mut sent, mut used, mut received) = (0u32, 0u32, 0u32);
    for round in 0..40u16 {
        // All chains of the ring, as far as they have come back, and a stop at once.
        let size = 16 << (round % 3);
        for _ in 0..12 {
            front.send((sent % 12) as u16, &[0; HEADER], &frame(PEER, OURS, sent as usize, 100));
            sent += 1;
        }
        front.kick(TX);
        front.receive_into(round % 16, 2000);
        bench.say(&frame(OURS, PEER, round.into(), 200));
        if round % 4 == 0 {
            front.used(RX);
            received += 1;
        }
        let base = front.stop(TX);
        while front.used_now(TX).is_some() {
            used += 1;
        }
        assert_eq!(u32::from(base), used, "round {round}: what was taken has been used");
        while front.used_now(RX).is_some() {
            received += 1;
        }
        let left = front.available(TX).wrapping_sub(base);
        assert!(left <= 12);
        // The driver makes what is left available again, in a ring of another size.
        front.index(TX, base);
        front.begin(TX, size);
        for n in 0..left {
            let number = sent - u32::from(left) + u32::from(n);
            front.send((number % 12) as u16, &[0; HEADER], &frame(PEER, OURS, number as usize, 100));
        }
        front.kick(TX);
        for _ in 0..left {
            front.used(TX);
            used += 1;
        }
        for n in (sent - 12)..sent {
            assert!(bench.heard() == frame(PEER, OURS, n as usize, 100), "frame {n}");
        }
    }
    while received < 40 {
        front.used(RX);
        received += 1;
    }
    assert_eq!(bench.end(), Counts { sent: 480, received: 40, connections: 1, ..Default::default() });
}

/// The same of packed rings, whose size is no power of two: a front end says where it begins by a descriptor and a wrap counter, and all that was made available is carried once.
#[test]
fn packed_rings_stop_and_go_on() {
    const SIZE: u16 = 13;
    let mut bench = Bench::twins();
    let mut front = Front::start(&bench.socket, PLAIN | MERGES | PACKED, SIZE);
    for round in 0..40u16 {
        let frames = 1 + round as usize % 12;
        for n in 0..frames {
            front.send(n as u16, &[0; HEADER], &frame(PEER, OURS, n, 100));
        }
        front.receive_into(round % 5, 2000);
        front.kick(TX);
        let mut used = Vec::new();
        let base = [RX, TX].map(|ring| front.stop(ring));
        while let Some((head, _)) = front.used_now(TX) {
            used.push(head);
        }
        assert_eq!(base, [RX, TX].map(|ring| front.base(ring)), "round {round}: what was taken has been used");
        [RX, TX].into_iter().for_each(|ring| front.begin(ring, SIZE));
        front.kick(TX);
        while used.len() < frames {
            used.push(front.used(TX).0);
        }
        assert_eq!(used, (0..frames as u32).collect::<Vec<_>>());
        for n in 0..frames {
            assert!(bench.heard() == frame(PEER, OURS, n, 100), "round {round}: frame {n}");
        }
        bench.say(&frame(OURS, PEER, round.into(), 200));
        assert_eq!(front.used(RX), (u32::from(round % 5), 212));
    }
    let sent = (0..40).map(|round| 1 + round % 12).sum();
    assert_eq!(bench.end(), Counts { sent, received: 40, connections: 1, ..Default::default() });
}

/// A buffer that was too small waits in the ring, and goes with it: the driver has another one there when the ring begins again.
#[test]
fn what_waits_goes_with_its_ring() {
    for kind in [0, PACKED] {
        let mut bench = Bench::twins();
        let mut front = Front::start(&bench.socket, PLAIN | kind, 16);
        front.receive_into(1, 100);
        bench.say(&frame(OURS, PEER, 1, 500));
        bench.counted("a buffer that is too small", |c| c.dropped_small == 1);
        front.stop(RX);
        front.forget(RX);
        front.begin(RX, 16);
        front.receive_into(2, 2000);
        bench.say(&frame(OURS, PEER, 2, 64));
        assert_eq!(front.used(RX), (2, 76));
        assert!(front.at(Front::buffer(2), 76)[HEADER..] == frame(OURS, PEER, 2, 64));
        assert_eq!(bench.end(), Counts { received: 1, dropped_small: 1, connections: 1, ..Default::default() });
    }
}

/// Front ends come one after the other, some without a word of farewell; what one has left behind the next does not see.
#[test]
fn guests_come_and_go() {
    let mut bench = Bench::twins();
    for n in 0..20usize {
        let mut front = Front::start(&bench.socket, PLAIN, 16);
        front.send(0, &[0; HEADER], &frame(PEER, OURS, n, 100));
        front.kick(TX);
        assert!(bench.heard() == frame(PEER, OURS, n, 100));
        front.receive_into(0, 2000);
        bench.say(&frame(OURS, PEER, n, 150));
        assert_eq!(front.used(RX), (0, 162));
        // Buffers, and a frame that waits, go with it.
        front.receive_into(1, 2000);
    }
    assert_eq!(bench.end(), Counts { sent: 20, received: 20, connections: 20, ..Default::default() });
}

/// A second front end waits until the first has gone.
#[test]
fn one_front_end_at_a_time() {
    let mut bench = Bench::twins();
    let first = Front::start(&bench.socket, PLAIN, 16);
    let socket = bench.socket.clone();
    let second = std::thread::spawn(move || Front::start(&socket, PLAIN, 16));
    std::thread::sleep(Duration::from_millis(100));
    assert!(!second.is_finished());
    drop(first);
    let mut front = second.join().unwrap();
    front.send(0, &[0; HEADER], &frame(PEER, OURS, 1, 100));
    front.kick(TX);
    assert!(bench.heard() == frame(PEER, OURS, 1, 100));
    assert_eq!(bench.end(), Counts { sent: 1, connections: 2, ..Default::default() });
}

/// The driver is told where it wants to be, by event index or by flag, and the device asks for kicks when it rests.
#[test]
fn both_sides_are_told_what_they_want() {
    let mut bench = Bench::twins();
    for events in [0, EVENTS] {
        let mut front = Front::start(&bench.socket, PLAIN | events, 16);
        // With an index: of chain 3. Without: of none, from chain 3 on of all.
        front.want(TX, 3, events == 0);
        let mut told = Vec::new();
        for n in 0..6u16 {
            if n == 3 {
                front.want(TX, 3, false);
            }
            // The device rests, and asks for a kick at what comes next.
            let until = Instant::now() + PATIENCE;
            while !front.rests(TX) {
                assert!(Instant::now() < until, "the device does not ask for a kick");
                std::thread::sleep(Duration::from_millis(1));
            }
            front.send(n, &[0; HEADER], &frame(PEER, OURS, n.into(), 80));
            front.kick(TX);
            front.used(TX);
            // The driver is told behind the used index, and before the turn is counted.
            bench.counted("sent", |c| c.sent == if events == 0 { 0 } else { 6 } + u64::from(n) + 1);
            told.push(front.told(TX) > 0);
        }
        // With an index the first is told in any case: nothing is known of what was before.
        let wanted = if events == 0 { [false, false, false, true, true, true] } else { [true, false, false, true, false, false] };
        assert_eq!(told, wanted, "events {events:#x}");
    }
    (0..12).for_each(|_| _ = bench.heard());
    assert_eq!(bench.end(), Counts { sent: 12, connections: 2, ..Default::default() });
}
