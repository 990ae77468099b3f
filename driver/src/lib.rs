//! Ferric's userspace driver: an interface in the shape of RDMA verbs over any [`device::Device`]. Nothing here knows whether the card is
//! real or simulated.
//!
//! # Layers, from below
//!
//! | layer | modules | what it does |
//! |---|---|---|
//! | device | [`device`], [`vfio`], [`vfio_user`] (`ferric_sim::SimDevice` is the third) | registers, doorbells, DMA mappings and interrupts of one function of a card |
//! | memory for DMA | [`dma`], [`mapping`], [`pages`], [`iova`] | buffers that the card can reach, and the pages they consist of |
//! | control | [`admin`], [`context`], [`addresses`] | the admin queue: every object on the card is made, changed and destroyed by a command; its IP addresses and its neighbours |
//! | objects | [`mr`], [`fast`], [`mw`], [`cq`], [`eq`], [`qp`], [`srq`], [`ud`]; [`batch`] for several queue pairs in one go | regions, windows and queues, each a value whose `Drop` destroys it on the card |
//! | above | [`cm`], [`registration`] | connection management, ways to register memory |
//!
//! ```text
//! Context -> Pd -> MemoryRegion, or Region of another device's memory
//!         -> EventQueue -> CompletionQueue: poll, arm, wait
//!         -> SharedReceiveQueue: post_srq_recv, modify_srq
//!         -> QueuePair: post_send, post_read, post_atomic, post_send_ud, post_recv
//! ```
//!
//! # The data path
//!
//! A work request is written into a ring in host memory, and a posted write (a doorbell) tells the card. The card writes a completion into
//! another ring, which [`CompletionQueue::poll`] reads. No register is read, no lock is taken and nothing is allocated on this way. The
//! formats of the rings stand in the crate `ferric_abi`; docs/life-of-a-packet.md follows one request through driver and card.
//!
//! # Errors
//!
//! A call that the driver or the card refuses returns an [`Error`]. A request that was posted and fails later completes with a
//! [`CqeStatus`] other than success, its queue pair enters the error state, and what was posted behind it is flushed.
//!
//! # Where to begin
//!
//! `cargo run --example write` moves the first bytes between two simulated cards; its text is driver/examples/write.rs.
#![warn(missing_docs)]

pub mod addresses;
pub mod admin;
mod alloc;
mod barrier;
pub mod batch;
mod book;
pub mod cm;
pub mod context;
pub mod cq;
pub mod device;
pub mod dma;
pub mod eq;
pub mod error;
pub mod eventfd;
pub mod fast;
pub mod forked;
mod function;
mod ids;
pub mod iova;
mod lives;
pub mod mapping;
pub mod mr;
pub mod mw;
mod network;
mod own;
pub mod pages;
pub mod pause;
mod post;
pub mod qp;
pub mod registration;
mod request;
mod rereg;
mod ring;
pub mod srq;
pub mod stations;
pub mod switch;
pub mod target;
pub mod tunnel;
pub mod types;
pub mod ud;
pub mod uet;
pub mod vfio;
pub mod vfio_user;
pub mod virtio;
mod visit;
pub mod window;

pub use batch::{Batch, Posted, Start};
pub use context::{Config, Context, Pd};
pub use cq::{Completion, CompletionQueue};
pub use device::Device;
pub use error::Error;
pub use fast::FastRegion;
pub use mr::{Access, MemoryRegion, Region};
pub use mw::{MemoryWindow, WindowType};
pub use network::{Address, Search};
pub use pause::{PauseConfig, Pausing};
pub use qp::{AtomicOp, AtomicRequest, AtomicWriteRequest, FlushRequest, Flushed, QpConfig, QueuePair, ReadRequest, RecvRequest, SendRequest};
pub use srq::{Posting, SharedReceiveQueue, SrqConfig, SrqStatus};
pub use tunnel::TunnelConfig;
pub use types::*;
pub use ud::{AddressHandle, DatagramRequest, Grh, Source};
pub use uet::{UetEnd, UetEnds, UetWrite};
pub use virtio::VqPlace;
