//! The tunnel's end on the way in: outer headers of VXLAN packets go, frames that are none pass. See README.md.

mod check;
mod fate;
mod link;
mod strip;
#[cfg(test)]
mod tests;

use crate::bus::{AxisSink, AxisSrc};
use crate::msg::Network;
use crate::prim::pack::Gather;
use crate::records::TunnelCtx;
use crate::stream::Bypass;
use crate::switch::sight::Sight;
use ferric_hdl_derive::{kernel, BlockDefault};
pub use ferric_model::switch::outer as model;
use rust_hdl::prelude::*;

/// Events on `stat`: packets whose outer header went; frames that nobody can get, because every function has a tunnel; then, in the order in which they are looked for, tunnel packets that are dropped (`ferric_abi::codes::SwitchCause`).
pub const STATS: &[&str] = &["stripped", "miss", "outer_fragment", "outer_malformed", "outer_csum", "vxlan_flags", "vni_unknown", "remote_unknown", "inner_short", "ecn"];

/// Places in [`STATS`].
mod causes {
    pub const STRIPPED: u64 = 0;
    pub const MISS: u64 = 1;
    pub const FRAGMENT: u64 = 2;
    pub const MALFORMED: u64 = 3;
    pub const CSUM: u64 = 4;
    pub const FLAGS: u64 = 5;
    pub const VNI: u64 = 6;
    pub const REMOTE: u64 = 7;
    pub const SHORT: u64 = 8;
    pub const ECN: u64 = 9;
}

/// Any frames, a beat a cycle, and `NF` functions' tunnels. Always ready, and nobody behind it waits.
#[derive(LogicBlock, BlockDefault)]
#[demand(STATS.len() == 10)]
pub struct Outer<const W: usize, const K: usize, const LK: usize, const NF: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; what is under way is forgotten.
    pub reset: Signal<In, Bit>,
    /// The tunnels, by function. They may change at any time: a frame is judged by them in the cycles around that in which its headers are there.
    pub ctx: [Signal<In, TunnelCtx>; NF],
    pub s: AxisSink<W, K>,
    /// With `s.last`: the MAC found the frame bad.
    pub s_err: Signal<In, Bit>,
    pub m: AxisSrc<W, K>,
    /// With `m.last`: the same, or the frame was cut or its outer UDP checksum is wrong.
    pub m_err: Signal<Out, Bit>,
    /// With every beat of `m`: through whose tunnel it came.
    pub network: Signal<Out, Network>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<10>>,
    sight: Sight<W, K>,
    link: link::LinkLayer<NF>,
    judge: fate::Judge<NF>,
    strip: strip::Strip<W, K, LK>,
    check: check::Check<W, K>,
    len1: DFF<Bits<8>>,
    len2: DFF<Bits<8>>,
    ended1: DFF<Bit>,
    ended2: DFF<Bit>,
    // Past all of it, while no function has a tunnel
    bypass: Bypass,
    have: Gather<NF>,
    own: Signal<Local, TunnelCtx>,
    none: DFF<Bit>,
    by: DFF<Bit>,
    plain: Signal<Local, Network>,
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize, const NF: usize> Logic for Outer<W, K, LK, NF> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, len1, len2, ended1, ended2, none, by);
        clock!(self, clock, sight, link, judge, strip, check, bypass);
        self.sight.reset.next = self.reset.val();
        self.link.reset.next = self.reset.val();
        self.judge.reset.next = self.reset.val();
        self.strip.reset.next = self.reset.val();
        self.check.reset.next = self.reset.val();
        self.s.ready.next = true;
        self.sight.data.next = self.s.data.val();
        self.sight.keep.next = self.s.keep.val();
        self.sight.last.next = self.s.last.val();
        self.sight.err.next = self.s_err.val();
        self.sight.valid.next = self.s.valid.val() & !self.bypass.past.val();
        self.len1.d.next = self.sight.len.val();
        self.ended1.d.next = self.sight.ended.val();
        self.len2.d.next = self.len1.q.val();
        self.ended2.d.next = self.ended1.q.val();
        for i in 0..NF {
            self.link.ctx[i].next = self.ctx[i].val();
            self.judge.ctx[i].next = self.ctx[i].val();
            self.own.next = self.ctx[i].val();
            self.have.x[i].next = self.own.val().valid | self.own.val().bound;
        }
        self.none.d.next = !self.have.y.val().any();
        self.bypass.reset.next = self.reset.val();
        self.bypass.may.next = self.none.q.val();
        self.bypass.taken.next = self.s.valid.val();
        self.bypass.last.next = self.s.last.val();
        self.bypass.busy.next = self.check.m_valid.val();
        self.by.d.next = self.s.valid.val() & self.bypass.past.val();
        self.link.window.next = self.sight.window.val();
        self.link.window_valid.next = self.sight.window_valid.val();
        self.judge.valid.next = self.link.valid.val();
        self.judge.link.next = self.link.link.val();
        self.judge.to.next = self.link.to.val();
        self.judge.known.next = self.link.known.val();
        self.judge.l4.next = self.link.l4.val();
        for i in 0..5 {
            self.judge.pairs[i].next = self.link.pairs[i].val();
        }
        for i in 0..4 {
            self.judge.quads[i].next = self.link.quads[i].val();
        }
        self.judge.ended.next = self.ended2.q.val();
        self.judge.len.next = self.len2.q.val();
        self.strip.b_data.next = self.sight.b_data.val();
        self.strip.b_keep.next = self.sight.b_keep.val();
        self.strip.b_last.next = self.sight.b_last.val();
        self.strip.b_err.next = self.sight.b_err.val();
        self.strip.b_valid.next = self.sight.b_valid.val();
        self.strip.fate.next = self.judge.fate.val();
        self.strip.fate_valid.next = self.judge.fate_valid.val();
        self.check.tag.next.valid = self.strip.valid.val();
        self.check.tag.next.first = self.strip.first.val();
        self.check.tag.next.last = self.strip.last.val();
        self.check.tag.next.note = self.strip.note.val();
        self.check.data.next = self.strip.data.val();
        self.check.patched.next = self.strip.patched.val();
        self.check.keep.next = self.strip.keep.val();
        self.m.data.next = self.check.m_data.val();
        self.m.keep.next = self.check.m_keep.val();
        self.m.last.next = self.check.m_last.val();
        self.m.valid.next = self.check.m_valid.val();
        self.m_err.next = self.check.m_err.val();
        self.network.next = self.check.network.val();
        // Of no function: it came through no tunnel, and the physical one has none either.
        self.plain.next.tunnel = false;
        self.plain.next.function = bits::<12>(0);
        if self.by.q.val() {
            self.m.data.next = self.sight.b_data.val();
            self.m.keep.next = self.sight.b_keep.val();
            self.m.last.next = self.sight.b_last.val();
            self.m.valid.next = true;
            self.m_err.next = self.sight.b_err.val();
            self.network.next = self.plain.val();
        }
        self.stat.next = self.check.stat.val();
        if self.reset.val() {
            self.by.d.next = false;
        }
    }
}
