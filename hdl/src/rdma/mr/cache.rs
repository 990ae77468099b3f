//! Page-table cache: direct mapped, one 64-byte page-table line (8 entries) per slot.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{MrResp, RdCmd, RdRow};
use crate::prim::ram::RamHold;
use rust_hdl::prelude::*;

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
    /// Of the region: what it translated before its last registration is not what it translates.
    pub life: Bits<8>,
    pub va_low: Bits<12>,
    pub page: Bits<52>,
    pub addr: Bits<64>,
}

/// Which line a slot holds.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Tag {
    pub valid: Bit,
    pub index: Bits<16>,
    pub life: Bits<8>,
    pub line: Bits<49>,
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
    /// Pulse: a line is fetched.
    pub miss: Signal<Out, Bit>,
    pub m_rd: MsgSrc<RdCmd>,
    pub s_rd: MsgSink<RdRow>,
    tags: RamHold<Tag, 10>,
    lines: RamHold<Bits<512>, 10>,
    state: DFF<State>,
    sweep: DFF<Bits<10>>,
    /// An invalidation arrived and waits for the fetch in progress.
    stale: DFF<Bit>,
    e_slot: DFF<Bits<10>>,
    /// The fetched line, used instead of the RAM for the query that missed.
    fill: DFF<Bits<512>>,
    filled: DFF<Bit>,
    fill_err: DFF<Bit>,
    /// The query that missed is refused anyway.
    outside: DFF<Bit>,
    hit: Signal<Local, Bit>,
    needs: Signal<Local, Bit>,
    done: Signal<Local, Bit>,
    query_line: Signal<Local, Bits<49>>,
    mixed: Signal<Local, Bits<10>>,
    e_line: Signal<Local, Bits<49>>,
    e_page: Signal<Local, Bits<52>>,
    select: Signal<Local, Bits<9>>,
    data: Signal<Local, Bits<512>>,
    pte: Signal<Local, Bits<64>>,
    frame: Signal<Local, Bits<64>>,
}

