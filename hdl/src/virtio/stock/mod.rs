//! The stock: chains of receive queues that have been walked and wait for frames. See README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{VqChain, VqNotify, VqPiece, VqTake, VqTold};
use crate::prim::pack::Concat2;
use crate::prim::ram::Ram;
use crate::stream::MsgSlice;
use ferric_abi::codes::VirtioCause;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // What it asks of others is taken without their waiting: the queue waits for the room that it asked for, the receive unit for the chain, refills and bad chains merge.
    ("s_piece", &["m_room", "m_bad", "m_chain", "m_piece", "m_refill"]),
    ("s_ask", &["m_room", "m_bad", "m_chain", "m_piece", "m_refill"]),
    ("s_take", &["m_room", "m_bad", "m_chain", "m_piece", "m_refill"]),
    // Behind a chain that has been asked for.
    ("m_room", &["s_piece", "m_bad", "m_chain", "m_piece", "m_refill"]),
    ("m_chain", &["m_room", "m_bad", "m_piece", "m_refill"]),
    ("m_piece", &["m_room", "m_bad", "m_chain", "m_refill"]),
    ("m_refill", &["m_room", "m_bad", "m_chain", "m_piece"]),
];

/// Buffers of a chain, at most.
pub const MOST: u64 = 32;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Sweep,
    Idle,
    Load,
    Begin,
    Piece,
    Close,
    Tell,
    Nudge,
    Chain,
    Show,
    Read,
    Fetch,
    Buffer,
    Give,
    Popped,
    Refill,
}

/// Where a queue's chains and buffers stand: numbers of the oldest, and of the next.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Level {
    head: Bits<8>,
    tail: Bits<8>,
    first: Bits<8>,
    coming: Bits<8>,
}

/// Whether there is room for one more chain of the queue that asked, or whose chain has come.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Room {
    pub queue: Bits<16>,
    pub room: Bit,
}

/// A buffer.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Buffer {
    addr: Bits<64>,
    len: Bits<32>,
}

/// Of `2^LQ` queues, 2^`LB` buffers and as many chains each; `LA` = `LQ` + `LB`. One thing at a time.
#[derive(LogicBlock, BlockDefault)]
#[demand(LA == LQ + LB && (6..=7).contains(&LB) && MOST <= 1 << (LB - 1), "half of a queue's places are one chain's at least")]
pub struct Stock<const LQ: usize, const LB: usize, const LA: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous: nothing is in stock (`2^LQ` cycles).
    pub reset: Signal<In, Bit>,
    /// Chains of receive queues.
    pub s_piece: MsgSink<VqPiece>,
    pub s_ask: MsgSink<VqNotify>,
    pub m_room: MsgSrc<Room>,
    /// The receive unit's: a chain is shown; if it leaves, its buffers follow.
    pub s_take: MsgSink<VqTake>,
    pub m_chain: MsgSrc<VqChain>,
    pub m_piece: MsgSrc<VqPiece>,
    /// Little is left of a queue.
    pub m_refill: MsgSrc<VqNotify>,
    /// A chain has come that can only be given back. Taken without anybody's help.
    pub m_bad: MsgSrc<VqNotify>,
    /// Pulse: a chain has more buffers than are taken.
    pub told_valid: Signal<Out, Bit>,
    pub told: Signal<Out, VqTold>,
    pieces: MsgSlice<VqPiece>,
    asks: MsgSlice<VqNotify>,
    takes: MsgSlice<VqTake>,
    levels: Ram<Level, LQ>,
    buffers: Ram<Buffer, LA>,
    chains: Ram<VqChain, LA>,
    state: DFF<State>,
    sweep: DFF<Bits<LQ>>,
    queue: DFF<Bits<16>>,
    piece: DFF<VqPiece>,
    take: DFF<VqTake>,
    /// What is done: a piece comes, a chain is looked at or taken; else the queue asks.
    comes: DFF<Bit>,
    taking: DFF<Bit>,
    level: DFF<Level>,
    /// Buffers of the chain that comes, and of the one that is taken.
    count: DFF<Bits<9>>,
    left: DFF<Bits<8>>,
    chain: DFF<VqChain>,
    buffer_at: Concat2<LB, LQ, LA>,
    chain_at: Concat2<LB, LQ, LA>,
    #[init(Constant::new(((1u64 << LB) - MOST).into()))]
    most_filled: Constant<Bits<8>>,
    #[init(Constant::new((1u64 << LB).into()))]
    places: Constant<Bits<8>>,
    #[init(Constant::new((1u64 << (LB - 2)).into()))]
    few: Constant<Bits<8>>,
    #[init(Constant::new(Level::default()))]
    empty: Constant<Level>,
    line: Signal<Local, Bits<LQ>>,
    filled: Signal<Local, Bits<8>>,
    waiting: Signal<Local, Bits<8>>,
    room: Signal<Local, Bit>,
    place: Signal<Local, Bits<8>>,
    chain_place: Signal<Local, Bits<8>>,
    bad: Signal<Local, Bit>,
    crowded: Signal<Local, Bit>,
}

