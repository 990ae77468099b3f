//! A turn of one queue with a packed ring: from one chain to the next, until none is available. See README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{VqHead, VqNotify, VqPut, VqTold, VqWalked, WrDone};
use crate::records::VqAvail;
use crate::virtio::stock::Room;
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::event;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Chains that are taken in one turn, at most.
const QUANTUM: u64 = 32;
/// Where wrap counter and flags stand in an event structure.
const LG_WRAP: usize = 15;
const LG_FLAGS: usize = 16;
/// Bits of a place that has not been brought back into the ring.
const WIDE: usize = 17;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Ask,
    Room,
    Full,
    Give,
    Walked,
    Found,
    Reduce,
    Step,
    Stocked,
    Arm,
    Armed,
}

/// One turn at a time: from `go` until `over`. The ports are those of [`super::ring::Ring`].
#[derive(LogicBlock, BlockDefault)]
pub struct Packed {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not while a write is in flight.
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
    /// Pulse: the place of the next chain is `fetch`, `wrap`.
    pub passed: Signal<Out, Bit>,
    pub fetch: Signal<Out, Bits<16>>,
    pub wrap: Signal<Out, Bit>,
    /// Pulses: a chain has been found, and its end will be shown; one has come into stock; the ring is lost; the queue wants another turn; the turn is over.
    pub gave: Signal<Out, Bit>,
    pub found: Signal<Out, Bit>,
    pub lost: Signal<Out, Bit>,
    pub again: Signal<Out, Bit>,
    pub over: Signal<Out, Bit>,
    /// Pulse: the ring cannot be armed.
    pub told_valid: Signal<Out, Bit>,
    pub told: Signal<Out, VqTold>,
    pub m_head: MsgSrc<VqHead>,
    pub s_walked: MsgSink<VqWalked>,
    pub m_put: MsgSrc<VqPut>,
    pub s_done: MsgSink<WrDone>,
    pub m_ask: MsgSrc<VqNotify>,
    pub s_room: MsgSink<Room>,
    state: DFF<State>,
    /// Chains of this turn.
    count: DFF<Bits<8>>,
    /// The driver has been told where to notify, in this turn.
    armed: DFF<Bit>,
    /// The walker has looked at this ring, in this turn.
    given: DFF<Bit>,
    walked: DFF<VqWalked>,
    /// Where the next chain is, one cycle after the other: behind this one; the same less a round; whether it is in the next round.
    sum: DFF<Bits<WIDE>>,
    less: DFF<Bits<WIDE>>,
    beyond: DFF<Bit>,
    #[init(Constant::new((1u64 << LG_WRAP).into()))]
    of_wrap: Constant<Bits<32>>,
    #[init(Constant::new((u64::from(event::DESC) << LG_FLAGS).into()))]
    one_event: Constant<Bits<32>>,
    size: Signal<Local, Bits<WIDE>>,
    reduced: Signal<Local, Bits<WIDE>>,
    place: Signal<Local, Bits<32>>,
    round: Signal<Local, Bits<32>>,
    loses: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    turn_over: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Packed {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, count, armed, given, walked, sum, less, beyond);
        self.m_head.valid.next = self.state.q.val() == State::Give;
        self.m_head.data.next.queue = self.queue.val();
        self.m_head.data.next.function = self.row.val().function;
        self.m_head.data.next.receive = self.row.val().receive;
        self.m_head.data.next.indirect = self.row.val().indirect;
        self.m_head.data.next.merged = self.row.val().merged;
        self.m_head.data.next.sums = self.row.val().sums;
        self.m_head.data.next.packed = true;
        self.m_head.data.next.wrap = self.row.val().wrap;
        self.m_head.data.next.desc = self.row.val().desc;
        self.m_head.data.next.size = self.row.val().size;
        self.m_head.data.next.head = self.row.val().fetch;
        self.m_head.data.next.keeps = self.given.q.val();
        // What comes behind it may not be there yet.
        self.m_head.data.next.news = bits::<6>(super::ring::LAST);
        self.s_walked.ready.next = self.state.q.val() == State::Walked;
        self.m_ask.valid.next = self.state.q.val() == State::Ask;
        self.m_ask.data.next.queue = self.queue.val();
        self.s_room.ready.next = (self.state.q.val() == State::Room) | (self.state.q.val() == State::Stocked);
        // The event that is wanted: that of the next chain's first descriptor.
        self.place.next = bit_cast::<32, 16>(self.row.val().fetch);
        self.round.next = bits::<32>(0);
        if self.row.val().wrap {
            self.round.next = self.of_wrap.val();
        }
        self.m_put.valid.next = self.state.q.val() == State::Arm;
        self.m_put.data.next.iova = self.row.val().device;
        self.m_put.data.next.function = self.row.val().function;
        self.m_put.data.next.wide = true;
        self.m_put.data.next.data = self.place.val() | self.round.val() | self.one_event.val();
        self.s_done.ready.next = self.state.q.val() == State::Armed;
        self.size.next = bit_cast::<WIDE, 16>(self.row.val().size);
        self.reduced.next = self.sum.q.val() - self.size.val();
        self.less.d.next = self.reduced.val();
        self.beyond.d.next = self.sum.q.val() >= self.size.val();
        self.fetch.next = self.sum.q.val().get_bits::<16>(0);
        self.wrap.next = self.row.val().wrap;
        if self.beyond.q.val() {
            self.fetch.next = self.less.q.val().get_bits::<16>(0);
            self.wrap.next = !self.row.val().wrap;
        }
        self.turn_over.next = (self.count.q.val() >= QUANTUM) | self.hurry.val();
        self.loses.next = false;
        self.ends.next = false;
        self.passed.next = false;
        self.gave.next = false;
        self.found.next = false;
        self.again.next = false;
        self.lost.next = false;
        self.told.next.queue = self.queue.val();
        self.told.next.lost = true;
        self.told.next.cause = bits::<5>(VirtioCause::RingDma as u64);

