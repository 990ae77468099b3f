//! Everything that two sides of Ferric must agree on, declared once: the BAR and its registers, work requests,
//! completions, events, admin commands, context lines, frame metadata, wire headers, the flow switch's records, VirtIO, Ultra Ethernet and the memory target's set-up protocol. Software gets typed codecs from it, the
//! gateware gets its structs and decoders, `docs/reference.md` is generated from it.
#![no_std]
#![warn(missing_docs)]

#[doc(hidden)]
pub use paste::paste;

pub mod codes;
pub mod context;
pub mod csr;
pub mod host;
pub mod layout;
pub mod meta;
pub mod pci;
pub mod special;
pub mod switch;
pub mod target;
pub mod uet;
pub mod virtio;
pub mod wire;
