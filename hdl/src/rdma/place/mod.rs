//! Placement: where each received packet's payload goes. See README.md.
mod answers;
mod first;
mod lead;
mod page;
mod reads;
#[cfg(test)]
mod tests;
mod walk;

use crate::bus::{MsgSink, MsgSrc};
use crate::codes::{place_kind, place_status};
use crate::msg::{DoneOp, MoveOp, MrChange, MrChanged, MrReq, MrResp, PlaceOp, RqGrant, WqeData, WqeFree, WqeRead};
use crate::prim::ram::Ram;
use crate::stats::flags;
use crate::stream::MsgFifo;
use answers::Answers;
use ferric_hdl_derive::{kernel, BlockNew};
use lead::Lead;
use rust_hdl::prelude::*;
use walk::{Segment, Walk};

/// Event names of [`Place::stat`], bit 0 first.
pub const STATS: &[&str] = &["poisoned", "place_failed", "msg_dropped"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_op", &["s_late", "m_mr", "s_mr", "m_wqe", "s_wqe", "m_free", "m_again", "s_again", "m_again_free", "m_change", "s_changed", "m_move", "m_done"]),
    ("s_answer", &["m_mr", "s_mr", "m_wqe", "s_wqe", "m_free", "m_again", "s_again", "m_again_free", "m_change", "s_changed", "m_move", "m_done"]),
    // For orders in front, whose own grants are here: grants come in the order of the orders, and none before its order has been made.
    ("s_late", &["m_mr", "s_mr", "m_wqe", "s_wqe", "m_free", "m_again", "s_again", "m_again_free", "m_change", "s_changed", "m_move", "m_done"]),
    // Not for an invalidation: while one is waited for no key is unanswered, since `hold` begins no order behind it.
    ("s_mr", &["m_move", "m_done"]),
    ("s_changed", &[]), // awaited since it was asked for
    ("s_wqe", &[]),     // one at a time, awaited
    ("s_again", &[]),   // the same
    ("m_done", &["s_op", "s_late", "m_mr", "s_mr", "m_wqe", "s_wqe", "m_free", "m_again", "s_again", "m_again_free", "m_change", "s_changed", "m_move", "m_done"]),
    ("m_move", &[]), // offered since before the order's `m_done`
    // Buffers: not for further orders of the responder or of `req_rx`. Who waits for a buffer has made the orders that give one back: of receives messages in progress keep at most 40 of 64 (`roce/resp/kept.rs`), and
    // `scatter` gives the one it keeps back before it asks for another. Nor for `s_late`: a grant that waits for a buffer is of an order behind.
    ("m_free", &["m_mr", "s_mr", "m_wqe", "s_wqe", "m_free", "m_again", "s_again", "m_again_free", "m_change", "s_changed", "m_move", "m_done"]),
    ("m_again_free", &["m_mr", "s_mr", "m_wqe", "s_wqe", "m_free", "m_again", "s_again", "m_again_free", "m_change", "s_changed", "m_move", "m_done"]),
    // Until the atomics that it has told of have left: what is in front of them has been walked, and no invalidation is, for behind one that waits none is told of.
    ("begun", &["m_mr", "s_mr", "m_move", "m_done"]),
    ("phase", &[]),
];

/// Life of a queue pair (epoch) in which placement has failed; `soft`: only for the message in progress.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Mark {
    pub epoch: Bits<8>,
    pub set: Bit,
    pub soft: Bit,
}

/// What the back half does.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum State {
    /// The mark of the order at the head is read.
    Idle,
    Segments,
    /// An invalidation is offered, is waited for.
    Ask,
    Wait,
}

