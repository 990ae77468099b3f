//! Errors: the right status for the right request, flush for the rest, then silence.

use super::super::model::WorkRequest;
use super::world::{Trouble, World};
use crate::msg::{EqeReq, QpError};
use crate::tb::Fields;
use ferric_abi::codes::{QpType, WrOpcode};

const REQUESTS: usize = 30;
const VICTIM: usize = 17;

/// Runs one queue pair into its error beside a healthy one.
fn ends_with(seed: u64, trouble: Trouble, extra: &[(&str, u128)], status: u8) -> World {
    let mut world = World::new(seed, 15);
    world.latency = 20;
    let well = world.add_qp(QpType::Rc, 2, Trouble::default(), &[]);
    let sick = world.add_qp(QpType::Rc, 1, trouble, extra);
    for qp in [sick, well] {
        for _ in 0..REQUESTS {
            let wr = WorkRequest { signaled: true, ..world.random(qp, 10) };
            // What sends nothing cannot meet any of these errors.
            let silent = wr.opcode == WrOpcode::Nop || wr.is_local();
            let wr = WorkRequest { opcode: if silent { WrOpcode::Write } else { wr.opcode }, ..wr };
            world.post(qp, wr);
        }
    }
    finish(&mut world, sick);
    let q = &world.qps[sick];
    let statuses: Vec<_> = q.cqes.iter().map(|cqe| (cqe.0, cqe.1)).collect();
    let expected: Vec<_> = (0..REQUESTS)
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
    assert_eq!(statuses, expected);
    assert_eq!(world.qps[well].cqes.len(), REQUESTS);
    assert!(world.qps[well].cqes.iter().all(|cqe| cqe.1 == 0));
    let (fe, fq) = (Fields::of::<EqeReq>(), Fields::of::<QpError>());
    let (event, error) = (world.events.pop().expect("an event"), world.errors.pop().expect("a message to resp"));
    assert_eq!((fe.get(&event, "eqn"), fe.get(&event, "kind"), fe.get(&event, "id"), fe.get(&event, "cause")), (150 + sick as u128, 3, sick as u128, status.into()));
    assert_eq!((fq.get(&error, "qpn"), fq.get(&error, "side"), fq.get(&error, "cause")), (sick as u128, 0, status.into()));
    assert!(world.events.is_empty() && world.errors.is_empty());
    world
}

fn finish(world: &mut World, sick: usize) {
    world.run_until(400_000, |w| w.idle() && w.qps[sick].cqes.len() == REQUESTS && w.qps[sick].flush && w.qps.iter().all(|q| q.cqes.len() == REQUESTS));
    let sent = world.sent;
    (0..6000).for_each(|_| world.step());
    assert_eq!(world.sent, sent, "packets after the error");
    assert_eq!(world.field(sick, "state"), 6);
}

#[test]
fn the_peer_refuses() {
    for (code, status) in [(1, 9), (2, 10), (3, 11)] {
        ends_with(code.into(), Trouble { refuse: Some((VICTIM, code)), loss: 2, ..Trouble::default() }, &[], status);
    }
}

#[test]
fn gathering_fails() {
    ends_with(11, Trouble { local: Some(VICTIM), ..Trouble::default() }, &[], 4);
    ends_with(12, Trouble { local: Some(VICTIM), loss: 3, ..Trouble::default() }, &[], 4);
}

/// While the error waits for older requests, nothing behind it is sent.
#[test]
fn a_failed_request_stops_those_behind_it() {
    let mut world = World::new(19, 0);
    world.silent = true;
    let qp = world.add_qp(QpType::Rc, 1, Trouble { local: Some(VICTIM), ..Trouble::default() }, &[("timeout", 0)]);
    for _ in 0..REQUESTS {
        let wr = WorkRequest { signaled: true, opcode: WrOpcode::Write, length: 256 * 16, ..world.random(qp, 1) };
        world.post(qp, wr);
    }
    world.run_until(50_000, |w| w.field(qp, "error_pending") == 1);
    // What was on its way to the gatherer.
    (0..600).for_each(|_| world.step());
    let sent = world.sent;
    assert!(sent < 16 * 28, "too late to see");
    (0..5000).for_each(|_| world.step());
    assert_eq!((world.sent, world.qps[qp].cqes.len()), (sent, 0), "behind the error");
    world.silent = false;
    finish(&mut world, qp);
    let statuses: Vec<_> = world.qps[qp].cqes.iter().map(|cqe| cqe.1).collect();
    let expected: Vec<_> = (0..REQUESTS)
        .map(|n| {
            if n < VICTIM {
                0
            } else if n == VICTIM {
                4
            } else {
                5
            }
        })
        .collect();
    assert_eq!(statuses, expected);
}

