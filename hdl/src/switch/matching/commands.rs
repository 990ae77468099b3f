//! A command to the table that it names.

use crate::prim::pack::{Cast, Slice};
use crate::records::FlowCommand;
use crate::switch::edit;
use crate::switch::tcam::{CHUNK_BITS, GROUP, PLACE, ROW};
use crate::switch::{beyond, fdb, COMMAND, COMMAND_LINE as LINE, RECORD};
use ferric_abi::switch::station::{self, KEY_BITS as STATION_BITS};
use ferric_abi::switch::table::{self, ACTION_BITS, EXACT_BITS, KEY_BITS, PROFILE_LINE_BITS, RESULT_BITS, REWRITE_BITS};
use ferric_abi::switch::ternary::RULES;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

const WRITE: u64 = table::WRITE as u64;
const CLEAR: u64 = table::CLEAR as u64;
const READ: u64 = table::READ as u64;
const PROFILE: u64 = table::PROFILE as u64;
const EXACT: u64 = table::EXACT as u64;
const ACTION: u64 = table::ACTION as u64;
const ROWS: u64 = table::ROW as u64;
const RULE: u64 = table::RULE as u64;
const COUNT: u64 = table::COUNT as u64;
const STATION: u64 = table::STATION as u64;
const FLOOD: u64 = table::FLOOD as u64;
const REWRITES: u64 = table::REWRITE as u64;
/// A kind of station that there is not.
const NO_KIND: u64 = station::kind::NONE as u64;
/// Where the kind stands in what a station leads to.
const KIND_AT: usize = station::NUMBER_BITS;
const RULES_OF_A_GROUP: u64 = RULES as u64;

/// Bits of the number of a line of any table: ways have no more lines, and rules no longer numbers.
pub(super) const NUMBER: usize = 12;
/// A line of the bank.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Row {
    key: Bits<KEY_BITS>,
    action: Bits<RESULT_BITS>,
    generation: Bits<2>,
    counts: Bit,
}

/// A line of the stations' bank.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Home {
    key: Bits<STATION_BITS>,
    result: Bits<{ station::RESULT_BITS }>,
    generation: Bits<2>,
    counts: Bit,
}

