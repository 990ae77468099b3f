//! Received frames pass, and of each it is said whether its transport checksum is right. See README.md.

use super::head::Head;
use super::total::{Total, LATENCY};
use crate::bus::{AxisSink, AxisSrc, MsgSrc};
use crate::msg::{L4Packet, L4Verdict};
use crate::prim::keep_mask::LenMask;
use crate::prim::sized::Delay;
use crate::stream::{AxisFifo, AxisSlice, MsgFifo, MsgSlice};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // Not for `m_verdict`: whoever takes frames keeps fewer of them than there are places for verdicts.
    ("s_frame", &["m_frame"]),
    ("m_frame", &["s_frame"]),
    // It is on its way when the frame's last beat has passed.
    ("m_verdict", &[]),
];

/// log2 of the beats that are held: the longest headers that are looked at (two tags, IPv4 with all options, UDP) are 12 beats of 64 bits.
const LG_HELD: usize = 4;
/// log2 of the verdicts that nobody has taken. Below this level none is in the way of another: each beat on its way to a sum may be a frame.
const LG_VERDICTS: usize = 5;
const ROOM: u64 = 16;
/// Cycles behind a reset in which what was on its way comes out.
const DRAINED: usize = LATENCY + 2;
/// Sum of a packet whose checksum is right.
const RIGHT: u64 = 0xffff;

/// What is known of a beat on its way to a sum. `checks`: the frame's checksum counts, and the packet is there to its end.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Tag {
    ends: Bit,
    checks: Bit,
}

