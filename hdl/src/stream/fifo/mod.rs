//! Synchronous FIFOs: the first word falls through to a registered output. See README.md.

mod axis;
mod msg;

pub use axis::AxisFifo;
pub use msg::MsgFifo;
