//! The receiving half of the requester: acknowledges, time-outs and errors. See README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::context::bus::CtxClient;
use crate::msg::*;
use crate::records::ReqCtx;
use crate::stream::MsgFifo;
use rust_hdl::prelude::*;

mod fetch;
mod intake;
mod reads;
mod report;
mod rnr;
mod scatter;
#[cfg(test)]
mod tests;

pub use intake::{kind, Event};
pub use rnr::{rnr_ticks, RNR_10US};

use fetch::Fetch;
use intake::Intake;
use reads::Reads;
use report::Reports;
use rnr::RnrTicks;
use scatter::{Answer, Scatter};

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
    /// 0: req_tx, 1: egress.
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
    live: DFF<Bit>,
    dead: DFF<Bit>,
    reliable: DFF<Bit>,
    /// READs or atomics are outstanding.
    asked: DFF<Bit>,
    /// A READ or atomic may go, and whoever is fenced; they follow the line a cycle later.
    may_ask: DFF<Bit>,
    inside: DFF<Bit>,
    old: DFF<Bit>,
    /// Packets are in flight: before the event, and after it (`behind`: acknowledged beyond what was sent again; `near`: less
    /// than 256). The latter follow the line a cycle later.
    moving: DFF<Bit>,
    flying: DFF<Bit>,
    behind: DFF<Bit>,
    near: DFF<Bit>,
    at_una: DFF<Bit>,
    pending: DFF<Bit>,
    earlier: DFF<Bit>,
    /// The release was offered and not taken at once.
    offered: DFF<Bit>,
    /// An RNR NAK is being handled: park.
    park: DFF<Bit>,
    entry: DFF<TrackEntry>,
    offset: DFF<Bits<24>>,
    ticks: DFF<Bits<32>>,
    status: DFF<Bits<8>>,
    /// The oldest request gets a CQE with `status`.
    blame: DFF<Bit>,
    stats: DFF<Bits<13>>,
    give: Signal<Local, Bit>,
    /// The line has gone back, or there is none.
    leave: Signal<Local, Bit>,
    from_una: Signal<Local, Bits<24>>,
    span: Signal<Local, Bits<24>>,
    index_off: Signal<Local, Bits<16>>,
    index_span: Signal<Local, Bits<16>>,
    before: Signal<Local, Bits<16>>,
    flight: Signal<Local, Bits<24>>,
    tracked: Signal<Local, Bits<16>>,
    room: Signal<Local, Bit>,
    acked: Signal<Local, Bit>,
    wanted: Signal<Local, Bit>,
    passed: Signal<Local, Bit>,
    gap: Signal<Local, Bits<24>>,
    oldest: Signal<Local, TrackEntry>,
    /// The event acknowledges or names packets in flight.
    counts: Signal<Local, Bit>,
    retire: Signal<Local, Bit>,
    /// A local failure stands behind the request that is being retired; nothing is left there; what is there is not acknowledged.
    fails_next: Signal<Local, Bit>,
    empties: Signal<Local, Bit>,
    stops: Signal<Local, Bit>,
    /// The acknowledge does not reach the end of the request behind the one at hand: now, and of the one in `entry`.
    ends: Signal<Local, Bit>,
    short: DFF<Bit>,
    next_gap: Signal<Local, Bits<24>>,
    restarts: Signal<Local, Bit>,
    resumes: Signal<Local, Bit>,
    early: Signal<Local, Bit>,
    seen: Signal<Local, ReqCtx>,
    exponent: Signal<Local, Bits<5>>,
    bytes: Signal<Local, Bits<32>>,
    after: Signal<Local, Bits<8>>,
    /// The event came as an acknowledge; as an answer to a READ or an atomic.
    frame: Signal<Local, Bit>,
    answer: Signal<Local, Bit>,
    /// Not completed, though acknowledged.
    lag: Signal<Local, Bit>,
    nothing: Signal<Local, Bit>,
    follower: Signal<Local, Bits<16>>,
    undone: Signal<Local, Bits<16>>,
    wish: Signal<Local, TrackRead>,
}

