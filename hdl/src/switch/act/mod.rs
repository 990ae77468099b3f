//! From what the tables found to the verdict. See README.md.

#[cfg(test)]
mod tests;

use crate::prim::pack::Cast;
use crate::prim::ram::Ram;
use crate::records::{Action, Verdict};
use crate::switch::fdb::Station;
use ferric_abi::codes::SwitchCause;
use ferric_abi::switch::destination;
pub use ferric_abi::switch::table::{ACTION_BITS, RESULT_BITS};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Cycles from the line's number to the verdict.
pub const LATENCY: u64 = 3;

/// An action, and that it is there.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Line {
    action: Bits<ACTION_BITS>,
    there: Bit,
}

/// Bits of what is read.
pub const READ: usize = ACTION_BITS + 1;
/// Bits of [`Action`], with what is not kept of it.
const WHOLE: usize = 128;
/// Bits of the verdict's `flow`.
const FLOW: usize = 15;

const DROP: u64 = destination::DROP as u64;
const EXCEPTION: u64 = destination::EXCEPTION as u64;
const DEEP: u64 = SwitchCause::Deep as u64;
const ACL: u64 = SwitchCause::Acl as u64;
const MISS: u64 = SwitchCause::Miss as u64;
const TTL: u64 = SwitchCause::Ttl as u64;
const NO_RULE_ROOM: u64 = SwitchCause::NoRuleRoom as u64;
const ROCE_DENIED: u64 = SwitchCause::RoceDenied as u64;

/// What is known of the frame: `ferric_model::switch::decide::Facts`, and of its port.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct About {
    /// The parser does not understand it.
    pub deep: Bit,
    /// UDP to RoCE's port.
    pub roce: Bit,
    /// TCP with SYN, FIN or RST.
    pub ends: Bit,
    /// IP with a time to live of 1 or 0.
    pub spent: Bit,
    /// Its port's miss action is to drop; else software gets the frame.
    pub drop_miss: Bit,
    /// Lowest bit of the lookup's generation.
    pub generation: Bit,
    /// Its port bridges: a frame that neither an entry nor a rule knows goes to its station.
    pub bridge: Bit,
}

/// 2^`LG` actions; one verdict a cycle, never stalled.
#[derive(LogicBlock, BlockDefault)]
#[demand(LG < RESULT_BITS && FLOW == RESULT_BITS - 1)]
pub struct Act<const LG: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; what is under way is forgotten. The actions stay.
    pub reset: Signal<In, Bit>,
    pub valid: Signal<In, Bit>,
    /// An exact entry knows the frame, and the line of the action that it leads to.
    pub exact: Signal<In, Bit>,
    pub exact_line: Signal<In, Bits<RESULT_BITS>>,
    /// The same of a wildcard rule, which counts if there is no exact entry.
    pub rule: Signal<In, Bit>,
    pub rule_line: Signal<In, Bits<RESULT_BITS>>,
    /// The bridge domain knows where the frame's destination is, or is flooded, and that; it counts if there are no entry and no rule, and the port bridges.
    pub home: Signal<In, Bit>,
    pub station: Signal<In, Station>,
    pub about: Signal<In, About>,
    /// [`LATENCY`] cycles later.
    pub verdict_valid: Signal<Out, Bit>,
    pub verdict: Signal<Out, Verdict>,
    /// An action is written, at any time; a frame in the same cycle meets the old one. `there` low: it is taken away.
    pub write: Signal<In, Bit>,
    pub write_line: Signal<In, Bits<LG>>,
    pub write_action: Signal<In, Bits<ACTION_BITS>>,
    pub there: Signal<In, Bit>,
    /// An action is read when no frame wants the memory: `read` and the line's number stay until `read_done`, which brings it: the action, and above it that it is there.
    pub read: Signal<In, Bit>,
    pub read_line: Signal<In, Bits<LG>>,
    pub read_done: Signal<Out, Bit>,
    pub read_data: Signal<Out, Bits<READ>>,
    taken: Signal<Local, Bit>,
    read1: DFF<Bit>,
    row: Cast<Line, Bits<READ>>,
    memory: Ram<Line, LG>,
    #[init(Constant::new((((1u64 << RESULT_BITS) - 1) >> LG << LG).to_bits()))]
    beyond: Constant<Bits<RESULT_BITS>>,
    // Stage 1: the memory
    line: Signal<Local, Bits<RESULT_BITS>>,
    valid1: DFF<Bit>,
    hit1: DFF<Bit>,
    within1: DFF<Bit>,
    line1: DFF<Bits<RESULT_BITS>>,
    about1: DFF<About>,
    home1: DFF<Bit>,
    station1: DFF<Station>,
    // Stage 2: what speaks against the action
    cast: Cast<Bits<WHOLE>, Action>,
    valid2: DFF<Bit>,
    hit2: DFF<Bit>,
    line2: DFF<Bits<RESULT_BITS>>,
    action2: DFF<Action>,
    counts2: DFF<Bit>,
    deep2: DFF<Bit>,
    drop_miss2: DFF<Bit>,
    generation2: DFF<Bit>,
    denied2: DFF<Bit>,
    software2: DFF<Bit>,
    drop2: DFF<Bit>,
    spent2: DFF<Bit>,
    home2: DFF<Bit>,
    station2: DFF<Station>,
    // Stage 3: the verdict
    known: Signal<Local, Bit>,
    made: Signal<Local, Bit>,
    valid3: DFF<Bit>,
    verdict3: DFF<Verdict>,
}

