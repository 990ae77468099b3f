//! What is done with frames off the wire, and the books of the sets of rules that take each other's place.

use crate::error::{Error, Result};
use std::collections::BTreeSet;

/// Generations.
pub(super) const GENERATIONS: u8 = 4;
/// Port classes, and packet classes.
pub(super) const CLASSES: u8 = 4;

pub(super) fn number(what: &'static str, value: u8, values: u8) -> Result<()> {
    if value < values {
        return Ok(());
    }
    Err(Error::Invalid(what))
}

pub(super) fn generation(value: u8) -> Result<()> {
    number("generations are 0 to 3", value, GENERATIONS)
}

/// What is done with received frames, and whether the tables are asked about others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowPort {
    /// A frame that no table knows is dropped; else software gets it.
    pub drop_miss: bool,
    /// Port class, 0 to 3, for the choice of a mask.
    pub class: u8,
    /// Lines of this generation count, 0 to 3.
    pub generation: u8,
    /// A frame that no entry and no rule knows goes to the station of its bridge domain that has its destination MAC address, or to the domain's flood group.
    pub bridge: bool,
    /// The tables are asked about what functions send by the wire, too, as frames of port 8 and the function's number and of the bridge domain of its network: a frame leaves only if its action is the wire (an uplink or a port of
    /// number 1) and nothing else, and is dropped otherwise ([`Context::egress_counts`](crate::Context::egress_counts)). That is about everything that leaves, so what a function needs has to be let out: ARP, its RoCE packets
    /// and acknowledges, and what the card answers for it. `false`: whatever a function may send leaves.
    pub egress: bool,
}

/// Which set decides, and whose lines of the action table are whose.
#[derive(Debug, Default)]
pub(super) struct Sets {
    pub(super) live: Option<FlowPort>,
    /// The card may have changed over and said nothing.
    pub(super) unsure: bool,
    pub(super) of: [BTreeSet<u16>; GENERATIONS as usize],
    /// Lines that the program has written itself.
    own: BTreeSet<u16>,
}

impl Sets {
    /// The program has written a line itself, or cleared it, be it one of a set.
    pub(super) fn told(&mut self, line: u16, there: bool) {
        if there {
            self.own.insert(line);
        } else {
            self.own.remove(&line);
            self.of.iter_mut().for_each(|of| _ = of.remove(&line));
        }
    }

    /// A set has the line, or the program has written it.
    pub(super) fn has(&self, line: u16) -> bool {
        self.own.contains(&line) || self.of.iter().any(|of| of.contains(&line))
    }

    pub(super) fn free(&self, lines: u32) -> Vec<u16> {
        (0..lines as u16).filter(|line| !self.has(*line)).collect()
    }
}
