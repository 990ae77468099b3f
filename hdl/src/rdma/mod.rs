//! See `docs/microarchitecture.md`.
pub mod mr;
