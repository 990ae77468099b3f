//! Writes, one at a time.

use crate::board::lite::WriteSink;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// Handed on; waits for the answer.
    Wait,
}

/// The writing half of [`super::Ocl`].
#[derive(LogicBlock, BlockDefault)]
pub struct OclWrite<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: WriteSink<32>,
    /// The doorbell: address, its eight bytes in their place.
    pub pair_address: Signal<Out, Bits<32>>,
    pub line: Signal<Out, Bits<W>>,
    pub line_strobes: Signal<Out, Bits<K>>,
    /// Pulse: the write goes to the registers, the doorbell to the doorbells.
    pub csr_go: Signal<Out, Bit>,
    pub db_go: Signal<Out, Bit>,
    pub csr_b_valid: Signal<In, Bit>,
    pub db_b_valid: Signal<In, Bit>,
    /// An answer is awaited.
    pub taking: Signal<Out, Bit>,
    state: DFF<State>,
    /// Low word of a doorbell, its address, and that there is one.
    low: DFF<Bits<32>>,
    low_addr: DFF<Bits<32>>,
    have_low: DFF<Bit>,
    pair: DFF<Bits<64>>,
    #[init(Constant::new((K as u64 - 1).to_bits()))]
    within: Constant<Bits<6>>,
    lane: Signal<Local, Bits<6>>,
    shift: Signal<Local, Bits<9>>,
    wide: Signal<Local, Bits<W>>,
    eight: Signal<Local, Bits<K>>,
    whole: Signal<Local, Bit>,
    even: Signal<Local, Bits<32>>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for OclWrite<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, low, low_addr, have_low, pair);
        self.s.done.next = false;
        self.s.resp.next = bits::<2>(0);
        self.csr_go.next = false;
        self.db_go.next = false;
        self.taking.next = self.state.q.val() == State::Wait;
        self.pair_address.next = self.low_addr.q.val();
        self.lane.next = self.low_addr.q.val().get_bits::<6>(0) & self.within.val();
        self.shift.next = bit_cast::<9, 6>(self.lane.val()) << 3;
        self.wide.next = bit_cast::<W, 64>(self.pair.q.val());
        self.line.next = self.wide.val() << self.shift.val();
        self.eight.next = bits::<K>(0xff);
        self.line_strobes.next = self.eight.val() << self.lane.val();
        self.whole.next = self.s.strb.val() == 15;
        self.even.next = self.s.addr.val() & bits::<32>(0xffff_fff8_u64);
        match self.state.q.val() {
            State::Idle => {
                if self.s.held.val() {
                    self.s.done.next = true;
                    match self.s.addr.val().get_bits::<4>(12).index() {
                        0 => {
                            self.csr_go.next = true;
                            self.s.done.next = false;
                            self.state.d.next = State::Wait;
                        }
                        1 => {
                            self.have_low.d.next = false;
                            if self.s.addr.val().get_bits::<3>(0) == 0 {
                                self.low.d.next = self.s.data.val();
                                self.low_addr.d.next = self.s.addr.val();
                                self.have_low.d.next = self.whole.val();
                            } else if self.have_low.q.val() & self.whole.val() & (self.s.addr.val().get_bits::<3>(0) == 4) & (self.even.val() == self.low_addr.q.val()) {
                                self.pair.d.next = bit_cast::<64, 32>(self.low.q.val()) | (bit_cast::<64, 32>(self.s.data.val()) << 32);
                                self.db_go.next = true;
                                self.s.done.next = false;
                                self.state.d.next = State::Wait;
                            }
                        }
                        _ => {
                            // Work requests in doorbells, and nothing.
                            self.have_low.d.next = false;
                        }
                    }
                }
            }
            State::Wait => {
                if self.csr_b_valid.val() | self.db_b_valid.val() {
                    self.s.done.next = true;
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.have_low.d.next = false;
        }
    }
}
