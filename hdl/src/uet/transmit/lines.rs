//! The lines of PDCs, and what follows behind each event: timers that start, lists in which the PDC stands.
use super::timing::{timer, Timing};
use super::types::{LineAsk, LineTold};
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::TimerCmd;
use crate::prim::ram::Ram;
use crate::uet::pds::types::{Listed, TxLine};
use crate::uet::types::{LossTold, LINE};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Wipe,
    Idle,
    // A line is got
    Take,
    Steady,
    Tell,
    // One comes back
    Changed,
    Judged,
    ArmRto,
    ArmStall,
    ArmRetry,
    ArmIdle,
    ListAgain,
    ListNew,
    Over,
    Put,
}

/// Lines of `2^LP` initiators.
#[derive(LogicBlock, BlockDefault)]
#[demand(LP <= LINE)]
pub struct Lines<const LP: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; all lines are wiped before the first order is taken.
    pub reset: Signal<In, Bit>,
    /// Time, and times to wait, in ticks.
    pub now: Signal<In, Bits<32>>,
    pub rto: Signal<In, Bits<32>>,
    pub nack_wait: Signal<In, Bits<32>>,
    pub idle: Signal<In, Bits<32>>,
    pub safety: Signal<In, Bits<32>>,
    /// What `loss` said last, read when a line comes back.
    pub loss: Signal<In, LossTold>,
    pub s: MsgSink<LineAsk>,
    pub m: MsgSrc<LineTold>,
    pub m_timer: MsgSrc<TimerCmd>,
    pub m_list: MsgSrc<Listed>,
    /// See `sched`.
    pub served: Signal<Out, Bit>,
    pub more: Signal<Out, Bit>,
    lines: Ram<TxLine, LP>,
    timing: Timing,
    state: DFF<State>,
    at: DFF<Bits<LINE>>,
    line: DFF<TxLine>,
    ask: DFF<LineAsk>,
    stall: DFF<Bits<32>>,
    stall_again: DFF<Bit>,
    #[init(Constant::new(((1u64 << LP) - 1).to_bits()))]
    last: Constant<Bits<LINE>>,
    #[init(Constant::new(TxLine::default()))]
    nobody: Constant<TxLine>,
    l: Signal<Local, TxLine>,
    a: Signal<Local, LineAsk>,
    told: Signal<Local, LossTold>,
    new_too: Signal<Local, Bit>,
    number: Signal<Local, Bits<24>>,
    from: Signal<Local, Bits<LINE>>,
}

#[kernel]
impl<const LP: usize> Logic for Lines<LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, at, line, ask, stall, stall_again);
        clock!(self, clock, lines, timing);
        self.l.next = self.line.q.val();
        self.a.next = self.ask.q.val();
        self.told.next = self.loss.val();
        self.from.next = self.s.data.val().at;
        self.lines.read_addr.next = bit_cast::<LP, LINE>(self.from.val());
        self.lines.write_addr.next = bit_cast::<LP, LINE>(self.at.q.val());
        self.lines.write_data.next = self.line.q.val();
        self.lines.write_en.next = false;
        self.timing.now.next = self.now.val();
        self.timing.rto.next = self.rto.val();
        self.timing.safety.next = self.safety.val();
        self.timing.ends.next = self.a.val().put & self.a.val().ends;
        self.timing.line.next = self.line.q.val();
        self.new_too.next = self.timing.fresh.val() | self.timing.closes.val();
        self.s.ready.next = self.state.q.val() == State::Idle;
        self.m.valid.next = self.state.q.val() == State::Tell;
        self.m.data.next.line = self.line.q.val();
        self.m.data.next.timeout = self.timing.timeout.val();
        self.m.data.next.due = self.timing.due.val();
        self.m.data.next.again = self.timing.again.val();
        self.m.data.next.fresh = self.timing.fresh.val();
        self.m.data.next.closes = self.timing.closes.val();
        self.m_list.valid.next = false;
        self.m_list.data.next.line = self.at.q.val();
        self.m_list.data.next.again = self.state.q.val() == State::ListAgain;
        self.served.next = false;
        self.more.next = self.new_too.val();
        if self.a.val().again {
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
            // The memory sees the place in this state and has its line in the next.
            State::Idle => {
                self.ask.d.next = self.s.data.val();
                self.stall.d.next = self.told.val().stall;
                self.stall_again.d.next = self.s.data.val().stall_again;
                if self.s.valid.val() {
                    if self.s.data.val().put {
                        self.line.d.next = self.s.data.val().line;
                        if self.s.data.val().update {
                            self.line.d.next.outs = self.told.val().outs.any();
                            self.line.d.next.resends = self.told.val().resends.any();
                            self.line.d.next.waits = self.told.val().waits.any();
                            self.line.d.next.room = self.told.val().room;
                            self.line.d.next.hole = self.told.val().hole;
                            self.line.d.next.tries = self.told.val().tries;
                            self.line.d.next.refusals = self.told.val().refusals;
                        }
                        self.state.d.next = State::Changed;
                    } else {
                        self.at.d.next = self.from.val();
                        self.state.d.next = State::Take;
                    }
                }
            }
            State::Take => {
                self.line.d.next = self.lines.read_data.val();
                self.state.d.next = State::Steady;
            }
            State::Steady => {
                self.state.d.next = State::Tell;
            }
            State::Tell => {
                if self.m.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            // What follows from the line is known two cycles behind it, the time-out's end three.
            State::Changed => {
                self.state.d.next = State::Judged;
            }
            State::Judged => {
                self.state.d.next = State::Put;
                if self.a.val().ends {
                    self.state.d.next = State::Over;
                } else if self.a.val().follows {
                    self.state.d.next = State::ArmStall;
                    if self.a.val().arms {
                        self.state.d.next = State::ArmRto;
                    }
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
                self.m_timer.data.next.ticks = self.stall.q.val();
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
                self.m_timer.valid.next = self.a.val().waits & !self.l.val().retry_on;
                self.state.d.next = State::ArmIdle;
                if self.a.val().waits & !self.l.val().retry_on {
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
            // The PDC has ended, and its place rests.
            State::Over => {
                self.number.next = bits::<24>(timer::LIFE);
                self.m_timer.data.next.ticks = self.timing.timeout.val();
                self.m_timer.valid.next = true;
                if self.m_timer.ready.val() {
                    self.line.d.next = self.nobody.val();
                    self.line.d.next.id = self.l.val().id;
                    self.line.d.next.listed_again = self.l.val().listed_again;
                    self.line.d.next.listed_new = self.l.val().listed_new;
                    self.line.d.next.rests = true;
                    self.line.d.next.rto_at = self.timing.until.val();
                    self.state.d.next = State::Put;
                }
            }
            State::Put => {
                self.lines.write_en.next = true;
                self.state.d.next = State::Idle;
                self.served.next = self.a.val().served;
                if self.a.val().served {
                    if self.a.val().again {
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
        self.m_timer.data.next.qpn = (bit_cast::<24, LINE>(self.at.q.val()) << timer::SHIFT) | self.number.val();
        if self.reset.val() {
            self.at.d.next = bits::<LINE>(0);
            self.state.d.next = State::Wipe;
        }
    }
}
