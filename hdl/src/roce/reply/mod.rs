//! The responder's way back to the wire: acknowledges, READ responses, atomic results, in the order of each queue pair. See README.md.

mod atomic;
mod ring;
mod seat;
mod turn;

#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{AckOp, QpError, RdCmd, RdRow, TxDone, TxOp, WrDone, WrSmall};
use crate::prim::ram::{Ram, RamAsync};
use crate::stream::{MsgFifo, MsgSlice};
use atomic::Atomics;
use ferric_hdl_derive::BlockDefault;
use crate::codes::ack_kind;
use crate::stats::flags;
use ferric_abi::wire::syndrome;
use ferric_hdl_derive::kernel;
use ferric_abi::codes::CqeStatus;
use rust_hdl::prelude::*;
use ring::Ring;
use seat::{Addressee, Item, Job, Seat};
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
    ("s_wr", &[]), // at most 16 under way: as many places at the DMA writer's port, and a slice here
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
    /// Looks for the stored result of a duplicate atomic.
    Look,
    Seen,
    Match,
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
    pub s_ack: MsgSink<AckOp>,
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
    acks: MsgSlice<AckOp>,
    left: MsgFifo<TxDone, 3>,
    out: MsgSlice<AckOp>,
    error: MsgSlice<QpError>,
    turn: Turn,
    atomics: Atomics,
    /// Queue pairs with something to send, each at most once.
    list: MsgFifo<Bits<24>, LQ>,
    seats: Ram<Seat, LQ>,
    /// Something of the queue pair is in the ring, on its way out or wrong, or it is in the list: its acknowledges have to wait.
    occupied: RamAsync<Bits<1>, LQ>,
    ring: Ring<LQ, LR>,
    state: DFF<State>,
    job: DFF<Job>,
    id: DFF<Bits<24>>,
    /// The seat at hand and whose it is; `store`: it has to go back.
    seat: DFF<Seat>,
    seat_id: DFF<Bits<24>>,
    seat_known: DFF<Bit>,
    store: DFF<Bit>,
    item: DFF<Item>,
    /// Of the seat at hand, from the cycle in which it came: its ring holds something; packets with `notify` are on their way;
    /// none of both, nor an acknowledge or a turn. True while the job is judged.
    pending: DFF<Bit>,
    marked: DFF<Bit>,
    quiet: DFF<Bit>,
    look: DFF<Bits<5>>,
    to_look: DFF<Bits<6>>,
    init: DFF<Bits<LQ>>,
    events: DFF<Bits<5>>,
    fail_psn: DFF<Bits<24>>,
    fail_msn: DFF<Bits<24>>,
    /// A barrier waits: no further replies are taken.
    hold: DFF<Bit>,
    passed: DFF<Bit>,
    /// A life is to be ended; the turn that was under way then has not come back; the barrier waits for that.
    ending: DFF<Bit>,
    turning: DFF<Bit>,
    wanes: DFF<Bit>,
    /// The seat at hand has answered one more.
    told: DFF<Bit>,
    /// So has one atomic more.
    over_now: DFF<Bit>,
    keyed_now: DFF<Bit>,
    phase_now: DFF<Bit>,
    #[init(Constant::new(Seat::default()))]
    nothing: Constant<Seat>,
    next_id: Signal<Local, Bits<24>>,
    next_job: Signal<Local, Job>,
    some: Signal<Local, Bit>,
    quick: Signal<Local, Bit>,
    resting: Signal<Local, Bit>,
    ack_qpn: Signal<Local, Bits<24>>,
    loaded: Signal<Local, Seat>,
    seat_index: Signal<Local, Bits<LQ>>,
    count: Signal<Local, Bits<6>>,
    used: Signal<Local, Bits<6>>,
    fresh: Signal<Local, Bit>,
    holds: Signal<Local, Bit>,
    departs: Signal<Local, Bit>,
    absent: Signal<Local, Bit>,
    full: Signal<Local, Bit>,
    kind: Signal<Local, Bits<2>>,
    atomic: Signal<Local, Bit>,
    push: Signal<Local, Bit>,
    enlist: Signal<Local, Bit>,
    leave: Signal<Local, Bit>,
    finish: Signal<Local, Bit>,
    stale: Signal<Local, Bit>,
    begins: Signal<Local, Bit>,
    asker: Signal<Local, Addressee>,
    kept: Signal<Local, Addressee>,
    /// The event at hand is an atomic's last one.
    settles: Signal<Local, Bit>,
    mute: Signal<Local, Bit>,
    /// Of the acknowledge at hand, known from Load on: a NAK behind it waits.
    late: DFF<Bit>,
    before: Signal<Local, Bits<24>>,
    before_held: Signal<Local, Bits<24>>,
    earlier: Signal<Local, Bit>,
    /// The seat at hand is that of the job.
    at_hand: Signal<Local, Bit>,
    held_class: Signal<Local, Bits<8>>,
    ack_class: Signal<Local, Bits<8>>,
}

