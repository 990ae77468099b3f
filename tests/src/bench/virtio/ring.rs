//! A driver's split ring whose chains are of one descriptor and one buffer each, in the order of their places, and the frames in them.
use super::Area;
use crate::guest::Guest;
use crate::traffic::pattern;
use ferric_abi::virtio::{NetHeader, SplitDesc};

/// Descriptors of a ring, and bytes of memory that it has with its buffers.
pub(super) const SIZE: u16 = 256;
pub(super) const APART: u64 = 0x10_0000;
/// Where in there the two rings and the buffers are.
const AVAIL: u64 = 0x2000;
const USED: u64 = 0x4000;
const BUFFERS: u64 = 0x1_0000;
/// Bytes between two buffers, and of one that takes a frame.
const STRIDE: u64 = 2048;
const ROOM: u32 = 1536;
/// A sent chain's place in its buffer: as Linux' transmit chains of 60 bytes mostly begin, so that they touch two lines.
const SENT_AT: u64 = 50;
/// Bytes of the header in front of a frame.
pub(super) const HEADER: usize = NetHeader::BYTES;

/// UDP's port to which all frames go.
const PORT: u16 = 9;
/// Where a frame's number stands: behind Ethernet, IPv4 and UDP.
const NUMBER_AT: usize = 14 + 20 + 8;

/// A ring.
pub(super) struct Ring {
    pub(super) queue: u16,
    pub(super) function: u16,
    pub(super) receives: bool,
    /// Descriptors, available ring, used ring.
    pub(super) areas: [u64; 3],
    avail: u16,
    notified: u16,
    last: u16,
    /// Bytes of the chains that are out, by their place.
    lengths: Vec<u32>,
}

impl Ring {
    /// In its function's memory, where its queue's number says.
    pub(super) fn new(queue: u16, function: u16, receives: bool, guest: &Guest) -> Self {
        let base = guest.base() + APART * u64::from(queue);
        Self { queue, function, receives, areas: [base, base + AVAIL, base + USED], avail: 0, notified: 0, last: 0, lengths: vec![0; SIZE.into()] }
    }

    fn buffer(&self, place: u16) -> u64 {
        self.areas[0] + BUFFERS + STRIDE * u64::from(place)
    }

    /// `address` is where a buffer begins; in the used ring.
    pub(super) fn begins(&self, address: u64) -> bool {
        (self.buffer(0)..self.buffer(SIZE)).contains(&address) && (address - self.buffer(0)).is_multiple_of(STRIDE)
    }

    pub(super) fn is_used_ring(&self, address: u64) -> bool {
        (self.areas[2]..self.areas[2] + AVAIL).contains(&address)
    }

    pub(super) fn area(&self, address: u64) -> Area {
        match address.wrapping_sub(self.areas[0]) {
            at if at < AVAIL => Area::Descriptor,
            at if at < USED => Area::Available,
            at if (BUFFERS..BUFFERS + STRIDE * u64::from(SIZE)).contains(&at) => Area::Payload,
            _ => Area::Other,
        }
    }

    /// Chains that may be posted.
    pub(super) fn free(&self) -> u16 {
        SIZE - self.avail.wrapping_sub(self.last)
    }

    /// A chain with this frame to be sent, or to take one. Nothing is shown yet.
    pub(super) fn post(&mut self, guest: &mut Guest, frame: Option<&[u8]>) {
        let place = self.avail % SIZE;
        let (at, length) = match frame {
            Some(frame) => {
                let at = self.buffer(place) + SENT_AT;
                guest.put(at, &NetHeader::default().0);
                guest.put(at + HEADER as u64, frame);
                (at, (HEADER + frame.len()) as u32)
            }
            None => (self.buffer(place), ROOM),
        };
        self.lengths[usize::from(place)] = length;
        let desc = SplitDesc::default().with_addr(at).with_length(length).with_write(self.receives);
        guest.put(self.areas[0] + (SplitDesc::BYTES as u64) * u64::from(place), &desc.0);
        guest.put(self.areas[1] + 4 + 2 * u64::from(place), &place.to_le_bytes());
        self.avail = self.avail.wrapping_add(1);
    }

    /// What has been posted becomes available. Whether the device wants to be told.
    pub(super) fn show(&mut self, guest: &mut Guest) -> bool {
        guest.put(self.areas[1] + 2, &self.avail.to_le_bytes());
        let (old, new) = (std::mem::replace(&mut self.notified, self.avail), self.avail);
        let event = guest.word(self.areas[2] + 4 + 8 * u64::from(SIZE));
        new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old)
    }

    /// The next used chain: what has been written into it. Error: a chain that is not the oldest.
    pub(super) fn take(&mut self, guest: &mut Guest) -> Result<Option<Vec<u8>>, String> {
        if self.last == guest.word(self.areas[2] + 2) {
            return Ok(None);
        }
        let place = self.last % SIZE;
        let element = guest.get(self.areas[2] + 4 + 8 * u64::from(place), 8);
        let number = |n: usize| u32::from_le_bytes([element[n], element[n + 1], element[n + 2], element[n + 3]]);
        if number(0) != u32::from(place) || number(4) > self.lengths[usize::from(place)] {
            return Err(format!("queue {}: chain {} of {} bytes came back, {place} was the oldest", self.queue, number(0), number(4)));
        }
        self.last = self.last.wrapping_add(1);
        // The next interrupt is wanted when there is one more.
        guest.put(self.areas[1] + 4 + 2 * u64::from(SIZE), &self.last.to_le_bytes());
        Ok(Some(guest.get(self.buffer(place), number(4) as usize)))
    }
}

/// A frame of `size` bytes, all of which its number and its addresses say: UDP without a checksum.
pub(super) fn frame(to: [u8; 6], from: [u8; 6], flow: u16, number: u64, size: usize) -> Vec<u8> {
    let mut f = [&to[..], &from, &[8, 0, 0x45, 0]].concat();
    f.extend((size as u16 - 14).to_be_bytes());
    f.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 7, 0, 1, 10, 7, 0, 2]);
    let sum = f[14..].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    f[24..26].copy_from_slice(&(!(sum as u16 + (sum >> 16) as u16)).to_be_bytes());
    for word in [flow, PORT, size as u16 - 34, 0] {
        f.extend(word.to_be_bytes());
    }
    f.extend(number.to_be_bytes());
    (f.len()..size).for_each(|i| f.push(pattern(number, i)));
    f
}

/// The number that a frame says it has.
pub(super) fn number_of(frame: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(frame.get(NUMBER_AT..NUMBER_AT + 8)?.try_into().ok()?))
}
