//! Output FIFO of the egress. Its writer has counted the room and never overruns it.

use crate::bus::AxisSrc;
use crate::prim::keep_mask::LenMask;
use crate::prim::sized::SizedBeatRam;
use crate::stream::AxisSlice;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// `OUT_BYTES` bytes of beats, registered output. While it is empty a beat goes straight to the output register.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct OutFifo<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub valid: Signal<In, Bit>,
    pub data: Signal<In, Bits<W>>,
    pub len: Signal<In, Bits<8>>,
    pub last: Signal<In, Bit>,
    pub m: AxisSrc<W, K>,
    /// A beat left the memory: room for one more.
    pub popped: Signal<Out, Bit>,
    #[init(SizedBeatRam::new((super::OUT_BYTES / K).trailing_zeros() as usize))]
    mem: SizedBeatRam<W, 12>,
    slice: AxisSlice<W, K>,
    keep: LenMask<K, 8>,
    wptr: DFF<Bits<12>>,
    rptr: DFF<Bits<12>>,
    loaded: DFF<Bit>,
    gone: DFF<Bit>,
    fetch: Signal<Local, Bit>,
    same: Signal<Local, Bit>,
    direct: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for OutFifo<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, wptr, rptr, loaded, gone);
        clock!(self, clock, mem, slice);
        self.slice.reset.next = self.reset.val();
        AxisSrc::<W, K>::link(&mut self.m, &mut self.slice.m);
        self.same.next = self.wptr.q.val() == self.rptr.q.val();
        self.direct.next = self.valid.val() & self.same.val() & !self.loaded.q.val() & self.slice.s.ready.val();
        self.mem.write_en.next = self.valid.val() & !self.direct.val();
        self.mem.write_addr.next = self.wptr.q.val();
        self.mem.write_data.next = self.data.val();
        self.mem.write_len.next = self.len.val();
        self.mem.write_last.next = self.last.val();
        if self.valid.val() & !self.direct.val() {
            self.wptr.d.next = self.wptr.q.val() + 1;
        }
        self.fetch.next = !self.same.val() & (self.slice.s.ready.val() | !self.loaded.q.val());
        self.mem.read_en.next = self.fetch.val();
        self.mem.read_addr.next = self.rptr.q.val();
        if self.slice.s.ready.val() {
            self.loaded.d.next = false;
        }
        if self.fetch.val() {
            self.loaded.d.next = true;
            self.rptr.d.next = self.rptr.q.val() + 1;
        }
        self.slice.s.valid.next = self.loaded.q.val() | self.direct.val();
        self.keep.len.next = self.len.val();
        self.slice.s.data.next = self.data.val();
        self.slice.s.last.next = self.last.val();
        if self.loaded.q.val() {
            self.keep.len.next = self.mem.read_len.val();
            self.slice.s.data.next = self.mem.read_data.val();
            self.slice.s.last.next = self.mem.read_last.val();
        }
        self.slice.s.keep.next = self.keep.keep.val();
        self.gone.d.next = self.fetch.val() | self.direct.val();
        self.popped.next = self.gone.q.val();
        if self.reset.val() {
            self.wptr.d.next = bits::<12>(0);
            self.rptr.d.next = bits::<12>(0);
            self.loaded.d.next = false;
            self.gone.d.next = false;
        }
    }
}
