//! The functions' tunnels, and the counters. See README.md.

#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::context::line::CtlLine;
use crate::msg::{CtlReq, CtlResp};
use crate::net::within::NETWORKS;
use crate::prim::arb::BinToOneHot;
use crate::prim::mux::OneHotMux;
use crate::prim::pack::{Cast, Resize};
use crate::prim::sum::PlusOne;
use crate::records::{TunnelCounts, TunnelCtx};
use ferric_abi::csr::TUNNEL_COUNTS;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_ctl", &[]), // one access at a time
    ("m_ctl", &[]),
];

/// Bits of either line: those of the longer one, and those of a tunnel.
const LINE: usize = 136 * 8;
const TUNNEL: usize = 56 * 8;
/// Counters: those of `outer`, that of `wrap`, packets to queue pairs of other functions, and those of `local`.
const COUNTERS: usize = 17;
/// Events of `outer`, and of frames that depart; the bits of the others among all: a frame is wrapped, one is for another function, the first of those that depart, one is lost.
const OUTER: usize = 10;
const DEPARTED: usize = 4;
const WRAPPED: u64 = 1 << OUTER;
const FOREIGN: u64 = 1 << (OUTER + 1);
const LOCAL: u64 = OUTER as u64 + 2;
const LOST: u64 = 1 << (COUNTERS - 1);
/// Of a function's network the bit that says that it has a tunnel.
const HAS: u64 = 0x80;
/// log2 of the lines: the functions', and behind them that of the counters.
const LG_LINES: usize = TUNNEL_COUNTS.ilog2() as usize + 1;
/// The bit of a line's number that says that it is not a function's.
const COUNTS: usize = TUNNEL_COUNTS.ilog2() as usize;

