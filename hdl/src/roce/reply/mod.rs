//! The responder's way back to the wire: acknowledges, READ responses, atomic results, in the order of each queue pair. See README.md.

mod barrier;
mod choice;
mod hand;
mod look;
mod receive;
mod ring;
mod seat;
mod told;
mod turn;

#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::codes::ack_kind;
use crate::msg::{AckOp, QpError, RdCmd, RdRow, ReplyOp, TxDone, TxOp, WrDone, WrSmall};
use crate::prim::pack::Cast;
use crate::rdma::atomics::{Atomics, MARK};
use crate::stats::flags;
use crate::stream::{MsgFifo, MsgSlice};
use barrier::Barrier;
use choice::Choice;
use ferric_abi::codes::CqeStatus;
use ferric_hdl_derive::{kernel, BlockDefault};
use hand::Hand;
use look::Look;
use receive::Receive;
use ring::Ring;
use rust_hdl::prelude::*;
use seat::{Addressee, Item, Job, Mark};
use told::{Tell, Told};
use turn::Turn;

/// Events on `stat`.
pub const STATS: &[&str] = &["reads", "atomics", "answered_again", "replies_dropped", "reply_errors"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // A reply begins with a place in the slice of `m_ack` and in the atomics' queue; the list of turns has a place for each queue pair. Not for `m_op`: turns go beside the events, and `hold` ends before a turn is awaited.
    ("s_ack", &["m_ack", "m_rd", "s_rd", "m_wr", "s_wr", "atomic_clear", "m_error"]),
    // An event once begun has its place in `out`.
    ("s_tx_done", &["m_error"]),
    ("s_rd", &["m_wr"]),
    ("s_wr", &[]), // a place for each that may be under way
    ("atomic_end", &["m_rd", "s_rd", "m_wr", "s_wr", "atomic_clear", "m_error"]),
    // To the responder: atomics that may still be on their way here.
    ("over", &["s_ack", "m_ack", "m_rd", "s_rd", "m_wr", "s_wr", "atomic_clear", "m_error"]),
    // To the key unit: of atomics whose way here is that of `begun` of `rdma/place`.
    ("over_keyed", &["m_ack", "m_rd", "s_rd", "m_wr", "s_wr", "atomic_clear", "m_error"]),
    ("barrier_done", &["barrier", "m_ack", "m_rd", "s_rd", "m_wr", "s_wr", "atomic_clear", "m_error", "m_op"]), // `m_op`: the turn of a queue pair that ends
];

/// What the machine does.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum State {
    Clear,
    Idle,
    Load,
    Act,
    /// The stored result of a duplicate atomic is looked for.
    Look,
    /// Fetches the first item of the ring, then its result.
    Item,
    Value,
    Start,
    /// The queue pair's READ or atomic has failed.
    Fail,
}

