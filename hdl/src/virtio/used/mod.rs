//! The used side: chains go back into their used rings, then the driver's event says whether it wants an interrupt. See README.md.

pub mod packed;
#[cfg(test)]
mod packed_tests;
#[cfg(test)]
mod tests;
pub mod wish;

use crate::bus::{MsgSink, MsgSrc};
use crate::context::line::CtlLine;
use crate::msg::{CtlReq, CtlResp, MsixReq, RdCmd, RdRow, VqPut, VqTold, VqUse, WrDone};
use crate::prim::mux::IndexMux;
use crate::prim::pack::Slice;
use crate::prim::ram::Ram;
use crate::prim::sum::Sum;
use crate::records::VqUsed;
use crate::stream::MsgSlice;
use crate::virtio::turns::Turns;
use ferric_abi::codes::VirtioCause;
use ferric_hdl_derive::{kernel, BlockDefault};
use packed::Packed;
use rust_hdl::prelude::*;
use wish::Wish;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_use", &["m_put", "s_done", "m_rd", "s_row", "m_msix", "m_ctl"]), // one batch at a time
    ("s_done", &[]),
    ("s_row", &[]),
    ("s_ctl", &["m_put", "s_done", "m_rd", "s_row", "m_msix", "m_ctl"]), // between batches
    ("m_ctl", &[]),
];

/// Bytes of a used ring in front of its elements, of an element's id, and of its index' place.
const HEAD: u64 = super::RING_HEAD;
const WORD: u64 = 4;
const INDEX: u64 = 2;
/// Words in a row.
const WORDS: usize = HALVES / 2;
/// log2 of an element's bytes.
const LG_ELEM: usize = 3;
/// Bits of an index, a head, an event, and how many stand in a row.
const HALF_WORD: usize = 16;
const HALVES: usize = 512 / HALF_WORD;
/// Chains of one queue that are given back before its index is written, at most.
const BATCH: u64 = 64;
/// Batches that go before a driver's event, at most: a batch waits for its writes alone, an event for a read behind them.
const LATE: u64 = 16;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Sweep,
    Idle,
    Line,
    Lines,
    Load,
    Begin,
    Id,
    Length,
    More,
    Index,
    Entry,
    Show,
    Answers,
    Later,
    Aim,
    Event,
    Row,
    Measure,
    Compare,
    Decide,
    Interrupt,
    Store,
}

