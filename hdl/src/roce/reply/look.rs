//! The look for the stored result of a duplicate atomic: the newest first, three cycles each.
use super::seat::Seat;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Look,
    Seen,
    Match,
}

/// One look at a time.
#[derive(LogicBlock, Default)]
pub struct Look {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: the look begins, in the results of this seat.
    pub start: Signal<In, Bit>,
    pub seat: Signal<In, Seat>,
    /// The result to be compared; its PSN was the one looked for two cycles ago.
    pub slot: Signal<Out, Bits<5>>,
    pub same: Signal<In, Bit>,
    /// It stands in `slot`; the look ends when that is taken.
    pub found: Signal<Out, Bit>,
    pub take: Signal<In, Bit>,
    /// Pulse: it is not there, and the look has ended.
    pub none: Signal<Out, Bit>,
    state: DFF<State>,
    at: DFF<Bits<5>>,
    left: DFF<Bits<6>>,
}

#[kernel]
impl Logic for Look {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, at, left);
        self.slot.next = self.at.q.val();
        self.none.next = (self.state.q.val() == State::Look) & !self.left.q.val().any();
        self.found.next = (self.state.q.val() == State::Match) & self.same.val();
        match self.state.q.val() {
            State::Idle => {
                if self.start.val() {
                    self.at.d.next = self.seat.val().slot - 1;
                    self.left.d.next = self.seat.val().used;
                    self.state.d.next = State::Look;
                }
            }
            State::Look => {
                self.state.d.next = State::Seen;
                if !self.left.q.val().any() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Seen => {
                self.state.d.next = State::Match;
            }
            State::Match => {
                if !self.same.val() {
                    self.at.d.next = self.at.q.val() - 1;
                    self.left.d.next = self.left.q.val() - 1;
                    self.state.d.next = State::Look;
                } else if self.take.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
