//! One event after another: an ACK or NACK, a timer, a turn to send, a message. Each kind has a machine; here they take turns, and share whom they ask.
use super::admit::Admit;
use super::fire::Fire;
use super::frame::Frame;
use super::hear::Hear;
use super::lines::Lines;
use super::turn::Turn;
use super::types::{LineAsk, LineTold};
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{TimerCmd, TimerEvent};
use crate::uet::call::Call;
use crate::uet::head::types::UetHead;
use crate::uet::pdc::types::{PdcAsk, PdcTold};
use crate::uet::pds::types::{Gone, Listed, Message, MessageAsk, MessageTold, Outgoing};
use crate::uet::types::{Choice, LossAsk, LossTold, SprayAsk, LINE};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Kinds of events that are looked at in one cycle.
const LOOKED_AT: u64 = 2;

/// Whose event it is.
mod what {
    pub const HEAD: u64 = 0;
    pub const TIMER: u64 = 1;
    pub const OFFER: u64 = 2;
    pub const POST: u64 = 3;
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Choose,
    Work,
}

/// `2^LP` initiators. Ports as of [`super::Transmit`], and those of the blocks in it.
#[derive(LogicBlock, BlockDefault)]
#[demand(LP <= LINE)]
pub struct Director<const LP: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub now: Signal<In, Bits<32>>,
    pub rto: Signal<In, Bits<32>>,
    pub nack_wait: Signal<In, Bits<32>>,
    pub idle: Signal<In, Bits<32>>,
    pub safety: Signal<In, Bits<32>>,
    pub rto_max: Signal<In, Bits<4>>,
    pub nack_max: Signal<In, Bits<5>>,
    pub s_post: MsgSink<Message>,
    pub later: Signal<Out, Bit>,
    pub s_head: MsgSink<UetHead>,
    pub m_out: MsgSrc<Outgoing>,
    pub m_pdc: MsgSrc<PdcAsk>,
    pub s_pdc: MsgSink<PdcTold>,
    pub m_loss: MsgSrc<LossAsk>,
    pub s_loss: MsgSink<LossTold>,
    pub m_message: MsgSrc<MessageAsk>,
    pub s_message: MsgSink<MessageTold>,
    /// Of `messages`: a place is free; it does nothing. And the code of the ACK that is being heard.
    pub room: Signal<In, Bit>,
    pub quiet: Signal<In, Bit>,
    pub code: Signal<Out, Bits<6>>,
    pub m_spray: MsgSrc<SprayAsk>,
    pub s_choice: MsgSink<Choice>,
    pub m_list: MsgSrc<Listed>,
    pub s_offer: MsgSink<Listed>,
    pub served: Signal<Out, Bit>,
    pub more: Signal<Out, Bit>,
    pub m_timer: MsgSrc<TimerCmd>,
    pub s_timer: MsgSink<TimerEvent>,
    pub s_ending: MsgSink<Bits<LINE>>,
    pub gone: Signal<In, Gone>,
    hear: Hear<LP>,
    fire: Fire,
    turn: Turn,
    admit: Admit<LP>,
    lines: Lines<LP>,
    frame: Frame,
    line: Call<LineAsk, LineTold, 4>,
    pdc: Call<PdcAsk, PdcTold, 4>,
    loss: Call<LossAsk, LossTold, 4>,
    message: Call<MessageAsk, MessageTold, 4>,
    spray: Call<SprayAsk, Choice, 4>,
    state: DFF<State>,
    what: DFF<Bits<2>>,
    /// Nobody is being asked.
    calm: Signal<Local, Bit>,
    over: Signal<Local, Bit>,
    /// A timer is over, or a PDC may have to end.
    fires: Signal<Local, Bit>,
    lent: Signal<Local, LineTold>,
}

