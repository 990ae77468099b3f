//! Used descriptors of a packed ring: what a chain becomes, in the places that it had. See README.md.

use crate::msg::VqUse;
use crate::prim::sum::Sum;
use crate::records::VqUsed;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// log2 of a descriptor's bytes; where length and identifier stand in it, the flags in the same word as the identifier.
const LG_DESC: usize = 4;
const LENGTH: u64 = 8;
const ID: u64 = 12;
/// Bits of an offset in a ring of 2^15 descriptors, and of a place that has not been brought back into the ring.
const OFFSET: usize = 20;
const WIDE: usize = 17;
/// Flags WRITE, AVAIL and USED in that word.
const WRITE: u64 = 1 << 17;
const ROUND: u64 = 1 << 23 | 1 << 31;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Sum,
    Length,
    Id,
    Held,
    Show,
    Done,
}

/// One chain at a time. The first one that is written is held: its flags come last, by `shows`, so that all behind it become visible with it.
#[derive(LogicBlock, BlockDefault)]
pub struct Packed {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not while a write is in flight.
    pub reset: Signal<In, Bit>,
    /// The chain `now` is written, or what is held becomes visible, in the ring whose line is `row`: until `done`.
    pub goes: Signal<In, Bit>,
    pub shows: Signal<In, Bit>,
    pub row: Signal<In, VqUsed>,
    pub now: Signal<In, VqUse>,
    /// Pulse, and the line then.
    pub done: Signal<Out, Bit>,
    pub changed: Signal<Out, VqUsed>,
    /// A write of four bytes.
    pub put: Signal<Out, Bit>,
    pub put_at: Signal<Out, Bits<64>>,
    pub put_data: Signal<Out, Bits<32>>,
    pub put_ready: Signal<In, Bit>,
    state: DFF<State>,
    /// Decided one cycle before it is used: the offset of what is written next, its place, where the next used one is.
    offset: DFF<Bits<OFFSET>>,
    at: DFF<Bits<64>>,
    sum: DFF<Bits<WIDE>>,
    less: DFF<Bits<WIDE>>,
    beyond: DFF<Bit>,
    since: DFF<Bits<16>>,
    place: Sum<64>,
    #[init(Constant::new(WRITE.into()))]
    of_write: Constant<Bits<32>>,
    #[init(Constant::new(ROUND.into()))]
    of_wrap: Constant<Bits<32>>,
    size: Signal<Local, Bits<WIDE>>,
    id: Signal<Local, Bits<16>>,
    write: Signal<Local, Bit>,
    wrap: Signal<Local, Bit>,
    word: Signal<Local, Bits<32>>,
    long: Signal<Local, Bits<32>>,
    wrote: Signal<Local, Bit>,
    flag: Signal<Local, Bits<32>>,
    round: Signal<Local, Bits<32>>,
}

#[kernel]
impl Logic for Packed {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, offset, at, sum, less, beyond, since);
        self.place.a.next = self.row.val().device;
        self.place.b.next = bit_cast::<64, OFFSET>(self.offset.q.val());
        self.size.next = bit_cast::<WIDE, 16>(self.row.val().size);
        self.less.d.next = self.sum.q.val() - self.size.val();
        self.beyond.d.next = self.sum.q.val() >= self.size.val();
        self.long.next = self.now.val().len;
        self.wrote.next = self.long.val().any();

        // The word with identifier and flags: the chain's, or that which is held.
        self.id.next = self.now.val().id;
        self.write.next = self.wrote.val();
        self.wrap.next = self.row.val().wrap;
        if self.state.q.val() == State::Show {
            self.id.next = self.row.val().held_id;
            self.write.next = self.row.val().held_write;
            self.wrap.next = self.row.val().held_wrap;
        }
        self.flag.next = bits::<32>(0);
        self.round.next = bits::<32>(0);
        if self.write.val() {
            self.flag.next = self.of_write.val();
        }
        if self.wrap.val() {
            self.round.next = self.of_wrap.val();
        }
        self.word.next = bit_cast::<32, 16>(self.id.val()) | self.flag.val() | self.round.val();
        self.put.next = (self.state.q.val() == State::Length) | (self.state.q.val() == State::Id) | (self.state.q.val() == State::Show);
        self.put_at.next = self.at.q.val();
        self.put_data.next = self.word.val();
        if self.state.q.val() == State::Length {
            self.put_data.next = self.now.val().len;
        }
        self.done.next = self.state.q.val() == State::Done;
        self.changed.next = self.row.val();
        self.changed.next.held = false;
        if self.goes.val() {
            self.changed.next.held = true;
            if !self.row.val().held {
                self.changed.next.held_slot = self.row.val().used;
                self.changed.next.held_wrap = self.row.val().wrap;
                self.changed.next.held_write = self.wrote.val();
                self.changed.next.held_id = self.now.val().id;
            }
            self.changed.next.signalled = self.since.q.val();
            self.changed.next.used = self.sum.q.val().get_bits::<16>(0);
            if self.beyond.q.val() {
                self.changed.next.used = self.less.q.val().get_bits::<16>(0);
                self.changed.next.wrap = !self.row.val().wrap;
            }
        }

        match self.state.q.val() {
            State::Idle => {
                self.offset.d.next = (bit_cast::<OFFSET, 16>(self.row.val().used) << LG_DESC) | LENGTH;
                self.sum.d.next = bit_cast::<WIDE, 16>(self.row.val().used) + bit_cast::<WIDE, 16>(self.now.val().slots);
                self.since.d.next = self.row.val().signalled + self.now.val().slots;
                if self.goes.val() {
                    self.state.d.next = State::Sum;
                } else if self.shows.val() {
                    self.offset.d.next = (bit_cast::<OFFSET, 16>(self.row.val().held_slot) << LG_DESC) | ID;
                    self.state.d.next = State::Held;
                }
            }
            State::Sum => {
                self.at.d.next = self.place.y.val();
                self.offset.d.next = (bit_cast::<OFFSET, 16>(self.row.val().used) << LG_DESC) | ID;
                self.state.d.next = State::Length;
            }
            State::Length => {
                if self.put_ready.val() {
                    self.at.d.next = self.place.y.val();
                    self.state.d.next = State::Done;
                    if self.row.val().held {
                        self.state.d.next = State::Id;
                    }
                }
            }
            State::Held => {
                self.at.d.next = self.place.y.val();
                self.state.d.next = State::Show;
            }
            State::Id => {
                if self.put_ready.val() {
                    self.state.d.next = State::Done;
                }
            }
            State::Show => {
                if self.put_ready.val() {
                    self.state.d.next = State::Done;
                }
            }
            State::Done => {
                self.state.d.next = State::Idle;
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
