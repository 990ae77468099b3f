//! Clock-domain crossings of the gateware: a pass over the netlist that finds every one, and the list of those that are meant.
//!
//! yosys elaborates the generated Verilog ([`yosys`]), [`graph`] says what every register, memory port and output depends on,
//! [`rules`] finds the crossings among it and judges them, [`list`] compares with `constraints/crossings.txt`. What counts as a
//! synchroniser, and what this cannot see: `docs/boards.md`.

pub mod board;
pub mod graph;
pub mod list;
pub mod netlist;
pub mod rules;
#[cfg(test)]
mod tests;
pub mod yosys;

use ferric_hdl::board::tops::TOPS;
use std::collections::BTreeMap;
use std::path::Path;

/// What is known of a module from outside: which clock its ports belong to.
pub struct Domains<'a> {
    /// Prefix of a port's name and its clock; `-` for none. Other ports belong to `clock`.
    pub ports: &'a [(&'a str, &'a str)],
}

impl Domains<'_> {
    /// The clock that a port belongs to; `None`: to none.
    pub fn of(&self, port: &str) -> Option<&str> {
        match self.ports.iter().find(|(prefix, _)| port.starts_with(prefix)) {
            Some((_, "-")) => None,
            Some((_, clock)) => Some(clock),
            None => Some("clock"),
        }
    }
}

/// Crossings and faults of every module that board tops instantiate, and of the ECPIX-5's top around them.
pub fn gateware(work: &Path) -> Result<rules::Findings, String> {
    let mut text = String::new();
    for top in TOPS {
        text += &top.emit()?;
        text.push('\n');
    }
    text += &board::top()?;
    let names: Vec<&str> = TOPS.iter().map(|t| t.name).chain([board::NAME]).collect();
    let modules = netlist::read(&yosys::elaborate(&text, work)?, &names)?;
    let mut all = rules::Findings::default();
    let clocks: BTreeMap<&str, _> = TOPS.iter().map(|t| (t.name, t.clocks)).chain([(board::NAME, board::CLOCKS)]).collect();
    for (name, module) in &modules {
        all.add(rules::judge(name, module, &Domains { ports: clocks[name.as_str()] }));
    }
    Ok(all)
}
