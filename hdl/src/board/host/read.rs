//! Reads, one at a time, in order.

use crate::prim::word::WordPut;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Decide,
    /// Asked; waits for the answer.
    Wait,
    Place,
    Answer,
}

/// The reading half of [`super::Host`].
#[derive(LogicBlock, BlockDefault)]
pub struct HostRead<const W: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ar_id: Signal<In, Bits<4>>,
    pub ar_addr: Signal<In, Bits<64>>,
    pub ar_len: Signal<In, Bits<8>>,
    pub ar_valid: Signal<In, Bit>,
    pub ar_ready: Signal<Out, Bit>,
    pub r_id: Signal<Out, Bits<4>>,
    pub r_data: Signal<Out, Bits<W>>,
    pub r_last: Signal<Out, Bit>,
    pub r_valid: Signal<Out, Bit>,
    pub r_ready: Signal<In, Bit>,
    pub address: Signal<Out, Bits<32>>,
    pub csr_ar_valid: Signal<Out, Bit>,
    pub csr_ar_ready: Signal<In, Bit>,
    pub csr_r_valid: Signal<In, Bit>,
    pub csr_r_data: Signal<In, Bits<32>>,
    pub tbl_ar_valid: Signal<Out, Bit>,
    pub tbl_ar_ready: Signal<In, Bit>,
    pub tbl_r_valid: Signal<In, Bit>,
    pub tbl_r_data: Signal<In, Bits<32>>,
    /// An answer is awaited.
    pub taking: Signal<Out, Bit>,
    state: DFF<State>,
    id: DFF<Bits<4>>,
    addr: DFF<Bits<64>>,
    /// Beats still to answer, less one.
    left: DFF<Bits<8>>,
    last: DFF<Bit>,
    word: DFF<Bits<32>>,
    line: DFF<Bits<W>>,
    csr_ar: DFF<Bit>,
    tbl_ar: DFF<Bit>,
    put: WordPut<Bits<W>>,
    one: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize> Logic for HostRead<W> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, id, addr, left, last, word, line, csr_ar, tbl_ar);
        self.ar_ready.next = self.state.q.val() == State::Idle;
        self.r_valid.next = self.state.q.val() == State::Answer;
        self.r_id.next = self.id.q.val();
        self.r_data.next = self.line.q.val();
        self.r_last.next = self.last.q.val();
        self.taking.next = self.state.q.val() == State::Wait;
        self.csr_ar_valid.next = self.csr_ar.q.val();
        self.tbl_ar_valid.next = self.tbl_ar.q.val();
        self.address.next = bit_cast::<32, 20>(self.addr.q.val().get_bits::<20>(0));
        self.put.x.next = bits::<W>(0);
        self.put.sel.next = bit_cast::<6, 4>(self.addr.q.val().get_bits::<4>(2));
        self.put.data.next = self.word.q.val();
        self.one.next = !self.left.q.val().any();
        if self.csr_ar_ready.val() {
            self.csr_ar.d.next = false;
        }
        if self.tbl_ar_ready.val() {
            self.tbl_ar.d.next = false;
        }
        match self.state.q.val() {
            State::Idle => {
                self.id.d.next = self.ar_id.val();
                self.addr.d.next = self.ar_addr.val();
                self.left.d.next = self.ar_len.val();
                self.word.d.next = bits::<32>(0);
                if self.ar_valid.val() {
                    self.state.d.next = State::Decide;
                }
            }
            State::Decide => {
                self.state.d.next = State::Place;
                if self.one.val() & !self.addr.q.val().get_bits::<43>(21).any() {
                    if self.addr.q.val().get_bit(20) {
                        if !self.addr.q.val().get_bits::<7>(13).any() {
                            self.tbl_ar.d.next = true;
                            self.state.d.next = State::Wait;
                        }
                    } else if !self.addr.q.val().get_bits::<4>(12).any() {
                        self.csr_ar.d.next = true;
                        self.state.d.next = State::Wait;
                    }
                }
            }
            State::Wait => {
                if self.csr_r_valid.val() {
                    self.word.d.next = self.csr_r_data.val();
                    self.state.d.next = State::Place;
                }
                if self.tbl_r_valid.val() {
                    self.word.d.next = self.tbl_r_data.val();
                    self.state.d.next = State::Place;
                }
            }
            State::Place => {
                self.line.d.next = self.put.y.val();
                self.last.d.next = self.one.val();
                self.state.d.next = State::Answer;
            }
            State::Answer => {
                if self.r_ready.val() {
                    self.left.d.next = self.left.q.val() - 1;
                    self.last.d.next = self.left.q.val() == 1;
                    if self.last.q.val() {
                        self.state.d.next = State::Idle;
                    }
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.csr_ar.d.next = false;
            self.tbl_ar.d.next = false;
        }
    }
}
