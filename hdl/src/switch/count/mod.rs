//! Frames, bytes and last use of flows. See README.md.

#[cfg(test)]
mod tests;

use crate::prim::ram::Ram;
use crate::prim::sum::PlusOne;
use ferric_abi::csr::FLOW_TICK;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bits of the counters: frames, bytes, tick of the last use; and of all of them.
pub const FRAMES: usize = 40;
pub const BYTES: usize = 48;
pub const TICK: usize = 24;
/// Bits of a frame's length; of its sum with as many of the bytes; of the bytes above.
const LEN: usize = 17;
const CARRY: usize = LEN + 1;
const ABOVE: usize = BYTES - LEN;
/// Bits of the clock, of which the upper ones are the tick.
const CLOCK: usize = 38;
/// log2 of a tick's cycles.
const TICK_AT: usize = CLOCK - TICK;

/// What is counted of a flow.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Use {
    pub frames: Bits<FRAMES>,
    pub bytes: Bits<BYTES>,
    pub last: Bits<TICK>,
}

/// The same as it is kept: the carry out of the last sum's lower bits is not in `bytes` yet. The next frame adds it beside its own bytes, so no sum waits for another.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Kept {
    frames: Bits<FRAMES>,
    bytes: Bits<BYTES>,
    carry: Bit,
    last: Bits<TICK>,
}

/// The counters of 2^`LG` flows. A frame a cycle, never stalled, whichever flow it is of.
#[derive(LogicBlock, BlockDefault)]
#[demand(TICK_AT == FLOW_TICK as usize)]
pub struct Count<const LG: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; what is under way is forgotten, and all counters become zero.
    pub reset: Signal<In, Bit>,
    /// A frame of a flow, and its bytes.
    pub valid: Signal<In, Bit>,
    pub flow: Signal<In, Bits<LG>>,
    pub len: Signal<In, Bits<LEN>>,
    /// A flow's counters are wanted; with `zero` they become zero behind that. All three stay until `answered`, which comes after a cycle without a frame.
    pub ask: Signal<In, Bit>,
    pub zero: Signal<In, Bit>,
    pub asked: Signal<In, Bits<LG>>,
    pub answered: Signal<Out, Bit>,
    pub answer: Signal<Out, Use>,
    /// All counters become zero, in cycles without a frame; until then `busy`, and no answer.
    pub forget: Signal<In, Bit>,
    pub busy: Signal<Out, Bit>,
    /// The tick that it is: 2^`FLOW_TICK` cycles each.
    pub now: Signal<Out, Bits<TICK>>,
    memory: Ram<Kept, LG>,
    // The clock
    cycles: DFF<Bits<CLOCK>>,
    later: PlusOne<CLOCK>,
    tick: Signal<Local, Bits<TICK>>,
    // All become zero
    sweeping: DFF<Bit>,
    sweep: DFF<Bits<LG>>,
    next: PlusOne<LG>,
    // What is read
    sweeps: Signal<Local, Bit>,
    asks: Signal<Local, Bit>,
    place: Signal<Local, Bits<LG>>,
    // Stage 1: the memory
    adds1: DFF<Bit>,
    asks1: DFF<Bit>,
    zeros1: DFF<Bit>,
    flow1: DFF<Bits<LG>>,
    len1: DFF<Bits<LEN>>,
    // Stage 2: the memory's counters, or those of a frame not long before
    adds2: DFF<Bit>,
    asks2: DFF<Bit>,
    zeros2: DFF<Bit>,
    flow2: DFF<Bits<LG>>,
    len2: DFF<Bits<LEN>>,
    was2: DFF<Kept>,
    follows2: DFF<Bit>,
    was: Signal<Local, Kept>,
    /// The bytes: the lower bits with the frame's, and beside that the upper ones with the carry of the sum before.
    low: Signal<Local, Bits<CARRY>>,
    carried: PlusOne<ABOVE>,
    above: Signal<Local, Bits<ABOVE>>,
    one: PlusOne<FRAMES>,
    // Stage 3: they are written
    writes3: DFF<Bit>,
    asks3: DFF<Bit>,
    flow3: DFF<Bits<LG>>,
    now3: DFF<Kept>,
    was3: DFF<Use>,
    // One cycle more, in which the memory does not have them yet
    writes4: DFF<Bit>,
    flow4: DFF<Bits<LG>>,
    now4: DFF<Kept>,
}

