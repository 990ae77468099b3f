//! What both DMA directions share: cutting a command into AXI bursts, and waiting until all that is in flight has come
//! back. See README.md.

mod burst;
mod drain;
#[cfg(test)]
pub(crate) mod host_model;

pub use burst::{border, Burst, BurstCmd, BurstCut, BurstSend, Cut};
pub use drain::{FrontMark, Quiesce};
