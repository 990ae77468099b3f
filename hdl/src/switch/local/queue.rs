//! Frames wait here, beat by beat, with what is known of them.

use crate::msg::{Network, SentBy};
use crate::prim::keep_mask::{KeepLen, LenMask};
use crate::prim::sized::{SizedBeatRam, SizedRam};
use ferric_hdl_derive::{kernel, BlockNew};
use rust_hdl::prelude::*;

/// Bits of the number of a beat's bytes, and the bit above them that says that the frame is bad.
const LEN: usize = 7;
const BAD: u64 = 1 << LEN;
/// Address bits of the deepest queue.
pub(super) const MOST: usize = 12;

/// A FIFO of 2^`beats_log2` beats, each with its frame's network and who has sent it.
#[derive(LogicBlock, BlockNew)]
#[given(beats_log2: usize)]
#[demand(W == 8 * K && K < 1 << LEN)]
pub(super) struct Queue<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous: empty.
    pub reset: Signal<In, Bit>,
    /// A beat comes. Whoever brings it has looked at `used` before.
    pub push: Signal<In, Bit>,
    pub data: Signal<In, Bits<W>>,
    pub keep: Signal<In, Bits<K>>,
    pub last: Signal<In, Bit>,
    pub err: Signal<In, Bit>,
    pub network: Signal<In, Network>,
    pub origin: Signal<In, SentBy>,
    /// The first beat, while `valid`; it goes with `take`.
    pub valid: Signal<Out, Bit>,
    pub m_data: Signal<Out, Bits<W>>,
    pub m_keep: Signal<Out, Bits<K>>,
    pub m_last: Signal<Out, Bit>,
    pub m_err: Signal<Out, Bit>,
    pub m_network: Signal<Out, Network>,
    pub m_origin: Signal<Out, SentBy>,
    pub take: Signal<In, Bit>,
    /// Beats in memory that came before this cycle; one more may be shown.
    pub used: Signal<Out, Bits<13>>,
    /// Something is here.
    pub holds: Signal<Out, Bit>,
    /// A whole frame is here.
    pub whole: Signal<Out, Bit>,
    #[init(SizedBeatRam::new(beats_log2))]
    beats: SizedBeatRam<W, MOST>,
    #[init(SizedRam::new(beats_log2))]
    networks: SizedRam<Network, MOST>,
    #[init(SizedRam::new(beats_log2))]
    origins: SizedRam<SentBy, MOST>,
    count: KeepLen<K, 8>,
    mask: LenMask<K, LEN>,
    wptr: DFF<Bits<MOST>>,
    rptr: DFF<Bits<MOST>>,
    stored: DFF<Bits<13>>,
    frames: DFF<Bits<13>>,
    loaded: DFF<Bit>,
    fetch: Signal<Local, Bit>,
    comes: Signal<Local, Bit>,
    goes: Signal<Local, Bit>,
    /// The row that is shown behind this cycle.
    at: DFF<Bits<MOST>>,
    reads: Signal<Local, Bits<MOST>>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Queue<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, wptr, rptr, stored, frames, loaded, at);
        clock!(self, clock, beats, networks, origins);
        // What comes
        self.count.keep.next = self.keep.val();
        self.beats.write_en.next = self.push.val();
        self.beats.write_addr.next = self.wptr.q.val();
        self.beats.write_data.next = self.data.val();
        self.beats.write_len.next = self.count.len.val();
        if self.err.val() {
            self.beats.write_len.next = self.count.len.val() | BAD;
        }
        self.beats.write_last.next = self.last.val();
        self.networks.write_en.next = self.push.val();
        self.networks.write_addr.next = self.wptr.q.val();
        self.networks.write_data.next = self.network.val();
        self.origins.write_en.next = self.push.val();
        self.origins.write_addr.next = self.wptr.q.val();
        self.origins.write_data.next = self.origin.val();
        if self.push.val() {
            self.wptr.d.next = self.wptr.q.val() + 1;
        }
        // What goes: the memory's read register shows it, and holds it until it is taken.
        self.fetch.next = self.stored.q.val().any() & (!self.loaded.q.val() | self.take.val());
        self.beats.read_en.next = self.fetch.val();
        self.beats.read_addr.next = self.rptr.q.val();
        self.reads.next = self.at.q.val();
        if self.take.val() {
            self.loaded.d.next = false;
        }
        if self.fetch.val() {
            self.loaded.d.next = true;
            self.rptr.d.next = self.rptr.q.val() + 1;
            self.reads.next = self.rptr.q.val();
        }
        self.at.d.next = self.reads.val();
        self.networks.read_addr.next = self.reads.val();
        self.origins.read_addr.next = self.reads.val();
        self.valid.next = self.loaded.q.val();
        self.m_data.next = self.beats.read_data.val();
        self.mask.len.next = self.beats.read_len.val().get_bits::<LEN>(0);
        self.m_keep.next = self.mask.keep.val();
        self.m_last.next = self.beats.read_last.val();
        self.m_err.next = self.beats.read_len.val().get_bit(LEN);
        self.m_network.next = self.networks.read_data.val();
        self.m_origin.next = self.origins.read_data.val();
        // How much is here
        if self.push.val() & !self.fetch.val() {
            self.stored.d.next = self.stored.q.val() + 1;
        } else if self.fetch.val() & !self.push.val() {
            self.stored.d.next = self.stored.q.val() - 1;
        }
        self.comes.next = self.push.val() & self.last.val();
        self.goes.next = self.take.val() & self.beats.read_last.val();
        if self.comes.val() & !self.goes.val() {
            self.frames.d.next = self.frames.q.val() + 1;
        } else if self.goes.val() & !self.comes.val() {
            self.frames.d.next = self.frames.q.val() - 1;
        }
        self.used.next = self.stored.q.val();
        self.holds.next = self.stored.q.val().any() | self.loaded.q.val();
        self.whole.next = self.frames.q.val().any();
        if self.reset.val() {
            self.wptr.d.next = bits::<MOST>(0);
            self.rptr.d.next = bits::<MOST>(0);
            self.stored.d.next = bits::<13>(0);
            self.frames.d.next = bits::<13>(0);
            self.loaded.d.next = false;
        }
    }
}
