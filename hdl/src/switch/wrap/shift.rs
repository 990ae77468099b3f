//! Header and frame behind each other.

use super::head::HEADER;
use crate::bus::AxisSrc;
use crate::prim::keep_mask::{KeepMask, LenMask};
use crate::prim::rotate::ByteRotate;
use crate::stream::AxisSlice;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// No frame.
    Idle,
    /// Beats of the header alone.
    Header,
    /// Beats that end with bytes of the frame.
    Body,
    /// The last beat's bytes that had no room in the beat before.
    Tail,
}

/// A beat a cycle, and no cycle between frames whose headers are there.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && K == 1 << LK && W <= HEADER)]
pub(super) struct Shift<const W: usize, const K: usize, const LK: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub valid: Signal<In, Bit>,
    pub header: Signal<In, Bits<HEADER>>,
    pub header_len: Signal<In, Bits<8>>,
    /// The header is taken.
    pub take: Signal<Out, Bit>,
    pub beat_valid: Signal<In, Bit>,
    pub beat: Signal<In, Bits<W>>,
    pub beat_len: Signal<In, Bits<8>>,
    pub beat_last: Signal<In, Bit>,
    /// The beat is taken.
    pub beat_take: Signal<Out, Bit>,
    pub m: AxisSrc<W, K>,
    /// For one cycle: a frame with an outer header has left.
    pub wrapped: Signal<Out, Bit>,
    state: DFF<State>,
    /// The rest of the header; then, in its low bits, what of the frame had no room yet.
    image: DFF<Bits<HEADER>>,
    /// Whole beats of header that are to come.
    left: DFF<Bits<8>>,
    /// Bytes that the frame moves down, modulo a beat.
    turn: DFF<Bits<8>>,
    tail: DFF<Bits<8>>,
    wraps: DFF<Bit>,
    counted: DFF<Bit>,
    rotate: ByteRotate<W, K, LK>,
    lower: LenMask<K, 8>,
    lower_bits: KeepMask<W, K>,
    lanes: LenMask<K, 8>,
    slice: AxisSlice<W, K>,
    early: Signal<Local, Bits<W>>,
    merged: Signal<Local, Bits<W>>,
    rest: Signal<Local, Bits<HEADER>>,
    len: Signal<Local, Bits<8>>,
    go: Signal<Local, Bit>,
    finish: Signal<Local, Bit>,
    starts: Signal<Local, Bit>,
    beats: Signal<Local, Bits<8>>,
    amount: Signal<Local, Bits<8>>,
    #[init(Constant::new((K as u64).to_bits()))]
    k8: Constant<Bits<8>>,
    #[init(Constant::new((K as u64 - 1).to_bits()))]
    within: Constant<Bits<8>>,
    #[init(Constant::new((W as u64).to_bits()))]
    width: Constant<Bits<10>>,
    #[init(Constant::new((LK as u64).to_bits()))]
    log: Constant<Bits<3>>,
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize> Logic for Shift<W, K, LK> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, image, left, turn, tail, wraps, counted);
        clock!(self, clock, slice);
        self.slice.reset.next = self.reset.val();
        AxisSrc::<W, K>::link(&mut self.m, &mut self.slice.m);
        self.go.next = self.slice.s.ready.val();
        self.amount.next = self.turn.q.val();
        self.rotate.x.next = self.beat.val();
        self.rotate.n.next = self.amount.val().get_bits::<LK>(0);
        self.lower.len.next = self.turn.q.val();
        self.lower_bits.keep.next = self.lower.keep.val();
        self.early.next = self.image.q.val().get_bits::<W>(0);
        self.merged.next = (self.early.val() & self.lower_bits.mask.val()) | (self.rotate.y.val() & !self.lower_bits.mask.val());
        self.rest.next = self.image.q.val() >> self.width.val();
        self.len.next = self.turn.q.val() + self.beat_len.val();
        self.slice.s.data.next = self.early.val();
        self.slice.s.last.next = false;
        self.slice.s.valid.next = false;
        self.lanes.len.next = self.k8.val();
        self.beat_take.next = false;
        self.finish.next = false;
        match self.state.q.val() {
            State::Idle => {}
            State::Header => {
                self.slice.s.valid.next = true;
                if self.go.val() {
                    self.image.d.next = self.rest.val();
                    self.left.d.next = self.left.q.val() - 1;
                    if self.left.q.val() == ONE {
                        self.state.d.next = State::Body;
                    }
                }
            }
            State::Body => {
                self.slice.s.valid.next = self.beat_valid.val();
                self.slice.s.data.next = self.merged.val();
                self.beat_take.next = self.beat_valid.val() & self.go.val();
                if self.beat_last.val() & (self.len.val() <= self.k8.val()) {
                    self.slice.s.last.next = true;
                    self.lanes.len.next = self.len.val();
                    self.finish.next = self.beat_valid.val() & self.go.val();
                } else if self.beat_valid.val() & self.go.val() {
                    self.image.d.next = bit_cast::<HEADER, W>(self.rotate.y.val());
                    if self.beat_last.val() {
                        self.tail.d.next = self.len.val() - self.k8.val();
                        self.state.d.next = State::Tail;
                    }
                }
            }
            State::Tail => {
                self.slice.s.valid.next = true;
                self.slice.s.last.next = true;
                self.lanes.len.next = self.tail.q.val();
                self.finish.next = self.go.val();
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        self.slice.s.keep.next = self.lanes.keep.val();
        self.counted.d.next = self.finish.val() & self.wraps.q.val();
        self.wrapped.next = self.counted.q.val();
        // The next frame, in the cycle in which one ends.
        self.starts.next = self.valid.val() & (self.finish.val() | (self.state.q.val() == State::Idle));
        self.take.next = self.starts.val();
        self.beats.next = self.header_len.val() >> self.log.val();
        if self.finish.val() {
            self.state.d.next = State::Idle;
        }
        if self.starts.val() {
            self.image.d.next = self.header.val();
            self.left.d.next = self.beats.val();
            self.turn.d.next = self.header_len.val() & self.within.val();
            self.wraps.d.next = self.header_len.val().any();
            self.state.d.next = State::Header;
            if !self.beats.val().any() {
                self.state.d.next = State::Body;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.counted.d.next = false;
        }
    }
}

/// The last whole beat of a header.
const ONE: u64 = 1;
