//! Reads of each slot that have not been answered. See README.md.

use crate::bus::MsgSink;
use crate::msg::PayDone;
use crate::prim::pack::Gather;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Of `S` = 2^`LS` slots.
#[derive(LogicBlock, BlockDefault)]
#[demand(S == 1 << LS, "the slots' numbers")]
pub struct Owed<const LS: usize, const S: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not while a read is in flight.
    pub reset: Signal<In, Bit>,
    /// A read goes out for this slot; `renews`: none of its chain has.
    pub sends: Signal<In, Bit>,
    pub renews: Signal<In, Bit>,
    pub slot: Signal<In, Bits<LS>>,
    pub s_done: MsgSink<PayDone>,
    /// Of this slot: all reads are answered; one has failed.
    pub of: Signal<In, Bits<LS>>,
    pub quiet: Signal<Out, Bit>,
    pub failed: Signal<Out, Bit>,
    owed: [DFF<Bits<10>>; S],
    faults: [DFF<Bit>; S],
    still: Gather<S>,
    spoilt: Gather<S>,
    #[init(std::array::from_fn(|i| Constant::new((i as u64).into())))]
    numbers: [Constant<Bits<LS>>; S],
    comes: Signal<Local, Bit>,
    whose: Signal<Local, Bits<8>>,
    answered: Signal<Local, Bits<LS>>,
}

#[kernel]
impl<const LS: usize, const S: usize> Logic for Owed<LS, S> {
    #[hdl_gen]
    fn update(&mut self) {
        self.s_done.ready.next = true;
        self.comes.next = self.s_done.valid.val();
        self.whose.next = self.s_done.data.val().slot;
        self.answered.next = self.whose.val().get_bits::<LS>(0);
        for i in 0..S {
            self.owed[i].clock.next = self.clock.val();
            self.faults[i].clock.next = self.clock.val();
            self.owed[i].d.next = self.owed[i].q.val();
            self.faults[i].d.next = self.faults[i].q.val();
            if self.sends.val() & (self.slot.val() == self.numbers[i].val()) {
                if !(self.comes.val() & (self.answered.val() == self.numbers[i].val())) {
                    self.owed[i].d.next = self.owed[i].q.val() + 1;
                }
            } else if self.comes.val() & (self.answered.val() == self.numbers[i].val()) {
                self.owed[i].d.next = self.owed[i].q.val() - 1;
            }
            if self.comes.val() & self.s_done.data.val().err & (self.answered.val() == self.numbers[i].val()) {
                self.faults[i].d.next = true;
            }
            if self.renews.val() & (self.slot.val() == self.numbers[i].val()) {
                self.faults[i].d.next = false;
            }
            if self.reset.val() {
                self.owed[i].d.next = bits::<10>(0);
                self.faults[i].d.next = false;
            }
            self.still.x[i].next = !self.owed[i].q.val().any();
            self.spoilt.x[i].next = self.faults[i].q.val();
        }
        self.quiet.next = self.still.y.val().get_bit(self.of.val().index());
        self.failed.next = self.spoilt.y.val().get_bit(self.of.val().index());
    }
}
