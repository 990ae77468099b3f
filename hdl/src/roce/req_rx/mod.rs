//! The receiving half of the requester: acknowledges, time-outs and errors. See README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::context::bus::CtxClient;
use crate::msg::*;
use crate::records::ReqCtx;
use crate::stats::flags;
use crate::stream::MsgFifo;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

mod conclude;
mod decide;
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

use conclude::Conclude;
use decide::Decide;
use fetch::Fetch;
use intake::Intake;
use oldest::Oldest;
use reads::Reads;
use report::Reports;
use rnr::RnrTicks;
use scatter::{Answer, Scatter};
use window::Window;

pub use ferric_model::roce::requester::{LONGEST_TIMEOUT, TIMEOUT_TICKS};

/// What `reads.rs` leaves to be done; 0: nothing.
pub mod outcome {
    pub const FINISH: u64 = 1;
    pub const GO_BACK: u64 = 2;
    pub const FAIL: u64 = 3;
}

/// Names of the bits of `stat`.
pub const STATS: &[&str] = &[
    "retransmits",
    "timeouts",
    "rnr_received",
    "nak_seq_received",
    "nak_inv_received",
    "nak_access_received",
    "nak_op_received",
    "bad_ack",
    "local_errors",
    "retry_exceeded",
    "rnr_exceeded",
    "unexpected_response",
    "bad_response",
];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // Events in turn, one after the other; only frames wait for `scatter`, which keeps places for all that they may lead to. A frame whose turn it is keeps the others waiting until the one before has given its buffer back (`m_cell`).
    ("s_rx", &["ctx[0]", "ctx[1]", "m_cell", "m_track", "s_track", "m_cqe", "m_cmd", "m_timer", "m_async", "m_error", "m_again", "s_again", "m_place"]),
    ("s_tx_done[*]", &["ctx[0]", "ctx[1]", "m_cell", "m_track", "s_track", "m_cqe", "m_cmd", "m_timer", "m_async", "m_error"]),
    ("s_timer", &["ctx[0]", "ctx[1]", "m_cell", "m_track", "s_track", "m_cqe", "m_cmd", "m_timer", "m_async", "m_error"]),
    ("s_error", &["ctx[0]", "ctx[1]", "m_cell", "m_track", "s_track", "m_cqe", "m_cmd", "m_timer", "m_async", "m_error"]),
    ("s_placed", &["ctx[0]", "ctx[1]", "m_cell", "m_track", "s_track", "m_cqe", "m_cmd", "m_timer", "m_async", "m_error"]),
    // A line is held by the event in hand or by the next one, which waits for that; the event in hand never waits for the other line.
    ("ctx[*]", &["m_track", "s_track", "m_cqe", "m_cmd", "m_timer", "m_async", "m_error"]),
    ("s_track", &[]), // awaited since it was asked for
    ("s_again", &[]), // the same
    ("barrier_done", &["barrier", "m_again", "s_again", "m_place"]),
];

/// What is done with the event in hand: see `decide.rs` for `Decide`, `conclude.rs` for `Finish` and what stands behind it.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum State {
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
    pub s_rx: MsgSink<RxAnswer>,
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
    /// Answers to READs and atomics, to placement (kind 8 or 9, or 0 for what is dropped), and what became of them.
    pub m_place: MsgSrc<PlaceOp>,
    pub s_placed: MsgSink<ReadDone>,
    /// Work requests fetched once more.
    pub m_again: MsgSrc<WqeAgain>,
    pub s_again: MsgSink<WqeHandle>,
    /// Pulse: this queue pair goes back to send again, and not for a time-out (`roce/rounds`).
    pub rewound: Signal<Out, Bit>,
    pub rewound_qpn: Signal<Out, Bits<24>>,
    /// Pulse in; pulse out when every answer accepted before has been taken by placement.
    pub barrier: Signal<In, Bit>,
    pub barrier_done: Signal<Out, Bit>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<13>>,
    /// Whose events they are.
    pub stat_function: Signal<Out, Bits<12>>,
    intake: Intake,
    window: Window,
    decide: Decide,
    oldest: Oldest,
    fetch: Fetch,
    reads: Reads,
    scatter: Scatter,
    conclude: Conclude,
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
    stats_of: DFF<Bits<12>>,
    give: Signal<Local, Bit>,
    /// The line has gone back, or there is none.
    leave: Signal<Local, Bit>,
    /// The oldest request is retired in this cycle; would be if it is acknowledged to its end; its completion has a place, or it has none.
    retire: Signal<Local, Bit>,
    may_retire: Signal<Local, Bit>,
    tells: Signal<Local, Bit>,
    seen: Signal<Local, ReqCtx>,
    nothing: Signal<Local, Bit>,
    undone: Signal<Local, Bits<16>>,
    /// Something of a request has come to host memory.
    tells_of: Signal<Local, Bit>,
    /// In `Decide`: the tracker's first entry is wanted.
    first: Signal<Local, Bit>,
    /// The tracker was asked for it before the event was in hand, and for the next event's; nobody wants what it says, and it has not said it yet.
    asked: DFF<Bit>,
    asked_next: DFF<Bit>,
    /// The event is `PLACED`: the entry is that of the oldest request which is not complete. In one bit, since it chooses the tracker's address.
    placed: DFF<Bit>,
    stray: DFF<Bit>,
    /// In `Decide`: it has been asked for now or before.
    comes: Signal<Local, Bit>,
    /// The next event's first entry is asked for; which one that is; what is asked for.
    early: Signal<Local, Bit>,
    early_index: Signal<Local, Bits<16>>,
    wish: Signal<Local, TrackRead>,
}

