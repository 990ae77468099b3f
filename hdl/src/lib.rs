//! Ferric's gateware in RustHDL. See `docs/microarchitecture.md` for the blocks and how they fit together.
#![allow(clippy::new_without_default)]

pub mod bus;
pub mod msg;
pub mod prim;
pub mod records;
pub mod stream;
