//! Requests and control packets: whose they are, what they are to the window, what is answered.
use super::facts::{Facts, Reader};
use super::rules::Rules;
use super::types::{LineAsk, LineTold, Reply};
use crate::bus::{MsgSink, MsgSrc};
use crate::uet::head::types::{Carried, PdsFields, UetHead};
use crate::uet::pdc::types::{pdc_ask, verdict, PdcAsk, PdcLine, PdcTold};
use crate::uet::pds::types::{Came, Delivered, RxLine};
use crate::uet::types::{ack_ask, arrival, kept_ask, rx_ask, AckAsk, KeptAsk, KeptTold, Owed, RxAsk, RxTold, LINE};
use ferric_abi::uet::codes::ReturnCode;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Packets beyond CACK when one has come and no other is there: it is the first behind a hole.
const ONE_PACKET: u64 = 1;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Judged,
    Placed,
    Opened,
    Cleared,
    Arrive,
    // A request
    Ruled,
    Found,
    Deliver,
    // A control packet
    CloseSeen,
    Shut,
    // Behind each
    Put,
    Done,
}

/// Ports as of [`super::director::Director`]; stands still unless `calm`.
#[derive(LogicBlock, BlockDefault)]
#[demand(LP <= LINE)]
pub struct Arrive<const LP: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub now: Signal<In, Bits<32>>,
    pub go: Signal<In, Bit>,
    pub calm: Signal<In, Bit>,
    /// A line may come back, whoever else is still asked.
    pub free: Signal<In, Bit>,
    pub over: Signal<Out, Bit>,
    pub s_head: MsgSink<UetHead>,
    pub m_deliver: MsgSrc<Delivered>,
    pub line: Signal<In, LineTold>,
    pub pdc: Signal<In, PdcTold>,
    pub window: Signal<In, RxTold>,
    pub kept: Signal<In, KeptTold>,
    /// No place is free for a response.
    pub full: Signal<In, Bit>,
    pub line_go: Signal<Out, Bit>,
    pub line_ask: Signal<Out, LineAsk>,
    pub pdc_go: Signal<Out, Bit>,
    pub pdc_ask: Signal<Out, PdcAsk>,
    pub window_go: Signal<Out, Bit>,
    pub window_ask: Signal<Out, RxAsk>,
    pub ack_go: Signal<Out, Bit>,
    pub ack_ask: Signal<Out, AckAsk>,
    pub kept_go: Signal<Out, Bit>,
    pub kept_ask: Signal<Out, KeptAsk>,
    pub reply_go: Signal<Out, Bit>,
    pub reply: Signal<Out, Reply>,
    state: DFF<State>,
    /// When the packet came.
    came_at: DFF<Bits<32>>,
    /// An ACK has gone; the PDC has begun to linger.
    acked: DFF<Bit>,
    lingers: DFF<Bit>,
    /// Responses were cleared; some are kept still.
    cleared: DFF<Bit>,
    holds: DFF<Bit>,
    reader: Reader,
    rules: Rules,
    #[init(Constant::new(RxLine::default()))]
    nobody: Constant<RxLine>,
    #[init(Constant::new(LineAsk::default()))]
    no_line: Constant<LineAsk>,
    #[init(Constant::new(PdcAsk::default()))]
    no_ask: Constant<PdcAsk>,
    #[init(Constant::new(RxAsk::default()))]
    no_rx: Constant<RxAsk>,
    #[init(Constant::new(AckAsk::default()))]
    no_ack: Constant<AckAsk>,
    #[init(Constant::new(KeptAsk::default()))]
    no_kept: Constant<KeptAsk>,
    #[init(Constant::new(Reply::default()))]
    no_reply: Constant<Reply>,
    #[init(Constant::new(Owed::default()))]
    no_owed: Constant<Owed>,
    pds: Signal<Local, PdsFields>,
    carried: Signal<Local, Carried>,
    f: Signal<Local, Facts>,
    l: Signal<Local, RxLine>,
    p: Signal<Local, PdcTold>,
    pl: Signal<Local, PdcLine>,
    w: Signal<Local, RxTold>,
    put: Signal<Local, RxLine>,
    how: Signal<Local, Came>,
    mine: Signal<Local, Owed>,
    at: Signal<Local, Bits<LINE>>,
    own_place: Signal<Local, Bits<LP>>,
    named_place: Signal<Local, Bits<LP>>,
    cut_place: Signal<Local, Bits<LP>>,
    opens: Signal<Local, Bit>,
    whole: Signal<Local, Bit>,
    /// The reply is a NACK; it says nothing new of a packet that was there before, or what is kept; it is one of a control packet.
    refuses: Signal<Local, Bit>,
    repeats: Signal<Local, Bit>,
    resays: Signal<Local, Bit>,
    confirms: Signal<Local, Bit>,
}

