//! Packets that are out: one walk over some of them at a time. See README.md.

#[cfg(test)]
mod tests;

use super::types::{told, Answered, Tell, TxFound, TxRecord, TxWalk, COUNT, LINE, SLOT};
use crate::bus::{MsgSink, MsgSrc};
use crate::prim::arb::{FirstSet, OneHotToBin};
use crate::prim::ram::Ram;
use crate::prim::sum::{Diff, LessOne, PlusOne};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[("s", &["m", "m_tell", "m_answer"])];

/// log2 of the places of a row.
const LG_ROW: usize = 6;
const ONE: u64 = 1;
/// Places of a row, as a distance.
const ROW: u64 = 64;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Init,
    Load,
    Row,
    RowRead,
    Put,
    Choose,
    Next,
    Read,
    Have,
    Order,
    Test,
    Act,
    Store,
    PutRow,
    Tell,
}

/// 64 places.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Row {
    out: Bits<64>,
    sacked: Bits<64>,
    resend: Bits<64>,
    wait: Bits<64>,
}

#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Counts {
    outs: Bits<COUNT>,
    resends: Bits<COUNT>,
    waits: Bits<COUNT>,
}

/// Records of `2^LP` PDCs, `2^LW` places each. `LR` = `LP` + `LW` - 6, `LA` = `LP` + `LW`, `LO` = `LP` + 6.
#[derive(LogicBlock, BlockDefault)]
#[demand(LW >= 7 && LW <= 9 && LP <= LINE && LR == LP + LW - LG_ROW && LA == LP + LW && LO == LP + SLOT, "7 to 9 bits of window, and the sums")]
pub struct Records<const LP: usize, const LW: usize, const LR: usize, const LA: usize, const LO: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets the walk under way. Lines begin with `init`.
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<TxWalk>,
    pub m: MsgSrc<TxFound>,
    pub m_tell: MsgSrc<Tell>,
    pub m_answer: MsgSrc<Answered>,
    rows: Ram<Row, LR>,
    cells: Ram<TxRecord, LA>,
    /// Newest sending that has arrived, by path.
    orders: Ram<Bits<32>, LO>,
    counts: Ram<Counts, LP>,
    state: DFF<State>,
    walk: DFF<TxWalk>,
    count: DFF<Counts>,
    row: DFF<Row>,
    /// Row that is looked at.
    number: DFF<Bits<26>>,
    mask: DFF<Bits<64>>,
    left: DFF<Bits<64>>,
    only: DFF<Bits<64>>,
    place: DFF<Bits<32>>,
    record: DFF<TxRecord>,
    late: DFF<Bits<32>>,
    newer: DFF<Bit>,
    due: DFF<Bit>,
    visited: DFF<Bits<3>>,
    found: DFF<TxFound>,
    sweep: DFF<Bits<SLOT>>,
    tell: DFF<Tell>,
    tell_valid: DFF<Bit>,
    answer: DFF<Answered>,
    answer_valid: DFF<Bit>,
    first: FirstSet<64>,
    bin: OneHotToBin<64, 6>,
    less: Diff<32>,
    before_it: LessOne<32>,
    behind: PlusOne<32>,
    following: PlusOne<26>,
    second: PlusOne<26>,
    #[init(Constant::new(((1u64 << (LW - LG_ROW)) - 1).to_bits()))]
    rows_mask: Constant<Bits<26>>,
    #[init(Constant::new(((1u64 << LW) - 1).to_bits()))]
    cells_mask: Constant<Bits<32>>,
    #[init(Constant::new(((LW - LG_ROW) as u64).to_bits()))]
    lg_rows: Constant<Bits<4>>,
    #[init(Constant::new((LW as u64).to_bits()))]
    lw: Constant<Bits<4>>,
    #[init(Constant::new((SLOT as u64).to_bits()))]
    lg_slots: Constant<Bits<4>>,
    #[init(Constant::new(Bits::<64>::mask()))]
    ones: Constant<Bits<64>>,
    #[init(Constant::new(ROW.to_bits()))]
    whole: Constant<Bits<7>>,
    row_number: Signal<Local, Bits<26>>,
    row_at: Signal<Local, Bits<LR>>,
    cell_number: Signal<Local, Bits<32>>,
    cell_at: Signal<Local, Bits<LA>>,
    order_at: Signal<Local, Bits<LO>>,
    from_row: Signal<Local, Bits<26>>,
    last_row: Signal<Local, Bits<26>>,
    second_row: Signal<Local, Bits<26>>,
    upto_row: Signal<Local, Bits<26>>,
    from_bit: Signal<Local, Bits<6>>,
    upto_bit: Signal<Local, Bits<6>>,
    turn: Signal<Local, Bits<7>>,
    low: Signal<Local, Bits<64>>,
    high: Signal<Local, Bits<64>>,
    wanted: Signal<Local, Bits<64>>,
    is_sacked: Signal<Local, Bits<64>>,
    is_resend: Signal<Local, Bits<64>>,
    is_wait: Signal<Local, Bits<64>>,
    open: Signal<Local, Bit>,
    enough: Signal<Local, Bit>,
    empty: Signal<Local, Bit>,
    is_out: Signal<Local, Bits<64>>,
    acts: Signal<Local, Bit>,
    drops_sacked: Signal<Local, Bit>,
    drops_resend: Signal<Local, Bit>,
    drops_wait: Signal<Local, Bit>,
    unsacked: Signal<Local, Bits<64>>,
    by_resend: Signal<Local, Bits<64>>,
    by_wait: Signal<Local, Bits<64>>,
    kept: Signal<Local, Bits<64>>,
}

