//! Which pair of queues a received frame goes to (spec 5.1.6.5.6): the one by which the driver last sent a frame of the same flow, or the first.
use super::device::Device;
use ferric_abi::virtio::feature;

/// Flows that are told apart, a power of two; others share their place.
const PLACES: usize = 1024;

/// The pair of each flow.
pub(super) struct Flows(Box<[u16; PLACES]>);

impl Default for Flows {
    fn default() -> Self {
        Self(Box::new([0; PLACES]))
    }
}

impl Device {
    /// A frame of a flow leaves by this pair.
    pub(super) fn note_flow(&mut self, frame: &[u8], pair: u16) {
        if self.features & feature::MQ != 0 {
            if let Some(place) = place(frame) {
                self.flows.0[place] = pair;
            }
        }
    }

    /// The pair for a received frame.
    pub(super) fn pair_of(&self, frame: &[u8]) -> u16 {
        let pair = place(frame).map_or(0, |place| self.flows.0[place]);
        if pair < self.modes.pairs {
            pair
        } else {
            0
        }
    }
}

/// A flow's place: the same in both directions. Frames without ports have that of their addresses, others than IP none.
fn place(frame: &[u8]) -> Option<usize> {
    let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let ip = if word(12)? == 0x8100 { 18 } else { 14 };
    let (addresses, protocol, l4) = match frame.get(ip)? >> 4 {
        4 if word(ip - 2)? == 0x0800 => (frame.get(ip + 12..ip + 20)?, frame[ip + 9], ip + 4 * usize::from(frame[ip] & 15)),
        6 if word(ip - 2)? == 0x86dd => (frame.get(ip + 8..ip + 40)?, frame[ip + 6], ip + 40),
        _ => return None,
    };
    // A fragment behind the first has no ports, so none counts.
    let whole = frame[ip] >> 4 == 6 || word(ip + 6)? & 0x3fff == 0;
    let ports = if whole && matches!(protocol, 6 | 17) { frame.get(l4..l4 + 4) } else { None }.unwrap_or(&[0; 4]);
    let (a, b) = addresses.split_at(addresses.len() / 2);
    // Both ends count alike, whichever is the sender.
    let end = |address: &[u8], port: &[u8]| address.iter().chain(port).fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    let hash = end(a, &ports[..2]).wrapping_add(end(b, &ports[2..])).wrapping_add(u32::from(protocol));
    Some((hash ^ hash >> 16) as usize % PLACES)
}
