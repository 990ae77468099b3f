//! Invariant CRC of RoCEv2 (IBTA volume 1, annex A17.3.3) as a pipeline that never stalls. See README.md.

pub use ferric_model::net::icrc as model;
#[cfg(test)]
pub(crate) mod tests;

use crate::prim::keep_mask::{KeepLen, KeepMask};
use crate::prim::lookup::Lookup;
use crate::prim::pack::Slice;
use crate::prim::xor_matrix::XorMatrix;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

// Bits of `select`.
const VLAN: u64 = 16;
const IPV6: u64 = 32;

/// Cycles from the cycle in which the last beat is on the inputs to the one in which `crc` shows its result.
pub const LATENCY: usize = 5;

/// The same for `right`.
pub const CHECK: usize = 3;

/// The 512-to-32 network is cut into this many parts, whose sums are registered.
const PARTS: usize = 8;

/// Distances (in zero bytes) that an undo stage can step back: three per radix-4 digit, one for the top digit.
const UNDO: [usize; 10] = [1, 2, 3, 4, 8, 12, 16, 32, 48, 64];

/// One beat per cycle in, one CRC per frame out, [`LATENCY`] cycles after the frame's last beat.
///
/// The frame starts with the Ethernet header. `keep` counts on the last beat (contiguous from bit 0) and must be all ones
/// before. `crc` is complemented as sent, least significant byte first.
#[derive(LogicBlock, BlockDefault)]
// 15 beats must cover every masked byte (the last is BTH byte 4 of tagged IPv6), and `excess` is 7 bits.
#[demand(W == 8 * K && K == 1 << LK && (8..=64).contains(&K), "K must be W / 8, 8 to 64")]
pub struct IcrcPipe<const W: usize, const K: usize, const LK: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets the beats inside.
    pub reset: Signal<In, Bit>,
    pub data: Signal<In, Bits<W>>,
    pub keep: Signal<In, Bits<K>>,
    /// First beat of a frame: whatever was before is forgotten.
    pub first: Signal<In, Bit>,
    pub last: Signal<In, Bit>,
    pub valid: Signal<In, Bit>,
    /// The frame has one 802.1Q tag; constant over the frame.
    pub vlan: Signal<In, Bit>,
    /// The frame is IPv6, else IPv4; constant over the frame.
    pub ipv6: Signal<In, Bit>,
    /// On the last beat. Set: the frame's last four bytes are the ICRC's place, are zero, and are left out (transmit).
    /// Clear: all bytes count; `crc` is [`model::RESIDUE`] exactly if the frame ends with its right ICRC (receive).
    pub drop4: Signal<In, Bit>,
    pub crc: Signal<Out, Bits<32>>,
    pub crc_valid: Signal<Out, Bit>,
    /// With `right_valid`, [`CHECK`] cycles after the frame's last beat: `crc` is going to be [`model::RESIDUE`].
    pub right: Signal<Out, Bit>,
    pub right_valid: Signal<Out, Bit>,
    // Stage 1: header fields and bytes beyond the end masked.
    keep_mask: KeepMask<W, K>,
    keep_len: KeepLen<K, 8>,
    #[init(Lookup::new(|s| beat_mask(W, s, |(zeros, _)| zeros)))]
    zeros: Lookup<6, W>,
    #[init(Lookup::new(|s| beat_mask(W, s, |(_, ones)| ones)))]
    ones: Lookup<6, W>,
    index: DFF<Bits<4>>,
    at: Signal<Local, Bits<4>>,
    select: Signal<Local, Bits<6>>,
    masked: DFF<Bits<W>>,
    bytes: DFF<Bits<8>>,
    strip: DFF<Bit>,
    first1: DFF<Bit>,
    vlan1: DFF<Bit>,
    last1: DFF<Bit>,
    valid1: DFF<Bit>,
    // Stage 2: partial sums.
    #[init(std::array::from_fn(|p| Slice::new(p * K)))]
    slices: [Slice<W, K>; PARTS],
    #[init(std::array::from_fn(partial::<K>))]
    matrices: [XorMatrix<K, 32>; PARTS],
    sums: [DFF<Bits<32>>; PARTS],
    excess: DFF<Bits<8>>,
    first2: DFF<Bit>,
    vlan2: DFF<Bit>,
    last2: DFF<Bit>,
    valid2: DFF<Bit>,
    // Stage 3: the shift register.
    #[init(XorMatrix::of(|j| model::crc(1 << j, &vec![0; K]).into()))]
    advance: XorMatrix<32, 32>,
    base: Signal<Local, Bits<32>>,
    sum_low: Signal<Local, Bits<32>>,
    sum_high: Signal<Local, Bits<32>>,
    state: DFF<Bits<32>>,
    excess3: DFF<Bits<8>>,
    /// What the shift register holds behind a frame with its right ICRC, by zero bytes too many.
    #[init(Lookup::of(|zeros| model::crc(!model::RESIDUE, &vec![0; zeros]).into()))]
    wanted: Lookup<7, 32>,
    wanted3: DFF<Bits<32>>,
    done3: DFF<Bit>,
    // Stages 4 and 5: zero bytes that were not part of the frame are taken back, two radix-4 digits a stage.
    #[init(std::array::from_fn(|u| XorMatrix::of(move |j| model::undo(1 << j, UNDO[u]).into())))]
    undo: [XorMatrix<32, 32>; 10],
    digit0: Signal<Local, Bits<2>>,
    digit1: Signal<Local, Bits<2>>,
    digit2: Signal<Local, Bits<2>>,
    y0: Signal<Local, Bits<32>>,
    y1: Signal<Local, Bits<32>>,
    y2: Signal<Local, Bits<32>>,
    y3: Signal<Local, Bits<32>>,
    back: DFF<Bits<32>>,
    excess4: DFF<Bits<8>>,
    done4: DFF<Bit>,
    result: DFF<Bits<32>>,
    done5: DFF<Bit>,
    #[init(Constant::new((K as u64).to_bits()))]
    width: Constant<Bits<8>>,
    #[init(Constant::new((K as u64 + 4).to_bits()))]
    width4: Constant<Bits<8>>,
    // The state is not advanced on a first beat, so the constant is the start state advanced by one beat.
    #[init(std::array::from_fn(|vlan| {
        Constant::new(u64::from(model::crc(model::start(vlan == 1), &vec![0; K])).to_bits())
    }))]
    starts: [Constant<Bits<32>>; 2],
}

