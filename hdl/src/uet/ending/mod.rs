//! Peers that have gone: their PDCs and messages end, here and at once. See README.md.

#[cfg(test)]
mod tests;

use super::pdc::types::PEER;
use super::pds::types::Gone;
use super::types::LINE;
use crate::bus::{MsgSink, MsgSrc};
use crate::host::admin::program::UET_EVERYBODY;
use crate::msg::{CtlReq, CtlResp};
use crate::stream::fence::Fence;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_ctl", &["m_ctl"]), // one at a time
    ("m_ctl", &["judged", "m[0]", "m[1]", "settled", "flushed"]),
];

/// Bits of a count of packets between the intake and the engine's halves.
const INSIDE: usize = 4;
/// Bit of a word: it means everybody.
const EVERYBODY: usize = UET_EVERYBODY as usize;
/// What is read.
const NOTHING: u64 = 0;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// Packets of theirs that had come are heard.
    Start,
    Hear,
    /// A place of the pool, in the half that sends and in the one that receives.
    Transmit,
    Receive,
    /// Messages of theirs that wait fail.
    Flush,
    Flushed,
    /// What was made before has left the engine.
    Settle,
    Settled,
    Answer,
}

/// `2^LP` - 1 PDCs.
#[derive(LogicBlock, BlockDefault)]
#[demand(LP <= LINE)]
pub struct Ending<const LP: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets what is under way.
    pub reset: Signal<In, Bit>,
    /// A word that is written says who has gone (a line of `peers`, or bit [`UET_EVERYBODY`]), whatever its own line; it is answered when nothing is left of them. Their lines of `peers` do not count any more when it is written.
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// Pulses of the intake, and of the engine: a packet has come, was not taken by the parser, has been heard.
    pub came: Signal<In, Bit>,
    pub bad: Signal<In, Bit>,
    pub judged: Signal<In, Bit>,
    /// To the engine.
    pub gone: Signal<Out, Gone>,
    pub m: [MsgSrc<Bits<LINE>>; 2],
    pub settle: Signal<Out, Bit>,
    pub settled: Signal<In, Bit>,
    /// To `post`, if everybody has gone.
    pub flush: Signal<Out, Bit>,
    pub flushed: Signal<In, Bit>,
    state: DFF<State>,
    all: DFF<Bit>,
    peer: DFF<Bits<PEER>>,
    at: DFF<Bits<LINE>>,
    heads: Fence<INSIDE>,
    /// A packet was heard that is not counted yet.
    heard: DFF<Bit>,
    #[init(Constant::new(((1u64 << LP) - 1).to_bits()))]
    last: Constant<Bits<LINE>>,
}

#[kernel]
impl<const LP: usize> Logic for Ending<LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, all, peer, at, heard);
        clock!(self, clock, heads);
        // The parser may drop one while the one in front of it is heard: they are counted one after the other.
        self.heads.reset.next = self.reset.val();
        self.heads.came.next = self.came.val();
        self.heads.went.next = self.bad.val() | self.heard.q.val();
        self.heads.start.next = self.state.q.val() == State::Start;
        self.heard.d.next = self.judged.val() | (self.heard.q.val() & self.bad.val());
        self.s_ctl.ready.next = self.state.q.val() == State::Idle;
        self.m_ctl.valid.next = self.state.q.val() == State::Answer;
        self.m_ctl.data.next.data = bits::<32>(NOTHING);
        self.m_ctl.data.next.err = false;
        self.gone.next.on = !(self.state.q.val() == State::Idle) & !(self.state.q.val() == State::Answer);
        self.gone.next.all = self.all.q.val();
        self.gone.next.peer = self.peer.q.val();
        self.m[0].data.next = self.at.q.val();
        self.m[0].valid.next = self.state.q.val() == State::Transmit;
        self.m[1].data.next = self.at.q.val();
        self.m[1].valid.next = self.state.q.val() == State::Receive;
        self.flush.next = self.state.q.val() == State::Flush;
        self.settle.next = self.state.q.val() == State::Settle;
        match self.state.q.val() {
            State::Idle => {
                self.all.d.next = self.s_ctl.data.val().data.get_bit(EVERYBODY);
                self.peer.d.next = self.s_ctl.data.val().data.get_bits::<PEER>(0);
                self.at.d.next = self.last.val();
                if self.s_ctl.valid.val() {
                    self.state.d.next = State::Answer;
                    if self.s_ctl.data.val().write {
                        self.state.d.next = State::Start;
                    }
                }
            }
            State::Start => {
                self.state.d.next = State::Hear;
            }
            State::Hear => {
                if self.heads.passed.val() {
                    self.state.d.next = State::Transmit;
                }
            }
            // Place 0 is nobody's and the last: when it is taken the others are done.
            State::Transmit => {
                if self.m[0].ready.val() {
                    self.state.d.next = State::Receive;
                }
            }
            State::Receive => {
                if self.m[1].ready.val() {
                    self.at.d.next = self.at.q.val() - 1;
                    self.state.d.next = State::Transmit;
                    if !self.at.q.val().any() {
                        self.state.d.next = State::Settle;
                        if self.all.q.val() {
                            self.state.d.next = State::Flush;
                        }
                    }
                }
            }
            State::Flush => {
                self.state.d.next = State::Flushed;
            }
            State::Flushed => {
                if self.flushed.val() {
                    self.state.d.next = State::Settle;
                }
            }
            State::Settle => {
                self.state.d.next = State::Settled;
            }
            State::Settled => {
                if self.settled.val() {
                    self.state.d.next = State::Answer;
                }
            }
            State::Answer => {
                if self.m_ctl.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.heard.d.next = false;
            self.state.d.next = State::Idle;
        }
    }
}
