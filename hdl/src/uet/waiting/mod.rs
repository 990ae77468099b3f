//! Messages that find no PDC wait here, and let those to others pass. See README.md.

#[cfg(test)]
mod tests;

use super::pds::types::{Gone, Message};
use crate::bus::{MsgSink, MsgSrc};
use crate::prim::ram::Ram;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[("s", &["m"]), ("m", &[])];

/// Bits of a count of messages.
const COUNT: usize = 12;
/// Whose messages wait for one another: low bits of the peer, and of the tick.
const LOW: usize = 4;
/// The same and the mode, and how many of these there are.
const NAME: usize = LOW + 1;
const NAMES: usize = 1 << NAME;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// The oldest is read.
    Fetch,
    Fetched,
    /// Whether it may be offered.
    Judge,
    Rule,
    Offer,
    /// It goes behind all others.
    Back,
    Done,
}

/// `2^LM` messages.
#[derive(LogicBlock, BlockDefault)]
#[demand(LM < COUNT && NAMES == 32)]
pub struct Waiting<const LM: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets all.
    pub reset: Signal<In, Bit>,
    /// Time: those that wait are offered again in each tick.
    pub now: Signal<In, Bits<32>>,
    /// A message is taken when it has been taken at `m`, or waits.
    pub s: MsgSink<Message>,
    /// The next one that may have a PDC, or has no peer any more.
    pub m: MsgSrc<Message>,
    /// Not with `m.ready`: it has found no PDC and waits; another one is offered.
    pub later: Signal<In, Bit>,
    /// The engine has a place for a message.
    pub room: Signal<In, Bit>,
    /// Peers that have gone: messages to them are offered, whoever waits.
    pub gone: Signal<In, Gone>,
    /// None that waits is of those.
    pub swept: Signal<Out, Bit>,
    ring: Ram<Message, LM>,
    head: DFF<Bits<LM>>,
    tail: DFF<Bits<LM>>,
    count: DFF<Bits<COUNT>>,
    /// Those that are left of a round, which is one for whoever has gone, or for all; when it began, and whether one has come since.
    left: DFF<Bits<COUNT>>,
    sweeps: DFF<Bit>,
    clean: DFF<Bit>,
    began: DFF<Bits<LOW>>,
    fair: DFF<Bit>,
    /// Names of which one waits: those behind it wait, too.
    stuck: DFF<Bits<NAMES>>,
    held: DFF<Message>,
    /// It had waited.
    waited: DFF<Bit>,
    behind: DFF<Bit>,
    orphan: DFF<Bit>,
    state: DFF<State>,
    #[init(Constant::new((1u64 << LM).to_bits()))]
    most: Constant<Bits<COUNT>>,
    #[init(Constant::new(1u64.to_bits()))]
    one: Constant<Bits<NAMES>>,
    low: Signal<Local, Bits<LOW>>,
    name: Signal<Local, Bits<NAMES>>,
    bit: Signal<Local, Bits<NAMES>>,
    late: Signal<Local, Bit>,
    again: Signal<Local, Bit>,
}

#[kernel]
impl<const LM: usize> Logic for Waiting<LM> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, head, tail, count, left, sweeps, clean, began, fair, stuck, held, waited, behind, orphan, state);
        clock!(self, clock, ring);
        self.low.next = self.held.q.val().peer.get_bits::<LOW>(0);
        self.name.next = bit_cast::<NAMES, LOW>(self.low.val()) << 1;
        if self.held.q.val().rod {
            self.name.next = (bit_cast::<NAMES, LOW>(self.low.val()) << 1) | 1;
        }
        self.bit.next = self.one.val() << self.name.val();
        self.behind.d.next = (self.stuck.q.val() & self.bit.val()).any();
        self.orphan.d.next = self.gone.val().on & (self.gone.val().all | (self.held.q.val().peer == self.gone.val().peer));
        self.late.next = !(self.now.val().get_bits::<LOW>(0) == self.began.q.val());
        self.again.next = self.late.val() & self.count.q.val().any() & (self.fair.q.val() | !self.s.valid.val());
        self.swept.next = self.clean.q.val();
        if !self.gone.val().on {
            self.clean.d.next = false;
        }
        self.ring.read_addr.next = self.head.q.val();
        self.ring.write_addr.next = self.tail.q.val();
        self.ring.write_data.next = self.held.q.val();
        self.ring.write_en.next = false;
        self.m.data.next = self.held.q.val();
        self.m.valid.next = self.state.q.val() == State::Offer;
        self.s.ready.next = false;
        match self.state.q.val() {
            State::Idle => {
                if self.left.q.val().any() {
                    self.state.d.next = State::Fetch;
                } else if self.sweeps.q.val() {
                    self.sweeps.d.next = false;
                    self.clean.d.next = true;
                } else if self.gone.val().on & !self.clean.q.val() {
                    self.sweeps.d.next = true;
                    self.left.d.next = self.count.q.val();
                } else if self.again.val() {
                    self.left.d.next = self.count.q.val();
                    self.stuck.d.next = bits::<NAMES>(0);
                    self.began.d.next = self.now.val().get_bits::<LOW>(0);
                    self.fair.d.next = false;
                } else if self.s.valid.val() & !(self.count.q.val() == self.most.val()) {
                    self.held.d.next = self.s.data.val();
                    self.waited.d.next = false;
                    self.state.d.next = State::Judge;
                }
            }
            // The memory sees the oldest in this state and has it in the next.
            State::Fetch => {
                self.state.d.next = State::Fetched;
            }
            State::Fetched => {
                self.held.d.next = self.ring.read_data.val();
                self.waited.d.next = true;
                self.head.d.next = self.head.q.val() + 1;
                self.count.d.next = self.count.q.val() - 1;
                self.left.d.next = self.left.q.val() - 1;
                self.state.d.next = State::Judge;
            }
            State::Judge => {
                self.state.d.next = State::Rule;
            }
            State::Rule => {
                self.state.d.next = State::Offer;
                if !self.orphan.q.val() {
                    if self.sweeps.q.val() | self.behind.q.val() {
                        self.state.d.next = State::Back;
                    } else if !self.room.val() {
                        self.stuck.d.next = self.stuck.q.val() | self.bit.val();
                        self.state.d.next = State::Back;
                    }
                }
            }
            State::Offer => {
                if self.m.ready.val() {
                    self.state.d.next = State::Done;
                } else if self.later.val() {
                    self.stuck.d.next = self.stuck.q.val() | self.bit.val();
                    self.state.d.next = State::Back;
                }
            }
            State::Back => {
                self.ring.write_en.next = true;
                self.tail.d.next = self.tail.q.val() + 1;
                self.count.d.next = self.count.q.val() + 1;
                self.state.d.next = State::Done;
            }
            State::Done => {
                self.s.ready.next = !self.waited.q.val();
                if !self.waited.q.val() {
                    self.fair.d.next = true;
                }
                self.state.d.next = State::Idle;
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.head.d.next = bits::<LM>(0);
            self.tail.d.next = bits::<LM>(0);
            self.count.d.next = bits::<COUNT>(0);
            self.left.d.next = bits::<COUNT>(0);
            self.stuck.d.next = bits::<NAMES>(0);
            self.sweeps.d.next = false;
            self.clean.d.next = false;
            self.state.d.next = State::Idle;
        }
    }
}
