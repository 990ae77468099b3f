//! READs and atomics of every queue pair that wait to be answered, and the outcomes of atomics: 32 of each, as rings.
use super::seat::{Item, Mark, Outcome, Seat};
use super::told::Told;
use crate::codes::ack_kind;
use crate::prim::pack::Cast;
use crate::prim::ram::{Ram, RamApart};
use crate::rdma::atomics::{AtomicDone, MARK};
use ferric_hdl_derive::kernel;
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// Two memories and their addresses. The first of the ring stands at the output in the cycle behind its address, an outcome in the one after
/// that: the memories are so deep that choosing among their parts takes most of a cycle.
#[derive(LogicBlock, BlockDefault)]
pub struct Ring<const LQ: usize, const LR: usize> {
    pub clock: Signal<In, Clock>,
    /// The queue pair at hand and its seat.
    pub place: Signal<In, Bits<LQ>>,
    pub seat: Signal<In, Seat>,
    pub ack: Signal<In, Told>,
    /// `ack` goes behind the last of the ring. `found`: it is a duplicate atomic, whose outcome stands in `slot`.
    pub push: Signal<In, Bit>,
    pub found: Signal<In, Bit>,
    /// The first of the ring; during a turn (`ahead`) what stands at `next_place` of the ring of `turns`.
    pub item: Signal<Out, Item>,
    pub ahead: Signal<In, Bit>,
    pub turns: Signal<In, Bits<LQ>>,
    pub next_place: Signal<In, Bits<5>>,
    /// The outcome that stands in `slot`, or (`first`) the one of `item`; it is that of the atomic in `ack`.
    pub slot: Signal<In, Bits<5>>,
    pub first: Signal<In, Bit>,
    pub outcome: Signal<Out, Outcome>,
    pub same: Signal<Out, Bit>,
    /// The atomic in `ack` is under way and has a place for its outcome; it is `done`.
    pub started: Signal<In, Bit>,
    pub ended: Signal<In, Bit>,
    pub done: Signal<In, AtomicDone>,
    /// The place behind the last one is read when nothing waits, and what is read then is not looked at.
    items: RamApart<Item, LR>,
    outcomes: Ram<Outcome, LR>,
    kept: DFF<Outcome>,
    equal: DFF<Bit>,
    wanted: Signal<Local, Bits<5>>,
    base: Signal<Local, Bits<LR>>,
    turns_base: Signal<Local, Bits<LR>>,
    count: Signal<Local, Bits<6>>,
    last: Signal<Local, Bits<5>>,
    tail: Signal<Local, Bits<5>>,
    mark: Cast<Bits<MARK>, Mark>,
    done_slot: Signal<Local, Bits<5>>,
}

#[kernel]
impl<const LQ: usize, const LR: usize> Logic for Ring<LQ, LR> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, kept, equal);
        clock!(self, clock, items, outcomes);
        self.base.next = bit_cast::<LR, LQ>(self.place.val()) << 5;
        self.count.next = self.seat.val().count;
        self.last.next = self.count.val().get_bits::<5>(0);
        self.tail.next = self.seat.val().head + self.last.val();

        self.items.read_addr.next = self.base.val() | bit_cast::<LR, 5>(self.seat.val().head);
        self.turns_base.next = bit_cast::<LR, LQ>(self.turns.val()) << 5;
        if self.ahead.val() {
            self.items.read_addr.next = self.turns_base.val() | bit_cast::<LR, 5>(self.next_place.val());
        }
        self.item.next = self.items.read_data.val();
        self.items.write_addr.next = self.base.val() | bit_cast::<LR, 5>(self.tail.val());
        self.items.write_en.next = self.push.val();
        self.items.write_data.next.atomic = self.ack.val().kind == ack_kind::ATOMIC;
        self.items.write_data.next.again = self.ack.val().again;
        self.items.write_data.next.slot = self.seat.val().slot;
        if self.found.val() {
            self.items.write_data.next.slot = self.slot.val();
        }
        self.items.write_data.next.psn = self.ack.val().psn;
        self.items.write_data.next.msn = self.ack.val().msn;
        self.items.write_data.next.va = self.ack.val().va;
        self.items.write_data.next.key = self.ack.val().key;
        self.items.write_data.next.len = self.ack.val().len;

        self.wanted.next = self.slot.val();
        if self.first.val() {
            self.wanted.next = self.items.read_data.val().slot;
        }
        self.outcomes.read_addr.next = self.base.val() | bit_cast::<LR, 5>(self.wanted.val());
        if self.ahead.val() & self.first.val() {
            self.outcomes.read_addr.next = self.turns_base.val() | bit_cast::<LR, 5>(self.wanted.val());
        }
        self.kept.d.next = self.outcomes.read_data.val();
        self.equal.d.next = self.outcomes.read_data.val().psn == self.ack.val().psn;
        self.outcome.next = self.kept.q.val();
        self.same.next = self.equal.q.val();
        self.outcomes.write_en.next = self.started.val() | self.ended.val();
        self.outcomes.write_addr.next = self.base.val() | bit_cast::<LR, 5>(self.seat.val().slot);
        self.outcomes.write_data.next.psn = self.ack.val().psn;
        self.outcomes.write_data.next.running = true;
        self.outcomes.write_data.next.failed = false;
        self.outcomes.write_data.next.value = bits::<64>(0);
        self.mark.x.next = self.done.val().mark;
        self.done_slot.next = self.mark.y.val().slot;
        if self.ended.val() {
            self.outcomes.write_addr.next = self.base.val() | bit_cast::<LR, 5>(self.done_slot.val());
            self.outcomes.write_data.next.psn = self.mark.y.val().psn;
            self.outcomes.write_data.next.running = false;
            self.outcomes.write_data.next.failed = self.done.val().err;
            self.outcomes.write_data.next.value = self.done.val().value;
        }
    }
}
