//! A PDC's turn to send: what was lost, else what is new, else its close.
use super::types::{LineAsk, LineTold};
use crate::bus::MsgSink;
use crate::uet::pdc::types::{pdc_ask, verdict, PdcAsk, PdcTold};
use crate::uet::pds::types::{message_ask, Listed, MessageAsk, MessageTold, TxLine};
use crate::uet::types::{content, loss_ask, Choice, LossAsk, LossTold, SprayAsk, TxRecord, LINE};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Offered,
    Chosen,
    Again,
    Cut,
    Left,
    Send,
    Put,
}

/// Ports as of [`super::director::Director`]; stands still unless `calm`.
#[derive(LogicBlock, BlockDefault)]
pub struct Turn {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub now: Signal<In, Bits<32>>,
    pub go: Signal<In, Bit>,
    pub calm: Signal<In, Bit>,
    pub over: Signal<Out, Bit>,
    pub s_offer: MsgSink<Listed>,
    /// A frame goes out.
    pub send: Signal<Out, Bit>,
    pub sent: Signal<In, Bit>,
    pub line: Signal<In, LineTold>,
    pub pdc: Signal<In, PdcTold>,
    pub loss: Signal<In, LossTold>,
    pub message: Signal<In, MessageTold>,
    pub choice: Signal<In, Choice>,
    pub line_go: Signal<Out, Bit>,
    pub line_ask: Signal<Out, LineAsk>,
    pub pdc_go: Signal<Out, Bit>,
    pub pdc_ask: Signal<Out, PdcAsk>,
    pub loss_go: Signal<Out, Bit>,
    pub loss_ask: Signal<Out, LossAsk>,
    pub message_go: Signal<Out, Bit>,
    pub message_ask: Signal<Out, MessageAsk>,
    pub spray_go: Signal<Out, Bit>,
    pub spray_ask: Signal<Out, SprayAsk>,
    state: DFF<State>,
    at: DFF<Bits<LINE>>,
    /// The turn is for packets to be sent again.
    again: DFF<Bit>,
    #[init(Constant::new(LineAsk::default()))]
    no_line: Constant<LineAsk>,
    #[init(Constant::new(PdcAsk::default()))]
    no_ask: Constant<PdcAsk>,
    #[init(Constant::new(LossAsk::default()))]
    no_loss: Constant<LossAsk>,
    #[init(Constant::new(MessageAsk::default()))]
    no_message: Constant<MessageAsk>,
    #[init(Constant::new(SprayAsk::default()))]
    no_spray: Constant<SprayAsk>,
    k: Signal<Local, LineTold>,
    l: Signal<Local, TxLine>,
    m: Signal<Local, MessageTold>,
    put: Signal<Local, TxLine>,
    record: Signal<Local, TxRecord>,
    /// A new packet; the close.
    fresh: Signal<Local, Bit>,
    closes: Signal<Local, Bit>,
    nothing: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Turn {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, at, again);
        self.k.next = self.line.val();
        self.l.next = self.k.val().line;
        self.m.next = self.message.val();
        self.put.next = self.l.val();
        self.record.next = self.loss.val().record;
        // What is to be sent again goes first.
        self.fresh.next = self.k.val().fresh & !self.k.val().again;
        self.closes.next = self.k.val().closes & !self.k.val().fresh & !self.k.val().again;
        self.nothing.next = !self.k.val().again & !self.k.val().fresh & !self.k.val().closes;

