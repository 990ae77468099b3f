//! See `docs/microarchitecture.md`.
