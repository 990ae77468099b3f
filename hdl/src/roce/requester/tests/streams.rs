//! Everything completes, in order, whatever the wire does.

use super::super::model::WorkRequest;
use super::world::{Trouble, World, TICK, WINDOW};
use crate::msg::{EqeReq, QpError};
use crate::tb::Fields;
use ferric_abi::codes::{QpType, WrOpcode};

/// All requests of all queue pairs succeed; every signalled one is reported once, in order.
pub(super) fn all_succeed(world: &mut World, limit: u64) {
    world.run_until(limit, |w| {
        w.idle()
            && (0..w.qps.len()).all(|n| {
                let q = &w.qps[n];
                w.field(n, "una_index") as u16 == q.base_index.wrapping_add(q.wrs.len() as u16)
            })
    });
    (0..300).for_each(|_| world.step());
    for (n, q) in world.qps.iter().enumerate() {
        let expected: Vec<_> = q.wrs.iter().enumerate().filter(|(_, wr)| wr.signaled).map(|(number, wr)| (number, 0, wr.opcode as u8)).collect();
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
    all_succeed(&mut world, 500_000);
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
        all_succeed(&mut world, 1_500_000);
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

/// Local operations among everything else, on a wire that loses packets: each is executed once, in its turn.
#[test]
fn local_operations_have_their_turn() {
    for (seed, stall, trouble) in [(13, 0, Trouble::default()), (14, 20, Trouble { loss: 4, ..Trouble::default() }), (15, 10, Trouble { rnr: 5, ..Trouble::default() })] {
        let mut world = World::new(seed, stall);
        for kind in [QpType::Rc, QpType::Rc, QpType::Uc] {
            let qp = world.add_qp(kind, 2, trouble, &[]);
            for n in 0..60 {
                let mut wr = if kind == QpType::Rc { world.random_asking(qp, 6) } else { world.random(qp, 6) };
                if n % 3 == 0 {
                    wr.opcode = [WrOpcode::LocalInv, WrOpcode::RegMr, WrOpcode::RegMr][n / 3 % 3];
                }
                world.post(qp, wr);
            }
        }
        all_succeed(&mut world, 1_000_000);
    }
}

/// A refused one ends the queue pair when all before it is complete.
#[test]
fn a_refused_local_operation_ends_the_queue_pair() {
    for opcode in [WrOpcode::LocalInv, WrOpcode::RegMr] {
        let mut world = World::new(16, 10);
        let qp = world.add_qp(QpType::Rc, 1, Trouble { refused: Some(3), loss: 3, ..Trouble::default() }, &[]);
        for n in 0..6 {
            let opcode = if n == 3 { opcode } else { WrOpcode::Send };
            world.post(qp, WorkRequest { opcode, ..send(700) });
        }
        world.run_until(200_000, |w| w.qps[qp].cqes.len() == 6);
        let cqes: Vec<_> = world.qps[qp].cqes.iter().map(|(number, status, _)| (*number, *status)).collect();
        assert_eq!(cqes, [(0, 0), (1, 0), (2, 0), (3, 6), (4, 5), (5, 5)], "{opcode:?}");
        assert_eq!(world.field(qp, "state"), 6);
    }
}

/// The answer of the key unit comes when the queue pair has been reset or has failed: a reset waits until nothing is under way (`local` 0).
#[test]
fn a_local_operation_is_over_when_it_is_answered() {
    for (state, refused) in [(0, None), (0, Some(0)), (6, None), (6, Some(0))] {
        let mut world = World::new(17, 0);
        let qp = world.add_qp(QpType::Rc, 1, Trouble { refused, ..Trouble::default() }, &[]);
        world.post(qp, WorkRequest { opcode: WrOpcode::RegMr, ..send(0) });
        world.run_until(10_000, |w| w.field(qp, "local") == 1);
        while !world.set_field(qp, "state", state) {
            world.step();
        }
        assert_eq!(world.field(qp, "local"), 1, "too late to see");
        world.run_until(10_000, |w| w.field(qp, "local") == 0);
        assert!(world.qps[qp].cqes.is_empty());
    }
    // Refused while it runs: over as well.
    let mut world = World::new(18, 0);
    let qp = world.add_qp(QpType::Rc, 1, Trouble { refused: Some(0), ..Trouble::default() }, &[]);
    world.post(qp, WorkRequest { opcode: WrOpcode::RegMr, ..send(0) });
    world.run_until(200_000, |w| w.field(qp, "state") == 6);
    assert_eq!(world.field(qp, "local"), 0);
}

/// SQD: what has begun is completed and told, nothing else begins; out of it all goes on.
#[test]
fn a_drained_queue_pair_begins_nothing() {
    for (seed, kind, trouble) in
        [(31, QpType::Rc, Trouble::default()), (32, QpType::Rc, Trouble { loss: 6, ..Trouble::default() }), (33, QpType::Uc, Trouble::default()), (34, QpType::Ud, Trouble::default())]
    {
        let mut world = World::new(seed, 10);
        world.latency = 20;
        let qp = world.add_qp(kind, 1, trouble, &[]);
        for n in 0..60 {
            let request = send(if kind == QpType::Ud { 200 } else { 100 * n % 3000 });
            world.post(qp, WorkRequest { opcode: if n % 7 == 3 && kind != QpType::Ud { WrOpcode::RegMr } else { request.opcode }, ..request });
        }
        let tell = |world: &mut World, cause: u128| world.error_in.push(Fields::of::<QpError>().pack(&[("qpn", qp as u128), ("cause", cause)]));
        let layout = Fields::of::<EqeReq>();
        for done in [1, 5, 20, 60] {
            world.run_until(400_000, |w| w.qps[qp].cqes.len() >= done);
            tell(&mut world, 0x81);
            world.run_until(200_000, |w| !w.events.is_empty());
            let event = world.events.pop().expect("just seen");
            assert_eq!((layout.get(&event, "eqn"), layout.get(&event, "kind"), layout.get(&event, "id")), (150 + qp as u128, 8, qp as u128));
            (0..200).for_each(|_| world.step());
            let (complete, sent) = (world.qps[qp].cqes.len(), world.sent);
            assert_eq!((world.field(qp, "state"), world.field(qp, "sent_index")), (4, world.field(qp, "done_index")));
            (0..5000).for_each(|_| world.step());
            assert_eq!((world.qps[qp].cqes.len(), world.sent), (complete, sent), "something has begun, seed {seed}");
            assert!(world.events.is_empty(), "told once");
            tell(&mut world, 0x80);
        }
        world.run_until(400_000, |w| w.idle() && w.field(qp, "state") == 3);
        assert!(world.qps[qp].cqes.iter().enumerate().all(|(n, cqe)| (cqe.0, cqe.1) == (n, 0)), "{:?}", world.qps[qp].cqes);
    }
}

/// A request of an unreliable queue pair fails: those behind it are flushed, the responder hears nothing. An error of the other half does not flush them again.
#[test]
fn an_unreliable_queue_pair_goes_into_sq_error() {
    for (kind, later) in [(QpType::Uc, None), (QpType::Ud, None), (QpType::Uc, Some(9))] {
        let mut world = World::new(35, 10);
        world.latency = 20;
        let qp = world.add_qp(kind, 1, Trouble { local: Some(4), ..Trouble::default() }, &[]);
        (0..12).for_each(|_| world.post(qp, send(200)));
        world.run_until(200_000, |w| w.idle() && w.qps[qp].cqes.len() == 12);
        if let Some(cause) = later {
            world.error_in.push(Fields::of::<QpError>().pack(&[("qpn", qp as u128), ("cause", cause)]));
        }
        (0..3000).for_each(|_| world.step());
        let statuses: Vec<_> = world.qps[qp].cqes.iter().map(|cqe| (cqe.0, cqe.1)).collect();
        let expected: Vec<_> = (0..12).map(|n| (n, [0, 4, 5][usize::from(n >= 4) + usize::from(n > 4)])).collect();
        assert_eq!(statuses, expected);
        assert_eq!(world.field(qp, "state"), if later.is_some() { 6 } else { 5 });
        assert!(world.errors.is_empty(), "the responder goes on");
        assert_eq!(world.events.pop().is_some(), later.is_some());
    }
}

/// `length` bytes to be sent.
fn send(length: u32) -> WorkRequest {
    WorkRequest { opcode: WrOpcode::Send, signaled: true, solicited: false, imm: 0, raddr: 0, rkey: 0, length, operands: (0, 0), fence: false }
}

/// Packets sent when no acknowledge comes, for requests of so many whole packets; then all goes on and completes.
fn sent_without_answer(packets: u32, requests: u32) -> u64 {
    let mut world = World::new(8, 0);
    world.silent = true;
    let qp = world.add_qp(QpType::Rc, 1, Trouble::default(), &[("timeout", 0)]);
    for _ in 0..requests {
        world.post(qp, send(256 * packets));
    }
    world.run_until(100_000, |w| w.qps[qp].parked);
    (0..2000).for_each(|_| world.step());
    let sent = world.sent;
    world.silent = false;
    all_succeed(&mut world, 300_000);
    sent
}

#[test]
fn the_window_ends_between_two_messages() {
    assert_eq!(sent_without_answer(64, 12), u64::from(WINDOW));
    assert_eq!(sent_without_answer(5, 110), u64::from(WINDOW));
}

#[test]
fn no_more_requests_go_out_than_the_tracker_holds() {
    assert_eq!(sent_without_answer(1, 400), 256);
}

#[test]
fn old_acknowledges_change_nothing() {
    mixed(9, 10, 20, Trouble { echo: 40, ..Trouble::default() }, 40);
    mixed(10, 10, 20, Trouble { echo: 40, loss: 2, ..Trouble::default() }, 30);
}

/// One request after the other; the first try of each fails. Counts of one suffice, because progress refills them.
fn one_by_one(trouble: Trouble, counts: &[(&str, u128)]) {
    let mut world = World::new(11, 0);
    let qp = world.add_qp(QpType::Rc, 1, trouble, counts);
    for _ in 0..4 {
        world.post(qp, send(100));
        all_succeed(&mut world, 100_000);
    }
}

#[test]
fn progress_refills_the_retry_counts() {
    one_by_one(Trouble { deaf: true, ..Trouble::default() }, &[("retry_cnt", 1), ("retries_left", 1)]);
    one_by_one(Trouble { slow: Some(1), ..Trouble::default() }, &[("rnr_retry", 1), ("rnr_left", 1)]);
}

/// Between an RNR NAK and the next try lies the time the NAK asks for, shorter or longer than the retransmission time.
#[test]
fn the_wait_is_what_the_receiver_asked_for() {
    for (code, wait) in [(1, 10_000), (16, 2_560_000)] {
        let mut world = World::new(12, 0);
        let qp = world.add_qp(QpType::Rc, 1, Trouble { slow: Some(code), ..Trouble::default() }, &[]);
        world.post(qp, send(100));
        let sent = |world: &mut World, n| {
            while world.sent < n {
                world.step();
                assert!(world.tb.cycles() < 100_000, "{n} packets never come");
            }
            world.tb.cycles()
        };
        let first = sent(&mut world, 1);
        if code == 16 {
            // A sequence NAK from before the wait does not end it.
            while world.qps[qp].rnr_naks == 0 || world.acks_under_way() > 0 {
                world.step();
            }
            (0..100).for_each(|_| world.step());
            let psn = world.field(qp, "una_psn") as u32;
            world.receive(qp, psn, 0x11, 0x60);
        }
        let between = sent(&mut world, 2) - first;
        // Ticks of 1.024 us; the way there and back takes up to 240 cycles and some handling.
        let least = wait * TICK / 1024;
        assert!((least..least + 500).contains(&between), "code {code}: {between} cycles, not {least}");
        all_succeed(&mut world, 100_000);
    }
}
