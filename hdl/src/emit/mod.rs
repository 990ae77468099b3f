//! From a RustHDL block to the text of one Verilog file.

mod constants;
pub mod same;
mod select;
pub mod split;

use crate::prim::modules::Modules;
use rust_hdl::prelude::*;
use std::fmt;

/// Why a block was not emitted.
#[derive(Debug)]
pub struct EmitError {
    /// The name the top was to have.
    pub name: String,
    /// One line per fault.
    pub faults: Vec<String>,
}

impl fmt::Display for EmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not well formed:\n  {}", self.name, self.faults.join("\n  "))
    }
}

impl std::error::Error for EmitError {}

/// Emits `block` as Verilog with the top module called `name`.
///
/// The block comes straight from its constructor: its ports need no `connect()` or `link_connect_dest()`,
/// because an input of the top itself counts as driven. Everything inside is checked: every other signal has
/// a driver, no local is read before it is written, no kernel writes an input. Drivers, latches and widths
/// are the business of [`crate::lint`], which sees the text.
pub fn emit<B: Block>(name: &str, mut block: B) -> Result<String, EmitError> {
    block.connect_all();
    let mut open = OpenSignals::default();
    block.accept(name, &mut open);
    let mut faults = open.faults;
    // Its own connection check prints as it fails, hence only after ours has passed.
    if faults.is_empty() {
        if let Err(error) = check_all(&block) {
            faults.push(format!("{error:?}"));
        }
    }
    if !faults.is_empty() {
        return Err(EmitError { name: name.into(), faults });
    }
    let mut modules = Modules::default();
    block.accept(name, &mut modules);
    let text = modules.text().map_err(|faults| EmitError { name: name.into(), faults })?;
    Ok(constants::assign(&select::fold(&text)))
}

/// Finds signals without a driver, except the top's own inputs.
#[derive(Default)]
struct OpenSignals {
    scopes: Vec<String>,
    buses: Vec<String>,
    faults: Vec<String>,
}

impl Probe for OpenSignals {
    fn visit_start_scope(&mut self, name: &str, _: &dyn Block) {
        self.scopes.push(name.into());
    }
    fn visit_end_scope(&mut self, _: &str, _: &dyn Block) {
        self.scopes.pop();
    }
    fn visit_start_namespace(&mut self, name: &str, _: &dyn Block) {
        self.buses.push(name.into());
    }
    fn visit_end_namespace(&mut self, _: &str, _: &dyn Block) {
        self.buses.pop();
    }
    fn visit_atom(&mut self, name: &str, signal: &dyn Atom) {
        let input = matches!(signal.kind(), AtomKind::InputParameter | AtomKind::InOutParameter);
        if !(signal.connected() || (input && self.scopes.len() == 1)) {
            let kind = if input { "input" } else { "signal" };
            let path = [self.scopes.join("."), self.buses.join("$"), name.to_string()];
            let path = path.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join(".");
            self.faults.push(format!("{kind} {path} has no driver"));
        }
    }
}
