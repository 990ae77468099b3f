//! READs and atomics: answered once, completed when their bytes are there, in order with everything else.

use super::super::model::WorkRequest;
use super::streams::all_succeed;
use super::world::{Trouble, World};
use crate::msg::QpError;
use crate::tb::Fields;
use ferric_abi::codes::{QpType, WrOpcode};

fn request(opcode: WrOpcode, length: u32) -> WorkRequest {
    WorkRequest { opcode, signaled: true, solicited: false, imm: 0, raddr: 0x1234_5678_9abc, rkey: 7, length, operands: (3, 4), fence: false }
}

fn mixed(seed: u64, stall: u32, latency: u64, trouble: Trouble, requests: usize) {
    let mut world = World::new(seed, stall);
    world.latency = latency;
    for (pmtu, most) in [(1, 16), (3, 1), (5, 4)] {
        let qp = world.add_qp(QpType::Rc, pmtu, trouble, &[("max_rd_atomic", most)]);
        for _ in 0..requests {
            let wr = world.random_asking(qp, 20);
            world.post(qp, wr);
        }
    }
    all_succeed(&mut world, 300_000);
    for (n, q) in world.qps.iter().enumerate() {
        assert_eq!((world.field(n, "rd_open"), world.field(n, "rd_out"), world.field(n, "done_index")), (0, 0, world.field(n, "una_index")), "queue pair {n}");
        assert!(q.asked > 0);
    }
}

#[test]
fn a_clean_wire() {
    mixed(31, 0, 2, Trouble::default(), 30);
    mixed(32, 30, 60, Trouble::default(), 24);
}

#[test]
fn losses_are_repaired() {
    mixed(33, 20, 10, Trouble { loss: 3, ..Trouble::default() }, 40);
    mixed(34, 0, 2, Trouble { loss: 8, ..Trouble::default() }, 40);
}

#[test]
fn acknowledges_of_long_ago_and_receivers_not_ready() {
    mixed(35, 10, 10, Trouble { echo: 30, rnr: 4, loss: 2, ..Trouble::default() }, 30);
}

/// As many at once as the peer remembers, no more.
#[test]
fn so_many_are_outstanding_and_no_more() {
    for most in [1u32, 4, 16] {
        let mut world = World::new(36, 0);
        let qp = world.add_qp(QpType::Rc, 3, Trouble::default(), &[("max_rd_atomic", most.into())]);
        for n in 0..60 {
            world.post(qp, request(if n % 3 == 0 { WrOpcode::FetchAdd } else { WrOpcode::Read }, if n % 3 == 0 { 8 } else { 64 }));
        }
        all_succeed(&mut world, 60_000);
        assert_eq!(world.qps[qp].asked, most);
    }
}

/// A queue that goes on fetches its requests anew, so it does not go on for each READ that has ended.
#[test]
fn a_queue_goes_on_for_several_reads() {
    let mut world = World::new(38, 0);
    let qp = world.add_qp(QpType::Rc, 3, Trouble::default(), &[("max_rd_atomic", 16)]);
    for _ in 0..100 {
        world.post(qp, request(WrOpcode::Read, 64));
    }
    all_succeed(&mut world, 60_000);
    // Five at a time, of those behind the first 16.
    assert!((1..=84_u32.div_ceil(5)).contains(&world.qps[qp].resumes), "{} times", world.qps[qp].resumes);
}

/// What has been answered makes room at the peer, while its bytes are still on their way to memory: of those 63 at most.
#[test]
fn answered_reads_make_room_before_they_are_placed() {
    for (write_latency, asked, most) in [(2_000, 4, 8), (60_000, 4, 40), (60_000, 16, 50)] {
        let mut world = World::new(39, 0);
        world.write_latency = write_latency;
        let qp = world.add_qp(QpType::Rc, 3, Trouble::default(), &[("max_rd_atomic", asked.into())]);
        for n in 0..150 {
            world.post(qp, request(if n % 3 == 0 { WrOpcode::FetchAdd } else { WrOpcode::Read }, if n % 3 == 0 { 8 } else { 64 }));
        }
        let mut unplaced = 0;
        world.run_until(2_000_000, |world| {
            unplaced = unplaced.max(world.field(qp, "rd_out"));
            world.qps[qp].cqes.len() == 150
        });
        assert!(unplaced >= most && unplaced <= 63, "{unplaced} not placed");
        assert_eq!((world.field(qp, "rd_out"), world.field(qp, "rd_open"), world.qps[qp].asked), (0, 0, asked));
    }
}

