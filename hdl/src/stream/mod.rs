//! Stream plumbing: register slices, FIFOs, arbiters and width converters over the interfaces in `crate::bus`.

pub mod chaos;
pub mod fifo;
pub mod slice;
#[cfg(test)]
mod smoke;

pub use fifo::{AxisFifo, MsgFifo};
pub use slice::{AxisSlice, MsgSlice};
