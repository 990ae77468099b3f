//! How stations stand in the card's table of them (the gateware's `switch/fdb`): key and result, shared by driver and gateware.

/// Bits of a key: bridge domain, MAC address, zeros.
pub const KEY_BITS: usize = 64;
/// Bits of a result.
pub const RESULT_BITS: usize = 16;
/// Bits of the number of a port, a group, or a line of the encapsulation table.
pub const NUMBER_BITS: usize = 12;
/// Bits of a bridge domain.
pub const DOMAIN_BITS: usize = 12;
/// A mask with all bits of a bridge domain.
pub const ALL_DOMAIN_BITS: u16 = (1 << DOMAIN_BITS) - 1;

/// In a result, above the number: what it is the number of.
pub mod kind {
    /// A local port or an uplink.
    pub const PORT: u16 = 0;
    /// A line of the encapsulation table; the uplink stands above the kind.
    pub const REMOTE: u16 = 1;
    /// A group.
    pub const GROUP: u16 = 2;
    /// There is no such kind; the card refuses it.
    pub const NONE: u16 = 3;
}

/// Key of a station: bridge domain (12 bits), MAC address (48).
pub fn key(domain: u16, mac: u64) -> [u8; KEY_BITS / 8] {
    (u64::from(domain & ALL_DOMAIN_BITS) | (mac & 0xffff_ffff_ffff) << DOMAIN_BITS).to_le_bytes()
}

fn result(kind: u16, number: u16, uplink: u8) -> u16 {
    number & 0xfff | kind << NUMBER_BITS | u16::from(uplink & 3) << (NUMBER_BITS + 2)
}

/// The station is behind a local port, or an uplink.
pub fn port(number: u8) -> u16 {
    result(kind::PORT, number.into(), 0)
}

/// The station is behind a tunnel: a line of the encapsulation table, and the uplink that it leaves by.
pub fn remote(encap: u16, uplink: u8) -> u16 {
    result(kind::REMOTE, encap, uplink)
}

/// Frames for the station go to a group.
pub fn group(number: u16) -> u16 {
    result(kind::GROUP, number, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_kinds_and_uplinks_do_not_meet() {
        assert_eq!((port(0xff), remote(0xfff, 2), group(5)), (0xff, 0x9fff, 0x2005));
        assert_eq!(key(0xabc, 0x0200_0000_0001), [0xbc, 0x1a, 0, 0, 0, 0, 0x20, 0]);
    }
}
