//! Stream plumbing over the interfaces in `crate::bus`: register slices, FIFOs, arbiters, a fork and width converters.
//! Latencies and limits: README.md.

pub mod arb;
pub mod backlog;
pub mod bypass;
pub mod chaos;
pub mod fence;
pub mod fifo;
pub mod fork;
pub mod names;
pub mod slice;
#[cfg(test)]
pub(crate) mod tests;
pub mod wide;

pub use arb::{AxisArb, MsgArb};
pub use backlog::Backlog;
pub use bypass::Bypass;
pub use fence::Fence;
pub use fifo::{AxisFifo, MsgFifo};
pub use fork::MsgFork;
pub use names::Names;
pub use slice::{AxisSlice, MsgSkid, MsgSlice};
pub use wide::{BeatsToWide, WideToBeats};