#[test]
fn nobody_answers() {
    let mut world = ends_with(13, Trouble { cut: Some(VICTIM), ..Trouble::default() }, &[("retry_cnt", 2), ("retries_left", 2)], 12);
    // What waits in the card may be all that ever arrives: a time-out is no new round.
    assert!(world.changes.is_empty(), "rounds after time-outs: {:?}", world.changes);
    // What comes late for a dead queue pair is counted and goes no further.
    let psn = world.field(0, "una_psn") as u32;
    world.receive(0, psn, 0x11, 0x1f);
    (0..200).for_each(|_| world.step());
    assert!(world.idle() && world.qps[0].cqes.len() == REQUESTS);
}

#[test]
fn the_responder_half_fails() {
    let mut world = World::new(15, 15);
    let qp = world.add_qp(QpType::Rc, 1, Trouble { cut: Some(VICTIM), ..Trouble::default() }, &[("timeout", 0)]);
    for _ in 0..REQUESTS {
        let wr = WorkRequest { signaled: true, opcode: WrOpcode::Write, ..world.random(qp, 4) };
        world.post(qp, wr);
    }
    world.run_until(200_000, |w| w.qps[qp].cqes.len() == VICTIM);
    for _ in 0..2 {
        world.error_in.push(Fields::of::<QpError>().pack(&[("qpn", qp as u128), ("side", 1), ("cause", 10)]));
    }
    finish(&mut world, qp);
    assert!(world.qps[qp].cqes.iter().enumerate().all(|(n, cqe)| (cqe.0, cqe.1) == (n, if n < VICTIM { 0 } else { 5 })));
    assert!(world.errors.is_empty(), "resp knows");
    let event = world.events.pop().expect("an event");
    let layout = Fields::of::<EqeReq>();
    assert_eq!((layout.get(&event, "eqn"), layout.get(&event, "kind")), (150 + qp as u128, 4));
    assert!(world.events.is_empty(), "one is enough");
}

#[test]
fn receiver_never_ready() {
    let mut world = World::new(16, 0);
    let qp = world.add_qp(QpType::Rc, 1, Trouble { rnr: 100, ..Trouble::default() }, &[("rnr_retry", 3), ("rnr_left", 3)]);
    for _ in 0..REQUESTS {
        let wr = WorkRequest { signaled: true, opcode: WrOpcode::Send, ..world.random(qp, 1) };
        world.post(qp, wr);
    }
    finish(&mut world, qp);
    assert_eq!(world.qps[qp].rnr_naks, 4);
    assert_eq!((world.qps[qp].cqes[0].1, world.qps[qp].cqes[1].1), (13, 5));
}

#[test]
fn malformed_requests_are_refused() {
    let request = |opcode, length| WorkRequest { opcode, signaled: true, solicited: false, imm: 0, raddr: 0, rkey: 0, length, operands: (0, 0), fence: false };
    let cases = [
        (QpType::Rc, WrOpcode::Write, 0x8000_0000, 1),
        (QpType::Ud, WrOpcode::Write, 10, 2),
        (QpType::Ud, WrOpcode::Send, 257, 1),
        (QpType::Raw, WrOpcode::SendImm, 10, 2),
        (QpType::Raw, WrOpcode::Send, 0, 1),
        (QpType::Raw, WrOpcode::Send, 9217, 1),
    ];
    for (kind, opcode, length, status) in cases {
        assert_eq!(super::super::model::refusal(kind, opcode as u8, length, 256), Some(status));
        let mut world = World::new(17, 10);
        let qp = world.add_qp(kind, 1, Trouble::default(), &[]);
        world.post(qp, request(WrOpcode::Send, 100));
        world.post(qp, request(WrOpcode::Nop, 0));
        // Not through `post`: it has no packets.
        world.qps[qp].wrs.push(request(opcode, length));
        world.qps[qp].wrs.push(request(WrOpcode::Send, 100));
        world.run_until(100_000, |w| w.idle() && w.qps[qp].cqes.len() == 4);
        let statuses: Vec<_> = world.qps[qp].cqes.iter().map(|cqe| cqe.1).collect();
        assert_eq!(statuses, [0, 0, status, 5]);
    }
}

