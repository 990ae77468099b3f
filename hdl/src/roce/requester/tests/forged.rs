//! Acknowledges, refusals and answers that name what was never sent: counted, and without any effect. And one that names what was sent, while it is sent again.

use super::super::model::WorkRequest;
use super::world::{Trouble, World};
use ferric_abi::codes::{QpType, WrOpcode};

/// Bits of `rx_stat`: see `req_rx::STATS`.
const BAD_ACK: u64 = 1 << 7;

fn request(opcode: WrOpcode, length: u32) -> WorkRequest {
    WorkRequest { opcode, signaled: true, solicited: false, imm: 0, raddr: 0x1234_5678_9abc, rkey: 7, length, operands: (3, 4), fence: false }
}

/// What the requester holds of a queue pair.
fn state(world: &World, qp: usize) -> Vec<u64> {
    ["state", "una_psn", "next_psn", "max_psn", "una_index", "sent_index", "done_index", "retries_left", "rnr_left", "rnr_wait", "rd_out", "read_gap", "error_pending", "epoch"]
        .map(|name| world.field(qp, name))
        .to_vec()
}

/// Frames that name PSNs from the end of what was sent on, with everything in flight, in part acknowledged, or nothing: `asks` with READs among the requests.
fn unsent(seed: u64, stall: u32, asks: bool) {
    let mut world = World::new(seed, stall);
    // No time-out interferes.
    let qp = world.add_qp(QpType::Rc, 1, Trouble::default(), &[("timeout", 0)]);
    for round in 0..3 {
        world.silent = true;
        for n in 0..4 {
            world.post(qp, if asks && n == 1 { request(WrOpcode::Read, 700) } else { request(WrOpcode::Write, 256 * n + 10) });
        }
        // The last round is of nothing.
        if round < 2 {
            (0..4000).for_each(|_| world.step());
            assert!(world.field(qp, "una_psn") != world.field(qp, "max_psn"));
        } else {
            world.silent = false;
            world.run_until(60_000, |w| w.idle() && w.qps[qp].cqes.len() == 12);
        }
        if round == 1 && !asks {
            let psn = (world.field(qp, "una_psn") as u32 + 2) & 0xff_ffff;
            world.receive(qp, psn, 0x11, 0x1f);
            (0..400).for_each(|_| world.step());
            assert_eq!(world.field(qp, "una_psn") as u32, (psn + 1) & 0xff_ffff);
        }
        let (before, completed, sent) = (state(&world, qp), world.qps[qp].cqes.len(), world.sent);
        let mut frames = Vec::new();
        for ahead in [0, 1, 2, 5, 100, 511, 512, 0x1000, 0x7f_f000] {
            frames.extend([0x1f, 0x00, 0x60, 0x61, 0x62, 0x63, 0x21].map(|syndrome| (ahead, 0x11, syndrome)));
            frames.extend([(ahead, 0x0d, 0x1f), (ahead, 0x0e, 0x1f), (ahead, 0x10, 0x1f), (ahead, 0x12, 0x1f)]);
        }
        let mut counted = 0;
        for (ahead, opcode, syndrome) in &frames {
            let psn = (world.field(qp, "max_psn") as u32).wrapping_add(*ahead) & 0xff_ffff;
            world.forge(qp, psn, *opcode, *syndrome);
            for _ in 0..120 {
                world.step();
                counted += u64::from(world.tb.get("rx_stat") & BAD_ACK != 0 && world.tb.get("rx_stat_function") == 300 + qp as u64);
            }
            assert_eq!(state(&world, qp), before, "PSN {ahead} beyond the last, opcode {opcode:#x}, syndrome {syndrome:#x}, round {round}");
        }
        assert_eq!((world.qps[qp].cqes.len(), world.sent, world.errors.len(), world.events.len()), (completed, sent, 0, 0));
        assert_eq!(counted, frames.len() as u64, "each is counted once");
    }
    // All has been done in the end, by the peer.
    assert!(world.qps[qp].cqes.iter().all(|cqe| cqe.1 == 0));
}

#[test]
fn what_was_never_sent_is_not_acknowledged() {
    unsent(71, 0, false);
    unsent(72, 25, false);
}

#[test]
fn nor_is_it_beyond_a_read() {
    unsent(73, 0, true);
    unsent(74, 25, true);
}

/// What has been sent stays sent while it is sent again: an acknowledge of all of it that comes in the middle is a good one.
#[test]
fn an_acknowledge_overtakes_what_is_sent_again() {
    for (seed, stall) in [(75, 0), (76, 20)] {
        let mut world = World::new(seed, stall);
        let qp = world.add_qp(QpType::Rc, 1, Trouble::default(), &[("timeout", 0)]);
        world.silent = true;
        (0..4).for_each(|_| world.post(qp, request(WrOpcode::Write, 256 * 40)));
        (0..8000).for_each(|_| world.step());
        let (first, last) = (world.field(qp, "una_psn"), world.field(qp, "max_psn"));
        assert_eq!(last.wrapping_sub(first) & 0xff_ffff, 160);
        // The peer misses the first packet.
        world.receive(qp, first as u32, 0x11, 0x60);
        world.run_until(4000, |w| w.field(qp, "next_psn") != last && w.field(qp, "next_psn") != first);
        assert_eq!(world.field(qp, "max_psn"), last, "sent is sent");
        world.receive(qp, (last as u32).wrapping_sub(1) & 0xff_ffff, 0x11, 0x1f);
        world.run_until(8000, |w| w.qps[qp].cqes.len() == 4 && w.field(qp, "una_psn") == last);
        assert_eq!(world.rx_stats.all("bad_ack"), 0);
        assert!(world.qps[qp].cqes.iter().all(|cqe| cqe.1 == 0), "{:?}", world.qps[qp].cqes);
    }
}
