//! What the header of a sent frame asks for (spec 5.1.6.2), against the frame and the features. Nothing in the header is believed that the frame does not confirm. What is done then is in
//! `segment.rs`.
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::net::gso;
use ferric_abi::virtio::{feature, NetHeader};

/// Headers of a frame that is to be segmented, in bytes, at most.
pub const MAX_HEADERS: usize = 244;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// What is to be done to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offload {
    /// Byte where the checksum begins.
    pub csum_start: usize,
    /// Byte of the frame where it stands.
    pub csum_at: usize,
    /// Segments, if it is to be cut.
    pub segments: Option<Segments>,
}

/// How a frame is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// See `gso` of `ferric_abi::virtio::net`.
    pub kind: u8,
    /// Bytes of payload in each.
    pub size: u16,
    /// Bytes of the headers in front of each, as the frame itself says.
    pub headers: usize,
    /// The first has CWR set.
    pub ecn: bool,
}

/// What to do with a frame; an error if what its header asks for cannot be.
pub fn judge(header: &NetHeader, frame: &[u8], features: u64) -> Result<Option<Offload>, VirtioCause> {
    let has = |bit: u64| features & bit != 0;
    if !header.needs_csum() {
        // Segments have to have their checksums made.
        return if header.gso() == gso::NONE { Ok(None) } else { Err(VirtioCause::BadOffload) };
    }
    let csum_start = usize::from(header.csum_start());
    let csum_at = csum_start + usize::from(header.csum_offset());
    if !has(feature::CSUM) || csum_at + 2 > frame.len() {
        return Err(VirtioCause::BadOffload);
    }
    let kind = header.gso();
    if kind == gso::NONE {
        return Ok(Some(Offload { csum_start, csum_at, segments: None }));
    }
    let (wanted, protocol, version, field) = match kind {
        gso::TCPV4 => (feature::HOST_TSO4, TCP, Some(4), 16),
        gso::TCPV6 => (feature::HOST_TSO6, TCP, Some(6), 16),
        gso::UDP_L4 => (feature::HOST_USO, UDP, None, 6),
        _ => return Err(VirtioCause::BadOffload),
    };
    let parsed = parse(frame, protocol, version);
    let good = has(wanted) && (!header.ecn() || has(feature::HOST_ECN) && protocol == TCP) && header.gso_size() > 0;
    match parsed {
        Some(headers) if good && headers.l4 == csum_start && csum_at == csum_start + field && headers.end <= MAX_HEADERS => {
            let segments = Segments { kind, size: header.gso_size(), headers: headers.end, ecn: header.ecn() };
            Ok(Some(Offload { csum_start, csum_at, segments: Some(segments) }))
        }
        _ => Err(VirtioCause::BadOffload),
    }
}

/// Where the transport header begins, and where the payload does.
struct Headers {
    l4: usize,
    end: usize,
}

/// Ethernet, up to two tags, IPv4 with options or IPv6 without extension headers, and a whole transport header.
fn parse(frame: &[u8], protocol: u8, version: Option<u8>) -> Option<Headers> {
    let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let mut ip = 14;
    while ip <= 18 && matches!(word(ip - 2)?, 0x8100 | 0x88a8) {
        ip += 4;
    }
    let found = frame.get(ip)? >> 4;
    if version.is_some_and(|version| version != found) {
        return None;
    }
    let (next, l4) = match (word(ip - 2)?, found) {
        (0x0800, 4) => {
            let length = 4 * usize::from(frame[ip] & 15);
            let whole = length >= 20 && word(ip + 6)? & 0x3fff == 0;
            whole.then_some((*frame.get(ip + 9)?, ip + length))?
        }
        (0x86dd, 6) => (*frame.get(ip + 6)?, ip + 40),
        _ => return None,
    };
    let length = if protocol == TCP { 4 * usize::from(frame.get(l4 + 12)? >> 4) } else { 8 };
    let whole = next == protocol && length >= if protocol == TCP { 20 } else { 8 } && l4 + length <= frame.len();
    whole.then_some(Headers { l4, end: l4 + length })
}
