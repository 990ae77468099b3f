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
    left: Signal<Local, Bits<13>>,
    /// The entry has more than any packet has, or so many bytes.
    long: Signal<Local, Bit>,
    low: Signal<Local, Bits<14>>,
}

#[kernel]
impl Logic for Fit {
    #[hdl_gen]
    fn update(&mut self) {
        self.left.next = bits::<13>(PAGE) - bit_cast::<13, 12>(self.va.val().get_bits::<12>(0));
        self.page.next = self.left.val();
        self.long.next = self.rem.val().get_bits::<18>(14).any();
        self.low.next = self.rem.val().get_bits::<14>(0);
        self.in_entry.next = self.long.val() | (self.len.val() <= self.low.val());
        self.in_page.next = self.len.val() <= bit_cast::<14, 13>(self.left.val());
        self.entry_in_page.next = !self.long.val() & (self.low.val() <= bit_cast::<14, 13>(self.left.val()));
    }
}
