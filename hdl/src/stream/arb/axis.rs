//! Round robin of packets.

use crate::bus::{AxisSink, AxisSrc};
use crate::prim::arb::RrPick;
use crate::prim::mux::OneHotMux;
use crate::prim::pack::Gather;
use crate::stream::AxisSlice;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// N packet streams into one, round robin per packet, one beat per cycle. `N` is 2 or more.
#[derive(LogicBlock, BlockDefault)]
#[demand(N >= 2, "an arbiter needs two inputs")]
pub struct AxisArb<const W: usize, const K: usize, const N: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets a packet under way and drops what the output slice holds.
    pub reset: Signal<In, Bit>,
    pub s: [AxisSink<W, K>; N],
    pub m: AxisSrc<W, K>,
    grant: DFF<Bits<N>>,
    /// A packet has begun and not ended.
    inside: DFF<Bit>,
    reqs: Gather<N>,
    pick: RrPick<N>,
    data: OneHotMux<Bits<W>, N>,
    keep: OneHotMux<Bits<K>, N>,
    last: OneHotMux<Bit, N>,
    out: AxisSlice<W, K>,
    hit: Signal<Local, Bits<N>>,
    offered: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize, const N: usize> Logic for AxisArb<W, K, N> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, grant, inside);
        clock!(self, clock, out);
        self.out.reset.next = self.reset.val();
        AxisSrc::<W, K>::link(&mut self.m, &mut self.out.m);
        for i in 0..N {
            self.reqs.x[i].next = self.s[i].valid.val();
            self.data.x[i].next = self.s[i].data.val();
            self.keep.x[i].next = self.s[i].keep.val();
            self.last.x[i].next = self.s[i].last.val();
            self.s[i].ready.next = self.grant.q.val().get_bit(i) & self.out.s.ready.val();
        }
        self.data.sel.next = self.grant.q.val();
        self.keep.sel.next = self.grant.q.val();
        self.last.sel.next = self.grant.q.val();
        self.hit.next = self.grant.q.val() & self.reqs.y.val();
        self.offered.next = self.hit.val().any();
        self.out.s.data.next = self.data.y.val();
        self.out.s.keep.next = self.keep.y.val();
        self.out.s.last.next = self.last.y.val();
        self.out.s.valid.next = self.offered.val();
        self.moves.next = self.offered.val() & self.out.s.ready.val();
        self.ends.next = self.moves.val() & self.last.y.val();
        if self.moves.val() {
            self.inside.d.next = !self.last.y.val();
        }
        self.pick.req.next = self.reqs.y.val();
        self.pick.last.next = self.grant.q.val();
        if self.reqs.y.val().any() & (self.ends.val() | (!self.inside.q.val() & !self.offered.val())) {
            self.grant.d.next = self.pick.grant.val();
        }
        if self.reset.val() {
            self.grant.d.next = bits::<N>(0);
            self.inside.d.next = false;
        }
    }
}
