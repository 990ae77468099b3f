//! The receiving half of the requester: acknowledges, time-outs and errors. See README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::context::bus::CtxClient;
use crate::msg::*;
use crate::records::ReqCtx;
use crate::stream::MsgFifo;
use rust_hdl::prelude::*;

mod fetch;
mod intake;
mod oldest;
mod reads;
mod report;
mod rnr;
mod scatter;
#[cfg(test)]
mod tests;
mod window;

pub use intake::{kind, Event};
pub use rnr::{rnr_ticks, RNR_10US};

use fetch::Fetch;
use intake::Intake;
use oldest::Oldest;
use reads::Reads;
use report::Reports;
use rnr::RnrTicks;
use scatter::{Answer, Scatter};
use window::Window;

/// Names of the bits of `stat`.
pub const STATS: &[&str] = &[
    "retransmits", "timeouts", "rnr_received", "nak_seq_received", "nak_inv_received", "nak_access_received", "nak_op_received",
    "bad_ack", "local_errors", "retry_exceeded", "rnr_exceeded", "unexpected_response", "bad_response",
];

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// Waits for an event and its line.
    Idle,
    Decide,
    /// READs or atomics are outstanding: see `reads.rs`.
    Reads,
    /// Retires work requests, oldest first: asks for the tracker's entry, judges it.
    Oldest,
    Entry,
    /// Waits with its completion for the one before.
    Retire,
    /// The rest of the event, after retiring.
    Finish,
    Settle,
    /// Go-back-N.
    Distance,
    Rewind,
    /// A queue pair in SQD has completed what had begun.
    Drained,
    /// Queue pair into error.
    Fail,
    Fatal,
    Release,
}

/// Requester, receiving half.
#[derive(LogicBlock, Default)]
pub struct RequesterRx {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_rx: MsgSink<RxDesc>,
    /// 0: req_tx and the key unit, 1: egress.
    pub s_tx_done: [MsgSink<TxDone>; 2],
    pub s_timer: MsgSink<TimerEvent>,
    /// From resp.
    pub s_error: MsgSink<QpError>,
    /// Used in turn: the next event's line is fetched while the one before is in hand.
    pub ctx: [CtxClient<ReqCtx>; 2],
    pub m_track: MsgSrc<TrackRead>,
    pub s_track: MsgSink<TrackEntry>,
    pub m_cmd: MsgSrc<SqCmd>,
    pub m_cqe: MsgSrc<CqeReq>,
    pub m_timer: MsgSrc<TimerCmd>,
    /// To resp.
    pub m_error: MsgSrc<QpError>,
    pub m_async: MsgSrc<EqeReq>,
    pub m_cell: MsgSrc<CellRead>,
    /// Answers to READs and atomics, to placement (kind 7, or 0 for what is dropped), and what became of them.
    pub m_place: MsgSrc<PlaceOp>,
    pub s_placed: MsgSink<ReadDone>,
    /// Work requests fetched once more.
    pub m_again: MsgSrc<WqeAgain>,
    pub s_again: MsgSink<WqeHandle>,
    /// Pulse in; pulse out when every answer accepted before has been taken by placement.
    pub barrier: Signal<In, Bit>,
    pub barrier_done: Signal<Out, Bit>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<13>>,
    intake: Intake,
    window: Window,
    oldest: Oldest,
    fetch: Fetch,
    reads: Reads,
    scatter: Scatter,
    reports: Reports,
    errors: MsgFifo<QpError, 8>,
    state: DFF<State>,
    ev: DFF<Event>,
    line: DFF<ReqCtx>,
    client: DFF<Bit>,
    missing: DFF<Bit>,
    dirty: DFF<Bit>,
    /// `una_psn` moved.
    progress: DFF<Bit>,
    pending: DFF<Bit>,
    /// The release was offered and not taken at once.
    offered: DFF<Bit>,
    /// An RNR NAK is being handled: park.
    park: DFF<Bit>,
    status: DFF<Bits<8>>,
    /// The oldest request gets a CQE with `status`.
    blame: DFF<Bit>,
    stats: DFF<Bits<13>>,
    give: Signal<Local, Bit>,
    /// The line has gone back, or there is none.
    leave: Signal<Local, Bit>,
    acked: Signal<Local, Bit>,
    /// The event acknowledges or names packets in flight.
    counts: Signal<Local, Bit>,
    retire: Signal<Local, Bit>,
    restarts: Signal<Local, Bit>,
    resumes: Signal<Local, Bit>,
    /// In SQD, all that had begun is complete, and nobody has been told.
    tells: Signal<Local, Bit>,
    /// The send queue alone fails: of UC and UD, by a request of its own.
    alone: Signal<Local, Bit>,
    flushed: Signal<Local, Bit>,
    early: Signal<Local, Bit>,
    seen: Signal<Local, ReqCtx>,
    after: Signal<Local, Bits<8>>,
    /// The event came as an acknowledge; as an answer to a READ or an atomic.
    frame: Signal<Local, Bit>,
    answer: Signal<Local, Bit>,
    /// Not completed, though acknowledged.
    lag: Signal<Local, Bit>,
    nothing: Signal<Local, Bit>,
    undone: Signal<Local, Bits<16>>,
    wish: Signal<Local, TrackRead>,
}

