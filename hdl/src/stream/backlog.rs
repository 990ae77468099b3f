//! How many of something wait, counted a cycle late.

use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Counts what came and went, a cycle behind both, so that signals which come late in their cycle need not pass an adder.
#[derive(LogicBlock, Default)]
pub struct Backlog<const N: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// One more, one less in this cycle.
    pub came: Signal<In, Bit>,
    pub went: Signal<In, Bit>,
    /// What waited at the end of the cycle before the last.
    pub count: Signal<Out, Bits<N>>,
    /// None at the end of the last cycle: true at once when something has come, a cycle late when the last has gone.
    pub none: Signal<Out, Bit>,
    waiting: DFF<Bits<N>>,
    more: DFF<Bit>,
    less: DFF<Bit>,
}

#[kernel]
impl<const N: usize> Logic for Backlog<N> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, waiting, more, less);
        self.more.d.next = self.came.val() & !self.went.val();
        self.less.d.next = self.went.val() & !self.came.val();
        if self.more.q.val() {
            self.waiting.d.next = self.waiting.q.val() + 1;
        }
        if self.less.q.val() {
            self.waiting.d.next = self.waiting.q.val() - 1;
        }
        self.count.next = self.waiting.q.val();
        self.none.next = !self.waiting.q.val().any() & !self.more.q.val();
        if self.reset.val() {
            self.waiting.d.next = bits::<N>(0);
            self.more.d.next = false;
            self.less.d.next = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tb::Tb;

    #[test]
    fn counts_a_cycle_late() {
        let mut tb = Tb::new("backlog", Backlog::<5>::default());
        let (mut now, mut before) = (0u64, 0u64);
        for _ in 0..2000 {
            let came = now < 16 && tb.rng().percent(50);
            let went = now > 0 && tb.rng().percent(50);
            tb.set("came", came.into());
            tb.set("went", went.into());
            tb.model().settle();
            assert_eq!(tb.get("count"), before);
            assert!(tb.get("none") == 0 || now == 0, "something waits");
            assert!(tb.get("none") == 1 || now + before > 0, "nothing waits");
            tb.cycle();
            (before, now) = (now, now + u64::from(came) - u64::from(went));
        }
    }
}
