//! The transmit half of PDCs: what an ACK, a NACK, a time-out mean for the packets that are out. See README.md.

mod places;
mod walks;

#[cfg(test)]
mod tests;

use super::types::{content, loss_ask, LossAsk, LossTold, TxFound, TxRecord, TxWalk, LINE};
use crate::bus::{MsgSink, MsgSrc};
use crate::prim::arb::{FirstSet, OneHotToBin};
use crate::prim::pack::BePick;
use crate::prim::ram::Ram;
use crate::prim::sum::{Diff, PlusOne, Sum};
use ferric_hdl_derive::{kernel, BlockDefault};
use places::Places;
use rust_hdl::prelude::*;
use walks::Walks;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[("s", &["m", "m_walk", "s_found"]), ("s_found", &[])];

/// PSNs behind CACK among which a stalled sender looks for holes; those of a SACK.
const REACH: u64 = 64;
/// ACKs before the share of duplicates is judged.
const SHARE_FROM: u64 = 64;
/// Bits of a count of bytes without a request for an ACK.
const UNASKED: usize = 20;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum State {
    Idle,
    Load,
    Open,
    Places,
    Start,
    // An ACK
    Known,
    Measure,
    Weigh,
    Mine,
    Covered,
    Settle,
    Judge,
    Examine,
    Lost,
    // A packet goes out
    Put,
    Ask,
    // NACKs and timers
    Nack,
    Wait,
    Rto,
    RtoRest,
    Count,
    // Behind each
    Hole,
    Oldest,
    Last,
    Tell,
    Go,
    Found,
}

/// What is known of a PDC. Places count from Start_PSN.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Line {
    start: Bits<32>,
    /// Packets sent; covered by the highest CACK; beyond it may be out.
    sent: Bits<32>,
    cack: Bits<32>,
    range: Bits<16>,
    /// Place behind the newest that the peer is known to have.
    known: Bits<32>,
    slowest: Bits<32>,
    order: Bits<32>,
    /// `rcvd_bytes` of the freshest ACK, if one has been heard.
    rcvd: Bits<24>,
    heard: Bit,
    unasked: Bits<UNASKED>,
    acks: Bits<32>,
    duplicates: Bits<28>,
    tries: Bits<4>,
    refusals: Bits<5>,
    rewound: Bit,
}

