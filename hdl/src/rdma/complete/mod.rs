//! Completion: what may be told once the data is in host memory. See README.md.
#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::codes::{ack_kind, done_status, outcome, place_kind, place_status};
use crate::msg::{CqeReq, DoneOp, QpError, ReadDone, ReplyOp, WrDone, TRANSPORT};
use crate::prim::ram::Ram;
use crate::stats::flags;
use crate::stream::MsgFifo;
use ferric_abi::codes::{CqeOpcode, CqeStatus};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Event names of [`Complete::stat`], bit 0 first.
pub const STATS: &[&str] = &["nak_inv_sent", "nak_access_sent", "nak_op_sent", "poisoned", "writes_failed", "recv_too_small"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_done", &["s_wr", "m_cqe", "m_ack", "m_error", "m_read"]),
    ("s_wr", &[]), // 8192 places: more than the writes of all orders in front
    ("m_ack", &["s_done", "s_wr", "m_cqe", "m_ack", "m_error", "m_read"]),
    ("barrier_done", &["s_done", "s_wr", "m_cqe", "m_ack", "m_error", "m_read"]),
];

/// Life of a queue pair (epoch) in which an order has failed, and the receive request that got the error.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Mark {
    pub epoch: Bits<8>,
    pub set: Bit,
    pub told: Bit,
    pub rq_index: Bits<16>,
}

/// What the machine does.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum State {
    Idle,
    Wait,
    Judge,
}

/// Completion. `LQ`: log2 of the number of queue pairs.
#[derive(LogicBlock, Default)]
pub struct Complete<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_done: MsgSink<DoneOp>,
    /// Answers to the mover's writes, in order; always taken.
    pub s_wr: MsgSink<WrDone>,
    pub m_cqe: MsgSrc<CqeReq>,
    /// To the transport: what it is to answer.
    pub m_ack: MsgSrc<ReplyOp>,
    pub m_error: MsgSrc<QpError>,
    /// To req_rx: answers to its READs and atomics.
    pub m_read: MsgSrc<ReadDone>,
    /// Pulse: a barrier has arrived here.
    pub barrier_done: Signal<Out, Bit>,
    /// One pulse per event, see [`STATS`].
    pub stat: Signal<Out, Bits<6>>,
    /// Whose events they are.
    pub stat_function: Signal<Out, Bits<12>>,
    dones: MsgFifo<DoneOp, 7>,
    /// Error flags of answers not yet matched: more than the writes of all orders that fit in `dones`.
    replies: MsgFifo<Bit, 13>,
    marks: Ram<Mark, LQ>,
    state: DFF<State>,
    left: DFF<Bits<8>>,
    broken: DFF<Bit>,
    cqe: DFF<CqeReq>,
    cqe_busy: DFF<Bit>,
    ack: DFF<ReplyOp>,
    ack_due: DFF<Bit>,
    ack_busy: DFF<Bit>,
    error: DFF<QpError>,
    error_busy: DFF<Bit>,
    read: DFF<ReadDone>,
    read_busy: DFF<Bit>,
    barrier: DFF<Bit>,
    events: DFF<Bits<6>>,
    events_of: DFF<Bits<12>>,
    qpn: Signal<Local, Bits<24>>,
    word: Signal<Local, Bits<TRANSPORT>>,
    kind: Signal<Local, Bits<4>>,
    reads: Signal<Local, Bit>,
    /// An ATOMIC WRITE: answered as a READ of no bytes is.
    stores: Signal<Local, Bit>,
    answer: Signal<Local, Bit>,
    status: Signal<Local, Bits<8>>,
    same: Signal<Local, Bit>,
    poisoned: Signal<Local, Bit>,
    failing: Signal<Local, Bit>,
    spared: Signal<Local, Bit>,
    told: Signal<Local, Bit>,
    last: Signal<Local, Bit>,
    wanted: Signal<Local, Bit>,
    /// No answer goes to the peer.
    mute: Signal<Local, Bit>,
    go: Signal<Local, Bit>,
    /// A new life of the queue pair begins.
    begins: Signal<Local, Bit>,
    outcome: Signal<Local, Bits<2>>,
    cause: Signal<Local, Bits<8>>,
    reported: Signal<Local, Bits<8>>,
}

