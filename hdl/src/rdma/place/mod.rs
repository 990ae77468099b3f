//! Placement: where each received packet's payload goes. See README.md.
#[cfg(test)]
mod tests;
mod walk;

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{DoneOp, MoveOp, MrReq, MrResp, PlaceOp, WqeData, WqeFree, WqeRead};
use crate::prim::ram::Ram;
use crate::stream::{MsgFifo, MsgSlice};
use rust_hdl::prelude::*;
use walk::{Segment, Walk};

/// Event names of [`Place::stat`], bit 0 first.
pub const STATS: &[&str] = &["poisoned", "place_failed"];

/// Life of a queue pair (epoch) in which placement has failed.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Mark {
    pub epoch: Bits<8>,
    pub set: Bit,
}

/// What the back half does.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum State {
    Idle,
    Begin,
    Segments,
    Done,
}

/// Placement. `LQ`: log2 of the number of queue pairs.
#[derive(LogicBlock, Default)]
pub struct Place<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_op: MsgSink<PlaceOp>,
    pub m_done: MsgSrc<DoneOp>,
    pub m_mr: MsgSrc<MrReq>,
    pub s_mr: MsgSink<MrResp>,
    pub m_wqe: MsgSrc<WqeRead>,
    pub s_wqe: MsgSink<WqeData>,
    pub m_free: MsgSrc<WqeFree>,
    pub m_move: MsgSrc<MoveOp>,
    /// One pulse per event, see [`STATS`].
    pub stat: Signal<Out, Bits<2>>,
    walk: Walk,
    orders: MsgFifo<PlaceOp, 4>,
    segments: MsgFifo<Segment, 4>,
    found: MsgSlice<MrResp>,
    marks: Ram<Mark, LQ>,
    state: DFF<State>,
    poisoned: DFF<Bit>,
    failed: DFF<Bit>,
    status: DFF<Bits<8>>,
    writes: DFF<Bits<8>>,
    mover: DFF<MoveOp>,
    mover_busy: DFF<Bit>,
    done: DFF<DoneOp>,
    done_busy: DFF<Bit>,
    events: DFF<Bits<2>>,
    qpn: Signal<Local, Bits<24>>,
    same: Signal<Local, Bit>,
    ready: Signal<Local, Bit>,
    bad: Signal<Local, Bit>,
    bad_status: Signal<Local, Bits<8>>,
    placing: Signal<Local, Bit>,
    data_op: Signal<Local, Bit>,
}

