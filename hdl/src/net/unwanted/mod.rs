//! The end of the way of frames that no engine takes. See README.md.

#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{CellRead, RxDesc};
use crate::stream::MsgSlice;
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[("s", &["m_free"])];

/// Events on `stat`.
pub const STATS: &[&str] = &["rx_unwanted"];

/// Frees each frame's cells and counts it.
#[derive(LogicBlock, BlockDefault)]
pub struct Unwanted {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<RxDesc>,
    pub m_free: MsgSrc<CellRead>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bit>,
    out: MsgSlice<CellRead>,
    dropped: DFF<Bit>,
}

impl Logic for Unwanted {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, dropped);
        clock!(self, clock, out);
        self.out.reset.next = self.reset.val();
        MsgSrc::<CellRead>::link(&mut self.m_free, &mut self.out.m);
        self.s.ready.next = self.out.s.ready.val();
        self.out.s.valid.next = self.s.valid.val();
        self.out.s.data.next.handle = self.s.data.val().handle;
        self.out.s.data.next.off = bits::<14>(0);
        self.out.s.data.next.len = bits::<14>(0);
        self.out.s.data.next.free = true;
        self.dropped.d.next = self.s.valid.val() & self.out.s.ready.val();
        self.stat.next = self.dropped.q.val();
    }
}