#[kernel]
impl<const LP: usize> Logic for Arrive<LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, came_at, acked, lingers, cleared, holds);
        clock!(self, clock, reader);
        self.pds.next = self.s_head.data.val().pds;
        self.carried.next = self.s_head.data.val().carried;
        self.reader.head.next = self.s_head.data.val();
        self.f.next = self.reader.facts.val();
        self.l.next = self.line.val().line;
        self.p.next = self.pdc.val();
        self.pl.next = self.p.val().line;
        self.w.next = self.window.val();
        self.own_place.next = self.pl.val().id.get_bits::<LP>(0);
        self.named_place.next = self.pds.val().dpdcid.get_bits::<LP>(0);
        self.cut_place.next = self.p.val().cut_id.get_bits::<LP>(0);
        self.at.next = bit_cast::<LINE, LP>(self.own_place.val());
        self.opens.next = self.p.val().verdict == verdict::OPENED;
        self.whole.next = (self.w.val().arrival == arrival::NEW) & self.w.val().first & (self.w.val().marked == ONE_PACKET);
        self.put.next = self.l.val();
        if self.cleared.q.val() {
            self.put.next.holds = self.holds.q.val();
        }
        if self.opens.val() {
            self.put.next = self.nobody.val();
            self.put.next.id = self.pl.val().id;
        }
        if self.acked.q.val() {
            self.put.next.ack_on = false;
        }
        self.rules.arrival.next = self.w.val().arrival;
        self.rules.asks.next = self.f.val().question;
        self.rules.trim.next = self.f.val().trim;
        self.rules.syn.next = self.pds.val().syn;
        self.rules.wanted.next = self.f.val().wanted | self.pds.val().retx;
        self.how.next.entropy = self.carried.val().entropy;
        self.how.next.congested = self.carried.val().congested;
        self.how.next.retx = self.pds.val().retx;
        self.how.next.ask = self.f.val().wanted;
        self.how.next.at = self.came_at.q.val();
        self.m_deliver.valid.next = false;
        self.m_deliver.data.next.handle = self.carried.val().handle;
        self.m_deliver.data.next.pay_off = self.s_head.data.val().pay_off;
        self.m_deliver.data.next.bytes = self.s_head.data.val().pay_len.get_bits::<14>(0);
        self.m_deliver.data.next.id = self.pl.val().id;
        self.m_deliver.data.next.peer = self.pl.val().peer;
        self.m_deliver.data.next.psn = self.pds.val().psn;
        self.m_deliver.data.next.first = self.w.val().first;
        self.m_deliver.data.next.came = self.how.val();
        self.m_deliver.data.next.ses = self.s_head.data.val().ses;
        self.mine.next = self.no_owed.val();
        self.mine.next.psn = self.pds.val().psn;
        self.mine.next.entropy = self.carried.val().entropy;
        self.mine.next.marked = self.carried.val().congested;
        self.mine.next.retx = self.pds.val().retx;
        self.mine.next.at = self.came_at.q.val();

        self.over.next = false;
        self.line_go.next = false;
        self.line_ask.next = self.no_line.val();
        self.line_ask.next.at = self.at.val();
        self.pdc_go.next = false;
        self.pdc_ask.next = self.no_ask.val();
        self.pdc_ask.next.psn = self.pds.val().psn;
        self.window_go.next = false;
        self.window_ask.next = self.no_rx.val();
        self.window_ask.next.line = self.at.val();
        self.window_ask.next.psn = self.pds.val().psn;
        self.ack_go.next = false;
        self.ack_ask.next = self.no_ack.val();
        self.ack_ask.next.kind = bits::<2>(ack_ask::OPEN);
        self.ack_ask.next.line = self.at.val();
        self.ack_ask.next.now = self.now.val();
        self.kept_go.next = false;
        self.kept_ask.next = self.no_kept.val();
        self.kept_ask.next.kind = bits::<3>(kept_ask::FORGET);
        self.kept_ask.next.line = self.at.val();
        self.kept_ask.next.psn = self.pds.val().psn;
        self.resays.next = false;
        self.refuses.next = false;
        self.repeats.next = false;
        self.confirms.next = false;
        self.reply.next = self.no_reply.val();
        self.reply.next.peer = self.carried.val().peer;
        self.reply.next.id = self.pl.val().id;
        self.reply.next.peer_id = self.pds.val().spdcid;
        self.reply.next.wants = self.pl.val().wants;

        match self.state.q.val() {
            State::Idle => {
                self.pdc_ask.next.kind = bits::<4>(pdc_ask::ARRIVE);
                self.pdc_ask.next.peer = self.carried.val().peer;
                self.pdc_ask.next.id = self.pds.val().dpdcid;
                self.pdc_ask.next.peer_id = self.pds.val().spdcid;
                self.pdc_ask.next.rod = self.f.val().rod;
                self.pdc_ask.next.request = self.f.val().request;
                self.pdc_ask.next.control = self.pds.val().follows;
                self.pdc_ask.next.syn = self.pds.val().syn;
                self.pdc_ask.next.offset = self.pds.val().dpdcid.get_bits::<12>(0);
                self.pdc_ask.next.trim = self.f.val().cut;
                self.came_at.d.next = self.now.val();
                self.acked.d.next = false;
                self.lingers.d.next = false;
                self.cleared.d.next = false;
                // Who names a PDC by its id names the place of its line.
                self.line_ask.next.at = bit_cast::<LINE, LP>(self.named_place.val());
                if self.go.val() {
                    self.pdc_go.next = true;
                    self.line_go.next = !self.pds.val().syn;
                    self.state.d.next = State::Judged;
                }
            }
            // Whose the packet is.
            State::Judged => {
                self.reply.next.code = self.p.val().code;
                if !self.p.val().own {
                    self.reply.next.id = bits::<16>(0);
                }
                if self.calm.val() {
                    if self.p.val().verdict == verdict::REFUSE {
                        self.refuses.next = true;
                        self.state.d.next = State::Done;
                    } else if (self.p.val().verdict == verdict::DROP) | self.pl.val().initiator {
                        // What targets send to their initiators, but for answers, is not implemented.
                        self.over.next = true;
                    } else {
                        self.line_go.next = self.pds.val().syn;
                        self.state.d.next = State::Placed;
                    }
                }
            }
            State::Placed => {
                self.window_ask.next.kind = bits::<3>(rx_ask::OPEN);
                self.window_ask.next.psn = self.pl.val().start;
                if !self.opens.val() {
                    self.window_ask.next.kind = bits::<3>(rx_ask::CLEAR);
                    self.window_ask.next.psn = self.f.val().upto;
                }
                if self.calm.val() {
                    self.state.d.next = State::Arrive;
                    if self.opens.val() {
                        self.window_go.next = true;
                        self.kept_go.next = true;
                        self.state.d.next = State::Opened;
                    } else if self.f.val().clears & self.l.val().holds {
                        self.window_go.next = true;
                        self.state.d.next = State::Cleared;
                    }
                }
            }
            // What the peer has need not be kept.
            State::Cleared => {
                self.kept_ask.next.kind = bits::<3>(kept_ask::CLEAR);
                self.kept_ask.next.psn = self.f.val().upto;
                self.holds.d.next = self.w.val().held.any();
                if self.calm.val() {
                    self.cleared.d.next = true;
                    self.kept_go.next = self.w.val().freed.any();
                    self.state.d.next = State::Arrive;
                }
            }
            // Of one that has made room nothing is kept.
            State::Opened => {
                self.kept_ask.next.line = bit_cast::<LINE, LP>(self.cut_place.val());
                if self.calm.val() {
                    self.ack_go.next = true;
                    self.kept_go.next = self.p.val().cut_id.any();
                    self.state.d.next = State::Arrive;
                }
            }
            State::Arrive => {
                self.window_ask.next.kind = bits::<3>(rx_ask::ARRIVE);
                self.window_ask.next.rod = self.f.val().rod;
                self.window_ask.next.retx = self.pds.val().retx;
                self.window_ask.next.trim = self.f.val().cut;
                self.window_ask.next.full = self.full.val();
                if self.f.val().question {
                    // A look that takes nothing.
                    self.window_ask.next.rod = false;
                    self.window_ask.next.trim = true;
                }
                if self.calm.val() {
                    self.state.d.next = State::Put;
                    if self.f.val().request | self.f.val().question {
                        self.window_go.next = true;
                        self.state.d.next = State::Ruled;
                    } else if self.p.val().verdict == verdict::AGAIN {
                        self.confirms.next = true;
                    } else if self.f.val().close {
                        self.window_go.next = true;
                        self.state.d.next = State::CloseSeen;
                    }
                }
            }
            State::Ruled => {
                self.reply.next.code = self.rules.code.val();
                if self.rules.tells.val() {
                    self.reply.next.expected = self.w.val().expected;
                }
                self.kept_ask.next.kind = bits::<3>(kept_ask::LOOK);
                if self.rules.delivers.val() {
                    self.kept_ask.next.kind = bits::<3>(kept_ask::TAKE);
                }
                if self.calm.val() {
                    self.refuses.next = self.rules.refuses.val();
                    self.repeats.next = self.rules.repeats.val();
                    self.kept_go.next = self.rules.delivers.val() | self.rules.kept.val();
                    self.state.d.next = State::Put;
                    if self.rules.delivers.val() {
                        self.state.d.next = State::Deliver;
                    } else if self.rules.kept.val() {
                        self.state.d.next = State::Found;
                    }
                }
            }
            // A response that is kept is said again.
            State::Found => {
                self.mine.next.message = self.kept.val().message;
                self.mine.next.code = self.kept.val().code;
                self.mine.next.length = self.kept.val().length;
                if self.calm.val() {
                    self.resays.next = true;
                    self.state.d.next = State::Put;
                }
            }
            State::Deliver => {
                self.m_deliver.valid.next = true;
                if self.m_deliver.ready.val() {
                    self.state.d.next = State::Put;
                }
            }
            // The close is taken if it is all that is there beyond CACK.
            State::CloseSeen => {
                self.window_ask.next.kind = bits::<3>(rx_ask::REFUSE);
                if self.whole.val() {
                    self.window_ask.next.kind = bits::<3>(rx_ask::DONE);
                }
                self.pdc_ask.next.kind = bits::<4>(pdc_ask::SHUT);
                self.pdc_ask.next.id = self.pl.val().id;
                self.pdc_ask.next.whole = self.whole.val();
                if self.calm.val() {
                    // What is not new stays as it is.
                    self.window_go.next = self.w.val().arrival == arrival::NEW;
                    self.pdc_go.next = true;
                    self.state.d.next = State::Shut;
                }
            }
            State::Shut => {
                self.reply.next.code = self.p.val().code;
                if self.calm.val() {
                    self.lingers.d.next = self.p.val().verdict == verdict::LINGERS;
                    self.confirms.next = self.p.val().verdict == verdict::LINGERS;
                    self.refuses.next = !(self.p.val().verdict == verdict::LINGERS);
                    self.state.d.next = State::Put;
                }
            }
            State::Put => {
                self.line_ask.next.put = true;
                self.line_ask.next.hears = !(self.p.val().verdict == verdict::AGAIN);
                self.line_ask.next.lingers = self.lingers.q.val();
                if self.free.val() {
                    self.line_go.next = true;
                    self.over.next = true;
                }
            }
            State::Done => {
                if self.calm.val() {
                    self.over.next = true;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.repeats.val() {
            // There is nothing new to say of it.
            self.mine.next.code = bits::<6>(ReturnCode::Null as u64);
        }
        if self.repeats.val() | self.resays.val() | self.confirms.val() {
            self.acked.d.next = true;
        }
        self.reply_go.next = self.refuses.val() | self.repeats.val() | self.resays.val() | self.confirms.val();
        self.reply.next.nack = self.refuses.val();
        self.reply.next.full = self.repeats.val() | self.resays.val();
        self.reply.next.again = self.repeats.val() | self.resays.val();
        self.reply.next.owed = self.mine.val();
        self.line_ask.next.line = self.put.val();
        self.s_head.ready.next = self.over.val();
        if self.over.val() | self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
