//! A driver of a ring, split or packed (`packed.rs`): posts chains of any shape, notifies when the device's event says so, and looks at used entries only when it has been interrupted.
use super::packed_ring::Packed;
use super::HEADER;
use crate::tb::Rng;
use crate::virtio::testing::Guest;
use ferric_abi::virtio::{feature, NetHeader, SplitDesc};
use ferric_model::virtio::offload::judge;
use ferric_model::virtio::queue::Ticket;
use ferric_model::virtio::transmit::Frame;
use ferric_model::virtio::verdict::is_verified;
use std::collections::HashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Receive,
    Transmit,
}

/// Bytes between what belongs to two queues, and to two chains.
pub const APART: u64 = 0x100_0000;
const CHAIN: u64 = 0x4000;
/// The header's flag that a checksum is right.
const DATA_VALID: u8 = 2;
/// Shortest and longest frame that is sent.
const SHORTEST: u64 = 20;
const LONGEST: u64 = 9018;

pub struct Ring {
    pub queue: u16,
    pub function: u16,
    pub size: u16,
    pub kind: Kind,
    pub events: bool,
    /// Frames may take several chains, which are short then.
    pub merged: bool,
    /// Checksums are offloaded. `asks`: sent frames ask for them, offered or not, for things that no frame has, and for segments.
    pub sums: bool,
    pub asks: bool,
    /// It is a packed ring.
    pub packed: Option<Packed>,
    pub areas: [u64; 3],
    /// Where its buffers and its tables of descriptors lie.
    pub buffers: u64,
    pub tables: u64,
    /// Destination and source of what it sends; else the frame says the queue. Its longest frame.
    pub to: Option<[u8; 12]>,
    pub longest: u64,
    /// It posts nothing more.
    pub stops: bool,
    /// An interrupt has come.
    pub told: bool,
    /// Frames that it has sent, in order.
    pub frames: Vec<Vec<u8>>,
    pub posted: u64,
    pub returned: u64,
    pub received: u64,
    /// Those that took several chains.
    pub several: u64,
    /// Received frames whose checksum is said to be right; chains that ask for what cannot be done, and frames that leave with a checksum.
    pub sound: u64,
    pub refused: u64,
    pub summed: u64,
    avail: u16,
    notified: u16,
    last: u16,
    /// Descriptors that are free; those of chains that are out, and their buffers.
    free: Vec<u16>,
    out: HashMap<u16, (Vec<u16>, Vec<(u64, u32)>)>,
    /// Heads in the order in which they were posted.
    order: std::collections::VecDeque<u16>,
    /// Frames of those offered that were looked at: later ones come later.
    seen: usize,
}

impl Ring {
    pub fn new(queue: u16, function: u16, size: u16, kind: Kind, events: bool, guest: &mut Guest) -> Self {
        Self::at(queue, function, size, kind, events, [0x4_0000_0000, 0x40_0000_0000, 0x80_0000_0000], guest)
    }

    /// With rings, buffers and tables of all queues at `places`, [`APART`] between two queues.
    pub fn at(queue: u16, function: u16, size: u16, kind: Kind, events: bool, places: [u64; 3], guest: &mut Guest) -> Self {
        let [base, buffers, tables] = places.map(|place| place + APART * u64::from(queue));
        // The used ring of one queue begins four bytes behind a multiple of eight.
        let areas = [base, base + 0x1_0000 + 0x20 * u64::from(queue), base + 0x2_0000 + 4 * u64::from(queue)];
        for area in areas {
            guest.put(area, &[0; 0x1400]);
        }
        Self {
            queue,
            function,
            size,
            kind,
            events,
            merged: false,
            sums: false,
            asks: false,
            packed: None,
            areas,
            buffers,
            tables,
            to: None,
            longest: LONGEST,
            stops: false,
            told: true,
            frames: Vec::new(),
            posted: 0,
            returned: 0,
            received: 0,
            several: 0,
            sound: 0,
            refused: 0,
            summed: 0,
            avail: 0,
            notified: 0,
            last: 0,
            free: (0..size).collect(),
            out: HashMap::new(),
            order: Default::default(),
            seen: 0,
        }
    }

    fn used_event(&self) -> u64 {
        self.areas[1] + 4 + 2 * u64::from(self.size)
    }

    fn avail_event(&self) -> u64 {
        self.areas[2] + 4 + 8 * u64::from(self.size)
    }

    /// Posts up to three chains, then shows them all at once.
    pub fn post(&mut self, rng: &mut Rng, guest: &mut Guest) {
        for _ in 0..1 + rng.below(3) {
            let places = self.packed.as_ref().map_or(self.free.len(), |packed| packed.free(self.size));
            if self.stops || places < 5 {
                break;
            }
            self.chain(rng, guest);
        }
        match &mut self.packed {
            Some(packed) => packed.show(guest),
            None => guest.put(self.areas[1] + 2, &self.avail.to_le_bytes()),
        }
    }

