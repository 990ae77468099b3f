//! The simulated machine around the card: host memory behind an IOMMU, the AXI buses as the PCIe hard IP would drive them,
//! MAC, fabric with faults, time, captures - and the `device::SimDevice` that gives all of it to the driver.
//!
//! Everything is a function of the seed: time moves only when a driver waits (`world::World::step`).
//!
//! Without the feature `cards` there is no gateware, hence no card: what remains is what faces the clients of a served card.
#![warn(missing_docs)]

#[cfg(feature = "cards")]
pub mod axi;
#[cfg(feature = "cards")]
pub mod board;
#[cfg(feature = "cards")]
pub mod card;
pub mod capture;
#[cfg(feature = "cards")]
pub mod device;
pub mod error;
pub mod fabric;
pub mod iommu;
pub mod pci;
pub mod peer;
mod service;
pub mod trace;
pub mod wire;
#[cfg(feature = "cards")]
pub mod world;

#[cfg(feature = "cards")]
pub use card::{Card, CardConfig};
#[cfg(feature = "cards")]
pub use device::SimDevice;
pub use error::Error;
pub use fabric::{Faults, LinkConfig};
#[cfg(feature = "cards")]
pub use world::{World, WorldConfig};

/// The random source of the whole simulation.
pub type Rng = rand_chacha::ChaCha8Rng;
