//! From a frame's first bytes to what becomes of it. See README.md.

mod commands;
mod reads;
#[cfg(test)]
mod tests;

use super::act::{self, About, Act};
use super::bank::{self, HashBank};
use super::count::Use;
use super::edit;
use super::fdb::{self, Fdb};
use super::key::{self, Key, Old, Origin};
use super::profile::{self, Profile, PROFILE_LINE_BITS};
use super::tcam::{self, Tcam};
use crate::net::rx::window::WINDOW_BITS;
use crate::prim::pack::{Cast, Slice};
use crate::prim::sized::Delay;
use crate::records::{FlowCommand, FlowKey, Verdict};
use commands::Commands;
use commands::NUMBER;
use ferric_abi::switch::station::NUMBER_BITS;
use ferric_abi::switch::table::{EXACT_BITS, KEY_BITS, RESULT_BITS, REWRITE_BITS};
use ferric_hdl_derive::{kernel, BlockDefault};
pub use reads::ANSWER;
use reads::{Reads, Which};
use rust_hdl::prelude::*;

/// Cycles from the window to the verdict.
pub const LATENCY: u64 = key::LATENCY + profile::LATENCY + bank::LATENCY + act::LATENCY;

/// Bytes of a key, and bits of the middle word of its hash.
const KEY_BYTES: usize = KEY_BITS / 8;
const MIDDLE: usize = 64;
/// Cycles from the key to what the tables found.
const FOUND: usize = (profile::LATENCY + bank::LATENCY) as usize;
/// Exact entries, wildcard rules and stations are found in the same cycle.
const _: () = assert!(FOUND == tcam::LATENCY as usize && FOUND == fdb::LATENCY as usize);
/// The packet class of IPv6.
const V6: u64 = 3;
/// The first packet class that is IP, as a bit of the class.
const IP: usize = 1;

/// What a frame's port says about its lookup, and the generation that is asked.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Asking {
    /// Port class, for the choice of a mask.
    pub class: Bits<2>,
    /// A frame that no table knows is dropped; else software gets it.
    pub drop_miss: Bit,
    /// Lines of this generation count.
    pub generation: Bits<2>,
    /// A frame that no entry and no rule knows goes to its destination's station.
    pub bridge: Bit,
}

/// Exact entries in four ways of 2^`LG` lines, `G` groups of fourteen wildcard rules, stations in four ways of as many lines, and as many actions as a way has lines. One frame a cycle, never stalled.
#[derive(LogicBlock, BlockDefault)]
pub struct Matching<const LG: usize, const G: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; what is under way is forgotten. The tables stay.
    pub reset: Signal<In, Bit>,
    /// The first 128 bytes of a frame, zeros behind its end.
    pub window: Signal<In, Bits<WINDOW_BITS>>,
    pub window_valid: Signal<In, Bit>,
    /// The frame ends with the window, and how many bytes it has then.
    pub ended: Signal<In, Bit>,
    pub len: Signal<In, Bits<8>>,
    pub origin: Signal<In, Origin>,
    pub asking: Signal<In, Asking>,
    /// [`LATENCY`] cycles later. `stop`: of IP, the byte of the frame behind the packet; one that has fewer is deep, whatever the verdict says.
    pub verdict_valid: Signal<Out, Bit>,
    pub verdict: Signal<Out, Verdict>,
    pub stop: Signal<Out, Bits<17>>,
    /// With it: the parser understands the frame, and it is UDP to RoCE's port.
    pub roce: Signal<Out, Bit>,
    /// The fields that the action may change, [`edit::AHEAD`] cycles earlier.
    pub old: Signal<Out, Old>,
    /// A line of MAC addresses that actions lead to, for [`edit::Edit`].
    pub write_rewrite: Signal<Out, Bit>,
    pub rewrite_line: Signal<Out, Bits<{ edit::LINE }>>,
    pub rewrite_macs: Signal<Out, Bits<REWRITE_BITS>>,
    /// A command of `ferric_abi::switch::table`, one a cycle, at any time.
    pub write: Signal<In, Bit>,
    pub command: Signal<In, FlowCommand>,
    /// In the next cycle: it named an operation, a table, a way or a line that there is not, and nothing was written.
    pub refused: Signal<Out, Bit>,
    /// A command that reads is under way, from the cycle behind it on; then its answer, until there is another one.
    pub busy: Signal<Out, Bit>,
    pub answer: Signal<Out, Bits<ANSWER>>,
    /// As `count` has it.
    pub ask: Signal<Out, Bit>,
    pub ask_zero: Signal<Out, Bit>,
    pub asked: Signal<Out, Bits<LG>>,
    pub answered: Signal<In, Bit>,
    pub counted: Signal<In, Use>,
    parse: Key,
    whole: Cast<FlowKey, Bits<KEY_BITS>>,
    profile: Profile,
    bank: HashBank<KEY_BITS, KEY_BYTES, MIDDLE, RESULT_BITS, EXACT_BITS, LG>,
    tcam: Tcam<G>,
    fdb: Fdb<LG>,
    act: Act<LG>,
    // Beside the key
    #[init(Delay::new(key::LATENCY as usize))]
    port: Delay<Asking>,
    // Beside profile and bank
    valids: DFF<Bits<FOUND>>,
    #[init(Delay::new(FOUND))]
    known: Delay<About>,
    about: Signal<Local, About>,
    generation1: DFF<Bits<2>>,
    #[init(Delay::new(FOUND + act::LATENCY as usize))]
    stops: Delay<Bits<17>>,
    #[init(Delay::new(FOUND + act::LATENCY as usize))]
    roces: Delay<Bit>,
    #[init(Delay::new(FOUND + act::LATENCY as usize - edit::AHEAD))]
    olds: Delay<Old>,
    #[init(Slice::new(FOUND - 1))]
    oldest: Slice<FOUND, 1>,
    commands: Commands<LG, G>,
    reads: Reads,
    which: Signal<Local, Which>,
    read_line: Signal<Local, Bits<LG>>,
}

