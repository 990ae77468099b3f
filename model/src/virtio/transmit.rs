//! Transmit: a chain becomes a frame with what is to be done to it, or goes back with a cause.
use super::device::{Device, Step};
use super::engine::Taken;
use super::memory::{Memory, Unmapped};
use super::offload::{judge, Offload};
use super::queue::Ticket;
use super::walk::{total, Segment};
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::NetHeader;

/// Bytes of an Ethernet header without tag.
pub const ETHERNET: u64 = 14;
/// Longest frame that is to be segmented, Ethernet header and tag included.
pub const LONGEST: u64 = 65_550;

/// A frame that leaves, before it is segmented or gets its checksum: see [`Frame::segments`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// For [`Device::sent`].
    pub ticket: Ticket,
    /// From its Ethernet header on, without check sequence.
    pub bytes: Vec<u8>,
    /// What is to be done to it; `None`: it leaves as it is.
    pub offload: Option<Offload>,
}

/// Reads all of some segments.
pub fn gather(memory: &mut dyn Memory, segments: &[Segment]) -> Result<Vec<u8>, Unmapped> {
    let mut bytes = Vec::new();
    for segment in segments {
        let from = bytes.len();
        bytes.resize(from + segment.length as usize, 0);
        memory.read(segment.addr, &mut bytes[from..])?;
    }
    Ok(bytes)
}

impl Device {
    pub(super) fn transmit(&mut self, memory: &mut dyn Memory, queue: u16, taken: Taken) -> Step {
        let ticket = self.queues[usize::from(queue)].ticket(queue, taken.number);
        match self.frame(memory, &taken.chain.readable) {
            Ok((bytes, offload)) => {
                self.counters.transmitted += 1;
                self.note_flow(&bytes, queue / 2);
                Step::Frame(Frame { ticket, bytes, offload })
            }
            Err(cause) => {
                self.counters.count(cause);
                self.sent(ticket);
                Step::Worked
            }
        }
    }

    fn frame(&self, memory: &mut dyn Memory, segments: &[Segment]) -> Result<(Vec<u8>, Option<Offload>), VirtioCause> {
        let length = total(segments);
        let header = NetHeader::BYTES as u64;
        if length < header + ETHERNET {
            return Err(VirtioCause::Short);
        }
        if length > header + LONGEST {
            return Err(VirtioCause::Oversize);
        }
        let mut bytes = gather(memory, segments).map_err(|_| VirtioCause::TxDma)?;
        let frame = bytes.split_off(NetHeader::BYTES);
        let mut raw = [0; NetHeader::BYTES];
        raw.copy_from_slice(&bytes);
        let offload = judge(&NetHeader(raw), &frame, self.features)?;
        Ok((frame, offload))
    }
}