#[kernel]
impl<const LP: usize, const LW: usize, const LR: usize, const LA: usize, const LO: usize> Logic for Records<LP, LW, LR, LA, LO> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, walk, count, row, number, mask, left, only, place, record, late, newer, due, visited, found, sweep);
        dff_setup!(self, clock, tell, tell_valid, answer, answer_valid);
        clock!(self, clock, rows, cells, orders, counts);
        self.s.ready.next = false;
        self.m.valid.next = false;
        self.m.data.next = self.found.q.val();
        self.m.data.next.outs = self.count.q.val().outs;
        self.m.data.next.resends = self.count.q.val().resends;
        self.m.data.next.waits = self.count.q.val().waits;
        // What is told and answered waits in a register each.
        self.m_tell.data.next = self.tell.q.val();
        self.m_tell.valid.next = self.tell_valid.q.val();
        self.m_answer.data.next = self.answer.q.val();
        self.m_answer.valid.next = self.answer_valid.q.val();
        if self.m_tell.ready.val() {
            self.tell_valid.d.next = false;
        }
        if self.m_answer.ready.val() {
            self.answer_valid.d.next = false;
        }
        self.open.next = !self.tell_valid.q.val() & !self.answer_valid.q.val();
        // Where things are.
        self.row_number.next = self.number.q.val() & self.rows_mask.val();
        self.row_at.next = (bit_cast::<LR, LINE>(self.walk.q.val().line) << self.lg_rows.val()) | bit_cast::<LR, 26>(self.row_number.val());
        self.rows.read_addr.next = self.row_at.val();
        self.rows.write_addr.next = self.row_at.val();
        self.rows.write_data.next = self.row.q.val();
        self.rows.write_en.next = false;
        self.cell_number.next = self.place.q.val() & self.cells_mask.val();
        self.cell_at.next = (bit_cast::<LA, LINE>(self.walk.q.val().line) << self.lw.val()) | bit_cast::<LA, 32>(self.cell_number.val());
        self.cells.read_addr.next = self.cell_at.val();
        self.cells.write_addr.next = self.cell_at.val();
        self.cells.write_data.next = self.walk.q.val().record;
        self.cells.write_en.next = false;
        self.order_at.next = (bit_cast::<LO, LINE>(self.walk.q.val().line) << self.lg_slots.val()) | bit_cast::<LO, SLOT>(self.record.q.val().slot);
        self.orders.read_addr.next = self.order_at.val();
        self.orders.write_addr.next = self.order_at.val();
        self.orders.write_data.next = self.record.q.val().order;
        self.orders.write_en.next = false;
        self.counts.read_addr.next = bit_cast::<LP, LINE>(self.s.data.val().line);
        self.counts.write_addr.next = bit_cast::<LP, LINE>(self.walk.q.val().line);
        self.counts.write_data.next = self.count.q.val();
        self.counts.write_en.next = false;
        // Which places of the row are meant.
        self.before_it.a.next = self.walk.q.val().upto;
        self.last_row.next = self.before_it.y.val().get_bits::<26>(6);
        self.from_row.next = self.walk.q.val().from.get_bits::<26>(6);
        self.second.a.next = self.from_row.val();
        self.second_row.next = self.second.y.val();
        self.upto_row.next = self.walk.q.val().upto.get_bits::<26>(6);
        self.from_bit.next = self.walk.q.val().from.get_bits::<6>(0);
        self.upto_bit.next = self.walk.q.val().upto.get_bits::<6>(0);
        self.turn.next = self.whole.val() - bit_cast::<7, 6>(self.from_bit.val());
        self.low.next = self.ones.val();
        self.wanted.next = bits::<64>(0);
        if self.number.q.val() == self.second_row.val() {
            self.wanted.next = self.walk.q.val().bitmap >> self.turn.val();
        }
        if self.number.q.val() == self.from_row.val() {
            self.low.next = self.ones.val() << self.from_bit.val();
            self.wanted.next = self.walk.q.val().bitmap << self.from_bit.val();
        }
        self.high.next = self.ones.val();
        if self.number.q.val() == self.upto_row.val() {
            self.high.next = !(self.ones.val() << self.upto_bit.val());
        }
        self.first.x.next = self.left.q.val();
        self.bin.x.next = self.first.y.val();
        self.less.a.next = self.walk.q.val().now;
        self.less.b.next = self.record.q.val().time;
        self.behind.a.next = self.place.q.val();
        self.following.a.next = self.number.q.val();
        self.is_sacked.next = self.row.q.val().sacked & self.only.q.val();
        self.is_resend.next = self.row.q.val().resend & self.only.q.val();
        self.is_wait.next = self.row.q.val().wait & self.only.q.val();
        self.empty.next = self.walk.q.val().from == self.walk.q.val().upto;
        self.is_out.next = self.row.q.val().out & self.only.q.val();
        self.acts.next = (!self.walk.q.val().overtaken | self.newer.q.val()) & (!self.walk.q.val().aged | self.due.q.val());
        self.drops_sacked.next = self.walk.q.val().clear_sacked | self.walk.q.val().remove;
        self.drops_resend.next = self.walk.q.val().clear_resend | self.walk.q.val().remove;
        self.drops_wait.next = self.walk.q.val().clear_wait | self.walk.q.val().remove;
        if self.walk.q.val().not_sacked {
            self.unsacked.next = !self.row.q.val().sacked;
        } else {
            self.unsacked.next = self.ones.val();
        }
        self.by_resend.next = self.ones.val();
        if self.walk.q.val().not_resend {
            self.by_resend.next = !self.row.q.val().resend;
        } else if self.walk.q.val().only_resend {
            self.by_resend.next = self.row.q.val().resend;
        }
        self.by_wait.next = self.ones.val();
        if self.walk.q.val().not_wait {
            self.by_wait.next = !self.row.q.val().wait;
        } else if self.walk.q.val().only_wait {
            self.by_wait.next = self.row.q.val().wait;
        }
        self.kept.next = self.unsacked.val() & self.by_resend.val() & self.by_wait.val();
        self.enough.next = self.walk.q.val().limit.any() & (self.visited.q.val() == self.walk.q.val().limit);
        match self.state.q.val() {
            State::Idle => {
                self.s.ready.next = true;
                self.walk.d.next = self.s.data.val();
                self.number.d.next = self.s.data.val().from.get_bits::<26>(6);
                self.place.d.next = self.s.data.val().from;
                self.visited.d.next = bits::<3>(0);
                self.sweep.d.next = bits::<SLOT>(0);
                self.record.d.next.slot = bits::<SLOT>(0);
                self.record.d.next.order = bits::<32>(0);
                self.found.d.next.found = false;
                self.found.d.next.done = bits::<COUNT>(0);
                self.found.d.next.last = bits::<32>(0);
                if self.s.valid.val() {
                    self.state.d.next = State::Load;
                    if self.s.data.val().init {
                        self.state.d.next = State::Init;
                    }
                }
            }
            // 64 cycles: a row and a path each, rows several times.
            State::Init => {
                self.row.d.next.out = bits::<64>(0);
                self.row.d.next.sacked = bits::<64>(0);
                self.row.d.next.resend = bits::<64>(0);
                self.row.d.next.wait = bits::<64>(0);
                self.count.d.next.outs = bits::<COUNT>(0);
                self.count.d.next.resends = bits::<COUNT>(0);
                self.count.d.next.waits = bits::<COUNT>(0);
                self.number.d.next = self.following.y.val();
                self.sweep.d.next = self.sweep.q.val() + 1;
                self.record.d.next.slot = self.sweep.q.val() + 1;
                self.rows.write_en.next = self.sweep.q.val().any();
                self.orders.write_en.next = true;
                if self.sweep.q.val().all() {
                    self.state.d.next = State::Store;
                }
            }
            State::Load => {
                self.count.d.next = self.counts.read_data.val();
                self.state.d.next = State::Row;
                if self.empty.val() & !self.walk.q.val().put {
                    self.state.d.next = State::Tell;
                }
            }
            // The memory sees the number in this state and has the row in the next.
            State::Row => {
                self.state.d.next = State::RowRead;
            }
            State::RowRead => {
                self.row.d.next = self.rows.read_data.val();
                self.mask.d.next = self.low.val() & self.high.val();
                if self.walk.q.val().picks {
                    self.mask.d.next = self.low.val() & self.high.val() & self.wanted.val();
                }
                self.only.d.next = bits::<64>(ONE) << self.from_bit.val();
                self.state.d.next = State::Choose;
                if self.walk.q.val().put {
                    self.state.d.next = State::Put;
                }
            }
            State::Put => {
                self.cells.write_en.next = true;
                self.row.d.next.out = self.row.q.val().out | self.only.q.val();
                self.row.d.next.sacked = self.row.q.val().sacked & !self.only.q.val();
                self.row.d.next.resend = self.row.q.val().resend & !self.only.q.val();
                if !self.is_out.val().any() {
                    self.count.d.next.outs = self.count.q.val().outs + 1;
                }
                if self.is_resend.val().any() {
                    self.count.d.next.resends = self.count.q.val().resends - 1;
                }
                self.state.d.next = State::PutRow;
            }
            State::Choose => {
                self.left.d.next = self.row.q.val().out & self.mask.q.val() & self.kept.val();
                self.state.d.next = State::Next;
            }
            State::Next => {
                self.only.d.next = self.first.y.val();
                self.left.d.next = self.left.q.val() & !self.first.y.val();
                self.place.d.next = bit_cast::<32, 6>(self.bin.y.val()) | (bit_cast::<32, 26>(self.number.q.val()) << 6);
                self.state.d.next = State::Read;
                if self.enough.val() | !self.left.q.val().any() {
                    self.state.d.next = State::PutRow;
                }
            }
            State::Read => {
                self.state.d.next = State::Have;
            }
            State::Have => {
                self.record.d.next = self.cells.read_data.val();
                self.state.d.next = State::Order;
            }
            State::Order => {
                self.late.d.next = self.less.y.val();
                self.state.d.next = State::Test;
            }
            State::Test => {
                self.newer.d.next = self.orders.read_data.val() > self.record.q.val().order;
                self.due.d.next = self.late.q.val() >= self.walk.q.val().age;
                self.state.d.next = State::Act;
            }
            State::Act => {
                if self.open.val() {
                    self.visited.d.next = self.visited.q.val() + 1;
                    self.found.d.next.found = true;
                    self.found.d.next.last = self.behind.y.val();
                    if !self.found.q.val().found {
                        self.found.d.next.place = self.place.q.val();
                        self.found.d.next.record = self.record.q.val();
                        self.found.d.next.sacked = self.is_sacked.val().any();
                    }
                    if self.acts.val() {
                        self.found.d.next.done = self.found.q.val().done + 1;
                        self.orders.write_en.next = self.walk.q.val().arrived & !self.newer.q.val();
                        self.tell.d.next.line = self.walk.q.val().line;
                        self.tell.d.next.slot = self.record.q.val().slot;
                        self.tell.d.next.what = self.walk.q.val().told;
                        self.tell_valid.d.next = !(self.walk.q.val().told == told::NOTHING);
                        self.answer.d.next.line = self.walk.q.val().line;
                        self.answer.d.next.content = self.record.q.val().content;
                        self.answer.d.next.message = self.record.q.val().message;
                        self.answer.d.next.offset = self.record.q.val().offset;
                        self.answer.d.next.bytes = self.record.q.val().bytes;
                        self.answer.d.next.response = self.walk.q.val().response;
                        self.answer_valid.d.next = self.walk.q.val().remove;
                        if self.walk.q.val().set_sacked {
                            self.row.d.next.sacked = self.row.q.val().sacked | self.only.q.val();
                        }
                        if self.drops_sacked.val() {
                            self.row.d.next.sacked = self.row.q.val().sacked & !self.only.q.val();
                        }
                        if self.walk.q.val().set_resend {
                            self.row.d.next.resend = self.row.q.val().resend | self.only.q.val();
                            if !self.is_resend.val().any() {
                                self.count.d.next.resends = self.count.q.val().resends + 1;
                            }
                        }
                        if self.drops_resend.val() {
                            self.row.d.next.resend = self.row.q.val().resend & !self.only.q.val();
                            if self.is_resend.val().any() {
                                self.count.d.next.resends = self.count.q.val().resends - 1;
                            }
                        }
                        if self.walk.q.val().set_wait {
                            self.row.d.next.wait = self.row.q.val().wait | self.only.q.val();
                            if !self.is_wait.val().any() {
                                self.count.d.next.waits = self.count.q.val().waits + 1;
                            }
                        }
                        if self.drops_wait.val() {
                            self.row.d.next.wait = self.row.q.val().wait & !self.only.q.val();
                            if self.is_wait.val().any() {
                                self.count.d.next.waits = self.count.q.val().waits - 1;
                            }
                        }
                        if self.walk.q.val().remove {
                            self.row.d.next.out = self.row.q.val().out & !self.only.q.val();
                            self.count.d.next.outs = self.count.q.val().outs - 1;
                        }
                    }
                    self.state.d.next = State::Next;
                }
            }
            State::PutRow => {
                self.rows.write_en.next = true;
                self.number.d.next = self.following.y.val();
                self.state.d.next = State::Row;
                if self.enough.val() | self.walk.q.val().put | (self.number.q.val() == self.last_row.val()) {
                    self.state.d.next = State::Store;
                }
            }
            State::Store => {
                self.counts.write_en.next = true;
                self.state.d.next = State::Tell;
            }
            State::Tell => {
                self.m.valid.next = true;
                if self.m.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.tell_valid.d.next = false;
            self.answer_valid.d.next = false;
        }
    }
}
