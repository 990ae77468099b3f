//! See `docs/microarchitecture.md`.
pub mod bus;
pub mod line;
pub mod pair;
pub mod read_store;
pub mod store;
pub mod word;
