//! Receive-side scaling (spec 5.1.6.4.3 and 5.1.6.5.7): the Toeplitz hash of a frame's addresses and ports says which entry of a table has its pair. **Not offered to a driver yet**: this is what the gateware's steering is judged by.
use super::flow::Flow;

/// Bytes of a key: 16 of each address, 2 of each port, and the hash's own 4.
pub const KEY: usize = 40;
/// Entries of a table at most.
pub const MOST: usize = 128;

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

/// The Toeplitz hash of at most 36 bytes.
pub fn toeplitz(key: &[u8; KEY], data: &[u8]) -> u32 {
    let bit = |bytes: &[u8], i: usize| bytes[i / 8] >> (7 - i % 8) & 1 == 1;
    let window = |at: usize| (at..at + 32).fold(0, |window, i| window << 1 | u32::from(bit(key, i)));
    (0..8 * data.len()).filter(|i| bit(data, *i)).fold(0, |hash, i| hash ^ window(i))
}

/// What the driver has asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rss {
    /// See [`hash_type`].
    pub types: u32,
    /// Pairs by hash: a power of two of them, [`MOST`] at most.
    pub pairs: Vec<u16>,
    /// The pair of what has no hash.
    pub unclassified: u16,
    /// The hash's key.
    pub key: [u8; KEY],
}

impl Rss {
    /// The hash of a frame. `None`: it is of none of the kinds.
    pub fn hash(&self, frame: &[u8]) -> Option<u32> {
        let flow = Flow::of(frame)?;
        let wants = |of_v4: u32, of_v6: u32| self.types & if flow.src.len() == 4 { of_v4 } else { of_v6 } != 0;
        let addresses = [flow.src, flow.dst].concat();
        match flow.ports {
            Some(ports) if flow.is_tcp() && wants(hash_type::TCPV4, hash_type::TCPV6) || !flow.is_tcp() && wants(hash_type::UDPV4, hash_type::UDPV6) => {
                Some(toeplitz(&self.key, &[&addresses[..], ports].concat()))
            }
            _ if wants(hash_type::IPV4, hash_type::IPV6) => Some(toeplitz(&self.key, &addresses)),
            _ => None,
        }
    }

    /// The pair of a frame.
    pub fn pair_of(&self, frame: &[u8]) -> u16 {
        self.hash(frame).map_or(self.unclassified, |hash| self.pairs[hash as usize % self.pairs.len()])
    }
}
