//! Quiesce: wait until everything accepted before a moment has been answered by the host, while new work goes on.

use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Counts what sits between a block's input port and its arbiter, in order. After `mark`, `clear` is high once
/// everything that was there has left.
#[derive(LogicBlock, Default)]
pub struct FrontMark {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// One entered.
    pub push: Signal<In, Bit>,
    /// One left.
    pub pop: Signal<In, Bit>,
    /// Look at what is here now (including one entering now).
    pub mark: Signal<In, Bit>,
    /// What was marked has left. Valid from the cycle after `mark`.
    pub clear: Signal<Out, Bit>,
    level: DFF<Bits<5>>,
    old: DFF<Bits<5>>,
    now: Signal<Local, Bits<5>>,
}

#[kernel]
impl Logic for FrontMark {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, level, old);
        self.clear.next = !self.old.q.val().any();
        self.now.next = self.level.q.val();
        if self.push.val() & !self.pop.val() {
            self.now.next = self.level.q.val() + 1;
        }
        if self.pop.val() & !self.push.val() {
            self.now.next = self.level.q.val() - 1;
        }
        self.level.d.next = self.now.val();
        if self.mark.val() {
            self.old.d.next = self.now.val();
        } else if self.pop.val() & self.old.q.val().any() {
            self.old.d.next = self.old.q.val() - 1;
        }
        if self.reset.val() {
            self.level.d.next = bits::<5>(0);
            self.old.d.next = bits::<5>(0);
        }
    }
}

/// States of [`Quiesce`].
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum QuiesceState {
    /// Nobody asks.
    Idle,
    /// Commands accepted before are still on their way to the arbiter.
    Front,
    /// Commands issued before are still with the host.
    Wait,
    /// Told so; waiting for `quiesce` to fall.
    Done,
}

/// Every command is issued in one of two colours. `quiesce` turns the colour once the fronts are clear; the old colour's
/// count of commands in flight then only falls. `quiesced` rises when it is zero and stays until `quiesce` falls.
#[derive(LogicBlock, Default)]
pub struct Quiesce {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Level: hold until `quiesced`.
    pub quiesce: Signal<In, Bit>,
    pub quiesced: Signal<Out, Bit>,
    /// To all [`FrontMark`]s.
    pub mark: Signal<Out, Bit>,
    /// All [`FrontMark`]s are clear.
    pub clear: Signal<In, Bit>,
    /// Colour of a command issued in this cycle.
    pub color: Signal<Out, Bit>,
    /// A command is issued.
    pub start: Signal<In, Bit>,
    /// A command was answered, which had the colour `finish_color`.
    pub finish: Signal<In, Bit>,
    pub finish_color: Signal<In, Bit>,
    state: DFF<QuiesceState>,
    color_now: DFF<Bit>,
    flying0: DFF<Bits<10>>,
    flying1: DFF<Bits<10>>,
    start0: Signal<Local, Bit>,
    start1: Signal<Local, Bit>,
    finish0: Signal<Local, Bit>,
    finish1: Signal<Local, Bit>,
    gone: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Quiesce {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, color_now, flying0, flying1);
        self.color.next = self.color_now.q.val();
        self.start0.next = self.start.val() & !self.color_now.q.val();
        self.start1.next = self.start.val() & self.color_now.q.val();
        self.finish0.next = self.finish.val() & !self.finish_color.val();
        self.finish1.next = self.finish.val() & self.finish_color.val();
        if self.start0.val() & !self.finish0.val() {
            self.flying0.d.next = self.flying0.q.val() + 1;
        }
        if self.finish0.val() & !self.start0.val() {
            self.flying0.d.next = self.flying0.q.val() - 1;
        }
        if self.start1.val() & !self.finish1.val() {
            self.flying1.d.next = self.flying1.q.val() + 1;
        }
        if self.finish1.val() & !self.start1.val() {
            self.flying1.d.next = self.flying1.q.val() - 1;
        }
        self.gone.next = !self.flying1.q.val().any();
        if self.color_now.q.val() {
            self.gone.next = !self.flying0.q.val().any();
        }
        self.mark.next = false;
        self.quiesced.next = false;
        match self.state.q.val() {
            QuiesceState::Idle => {
                if self.quiesce.val() {
                    self.mark.next = true;
                    self.state.d.next = QuiesceState::Front;
                }
            }
            QuiesceState::Front => {
                if self.clear.val() {
                    self.color_now.d.next = !self.color_now.q.val();
                    self.state.d.next = QuiesceState::Wait;
                }
            }
            QuiesceState::Wait => {
                if self.gone.val() {
                    self.state.d.next = QuiesceState::Done;
                }
            }
            QuiesceState::Done => {
                self.quiesced.next = true;
                if !self.quiesce.val() {
                    self.state.d.next = QuiesceState::Idle;
                }
            }
            _ => {
                self.state.d.next = QuiesceState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = QuiesceState::Idle;
            self.color_now.d.next = false;
            self.flying0.d.next = bits::<10>(0);
            self.flying1.d.next = bits::<10>(0);
        }
    }
}
