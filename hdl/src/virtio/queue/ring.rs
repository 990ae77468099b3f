//! A turn of one queue: its way through the available ring, from the index to the heads that are new. See README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{RdCmd, RdRow, VqHead, VqNotify, VqPut, VqTold, WrDone};
use crate::prim::mux::IndexMux;
use crate::prim::pack::Slice;
use crate::prim::sum::Sum;
use crate::records::VqAvail;
use crate::virtio::stock::Room;
use ferric_abi::codes::VirtioCause;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bytes of an available ring in front of its heads, of its index' place, of a head, and of a used ring in front of its elements.
const HEAD: u64 = crate::virtio::RING_HEAD;
const INDEX: u64 = 2;
const LG_HEAD: usize = 1;
/// log2 of a used element's bytes.
const LG_ELEM: usize = 3;
/// Bits of an index, a head, an event, and how many stand in a row.
const HALF_WORD: usize = 16;
const HALVES: usize = 512 / HALF_WORD;
/// Bits of an offset in a ring: of one with 2^15 elements.
const OFFSET: usize = 20;
/// Heads that are taken in one turn, at most.
const QUANTUM: u64 = 32;
/// What is said of the number of new heads, at most.
pub const NEWS: u64 = 32;
/// What is left when it is the last.
pub const LAST: u64 = 1;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    AimIndex,
    SumIndex,
    Index,
    IndexRow,
    IndexWord,
    Ahead,
    Compare,
    Ask,
    Room,
    SumHead,
    Head,
    HeadRow,
    HeadWord,
    Check,
    Give,
    Walked,
    AimArm,
    SumArm,
    Arm,
    Armed,
}

