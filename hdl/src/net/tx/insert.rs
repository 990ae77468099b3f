//! Computes the ICRC and puts it into the last four bytes of the frame.

use super::types::BeatTag;
use crate::net::icrc::{IcrcPipe, LATENCY};
use crate::prim::keep_mask::{KeepMask, LenMask};
use crate::prim::sized::Delay;
use crate::prim::spread::Repeat;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// One cycle more than the CRC needs from the last beat, so that it is there when the beat BEFORE the last leaves: the
/// four bytes may begin in that one.
const WAIT: usize = LATENCY + 1;

/// Fixed latency, never stalls; a frame's beats must come in consecutive cycles.
#[derive(LogicBlock, BlockDefault)]
#[demand(WAIT <= 8, "valids has eight stages")]
pub(super) struct IcrcInsert<const W: usize, const K: usize, const LK: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub beat_valid: Signal<In, Bit>,
    pub beat: Signal<In, Bits<W>>,
    pub tag: Signal<In, BeatTag>,
    pub out_valid: Signal<Out, Bit>,
    pub out: Signal<Out, Bits<W>>,
    pub out_len: Signal<Out, Bits<8>>,
    pub out_last: Signal<Out, Bit>,
    icrc: IcrcPipe<W, K, LK>,
    in_keep: LenMask<K, 8>,
    #[init(Delay::new(WAIT))]
    data: Delay<Bits<W>>,
    #[init(Delay::new(WAIT))]
    tags: Delay<BeatTag>,
    valids: DFF<Bits<8>>,
    held: DFF<Bits<32>>,
    crc: Signal<Local, Bits<32>>,
    turned: Signal<Local, Bits<32>>,
    spread: Repeat<32, W>,
    len_mask: LenMask<K, 8>,
    body_mask: LenMask<K, 8>,
    crc_bits: KeepMask<W, K>,
    #[init(Constant::new((WAIT as u64 - 1).to_bits()))]
    last_stage: Constant<Bits<4>>,
    v: Signal<Local, Bits<8>>,
    aged: Signal<Local, Bits<8>>,
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize> Logic for IcrcInsert<W, K, LK> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, valids, held);
        clock!(self, clock, icrc, data, tags);
        self.icrc.reset.next = self.reset.val();
        self.in_keep.len.next = self.tag.val().len;
        self.icrc.data.next = self.beat.val();
        self.icrc.keep.next = self.in_keep.keep.val();
        self.icrc.first.next = self.tag.val().first;
        self.icrc.last.next = self.tag.val().last;
        self.icrc.valid.next = self.beat_valid.val();
        self.icrc.vlan.next = self.tag.val().vlan;
        self.icrc.ipv6.next = self.tag.val().ipv6;
        self.icrc.drop4.next = true;
        self.data.x.next = self.beat.val();
        self.tags.x.next = self.tag.val();
        self.aged.next = self.valids.q.val() << 1;
        self.valids.d.next = self.aged.val();
        if self.beat_valid.val() {
            self.valids.d.next = self.aged.val() | 1;
        }
        self.v.next = self.valids.q.val() >> self.last_stage.val();
        // The last beat comes out a cycle after its CRC, the one before in the same cycle.
        self.held.d.next = self.icrc.crc.val();
        self.crc.next = self.icrc.crc.val();
        if self.tags.y.val().last {
            self.crc.next = self.held.q.val();
        }
        // Lane l gets byte (l - frame length) mod 4 of the CRC.
        self.turned.next = self.crc.val();
        if self.tags.y.val().turn == 1 {
            self.turned.next = (self.crc.val() << 8) | (self.crc.val() >> 24);
        } else if self.tags.y.val().turn == 2 {
            self.turned.next = (self.crc.val() << 16) | (self.crc.val() >> 16);
        } else if self.tags.y.val().turn == 3 {
            self.turned.next = (self.crc.val() << 24) | (self.crc.val() >> 8);
        }
        self.spread.x.next = self.turned.val();
        self.len_mask.len.next = self.tags.y.val().len;
        self.body_mask.len.next = self.tags.y.val().body;
        self.crc_bits.keep.next = self.len_mask.keep.val() & !self.body_mask.keep.val();
        self.out.next = self.data.y.val() | (self.spread.y.val() & self.crc_bits.mask.val());
        self.out_len.next = self.tags.y.val().len;
        self.out_last.next = self.tags.y.val().last;
        self.out_valid.next = self.v.val().get_bit(0);
        if self.reset.val() {
            self.valids.d.next = bits::<8>(0);
        }
    }
}
