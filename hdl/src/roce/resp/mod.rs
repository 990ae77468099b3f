//! The responder: what each received request means for its queue pair. See README.md.
mod check;
mod compose;
mod decode;
#[cfg(test)]
pub mod model;
#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::context::bus::CtxClient;
use crate::msg::{PlaceOp, QpError, RqAlloc, RqCmd, RqFlush, RqGrant, RxDesc};
use crate::records::RspCtx;
use crate::stream::{MsgFifo, MsgSlice};
use check::{RequestCheck, Verdict};
use compose::{Compose, Order};
use decode::OpDecode;
use rust_hdl::prelude::*;

/// Event names of [`Responder::stat`], bit 0 first.
pub const STATS: &[&str] = &[
    "rx_requests", "dup_requests", "out_of_order", "nak_seq_sent", "nak_inv_sent", "nak_access_sent", "rnr_sent",
    "drop_no_qp", "drop_bad_transport", "drop_bad_pkey", "raw_no_queue", "no_recv", "recv_flushed",
];

/// What the machine does.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum State {
    Idle,
    Line,
    Check,
    Decide,
    Grant,
    Commit,
    Fall,
    Held,
    Release,
}

/// For whom it does it.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum Job {
    Packet,
    /// Queue pair error found by the placement chain.
    PlaceError,
    /// Queue pair error found by the requester.
    PeerError,
    Flush,
    Barrier,
}

/// The responder. `LQ`: log2 of the number of queue pairs (depth of the error queues).
#[derive(LogicBlock, Default)]
pub struct Responder<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Requests and raw frames.
    pub s_rx: MsgSink<RxDesc>,
    /// Receive requests to be completed with a flush error.
    pub s_flush: MsgSink<RqFlush>,
    /// 0: from completion (matched by epoch), 1: from req_rx.
    pub s_error: [MsgSink<QpError>; 2],
    /// Pulse: send a barrier behind everything accepted so far.
    pub barrier: Signal<In, Bit>,
    pub ctx: CtxClient<RspCtx>,
    pub m_alloc: MsgSrc<RqAlloc>,
    pub s_grant: MsgSink<RqGrant>,
    pub m_rq: MsgSrc<RqCmd>,
    pub m_op: MsgSrc<PlaceOp>,
    /// To req_rx.
    pub m_error: MsgSrc<QpError>,
    /// Queue pair of raw frames, bit 31 = valid.
    pub raw_qpn: Signal<In, Bits<32>>,
    /// One pulse per event, see [`STATS`].
    pub stat: Signal<Out, Bits<13>>,
    flush: MsgSlice<RqFlush>,
    place_error: MsgFifo<QpError, LQ>,
    peer_error: MsgFifo<QpError, LQ>,
    decode: OpDecode,
    check: RequestCheck,
    compose: Compose,
    state: DFF<State>,
    job: DFF<Job>,
    id: DFF<Bits<24>>,
    acquiring: DFF<Bit>,
    line: DFF<RspCtx>,
    /// The verdict, if it does not come from the check.
    verdict: DFF<Verdict>,
    fixed: DFF<Bit>,
    locked: DFF<Bit>,
    dirty: DFF<Bit>,
    cause: DFF<Bits<8>>,
    allocating: DFF<Bit>,
    releasing: DFF<Bit>,
    rel_id: DFF<Bits<24>>,
    rq_busy: DFF<Bit>,
    error_busy: DFF<Bit>,
    error: DFF<QpError>,
    op: DFF<PlaceOp>,
    op_busy: DFF<Bit>,
    barrier_due: DFF<Bit>,
    events: DFF<Bits<13>>,
    raw: Signal<Local, Bit>,
    raw_ok: Signal<Local, Bit>,
    stale: Signal<Local, Bit>,
    pop: Signal<Local, Bit>,
    handle: Signal<Local, Bits<8>>,
    held: Signal<Local, Bit>,
    judged: Signal<Local, Verdict>,
    asks: Signal<Local, Bit>,
}

