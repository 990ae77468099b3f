//! First stage: the MAC's beats registered, and the first 128 bytes of each frame side by side.

use crate::prim::keep_mask::KeepMask;
use crate::prim::slot::SlotMerge;
use ferric_abi::wire::ethertype;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bits of the header window.
pub const WINDOW_BITS: usize = 8 * super::model::WINDOW;

/// First byte behind the length field of a tagged IPv6 packet.
const LENGTH_END: usize = 18 + 6;

/// Ethernet types: of the frame, and behind a tag.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Types {
    pub tagged: Bit,
    pub plain4: Bit,
    pub plain6: Bit,
    pub tag4: Bit,
    pub tag6: Bit,
    pub plain_arp: Bit,
    pub tag_arp: Bit,
}

/// Collects header windows at one beat per cycle. Bytes beyond the end of a short frame are zero.
#[derive(LogicBlock, BlockDefault)]
pub struct Window<const W: usize, const K: usize> {
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
    /// For one cycle per frame `window_valid`; in the cycle after `b` showed the beat that completes it.
    pub window: Signal<Out, Bits<WINDOW_BITS>>,
    pub window_valid: Signal<Out, Bit>,
    /// For one cycle per frame: the bytes up to the IP length are in `window`, or all there are.
    pub early: Signal<Out, Bit>,
    /// With `early` and `window_valid`.
    pub types: Signal<Out, Types>,
    mask: KeepMask<W, K>,
    merge: SlotMerge<WINDOW_BITS, W>,
    data1: DFF<Bits<W>>,
    masked1: DFF<Bits<W>>,
    keep1: DFF<Bits<K>>,
    last1: DFF<Bit>,
    err1: DFF<Bit>,
    valid1: DFF<Bit>,
    slot: DFF<Bits<5>>,
    seen: DFF<Bit>,
    acc: DFF<Bits<WINDOW_BITS>>,
    complete: DFF<Bit>,
    early1: DFF<Bit>,
    types1: DFF<Types>,
    next: Signal<Local, Bits<WINDOW_BITS>>,
    #[init(Constant::new((super::model::WINDOW as u64 / K as u64 - 1).to_bits()))]
    final_slot: Constant<Bits<5>>,
    #[init(Constant::new(((LENGTH_END as u64 - 1) / K as u64).to_bits()))]
    early_slot: Constant<Bits<5>>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Window<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, data1, masked1, keep1, last1, err1, valid1, slot, seen, acc, complete, early1, types1);
        self.mask.keep.next = self.keep.val();
        self.data1.d.next = self.data.val();
        self.masked1.d.next = self.data.val() & self.mask.mask.val();
        self.keep1.d.next = self.keep.val();
        self.last1.d.next = self.last.val();
        self.err1.d.next = self.err.val();
        self.valid1.d.next = self.valid.val();
        self.b_data.next = self.data1.q.val();
        self.b_keep.next = self.keep1.q.val();
        self.b_last.next = self.last1.q.val();
        self.b_err.next = self.err1.q.val();
        self.b_valid.next = self.valid1.q.val();
        // `seen`: this frame's window is complete already.
        self.merge.acc.next = self.acc.q.val();
        self.merge.data.next = self.masked1.q.val();
        self.merge.slot.next = bit_cast::<8, 5>(self.slot.q.val());
        self.merge.fresh.next = !self.slot.q.val().any();
        self.complete.d.next = false;
        self.early1.d.next = self.valid1.q.val() & !self.seen.q.val() & ((self.slot.q.val() == self.early_slot.val()) | (self.last1.q.val() & (self.slot.q.val() < self.early_slot.val())));
        // Constants are the network words as they lie on the bus, low byte first.
        self.next.next = self.merge.y.val();
        if self.valid1.q.val() {
            if !self.seen.q.val() {
                self.acc.d.next = self.next.val();
                self.types1.d.next.tagged = self.next.val().get_bits::<16>(96) == ethertype::VLAN.swap_bytes() as u64;
                self.types1.d.next.plain4 = self.next.val().get_bits::<16>(96) == ethertype::IPV4.swap_bytes() as u64;
                self.types1.d.next.plain6 = self.next.val().get_bits::<16>(96) == ethertype::IPV6.swap_bytes() as u64;
                self.types1.d.next.tag4 = self.next.val().get_bits::<16>(128) == ethertype::IPV4.swap_bytes() as u64;
                self.types1.d.next.tag6 = self.next.val().get_bits::<16>(128) == ethertype::IPV6.swap_bytes() as u64;
                self.types1.d.next.plain_arp = self.next.val().get_bits::<16>(96) == ethertype::ARP.swap_bytes() as u64;
                self.types1.d.next.tag_arp = self.next.val().get_bits::<16>(128) == ethertype::ARP.swap_bytes() as u64;
                self.slot.d.next = self.slot.q.val() + 1;
                if self.last1.q.val() | (self.slot.q.val() == self.final_slot.val()) {
                    self.complete.d.next = true;
                    self.seen.d.next = true;
                }
            }
            if self.last1.q.val() {
                self.seen.d.next = false;
                self.slot.d.next = bits::<5>(0);
            }
        }
        self.window.next = self.acc.q.val();
        self.window_valid.next = self.complete.q.val();
        self.early.next = self.early1.q.val();
        self.types.next = self.types1.q.val();
        if self.reset.val() {
            self.valid1.d.next = false;
            self.complete.d.next = false;
            self.early1.d.next = false;
            self.seen.d.next = false;
            self.slot.d.next = bits::<5>(0);
        }
    }
}
