//! Timers that are over: time-out, stall, wait after a refusal, idleness and rest; and PDCs whose peer has gone.
use super::timing::timer;
use super::types::{LineAsk, LineTold};
use crate::bus::MsgSink;
use crate::msg::TimerEvent;
use crate::uet::pdc::types::{pdc_ask, PdcAsk};
use crate::uet::pds::types::{message_ask, why, Gone, MessageAsk, TxLine, WHY};
use crate::uet::types::{loss_ask, LossAsk, LossTold, SprayAsk, LINE};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// A value of `nack_max` with which what was refused is sent again for ever.
const FOR_EVER: u64 = 31;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Due,
    /// Its peer may have gone.
    Meant,
    /// A time-out.
    Silence,
    /// The question what became of a packet goes out.
    Send,
    /// Packets were looked at.
    Walked,
    Fail,
    Failed,
    /// The manager has been told.
    Told,
}

/// Ports as of [`super::director::Director`]; stands still unless `calm`.
#[derive(LogicBlock, BlockDefault)]
pub struct Fire {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub now: Signal<In, Bits<32>>,
    /// Time-outs and refusals in a row before a PDC fails.
    pub rto_max: Signal<In, Bits<4>>,
    pub nack_max: Signal<In, Bits<5>>,
    pub go: Signal<In, Bit>,
    pub calm: Signal<In, Bit>,
    pub over: Signal<Out, Bit>,
    pub s_timer: MsgSink<TimerEvent>,
    /// Places of PDCs that end if they are those of `gone`.
    pub s_ending: MsgSink<Bits<LINE>>,
    pub gone: Signal<In, Gone>,
    /// A frame goes out: ACK_REQUEST.
    pub send: Signal<Out, Bit>,
    pub sent: Signal<In, Bit>,
    pub line: Signal<In, LineTold>,
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
    at: DFF<Bits<LINE>>,
    kind: DFF<Bits<2>>,
    /// It is no timer: the PDC's peer may have gone.
    parts: DFF<Bit>,
    /// Its peer has gone: in a register, since who is asked next is deep.
    orphan: DFF<Bit>,
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
    l: Signal<Local, TxLine>,
    put: Signal<Local, TxLine>,
    fired: Signal<Local, Bits<24>>,
    tries_over: Signal<Local, Bit>,
    refused_over: Signal<Local, Bit>,
    life: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Fire {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, at, kind, parts, orphan);
        self.l.next = self.line.val().line;
        self.put.next = self.l.val();
        self.fired.next = self.s_timer.data.val().qpn >> timer::SHIFT;
        self.tries_over.next = self.l.val().tries >= self.rto_max.val();
        self.refused_over.next = (self.l.val().refusals >= self.nack_max.val()) & !(self.nack_max.val() == FOR_EVER);
        self.life.next = self.kind.q.val() == timer::LIFE;
        self.orphan.d.next = self.l.val().live & (self.gone.val().all | (self.l.val().peer == self.gone.val().peer));

        self.over.next = false;
        self.send.next = false;
        self.s_timer.ready.next = false;
        self.line_go.next = false;
        self.line_ask.next = self.no_line.val();
        self.line_ask.next.at = self.fired.val().get_bits::<LINE>(0);
        self.pdc_go.next = false;
        self.pdc_ask.next = self.no_ask.val();
        self.pdc_ask.next.kind = bits::<4>(pdc_ask::FAIL);
        self.pdc_ask.next.id = self.l.val().id;
        self.loss_go.next = false;
        self.loss_ask.next = self.no_loss.val();
        self.loss_ask.next.line = self.at.q.val();
        self.loss_ask.next.now = self.now.val();
        self.loss_ask.next.age = self.line.val().timeout;
        self.loss_ask.next.all = self.l.val().rod;
        self.message_go.next = false;
        self.message_ask.next = self.no_message.val();
        self.message_ask.next.kind = bits::<3>(message_ask::FAIL);
        self.message_ask.next.line = self.at.q.val();
        self.message_ask.next.why = bits::<WHY>(why::TIMEOUT);
        if self.parts.q.val() {
            self.message_ask.next.why = bits::<WHY>(why::GONE);
        } else if self.kind.q.val() == timer::RETRY {
            self.message_ask.next.why = bits::<WHY>(why::NO_ROOM);
        }
        self.spray_go.next = false;
        self.spray_ask.next = self.no_spray.val();
        self.spray_ask.next.line = self.at.q.val();
        self.spray_ask.next.choose = true;
        self.spray_ask.next.fixed = self.l.val().rod;
        // The timer that is over does not run.
        if self.kind.q.val() == timer::RTO {
            self.put.next.rto_on = false;
        } else if self.kind.q.val() == timer::STALL {
            self.put.next.stall_on = false;
        } else if self.kind.q.val() == timer::RETRY {
            self.put.next.retry_on = false;
        } else if self.l.val().rests {
            self.put.next.rests = false;
        } else {
            self.put.next.idle_on = false;
            self.put.next.closing = true;
        }