#[test]
fn responses_nobody_understands_are_freed() {
    let mut world = World::new(18, 20);
    let qp = world.add_qp(QpType::Rc, 1, Trouble::default(), &[]);
    for (opcode, syndrome) in [(0x10, 0x1f), (0x12, 0), (0x11, 0x40), (0x11, 0x64), (0x11, 0x80)] {
        world.receive(qp, 5, opcode, syndrome);
    }
    // A queue pair that does not exist, and an acknowledge of what was never sent.
    world.receive(7, 5, 0x11, 0x1f);
    let psn = world.field(qp, "una_psn") as u32;
    world.receive(qp, psn, 0x11, 0x1f);
    world.run_until(1000, World::idle);
    assert_eq!(world.field(qp, "una_psn") as u32, psn);
}

/// The oldest failure is the one that counts, whatever failed locally behind it and whatever before it is still on its way to memory.
#[test]
fn of_two_failures_the_older_one_counts() {
    use Trouble as T;
    let ends: [(Trouble, u8, &[(&str, u128)]); 5] = [
        (T { refuse: Some((1, 1)), ..T::default() }, 9, &[]),
        (T { refuse: Some((1, 2)), ..T::default() }, 10, &[]),
        (T { refuse: Some((1, 3)), ..T::default() }, 11, &[]),
        (T { rnr: 100, ..T::default() }, 13, &[("rnr_retry", 0), ("rnr_left", 0)]),
        (T { cut: Some(1), ..T::default() }, 12, &[("timeout", 6), ("retry_cnt", 1), ("retries_left", 1)]),
    ];
    let request = |opcode, length| WorkRequest { opcode, signaled: true, solicited: false, imm: 0, raddr: 64, rkey: 7, length, operands: (3, 4), fence: false };
    let mut seed = 70;
    for (trouble, status, extra) in ends {
        for before in [WrOpcode::Read, WrOpcode::FetchAdd, WrOpcode::Write] {
            if status != 10 && before != WrOpcode::Read {
                continue;
            }
            // Which request fails locally: the one that is refused, the next, one further on, none.
            for local in [Some(1), Some(2), Some(4), None] {
                for timeout in [0, 7] {
                    let trouble = Trouble { local: local.filter(|_| trouble.cut.is_none() || local != Some(1)), ..trouble };
                    // What fails on its way out is not refused; nobody but the timer notices silence.
                    let status = if trouble.local == Some(1) { 4 } else { status };
                    seed += 1;
                    let mut world = World::new(seed, 15);
                    let first = [("timeout", timeout)];
                    let qp = world.add_qp(QpType::Rc, 1, trouble, &[&first, extra].concat());
                    world.post(qp, request(before, if before == WrOpcode::FetchAdd { 8 } else { 600 }));
                    (0..4).for_each(|_| world.post(qp, request(WrOpcode::Write, 300)));
                    world.run_until(60_000, |w| w.idle() && w.qps[qp].cqes.len() == 5 && w.qps[qp].flush);
                    let got: Vec<_> = world.qps[qp].cqes.iter().map(|cqe| (cqe.0, cqe.1)).collect();
                    assert_eq!(got, [(0, 0), (1, status), (2, 5), (3, 5), (4, 5)], "seed {seed}: {before:?}, {local:?}, time-out {timeout}");
                    (0..400).for_each(|_| world.step());
                    assert_eq!((world.errors.taken(), world.events.taken()), (1, 1));
                }
            }
        }
    }
}
