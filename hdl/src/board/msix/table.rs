//! The table as software sees it: one access at a time.

use crate::board::lite::{ReadSink, WriteSink};
use crate::prim::ram::Ram;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// 32 entries of four words (address low and high, data, mask bit) at 0, pending bits at 0x1000 (PCI Express base
/// specification, 7.7.2). Writes need all four strobes.
#[derive(LogicBlock, BlockDefault)]
pub struct Table {
    pub clock: Signal<In, Clock>,
    /// Masks all vectors; the entries stay.
    pub reset: Signal<In, Bit>,
    pub write: WriteSink<13>,
    pub read: ReadSink<13>,
    pub masks: Signal<Out, Bits<32>>,
    pub pending: Signal<In, Bits<32>>,
    /// A word for the one who sends messages.
    pub look: Signal<In, Bits<7>>,
    pub found: Signal<Out, Bits<32>>,
    /// The memory shows the word that is read.
    looked: DFF<Bit>,
    /// Mask bits, inverted: masked is what all are at first.
    unmasked: DFF<Bits<32>>,
    seen: Ram<Bits<32>, 7>,
    sent: Ram<Bits<32>, 7>,
    addr: Signal<Local, Bits<13>>,
    one: Signal<Local, Bits<32>>,
    entry: Signal<Local, Bit>,
    control: Signal<Local, Bit>,
    down: Signal<Local, Bits<32>>,
    whole: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Table {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, looked, unmasked);
        clock!(self, clock, seen, sent);
        self.masks.next = !self.unmasked.q.val();
        // A write has its effect in the cycle in which it is shown, unless a read has been begun.
        self.addr.next = self.read.addr.val();
        self.write.done.next = self.write.held.val() & !self.looked.q.val();
        self.write.resp.next = bits::<2>(0);
        if self.write.held.val() & !self.looked.q.val() {
            self.addr.next = self.write.addr.val();
        }
        self.looked.d.next = self.read.held.val() & !self.write.held.val() & !self.looked.q.val() & !self.reset.val();
        self.read.done.next = self.looked.q.val();
        self.read.resp.next = bits::<2>(0);
        self.entry.next = !self.addr.val().get_bits::<4>(9).any();
        self.control.next = self.addr.val().get_bits::<2>(2) == 3;
        self.one.next = bits::<32>(1) << self.addr.val().get_bits::<5>(4);
        self.down.next = self.unmasked.q.val() & self.one.val();
        self.whole.next = self.write.held.val() & !self.looked.q.val() & self.entry.val() & (self.write.strb.val() == 15);
        self.seen.write_addr.next = self.addr.val().get_bits::<7>(2);
        self.seen.write_data.next = self.write.data.val();
        self.seen.write_en.next = self.whole.val() & !self.control.val();
        self.seen.read_addr.next = self.addr.val().get_bits::<7>(2);
        self.sent.write_addr.next = self.addr.val().get_bits::<7>(2);
        self.sent.write_data.next = self.write.data.val();
        self.sent.write_en.next = self.whole.val() & !self.control.val();
        self.sent.read_addr.next = self.look.val();
        self.found.next = self.sent.read_data.val();
        if self.whole.val() & self.control.val() {
            self.unmasked.d.next = self.unmasked.q.val() | self.one.val();
            if self.write.data.val().get_bit(0) {
                self.unmasked.d.next = self.unmasked.q.val() & !self.one.val();
            }
        }
        self.read.data.next = bits::<32>(0);
        if self.entry.val() {
            self.read.data.next = self.seen.read_data.val();
            if self.control.val() {
                self.read.data.next = bits::<32>(1);
                if self.down.val().any() {
                    self.read.data.next = bits::<32>(0);
                }
            }
        } else if self.addr.val().get_bits::<11>(2) == 0x400 {
            self.read.data.next = self.pending.val();
        }
        if self.reset.val() {
            self.unmasked.d.next = bits::<32>(0);
        }
    }
}
