//! Writes, one at a time, in order.

use crate::prim::word::WordPick;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Take,
    Decide,
    /// A register or table write waits for its answer.
    Wait,
    /// A doorbell waits to be taken.
    Ring,
    /// Further beats of a burst that nothing takes.
    Drain,
    Answer,
}

/// The writing half of [`super::Host`].
#[derive(LogicBlock, BlockDefault)]
pub struct HostWrite<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub aw_id: Signal<In, Bits<4>>,
    pub aw_addr: Signal<In, Bits<64>>,
    pub aw_valid: Signal<In, Bit>,
    pub aw_ready: Signal<Out, Bit>,
    pub w_data: Signal<In, Bits<W>>,
    pub w_strb: Signal<In, Bits<K>>,
    pub w_last: Signal<In, Bit>,
    pub w_valid: Signal<In, Bit>,
    pub w_ready: Signal<Out, Bit>,
    pub b_id: Signal<Out, Bits<4>>,
    pub b_valid: Signal<Out, Bit>,
    pub b_ready: Signal<In, Bit>,
    /// Function and offset of the write.
    pub address: Signal<Out, Bits<32>>,
    /// The addressed 32-bit word of the beat.
    pub word: Signal<Out, Bits<32>>,
    pub word_strobes: Signal<Out, Bits<4>>,
    pub line: Signal<Out, Bits<W>>,
    pub line_strobes: Signal<Out, Bits<K>>,
    /// Pulse: the write goes to the registers, to the table, to the doorbells.
    pub csr_go: Signal<Out, Bit>,
    pub tbl_go: Signal<Out, Bit>,
    pub db_go: Signal<Out, Bit>,
    pub csr_b_valid: Signal<In, Bit>,
    pub tbl_b_valid: Signal<In, Bit>,
    /// The doorbell is taken.
    pub db_taken: Signal<In, Bit>,
    /// An answer is awaited.
    pub taking: Signal<Out, Bit>,
    state: DFF<State>,
    id: DFF<Bits<4>>,
    addr: DFF<Bits<64>>,
    data: DFF<Bits<W>>,
    strb: DFF<Bits<K>>,
    /// The beat is the write's only one.
    ended: DFF<Bit>,
    have_addr: DFF<Bit>,
    have_data: DFF<Bit>,
    picked: DFF<Bits<32>>,
    picked_strb: DFF<Bits<4>>,
    pick: WordPick<Bits<W>>,
    lane: Signal<Local, Bits<6>>,
    shifted: Signal<Local, Bits<K>>,
    inside: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for HostWrite<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, id, addr, data, strb, ended, have_addr, have_data, picked, picked_strb);
        self.aw_ready.next = !self.have_addr.q.val();
        self.w_ready.next = !self.have_data.q.val() | (self.state.q.val() == State::Drain);
        self.b_valid.next = self.state.q.val() == State::Answer;
        self.b_id.next = self.id.q.val();
        self.taking.next = self.state.q.val() == State::Wait;
        self.csr_go.next = false;
        self.tbl_go.next = false;
        self.db_go.next = false;
        // Bit 20 chooses the table; the window's bits go on.
        self.address.next = bit_cast::<32, 20>(self.addr.q.val().get_bits::<20>(0));
        self.line.next = self.data.q.val();
        self.line_strobes.next = self.strb.q.val();
        self.word.next = self.picked.q.val();
        self.word_strobes.next = self.picked_strb.q.val();
        self.pick.x.next = self.data.q.val();
        self.pick.sel.next = bit_cast::<6, 4>(self.addr.q.val().get_bits::<4>(2));
        self.picked.d.next = self.pick.y.val();
        self.lane.next = bit_cast::<6, 4>(self.addr.q.val().get_bits::<4>(2)) << 2;
        self.shifted.next = self.strb.q.val() >> self.lane.val();
        self.picked_strb.d.next = self.shifted.val().get_bits::<4>(0);
        self.inside.next = !self.addr.q.val().get_bits::<43>(21).any();
        if self.aw_valid.val() & !self.have_addr.q.val() {
            self.id.d.next = self.aw_id.val();
            self.addr.d.next = self.aw_addr.val();
            self.have_addr.d.next = true;
        }
        if self.w_valid.val() & !self.have_data.q.val() {
            self.data.d.next = self.w_data.val();
            self.strb.d.next = self.w_strb.val();
            self.ended.d.next = self.w_last.val();
            self.have_data.d.next = true;
        }
        match self.state.q.val() {
            State::Take => {
                if self.have_addr.q.val() & self.have_data.q.val() {
                    self.state.d.next = State::Decide;
                }
            }
            State::Decide => {
                self.state.d.next = State::Answer;
                if !self.ended.q.val() {
                    self.state.d.next = State::Drain;
                } else if self.inside.val() & self.addr.q.val().get_bit(20) {
                    if !self.addr.q.val().get_bits::<7>(13).any() {
                        self.tbl_go.next = true;
                        self.state.d.next = State::Wait;
                    }
                } else if self.inside.val() {
                    match self.addr.q.val().get_bits::<4>(12).index() {
                        0 => {
                            self.csr_go.next = true;
                            self.state.d.next = State::Wait;
                        }
                        1 => {
                            self.db_go.next = true;
                            self.state.d.next = State::Ring;
                        }
                        2 => {
                            self.db_go.next = true;
                            self.state.d.next = State::Ring;
                        }
                        _ => {
                            self.state.d.next = State::Answer;
                        }
                    }
                }
            }
            State::Wait => {
                if self.csr_b_valid.val() | self.tbl_b_valid.val() {
                    self.state.d.next = State::Answer;
                }
            }
            State::Ring => {
                if self.db_taken.val() {
                    self.state.d.next = State::Answer;
                }
            }
            State::Drain => {
                if self.w_valid.val() & self.w_last.val() {
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
        }
    }
}
