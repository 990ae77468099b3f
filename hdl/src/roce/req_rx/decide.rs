//! What an event means, the first cycle it is looked at with its line.

use super::{kind, STATS};
use super::{Event, State};
use crate::codes::local;
use crate::records::ReqCtx;
use crate::stats::flags;
use ferric_abi::codes::{CqeStatus, QpState};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// No state of its own: everything holds for the event and the line of this cycle, which the owner has in registers.
#[derive(LogicBlock, Default)]
pub struct Decide {
    pub ev: Signal<In, Event>,
    pub line: Signal<In, ReqCtx>,
    /// There is no such line.
    pub missing: Signal<In, Bit>,
    /// See `Window`.
    pub live: Signal<In, Bit>,
    pub dead: Signal<In, Bit>,
    pub reliable: Signal<In, Bit>,
    pub asked: Signal<In, Bit>,
    pub inside: Signal<In, Bit>,
    pub old: Signal<In, Bit>,
    pub at_una: Signal<In, Bit>,
    pub earlier: Signal<In, Bit>,
    pub worked: Signal<In, Bit>,
    pub moving: Signal<In, Bit>,
    /// The oldest request has failed locally.
    pub pending: Signal<In, Bit>,
    /// The event came as an acknowledge; as an answer to a READ or an atomic.
    pub frame: Signal<Out, Bit>,
    pub answer: Signal<Out, Bit>,
    /// It acknowledges or names packets in flight.
    pub counts: Signal<Out, Bit>,
    /// What comes next, and the line then.
    pub then: Signal<Out, State>,
    pub new: Signal<Out, ReqCtx>,
    pub dirty: Signal<Out, Bit>,
    pub pending_after: Signal<Out, Bit>,
    /// `una_psn` moves.
    pub progress: Signal<Out, Bit>,
    /// A failure is the requester's own.
    pub blame: Signal<Out, Bit>,
    /// What the event ends the oldest request with, if it does.
    pub status: Signal<Out, Bits<8>>,
    /// `Reads` begins.
    pub start: Signal<Out, Bit>,
    /// A READ's answer that gets no further gives its frame back.
    pub drops: Signal<Out, Bit>,
    /// See `STATS`.
    pub stat: Signal<Out, Bits<13>>,
    acked: Signal<Local, Bit>,
    flushed: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Decide {
    #[hdl_gen]
    fn update(&mut self) {
        // All below `DEPARTED`, but `<` would be made of carry cells.
        self.frame.next = (self.ev.val().kind == kind::ACK) | (self.ev.val().kind == kind::RNR) | (self.ev.val().kind == kind::NAK_SEQUENCE) | (self.ev.val().kind == kind::NAK_FATAL);
        self.answer.next = (self.ev.val().kind == kind::READ) | (self.ev.val().kind == kind::ATOMIC);
        self.acked.next = (self.ev.val().kind == kind::ACK) | (self.ev.val().kind == kind::DEPARTED);
        self.flushed.next = self.line.val().state == QpState::SqError as u64;
        // ACK and NAK belong to RC, departures to the others.
        self.counts.next =
            self.live.val() & self.inside.val() & (self.frame.val() | self.answer.val() | (self.ev.val().kind == kind::DEPARTED)) & (self.reliable.val() == !(self.ev.val().kind == kind::DEPARTED));
        self.new.next = self.line.val();
        self.dirty.next = false;
        self.pending_after.next = self.pending.val();
        self.progress.next = false;
        self.blame.next = true;
        self.status.next = self.ev.val().status;
        self.start.next = false;
        self.drops.next = false;
        self.stat.next = bits::<13>(0);
        self.then.next = State::Release;
        // Nothing of it is under way any more, also if the queue pair has ended meanwhile: a reset waits for that.
        if self.worked.val() {
            self.dirty.next = true;
            self.new.next.local = bits::<2>(0);
        }
        if (self.ev.val().kind == kind::PEER_HALF) & self.ev.val().status.get_bit(7) & !self.missing.val() {
            // Not an error: into SQD, or out of it.
            self.dirty.next = self.live.val();
            if self.live.val() {
                self.new.next.state = bits::<3>(QpState::Rts as u64);
                if self.ev.val().status.get_bit(0) {
                    self.new.next.state = bits::<3>(QpState::Sqd as u64);
                }
                self.new.next.drained = false;
                self.then.next = State::Settle;
            }
            if self.flushed.val() & self.ev.val().status.get_bit(1) {
                self.dirty.next = true;
                self.new.next.state = bits::<3>(QpState::Rts as u64);
                // The queue was parked meanwhile.
                self.then.next = State::Settle;
            }
        } else if (self.ev.val().kind == kind::PEER_HALF) & !self.missing.val() {
            if !self.dead.val() {
                self.blame.next = false;
                self.then.next = State::Fatal;
            }
        } else if (self.ev.val().kind == kind::QUIET) & !self.missing.val() {
            // Reset meanwhile it has nothing to tell.
            self.dirty.next = self.line.val().dying;
            self.new.next.dying = false;
            self.status.next = self.line.val().error_status;
            self.blame.next = self.line.val().blamed;
            if self.line.val().dying & (self.line.val().state == QpState::Error as u64) {
                self.then.next = State::Fatal;
                if self.line.val().blamed {
                    self.then.next = State::Fail;
                }
            }
        } else if !self.live.val() {
            if self.missing.val() {
                self.then.next = State::Idle;
            }
            self.drops.next = self.ev.val().kind == kind::READ;
            if self.frame.val() | self.answer.val() {
                self.stat.next = bits::<13>(flags(STATS, &["bad_ack"]) as u64);
            }
        } else {
            match self.ev.val().kind.index() {
                kind::LOOK => {
                    self.then.next = State::Oldest;
                    if self.asked.val() {
                        self.start.next = true;
                        self.then.next = State::Reads;
                    }
                }
                kind::LOCAL => {
                    if self.inside.val() {
                        self.stat.next = bits::<13>(flags(STATS, &["local_errors"]) as u64);
                        self.dirty.next = true;
                        if self.earlier.val() {
                            self.new.next.error_pending = true;
                            self.new.next.error_index = self.ev.val().index;
                            self.new.next.error_status = self.ev.val().status;
                            self.pending_after.next = self.ev.val().index == self.line.val().una_index;
                        }
                        self.then.next = State::Oldest;
                        if self.asked.val() {
                            self.start.next = true;
                            self.then.next = State::Reads;
                        }
                    }
                }
                kind::TIMEOUT => {
                    if !self.line.val().rnr_wait & self.line.val().timer_on {
                        self.dirty.next = true;
                        self.new.next.read_gap = false;
                        self.new.next.timer_on = false;
                        if self.moving.val() {
                            self.stat.next = bits::<13>(flags(STATS, &["timeouts"]) as u64);
                            self.new.next.retries_left = self.line.val().retries_left - 1;
                            self.then.next = State::Distance;
                            if self.line.val().retries_left == 0 {
                                self.status.next = bits::<8>(CqeStatus::RetryExceeded as u64);
                                self.then.next = State::Fail;
                            }
                        }
                    }
                }
                kind::RNR_TIMER => {
                    if self.line.val().rnr_wait {
                        self.dirty.next = true;
                        self.new.next.rnr_wait = false;
                        self.then.next = State::Distance;
                    }
                }
                kind::WORKED => {
                    // The queue goes on with the operation, which then counts as a NOP.
                    if self.worked.val() {
                        self.dirty.next = true;
                        self.new.next.local = bits::<2>(local::EXECUTED);
                        self.then.next = State::Settle;
                    }
                }
                kind::PLACED => {
                    if self.asked.val() {
                        self.start.next = true;
                        self.then.next = State::Reads;
                    }
                }
                _ => {
                    if self.counts.val() & (self.asked.val() | self.answer.val()) {
                        self.start.next = true;
                        self.then.next = State::Reads;
                    } else if self.counts.val() {
                        self.then.next = State::Oldest;
                        self.progress.next = self.acked.val() | !self.at_una.val();
                        if self.acked.val() | !self.at_una.val() {
                            self.dirty.next = true;
                            self.new.next.retries_left = self.line.val().retry_cnt;
                            self.new.next.rnr_left = self.line.val().rnr_retry;
                        }
                        self.new.next.una_psn = self.ev.val().psn;
                        if self.acked.val() {
                            self.new.next.una_psn = self.ev.val().psn + 1;
                        }
                    } else {
                        self.drops.next = self.ev.val().kind == kind::READ;
                        if !self.old.val() {
                            self.stat.next = bits::<13>(flags(STATS, &["bad_ack"]) as u64);
                        }
                    }
                }
            }
        }
    }
}
