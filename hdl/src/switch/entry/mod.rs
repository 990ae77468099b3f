//! The static entry of the tunnel, and its counters. See README.md.

#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::context::line::CtlLine;
use crate::msg::{CtlReq, CtlResp};
use crate::prim::pack::{Cast, Resize};
use crate::prim::sum::PlusOne;
use crate::records::{TunnelCounts, TunnelCtx};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_ctl", &[]), // one access at a time
    ("m_ctl", &[]),
];

/// Bits of either line: those of the longer one, and those of the tunnel.
const LINE: usize = 88 * 8;
const TUNNEL: usize = 56 * 8;
/// Counters: those of `outer`, then that of `wrap`.
const COUNTERS: usize = 11;

/// Line 0 is the tunnel, line 1 its counters, which nobody writes. Both are registers.
#[derive(LogicBlock, BlockDefault)]
#[demand(COUNTERS == super::outer::STATS.len() + super::wrap::STATS.len())]
pub struct Entry {
    pub clock: Signal<In, Clock>,
    /// Synchronous: no tunnel; the counters stay.
    pub reset: Signal<In, Bit>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// To all who want to know.
    pub ctx: Signal<Out, TunnelCtx>,
    /// `stat` of `outer` and of `wrap`.
    pub stripped: Signal<In, Bits<10>>,
    pub wrapped: Signal<In, Bit>,
    ctl: CtlLine<Bits<LINE>, 1>,
    line: DFF<TunnelCtx>,
    events: DFF<Bits<10>>,
    leaves: DFF<Bit>,
    counts: [DFF<Bits<64>>; COUNTERS],
    plus: [PlusOne<64>; COUNTERS],
    sums: Signal<Local, TunnelCounts>,
    as_bits: Cast<TunnelCtx, Bits<TUNNEL>>,
    longer: Resize<TUNNEL, LINE>,
    sums_bits: Cast<TunnelCounts, Bits<LINE>>,
    written: Cast<Bits<TUNNEL>, TunnelCtx>,
    #[init(Constant::new(TunnelCtx::default()))]
    off: Constant<TunnelCtx>,
}

#[kernel]
impl Logic for Entry {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, line, events, leaves);
        clock!(self, clock, ctl);
        self.ctl.reset.next = self.reset.val();
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.ctl.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.ctl.m_ctl);
        self.sums.next.stripped = self.counts[0].q.val();
        self.sums.next.miss = self.counts[1].q.val();
        self.sums.next.outer_fragment = self.counts[2].q.val();
        self.sums.next.outer_malformed = self.counts[3].q.val();
        self.sums.next.outer_csum = self.counts[4].q.val();
        self.sums.next.vxlan_flags = self.counts[5].q.val();
        self.sums.next.vni_unknown = self.counts[6].q.val();
        self.sums.next.remote_unknown = self.counts[7].q.val();
        self.sums.next.inner_short = self.counts[8].q.val();
        self.sums.next.ecn = self.counts[9].q.val();
        self.sums.next.wrapped = self.counts[10].q.val();
        self.as_bits.x.next = self.line.q.val();
        self.longer.x.next = self.as_bits.y.val();
        self.sums_bits.x.next = self.sums.val();
        self.ctl.row_valid.next = self.ctl.req.val();
        self.ctl.row.next = self.longer.y.val();
        if self.ctl.addr.val().any() {
            self.ctl.row.next = self.sums_bits.y.val();
        }
        self.written.x.next = self.ctl.new_row.val().get_bits::<TUNNEL>(0);
        if self.ctl.done.val() & self.ctl.we.val() & !self.ctl.addr.val().any() {
            self.line.d.next = self.written.y.val();
        }
        self.ctx.next = self.line.q.val();
        // Counters
        self.events.d.next = self.stripped.val();
        self.leaves.d.next = self.wrapped.val();
        for i in 0..COUNTERS {
            self.counts[i].clock.next = self.clock.val();
            self.plus[i].a.next = self.counts[i].q.val();
            self.counts[i].d.next = self.counts[i].q.val();
        }
        for i in 0..10 {
            if self.events.q.val().get_bit(i) {
                self.counts[i].d.next = self.plus[i].y.val();
            }
        }
        if self.leaves.q.val() {
            self.counts[10].d.next = self.plus[10].y.val();
        }
        if self.reset.val() {
            self.line.d.next = self.off.val();
        }
    }
}
