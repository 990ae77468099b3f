//! The responder: what each received request means for its queue pair. See README.md.
mod check;
mod compose;
mod decode;
mod front;
mod kept;
#[cfg(test)]
pub use ferric_model::roce::responder as model;
mod open;
mod park;
#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::context::bus::CtxClient;
use crate::msg::{PlaceOp, QpError, RqAlloc, RqCmd, RqFlush, RqGrant, RxRequest};
use crate::records::RspCtx;
use check::{RequestCheck, Verdict};
use compose::{Compose, Order};
use ferric_abi::codes::{QpState, QpType};
use ferric_hdl_derive::kernel;
use front::{Front, Job};
use kept::KeptBuffers;
use open::OpenRequests;
use rust_hdl::prelude::*;

/// Of `RspCtx::rq_handle`: there is one.
const HELD: u64 = 0x80;
/// Late allocations under way at most.
const LATE: u64 = 7;

/// Event names of [`Responder::stat`], bit 0 first.
pub const STATS: &[&str] = &[
    "rx_requests",
    "dup_requests",
    "out_of_order",
    "nak_seq_sent",
    "nak_inv_sent",
    "nak_access_sent",
    "rnr_sent",
    "drop_no_qp",
    "drop_bad_transport",
    "drop_bad_pkey",
    "raw_no_queue",
    "no_recv",
    "recv_flushed",
    "drop_bad_qkey",
    "drop_bad_length",
    "srq_dead",
];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // All places taken of requests that wait for atomics, no other is picked (`park.rs`).
    ("s_rx", &["over", "ctx[0]", "ctx[1]", "m_alloc", "s_grant", "m_op", "m_rq", "m_error"]),
    ("s_flush", &["ctx[0]", "ctx[1]", "m_alloc", "s_grant", "m_op", "m_rq", "m_error"]),
    ("s_error[*]", &["ctx[0]", "ctx[1]", "m_alloc", "s_grant", "m_op", "m_rq", "m_error"]),
    // The line of the job in hand, or of the next one, which waits for that; the job in hand never waits for the other line. Who has to wait for atomics does it before a line is asked for.
    ("ctx[*]", &["m_alloc", "s_grant", "m_op", "m_rq", "m_error"]),
    ("s_grant", &[]), // awaited since it was asked for
    // Orders of packets that wait for atomics no more, and barriers.
    ("m_op", &["barrier", "ctx[0]", "ctx[1]", "m_alloc", "s_grant", "m_op", "m_rq", "m_error"]),
];

/// What the machine does.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum State {
    /// Waits for the next job and its line.
    Idle,
    Check,
    Decide,
    /// As many receive buffers as may be are with messages in progress: one of them is taken away first. If none may be, the answer is that of an empty
    /// receive queue.
    Take,
    Grant,
    /// A datagram with payload: its IP header goes first.
    Area,
    Commit,
    Fall,
    Held,
    /// A queue pair that has been reset.
    Back,
    /// A queue pair on a shared receive queue: behind its last receive.
    Last,
    Release,
}

