//! What carries a packet: Ethernet, one tag at most, IPv4 or IPv6, UDP or the entropy header.
use ferric_abi::uet::UetEntropy;
use ferric_abi::wire::{ethertype, protocol, Eth, Ipv4, Ipv6, Udp, Vlan};

/// Bytes of a MAC address.
pub const MAC_BYTES: usize = 6;
/// DSCP of acknowledges, refusals and control packets, unless the operator says otherwise (EF).
pub const CONTROL_DSCP: u8 = 46;
/// "Don't fragment" of IPv4: packets are never cut into fragments.
const DF: u8 = 2;

/// Addresses of the two fabric endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Addresses {
    /// Source, destination.
    V4(u32, u32),
    /// Source, destination.
    V6(u128, u128),
}

impl Addresses {
    /// Source.
    pub fn source(&self) -> u128 {
        match *self {
            Self::V4(source, _) => source.into(),
            Self::V6(source, _) => source,
        }
    }

    /// Destination.
    pub fn destination(&self) -> u128 {
        match *self {
            Self::V4(_, destination) => destination.into(),
            Self::V6(_, destination) => destination,
        }
    }
}

/// Headers in front of the PDS header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carriage {
    /// Destination MAC.
    pub dst_mac: u64,
    /// Source MAC.
    pub src_mac: u64,
    /// Priority, drop-eligible bit and VLAN, if there is a tag.
    pub tag: Option<u16>,
    /// Addresses of IP.
    pub addresses: Addresses,
    /// DSCP.
    pub dscp: u8,
    /// ECN: 2 is ECT(0), 3 is CE.
    pub ecn: u8,
    /// TTL or hop limit.
    pub hops: u8,
    /// IP protocol of native carriage; none: UDP.
    pub native: Option<u8>,
    /// Entropy value: UDP source port or entropy field.
    pub entropy: u16,
}

/// Checksum of 16-bit words as IPv4's header and UDP have it (RFC 1071); an odd last byte counts as the high half of a word. 0: of bytes in which a right checksum stands.
pub fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !sum as u16
}

impl Carriage {
    /// The headers in front of `behind` bytes of PDS header and what follows it, and where the IP addresses begin in them.
    pub(super) fn bytes(&self, port: u16, behind: usize) -> (Vec<u8>, usize) {
        let (kind, ports) = match self.native {
            Some(number) => (number, UetEntropy::default().with_entropy(self.entropy).0.to_vec()),
            None => (protocol::UDP, Udp::default().with_src_port(self.entropy).with_dst_port(port).with_length((Udp::BYTES + behind) as u16).0.to_vec()),
        };
        let inner = ports.len() + behind;
        let (ether, ip, addresses) = match self.addresses {
            Addresses::V4(src, dst) => {
                let ip = Ipv4::default().with_version(4).with_ihl(5).with_dscp(self.dscp).with_ecn(self.ecn).with_total_length((Ipv4::BYTES + inner) as u16).with_flags(DF).with_ttl(self.hops);
                let ip = ip.with_protocol(kind).with_src(src).with_dst(dst);
                (ethertype::IPV4, ip.with_checksum(checksum(&ip.0)).0.to_vec(), 8)
            }
            Addresses::V6(src, dst) => {
                let ip = Ipv6::default().with_version(6).with_dscp(self.dscp).with_ecn(self.ecn).with_payload_length(inner as u16).with_next_header(kind).with_hop_limit(self.hops);
                (ethertype::IPV6, ip.with_src(src).with_dst(dst).0.to_vec(), 32)
            }
        };
        let eth = Eth::default().with_dst(self.dst_mac).with_src(self.src_mac);
        let mut out = match self.tag {
            None => eth.with_ethertype(ether).0.to_vec(),
            Some(tag) => {
                let vlan = Vlan::default().with_pcp((tag >> 13) as u8).with_dei(tag >> 12 & 1 == 1).with_vid(tag & 0xfff).with_ethertype(ether);
                [&eth.with_ethertype(ethertype::VLAN).0[..], &vlan.0].concat()
            }
        };
        let start = out.len() + ip.len() - addresses;
        out.extend(ip);
        out.extend(ports);
        (out, start)
    }
}
