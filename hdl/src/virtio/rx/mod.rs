//! Receive: a frame goes into the oldest chains of its queue, behind its header, or is dropped with a cause. See README.md.

pub mod fill;
pub mod jobs;

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{L4Verdict, MoveOp, VqChain, VqFrame, VqLooked, VqNotify, VqPiece, VqTake, VqTold, VqUse, WrDone};
use crate::prim::ram::Ram;
use crate::stream::MsgSlice;
use crate::virtio::turns::Turns;
use ferric_abi::codes::VirtioCause;
use ferric_hdl_derive::{kernel, BlockDefault};
use fill::Fill;
use jobs::{Job, Jobs};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // Frames wait for looks at their rings, for moves, and for a place behind those whose writes are not answered, never for a guest.
    ("s_frame", &["s_verdict", "m_take", "s_chain", "s_piece", "m_look", "s_looked", "m_move", "s_done", "m_use"]),
    ("s_verdict", &["s_frame", "m_take", "s_chain", "s_piece", "m_look", "s_looked", "m_move", "s_done", "m_use"]),
    ("s_give_up", &[]), // they merge
    ("s_bad", &[]),
    ("s_chain", &[]),
    ("s_looked", &[]),
    ("s_piece", &["m_move"]),
    ("s_done", &[]),
    ("m_move", &["s_frame", "s_verdict", "m_take", "s_chain", "s_piece", "m_look", "s_looked", "s_done", "m_use"]),
];

/// Bytes of the header.
const HEADER: u64 = super::HEADER;
/// Longest frame.
const LONGEST: u64 = super::LONGEST;
/// Looks at the ring for one frame, at most.
const LOOKS: u64 = 16;
/// Chains that a frame takes at most: as many as are in stock. log2 of those of all frames that are under way, and one frame's that have room.
const LG_LIST: usize = 7;
const ROOM: u64 = 1 << (LG_LIST - 1);

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Look,
    Chain,
    Add,
    Judge,
    Ask,
    Asked,
    Discard,
    Gone,
    Take,
    Taken,
    Fill,
    Note,
    Hand,
    Free,
    Mark,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Back {
    Answers,
    Read,
    Give,
}

/// A chain that a frame is in.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Part {
    id: Bits<16>,
    slots: Bits<16>,
    len: Bits<14>,
}

