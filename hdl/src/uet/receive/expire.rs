//! Timers that are over: the ACK that is owed, the end of a silent peer or of the lingering, the wait for a clear; and PDCs whose peer has gone.
use super::types::{timer, LineAsk, LineTold, Reply};
use crate::bus::MsgSink;
use crate::msg::TimerEvent;
use crate::uet::pdc::types::{pdc_ask, verdict, PdcAsk, PdcLine, PdcTold};
use crate::uet::pds::types::{Gone, RxLine};
use crate::uet::types::{ack_ask, kept_ask, AckAsk, AckTold, KeptAsk, LINE};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Due,
    // An ACK is owed
    Looked,
    Weighed,
    Put,
    // A life is over
    Ended,
    /// Whose PDC it is, and whether it ends.
    Meant,
    Parted,
}

/// Ports as of [`super::director::Director`]; stands still unless `calm`.
#[derive(LogicBlock, BlockDefault)]
pub struct Expire {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub now: Signal<In, Bits<32>>,
    pub go: Signal<In, Bit>,
    pub calm: Signal<In, Bit>,
    pub over: Signal<Out, Bit>,
    pub s_timer: MsgSink<TimerEvent>,
    /// Places of PDCs that end if they are those of `gone`.
    pub s_ending: MsgSink<Bits<LINE>>,
    pub gone: Signal<In, Gone>,
    pub line: Signal<In, LineTold>,
    pub pdc: Signal<In, PdcTold>,
    pub ack: Signal<In, AckTold>,
    pub line_go: Signal<Out, Bit>,
    pub line_ask: Signal<Out, LineAsk>,
    pub pdc_go: Signal<Out, Bit>,
    pub pdc_ask: Signal<Out, PdcAsk>,
    pub ack_go: Signal<Out, Bit>,
    pub ack_ask: Signal<Out, AckAsk>,
    pub kept_go: Signal<Out, Bit>,
    pub kept_ask: Signal<Out, KeptAsk>,
    pub reply_go: Signal<Out, Bit>,
    pub reply: Signal<Out, Reply>,
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
    #[init(Constant::new(AckAsk::default()))]
    no_ack: Constant<AckAsk>,
    #[init(Constant::new(KeptAsk::default()))]
    no_kept: Constant<KeptAsk>,
    #[init(Constant::new(Reply::default()))]
    no_reply: Constant<Reply>,
    p: Signal<Local, PdcTold>,
    pl: Signal<Local, PdcLine>,
    l: Signal<Local, RxLine>,
    put: Signal<Local, RxLine>,
    a: Signal<Local, AckTold>,
    fired: Signal<Local, Bits<24>>,
    nobody: Signal<Local, Bit>,
    /// There is an ACK that is owed.
    owed: Signal<Local, Bit>,
    life: Signal<Local, Bit>,
    clear: Signal<Local, Bit>,
    /// The timer that is over was still running.
    runs: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Expire {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, at, kind, parts, orphan);
        self.p.next = self.pdc.val();
        self.pl.next = self.p.val().line;
        self.l.next = self.line.val().line;
        self.a.next = self.ack.val();
        self.fired.next = self.s_timer.data.val().qpn >> timer::SHIFT;
        self.nobody.next = (self.p.val().verdict == verdict::NOBODY) | self.pl.val().initiator;
        self.owed.next = self.a.val().waits & !self.nobody.val();
        self.life.next = self.kind.q.val() == timer::LIFE;
        self.clear.next = self.kind.q.val() == timer::CLEAR;
        self.put.next = self.l.val();
        self.orphan.d.next = !self.nobody.val() & (self.gone.val().all | (self.pl.val().peer == self.gone.val().peer));
        self.runs.next = self.l.val().ack_on;
        if self.life.val() {
            self.runs.next = (self.l.val().life_on & self.line.val().due) | self.parts.q.val();
            self.put.next.life_on = false;
            self.put.next.holds = false;
        } else if self.clear.val() {
            self.runs.next = self.l.val().clear_on;
            self.put.next.clear_on = false;
        } else {
            self.put.next.ack_on = false;
        }

