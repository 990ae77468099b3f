//! The flow tables' admin commands (docs/admin.md, SET_FLOW and SET_FLOW_PORT), as they are.

use super::port::{generation, number, FlowPort, CLASSES};
use crate::context::Context;
use crate::error::{Error, Result};
use ferric_abi::codes::AdminOpcode;
use ferric_abi::context::{FlowCounts, FlowPortCtx};
use ferric_abi::csr;
use ferric_abi::switch::table::{answer_bytes, ANSWER_BYTES};
use ferric_abi::switch::FlowCommand;

/// Bytes of a command's head, and where its record begins.
const HEAD_BYTES: usize = 8;
const RECORD_AT: usize = 16;
/// Bytes of a line that one QUERY_OBJECT brings.
const QUERY_BYTES: usize = 32;

impl Context {
    /// Whether the card has flow tables that decide about received frames.
    pub fn has_flows(&self) -> bool {
        self.inner.caps.features >> csr::FEATURE_FLOWS & 1 == 1
    }

    fn flows(&self) -> Result<()> {
        match self.has_flows() {
            true => Ok(()),
            false => Err(Error::Unsupported("decide about frames by flow tables")),
        }
    }

    /// One command of `ferric_abi::switch::table` as it is, for the physical function only; [`super::FlowTables`] makes them. Errors: it names a table, a way or a line that there is not, and nothing
    /// was written (BadParameter).
    pub fn write_flow(&self, command: &FlowCommand) -> Result<()> {
        self.flows()?;
        let bytes = [&command.0[..HEAD_BYTES], &command.0[RECORD_AT..]].concat();
        self.inner.admin("set flow", AdminOpcode::SetFlow, 0, &crate::admin::words::<30>(&bytes)).map(drop)
    }

    /// A command that reads, as it is, and its answer, for the physical function only. One at a time: an answer is that to the last one. Errors: as of [`Context::write_flow`].
    pub fn read_flow(&self, command: &FlowCommand) -> Result<[u8; ANSWER_BYTES]> {
        self.write_flow(command)?;
        let mut answer = [0; ANSWER_BYTES];
        for (n, part) in answer.chunks_mut(QUERY_BYTES).take(answer_bytes(command.table()).div_ceil(QUERY_BYTES)).enumerate() {
            let words = self.inner.admin("read flow", AdminOpcode::QueryObject, csr::FLOW_ANSWER, &[csr::space::FLOW.into(), (n * QUERY_BYTES / 4) as u32])?;
            part.chunks_exact_mut(4).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
        }
        Ok(answer)
    }

    /// The tick that it is for the flows' counters, of 24 bits; one has 2^`FLOW_TICK` cycles. For the physical function only.
    pub fn flow_tick(&self) -> Result<u32> {
        self.flows()?;
        Ok(self.inner.admin("query flow tick", AdminOpcode::QueryObject, csr::FLOW_COMMAND, &[csr::space::FLOW.into(), csr::FLOW_NOW])?[0])
    }

    /// What is done with frames off the wire from the next one on; `None`: all pass, as on a card without flow tables. For the physical function only; when that is reset frames pass, and all
    /// tables are emptied. Errors: numbers above 3.
    pub fn set_flow_port(&self, port: Option<&FlowPort>) -> Result<()> {
        self.flows()?;
        let line = match port {
            Some(port) => {
                generation(port.generation)?;
                number("port classes are 0 to 3", port.class, CLASSES)?;
                FlowPortCtx::default().with_valid(true).with_drop_miss(port.drop_miss).with_class(port.class).with_generation(port.generation).with_bridge(port.bridge)
            }
            None => FlowPortCtx::default(),
        };
        self.inner.admin("set flow port", AdminOpcode::SetFlowPort, 0, &crate::admin::words::<1>(&line.0)).map(drop)
    }

    /// What became of received frames at the flow tables since the card was switched on; for the physical function only. Counters that move meanwhile are read one after the other.
    pub fn flow_counts(&self) -> Result<FlowCounts> {
        self.flows()?;
        let mut counts = FlowCounts::default();
        self.read_counts("query flow counts", [csr::space::FLOW.into(), csr::FLOW_COUNTS], &mut counts.0)?;
        Ok(counts)
    }
}