/// Ways of the bank and actions have 2^`LG` lines, and there are `G` groups of wildcard rules. Outputs are combinational.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Commands<const LG: usize, const G: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub write: Signal<In, Bit>,
    pub command: Signal<In, FlowCommand>,
    /// One of these, or `refused` in the next cycle.
    pub to_profile: Signal<Out, Bit>,
    pub to_bank: Signal<Out, Bit>,
    pub to_act: Signal<Out, Bit>,
    pub to_row: Signal<Out, Bit>,
    pub to_rule: Signal<Out, Bit>,
    pub to_station: Signal<Out, Bit>,
    pub to_flood: Signal<Out, Bit>,
    pub to_rewrite: Signal<Out, Bit>,
    /// A line is to be read, of one of these tables, or of somebody else's; counters become zero behind that if `clears`.
    pub reads_bank: Signal<Out, Bit>,
    pub reads_count: Signal<Out, Bit>,
    pub reads_profile: Signal<Out, Bit>,
    pub reads_act: Signal<Out, Bit>,
    pub reads_rule: Signal<Out, Bit>,
    pub reads_station: Signal<Out, Bit>,
    pub reads_flood: Signal<Out, Bit>,
    pub reads_foreign: Signal<Out, Bit>,
    pub clears: Signal<Out, Bit>,
    pub refused: Signal<Out, Bit>,
    /// The line counts from now on; else it does not.
    pub there: Signal<Out, Bit>,
    pub profile_line: Signal<Out, Bits<PROFILE_LINE_BITS>>,
    pub way: Signal<Out, Bits<2>>,
    pub line: Signal<Out, Bits<LG>>,
    /// Of whichever table.
    pub number: Signal<Out, Bits<NUMBER>>,
    /// Of wildcard rules.
    pub group: Signal<Out, Bits<GROUP>>,
    pub rule: Signal<Out, Bits<PLACE>>,
    pub value: Signal<Out, Bits<CHUNK_BITS>>,
    /// The record as a key or a mask, as a line of the bank, as an action, as a row.
    pub key: Signal<Out, Bits<KEY_BITS>>,
    pub row: Signal<Out, Bits<EXACT_BITS>>,
    pub action: Signal<Out, Bits<ACTION_BITS>>,
    pub row_data: Signal<Out, Bits<ROW>>,
    /// As a line of MAC addresses.
    pub macs: Signal<Out, Bits<REWRITE_BITS>>,
    /// As a line of the stations' bank.
    pub home: Signal<Out, Bits<{ fdb::LINE }>>,
    raw: Cast<FlowCommand, Bits<COMMAND>>,
    #[init(Slice::new(COMMAND - RECORD))]
    record: Slice<COMMAND, RECORD>,
    entry: Signal<Local, Row>,
    flat: Cast<Row, Bits<EXACT_BITS>>,
    station: Signal<Local, Home>,
    flat_station: Cast<Home, Bits<{ fdb::LINE }>>,
    #[init(beyond(LG))]
    beyond: Constant<Bits<LINE>>,
    #[init(beyond(LG.min(edit::LINE)))]
    beyond_rewrites: Constant<Bits<LINE>>,
    #[init(beyond(PROFILE_LINE_BITS))]
    beyond_profiles: Constant<Bits<LINE>>,
    #[init(beyond(GROUP + CHUNK_BITS))]
    beyond_rows: Constant<Bits<LINE>>,
    #[init(beyond(GROUP + PLACE))]
    beyond_rules: Constant<Bits<LINE>>,
    /// Groups, and rules in one.
    #[init(Constant::new((G as u64).to_bits()))]
    groups: Constant<Bits<6>>,
    row_group: Signal<Local, Bits<6>>,
    rule_group: Signal<Local, Bits<6>>,
    place: Signal<Local, Bits<PLACE>>,
    is_row: Signal<Local, Bit>,
    is_rule: Signal<Local, Bit>,
    orderly: Signal<Local, Bit>,
    within: Signal<Local, Bit>,
    is_profile: Signal<Local, Bit>,
    in_profiles: Signal<Local, Bit>,
    in_actions: Signal<Local, Bit>,
    in_rules: Signal<Local, Bit>,
    in_floods: Signal<Local, Bit>,
    asks: Signal<Local, Bit>,
    is_ours: Signal<Local, Bit>,
    is_exact: Signal<Local, Bit>,
    is_action: Signal<Local, Bit>,
    reads: Signal<Local, Bit>,
    takes: Signal<Local, Bit>,
    in_bank: Signal<Local, Bit>,
    is_count: Signal<Local, Bit>,
    kind: Signal<Local, Bits<2>>,
    in_stations: Signal<Local, Bit>,
    is_station: Signal<Local, Bit>,
    is_flood: Signal<Local, Bit>,
    is_rewrite: Signal<Local, Bit>,
    written: Signal<Local, Bit>,
    counts: Signal<Local, Bit>,
    refused1: DFF<Bit>,
}

