//! Event counters. See README.md.

#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{CtlReq, CtlResp};
use crate::prim::ram::Ram;
use crate::prim::sum::Sum;
use crate::prim::tally::Tally;
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("inc", &[]),
    ("s_ctl", &[]), // one access at a time
    ("m_ctl", &[]),
];

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// The scanner rests until its last sums are written.
    Drain0,
    Drain1,
    /// The counter asked for goes through the adder.
    Issue,
    Add,
    Latch,
    Answer,
}

/// The bits of a block's `stat` that count `names`, of which `list` has the order. A name that it does not have fails to compile.
pub const fn flags(list: &[&str], names: &[&str]) -> u64 {
    let (mut bits, mut n) = (0, 0);
    while n < names.len() {
        bits |= 1 << place(list, names[n]);
        n += 1;
    }
    bits
}

const fn place(list: &[&str], name: &str) -> usize {
    let mut at = 0;
    while at < list.len() {
        if same(list[at].as_bytes(), name.as_bytes()) {
            return at;
        }
        at += 1;
    }
    panic!("no counter has this name");
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// `N` 64-bit counters, 2 to 128.
#[derive(LogicBlock, BlockDefault)]
#[demand((2..=128).contains(&N), "2 to 128 counters")]
pub struct Stats<const N: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets the control-bus access in progress, keeps the counts.
    pub reset: Signal<In, Bit>,
    /// Bit `i` high for a cycle: one event of counter `i`.
    pub inc: Signal<In, Bits<N>>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    events: DFF<Bits<N>>,
    tally: Tally<N, 7>,
    sums: Ram<Bits<64>, 7>,
    scan: DFF<Bits<7>>,
    /// Counter in the add stage, and whether there is one.
    add: DFF<Bits<7>>,
    add_on: DFF<Bit>,
    part: DFF<Bits<9>>,
    /// Counter in the write stage.
    put: DFF<Bits<7>>,
    put_on: DFF<Bit>,
    adder: Sum<64>,
    sum: DFF<Bits<64>>,
    state: DFF<State>,
    line: DFF<Bits<24>>,
    answer: DFF<CtlResp>,
    high: DFF<Bits<32>>,
    #[init(Constant::new((N as u64).to_bits()))]
    limit: Constant<Bits<24>>,
    pick: Signal<Local, Bits<7>>,
    on: Signal<Local, Bit>,
    wanted: Signal<Local, Bits<24>>,
}

impl<const N: usize> Logic for Stats<N> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, events, scan, add, add_on, part, put, put_on, sum, state, line, answer, high);
        clock!(self, clock, tally, sums);
        self.events.d.next = self.inc.val();
        self.tally.inc.next = self.events.q.val();
        self.s_ctl.ready.next = false;
        self.m_ctl.valid.next = false;
        self.m_ctl.data.next = self.answer.q.val();
        self.wanted.next = self.line.q.val();
        // Which counter enters the adder in this cycle
        self.on.next = true;
        self.pick.next = self.scan.q.val();
        match self.state.q.val() {
            State::Idle => {
                self.s_ctl.ready.next = true;
                self.line.d.next = self.s_ctl.data.val().line;
                self.answer.d.next.data = bits::<32>(0);
                self.answer.d.next.err = false;
                if self.s_ctl.valid.val() {
                    self.state.d.next = State::Answer;
                    if self.s_ctl.data.val().line >= self.limit.val() {
                        self.answer.d.next.err = true;
                    } else if self.s_ctl.data.val().word == 0 {
                        self.state.d.next = State::Drain0;
                    } else if self.s_ctl.data.val().word == 1 {
                        self.answer.d.next.data = self.high.q.val();
                    }
                }
            }
            State::Drain0 => {
                self.on.next = false;
                self.state.d.next = State::Drain1;
            }
            State::Drain1 => {
                self.on.next = false;
                self.state.d.next = State::Issue;
            }
            State::Issue => {
                self.pick.next = self.wanted.val().get_bits::<7>(0);
                self.state.d.next = State::Add;
            }
            State::Add => {
                self.on.next = false;
                self.state.d.next = State::Latch;
            }
            State::Latch => {
                self.on.next = false;
                self.answer.d.next.data = self.sum.q.val().get_bits::<32>(0);
                self.high.d.next = self.sum.q.val().get_bits::<32>(32);
                self.state.d.next = State::Answer;
            }
            State::Answer => {
                self.m_ctl.valid.next = true;
                if self.m_ctl.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.on.val() & (self.state.q.val() != State::Issue) {
            self.scan.d.next = self.scan.q.val() + 1;
        }
        self.tally.sel.next = self.pick.val();
        self.tally.take.next = self.on.val();
        self.sums.read_addr.next = self.pick.val();
        self.add.d.next = self.pick.val();
        self.add_on.d.next = self.on.val();
        self.part.d.next = self.tally.y.val();
        self.put.d.next = self.add.q.val();
        self.put_on.d.next = self.add_on.q.val();
        self.adder.a.next = self.sums.read_data.val();
        self.adder.b.next = bit_cast::<64, 9>(self.part.q.val());
        self.sum.d.next = self.adder.y.val();
        self.sums.write_addr.next = self.put.q.val();
        self.sums.write_data.next = self.sum.q.val();
        self.sums.write_en.next = self.put_on.q.val();
        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
