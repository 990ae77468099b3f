//! Whether the checksums of a received frame are good: what the device says to a driver that takes its word (spec 5.1.6.4).
use crate::net::sums;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// The frame is TCP or UDP over IPv4 or IPv6, whole, and its checksum is there and right. IPv4's own is, too. Fragments, IPv6 with headers in between and UDP without a checksum are not: the driver looks
/// for itself.
pub fn is_verified(frame: &[u8]) -> bool {
    check(frame).unwrap_or(false)
}

fn check(frame: &[u8]) -> Option<bool> {
    let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let mut ip = 14;
    while ip <= 18 && matches!(word(ip - 2)?, 0x8100 | 0x88a8) {
        ip += 4;
    }
    let (protocol, l4, end, addresses) = match (word(ip - 2)?, frame.get(ip)? >> 4) {
        (0x0800, 4) => {
            let l4 = ip + 4 * usize::from(frame[ip] & 15);
            let header = frame.get(ip..l4).filter(|header| header.len() >= 20)?;
            if sums::finish(sums::sum(0, header)) != 0 || word(ip + 6)? & 0x3fff != 0 {
                return Some(false);
            }
            (header[9], l4, ip + usize::from(word(ip + 2)?), &header[12..20])
        }
        (0x86dd, 6) => (*frame.get(ip + 6)?, ip + 40, ip + 40 + usize::from(word(ip + 4)?), frame.get(ip + 8..ip + 40)?),
        _ => return None,
    };
    // What lies behind the packet is padding.
    let body = frame.get(l4..end)?;
    let place = match protocol {
        TCP => 16,
        UDP => 6,
        _ => return None,
    };
    let there = body.get(place..place + 2)?;
    if protocol == UDP && (there == [0, 0] || word(l4 + 4)? as usize != body.len()) {
        return Some(false);
    }
    let (src, dst) = addresses.split_at(addresses.len() / 2);
    Some(sums::finish(sums::sum(sums::pseudo(src, dst, protocol, body.len() as u32), body)) == 0)
}