/// The 64th that waits for its bytes is not sent, for nobody could count it.
#[test]
fn no_more_wait_for_their_bytes_than_can_be_counted() {
    for (waiting, sent) in [(62u64, 1), (63, 0)] {
        let mut world = World::new(40, 0);
        let qp = world.add_qp(QpType::Rc, 3, Trouble::default(), &[("max_rd_atomic", 16), ("rd_out", waiting.into())]);
        for _ in 0..2 {
            world.post(qp, request(WrOpcode::Read, 64));
        }
        (0..2_000).for_each(|_| world.step());
        // What was sent is complete by now, and the other waits until many are.
        assert_eq!((world.sent, world.field(qp, "rd_out"), world.field(qp, "parked")), (sent, waiting, 1), "{waiting} wait");
    }
}

/// One READ may be longer than the window.
#[test]
fn long_reads_fill_the_window_and_park() {
    let mut world = World::new(37, 10);
    // Time enough for the answers that queue up: a thousand packets at a request.
    let qp = world.add_qp(QpType::Rc, 1, Trouble { loss: 1, ..Trouble::default() }, &[("timeout", 11)]);
    for n in 0..6 {
        world.post(qp, request(if n % 2 == 0 { WrOpcode::Read } else { WrOpcode::Write }, 256 * (300 + 200 * n) + n));
    }
    all_succeed(&mut world, 1_500_000);
}

const REQUESTS: usize = 24;
const VICTIM: usize = 11;

/// The victim's status, success before it, flush behind it.
fn ends_with(seed: u64, opcode: WrOpcode, length: u32, trouble: Trouble, status: u8) {
    let mut world = World::new(seed, 10);
    let qp = world.add_qp(QpType::Rc, 1, trouble, &[]);
    for n in 0..REQUESTS {
        let wr = if n == VICTIM { request(opcode, length) } else { WorkRequest { signaled: true, ..world.random_asking(qp, 6) } };
        let wr = if wr.opcode == WrOpcode::Nop { request(WrOpcode::Write, 10) } else { wr };
        world.post(qp, WorkRequest { fence: false, ..wr });
    }
    world.run_until(60_000, |w| w.idle() && w.qps[qp].cqes.len() == REQUESTS && w.qps[qp].flush);
    (0..3000).for_each(|_| world.step());
    let got: Vec<_> = world.qps[qp].cqes.iter().map(|cqe| (cqe.0, cqe.1)).collect();
    let want: Vec<_> = (0..REQUESTS)
        .map(|n| {
            (
                n,
                if n < VICTIM {
                    0
                } else if n == VICTIM {
                    status
                } else {
                    5
                },
            )
        })
        .collect();
    assert_eq!(got, want, "seed {seed}");
    assert_eq!((world.errors.taken(), world.events.taken()), (1, 1));
}

#[test]
fn what_cannot_be_placed_fails() {
    ends_with(41, WrOpcode::Read, 1000, Trouble { misplaced: Some((VICTIM, 4)), ..Trouble::default() }, 4);
    ends_with(42, WrOpcode::FetchAdd, 8, Trouble { misplaced: Some((VICTIM, 19)), loss: 2, ..Trouble::default() }, 19);
}

#[test]
fn answers_that_do_not_fit_fail() {
    for (n, way) in [1, 2, 3].into_iter().enumerate() {
        ends_with(43 + n as u64, WrOpcode::Read, 1000, Trouble { odd: Some((VICTIM, way)), ..Trouble::default() }, 7);
    }
    ends_with(47, WrOpcode::Read, 0, Trouble { odd: Some((VICTIM, 3)), ..Trouble::default() }, 7);
    ends_with(48, WrOpcode::CompareSwap, 8, Trouble { odd: Some((VICTIM, 1)), ..Trouble::default() }, 7);
    ends_with(49, WrOpcode::CompareSwap, 8, Trouble { odd: Some((VICTIM, 2)), ..Trouble::default() }, 7);
}

