//! The egress behind a share of two clients, of which the first has it to itself: the bench sees no difference.

use super::bench::{Bench, Kind};
use super::{card, soak_on};
use crate::assembly::{ports, Assembly};
use crate::net::share::slots::SlotShare;
use crate::tb::Tb;
use rust_hdl::prelude::*;

/// Port of the egress, of the share for the egress, of the share for a client.
const SHARED: [(&str, &str, &str); 4] = [("s_slot[0]", "m_slot", "s_slot[0]"), ("m_slot[0]", "s_grant", "m_grant[0]"), ("s_inline", "m_inline", "s_inline[0]"), ("s_seal[0]", "m_seal", "s_seal[0]")];

/// Egress and share with the ports of the egress.
fn behind<const W: usize, const K: usize, const LK: usize>() -> impl Block {
    let mut a = Assembly::default();
    a.input::<Clock>("clock");
    a.input::<Bit>("reset");
    a.reset_by("reset");
    a.instance("egress", card::<W, K, LK>);
    a.instance("share", || SlotShare::<2>::new(&[]));
    for port in ports::of(&card::<W, K, LK>()).into_iter().filter(|p| p.name != "clock" && p.name != "reset") {
        let inner = match SHARED.iter().find(|(name, ..)| *name == port.name) {
            None => format!("egress.{}", port.name),
            Some((name, whole, each)) => {
                a.join(&format!("share.{whole}"), &format!("egress.{name}"));
                a.optional(&format!("share.{}", each.replace('0', "1")));
                format!("share.{each}")
            }
        };
        a.expose(&port.signal(""), &inner);
    }
    a.assemble().unwrap_or_else(|faults| panic!("{faults:#?}"))
}

/// First and last beat, and beats, of frames with and without inline bytes, reads, headers that come to nothing, without stalls.
fn times(mut tb: Tb, k: usize) -> (u64, u64, u64) {
    const FRAMES: usize = 300;
    tb.allow_combinational();
    let mut bench = Bench::new(tb, k, 0);
    // Drawn before the first cycle, and everything supplied at once: what the bench does depends on nothing but the egress then.
    let mut plans: Vec<_> = (0..FRAMES).map(|_| bench.random_plan()).collect();
    // A prompt bench tells frames by their headers.
    plans.retain(|plan| plan.kind != Kind::Raw);
    bench.prompt = true;
    while !plans.is_empty() || !bench.idle() {
        assert!(bench.tb.cycles() < 1_000_000, "stuck: {}", bench.state());
        while bench.requests_waiting() < 5 {
            let Some(plan) = plans.pop() else { break };
            bench.request(plan);
        }
        bench.step();
    }
    bench.check_counts();
    (bench.first_beat, bench.last_beat, bench.beats)
}

#[test]
fn a_share_costs_its_only_user_no_cycle() {
    const SEED: u64 = 11;
    let plain = Tb::with_seed("egress64", card::<64, 8, 3>(), SEED);
    assert_eq!(times(Tb::with_seed("shared_egress64", behind::<64, 8, 3>(), SEED), 8), times(plain, 8));
    let plain = Tb::with_seed("egress512", card::<512, 64, 6>(), SEED);
    assert_eq!(times(Tb::with_seed("shared_egress512", behind::<512, 64, 6>(), SEED), 64), times(plain, 64));
}

#[test]
fn frames_leave_whole_through_a_share() {
    for (seed, stall) in [(12, 30), (13, 60)] {
        let mut tb = Tb::with_seed("shared_egress64", behind::<64, 8, 3>(), seed);
        tb.allow_combinational();
        soak_on(Bench::new(tb, 8, stall), 100);
    }
}
