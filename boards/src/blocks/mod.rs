//! Modules that tops instantiate: the card core, the gateware around it, vendor blocks.

pub mod gateware;
pub mod lattice;
pub mod shell;
pub mod xilinx;

use crate::netlist::{ports, Allowed, Module, Origin, Param};

/// A parameter out of a list.
pub(crate) fn one_of(name: &'static str, list: &[&'static str]) -> Param {
    Param { name, allowed: Allowed::OneOf(list.to_vec()) }
}

/// A parameter that is a number.
pub(crate) fn number(name: &'static str, low: f64, high: f64) -> Param {
    Param { name, allowed: Allowed::Number(low, high) }
}

/// A module from its table of ports.
pub(crate) fn module(name: &str, origin: Origin, doc: &'static str, params: Vec<Param>, table: &str) -> Module {
    Module { name: name.into(), origin, doc, params, ports: ports(table) }
}
