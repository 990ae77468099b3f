//! When the peer is to pause, by the receive buffer's fill.

use super::{TICKS, UNIT};
use crate::records::PauseCtx;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Quanta after which a pause of 65,535 is said again: half of it, so that a lost frame does not end it.
pub(super) const AGAIN: u64 = 0x7fff;

/// What is to be told to the peer, and what it has been told.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Ask {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub rules: Signal<In, PauseCtx>,
    pub free_cells: Signal<In, Bits<10>>,
    pub quantum: Signal<In, Bit>,
    /// Ticks, as far as limits reach.
    pub now: Signal<In, Bits<TICKS>>,
    /// A frame is to go out.
    pub want: Signal<Out, Bit>,
    /// It begins, and says what is to be said in this cycle.
    pub launch: Signal<In, Bit>,
    /// What the last frame has said, from the cycle after `launch` on: stop, of all or of which priorities.
    pub told: Signal<Out, Bit>,
    pub told_priority: Signal<Out, Bit>,
    pub told_which: Signal<Out, Bits<8>>,
    /// For one cycle: the peer has been paused for too long.
    pub gives_up: Signal<Out, Bit>,
    free: DFF<Bits<10>>,
    low: DFF<Bit>,
    high: DFF<Bit>,
    full: DFF<Bit>,
    began: DFF<Bits<TICKS>>,
    lasted: DFF<Bits<TICKS>>,
    late: Signal<Local, Bit>,
    over: Signal<Local, Bit>,
    given_up: DFF<Bit>,
    stopped: DFF<Bit>,
    by_priority: DFF<Bit>,
    which: DFF<Bits<8>>,
    timer: DFF<Bits<16>>,
    due: DFF<Bit>,
    on: Signal<Local, Bit>,
    cells: Signal<Local, Bits<16>>,
    stop: Signal<Local, Bit>,
    kind: Signal<Local, Bits<2>>,
}

#[kernel]
impl Logic for Ask {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, free, low, high, full, began, lasted, given_up, stopped, by_priority, which, timer, due);
        self.free.d.next = self.free_cells.val();
        self.cells.next = bit_cast::<16, 10>(self.free.q.val());
        self.low.d.next = self.cells.val() <= self.rules.val().xoff;
        self.high.d.next = self.cells.val() >= self.rules.val().xon;
        self.kind.next = self.rules.val().send;
        self.on.next = self.kind.val().any();
        if self.high.q.val() | !self.on.val() {
            self.full.d.next = false;
        } else if self.low.q.val() {
            self.full.d.next = true;
        }
        // A host that takes nothing must not stop the fabric: then frames are dropped as if there was no pause.
        self.lasted.d.next = self.now.val() - self.began.q.val();
        self.late.next = self.lasted.q.val().get_bits::<16>(UNIT) >= self.rules.val().send_limit;
        self.over.next = self.full.q.val() & self.late.val() & !self.given_up.q.val();
        self.gives_up.next = self.over.val();
        if self.over.val() {
            self.given_up.d.next = true;
        }
        if !self.full.q.val() {
            self.began.d.next = self.now.val();
            self.lasted.d.next = bits::<TICKS>(0);
            self.given_up.d.next = false;
        }
        self.stop.next = self.full.q.val() & !self.given_up.q.val();
        self.want.next = (self.stop.val() ^ self.stopped.q.val()) | self.due.q.val();
        if self.quantum.val() & self.timer.q.val().any() {
            self.timer.d.next = self.timer.q.val() - 1;
        }
        self.due.d.next = self.stop.val() & self.stopped.q.val() & !self.timer.q.val().any();
        if self.launch.val() {
            self.stopped.d.next = self.stop.val();
            self.timer.d.next = bits::<16>(AGAIN);
            self.due.d.next = false;
            // Who is let go is let go as he was stopped, whatever has been switched meanwhile.
            if self.stop.val() {
                self.by_priority.d.next = self.kind.val().get_bit(1);
                self.which.d.next = self.rules.val().sent;
            }
        }
        self.told.next = self.stopped.q.val();
        self.told_priority.next = self.by_priority.q.val();
        self.told_which.next = self.which.q.val();
        if self.reset.val() {
            self.low.d.next = false;
            self.high.d.next = false;
            self.full.d.next = false;
            self.lasted.d.next = bits::<TICKS>(0);
            self.given_up.d.next = false;
            self.stopped.d.next = false;
            self.due.d.next = false;
        }
    }
}
