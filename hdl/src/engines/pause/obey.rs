//! How long the peer wants to be left alone, and for how long it may want that.

use super::{TICKS, UNIT};
use crate::prim::pack::Gather;
use crate::records::{PauseCtx, PauseFrame};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Priorities of 802.1Q.
pub(super) const PRIORITIES: usize = 8;

/// A timer for each priority. A PAUSE of the whole link is one of all of them.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Obey {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub rules: Signal<In, PauseCtx>,
    /// A pause frame has come, and whether it is of priorities.
    pub seen: Signal<In, Bit>,
    pub priorities: Signal<In, Bit>,
    pub frame: Signal<In, PauseFrame>,
    /// A quantum of 512 bit times has passed.
    pub quantum: Signal<In, Bit>,
    /// Ticks, as far as limits reach.
    pub now: Signal<In, Bits<TICKS>>,
    /// No data frame begins.
    pub hold: Signal<Out, Bit>,
    /// For one cycle: a hold begins; it has lasted too long, and ends.
    pub begins: Signal<Out, Bit>,
    pub expires: Signal<Out, Bit>,
    timers: [DFF<Bits<16>>; PRIORITIES],
    times: [Signal<Local, Bits<16>>; PRIORITIES],
    counts: Signal<Local, Bits<16>>,
    whole: Signal<Local, Bit>,
    some: Signal<Local, Bit>,
    data: Signal<Local, Bits<8>>,
    running: Gather<PRIORITIES>,
    paused: DFF<Bit>,
    held: DFF<Bit>,
    began: DFF<Bits<TICKS>>,
    lasted: DFF<Bits<TICKS>>,
    late: Signal<Local, Bit>,
    over: Signal<Local, Bit>,
    ignored: DFF<Bit>,
}

#[kernel]
impl Logic for Obey {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, paused, held, began, lasted, ignored);
        self.whole.next = self.seen.val() & !self.priorities.val() & self.rules.val().obey_link;
        self.some.next = self.seen.val() & self.priorities.val() & self.rules.val().obey_priority;
        self.times[0].next = self.frame.val().time0;
        self.times[1].next = self.frame.val().time1;
        self.times[2].next = self.frame.val().time2;
        self.times[3].next = self.frame.val().time3;
        self.times[4].next = self.frame.val().time4;
        self.times[5].next = self.frame.val().time5;
        self.times[6].next = self.frame.val().time6;
        self.times[7].next = self.frame.val().time7;
        self.counts.next = self.frame.val().first;
        self.data.next = self.rules.val().data;
        for i in 0..PRIORITIES {
            self.timers[i].clock.next = self.clock.val();
            self.timers[i].d.next = self.timers[i].q.val();
            if self.quantum.val() & self.timers[i].q.val().any() {
                self.timers[i].d.next = self.timers[i].q.val() - 1;
            }
            if self.whole.val() {
                self.timers[i].d.next = self.counts.val();
            }
            if self.some.val() & self.counts.val().get_bit(i) {
                self.timers[i].d.next = self.times[i].val();
            }
            self.running.x[i].next = self.timers[i].q.val().any() & self.data.val().get_bit(i);
            // What was asked for before it was switched off does not come back with it.
            if self.reset.val() | !(self.rules.val().obey_link | self.rules.val().obey_priority) {
                self.timers[i].d.next = bits::<16>(0);
            }
        }
        self.paused.d.next = self.running.y.val().any();
        self.held.d.next = self.paused.q.val() & !self.ignored.q.val();
        self.hold.next = self.held.q.val();
        self.begins.next = self.paused.q.val() & !self.ignored.q.val() & !self.held.q.val();
        // Nobody stops this card for good: until the pause ends it counts no more.
        self.lasted.d.next = self.now.val() - self.began.q.val();
        self.late.next = self.lasted.q.val().get_bits::<16>(UNIT) >= self.rules.val().obey_limit;
        self.over.next = self.paused.q.val() & self.late.val() & !self.ignored.q.val();
        self.expires.next = self.over.val();
        if self.over.val() {
            self.ignored.d.next = true;
        }
        if !self.paused.q.val() {
            self.began.d.next = self.now.val();
            self.lasted.d.next = bits::<TICKS>(0);
            self.ignored.d.next = false;
        }
        if self.reset.val() {
            self.paused.d.next = false;
            self.held.d.next = false;
            self.lasted.d.next = bits::<TICKS>(0);
            self.ignored.d.next = false;
        }
    }
}