        self.over.next = false;
        self.send.next = false;
        self.s_offer.ready.next = false;
        self.line_go.next = false;
        self.line_ask.next = self.no_line.val();
        self.line_ask.next.at = self.s_offer.data.val().line;
        self.line_ask.next.served = true;
        self.line_ask.next.again = self.again.q.val();
        self.pdc_go.next = false;
        self.pdc_ask.next = self.no_ask.val();
        self.pdc_ask.next.kind = bits::<4>(pdc_ask::LEAVE);
        self.pdc_ask.next.id = self.l.val().id;
        self.loss_go.next = false;
        self.loss_ask.next = self.no_loss.val();
        self.loss_ask.next.kind = bits::<4>(loss_ask::SEND);
        self.loss_ask.next.line = self.at.q.val();
        self.loss_ask.next.now = self.now.val();
        self.loss_ask.next.slot = self.choice.val().slot;
        self.loss_ask.next.more = self.l.val().queued;
        self.message_go.next = false;
        self.message_ask.next = self.no_message.val();
        self.message_ask.next.line = self.at.q.val();
        self.message_ask.next.id = self.record.val().message;
        self.message_ask.next.offset = self.record.val().offset;
        self.message_ask.next.bytes = self.record.val().bytes;
        self.spray_go.next = false;
        self.spray_ask.next = self.no_spray.val();
        self.spray_ask.next.line = self.at.q.val();
        self.spray_ask.next.choose = true;
        self.spray_ask.next.fixed = self.l.val().rod;
        if self.fresh.val() {
            self.put.next.queued = self.m.val().more;
        }

        match self.state.q.val() {
            State::Idle => {
                self.again.d.next = self.s_offer.data.val().again;
                self.at.d.next = self.s_offer.data.val().line;
                self.line_ask.next.served = false;
                if self.go.val() {
                    self.s_offer.ready.next = true;
                    self.line_go.next = true;
                    self.state.d.next = State::Offered;
                }
            }
            State::Offered => {
                self.line_ask.next.put = true;
                // Nothing was cut.
                self.put.next.queued = self.l.val().queued;
                self.message_ask.next.kind = bits::<3>(message_ask::CUT);
                if self.calm.val() {
                    self.spray_go.next = !self.nothing.val();
                    self.line_go.next = self.nothing.val();
                    self.over.next = self.nothing.val();
                    // A new packet is cut while its path is chosen.
                    self.message_go.next = self.fresh.val();
                    self.state.d.next = State::Chosen;
                    if self.fresh.val() {
                        self.state.d.next = State::Cut;
                    }
                }
            }
            State::Chosen => {
                self.loss_ask.next.kind = bits::<4>(loss_ask::AGAIN);
                if self.calm.val() {
                    if self.k.val().again {
                        self.loss_go.next = true;
                        self.state.d.next = State::Again;
                    } else {
                        self.pdc_go.next = true;
                        self.state.d.next = State::Left;
                    }
                }
            }
            State::Again => {
                self.message_ask.next.kind = bits::<3>(message_ask::LOOK);
                if self.calm.val() {
                    self.state.d.next = State::Send;
                    if !self.loss.val().ok {
                        self.state.d.next = State::Put;
                    } else {
                        self.message_go.next = self.record.val().content == content::DATA;
                    }
                }
            }
            State::Cut => {
                self.loss_ask.next.more = self.m.val().more;
                self.loss_ask.next.message = self.m.val().id;
                self.loss_ask.next.offset = self.m.val().offset;
                self.loss_ask.next.bytes = self.m.val().bytes;
                if self.calm.val() {
                    self.loss_go.next = true;
                    self.state.d.next = State::Send;
                }
            }
            // A PDC that is no more the manager's does not close.
            State::Left => {
                self.loss_ask.next.content = bits::<2>(content::CLOSE);
                self.put.next.closing = false;
                self.line_ask.next.put = true;
                if self.calm.val() {
                    self.loss_go.next = true;
                    self.state.d.next = State::Send;
                    if self.pdc.val().verdict == verdict::NOBODY {
                        self.loss_go.next = false;
                        self.line_go.next = true;
                        self.over.next = true;
                    }
                }
            }
            State::Send => {
                if self.calm.val() {
                    self.send.next = true;
                    if self.sent.val() {
                        self.state.d.next = State::Put;
                    }
                }
            }
            State::Put => {
                self.put.next.idle_on = false;
                if self.closes.val() {
                    self.put.next.leaving = true;
                }
                self.line_ask.next.put = true;
                self.line_ask.next.update = true;
                self.line_ask.next.follows = true;
                self.line_ask.next.arms = !self.l.val().rto_on;
                if self.calm.val() {
                    self.line_go.next = true;
                    self.over.next = true;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        self.line_ask.next.line = self.put.val();
        if self.over.val() | self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
