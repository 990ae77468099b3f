//! Full-throughput register slices: two entries, registered valid, payload and ready. Latency 1 cycle.

use crate::bus::{AxisSink, AxisSrc, MsgSink, MsgSrc};
use crate::prim::chaos::ChaosGate;
use crate::stream::chaos;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Register slice of a record stream.
#[derive(LogicBlock, BlockDefault)]
pub struct MsgSlice<T: Synth> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; drops both entries.
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<T>,
    pub m: MsgSrc<T>,
    d0: DFF<T>,
    v0: DFF<Bit>,
    d1: DFF<T>,
    v1: DFF<Bit>,
    #[init(ChaosGate::new(chaos::next_seed()))]
    gate: ChaosGate,
    go: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
}

#[kernel]
impl<T: Synth> Logic for MsgSlice<T> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, d0, v0, d1, v1);
        clock!(self, clock, gate);
        self.gate.valid.next = self.v0.q.val();
        self.gate.ready.next = self.m.ready.val();
        self.m.data.next = self.d0.q.val();
        self.m.valid.next = self.v0.q.val() & self.gate.go.val();
        self.s.ready.next = !self.v1.q.val();
        // The second entry fills only while the first is stuck, and empties into it first: order is kept.
        self.go.next = (self.m.ready.val() & self.gate.go.val()) | !self.v0.q.val();
        self.take.next = self.s.valid.val() & !self.v1.q.val();
        if self.go.val() {
            self.v0.d.next = self.take.val() | self.v1.q.val();
            self.v1.d.next = false;
            if self.v1.q.val() {
                self.d0.d.next = self.d1.q.val();
            } else {
                self.d0.d.next = self.s.data.val();
            }
        } else if self.take.val() {
            self.v1.d.next = true;
        }
        if !self.v1.q.val() {
            self.d1.d.next = self.s.data.val();
        }
        if self.reset.val() {
            self.v0.d.next = false;
            self.v1.d.next = false;
        }
    }
}

/// One place that is filled only when the consumer waits: data pass through in the same cycle, ready is a register.
///
/// For the inside of a block, in front of its registers: `m.valid` follows `s.valid` within the cycle.
#[derive(LogicBlock, BlockDefault)]
pub struct MsgSkid<T: Synth> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; drops the entry.
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<T>,
    pub m: MsgSrc<T>,
    d: DFF<T>,
    v: DFF<Bit>,
    #[init(ChaosGate::new(chaos::next_seed()))]
    gate: ChaosGate,
    any: Signal<Local, Bit>,
}

#[kernel]
impl<T: Synth> Logic for MsgSkid<T> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, d, v);
        clock!(self, clock, gate);
        self.any.next = self.v.q.val() | self.s.valid.val();
        self.gate.valid.next = self.any.val();
        self.gate.ready.next = self.m.ready.val();
        self.m.data.next = self.s.data.val();
        if self.v.q.val() {
            self.m.data.next = self.d.q.val();
        } else {
            self.d.d.next = self.s.data.val();
        }
        self.m.valid.next = self.any.val() & self.gate.go.val();
        self.s.ready.next = !self.v.q.val();
        self.v.d.next = self.any.val() & !(self.m.ready.val() & self.gate.go.val()) & !self.reset.val();
    }
}

/// Register slice of a packet stream.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K, "K must be W / 8")]
pub struct AxisSlice<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; drops both entries.
    pub reset: Signal<In, Bit>,
    pub s: AxisSink<W, K>,
    pub m: AxisSrc<W, K>,
    d0: DFF<Bits<W>>,
    k0: DFF<Bits<K>>,
    l0: DFF<Bit>,
    v0: DFF<Bit>,
    d1: DFF<Bits<W>>,
    k1: DFF<Bits<K>>,
    l1: DFF<Bit>,
    v1: DFF<Bit>,
    #[init(ChaosGate::new(chaos::next_seed()))]
    gate: ChaosGate,
    go: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for AxisSlice<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, d0, k0, l0, v0, d1, k1, l1, v1);
        clock!(self, clock, gate);
        self.gate.valid.next = self.v0.q.val();
        self.gate.ready.next = self.m.ready.val();
        self.m.data.next = self.d0.q.val();
        self.m.keep.next = self.k0.q.val();
        self.m.last.next = self.l0.q.val();
        self.m.valid.next = self.v0.q.val() & self.gate.go.val();
        self.s.ready.next = !self.v1.q.val();
        self.go.next = (self.m.ready.val() & self.gate.go.val()) | !self.v0.q.val();
        self.take.next = self.s.valid.val() & !self.v1.q.val();
        if self.go.val() {
            self.v0.d.next = self.take.val() | self.v1.q.val();
            self.v1.d.next = false;
            if self.v1.q.val() {
                self.d0.d.next = self.d1.q.val();
                self.k0.d.next = self.k1.q.val();
                self.l0.d.next = self.l1.q.val();
            } else {
                self.d0.d.next = self.s.data.val();
                self.k0.d.next = self.s.keep.val();
                self.l0.d.next = self.s.last.val();
            }
        } else if self.take.val() {
            self.v1.d.next = true;
        }
        if !self.v1.q.val() {
            self.d1.d.next = self.s.data.val();
            self.k1.d.next = self.s.keep.val();
            self.l1.d.next = self.s.last.val();
        }
        if self.reset.val() {
            self.v0.d.next = false;
            self.v1.d.next = false;
        }
    }
}
