//! Write responses: in order (one AXI id), routed to the port whose command they answer.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::WrDone;
use crate::prim::pack::Cast;
use crate::stream::{MsgFifo, MsgSlice};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// What is known of a command besides its port.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Route {
    /// The client's tag.
    pub tag: Bits<8>,
    /// Two bursts, hence two responses.
    pub two: Bit,
    /// See `Quiesce`.
    pub color: Bit,
}

/// Bits of a route.
pub const ROUTE: usize = Route::BITS;

/// Up to 256 commands in flight. `N` small ports, `P` = `N` + 1 with payload; `R`: bits of a port, one-hot, and a route.
#[derive(LogicBlock, BlockDefault)]
#[demand(P == N + 1 && R == P + ROUTE)]
pub struct Responses<const N: usize, const P: usize, const R: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// A command is issued.
    pub s: MsgSink<Route>,
    /// From this port: small ones, then payload, one-hot.
    pub s_port: Signal<In, Bits<P>>,
    pub b_valid: Signal<In, Bit>,
    pub b_ready: Signal<Out, Bit>,
    pub b_resp: Signal<In, Bits<2>>,
    pub m: [MsgSrc<WrDone>; P],
    /// A command was answered.
    pub finish: Signal<Out, Bit>,
    /// It was payload.
    pub finish_pay: Signal<Out, Bit>,
    pub finish_color: Signal<Out, Bit>,
    pub finish_err: Signal<Out, Bit>,
    pack: Cast<Route, Bits<ROUTE>>,
    routes: MsgFifo<Bits<R>, 8>,
    unpack: Cast<Bits<ROUTE>, Route>,
    answers: MsgSlice<Bits<2>>,
    done: [MsgFifo<WrDone, 4>; P],
    /// The first of two responses came, with an error.
    half: DFF<Bit>,
    half_err: DFF<Bit>,
    word: Signal<Local, Bits<R>>,
    port: Signal<Local, Bits<P>>,
    route: Signal<Local, Route>,
    room: Signal<Local, Bit>,
    go: Signal<Local, Bit>,
    whole: Signal<Local, Bit>,
    err: Signal<Local, Bit>,
    answer: Signal<Local, WrDone>,
}

#[kernel]
impl<const N: usize, const P: usize, const R: usize> Logic for Responses<N, P, R> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, half, half_err);
        clock!(self, clock, routes, answers);
        self.routes.reset.next = self.reset.val();
        self.answers.reset.next = self.reset.val();
        self.pack.x.next = self.s.data.val();
        self.routes.s.valid.next = self.s.valid.val();
        self.routes.s.data.next = (bit_cast::<R, P>(self.s_port.val()) << ROUTE) | bit_cast::<R, ROUTE>(self.pack.y.val());
        self.s.ready.next = self.routes.s.ready.val();
        self.word.next = self.routes.m.data.val();
        self.unpack.x.next = self.word.val().get_bits::<ROUTE>(0);
        self.route.next = self.unpack.y.val();
        self.answers.s.valid.next = self.b_valid.val();
        self.answers.s.data.next = self.b_resp.val();
        self.b_ready.next = self.answers.s.ready.val();
        self.port.next = self.word.val().get_bits::<P>(ROUTE);
        self.room.next = false;
        for i in 0..P {
            if self.port.val().get_bit(i) & self.done[i].s.ready.val() {
                self.room.next = true;
            }
        }
        self.go.next = self.answers.m.valid.val() & self.routes.m.valid.val() & self.room.val();
        self.whole.next = self.go.val() & (!self.route.val().two | self.half.q.val());
        self.err.next = self.answers.m.data.val().get_bit(1) | (self.half.q.val() & self.half_err.q.val());
        self.answers.m.ready.next = self.go.val();
        self.routes.m.ready.next = self.whole.val();
        if self.go.val() {
            self.half.d.next = !self.whole.val();
            self.half_err.d.next = self.err.val();
        }
        self.answer.next.tag = self.route.val().tag;
        self.answer.next.err = self.err.val();
        for i in 0..P {
            self.done[i].clock.next = self.clock.val();
            self.done[i].reset.next = self.reset.val();
            self.done[i].s.valid.next = self.whole.val() & self.port.val().get_bit(i);
            self.done[i].s.data.next = self.answer.val();
            MsgSrc::<WrDone>::link(&mut self.m[i], &mut self.done[i].m);
        }
        self.finish.next = self.whole.val();
        for i in N..P {
            self.finish_pay.next = self.whole.val() & self.port.val().get_bit(i);
        }
        self.finish_color.next = self.route.val().color;
        self.finish_err.next = self.err.val();
        if self.reset.val() {
            self.half.d.next = false;
        }
    }
}
