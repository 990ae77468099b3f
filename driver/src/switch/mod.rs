//! The flow switch, as far as the driver has it: the tables that decide about received frames, what functions may send, and where entries and rules stand in them.

mod bound;
mod dump;
pub mod flows;
mod ledger;
pub mod place;
pub mod rules;
pub mod senders;
mod sets;

pub use flows::{FlowPort, FlowTables, Packets, Station};
pub use senders::Sender;
pub use sets::FlowSet;
