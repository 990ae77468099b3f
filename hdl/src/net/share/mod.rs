//! Several clients for one egress and one cell buffer. See README.md.

pub mod cells;
pub mod slots;
mod turn;
