//! Counters of flows: frames, bytes, last use. See README.md.

#[cfg(test)]
mod tests;

use crate::prim::ram::Ram;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// What is counted of a flow.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct FlowCounts {
    pub packets: Bits<40>,
    pub bytes: Bits<48>,
    pub last_use: Bits<24>,
}

/// 2^`LG` lines of counters; one frame a cycle, of the same flow, too.
#[derive(LogicBlock, BlockDefault)]
pub struct Count<const LG: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous: what is under way is forgotten. The counters stay.
    pub reset: Signal<In, Bit>,
    /// A frame of the flow `line`, how long it is, and the tick that it is.
    pub valid: Signal<In, Bit>,
    pub line: Signal<In, Bits<LG>>,
    pub length: Signal<In, Bits<16>>,
    pub now: Signal<In, Bits<24>>,
    /// A line is read when no frame is counted, and is zero then if `ask_clear`: all three stay until `done`, which brings what it held.
    pub ask: Signal<In, Bit>,
    pub ask_clear: Signal<In, Bit>,
    pub ask_line: Signal<In, Bits<LG>>,
    pub done: Signal<Out, Bit>,
    pub counts: Signal<Out, FlowCounts>,
    memory: Ram<FlowCounts, LG>,
    takes: Signal<Local, Bit>,
    // Stage 1: the memory reads. Stage 2: its register. Stage 3: the sum. Stage 4: it is written. Stages 5 and 6: a read that came too early for it takes it from here.
    line1: DFF<Bits<LG>>,
    line2: DFF<Bits<LG>>,
    line3: DFF<Bits<LG>>,
    line4: DFF<Bits<LG>>,
    line5: DFF<Bits<LG>>,
    /// The line gets another value.
    writes1: DFF<Bit>,
    writes2: DFF<Bit>,
    writes3: DFF<Bit>,
    writes4: DFF<Bit>,
    writes5: DFF<Bit>,
    asks1: DFF<Bit>,
    asks2: DFF<Bit>,
    asks3: DFF<Bit>,
    asks4: DFF<Bit>,
    clears1: DFF<Bit>,
    clears2: DFF<Bit>,
    clears3: DFF<Bit>,
    length1: DFF<Bits<16>>,
    length2: DFF<Bits<16>>,
    length3: DFF<Bits<16>>,
    now1: DFF<Bits<24>>,
    now2: DFF<Bits<24>>,
    now3: DFF<Bits<24>>,
    row2: DFF<FlowCounts>,
    row3: DFF<FlowCounts>,
    /// The frame before, that before it and so on is of the same line.
    same3: DFF<Bit>,
    second2: DFF<Bit>,
    third2: DFF<Bit>,
    fourth2: DFF<Bit>,
    old: Signal<Local, FlowCounts>,
    old4: DFF<FlowCounts>,
    sum4: DFF<FlowCounts>,
    sum5: DFF<FlowCounts>,
    sum6: DFF<FlowCounts>,
    #[init(Constant::new(FlowCounts::default()))]
    none: Constant<FlowCounts>,
}

#[kernel]
impl<const LG: usize> Logic for Count<LG> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, line1, line2, line3, line4, line5, writes1, writes2, writes3, writes4, writes5, asks1, asks2, asks3, asks4, clears1, clears2, clears3);
        dff_setup!(self, clock, length1, length2, length3, now1, now2, now3, row2, row3, same3, second2, third2, fourth2, old4, sum4, sum5, sum6);
        clock!(self, clock, memory);
        // Not again before it is done.
        self.takes.next = self.ask.val() & !self.valid.val() & !self.asks1.q.val() & !self.asks2.q.val() & !self.asks3.q.val() & !self.asks4.q.val();
        self.memory.read_addr.next = self.line.val();
        self.line1.d.next = self.line.val();
        if !self.valid.val() {
            self.memory.read_addr.next = self.ask_line.val();
            self.line1.d.next = self.ask_line.val();
        }
        self.writes1.d.next = self.valid.val() | (self.takes.val() & self.ask_clear.val());
        self.asks1.d.next = self.takes.val();
        self.clears1.d.next = self.takes.val() & self.ask_clear.val();
        self.length1.d.next = self.length.val();
        self.now1.d.next = self.now.val();
        self.line2.d.next = self.line1.q.val();
        self.line3.d.next = self.line2.q.val();
        self.line4.d.next = self.line3.q.val();
        self.line5.d.next = self.line4.q.val();
        self.writes2.d.next = self.writes1.q.val();
        self.writes3.d.next = self.writes2.q.val();
        self.writes4.d.next = self.writes3.q.val();
        self.writes5.d.next = self.writes4.q.val();
        self.asks2.d.next = self.asks1.q.val();
        self.asks3.d.next = self.asks2.q.val();
        self.asks4.d.next = self.asks3.q.val();
        self.clears2.d.next = self.clears1.q.val();
        self.clears3.d.next = self.clears2.q.val();
        self.length2.d.next = self.length1.q.val();
        self.length3.d.next = self.length2.q.val();
        self.now2.d.next = self.now1.q.val();
        self.now3.d.next = self.now2.q.val();
        // Sums that the memory did not have yet when it was read.
        self.second2.d.next = self.writes3.q.val() & (self.line3.q.val() == self.line1.q.val());
        self.third2.d.next = self.writes4.q.val() & (self.line4.q.val() == self.line1.q.val());
        self.fourth2.d.next = self.writes5.q.val() & (self.line5.q.val() == self.line1.q.val());
        self.same3.d.next = self.writes3.q.val() & (self.line3.q.val() == self.line2.q.val());
        self.row2.d.next = self.memory.read_data.val();
        self.row3.d.next = self.row2.q.val();
        if self.fourth2.q.val() {
            self.row3.d.next = self.sum6.q.val();
        }
        if self.third2.q.val() {
            self.row3.d.next = self.sum5.q.val();
        }
        if self.second2.q.val() {
            self.row3.d.next = self.sum4.q.val();
        }
        self.old.next = self.row3.q.val();
        if self.same3.q.val() {
            self.old.next = self.sum4.q.val();
        }
        self.old4.d.next = self.old.val();
        self.sum4.d.next.packets = self.old.val().packets + 1;
        self.sum4.d.next.bytes = self.old.val().bytes + bit_cast::<48, 16>(self.length3.q.val());
        self.sum4.d.next.last_use = self.now3.q.val();
        if self.clears3.q.val() {
            self.sum4.d.next = self.none.val();
        }
        self.sum5.d.next = self.sum4.q.val();
        self.sum6.d.next = self.sum5.q.val();
        self.memory.write_en.next = self.writes4.q.val();
        self.memory.write_addr.next = self.line4.q.val();
        self.memory.write_data.next = self.sum4.q.val();
        self.done.next = self.asks4.q.val();
        self.counts.next = self.old4.q.val();
        if self.reset.val() {
            self.writes1.d.next = false;
            self.writes2.d.next = false;
            self.writes3.d.next = false;
            self.writes4.d.next = false;
            self.writes5.d.next = false;
            self.asks1.d.next = false;
            self.asks2.d.next = false;
            self.asks3.d.next = false;
            self.asks4.d.next = false;
        }
    }
}
