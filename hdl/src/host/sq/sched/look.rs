//! Look: how much of the ring one fetch may take.

use super::{Facts, Kind, Op, BURST};
use crate::host::table::posted::PostedFacts;
use crate::records::RingCtx;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

// log2 of the requests in a block, if it is not as many as one fetch may take.
const LOG_1: u64 = 0;
const LOG_2: u64 = 1;
const LOG_4: u64 = 2;

#[derive(LogicBlock, Default)]
pub(super) struct SqLook {
    pub clock: Signal<In, Clock>,
    /// In Look.
    pub op: Signal<In, Op>,
    pub row: Signal<In, RingCtx>,
    pub posted: Signal<In, PostedFacts>,
    /// Registered: of the operation in Act.
    pub facts: Signal<Out, Facts>,
    known: DFF<Facts>,
    found: Signal<Local, Facts>,
    wanted: Signal<Local, Bits<16>>,
    pend_over: Signal<Local, Bits<12>>,
    pend_low: Signal<Local, Bits<4>>,
    pend8: Signal<Local, Bits<4>>,
    fits8: Signal<Local, Bit>,
    block_log: Signal<Local, Bits<2>>,
    block_mask: Signal<Local, Bits<4>>,
    in_block: Signal<Local, Bits<4>>,
    block_left: Signal<Local, Bits<4>>,
    block_rest: Signal<Local, Bits<4>>,
    fetch_now: Signal<Local, Bits<16>>,
}

#[kernel]
impl Logic for SqLook {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, known);
        self.fetch_now.next = self.row.val().fetch;
        // What there is to fetch, once a plain doorbell has moved the producer.
        self.wanted.next = self.posted.val().pending;
        if self.op.val().kind == Kind::Doorbell {
            self.wanted.next = self.posted.val().ahead;
        }
        self.pend_over.next = self.wanted.val().get_bits::<12>(4);
        self.pend_low.next = self.wanted.val().get_bits::<4>(0);
        self.fits8.next = !self.pend_over.val().any() & (self.pend_low.val() <= BURST);
        self.pend8.next = bits::<4>(BURST);
        if self.fits8.val() {
            self.pend8.next = self.pend_low.val();
        }
        // A fetch stays inside an aligned block of min(ring size, 512 bytes): it ends neither beyond the ring nor the read limit.
        // 3 - stride: the complement of two bits.
        self.block_log.next = !self.row.val().stride;
        if self.row.val().log_size < bit_cast::<4, 2>(self.block_log.val()) {
            self.block_log.next = bit_cast::<2, 4>(self.row.val().log_size);
        }
        self.block_mask.next = bits::<4>((BURST - 1) as u64);
        match self.block_log.val().index() {
            LOG_1 => {
                self.block_mask.next = bits::<4>(0);
            }
            LOG_2 => {
                self.block_mask.next = bits::<4>(((1 << LOG_2) - 1) as u64);
            }
            LOG_4 => {
                self.block_mask.next = bits::<4>(((1 << LOG_4) - 1) as u64);
            }
            _ => {}
        }
        self.in_block.next = self.fetch_now.val().get_bits::<4>(0) & self.block_mask.val();
        self.block_rest.next = self.block_mask.val() - self.in_block.val();
        self.block_left.next = self.block_rest.val() + 1;
        if self.row.val().flush {
            self.block_left.next = bits::<4>(BURST);
        }
        self.found.next.index_differs = self.row.val().producer != self.op.val().index;
        self.found.next.burst = self.pend8.val();
        self.found.next.whole = self.fits8.val();
        if self.block_left.val() < self.pend8.val() {
            self.found.next.burst = self.block_left.val();
            self.found.next.whole = false;
        }
        self.known.d.next = self.found.val();
        self.facts.next = self.known.q.val();
    }
}
