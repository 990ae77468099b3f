//! Beats wait here until their frame's fate is known; then those of the inner frame move to the front of their beats.

use super::fate::Fate;
use crate::prim::keep_mask::{KeepLen, KeepMask, LenMask};
use crate::prim::lookup::Lookup;
use crate::prim::pack::{Cast, Gather};
use crate::prim::ram::RamAsync;
use crate::prim::rotate::ByteRotate;
use ferric_abi::wire;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// log2 of the beats and frames held: a window's beats, and the cycles from its last one to the fate: 16 + 7 at W=64.
const LG: usize = 5;
/// Bits of what changes in an inner frame: two tags, and an IPv4 header up to its checksum.
const PATCH: usize = 512;

/// How an outer header of one length is taken away.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Cut {
    /// Bytes that the inner frame moves up, modulo a beat.
    pub turn: Bits<6>,
    /// Beats in front of the one in which it begins.
    pub skip: Bits<5>,
    /// Bytes of it in that beat.
    pub lanes: Bits<8>,
}

/// A beat of a frame that goes on, or what is counted of one that does not.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Note {
    /// Nothing goes on.
    pub dropped: Bit,
    /// With the last beat: the MAC found the frame bad; it ends before the packet in it does.
    pub err: Bit,
    pub cut: Bit,
    pub tunnel: Bit,
    pub cause: Bits<4>,
    pub fixed: Bit,
    pub check: Bit,
    pub sum: Bits<18>,
    pub function: Bits<12>,
}

/// The cut for an outer header over IPv6 or IPv4, with a tag or without.
fn cut<const K: usize>(tunnel: bool, v6: bool, tagged: bool) -> u128 {
    let ip = if v6 { wire::Ipv6::BYTES } else { wire::Ipv4::BYTES };
    let tag = if tagged { wire::Vlan::BYTES } else { 0 };
    let bytes = if tunnel { wire::Eth::BYTES + tag + ip + wire::Udp::BYTES + wire::Vxlan::BYTES } else { 0 };
    let lanes = K - bytes % K;
    let turn = lanes % K;
    (turn | (bytes / K) << 6 | lanes << 11) as u128
}

