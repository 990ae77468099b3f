//! Virtio network functions of a card, beside its native functions: what they are made of ([`Seat`]), and who takes that place: the golden model ([`ModelSeat`]), or the gateware's engine
//! (`GatewareSeat`). See README.md.
mod front;
#[cfg(feature = "cards")]
mod gateware;
mod memory;
mod model;
#[cfg(feature = "cards")]
mod rtl;

pub use front::Front;
#[cfg(feature = "cards")]
pub use gateware::GatewareSeat;
pub use memory::{read_whole, GuestMemory};
pub use model::ModelSeat;

use crate::card::Body;
use crate::iommu::Iommu;
use ferric_abi::codes::VirtioCause;
use ferric_abi::pci;
use ferric_abi::virtio::{feature, net, NetConfig};
use ferric_model::virtio::Counters;
pub use ferric_model::virtio::Offer;
use std::collections::VecDeque;

/// Largest packet of a virtio function behind the Ethernet header, in bytes: what the card's port carries.
const MTU: u16 = 9000;
/// Longest frame that the port carries: the largest packet behind an Ethernet header and a tag.
const LONGEST: usize = MTU as usize + 18;
/// Descriptors of a queue at most, and receive chains that are fetched ahead.
const MAX_SIZE: u16 = 256;
const STOCK: usize = 64;
/// Speed that is shown, in Mbit/s, and full duplex.
const SPEED: u32 = 100_000;
const FULL_DUPLEX: u8 = 1;
/// Pairs of queues of a function at most: each queue has a vector of its own, the configuration another.
pub const MOST_PAIRS: u16 = (pci::MSIX_VECTORS - 1) / 2;

/// Features of a function whose rings are run by gateware.
const IN_GATEWARE: u64 = feature::CSUM
    | feature::GUEST_CSUM
    | feature::MTU
    | feature::MAC
    | feature::STATUS
    | feature::CTRL_VQ
    | feature::CTRL_RX
    | feature::CTRL_VLAN
    | feature::CTRL_RX_EXTRA
    | feature::MQ
    | feature::CTRL_MAC_ADDR
    | feature::MRG_RXBUF
    | feature::INDIRECT_DESC
    | feature::EVENT_IDX
    | feature::VERSION_1
    | feature::ACCESS_PLATFORM
    | feature::IN_ORDER
    | feature::RING_PACKED
    | feature::ORDER_PLATFORM
    | feature::NOTIFICATION_DATA
    | feature::RING_RESET
    | feature::RSS
    | feature::SPEED_DUPLEX;

/// A virtio network function that a card is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionConfig {
    /// Who runs its rings: the golden model (`Twin`), or the gateware's engine, which has the card's width and its host's timing.
    pub body: Body,
    /// MAC address that the function begins with; the first byte on the wire is the first.
    pub mac: [u8; 6],
    /// Pairs of queues, 1 to [`MOST_PAIRS`].
    pub pairs: u16,
    /// Features that are not offered although the function has them (`ferric_abi::virtio::feature`), nor what needs them.
    pub without: u64,
}

impl FunctionConfig {
    /// Number `number` of card `card`, with one pair of queues and all that the model has, which it is. Its address is local and names card and function.
    pub fn new(card: u16, number: u16) -> Self {
        let ([c, d], [e, f]) = (card.to_be_bytes(), number.to_be_bytes());
        Self { body: Body::Twin, mac: [2, 0xfe, c, d, e, f], pairs: 1, without: 0 }
    }

    /// Features that it offers: those of its body but [`FunctionConfig::without`], and each only with what it takes for granted (spec 2.2).
    pub fn features(&self) -> u64 {
        let known = if self.body == Body::Twin { Offer::KNOWN } else { IN_GATEWARE };
        let mut offered = known & !self.without;
        if self.pairs == 1 {
            offered &= !(feature::MQ | feature::RSS);
        }
        // What a feature needs may be missing because something was left out before it.
        while let Some(orphan) = feature::ALL.iter().find(|f| offered >> f.bit & 1 == 1 && f.needs != 0 && offered & f.needs == 0) {
            offered &= !(1 << orphan.bit);
        }
        offered
    }

