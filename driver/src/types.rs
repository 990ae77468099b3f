//! Plain types shared by the modules.
use ferric_abi::codes;
use std::net::IpAddr;

pub use codes::{CqeOpcode, CqeStatus, QpState, QpType};

/// Path MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mtu {
    /// 256 bytes.
    M256 = 1,
    /// 512 bytes.
    M512 = 2,
    /// 1024 bytes.
    M1024 = 3,
    /// 2048 bytes.
    M2048 = 4,
    /// 4096 bytes.
    M4096 = 5,
}

impl Mtu {
    /// The MTU of `bytes`, if IBTA has it.
    pub fn from_bytes(bytes: usize) -> Option<Self> {
        [Self::M256, Self::M512, Self::M1024, Self::M2048, Self::M4096].into_iter().find(|m| m.bytes() == bytes)
    }
    /// Bytes of payload per packet.
    pub fn bytes(self) -> usize {
        128 << self as usize
    }
}

/// MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// As the card's tables have it: the first byte on the wire in the most significant byte.
    pub fn number(self) -> u64 {
        self.0.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
    }
}

/// A text that is no MAC address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a MAC address: six bytes in hexadecimal with colons between them")]
pub struct NoMac(String);

impl std::str::FromStr for Mac {
    type Err = NoMac;

    fn from_str(text: &str) -> Result<Self, NoMac> {
        let byte = |b: &str| u8::from_str_radix(b, 16).ok().filter(|_| b.len() == 2 && b.bytes().all(|c| c.is_ascii_hexdigit()));
        let bytes: Option<Vec<u8>> = text.split(':').map(byte).collect();
        bytes.and_then(|b| b.try_into().ok()).map(Mac).ok_or_else(|| NoMac(text.into()))
    }
}

impl std::fmt::Display for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().enumerate().try_for_each(|(n, b)| write!(f, "{}{b:02x}", if n == 0 { "" } else { ":" }))
    }
}

/// Where packets of a queue pair go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Destination MAC.
    pub dmac: Mac,
    /// Source MAC.
    pub smac: Mac,
    /// Destination address; both addresses are of one family.
    pub dip: IpAddr,
    /// Source address.
    pub sip: IpAddr,
    /// 802.1Q tag control information.
    pub vlan: Option<u16>,
    /// UDP source port (entropy for ECMP).
    pub udp_sport: u16,
    /// IPv4 ToS or IPv6 traffic class.
    pub tclass: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// IPv6 flow label.
    pub flow_label: u32,
}

/// Attributes for INIT -> RTR.
#[derive(Clone, Copy, Debug)]
pub struct RtrAttr {
    /// Path MTU.
    pub mtu: Mtu,
    /// Remote queue pair.
    pub dest_qpn: u32,
    /// First PSN expected.
    pub rq_psn: u32,
    /// RNR NAK timer code (IBTA table 46).
    pub min_rnr_timer: u8,
    /// A sequence NAK is sent again when the 64th, 128th and 192nd packet behind the gap comes: a NAK that is lost costs no time-out then. IBTA 9.7.5.2.8 has one NAK for a gap, and a
    /// peer whose retry count is small may give up by what more there are; so this is for peers that are cards of ours.
    pub repeat_nak: bool,
    /// READs and atomics of the peer that may be outstanding, at most 16.
    pub max_dest_rd_atomic: u8,
    /// The path; `None` for raw queue pairs.
    pub path: Option<Path>,
}

/// Attributes for RTR -> RTS.
#[derive(Clone, Copy, Debug)]
pub struct RtsAttr {
    /// First PSN sent.
    pub sq_psn: u32,
    /// Local ACK timeout exponent: 4.096 us * 2^timeout; 0 never times out.
    pub timeout: u8,
    /// Transport retries, 0 to 7.
    pub retry_cnt: u8,
    /// RNR retries, 7 means for ever.
    pub rnr_retry: u8,
    /// Own READs and atomics that may be outstanding, at most 16 and at most what the peer remembers; 0: none may be posted.
    pub max_rd_atomic: u8,
}

/// What the card holds of a queue pair (QUERY_QP).
#[derive(Clone, Copy, Debug)]
pub struct QpStatus {
    /// Requester's state.
    pub state: QpState,
    /// Next PSN to send.
    pub next_psn: u32,
    /// Oldest unacknowledged PSN.
    pub una_psn: u32,
    /// Responder's state.
    pub responder_state: QpState,
    /// PSN the responder expects.
    pub expected_psn: u32,
    /// Messages completed by the responder.
    pub msn: u32,
}

/// What the card is, from its discovery registers.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
    /// Interface version.
    pub version: u32,
    /// Queue pairs that this function may have; so are the next four. The physical function may have what no other makes use of.
    pub qps: u32,
    /// Completion queues.
    pub cqs: u32,
    /// Memory regions.
    pub mrs: u32,
    /// Protection domains.
    pub pds: u32,
    /// Event queues.
    pub eqs: u32,
    /// Number of this function; 0 is the physical one.
    pub function: u32,
    /// Functions of the card.
    pub functions: u32,
    /// Data path width in bytes.
    pub width: u32,
    /// Largest number of scatter/gather entries of a send.
    pub max_sge: u32,
    /// Largest inline payload in bytes.
    pub max_inline: u32,
    /// Transport and feature bits (CAPS3).
    pub features: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_addresses_are_read_and_written() {
        let mac = Mac([0x52, 0x54, 0, 0, 0, 10]);
        assert_eq!("52:54:00:00:00:0a".parse(), Ok(mac));
        assert_eq!(mac.to_string(), "52:54:00:00:00:0a");
        for bad in ["52:54:00", "5:4:0:0:0:0", "", "52:54:00:00:00:0g", "52:54:00:00:00:+a", "52:54:00:00:00:0a:0b"] {
            assert_eq!(bad.parse::<Mac>(), Err(NoMac(bad.into())));
        }
    }
}
