//! Whether a frame that leaves is for a function of the card, too, or only for one, and whether the flow tables let it leave.

use super::asking::{Asking, Leaving, Told, Used};
use crate::bus::{AxisSink, AxisSrc, MsgSrc};
use crate::msg::{Network, SentBy};
use crate::net::within::{Within, NETWORKS};
use crate::prim::arb::{FirstSet, OneHotToBin};
use crate::prim::keep_mask::KeepLen;
use crate::prim::pack::{permutation, BePick, Gather};
use crate::records::StationCtx;
use crate::stream::{AxisFifo, MsgFifo};
use crate::switch::wrap::whose::Whose;
use ferric_abi::wire;
use ferric_hdl_derive::{kernel, BlockDefault};
use ferric_model::net::networks::{LOOPED, NOBODY, WHOLE};
use rust_hdl::prelude::*;

/// Events on `stat`, when a frame's last beat goes: for a function of this card; for the wire, if it may leave, and a copy for functions of this card; the same without that copy, for which there was no room, or a frame dropped
/// that the flow tables wanted to come in again; dropped, because there was no room for too long.
pub const STATS: &[&str] = &["local", "local_copies", "local_no_room", "local_late"];

/// Which ports may wait for which others (docs/deadlock.md). A frame for a function of the card waits for room too, but 4,096 cycles at most; what is asked about waits for its answer, which comes when the question has been taken.
pub const WAITS: &[(&str, &[&str])] = &[("s", &["m", "m_ask", "m_use"]), ("m_local", &[])];

const EVENTS: usize = 4;
const FRAME: u64 = 1;
const COPY: u64 = 1 << 1;
const NO_ROOM: u64 = 1 << 2;
const LATE: u64 = 1 << 3;
/// Bits of the first field of an Ethernet header.
const MAC: usize = 48;
/// The bit of a group's address: the first on the wire, which is the lowest of the first byte (IEEE 802.3, 3.2.3).
const GROUP: usize = 40;
/// log2 of MAC addresses of each function.
const LG_STATIONS: usize = ferric_abi::csr::STATIONS.ilog2() as usize;
/// log2 of the places for beats that wait for their frame's fate, of which a window has 16 and the answer takes 18 cycles; fates are never more.
const LG_BEATS: usize = 6;
const LG_FATES: usize = 7;
/// log2 of the places for frames that flows are to count.
const LG_USES: usize = 4;
/// Bits of a frame's length.
const LEN: usize = 17;
/// log2 of the cycles for which a frame waits for room.
const LG_LATE: usize = 12;
/// The cycle before the last of these.
const NEARLY: u64 = (1 << LG_LATE) - 2;
/// Of a frame's `function` what says that it is for the sender's network, and that it comes from there, or for no raw queue pair.
const SENDERS: u64 = WHOLE as u64;
const TO_ALL: u64 = (WHOLE | LOOPED) as u64;
const NO_RAW: u64 = NOBODY as u64;
/// The bit of a network that says that there is a tunnel, and log2 of the bits of one.
const HAS: usize = 7;
const LG_EACH: u64 = 3;

/// What becomes of a frame.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Fate {
    /// It is for a function of this card, and not for the wire.
    local: Bit,
    /// It is for the wire, and others on this card may want it, too.
    copy: Bit,
    /// Whether it may leave is asked.
    asked: Bit,
    /// Whose network it is of, for the functions of this card.
    network: Network,
    /// Who has sent it.
    origin: SentBy,
}

