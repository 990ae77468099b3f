//! The receiving half of the requester: acknowledges, time-outs and errors. See README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::context::bus::CtxClient;
use crate::msg::*;
use crate::records::ReqCtx;
use crate::stream::MsgFifo;
use rust_hdl::prelude::*;

mod intake;
mod rnr;

pub use intake::{kind, Event};
pub use rnr::{rnr_ticks, RNR_10US};

use intake::Intake;
use rnr::RnrTicks;

/// Names of the bits of `stat`.
pub const STATS: &[&str] = &[
    "retransmits", "timeouts", "rnr_received", "nak_seq_received", "nak_inv_received", "nak_access_received", "nak_op_received",
    "bad_ack", "local_errors", "retry_exceeded", "rnr_exceeded", "unexpected_response",
];

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Acquire,
    Line,
    /// Distances of the event from the window.
    Check,
    Decide,
    /// Retires work requests, oldest first.
    Oldest,
    Entry,
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
    pub ctx: CtxClient<ReqCtx>,
    pub m_track: MsgSrc<TrackRead>,
    pub s_track: MsgSink<TrackEntry>,
    pub m_cmd: MsgSrc<SqCmd>,
    pub m_cqe: MsgSrc<CqeReq>,
    pub m_timer: MsgSrc<TimerCmd>,
    /// To resp.
    pub m_error: MsgSrc<QpError>,
    pub m_async: MsgSrc<EqeReq>,
    pub m_cell: MsgSrc<CellRead>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<12>>,
    intake: Intake,
    rnr: RnrTicks,
    errors: MsgFifo<QpError, 8>,
    state: DFF<State>,
    ev: DFF<Event>,
    line: DFF<ReqCtx>,
    dirty: DFF<Bit>,
    /// `una_psn` moved.
    progress: DFF<Bit>,
    live: DFF<Bit>,
    dead: DFF<Bit>,
    reliable: DFF<Bit>,
    inside: DFF<Bit>,
    old: DFF<Bit>,
    at_una: DFF<Bit>,
    pending: DFF<Bit>,
    earlier: DFF<Bit>,
    /// An RNR NAK is being handled: park.
    park: DFF<Bit>,
    gap: DFF<Bits<24>>,
    entry: DFF<TrackEntry>,
    offset: DFF<Bits<24>>,
    ticks: DFF<Bits<32>>,
    status: DFF<Bits<8>>,
    /// The oldest request gets a CQE with `status`.
    blame: DFF<Bit>,
    cmd: DFF<SqCmd>,
    cmd_valid: DFF<Bit>,
    cqe: DFF<CqeReq>,
    cqe_valid: DFF<Bit>,
    timer: DFF<TimerCmd>,
    timer_valid: DFF<Bit>,
    event_out: DFF<EqeReq>,
    event_valid: DFF<Bit>,
    stats: DFF<Bits<12>>,
    acquire: Signal<Local, Bit>,
    give: Signal<Local, Bit>,
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
    exponent: Signal<Local, Bits<5>>,
    bytes: Signal<Local, Bits<32>>,
    after: Signal<Local, Bits<8>>,
    code: Signal<Local, Bits<5>>,
    syndrome: Signal<Local, Bits<8>>,
    /// The event came as a frame.
    frame: Signal<Local, Bit>,
    nothing: Signal<Local, Bit>,
    follower: Signal<Local, Bits<16>>,
}

