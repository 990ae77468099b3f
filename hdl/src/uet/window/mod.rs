//! The receive half of PDCs: which PSNs have come, are done, are kept. See README.md.

#[cfg(test)]
mod tests;

use super::types::{arrival, rx_ask, RxAsk, RxTold, COUNT, LINE};
use crate::bus::{MsgSink, MsgSrc};
use crate::prim::arb::{FirstSet, OneHotToBin};
use crate::prim::popcount::PopCount;
use crate::prim::ram::Ram;
use crate::prim::sum::{Diff, LessOne, PlusOne, Sum};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[("s", &["m"])];

/// PSNs of a row, and log2 of that.
const ROW: u64 = 64;
const LG_ROW: usize = 6;
const ONE: u64 = 1;
const NONE: u64 = 0;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Open,
    Load,
    Ahead,
    Facts,
    Judge,
    /// CACK goes on, a row at a time.
    Walk,
    WalkRead,
    WalkShift,
    WalkCount,
    WalkMask,
    WalkPut,
    /// Kept answers go, a row at a time.
    Clear,
    ClearRead,
    ClearMask,
    ClearHits,
    ClearCount,
    ClearPut,
    /// The bits of a SACK, from two rows: where the first begins.
    Far,
    Low,
    LowRead,
    High,
    HighRead,
    Tell,
}

/// What is known of a PDC. PSNs from `base` on are in the rows, at the place of their low bits.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Line {
    /// PSN behind CACK.
    base: Bits<32>,
    bytes: Bits<32>,
    /// PSNs from `base` to the newest that is done.
    span: Bits<COUNT>,
    marked: Bits<COUNT>,
    held: Bits<COUNT>,
    pending: Bits<COUNT>,
    /// ROD: the gap has been told.
    told: Bit,
    /// One was refused while others were there: as long as there are any, ROD expects the oldest that is missing.
    holed: Bit,
    /// Which end of the window the last SACK showed.
    flip: Bit,
}

/// 64 PSNs: here, done, done and kept.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Row {
    taken: Bits<64>,
    done: Bits<64>,
    held: Bits<64>,
}

/// What is known of a packet, decided in Facts.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Facts {
    taken: Bit,
    done: Bit,
    held: Bit,
    behind: Bit,
    outside: Bit,
    /// Beyond what the rows hold.
    far: Bit,
    first: Bit,
    /// As many are marked as are in front of it.
    fits: Bit,
    beyond: Bit,
    /// Of CLEAR: something may be cleared.
    clears: Bit,
}

