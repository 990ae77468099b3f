//! Which acknowledge is due. See README.md.

#[cfg(test)]
mod tests;

use super::types::{ack_ask, AckAsk, AckTold, Owed, LINE, PAYLOAD};
use crate::bus::{MsgSink, MsgSrc};
use crate::prim::ram::Ram;
use crate::prim::sum::{Diff, Sum};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[("s", &["m"])];

/// Bits of a count of bytes without an ACK.
const BYTES: usize = 20;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Load,
    Add,
    Judge,
    Service,
    Tell,
}

/// What is known of a PDC.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Line {
    unacked: Bits<BYTES>,
    waits: Bit,
    deadline: Bits<32>,
    owed: Owed,
}

/// Acknowledges of `2^LP` PDCs.
#[derive(LogicBlock, BlockDefault)]
#[demand(LP <= LINE)]
pub struct Ack<const LP: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets the order under way. Lines begin with OPEN.
    pub reset: Signal<In, Bit>,
    /// Bytes without an ACK after which one is due, below 2^19; bytes that a packet counts at least.
    pub ack_bytes: Signal<In, Bits<20>>,
    pub ack_least: Signal<In, Bits<14>>,
    /// Ticks that one may be owed.
    pub ack_wait: Signal<In, Bits<32>>,
    pub s: MsgSink<AckAsk>,
    pub m: MsgSrc<AckTold>,
    lines: Ram<Line, LP>,
    state: DFF<State>,
    ask: DFF<AckAsk>,
    line: DFF<Line>,
    send: DFF<Bit>,
    service: DFF<Bits<16>>,
    /// What the packet counts, a cycle before it is added.
    counted: DFF<Bits<PAYLOAD>>,
    later: Sum<32>,
    /// Until when an ACK may be owed that is so from now on: in a register, since a choice follows.
    until: DFF<Bits<32>>,
    since: Diff<32>,
    #[init(Constant::new(Bits::<16>::mask()))]
    longest: Constant<Bits<16>>,
    counts: Signal<Local, Bits<PAYLOAD>>,
    due: Signal<Local, Bit>,
    asked: Signal<Local, Bit>,
    over: Signal<Local, Bit>,
    came: Signal<Local, Owed>,
    was: Signal<Local, Owed>,
}

#[kernel]
impl<const LP: usize> Logic for Ack<LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, ask, line, send, service, counted, until);
        clock!(self, clock, lines);
        self.s.ready.next = false;
        self.m.valid.next = false;
        self.m.data.next.send = self.send.q.val();
        self.m.data.next.owed = self.line.q.val().owed;
        self.m.data.next.service = self.service.q.val();
        self.m.data.next.waits = self.line.q.val().waits;
        self.m.data.next.deadline = self.line.q.val().deadline;
        self.lines.read_addr.next = bit_cast::<LP, LINE>(self.s.data.val().line);
        self.lines.write_addr.next = bit_cast::<LP, LINE>(self.ask.q.val().line);
        self.lines.write_data.next = self.line.q.val();
        self.lines.write_en.next = false;
        self.came.next = self.ask.q.val().owed;
        self.was.next = self.line.q.val().owed;
        self.counts.next = self.ask.q.val().bytes;
        if self.ask.q.val().bytes < self.ack_least.val() {
            self.counts.next = self.ack_least.val();
        }
        self.counted.d.next = self.counts.val();
        self.asked.next = self.ask.q.val().ask | self.came.val().marked | self.ask.q.val().keep | self.ask.q.val().filled | self.ask.q.val().beyond;
        self.over.next = self.line.q.val().unacked >= self.ack_bytes.val();
        self.due.next = self.asked.val() | self.over.val();
        self.later.a.next = self.ask.q.val().now;
        self.later.b.next = self.ack_wait.val();
        self.until.d.next = self.later.y.val();
        self.since.a.next = self.ask.q.val().now;
        self.since.b.next = self.was.val().at;
        match self.state.q.val() {
            State::Idle => {
                self.s.ready.next = true;
                self.ask.d.next = self.s.data.val();
                self.send.d.next = false;
                if self.s.valid.val() {
                    self.state.d.next = State::Load;
                }
            }
            State::Load => {
                self.line.d.next = self.lines.read_data.val();
                self.state.d.next = State::Add;
            }
            State::Add => {
                self.state.d.next = State::Judge;
                if self.ask.q.val().kind == ack_ask::DONE {
                    self.line.d.next.unacked = self.line.q.val().unacked + bit_cast::<BYTES, PAYLOAD>(self.counted.q.val());
                    self.line.d.next.owed = self.ask.q.val().owed;
                }
                // How long it has been owed.
                if self.ask.q.val().kind == ack_ask::LATE {
                    self.since.b.next = self.line.q.val().deadline;
                    self.send.d.next = self.line.q.val().waits & !self.since.y.val().get_bit(31);
                }
            }
            State::Judge => {
                self.state.d.next = State::Service;
                if self.ask.q.val().kind == ack_ask::DONE {
                    self.send.d.next = self.due.val();
                    self.line.d.next.waits = !self.due.val();
                    // The first that is owed says until when.
                    if !self.line.q.val().waits {
                        self.line.d.next.deadline = self.until.q.val();
                    }
                    if self.due.val() {
                        self.line.d.next.unacked = bits::<BYTES>(0);
                    }
                } else if self.send.q.val() | !(self.ask.q.val().kind == ack_ask::LATE) {
                    self.line.d.next.unacked = bits::<BYTES>(0);
                    self.line.d.next.waits = false;
                }
            }
            State::Service => {
                self.service.d.next = self.since.y.val().get_bits::<16>(0);
                if self.since.y.val().get_bits::<16>(16).any() {
                    self.service.d.next = self.longest.val();
                }
                self.state.d.next = State::Tell;
            }
            State::Tell => {
                self.lines.write_en.next = true;
                self.m.valid.next = true;
                if self.m.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
