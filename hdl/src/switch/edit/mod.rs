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
/// The higher byte of the word of DSCP and ECN does not change; its complement and it are all ones. And with a time to live that is one less.
const HIGH: u64 = 0xff00;
const HIGH_ONE_LESS: u64 = HIGH - 0x100;
/// Cycles from a frame's fields to the verdict.
pub const AHEAD: usize = 2;

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
pub struct Edit<const LG: usize> {
    pub clock: Signal<In, Clock>,
    /// The frame's fields; two cycles later what the action orders.
    pub old: Signal<In, Old>,
    pub verdict: Signal<In, Verdict>,
    /// One cycle after the verdict.
    pub patch: Signal<Out, Patch>,
    /// A line of MAC addresses is written, at any time; a frame in the same cycle gets the old ones.
    pub write: Signal<In, Bit>,
    pub write_line: Signal<In, Bits<LINE>>,
    pub write_macs: Signal<In, Bits<REWRITE_BITS>>,
    #[init(SizedRam::new(LG.min(LINE)))]
    rows: SizedRam<Bits<REWRITE_BITS>, LINE>,
    not_tos: Signal<Local, Bits<8>>,
    not_checksum: Signal<Local, Bits<16>>,
    x: Signal<Local, Bits<17>>,
    gone: Signal<Local, Bits<17>>,
    both_gone: Signal<Local, Bits<17>>,
    // One's complement sums of the header: as it is, with one less to live, without DSCP and ECN, with both; first with their carries, then with these added
    old1: DFF<Old>,
    rest1: DFF<Bits<16>>,
    sums1: [DFF<Bits<17>>; 3],
    old2: DFF<Old>,
    rest2: DFF<Bits<16>>,
    sums2: [DFF<Bits<16>>; 3],
    now: Signal<Local, Old>,
    ip: Signal<Local, Bit>,
    tos: Signal<Local, Bits<8>>,
    differs: Signal<Local, Bit>,
    base: Signal<Local, Bits<16>>,
    added: Signal<Local, Bits<8>>,
    // With the verdict
    patch3: DFF<Patch>,
    sum3: DFF<Bits<17>>,
    checksum: Signal<Local, Bits<16>>,
}

#[kernel]
impl<const LG: usize> Logic for Edit<LG> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, old1, rest1, old2, rest2, patch3, sum3);
        clock!(self, clock, rows);
        self.rows.read_addr.next = self.verdict.val().rewrite.get_bits::<LINE>(0);
        self.rows.write_addr.next = self.write_line.val();
        self.rows.write_data.next = self.write_macs.val();
        self.rows.write_en.next = self.write.val();
        // Of a checksum that is to change (RFC 1624): its complement is the sum of the header, to which the complements of old words are added, and new words.
        self.not_tos.next = !self.old.val().tos;
        self.not_checksum.next = !self.old.val().checksum;
        self.x.next = bit_cast::<17, 16>(self.not_checksum.val());
        self.old1.d.next = self.old.val();
        self.rest1.d.next = self.not_checksum.val();
        for i in 0..3 {
            self.sums1[i].clock.next = self.clock.val();
            self.sums2[i].clock.next = self.clock.val();
            self.sums2[i].d.next = self.sums1[i].q.val().get_bits::<16>(0) + bit_cast::<16, 1>(self.sums1[i].q.val().get_bits::<1>(16));
        }
        self.sums1[0].d.next = self.x.val() + ONE_LESS;
        self.gone.next = bit_cast::<17, 8>(self.not_tos.val()) | HIGH;
        self.both_gone.next = bit_cast::<17, 8>(self.not_tos.val()) | HIGH_ONE_LESS;
        self.sums1[1].d.next = self.x.val() + self.gone.val();
        self.sums1[2].d.next = self.x.val() + self.both_gone.val();
        self.old2.d.next = self.old1.q.val();
        self.rest2.d.next = self.rest1.q.val();
        // With the verdict. A DSCP that is what it was is no change: adding and taking it away could come out as the other zero.
        self.now.next = self.old2.q.val();
        self.ip.next = self.now.val().v4 | self.now.val().v6;
        self.tos.next = (bit_cast::<8, 6>(self.verdict.val().dscp) << ECN_BITS) | bit_cast::<8, 2>(self.now.val().tos.get_bits::<2>(0));
        self.differs.next = self.verdict.val().write_dscp & (self.tos.val() != self.now.val().tos);
        self.base.next = self.rest2.q.val();
        self.added.next = bits::<8>(0);
        if self.verdict.val().dec_ttl {
            self.base.next = self.sums2[0].q.val();
        }
        if self.differs.val() {
            self.added.next = self.tos.val();
            self.base.next = self.sums2[1].q.val();
            if self.verdict.val().dec_ttl {
                self.base.next = self.sums2[2].q.val();
            }
        }
        self.sum3.d.next = bit_cast::<17, 16>(self.base.val()) + bit_cast::<17, 8>(self.added.val());
        self.patch3.d.next.tags = self.now.val().tags;
        self.patch3.d.next.v4 = self.now.val().v4;
        self.patch3.d.next.v6 = self.now.val().v6;
        self.patch3.d.next.set_macs = self.verdict.val().rewrite.any();
        self.patch3.d.next.macs = bits::<REWRITE_BITS>(0);
        self.patch3.d.next.set_tag = (self.verdict.val().tag_op == SET) & self.now.val().tags.any();
        self.patch3.d.next.tci = self.verdict.val().tag;
        self.patch3.d.next.set_tos = self.verdict.val().write_dscp & self.ip.val();
        self.patch3.d.next.tos = self.tos.val();
        self.patch3.d.next.set_ttl = self.verdict.val().dec_ttl & self.ip.val();
        self.patch3.d.next.ttl = self.now.val().ttl - 1;
        self.patch3.d.next.checksum = bits::<16>(0);
        // One cycle later
        self.checksum.next = self.sum3.q.val().get_bits::<16>(0) + bit_cast::<16, 1>(self.sum3.q.val().get_bits::<1>(16));
        self.patch.next = self.patch3.q.val();
        self.patch.next.macs = self.rows.read_data.val();
        self.patch.next.checksum = !self.checksum.val();
    }
}
