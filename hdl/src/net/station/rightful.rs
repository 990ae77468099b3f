//! Which rows count: a function that is verified has no other addresses than those that it may send from, whatever it says.

use super::LG_STATIONS;
use crate::prim::arb::BinToOneHot;
use crate::prim::mux::OneHotMux;
use crate::prim::pack::Gather;
use crate::records::{SenderCtx, StationCtx};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Looks at one of `N` = 2^`LN` rows in each cycle, as many of each of `NF` functions. What changes at the functions' lines is seen of all rows `N` + 2 cycles later.
#[derive(LogicBlock, BlockDefault)]
#[demand(1 << LN == N && NF << LG_STATIONS == N && NF <= 64)]
pub(super) struct Rightful<const N: usize, const LN: usize, const NF: usize> {
    pub clock: Signal<In, Clock>,
    /// The row that is looked at, and in the same cycle what it holds.
    pub at: Signal<Out, Bits<LN>>,
    pub row: Signal<In, StationCtx>,
    /// Rows that are written; of a verified function they do not count until they have been looked at.
    pub stores: Signal<In, Bits<N>>,
    /// What each function may send.
    pub senders: [Signal<In, SenderCtx>; NF],
    /// Rows that do not count.
    pub barred: Signal<Out, Bits<N>>,
    look: DFF<Bits<LN>>,
    looked: DFF<Bits<LN>>,
    holds: DFF<StationCtx>,
    number: Signal<Local, Bits<8>>,
    holder: BinToOneHot<64, 6>,
    mine: Signal<Local, Bits<64>>,
    whose: Gather<NF>,
    verified: Gather<NF>,
    line: OneHotMux<SenderCtx, NF>,
    line1: DFF<SenderCtx>,
    fresh: DFF<Bit>,
    stored: Signal<Local, Bits<N>>,
    mac: Signal<Local, Bits<48>>,
    may: Signal<Local, SenderCtx>,
    each: Signal<Local, SenderCtx>,
    right: Signal<Local, Bit>,
    now: BinToOneHot<N, LN>,
    seen: Signal<Local, Bits<N>>,
    rightful: [DFF<Bit>; N],
    out: Gather<N>,
}

#[kernel]
impl<const N: usize, const LN: usize, const NF: usize> Logic for Rightful<N, LN, NF> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, look, looked, holds, line1, fresh);
        // First cycle: the row, and what its function may send.
        self.look.d.next = self.look.q.val() + 1;
        self.at.next = self.look.q.val();
        self.looked.d.next = self.look.q.val();
        self.holds.d.next = self.row.val();
        self.number.next = bit_cast::<8, LN>(self.look.q.val());
        self.holder.x.next = self.number.val().get_bits::<6>(LG_STATIONS);
        self.holder.en.next = true;
        self.mine.next = self.holder.y.val();
        for i in 0..NF {
            self.whose.x[i].next = self.mine.val().get_bit(i);
            self.line.x[i].next = self.senders[i].val();
            self.each.next = self.senders[i].val();
            self.verified.x[i].next = self.each.val().on;
        }
        self.line.sel.next = self.whose.y.val();
        self.line1.d.next = self.line.y.val();
        // What is written in this cycle is not what was read.
        self.stored.next = self.stores.val() >> self.look.q.val();
        self.fresh.d.next = !self.stored.val().get_bit(0);
        // Second cycle: whether it is one of those.
        self.mac.next = self.holds.q.val().mac;
        self.may.next = self.line1.q.val();
        self.right.next = (self.may.val().have.get_bit(0) & (self.may.val().mac0 == self.mac.val()))
            | (self.may.val().have.get_bit(1) & (self.may.val().mac1 == self.mac.val()))
            | (self.may.val().have.get_bit(2) & (self.may.val().mac2 == self.mac.val()))
            | (self.may.val().have.get_bit(3) & (self.may.val().mac3 == self.mac.val()));
        self.now.x.next = self.looked.q.val();
        self.now.en.next = self.fresh.q.val();
        self.seen.next = self.now.y.val();
        for i in 0..N {
            self.rightful[i].clock.next = self.clock.val();
            self.rightful[i].d.next = self.rightful[i].q.val();
            if self.seen.val().get_bit(i) {
                self.rightful[i].d.next = self.right.val();
            }
            if self.stores.val().get_bit(i) {
                self.rightful[i].d.next = false;
            }
            self.out.x[i].next = self.verified.y.val().get_bit(i >> LG_STATIONS) & !self.rightful[i].q.val();
        }
        self.barred.next = self.out.y.val();
    }
}
