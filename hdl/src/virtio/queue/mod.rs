//! The available side: whose turn it is, and which heads are new in its ring. See README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::context::line::CtlLine;
use crate::msg::{CtlReq, CtlResp, RdCmd, RdRow, VqHead, VqLooked, VqNotify, VqPut, VqTold, WrDone};
use crate::prim::mux::IndexMux;
use crate::prim::pack::Slice;
use crate::prim::ram::Ram;
use crate::prim::sum::Sum;
use crate::records::VqAvail;
use crate::stream::MsgSlice;
use crate::virtio::stock::Room;
use crate::virtio::turns::Turns;
use ferric_abi::codes::VirtioCause;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_notify", &["s_refill"]), // notifications merge: neither waits for a turn
    ("s_refill", &[]),
    ("s_row", &[]),
    ("s_done", &[]),
    ("s_room", &[]),
    ("s_ctl", &["m_rd", "s_row", "m_head", "m_put", "s_done", "m_ask", "s_room", "m_give_up", "m_looked", "m_ctl"]), // between turns
    ("s_look", &["m_rd", "s_row", "m_head", "m_put", "s_done", "m_ask", "s_room", "m_give_up", "m_ctl"]),            // so are looks
    ("m_ctl", &[]),
];

/// Bytes of an available ring in front of its heads, of its index' place, and of a used ring in front of its elements.
const HEAD: u64 = super::RING_HEAD;
const INDEX: u64 = 2;
/// log2 of a used element's bytes.
const LG_ELEM: usize = 3;
/// Bits of an index, a head, an event, and how many stand in a row.
const HALF_WORD: usize = 16;
const HALVES: usize = 512 / HALF_WORD;
/// Heads that are taken in one turn, at most.
const QUANTUM: u64 = 32;
/// What is left when it is the last.
const LAST: u64 = 1;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Sweep,
    Idle,
    Line,
    Lines,
    Load,
    Begin,
    Route,
    GiveUp,
    AimIndex,
    Index,
    IndexRow,
    IndexWord,
    Ahead,
    Compare,
    Ask,
    Room,
    AimHead,
    Head,
    HeadRow,
    HeadWord,
    Check,
    Give,
    Walked,
    AimArm,
    Arm,
    Armed,
    Store,
    Looked,
}