impl Logic for RequesterRx {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, state, ev, line, client, missing, dirty, progress, pending, park, offered, status, blame, stats
        );
        clock!(self, clock, intake, window, oldest, fetch, reads, scatter, reports, errors);
        self.intake.reset.next = self.reset.val();
        self.fetch.reset.next = self.reset.val();
        self.errors.reset.next = self.reset.val();
        self.reads.reset.next = self.reset.val();
        self.scatter.reset.next = self.reset.val();
        MsgSink::<ReadDone>::link(&mut self.s_placed, &mut self.intake.s_placed);
        MsgSrc::<PlaceOp>::link(&mut self.m_place, &mut self.scatter.m_op);
        MsgSrc::<WqeAgain>::link(&mut self.m_again, &mut self.scatter.m_again);
        MsgSink::<WqeHandle>::link(&mut self.s_again, &mut self.scatter.s_again);
        self.scatter.barrier.next = self.barrier.val();
        self.barrier_done.next = self.scatter.barrier_done.val();
        self.intake.room.next = self.scatter.room.val();
        self.reports.reset.next = self.reset.val();
        MsgSink::<RxDesc>::link(&mut self.s_rx, &mut self.intake.s_rx);
        for i in 0..2 {
            MsgSink::<TxDone>::link(&mut self.s_tx_done[i], &mut self.intake.s_tx_done[i]);
        }
        MsgSink::<TimerEvent>::link(&mut self.s_timer, &mut self.intake.s_timer);
        MsgSink::<QpError>::link(&mut self.s_error, &mut self.intake.s_error);
        MsgSrc::<CellRead>::link(&mut self.m_cell, &mut self.intake.m_cell);
        MsgSrc::<QpError>::link(&mut self.m_error, &mut self.errors.m);

        MsgSrc::<SqCmd>::link(&mut self.m_cmd, &mut self.reports.m_cmd);
        MsgSrc::<CqeReq>::link(&mut self.m_cqe, &mut self.reports.m_cqe);
        MsgSrc::<TimerCmd>::link(&mut self.m_timer, &mut self.reports.m_timer);
        MsgSrc::<EqeReq>::link(&mut self.m_async, &mut self.reports.m_async);
        self.stat.next = self.stats.q.val();
        self.stats.d.next = bits::<13>(0);

        // Context port.
        MsgSrc::<Event>::join(&mut self.intake.m_event, &mut self.fetch.s_event);
        for i in 0..2 {
            CtxClient::<ReqCtx>::link(&mut self.ctx[i], &mut self.fetch.ctx[i]);
        }
        self.give.next = (self.state.q.val() == State::Release)
            & (self.offered.q.val() | (!self.reports.cmd_busy.val() & !self.reports.timer_busy.val()));
        self.fetch.give_client.next = self.client.q.val();
        self.fetch.give_id.next = self.ev.q.val().qpn;
        self.fetch.dirty.next = self.dirty.q.val();
        self.fetch.after.next = self.line.q.val();

        self.frame.next = self.ev.q.val().kind < 4;
        self.answer.next = (self.ev.q.val().kind == 10) | (self.ev.q.val().kind == 11);
        self.lag.next = !(self.line.q.val().done_index == self.line.q.val().una_index);

        self.seen.next = self.fetch.line.val();
        self.window.ev.next = self.fetch.ev.val();
        self.window.seen.next = self.seen.val();
        self.window.missing.next = self.fetch.missing.val();
        self.window.line.next = self.line.q.val();
        self.oldest.take.next = self.state.q.val() == State::Entry;
        self.oldest.data.next = self.s_track.data.val();
        self.oldest.line.next = self.line.q.val();
        self.nothing.next = self.line.q.val().una_index == self.line.q.val().sent_index;
        // ACK and NAK belong to RC, departures to the others.
        self.counts.next = self.window.live.val()
            & self.window.inside.val()
            & (self.frame.val() | self.answer.val() | (self.ev.q.val().kind == 4))
            & (self.window.reliable.val() == !(self.ev.q.val().kind == 4));
        self.m_track.valid.next = ((self.state.q.val() == State::Oldest)
            | ((self.state.q.val() == State::Decide) & self.counts.val() & !self.answer.val() & !self.window.asked.val()))
            & !self.pending.q.val()
            & !self.nothing.val();
        self.wish.next.qpn = self.ev.q.val().qpn;
        self.wish.next.index = self.line.q.val().una_index;
        self.m_track.data.next = self.wish.val();
        self.s_track.ready.next = self.state.q.val() == State::Entry;
        // While the line is theirs.
        self.reads.start.next = false;
        self.reads.ev.next = self.ev.q.val();
        self.reads.line.next = self.line.q.val();
        self.reads.cqe_busy.next = self.reports.cqe_busy.val();
        self.reads.s_track.data.next = self.s_track.data.val();
        self.reads.s_track.valid.next = self.s_track.valid.val();
        self.reads.m_track.ready.next = self.m_track.ready.val();
        if self.state.q.val() == State::Reads {
            self.m_track.valid.next = self.reads.m_track.valid.val();
            self.m_track.data.next = self.reads.m_track.data.val();
            self.s_track.ready.next = self.reads.s_track.ready.val();
        }
        // An answer that gets no further gives its frame back.
        self.reads.m_answer.ready.next = true;
        self.scatter.s_answer.valid.next = self.reads.m_answer.valid.val();
        self.scatter.s_answer.data.next = self.reads.m_answer.data.val();
        self.acked.next = (self.ev.q.val().kind == 0) | (self.ev.q.val().kind == 4);
        self.retire.next = false;
        // A running timer is started anew, or stopped when nothing is in flight; a queue that waits for room goes on.
        self.restarts.next = self.progress.q.val() & self.line.q.val().timer_on;
        self.resumes.next = self.line.q.val().parked
            & self.window.room.val()
            & self.window.may_ask.val()
            & self.window.drained.val()
            & !(self.line.q.val().local == 1)
            & !(self.line.q.val().state == 4);
        self.tells.next = (self.line.q.val().state == 4)
            & !self.line.q.val().drained
            & (self.line.q.val().sent_index == self.line.q.val().done_index);
        self.alone.next = self.blame.q.val() & ((self.line.q.val().qp_type == 1) | (self.line.q.val().qp_type == 2));
        self.flushed.next = self.line.q.val().state == 5;
        // Whoever gets the line next may see a timer about to be started anew, but no other command on its way.
        self.early.next = (self.state.q.val() == State::Settle)
            & !self.tells.val()
            & (self.line.q.val().rnr_wait
                | (!self.window.behind.val()
                    & !self.resumes.val()
                    & (!self.restarts.val() | (self.window.flying.val() & !self.reports.timer_busy.val()))));
        self.fetch.give.next = self.give.val() | self.early.val();
        self.leave.next = (self.state.q.val() == State::Idle) | (self.fetch.give.val() & self.fetch.given.val());
        self.after.next = self.line.q.val().epoch + 1;
        self.errors.s.valid.next = false;
        self.errors.s.data.next.qpn = self.ev.q.val().qpn;
        self.errors.s.data.next.epoch = self.line.q.val().epoch;
        self.errors.s.data.next.side = false;
        self.errors.s.data.next.cause = self.status.q.val();
        self.reports.line.next = self.line.q.val();
        self.reports.ev.next = self.ev.q.val();
        self.reports.entry.next = self.oldest.entry.val();
        if self.state.q.val() == State::Reads {
            self.reports.entry.next = self.reads.entry.val();
        }
        self.reports.status.next = self.status.q.val();
        self.undone.next = self.line.q.val().done_index + 1;
        self.reports.follower.next = self.undone.val();
        self.reports.after.next = self.after.val();
        self.reports.ticks.next = self.window.ticks.val();
        self.reports.put_cmd.next = false;
        self.reports.cmd_op.next = bits::<2>(2);
        self.reports.put_cqe.next = false;
        self.reports.put_timer.next = false;
        self.reports.timer_start.next = false;
        self.reports.timer_rnr.next = false;
        self.reports.put_async.next = false;
        self.reports.drained.next = false;
        self.reports.blame.next = false;

        match self.state.q.val() {
            State::Decide => {
                self.status.d.next = self.ev.q.val().status;
                self.state.d.next = State::Release;
                // Nothing of it is under way any more, also if the queue pair has ended meanwhile: a reset waits for that.
                if self.window.worked.val() {
                    self.dirty.d.next = true;
                    self.line.d.next.local = bits::<2>(0);
                }
                if (self.ev.q.val().kind == 9) & self.ev.q.val().status.get_bit(7) & !self.missing.q.val() {
                    // Not an error: into SQD, or out of it.
                    self.dirty.d.next = self.window.live.val();
                    if self.window.live.val() {
                        self.line.d.next.state = bits::<3>(3);
                        if self.ev.q.val().status.get_bit(0) {
                            self.line.d.next.state = bits::<3>(4);
                        }
                        self.line.d.next.drained = false;
                        self.state.d.next = State::Settle;
                    }
                    if self.flushed.val() & self.ev.q.val().status.get_bit(1) {
                        self.dirty.d.next = true;
                        self.line.d.next.state = bits::<3>(3);
                    }
                } else if (self.ev.q.val().kind == 9) & !self.missing.q.val() {
                    if !self.window.dead.val() {
                        self.blame.d.next = false;
                        self.state.d.next = State::Fatal;
                    }
                } else if !self.window.live.val() {
                    if self.missing.q.val() {
                        self.state.d.next = State::Idle;
                    }
                    self.scatter.s_answer.valid.next = self.ev.q.val().kind == 10;
                    if self.frame.val() | self.answer.val() {
                        self.stats.d.next = bits::<13>(128);
                    }
                } else {
                    match self.ev.q.val().kind.index() {
                        5 => {
                            self.state.d.next = State::Oldest;
                            if self.window.asked.val() {
                                self.reads.start.next = true;
                                self.state.d.next = State::Reads;
                            }
                        }
                        6 => {
                            if self.window.inside.val() {
                                self.stats.d.next = bits::<13>(256);
                                self.dirty.d.next = true;
                                if self.window.earlier.val() {
                                    self.line.d.next.error_pending = true;
                                    self.line.d.next.error_index = self.ev.q.val().index;
                                    self.line.d.next.error_status = self.ev.q.val().status;
                                    self.pending.d.next = self.ev.q.val().index == self.line.q.val().una_index;
                                }
                                self.state.d.next = State::Oldest;
                                if self.window.asked.val() {
                                    self.reads.start.next = true;
                                    self.state.d.next = State::Reads;
                                }
                            }
                        }
                        7 => {
                            if !self.line.q.val().rnr_wait & self.line.q.val().timer_on {
                                self.dirty.d.next = true;
                                self.line.d.next.read_gap = false;
                                self.line.d.next.timer_on = false;
                                if self.window.moving.val() {
                                    self.stats.d.next = bits::<13>(2);
                                    self.line.d.next.retries_left = self.line.q.val().retries_left - 1;
                                    self.state.d.next = State::Distance;
                                    if self.line.q.val().retries_left == 0 {
                                        self.status.d.next = bits::<8>(12);
                                        self.state.d.next = State::Fail;
                                    }
                                }
                            }
                        }
                        8 => {
                            if self.line.q.val().rnr_wait {
                                self.dirty.d.next = true;
                                self.line.d.next.rnr_wait = false;
                                self.state.d.next = State::Distance;
                            }
                        }
                        13 => {
                            // The queue goes on with the operation, which then counts as a NOP.
                            if self.window.worked.val() {
                                self.dirty.d.next = true;
                                self.line.d.next.local = bits::<2>(2);
                                self.state.d.next = State::Settle;
                            }
                        }
                        12 => {
                            if self.window.asked.val() {
                                self.reads.start.next = true;
                                self.state.d.next = State::Reads;
                            }
                        }
                        _ => {
                            if self.counts.val() & (self.window.asked.val() | self.answer.val()) {
                                self.reads.start.next = true;
                                self.state.d.next = State::Reads;
                            } else if self.counts.val() {
                                self.state.d.next = State::Oldest;
                                if self.m_track.valid.val() & self.m_track.ready.val() {
                                    self.state.d.next = State::Entry;
                                }
                                self.progress.d.next = self.acked.val() | !self.window.at_una.val();
                                if self.acked.val() | !self.window.at_una.val() {
                                    self.dirty.d.next = true;
                                    self.line.d.next.retries_left = self.line.q.val().retry_cnt;
                                    self.line.d.next.rnr_left = self.line.q.val().rnr_retry;
                                }
                                self.line.d.next.una_psn = self.ev.q.val().psn;
                                if self.acked.val() {
                                    self.line.d.next.una_psn = self.ev.q.val().psn + 1;
                                }
                            } else {
                                self.scatter.s_answer.valid.next = self.ev.q.val().kind == 10;
                                if !self.window.old.val() {
                                    self.stats.d.next = bits::<13>(128);
                                }
                            }
                        }
                    }
                }
            }
            State::Reads => {
                self.line.d.next = self.reads.new.val();
                self.dirty.d.next = true;
                self.reports.put_cqe.next = self.reads.put_cqe.val();
                self.progress.d.next = self.reads.progress.val();
                self.status.d.next = self.reads.status.val();
                if !self.reads.status.val().any() {
                    self.status.d.next = self.ev.q.val().status;
                }
                if self.reads.done.val() {
                    self.state.d.next = State::Settle;
                    if self.answer.val() & !self.reads.progress.val() {
                        self.stats.d.next = bits::<13>(128);
                    }
                    match self.reads.outcome.val().index() {
                        1 => self.state.d.next = State::Finish,
                        2 => self.state.d.next = State::Distance,
                        3 => self.state.d.next = State::Fail,
                        _ => {}
                    }
                }
            }
            State::Oldest => {
                // A request that failed locally ends here, whatever was acknowledged of it.
                if self.pending.q.val() {
                    self.status.d.next = self.line.q.val().error_status;
                    self.state.d.next = State::Fail;
                } else if self.nothing.val() {
                    self.state.d.next = State::Finish;
                } else if self.m_track.ready.val() {
                    self.state.d.next = State::Entry;
                }
            }
            State::Entry => {
                if self.s_track.valid.val() {
                    self.state.d.next = State::Retire;
                    if !self.oldest.passed.val() {
                        self.state.d.next = State::Finish;
                        if !self.frame.val() | (self.ev.q.val().kind == 0) {
                            self.state.d.next = State::Settle;
                        }
                    } else {
                        self.retire.next = !self.oldest.wanted.val() | !self.reports.cqe_busy.val();
                    }
                }
            }
            State::Retire => {
                self.retire.next = !self.reports.cqe_busy.val();
            }
            State::Finish => {
                self.state.d.next = State::Settle;
                match self.ev.q.val().kind.index() {
                    1 => {
                        if !self.line.q.val().rnr_wait {
                            self.stats.d.next = bits::<13>(4);
                            self.dirty.d.next = true;
                            self.park.d.next = true;
                            self.line.d.next.rnr_wait = true;
                            self.state.d.next = State::Distance;
                            if !self.line.q.val().rnr_retry.all() {
                                self.line.d.next.rnr_left = self.line.q.val().rnr_left - 1;
                                if self.line.q.val().rnr_left == 0 {
                                    self.status.d.next = bits::<8>(13);
                                    self.state.d.next = State::Fail;
                                }
                            }
                        }
                    }
                    2 => {
                        self.stats.d.next = bits::<13>(8);
                        if !self.line.q.val().rnr_wait {
                            self.state.d.next = State::Distance;
                        }
                    }
                    3 => self.state.d.next = State::Fail,
                    _ => {}
                }
            }
            State::Settle => {
                if self.line.q.val().rnr_wait {
                    self.state.d.next = State::Release;
                } else if self.window.behind.val() {
                    // Acknowledged beyond the packet a retransmission was about to send.
                    self.state.d.next = State::Distance;
                } else if !self.restarts.val() | !self.reports.timer_busy.val() {
                    self.state.d.next = State::Release;
                    if self.restarts.val() {
                        self.reports.put_timer.next = true;
                        self.reports.timer_start.next = self.window.flying.val();
                        self.line.d.next.timer_on = self.window.flying.val();
                    }
                    if self.resumes.val() {
                        self.dirty.d.next = true;
                        self.line.d.next.parked = false;
                        self.reports.put_cmd.next = true;
                    }
                    if self.tells.val() {
                        self.state.d.next = State::Drained;
                    }
                }
                if self.early.val() {
                    self.offered.d.next = !self.fetch.given.val();
                }
            }
            State::Drained => {
                if !self.reports.async_busy.val() {
                    self.reports.put_async.next = true;
                    self.reports.drained.next = true;
                    self.dirty.d.next = true;
                    self.line.d.next.drained = true;
                    self.state.d.next = State::Release;
                }
            }
            State::Distance => {
                self.state.d.next = State::Rewind;
            }
            State::Rewind => {
                // Parked for the RNR timer nothing is sent again yet.
                if !self.park.q.val() {
                    self.stats.d.next = bits::<13>(1);
                }
                self.dirty.d.next = true;
                self.reports.put_cmd.next = true;
                self.reports.cmd_op.next = bit_cast::<2, 1>(self.park.q.val().into());
                self.reports.put_timer.next = self.line.q.val().timer_on | self.park.q.val();
                self.reports.timer_start.next = self.park.q.val();
                self.reports.timer_rnr.next = self.park.q.val();
                self.line.d.next.timer_on = false;
                self.line.d.next.next_psn = self.line.q.val().una_psn;
                self.line.d.next.next_index = self.line.q.val().una_index;
                self.line.d.next.msg_offset = self.window.bytes.val();
                self.line.d.next.in_msg = self.window.within.val();
                self.line.d.next.epoch = self.after.val();
                self.line.d.next.parked = false;
                self.state.d.next = State::Release;
            }
            State::Fail => {
                self.reports.blame.next = true;
                if self.lag.val() & !(self.ev.q.val().kind == 12) {
                    // Requests before it are not completed yet: its turn comes when they are.
                    self.dirty.d.next = true;
                    if !self.line.q.val().error_pending {
                        self.line.d.next.error_pending = true;
                        self.line.d.next.error_index = self.line.q.val().una_index;
                        self.line.d.next.error_status = self.status.q.val();
                    }
                    self.state.d.next = State::Release;
                } else if !self.reports.cqe_busy.val() {
                    self.reports.put_cqe.next = true;
                    self.state.d.next = State::Fatal;
                }
                match self.status.q.val().index() {
                    7 => self.stats.d.next = bits::<13>(0x1000),
                    9 => self.stats.d.next = bits::<13>(16),
                    10 => self.stats.d.next = bits::<13>(32),
                    11 => self.stats.d.next = bits::<13>(64),
                    12 => self.stats.d.next = bits::<13>(512),
                    13 => self.stats.d.next = bits::<13>(1024),
                    _ => {}
                }
                if self.reports.cqe_busy.val() | (self.lag.val() & !(self.ev.q.val().kind == 12)) {
                    self.stats.d.next = bits::<13>(0);
                }
            }
            State::Fatal => {
                // The failure's CQE is with the completion writer before the flush begins.
                self.reports.blame.next = self.blame.q.val();
                self.reports.cmd_op.next = bits::<2>(3);
                if !self.reports.cqe_busy.val() & !self.reports.async_busy.val() & self.errors.s.ready.val() {
                    self.dirty.d.next = true;
                    self.line.d.next.state = bits::<3>(6);
                    if self.alone.val() {
                        // Receives go on, and so does the responder (IBTA 10.3.1).
                        self.line.d.next.state = bits::<3>(5);
                    }
                    // In SQ error all is flushed, or being flushed, already.
                    if !self.flushed.val() {
                        self.line.d.next.epoch = self.after.val();
                    }
                    self.line.d.next.timer_on = false;
                    self.line.d.next.rnr_wait = false;
                    self.line.d.next.parked = false;
                    self.reports.put_cmd.next = !self.flushed.val();
                    self.reports.put_timer.next = true;
                    self.reports.put_async.next = !self.alone.val();
                    self.errors.s.valid.next = self.blame.q.val() & !self.alone.val();
                    self.state.d.next = State::Release;
                }
            }
            _ => {}
        }

        if self.retire.val() {
            self.dirty.d.next = true;
            self.reports.put_cqe.next = self.oldest.wanted.val();
            self.line.d.next.una_index = self.oldest.follower.val();
            self.line.d.next.done_index = self.oldest.follower.val();
            self.line.d.next.una_wqe_psn = self.oldest.first_psn.val();
            self.pending.d.next = self.oldest.fails_next.val();
            self.state.d.next = State::Oldest;
            if (self.oldest.empties.val() | self.oldest.stops.val()) & (!self.frame.val() | (self.ev.q.val().kind == 0)) {
                self.state.d.next = State::Settle;
            }
        }

        // The next event: distances from the window.
        self.fetch.take.next = self.leave.val();
        self.window.load.next = self.leave.val();
        if self.leave.val() {
            self.state.d.next = State::Idle;
            if self.fetch.valid.val() {
                self.state.d.next = State::Decide;
            }
            self.ev.d.next = self.fetch.ev.val();
            self.line.d.next = self.seen.val();
            self.client.d.next = self.fetch.client.val();
            self.missing.d.next = self.fetch.missing.val();
            self.dirty.d.next = false;
            self.progress.d.next = false;
            self.park.d.next = false;
            self.offered.d.next = false;
            self.blame.d.next = true;
            self.pending.d.next = self.seen.val().error_pending & (self.seen.val().error_index == self.seen.val().una_index);
        }

        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
