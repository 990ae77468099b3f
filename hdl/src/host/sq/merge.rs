//! Doorbells of one queue that follow each other and wait.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::DoorbellMsg;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Register slice of two entries in which a waiting doorbell takes the index of the one behind it, when that is of the same queue and function and
/// one further: it says all the older one does. The table takes one doorbell of a queue in four cycles, a program may ring one per request.
/// `m`'s index may go on while it waits; its queue does not change.
#[derive(LogicBlock, Default)]
pub(super) struct DoorbellMerge {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<DoorbellMsg>,
    pub m: MsgSrc<DoorbellMsg>,
    first: DFF<DoorbellMsg>,
    first_valid: DFF<Bit>,
    second: DFF<DoorbellMsg>,
    second_valid: DFF<Bit>,
    /// One less than `second.index`.
    before: DFF<Bits<16>>,
    index: Signal<Local, Bits<16>>,
    go: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
    follows: Signal<Local, Bit>,
}

#[kernel]
impl Logic for DoorbellMerge {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, first, first_valid, second, second_valid, before);
        self.m.data.next = self.first.q.val();
        self.m.valid.next = self.first_valid.q.val();
        self.s.ready.next = !self.second_valid.q.val();
        self.go.next = self.m.ready.val() | !self.first_valid.q.val();
        self.take.next = self.s.valid.val() & !self.second_valid.q.val();
        self.follows.next = (self.second.q.val().id == self.first.q.val().id) & (self.second.q.val().function == self.first.q.val().function) & (self.before.q.val() == self.first.q.val().index);
        if self.go.val() {
            self.first_valid.d.next = self.take.val() | self.second_valid.q.val();
            self.second_valid.d.next = false;
            self.first.d.next = self.s.data.val();
            if self.second_valid.q.val() {
                self.first.d.next = self.second.q.val();
            }
        } else if self.take.val() {
            self.second_valid.d.next = true;
        } else if self.second_valid.q.val() & self.follows.val() {
            self.first.d.next.index = self.second.q.val().index;
            self.second_valid.d.next = false;
        }
        self.index.next = self.s.data.val().index;
        if !self.second_valid.q.val() {
            self.second.d.next = self.s.data.val();
            self.before.d.next = self.index.val() - 1;
        }
        if self.reset.val() {
            self.first_valid.d.next = false;
            self.second_valid.d.next = false;
        }
    }
}