/// `2^LQ` queues, one turn at a time.
#[derive(LogicBlock, BlockDefault)]
#[demand((1..=15).contains(&LQ), "a queue number has 16 bits, the list of turns a place for each")]
pub struct Queue<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not while a read or a write is in flight. All lines become zero (`2^LQ` cycles).
    pub reset: Signal<In, Bit>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// The driver's, and the stock's; taken at once.
    pub s_notify: MsgSink<VqNotify>,
    pub s_refill: MsgSink<VqNotify>,
    pub m_rd: MsgSrc<RdCmd>,
    pub s_row: MsgSink<RdRow>,
    pub m_head: MsgSrc<VqHead>,
    pub m_put: MsgSrc<VqPut>,
    pub s_done: MsgSink<WrDone>,
    /// To the stock: whether there is room for a chain. The answer comes to the question, and to each head of a receive queue when its chain is in stock.
    pub m_ask: MsgSrc<VqNotify>,
    pub s_room: MsgSink<Room>,
    /// The transmit unit has room for one more chain.
    pub tx_room: Signal<In, Bit>,
    /// To the receive unit: all that is in stock of a queue that does not run.
    pub m_give_up: MsgSrc<VqNotify>,
    /// The receive unit's, for whose frame there is not enough in stock: a turn of this queue at once, which ends with its first chain, and whether one has come.
    pub s_look: MsgSink<VqNotify>,
    pub m_looked: MsgSrc<VqLooked>,
    /// Pulse: a head was none, or the ring is lost.
    pub told_valid: Signal<Out, Bit>,
    pub told: Signal<Out, VqTold>,
    ctl: CtlLine<VqAvail, LQ>,
    rows: Ram<VqAvail, LQ>,
    turns: Turns<LQ>,
    asked: MsgSlice<VqNotify>,
    state: DFF<State>,
    sweep: DFF<Bits<LQ>>,
    queue: DFF<Bits<16>>,
    row: DFF<VqAvail>,
    /// Heads that are new, and those of this turn.
    left: DFF<Bits<16>>,
    count: DFF<Bits<8>>,
    /// The driver has been told where to notify, in this turn.
    armed: DFF<Bit>,
    /// It is another turn's at once.
    again: DFF<Bit>,
    /// The turn is a look; a chain has come.
    looks: DFF<Bit>,
    found: DFF<Bit>,
    data: DFF<Bits<512>>,
    data_at: DFF<Bits<64>>,
    data_valid: DFF<Bit>,
    failed: DFF<Bit>,
    head: DFF<Bits<16>>,
    /// Decided one cycle before it is used: the place that is read or written, the word that was found there, bits of a place in the ring.
    at: DFF<Bits<64>>,
    word: DFF<Bits<16>>,
    mask: DFF<Bits<16>>,
    place: Sum<64>,
    #[init(std::array::from_fn(|i| Slice::new(HALF_WORD * i)))]
    halves: [Slice<512, 16>; HALVES],
    half: IndexMux<Bits<16>, HALVES, 5>,
    #[init(Constant::new((!63u64).to_bits()))]
    whole_rows: Constant<Bits<64>>,
    #[init(Constant::new(1u64.to_bits()))]
    one_row: Constant<Bits<4>>,
    #[init(Constant::new(VqAvail::default()))]
    zero: Constant<VqAvail>,
    queue_line: Signal<Local, Bits<LQ>>,
    slot: Signal<Local, Bits<16>>,
    heads: Signal<Local, Bits<64>>,
    elements: Signal<Local, Bits<64>>,
    row_of: Signal<Local, Bits<64>>,
    ahead: Signal<Local, Bits<16>>,
    twice: Signal<Local, Bits<32>>,
    cause: Signal<Local, Bits<5>>,
    lost: Signal<Local, Bit>,
    done_with: Signal<Local, Bit>,
    turn_over: Signal<Local, Bit>,
    full: Signal<Local, Bit>,
}

