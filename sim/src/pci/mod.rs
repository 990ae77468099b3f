//! The card as a PCI function for other processes: served over vfio-user, to a virtual machine or to a driver directly.
//!
//! One thread runs the simulation ([`engine`]), or, of twins, whoever asks something of it ([`hands`]); one per function accepts clients and one serves
//! the client ([`session`]); one receives frames. A client that dies, lies or floods costs its own connection and nothing else. See README.md.
pub mod bar;
pub mod command;
pub mod config;
pub mod dma;
pub mod door;
pub mod engine;
pub mod function;
pub mod hands;
mod server;
pub mod session;
pub mod sriov;
pub mod virtio;

pub use server::{listen, Endpoint, ServeConfig, Server};

use std::time::Duration;

/// How long the reset after a client's end may keep the next client waiting.
/// A reset is some ten thousand cycles: a second, or half a minute on a machine that has no time for us.
pub const RESET_WAIT: Duration = Duration::from_secs(40);