/// Rules for `2^LP` PDCs with windows of `2^LW` PSNs; the packets are in `records`.
#[derive(LogicBlock, BlockDefault)]
#[demand(LP <= LINE && LW <= 9)]
pub struct Loss<const LP: usize, const LW: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets the order under way. Lines begin with OPEN.
    pub reset: Signal<In, Bit>,
    /// PSNs that a peer is taken to allow until it says so.
    pub default_range: Signal<In, Bits<16>>,
    /// Bytes after which an ACK is asked for, below 2^19.
    pub ack_bytes: Signal<In, Bits<20>>,
    /// Ticks: how old a hole may be before a round trip is known, and at least.
    pub tail_loss: Signal<In, Bits<32>>,
    pub stall_least: Signal<In, Bits<32>>,
    /// Losses are found by the order on each path.
    pub path_order: Signal<In, Bit>,
    pub s: MsgSink<LossAsk>,
    pub m: MsgSrc<LossTold>,
    /// To `records` and back.
    pub m_walk: MsgSrc<TxWalk>,
    pub s_found: MsgSink<TxFound>,
    lines: Ram<Line, LP>,
    state: DFF<State>,
    /// Where it goes on when the walk is over.
    after: DFF<State>,
    ask: DFF<LossAsk>,
    line: DFF<Line>,
    walk: DFF<TxWalk>,
    found: DFF<TxFound>,
    told: DFF<LossTold>,
    /// Place of the packet that is meant.
    own: DFF<Bits<32>>,
    fresh: DFF<Bit>,
    trusted: DFF<Bit>,
    trip: DFF<Bits<32>>,
    /// The round trip less what the peer took; it took more.
    trip_less: DFF<Bits<32>>,
    trip_below: DFF<Bit>,
    /// What follows from the line and the order a cycle later, so that no choice stands behind one carry and in front of another.
    own_step: DFF<Bits<32>>,
    quarter_more: DFF<Bits<32>>,
    hole_age: DFF<Bits<32>>,
    top: DFF<Bits<64>>,
    rises: DFF<Bits<7>>,
    allowed: DFF<Bits<16>>,
    unasked: DFF<Bits<UNASKED>>,
    /// Three times the window; three quarters of it are out.
    range3: DFF<Bits<34>>,
    crowded: DFF<Bit>,
    flying: DFF<Bits<32>>,
    upto: DFF<Bits<32>>,
    places: Places,
    walks: Walks,
    flight: Diff<32>,
    since: Diff<32>,
    waited: Diff<32>,
    psn: Sum<32>,
    quarter: Sum<32>,
    bound: Sum<32>,
    step: PlusOne<32>,
    clears: Sum<16>,
    #[init(BePick::new((0..64).rev().collect()))]
    mirror: BePick<64, Bits<64>>,
    highest: FirstSet<64>,
    number: OneHotToBin<64, 6>,
    #[init(Constant::new(LossTold::default()))]
    nothing: Constant<LossTold>,
    #[init(Constant::new(Line::default()))]
    fresh_line: Constant<Line>,
    #[init(Constant::new((1u64 << LW).to_bits()))]
    most: Constant<Bits<16>>,
    #[init(Constant::new(REACH.to_bits()))]
    whole: Constant<Bits<7>>,
    newer: Signal<Local, Bits<24>>,
    newest: Signal<Local, Bit>,
    /// Packets: that was found, that goes out, that is recorded.
    met: Signal<Local, TxRecord>,
    gone: Signal<Local, TxRecord>,
    put: Signal<Local, TxRecord>,
    wants: Signal<Local, Bit>,
    full4: Signal<Local, Bits<34>>,
    share: Signal<Local, Bits<32>>,
    plain: Signal<Local, Bit>,
    rise: Signal<Local, Bits<7>>,
    oldest: Signal<Local, Bits<32>>,
    not_own: Signal<Local, Bits<32>>,
    open: Signal<Local, Bits<16>>,
    stall: Signal<Local, Bits<32>>,
}

