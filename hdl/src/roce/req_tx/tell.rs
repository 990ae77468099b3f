//! Everything that leaves besides packet orders has a register here.

use crate::bus::MsgSrc;
use crate::codes::send_command;
use crate::msg::{CqeReq, MrWork, SqCmd, SqWqe, TimerCmd, TrackWrite, TxDone, WqeFree};
use crate::prim::pack::Cast;
use crate::records::{ReqCtx, WqeHead};
use ferric_abi::codes::{CqeStatus, WrOpcode};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// A record loads while its register is empty; a pulse only makes it valid.
#[derive(LogicBlock, Default)]
pub struct Tell {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulses: the queue parks; the request is done with, with `status`; it is flushed; the retransmission timer starts; the buffer goes back; the request
    /// enters the tracker; the key unit executes it.
    pub park: Signal<In, Bit>,
    pub finish: Signal<In, Bit>,
    pub flush: Signal<In, Bit>,
    pub start: Signal<In, Bit>,
    pub give_back: Signal<In, Bit>,
    pub enter: Signal<In, Bit>,
    pub execute: Signal<In, Bit>,
    pub line: Signal<In, ReqCtx>,
    pub wqe: Signal<In, SqWqe>,
    pub status: Signal<In, Bits<8>>,
    /// Epoch of the ring behind a park.
    pub after: Signal<In, Bits<8>>,
    /// As in [`super::plan::Plan`].
    pub nop: Signal<In, Bit>,
    pub drains: Signal<In, Bit>,
    pub last_psn: Signal<In, Bits<24>>,
    pub ticks: Signal<In, Bits<32>>,
    /// A command, a timer's start or a tracker entry is still here and must be out before the line is given back; something of the rest is still here
    /// and must be out before the next line is asked for.
    pub commands: Signal<Out, Bit>,
    pub others: Signal<Out, Bit>,
    /// A buffer that goes back is still here.
    pub freeing: Signal<Out, Bit>,
    pub m_cmd: MsgSrc<SqCmd>,
    pub m_done: MsgSrc<TxDone>,
    pub m_cqe: MsgSrc<CqeReq>,
    pub m_timer: MsgSrc<TimerCmd>,
    pub m_free: MsgSrc<WqeFree>,
    pub m_track: MsgSrc<TrackWrite>,
    pub m_work: MsgSrc<MrWork>,
    head: Cast<Bits<256>, WqeHead>,
    cmd: DFF<SqCmd>,
    cmd_valid: DFF<Bit>,
    done: DFF<TxDone>,
    done_valid: DFF<Bit>,
    cqe: DFF<CqeReq>,
    cqe_valid: DFF<Bit>,
    timer: DFF<TimerCmd>,
    timer_valid: DFF<Bit>,
    free: DFF<WqeFree>,
    free_valid: DFF<Bit>,
    track: DFF<TrackWrite>,
    track_valid: DFF<Bit>,
    work: DFF<MrWork>,
    work_valid: DFF<Bit>,
    opcode: Signal<Local, Bits<8>>,
    sge: Signal<Local, Bits<128>>,
    access: Signal<Local, Bits<32>>,
}

