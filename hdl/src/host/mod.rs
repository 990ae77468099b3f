//! See `docs/microarchitecture.md`.
pub mod ctl;
