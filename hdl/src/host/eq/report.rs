//! The interrupt of an event, once the host has answered the entry's write.

use crate::bus::{MsgSink, MsgSrc};
use crate::host::table::ROOM_OF_64;
use crate::msg::{MsixReq, WrDone};
use crate::stream::MsgFifo;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Places of `interrupts`.
const INTERRUPTS: u64 = 8;

/// Pairs the events' interrupts with write answers, which come in the same order. A failed write raises none.
#[derive(LogicBlock, Default)]
pub(super) struct EventReporter {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// One per entry written.
    pub s_report: MsgSink<MsixReq>,
    /// Always taken: at most 64 answers are on the way.
    pub s_done: MsgSink<WrDone>,
    pub m_msix: MsgSrc<MsixReq>,
    /// Four more reports fit.
    pub room: Signal<Out, Bit>,
    /// Pulses: an interrupt was sent; a write failed.
    pub sent: Signal<Out, Bit>,
    pub failed: Signal<Out, Bit>,
    /// Whose.
    pub whose: Signal<Out, Bits<12>>,
    order: MsgFifo<MsixReq, 6>,
    answers: MsgFifo<WrDone, 6>,
    interrupts: MsgFifo<MsixReq, 3>,
    go: Signal<Local, Bit>,
    bad: Signal<Local, Bit>,
}

#[kernel]
impl Logic for EventReporter {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, order, answers, interrupts);
        self.order.reset.next = self.reset.val();
        self.answers.reset.next = self.reset.val();
        self.interrupts.reset.next = self.reset.val();
        MsgSink::<MsixReq>::link(&mut self.s_report, &mut self.order.s);
        MsgSink::<WrDone>::link(&mut self.s_done, &mut self.answers.s);
        MsgSrc::<MsixReq>::link(&mut self.m_msix, &mut self.interrupts.m);
        self.room.next = self.order.level.val() < ROOM_OF_64;
        self.go.next = self.order.m.valid.val() & self.answers.m.valid.val() & (self.interrupts.level.val() < INTERRUPTS);
        self.bad.next = self.answers.m.data.val().err;
        self.order.m.ready.next = self.go.val();
        self.answers.m.ready.next = self.go.val();
        self.interrupts.s.data.next = self.order.m.data.val();
        self.interrupts.s.valid.next = self.go.val() & !self.bad.val();
        self.sent.next = self.go.val() & !self.bad.val();
        self.failed.next = self.go.val() & self.bad.val();
        self.whose.next = self.order.m.data.val().function;
    }
}