/// Placement. `LQ`: log2 of the number of queue pairs. `late`: there are orders that are late, and others wait in front of them; without, both leave no gate.
#[derive(LogicBlock, BlockNew)]
#[given(late: bool)]
pub struct Place<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_op: MsgSink<PlaceOp>,
    pub m_done: MsgSrc<DoneOp>,
    pub m_mr: MsgSrc<MrReq>,
    pub s_mr: MsgSink<MrResp>,
    /// Keys that the peer invalidates.
    pub m_change: MsgSrc<MrChange>,
    pub s_changed: MsgSink<MrChanged>,
    pub m_wqe: MsgSrc<WqeRead>,
    pub s_wqe: MsgSink<WqeData>,
    pub m_free: MsgSrc<WqeFree>,
    /// Receives of orders that are `late`.
    pub s_late: MsgSink<RqGrant>,
    /// Answers to our READs and atomics (kind 8 or 9, or 0), and the send work requests they are placed by.
    pub s_answer: MsgSink<PlaceOp>,
    pub m_again: MsgSrc<WqeRead>,
    pub s_again: MsgSink<WqeData>,
    pub m_again_free: MsgSrc<WqeFree>,
    pub m_move: MsgSrc<MoveOp>,
    /// See `rdma/mr/drain.rs`: the phase, and a pulse for each atomic whose key is asked for in it.
    pub phase: Signal<In, Bit>,
    pub begun: Signal<Out, Bit>,
    /// One pulse per event, see [`STATS`].
    pub stat: Signal<Out, Bits<3>>,
    /// Whose events they are.
    pub stat_function: Signal<Out, Bits<12>>,
    ahead: MsgFifo<PlaceOp, 4>,
    lead: Lead,
    answers: Answers,
    walk: Walk,
    orders: MsgFifo<PlaceOp, 5>,
    segments: MsgFifo<Segment, 5>,
    marks: Ram<Mark, LQ>,
    state: DFF<State>,
    /// The rest of the order is not placed; `hard`: and the queue pair goes to error.
    failed: DFF<Bit>,
    hard: DFF<Bit>,
    status: DFF<Bits<8>>,
    writes: DFF<Bits<8>>,
    change: DFF<MrChange>,
    /// The invalidation of the order at the head has been answered, and refused.
    answered: DFF<Bit>,
    refused: DFF<Bit>,
    mover: DFF<MoveOp>,
    mover_busy: DFF<Bit>,
    done: DFF<DoneOp>,
    done_busy: DFF<Bit>,
    events: DFF<Bits<3>>,
    events_of: DFF<Bits<12>>,
    #[init(Constant::new(late))]
    late: Constant<Bit>,
    straight: Signal<Local, Bit>,
    qpn: Signal<Local, Bits<24>>,
    same: Signal<Local, Bit>,
    /// An invalidation is to be asked for before the segment at the head is done.
    due: Signal<Local, Bit>,
    ready: Signal<Local, Bit>,
    bad: Signal<Local, Bit>,
    bad_status: Signal<Local, Bits<8>>,
    placing: Signal<Local, Bit>,
    /// Orders that move payload, orders that only want a key check, both.
    moves: Signal<Local, Bit>,
    reads: Signal<Local, Bit>,
    kind: Signal<Local, Bits<4>>,
    answer: Signal<Local, Bit>,
    /// An answer whose bytes come with its order.
    value: Signal<Local, Bit>,
    off: Signal<Local, Bits<14>>,
    turned: Signal<Local, Bits<64>>,
    data_op: Signal<Local, Bit>,
    hushed: Signal<Local, Bit>,
    poisoned: Signal<Local, Bit>,
    /// Of a message that has failed before.
    torn: Signal<Local, Bit>,
    lost: Signal<Local, Bit>,
    open: Signal<Local, Bit>,
    fails: Signal<Local, Bit>,
    spared: Signal<Local, Bit>,
    failing: Signal<Local, Bit>,
    spoilt: Signal<Local, Bit>,
    tears: Signal<Local, Bit>,
    begins: Signal<Local, Bit>,
    over: Signal<Local, Bit>,
    finish: Signal<Local, Bit>,
    writes_now: Signal<Local, Bits<8>>,
    status_now: Signal<Local, Bits<8>>,
}

