//! The simulated machine around the card: host memory behind an IOMMU, the AXI buses as the PCIe hard IP would drive them,
//! MAC, fabric with faults, time, captures - and the [`device::SimDevice`] that gives all of it to the driver.
//!
//! Everything is a function of the seed: time moves only when a driver waits ([`world::World::step`]).
#![warn(missing_docs)]

pub mod axi;
pub mod card;
pub mod capture;
pub mod device;
pub mod error;
pub mod fabric;
pub mod iommu;
pub mod pci;
pub mod trace;
pub mod wire;
pub mod world;

pub use card::{Card, CardConfig};
pub use device::SimDevice;
pub use error::Error;
pub use fabric::{Faults, LinkConfig};
pub use world::{World, WorldConfig};

/// The random source of the whole simulation.
pub type Rng = rand_chacha::ChaCha8Rng;