/// `2^LQ` queues, one batch at a time.
#[derive(LogicBlock, BlockDefault)]
#[demand((1..=16).contains(&LQ), "a queue number has 16 bits")]
pub struct Used<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not while a read or a write is in flight. All lines become zero (`2^LQ` cycles).
    pub reset: Signal<In, Bit>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    pub s_use: MsgSink<VqUse>,
    pub m_put: MsgSrc<VqPut>,
    pub s_done: MsgSink<WrDone>,
    pub m_rd: MsgSrc<RdCmd>,
    pub s_row: MsgSink<RdRow>,
    pub m_msix: MsgSrc<MsixReq>,
    /// Pulse: a ring cannot be written or read.
    pub told_valid: Signal<Out, Bit>,
    pub told: Signal<Out, VqTold>,
    ctl: CtlLine<VqUsed, LQ>,
    rows: Ram<VqUsed, LQ>,
    uses: MsgSlice<VqUse>,
    state: DFF<State>,
    sweep: DFF<Bits<LQ>>,
    queue: DFF<Bits<16>>,
    row: DFF<VqUsed>,
    now: DFF<VqUse>,
    /// Chains of this batch, and writes that have not been answered.
    batch: DFF<Bits<8>>,
    owed: DFF<Bits<8>>,
    failed: DFF<Bit>,
    /// Queues whose drivers' events have still to be looked at; batches since the last one was; this is such a look.
    later: Turns<LQ>,
    late: DFF<Bits<8>>,
    asks: DFF<Bit>,
    /// Decided one cycle before it is used: the area and the offset of what is written or read next, its place, bits of a place in the ring, the driver's word, chains since it was interrupted.
    base: DFF<Bits<64>>,
    offset: DFF<Bits<20>>,
    at: DFF<Bits<64>>,
    mask: DFF<Bits<16>>,
    word: DFF<Bits<16>>,
    window: DFF<Bits<16>>,
    flags: DFF<Bits<16>>,
    packed: Packed,
    wish: Wish,
    place: Sum<64>,
    #[init(std::array::from_fn(|i| Slice::new(HALF_WORD * i)))]
    halves: [Slice<512, 16>; HALVES],
    half: IndexMux<Bits<16>, HALVES, 5>,
    /// The second half of the word.
    second: IndexMux<Bits<16>, WORDS, 4>,
    #[init(Constant::new((!63u64).to_bits()))]
    whole_rows: Constant<Bits<64>>,
    #[init(Constant::new(1u64.to_bits()))]
    one_row: Constant<Bits<4>>,
    #[init(Constant::new(VqUsed::default()))]
    zero: Constant<VqUsed>,
    runs: Signal<Local, Bit>,
    found: Signal<Local, VqUsed>,
    found_mask: Signal<Local, Bits<16>>,
    slot: Signal<Local, Bits<16>>,
    slot_next: Signal<Local, Bits<16>>,
    behind: Signal<Local, Bits<20>>,
    puts: Signal<Local, Bit>,
    put_taken: Signal<Local, Bit>,
    came: Signal<Local, Bit>,
    used_next: Signal<Local, Bits<16>>,
    passed: Signal<Local, Bits<16>>,
    wants: Signal<Local, Bit>,
    more: Signal<Local, Bit>,
    lost: Signal<Local, Bit>,
    more_lost: Signal<Local, Bit>,
    is_packed: Signal<Local, Bit>,
    queue_line: Signal<Local, Bits<LQ>>,
    twice: Signal<Local, Bits<32>>,
    due: Signal<Local, Bit>,
}

