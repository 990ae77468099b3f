//! What the transports share: memory keys, payload to send, placement, completion, atomic operations, timers. See `docs/microarchitecture.md`.

pub mod atomics;
pub mod complete;
pub mod gather;
pub mod mover;
pub mod mr;
pub mod place;
pub mod timer;
