//! Gets each header op its path, and has added up what the IPv4 checksum covers.

use crate::bus::MsgSink;
use crate::context::bus::CtxClient;
use crate::msg::HdrOp;
use crate::net::header::sum::Ip4Sum;
use crate::records::PathCtx;
use crate::stream::MsgSlice;
use ferric_abi::csr::SPECIAL;
use ferric_abi::wire::{protocol, Aeth, AtomicAckEth, AtomicEth, Bth, Deth, ImmDt, Reth, Udp, ICRC_BYTES};
use ferric_hdl_derive::kernel;
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// UDP header, BTH and ICRC.
const FIXED: usize = Udp::BYTES + Bth::BYTES + ICRC_BYTES;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Acquire,
    Line,
    Release,
}

/// `LJ`: log2 of the queue pairs in a function's share. Ops of one port with their paths: `op`, `path`, `udp_len`, `abort` and `total` hold from `valid` to `take`. One in three cycles.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct PathFetch<const LJ: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_op: MsgSink<HdrOp>,
    pub ctx: CtxClient<PathCtx>,
    pub valid: Signal<Out, Bit>,
    pub op: Signal<Out, HdrOp>,
    pub path: Signal<Out, PathCtx>,
    /// UDP header to ICRC, in bytes.
    pub udp_len: Signal<Out, Bits<16>>,
    /// No usable path.
    pub abort: Signal<Out, Bit>,
    /// Sum of the words of the IPv4 header without its checksum.
    pub total: Signal<Out, Bits<20>>,
    pub take: Signal<In, Bit>,
    inp: MsgSlice<HdrOp>,
    state: DFF<State>,
    next_op: DFF<HdrOp>,
    next_len: DFF<Bits<16>>,
    full: DFF<Bit>,
    /// `sum` belongs to the op.
    summed: DFF<Bit>,
    #[init(Ip4Sum::new(protocol::UDP))]
    sum: Ip4Sum,
    cur_op: DFF<HdrOp>,
    cur_path: DFF<PathCtx>,
    cur_len: DFF<Bits<16>>,
    cur_abort: DFF<Bit>,
    room: Signal<Local, Bit>,
    grab: Signal<Local, Bit>,
    line: Signal<Local, PathCtx>,
    address: Signal<Local, Bits<64>>,
    qkey: Signal<Local, Bits<32>>,
    own: Signal<Local, Bit>,
    place: Signal<Local, Bits<24>>,
    #[init(Constant::new(((1u64 << LJ) - 1).to_bits()))]
    within: Constant<Bits<24>>,
    #[init(Constant::new(SPECIAL.to_bits()))]
    special: Constant<Bits<24>>,
    fixed: Signal<Local, Bits<16>>,
}

#[kernel]
impl<const LJ: usize> Logic for PathFetch<LJ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, next_op, next_len, full, summed, cur_op, cur_path, cur_len, cur_abort);
        clock!(self, clock, inp, sum);
        self.inp.reset.next = self.reset.val();
        MsgSink::<HdrOp>::link(&mut self.s_op, &mut self.inp.s);
        self.valid.next = self.full.q.val() & self.summed.q.val();
        self.total.next = self.sum.total.val();
        self.summed.d.next = self.full.q.val() & !self.take.val();
        // A datagram brings its destination; source, tag and P_Key are the queue pair's.
        self.line.next = self.ctx.line_data.val();
        self.address.next = self.next_op.q.val().raddr;
        if self.next_op.q.val().has_deth {
            self.line.next.dmac = self.address.val().get_bits::<48>(0);
            self.line.next.tclass = self.address.val().get_bits::<8>(48);
            self.line.next.hop_limit = self.address.val().get_bits::<8>(56);
            self.line.next.dip = (bit_cast::<128, 64>(self.next_op.q.val().compare) << 64) | bit_cast::<128, 64>(self.next_op.q.val().operand);
        }
        // IBTA 10.2.4: the highest bit of a work request's Q_Key asks for the queue pair's own.
        self.qkey.next = self.next_op.q.val().rkey;
        self.own.next = self.next_op.q.val().has_deth & self.qkey.val().get_bit(31);
        self.place.next = self.next_op.q.val().qpn & self.within.val();
        self.sum.path.next = self.line.val();
        self.sum.length.next = self.next_len.q.val();
        self.sum.load.next = false;
        self.op.next = self.cur_op.q.val();
        self.path.next = self.cur_path.q.val();
        self.udp_len.next = self.cur_len.q.val();
        self.abort.next = self.cur_abort.q.val();
        // UDP 8, BTH 12, ICRC 4 and the extension headers.
        self.fixed.next = bits::<16>(FIXED as u64);
        if self.next_op.q.val().has_reth {
            self.fixed.next = bits::<16>((FIXED + Reth::BYTES) as u64);
            if self.next_op.q.val().has_imm {
                self.fixed.next = bits::<16>((FIXED + Reth::BYTES + ImmDt::BYTES) as u64);
            }
        } else if self.next_op.q.val().has_atomic {
            self.fixed.next = bits::<16>((FIXED + AtomicEth::BYTES) as u64);
        } else if self.next_op.q.val().has_atomic_ack {
            self.fixed.next = bits::<16>((FIXED + Aeth::BYTES + AtomicAckEth::BYTES) as u64);
        } else if self.next_op.q.val().has_deth {
            self.fixed.next = bits::<16>((FIXED + Deth::BYTES) as u64);
            if self.next_op.q.val().has_imm {
                self.fixed.next = bits::<16>((FIXED + Deth::BYTES + ImmDt::BYTES) as u64);
            }
        } else if self.next_op.q.val().has_imm | self.next_op.q.val().has_aeth {
            self.fixed.next = bits::<16>((FIXED + ImmDt::BYTES) as u64);
        }
        self.next_len.d.next = self.fixed.val() + bit_cast::<16, 13>(self.next_op.q.val().pay_len) + bit_cast::<16, 2>(self.next_op.q.val().pad);
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
                    self.summed.d.next = false;
                    self.sum.load.next = true;
                    self.cur_op.d.next = self.next_op.q.val();
                    // What others are told: special queue pairs are number 1, whosever they are.
                    if self.place.val() == self.special.val() {
                        self.cur_op.d.next.qpn = self.special.val();
                    }
                    if self.own.val() {
                        self.cur_op.d.next.rkey = self.ctx.line_data.val().qkey;
                    }
                    self.cur_path.d.next = self.line.val();
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
        self.inp.m.ready.next = self.grab.val();
        if self.grab.val() & self.inp.m.valid.val() {
            self.state.d.next = State::Acquire;
            self.next_op.d.next = self.inp.m.data.val();
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.full.d.next = false;
        }
    }
}
