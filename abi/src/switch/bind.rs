//! Which IP addresses a port may send from, as they stand in a table of exact keys (the gateware's `switch/verify`): shared by driver and gateware.

/// Bits of a key: port, IP version, zeros, address.
pub const KEY_BITS: usize = 144;
/// Bits of a result, which nobody asks for: that the line is there says all.
pub const RESULT_BITS: usize = 1;
/// Where the address begins.
pub const ADDRESS_AT: usize = 16;

/// Key of an address of a port: an IPv4 address stands in the lower 32 bits.
pub fn key(port: u8, v6: bool, address: u128) -> [u8; KEY_BITS / 8] {
    let mut key = [0; KEY_BITS / 8];
    key[..2].copy_from_slice(&[port, v6.into()]);
    key[ADDRESS_AT / 8..].copy_from_slice(&address.to_le_bytes());
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_ports_do_not_meet() {
        let keys = [key(8, false, 5), key(8, true, 5), key(9, false, 5), key(8, false, 5 << 8)];
        assert_eq!(keys[1][..3], [8, 1, 5]);
        for (n, one) in keys.iter().enumerate() {
            assert!(keys[n + 1..].iter().all(|other| one != other));
        }
    }
}
