//! Fetches the page-table line behind one that is in use: DMA goes through a region page by page.

use super::way::{Tag, LINE_BITS};
use crate::prim::sum::Sum;
use ferric_abi::host::Pte;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bytes and entries of a page-table line.
const LINE: u64 = 64;
const ENTRIES: u64 = LINE / Pte::BYTES as u64;

/// A page-table line that has been used, and how much of its region lies behind the access.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Hint {
    pub function: Bits<12>,
    pub index: Bits<16>,
    pub life: Bits<8>,
    pub line: Bits<49>,
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
    /// Is the access refused?
    Judge,
    /// Has the region another line?
    Weigh,
    /// Waits for a cycle in which nobody else reads the cache, then sees what is in the slots.
    Look,
    Probe,
    /// It is not in them.
    Fetch,
}

/// One line at a time, of either port. Reads that nobody waits for: whatever is in its way, it gives up.
#[derive(LogicBlock, BlockDefault)]
pub struct Ahead<const LX: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub hint: Signal<In, Hint>,
    /// Pulse; missed unless idle.
    pub hint_valid: Signal<In, Bit>,
    /// One cycle later: the access is refused.
    pub outside: Signal<In, Bit>,
    /// The cache is about to be emptied.
    pub stop: Signal<In, Bit>,
    /// The line wanted, and of its tag what names the line.
    pub line: Signal<Out, Bits<49>>,
    pub want: Signal<Out, Tag>,
    pub owner: Signal<Out, Bits<12>>,
    pub addr: Signal<Out, Bits<64>>,
    /// Its slots are to be read; `looked`: they are, `first` and `second` are their tags in the next cycle, of the present round if `live`.
    pub look: Signal<Out, Bit>,
    pub looked: Signal<In, Bit>,
    pub first: Signal<In, Tag>,
    pub second: Signal<In, Tag>,
    pub live: Signal<In, Bits<2>>,
    pub look_slot: Signal<In, Bits<LX>>,
    pub slot: Signal<Out, Bits<LX>>,
    /// The tags are there, and stay: nobody reads the cache, and no query is at hand.
    pub probing: Signal<Out, Bit>,
    /// A row is on its way into the cache: the tags are read once more, later.
    pub busy: Signal<In, Bit>,
    /// There is room for a read that nobody waits for.
    pub room: Signal<In, Bit>,
    /// Pulse: the line is not there, it is to be read.
    pub fetch: Signal<Out, Bit>,
    state: DFF<State>,
    hold: DFF<Hint>,
    line_q: DFF<Bits<49>>,
    slot_q: DFF<Bits<LX>>,
    /// Where the line stands.
    addr_q: DFF<Bits<64>>,
    next_line: Sum<49>,
    next_addr: Sum<64>,
    room_left: Signal<Local, Bits<16>>,
    /// Bytes from the page's beginning to the region's end, if `rem` is less than 2^16.
    reach: DFF<Bits<17>>,
    rest: Signal<Local, Bits<32>>,
    more: Signal<Local, Bit>,
    number: Signal<Local, Bits<49>>,
    near: Signal<Local, Bits<49>>,
    #[init(Constant::new((LX as u64).into()))]
    slot_bits: Constant<Bits<6>>,
    present: Signal<Local, Bit>,
}

#[kernel]
impl<const LX: usize> Logic for Ahead<LX> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, hold, line_q, addr_q, slot_q, reach);
        self.number.next = self.line_q.q.val();
        self.line.next = self.number.val();
        self.want.next.valid = true;
        self.want.next.pending = true;
        self.want.next.read = bits::<6>(0);
        self.want.next.round = bits::<6>(0);
        self.want.next.index = self.hold.q.val().index;
        self.want.next.life = self.hold.q.val().life;
        self.near.next = bit_cast::<49, 29>(self.number.val().get_bits::<29>(0));
        self.want.next.line = self.near.val().get_bits::<23>(self.slot_bits.val().index());
        self.owner.next = self.hold.q.val().function;
        self.addr.next = self.addr_q.q.val();
        self.slot.next = self.slot_q.q.val();
        self.look.next = self.state.q.val() == State::Look;
        self.probing.next = (self.state.q.val() == State::Probe) | (self.state.q.val() == State::Fetch);
        // A line that cannot be cached is not worth a read.
        self.present.next = self.number.val().get_bits::<20>(LINE_BITS).any()
            | (self.live.val().get_bit(0) & (self.first.val().line == self.want.val().line) & (self.first.val().index == self.hold.q.val().index) & (self.first.val().life == self.hold.q.val().life))
            | (self.live.val().get_bit(1)
                & (self.second.val().line == self.want.val().line)
                & (self.second.val().index == self.hold.q.val().index)
                & (self.second.val().life == self.hold.q.val().life));
        self.fetch.next = (self.state.q.val() == State::Fetch) & !self.stop.val() & !self.busy.val() & self.room.val();

        // What is held stays: its neighbour is there from the second cycle on.
        self.next_line.a.next = self.hold.q.val().line;
        self.next_line.b.next = bits::<49>(1);
        self.line_q.d.next = self.next_line.y.val();
        self.next_addr.a.next = self.hold.q.val().addr;
        self.next_addr.b.next = bits::<64>(LINE);
        self.addr_q.d.next = self.next_addr.y.val();
        // Bytes from the page's beginning to the line's end, and to the region's.
        self.room_left.next = (bits::<16>(ENTRIES) - bit_cast::<16, 3>(self.hold.q.val().entry)) << 12;
        self.rest.next = self.hold.q.val().rem;
        self.reach.d.next = bit_cast::<17, 16>(self.rest.val().get_bits::<16>(0)) + bit_cast::<17, 12>(self.hold.q.val().va_low);
        self.more.next = !self.hold.q.val().short | self.rest.val().get_bits::<16>(16).any() | (self.reach.q.val() > bit_cast::<17, 16>(self.room_left.val()));
        match self.state.q.val() {
            State::Idle => {
                self.hold.d.next = self.hint.val();
                if self.hint_valid.val() {
                    self.state.d.next = State::Judge;
                }
            }
            State::Judge => {
                self.state.d.next = State::Weigh;
                if self.outside.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Weigh => {
                self.state.d.next = State::Idle;
                if self.more.val() & !self.stop.val() {
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
                self.state.d.next = State::Fetch;
                if self.busy.val() {
                    self.state.d.next = State::Look;
                } else if self.present.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Fetch => {
                self.state.d.next = State::Idle;
                if self.busy.val() {
                    self.state.d.next = State::Look;
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
