//! The egress against expected frames under random completion orders and stalls.

mod bench;
pub(crate) mod makers;
mod pauses;
mod shared;

use super::{asm_log2, for_headers, Egress, LEAST_HEADER};
use crate::assembly::AnyBlock;
use crate::tb::Tb;
use bench::{Bench, Kind, Plan};

/// log2 of the slots of a card with `k` bytes a beat.
fn log_slots(k: usize) -> usize {
    if k == 64 {
        8
    } else {
        7
    }
}

/// The egress of a card of one engine that makes headers, no long ones.
fn card<const W: usize, const K: usize, const LK: usize>() -> AnyBlock {
    match log_slots(K) {
        8 => for_headers::<W, K, LK, 8>(&[LEAST_HEADER], [0, 0]),
        _ => for_headers::<W, K, LK, 7>(&[LEAST_HEADER], [0, 0]),
    }
}

fn soak<const W: usize, const K: usize, const LK: usize>(name: &str, seed: u64, stall: u32, frames: usize) {
    soak_on(Bench::new(Tb::with_seed(name, card::<W, K, LK>(), seed), K, stall), frames);
}

fn soak_on(mut bench: Bench, frames: usize) {
    let mut left = frames;
    let limit = bench.tb.cycles() + 2000 + frames as u64 * 120_000 / bench.k as u64;
    while left > 0 || !bench.idle() {
        assert!(bench.tb.cycles() < limit, "stuck: {}", bench.state());
        if left > 0 && bench.requests_waiting() < 3 {
            let plan = bench.random_plan();
            bench.request(plan);
            left -= 1;
        }
        bench.step();
    }
    (0..40).for_each(|_| bench.step());
    bench.check_counts();
    bench.check_all_free();
}

#[test]
fn frames_leave_whole_and_in_order() {
    for (seed, stall) in [(1, 0), (2, 20), (3, 60)] {
        soak::<512, 64, 6>("egress512", seed, stall, 400);
        soak::<64, 8, 3>("egress64", seed, stall, 150);
    }
}

/// The memory target's: an assembly buffer that a handful of frames fills.
#[test]
fn sixteen_kibibytes_are_enough() {
    for (seed, stall) in [(4, 0), (5, 30)] {
        let mut bench = Bench::new(Tb::with_seed("egress64_16k", Egress::<64, 8, 3, 1, 7>::new(14, 7, [0, 0]), seed), 8, stall);
        bench.asm = 1 << 14;
        soak_on(bench, 150);
    }
}

/// Cycles between the first and the last beat of `count` equal frames, everything supplied as fast as asked, and beats.
fn stream<const W: usize, const K: usize, const LK: usize>(name: &str, plan: Plan, count: usize) -> (u64, u64) {
    mixture::<W, K, LK>(name, &[plan], count)
}

/// The same with frames of these kinds in turn.
fn mixture<const W: usize, const K: usize, const LK: usize>(name: &str, plans: &[Plan], count: usize) -> (u64, u64) {
    let mut bench = Bench::new(Tb::new(name, card::<W, K, LK>()), K, 0);
    bench.prompt = true;
    let mut left = count;
    let limit = bench.tb.cycles() + 2000 + (count * 8192 / K) as u64;
    while left > 0 || !bench.idle() {
        assert!(bench.tb.cycles() < limit, "stuck: {}", bench.state());
        while left > 0 && bench.requests_waiting() < 4 {
            bench.request(plans[left % plans.len()].clone());
            left -= 1;
        }
        bench.step();
    }
    bench.check_counts();
    (bench.last_beat - bench.first_beat + 1, bench.beats)
}

#[test]
fn large_frames_leave_back_to_back() {
    let plan = Plan { kind: Kind::Data, pay_len: 4096, ..Plan::default() };
    for (cycles, beats) in [stream::<512, 64, 6>("egress512", plan.clone(), 60), stream::<64, 8, 3>("egress64", plan, 20)] {
        assert!(beats * 100 >= cycles * 99, "{beats} beats in {cycles} cycles");
    }
}

#[test]
fn small_frames_lose_at_most_a_cycle_each() {
    let plan = Plan { kind: Kind::Data, pay_len: 64, reth: true, ..Plan::default() };
    let (cycles, beats) = stream::<512, 64, 6>("egress512", plan, 300);
    assert_eq!(beats, 900);
    assert!(cycles <= 1200 + 2, "{cycles} cycles for 300 frames of 3 beats");
}

/// A small WRITE and an acknowledge: 3 beats and 1.
#[test]
fn acknowledges_between_data_cost_their_beat() {
    let plans = [Plan { kind: Kind::Data, pay_len: 64, reth: true, ..Plan::default() }, Plan { kind: Kind::Bypass, ..Plan::default() }];
    let (cycles, beats) = mixture::<512, 64, 6>("egress512", &plans, 600);
    assert_eq!(beats, 1200);
    assert!(cycles <= 1300, "{cycles} cycles for 300 frames of 3 beats and 300 of 1");
}

/// Exact cycles of an idle egress at W=512, from the last thing a frame waits for to its first beat.
#[test]
fn an_idle_egress_loses_no_time() {
    let mut bench = Bench::new(Tb::new("egress512", card::<512, 64, 6>()), 64, 0);
    bench.start();
    for _ in 0..3 {
        bench.prompt = true;
        bench.hold_reads = true;
        bench.request(Plan { kind: Kind::Data, pay_len: 64, reth: true, ..Plan::default() });
        (0..200).for_each(|_| bench.step());
        bench.hold_reads = false;
        (bench.first_beat, bench.beats) = (0, 0);
        bench.step();
        let taken = bench.tb.cycles() - 1;
        (0..40).for_each(|_| bench.step());
        assert_eq!(bench.beats, 3);
        assert_eq!(bench.first_beat - taken, 14, "PayDone to first beat");
    }
    bench.check_counts();
}

#[test]
fn acknowledges_overtake_waiting_data() {
    let mut bench = Bench::new(Tb::new("egress512", card::<512, 64, 6>()), 64, 0);
    bench.start();
    bench.prompt = true;
    // A data frame whose read never comes back while the acknowledge passes.
    bench.hold_reads = true;
    bench.request(Plan { kind: Kind::Data, pay_len: 500, ..Plan::default() });
    bench.request(Plan { kind: Kind::Bypass, ..Plan::default() });
    for _ in 0..200 {
        bench.step();
    }
    assert_eq!((bench.sent_bypass, bench.sent_data), (1, 0));
    bench.hold_reads = false;
    for _ in 0..200 {
        bench.step();
    }
    assert!(bench.idle());
    assert_eq!((bench.sent_bypass, bench.sent_data), (1, 1));
}
