//! The outer UDP checksum over what has been stripped, and the end of each frame.

use super::causes;
use super::strip::Note;
use crate::msg::Network;
use crate::prim::keep_mask::KeepMask;
use crate::prim::sized::Delay;
use crate::prim::word_sum::{WordSum, WORD_SUM_LATENCY};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Sum of a packet whose checksum is right.
const RIGHT: u64 = 0xffff;
const ONE: u64 = 1;
/// Cycles from a beat to its place in the running sum, and from there to the verdict.
const TO_SUM: usize = WORD_SUM_LATENCY + 1;
const TO_END: usize = TO_SUM + 1;

/// What is known of a beat when it comes.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Tag {
    pub valid: Bit,
    pub first: Bit,
    pub last: Bit,
    pub note: Note,
}

/// Beats leave five cycles after they came, with the verdict beside the last one.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Check<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub tag: Signal<In, Tag>,
    /// What the sum covers, and what goes on.
    pub data: Signal<In, Bits<W>>,
    pub patched: Signal<In, Bits<W>>,
    pub keep: Signal<In, Bits<K>>,
    pub m_data: Signal<Out, Bits<W>>,
    pub m_keep: Signal<Out, Bits<K>>,
    pub m_last: Signal<Out, Bit>,
    /// With `m_last`: the frame is not to be used.
    pub m_err: Signal<Out, Bit>,
    pub m_valid: Signal<Out, Bit>,
    /// With every beat: where its frame comes from.
    pub network: Signal<Out, Network>,
    /// See [`super::STATS`].
    pub stat: Signal<Out, Bits<10>>,
    mask: KeepMask<W, K>,
    words: WordSum<W>,
    #[init(Delay::new(TO_SUM))]
    to_sum: Delay<Tag>,
    #[init(Delay::new(TO_END))]
    data_late: Delay<Bits<W>>,
    #[init(Delay::new(TO_END))]
    keep_late: Delay<Bits<K>>,
    /// Cycles since the reset: what was under way in it is forgotten.
    quiet: DFF<Bits<3>>,
    once: DFF<Bits<18>>,
    acc: DFF<Bits<18>>,
    early: Signal<Local, Note>,
    note: Signal<Local, Note>,
    start: Signal<Local, Bits<18>>,
    total: Signal<Local, Bits<18>>,
    low: Signal<Local, Bits<18>>,
    high: Signal<Local, Bits<18>>,
    carry: Signal<Local, Bits<18>>,
    folded: Signal<Local, Bits<18>>,
    tag4: DFF<Tag>,
    wrong: Signal<Local, Bit>,
    cause: Signal<Local, Bits<4>>,
    counts: Signal<Local, Bit>,
    bad: Signal<Local, Bit>,
    data5: DFF<Bits<W>>,
    keep5: DFF<Bits<K>>,
    last5: DFF<Bit>,
    err5: DFF<Bit>,
    valid5: DFF<Bit>,
    stat5: DFF<Bits<10>>,
    network5: DFF<Network>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Check<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, quiet, once, acc, tag4, data5, keep5, last5, err5, valid5, stat5, network5);
        clock!(self, clock, words, to_sum, data_late, keep_late);
        self.mask.keep.next = self.keep.val();
        self.words.x.next = self.data.val() & self.mask.mask.val();
        self.to_sum.x.next = self.tag.val();
        self.data_late.x.next = self.patched.val();
        self.keep_late.x.next = self.keep.val();
        // The beat's words, folded once, then added; carries come round.
        self.once.d.next = bit_cast::<18, 16>(self.words.y.val().get_bits::<16>(0)) + bit_cast::<18, 6>(self.words.y.val().get_bits::<6>(16));
        self.early.next = self.to_sum.y.val().note;
        self.start.next = self.acc.q.val();
        if self.to_sum.y.val().first {
            self.start.next = self.early.val().sum;
        }
        self.low.next = bit_cast::<18, 16>(self.start.val().get_bits::<16>(0)) + bit_cast::<18, 16>(self.once.q.val().get_bits::<16>(0));
        self.high.next = bit_cast::<18, 2>(self.start.val().get_bits::<2>(16)) + bit_cast::<18, 2>(self.once.q.val().get_bits::<2>(16));
        self.total.next = self.low.val() + self.high.val();
        if self.to_sum.y.val().valid {
            self.acc.d.next = self.total.val();
        }
        self.tag4.d.next = self.to_sum.y.val();
        // The end
        self.note.next = self.tag4.q.val().note;
        self.carry.next = bit_cast::<18, 2>(self.acc.q.val().get_bits::<2>(16));
        self.folded.next = bit_cast::<18, 16>(self.acc.q.val().get_bits::<16>(0)) + self.carry.val();
        self.wrong.next = self.note.val().check & (self.folded.val() != RIGHT);
        self.cause.next = self.note.val().cause;
        self.counts.next = self.note.val().tunnel | self.note.val().dropped;
        self.bad.next = self.note.val().err;
        if self.note.val().tunnel {
            if self.note.val().cut {
                self.cause.next = bits::<4>(causes::MALFORMED);
                self.bad.next = true;
            } else if self.wrong.val() & !self.note.val().fixed {
                self.cause.next = bits::<4>(causes::CSUM);
                self.bad.next = true;
            }
            // What the MAC has found bad is the card's to count, unless nothing of it gets there.
            if self.note.val().err & !self.note.val().dropped {
                self.counts.next = false;
            }
        }
        self.data5.d.next = self.data_late.y.val();
        self.keep5.d.next = self.keep_late.y.val();
        self.last5.d.next = self.tag4.q.val().last;
        self.err5.d.next = self.tag4.q.val().last & self.bad.val();
        self.valid5.d.next = self.tag4.q.val().valid & !self.note.val().dropped & !self.quiet.q.val().any();
        self.stat5.d.next = bits::<10>(0);
        if self.tag4.q.val().valid & self.tag4.q.val().last & self.counts.val() & !self.quiet.q.val().any() {
            self.stat5.d.next = bits::<10>(ONE) << self.cause.val();
        }
        self.network5.d.next.tunnel = self.note.val().tunnel;
        self.network5.d.next.function = self.note.val().function;
        self.network.next = self.network5.q.val();
        self.m_data.next = self.data5.q.val();
        self.m_keep.next = self.keep5.q.val();
        self.m_last.next = self.last5.q.val();
        self.m_err.next = self.err5.q.val();
        self.m_valid.next = self.valid5.q.val();
        self.stat.next = self.stat5.q.val();
        if self.quiet.q.val().any() {
            self.quiet.d.next = self.quiet.q.val() - 1;
        }
        if self.reset.val() {
            self.quiet.d.next = bits::<3>(TO_END as u64);
            self.valid5.d.next = false;
            self.stat5.d.next = bits::<10>(0);
        }
    }
}
