//! Functions take turns at the admin engine.

use crate::prim::arb::BinToOneHot;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Whom the admin engine looks at: a function is due when it has been told something, and again as often as the engine says so. It is offered once it is found,
/// round robin, by looking at one of the functions in each cycle; it is due no longer from the moment it is served, so that what it is told from then on counts.
#[derive(LogicBlock, Default)]
pub struct Turns<const NF: usize, const LF: usize> {
    pub clock: Signal<In, Clock>,
    /// Nobody is due.
    pub reset: Signal<In, Bit>,
    /// Pulse: there is something for the engine in the registers of `told_by`.
    pub told: Signal<In, Bit>,
    pub told_by: Signal<In, Bits<LF>>,
    /// Pulse: the engine has taken up the function `turn`.
    pub served: Signal<In, Bit>,
    /// Pulse: the engine may not be done with `again_by`.
    pub again: Signal<In, Bit>,
    pub again_by: Signal<In, Bits<LF>>,
    /// It is the turn of function `turn`, until it is served.
    pub due: Signal<Out, Bit>,
    pub turn: Signal<Out, Bits<LF>>,
    waiting: DFF<Bits<NF>>,
    at: DFF<Bits<LF>>,
    found: DFF<Bit>,
    tells: BinToOneHot<NF, LF>,
    repeats: BinToOneHot<NF, LF>,
    serves: BinToOneHot<NF, LF>,
}

#[kernel]
impl<const NF: usize, const LF: usize> Logic for Turns<NF, LF> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, waiting, at, found);
        self.tells.x.next = self.told_by.val();
        self.tells.en.next = self.told.val();
        self.repeats.x.next = self.again_by.val();
        self.repeats.en.next = self.again.val();
        self.serves.x.next = self.at.q.val();
        self.serves.en.next = self.served.val();
        self.waiting.d.next = (self.waiting.q.val() & !self.serves.y.val()) | self.tells.y.val() | self.repeats.y.val();
        self.due.next = self.found.q.val();
        self.turn.next = self.at.q.val();
        // Who has been served is behind all others.
        if self.served.val() {
            self.found.d.next = false;
            self.at.d.next = self.at.q.val() + 1;
        } else if !self.found.q.val() {
            if self.waiting.q.val().get_bit(self.at.q.val().index()) {
                self.found.d.next = true;
            } else {
                self.at.d.next = self.at.q.val() + 1;
            }
        }
        if self.reset.val() {
            self.waiting.d.next = bits::<NF>(0);
            self.found.d.next = false;
        }
    }
}
