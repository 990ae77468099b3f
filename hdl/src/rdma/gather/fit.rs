//! Whether bytes lie within one entry and one page. Combinational.

use crate::codes::PAGE;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// `len` bytes from `va` on, where the entry has `rem` bytes left.
#[derive(LogicBlock, Default)]
pub struct Fit {
    pub va: Signal<In, Bits<64>>,
    pub rem: Signal<In, Bits<32>>,
    pub len: Signal<In, Bits<14>>,
    /// Bytes up to the end of the page.
    pub page: Signal<Out, Bits<13>>,
    pub in_entry: Signal<Out, Bit>,
    pub in_page: Signal<Out, Bit>,
    /// The rest of the entry lies within the page.
    pub entry_in_page: Signal<Out, Bit>,
    /// The entry has more than any packet has, or so many bytes.
    long: Signal<Local, Bit>,
    low: Signal<Local, Bits<14>>,
    /// Where `va` lies in its page; the bytes' end and the entry's as far as `low` says, counted from the page's begin.
    low_va: Signal<Local, Bits<12>>,
    reach: Signal<Local, Bits<14>>,
    entry_reach: Signal<Local, Bits<15>>,
}

#[kernel]
impl Logic for Fit {
    #[hdl_gen]
    fn update(&mut self) {
        self.low_va.next = self.va.val().get_bits::<12>(0);
        self.page.next = bits::<13>(PAGE) - bit_cast::<13, 12>(self.low_va.val());
        self.long.next = self.rem.val().get_bits::<18>(14).any();
        self.low.next = self.rem.val().get_bits::<14>(0);
        self.in_entry.next = self.long.val() | (self.len.val() <= self.low.val());
        // One carry chain and a look for zero: with the bytes that are left in the page there would be two chains.
        self.reach.next = bit_cast::<14, 12>(self.low_va.val()) + self.len.val();
        self.in_page.next = !self.reach.val().get_bits::<2>(12).any() | (self.reach.val() == PAGE);
        self.entry_reach.next = bit_cast::<15, 12>(self.low_va.val()) + bit_cast::<15, 14>(self.low.val());
        self.entry_in_page.next = !self.long.val() & (!self.entry_reach.val().get_bits::<3>(12).any() | (self.entry_reach.val() == PAGE));
    }
}