/// Compares the destination of each frame that leaves with the `ND` = 2^`LD` MAC addresses of all functions.
#[derive(LogicBlock, BlockDefault)]
#[demand(STATS.len() == EVENTS && ND == 1 << LD && LD <= 8)]
pub struct Depart<const W: usize, const K: usize, const ND: usize, const LD: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; what is under way is forgotten.
    pub reset: Signal<In, Bit>,
    /// A frame begins, of this function; its first beat comes on `s` in the next cycle or later.
    pub begins: Signal<In, Bit>,
    pub begins_function: Signal<In, Bits<12>>,
    pub s: AxisSink<W, K>,
    /// Frames for the wire, and their beginnings.
    pub m: AxisSrc<W, K>,
    pub m_begins: Signal<Out, Bit>,
    pub m_function: Signal<Out, Bits<12>>,
    /// Frames for functions of this card; it is always taken. With every beat: the frame's network, and who has sent it.
    pub m_local: AxisSrc<W, K>,
    pub network: Signal<Out, Network>,
    pub origin: Signal<Out, SentBy>,
    /// There is room for the longest frame, and some beats of the one before.
    pub room: Signal<In, Bit>,
    /// The functions' addresses that count, and which network each is in. They may change at any time.
    pub macs: [Signal<In, StationCtx>; ND],
    pub networks: Signal<In, Bits<NETWORKS>>,
    /// The flow tables are asked about frames that leave. What they are asked, and what they have said, in the same order.
    pub egress: Signal<In, Bit>,
    pub m_ask: MsgSrc<Leaving>,
    pub told: Signal<In, Told>,
    pub told_valid: Signal<In, Bit>,
    /// Frames that flows are to count, when they have left or were dropped.
    pub m_use: MsgSrc<Used>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<4>>,
    beats: AxisFifo<W, K, LG_BEATS>,
    fates: MsgFifo<Fate, LG_FATES>,
    whose: Whose<K>,
    taken: Signal<Local, Bit>,
    inside: DFF<Bit>,
    // The destination, and who has it
    #[init(BePick::new(permutation(&wire::Eth::LAYOUT, 0)[..MAC].to_vec()))]
    destination: BePick<W, Bits<48>>,
    dmac: DFF<Bits<48>>,
    asks: DFF<Bit>,
    sender: Signal<Local, Bits<6>>,
    shifted: Signal<Local, Bits<NETWORKS>>,
    /// Of the sender's network.
    within: Within,
    asker: Signal<Local, Network>,
    station: Signal<Local, StationCtx>,
    same: Gather<ND>,
    hits: DFF<Bits<ND>>,
    group: DFF<Bit>,
    tunnel: DFF<Bit>,
    owner: DFF<Bits<6>>,
    called: DFF<Bits<6>>,
    known: DFF<Bit>,
    hit: Signal<Local, Bit>,
    first: FirstSet<ND>,
    line: OneHotToBin<ND, LD>,
    place: Signal<Local, Bits<12>>,
    physical: Signal<Local, Bits<8>>,
    to: Signal<Local, Network>,
    from: Signal<Local, SentBy>,
    asking: Asking<W, K>,
    // The frame that goes
    fate: Signal<Local, Fate>,
    answer: Signal<Local, Told>,
    stays: Signal<Local, Bit>,
    /// It comes in again. Of a frame to a group the copy for functions of the card does that.
    returns: Signal<Local, Bit>,
    count: KeepLen<K, 8>,
    before: DFF<Bits<LEN>>,
    onward: Signal<Local, Bits<LEN>>,
    #[init(Constant::new((K as u64).to_bits()))]
    beat: Constant<Bits<LEN>>,
    /// The last byte of a beat.
    #[init(Constant::new(1u64.to_bits::<K>() << (K as u64 - 1)))]
    top: Constant<Bits<K>>,
    uses: MsgFifo<Used, LG_USES>,
    ready: Signal<Local, Bit>,
    going: DFF<Bit>,
    gives: DFF<Bit>,
    drops: DFF<Bit>,
    giving: Signal<Local, Bit>,
    dropping: Signal<Local, Bit>,
    goes: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    patience: DFF<Bits<LG_LATE>>,
    late: DFF<Bit>,
    // The beat for functions of this card
    l_valid: DFF<Bit>,
    l_data: DFF<Bits<W>>,
    l_keep: DFF<Bits<K>>,
    l_last: DFF<Bit>,
    l_network: DFF<Network>,
    l_origin: DFF<SentBy>,
    counts_as: Signal<Local, Bits<EVENTS>>,
    event1: DFF<Bits<EVENTS>>,
}

