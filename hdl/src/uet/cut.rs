//! A packet's payload is at most two pieces of host memory: cut where a page of 4 KiB ends.
use super::types::PAYLOAD;
use crate::codes::PAGE;
use crate::prim::sum::PlusOne;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bits of an address within a page.
const OFFSET: usize = PAGE.ilog2() as usize;
const SHIFT: u64 = OFFSET as u64;
/// Bits of a page's number, and of where a piece ends.
const NUMBER: usize = 64 - OFFSET;
const END: usize = PAYLOAD + 1;

/// The piece that begins at `va`, of `left` bytes that are there. Combinational.
#[derive(LogicBlock, BlockDefault)]
#[demand(PAGE.is_power_of_two())]
pub struct Cut {
    pub va: Signal<In, Bits<64>>,
    pub left: Signal<In, Bits<PAYLOAD>>,
    /// Bytes of the piece, and whether nothing is left behind it; else how much is, and where that begins.
    pub len: Signal<Out, Bits<13>>,
    pub last: Signal<Out, Bit>,
    pub rest: Signal<Out, Bits<PAYLOAD>>,
    pub after: Signal<Out, Bits<64>>,
    address: Signal<Local, Bits<64>>,
    /// The offset in the page.
    at: Signal<Local, Bits<PAYLOAD>>,
    room: Signal<Local, Bits<PAYLOAD>>,
    /// Where the piece would end, counted from the beginning of its page.
    until: Signal<Local, Bits<END>>,
    over: Signal<Local, Bits<END>>,
    ends: Signal<Local, Bit>,
    following: PlusOne<NUMBER>,
    #[init(Constant::new(PAGE.to_bits()))]
    page: Constant<Bits<PAYLOAD>>,
    #[init(Constant::new(PAGE.to_bits()))]
    whole: Constant<Bits<END>>,
}

#[kernel]
impl Logic for Cut {
    #[hdl_gen]
    fn update(&mut self) {
        self.address.next = self.va.val();
        self.at.next = bit_cast::<PAYLOAD, OFFSET>(self.address.val().get_bits::<OFFSET>(0));
        self.room.next = self.page.val() - self.at.val();
        self.until.next = bit_cast::<END, PAYLOAD>(self.left.val()) + bit_cast::<END, PAYLOAD>(self.at.val());
        self.ends.next = self.until.val() <= self.whole.val();
        self.len.next = self.room.val().get_bits::<13>(0);
        if self.ends.val() {
            self.len.next = self.left.val().get_bits::<13>(0);
        }
        self.last.next = self.ends.val();
        // Of a piece that is not the last: it ends with its page.
        self.over.next = self.until.val() - self.whole.val();
        self.rest.next = self.over.val().get_bits::<PAYLOAD>(0);
        self.following.a.next = self.address.val().get_bits::<NUMBER>(OFFSET);
        self.after.next = bit_cast::<64, NUMBER>(self.following.y.val()) << SHIFT;
    }
}
