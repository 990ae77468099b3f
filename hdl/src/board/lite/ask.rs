//! Address and data of one write, each offered until it is taken.

use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// The handshakes of the AW and W channels of a master (AXI4-Lite, or AXI4 with one beat) with one write at a time.
#[derive(LogicBlock, BlockDefault)]
pub struct LiteAsk {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: both are valid from the next cycle on, each until its ready.
    pub go: Signal<In, Bit>,
    /// Both have been taken, or are in this cycle.
    pub taken: Signal<Out, Bit>,
    pub aw_valid: Signal<Out, Bit>,
    pub aw_ready: Signal<In, Bit>,
    pub w_valid: Signal<Out, Bit>,
    pub w_ready: Signal<In, Bit>,
    aw: DFF<Bit>,
    w: DFF<Bit>,
}

#[kernel]
impl Logic for LiteAsk {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, aw, w);
        self.aw_valid.next = self.aw.q.val();
        self.w_valid.next = self.w.q.val();
        self.taken.next = (self.aw_ready.val() | !self.aw.q.val()) & (self.w_ready.val() | !self.w.q.val());
        self.aw.d.next = (self.go.val() | (self.aw.q.val() & !self.aw_ready.val())) & !self.reset.val();
        self.w.d.next = (self.go.val() | (self.w.q.val() & !self.w_ready.val())) & !self.reset.val();
    }
}
