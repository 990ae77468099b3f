//! The driver's side of a packed ring (VIRTIO 1.3, 2.8), for the front end beside this file.
use std::collections::VecDeque;

/// Flags of a descriptor that say whose it is.
const AVAILABLE: u16 = 1 << 7;
const USED: u16 = 1 << 15;
const NEXT: u16 = 1;
/// Bytes of a descriptor, and where its flags, its buffer's number and its length are.
const BYTES: usize = 16;
const FLAGS: usize = 14;
const ID: usize = 12;
const LENGTH: usize = 8;

/// Where the driver stands in a ring.
#[derive(Default)]
pub struct Packed {
    /// Descriptors by the number that a test gives them: they are put into the ring when their chain is offered.
    table: Vec<[u8; BYTES]>,
    /// Places, in the first round below the ring's size, in the second above.
    next: usize,
    used: usize,
    /// Descriptors of each chain that has been offered, in order.
    lengths: VecDeque<usize>,
}

impl Packed {
    /// Descriptor `n` of a split ring.
    pub fn describe(&mut self, n: u16, descriptor: [u8; BYTES]) {
        let n = usize::from(n);
        self.table.resize(self.table.len().max(n + 1), [0; BYTES]);
        self.table[n] = descriptor;
    }

    /// What has to be written where, in this order, from the ring's first byte on, for the chain that begins at `head` to be available.
    pub fn offer(&mut self, size: usize, head: u16) -> Vec<(usize, Vec<u8>)> {
        let (mut n, mut list) = (usize::from(head), Vec::new());
        // A chain without an end takes the whole ring.
        while let Some(d) = self.table.get(n).filter(|_| list.len() < size) {
            let word = |at: usize| u16::from_le_bytes([d[at], d[at + 1]]);
            let (flags, next) = (word(12), word(14));
            list.push((*d, flags));
            if flags & NEXT == 0 {
                break;
            }
            n = next.into();
        }
        let mut writes = Vec::new();
        // From the last to the first, whose flags come last of all.
        for (i, (d, flags)) in list.iter().enumerate().rev() {
            let place = (self.next + i) % (2 * size);
            let owner = if place < size { AVAILABLE } else { USED };
            let at = place % size * BYTES;
            writes.push((at, [&d[..ID], &head.to_le_bytes()].concat()));
            writes.push((at + FLAGS, (flags | owner).to_le_bytes().to_vec()));
        }
        self.next = (self.next + list.len()) % (2 * size);
        self.lengths.push_back(list.len());
        writes
    }

    /// The number and the bytes of the chain that was used next, if there is one; `ring` reads the ring.
    pub fn used(&mut self, size: usize, ring: impl Fn(usize, usize) -> Vec<u8>) -> Option<(u32, u32)> {
        let at = self.used % size * BYTES;
        let flags = ring(at + FLAGS, 2);
        let flags = u16::from_le_bytes([flags[0], flags[1]]);
        let wanted = if self.used < size { AVAILABLE | USED } else { 0 };
        let length = *self.lengths.front()?;
        if flags & (AVAILABLE | USED) != wanted {
            return None;
        }
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        self.lengths.pop_front();
        self.used = (self.used + length) % (2 * size);
        let d = ring(at, BYTES);
        Some((u16::from_le_bytes([d[ID], d[ID + 1]]).into(), u32::from_le_bytes(d[LENGTH..LENGTH + 4].try_into().unwrap())))
    }

    /// Where the ring is to begin, as front ends say it.
    pub fn base(&self, size: usize) -> u16 {
        (self.used % size) as u16 | if self.used < size { 1 << 15 } else { 0 }
    }
}
