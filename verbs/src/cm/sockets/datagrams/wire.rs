//! Headers of datagram rsockets, as rdma-core's description of rsockets has them: the peer may be Linux's librdmacm. Numbers are in network order.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Begins what goes by UDP.
const TAG: u32 = 0x5555_5555;
/// Kinds of what goes by UDP: data, and an answer without any.
const DATA: u8 = 0;
const ANSWER: u8 = 7;
/// Bytes in front of the address by UDP, and between queue pairs.
const BEFORE_ADDRESS: usize = 12;
const BEFORE_SENDER: usize = 4;
/// Bytes of the flow label's word, which stands in front of an IPv6 address between queue pairs.
const FLOW: usize = 4;

fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

fn version(ip: IpAddr) -> u8 {
    if ip.is_ipv4() {
        4
    } else {
        6
    }
}

/// The address of an IP version. `None`: there are other bytes than it has.
fn address(version: u8, b: &[u8]) -> Option<IpAddr> {
    match version {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(b).ok()?).into()),
        6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(b).ok()?).into()),
        _ => None,
    }
}

/// What goes by UDP, as long as the two do not know each other's queue pairs: the sender's, perhaps in front of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// Data follow, and an answer is wanted.
    pub data: bool,
    /// The sender's queue pair.
    pub qpn: u32,
    /// Where it is sent.
    pub to: IpAddr,
}

impl Introduction {
    /// The header.
    pub fn to_bytes(self) -> Vec<u8> {
        let to = octets(self.to);
        let kind = if self.data { DATA } else { ANSWER };
        let mut b = TAG.to_be_bytes().to_vec();
        b.extend([version(self.to), kind, (BEFORE_ADDRESS + to.len()) as u8, 0]);
        b.extend(self.qpn.to_be_bytes());
        b.extend(to);
        b
    }

    /// A header and what follows it. `None`: it is not of an rsocket.
    pub fn parse(b: &[u8]) -> Option<(Self, &[u8])> {
        let (header, data) = b.split_at_checked((*b.get(6)?).into())?;
        // The address first: with its place there, the rest is.
        let to = header.get(BEFORE_ADDRESS..)?;
        let to = address(header[4], to)?;
        let word = |at: usize| Some(u32::from_be_bytes(header.get(at..at + 4)?.try_into().ok()?));
        let introduction = Self { data: header[5] == DATA, qpn: word(8)? & 0xff_ffff, to };
        (word(0)? == TAG && matches!(header[5], DATA | ANSWER)).then_some((introduction, data))
    }
}

/// The header between two queue pairs: who has sent it.
pub fn sender_to_bytes(from: SocketAddr) -> Vec<u8> {
    let mut address = octets(from.ip());
    if from.is_ipv6() {
        address.splice(..0, [0; FLOW]);
    }
    let mut b = vec![version(from.ip()), (BEFORE_SENDER + address.len()) as u8];
    b.extend(from.port().to_be_bytes());
    b.extend(address);
    b
}

/// Who has sent it, and what follows. `None`: it is not of an rsocket.
pub fn sender(b: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let (header, data) = b.split_at_checked((*b.get(1)?).into())?;
    let address_at = if *header.first()? == 6 { BEFORE_SENDER + FLOW } else { BEFORE_SENDER };
    let ip = address(header[0], header.get(address_at..)?)?;
    Some((SocketAddr::new(ip, u16::from_be_bytes([header[2], header[3]])), data))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Put together by hand from the description.
    #[test]
    fn headers_are_those_of_the_description() {
        let by_udp = Introduction { data: true, qpn: 0x12_3456, to: [10, 0, 0, 1].into() };
        let bytes = [0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0, 0, 0x12, 0x34, 0x56, 10, 0, 0, 1];
        assert_eq!(by_udp.to_bytes(), bytes);
        assert_eq!(Introduction::parse(&[&bytes[..], b"data"].concat()), Some((by_udp, &b"data"[..])));
        let six: IpAddr = "fd00::2".parse().unwrap();
        let answer = Introduction { data: false, qpn: 2, to: six };
        assert_eq!((answer.to_bytes().len(), answer.to_bytes()[4..7].to_vec()), (28, vec![6, 7, 28]));
        assert_eq!(Introduction::parse(&answer.to_bytes()), Some((answer, &[][..])));

        let from = SocketAddr::from(([10, 0, 0, 2], 0x1234));
        let between = [4, 8, 0x12, 0x34, 10, 0, 0, 2];
        assert_eq!(sender_to_bytes(from), between);
        assert_eq!(sender(&[&between[..], b"x"].concat()), Some((from, &b"x"[..])));
        let from = SocketAddr::new(six, 7);
        assert_eq!((sender_to_bytes(from).len(), sender(&sender_to_bytes(from))), (24, Some((from, &[][..]))));
    }

    #[test]
    fn others_are_refused() {
        let good = Introduction { data: true, qpn: 5, to: [10, 0, 0, 1].into() }.to_bytes();
        for n in 0..good.len() {
            assert_eq!(Introduction::parse(&good[..n]), None, "{n} bytes");
        }
        // The tag, the version, the kind, the length.
        for (at, byte) in [(0, 0), (4, 6), (4, 5), (5, 1), (6, 0), (6, 3), (6, 7), (6, 11), (6, 15), (6, 17), (6, 255)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert_eq!(Introduction::parse(&[&bad[..], &[0; 4]].concat()), None, "{byte} at {at}");
        }
        let good = sender_to_bytes(([10, 0, 0, 2], 1).into());
        for n in 0..good.len() {
            assert_eq!(sender(&good[..n]), None, "{n} bytes");
        }
        for (at, byte) in [(0, 6), (0, 0), (1, 7), (1, 9), (1, 0), (1, 255)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert_eq!(sender(&[&bad[..], &[0; 4]].concat()), None, "{byte} at {at}");
        }
    }
}
