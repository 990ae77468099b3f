//! Places of the pool that are free: first those that were never used, then the one that has been free for longest.
use crate::prim::ram::Ram;
use crate::uet::types::LINE;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

const FIRST: u64 = 1;

/// Places 1 to `2^LP` - 1.
#[derive(LogicBlock, BlockDefault)]
#[demand(LP >= 2 && LP <= LINE + 1)]
pub struct Places<const LP: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; all places are free, and none was ever used.
    pub reset: Signal<In, Bit>,
    /// There is one, and which; steady two cycles after the last `take` or `give`.
    pub any: Signal<Out, Bit>,
    pub place: Signal<Out, Bits<LP>>,
    /// It is taken.
    pub take: Signal<In, Bit>,
    /// `given` comes back. Not in the cycle of a `take`.
    pub give: Signal<In, Bit>,
    pub given: Signal<In, Bits<LP>>,
    back: Ram<Bits<LP>, LP>,
    /// The next that was never used; 0: all were.
    fresh: DFF<Bits<LP>>,
    head: DFF<Bits<LP>>,
    tail: DFF<Bits<LP>>,
    used: Signal<Local, Bit>,
}

#[kernel]
impl<const LP: usize> Logic for Places<LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, fresh, head, tail);
        clock!(self, clock, back);
        self.used.next = !self.fresh.q.val().any();
        self.back.read_addr.next = self.tail.q.val();
        self.back.write_addr.next = self.head.q.val();
        self.back.write_data.next = self.given.val();
        self.back.write_en.next = self.give.val();
        self.any.next = !self.used.val() | !(self.head.q.val() == self.tail.q.val());
        self.place.next = self.fresh.q.val();
        if self.used.val() {
            self.place.next = self.back.read_data.val();
        }
        if self.take.val() {
            if self.used.val() {
                self.tail.d.next = self.tail.q.val() + 1;
            } else {
                self.fresh.d.next = self.fresh.q.val() + 1;
            }
        }
        if self.give.val() {
            self.head.d.next = self.head.q.val() + 1;
        }
        if self.reset.val() {
            self.fresh.d.next = bits::<LP>(FIRST);
            self.head.d.next = bits::<LP>(0);
            self.tail.d.next = bits::<LP>(0);
        }
    }
}
