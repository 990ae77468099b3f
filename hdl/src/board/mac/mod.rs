//! Frames to and from a MAC that makes preamble and FCS itself (the CMAC). See README.md.

#[cfg(test)]
mod tests;

use super::async_fifo::{FrameCross, PulseCross};
use crate::bus::{AxisSink, AxisSrc};
use crate::prim::keep_mask::KeepMask;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bytes of the shortest frame without its FCS (IEEE 802.3, clause 4.2.3.3).
const SHORTEST: usize = 60;

/// Frames from `clock` to `mac_clock`, padded to 60 bytes. At `m` a frame comes without a gap.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && K >= 60, "the first beat holds the shortest frame")]
pub struct MacTx<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: AxisSink<W, K>,
    pub mac_clock: Signal<In, Clock>,
    pub mac_reset: Signal<In, Bit>,
    pub m: AxisSrc<W, K>,
    /// The next beat is not the first of a frame.
    inside: DFF<Bit>,
    #[init(FrameCross::new(8, false))]
    cross: FrameCross<W, K>,
    mask: KeepMask<W, K>,
    #[init(Constant::new(((1u128 << SHORTEST) - 1).to_bits()))]
    shortest: Constant<Bits<K>>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for MacTx<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, inside);
        self.cross.s_clock.next = self.clock.val();
        self.cross.s_reset.next = self.reset.val();
        self.cross.m_clock.next = self.mac_clock.val();
        self.cross.m_reset.next = self.mac_reset.val();
        self.cross.s_err.next = false;
        // Padding is zeros: nothing that was left on the bus goes out.
        self.mask.keep.next = self.s.keep.val();
        self.cross.s.data.next = self.s.data.val() & self.mask.mask.val();
        self.cross.s.keep.next = self.s.keep.val();
        if !self.inside.q.val() {
            self.cross.s.keep.next = self.s.keep.val() | self.shortest.val();
        }
        self.cross.s.last.next = self.s.last.val();
        self.cross.s.valid.next = self.s.valid.val();
        self.s.ready.next = self.cross.s.ready.val();
        if self.s.valid.val() & self.cross.s.ready.val() {
            self.inside.d.next = !self.s.last.val();
        }
        if self.reset.val() {
            self.inside.d.next = false;
        }
        AxisSrc::<W, K>::link(&mut self.m, &mut self.cross.m);
    }
}

/// Frames from `mac_clock` to `clock`. `s.ready` is always high.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K, "K must be W / 8")]
pub struct MacRx<const W: usize, const K: usize> {
    pub mac_clock: Signal<In, Clock>,
    pub mac_reset: Signal<In, Bit>,
    pub s: AxisSink<W, K>,
    /// With the last beat.
    pub s_err: Signal<In, Bit>,
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub m: AxisSrc<W, K>,
    /// With the last beat.
    pub m_err: Signal<Out, Bit>,
    /// A frame was dropped for want of room; in `clock`.
    pub dropped: Signal<Out, Bit>,
    #[init(FrameCross::new(9, true))]
    cross: FrameCross<W, K>,
    pulse: PulseCross,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for MacRx<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        self.cross.s_clock.next = self.mac_clock.val();
        self.cross.s_reset.next = self.mac_reset.val();
        self.cross.m_clock.next = self.clock.val();
        self.cross.m_reset.next = self.reset.val();
        AxisSink::<W, K>::link(&mut self.s, &mut self.cross.s);
        self.cross.s_err.next = self.s_err.val();
        AxisSrc::<W, K>::link(&mut self.m, &mut self.cross.m);
        self.m_err.next = self.cross.m_err.val();
        self.pulse.s_clock.next = self.mac_clock.val();
        self.pulse.s_reset.next = self.mac_reset.val();
        self.pulse.m_clock.next = self.clock.val();
        self.pulse.m_reset.next = self.reset.val();
        self.pulse.s.next = self.cross.dropped.val();
        self.dropped.next = self.pulse.m.val();
    }
}
