//! Control-bus switch: one master to N tables by their numbers. See README.md.

#[cfg(test)]
mod tests;

use crate::assembly::{AnyBlock, MOST_TABLES};
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{CtlAsk, CtlReq, CtlResp};
use crate::prim::lookup::Lookup;
use crate::prim::mux::OneHotMux;
use crate::prim::pack::Gather;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_req", &[]), // the master asks again when it has been answered
    ("m_resp", &["m_req[..]", "s_resp[..]"]),
    ("s_resp[*]", &[]), // awaited since the request was taken
];

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Route,
    Send,
    Wait,
    Answer,
}

/// The switch for as many tables, 2 to [`MOST_TABLES`].
pub fn for_number(tables: usize) -> AnyBlock {
    macro_rules! of {
        ($($n:literal)*) => { match tables { $($n => AnyBlock::new(CtlSwitch::<$n>::default()),)* n => panic!("{n} tables, the control switch has 2 to {MOST_TABLES}") } };
    }
    of!(2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
}

/// One request at a time to its table, whose number is that of its port. A number without a port is answered with `err`.
#[derive(LogicBlock, BlockDefault)]
#[demand((2..=MOST_TABLES).contains(&N), "2 to 32 tables")]
pub struct CtlSwitch<const N: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets the request in progress.
    pub reset: Signal<In, Bit>,
    pub s_req: MsgSink<CtlAsk>,
    pub m_resp: MsgSrc<CtlResp>,
    pub m_req: [MsgSrc<CtlReq>; N],
    pub s_resp: [MsgSink<CtlResp>; N],
    state: DFF<State>,
    request: DFF<CtlAsk>,
    answer: DFF<CtlResp>,
    port: DFF<Bits<N>>,
    #[init(Lookup::new(|table| (0..N).map(|port| port == table).collect()))]
    route: Lookup<8, N>,
    readys: Gather<N>,
    valids: Gather<N>,
    answers: OneHotMux<CtlResp, N>,
    asked: Signal<Local, CtlReq>,
    taken: Signal<Local, Bits<N>>,
    came: Signal<Local, Bits<N>>,
}

#[kernel]
impl<const N: usize> Logic for CtlSwitch<N> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, request, answer, port);
        self.asked.next.rsvd = bits::<4>(0);
        self.asked.next.line = self.request.q.val().line;
        self.asked.next.word = self.request.q.val().word;
        self.asked.next.write = self.request.q.val().write;
        self.asked.next.data = self.request.q.val().data;
        for i in 0..N {
            self.m_req[i].data.next = self.asked.val();
            self.m_req[i].valid.next = self.port.q.val().get_bit(i) & (self.state.q.val() == State::Send);
            self.s_resp[i].ready.next = self.port.q.val().get_bit(i) & (self.state.q.val() == State::Wait);
            self.readys.x[i].next = self.m_req[i].ready.val();
            self.valids.x[i].next = self.s_resp[i].valid.val();
            self.answers.x[i].next = self.s_resp[i].data.val();
        }
        self.route.x.next = self.request.q.val().table;
        self.answers.sel.next = self.port.q.val();
        self.taken.next = self.readys.y.val() & self.port.q.val();
        self.came.next = self.valids.y.val() & self.port.q.val();
        self.s_req.ready.next = false;
        self.m_resp.valid.next = false;
        self.m_resp.data.next = self.answer.q.val();
        match self.state.q.val() {
            State::Idle => {
                self.s_req.ready.next = true;
                self.request.d.next = self.s_req.data.val();
                if self.s_req.valid.val() {
                    self.state.d.next = State::Route;
                }
            }
            State::Route => {
                self.port.d.next = self.route.y.val();
                self.answer.d.next.data = bits::<32>(0);
                self.answer.d.next.err = true;
                self.state.d.next = State::Answer;
                if self.route.y.val().any() {
                    self.state.d.next = State::Send;
                }
            }
            State::Send => {
                if self.taken.val().any() {
                    self.state.d.next = State::Wait;
                }
            }
            State::Wait => {
                self.answer.d.next = self.answers.y.val();
                if self.came.val().any() {
                    self.state.d.next = State::Answer;
                }
            }
            State::Answer => {
                self.m_resp.valid.next = true;
                if self.m_resp.ready.val() {
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
