//! Frames on their way out have their checksums filled in. See README.md.

use super::total::{Total, LATENCY};
use crate::bus::{AxisSink, AxisSrc, MsgSink, MsgSrc};
use crate::msg::{L4Order, VqNotify};
use crate::prim::arb::BinToOneHot;
use crate::prim::keep_mask::{KeepMask, LenMask};
use crate::prim::sized::Delay;
use crate::prim::spread::Repeat;
use crate::stream::{AxisFifo, AxisSlice, MsgFifo, MsgSlice};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_frame", &["s_order", "m_frame", "m_from"]),
    // There is a place for the order of every frame that `virtio/tx` can have said and not shown.
    ("s_order", &[]),
    // A frame's queue goes with its first beat, so neither waits for the other of the same frame.
    ("m_frame", &["s_frame", "s_order"]),
    ("m_from", &["s_frame", "s_order"]),
];

/// log2 of the frames whose order is known and which have not come: 16 beats are on their way at most.
const LG_ORDERS: usize = 5;
/// log2 of the frames that may leave. Below this level no beat is in the way of another: each of those on its way to a sum may be a frame.
const LG_RESULTS: usize = 5;
const ROOM: u64 = 16;
/// Cycles from a beat of the frame to its place in the list of those that may leave.
const TO_RESULT: usize = LATENCY;
/// Cycles behind a reset in which what was on its way comes out.
const DRAINED: usize = TO_RESULT + 2;
/// The checksum whose inverse, zero, would mean to UDP that there is none (RFC 768): it stays as it is.
const NO_SUM: u64 = 0xffff;

/// What is known of a beat on its way to a sum. `gives`: its frame may leave behind it; `puts`: with a checksum.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Tag {
    gives: Bit,
    puts: Bit,
    odd: Bit,
    queue: Bits<16>,
    at: Bits<17>,
}

/// A frame may leave: with `puts`, byte `at` of it becomes `one`, byte `behind` the `other`.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Leave {
    puts: Bit,
    queue: Bits<16>,
    at: Bits<17>,
    behind: Bits<17>,
    one: Bits<8>,
    other: Bits<8>,
}

