//! Where a segment ends in its page, and where the page behind it begins.
use crate::codes::PAGE;
use crate::prim::sum::{Diff, PlusOne};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// See the module. The number of the next page is a long sum, so it comes later than the rest.
#[derive(LogicBlock, Default)]
pub struct Page {
    pub clock: Signal<In, Clock>,
    pub va: Signal<In, Bits<64>>,
    /// Bytes of the segment, which does not go beyond the page.
    pub len: Signal<In, Bits<13>>,
    /// Bytes up to the end of the page.
    pub room: Signal<Out, Bits<13>>,
    /// The segment ends with the page.
    pub full: Signal<Out, Bit>,
    /// Behind the segment, or with `full` where its page begins.
    pub behind: Signal<Out, Bits<64>>,
    /// Pulse: `va` will be where the next page is to be taken for it. In the second cycle behind that (`turns`) `next_page` is there, as far into its page as `va` was in its own.
    pub carry: Signal<In, Bit>,
    pub turns: Signal<Out, Bit>,
    pub next_page: Signal<Out, Bits<64>>,
    /// Bytes to be skipped, and those left of the entry. Where the rest lies and how much it is, as of the cycle before.
    pub skip: Signal<In, Bits<32>>,
    pub left: Signal<In, Bits<32>>,
    pub past: Signal<Out, Bits<64>>,
    pub beyond: Signal<Out, Bits<32>>,
    /// The lower half of `past` with its carry, the upper half as it was, and with the carry.
    low: DFF<Bits<33>>,
    high: DFF<Bits<32>>,
    above: DFF<Bits<32>>,
    rest: DFF<Bits<32>>,
    behind_skip: Diff<32>,
    carried: DFF<Bit>,
    turned: DFF<Bit>,
    next: DFF<Bits<52>>,
    off: Signal<Local, Bits<12>>,
    stop: Signal<Local, Bits<13>>,
    base: Signal<Local, Bits<64>>,
    number: PlusOne<52>,
}

#[kernel]
impl Logic for Page {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, carried, turned, next, low, high, above, rest);
        self.carried.d.next = self.carry.val();
        self.turned.d.next = self.carried.q.val();
        self.turns.next = self.turned.q.val();
        self.low.d.next = bit_cast::<33, 32>(self.va.val().get_bits::<32>(0)) + bit_cast::<33, 32>(self.skip.val());
        self.high.d.next = self.va.val().get_bits::<32>(32);
        self.above.d.next = self.va.val().get_bits::<32>(32) + 1;
        self.past.next = (bit_cast::<64, 32>(self.high.q.val()) << 32) | bit_cast::<64, 32>(self.low.q.val().get_bits::<32>(0));
        if self.low.q.val().get_bit(32) {
            self.past.next = (bit_cast::<64, 32>(self.above.q.val()) << 32) | bit_cast::<64, 32>(self.low.q.val().get_bits::<32>(0));
        }
        self.behind_skip.a.next = self.left.val();
        self.behind_skip.b.next = self.skip.val();
        self.rest.d.next = self.behind_skip.y.val();
        self.beyond.next = self.rest.q.val();
        self.off.next = self.va.val().get_bits::<12>(0);
        self.room.next = bits::<13>(PAGE) - bit_cast::<13, 12>(self.off.val());
        self.stop.next = bit_cast::<13, 12>(self.off.val()) + self.len.val();
        self.full.next = self.stop.val().get_bit(12);
        self.base.next = (self.va.val() >> 12) << 12;
        self.behind.next = self.base.val() | bit_cast::<64, 12>(self.stop.val().get_bits::<12>(0));
        self.number.a.next = self.va.val().get_bits::<52>(12);
        self.next.d.next = self.number.y.val();
        self.next_page.next = (bit_cast::<64, 52>(self.next.q.val()) << 12) | bit_cast::<64, 12>(self.off.val());
    }
}