#[test]
fn the_peer_refuses() {
    for (code, status) in [(1, 9), (2, 10), (3, 11)] {
        for (n, loss) in [0, 2, 10, 20].into_iter().enumerate() {
            ends_with(50 + 4 * n as u64 + u64::from(code), WrOpcode::Read, 700, Trouble { refuse: Some((VICTIM, code)), loss, ..Trouble::default() }, status);
        }
    }
}

/// The responder half fails, or the host takes the queue pair down, while answers are on their way to host memory: nothing is completed before they are there (the
/// world looks), and nothing comes twice.
#[test]
fn a_flush_waits_for_the_answers_that_were_accepted() {
    let mut met = 0;
    for seed in 70..90 {
        let mut world = World::new(seed, if seed % 2 == 0 { 10 } else { 70 });
        let qp = world.add_qp(QpType::Rc, 1, Trouble::default(), &[]);
        for _ in 0..REQUESTS {
            world.post(qp, request(WrOpcode::Read, 2000));
        }
        let orders = 5 + 3 * (seed - 70);
        world.run_until(60_000, |w| w.orders() >= orders);
        for _ in 0..2 {
            world.error_in.push(Fields::of::<QpError>().pack(&[("qpn", qp as u128), ("side", 1), ("cause", 5)]));
        }
        world.run_until(60_000, |w| w.field(qp, "state") == 6);
        met += u32::from(world.writing());
        world.run_until(60_000, |w| w.idle() && w.qps[qp].cqes.len() == REQUESTS && w.qps[qp].flush);
        let flushed = world.qps[qp].cqes.iter().position(|cqe| cqe.1 != 0).expect("a flush");
        assert!(world.qps[qp].cqes.iter().enumerate().all(|(n, cqe)| (cqe.0, cqe.1) == (n, if n < flushed { 0 } else { 5 })), "seed {seed}");
        assert_eq!((world.field(qp, "dying"), world.errors.taken(), world.events.taken()), (0, 0, 1));
    }
    assert!(met > 10, "answers were under way in {met} of 20");
}

/// The same queue pair reset while its flush waits: it stays silent, and the word of the answers wakes nothing in the next life.
#[test]
fn a_reset_while_a_flush_waits_leaves_nothing() {
    let mut world = World::new(91, 0);
    let qp = world.add_qp(QpType::Rc, 1, Trouble::default(), &[]);
    for _ in 0..REQUESTS {
        world.post(qp, request(WrOpcode::Read, 2000));
    }
    world.run_until(60_000, |w| w.orders() >= 20);
    world.error_in.push(Fields::of::<QpError>().pack(&[("qpn", qp as u128), ("side", 1), ("cause", 5)]));
    while world.field(qp, "dying") == 0 {
        world.step();
    }
    while !world.set_field(qp, "state", 0) {
        world.step();
    }
    let before = world.qps[qp].cqes.len();
    (0..2000).for_each(|_| world.step());
    assert_eq!((world.field(qp, "dying"), world.field(qp, "state"), world.qps[qp].cqes.len()), (0, 0, before));
    assert!(world.errors.is_empty() && world.events.is_empty() && !world.qps[qp].flush);
}

#[test]
fn what_may_not_be_asked_is_refused() {
    let cases = [
        (QpType::Uc, WrOpcode::Read, 10, 16),
        (QpType::Ud, WrOpcode::Read, 10, 16),
        (QpType::Rc, WrOpcode::FetchAdd, 4, 16),
        (QpType::Rc, WrOpcode::Read, 10, 0),
        (QpType::Uc, WrOpcode::Flush, 0, 16),
        (QpType::Rc, WrOpcode::Flush, 64, 16),
        (QpType::Rc, WrOpcode::AtomicWrite, 8, 16),
    ];
    for (kind, opcode, length, most) in cases {
        let mut world = World::new(60, 10);
        let qp = world.add_qp(kind, 3, Trouble::default(), &[("max_rd_atomic", most)]);
        world.post(qp, request(WrOpcode::Send, 100));
        world.qps[qp].wrs.push(request(opcode, length));
        world.run_until(100_000, |w| w.idle() && w.qps[qp].cqes.len() == 2);
        assert_eq!(world.qps[qp].cqes.iter().map(|cqe| cqe.1).collect::<Vec<_>>(), [0, 2]);
        assert!(most == 0 || super::super::model::refusal(kind, opcode as u8, length, 1024) == Some(2));
    }
}
