//! Frames from one function of the card to another do not leave it. See README.md.

mod arrive;
mod asking;
mod depart;
mod queue;
#[cfg(test)]
mod tests;

pub use arrive::{Arrive, STATS as ARRIVED, WAITS as ARRIVE_WAITS};
pub use asking::{Leaving, Told, Used};
pub use depart::{Depart, STATS as DEPARTED, WAITS as DEPART_WAITS};

/// The longest frame that leaves the egress, in bytes; both queues hold one.
const LONGEST: usize = crate::net::tx::OUT_BYTES;
