//! Headers of layers 2 to 4, for whatever transport stands behind them. See README.md.
pub mod layers;
pub use ferric_model::net::layers as model;
pub mod sum;
#[cfg(test)]
mod tests;
pub mod udp;

use ferric_abi::wire::{Eth, Ipv4, Ipv6, Udp};

/// Where the IP header of a frame without a tag is.
pub const NETWORK: usize = Eth::BYTES;
/// Where what follows an IPv4 header is, in a frame without a tag: transports lay themselves out from here on.
pub const TRANSPORT: usize = NETWORK + Ipv4::BYTES;
/// Where what follows a UDP header is.
pub const DATAGRAM: usize = TRANSPORT + Udp::BYTES;
/// The same behind IPv6.
const TRANSPORT6: usize = NETWORK + Ipv6::BYTES;
