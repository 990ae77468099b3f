//! Round robin of records.

use crate::bus::{MsgSink, MsgSrc};
use crate::prim::arb::RrPick;
use crate::prim::mux::OneHotMux;
use crate::prim::pack::Gather;
use crate::stream::MsgSlice;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// N record streams into one, round robin, one record per cycle. `N` is 2 or more.
#[derive(LogicBlock, BlockDefault)]
#[demand(N >= 2, "an arbiter needs two inputs")]
pub struct MsgArb<T: Synth, const N: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; drops what the output slice holds.
    pub reset: Signal<In, Bit>,
    pub s: [MsgSink<T>; N],
    pub m: MsgSrc<T>,
    grant: DFF<Bits<N>>,
    reqs: Gather<N>,
    pick: RrPick<N>,
    mux: OneHotMux<T, N>,
    out: MsgSlice<T>,
    hit: Signal<Local, Bits<N>>,
    offered: Signal<Local, Bit>,
}

#[kernel]
impl<T: Synth, const N: usize> Logic for MsgArb<T, N> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, grant);
        clock!(self, clock, out);
        self.out.reset.next = self.reset.val();
        MsgSrc::<T>::link(&mut self.m, &mut self.out.m);
        for i in 0..N {
            self.reqs.x[i].next = self.s[i].valid.val();
            self.mux.x[i].next = self.s[i].data.val();
            self.s[i].ready.next = self.grant.q.val().get_bit(i) & self.out.s.ready.val();
        }
        self.mux.sel.next = self.grant.q.val();
        self.hit.next = self.grant.q.val() & self.reqs.y.val();
        self.offered.next = self.hit.val().any();
        self.out.s.data.next = self.mux.y.val();
        self.out.s.valid.next = self.offered.val();
        self.pick.req.next = self.reqs.y.val();
        self.pick.last.next = self.grant.q.val();
        if self.reqs.y.val().any() & (self.out.s.ready.val() | !self.offered.val()) {
            self.grant.d.next = self.pick.grant.val();
        }
        if self.reset.val() {
            self.grant.d.next = bits::<N>(0);
        }
    }
}
