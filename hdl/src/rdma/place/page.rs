//! Where a segment ends in its page, and where the page behind it begins. Combinational.
use crate::codes::PAGE;
use crate::prim::sum::PlusOne;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// See the module. The number of the next page is a long sum, so it has an output of its own: the walk takes it a cycle after the rest.
#[derive(LogicBlock, Default)]
pub struct Page {
    pub va: Signal<In, Bits<64>>,
    /// Bytes of the segment, which does not go beyond the page.
    pub len: Signal<In, Bits<13>>,
    /// Bytes up to the end of the page.
    pub room: Signal<Out, Bits<13>>,
    /// The segment ends with the page.
    pub full: Signal<Out, Bit>,
    /// Behind the segment, or with `full` where its page begins.
    pub behind: Signal<Out, Bits<64>>,
    /// As far into the next page as `va` is in its own.
    pub next_page: Signal<Out, Bits<64>>,
    off: Signal<Local, Bits<12>>,
    stop: Signal<Local, Bits<13>>,
    base: Signal<Local, Bits<64>>,
    number: PlusOne<52>,
}

#[kernel]
impl Logic for Page {
    #[hdl_gen]
    fn update(&mut self) {
        self.off.next = self.va.val().get_bits::<12>(0);
        self.room.next = bits::<13>(PAGE) - bit_cast::<13, 12>(self.off.val());
        self.stop.next = bit_cast::<13, 12>(self.off.val()) + self.len.val();
        self.full.next = self.stop.val().get_bit(12);
        self.base.next = (self.va.val() >> 12) << 12;
        self.behind.next = self.base.val() | bit_cast::<64, 12>(self.stop.val().get_bits::<12>(0));
        self.number.a.next = self.va.val().get_bits::<52>(12);
        self.next_page.next = (bit_cast::<64, 52>(self.number.y.val()) << 12) | bit_cast::<64, 12>(self.off.val());
    }
}
