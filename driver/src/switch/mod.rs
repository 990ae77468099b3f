//! The flow switch, as far as the driver has it: the tables that decide about received frames, what functions may send, and where entries and rules stand in them.

mod bound;
mod commands;
#[cfg(test)]
mod doubles;
mod dump;
mod exception;
pub mod flows;
mod ledger;
mod macs;
pub mod place;
mod port;
pub mod rules;
pub mod senders;
mod sets;

pub use exception::exception;
pub use flows::{FlowTables, Packets, Station};
pub use port::FlowPort;
pub use senders::Sender;
pub use sets::{FlowSet, Standing};
