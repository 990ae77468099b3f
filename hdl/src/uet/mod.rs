//! Packet delivery of Ultra Ethernet: windows, acknowledges, loss, paths. See README.md.

pub mod ack;
mod call;
mod cut;
pub mod dress;
pub mod ending;
pub mod head;
pub mod intake;
pub mod kept;
pub mod loss;
pub mod messages;
pub mod pdc;
pub mod pds;
pub mod peers;
pub mod place;
pub mod post;
pub mod receive;
pub mod records;
pub mod sched;
pub mod settings;
pub mod source;
pub mod spray;
#[cfg(test)]
mod testing;
pub mod transmit;
pub mod types;
pub mod waiting;
pub mod window;