/// Windows of `2^LP` PDCs, `2^LW` PSNs each. `LR` = `LP` + `LW` - 6.
#[derive(LogicBlock, BlockDefault)]
#[demand(LW >= 7 && LW <= 9 && LP <= LINE && LR == LP + LW - LG_ROW, "7 to 9 bits of window, LR = LP + LW - 6")]
pub struct Window<const LP: usize, const LW: usize, const LR: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets the order under way. Lines begin with OPEN.
    pub reset: Signal<In, Bit>,
    /// PSNs beyond CACK that are taken: at most `2^LW`.
    pub window: Signal<In, Bits<16>>,
    pub s: MsgSink<RxAsk>,
    pub m: MsgSrc<RxTold>,
    lines: Ram<Line, LP>,
    rows: Ram<Row, LR>,
    state: DFF<State>,
    ask: DFF<RxAsk>,
    line: DFF<Line>,
    row: DFF<Row>,
    /// PSN whose row is looked at.
    at: DFF<Bits<32>>,
    ahead: DFF<Bits<32>>,
    facts: DFF<Facts>,
    told: DFF<RxTold>,
    /// PSNs that CACK has passed in this order.
    passed: DFF<Bits<COUNT>>,
    /// What may be passed, from `base` on; how many, as a number and as a mask.
    open: DFF<Bits<64>>,
    run: DFF<Bits<7>>,
    mask: DFF<Bits<64>>,
    /// PSNs still to be cleared; rows still to be emptied.
    left: DFF<Bits<COUNT>>,
    hits: DFF<Bits<64>>,
    /// Kept answers of this row that go: in a register, since counting them is deep.
    gone: DFF<Bits<COUNT>>,
    low: DFF<Bits<64>>,
    /// What `at` moves on by: in a register, so that no choice is in front of the sum.
    stride: DFF<Bits<COUNT>>,
    less: Diff<32>,
    moved: Sum<32>,
    expected: Sum<32>,
    cack: LessOne<32>,
    units: PlusOne<24>,
    first: FirstSet<64>,
    number: OneHotToBin<64, 6>,
    count: PopCount<64, 7>,
    #[init(Constant::new(((1u64 << (LW - LG_ROW)) - 1).to_bits()))]
    rows_mask: Constant<Bits<32>>,
    #[init(Constant::new(((LW - LG_ROW) as u64).to_bits()))]
    lg_rows: Constant<Bits<4>>,
    #[init(Constant::new((LW as u64).to_bits()))]
    lw: Constant<Bits<4>>,
    #[init(Constant::new((1u64 << (LW - LG_ROW)).to_bits()))]
    row_count: Constant<Bits<COUNT>>,
    #[init(Constant::new(Bits::<64>::mask()))]
    ones: Constant<Bits<64>>,
    #[init(Constant::new(ROW.to_bits()))]
    whole: Constant<Bits<7>>,
    #[init(Constant::new(ROW.to_bits()))]
    whole_row: Constant<Bits<COUNT>>,
    row_at: Signal<Local, Bits<LR>>,
    place: Signal<Local, Bits<6>>,
    only: Signal<Local, Bits<64>>,
    seen: Signal<Local, Bits<64>>,
    finished: Signal<Local, Bits<64>>,
    row_number: Signal<Local, Bits<32>>,
    beyond_rows: Signal<Local, Bits<32>>,
    new_row: Signal<Local, Row>,
    rest: Signal<Local, Bits<7>>,
    step: Signal<Local, Bits<COUNT>>,
    span: Signal<Local, Bits<COUNT>>,
    near: Signal<Local, Bits<COUNT>>,
    behind_it: Signal<Local, Bits<COUNT>>,
    ok: Signal<Local, Bit>,
    gap: Signal<Local, Bit>,
    far_end: Signal<Local, Bits<COUNT>>,
    flips: Signal<Local, Bit>,
    next_place: Signal<Local, Bits<6>>,
    high_shift: Signal<Local, Bits<7>>,
    half: Signal<Local, Bits<64>>,
}

