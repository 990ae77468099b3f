//! See `docs/microarchitecture.md`.
pub mod bus;
pub mod store;
