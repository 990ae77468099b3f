//! Takes new requests and those that wait for another turn, alternately while both are there.

use crate::bus::MsgSink;
use crate::msg::SqWqe;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Holds one request ahead.
#[derive(LogicBlock, Default)]
pub struct Intake {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_new: MsgSink<SqWqe>,
    pub s_waiting: MsgSink<SqWqe>,
    /// The request ahead, and whether it is a new one.
    pub wqe: Signal<Out, SqWqe>,
    pub valid: Signal<Out, Bit>,
    pub fresh: Signal<Out, Bit>,
    /// Queue pair of the request that was taken last, from the cycle behind `take` on; the request ahead is the same one's.
    pub qpn: Signal<In, Bits<24>>,
    pub same: Signal<Out, Bit>,
    /// Pulse while `valid`: the request is taken.
    pub take: Signal<In, Bit>,
    turn: DFF<Bit>,
    ahead: DFF<SqWqe>,
    there: DFF<Bit>,
    is_new: DFF<Bit>,
    /// Compared as a request comes: by then the one before has been taken.
    of_same: DFF<Bit>,
    comes: Signal<Local, SqWqe>,
}

#[kernel]
impl Logic for Intake {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, turn, ahead, there, is_new, of_same);
        self.wqe.next = self.ahead.q.val();
        self.valid.next = self.there.q.val();
        self.fresh.next = self.is_new.q.val();
        self.s_new.ready.next = !self.there.q.val() & !self.turn.q.val();
        self.s_waiting.ready.next = !self.there.q.val() & self.turn.q.val();
        self.same.next = self.of_same.q.val();
        self.comes.next = self.s_new.data.val();
        if self.turn.q.val() {
            self.comes.next = self.s_waiting.data.val();
        }
        if self.there.q.val() {
            self.there.d.next = !self.take.val();
        } else {
            self.turn.d.next = !self.turn.q.val() & self.s_waiting.valid.val();
            self.is_new.d.next = !self.turn.q.val();
            self.ahead.d.next = self.comes.val();
            self.of_same.d.next = self.comes.val().qpn == self.qpn.val();
            if self.turn.q.val() {
                self.there.d.next = self.s_waiting.valid.val();
            } else {
                self.there.d.next = self.s_new.valid.val();
            }
        }
        if self.reset.val() {
            self.there.d.next = false;
        }
    }
}
