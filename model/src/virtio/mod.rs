//! A virtio network function: the golden model of its queues, registers and headers, byte by byte over a memory trait. Written from VIRTIO 1.3, whose sections are named as `spec`, and
//! from the design page VIRTIO.md. What of it is gateware: docs/virtio.md. See the README beside this file.
pub mod coalesce;
pub mod common;
pub mod control;
pub mod counters;
pub mod device;
pub mod engine;
pub mod filter;
pub mod flow;
pub mod lend;
pub mod memory;
pub mod offload;
pub mod queue;
pub mod receive;
pub mod ring;
pub mod rss;
pub mod segment;
pub mod steer;
#[cfg(test)]
mod tests;
pub mod transmit;
pub mod turn;
pub mod used;
pub mod verdict;
pub mod walk;

pub use counters::Counters;
pub use device::{Device, Offer, Step};
pub use lend::Lent;
pub use memory::{Memory, Unmapped};