#[kernel]
impl<const LQ: usize> Logic for Place<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, failed, hard, status, writes, mover, mover_busy, done, done_busy, events, events_of, change, answered, refused);
        clock!(self, clock, lead, answers, walk, ahead, orders, segments, marks);
        self.walk.reset.next = self.reset.val();
        self.ahead.reset.next = self.reset.val();
        self.lead.reset.next = self.reset.val();
        self.answers.reset.next = self.reset.val();
        self.orders.reset.next = self.reset.val();
        self.segments.reset.next = self.reset.val();
        // Orders wait here, not at the responder: it decides ahead, and the work requests of its SENDs are fetched meanwhile.
        self.straight.next = (self.ahead.level.val() == 0) | !self.late.val();
        self.ahead.s.data.next = self.s_op.data.val();
        self.ahead.s.valid.next = self.late.val() & self.s_op.valid.val() & !(self.straight.val() & self.lead.s_op.ready.val());
        self.s_op.ready.next = self.ahead.s.ready.val();
        if !self.late.val() {
            self.s_op.ready.next = self.lead.s_op.ready.val();
        }
        self.ahead.m.ready.next = !self.straight.val() & self.lead.s_op.ready.val();
        self.lead.s_op.data.next = self.ahead.m.data.val();
        self.lead.s_op.valid.next = self.ahead.m.valid.val() & !self.straight.val();
        if self.straight.val() {
            self.lead.s_op.data.next = self.s_op.data.val();
            self.lead.s_op.valid.next = self.s_op.valid.val() & (self.ahead.s.ready.val() | !self.late.val());
        }
        if !self.late.val() {
            self.lead.s_op.data.next.late = false;
        }
        self.walk.phase.next = self.phase.val();
        self.begun.next = self.walk.begun.val();
        MsgSrc::<MrReq>::link(&mut self.m_mr, &mut self.walk.m_mr);
        MsgSrc::<PlaceOp>::join(&mut self.lead.m_op, &mut self.walk.s_op);
        self.lead.head.next = self.ahead.m.data.val();
        self.lead.queued.next = !self.straight.val();
        self.walk.head.next = self.ahead.m.data.val();
        self.walk.direct.next = self.s_op.data.val();
        self.walk.queued.next = !self.straight.val();
        self.walk.straight.next = self.lead.straight.val();
        self.walk.at.next = self.lead.at.val();
        self.walk.at_key.next = self.lead.key.val();
        MsgSink::<RqGrant>::link(&mut self.s_late, &mut self.lead.s_late);
        MsgSrc::<WqeRead>::join(&mut self.walk.m_wqe, &mut self.lead.s_read);
        MsgSrc::<WqeData>::join(&mut self.lead.m_data, &mut self.walk.s_wqe);
        MsgSrc::<WqeRead>::link(&mut self.m_wqe, &mut self.lead.m_wqe);
        MsgSink::<WqeData>::link(&mut self.s_wqe, &mut self.lead.s_wqe);
        MsgSrc::<WqeFree>::link(&mut self.m_free, &mut self.walk.m_free);
        MsgSink::<PlaceOp>::link(&mut self.s_answer, &mut self.answers.s_op);
        MsgSrc::<PlaceOp>::join(&mut self.answers.m_op, &mut self.walk.s_answer);
        self.walk.answer_straight.next = self.answers.straight.val();
        self.walk.answer_at.next = self.answers.at.val();
        self.walk.answer_key.next = self.answers.key.val();
        MsgSrc::<WqeRead>::join(&mut self.walk.m_again, &mut self.answers.s_read);
        MsgSrc::<WqeData>::join(&mut self.answers.m_data, &mut self.walk.s_again);
        MsgSrc::<WqeRead>::link(&mut self.m_again, &mut self.answers.m_again);
        MsgSink::<WqeData>::link(&mut self.s_again, &mut self.answers.s_again);
        MsgSrc::<WqeFree>::link(&mut self.m_again_free, &mut self.walk.m_again_free);
        MsgSrc::<PlaceOp>::join(&mut self.walk.m_op, &mut self.orders.s);
        MsgSrc::<Segment>::join(&mut self.walk.m_seg, &mut self.segments.s);
        self.m_move.data.next = self.mover.q.val();
        self.m_move.valid.next = self.mover_busy.q.val();
        if self.m_move.ready.val() {
            self.mover_busy.d.next = false;
        }
        self.m_done.data.next = self.done.q.val();
        self.m_done.valid.next = self.done_busy.q.val();
        if self.m_done.ready.val() {
            self.done_busy.d.next = false;
        }
        self.m_change.data.next = self.change.q.val();
        self.m_change.valid.next = self.state.q.val() == State::Ask;
        self.s_changed.ready.next = self.state.q.val() == State::Wait;
        self.stat.next = self.events.q.val();
        self.stat_function.next = self.events_of.q.val();
        self.events_of.d.next = self.orders.m.data.val().function;
        self.events.d.next = bits::<3>(0);

        // The mark of the order at the head is read all the time; it is needed one cycle after the order shows.
        self.qpn.next = self.orders.m.data.val().qpn;
        self.marks.read_addr.next = self.qpn.val().get_bits::<LQ>(0);
        self.marks.write_addr.next = self.qpn.val().get_bits::<LQ>(0);
        self.marks.write_data.next.epoch = self.orders.m.data.val().epoch;
        self.same.next = self.marks.read_data.val().epoch == self.orders.m.data.val().epoch;
        self.kind.next = self.orders.m.data.val().kind;
        self.answer.next = self.kind.val().get_bit(place_kind::ANSWER_BIT);
        self.value.next = self.answer.val() & self.kind.val().get_bit(0);
        self.moves.next = (self.orders.m.data.val().kind == place_kind::WRITE) | (self.orders.m.data.val().kind == place_kind::SEND) | self.answer.val();
        self.reads.next = (self.orders.m.data.val().kind == place_kind::READ) | (self.orders.m.data.val().kind == place_kind::ATOMIC);
        // Answers belong to the requester: another life, other failures.
        self.data_op.next = (self.moves.val() & !self.answer.val()) | self.reads.val();
        // Flushes and barriers are not stopped by a mark.
        self.poisoned.next = self.marks.read_data.val().set & !self.marks.read_data.val().soft & self.same.val() & (self.data_op.val() | (self.orders.m.data.val().kind == place_kind::NOTHING));
        self.torn.next = self.marks.read_data.val().set & self.marks.read_data.val().soft & self.same.val() & self.data_op.val() & self.orders.m.data.val().soft & !self.orders.m.data.val().first;
        self.lost.next = self.poisoned.val() | self.torn.val();

        // The segment at the head, once there is a place for what it leads to.
        self.open.next = (self.state.q.val() == State::Segments) & self.segments.m.valid.val() & !self.mover_busy.q.val() & !self.done_busy.q.val();
        self.s_mr.ready.next = self.open.val() & self.segments.m.data.val().lookup;
        self.due.next = self.segments.m.data.val().inv & !self.segments.m.data.val().status.any() & !self.answered.q.val() & !self.failed.q.val() & !self.poisoned.val();
        self.ready.next = self.open.val() & !self.due.val() & (self.s_mr.valid.val() | !self.segments.m.data.val().lookup);
        self.segments.m.ready.next = self.ready.val();
        self.bad.next = (self.segments.m.data.val().status != 0) | self.refused.q.val();
        self.bad_status.next = self.segments.m.data.val().status;
        if self.refused.q.val() {
            self.bad_status.next = bits::<8>(place_status::NOT_INVALIDATED);
        }
        if self.segments.m.data.val().lookup {
            self.bad.next = self.s_mr.data.val().status != 0;
            self.bad_status.next = bit_cast::<8, 3>(self.s_mr.data.val().status) | place_status::KEY_CHECK;
            if self.s_mr.data.val().status == 0 {
                self.bad_status.next = bits::<8>(0);
            }
        }
        self.placing.next = self.segments.m.data.val().lookup & self.moves.val() & !self.bad.val() & !self.failed.q.val() & !self.lost.val();
        // A duplicate whose key has gone meanwhile is no error of the queue pair.
        self.hushed.next = self.bad.val() & self.reads.val() & self.orders.m.data.val().again;
        // A SEND larger than its receive, or a WRITE to where it may not go, is an unreliable queue pair's message lost and nothing else.
        self.spared.next = self.orders.m.data.val().soft
            & self.bad.val()
            & !self.failed.q.val()
            & !self.lost.val()
            & ((self.orders.m.data.val().kind == place_kind::WRITE) | (!self.segments.m.data.val().lookup & (self.segments.m.data.val().status == place_status::TOO_SMALL)));
        self.fails.next = self.bad.val() & !self.failed.q.val() & !self.lost.val() & !self.hushed.val() & !self.spared.val();
        self.failing.next = (self.failed.q.val() & self.hard.q.val()) | self.fails.val();
        self.spoilt.next = (self.failed.q.val() & !self.hard.q.val()) | self.spared.val();
        self.status_now.next = self.status.q.val();
        if self.fails.val() | self.spared.val() {
            self.status_now.next = self.bad_status.val();
        }
        if self.torn.val() {
            self.status_now.next = bits::<8>(place_status::KEY);
            if self.orders.m.data.val().kind == place_kind::SEND {
                self.status_now.next = bits::<8>(place_status::TOO_SMALL);
            }
        }
        self.writes_now.next = self.writes.q.val();
        if self.placing.val() {
            self.writes_now.next = self.writes.q.val() + 1;
        }
        self.finish.next = self.ready.val() & self.segments.m.data.val().last;
        self.walk.resume.next = self.finish.val() & self.segments.m.data.val().inv;
        self.orders.m.ready.next = self.finish.val();
        // A failure sets the mark, one of a message until that is over; a new life of the queue pair wipes that of an earlier one, of which the epoch might be the same.
        self.tears.next = self.spoilt.val() & !self.orders.m.data.val().done;
        self.begins.next = (self.orders.m.data.val().kind == place_kind::BARRIER) & self.orders.m.data.val().again;
        self.over.next = self.begins.val()
            | (self.marks.read_data.val().set & self.data_op.val() & (!self.same.val() | (self.marks.read_data.val().soft & (self.orders.m.data.val().first | self.orders.m.data.val().done))));
        self.marks.write_data.next.set = self.failing.val() | self.tears.val();
        self.marks.write_data.next.soft = !self.failing.val();
        self.marks.write_en.next = self.finish.val() & !self.answer.val() & (self.failing.val() | self.tears.val() | self.over.val());

        self.off.next = self.segments.m.data.val().off;
        self.turned.next = self.orders.m.data.val().operand >> (bit_cast::<64, 3>(self.off.val().get_bits::<3>(0)) << 3);

        if self.state.q.val() == State::Idle {
            self.failed.d.next = false;
            self.hard.d.next = false;
            self.status.d.next = bits::<8>(0);
            self.writes.d.next = bits::<8>(0);
            self.answered.d.next = false;
            self.refused.d.next = false;
            if self.orders.m.valid.val() {
                self.state.d.next = State::Segments;
            }
        }
        // The peer's key goes when all of the SEND is placed, and not at all if it cannot be (IBTA 9.4.1.1).
        if self.state.q.val() == State::Segments {
            self.change.d.next.key = self.orders.m.data.val().imm;
            self.change.d.next.pd = self.orders.m.data.val().own_pd;
            self.change.d.next.function = self.orders.m.data.val().function;
            self.change.d.next.qpn = self.orders.m.data.val().qpn;
            if self.open.val() & self.due.val() {
                self.state.d.next = State::Ask;
            }
        }
        if (self.state.q.val() == State::Ask) & self.m_change.ready.val() {
            self.state.d.next = State::Wait;
        }
        if (self.state.q.val() == State::Wait) & self.s_changed.valid.val() {
            self.answered.d.next = true;
            self.refused.d.next = self.s_changed.data.val().status.any();
            self.state.d.next = State::Segments;
        }
        if !self.mover_busy.q.val() {
            self.mover.d.next.handle = self.orders.m.data.val().handle;
            self.mover.d.next.off = self.segments.m.data.val().off;
            self.mover.d.next.len = bits::<13>(0);
            if self.placing.val() {
                self.mover.d.next.len = self.segments.m.data.val().len;
            }
            self.mover.d.next.iova = self.s_mr.data.val().iova;
            self.mover.d.next.function = self.orders.m.data.val().function;
            self.mover.d.next.direct = self.value.val();
            self.mover.d.next.data = self.turned.val();
            if self.value.val() {
                self.mover.d.next.off = bits::<14>(0);
            }
            self.mover.d.next.free = self.orders.m.data.val().has_frame & self.segments.m.data.val().last;
        }
        if self.ready.val() {
            self.mover_busy.d.next = self.placing.val() | (self.orders.m.data.val().has_frame & self.segments.m.data.val().last);
            self.writes.d.next = self.writes_now.val();
            self.status.d.next = self.status_now.val();
            self.failed.d.next = self.failing.val() | self.spoilt.val();
            self.hard.d.next = self.failing.val();
        }
        if self.finish.val() {
            self.done_busy.d.next = true;
            self.state.d.next = State::Idle;
            if self.failing.val() {
                self.events.d.next = bits::<3>(flags(STATS, &["place_failed"]) as u64);
            }
            if self.spoilt.val() {
                self.events.d.next = bits::<3>(flags(STATS, &["msg_dropped"]) as u64);
            }
            if self.lost.val() {
                self.events.d.next = bits::<3>(flags(STATS, &["poisoned"]) as u64);
            }
        }

        if !self.done_busy.q.val() {
            self.done.d.next.qpn = self.orders.m.data.val().qpn;
            self.done.d.next.epoch = self.orders.m.data.val().epoch;
            self.done.d.next.function = self.orders.m.data.val().function;
            self.done.d.next.kind = self.orders.m.data.val().kind;
            self.done.d.next.writes = self.writes_now.val();
            self.done.d.next.status = self.status_now.val();
            self.done.d.next.access_local = (self.orders.m.data.val().kind == place_kind::SEND) | self.answer.val();
            self.done.d.next.done = self.orders.m.data.val().done;
            self.done.d.next.cqe = self.orders.m.data.val().cqe;
            self.done.d.next.rcqn = self.orders.m.data.val().rcqn;
            self.done.d.next.opcode = self.orders.m.data.val().opcode;
            self.done.d.next.has_imm = self.orders.m.data.val().has_imm;
            self.done.d.next.imm = self.orders.m.data.val().imm;
            self.done.d.next.solicited = self.orders.m.data.val().solicited;
            self.done.d.next.byte_len = self.orders.m.data.val().byte_len;
            self.done.d.next.src_qpn = self.orders.m.data.val().src_qpn;
            self.done.d.next.rq_index = self.orders.m.data.val().rq_index;
            self.done.d.next.ack = self.orders.m.data.val().ack;
            self.done.d.next.replies = self.orders.m.data.val().replies;
            self.done.d.next.transport = self.orders.m.data.val().transport;
            self.done.d.next.again = self.orders.m.data.val().again;
            self.done.d.next.pd = self.orders.m.data.val().pd;
            self.done.d.next.va = self.orders.m.data.val().va;
            if self.orders.m.data.val().kind == place_kind::ATOMIC {
                self.done.d.next.va = self.s_mr.data.val().iova;
            }
            self.done.d.next.key = self.orders.m.data.val().key;
            self.done.d.next.operand = self.orders.m.data.val().operand;
            self.done.d.next.compare = self.orders.m.data.val().compare;
            self.done.d.next.grh = self.orders.m.data.val().grh;
            self.done.d.next.soft = self.orders.m.data.val().soft;
            self.done.d.next.atomic = self.orders.m.data.val().atomic;
            self.done.d.next.keyed = (self.orders.m.data.val().kind == place_kind::ATOMIC) & self.segments.m.data.val().lookup;
            self.done.d.next.phase = self.segments.m.data.val().phase;
            self.done.d.next.inv = self.orders.m.data.val().inv & (self.orders.m.data.val().kind == place_kind::SEND);
            if self.poisoned.val() | self.hushed.val() {
                self.done.d.next.kind = bits::<4>(place_kind::NOTHING);
                self.done.d.next.ack = false;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.mover_busy.d.next = false;
            self.done_busy.d.next = false;
        }
    }
}