impl<const LQ: usize> Logic for Responder<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, job, id, acquiring, line, verdict, fixed, locked, dirty, cause, allocating);
        dff_setup!(self, clock, releasing, rel_id, rq_busy, error_busy, error, op, op_busy, barrier_due, events);
        clock!(self, clock, flush, place_error, peer_error, decode, check);
        self.flush.reset.next = self.reset.val();
        self.place_error.reset.next = self.reset.val();
        self.peer_error.reset.next = self.reset.val();
        MsgSink::<RqFlush>::link(&mut self.s_flush, &mut self.flush.s);
        self.place_error.s.data.next = self.s_error[0].data.val();
        self.place_error.s.valid.next = self.s_error[0].valid.val();
        self.s_error[0].ready.next = self.place_error.s.ready.val();
        self.peer_error.s.data.next = self.s_error[1].data.val();
        self.peer_error.s.valid.next = self.s_error[1].valid.val();
        self.s_error[1].ready.next = self.peer_error.s.ready.val();

        // Output registers; each is filled only when empty.
        self.m_op.data.next = self.op.q.val();
        self.m_op.valid.next = self.op_busy.q.val();
        if self.m_op.ready.val() {
            self.op_busy.d.next = false;
        }
        self.m_rq.data.next.qpn = self.id.q.val();
        self.m_rq.valid.next = self.rq_busy.q.val();
        if self.m_rq.ready.val() {
            self.rq_busy.d.next = false;
        }
        self.m_error.data.next = self.error.q.val();
        self.m_error.valid.next = self.error_busy.q.val();
        if self.m_error.ready.val() {
            self.error_busy.d.next = false;
        }
        self.m_alloc.data.next.qpn = self.id.q.val();
        self.m_alloc.valid.next = self.allocating.q.val();
        if self.m_alloc.ready.val() {
            self.allocating.d.next = false;
        }
        self.s_grant.ready.next = self.state.q.val() == State::Grant;
        // One line at a time: the one before goes back first.
        self.ctx.acq_valid.next = self.acquiring.q.val() & !self.releasing.q.val();
        self.ctx.acq_id.next = self.id.q.val();
        self.ctx.acq_tag.next = bits::<4>(0);
        if self.ctx.acq_ready.val() & !self.releasing.q.val() {
            self.acquiring.d.next = false;
        }
        self.ctx.line_ready.next = self.state.q.val() == State::Line;
        self.ctx.rel_valid.next = self.releasing.q.val();
        if self.ctx.rel_ready.val() {
            self.releasing.d.next = false;
        }
        self.ctx.rel_id.next = self.rel_id.q.val();
        self.ctx.rel_dirty.next = self.dirty.q.val();
        self.ctx.rel_data.next = self.line.q.val();
        self.stat.next = self.events.q.val();
        self.events.d.next = bits::<13>(0);
        self.flush.m.ready.next = false;
        self.place_error.m.ready.next = false;
        self.peer_error.m.ready.next = false;
        if self.barrier.val() {
            self.barrier_due.d.next = true;
        }

        // The packet under judgement.
        self.decode.opcode.next = self.s_rx.data.val().opcode;
        self.check.kind.next = self.decode.kind.val();
        self.check.rx.next = self.s_rx.data.val();
        self.check.ctx.next = self.line.q.val();
        self.raw.next = self.s_rx.data.val().raw;
        self.raw_ok.next = self.raw_qpn.val().get_bit(31);
        self.stale.next = (self.line.q.val().epoch != self.place_error.m.data.val().epoch)
            & (self.job.q.val() == Job::PlaceError);
        self.judged.next = self.check.verdict.val();
        if self.fixed.q.val() {
            self.judged.next = self.verdict.q.val();
        }
        self.asks.next = (self.judged.val() == Verdict::Receive) & (self.job.q.val() == Job::Packet);
        // A packet leaves its queue with the order that it becomes.
        self.s_rx.ready.next =
            (self.state.q.val() == State::Commit) & (self.job.q.val() == Job::Packet) & !self.op_busy.q.val() & !self.asks.val();
        self.compose.verdict.next = self.judged.val();
        self.compose.id.next = self.id.q.val();
        self.compose.rx.next = self.s_rx.data.val();
        self.compose.kind.next = self.decode.kind.val();
        self.compose.sums.next = self.check.sums.val();
        self.compose.flush.next = self.flush.m.data.val();
        self.compose.ctx.next = self.line.q.val();
        self.compose.order.next = Order::Packet;
        if self.state.q.val() == State::Held {
            self.compose.order.next = Order::Held;
        } else if self.job.q.val() == Job::Flush {
            self.compose.order.next = Order::Flush;
        } else if self.job.q.val() == Job::Barrier {
            self.compose.order.next = Order::Barrier;
        }
        self.handle.next = self.line.q.val().rq_handle;
        self.held.next = self.handle.val().get_bit(7);
        self.pop.next = false;
        if !self.op_busy.q.val() {
            self.op.d.next = self.compose.op.val();
        }

        match self.state.q.val() {
            State::Idle => {
                self.fixed.d.next = false;
                if self.barrier_due.q.val() {
                    self.job.d.next = Job::Barrier;
                    self.state.d.next = State::Commit;
                } else if self.place_error.m.valid.val() {
                    self.job.d.next = Job::PlaceError;
                    self.id.d.next = self.place_error.m.data.val().qpn;
                    self.cause.d.next = self.place_error.m.data.val().cause;
                    self.acquiring.d.next = true;
                    self.state.d.next = State::Line;
                } else if self.peer_error.m.valid.val() {
                    self.job.d.next = Job::PeerError;
                    self.id.d.next = self.peer_error.m.data.val().qpn;
                    self.acquiring.d.next = true;
                    self.state.d.next = State::Line;
                } else if self.flush.m.valid.val() {
                    self.job.d.next = Job::Flush;
                    self.id.d.next = self.flush.m.data.val().qpn;
                    self.acquiring.d.next = true;
                    self.state.d.next = State::Line;
                } else if self.s_rx.valid.val() {
                    self.job.d.next = Job::Packet;
                    self.id.d.next = self.s_rx.data.val().dest_qpn;
                    self.acquiring.d.next = !self.raw.val() | self.raw_ok.val();
                    self.state.d.next = State::Line;
                    if self.raw.val() {
                        self.id.d.next = self.raw_qpn.val().get_bits::<24>(0);
                        if !self.raw_ok.val() {
                            self.verdict.d.next = Verdict::NoRaw;
                            self.fixed.d.next = true;
                            self.state.d.next = State::Commit;
                        }
                    }
                }
            }
            State::Line => {
                if self.ctx.line_valid.val() {
                    // Not before: the line of the job before may still be on its way back.
                    self.line.d.next = self.ctx.line_data.val();
                    self.locked.d.next = !self.ctx.line_fault.val();
                    self.dirty.d.next = false;
                    self.state.d.next = State::Check;
                    if self.ctx.line_fault.val() {
                        self.verdict.d.next = Verdict::NoQp;
                        self.fixed.d.next = true;
                        self.state.d.next = State::Release;
                        if self.job.q.val() == Job::Packet {
                            self.state.d.next = State::Commit;
                            if self.raw.val() {
                                self.verdict.d.next = Verdict::NoRaw;
                            }
                        }
                    }
                }
            }
            State::Check => {
                self.state.d.next = State::Decide;
                if self.job.q.val() == Job::Flush {
                    self.state.d.next = State::Release;
                    if self.line.q.val().state == 6 {
                        self.state.d.next = State::Commit;
                    }
                } else if self.job.q.val() != Job::Packet {
                    self.state.d.next = State::Release;
                    if (self.line.q.val().state != 6) & (self.line.q.val().state != 0) & !self.stale.val() {
                        self.state.d.next = State::Fall;
                    }
                }
            }
            State::Decide => {
                self.state.d.next = State::Commit;
            }
            State::Grant => {
                if self.s_grant.valid.val() {
                    self.verdict.d.next = Verdict::Accept;
                    self.fixed.d.next = true;
                    self.line.d.next.rq_handle = bit_cast::<8, 6>(self.s_grant.data.val().handle) | 0x80;
                    self.line.d.next.rq_index = self.s_grant.data.val().index;
                    if !self.s_grant.data.val().ok {
                        self.line.d.next.rq_handle = self.line.q.val().rq_handle;
                        self.verdict.d.next = Verdict::NoReceive;
                    }
                    self.state.d.next = State::Commit;
                }
            }
            State::Commit => {
                self.rel_id.d.next = self.id.q.val();
                if self.asks.val() {
                    self.allocating.d.next = true;
                    self.state.d.next = State::Grant;
                } else if !self.op_busy.q.val() {
                    self.op_busy.d.next = true;
                    self.events.d.next = self.compose.events.val();
                    self.line.d.next = self.compose.after.val();
                    self.dirty.d.next = self.job.q.val() == Job::Packet;
                    self.state.d.next = State::Release;
                    if (self.job.q.val() == Job::Packet) & self.compose.fatal.val() {
                        self.cause.d.next = self.compose.cause.val();
                        self.state.d.next = State::Fall;
                    } else if self.locked.q.val() {
                        self.releasing.d.next = true;
                    }
                    if (self.job.q.val() == Job::Packet) & !self.compose.fatal.val() {
                        // The line goes back while the next packet asks for its own.
                        self.locked.d.next = false;
                        self.state.d.next = State::Idle;
                    }
                }
            }
            State::Fall => {
                if !self.rq_busy.q.val() & !self.error_busy.q.val() {
                    self.rq_busy.d.next = true;
                    self.error_busy.d.next = self.job.q.val() != Job::PeerError;
                    self.error.d.next.qpn = self.id.q.val();
                    self.error.d.next.epoch = self.line.q.val().epoch;
                    self.error.d.next.side = true;
                    self.error.d.next.cause = self.cause.q.val();
                    self.line.d.next.state = bits::<3>(6);
                    self.dirty.d.next = true;
                    self.state.d.next = State::Release;
                    if self.held.val() {
                        self.state.d.next = State::Held;
                    }
                }
            }
            State::Held => {
                if !self.op_busy.q.val() {
                    self.op_busy.d.next = true;
                    self.line.d.next = self.compose.after.val();
                    self.events.d.next = self.compose.events.val();
                    self.state.d.next = State::Release;
                }
            }
            State::Release => {
                // m_rq shows the id: it must have gone before the next job changes it.
                self.rel_id.d.next = self.id.q.val();
                if self.locked.q.val() {
                    self.releasing.d.next = true;
                }
                if (!self.locked.q.val() | (self.releasing.q.val() & self.ctx.rel_ready.val())) & !self.rq_busy.q.val() {
                    self.pop.next = true;
                    self.state.d.next = State::Idle;
                }
                if self.releasing.q.val() & self.ctx.rel_ready.val() {
                    self.releasing.d.next = false;
                    self.locked.d.next = false;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }

        // A finished job leaves its queue.
        if self.pop.val() {
            match self.job.q.val() {
                Job::PlaceError => self.place_error.m.ready.next = true,
                Job::PeerError => self.peer_error.m.ready.next = true,
                Job::Flush => self.flush.m.ready.next = true,
                Job::Barrier => self.barrier_due.d.next = self.barrier.val(),
                _ => {}
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.acquiring.d.next = false;
            self.allocating.d.next = false;
            self.releasing.d.next = false;
            self.rq_busy.d.next = false;
            self.error_busy.d.next = false;
            self.op_busy.d.next = false;
            self.barrier_due.d.next = false;
            self.locked.d.next = false;
        }
    }
}
