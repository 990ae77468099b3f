//! The rest of an event, when nothing more is to be retired: timers, going on, going back, failing.

use super::{kind, STATS};
use super::{Event, State};
use crate::codes::{local, send_command};
use crate::records::ReqCtx;
use crate::stats::flags;
use ferric_abi::codes::{CqeStatus, QpState, QpType};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// The states from `Finish` to `Fatal`, without registers: what each does to the line and tells `Reports`. In other states nothing is told and the line
/// stays as it is.
#[derive(LogicBlock, Default)]
pub struct Conclude {
    pub state: Signal<In, State>,
    pub ev: Signal<In, Event>,
    pub line: Signal<In, ReqCtx>,
    /// `una_psn` moved.
    pub progress: Signal<In, Bit>,
    /// A failure's status; whether it is the requester's own; an RNR NAK is being handled.
    pub status: Signal<In, Bits<8>>,
    pub blame: Signal<In, Bit>,
    pub park: Signal<In, Bit>,
    /// See `Window`.
    pub behind: Signal<In, Bit>,
    pub flying: Signal<In, Bit>,
    pub room: Signal<In, Bit>,
    pub may_ask: Signal<In, Bit>,
    pub idle: Signal<In, Bit>,
    pub complete: Signal<In, Bit>,
    pub lag: Signal<In, Bit>,
    pub ahead: Signal<In, Bit>,
    pub bytes: Signal<In, Bits<32>>,
    pub within: Signal<In, Bit>,
    /// See `Reports`; a place for the report to the responder half.
    pub cqe_busy: Signal<In, Bit>,
    pub timer_busy: Signal<In, Bit>,
    pub async_busy: Signal<In, Bit>,
    pub error_ready: Signal<In, Bit>,
    /// What comes next, and the line then.
    pub then: Signal<Out, State>,
    pub new: Signal<Out, ReqCtx>,
    pub dirty: Signal<Out, Bit>,
    pub status_after: Signal<Out, Bits<8>>,
    pub park_after: Signal<Out, Bit>,
    /// The line may go back already.
    pub early: Signal<Out, Bit>,
    /// The epoch behind the present one.
    pub after: Signal<Out, Bits<8>>,
    /// See `Reports` (`told` is its `drained`, `blamed` its `blame`).
    pub put_cmd: Signal<Out, Bit>,
    pub cmd_op: Signal<Out, Bits<2>>,
    pub put_cqe: Signal<Out, Bit>,
    pub put_timer: Signal<Out, Bit>,
    pub timer_start: Signal<Out, Bit>,
    pub timer_rnr: Signal<Out, Bit>,
    pub put_async: Signal<Out, Bit>,
    pub told: Signal<Out, Bit>,
    pub blamed: Signal<Out, Bit>,
    /// The responder half hears of the failure.
    pub put_error: Signal<Out, Bit>,
    /// It is to be told when all answers accepted so far are in host memory.
    pub put_mark: Signal<Out, Bit>,
    /// See `STATS`.
    pub stat: Signal<Out, Bits<13>>,
    restarts: Signal<Local, Bit>,
    resumes: Signal<Local, Bit>,
    /// In SQD, all that had begun is complete, and nobody has been told.
    tells: Signal<Local, Bit>,
    /// The send queue alone fails: of UC and UD, by a request of its own.
    alone: Signal<Local, Bit>,
    flushed: Signal<Local, Bit>,
    /// The failure's turn has come, and answers may be on their way to the buffers of what it is going to complete.
    turn: Signal<Local, Bit>,
    hushes: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Conclude {
    #[hdl_gen]
    fn update(&mut self) {
        // A running timer is started anew, or stopped when nothing is in flight; a queue that waits for room goes on.
        self.restarts.next = self.progress.val() & self.line.val().timer_on;
        self.resumes.next =
            self.line.val().parked & self.room.val() & self.may_ask.val() & self.idle.val() & !(self.line.val().local == local::UNDER_WAY) & !(self.line.val().state == QpState::Sqd as u64);
        self.tells.next = (self.line.val().state == QpState::Sqd as u64) & !self.line.val().drained & self.complete.val();
        self.alone.next = self.blame.val() & ((self.line.val().qp_type == QpType::Uc as u64) | (self.line.val().qp_type == QpType::Ud as u64));
        self.flushed.next = self.line.val().state == QpState::SqError as u64;
        // Whoever gets the line next may see a timer about to be started anew, but no other command on its way.
        self.early.next = (self.state.val() == State::Settle)
            & !self.tells.val()
            & (self.line.val().rnr_wait | (!self.behind.val() & !self.resumes.val() & (!self.restarts.val() | (self.flying.val() & !self.timer_busy.val()))));
        self.after.next = self.line.val().epoch + 1;
        self.then.next = self.state.val();
        self.new.next = self.line.val();
        self.dirty.next = false;
        self.status_after.next = self.status.val();
        self.park_after.next = self.park.val();
        self.put_cmd.next = false;
        self.cmd_op.next = bits::<2>(send_command::RESUME);
        self.put_cqe.next = false;
        self.put_timer.next = false;
        self.timer_start.next = false;
        self.timer_rnr.next = false;
        self.put_async.next = false;
        self.told.next = false;
        self.blamed.next = false;
        self.put_error.next = false;
        self.put_mark.next = false;
        self.turn.next = !self.lag.val() | (self.ev.val().kind == kind::PLACED) | (self.ev.val().kind == kind::QUIET);
        self.hushes.next = (((self.state.val() == State::Fail) & self.turn.val()) | (self.state.val() == State::Fatal)) & self.line.val().rd_out.any() & !(self.ev.val().kind == kind::QUIET);
        self.stat.next = bits::<13>(0);

        match self.state.val() {
            State::Finish => {
                self.then.next = State::Settle;
                match self.ev.val().kind.index() {
                    kind::RNR => {
                        if !self.line.val().rnr_wait {
                            self.stat.next = bits::<13>(flags(STATS, &["rnr_received"]) as u64);
                            self.dirty.next = true;
                            self.park_after.next = true;
                            self.new.next.rnr_wait = true;
                            self.then.next = State::Distance;
                            if !self.line.val().rnr_retry.all() {
                                self.new.next.rnr_left = self.line.val().rnr_left - 1;
                                if self.line.val().rnr_left == 0 {
                                    self.status_after.next = bits::<8>(CqeStatus::RnrRetryExceeded as u64);
                                    self.then.next = State::Fail;
                                }
                            }
                        }
                    }
                    kind::NAK_SEQUENCE => {
                        self.stat.next = bits::<13>(flags(STATS, &["nak_seq_received"]) as u64);
                        if !self.line.val().rnr_wait {
                            self.then.next = State::Distance;
                        }
                    }
                    kind::NAK_FATAL => self.then.next = State::Fail,
                    _ => {}
                }
            }
            State::Settle => {
                if self.line.val().rnr_wait {
                    self.then.next = State::Release;
                } else if self.behind.val() {
                    // Acknowledged beyond the packet a retransmission was about to send.
                    self.then.next = State::Distance;
                } else if !self.restarts.val() | !self.timer_busy.val() {
                    self.then.next = State::Release;
                    if self.restarts.val() {
                        self.put_timer.next = true;
                        self.timer_start.next = self.flying.val();
                        self.new.next.timer_on = self.flying.val();
                    }
                    if self.resumes.val() {
                        self.dirty.next = true;
                        self.new.next.parked = false;
                        self.put_cmd.next = true;
                    }
                    if self.tells.val() {
                        self.then.next = State::Drained;
                    }
                }
            }
            State::Drained => {
                if !self.async_busy.val() {
                    self.put_async.next = true;
                    self.told.next = true;
                    self.dirty.next = true;
                    self.new.next.drained = true;
                    self.then.next = State::Release;
                }
            }
            State::Distance => {
                self.then.next = State::Rewind;
            }
            State::Rewind => {
                // Parked for the RNR timer nothing is sent again yet.
                if !self.park.val() {
                    self.stat.next = bits::<13>(flags(STATS, &["retransmits"]) as u64);
                }
                self.dirty.next = true;
                self.put_cmd.next = true;
                self.cmd_op.next = bit_cast::<2, 1>(self.park.val().into());
                self.put_timer.next = self.line.val().timer_on | self.park.val();
                self.timer_start.next = self.park.val();
                self.timer_rnr.next = self.park.val();
                self.new.next.timer_on = false;
                self.new.next.next_psn = self.line.val().una_psn;
                self.new.next.next_index = self.line.val().una_index;
                self.new.next.msg_offset = self.bytes.val();
                self.new.next.in_msg = self.within.val();
                self.new.next.epoch = self.after.val();
                self.new.next.parked = false;
                self.then.next = State::Release;
            }
            State::Fail => {
                self.blamed.next = true;
                if !self.turn.val() {
                    // Requests before it are not completed yet: its turn comes when they are.
                    // Only the oldest failure counts: what failed locally behind it is flushed.
                    self.dirty.next = true;
                    if !self.line.val().error_pending | self.ahead.val() {
                        self.new.next.error_pending = true;
                        self.new.next.error_index = self.line.val().una_index;
                        self.new.next.error_status = self.status.val();
                    }
                    self.then.next = State::Release;
                } else if !self.cqe_busy.val() & !self.hushes.val() {
                    self.put_cqe.next = true;
                    self.then.next = State::Fatal;
                }
                match self.status.val().index() {
                    CqeStatus::BadResponse => self.stat.next = bits::<13>(flags(STATS, &["bad_response"]) as u64),
                    CqeStatus::RemoteInvalidRequest => self.stat.next = bits::<13>(flags(STATS, &["nak_inv_received"]) as u64),
                    CqeStatus::RemoteAccess => self.stat.next = bits::<13>(flags(STATS, &["nak_access_received"]) as u64),
                    CqeStatus::RemoteOperation => self.stat.next = bits::<13>(flags(STATS, &["nak_op_received"]) as u64),
                    CqeStatus::RetryExceeded => self.stat.next = bits::<13>(flags(STATS, &["retry_exceeded"]) as u64),
                    CqeStatus::RnrRetryExceeded => self.stat.next = bits::<13>(flags(STATS, &["rnr_exceeded"]) as u64),
                    _ => {}
                }
                if self.cqe_busy.val() | !self.turn.val() | self.hushes.val() {
                    self.stat.next = bits::<13>(0);
                }
            }
            State::Fatal => {
                // The failure's CQE is with the completion writer before the flush begins.
                self.blamed.next = self.blame.val();
                self.cmd_op.next = bits::<2>(send_command::FLUSH);
                if !self.cqe_busy.val() & !self.async_busy.val() & self.error_ready.val() & !self.hushes.val() {
                    self.dirty.next = true;
                    self.new.next.state = bits::<3>(QpState::Error as u64);
                    if self.alone.val() {
                        // Receives go on, and so does the responder (IBTA 10.3.1).
                        self.new.next.state = bits::<3>(QpState::SqError as u64);
                    }
                    // In SQ error all is flushed, or being flushed, already.
                    if !self.flushed.val() {
                        self.new.next.epoch = self.after.val();
                    }
                    self.new.next.timer_on = false;
                    self.new.next.rnr_wait = false;
                    self.new.next.parked = false;
                    self.put_cmd.next = !self.flushed.val();
                    self.put_timer.next = true;
                    self.put_async.next = !self.alone.val();
                    self.put_error.next = self.blame.val() & !self.alone.val();
                    self.then.next = State::Release;
                }
            }
            _ => {}
        }
        // The buffers are the program's once anything says so: the queue pair ends at once, its completions wait until what was accepted has been written.
        if self.hushes.val() {
            self.dirty.next = true;
            self.new.next.state = bits::<3>(QpState::Error as u64);
            self.new.next.timer_on = false;
            self.new.next.rnr_wait = false;
            self.new.next.parked = false;
            self.put_timer.next = true;
            self.new.next.dying = true;
            self.new.next.blamed = self.blamed.val();
            self.new.next.error_status = self.status.val();
            self.new.next.error_syndrome = bits::<8>(0);
            if self.ev.val().kind == kind::NAK_FATAL {
                self.new.next.error_syndrome = self.ev.val().syndrome;
            }
            self.put_mark.next = true;
            self.then.next = State::Release;
        }
    }
}
