//! Frames off the wire, and such as functions of the card send each other, wait for their verdict, and go on or go by it. See README.md.

mod hold;
#[cfg(test)]
pub(super) mod tests;

use crate::bus::{AxisSink, AxisSrc, MsgSink};
use crate::msg::{Network, SentBy};
use crate::net::within::{HAS, NETWORKS};
use crate::prim::arb::BinToOneHot;
use crate::prim::pack::{Cast, Resize};
use crate::prim::sized::Delay;
use crate::records::{Exception, FlowCommand, FlowPortCtx};
use crate::stream::Bypass;
use crate::switch::beyond;
use crate::switch::count::{self, Count};
use crate::switch::edit::{self, Edit, Merge, Patch};
use crate::switch::local::{Leaving, Told, Used};
use crate::switch::matching::{self, Matching, ANSWER};
use crate::switch::program;
use crate::switch::sight::Sight;
use ferric_abi::codes::SwitchCause;
use ferric_abi::csr::{FUNCTION_PORTS, WIRE_PORT};
use ferric_abi::switch::{destination, tag_op};
use ferric_hdl_derive::{kernel, BlockDefault};
use ferric_model::net::networks;
pub use ferric_model::switch::fate as model;
use hold::Hold;
use rust_hdl::prelude::*;

/// Events on `stat`, of each frame at most one, when its last beat goes: gone on to a function; to software; to software because nobody can carry the action out; then, dropped,
/// by cause; gone on as a bad frame because it was cut; dropped, and bad.
pub const STATS: &[&str] = &["port", "software", "unable", "acl", "miss", "no_rule_room", "roce_denied", "port_down", "exception_no_queue", "cut", "bad"];

/// Bits of `stat`.
const EVENTS: usize = 11;
/// Places in [`STATS`], and one behind them all.
const TO_PORT: u64 = 0;
const TO_SOFTWARE: u64 = 1;
const UNABLE: u64 = 2;
const ACL: u64 = 3;
const MISS: u64 = 4;
const NO_RULE_ROOM: u64 = 5;
const ROCE_DENIED: u64 = 6;
const PORT_DOWN: u64 = 7;
const NO_QUEUE: u64 = 8;
const CUT: u64 = 9;
const BAD: u64 = 10;
const NOTHING: u64 = 15;

const CAUSE_MISS: u64 = SwitchCause::Miss as u64;
const CAUSE_NO_RULE_ROOM: u64 = SwitchCause::NoRuleRoom as u64;
const CAUSE_ROCE_DENIED: u64 = SwitchCause::RoceDenied as u64;
const DROP: u64 = destination::DROP as u64;
const PORT: u64 = destination::PORT as u64;
const EXCEPTION: u64 = destination::EXCEPTION as u64;
const UPLINK: u64 = destination::UPLINK as u64;
const CAUSE_DEEP: u64 = SwitchCause::Deep as u64;
const WIRE: u64 = WIRE_PORT as u64;
const SHOWN: u64 = networks::SHOWN as u64;
const TAG_STAYS: u64 = tag_op::NONE as u64;
const PUSH: u64 = tag_op::PUSH as u64;
const POP: u64 = tag_op::POP as u64;
const FIRST_FUNCTION: u64 = FUNCTION_PORTS as u64;
/// Cycles from the window to the verdict.
const VERDICT: usize = matching::LATENCY as usize;

/// What was known of a frame when its window was there.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Came {
    /// The tables decide about it.
    on: Bit,
    network: Network,
    /// It is about to leave, and `network` names the function that sends it.
    leaves: Bit,
    /// Of one that was received: the port and the other end that its key names.
    port: Bits<8>,
    remote: Bits<9>,
    /// It is of another network than function 0.
    foreign: Bit,
}

/// What becomes of a frame.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Fate {
    drop: Bit,
    network: Network,
    /// What software is told about it.
    note: Bits<24>,
    /// It may turn out to be cut, and goes on as a bad frame then: byte of the frame behind its IP packet.
    check: Bit,
    stop: Bits<17>,
    /// What counts when it has ended: a place in [`STATS`].
    ends_as: Bits<4>,
    /// Its flow counts it, too: the action's line.
    count: Bit,
    flow: Bits<12>,
}