/// Beats leave one per cycle, never stalled, and the last one of a frame a cycle after it came, when nothing of the next one leaves. `m` shows each beat once.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && K == 1 << LK)]
pub(super) struct Strip<const W: usize, const K: usize, const LK: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub b_data: Signal<In, Bits<W>>,
    pub b_keep: Signal<In, Bits<K>>,
    pub b_last: Signal<In, Bit>,
    pub b_err: Signal<In, Bit>,
    pub b_valid: Signal<In, Bit>,
    /// One per frame, in order.
    pub fate: Signal<In, Fate>,
    pub fate_valid: Signal<In, Bit>,
    /// A beat: as it came, and as it goes on with changed ECN bits; the lanes that are the frame's.
    pub valid: Signal<Out, Bit>,
    pub first: Signal<Out, Bit>,
    pub last: Signal<Out, Bit>,
    pub data: Signal<Out, Bits<W>>,
    pub patched: Signal<Out, Bits<W>>,
    pub keep: Signal<Out, Bits<K>>,
    pub note: Signal<Out, Note>,
    mem_data: RamAsync<Bits<W>, LG>,
    mem_keep: RamAsync<Bits<K>, LG>,
    mem_last: RamAsync<Bit, LG>,
    mem_err: RamAsync<Bit, LG>,
    mem_fate: RamAsync<Fate, LG>,
    wptr: DFF<Bits<LG>>,
    rptr: DFF<Bits<LG>>,
    fwptr: DFF<Bits<LG>>,
    frptr: DFF<Bits<LG>>,
    midway: DFF<Bit>,
    have: Signal<Local, Bit>,
    go: Signal<Local, Bit>,
    // Stage 1
    data1: DFF<Bits<W>>,
    keep1: DFF<Bits<K>>,
    last1: DFF<Bit>,
    err1: DFF<Bit>,
    first1: DFF<Bit>,
    valid1: DFF<Bit>,
    fate1: DFF<Fate>,
    beat1: DFF<Bits<5>>,
    before1: DFF<Bits<17>>,
    header: Gather<3>,
    #[init(Lookup::of(|n| cut::<K>(n & 1 == 1, n & 2 == 2, n & 4 == 4)))]
    by_header: Lookup<3, 19>,
    cut: Cast<Bits<19>, Cut>,
    turn: Signal<Local, Bits<6>>,
    rotate: ByteRotate<W, K, LK>,
    count: KeepLen<K, 8>,
    // Stage 2
    data2: DFF<Bits<W>>,
    keep2: DFF<Bits<K>>,
    last2: DFF<Bit>,
    err2: DFF<Bit>,
    first2: DFF<Bit>,
    valid2: DFF<Bit>,
    begins2: DFF<Bit>,
    past2: DFF<Bit>,
    lanes2: DFF<Bits<8>>,
    len2: DFF<Bits<17>>,
    fate2: DFF<Fate>,
    lower: LenMask<K, 8>,
    lower_bits: KeepMask<W, K>,
    merged: Signal<Local, Bits<W>>,
    rest: Signal<Local, Bits<16>>,
    full: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    emits: Signal<Local, Bit>,
    // The beat under construction
    carry: DFF<Bits<W>>,
    /// Bytes of the inner frame from the next beat on.
    rest3: DFF<Bits<16>>,
    /// That beat is the last one, and complete.
    held: DFF<Bit>,
    /// It leaves: the frame has ended.
    flush: DFF<Bit>,
    begun: DFF<Bit>,
    keep3: DFF<Bits<K>>,
    err3: DFF<Bit>,
    cut3: DFF<Bit>,
    fate3: DFF<Fate>,
    final_len: Signal<Local, Bits<8>>,
    final_mask: LenMask<K, 8>,
    whose: Signal<Local, Fate>,
    pattern: Signal<Local, Bits<PATCH>>,
    ecn: Signal<Local, Bits<PATCH>>,
    sum: Signal<Local, Bits<PATCH>>,
    distance: Signal<Local, Bits<7>>,
    rest_of_patch: DFF<Bits<PATCH>>,
    #[init(Constant::new((W as u64).to_bits()))]
    width: Constant<Bits<10>>,
    #[init(Constant::new((K as u64).to_bits()))]
    k16: Constant<Bits<16>>,
    #[init(Constant::new((K as u64).to_bits()))]
    k8: Constant<Bits<8>>,
    #[init(Constant::new((K as u64).to_bits()))]
    k17: Constant<Bits<17>>,
    #[init(Constant::new(Bits::mask()))]
    all: Constant<Bits<K>>,
    #[init(Constant::new(Bits::mask()))]
    most: Constant<Bits<5>>,
    // The beat
    valid4: DFF<Bit>,
    first4: DFF<Bit>,
    last4: DFF<Bit>,
    data4: DFF<Bits<W>>,
    patch4: DFF<Bits<W>>,
    keep4: DFF<Bits<K>>,
    note4: DFF<Note>,
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize> Logic for Strip<W, K, LK> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, wptr, rptr, fwptr, frptr, midway, data1, keep1, last1, err1, first1, valid1, fate1, beat1, before1);
        dff_setup!(self, clock, data2, keep2, last2, err2, first2, valid2, begins2, past2, lanes2, len2, fate2);
        dff_setup!(self, clock, carry, rest3, held, flush, begun, keep3, err3, cut3, fate3, rest_of_patch);
        dff_setup!(self, clock, valid4, first4, last4, data4, patch4, keep4, note4);
        clock!(self, clock, mem_data, mem_keep, mem_last, mem_err, mem_fate);
        // Queue: a frame's first beat goes when its fate is known, the others follow as they come.
        self.mem_data.write_addr.next = self.wptr.q.val();
        self.mem_keep.write_addr.next = self.wptr.q.val();
        self.mem_last.write_addr.next = self.wptr.q.val();
        self.mem_err.write_addr.next = self.wptr.q.val();
        self.mem_data.write_data.next = self.b_data.val();
        self.mem_keep.write_data.next = self.b_keep.val();
        self.mem_last.write_data.next = self.b_last.val();
        self.mem_err.write_data.next = self.b_err.val();
        self.mem_data.write_en.next = self.b_valid.val();
        self.mem_keep.write_en.next = self.b_valid.val();
        self.mem_last.write_en.next = self.b_valid.val();
        self.mem_err.write_en.next = self.b_valid.val();
        self.mem_data.read_addr.next = self.rptr.q.val();
        self.mem_keep.read_addr.next = self.rptr.q.val();
        self.mem_last.read_addr.next = self.rptr.q.val();
        self.mem_err.read_addr.next = self.rptr.q.val();
        self.mem_fate.write_addr.next = self.fwptr.q.val();
        self.mem_fate.write_data.next = self.fate.val();
        self.mem_fate.write_en.next = self.fate_valid.val();
        self.mem_fate.read_addr.next = self.frptr.q.val();
        if self.b_valid.val() {
            self.wptr.d.next = self.wptr.q.val() + 1;
        }
        if self.fate_valid.val() {
            self.fwptr.d.next = self.fwptr.q.val() + 1;
        }
        self.have.next = self.fwptr.q.val() != self.frptr.q.val();
        self.go.next = (self.wptr.q.val() != self.rptr.q.val()) & (self.midway.q.val() | self.have.val());
        // Stage 1: which beat it is
        self.data1.d.next = self.mem_data.read_data.val();
        self.keep1.d.next = self.mem_keep.read_data.val();
        self.last1.d.next = self.mem_last.read_data.val();
        self.err1.d.next = self.mem_err.read_data.val();
        self.valid1.d.next = self.go.val();
        self.first1.d.next = !self.midway.q.val();
        if self.go.val() {
            self.rptr.d.next = self.rptr.q.val() + 1;
            self.midway.d.next = !self.mem_last.read_data.val();
            if self.midway.q.val() {
                self.before1.d.next = self.before1.q.val() + self.k17.val();
                if self.beat1.q.val() != self.most.val() {
                    self.beat1.d.next = self.beat1.q.val() + 1;
                }
            } else {
                self.frptr.d.next = self.frptr.q.val() + 1;
                self.fate1.d.next = self.mem_fate.read_data.val();
                self.beat1.d.next = bits::<5>(0);
                self.before1.d.next = bits::<17>(0);
            }
        }
        self.header.x[0].next = self.fate1.q.val().tunnel;
        self.header.x[1].next = self.fate1.q.val().v6;
        self.header.x[2].next = self.fate1.q.val().tagged;
        self.by_header.x.next = self.header.y.val();
        self.cut.x.next = self.by_header.y.val();
        // Stage 2: turned
        self.turn.next = self.cut.y.val().turn;
        self.rotate.x.next = self.data1.q.val();
        self.rotate.n.next = self.turn.val().get_bits::<LK>(0);
        self.count.keep.next = self.keep1.q.val();
        self.data2.d.next = self.rotate.y.val();
        self.keep2.d.next = self.keep1.q.val();
        self.last2.d.next = self.last1.q.val();
        self.err2.d.next = self.err1.q.val();
        self.first2.d.next = self.first1.q.val();
        self.valid2.d.next = self.valid1.q.val();
        self.begins2.d.next = self.beat1.q.val() == self.cut.y.val().skip;
        self.past2.d.next = self.beat1.q.val() > self.cut.y.val().skip;
        self.lanes2.d.next = self.cut.y.val().lanes;
        self.len2.d.next = self.before1.q.val() + bit_cast::<17, 8>(self.count.len.val());
        self.fate2.d.next = self.fate1.q.val();
        // Stage 3: the end of one beat and the beginning of the next make one. The last one waits for the frame's end, whatever stands behind the packet.
        self.lower.len.next = self.lanes2.q.val();
        self.lower_bits.keep.next = self.lower.keep.val();
        self.merged.next = (self.carry.q.val() & self.lower_bits.mask.val()) | (self.data2.q.val() & !self.lower_bits.mask.val());
        self.rest.next = self.rest3.q.val();
        self.full.next = self.held.q.val();
        if self.first2.q.val() {
            self.rest.next = self.fate2.q.val().inner;
            self.full.next = false;
        }
        self.ends.next = self.fate2.q.val().tunnel & (self.rest.val() <= self.k16.val());
        self.emits.next = self.valid2.q.val() & self.past2.q.val() & !self.full.val() & !self.ends.val();
        self.flush.d.next = false;
        if self.valid2.q.val() {
            self.rest3.d.next = self.rest.val();
            self.held.d.next = self.full.val();
            if self.past2.q.val() & !self.full.val() {
                self.carry.d.next = self.data2.q.val();
                self.rest3.d.next = self.rest.val() - self.k16.val();
                if self.ends.val() {
                    self.carry.d.next = self.merged.val();
                    self.rest3.d.next = self.rest.val();
                    self.held.d.next = true;
                }
            }
            if self.begins2.q.val() {
                self.carry.d.next = self.data2.q.val();
            }
            self.flush.d.next = self.last2.q.val();
            self.keep3.d.next = self.keep2.q.val();
            self.err3.d.next = self.err2.q.val();
            self.cut3.d.next = self.fate2.q.val().tunnel & (self.len2.q.val() < self.fate2.q.val().stop);
            self.fate3.d.next = self.fate2.q.val();
        }
        // Stage 4
        self.final_len.next = self.k8.val();
        if self.rest3.q.val() < self.k16.val() {
            self.final_len.next = self.rest3.q.val().get_bits::<8>(0);
        }
        self.final_mask.len.next = self.final_len.val();
        self.whose.next = self.fate2.q.val();
        self.data4.d.next = self.merged.val();
        self.keep4.d.next = self.all.val();
        if self.flush.q.val() {
            self.whose.next = self.fate3.q.val();
            self.data4.d.next = self.carry.q.val();
            self.keep4.d.next = self.keep3.q.val();
            if self.fate3.q.val().tunnel {
                self.keep4.d.next = self.final_mask.keep.val();
            }
        }
        self.valid4.d.next = self.emits.val() | self.flush.q.val();
        self.first4.d.next = !self.begun.q.val();
        self.last4.d.next = self.flush.q.val();
        if self.emits.val() {
            self.begun.d.next = true;
        }
        if self.flush.q.val() {
            self.begun.d.next = false;
        }
        // What changes in the inner IP header, as it stands without tags: bytes 15, 24 and 25.
        self.ecn.next = bit_cast::<PATCH, 8>(self.whose.val().turn) << 120;
        self.sum.next = bit_cast::<PATCH, 16>(self.whose.val().turn_sum) << 192;
        self.distance.next = bit_cast::<7, 2>(self.whose.val().tags) << 5;
        self.pattern.next = self.rest_of_patch.q.val();
        if !self.begun.q.val() {
            self.pattern.next = (self.ecn.val() | self.sum.val()) << self.distance.val();
        }
        self.patch4.d.next = self.pattern.val().get_bits::<W>(0);
        if self.emits.val() {
            self.rest_of_patch.d.next = self.pattern.val() >> self.width.val();
        }
        self.note4.d.next.dropped = self.whose.val().dropped;
        self.note4.d.next.err = self.err3.q.val();
        self.note4.d.next.cut = self.cut3.q.val();
        self.note4.d.next.tunnel = self.whose.val().tunnel;
        self.note4.d.next.cause = self.whose.val().cause;
        self.note4.d.next.fixed = self.whose.val().fixed;
        self.note4.d.next.check = self.whose.val().check;
        self.note4.d.next.sum = self.whose.val().sum;
        self.note4.d.next.function = self.whose.val().function;
        self.valid.next = self.valid4.q.val();
        self.first.next = self.first4.q.val();
        self.last.next = self.last4.q.val();
        self.data.next = self.data4.q.val();
        self.patched.next = self.data4.q.val() ^ self.patch4.q.val();
        self.keep.next = self.keep4.q.val();
        self.note.next = self.note4.q.val();
        if self.reset.val() {
            self.wptr.d.next = bits::<LG>(0);
            self.rptr.d.next = bits::<LG>(0);
            self.fwptr.d.next = bits::<LG>(0);
            self.frptr.d.next = bits::<LG>(0);
            self.midway.d.next = false;
            self.valid1.d.next = false;
            self.valid2.d.next = false;
            self.flush.d.next = false;
            self.begun.d.next = false;
            self.valid4.d.next = false;
        }
    }
}