#[kernel]
impl<const LQ: usize, const LB: usize, const LA: usize> Logic for Stock<LQ, LB, LA> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, sweep, queue, piece, take, comes, taking, level, count, left, chain);
        clock!(self, clock, pieces, asks, takes, levels, buffers, chains);
        self.pieces.reset.next = self.reset.val();
        self.asks.reset.next = self.reset.val();
        self.takes.reset.next = self.reset.val();
        MsgSink::<VqPiece>::link(&mut self.s_piece, &mut self.pieces.s);
        MsgSink::<VqNotify>::link(&mut self.s_ask, &mut self.asks.s);
        MsgSink::<VqTake>::link(&mut self.s_take, &mut self.takes.s);
        self.pieces.m.ready.next = false;
        self.asks.m.ready.next = false;
        self.takes.m.ready.next = false;
        self.line.next = self.queue.q.val().get_bits::<LQ>(0);
        self.levels.read_addr.next = self.line.val();
        self.levels.write_addr.next = self.line.val();
        self.levels.write_data.next = self.level.q.val();
        self.levels.write_en.next = false;
        self.filled.next = self.level.q.val().tail - self.level.q.val().head;
        self.waiting.next = self.level.q.val().coming - self.level.q.val().first;
        self.room.next = (self.filled.val() <= self.most_filled.val()) & (self.waiting.val() != self.places.val());

        // Buffers of a chain that comes go behind those that count; they count when it is whole and good.
        self.place.next = self.level.q.val().tail + self.count.q.val().get_bits::<8>(0);
        if self.taking.q.val() {
            self.place.next = self.level.q.val().head;
        }
        self.buffer_at.a.next = self.place.val().get_bits::<LB>(0);
        self.buffer_at.b.next = self.line.val();
        self.buffers.read_addr.next = self.buffer_at.y.val();
        self.buffers.write_addr.next = self.buffer_at.y.val();
        self.buffers.write_data.next.addr = self.piece.q.val().addr;
        self.buffers.write_data.next.len = self.piece.q.val().len;
        self.buffers.write_en.next = false;
        self.chain_place.next = self.level.q.val().coming;
        if self.taking.q.val() {
            self.chain_place.next = self.level.q.val().first + self.take.q.val().ahead;
        }
        self.chain_at.a.next = self.chain_place.val().get_bits::<LB>(0);
        self.chain_at.b.next = self.line.val();
        self.chains.read_addr.next = self.chain_at.y.val();
        self.chains.write_addr.next = self.chain_at.y.val();
        self.crowded.next = self.count.q.val() > MOST;
        self.bad.next = self.piece.q.val().cause.any() | self.crowded.val();
        self.chains.write_data.next.valid = true;
        self.chains.write_data.next.merged = self.piece.q.val().merged;
        self.chains.write_data.next.sums = self.piece.q.val().sums;
        self.chains.write_data.next.bad = self.bad.val();
        self.chains.write_data.next.id = self.piece.q.val().id;
        self.chains.write_data.next.slots = self.piece.q.val().slots;
        self.chains.write_data.next.function = self.piece.q.val().function;
        self.chains.write_data.next.total = self.piece.q.val().total;
        self.chains.write_data.next.count = self.count.q.val().get_bits::<8>(0);
        if self.bad.val() {
            self.chains.write_data.next.count = bits::<8>(0);
        }
        self.chains.write_en.next = false;

        self.m_room.valid.next = self.state.q.val() == State::Tell;
        self.m_room.data.next.queue = self.queue.q.val();
        self.m_room.data.next.room = self.room.val();
        self.m_bad.valid.next = self.state.q.val() == State::Nudge;
        self.m_bad.data.next.queue = self.queue.q.val();
        self.m_chain.valid.next = self.state.q.val() == State::Show;
        self.m_chain.data.next = self.chain.q.val();
        self.m_piece.valid.next = self.state.q.val() == State::Give;
        self.m_piece.data.next = self.piece.q.val();
        self.m_refill.valid.next = self.state.q.val() == State::Refill;
        self.m_refill.data.next.queue = self.queue.q.val();
        self.told_valid.next = false;
        self.told.next.queue = self.queue.q.val();
        self.told.next.lost = false;
        self.told.next.cause = bits::<5>(VirtioCause::LongChain as u64);

        match self.state.q.val() {
            State::Sweep => {
                self.levels.write_addr.next = self.sweep.q.val();
                self.levels.write_data.next = self.empty.val();
                self.levels.write_en.next = true;
                self.sweep.d.next = self.sweep.q.val() + 1;
                if self.sweep.q.val().all() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Idle => {
                self.comes.d.next = false;
                self.taking.d.next = false;
                if self.takes.m.valid.val() {
                    self.takes.m.ready.next = true;
                    self.take.d.next = self.takes.m.data.val();
                    self.queue.d.next = self.takes.m.data.val().queue;
                    self.taking.d.next = true;
                    self.state.d.next = State::Load;
                } else if self.pieces.m.valid.val() {
                    self.pieces.m.ready.next = true;
                    self.piece.d.next = self.pieces.m.data.val();
                    self.queue.d.next = self.pieces.m.data.val().queue;
                    self.comes.d.next = true;
                    self.state.d.next = State::Load;
                } else if self.asks.m.valid.val() {
                    self.asks.m.ready.next = true;
                    self.queue.d.next = self.asks.m.data.val().queue;
                    self.state.d.next = State::Load;
                }
            }
            State::Load => {
                self.state.d.next = State::Begin;
            }
            State::Begin => {
                self.level.d.next = self.levels.read_data.val();
                self.state.d.next = State::Tell;
                if self.comes.q.val() {
                    self.state.d.next = State::Piece;
                    if self.piece.q.val().ends {
                        self.state.d.next = State::Close;
                    }
                } else if self.taking.q.val() {
                    self.state.d.next = State::Chain;
                }
            }
            State::Piece => {
                // Of a chain of too many those that are kept are never looked at.
                self.buffers.write_en.next = !self.crowded.val() & (self.count.q.val() != MOST);
                if !self.crowded.val() {
                    self.count.d.next = self.count.q.val() + 1;
                }
                self.state.d.next = State::Idle;
            }
            State::Close => {
                self.chains.write_en.next = true;
                self.level.d.next.coming = self.level.q.val().coming + 1;
                if !self.bad.val() {
                    self.level.d.next.tail = self.level.q.val().tail + self.count.q.val().get_bits::<8>(0);
                }
                self.told_valid.next = self.crowded.val() & !self.piece.q.val().cause.any();
                self.count.d.next = bits::<9>(0);
                self.state.d.next = State::Tell;
                if self.bad.val() {
                    self.state.d.next = State::Nudge;
                }
            }
            State::Nudge => {
                if self.m_bad.ready.val() {
                    self.state.d.next = State::Tell;
                }
            }
            State::Tell => {
                self.levels.write_en.next = true;
                if self.m_room.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Chain => {
                // The chain that is asked for stands on the memory's output in the next cycle.
                self.state.d.next = State::Read;
            }
            State::Read => {
                self.chain.d.next = self.chains.read_data.val();
                self.chain.d.next.valid = self.take.q.val().ahead < self.waiting.val();
                self.left.d.next = self.chains.read_data.val().count;
                self.state.d.next = State::Show;
                if self.take.q.val().pop {
                    self.level.d.next.first = self.level.q.val().first + 1;
                }
            }
            State::Show => {
                if self.m_chain.ready.val() {
                    self.state.d.next = State::Idle;
                    if self.take.q.val().pop {
                        self.state.d.next = State::Buffer;
                    }
                }
            }
            State::Fetch => {
                self.state.d.next = State::Buffer;
            }
            State::Buffer => {
                self.state.d.next = State::Give;
                self.piece.d.next.addr = self.buffers.read_data.val().addr;
                self.piece.d.next.len = self.buffers.read_data.val().len;
                if !self.left.q.val().any() {
                    self.state.d.next = State::Popped;
                } else if self.take.q.val().mute {
                    self.level.d.next.head = self.level.q.val().head + self.left.q.val();
                    self.state.d.next = State::Popped;
                }
            }
            State::Give => {
                if self.m_piece.ready.val() {
                    self.level.d.next.head = self.level.q.val().head + 1;
                    self.left.d.next = self.left.q.val() - 1;
                    self.state.d.next = State::Fetch;
                }
            }
            State::Popped => {
                self.levels.write_en.next = true;
                self.state.d.next = State::Idle;
                if self.waiting.val() < self.few.val() {
                    self.state.d.next = State::Refill;
                }
            }
            State::Refill => {
                if self.m_refill.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Sweep;
            self.sweep.d.next = bits::<LQ>(0);
            self.count.d.next = bits::<9>(0);
        }
    }
}
