//! The decision against its model, and that frames past a block of any latency stay in order.
use super::{Bypass, LG_SILENCE};
use crate::tb::{Rng, Tb};
use std::collections::VecDeque;

/// The decision as a program.
#[derive(Default)]
pub(crate) struct Past {
    /// Whether the next beat goes past the block.
    pub(crate) by: bool,
    /// The next beat is not its frame's first.
    inside: bool,
    silence: u32,
}

impl Past {
    /// A cycle; see the ports of [`Bypass`]. `taken`: whether the beat that is taken is its frame's last.
    pub(crate) fn cycle(&mut self, may: bool, taken: Option<bool>, busy: bool) {
        let goes_on = taken.map_or(self.inside, |last| !last);
        let still = may && !busy && taken.is_none() && !self.inside;
        let silence = if !self.by && still { self.silence + 1 } else { 0 };
        self.by = if self.by { may || goes_on } else { silence == 1 << LG_SILENCE };
        self.silence = silence % (1 << LG_SILENCE);
        self.inside = goes_on;
    }
}

/// Frames of one to five beats through a block that keeps each beat for `latency` cycles, or past it: as (frame, past).
fn through(latency: u64, seed: u64) -> Vec<(u64, bool)> {
    let mut tb = Tb::with_seed("bypass", Bypass::default(), seed);
    let (mut rng, mut model) = (Rng::new(seed), Past::default());
    let (mut block, mut out) = (VecDeque::new(), Vec::new());
    let (mut frame, mut left, mut may, mut quiet) = (0, 0, true, 0);
    for now in 0..60_000 {
        if rng.percent(1) {
            may = !may;
        }
        // Traffic comes in stretches, with silence of any length in between.
        if left == 0 && quiet == 0 && rng.percent(10) {
            quiet = rng.below(3 << LG_SILENCE);
        }
        quiet = u64::saturating_sub(quiet, 1);
        let taken = (quiet == 0 && rng.percent(70)).then(|| {
            left = if left == 0 { rng.range(1, 5) } else { left } - 1;
            left == 0
        });
        let busy = block.front().is_some_and(|(at, _)| *at == now);
        let past = tb.get("past") == 1;
        assert_eq!((past, tb.get("first") == 1), (model.by, !model.inside), "cycle {now}");
        if let Some(last) = taken {
            if past && last {
                out.push((frame, true));
            } else if !past {
                block.push_back((now + latency, last.then_some(frame)));
            }
            frame += u64::from(last);
        }
        if busy {
            out.extend(block.pop_front().and_then(|(_, frame)| frame).map(|frame| (frame, false)));
        }
        [("may", may), ("taken", taken.is_some()), ("last", taken == Some(true)), ("busy", busy)].iter().for_each(|(port, level)| tb.set(port, (*level).into()));
        tb.cycle();
        model.cycle(may, taken, busy);
    }
    out
}

#[test]
fn frames_stay_in_order() {
    for (seed, latency) in [1, 18, (1 << LG_SILENCE) - 1].into_iter().enumerate() {
        let out = through(latency, seed as u64);
        assert!(out.windows(2).all(|two| two[0].0 + 1 == two[1].0), "none overtakes another");
        let past = out.iter().filter(|(_, past)| *past).count();
        assert!(past > 300 && out.len() - past > 300, "{past} of {}", out.len());
    }
}
