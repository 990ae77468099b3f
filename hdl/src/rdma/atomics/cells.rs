//! Which 8 bytes operations are under way on.

use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// Up to `N` = 2^`LN` operations, which begin and end in the same order. Each is remembered by 12 bits folded from the address of its 8 bytes, so now and then
/// other bytes are taken for the same.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Cells<const N: usize, const LN: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; nothing is under way.
    pub reset: Signal<In, Bit>,
    pub iova: Signal<In, Bits<64>>,
    /// An operation on what may be the same 8 bytes is under way, or `N` are.
    pub busy: Signal<Out, Bit>,
    /// Pulses: one on the 8 bytes at `iova` begins; the oldest is over.
    pub begins: Signal<In, Bit>,
    pub ends: Signal<In, Bit>,
    /// Nothing under way.
    pub none: Signal<Out, Bit>,
    names: [DFF<Bits<12>>; N],
    valid: DFF<Bits<N>>,
    head: DFF<Bits<LN>>,
    tail: DFF<Bits<LN>>,
    name: Signal<Local, Bits<12>>,
    mark: Signal<Local, Bits<N>>,
    wipe: Signal<Local, Bits<N>>,
}

impl<const N: usize, const LN: usize> Logic for Cells<N, LN> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, valid, head, tail);
        self.name.next = self.iova.val().get_bits::<12>(3) ^ self.iova.val().get_bits::<12>(15) ^ self.iova.val().get_bits::<12>(27);
        self.mark.next = bits::<N>(0);
        self.wipe.next = bits::<N>(0);
        if self.begins.val() {
            self.mark.next = bits::<N>(1) << self.tail.q.val();
            self.tail.d.next = self.tail.q.val() + 1;
        }
        if self.ends.val() {
            self.wipe.next = bits::<N>(1) << self.head.q.val();
            self.head.d.next = self.head.q.val() + 1;
        }
        self.valid.d.next = (self.valid.q.val() | self.mark.val()) & !self.wipe.val();
        self.none.next = !self.valid.q.val().any();
        self.busy.next = self.valid.q.val().all();
        for i in 0..N {
            self.names[i].clock.next = self.clock.val();
            self.names[i].d.next = self.names[i].q.val();
            if self.mark.val().get_bit(i) {
                self.names[i].d.next = self.name.val();
            }
            if self.valid.q.val().get_bit(i) & (self.names[i].q.val() == self.name.val()) {
                self.busy.next = true;
            }
        }
        if self.reset.val() {
            self.valid.d.next = bits::<N>(0);
            self.head.d.next = bits::<LN>(0);
            self.tail.d.next = bits::<LN>(0);
        }
    }
}
