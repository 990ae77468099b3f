//! Changes of a region that come from the data path: invalidations by the peer or by a work request, registrations. One at a time; see README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{MrChange, MrChanged, MrWork, TxDone};
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
    /// Local operations, and what became of them.
    pub s_work: MsgSink<MrWork>,
    pub m_worked: MsgSrc<TxDone>,
    /// Pulse: the count of registrations of a region has wrapped; old translations must go.
    pub wrap: Signal<Out, Bit>,
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
    work: DFF<MrWork>,
    /// The peer's; otherwise the answer goes to the requester.
    remote: DFF<Bit>,
    /// Whose turn it is when both want something.
    turn: DFF<Bit>,
    hold: DFF<MrCtx>,
    bad_key: DFF<Bit>,
    bad_owner: DFF<Bit>,
    bad_kind: DFF<Bit>,
    status: DFF<Bits<3>>,
    key: Signal<Local, Bits<32>>,
    index: Signal<Local, Bits<24>>,
    variant: Signal<Local, Bits<8>>,
    excess: Signal<Local, Bits<24>>,
    shared: Signal<Local, Bit>,
    again: Signal<Local, Bits<8>>,
    rights: Signal<Local, Bits<4>>,
    #[init(Constant::new(((1u64 << 24) - (1u64 << LM)).to_bits()))]
    outside: Constant<Bits<24>>,
}

impl<const LM: usize> Logic for Change<LM> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, work, remote, turn, hold, bad_key, bad_owner, bad_kind, status);
        self.s_change.ready.next = (self.state.q.val() == State::Idle) & self.turn.q.val();
        self.s_work.ready.next = (self.state.q.val() == State::Idle) & !self.turn.q.val();
        self.m_changed.valid.next = (self.state.q.val() == State::Answer) & self.remote.q.val();
        self.m_changed.data.next.status = self.status.q.val();
        self.m_worked.valid.next = (self.state.q.val() == State::Answer) & !self.remote.q.val();
        self.m_worked.data.next.qpn = self.work.q.val().qpn;
        self.m_worked.data.next.epoch = bits::<8>(0);
        self.m_worked.data.next.psn = bits::<24>(0);
        self.m_worked.data.next.wqe_index = self.work.q.val().index;
        self.m_worked.data.next.reply = false;
        self.m_worked.data.next.notify = false;
        self.m_worked.data.next.status = bits::<8>(0xfe);
        if self.status.q.val().any() {
            self.m_worked.data.next.status = bits::<8>(6);
        }
        self.key.next = self.work.q.val().key;
        self.index.next = self.key.val().get_bits::<24>(8);
        self.variant.next = self.key.val().get_bits::<8>(0);
        self.excess.next = self.index.val() & self.outside.val();
        self.req.next = self.state.q.val() == State::Ask;
        self.addr.next = self.index.val().get_bits::<LM>(0);
        self.done.next = self.state.q.val() == State::Done;
        self.we.next = !self.status.q.val().any();
        self.new_row.next = self.hold.q.val();
        self.new_row.next.valid = self.work.q.val().register;
        self.again.next = self.hold.q.val().life;
        self.rights.next = self.work.q.val().access;
        if self.work.q.val().register {
            self.new_row.next.variant = self.variant.val();
            self.new_row.next.local_write = self.rights.val().get_bit(0);
            self.new_row.next.remote_write = self.rights.val().get_bit(1);
            self.new_row.next.remote_read = self.rights.val().get_bit(2);
            self.new_row.next.remote_atomic = self.rights.val().get_bit(3);
            self.new_row.next.life = self.again.val() + 1;
            self.new_row.next.start = self.work.q.val().start;
            self.new_row.next.length = self.work.q.val().length;
            // Page tables begin with a cache line.
            self.new_row.next.table = (self.work.q.val().table >> 6) << 6;
        }
        self.wrap.next = self.done.val() & self.we.val() & self.work.q.val().register & self.again.val().all();
        // A key without any right of the peer is none of the peer's.
        self.shared.next = self.hold.q.val().remote_write | self.hold.q.val().remote_read | self.hold.q.val().remote_atomic;
        match self.state.q.val() {
            State::Idle => {
                self.work.d.next = self.s_work.data.val();
                self.remote.d.next = self.turn.q.val();
                self.turn.d.next = !self.turn.q.val();
                if self.turn.q.val() {
                    self.work.d.next.key = self.s_change.data.val().key;
                    self.work.d.next.pd = self.s_change.data.val().pd;
                    self.work.d.next.function = self.s_change.data.val().function;
                    self.work.d.next.register = false;
                }
                if (self.turn.q.val() & self.s_change.valid.val()) | (!self.turn.q.val() & self.s_work.valid.val()) {
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
                // A registration needs a free region and brings its own key.
                self.bad_key.d.next = (self.hold.q.val().valid == self.work.q.val().register)
                    | (self.remote.q.val() & !self.shared.val())
                    | (!self.work.q.val().register & (self.hold.q.val().variant != self.variant.val()))
                    | self.excess.val().any();
                self.bad_owner.d.next = (self.hold.q.val().pd != self.work.q.val().pd)
                    | (self.hold.q.val().function != self.work.q.val().function);
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
                if (self.m_changed.ready.val() & self.remote.q.val()) | (self.m_worked.ready.val() & !self.remote.q.val()) {
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