/// Mask of one beat, lowest bit first. `select` = {ipv6, vlan, beat index}; beats past the headers have no mask.
fn beat_mask(width: usize, select: usize, pick: impl Fn((u8, u8)) -> u8) -> Vec<bool> {
    let (index, vlan, ipv6) = (select & 15, select >> 4 & 1 == 1, select >> 5 == 1);
    (0..width).map(|bit| index != 15 && pick(model::masks(index * width / 8 + bit / 8, vlan, ipv6)) >> (bit % 8) & 1 == 1).collect()
}

/// Part `p` covers bits p K .. (p + 1) K of the beat; its contribution is followed by the rest of the beat.
fn partial<const K: usize>(p: usize) -> XorMatrix<K, 32> {
    XorMatrix::of(|j| {
        let mut beat = vec![0u8; K];
        let bit = p * K + j;
        beat[bit / 8] = 1 << (bit % 8);
        model::crc(0, &beat).into()
    })
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize> Logic for IcrcPipe<W, K, LK> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, index, masked, bytes, strip, first1, vlan1, last1, valid1, excess, first2, vlan2, last2, valid2);
        dff_setup!(self, clock, state, excess3, wanted3, done3, back, excess4, done4, result, done5);
        for i in 0..8 {
            self.sums[i].clock.next = self.clock.val();
        }
        // Stage 1
        self.at.next = self.index.q.val();
        if self.first.val() {
            self.at.next = bits::<4>(0);
        }
        if self.valid.val() & !self.at.val().all() {
            self.index.d.next = self.at.val() + 1;
        }
        self.select.next = bit_cast::<6, 4>(self.at.val());
        if self.vlan.val() {
            self.select.next = self.select.val() | VLAN;
        }
        if self.ipv6.val() {
            self.select.next = self.select.val() | IPV6;
        }
        self.zeros.x.next = self.select.val();
        self.ones.x.next = self.select.val();
        self.keep_mask.keep.next = self.keep.val();
        self.keep_len.keep.next = self.keep.val();
        self.masked.d.next = ((self.data.val() & self.keep_mask.mask.val()) | self.ones.y.val()) & !self.zeros.y.val();
        self.bytes.d.next = self.keep_len.len.val();
        self.strip.d.next = self.drop4.val();
        self.first1.d.next = self.first.val();
        self.vlan1.d.next = self.vlan.val();
        self.last1.d.next = self.last.val();
        self.valid1.d.next = self.valid.val();
        // Stage 2
        for i in 0..8 {
            self.slices[i].x.next = self.masked.q.val();
            self.matrices[i].x.next = self.slices[i].y.val();
            self.sums[i].d.next = self.matrices[i].y.val();
        }
        self.excess.d.next = self.width.val() - self.bytes.q.val();
        if self.strip.q.val() {
            self.excess.d.next = self.width4.val() - self.bytes.q.val();
        }
        self.first2.d.next = self.first1.q.val();
        self.vlan2.d.next = self.vlan1.q.val();
        self.last2.d.next = self.last1.q.val();
        self.valid2.d.next = self.valid1.q.val();
        // Stage 3
        self.advance.x.next = self.state.q.val();
        self.base.next = self.advance.y.val();
        if self.first2.q.val() {
            self.base.next = self.starts[0].val();
            if self.vlan2.q.val() {
                self.base.next = self.starts[1].val();
            }
        }
        self.sum_low.next = self.sums[0].q.val() ^ self.sums[1].q.val() ^ self.sums[2].q.val() ^ self.sums[3].q.val();
        self.sum_high.next = self.sums[4].q.val() ^ self.sums[5].q.val() ^ self.sums[6].q.val() ^ self.sums[7].q.val();
        if self.valid2.q.val() {
            self.state.d.next = self.base.val() ^ self.sum_low.val() ^ self.sum_high.val();
        }
        self.excess3.d.next = self.excess.q.val();
        self.done3.d.next = self.valid2.q.val() & self.last2.q.val();
        self.wanted.x.next = self.excess.q.val().get_bits::<7>(0);
        self.wanted3.d.next = self.wanted.y.val();
        self.right.next = self.state.q.val() == self.wanted3.q.val();
        self.right_valid.next = self.done3.q.val();
        // Stage 4
        for i in 0..3 {
            self.undo[i].x.next = self.state.q.val();
        }
        self.digit0.next = self.excess3.q.val().get_bits::<2>(0);
        self.y0.next = self.state.q.val();
        if self.digit0.val() == 1 {
            self.y0.next = self.undo[0].y.val();
        } else if self.digit0.val() == 2 {
            self.y0.next = self.undo[1].y.val();
        } else if self.digit0.val() == 3 {
            self.y0.next = self.undo[2].y.val();
        }
        for i in 3..6 {
            self.undo[i].x.next = self.y0.val();
        }
        self.digit1.next = self.excess3.q.val().get_bits::<2>(2);
        self.y1.next = self.y0.val();
        if self.digit1.val() == 1 {
            self.y1.next = self.undo[3].y.val();
        } else if self.digit1.val() == 2 {
            self.y1.next = self.undo[4].y.val();
        } else if self.digit1.val() == 3 {
            self.y1.next = self.undo[5].y.val();
        }
        self.back.d.next = self.y1.val();
        self.excess4.d.next = self.excess3.q.val();
        self.done4.d.next = self.done3.q.val();
        // Stage 5
        for i in 6..9 {
            self.undo[i].x.next = self.back.q.val();
        }
        self.digit2.next = self.excess4.q.val().get_bits::<2>(4);
        self.y2.next = self.back.q.val();
        if self.digit2.val() == 1 {
            self.y2.next = self.undo[6].y.val();
        } else if self.digit2.val() == 2 {
            self.y2.next = self.undo[7].y.val();
        } else if self.digit2.val() == 3 {
            self.y2.next = self.undo[8].y.val();
        }
        self.undo[9].x.next = self.y2.val();
        self.y3.next = self.y2.val();
        if self.excess4.q.val().get_bit(6) {
            self.y3.next = self.undo[9].y.val();
        }
        self.result.d.next = !self.y3.val();
        self.done5.d.next = self.done4.q.val();
        self.crc.next = self.result.q.val();
        self.crc_valid.next = self.done5.q.val();
        if self.reset.val() {
            self.index.d.next = bits::<4>(0);
            self.valid1.d.next = false;
            self.valid2.d.next = false;
            self.done3.d.next = false;
            self.done4.d.next = false;
            self.done5.d.next = false;
        }
    }
}
