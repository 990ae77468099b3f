//! Resets of a clock. See README.md.

#[cfg(test)]
mod tests;

use crate::prim::cross::ResetSync;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Cycles for which a reset is held after its causes are gone.
pub const HOLD: u64 = 16;

/// `reset` rises at once when `reset_n` or `ready` falls, clock or none, and falls with the clock, [`HOLD`] cycles after both are
/// high and through their two registers.
#[derive(LogicBlock, BlockDefault)]
pub struct Reset {
    pub clock: Signal<In, Clock>,
    /// Asynchronous.
    pub reset_n: Signal<In, Bit>,
    /// Asynchronous: a PLL's lock, a link's state.
    pub ready: Signal<In, Bit>,
    pub reset: Signal<Out, Bit>,
    button: ResetSync,
    unready: ResetSync,
    count: DFF<Bits<4>>,
    over: DFF<Bit>,
    cause: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Reset {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, count, over);
        clock!(self, clock, button, unready);
        self.button.n.next = self.reset_n.val();
        self.unready.n.next = self.ready.val();
        self.cause.next = self.button.y.val() | self.unready.y.val();
        self.count.d.next = self.count.q.val() + 1;
        if self.count.q.val() == 15 {
            self.over.d.next = true;
        }
        if self.cause.val() {
            self.count.d.next = bits::<4>(0);
            self.over.d.next = false;
        }
        self.reset.next = self.cause.val() | !self.over.q.val();
    }
}

/// [`Reset`] for a shell that asks for function-level resets: all inputs are of `clock`, `reset` is a register. A high `flr`
/// resets too; `flr_done` rises when that reset is over and falls with `flr`.
#[derive(LogicBlock, BlockDefault)]
pub struct ResetFlr {
    pub clock: Signal<In, Clock>,
    pub reset_n: Signal<In, Bit>,
    pub flr: Signal<In, Bit>,
    pub reset: Signal<Out, Bit>,
    pub flr_done: Signal<Out, Bit>,
    count: DFF<Bits<4>>,
    over: DFF<Bit>,
    /// This `flr` has been seen.
    asked: DFF<Bit>,
    done: DFF<Bit>,
}

#[kernel]
impl Logic for ResetFlr {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, count, over, asked, done);
        self.asked.d.next = self.flr.val();
        self.count.d.next = self.count.q.val() + 1;
        if self.count.q.val() == 15 {
            self.over.d.next = true;
        }
        self.done.d.next = self.flr.val() & self.asked.q.val() & self.over.q.val();
        if !self.reset_n.val() | (self.flr.val() & !self.asked.q.val()) {
            self.count.d.next = bits::<4>(0);
            self.over.d.next = false;
        }
        if !self.reset_n.val() {
            self.asked.d.next = false;
            self.done.d.next = false;
        }
        self.reset.next = !self.over.q.val();
        self.flr_done.next = self.done.q.val();
    }
}
