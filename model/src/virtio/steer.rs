//! Which pair of queues a received frame goes to: the one that its hash says ([`super::rss`]) or, when the driver has not asked for that, the one by which it last sent a frame of the same flow, or the first (spec 5.1.6.5.6).
use super::device::Device;
use super::flow::Flow;
use ferric_abi::virtio::feature;

/// log2 of the flows that are told apart; others share their place.
pub const LG_PLACES: usize = 10;
/// The generator polynomial of CRC-16 (CCITT).
pub const CRC: u16 = 0x1021;

/// The pair of each flow.
#[derive(Clone, Debug)]
pub struct Flows(Box<[u16; 1 << LG_PLACES]>);

impl Default for Flows {
    fn default() -> Self {
        Self(Box::new([0; 1 << LG_PLACES]))
    }
}

impl Flows {
    /// A frame of a flow leaves by this pair.
    pub fn note(&mut self, frame: &[u8], pair: u16) {
        if let Some(place) = place(frame) {
            self.0[place] = pair;
        }
    }

    /// The pair for a received frame, of so many in use.
    pub fn pair_of(&self, frame: &[u8], pairs: u16) -> u16 {
        let pair = place(frame).map_or(0, |place| self.0[place]);
        if pair < pairs {
            pair
        } else {
            0
        }
    }
}

impl Device {
    /// A frame of a flow leaves by this pair.
    pub(super) fn note_flow(&mut self, frame: &[u8], pair: u16) {
        if self.features & feature::MQ != 0 {
            self.flows.note(frame, pair);
        }
    }

    /// The pair for a received frame.
    pub(super) fn pair_of(&self, frame: &[u8]) -> u16 {
        self.rss.as_ref().map_or_else(|| self.flows.pair_of(frame, self.modes.pairs), |rss| rss.pair_of(frame))
    }
}

/// A step of CRC-16 by one byte.
pub fn crc_step(crc: u16, byte: u8) -> u16 {
    (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| if crc & 0x8000 != 0 { crc << 1 ^ CRC } else { crc << 1 })
}

/// A flow's place: the same in both directions. Frames without ports have that of their addresses, others than IP none. It is a choice of ours that costs little in gateware: CRC-16 of each end.
pub fn place(frame: &[u8]) -> Option<usize> {
    let flow = Flow::of(frame)?;
    let (from, to) = flow.ports.map_or((&[][..], &[][..]), |ports| ports.split_at(2));
    // Both ends count alike, whichever is the sender.
    let end = |address: &[u8], port: &[u8]| address.iter().chain(port).fold(0, |crc, byte| crc_step(crc, *byte));
    let sum = end(flow.src, from).wrapping_add(end(flow.dst, to)).wrapping_add(flow.protocol.into());
    Some(usize::from(sum) % (1 << LG_PLACES))
}
