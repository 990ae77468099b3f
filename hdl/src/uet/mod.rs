//! Packet delivery of Ultra Ethernet: PDCs, windows, acknowledges, loss. See README.md.

pub mod records;
pub mod spray;
#[cfg(test)]
mod testing;
pub mod types;
pub mod window;
