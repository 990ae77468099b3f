//! What an action changes in a frame's headers: MAC addresses, the first tag, DSCP, time to live. See README.md.

mod merge;
#[cfg(test)]
mod tests;

pub use merge::Merge;

use super::key::Old;
use crate::prim::sized::SizedRam;
use crate::records::Verdict;
use ferric_abi::switch::table::{MOST_REWRITES, REWRITE_BITS};
use ferric_abi::switch::tag_op;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

const SET: u64 = tag_op::SET as u64;
/// Bits of a line's number.
pub const LINE: usize = MOST_REWRITES as usize;
/// Bits of ECN, which stays.
const ECN_BITS: u64 = 2;
/// A time to live that is one less, in the ones' complement sum of its header: its byte is the higher one of a word.
const ONE_LESS: u64 = 0xffff - 0x100;
/// The higher byte of the word of DSCP and ECN does not change; its complement and it are all ones.
const HIGH: u64 = 0xff00;

/// New header fields of a frame, and which of them count.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Patch {
    /// Where the fields are: tags as in [`Old`]; neither `v4` nor `v6`: there are none of IP.
    pub tags: Bits<2>,
    pub v4: Bit,
    pub v6: Bit,
    pub set_macs: Bit,
    /// Destination and source, the first byte on the wire lowest.
    pub macs: Bits<REWRITE_BITS>,
    pub set_tag: Bit,
    /// Of a frame that has a tag.
    pub tci: Bits<16>,
    pub set_tos: Bit,
    pub tos: Bits<8>,
    pub set_ttl: Bit,
    pub ttl: Bits<8>,
    /// IPv4's, with both changes.
    pub checksum: Bits<16>,
}

/// 2^`LG` lines of MAC addresses, at most 2^[`LINE`]. One frame a cycle, never stalled.
#[derive(LogicBlock, BlockDefault)]
#[demand(REWRITE_BITS == 96 && MOST_REWRITES == 9)]
pub struct Edit<const LG: usize> {
    pub clock: Signal<In, Clock>,
    /// What the action orders, and the frame's fields.
    pub verdict: Signal<In, Verdict>,
    pub old: Signal<In, Old>,
    /// One cycle later.
    pub patch: Signal<Out, Patch>,
    /// A line of MAC addresses is written, at any time; a frame in the same cycle gets the old ones.
    pub write: Signal<In, Bit>,
    pub write_line: Signal<In, Bits<LINE>>,
    pub write_macs: Signal<In, Bits<REWRITE_BITS>>,
    #[init(SizedRam::new(LG.min(LINE)))]
    rows: SizedRam<Bits<REWRITE_BITS>, LINE>,
    ip: Signal<Local, Bit>,
    tos: Signal<Local, Bits<8>>,
    not_tos: Signal<Local, Bits<8>>,
    not_checksum: Signal<Local, Bits<16>>,
    differs: Signal<Local, Bit>,
    change: Signal<Local, Bits<17>>,
    sum: Signal<Local, Bits<17>>,
    less: Signal<Local, Bits<17>>,
    // The checksum's complement, without the change of DSCP, and that change.
    rest1: DFF<Bits<16>>,
    change1: DFF<Bits<16>>,
    patch1: DFF<Patch>,
    whole: Signal<Local, Bits<17>>,
    folded: Signal<Local, Bits<16>>,
}

#[kernel]
impl<const LG: usize> Logic for Edit<LG> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, rest1, change1, patch1);
        clock!(self, clock, rows);
        self.rows.read_addr.next = self.verdict.val().rewrite.get_bits::<LINE>(0);
        self.rows.write_addr.next = self.write_line.val();
        self.rows.write_data.next = self.write_macs.val();
        self.rows.write_en.next = self.write.val();
        self.ip.next = self.old.val().v4 | self.old.val().v6;
        // DSCP: the word's complement and the new word, carry around (RFC 1624). No change is none, and not the other zero.
        self.tos.next = (bit_cast::<8, 6>(self.verdict.val().dscp) << ECN_BITS) | bit_cast::<8, 2>(self.old.val().tos.get_bits::<2>(0));
        self.differs.next = self.verdict.val().write_dscp & (self.tos.val() != self.old.val().tos);
        self.not_tos.next = !self.old.val().tos;
        self.change.next = bit_cast::<17, 8>(self.tos.val()) + (bit_cast::<17, 8>(self.not_tos.val()) | HIGH);
        self.change1.d.next = bits::<16>(0);
        if self.differs.val() {
            self.change1.d.next = self.change.val().get_bits::<16>(0) + bit_cast::<16, 1>(self.change.val().get_bits::<1>(16));
        }
        // Time to live
        self.not_checksum.next = !self.old.val().checksum;
        self.sum.next = bit_cast::<17, 16>(self.not_checksum.val());
        self.less.next = self.sum.val() + ONE_LESS;
        self.rest1.d.next = self.sum.val().get_bits::<16>(0);
        if self.verdict.val().dec_ttl {
            self.rest1.d.next = self.less.val().get_bits::<16>(0) + bit_cast::<16, 1>(self.less.val().get_bits::<1>(16));
        }
        self.patch1.d.next.tags = self.old.val().tags;
        self.patch1.d.next.v4 = self.old.val().v4;
        self.patch1.d.next.v6 = self.old.val().v6;
        self.patch1.d.next.set_macs = self.verdict.val().rewrite.any();
        self.patch1.d.next.macs = bits::<REWRITE_BITS>(0);
        self.patch1.d.next.set_tag = (self.verdict.val().tag_op == SET) & self.old.val().tags.any();
        self.patch1.d.next.tci = self.verdict.val().tag;
        self.patch1.d.next.set_tos = self.verdict.val().write_dscp & self.ip.val();
        self.patch1.d.next.tos = self.tos.val();
        self.patch1.d.next.set_ttl = self.verdict.val().dec_ttl & self.ip.val();
        self.patch1.d.next.ttl = self.old.val().ttl - 1;
        self.patch1.d.next.checksum = bits::<16>(0);
        // One cycle later
        self.whole.next = bit_cast::<17, 16>(self.rest1.q.val()) + bit_cast::<17, 16>(self.change1.q.val());
        self.folded.next = self.whole.val().get_bits::<16>(0) + bit_cast::<16, 1>(self.whole.val().get_bits::<1>(16));
        self.patch.next = self.patch1.q.val();
        self.patch.next.macs = self.rows.read_data.val();
        self.patch.next.checksum = !self.folded.val();
    }
}
