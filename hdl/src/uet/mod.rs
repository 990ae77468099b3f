//! Packet delivery of Ultra Ethernet: windows, acknowledges, loss, paths. See README.md.

pub mod ack;
mod call;
pub mod head;
pub mod kept;
pub mod loss;
pub mod messages;
pub mod pdc;
pub mod pds;
pub mod receive;
pub mod records;
pub mod sched;
pub mod source;
pub mod spray;
#[cfg(test)]
mod testing;
pub mod transmit;
pub mod types;
pub mod window;