/// Replies. `LQ`: log2 of the number of queue pairs, `LR` = `LQ` + 5: 32 READs and atomics each.
#[derive(LogicBlock, BlockDefault)]
pub struct Reply<const LQ: usize, const LR: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets everything. Replies are taken again 2^LQ cycles later.
    pub reset: Signal<In, Bit>,
    pub s_ack: MsgSink<ReplyOp>,
    /// Acknowledges with nothing before them, to the acknowledge generator.
    pub m_ack: MsgSrc<AckOp>,
    /// All others, to the gatherer.
    pub m_op: MsgSrc<TxOp>,
    pub s_tx_done: MsgSink<TxDone>,
    /// To the responder.
    pub m_error: MsgSrc<QpError>,
    pub m_rd: MsgSrc<RdCmd>,
    pub s_rd: MsgSink<RdRow>,
    pub m_wr: MsgSrc<WrSmall>,
    pub s_wr: MsgSink<WrDone>,
    /// Of atomics to `host/dma_wr`: payload is kept away from their pages.
    pub atomic_hold: Signal<Out, Bit>,
    pub atomic_page: Signal<Out, Bits<12>>,
    pub atomic_clear: Signal<In, Bit>,
    pub atomic_begin: Signal<Out, Bit>,
    pub atomic_end: Signal<Out, Bit>,
    /// Pulse: a barrier has passed completion. Out: and all atomics before it have been executed. With `ends` the life of queue pair `ends_qpn` is over: what it has
    /// to answer is forgotten, and no order for a packet of it is made behind the barrier. Both stay until `barrier_done`.
    pub barrier: Signal<In, Bit>,
    pub ends: Signal<In, Bit>,
    pub ends_qpn: Signal<In, Bits<24>>,
    pub barrier_done: Signal<Out, Bit>,
    /// Pulse: of queue pair `qpn` in life `epoch` `count` READs and atomics have been answered, modulo 32, the last one just now; to the responder.
    pub answered: Signal<Out, Bit>,
    pub answered_qpn: Signal<Out, Bits<24>>,
    pub answered_epoch: Signal<Out, Bits<8>>,
    pub answered_count: Signal<Out, Bits<5>>,
    /// Pulse: of queue pair `over_qpn` so many atomics have been executed or come to nothing, modulo 512, the last one just now; to the responder.
    pub over: Signal<Out, Bit>,
    pub over_qpn: Signal<Out, Bits<24>>,
    pub over_count: Signal<Out, Bits<9>>,
    /// With `over`, if the key of the atomic had been asked for in `over_phase`; to the key unit.
    pub over_keyed: Signal<Out, Bit>,
    pub over_phase: Signal<Out, Bit>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<5>>,
    /// Whose events they are.
    pub stat_function: Signal<Out, Bits<12>>,
    tell: Tell,
    acks: MsgSlice<Told>,
    left: MsgFifo<TxDone, 3>,
    out: MsgSlice<AckOp>,
    error: MsgSlice<QpError>,
    turn: Turn,
    atomics: Atomics,
    mark: Cast<Mark, Bits<MARK>>,
    /// Queue pairs with something to send, each at most once.
    list: MsgFifo<Bits<24>, LQ>,
    ring: Ring<LQ, LR>,
    choice: Choice,
    hand: Hand<LQ>,
    receive: Receive,
    search: Look,
    fence: Barrier,
    state: DFF<State>,
    job: DFF<Job>,
    id: DFF<Bits<24>>,
    item: DFF<Item>,
    events: DFF<Bits<5>>,
    events_of: DFF<Bits<12>>,
    fail_psn: DFF<Bits<24>>,
    fail_msn: DFF<Bits<24>>,
    /// The seat at hand begins a life.
    told: DFF<Bit>,
    /// So has one atomic more.
    over_now: DFF<Bit>,
    keyed_now: DFF<Bit>,
    phase_now: DFF<Bit>,
    quick: Signal<Local, Bit>,
    /// Whose queue pair is at hand.
    owner: Signal<Local, Addressee>,
    absent: Signal<Local, Bit>,
    push: Signal<Local, Bit>,
    enlist: Signal<Local, Bit>,
    begins: Signal<Local, Bit>,
    finish: Signal<Local, Bit>,
    /// States in which most jobs end.
    acts: Signal<Local, Bit>,
    atomic_first: Signal<Local, Bit>,
    /// The event at hand is an atomic's last one.
    settles: Signal<Local, Bit>,
}

