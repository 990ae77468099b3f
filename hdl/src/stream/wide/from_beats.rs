//! Packet to record.

use crate::bus::{AxisSink, WideSrc};
use crate::prim::keep_mask::{KeepLen, KeepMask};
use crate::prim::slot::SlotMerge;
use crate::stream::AxisSlice;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Gathers each packet into one record, zero beyond its bytes, without gaps between packets.
///
/// `len` is the packet's true length in bytes (below 2^16). What exceeds N/8 bytes is taken and forgotten: the consumer
/// sees `len` > N/8.
#[derive(LogicBlock, BlockDefault)]
#[demand(N % 8 == 0 && K == 1 << (L - 1), "N must be whole bytes, L = log2(K) + 1")]
pub struct BeatsToWide<const N: usize, const W: usize, const K: usize, const L: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; drops the packet under way.
    pub reset: Signal<In, Bit>,
    pub s: AxisSink<W, K>,
    pub m: WideSrc<N>,
    inp: AxisSlice<W, K>,
    count: KeepLen<K, L>,
    mask: KeepMask<W, K>,
    merge: SlotMerge<N, W>,
    record: DFF<Bits<N>>,
    len: DFF<Bits<16>>,
    slot: DFF<Bits<8>>,
    done: DFF<Bit>,
    first: Signal<Local, Bit>,
    open: Signal<Local, Bit>,
    before: Signal<Local, Bits<16>>,
}

#[kernel]
impl<const N: usize, const W: usize, const K: usize, const L: usize> Logic for BeatsToWide<N, W, K, L> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, record, len, slot, done);
        clock!(self, clock, inp);
        self.inp.reset.next = self.reset.val();
        AxisSink::<W, K>::link(&mut self.s, &mut self.inp.s);
        self.m.data.next = self.record.q.val();
        self.m.len.next = self.len.q.val();
        self.m.valid.next = self.done.q.val();
        self.count.keep.next = self.inp.m.keep.val();
        self.mask.keep.next = self.inp.m.keep.val();
        self.first.next = self.slot.q.val() == 0;
        self.merge.acc.next = self.record.q.val();
        self.merge.data.next = self.inp.m.data.val() & self.mask.mask.val();
        self.merge.slot.next = self.slot.q.val();
        self.merge.fresh.next = self.first.val();
        self.before.next = self.len.q.val();
        if self.first.val() {
            self.before.next = bits::<16>(0);
        }
        self.open.next = !self.done.q.val() | self.m.ready.val();
        self.inp.m.ready.next = self.open.val();
        if self.open.val() {
            self.done.d.next = self.inp.m.valid.val() & self.inp.m.last.val();
        }
        if self.open.val() & self.inp.m.valid.val() {
            self.record.d.next = self.merge.y.val();
            self.len.d.next = self.before.val() + bit_cast::<16, L>(self.count.len.val());
            // Stops at 255, which is no slot.
            if !self.slot.q.val().all() {
                self.slot.d.next = self.slot.q.val() + 1;
            }
            if self.inp.m.last.val() {
                self.slot.d.next = bits::<8>(0);
            }
        }
        if self.reset.val() {
            self.slot.d.next = bits::<8>(0);
            self.done.d.next = false;
        }
    }
}
