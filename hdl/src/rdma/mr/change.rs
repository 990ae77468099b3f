//! Changes of a region that come from the data path: a peer's invalidation. One at a time; see README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{MrChange, MrChanged};
use crate::records::MrCtx;
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Ask,
    Judge,
    Decide,
    Done,
    Answer,
}

/// Reads, judges and writes one line of the table of `2^LM` regions; towards the table it behaves as `host/ctl/line` does.
#[derive(LogicBlock, BlockDefault)]
#[demand((1..=16).contains(&LM), "as the table")]
pub struct Change<const LM: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_change: MsgSink<MrChange>,
    pub m_changed: MsgSrc<MrChanged>,
    /// A row is wanted, until `row_valid`.
    pub req: Signal<Out, Bit>,
    pub addr: Signal<Out, Bits<LM>>,
    pub row_valid: Signal<In, Bit>,
    pub row: Signal<In, MrCtx>,
    /// One cycle: the access is over; store `new_row` if `we`.
    pub done: Signal<Out, Bit>,
    pub we: Signal<Out, Bit>,
    pub new_row: Signal<Out, MrCtx>,
    state: DFF<State>,
    change: DFF<MrChange>,
    hold: DFF<MrCtx>,
    bad_key: DFF<Bit>,
    bad_owner: DFF<Bit>,
    bad_kind: DFF<Bit>,
    status: DFF<Bits<3>>,
    key: Signal<Local, Bits<32>>,
    index: Signal<Local, Bits<24>>,
    variant: Signal<Local, Bits<8>>,
    excess: Signal<Local, Bits<24>>,
    remote: Signal<Local, Bit>,
    #[init(Constant::new(((1u64 << 24) - (1u64 << LM)).to_bits()))]
    outside: Constant<Bits<24>>,
}

impl<const LM: usize> Logic for Change<LM> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, change, hold, bad_key, bad_owner, bad_kind, status);
        self.s_change.ready.next = self.state.q.val() == State::Idle;
        self.m_changed.valid.next = self.state.q.val() == State::Answer;
        self.m_changed.data.next.status = self.status.q.val();
        self.key.next = self.change.q.val().key;
        self.index.next = self.key.val().get_bits::<24>(8);
        self.variant.next = self.key.val().get_bits::<8>(0);
        self.excess.next = self.index.val() & self.outside.val();
        self.req.next = self.state.q.val() == State::Ask;
        self.addr.next = self.index.val().get_bits::<LM>(0);
        self.done.next = self.state.q.val() == State::Done;
        self.we.next = !self.status.q.val().any();
        self.new_row.next = self.hold.q.val();
        self.new_row.next.valid = false;
        // A key without any right of the peer is none of the peer's.
        self.remote.next = self.hold.q.val().remote_write | self.hold.q.val().remote_read | self.hold.q.val().remote_atomic;
        match self.state.q.val() {
            State::Idle => {
                self.change.d.next = self.s_change.data.val();
                if self.s_change.valid.val() {
                    self.state.d.next = State::Ask;
                }
            }
            State::Ask => {
                self.hold.d.next = self.row.val();
                if self.row_valid.val() {
                    self.state.d.next = State::Judge;
                }
            }
            State::Judge => {
                self.bad_key.d.next = !self.hold.q.val().valid
                    | !self.remote.val()
                    | (self.hold.q.val().variant != self.variant.val())
                    | self.excess.val().any();
                self.bad_owner.d.next = (self.hold.q.val().pd != self.change.q.val().pd)
                    | (self.hold.q.val().function != self.change.q.val().function);
                self.bad_kind.d.next = !self.hold.q.val().fast;
                self.state.d.next = State::Decide;
            }
            State::Decide => {
                self.status.d.next = bits::<3>(0);
                if self.bad_key.q.val() {
                    self.status.d.next = bits::<3>(1);
                } else if self.bad_owner.q.val() {
                    self.status.d.next = bits::<3>(2);
                } else if self.bad_kind.q.val() {
                    self.status.d.next = bits::<3>(4);
                }
                self.state.d.next = State::Done;
            }
            State::Done => {
                self.state.d.next = State::Answer;
            }
            State::Answer => {
                if self.m_changed.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