impl Logic for RequesterRx {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, state, ev, line, dirty, progress, live, dead, reliable, inside, old, at_una, pending, earlier, park,
            gap, entry, offset, ticks, status, blame, cmd, cmd_valid, cqe, cqe_valid, timer, timer_valid, event_out,
            event_valid, stats
        );
        clock!(self, clock, intake, errors);
        self.intake.reset.next = self.reset.val();
        self.errors.reset.next = self.reset.val();
        MsgSink::<RxDesc>::link(&mut self.s_rx, &mut self.intake.s_rx);
        for i in 0..2 {
            MsgSink::<TxDone>::link(&mut self.s_tx_done[i], &mut self.intake.s_tx_done[i]);
        }
        MsgSink::<TimerEvent>::link(&mut self.s_timer, &mut self.intake.s_timer);
        MsgSink::<QpError>::link(&mut self.s_error, &mut self.intake.s_error);
        MsgSrc::<CellRead>::link(&mut self.m_cell, &mut self.intake.m_cell);
        MsgSrc::<QpError>::link(&mut self.m_error, &mut self.errors.m);

        self.m_cmd.data.next = self.cmd.q.val();
        self.m_cmd.valid.next = self.cmd_valid.q.val();
        self.m_cqe.data.next = self.cqe.q.val();
        self.m_cqe.valid.next = self.cqe_valid.q.val();
        self.m_timer.data.next = self.timer.q.val();
        self.m_timer.valid.next = self.timer_valid.q.val();
        self.m_async.data.next = self.event_out.q.val();
        self.m_async.valid.next = self.event_valid.q.val();
        self.stat.next = self.stats.q.val();
        self.stats.d.next = bits::<12>(0);
        self.cmd_valid.d.next = self.cmd_valid.q.val() & !self.m_cmd.ready.val();
        self.cqe_valid.d.next = self.cqe_valid.q.val() & !self.m_cqe.ready.val();
        self.timer_valid.d.next = self.timer_valid.q.val() & !self.m_timer.ready.val();
        self.event_valid.d.next = self.event_valid.q.val() & !self.m_async.ready.val();

        // Context port.
        self.acquire.next = (self.state.q.val() == State::Acquire) & self.intake.m_event.valid.val();
        self.intake.m_event.ready.next = self.acquire.val() & self.ctx.acq_ready.val();
        self.give.next = (self.state.q.val() == State::Release) & !self.cmd_valid.q.val() & !self.timer_valid.q.val();
        self.ctx.acq_valid.next = self.acquire.val();
        self.ctx.acq_id.next = self.intake.m_event.data.val().qpn;
        self.ctx.acq_tag.next = bits::<4>(0);
        self.ctx.line_ready.next = self.state.q.val() == State::Line;
        self.ctx.rel_valid.next = self.give.val();
        self.ctx.rel_id.next = self.ev.q.val().qpn;
        self.ctx.rel_dirty.next = self.dirty.q.val();
        self.ctx.rel_data.next = self.line.q.val();

        // Distances, all modulo their width.
        self.from_una.next = self.ev.q.val().psn - self.line.q.val().una_psn;
        self.span.next = self.line.q.val().max_psn - self.line.q.val().una_psn;
        self.index_off.next = self.ev.q.val().index - self.line.q.val().una_index;
        self.index_span.next = self.line.q.val().sent_index - self.line.q.val().una_index;
        self.before.next = self.ev.q.val().index - self.line.q.val().error_index;
        self.flight.next = self.line.q.val().next_psn - self.line.q.val().una_psn;
        self.tracked.next = self.line.q.val().sent_index - self.line.q.val().una_index;
        self.follower.next = self.line.q.val().una_index + 1;
        self.nothing.next = self.line.q.val().una_index == self.line.q.val().sent_index;
        self.m_track.valid.next =
            (self.state.q.val() == State::Oldest) & !self.pending.q.val() & !self.nothing.val();
        self.m_track.data.next.qpn = self.ev.q.val().qpn;
        self.m_track.data.next.index = self.line.q.val().una_index;
        self.s_track.ready.next = self.state.q.val() == State::Entry;
        // Half of the window and half of the tracker.
        self.room.next = !self.flight.val().get_bits::<16>(8).any() & !self.tracked.val().get_bits::<10>(6).any();
        self.acked.next = (self.ev.q.val().kind == 0) | (self.ev.q.val().kind == 4);
        self.wanted.next = self.entry.q.val().signaled;
        self.passed.next = self.gap.q.val().any() & !self.gap.q.val().get_bit(23);
        self.after.next = self.line.q.val().epoch + 1;
        self.exponent.next = self.line.q.val().timeout;
        if self.line.q.val().timeout > 28 {
            self.exponent.next = bits::<5>(28);
        }
        self.frame.next = self.ev.q.val().kind < 4;
        self.syndrome.next = self.ev.q.val().syndrome;
        self.code.next = self.syndrome.val().get_bits::<5>(0);
        self.rnr.code.next = self.code.val();
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

        match self.state.q.val() {
            State::Acquire => {
                self.ev.d.next = self.intake.m_event.data.val();
                self.dirty.d.next = false;
                self.progress.d.next = false;
                self.park.d.next = false;
                self.blame.d.next = true;
                if self.acquire.val() & self.ctx.acq_ready.val() {
                    self.state.d.next = State::Line;
                }
            }
            State::Line => {
                self.line.d.next = self.ctx.line_data.val();
                if self.ctx.line_valid.val() {
                    self.state.d.next = State::Check;
                    if self.ctx.line_fault.val() {
                        self.state.d.next = State::Acquire;
                        if self.frame.val() {
                            self.stats.d.next = bits::<12>(128);
                        }
                    }
                }
            }
            State::Check => {
                self.live.d.next = self.line.q.val().state == 3;
                self.dead.d.next = (self.line.q.val().state == 6) | (self.line.q.val().state == 0);
                self.reliable.d.next = self.line.q.val().qp_type == 0;
                self.at_una.d.next = self.from_una.val() == 0;
                self.inside.d.next = self.from_una.val() < self.span.val();
                self.old.d.next = self.from_una.val().get_bit(23);
                self.pending.d.next = self.line.q.val().error_pending
                    & (self.line.q.val().error_index == self.line.q.val().una_index);
                self.earlier.d.next = !self.line.q.val().error_pending | self.before.val().get_bit(15);
                self.ticks.d.next = bits::<32>(4) << bit_cast::<32, 5>(self.exponent.val());
                // A local failure of a request that is not retired yet.
                if self.ev.q.val().kind == 6 {
                    self.inside.d.next = self.index_off.val() <= self.index_span.val();
                }
                self.state.d.next = State::Decide;
            }
            State::Decide => {
                self.status.d.next = self.ev.q.val().status;
                self.state.d.next = State::Release;
                if self.ev.q.val().kind == 9 {
                    if !self.dead.q.val() {
                        self.blame.d.next = false;
                        self.state.d.next = State::Fatal;
                    }
                } else if !self.live.q.val() {
                    if self.frame.val() {
                        self.stats.d.next = bits::<12>(128);
                    }
                } else {
                    match self.ev.q.val().kind.index() {
                        5 => {
                            self.state.d.next = State::Oldest;
                        }
                        6 => {
                            if self.inside.q.val() {
                                self.stats.d.next = bits::<12>(256);
                                self.dirty.d.next = true;
                                if self.earlier.q.val() {
                                    self.line.d.next.error_pending = true;
                                    self.line.d.next.error_index = self.ev.q.val().index;
                                    self.line.d.next.error_status = self.ev.q.val().status;
                                    self.pending.d.next = self.ev.q.val().index == self.line.q.val().una_index;
                                }
                                self.state.d.next = State::Oldest;
                            }
                        }
                        7 => {
                            if !self.line.q.val().rnr_wait & self.line.q.val().timer_on {
                                self.dirty.d.next = true;
                                self.line.d.next.timer_on = false;
                                if self.flight.val().any() {
                                    self.stats.d.next = bits::<12>(2);
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
                        _ => {
                            // ACK and NAK belong to RC, departures to the others.
                            if self.inside.q.val() & (self.reliable.q.val() == !(self.ev.q.val().kind == 4)) {
                                self.state.d.next = State::Oldest;
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
                            } else if !self.old.q.val() {
                                self.stats.d.next = bits::<12>(128);
                            }
                        }
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
                self.gap.d.next = self.line.q.val().una_psn - self.s_track.data.val().last_psn;
                if self.s_track.valid.val() {
                    self.state.d.next = State::Retire;
                }
            }
            State::Retire => {
                if !self.passed.val() {
                    self.state.d.next = State::Finish;
                } else if !self.wanted.val() | !self.cqe_valid.q.val() {
                    self.dirty.d.next = true;
                    self.cqe_valid.d.next = self.wanted.val() | (self.cqe_valid.q.val() & !self.m_cqe.ready.val());
                    self.line.d.next.una_index = self.follower.val();
                    self.line.d.next.una_wqe_psn = self.entry.q.val().last_psn + 1;
                    self.pending.d.next =
                        self.line.q.val().error_pending & (self.follower.val() == self.line.q.val().error_index);
                    self.state.d.next = State::Oldest;
                }
            }
            State::Finish => {
                self.state.d.next = State::Settle;
                match self.ev.q.val().kind.index() {
                    1 => {
                        if !self.line.q.val().rnr_wait {
                            self.stats.d.next = bits::<12>(4);
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
                        self.stats.d.next = bits::<12>(8);
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
                self.state.d.next = State::Release;
                if !self.line.q.val().rnr_wait {
                    if self.flight.val().get_bit(23) {
                        // Acknowledged beyond the packet a retransmission was about to send.
                        self.state.d.next = State::Distance;
                    } else {
                        if self.progress.q.val() & self.line.q.val().timer_on {
                            self.timer_valid.d.next = true;
                            self.line.d.next.timer_on = self.flight.val().any();
                        }
                        if self.line.q.val().parked & self.room.val() {
                            self.dirty.d.next = true;
                            self.line.d.next.parked = false;
                            self.cmd_valid.d.next = true;
                        }
                    }
                }
            }
            State::Distance => {
                self.offset.d.next = self.line.q.val().una_psn - self.line.q.val().una_wqe_psn;
                self.state.d.next = State::Rewind;
            }
            State::Rewind => {
                self.stats.d.next = bits::<12>(1);
                self.dirty.d.next = true;
                self.cmd_valid.d.next = true;
                self.timer_valid.d.next = self.line.q.val().timer_on | self.park.q.val();
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
                if !self.cqe_valid.q.val() {
                    self.cqe_valid.d.next = true;
                    self.state.d.next = State::Fatal;
                }
                match self.status.q.val().index() {
                    9 => {
                        self.stats.d.next = bits::<12>(16);
                    }
                    10 => {
                        self.stats.d.next = bits::<12>(32);
                    }
                    11 => {
                        self.stats.d.next = bits::<12>(64);
                    }
                    12 => {
                        self.stats.d.next = bits::<12>(512);
                    }
                    13 => {
                        self.stats.d.next = bits::<12>(1024);
                    }
                    _ => {}
                }
                if self.cqe_valid.q.val() {
                    self.stats.d.next = bits::<12>(0);
                }
            }
            State::Fatal => {
                // The failure's CQE is with the completion writer before the flush begins.
                if !self.cqe_valid.q.val() & !self.event_valid.q.val() & self.errors.s.ready.val() {
                    self.dirty.d.next = true;
                    self.line.d.next.state = bits::<3>(6);
                    self.line.d.next.epoch = self.after.val();
                    self.line.d.next.timer_on = false;
                    self.line.d.next.rnr_wait = false;
                    self.line.d.next.parked = false;
                    self.cmd_valid.d.next = true;
                    self.timer_valid.d.next = true;
                    self.event_valid.d.next = true;
                    self.errors.s.valid.next = self.blame.q.val();
                    self.state.d.next = State::Release;
                }
            }
            State::Release => {
                if self.give.val() & self.ctx.rel_ready.val() {
                    self.state.d.next = State::Acquire;
                }
            }
            _ => {
                self.state.d.next = State::Acquire;
            }
        }

        // Records load while their register is empty; the states above only raise `valid`.
        if !self.cmd_valid.q.val() {
            self.cmd.d.next.qpn = self.ev.q.val().qpn;
            self.cmd.d.next.index = self.line.q.val().una_index;
            self.cmd.d.next.epoch = self.after.val();
            self.cmd.d.next.op = bits::<2>(2);
            if self.state.q.val() == State::Rewind {
                self.cmd.d.next.op = bit_cast::<2, 1>(self.park.q.val().into());
            }
            if self.state.q.val() == State::Fatal {
                self.cmd.d.next.op = bits::<2>(3);
                if self.blame.q.val() {
                    self.cmd.d.next.index = self.follower.val();
                }
            }
        }
        if !self.timer_valid.q.val() {
            self.timer.d.next.qpn = self.ev.q.val().qpn;
            self.timer.d.next.kind = false;
            self.timer.d.next.start = false;
            self.timer.d.next.ticks = self.ticks.q.val();
            if self.state.q.val() == State::Settle {
                self.timer.d.next.start = self.flight.val().any();
            }
            if (self.state.q.val() == State::Rewind) & self.park.q.val() {
                self.timer.d.next.start = true;
                self.timer.d.next.kind = true;
                self.timer.d.next.ticks = bit_cast::<32, 20>(self.rnr.ticks.val());
            }
        }
        if !self.cqe_valid.q.val() {
            self.cqe.d.next.cqn = self.line.q.val().scqn;
            self.cqe.d.next.function = self.line.q.val().function;
            self.cqe.d.next.qpn = self.ev.q.val().qpn;
            self.cqe.d.next.wqe_index = self.line.q.val().una_index;
            self.cqe.d.next.status = bits::<8>(0);
            self.cqe.d.next.opcode = bit_cast::<8, 4>(self.entry.q.val().opcode);
            self.cqe.d.next.syndrome = bits::<8>(0);
            if self.state.q.val() == State::Fail {
                self.cqe.d.next.status = self.status.q.val();
                self.cqe.d.next.opcode = bits::<8>(0);
                if self.ev.q.val().kind == 3 {
                    self.cqe.d.next.syndrome = self.ev.q.val().syndrome;
                }
            }
        }
        if !self.event_valid.q.val() {
            // The peer's protection violation, or the queue pair's own failure (`abi::codes::EventKind`).
            self.event_out.d.next.kind = bits::<8>(3);
            if !self.blame.q.val() & (self.status.q.val() == 10) {
                self.event_out.d.next.kind = bits::<8>(4);
            }
            self.event_out.d.next.id = self.ev.q.val().qpn;
            self.event_out.d.next.cause = bit_cast::<16, 8>(self.status.q.val());
        }
        if self.reset.val() {
            self.state.d.next = State::Acquire;
            self.cmd_valid.d.next = false;
            self.cqe_valid.d.next = false;
            self.timer_valid.d.next = false;
            self.event_valid.d.next = false;
        }
    }
}
