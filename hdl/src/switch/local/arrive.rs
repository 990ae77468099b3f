//! Frames of functions of the card come in between those off the wire.

use super::queue::Queue;
use super::LONGEST;
use crate::bus::{AxisSink, AxisSrc};
use crate::msg::{Network, SentBy};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// The event on `stat`: a frame off the wire came while a local one went and the queue was full; it is lost, or goes on cut, as a bad frame.
pub const STATS: &[&str] = &["local_wire_lost"];

/// Which ports may wait for which others (docs/deadlock.md): whoever sends to `s_local` has looked at `room`.
pub const WAITS: &[(&str, &[&str])] = &[("s", &[]), ("s_local", &[])];

/// Places of the queue off the wire that a cut frame's end may still use.
const SPARE: u64 = 4;

/// A local frame goes when it is complete and nothing off the wire waits; what comes off the wire meanwhile waits behind it. Always ready, and nobody behind it waits.
#[derive(LogicBlock, BlockDefault)]
pub struct Arrive<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; what is under way is forgotten.
    pub reset: Signal<In, Bit>,
    pub s: AxisSink<W, K>,
    /// With `s.last`: the MAC found the frame bad.
    pub s_err: Signal<In, Bit>,
    /// With every beat of `s`.
    pub s_network: Signal<In, Network>,
    /// Frames of functions, with every beat their network and who has sent them; and whether there is room for the longest one, and some beats of the one before.
    pub s_local: AxisSink<W, K>,
    pub network: Signal<In, Network>,
    pub origin: Signal<In, SentBy>,
    pub room: Signal<Out, Bit>,
    pub m: AxisSrc<W, K>,
    pub m_err: Signal<Out, Bit>,
    pub m_network: Signal<Out, Network>,
    pub m_origin: Signal<Out, SentBy>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bit>,
    #[init(Queue::new((2 * LONGEST / K).ilog2() as usize))]
    ours: Queue<W, K>,
    #[init(Queue::new((LONGEST / K).ilog2() as usize))]
    theirs: Queue<W, K>,
    #[init(Constant::new(((LONGEST / K) as u64 - SPARE).to_bits()))]
    most: Constant<Bits<13>>,
    spacious: DFF<Bit>,
    // The frame off the wire that comes
    coming: DFF<Bit>,
    lost: DFF<Bit>,
    waits: Signal<Local, Bit>,
    full: Signal<Local, Bit>,
    loses: Signal<Local, Bit>,
    kept: Signal<Local, Bit>,
    direct: Signal<Local, Bit>,
    // The frame that goes
    local: DFF<Bit>,
    inside: DFF<Bit>,
    active: Signal<Local, Bit>,
    ours_go: Signal<Local, Bit>,
    theirs_go: Signal<Local, Bit>,
    m_valid: DFF<Bit>,
    m_last: DFF<Bit>,
    m_data: DFF<Bits<W>>,
    m_keep: DFF<Bits<K>>,
    err: DFF<Bit>,
    network1: DFF<Network>,
    origin1: DFF<SentBy>,
    outside: Signal<Local, SentBy>,
    stat1: DFF<Bit>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Arrive<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, spacious, coming, lost, local, inside, m_valid, m_last, m_data, m_keep, err, network1, origin1, stat1);
        clock!(self, clock, ours, theirs);
        self.ours.reset.next = self.reset.val();
        self.theirs.reset.next = self.reset.val();
        // Frames of functions
        self.s_local.ready.next = true;
        self.ours.push.next = self.s_local.valid.val();
        self.ours.data.next = self.s_local.data.val();
        self.ours.keep.next = self.s_local.keep.val();
        self.ours.last.next = self.s_local.last.val();
        self.ours.err.next = false;
        self.ours.network.next = self.network.val();
        self.ours.origin.next = self.origin.val();
        self.spacious.d.next = self.ours.used.val() < self.most.val();
        self.room.next = self.spacious.q.val();
        self.active.next = self.local.q.val() | (self.ours.whole.val() & !self.inside.q.val() & !self.theirs.holds.val());
        // Frames off the wire: what comes while a local one goes waits, and so does what is behind it.
        self.s.ready.next = true;
        self.waits.next = self.active.val() | self.theirs.holds.val();
        self.full.next = !(self.theirs.used.val() < self.most.val());
        self.loses.next = self.s.valid.val() & self.waits.val() & self.full.val() & !self.lost.q.val();
        self.kept.next = self.s.valid.val() & self.waits.val() & !self.lost.q.val() & (!self.full.val() | self.coming.q.val());
        self.direct.next = self.s.valid.val() & !self.waits.val() & !self.lost.q.val();
        self.theirs.push.next = self.kept.val();
        self.theirs.data.next = self.s.data.val();
        self.theirs.keep.next = self.s.keep.val();
        self.theirs.last.next = self.s.last.val() | self.full.val();
        self.theirs.err.next = self.s_err.val() | self.full.val();
        self.theirs.network.next = self.s_network.val();
        self.outside.next.local = false;
        self.outside.next.function = bits::<6>(0);
        self.outside.next.network = bits::<6>(0);
        self.theirs.origin.next = self.outside.val();
        self.origin1.d.next = self.outside.val();
        if self.s.valid.val() {
            self.coming.d.next = !self.s.last.val();
            self.lost.d.next = (self.lost.q.val() | self.loses.val()) & !self.s.last.val();
        }
        // What goes
        self.ours_go.next = self.active.val() & self.ours.valid.val();
        self.theirs_go.next = !self.active.val() & self.theirs.valid.val();
        self.ours.take.next = self.ours_go.val();
        self.theirs.take.next = self.theirs_go.val();
        self.local.d.next = self.active.val();
        self.m_valid.d.next = self.ours_go.val() | self.theirs_go.val() | self.direct.val();
        self.m_data.d.next = self.s.data.val();
        self.m_keep.d.next = self.s.keep.val();
        self.m_last.d.next = self.s.last.val();
        self.err.d.next = self.s_err.val();
        self.network1.d.next = self.s_network.val();
        if self.active.val() {
            self.m_data.d.next = self.ours.m_data.val();
            self.m_keep.d.next = self.ours.m_keep.val();
            self.m_last.d.next = self.ours.m_last.val();
            self.err.d.next = false;
            self.network1.d.next = self.ours.m_network.val();
            self.origin1.d.next = self.ours.m_origin.val();
            if self.ours_go.val() {
                self.local.d.next = !self.ours.m_last.val();
            }
        } else if self.theirs.holds.val() {
            self.m_data.d.next = self.theirs.m_data.val();
            self.m_keep.d.next = self.theirs.m_keep.val();
            self.m_last.d.next = self.theirs.m_last.val();
            self.err.d.next = self.theirs.m_err.val();
            self.network1.d.next = self.theirs.m_network.val();
            if self.theirs_go.val() {
                self.inside.d.next = !self.theirs.m_last.val();
            }
        } else if self.direct.val() {
            self.inside.d.next = !self.s.last.val();
        }
        self.m.valid.next = self.m_valid.q.val();
        self.m.data.next = self.m_data.q.val();
        self.m.keep.next = self.m_keep.q.val();
        self.m.last.next = self.m_last.q.val();
        self.m_err.next = self.err.q.val();
        self.m_network.next = self.network1.q.val();
        self.m_origin.next = self.origin1.q.val();
        self.stat1.d.next = self.loses.val();
        self.stat.next = self.stat1.q.val();
        if self.reset.val() {
            self.spacious.d.next = false;
            self.coming.d.next = false;
            self.lost.d.next = false;
            self.local.d.next = false;
            self.inside.d.next = false;
            self.m_valid.d.next = false;
            self.stat1.d.next = false;
        }
    }
}
