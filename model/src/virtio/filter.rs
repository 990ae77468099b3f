//! Which of the frames on the wire are the function's (spec 5.1.6.5.1 to 5.1.6.5.3): those for its MAC address, broadcasts, and what the control queue has asked for beyond that.
use super::device::Device;
use super::memory::Memory;
use super::verdict::is_verified;
use ferric_abi::virtio::feature;
use ferric_abi::virtio::net::control;

/// Why a frame is none of the function's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filtered {
    /// Shorter than an Ethernet header.
    Runt,
    /// Its VLAN is none of those.
    Vlan,
    /// Broadcasts are not wanted.
    Broadcast,
    /// The group is not wanted.
    Multicast,
    /// It is for another station.
    Unicast,
}

/// Addresses of one kind that the filter holds; with more of them it lets all of the kind through (spec 5.1.6.5.1: filters may be approximations).
pub const UNICASTS: usize = 16;
/// See [`UNICASTS`].
pub const MULTICASTS: usize = 32;
/// Bytes of an Ethernet header without tag.
const ETHERNET: usize = 14;

/// What the filter has been told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    unicasts: Addresses,
    multicasts: Addresses,
    /// A bit for each VLAN.
    vlans: [u64; 64],
}

impl Default for Filter {
    fn default() -> Self {
        Self { unicasts: Addresses::default(), multicasts: Addresses::default(), vlans: [0; 64] }
    }
}

/// Addresses of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Addresses {
    list: Vec<[u8; 6]>,
    all: bool,
}

impl Addresses {
    fn new(bytes: &[u8], most: usize) -> Self {
        let list: Vec<_> = bytes.chunks_exact(6).map(|c| [c[0], c[1], c[2], c[3], c[4], c[5]]).collect();
        let all = list.len() > most;
        Self { list: if all { Vec::new() } else { list }, all }
    }

    fn has(&self, mac: &[u8; 6]) -> bool {
        self.all || self.list.contains(mac)
    }
}

impl Filter {
    /// The data of MAC_TABLE_SET: unicast addresses, then multicast ones, each with their number in front. `None`: they are not all there, or there is more.
    pub fn set_addresses(&mut self, data: &[u8]) -> Option<()> {
        let (unicasts, rest) = table(data)?;
        let (multicasts, rest) = table(rest)?;
        if !rest.is_empty() {
            return None;
        }
        (self.unicasts, self.multicasts) = (Addresses::new(unicasts, UNICASTS), Addresses::new(multicasts, MULTICASTS));
        Some(())
    }

    /// A VLAN is received from now on, or is not. `None`: there is no such VLAN.
    pub fn set_vlan(&mut self, vlan: u16, wanted: bool) -> Option<()> {
        let bits = self.vlans.get_mut(usize::from(vlan / 64))?;
        let bit = 1 << (vlan % 64);
        *bits = if wanted { *bits | bit } else { *bits & !bit };
        Some(())
    }

    /// The unicast addresses of the table; `None`: all are received.
    pub fn unicasts(&self) -> Option<&[[u8; 6]]> {
        (!self.unicasts.all).then_some(&self.unicasts.list)
    }

    /// The multicast ones.
    pub fn multicasts(&self) -> Option<&[[u8; 6]]> {
        (!self.multicasts.all).then_some(&self.multicasts.list)
    }

    /// A bit for each VLAN that is received.
    pub fn vlans(&self) -> &[u64; 64] {
        &self.vlans
    }

    fn has_vlan(&self, vlan: u16) -> bool {
        self.vlans[usize::from(vlan / 64)] >> (vlan % 64) & 1 == 1
    }
}

/// A number of addresses and these, and what is behind them.
fn table(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (count, rest) = data.split_first_chunk()?;
    rest.split_at_checked((u32::from_le_bytes(*count) as usize).checked_mul(6)?)
}

impl Device {
    /// A frame that has come by the wire: it is for this function or not, has good checksums or not, and belongs to a pair of queues. What becomes of it is counted. Its owner gives frames here that it
    /// has not judged itself; [`Device::receive`] takes one that has been.
    pub fn arrive(&mut self, memory: &mut dyn Memory, frame: &[u8]) {
        let Some(pair) = self.sort(frame) else { return };
        // Why it is dropped, if it is, has been counted.
        let _ = self.receive(memory, pair, frame, is_verified(frame));
    }

    /// The pair of queues of a frame that has come; `None`: it is for somebody else, and has been counted.
    pub(super) fn sort(&mut self, frame: &[u8]) -> Option<u16> {
        let wanted = self.wants(frame);
        self.counters.filtered += u64::from(!wanted);
        wanted.then(|| self.pair_of(frame))
    }

    /// The filter lets this frame through.
    pub fn wants(&self, frame: &[u8]) -> bool {
        self.rules().judge(frame).is_ok()
    }

    /// What the filter goes by.
    pub fn rules(&self) -> Rules<'_> {
        let mut own = [0; 6];
        own.copy_from_slice(&self.config.mac().to_le_bytes()[..6]);
        Rules { filter: &self.filter, modes: self.modes.receive, features: self.features, own }
    }
}

/// All that decides whether a frame is the function's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules<'a> {
    /// Its tables.
    pub filter: &'a Filter,
    /// Receive modes, by their command's number.
    pub modes: [bool; 6],
    /// Features that have been negotiated: CTRL_RX and CTRL_VLAN count.
    pub features: u64,
    /// The function's own address.
    pub own: [u8; 6],
}

impl Rules<'_> {
    /// A mode has been switched on.
    pub fn is_on(&self, mode: u8) -> bool {
        self.modes[usize::from(mode)]
    }

    /// A feature has been negotiated.
    pub fn has(&self, bit: u64) -> bool {
        self.features & bit != 0
    }

    /// Whether a frame is the function's, or why not.
    pub fn judge(&self, frame: &[u8]) -> Result<(), Filtered> {
        let Some(dst) = frame.first_chunk::<6>().filter(|_| frame.len() >= ETHERNET) else { return Err(Filtered::Runt) };
        if self.is_on(control::RX_PROMISC) {
            return Ok(());
        }
        let tag = frame.get(12..16).filter(|tag| tag[..2] == [0x81, 0]).map(|tag| u16::from_be_bytes([tag[2], tag[3]]) & 0xfff);
        if self.has(feature::CTRL_VLAN) && tag.is_some_and(|vlan| !self.filter.has_vlan(vlan)) {
            return Err(Filtered::Vlan);
        }
        let (wanted, reason) = match dst {
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff] => (!self.is_on(control::RX_NOBCAST), Filtered::Broadcast),
            _ if dst[0] & 1 == 1 => {
                let group = !self.has(feature::CTRL_RX) || self.is_on(control::RX_ALLMULTI) || self.filter.multicasts.has(dst);
                (group && !self.is_on(control::RX_NOMULTI), Filtered::Multicast)
            }
            _ => {
                let station = self.is_on(control::RX_ALLUNI) || self.own == *dst || self.filter.unicasts.has(dst);
                (station && !self.is_on(control::RX_NOUNI), Filtered::Unicast)
            }
        };
        if wanted {
            Ok(())
        } else {
            Err(reason)
        }
    }
}
