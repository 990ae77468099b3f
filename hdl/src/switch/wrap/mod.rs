//! The tunnel's end on the way out: an outer header in front of every frame. See README.md.

mod facts;
mod head;
mod shift;
mod store;
#[cfg(test)]
mod tests;
pub(super) mod whose;

use crate::bus::{AxisSink, AxisSrc};
use crate::records::TunnelCtx;
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
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize, const NF: usize> Logic for Wrap<W, K, LK, NF> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, store, finder, whose, head, shift);
        self.store.reset.next = self.reset.val();
        self.finder.reset.next = self.reset.val();
        self.whose.reset.next = self.reset.val();
        self.head.reset.next = self.reset.val();
        self.shift.reset.next = self.reset.val();
        AxisSink::<W, K>::link(&mut self.s, &mut self.store.s);
        AxisSrc::<W, K>::link(&mut self.m, &mut self.shift.m);
        self.finder.data.next = self.s.data.val();
        self.finder.keep.next = self.s.keep.val();
        self.finder.last.next = self.s.last.val();
        self.finder.valid.next = self.store.taken.val();
        self.whose.begins.next = self.begins.val();
        self.whose.sender.next = self.begins_function.val();
        self.whose.whole.next = self.store.len_valid.val();
        for i in 0..NF {
            self.head.ctx[i].next = self.ctx[i].val();
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
