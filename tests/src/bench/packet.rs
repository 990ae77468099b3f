//! What a frame on the wire is: written from the specification (IBTA 9.2 and annex A17), for the reader alone.

/// Transport and operation of a packet: the opcode's upper three and lower five bits (IBTA table 38).
const UD: u8 = 3;
const READ_REQUEST: u8 = 12;
const READ_RESPONSE_FIRST: u8 = 13;
const READ_RESPONSE_ONLY: u8 = 16;
const ACKNOWLEDGE: u8 = 17;
const ATOMIC_ACKNOWLEDGE: u8 = 18;
const COMPARE_SWAP: u8 = 19;
const FETCH_ADD: u8 = 20;

/// Bytes of the extension headers of RC's and UC's operations, by the opcode's lower five bits.
const EXTENSIONS: [u64; 24] = [0, 0, 0, 4, 0, 4, 16, 0, 0, 4, 16, 20, 16, 4, 0, 4, 4, 4, 12, 28, 28, 0, 4, 4];

/// What a packet is to the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// SEND, WRITE, datagram: payload of its sender.
    Push,
    /// Request of a READ or an atomic: no payload.
    Ask,
    /// READ response or an atomic's answer.
    Answer,
    /// Positive acknowledge.
    Ack,
    /// Negative acknowledge, or one that says that no receive was ready.
    Refusal,
}

/// A RoCEv2 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// What it is.
    pub class: Class,
    /// Destination queue pair.
    pub qp: u32,
    /// Source queue pair of a datagram, else 0.
    pub source: u32,
    /// Packet sequence number.
    pub psn: u32,
    /// Bytes of payload: neither headers nor padding.
    pub payload: u64,
    /// The last packet of its message or answer.
    pub ends: bool,
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |n, b| n << 8 | u32::from(*b))
}

/// UDP header and VXLAN header.
const UDP: usize = 8;
const VXLAN: usize = 8;

/// From a frame's first bytes to its UDP header. None: there is none, or it is cut off.
fn datagram(frame: &[u8]) -> Option<&[u8]> {
    let at = if frame.get(12..14)? == [0x81, 0] { 16 } else { 12 };
    let ip = frame.get(at + 2..)?;
    let (protocol, header) = match frame.get(at..at + 2)? {
        [0x08, 0] => (*ip.get(9)?, usize::from(ip.first()? & 0xf) * 4),
        [0x86, 0xdd] => (*ip.get(6)?, 40),
        _ => return None,
    };
    ip.get(header..).filter(|_| protocol == 17)
}

impl Packet {
    /// From a frame's first bytes, inside a VXLAN tunnel (RFC 7348) or not. None: not RoCEv2, or cut off within the headers.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let outer = datagram(frame)?;
        let udp = match outer.get(2..4)? {
            [0x12, 0xb5] => datagram(outer.get(UDP + VXLAN..)?)?,
            _ => outer,
        };
        if udp.get(2..4)? != [0x12, 0xb7] {
            return None;
        }
        let length = u64::from(number(udp.get(4..6)?));
        let bth = udp.get(8..20)?;
        let (transport, operation) = (bth[0] >> 5, bth[0] & 0x1f);
        let pad = u64::from(bth[1] >> 4 & 3);
        let behind = udp.get(20..)?;
        let source = if transport == UD { number(behind.get(5..8)?) } else { 0 };
        let extension = *EXTENSIONS.get(usize::from(operation))? + if transport == UD { 8 } else { 0 };
        let class = match operation {
            READ_REQUEST | COMPARE_SWAP | FETCH_ADD => Class::Ask,
            READ_RESPONSE_FIRST..=READ_RESPONSE_ONLY | ATOMIC_ACKNOWLEDGE => Class::Answer,
            ACKNOWLEDGE if behind.first()? >> 5 == 0 => Class::Ack,
            ACKNOWLEDGE => Class::Refusal,
            _ => Class::Push,
        };
        // First and Middle of SEND, WRITE and READ response.
        let ends = !matches!(operation, 0 | 1 | 6 | 7 | 13 | 14);
        // UDP and base header, ICRC.
        let payload = length.checked_sub(8 + 12 + 4 + extension + pad)?;
        Some(Self { class, qp: number(&bth[5..8]), source, psn: number(&bth[9..12]), payload, ends })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The headers of a frame over IPv4 that carries `payload` bytes behind `extension`.
    pub fn frame(opcode: u8, qp: u32, psn: u32, extension: &[u8], payload: usize) -> Vec<u8> {
        let pad = payload.next_multiple_of(4) - payload;
        let length = (8 + 12 + extension.len() + payload + pad + 4) as u16;
        let mut f = vec![0; 12];
        f.extend([0x08, 0, 0x45, 0]);
        f.extend((length + 20).to_be_bytes());
        f.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0xc0, 0, 0x12, 0xb7]);
        f.extend(length.to_be_bytes());
        f.extend([0, 0, opcode, (pad as u8) << 4, 0xff, 0xff, 0]);
        f.extend(&qp.to_be_bytes()[1..]);
        f.push(0);
        f.extend(&psn.to_be_bytes()[1..]);
        f.extend(extension);
        f
    }

    #[test]
    fn packets_are_recognised() {
        let p = Packet::parse(&frame(10, 0x123456, 0xabcdef, &[0; 16], 61)).unwrap();
        assert_eq!(p, Packet { class: Class::Push, qp: 0x123456, source: 0, psn: 0xabcdef, payload: 61, ends: true });
        let p = |opcode, extension: &[u8], payload| Packet::parse(&frame(opcode, 7, 9, extension, payload)).unwrap();
        assert_eq!((p(7, &[], 4096).payload, p(7, &[], 4096).ends), (4096, false));
        assert_eq!((p(12, &[0; 16], 0).class, p(12, &[0; 16], 0).payload), (Class::Ask, 0));
        assert_eq!((p(16, &[0; 4], 64).class, p(16, &[0; 4], 64).payload), (Class::Answer, 64));
        assert_eq!(p(18, &[0; 12], 0).class, Class::Answer);
        assert_eq!(p(17, &[0x1f, 0, 0, 1], 0).class, Class::Ack);
        assert_eq!(p(17, &[0x60, 0, 0, 1], 0).class, Class::Refusal);
        assert_eq!(p(17, &[0x21, 0, 0, 1], 0).class, Class::Refusal);
        let datagram = p(0x64, &[0, 0, 0, 1, 0, 0, 0, 5], 64);
        assert_eq!((datagram.class, datagram.source, datagram.payload), (Class::Push, 5, 64));
        let mut tagged = frame(4, 7, 9, &[], 64);
        tagged.splice(12..12, [0x81, 0, 0, 5]);
        assert_eq!(Packet::parse(&tagged).unwrap().payload, 64);
        let inner = frame(4, 7, 9, &[], 64);
        let mut tunnelled = frame(4, 7, 9, &[], 64)[..14 + 20 + 8].to_vec();
        tunnelled[37] = 0xb5;
        let through = [&tunnelled[..], &[8, 0, 0, 0, 0, 0, 100, 0], &inner].concat();
        assert_eq!(Packet::parse(&through), Packet::parse(&inner));
        assert_eq!(Packet::parse(&through[..90]), None);
        let mut other = frame(4, 7, 9, &[], 64);
        other[36] = 0;
        assert_eq!(Packet::parse(&other), None);
        assert_eq!(Packet::parse(&frame(4, 7, 9, &[], 64)[..50]), None);
    }
}