        self.over.next = false;
        self.s_timer.ready.next = false;
        self.line_go.next = false;
        self.line_ask.next = self.no_line.val();
        self.line_ask.next.at = self.fired.val().get_bits::<LINE>(0);
        self.pdc_go.next = false;
        self.pdc_ask.next = self.no_ask.val();
        self.pdc_ask.next.bare = true;
        self.pdc_ask.next.id = self.l.val().id;
        self.ack_go.next = false;
        self.ack_ask.next = self.no_ack.val();
        self.ack_ask.next.kind = bits::<2>(ack_ask::LATE);
        self.ack_ask.next.line = self.at.q.val();
        self.ack_ask.next.now = self.now.val();
        self.kept_go.next = false;
        self.kept_ask.next = self.no_kept.val();
        self.kept_ask.next.kind = bits::<3>(kept_ask::FORGET);
        self.kept_ask.next.line = self.at.q.val();
        self.reply_go.next = false;
        self.reply.next = self.no_reply.val();
        self.reply.next.peer = self.pl.val().peer;
        self.reply.next.id = self.pl.val().id;
        self.reply.next.peer_id = self.pl.val().peer_id;
        self.reply.next.wants = self.pl.val().wants;
        self.reply.next.rod = self.pl.val().rod;
        self.reply.next.clears = self.clear.val();
        self.reply.next.full = !self.clear.val();
        self.reply.next.owed = self.a.val().owed;
        self.reply.next.service = self.a.val().service;

        match self.state.q.val() {
            State::Idle => {
                self.kind.d.next = self.s_timer.data.val().qpn.get_bits::<2>(0);
                self.at.d.next = self.fired.val().get_bits::<LINE>(0);
                self.parts.d.next = self.s_ending.valid.val();
                if self.s_ending.valid.val() {
                    self.kind.d.next = bits::<2>(timer::LIFE);
                    self.at.d.next = self.s_ending.data.val();
                    self.line_ask.next.at = self.s_ending.data.val();
                }
                if self.go.val() {
                    self.s_timer.ready.next = !self.s_ending.valid.val();
                    self.line_go.next = true;
                    self.state.d.next = State::Due;
                }
            }
            // A timer that was stopped or put off means nothing.
            State::Due => {
                self.pdc_ask.next.kind = bits::<4>(pdc_ask::LOOK);
                if self.life.val() & !self.parts.q.val() {
                    // One that lingers has done so for long enough; any other has been silent for too long.
                    self.pdc_ask.next.kind = bits::<4>(pdc_ask::SAFE);
                }
                if self.calm.val() {
                    self.pdc_go.next = self.runs.val();
                    self.over.next = !self.runs.val();
                    self.state.d.next = State::Looked;
                    if self.parts.q.val() {
                        self.state.d.next = State::Meant;
                    } else if self.life.val() {
                        self.state.d.next = State::Ended;
                    }
                }
            }
            State::Looked => {
                if self.calm.val() {
                    self.ack_go.next = !self.nobody.val() & !self.clear.val();
                    // What has been cleared since is not asked for.
                    self.reply_go.next = !self.nobody.val() & self.clear.val() & self.l.val().holds;
                    self.state.d.next = State::Put;
                    if !self.nobody.val() & !self.clear.val() {
                        self.state.d.next = State::Weighed;
                    }
                }
            }
            State::Weighed => {
                if self.calm.val() {
                    self.reply_go.next = self.a.val().send;
                    self.state.d.next = State::Put;
                }
            }
            State::Put => {
                self.line_ask.next.put = true;
                self.line_ask.next.owes = self.owed.val() & !self.life.val() & !self.clear.val();
                self.line_ask.next.keeps = self.clear.val() & self.l.val().holds & !self.nobody.val();
                if self.calm.val() {
                    self.line_go.next = true;
                    self.over.next = true;
                }
            }
            State::Meant => {
                if self.calm.val() {
                    self.state.d.next = State::Parted;
                }
            }
            // It ends like one whose time is over.
            State::Parted => {
                self.pdc_ask.next.kind = bits::<4>(pdc_ask::SAFE);
                if self.calm.val() {
                    self.pdc_go.next = self.orphan.q.val();
                    self.over.next = !self.orphan.q.val();
                    self.state.d.next = State::Ended;
                }
            }
            State::Ended => {
                self.pdc_ask.next.kind = bits::<4>(pdc_ask::FAIL);
                if self.calm.val() {
                    self.pdc_go.next = self.p.val().verdict == verdict::NOBODY;
                    self.kept_go.next = true;
                    self.state.d.next = State::Put;
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