#[kernel]
impl<const LQ: usize> Logic for Queue<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, sweep, queue, row, left, count, armed, again, looks, found, data, data_at, data_valid, failed, head, at, word, mask);
        clock!(self, clock, ctl, rows, turns, asked);
        self.ctl.reset.next = self.reset.val();
        self.turns.reset.next = self.reset.val();
        self.asked.reset.next = self.reset.val();
        MsgSink::<VqNotify>::link(&mut self.s_look, &mut self.asked.s);
        self.asked.m.ready.next = false;
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.ctl.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.ctl.m_ctl);
        MsgSink::<VqNotify>::link(&mut self.s_notify, &mut self.turns.s_notify);
        MsgSink::<VqNotify>::link(&mut self.s_refill, &mut self.turns.s_refill);
        self.turns.again.next = false;
        self.turns.queue.next = self.queue.q.val();
        self.turns.m.ready.next = false;
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

        // Where it is read: the index, or the next head; where it is armed: behind the used ring.
        self.mask.d.next = self.row.q.val().size - 1;
        self.slot.next = self.row.q.val().fetch & self.mask.q.val();
        self.heads.next = bit_cast::<64, 16>(self.slot.val()) << 1;
        self.elements.next = bit_cast::<64, 16>(self.row.q.val().size) << LG_ELEM;
        self.place.a.next = self.row.q.val().driver;
        self.place.b.next = self.heads.val() + HEAD;
        if self.state.q.val() == State::AimIndex {
            self.place.b.next = bits::<64>(INDEX);
        }
        if self.state.q.val() == State::AimArm {
            self.place.a.next = self.row.q.val().device;
            self.place.b.next = self.elements.val() + HEAD;
        }
        self.row_of.next = self.at.q.val() & self.whole_rows.val();
        for i in 0..HALVES {
            self.halves[i].x.next = self.data.q.val();
            self.half.x[i].next = self.halves[i].y.val();
        }
        self.half.sel.next = self.at.q.val().get_bits::<5>(1);
        self.ahead.next = self.word.q.val() - self.row.q.val().fetch;
        self.m_rd.valid.next = false;
        self.m_rd.data.next.iova = self.row_of.val();
        self.m_rd.data.next.function = self.row.q.val().function;
        self.m_rd.data.next.rows = self.one_row.val();
        self.m_rd.data.next.tag = bits::<8>(0);
        self.s_row.ready.next = (self.state.q.val() == State::IndexRow) | (self.state.q.val() == State::HeadRow);
        self.m_head.valid.next = self.state.q.val() == State::Give;
        self.m_head.data.next.queue = self.queue.q.val();
        self.m_head.data.next.function = self.row.q.val().function;
        self.m_head.data.next.receive = self.row.q.val().receive;
        self.m_head.data.next.indirect = self.row.q.val().indirect;
        self.m_head.data.next.merged = self.row.q.val().merged;
        self.m_head.data.next.desc = self.row.q.val().desc;
        self.m_head.data.next.size = self.row.q.val().size;
        self.m_head.data.next.head = self.head.q.val();
        self.twice.next = bit_cast::<32, 16>(self.row.q.val().fetch);
        self.m_put.valid.next = self.state.q.val() == State::Arm;
        self.m_put.data.next.iova = self.at.q.val();
        self.m_put.data.next.function = self.row.q.val().function;
        self.m_put.data.next.wide = false;
        self.m_put.data.next.data = self.twice.val() | (self.twice.val() << 16);
        self.s_done.ready.next = self.state.q.val() == State::Armed;
        self.m_ask.valid.next = self.state.q.val() == State::Ask;
        self.m_ask.data.next.queue = self.queue.q.val();
        self.s_room.ready.next = (self.state.q.val() == State::Room) | (self.state.q.val() == State::Walked);
        self.m_give_up.valid.next = self.state.q.val() == State::GiveUp;
        self.m_give_up.data.next.queue = self.queue.q.val();
        self.m_looked.valid.next = self.state.q.val() == State::Looked;
        self.m_looked.data.next.queue = self.queue.q.val();
        self.m_looked.data.next.found = self.found.q.val();
        self.cause.next = bits::<5>(VirtioCause::RingDma as u64);
        self.lost.next = false;
        self.told_valid.next = false;
        self.told.next.queue = self.queue.q.val();
        self.done_with.next = false;
        self.turn_over.next = self.count.q.val() >= QUANTUM;
        // All queues share the walker: a chain that would wait in it for its frame's turn is left to a later turn.
        self.full.next = !self.row.q.val().receive & !self.tx_room.val();

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
                self.count.d.next = bits::<8>(0);
                self.armed.d.next = false;
                self.again.d.next = false;
                self.looks.d.next = false;
                self.found.d.next = false;
                self.failed.d.next = false;
                self.data_valid.d.next = false;
                self.queue.d.next = self.turns.m.data.val().queue;
                if self.ctl.req.val() {
                    self.state.d.next = State::Line;
                } else if self.asked.m.valid.val() {
                    self.asked.m.ready.next = true;
                    self.queue.d.next = self.asked.m.data.val().queue;
                    self.looks.d.next = true;
                    self.state.d.next = State::Load;
                } else if self.turns.m.valid.val() {
                    self.turns.m.ready.next = true;
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
                self.row.d.next = self.rows.read_data.val();
                self.state.d.next = State::Route;
            }
            State::Route => {
                self.state.d.next = State::AimIndex;
                if !self.row.q.val().enabled | self.row.q.val().broken | (self.looks.q.val() & !self.row.q.val().receive) {
                    self.state.d.next = State::Idle;
                    if self.looks.q.val() {
                        self.state.d.next = State::Looked;
                    } else if self.row.q.val().receive & !self.row.q.val().enabled & !self.row.q.val().given_up {
                        self.state.d.next = State::GiveUp;
                    }
                } else if self.full.val() {
                    self.again.d.next = true;
                    self.state.d.next = State::Store;
                }
            }
            State::GiveUp => {
                // What comes back behind the last of them is counted like a chain: the queue is not empty before.
                if self.m_give_up.ready.val() {
                    self.row.d.next.taken = self.row.q.val().taken + 1;
                    self.row.d.next.given_up = true;
                    self.state.d.next = State::Store;
                }
            }
            State::AimIndex => {
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
                self.state.d.next = State::Compare;
            }
            State::Compare => {
                if self.failed.q.val() {
                    self.lost.next = true;
                } else if self.left.q.val() > self.row.q.val().size {
                    self.lost.next = true;
                    self.cause.next = bits::<5>(VirtioCause::AvailJump as u64);
                } else if !self.left.q.val().any() {
                    self.state.d.next = State::AimArm;
                    if self.armed.q.val() | !self.row.q.val().events | self.looks.q.val() {
                        self.state.d.next = State::Store;
                    }
                } else if self.row.q.val().receive {
                    self.state.d.next = State::Ask;
                } else {
                    self.state.d.next = State::AimHead;
                }
            }
            State::Ask => {
                if self.m_ask.ready.val() {
                    self.state.d.next = State::Room;
                }
            }
            State::Room => {
                if self.s_room.valid.val() {
                    self.state.d.next = State::Store;
                    if self.s_room.data.val().room {
                        self.state.d.next = State::AimHead;
                    }
                }
            }
            State::AimHead => {
                self.at.d.next = self.place.y.val();
                self.state.d.next = State::Head;
            }
            State::Head => {
                if self.full.val() {
                    self.again.d.next = true;
                    self.state.d.next = State::Store;
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
                self.head.d.next = self.word.q.val();
                self.state.d.next = State::Give;
                if self.failed.q.val() {
                    self.lost.next = true;
                } else if self.word.q.val() >= self.row.q.val().size {
                    self.cause.next = bits::<5>(VirtioCause::BadHead as u64);
                    self.told_valid.next = true;
                    self.done_with.next = true;
                }
            }
            State::Give => {
                if self.m_head.ready.val() {
                    self.row.d.next.taken = self.row.q.val().taken + 1;
                    self.done_with.next = true;
                    if self.row.q.val().receive {
                        self.state.d.next = State::Walked;
                    }
                }
            }
            State::Walked => {
                // Its chain is in stock: is there room for one more?
                self.found.d.next = true;
                if self.s_room.valid.val() {
                    self.state.d.next = State::Store;
                    if self.s_room.data.val().room & !self.looks.q.val() {
                        self.state.d.next = State::AimHead;
                        if !self.left.q.val().any() {
                            self.state.d.next = State::AimIndex;
                        }
                        if self.turn_over.val() {
                            self.again.d.next = true;
                            self.state.d.next = State::Store;
                        }
                    }
                }
            }
            State::AimArm => {
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
                        self.lost.next = true;
                    }
                }
            }
            State::Store => {
                self.rows.write_en.next = true;
                self.turns.again.next = self.again.q.val();
                self.state.d.next = State::Idle;
                if self.looks.q.val() {
                    self.state.d.next = State::Looked;
                }
            }
            State::Looked => {
                if self.m_looked.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        // One head less, and, of a transmit queue or one that was none, on to the next.
        if self.done_with.val() {
            self.row.d.next.fetch = self.row.q.val().fetch + 1;
            self.left.d.next = self.left.q.val() - 1;
            self.count.d.next = self.count.q.val() + 1;
            self.armed.d.next = false;
            if !self.row.q.val().receive | (self.state.q.val() == State::Check) {
                self.state.d.next = State::AimHead;
                if self.left.q.val() == LAST {
                    self.state.d.next = State::AimIndex;
                }
                if self.turn_over.val() {
                    self.again.d.next = true;
                    self.state.d.next = State::Store;
                }
            }
        }
        if self.lost.val() {
            self.told_valid.next = true;
            self.row.d.next.broken = true;
            self.state.d.next = State::Store;
        }
        self.told.next.cause = self.cause.val();
        if self.reset.val() {
            self.state.d.next = State::Sweep;
            self.sweep.d.next = bits::<LQ>(0);
        }
    }
}
