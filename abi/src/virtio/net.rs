//! Numbers of the network device (spec 5.1).

/// Kinds of segmentation in `NetHeader::gso` (spec 5.1.6).
pub mod gso {
    /// None.
    pub const NONE: u8 = 0;
    /// TCP over IPv4.
    pub const TCPV4: u8 = 1;
    /// TCP over IPv6.
    pub const TCPV6: u8 = 4;
    /// UDP, each segment a datagram.
    pub const UDP_L4: u8 = 5;
}

/// Bits of `NetConfig::status` (spec 5.1.4).
pub mod link {
    /// The link is up.
    pub const UP: u16 = 1;
}

/// Kinds of hash (spec 5.1.6.4.3.1): a bit each.
pub mod hash_type {
    /// Addresses of IPv4.
    pub const IPV4: u32 = 1;
    /// And ports of TCP.
    pub const TCPV4: u32 = 1 << 1;
    /// And ports of UDP.
    pub const UDPV4: u32 = 1 << 2;
    /// Addresses of IPv6.
    pub const IPV6: u32 = 1 << 3;
    /// And ports of TCP.
    pub const TCPV6: u32 = 1 << 4;
    /// And ports of UDP.
    pub const UDPV6: u32 = 1 << 5;
    /// All that there are here. Those of IPv6's extension headers are not.
    pub const ALL: u32 = 0x3f;
}

/// Classes and commands of the control queue (spec 5.1.6.5), and what is answered.
pub mod control {
    /// Receive modes: one byte of data, 1 or 0.
    pub const RX: u8 = 0;
    /// Everything is received.
    pub const RX_PROMISC: u8 = 0;
    /// Every multicast is.
    pub const RX_ALLMULTI: u8 = 1;
    /// Every unicast is.
    pub const RX_ALLUNI: u8 = 2;
    /// No multicast is.
    pub const RX_NOMULTI: u8 = 3;
    /// No unicast is.
    pub const RX_NOUNI: u8 = 4;
    /// No broadcast is.
    pub const RX_NOBCAST: u8 = 5;
    /// MAC addresses.
    pub const MAC: u8 = 1;
    /// Those that are received besides the device's own: unicast ones, then multicast ones, each with their number in front, 32 bits.
    pub const MAC_TABLE_SET: u8 = 0;
    /// The device's own: six bytes of data.
    pub const MAC_ADDR_SET: u8 = 1;
    /// VLANs that are received: 16 bits of data.
    pub const VLAN: u8 = 2;
    /// One more is.
    pub const VLAN_ADD: u8 = 0;
    /// One is not any more.
    pub const VLAN_DEL: u8 = 1;
    /// Several pairs of queues.
    pub const MQ: u8 = 4;
    /// Pairs in use: 16 bits of data.
    pub const MQ_PAIRS_SET: u8 = 0;
    /// Receive-side scaling: `RssHead`, a table of pairs, `RssTail`, a key.
    pub const MQ_RSS_CONFIG: u8 = 1;
    /// Coalescing of notifications.
    pub const NOTF_COAL: u8 = 6;
    /// Of transmit queues: `NotfCoal`.
    pub const NOTF_COAL_TX_SET: u8 = 0;
    /// Of receive queues: `NotfCoal`.
    pub const NOTF_COAL_RX_SET: u8 = 1;
    /// Answer: done.
    pub const OK: u8 = 0;
    /// Answer: not done.
    pub const ERR: u8 = 1;
}
