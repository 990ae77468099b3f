//! A packet's payload is at most two pieces of host memory: cut where a page of 4 KiB ends.
use super::types::PAYLOAD;
use crate::codes::PAGE;
use crate::prim::sum::Sum;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bits of an address within a page.
const OFFSET: usize = PAGE.ilog2() as usize;

/// The piece that begins at `va`, of `left` bytes that are there. Combinational.
#[derive(LogicBlock, BlockDefault)]
#[demand(PAGE.is_power_of_two())]
pub struct Cut {
    pub va: Signal<In, Bits<64>>,
    pub left: Signal<In, Bits<PAYLOAD>>,
    /// Bytes of the piece; nothing is left behind it; what is, and where that begins.
    pub len: Signal<Out, Bits<13>>,
    pub last: Signal<Out, Bit>,
    pub rest: Signal<Out, Bits<PAYLOAD>>,
    pub after: Signal<Out, Bits<64>>,
    address: Signal<Local, Bits<64>>,
    room: Signal<Local, Bits<PAYLOAD>>,
    bytes: Signal<Local, Bits<PAYLOAD>>,
    ends: Signal<Local, Bit>,
    sum: Sum<64>,
    #[init(Constant::new(PAGE.to_bits()))]
    page: Constant<Bits<PAYLOAD>>,
}

#[kernel]
impl Logic for Cut {
    #[hdl_gen]
    fn update(&mut self) {
        self.address.next = self.va.val();
        self.room.next = self.page.val() - bit_cast::<PAYLOAD, OFFSET>(self.address.val().get_bits::<OFFSET>(0));
        self.ends.next = self.left.val() <= self.room.val();
        self.bytes.next = self.room.val();
        if self.ends.val() {
            self.bytes.next = self.left.val();
        }
        self.last.next = self.ends.val();
        self.len.next = self.bytes.val().get_bits::<13>(0);
        self.rest.next = self.left.val() - self.bytes.val();
        self.sum.a.next = self.va.val();
        self.sum.b.next = bit_cast::<64, PAYLOAD>(self.bytes.val());
        self.after.next = self.sum.y.val();
    }
}