        match self.state.q.val() {
            State::Idle => {
                self.kind.d.next = self.s_timer.data.val().qpn.get_bits::<2>(0);
                self.at.d.next = self.fired.val().get_bits::<LINE>(0);
                self.parts.d.next = self.s_ending.valid.val();
                if self.s_ending.valid.val() {
                    self.kind.d.next = bits::<2>(timer::RTO);
                    self.at.d.next = self.s_ending.data.val();
                    self.line_ask.next.at = self.s_ending.data.val();
                }
                if self.go.val() {
                    self.s_timer.ready.next = !self.s_ending.valid.val();
                    self.line_go.next = true;
                    self.state.d.next = State::Due;
                }
            }
            State::Due => {
                if self.kind.q.val() == timer::RTO {
                    self.loss_ask.next.kind = bits::<4>(loss_ask::RTO);
                } else if self.kind.q.val() == timer::STALL {
                    self.loss_ask.next.kind = bits::<4>(loss_ask::STALL);
                } else {
                    self.loss_ask.next.kind = bits::<4>(loss_ask::RETRY);
                }
                if self.life.val() {
                    self.pdc_ask.next.kind = bits::<4>(pdc_ask::CLOSE);
                    if self.l.val().rests {
                        self.pdc_ask.next.kind = bits::<4>(pdc_ask::SAFE);
                    }
                }
                if self.calm.val() {
                    // A timer that was stopped, and a time-out that was put off, mean nothing.
                    self.over.next = true;
                    if self.parts.q.val() {
                        self.over.next = false;
                        self.state.d.next = State::Meant;
                    } else if self.kind.q.val() == timer::RTO {
                        if self.l.val().rto_on & self.line.val().due {
                            self.over.next = false;
                            self.pdc_go.next = self.tries_over.val();
                            self.loss_go.next = !self.tries_over.val();
                            self.state.d.next = State::Silence;
                            if self.tries_over.val() {
                                self.state.d.next = State::Fail;
                            }
                        }
                    } else if self.kind.q.val() == timer::STALL {
                        if self.l.val().stall_on {
                            self.over.next = false;
                            self.loss_go.next = true;
                            self.state.d.next = State::Walked;
                        }
                    } else if self.kind.q.val() == timer::RETRY {
                        if self.l.val().retry_on {
                            self.over.next = false;
                            self.pdc_go.next = self.refused_over.val();
                            self.loss_go.next = !self.refused_over.val();
                            self.state.d.next = State::Walked;
                            if self.refused_over.val() {
                                self.state.d.next = State::Fail;
                            }
                        }
                    } else if (self.l.val().rests & self.line.val().due) | self.l.val().idle_on {
                        // The timer of a place that rests may have been over before, for idleness, and nobody had heard of it.
                        self.over.next = false;
                        self.pdc_go.next = true;
                        self.state.d.next = State::Told;
                    }
                }
            }
            State::Meant => {
                if self.calm.val() {
                    self.over.next = !self.orphan.q.val();
                    self.pdc_go.next = self.orphan.q.val();
                    self.state.d.next = State::Fail;
                }
            }
            State::Silence => {
                if self.calm.val() {
                    self.state.d.next = State::Walked;
                    // The oldest is there, and only its answer is missing.
                    if self.loss.val().ok & self.loss.val().sacked {
                        self.spray_go.next = true;
                        self.state.d.next = State::Send;
                    }
                }
            }
            State::Send => {
                if self.calm.val() {
                    self.send.next = true;
                    if self.sent.val() {
                        self.state.d.next = State::Walked;
                    }
                }
            }
            State::Walked => {
                self.line_ask.next.put = true;
                self.line_ask.next.update = true;
                self.line_ask.next.follows = true;
                self.line_ask.next.arms = self.kind.q.val() == timer::RTO;
                self.line_ask.next.stall_again = self.kind.q.val() == timer::STALL;
                if self.calm.val() {
                    self.line_go.next = true;
                    self.over.next = true;
                }
            }
            State::Fail => {
                if self.calm.val() {
                    self.message_go.next = true;
                    self.state.d.next = State::Failed;
                }
            }
            State::Failed => {
                self.line_ask.next.put = true;
                self.line_ask.next.ends = true;
                if self.calm.val() {
                    self.line_go.next = true;
                    self.over.next = true;
                }
            }
            State::Told => {
                self.line_ask.next.put = true;
                self.line_ask.next.follows = !self.l.val().rests;
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
        // A place is taken when it is done with.
        self.s_ending.ready.next = self.over.val() & self.parts.q.val();
        if self.over.val() | self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
