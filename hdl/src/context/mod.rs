//! See `docs/microarchitecture.md`.
pub mod bus;
pub mod pair;
pub mod store;
