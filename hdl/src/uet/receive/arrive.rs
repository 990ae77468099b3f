//! Requests and control packets: whose they are, what they are to the window, what is answered.
use super::types::{LineAsk, LineTold, Reply};
use crate::bus::{MsgSink, MsgSrc};
use crate::uet::head::types::{Carried, PdsFields, UetHead};
use crate::uet::pdc::types::{pdc_ask, verdict, PdcAsk, PdcLine, PdcTold};
use crate::uet::pds::types::{Came, Delivered, RxLine};
use crate::uet::types::{ack_ask, arrival, rx_ask, AckAsk, Owed, RxAsk, RxTold, LINE};
use ferric_abi::uet::codes::{ControlType, NackCode, PdsType, ReturnCode};
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
    Arrive,
    // A request
    Ruled,
    Deliver,
    // A control packet
    Asked,
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
    pub over: Signal<Out, Bit>,
    pub s_head: MsgSink<UetHead>,
    pub m_deliver: MsgSrc<Delivered>,
    pub line: Signal<In, LineTold>,
    pub pdc: Signal<In, PdcTold>,
    pub window: Signal<In, RxTold>,
    pub line_go: Signal<Out, Bit>,
    pub line_ask: Signal<Out, LineAsk>,
    pub pdc_go: Signal<Out, Bit>,
    pub pdc_ask: Signal<Out, PdcAsk>,
    pub window_go: Signal<Out, Bit>,
    pub window_ask: Signal<Out, RxAsk>,
    pub ack_go: Signal<Out, Bit>,
    pub ack_ask: Signal<Out, AckAsk>,
    pub reply_go: Signal<Out, Bit>,
    pub reply: Signal<Out, Reply>,
    state: DFF<State>,
    /// When the packet came.
    came_at: DFF<Bits<32>>,
    /// An ACK has gone; the PDC has begun to linger.
    acked: DFF<Bit>,
    lingers: DFF<Bit>,
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
    #[init(Constant::new(Reply::default()))]
    no_reply: Constant<Reply>,
    #[init(Constant::new(Owed::default()))]
    no_owed: Constant<Owed>,
    pds: Signal<Local, PdsFields>,
    carried: Signal<Local, Carried>,
    /// It is a request; ROD; cut on its way; an ACK is wanted.
    request: Signal<Local, Bit>,
    rod: Signal<Local, Bit>,
    trim: Signal<Local, Bits<2>>,
    cut: Signal<Local, Bit>,
    wanted: Signal<Local, Bit>,
    p: Signal<Local, PdcTold>,
    pl: Signal<Local, PdcLine>,
    w: Signal<Local, RxTold>,
    put: Signal<Local, RxLine>,
    how: Signal<Local, Came>,
    mine: Signal<Local, Owed>,
    at: Signal<Local, Bits<LINE>>,
    own_place: Signal<Local, Bits<LP>>,
    opens: Signal<Local, Bit>,
    whole: Signal<Local, Bit>,
    /// The reply is a NACK; it says what is known of a packet that was there before; it is one of a control packet.
    refuses: Signal<Local, Bit>,
    repeats: Signal<Local, Bit>,
    confirms: Signal<Local, Bit>,
}

