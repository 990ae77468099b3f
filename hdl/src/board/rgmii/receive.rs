//! Bytes off the wire to beats.

use super::{fcs_step, model};
use crate::bus::AxisSrc;
use crate::prim::keep_mask::LenMask;
use crate::prim::xor_matrix::XorMatrix;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Preamble,
    Data,
    /// A carrier that is no frame.
    Skip,
}

/// Receives frames: preamble and FCS are taken off. `m.ready` is not looked at: the consumer has to be ready always.
#[derive(LogicBlock, BlockDefault)]
pub struct GigReceive {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub rise: Signal<In, Bits<5>>,
    pub fall: Signal<In, Bits<5>>,
    pub m: AxisSrc<64, 8>,
    /// With the last beat.
    pub m_err: Signal<Out, Bit>,
    /// A frame of fewer than five bytes ended: there is nothing to pass on.
    pub scrap: Signal<Out, Bit>,
    state: DFF<State>,
    /// The pins, registered.
    byte: DFF<Bits<8>>,
    valid: DFF<Bit>,
    error: DFF<Bit>,
    /// The last four bytes, which may be the FCS, and how many there are.
    tail: DFF<Bits<32>>,
    held: DFF<Bits<3>>,
    /// Bytes of the frame; stays beyond the limit.
    len: DFF<Bits<14>>,
    crc: DFF<Bits<32>>,
    bad: DFF<Bit>,
    word: DFF<Bits<64>>,
    fill: DFF<Bits<4>>,
    // Output registers.
    out_data: DFF<Bits<64>>,
    out_fill: DFF<Bits<4>>,
    out_last: DFF<Bit>,
    out_err: DFF<Bit>,
    out_valid: DFF<Bit>,
    scrapped: DFF<Bit>,
    mask: LenMask<8, 4>,
    #[init(fcs_step())]
    fold: XorMatrix<40, 32>,
    #[init(Constant::new((model::RESIDUE as u64).to_bits()))]
    residue: Constant<Bits<32>>,
    #[init(Constant::new((model::LONGEST as u64).to_bits()))]
    longest: Constant<Bits<14>>,
    oldest: Signal<Local, Bits<64>>,
    place: Signal<Local, Bits<6>>,
    wrong: Signal<Local, Bit>,
    ended: Signal<Local, Bit>,
}

#[kernel]
impl Logic for GigReceive {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, byte, valid, error, tail, held, len, crc, bad, word, fill);
        dff_setup!(self, clock, out_data, out_fill, out_last, out_err, out_valid, scrapped);
        self.byte.d.next = bit_cast::<8, 4>(self.rise.val().get_bits::<4>(0)) | (bit_cast::<8, 4>(self.fall.val().get_bits::<4>(0)) << 4);
        self.valid.d.next = self.rise.val().get_bit(4);
        // RX_CTL carries RX_DV, then RX_DV xor RX_ER.
        self.error.d.next = self.rise.val().get_bit(4) ^ self.fall.val().get_bit(4);
        self.fold.x.next = bit_cast::<40, 32>(self.crc.q.val()) | (bit_cast::<40, 8>(self.byte.q.val()) << 32);
        self.oldest.next = bit_cast::<64, 8>(self.tail.q.val().get_bits::<8>(0));
        self.place.next = bit_cast::<6, 4>(self.fill.q.val()) << 3;
        self.wrong.next = self.bad.q.val() | (self.crc.q.val() != self.residue.val()) | (self.len.q.val() < 64) | (self.len.q.val() > self.longest.val());
        self.ended.next = (self.state.q.val() == State::Data) & !self.valid.q.val();
        self.out_valid.d.next = false;
        self.scrapped.d.next = false;
        self.out_data.d.next = self.word.q.val();
        self.out_fill.d.next = self.fill.q.val();
        self.out_last.d.next = self.ended.val();
        self.out_err.d.next = self.ended.val() & self.wrong.val();
        match self.state.q.val() {
            State::Idle => {
                self.held.d.next = bits::<3>(0);
                self.len.d.next = bits::<14>(0);
                self.crc.d.next = bits::<32>(0xffff_ffff_u64);
                self.bad.d.next = false;
                self.word.d.next = bits::<64>(0);
                self.fill.d.next = bits::<4>(0);
                if self.valid.q.val() {
                    self.state.d.next = State::Skip;
                    if self.byte.q.val() == 0x55 {
                        self.state.d.next = State::Preamble;
                    }
                    // A preamble that the PHY has eaten but for the delimiter.
                    if self.byte.q.val() == 0xd5 {
                        self.state.d.next = State::Data;
                    }
                }
            }
            State::Preamble => {
                if !self.valid.q.val() {
                    self.state.d.next = State::Idle;
                } else if self.byte.q.val() == 0xd5 {
                    self.state.d.next = State::Data;
                } else if self.byte.q.val() != 0x55 {
                    self.state.d.next = State::Skip;
                }
            }
            State::Data => {
                if self.valid.q.val() {
                    self.crc.d.next = self.fold.y.val();
                    self.bad.d.next = self.bad.q.val() | self.error.q.val();
                    if self.len.q.val() <= self.longest.val() {
                        self.len.d.next = self.len.q.val() + 1;
                    }
                    self.tail.d.next = (self.tail.q.val() >> 8) | (bit_cast::<32, 8>(self.byte.q.val()) << 24);
                    if self.held.q.val() != 4 {
                        self.held.d.next = self.held.q.val() + 1;
                    } else if self.fill.q.val() == 8 {
                        // A full word leaves when a byte follows it: only then it is not the last.
                        self.out_valid.d.next = true;
                        self.word.d.next = self.oldest.val();
                        self.fill.d.next = bits::<4>(1);
                    } else {
                        self.word.d.next = self.word.q.val() | (self.oldest.val() << self.place.val());
                        self.fill.d.next = self.fill.q.val() + 1;
                    }
                } else {
                    self.out_valid.d.next = self.fill.q.val() != 0;
                    self.scrapped.d.next = self.fill.q.val() == 0;
                    self.state.d.next = State::Idle;
                }
            }
            State::Skip => {
                if !self.valid.q.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        self.m.data.next = self.out_data.q.val();
        self.mask.len.next = self.out_fill.q.val();
        self.m.keep.next = self.mask.keep.val();
        self.m.last.next = self.out_last.q.val();
        self.m.valid.next = self.out_valid.q.val();
        self.m_err.next = self.out_err.q.val();
        self.scrap.next = self.scrapped.q.val();
        if self.reset.val() {
            self.state.d.next = State::Skip;
            self.out_valid.d.next = false;
            self.scrapped.d.next = false;
        }
    }
}
