//! The PDC manager for both halves: an order of one of them, its answer, then the other's.
use crate::bus::{MsgSink, MsgSrc};
use crate::uet::pdc::types::{PdcAsk, PdcTold};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Give,
    Wait,
}

/// Two halves in turn. An order waits until the one before it is answered, whoever gave that.
#[derive(LogicBlock, BlockDefault)]
pub struct Share {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets whose order is under way.
    pub reset: Signal<In, Bit>,
    pub s: [MsgSink<PdcAsk>; 2],
    pub m_told: [MsgSrc<PdcTold>; 2],
    pub m: MsgSrc<PdcAsk>,
    pub s_told: MsgSink<PdcTold>,
    state: DFF<State>,
    owner: DFF<Bit>,
    second: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Share {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, owner);
        self.s[0].ready.next = false;
        self.s[1].ready.next = false;
        self.m.data.next = self.s[0].data.val();
        if self.owner.q.val() {
            self.m.data.next = self.s[1].data.val();
        }
        self.m.valid.next = self.state.q.val() == State::Give;
        self.m_told[0].data.next = self.s_told.data.val();
        self.m_told[1].data.next = self.s_told.data.val();
        self.m_told[0].valid.next = false;
        self.m_told[1].valid.next = false;
        self.s_told.ready.next = false;
        // Who was not served last goes first.
        self.second.next = self.s[1].valid.val();
        if self.owner.q.val() {
            self.second.next = self.s[1].valid.val() & !self.s[0].valid.val();
        }
        match self.state.q.val() {
            State::Idle => {
                if self.s[0].valid.val() | self.s[1].valid.val() {
                    self.owner.d.next = self.second.val();
                    self.state.d.next = State::Give;
                }
            }
            State::Give => {
                self.s[0].ready.next = self.m.ready.val() & !self.owner.q.val();
                self.s[1].ready.next = self.m.ready.val() & self.owner.q.val();
                if self.m.ready.val() {
                    self.state.d.next = State::Wait;
                }
            }
            State::Wait => {
                self.m_told[0].valid.next = self.s_told.valid.val() & !self.owner.q.val();
                self.m_told[1].valid.next = self.s_told.valid.val() & self.owner.q.val();
                self.s_told.ready.next = self.m_told[0].ready.val();
                if self.owner.q.val() {
                    self.s_told.ready.next = self.m_told[1].ready.val();
                }
                if self.s_told.valid.val() & self.s_told.ready.val() {
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
