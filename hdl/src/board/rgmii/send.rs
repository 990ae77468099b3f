//! Bytes of a frame, one a cycle.

use super::fcs_step;
use crate::bus::AxisSink;
use crate::prim::keep_mask::KeepLen;
use crate::prim::xor_matrix::XorMatrix;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Preamble,
    Data,
    Pad,
    Fcs,
    Gap,
    /// What is left of a frame that was given up.
    Drain,
}

/// Sends frames that come without gaps: preamble, frame, zeros up to 60 bytes, FCS, 12 idle bytes. A frame with a gap, or with
/// `s_err`, goes out with a wrong FCS.
#[derive(LogicBlock, BlockDefault)]
pub struct GigSend {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: AxisSink<64, 8>,
    pub s_err: Signal<In, Bit>,
    pub rise: Signal<Out, Bits<5>>,
    pub fall: Signal<Out, Bits<5>>,
    state: DFF<State>,
    count: DFF<Bits<4>>,
    /// Bytes of the frame sent, up to 60.
    sent: DFF<Bits<6>>,
    word: DFF<Bits<64>>,
    left: DFF<Bits<4>>,
    last: DFF<Bit>,
    bad: DFF<Bit>,
    /// The next beat is taken in this cycle; known a cycle before, since what feeds this block has a long way from `ready`.
    load: DFF<Bit>,
    crc: DFF<Bits<32>>,
    byte: DFF<Bits<8>>,
    valid: DFF<Bit>,
    up: DFF<Bits<5>>,
    down: DFF<Bits<5>>,
    #[init(fcs_step())]
    fold: XorMatrix<40, 32>,
    len: KeepLen<8, 4>,
    data: Signal<Local, Bits<8>>,
    tail: Signal<Local, Bits<8>>,
    out: Signal<Local, Bits<8>>,
    ready: Signal<Local, Bit>,
    final_byte: Signal<Local, Bit>,
}

#[kernel]
impl Logic for GigSend {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, count, sent, word, left, last, bad, load, crc, byte, valid, up, down);
        self.len.keep.next = self.s.keep.val();
        self.final_byte.next = self.left.q.val() == 1;
        self.data.next = bits::<8>(0);
        if self.state.q.val() == State::Data {
            self.data.next = self.word.q.val().get_bits::<8>(0);
        }
        self.fold.x.next = bit_cast::<40, 32>(self.crc.q.val()) | (bit_cast::<40, 8>(self.data.val()) << 32);
        self.tail.next = !self.crc.q.val().get_bits::<8>(0);
        if self.bad.q.val() {
            self.tail.next = self.crc.q.val().get_bits::<8>(0);
        }
        self.ready.next = self.load.q.val();
        self.load.d.next = false;
        self.out.next = self.data.val();
        self.valid.d.next = true;
        match self.state.q.val() {
            State::Idle => {
                self.valid.d.next = false;
                self.count.d.next = bits::<4>(0);
                self.sent.d.next = bits::<6>(0);
                self.bad.d.next = false;
                self.crc.d.next = bits::<32>(0xffff_ffff_u64);
                if self.s.valid.val() {
                    self.state.d.next = State::Preamble;
                }
            }
            State::Preamble => {
                self.out.next = bits::<8>(0x55);
                self.count.d.next = self.count.q.val() + 1;
                self.load.d.next = self.count.q.val() == 6;
                if self.count.q.val() == 7 {
                    self.out.next = bits::<8>(0xd5);
                    self.count.d.next = bits::<4>(0);
                    self.state.d.next = State::Data;
                }
            }
            State::Data => {
                self.crc.d.next = self.fold.y.val();
                self.word.d.next = self.word.q.val() >> 8;
                self.left.d.next = self.left.q.val() - 1;
                if self.sent.q.val() != 60 {
                    self.sent.d.next = self.sent.q.val() + 1;
                }
                self.load.d.next = (self.left.q.val() == 2) & !self.last.q.val();
                if self.final_byte.val() & self.last.q.val() {
                    self.state.d.next = State::Pad;
                    if self.sent.q.val() >= 59 {
                        self.state.d.next = State::Fcs;
                    }
                }
            }
            State::Pad => {
                self.crc.d.next = self.fold.y.val();
                self.sent.d.next = self.sent.q.val() + 1;
                if self.sent.q.val() == 59 {
                    self.state.d.next = State::Fcs;
                }
            }
            State::Fcs => {
                self.out.next = self.tail.val();
                self.crc.d.next = self.crc.q.val() >> 8;
                self.count.d.next = self.count.q.val() + 1;
                if self.count.q.val() == 3 {
                    self.count.d.next = bits::<4>(0);
                    self.state.d.next = State::Gap;
                }
            }
            State::Gap => {
                self.valid.d.next = false;
                self.count.d.next = self.count.q.val() + 1;
                if self.count.q.val() == 11 {
                    self.state.d.next = State::Drain;
                    if self.last.q.val() {
                        self.state.d.next = State::Idle;
                    }
                }
            }
            State::Drain => {
                self.valid.d.next = false;
                self.ready.next = true;
                if self.s.valid.val() & self.s.last.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        self.s.ready.next = self.ready.val();
        if self.ready.val() {
            self.word.d.next = self.s.data.val();
            self.left.d.next = bits::<4>(8);
            if self.s.last.val() {
                self.left.d.next = self.len.len.val();
            }
            self.last.d.next = self.s.last.val();
            if self.s.valid.val() {
                self.bad.d.next = self.bad.q.val() | (self.s.last.val() & self.s_err.val());
            } else if self.state.q.val() != State::Drain {
                // The frame was cut: it ends here, with a wrong FCS.
                self.bad.d.next = true;
                self.last.d.next = false;
                self.state.d.next = State::Fcs;
            }
        }
        self.byte.d.next = self.out.val();
        self.up.d.next = bit_cast::<5, 4>(self.byte.q.val().get_bits::<4>(0)) | (bit_cast::<5, 1>(self.valid.q.val().into()) << 4);
        self.down.d.next = bit_cast::<5, 4>(self.byte.q.val().get_bits::<4>(4)) | (bit_cast::<5, 1>(self.valid.q.val().into()) << 4);
        self.rise.next = self.up.q.val();
        self.fall.next = self.down.q.val();
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.valid.d.next = false;
            self.load.d.next = false;
        }
    }
}
