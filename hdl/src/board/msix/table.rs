//! The table as software sees it: one access at a time.

use crate::prim::ram::Ram;
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Write,
    Written,
    Look,
    Found,
    Answer,
}

/// 32 entries of four words (address low and high, data, mask bit) at 0, pending bits at 0x1000 (PCI Express base
/// specification, 7.7.2). Writes need all four strobes.
#[derive(LogicBlock, BlockDefault)]
pub struct Table {
    pub clock: Signal<In, Clock>,
    /// Masks all vectors; the entries stay.
    pub reset: Signal<In, Bit>,
    pub aw_valid: Signal<In, Bit>,
    pub aw_ready: Signal<Out, Bit>,
    pub aw_addr: Signal<In, Bits<13>>,
    pub w_valid: Signal<In, Bit>,
    pub w_ready: Signal<Out, Bit>,
    pub w_data: Signal<In, Bits<32>>,
    pub w_strb: Signal<In, Bits<4>>,
    pub b_valid: Signal<Out, Bit>,
    pub b_ready: Signal<In, Bit>,
    pub ar_valid: Signal<In, Bit>,
    pub ar_ready: Signal<Out, Bit>,
    pub ar_addr: Signal<In, Bits<13>>,
    pub r_valid: Signal<Out, Bit>,
    pub r_ready: Signal<In, Bit>,
    pub r_data: Signal<Out, Bits<32>>,
    pub masks: Signal<Out, Bits<32>>,
    pub pending: Signal<In, Bits<32>>,
    /// A word for the one who sends messages.
    pub look: Signal<In, Bits<7>>,
    pub found: Signal<Out, Bits<32>>,
    state: DFF<State>,
    addr: DFF<Bits<13>>,
    data: DFF<Bits<32>>,
    strb: DFF<Bits<4>>,
    have_addr: DFF<Bit>,
    /// A read may come in this cycle, else a write.
    turn: DFF<Bit>,
    have_data: DFF<Bit>,
    /// Mask bits, inverted: masked is what all are at first.
    unmasked: DFF<Bits<32>>,
    answer: DFF<Bits<32>>,
    seen: Ram<Bits<32>, 7>,
    sent: Ram<Bits<32>, 7>,
    one: Signal<Local, Bits<32>>,
    entry: Signal<Local, Bit>,
    control: Signal<Local, Bit>,
    down: Signal<Local, Bits<32>>,
}

impl Logic for Table {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, addr, data, strb, have_addr, turn, have_data, unmasked, answer);
        clock!(self, clock, seen, sent);
        self.aw_ready.next = !self.have_addr.q.val() & !self.turn.q.val();
        self.w_ready.next = !self.have_data.q.val();
        self.b_valid.next = self.state.q.val() == State::Written;
        // One address register: reads and writes have it in turn.
        self.turn.d.next = !self.turn.q.val();
        self.ar_ready.next = (self.state.q.val() == State::Idle) & !self.have_addr.q.val() & self.turn.q.val();
        self.r_valid.next = self.state.q.val() == State::Answer;
        self.r_data.next = self.answer.q.val();
        self.masks.next = !self.unmasked.q.val();
        self.seen.write_addr.next = self.addr.q.val().get_bits::<7>(2);
        self.seen.write_data.next = self.data.q.val();
        self.seen.read_addr.next = self.addr.q.val().get_bits::<7>(2);
        self.sent.write_addr.next = self.addr.q.val().get_bits::<7>(2);
        self.sent.write_data.next = self.data.q.val();
        self.sent.read_addr.next = self.look.val();
        self.found.next = self.sent.read_data.val();
        self.seen.write_en.next = false;
        self.sent.write_en.next = false;
        self.entry.next = !self.addr.q.val().get_bits::<4>(9).any();
        self.control.next = self.addr.q.val().get_bits::<2>(2) == 3;
        self.one.next = bits::<32>(1) << self.addr.q.val().get_bits::<5>(4);
        self.down.next = self.unmasked.q.val() & self.one.val();
        if self.aw_valid.val() & !self.have_addr.q.val() & !self.turn.q.val() {
            self.addr.d.next = self.aw_addr.val();
            self.have_addr.d.next = true;
        }
        if self.w_valid.val() & !self.have_data.q.val() {
            self.data.d.next = self.w_data.val();
            self.strb.d.next = self.w_strb.val();
            self.have_data.d.next = true;
        }
        match self.state.q.val() {
            State::Idle => {
                if self.have_addr.q.val() {
                    if self.have_data.q.val() {
                        self.state.d.next = State::Write;
                    }
                } else if self.ar_valid.val() & self.turn.q.val() {
                    self.addr.d.next = self.ar_addr.val();
                    self.state.d.next = State::Look;
                    self.have_addr.d.next = true;
                }
            }
            State::Write => {
                if self.entry.val() & (self.strb.q.val() == 15) {
                    if self.control.val() {
                        self.unmasked.d.next = self.unmasked.q.val() | self.one.val();
                        if self.data.q.val().get_bit(0) {
                            self.unmasked.d.next = self.unmasked.q.val() & !self.one.val();
                        }
                    } else {
                        self.seen.write_en.next = true;
                        self.sent.write_en.next = true;
                    }
                }
                self.state.d.next = State::Written;
            }
            State::Written => {
                if self.b_ready.val() {
                    self.have_addr.d.next = false;
                    self.have_data.d.next = false;
                    self.state.d.next = State::Idle;
                }
            }
            State::Look => {
                self.state.d.next = State::Found;
            }
            State::Found => {
                self.answer.d.next = bits::<32>(0);
                if self.entry.val() {
                    self.answer.d.next = self.seen.read_data.val();
                    if self.control.val() {
                        self.answer.d.next = bits::<32>(1);
                        if self.down.val().any() {
                            self.answer.d.next = bits::<32>(0);
                        }
                    }
                } else if self.addr.q.val().get_bits::<11>(2) == 0x400 {
                    self.answer.d.next = self.pending.val();
                }
                self.state.d.next = State::Answer;
            }
            State::Answer => {
                if self.r_ready.val() {
                    self.have_addr.d.next = false;
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.have_addr.d.next = false;
            self.have_data.d.next = false;
            self.unmasked.d.next = bits::<32>(0);
        }
    }
}
