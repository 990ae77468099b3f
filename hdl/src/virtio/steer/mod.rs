//! Steering: a received frame is its function's or not, and belongs to one of its queues. See README.md.

pub mod choose;
pub mod head;
pub mod load;
pub mod stations;
#[cfg(test)]
mod tests;
pub mod toeplitz;

use crate::bus::{AxisSink, AxisSrc, MsgSink, MsgSrc};
use crate::msg::{CtlReq, CtlResp, VqNotify, VsDropped, VsFor, VsNote, VsVerdict};
use crate::stream::{AxisFifo, AxisSlice, MsgSlice};
use choose::Choose;
use ferric_hdl_derive::{kernel, BlockDefault};
use head::Head;
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_frame", &["s_for", "m_frame", "m_to"]),
    ("s_for", &["s_frame"]),
    // A frame's queue goes in front of it, so neither waits for the other of the same frame.
    ("m_frame", &["s_frame", "s_for"]),
    ("m_to", &["s_frame", "s_for"]),
    ("s_ctl", &["m_ctl"]),
    ("m_ctl", &[]),
    ("s_note", &[]), // flows are forgotten in as many cycles as there are
];

/// log2 of the beats that are held: the longest header that is looked at (tag, IPv4 with all options, ports) is 11 beats of 64 bits.
const LG_HELD: usize = 4;

/// A path of `W` bits; the others as [`Choose`] has them.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && W >= 64, "the headers have to fit what is held")]
pub struct Steer<const W: usize, const K: usize, const LF: usize, const LQ: usize, const LM: usize, const LV: usize, const LP: usize, const LY: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not in the middle of a frame.
    pub reset: Signal<In, Bit>,
    pub s_frame: AxisSink<W, K>,
    /// The function of each frame, which may not want it.
    pub s_for: MsgSink<VsFor>,
    /// The tables.
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// Frames that have left.
    pub s_note: MsgSink<VsNote>,
    pub m_frame: AxisSrc<W, K>,
    /// The queue of each frame that goes on.
    pub m_to: MsgSrc<VqNotify>,
    /// Pulse: a frame is dropped.
    pub dropped_valid: Signal<Out, Bit>,
    pub dropped: Signal<Out, VsDropped>,
    inlet: AxisSlice<W, K>,
    whose: MsgSlice<VsFor>,
    head: Head<W, K>,
    choose: Choose<LF, LQ, LM, LV, LP, LY>,
    held: AxisFifo<W, K, LG_HELD>,
    to: MsgSlice<VqNotify>,
    passes: DFF<Bit>,
    drops: DFF<Bit>,
    known: Signal<Local, Bit>,
    verdict: Signal<Local, VsVerdict>,
    taken: Signal<Local, Bit>,
    refused: Signal<Local, Bit>,
    free: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize, const LF: usize, const LQ: usize, const LM: usize, const LV: usize, const LP: usize, const LY: usize> Logic for Steer<W, K, LF, LQ, LM, LV, LP, LY> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, passes, drops);
        clock!(self, clock, inlet, whose, head, choose, held, to);
        self.inlet.reset.next = self.reset.val();
        self.whose.reset.next = self.reset.val();
        self.head.reset.next = self.reset.val();
        self.choose.reset.next = self.reset.val();
        self.held.reset.next = self.reset.val();
        self.to.reset.next = self.reset.val();
        AxisSink::<W, K>::link(&mut self.s_frame, &mut self.inlet.s);
        MsgSink::<VsFor>::link(&mut self.s_for, &mut self.whose.s);
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.choose.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.choose.m_ctl);
        MsgSink::<VsNote>::link(&mut self.s_note, &mut self.choose.s_note);
        MsgSrc::<VqNotify>::link(&mut self.m_to, &mut self.to.m);

        // Each beat is looked at, and held until its frame's verdict.
        self.known.next = self.whose.m.valid.val();
        self.head.s.data.next = self.inlet.m.data.val();
        self.head.s.keep.next = self.inlet.m.keep.val();
        self.head.s.last.next = self.inlet.m.last.val();
        self.head.s.valid.next = self.inlet.m.valid.val() & self.known.val() & self.held.s.ready.val();
        self.held.s.data.next = self.inlet.m.data.val();
        self.held.s.keep.next = self.inlet.m.keep.val();
        self.held.s.last.next = self.inlet.m.last.val();
        self.held.s.valid.next = self.inlet.m.valid.val() & self.known.val() & self.head.s.ready.val();
        self.inlet.m.ready.next = self.known.val() & self.head.s.ready.val() & self.held.s.ready.val();
        self.whose.m.ready.next = self.head.over.val();
        self.choose.whose.next = self.whose.m.data.val().function;
        self.choose.known.next = self.head.known.val();
        self.choose.mac.next = self.head.mac.val();
        self.choose.feeds.next = self.head.feeds.val();
        self.choose.feed.next = self.head.feed.val();
        self.choose.paired.next = self.head.paired.val();
        self.choose.s_head.data.next = self.head.m.data.val();
        self.choose.s_head.valid.next = self.head.m.valid.val();
        self.head.m.ready.next = self.choose.s_head.ready.val();

        // What is held goes on or is thrown away.
        self.verdict.next = self.choose.m_verdict.data.val();
        self.free.next = self.choose.m_verdict.valid.val() & !self.passes.q.val() & !self.drops.q.val();
        self.refused.next = self.free.val() & self.verdict.val().cause.any();
        self.taken.next = self.free.val() & !self.verdict.val().cause.any() & self.to.s.ready.val();
        self.choose.m_verdict.ready.next = self.refused.val() | self.taken.val();
        self.to.s.valid.next = self.taken.val();
        self.to.s.data.next.queue = self.verdict.val().queue;
        self.m_frame.data.next = self.held.m.data.val();
        self.m_frame.keep.next = self.held.m.keep.val();
        self.m_frame.last.next = self.held.m.last.val();
        self.m_frame.valid.next = self.held.m.valid.val() & self.passes.q.val();
        self.held.m.ready.next = self.drops.q.val() | (self.passes.q.val() & self.m_frame.ready.val());
        if self.taken.val() {
            self.passes.d.next = true;
        } else if self.passes.q.val() & self.held.m.valid.val() & self.m_frame.ready.val() & self.held.m.last.val() {
            self.passes.d.next = false;
        }
        if self.refused.val() {
            self.drops.d.next = true;
        } else if self.drops.q.val() & self.held.m.valid.val() & self.held.m.last.val() {
            self.drops.d.next = false;
        }
        self.dropped_valid.next = self.refused.val();
        self.dropped.next.function = self.verdict.val().function;
        self.dropped.next.cause = self.verdict.val().cause;
        if self.reset.val() {
            self.passes.d.next = false;
            self.drops.d.next = false;
        }
    }
}
