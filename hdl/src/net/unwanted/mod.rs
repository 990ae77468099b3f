//! The end of the way of frames that no engine takes. See README.md.

#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{CellRead, RxDesc};
use crate::stream::MsgSlice;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[("s", &["m_free"]), ("s_raw", &["m_free"])];

/// Events on `stat`.
pub const STATS: &[&str] = &["rx_unwanted"];

/// Frees each frame's cells and counts it.
#[derive(LogicBlock, BlockDefault)]
pub struct Unwanted {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    /// RoCE packets.
    pub s: MsgSink<RxDesc>,
    /// All others.
    pub s_raw: MsgSink<RxDesc>,
    pub m_free: MsgSrc<CellRead>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bit>,
    out: MsgSlice<CellRead>,
    /// This cycle is a raw frame's: at most every second one while RoCE packets come.
    raw: DFF<Bit>,
    dropped: DFF<Bit>,
}

#[kernel]
impl Logic for Unwanted {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, dropped, raw);
        clock!(self, clock, out);
        self.out.reset.next = self.reset.val();
        MsgSrc::<CellRead>::link(&mut self.m_free, &mut self.out.m);
        self.raw.d.next = self.s_raw.valid.val() & (!self.raw.q.val() | !self.s.valid.val());
        self.s.ready.next = self.out.s.ready.val() & !self.raw.q.val();
        self.s_raw.ready.next = self.out.s.ready.val() & self.raw.q.val();
        self.out.s.valid.next = self.s.valid.val() & !self.raw.q.val();
        self.out.s.data.next.handle = self.s.data.val().handle;
        if self.raw.q.val() {
            self.out.s.valid.next = self.s_raw.valid.val();
            self.out.s.data.next.handle = self.s_raw.data.val().handle;
        }
        self.out.s.data.next.off = bits::<14>(0);
        self.out.s.data.next.len = bits::<14>(0);
        self.out.s.data.next.free = true;
        self.dropped.d.next = self.out.s.valid.val() & self.out.s.ready.val();
        self.stat.next = self.dropped.q.val();
        if self.reset.val() {
            self.raw.d.next = false;
        }
    }
}
