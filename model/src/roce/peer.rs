//! Who may speak to a queue pair. Written from IBTA volume 1, 9.6.1 (header fields are validated: a packet of a connection is compared with its addresses), annex A17 (addresses of
//! RoCEv2), IEEE 802.1Q (a port belongs to VLANs), RFC 1112 and RFC 2464 (MAC addresses of groups).

use crate::net::networks::Network;
use ferric_abi::csr::SPECIAL;
use ferric_abi::special::{is_special, special_queue_pair};

/// From the headers of a packet, and where it comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    pub qpn: u32,
    /// BTH opcode of the class of unreliable datagrams.
    pub datagram: bool,
    pub dmac: u64,
    pub sip: u128,
    pub dip: u128,
    pub ipv6: bool,
    /// VLAN identifier of the tag.
    pub vlan: Option<u16>,
    pub network: Network,
}

/// The part of a queue pair's path that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Path {
    pub smac: u64,
    pub sip: u128,
    pub dip: u128,
    pub ipv6: bool,
    pub vlan: Option<u16>,
    /// Whose queue pair it is.
    pub function: u16,
}

fn to_group(seen: &Seen) -> bool {
    seen.datagram && seen.qpn == 0xff_ffff
}

/// The packet is of another network than the queue pair that it is for, if that is connected: `path`.
pub fn foreign(seen: &Seen, path: Option<&Path>) -> bool {
    !to_group(seen) && path.is_some_and(|p| !seen.network.has(p.function))
}

/// The queue pair that a packet is for. Queue pair 1 is that of the function whose MAC address the packet goes to: `owner`. `log_share`: see `ferric_abi::special::special_queue_pair`.
pub fn meant(seen: &Seen, owner: u16, log_share: u32) -> u32 {
    if seen.datagram && seen.qpn == SPECIAL {
        special_queue_pair(owner.into(), log_share)
    } else {
        seen.qpn
    }
}

/// A number that no packet may name: on the wire special queue pairs are called 1.
fn hidden(seen: &Seen, log_share: u32) -> bool {
    seen.qpn != SPECIAL && is_special(seen.qpn, log_share)
}

/// The packet is refused. `path`: of the queue pair that it is for, if that is connected.
pub fn stranger(seen: &Seen, path: Option<&Path>, log_share: u32) -> bool {
    if to_group(seen) {
        let mac = if seen.ipv6 { 0x3333 << 32 | seen.dip as u64 & 0xffff_ffff } else { 0x0100_5e00_0000 | seen.dip as u64 & 0x7f_ffff };
        return seen.dmac != mac;
    }
    let Some(p) = path else { return false };
    let here = seen.dmac == p.smac && seen.dip == p.sip && seen.ipv6 == p.ipv6 && seen.vlan == p.vlan;
    let from_peer = seen.datagram || seen.sip == p.dip;
    hidden(seen, log_share) || !(here && from_peer)
}
