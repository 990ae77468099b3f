//! `hold` and `shallow`: what the engine `pause` asks for.

use super::bench::{Bench, Kind, Plan};
use super::card;
use crate::net::tx::SHALLOW;
use crate::tb::Tb;

/// A small WRITE of three beats at W=512.
fn small() -> Plan {
    Plan { kind: Kind::Data, pay_len: 64, reth: true, ..Plan::default() }
}

/// Holds of all lengths at any time: every frame leaves, in order.
#[test]
fn a_hold_loses_nothing() {
    for (seed, stall) in [(11, 0), (12, 40)] {
        let mut bench = Bench::new(Tb::with_seed("egress512", card::<512, 64, 6>(), seed), 64, stall);
        bench.tb.set("shallow", 1);
        let mut left = 300;
        let limit = bench.tb.cycles() + 900_000;
        while left > 0 || !bench.idle() {
            assert!(bench.tb.cycles() < limit, "stuck: {}", bench.state());
            if left > 0 && bench.requests_waiting() < 3 {
                let plan = bench.random_plan();
                bench.request(plan);
                left -= 1;
            }
            if bench.tb.rng().percent(2) {
                let hold = bench.tb.rng().below(2);
                bench.tb.set("hold", hold);
            }
            bench.step();
        }
        (0..40).for_each(|_| bench.step());
        bench.check_counts();
        bench.tb.set("hold", 0);
        bench.check_all_free();
    }
}

/// What still goes out behind a hold: what waits in front of the MAC, of which the first frame may have gone in part, a frame that is being read, three that are chosen.
#[test]
fn little_goes_out_behind_a_hold() {
    for (pay_len, most) in [(64, 4 + 1 + SHALLOW.div_ceil(3)), (4096, 5)] {
        // A MAC that takes a beat in two cycles: everything that may wait in front of it does.
        let mut bench = Bench::new(Tb::with_seed("egress512", card::<512, 64, 6>(), 13), 64, 50);
        bench.prompt = true;
        bench.tb.set("shallow", 1);
        let mut largest = 0;
        for round in 0..8 {
            for _ in 0..3000 + 17 * round {
                while bench.requests_waiting() < 4 {
                    bench.request(Plan { pay_len, ..small() });
                }
                bench.step();
            }
            bench.tb.set("hold", 1);
            let before = (bench.sent_data, bench.sent_bypass);
            (0..3000).for_each(|_| bench.step());
            largest = largest.max(bench.sent_data - before.0);
            let held = bench.sent_data;
            (0..20).for_each(|_| bench.request(Plan { kind: Kind::Bypass, ..Plan::default() }));
            // Acknowledges go on, slower than any requester is: one in 1,024 cycles.
            (0..4 * 1024).for_each(|_| bench.step());
            assert!((4..=5).contains(&(bench.sent_bypass - before.1)), "{} of 20", bench.sent_bypass - before.1);
            assert_eq!(bench.sent_data, held, "data do not");
            bench.tb.set("hold", 0);
            (0..1500).for_each(|_| bench.step());
            assert_eq!(bench.sent_bypass - before.1, 20);
        }
        assert!((2..=most).contains(&largest), "{largest} frames of {pay_len} bytes");
        // Unless asked to, the egress fills its FIFO.
        println!("{largest} frames of {pay_len} bytes behind a hold");
    }
}

/// Few beats in front of the MAC are enough for it never to wait.
#[test]
fn shallow_costs_nothing() {
    for (plan, count, beats_of, slack) in [(small(), 300, 3, 302), (Plan { pay_len: 4096, ..small() }, 60, 65, 60)] {
        let mut bench = Bench::new(Tb::new("egress512", card::<512, 64, 6>()), 64, 0);
        bench.prompt = true;
        bench.tb.set("shallow", 1);
        let mut left = count;
        while left > 0 || !bench.idle() {
            while left > 0 && bench.requests_waiting() < 4 {
                bench.request(plan.clone());
                left -= 1;
            }
            bench.step();
        }
        bench.check_counts();
        let cycles = bench.last_beat - bench.first_beat + 1;
        assert!(bench.beats >= beats_of * count && cycles <= bench.beats + slack, "{} beats in {cycles} cycles", bench.beats);
    }
}
