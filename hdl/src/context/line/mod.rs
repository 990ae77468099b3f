//! Adapter from the control bus (32-bit words) to whole rows of a table. See README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{CtlReq, CtlResp};
use crate::prim::word::{WordPick, WordPut};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Ask,
    Merge,
    Done,
    Answer,
}

/// Word access to a table of `2^A` rows of type `T`.
///
/// The owner of the table sees `req` with `addr`, locks the row, answers once with `row_valid` and `row`, and keeps the
/// row to itself until `done`, when it stores `new_row` if `we`. Any number of cycles may pass before `row_valid`.
#[derive(LogicBlock, BlockDefault)]
#[demand((1..=24).contains(&A), "a line number has 24 bits")]
pub struct CtlLine<T: Synth, const A: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; drops the access in progress.
    pub reset: Signal<In, Bit>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// A row is wanted; falls in the cycle after `row_valid`.
    pub req: Signal<Out, Bit>,
    /// Number of the row, steady from `req` to `done`.
    pub addr: Signal<Out, Bits<A>>,
    /// `row` is the wanted row and now locked.
    pub row_valid: Signal<In, Bit>,
    pub row: Signal<In, T>,
    /// One cycle: the access is over.
    pub done: Signal<Out, Bit>,
    /// With `done`: store `new_row`.
    pub we: Signal<Out, Bit>,
    pub new_row: Signal<Out, T>,
    state: DFF<State>,
    access: DFF<CtlReq>,
    hold: DFF<T>,
    answer: DFF<CtlResp>,
    pick: WordPick<T>,
    put: WordPut<T>,
    #[init(Constant::new(((1u64 << 24) - (1u64 << A)).to_bits()))]
    outside: Constant<Bits<24>>,
    excess: Signal<Local, Bits<24>>,
    bad: Signal<Local, Bit>,
    line: Signal<Local, Bits<24>>,
}

#[kernel]
impl<T: Synth, const A: usize> Logic for CtlLine<T, A> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, access, hold, answer);
        self.s_ctl.ready.next = false;
        self.m_ctl.valid.next = false;
        self.m_ctl.data.next = self.answer.q.val();
        self.req.next = false;
        self.done.next = false;
        self.we.next = self.access.q.val().write;
        self.new_row.next = self.hold.q.val();
        self.line.next = self.access.q.val().line;
        self.addr.next = self.line.val().get_bits::<A>(0);
        self.pick.x.next = self.hold.q.val();
        self.pick.sel.next = self.access.q.val().word;
        self.put.x.next = self.hold.q.val();
        self.put.sel.next = self.access.q.val().word;
        self.put.data.next = self.access.q.val().data;
        self.excess.next = self.s_ctl.data.val().line & self.outside.val();
        self.bad.next = self.excess.val().any();
        match self.state.q.val() {
            State::Idle => {
                self.s_ctl.ready.next = true;
                self.access.d.next = self.s_ctl.data.val();
                self.answer.d.next.data = bits::<32>(0);
                self.answer.d.next.err = self.bad.val();
                if self.s_ctl.valid.val() {
                    self.state.d.next = State::Ask;
                    if self.bad.val() {
                        self.state.d.next = State::Answer;
                    }
                }
            }
            State::Ask => {
                self.req.next = true;
                self.hold.d.next = self.row.val();
                if self.row_valid.val() {
                    self.state.d.next = State::Merge;
                }
            }
            State::Merge => {
                self.hold.d.next = self.put.y.val();
                self.answer.d.next.data = self.pick.y.val();
                self.state.d.next = State::Done;
            }
            State::Done => {
                self.done.next = true;
                self.state.d.next = State::Answer;
            }
            State::Answer => {
                self.m_ctl.valid.next = true;
                if self.m_ctl.ready.val() {
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

#[cfg(test)]
mod tests;
