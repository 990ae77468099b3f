//! Packet delivery of Ultra Ethernet: windows, acknowledges, loss, paths. See README.md.

pub mod ack;
pub mod head;
pub mod loss;
pub mod pdc;
pub mod records;
pub mod source;
pub mod spray;
#[cfg(test)]
mod testing;
pub mod types;
pub mod window;
