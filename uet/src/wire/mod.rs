//! Frames: from bytes to headers and back. What does not fit has a name of its own ([`Bad`]), and so has each reserved field that is not zero ([`Parsed::reserved`]).
mod build;
mod carriage;
mod crc;
mod headers;
mod parse;
#[cfg(test)]
mod tests;

pub use build::{build, Message};
pub use carriage::{checksum, Addresses, Carriage, CONTROL_DSCP, MAC_BYTES};
pub use crc::crc32c;
pub use headers::{Operands, Pds, Ses};
pub use parse::{addresses, agreed, layout, parse, Bad, Parsed, Trim};

/// What operators choose, and what sources of the specification disagree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// UDP destination port.
    pub port: u16,
    /// IP protocol of native carriage; none: it is not recognised.
    pub native: Option<u8>,
    /// A CRC-32C follows the payload.
    pub crc: bool,
    /// Its bytes go out and come most significant first; the reference provider's way is least significant first.
    pub crc_big: bool,
    /// DSCP that a switch puts into a frame which it has trimmed.
    pub dscp_trimmed: u8,
    /// The same, at the last hop.
    pub dscp_trimmed_last: u8,
}

impl Default for Registers {
    fn default() -> Self {
        Self { port: ferric_abi::uet::UET_PORT, native: Some(ferric_abi::uet::UET_PROTOCOL), crc: false, crc_big: false, dscp_trimmed: 10, dscp_trimmed_last: 12 }
    }
}
