//! Pages on which atomics are under way: payload stays away from them, and they begin when what is in front has landed. See README.md.

use crate::stream::{MsgFifo, Names};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Up to `N` = 2^`LN` holds, which begin and end in the order in which they came. Whoever holds a page may read and write it from `clear` on until `ends`.
#[derive(LogicBlock, BlockDefault)]
pub struct Guard<const N: usize, const LN: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: hold `page` from now on.
    pub hold: Signal<In, Bit>,
    pub page: Signal<In, Bits<12>>,
    /// The oldest hold that has not begun may: payload issued in front of it has been answered. `starts`: it does.
    pub clear: Signal<Out, Bit>,
    pub starts: Signal<In, Bit>,
    /// Pulse: the oldest hold is over.
    pub ends: Signal<In, Bit>,
    /// Is a page held, in one half of the holds, in the other? Of a payload command that is coming and of the one that waits.
    pub next_page: Signal<In, Bits<12>>,
    pub next_below: Signal<Out, Bit>,
    pub next_above: Signal<Out, Bit>,
    pub job_page: Signal<In, Bits<12>>,
    pub job_below: Signal<Out, Bit>,
    pub job_above: Signal<Out, Bit>,
    /// Pulses: a payload command is issued, is answered.
    pub issued: Signal<In, Bit>,
    pub answered: Signal<In, Bit>,
    /// 0: of the command that is coming, 1: of the one that waits.
    pages: Names<N, LN, 2>,
    /// A hold that came one, two, three cycles ago: so long a command that has not seen it may still be issued.
    came: [DFF<Bit>; 3],
    /// Payload commands issued and answered so far. Whoever waits at the head of `marks` waits for far less than half of what they count.
    out: DFF<Bits<24>>,
    back: DFF<Bits<24>>,
    /// `out` as each hold found it.
    marks: MsgFifo<Bits<24>, LN>,
    ok: DFF<Bit>,
    /// A hold has begun in the last cycle: that comes late in a cycle.
    begun: DFF<Bit>,
    left: Signal<Local, Bits<24>>,
}

#[kernel]
impl<const N: usize, const LN: usize> Logic for Guard<N, LN> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, out, back, ok, begun);
        clock!(self, clock, marks, pages);
        self.marks.reset.next = self.reset.val();
        self.pages.reset.next = self.reset.val();
        self.pages.begins.next = self.hold.val();
        self.pages.entry.next = self.page.val();
        self.pages.ends.next = self.ends.val();
        self.pages.look[0].next = self.next_page.val();
        self.pages.look[1].next = self.job_page.val();
        self.next_below.next = self.pages.below[0].val();
        self.next_above.next = self.pages.above[0].val();
        self.job_below.next = self.pages.below[1].val();
        self.job_above.next = self.pages.above[1].val();
        for i in 0..3 {
            self.came[i].clock.next = self.clock.val();
        }
        self.came[0].d.next = self.hold.val();
        self.came[1].d.next = self.came[0].q.val();
        self.came[2].d.next = self.came[1].q.val();
        if self.issued.val() {
            self.out.d.next = self.out.q.val() + 1;
        }
        if self.answered.val() {
            self.back.d.next = self.back.q.val() + 1;
        }
        // There is room: no more than `N` are held.
        self.marks.s.valid.next = self.came[2].q.val();
        self.marks.s.data.next = self.out.q.val();
        self.begun.d.next = self.starts.val();
        self.marks.m.ready.next = self.begun.q.val();
        self.left.next = self.back.q.val() - self.marks.m.data.val();
        self.ok.d.next = self.marks.m.valid.val() & !self.left.val().get_bit(23) & !self.begun.q.val() & !self.starts.val();
        self.clear.next = self.ok.q.val();
        if self.reset.val() {
            self.out.d.next = bits::<24>(0);
            self.back.d.next = bits::<24>(0);
            self.ok.d.next = false;
            self.begun.d.next = false;
            for i in 0..3 {
                self.came[i].d.next = false;
            }
        }
    }
}