#[kernel]
impl<const LG: usize> Logic for Act<LG> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, valid1, hit1, within1, line1, about1, valid2, hit2, line2, action2, counts2, deep2, drop_miss2, generation2);
        dff_setup!(self, clock, read1, home1, station1, home2, station2, denied2, software2, drop2, spent2, valid3, verdict3);
        clock!(self, clock, memory);
        // Stage 1
        self.line.next = self.rule_line.val();
        if self.exact.val() {
            self.line.next = self.exact_line.val();
        }
        self.memory.read_addr.next = bit_cast::<LG, RESULT_BITS>(self.line.val());
        if !self.valid.val() {
            self.memory.read_addr.next = self.read_line.val();
        }
        self.taken.next = self.read.val() & !self.valid.val() & !self.read1.q.val();
        self.read1.d.next = self.taken.val();
        self.row.x.next = self.memory.read_data.val();
        self.read_data.next = self.row.y.val();
        self.read_done.next = self.read1.q.val();
        self.memory.write_data.next.there = self.there.val();
        self.memory.write_data.next.action = self.write_action.val();
        self.memory.write_addr.next = self.write_line.val();
        self.memory.write_en.next = self.write.val();
        self.valid1.d.next = self.valid.val();
        self.hit1.d.next = self.exact.val() | self.rule.val();
        self.within1.d.next = !(self.line.val() & self.beyond.val()).any();
        self.line1.d.next = self.line.val();
        self.about1.d.next = self.about.val();
        self.home1.d.next = self.home.val() & self.about.val().bridge & !self.exact.val() & !self.rule.val();
        self.station1.d.next = self.station.val();
        // Stage 2
        self.cast.x.next = bit_cast::<WHOLE, ACTION_BITS>(self.memory.read_data.val().action);
        self.valid2.d.next = self.valid1.q.val();
        self.hit2.d.next = self.hit1.q.val();
        self.line2.d.next = self.line1.q.val();
        self.action2.d.next = self.cast.y.val();
        self.counts2.d.next = self.memory.read_data.val().there & self.within1.q.val() & (self.cast.y.val().kind <= EXCEPTION);
        self.home2.d.next = self.home1.q.val() & !self.about1.q.val().deep;
        self.station2.d.next = self.station1.q.val();
        self.deep2.d.next = self.about1.q.val().deep;
        self.drop_miss2.d.next = self.about1.q.val().drop_miss;
        self.generation2.d.next = self.about1.q.val().generation;
        self.denied2.d.next = self.cast.y.val().no_roce & self.about1.q.val().roce;
        self.software2.d.next = (self.cast.y.val().kind == EXCEPTION) | (self.cast.y.val().trap_tcp & self.about1.q.val().ends);
        self.drop2.d.next = self.cast.y.val().kind == DROP;
        self.spent2.d.next = self.cast.y.val().dec_ttl & self.about1.q.val().spent;
        // Stage 3
        self.valid3.d.next = self.valid2.q.val();
        self.known.next = self.hit2.q.val() & !self.deep2.q.val();
        self.made.next = self.known.val() & self.counts2.q.val();
        self.verdict3.d.next.kind = self.action2.q.val().kind;
        self.verdict3.d.next.cause = bits::<6>(0);
        if self.deep2.q.val() {
            self.verdict3.d.next.kind = bits::<3>(EXCEPTION);
            self.verdict3.d.next.cause = bits::<6>(DEEP);
        } else if self.home2.q.val() {
            self.verdict3.d.next.kind = self.station2.q.val().kind;
        } else if !self.hit2.q.val() {
            self.verdict3.d.next.kind = bits::<3>(EXCEPTION);
            if self.drop_miss2.q.val() {
                self.verdict3.d.next.kind = bits::<3>(DROP);
                self.verdict3.d.next.cause = bits::<6>(MISS);
            }
        } else if !self.counts2.q.val() {
            self.verdict3.d.next.kind = bits::<3>(DROP);
            self.verdict3.d.next.cause = bits::<6>(NO_RULE_ROOM);
        } else if self.denied2.q.val() {
            self.verdict3.d.next.kind = bits::<3>(DROP);
            self.verdict3.d.next.cause = bits::<6>(ROCE_DENIED);
        } else if self.software2.q.val() {
            self.verdict3.d.next.kind = bits::<3>(EXCEPTION);
        } else if self.drop2.q.val() {
            self.verdict3.d.next.kind = bits::<3>(DROP);
            self.verdict3.d.next.cause = bits::<6>(ACL);
        } else if self.spent2.q.val() {
            self.verdict3.d.next.kind = bits::<3>(EXCEPTION);
            self.verdict3.d.next.cause = bits::<6>(TTL);
        }
        self.verdict3.d.next.flow = bits::<FLOW>(0);
        if self.known.val() {
            self.verdict3.d.next.flow = self.line2.q.val().get_bits::<FLOW>(0);
        }
        self.verdict3.d.next.number = bits::<12>(0);
        self.verdict3.d.next.encap = bits::<12>(0);
        self.verdict3.d.next.rewrite = bits::<10>(0);
        self.verdict3.d.next.tag_op = bits::<2>(0);
        self.verdict3.d.next.tag = bits::<16>(0);
        self.verdict3.d.next.class = bits::<3>(0);
        self.verdict3.d.next.mirror = bits::<4>(0);
        self.verdict3.d.next.dscp = bits::<6>(0);
        self.verdict3.d.next.sample = bits::<4>(0);
        if self.made.val() {
            self.verdict3.d.next.number = self.action2.q.val().number;
            self.verdict3.d.next.encap = self.action2.q.val().encap;
            self.verdict3.d.next.rewrite = self.action2.q.val().rewrite;
            self.verdict3.d.next.tag_op = self.action2.q.val().tag_op;
            self.verdict3.d.next.tag = self.action2.q.val().tag;
            self.verdict3.d.next.class = self.action2.q.val().class;
            self.verdict3.d.next.mirror = self.action2.q.val().mirror;
            self.verdict3.d.next.dscp = self.action2.q.val().dscp;
            self.verdict3.d.next.sample = self.action2.q.val().sample;
        }
        if self.home2.q.val() {
            self.verdict3.d.next.number = self.station2.q.val().number;
            self.verdict3.d.next.encap = self.station2.q.val().encap;
        }
        self.verdict3.d.next.dec_ttl = self.made.val() & self.action2.q.val().dec_ttl;
        self.verdict3.d.next.write_dscp = self.made.val() & self.action2.q.val().write_dscp;
        self.verdict3.d.next.count = self.made.val() & self.action2.q.val().count;
        self.verdict3.d.next.generation = self.generation2.q.val();
        self.verdict3.d.next.rsvd0 = bits::<7>(0);
        self.verdict_valid.next = self.valid3.q.val();
        self.verdict.next = self.verdict3.q.val();
        if self.reset.val() {
            self.read1.d.next = false;
            self.valid1.d.next = false;
            self.valid2.d.next = false;
            self.valid3.d.next = false;
        }
    }
}
