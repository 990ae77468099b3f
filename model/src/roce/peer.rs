//! Who may speak to a queue pair. Written from IBTA volume 1, 9.6.1 (header fields are validated: a packet of a connection is compared with its addresses), annex A17 (addresses of
//! RoCEv2), IEEE 802.1Q (a port belongs to VLANs), RFC 1112 and RFC 2464 (MAC addresses of groups).

/// From the headers of a packet.
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
}

/// The part of a queue pair's path that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Path {
    pub smac: u64,
    pub sip: u128,
    pub dip: u128,
    pub ipv6: bool,
    pub vlan: Option<u16>,
}

/// The packet is refused. `path`: of the queue pair that it names, if that is connected.
pub fn stranger(seen: &Seen, path: Option<&Path>) -> bool {
    if seen.datagram && seen.qpn == 0xff_ffff {
        let mac = if seen.ipv6 { 0x3333 << 32 | seen.dip as u64 & 0xffff_ffff } else { 0x0100_5e00_0000 | seen.dip as u64 & 0x7f_ffff };
        return seen.dmac != mac;
    }
    let Some(p) = path else { return false };
    let here = seen.dmac == p.smac && seen.dip == p.sip && seen.ipv6 == p.ipv6 && seen.vlan == p.vlan;
    let from_peer = seen.datagram || seen.sip == p.dip;
    !(here && from_peer)
}
