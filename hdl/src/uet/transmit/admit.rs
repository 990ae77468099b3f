//! A message: its PDC, which may have to be opened; or its end, if its peer has gone.
use super::types::{LineAsk, LineTold};
use crate::bus::MsgSink;
use crate::uet::pdc::types::{pdc_ask, verdict, PdcAsk, PdcLine, PdcTold};
use crate::uet::pds::types::{message_ask, why, Gone, Message, MessageAsk, TxLine, WHY};
use crate::uet::types::{loss_ask, LossAsk, LossTold, SprayAsk, LINE};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Posted,
    Found,
    Opened,
    Paths,
    Emptied,
    Added,
    /// Its peer has gone.
    Refused,
}

/// Ports as of [`super::director::Director`]; stands still unless `calm`.
#[derive(LogicBlock, BlockDefault)]
#[demand(LP <= LINE)]
pub struct Admit<const LP: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub now: Signal<In, Bits<32>>,
    /// A message is here, and there is a place for it.
    pub wants: Signal<Out, Bit>,
    pub go: Signal<In, Bit>,
    pub calm: Signal<In, Bit>,
    pub over: Signal<Out, Bit>,
    pub s_post: MsgSink<Message>,
    /// Not with its `ready`: the message has found no PDC, and another one may be offered in its place.
    pub later: Signal<Out, Bit>,
    /// There is a place for a message.
    pub room: Signal<In, Bit>,
    pub gone: Signal<In, Gone>,
    pub line: Signal<In, LineTold>,
    pub pdc: Signal<In, PdcTold>,
    pub loss: Signal<In, LossTold>,
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
    #[init(Constant::new(TxLine::default()))]
    nobody: Constant<TxLine>,
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
    post: Signal<Local, Message>,
    p: Signal<Local, PdcTold>,
    pl: Signal<Local, PdcLine>,
    l: Signal<Local, TxLine>,
    put: Signal<Local, TxLine>,
    at: Signal<Local, Bits<LINE>>,
    own_place: Signal<Local, Bits<LP>>,
    opens: Signal<Local, Bit>,
    found: Signal<Local, Bit>,
    orphan: Signal<Local, Bit>,
}

#[kernel]
impl<const LP: usize> Logic for Admit<LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state);
        self.post.next = self.s_post.data.val();
        self.p.next = self.pdc.val();
        self.pl.next = self.p.val().line;
        self.l.next = self.line.val().line;
        self.own_place.next = self.pl.val().id.get_bits::<LP>(0);
        self.at.next = bit_cast::<LINE, LP>(self.own_place.val());
        self.opens.next = self.p.val().verdict == verdict::OPENED;
        self.found.next = self.opens.val() | (self.p.val().verdict == verdict::DONE);
        self.orphan.next = self.gone.val().on & (self.gone.val().all | (self.post.val().peer == self.gone.val().peer));
        self.wants.next = self.s_post.valid.val() & (self.orphan.val() | self.room.val());
        self.put.next = self.l.val();
        if self.opens.val() {
            self.put.next = self.nobody.val();
            self.put.next.listed_again = self.l.val().listed_again;
            self.put.next.listed_new = self.l.val().listed_new;
            self.put.next.id = self.pl.val().id;
            self.put.next.peer = self.pl.val().peer;
            self.put.next.start = self.pl.val().start;
            self.put.next.rod = self.pl.val().rod;
            self.put.next.live = true;
            self.put.next.syn = true;
            self.put.next.room = self.loss.val().room;
        }
        self.put.next.queued = true;
        self.put.next.idle_on = false;

        self.over.next = false;
        self.s_post.ready.next = false;
        self.later.next = false;
        self.line_go.next = false;
        self.line_ask.next = self.no_line.val();
        self.line_ask.next.at = self.at.val();
        self.pdc_go.next = false;
        self.pdc_ask.next = self.no_ask.val();
        self.pdc_ask.next.kind = bits::<4>(pdc_ask::POST);
        self.pdc_ask.next.peer = self.post.val().peer;
        self.pdc_ask.next.rod = self.post.val().rod;
        self.pdc_ask.next.function = self.post.val().function;
        self.loss_go.next = false;
        self.loss_ask.next = self.no_loss.val();
        self.loss_ask.next.kind = bits::<4>(loss_ask::OPEN);
        self.loss_ask.next.line = self.at.val();
        self.loss_ask.next.now = self.now.val();
        self.loss_ask.next.psn = self.pl.val().start;
        self.message_go.next = false;
        self.message_ask.next = self.no_message.val();
        self.message_ask.next.kind = bits::<3>(message_ask::ADD);
        self.message_ask.next.line = self.at.val();
        self.message_ask.next.message = self.post.val();
        self.message_ask.next.why = bits::<WHY>(why::GONE);
        self.spray_go.next = false;
        self.spray_ask.next = self.no_spray.val();
        self.spray_ask.next.line = self.at.val();
        self.spray_ask.next.init = true;

        match self.state.q.val() {
            State::Idle => {
                if self.orphan.val() {
                    self.message_ask.next.kind = bits::<3>(message_ask::AWAY);
                }
                if self.go.val() {
                    self.pdc_go.next = !self.orphan.val();
                    self.message_go.next = self.orphan.val();
                    self.state.d.next = State::Posted;
                    if self.orphan.val() {
                        self.state.d.next = State::Refused;
                    }
                }
            }
            State::Posted => {
                if self.calm.val() {
                    self.line_go.next = self.found.val();
                    self.later.next = !self.found.val();
                    self.over.next = !self.found.val();
                    self.state.d.next = State::Found;
                }
            }
            State::Found => {
                if self.calm.val() {
                    self.loss_go.next = self.opens.val();
                    self.message_go.next = !self.opens.val();
                    self.state.d.next = State::Added;
                    if self.opens.val() {
                        self.state.d.next = State::Opened;
                    }
                }
            }
            State::Opened => {
                if self.calm.val() {
                    self.spray_go.next = true;
                    self.state.d.next = State::Paths;
                }
            }
            State::Paths => {
                self.message_ask.next.kind = bits::<3>(message_ask::OPEN);
                if self.calm.val() {
                    self.message_go.next = true;
                    self.state.d.next = State::Emptied;
                }
            }
            State::Emptied => {
                if self.calm.val() {
                    self.message_go.next = true;
                    self.state.d.next = State::Added;
                }
            }
            State::Added => {
                self.line_ask.next.put = true;
                self.line_ask.next.follows = true;
                if self.calm.val() {
                    self.line_go.next = true;
                    self.s_post.ready.next = true;
                    self.over.next = true;
                }
            }
            State::Refused => {
                if self.calm.val() {
                    self.s_post.ready.next = true;
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
