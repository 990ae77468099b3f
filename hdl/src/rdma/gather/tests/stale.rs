//! Packets whose queue pair has gone back since they were ordered.
use super::{entries, World};

/// Of packets of an earlier round nothing is read any more, whole messages of them or what is left of one; every buffer, slot and header goes its way all the same, and replies are not concerned.
#[test]
fn what_is_stale_is_not_read() {
    for (seed, stall) in [(11, 0), (12, 30)] {
        let mut world = World::new(seed, stall, 20);
        let mut packets = 0;
        for turn in 0..40u64 {
            let handle = (turn % 8) as usize;
            let list: Vec<_> = (0..6).map(|n| (0x1000 * (turn << 8 | n) + 0xf00, 300, 8 << n)).collect();
            let message = entries(&mut world, handle, &list);
            let fields = [("pd", 77u128), ("function", 99), ("handle", handle as u128), ("num_sge", 6), ("dma_len", 1800), ("qpn", (turn * 77).into()), ("free", 1), ("pay_len", 1800)];
            world.send(&fields, message, 0);
            if turn % 3 == 0 {
                let va = world.tb.rng().next_u64();
                world.answer(va, 500, 1 << 31);
            }
            packets += 1;
            // All go back in the middle of what is under way.
            for _ in 0..world.tb.rng().below(60) {
                world.step();
            }
            if world.tb.rng().percent(40) {
                world.rounds += 1;
                // Another time only when nothing older than a round is left: rounds are counted modulo 4.
                while !world.expected.is_empty() {
                    world.step();
                }
            }
        }
        let stale = world.stale;
        assert!((5..packets - 4).contains(&stale), "{stale} of {packets} packets were stale");
        world.finish();
        assert_eq!(world.frees.len(), packets);
    }
}

/// Queue pairs that go back again and again, so that a packet's round comes round while it is read: what goes out is whole.
#[test]
fn a_packet_of_which_something_was_left_out_does_not_leave() {
    for (seed, storm) in [(21, 3), (22, 5), (23, 9)] {
        let mut world = World::new(seed, 20, 20);
        world.storm = storm;
        for turn in 0..60u64 {
            let handle = (turn % 8) as usize;
            let count = 1 + turn % 6;
            let list: Vec<_> = (0..count).map(|n| (0x1000 * (turn << 8 | n) + 0xf00, 300, 8 << n)).collect();
            let message = entries(&mut world, handle, &list);
            let fields = [
                ("pd", 77u128),
                ("function", 99),
                ("handle", handle as u128),
                ("num_sge", count.into()),
                ("dma_len", (300 * count).into()),
                ("qpn", (turn * 77).into()),
                ("free", 1),
                ("pay_len", (300 * count).into()),
            ];
            world.send(&fields, message, 0);
            (0..30).for_each(|_| world.step());
        }
        world.finish();
        assert!((1..60).contains(&world.stale), "{} of 60 packets were stale", world.stale);
    }
}
