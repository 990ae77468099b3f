//! A card for the tests of these files.

use crate::error::{Error, Result};
use ferric_abi::codes::AdminStatus;
use ferric_abi::switch::{table, FlowCommand};
use std::collections::BTreeMap;

/// A card that is nothing but its lines, by table, way and number, and that does not answer the commands of a range: it may have done them, or refuse them.
#[derive(Default)]
pub struct Card {
    pub lines: BTreeMap<(u8, u8, u32), FlowCommand>,
    pub told: usize,
    pub silent: std::ops::Range<usize>,
    pub how: How,
    /// What was told, in order.
    pub all: Vec<FlowCommand>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum How {
    #[default]
    Refuses,
    Does,
    DoesNot,
}

impl Card {
    pub fn tell(&mut self, command: &FlowCommand) -> Result<()> {
        let fails = self.silent.contains(&self.told);
        self.told += 1;
        self.all.push(*command);
        if !fails || self.how == How::Does {
            let key = (command.table(), command.way(), command.line());
            match command.opcode() {
                table::CLEAR => _ = self.lines.remove(&key),
                _ => _ = self.lines.insert(key, *command),
            }
        }
        match (fails, self.how) {
            (false, _) => Ok(()),
            (true, How::Refuses) => Err(Error::Admin { what: "set flow", status: AdminStatus::BadParameter }),
            (true, _) => Err(Error::AdminTimeout("set flow")),
        }
    }
}
