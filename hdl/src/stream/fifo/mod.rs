//! Synchronous FIFOs: the first word falls through to a registered output. See README.md.

mod axis;
mod msg;

pub use axis::AxisFifo;
pub use msg::MsgFifo;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[("s", &["m"])];
