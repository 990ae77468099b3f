//! The writing side: beats into the memory, a note for every whole frame, room.

use super::FrameNote;
use crate::bus::AxisSink;
use crate::prim::cross::{GrayCount, GrayToBin};
use crate::prim::keep_mask::KeepLen;
use ferric_hdl_derive::{kernel, BlockNew};
use rust_hdl::prelude::*;

/// Writer of [`super::FrameCross`]; same parameters.
#[derive(LogicBlock, BlockNew)]
#[given(rows_log2: usize, lossy: bool)]
pub struct FrameWrite<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// The reading side is in reset.
    pub remote: Signal<In, Bit>,
    pub s: AxisSink<W, K>,
    pub s_err: Signal<In, Bit>,
    pub dropped: Signal<Out, Bit>,
    pub beat_addr: Signal<Out, Bits<12>>,
    pub beat: Signal<Out, Bits<W>>,
    pub beat_en: Signal<Out, Bit>,
    pub note_addr: Signal<Out, Bits<12>>,
    pub note: Signal<Out, FrameNote>,
    pub note_en: Signal<Out, Bit>,
    /// Whole frames written, Gray code.
    pub frames: Signal<Out, Bits<12>>,
    /// Beats read, Gray code.
    pub taken: Signal<In, Bits<12>>,
    count: GrayCount<12>,
    decode: GrayToBin<12>,
    tail: KeepLen<K, 8>,
    /// Beats written; of whole frames only; read.
    at: DFF<Bits<12>>,
    start: DFF<Bits<12>>,
    freed: DFF<Bits<12>>,
    /// Room for fewer than two beats.
    full: DFF<Bit>,
    /// The frame fills the memory alone.
    long: DFF<Bit>,
    /// The rest of the frame is not written.
    dropping: DFF<Bit>,
    /// Between a first and a last beat.
    inside: DFF<Bit>,
    /// In reset, until a cycle after it.
    held: DFF<Bit>,
    gone: DFF<Bit>,
    #[init(Constant::new(lossy))]
    lossy: Constant<Bit>,
    #[init(Constant::new(((1u64 << rows_log2) - 3).to_bits()))]
    most: Constant<Bits<12>>,
    #[init(Constant::new(((1u64 << rows_log2) - 5).to_bits()))]
    longest: Constant<Bits<12>>,
    next: Signal<Local, Bits<12>>,
    used: Signal<Local, Bits<12>>,
    beats: Signal<Local, Bits<12>>,
    ready: Signal<Local, Bit>,
    push: Signal<Local, Bit>,
    lost: Signal<Local, Bit>,
    whole: Signal<Local, Bit>,
    restart: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for FrameWrite<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, at, start, freed, full, long, dropping, inside, held, gone);
        clock!(self, clock, count);
        self.restart.next = self.reset.val() | self.remote.val();
        self.ready.next = self.lossy.val() | ((!self.full.q.val() | self.dropping.q.val() | self.long.q.val()) & !self.held.q.val());
        self.s.ready.next = self.ready.val();
        self.push.next = self.s.valid.val() & self.ready.val();
        self.lost.next = self.dropping.q.val() | self.full.q.val() | self.long.q.val() | self.held.q.val();
        self.whole.next = self.push.val() & self.s.last.val() & !self.lost.val() & !self.restart.val();
        self.next.next = self.at.q.val() + 1;
        self.beats.next = self.next.val() - self.start.q.val();
        self.used.next = self.at.q.val() - self.freed.q.val();
        self.decode.x.next = self.taken.val();
        self.freed.d.next = self.decode.y.val();
        self.full.d.next = self.used.val() >= self.most.val();
        self.tail.keep.next = self.s.keep.val();
        self.beat_addr.next = self.at.q.val();
        self.beat.next = self.s.data.val();
        self.beat_en.next = self.push.val() & !self.lost.val();
        self.note_addr.next = self.count.binary.val();
        self.note.next.beats = self.beats.val();
        self.note.next.tail = self.tail.len.val();
        self.note.next.err = self.s_err.val();
        self.note_en.next = self.whole.val();
        self.count.step.next = self.whole.val();
        self.count.reset.next = self.restart.val();
        self.frames.next = self.count.gray.val();
        self.gone.d.next = self.push.val() & self.s.last.val() & self.lost.val() & !self.reset.val();
        self.dropped.next = self.gone.q.val();
        if self.push.val() {
            self.inside.d.next = !self.s.last.val();
            self.dropping.d.next = self.lost.val() & !self.s.last.val();
            if self.lost.val() {
                self.at.d.next = self.start.q.val();
                self.long.d.next = false;
            } else {
                self.at.d.next = self.next.val();
                self.long.d.next = !self.s.last.val() & (self.beats.val() >= self.longest.val());
                if self.s.last.val() {
                    self.start.d.next = self.next.val();
                }
            }
        }
        self.held.d.next = self.restart.val();
        if self.restart.val() {
            self.at.d.next = bits::<12>(0);
            self.start.d.next = bits::<12>(0);
            self.freed.d.next = bits::<12>(0);
            self.full.d.next = false;
            self.long.d.next = false;
            // What is left of a frame that the other side's reset has cut.
            self.dropping.d.next = self.inside.q.val();
            if self.push.val() {
                self.dropping.d.next = !self.s.last.val();
            }
        }
        if self.reset.val() {
            self.inside.d.next = false;
            self.dropping.d.next = false;
        }
    }
}