/// One turn at a time: from `go` until `over`.
#[derive(LogicBlock, BlockDefault)]
pub struct Ring {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not while a read or a write is in flight.
    pub reset: Signal<In, Bit>,
    /// A turn begins, of `queue`, whose line is `row`: with what the turn changes, from the cycle behind the change on.
    pub go: Signal<In, Bit>,
    pub queue: Signal<In, Bits<16>>,
    pub row: Signal<In, VqAvail>,
    /// It is a look: nothing is armed, and its first chain is the last.
    pub looks: Signal<In, Bit>,
    /// The transmit unit has no room for one more chain of this queue.
    pub full: Signal<In, Bit>,
    /// Somebody waits for the turn's end: the next chain is its last.
    pub hurry: Signal<In, Bit>,
    /// Pulses: one head less is new; one has been given to the walker; one has come into stock; the ring is lost; the queue wants another turn; the turn is over.
    pub passed: Signal<Out, Bit>,
    pub gave: Signal<Out, Bit>,
    pub found: Signal<Out, Bit>,
    pub lost: Signal<Out, Bit>,
    pub again: Signal<Out, Bit>,
    pub over: Signal<Out, Bit>,
    /// Pulse: a head was none, or the ring is lost.
    pub told_valid: Signal<Out, Bit>,
    pub told: Signal<Out, VqTold>,
    pub m_rd: MsgSrc<RdCmd>,
    pub s_row: MsgSink<RdRow>,
    pub m_head: MsgSrc<VqHead>,
    pub m_put: MsgSrc<VqPut>,
    pub s_done: MsgSink<WrDone>,
    pub m_ask: MsgSrc<VqNotify>,
    pub s_room: MsgSink<Room>,
    state: DFF<State>,
    /// Heads that are new, and those of this turn.
    left: DFF<Bits<16>>,
    count: DFF<Bits<8>>,
    /// The driver has been told where to notify, in this turn.
    armed: DFF<Bit>,
    data: DFF<Bits<512>>,
    data_at: DFF<Bits<64>>,
    data_valid: DFF<Bit>,
    failed: DFF<Bit>,
    /// A head has been given since the index was read.
    given: DFF<Bit>,
    /// What is said with the next head: how many are new from it on. A look is for one.
    news: DFF<Bits<6>>,
    head: DFF<Bits<16>>,
    /// Decided one cycle before it is used: the area and the offset of what is read or written next, its place, the word that was found there, bits of a place in the ring.
    base: DFF<Bits<64>>,
    offset: DFF<Bits<OFFSET>>,
    at: DFF<Bits<64>>,
    word: DFF<Bits<16>>,
    mask: DFF<Bits<16>>,
    /// Offsets of the next head, and of that behind it.
    this: DFF<Bits<OFFSET>>,
    next: DFF<Bits<OFFSET>>,
    place: Sum<64>,
    #[init(std::array::from_fn(|i| Slice::new(HALF_WORD * i)))]
    halves: [Slice<512, 16>; HALVES],
    half: IndexMux<Bits<16>, HALVES, 5>,
    #[init(Constant::new((!63u64).to_bits()))]
    whole_rows: Constant<Bits<64>>,
    #[init(Constant::new(1u64.to_bits()))]
    one_row: Constant<Bits<4>>,
    up: Signal<Local, Bits<16>>,
    slot: Signal<Local, Bits<16>>,
    slot_next: Signal<Local, Bits<16>>,
    elements: Signal<Local, Bits<OFFSET>>,
    row_of: Signal<Local, Bits<64>>,
    ahead: Signal<Local, Bits<16>>,
    twice: Signal<Local, Bits<32>>,
    cause: Signal<Local, Bits<5>>,
    loses: Signal<Local, Bit>,
    passes: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    turn_over: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Ring {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, left, count, armed, data, data_at, data_valid, failed, given, news, head, base, offset, at, word, mask, this, next);
        // Where it is read: the index, or the next head; where it is armed: behind the used ring. Area and offset are chosen a cycle before they are added.
        self.mask.d.next = self.row.val().size - 1;
        self.up.next = self.row.val().fetch + 1;
        self.slot.next = self.row.val().fetch & self.mask.q.val();
        self.slot_next.next = self.up.val() & self.mask.q.val();
        self.this.d.next = (bit_cast::<OFFSET, 16>(self.slot.val()) << LG_HEAD) + HEAD;
        self.next.d.next = (bit_cast::<OFFSET, 16>(self.slot_next.val()) << LG_HEAD) + HEAD;
        self.elements.next = bit_cast::<OFFSET, 16>(self.row.val().size) << LG_ELEM;
        self.place.a.next = self.base.q.val();
        self.place.b.next = bit_cast::<64, OFFSET>(self.offset.q.val());
        self.row_of.next = self.at.q.val() & self.whole_rows.val();
        for i in 0..HALVES {
            self.halves[i].x.next = self.data.q.val();
            self.half.x[i].next = self.halves[i].y.val();
        }
        self.half.sel.next = self.at.q.val().get_bits::<5>(1);
        self.ahead.next = self.word.q.val() - self.row.val().fetch;
        self.m_rd.valid.next = false;
        self.m_rd.data.next.iova = self.row_of.val();
        self.m_rd.data.next.function = self.row.val().function;
        self.m_rd.data.next.rows = self.one_row.val();
        self.m_rd.data.next.tag = bits::<8>(0);
        self.s_row.ready.next = (self.state.q.val() == State::IndexRow) | (self.state.q.val() == State::HeadRow);
        self.m_head.valid.next = self.state.q.val() == State::Give;
        self.m_head.data.next.queue = self.queue.val();
        self.m_head.data.next.function = self.row.val().function;
        self.m_head.data.next.receive = self.row.val().receive;
        self.m_head.data.next.indirect = self.row.val().indirect;
        self.m_head.data.next.merged = self.row.val().merged;
        self.m_head.data.next.sums = self.row.val().sums;
        self.m_head.data.next.packed = false;
        self.m_head.data.next.wrap = false;
        self.m_head.data.next.desc = self.row.val().desc;
        self.m_head.data.next.size = self.row.val().size;
        self.m_head.data.next.head = self.head.q.val();
        self.m_head.data.next.keeps = self.given.q.val();
        self.m_head.data.next.news = self.news.q.val();
        self.twice.next = bit_cast::<32, 16>(self.row.val().fetch);
        self.m_put.valid.next = self.state.q.val() == State::Arm;
        self.m_put.data.next.iova = self.at.q.val();
        self.m_put.data.next.function = self.row.val().function;
        self.m_put.data.next.wide = false;
        self.m_put.data.next.data = self.twice.val() | (self.twice.val() << 16);
        self.s_done.ready.next = self.state.q.val() == State::Armed;
        self.m_ask.valid.next = self.state.q.val() == State::Ask;
        self.m_ask.data.next.queue = self.queue.val();
        self.s_room.ready.next = (self.state.q.val() == State::Room) | (self.state.q.val() == State::Walked);
        self.cause.next = bits::<5>(VirtioCause::RingDma as u64);
        self.loses.next = false;
        self.passes.next = false;
        self.ends.next = false;
        self.gave.next = false;
        self.found.next = false;
        self.again.next = false;
        self.told_valid.next = false;
        self.told.next.queue = self.queue.val();
        self.turn_over.next = (self.count.q.val() >= QUANTUM) | self.hurry.val();

