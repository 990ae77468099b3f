//! Internet checksums (RFC 1071) and their change in place (RFC 1624).

/// Ones' complement sum, not inverted, of `bytes` taken as big-endian 16-bit words, added to `start`; an odd last byte counts as the high half of a word.
pub fn sum(start: u32, bytes: &[u8]) -> u32 {
    let total: u64 = bytes.chunks(2).map(|w| u64::from(w[0]) << 8 | u64::from(*w.get(1).unwrap_or(&0))).sum::<u64>() + u64::from(start);
    let folded = (total & 0xffff) + (total >> 16 & 0xffff) + (total >> 32);
    fold((folded & 0xffff_ffff) as u32)
}

/// `sum` in 16 bits, the carries added in.
pub fn fold(sum: u32) -> u32 {
    let once = (sum & 0xffff) + (sum >> 16);
    (once & 0xffff) + (once >> 16)
}

/// The checksum of a header whose words are summed in `sum`: inverted.
pub fn finish(sum: u32) -> u16 {
    !(fold(sum) as u16)
}

/// The checksum `old` after one 16-bit word has changed from `from` to `to` (RFC 1624, equation 3).
pub fn update(old: u16, from: u16, to: u16) -> u16 {
    finish(u32::from(!old) + u32::from(!from) + u32::from(to))
}

/// Sum of the pseudo header of UDP and TCP (RFC 768, RFC 8200 section 8.1): addresses, protocol and length in bytes.
pub fn pseudo(src: &[u8], dst: &[u8], protocol: u8, length: u32) -> u32 {
    let rest = [length.to_be_bytes(), [0, 0, 0, protocol]].concat();
    sum(sum(sum(0, src), dst), &rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The example of RFC 1071, section 3.
    #[test]
    fn rfc_1071() {
        assert_eq!(sum(0, &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    }

    proptest! {
        /// A changed header's checksum, updated, is the one computed anew. All zero words have two forms of zero, which RFC 1624 tells apart.
        #[test]
        fn updated_is_recomputed(mut words in prop::collection::vec(1u16.., 10), at in 0usize..10, to in 1u16..) {
            let bytes = |w: &[u16]| w.iter().flat_map(|w| w.to_be_bytes()).collect::<Vec<u8>>();
            let old = finish(sum(0, &bytes(&words)));
            let from = std::mem::replace(&mut words[at], to);
            prop_assert_eq!(update(old, from, to), finish(sum(0, &bytes(&words))));
        }
    }
}
