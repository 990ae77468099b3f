//! Both resets, cycle by cycle.

use super::*;
use crate::tb::Tb;

/// Cycles until `reset` is low.
fn until_low(tb: &mut Tb) -> u64 {
    (1..100)
        .find(|_| {
            tb.cycle();
            tb.get("reset") == 0
        })
        .unwrap_or_else(|| panic!("reset for ever"))
}

#[test]
fn raised_at_once_and_held_sixteen_cycles() {
    let mut tb = Tb::new("ferric_reset", Reset::default());
    // From power-up, inputs low.
    tb.cycle();
    assert_eq!(tb.get("reset"), 1);
    for round in 0..40 {
        let (cause, other) = if round % 2 == 0 { ("reset_n", "ready") } else { ("ready", "reset_n") };
        tb.set(other, 1);
        tb.set(cause, 0);
        tb.run(2);
        tb.set(cause, 1);
        // Two registers, then the count.
        assert_eq!(until_low(&mut tb), 2 + HOLD);
        let pause = tb.rng().below(30);
        tb.run(pause);
        assert_eq!(tb.get("reset"), 0);
        tb.set(cause, 0);
        tb.begin();
        assert_eq!(tb.get("reset"), 1, "before the edge");
        if round % 3 == 0 {
            // Shorter than a cycle.
            tb.set(cause, 1);
            tb.begin();
            tb.end();
            assert_eq!((tb.get("reset"), until_low(&mut tb)), (1, 1 + HOLD));
        } else {
            tb.end();
            let pause = tb.rng().below(30);
            tb.run(pause);
            assert_eq!(tb.get("reset"), 1);
        }
    }
}

#[test]
fn a_cause_that_comes_back_starts_the_count_again() {
    let mut tb = Tb::new("ferric_reset", Reset::default());
    tb.set("ready", 1);
    for low_again in 0..16 {
        tb.set("reset_n", 1);
        tb.run(2 + low_again);
        assert_eq!(tb.get("reset"), 1);
        tb.set("reset_n", 0);
        tb.run(1);
        tb.set("reset_n", 1);
        assert_eq!(until_low(&mut tb), 2 + HOLD);
        tb.set("reset_n", 0);
        tb.run(3);
    }
}

#[test]
fn a_function_level_reset_is_answered_once_it_is_over() {
    let mut tb = Tb::new("ferric_reset_flr", ResetFlr::default());
    tb.run(3);
    assert_eq!((tb.get("reset"), tb.get("flr_done")), (1, 0));
    tb.set("reset_n", 1);
    assert_eq!(until_low(&mut tb), HOLD);
    for pause in [0, 5, 40] {
        tb.run(pause);
        assert_eq!(tb.get("flr_done"), 0);
        tb.set("flr", 1);
        tb.cycle();
        for _ in 0..HOLD {
            assert_eq!((tb.get("reset"), tb.get("flr_done")), (1, 0));
            tb.cycle();
        }
        assert_eq!((tb.get("reset"), tb.get("flr_done")), (0, 0));
        tb.cycle();
        for _ in 0..30 {
            assert_eq!((tb.get("reset"), tb.get("flr_done")), (0, 1), "no second reset while it stays high");
            tb.cycle();
        }
        tb.set("flr", 0);
        tb.cycle();
        assert_eq!((tb.get("reset"), tb.get("flr_done")), (0, 0));
    }
    tb.set("flr", 1);
    tb.run(5);
    tb.set("reset_n", 0);
    tb.run(40);
    assert_eq!((tb.get("reset"), tb.get("flr_done")), (1, 0));
}