impl<const LQ: usize> Logic for Place<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, poisoned, failed, status, writes, mover, mover_busy, done, done_busy, events);
        clock!(self, clock, walk, orders, segments, found, marks);
        self.walk.reset.next = self.reset.val();
        self.orders.reset.next = self.reset.val();
        self.segments.reset.next = self.reset.val();
        self.found.reset.next = self.reset.val();
        MsgSink::<PlaceOp>::link(&mut self.s_op, &mut self.walk.s_op);
        MsgSrc::<MrReq>::link(&mut self.m_mr, &mut self.walk.m_mr);
        MsgSrc::<WqeRead>::link(&mut self.m_wqe, &mut self.walk.m_wqe);
        MsgSink::<WqeData>::link(&mut self.s_wqe, &mut self.walk.s_wqe);
        MsgSrc::<WqeFree>::link(&mut self.m_free, &mut self.walk.m_free);
        MsgSink::<MrResp>::link(&mut self.s_mr, &mut self.found.s);
        MsgSrc::<PlaceOp>::join(&mut self.walk.m_op, &mut self.orders.s);
        MsgSrc::<Segment>::join(&mut self.walk.m_seg, &mut self.segments.s);
        self.m_move.data.next = self.mover.q.val();
        self.m_move.valid.next = self.mover_busy.q.val();
        if self.m_move.ready.val() {
            self.mover_busy.d.next = false;
        }
        self.m_done.data.next = self.done.q.val();
        self.m_done.valid.next = self.done_busy.q.val();
        if self.m_done.ready.val() {
            self.done_busy.d.next = false;
        }
        self.stat.next = self.events.q.val();
        self.events.d.next = bits::<2>(0);

        // The mark of the order at the head is read all the time; it is needed one cycle after the order shows.
        self.qpn.next = self.orders.m.data.val().qpn;
        self.marks.read_addr.next = self.qpn.val().get_bits::<LQ>(0);
        self.marks.write_addr.next = self.qpn.val().get_bits::<LQ>(0);
        self.marks.write_data.next.epoch = self.orders.m.data.val().epoch;
        self.marks.write_data.next.set = self.failed.q.val();
        self.marks.write_en.next = false;
        self.orders.m.ready.next = false;
        self.segments.m.ready.next = false;
        self.found.m.ready.next = false;
        self.same.next = self.marks.read_data.val().epoch == self.orders.m.data.val().epoch;
        self.data_op.next = (self.orders.m.data.val().kind == 1) | (self.orders.m.data.val().kind == 2);

        self.ready.next =
            self.segments.m.valid.val() & (self.found.m.valid.val() | !self.segments.m.data.val().lookup) & !self.mover_busy.q.val();
        self.bad.next = self.segments.m.data.val().status != 0;
        self.bad_status.next = self.segments.m.data.val().status;
        if self.segments.m.data.val().lookup {
            self.bad.next = self.found.m.data.val().status != 0;
            self.bad_status.next = bit_cast::<8, 3>(self.found.m.data.val().status) | 8;
            if self.found.m.data.val().status == 0 {
                self.bad_status.next = bits::<8>(0);
            }
        }
        self.placing.next =
            self.segments.m.data.val().lookup & !self.bad.val() & !self.failed.q.val() & !self.poisoned.q.val();

        match self.state.q.val() {
            State::Idle => {
                self.failed.d.next = false;
                self.status.d.next = bits::<8>(0);
                self.writes.d.next = bits::<8>(0);
                if self.orders.m.valid.val() {
                    self.state.d.next = State::Begin;
                }
            }
            State::Begin => {
                // Flushes and barriers are not stopped by a mark.
                self.poisoned.d.next = self.marks.read_data.val().set
                    & self.same.val()
                    & (self.data_op.val() | (self.orders.m.data.val().kind == 0));
                // A new life of the queue pair wipes the mark of an earlier one.
                self.marks.write_en.next = self.marks.read_data.val().set & !self.same.val() & self.data_op.val();
                self.state.d.next = State::Segments;
            }
            State::Segments => {
                if !self.mover_busy.q.val() {
                    self.mover.d.next.handle = self.orders.m.data.val().handle;
                    self.mover.d.next.off = self.segments.m.data.val().off;
                    self.mover.d.next.len = bits::<13>(0);
                    self.mover.d.next.iova = self.found.m.data.val().iova;
                    self.mover.d.next.function = self.orders.m.data.val().function;
                    self.mover.d.next.free = self.orders.m.data.val().has_frame & self.segments.m.data.val().last;
                }
                if self.ready.val() {
                    self.segments.m.ready.next = true;
                    self.found.m.ready.next = self.segments.m.data.val().lookup;
                    if self.placing.val() {
                        self.mover.d.next.len = self.segments.m.data.val().len;
                        self.writes.d.next = self.writes.q.val() + 1;
                    }
                    self.mover_busy.d.next = self.placing.val()
                        | (self.orders.m.data.val().has_frame & self.segments.m.data.val().last);
                    if self.bad.val() & !self.failed.q.val() & !self.poisoned.q.val() {
                        self.failed.d.next = true;
                        self.status.d.next = self.bad_status.val();
                    }
                    if self.segments.m.data.val().last {
                        self.state.d.next = State::Done;
                    }
                }
            }
            State::Done => {
                if !self.mover_busy.q.val() & !self.done_busy.q.val() {
                    self.done_busy.d.next = true;
                    self.orders.m.ready.next = true;
                    self.marks.write_en.next = self.failed.q.val();
                    if self.failed.q.val() {
                        self.events.d.next = bits::<2>(2);
                    }
                    if self.poisoned.q.val() {
                        self.events.d.next = bits::<2>(1);
                    }
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }

        if !self.done_busy.q.val() {
            self.done.d.next.qpn = self.orders.m.data.val().qpn;
            self.done.d.next.epoch = self.orders.m.data.val().epoch;
            self.done.d.next.function = self.orders.m.data.val().function;
            self.done.d.next.kind = self.orders.m.data.val().kind;
            self.done.d.next.writes = self.writes.q.val();
            self.done.d.next.status = self.status.q.val();
            self.done.d.next.access_local = self.orders.m.data.val().kind == 2;
            self.done.d.next.done = self.orders.m.data.val().done;
            self.done.d.next.cqe = self.orders.m.data.val().cqe;
            self.done.d.next.rcqn = self.orders.m.data.val().rcqn;
            self.done.d.next.opcode = self.orders.m.data.val().opcode;
            self.done.d.next.has_imm = self.orders.m.data.val().has_imm;
            self.done.d.next.imm = self.orders.m.data.val().imm;
            self.done.d.next.solicited = self.orders.m.data.val().solicited;
            self.done.d.next.byte_len = self.orders.m.data.val().byte_len;
            self.done.d.next.src_qpn = self.orders.m.data.val().src_qpn;
            self.done.d.next.rq_index = self.orders.m.data.val().rq_index;
            self.done.d.next.ack = self.orders.m.data.val().ack;
            self.done.d.next.syndrome = self.orders.m.data.val().syndrome;
            self.done.d.next.psn = self.orders.m.data.val().psn;
            self.done.d.next.msn = self.orders.m.data.val().msn;
            self.done.d.next.fatal = self.orders.m.data.val().fatal | self.failed.q.val();
            self.done.d.next.dest_qpn = self.orders.m.data.val().dest_qpn;
            self.done.d.next.ipv6 = self.orders.m.data.val().ipv6;
            self.done.d.next.vlan = self.orders.m.data.val().vlan;
            if self.poisoned.q.val() {
                self.done.d.next.kind = bits::<3>(0);
                self.done.d.next.ack = false;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.mover_busy.d.next = false;
            self.done_busy.d.next = false;
        }
    }
}