#[kernel]
impl<const LG: usize> Logic for Count<LG> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, cycles, sweeping, sweep, adds1, asks1, zeros1, flow1, len1, adds2, asks2, zeros2, flow2, len2, was2, follows2);
        dff_setup!(self, clock, writes3, asks3, flow3, now3, was3, writes4, flow4, now4);
        clock!(self, clock, memory);
        self.later.a.next = self.cycles.q.val();
        self.cycles.d.next = self.later.y.val();
        self.tick.next = self.cycles.q.val().get_bits::<TICK>(TICK_AT);
        self.now.next = self.tick.val();
        // Whose counters are read: a frame's, else what is to become zero, else what is asked for.
        self.sweeps.next = self.sweeping.q.val() & !self.valid.val();
        self.asks.next = self.ask.val() & !self.valid.val() & !self.sweeping.q.val() & !self.asks1.q.val() & !self.asks2.q.val() & !self.asks3.q.val();
        self.place.next = self.asked.val();
        if self.sweeping.q.val() {
            self.place.next = self.sweep.q.val();
        }
        if self.valid.val() {
            self.place.next = self.flow.val();
        }
        self.next.a.next = self.sweep.q.val();
        if self.sweeps.val() {
            self.sweep.d.next = self.next.y.val();
            self.sweeping.d.next = !self.sweep.q.val().all();
        }
        if self.forget.val() | self.reset.val() {
            self.sweeping.d.next = true;
            self.sweep.d.next = bits::<LG>(0);
        }
        self.busy.next = self.sweeping.q.val();
        self.memory.read_addr.next = self.place.val();
        self.adds1.d.next = self.valid.val();
        self.asks1.d.next = self.asks.val();
        self.zeros1.d.next = self.sweeps.val() | (self.asks.val() & self.zero.val());
        self.flow1.d.next = self.place.val();
        self.len1.d.next = self.len.val();
        // Stage 1: what was read may lack what the two before the last one have made of it.
        self.adds2.d.next = self.adds1.q.val();
        self.asks2.d.next = self.asks1.q.val();
        self.zeros2.d.next = self.zeros1.q.val();
        self.flow2.d.next = self.flow1.q.val();
        self.len2.d.next = self.len1.q.val();
        self.was2.d.next = self.memory.read_data.val();
        if self.writes4.q.val() & (self.flow4.q.val() == self.flow1.q.val()) {
            self.was2.d.next = self.now4.q.val();
        }
        if self.writes3.q.val() & (self.flow3.q.val() == self.flow1.q.val()) {
            self.was2.d.next = self.now3.q.val();
        }
        // What the last one makes of it is there in the next cycle.
        self.follows2.d.next = (self.adds2.q.val() | self.zeros2.q.val()) & (self.flow2.q.val() == self.flow1.q.val());
        // Stage 2
        self.was.next = self.was2.q.val();
        if self.follows2.q.val() {
            self.was.next = self.now3.q.val();
        }
        self.low.next = bit_cast::<CARRY, LEN>(self.was.val().bytes.get_bits::<LEN>(0)) + bit_cast::<CARRY, LEN>(self.len2.q.val());
        self.carried.a.next = self.was.val().bytes.get_bits::<ABOVE>(LEN);
        self.above.next = self.was.val().bytes.get_bits::<ABOVE>(LEN);
        if self.was.val().carry {
            self.above.next = self.carried.y.val();
        }
        self.one.a.next = self.was.val().frames;
        self.writes3.d.next = self.adds2.q.val() | self.zeros2.q.val();
        self.asks3.d.next = self.asks2.q.val();
        self.flow3.d.next = self.flow2.q.val();
        self.was3.d.next.frames = self.was.val().frames;
        self.was3.d.next.bytes = (bit_cast::<BYTES, ABOVE>(self.above.val()) << LEN as u64) | bit_cast::<BYTES, LEN>(self.was.val().bytes.get_bits::<LEN>(0));
        self.was3.d.next.last = self.was.val().last;
        self.now3.d.next.frames = self.one.y.val();
        self.now3.d.next.bytes = (bit_cast::<BYTES, ABOVE>(self.above.val()) << LEN as u64) | bit_cast::<BYTES, LEN>(self.low.val().get_bits::<LEN>(0));
        self.now3.d.next.carry = self.low.val().get_bit(LEN);
        self.now3.d.next.last = self.tick.val();
        if self.zeros2.q.val() {
            self.now3.d.next.frames = bits::<FRAMES>(0);
            self.now3.d.next.bytes = bits::<BYTES>(0);
            self.now3.d.next.carry = false;
            self.now3.d.next.last = bits::<TICK>(0);
        }
        // Stage 3
        self.memory.write_en.next = self.writes3.q.val();
        self.memory.write_addr.next = self.flow3.q.val();
        self.memory.write_data.next = self.now3.q.val();
        self.answered.next = self.asks3.q.val();
        self.answer.next = self.was3.q.val();
        self.writes4.d.next = self.writes3.q.val();
        self.flow4.d.next = self.flow3.q.val();
        self.now4.d.next = self.now3.q.val();
        if self.reset.val() {
            self.adds1.d.next = false;
            self.asks1.d.next = false;
            self.zeros1.d.next = false;
            self.adds2.d.next = false;
            self.asks2.d.next = false;
            self.zeros2.d.next = false;
            self.writes3.d.next = false;
            self.asks3.d.next = false;
        }
    }
}
