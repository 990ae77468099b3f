//! Page-table cache: two ways of 512 slots, one 64-byte page-table line (8 entries) per slot.

use super::ahead::{Ahead, Hint};
use super::way::{Tag, Way};
use crate::bus::{MsgSink, MsgSrc};
use crate::codes::key_status;
use crate::msg::{MrResp, RdCmd, RdRow};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

// Tags of reads: 0 for the query that waits, else what is fetched ahead for a port.
const AHEAD_0: u64 = 1;
const AHEAD_1: u64 = 2;

/// A translation wanted. `addr`: IOVA of the page-table line, or the answer itself when `direct`. `out_of_bounds` counts if
/// `status` is 0.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct PteQuery {
    pub port: Bit,
    pub status: Bits<3>,
    pub out_of_bounds: Bit,
    pub direct: Bit,
    pub function: Bits<12>,
    pub index: Bits<16>,
    pub life: Bits<8>,
    /// 4 KiB, 2 MiB, 1 GiB; the address in its page.
    pub page_size: Bits<2>,
    pub va_low: Bits<30>,
    /// Bytes from the address to the region's end, if they are less than 2^32 (`short`).
    pub rem: Bits<32>,
    pub short: Bit,
    pub page: Bits<52>,
    pub addr: Bits<64>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// Every slot is being emptied.
    Sweep,
    Run,
    Ask,
    Wait,
}

/// Look-up and answer: the slot is read one cycle before its query stands at `query`. `ready` moves the stages in front.
#[derive(LogicBlock, Default)]
pub struct PteCache {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub invalidate: Signal<In, Bit>,
    /// What will be the query after the next `ready`.
    pub look_page: Signal<In, Bits<52>>,
    pub look_index: Signal<In, Bits<16>>,
    pub look_valid: Signal<In, Bit>,
    /// Stays until answered.
    pub query: Signal<In, PteQuery>,
    pub query_valid: Signal<In, Bit>,
    /// The next query may come.
    pub ready: Signal<Out, Bit>,
    pub answer: Signal<Out, MrResp>,
    pub answer_port: Signal<Out, Bit>,
    pub answer_valid: Signal<Out, Bit>,
    pub answer_ready: Signal<In, Bit>,
    /// The answer is a refusal.
    pub refused: Signal<Out, Bit>,
    /// A cycle late: it holds nothing from before the last `invalidate`, and nothing that was asked for before is under way.
    pub clean: Signal<Out, Bit>,
    /// Pulses: a query waits for its line, a line that nobody has asked for is fetched.
    pub miss: Signal<Out, Bit>,
    pub early: Signal<Out, Bit>,
    pub m_rd: MsgSrc<RdCmd>,
    pub s_rd: MsgSink<RdRow>,
    ways: [Way; 2],
    /// One for each port of the key unit.
    ahead: [Ahead; 2],
    state: DFF<State>,
    sweep: DFF<Bits<9>>,
    /// An invalidation arrived and waits for the fetches in progress.
    stale: DFF<Bit>,
    /// Where the query's line stands, and where it goes if it is not there.
    e_addr: DFF<Bits<64>>,
    e_slot: DFF<Bits<9>>,
    e_way: DFF<Bit>,
    /// Way of the next line that displaces another.
    turn: DFF<Bit>,
    emptied: DFF<Bit>,
    /// The row that has come last. `landed`: in this cycle it goes to the slot of the one who fetched it
    /// (`whose`: 0 query, 1, 2 `ahead`), unless it is `lost`.
    fill: DFF<Bits<512>>,
    fill_err: DFF<Bit>,
    landed: DFF<Bit>,
    lost: DFF<Bit>,
    whose: DFF<Bits<2>>,
    /// It is used instead of the slot, for the query that missed.
    filled: DFF<Bit>,
    /// The query of the cycle before is refused anyway.
    outside: DFF<Bit>,
    hit: Signal<Local, Bit>,
    needs: Signal<Local, Bit>,
    done: Signal<Local, Bit>,
    stop: Signal<Local, Bit>,
    own: Signal<Local, Tag>,
    hint: Signal<Local, Hint>,
    new_tag: Signal<Local, Tag>,
    new_slot: Signal<Local, Bits<9>>,
    index: Signal<Local, Bits<16>>,
    line: Signal<Local, Bits<49>>,
    slot: Signal<Local, Bits<9>>,
    e_page: Signal<Local, Bits<52>>,
    entry: Signal<Local, Bits<3>>,
    spare: Signal<Local, Bit>,
    past: Signal<Local, Bit>,
    answered: Signal<Local, Bit>,
    victim: Signal<Local, Bit>,
    keep: Signal<Local, Bit>,
    tag: Signal<Local, Bits<2>>,
    /// The query's line has been fetched ahead, and is here.
    arrives: Signal<Local, Bit>,
    way: Signal<Local, Bit>,
    store: Signal<Local, Bit>,
    select: Signal<Local, Bits<9>>,
    pte: Signal<Local, Bits<64>>,
    frame: Signal<Local, Bits<64>>,
    in_page: Signal<Local, Bits<30>>,
}

