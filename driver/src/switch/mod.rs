//! The flow switch, as far as the driver has it: the tables that decide about received frames, and where entries and rules stand in them.

pub mod flows;
pub mod place;
pub mod rules;

pub use flows::{FlowPort, FlowTables, Packets, Station};
