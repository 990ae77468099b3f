//! See `docs/microarchitecture.md`.
pub mod bus;
