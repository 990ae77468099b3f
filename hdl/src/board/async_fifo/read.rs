//! The reading side: notes, then their beats, to the output.

use super::FrameNote;
use crate::bus::AxisSrc;
use crate::prim::cross::GrayCount;
use crate::prim::keep_mask::LenMask;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Reader of [`super::FrameCross`].
#[derive(LogicBlock, BlockDefault)]
pub struct FrameRead<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// The writing side is in reset.
    pub remote: Signal<In, Bit>,
    pub m: AxisSrc<W, K>,
    pub m_err: Signal<Out, Bit>,
    pub beat_addr: Signal<Out, Bits<12>>,
    pub beat_en: Signal<Out, Bit>,
    pub beat: Signal<In, Bits<W>>,
    pub note_addr: Signal<Out, Bits<12>>,
    pub note_en: Signal<Out, Bit>,
    pub note: Signal<In, FrameNote>,
    /// Whole frames written, Gray code.
    pub frames: Signal<In, Bits<12>>,
    /// Beats read, Gray code.
    pub taken: Signal<Out, Bits<12>>,
    /// Notes read.
    known: GrayCount<12>,
    count: GrayCount<12>,
    /// Stage N: the memory's own register holds a note.
    n_valid: DFF<Bit>,
    /// The frame being read: beats left to fetch.
    left: DFF<Bits<12>>,
    some: DFF<Bit>,
    one: DFF<Bit>,
    frame: DFF<FrameNote>,
    /// Stage A: the memory's own register holds a beat.
    a_valid: DFF<Bit>,
    a_last: DFF<Bit>,
    a_err: DFF<Bit>,
    a_tail: DFF<Bits<8>>,
    /// Stage B: the output.
    b_valid: DFF<Bit>,
    b_data: DFF<Bits<W>>,
    b_keep: DFF<Bits<K>>,
    b_last: DFF<Bit>,
    b_err: DFF<Bit>,
    /// A first beat has left, its last one has not.
    inside: DFF<Bit>,
    /// The other side's reset has taken the rest of the frame whose beat is still shown.
    cut: DFF<Bit>,
    mask: LenMask<K, 8>,
    #[init(Constant::new((K as u64).to_bits()))]
    full: Constant<Bits<8>>,
    load: Signal<Local, Bit>,
    look: Signal<Local, Bit>,
    fetch: Signal<Local, Bit>,
    pop: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
    noted: Signal<Local, FrameNote>,
    now_inside: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for FrameRead<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, n_valid, left, some, one, frame, a_valid, a_last, a_err, a_tail, b_valid, b_data, b_keep, b_last, b_err, inside, cut);
        clock!(self, clock, known, count);
        self.m.data.next = self.b_data.q.val();
        self.m.keep.next = self.b_keep.q.val();
        self.m.last.next = self.b_last.q.val();
        self.m.valid.next = self.b_valid.q.val();
        self.m_err.next = self.b_err.q.val();
        self.pop.next = self.b_valid.q.val() & self.m.ready.val();
        self.moves.next = self.a_valid.q.val() & (self.pop.val() | !self.b_valid.q.val()) & !self.cut.q.val();
        self.fetch.next = self.some.q.val() & (self.moves.val() | !self.a_valid.q.val());
        // The next note follows in the cycle of the last fetch: no gap between frames of one beat.
        self.load.next = self.n_valid.q.val() & (!self.some.q.val() | (self.fetch.val() & self.one.q.val()));
        self.look.next = (self.frames.val() != self.known.gray.val()) & (self.load.val() | !self.n_valid.q.val());
        self.note_addr.next = self.known.binary.val();
        self.note_en.next = self.look.val();
        self.known.step.next = self.look.val();
        self.known.reset.next = self.reset.val() | self.remote.val();
        self.beat_addr.next = self.count.binary.val();
        self.beat_en.next = self.fetch.val();
        self.count.step.next = self.fetch.val();
        self.count.reset.next = self.reset.val() | self.remote.val();
        self.taken.next = self.count.gray.val();
        self.noted.next = self.note.val();
        if self.look.val() {
            self.n_valid.d.next = true;
        } else if self.load.val() {
            self.n_valid.d.next = false;
        }
        if self.fetch.val() {
            self.left.d.next = self.left.q.val() - 1;
            self.one.d.next = self.left.q.val() == 2;
            self.some.d.next = !self.one.q.val();
        }
        if self.load.val() {
            self.left.d.next = self.noted.val().beats;
            self.one.d.next = self.noted.val().beats == 1;
            self.some.d.next = true;
            self.frame.d.next = self.noted.val();
        }
        if self.fetch.val() {
            self.a_valid.d.next = true;
            self.a_last.d.next = self.one.q.val();
            self.a_err.d.next = self.one.q.val() & self.frame.q.val().err;
            self.a_tail.d.next = self.full.val();
            if self.one.q.val() {
                self.a_tail.d.next = self.frame.q.val().tail;
            }
        } else if self.moves.val() {
            self.a_valid.d.next = false;
        }
        self.mask.len.next = self.a_tail.q.val();
        if self.moves.val() {
            self.b_valid.d.next = true;
            self.b_data.d.next = self.beat.val();
            self.b_last.d.next = self.a_last.q.val();
            self.b_err.d.next = self.a_err.q.val();
            self.b_keep.d.next = self.mask.keep.val();
        } else if self.pop.val() {
            self.b_valid.d.next = false;
        }
        self.now_inside.next = self.inside.q.val();
        if self.pop.val() {
            self.now_inside.next = !self.b_last.q.val();
        }
        self.inside.d.next = self.now_inside.val();
        if self.remote.val() | self.reset.val() {
            self.n_valid.d.next = false;
            self.some.d.next = false;
            self.a_valid.d.next = false;
            self.cut.d.next = self.b_valid.q.val() & !self.b_last.q.val();
        }
        // A beat that is shown stays. Behind it, or at once, the frame is ended, `keep` as on the beat before.
        if (self.remote.val() | self.cut.q.val()) & (self.pop.val() | !self.b_valid.q.val()) {
            self.b_valid.d.next = self.now_inside.val();
            self.b_last.d.next = true;
            self.b_err.d.next = true;
            self.cut.d.next = false;
        }
        if self.reset.val() {
            self.b_valid.d.next = false;
            self.inside.d.next = false;
            self.cut.d.next = false;
        }
    }
}