#[kernel]
impl<const W: usize, const K: usize, const ND: usize, const LD: usize> Logic for Depart<W, K, ND, LD> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, inside, dmac, asks, hits, group, tunnel, owner, called, known, going, gives, drops, patience);
        dff_setup!(self, clock, l_valid, l_data, l_keep, l_last, l_network, l_origin, event1, before, late);
        clock!(self, clock, beats, fates, whose, asking, uses);
        self.beats.reset.next = self.reset.val();
        self.fates.reset.next = self.reset.val();
        self.whose.reset.next = self.reset.val();
        self.asking.reset.next = self.reset.val();
        self.uses.reset.next = self.reset.val();
        // What comes
        self.beats.s.data.next = self.s.data.val();
        self.beats.s.keep.next = self.s.keep.val();
        self.beats.s.last.next = self.s.last.val();
        self.beats.s.valid.next = self.s.valid.val() & !self.asking.busy.val();
        self.s.ready.next = self.beats.s.ready.val() & !self.asking.busy.val();
        self.taken.next = self.s.valid.val() & self.s.ready.val();
        if self.taken.val() {
            self.inside.d.next = !self.s.last.val();
        }
        self.asks.d.next = self.taken.val() & !self.inside.q.val();
        self.destination.x.next = self.s.data.val();
        self.dmac.d.next = self.destination.y.val();
        self.whose.begins.next = self.begins.val();
        self.whose.sender.next = self.begins_function.val();
        self.whose.whole.next = self.asks.q.val();
        // Who has the address: functions of the sender's network.
        self.sender.next = self.whose.first.val();
        self.shifted.next = self.networks.val() >> (bit_cast::<9, 6>(self.sender.val()) << LG_EACH);
        self.asker.next.tunnel = self.shifted.val().get_bit(HAS);
        self.asker.next.function = bit_cast::<12, 6>(self.sender.val()) | SENDERS;
        self.within.network.next = self.asker.val();
        self.within.networks.next = self.networks.val();
        for i in 0..ND {
            self.station.next = self.macs[i].val();
            self.same.x[i].next = self.station.val().valid & (self.station.val().mac == self.dmac.q.val()) & self.within.reached.val().get_bit(i >> LG_STATIONS);
        }
        self.hits.d.next = self.same.y.val();
        self.group.d.next = self.dmac.q.val().get_bit(GROUP);
        self.tunnel.d.next = self.shifted.val().get_bit(HAS);
        self.owner.d.next = self.sender.val();
        self.called.d.next = self.shifted.val().get_bits::<6>(0);
        self.known.d.next = self.asks.q.val();
        self.hit.next = self.hits.q.val().any();
        self.to.next.tunnel = self.tunnel.q.val();
        self.to.next.function = bits::<12>(0);
        self.first.x.next = self.hits.q.val();
        self.line.x.next = self.first.y.val();
        self.place.next = bit_cast::<12, LD>(self.line.y.val()) >> LG_STATIONS as u64;
        self.physical.next = self.networks.val().get_bits::<8>(0);
        if self.tunnel.q.val() {
            self.to.next.function = self.place.val();
            if !self.hit.val() {
                self.to.next.function = bit_cast::<12, 6>(self.owner.q.val()) | TO_ALL;
            }
        } else if self.physical.val().get_bit(HAS) | !(self.hit.val() | self.group.q.val()) | (self.group.q.val() & !self.owner.q.val().any()) {
            // The physical function, which has the raw queue pair of this network, is of another network, or has sent the frame itself; or the frame is for nobody here, and may come in again only for whom the tables name.
            self.to.next.function = bits::<12>(NO_RAW);
        }
        self.fates.s.valid.next = self.known.q.val();
        self.fates.s.data.next.local = self.hit.val();
        self.fates.s.data.next.copy = self.group.q.val();
        self.fates.s.data.next.network = self.to.val();
        self.from.next.local = true;
        self.from.next.function = self.owner.q.val();
        self.from.next.network = self.called.q.val();
        self.fates.s.data.next.origin = self.from.val();
        // What leaves, and what the tables say to that
        self.asking.asks.next = self.egress.val();
        self.asking.data.next = self.s.data.val();
        self.asking.keep.next = self.s.keep.val();
        self.asking.last.next = self.s.last.val();
        self.asking.taken.next = self.taken.val();
        self.asking.known.next = self.known.q.val();
        self.asking.leaves.next = !self.hit.val();
        self.asking.owner.next = self.owner.q.val();
        self.asking.domain.next = bits::<12>(0);
        if self.tunnel.q.val() {
            self.asking.domain.next = bit_cast::<12, 6>(self.called.q.val()) + 1;
        }
        self.asking.told.next = self.told.val();
        self.asking.told_valid.next = self.told_valid.val();
        MsgSrc::<Leaving>::link(&mut self.m_ask, &mut self.asking.m_ask);
        MsgSrc::<Used>::link(&mut self.m_use, &mut self.uses.m);
        self.fates.s.data.next.asked = self.asking.asked.val();
        self.m_begins.next = self.asking.begins.val();
        self.m_function.next = bit_cast::<12, 6>(self.asking.begins_function.val());
        // What goes, and where to
        self.fate.next = self.fates.m.data.val();
        self.answer.next = self.asking.m_told.data.val();
        self.ready.next = self.beats.m.valid.val() & self.fates.m.valid.val() & (!self.fate.val().asked | (self.asking.m_told.valid.val() & self.uses.s.ready.val()));
        self.stays.next = self.fate.val().asked & self.answer.val().drops;
        self.returns.next = self.fate.val().asked & self.answer.val().returns & !self.fate.val().copy;
        self.giving.next = self.gives.q.val();
        self.dropping.next = self.drops.q.val();
        if !self.going.q.val() {
            self.giving.next = (self.fate.val().local | self.fate.val().copy | self.returns.val()) & self.room.val();
            self.dropping.next = self.fate.val().local & !self.room.val() & self.late.q.val();
        }
        self.m.valid.next = self.ready.val() & !self.fate.val().local & !self.stays.val();
        self.m.data.next = self.beats.m.data.val();
        self.m.keep.next = self.beats.m.keep.val();
        self.m.last.next = self.beats.m.last.val();
        self.goes.next = self.ready.val() & (self.m.ready.val() | self.stays.val());
        if self.fate.val().local {
            self.goes.next = self.ready.val() & (self.giving.val() | self.dropping.val());
        }
        self.ends.next = self.goes.val() & self.beats.m.last.val();
        self.beats.m.ready.next = self.goes.val();
        self.fates.m.ready.next = self.ends.val();
        self.asking.m_told.ready.next = self.ends.val() & self.fate.val().asked;
        // All beats but the last are full, so what was before ends in zeros: no sum behind the count.
        self.count.keep.next = self.beats.m.keep.val();
        self.onward.next = self.before.q.val() + self.beat.val();
        self.uses.s.data.next.flow = self.answer.val().flow;
        self.uses.s.data.next.len = self.before.q.val() | bit_cast::<LEN, 8>(self.count.len.val());
        if (self.beats.m.keep.val() & self.top.val()).any() {
            self.uses.s.data.next.len = self.onward.val();
        }
        // What comes in again is counted there.
        self.uses.s.valid.next = self.ends.val() & self.fate.val().asked & self.answer.val().count & !(self.returns.val() & self.giving.val());
        if self.goes.val() {
            self.before.d.next = self.onward.val();
            if self.beats.m.last.val() {
                self.before.d.next = bits::<LEN>(0);
            }
        }
        self.gives.d.next = self.giving.val();
        self.drops.d.next = self.dropping.val();
        if self.goes.val() {
            self.going.d.next = !self.beats.m.last.val();
        }
        self.patience.d.next = bits::<LG_LATE>(0);
        self.late.d.next = false;
        if self.ready.val() & !self.goes.val() & self.fate.val().local {
            self.patience.d.next = self.patience.q.val() + 1;
            self.late.d.next = self.patience.q.val() == NEARLY;
        }
        self.l_valid.d.next = self.goes.val() & self.giving.val();
        self.l_data.d.next = self.beats.m.data.val();
        self.l_keep.d.next = self.beats.m.keep.val();
        self.l_last.d.next = self.beats.m.last.val();
        self.l_network.d.next = self.fate.val().network;
        self.l_origin.d.next = self.fate.val().origin;
        self.m_local.valid.next = self.l_valid.q.val();
        self.m_local.data.next = self.l_data.q.val();
        self.m_local.keep.next = self.l_keep.q.val();
        self.m_local.last.next = self.l_last.q.val();
        self.network.next = self.l_network.q.val();
        self.origin.next = self.l_origin.q.val();
        // What counts
        self.counts_as.next = bits::<EVENTS>(0);
        if self.fate.val().local {
            self.counts_as.next = bits::<EVENTS>(FRAME);
            if self.dropping.val() {
                self.counts_as.next = bits::<EVENTS>(LATE);
            }
        } else if self.fate.val().copy {
            self.counts_as.next = bits::<EVENTS>(COPY);
            if !self.giving.val() {
                self.counts_as.next = bits::<EVENTS>(NO_ROOM);
            }
        } else if self.returns.val() & !self.giving.val() {
            self.counts_as.next = bits::<EVENTS>(NO_ROOM);
        }
        self.event1.d.next = bits::<EVENTS>(0);
        if self.ends.val() {
            self.event1.d.next = self.counts_as.val();
        }
        self.stat.next = self.event1.q.val();
        if self.reset.val() {
            self.inside.d.next = false;
            self.asks.d.next = false;
            self.known.d.next = false;
            self.before.d.next = bits::<LEN>(0);
            self.going.d.next = false;
            self.l_valid.d.next = false;
            self.event1.d.next = bits::<EVENTS>(0);
        }
    }
}
