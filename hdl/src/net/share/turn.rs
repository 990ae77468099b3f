//! Round robin without a register in the way.

use crate::bus::{MsgSink, MsgSrc};
use crate::prim::arb::RrPick;
use crate::prim::mux::OneHotMux;
use crate::prim::pack::Gather;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// N record streams into one within the cycle: who asks alone passes as if nothing stood between. What has been shown stays until it is taken.
///
/// For the inside of a block between registers of others: `m` follows `s`, and `s.ready` follows `m.ready`.
#[derive(LogicBlock, BlockDefault)]
#[demand(N >= 2, "turns are taken by two at least")]
pub(super) struct Turn<T: Synth, const N: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: [MsgSink<T>; N],
    pub m: MsgSrc<T>,
    /// Who may show something new.
    pub may: Signal<In, Bits<N>>,
    /// Whose turn it is, one-hot; zero: nobody's.
    pub turn: Signal<Out, Bits<N>>,
    /// It is being taken.
    pub took: Signal<Out, Bit>,
    valids: Gather<N>,
    pick: RrPick<N>,
    mux: OneHotMux<T, N>,
    /// Shown and not taken.
    held: DFF<Bits<N>>,
    last: DFF<Bits<N>>,
    now: Signal<Local, Bits<N>>,
}

#[kernel]
impl<T: Synth, const N: usize> Logic for Turn<T, N> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, held, last);
        for i in 0..N {
            self.valids.x[i].next = self.s[i].valid.val();
            self.mux.x[i].next = self.s[i].data.val();
        }
        self.pick.req.next = self.valids.y.val() & self.may.val();
        self.pick.last.next = self.last.q.val();
        self.now.next = self.pick.grant.val();
        if self.held.q.val().any() {
            self.now.next = self.held.q.val();
        }
        self.mux.sel.next = self.now.val();
        self.m.data.next = self.mux.y.val();
        self.m.valid.next = self.now.val().any();
        for i in 0..N {
            self.s[i].ready.next = self.now.val().get_bit(i) & self.m.ready.val();
        }
        self.turn.next = self.now.val();
        self.took.next = self.now.val().any() & self.m.ready.val();
        self.held.d.next = self.now.val();
        if self.m.ready.val() {
            self.held.d.next = bits::<N>(0);
            if self.now.val().any() {
                self.last.d.next = self.now.val();
            }
        }
        if self.reset.val() {
            self.held.d.next = bits::<N>(0);
            self.last.d.next = bits::<N>(0);
        }
    }
}