#[kernel]
impl Logic for PteCache {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, sweep, stale, outside, e_addr, e_slot, e_way, turn, fill, fill_err, landed, lost, whose, filled, emptied);
        self.clean.next = self.emptied.q.val();
        self.emptied.d.next = !self.invalidate.val() & !self.stale.q.val() & !(self.state.q.val() == State::Sweep);
        self.e_page.next = self.query.val().page;
        self.entry.next = self.e_page.val().get_bits::<3>(0);
        self.own.next.valid = true;
        self.own.next.index = self.query.val().index;
        self.own.next.life = self.query.val().life;
        self.own.next.line = self.e_page.val().get_bits::<49>(3);
        self.needs.next = (self.query.val().status == bits::<3>(0)) & !self.query.val().direct;
        self.hit.next = self.ways[0].hit.val() | self.ways[1].hit.val();
        self.done.next = self.query_valid.val() & (self.state.q.val() == State::Run) & (!self.needs.val() | self.hit.val() | self.filled.q.val());
        self.answer_valid.next = self.done.val();
        self.answer_port.next = self.query.val().port;
        self.answered.next = self.done.val() & self.answer_ready.val();
        self.ready.next = (self.state.q.val() == State::Run) & !self.stale.q.val() & !self.landed.q.val() & (!self.query_valid.val() | self.answered.val());

        // Look-up: neighbouring regions start in different slots. A cycle without a query is good for a look ahead, if none will be offering a read.
        self.spare.next = self.ready.val() & !self.look_valid.val() & !self.ahead[0].ask.val() & !self.ahead[0].probing.val() & !self.ahead[1].ask.val() & !self.ahead[1].probing.val();
        self.ahead[0].looked.next = self.spare.val() & self.ahead[0].look.val();
        self.ahead[1].looked.next = self.spare.val() & self.ahead[1].look.val() & !self.ahead[0].look.val();
        self.line.next = self.look_page.val().get_bits::<49>(3);
        self.index.next = self.look_index.val();
        if !self.look_valid.val() {
            self.line.next = self.ahead[1].want.val().line;
            self.index.next = self.ahead[1].want.val().index;
            if self.ahead[0].look.val() {
                self.line.next = self.ahead[0].want.val().line;
                self.index.next = self.ahead[0].want.val().index;
            }
        }
        self.slot.next = self.line.val().get_bits::<9>(0) ^ (bit_cast::<9, 16>(self.index.val()) << 5) ^ bit_cast::<9, 16>(self.index.val() >> 4);
        // An empty way first.
        self.victim.next = self.turn.q.val() | !self.ways[1].tag.val().valid;
        if !self.ways[0].tag.val().valid {
            self.victim.next = false;
        }

        // Behind the first two pages of a line the next one is worth a look; the line of large pages lasts.
        self.past.next = self.answered.val() & self.needs.val() & !self.query.val().page_size.any() & (self.query.val().page.get_bit(1) | self.query.val().page.get_bit(2));
        self.ahead[0].hint_valid.next = self.past.val() & !self.query.val().port;
        self.ahead[1].hint_valid.next = self.past.val() & self.query.val().port;
        self.hint.next.function = self.query.val().function;
        self.hint.next.own = self.own.val();
        self.hint.next.addr = self.query.val().addr;
        self.hint.next.entry = self.entry.val();
        self.in_page.next = self.query.val().va_low;
        self.hint.next.va_low = self.in_page.val().get_bits::<12>(0);
        self.hint.next.rem = self.query.val().rem;
        self.hint.next.short = self.query.val().short;
        self.stop.next = self.stale.q.val() | self.invalidate.val();
        for i in 0..2 {
            self.ways[i].clock.next = self.clock.val();
            self.ways[i].read_en.next = self.ready.val();
            self.ways[i].slot.next = self.slot.val();
            self.ways[i].own.next = self.own.val();
            self.ways[i].entry.next = self.entry.val();
            self.ahead[i].clock.next = self.clock.val();
            self.ahead[i].reset.next = self.reset.val();
            self.ahead[i].hint.next = self.hint.val();
            self.ahead[i].outside.next = self.outside.q.val();
            self.ahead[i].stop.next = self.stop.val();
            self.ahead[i].look_slot.next = self.slot.val();
            self.ahead[i].victim.next = self.victim.val();
            self.ahead[i].own.next = self.own.val();
            self.ahead[i].first.next = self.ways[0].tag.val();
            self.ahead[i].second.next = self.ways[1].tag.val();
        }
        self.ahead[0].asked.next = self.m_rd.ready.val();
        self.ahead[1].asked.next = self.m_rd.ready.val();
        self.ahead[0].landed.next = self.landed.q.val() & self.whose.q.val().get_bit(0);
        self.ahead[1].landed.next = self.landed.q.val() & self.whose.q.val().get_bit(1);
        self.early.next = (self.ahead[0].ask.val() | self.ahead[1].ask.val()) & self.m_rd.ready.val();

        // The chosen entry: of the row that has just come, or of the way that holds the line.
        self.select.next = bit_cast::<9, 3>(self.entry.val()) << 6;
        self.pte.next = self.ways[0].pte.val();
        if self.ways[1].hit.val() {
            self.pte.next = self.ways[1].pte.val();
        }
        if self.filled.q.val() {
            self.pte.next = self.fill.q.val().get_bits::<64>(self.select.val().index());
        }
        // Bits 11:0 of an entry are flags, its page number is already in place.
        self.frame.next = (self.pte.val() >> 12) << 12;
        if self.query.val().page_size.get_bit(0) {
            self.frame.next = (self.pte.val() >> 21) << 21;
        }
        if self.query.val().page_size.get_bit(1) {
            self.frame.next = (self.pte.val() >> 30) << 30;
        }
        self.answer.next.status = self.query.val().status;
        self.answer.next.iova = self.frame.val() | bit_cast::<64, 30>(self.in_page.val());
        if self.query.val().direct {
            self.answer.next.iova = self.query.val().addr;
        }
        if (self.query.val().status == bits::<3>(0)) & self.query.val().out_of_bounds {
            self.answer.next.status = bits::<3>(key_status::BOUNDS);
        } else if self.needs.val() {
            if self.filled.q.val() & self.fill_err.q.val() {
                self.answer.next.status = bits::<3>(key_status::FETCH);
            } else if !self.pte.val().get_bit(0) {
                self.answer.next.status = bits::<3>(key_status::PAGE);
            }
        }
        self.refused.next = self.query.val().status.any() | self.query.val().out_of_bounds | (self.needs.val() & !self.pte.val().get_bit(0));

        if self.ready.val() {
            self.e_slot.d.next = self.slot.val();
        }
        if self.ready.val() | self.answered.val() {
            self.filled.d.next = false;
        }

        // Too late for the decision to miss, in time to ask for nothing.
        self.outside.d.next = self.query.val().out_of_bounds;
        self.miss.next = false;
        self.m_rd.valid.next = self.ahead[0].ask.val() | self.ahead[1].ask.val();
        self.m_rd.data.next.rows = bits::<4>(1);
        // The query has stood there since the cycle before.
        self.e_addr.d.next = self.query.val().addr;
        self.m_rd.data.next.iova = self.e_addr.q.val();
        self.m_rd.data.next.function = self.query.val().function;
        self.m_rd.data.next.tag = bits::<8>(0);
        if self.ahead[0].ask.val() {
            self.m_rd.data.next.iova = self.ahead[0].addr.val();
            self.m_rd.data.next.function = self.ahead[0].owner.val();
            self.m_rd.data.next.tag = bits::<8>(AHEAD_0);
        }
        if self.ahead[1].ask.val() {
            self.m_rd.data.next.iova = self.ahead[1].addr.val();
            self.m_rd.data.next.function = self.ahead[1].owner.val();
            self.m_rd.data.next.tag = bits::<8>(AHEAD_1);
        }

        // A row is taken in one cycle and stored in the next, in which nobody looks. One that a query waits for to be answered is kept: what is
        // fetched ahead meanwhile is lost.
        self.s_rd.ready.next = true;
        self.arrives.next =
            (self.state.q.val() == State::Ask) & self.landed.q.val() & ((self.ahead[0].joined.val() & self.whose.q.val().get_bit(0)) | (self.ahead[1].joined.val() & self.whose.q.val().get_bit(1)));
        self.keep.next = self.filled.q.val() | self.arrives.val();
        self.tag.next = bit_cast::<2, 8>(self.s_rd.data.val().tag);
        self.landed.d.next = self.s_rd.valid.val();
        self.lost.d.next = self.s_rd.data.val().err | self.keep.val();
        self.whose.d.next = self.tag.val();
        if self.s_rd.valid.val() & !self.keep.val() {
            self.fill.d.next = self.s_rd.data.val().data;
            self.fill_err.d.next = self.s_rd.data.val().err;
        }
        // A failed fetch leaves the slot alone: its tag still speaks of what is in it.
        self.store.next = self.landed.q.val() & !self.lost.q.val();
        if self.store.val() {
            self.turn.d.next = !self.turn.q.val();
        }
        self.way.next = self.e_way.q.val();
        if self.whose.q.val().get_bit(0) {
            self.way.next = self.ahead[0].way.val();
        }
        if self.whose.q.val().get_bit(1) {
            self.way.next = self.ahead[1].way.val();
        }
        self.new_tag.next = self.own.val();
        self.new_slot.next = self.e_slot.q.val();
        if self.whose.q.val().get_bit(0) {
            self.new_tag.next = self.ahead[0].want.val();
            self.new_slot.next = self.ahead[0].slot.val();
        }
        if self.whose.q.val().get_bit(1) {
            self.new_tag.next = self.ahead[1].want.val();
            self.new_slot.next = self.ahead[1].slot.val();
        }
        self.ways[0].write_en.next = self.store.val() & !self.way.val();
        self.ways[1].write_en.next = self.store.val() & self.way.val();
        if self.state.q.val() == State::Sweep {
            self.ways[0].write_en.next = true;
            self.ways[1].write_en.next = true;
            self.new_slot.next = self.sweep.q.val();
            self.new_tag.next.valid = false;
        }
        for i in 0..2 {
            self.ways[i].new_line.next = self.fill.q.val();
            self.ways[i].new_tag.next = self.new_tag.val();
            self.ways[i].write_slot.next = self.new_slot.val();
        }
        if self.invalidate.val() {
            self.stale.d.next = true;
        }
        match self.state.q.val() {
            State::Sweep => {
                self.sweep.d.next = self.sweep.q.val() + 1;
                if self.sweep.q.val().all() {
                    self.state.d.next = State::Run;
                }
            }
            State::Run => {
                self.e_way.d.next = self.victim.val();
                if self.query_valid.val() & self.needs.val() & !self.hit.val() & !self.filled.q.val() {
                    self.state.d.next = State::Ask;
                } else if self.stale.q.val() & !self.query_valid.val() & !self.ahead[0].fetching.val() & !self.ahead[1].fetching.val() & !self.landed.q.val() {
                    // Queries in front wait; the one answered last used what was valid when it was asked.
                    self.stale.d.next = self.invalidate.val();
                    self.state.d.next = State::Sweep;
                }
            }
            State::Ask => {
                if self.outside.q.val() {
                    self.filled.d.next = true;
                    self.state.d.next = State::Run;
                } else if self.ahead[0].joined.val() | self.ahead[1].joined.val() {
                    // It is on its way.
                    if self.arrives.val() {
                        self.miss.next = true;
                        self.filled.d.next = true;
                        self.state.d.next = State::Run;
                    }
                } else if !self.ahead[0].ask.val() & !self.ahead[1].ask.val() {
                    self.m_rd.valid.next = true;
                    self.miss.next = self.m_rd.ready.val();
                    if self.m_rd.ready.val() {
                        self.state.d.next = State::Wait;
                    }
                }
            }
            State::Wait => {
                if self.s_rd.valid.val() & !self.tag.val().any() {
                    self.filled.d.next = true;
                    self.state.d.next = State::Run;
                }
            }
            _ => {
                self.state.d.next = State::Sweep;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Sweep;
            self.sweep.d.next = bits::<9>(0);
            self.landed.d.next = false;
            self.stale.d.next = false;
            self.filled.d.next = false;
        }
    }
}
