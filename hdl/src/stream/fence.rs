//! Waits until what is inside a part of the card has left it, while more comes in.

use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Counts what came and has not gone, in order, at most 2^`N` - 1. After `start`, `passed` pulses once everything has left that had come by then.
#[derive(LogicBlock, Default)]
pub struct Fence<const N: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// One more, one less in this cycle.
    pub came: Signal<In, Bit>,
    pub went: Signal<In, Bit>,
    /// Pulse; the next one only after `passed`. What comes in this cycle counts as being inside.
    pub start: Signal<In, Bit>,
    /// Pulse, at the earliest two cycles after `start`.
    pub passed: Signal<Out, Bit>,
    inside: DFF<Bits<N>>,
    /// Of those inside, how many had come when it was started.
    old: DFF<Bits<N>>,
    /// It was started in the cycle before: what is inside then is counted from a register, since `came` is late in many owners.
    started: DFF<Bit>,
    waits: DFF<Bit>,
    then: Signal<Local, Bits<N>>,
}

#[kernel]
impl<const N: usize> Logic for Fence<N> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, inside, old, started, waits);
        if self.came.val() & !self.went.val() {
            self.inside.d.next = self.inside.q.val() + 1;
        }
        if self.went.val() & !self.came.val() {
            self.inside.d.next = self.inside.q.val() - 1;
        }
        self.passed.next = self.waits.q.val() & !self.old.q.val().any();
        if self.passed.val() {
            self.waits.d.next = false;
        }
        self.started.d.next = self.start.val();
        self.then.next = self.old.q.val();
        if self.started.q.val() {
            self.then.next = self.inside.q.val();
            self.waits.d.next = true;
        }
        self.old.d.next = self.then.val();
        if self.went.val() & self.then.val().any() {
            self.old.d.next = self.then.val() - 1;
        }
        if self.reset.val() {
            self.inside.d.next = bits::<N>(0);
            self.old.d.next = bits::<N>(0);
            self.started.d.next = false;
            self.waits.d.next = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tb::Tb;

    #[test]
    fn passes_when_the_last_of_the_old_has_left() {
        let mut tb = Tb::new("fence", Fence::<5>::default());
        let (mut came, mut gone) = (0u64, 0u64);
        // What had come at the start, while one is waited for.
        let mut goal = None;
        // It was started in the cycle before.
        let mut fresh = false;
        let mut passes = 0;
        for _ in 0..5000 {
            let comes = came - gone < 16 && tb.rng().percent(60);
            let goes = came > gone && tb.rng().percent(50);
            let starts = goal.is_none() && tb.rng().percent(10);
            tb.set("came", comes.into());
            tb.set("went", goes.into());
            tb.set("start", starts.into());
            tb.model().settle();
            let passed = tb.get("passed") == 1;
            assert_eq!(passed, !fresh && goal.is_some_and(|g| gone >= g), "{goal:?} of {came}, {gone} gone");
            if passed {
                (goal, passes) = (None, passes + 1);
            }
            came += u64::from(comes);
            fresh = starts;
            if starts {
                goal = Some(came);
            }
            tb.cycle();
            gone += u64::from(goes);
        }
        assert!(passes > 100, "{passes} passes");
    }
}