/// A path of `W` bits that keeps 2^`LR` beats: a frame with an order as long as that leaves with its checksum.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && K == 1 << LK, "K must be W / 8, LK its logarithm")]
#[demand((3..=15).contains(&LR), "a frame of some beats")]
pub struct Fill<const W: usize, const K: usize, const LK: usize, const LR: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not in the middle of a frame.
    pub reset: Signal<In, Bit>,
    pub s_frame: AxisSink<W, K>,
    /// What each frame wants, before it or with it.
    pub s_order: MsgSink<L4Order>,
    pub m_frame: AxisSrc<W, K>,
    /// The queue of each frame that leaves, before it or with it.
    pub m_from: MsgSrc<VqNotify>,
    /// Pulse: a frame is longer than what is kept, and leaves as it is.
    pub too_long: Signal<Out, Bit>,
    inlet: AxisSlice<W, K>,
    orders: MsgFifo<L4Order, LG_ORDERS>,
    rows: AxisFifo<W, K, LR>,
    results: MsgFifo<Leave, LG_RESULTS>,
    from: MsgSlice<VqNotify>,
    outlet: AxisSlice<W, K>,
    total: Total<W, K>,
    #[init(Delay::new(TO_RESULT))]
    tags: Delay<Tag>,
    /// Cycles since the reset: what was under way in it is forgotten.
    quiet: DFF<Bits<4>>,
    room: DFF<Bit>,
    /// In the middle of a frame; its beats so far; it may leave although it has not ended.
    inside: DFF<Bit>,
    count: DFF<Bits<LR>>,
    given: DFF<Bit>,
    /// Bytes in front of those that count.
    before: DFF<Bits<16>>,
    /// A beat with what is known of it.
    beat: DFF<Bits<W>>,
    keep: DFF<Bits<K>>,
    skipped: DFF<Bits<16>>,
    first: DFF<Bit>,
    comes: DFF<Bit>,
    tag: DFF<Tag>,
    lead: LenMask<K, 16>,
    /// In the middle of the frame that leaves; its next beat's number.
    midway: DFF<Bit>,
    row: DFF<Bits<17>>,
    one_at: BinToOneHot<K, LK>,
    other_at: BinToOneHot<K, LK>,
    one_mask: KeepMask<W, K>,
    other_mask: KeepMask<W, K>,
    ones: Repeat<8, W>,
    others: Repeat<8, W>,
    #[init(Constant::new((LK as u64).into()))]
    lg_width: Constant<Bits<5>>,
    #[init(Constant::new((K as u64).into()))]
    width: Constant<Bits<16>>,
    has: Signal<Local, Bit>,
    takes: Signal<Local, Bit>,
    is_first: Signal<Local, Bit>,
    order: Signal<Local, L4Order>,
    ahead: Signal<Local, Bits<16>>,
    above: Signal<Local, Bits<16>>,
    full: Signal<Local, Bit>,
    spent: Signal<Local, Bit>,
    sum: Signal<Local, Bits<16>>,
    inverse: Signal<Local, Bits<16>>,
    patch: Signal<Local, Leave>,
    at: Signal<Local, Bits<17>>,
    behind: Signal<Local, Bits<17>>,
    at_row: Signal<Local, Bits<17>>,
    behind_row: Signal<Local, Bits<17>>,
    leaves: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize, const LR: usize> Logic for Fill<W, K, LK, LR> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, quiet, room, inside, count, given, before, beat, keep, skipped, first, comes, tag, midway, row);
        clock!(self, clock, inlet, orders, rows, results, from, outlet, total, tags);
        self.inlet.reset.next = self.reset.val();
        self.orders.reset.next = self.reset.val();
        self.rows.reset.next = self.reset.val();
        self.results.reset.next = self.reset.val();
        self.from.reset.next = self.reset.val();
        self.outlet.reset.next = self.reset.val();
        AxisSink::<W, K>::link(&mut self.s_frame, &mut self.inlet.s);
        MsgSink::<L4Order>::link(&mut self.s_order, &mut self.orders.s);
        AxisSrc::<W, K>::link(&mut self.m_frame, &mut self.outlet.m);
        MsgSrc::<VqNotify>::link(&mut self.m_from, &mut self.from.m);

        // ---- A frame comes: its beats are kept, and counted from a byte on ----
        self.room.d.next = self.results.level.val() < ROOM;
        self.has.next = self.inlet.m.valid.val() & self.orders.m.valid.val() & self.room.q.val() & !self.quiet.q.val().any();
        self.takes.next = self.has.val() & self.rows.s.ready.val();
        self.inlet.m.ready.next = self.orders.m.valid.val() & self.room.q.val() & !self.quiet.q.val().any() & self.rows.s.ready.val();
        self.orders.m.ready.next = self.takes.val() & self.inlet.m.last.val();
        self.rows.s.data.next = self.inlet.m.data.val();
        self.rows.s.keep.next = self.inlet.m.keep.val();
        self.rows.s.last.next = self.inlet.m.last.val();
        self.rows.s.valid.next = self.has.val();
        self.order.next = self.orders.m.data.val();
        self.is_first.next = !self.inside.q.val();
        self.ahead.next = self.before.q.val();
        if self.is_first.val() {
            self.ahead.next = self.order.val().start;
        }
        self.above.next = self.ahead.val() >> self.lg_width.val();
        self.spent.next = !self.above.val().any();
        self.full.next = self.count.q.val().all();
        self.beat.d.next = self.inlet.m.data.val();
        self.keep.d.next = self.inlet.m.keep.val();
        self.skipped.d.next = self.ahead.val();
        self.first.d.next = self.is_first.val();
        self.comes.d.next = self.takes.val();
        self.tag.d.next.odd = self.order.val().start.get_bit(0);
        self.tag.d.next.queue = self.order.val().queue;
        self.tag.d.next.at = self.order.val().at;
        self.tag.d.next.puts = self.order.val().fills & self.inlet.m.last.val();
        self.tag.d.next.gives = self.takes.val() & ((self.is_first.val() & !self.order.val().fills) | (self.order.val().fills & !self.given.q.val() & (self.inlet.m.last.val() | self.full.val())));
        self.too_long.next = self.tag.q.val().gives & !self.tag.q.val().puts & !self.first.q.val();
        if self.takes.val() {
            self.inside.d.next = !self.inlet.m.last.val();
            self.count.d.next = self.count.q.val() + 1;
            self.given.d.next = self.given.q.val() | self.full.val();
            self.before.d.next = self.ahead.val() - self.width.val();
            if self.spent.val() {
                self.before.d.next = bits::<16>(0);
            }
            if self.inlet.m.last.val() {
                self.count.d.next = bits::<LR>(0);
                self.given.d.next = false;
            }
        }
        self.lead.len.next = self.skipped.q.val();
        self.total.data.next = self.beat.q.val();
        self.total.counts.next = self.keep.q.val() & !self.lead.keep.val();
        self.total.valid.next = self.comes.q.val();
        self.total.first.next = self.first.q.val();
        self.total.seed.next = bits::<18>(0);
        self.tags.x.next = self.tag.q.val();

        // ---- The sum is there. The first byte on the wire is the lower one of the first word, unless the words begin in an odd lane ----
        self.sum.next = self.total.sum.val();
        self.inverse.next = !self.sum.val();
        if self.sum.val() == NO_SUM {
            self.inverse.next = self.sum.val();
        }
        self.at.next = self.tags.y.val().at;
        self.results.s.valid.next = self.tags.y.val().gives & !self.quiet.q.val().any();
        self.results.s.data.next.puts = self.tags.y.val().puts;
        self.results.s.data.next.queue = self.tags.y.val().queue;
        self.results.s.data.next.at = self.at.val();
        self.results.s.data.next.behind = self.at.val() + 1;
        self.results.s.data.next.one = self.inverse.val().get_bits::<8>(0);
        self.results.s.data.next.other = self.inverse.val().get_bits::<8>(8);
        if self.tags.y.val().odd {
            self.results.s.data.next.one = self.inverse.val().get_bits::<8>(8);
            self.results.s.data.next.other = self.inverse.val().get_bits::<8>(0);
        }

        // ---- A frame leaves ----
        self.patch.next = self.results.m.data.val();
        self.behind.next = self.patch.val().behind;
        self.at_row.next = self.patch.val().at >> self.lg_width.val();
        self.behind_row.next = self.behind.val() >> self.lg_width.val();
        self.one_at.x.next = self.patch.val().at.get_bits::<LK>(0);
        self.one_at.en.next = self.patch.val().puts & (self.at_row.val() == self.row.q.val());
        self.other_at.x.next = self.behind.val().get_bits::<LK>(0);
        self.other_at.en.next = self.patch.val().puts & (self.behind_row.val() == self.row.q.val());
        self.one_mask.keep.next = self.one_at.y.val();
        self.other_mask.keep.next = self.other_at.y.val();
        self.ones.x.next = self.patch.val().one;
        self.others.x.next = self.patch.val().other;
        self.outlet.s.data.next =
            (self.rows.m.data.val() & !(self.one_mask.mask.val() | self.other_mask.mask.val())) | (self.ones.y.val() & self.one_mask.mask.val()) | (self.others.y.val() & self.other_mask.mask.val());
        self.outlet.s.keep.next = self.rows.m.keep.val();
        self.outlet.s.last.next = self.rows.m.last.val();
        self.leaves.next = self.rows.m.valid.val() & self.results.m.valid.val() & self.outlet.s.ready.val() & (self.from.s.ready.val() | self.midway.q.val());
        self.outlet.s.valid.next = self.leaves.val();
        self.rows.m.ready.next = self.results.m.valid.val() & self.outlet.s.ready.val() & (self.from.s.ready.val() | self.midway.q.val());
        self.results.m.ready.next = self.leaves.val() & self.rows.m.last.val();
        self.from.s.valid.next = self.leaves.val() & !self.midway.q.val();
        self.from.s.data.next.queue = self.patch.val().queue;
        if self.leaves.val() {
            self.midway.d.next = !self.rows.m.last.val();
            self.row.d.next = self.row.q.val() + 1;
            if self.rows.m.last.val() {
                self.row.d.next = bits::<17>(0);
            }
        }
        if self.quiet.q.val().any() {
            self.quiet.d.next = self.quiet.q.val() - 1;
        }
        if self.reset.val() {
            self.quiet.d.next = bits::<4>(DRAINED as u64);
            self.inside.d.next = false;
            self.count.d.next = bits::<LR>(0);
            self.given.d.next = false;
            self.comes.d.next = false;
            self.midway.d.next = false;
            self.row.d.next = bits::<17>(0);
        }
    }
}
