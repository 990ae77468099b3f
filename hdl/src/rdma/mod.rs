//! What the transports share: memory keys, placement, completion. See `docs/microarchitecture.md`.

pub mod complete;
pub mod mover;
pub mod mr;
pub mod place;
