//! See `docs/microarchitecture.md`.

pub mod timer;
pub mod tracker;
pub mod header;
