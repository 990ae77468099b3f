//! Page-table cache: two ways of 2^`LX` slots, one 64-byte page-table line (8 entries) per slot. A line that is not there is fetched, and
//! look-ups go on meanwhile: up to 2^`LO` lines are on their way at once.

use super::ahead::{Ahead, Hint};
use super::answers::Answers;
use super::misses::Misses;
use super::way::{Tag, Way, LINE_BITS};
use crate::bus::{MsgSink, MsgSrc};
use crate::codes::key_status;
use crate::msg::{MrResp, RdCmd, RdRow};
use crate::prim::ram::RamAsync;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// A place among the answers is named by its number and lap, and the port in the bit above.
const PORT_BIT: usize = 6;
const PORT_1: u64 = 1 << PORT_BIT;

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

/// What a query needs of its line.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Wanted {
    entry: Bits<3>,
    page_size: Bits<2>,
    va_low: Bits<30>,
    /// It is refused: it waits for its line like any other, since bounds are known too late to decide that.
    outside: Bit,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// Every slot is being emptied.
    Sweep,
    Run,
    /// The query's line is not there.
    Ask,
}

/// Look-up and answer: the slot is read one cycle before its query stands at `query`. `ready` moves the stages in front.
#[derive(LogicBlock, BlockDefault)]
#[demand((6..=14).contains(&LX), "a line's place has 6 to 14 bits")]
pub struct PteCache<const LX: usize, const LO: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub invalidate: Signal<In, Bit>,
    /// What will be the query after the next `ready`.
    pub look_page: Signal<In, Bits<52>>,
    pub look_index: Signal<In, Bits<16>>,
    pub look_valid: Signal<In, Bit>,
    /// Stays until it has been taken.
    pub query: Signal<In, PteQuery>,
    pub query_valid: Signal<In, Bit>,
    pub took: Signal<Out, Bit>,
    /// The next query may come.
    pub ready: Signal<Out, Bit>,
    pub m_resp: [MsgSrc<MrResp>; 2],
    /// Pulses, a cycle late: a query is answered, by a refusal.
    pub answered: Signal<Out, Bit>,
    pub refused: Signal<Out, Bit>,
    /// A cycle late: it holds nothing from before the last `invalidate`, and nothing that was asked for before is under way.
    pub clean: Signal<Out, Bit>,
    /// Pulses: a query waits for its line, a line that nobody has asked for is fetched.
    pub miss: Signal<Out, Bit>,
    pub early: Signal<Out, Bit>,
    pub m_rd: MsgSrc<RdCmd>,
    pub s_rd: MsgSink<RdRow>,
    ways: [Way<LX>; 2],
    ahead: Ahead<LX>,
    misses: Misses<LO>,
    /// Of either port.
    answers: [Answers; 2],
    /// By the port and the number of a query's place among the answers.
    wanted: RamAsync<Wanted, 6>,
    state: DFF<State>,
    sweep: DFF<Bits<LX>>,
    /// The first sweep since a reset.
    fresh: DFF<Bit>,
    /// An invalidation ends a round. The slots are emptied when the count wraps.
    round: DFF<Bits<6>>,
    /// An invalidation arrived and waits for the fetches in progress.
    stale: DFF<Bit>,
    /// Where the query's line stands, and its slot.
    e_addr: DFF<Bits<64>>,
    e_slot: DFF<Bits<LX>>,
    /// Way of the next line that displaces another.
    turn: DFF<Bit>,
    emptied: DFF<Bit>,
    /// The query is refused, whether its line is there or not.
    barred: DFF<Bit>,
    /// The query of the cycle before is refused anyway.
    outside: DFF<Bit>,
    answers_q: DFF<Bit>,
    refuses_q: DFF<Bit>,
    answers_one: Signal<Local, Bit>,
    hit: Signal<Local, Bit>,
    awaits: Signal<Local, Bit>,
    needs: Signal<Local, Bit>,
    accepts: Signal<Local, Bit>,
    waits: Signal<Local, Bit>,
    asks: Signal<Local, Bit>,
    begins: Signal<Local, Bit>,
    own: Signal<Local, Tag>,
    hint: Signal<Local, Hint>,
    /// Of a read that begins; of what is written.
    begun: Signal<Local, Tag>,
    begun_slot: Signal<Local, Bits<LX>>,
    new_tag: Signal<Local, Tag>,
    new_slot: Signal<Local, Bits<LX>>,
    new_way: Signal<Local, Bit>,
    tag_en: Signal<Local, Bit>,
    index: Signal<Local, Bits<16>>,
    line: Signal<Local, Bits<49>>,
    hash: Signal<Local, Bits<LX>>,
    slot: Signal<Local, Bits<LX>>,
    again: Signal<Local, Bit>,
    entry: Signal<Local, Bits<3>>,
    page: Signal<Local, Bits<52>>,
    page_line: Signal<Local, Bits<49>>,
    near: Signal<Local, Bits<49>>,
    #[init(Constant::new((LX as u64).into()))]
    slot_bits: Constant<Bits<6>>,
    /// The query's line cannot be cached.
    far: Signal<Local, Bit>,
    in_page: Signal<Local, Bits<30>>,
    spare: Signal<Local, Bit>,
    past: Signal<Local, Bit>,
    victim: Signal<Local, Bit>,
    keeps: Signal<Local, Bit>,
    place: Signal<Local, Bits<7>>,
    at: Signal<Local, Bits<7>>,
    writes_at: Signal<Local, Bits<7>>,
    room: Signal<Local, Bit>,
    sweep_low: Signal<Local, Bits<5>>,
    want: Signal<Local, Wanted>,
    row: Signal<Local, Bits<512>>,
    page_size: Signal<Local, Bits<2>>,
    va_low: Signal<Local, Bits<30>>,
    select: Signal<Local, Bits<9>>,
    pte: Signal<Local, Bits<64>>,
    frame: Signal<Local, Bits<64>>,
    answer: Signal<Local, MrResp>,
    status: Signal<Local, Bits<3>>,
}