/// A card of `NF` functions. Tables as [`Matching`]'s. Always ready, and nobody behind it waits.
#[derive(LogicBlock, BlockDefault)]
#[demand(STATS.len() == EVENTS)]
pub struct Flows<const W: usize, const K: usize, const NF: usize, const LG: usize, const G: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; what is under way is forgotten. The tables stay.
    pub reset: Signal<In, Bit>,
    pub s: AxisSink<W, K>,
    /// With `s.last`: the MAC found the frame bad.
    pub s_err: Signal<In, Bit>,
    /// With every beat of `s`: through whose tunnel it came.
    pub s_network: Signal<In, Network>,
    /// And who of this card has sent it.
    pub s_origin: Signal<In, SentBy>,
    /// Which network each function is in.
    pub networks: Signal<In, Bits<NETWORKS>>,
    pub m: AxisSrc<W, K>,
    /// With `m.last`: the same, or the frame was cut.
    pub m_err: Signal<Out, Bit>,
    /// With every beat of `m`: whose network it is for.
    pub m_network: Signal<Out, Network>,
    /// And, if it is for software because the tables want that, an [`Exception`].
    pub m_note: Signal<Out, Bits<24>>,
    /// What is done with frames, by those of `program`: a frame is treated by what stands there when its window is there.
    pub port: Signal<In, FlowPortCtx>,
    /// A command for the tables, as [`Matching`] has it.
    pub write: Signal<In, Bit>,
    pub command: Signal<In, FlowCommand>,
    pub refused: Signal<Out, Bit>,
    /// As `Count` and [`Matching`] have it: the counters of flows become zero; that or a command that reads is under way; what it has read; the tick.
    pub forget: Signal<In, Bit>,
    pub busy: Signal<Out, Bit>,
    pub answer: Signal<Out, Bits<ANSWER>>,
    pub now: Signal<Out, Bits<{ count::TICK }>>,
    /// Frames that are about to leave, which have their turn when no received frame's window is there; and what was decided about them, 14 cycles later.
    pub s_ask: MsgSink<Leaving>,
    pub told: Signal<Out, Told>,
    pub told_valid: Signal<Out, Bit>,
    /// Those of them that flows are to count.
    pub s_use: MsgSink<Used>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<EVENTS>>,
    // Past all of it, while the tables do not decide
    bypass: Bypass,
    passes: DFF<Bit>,
    by: DFF<Bit>,
    sight: Sight<W, K>,
    matching: Matching<LG, G>,
    hold: Hold<W, K>,
    network0: DFF<Network>,
    network1: DFF<Network>,
    origin0: DFF<SentBy>,
    number: Signal<Local, Bits<6>>,
    domain: Signal<Local, Bits<12>>,
    // Beside `network1`: the domain, the port and the other end that the key names.
    whose: DFF<Bits<12>>,
    port_of: DFF<Bits<8>>,
    remote: DFF<Bits<12>>,
    /// Function 0 has a tunnel: the domain of its network is 1, else 0.
    has_tunnel: DFF<Bit>,
    out: Signal<Local, Leaving>,
    sender: Signal<Local, Network>,
    came: Signal<Local, Came>,
    #[init(Delay::new(VERDICT))]
    known: Delay<Came>,
    // The fate
    from: Signal<Local, Network>,
    target: Signal<Local, Network>,
    exception: Signal<Local, Exception>,
    bits: Cast<Exception, Bits<24>>,
    note: Signal<Local, Bits<24>>,
    #[init(Constant::new((NF as u64).to_bits()))]
    functions: Constant<Bits<12>>,
    kind: Signal<Local, Bits<3>>,
    cause: Signal<Local, Bits<6>>,
    place: Signal<Local, Bits<12>>,
    there: Signal<Local, Bit>,
    beyond: Signal<Local, Bit>,
    changes: Signal<Local, Bit>,
    /// Bits of a line of MAC addresses that no such line has.
    #[init(beyond(LG.min(edit::LINE)))]
    no_line: Constant<Bits<10>>,
    far: Signal<Local, Bit>,
    edit: Edit<LG>,
    edits1: DFF<Bit>,
    patch: Signal<Local, Patch>,
    merge: Merge<W>,
    #[init(Constant::new(Patch::default()))]
    as_it_is: Constant<Patch>,
    unable: Signal<Local, Bit>,
    software: Signal<Local, Bit>,
    for_wire: Signal<Local, Bit>,
    became: Signal<Local, Bits<3>>,
    told1: DFF<Told>,
    told1_valid: DFF<Bit>,
    fate1: DFF<Fate>,
    fate1_valid: DFF<Bit>,
    counts_as: Signal<Local, Bits<4>>,
    drop: Signal<Local, Bit>,
    check: Signal<Local, Bit>,
    tunnel: Signal<Local, Bit>,
    to: Signal<Local, Bits<12>>,
    // The beat that goes
    m_valid: DFF<Bit>,
    m_last: DFF<Bit>,
    m_data: DFF<Bits<W>>,
    m_keep: DFF<Bits<K>>,
    err: DFF<Bit>,
    err_cut: DFF<Bit>,
    network2: DFF<Network>,
    note2: DFF<Bits<24>>,
    fate: Signal<Local, Fate>,
    short: Signal<Local, Bit>,
    cut: Signal<Local, Bit>,
    ends: DFF<Bit>,
    events: DFF<Bits<4>>,
    dropped: DFF<Bit>,
    counted: Signal<Local, Bits<4>>,
    one: BinToOneHot<16, 4>,
    all: Resize<16, EVENTS>,
    // The flow that counts
    count: Count<LG>,
    counts: Signal<Local, Bit>,
    used: Signal<Local, Used>,
    uses: DFF<Bit>,
    flow2: DFF<Bits<12>>,
    len2: DFF<Bits<17>>,
    whole: DFF<Bit>,
}