impl Logic for PteCache {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, sweep, stale, outside, e_slot, fill, filled, fill_err);
        clock!(self, clock, tags, lines);
        // Look-up: neighbouring regions start in different slots.
        self.query_line.next = self.look_page.val().get_bits::<49>(3);
        self.mixed.next = self.query_line.val().get_bits::<10>(0)
            ^ (bit_cast::<10, 16>(self.look_index.val()) << 5)
            ^ bit_cast::<10, 16>(self.look_index.val() >> 5);
        self.tags.read_addr.next = self.mixed.val();
        self.lines.read_addr.next = self.mixed.val();

        self.e_page.next = self.query.val().page;
        self.e_line.next = self.e_page.val().get_bits::<49>(3);
        self.hit.next = self.tags.read_data.val().valid
            & (self.tags.read_data.val().line == self.e_line.val())
            & (self.tags.read_data.val().index == self.query.val().index)
            & (self.tags.read_data.val().life == self.query.val().life);
        self.needs.next = (self.query.val().status == bits::<3>(0)) & !self.query.val().direct;
        self.done.next = self.query_valid.val()
            & (self.state.q.val() == State::Run)
            & (!self.needs.val() | self.hit.val() | self.filled.q.val());
        self.answer_valid.next = self.done.val();
        self.answer_port.next = self.query.val().port;
        self.ready.next = (self.state.q.val() == State::Run)
            & !self.stale.q.val()
            & (!self.query_valid.val() | (self.done.val() & self.answer_ready.val()));

        self.data.next = self.lines.read_data.val();
        if self.filled.q.val() {
            self.data.next = self.fill.q.val();
        }
        self.select.next = bit_cast::<9, 3>(self.e_page.val().get_bits::<3>(0)) << 6;
        self.pte.next = self.data.val().get_bits::<64>(self.select.val().index());
        // Bits 11:0 of an entry are flags, its page number is already in place.
        self.frame.next = (self.pte.val() >> 12) << 12;
        self.answer.next.status = self.query.val().status;
        self.answer.next.iova = self.frame.val() | bit_cast::<64, 12>(self.query.val().va_low);
        if self.query.val().direct {
            self.answer.next.iova = self.query.val().addr;
        }
        if (self.query.val().status == bits::<3>(0)) & self.query.val().out_of_bounds {
            self.answer.next.status = bits::<3>(3);
        } else if self.needs.val() {
            if self.filled.q.val() & self.fill_err.q.val() {
                self.answer.next.status = bits::<3>(6);
            } else if !self.pte.val().get_bit(0) {
                self.answer.next.status = bits::<3>(5);
            }
        }
        self.refused.next = self.query.val().status.any() | self.query.val().out_of_bounds | (self.needs.val() & !self.pte.val().get_bit(0));

        self.tags.read_en.next = self.ready.val();
        self.lines.read_en.next = self.ready.val();
        if self.ready.val() {
            self.e_slot.d.next = self.mixed.val();
            self.filled.d.next = false;
        } else if self.done.val() & self.answer_ready.val() {
            self.filled.d.next = false;
        }

        // Too late for the decision to miss, in time to ask for nothing.
        self.outside.d.next = self.query.val().out_of_bounds;
        self.m_rd.valid.next = false;
        self.m_rd.data.next.iova = self.query.val().addr;
        self.m_rd.data.next.function = self.query.val().function;
        self.m_rd.data.next.rows = bits::<4>(1);
        self.m_rd.data.next.tag = bits::<8>(0);
        self.s_rd.ready.next = true;
        self.miss.next = false;
        self.tags.write_en.next = false;
        self.tags.write_addr.next = self.e_slot.q.val();
        self.tags.write_data.next.valid = true;
        self.tags.write_data.next.index = self.query.val().index;
        self.tags.write_data.next.life = self.query.val().life;
        self.tags.write_data.next.line = self.e_line.val();
        self.lines.write_en.next = false;
        self.lines.write_addr.next = self.e_slot.q.val();
        self.lines.write_data.next = self.s_rd.data.val().data;
        if self.invalidate.val() {
            self.stale.d.next = true;
        }
        match self.state.q.val() {
            State::Sweep => {
                self.tags.write_en.next = true;
                self.tags.write_addr.next = self.sweep.q.val();
                self.tags.write_data.next.valid = false;
                self.sweep.d.next = self.sweep.q.val() + 1;
                if self.sweep.q.val() == bits::<10>(1023) {
                    self.state.d.next = State::Run;
                }
            }
            State::Run => {
                if self.query_valid.val() & self.needs.val() & !self.hit.val() & !self.filled.q.val() {
                    self.state.d.next = State::Ask;
                } else if self.stale.q.val() & !self.query_valid.val() {
                    // Queries in front wait; the one answered last used what was valid when it was asked.
                    self.stale.d.next = self.invalidate.val();
                    self.state.d.next = State::Sweep;
                }
            }
            State::Ask => {
                self.fill_err.d.next = false;
                self.m_rd.valid.next = !self.outside.q.val();
                self.miss.next = !self.outside.q.val() & self.m_rd.ready.val();
                if self.outside.q.val() {
                    self.filled.d.next = true;
                    self.state.d.next = State::Run;
                } else if self.m_rd.ready.val() {
                    self.state.d.next = State::Wait;
                }
            }
            State::Wait => {
                self.fill.d.next = self.s_rd.data.val().data;
                self.fill_err.d.next = self.s_rd.data.val().err;
                if self.s_rd.valid.val() {
                    self.filled.d.next = true;
                    // A failed fetch leaves the slot alone: its tag still speaks of what is in it.
                    self.tags.write_en.next = !self.s_rd.data.val().err;
                    self.lines.write_en.next = !self.s_rd.data.val().err;
                    self.state.d.next = State::Run;
                }
            }
            _ => {
                self.state.d.next = State::Sweep;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Sweep;
            self.sweep.d.next = bits::<10>(0);
            self.stale.d.next = false;
            self.filled.d.next = false;
        }
    }
}