#[kernel]
impl<const LP: usize> Logic for Director<LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, what);
        clock!(self, clock, hear, fire, turn, admit, lines, line, pdc, loss, message, spray);
        self.calm.next = !self.line.busy.val() & !self.pdc.busy.val() & !self.loss.busy.val() & !self.message.busy.val() & !self.spray.busy.val();
        self.over.next = self.hear.over.val() | self.fire.over.val() | self.turn.over.val() | self.admit.over.val();
        self.lent.next = self.line.told.val();
        self.hear.reset.next = self.reset.val();
        self.fire.reset.next = self.reset.val();
        self.turn.reset.next = self.reset.val();
        self.admit.reset.next = self.reset.val();
        self.lines.reset.next = self.reset.val();
        self.line.reset.next = self.reset.val();
        self.pdc.reset.next = self.reset.val();
        self.loss.reset.next = self.reset.val();
        self.message.reset.next = self.reset.val();
        self.spray.reset.next = self.reset.val();
        self.hear.now.next = self.now.val();
        self.fire.now.next = self.now.val();
        self.turn.now.next = self.now.val();
        self.admit.now.next = self.now.val();
        self.lines.now.next = self.now.val();
        self.lines.rto.next = self.rto.val();
        self.lines.nack_wait.next = self.nack_wait.val();
        self.lines.idle.next = self.idle.val();
        self.lines.safety.next = self.safety.val();
        self.fire.rto_max.next = self.rto_max.val();
        self.fire.nack_max.next = self.nack_max.val();
        MsgSink::<UetHead>::link(&mut self.s_head, &mut self.hear.s_head);
        MsgSink::<TimerEvent>::link(&mut self.s_timer, &mut self.fire.s_timer);
        MsgSink::<Bits<LINE>>::link(&mut self.s_ending, &mut self.fire.s_ending);
        self.fire.gone.next = self.gone.val();
        self.admit.gone.next = self.gone.val();
        self.fires.next = self.s_timer.valid.val() | self.s_ending.valid.val();
        MsgSink::<Listed>::link(&mut self.s_offer, &mut self.turn.s_offer);
        MsgSink::<Message>::link(&mut self.s_post, &mut self.admit.s_post);
        self.later.next = self.admit.later.val();
        MsgSrc::<TimerCmd>::link(&mut self.m_timer, &mut self.lines.m_timer);
        MsgSrc::<Listed>::link(&mut self.m_list, &mut self.lines.m_list);
        self.served.next = self.lines.served.val();
        self.more.next = self.lines.more.val();
        self.hear.quiet.next = self.quiet.val();
        self.code.next = self.hear.code.val();
        self.admit.room.next = self.room.val();
        // Who is asked, by whom.
        MsgSrc::<LineAsk>::join(&mut self.line.m, &mut self.lines.s);
        MsgSrc::<LineTold>::join(&mut self.lines.m, &mut self.line.s);
        MsgSrc::<PdcAsk>::link(&mut self.m_pdc, &mut self.pdc.m);
        MsgSink::<PdcTold>::link(&mut self.s_pdc, &mut self.pdc.s);
        MsgSrc::<LossAsk>::link(&mut self.m_loss, &mut self.loss.m);
        MsgSink::<LossTold>::link(&mut self.s_loss, &mut self.loss.s);
        MsgSrc::<MessageAsk>::link(&mut self.m_message, &mut self.message.m);
        MsgSink::<MessageTold>::link(&mut self.s_message, &mut self.message.s);
        MsgSrc::<SprayAsk>::link(&mut self.m_spray, &mut self.spray.m);
        MsgSink::<Choice>::link(&mut self.s_choice, &mut self.spray.s);
        self.line.go[0].next = self.hear.line_go.val();
        self.line.ask[0].next = self.hear.line_ask.val();
        self.line.go[1].next = self.fire.line_go.val();
        self.line.ask[1].next = self.fire.line_ask.val();
        self.line.go[2].next = self.turn.line_go.val();
        self.line.ask[2].next = self.turn.line_ask.val();
        self.line.go[3].next = self.admit.line_go.val();
        self.line.ask[3].next = self.admit.line_ask.val();
        self.pdc.go[0].next = self.hear.pdc_go.val();
        self.pdc.ask[0].next = self.hear.pdc_ask.val();
        self.pdc.go[1].next = self.fire.pdc_go.val();
        self.pdc.ask[1].next = self.fire.pdc_ask.val();
        self.pdc.go[2].next = self.turn.pdc_go.val();
        self.pdc.ask[2].next = self.turn.pdc_ask.val();
        self.pdc.go[3].next = self.admit.pdc_go.val();
        self.pdc.ask[3].next = self.admit.pdc_ask.val();
        self.loss.go[0].next = self.hear.loss_go.val();
        self.loss.ask[0].next = self.hear.loss_ask.val();
        self.loss.go[1].next = self.fire.loss_go.val();
        self.loss.ask[1].next = self.fire.loss_ask.val();
        self.loss.go[2].next = self.turn.loss_go.val();
        self.loss.ask[2].next = self.turn.loss_ask.val();
        self.loss.go[3].next = self.admit.loss_go.val();
        self.loss.ask[3].next = self.admit.loss_ask.val();
        self.message.go[0].next = self.hear.message_go.val();
        self.message.ask[0].next = self.hear.message_ask.val();
        self.message.go[1].next = self.fire.message_go.val();
        self.message.ask[1].next = self.fire.message_ask.val();
        self.message.go[2].next = self.turn.message_go.val();
        self.message.ask[2].next = self.turn.message_ask.val();
        self.message.go[3].next = self.admit.message_go.val();
        self.message.ask[3].next = self.admit.message_ask.val();
        self.spray.go[0].next = self.fire.spray_go.val();
        self.spray.ask[0].next = self.fire.spray_ask.val();
        self.spray.go[1].next = self.turn.spray_go.val();
        self.spray.ask[1].next = self.turn.spray_ask.val();
        self.spray.go[2].next = self.admit.spray_go.val();
        self.spray.ask[2].next = self.admit.spray_ask.val();
        self.spray.go[3].next = self.hear.spray_go.val();
        self.spray.ask[3].next = self.hear.spray_ask.val();
        // A line that goes back, and the beginning of a PDC's paths, are not answered.
        self.line.mute.next = self.over.val();
        self.pdc.mute.next = false;
        self.loss.mute.next = false;
        self.message.mute.next = false;
        self.spray.mute.next = self.admit.spray_go.val();
        self.hear.line.next = self.line.told.val();
        self.fire.line.next = self.line.told.val();
        self.turn.line.next = self.line.told.val();
        self.admit.line.next = self.line.told.val();
        self.hear.pdc.next = self.pdc.told.val();
        self.turn.pdc.next = self.pdc.told.val();
        self.admit.pdc.next = self.pdc.told.val();
        self.hear.loss.next = self.loss.told.val();
        self.fire.loss.next = self.loss.told.val();
        self.turn.loss.next = self.loss.told.val();
        self.admit.loss.next = self.loss.told.val();
        self.lines.loss.next = self.loss.told.val();
        self.turn.message.next = self.message.told.val();
        self.turn.choice.next = self.spray.told.val();
        // What goes out.
        self.frame.line.next = self.lent.val().line;
        self.frame.loss.next = self.loss.told.val();
        self.frame.message.next = self.message.told.val();
        self.frame.choice.next = self.spray.told.val();
        self.frame.asks.next = self.fire.send.val();
        self.frame.clears.next = self.hear.send.val();
        self.frame.peer_id.next = self.hear.peer_id.val();
        self.m_out.data.next = self.frame.frame.val();
        self.m_out.valid.next = self.hear.send.val() | self.fire.send.val() | self.turn.send.val();
        self.hear.sent.next = self.m_out.ready.val();
        self.fire.sent.next = self.m_out.ready.val();
        self.turn.sent.next = self.m_out.ready.val();
        // Each kind of event in turn.
        self.hear.calm.next = self.calm.val();
        self.fire.calm.next = self.calm.val();
        self.turn.calm.next = self.calm.val();
        self.admit.calm.next = self.calm.val();
        self.hear.go.next = false;
        self.fire.go.next = false;
        self.turn.go.next = false;
        self.admit.go.next = false;
        if self.state.q.val() == State::Work {
            if self.over.val() {
                self.what.d.next = self.what.q.val() + 1;
                self.state.d.next = State::Choose;
            }
        } else if self.calm.val() {
            // The one whose turn it is, or the one behind it.
            if self.what.q.val() == what::HEAD {
                self.hear.go.next = self.s_head.valid.val();
                self.fire.go.next = self.fires.val() & !self.s_head.valid.val();
            } else if self.what.q.val() == what::TIMER {
                self.fire.go.next = self.fires.val();
                self.turn.go.next = self.s_offer.valid.val() & !self.fires.val();
            } else if self.what.q.val() == what::OFFER {
                self.turn.go.next = self.s_offer.valid.val();
                self.admit.go.next = self.admit.wants.val() & !self.s_offer.valid.val();
            } else {
                self.admit.go.next = self.admit.wants.val();
                self.hear.go.next = self.s_head.valid.val() & !self.admit.wants.val();
            }
            self.what.d.next = self.what.q.val() + LOOKED_AT;
            if self.hear.go.val() {
                self.what.d.next = bits::<2>(what::HEAD);
                self.state.d.next = State::Work;
            } else if self.fire.go.val() {
                self.what.d.next = bits::<2>(what::TIMER);
                self.state.d.next = State::Work;
            } else if self.turn.go.val() {
                self.what.d.next = bits::<2>(what::OFFER);
                self.state.d.next = State::Work;
            } else if self.admit.go.val() {
                self.what.d.next = bits::<2>(what::POST);
                self.state.d.next = State::Work;
            }
        }
        if self.reset.val() {
            self.what.d.next = bits::<2>(what::HEAD);
            self.state.d.next = State::Choose;
        }
    }
}