impl Logic for RequesterRx {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, state, ev, line, client, missing, dirty, progress, live, dead, reliable, asked, may_ask, inside, old, moving, flying, behind, near, at_una, pending, earlier, park,
            offered, entry, offset, ticks, status, blame, stats, short
        );
        clock!(self, clock, intake, fetch, reads, scatter, reports, errors);
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

        // Distances, all modulo their width.
        self.seen.next = self.fetch.line.val();
        self.from_una.next = self.fetch.ev.val().psn - self.seen.val().una_psn;
        self.span.next = self.seen.val().max_psn - self.seen.val().una_psn;
        self.index_off.next = self.fetch.ev.val().index - self.seen.val().una_index;
        self.index_span.next = self.seen.val().sent_index - self.seen.val().una_index;
        self.before.next = self.fetch.ev.val().index - self.seen.val().error_index;
        self.flight.next = self.line.q.val().next_psn - self.line.q.val().una_psn;
        self.tracked.next = self.line.q.val().sent_index - self.line.q.val().done_index;
        self.follower.next = self.line.q.val().una_index + 1;
        self.nothing.next = self.line.q.val().una_index == self.line.q.val().sent_index;
        // ACK and NAK belong to RC, departures to the others.
        self.counts.next = self.live.q.val()
            & self.inside.q.val()
            & (self.frame.val() | self.answer.val() | (self.ev.q.val().kind == 4))
            & (self.reliable.q.val() == !(self.ev.q.val().kind == 4));
        self.m_track.valid.next = ((self.state.q.val() == State::Oldest)
            | ((self.state.q.val() == State::Decide) & self.counts.val() & !self.answer.val() & !self.asked.q.val()))
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
        // Half of the window and half of the tracker.
        self.flying.d.next = self.flight.val().any();
        self.behind.d.next = self.flight.val().get_bit(23);
        self.near.d.next = !self.flight.val().get_bits::<16>(8).any();
        self.room.next = self.near.q.val() & !self.tracked.val().get_bits::<10>(6).any();
        self.acked.next = (self.ev.q.val().kind == 0) | (self.ev.q.val().kind == 4);
        self.oldest.next = self.entry.q.val();
        if self.state.q.val() == State::Entry {
            self.oldest.next = self.s_track.data.val();
        }
        self.may_ask.d.next = (self.line.q.val().rd_out < self.line.q.val().max_rd_atomic) | !self.line.q.val().rd_out.any();
        if self.line.q.val().fenced {
            self.may_ask.d.next = !self.line.q.val().rd_out.any();
        }
        self.wanted.next = self.oldest.val().signaled;
        // Judged as it comes: while it waits the outcome does.
        self.gap.next = self.line.q.val().una_psn - self.s_track.data.val().last_psn;
        self.passed.next = self.gap.val().any() & !self.gap.val().get_bit(23);
        self.retire.next = false;
        self.fails_next.next =
            self.line.q.val().error_pending & (self.follower.val() == self.line.q.val().error_index);
        self.empties.next = (self.follower.val() == self.line.q.val().sent_index) & !self.fails_next.val();
        self.next_gap.next = self.line.q.val().una_psn - self.s_track.data.val().next_psn;
        self.ends.next = self.short.q.val();
        if self.state.q.val() == State::Entry {
            self.ends.next = !self.next_gap.val().any() | self.next_gap.val().get_bit(23);
        }
        self.short.d.next = self.ends.val();
        self.stops.next = self.ends.val() & !self.fails_next.val();
        // A running timer is started anew, or stopped when nothing is in flight; a queue that waits for room goes on.
        self.restarts.next = self.progress.q.val() & self.line.q.val().timer_on;
        self.resumes.next = self.line.q.val().parked & self.room.val() & self.may_ask.q.val();
        // Whoever gets the line next may see a timer about to be started anew, but no other command on its way.
        self.early.next = (self.state.q.val() == State::Settle)
            & (self.line.q.val().rnr_wait
                | (!self.behind.q.val()
                    & !self.resumes.val()
                    & (!self.restarts.val() | (self.flying.q.val() & !self.reports.timer_busy.val()))));
        self.fetch.give.next = self.give.val() | self.early.val();
        self.leave.next = (self.state.q.val() == State::Idle) | (self.fetch.give.val() & self.fetch.given.val());
        self.after.next = self.line.q.val().epoch + 1;
        self.exponent.next = self.seen.val().timeout;
        if self.seen.val().timeout > 28 {
            self.exponent.next = bits::<5>(28);
        }
        // Bytes of the oldest request that are acknowledged: packets times the path MTU.
        self.bytes.next = bit_cast::<32, 24>(self.offset.q.val()) << 12;
        match self.line.q.val().pmtu.index() {
            1 => {
                self.bytes.next = bit_cast::<32, 24>(self.offset.q.val()) << 8;
            }
            2 => {
                self.bytes.next = bit_cast::<32, 24>(self.offset.q.val()) << 9;
            }
            3 => {
                self.bytes.next = bit_cast::<32, 24>(self.offset.q.val()) << 10;
            }
            4 => {
                self.bytes.next = bit_cast::<32, 24>(self.offset.q.val()) << 11;
            }
            _ => {
                self.bytes.next = bit_cast::<32, 24>(self.offset.q.val()) << 12;
            }
        }
        self.errors.s.valid.next = false;
        self.errors.s.data.next.qpn = self.ev.q.val().qpn;
        self.errors.s.data.next.epoch = self.line.q.val().epoch;
        self.errors.s.data.next.side = false;
        self.errors.s.data.next.cause = self.status.q.val();
        self.reports.line.next = self.line.q.val();
        self.reports.ev.next = self.ev.q.val();
        self.reports.entry.next = self.oldest.val();
        if self.state.q.val() == State::Reads {
            self.reports.entry.next = self.reads.entry.val();
        }
        self.reports.status.next = self.status.q.val();
        self.undone.next = self.line.q.val().done_index + 1;
        self.reports.follower.next = self.undone.val();
        self.reports.after.next = self.after.val();
        self.reports.ticks.next = self.ticks.q.val();
        self.reports.put_cmd.next = false;
        self.reports.cmd_op.next = bits::<2>(2);
        self.reports.put_cqe.next = false;
        self.reports.put_timer.next = false;
        self.reports.timer_start.next = false;
        self.reports.timer_rnr.next = false;
        self.reports.put_async.next = false;
        self.reports.blame.next = false;

        match self.state.q.val() {
            State::Decide => {
                self.status.d.next = self.ev.q.val().status;
                self.state.d.next = State::Release;
                if (self.ev.q.val().kind == 9) & !self.missing.q.val() {
                    if !self.dead.q.val() {
                        self.blame.d.next = false;
                        self.state.d.next = State::Fatal;
                    }
                } else if !self.live.q.val() {
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
                            if self.asked.q.val() {
                                self.reads.start.next = true;
                                self.state.d.next = State::Reads;
                            }
                        }
                        6 => {
                            if self.inside.q.val() {
                                self.stats.d.next = bits::<13>(256);
                                self.dirty.d.next = true;
                                if self.earlier.q.val() {
                                    self.line.d.next.error_pending = true;
                                    self.line.d.next.error_index = self.ev.q.val().index;
                                    self.line.d.next.error_status = self.ev.q.val().status;
                                    self.pending.d.next = self.ev.q.val().index == self.line.q.val().una_index;
                                }
                                self.state.d.next = State::Oldest;
                                if self.asked.q.val() {
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
                                if self.moving.q.val() {
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
                        12 => {
                            if self.asked.q.val() {
                                self.reads.start.next = true;
                                self.state.d.next = State::Reads;
                            }
                        }
                        _ => {
                            if self.counts.val() & (self.asked.q.val() | self.answer.val()) {
                                self.reads.start.next = true;
                                self.state.d.next = State::Reads;
                            } else if self.counts.val() {
                                self.state.d.next = State::Oldest;
                                if self.m_track.valid.val() & self.m_track.ready.val() {
                                    self.state.d.next = State::Entry;
                                }
                                self.progress.d.next = self.acked.val() | !self.at_una.q.val();
                                if self.acked.val() | !self.at_una.q.val() {
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
                                if !self.old.q.val() {
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
                        1 => {
                            self.state.d.next = State::Finish;
                        }
                        2 => {
                            self.state.d.next = State::Distance;
                        }
                        3 => {
                            self.state.d.next = State::Fail;
                        }
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
                self.entry.d.next = self.s_track.data.val();
                if self.s_track.valid.val() {
                    self.state.d.next = State::Retire;
                    if !self.passed.val() {
                        self.state.d.next = State::Finish;
                        if !self.frame.val() | (self.ev.q.val().kind == 0) {
                            self.state.d.next = State::Settle;
                        }
                    } else {
                        self.retire.next = !self.wanted.val() | !self.reports.cqe_busy.val();
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
                    3 => {
                        self.state.d.next = State::Fail;
                    }
                    _ => {}
                }
            }
            State::Settle => {
                if self.line.q.val().rnr_wait {
                    self.state.d.next = State::Release;
                } else if self.behind.q.val() {
                    // Acknowledged beyond the packet a retransmission was about to send.
                    self.state.d.next = State::Distance;
                } else if !self.restarts.val() | !self.reports.timer_busy.val() {
                    self.state.d.next = State::Release;
                    if self.restarts.val() {
                        self.reports.put_timer.next = true;
                        self.reports.timer_start.next = self.flying.q.val();
                        self.line.d.next.timer_on = self.flying.q.val();
                    }
                    if self.resumes.val() {
                        self.dirty.d.next = true;
                        self.line.d.next.parked = false;
                        self.reports.put_cmd.next = true;
                    }
                }
                if self.early.val() {
                    self.offered.d.next = !self.fetch.given.val();
                }
            }
            State::Distance => {
                self.offset.d.next = self.line.q.val().una_psn - self.line.q.val().una_wqe_psn;
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
                self.line.d.next.msg_offset = self.bytes.val();
                self.line.d.next.in_msg = self.offset.q.val().any();
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
                    7 => {
                        self.stats.d.next = bits::<13>(0x1000);
                    }
                    9 => {
                        self.stats.d.next = bits::<13>(16);
                    }
                    10 => {
                        self.stats.d.next = bits::<13>(32);
                    }
                    11 => {
                        self.stats.d.next = bits::<13>(64);
                    }
                    12 => {
                        self.stats.d.next = bits::<13>(512);
                    }
                    13 => {
                        self.stats.d.next = bits::<13>(1024);
                    }
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
                    self.line.d.next.epoch = self.after.val();
                    self.line.d.next.timer_on = false;
                    self.line.d.next.rnr_wait = false;
                    self.line.d.next.parked = false;
                    self.reports.put_cmd.next = true;
                    self.reports.put_timer.next = true;
                    self.reports.put_async.next = true;
                    self.errors.s.valid.next = self.blame.q.val();
                    self.state.d.next = State::Release;
                }
            }
            _ => {}
        }

        if self.retire.val() {
            self.dirty.d.next = true;
            self.reports.put_cqe.next = self.wanted.val();
            self.line.d.next.una_index = self.follower.val();
            self.line.d.next.done_index = self.follower.val();
            self.line.d.next.una_wqe_psn = self.oldest.val().last_psn + 1;
            self.pending.d.next = self.fails_next.val();
            self.state.d.next = State::Oldest;
            if (self.empties.val() | self.stops.val()) & (!self.frame.val() | (self.ev.q.val().kind == 0)) {
                self.state.d.next = State::Settle;
            }
        }

        // The next event: distances from the window.
        self.fetch.take.next = self.leave.val();
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
            self.live.d.next = (self.seen.val().state == 3) & !self.fetch.missing.val();
            self.asked.d.next = self.seen.val().rd_out.any();
            self.moving.d.next = !(self.seen.val().next_psn == self.seen.val().una_psn);
            self.dead.d.next = (self.seen.val().state == 6) | (self.seen.val().state == 0);
            self.reliable.d.next = self.seen.val().qp_type == 0;
            self.at_una.d.next = self.from_una.val() == 0;
            self.inside.d.next = self.from_una.val() < self.span.val();
            self.old.d.next = self.from_una.val().get_bit(23);
            self.pending.d.next = self.seen.val().error_pending & (self.seen.val().error_index == self.seen.val().una_index);
            self.earlier.d.next = !self.seen.val().error_pending | self.before.val().get_bit(15);
            self.ticks.d.next = bits::<32>(4) << bit_cast::<32, 5>(self.exponent.val());
            // A local failure of a request that is not retired yet.
            if self.fetch.ev.val().kind == 6 {
                self.inside.d.next = self.index_off.val() <= self.index_span.val();
            }
        }

        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
