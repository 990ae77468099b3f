//! Executes atomic operations on host memory (IBTA 9.4.5): up to 64 under way, of those on the same 8 bytes one. See README.md.

#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{RdCmd, RdRow, WrDone, WrSmall};
use crate::stream::{Backlog, MsgFifo, Names};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Bits of what a transport wants to know again with the outcome; nobody here looks into it. RoCE needs most: a packet's number and the place of the result (`roce/reply`).
pub const MARK: usize = 29;

/// Bytes of an operand.
const BYTES: u64 = 8;

/// Operations under way, and their log2. Each holds a page (`host/dma_wr`).
pub const UNDER_WAY: usize = 1 << LOG_UNDER_WAY;
pub const LOG_UNDER_WAY: usize = 6;
/// Their reads in flight: the client's quota on a card.
pub const READS: usize = 32;

/// One operation on the 8 bytes at `iova` (aligned). `add`: FETCH_ADD of `operand`, else `operand` replaces `compare`. `phase`: as in `DoneOp`. The rest: whose result, and the transport's `mark`.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct AtomicOp {
    pub qpn: Bits<24>,
    pub epoch: Bits<8>,
    pub phase: Bit,
    pub mark: Bits<MARK>,
    pub iova: Bits<64>,
    pub function: Bits<12>,
    pub add: Bit,
    pub operand: Bits<64>,
    pub compare: Bits<64>,
}

/// An operation whose page is held, then whose row has been asked for. `odd`: it is not, the address is not aligned.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Reading {
    pub op: AtomicOp,
    pub odd: Bit,
}

/// An operation whose value is known. `wrote`: the host has to answer a write.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Writing {
    pub done: AtomicDone,
    pub wrote: Bit,
}

/// `value`: what stood there before. `err`: the memory could not be read or written.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct AtomicDone {
    pub qpn: Bits<24>,
    pub epoch: Bits<8>,
    pub phase: Bit,
    pub mark: Bits<MARK>,
    pub value: Bits<64>,
    pub err: Bit,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Row,
    Pick,
    Modify,
    Carry,
    Choose,
    Write,
}

/// Four steps with a queue behind each: payload is kept away from the page (`host/dma_wr/guard.rs`), unless an operation on what may be the same 8 bytes is
/// under way; once what was written in front of it has landed, the 64-byte row is asked for; the value is picked, changed and written back as 8 bytes; the outcome is told once the host has answered the write.
#[derive(LogicBlock, Default)]
pub struct Atomics {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_op: MsgSink<AtomicOp>,
    pub m_done: MsgSrc<AtomicDone>,
    pub m_rd: MsgSrc<RdCmd>,
    pub s_rd: MsgSink<RdRow>,
    pub m_wr: MsgSrc<WrSmall>,
    pub s_wr: MsgSink<WrDone>,
    /// Payload is to stay away from a page (pulse); the oldest that has not begun begins, if it may; the oldest is over.
    pub atomic_hold: Signal<Out, Bit>,
    pub atomic_page: Signal<Out, Bits<12>>,
    pub atomic_clear: Signal<In, Bit>,
    pub atomic_begin: Signal<Out, Bit>,
    pub atomic_end: Signal<Out, Bit>,
    /// Nothing under way.
    pub idle: Signal<Out, Bit>,
    queue: MsgFifo<AtomicOp, 7>,
    backlog: Backlog<8>,
    /// The 8 bytes that operations are under way on, each by 12 bits folded from the address: now and then others are taken for the same.
    cells: Names<UNDER_WAY, LOG_UNDER_WAY, 1>,
    holding: MsgFifo<Reading, LOG_UNDER_WAY>,
    reading: MsgFifo<Reading, LOG_UNDER_WAY>,
    writing: MsgFifo<Writing, LOG_UNDER_WAY>,
    /// A place for every write under way: the DMA writer's ports wait for nobody.
    answers: MsgFifo<WrDone, LOG_UNDER_WAY>,
    hold: DFF<Bit>,
    page: DFF<Bits<12>>,
    state: DFF<State>,
    row: DFF<Bits<512>>,
    value: DFF<Bits<64>>,
    /// `value` and the operand: the lower half with its carry, a cycle behind, and the upper one above a bit for the carry, two cycles behind.
    low: DFF<Bits<33>>,
    high: DFF<Bits<33>>,
    new: DFF<Bits<64>>,
    err: DFF<Bit>,
    same: DFF<Bit>,
    operand: Signal<Local, Bits<64>>,
    next_iova: Signal<Local, Bits<64>>,
    odd: Signal<Local, Bit>,
    folded: Signal<Local, Bits<12>>,
    busy: Signal<Local, Bit>,
    may: Signal<Local, Bit>,
    starts: Signal<Local, Bit>,
    head: Signal<Local, Reading>,
    first: Signal<Local, AtomicOp>,
    first_iova: Signal<Local, Bits<64>>,
    begins: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    told: Signal<Local, AtomicDone>,
    known: Signal<Local, AtomicDone>,
    op: Signal<Local, AtomicOp>,
    iova: Signal<Local, Bits<64>>,
    shift: Signal<Local, Bits<9>>,
    turned: Signal<Local, Bits<512>>,
    pass: Signal<Local, Bit>,
    wrote: Signal<Local, Bit>,
    answered: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Atomics {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, hold, page, state, row, value, low, high, new, err, same);
        clock!(self, clock, queue, backlog, cells, holding, reading, writing, answers);
        self.queue.reset.next = self.reset.val();
        self.backlog.reset.next = self.reset.val();
        self.cells.reset.next = self.reset.val();
        self.holding.reset.next = self.reset.val();
        self.reading.reset.next = self.reset.val();
        self.writing.reset.next = self.reset.val();
        self.answers.reset.next = self.reset.val();
        MsgSink::<WrDone>::link(&mut self.s_wr, &mut self.answers.s);
        MsgSink::<AtomicOp>::link(&mut self.s_op, &mut self.queue.s);
        self.idle.next = !self.queue.m.valid.val() & self.backlog.none.val() & self.cells.none.val();

