//! Where a segment ends in its page, and where the page behind it begins.
use crate::codes::PAGE;
use crate::prim::sum::PlusOne;
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
        dff_setup!(self, clock, carried, turned, next);
        self.carried.d.next = self.carry.val();
        self.turned.d.next = self.carried.q.val();
        self.turns.next = self.turned.q.val();
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
