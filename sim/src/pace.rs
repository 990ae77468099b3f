//! Whether two cards run side by side or one after the other: whatever was faster when it was last tried.
//!
//! Side by side is nearly twice as fast on two idle cores, and slower than one after the other when something else has them.

use std::time::Duration;

/// Cycles of a trial, long against what a scheduler gives a thread.
const TRIAL: u32 = 1024;
/// Cycles from one pair of trials to the next: so many at first, doubled whenever the choice was confirmed, up to so many.
const SHORTEST: u32 = 8 * TRIAL;
const LONGEST: u32 = 256 * TRIAL;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// One after the other is measured.
    Apart,
    /// Side by side is measured.
    Together,
    /// The faster one.
    Settled,
}

/// Chooses for each cycle, and is told how long the cycles of trials took.
#[derive(Debug)]
pub(crate) struct Pace {
    phase: Phase,
    /// Cycles that are left of it.
    left: u32,
    apart: Duration,
    together: Duration,
    /// What is settled: side by side.
    choice: bool,
    interval: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { phase: Phase::Apart, left: TRIAL, apart: Duration::ZERO, together: Duration::ZERO, choice: false, interval: SHORTEST }
    }
}

impl Pace {
    /// The next cycle is run side by side.
    pub fn together(&self) -> bool {
        match self.phase {
            Phase::Apart => false,
            Phase::Together => true,
            Phase::Settled => self.choice,
        }
    }
    /// The next cycle's time is wanted.
    pub fn measures(&self) -> bool {
        self.phase != Phase::Settled
    }
    /// A cycle is over, and took `time` if it was measured.
    pub fn cycle(&mut self, time: Duration) {
        match self.phase {
            Phase::Apart => self.apart += time,
            Phase::Together => self.together += time,
            Phase::Settled => {}
        }
        self.left -= 1;
        if self.left > 0 {
            return;
        }
        (self.phase, self.left) = match self.phase {
            Phase::Apart => (Phase::Together, TRIAL),
            Phase::Together => {
                let choice = self.together < self.apart;
                self.interval = if choice == self.choice { (2 * self.interval).min(LONGEST) } else { SHORTEST };
                self.choice = choice;
                (Phase::Settled, self.interval)
            }
            Phase::Settled => {
                (self.apart, self.together) = (Duration::ZERO, Duration::ZERO);
                (Phase::Apart, TRIAL)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cycles run side by side, of `cycles`, when they take so many nanoseconds.
    fn run(pace: &mut Pace, cycles: u32, apart: u64, together: u64) -> u32 {
        let mut beside = 0;
        for _ in 0..cycles {
            let chosen = pace.together();
            beside += u32::from(chosen);
            let time = if pace.measures() { Duration::from_nanos(if chosen { together } else { apart }) } else { Duration::ZERO };
            pace.cycle(time);
        }
        beside
    }

    #[test]
    fn the_faster_one_is_taken() {
        let mut pace = Pace::default();
        let beside = run(&mut pace, 1_000_000, 20, 11);
        assert!(beside > 960_000, "{beside} of 1,000,000 cycles side by side");
        let mut pace = Pace::default();
        let beside = run(&mut pace, 1_000_000, 20, 21);
        assert!(beside < 20_000, "{beside} of 1,000,000 cycles side by side");
    }

    #[test]
    fn it_changes_with_the_machine() {
        let mut pace = Pace::default();
        run(&mut pace, 100_000, 20, 11);
        assert!(pace.choice);
        run(&mut pace, 2 * LONGEST, 20, 40);
        assert!(!pace.choice);
    }
}
