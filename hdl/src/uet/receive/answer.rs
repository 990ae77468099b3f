//! An ACK, a NACK or a CLEAR_REQUEST: what it says is asked of `window`, then it goes out.
use super::frame::Frame;
use super::types::Reply;
use crate::bus::{MsgSink, MsgSrc};
use crate::prim::sum::Sum;
use crate::uet::pds::types::Outgoing;
use crate::uet::types::{ack_ask, rx_ask, AckAsk, RxAsk, RxTold, LINE};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Note,
    Sack,
    Wait,
    Send,
    Tell,
}

/// Asks as the machines do, while the one that has asked for the answer stands still. Stands still itself unless `calm`.
#[derive(LogicBlock, BlockDefault)]
#[demand(LP <= LINE)]
pub struct Answer<const LP: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets what was to be answered.
    pub reset: Signal<In, Bit>,
    pub now: Signal<In, Bits<32>>,
    /// PSNs that may be outstanding, in 128.
    pub mpr: Signal<In, Bits<8>>,
    pub calm: Signal<In, Bit>,
    /// What is to be said; told when it is out.
    pub s: MsgSink<Reply>,
    pub m: MsgSrc<Bit>,
    pub m_out: MsgSrc<Outgoing>,
    pub window: Signal<In, RxTold>,
    pub window_go: Signal<Out, Bit>,
    pub window_ask: Signal<Out, RxAsk>,
    pub ack_go: Signal<Out, Bit>,
    pub ack_ask: Signal<Out, AckAsk>,
    frame: Frame,
    /// The newest PSN that has come: in a register, since the frame is chosen behind it.
    sum: Sum<32>,
    newest: DFF<Bits<32>>,
    state: DFF<State>,
    reply: DFF<Reply>,
    #[init(Constant::new(RxAsk::default()))]
    no_rx: Constant<RxAsk>,
    #[init(Constant::new(AckAsk::default()))]
    no_ack: Constant<AckAsk>,
    r: Signal<Local, Reply>,
    own_place: Signal<Local, Bits<LP>>,
    line: Signal<Local, Bits<LINE>>,
}

#[kernel]
impl<const LP: usize> Logic for Answer<LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, reply, newest);
        self.r.next = self.reply.q.val();
        self.own_place.next = self.r.val().id.get_bits::<LP>(0);
        self.line.next = bit_cast::<LINE, LP>(self.own_place.val());
        self.frame.reply.next = self.reply.q.val();
        self.frame.seen.next = self.window.val();
        self.sum.a.next = self.window.val().cack;
        self.sum.b.next = bit_cast::<32, 16>(self.window.val().ooo);
        self.newest.d.next = self.sum.y.val();
        self.frame.newest.next = self.newest.q.val();
        self.frame.mpr.next = self.mpr.val();
        self.m_out.data.next = self.frame.frame.val();
        self.m_out.valid.next = self.state.q.val() == State::Send;
        self.s.ready.next = self.state.q.val() == State::Idle;
        self.m.data.next = true;
        self.m.valid.next = self.state.q.val() == State::Tell;
        self.window_go.next = false;
        self.window_ask.next = self.no_rx.val();
        self.window_ask.next.kind = bits::<3>(rx_ask::SACK);
        self.window_ask.next.line = self.line.val();
        self.ack_go.next = false;
        self.ack_ask.next = self.no_ack.val();
        self.ack_ask.next.kind = bits::<2>(ack_ask::SENT);
        self.ack_ask.next.line = self.line.val();
        self.ack_ask.next.now = self.now.val();
        match self.state.q.val() {
            State::Idle => {
                self.reply.d.next = self.s.data.val();
                if self.s.valid.val() {
                    self.state.d.next = State::Sack;
                    if self.s.data.val().nack {
                        self.state.d.next = State::Send;
                    } else if self.s.data.val().again {
                        self.state.d.next = State::Note;
                    }
                }
            }
            State::Note => {
                self.ack_go.next = true;
                self.state.d.next = State::Sack;
            }
            State::Sack => {
                if self.calm.val() {
                    self.window_go.next = true;
                    self.state.d.next = State::Wait;
                }
            }
            State::Wait => {
                if self.calm.val() {
                    self.state.d.next = State::Send;
                }
            }
            State::Send => {
                if self.m_out.ready.val() {
                    self.state.d.next = State::Tell;
                }
            }
            State::Tell => {
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