/// A line for each of `NF` functions, and one of counters, which nobody writes. All are registers.
#[derive(LogicBlock, BlockDefault)]
#[demand(OUTER == super::outer::STATS.len() && DEPARTED == super::local::DEPARTED.len())]
#[demand(COUNTERS == LOCAL as usize + DEPARTED + super::local::ARRIVED.len() && LOCAL as usize == OUTER + super::wrap::STATS.len() + 1)]
#[demand(NF <= 64 && TUNNEL_COUNTS == 64)]
pub struct Entry<const NF: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous: no tunnels; the counters stay.
    pub reset: Signal<In, Bit>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// By function, to all who want to know.
    pub ctx: [Signal<Out, TunnelCtx>; NF],
    /// The same for the judge of what comes: of functions in one network the line of the one that the others have joined is `valid`, and no other.
    pub ends: [Signal<Out, TunnelCtx>; NF],
    /// Which network each function is in ([`crate::net::within`]).
    pub networks: Signal<Out, Bits<NETWORKS>>,
    /// `stat` of `outer` and of `wrap`, `foreign` of `net/rx`, and `stat` of both halves of `local`.
    pub stripped: Signal<In, Bits<10>>,
    pub wrapped: Signal<In, Bit>,
    pub foreign: Signal<In, Bit>,
    pub departed: Signal<In, Bits<4>>,
    pub arrived: Signal<In, Bit>,
    ctl: CtlLine<Bits<LINE>, LG_LINES>,
    lines: [DFF<TunnelCtx>; NF],
    which: BinToOneHot<64, 6>,
    chosen: Signal<Local, Bits<64>>,
    row: OneHotMux<TunnelCtx, NF>,
    rows: Resize<64, NF>,
    own: Signal<Local, TunnelCtx>,
    judges: Signal<Local, TunnelCtx>,
    each: Signal<Local, Bits<8>>,
    all: [Signal<Local, Bits<NETWORKS>>; NF],
    joined: Signal<Local, Bits<NETWORKS>>,
    #[init(std::array::from_fn(|f| Constant::new((ferric_model::net::networks::Networks::apart(1 << f).bytes()[f] as u64).to_bits())))]
    own_number: [Constant<Bits<8>>; NF],
    #[init(std::array::from_fn(|f| Constant::new((8 * f as u64).to_bits())))]
    own_place: [Constant<Bits<NETWORKS>>; NF],
    now: Signal<Local, Bits<COUNTERS>>,
    events: DFF<Bits<COUNTERS>>,
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
impl<const NF: usize> Logic for Entry<NF> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, events);
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
        self.sums.next.wrong_function = self.counts[11].q.val();
        self.sums.next.local = self.counts[12].q.val();
        self.sums.next.local_copies = self.counts[13].q.val();
        self.sums.next.local_no_room = self.counts[14].q.val();
        self.sums.next.local_late = self.counts[15].q.val();
        self.sums.next.local_wire_lost = self.counts[16].q.val();
        self.which.x.next = self.ctl.addr.val().get_bits::<6>(0);
        self.which.en.next = !self.ctl.addr.val().get_bit(COUNTS);
        self.chosen.next = self.which.y.val();
        self.rows.x.next = self.chosen.val();
        self.row.sel.next = self.rows.y.val();
        self.as_bits.x.next = self.row.y.val();
        self.longer.x.next = self.as_bits.y.val();
        self.sums_bits.x.next = self.sums.val();
        self.ctl.row_valid.next = self.ctl.req.val();
        self.ctl.row.next = self.longer.y.val();
        if self.ctl.addr.val().get_bit(COUNTS) {
            self.ctl.row.next = self.sums_bits.y.val();
        }
        self.written.x.next = self.ctl.new_row.val().get_bits::<TUNNEL>(0);
        for i in 0..NF {
            self.lines[i].clock.next = self.clock.val();
            self.lines[i].d.next = self.lines[i].q.val();
            self.row.x[i].next = self.lines[i].q.val();
            self.ctx[i].next = self.lines[i].q.val();
            self.own.next = self.lines[i].q.val();
            self.judges.next = self.lines[i].q.val();
            if self.own.val().joined {
                self.judges.next.valid = false;
                self.judges.next.bound = self.own.val().valid | self.own.val().bound;
            }
            self.ends[i].next = self.judges.val();
            self.each.next = bits::<8>(0);
            if self.own.val().valid | self.own.val().bound {
                self.each.next = self.own_number[i].val();
                if self.own.val().joined {
                    self.each.next = bits::<8>(HAS) | bit_cast::<8, 6>(self.own.val().leader);
                }
            }
            self.all[i].next = bit_cast::<NETWORKS, 8>(self.each.val()) << self.own_place[i].val();
            if self.ctl.done.val() & self.ctl.we.val() & self.chosen.val().get_bit(i) {
                self.lines[i].d.next = self.written.y.val();
            }
            if self.reset.val() {
                self.lines[i].d.next = self.off.val();
            }
        }
        self.joined.next = bits::<NETWORKS>(0);
        for i in 0..NF {
            self.joined.next = self.joined.val() | self.all[i].val();
        }
        self.networks.next = self.joined.val();
        // Counters
        self.now.next = bit_cast::<COUNTERS, OUTER>(self.stripped.val()) | (bit_cast::<COUNTERS, DEPARTED>(self.departed.val()) << LOCAL);
        if self.wrapped.val() {
            self.now.next = self.now.val() | WRAPPED;
        }
        if self.foreign.val() {
            self.now.next = self.now.val() | FOREIGN;
        }
        if self.arrived.val() {
            self.now.next = self.now.val() | LOST;
        }
        self.events.d.next = self.now.val();
        for i in 0..COUNTERS {
            self.counts[i].clock.next = self.clock.val();
            self.plus[i].a.next = self.counts[i].q.val();
            self.counts[i].d.next = self.counts[i].q.val();
            if self.events.q.val().get_bit(i) {
                self.counts[i].d.next = self.plus[i].y.val();
            }
        }
    }
}
