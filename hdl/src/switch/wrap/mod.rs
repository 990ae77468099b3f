//! The tunnel's end on the way out: an outer header in front of every frame. See README.md.

mod facts;
mod head;
mod shift;
mod store;
#[cfg(test)]
mod tests;
pub(super) mod whose;

use crate::bus::{AxisSink, AxisSrc};
use crate::prim::pack::Gather;
use crate::records::TunnelCtx;
use crate::stream::{AxisSlice, Bypass};
use ferric_hdl_derive::{kernel, BlockDefault};
pub use ferric_model::switch::wrap as model;
use rust_hdl::prelude::*;

/// Events on `stat`: frames that have left with an outer header.
pub const STATS: &[&str] = &["wrapped"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[("s", &["m"])];

/// log2 of the frames whose header is to be made.
const LG_FRAMES: usize = 6;

/// Puts the outer header of its function's tunnel in front of each frame, or none if the function has no tunnel. Each frame waits until it is complete, and while its function's line is being written. `NF` functions.
#[derive(LogicBlock, BlockDefault)]
pub struct Wrap<const W: usize, const K: usize, const LK: usize, const NF: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; what is under way is forgotten.
    pub reset: Signal<In, Bit>,
    /// The tunnels, by function. Before anything else of one changes it is not valid for four cycles.
    pub ctx: [Signal<In, TunnelCtx>; NF],
    /// From the egress: a frame begins, of this function; some cycles later its first beat comes on `s`.
    pub begins: Signal<In, Bit>,
    pub begins_function: Signal<In, Bits<12>>,
    pub s: AxisSink<W, K>,
    pub m: AxisSrc<W, K>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bit>,
    store: store::Store<W, K>,
    finder: facts::FactFinder<W, K>,
    whose: whose::Whose<K>,
    head: head::Head<NF>,
    shift: shift::Shift<W, K, LK>,
    // Past all of it, while no function has a tunnel
    bypass: Bypass,
    have: Gather<NF>,
    own: Signal<Local, TunnelCtx>,
    none: DFF<Bit>,
    slice: AxisSlice<W, K>,
    taken: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize, const NF: usize> Logic for Wrap<W, K, LK, NF> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, none);
        clock!(self, clock, store, finder, whose, head, shift, bypass, slice);
        self.store.reset.next = self.reset.val();
        self.finder.reset.next = self.reset.val();
        self.whose.reset.next = self.reset.val();
        self.head.reset.next = self.reset.val();
        self.shift.reset.next = self.reset.val();
        self.bypass.reset.next = self.reset.val();
        self.slice.reset.next = self.reset.val();
        self.store.s.data.next = self.s.data.val();
        self.store.s.keep.next = self.s.keep.val();
        self.store.s.last.next = self.s.last.val();
        self.store.s.valid.next = self.s.valid.val() & !self.bypass.past.val();
        self.slice.s.data.next = self.s.data.val();
        self.slice.s.keep.next = self.s.keep.val();
        self.slice.s.last.next = self.s.last.val();
        self.slice.s.valid.next = self.s.valid.val() & self.bypass.past.val();
        self.s.ready.next = self.store.s.ready.val();
        if self.bypass.past.val() {
            self.s.ready.next = self.slice.s.ready.val();
        }
        // What goes by leaves first: it came before all that the store may have by now.
        self.m.data.next = self.shift.m.data.val();
        self.m.keep.next = self.shift.m.keep.val();
        self.m.last.next = self.shift.m.last.val();
        self.m.valid.next = self.shift.m.valid.val();
        self.shift.m.ready.next = self.m.ready.val();
        self.slice.m.ready.next = self.m.ready.val();
        if self.slice.m.valid.val() {
            self.m.data.next = self.slice.m.data.val();
            self.m.keep.next = self.slice.m.keep.val();
            self.m.last.next = self.slice.m.last.val();
            self.m.valid.next = true;
            self.shift.m.ready.next = false;
        }
        self.none.d.next = !self.have.y.val().any();
        self.taken.next = self.s.valid.val() & self.s.ready.val();
        self.bypass.may.next = self.none.q.val();
        self.bypass.taken.next = self.taken.val();
        self.bypass.last.next = self.s.last.val();
        self.bypass.busy.next = self.shift.m.valid.val();
        self.finder.data.next = self.s.data.val();
        self.finder.keep.next = self.s.keep.val();
        self.finder.last.next = self.s.last.val();
        self.finder.valid.next = self.store.taken.val();
        self.whose.begins.next = self.begins.val();
        self.whose.sender.next = self.begins_function.val();
        // No frame is complete in the store while others go by.
        self.whose.whole.next = self.store.len_valid.val() | (self.taken.val() & self.s.last.val() & self.bypass.past.val());
        for i in 0..NF {
            self.head.ctx[i].next = self.ctx[i].val();
            self.own.next = self.ctx[i].val();
            self.have.x[i].next = self.own.val().valid | self.own.val().bound;
        }
        self.head.sender.next = self.whose.first.val();
        self.head.facts.next = self.finder.facts.val();
        self.head.facts_valid.next = self.finder.facts_valid.val();
        self.head.len.next = self.store.len.val();
        self.head.len_valid.next = self.store.len_valid.val();
        self.head.take.next = self.shift.take.val();
        self.store.made.next = self.shift.take.val();
        self.shift.valid.next = self.head.valid.val();
        self.shift.header.next = self.head.header.val();
        self.shift.header_len.next = self.head.header_len.val();
        self.shift.beat_valid.next = self.store.beat_valid.val();
        self.shift.beat.next = self.store.beat.val();
        self.shift.beat_len.next = self.store.beat_len.val();
        self.shift.beat_last.next = self.store.beat_last.val();
        self.store.take.next = self.shift.beat_take.val();
        self.stat.next = self.shift.wrapped.val();
    }
}
