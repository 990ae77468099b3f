//! Takes header ops from two ports in turn and gets each its path.

use crate::bus::MsgSink;
use crate::context::bus::CtxClient;
use crate::msg::HdrOp;
use crate::records::PathCtx;
use crate::stream::MsgSlice;
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Acquire,
    Line,
    Release,
}

/// Ops with their paths: `op`, `path`, `udp_len` and `abort` hold from `valid` to `take`.
#[derive(LogicBlock, Default)]
pub(super) struct PathFetch {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_op: [MsgSink<HdrOp>; 2],
    pub ctx: CtxClient<PathCtx>,
    pub valid: Signal<Out, Bit>,
    pub op: Signal<Out, HdrOp>,
    pub path: Signal<Out, PathCtx>,
    /// UDP header to ICRC, in bytes.
    pub udp_len: Signal<Out, Bits<16>>,
    /// No usable path.
    pub abort: Signal<Out, Bit>,
    pub take: Signal<In, Bit>,
    in0: MsgSlice<HdrOp>,
    in1: MsgSlice<HdrOp>,
    state: DFF<State>,
    /// Port served last.
    turn: DFF<Bit>,
    next_op: DFF<HdrOp>,
    next_len: DFF<Bits<16>>,
    full: DFF<Bit>,
    cur_op: DFF<HdrOp>,
    cur_path: DFF<PathCtx>,
    cur_len: DFF<Bits<16>>,
    cur_abort: DFF<Bit>,
    room: Signal<Local, Bit>,
    grab: Signal<Local, Bit>,
    pick1: Signal<Local, Bit>,
    fixed: Signal<Local, Bits<16>>,
}

impl Logic for PathFetch {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, turn, next_op, next_len, full, cur_op, cur_path, cur_len, cur_abort);
        clock!(self, clock, in0, in1);
        self.in0.reset.next = self.reset.val();
        self.in1.reset.next = self.reset.val();
        MsgSink::<HdrOp>::link(&mut self.s_op[0], &mut self.in0.s);
        MsgSink::<HdrOp>::link(&mut self.s_op[1], &mut self.in1.s);
        self.valid.next = self.full.q.val();
        self.op.next = self.cur_op.q.val();
        self.path.next = self.cur_path.q.val();
        self.udp_len.next = self.cur_len.q.val();
        self.abort.next = self.cur_abort.q.val();
        // UDP 8, BTH 12, ICRC 4 and the extension headers.
        self.fixed.next = bits::<16>(24);
        if self.next_op.q.val().has_reth {
            self.fixed.next = bits::<16>(40);
            if self.next_op.q.val().has_imm {
                self.fixed.next = bits::<16>(44);
            }
        } else if self.next_op.q.val().has_imm | self.next_op.q.val().has_aeth {
            self.fixed.next = bits::<16>(28);
        }
        self.next_len.d.next = self.fixed.val()
            + bit_cast::<16, 13>(self.next_op.q.val().pay_len)
            + bit_cast::<16, 2>(self.next_op.q.val().pad);
        // The context port
        self.ctx.acq_valid.next = false;
        self.ctx.acq_id.next = self.next_op.q.val().qpn;
        self.ctx.acq_tag.next = bits::<4>(0);
        self.ctx.line_ready.next = false;
        self.ctx.rel_valid.next = false;
        self.ctx.rel_id.next = self.next_op.q.val().qpn;
        self.ctx.rel_dirty.next = false;
        self.ctx.rel_data.next = self.cur_path.q.val();
        self.room.next = !self.full.q.val() | self.take.val();
        self.grab.next = false;
        if self.take.val() {
            self.full.d.next = false;
        }
        match self.state.q.val() {
            State::Idle => {
                self.grab.next = true;
            }
            State::Acquire => {
                self.ctx.acq_valid.next = true;
                if self.ctx.acq_ready.val() {
                    self.state.d.next = State::Line;
                }
            }
            State::Line => {
                self.ctx.line_ready.next = self.room.val();
                if self.ctx.line_valid.val() & self.room.val() {
                    self.full.d.next = true;
                    self.cur_op.d.next = self.next_op.q.val();
                    self.cur_path.d.next = self.ctx.line_data.val();
                    self.cur_len.d.next = self.next_len.q.val();
                    self.cur_abort.d.next = self.ctx.line_fault.val() | !self.ctx.line_data.val().valid;
                    self.state.d.next = State::Release;
                    if self.ctx.line_fault.val() {
                        self.state.d.next = State::Idle;
                    }
                }
            }
            State::Release => {
                self.ctx.rel_valid.next = true;
                if self.ctx.rel_ready.val() {
                    self.grab.next = true;
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        // Arbitration: the port not served last goes first.
        self.pick1.next = self.in1.m.valid.val() & (!self.in0.m.valid.val() | !self.turn.q.val());
        self.in0.m.ready.next = self.grab.val() & !self.pick1.val();
        self.in1.m.ready.next = self.grab.val() & self.pick1.val();
        if self.grab.val() & (self.in0.m.valid.val() | self.in1.m.valid.val()) {
            self.state.d.next = State::Acquire;
            self.turn.d.next = self.pick1.val();
            self.next_op.d.next = self.in0.m.data.val();
            if self.pick1.val() {
                self.next_op.d.next = self.in1.m.data.val();
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.full.d.next = false;
        }
    }
}