#[kernel]
impl<const LG: usize, const G: usize> Logic for Matching<LG, G> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, valids, generation1);
        clock!(self, clock, parse, profile, bank, tcam, fdb, act, port, known, stops, roces, olds, commands, reads);
        self.parse.reset.next = self.reset.val();
        self.profile.reset.next = self.reset.val();
        self.bank.reset.next = self.reset.val();
        self.fdb.reset.next = self.reset.val();
        self.act.reset.next = self.reset.val();
        self.parse.window.next = self.window.val();
        self.parse.window_valid.next = self.window_valid.val();
        self.parse.ended.next = self.ended.val();
        self.parse.len.next = self.len.val();
        self.parse.origin.next = self.origin.val();
        self.port.x.next = self.asking.val();
        // The key under its mask
        self.whole.x.next = self.parse.key.val();
        self.profile.valid.next = self.parse.valid.val();
        self.profile.key.next = self.whole.y.val();
        self.profile.generation.next = self.port.y.val().generation;
        self.profile.port_class.next = self.port.y.val().class;
        self.profile.packet_class.next = self.parse.facts.val().class;
        self.generation1.d.next = self.port.y.val().generation;
        self.bank.valid.next = self.profile.asks.val();
        self.bank.key.next = self.profile.masked.val();
        self.bank.generation.next = self.generation1.q.val();
        // Wildcard rules
        self.tcam.key.next = self.whole.y.val();
        self.tcam.v6.next = self.parse.facts.val().class == V6;
        self.tcam.generation.next = self.port.y.val().generation;
        // Stations
        self.fdb.valid.next = self.parse.valid.val();
        self.fdb.domain.next = self.parse.key.val().domain;
        self.fdb.mac.next = self.parse.key.val().dmac;
        self.fdb.generation.next = self.port.y.val().generation;
        self.about.next.bridge = self.port.y.val().bridge;
        self.about.next.deep = self.parse.facts.val().deep;
        self.about.next.roce = self.parse.facts.val().roce;
        self.about.next.ends = self.parse.facts.val().ends;
        self.about.next.spent = self.parse.facts.val().class.get_bit(IP) & !self.parse.key.val().ttl_class.get_bit(1);
        self.about.next.drop_miss = self.port.y.val().drop_miss;
        self.about.next.generation = self.port.y.val().generation.get_bit(0);
        self.known.x.next = self.about.val();
        self.valids.d.next = (self.valids.q.val() << 1) | bit_cast::<FOUND, 1>(self.parse.valid.val().into());
        self.oldest.x.next = self.valids.q.val();
        self.stops.x.next = self.parse.facts.val().stop;
        self.roces.x.next = self.parse.facts.val().roce & !self.parse.facts.val().deep;
        self.act.valid.next = self.oldest.y.val().any();
        self.act.exact.next = self.bank.found_valid.val() & self.bank.hit.val();
        self.act.exact_line.next = self.bank.result.val();
        self.act.rule.next = self.tcam.hit.val();
        self.act.rule_line.next = self.tcam.action.val();
        self.act.about.next = self.known.y.val();
        self.act.home.next = self.fdb.hit.val();
        self.act.station.next = self.fdb.station.val();
        self.verdict_valid.next = self.act.verdict_valid.val();
        self.verdict.next = self.act.verdict.val();
        self.stop.next = self.stops.y.val();
        self.roce.next = self.roces.y.val();
        self.olds.x.next = self.parse.facts.val().old;
        self.old.next = self.olds.y.val();
        // Lines are read back
        self.reads.reset.next = self.reset.val();
        self.which.next.exact = self.commands.reads_bank.val();
        self.which.next.count = self.commands.reads_count.val();
        self.which.next.profile = self.commands.reads_profile.val();
        self.which.next.act = self.commands.reads_act.val();
        self.which.next.rule = self.commands.reads_rule.val();
        self.which.next.station = self.commands.reads_station.val();
        self.which.next.flood = self.commands.reads_flood.val();
        self.reads.which.next = self.which.val();
        self.reads.foreign.next = self.commands.reads_foreign.val();
        self.reads.zero.next = self.commands.clears.val();
        self.reads.way.next = self.commands.way.val();
        self.reads.line.next = self.commands.number.val();
        self.reads.exact_done.next = self.bank.read_done.val();
        self.reads.exact.next = self.bank.read_data.val();
        self.reads.profile_done.next = self.profile.read_done.val();
        self.reads.profile.next = self.profile.read_data.val();
        self.reads.act_done.next = self.act.read_done.val();
        self.reads.act.next = self.act.read_data.val();
        self.reads.rule_done.next = self.tcam.read_done.val();
        self.reads.rule.next = self.tcam.read_data.val();
        self.reads.station_done.next = self.fdb.read_done.val();
        self.reads.station.next = self.fdb.read_data.val();
        self.reads.answered.next = self.answered.val();
        self.reads.counted.next = self.counted.val();
        self.read_line.next = bit_cast::<LG, NUMBER>(self.reads.read_line.val());
        self.bank.read.next = self.reads.reads.val().exact;
        self.bank.read_way.next = self.reads.read_way.val();
        self.bank.read_line.next = self.read_line.val();
        self.profile.read.next = self.reads.reads.val().profile;
        self.profile.read_line.next = bit_cast::<PROFILE_LINE_BITS, NUMBER>(self.reads.read_line.val());
        self.act.read.next = self.reads.reads.val().act;
        self.act.read_line.next = self.read_line.val();
        // The key of six cycles ago.
        self.tcam.looks.next = self.valids.q.val().get_bit(5);
        self.tcam.read.next = self.reads.reads.val().rule;
        self.tcam.read_rule.next = bit_cast::<{ tcam::RULE }, NUMBER>(self.reads.read_line.val());
        self.fdb.read.next = self.reads.reads.val().station;
        self.fdb.read_flood.next = self.reads.reads.val().flood;
        self.fdb.read_way.next = self.reads.read_way.val();
        self.fdb.read_line.next = self.read_line.val();
        self.ask.next = self.reads.reads.val().count;
        self.ask_zero.next = self.reads.ask_zero.val();
        self.asked.next = self.read_line.val();
        self.busy.next = self.reads.busy.val();
        self.answer.next = self.reads.answer.val();
        // Commands
        self.commands.reset.next = self.reset.val();
        self.commands.write.next = self.write.val();
        self.commands.command.next = self.command.val();
        self.refused.next = self.commands.refused.val();
        self.profile.write.next = self.commands.to_profile.val();
        self.profile.write_line.next = self.commands.profile_line.val();
        self.profile.write_mask.next = self.commands.key.val();
        self.profile.there.next = self.commands.there.val();
        self.bank.write.next = self.commands.to_bank.val();
        self.bank.write_way.next = self.commands.way.val();
        self.bank.write_line.next = self.commands.line.val();
        self.bank.write_data.next = self.commands.row.val();
        self.tcam.write_row.next = self.commands.to_row.val();
        self.tcam.row.next = self.commands.value.val();
        self.tcam.row_data.next = self.commands.row_data.val();
        self.tcam.write_rule.next = self.commands.to_rule.val();
        self.tcam.rule.next = self.commands.rule.val();
        self.tcam.rule_counts.next = self.commands.there.val();
        self.tcam.rule_generation.next = self.command.val().generation;
        self.tcam.rule_action.next = self.command.val().action;
        self.tcam.group.next = self.commands.group.val();
        self.fdb.write.next = self.commands.to_station.val();
        self.fdb.write_way.next = self.commands.way.val();
        self.fdb.write_line.next = self.commands.line.val();
        self.fdb.write_data.next = self.commands.home.val();
        self.fdb.write_flood.next = self.commands.to_flood.val();
        self.fdb.flood_domain.next = self.commands.line.val();
        self.fdb.flood_group.next = self.command.val().action.get_bits::<NUMBER_BITS>(0);
        self.fdb.there.next = self.commands.there.val();
        self.write_rewrite.next = self.commands.to_rewrite.val();
        self.rewrite_line.next = self.commands.number.val().get_bits::<{ edit::LINE }>(0);
        self.rewrite_macs.next = self.commands.macs.val();
        self.act.write.next = self.commands.to_act.val();
        self.act.write_line.next = self.commands.line.val();
        self.act.write_action.next = self.commands.action.val();
        self.act.there.next = self.commands.there.val();
        if self.reset.val() {
            self.valids.d.next = bits::<FOUND>(0);
        }
    }
}