#[kernel]
impl<const LQ: usize, const LR: usize> Logic for Reply<LQ, LR> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, job, id, seat, seat_id, seat_known, store, item, pending, marked, late, quiet, look, to_look, init, events, fail_psn, fail_msn, hold, passed, told, ending, turning, wanes, over_now, keyed_now, phase_now);
        clock!(self, clock, acks, left, out, error, turn, atomics, list, seats, occupied, ring);
        self.acks.reset.next = self.reset.val();
        self.left.reset.next = self.reset.val();
        self.out.reset.next = self.reset.val();
        self.error.reset.next = self.reset.val();
        self.turn.reset.next = self.reset.val();
        self.atomics.reset.next = self.reset.val();
        self.list.reset.next = self.reset.val();
        self.acks.s.data.next = self.s_ack.data.val();
        self.acks.s.valid.next = self.s_ack.valid.val() & !self.hold.q.val();
        self.s_ack.ready.next = self.acks.s.ready.val() & !self.hold.q.val();
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
        self.events.d.next = bits::<5>(0);
        self.answered.next = self.told.q.val();
        self.answered_qpn.next = self.seat_id.q.val();
        self.answered_epoch.next = self.seat.q.val().epoch;
        self.answered_count.next = self.seat.q.val().answered;
        self.told.d.next = false;
        self.over.next = self.over_now.q.val();
        self.over_qpn.next = self.seat_id.q.val();
        self.over_count.next = self.seat.q.val().ended;
        self.over_keyed.next = self.over_now.q.val() & self.keyed_now.q.val();
        self.over_phase.next = self.phase_now.q.val();
        self.over_now.d.next = false;

        // A barrier: the replies that came before it, then the atomics among them.
        self.barrier_done.next = self.passed.q.val();
        self.passed.d.next = false;
        if self.barrier.val() {
            self.hold.d.next = true;
            self.ending.d.next = self.ends.val();
        }
        if self.hold.q.val() & !self.acks.m.valid.val() & self.atomics.idle.val() & !self.ending.q.val() {
            self.hold.d.next = false;
            self.wanes.d.next = true;
        }
        // A turn needs keys, and the key unit may wait for placement: replies are taken again meanwhile.
        if self.wanes.q.val() & !self.turning.q.val() {
            self.wanes.d.next = false;
            self.passed.d.next = true;
        }

        // An acknowledge with nothing of its queue pair before it passes by the machine, when the machine could begin it as well: no turn begins in that cycle, so none is left without its place in `out`.
        self.ack_qpn.next = self.acks.m.data.val().qpn;
        self.occupied.read_addr.next = self.ack_qpn.val().get_bits::<LQ>(0);
        self.quick.next = (self.state.q.val() == State::Idle)
            & !self.store.q.val()
            & self.acks.m.valid.val()
            & (self.acks.m.data.val().kind == ack_kind::ACKNOWLEDGE)
            & !self.acks.m.data.val().atomic
            & !self.occupied.read_data.val().any()
            & self.atomics.s_op.ready.val()
            & self.out.s.ready.val();

        // What comes next. Whatever makes room goes before what wants it, which waits here for its room: a job once begun must not wait for another.
        self.some.next = true;
        self.next_job.next = Job::Turn;
        self.next_id.next = self.list.m.data.val();
        if self.left.m.valid.val() {
            self.next_job.next = Job::Left;
            self.next_id.next = self.left.m.data.val().qpn;
        } else if self.turn.done.val() {
            self.next_job.next = Job::Ended;
            self.next_id.next = self.turn.after.val().qpn;
        } else if self.atomics.m_done.valid.val() {
            self.next_job.next = Job::Executed;
            self.next_id.next = self.atomics.m_done.data.val().qpn;
        } else if self.acks.m.valid.val() & self.out.s.ready.val() & self.atomics.s_op.ready.val() {
            self.next_job.next = Job::Ack;
            self.next_id.next = self.acks.m.data.val().qpn;
        } else if self.ending.q.val() & !self.acks.m.valid.val() {
            self.next_job.next = Job::Life;
            self.next_id.next = self.ends_qpn.val();
        } else {
            self.some.next = self.list.m.valid.val() & self.turn.idle.val() & self.out.s.ready.val();
        }

        // Seats: the one at hand is newer than the memory until it has gone back.
        self.seat_index.next = self.id.q.val().get_bits::<LQ>(0);
        self.seats.read_addr.next = self.seat_index.val();
        self.seats.write_addr.next = self.seat_id.q.val().get_bits::<LQ>(0);
        self.seats.write_data.next = self.seat.q.val();
        self.seats.write_en.next = self.store.q.val();
        self.resting.next = !self.seat.q.val().count.any()
            & !self.seat.q.val().marks.any()
            & !self.seat.q.val().ack
            & !self.seat.q.val().busy
            & !self.seat.q.val().listed
            & !self.seat.q.val().dead;
        self.occupied.write_addr.next = self.seat_id.q.val().get_bits::<LQ>(0);
        self.occupied.write_data.next = bit_cast::<1, 1>((!self.resting.val()).into());
        self.occupied.write_en.next = self.store.q.val();
        self.store.d.next = false;
        self.loaded.next = self.seats.read_data.val();
        self.at_hand.next = self.seat_known.q.val() & (self.seat_id.q.val() == self.id.q.val());
        if self.at_hand.val() {
            self.loaded.next = self.seat.q.val();
        }
        self.begins.next = self.acks.m.data.val().kind == ack_kind::LIFE;
        // Says nothing but that an atomic is over, maybe one of an earlier life.
        self.mute.next = self.acks.m.data.val().mute;
        self.fresh.next = (self.job.q.val() == Job::Ack) & (self.begins.val() | (self.loaded.val().epoch != self.acks.m.data.val().epoch)) & !self.mute.val();
        self.holds.next = self.loaded.val().count.any() & !self.fresh.val();
        self.departs.next = self.loaded.val().marks.any();
        self.absent.next = !self.seat.q.val().listed & !self.seat.q.val().busy;
        self.stale.next = self.turn.after.val().epoch != self.seat.q.val().epoch;
        self.kind.next = self.acks.m.data.val().kind;
        self.atomic.next = self.kind.val() == ack_kind::ATOMIC;
        self.count.next = self.seat.q.val().count;
        self.used.next = self.seat.q.val().used;
        // An acknowledge of a duplicate must not push out a NAK of what comes behind it.
        self.held_class.next = self.loaded.val().ack_syndrome;
        self.ack_class.next = self.acks.m.data.val().syndrome;
        // Both differences run beside the choice between the seats. The choice is written in gates: of a multiplexer synthesis makes one difference behind it.
        self.before.next = self.acks.m.data.val().psn - self.seats.read_data.val().ack_psn;
        self.before_held.next = self.acks.m.data.val().psn - self.seat.q.val().ack_psn;
        self.earlier.next = (self.at_hand.val() & self.before_held.val().get_bit(23)) | (!self.at_hand.val() & self.before.val().get_bit(23));
        // Duplicates leave half of the places to those that are new: a peer has at most 16 of these outstanding.
        self.full.next = self.count.val().get_bit(5) | (self.acks.m.data.val().again & self.count.val().get_bit(4));

        // Ring and results
        self.ring.place.next = self.seat_index.val();
        self.ring.seat.next = self.seat.q.val();
        self.ring.ack.next = self.acks.m.data.val();
        self.ring.slot.next = self.look.q.val();
        self.ring.found.next = self.state.q.val() == State::Match;
        self.ring.first.next = self.state.q.val() == State::Item;
        self.ring.started.next = false;
        self.ring.done.next = self.atomics.m_done.data.val();
        self.ring.ended.next = false;

        // To the parts
        self.acks.m.ready.next = false;
        self.left.m.ready.next = false;
        self.atomics.m_done.ready.next = false;
        self.list.m.ready.next = false;
        self.list.s.data.next = self.id.q.val();
        self.list.s.valid.next = false;
        self.turn.take.next = false;
        self.turn.start.next = false;
        self.turn.qpn.next = self.id.q.val();
        self.turn.seat.next = self.seat.q.val();
        self.turn.answer.next = self.state.q.val() == State::Start;
        self.turn.item.next = self.item.q.val();
        self.turn.value.next = self.ring.outcome.val().value;
        self.atomics.s_op.valid.next = false;
        self.atomics.s_op.data.next.qpn = self.id.q.val();
        self.atomics.s_op.data.next.epoch = self.acks.m.data.val().epoch;
        self.atomics.s_op.data.next.psn = self.acks.m.data.val().psn;
        self.atomics.s_op.data.next.phase = self.acks.m.data.val().phase;
        self.atomics.s_op.data.next.slot = self.seat.q.val().slot;
        self.atomics.s_op.data.next.iova = self.acks.m.data.val().va;
        self.atomics.s_op.data.next.function = self.acks.m.data.val().function;
        self.atomics.s_op.data.next.add = self.acks.m.data.val().add;
        self.atomics.s_op.data.next.operand = self.acks.m.data.val().operand;
        self.atomics.s_op.data.next.compare = self.acks.m.data.val().compare;
        self.error.s.valid.next = false;
        self.error.s.data.next.qpn = self.id.q.val();
        self.error.s.data.next.epoch = self.seat.q.val().epoch;
        self.error.s.data.next.side = true;
        // `CqeStatus` Fatal: the memory failed.
        self.error.s.data.next.cause = bits::<8>(CqeStatus::Fatal as u64);
        // An acknowledge goes straight on, or as the seat keeps it.
        self.asker.next.function = self.acks.m.data.val().function;
        self.asker.next.pd = self.acks.m.data.val().pd;
        self.asker.next.dest_qpn = self.acks.m.data.val().dest_qpn;
        self.asker.next.pmtu = self.acks.m.data.val().pmtu;
        self.asker.next.ipv6 = self.acks.m.data.val().ipv6;
        self.asker.next.vlan = self.acks.m.data.val().vlan;
        self.kept.next = self.seat.q.val().to;
        self.out.s.valid.next = false;
        self.out.s.data.next = self.acks.m.data.val();
        if (self.job.q.val() == Job::Turn) & (self.state.q.val() == State::Act) {
            self.out.s.data.next.qpn = self.id.q.val();
            self.out.s.data.next.dest_qpn = self.kept.val().dest_qpn;
            self.out.s.data.next.psn = self.seat.q.val().ack_psn;
            self.out.s.data.next.msn = self.seat.q.val().ack_msn;
            self.out.s.data.next.syndrome = self.seat.q.val().ack_syndrome;
            self.out.s.data.next.ipv6 = self.kept.val().ipv6;
            self.out.s.data.next.vlan = self.kept.val().vlan;
        }

        // Defaults of what the states decide.
        self.push.next = false;
        self.enlist.next = false;
        self.leave.next = false;
        self.finish.next = false;

        match self.state.q.val() {
            State::Clear => {
                self.init.d.next = self.init.q.val() + 1;
                self.seats.write_en.next = true;
                self.seats.write_addr.next = self.init.q.val();
                self.occupied.write_en.next = true;
                self.occupied.write_addr.next = self.init.q.val();
                self.occupied.write_data.next = bits::<1>(0);
                if self.init.q.val().all() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Idle => {
                self.id.d.next = self.next_id.val();
                self.job.d.next = self.next_job.val();
                self.seats.read_addr.next = self.next_id.val().get_bits::<LQ>(0);
                if self.some.val() & !(self.quick.val() & (self.next_job.val() == Job::Ack)) {
                    self.state.d.next = State::Load;
                }
            }
            State::Load => {
                self.seat.d.next = self.loaded.val();
                self.seat_id.d.next = self.id.q.val();
                self.seat_known.d.next = true;
                self.pending.d.next = self.holds.val();
                self.marked.d.next = self.departs.val();
                self.late.d.next = self.loaded.val().ack
                    & !self.fresh.val()
                    & self.held_class.val().get_bits::<2>(5).any()
                    & !self.ack_class.val().get_bits::<2>(5).any()
                    & self.earlier.val();
                self.quiet.d.next = !self.holds.val() & !self.departs.val() & !(self.loaded.val().ack & !self.fresh.val()) & !self.loaded.val().busy;
                self.state.d.next = State::Act;
                if self.fresh.val() {
                    // A new life of the queue pair. What is on its way out, and the list, stay facts.
                    self.seat.d.next.epoch = self.acks.m.data.val().epoch;
                    self.seat.d.next.count = bits::<6>(0);
                    self.seat.d.next.off = bits::<32>(0);
                    self.seat.d.next.psn_off = bits::<24>(0);
                    self.seat.d.next.used = bits::<6>(0);
                    self.seat.d.next.answered = bits::<5>(0);
                    self.seat.d.next.dead = false;
                    self.seat.d.next.ack = false;
                }
            }
            State::Act => {
                match self.job.q.val() {
                    Job::Ack => {
                        if !self.mute.val() {
                            self.seat.d.next.to = self.asker.val();
                        }
                        if self.begins.val() {
                            // Told at once: what was answered in a life of the same epoch is not answered in this one.
                            self.told.d.next = true;
                            self.finish.next = true;
                        } else if self.seat.q.val().dead | self.mute.val() {
                            self.finish.next = true;
                        } else if self.kind.val() == ack_kind::ACKNOWLEDGE {
                            if self.quiet.q.val() {
                                self.out.s.valid.next = true;
                                self.finish.next = self.out.s.ready.val();
                            } else if self.late.q.val() {
                                self.finish.next = true;
                            } else if self.list.s.ready.val() {
                                self.seat.d.next.ack = true;
                                self.seat.d.next.ack_psn = self.acks.m.data.val().psn;
                                self.seat.d.next.ack_msn = self.acks.m.data.val().msn;
                                self.seat.d.next.ack_syndrome = self.acks.m.data.val().syndrome;
                                self.enlist.next = true;
                                self.finish.next = true;
                            }
                        } else if self.full.val() {
                            self.events.d.next = bits::<5>(flags(STATS, &["replies_dropped"]) as u64);
                            self.finish.next = true;
                        } else if self.atomic.val() & self.acks.m.data.val().again {
                            self.look.d.next = self.seat.q.val().slot - 1;
                            self.to_look.d.next = self.seat.q.val().used;
                            self.state.d.next = State::Look;
                        } else if self.list.s.ready.val() & (!self.atomic.val() | self.atomics.s_op.ready.val()) {
                            self.push.next = true;
                            self.finish.next = true;
                            self.events.d.next = bits::<5>(flags(STATS, &["reads"]) as u64);
                            if self.acks.m.data.val().again {
                                self.events.d.next = bits::<5>(flags(STATS, &["answered_again"]) as u64);
                            }
                            if self.atomic.val() {
                                self.events.d.next = bits::<5>(flags(STATS, &["atomics"]) as u64);
                                self.atomics.s_op.valid.next = true;
                                self.ring.started.next = true;
                                self.seat.d.next.slot = self.seat.q.val().slot + 1;
                                if !self.used.val().get_bit(5) {
                                    self.seat.d.next.used = self.seat.q.val().used + 1;
                                }
                            }
                            if !self.acks.m.data.val().again {
                                // Says all that an acknowledge of older packets would.
                                self.seat.d.next.ack = false;
                            }
                        }
                    }
                    Job::Left => {
                        if self.left.m.data.val().notify {
                            self.seat.d.next.marks = self.seat.q.val().marks - 1;
                        }
                        self.finish.next = true;
                        if self.left.m.data.val().status.any()
                            & (self.left.m.data.val().epoch == self.seat.q.val().epoch)
                            & !self.seat.q.val().dead
                        {
                            self.fail_psn.d.next = self.left.m.data.val().psn;
                            self.fail_msn.d.next = self.seat.q.val().ack_msn - 1;
                            self.finish.next = false;
                            self.left.m.ready.next = true;
                            self.state.d.next = State::Fail;
                        }
                    }
                    Job::Ended => {
                        if self.list.s.ready.val() {
                            self.finish.next = true;
                            self.seat.d.next.busy = false;
                            self.enlist.next = self.pending.q.val() | self.seat.q.val().ack;
                            if !self.stale.val() & self.pending.q.val() & self.turn.after.val().kind.any() {
                                self.seat.d.next.off = self.turn.after.val().off;
                                self.seat.d.next.psn_off = self.turn.after.val().psn_off;
                                self.leave.next = self.turn.all.val();
                            }
                        }
                    }
                    Job::Executed => {
                        // The turn that waits for it.
                        if self.list.s.ready.val() {
                            self.ring.ended.next = self.atomics.m_done.data.val().epoch == self.seat.q.val().epoch;
                            self.enlist.next = self.pending.q.val();
                            self.finish.next = true;
                        }
                    }
                    Job::Life => {
                        self.seat.d.next.count = bits::<6>(0);
                        self.seat.d.next.off = bits::<32>(0);
                        self.seat.d.next.psn_off = bits::<24>(0);
                        self.seat.d.next.ack = false;
                        self.ending.d.next = false;
                        self.turning.d.next = !self.turn.idle.val();
                        self.finish.next = true;
                    }
                    Job::Turn => {
                        self.seat.d.next.listed = false;
                        if self.pending.q.val() {
                            self.state.d.next = State::Item;
                        } else if self.seat.q.val().ack & self.marked.q.val() {
                            self.turn.start.next = true;
                            self.seat.d.next.ack = false;
                            self.seat.d.next.busy = true;
                            self.seat.d.next.marks = self.seat.q.val().marks + 1;
                            self.finish.next = true;
                        } else if self.seat.q.val().ack {
                            self.out.s.valid.next = true;
                            if self.out.s.ready.val() {
                                self.seat.d.next.ack = false;
                                self.finish.next = true;
                            }
                        } else {
                            self.finish.next = true;
                        }
                    }
                    _ => {}
                }
            }
            State::Look => {
                self.state.d.next = State::Seen;
                if !self.to_look.q.val().any() {
                    self.events.d.next = bits::<5>(flags(STATS, &["replies_dropped"]) as u64);
                    self.finish.next = true;
                }
            }
            State::Seen => {
                self.state.d.next = State::Match;
            }
            State::Match => {
                if !self.ring.same.val() {
                    self.look.d.next = self.look.q.val() - 1;
                    self.to_look.d.next = self.to_look.q.val() - 1;
                    self.state.d.next = State::Look;
                } else if self.list.s.ready.val() {
                    self.push.next = true;
                    self.events.d.next = bits::<5>(flags(STATS, &["answered_again"]) as u64);
                    self.finish.next = true;
                }
            }
            State::Item => {
                self.item.d.next = self.ring.item.val();
                self.state.d.next = State::Value;
            }
            State::Value => {
                self.state.d.next = State::Start;
            }
            State::Start => {
                if !self.item.q.val().atomic | (!self.ring.outcome.val().running & !self.ring.outcome.val().failed) {
                    self.turn.start.next = true;
                    self.seat.d.next.busy = true;
                    self.seat.d.next.marks = self.seat.q.val().marks + 1;
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
                    self.seat.d.next.dead = true;
                    self.seat.d.next.count = bits::<6>(0);
                    // NAK remote operational error.
                    self.seat.d.next.ack = true;
                    self.seat.d.next.ack_syndrome = bits::<8>(syndrome::NAK_OPERATION);
                    self.seat.d.next.ack_psn = self.fail_psn.q.val();
                    self.seat.d.next.ack_msn = self.fail_msn.q.val();
                    self.enlist.next = true;
                    self.store.d.next = true;
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Clear;
            }
        }

        self.ring.push.next = self.push.val();
        if self.push.val() {
            self.seat.d.next.count = self.seat.q.val().count + 1;
            self.seat.d.next.ack_msn = self.acks.m.data.val().msn;
            self.enlist.next = true;
        }
        if self.leave.val() {
            self.seat.d.next.head = self.seat.q.val().head + 1;
            self.seat.d.next.count = self.seat.q.val().count - 1;
            self.seat.d.next.off = bits::<32>(0);
            self.seat.d.next.psn_off = bits::<24>(0);
            if !self.turn.after.val().again {
                self.seat.d.next.answered = self.seat.q.val().answered + 1;
                self.told.d.next = true;
            }
        }
        // A turn that ends makes its queue pair absent.
        if self.enlist.val() & (self.absent.val() | (self.job.q.val() == Job::Ended)) {
            self.list.s.valid.next = true;
            self.seat.d.next.listed = true;
        }
        if self.finish.val() {
            self.store.d.next = true;
            self.state.d.next = State::Idle;
            match self.job.q.val() {
                Job::Ack => self.acks.m.ready.next = true,
                Job::Left => self.left.m.ready.next = true,
                Job::Ended => {
                    self.turn.take.next = true;
                    self.turning.d.next = false;
                }
                Job::Life => {}
                Job::Executed => self.atomics.m_done.ready.next = true,
                _ => self.list.m.ready.next = true,
            }
        }
        // Executed, or not to be executed: a duplicate's result is stored, others are refused or dropped.
        self.settles.next = self.finish.val()
            & ((self.job.q.val() == Job::Executed)
                | ((self.job.q.val() == Job::Ack) & self.acks.m.data.val().atomic & !self.atomics.s_op.valid.val()));
        self.over_now.d.next = self.settles.val();
        self.keyed_now.d.next = true;
        self.phase_now.d.next = self.atomics.m_done.data.val().phase;
        if self.job.q.val() == Job::Ack {
            self.keyed_now.d.next = self.acks.m.data.val().keyed;
            self.phase_now.d.next = self.acks.m.data.val().phase;
        }
        if self.settles.val() {
            self.seat.d.next.ended = self.seat.q.val().ended + 1;
        }
        if self.quick.val() {
            self.out.s.valid.next = true;
            self.acks.m.ready.next = true;
        }
        if self.reset.val() {
            self.state.d.next = State::Clear;
            self.init.d.next = bits::<LQ>(0);
            self.seat.d.next = self.nothing.val();
            self.seat_known.d.next = false;
            self.store.d.next = false;
            self.hold.d.next = false;
            self.passed.d.next = false;
            self.ending.d.next = false;
            self.turning.d.next = false;
            self.wanes.d.next = false;
            self.told.d.next = false;
            self.over_now.d.next = false;
            self.events.d.next = bits::<5>(0);
        }
    }
}