#[kernel]
impl<const W: usize, const K: usize, const NF: usize, const LG: usize, const G: usize> Logic for Flows<W, K, NF, LG, G> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            network0,
            network1,
            origin0,
            whose,
            port_of,
            remote,
            has_tunnel,
            fate1,
            fate1_valid,
            m_valid,
            m_last,
            m_data,
            m_keep,
            err,
            err_cut,
            network2,
            note2,
            ends,
            events,
            dropped,
            uses,
            flow2,
            len2,
            whole
        );
        dff_setup!(self, clock, passes, by, told1, told1_valid, edits1);
        clock!(self, clock, sight, matching, hold, known, count, bypass, edit, merge);
        self.merge.reset.next = self.reset.val();
        self.sight.reset.next = self.reset.val();
        self.matching.reset.next = self.reset.val();
        self.hold.reset.next = self.reset.val();
        self.count.reset.next = self.reset.val();
        // What comes, and what is asked about it
        self.s.ready.next = true;
        self.sight.data.next = self.s.data.val();
        self.sight.keep.next = self.s.keep.val();
        self.sight.last.next = self.s.last.val();
        self.sight.err.next = self.s_err.val();
        self.sight.valid.next = self.s.valid.val() & !self.bypass.past.val();
        self.passes.d.next = !self.port.val().valid;
        self.bypass.reset.next = self.reset.val();
        self.bypass.may.next = self.passes.q.val();
        self.bypass.taken.next = self.s.valid.val();
        self.bypass.last.next = self.s.last.val();
        self.bypass.busy.next = self.m_valid.q.val();
        self.by.d.next = self.s.valid.val() & self.bypass.past.val();
        self.network0.d.next = self.s_network.val();
        self.network1.d.next = self.network0.q.val();
        self.origin0.d.next = self.s_origin.val();
        self.hold.data.next = self.sight.b_data.val();
        self.hold.keep.next = self.sight.b_keep.val();
        self.hold.last.next = self.sight.b_last.val();
        self.hold.err.next = self.sight.b_err.val();
        self.hold.valid.next = self.sight.b_valid.val();
        // Function f's network is bridge domain f + 1, and f + 1 the other end of its tunnel. Of several functions' network it is the one that the others have joined.
        self.number.next = self.network0.q.val().function.get_bits::<6>(0);
        if self.origin0.q.val().local {
            self.number.next = self.origin0.q.val().network;
        }
        self.domain.next = bits::<12>(0);
        if self.network0.q.val().tunnel {
            self.domain.next = bit_cast::<12, 6>(self.number.val()) + 1;
        }
        self.whose.d.next = self.domain.val();
        self.has_tunnel.d.next = self.networks.val().get_bit(HAS);
        self.port_of.d.next = bits::<8>(WIRE_PORT as u64);
        self.remote.d.next = self.domain.val();
        if self.origin0.q.val().local {
            self.port_of.d.next = bit_cast::<8, 6>(self.origin0.q.val().function) + FIRST_FUNCTION;
            self.remote.d.next = bits::<12>(0);
        }
        // What is about to leave waits for what was received.
        self.out.next = self.s_ask.data.val();
        self.s_ask.ready.next = !self.sight.window_valid.val();
        self.matching.window_valid.next = self.sight.window_valid.val() | self.s_ask.valid.val();
        self.matching.window.next = self.out.val().window;
        self.matching.ended.next = self.out.val().ended;
        self.matching.len.next = self.out.val().len;
        self.matching.origin.next.port = self.out.val().port;
        self.matching.origin.next.domain = self.out.val().domain;
        self.matching.origin.next.remote = bits::<12>(0);
        self.matching.origin.next.option = false;
        self.came.next.on = self.port.val().valid & self.port.val().egress;
        self.came.next.leaves = true;
        self.sender.next.tunnel = false;
        self.sender.next.function = bit_cast::<12, 6>(self.out.val().function);
        self.came.next.network = self.sender.val();
        self.came.next.port = self.port_of.q.val();
        self.came.next.remote = self.remote.q.val().get_bits::<9>(0);
        self.came.next.foreign = self.whose.q.val().get_bits::<11>(1).any() | (self.whose.q.val().get_bit(0) != self.has_tunnel.q.val());
        if self.sight.window_valid.val() {
            self.matching.window.next = self.sight.window.val();
            self.matching.ended.next = self.sight.ended.val();
            self.matching.len.next = self.sight.len.val();
            self.matching.origin.next.port = self.port_of.q.val();
            self.matching.origin.next.domain = self.whose.q.val();
            self.matching.origin.next.remote = self.remote.q.val();
            self.came.next.on = self.port.val().valid;
            self.came.next.leaves = false;
            self.came.next.network = self.network1.q.val();
        }
        self.matching.asking.next.class = self.port.val().class;
        self.matching.asking.next.drop_miss = self.port.val().drop_miss;
        self.matching.asking.next.generation = self.port.val().generation;
        self.matching.asking.next.bridge = self.port.val().bridge;
        self.known.x.next = self.came.val();
        self.matching.write.next = self.write.val();
        self.matching.command.next = self.command.val();
        self.refused.next = self.matching.refused.val();
        // The fate
        self.kind.next = self.matching.verdict.val().kind;
        self.cause.next = self.matching.verdict.val().cause;
        self.place.next = self.matching.verdict.val().number - FIRST_FUNCTION;
        self.there.next = self.place.val() < self.functions.val();
        self.beyond.next = self.matching.verdict.val().encap.any()
            | (self.matching.verdict.val().tag_op == PUSH)
            | (self.matching.verdict.val().tag_op == POP)
            | self.matching.verdict.val().mirror.any()
            | self.matching.verdict.val().sample.any();
        self.changes.next = self.beyond.val()
            | self.matching.verdict.val().rewrite.any()
            | (self.matching.verdict.val().tag_op != TAG_STAYS)
            | self.matching.verdict.val().dec_ttl
            | self.matching.verdict.val().write_dscp;
        self.far.next = (self.matching.verdict.val().rewrite & self.no_line.val()).any();
        self.unable.next = (self.kind.val() != DROP) & (self.kind.val() != EXCEPTION) & ((self.kind.val() != PORT) | self.beyond.val());
        // New fields, for a frame that goes to a function
        self.edit.verdict.next = self.matching.verdict.val();
        self.edit.old.next = self.matching.old.val();
        self.edit.write.next = self.matching.write_rewrite.val();
        self.edit.write_line.next = self.matching.rewrite_line.val();
        self.edit.write_macs.next = self.matching.rewrite_macs.val();
        self.edits1.d.next = self.known.y.val().on & (self.kind.val() == PORT) & !self.beyond.val();
        self.patch.next = self.as_it_is.val();
        if self.edits1.q.val() {
            self.patch.next = self.edit.patch.val();
        }
        self.software.next = self.unable.val() | (self.kind.val() == EXCEPTION);
        self.drop.next = false;
        self.check.next = false;
        self.counts_as.next = bits::<4>(NOTHING);
        self.from.next = self.known.y.val().network;
        self.tunnel.next = self.from.val().tunnel;
        self.exception.next.port = self.known.y.val().port;
        self.exception.next.cause = self.cause.val();
        self.exception.next.unable = self.unable.val();
        self.exception.next.remote = self.known.y.val().remote;
        self.bits.x.next = self.exception.val();
        self.note.next = bits::<24>(0);
        self.to.next = self.from.val().function;
        if self.known.y.val().on {
            self.tunnel.next = true;
            self.to.next = bits::<12>(0);
            if self.software.val() {
                if self.known.y.val().foreign {
                    self.to.next = bits::<12>(SHOWN);
                }
                self.note.next = self.bits.y.val();
                self.counts_as.next = bits::<4>(TO_SOFTWARE);
                if self.unable.val() {
                    self.counts_as.next = bits::<4>(UNABLE);
                }
                if self.matching.roce.val() {
                    self.counts_as.next = bits::<4>(NO_QUEUE);
                }
                self.drop.next = self.matching.roce.val();
            } else if self.kind.val() == DROP {
                self.drop.next = true;
                self.counts_as.next = bits::<4>(ACL);
                if self.cause.val() == CAUSE_MISS {
                    self.counts_as.next = bits::<4>(MISS);
                } else if self.cause.val() == CAUSE_NO_RULE_ROOM {
                    self.counts_as.next = bits::<4>(NO_RULE_ROOM);
                } else if self.cause.val() == CAUSE_ROCE_DENIED {
                    self.counts_as.next = bits::<4>(ROCE_DENIED);
                }
            } else if self.there.val() & self.far.val() {
                self.counts_as.next = bits::<4>(NO_RULE_ROOM);
                self.drop.next = true;
            } else if self.there.val() {
                self.counts_as.next = bits::<4>(TO_PORT);
                self.to.next = self.place.val();
                self.check.next = true;
            } else {
                self.counts_as.next = bits::<4>(PORT_DOWN);
                self.drop.next = true;
            }
        }
        // One that is about to leave does so if it is for the wire as it is.
        self.for_wire.next = ((self.kind.val() == UPLINK) | (self.kind.val() == PORT)) & (self.matching.verdict.val().number == WIRE) & !self.changes.val();
        self.became.next = bits::<3>(program::AS_ELSEWHERE);
        if self.kind.val() == EXCEPTION {
            self.became.next = bits::<3>(program::AS_SOFTWARE);
            if self.cause.val() == CAUSE_DEEP {
                self.became.next = bits::<3>(program::AS_DEEP);
            }
        } else if self.kind.val() == DROP {
            self.became.next = bits::<3>(program::AS_ACL);
            if self.cause.val() == CAUSE_MISS {
                self.became.next = bits::<3>(program::AS_MISS);
            } else if self.cause.val() == CAUSE_NO_RULE_ROOM {
                self.became.next = bits::<3>(program::AS_NO_RULE_ROOM);
            } else if self.cause.val() == CAUSE_ROCE_DENIED {
                self.became.next = bits::<3>(program::AS_ROCE_DENIED);
            }
        } else if self.for_wire.val() {
            self.became.next = bits::<3>(program::AS_LEFT);
        }
        self.told1_valid.d.next = self.matching.verdict_valid.val() & self.known.y.val().leaves;
        self.told1.d.next.function = self.from.val().function.get_bits::<6>(0);
        self.told1.d.next.drops = self.known.y.val().on & !self.for_wire.val();
        self.told1.d.next.returns = self.known.y.val().on & !self.for_wire.val() & (self.kind.val() != DROP) & !(self.software.val() & self.matching.roce.val());
        self.told1.d.next.judged = self.known.y.val().on;
        self.told1.d.next.place = self.became.val();
        self.told1.d.next.count = self.known.y.val().on & self.matching.verdict.val().count;
        self.told1.d.next.flow = self.matching.verdict.val().flow.get_bits::<12>(0);
        self.told.next = self.told1.q.val();
        self.told_valid.next = self.told1_valid.q.val();
        self.fate1_valid.d.next = self.matching.verdict_valid.val() & !self.known.y.val().leaves;
        self.fate1.d.next.drop = self.drop.val();
        self.target.next.tunnel = self.tunnel.val();
        self.target.next.function = self.to.val();
        self.fate1.d.next.network = self.target.val();
        self.fate1.d.next.note = self.note.val();
        self.fate1.d.next.check = self.check.val();
        self.fate1.d.next.stop = self.matching.stop.val();
        self.fate1.d.next.ends_as = self.counts_as.val();
        self.fate1.d.next.count = self.known.y.val().on & self.matching.verdict.val().count;
        self.fate1.d.next.flow = self.matching.verdict.val().flow.get_bits::<12>(0);
        self.hold.fate.next = self.fate1.q.val();
        self.hold.patch.next = self.patch.val();
        self.hold.fate_valid.next = self.fate1_valid.q.val();
        // The beat that goes
        self.fate.next = self.hold.m_fate.val();
        self.m_valid.d.next = self.hold.m_valid.val() & !self.fate.val().drop;
        self.merge.valid.next = self.hold.m_valid.val();
        self.merge.last.next = self.hold.m_last.val();
        self.merge.data.next = self.hold.m_data.val();
        self.merge.patch.next = self.hold.m_patch.val();
        self.m_data.d.next = self.merge.y.val();
        self.m_keep.d.next = self.hold.m_keep.val();
        self.m_last.d.next = self.hold.m_last.val();
        self.network2.d.next = self.fate.val().network;
        self.note2.d.next = self.fate.val().note;
        self.short.next = self.hold.m_len.val() < self.fate.val().stop;
        self.cut.next = self.fate.val().check & self.short.val();
        self.err.d.next = self.hold.m_err.val();
        self.err_cut.d.next = self.cut.val();
        self.m.valid.next = self.m_valid.q.val();
        self.m.data.next = self.m_data.q.val();
        self.m.keep.next = self.m_keep.q.val();
        self.m.last.next = self.m_last.q.val();
        self.m_err.next = self.err.q.val() | self.err_cut.q.val();
        self.m_network.next = self.network2.q.val();
        self.m_note.next = self.note2.q.val();
        if self.by.q.val() {
            self.m.valid.next = true;
            self.m.data.next = self.sight.b_data.val();
            self.m.keep.next = self.sight.b_keep.val();
            self.m.last.next = self.sight.b_last.val();
            self.m_err.next = self.sight.b_err.val();
            self.m_network.next = self.network0.q.val();
            self.m_note.next = bits::<24>(0);
        }
        // What counts: a frame that goes on and that the MAC found bad counts with the receive path behind.
        self.ends.d.next = self.hold.m_valid.val() & self.hold.m_last.val();
        self.dropped.d.next = self.fate.val().drop;
        self.events.d.next = self.fate.val().ends_as;
        self.counted.next = self.events.q.val();
        if self.err.q.val() {
            self.counted.next = bits::<4>(NOTHING);
            if self.dropped.q.val() {
                self.counted.next = bits::<4>(BAD);
            }
        } else if self.err_cut.q.val() {
            self.counted.next = bits::<4>(CUT);
        }
        self.one.x.next = self.counted.val();
        self.one.en.next = self.ends.q.val();
        self.all.x.next = self.one.y.val();
        self.stat.next = self.all.y.val();
        // A flow counts a frame that is whole and good.
        self.uses.d.next = self.fate.val().count;
        self.flow2.d.next = self.fate.val().flow;
        self.len2.d.next = self.hold.m_len.val();
        self.whole.d.next = !self.short.val();
        self.counts.next = self.ends.q.val() & self.uses.q.val() & self.whole.q.val() & !self.err.q.val();
        self.used.next = self.s_use.data.val();
        self.s_use.ready.next = !self.counts.val();
        self.count.valid.next = self.counts.val() | self.s_use.valid.val();
        self.count.flow.next = bit_cast::<LG, 12>(self.used.val().flow);
        self.count.len.next = self.used.val().len;
        if self.counts.val() {
            self.count.flow.next = bit_cast::<LG, 12>(self.flow2.q.val());
            self.count.len.next = self.len2.q.val();
        }
        self.count.forget.next = self.forget.val();
        self.count.ask.next = self.matching.ask.val();
        self.count.zero.next = self.matching.ask_zero.val();
        self.count.asked.next = self.matching.asked.val();
        self.matching.answered.next = self.count.answered.val();
        self.matching.counted.next = self.count.answer.val();
        self.busy.next = self.matching.busy.val() | self.count.busy.val();
        self.answer.next = self.matching.answer.val();
        self.now.next = self.count.now.val();
        if self.reset.val() {
            self.fate1_valid.d.next = false;
            self.told1_valid.d.next = false;
            self.m_valid.d.next = false;
            self.by.d.next = false;
            self.ends.d.next = false;
        }
    }
}
