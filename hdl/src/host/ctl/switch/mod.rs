//! Control-bus switch: one master to N tables by space. See README.md.

#[cfg(test)]
mod tests;

use crate::assembly::AnyBlock;
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{CtlReq, CtlResp};
use crate::prim::lookup::Lookup;
use crate::prim::mux::OneHotMux;
use crate::prim::pack::Gather;
use ferric_hdl_derive::BlockNew;
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

/// The switch for as many tables as there are `spaces`, 1 to 24.
pub fn for_spaces(spaces: &[u8]) -> AnyBlock {
    macro_rules! of {
        ($($n:literal)*) => { match spaces.len() { $($n => AnyBlock::new(CtlSwitch::<$n>::new(std::array::from_fn(|n| spaces[n]))),)* n => panic!("{n} tables, the control switch has 1 to 24") } };
    }
    of!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24)
}

/// One request at a time to the table of its space. `spaces[i]`: the control space behind port `i` (`abi::csr::space`).
#[derive(LogicBlock, BlockNew)]
#[given(spaces: [u8; N])]
#[demand(spaces.iter().all(|space| *space < 16), "a space has 4 bits")]
#[demand(spaces.iter().enumerate().all(|(i, space)| !spaces[..i].contains(space)), "a space has one port")]
pub struct CtlSwitch<const N: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets the request in progress.
    pub reset: Signal<In, Bit>,
    pub s_req: MsgSink<CtlReq>,
    pub m_resp: MsgSrc<CtlResp>,
    pub m_req: [MsgSrc<CtlReq>; N],
    pub s_resp: [MsgSink<CtlResp>; N],
    state: DFF<State>,
    request: DFF<CtlReq>,
    answer: DFF<CtlResp>,
    port: DFF<Bits<N>>,
    #[init(Lookup::new(|space| spaces.iter().map(|at| usize::from(*at) == space).collect()))]
    route: Lookup<4, N>,
    readys: Gather<N>,
    valids: Gather<N>,
    answers: OneHotMux<CtlResp, N>,
    taken: Signal<Local, Bits<N>>,
    came: Signal<Local, Bits<N>>,
}

impl<const N: usize> Logic for CtlSwitch<N> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, request, answer, port);
        for i in 0..N {
            self.m_req[i].data.next = self.request.q.val();
            self.m_req[i].valid.next = self.port.q.val().get_bit(i) & (self.state.q.val() == State::Send);
            self.s_resp[i].ready.next = self.port.q.val().get_bit(i) & (self.state.q.val() == State::Wait);
            self.readys.x[i].next = self.m_req[i].ready.val();
            self.valids.x[i].next = self.s_resp[i].valid.val();
            self.answers.x[i].next = self.s_resp[i].data.val();
        }
        self.route.x.next = self.request.q.val().space;
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
