//! See `docs/microarchitecture.md`.

pub mod cells;
pub mod icrc;
