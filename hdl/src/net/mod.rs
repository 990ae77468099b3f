//! See `docs/microarchitecture.md`.

pub mod icrc;
