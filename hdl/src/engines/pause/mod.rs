//! Pause frames of the link and of priorities, sent and obeyed. See README.md.

mod ask;
mod decode;
mod manifest;
mod merge;
mod obey;
#[cfg(test)]
mod tests;

use crate::bus::{AxisSink, AxisSrc, MsgSink, MsgSrc};
use crate::context::line::CtlLine;
use crate::msg::{CtlReq, CtlResp};
use crate::prim::pack::Gather;
use crate::records::PauseCtx;
use ferric_hdl_derive::{kernel, BlockDefault};
pub use ferric_model::net::pause as model;
pub use manifest::PAUSE;
use rust_hdl::prelude::*;

/// Events on `stat`: pause frames that went out, and came; MAC control frames that are none; pauses that began here; pauses that lasted too long, of the
/// peer's and of our own.
pub const STATS: &[&str] = &["pause_sent", "pause_received", "pause_malformed", "pause_held", "pause_ignored", "pause_given_up"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s", &[]), // what comes passes
    ("to_s", &["to_m"]),
    ("s_ctl", &[]), // one access at a time
    ("m_ctl", &[]),
];

/// Bits of a time in ticks: the limits' 16, which count 16 ticks each.
const TICKS: usize = 20;
const UNIT: usize = 4;

/// What comes off the wire is looked at in passing; what goes to it has pause frames in between. Both ways are wires and one multiplexer: a register would cost every frame a cycle.
#[derive(LogicBlock, BlockDefault)]
pub struct Pause<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; nothing is sent nor obeyed until the table says so.
    pub reset: Signal<In, Bit>,
    /// Ticks of 1.024 us.
    pub now: Signal<In, Bits<32>>,
    /// Off the wire: always ready, and nobody behind it waits.
    pub s: AxisSink<W, K>,
    /// With `s.last`: the MAC found the frame bad.
    pub s_err: Signal<In, Bit>,
    pub m: AxisSrc<W, K>,
    pub m_err: Signal<Out, Bit>,
    /// To the wire.
    pub to_s: AxisSink<W, K>,
    pub to_m: AxisSrc<W, K>,
    /// Free cells of the receive buffer.
    pub free_cells: Signal<In, Bits<10>>,
    /// To the egress: no further data frame; few beats in front of the MAC.
    pub hold: Signal<Out, Bit>,
    pub shallow: Signal<Out, Bit>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<6>>,
    ctl: CtlLine<PauseCtx, 1>,
    rules: DFF<PauseCtx>,
    decode: decode::Decoder<W, K>,
    obey: obey::Obey,
    ask: ask::Ask,
    merge: merge::Merge<W, K>,
    events: Gather<6>,
    counted: DFF<Bits<6>>,
    ticks: DFF<Bits<TICKS>>,
    /// Until the next quantum, in 1/256 of a cycle, and what a quantum adds to that beyond the cycle that it ends in.
    until: DFF<Bits<16>>,
    more: DFF<Bits<16>>,
    quantum: DFF<Bit>,
    whole: Signal<Local, Bits<8>>,
    over: Signal<Local, Bit>,
    kind: Signal<Local, Bits<2>>,
    obeys: Signal<Local, Bit>,
    #[init(Constant::new((1u64 << 8).to_bits()))]
    cycle: Constant<Bits<16>>,
    #[init(Constant::new(PauseCtx::default()))]
    off: Constant<PauseCtx>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Pause<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, rules, counted, ticks, until, more, quantum);
        clock!(self, clock, ctl, decode, obey, ask, merge);
        self.ctl.reset.next = self.reset.val();
        self.decode.reset.next = self.reset.val();
        self.obey.reset.next = self.reset.val();
        self.ask.reset.next = self.reset.val();
        self.merge.reset.next = self.reset.val();
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.ctl.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.ctl.m_ctl);
        AxisSink::<W, K>::link(&mut self.to_s, &mut self.merge.s);
        AxisSrc::<W, K>::link(&mut self.to_m, &mut self.merge.m);
        // The table is one line of registers.
        self.ctl.row_valid.next = self.ctl.req.val();
        self.ctl.row.next = self.rules.q.val();
        if self.ctl.done.val() & self.ctl.we.val() {
            self.rules.d.next = self.ctl.new_row.val();
        }
        // Time
        self.ticks.d.next = self.now.val().get_bits::<TICKS>(0);
        self.more.d.next = self.rules.q.val().quantum - self.cycle.val();
        self.whole.next = self.until.q.val().get_bits::<8>(8);
        self.over.next = !self.whole.val().any();
        self.quantum.d.next = self.over.val();
        self.until.d.next = self.until.q.val() - self.cycle.val();
        if self.over.val() {
            self.until.d.next = self.until.q.val() + self.more.q.val();
        }
        // What is left of a quantum of another length is none of the next one's.
        self.kind.next = self.rules.q.val().send;
        self.obeys.next = self.rules.q.val().obey_link | self.rules.q.val().obey_priority;
        if !self.obeys.val() & !self.kind.val().any() {
            self.until.d.next = bits::<16>(0);
        }
        // Off the wire
        self.s.ready.next = true;
        self.m.data.next = self.s.data.val();
        self.m.keep.next = self.s.keep.val();
        self.m.last.next = self.s.last.val();
        self.m.valid.next = self.s.valid.val();
        self.m_err.next = self.s_err.val();
        self.decode.data.next = self.s.data.val();
        self.decode.keep.next = self.s.keep.val();
        self.decode.last.next = self.s.last.val();
        self.decode.err.next = self.s_err.val();
        self.decode.valid.next = self.s.valid.val();
        self.obey.rules.next = self.rules.q.val();
        self.obey.seen.next = self.decode.seen.val();
        self.obey.priorities.next = self.decode.priorities.val();
        self.obey.frame.next = self.decode.frame.val();
        self.obey.quantum.next = self.quantum.q.val();
        self.obey.now.next = self.ticks.q.val();
        self.hold.next = self.obey.hold.val();
        self.shallow.next = self.obeys.val();
        // To the wire
        self.ask.rules.next = self.rules.q.val();
        self.ask.free_cells.next = self.free_cells.val();
        self.ask.quantum.next = self.quantum.q.val();
        self.ask.now.next = self.ticks.q.val();
        self.ask.launch.next = self.merge.launch.val();
        self.merge.want.next = self.ask.want.val();
        self.merge.stop.next = self.ask.told.val();
        self.merge.by_priority.next = self.ask.told_priority.val();
        self.merge.which.next = self.ask.told_which.val();
        self.merge.mac.next = self.rules.q.val().mac;
        // Counters, in the order of `STATS`.
        self.events.x[0].next = self.merge.launch.val();
        self.events.x[1].next = self.decode.seen.val();
        self.events.x[2].next = self.decode.malformed.val();
        self.events.x[3].next = self.obey.begins.val();
        self.events.x[4].next = self.obey.expires.val();
        self.events.x[5].next = self.ask.gives_up.val();
        self.counted.d.next = self.events.y.val();
        self.stat.next = self.counted.q.val();
        if self.reset.val() {
            self.rules.d.next = self.off.val();
            self.counted.d.next = bits::<6>(0);
            self.quantum.d.next = false;
            self.until.d.next = bits::<16>(0);
        }
    }
}
