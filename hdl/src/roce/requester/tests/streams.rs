//! Everything completes, in order, whatever the wire does.

use super::world::{Trouble, World};
use ferric_abi::codes::QpType;

/// All requests of all queue pairs succeed; every signalled one is reported once, in order.
fn all_succeed(world: &mut World, limit: u64) {
    world.run_until(limit, |w| {
        w.idle() && (0..w.qps.len()).all(|n| {
            let q = &w.qps[n];
            w.field(n, "una_index") as u16 == q.base_index.wrapping_add(q.wrs.len() as u16)
        })
    });
    (0..300).for_each(|_| world.step());
    for (n, q) in world.qps.iter().enumerate() {
        let expected: Vec<_> = q.wrs.iter().enumerate().filter(|(_, wr)| wr.signaled)
            .map(|(number, wr)| (number, 0, wr.opcode as u8)).collect();
        assert_eq!(q.cqes, expected, "queue pair {n}");
        let offset = world.field(n, "msg_offset") | world.field(n, "in_msg") | world.field(n, "timer_on") | world.field(n, "parked");
        assert_eq!((offset, world.field(n, "una_psn")), (0, world.field(n, "max_psn")));
    }
    assert!(world.errors.is_empty() && world.events.is_empty());
}

fn mixed(seed: u64, stall: u32, latency: u64, trouble: Trouble, requests: usize) {
    let mut world = World::new(seed, stall);
    world.latency = latency;
    for (kind, pmtu) in [(QpType::Rc, 1), (QpType::Rc, 3), (QpType::Uc, 2), (QpType::Raw, 3), (QpType::Rc, 5), (QpType::Ud, 4)] {
        let qp = world.add_qp(kind, pmtu, trouble, &[]);
        for _ in 0..requests {
            let wr = world.random(qp, 20);
            world.post(qp, wr);
        }
    }
    all_succeed(&mut world, 3_000_000);
}

#[test]
fn a_clean_wire() {
    mixed(1, 0, 2, Trouble::default(), 60);
    mixed(2, 30, 100, Trouble::default(), 40);
}

#[test]
fn losses_are_repaired() {
    mixed(3, 20, 10, Trouble { loss: 3, ..Trouble::default() }, 40);
}

#[test]
fn receivers_not_ready() {
    mixed(4, 20, 10, Trouble { rnr: 5, ..Trouble::default() }, 40);
    mixed(5, 20, 500, Trouble { rnr: 3, loss: 2, ..Trouble::default() }, 15);
}

#[test]
fn long_messages_fill_the_window_and_park() {
    for kind in [QpType::Rc, QpType::Uc] {
        let mut world = World::new(6, 10);
        let trouble = Trouble { loss: 1, ..Trouble::default() };
        for _ in 0..2 {
            let qp = world.add_qp(kind, 1, trouble, &[]);
            for _ in 0..4 {
                let mut wr = world.random(qp, 1);
                wr.length = 256 * world.tb.rng().range(400, 1500) as u32 + 7;
                world.post(qp, wr);
            }
        }
        all_succeed(&mut world, 3_000_000);
    }
}

#[test]
fn many_small_requests_fill_the_tracker_and_park() {
    let mut world = World::new(7, 0);
    for kind in [QpType::Rc, QpType::Uc] {
        let qp = world.add_qp(kind, 3, Trouble::default(), &[]);
        for _ in 0..600 {
            let mut wr = world.random(qp, 1);
            wr.length = wr.length.min(64);
            wr.signaled = false;
            world.post(qp, wr);
        }
    }
    all_succeed(&mut world, 1_000_000);
}