    fn chain(&mut self, rng: &mut Rng, guest: &mut Guest) {
        let at = self.buffers + CHAIN * u64::from(self.free[self.free.len() - 1]) + rng.below(4096);
        let length = match self.kind {
            Kind::Receive if self.merged => HEADER as u64 + [0, 100, 500, 1514][rng.below(4) as usize],
            Kind::Receive => HEADER as u64 + [1514, 1600, 4000][rng.below(3) as usize],
            Kind::Transmit => {
                let most = [80, 300, 1514, LONGEST][rng.below(4) as usize].min(self.longest);
                HEADER as u64 + rng.range(SHORTEST, most)
            }
        };
        if self.kind == Kind::Transmit {
            let mut bytes = rng.bytes(length as usize);
            // No offload is asked for; the rest of the header means nothing then. The frame says whose it is.
            bytes[0] &= 0xfe;
            bytes[1] = 0;
            match self.to {
                Some(stations) => bytes[HEADER..HEADER + stations.len()].copy_from_slice(&stations),
                None => bytes[HEADER..HEADER + 2].copy_from_slice(&self.queue.to_le_bytes()),
            }
            if self.asks {
                ask(rng, &mut bytes);
            }
            guest.put(at, &bytes);
            let (header, frame) = bytes.split_at(HEADER);
            match judge(&NetHeader(header.try_into().expect("as long")), frame, if self.sums { feature::CSUM } else { 0 }) {
                Ok(offload) => {
                    self.summed += u64::from(offload.is_some());
                    self.frames.extend(Frame { ticket: Ticket::default(), bytes: frame.to_vec(), offload }.segments());
                }
                Err(_) => self.refused += 1,
            }
        }
        // Cut at any places: in the header, behind it, in the frame; an empty piece among them.
        let mut cuts = vec![0, length];
        for _ in 0..rng.below(3) {
            cuts.push(if rng.percent(40) { HEADER as u64 } else { rng.below(length) });
        }
        cuts.sort_unstable();
        let pieces: Vec<(u64, u32)> = cuts.windows(2).map(|w| (at + w[0], (w[1] - w[0]) as u32)).collect();
        let write = self.kind == Kind::Receive;
        let heads = match &mut self.packed {
            Some(packed) => {
                let id = self.free.pop().expect("a free one");
                packed.place(rng, guest, (self.areas[0], self.tables, self.size), id, &pieces, write);
                vec![id]
            }
            None => self.place(rng, guest, &pieces, write),
        };
        let head = heads[0];
        if self.packed.is_none() {
            guest.put(self.areas[1] + 4 + 2 * u64::from(self.avail % self.size), &head.to_le_bytes());
            self.avail = self.avail.wrapping_add(1);
        }
        self.posted += 1;
        self.order.push_back(head);
        self.out.insert(head, (heads, pieces));
    }

    /// Descriptors of a chain, direct or in a table.
    fn place(&mut self, rng: &mut Rng, guest: &mut Guest, pieces: &[(u64, u32)], write: bool) -> Vec<u16> {
        let desc = |n: usize, next: u16| SplitDesc::default().with_addr(pieces[n].0).with_length(pieces[n].1).with_write(write).with_has_next(n + 1 < pieces.len()).with_next(next);
        // Its buffers lie where its head says.
        let head = self.free.pop().expect("a free one");
        if rng.percent(30) {
            let table = self.tables + 0x100 * u64::from(head) + 16 * rng.below(8);
            for n in 0..pieces.len() {
                guest.put(table + 16 * n as u64, &desc(n, n as u16 + 1).0);
            }
            guest.put(self.areas[0] + 16 * u64::from(head), &SplitDesc::default().with_addr(table).with_length(16 * pieces.len() as u32).with_indirect(true).0);
            return vec![head];
        }
        let mut heads = vec![head];
        heads.extend(pieces[1..].iter().map(|_| self.free.swap_remove(rng.below(self.free.len() as u64) as usize)));
        for n in 0..pieces.len() {
            guest.put(self.areas[0] + 16 * u64::from(heads[n]), &desc(n, heads.get(n + 1).copied().unwrap_or_default()).0);
        }
        heads
    }