#[kernel]
impl<const LP: usize> Logic for Arrive<LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, came_at, acked, lingers);
        self.pds.next = self.s_head.data.val().pds;
        self.carried.next = self.s_head.data.val().carried;
        self.request.next = !(self.pds.val().kind == PdsType::Control as u64);
        self.rod.next = self.pds.val().rod | (self.pds.val().kind == PdsType::RodReq as u64) | (self.pds.val().kind == PdsType::RodCcReq as u64);
        self.trim.next = self.carried.val().trim;
        self.cut.next = self.trim.val().any();
        self.wanted.next = self.pds.val().ar | self.pds.val().syn;
        self.p.next = self.pdc.val();
        self.pl.next = self.p.val().line;
        self.w.next = self.window.val();
        self.own_place.next = self.pl.val().id.get_bits::<LP>(0);
        self.at.next = bit_cast::<LINE, LP>(self.own_place.val());
        self.opens.next = self.p.val().verdict == verdict::OPENED;
        self.whole.next = (self.w.val().arrival == arrival::NEW) & self.w.val().first & (self.w.val().marked == ONE_PACKET);
        self.put.next = self.line.val().line;
        if self.opens.val() {
            self.put.next = self.nobody.val();
            self.put.next.id = self.pl.val().id;
        }
        if self.acked.q.val() {
            self.put.next.ack_on = false;
        }
        self.how.next.entropy = self.carried.val().entropy;
        self.how.next.congested = self.carried.val().congested;
        self.how.next.retx = self.pds.val().retx;
        self.how.next.ask = self.wanted.val();
        self.how.next.at = self.came_at.q.val();
        self.m_deliver.valid.next = self.state.q.val() == State::Deliver;
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
                self.pdc_ask.next.rod = self.rod.val();
                self.pdc_ask.next.request = self.request.val();
                self.pdc_ask.next.control = self.pds.val().follows;
                self.pdc_ask.next.syn = self.pds.val().syn;
                self.pdc_ask.next.offset = self.pds.val().dpdcid.get_bits::<12>(0);
                self.pdc_ask.next.trim = self.cut.val();
                self.came_at.d.next = self.now.val();
                self.acked.d.next = false;
                self.lingers.d.next = false;
                if self.go.val() {
                    self.pdc_go.next = true;
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
                        self.line_go.next = true;
                        self.state.d.next = State::Placed;
                    }
                }
            }
            State::Placed => {
                self.window_ask.next.kind = bits::<3>(rx_ask::OPEN);
                self.window_ask.next.psn = self.pl.val().start;
                if self.calm.val() {
                    self.state.d.next = State::Arrive;
                    if self.opens.val() {
                        self.window_go.next = true;
                        self.state.d.next = State::Opened;
                    }
                }
            }
            State::Opened => {
                if self.calm.val() {
                    self.ack_go.next = true;
                    self.state.d.next = State::Arrive;
                }
            }
            State::Arrive => {
                self.window_ask.next.kind = bits::<3>(rx_ask::ARRIVE);
                self.window_ask.next.rod = self.rod.val();
                self.window_ask.next.retx = self.pds.val().retx;
                self.window_ask.next.trim = self.cut.val();
                if !self.request.val() & (self.pds.val().follows == ControlType::AckRequest as u64) {
                    // A look that takes nothing.
                    self.window_ask.next.rod = false;
                    self.window_ask.next.trim = true;
                }
                if self.calm.val() {
                    self.state.d.next = State::Put;
                    if self.request.val() {
                        self.window_go.next = true;
                        self.state.d.next = State::Ruled;
                    } else if self.p.val().verdict == verdict::AGAIN {
                        self.confirms.next = true;
                    } else if self.pds.val().follows == ControlType::CloseCommand as u64 {
                        self.window_go.next = true;
                        self.state.d.next = State::CloseSeen;
                    } else if self.pds.val().follows == ControlType::AckRequest as u64 {
                        self.window_go.next = true;
                        self.state.d.next = State::Asked;
                    }
                }
            }
            State::Ruled => {
                self.reply.next.expected = self.w.val().expected;
                if self.w.val().arrival == arrival::NEW {
                    self.reply.next.code = bits::<8>(NackCode::Trimmed as u64);
                    if self.trim.val().get_bit(1) {
                        self.reply.next.code = bits::<8>(NackCode::TrimmedLastHop as u64);
                    }
                    self.reply.next.expected = bits::<32>(0);
                } else if self.w.val().arrival == arrival::OUTSIDE {
                    self.reply.next.code = bits::<8>(NackCode::OutOfWindow as u64);
                    if self.pds.val().syn {
                        self.reply.next.code = bits::<8>(NackCode::InvalidSyn as u64);
                    }
                    self.reply.next.expected = bits::<32>(0);
                } else {
                    self.reply.next.code = bits::<8>(NackCode::RodOutOfOrder as u64);
                }
                if self.calm.val() {
                    self.state.d.next = State::Put;
                    if self.w.val().arrival == arrival::NEW {
                        self.refuses.next = self.cut.val();
                        if !self.cut.val() {
                            self.state.d.next = State::Deliver;
                        }
                    } else if self.w.val().arrival == arrival::OLD {
                        self.repeats.next = self.cut.val() | self.wanted.val() | self.pds.val().retx;
                    } else if self.w.val().arrival == arrival::OUTSIDE {
                        self.refuses.next = !self.cut.val();
                    } else {
                        self.refuses.next = self.w.val().arrival == arrival::GAP_TELL;
                    }
                }
            }
            State::Deliver => {
                if self.m_deliver.ready.val() {
                    self.state.d.next = State::Put;
                }
            }
            // What became of a packet.
            State::Asked => {
                self.reply.next.code = bits::<8>(NackCode::NotReceived as u64);
                if self.w.val().arrival == arrival::PENDING {
                    self.reply.next.code = bits::<8>(NackCode::InProgress as u64);
                }
                if self.calm.val() {
                    self.repeats.next = self.w.val().arrival == arrival::OLD;
                    self.refuses.next = !(self.w.val().arrival == arrival::OLD);
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
                if self.calm.val() {
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
        if self.repeats.val() | self.confirms.val() {
            self.acked.d.next = true;
        }
        self.reply_go.next = self.refuses.val() | self.repeats.val() | self.confirms.val();
        self.reply.next.nack = self.refuses.val();
        self.reply.next.full = self.repeats.val();
        self.reply.next.again = self.repeats.val();
        self.reply.next.owed = self.mine.val();
        self.line_ask.next.line = self.put.val();
        self.s_head.ready.next = self.over.val();
        if self.over.val() | self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
