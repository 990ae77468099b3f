//! Look of a ring that the card writes and the host reads.

use super::INDEX;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Where such a ring stands.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct RingFacts {
    /// producer - consumer.
    pub unread: Bits<16>,
    /// producer - index of the doorbell: what is unread once it is the consumer.
    pub unread_then: Bits<16>,
    /// Number of the next entry, below the size.
    pub slot: Bits<16>,
    /// The owner bit of that entry: inverse of the wrap parity.
    pub phase: Bit,
}

/// Facts of the row in Look, registered: of the one in Act.
#[derive(LogicBlock, Default)]
pub struct RingLook {
    pub clock: Signal<In, Clock>,
    pub producer: Signal<In, Bits<16>>,
    pub consumer: Signal<In, Bits<16>>,
    pub log_size: Signal<In, Bits<4>>,
    /// Consumer index of a doorbell.
    pub index: Signal<In, Bits<16>>,
    pub facts: Signal<Out, RingFacts>,
    known: DFF<RingFacts>,
    found: Signal<Local, RingFacts>,
    slot_mask: Signal<Local, Bits<16>>,
    wraps: Signal<Local, Bits<16>>,
}

#[kernel]
impl Logic for RingLook {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, known);
        self.slot_mask.next = bits::<16>(INDEX) << self.log_size.val();
        self.wraps.next = self.producer.val() >> self.log_size.val();
        self.found.next.unread = self.producer.val() - self.consumer.val();
        self.found.next.unread_then = self.producer.val() - self.index.val();
        self.found.next.slot = self.producer.val() & !self.slot_mask.val();
        self.found.next.phase = !self.wraps.val().get_bit(0);
        self.known.d.next = self.found.val();
        self.facts.next = self.known.q.val();
    }
}
