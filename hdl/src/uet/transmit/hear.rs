//! ACKs, NACKs and CLEAR_REQUEST: what they mean is asked of `loss` and of the PDC manager.
use super::types::{LineAsk, LineTold};
use crate::bus::MsgSink;
use crate::prim::sum::{LessOne, Sum};
use crate::uet::head::types::{Carried, PdsFields, SesFields, UetHead};
use crate::uet::pdc::types::{pdc_ask, stage, verdict, PdcAsk, PdcLine, PdcTold};
use crate::uet::pds::types::{message_ask, why, MessageAsk, TxLine, WHY};
use crate::uet::types::{loss_ask, LossAsk, LossTold, SprayAsk, LINE};
use ferric_abi::uet::codes::{AckRequest, NextHeader, PdsType, ReturnCode};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Known,
    Judge,
    // An ACK
    Acked,
    AckRuled,
    // A clear is wanted
    Clear,
    // A NACK
    Probed,
    Nacked,
    Redone,
    Failed,
}

/// Ports as of [`super::director::Director`]; stands still unless `calm`.
#[derive(LogicBlock, BlockDefault)]
#[demand(LP <= LINE)]
pub struct Hear<const LP: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub now: Signal<In, Bits<32>>,
    pub go: Signal<In, Bit>,
    pub calm: Signal<In, Bit>,
    pub over: Signal<Out, Bit>,
    pub s_head: MsgSink<UetHead>,
    /// All answers have been heard of; the code of the present one.
    pub quiet: Signal<In, Bit>,
    pub code: Signal<Out, Bits<6>>,
    /// A frame goes out: CLEAR_COMMAND.
    pub send: Signal<Out, Bit>,
    pub sent: Signal<In, Bit>,
    pub peer_id: Signal<Out, Bits<16>>,
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
    /// The clear has gone.
    cleared: DFF<Bit>,
    own: Sum<32>,
    base: Sum<32>,
    in_front: LessOne<32>,
    #[init(Constant::new(0xffff_0000u64.to_bits()))]
    sign: Constant<Bits<32>>,
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
    pds: Signal<Local, PdsFields>,
    ses: Signal<Local, SesFields>,
    carried: Signal<Local, Carried>,
    /// It is an ACK; a control packet, which can only be CLEAR_REQUEST.
    ack: Signal<Local, Bit>,
    control: Signal<Local, Bit>,
    answered: Signal<Local, Bit>,
    nothing_new: Signal<Local, Bit>,
    refusal: Signal<Local, Bits<8>>,
    /// Nothing is to be sent that would bring the clear.
    still: Signal<Local, Bit>,
    clear: Signal<Local, Bit>,
    p: Signal<Local, PdcTold>,
    pl: Signal<Local, PdcLine>,
    l: Signal<Local, TxLine>,
    put: Signal<Local, TxLine>,
    at: Signal<Local, Bits<LINE>>,
    id_place: Signal<Local, Bits<LP>>,
}

