//! The beats of frames whose fate is not known yet, and the fates of frames that have not gone yet.

use super::Fate;
use crate::prim::keep_mask::KeepLen;
use crate::prim::ram::RamAsync;
use crate::switch::edit::Patch;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// log2 of the places for beats, and for fates. A beat goes in the first cycle in which its frame's fate is there and those in front of it have gone, and at most one comes in a cycle. So
/// those whose fate is not there yet are the last 15 cycles' and what else there is of one window, 15 beats at most; and those whose fate is there are what came at once with a window, 16 at
/// most. That is 46 of 64. No frame is longer than that: what comes behind the window goes on at once.
const PLACES: usize = 6;

/// The end of a beat.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct End {
    last: Bit,
    err: Bit,
    /// Bytes of the frame up to here.
    len: Bits<17>,
}

/// Beats and fates come at any time and in the same order. Nobody waits.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Hold<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; what is held is forgotten.
    pub reset: Signal<In, Bit>,
    pub data: Signal<In, Bits<W>>,
    pub keep: Signal<In, Bits<K>>,
    pub last: Signal<In, Bit>,
    pub err: Signal<In, Bit>,
    pub valid: Signal<In, Bit>,
    /// Of each frame one.
    pub fate: Signal<In, Fate>,
    pub patch: Signal<In, Patch>,
    pub fate_valid: Signal<In, Bit>,
    /// The next beat, and the fate of its frame and its new fields; combinational, and gone in the next cycle.
    pub m_valid: Signal<Out, Bit>,
    pub m_data: Signal<Out, Bits<W>>,
    pub m_keep: Signal<Out, Bits<K>>,
    pub m_last: Signal<Out, Bit>,
    pub m_err: Signal<Out, Bit>,
    /// Bytes of the frame up to this beat's last one.
    pub m_len: Signal<Out, Bits<17>>,
    pub m_fate: Signal<Out, Fate>,
    pub m_patch: Signal<Out, Patch>,
    beats: RamAsync<Bits<W>, PLACES>,
    keeps: RamAsync<Bits<K>, PLACES>,
    ends: RamAsync<End, PLACES>,
    fates: RamAsync<Fate, PLACES>,
    patches: RamAsync<Patch, PLACES>,
    count: KeepLen<K, 8>,
    before: DFF<Bits<17>>,
    #[init(Constant::new((K as u64).to_bits()))]
    beat: Constant<Bits<17>>,
    /// The last byte of a beat.
    #[init(Constant::new(1u64.to_bits::<K>() << (K as u64 - 1)))]
    top: Constant<Bits<K>>,
    put: DFF<Bits<PLACES>>,
    put_fate: DFF<Bits<PLACES>>,
    take: DFF<Bits<PLACES>>,
    take_fate: DFF<Bits<PLACES>>,
    onward: Signal<Local, Bits<17>>,
    goes: Signal<Local, Bit>,
    is_last: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Hold<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, before, put, put_fate, take, take_fate);
        clock!(self, clock, beats, keeps, ends, fates, patches);
        self.count.keep.next = self.keep.val();
        self.beats.write_data.next = self.data.val();
        self.keeps.write_data.next = self.keep.val();
        self.ends.write_data.next.last = self.last.val();
        self.ends.write_data.next.err = self.err.val();
        // All beats but the last are full, so what was before ends in zeros: no sum behind the count.
        self.onward.next = self.before.q.val() + self.beat.val();
        self.ends.write_data.next.len = self.before.q.val() | bit_cast::<17, 8>(self.count.len.val());
        if (self.keep.val() & self.top.val()).any() {
            self.ends.write_data.next.len = self.onward.val();
        }
        self.beats.write_addr.next = self.put.q.val();
        self.keeps.write_addr.next = self.put.q.val();
        self.ends.write_addr.next = self.put.q.val();
        self.beats.write_en.next = self.valid.val();
        self.keeps.write_en.next = self.valid.val();
        self.ends.write_en.next = self.valid.val();
        if self.valid.val() {
            self.put.d.next = self.put.q.val() + 1;
            self.before.d.next = self.onward.val();
            if self.last.val() {
                self.before.d.next = bits::<17>(0);
            }
        }
        self.fates.write_data.next = self.fate.val();
        self.fates.write_addr.next = self.put_fate.q.val();
        self.fates.write_en.next = self.fate_valid.val();
        self.patches.write_data.next = self.patch.val();
        self.patches.write_addr.next = self.put_fate.q.val();
        self.patches.write_en.next = self.fate_valid.val();
        if self.fate_valid.val() {
            self.put_fate.d.next = self.put_fate.q.val() + 1;
        }
        self.beats.read_addr.next = self.take.q.val();
        self.keeps.read_addr.next = self.take.q.val();
        self.ends.read_addr.next = self.take.q.val();
        self.fates.read_addr.next = self.take_fate.q.val();
        self.patches.read_addr.next = self.take_fate.q.val();
        self.is_last.next = self.ends.read_data.val().last;
        self.goes.next = (self.put.q.val() != self.take.q.val()) & (self.put_fate.q.val() != self.take_fate.q.val());
        if self.goes.val() {
            self.take.d.next = self.take.q.val() + 1;
            if self.is_last.val() {
                self.take_fate.d.next = self.take_fate.q.val() + 1;
            }
        }
        self.m_valid.next = self.goes.val();
        self.m_data.next = self.beats.read_data.val();
        self.m_keep.next = self.keeps.read_data.val();
        self.m_last.next = self.is_last.val();
        self.m_err.next = self.ends.read_data.val().err;
        self.m_len.next = self.ends.read_data.val().len;
        self.m_fate.next = self.fates.read_data.val();
        self.m_patch.next = self.patches.read_data.val();
        if self.reset.val() {
            self.put.d.next = bits::<PLACES>(0);
            self.put_fate.d.next = bits::<PLACES>(0);
            self.take.d.next = bits::<PLACES>(0);
            self.take_fate.d.next = bits::<PLACES>(0);
            self.before.d.next = bits::<17>(0);
        }
    }
}
