//! Record to packet.

use crate::bus::{AxisSrc, WideSink};
use crate::prim::keep_mask::LenMask;
use crate::prim::pack::{Resize, ShiftDown};
use crate::stream::AxisSlice;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Sends the first `len` bytes (1 to N/8) of each record as one packet, without gaps between packets.
///
/// Bytes of the last beat beyond its `keep` are those of the record.
#[derive(LogicBlock, BlockDefault)]
#[demand(N % 8 == 0 && K == 1 << (L - 1), "N must be whole bytes, L = log2(K) + 1")]
pub struct WideToBeats<const N: usize, const W: usize, const K: usize, const L: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; drops the record under way.
    pub reset: Signal<In, Bit>,
    pub s: WideSink<N>,
    pub m: AxisSrc<W, K>,
    record: DFF<Bits<N>>,
    /// Bytes of it still to send.
    rest: DFF<Bits<16>>,
    busy: DFF<Bit>,
    low: Resize<N, W>,
    #[init(ShiftDown::new(W))]
    shift: ShiftDown<N>,
    mask: LenMask<K, L>,
    out: AxisSlice<W, K>,
    #[init(Constant::new(bits(K as u64)))]
    beat: Constant<Bits<16>>,
    #[init(Constant::new(Bits::<K>::mask()))]
    all: Constant<Bits<K>>,
    last: Signal<Local, Bit>,
    free: Signal<Local, Bit>,
}

#[kernel]
impl<const N: usize, const W: usize, const K: usize, const L: usize> Logic for WideToBeats<N, W, K, L> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, record, rest, busy);
        clock!(self, clock, out);
        self.out.reset.next = self.reset.val();
        AxisSrc::<W, K>::link(&mut self.m, &mut self.out.m);
        self.low.x.next = self.record.q.val();
        self.shift.x.next = self.record.q.val();
        self.mask.len.next = self.rest.q.val().get_bits::<L>(0);
        self.last.next = self.rest.q.val() <= self.beat.val();
        // Room in the output slice is a register, so readiness does not depend on the consumer in this cycle.
        self.free.next = !self.busy.q.val() | (self.last.val() & self.out.s.ready.val());
        self.s.ready.next = self.free.val();
        self.out.s.valid.next = self.busy.q.val();
        self.out.s.data.next = self.low.y.val();
        self.out.s.last.next = self.last.val();
        self.out.s.keep.next = self.all.val();
        if self.last.val() {
            self.out.s.keep.next = self.mask.keep.val();
        }
        if self.free.val() {
            self.record.d.next = self.s.data.val();
            self.rest.d.next = self.s.len.val();
            self.busy.d.next = self.s.valid.val();
        } else if self.out.s.ready.val() {
            self.record.d.next = self.shift.y.val();
            self.rest.d.next = self.rest.q.val() - self.beat.val();
        }
        if self.reset.val() {
            self.busy.d.next = false;
        }
    }
}
