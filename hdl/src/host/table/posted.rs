//! Look of a ring that the host fills and the card fetches from.

use super::INDEX;
use crate::records::RingCtx;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Bytes of the smallest slot.
const SLOT: u64 = 64;

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
    /// Bytes from `base` to slot `fetch`, or to the one asked for `again`.
    pub offset: Bits<25>,
}

/// Facts of the row in Look.
#[derive(LogicBlock, Default)]
pub struct PostedLook {
    pub clock: Signal<In, Clock>,
    pub row: Signal<In, RingCtx>,
    /// Of the operation: who asks, and the producer index of a doorbell.
    pub asker: Signal<In, Bits<12>>,
    pub index: Signal<In, Bits<16>>,
    /// Slot `index` is wanted, not the next one.
    pub again: Signal<In, Bit>,
    /// Of a shared receive queue it is a copy behind the ring.
    pub copy: Signal<In, Bit>,
    /// The queue's number has no bits beyond the table.
    pub inside: Signal<In, Bit>,
    /// Of the operation in Look.
    pub found: Signal<Out, PostedFacts>,
    /// Registered: of the operation in Act.
    pub facts: Signal<Out, PostedFacts>,
    known: DFF<PostedFacts>,
    slot_mask: Signal<Local, Bits<16>>,
    wanted: Signal<Local, Bits<16>>,
    behind: Signal<Local, Bits<25>>,
    slot: Signal<Local, Bits<16>>,
    fetch: Signal<Local, Bits<16>>,
    now: Signal<Local, PostedFacts>,
}

#[kernel]
impl Logic for PostedLook {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, known);
        self.fetch.next = self.row.val().fetch;
        self.slot_mask.next = bits::<16>(INDEX) << self.row.val().log_size;
        self.wanted.next = self.fetch.val();
        self.behind.next = bits::<25>(0);
        if self.again.val() {
            self.wanted.next = self.index.val();
            if self.row.val().shared & self.copy.val() {
                self.behind.next = bits::<25>(SLOT) << self.row.val().log_size;
            }
        }
        self.slot.next = self.wanted.val() & !self.slot_mask.val();
        self.now.next.exists = self.row.val().valid & self.inside.val();
        self.now.next.mine = self.row.val().function == self.asker.val();
        self.now.next.more = self.row.val().producer != self.fetch.val();
        self.now.next.pending = self.row.val().producer - self.fetch.val();
        self.now.next.ahead = self.index.val() - self.fetch.val();
        self.now.next.offset = ((bit_cast::<25, 16>(self.slot.val()) << 6) | self.behind.val()) << self.row.val().stride;
        self.found.next = self.now.val();
        self.known.d.next = self.now.val();
        self.facts.next = self.known.q.val();
    }
}