    /// The same as the golden model takes it.
    pub fn offer(&self) -> Offer {
        let mut mac = [0; 8];
        mac[..6].copy_from_slice(&self.mac);
        let config = NetConfig::default().with_mac(u64::from_le_bytes(mac)).with_status(net::link::UP).with_mtu(MTU).with_speed(SPEED).with_duplex(FULL_DUPLEX);
        let features = self.features();
        let pairs = if features & (feature::MQ | feature::RSS) == 0 { 1 } else { self.pairs };
        Offer { features, pairs, max_size: MAX_SIZE, vectors: pci::MSIX_VECTORS, stock: STOCK, config }
    }
}

/// What lies around a function in a cycle.
pub struct SeatEdge<'a> {
    /// Memory that it can reach.
    pub iommu: &'a mut Iommu,
    /// Frames that leave by the card's port.
    pub sent: &'a mut VecDeque<Vec<u8>>,
    /// MSI-X requests (function, vector).
    pub interrupts: &'a mut VecDeque<(u16, u16)>,
}

/// The place of a virtio function on a card.
pub trait Seat: Send {
    /// Its registers and its side of the port.
    fn front(&self) -> &Front;
    /// The same, to be changed.
    fn front_mut(&mut self) -> &mut Front;
    /// One cycle of the world. True: something moved.
    fn cycle(&mut self, edge: &mut SeatEdge) -> bool;
    /// Nothing is to be done before somebody asks for it.
    fn idle(&self) -> bool;
    /// Chains, as in [`NetCounters`].
    fn chains(&self) -> [u64; 5];

    /// Posts a write of 1, 2 or 4 bytes to the function's register window, at a multiple of their number.
    fn write(&mut self, offset: u32, bytes: &[u8]) {
        self.front_mut().write(offset, bytes);
    }
    /// Starts a read of 1, 2 or 4 bytes behind the writes before it, at a multiple of their number.
    fn start_read(&mut self, offset: u32, bytes: usize) {
        self.front_mut().start_read(offset, bytes);
    }
    /// What the oldest read has found, once; bytes beyond those that were asked for are zero.
    fn take_read(&mut self) -> Option<[u8; 4]> {
        self.front_mut().take_read()
    }
    /// Begins a reset of the function, as its FLR does.
    fn start_reset(&mut self) {
        self.front_mut().start_reset();
    }
    /// A reset has begun and not ended.
    fn is_resetting(&self) -> bool {
        self.front().device.is_resetting()
    }
    /// A frame that has come by the card's port, whoever it is for: the function takes what its filter lets through.
    fn receive(&mut self, frame: &[u8]) {
        self.front_mut().receive(frame);
    }
    /// Frames that wait.
    fn receive_backlog(&self) -> usize {
        self.front().backlog()
    }
    /// What it has counted.
    fn counters(&self) -> NetCounters {
        self.front().counters(self.chains())
    }
}

/// What a virtio function has counted since power-on. Each frame that came is one of `filtered`, `delivered` and the causes of a drop; each chain that a driver made available since the queues
/// began is used, in stock or in hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetCounters {
    /// The device's own.
    pub device: Counters,
    /// Frames that came by the port.
    pub arrived: u64,
    /// Frames that left by it: those of the queues, cut into segments.
    pub left: u64,
    /// Frames that were longer than the port carries, and did not leave.
    pub oversize: u64,
    /// Chains of all queues that run: made available, skipped since their head was none, given back, in stock, in hand or on their way back.
    pub chains: [u64; 5],
}

impl NetCounters {
    /// Every frame that came has become something that has a name.
    pub fn frames_add_up(&self) -> bool {
        let d = &self.device;
        let dropped: u64 = [VirtioCause::RxSmall, VirtioCause::RxNoBuffer, VirtioCause::RxDown, VirtioCause::RxDma].into_iter().map(|cause| d.of(cause)).sum();
        self.arrived == d.filtered + d.frames && d.frames == d.delivered + dropped
    }

    /// Every chain is somewhere.
    pub fn chains_add_up(&self) -> bool {
        let [available, skipped, used, stock, hand] = self.chains;
        available == skipped + used + stock + hand
    }
}