#[kernel]
impl<const LQ: usize> Logic for Complete<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, left, broken, cqe, cqe_busy, ack, ack_due, ack_busy, error, error_busy, read, read_busy);
        dff_setup!(self, clock, barrier, events, events_of);
        clock!(self, clock, dones, replies, marks);
        self.dones.reset.next = self.reset.val();
        self.replies.reset.next = self.reset.val();
        MsgSink::<DoneOp>::link(&mut self.s_done, &mut self.dones.s);
        self.replies.s.data.next = self.s_wr.data.val().err;
        self.replies.s.valid.next = self.s_wr.valid.val();
        self.s_wr.ready.next = self.replies.s.ready.val();
        self.m_cqe.data.next = self.cqe.q.val();
        self.m_cqe.valid.next = self.cqe_busy.q.val();
        if self.m_cqe.ready.val() {
            self.cqe_busy.d.next = false;
        }
        self.m_ack.data.next = self.ack.q.val();
        self.m_ack.valid.next = self.ack_busy.q.val();
        if self.m_ack.ready.val() {
            self.ack_busy.d.next = false;
        }
        // The acknowledge of a message goes after its completion.
        if self.ack_due.q.val() & (!self.cqe_busy.q.val() | self.m_cqe.ready.val()) {
            self.ack_due.d.next = false;
            self.ack_busy.d.next = true;
        }
        self.m_error.data.next = self.error.q.val();
        self.m_error.valid.next = self.error_busy.q.val();
        if self.m_error.ready.val() {
            self.error_busy.d.next = false;
        }
        self.m_read.data.next = self.read.q.val();
        self.m_read.valid.next = self.read_busy.q.val();
        if self.m_read.ready.val() {
            self.read_busy.d.next = false;
        }
        self.barrier_done.next = self.barrier.q.val();
        self.barrier.d.next = false;
        self.stat.next = self.events.q.val();
        self.stat_function.next = self.events_of.q.val();
        self.events_of.d.next = self.dones.m.data.val().function;
        self.events.d.next = bits::<6>(0);
        self.dones.m.ready.next = false;
        self.replies.m.ready.next = false;

        self.qpn.next = self.dones.m.data.val().qpn;
        self.word.next = self.dones.m.data.val().transport;
        self.marks.read_addr.next = self.qpn.val().get_bits::<LQ>(0);
        self.marks.write_addr.next = self.qpn.val().get_bits::<LQ>(0);
        self.marks.write_data.next.epoch = self.dones.m.data.val().epoch;
        self.marks.write_en.next = false;
        self.same.next = self.marks.read_data.val().set & (self.marks.read_data.val().epoch == self.dones.m.data.val().epoch);
        self.kind.next = self.dones.m.data.val().kind;
        self.answer.next = self.kind.val().get_bit(place_kind::ANSWER_BIT);
        self.begins.next = (self.dones.m.data.val().kind == place_kind::BARRIER) & self.dones.m.data.val().again;
        self.reads.next = (self.dones.m.data.val().kind == place_kind::READ) | (self.dones.m.data.val().kind == place_kind::ATOMIC);
        self.stores.next = (self.dones.m.data.val().kind == place_kind::WRITE) & (self.dones.m.data.val().opcode == CqeOpcode::AtomicWrite as u64);
        self.poisoned.next = self.same.val() & ((self.dones.m.data.val().kind < place_kind::FLUSH) | self.reads.val());
        self.status.next = self.dones.m.data.val().status;
        // Of an unreliable queue pair: a message larger than its receive, or one that may not go where it wants to.
        self.spared.next = self.dones.m.data.val().soft
            & ((self.status.val() == place_status::TOO_SMALL) | ((self.dones.m.data.val().kind == place_kind::WRITE) & self.status.val().any()))
            & !self.broken.q.val()
            & !self.poisoned.val();
        self.failing.next = !self.poisoned.val() & (self.status.val().any() | self.broken.q.val()) & !self.spared.val();
        self.told.next = self.same.val() & self.marks.read_data.val().told & (self.marks.read_data.val().rq_index == self.dones.m.data.val().rq_index);
        self.marks.write_data.next.set = self.failing.val();
        self.marks.write_data.next.told = self.dones.m.data.val().kind == place_kind::SEND;
        self.marks.write_data.next.rq_index = self.dones.m.data.val().rq_index;

        // What the transport is told of a failure, and its `CqeStatus`; the defaults are those of a failed DMA write.
        self.outcome.next = bits::<2>(outcome::LOCAL);
        self.cause.next = bits::<8>(CqeStatus::Fatal as u64);
        if self.status.val() == place_status::TOO_SMALL {
            self.outcome.next = bits::<2>(outcome::INVALID);
            self.cause.next = bits::<8>(CqeStatus::LocalLength as u64);
        } else if self.status.val() == place_status::BAD_ANSWER {
            self.cause.next = bits::<8>(CqeStatus::BadResponse as u64);
        } else if self.status.val() == place_status::NOT_INVALIDATED {
            self.outcome.next = bits::<2>(outcome::ACCESS);
            self.cause.next = bits::<8>(CqeStatus::RemoteAccess as u64);
        } else if (self.status.val() >= place_status::KEY) & (self.status.val() != place_status::FETCH) {
            self.cause.next = bits::<8>(CqeStatus::LocalProtection as u64);
            if !self.dones.m.data.val().access_local {
                self.outcome.next = bits::<2>(outcome::ACCESS);
                self.cause.next = bits::<8>(CqeStatus::RemoteAccess as u64);
            }
        } else if (self.status.val() == place_status::FETCH) & !self.dones.m.data.val().access_local {
            self.cause.next = bits::<8>(CqeStatus::RemoteOperation as u64);
        }
        // The receive of a SEND whose invalidation is refused: the peer's request was invalid.
        self.reported.next = self.cause.val();
        if self.status.val() == place_status::NOT_INVALIDATED {
            self.reported.next = bits::<8>(CqeStatus::RemoteInvalidRequest as u64);
        }
        self.wanted.next = self.dones.m.data.val().done & self.dones.m.data.val().cqe & !self.told.val();
        self.last.next = (self.dones.m.data.val().kind == place_kind::FLUSH) & self.dones.m.data.val().done & !self.dones.m.data.val().cqe;
        self.mute.next = self.poisoned.val() | (!self.dones.m.data.val().ack & !self.failing.val()) | (self.failing.val() & !self.dones.m.data.val().replies);
        self.go.next =
            (!self.cqe_busy.q.val() | self.m_cqe.ready.val()) & !self.ack_due.q.val() & (!self.ack_busy.q.val() | self.m_ack.ready.val()) & !self.error_busy.q.val() & !self.read_busy.q.val();

        if self.go.val() {
            self.cqe.d.next.cqn = self.dones.m.data.val().rcqn;
            self.cqe.d.next.function = self.dones.m.data.val().function;
            self.cqe.d.next.qpn = self.dones.m.data.val().qpn;
            self.cqe.d.next.wqe_index = self.dones.m.data.val().rq_index;
            self.cqe.d.next.status = bits::<8>(CqeStatus::Success as u64);
            self.cqe.d.next.opcode = self.dones.m.data.val().opcode;
            self.cqe.d.next.is_recv = true;
            self.cqe.d.next.imm_valid = self.dones.m.data.val().has_imm;
            self.cqe.d.next.imm = self.dones.m.data.val().imm;
            self.cqe.d.next.solicited = self.dones.m.data.val().solicited;
            self.cqe.d.next.byte_len = self.dones.m.data.val().byte_len;
            self.cqe.d.next.src_qp = self.dones.m.data.val().src_qpn;
            self.cqe.d.next.syndrome = bits::<8>(0);
            self.cqe.d.next.grh = self.dones.m.data.val().grh;
            self.cqe.d.next.last = self.last.val();
            self.cqe.d.next.inv = self.dones.m.data.val().inv;
            if self.spared.val() {
                // Told to the receive that it took, if it took one.
                self.cqe.d.next.status = bits::<8>(CqeStatus::LocalLength as u64);
                if self.dones.m.data.val().kind == place_kind::WRITE {
                    self.cqe.d.next.status = bits::<8>(CqeStatus::LocalAccess as u64);
                }
                self.cqe.d.next.imm_valid = false;
            }
            if self.failing.val() | self.poisoned.val() | (self.dones.m.data.val().kind == place_kind::FLUSH) {
                self.cqe.d.next.status = bits::<8>(CqeStatus::WrFlush as u64);
                self.cqe.d.next.imm_valid = false;
                self.cqe.d.next.inv = false;
                if self.failing.val() & (self.dones.m.data.val().kind == place_kind::SEND) {
                    self.cqe.d.next.status = self.reported.val();
                }
            }
            self.ack.d.next.qpn = self.dones.m.data.val().qpn;
            self.ack.d.next.transport = self.dones.m.data.val().transport;
            self.ack.d.next.done = self.dones.m.data.val().done;
            self.ack.d.next.outcome = bits::<2>(outcome::FINE);
            self.ack.d.next.kind = bits::<2>(ack_kind::ACKNOWLEDGE);
            if (self.dones.m.data.val().kind == place_kind::READ) | self.stores.val() {
                self.ack.d.next.kind = bits::<2>(ack_kind::READ);
            }
            if self.dones.m.data.val().kind == place_kind::ATOMIC {
                self.ack.d.next.kind = bits::<2>(ack_kind::ATOMIC);
            }
            self.ack.d.next.mute = false;
            self.ack.d.next.atomic = self.dones.m.data.val().atomic;
            self.ack.d.next.keyed = self.dones.m.data.val().keyed;
            self.ack.d.next.phase = self.dones.m.data.val().phase;
            if self.begins.val() {
                self.ack.d.next.kind = bits::<2>(ack_kind::LIFE);
            }
            self.ack.d.next.again = self.dones.m.data.val().again;
            self.ack.d.next.add = self.dones.m.data.val().opcode == CqeOpcode::FetchAdd as u64;
            self.ack.d.next.epoch = self.dones.m.data.val().epoch;
            self.ack.d.next.function = self.dones.m.data.val().function;
            self.ack.d.next.pd = self.dones.m.data.val().pd;
            self.ack.d.next.va = self.dones.m.data.val().va;
            self.ack.d.next.key = self.dones.m.data.val().key;
            self.ack.d.next.len = self.dones.m.data.val().byte_len;
            self.ack.d.next.operand = self.dones.m.data.val().operand;
            self.ack.d.next.compare = self.dones.m.data.val().compare;
            if self.failing.val() {
                self.ack.d.next.outcome = self.outcome.val();
                self.ack.d.next.kind = bits::<2>(ack_kind::ACKNOWLEDGE);
            }
            self.read.d.next.qpn = self.dones.m.data.val().qpn;
            self.read.d.next.transport = self.word.val().get_bits::<24>(0);
            self.read.d.next.status = bits::<8>(0);
            if self.failing.val() {
                self.read.d.next.status = self.cause.val();
            }
            if self.dones.m.data.val().again {
                // Nothing but: all before it is in host memory.
                self.read.d.next.status = bits::<8>(done_status::QUIET);
            }
            self.error.d.next.qpn = self.dones.m.data.val().qpn;
            self.error.d.next.epoch = self.dones.m.data.val().epoch;
            self.error.d.next.side = true;
            self.error.d.next.cause = self.cause.val();
        }

        match self.state.q.val() {
            State::Idle => {
                self.left.d.next = self.dones.m.data.val().writes;
                self.broken.d.next = false;
                if self.dones.m.valid.val() {
                    self.state.d.next = State::Wait;
                    // Most orders have one write, and it is over.
                    if !self.dones.m.data.val().writes.any() {
                        self.state.d.next = State::Judge;
                    } else if (self.dones.m.data.val().writes == 1) & self.replies.m.valid.val() {
                        self.replies.m.ready.next = true;
                        self.broken.d.next = self.replies.m.data.val();
                        self.state.d.next = State::Judge;
                    }
                }
            }
            State::Wait => {
                if self.left.q.val() == 0 {
                    self.state.d.next = State::Judge;
                } else if self.replies.m.valid.val() {
                    self.replies.m.ready.next = true;
                    self.left.d.next = self.left.q.val() - 1;
                    self.broken.d.next = self.broken.q.val() | self.replies.m.data.val();
                    if self.left.q.val() == 1 {
                        self.state.d.next = State::Judge;
                    }
                }
            }
            State::Judge => {
                if self.go.val() {
                    self.dones.m.ready.next = true;
                    self.state.d.next = State::Idle;
                    self.barrier.d.next = (self.dones.m.data.val().kind == place_kind::BARRIER) & !self.dones.m.data.val().again;
                    self.cqe_busy.d.next = self.wanted.val() | self.last.val() | (self.failing.val() & (self.dones.m.data.val().kind == place_kind::SEND));
                    self.ack_due.d.next = self.dones.m.data.val().ack & !self.poisoned.val();
                    self.error_busy.d.next = self.failing.val() & !self.answer.val();
                    self.read_busy.d.next = self.answer.val() & (self.failing.val() | self.dones.m.data.val().done | self.dones.m.data.val().again);
                    if self.answer.val() {
                        // The requester tells and counts what became of its request.
                        self.ack_due.d.next = false;
                        self.events.d.next = bits::<6>(0);
                        if self.broken.q.val() {
                            self.events.d.next = bits::<6>(flags(STATS, &["writes_failed"]) as u64);
                        }
                    } else if self.failing.val() {
                        self.ack_due.d.next = self.dones.m.data.val().replies;
                        self.marks.write_en.next = true;
                        self.events.d.next = bits::<6>(flags(STATS, &["nak_op_sent"]) as u64);
                        if self.outcome.val() == outcome::INVALID {
                            self.events.d.next = bits::<6>(flags(STATS, &["nak_inv_sent"]) as u64);
                        } else if self.outcome.val() == outcome::ACCESS {
                            self.events.d.next = bits::<6>(flags(STATS, &["nak_access_sent"]) as u64);
                        }
                        if self.broken.q.val() {
                            self.events.d.next = bits::<6>(flags(STATS, &["nak_op_sent", "writes_failed"]) as u64);
                        }
                    } else if self.spared.val() {
                        self.events.d.next = bits::<6>(0);
                        if self.dones.m.data.val().done & (self.dones.m.data.val().kind == place_kind::SEND) {
                            self.events.d.next = bits::<6>(flags(STATS, &["recv_too_small"]) as u64);
                        }
                    } else if self.poisoned.val() {
                        self.events.d.next = bits::<6>(flags(STATS, &["poisoned"]) as u64);
                    } else if self.begins.val() {
                        self.marks.write_en.next = true;
                    } else if !self.same.val() & ((self.dones.m.data.val().kind == place_kind::WRITE) | (self.dones.m.data.val().kind == place_kind::SEND) | self.reads.val()) {
                        // First data of a new life: wipe what an earlier one left.
                        self.marks.write_en.next = self.marks.read_data.val().set;
                    }
                    // Whoever waits for an atomic learns that it comes to nothing.
                    if self.dones.m.data.val().atomic & self.mute.val() {
                        self.ack_due.d.next = true;
                        self.ack.d.next.mute = true;
                    }
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.cqe_busy.d.next = false;
            self.ack_due.d.next = false;
            self.ack_busy.d.next = false;
            self.error_busy.d.next = false;
            self.read_busy.d.next = false;
        }
    }
}
