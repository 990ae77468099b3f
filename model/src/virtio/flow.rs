//! What a flow of packets is known by: its addresses and ports, as they stand in a frame. Steering by flow (spec 5.1.6.5.6) and RSS (spec 5.1.6.4.3) look at nothing else.

/// TCP's number among the protocols.
const TCP: u8 = 6;
/// UDP's.
const UDP: u8 = 17;
/// Words of an IPv4 header without options.
const SHORTEST: usize = 5;

/// Source and destination of a frame's IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow<'a> {
    /// Source and destination address, 4 or 16 bytes each.
    pub src: &'a [u8],
    /// See `src`.
    pub dst: &'a [u8],
    /// IPv4's protocol or IPv6's next header.
    pub protocol: u8,
    /// Source and destination port, of a TCP or UDP packet that is no fragment and whose ports are there.
    pub ports: Option<&'a [u8; 4]>,
}

impl<'a> Flow<'a> {
    /// The flow of a frame: IPv4 or IPv6 behind an Ethernet header with one tag (0x8100) at most. `None`: it is none, or ends within its addresses.
    pub fn of(frame: &'a [u8]) -> Option<Self> {
        let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
        let ip = if word(12)? == 0x8100 { 18 } else { 14 };
        let (addresses, protocol, l4, fragment) = match (word(ip - 2)?, frame.get(ip)? >> 4) {
            (0x0800, 4) => {
                let words = usize::from(frame[ip] & 15);
                let addresses = frame.get(ip + 12..ip + 20).filter(|_| words >= SHORTEST)?;
                (addresses, frame[ip + 9], ip + 4 * words, word(ip + 6)? & 0x3fff != 0)
            }
            (0x86dd, 6) => (frame.get(ip + 8..ip + 40)?, frame[ip + 6], ip + 40, false),
            _ => return None,
        };
        let (src, dst) = addresses.split_at(addresses.len() / 2);
        // A fragment behind the first has no ports, so none counts.
        let ports = if !fragment && matches!(protocol, TCP | UDP) { frame.get(l4..l4 + 4).and_then(|ports| ports.first_chunk()) } else { None };
        Some(Self { src, dst, protocol, ports })
    }

    /// The protocol, when there are ports: TCP, not UDP.
    pub fn is_tcp(&self) -> bool {
        self.protocol == TCP
    }
}