/// The responder. `LQ`: log2 of the number of queue pairs (depth of the error queues), `LP`: log2 of the requests that may wait for atomics.
#[derive(LogicBlock, Default)]
pub struct Responder<const LQ: usize, const LP: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Requests and raw frames.
    pub s_rx: MsgSink<RxRequest>,
    /// Receive requests to be completed with a flush error.
    pub s_flush: MsgSink<RqFlush>,
    /// 0: from completion, or of a reset (`cause` 0); matched by epoch. 1: from req_rx.
    pub s_error: [MsgSink<QpError>; 2],
    /// Pulse: send a barrier behind everything accepted so far.
    pub barrier: Signal<In, Bit>,
    /// Used in turn: one job's line is fetched while the other's is in hand.
    pub ctx: [CtxClient<RspCtx>; 2],
    pub m_alloc: MsgSrc<RqAlloc>,
    pub s_grant: MsgSink<RqGrant>,
    /// How many requests receive ring `peek` had, in the next cycle, at most 15. Pulse: an allocation that was `late` has been decided.
    pub peek: Signal<Out, Bits<24>>,
    pub posted: Signal<In, Bits<4>>,
    pub told: Signal<In, Bit>,
    pub m_rq: MsgSrc<RqCmd>,
    pub m_op: MsgSrc<PlaceOp>,
    /// To req_rx.
    pub m_error: MsgSrc<QpError>,
    /// Queue pair of raw frames, bit 31 = valid.
    pub raw_qpn: Signal<In, Bits<32>>,
    /// From `roce/reply`: READs and atomics answered of a queue pair in a life, modulo 32.
    pub answered: Signal<In, Bit>,
    pub answered_qpn: Signal<In, Bits<24>>,
    pub answered_epoch: Signal<In, Bits<8>>,
    pub answered_count: Signal<In, Bits<5>>,
    /// Of the queue pair so many atomics have been executed, or will never be, modulo 512: what came behind them may go on.
    pub over: Signal<In, Bit>,
    pub over_qpn: Signal<In, Bits<24>>,
    pub over_count: Signal<In, Bits<9>>,
    /// One pulse per event, see [`STATS`].
    pub stat: Signal<Out, Bits<16>>,
    /// Whose events they are.
    pub stat_function: Signal<Out, Bits<12>>,
    front: Front<LQ, LP>,
    check: RequestCheck,
    open: OpenRequests<LQ>,
    kept: KeptBuffers,
    compose: Compose,
    state: DFF<State>,
    /// The state is `Commit`: in one bit, since the next job's line is taken behind it, which is the longest way of all.
    committing: DFF<Bit>,
    line: DFF<RspCtx>,
    /// The verdict, if it does not come from the check.
    verdict: DFF<Verdict>,
    fixed: DFF<Bit>,
    /// The fixed verdict is `Dead`.
    dead: DFF<Bit>,
    locked: DFF<Bit>,
    dirty: DFF<Bit>,
    cause: DFF<Bits<8>>,
    allocating: DFF<Bit>,
    /// The victim's queue pair is told with the next allocation.
    taken: DFF<Bit>,
    alloc: DFF<RqAlloc>,
    late: DFF<Bit>,
    /// Late allocations that are not decided, at most [`LATE`].
    under_way: DFF<Bits<3>>,
    /// The job in hand is a packet: `front.job`, decoded.
    packet: DFF<Bit>,
    /// In the last cycle a further late allocation could be made. No packet that makes one was in `Commit` then, so that it still can.
    may_ask: DFF<Bit>,
    /// The packet in hand has its late allocation on the way.
    asked: DFF<Bit>,
    rq_busy: DFF<Bit>,
    error_busy: DFF<Bit>,
    error: DFF<QpError>,
    op: DFF<PlaceOp>,
    op_busy: DFF<Bit>,
    events: DFF<Bits<16>>,
    events_of: DFF<Bits<12>>,
    /// The packet in hand ends here, and the next job may come.
    swift: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    wants: Signal<Local, Bit>,
    comes: Signal<Local, Bit>,
    twice: Signal<Local, Bit>,
    enters: Signal<Local, Bit>,
    stale: Signal<Local, Bit>,
    handle: Signal<Local, Bits<8>>,
    held: Signal<Local, Bit>,
    judged: Signal<Local, Verdict>,
    asks: Signal<Local, Bit>,
    /// The verdict ends the queue pair.
    fatal: Signal<Local, Bit>,
    /// The packet in hand ends its message: the receive buffer that it asks for goes with its order.
    passing: Signal<Local, Bit>,
}