        // Hold.
        self.next_iova.next = self.queue.m.data.val().iova;
        self.odd.next = self.next_iova.val().get_bits::<3>(0).any();
        self.folded.next = self.next_iova.val().get_bits::<12>(3) ^ self.next_iova.val().get_bits::<12>(15) ^ self.next_iova.val().get_bits::<12>(27);
        self.cells.entry.next = self.folded.val();
        self.cells.look[0].next = self.folded.val();
        self.busy.next = self.cells.below[0].val() | self.cells.above[0].val() | self.cells.full.val();
        self.starts.next = self.queue.m.valid.val() & !self.busy.val();
        self.cells.begins.next = self.starts.val();
        // A cycle late: what is under way is compared in this one.
        self.hold.d.next = self.starts.val();
        self.atomic_hold.next = self.hold.q.val();
        self.atomic_page.next = self.page.q.val();
        self.page.d.next = self.next_iova.val().get_bits::<12>(12) ^ self.next_iova.val().get_bits::<12>(24) ^ self.next_iova.val().get_bits::<12>(36);
        self.queue.m.ready.next = self.starts.val();
        self.backlog.came.next = self.s_op.valid.val() & self.s_op.ready.val();
        self.backlog.went.next = self.starts.val();
        // There is a place in each queue for all that may be under way.
        self.holding.s.valid.next = self.starts.val();
        self.holding.s.data.next.op = self.queue.m.data.val();
        self.holding.s.data.next.odd = self.odd.val();

        // Ask.
        self.head.next = self.holding.m.data.val();
        self.first.next = self.head.val().op;
        self.first_iova.next = self.first.val().iova;
        self.may.next = self.holding.m.valid.val() & self.atomic_clear.val();
        self.m_rd.valid.next = self.may.val() & !self.head.val().odd;
        self.m_rd.data.next.iova = (self.first_iova.val() >> 6) << 6;
        self.m_rd.data.next.function = self.first.val().function;
        self.m_rd.data.next.rows = bits::<4>(1);
        self.m_rd.data.next.tag = bits::<8>(0);
        self.begins.next = self.may.val() & (self.m_rd.ready.val() | self.head.val().odd);
        self.atomic_begin.next = self.begins.val();
        self.holding.m.ready.next = self.begins.val();
        self.reading.s.valid.next = self.begins.val();
        self.reading.s.data.next = self.head.val();

