//! The flow tables' admin commands (docs/admin.md, SET_FLOW and SET_FLOW_PORT), as they are.

use super::port::{generation, number, FlowPort, CLASSES};
use crate::admin::Command;
use crate::context::Context;
use crate::error::{Error, Result};
use ferric_abi::codes::AdminOpcode;
use ferric_abi::context::{EgressCounts, FlowCounts, FlowPortCtx};
use ferric_abi::csr;
use ferric_abi::switch::table::{answer_bytes, ANSWER_BYTES};
use ferric_abi::switch::FlowCommand;

/// Bytes of a command's head, and where its record begins.
const HEAD_BYTES: usize = 8;
const RECORD_AT: usize = 16;
/// Bytes of a line that one QUERY_OBJECT brings.
const QUERY_BYTES: usize = 32;

fn set_flow(command: &FlowCommand) -> Command {
    let bytes = [&command.0[..HEAD_BYTES], &command.0[RECORD_AT..]].concat();
    Command { what: "set flow", opcode: AdminOpcode::SetFlow, id: 0, params: crate::admin::words::<30>(&bytes).to_vec() }
}

/// Of what the last command has read, the `n`-th part.
fn query_answer(n: usize) -> Command {
    Command { what: "read flow", opcode: AdminOpcode::QueryObject, id: csr::FLOW_ANSWER, params: vec![csr::space::FLOW.into(), (n * QUERY_BYTES / 4) as u32] }
}

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
        let Command { what, opcode, id, params } = set_flow(command);
        self.inner.admin(what, opcode, id, &params).map(drop)
    }

    /// A command that reads, as it is, and its answer, for the physical function only. Errors: as of [`Context::write_flow`].
    pub fn read_flow(&self, command: &FlowCommand) -> Result<[u8; ANSWER_BYTES]> {
        self.read_flows(std::slice::from_ref(command)).map(|answers| answers[0])
    }

    /// Commands that read, as they are, and their answers in the same order; the card is told of as many at a time as its ring has room for. An answer is that to the last command, so nobody else's
    /// comes in between. Errors: as of [`Context::write_flow`], the first one.
    pub fn read_flows(&self, commands: &[FlowCommand]) -> Result<Vec<[u8; ANSWER_BYTES]>> {
        self.flows()?;
        let queries = |command: &FlowCommand| answer_bytes(command.table()).div_ceil(QUERY_BYTES);
        let posted: Vec<Command> = commands.iter().flat_map(|command| std::iter::once(set_flow(command)).chain((0..queries(command)).map(query_answer))).collect();
        // All tickets are redeemed, also those behind an error: an answer that nobody fetches would be kept.
        let mut said = self.inner.post(posted.iter()).into_iter().map(|ticket| self.inner.answer(ticket)).collect::<Vec<_>>().into_iter();
        let mut next = || said.next().unwrap_or(Err(Error::Invalid("a command without an answer")));
        let mut answers = Vec::with_capacity(commands.len());
        for command in commands {
            next()?;
            let mut answer = [0; ANSWER_BYTES];
            for part in answer.chunks_mut(QUERY_BYTES).take(queries(command)) {
                part.chunks_exact_mut(4).zip(next()?).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
            }
            answers.push(answer);
        }
        Ok(answers)
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
                FlowPortCtx::default().with_valid(true).with_drop_miss(port.drop_miss).with_class(port.class).with_generation(port.generation).with_bridge(port.bridge).with_egress(port.egress)
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

    /// What became of a function's frames that were about to leave by the wire while the tables were asked about these ([`FlowPort::egress`]), since the card was switched on; for the physical function only.
    /// Counters that move meanwhile are read one after the other. Errors: the card has no flow tables; no such function.
    pub fn egress_counts(&self, function: u8) -> Result<EgressCounts> {
        self.flows()?;
        if u32::from(function) >= self.inner.caps.functions {
            return Err(Error::Invalid("the card has no such function"));
        }
        let mut counts = EgressCounts::default();
        self.read_counts("query egress counts", [csr::space::FLOW.into(), csr::FLOW_EGRESS + u32::from(function)], &mut counts.0)?;
        Ok(counts)
    }
}
