//! Golden model of the RoCEv2 invariant CRC (IBTA volume 1, annex A17.3.3).

/// Ethernet CRC-32 polynomial, reflected.
pub const POLY: u32 = 0xEDB8_8320;

/// What the complemented CRC of a frame is when the frame's own correct ICRC was part of the bytes.
pub const RESIDUE: u32 = 0x2144_DF1C;

/// Ethernet header bytes without a tag, with one tag.
const ETH: [usize; 2] = [14, 18];

/// Bytes up to the end of the BTH at most: behind a tag and an IPv6 header.
const MASKED: usize = 18 + 40 + 8 + 12;

/// The shift register after `data`, starting from `state`; neither initial nor final inversion.
pub fn crc(state: u32, data: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(!state);
    hasher.update(data);
    !hasher.finalize()
}

/// The state from which `bytes` zero bytes lead to `state`.
pub fn undo(state: u32, bytes: usize) -> u32 {
    (0..8 * bytes).fold(state, |c, _| if c >> 31 != 0 { (c ^ POLY) << 1 | 1 } else { c << 1 })
}

/// Which bits of byte `at` of a frame (0 is the first byte of the Ethernet header) are forced to zero and to one before
/// they enter the CRC. Zeros and the last eight bytes of the Ethernet header as ones: with [`start`] as first
/// state, that is the standard's "eight bytes of ones, then the IP header on".
pub fn masks(at: usize, vlan: bool, ipv6: bool) -> (u8, u8) {
    let eth = ETH[usize::from(vlan)];
    if at < eth {
        return if at < eth - 8 { (0xff, 0) } else { (0, 0xff) };
    }
    let l3 = at - eth;
    let ones = if ipv6 {
        match l3 {
            0 => 0x0f,     // traffic class, upper half
            1..=3 => 0xff, // traffic class, flow label
            7 => 0xff,     // hop limit
            46 | 47 => 0xff,
            52 => 0xff,
            _ => 0,
        }
    } else {
        match l3 {
            1 => 0xff,       // type of service
            8 => 0xff,       // time to live
            10 | 11 => 0xff, // header checksum
            26 | 27 => 0xff, // UDP checksum
            32 => 0xff,      // BTH: FECN, BECN, reserved
            _ => 0,
        }
    };
    (0, ones)
}

/// First state of the CRC: all ones once the leading zero bytes of [`masks`] have gone through.
pub fn start(vlan: bool) -> u32 {
    undo(!0, ETH[usize::from(vlan)] - 8)
}

/// First byte behind the IP packet of a frame given from its Ethernet header on, and `(vlan, ipv6)`; `None` if the
/// frame is not IPv4 (without options) or IPv6, or ends before the IP length says.
pub fn packet_end(frame: &[u8]) -> Option<(usize, bool, bool)> {
    let word = |at: usize| Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?));
    let vlan = word(12)? == 0x8100;
    let l3 = ETH[usize::from(vlan)];
    let (end, ipv6) = match (word(l3 - 2)?, frame.get(l3)?) {
        (0x0800, 0x45) => (l3 + usize::from(word(l3 + 2)?), false),
        (0x86dd, version) if version >> 4 == 6 => (l3 + 40 + usize::from(word(l3 + 4)?), true),
        _ => return None,
    };
    (end <= frame.len()).then_some((end, vlan, ipv6))
}

/// The ICRC of a RoCEv2 frame whose last four bytes (as the IP length has it) are the ICRC's place. It is sent least
/// significant byte first. `None`: no room for the headers, or not IP.
pub fn icrc(frame: &[u8]) -> Option<u32> {
    let (end, vlan, ipv6) = packet_end(frame)?;
    let headers = ETH[usize::from(vlan)] + if ipv6 { 40 } else { 20 } + 8 + 12;
    if end < headers + 4 {
        return None;
    }
    // Behind the BTH nothing is masked.
    let mut front = [0; MASKED];
    let masked = headers.min(end - 4);
    for (at, byte) in frame[..masked].iter().enumerate() {
        let (zeros, ones) = masks(at, vlan, ipv6);
        front[at] = (byte | ones) & !zeros;
    }
    let state = crc(crc(start(vlan), &front[..masked]), &frame[masked..end - 4]);
    Some(!state)
}

/// Writes the right ICRC into its place; `None` as for [`icrc`].
pub fn seal(frame: &mut [u8]) -> Option<()> {
    let crc = icrc(frame)?;
    let (end, ..) = packet_end(frame)?;
    frame[end - 4..end].copy_from_slice(&crc.to_le_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the polynomial says, bit by bit.
    fn by_bits(state: u32, data: &[u8]) -> u32 {
        data.iter().fold(state, |state, byte| (0..8).fold(state ^ u32::from(*byte), |c, _| if c & 1 != 0 { c >> 1 ^ POLY } else { c >> 1 }))
    }

    #[test]
    fn the_register_is_that_of_the_polynomial() {
        let data: Vec<u8> = (0..300u32).map(|i| ((i * 37) >> 2) as u8).collect();
        for state in [0, !0, 1, 0x8000_0000, 0xdead_beef] {
            for len in [0, 1, 3, 16, 64, 255, 300] {
                assert_eq!(crc(state, &data[..len]), by_bits(state, &data[..len]));
            }
        }
    }

    #[test]
    fn what_has_been_undone_comes_back() {
        assert_eq!(by_bits(undo(0x1234_5678, 9), &[0; 9]), 0x1234_5678);
        assert_eq!(by_bits(start(true), &[0; 10]), !0);
        assert_eq!(by_bits(start(false), &[0; 6]), !0);
    }
}