#[kernel]
impl<const LX: usize, const LO: usize> Logic for PteCache<LX, LO> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, sweep, fresh, round, stale, e_addr, e_slot, turn, emptied, barred, outside, answers_q, refuses_q);
        clock!(self, clock, ahead, misses, wanted);
        self.misses.reset.next = self.reset.val();
        self.ahead.reset.next = self.reset.val();
        MsgSrc::<RdCmd>::link(&mut self.m_rd, &mut self.misses.m_rd);
        MsgSink::<RdRow>::link(&mut self.s_rd, &mut self.misses.s_rd);
        for i in 0..2 {
            self.answers[i].clock.next = self.clock.val();
            self.answers[i].reset.next = self.reset.val();
            MsgSrc::<MrResp>::link(&mut self.m_resp[i], &mut self.answers[i].m);
        }
        self.clean.next = self.emptied.q.val();
        self.emptied.d.next = !self.invalidate.val() & !self.stale.q.val();
        self.page.next = self.query.val().page;
        self.entry.next = self.page.val().get_bits::<3>(0);
        self.in_page.next = self.query.val().va_low;
        self.own.next.valid = true;
        self.own.next.pending = true;
        self.own.next.read = self.misses.id.val();
        self.own.next.round = self.round.q.val();
        self.own.next.index = self.query.val().index;
        self.own.next.life = self.query.val().life;
        self.page_line.next = self.page.val().get_bits::<49>(3);
        self.near.next = bit_cast::<49, 29>(self.page_line.val().get_bits::<29>(0));
        self.own.next.line = self.near.val().get_bits::<23>(self.slot_bits.val().index());
        self.far.next = self.page_line.val().get_bits::<20>(LINE_BITS).any();

        // The query at hand. While a row is being stored and used it stays, and its slot is read again: the row may be its line.
        self.place.next = bit_cast::<7, 6>(self.answers[0].place.val());
        self.room.next = self.answers[0].room.val();
        if self.query.val().port {
            self.place.next = bit_cast::<7, 6>(self.answers[1].place.val()) | bits::<7>(PORT_1);
            self.room.next = self.answers[1].room.val();
        }
        self.needs.next = (self.query.val().status == bits::<3>(0)) & !self.query.val().direct;
        self.hit.next = (self.ways[0].hit.val() | self.ways[1].hit.val()) & !self.far.val();
        self.awaits.next = (self.ways[0].hit.val() & self.ways[0].tag.val().pending) | (self.ways[1].hit.val() & self.ways[1].tag.val().pending);
        self.accepts.next = self.query_valid.val() & (self.state.q.val() == State::Run) & !self.misses.busy.val() & self.room.val() & (!self.needs.val() | self.hit.val() | self.barred.q.val());
        self.waits.next = self.accepts.val() & self.needs.val() & self.awaits.val() & !self.barred.q.val();
        self.asks.next = (self.state.q.val() == State::Ask) & !self.misses.busy.val() & self.misses.room.val() & !self.outside.q.val();
        self.took.next = self.accepts.val() | self.asks.val();
        self.ready.next = (self.state.q.val() == State::Run) & !self.stale.q.val() & !self.misses.busy.val() & !self.ahead.probing.val() & (!self.query_valid.val() | self.accepts.val());
        self.again.next = self.misses.busy.val() & self.query_valid.val();

        // Look-up: neighbouring regions start in different slots. A cycle without a query is good for a look ahead.
        self.spare.next = self.ready.val() & !self.look_valid.val();
        self.ahead.looked.next = self.spare.val() & self.ahead.look.val();
        self.line.next = self.look_page.val().get_bits::<49>(3);
        self.index.next = self.look_index.val();
        if !self.look_valid.val() {
            self.line.next = self.ahead.line.val();
            self.index.next = self.ahead.want.val().index;
        }
        self.hash.next = (bit_cast::<LX, 16>(self.index.val()) << 5) ^ bit_cast::<LX, 16>(self.index.val() >> 4);
        self.slot.next = self.line.val().get_bits::<LX>(0) ^ self.hash.val();
        if self.again.val() {
            self.slot.next = self.e_slot.q.val();
        }
        if self.ready.val() {
            self.e_slot.d.next = self.slot.val();
        }

        // A new line goes to an empty way, else they take turns; one that waits for its own line stays. A line that finds both waiting has no slot.
        self.keeps.next = !(self.ways[0].awaits.val() & self.ways[1].awaits.val()) & (self.ahead.probing.val() | !self.far.val());
        self.victim.next = (self.turn.q.val() | self.ways[0].awaits.val() | !self.ways[1].live.val()) & !self.ways[1].awaits.val();
        if !self.ways[0].live.val() {
            self.victim.next = false;
        }

        // Behind the first two pages of a line the next one is worth a look, not for who has gone where nobody was; the line of large pages lasts.
        self.past.next = self.accepts.val() & self.needs.val() & !self.query.val().page_size.any() & (self.query.val().page.get_bit(1) | self.query.val().page.get_bit(2));
        self.ahead.hint_valid.next = self.past.val();
        self.hint.next.function = self.query.val().function;
        self.hint.next.index = self.query.val().index;
        self.hint.next.life = self.query.val().life;
        self.hint.next.line = self.page_line.val();
        self.hint.next.addr = self.query.val().addr;
        self.hint.next.entry = self.entry.val();
        self.hint.next.va_low = self.in_page.val().get_bits::<12>(0);
        self.hint.next.rem = self.query.val().rem;
        self.hint.next.short = self.query.val().short;
        self.ahead.hint.next = self.hint.val();
        self.ahead.outside.next = self.outside.q.val();
        // What begins in the cycle of an invalidation is waited for as all that is under way.
        self.ahead.stop.next = self.stale.q.val();
        self.ahead.look_slot.next = self.slot.val();
        self.ahead.first.next = self.ways[0].tag.val();
        self.ahead.second.next = self.ways[1].tag.val();
        self.ahead.live.next = bit_cast::<2, 1>(self.ways[0].live.val().into()) | (bit_cast::<2, 1>(self.ways[1].live.val().into()) << 1);
        self.ahead.busy.next = self.misses.busy.val();
        self.ahead.room.next = self.misses.room.val() & self.misses.few.val();
        self.early.next = self.ahead.fetch.val();

        // A read begins. The query has stood there since the cycle before.
        self.e_addr.d.next = self.query.val().addr;
        self.begins.next = self.asks.val() | self.ahead.fetch.val();
        self.misses.ask.next = self.begins.val();
        self.misses.owner.next = self.query.val().function;
        self.misses.addr.next = self.e_addr.q.val();
        self.begun.next = self.own.val();
        self.begun_slot.next = self.e_slot.q.val();
        if self.ahead.probing.val() {
            self.misses.owner.next = self.ahead.owner.val();
            self.misses.addr.next = self.ahead.addr.val();
            self.begun.next.index = self.ahead.want.val().index;
            self.begun.next.life = self.ahead.want.val().life;
            self.begun.next.line = self.ahead.want.val().line;
            self.begun_slot.next = self.ahead.slot.val();
        }
        self.misses.waited.next = !self.ahead.probing.val();
        self.misses.goes.next.kept = self.keeps.val();
        self.misses.goes.next.way = self.victim.val();
        self.misses.goes.next.slot = bit_cast::<14, LX>(self.begun_slot.val());
        self.misses.goes.next.index = self.begun.val().index;
        self.misses.goes.next.life = self.begun.val().life;
        self.misses.goes.next.line = self.begun.val().line;
        self.miss.next = self.waits.val() | self.asks.val();
        self.misses.joins.next = self.waits.val();
        self.misses.joins_id.next = self.ways[0].tag.val().read;
        if self.ways[1].hit.val() {
            self.misses.joins_id.next = self.ways[1].tag.val().read;
        }
        if self.begins.val() {
            self.turn.d.next = !self.turn.q.val();
        }

        // Tags: of a line that is on its way, that has come, that could not be read.
        self.new_tag.next = self.begun.val();
        self.new_slot.next = self.begun_slot.val();
        self.new_way.next = self.victim.val();
        self.tag_en.next = self.begins.val() & self.keeps.val();
        if self.misses.busy.val() {
            self.new_tag.next.valid = !self.misses.failed.val();
            self.new_tag.next.pending = false;
            self.new_tag.next.index = self.misses.home.val().index;
            self.new_tag.next.life = self.misses.home.val().life;
            self.new_tag.next.line = self.misses.home.val().line;
            self.new_slot.next = bit_cast::<LX, 14>(self.misses.home.val().slot);
            self.new_way.next = self.misses.home.val().way;
            self.tag_en.next = self.misses.store.val();
        }
        if self.state.q.val() == State::Sweep {
            self.new_tag.next.valid = false;
            self.new_slot.next = self.sweep.q.val();
        }
        for i in 0..2 {
            self.ways[i].clock.next = self.clock.val();
            self.ways[i].read_en.next = self.ready.val() | self.again.val();
            self.ways[i].slot.next = self.slot.val();
            self.ways[i].own.next = self.own.val();
            self.ways[i].entry.next = self.entry.val();
            self.ways[i].new_line.next = self.misses.row.val();
            self.ways[i].new_tag.next = self.new_tag.val();
            self.ways[i].write_slot.next = self.new_slot.val();
        }
        self.ways[0].tag_en.next = (self.tag_en.val() & !self.new_way.val()) | (self.state.q.val() == State::Sweep);
        self.ways[1].tag_en.next = (self.tag_en.val() & self.new_way.val()) | (self.state.q.val() == State::Sweep);
        self.ways[0].line_en.next = self.misses.store.val() & !self.misses.failed.val() & !self.new_way.val();
        self.ways[1].line_en.next = self.misses.store.val() & !self.misses.failed.val() & self.new_way.val();

        // Every query that is taken has a place among the answers; it is answered now, or by the row it waits for.
        self.misses.waiter.next = self.place.val();
        self.at.next = self.misses.woken.val();
        self.writes_at.next = self.place.val();
        if self.misses.busy.val() {
            self.writes_at.next = self.misses.woken.val();
        }
        self.wanted.write_en.next = self.took.val();
        self.wanted.write_addr.next = bit_cast::<6, 5>(self.place.val().get_bits::<5>(0)) | (bit_cast::<6, 7>(self.place.val() >> PORT_BIT) << 5);
        self.wanted.write_data.next.entry = self.entry.val();
        self.wanted.write_data.next.page_size = self.query.val().page_size;
        self.wanted.write_data.next.va_low = self.query.val().va_low;
        self.wanted.write_data.next.outside = self.query.val().out_of_bounds;
        self.wanted.read_addr.next = bit_cast::<6, 5>(self.at.val().get_bits::<5>(0)) | (bit_cast::<6, 7>(self.at.val() >> PORT_BIT) << 5);
        self.want.next = self.wanted.read_data.val();

        // The chosen entry: of the row that has just come, or of the way that holds the line.
        self.select.next = bit_cast::<9, 3>(self.want.val().entry) << 6;
        self.pte.next = self.ways[0].pte.val();
        if self.ways[1].hit.val() {
            self.pte.next = self.ways[1].pte.val();
        }
        self.row.next = self.misses.row.val();
        self.page_size.next = self.query.val().page_size;
        self.va_low.next = self.query.val().va_low;
        if self.misses.busy.val() {
            self.pte.next = self.row.val().get_bits::<64>(self.select.val().index());
            self.page_size.next = self.want.val().page_size;
            self.va_low.next = self.want.val().va_low;
        }
        // Bits 11:0 of an entry are flags, its page number is already in place.
        self.frame.next = (self.pte.val() >> 12) << 12;
        if self.page_size.val().get_bit(0) {
            self.frame.next = (self.pte.val() >> 21) << 21;
        }
        if self.page_size.val().get_bit(1) {
            self.frame.next = (self.pte.val() >> 30) << 30;
        }
        self.answer.next.iova = self.frame.val() | bit_cast::<64, 30>(self.va_low.val());
        self.status.next = bits::<3>(0);
        if self.misses.busy.val() & self.want.val().outside {
            self.status.next = bits::<3>(key_status::BOUNDS);
        } else if self.misses.busy.val() & self.misses.failed.val() {
            self.status.next = bits::<3>(key_status::FETCH);
        } else if !self.pte.val().get_bit(0) {
            self.status.next = bits::<3>(key_status::PAGE);
        }
        if !self.misses.busy.val() {
            if self.query.val().direct {
                self.answer.next.iova = self.query.val().addr;
                self.status.next = bits::<3>(0);
            }
            if self.query.val().out_of_bounds {
                self.status.next = bits::<3>(key_status::BOUNDS);
            }
            if self.query.val().status.any() {
                self.status.next = self.query.val().status;
            }
        }
        self.answer.next.status = self.status.val();
        self.answers_one.next = (self.accepts.val() & !self.waits.val()) | self.misses.wake.val();
        self.answers_q.d.next = self.answers_one.val();
        self.refuses_q.d.next = self.answers_one.val() & self.status.val().any();
        self.answered.next = self.answers_q.q.val();
        self.refused.next = self.refuses_q.q.val();
        self.sweep_low.next = self.sweep.q.val().get_bits::<5>(0);
        self.answers[0].take.next = self.took.val() & !self.query.val().port;
        self.answers[1].take.next = self.took.val() & self.query.val().port;
        self.answers[0].write.next = self.answers_one.val() & !self.writes_at.val().get_bit(PORT_BIT);
        self.answers[1].write.next = self.answers_one.val() & self.writes_at.val().get_bit(PORT_BIT);
        for i in 0..2 {
            self.answers[i].clear.next = (self.state.q.val() == State::Sweep) & self.fresh.q.val();
            self.answers[i].clear_at.next = self.sweep_low.val();
            self.answers[i].at.next = self.writes_at.val().get_bits::<6>(0);
            self.answers[i].answer.next = self.answer.val();
        }

        // Too late for the decision to miss, in time to ask for nothing.
        self.outside.d.next = self.query.val().out_of_bounds;
        if self.took.val() {
            self.barred.d.next = false;
        }
        if self.invalidate.val() {
            self.stale.d.next = true;
        }
        match self.state.q.val() {
            State::Sweep => {
                self.sweep.d.next = self.sweep.q.val() + 1;
                if self.sweep.q.val().all() {
                    self.fresh.d.next = false;
                    self.state.d.next = State::Run;
                }
            }
            State::Run => {
                if self.query_valid.val() & !self.misses.busy.val() & self.room.val() & self.needs.val() & !self.hit.val() & !self.barred.q.val() {
                    self.state.d.next = State::Ask;
                } else if self.stale.q.val() & !self.query_valid.val() & !self.ahead.probing.val() & self.misses.none.val() {
                    // Queries in front wait; the one answered last used what was valid when it was asked.
                    self.stale.d.next = self.invalidate.val();
                    self.round.d.next = self.round.q.val() + 1;
                    if self.round.q.val().all() {
                        self.state.d.next = State::Sweep;
                    }
                }
            }
            State::Ask => {
                if self.outside.q.val() {
                    self.barred.d.next = true;
                    self.state.d.next = State::Run;
                } else if self.asks.val() | self.misses.busy.val() {
                    // Taken; or a row comes, and what is in the slot is judged once more.
                    self.state.d.next = State::Run;
                }
            }
            _ => {
                self.state.d.next = State::Sweep;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Sweep;
            self.sweep.d.next = bits::<LX>(0);
            self.fresh.d.next = true;
            self.round.d.next = bits::<6>(0);
            self.stale.d.next = false;
            self.barred.d.next = false;
        }
    }
}
