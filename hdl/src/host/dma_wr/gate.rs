//! The W port: lets a burst's data out once its address stands on the AW port (AXI lets data lead; many slaves do not
//! like it), without ever waiting for AWREADY (Arm IHI 0022, A3.3.1 forbids that).

use crate::bus::AxisSink;
use crate::stream::AxisFifo;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Value of `ahead`: as many addresses have been taken as bursts were let out.
const EVEN: u64 = 1;

/// Keeps the beats while the address is on its way, and registers the port.
#[derive(LogicBlock, BlockDefault)]
pub struct WGate<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: AxisSink<W, K>,
    /// The AW port, watched.
    pub aw_valid: Signal<In, Bit>,
    pub aw_ready: Signal<In, Bit>,
    pub w_valid: Signal<Out, Bit>,
    pub w_ready: Signal<In, Bit>,
    pub w_data: Signal<Out, Bits<W>>,
    pub w_strb: Signal<Out, Bits<K>>,
    pub w_last: Signal<Out, Bit>,
    queue: AxisFifo<W, K, 4>,
    valid: DFF<Bit>,
    data: DFF<Bits<W>>,
    strb: DFF<Bits<K>>,
    last: DFF<Bit>,
    /// Addresses taken by the host less bursts let out, plus one: it is one behind while a burst leads its handshake.
    ahead: DFF<Bits<6>>,
    allowed: Signal<Local, Bit>,
    load: Signal<Local, Bit>,
    addressed: Signal<Local, Bit>,
    out: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for WGate<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, valid, data, strb, last, ahead);
        clock!(self, clock, queue);
        self.queue.reset.next = self.reset.val();
        AxisSink::<W, K>::link(&mut self.s, &mut self.queue.s);
        self.w_valid.next = self.valid.q.val();
        self.w_data.next = self.data.q.val();
        self.w_strb.next = self.strb.q.val();
        self.w_last.next = self.last.q.val();
        self.allowed.next = (self.ahead.q.val() > EVEN) | ((self.ahead.q.val() == EVEN) & self.aw_valid.val());
        self.load.next = self.queue.m.valid.val() & self.allowed.val() & (!self.valid.q.val() | self.w_ready.val());
        self.queue.m.ready.next = self.load.val();
        if self.w_ready.val() {
            self.valid.d.next = false;
        }
        if self.load.val() {
            self.valid.d.next = true;
            self.data.d.next = self.queue.m.data.val();
            self.strb.d.next = self.queue.m.keep.val();
            self.last.d.next = self.queue.m.last.val();
        }
        self.addressed.next = self.aw_valid.val() & self.aw_ready.val();
        self.out.next = self.load.val() & self.queue.m.last.val();
        if self.addressed.val() & !self.out.val() {
            self.ahead.d.next = self.ahead.q.val() + 1;
        }
        if self.out.val() & !self.addressed.val() {
            self.ahead.d.next = self.ahead.q.val() - 1;
        }
        if self.reset.val() {
            self.valid.d.next = false;
            self.ahead.d.next = bits::<6>(EVEN);
        }
    }
}
