//! Writes, one at a time.

use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// Address and data are taken, each when it comes.
    Take,
    Decide,
    /// Handed on; waits for the answer.
    Wait,
    Answer,
}

/// The writing half of [`super::Ocl`].
#[derive(LogicBlock, BlockDefault)]
pub struct OclWrite<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub aw_valid: Signal<In, Bit>,
    pub aw_ready: Signal<Out, Bit>,
    pub aw_addr: Signal<In, Bits<32>>,
    pub w_valid: Signal<In, Bit>,
    pub w_ready: Signal<Out, Bit>,
    pub w_data: Signal<In, Bits<32>>,
    pub w_strb: Signal<In, Bits<4>>,
    pub b_valid: Signal<Out, Bit>,
    pub b_ready: Signal<In, Bit>,
    /// The write: address, data.
    pub address: Signal<Out, Bits<32>>,
    pub word: Signal<Out, Bits<32>>,
    pub strobes: Signal<Out, Bits<4>>,
    /// The doorbell: address, its eight bytes in their place.
    pub pair_address: Signal<Out, Bits<32>>,
    pub line: Signal<Out, Bits<W>>,
    pub line_strobes: Signal<Out, Bits<K>>,
    pub csr_aw_valid: Signal<Out, Bit>,
    pub csr_aw_ready: Signal<In, Bit>,
    pub csr_w_valid: Signal<Out, Bit>,
    pub csr_w_ready: Signal<In, Bit>,
    pub csr_b_valid: Signal<In, Bit>,
    pub db_aw_valid: Signal<Out, Bit>,
    pub db_aw_ready: Signal<In, Bit>,
    pub db_w_valid: Signal<Out, Bit>,
    pub db_w_ready: Signal<In, Bit>,
    pub db_b_valid: Signal<In, Bit>,
    /// An answer is awaited.
    pub taking: Signal<Out, Bit>,
    state: DFF<State>,
    addr: DFF<Bits<32>>,
    data: DFF<Bits<32>>,
    strb: DFF<Bits<4>>,
    have_addr: DFF<Bit>,
    have_data: DFF<Bit>,
    /// Low word of a doorbell, its address, and that there is one.
    low: DFF<Bits<32>>,
    low_addr: DFF<Bits<32>>,
    have_low: DFF<Bit>,
    pair: DFF<Bits<64>>,
    /// Channels that have not taken the write yet.
    csr_aw: DFF<Bit>,
    csr_w: DFF<Bit>,
    db_aw: DFF<Bit>,
    db_w: DFF<Bit>,
    #[init(Constant::new((K as u64 - 1).to_bits()))]
    within: Constant<Bits<6>>,
    lane: Signal<Local, Bits<6>>,
    shift: Signal<Local, Bits<9>>,
    wide: Signal<Local, Bits<W>>,
    eight: Signal<Local, Bits<K>>,
    whole: Signal<Local, Bit>,
    even: Signal<Local, Bits<32>>,
}

impl<const W: usize, const K: usize> Logic for OclWrite<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, addr, data, strb, have_addr, have_data, low, low_addr, have_low, pair, csr_aw, csr_w, db_aw, db_w);
        self.aw_ready.next = !self.have_addr.q.val();
        self.w_ready.next = !self.have_data.q.val();
        self.b_valid.next = self.state.q.val() == State::Answer;
        self.taking.next = self.state.q.val() == State::Wait;
        self.csr_aw_valid.next = self.csr_aw.q.val();
        self.csr_w_valid.next = self.csr_w.q.val();
        self.db_aw_valid.next = self.db_aw.q.val();
        self.db_w_valid.next = self.db_w.q.val();
        self.address.next = self.addr.q.val();
        self.word.next = self.data.q.val();
        self.strobes.next = self.strb.q.val();
        self.pair_address.next = self.low_addr.q.val();
        self.lane.next = self.low_addr.q.val().get_bits::<6>(0) & self.within.val();
        self.shift.next = bit_cast::<9, 6>(self.lane.val()) << 3;
        self.wide.next = bit_cast::<W, 64>(self.pair.q.val());
        self.line.next = self.wide.val() << self.shift.val();
        self.eight.next = bits::<K>(0xff);
        self.line_strobes.next = self.eight.val() << self.lane.val();
        self.whole.next = self.strb.q.val() == 15;
        self.even.next = self.addr.q.val() & bits::<32>(0xffff_fff8_u64);
        if self.aw_valid.val() & !self.have_addr.q.val() {
            self.addr.d.next = self.aw_addr.val();
            self.have_addr.d.next = true;
        }
        if self.w_valid.val() & !self.have_data.q.val() {
            self.data.d.next = self.w_data.val();
            self.strb.d.next = self.w_strb.val();
            self.have_data.d.next = true;
        }
        if self.csr_aw_ready.val() {
            self.csr_aw.d.next = false;
        }
        if self.csr_w_ready.val() {
            self.csr_w.d.next = false;
        }
        if self.db_aw_ready.val() {
            self.db_aw.d.next = false;
        }
        if self.db_w_ready.val() {
            self.db_w.d.next = false;
        }
        match self.state.q.val() {
            State::Take => {
                if self.have_addr.q.val() & self.have_data.q.val() {
                    self.state.d.next = State::Decide;
                }
            }
            State::Decide => {
                self.state.d.next = State::Answer;
                match self.addr.q.val().get_bits::<4>(12).index() {
                    0 => {
                        self.csr_aw.d.next = true;
                        self.csr_w.d.next = true;
                        self.state.d.next = State::Wait;
                    }
                    1 => {
                        self.have_low.d.next = false;
                        if self.addr.q.val().get_bits::<3>(0) == 0 {
                            self.low.d.next = self.data.q.val();
                            self.low_addr.d.next = self.addr.q.val();
                            self.have_low.d.next = self.whole.val();
                        } else if self.have_low.q.val() & self.whole.val() & (self.addr.q.val().get_bits::<3>(0) == 4) & (self.even.val() == self.low_addr.q.val()) {
                            self.pair.d.next = bit_cast::<64, 32>(self.low.q.val()) | (bit_cast::<64, 32>(self.data.q.val()) << 32);
                            self.db_aw.d.next = true;
                            self.db_w.d.next = true;
                            self.state.d.next = State::Wait;
                        }
                    }
                    _ => {
                        // Work requests in doorbells, and nothing.
                        self.have_low.d.next = false;
                    }
                }
            }
            State::Wait => {
                if self.csr_b_valid.val() | self.db_b_valid.val() {
                    self.state.d.next = State::Answer;
                }
            }
            State::Answer => {
                if self.b_ready.val() {
                    self.state.d.next = State::Take;
                    self.have_addr.d.next = false;
                    self.have_data.d.next = false;
                }
            }
            _ => {
                self.state.d.next = State::Take;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Take;
            self.have_addr.d.next = false;
            self.have_data.d.next = false;
            self.have_low.d.next = false;
            self.csr_aw.d.next = false;
            self.csr_w.d.next = false;
            self.db_aw.d.next = false;
            self.db_w.d.next = false;
        }
    }
}