        // Change.
        self.op.next = self.reading.m.data.val().op;
        self.iova.next = self.op.val().iova;
        self.s_rd.ready.next = (self.state.q.val() == State::Row) & self.reading.m.valid.val() & !self.reading.m.data.val().odd;
        self.shift.next = bit_cast::<9, 3>(self.iova.val().get_bits::<3>(3)) << 6;
        self.turned.next = self.row.q.val() >> self.shift.val();
        self.operand.next = self.op.val().operand;
        self.low.d.next = bit_cast::<33, 32>(self.value.q.val().get_bits::<32>(0)) + bit_cast::<33, 32>(self.operand.val().get_bits::<32>(0));
        self.high.d.next = ((bit_cast::<33, 32>(self.value.q.val().get_bits::<32>(32)) << 1) | 1)
            + ((bit_cast::<33, 32>(self.operand.val().get_bits::<32>(32)) << 1) | bit_cast::<33, 1>(self.low.q.val().get_bits::<1>(32)));
        self.same.d.next = self.value.q.val() == self.op.val().compare;
        self.m_wr.data.next.iova = self.iova.val();
        self.m_wr.data.next.function = self.op.val().function;
        self.m_wr.data.next.len = bits::<7>(BYTES);
        self.m_wr.data.next.tag = bits::<8>(0);
        self.m_wr.data.next.data = bit_cast::<512, 64>(self.new.q.val());
        self.wrote.next = !self.err.q.val() & (self.op.val().add | self.same.q.val());
        self.m_wr.valid.next = (self.state.q.val() == State::Write) & self.wrote.val();
        self.pass.next = (self.state.q.val() == State::Write) & (!self.wrote.val() | self.m_wr.ready.val());
        self.reading.m.ready.next = self.pass.val();
        self.writing.s.valid.next = self.pass.val();
        self.writing.s.data.next.wrote = self.wrote.val();
        self.known.next.qpn = self.op.val().qpn;
        self.known.next.epoch = self.op.val().epoch;
        self.known.next.phase = self.op.val().phase;
        self.known.next.mark = self.op.val().mark;
        self.known.next.value = self.value.q.val();
        self.known.next.err = self.err.q.val();
        self.writing.s.data.next.done = self.known.val();
        match self.state.q.val() {
            State::Row => {
                self.row.d.next = self.s_rd.data.val().data;
                // Not aligned: the region maps an aligned address to one that is not, and the 8 bytes could lie in two rows.
                self.err.d.next = self.reading.m.data.val().odd | self.s_rd.data.val().err;
                if self.reading.m.valid.val() & (self.reading.m.data.val().odd | self.s_rd.valid.val()) {
                    self.state.d.next = State::Pick;
                }
            }
            State::Pick => {
                self.value.d.next = self.turned.val().get_bits::<64>(0);
                self.state.d.next = State::Modify;
            }
            State::Modify => {
                // Sum and comparison are under way.
                self.state.d.next = State::Carry;
            }
            State::Carry => {
                self.state.d.next = State::Choose;
            }
            State::Choose => {
                self.new.d.next = self.op.val().operand;
                if self.op.val().add {
                    self.new.d.next = (bit_cast::<64, 32>(self.high.q.val().get_bits::<32>(1)) << 32) | bit_cast::<64, 32>(self.low.q.val().get_bits::<32>(0));
                }
                self.state.d.next = State::Write;
            }
            State::Write => {
                if self.pass.val() {
                    self.state.d.next = State::Row;
                }
            }
            _ => {
                self.state.d.next = State::Row;
            }
        }

        // Tell.
        self.answered.next = !self.writing.m.data.val().wrote | self.answers.m.valid.val();
        self.m_done.valid.next = self.writing.m.valid.val() & self.answered.val();
        self.told.next = self.writing.m.data.val().done;
        self.m_done.data.next = self.told.val();
        self.m_done.data.next.err = self.told.val().err | (self.writing.m.data.val().wrote & self.answers.m.data.val().err);
        self.ends.next = self.m_done.valid.val() & self.m_done.ready.val();
        self.atomic_end.next = self.ends.val();
        self.cells.ends.next = self.ends.val();
        self.writing.m.ready.next = self.ends.val();
        self.answers.m.ready.next = self.ends.val() & self.writing.m.data.val().wrote;

        if self.reset.val() {
            self.state.d.next = State::Row;
            self.hold.d.next = false;
        }
    }
}
