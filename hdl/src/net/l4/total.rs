//! Ones' complement sums of bytes of frames, a beat in each cycle. See README.md.

use crate::prim::keep_mask::KeepMask;
use crate::prim::sized::Delay;
use crate::prim::word_sum::{WordTree, WORD_TREE_LATENCY};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Cycles from a beat to its words, folded once.
const TO_SUM: usize = 1 + WORD_TREE_LATENCY + 1;
/// Cycles from a frame's last beat to its sum: its words, the running sum, twice its carries.
pub const LATENCY: usize = TO_SUM + 3;

/// What a beat does to the running sum. `first`: it begins anew, from `seed`.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Start {
    valid: Bit,
    first: Bit,
    seed: Bits<18>,
}

/// It never stalls, and has no reset: what comes out belongs to what went in [`LATENCY`] cycles before.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K, "K must be W / 8")]
pub struct Total<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    pub data: Signal<In, Bits<W>>,
    /// Bytes of the beat that count.
    pub counts: Signal<In, Bits<K>>,
    pub valid: Signal<In, Bit>,
    /// The frame's first beat.
    pub first: Signal<In, Bit>,
    /// With it: what is added to its bytes. Carries above bit 15 need not have been added in.
    pub seed: Signal<In, Bits<18>>,
    /// Sum of the bytes that counted from the first beat to that of [`LATENCY`] cycles before, two to a word, the one in the lower lane the lower one; carries are added in. 0 only if all are.
    pub sum: Signal<Out, Bits<16>>,
    mask: KeepMask<W, K>,
    words: WordTree<W>,
    #[init(Delay::new(TO_SUM))]
    starts: Delay<Start>,
    masked: DFF<Bits<W>>,
    once: DFF<Bits<18>>,
    acc: DFF<Bits<18>>,
    folded: DFF<Bits<17>>,
    result: DFF<Bits<16>>,
    begun: Signal<Local, Bits<18>>,
    start: Signal<Local, Bits<18>>,
    low: Signal<Local, Bits<18>>,
    high: Signal<Local, Bits<18>>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Total<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, masked, once, acc, folded, result);
        clock!(self, clock, words, starts);
        self.mask.keep.next = self.counts.val();
        self.masked.d.next = self.data.val() & self.mask.mask.val();
        self.words.x.next = self.masked.q.val();
        self.starts.x.next.valid = self.valid.val();
        self.starts.x.next.first = self.first.val();
        self.starts.x.next.seed = self.seed.val();
        // The beat's words, folded once, then added; what carries goes round.
        self.once.d.next = bit_cast::<18, 16>(self.words.y.val().get_bits::<16>(0)) + bit_cast::<18, 6>(self.words.y.val().get_bits::<6>(16));
        self.begun.next = self.starts.y.val().seed;
        self.start.next = self.acc.q.val();
        if self.starts.y.val().first {
            self.start.next = self.begun.val();
        }
        self.low.next = bit_cast::<18, 16>(self.start.val().get_bits::<16>(0)) + bit_cast::<18, 16>(self.once.q.val().get_bits::<16>(0));
        self.high.next = bit_cast::<18, 2>(self.start.val().get_bits::<2>(16)) + bit_cast::<18, 2>(self.once.q.val().get_bits::<2>(16));
        if self.starts.y.val().valid {
            self.acc.d.next = self.low.val() + self.high.val();
        }
        self.folded.d.next = bit_cast::<17, 16>(self.acc.q.val().get_bits::<16>(0)) + bit_cast::<17, 2>(self.acc.q.val().get_bits::<2>(16));
        self.result.d.next = self.folded.q.val().get_bits::<16>(0) + bit_cast::<16, 1>(self.folded.q.val().get_bits::<1>(16));
        self.sum.next = self.result.q.val();
    }
}