/// A path of `W` bits.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && K == 1 << LK && W >= 64, "K must be W / 8, LK its logarithm; the headers have to fit what is held")]
pub struct Verify<const W: usize, const K: usize, const LK: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not in the middle of a frame.
    pub reset: Signal<In, Bit>,
    pub s_frame: AxisSink<W, K>,
    pub m_frame: AxisSrc<W, K>,
    /// Of each frame, in their order, some cycles behind its last beat.
    pub m_verdict: MsgSrc<L4Verdict>,
    inlet: AxisSlice<W, K>,
    outlet: AxisSlice<W, K>,
    head: Head<W, K>,
    packets: MsgSlice<L4Packet>,
    held: AxisFifo<W, K, LG_HELD>,
    verdicts: MsgFifo<L4Verdict, LG_VERDICTS>,
    total: Total<W, K>,
    #[init(Delay::new(LATENCY))]
    tags: Delay<Tag>,
    /// Cycles since the reset: what was under way in it is forgotten.
    quiet: DFF<Bits<4>>,
    room: DFF<Bit>,
    inside: DFF<Bit>,
    /// Bytes in front of the packet's, and up to its end.
    before: DFF<Bits<17>>,
    until: DFF<Bits<17>>,
    /// A beat with what is known of it.
    beat: DFF<Bits<W>>,
    keep: DFF<Bits<K>>,
    skipped: DFF<Bits<17>>,
    wanted: DFF<Bits<17>>,
    seed: DFF<Bits<18>>,
    first: DFF<Bit>,
    ends: DFF<Bit>,
    checks: DFF<Bit>,
    comes: DFF<Bit>,
    lead: LenMask<K, 17>,
    body: LenMask<K, 17>,
    #[init(Constant::new((LK as u64).into()))]
    lg_width: Constant<Bits<5>>,
    #[init(Constant::new((K as u64).into()))]
    width: Constant<Bits<17>>,
    passes: Signal<Local, Bit>,
    takes: Signal<Local, Bit>,
    is_first: Signal<Local, Bit>,
    start: Signal<Local, Bits<17>>,
    ahead: Signal<Local, Bits<17>>,
    rest: Signal<Local, Bits<17>>,
    ahead_rows: Signal<Local, Bits<17>>,
    rest_rows: Signal<Local, Bits<17>>,
    missing: Signal<Local, Bits<K>>,
    beyond: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize> Logic for Verify<W, K, LK> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, quiet, room, inside, before, until, beat, keep, skipped, wanted, seed, first, ends, checks, comes);
        clock!(self, clock, inlet, outlet, head, packets, held, verdicts, total, tags);
        self.inlet.reset.next = self.reset.val();
        self.outlet.reset.next = self.reset.val();
        self.head.reset.next = self.reset.val();
        self.packets.reset.next = self.reset.val();
        self.held.reset.next = self.reset.val();
        self.verdicts.reset.next = self.reset.val();
        AxisSink::<W, K>::link(&mut self.s_frame, &mut self.inlet.s);
        AxisSrc::<W, K>::link(&mut self.m_frame, &mut self.outlet.m);
        MsgSrc::<L4Verdict>::link(&mut self.m_verdict, &mut self.verdicts.m);

        // ---- Each beat passes, is looked at, and is held until the headers are known ----
        self.passes.next = self.outlet.s.ready.val() & self.head.s.ready.val() & self.held.s.ready.val();
        self.inlet.m.ready.next = self.passes.val();
        self.outlet.s.data.next = self.inlet.m.data.val();
        self.outlet.s.keep.next = self.inlet.m.keep.val();
        self.outlet.s.last.next = self.inlet.m.last.val();
        self.outlet.s.valid.next = self.inlet.m.valid.val() & self.head.s.ready.val() & self.held.s.ready.val();
        self.head.s.data.next = self.inlet.m.data.val();
        self.head.s.keep.next = self.inlet.m.keep.val();
        self.head.s.last.next = self.inlet.m.last.val();
        self.head.s.valid.next = self.inlet.m.valid.val() & self.outlet.s.ready.val() & self.held.s.ready.val();
        self.held.s.data.next = self.inlet.m.data.val();
        self.held.s.keep.next = self.inlet.m.keep.val();
        self.held.s.last.next = self.inlet.m.last.val();
        self.held.s.valid.next = self.inlet.m.valid.val() & self.outlet.s.ready.val() & self.head.s.ready.val();
        self.packets.s.data.next = self.head.m.data.val();
        self.packets.s.valid.next = self.head.m.valid.val();
        self.head.m.ready.next = self.packets.s.ready.val();

        // ---- The packet's bytes count ----
        self.room.d.next = self.verdicts.level.val() < ROOM;
        self.takes.next = self.held.m.valid.val() & self.packets.m.valid.val() & self.room.q.val() & !self.quiet.q.val().any();
        self.held.m.ready.next = self.packets.m.valid.val() & self.room.q.val() & !self.quiet.q.val().any();
        self.packets.m.ready.next = self.takes.val() & self.held.m.last.val();
        self.is_first.next = !self.inside.q.val();
        self.start.next = bit_cast::<17, 8>(self.packets.m.data.val().start);
        self.ahead.next = self.before.q.val();
        self.rest.next = self.until.q.val();
        if self.is_first.val() {
            self.ahead.next = self.start.val();
            self.rest.next = self.start.val() + bit_cast::<17, 16>(self.packets.m.data.val().size);
        }
        self.ahead_rows.next = self.ahead.val() >> self.lg_width.val();
        self.rest_rows.next = self.rest.val() >> self.lg_width.val();
        self.beat.d.next = self.held.m.data.val();
        self.keep.d.next = self.held.m.keep.val();
        self.skipped.d.next = self.ahead.val();
        self.wanted.d.next = self.rest.val();
        self.seed.d.next = bit_cast::<18, 17>(self.packets.m.data.val().seed);
        self.first.d.next = self.is_first.val();
        self.ends.d.next = self.held.m.last.val();
        self.checks.d.next = self.packets.m.data.val().checks;
        self.comes.d.next = self.takes.val();
        if self.takes.val() {
            self.inside.d.next = !self.held.m.last.val();
            self.before.d.next = self.ahead.val() - self.width.val();
            if !self.ahead_rows.val().any() {
                self.before.d.next = bits::<17>(0);
            }
            self.until.d.next = self.rest.val() - self.width.val();
            if !self.rest_rows.val().any() {
                self.until.d.next = bits::<17>(0);
            }
        }
        self.lead.len.next = self.skipped.q.val();
        self.body.len.next = self.wanted.q.val();
        self.total.data.next = self.beat.q.val();
        self.total.counts.next = self.keep.q.val() & self.body.keep.val() & !self.lead.keep.val();
        self.total.valid.next = self.comes.q.val();
        self.total.first.next = self.first.q.val();
        self.total.seed.next = self.seed.q.val();
        // Bytes that the packet has and the frame has not: in its last beat, or behind that.
        self.missing.next = self.body.keep.val() & !self.keep.q.val();
        self.beyond.next = self.wanted.q.val() > self.width.val();
        self.tags.x.next.ends = self.comes.q.val() & self.ends.q.val();
        self.tags.x.next.checks = self.checks.q.val() & !self.missing.val().any() & !self.beyond.val();

        // ---- The sum is there ----
        self.verdicts.s.valid.next = self.tags.y.val().ends & !self.quiet.q.val().any();
        self.verdicts.s.data.next.checked = self.tags.y.val().checks;
        self.verdicts.s.data.next.good = self.tags.y.val().checks & (self.total.sum.val() == RIGHT);
        if self.quiet.q.val().any() {
            self.quiet.d.next = self.quiet.q.val() - 1;
        }
        if self.reset.val() {
            self.quiet.d.next = bits::<4>(DRAINED as u64);
            self.inside.d.next = false;
            self.comes.d.next = false;
        }
    }
}
