//! A frame's beats with the new fields in them.

use super::Patch;
use crate::prim::pack::Resize;
use ferric_abi::switch::table::REWRITE_BITS;
use ferric_abi::wire::ethertype;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bits of the frame from its first byte on that may change.
const FRONT: usize = BEHIND_TWO as usize + L3;
/// log2 of where the place of later beats stays, which is behind all of these, and bits of a place.
const LG_BEHIND: usize = 9;
const PLACE: usize = LG_BEHIND + 1;
/// Bits of an IP header up to IPv4's checksum.
const L3: usize = 96;
/// Where the fields are, in bits: behind the MAC addresses, and in the IP header behind no, one and two tags.
const TAG_AT: u64 = REWRITE_BITS as u64;
const L3_AT: u64 = TAG_AT + 16;
const BEHIND_ONE: u64 = L3_AT + 32;
const BEHIND_TWO: u64 = L3_AT + 64;
const TOS_AT: u64 = 8;
const TTL4_AT: u64 = 64;
const TTL6_AT: u64 = 56;
const CHECKSUM_AT: u64 = 80;
/// A byte, a word, and IPv6's traffic class, whose higher half is the lower one of the header's first byte, and its lower half the higher one of the next.
const BYTE: u64 = 0xff;
const BYTE_BITS: u64 = 8;
const WORD: u64 = 0xffff;
const HALVES: u64 = 0xf00f;
const LOWER_AT: u64 = 12;
/// A tag's four bytes, and its type as on the wire.
const TAG: u64 = 0xffff_ffff;
const TYPE: u64 = (ethertype::VLAN as u64).swap_bytes() >> 48;
const TCI_AT: u64 = 16;

/// Combinational, but for the place of the beat in its frame.
#[derive(LogicBlock, BlockDefault)]
#[demand(W <= 1 << LG_BEHIND && FRONT <= 1 << LG_BEHIND)]
pub struct Merge<const W: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; the next beat is a frame's first one.
    pub reset: Signal<In, Bit>,
    pub valid: Signal<In, Bit>,
    pub last: Signal<In, Bit>,
    pub data: Signal<In, Bits<W>>,
    /// With every beat.
    pub patch: Signal<In, Patch>,
    pub y: Signal<Out, Bits<W>>,
    /// Bit of the frame that the beat begins with, up to 2^[`LG_BEHIND`].
    place: DFF<Bits<PLACE>>,
    #[init(Constant::new((W as u64).to_bits()))]
    beat: Constant<Bits<PLACE>>,
    swapped: Signal<Local, Bits<16>>,
    tos: Signal<Local, Bits<L3>>,
    tos_mask: Signal<Local, Bits<L3>>,
    ttl: Signal<Local, Bits<L3>>,
    ttl_mask: Signal<Local, Bits<L3>>,
    checksum: Signal<Local, Bits<L3>>,
    checksum_mask: Signal<Local, Bits<L3>>,
    l3: Signal<Local, Bits<FRONT>>,
    l3_mask: Signal<Local, Bits<FRONT>>,
    tag: Signal<Local, Bits<FRONT>>,
    tag_mask: Signal<Local, Bits<FRONT>>,
    macs: Signal<Local, Bits<FRONT>>,
    macs_mask: Signal<Local, Bits<FRONT>>,
    #[init(Constant::new((Bits::<FRONT>::from(0) - 1) >> ((FRONT - REWRITE_BITS) as u64)))]
    both: Constant<Bits<FRONT>>,
    front: Signal<Local, Bits<FRONT>>,
    front_mask: Signal<Local, Bits<FRONT>>,
    cut: Resize<FRONT, W>,
    cut_mask: Resize<FRONT, W>,
}