    /// Whether what has been posted since the last time has to be told of.
    pub fn wants_notification(&mut self, guest: &mut Guest) -> bool {
        if let Some(packed) = &mut self.packed {
            return packed.wants_notification(guest, self.areas[2], self.size, self.events);
        }
        let (old, new) = (self.notified, self.avail);
        self.notified = new;
        if !self.events {
            return old != new;
        }
        let event = guest.word(self.avail_event());
        new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old)
    }

    /// Takes what has been used, in the order of the ring; then says from when on it wants to be told.
    pub fn collect(&mut self, guest: &mut Guest, offered: &[Vec<u8>]) {
        self.told = false;
        loop {
            while self.is_used(guest) {
                let (mut bytes, mut full) = self.take(guest);
                if self.kind == Kind::Transmit {
                    assert!(bytes.is_empty());
                    continue;
                }
                assert_eq!((&bytes[1..HEADER - 2], bytes[HEADER - 1]), (&[0; HEADER - 3][..], 0), "queue {}: header", self.queue);
                let chains = u16::from(bytes[HEADER - 2]);
                assert!(chains == 1 || self.merged && chains > 0, "queue {}: {chains} chains", self.queue);
                for _ in 1..chains {
                    assert!(self.is_used(guest), "queue {}: some of {chains} chains of a frame are there", self.queue);
                    assert!(full, "queue {}: all chains but the last are full", self.queue);
                    let (more, now) = self.take(guest);
                    assert!(!more.is_empty(), "queue {}: a chain too many", self.queue);
                    bytes.extend(more);
                    full = now;
                }
                self.several += u64::from(chains > 1);
                self.check(&bytes, offered);
            }
            match &self.packed {
                Some(packed) => packed.ask(guest, self.areas[1], self.size, self.events),
                None => guest.put(self.used_event(), &self.last.to_le_bytes()),
            }
            if !self.is_used(guest) {
                return;
            }
        }
    }

    /// There is one more used chain.
    fn is_used(&self, guest: &mut Guest) -> bool {
        match &self.packed {
            Some(packed) => packed.is_used(guest, self.areas[0], self.size),
            None => self.last != guest.word(self.areas[2] + 2),
        }
    }

    /// The next used chain: what has been written into it, and whether it is full.
    fn take(&mut self, guest: &mut Guest) -> (Vec<u8>, bool) {
        let (head, length) = match &mut self.packed {
            Some(packed) => packed.take(guest, self.areas[0], self.size),
            None => {
                let element = guest.get(self.areas[2] + 4 + 8 * u64::from(self.last % self.size), 8);
                let word = |n: usize| u32::from_le_bytes([element[n], element[n + 1], element[n + 2], element[n + 3]]);
                self.last = self.last.wrapping_add(1);
                (word(0) as u16, word(4) as usize)
            }
        };
        assert_eq!(Some(head), self.order.pop_front(), "queue {}: not in order", self.queue);
        let (heads, pieces) = self.out.remove(&head).expect("it was out");
        self.free.extend(heads);
        self.returned += 1;
        let mut bytes: Vec<u8> = pieces.iter().flat_map(|(at, length)| guest.get(*at, *length as usize)).collect();
        let full = bytes.len() == length;
        bytes.truncate(length);
        (bytes, full)
    }

    /// A frame and its header: one of those offered, and none before it comes later.
    fn check(&mut self, bytes: &[u8], offered: &[Vec<u8>]) {
        let sound = self.sums && is_verified(&bytes[HEADER..]);
        assert_eq!(bytes[0], if sound { DATA_VALID } else { 0 }, "queue {}: {:02x?}", self.queue, &bytes[HEADER..]);
        self.sound += u64::from(sound);
        let n = offered[self.seen..].iter().position(|frame| *frame == bytes[HEADER..]);
        self.seen += n.unwrap_or_else(|| panic!("queue {}: {} bytes that nobody sent", self.queue, bytes.len())) + 1;
        self.received += 1;
    }
}

/// Writes into the header what the frame is to get, mostly something that it can get. The first two bytes of the frame stay as they are.
fn ask(rng: &mut Rng, bytes: &mut [u8]) {
    let length = bytes.len() - HEADER;
    let mut header = NetHeader::default().with_needs_csum(rng.percent(70));
    let at = 2 + rng.below(length as u64 - 3) as u16;
    let start = rng.below(u64::from(at) + 1) as u16;
    let (start, offset) = match rng.below(10) {
        // The checksum begins in the frame's last byte, behind it, far behind it; it is that far from where it counts.
        0 => ((length - 1) as u16, 0),
        1 => ((length - 2) as u16, rng.below(3) as u16),
        2 => (length as u16 + rng.below(3) as u16, 0),
        3 => (rng.next_u32() as u16 | 0x8000, rng.next_u32() as u16),
        4 => (start, rng.next_u32() as u16 | 0x8000),
        _ => (start, at - start),
    };
    header = header.with_csum_start(start).with_csum_offset(offset).with_gso_size(100);
    if rng.percent(10) {
        header = header.with_gso([1, 3, 4, 5, 0x7f][rng.below(5) as usize]);
    }
    // The rest means nothing.
    let others = rng.next_u32() as u8 & 0xfe;
    bytes[..HEADER].copy_from_slice(&header.0);
    bytes[0] |= others;
}
