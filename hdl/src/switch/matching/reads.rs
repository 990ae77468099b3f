//! What commands read: one at a time, and the answer stays until the next one.

use crate::prim::pack::{Cast, Resize};
use crate::records::FlowRecord;
use crate::switch::count::Use;
use ferric_abi::switch::table::{ANSWER_BYTES, EXACT_BITS};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bits of an answer, and of a record of counters.
pub const ANSWER: usize = 8 * ANSWER_BYTES;
const RECORD: usize = 128;
/// Bits of a line's number in that.
const LINE: usize = 16;

/// For tables whose ways have 2^`LG` lines.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Reads<const LG: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; nothing is being read then.
    pub reset: Signal<In, Bit>,
    /// One of these: a line of the exact table is to be read; an action's counters are, and become zero then.
    pub exact: Signal<In, Bit>,
    pub count: Signal<In, Bit>,
    pub zero: Signal<In, Bit>,
    pub way: Signal<In, Bits<2>>,
    pub line: Signal<In, Bits<LG>>,
    /// As the exact table and the counters have it.
    pub read: Signal<Out, Bit>,
    pub ask: Signal<Out, Bit>,
    pub ask_zero: Signal<Out, Bit>,
    pub read_way: Signal<Out, Bits<2>>,
    pub read_line: Signal<Out, Bits<LG>>,
    pub read_done: Signal<In, Bit>,
    pub read_data: Signal<In, Bits<EXACT_BITS>>,
    pub answered: Signal<In, Bit>,
    pub counted: Signal<In, Use>,
    /// From the cycle behind the command on, until the answer is there.
    pub busy: Signal<Out, Bit>,
    pub answer: Signal<Out, Bits<ANSWER>>,
    reads: DFF<Bit>,
    asks: DFF<Bit>,
    zeros: DFF<Bit>,
    ways: DFF<Bits<2>>,
    lines: DFF<Bits<LG>>,
    record: Signal<Local, FlowRecord>,
    flat: Cast<FlowRecord, Bits<RECORD>>,
    wide: Resize<EXACT_BITS, ANSWER>,
    known: DFF<Bits<ANSWER>>,
}

#[kernel]
impl<const LG: usize> Logic for Reads<LG> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, reads, asks, zeros, ways, lines, known);
        if self.exact.val() | self.count.val() {
            self.reads.d.next = self.exact.val();
            self.asks.d.next = self.count.val();
            self.zeros.d.next = self.zero.val();
            self.ways.d.next = self.way.val();
            self.lines.d.next = self.line.val();
        }
        self.read.next = self.reads.q.val();
        self.ask.next = self.asks.q.val();
        self.ask_zero.next = self.zeros.q.val();
        self.read_way.next = self.ways.q.val();
        self.read_line.next = self.lines.q.val();
        self.record.next.line = bit_cast::<LINE, LG>(self.lines.q.val());
        self.record.next.packets = self.counted.val().frames;
        self.record.next.bytes = self.counted.val().bytes;
        self.record.next.last_use = self.counted.val().last;
        self.flat.x.next = self.record.val();
        self.wide.x.next = self.read_data.val();
        if self.reads.q.val() & self.read_done.val() {
            self.known.d.next = self.wide.y.val();
            self.reads.d.next = false;
        }
        if self.asks.q.val() & self.answered.val() {
            self.known.d.next = bit_cast::<ANSWER, RECORD>(self.flat.y.val());
            self.asks.d.next = false;
        }
        self.busy.next = self.reads.q.val() | self.asks.q.val();
        self.answer.next = self.known.q.val();
        if self.reset.val() {
            self.reads.d.next = false;
            self.asks.d.next = false;
        }
    }
}
