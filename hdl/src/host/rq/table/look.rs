//! Look: what Act wants to know about the operation and its row.

use super::{Facts, Op};
use crate::records::RingCtx;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub(super) struct RqLook {
    pub clock: Signal<In, Clock>,
    /// In Look. `inside`: the queue's number has no bits beyond the table.
    pub op: Signal<In, Op>,
    pub row: Signal<In, RingCtx>,
    pub inside: Signal<In, Bit>,
    /// Registered: of the operation in Act.
    pub facts: Signal<Out, Facts>,
    known: DFF<Facts>,
    found: Signal<Local, Facts>,
    slot_mask: Signal<Local, Bits<16>>,
    slot: Signal<Local, Bits<16>>,
    fetch_now: Signal<Local, Bits<16>>,
}

impl Logic for RqLook {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, known);
        self.fetch_now.next = self.row.val().fetch;
        self.slot_mask.next = bits::<16>(0xFFFF) << self.row.val().log_size;
        self.slot.next = self.fetch_now.val() & !self.slot_mask.val();
        self.found.next.exists = self.row.val().valid & self.inside.val();
        self.found.next.mine = self.row.val().function == self.op.val().function;
        self.found.next.more = self.row.val().producer != self.fetch_now.val();
        self.found.next.pending = self.row.val().producer - self.fetch_now.val();
        self.found.next.ahead = self.op.val().index - self.fetch_now.val();
        self.found.next.offset = (bit_cast::<24, 16>(self.slot.val()) << 6) << self.row.val().stride;
        self.known.d.next = self.found.val();
        self.facts.next = self.known.q.val();
    }
}
