//! Whole frames from one clock to another. See README.md.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::FrameRead;
pub use write::FrameWrite;

use crate::bus::{AxisSink, AxisSrc};
use crate::prim::cross::{CrossRam, GrayCount, Sync};
use ferric_hdl_derive::{kernel, BlockDefault, BlockNew};
use rust_hdl::prelude::*;

/// What the reader is told of a frame. `beats`: 1 or more. `tail`: bytes in its last beat, 1 or more.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct FrameNote {
    pub beats: Bits<12>,
    pub tail: Bits<8>,
    pub err: Bit,
}

/// FIFO of `2^rows_log2` beats between two clocks that passes frames only when they are whole.
///
/// `lossy`: `s.ready` is always high and a frame without room is dropped whole. Otherwise `s` waits, and only a frame longer
/// than the memory less five beats is dropped. `dropped` (in `s_clock`) pulses for every one.
///
/// Either reset empties both sides. It has to last four cycles of either clock, one after the other. A frame that a reset cuts is dropped; if its
/// beginning has left already it ends with one more beat, `m_err` set.
#[derive(LogicBlock, BlockNew)]
#[given(rows_log2: usize, lossy: bool)]
#[demand(W == 8 * K, "K must be W / 8")]
#[demand((4..=11).contains(&rows_log2), "16 to 2048 beats")]
pub struct FrameCross<const W: usize, const K: usize> {
    pub s_clock: Signal<In, Clock>,
    pub s_reset: Signal<In, Bit>,
    pub s: AxisSink<W, K>,
    /// With the last beat of `s`.
    pub s_err: Signal<In, Bit>,
    pub dropped: Signal<Out, Bit>,
    pub m_clock: Signal<In, Clock>,
    pub m_reset: Signal<In, Bit>,
    pub m: AxisSrc<W, K>,
    /// With the last beat of `m`.
    pub m_err: Signal<Out, Bit>,
    #[init(FrameWrite::new(rows_log2, lossy))]
    write: FrameWrite<W, K>,
    read: FrameRead<W, K>,
    #[init(CrossRam::new(rows_log2))]
    beats: CrossRam<Bits<W>, 12>,
    #[init(CrossRam::new(rows_log2))]
    notes: CrossRam<FrameNote, 12>,
    frames: Sync<Bits<12>>,
    taken: Sync<Bits<12>>,
    /// Resets as registers, then in the other clock.
    s_resetting: DFF<Bit>,
    m_resetting: DFF<Bit>,
    s_reset_over: Sync<Bit>,
    m_reset_over: Sync<Bit>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for FrameCross<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, s_clock, s_resetting);
        dff_setup!(self, m_clock, m_resetting);
        self.write.clock.next = self.s_clock.val();
        self.beats.write_clock.next = self.s_clock.val();
        self.notes.write_clock.next = self.s_clock.val();
        self.taken.clock.next = self.s_clock.val();
        self.m_reset_over.clock.next = self.s_clock.val();
        self.read.clock.next = self.m_clock.val();
        self.beats.read_clock.next = self.m_clock.val();
        self.notes.read_clock.next = self.m_clock.val();
        self.frames.clock.next = self.m_clock.val();
        self.s_reset_over.clock.next = self.m_clock.val();
        AxisSink::<W, K>::link(&mut self.s, &mut self.write.s);
        AxisSrc::<W, K>::link(&mut self.m, &mut self.read.m);
        self.write.s_err.next = self.s_err.val();
        self.dropped.next = self.write.dropped.val();
        self.m_err.next = self.read.m_err.val();
        // Resets
        self.s_resetting.d.next = self.s_reset.val();
        self.m_resetting.d.next = self.m_reset.val();
        self.s_reset_over.x.next = self.s_resetting.q.val();
        self.m_reset_over.x.next = self.m_resetting.q.val();
        self.write.reset.next = self.s_reset.val();
        self.write.remote.next = self.m_reset_over.y.val();
        self.read.reset.next = self.m_reset.val();
        self.read.remote.next = self.s_reset_over.y.val();
        // Memories
        self.beats.write_addr.next = self.write.beat_addr.val();
        self.beats.write_data.next = self.write.beat.val();
        self.beats.write_en.next = self.write.beat_en.val();
        self.beats.read_addr.next = self.read.beat_addr.val();
        self.beats.read_en.next = self.read.beat_en.val();
        self.read.beat.next = self.beats.read_data.val();
        self.notes.write_addr.next = self.write.note_addr.val();
        self.notes.write_data.next = self.write.note.val();
        self.notes.write_en.next = self.write.note_en.val();
        self.notes.read_addr.next = self.read.note_addr.val();
        self.notes.read_en.next = self.read.note_en.val();
        self.read.note.next = self.notes.read_data.val();
        // Counts
        self.frames.x.next = self.write.frames.val();
        self.read.frames.next = self.frames.y.val();
        self.taken.x.next = self.read.taken.val();
        self.write.taken.next = self.taken.y.val();
    }
}

/// Events from one clock to another: as many pulses of `m` as of `s`, none lost while fewer than 16 are under way.
///
/// A reset of either side forgets those under way; it has to last four cycles of either clock, one after the other.
#[derive(LogicBlock, BlockDefault)]
pub struct PulseCross {
    pub s_clock: Signal<In, Clock>,
    pub s_reset: Signal<In, Bit>,
    /// One event each cycle that it is high.
    pub s: Signal<In, Bit>,
    pub m_clock: Signal<In, Clock>,
    pub m_reset: Signal<In, Bit>,
    pub m: Signal<Out, Bit>,
    sent: GrayCount<4>,
    seen: Sync<Bits<4>>,
    told: GrayCount<4>,
    s_resetting: DFF<Bit>,
    m_resetting: DFF<Bit>,
    s_reset_over: Sync<Bit>,
    m_reset_over: Sync<Bit>,
    noticed: DFF<Bit>,
    pulse: DFF<Bit>,
    more: Signal<Local, Bit>,
}

#[kernel]
impl Logic for PulseCross {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, s_clock, s_resetting);
        dff_setup!(self, m_clock, m_resetting, noticed, pulse);
        self.sent.clock.next = self.s_clock.val();
        self.m_reset_over.clock.next = self.s_clock.val();
        self.seen.clock.next = self.m_clock.val();
        self.told.clock.next = self.m_clock.val();
        self.s_reset_over.clock.next = self.m_clock.val();
        self.s_resetting.d.next = self.s_reset.val();
        self.m_resetting.d.next = self.m_reset.val();
        self.s_reset_over.x.next = self.s_resetting.q.val();
        self.m_reset_over.x.next = self.m_resetting.q.val();
        self.sent.reset.next = self.s_reset.val() | self.m_reset_over.y.val();
        self.told.reset.next = self.m_reset.val() | self.s_reset_over.y.val();
        self.sent.step.next = self.s.val();
        self.seen.x.next = self.sent.gray.val();
        self.more.next = self.seen.y.val() != self.told.gray.val();
        self.told.step.next = self.more.val();
        // The other side's reset changes the count too, up to a cycle before it is known here.
        self.noticed.d.next = self.more.val();
        self.pulse.d.next = self.noticed.q.val() & !self.m_reset.val() & !self.s_reset_over.y.val();
        self.m.next = self.pulse.q.val();
    }
}
