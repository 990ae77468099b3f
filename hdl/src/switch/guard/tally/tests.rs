//! Counters whose lower part is so short that it carries often.
use super::Tally;
use crate::tb::Tb;

#[test]
fn nothing_is_lost_when_a_counter_carries() {
    let mut tb = Tb::new("guard_tally", Tally::<2, 3, 61>::default());
    let mut counts = [0u64; 4];
    for _ in 0..3_000 {
        let (valid, which) = (tb.rng().percent(80), tb.rng().below(4) as usize);
        tb.set("valid", valid.into());
        tb.set("which", which as u64);
        tb.cycle();
        counts[which] += u64::from(valid);
    }
    tb.set("valid", 0);
    tb.cycle();
    for (n, count) in counts.into_iter().enumerate() {
        tb.set("asked", n as u64);
        tb.cycle();
        assert_eq!(tb.get("count"), count);
    }
}
