//! Whose turn it is to send. See README.md.

#[cfg(test)]
mod tests;

use super::pds::types::Listed;
use crate::bus::{MsgSink, MsgSrc};
use crate::stream::MsgFifo;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[("s", &[])];

/// Packets of a turn, less one.
const LAST: u64 = 15;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Pick,
    Offer,
    Serve,
    Back,
}

/// Two lists of up to `2^LP` PDCs each: those with packets to be sent again, and those with new ones.
#[derive(LogicBlock, BlockDefault)]
pub struct Sched<const LP: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; both lists are empty.
    pub reset: Signal<In, Bit>,
    /// A PDC that has something to send and does not stand in that list.
    pub s: MsgSink<Listed>,
    /// Whose turn it is. Behind each offer that is taken comes one pulse of `served`.
    pub m: MsgSrc<Listed>,
    pub served: Signal<In, Bit>,
    /// With `served`: it has more of that kind, and stays in the list.
    pub more: Signal<In, Bit>,
    again: MsgFifo<Listed, LP>,
    fresh: MsgFifo<Listed, LP>,
    state: DFF<State>,
    now: DFF<Listed>,
    turn: DFF<Bits<4>>,
    /// The last turn was for packets to be sent again.
    lost: DFF<Bit>,
    into: Signal<Local, Listed>,
    offered: Signal<Local, Bit>,
    free: Signal<Local, Bit>,
    urgent: Signal<Local, Bit>,
}

#[kernel]
impl<const LP: usize> Logic for Sched<LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, now, turn, lost);
        clock!(self, clock, again, fresh);
        self.again.reset.next = self.reset.val();
        self.fresh.reset.next = self.reset.val();
        // Who comes back, else who is new.
        self.free.next = self.again.s.ready.val() & self.fresh.s.ready.val();
        self.s.ready.next = self.free.val() & !(self.state.q.val() == State::Back);
        self.into.next = self.s.data.val();
        self.offered.next = self.s.valid.val() & self.free.val();
        if self.state.q.val() == State::Back {
            self.into.next = self.now.q.val();
            self.offered.next = self.free.val();
        }
        self.again.s.data.next = self.into.val();
        self.again.s.valid.next = self.offered.val() & self.into.val().again;
        self.fresh.s.data.next = self.into.val();
        self.fresh.s.valid.next = self.offered.val() & !self.into.val().again;
        self.urgent.next = self.again.m.valid.val() & !self.now.q.val().again;
        self.again.m.ready.next = false;
        self.fresh.m.ready.next = false;
        self.m.valid.next = false;
        self.m.data.next = self.now.q.val();
        match self.state.q.val() {
            State::Pick => {
                self.turn.d.next = bits::<4>(0);
                // What was lost goes first, but not twice in front of somebody new: a PDC whose packets are lost for ever would have all turns.
                if self.again.m.valid.val() & !(self.lost.q.val() & self.fresh.m.valid.val()) {
                    self.lost.d.next = true;
                    self.again.m.ready.next = true;
                    self.now.d.next = self.again.m.data.val();
                    self.state.d.next = State::Offer;
                } else if self.fresh.m.valid.val() {
                    self.lost.d.next = false;
                    self.fresh.m.ready.next = true;
                    self.now.d.next = self.fresh.m.data.val();
                    self.state.d.next = State::Offer;
                }
            }
            State::Offer => {
                self.m.valid.next = true;
                if self.m.ready.val() {
                    self.state.d.next = State::Serve;
                }
            }
            State::Serve => {
                if self.served.val() {
                    self.turn.d.next = self.turn.q.val() + 1;
                    self.state.d.next = State::Offer;
                    if !self.more.val() {
                        self.state.d.next = State::Pick;
                    } else if self.urgent.val() | (self.turn.q.val() == LAST) {
                        self.state.d.next = State::Back;
                    }
                }
            }
            State::Back => {
                if self.free.val() {
                    self.state.d.next = State::Pick;
                }
            }
            _ => {
                self.state.d.next = State::Pick;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Pick;
        }
    }
}
