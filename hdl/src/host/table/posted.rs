//! Look of a ring that the host fills and the card fetches from.

use crate::records::RingCtx;
use rust_hdl::prelude::*;

/// Where such a ring stands, and whose it is.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct PostedFacts {
    /// The queue exists and its number has no bits beyond the table.
    pub exists: Bit,
    /// It is the function's own.
    pub mine: Bit,
    /// producer != fetch.
    pub more: Bit,
    /// producer - fetch.
    pub pending: Bits<16>,
    /// index of the operation - fetch.
    pub ahead: Bits<16>,
    /// Bytes from `base` to slot `fetch`.
    pub offset: Bits<24>,
}

/// Facts of the row in Look.
#[derive(LogicBlock, Default)]
pub struct PostedLook {
    pub clock: Signal<In, Clock>,
    pub row: Signal<In, RingCtx>,
    /// Of the operation: who asks, and the producer index of a doorbell.
    pub asker: Signal<In, Bits<12>>,
    pub index: Signal<In, Bits<16>>,
    /// The queue's number has no bits beyond the table.
    pub inside: Signal<In, Bit>,
    /// Of the operation in Look.
    pub found: Signal<Out, PostedFacts>,
    /// Registered: of the operation in Act.
    pub facts: Signal<Out, PostedFacts>,
    known: DFF<PostedFacts>,
    slot_mask: Signal<Local, Bits<16>>,
    slot: Signal<Local, Bits<16>>,
    fetch: Signal<Local, Bits<16>>,
    now: Signal<Local, PostedFacts>,
}

impl Logic for PostedLook {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, known);
        self.fetch.next = self.row.val().fetch;
        self.slot_mask.next = bits::<16>(0xFFFF) << self.row.val().log_size;
        self.slot.next = self.fetch.val() & !self.slot_mask.val();
        self.now.next.exists = self.row.val().valid & self.inside.val();
        self.now.next.mine = self.row.val().function == self.asker.val();
        self.now.next.more = self.row.val().producer != self.fetch.val();
        self.now.next.pending = self.row.val().producer - self.fetch.val();
        self.now.next.ahead = self.index.val() - self.fetch.val();
        self.now.next.offset = (bit_cast::<24, 16>(self.slot.val()) << 6) << self.row.val().stride;
        self.found.next = self.now.val();
        self.known.d.next = self.now.val();
        self.facts.next = self.known.q.val();
    }
}