#[kernel]
impl<const LQ: usize, const LR: usize> Logic for Reply<LQ, LR> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, job, id, item, events, events_of, fail_psn, fail_msn, told, over_now, keyed_now, phase_now);
        clock!(self, clock, acks, left, out, error, turn, atomics, list, ring, hand, search, fence);
        self.acks.reset.next = self.reset.val();
        self.left.reset.next = self.reset.val();
        self.out.reset.next = self.reset.val();
        self.error.reset.next = self.reset.val();
        self.turn.reset.next = self.reset.val();
        self.atomics.reset.next = self.reset.val();
        self.list.reset.next = self.reset.val();
        self.hand.reset.next = self.reset.val();
        self.search.reset.next = self.reset.val();
        self.fence.reset.next = self.reset.val();
        self.tell.op.next = self.s_ack.data.val();
        self.acks.s.data.next = self.tell.told.val();
        self.acks.s.valid.next = self.s_ack.valid.val() & !self.fence.hold.val();
        self.s_ack.ready.next = self.acks.s.ready.val() & !self.fence.hold.val();
        MsgSink::<TxDone>::link(&mut self.s_tx_done, &mut self.left.s);
        MsgSrc::<AckOp>::link(&mut self.m_ack, &mut self.out.m);
        MsgSrc::<QpError>::link(&mut self.m_error, &mut self.error.m);
        MsgSrc::<TxOp>::link(&mut self.m_op, &mut self.turn.m_op);
        MsgSrc::<RdCmd>::link(&mut self.m_rd, &mut self.atomics.m_rd);
        MsgSink::<RdRow>::link(&mut self.s_rd, &mut self.atomics.s_rd);
        MsgSrc::<WrSmall>::link(&mut self.m_wr, &mut self.atomics.m_wr);
        MsgSink::<WrDone>::link(&mut self.s_wr, &mut self.atomics.s_wr);
        self.atomic_hold.next = self.atomics.atomic_hold.val();
        self.atomic_page.next = self.atomics.atomic_page.val();
        self.atomics.atomic_clear.next = self.atomic_clear.val();
        self.atomic_begin.next = self.atomics.atomic_begin.val();
        self.atomic_end.next = self.atomics.atomic_end.val();
        self.stat.next = self.events.q.val();
        self.events.d.next = self.receive.events.val();
        self.stat_function.next = self.events_of.q.val();
        self.owner.next = self.hand.seat.val().to;
        self.events_of.d.next = self.owner.val().function;
        if self.job.q.val() == Job::Ack {
            self.events_of.d.next = self.acks.m.data.val().function;
        }
        self.turn.life.next = self.told.q.val();
        self.turn.life_qpn.next = self.hand.qpn.val();
        self.answered.next = self.turn.tells.val();
        self.answered_qpn.next = self.turn.tells_qpn.val();
        self.answered_epoch.next = self.turn.tells_epoch.val();
        self.answered_count.next = self.turn.tells_count.val();
        self.over.next = self.over_now.q.val();
        self.over_qpn.next = self.hand.qpn.val();
        self.over_count.next = self.hand.seat.val().ended;
        self.over_keyed.next = self.over_now.q.val() & self.keyed_now.q.val();
        self.over_phase.next = self.phase_now.q.val();

        self.fence.start.next = self.barrier.val();
        self.fence.ends.next = self.ends.val();
        self.fence.settled.next = !self.acks.m.valid.val() & self.atomics.idle.val();
        self.fence.ended.next = false;
        self.fence.idle.next = self.turn.idle.val();
        self.fence.turned.next = false;
        self.barrier_done.next = self.fence.done.val();

        self.acts.next = (self.state.q.val() == State::Act) | (self.state.q.val() == State::Start);
        // What wants room waits for it here: a job once begun must not wait for another.
        self.choice.busy.next = self.acts.val();
        self.choice.at_hand.next = self.job.q.val();
        self.choice.left.next = self.left.m.valid.val();
        self.choice.left_qpn.next = self.left.m.data.val().qpn;
        self.choice.ended.next = self.turn.done.val();
        self.choice.ended_qpn.next = self.turn.whose.val();
        self.choice.executed.next = self.atomics.m_done.valid.val();
        self.choice.executed_qpn.next = self.atomics.m_done.data.val().qpn;
        self.choice.ack.next = self.acks.m.valid.val() & self.out.s.ready.val() & self.atomics.s_op.ready.val();
        self.choice.ack_qpn.next = self.acks.m.data.val().qpn;
        // An acknowledge with nothing of its queue pair before it passes by the machine, when the machine could begin it as well: no turn begins in that cycle, so none is left without its place in `out`.
        self.quick.next = (self.state.q.val() == State::Idle)
            & !self.hand.stores.val()
            & self.choice.ack.val()
            & (self.acks.m.data.val().kind == ack_kind::ACKNOWLEDGE)
            & !self.acks.m.data.val().atomic
            & !self.hand.occupied.val();
        self.choice.life.next = self.fence.ending.val() & !self.acks.m.valid.val();
        self.choice.life_qpn.next = self.ends_qpn.val();
        self.choice.listed.next = self.list.m.valid.val() & (self.turn.idle.val() | ((self.state.q.val() == State::Act) & (self.job.q.val() == Job::Ended))) & self.out.s.ready.val();
        self.choice.listed_qpn.next = self.list.m.data.val();

        self.hand.clear.next = self.state.q.val() == State::Clear;
        self.hand.read.next = self.id.q.val();
        if (self.state.q.val() == State::Idle) | self.acts.val() {
            self.hand.read.next = self.choice.qpn.val();
        }
        self.hand.load.next = self.state.q.val() == State::Load;
        self.hand.id.next = self.id.q.val();
        self.hand.replies.next = self.job.q.val() == Job::Ack;
        self.hand.ack.next = self.acks.m.data.val();
        self.hand.address.next = self.receive.address.val();
        self.hand.keep.next = self.receive.keep.val();
        self.hand.execute.next = self.receive.execute.val();
        self.hand.sent.next = self.receive.covers.val();
        self.hand.departed.next = false;
        self.hand.ended.next = false;
        self.hand.goes_on.next = false;
        self.hand.after.next = self.turn.after.val();
        self.hand.called.next = (self.state.q.val() == State::Act) & (self.job.q.val() == Job::Turn);
        self.hand.forget.next = false;
        self.hand.fails.next = false;
        self.hand.fail_psn.next = self.fail_psn.q.val();
        self.hand.fail_msn.next = self.fail_msn.q.val();
        self.absent.next = !self.hand.seat.val().listed & !self.hand.seat.val().busy;

        self.receive.en.next = (self.state.q.val() == State::Act) & (self.job.q.val() == Job::Ack);
        self.receive.ack.next = self.acks.m.data.val();
        self.receive.seat.next = self.hand.seat.val();
        self.receive.quiet.next = self.hand.quiet.val();
        self.receive.late.next = self.hand.late.val();
        self.receive.list.next = self.list.s.ready.val();
        self.receive.out.next = self.out.s.ready.val();
        self.receive.atomics.next = self.atomics.s_op.ready.val();

        // Ring and results
        self.atomic_first.next = self.ring.item.val().atomic;
        self.search.start.next = self.receive.look.val();
        self.search.seat.next = self.hand.seat.val();
        self.search.same.next = self.ring.same.val();
        self.search.take.next = self.list.s.ready.val();
        self.ring.place.next = self.id.q.val().get_bits::<LQ>(0);
        self.ring.seat.next = self.hand.seat.val();
        self.ring.ack.next = self.acks.m.data.val();
        self.ring.slot.next = self.search.slot.val();
        self.ring.found.next = self.state.q.val() == State::Look;
        self.ring.first.next = (self.state.q.val() == State::Item) | (!self.turn.idle.val() & !(self.state.q.val() == State::Look));
        self.ring.started.next = self.receive.execute.val();
        self.ring.done.next = self.atomics.m_done.data.val();
        self.ring.ended.next = false;
        self.ring.ahead.next = !self.turn.idle.val();
        self.ring.turns.next = self.turn.whose.val().get_bits::<LQ>(0);
        self.ring.next_place.next = self.turn.next_place.val();
        self.turn.next_item.next = self.ring.item.val();
        // Not beside a look, nor when an outcome may be written: what is read of a place that is being written is not defined.
        self.turn.readable.next = !(self.state.q.val() == State::Look) & !((self.state.q.val() == State::Act) & ((self.job.q.val() == Job::Ack) | (self.job.q.val() == Job::Executed)));
        self.turn.outcome.next = self.ring.outcome.val();

        // To the parts
        self.acks.m.ready.next = false;
        self.left.m.ready.next = false;
        self.atomics.m_done.ready.next = false;
        self.list.m.ready.next = false;
        self.list.s.data.next = self.id.q.val();
        self.turn.take.next = false;
        self.turn.qpn.next = self.id.q.val();
        self.turn.seat.next = self.hand.seat.val();
        self.turn.answer.next = self.state.q.val() == State::Start;
        self.turn.item.next = self.item.q.val();
        self.turn.value.next = self.ring.outcome.val().value;
        self.atomics.s_op.valid.next = self.receive.execute.val();
        self.atomics.s_op.data.next.qpn = self.id.q.val();
        self.atomics.s_op.data.next.epoch = self.acks.m.data.val().epoch;
        self.mark.x.next.psn = self.acks.m.data.val().psn;
        self.mark.x.next.slot = self.hand.seat.val().slot;
        self.atomics.s_op.data.next.mark = self.mark.y.val();
        self.atomics.s_op.data.next.phase = self.acks.m.data.val().phase;
        self.atomics.s_op.data.next.iova = self.acks.m.data.val().va;
        self.atomics.s_op.data.next.function = self.acks.m.data.val().function;
        self.atomics.s_op.data.next.add = self.acks.m.data.val().add;
        self.atomics.s_op.data.next.operand = self.acks.m.data.val().operand;
        self.atomics.s_op.data.next.compare = self.acks.m.data.val().compare;
        self.error.s.valid.next = false;
        self.error.s.data.next.qpn = self.id.q.val();
        self.error.s.data.next.epoch = self.hand.seat.val().epoch;
        self.error.s.data.next.side = true;
        self.error.s.data.next.cause = bits::<8>(CqeStatus::Fatal as u64);
        // An acknowledge goes straight on, or as the seat keeps it.
        self.out.s.valid.next = self.receive.pass.val() | self.quick.val();
        self.out.s.data.next = self.hand.out.val();

        // Defaults of what the states decide.
        self.push.next = self.receive.push.val();
        self.enlist.next = self.receive.keep.val();
        self.begins.next = false;
        self.finish.next = self.receive.finish.val();

        match self.state.q.val() {
            State::Clear => {
                if self.hand.cleared.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Idle => {
                self.id.d.next = self.choice.qpn.val();
                self.job.d.next = self.choice.job.val();
                if self.choice.some.val() & !(self.quick.val() & (self.choice.job.val() == Job::Ack)) {
                    self.state.d.next = State::Load;
                }
            }
            State::Load => {
                self.state.d.next = State::Act;
            }
            State::Act => {
                match self.job.q.val() {
                    Job::Ack => {
                        if self.receive.look.val() {
                            self.state.d.next = State::Look;
                        }
                    }
                    Job::Left => {
                        self.hand.departed.next = self.left.m.data.val().notify;
                        self.finish.next = true;
                        if self.left.m.data.val().status.any() & !self.left.m.data.val().wqe_index.any() & (self.left.m.data.val().epoch == self.hand.seat.val().epoch) & !self.hand.seat.val().dead {
                            // Not of a duplicate: its key may be gone, and the peer asks again if it has not had its answer.
                            self.fail_psn.d.next = self.left.m.data.val().psn;
                            self.fail_msn.d.next = self.hand.seat.val().ack_msn - 1;
                            self.finish.next = false;
                            self.left.m.ready.next = true;
                            self.state.d.next = State::Fail;
                        }
                    }
                    Job::Ended => {
                        if self.list.s.ready.val() {
                            self.finish.next = true;
                            self.hand.ended.next = true;
                            self.enlist.next = (self.hand.pending.val() & (self.hand.stale.val() | self.hand.remains.val())) | self.hand.seat.val().ack;
                            self.hand.goes_on.next = !self.hand.stale.val() & self.hand.pending.val() & self.turn.answers.val();
                        }
                    }
                    Job::Executed => {
                        // The turn that waits for it.
                        if self.list.s.ready.val() {
                            self.ring.ended.next = self.atomics.m_done.data.val().epoch == self.hand.seat.val().epoch;
                            self.enlist.next = self.hand.pending.val();
                            self.finish.next = true;
                        }
                    }
                    Job::Life => {
                        self.hand.forget.next = true;
                        self.fence.ended.next = true;
                        self.finish.next = true;
                    }
                    Job::Turn => {
                        if self.hand.pending.val() {
                            self.state.d.next = State::Item;
                        } else if self.hand.seat.val().ack & self.hand.marked.val() {
                            self.begins.next = true;
                            self.hand.sent.next = true;
                            self.finish.next = true;
                        } else if self.hand.seat.val().ack {
                            self.out.s.valid.next = true;
                            self.hand.sent.next = self.out.s.ready.val();
                            self.finish.next = self.out.s.ready.val();
                        } else {
                            self.finish.next = true;
                        }
                    }
                    _ => {}
                }
            }
            State::Look => {
                if self.search.none.val() {
                    self.events.d.next = bits::<5>(flags(STATS, &["replies_dropped"]) as u64);
                    self.finish.next = true;
                } else if self.search.found.val() & self.list.s.ready.val() {
                    self.push.next = true;
                    self.events.d.next = bits::<5>(flags(STATS, &["answered_again"]) as u64);
                    self.finish.next = true;
                }
            }
            State::Item => {
                self.item.d.next = self.ring.item.val();
                self.state.d.next = State::Start;
                if self.atomic_first.val() {
                    self.state.d.next = State::Value;
                }
            }
            State::Value => {
                self.state.d.next = State::Start;
            }
            State::Start => {
                if !self.item.q.val().atomic | (!self.ring.outcome.val().running & !self.ring.outcome.val().failed) {
                    self.begins.next = true;
                    self.finish.next = true;
                } else if self.ring.outcome.val().running {
                    // Comes into the list again when it has been executed.
                    self.finish.next = true;
                } else {
                    self.fail_psn.d.next = self.item.q.val().psn;
                    self.fail_msn.d.next = self.item.q.val().msn - 1;
                    self.list.m.ready.next = true;
                    self.state.d.next = State::Fail;
                }
            }
            State::Fail => {
                if self.error.s.ready.val() & self.list.s.ready.val() {
                    self.error.s.valid.next = true;
                    self.events.d.next = bits::<5>(flags(STATS, &["reply_errors"]) as u64);
                    self.hand.fails.next = true;
                    self.enlist.next = true;
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Clear;
            }
        }

        self.ring.push.next = self.push.val();
        self.hand.push.next = self.push.val();
        self.turn.start.next = self.begins.val();
        self.hand.begins.next = self.begins.val();
        // What was answered in a life of the same epoch is not answered in one that begins: this is told at once.
        self.told.d.next = self.receive.life.val();
        // A turn that ends makes its queue pair absent.
        self.list.s.valid.next = (self.enlist.val() | self.push.val()) & (self.absent.val() | (self.job.q.val() == Job::Ended));
        self.hand.listed.next = self.list.s.valid.val();
        self.hand.store.next = self.finish.val() | self.hand.fails.val();
        if self.finish.val() {
            // The next job is chosen beside the last cycle of this one.
            self.state.d.next = State::Idle;
            if self.acts.val() & self.choice.some.val() {
                self.state.d.next = State::Load;
                self.id.d.next = self.choice.qpn.val();
                self.job.d.next = self.choice.job.val();
            }
            match self.job.q.val() {
                Job::Ack => self.acks.m.ready.next = true,
                Job::Left => self.left.m.ready.next = true,
                Job::Ended => {
                    self.turn.take.next = true;
                    self.fence.turned.next = true;
                }
                Job::Life => {}
                Job::Executed => self.atomics.m_done.ready.next = true,
                _ => self.list.m.ready.next = true,
            }
        }
        // Executed, or not to be executed: a duplicate's result is stored, others are refused or dropped.
        self.settles.next = self.finish.val() & ((self.job.q.val() == Job::Executed) | ((self.job.q.val() == Job::Ack) & self.acks.m.data.val().atomic & !self.atomics.s_op.valid.val()));
        self.hand.settles.next = self.settles.val();
        self.over_now.d.next = self.settles.val();
        self.keyed_now.d.next = true;
        self.phase_now.d.next = self.atomics.m_done.data.val().phase;
        if self.job.q.val() == Job::Ack {
            self.keyed_now.d.next = self.acks.m.data.val().keyed;
            self.phase_now.d.next = self.acks.m.data.val().phase;
        }
        if self.quick.val() {
            self.acks.m.ready.next = true;
        }
        if self.reset.val() {
            self.state.d.next = State::Clear;
            self.told.d.next = false;
            self.over_now.d.next = false;
            self.events.d.next = bits::<5>(0);
        }
    }
}
