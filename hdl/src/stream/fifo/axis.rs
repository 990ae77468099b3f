//! FIFO of packet beats.

use crate::bus::{AxisSink, AxisSrc};
use crate::prim::chaos::ChaosGate;
use crate::prim::ram::{AxisRam, LUT_RAM_MAX_A};
use crate::stream::chaos;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// FIFO of `2^LG` packet beats (plus the output stages) with a fill level. `LG` is 1 to 15.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K, "K must be W / 8")]
#[demand((1..=15).contains(&LG), "LG must be 1 to 15")]
pub struct AxisFifo<const W: usize, const K: usize, const LG: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; empties the FIFO.
    pub reset: Signal<In, Bit>,
    pub s: AxisSink<W, K>,
    pub m: AxisSrc<W, K>,
    /// Packet beats held, output stages included: 0 to `2^LG` + 2.
    pub level: Signal<Out, Bits<16>>,
    mem: AxisRam<W, K, LG>,
    wptr: DFF<Bits<LG>>,
    rptr: DFF<Bits<LG>>,
    full: DFF<Bit>,
    nonempty: DFF<Bit>,
    count: DFF<Bits<16>>,
    a_valid: DFF<Bit>,
    b_valid: DFF<Bit>,
    b_data: DFF<Bits<W>>,
    b_keep: DFF<Bits<K>>,
    b_last: DFF<Bit>,
    #[init(ChaosGate::new(chaos::next_seed()))]
    gate: ChaosGate,
    #[init(Constant::new(LG > LUT_RAM_MAX_A))]
    deep: Constant<Bit>,
    /// The bits that a level can have: synthesis sees that the others stay zero.
    #[init(Constant::new(((4u64 << LG) - 1).to_bits()))]
    width: Constant<Bits<16>>,
    counted: Signal<Local, Bits<16>>,
    wnext: Signal<Local, Bits<LG>>,
    rnext: Signal<Local, Bits<LG>>,
    wmeets: Signal<Local, Bit>,
    rmeets: Signal<Local, Bit>,
    push: Signal<Local, Bit>,
    fetch: Signal<Local, Bit>,
    pop: Signal<Local, Bit>,
    shown: Signal<Local, Bit>,
    a_leaves: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize, const LG: usize> Logic for AxisFifo<W, K, LG> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, wptr, rptr, full, nonempty, count, a_valid, b_valid, b_data, b_keep, b_last);
        clock!(self, clock, mem, gate);
        self.s.ready.next = !self.full.q.val();
        self.level.next = self.count.q.val();
        // Stage A is the memory's own read register, stage B a flip-flop behind block RAM's slow output.
        self.m.data.next = self.mem.read_data.val();
        self.m.keep.next = self.mem.read_keep.val();
        self.m.last.next = self.mem.read_last.val();
        self.shown.next = self.a_valid.q.val();
        if self.deep.val() {
            self.m.data.next = self.b_data.q.val();
            self.m.keep.next = self.b_keep.q.val();
            self.m.last.next = self.b_last.q.val();
            self.shown.next = self.b_valid.q.val();
        }
        self.gate.valid.next = self.shown.val();
        self.gate.ready.next = self.m.ready.val();
        self.m.valid.next = self.shown.val() & self.gate.go.val();
        self.pop.next = self.shown.val() & self.gate.go.val() & self.m.ready.val();
        self.push.next = self.s.valid.val() & !self.full.q.val();
        self.a_leaves.next = self.pop.val();
        if self.deep.val() {
            self.a_leaves.next = self.a_valid.q.val() & (self.pop.val() | !self.b_valid.q.val());
        }
        self.fetch.next = self.nonempty.q.val() & (self.a_leaves.val() | !self.a_valid.q.val());
        // Memory side
        self.mem.write_addr.next = self.wptr.q.val();
        self.mem.write_data.next = self.s.data.val();
        self.mem.write_keep.next = self.s.keep.val();
        self.mem.write_last.next = self.s.last.val();
        self.mem.write_en.next = self.push.val();
        self.mem.read_addr.next = self.rptr.q.val();
        self.mem.read_en.next = self.fetch.val();
        self.wnext.next = self.wptr.q.val() + 1;
        self.rnext.next = self.rptr.q.val() + 1;
        self.wmeets.next = self.wnext.val() == self.rptr.q.val();
        self.rmeets.next = self.rnext.val() == self.wptr.q.val();
        if self.push.val() {
            self.wptr.d.next = self.wnext.val();
        }
        if self.fetch.val() {
            self.rptr.d.next = self.rnext.val();
        }
        if self.push.val() & !self.fetch.val() {
            self.nonempty.d.next = true;
            self.full.d.next = self.wmeets.val();
        }
        if self.fetch.val() & !self.push.val() {
            self.nonempty.d.next = !self.rmeets.val();
            self.full.d.next = false;
        }
        // Output side
        if self.fetch.val() {
            self.a_valid.d.next = true;
        } else if self.a_leaves.val() {
            self.a_valid.d.next = false;
        }
        if self.a_leaves.val() {
            self.b_valid.d.next = true;
            self.b_data.d.next = self.mem.read_data.val();
            self.b_keep.d.next = self.mem.read_keep.val();
            self.b_last.d.next = self.mem.read_last.val();
        } else if self.pop.val() {
            self.b_valid.d.next = false;
        }
        self.counted.next = self.count.q.val();
        if self.push.val() & !self.pop.val() {
            self.counted.next = self.count.q.val() + 1;
        }
        if self.pop.val() & !self.push.val() {
            self.counted.next = self.count.q.val() - 1;
        }
        self.count.d.next = self.counted.val() & self.width.val();
        if self.reset.val() {
            self.wptr.d.next = bits::<LG>(0);
            self.rptr.d.next = bits::<LG>(0);
            self.full.d.next = false;
            self.nonempty.d.next = false;
            self.a_valid.d.next = false;
            self.b_valid.d.next = false;
            self.count.d.next = bits::<16>(0);
        }
    }
}
