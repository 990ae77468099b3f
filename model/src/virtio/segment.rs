//! Does to a sent frame what its header asks for (spec 5.1.6.2): fills in the checksum, or cuts it into segments with headers and checksums of their own. What comes here has been judged
//! ([`super::offload::judge`]): nothing is looked at that was not found to be there.
use super::offload::{Offload, Segments};
use super::transmit::Frame;
use crate::net::sums;
use ferric_abi::virtio::net::gso;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// TCP's flags in the second byte of their word.
mod flag {
    pub const FIN: u8 = 0x01;
    pub const PSH: u8 = 0x08;
    pub const CWR: u8 = 0x80;
}

impl Frame {
    /// The frames that leave: see [`segments`].
    pub fn segments(self) -> Vec<Vec<u8>> {
        segments(self.bytes, self.offload)
    }
}

/// The frames that leave of one from its Ethernet header on, in their order: itself with its checksum, or its segments.
pub fn segments(mut bytes: Vec<u8>, offload: Option<Offload>) -> Vec<Vec<u8>> {
    match offload {
        None => vec![bytes],
        Some(Offload { csum_start, csum_at, segments: None }) => {
            put_sum(&mut bytes, csum_start, csum_at, 0);
            vec![bytes]
        }
        Some(Offload { csum_start, csum_at, segments: Some(how) }) => cut(&bytes, csum_start, csum_at, how),
    }
}

/// Writes the checksum of all from `start` on and of what is in `sum`, to `at`. The place counts as it stands, so that a sum that its driver has put there goes in. Zero would mean to UDP that there
/// is none: it is written as all ones, which is the same number.
fn put_sum(bytes: &mut [u8], start: usize, at: usize, sum: u32) {
    let found = match sums::finish(sums::sum(sum, &bytes[start..])) {
        0 => 0xffff,
        other => other,
    };
    bytes[at..at + 2].copy_from_slice(&found.to_be_bytes());
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The segments of a frame. Lengths and sums are made of what each segment is, whatever the frame's headers say: those of the whole need not fit their fields.
fn cut(frame: &[u8], l4: usize, csum_at: usize, how: Segments) -> Vec<Vec<u8>> {
    let (headers, payload) = frame.split_at(how.headers);
    let udp = how.kind == gso::UDP_L4;
    let ip = network(headers);
    let pieces: Vec<&[u8]> = if payload.is_empty() { vec![payload] } else { payload.chunks(how.size.into()).collect() };
    let last = pieces.len() - 1;
    let mut segments = Vec::with_capacity(pieces.len());
    for (n, piece) in pieces.into_iter().enumerate() {
        let mut s = [headers, piece].concat();
        let length = s.len() - l4;
        if s[ip] >> 4 == 4 {
            let total = (s.len() - ip) as u16;
            put(&mut s, ip + 2, total);
            let id = word(headers, ip + 4).wrapping_add(n as u16);
            put(&mut s, ip + 4, id);
            put(&mut s, ip + 10, 0);
            let sum = sums::finish(sums::sum(0, &s[ip..l4]));
            put(&mut s, ip + 10, sum);
        } else {
            put(&mut s, ip + 4, length as u16);
        }
        if udp {
            put(&mut s, l4 + 4, length as u16);
        } else {
            let begin = u32::from_be_bytes([headers[l4 + 4], headers[l4 + 5], headers[l4 + 6], headers[l4 + 7]]);
            let sequence = begin.wrapping_add((n * usize::from(how.size)) as u32);
            s[l4 + 4..l4 + 8].copy_from_slice(&sequence.to_be_bytes());
            if n < last {
                s[l4 + 13] &= !(flag::FIN | flag::PSH);
            }
            if n > 0 {
                s[l4 + 13] &= !flag::CWR;
            }
        }
        put(&mut s, csum_at, 0);
        let addresses = if s[ip] >> 4 == 4 { ip + 12..ip + 20 } else { ip + 8..ip + 40 };
        let (src, dst) = s[addresses.clone()].split_at(addresses.len() / 2);
        let pseudo = sums::pseudo(src, dst, if udp { UDP } else { TCP }, length as u32);
        put_sum(&mut s, l4, csum_at, pseudo);
        segments.push(s);
    }
    segments
}

/// Byte of a judged frame where its IP header begins.
fn network(frame: &[u8]) -> usize {
    let mut ip = 14;
    while matches!(word(frame, ip - 2), 0x8100 | 0x88a8) {
        ip += 4;
    }
    ip
}