/// Of `2^LQ` queues: one frame at a time goes into its chains, or chains can only be given back; behind it those whose writes are not answered.
#[derive(LogicBlock, BlockDefault)]
pub struct Rx<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not while a write is in flight.
    pub reset: Signal<In, Bit>,
    pub s_frame: MsgSink<VqFrame>,
    /// Of each frame, whether its checksum is right.
    pub s_verdict: MsgSink<L4Verdict>,
    /// The stock's: chains of the queue that can only be given back may be the oldest.
    pub s_bad: MsgSink<VqNotify>,
    /// The queue unit's: all chains of the queue are only given back, and behind them goes a use that is none.
    pub s_give_up: MsgSink<VqNotify>,
    pub m_take: MsgSrc<VqTake>,
    pub s_chain: MsgSink<VqChain>,
    pub s_piece: MsgSink<VqPiece>,
    /// To the queue unit: what is in stock does not suffice; whether there is one chain more.
    pub m_look: MsgSrc<VqNotify>,
    pub s_looked: MsgSink<VqLooked>,
    /// To the mover; its writes' answers.
    pub m_move: MsgSrc<MoveOp>,
    pub s_done: MsgSink<WrDone>,
    pub m_use: MsgSrc<VqUse>,
    /// Pulse: a frame is delivered. `told`: one is not.
    pub delivered: Signal<Out, Bit>,
    pub told_valid: Signal<Out, Bit>,
    pub told: Signal<Out, VqTold>,
    frames: MsgSlice<VqFrame>,
    verdicts: MsgSlice<L4Verdict>,
    bad: Turns<LQ>,
    given_up: Turns<LQ>,
    fill: Fill,
    /// Frames behind `fill`, and their chains, until all of a frame are given back at once.
    jobs: Jobs,
    parts: Ram<Part, LG_LIST>,
    state: DFF<State>,
    back: DFF<Back>,
    /// A frame is in hand; else chains are looked for that can only be given back, or all are.
    carries: DFF<Bit>,
    all: DFF<Bit>,
    frame: DFF<VqFrame>,
    verified: DFF<Bit>,
    /// Its bytes with its header, a cycle later.
    whole: DFF<Bits<14>>,
    chain: DFF<VqChain>,
    /// Which chain in stock is looked at, from the oldest on; good ones in front of it, and their bytes, also with its own.
    ahead: DFF<Bits<8>>,
    good: DFF<Bits<7>>,
    sum: DFF<Bits<19>>,
    total: DFF<Bits<19>>,
    looks: DFF<Bits<5>>,
    /// The last look has found nothing.
    dry: DFF<Bit>,
    /// Parts of this frame; of all frames, those that are known and those that have been given back; those of the oldest; there is room for a frame's.
    count: DFF<Bits<7>>,
    known: DFF<Bits<8>>,
    given: DFF<Bits<8>>,
    of_oldest: DFF<Bits<7>>,
    roomy: DFF<Bit>,
    /// The part is no frame's.
    discards: DFF<Bit>,
    /// The frame in hand has been dropped in the cycle before, for this cause.
    dropped: DFF<Bit>,
    why: DFF<Bits<5>>,
    /// A chain has left the stock: there may be some behind it that can only be given back.
    again: DFF<Bit>,
    needed: Signal<Local, Bits<19>>,
    parts_out: Signal<Local, Bits<8>>,
    oldest: Signal<Local, Job>,
    of_next: Signal<Local, Bits<7>>,
    last: Signal<Local, Bit>,
    fails: Signal<Local, Bit>,
    hands: Signal<Local, Bit>,
    enough: Signal<Local, Bit>,
    short: Signal<Local, Bit>,
    lacks: Signal<Local, Bits<5>>,
    cause: Signal<Local, Bits<5>>,
    drops: Signal<Local, Bit>,
    useless: Signal<Local, Bit>,
}

