//! One event after another: a message, an ACK or a NACK, a turn to send, a timer; what it means is asked of the blocks around.
use super::frame::Frame;
use super::timing::{timer, Timing};
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{TimerCmd, TimerEvent};
use crate::prim::ram::Ram;
use crate::prim::sum::{LessOne, Sum};
use crate::uet::head::types::{Carried, PdsFields, SesFields, UetHead};
use crate::uet::pdc::types::{pdc_ask, stage, verdict, PdcAsk, PdcLine, PdcTold};
use crate::uet::pds::types::{message_ask, why, Listed, Message, MessageAsk, MessageTold, Outgoing, TxLine};
use crate::uet::types::{content, loss_ask, Choice, LossAsk, LossTold, SprayAsk, TxRecord, LINE};
use ferric_abi::uet::codes::{AckRequest, NextHeader, PdsType, ReturnCode};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// What the event is.
mod what {
    pub const HEAD: u64 = 0;
    pub const TIMER: u64 = 1;
    pub const OFFER: u64 = 2;
    pub const POST: u64 = 3;
}

/// Who is asked.
mod to {
    pub const PDC: u64 = 0;
    pub const LOSS: u64 = 1;
    pub const MESSAGE: u64 = 2;
    pub const SPRAY: u64 = 3;
}

/// A value of `nack_max` with which what was refused is sent again for ever.
const FOR_EVER: u64 = 31;
/// Bits of a PDC's timers below its place, in a timer's number.
const TIMER_SHIFT: u64 = 2;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Wipe,
    Idle,
    // A block is asked, and answers
    Call,
    Answer,
    // The PDC's line
    Load,
    Take,
    Steady,
    Dispatch,
    // A message
    Posted,
    Opened,
    Paths,
    Emptied,
    Added,
    // An ACK, a NACK
    Known,
    Acked,
    AckRuled,
    Probed,
    Nacked,
    // A packet goes out
    Chosen,
    Cut,
    Left,
    Again,
    Send,
    // A timer
    Silence,
    // Behind each
    Update,
    Changed,
    Judged,
    ArmRto,
    ArmStall,
    ArmRetry,
    ArmIdle,
    ListAgain,
    ListNew,
    Fail,
    Over,
    Put,
}

/// The lines of `2^LP` initiators. Ports as of [`super::Transmit`], and those of the blocks in it.
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
    lines: Ram<TxLine, LP>,
    frame: Frame,
    timing: Timing,
    state: DFF<State>,
    after: DFF<State>,
    what: DFF<Bits<2>>,
    to: DFF<Bits<2>>,
    at: DFF<Bits<LINE>>,
    line: DFF<TxLine>,
    ask: DFF<PdcAsk>,
    pdc: DFF<PdcTold>,
    loss_ask: DFF<LossAsk>,
    loss: DFF<LossTold>,
    message_ask: DFF<MessageAsk>,
    message: DFF<MessageTold>,
    spray_ask: DFF<SprayAsk>,
    choice: DFF<Choice>,
    /// The timer that is over; of an offer: of packets to be sent again; a PDC was opened.
    kind: DFF<Bits<2>>,
    offered_again: DFF<Bit>,
    opens: DFF<Bit>,
    /// The frame asks what became of the oldest packet.
    asks: DFF<Bit>,
    /// Timers are looked at as after progress; the stall's is; a refused packet waits.
    arms: DFF<Bit>,
    stall_again: DFF<Bit>,
    waits: DFF<Bit>,
    /// The message found no PDC; when.
    blocked: DFF<Bit>,
    blocked_at: DFF<Bits<4>>,
    /// Why all messages of the PDC fail.
    why: DFF<Bits<2>>,
    fail_code: DFF<Bits<8>>,
    own: Sum<32>,
    base: Sum<32>,
    in_front: LessOne<32>,
    #[init(Constant::new(((1u64 << LP) - 1).to_bits()))]
    last: Constant<Bits<LINE>>,
    #[init(Constant::new(TxLine::default()))]
    nobody: Constant<TxLine>,
    #[init(Constant::new(PdcAsk::default()))]
    no_ask: Constant<PdcAsk>,
    #[init(Constant::new(LossAsk::default()))]
    no_loss: Constant<LossAsk>,
    #[init(Constant::new(MessageAsk::default()))]
    no_message: Constant<MessageAsk>,
    #[init(Constant::new(SprayAsk::default()))]
    no_spray: Constant<SprayAsk>,
    #[init(Constant::new(0xffff_0000u64.to_bits()))]
    sign: Constant<Bits<32>>,
    /// The present frame, and what is asked of the PDC for it.
    pds: Signal<Local, PdsFields>,
    ses: Signal<Local, SesFields>,
    peer: Signal<Local, Bits<16>>,
    ack: Signal<Local, Bit>,
    answered: Signal<Local, Bit>,
    nothing_new: Signal<Local, Bit>,
    l: Signal<Local, TxLine>,
    p: Signal<Local, PdcTold>,
    pl: Signal<Local, PdcLine>,
    carried: Signal<Local, Carried>,
    record: Signal<Local, TxRecord>,
    id_place: Signal<Local, Bits<LP>>,
    own_place: Signal<Local, Bits<LP>>,
    may_post: Signal<Local, Bit>,
    tries_over: Signal<Local, Bit>,
    refused_over: Signal<Local, Bit>,
    arming: Signal<Local, Bit>,
    new_too: Signal<Local, Bit>,
    number: Signal<Local, Bits<24>>,
    fired: Signal<Local, Bits<24>>,
}