        match self.state.q.val() {
            State::Idle => {
                self.count.d.next = bits::<8>(0);
                self.armed.d.next = false;
                self.failed.d.next = false;
                self.data_valid.d.next = false;
                self.base.d.next = self.row.val().driver;
                self.offset.d.next = bits::<OFFSET>(INDEX);
                if self.go.val() {
                    self.state.d.next = State::SumIndex;
                }
            }
            State::AimIndex => {
                self.base.d.next = self.row.val().driver;
                self.offset.d.next = bits::<OFFSET>(INDEX);
                self.state.d.next = State::SumIndex;
            }
            State::SumIndex => {
                self.at.d.next = self.place.y.val();
                self.state.d.next = State::Index;
            }
            State::Index => {
                self.m_rd.valid.next = true;
                if self.m_rd.ready.val() {
                    self.state.d.next = State::IndexRow;
                }
            }
            State::IndexRow => {
                // Heads are read anew behind a new index.
                self.data_valid.d.next = false;
                self.given.d.next = false;
                self.data.d.next = self.s_row.data.val().data;
                self.failed.d.next = self.s_row.data.val().err;
                if self.s_row.valid.val() {
                    self.state.d.next = State::IndexWord;
                }
            }
            State::IndexWord => {
                self.word.d.next = self.half.y.val();
                self.state.d.next = State::Ahead;
            }
            State::Ahead => {
                self.left.d.next = self.ahead.val();
                self.offset.d.next = self.this.q.val();
                self.state.d.next = State::Compare;
            }
            State::Compare => {
                if self.failed.q.val() {
                    self.loses.next = true;
                } else if self.left.q.val() > self.row.val().size {
                    self.loses.next = true;
                    self.cause.next = bits::<5>(VirtioCause::AvailJump as u64);
                } else if !self.left.q.val().any() {
                    self.state.d.next = State::AimArm;
                    if self.armed.q.val() | !self.row.val().events | self.looks.val() {
                        self.ends.next = true;
                    }
                } else if self.row.val().receive {
                    self.state.d.next = State::Ask;
                } else {
                    self.state.d.next = State::SumHead;
                }
            }
            State::Ask => {
                if self.m_ask.ready.val() {
                    self.state.d.next = State::Room;
                }
            }
            State::Room => {
                if self.s_room.valid.val() {
                    self.state.d.next = State::SumHead;
                    self.ends.next = !self.s_room.data.val().room;
                }
            }
            State::SumHead => {
                self.at.d.next = self.place.y.val();
                self.state.d.next = State::Head;
            }
            State::Head => {
                if self.full.val() {
                    self.again.next = true;
                    self.ends.next = true;
                } else if self.data_valid.q.val() & (self.data_at.q.val() == self.row_of.val()) {
                    self.state.d.next = State::HeadWord;
                } else {
                    self.m_rd.valid.next = true;
                    if self.m_rd.ready.val() {
                        self.data_at.d.next = self.row_of.val();
                        self.state.d.next = State::HeadRow;
                    }
                }
            }
            State::HeadRow => {
                self.data.d.next = self.s_row.data.val().data;
                self.failed.d.next = self.s_row.data.val().err;
                self.data_valid.d.next = true;
                if self.s_row.valid.val() {
                    self.state.d.next = State::HeadWord;
                }
            }
            State::HeadWord => {
                self.word.d.next = self.half.y.val();
                self.state.d.next = State::Check;
            }
            State::Check => {
                self.news.d.next = bits::<6>(NEWS);
                if self.left.q.val() < NEWS {
                    self.news.d.next = self.left.q.val().get_bits::<6>(0);
                }
                if self.looks.val() {
                    self.news.d.next = bits::<6>(LAST);
                }
                self.head.d.next = self.word.q.val();
                self.state.d.next = State::Give;
                if self.failed.q.val() {
                    self.loses.next = true;
                } else if self.word.q.val() >= self.row.val().size {
                    self.cause.next = bits::<5>(VirtioCause::BadHead as u64);
                    self.told_valid.next = true;
                    self.passes.next = true;
                }
            }
            State::Give => {
                if self.m_head.ready.val() {
                    self.gave.next = true;
                    self.given.d.next = true;
                    self.passes.next = true;
                    if self.row.val().receive {
                        self.state.d.next = State::Walked;
                    }
                }
            }
            State::Walked => {
                // Its chain is in stock: is there room for one more?
                self.found.next = true;
                if self.s_room.valid.val() {
                    self.state.d.next = State::SumHead;
                    if !self.left.q.val().any() {
                        self.state.d.next = State::AimIndex;
                    }
                    if !self.s_room.data.val().room | self.looks.val() {
                        self.ends.next = true;
                    } else if self.turn_over.val() {
                        self.again.next = true;
                        self.ends.next = true;
                    }
                }
            }
            State::AimArm => {
                self.base.d.next = self.row.val().device;
                self.offset.d.next = self.elements.val() + HEAD;
                self.state.d.next = State::SumArm;
            }
            State::SumArm => {
                self.at.d.next = self.place.y.val();
                self.state.d.next = State::Arm;
            }
            State::Arm => {
                if self.m_put.ready.val() {
                    self.state.d.next = State::Armed;
                }
            }
            State::Armed => {
                self.armed.d.next = true;
                if self.s_done.valid.val() {
                    self.state.d.next = State::AimIndex;
                    if self.s_done.data.val().err {
                        self.loses.next = true;
                    }
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        // One head less, and, of a transmit queue or one that was none, on to the next.
        if self.passes.val() {
            self.offset.d.next = self.next.q.val();
            self.left.d.next = self.left.q.val() - 1;
            self.count.d.next = self.count.q.val() + 1;
            self.armed.d.next = false;
            if !self.row.val().receive | (self.state.q.val() == State::Check) {
                self.state.d.next = State::SumHead;
                if self.left.q.val() == LAST {
                    self.state.d.next = State::AimIndex;
                }
                if self.turn_over.val() {
                    self.again.next = true;
                    self.ends.next = true;
                }
            }
        }
        if self.loses.val() {
            self.told_valid.next = true;
            self.ends.next = true;
        }
        if self.ends.val() | self.reset.val() {
            self.state.d.next = State::Idle;
        }
        self.passed.next = self.passes.val();
        self.lost.next = self.loses.val();
        self.over.next = self.ends.val();
        self.told.next.cause = self.cause.val();
        self.told.next.lost = self.loses.val();
    }
}
