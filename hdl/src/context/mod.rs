//! See `docs/microarchitecture.md`.
pub mod bus;
pub mod line;
pub mod pair;
pub mod store;