#[kernel]
impl<const LP: usize, const LW: usize> Logic for Loss<LP, LW> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, after, ask, line, walk, found, told, own, fresh, trusted, trip, flying, upto);
        dff_setup!(self, clock, trip_less, trip_below, own_step, quarter_more, hole_age, top, rises, allowed, unasked, range3, crowded);
        clock!(self, clock, lines);
        self.s.ready.next = false;
        self.m.valid.next = false;
        self.m.data.next = self.told.q.val();
        self.m_walk.valid.next = false;
        self.m_walk.data.next = self.walk.q.val();
        self.s_found.ready.next = false;
        self.lines.read_addr.next = bit_cast::<LP, LINE>(self.s.data.val().line);
        self.lines.write_addr.next = bit_cast::<LP, LINE>(self.ask.q.val().line);
        self.lines.write_data.next = self.line.q.val();
        self.lines.write_en.next = false;
        self.places.clock.next = self.clock.val();
        self.places.go.next = self.state.q.val() == State::Load;
        self.places.ask.next = self.ask.q.val();
        self.places.line.next = self.line.q.val();
        self.met.next = self.found.q.val().record;
        self.gone.next = self.told.q.val().record;
        self.flight.a.next = self.line.q.val().sent;
        self.flight.b.next = self.line.q.val().cack;
        self.since.a.next = self.ask.q.val().now;
        self.since.b.next = self.met.val().time;
        self.waited.a.next = self.trip.q.val();
        self.waited.b.next = bit_cast::<32, 16>(self.ask.q.val().service);
        self.step.a.next = self.own.q.val();
        self.psn.a.next = self.line.q.val().start;
        self.psn.b.next = self.own.q.val();
        self.quarter.a.next = self.line.q.val().slowest;
        self.quarter.b.next = self.line.q.val().slowest >> 2;
        self.bound.a.next = self.line.q.val().cack;
        self.bound.b.next = bits::<32>(REACH);
        // The oldest that is out, and CLEAR_PSN in front of it, less PSN: a - 1 - b is a + !b.
        self.oldest.next = self.line.q.val().sent;
        if self.found.q.val().found {
            self.oldest.next = self.found.q.val().place;
        }
        self.clears.a.next = self.oldest.val().get_bits::<16>(0);
        self.not_own.next = !self.own.q.val();
        self.clears.b.next = self.not_own.val().get_bits::<16>(0);
        self.flying.d.next = self.flight.y.val();
        self.open.next = self.line.q.val().range;
        if self.line.q.val().range > self.most.val() {
            self.open.next = self.most.val();
        }
        // How long a hole may be old: a quarter more than the slowest round trip.
        self.quarter_more.d.next = self.quarter.y.val();
        self.stall.next = self.quarter_more.q.val();
        if self.quarter_more.q.val() < self.stall_least.val() {
            self.stall.next = self.stall_least.val();
        }
        if !self.line.q.val().slowest.any() {
            self.stall.next = self.tail_loss.val();
        }
        self.hole_age.d.next = self.stall.val();
        self.own_step.d.next = self.step.y.val();
        self.trip_less.d.next = self.waited.y.val();
        self.trip_below.d.next = self.waited.below.val();
        self.allowed.d.next = self.open.val();
        // How many PSNs a SACK speaks of: up to its highest bit. Two cycles behind the order, which is before anybody asks.
        self.mirror.x.next = self.ask.q.val().bitmap;
        self.highest.x.next = self.mirror.y.val();
        self.top.d.next = self.highest.y.val();
        self.number.x.next = self.top.q.val();
        self.rise.next = self.whole.val() - bit_cast::<7, 6>(self.number.y.val());
        self.rises.d.next = self.rise.val();
        self.newer.next = self.ask.q.val().rcvd - self.line.q.val().rcvd;
        self.newest.next = self.ask.q.val().sack & (!self.line.q.val().heard | !self.newer.val().get_bit(23));
        self.full4.next = bit_cast::<34, 32>(self.flying.q.val()) << 2;
        self.range3.d.next = (bit_cast::<34, 16>(self.line.q.val().range) << 1) + bit_cast::<34, 16>(self.line.q.val().range);
        self.unasked.d.next = self.line.q.val().unasked + bit_cast::<UNASKED, 14>(self.gone.val().bytes);
        self.wants.next =
            (!self.ask.q.val().more & !self.found.q.val().resends.any()) | self.own.q.val().get_bits::<4>(0).all() | (self.unasked.q.val() >= self.ack_bytes.val()) | self.crowded.q.val();
        self.crowded.d.next = self.full4.val() >= self.range3.q.val();
        self.share.next = bit_cast::<32, 28>(self.line.q.val().duplicates) << 4;
        self.plain.next = !(self.met.val().content == content::DATA);
        self.walks.state.next = self.state.q.val();
        self.walks.ask.next = self.ask.q.val();
        self.walks.line.next = self.line.q.val();
        self.walks.found.next = self.found.q.val();
        self.walks.clock.next = self.clock.val();
        self.walks.age.next = self.hole_age.q.val();
        self.walks.bound.next = self.bound.y.val();
        self.walks.own_step.next = self.own_step.q.val();
        self.walks.upto.next = self.upto.q.val();
        self.walks.path_order.next = self.path_order.val();
        self.walks.own.next = self.own.q.val();
        self.walks.covered.next = self.places.covered.val();
        self.walks.own_in.next = self.places.own_in.val();
        self.walks.from.next = self.places.from.val();
        self.walks.gap.next = self.places.gap.val();
        if !(self.state.q.val() == State::Go) & !(self.state.q.val() == State::Found) {
            self.walk.d.next = self.walks.walk.val();
            self.after.d.next = self.walks.after.val();
        }
        self.put.next = self.walks.walk.val().record;
        match self.state.q.val() {
            State::Idle => {
                self.s.ready.next = true;
                self.ask.d.next = self.s.data.val();
                self.told.d.next = self.nothing.val();
                if self.s.valid.val() {
                    self.state.d.next = State::Load;
                    if self.s.data.val().kind == loss_ask::OPEN {
                        self.state.d.next = State::Open;
                    }
                }
            }
            State::Open => {
                self.line.d.next = self.fresh_line.val();
                self.line.d.next.start = self.ask.q.val().psn;
                self.line.d.next.range = self.default_range.val();
                self.state.d.next = State::Go;
            }
            State::Load => {
                self.line.d.next = self.lines.read_data.val();
                self.state.d.next = State::Places;
            }
            State::Places => {
                self.own.d.next = self.places.own.val();
                if self.places.done.val() {
                    self.state.d.next = State::Start;
                }
            }
            // What is asked for.
            State::Start => {
                self.state.d.next = State::Go;
                if self.ask.q.val().kind == loss_ask::ACK {
                    self.told.d.next.ok = !self.places.bad.val();
                    if self.places.bad.val() {
                        self.state.d.next = State::Hole;
                    }
                } else if self.ask.q.val().kind == loss_ask::SEND {
                    self.own.d.next = self.line.q.val().sent;
                    self.told.d.next.ok = true;
                    self.state.d.next = State::Put;
                } else if self.ask.q.val().kind == loss_ask::RETRY {
                    self.line.d.next.refusals = self.line.q.val().refusals + 1;
                }
            }
            // The SACK's bits are settled; the packet that the ACK is for is looked at.
            State::Known => {
                self.told.d.next.progress = self.found.q.val().done.any();
                if self.found.q.val().last > self.line.q.val().known {
                    self.line.d.next.known = self.found.q.val().last;
                }
                if self.path_order.val() {
                    if !self.line.q.val().acks.all() {
                        self.line.d.next.acks = self.line.q.val().acks + 1;
                    }
                    if self.ask.q.val().nothing {
                        self.line.d.next.duplicates = self.line.q.val().duplicates + 1;
                    }
                }
                self.fresh.d.next = self.newest.val();
                if self.newest.val() {
                    self.line.d.next.rcvd = self.ask.q.val().rcvd;
                    self.line.d.next.heard = true;
                }
                self.state.d.next = State::Go;
            }
            State::Measure => {
                self.trip.d.next = self.since.y.val();
                self.state.d.next = State::Weigh;
            }
            State::Weigh => {
                self.state.d.next = State::Mine;
            }
            // It has arrived, and is answered if its response says something.
            State::Mine => {
                if self.found.q.val().found & !self.met.val().again & !self.ask.q.val().retx & !self.trip_below.q.val() & (self.trip_less.q.val() > self.line.q.val().slowest) {
                    self.line.d.next.slowest = self.trip_less.q.val();
                }
                if self.found.q.val().found & (self.plain.val() | self.ask.q.val().response) {
                    self.told.d.next.progress = true;
                    if self.own_step.q.val() > self.line.q.val().known {
                        self.line.d.next.known = self.own_step.q.val();
                    }
                }
                self.state.d.next = State::Go;
            }
            // What CACK covers is answered.
            State::Covered => {
                self.state.d.next = State::Go;
            }
            State::Settle => {
                if self.found.q.val().done.any() {
                    self.told.d.next.progress = true;
                }
                if self.places.covered.val() >= self.line.q.val().cack {
                    self.line.d.next.cack = self.places.covered.val();
                    if self.ask.q.val().sack & self.ask.q.val().range.any() {
                        self.line.d.next.range = self.ask.q.val().range;
                    }
                }
                self.bound.a.next = self.places.from.val();
                self.bound.b.next = bit_cast::<32, 7>(self.rises.q.val());
                self.upto.d.next = self.bound.y.val();
                self.trusted.d.next = (self.line.q.val().acks < bits::<32>(SHARE_FROM)) | (self.share.val() <= self.line.q.val().acks);
                self.state.d.next = State::Judge;
            }
            State::Judge => {
                if self.told.q.val().progress {
                    self.line.d.next.tries = bits::<4>(0);
                    self.line.d.next.refusals = bits::<5>(0);
                    self.line.d.next.rewound = false;
                }
                self.state.d.next = State::Hole;
                if self.fresh.q.val() & self.trusted.q.val() & self.path_order.val() & self.places.from_in.val() & self.ask.q.val().bitmap.any() {
                    self.state.d.next = State::Examine;
                }
            }
            // Holes in what a fresh ACK speaks of.
            State::Examine => {
                self.state.d.next = State::Go;
            }
            State::Lost => {
                self.told.d.next.lost = self.found.q.val().done.get_bits::<3>(0);
                self.state.d.next = State::Hole;
            }
            // A packet goes out, for the first time or again.
            State::Put => {
                self.told.d.next.record = self.put.val();
                self.line.d.next.order = self.put.val().order;
                self.state.d.next = State::Go;
                if self.ask.q.val().kind == loss_ask::AGAIN {
                    self.own.d.next = self.found.q.val().place;
                    self.told.d.next.ok = self.found.q.val().found;
                    if !self.found.q.val().found {
                        self.line.d.next.order = self.line.q.val().order;
                        self.state.d.next = State::Hole;
                    }
                } else {
                    self.line.d.next.sent = self.step.y.val();
                }
            }
            State::Ask => {
                self.told.d.next.psn = self.psn.y.val();
                self.told.d.next.ar = true;
                if self.gone.val().content == content::DATA {
                    self.told.d.next.ar = self.wants.val() | self.gone.val().again;
                    self.line.d.next.unasked = self.unasked.q.val();
                    if self.wants.val() {
                        self.line.d.next.unasked = bits::<UNASKED>(0);
                    }
                }
                self.state.d.next = State::Hole;
            }
            // The packet that a NACK is about, if it is there.
            State::Nack => {
                self.told.d.next.ok = self.found.q.val().found;
                self.state.d.next = State::Hole;
                if self.found.q.val().found {
                    if self.ask.q.val().kind == loss_ask::NACK_BACK {
                        if !self.line.q.val().rewound & !self.places.bad.val() {
                            self.line.d.next.rewound = true;
                            self.line.d.next.tries = bits::<4>(0);
                            self.told.d.next.back = true;
                            self.state.d.next = State::Go;
                        }
                    } else {
                        self.line.d.next.tries = bits::<4>(0);
                        if self.ask.q.val().kind == loss_ask::NACK_LATER {
                            self.state.d.next = State::Go;
                        }
                    }
                }
            }
            // What waits is not sent again before.
            State::Wait => {
                self.state.d.next = State::Go;
            }
            // The oldest is due, the others by their age.
            State::Rto => {
                self.told.d.next.ok = self.found.q.val().found;
                self.told.d.next.sacked = self.found.q.val().sacked;
                self.line.d.next.tries = self.line.q.val().tries + 1;
                self.own.d.next = self.found.q.val().last;
                self.state.d.next = State::Hole;
                if self.found.q.val().found {
                    self.state.d.next = State::Go;
                }
            }
            State::RtoRest => {
                self.told.d.next.again = self.found.q.val().done;
                self.state.d.next = State::Go;
            }
            State::Count => {
                self.told.d.next.again = self.told.q.val().again + self.found.q.val().done;
                self.state.d.next = State::Hole;
            }
            // Behind each: the state that is told.
            State::Hole => {
                self.state.d.next = State::Go;
            }
            State::Oldest => {
                self.told.d.next.hole = self.found.q.val().found;
                self.state.d.next = State::Go;
            }
            State::Last => {
                self.psn.b.next = self.oldest.val();
                self.told.d.next.oldest = self.psn.y.val();
                self.told.d.next.clear = self.clears.y.val();
                self.told.d.next.outs = self.found.q.val().outs;
                self.told.d.next.resends = self.found.q.val().resends;
                self.told.d.next.waits = self.found.q.val().waits;
                self.told.d.next.room = self.flying.q.val() < bit_cast::<32, 16>(self.allowed.q.val());
                self.told.d.next.stall = self.hole_age.q.val();
                self.told.d.next.tries = self.line.q.val().tries;
                self.told.d.next.refusals = self.line.q.val().refusals;
                self.state.d.next = State::Tell;
            }
            State::Tell => {
                self.lines.write_en.next = true;
                self.m.valid.next = true;
                if self.m.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Go => {
                self.m_walk.valid.next = true;
                if self.m_walk.ready.val() {
                    self.state.d.next = State::Found;
                }
            }
            State::Found => {
                self.s_found.ready.next = true;
                self.found.d.next = self.s_found.data.val();
                if self.s_found.valid.val() {
                    self.state.d.next = self.after.q.val();
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
