//! A command to the table that it names.

use crate::prim::pack::{Cast, Slice};
use crate::records::FlowCommand;
use ferric_abi::switch::table::{self, ACTION_BITS, EXACT_BITS, KEY_BITS, PROFILE_LINE_BITS, RESULT_BITS};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bits of a command's record, and of all its fields.
const RECORD: usize = 896;
const COMMAND: usize = 1024;
/// Bits of a line's number in a command.
const LINE: usize = 24;

const WRITE: u64 = table::WRITE as u64;
const CLEAR: u64 = table::CLEAR as u64;
const PROFILE: u64 = table::PROFILE as u64;
const EXACT: u64 = table::EXACT as u64;
const ACTION: u64 = table::ACTION as u64;

/// A line of the bank.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Row {
    key: Bits<KEY_BITS>,
    action: Bits<RESULT_BITS>,
    generation: Bits<2>,
    counts: Bit,
}

/// A line number that the table of 2^`lg` lines does not have has one of these bits.
fn beyond(lg: usize) -> Constant<Bits<LINE>> {
    Constant::new((((1u64 << LINE) - 1) >> lg << lg).to_bits())
}

/// Ways of the bank and actions have 2^`LG` lines. Outputs are combinational.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Commands<const LG: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub write: Signal<In, Bit>,
    pub command: Signal<In, FlowCommand>,
    /// One of these, or `refused` in the next cycle.
    pub to_profile: Signal<Out, Bit>,
    pub to_bank: Signal<Out, Bit>,
    pub to_act: Signal<Out, Bit>,
    pub refused: Signal<Out, Bit>,
    /// The line counts from now on; else it does not.
    pub there: Signal<Out, Bit>,
    pub profile_line: Signal<Out, Bits<PROFILE_LINE_BITS>>,
    pub way: Signal<Out, Bits<2>>,
    pub line: Signal<Out, Bits<LG>>,
    /// The record as a key or a mask, as a line of the bank, as an action.
    pub key: Signal<Out, Bits<KEY_BITS>>,
    pub row: Signal<Out, Bits<EXACT_BITS>>,
    pub action: Signal<Out, Bits<ACTION_BITS>>,
    raw: Cast<FlowCommand, Bits<COMMAND>>,
    #[init(Slice::new(COMMAND - RECORD))]
    record: Slice<COMMAND, RECORD>,
    entry: Signal<Local, Row>,
    flat: Cast<Row, Bits<EXACT_BITS>>,
    #[init(beyond(LG))]
    beyond: Constant<Bits<LINE>>,
    #[init(beyond(PROFILE_LINE_BITS))]
    beyond_profiles: Constant<Bits<LINE>>,
    orderly: Signal<Local, Bit>,
    within: Signal<Local, Bit>,
    is_profile: Signal<Local, Bit>,
    is_exact: Signal<Local, Bit>,
    is_action: Signal<Local, Bit>,
    counts: Signal<Local, Bit>,
    refused1: DFF<Bit>,
}

#[kernel]
impl<const LG: usize> Logic for Commands<LG> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, refused1);
        self.raw.x.next = self.command.val();
        self.record.x.next = self.raw.y.val();
        self.counts.next = self.command.val().opcode == WRITE;
        self.orderly.next = self.write.val() & (self.counts.val() | (self.command.val().opcode == CLEAR));
        self.within.next = !(self.command.val().line & self.beyond.val()).any();
        self.is_profile.next = self.orderly.val() & (self.command.val().table == PROFILE) & !(self.command.val().line & self.beyond_profiles.val()).any();
        self.is_exact.next = self.orderly.val() & (self.command.val().table == EXACT) & self.within.val() & !self.command.val().way.get_bit(2);
        self.is_action.next = self.orderly.val() & (self.command.val().table == ACTION) & self.within.val();
        self.to_profile.next = self.is_profile.val();
        self.to_bank.next = self.is_exact.val();
        self.to_act.next = self.is_action.val();
        self.refused1.d.next = self.write.val() & !self.is_profile.val() & !self.is_exact.val() & !self.is_action.val() & !self.reset.val();
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
        self.action.next = self.record.y.val().get_bits::<ACTION_BITS>(0);
    }
}
