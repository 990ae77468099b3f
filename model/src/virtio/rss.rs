//! Receive-side scaling (spec 5.1.6.4.3 and 5.1.6.5.7): the Toeplitz hash of a frame's addresses and ports says which entry of a table has its pair. The gateware's steering is judged by it, too.
use super::flow::Flow;
use ferric_abi::virtio::net::hash_type;
use ferric_abi::virtio::{RssHead, RssTail};

/// Bytes of a key: 16 of each address, 2 of each port, and the hash's own 4.
pub const KEY: usize = 40;
/// Entries of a table at most.
pub const MOST: usize = 128;

/// The Toeplitz hash of at most 36 bytes.
pub fn toeplitz(key: &[u8; KEY], data: &[u8]) -> u32 {
    let bit = |bytes: &[u8], i: usize| bytes[i / 8] >> (7 - i % 8) & 1 == 1;
    let window = |at: usize| (at..at + 32).fold(0, |window, i| window << 1 | u32::from(bit(key, i)));
    (0..8 * data.len()).filter(|i| bit(data, *i)).fold(0, |hash, i| hash ^ window(i))
}

/// What the driver has asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rss {
    /// See [`ferric_abi::virtio::net::hash_type`].
    pub types: u32,
    /// Pairs by hash: a power of two of them, [`MOST`] at most.
    pub pairs: Vec<u16>,
    /// The pair of what has no hash.
    pub unclassified: u16,
    /// The hash's key.
    pub key: [u8; KEY],
}

impl Rss {
    /// The data of MQ_RSS_CONFIG, and the transmit queues that the driver may use from then on. `is_enabled` says which pair's receive queue is. `None`: what is asked for cannot be. The table's length is no power of
    /// two or more than [`MOST`]; a kind of hash is not supported; a table's entry or that of what has no hash is no enabled queue; the key is longer than [`KEY`], or there is none and something is to be hashed; the
    /// data are cut. Of a shorter key the rest is zero. What is behind the key is not looked at: Linux sends a byte more, which its compiler has put there (7.3).
    pub fn parse(data: &[u8], is_enabled: impl Fn(u16) -> bool) -> Option<(Self, u16)> {
        let (head, rest) = data.split_first_chunk()?;
        let head = RssHead(*head);
        let entries = usize::from(head.mask()) + 1;
        let (table, rest) = rest.split_at_checked(2 * entries)?;
        let (tail, bytes) = rest.split_first_chunk()?;
        let tail = RssTail(*tail);
        let types = head.hash_types();
        let bytes = bytes.get(..usize::from(tail.key_length()))?;
        let is_key = bytes.len() <= KEY && (types == 0 || !bytes.is_empty());
        if !is_key || !entries.is_power_of_two() || entries > MOST || types & !hash_type::ALL != 0 {
            return None;
        }
        let mut key = [0; KEY];
        key[..bytes.len()].copy_from_slice(bytes);
        let pairs: Vec<u16> = table.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        let rss = Self { types, pairs, unclassified: head.unclassified(), key };
        let sound = rss.pairs.iter().chain([&rss.unclassified]).all(|pair| is_enabled(*pair));
        sound.then_some((rss, tail.max_tx_vq()))
    }

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
