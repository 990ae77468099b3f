//! Seals of data frames wait for the inline bytes they speak for.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::SlotSeal;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Register slice of two entries. Each seal waits for the inline writes that were under way when it came, and for no later ones: whoever writes without end
/// holds nobody's seals back.
#[derive(LogicBlock, Default)]
pub(super) struct SealQueue {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<SlotSeal>,
    pub m: MsgSrc<SlotSeal>,
    /// Inline writes taken before this cycle that are not in the buffer; pulse: one of them goes in.
    pub under_way: Signal<In, Bits<3>>,
    pub written: Signal<In, Bit>,
    first: DFF<SlotSeal>,
    first_valid: DFF<Bit>,
    first_waits: DFF<Bits<3>>,
    second: DFF<SlotSeal>,
    second_valid: DFF<Bit>,
    second_waits: DFF<Bits<3>>,
    came: Signal<Local, Bits<3>>,
    ahead: Signal<Local, Bits<3>>,
    behind: Signal<Local, Bits<3>>,
    ripe: Signal<Local, Bit>,
    go: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
}

#[kernel]
impl Logic for SealQueue {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, first, first_valid, first_waits, second, second_valid, second_waits);
        self.ripe.next = !self.first_waits.q.val().any();
        self.m.data.next = self.first.q.val();
        self.m.valid.next = self.first_valid.q.val() & self.ripe.val();
        self.s.ready.next = !self.second_valid.q.val();
        self.go.next = (self.m.ready.val() & self.ripe.val()) | !self.first_valid.q.val();
        self.take.next = self.s.valid.val() & !self.second_valid.q.val();

        // What is left to wait for behind this cycle.
        self.came.next = self.under_way.val();
        self.ahead.next = self.first_waits.q.val();
        self.behind.next = self.second_waits.q.val();
        if self.written.val() {
            self.came.next = self.under_way.val() - 1;
            if self.first_waits.q.val().any() {
                self.ahead.next = self.first_waits.q.val() - 1;
            }
            if self.second_waits.q.val().any() {
                self.behind.next = self.second_waits.q.val() - 1;
            }
        }
        self.first_waits.d.next = self.ahead.val();
        self.second_waits.d.next = self.behind.val();
        if self.go.val() {
            self.first_valid.d.next = self.take.val() | self.second_valid.q.val();
            self.second_valid.d.next = false;
            self.first.d.next = self.s.data.val();
            self.first_waits.d.next = self.came.val();
            if self.second_valid.q.val() {
                self.first.d.next = self.second.q.val();
                self.first_waits.d.next = self.behind.val();
            }
        } else if self.take.val() {
            self.second_valid.d.next = true;
        }
        if !self.second_valid.q.val() {
            self.second.d.next = self.s.data.val();
            self.second_waits.d.next = self.came.val();
        }
        if self.reset.val() {
            self.first_valid.d.next = false;
            self.second_valid.d.next = false;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::SealQueue;
    use crate::msg::SlotSeal;
    use crate::tb::{Fields, Tb};
    use std::collections::VecDeque;

    /// Its Verilog, for the list of mutants.
    pub(crate) fn verilog() -> String {
        crate::emit::emit("seal_queue", SealQueue::default()).unwrap()
    }

    /// A seal is offered in exactly the cycles in which it is the oldest and all inline writes that were under way when it came have gone in, while others go
    /// on coming.
    #[test]
    fn a_seal_waits_for_what_was_under_way_when_it_came() {
        let seal = Fields::of::<SlotSeal>();
        for (seed, stall) in [(1, 0), (2, 50), (3, 90)] {
            let mut tb = Tb::with_seed("seal_queue", SealQueue::default(), seed);
            let (source, sink) = (tb.source("s", stall), tb.sink("m", 90 - stall));
            let (mut began, mut ended) = (0u64, 0u64);
            // The slots of the seals inside, and how many writes must have gone in.
            let mut inside: VecDeque<(u128, u64)> = VecDeque::new();
            let (mut count, mut gone, mut moved_up_and_waited) = (0u128, 0, 0);
            while gone < 400 {
                assert!(tb.cycles() < 40_000, "{gone} of 400");
                if source.pending() == 0 {
                    source.push(seal.pack(&[("slot", count % 128)]));
                    count += 1;
                }
                let under_way = began - ended;
                let written = under_way > 0 && tb.rng().below(3) == 0;
                tb.set("under_way", under_way);
                tb.set("written", written.into());
                let head = inside.front().copied();
                tb.begin();
                let ripe = head.is_some_and(|(_, target)| ended >= target);
                assert_eq!(tb.get("m$valid"), u64::from(ripe), "cycle {}: {inside:?}, {ended} ended", tb.cycles());
                let before = (source.pending() == 0, sink.len());
                tb.end();
                ended += u64::from(written);
                if sink.len() > before.1 {
                    inside.pop_front();
                    gone += 1;
                    assert_eq!(Some(seal.get(&sink.pop().unwrap(), "slot")), head.map(|h| h.0));
                    moved_up_and_waited += u64::from(inside.front().is_some_and(|next| next.1 > ended));
                }
                if source.pending() == 0 && !before.0 {
                    inside.push_back(((count - 1) % 128, began));
                }
                if began - ended < 6 && tb.rng().below(4) == 0 {
                    began += 1;
                }
            }
            assert!(moved_up_and_waited > 10 || stall == 90, "{moved_up_and_waited}");
        }
    }
}