#[kernel]
impl<const LP: usize, const LW: usize, const LR: usize> Logic for Window<LP, LW, LR> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, ask, line, row, at, ahead, facts, told, passed, open, run, mask, left, hits, gone, low, stride);
        clock!(self, clock, lines, rows);
        self.s.ready.next = false;
        self.m.valid.next = false;
        // Where the row is, and the bit in it.
        self.row_number.next = (self.at.q.val() >> 6) & self.rows_mask.val();
        self.row_at.next = (bit_cast::<LR, LINE>(self.ask.q.val().line) << self.lg_rows.val()) | bit_cast::<LR, 32>(self.row_number.val());
        self.place.next = self.at.q.val().get_bits::<6>(0);
        self.only.next = bits::<64>(ONE) << self.place.val();
        self.rows.read_addr.next = self.row_at.val();
        self.rows.write_addr.next = self.row_at.val();
        self.rows.write_en.next = false;
        self.new_row.next = self.row.q.val();
        self.lines.read_addr.next = bit_cast::<LP, LINE>(self.s.data.val().line);
        self.lines.write_addr.next = bit_cast::<LP, LINE>(self.ask.q.val().line);
        self.lines.write_data.next = self.line.q.val();
        self.lines.write_en.next = false;
        self.less.a.next = self.ask.q.val().psn;
        self.less.b.next = self.line.q.val().base;
        self.beyond_rows.next = self.ahead.q.val() >> self.lw.val();
        self.near.next = self.ahead.q.val().get_bits::<COUNT>(0);
        self.behind_it.next = self.near.val() + 1;
        self.seen.next = self.row.q.val().taken & self.only.val();
        self.finished.next = self.row.q.val().done & self.only.val();
        self.half.next = self.row.q.val().held & self.only.val();
        self.ok.next = self.facts.q.val().taken & !self.facts.q.val().done & !self.facts.q.val().behind & !self.facts.q.val().far;
        self.gap.next = self.ask.q.val().rod & !self.facts.q.val().first & (self.line.q.val().holed | !self.facts.q.val().fits);
        self.span.next = self.line.q.val().span;
        // How far CACK goes in this row.
        self.first.x.next = !self.open.q.val();
        self.number.x.next = self.first.y.val();
        self.rest.next = self.whole.val() - bit_cast::<7, 6>(self.place.val());
        self.step.next = bit_cast::<COUNT, 7>(self.rest.val());
        self.moved.a.next = self.at.q.val();
        self.moved.b.next = bit_cast::<32, COUNT>(self.stride.q.val());
        self.next_place.next = self.place.val() + self.run.q.val().get_bits::<6>(0);
        self.count.x.next = self.hits.q.val();
        self.gone.d.next = bit_cast::<COUNT, 7>(self.count.count.val());
        // The far end of the window, for every second SACK.
        self.far_end.next = bits::<COUNT>(0);
        if self.span.val() > bits::<COUNT>(ROW) {
            self.far_end.next = self.span.val() - self.whole_row.val();
        }
        self.flips.next = !self.line.q.val().flip & self.far_end.val().any();
        self.high_shift.next = self.rest.val();
        match self.state.q.val() {
            State::Idle => {
                self.s.ready.next = true;
                self.ask.d.next = self.s.data.val();
                self.at.d.next = self.s.data.val().psn;
                self.left.d.next = self.row_count.val();
                self.stride.d.next = self.whole_row.val();
                self.passed.d.next = bits::<COUNT>(0);
                if self.s.valid.val() {
                    self.state.d.next = State::Load;
                    if self.s.data.val().kind == rx_ask::OPEN {
                        self.state.d.next = State::Open;
                    }
                }
            }
            State::Open => {
                self.new_row.next.taken = bits::<64>(0);
                self.new_row.next.done = bits::<64>(0);
                self.new_row.next.held = bits::<64>(0);
                self.rows.write_en.next = true;
                self.at.d.next = self.moved.y.val();
                self.left.d.next = self.left.q.val() - 1;
                self.line.d.next.base = self.ask.q.val().psn;
                self.line.d.next.bytes = bits::<32>(0);
                self.line.d.next.span = bits::<COUNT>(0);
                self.line.d.next.marked = bits::<COUNT>(0);
                self.line.d.next.held = bits::<COUNT>(0);
                self.line.d.next.pending = bits::<COUNT>(0);
                self.line.d.next.told = false;
                self.line.d.next.holed = false;
                self.line.d.next.flip = false;
                if self.left.q.val() == bits::<COUNT>(ONE) {
                    self.state.d.next = State::Tell;
                }
            }
            State::Load => {
                self.line.d.next = self.lines.read_data.val();
                self.state.d.next = State::Ahead;
            }
            State::Ahead => {
                self.row.d.next = self.rows.read_data.val();
                self.ahead.d.next = self.less.y.val();
                self.state.d.next = State::Facts;
            }
            State::Facts => {
                self.facts.d.next.taken = self.seen.val().any();
                self.facts.d.next.done = self.finished.val().any();
                self.facts.d.next.held = self.half.val().any();
                self.facts.d.next.behind = self.ahead.q.val().get_bit(31);
                self.facts.d.next.outside = self.ahead.q.val() >= bit_cast::<32, 16>(self.window.val());
                self.facts.d.next.far = self.beyond_rows.val().any();
                self.facts.d.next.first = !self.ahead.q.val().any();
                self.facts.d.next.fits = self.ahead.q.val() == bit_cast::<32, COUNT>(self.line.q.val().marked);
                self.facts.d.next.beyond = self.near.val() > self.span.val();
                self.facts.d.next.clears = self.ahead.q.val().any() & (self.ahead.q.val() <= bit_cast::<32, COUNT>(self.span.val())) & self.line.q.val().held.any();
                self.state.d.next = State::Judge;
            }
            State::Judge => {
                self.state.d.next = State::Tell;
                self.told.d.next.first = self.facts.q.val().first;
                self.told.d.next.ok = self.ok.val();
                self.told.d.next.filled = false;
                self.told.d.next.beyond = self.facts.q.val().beyond;
                self.told.d.next.freed = bits::<COUNT>(0);
                if self.ask.q.val().kind == rx_ask::ARRIVE {
                    self.told.d.next.arrival = bits::<3>(arrival::NEW);
                    if self.facts.q.val().behind {
                        self.told.d.next.arrival = bits::<3>(arrival::OLD);
                    } else if self.facts.q.val().outside {
                        self.told.d.next.arrival = bits::<3>(arrival::OUTSIDE);
                    } else if self.facts.q.val().held {
                        self.told.d.next.arrival = bits::<3>(arrival::KEPT);
                    } else if self.facts.q.val().done {
                        self.told.d.next.arrival = bits::<3>(arrival::OLD);
                    } else if self.facts.q.val().taken {
                        self.told.d.next.arrival = bits::<3>(arrival::PENDING);
                    } else if self.gap.val() {
                        self.told.d.next.arrival = bits::<3>(arrival::GAP);
                        if !self.line.q.val().told | self.ask.q.val().retx {
                            self.told.d.next.arrival = bits::<3>(arrival::GAP_TELL);
                        }
                        self.line.d.next.told = true;
                    } else if self.ask.q.val().trim {
                        self.told.d.next.arrival = bits::<3>(arrival::NEW);
                    } else if self.ask.q.val().full & !self.facts.q.val().first {
                        self.told.d.next.arrival = bits::<3>(arrival::NO_ROOM);
                    } else {
                        self.new_row.next.taken = self.row.q.val().taken | self.only.val();
                        self.rows.write_en.next = true;
                        self.line.d.next.marked = self.line.q.val().marked + 1;
                        self.line.d.next.pending = self.line.q.val().pending + 1;
                        self.line.d.next.told = false;
                        self.line.d.next.holed = self.line.q.val().holed & self.line.q.val().marked.any();
                    }
                } else if self.ask.q.val().kind == rx_ask::DONE {
                    if self.ok.val() {
                        self.new_row.next.done = self.row.q.val().done | self.only.val();
                        if self.ask.q.val().keep {
                            self.new_row.next.held = self.row.q.val().held | self.only.val();
                            self.line.d.next.held = self.line.q.val().held + 1;
                        }
                        self.rows.write_en.next = true;
                        self.line.d.next.pending = self.line.q.val().pending - 1;
                        self.line.d.next.bytes = self.line.q.val().bytes + bit_cast::<32, 14>(self.ask.q.val().bytes);
                        if self.behind_it.val() > self.span.val() {
                            self.line.d.next.span = self.behind_it.val();
                        }
                        self.at.d.next = self.line.q.val().base;
                        self.state.d.next = State::Walk;
                    }
                } else if self.ask.q.val().kind == rx_ask::REFUSE {
                    if self.ok.val() {
                        self.new_row.next.taken = self.row.q.val().taken & !self.only.val();
                        self.rows.write_en.next = true;
                        self.line.d.next.marked = self.line.q.val().marked - 1;
                        self.line.d.next.pending = self.line.q.val().pending - 1;
                        self.line.d.next.holed = !(self.line.q.val().marked == bits::<COUNT>(ONE));
                    }
                } else if self.ask.q.val().kind == rx_ask::CLEAR {
                    self.left.d.next = self.near.val();
                    self.at.d.next = self.line.q.val().base;
                    if self.facts.q.val().clears {
                        self.state.d.next = State::Clear;
                    }
                } else {
                    self.line.d.next.flip = self.flips.val();
                    self.at.d.next = self.line.q.val().base;
                    self.stride.d.next = bits::<COUNT>(0);
                    if self.flips.val() {
                        self.stride.d.next = self.far_end.val();
                    }
                    self.state.d.next = State::Far;
                }
            }
            // The memory sees `at` in this state and has the row in the next.
            State::Walk => {
                self.state.d.next = State::WalkRead;
            }
            State::WalkRead => {
                self.row.d.next = self.rows.read_data.val();
                self.state.d.next = State::WalkShift;
            }
            State::WalkShift => {
                self.open.d.next = (self.row.q.val().done & !self.row.q.val().held) >> self.place.val();
                self.state.d.next = State::WalkCount;
            }
            State::WalkCount => {
                self.run.d.next = bit_cast::<7, 6>(self.number.y.val());
                if self.open.q.val().all() {
                    self.run.d.next = self.whole.val();
                }
                self.state.d.next = State::WalkMask;
            }
            State::WalkMask => {
                self.mask.d.next = !(self.ones.val() << self.run.q.val());
                self.stride.d.next = bit_cast::<COUNT, 7>(self.run.q.val());
                self.state.d.next = State::WalkPut;
            }
            State::WalkPut => {
                self.new_row.next.taken = self.row.q.val().taken & !(self.mask.q.val() << self.place.val());
                self.new_row.next.done = self.row.q.val().done & !(self.mask.q.val() << self.place.val());
                self.rows.write_en.next = true;
                self.at.d.next = self.moved.y.val();
                self.line.d.next.base = self.moved.y.val();
                self.line.d.next.span = self.span.val() - bit_cast::<COUNT, 7>(self.run.q.val());
                self.line.d.next.marked = self.line.q.val().marked - bit_cast::<COUNT, 7>(self.run.q.val());
                self.passed.d.next = self.passed.q.val() + bit_cast::<COUNT, 7>(self.run.q.val());
                self.state.d.next = State::Tell;
                // To the end of the row: it may go on in the next.
                if self.run.q.val().any() & !self.next_place.val().any() {
                    self.state.d.next = State::Walk;
                }
            }
            State::Clear => {
                self.state.d.next = State::ClearRead;
            }
            State::ClearRead => {
                self.row.d.next = self.rows.read_data.val();
                self.mask.d.next = self.ones.val();
                if self.left.q.val() < bits::<COUNT>(ROW) {
                    self.mask.d.next = !(self.ones.val() << self.left.q.val().get_bits::<6>(0));
                }
                self.state.d.next = State::ClearMask;
            }
            State::ClearMask => {
                self.mask.d.next = self.mask.q.val() << self.place.val();
                self.state.d.next = State::ClearHits;
            }
            State::ClearHits => {
                self.hits.d.next = self.row.q.val().held & self.mask.q.val();
                self.stride.d.next = self.step.val();
                self.state.d.next = State::ClearCount;
            }
            State::ClearCount => {
                self.state.d.next = State::ClearPut;
            }
            State::ClearPut => {
                self.new_row.next.held = self.row.q.val().held & !self.mask.q.val();
                self.rows.write_en.next = true;
                self.told.d.next.freed = self.told.q.val().freed + self.gone.q.val();
                self.line.d.next.held = self.line.q.val().held - self.gone.q.val();
                self.at.d.next = self.moved.y.val();
                self.left.d.next = self.left.q.val() - self.step.val();
                self.state.d.next = State::Clear;
                if self.left.q.val() <= self.step.val() {
                    self.at.d.next = self.line.q.val().base;
                    self.state.d.next = State::Walk;
                }
            }
            State::Far => {
                self.at.d.next = self.moved.y.val();
                self.told.d.next.base = self.moved.y.val();
                self.stride.d.next = self.whole_row.val();
                self.state.d.next = State::Low;
            }
            State::Low => {
                self.state.d.next = State::LowRead;
            }
            State::LowRead => {
                self.low.d.next = self.rows.read_data.val().done >> self.place.val();
                self.at.d.next = self.moved.y.val();
                self.state.d.next = State::High;
            }
            State::High => {
                self.state.d.next = State::HighRead;
            }
            State::HighRead => {
                self.told.d.next.bitmap = self.low.q.val() | (self.rows.read_data.val().done << self.high_shift.val());
                self.state.d.next = State::Tell;
            }
            State::Tell => {
                self.lines.write_en.next = true;
                self.m.valid.next = true;
                if self.m.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        self.rows.write_data.next = self.new_row.val();
        // What is told with every answer.
        self.m.data.next = self.told.q.val();
        self.cack.a.next = self.line.q.val().base;
        self.expected.a.next = self.line.q.val().base;
        self.expected.b.next = bit_cast::<32, COUNT>(self.line.q.val().marked);
        if self.line.q.val().holed {
            self.expected.b.next = bits::<32>(NONE);
        }
        self.units.a.next = self.line.q.val().bytes.get_bits::<24>(8);
        self.m.data.next.cack = self.cack.y.val();
        self.m.data.next.expected = self.expected.y.val();
        self.m.data.next.bytes = self.line.q.val().bytes.get_bits::<24>(8);
        if self.line.q.val().bytes.get_bits::<8>(0).any() {
            self.m.data.next.bytes = self.units.y.val();
        }
        self.m.data.next.filled = self.passed.q.val() > self.behind_it.val();
        self.m.data.next.ooo = bit_cast::<16, COUNT>(self.span.val());
        self.m.data.next.marked = self.line.q.val().marked;
        self.m.data.next.held = self.line.q.val().held;
        self.m.data.next.pending = self.line.q.val().pending;
        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