#[kernel]
impl<const LQ: usize> Logic for Rx<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, back, carries, all, frame, verified, whole, chain, ahead, good, sum, total, looks, dry, count, known, given, of_oldest, roomy, discards, dropped, why, again);
        clock!(self, clock, frames, verdicts, bad, given_up, fill, jobs, parts);
        self.frames.reset.next = self.reset.val();
        self.verdicts.reset.next = self.reset.val();
        MsgSink::<VqFrame>::link(&mut self.s_frame, &mut self.frames.s);
        MsgSink::<L4Verdict>::link(&mut self.s_verdict, &mut self.verdicts.s);
        self.bad.reset.next = self.reset.val();
        self.given_up.reset.next = self.reset.val();
        self.fill.reset.next = self.reset.val();
        self.jobs.reset.next = self.reset.val();
        MsgSink::<VqNotify>::link(&mut self.s_bad, &mut self.bad.s_notify);
        MsgSink::<VqNotify>::link(&mut self.s_give_up, &mut self.given_up.s_notify);
        MsgSink::<VqPiece>::link(&mut self.s_piece, &mut self.fill.s_piece);
        MsgSrc::<MoveOp>::link(&mut self.m_move, &mut self.fill.m_move);
        MsgSink::<WrDone>::link(&mut self.s_done, &mut self.jobs.s_done);
        self.bad.s_refill.valid.next = false;
        self.bad.s_refill.data.next.queue = bits::<16>(0);
        self.bad.again.next = false;
        self.bad.queue.next = bits::<16>(0);
        self.bad.m.ready.next = false;
        self.given_up.s_refill.valid.next = false;
        self.given_up.s_refill.data.next.queue = bits::<16>(0);
        self.given_up.again.next = false;
        self.given_up.queue.next = bits::<16>(0);
        self.given_up.m.ready.next = false;
        self.frames.m.ready.next = false;
        self.verdicts.m.ready.next = false;
        // The oldest leaves; any may be looked at.
        self.m_take.valid.next = ((self.state.q.val() == State::Look) & self.roomy.q.val()) | (self.state.q.val() == State::Discard) | (self.state.q.val() == State::Take);
        self.m_take.data.next.queue = self.frame.q.val().queue;
        self.m_take.data.next.pop = self.state.q.val() != State::Look;
        self.m_take.data.next.mute = self.state.q.val() == State::Discard;
        self.m_take.data.next.ahead = bits::<8>(0);
        if self.state.q.val() == State::Look {
            self.m_take.data.next.ahead = self.ahead.q.val();
        }
        self.s_chain.ready.next = (self.state.q.val() == State::Chain) | (self.state.q.val() == State::Gone) | (self.state.q.val() == State::Taken);
        self.m_look.valid.next = self.state.q.val() == State::Ask;
        self.m_look.data.next.queue = self.frame.q.val().queue;
        self.s_looked.ready.next = true;
        self.whole.d.next = self.frame.q.val().len + HEADER;
        self.needed.next = bit_cast::<19, 14>(self.whole.q.val());
        self.enough.next = self.total.q.val() >= self.needed.val();
        self.short.next = self.chain.q.val().total < HEADER;
        self.useless.next = self.chain.q.val().bad | self.all.q.val();
        self.lacks.next = bits::<5>(VirtioCause::RxNoBuffer as u64);
        if self.good.q.val().any() {
            self.lacks.next = bits::<5>(VirtioCause::RxSmall as u64);
        }

        // What goes into the chains.
        self.fill.begins.next = self.state.q.val() == State::Add;
        self.fill.whole.next = self.whole.q.val();
        self.fill.handle.next = self.frame.q.val().handle;
        self.fill.chains.next = self.good.q.val();
        // The device's word counts where the driver takes it.
        self.fill.sound.next = self.verified.q.val() & self.chain.q.val().sums;
        self.fill.goes.next = self.state.q.val() == State::Fill;
        self.fill.count.next = self.chain.q.val().count;
        self.fill.owner.next = self.chain.q.val().function;
        self.fill.frees.next = self.state.q.val() == State::Free;
        self.parts.write_addr.next = self.known.q.val().get_bits::<LG_LIST>(0);
        self.parts.write_data.next.id = self.chain.q.val().id;
        self.parts.write_data.next.slots = self.chain.q.val().slots;
        self.parts.write_data.next.len = self.fill.written.val();
        self.parts.write_en.next = self.state.q.val() == State::Note;
        self.parts.read_addr.next = self.given.q.val().get_bits::<LG_LIST>(0);
        self.parts_out.next = self.known.q.val() - self.given.q.val();
        self.roomy.d.next = self.parts_out.val() <= ROOM;

        // Behind it: when all its writes are answered a frame's chains are given back.
        self.hands.next = ((self.state.q.val() == State::Hand) | (self.state.q.val() == State::Mark)) & !self.jobs.full.val();
        self.jobs.hands.next = self.hands.val();
        self.jobs.until.next = self.fill.sent.val();
        self.jobs.job.next.queue = self.frame.q.val().queue;
        self.jobs.job.next.count = self.count.q.val();
        self.jobs.job.next.discards = self.discards.q.val();
        self.jobs.job.next.mark = self.state.q.val() == State::Mark;
        self.oldest.next = self.jobs.oldest.val();
        self.of_next.next = self.of_oldest.q.val() + 1;
        self.last.next = self.oldest.val().mark | (self.of_next.val() == self.oldest.val().count);
        self.m_use.valid.next = self.back.q.val() == Back::Give;
        self.m_use.data.next.queue = self.oldest.val().queue;
        self.m_use.data.next.id = self.parts.read_data.val().id;
        self.m_use.data.next.slots = self.parts.read_data.val().slots;
        self.m_use.data.next.len = bit_cast::<32, 14>(self.parts.read_data.val().len);
        if self.oldest.val().discards | self.jobs.failed.val() {
            self.m_use.data.next.len = bits::<32>(0);
        }
        self.m_use.data.next.follows = !self.last.val();
        self.m_use.data.next.none = self.oldest.val().mark;
        self.jobs.taken.next = false;
        self.delivered.next = false;
        self.fails.next = false;
        self.drops.next = false;
        self.cause.next = bits::<5>(VirtioCause::RxSmall as u64);

        match self.state.q.val() {
            State::Idle => {
                self.frame.d.next = self.frames.m.data.val();
                self.verified.d.next = self.verdicts.m.data.val().good;
                self.carries.d.next = false;
                self.all.d.next = false;
                self.again.d.next = false;
                self.ahead.d.next = bits::<8>(0);
                self.good.d.next = bits::<7>(0);
                self.sum.d.next = bits::<19>(0);
                self.looks.d.next = bits::<5>(0);
                self.dry.d.next = false;
                if self.bad.m.valid.val() {
                    self.bad.m.ready.next = true;
                    self.frame.d.next.queue = self.bad.m.data.val().queue;
                    self.state.d.next = State::Look;
                } else if self.given_up.m.valid.val() {
                    self.given_up.m.ready.next = true;
                    self.frame.d.next.queue = self.given_up.m.data.val().queue;
                    self.all.d.next = true;
                    self.state.d.next = State::Look;
                } else if self.frames.m.valid.val() & self.verdicts.m.valid.val() {
                    self.frames.m.ready.next = true;
                    self.verdicts.m.ready.next = true;
                    self.carries.d.next = true;
                    self.state.d.next = State::Look;
                }
            }
            State::Look => {
                self.count.d.next = bits::<7>(0);
                self.discards.d.next = false;
                if self.roomy.q.val() & self.m_take.ready.val() {
                    self.state.d.next = State::Chain;
                }
            }
            State::Chain => {
                self.chain.d.next = self.s_chain.data.val();
                if self.s_chain.valid.val() {
                    self.state.d.next = State::Add;
                }
            }
            State::Add => {
                self.total.d.next = self.sum.q.val() + bit_cast::<19, 18>(self.chain.q.val().total);
                self.state.d.next = State::Judge;
            }
            State::Judge => {
                self.state.d.next = State::Look;
                self.dry.d.next = false;
                if !self.chain.q.val().valid {
                    self.state.d.next = State::Idle;
                    if self.all.q.val() {
                        self.state.d.next = State::Mark;
                    } else if self.carries.q.val() {
                        self.state.d.next = State::Ask;
                        if self.dry.q.val() | (self.looks.q.val() == LOOKS) {
                            self.drops.next = true;
                            self.cause.next = self.lacks.val();
                            self.state.d.next = State::Free;
                        }
                    }
                } else if self.useless.val() {
                    // One between those of a frame goes back with them.
                    self.ahead.d.next = self.ahead.q.val() + 1;
                    if !self.good.q.val().any() {
                        self.ahead.d.next = bits::<8>(0);
                        self.state.d.next = State::Discard;
                    }
                } else if !self.carries.q.val() {
                    self.state.d.next = State::Idle;
                } else if self.frame.q.val().len > LONGEST {
                    self.drops.next = true;
                    self.state.d.next = State::Free;
                } else if self.enough.val() {
                    self.good.d.next = self.good.q.val() + 1;
                    self.state.d.next = State::Take;
                } else if self.chain.q.val().merged & (self.good.q.val().any() | !self.short.val()) {
                    self.good.d.next = self.good.q.val() + 1;
                    self.ahead.d.next = self.ahead.q.val() + 1;
                    self.sum.d.next = self.total.q.val();
                } else {
                    self.drops.next = true;
                    self.state.d.next = State::Free;
                }
            }
            State::Ask => {
                if self.m_look.ready.val() {
                    self.looks.d.next = self.looks.q.val() + 1;
                    self.state.d.next = State::Asked;
                }
            }
            State::Asked => {
                // Another turn of the queue, before the look, may have brought what was missing: so what is in stock counts in the end.
                if self.s_looked.valid.val() {
                    self.dry.d.next = !self.s_looked.data.val().found;
                    self.state.d.next = State::Look;
                }
            }
            State::Discard => {
                self.discards.d.next = true;
                if self.m_take.ready.val() {
                    self.state.d.next = State::Gone;
                }
            }
            State::Gone => {
                self.chain.d.next = self.s_chain.data.val();
                if self.s_chain.valid.val() {
                    self.state.d.next = State::Note;
                }
            }
            State::Take => {
                if self.m_take.ready.val() {
                    self.state.d.next = State::Taken;
                }
            }
            State::Taken => {
                self.chain.d.next = self.s_chain.data.val();
                if self.s_chain.valid.val() {
                    self.state.d.next = State::Fill;
                }
            }
            State::Fill => {
                if self.fill.done.val() {
                    self.state.d.next = State::Note;
                }
            }
            State::Note => {
                self.known.d.next = self.known.q.val() + 1;
                self.count.d.next = self.count.q.val() + 1;
                self.state.d.next = State::Take;
                if self.discards.q.val() | self.fill.over.val() {
                    self.state.d.next = State::Hand;
                }
            }
            State::Hand => {
                // Behind a chain that can only be given back there may be another.
                if self.hands.val() {
                    self.state.d.next = State::Look;
                    if !self.discards.q.val() {
                        self.again.d.next = true;
                        self.state.d.next = State::Free;
                    }
                }
            }
            State::Free => {
                self.ahead.d.next = bits::<8>(0);
                self.good.d.next = bits::<7>(0);
                self.sum.d.next = bits::<19>(0);
                if self.fill.freed.val() {
                    self.carries.d.next = false;
                    self.state.d.next = State::Idle;
                    if self.again.q.val() {
                        self.state.d.next = State::Look;
                    }
                }
            }
            State::Mark => {
                if self.hands.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        match self.back.q.val() {
            Back::Answers => {
                self.of_oldest.d.next = bits::<7>(0);
                if self.jobs.over.val() {
                    self.back.d.next = Back::Read;
                    if !self.oldest.val().mark & !self.oldest.val().discards {
                        self.delivered.next = !self.jobs.failed.val();
                        self.fails.next = self.jobs.failed.val();
                        // What is dropped in front is told first.
                        if self.jobs.failed.val() & self.dropped.q.val() {
                            self.back.d.next = Back::Answers;
                        }
                    }
                }
            }
            Back::Read => {
                self.back.d.next = Back::Give;
            }
            Back::Give => {
                if self.m_use.ready.val() {
                    self.of_oldest.d.next = self.of_next.val();
                    self.back.d.next = Back::Read;
                    if !self.oldest.val().mark {
                        self.given.d.next = self.given.q.val() + 1;
                    }
                    if self.last.val() {
                        self.jobs.taken.next = true;
                        self.back.d.next = Back::Answers;
                    }
                }
            }
            _ => {
                self.back.d.next = Back::Answers;
            }
        }
        self.dropped.d.next = self.drops.val();
        self.why.d.next = self.cause.val();
        self.told_valid.next = self.dropped.q.val() | self.fails.val();
        self.told.next.queue = self.frame.q.val().queue;
        self.told.next.lost = false;
        self.told.next.cause = self.why.q.val();
        if !self.dropped.q.val() {
            self.told.next.queue = self.oldest.val().queue;
            self.told.next.cause = bits::<5>(VirtioCause::RxDma as u64);
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.back.d.next = Back::Answers;
            self.dropped.d.next = false;
            self.known.d.next = bits::<8>(0);
            self.given.d.next = bits::<8>(0);
        }
    }
}
