//! Frames on their way out say by which queue their flow leaves. See README.md.

use crate::bus::{AxisSink, AxisSrc, MsgSink, MsgSrc};
use crate::msg::{VqNotify, VsNote};
use crate::stream::{AxisSlice, MsgFifo, MsgSlice};
use crate::virtio::steer::head::Head;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_frame", &["s_from", "m_frame", "m_note"]),
    // There is a place for the queue of every frame that `net/l4` can have said and not shown.
    ("s_from", &["m_from"]),
    ("m_frame", &["s_frame"]),
    ("m_from", &["s_from"]),
    ("m_note", &["s_frame", "s_from"]),
];

/// log2 of the frames whose queue is known and whose headers are not: `net/l4` has a few beats on their way out.
const LG_QUEUES: usize = 5;

/// A path of `W` bits. Frames and their queues pass; of each that has a flow goes a note.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K, "K must be W / 8")]
pub struct Note<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not in the middle of a frame.
    pub reset: Signal<In, Bit>,
    pub s_frame: AxisSink<W, K>,
    /// The queue of each frame, before it or with it.
    pub s_from: MsgSink<VqNotify>,
    pub m_frame: AxisSrc<W, K>,
    pub m_from: MsgSrc<VqNotify>,
    pub m_note: MsgSrc<VsNote>,
    inlet: AxisSlice<W, K>,
    outlet: AxisSlice<W, K>,
    from: MsgSlice<VqNotify>,
    passes: MsgSlice<VqNotify>,
    queues: MsgFifo<VqNotify, LG_QUEUES>,
    notes: MsgSlice<VsNote>,
    head: Head<W, K>,
    flows: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Note<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, inlet, outlet, from, passes, queues, notes, head);
        self.inlet.reset.next = self.reset.val();
        self.outlet.reset.next = self.reset.val();
        self.from.reset.next = self.reset.val();
        self.passes.reset.next = self.reset.val();
        self.queues.reset.next = self.reset.val();
        self.notes.reset.next = self.reset.val();
        self.head.reset.next = self.reset.val();
        AxisSink::<W, K>::link(&mut self.s_frame, &mut self.inlet.s);
        AxisSrc::<W, K>::link(&mut self.m_frame, &mut self.outlet.m);
        MsgSink::<VqNotify>::link(&mut self.s_from, &mut self.from.s);
        MsgSrc::<VqNotify>::link(&mut self.m_from, &mut self.passes.m);
        MsgSrc::<VsNote>::link(&mut self.m_note, &mut self.notes.m);
        self.head.s.data.next = self.inlet.m.data.val();
        self.head.s.keep.next = self.inlet.m.keep.val();
        self.head.s.last.next = self.inlet.m.last.val();
        self.head.s.valid.next = self.inlet.m.valid.val() & self.outlet.s.ready.val();
        self.outlet.s.data.next = self.inlet.m.data.val();
        self.outlet.s.keep.next = self.inlet.m.keep.val();
        self.outlet.s.last.next = self.inlet.m.last.val();
        self.outlet.s.valid.next = self.inlet.m.valid.val() & self.head.s.ready.val();
        self.inlet.m.ready.next = self.outlet.s.ready.val() & self.head.s.ready.val();
        self.passes.s.data.next = self.from.m.data.val();
        self.passes.s.valid.next = self.from.m.valid.val() & self.queues.s.ready.val();
        self.queues.s.data.next = self.from.m.data.val();
        self.queues.s.valid.next = self.from.m.valid.val() & self.passes.s.ready.val();
        self.from.m.ready.next = self.queues.s.ready.val() & self.passes.s.ready.val();
        // A frame without a flow has a queue all the same.
        self.flows.next = self.head.m.data.val().v4 | self.head.m.data.val().v6;
        self.moves.next = self.head.m.valid.val() & self.queues.m.valid.val() & self.notes.s.ready.val();
        self.notes.s.valid.next = self.head.m.valid.val() & self.queues.m.valid.val() & self.flows.val();
        self.notes.s.data.next.queue = self.queues.m.data.val().queue;
        self.notes.s.data.next.place = self.head.m.data.val().place;
        self.queues.m.ready.next = self.moves.val();
        self.head.m.ready.next = self.moves.val();
    }
}
