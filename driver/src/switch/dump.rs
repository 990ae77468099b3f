//! What stands in the card's tables, as the card says it.

use super::flows::FlowTables;
use crate::context::Context;
use crate::error::{Error, Result};
use ferric_abi::csr::FLOW_TICK;
use ferric_abi::switch::table;
use ferric_abi::switch::FlowCommand;
use std::time::Duration;

/// Ticks of the flows' counters have 24 bits.
const TICKS: u32 = 1 << 24;
const WAYS: u8 = 4;
/// Lines that a dump asks for at a time: others' commands come between these, and the admin queue's ring has room for them.
const AT_ONCE: usize = 8;
/// Masks.
const PROFILES: u32 = 1 << table::PROFILE_LINE_BITS;

impl FlowTables {
    /// One line as it stands in the card, as the command that would write it, or clear it. `table`: any of `ferric_abi::switch::table` but ROW, which nobody reads, and COUNT (see [`FlowTables::used`]). Errors:
    /// no such table, way or line.
    pub fn standing(&self, context: &Context, table: u8, way: u8, line: u32) -> Result<FlowCommand> {
        self.stand(context, table, &[(way, line)])?.pop().ok_or(Error::Invalid("one line is asked for"))
    }

    /// Lines, told to the card together.
    fn stand(&self, context: &Context, table: u8, places: &[(u8, u32)]) -> Result<Vec<FlowCommand>> {
        if matches!(table, table::ROW | table::COUNT) {
            return Err(Error::Invalid("lines of this table are not read like that"));
        }
        let reads: Vec<_> = places.iter().map(|(way, line)| table::read(table, *way, *line)).collect();
        let answers = context.read_flows(&reads)?;
        reads.iter().zip(&answers).map(|(read, answer)| table::standing(read, answer).ok_or(Error::Invalid("the card has no such table"))).collect()
    }

    /// Ways and lines of a table.
    fn size(&self, context: &Context, table: u8) -> (u8, Vec<u32>) {
        let lines = |count| (0..count).collect();
        match table {
            table::PROFILE => (1, lines(PROFILES)),
            table::EXACT | table::STATION => (WAYS, lines(self.lines)),
            table::ACTION => (1, lines(self.lines)),
            // The card has groups for as many bridge domains.
            table::FLOOD => (1, lines(self.lines)),
            table::RULE => (1, (0..self.rules.room()).map(super::rules::line).collect()),
            table::SENDER => (1, lines(context.inner.caps.functions)),
            table::BIND => (WAYS, lines((self.addresses() / usize::from(WAYS)) as u32)),
            _ => (0, Vec::new()),
        }
    }

    /// All lines of a table that count, as the card says it, in order: what a dump shows. Several commands a line, so this takes a while. Errors: the card's.
    pub fn dump(&self, context: &Context, table: u8) -> Result<Vec<FlowCommand>> {
        let (ways, lines) = self.size(context, table);
        let places: Vec<_> = (0..ways).flat_map(|way| lines.iter().map(move |line| (way, *line))).collect();
        let mut all = Vec::new();
        for places in places.chunks(AT_ONCE) {
            all.extend(self.stand(context, table, places)?.into_iter().filter(|line| line.opcode() == table::WRITE));
        }
        Ok(all)
    }

    /// Of these lines of the action table those whose flows have not been used for a time, or not at all since their counters were zero; only actions that count are used. A tick has 2^`FLOW_TICK` cycles of
    /// `cycle`; times of half the ticks' range (2^23) and more cannot be told. Errors: no such line; a time that is too long.
    pub fn idle(&self, context: &Context, lines: impl IntoIterator<Item = u16>, time: Duration, cycle: Duration) -> Result<Vec<u16>> {
        let ticks =
            u32::try_from(time.as_nanos() / (cycle.as_nanos().max(1) << FLOW_TICK)).ok().filter(|ticks| *ticks < TICKS / 2).ok_or(Error::Invalid("the flows' ticks do not reach that far back"))?;
        let mut idle = Vec::new();
        for line in lines {
            let used = self.used(context, line)?;
            let age = context.flow_tick()?.wrapping_sub(used.last_use()) % TICKS;
            if used.packets() == 0 || age > ticks {
                idle.push(line);
            }
        }
        Ok(idle)
    }
}
