//! What follows a completion: the event, once the host has answered the entry's write.

use crate::bus::{MsgSink, MsgSrc};
use crate::host::table::ROOM_OF_64;
use crate::msg::{EqeReq, WrDone};
use crate::stream::MsgFifo;
use ferric_abi::codes::EventKind;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Places of `events`.
const EVENTS: u64 = 8;

/// In the order of the pipeline. `written`: a write was issued, wait for its answer. `event`: tell event queue `eqn`
/// about queue `id`. `error`: it is a queue error, not a completion. `last`: it is that queue pair `id` has had its last receive.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Report {
    pub written: Bit,
    pub event: Bit,
    pub error: Bit,
    pub last: Bit,
    pub eqn: Bits<8>,
    /// Whose queue it is.
    pub function: Bits<12>,
    pub id: Bits<24>,
}

/// Pairs reports with write answers, which come in the same order.
#[derive(LogicBlock, Default)]
pub(super) struct Reporter {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_report: MsgSink<Report>,
    /// Always taken: at most 64 reports, hence answers, are on the way.
    pub s_done: MsgSink<WrDone>,
    pub m_event: MsgSrc<EqeReq>,
    /// Four more reports fit.
    pub room: Signal<Out, Bit>,
    /// Pulses: an event was sent; a write failed.
    pub sent: Signal<Out, Bit>,
    pub failed: Signal<Out, Bit>,
    /// Whose.
    pub whose: Signal<Out, Bits<12>>,
    order: MsgFifo<Report, 6>,
    answers: MsgFifo<WrDone, 6>,
    events: MsgFifo<EqeReq, 3>,
    head: Signal<Local, Report>,
    go: Signal<Local, Bit>,
    bad: Signal<Local, Bit>,
    send: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Reporter {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, order, answers, events);
        self.order.reset.next = self.reset.val();
        self.answers.reset.next = self.reset.val();
        self.events.reset.next = self.reset.val();
        MsgSink::<Report>::link(&mut self.s_report, &mut self.order.s);
        MsgSink::<WrDone>::link(&mut self.s_done, &mut self.answers.s);
        MsgSrc::<EqeReq>::link(&mut self.m_event, &mut self.events.m);
        self.room.next = self.order.level.val() < ROOM_OF_64;
        self.head.next = self.order.m.data.val();
        self.go.next = self.order.m.valid.val() & (!self.head.val().written | self.answers.m.valid.val()) & (self.events.level.val() < EVENTS);
        self.bad.next = self.head.val().written & self.answers.m.data.val().err;
        self.order.m.ready.next = self.go.val();
        self.answers.m.ready.next = self.go.val() & self.head.val().written;
        self.send.next = self.go.val() & (self.head.val().event | self.bad.val());
        self.sent.next = self.send.val();
        self.failed.next = self.go.val() & self.bad.val();
        self.whose.next = self.head.val().function;
        self.events.s.valid.next = self.send.val();
        self.events.s.data.next.eqn = self.head.val().eqn;
        // A queue error is an overflow, or an entry that could not be written.
        self.events.s.data.next.kind = bits::<8>(EventKind::Completion as u64);
        if self.head.val().error | self.bad.val() {
            self.events.s.data.next.kind = bits::<8>(EventKind::CqError as u64);
        }
        if self.head.val().last {
            self.events.s.data.next.kind = bits::<8>(EventKind::LastWqe as u64);
        }
        self.events.s.data.next.id = self.head.val().id;
        self.events.s.data.next.cause = bits::<16>(0);
    }
}
