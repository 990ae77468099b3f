//! Round-robin arbiters from N streams to one: [`MsgArb`] per record, [`AxisArb`] per packet.
//!
//! The grant is a register: an input's ready is (granted) & (output slice has room), both registers, so no path crosses
//! the block. The next grant is chosen in the cycle the present one is used up, from the requests other inputs show in
//! that cycle; with nobody else asking it stays where it is ("parked"). Hence no bubble between transfers, neither of
//! one busy input nor of several; an idle arbiter needs one cycle to turn to another input.
//! A granted input that shows a transfer keeps the grant until it is taken: stalls cannot starve anyone.

mod axis;
mod msg;

pub use axis::AxisArb;
pub use msg::MsgArb;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[("s[*]", &["m"])];