#[kernel]
impl<const LQ: usize, const LP: usize> Logic for Responder<LQ, LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, line, verdict, fixed, dead, locked, dirty, cause, allocating, taken, alloc, late, under_way, may_ask, packet, asked);
        dff_setup!(self, clock, rq_busy, error_busy, error, op, op_busy, events, events_of, committing);
        clock!(self, clock, front, check, open, kept);
        self.front.reset.next = self.reset.val();
        self.open.reset.next = self.reset.val();
        self.kept.reset.next = self.reset.val();
        self.open.answered.next = self.answered.val();
        self.open.answered_qpn.next = self.answered_qpn.val();
        self.open.answered_epoch.next = self.answered_epoch.val();
        self.open.answered_count.next = self.answered_count.val();
        self.open.qpn.next = self.front.id.val();
        if self.wants.val() {
            self.open.qpn.next = self.front.next_id.val();
        }
        self.open.ctx.next = self.line.q.val();
        MsgSink::<RxRequest>::link(&mut self.s_rx, &mut self.front.s_rx);
        MsgSink::<RqFlush>::link(&mut self.s_flush, &mut self.front.s_flush);
        for i in 0..2 {
            MsgSink::<QpError>::link(&mut self.s_error[i], &mut self.front.s_error[i]);
            CtxClient::<RspCtx>::link(&mut self.ctx[i], &mut self.front.ctx[i]);
        }
        self.front.barrier.next = self.barrier.val();
        self.front.over.next = self.over.val();
        self.front.over_qpn.next = self.over_qpn.val();
        self.front.over_count.next = self.over_count.val();
        self.front.raw_qpn.next = self.raw_qpn.val();

        self.handle.next = self.line.q.val().rq_handle;
        self.held.next = self.handle.val().get_bit(7);

        // Output registers; each is filled only when empty.
        self.m_op.data.next = self.op.q.val();
        self.m_op.valid.next = self.op_busy.q.val();
        if self.m_op.ready.val() {
            self.op_busy.d.next = false;
        }
        self.m_rq.data.next.qpn = self.front.id.val();
        self.m_rq.valid.next = self.rq_busy.q.val();
        if self.m_rq.ready.val() {
            self.rq_busy.d.next = false;
        }
        self.m_error.data.next = self.error.q.val();
        self.m_error.valid.next = self.error_busy.q.val();
        if self.m_error.ready.val() {
            self.error_busy.d.next = false;
        }
        self.peek.next = self.line.q.val().rq;
        // What is asked for stays as it is until it is taken, when the line may be another one's.
        if !self.allocating.q.val() {
            self.alloc.d.next.ring = self.line.q.val().rq;
            self.alloc.d.next.qpn = self.front.id.val();
            self.alloc.d.next.again = self.held.val();
            self.alloc.d.next.index = self.line.q.val().rq_index;
            self.alloc.d.next.victim = self.kept.victim.val();
            self.alloc.d.next.loser = self.kept.loser.val();
        }
        self.m_alloc.data.next = self.alloc.q.val();
        self.m_alloc.data.next.taken = self.taken.q.val();
        self.m_alloc.data.next.late = self.late.q.val();
        self.m_alloc.valid.next = self.allocating.q.val();
        if self.allocating.q.val() & self.m_alloc.ready.val() {
            self.allocating.d.next = false;
            self.taken.d.next = false;
            self.late.d.next = false;
        }
        self.s_grant.ready.next = self.state.q.val() == State::Grant;
        self.stat.next = self.events.q.val();
        self.stat_function.next = self.events_of.q.val();
        self.events_of.d.next = self.compose.whose.val();
        self.events.d.next = bits::<16>(0);
        self.enters.next = false;

        self.check.kind.next = self.front.kind.val(); // The packet under judgement.
        self.check.rx.next = self.front.rx.val();
        self.check.ctx.next = self.line.q.val();
        self.check.full.next = self.open.full.val();
        self.check.gone.next = self.kept.gone.val();
        self.kept.qpn.next = self.front.id.val();
        self.kept.ctx.next = self.line.q.val();
        self.kept.keep.next = false;
        self.kept.touch.next = false;
        self.kept.put_back.next = false;
        self.kept.handle.next = self.handle.val().get_bits::<6>(0);
        self.kept.seek.next = self.state.q.val() == State::Take;
        self.kept.take.next = false;
        self.compose.gone.next = self.kept.gone.val();
        self.compose.victim.next = self.kept.victim.val();
        self.stale.next = (self.line.q.val().epoch != self.front.place_error.val().epoch) & (self.front.job.val() == Job::PlaceError);
        self.judged.next = self.check.verdict.val();
        if self.fixed.q.val() {
            self.judged.next = self.verdict.q.val();
        }
        self.check.plenty.next = self.posted.val() > bit_cast::<4, 3>(self.under_way.q.val());
        // A late allocation of the packet in hand: to be made, or (a datagram's, with its first order) made.
        self.comes.next = self.check.late.val() & !self.fixed.q.val() & self.packet.q.val();
        self.compose.late.next = self.comes.val() | self.asked.q.val();
        self.may_ask.d.next = !self.allocating.q.val() & (self.under_way.q.val() != LATE);
        self.twice.next = self.check.twice.val() & !self.fixed.q.val() & self.packet.q.val();
        self.asks.next = self.check.asks.val() & !self.fixed.q.val() & self.packet.q.val();
        self.fatal.next = (self.check.fatal.val() & !self.fixed.q.val()) | self.dead.q.val();
        self.passing.next = self.front.kind.val().end | self.front.rx.val().raw;
        self.compose.verdict.next = self.judged.val();
        self.compose.id.next = self.front.id.val();
        self.compose.rx.next = self.front.rx.val();
        self.compose.kind.next = self.front.kind.val();
        self.compose.counted.next = self.front.counted.val();
        self.compose.sums.next = self.check.sums.val();
        self.compose.flush.next = self.front.flush.val();
        self.compose.ctx.next = self.line.q.val();
        self.compose.order.next = Order::Packet;
        if self.state.q.val() == State::Held {
            self.compose.order.next = Order::Held;
        } else if self.state.q.val() == State::Back {
            self.compose.order.next = Order::Back;
        } else if self.state.q.val() == State::Take {
            self.compose.order.next = Order::Take;
        } else if self.state.q.val() == State::Last {
            self.compose.order.next = Order::Last;
        } else if self.state.q.val() == State::Area {
            self.compose.order.next = Order::Area;
        } else if self.front.job.val() == Job::Flush {
            self.compose.order.next = Order::Flush;
        } else if self.front.job.val() == Job::Barrier {
            self.compose.order.next = Order::Barrier;
        }
        self.ends.next = self.committing.q.val() & !self.asks.val() & !self.twice.val() & !self.op_busy.q.val() & !self.front.giving.val() & (!self.comes.val() | self.may_ask.q.val());
        self.swift.next = self.ends.val() & self.packet.q.val() & !self.fatal.val();
        self.wants.next = (self.state.q.val() == State::Idle) | self.swift.val();
        self.front.want.next = self.wants.val();
        self.front.finish.next = false;
        self.front.give.next = false;
        self.front.dirty.next = self.dirty.q.val();
        self.front.after.next = self.line.q.val();
        if !self.op_busy.q.val() {
            self.op.d.next = self.compose.op.val();
        }

        match self.state.q.val() {
            State::Check => {
                self.state.d.next = State::Decide;
                if self.front.job.val() == Job::Flush {
                    self.state.d.next = State::Release;
                    if self.line.q.val().state == QpState::Error as u64 {
                        self.state.d.next = State::Commit;
                    }
                } else if self.front.job.val() != Job::Packet {
                    self.state.d.next = State::Release;
                    if (self.line.q.val().state != QpState::Error as u64) & (self.line.q.val().state != QpState::Reset as u64) & !self.stale.val() {
                        self.state.d.next = State::Fall;
                    }
                    if !self.cause.q.val().any() & (self.front.job.val() == Job::PlaceError) {
                        self.state.d.next = State::Release;
                        if !self.stale.val() {
                            self.state.d.next = State::Back;
                        }
                    }
                }
            }
            State::Decide => self.state.d.next = State::Commit,
            State::Take => {
                if self.kept.found.val() & !self.op_busy.q.val() {
                    self.kept.take.next = true;
                    self.op_busy.d.next = true;
                    self.taken.d.next = true;
                    self.allocating.d.next = true;
                    self.state.d.next = State::Grant;
                } else if self.kept.none.val() {
                    self.verdict.d.next = Verdict::NoReceive;
                    self.fixed.d.next = true;
                    self.state.d.next = State::Commit;
                }
            }
            State::Grant => {
                self.kept.handle.next = self.s_grant.data.val().handle;
                if self.s_grant.valid.val() {
                    self.kept.keep.next = self.s_grant.data.val().ok;
                    self.verdict.d.next = Verdict::Accept;
                    self.fixed.d.next = true;
                    self.line.d.next.rq_handle = bit_cast::<8, 6>(self.s_grant.data.val().handle) | HELD;
                    if !self.held.val() {
                        self.line.d.next.rq_index = self.s_grant.data.val().index;
                    }
                    if !self.s_grant.data.val().ok {
                        self.line.d.next.rq_handle = self.line.q.val().rq_handle;
                        self.verdict.d.next = Verdict::NoReceive;
                        if self.s_grant.data.val().dead {
                            self.verdict.d.next = Verdict::Dead;
                            self.dead.d.next = true;
                        }
                    }
                    self.state.d.next = State::Commit;
                    if (self.line.q.val().qp_type == QpType::Ud as u64) & self.s_grant.data.val().ok & self.front.rx.val().pay_len.any() {
                        self.state.d.next = State::Area;
                    }
                }
            }
            State::Area => {
                if !self.op_busy.q.val() {
                    self.op_busy.d.next = true;
                    self.state.d.next = State::Commit;
                }
            }
            State::Commit => {
                if self.asks.val() & !self.allocating.q.val() {
                    if self.kept.crowded.val() & !self.passing.val() {
                        self.state.d.next = State::Take;
                    } else {
                        self.allocating.d.next = true;
                        self.state.d.next = State::Grant;
                    }
                } else if self.twice.val() {
                    if self.may_ask.q.val() {
                        self.enters.next = true;
                        self.asked.d.next = true;
                        self.verdict.d.next = Verdict::Accept;
                        self.fixed.d.next = true;
                        self.state.d.next = State::Area;
                    }
                } else if self.ends.val() {
                    self.op_busy.d.next = true;
                    self.enters.next = self.comes.val();
                    self.kept.put_back.next = self.compose.op.val().free_rq & !self.compose.late.val();
                    self.kept.touch.next =
                        !self.compose.op.val().free_rq & !self.fixed.q.val() & (self.judged.val() == Verdict::Accept) & self.front.kind.val().send & (self.front.job.val() == Job::Packet);
                    self.events.d.next = self.compose.events.val();
                    self.line.d.next = self.compose.after.val();
                    self.dirty.d.next = self.front.job.val() == Job::Packet;
                    self.state.d.next = State::Release;
                    if (self.front.job.val() == Job::Packet) & self.fatal.val() {
                        self.cause.d.next = self.compose.cause.val();
                        self.state.d.next = State::Fall;
                    }
                    if self.swift.val() {
                        self.front.give.next = self.locked.q.val();
                        self.front.dirty.next = true;
                        self.front.after.next = self.compose.after.val();
                        self.state.d.next = State::Idle;
                    }
                }
            }
            State::Fall => {
                // A flush of the ring does not overtake allocations from it.
                if !self.rq_busy.q.val() & !self.error_busy.q.val() & !self.under_way.q.val().any() {
                    // The requests of a shared receive queue are not this queue pair's to flush (IBTA 10.2.9.4).
                    self.rq_busy.d.next = !self.line.q.val().srq;
                    self.error_busy.d.next = self.front.job.val() != Job::PeerError;
                    self.error.d.next.qpn = self.front.id.val();
                    self.error.d.next.epoch = self.line.q.val().epoch;
                    self.error.d.next.side = true;
                    self.error.d.next.cause = self.cause.q.val();
                    self.line.d.next.state = bits::<3>(QpState::Error as u64);
                    self.dirty.d.next = true;
                    self.state.d.next = State::Release;
                    if self.held.val() {
                        self.state.d.next = State::Held;
                    } else if self.line.q.val().srq {
                        self.state.d.next = State::Last;
                    }
                }
            }
            State::Held => {
                if !self.op_busy.q.val() {
                    self.op_busy.d.next = true;
                    self.kept.put_back.next = self.compose.op.val().free_rq;
                    self.line.d.next = self.compose.after.val();
                    self.events.d.next = self.compose.events.val();
                    self.state.d.next = State::Release;
                    if self.line.q.val().srq {
                        self.state.d.next = State::Last;
                    }
                }
            }
            State::Back => {
                if !self.op_busy.q.val() {
                    self.op_busy.d.next = true;
                    self.kept.put_back.next = self.compose.op.val().free_rq;
                    self.line.d.next = self.compose.after.val();
                    self.dirty.d.next = true;
                    self.state.d.next = State::Release;
                }
            }
            State::Last => {
                if !self.op_busy.q.val() {
                    self.op_busy.d.next = true;
                    self.state.d.next = State::Release;
                }
            }
            State::Release => {
                // m_rq shows the id: it must have gone before the next job changes it.
                if !self.rq_busy.q.val() & !self.front.giving.val() {
                    self.front.give.next = self.locked.q.val();
                    self.front.finish.next = true;
                    self.state.d.next = State::Idle;
                }
            }
            _ => {}
        }

        // The next job.
        if self.wants.val() & self.front.valid.val() {
            if !self.front.chain.val() {
                self.line.d.next = self.front.line.val();
            }
            self.packet.d.next = self.front.next_job.val() == Job::Packet;
            self.locked.d.next = self.front.has_line.val();
            self.dirty.d.next = self.front.chain.val();
            self.cause.d.next = self.front.place_error.val().cause;
            self.fixed.d.next = false;
            self.dead.d.next = false;
            self.asked.d.next = false;
            self.verdict.d.next = Verdict::NoQp;
            self.state.d.next = State::Check;
            if self.front.next_job.val() == Job::Barrier {
                self.state.d.next = State::Commit;
            } else if !self.front.has_line.val() {
                self.fixed.d.next = true;
                self.state.d.next = State::Release;
                if self.front.next_job.val() == Job::Packet {
                    self.state.d.next = State::Commit;
                    if self.front.next_raw.val() {
                        self.verdict.d.next = Verdict::NoRaw;
                    }
                }
            }
        }
        if self.enters.val() {
            self.allocating.d.next = true;
            self.late.d.next = true;
        }
        if self.enters.val() & !self.told.val() {
            self.under_way.d.next = self.under_way.q.val() + 1;
        }
        if self.told.val() & !self.enters.val() {
            self.under_way.d.next = self.under_way.q.val() - 1;
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.allocating.d.next = false;
            self.late.d.next = false;
            self.asked.d.next = false;
            self.under_way.d.next = bits::<3>(0);
            self.taken.d.next = false;
            self.rq_busy.d.next = false;
            self.error_busy.d.next = false;
            self.op_busy.d.next = false;
            self.locked.d.next = false;
        }
        self.committing.d.next = self.state.d.val() == State::Commit;
    }
}