        match self.state.q.val() {
            State::Idle => {
                self.count.d.next = bits::<8>(0);
                self.armed.d.next = false;
                self.given.d.next = false;
                if self.go.val() {
                    self.state.d.next = State::Full;
                    if self.row.val().receive {
                        self.state.d.next = State::Ask;
                    }
                }
            }
            State::Ask => {
                if self.m_ask.ready.val() {
                    self.state.d.next = State::Room;
                }
            }
            State::Room => {
                if self.s_room.valid.val() {
                    self.state.d.next = State::Give;
                    self.ends.next = !self.s_room.data.val().room;
                }
            }
            State::Full => {
                self.state.d.next = State::Give;
                if self.full.val() {
                    self.again.next = true;
                    self.ends.next = true;
                }
            }
            State::Give => {
                if self.m_head.ready.val() {
                    self.given.d.next = true;
                    self.state.d.next = State::Walked;
                }
            }
            State::Walked => {
                self.walked.d.next = self.s_walked.data.val();
                if self.s_walked.valid.val() {
                    self.state.d.next = State::Found;
                }
            }
            State::Found => {
                self.sum.d.next = bit_cast::<WIDE, 16>(self.row.val().fetch) + bit_cast::<WIDE, 16>(self.walked.q.val().slots);
                self.count.d.next = self.count.q.val() + 1;
                self.state.d.next = State::Reduce;
                if self.walked.q.val().none {
                    self.state.d.next = State::Arm;
                    if self.armed.q.val() | !self.row.val().events | self.looks.val() {
                        self.ends.next = true;
                    }
                } else {
                    self.gave.next = true;
                    if self.walked.q.val().lost {
                        // The walker has told why, and shows the end of what there is.
                        self.lost.next = true;
                        self.state.d.next = State::Stocked;
                        self.ends.next = !self.row.val().receive;
                    }
                }
            }
            State::Reduce => {
                self.armed.d.next = false;
                self.state.d.next = State::Step;
            }
            State::Step => {
                self.passed.next = true;
                self.state.d.next = State::Stocked;
                if !self.row.val().receive {
                    self.state.d.next = State::Full;
                    if self.turn_over.val() {
                        self.again.next = true;
                        self.ends.next = true;
                    }
                }
            }
            State::Stocked => {
                // Its chain is in stock: is there room for one more?
                self.found.next = true;
                if self.s_room.valid.val() {
                    self.state.d.next = State::Give;
                    if !self.s_room.data.val().room | self.looks.val() | self.row.val().broken {
                        self.ends.next = true;
                    } else if self.turn_over.val() {
                        self.again.next = true;
                        self.ends.next = true;
                    }
                }
            }
            State::Arm => {
                if self.m_put.ready.val() {
                    self.state.d.next = State::Armed;
                }
            }
            State::Armed => {
                self.armed.d.next = true;
                if self.s_done.valid.val() {
                    self.state.d.next = State::Give;
                    if self.s_done.data.val().err {
                        self.loses.next = true;
                    }
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        self.told_valid.next = self.loses.val();
        if self.loses.val() {
            self.lost.next = true;
            self.ends.next = true;
        }
        if self.ends.val() | self.reset.val() {
            self.state.d.next = State::Idle;
        }
        self.over.next = self.ends.val();
    }
}
