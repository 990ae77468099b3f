//! Receive: a frame goes into the oldest chain of its queue, behind its header, or is dropped with a cause. See README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{MoveOp, VqChain, VqFrame, VqNotify, VqPiece, VqTake, VqTold, VqUse, WrDone};
use crate::prim::sum::Sum;
use crate::stream::MsgSlice;
use crate::virtio::turns::Turns;
use ferric_abi::codes::VirtioCause;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // One frame at a time: it waits for its moves and their answers, never for a guest.
    ("s_frame", &["m_take", "s_chain", "s_piece", "m_move", "s_done", "m_use"]),
    ("s_give_up", &["m_take", "s_chain", "s_piece", "m_move", "s_done", "m_use"]),
    ("s_bad", &[]), // they merge
    ("s_chain", &[]),
    ("s_piece", &["m_move"]),
    ("s_done", &[]),
];

/// Bytes of the header, of a page, and of a move that carries its bytes with it, at most.
const HEADER: u64 = super::HEADER;
const LG_PAGE: usize = 12;
const PAGE: u64 = 1 << LG_PAGE;
const DIRECT: u64 = 8;
/// The byte of the header in which the number of buffers stands: 1.
const BUFFERS: u64 = 10;
/// Longest frame.
const LONGEST: u64 = super::LONGEST;
/// What is left when it is the last.
const LAST: u64 = 1;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Look,
    Chain,
    Judge,
    Discard,
    Take,
    Piece,
    Fit,
    Cut,
    Move,
    Rest,
    Answers,
    Give,
    Free,
}

/// Of `2^LQ` queues, one frame at a time, or chains that can only be given back.
#[derive(LogicBlock, BlockDefault)]
pub struct Rx<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not while a write is in flight.
    pub reset: Signal<In, Bit>,
    pub s_frame: MsgSink<VqFrame>,
    /// The stock's: chains of the queue that can only be given back may be the oldest.
    pub s_bad: MsgSink<VqNotify>,
    /// The queue unit's: all chains of the queue are only given back.
    pub s_give_up: MsgSink<VqNotify>,
    pub m_take: MsgSrc<VqTake>,
    pub s_chain: MsgSink<VqChain>,
    pub s_piece: MsgSink<VqPiece>,
    /// To the mover; its writes' answers.
    pub m_move: MsgSrc<MoveOp>,
    pub s_done: MsgSink<WrDone>,
    pub m_use: MsgSrc<VqUse>,
    /// Pulse: a frame is delivered. `told`: one is not.
    pub delivered: Signal<Out, Bit>,
    pub told_valid: Signal<Out, Bit>,
    pub told: Signal<Out, VqTold>,
    frames: MsgSlice<VqFrame>,
    bad: Turns<LQ>,
    given_up: MsgSlice<VqNotify>,
    state: DFF<State>,
    /// A frame is in hand; else chains are looked for that can only be given back, or all are.
    carries: DFF<Bit>,
    all: DFF<Bit>,
    frame: DFF<VqFrame>,
    chain: DFF<VqChain>,
    /// Buffers of the chain that have not come; the one that has.
    behind: DFF<Bits<8>>,
    addr: DFF<Bits<64>>,
    room: DFF<Bits<32>>,
    /// Bytes of header and frame that have been ordered, and that are still to be.
    at: DFF<Bits<14>>,
    left: DFF<Bits<14>>,
    fits: DFF<Bits<14>>,
    cut: DFF<Bits<13>>,
    owed: DFF<Bits<10>>,
    failed: DFF<Bit>,
    /// A chain has left the stock: there may be some behind it that can only be given back.
    again: DFF<Bit>,
    next_at: Sum<64>,
    #[init(Constant::new(1u64.to_bits()))]
    one: Constant<Bits<64>>,
    #[init(Constant::new(PAGE.into()))]
    page_bytes: Constant<Bits<14>>,
    #[init(Constant::new(HEADER.into()))]
    header: Constant<Bits<14>>,
    #[init(Constant::new(BUFFERS.into()))]
    buffers_at: Constant<Bits<6>>,
    apart: Signal<Local, Bits<6>>,
    whole: Signal<Local, Bits<14>>,
    needed: Signal<Local, Bits<18>>,
    from: Signal<Local, Bits<64>>,
    in_page: Signal<Local, Bits<14>>,
    page: Signal<Local, Bits<14>>,
    head: Signal<Local, Bit>,
    todo: Signal<Local, Bits<14>>,
    place: Signal<Local, Bits<6>>,
    distance: Signal<Local, Bits<6>>,
    cause: Signal<Local, Bits<5>>,
    drops: Signal<Local, Bit>,
    sends: Signal<Local, Bit>,
    comes: Signal<Local, Bit>,
    useless: Signal<Local, Bit>,
}

