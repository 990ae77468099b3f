//! See `docs/microarchitecture.md`.

pub mod cells;
pub mod dispatch;
pub mod header;
pub mod icrc;
pub mod l4;
pub mod rx;
pub mod share;
pub mod station;
pub mod tx;
pub mod unwanted;
pub mod within;