#[kernel]
impl<const LQ: usize> Logic for Used<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, sweep, queue, row, now, batch, owed, failed, late, asks, base, offset, at, mask, word, window, flags);
        clock!(self, clock, ctl, rows, uses, packed, wish, later);
        self.ctl.reset.next = self.reset.val();
        self.uses.reset.next = self.reset.val();
        self.packed.reset.next = self.reset.val();
        self.later.reset.next = self.reset.val();
        self.later.s_notify.valid.next = false;
        self.later.s_notify.data.next.queue = bits::<16>(0);
        self.later.s_refill.valid.next = false;
        self.later.s_refill.data.next.queue = bits::<16>(0);
        self.later.again.next = self.state.q.val() == State::Later;
        self.later.queue.next = self.queue.q.val();
        self.later.m.ready.next = false;
        self.due.next = self.later.m.valid.val() & (self.late.q.val() >= LATE);
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.ctl.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.ctl.m_ctl);
        MsgSink::<VqUse>::link(&mut self.s_use, &mut self.uses.s);
        self.ctl.row.next = self.rows.read_data.val();
        self.ctl.row_valid.next = false;
        self.queue_line.next = self.queue.q.val().get_bits::<LQ>(0);
        self.rows.read_addr.next = self.queue_line.val();
        if self.state.q.val() == State::Idle {
            self.rows.read_addr.next = self.ctl.addr.val();
        }
        self.rows.write_addr.next = self.queue_line.val();
        self.rows.write_data.next = self.row.q.val();
        self.rows.write_en.next = false;
        self.uses.m.ready.next = false;

        // Where it is written and read: the element, the index, the event. Area and offset are chosen a cycle before they are added.
        self.runs.next = self.row.q.val().enabled & !self.row.q.val().broken;
        self.found.next = self.rows.read_data.val();
        self.found_mask.next = self.found.val().size - 1;
        self.mask.d.next = self.found_mask.val();
        self.slot.next = self.found.val().used & self.found_mask.val();
        self.used_next.next = self.row.q.val().used + 1;
        self.slot_next.next = self.used_next.val() & self.mask.q.val();
        self.behind.next = bit_cast::<20, 16>(self.row.q.val().size) << 1;
        self.place.a.next = self.base.q.val();
        self.place.b.next = bit_cast::<64, 20>(self.offset.q.val());
        self.is_packed.next = self.row.q.val().packed;
        self.packed.goes.next = self.state.q.val() == State::Entry;
        self.packed.shows.next = self.state.q.val() == State::Show;
        self.packed.row.next = self.row.q.val();
        self.packed.now.next = self.now.q.val();
        self.packed.put_ready.next = self.m_put.ready.val();
        self.puts.next = self.packed.put.val() | (self.state.q.val() == State::Id) | (self.state.q.val() == State::Length) | (self.state.q.val() == State::Index);
        self.m_put.valid.next = self.puts.val();
        self.m_put.data.next.iova = self.at.q.val();
        self.m_put.data.next.function = self.row.q.val().function;
        self.m_put.data.next.wide = self.state.q.val() != State::Index;
        self.twice.next = bit_cast::<32, 16>(self.row.q.val().used);
        self.m_put.data.next.data = self.now.q.val().len;
        if self.is_packed.val() {
            self.m_put.data.next.iova = self.packed.put_at.val();
            self.m_put.data.next.data = self.packed.put_data.val();
        }
        if self.state.q.val() == State::Id {
            self.m_put.data.next.data = bit_cast::<32, 16>(self.now.q.val().id);
        }
        if self.state.q.val() == State::Index {
            self.m_put.data.next.data = self.twice.val() | (self.twice.val() << 16);
        }
        self.put_taken.next = self.puts.val() & self.m_put.ready.val();
        self.s_done.ready.next = true;
        self.came.next = self.s_done.valid.val();
        if self.put_taken.val() & !self.came.val() {
            self.owed.d.next = self.owed.q.val() + 1;
        }
        if self.came.val() & !self.put_taken.val() {
            self.owed.d.next = self.owed.q.val() - 1;
        }
        if self.came.val() & self.s_done.data.val().err {
            self.failed.d.next = true;
        }
        self.m_rd.valid.next = self.state.q.val() == State::Event;
        self.m_rd.data.next.iova = self.at.q.val() & self.whole_rows.val();
        self.m_rd.data.next.function = self.row.q.val().function;
        self.m_rd.data.next.rows = self.one_row.val();
        self.m_rd.data.next.tag = bits::<8>(0);
        self.s_row.ready.next = self.state.q.val() == State::Row;

        // Whether the driver wants to know.
        for i in 0..HALVES {
            self.halves[i].x.next = self.s_row.data.val().data;
            self.half.x[i].next = self.halves[i].y.val();
        }
        for i in 0..WORDS {
            self.second.x[i].next = self.halves[i + i + 1].y.val();
        }
        self.half.sel.next = self.at.q.val().get_bits::<5>(1);
        self.second.sel.next = self.at.q.val().get_bits::<4>(2);
        if self.state.q.val() == State::Row {
            self.word.d.next = self.half.y.val();
            self.flags.d.next = self.second.y.val();
        }
        self.wish.place.next = self.word.q.val();
        self.wish.flags.next = self.flags.q.val();
        self.wish.row.next = self.row.q.val();
        self.passed.next = self.word.q.val() - self.row.q.val().signalled;
        self.window.d.next = self.row.q.val().used - self.row.q.val().signalled;
        self.wants.next = !self.word.q.val().get_bit(0);
        if self.row.q.val().events {
            self.wants.next = self.passed.val() < self.window.q.val();
        }
        if self.is_packed.val() {
            self.wants.next = self.wish.wants.val();
        }
        // A chain of a packed ring whose end nobody knows cannot be given back.
        self.lost.next = self.is_packed.val() & !self.now.q.val().slots.any();
        self.more_lost.next = self.is_packed.val() & !self.uses.m.data.val().slots.any();
        self.more.next = self.uses.m.valid.val() & (self.uses.m.data.val().queue == self.queue.q.val()) & (self.batch.q.val() < BATCH) & !self.uses.m.data.val().none & !self.more_lost.val();
        self.m_msix.valid.next = self.state.q.val() == State::Interrupt;
        self.m_msix.data.next.function = self.row.q.val().function;
        self.m_msix.data.next.vector = self.row.q.val().vector;
        self.told_valid.next = false;
        self.told.next.queue = self.queue.q.val();
        self.told.next.lost = true;
        self.told.next.cause = bits::<5>(VirtioCause::RingDma as u64);

        match self.state.q.val() {
            State::Sweep => {
                self.rows.write_addr.next = self.sweep.q.val();
                self.rows.write_data.next = self.zero.val();
                self.rows.write_en.next = true;
                self.sweep.d.next = self.sweep.q.val() + 1;
                if self.sweep.q.val().all() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Idle => {
                self.batch.d.next = bits::<8>(0);
                self.failed.d.next = false;
                self.asks.d.next = false;
                if self.ctl.req.val() {
                    self.state.d.next = State::Line;
                } else if self.uses.m.valid.val() & !self.due.val() {
                    self.uses.m.ready.next = true;
                    self.now.d.next = self.uses.m.data.val();
                    self.queue.d.next = self.uses.m.data.val().queue;
                    self.state.d.next = State::Load;
                } else if self.later.m.valid.val() {
                    self.later.m.ready.next = true;
                    self.now.d.next.follows = false;
                    self.queue.d.next = self.later.m.data.val().queue;
                    self.asks.d.next = true;
                    self.late.d.next = bits::<8>(0);
                    self.state.d.next = State::Load;
                }
            }
            State::Line => {
                // The row that was asked for in Idle.
                self.ctl.row_valid.next = true;
                self.state.d.next = State::Lines;
            }
            State::Lines => {
                self.rows.write_addr.next = self.ctl.addr.val();
                self.rows.write_data.next = self.ctl.new_row.val();
                if self.ctl.done.val() {
                    self.rows.write_en.next = self.ctl.we.val();
                    self.state.d.next = State::Idle;
                }
            }
            State::Load => {
                self.state.d.next = State::Begin;
            }
            State::Begin => {
                self.row.d.next = self.found.val();
                self.base.d.next = self.found.val().device;
                self.offset.d.next = (bit_cast::<20, 16>(self.slot.val()) << LG_ELEM) | HEAD;
                self.state.d.next = State::More;
                if self.asks.q.val() {
                    self.state.d.next = State::Aim;
                }
            }
            // The chain of `now`, if there is one more, then the next one.
            State::More => {
                self.row.d.next.back = self.row.q.val().back + 1;
                self.batch.d.next = self.batch.q.val() + 1;
                self.at.d.next = self.place.y.val();
                self.offset.d.next = self.offset.q.val() + WORD;
                self.state.d.next = State::Store;
                if self.runs.val() & !self.now.q.val().none & !self.lost.val() {
                    self.state.d.next = State::Id;
                    if self.is_packed.val() {
                        self.state.d.next = State::Entry;
                    }
                }
            }
            State::Id => {
                if self.put_taken.val() {
                    self.at.d.next = self.place.y.val();
                    self.offset.d.next = bits::<20>(INDEX);
                    self.state.d.next = State::Length;
                }
            }
            State::Length => {
                if self.put_taken.val() {
                    self.row.d.next.used = self.used_next.val();
                    self.at.d.next = self.place.y.val();
                    self.offset.d.next = (bit_cast::<20, 16>(self.slot_next.val()) << LG_ELEM) | HEAD;
                    self.state.d.next = State::Index;
                    if self.more.val() {
                        self.uses.m.ready.next = true;
                        self.now.d.next = self.uses.m.data.val();
                        self.state.d.next = State::More;
                    } else if self.now.q.val().follows {
                        // The rest of its frame comes in a later batch, and so does the index.
                        self.row.d.next.held = true;
                        self.state.d.next = State::Answers;
                    }
                }
            }
            State::Index => {
                self.base.d.next = self.row.q.val().driver;
                self.offset.d.next = bits::<20>(0);
                if self.row.q.val().events {
                    self.offset.d.next = self.behind.val() + HEAD;
                }
                if self.put_taken.val() {
                    self.row.d.next.held = false;
                    self.state.d.next = State::Answers;
                }
            }
            // The same in a packed ring: its first descriptor's flags stand for the index.
            State::Entry => {
                if self.packed.done.val() {
                    self.row.d.next = self.packed.changed.val();
                    self.state.d.next = State::Show;
                    if self.more.val() {
                        self.uses.m.ready.next = true;
                        self.now.d.next = self.uses.m.data.val();
                        self.state.d.next = State::More;
                    } else if self.now.q.val().follows {
                        self.state.d.next = State::Answers;
                    }
                }
            }
            State::Show => {
                self.base.d.next = self.row.q.val().driver;
                self.offset.d.next = bits::<20>(0);
                if self.packed.done.val() {
                    self.row.d.next = self.packed.changed.val();
                    self.state.d.next = State::Answers;
                }
            }
            State::Answers => {
                self.at.d.next = self.place.y.val();
                if !self.owed.q.val().any() {
                    self.state.d.next = State::Event;
                    if self.uses.m.valid.val() & !self.asks.q.val() {
                        self.state.d.next = State::Later;
                    }
                    if self.now.q.val().follows {
                        self.state.d.next = State::Store;
                    }
                    if self.failed.q.val() {
                        self.told_valid.next = true;
                        self.row.d.next.broken = true;
                        self.state.d.next = State::Store;
                    }
                }
            }
            // Others' chains first: the event is looked at when there are none, or have been enough.
            State::Later => {
                self.late.d.next = self.late.q.val() + 1;
                self.state.d.next = State::Store;
            }
            State::Aim => {
                self.base.d.next = self.row.q.val().driver;
                self.offset.d.next = bits::<20>(0);
                if self.row.q.val().events & !self.is_packed.val() {
                    self.offset.d.next = self.behind.val() + HEAD;
                }
                self.state.d.next = State::Answers;
                // It has ended meanwhile; or chains of a frame are there that the driver does not see yet, behind whose last one the event is looked at in any case.
                if !self.runs.val() | self.row.q.val().held {
                    self.state.d.next = State::Idle;
                }
            }
            State::Event => {
                if self.m_rd.ready.val() {
                    self.state.d.next = State::Row;
                }
            }
            State::Row => {
                if self.s_row.valid.val() {
                    self.state.d.next = State::Decide;
                    if self.is_packed.val() {
                        self.state.d.next = State::Measure;
                    }
                    if self.s_row.data.val().err {
                        self.told_valid.next = true;
                        self.row.d.next.broken = true;
                        self.state.d.next = State::Store;
                    }
                }
            }
            // Two cycles that `wish` takes.
            State::Measure => {
                self.state.d.next = State::Compare;
            }
            State::Compare => {
                self.state.d.next = State::Decide;
            }
            State::Decide => {
                self.row.d.next.signalled = self.row.q.val().used;
                if self.is_packed.val() {
                    self.row.d.next.signalled = bits::<16>(0);
                }
                self.state.d.next = State::Store;
                if self.wants.val() {
                    self.state.d.next = State::Interrupt;
                }
            }
            State::Interrupt => {
                if self.m_msix.ready.val() {
                    self.state.d.next = State::Store;
                }
            }
            State::Store => {
                self.rows.write_en.next = true;
                self.state.d.next = State::Idle;
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Sweep;
            self.sweep.d.next = bits::<LQ>(0);
            self.owed.d.next = bits::<8>(0);
            self.late.d.next = bits::<8>(0);
        }
    }
}
