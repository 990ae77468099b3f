//! What commands read of what functions may send: one line at a time, and the answer stays until the next one.

use super::senders::SENDER;
use crate::prim::pack::Cast;
use crate::records::SenderCtx;
use crate::switch::matching::ANSWER;
use crate::switch::verify::LINE as BOUND;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Ways of the table of addresses have 2^`LB` lines.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Recall<const LB: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; nothing is being read then.
    pub reset: Signal<In, Bit>,
    /// A command reads a function's line, an address's, or one that is not here: then the answer is zero.
    pub sender: Signal<In, Bit>,
    pub bind: Signal<In, Bit>,
    pub foreign: Signal<In, Bit>,
    pub who: Signal<In, Bits<6>>,
    pub way: Signal<In, Bits<2>>,
    pub line: Signal<In, Bits<LB>>,
    /// A function whose line is wanted; it is there in a cycle with `sender_free`.
    pub asked: Signal<Out, Bits<6>>,
    pub sender_free: Signal<In, Bit>,
    pub sender_line: Signal<In, SenderCtx>,
    /// As `verify` has it.
    pub read: Signal<Out, Bit>,
    pub read_way: Signal<Out, Bits<2>>,
    pub read_line: Signal<Out, Bits<LB>>,
    pub read_done: Signal<In, Bit>,
    pub read_data: Signal<In, Bits<BOUND>>,
    /// From the cycle behind the command on, until the answer is there.
    pub busy: Signal<Out, Bit>,
    pub answer: Signal<Out, Bits<ANSWER>>,
    flat: Cast<SenderCtx, Bits<SENDER>>,
    senders: DFF<Bit>,
    binds: DFF<Bit>,
    functions: DFF<Bits<6>>,
    ways: DFF<Bits<2>>,
    lines: DFF<Bits<LB>>,
    known: DFF<Bits<SENDER>>,
}

#[kernel]
impl<const LB: usize> Logic for Recall<LB> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, senders, binds, functions, ways, lines, known);
        self.flat.x.next = self.sender_line.val();
        self.asked.next = self.functions.q.val();
        self.read.next = self.binds.q.val();
        self.read_way.next = self.ways.q.val();
        self.read_line.next = self.lines.q.val();
        if self.senders.q.val() & self.sender_free.val() {
            self.known.d.next = self.flat.y.val();
            self.senders.d.next = false;
        }
        if self.binds.q.val() & self.read_done.val() {
            self.known.d.next = bit_cast::<SENDER, BOUND>(self.read_data.val());
            self.binds.d.next = false;
        }
        if self.sender.val() | self.bind.val() {
            self.senders.d.next = self.sender.val();
            self.binds.d.next = self.bind.val();
            self.functions.d.next = self.who.val();
            self.ways.d.next = self.way.val();
            self.lines.d.next = self.line.val();
        }
        if self.foreign.val() {
            self.known.d.next = bits::<SENDER>(0);
        }
        self.busy.next = self.senders.q.val() | self.binds.q.val();
        self.answer.next = bit_cast::<ANSWER, SENDER>(self.known.q.val());
        if self.reset.val() {
            self.senders.d.next = false;
            self.binds.d.next = false;
        }
    }
}
