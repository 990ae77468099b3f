//! The virtio engine: rings of guests in their memory, frames out of them and into them. See README.md.

pub mod bell;
pub mod engine;
pub mod hold;
pub mod intake;
pub mod note;
pub mod put;
pub mod queue;
pub mod rx;
pub mod steer;
pub mod stock;
pub mod tally;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod turns;
pub mod tx;
pub mod used;
pub mod walk;

/// Bytes of the header in front of each frame.
pub const HEADER: u64 = ferric_abi::virtio::NetHeader::BYTES as u64;
/// Bytes of an available and of a used ring in front of what is in them.
pub const RING_HEAD: u64 = 4;
/// Bytes of the longest frame that the port carries: 9,000 behind an Ethernet header and a tag.
pub const LONGEST: u64 = 9018;