#[kernel]
impl Logic for Tell {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, cmd, cmd_valid, done, done_valid, cqe, cqe_valid, timer, timer_valid, free, free_valid, track, track_valid, work, work_valid);
        self.m_cmd.data.next = self.cmd.q.val();
        self.m_cmd.valid.next = self.cmd_valid.q.val();
        self.m_done.data.next = self.done.q.val();
        self.m_done.valid.next = self.done_valid.q.val();
        self.m_cqe.data.next = self.cqe.q.val();
        self.m_cqe.valid.next = self.cqe_valid.q.val();
        self.m_timer.data.next = self.timer.q.val();
        self.m_timer.valid.next = self.timer_valid.q.val();
        self.m_free.data.next = self.free.q.val();
        self.m_free.valid.next = self.free_valid.q.val();
        self.m_track.data.next = self.track.q.val();
        self.m_track.valid.next = self.track_valid.q.val();
        self.m_work.data.next = self.work.q.val();
        self.m_work.valid.next = self.work_valid.q.val();
        self.cmd_valid.d.next = self.cmd_valid.q.val() & !self.m_cmd.ready.val();
        if self.park.val() {
            self.cmd_valid.d.next = true;
        }
        self.done_valid.d.next = self.done_valid.q.val() & !self.m_done.ready.val();
        if self.finish.val() {
            self.done_valid.d.next = true;
        }
        self.cqe_valid.d.next = self.cqe_valid.q.val() & !self.m_cqe.ready.val();
        if self.flush.val() {
            self.cqe_valid.d.next = true;
        }
        self.timer_valid.d.next = self.timer_valid.q.val() & !self.m_timer.ready.val();
        if self.start.val() {
            self.timer_valid.d.next = true;
        }
        self.free_valid.d.next = self.free_valid.q.val() & !self.m_free.ready.val();
        if self.give_back.val() {
            self.free_valid.d.next = true;
        }
        self.track_valid.d.next = self.track_valid.q.val() & !self.m_track.ready.val();
        if self.enter.val() {
            self.track_valid.d.next = true;
        }
        self.work_valid.d.next = self.work_valid.q.val() & !self.m_work.ready.val();
        if self.execute.val() {
            self.work_valid.d.next = true;
        }
        self.commands.next = self.cmd_valid.q.val() | self.timer_valid.q.val() | self.track_valid.q.val();
        self.freeing.next = self.free_valid.q.val();
        self.others.next = self.done_valid.q.val() | self.cqe_valid.q.val() | self.free_valid.q.val() | self.work_valid.q.val();

        self.head.x.next = self.wqe.val().head;
        self.opcode.next = self.head.y.val().opcode;
        self.sge.next = self.wqe.val().sge;
        self.access.next = self.head.y.val().imm;
        if !self.cmd_valid.q.val() {
            self.cmd.d.next.qpn = self.wqe.val().qpn;
            self.cmd.d.next.op = bits::<2>(send_command::PARK);
            self.cmd.d.next.index = self.wqe.val().index;
            self.cmd.d.next.epoch = self.after.val();
        }
        if !self.done_valid.q.val() {
            self.done.d.next.qpn = self.wqe.val().qpn;
            self.done.d.next.epoch = self.wqe.val().epoch;
            self.done.d.next.psn = self.line.val().next_psn;
            self.done.d.next.wqe_index = self.wqe.val().index;
            self.done.d.next.status = self.status.val();
        }
        if !self.cqe_valid.q.val() {
            self.cqe.d.next.cqn = self.line.val().scqn;
            self.cqe.d.next.function = self.line.val().function;
            self.cqe.d.next.qpn = self.wqe.val().qpn;
            self.cqe.d.next.wqe_index = self.wqe.val().index;
            self.cqe.d.next.status = bits::<8>(CqeStatus::WrFlush as u64);
        }
        if !self.timer_valid.q.val() {
            self.timer.d.next.qpn = self.wqe.val().qpn;
            self.timer.d.next.start = true;
            self.timer.d.next.ticks = self.ticks.val();
        }
        if !self.free_valid.q.val() {
            self.free.d.next.handle = self.wqe.val().handle;
        }
        if !self.work_valid.q.val() {
            self.work.d.next.register = self.opcode.val() == WrOpcode::RegMr as u64;
            self.work.d.next.bind = self.opcode.val() == WrOpcode::BindMw as u64;
            self.work.d.next.key = self.head.y.val().rkey;
            if self.drains.val() {
                self.work.d.next.key = self.head.y.val().imm;
            }
            self.work.d.next.pd = self.line.val().pd;
            self.work.d.next.function = self.line.val().function;
            self.work.d.next.qpn = self.wqe.val().qpn;
            self.work.d.next.index = self.wqe.val().index;
            self.work.d.next.access = self.access.val().get_bits::<4>(1);
            self.work.d.next.page_size = self.access.val().get_bits::<2>(5);
            self.work.d.next.start = self.head.y.val().raddr;
            self.work.d.next.table = self.sge.val().get_bits::<64>(0);
            self.work.d.next.length = self.sge.val().get_bits::<64>(64);
        }
        if !self.track_valid.q.val() {
            self.track.d.next.qpn = self.wqe.val().qpn;
            self.track.d.next.index = self.wqe.val().index;
            self.track.d.next.last_psn = self.last_psn.val();
            if self.nop.val() {
                self.track.d.next.last_psn = self.line.val().next_psn - 1;
            }
            self.track.d.next.signaled = self.head.y.val().signaled | self.line.val().sig_all;
            self.track.d.next.opcode = self.opcode.val().get_bits::<4>(0);
        }
        if self.reset.val() {
            self.cmd_valid.d.next = false;
            self.done_valid.d.next = false;
            self.cqe_valid.d.next = false;
            self.timer_valid.d.next = false;
            self.free_valid.d.next = false;
            self.track_valid.d.next = false;
            self.work_valid.d.next = false;
        }
    }
}
