//! Frames wait here until they are complete: an outer header says how long they are.

use crate::bus::AxisSink;
use crate::prim::keep_mask::KeepLen;
use crate::prim::sized::SizedBeatRam;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bytes that are held: the longest frame of the egress, or many shorter ones.
pub(super) const BYTES: usize = crate::net::tx::OUT_BYTES;
/// Frames that are held whose header is still to be made; [`super::LG_FRAMES`] has places for them.
const FRAMES: u64 = 60;

/// A FIFO of beats that tells the length of each frame that has come.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && BYTES / K <= 1 << 12)]
pub(super) struct Store<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: AxisSink<W, K>,
    /// A beat is taken in this cycle.
    pub taken: Signal<Out, Bit>,
    /// For one cycle: a frame is complete, and its bytes.
    pub len_valid: Signal<Out, Bit>,
    pub len: Signal<Out, Bits<16>>,
    /// A frame's header is made.
    pub made: Signal<In, Bit>,
    pub beat_valid: Signal<Out, Bit>,
    pub beat: Signal<Out, Bits<W>>,
    pub beat_len: Signal<Out, Bits<8>>,
    pub beat_last: Signal<Out, Bit>,
    pub take: Signal<In, Bit>,
    #[init(SizedBeatRam::new((BYTES / K).ilog2() as usize))]
    mem: SizedBeatRam<W, 12>,
    count: KeepLen<K, 8>,
    wptr: DFF<Bits<12>>,
    rptr: DFF<Bits<12>>,
    used: DFF<Bits<13>>,
    frames: DFF<Bits<6>>,
    loaded: DFF<Bit>,
    before: DFF<Bits<16>>,
    total: DFF<Bits<16>>,
    complete: DFF<Bit>,
    ready: Signal<Local, Bit>,
    push: Signal<Local, Bit>,
    fetch: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    #[init(Constant::new(((BYTES / K) as u64).to_bits()))]
    depth: Constant<Bits<13>>,
    #[init(Constant::new((K as u64).to_bits()))]
    whole: Constant<Bits<16>>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Store<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, wptr, rptr, used, frames, loaded, before, total, complete);
        clock!(self, clock, mem);
        self.ready.next = (self.used.q.val() != self.depth.val()) & (self.frames.q.val() < FRAMES);
        self.s.ready.next = self.ready.val();
        self.push.next = self.s.valid.val() & self.ready.val();
        self.taken.next = self.push.val();
        self.count.keep.next = self.s.keep.val();
        self.mem.write_en.next = self.push.val();
        self.mem.write_addr.next = self.wptr.q.val();
        self.mem.write_data.next = self.s.data.val();
        self.mem.write_len.next = self.count.len.val();
        self.mem.write_last.next = self.s.last.val();
        self.ends.next = self.push.val() & self.s.last.val();
        self.complete.d.next = self.ends.val();
        self.total.d.next = self.before.q.val() + bit_cast::<16, 8>(self.count.len.val());
        if self.push.val() {
            self.wptr.d.next = self.wptr.q.val() + 1;
            self.before.d.next = self.before.q.val() + self.whole.val();
            if self.s.last.val() {
                self.before.d.next = bits::<16>(0);
            }
        }
        self.len_valid.next = self.complete.q.val();
        self.len.next = self.total.q.val();
        if self.ends.val() & !self.made.val() {
            self.frames.d.next = self.frames.q.val() + 1;
        }
        if self.made.val() & !self.ends.val() {
            self.frames.d.next = self.frames.q.val() - 1;
        }
        self.fetch.next = self.used.q.val().any() & (!self.loaded.q.val() | self.take.val());
        self.mem.read_en.next = self.fetch.val();
        self.mem.read_addr.next = self.rptr.q.val();
        if self.take.val() {
            self.loaded.d.next = false;
        }
        if self.fetch.val() {
            self.loaded.d.next = true;
            self.rptr.d.next = self.rptr.q.val() + 1;
        }
        if self.push.val() & !self.fetch.val() {
            self.used.d.next = self.used.q.val() + 1;
        }
        if self.fetch.val() & !self.push.val() {
            self.used.d.next = self.used.q.val() - 1;
        }
        self.beat_valid.next = self.loaded.q.val();
        self.beat.next = self.mem.read_data.val();
        self.beat_len.next = self.mem.read_len.val();
        self.beat_last.next = self.mem.read_last.val();
        if self.reset.val() {
            self.wptr.d.next = bits::<12>(0);
            self.rptr.d.next = bits::<12>(0);
            self.used.d.next = bits::<13>(0);
            self.frames.d.next = bits::<6>(0);
            self.loaded.d.next = false;
            self.before.d.next = bits::<16>(0);
            self.complete.d.next = false;
        }
    }
}
