//! What semantics say of a packet that they were given.
use super::types::{LineAsk, LineTold, Reply};
use crate::bus::MsgSink;
use crate::uet::pdc::types::{pdc_ask, verdict, PdcAsk, PdcLine, PdcTold};
use crate::uet::pds::types::{Came, Finished, RxLine};
use crate::uet::types::{ack_ask, kept_ask, rx_ask, AckAsk, AckTold, KeptAsk, Owed, RxAsk, RxTold, LINE};
use ferric_abi::uet::codes::ReturnCode;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Looked,
    Finished,
    Weighed,
    Put,
    Done,
}

/// Ports as of [`super::director::Director`]; stands still unless `calm`.
#[derive(LogicBlock, BlockDefault)]
#[demand(LP <= LINE)]
pub struct Finish<const LP: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub now: Signal<In, Bits<32>>,
    pub go: Signal<In, Bit>,
    pub calm: Signal<In, Bit>,
    /// A line may come back, whoever else is still asked.
    pub free: Signal<In, Bit>,
    pub over: Signal<Out, Bit>,
    pub s_done: MsgSink<Finished>,
    pub line: Signal<In, LineTold>,
    pub pdc: Signal<In, PdcTold>,
    pub window: Signal<In, RxTold>,
    pub ack: Signal<In, AckTold>,
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
    fin: Signal<Local, Finished>,
    came: Signal<Local, Came>,
    p: Signal<Local, PdcTold>,
    pl: Signal<Local, PdcLine>,
    a: Signal<Local, AckTold>,
    put: Signal<Local, RxLine>,
    given: Signal<Local, Owed>,
    mine: Signal<Local, Owed>,
    at: Signal<Local, Bits<LINE>>,
    place: Signal<Local, Bits<LP>>,
    /// The response must not be lost.
    keep: Signal<Local, Bit>,
}

#[kernel]
impl<const LP: usize> Logic for Finish<LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state);
        self.fin.next = self.s_done.data.val();
        self.came.next = self.fin.val().came;
        self.p.next = self.pdc.val();
        self.pl.next = self.p.val().line;
        self.a.next = self.ack.val();
        self.place.next = self.fin.val().id.get_bits::<LP>(0);
        self.at.next = bit_cast::<LINE, LP>(self.place.val());
        self.put.next = self.line.val().line;
        // What the packet's ACK says; of a refusal the response says nothing.
        self.given.next = self.no_owed.val();
        self.given.next.psn = self.fin.val().psn;
        self.given.next.message = self.fin.val().message;
        self.given.next.code = self.fin.val().code.get_bits::<6>(0);
        self.given.next.length = self.fin.val().length;
        self.given.next.entropy = self.came.val().entropy;
        self.given.next.marked = self.came.val().congested;
        self.given.next.retx = self.came.val().retx;
        self.given.next.at = self.came.val().at;
        self.mine.next = self.given.val();
        self.keep.next = !self.fin.val().refused & (self.fin.val().keep | !(self.given.val().code == ReturnCode::Ok as u64));

        self.over.next = false;
        self.line_go.next = false;
        self.line_ask.next = self.no_line.val();
        self.line_ask.next.at = self.at.val();
        self.pdc_go.next = false;
        self.pdc_ask.next = self.no_ask.val();
        self.pdc_ask.next.kind = bits::<4>(pdc_ask::LOOK);
        self.pdc_ask.next.bare = true;
        self.pdc_ask.next.id = self.fin.val().id;
        self.window_go.next = false;
        self.window_ask.next = self.no_rx.val();
        self.window_ask.next.kind = bits::<3>(rx_ask::DONE);
        if self.fin.val().refused {
            self.window_ask.next.kind = bits::<3>(rx_ask::REFUSE);
        }
        self.window_ask.next.line = self.at.val();
        self.window_ask.next.psn = self.fin.val().psn;
        self.window_ask.next.bytes = self.fin.val().bytes;
        self.window_ask.next.keep = self.keep.val();
        self.ack_go.next = false;
        self.ack_ask.next = self.no_ack.val();
        self.ack_ask.next.kind = bits::<2>(ack_ask::DONE);
        self.ack_ask.next.line = self.at.val();
        self.ack_ask.next.now = self.now.val();
        self.ack_ask.next.owed = self.given.val();
        self.ack_ask.next.bytes = self.fin.val().bytes;
        self.ack_ask.next.ask = self.came.val().ask;
        self.ack_ask.next.filled = self.window.val().filled;
        self.ack_ask.next.beyond = self.window.val().beyond;
        self.ack_ask.next.keep = self.keep.val();
        self.kept_go.next = false;
        self.kept_ask.next = self.no_kept.val();
        self.kept_ask.next.kind = bits::<3>(kept_ask::DROP);
        if self.keep.val() {
            self.kept_ask.next.kind = bits::<3>(kept_ask::KEEP);
        }
        self.kept_ask.next.line = self.at.val();
        self.kept_ask.next.psn = self.fin.val().psn;
        self.kept_ask.next.message = self.fin.val().message;
        self.kept_ask.next.code = self.given.val().code;
        self.kept_ask.next.length = self.fin.val().length;
        self.reply_go.next = false;
        self.reply.next = self.no_reply.val();
        self.reply.next.peer = self.pl.val().peer;
        self.reply.next.id = self.pl.val().id;
        self.reply.next.peer_id = self.pl.val().peer_id;
        self.reply.next.wants = self.pl.val().wants;
        self.reply.next.code = self.fin.val().code;

        match self.state.q.val() {
            State::Idle => {
                if self.go.val() {
                    self.pdc_go.next = true;
                    self.line_go.next = true;
                    self.state.d.next = State::Looked;
                }
            }
            // Whether the PDC is still there; its line comes at the same time.
            State::Looked => {
                if self.calm.val() {
                    self.window_go.next = true;
                    self.state.d.next = State::Finished;
                    if (self.p.val().verdict == verdict::NOBODY) | self.pl.val().initiator {
                        self.window_go.next = false;
                        self.over.next = true;
                    }
                }
            }
            State::Finished => {
                self.reply.next.nack = true;
                if self.calm.val() {
                    self.over.next = !self.window.val().ok;
                    self.kept_go.next = self.window.val().ok;
                    self.reply_go.next = self.window.val().ok & self.fin.val().refused;
                    self.ack_go.next = self.window.val().ok & !self.fin.val().refused;
                    self.state.d.next = State::Weighed;
                    if self.fin.val().refused {
                        self.state.d.next = State::Done;
                    }
                }
            }
            State::Weighed => {
                self.mine.next = self.a.val().owed;
                self.reply.next.full = true;
                self.reply.next.service = self.a.val().service;
                if self.calm.val() {
                    self.reply_go.next = self.a.val().send;
                    self.state.d.next = State::Put;
                }
            }
            State::Put => {
                if self.a.val().send {
                    self.put.next.ack_on = false;
                }
                if self.keep.val() {
                    self.put.next.holds = true;
                }
                self.line_ask.next.put = true;
                self.line_ask.next.keeps = self.keep.val();
                self.line_ask.next.owes = self.a.val().waits;
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
        self.reply.next.owed = self.mine.val();
        self.line_ask.next.line = self.put.val();
        self.s_done.ready.next = self.over.val();
        if self.over.val() | self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
