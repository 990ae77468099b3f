//! Asks a block for one of several machines, of which one works at a time.
use crate::bus::{MsgSink, MsgSrc};
use crate::prim::mux::OneHotMux;
use crate::prim::pack::Gather;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// One of `N` orders goes out, and its answer stays until that of the next. Whoever has asked stands still while `busy`.
#[derive(LogicBlock, BlockDefault)]
pub struct Call<Q: Synth, A: Synth, const N: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets the order under way.
    pub reset: Signal<In, Bit>,
    /// Who asks, at most one in a cycle and none while `busy`, and what.
    pub go: [Signal<In, Bit>; N],
    pub ask: [Signal<In, Q>; N],
    /// With `go`: the order is not answered.
    pub mute: Signal<In, Bit>,
    /// From the cycle behind `go` until the answer is here.
    pub busy: Signal<Out, Bit>,
    pub told: Signal<Out, A>,
    pub m: MsgSrc<Q>,
    pub s: MsgSink<A>,
    gives: DFF<Bit>,
    waits: DFF<Bit>,
    silent: DFF<Bit>,
    order: DFF<Q>,
    answer: DFF<A>,
    who: Gather<N>,
    mux: OneHotMux<Q, N>,
}

#[kernel]
impl<Q: Synth, A: Synth, const N: usize> Logic for Call<Q, A, N> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, gives, waits, silent, order, answer);
        for i in 0..N {
            self.who.x[i].next = self.go[i].val();
            self.mux.x[i].next = self.ask[i].val();
        }
        self.mux.sel.next = self.who.y.val();
        if self.who.y.val().any() {
            self.order.d.next = self.mux.y.val();
            self.silent.d.next = self.mute.val();
            self.gives.d.next = true;
        }
        self.m.data.next = self.order.q.val();
        self.m.valid.next = self.gives.q.val();
        if self.gives.q.val() & self.m.ready.val() {
            self.gives.d.next = false;
            self.waits.d.next = !self.silent.q.val();
        }
        self.s.ready.next = self.waits.q.val();
        if self.waits.q.val() {
            self.answer.d.next = self.s.data.val();
            self.waits.d.next = !self.s.valid.val();
        }
        self.busy.next = self.gives.q.val() | self.waits.q.val();
        self.told.next = self.answer.q.val();
        if self.reset.val() {
            self.gives.d.next = false;
            self.waits.d.next = false;
        }
    }
}
