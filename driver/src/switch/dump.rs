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
/// Masks.
const PROFILES: u32 = 1 << table::PROFILE_LINE_BITS;

/// Lines that one call of the card reads: their commands fit into the admin queue's ring.
const AT_A_TIME: usize = 8;

/// What stands where these commands read.
fn lines(context: &Context, reads: &[FlowCommand]) -> Result<Vec<FlowCommand>> {
    let answers = context.read_flows(reads)?;
    reads.iter().zip(&answers).map(|(read, answer)| table::standing(read, answer).ok_or(Error::Invalid("the card has no such table"))).collect()
}

impl FlowTables {
    /// One line as it stands in the card, as the command that would write it, or clear it. `table`: any of `ferric_abi::switch::table` but ROW, which nobody reads, and COUNT (see [`FlowTables::used`]). Errors:
    /// no such table, way or line.
    pub fn standing(&self, context: &Context, table: u8, way: u8, line: u32) -> Result<FlowCommand> {
        if matches!(table, table::ROW | table::COUNT) {
            return Err(Error::Invalid("lines of this table are not read like that"));
        }
        Ok(lines(context, &[table::read(table, way, line)])?[0])
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

    /// All lines of a table that count, as the card says it, in order: what a dump shows. Some commands a line, of which the card is told many at a time; other commands may come in between.
    /// Errors: the card's.
    pub fn dump(&self, context: &Context, table: u8) -> Result<Vec<FlowCommand>> {
        let (ways, all) = self.size(context, table);
        let reads: Vec<_> = (0..ways).flat_map(|way| all.iter().map(move |line| table::read(table, way, *line))).collect();
        let mut stand = Vec::new();
        for some in reads.chunks(AT_A_TIME) {
            stand.extend(lines(context, some)?.into_iter().filter(|line| line.opcode() == table::WRITE));
        }
        Ok(stand)
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