#[kernel]
impl<const LQ: usize> Logic for Rx<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, carries, all, frame, chain, behind, addr, room, at, left, fits, cut, owed, failed, again);
        clock!(self, clock, frames, bad, given_up);
        self.frames.reset.next = self.reset.val();
        MsgSink::<VqFrame>::link(&mut self.s_frame, &mut self.frames.s);
        self.bad.reset.next = self.reset.val();
        self.given_up.reset.next = self.reset.val();
        MsgSink::<VqNotify>::link(&mut self.s_bad, &mut self.bad.s_notify);
        MsgSink::<VqNotify>::link(&mut self.s_give_up, &mut self.given_up.s);
        self.bad.s_refill.valid.next = false;
        self.bad.s_refill.data.next.queue = bits::<16>(0);
        self.bad.again.next = false;
        self.bad.queue.next = bits::<16>(0);
        self.bad.m.ready.next = false;
        self.given_up.m.ready.next = false;
        self.frames.m.ready.next = false;
        self.m_take.valid.next = (self.state.q.val() == State::Look) | (self.state.q.val() == State::Discard) | (self.state.q.val() == State::Take);
        self.m_take.data.next.queue = self.frame.q.val().queue;
        self.m_take.data.next.pop = self.state.q.val() != State::Look;
        self.m_take.data.next.mute = self.state.q.val() == State::Discard;
        self.s_chain.ready.next = self.state.q.val() == State::Chain;
        self.s_piece.ready.next = (self.state.q.val() == State::Piece) | (self.state.q.val() == State::Rest);
        self.whole.next = self.frame.q.val().len + HEADER;
        self.needed.next = bit_cast::<18, 14>(self.whole.val());
        self.useless.next = self.chain.q.val().bad | (self.all.q.val() & !self.carries.q.val());

        // A move: of the header with its bytes, of the frame from its buffer; inside of a page, and of the chain's buffer.
        self.from.next = self.addr.q.val();
        self.in_page.next = bit_cast::<14, LG_PAGE>(self.from.val().get_bits::<LG_PAGE>(0));
        self.page.next = self.page_bytes.val() - self.in_page.val();
        self.head.next = self.at.q.val() < HEADER;
        self.todo.next = self.left.q.val();
        if self.head.val() {
            self.todo.next = self.header.val() - self.at.q.val();
            if self.at.q.val() < (HEADER - DIRECT) as u64 {
                self.todo.next = bits::<14>(DIRECT);
            }
        }
        self.place.next = self.at.q.val().get_bits::<6>(0);
        self.apart.next = self.buffers_at.val() - self.place.val();
        self.distance.next = self.apart.val() << 3;
        self.m_move.valid.next = (self.state.q.val() == State::Move) | (self.state.q.val() == State::Free);
        self.m_move.data.next.handle = self.frame.q.val().handle;
        // The header's bytes are its own first ones, the frame's those behind the header.
        self.m_move.data.next.off = self.at.q.val() - HEADER;
        if self.head.val() {
            self.m_move.data.next.off = bits::<14>(0);
        }
        self.m_move.data.next.len = self.cut.q.val();
        self.m_move.data.next.iova = self.addr.q.val();
        self.m_move.data.next.function = self.chain.q.val().function;
        self.m_move.data.next.free = false;
        self.m_move.data.next.direct = self.head.val();
        self.m_move.data.next.data = bits::<64>(0);
        if (self.at.q.val() <= BUFFERS) & (self.at.q.val() > (BUFFERS - DIRECT) as u64) {
            self.m_move.data.next.data = self.one.val() << self.distance.val();
        }
        if self.state.q.val() == State::Free {
            self.m_move.data.next.len = bits::<13>(0);
            self.m_move.data.next.free = true;
            self.m_move.data.next.direct = false;
        }
        self.next_at.a.next = self.addr.q.val();
        self.next_at.b.next = bit_cast::<64, 13>(self.cut.q.val());
        self.sends.next = (self.state.q.val() == State::Move) & self.m_move.ready.val();
        self.s_done.ready.next = true;
        self.comes.next = self.s_done.valid.val();
        if self.sends.val() & !self.comes.val() {
            self.owed.d.next = self.owed.q.val() + 1;
        }
        if self.comes.val() & !self.sends.val() {
            self.owed.d.next = self.owed.q.val() - 1;
        }
        if self.comes.val() & self.s_done.data.val().err {
            self.failed.d.next = true;
        }
        self.m_use.valid.next = self.state.q.val() == State::Give;
        self.m_use.data.next.queue = self.frame.q.val().queue;
        self.m_use.data.next.id = self.chain.q.val().id;
        self.m_use.data.next.len = bit_cast::<32, 14>(self.whole.val());
        if self.useless.val() | self.failed.q.val() {
            self.m_use.data.next.len = bits::<32>(0);
        }
        self.delivered.next = false;
        self.drops.next = false;
        self.cause.next = bits::<5>(VirtioCause::RxSmall as u64);

        match self.state.q.val() {
            State::Idle => {
                self.failed.d.next = false;
                self.at.d.next = bits::<14>(0);
                self.frame.d.next = self.frames.m.data.val();
                self.carries.d.next = false;
                self.all.d.next = false;
                self.again.d.next = false;
                if self.bad.m.valid.val() {
                    self.bad.m.ready.next = true;
                    self.frame.d.next.queue = self.bad.m.data.val().queue;
                    self.state.d.next = State::Look;
                } else if self.given_up.m.valid.val() {
                    self.given_up.m.ready.next = true;
                    self.frame.d.next.queue = self.given_up.m.data.val().queue;
                    self.all.d.next = true;
                    self.state.d.next = State::Look;
                } else if self.frames.m.valid.val() {
                    self.frames.m.ready.next = true;
                    self.carries.d.next = true;
                    self.state.d.next = State::Look;
                }
            }
            State::Look => {
                if self.m_take.ready.val() {
                    self.state.d.next = State::Chain;
                }
            }
            State::Chain => {
                self.chain.d.next = self.s_chain.data.val();
                if self.s_chain.valid.val() {
                    self.state.d.next = State::Judge;
                }
            }
            State::Judge => {
                self.behind.d.next = self.chain.q.val().count;
                self.left.d.next = self.whole.val();
                self.state.d.next = State::Take;
                if !self.chain.q.val().valid {
                    self.state.d.next = State::Idle;
                    if self.carries.q.val() {
                        self.drops.next = true;
                        self.cause.next = bits::<5>(VirtioCause::RxNoBuffer as u64);
                        self.state.d.next = State::Free;
                    }
                } else if self.useless.val() {
                    self.state.d.next = State::Discard;
                } else if !self.carries.q.val() {
                    self.state.d.next = State::Idle;
                } else if (self.chain.q.val().total < self.needed.val()) | (self.frame.q.val().len > LONGEST) {
                    self.drops.next = true;
                    self.state.d.next = State::Free;
                }
            }
            State::Discard => {
                if self.m_take.ready.val() {
                    self.state.d.next = State::Give;
                }
            }
            State::Take => {
                if self.m_take.ready.val() {
                    self.state.d.next = State::Piece;
                }
            }
            State::Piece => {
                self.addr.d.next = self.s_piece.data.val().addr;
                self.room.d.next = self.s_piece.data.val().len;
                if self.s_piece.valid.val() {
                    self.behind.d.next = self.behind.q.val() - 1;
                    self.state.d.next = State::Fit;
                }
            }
            // The smallest of what is left of the page, of header or frame, and of the buffer.
            State::Fit => {
                self.fits.d.next = self.todo.val();
                if self.page.val() < self.todo.val() {
                    self.fits.d.next = self.page.val();
                }
                self.state.d.next = State::Cut;
            }
            State::Cut => {
                self.cut.d.next = self.fits.q.val().get_bits::<13>(0);
                if self.room.q.val() < bit_cast::<32, 14>(self.fits.q.val()) {
                    self.cut.d.next = self.room.q.val().get_bits::<13>(0);
                }
                self.state.d.next = State::Move;
            }
            State::Move => {
                if self.m_move.ready.val() {
                    self.addr.d.next = self.next_at.y.val();
                    self.room.d.next = self.room.q.val() - bit_cast::<32, 13>(self.cut.q.val());
                    self.at.d.next = self.at.q.val() + bit_cast::<14, 13>(self.cut.q.val());
                    self.left.d.next = self.left.q.val() - bit_cast::<14, 13>(self.cut.q.val());
                    self.state.d.next = State::Fit;
                    if self.left.q.val() == bit_cast::<14, 13>(self.cut.q.val()) {
                        self.state.d.next = State::Rest;
                        if !self.behind.q.val().any() {
                            self.state.d.next = State::Answers;
                        }
                    } else if self.room.q.val() == bit_cast::<32, 13>(self.cut.q.val()) {
                        self.state.d.next = State::Piece;
                    }
                }
            }
            // Buffers that the frame does not need.
            State::Rest => {
                if self.s_piece.valid.val() {
                    self.behind.d.next = self.behind.q.val() - 1;
                    if self.behind.q.val() == LAST {
                        self.state.d.next = State::Answers;
                    }
                }
            }
            State::Answers => {
                if !self.owed.q.val().any() {
                    self.state.d.next = State::Give;
                    self.delivered.next = !self.failed.q.val();
                    self.drops.next = self.failed.q.val();
                    self.cause.next = bits::<5>(VirtioCause::RxDma as u64);
                }
            }
            State::Give => {
                if self.m_use.ready.val() {
                    // Behind a chain that can only be given back there may be another.
                    self.state.d.next = State::Look;
                    if !self.useless.val() {
                        self.again.d.next = true;
                        self.state.d.next = State::Free;
                    }
                }
            }
            State::Free => {
                if self.m_move.ready.val() {
                    self.carries.d.next = false;
                    self.state.d.next = State::Idle;
                    if self.again.q.val() {
                        self.state.d.next = State::Look;
                    }
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        self.told_valid.next = self.drops.val();
        self.told.next.queue = self.frame.q.val().queue;
        self.told.next.cause = self.cause.val();
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.owed.d.next = bits::<10>(0);
        }
    }
}
