//! One event after another: a request or a control packet, an answer of semantics, a timer; what it means is asked of the blocks around.
use super::frame::{Frame, Reply};
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{TimerCmd, TimerEvent};
use crate::prim::ram::Ram;
use crate::prim::sum::{Diff, Sum};
use crate::uet::head::types::{Carried, PdsFields, SesFields, UetHead};
use crate::uet::pdc::types::{pdc_ask, verdict, PdcAsk, PdcLine, PdcTold};
use crate::uet::pds::types::{Came, Delivered, Finished, Outgoing, RxLine};
use crate::uet::types::{ack_ask, arrival, rx_ask, AckAsk, AckTold, Owed, RxAsk, RxTold, LINE};
use ferric_abi::uet::codes::{ControlType, NackCode, PdsType, ReturnCode};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// What the event is.
mod what {
    pub const HEAD: u64 = 0;
    pub const DONE: u64 = 1;
    pub const TIMER: u64 = 2;
}

/// Who is asked.
mod to {
    pub const PDC: u64 = 0;
    pub const WINDOW: u64 = 1;
    pub const ACK: u64 = 2;
}

/// Packets beyond CACK when one has come and no other is there: it is the first behind a hole.
const ONE_PACKET: u64 = 1;
/// Bits of a PDC's timers below its place, in a timer's number.
const TIMER_SHIFT: u64 = 1;

/// Timers of a PDC, as low bit of the number that `rdma/timer` knows them by: an ACK is owed; its peer is silent, or it lingers.
mod timer {
    pub const ACK: u64 = 0;
    pub const LIFE: u64 = 1;
}

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
    Dispatch,
    // A request
    Judged,
    Opened,
    Begun,
    Arrive,
    Ruled,
    Deliver,
    // A control packet
    Asked,
    CloseSeen,
    CloseDone,
    Shut,
    // An answer of semantics
    Looked,
    Finished,
    Weighed,
    // A timer
    Late,
    Over,
    // Behind each
    Refuse,
    Again,
    Sack,
    Send,
    ArmAck,
    ArmLife,
    Put,
}

/// The lines of `2^LP` targets. Ports as of [`super::Receive`], and those of the blocks in it.
#[derive(LogicBlock, BlockDefault)]
#[demand(LP <= LINE)]
pub struct Director<const LP: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub now: Signal<In, Bits<32>>,
    pub reap: Signal<In, Bits<32>>,
    pub safety: Signal<In, Bits<32>>,
    pub ack_wait: Signal<In, Bits<32>>,
    pub mpr: Signal<In, Bits<8>>,
    pub s_head: MsgSink<UetHead>,
    pub m_deliver: MsgSrc<Delivered>,
    pub s_done: MsgSink<Finished>,
    pub m_out: MsgSrc<Outgoing>,
    pub m_pdc: MsgSrc<PdcAsk>,
    pub s_pdc: MsgSink<PdcTold>,
    pub m_window: MsgSrc<RxAsk>,
    pub s_window: MsgSink<RxTold>,
    pub m_ack: MsgSrc<AckAsk>,
    pub s_ack: MsgSink<AckTold>,
    pub m_timer: MsgSrc<TimerCmd>,
    pub s_timer: MsgSink<TimerEvent>,
    lines: Ram<RxLine, LP>,
    frame: Frame,
    state: DFF<State>,
    after: DFF<State>,
    what: DFF<Bits<2>>,
    to: DFF<Bits<2>>,
    at: DFF<Bits<LINE>>,
    line: DFF<RxLine>,
    ask: DFF<PdcAsk>,
    pdc: DFF<PdcTold>,
    rx_ask: DFF<RxAsk>,
    seen: DFF<RxTold>,
    ack_ask: DFF<AckAsk>,
    ack: DFF<AckTold>,
    reply: DFF<Reply>,
    /// The timer that is over, and whether it is still so; a PDC was accepted.
    life: DFF<Bit>,
    due: DFF<Bit>,
    opens: DFF<Bit>,
    /// The timers are started: for the ACK that is owed; for a PDC that was heard, or has begun to linger.
    owes: DFF<Bit>,
    hears: DFF<Bit>,
    lingers: DFF<Bit>,
    /// The line of this event is here, and is given back.
    held: DFF<Bit>,
    /// When the time that is waited for now would be over: in a register, so that no choice stands on either side of the sum.
    ends: DFF<Bits<32>>,
    until: Sum<32>,
    late: Diff<32>,
    #[init(Constant::new(((1u64 << LP) - 1).to_bits()))]
    last: Constant<Bits<LINE>>,
    #[init(Constant::new(RxLine::default()))]
    nobody: Constant<RxLine>,
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
    ses: Signal<Local, SesFields>,
    /// It is a request; ROD; cut on its way; an ACK is wanted.
    request: Signal<Local, Bit>,
    rod: Signal<Local, Bit>,
    trim: Signal<Local, Bits<2>>,
    wanted: Signal<Local, Bit>,
    /// The answer of semantics.
    fin: Signal<Local, Finished>,
    p: Signal<Local, PdcTold>,
    pl: Signal<Local, PdcLine>,
    carried: Signal<Local, Carried>,
    came: Signal<Local, Came>,
    /// How the present packet came; the packet of the reply, before and behind this state; the packet that `ack` is told of.
    how: Signal<Local, Came>,
    owed: Signal<Local, Owed>,
    mine: Signal<Local, Owed>,
    given: Signal<Local, Owed>,
    w: Signal<Local, RxTold>,
    own_place: Signal<Local, Bits<LP>>,
    whole: Signal<Local, Bit>,
    number: Signal<Local, Bits<24>>,
    fired: Signal<Local, Bits<24>>,
    done_place: Signal<Local, Bits<LP>>,
    pause: Signal<Local, Bits<32>>,
}

