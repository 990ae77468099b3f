//! Fetches the page-table line behind one that is in use: DMA goes through a region page by page.

use super::way::Tag;
use crate::prim::sum::Sum;
use ferric_abi::host::Pte;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Bytes and entries of a page-table line.
const LINE: u64 = 64;
const ENTRIES: u64 = LINE / Pte::BYTES as u64;

/// A page-table line that has been used, and how much of its region lies behind the access.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Hint {
    pub function: Bits<12>,
    pub own: Tag,
    /// IOVA of the line, the entry that was used, the byte in its page.
    pub addr: Bits<64>,
    pub entry: Bits<3>,
    pub va_low: Bits<12>,
    /// Bytes from there to the region's end, if they are less than 2^32 (`short`).
    pub rem: Bits<32>,
    pub short: Bit,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// Has the region another line?
    Judge,
    /// Waits for a cycle in which nobody else reads the cache, then sees what is in the slots.
    Look,
    Probe,
    /// The line is not there: its read is offered, is waited for.
    Ask,
    Wait,
}

/// One line at a time. Reads that nobody waits for: whatever is in its way, it gives up.
#[derive(LogicBlock, Default)]
pub struct Ahead {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub hint: Signal<In, Hint>,
    /// Pulse; missed unless idle.
    pub hint_valid: Signal<In, Bit>,
    /// One cycle later: the access is refused.
    pub outside: Signal<In, Bit>,
    /// The cache is about to be emptied.
    pub stop: Signal<In, Bit>,
    /// The line wanted.
    pub want: Signal<Out, Tag>,
    pub owner: Signal<Out, Bits<12>>,
    pub addr: Signal<Out, Bits<64>>,
    /// Its slots are to be read; `looked`: they are, `first` and `second` are their tags in the next cycle.
    pub look: Signal<Out, Bit>,
    pub looked: Signal<In, Bit>,
    pub first: Signal<In, Tag>,
    pub second: Signal<In, Tag>,
    /// Slot and way that it goes to.
    pub look_slot: Signal<In, Bits<9>>,
    pub victim: Signal<In, Bit>,
    pub slot: Signal<Out, Bits<9>>,
    pub way: Signal<Out, Bit>,
    /// A read is offered, or will be in the next cycle.
    pub probing: Signal<Out, Bit>,
    pub ask: Signal<Out, Bit>,
    pub asked: Signal<In, Bit>,
    /// A read is offered or under way, until it has `landed` in the cache.
    pub fetching: Signal<Out, Bit>,
    pub landed: Signal<In, Bit>,
    /// So is the line of the query, `own`, which has stood there since the cycle before.
    pub own: Signal<In, Tag>,
    pub joined: Signal<Out, Bit>,
    state: DFF<State>,
    hold: DFF<Hint>,
    line: DFF<Tag>,
    slot_q: DFF<Bits<9>>,
    way_q: DFF<Bit>,
    /// The line and the query's were one in the last cycle. Neither changes before a read that is offered has landed or been used.
    one: DFF<Bit>,
    next_line: Sum<49>,
    next_addr: Sum<64>,
    room: Signal<Local, Bits<16>>,
    reach: Signal<Local, Bits<17>>,
    rest: Signal<Local, Bits<32>>,
    more: Signal<Local, Bit>,
    present: Signal<Local, Bit>,
    busy: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Ahead {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, hold, line, slot_q, way_q, one);
        self.want.next = self.line.q.val();
        self.owner.next = self.hold.q.val().function;
        self.addr.next = self.hold.q.val().addr;
        self.slot.next = self.slot_q.q.val();
        self.way.next = self.way_q.q.val();
        self.look.next = self.state.q.val() == State::Look;
        self.probing.next = self.state.q.val() == State::Probe;
        self.ask.next = self.state.q.val() == State::Ask;
        self.busy.next = (self.state.q.val() == State::Ask) | (self.state.q.val() == State::Wait);

        self.fetching.next = self.busy.val();
        self.one.d.next = (self.own.val().line == self.line.q.val().line) & (self.own.val().index == self.line.q.val().index) & (self.own.val().life == self.line.q.val().life);
        self.joined.next = self.busy.val() & self.one.q.val();
        self.present.next =
            (self.first.val().valid & (self.first.val().line == self.line.q.val().line) & (self.first.val().index == self.line.q.val().index) & (self.first.val().life == self.line.q.val().life))
                | (self.second.val().valid
                    & (self.second.val().line == self.line.q.val().line)
                    & (self.second.val().index == self.line.q.val().index)
                    & (self.second.val().life == self.line.q.val().life));

        self.next_line.a.next = self.line.q.val().line;
        self.next_line.b.next = bits::<49>(1);
        self.next_addr.a.next = self.hold.q.val().addr;
        self.next_addr.b.next = bits::<64>(LINE);
        // Bytes from the page's beginning to the line's end, and to the region's.
        self.room.next = (bits::<16>(ENTRIES) - bit_cast::<16, 3>(self.hold.q.val().entry)) << 12;
        self.rest.next = self.hold.q.val().rem;
        self.reach.next = bit_cast::<17, 16>(self.rest.val().get_bits::<16>(0)) + bit_cast::<17, 12>(self.hold.q.val().va_low);
        self.more.next = !self.hold.q.val().short | self.rest.val().get_bits::<16>(16).any() | (self.reach.val() > bit_cast::<17, 16>(self.room.val()));
        match self.state.q.val() {
            State::Idle => {
                self.hold.d.next = self.hint.val();
                self.line.d.next = self.hint.val().own;
                if self.hint_valid.val() {
                    self.state.d.next = State::Judge;
                }
            }
            State::Judge => {
                self.line.d.next.line = self.next_line.y.val();
                self.hold.d.next.addr = self.next_addr.y.val();
                self.state.d.next = State::Idle;
                if self.more.val() & !self.outside.val() & !self.stop.val() {
                    self.state.d.next = State::Look;
                }
            }
            State::Look => {
                self.slot_q.d.next = self.look_slot.val();
                if self.stop.val() {
                    self.state.d.next = State::Idle;
                } else if self.looked.val() {
                    self.state.d.next = State::Probe;
                }
            }
            State::Probe => {
                self.way_q.d.next = self.victim.val();
                self.state.d.next = State::Ask;
                if self.present.val() | self.stop.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Ask => {
                if self.asked.val() {
                    self.state.d.next = State::Wait;
                }
            }
            State::Wait => {
                if self.landed.val() {
                    self.state.d.next = State::Idle;
                }
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
