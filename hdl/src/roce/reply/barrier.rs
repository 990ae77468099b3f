//! A barrier on its way through the replies: those before it, then the atomics among them, then the turn of a queue pair whose life ends.
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// One barrier at a time.
#[derive(LogicBlock, Default)]
pub struct Barrier {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: a barrier has come. With `ends` a life is over behind it.
    pub start: Signal<In, Bit>,
    pub ends: Signal<In, Bit>,
    /// No reply waits, and no atomic is under way.
    pub settled: Signal<In, Bit>,
    /// Pulse: the life has been ended. The turn that is under way then, if there is one (not `idle`), may be of that life.
    pub ended: Signal<In, Bit>,
    pub idle: Signal<In, Bit>,
    /// Pulse: a turn has come back.
    pub turned: Signal<In, Bit>,
    /// No further replies are taken.
    pub hold: Signal<Out, Bit>,
    /// A life is to be ended.
    pub ending: Signal<Out, Bit>,
    /// Pulse: the barrier passes on.
    pub done: Signal<Out, Bit>,
    held: DFF<Bit>,
    to_end: DFF<Bit>,
    /// The turn that was under way has not come back; the barrier waits for that.
    turning: DFF<Bit>,
    wanes: DFF<Bit>,
    passed: DFF<Bit>,
}

#[kernel]
impl Logic for Barrier {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, held, to_end, turning, wanes, passed);
        self.hold.next = self.held.q.val();
        self.ending.next = self.to_end.q.val();
        self.done.next = self.passed.q.val();
        self.passed.d.next = false;
        if self.start.val() {
            self.held.d.next = true;
            self.to_end.d.next = self.ends.val();
        }
        if self.held.q.val() & self.settled.val() & !self.to_end.q.val() {
            self.held.d.next = false;
            self.wanes.d.next = true;
        }
        // A turn needs keys, and the key unit may wait for placement: replies are taken again meanwhile.
        if self.wanes.q.val() & !self.turning.q.val() {
            self.wanes.d.next = false;
            self.passed.d.next = true;
        }
        if self.ended.val() {
            self.to_end.d.next = false;
            self.turning.d.next = !self.idle.val();
        }
        if self.turned.val() {
            self.turning.d.next = false;
        }
        if self.reset.val() {
            self.held.d.next = false;
            self.passed.d.next = false;
            self.to_end.d.next = false;
            self.turning.d.next = false;
            self.wanes.d.next = false;
        }
    }
}
