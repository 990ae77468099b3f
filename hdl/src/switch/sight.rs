//! The first 128 bytes of each frame side by side, and how long the frame is if it ends with them.

use crate::net::rx::window::{Window, WINDOW_BITS};
use crate::prim::keep_mask::KeepLen;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Any frames, a beat a cycle; always ready.
#[derive(LogicBlock, BlockDefault)]
pub struct Sight<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub data: Signal<In, Bits<W>>,
    pub keep: Signal<In, Bits<K>>,
    pub last: Signal<In, Bit>,
    pub err: Signal<In, Bit>,
    pub valid: Signal<In, Bit>,
    // The beat, one cycle later
    pub b_data: Signal<Out, Bits<W>>,
    pub b_keep: Signal<Out, Bits<K>>,
    pub b_last: Signal<Out, Bit>,
    pub b_err: Signal<Out, Bit>,
    pub b_valid: Signal<Out, Bit>,
    /// Once a frame, in the cycle after `b` showed the beat that completes it; bytes beyond the end of a short frame are zero.
    pub window_valid: Signal<Out, Bit>,
    pub window: Signal<Out, Bits<WINDOW_BITS>>,
    /// With it: the frame ends with the window, and how many bytes it has then.
    pub ended: Signal<Out, Bit>,
    pub len: Signal<Out, Bits<8>>,
    sight: Window<W, K>,
    count: KeepLen<K, 8>,
    /// Bytes of the frame in front of the beat that the window shows, as far as the window reaches.
    before: DFF<Bits<8>>,
    len0: DFF<Bits<8>>,
    ended0: DFF<Bit>,
    #[init(Constant::new((K as u64).to_bits()))]
    beat: Constant<Bits<8>>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Sight<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, before, len0, ended0);
        clock!(self, clock, sight);
        self.sight.reset.next = self.reset.val();
        self.sight.data.next = self.data.val();
        self.sight.keep.next = self.keep.val();
        self.sight.last.next = self.last.val();
        self.sight.err.next = self.err.val();
        self.sight.valid.next = self.valid.val();
        self.b_data.next = self.sight.b_data.val();
        self.b_keep.next = self.sight.b_keep.val();
        self.b_last.next = self.sight.b_last.val();
        self.b_err.next = self.sight.b_err.val();
        self.b_valid.next = self.sight.b_valid.val();
        self.window_valid.next = self.sight.window_valid.val();
        self.window.next = self.sight.window.val();
        self.count.keep.next = self.sight.b_keep.val();
        self.len0.d.next = self.before.q.val() + self.count.len.val();
        self.ended0.d.next = self.sight.b_last.val();
        if self.sight.b_valid.val() {
            self.before.d.next = self.before.q.val() + self.beat.val();
            if self.sight.b_last.val() {
                self.before.d.next = bits::<8>(0);
            }
        }
        self.ended.next = self.ended0.q.val();
        self.len.next = self.len0.q.val();
        if self.reset.val() {
            self.before.d.next = bits::<8>(0);
        }
    }
}
