//! Whose frames are on their way from the egress: they come here in the order in which the egress has begun them.

use crate::prim::sized::SizedRam;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Address bits of the longest queue: frames of one beat of 64 bits fill the output FIFO of the egress, and some more are between there and here.
const MOST: usize = 12;

/// Functions of frames, in order. There are never more than it has places: twice as many as the output FIFO of the egress has beats.
#[derive(LogicBlock, BlockDefault)]
#[demand(2 * super::store::BYTES / K <= 1 << MOST)]
pub(in crate::switch) struct Whose<const K: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// A frame begins, of this function.
    pub begins: Signal<In, Bit>,
    pub sender: Signal<In, Bits<12>>,
    /// The first of them is here whole. It began some cycles ago.
    pub whole: Signal<In, Bit>,
    /// Whose that is.
    pub first: Signal<Out, Bits<6>>,
    #[init(SizedRam::new((2 * super::store::BYTES / K).ilog2() as usize))]
    mem: SizedRam<Bits<6>, MOST>,
    wptr: DFF<Bits<MOST>>,
    rptr: DFF<Bits<MOST>>,
    reads: Signal<Local, Bits<MOST>>,
}

#[kernel]
impl<const K: usize> Logic for Whose<K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, wptr, rptr);
        clock!(self, clock, mem);
        self.mem.write_en.next = self.begins.val();
        self.mem.write_addr.next = self.wptr.q.val();
        self.mem.write_data.next = self.sender.val().get_bits::<6>(0);
        if self.begins.val() {
            self.wptr.d.next = self.wptr.q.val() + 1;
        }
        self.reads.next = self.rptr.q.val();
        if self.whole.val() {
            self.reads.next = self.rptr.q.val() + 1;
        }
        self.rptr.d.next = self.reads.val();
        self.mem.read_addr.next = self.reads.val();
        self.first.next = self.mem.read_data.val();
        if self.reset.val() {
            self.wptr.d.next = bits::<MOST>(0);
            self.rptr.d.next = bits::<MOST>(0);
        }
    }
}
