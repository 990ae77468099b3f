//! Ferric's userspace driver: a verbs-shaped API over any [`device::Device`]. Nothing here knows whether the card is
//! real or simulated.
//!
//! ```text
//! Context -> Pd -> MemoryRegion, or Region of another device's memory
//!         -> CompletionQueue
//!         -> SharedReceiveQueue: post_srq_recv, modify_srq
//!         -> QueuePair: post_send, post_read, post_atomic, post_send_ud, post_recv          CompletionQueue: poll, arm, wait
//! ```
#![warn(missing_docs)]

pub mod admin;
pub mod cm;
pub mod context;
pub mod cq;
pub mod device;
pub mod dma;
pub mod eq;
pub mod error;
pub mod eventfd;
pub mod fast;
pub mod iova;
pub mod mapping;
pub mod mr;
pub mod mw;
pub mod pages;
mod post;
pub mod qp;
pub mod registration;
mod ring;
pub mod srq;
pub mod target;
pub mod types;
pub mod ud;
pub mod vfio;
pub mod vfio_user;
mod visit;
pub mod window;

pub use context::{Config, Context, Pd};
pub use cq::{Completion, CompletionQueue};
pub use device::Device;
pub use error::Error;
pub use fast::FastRegion;
pub use mr::{Access, MemoryRegion, Region};
pub use mw::{MemoryWindow, WindowType};
pub use qp::{AtomicOp, AtomicRequest, QueuePair, QpConfig, ReadRequest, RecvRequest, SendRequest};
pub use srq::{SharedReceiveQueue, SrqConfig, SrqStatus};
pub use types::*;
pub use ud::{AddressHandle, DatagramRequest, Grh, Source};
