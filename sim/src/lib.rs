//! The simulated machine around the card. The card is the real gateware, compiled by Verilator, or its functional twin (`ferric-twin`); this crate plays all that surrounds it.
//!
//! | layer | modules | what it plays |
//! |---|---|---|
//! | host | [`iommu`], [`axi`], [`peer`] | host memory behind an IOMMU, and the buses as the PCIe hard IP drives them: latency, responses out of order, stalls |
//! | card | [`card`], [`gateware`], [`board`], [`trace`] | the Verilated core with its MAC, or the twin; a whole board from its pins on; what passes at the card's boundary, with cycle stamps |
//! | functions for guests | [`virtio`] | a card's virtio network functions, beside its native ones |
//! | wire | [`fabric`], [`capture`] | links that lose, repeat, delay and damage frames; pcapng files |
//! | time | [`world`] | all cards step together, one clock cycle at a time |
//! | driver | [`device`] | the driver's `Device` over one function of a simulated card |
//! | other processes | [`pci`], [`wire`] | cards served over vfio-user to virtual machines and programs, their wires on UDP, taps or interfaces |
//!
//! # Time and seeds
//!
//! In one process everything is a function of the seed: time moves only when a driver waits ([`World::step`]), so a failure repeats exactly.
//! Time in which nothing happens is skipped. Cards served to other processes follow the wall clock instead and are not deterministic.
//!
//! # A first simulation
//!
//! ```no_run
//! use ferric_driver::{Config, Context};
//! use ferric_sim::{SimDevice, World, WorldConfig};
//! use std::sync::{Arc, Mutex};
//!
//! // Two cards, each the other's peer on the wire. The first build takes minutes, later ones come from a cache.
//! let world = Arc::new(Mutex::new(World::new(&WorldConfig::default())?));
//! let driver = Context::open(SimDevice::new(&world, 0, 0), Config::default())?;
//! println!("{:?}", driver.capabilities());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Without the feature `cards` there is no gateware: cards are twins ([`Body::Twin`]), and nothing here needs Verilator.
#![warn(missing_docs)]

#[cfg(feature = "cards")]
pub mod axi;
#[cfg(feature = "cards")]
pub mod board;
pub mod capture;
pub mod card;
pub mod device;
pub mod error;
pub mod fabric;
#[cfg(feature = "cards")]
pub mod gateware;
pub mod iommu;
#[cfg(feature = "cards")]
mod library;
mod pace;
mod partner;
pub mod pci;
pub mod peer;
mod service;
pub mod timing;
pub mod trace;
mod twin;
pub mod virtio;
pub mod watch;
pub mod wire;
pub mod world;

pub use card::{Body, Card, CardConfig};
pub use device::SimDevice;
pub use error::Error;
pub use fabric::{Faults, LinkConfig};
pub use world::{World, WorldConfig};

/// The random source of the whole simulation.
pub type Rng = rand_chacha::ChaCha8Rng;
