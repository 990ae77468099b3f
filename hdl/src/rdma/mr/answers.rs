//! Answers of one port of the key unit, in the order of its requests though later ones may be known first.

use crate::bus::MsgSrc;
use crate::msg::MrResp;
use crate::prim::ram::RamAsync;
use crate::prim::sum::{LessOne, PlusOne};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Places for answers.
const PLACES: u64 = 32;
const ALL_BUT_ONE: u64 = PLACES - 1;
/// In the name of a place: the bit that is the lap.
const LAP_BIT: usize = 5;

/// An answer in its place. Only what the present lap around the places has written counts.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Word {
    lap: Bit,
    answer: MrResp,
}

/// 32 places. A request takes the next one, its answer is written there once it is known, and leaves when those in front have left.
///
/// A place is named by its number and, in the bit above, the lap.
#[derive(LogicBlock, Default)]
pub struct Answers {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// After a reset: place `clear_at` is emptied.
    pub clear: Signal<In, Bit>,
    pub clear_at: Signal<In, Bits<5>>,
    /// Pulse: a request takes the place `place`. Only while there is `room`.
    pub take: Signal<In, Bit>,
    pub place: Signal<Out, Bits<6>>,
    pub room: Signal<Out, Bit>,
    /// Pulse: `answer` is that of place `at`; in the cycle in which the place is taken, or later.
    pub write: Signal<In, Bit>,
    pub at: Signal<In, Bits<6>>,
    pub answer: Signal<In, MrResp>,
    pub m: MsgSrc<MrResp>,
    words: RamAsync<Word, 5>,
    /// First place that is taken, first one that is not, how many were taken a cycle ago: who comes and who goes is known too late to be counted at once.
    head: DFF<Bits<6>>,
    tail: DFF<Bits<6>>,
    taken: DFF<Bits<6>>,
    /// One more and one less, beside the decision.
    more: PlusOne<6>,
    fewer: LessOne<6>,
    shown: DFF<Bit>,
    out: DFF<MrResp>,
    first: Signal<Local, Bits<6>>,
    position: Signal<Local, Bits<6>>,
    /// The answer of the first place is being written, has been.
    direct: Signal<Local, Bit>,
    stored: Signal<Local, Bit>,
    free: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
    /// One has come in the cycle before, one has left.
    took: DFF<Bit>,
    moved: DFF<Bit>,
}

#[kernel]
impl Logic for Answers {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, head, tail, taken, shown, out, took, moved);
        clock!(self, clock, words);
        self.more.a.next = self.taken.q.val();
        self.fewer.a.next = self.taken.q.val();
        self.first.next = self.head.q.val();
        self.position.next = self.at.val();
        self.place.next = self.tail.q.val();
        self.room.next = !(self.taken.q.val() == PLACES) & !(self.took.q.val() & (self.taken.q.val() == ALL_BUT_ONE));
        self.words.read_addr.next = self.first.val().get_bits::<5>(0);
        self.words.write_en.next = self.write.val() | self.clear.val();
        self.words.write_addr.next = self.position.val().get_bits::<5>(0);
        // In the first lap, which has number 0, memory that is still zero does not count.
        self.words.write_data.next.lap = !self.position.val().get_bit(LAP_BIT);
        self.words.write_data.next.answer = self.answer.val();
        if self.clear.val() {
            self.words.write_addr.next = self.clear_at.val();
            self.words.write_data.next.lap = false;
        }
        self.direct.next = self.write.val() & (self.position.val() == self.head.q.val());
        self.stored.next = !(self.words.read_data.val().lap == self.first.val().get_bit(LAP_BIT));
        self.free.next = !self.shown.q.val() | self.m.ready.val();
        self.moves.next = self.free.val() & (self.direct.val() | self.stored.val());
        self.m.valid.next = self.shown.q.val();
        self.m.data.next = self.out.q.val();
        if self.free.val() {
            self.shown.d.next = self.direct.val() | self.stored.val();
            // What is not stored is being written, or nothing is shown: whether it is written is known later than what.
            self.out.d.next = self.answer.val();
            if self.stored.val() {
                self.out.d.next = self.words.read_data.val().answer;
            }
        }
        if self.moves.val() {
            self.head.d.next = self.head.q.val() + 1;
        }
        if self.take.val() {
            self.tail.d.next = self.tail.q.val() + 1;
        }
        self.took.d.next = self.take.val();
        self.moved.d.next = self.moves.val();
        if self.took.q.val() & !self.moved.q.val() {
            self.taken.d.next = self.more.y.val();
        }
        if self.moved.q.val() & !self.took.q.val() {
            self.taken.d.next = self.fewer.y.val();
        }
        if self.reset.val() {
            self.head.d.next = bits::<6>(0);
            self.tail.d.next = bits::<6>(0);
            self.taken.d.next = bits::<6>(0);
            self.shown.d.next = false;
            self.took.d.next = false;
            self.moved.d.next = false;
        }
    }
}
