//! The acquire/release port of the context store: see [`CtxClient`] and `context/store/README.md`.
pub use crate::bus::{CtxClient, CtxServer};
