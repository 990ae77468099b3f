//! Reads, one at a time.

use ferric_abi::csr;
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Decide,
    /// Asked; waits for the answer.
    Wait,
    Answer,
}

/// The reading half of [`super::Ocl`].
#[derive(LogicBlock, BlockDefault)]
pub struct OclRead {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ar_valid: Signal<In, Bit>,
    pub ar_ready: Signal<Out, Bit>,
    pub ar_addr: Signal<In, Bits<32>>,
    pub r_valid: Signal<Out, Bit>,
    pub r_ready: Signal<In, Bit>,
    pub r_data: Signal<Out, Bits<32>>,
    pub address: Signal<Out, Bits<32>>,
    pub csr_ar_valid: Signal<Out, Bit>,
    pub csr_ar_ready: Signal<In, Bit>,
    pub csr_r_valid: Signal<In, Bit>,
    pub csr_r_data: Signal<In, Bits<32>>,
    /// An answer is awaited.
    pub taking: Signal<Out, Bit>,
    state: DFF<State>,
    addr: DFF<Bits<32>>,
    data: DFF<Bits<32>>,
    asking: DFF<Bit>,
    #[init(Constant::new((csr::CAPS3 as u64).to_bits()))]
    caps3: Constant<Bits<16>>,
}

impl Logic for OclRead {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, addr, data, asking);
        self.ar_ready.next = self.state.q.val() == State::Idle;
        self.r_valid.next = self.state.q.val() == State::Answer;
        self.taking.next = self.state.q.val() == State::Wait;
        self.csr_ar_valid.next = self.asking.q.val();
        self.address.next = self.addr.q.val();
        self.r_data.next = self.data.q.val();
        if self.csr_ar_ready.val() {
            self.asking.d.next = false;
        }
        match self.state.q.val() {
            State::Idle => {
                self.addr.d.next = self.ar_addr.val();
                self.data.d.next = bits::<32>(0);
                if self.ar_valid.val() {
                    self.state.d.next = State::Decide;
                }
            }
            State::Decide => {
                self.state.d.next = State::Answer;
                if self.addr.q.val().get_bits::<4>(12) == 0 {
                    self.asking.d.next = true;
                    self.state.d.next = State::Wait;
                }
            }
            State::Wait => {
                if self.csr_r_valid.val() {
                    self.data.d.next = self.csr_r_data.val();
                    if self.addr.q.val().get_bits::<16>(0) == self.caps3.val() {
                        // No work requests in doorbells through this bus.
                        self.data.d.next = self.csr_r_data.val() & bits::<32>(0xfffe_ffff_u64);
                    }
                    self.state.d.next = State::Answer;
                }
            }
            State::Answer => {
                if self.r_ready.val() {
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
