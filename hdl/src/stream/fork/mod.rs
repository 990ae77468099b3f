//! One record stream to two consumers that both take every record, each at its own time.

use crate::bus::{MsgSink, MsgSrc};
use crate::stream::MsgSlice;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Copies every record to `m0` and `m1`; the next one follows when both have taken it. One record per cycle.
#[derive(LogicBlock, Default)]
pub struct MsgFork<T: Synth> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; drops what is held.
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<T>,
    pub m0: MsgSrc<T>,
    pub m1: MsgSrc<T>,
    inp: MsgSlice<T>,
    done0: DFF<Bit>,
    done1: DFF<Bit>,
    now0: Signal<Local, Bit>,
    now1: Signal<Local, Bit>,
}

#[kernel]
impl<T: Synth> Logic for MsgFork<T> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, done0, done1);
        clock!(self, clock, inp);
        self.inp.reset.next = self.reset.val();
        MsgSink::<T>::link(&mut self.s, &mut self.inp.s);
        self.m0.data.next = self.inp.m.data.val();
        self.m1.data.next = self.inp.m.data.val();
        self.m0.valid.next = self.inp.m.valid.val() & !self.done0.q.val();
        self.m1.valid.next = self.inp.m.valid.val() & !self.done1.q.val();
        self.now0.next = self.done0.q.val() | self.m0.ready.val();
        self.now1.next = self.done1.q.val() | self.m1.ready.val();
        self.inp.m.ready.next = self.now0.val() & self.now1.val();
        if self.inp.m.valid.val() {
            self.done0.d.next = self.now0.val() & !self.now1.val();
            self.done1.d.next = self.now1.val() & !self.now0.val();
        }
        if self.reset.val() {
            self.done0.d.next = false;
            self.done1.d.next = false;
        }
    }
}
