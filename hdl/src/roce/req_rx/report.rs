//! What req_rx tells others: one register per port, loaded while empty.

use super::kind;
use super::{Event, RnrTicks};
use crate::bus::MsgSrc;
use crate::codes::send_command;
use crate::msg::{CqeReq, EqeReq, SqCmd, TimerCmd, TrackEntry};
use crate::records::ReqCtx;
use ferric_abi::codes::{CqeStatus, EventKind};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Each `put_*` sends one record made from the inputs of that cycle; it must not be given while `*_busy`.
#[derive(LogicBlock, Default)]
pub struct Reports {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub line: Signal<In, ReqCtx>,
    pub ev: Signal<In, Event>,
    pub entry: Signal<In, TrackEntry>,
    /// `CqeStatus` of a failure.
    pub status: Signal<In, Bits<8>>,
    /// Index behind the oldest work request without completion, epoch after the present one.
    pub follower: Signal<In, Bits<16>>,
    pub after: Signal<In, Bits<8>>,
    /// Retransmission time.
    pub ticks: Signal<In, Bits<32>>,
    pub put_cmd: Signal<In, Bit>,
    pub cmd_op: Signal<In, Bits<2>>,
    pub put_cqe: Signal<In, Bit>,
    pub put_timer: Signal<In, Bit>,
    pub timer_start: Signal<In, Bit>,
    /// The RNR timer, with the time the event's syndrome asks for.
    pub timer_rnr: Signal<In, Bit>,
    pub put_async: Signal<In, Bit>,
    /// With `put_async`: the queue pair is drained.
    pub drained: Signal<In, Bit>,
    /// The oldest request failed with `status`: CQE with it, flush behind it, an event of our own. Else the CQE is a success
    /// or the failure is the responder half's.
    pub blame: Signal<In, Bit>,
    pub cmd_busy: Signal<Out, Bit>,
    pub cqe_busy: Signal<Out, Bit>,
    pub timer_busy: Signal<Out, Bit>,
    pub async_busy: Signal<Out, Bit>,
    pub m_cmd: MsgSrc<SqCmd>,
    pub m_cqe: MsgSrc<CqeReq>,
    pub m_timer: MsgSrc<TimerCmd>,
    pub m_async: MsgSrc<EqeReq>,
    rnr: RnrTicks,
    cmd: DFF<SqCmd>,
    cmd_valid: DFF<Bit>,
    cqe: DFF<CqeReq>,
    cqe_valid: DFF<Bit>,
    timer: DFF<TimerCmd>,
    timer_valid: DFF<Bit>,
    notice: DFF<EqeReq>,
    notice_valid: DFF<Bit>,
    syndrome: Signal<Local, Bits<8>>,
}

#[kernel]
impl Logic for Reports {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, cmd, cmd_valid, cqe, cqe_valid, timer, timer_valid, notice, notice_valid);
        self.m_cmd.data.next = self.cmd.q.val();
        self.m_cmd.valid.next = self.cmd_valid.q.val();
        self.m_cqe.data.next = self.cqe.q.val();
        self.m_cqe.valid.next = self.cqe_valid.q.val();
        self.m_timer.data.next = self.timer.q.val();
        self.m_timer.valid.next = self.timer_valid.q.val();
        self.m_async.data.next = self.notice.q.val();
        self.m_async.valid.next = self.notice_valid.q.val();
        self.cmd_busy.next = self.cmd_valid.q.val();
        self.cqe_busy.next = self.cqe_valid.q.val();
        self.timer_busy.next = self.timer_valid.q.val();
        self.async_busy.next = self.notice_valid.q.val();
        self.cmd_valid.d.next = self.put_cmd.val() | (self.cmd_valid.q.val() & !self.m_cmd.ready.val());
        self.cqe_valid.d.next = self.put_cqe.val() | (self.cqe_valid.q.val() & !self.m_cqe.ready.val());
        self.timer_valid.d.next = self.put_timer.val() | (self.timer_valid.q.val() & !self.m_timer.ready.val());
        self.notice_valid.d.next = self.put_async.val() | (self.notice_valid.q.val() & !self.m_async.ready.val());

        if !self.cmd_valid.q.val() {
            self.cmd.d.next.qpn = self.ev.val().qpn;
            self.cmd.d.next.index = self.line.val().una_index;
            self.cmd.d.next.epoch = self.after.val();
            self.cmd.d.next.op = self.cmd_op.val();
            if self.cmd_op.val() == send_command::FLUSH {
                self.cmd.d.next.index = self.line.val().done_index;
                if self.blame.val() {
                    self.cmd.d.next.index = self.follower.val();
                }
            }
        }
        self.syndrome.next = self.ev.val().syndrome;
        self.rnr.code.next = self.syndrome.val().get_bits::<5>(0);
        if !self.timer_valid.q.val() {
            self.timer.d.next.qpn = self.ev.val().qpn;
            self.timer.d.next.start = self.timer_start.val();
            self.timer.d.next.kind = self.timer_rnr.val();
            self.timer.d.next.ticks = self.ticks.val();
            if self.timer_rnr.val() {
                self.timer.d.next.ticks = bit_cast::<32, 20>(self.rnr.ticks.val());
            }
        }
        if !self.cqe_valid.q.val() {
            self.cqe.d.next.cqn = self.line.val().scqn;
            self.cqe.d.next.function = self.line.val().function;
            self.cqe.d.next.qpn = self.ev.val().qpn;
            self.cqe.d.next.wqe_index = self.line.val().done_index;
            self.cqe.d.next.status = bits::<8>(0);
            self.cqe.d.next.opcode = bit_cast::<8, 4>(self.entry.val().opcode);
            self.cqe.d.next.syndrome = bits::<8>(0);
            if self.blame.val() {
                self.cqe.d.next.status = self.status.val();
                self.cqe.d.next.opcode = bits::<8>(0);
                if self.ev.val().kind == kind::NAK_FATAL {
                    self.cqe.d.next.syndrome = self.syndrome.val();
                }
                if self.ev.val().kind == kind::QUIET {
                    self.cqe.d.next.syndrome = self.line.val().error_syndrome;
                }
            }
        }
        if !self.notice_valid.q.val() {
            // The peer's protection violation, or the queue pair's own failure (`abi::codes::EventKind`).
            self.notice.d.next.kind = bits::<8>(EventKind::QpError as u64);
            if !self.blame.val() & (self.status.val() == CqeStatus::RemoteAccess as u64) {
                self.notice.d.next.kind = bits::<8>(EventKind::QpAccessError as u64);
            }
            if self.drained.val() {
                self.notice.d.next.kind = bits::<8>(EventKind::SqDrained as u64);
            }
            self.notice.d.next.eqn = self.line.val().eqn;
            self.notice.d.next.id = self.ev.val().qpn;
            self.notice.d.next.cause = bit_cast::<16, 8>(self.status.val());
        }
        if self.reset.val() {
            self.cmd_valid.d.next = false;
            self.cqe_valid.d.next = false;
            self.timer_valid.d.next = false;
            self.notice_valid.d.next = false;
        }
    }
}
