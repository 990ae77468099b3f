//! Reads, one at a time.

use crate::board::lite::ReadSink;
use ferric_abi::csr;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// Asked; waits for the answer.
    Wait,
}

/// The reading half of [`super::Ocl`].
#[derive(LogicBlock, BlockDefault)]
pub struct OclRead {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: ReadSink<32>,
    pub csr_ar_valid: Signal<Out, Bit>,
    pub csr_ar_ready: Signal<In, Bit>,
    pub csr_r_valid: Signal<In, Bit>,
    pub csr_r_data: Signal<In, Bits<32>>,
    /// An answer is awaited.
    pub taking: Signal<Out, Bit>,
    state: DFF<State>,
    asking: DFF<Bit>,
    #[init(Constant::new((csr::CAPS3 as u64).to_bits()))]
    caps3: Constant<Bits<16>>,
}

#[kernel]
impl Logic for OclRead {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, asking);
        self.taking.next = self.state.q.val() == State::Wait;
        self.csr_ar_valid.next = self.asking.q.val();
        self.s.done.next = false;
        self.s.data.next = bits::<32>(0);
        self.s.resp.next = bits::<2>(0);
        if self.csr_ar_ready.val() {
            self.asking.d.next = false;
        }
        match self.state.q.val() {
            State::Idle => {
                if self.s.held.val() {
                    if self.s.addr.val().get_bits::<4>(12) == 0 {
                        self.asking.d.next = true;
                        self.state.d.next = State::Wait;
                    } else {
                        self.s.done.next = true;
                    }
                }
            }
            State::Wait => {
                self.s.data.next = self.csr_r_data.val();
                if self.s.addr.val().get_bits::<16>(0) == self.caps3.val() {
                    // No work requests in doorbells through this bus.
                    self.s.data.next = self.csr_r_data.val() & bits::<32>(0xfffe_ffff_u64);
                }
                if self.csr_r_valid.val() {
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
            self.asking.d.next = false;
        }
    }
}