#[kernel]
impl<const LP: usize> Logic for Director<LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, after, what, to, at, line, ask, pdc, rx_ask, seen, ack_ask, ack, reply, life, due, opens, owes, hears, lingers, held, ends);
        clock!(self, clock, lines);
        self.p.next = self.pdc.q.val();
        self.pl.next = self.p.val().line;
        self.carried.next = self.s_head.data.val().carried;
        self.came.next = self.s_done.data.val().came;
        self.owed.next = self.reply.q.val().owed;
        self.mine.next = self.reply.q.val().owed;
        self.given.next = self.ack_ask.q.val().owed;
        self.w.next = self.seen.q.val();
        self.lines.read_addr.next = bit_cast::<LP, LINE>(self.at.q.val());
        self.lines.write_addr.next = bit_cast::<LP, LINE>(self.at.q.val());
        self.lines.write_data.next = self.line.q.val();
        self.lines.write_en.next = false;
        self.frame.reply.next = self.reply.q.val();
        self.frame.seen.next = self.seen.q.val();
        self.frame.mpr.next = self.mpr.val();
        self.pds.next = self.s_head.data.val().pds;
        self.ses.next = self.s_head.data.val().ses;
        self.request.next = !(self.pds.val().kind == PdsType::Control as u64);
        self.rod.next = self.pds.val().rod | (self.pds.val().kind == PdsType::RodReq as u64) | (self.pds.val().kind == PdsType::RodCcReq as u64);
        self.trim.next = self.carried.val().trim;
        self.wanted.next = self.pds.val().ar | self.pds.val().syn;
        self.fin.next = self.s_done.data.val();
        self.own_place.next = self.pl.val().id.get_bits::<LP>(0);
        self.done_place.next = self.fin.val().id.get_bits::<LP>(0);
        self.whole.next = (self.w.val().arrival == arrival::NEW) & self.w.val().first & (self.w.val().marked == ONE_PACKET);
        self.fired.next = self.s_timer.data.val().qpn >> TIMER_SHIFT;
        self.pause.next = self.reap.val();
        if self.lingers.q.val() {
            self.pause.next = self.safety.val();
        }
        self.until.a.next = self.now.val();
        self.until.b.next = self.pause.val();
        self.ends.d.next = self.until.y.val();
        self.late.a.next = self.now.val();
        self.late.b.next = self.line.q.val().life_at;
        self.due.d.next = !self.late.y.val().get_bit(31);

        self.s_head.ready.next = false;
        self.s_done.ready.next = false;
        self.s_timer.ready.next = false;
        self.m_deliver.valid.next = self.state.q.val() == State::Deliver;
        self.m_deliver.data.next.handle = self.carried.val().handle;
        self.m_deliver.data.next.pay_off = self.s_head.data.val().pay_off;
        self.m_deliver.data.next.bytes = self.s_head.data.val().pay_len.get_bits::<14>(0);
        self.m_deliver.data.next.id = self.pl.val().id;
        self.m_deliver.data.next.peer = self.pl.val().peer;
        self.m_deliver.data.next.psn = self.pds.val().psn;
        self.m_deliver.data.next.first = self.w.val().first;
        self.how.next.entropy = self.carried.val().entropy;
        self.how.next.congested = self.carried.val().congested;
        self.how.next.retx = self.pds.val().retx;
        self.how.next.ask = self.wanted.val();
        self.how.next.at = self.owed.val().at;
        self.m_deliver.data.next.came = self.how.val();
        self.m_deliver.data.next.ses = self.ses.val();
        self.m_out.valid.next = self.state.q.val() == State::Send;
        self.m_out.data.next = self.frame.frame.val();
        self.m_pdc.valid.next = (self.state.q.val() == State::Call) & (self.to.q.val() == to::PDC);
        self.m_pdc.data.next = self.ask.q.val();
        self.s_pdc.ready.next = (self.state.q.val() == State::Answer) & (self.to.q.val() == to::PDC);
        self.m_window.valid.next = (self.state.q.val() == State::Call) & (self.to.q.val() == to::WINDOW);
        self.m_window.data.next = self.rx_ask.q.val();
        self.s_window.ready.next = (self.state.q.val() == State::Answer) & (self.to.q.val() == to::WINDOW);
        self.m_ack.valid.next = (self.state.q.val() == State::Call) & (self.to.q.val() == to::ACK);
        self.m_ack.data.next = self.ack_ask.q.val();
        self.s_ack.ready.next = (self.state.q.val() == State::Answer) & (self.to.q.val() == to::ACK);
        self.m_timer.valid.next = false;
        self.m_timer.data.next.start = true;
        self.m_timer.data.next.kind = false;
        self.m_timer.data.next.ticks = self.ack_wait.val();
        self.number.next = bits::<24>(timer::ACK);

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
                self.what.d.next = self.what.q.val() + 1;
                self.ask.d.next = self.no_ask.val();
                self.rx_ask.d.next = self.no_rx.val();
                self.ack_ask.d.next = self.no_ack.val();
                self.reply.d.next = self.no_reply.val();
                self.mine.next = self.no_owed.val();
                self.given.next = self.no_owed.val();
                self.opens.d.next = false;
                self.owes.d.next = false;
                self.hears.d.next = false;
                self.lingers.d.next = false;
                self.held.d.next = false;
                self.to.d.next = bits::<2>(to::PDC);
                if self.what.q.val() == what::HEAD {
                    self.ask.d.next.kind = bits::<4>(pdc_ask::ARRIVE);
                    self.ask.d.next.peer = self.carried.val().peer;
                    self.ask.d.next.id = self.pds.val().dpdcid;
                    self.ask.d.next.peer_id = self.pds.val().spdcid;
                    self.ask.d.next.rod = self.rod.val();
                    self.ask.d.next.request = self.request.val();
                    self.ask.d.next.control = self.pds.val().follows;
                    self.ask.d.next.syn = self.pds.val().syn;
                    self.ask.d.next.offset = self.pds.val().dpdcid.get_bits::<12>(0);
                    self.ask.d.next.trim = self.trim.val().any();
                    self.ask.d.next.psn = self.pds.val().psn;
                    self.reply.d.next.peer = self.carried.val().peer;
                    self.reply.d.next.peer_id = self.pds.val().spdcid;
                    self.mine.next.psn = self.pds.val().psn;
                    self.mine.next.entropy = self.carried.val().entropy;
                    self.mine.next.marked = self.carried.val().congested;
                    self.mine.next.retx = self.pds.val().retx;
                    self.mine.next.at = self.now.val();
                    self.after.d.next = State::Judged;
                    if self.s_head.valid.val() {
                        self.what.d.next = self.what.q.val();
                        self.state.d.next = State::Call;
                    }
                } else if self.what.q.val() == what::DONE {
                    self.ask.d.next.kind = bits::<4>(pdc_ask::LOOK);
                    self.ask.d.next.bare = true;
                    self.ask.d.next.id = self.fin.val().id;
                    self.at.d.next = bit_cast::<LINE, LP>(self.done_place.val());
                    self.after.d.next = State::Looked;
                    if self.s_done.valid.val() {
                        self.what.d.next = self.what.q.val();
                        self.state.d.next = State::Call;
                    }
                } else if self.what.q.val() == what::TIMER {
                    self.s_timer.ready.next = true;
                    self.life.d.next = self.s_timer.data.val().qpn.get_bit(0);
                    self.at.d.next = self.fired.val().get_bits::<LINE>(0);
                    if self.s_timer.valid.val() {
                        self.what.d.next = self.what.q.val();
                        self.state.d.next = State::Load;
                    }
                }
            }
            State::Call => {
                if ((self.to.q.val() == to::PDC) & self.m_pdc.ready.val()) | ((self.to.q.val() == to::WINDOW) & self.m_window.ready.val()) | ((self.to.q.val() == to::ACK) & self.m_ack.ready.val()) {
                    self.state.d.next = State::Answer;
                }
            }
            State::Answer => {
                if self.to.q.val() == to::PDC {
                    self.pdc.d.next = self.s_pdc.data.val();
                    if self.s_pdc.valid.val() {
                        self.state.d.next = self.after.q.val();
                    }
                } else if self.to.q.val() == to::WINDOW {
                    self.seen.d.next = self.s_window.data.val();
                    if self.s_window.valid.val() {
                        self.state.d.next = self.after.q.val();
                    }
                } else {
                    self.ack.d.next = self.s_ack.data.val();
                    if self.s_ack.valid.val() {
                        self.state.d.next = self.after.q.val();
                    }
                }
            }
            // The memory sees the place in this state and has its line in the next.
            State::Load => {
                self.state.d.next = State::Take;
            }
            State::Take => {
                self.held.d.next = true;
                self.line.d.next = self.lines.read_data.val();
                if self.opens.q.val() {
                    self.line.d.next = self.nobody.val();
                    self.line.d.next.id = self.pl.val().id;
                }
                self.rx_ask.d.next.line = self.at.q.val();
                self.ack_ask.d.next.line = self.at.q.val();
                self.ack_ask.d.next.now = self.now.val();
                // Whether the timer is over is known a cycle behind the line.
                self.state.d.next = State::Dispatch;
                if self.what.q.val() == what::TIMER {
                    self.state.d.next = State::Late;
                }
            }
            State::Late => {
                self.ask.d.next.id = self.line.q.val().id;
                self.state.d.next = State::Dispatch;
            }
            State::Dispatch => {
                self.to.d.next = bits::<2>(to::WINDOW);
                self.state.d.next = State::Call;
                self.reply.d.next.wants = self.pl.val().wants;
                if self.what.q.val() == what::DONE {
                    self.rx_ask.d.next.kind = bits::<3>(rx_ask::DONE);
                    if self.fin.val().refused {
                        self.rx_ask.d.next.kind = bits::<3>(rx_ask::REFUSE);
                    }
                    self.rx_ask.d.next.psn = self.fin.val().psn;
                    self.rx_ask.d.next.bytes = self.fin.val().bytes;
                    self.after.d.next = State::Finished;
                } else if self.what.q.val() == what::TIMER {
                    self.to.d.next = bits::<2>(to::PDC);
                    self.ask.d.next.kind = bits::<4>(pdc_ask::LOOK);
                    self.ask.d.next.bare = true;
                    self.after.d.next = State::Looked;
                    if self.life.q.val() {
                        // One that lingers has done so for long enough; any other has been silent for too long.
                        self.line.d.next.life_on = false;
                        self.ask.d.next.kind = bits::<4>(pdc_ask::SAFE);
                        self.after.d.next = State::Over;
                        if !self.line.q.val().life_on | !self.due.q.val() {
                            self.line.d.next.life_on = self.line.q.val().life_on;
                            self.state.d.next = State::Put;
                        }
                    } else {
                        self.line.d.next.ack_on = false;
                        if !self.line.q.val().ack_on {
                            self.state.d.next = State::Put;
                        }
                    }
                } else if self.opens.q.val() {
                    self.rx_ask.d.next.kind = bits::<3>(rx_ask::OPEN);
                    self.rx_ask.d.next.psn = self.pl.val().start;
                    self.after.d.next = State::Opened;
                } else {
                    self.state.d.next = State::Arrive;
                }
            }
            // Whose the packet is.
            State::Judged => {
                self.at.d.next = bit_cast::<LINE, LP>(self.own_place.val());
                self.opens.d.next = self.p.val().verdict == verdict::OPENED;
                self.state.d.next = State::Put;
                if self.p.val().verdict == verdict::REFUSE {
                    self.reply.d.next.code = self.p.val().code;
                    if self.p.val().own {
                        self.reply.d.next.id = self.pl.val().id;
                    }
                    self.state.d.next = State::Refuse;
                } else if self.p.val().verdict == verdict::DROP {
                    self.s_head.ready.next = true;
                    self.state.d.next = State::Idle;
                } else if self.pl.val().initiator {
                    // What targets send to their initiators, but for answers: not implemented.
                    self.s_head.ready.next = true;
                    self.state.d.next = State::Idle;
                } else {
                    self.reply.d.next.id = self.pl.val().id;
                    self.hears.d.next = !(self.p.val().verdict == verdict::AGAIN);
                    self.state.d.next = State::Load;
                }
            }
            State::Opened => {
                self.ack_ask.d.next.kind = bits::<2>(ack_ask::OPEN);
                self.to.d.next = bits::<2>(to::ACK);
                self.after.d.next = State::Begun;
                self.state.d.next = State::Call;
            }
            State::Begun => {
                self.state.d.next = State::Arrive;
            }
            State::Arrive => {
                self.rx_ask.d.next.kind = bits::<3>(rx_ask::ARRIVE);
                self.rx_ask.d.next.psn = self.pds.val().psn;
                self.rx_ask.d.next.rod = self.rod.val();
                self.rx_ask.d.next.retx = self.pds.val().retx;
                self.rx_ask.d.next.trim = self.trim.val().any();
                self.to.d.next = bits::<2>(to::WINDOW);
                self.after.d.next = State::Ruled;
                self.state.d.next = State::Call;
                if !self.request.val() {
                    if self.p.val().verdict == verdict::AGAIN {
                        self.state.d.next = State::Sack;
                    } else if self.pds.val().follows == ControlType::CloseCommand as u64 {
                        self.after.d.next = State::CloseSeen;
                    } else if self.pds.val().follows == ControlType::AckRequest as u64 {
                        // A look that takes nothing.
                        self.rx_ask.d.next.rod = false;
                        self.rx_ask.d.next.trim = true;
                        self.after.d.next = State::Asked;
                    } else {
                        self.state.d.next = State::ArmAck;
                    }
                }
            }
            State::Ruled => {
                self.state.d.next = State::ArmAck;
                if self.w.val().arrival == arrival::NEW {
                    self.state.d.next = State::Deliver;
                    if self.trim.val().any() {
                        self.reply.d.next.code = bits::<8>(NackCode::Trimmed as u64);
                        if self.trim.val().get_bit(1) {
                            self.reply.d.next.code = bits::<8>(NackCode::TrimmedLastHop as u64);
                        }
                        self.state.d.next = State::Refuse;
                    }
                } else if self.w.val().arrival == arrival::OLD {
                    if self.trim.val().any() | self.wanted.val() | self.pds.val().retx {
                        self.state.d.next = State::Again;
                    }
                } else if self.w.val().arrival == arrival::OUTSIDE {
                    self.reply.d.next.code = bits::<8>(NackCode::OutOfWindow as u64);
                    if self.pds.val().syn {
                        self.reply.d.next.code = bits::<8>(NackCode::InvalidSyn as u64);
                    }
                    if !self.trim.val().any() {
                        self.state.d.next = State::Refuse;
                    }
                } else if self.w.val().arrival == arrival::GAP_TELL {
                    self.reply.d.next.code = bits::<8>(NackCode::RodOutOfOrder as u64);
                    self.reply.d.next.expected = self.w.val().expected;
                    self.state.d.next = State::Refuse;
                }
            }
            State::Deliver => {
                if self.m_deliver.ready.val() {
                    self.state.d.next = State::ArmAck;
                }
            }
            // What became of a packet.
            State::Asked => {
                self.reply.d.next.code = bits::<8>(NackCode::NotReceived as u64);
                self.state.d.next = State::Refuse;
                if self.w.val().arrival == arrival::OLD {
                    self.state.d.next = State::Again;
                } else if self.w.val().arrival == arrival::PENDING {
                    self.reply.d.next.code = bits::<8>(NackCode::InProgress as u64);
                }
            }
            // The close is taken if it is all that is there beyond CACK.
            State::CloseSeen => {
                self.ask.d.next.kind = bits::<4>(pdc_ask::SHUT);
                self.ask.d.next.id = self.pl.val().id;
                self.ask.d.next.whole = self.whole.val();
                self.rx_ask.d.next.kind = bits::<3>(rx_ask::REFUSE);
                if self.whole.val() {
                    self.rx_ask.d.next.kind = bits::<3>(rx_ask::DONE);
                }
                self.rx_ask.d.next.bytes = bits::<14>(0);
                self.to.d.next = bits::<2>(to::WINDOW);
                self.after.d.next = State::CloseDone;
                self.state.d.next = State::Call;
                if !(self.w.val().arrival == arrival::NEW) {
                    self.state.d.next = State::CloseDone;
                }
            }
            State::CloseDone => {
                self.to.d.next = bits::<2>(to::PDC);
                self.after.d.next = State::Shut;
                self.state.d.next = State::Call;
            }
            State::Shut => {
                self.reply.d.next.code = self.p.val().code;
                self.state.d.next = State::Refuse;
                if self.p.val().verdict == verdict::LINGERS {
                    self.lingers.d.next = true;
                    self.state.d.next = State::Sack;
                }
            }
            // Whether the PDC is still there.
            State::Looked => {
                self.reply.d.next.peer = self.pl.val().peer;
                self.reply.d.next.id = self.pl.val().id;
                self.reply.d.next.peer_id = self.pl.val().peer_id;
                self.reply.d.next.wants = self.pl.val().wants;
                self.state.d.next = State::Load;
                if self.what.q.val() == what::TIMER {
                    self.ack_ask.d.next.kind = bits::<2>(ack_ask::LATE);
                    self.to.d.next = bits::<2>(to::ACK);
                    self.after.d.next = State::Weighed;
                    self.state.d.next = State::Call;
                }
                if (self.p.val().verdict == verdict::NOBODY) | self.pl.val().initiator {
                    self.state.d.next = State::Put;
                    if self.what.q.val() == what::DONE {
                        self.s_done.ready.next = true;
                        self.what.d.next = bits::<2>(what::TIMER);
                        self.state.d.next = State::Idle;
                    }
                }
            }
            State::Finished => {
                self.mine.next.psn = self.fin.val().psn;
                self.mine.next.entropy = self.came.val().entropy;
                self.mine.next.marked = self.came.val().congested;
                self.mine.next.retx = self.came.val().retx;
                self.reply.d.next.code = self.fin.val().code;
                self.ack_ask.d.next.kind = bits::<2>(ack_ask::DONE);
                self.given.next.psn = self.fin.val().psn;
                self.given.next.message = self.fin.val().message;
                self.given.next.code = self.fin.val().code.get_bits::<6>(0);
                self.given.next.length = self.fin.val().length;
                self.given.next.entropy = self.came.val().entropy;
                self.given.next.marked = self.came.val().congested;
                self.given.next.retx = self.came.val().retx;
                self.given.next.at = self.came.val().at;
                self.ack_ask.d.next.bytes = self.fin.val().bytes;
                self.ack_ask.d.next.ask = self.came.val().ask;
                self.ack_ask.d.next.filled = self.w.val().filled;
                self.ack_ask.d.next.beyond = self.w.val().beyond;
                self.to.d.next = bits::<2>(to::ACK);
                self.after.d.next = State::Weighed;
                self.state.d.next = State::Call;
                if !self.w.val().ok {
                    self.state.d.next = State::Put;
                } else if self.fin.val().refused {
                    self.state.d.next = State::Refuse;
                }
            }
            State::Weighed => {
                self.owes.d.next = self.ack.q.val().waits;
                self.state.d.next = State::ArmAck;
                if self.ack.q.val().send {
                    self.reply.d.next.full = true;
                    self.mine.next = self.ack.q.val().owed;
                    self.reply.d.next.service = self.ack.q.val().service;
                    self.state.d.next = State::Sack;
                }
            }
            State::Over => {
                self.state.d.next = State::Put;
                if self.p.val().verdict == verdict::NOBODY {
                    self.ask.d.next.kind = bits::<4>(pdc_ask::FAIL);
                    self.to.d.next = bits::<2>(to::PDC);
                    self.after.d.next = State::Put;
                    self.state.d.next = State::Call;
                }
            }
            State::Refuse => {
                self.reply.d.next.nack = true;
                self.state.d.next = State::Send;
            }
            // A packet that is there already: there is nothing new to say of it.
            State::Again => {
                self.reply.d.next.full = true;
                self.mine.next.code = bits::<6>(ReturnCode::Null as u64);
                self.ack_ask.d.next.kind = bits::<2>(ack_ask::SENT);
                self.to.d.next = bits::<2>(to::ACK);
                self.after.d.next = State::Sack;
                self.state.d.next = State::Call;
            }
            State::Sack => {
                self.line.d.next.ack_on = false;
                self.rx_ask.d.next.kind = bits::<3>(rx_ask::SACK);
                self.to.d.next = bits::<2>(to::WINDOW);
                self.after.d.next = State::Send;
                self.state.d.next = State::Call;
            }
            State::Send => {
                if self.m_out.ready.val() {
                    self.state.d.next = State::ArmAck;
                }
            }
            State::ArmAck => {
                self.m_timer.valid.next = self.owes.q.val() & !self.line.q.val().ack_on;
                self.state.d.next = State::ArmLife;
                if self.owes.q.val() & !self.line.q.val().ack_on {
                    self.line.d.next.ack_on = self.m_timer.ready.val();
                    if !self.m_timer.ready.val() {
                        self.state.d.next = State::ArmAck;
                    }
                }
            }
            State::ArmLife => {
                self.number.next = bits::<24>(timer::LIFE);
                self.m_timer.data.next.ticks = self.pause.val();
                self.m_timer.valid.next = self.hears.q.val();
                self.state.d.next = State::Put;
                if self.hears.q.val() {
                    self.line.d.next.life_on = true;
                    self.line.d.next.life_at = self.ends.q.val();
                    if !self.m_timer.ready.val() {
                        self.state.d.next = State::ArmLife;
                    }
                }
            }
            State::Put => {
                self.lines.write_en.next = self.held.q.val();
                self.what.d.next = self.what.q.val() + 1;
                self.s_head.ready.next = self.what.q.val() == what::HEAD;
                self.s_done.ready.next = self.what.q.val() == what::DONE;
                self.state.d.next = State::Idle;
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        self.reply.d.next.owed = self.mine.val();
        self.ack_ask.d.next.owed = self.given.val();
        self.m_timer.data.next.qpn = (bit_cast::<24, LINE>(self.at.q.val()) << TIMER_SHIFT) | self.number.val();
        if self.reset.val() {
            self.at.d.next = bits::<LINE>(0);
            self.what.d.next = bits::<2>(what::HEAD);
            self.state.d.next = State::Wipe;
        }
    }
}
