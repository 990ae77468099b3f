//! The lines of PDCs, and the timers that start behind each event.
use super::types::{timer, LineAsk, LineTold};
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::TimerCmd;
use crate::prim::ram::Ram;
use crate::prim::sum::{Diff, Sum};
use crate::uet::pds::types::RxLine;
use crate::uet::types::LINE;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Wipe,
    Idle,
    // A line is got
    Take,
    Late,
    Tell,
    // One comes back
    ArmAck,
    ArmClear,
    ArmLife,
    Put,
}

/// Lines of `2^LP` targets.
#[derive(LogicBlock, BlockDefault)]
#[demand(LP <= LINE)]
pub struct Lines<const LP: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; all lines are wiped before the first order is taken.
    pub reset: Signal<In, Bit>,
    /// Time, and times to wait, in ticks.
    pub now: Signal<In, Bits<32>>,
    pub reap: Signal<In, Bits<32>>,
    pub safety: Signal<In, Bits<32>>,
    pub ack_wait: Signal<In, Bits<32>>,
    pub clear_wait: Signal<In, Bits<32>>,
    pub s: MsgSink<LineAsk>,
    pub m: MsgSrc<LineTold>,
    pub m_timer: MsgSrc<TimerCmd>,
    lines: Ram<RxLine, LP>,
    state: DFF<State>,
    at: DFF<Bits<LINE>>,
    line: DFF<RxLine>,
    ask: DFF<LineAsk>,
    due: DFF<Bit>,
    /// When the time that is waited for now would be over: in a register, so that no choice stands on either side of the sum.
    ends: DFF<Bits<32>>,
    pause: DFF<Bits<32>>,
    until: Sum<32>,
    late: Diff<32>,
    #[init(Constant::new(((1u64 << LP) - 1).to_bits()))]
    last: Constant<Bits<LINE>>,
    #[init(Constant::new(RxLine::default()))]
    nobody: Constant<RxLine>,
    a: Signal<Local, LineAsk>,
    from: Signal<Local, Bits<LINE>>,
    number: Signal<Local, Bits<24>>,
}

#[kernel]
impl<const LP: usize> Logic for Lines<LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, at, line, ask, due, ends, pause);
        clock!(self, clock, lines);
        self.a.next = self.ask.q.val();
        self.from.next = self.s.data.val().at;
        self.lines.read_addr.next = bit_cast::<LP, LINE>(self.from.val());
        self.lines.write_addr.next = bit_cast::<LP, LINE>(self.at.q.val());
        self.lines.write_data.next = self.line.q.val();
        self.lines.write_en.next = false;
        self.until.a.next = self.now.val();
        self.until.b.next = self.pause.q.val();
        self.ends.d.next = self.until.y.val();
        self.late.a.next = self.now.val();
        self.late.b.next = self.line.q.val().life_at;
        self.due.d.next = !self.late.y.val().get_bit(31);
        self.s.ready.next = self.state.q.val() == State::Idle;
        self.m.valid.next = self.state.q.val() == State::Tell;
        self.m.data.next.line = self.line.q.val();
        self.m.data.next.due = self.due.q.val();
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
            // The memory sees the place in this state and has its line in the next.
            State::Idle => {
                self.ask.d.next = self.s.data.val();
                self.pause.d.next = self.reap.val();
                if self.s.data.val().lingers {
                    self.pause.d.next = self.safety.val();
                }
                if self.s.valid.val() {
                    if self.s.data.val().put {
                        self.line.d.next = self.s.data.val().line;
                        self.state.d.next = State::ArmAck;
                    } else {
                        self.at.d.next = self.from.val();
                        self.state.d.next = State::Take;
                    }
                }
            }
            State::Take => {
                self.line.d.next = self.lines.read_data.val();
                self.state.d.next = State::Late;
            }
            // Whether the time is over is known a cycle behind the line.
            State::Late => {
                self.state.d.next = State::Tell;
            }
            State::Tell => {
                // What is told does not change, though time goes on.
                self.due.d.next = self.due.q.val();
                if self.m.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::ArmAck => {
                self.m_timer.valid.next = self.a.val().owes & !self.line.q.val().ack_on;
                self.state.d.next = State::ArmLife;
                if self.a.val().keeps {
                    self.state.d.next = State::ArmClear;
                }
                if self.a.val().owes & !self.line.q.val().ack_on {
                    self.line.d.next.ack_on = self.m_timer.ready.val();
                    if !self.m_timer.ready.val() {
                        self.state.d.next = State::ArmAck;
                    }
                }
            }
            State::ArmClear => {
                self.number.next = bits::<24>(timer::CLEAR);
                self.m_timer.data.next.ticks = self.clear_wait.val();
                self.m_timer.valid.next = !self.line.q.val().clear_on;
                self.state.d.next = State::ArmLife;
                if !self.line.q.val().clear_on {
                    self.line.d.next.clear_on = self.m_timer.ready.val();
                    if !self.m_timer.ready.val() {
                        self.state.d.next = State::ArmClear;
                    }
                }
            }
            State::ArmLife => {
                self.number.next = bits::<24>(timer::LIFE);
                self.m_timer.data.next.ticks = self.pause.q.val();
                self.m_timer.valid.next = self.a.val().hears;
                self.state.d.next = State::Put;
                if self.a.val().hears {
                    self.line.d.next.life_on = true;
                    self.line.d.next.life_at = self.ends.q.val();
                    if !self.m_timer.ready.val() {
                        self.state.d.next = State::ArmLife;
                    }
                }
            }
            State::Put => {
                self.lines.write_en.next = true;
                self.state.d.next = State::Idle;
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
