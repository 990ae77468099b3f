//! The RoCEv2 transport. See `docs/microarchitecture.md`.

pub mod header;
pub mod resp;
pub mod timer;
pub mod tracker;
