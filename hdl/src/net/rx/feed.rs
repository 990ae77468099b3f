//! Beats wait here until their frame's headers are known, then go to the cell buffer and to the ICRC at once.

use crate::prim::keep_mask::{KeepLen, LenMask};
use crate::prim::ram::RamAsync;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// What the ICRC must know of a frame. `stop`: first byte behind the IP packet, by the IP header's own length.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Flags {
    pub vlan: Bit,
    pub ipv6: Bit,
    pub stop: Bits<17>,
}

/// A frame's end. `short`: it ends before `stop`. `runt`: no room for an Ethernet header. `big`: too long.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Ending {
    pub valid: Bit,
    pub mac_error: Bit,
    pub big: Bit,
    pub short: Bit,
    pub runt: Bit,
    pub len: Bits<15>,
}

/// log2 of the beats and frames held. Backlog is at most the window's beats plus the cycles from `b` to `flags` (see
/// README.md): 16 + 4 at W=64.
const LG: usize = 5;

/// Beats leave one per cycle, never stalled; the ICRC's `last` is at `stop`, not at the frame's end.
#[derive(LogicBlock, BlockDefault)]
pub struct Feed<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub b_data: Signal<In, Bits<W>>,
    pub b_keep: Signal<In, Bits<K>>,
    pub b_last: Signal<In, Bit>,
    pub b_err: Signal<In, Bit>,
    pub b_valid: Signal<In, Bit>,
    /// One per frame, in order.
    pub flags: Signal<In, Flags>,
    pub flags_valid: Signal<In, Bit>,
    // To cells and ICRC
    pub data: Signal<Out, Bits<W>>,
    pub first: Signal<Out, Bit>,
    pub cell_last: Signal<Out, Bit>,
    pub cell_valid: Signal<Out, Bit>,
    pub icrc_keep: Signal<Out, Bits<K>>,
    pub icrc_last: Signal<Out, Bit>,
    pub icrc_valid: Signal<Out, Bit>,
    pub vlan: Signal<Out, Bit>,
    pub ipv6: Signal<Out, Bit>,
    /// One cycle after the frame's last beat.
    pub ending: Signal<Out, Ending>,
    mem_data: RamAsync<Bits<W>, LG>,
    mem_keep: RamAsync<Bits<K>, LG>,
    mem_last: RamAsync<Bit, LG>,
    mem_err: RamAsync<Bit, LG>,
    mem_flags: RamAsync<Flags, LG>,
    wptr: DFF<Bits<LG>>,
    rptr: DFF<Bits<LG>>,
    fwptr: DFF<Bits<LG>>,
    frptr: DFF<Bits<LG>>,
    midway: DFF<Bit>,
    have: Signal<Local, Bit>,
    next_flags: Signal<Local, Flags>,
    go: Signal<Local, Bit>,
    // Stage 1
    data1: DFF<Bits<W>>,
    keep1: DFF<Bits<K>>,
    last1: DFF<Bit>,
    err1: DFF<Bit>,
    first1: DFF<Bit>,
    valid1: DFF<Bit>,
    flags1: DFF<Flags>,
    rest1: DFF<Bits<17>>,
    over1: DFF<Bit>,
    before1: DFF<Bits<15>>,
    big1: DFF<Bit>,
    cut: Signal<Local, Bit>,
    rest: Signal<Local, Bits<17>>,
    lanes: LenMask<K, 8>,
    count: KeepLen<K, 8>,
    // Stage 2
    data2: DFF<Bits<W>>,
    first2: DFF<Bit>,
    last2: DFF<Bit>,
    valid2: DFF<Bit>,
    ikeep2: DFF<Bits<K>>,
    ilast2: DFF<Bit>,
    ivalid2: DFF<Bit>,
    vlan2: DFF<Bit>,
    ipv62: DFF<Bit>,
    end2: DFF<Bit>,
    err2: DFF<Bit>,
    big2: DFF<Bit>,
    len2: DFF<Bits<15>>,
    stop2: DFF<Bits<17>>,
    // Stage 3
    ending3: DFF<Ending>,
    #[init(Constant::new((K as u64).to_bits()))]
    beat: Constant<Bits<17>>,
    #[init(Constant::new((K as u64).to_bits()))]
    beat15: Constant<Bits<15>>,
    #[init(Constant::new(14u64.to_bits()))]
    least: Constant<Bits<15>>,
    #[init(Constant::new((super::model::MAX_FRAME as u64).to_bits()))]
    most: Constant<Bits<15>>,
    #[init(Constant::new(Bits::mask()))]
    full: Constant<Bits<K>>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Feed<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, wptr, rptr, fwptr, frptr, midway, data1, keep1, last1, err1, first1, valid1, flags1, rest1);
        dff_setup!(self, clock, over1, before1, big1, data2, first2, last2, valid2, ikeep2, ilast2, ivalid2, vlan2, ipv62);
        dff_setup!(self, clock, end2, err2, big2, len2, stop2, ending3);
        clock!(self, clock, mem_data, mem_keep, mem_last, mem_err, mem_flags);
        // Queue: a frame's first beat goes when its flags are there, the others follow as they come.
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
        self.mem_flags.write_addr.next = self.fwptr.q.val();
        self.mem_flags.write_data.next = self.flags.val();
        self.mem_flags.write_en.next = self.flags_valid.val();
        self.mem_flags.read_addr.next = self.frptr.q.val();
        if self.b_valid.val() {
            self.wptr.d.next = self.wptr.q.val() + 1;
        }
        if self.flags_valid.val() {
            self.fwptr.d.next = self.fwptr.q.val() + 1;
        }
        // Flags that come in this very cycle count as well.
        self.have.next = self.fwptr.q.val() != self.frptr.q.val();
        self.next_flags.next = self.flags.val();
        if self.have.val() {
            self.next_flags.next = self.mem_flags.read_data.val();
        }
        self.go.next = (self.wptr.q.val() != self.rptr.q.val()) & (self.midway.q.val() | self.have.val() | self.flags_valid.val());
        // Stage 1: bytes of the IP packet from this beat on, bytes of the frame before it
        self.data1.d.next = self.mem_data.read_data.val();
        self.keep1.d.next = self.mem_keep.read_data.val();
        self.last1.d.next = self.mem_last.read_data.val();
        self.err1.d.next = self.mem_err.read_data.val();
        self.valid1.d.next = self.go.val();
        self.first1.d.next = !self.midway.q.val();
        self.cut.next = self.rest1.q.val() <= self.beat.val();
        if self.go.val() {
            self.rptr.d.next = self.rptr.q.val() + 1;
            self.midway.d.next = !self.mem_last.read_data.val();
            if self.midway.q.val() {
                self.rest1.d.next = self.rest1.q.val() - self.beat.val();
                self.over1.d.next = self.over1.q.val() | self.cut.val();
                self.before1.d.next = self.before1.q.val() + self.beat15.val();
                self.big1.d.next = self.big1.q.val() | (self.before1.q.val() > self.most.val());
            } else {
                self.frptr.d.next = self.frptr.q.val() + 1;
                self.flags1.d.next = self.next_flags.val();
                self.rest1.d.next = self.next_flags.val().stop;
                self.over1.d.next = false;
                self.before1.d.next = bits::<15>(0);
                self.big1.d.next = false;
            }
        }
        // Stage 2
        self.rest.next = self.rest1.q.val();
        self.lanes.len.next = self.rest.val().get_bits::<8>(0);
        self.count.keep.next = self.keep1.q.val();
        self.data2.d.next = self.data1.q.val();
        self.first2.d.next = self.first1.q.val();
        self.last2.d.next = self.last1.q.val();
        self.valid2.d.next = self.valid1.q.val() & (!self.big1.q.val() | self.last1.q.val());
        self.ikeep2.d.next = self.full.val();
        if self.cut.val() {
            self.ikeep2.d.next = self.lanes.keep.val();
        }
        self.ilast2.d.next = self.cut.val();
        self.ivalid2.d.next = self.valid1.q.val() & !self.over1.q.val();
        self.vlan2.d.next = self.flags1.q.val().vlan;
        self.ipv62.d.next = self.flags1.q.val().ipv6;
        self.end2.d.next = self.valid1.q.val() & self.last1.q.val();
        self.err2.d.next = self.err1.q.val();
        self.big2.d.next = self.big1.q.val();
        self.len2.d.next = self.before1.q.val() + bit_cast::<15, 8>(self.count.len.val());
        self.stop2.d.next = self.flags1.q.val().stop;
        self.data.next = self.data2.q.val();
        self.first.next = self.first2.q.val();
        self.cell_last.next = self.last2.q.val();
        self.cell_valid.next = self.valid2.q.val();
        self.icrc_keep.next = self.ikeep2.q.val();
        self.icrc_last.next = self.ilast2.q.val();
        self.icrc_valid.next = self.ivalid2.q.val();
        self.vlan.next = self.vlan2.q.val();
        self.ipv6.next = self.ipv62.q.val();
        // Stage 3
        self.ending3.d.next.valid = self.end2.q.val();
        self.ending3.d.next.mac_error = self.err2.q.val();
        self.ending3.d.next.big = self.big2.q.val() | (self.len2.q.val() > self.most.val());
        self.ending3.d.next.short = bit_cast::<17, 15>(self.len2.q.val()) < self.stop2.q.val();
        self.ending3.d.next.runt = self.len2.q.val() < self.least.val();
        self.ending3.d.next.len = self.len2.q.val();
        self.ending.next = self.ending3.q.val();
        if self.reset.val() {
            self.wptr.d.next = bits::<LG>(0);
            self.rptr.d.next = bits::<LG>(0);
            self.fwptr.d.next = bits::<LG>(0);
            self.frptr.d.next = bits::<LG>(0);
            self.midway.d.next = false;
            self.valid1.d.next = false;
            self.valid2.d.next = false;
            self.ivalid2.d.next = false;
            self.end2.d.next = false;
            self.ending3.d.next.valid = false;
        }
    }
}