#[kernel]
impl Logic for RequesterRx {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, ev, line, client, missing, dirty, progress, pending, park, offered, status, blame, stats, stats_of, asked, asked_next, placed, stray);
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
        MsgSink::<RxAnswer>::link(&mut self.s_rx, &mut self.intake.s_rx);
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
        self.stat_function.next = self.stats_of.q.val();
        // A queue pair that does not exist is nobody's.
        self.stats_of.d.next = bits::<12>(0);
        if !self.missing.q.val() {
            self.stats_of.d.next = self.line.q.val().function;
        }
        self.stats.d.next = bits::<13>(0);

        // Context port.
        MsgSrc::<Event>::join(&mut self.intake.m_event, &mut self.fetch.s_event);
        for i in 0..2 {
            CtxClient::<ReqCtx>::link(&mut self.ctx[i], &mut self.fetch.ctx[i]);
        }
        self.give.next = (self.state.q.val() == State::Release) & (self.offered.q.val() | (!self.reports.cmd_busy.val() & !self.reports.timer_busy.val()));
        self.fetch.give_client.next = self.client.q.val();
        self.fetch.give_id.next = self.ev.q.val().qpn;
        self.fetch.dirty.next = self.dirty.q.val();
        self.fetch.after.next = self.line.q.val();

        self.seen.next = self.fetch.line.val();
        self.window.ev.next = self.fetch.ev.val();
        self.window.seen.next = self.seen.val();
        self.window.missing.next = self.fetch.missing.val();
        self.window.line.next = self.line.q.val();
        self.oldest.take.next = self.state.q.val() == State::Entry;
        self.oldest.data.next = self.s_track.data.val();
        self.oldest.line.next = self.line.q.val();
        self.nothing.next = self.line.q.val().una_index == self.line.q.val().sent_index;
        // The first entry is asked for together with the event, whose line is known by then, or beside the decision if the tracker was not ready: of whatever the event can change.
        self.tells_of.next = (self.ev.q.val().kind == kind::PLACED) & self.window.live.val() & self.window.asked.val();
        self.first.next = (self.decide.counts.val() & !self.pending.q.val() & !self.nothing.val()) | self.tells_of.val();
        self.early_index.next = self.seen.val().una_index;
        if self.fetch.kind.val() == kind::PLACED {
            self.early_index.next = self.seen.val().done_index;
        }
        // The event in hand does not ask any more in these states.
        self.early.next = self.fetch.valid.val()
            & !self.fetch.missing.val()
            & !self.asked_next.q.val()
            & ((self.state.q.val() == State::Idle) | (self.state.q.val() == State::Settle) | (self.state.q.val() == State::Release) | ((self.state.q.val() == State::Reads) & self.reads.ends.val()));
        if self.early.val() & self.m_track.ready.val() {
            self.asked_next.d.next = true;
        }
        self.m_track.valid.next =
            self.early.val() | ((self.state.q.val() == State::Decide) & self.first.val() & !self.asked.q.val()) | ((self.state.q.val() == State::Oldest) & !self.pending.q.val() & !self.nothing.val());
        self.wish.next.qpn = self.fetch.qpn.val();
        self.wish.next.index = self.early_index.val();
        if (self.state.q.val() == State::Decide) | (self.state.q.val() == State::Oldest) {
            self.wish.next.qpn = self.ev.q.val().qpn;
            self.wish.next.index = self.line.q.val().una_index;
            if self.placed.q.val() & (self.state.q.val() == State::Decide) {
                self.wish.next.index = self.line.q.val().done_index;
            }
        }
        self.m_track.data.next = self.wish.val();
        self.comes.next = self.first.val() & (self.asked.q.val() | self.m_track.ready.val());
        // It comes in the cycle behind `Decide` at the latest, and what is asked for after that later: in `Entry` and in `Reads` no entry is a stray one.
        self.s_track.ready.next = (self.state.q.val() == State::Entry) | self.stray.q.val();
        if self.s_track.valid.val() {
            self.stray.d.next = false;
        }
        // While the line is theirs.
        if (self.state.q.val() == State::Decide) & self.reads.s_track.ready.val() {
            self.s_track.ready.next = true;
        }
        self.reads.next_ev.next = self.fetch.ev.val();
        self.reads.next_line.next = self.seen.val();
        self.reads.bytes.next = self.window.bytes.val();
        self.reads.start.next = false;
        self.reads.asked.next = self.comes.val();
        self.reads.ev.next = self.ev.q.val();
        self.reads.line.next = self.line.q.val();
        self.reads.cqe_busy.next = self.reports.cqe_busy.val();
        self.reads.s_track.data.next = self.s_track.data.val();
        self.reads.s_track.valid.next = self.s_track.valid.val();
        self.reads.m_track.ready.next = self.m_track.ready.val();
        if self.state.q.val() == State::Reads {
            self.m_track.valid.next = self.reads.m_track.valid.val() | self.early.val();
            if !self.reads.rests.val() {
                self.m_track.data.next = self.reads.m_track.data.val();
            }
            self.s_track.ready.next = self.reads.s_track.ready.val() | self.stray.q.val();
        }
        // An answer that gets no further gives its frame back.
        self.reads.m_answer.ready.next = true;
        self.scatter.s_answer.valid.next = self.reads.m_answer.valid.val();
        self.scatter.s_answer.data.next = self.reads.m_answer.data.val();
        self.scatter.mark.next = self.conclude.put_mark.val();
        self.scatter.mark_qpn.next = self.ev.q.val().qpn;
        // Not in the states below: whether the entry is passed is known late.
        self.tells.next = !self.oldest.wanted.val() | !self.reports.cqe_busy.val();
        self.may_retire.next = (self.state.q.val() == State::Entry) & self.s_track.valid.val() & self.tells.val();
        self.retire.next = (self.may_retire.val() & self.oldest.passed.val()) | ((self.state.q.val() == State::Retire) & !self.reports.cqe_busy.val());
        self.fetch.give.next = self.give.val() | self.conclude.early.val();
        self.leave.next = (self.state.q.val() == State::Idle) | (self.fetch.give.val() & self.fetch.given.val());
        self.errors.s.valid.next = self.conclude.put_error.val();
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
        self.reports.after.next = self.conclude.after.val();
        self.reports.ticks.next = self.window.ticks.val();
        self.reports.put_cmd.next = self.conclude.put_cmd.val();
        self.reports.cmd_op.next = self.conclude.cmd_op.val();
        self.reports.put_cqe.next = self.conclude.put_cqe.val();
        self.reports.put_timer.next = self.conclude.put_timer.val();
        self.reports.timer_start.next = self.conclude.timer_start.val();
        self.reports.timer_rnr.next = self.conclude.timer_rnr.val();
        self.reports.put_async.next = self.conclude.put_async.val();
        self.reports.drained.next = self.conclude.told.val();
        self.reports.blame.next = self.conclude.blamed.val();
        self.decide.ev.next = self.ev.q.val();
        self.decide.line.next = self.line.q.val();
        self.decide.missing.next = self.missing.q.val();
        self.decide.live.next = self.window.live.val();
        self.decide.dead.next = self.window.dead.val();
        self.decide.reliable.next = self.window.reliable.val();
        self.decide.asked.next = self.window.asked.val();
        self.decide.inside.next = self.window.inside.val();
        self.decide.old.next = self.window.old.val();
        self.decide.at_una.next = self.window.at_una.val();
        self.decide.earlier.next = self.window.earlier.val();
        self.decide.worked.next = self.window.worked.val();
        self.decide.moving.next = self.window.moving.val();
        self.decide.pending.next = self.pending.q.val();
        // After a time-out what is on its way may be all that ever arrives: in a full or a stopped card a packet can wait longer than that.
        self.rewound.next = (self.state.q.val() == State::Rewind) & !(self.ev.q.val().kind == kind::TIMEOUT);
        self.rewound_qpn.next = self.ev.q.val().qpn;
        self.conclude.state.next = self.state.q.val();
        self.conclude.ev.next = self.ev.q.val();
        self.conclude.line.next = self.line.q.val();
        self.conclude.progress.next = self.progress.q.val();
        self.conclude.status.next = self.status.q.val();
        self.conclude.blame.next = self.blame.q.val();
        self.conclude.park.next = self.park.q.val();
        self.conclude.behind.next = self.window.behind.val();
        self.conclude.flying.next = self.window.flying.val();
        self.conclude.room.next = self.window.room.val();
        self.conclude.may_ask.next = self.window.may_ask.val();
        self.conclude.idle.next = self.window.drained.val();
        self.conclude.complete.next = self.window.complete.val();
        self.conclude.lag.next = self.window.lag.val();
        self.conclude.ahead.next = self.window.ahead.val();
        self.conclude.bytes.next = self.window.bytes.val();
        self.conclude.within.next = self.window.within.val();
        self.conclude.cqe_busy.next = self.reports.cqe_busy.val();
        self.conclude.timer_busy.next = self.reports.timer_busy.val();
        self.conclude.async_busy.next = self.reports.async_busy.val();
        self.conclude.error_ready.next = self.errors.s.ready.val();

        match self.state.q.val() {
            State::Decide => {
                self.state.d.next = self.decide.then.val();
                // An entry that was asked for early and is not wanted is thrown away as it comes.
                if self.asked.q.val() & !self.first.val() {
                    self.stray.d.next = true;
                }
                if self.comes.val() & !self.decide.start.val() {
                    self.state.d.next = State::Entry;
                }
                self.line.d.next = self.decide.new.val();
                self.dirty.d.next = self.decide.dirty.val();
                self.pending.d.next = self.decide.pending_after.val();
                self.progress.d.next = self.decide.progress.val();
                self.blame.d.next = self.decide.blame.val();
                self.status.d.next = self.decide.status.val();
                self.stats.d.next = self.decide.stat.val();
                self.reads.start.next = self.decide.start.val();
                self.scatter.s_answer.valid.next = self.decide.drops.val();
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
                    if self.decide.answer.val() & !self.reads.progress.val() {
                        self.stats.d.next = bits::<13>(flags(STATS, &["bad_ack"]) as u64);
                    }
                    match self.reads.outcome.val().index() {
                        outcome::FINISH => self.state.d.next = State::Finish,
                        outcome::GO_BACK => self.state.d.next = State::Distance,
                        outcome::FAIL => self.state.d.next = State::Fail,
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
                        if !self.decide.frame.val() | (self.ev.q.val().kind == kind::ACK) {
                            self.state.d.next = State::Settle;
                        }
                    }
                }
            }
            State::Retire => {}
            State::Idle => {}
            State::Release => {}
            _ => {
                self.state.d.next = self.conclude.then.val();
                self.line.d.next = self.conclude.new.val();
                self.dirty.d.next = self.dirty.q.val() | self.conclude.dirty.val();
                self.status.d.next = self.conclude.status_after.val();
                self.park.d.next = self.conclude.park_after.val();
                self.stats.d.next = self.conclude.stat.val();
                if self.conclude.early.val() {
                    self.offered.d.next = !self.fetch.given.val();
                }
            }
        }

        // The next event: distances from the window.
        self.fetch.take.next = self.leave.val();
        self.window.load.next = self.leave.val();
        self.reads.load.next = self.leave.val();
        if self.leave.val() {
            self.asked.d.next = self.asked_next.q.val() | (self.early.val() & self.m_track.ready.val());
            self.asked_next.d.next = false;
            self.placed.d.next = self.fetch.kind.val() == kind::PLACED;
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

        // Retiring is never leaving, and learns of it last.
        self.window.retires.next = self.retire.val() | self.reads.told.val();
        self.window.empties.next = self.oldest.empties.val();
        if self.state.q.val() == State::Reads {
            self.window.empties.next = self.reads.empties.val();
        }
        self.window.accepts.next = self.reads.accepts.val();
        self.window.answered.next = self.reads.answered.val();
        self.window.returns.next = self.reads.told_asks.val();
        if self.retire.val() {
            self.dirty.d.next = true;
            self.reports.put_cqe.next = self.oldest.wanted.val();
            self.line.d.next.una_index = self.oldest.follower.val();
            self.line.d.next.done_index = self.oldest.follower.val();
            self.line.d.next.una_wqe_psn = self.oldest.first_psn.val();
            self.pending.d.next = self.oldest.fails_next.val();
            self.state.d.next = State::Oldest;
            if (self.oldest.empties.val() | self.oldest.stops.val()) & (!self.decide.frame.val() | (self.ev.q.val().kind == kind::ACK)) {
                self.state.d.next = State::Settle;
            }
        }

        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.stray.d.next = false;
            self.asked_next.d.next = false;
        }
    }
}
