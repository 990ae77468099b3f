//! Executes atomic operations on host memory, one after the other (IBTA 9.4.5).
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{RdCmd, RdRow, WrDone, WrSmall};
use crate::prim::sum::Sum;
use crate::stream::MsgFifo;
use rust_hdl::prelude::*;

/// One operation on the 8 bytes at `iova` (aligned). `add`: FETCH_ADD of `operand`, else `operand` replaces `compare`. The rest: whose result.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct AtomicOp {
    pub qpn: Bits<24>,
    pub epoch: Bits<8>,
    pub psn: Bits<24>,
    pub slot: Bits<5>,
    pub iova: Bits<64>,
    pub function: Bits<12>,
    pub add: Bit,
    pub operand: Bits<64>,
    pub compare: Bits<64>,
}

/// `value`: what stood there before. `err`: the memory could not be read or written.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct AtomicDone {
    pub qpn: Bits<24>,
    pub epoch: Bits<8>,
    pub psn: Bits<24>,
    pub slot: Bits<5>,
    pub value: Bits<64>,
    pub err: Bit,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Read,
    Row,
    Pick,
    Modify,
    Compare,
    Write,
    Answer,
    Done,
}

/// The value is read with its 64-byte row, changed, and written back as 8 bytes; the outcome is told once the host has answered the write.
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
    /// Nothing under way.
    pub idle: Signal<Out, Bit>,
    queue: MsgFifo<AtomicOp, 6>,
    state: DFF<State>,
    op: DFF<AtomicOp>,
    row: DFF<Bits<512>>,
    value: DFF<Bits<64>>,
    new: DFF<Bits<64>>,
    err: DFF<Bit>,
    same: DFF<Bit>,
    sum: Sum<64>,
    iova: Signal<Local, Bits<64>>,
    next_iova: Signal<Local, Bits<64>>,
    shift: Signal<Local, Bits<9>>,
    turned: Signal<Local, Bits<512>>,
}

impl Logic for Atomics {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, op, row, value, new, err, same);
        clock!(self, clock, queue);
        self.queue.reset.next = self.reset.val();
        MsgSink::<AtomicOp>::link(&mut self.s_op, &mut self.queue.s);
        self.queue.m.ready.next = self.state.q.val() == State::Idle;
        self.idle.next = (self.state.q.val() == State::Idle) & (self.queue.level.val() == 0);
        self.next_iova.next = self.queue.m.data.val().iova;
        self.iova.next = self.op.q.val().iova;
        self.m_rd.valid.next = self.state.q.val() == State::Read;
        self.m_rd.data.next.iova = (self.iova.val() >> 6) << 6;
        self.m_rd.data.next.function = self.op.q.val().function;
        self.m_rd.data.next.rows = bits::<4>(1);
        self.m_rd.data.next.tag = bits::<8>(0);
        self.s_rd.ready.next = self.state.q.val() == State::Row;
        self.m_wr.valid.next = self.state.q.val() == State::Write;
        self.m_wr.data.next.iova = self.iova.val();
        self.m_wr.data.next.function = self.op.q.val().function;
        self.m_wr.data.next.len = bits::<7>(8);
        self.m_wr.data.next.tag = bits::<8>(0);
        self.m_wr.data.next.data = bit_cast::<512, 64>(self.new.q.val());
        self.s_wr.ready.next = self.state.q.val() == State::Answer;
        self.m_done.valid.next = self.state.q.val() == State::Done;
        self.m_done.data.next.qpn = self.op.q.val().qpn;
        self.m_done.data.next.epoch = self.op.q.val().epoch;
        self.m_done.data.next.psn = self.op.q.val().psn;
        self.m_done.data.next.slot = self.op.q.val().slot;
        self.m_done.data.next.value = self.value.q.val();
        self.m_done.data.next.err = self.err.q.val();
        self.shift.next = bit_cast::<9, 3>(self.iova.val().get_bits::<3>(3)) << 6;
        self.turned.next = self.row.q.val() >> self.shift.val();
        self.sum.a.next = self.value.q.val();
        self.sum.b.next = self.op.q.val().operand;
        self.same.d.next = self.value.q.val() == self.op.q.val().compare;

        match self.state.q.val() {
            State::Idle => {
                self.op.d.next = self.queue.m.data.val();
                self.err.d.next = self.next_iova.val().get_bits::<3>(0).any();
                if self.queue.m.valid.val() {
                    self.state.d.next = State::Read;
                    if self.next_iova.val().get_bits::<3>(0).any() {
                        // The region maps an aligned address to one that is not: the 8 bytes could lie in two rows.
                        self.state.d.next = State::Done;
                    }
                }
            }
            State::Read => {
                if self.m_rd.ready.val() {
                    self.state.d.next = State::Row;
                }
            }
            State::Row => {
                self.row.d.next = self.s_rd.data.val().data;
                self.err.d.next = self.s_rd.data.val().err;
                if self.s_rd.valid.val() {
                    self.state.d.next = State::Pick;
                    if self.s_rd.data.val().err {
                        self.state.d.next = State::Done;
                    }
                }
            }
            State::Pick => {
                self.value.d.next = self.turned.val().get_bits::<64>(0);
                self.state.d.next = State::Modify;
            }
            State::Modify => {
                self.new.d.next = self.op.q.val().operand;
                if self.op.q.val().add {
                    self.new.d.next = self.sum.y.val();
                }
                self.state.d.next = State::Compare;
            }
            State::Compare => {
                self.state.d.next = State::Write;
                if !self.op.q.val().add & !self.same.q.val() {
                    self.state.d.next = State::Done;
                }
            }
            State::Write => {
                if self.m_wr.ready.val() {
                    self.state.d.next = State::Answer;
                }
            }
            State::Answer => {
                self.err.d.next = self.s_wr.data.val().err;
                if self.s_wr.valid.val() {
                    self.state.d.next = State::Done;
                }
            }
            State::Done => {
                if self.m_done.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