#[kernel]
impl<const LG: usize, const G: usize> Logic for Commands<LG, G> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, refused1);
        self.raw.x.next = self.command.val();
        self.record.x.next = self.raw.y.val();
        self.counts.next = self.command.val().opcode == WRITE;
        self.takes.next = self.command.val().opcode == CLEAR;
        self.clears.next = self.takes.val();
        self.reads.next = self.command.val().opcode == READ;
        self.asks.next = self.write.val() & self.reads.val();
        self.orderly.next = self.write.val() & (self.counts.val() | self.takes.val());
        self.within.next = !(self.command.val().line & self.beyond.val()).any();
        self.in_profiles.next = (self.command.val().table == PROFILE) & !(self.command.val().line & self.beyond_profiles.val()).any();
        self.is_profile.next = self.orderly.val() & self.in_profiles.val();
        self.in_bank.next = (self.command.val().table == EXACT) & self.within.val() & !self.command.val().way.get_bit(2);
        self.is_exact.next = self.orderly.val() & self.in_bank.val();
        self.is_count.next = self.write.val() & (self.reads.val() | self.takes.val()) & (self.command.val().table == COUNT) & self.within.val();
        self.kind.next = self.command.val().action.get_bits::<2>(KIND_AT);
        self.in_stations.next = (self.command.val().table == STATION) & self.within.val() & !self.command.val().way.get_bit(2);
        self.is_station.next = self.orderly.val() & self.in_stations.val() & (self.kind.val() != NO_KIND);
        self.in_floods.next = (self.command.val().table == FLOOD) & self.within.val();
        self.is_flood.next = self.orderly.val() & self.in_floods.val();
        // Addresses are whole or not there, as rows are.
        self.is_rewrite.next = self.orderly.val() & self.counts.val() & (self.command.val().table == REWRITES) & !(self.command.val().line & self.beyond_rewrites.val()).any();
        self.to_rewrite.next = self.is_rewrite.val();
        self.to_station.next = self.is_station.val();
        self.to_flood.next = self.is_flood.val();
        self.reads_bank.next = self.asks.val() & self.in_bank.val();
        self.reads_count.next = self.is_count.val();
        self.in_actions.next = (self.command.val().table == ACTION) & self.within.val();
        self.is_action.next = self.orderly.val() & self.in_actions.val();
        self.row_group.next = bit_cast::<6, GROUP>(self.command.val().line.get_bits::<GROUP>(5));
        self.rule_group.next = bit_cast::<6, GROUP>(self.command.val().line.get_bits::<GROUP>(4));
        self.place.next = self.command.val().line.get_bits::<PLACE>(0);
        // A row is whole or not there: what does not count stands in no row.
        self.is_row.next =
            self.orderly.val() & self.counts.val() & (self.command.val().table == ROWS) & !(self.command.val().line & self.beyond_rows.val()).any() & (self.row_group.val() < self.groups.val());
        self.in_rules.next =
            (self.command.val().table == RULE) & !(self.command.val().line & self.beyond_rules.val()).any() & (self.rule_group.val() < self.groups.val()) & (self.place.val() < RULES_OF_A_GROUP);
        self.is_rule.next = self.orderly.val() & self.in_rules.val();
        self.reads_profile.next = self.asks.val() & self.in_profiles.val();
        self.reads_act.next = self.asks.val() & self.in_actions.val();
        self.reads_rule.next = self.asks.val() & self.in_rules.val();
        self.reads_station.next = self.asks.val() & self.in_stations.val();
        self.reads_flood.next = self.asks.val() & self.in_floods.val();
        self.is_ours.next =
            self.is_count.val() | (self.asks.val() & (self.in_bank.val() | self.in_profiles.val() | self.in_actions.val() | self.in_rules.val() | self.in_stations.val() | self.in_floods.val()));
        self.reads_foreign.next = self.asks.val() & !self.is_ours.val();
        self.number.next = bit_cast::<NUMBER, LINE>(self.command.val().line);
        self.to_row.next = self.is_row.val();
        self.to_rule.next = self.is_rule.val();
        self.group.next = self.command.val().line.get_bits::<GROUP>(5);
        if self.is_rule.val() {
            self.group.next = self.command.val().line.get_bits::<GROUP>(4);
        }
        self.rule.next = self.place.val();
        self.value.next = self.command.val().line.get_bits::<CHUNK_BITS>(0);
        self.row_data.next = self.record.y.val();
        self.to_profile.next = self.is_profile.val();
        self.to_bank.next = self.is_exact.val();
        self.to_act.next = self.is_action.val();
        self.written.next =
            self.is_profile.val() | self.is_exact.val() | self.is_action.val() | self.is_row.val() | self.is_rule.val() | self.is_station.val() | self.is_flood.val() | self.is_rewrite.val();
        self.refused1.d.next = self.write.val() & !self.written.val() & !self.is_ours.val() & !self.reset.val();
        self.refused.next = self.refused1.q.val();
        self.there.next = self.counts.val();
        self.profile_line.next = bit_cast::<PROFILE_LINE_BITS, LINE>(self.command.val().line);
        self.way.next = self.command.val().way.get_bits::<2>(0);
        self.line.next = bit_cast::<LG, LINE>(self.command.val().line);
        self.key.next = self.record.y.val().get_bits::<KEY_BITS>(0);
        self.entry.next.key = self.record.y.val().get_bits::<KEY_BITS>(0);
        self.entry.next.action = self.command.val().action;
        self.entry.next.generation = self.command.val().generation;
        self.entry.next.counts = self.counts.val();
        self.flat.x.next = self.entry.val();
        self.row.next = self.flat.y.val();
        self.station.next.key = self.record.y.val().get_bits::<STATION_BITS>(0);
        self.station.next.result = self.command.val().action;
        self.station.next.generation = self.command.val().generation;
        self.station.next.counts = self.counts.val();
        self.flat_station.x.next = self.station.val();
        self.home.next = self.flat_station.y.val();
        self.action.next = self.record.y.val().get_bits::<ACTION_BITS>(0);
        self.macs.next = self.record.y.val().get_bits::<REWRITE_BITS>(0);
    }
}