#[kernel]
impl<const LP: usize> Logic for Director<LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, after, what, to, at, line, ask, pdc, loss_ask, loss, message_ask, message, spray_ask, choice);
        dff_setup!(self, clock, kind, offered_again, opens, asks, arms, stall_again, waits, blocked, blocked_at, why, fail_code);
        clock!(self, clock, lines, timing);
        self.l.next = self.line.q.val();
        self.p.next = self.pdc.q.val();
        self.pl.next = self.p.val().line;
        self.carried.next = self.s_head.data.val().carried;
        self.record.next = self.loss.q.val().record;
        self.lines.read_addr.next = bit_cast::<LP, LINE>(self.at.q.val());
        self.lines.write_addr.next = bit_cast::<LP, LINE>(self.at.q.val());
        self.lines.write_data.next = self.line.q.val();
        self.lines.write_en.next = false;
        self.timing.now.next = self.now.val();
        self.timing.rto.next = self.rto.val();
        self.timing.line.next = self.line.q.val();
        self.frame.line.next = self.line.q.val();
        self.frame.loss.next = self.loss.q.val();
        self.frame.asks.next = self.asks.q.val();
        self.frame.message.next = self.message.q.val();
        self.frame.choice.next = self.choice.q.val();
        // The frame that is being heard.
        self.pds.next = self.s_head.data.val().pds;
        self.ses.next = self.s_head.data.val().ses;
        self.peer.next = self.carried.val().peer;
        self.ack.next = !(self.pds.val().kind == PdsType::Nack as u64);
        self.answered.next = (self.ses.val().form == NextHeader::Response as u64) | (self.ses.val().form == NextHeader::ResponseData as u64);
        self.nothing_new.next = self.ses.val().code == ReturnCode::Null as u64;
        self.code.next = self.ses.val().code;
        self.own.a.next = self.pds.val().psn;
        self.own.b.next = bit_cast::<32, 16>(self.pds.val().word);
        if self.pds.val().word.get_bit(15) {
            self.own.b.next = bit_cast::<32, 16>(self.pds.val().word) | self.sign.val();
        }
        self.base.a.next = self.pds.val().psn;
        self.base.b.next = bit_cast::<32, 16>(self.pds.val().sack_offset);
        if self.pds.val().sack_offset.get_bit(15) {
            self.base.b.next = bit_cast::<32, 16>(self.pds.val().sack_offset) | self.sign.val();
        }
        self.in_front.a.next = self.pl.val().start;
        self.id_place.next = self.pds.val().dpdcid.get_bits::<LP>(0);
        self.own_place.next = self.pl.val().id.get_bits::<LP>(0);
        self.may_post.next = self.room.val() & (!self.blocked.q.val() | !(self.now.val().get_bits::<4>(0) == self.blocked_at.q.val()));
        self.tries_over.next = self.l.val().tries >= self.rto_max.val();
        self.refused_over.next = (self.l.val().refusals >= self.nack_max.val()) & !(self.nack_max.val() == FOR_EVER);
        self.arming.next = self.arms.q.val() | ((self.what.q.val() == what::OFFER) & !self.l.val().rto_on);
        self.new_too.next = self.timing.fresh.val() | self.timing.closes.val();
        self.fired.next = self.s_timer.data.val().qpn >> TIMER_SHIFT;

        self.s_post.ready.next = false;
        self.s_head.ready.next = false;
        self.s_offer.ready.next = false;
        self.s_timer.ready.next = false;
        self.m_out.valid.next = false;
        self.m_out.data.next = self.frame.frame.val();
        self.m_pdc.valid.next = (self.state.q.val() == State::Call) & (self.to.q.val() == to::PDC);
        self.m_pdc.data.next = self.ask.q.val();
        self.s_pdc.ready.next = (self.state.q.val() == State::Answer) & (self.to.q.val() == to::PDC);
        self.m_loss.valid.next = (self.state.q.val() == State::Call) & (self.to.q.val() == to::LOSS);
        self.m_loss.data.next = self.loss_ask.q.val();
        self.s_loss.ready.next = (self.state.q.val() == State::Answer) & (self.to.q.val() == to::LOSS);
        self.m_message.valid.next = (self.state.q.val() == State::Call) & (self.to.q.val() == to::MESSAGE);
        self.m_message.data.next = self.message_ask.q.val();
        self.s_message.ready.next = (self.state.q.val() == State::Answer) & (self.to.q.val() == to::MESSAGE);
        self.m_spray.valid.next = (self.state.q.val() == State::Call) & (self.to.q.val() == to::SPRAY);
        self.m_spray.data.next = self.spray_ask.q.val();
        self.s_choice.ready.next = (self.state.q.val() == State::Answer) & (self.to.q.val() == to::SPRAY);
        self.m_list.valid.next = false;
        self.m_list.data.next.line = self.at.q.val();
        self.m_list.data.next.again = self.state.q.val() == State::ListAgain;
        self.served.next = false;
        self.more.next = self.new_too.val();
        if self.offered_again.q.val() {
            self.more.next = self.timing.again.val();
        }
        self.m_timer.valid.next = false;
        self.m_timer.data.next.start = true;
        self.m_timer.data.next.kind = false;
        self.m_timer.data.next.ticks = self.timing.timeout.val();
        self.number.next = bits::<24>(timer::RTO);

        match self.state.q.val() {
            State::Wipe => {
                self.lines.write_en.next = true;
                self.lines.write_data.next = self.nobody.val();
                self.at.d.next = self.at.q.val() + 1;
                if self.at.q.val() == self.last.val() {
                    self.state.d.next = State::Idle;
                }
            }
            // Each kind of event in turn.
            State::Idle => {
                self.arms.d.next = false;
                self.stall_again.d.next = false;
                self.waits.d.next = false;
                self.asks.d.next = false;
                self.what.d.next = self.what.q.val() + 1;
                self.ask.d.next = self.no_ask.val();
                self.why.d.next = bits::<2>(why::TIMEOUT);
                self.fail_code.d.next = bits::<8>(0);
                if self.what.q.val() == what::HEAD {
                    if self.s_head.valid.val() {
                        self.what.d.next = self.what.q.val();
                        self.at.d.next = bit_cast::<LINE, LP>(self.id_place.val());
                        self.ask.d.next.kind = bits::<4>(pdc_ask::LOOK);
                        self.ask.d.next.id = self.pds.val().dpdcid;
                        self.ask.d.next.peer = self.peer.val();
                        self.ask.d.next.peer_id = self.pds.val().spdcid;
                        // Of a NACK the id may be missing: the manager judges it later.
                        self.ask.d.next.bare = !self.ack.val();
                        self.to.d.next = bits::<2>(to::PDC);
                        self.after.d.next = State::Known;
                        self.state.d.next = State::Call;
                    }
                } else if self.what.q.val() == what::TIMER {
                    self.s_timer.ready.next = true;
                    self.kind.d.next = self.s_timer.data.val().qpn.get_bits::<2>(0);
                    self.at.d.next = self.fired.val().get_bits::<LINE>(0);
                    if self.s_timer.valid.val() {
                        self.what.d.next = self.what.q.val();
                        self.state.d.next = State::Load;
                    }
                } else if self.what.q.val() == what::OFFER {
                    self.s_offer.ready.next = true;
                    self.offered_again.d.next = self.s_offer.data.val().again;
                    self.at.d.next = self.s_offer.data.val().line;
                    if self.s_offer.valid.val() {
                        self.what.d.next = self.what.q.val();
                        self.state.d.next = State::Load;
                    }
                } else if self.s_post.valid.val() & self.may_post.val() {
                    self.what.d.next = self.what.q.val();
                    self.ask.d.next.kind = bits::<4>(pdc_ask::POST);
                    self.ask.d.next.peer = self.s_post.data.val().peer;
                    self.ask.d.next.rod = self.s_post.data.val().rod;
                    self.ask.d.next.function = self.s_post.data.val().function;
                    self.to.d.next = bits::<2>(to::PDC);
                    self.after.d.next = State::Posted;
                    self.state.d.next = State::Call;
                }
            }
            State::Call => {
                if ((self.to.q.val() == to::PDC) & self.m_pdc.ready.val())
                    | ((self.to.q.val() == to::LOSS) & self.m_loss.ready.val())
                    | ((self.to.q.val() == to::MESSAGE) & self.m_message.ready.val())
                    | ((self.to.q.val() == to::SPRAY) & self.m_spray.ready.val())
                {
                    self.state.d.next = State::Answer;
                    // The beginning of a PDC's paths is not answered.
                    if (self.to.q.val() == to::SPRAY) & self.spray_ask.q.val().init {
                        self.state.d.next = self.after.q.val();
                    }
                }
            }
            State::Answer => {
                if self.to.q.val() == to::PDC {
                    self.pdc.d.next = self.s_pdc.data.val();
                    if self.s_pdc.valid.val() {
                        self.state.d.next = self.after.q.val();
                    }
                } else if self.to.q.val() == to::LOSS {
                    self.loss.d.next = self.s_loss.data.val();
                    if self.s_loss.valid.val() {
                        self.state.d.next = self.after.q.val();
                    }
                } else if self.to.q.val() == to::MESSAGE {
                    self.message.d.next = self.s_message.data.val();
                    if self.s_message.valid.val() {
                        self.state.d.next = self.after.q.val();
                    }
                } else {
                    self.choice.d.next = self.s_choice.data.val();
                    if self.s_choice.valid.val() {
                        self.state.d.next = self.after.q.val();
                    }
                }
            }
            // The memory sees the place in this state and has its line in the next.
            State::Load => {
                self.state.d.next = State::Take;
            }
            State::Take => {
                self.line.d.next = self.lines.read_data.val();
                self.state.d.next = State::Steady;
            }
            State::Steady => {
                self.loss_ask.d.next = self.no_loss.val();
                self.loss_ask.d.next.line = self.at.q.val();
                self.loss_ask.d.next.now = self.now.val();
                self.message_ask.d.next = self.no_message.val();
                self.message_ask.d.next.line = self.at.q.val();
                self.spray_ask.d.next = self.no_spray.val();
                self.spray_ask.d.next.line = self.at.q.val();
                self.spray_ask.d.next.fixed = self.l.val().rod;
                self.ask.d.next.id = self.l.val().id;
                self.state.d.next = State::Dispatch;
            }
            State::Dispatch => {
                if self.what.q.val() == what::POST {
                    self.state.d.next = State::Emptied;
                    if self.opens.q.val() {
                        self.line.d.next = self.nobody.val();
                        self.line.d.next.listed_again = self.l.val().listed_again;
                        self.line.d.next.listed_new = self.l.val().listed_new;
                        self.line.d.next.id = self.pl.val().id;
                        self.line.d.next.peer = self.pl.val().peer;
                        self.line.d.next.start = self.pl.val().start;
                        self.line.d.next.rod = self.pl.val().rod;
                        self.line.d.next.live = true;
                        self.line.d.next.syn = true;
                        self.loss_ask.d.next.kind = bits::<4>(loss_ask::OPEN);
                        self.loss_ask.d.next.psn = self.pl.val().start;
                        self.to.d.next = bits::<2>(to::LOSS);
                        self.after.d.next = State::Opened;
                        self.state.d.next = State::Call;
                    }
                } else if self.what.q.val() == what::HEAD {
                    self.to.d.next = bits::<2>(to::LOSS);
                    self.state.d.next = State::Call;
                    if self.ack.val() {
                        self.loss_ask.d.next.kind = bits::<4>(loss_ask::ACK);
                        self.loss_ask.d.next.cack = self.pds.val().psn;
                        self.loss_ask.d.next.psn = self.own.y.val();
                        self.loss_ask.d.next.sack = self.pds.val().kind == PdsType::AckCc as u64;
                        self.loss_ask.d.next.base = self.base.y.val();
                        self.loss_ask.d.next.bitmap = self.pds.val().bitmap;
                        self.loss_ask.d.next.rcvd = self.pds.val().state.get_bits::<24>(16);
                        self.loss_ask.d.next.service = self.pds.val().state.get_bits::<16>(48);
                        // Units of 128 PSNs.
                        self.loss_ask.d.next.range = bit_cast::<16, 8>(self.pds.val().mpr) << 7;
                        self.loss_ask.d.next.marked = self.pds.val().marked;
                        self.loss_ask.d.next.retx = self.pds.val().retx;
                        self.loss_ask.d.next.response = self.answered.val() & !self.nothing_new.val();
                        self.loss_ask.d.next.nothing = self.answered.val() & self.nothing_new.val();
                        self.after.d.next = State::Acked;
                    } else {
                        // An order that changes nothing, since it goes back to what was never sent: whether the packet is out.
                        self.loss_ask.d.next.kind = bits::<4>(loss_ask::NACK_BACK);
                        self.loss_ask.d.next.psn = self.pds.val().psn;
                        self.loss_ask.d.next.cack = self.in_front.y.val();
                        self.after.d.next = State::Probed;
                    }
                    if !self.l.val().live {
                        self.state.d.next = State::Put;
                    }
                } else if self.what.q.val() == what::OFFER {
                    self.state.d.next = State::Put;
                    if self.timing.again.val() | self.new_too.val() {
                        self.spray_ask.d.next.choose = true;
                        self.to.d.next = bits::<2>(to::SPRAY);
                        self.after.d.next = State::Chosen;
                        self.state.d.next = State::Call;
                    }
                } else {
                    self.state.d.next = State::Put;
                    self.to.d.next = bits::<2>(to::LOSS);
                    if self.kind.q.val() == timer::RTO {
                        if self.l.val().rto_on & self.timing.due.val() {
                            self.line.d.next.rto_on = false;
                            self.state.d.next = State::Call;
                            self.after.d.next = State::Silence;
                            self.loss_ask.d.next.kind = bits::<4>(loss_ask::RTO);
                            self.loss_ask.d.next.age = self.timing.timeout.val();
                            self.loss_ask.d.next.all = self.l.val().rod;
                            if self.tries_over.val() {
                                self.to.d.next = bits::<2>(to::PDC);
                                self.ask.d.next.kind = bits::<4>(pdc_ask::FAIL);
                                self.after.d.next = State::Fail;
                            }
                        }
                    } else if self.kind.q.val() == timer::STALL {
                        if self.l.val().stall_on {
                            self.line.d.next.stall_on = false;
                            self.stall_again.d.next = true;
                            self.loss_ask.d.next.kind = bits::<4>(loss_ask::STALL);
                            self.after.d.next = State::Update;
                            self.state.d.next = State::Call;
                        }
                    } else if self.kind.q.val() == timer::RETRY {
                        if self.l.val().retry_on {
                            self.line.d.next.retry_on = false;
                            self.loss_ask.d.next.kind = bits::<4>(loss_ask::RETRY);
                            self.after.d.next = State::Update;
                            self.state.d.next = State::Call;
                            if self.refused_over.val() {
                                self.why.d.next = bits::<2>(why::NO_ROOM);
                                self.to.d.next = bits::<2>(to::PDC);
                                self.ask.d.next.kind = bits::<4>(pdc_ask::FAIL);
                                self.after.d.next = State::Fail;
                            }
                        }
                    } else if self.l.val().rests {
                        self.line.d.next.rests = false;
                        self.to.d.next = bits::<2>(to::PDC);
                        self.ask.d.next.kind = bits::<4>(pdc_ask::SAFE);
                        self.after.d.next = State::Put;
                        self.state.d.next = State::Call;
                    } else if self.l.val().idle_on {
                        self.line.d.next.idle_on = false;
                        self.line.d.next.closing = true;
                        self.to.d.next = bits::<2>(to::PDC);
                        self.ask.d.next.kind = bits::<4>(pdc_ask::CLOSE);
                        self.after.d.next = State::Changed;
                        self.state.d.next = State::Call;
                    }
                }
            }
            State::Posted => {
                self.blocked.d.next = true;
                self.blocked_at.d.next = self.now.val().get_bits::<4>(0);
                self.opens.d.next = self.p.val().verdict == verdict::OPENED;
                self.at.d.next = bit_cast::<LINE, LP>(self.own_place.val());
                self.what.d.next = bits::<2>(what::HEAD);
                self.state.d.next = State::Idle;
                if (self.p.val().verdict == verdict::OPENED) | (self.p.val().verdict == verdict::DONE) {
                    self.blocked.d.next = false;
                    self.what.d.next = bits::<2>(what::POST);
                    self.state.d.next = State::Load;
                }
            }
            State::Opened => {
                self.spray_ask.d.next.init = true;
                self.to.d.next = bits::<2>(to::SPRAY);
                self.after.d.next = State::Paths;
                self.state.d.next = State::Call;
            }
            State::Paths => {
                self.line.d.next.room = self.loss.q.val().room;
                self.message_ask.d.next.kind = bits::<3>(message_ask::OPEN);
                self.to.d.next = bits::<2>(to::MESSAGE);
                self.after.d.next = State::Emptied;
                self.state.d.next = State::Call;
            }
            State::Emptied => {
                self.message_ask.d.next.kind = bits::<3>(message_ask::ADD);
                self.message_ask.d.next.message = self.s_post.data.val();
                self.to.d.next = bits::<2>(to::MESSAGE);
                self.after.d.next = State::Added;
                self.state.d.next = State::Call;
            }
            State::Added => {
                self.line.d.next.queued = true;
                self.line.d.next.idle_on = false;
                self.state.d.next = State::Changed;
            }
            State::Known => {
                self.state.d.next = State::Load;
                if (self.p.val().verdict == verdict::NOBODY) | !self.pl.val().initiator {
                    self.s_head.ready.next = true;
                    self.what.d.next = bits::<2>(what::TIMER);
                    self.state.d.next = State::Idle;
                }
            }
            // Whoever is told of answered packets has heard of all.
            State::Acked => {
                if self.quiet.val() {
                    self.ask.d.next.kind = bits::<4>(pdc_ask::ACK);
                    self.ask.d.next.bad = !self.loss.q.val().ok;
                    self.ask.d.next.empty = !self.loss.q.val().outs.any();
                    self.ask.d.next.wants = self.pds.val().req == AckRequest::Close as u64;
                    self.to.d.next = bits::<2>(to::PDC);
                    self.after.d.next = State::AckRuled;
                    self.state.d.next = State::Call;
                }
            }
            State::AckRuled => {
                self.arms.d.next = self.loss.q.val().progress;
                self.state.d.next = State::Put;
                if self.p.val().verdict == verdict::CLOSED {
                    self.state.d.next = State::Over;
                } else if self.p.val().verdict == verdict::DONE {
                    self.line.d.next.peer_id = self.pl.val().peer_id;
                    self.line.d.next.syn = self.pl.val().stage == stage::SYN;
                    self.line.d.next.closing = self.pl.val().closing;
                    self.state.d.next = State::Update;
                }
            }
            State::Probed => {
                self.ask.d.next.kind = bits::<4>(pdc_ask::NACK);
                self.ask.d.next.code = self.pds.val().word.get_bits::<8>(8);
                self.ask.d.next.stale = !self.loss.q.val().ok;
                self.ask.d.next.closes = self.l.val().leaving;
                self.to.d.next = bits::<2>(to::PDC);
                self.after.d.next = State::Nacked;
                self.state.d.next = State::Call;
            }
            State::Nacked => {
                self.fail_code.d.next = self.pds.val().word.get_bits::<8>(8);
                self.to.d.next = bits::<2>(to::LOSS);
                self.after.d.next = State::Update;
                self.state.d.next = State::Call;
                if self.p.val().verdict == verdict::RESEND {
                    self.loss_ask.d.next.kind = bits::<4>(loss_ask::NACK_AGAIN);
                } else if self.p.val().verdict == verdict::RETRY {
                    self.loss_ask.d.next.kind = bits::<4>(loss_ask::NACK_LATER);
                    // A peer that has no room for one has none for the others.
                    self.loss_ask.d.next.all = self.pl.val().stage == stage::SYN;
                    self.waits.d.next = true;
                } else if self.p.val().verdict == verdict::REWIND {
                    self.loss_ask.d.next.cack = self.pds.val().payload;
                } else if self.p.val().verdict == verdict::FAILED {
                    self.why.d.next = bits::<2>(why::REFUSED);
                    self.state.d.next = State::Fail;
                } else if self.p.val().verdict == verdict::CLOSED {
                    self.state.d.next = State::Over;
                } else {
                    self.state.d.next = State::Put;
                }
                if (self.p.val().verdict == verdict::RESEND) | (self.p.val().verdict == verdict::RETRY) | (self.p.val().verdict == verdict::REWIND) {
                    self.line.d.next.peer_id = self.pl.val().peer_id;
                    self.line.d.next.syn = self.pl.val().stage == stage::SYN;
                }
            }
            // What is to be sent again goes first.
            State::Chosen => {
                self.loss_ask.d.next.slot = self.choice.q.val().slot;
                self.loss_ask.d.next.more = self.l.val().queued;
                self.state.d.next = State::Call;
                if self.timing.again.val() {
                    self.loss_ask.d.next.kind = bits::<4>(loss_ask::AGAIN);
                    self.to.d.next = bits::<2>(to::LOSS);
                    self.after.d.next = State::Again;
                } else if self.timing.fresh.val() {
                    self.message_ask.d.next.kind = bits::<3>(message_ask::CUT);
                    self.to.d.next = bits::<2>(to::MESSAGE);
                    self.after.d.next = State::Cut;
                } else {
                    self.ask.d.next.kind = bits::<4>(pdc_ask::LEAVE);
                    self.to.d.next = bits::<2>(to::PDC);
                    self.after.d.next = State::Left;
                }
            }
            State::Cut => {
                self.line.d.next.queued = self.message.q.val().more;
                self.loss_ask.d.next.kind = bits::<4>(loss_ask::SEND);
                self.loss_ask.d.next.more = self.message.q.val().more;
                self.loss_ask.d.next.message = self.message.q.val().id;
                self.loss_ask.d.next.offset = self.message.q.val().offset;
                self.loss_ask.d.next.bytes = self.message.q.val().bytes;
                self.to.d.next = bits::<2>(to::LOSS);
                self.after.d.next = State::Send;
                self.state.d.next = State::Call;
            }
            State::Left => {
                self.loss_ask.d.next.kind = bits::<4>(loss_ask::SEND);
                self.loss_ask.d.next.content = bits::<2>(content::CLOSE);
                self.line.d.next.leaving = true;
                self.to.d.next = bits::<2>(to::LOSS);
                self.after.d.next = State::Send;
                self.state.d.next = State::Call;
                if self.p.val().verdict == verdict::NOBODY {
                    self.line.d.next.leaving = false;
                    self.line.d.next.closing = false;
                    self.state.d.next = State::Put;
                }
            }
            State::Again => {
                self.message_ask.d.next.kind = bits::<3>(message_ask::LOOK);
                self.message_ask.d.next.id = self.record.val().message;
                self.message_ask.d.next.offset = self.record.val().offset;
                self.message_ask.d.next.bytes = self.record.val().bytes;
                self.to.d.next = bits::<2>(to::MESSAGE);
                self.after.d.next = State::Send;
                self.state.d.next = State::Call;
                if !self.loss.q.val().ok {
                    self.state.d.next = State::Update;
                } else if !(self.record.val().content == content::DATA) {
                    self.state.d.next = State::Send;
                }
            }
            State::Send => {
                self.line.d.next.idle_on = false;
                self.m_out.valid.next = true;
                if self.m_out.ready.val() {
                    self.state.d.next = State::Update;
                }
            }
            State::Silence => {
                self.arms.d.next = true;
                self.state.d.next = State::Update;
                // The oldest is there, and only its answer is missing.
                if self.loss.q.val().ok & self.loss.q.val().sacked {
                    self.asks.d.next = true;
                    self.spray_ask.d.next.choose = true;
                    self.to.d.next = bits::<2>(to::SPRAY);
                    self.after.d.next = State::Send;
                    self.state.d.next = State::Call;
                }
            }
            State::Update => {
                self.line.d.next.outs = self.loss.q.val().outs.any();
                self.line.d.next.resends = self.loss.q.val().resends.any();
                self.line.d.next.waits = self.loss.q.val().waits.any();
                self.line.d.next.room = self.loss.q.val().room;
                self.line.d.next.hole = self.loss.q.val().hole;
                self.line.d.next.tries = self.loss.q.val().tries;
                self.line.d.next.refusals = self.loss.q.val().refusals;
                self.state.d.next = State::Changed;
            }
            // What follows from the line is known two cycles behind it, the time-out's end three.
            State::Changed => {
                self.state.d.next = State::Judged;
            }
            State::Judged => {
                self.state.d.next = State::ArmStall;
                if self.arming.val() {
                    self.state.d.next = State::ArmRto;
                }
            }
            State::ArmRto => {
                self.line.d.next.rto_on = self.l.val().outs;
                self.line.d.next.rto_at = self.timing.until.val();
                self.m_timer.valid.next = self.l.val().outs;
                if self.m_timer.ready.val() | !self.l.val().outs {
                    self.stall_again.d.next = true;
                    self.state.d.next = State::ArmStall;
                }
            }
            State::ArmStall => {
                self.number.next = bits::<24>(timer::STALL);
                self.m_timer.data.next.ticks = self.loss.q.val().stall;
                self.state.d.next = State::ArmRetry;
                if self.stall_again.q.val() {
                    self.m_timer.valid.next = self.timing.stalled.val() & !self.l.val().stall_on;
                    self.line.d.next.stall_on = self.timing.stalled.val();
                    if self.timing.stalled.val() & !self.l.val().stall_on & !self.m_timer.ready.val() {
                        self.line.d.next.stall_on = false;
                        self.state.d.next = State::ArmStall;
                    }
                }
            }
            State::ArmRetry => {
                self.number.next = bits::<24>(timer::RETRY);
                self.m_timer.data.next.ticks = self.nack_wait.val();
                self.m_timer.valid.next = self.waits.q.val() & !self.l.val().retry_on;
                self.state.d.next = State::ArmIdle;
                if self.waits.q.val() & !self.l.val().retry_on {
                    self.line.d.next.retry_on = self.m_timer.ready.val();
                    if !self.m_timer.ready.val() {
                        self.state.d.next = State::ArmRetry;
                    }
                }
            }
            State::ArmIdle => {
                self.number.next = bits::<24>(timer::LIFE);
                self.m_timer.data.next.ticks = self.idle.val();
                self.m_timer.valid.next = self.timing.rests.val() & !self.l.val().idle_on;
                self.state.d.next = State::ListAgain;
                if self.timing.rests.val() & !self.l.val().idle_on {
                    self.line.d.next.idle_on = self.m_timer.ready.val();
                    if !self.m_timer.ready.val() {
                        self.state.d.next = State::ArmIdle;
                    }
                }
            }
            State::ListAgain => {
                self.m_list.valid.next = self.timing.again.val() & !self.l.val().listed_again;
                self.state.d.next = State::ListNew;
                if self.timing.again.val() & !self.l.val().listed_again {
                    self.line.d.next.listed_again = self.m_list.ready.val();
                    if !self.m_list.ready.val() {
                        self.state.d.next = State::ListAgain;
                    }
                }
            }
            State::ListNew => {
                self.m_list.valid.next = self.new_too.val() & !self.l.val().listed_new;
                self.state.d.next = State::Put;
                if self.new_too.val() & !self.l.val().listed_new {
                    self.line.d.next.listed_new = self.m_list.ready.val();
                    if !self.m_list.ready.val() {
                        self.state.d.next = State::ListNew;
                    }
                }
            }
            State::Fail => {
                self.message_ask.d.next.kind = bits::<3>(message_ask::FAIL);
                self.message_ask.d.next.why = self.why.q.val();
                self.message_ask.d.next.code = self.fail_code.q.val();
                self.to.d.next = bits::<2>(to::MESSAGE);
                self.after.d.next = State::Over;
                self.state.d.next = State::Call;
            }
            // The PDC has ended, and its place rests.
            State::Over => {
                self.number.next = bits::<24>(timer::LIFE);
                self.m_timer.data.next.ticks = self.safety.val();
                self.m_timer.valid.next = true;
                if self.m_timer.ready.val() {
                    self.line.d.next = self.nobody.val();
                    self.line.d.next.id = self.l.val().id;
                    self.line.d.next.listed_again = self.l.val().listed_again;
                    self.line.d.next.listed_new = self.l.val().listed_new;
                    self.line.d.next.rests = true;
                    self.state.d.next = State::Put;
                }
            }
            State::Put => {
                self.lines.write_en.next = true;
                self.what.d.next = self.what.q.val() + 1;
                self.state.d.next = State::Idle;
                self.s_head.ready.next = self.what.q.val() == what::HEAD;
                self.s_post.ready.next = self.what.q.val() == what::POST;
                if self.what.q.val() == what::OFFER {
                    self.served.next = true;
                    if self.offered_again.q.val() {
                        self.lines.write_data.next.listed_again = self.timing.again.val();
                    } else {
                        self.lines.write_data.next.listed_new = self.new_too.val();
                    }
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        self.m_timer.data.next.qpn = (bit_cast::<24, LINE>(self.at.q.val()) << TIMER_SHIFT) | self.number.val();
        if self.reset.val() {
            self.at.d.next = bits::<LINE>(0);
            self.blocked.d.next = false;
            self.what.d.next = bits::<2>(what::HEAD);
            self.state.d.next = State::Wipe;
        }
    }
}