#[kernel]
impl<const W: usize> Logic for Merge<W> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, place);
        if self.valid.val() {
            if !self.place.q.val().get_bit(LG_BEHIND) {
                self.place.d.next = self.place.q.val() + self.beat.val();
            }
            if self.last.val() {
                self.place.d.next = bits::<PLACE>(0);
            }
        }
        // The IP header
        self.tos.next = bits::<L3>(0);
        self.tos_mask.next = bits::<L3>(0);
        if self.patch.val().set_tos {
            self.tos.next = bit_cast::<L3, 8>(self.patch.val().tos) << TOS_AT;
            self.tos_mask.next = bits::<L3>(BYTE) << TOS_AT;
            if self.patch.val().v6 {
                self.tos.next = bit_cast::<L3, 4>(self.patch.val().tos.get_bits::<4>(4)) | (bit_cast::<L3, 4>(self.patch.val().tos.get_bits::<4>(0)) << LOWER_AT);
                self.tos_mask.next = bits::<L3>(HALVES);
            }
        }
        self.ttl.next = bits::<L3>(0);
        self.ttl_mask.next = bits::<L3>(0);
        if self.patch.val().set_ttl {
            self.ttl.next = bit_cast::<L3, 8>(self.patch.val().ttl) << TTL4_AT;
            self.ttl_mask.next = bits::<L3>(BYTE) << TTL4_AT;
            if self.patch.val().v6 {
                self.ttl.next = bit_cast::<L3, 8>(self.patch.val().ttl) << TTL6_AT;
                self.ttl_mask.next = bits::<L3>(BYTE) << TTL6_AT;
            }
        }
        self.swapped.next = (self.patch.val().checksum >> BYTE_BITS) | (self.patch.val().checksum << BYTE_BITS);
        self.checksum.next = bits::<L3>(0);
        self.checksum_mask.next = bits::<L3>(0);
        if self.patch.val().v4 & (self.patch.val().set_tos | self.patch.val().set_ttl) {
            self.checksum.next = bit_cast::<L3, 16>(self.swapped.val()) << CHECKSUM_AT;
            self.checksum_mask.next = bits::<L3>(WORD) << CHECKSUM_AT;
        }
        self.l3.next = bit_cast::<FRONT, L3>(self.tos.val() | self.ttl.val() | self.checksum.val()) << L3_AT;
        self.l3_mask.next = bit_cast::<FRONT, L3>(self.tos_mask.val() | self.ttl_mask.val() | self.checksum_mask.val()) << L3_AT;
        if self.patch.val().tags.get_bit(0) {
            self.l3.next = bit_cast::<FRONT, L3>(self.tos.val() | self.ttl.val() | self.checksum.val()) << BEHIND_ONE;
            self.l3_mask.next = bit_cast::<FRONT, L3>(self.tos_mask.val() | self.ttl_mask.val() | self.checksum_mask.val()) << BEHIND_ONE;
        }
        if self.patch.val().tags.get_bit(1) {
            self.l3.next = bit_cast::<FRONT, L3>(self.tos.val() | self.ttl.val() | self.checksum.val()) << BEHIND_TWO;
            self.l3_mask.next = bit_cast::<FRONT, L3>(self.tos_mask.val() | self.ttl_mask.val() | self.checksum_mask.val()) << BEHIND_TWO;
        }
        // What is in front of it
        self.tag.next = bits::<FRONT>(0);
        self.tag_mask.next = bits::<FRONT>(0);
        if self.patch.val().set_tag {
            self.tag.next =
                ((bit_cast::<FRONT, 8>(self.patch.val().tci.get_bits::<8>(8)) | (bit_cast::<FRONT, 8>(self.patch.val().tci.get_bits::<8>(0)) << BYTE_BITS)) << TCI_AT | bits::<FRONT>(TYPE)) << TAG_AT;
            self.tag_mask.next = bits::<FRONT>(TAG) << TAG_AT;
        }
        self.macs.next = bits::<FRONT>(0);
        self.macs_mask.next = bits::<FRONT>(0);
        if self.patch.val().set_macs {
            self.macs.next = bit_cast::<FRONT, REWRITE_BITS>(self.patch.val().macs);
            self.macs_mask.next = self.both.val();
        }
        // What of it is in this beat
        self.front.next = self.l3.val() | self.tag.val() | self.macs.val();
        self.front_mask.next = self.l3_mask.val() | self.tag_mask.val() | self.macs_mask.val();
        self.cut.x.next = self.front.val() >> self.place.q.val();
        self.cut_mask.x.next = self.front_mask.val() >> self.place.q.val();
        self.y.next = (self.data.val() & !self.cut_mask.y.val()) | self.cut.y.val();
        if self.reset.val() {
            self.place.d.next = bits::<PLACE>(0);
        }
    }
}
