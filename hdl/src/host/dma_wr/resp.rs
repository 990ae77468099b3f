//! Write responses: in order (one AXI id), routed to the port whose command they answer.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::WrDone;
use crate::stream::{MsgFifo, MsgSlice};
use rust_hdl::prelude::*;

/// Whom a command's responses belong to.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Route {
    /// Small ports 0 to 3, then payload: one-hot.
    pub port: Bits<5>,
    /// The client's tag.
    pub tag: Bits<8>,
    /// Two bursts, hence two responses.
    pub two: Bit,
    /// See `Quiesce`.
    pub color: Bit,
}

/// Up to 256 commands in flight.
#[derive(LogicBlock, Default)]
pub struct Responses {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// A command is issued.
    pub s: MsgSink<Route>,
    pub b_valid: Signal<In, Bit>,
    pub b_ready: Signal<Out, Bit>,
    pub b_resp: Signal<In, Bits<2>>,
    pub m: [MsgSrc<WrDone>; 5],
    /// A command was answered.
    pub finish: Signal<Out, Bit>,
    /// It was payload.
    pub finish_pay: Signal<Out, Bit>,
    pub finish_color: Signal<Out, Bit>,
    pub finish_err: Signal<Out, Bit>,
    routes: MsgFifo<Route, 8>,
    answers: MsgSlice<Bits<2>>,
    done: [MsgFifo<WrDone, 4>; 5],
    /// The first of two responses came, with an error.
    half: DFF<Bit>,
    half_err: DFF<Bit>,
    port: Signal<Local, Bits<5>>,
    room: Signal<Local, Bit>,
    go: Signal<Local, Bit>,
    whole: Signal<Local, Bit>,
    err: Signal<Local, Bit>,
    answer: Signal<Local, WrDone>,
}

impl Logic for Responses {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, half, half_err);
        clock!(self, clock, routes, answers);
        self.routes.reset.next = self.reset.val();
        self.answers.reset.next = self.reset.val();
        MsgSink::<Route>::link(&mut self.s, &mut self.routes.s);
        self.answers.s.valid.next = self.b_valid.val();
        self.answers.s.data.next = self.b_resp.val();
        self.b_ready.next = self.answers.s.ready.val();
        self.port.next = self.routes.m.data.val().port;
        self.room.next = false;
        for i in 0..5 {
            if self.port.val().get_bit(i) & self.done[i].s.ready.val() {
                self.room.next = true;
            }
        }
        self.go.next = self.answers.m.valid.val() & self.routes.m.valid.val() & self.room.val();
        self.whole.next = self.go.val() & (!self.routes.m.data.val().two | self.half.q.val());
        self.err.next = self.answers.m.data.val().get_bit(1) | (self.half.q.val() & self.half_err.q.val());
        self.answers.m.ready.next = self.go.val();
        self.routes.m.ready.next = self.whole.val();
        if self.go.val() {
            self.half.d.next = !self.whole.val();
            self.half_err.d.next = self.err.val();
        }
        self.answer.next.tag = self.routes.m.data.val().tag;
        self.answer.next.err = self.err.val();
        for i in 0..5 {
            self.done[i].clock.next = self.clock.val();
            self.done[i].reset.next = self.reset.val();
            self.done[i].s.valid.next = self.whole.val() & self.port.val().get_bit(i);
            self.done[i].s.data.next = self.answer.val();
            MsgSrc::<WrDone>::link(&mut self.m[i], &mut self.done[i].m);
        }
        self.finish.next = self.whole.val();
        self.finish_pay.next = self.whole.val() & self.port.val().get_bit(4);
        self.finish_color.next = self.routes.m.data.val().color;
        self.finish_err.next = self.err.val();
        if self.reset.val() {
            self.half.d.next = false;
        }
    }
}