#[kernel]
impl<const LP: usize> Logic for Hear<LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, cleared);
        self.pds.next = self.s_head.data.val().pds;
        self.ses.next = self.s_head.data.val().ses;
        self.carried.next = self.s_head.data.val().carried;
        self.p.next = self.pdc.val();
        self.pl.next = self.p.val().line;
        self.l.next = self.line.val().line;
        self.put.next = self.l.val();
        self.control.next = self.pds.val().kind == PdsType::Control as u64;
        self.ack.next = !(self.pds.val().kind == PdsType::Nack as u64) & !self.control.val();
        self.still.next = !self.loss.val().resends.any() & !(self.l.val().queued & self.loss.val().room) & (self.pl.val().stage == stage::OPEN);
        self.answered.next = (self.ses.val().form == NextHeader::Response as u64) | (self.ses.val().form == NextHeader::ResponseData as u64);
        self.nothing_new.next = self.ses.val().code == ReturnCode::Null as u64;
        self.code.next = self.ses.val().code;
        self.refusal.next = self.pds.val().word.get_bits::<8>(8);
        self.clear.next = self.control.val() | ((self.pds.val().req == AckRequest::Clear as u64) & self.still.val() & (self.p.val().verdict == verdict::DONE));
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
        self.in_front.a.next = self.l.val().start;
        self.id_place.next = self.pds.val().dpdcid.get_bits::<LP>(0);
        self.at.next = bit_cast::<LINE, LP>(self.id_place.val());

        self.over.next = false;
        self.send.next = false;
        self.peer_id.next = self.pds.val().spdcid;
        self.spray_go.next = false;
        self.spray_ask.next = self.no_spray.val();
        self.spray_ask.next.line = self.at.val();
        self.spray_ask.next.choose = true;
        self.spray_ask.next.fixed = self.l.val().rod;
        self.line_go.next = false;
        self.line_ask.next = self.no_line.val();
        self.line_ask.next.at = self.at.val();
        self.pdc_go.next = false;
        self.pdc_ask.next = self.no_ask.val();
        self.pdc_ask.next.id = self.l.val().id;
        self.pdc_ask.next.peer = self.carried.val().peer;
        self.pdc_ask.next.peer_id = self.pds.val().spdcid;
        // Of a NACK the id may be missing: the manager judges it later.
        self.pdc_ask.next.bare = !self.ack.val() & !self.control.val();
        self.loss_go.next = false;
        self.loss_ask.next = self.no_loss.val();
        self.loss_ask.next.line = self.at.val();
        self.loss_ask.next.now = self.now.val();
        self.loss_ask.next.psn = self.pds.val().psn;
        self.message_go.next = false;
        self.message_ask.next = self.no_message.val();
        self.message_ask.next.kind = bits::<3>(message_ask::FAIL);
        self.message_ask.next.line = self.at.val();
        self.message_ask.next.why = bits::<WHY>(why::REFUSED);
        self.message_ask.next.code = self.refusal.val();

        match self.state.q.val() {
            State::Idle => {
                self.pdc_ask.next.kind = bits::<4>(pdc_ask::LOOK);
                self.pdc_ask.next.id = self.pds.val().dpdcid;
                self.pdc_ask.next.heard = true;
                self.cleared.d.next = false;
                if self.go.val() {
                    self.pdc_go.next = true;
                    self.line_go.next = true;
                    self.state.d.next = State::Known;
                }
            }
            State::Known => {
                if self.calm.val() {
                    self.state.d.next = State::Judge;
                    if (self.p.val().verdict == verdict::NOBODY) | !self.pl.val().initiator {
                        self.over.next = true;
                    }
                }
            }
            State::Judge => {
                if self.ack.val() {
                    self.loss_ask.next.kind = bits::<4>(loss_ask::ACK);
                    self.loss_ask.next.cack = self.pds.val().psn;
                    self.loss_ask.next.psn = self.own.y.val();
                    self.loss_ask.next.sack = self.pds.val().kind == PdsType::AckCc as u64;
                    self.loss_ask.next.base = self.base.y.val();
                    self.loss_ask.next.bitmap = self.pds.val().bitmap;
                    self.loss_ask.next.rcvd = self.pds.val().state.get_bits::<24>(16);
                    self.loss_ask.next.service = self.pds.val().state.get_bits::<16>(48);
                    // Units of 128 PSNs.
                    self.loss_ask.next.range = bit_cast::<16, 8>(self.pds.val().mpr) << 7;
                    self.loss_ask.next.marked = self.pds.val().marked;
                    self.loss_ask.next.retx = self.pds.val().retx;
                    self.loss_ask.next.response = self.answered.val() & !self.nothing_new.val();
                    self.loss_ask.next.nothing = self.answered.val() & self.nothing_new.val();
                } else {
                    // An order that changes nothing, since it goes back to what was never sent: whether the packet is out.
                    self.loss_ask.next.kind = bits::<4>(loss_ask::NACK_BACK);
                    self.loss_ask.next.cack = self.in_front.y.val();
                }
                if self.calm.val() {
                    self.loss_go.next = self.l.val().live;
                    self.over.next = !self.l.val().live;
                    self.state.d.next = State::Probed;
                    if self.ack.val() {
                        self.state.d.next = State::Acked;
                    } else if self.control.val() {
                        self.state.d.next = State::AckRuled;
                    }
                }
            }
            // Whoever is told of answered packets has heard of all.
            State::Acked => {
                self.pdc_ask.next.kind = bits::<4>(pdc_ask::ACK);
                self.pdc_ask.next.bad = !self.loss.val().ok;
                self.pdc_ask.next.empty = !self.loss.val().outs.any();
                self.pdc_ask.next.wants = self.pds.val().req == AckRequest::Close as u64;
                if self.calm.val() & self.quiet.val() {
                    self.pdc_go.next = true;
                    self.state.d.next = State::AckRuled;
                }
            }
            State::AckRuled => {
                self.put.next.peer_id = self.pl.val().peer_id;
                self.put.next.syn = self.pl.val().stage == stage::SYN;
                self.put.next.closing = self.pl.val().closing;
                self.line_ask.next.put = true;
                self.line_ask.next.update = true;
                self.line_ask.next.follows = true;
                self.line_ask.next.arms = self.loss.val().progress;
                self.line_ask.next.ends = self.p.val().verdict == verdict::CLOSED;
                if self.calm.val() {
                    // What is kept at the peer may go, since its answer is here. A request would say so, if there were one.
                    if self.clear.val() & !self.cleared.q.val() {
                        self.spray_go.next = true;
                        self.state.d.next = State::Clear;
                    } else {
                        self.line_go.next = self.ack.val() & ((self.p.val().verdict == verdict::CLOSED) | (self.p.val().verdict == verdict::DONE));
                        self.over.next = true;
                    }
                }
            }
            State::Clear => {
                if self.calm.val() {
                    self.send.next = true;
                    if self.sent.val() {
                        self.cleared.d.next = true;
                        self.state.d.next = State::AckRuled;
                    }
                }
            }
            State::Probed => {
                self.pdc_ask.next.kind = bits::<4>(pdc_ask::NACK);
                self.pdc_ask.next.code = self.refusal.val();
                self.pdc_ask.next.stale = !self.loss.val().ok;
                self.pdc_ask.next.closes = self.l.val().leaving;
                if self.calm.val() {
                    self.pdc_go.next = true;
                    self.state.d.next = State::Nacked;
                }
            }
            State::Nacked => {
                self.line_ask.next.put = true;
                self.line_ask.next.ends = true;
                self.loss_ask.next.kind = bits::<4>(loss_ask::NACK_BACK);
                self.loss_ask.next.cack = self.pds.val().payload;
                if self.p.val().verdict == verdict::RESEND {
                    self.loss_ask.next.kind = bits::<4>(loss_ask::NACK_AGAIN);
                } else if self.p.val().verdict == verdict::RETRY {
                    self.loss_ask.next.kind = bits::<4>(loss_ask::NACK_LATER);
                    // A peer that has no room for one has none for the others.
                    self.loss_ask.next.all = self.pl.val().stage == stage::SYN;
                }
                if self.calm.val() {
                    if (self.p.val().verdict == verdict::RESEND) | (self.p.val().verdict == verdict::RETRY) | (self.p.val().verdict == verdict::REWIND) {
                        self.loss_go.next = true;
                        self.state.d.next = State::Redone;
                    } else if self.p.val().verdict == verdict::FAILED {
                        self.message_go.next = true;
                        self.state.d.next = State::Failed;
                    } else {
                        self.line_go.next = self.p.val().verdict == verdict::CLOSED;
                        self.over.next = true;
                    }
                }
            }
            State::Redone => {
                self.put.next.peer_id = self.pl.val().peer_id;
                self.put.next.syn = self.pl.val().stage == stage::SYN;
                self.line_ask.next.put = true;
                self.line_ask.next.update = true;
                self.line_ask.next.follows = true;
                self.line_ask.next.waits = self.p.val().verdict == verdict::RETRY;
                if self.calm.val() {
                    self.line_go.next = true;
                    self.over.next = true;
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
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        self.line_ask.next.line = self.put.val();
        self.s_head.ready.next = self.over.val();
        if self.over.val() | self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
