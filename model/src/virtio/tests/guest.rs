//! A guest: memory of which only some is mapped, and a driver that writes whatever it is told to.
use crate::virtio::queue::Ticket;
use crate::virtio::{Device, Memory, Offer, Step, Unmapped};
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::{feature, status, window, CommonConfig, NetConfig, PackedDesc, SplitDesc};

/// Flags of a descriptor, the same in both formats.
pub const NEXT: u16 = 1;
pub const WRITE: u16 = 2;
pub const INDIRECT: u16 = 4;

/// What every guest takes.
pub const BASE: u64 = feature::VERSION_1 | feature::ACCESS_PLATFORM;
pub const RECEIVE: u16 = 0;
pub const TRANSMIT: u16 = 1;
pub const CONTROL: u16 = 2;
/// Descriptors of a ring.
pub const SIZE: u16 = 8;
/// Where buffers are, and how many bytes.
pub const BUFFERS: u64 = 0x100_0000;
pub const BUFFER_BYTES: u64 = 0x4_0000;

/// Ranges of memory that are mapped; what was accessed, and what was refused.
#[derive(Default)]
pub struct Ram {
    pub regions: Vec<(u64, Vec<u8>)>,
    pub writes: Vec<(u64, Vec<u8>)>,
    pub reads: u64,
    pub refused: u64,
}

impl Ram {
    fn find(&mut self, at: u64, bytes: usize) -> Result<&mut [u8], Unmapped> {
        let inside = |from: u64, len: usize| at >= from && (at - from) as usize <= len && bytes <= len - (at - from) as usize;
        match self.regions.iter_mut().find(|(from, region)| inside(*from, region.len())) {
            Some((from, region)) => Ok(&mut region[(at - *from) as usize..][..bytes]),
            None => Err(Unmapped),
        }
    }

    /// What the device reaches; what it does not is counted.
    fn reach(&mut self, at: u64, bytes: usize) -> Result<&mut [u8], Unmapped> {
        self.refused += u64::from(self.find(at, bytes).is_err());
        self.find(at, bytes)
    }

    /// For the guest itself.
    pub fn put(&mut self, at: u64, bytes: &[u8]) {
        self.find(at, bytes.len()).expect("the guest's own memory").copy_from_slice(bytes);
    }

    pub fn get<const N: usize>(&mut self, at: u64) -> [u8; N] {
        self.find(at, N).expect("the guest's own memory").try_into().expect("N bytes")
    }
}

impl Memory for Ram {
    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), Unmapped> {
        self.reads += 1;
        into.copy_from_slice(self.reach(at, into.len())?);
        Ok(())
    }

    fn write(&mut self, at: u64, from: &[u8]) -> Result<(), Unmapped> {
        self.reach(at, from.len())?.copy_from_slice(from);
        self.writes.push((at, from.to_vec()));
        Ok(())
    }
}

/// A descriptor as the guest writes it.
#[derive(Clone, Copy, Debug)]
pub struct D {
    pub addr: u64,
    pub length: u32,
    pub flags: u16,
    /// Split: the next descriptor; packed: the buffer ID.
    pub tail: u16,
}

/// A descriptor of a buffer at an offset of the guest's buffers.
pub fn d(offset: u64, length: u32, flags: u16) -> D {
    D { addr: BUFFERS + offset, length, flags, tail: 0 }
}

impl D {
    pub fn tail(self, tail: u16) -> Self {
        Self { tail, ..self }
    }

    /// As an entry of an indirect table.
    pub fn bytes(self) -> [u8; 16] {
        let mut raw = [0; 16];
        raw[..8].copy_from_slice(&self.addr.to_le_bytes());
        raw[8..12].copy_from_slice(&self.length.to_le_bytes());
        raw[12..14].copy_from_slice(&self.flags.to_le_bytes());
        raw[14..].copy_from_slice(&self.tail.to_le_bytes());
        raw
    }
}

/// A driver's view of its ring.
#[derive(Clone, Copy, Default)]
struct Side {
    /// Descriptors made available so far.
    slots: u32,
    /// Split: chains made available so far.
    chains: u32,
    /// Used entries seen so far, and the slots of their chains.
    seen: u32,
}

pub struct Guest {
    pub ram: Ram,
    pub device: Device,
    pub packed: bool,
    /// Frames that have left and are not gone.
    pub out: Vec<Ticket>,
    sides: [Side; 3],
}

pub fn offer() -> Offer {
    let features = Offer::KNOWN & !feature::MQ;
    Offer { features, pairs: 1, max_size: SIZE, vectors: 4, stock: 4, config: NetConfig::default().with_mtu(1500) }
}

/// Descriptors, driver's area, device's area of a queue.
pub fn areas(n: u16) -> [u64; 3] {
    let base = 0x10_0000 * (1 + u64::from(n));
    [base, base + 0x4000, base + 0x8000]
}

impl Guest {
    /// A guest whose driver has taken these features beside those it must take; all its queues run.
    pub fn new(features: u64) -> Self {
        let mut guest = Self::bare(offer());
        guest.begin(features);
        guest
    }

    /// The same with a function that has been reset.
    pub fn begin(&mut self, features: u64) {
        self.packed = features & feature::RING_PACKED != 0;
        self.negotiate(features | BASE | feature::CTRL_VQ);
        (0..3).for_each(|n| self.enable(n));
        self.set("device_status", 15);
        assert_eq!(self.register("device_status"), 15);
    }

    /// A guest whose driver has come to FEATURES_OK, if the device takes these features.
    pub fn found(offer: Offer, features: u64) -> Self {
        let mut guest = Self::bare(offer);
        guest.packed = features & feature::RING_PACKED != 0;
        guest.negotiate(features);
        guest
    }

    fn bare(offer: Offer) -> Self {
        let mut ram = Ram::default();
        (0..3).for_each(|n| ram.regions.push((areas(n)[0], vec![0; 0xc000])));
        ram.regions.push((BUFFERS, vec![0; BUFFER_BYTES as usize]));
        Self { ram, device: Device::new(offer), packed: false, out: Vec::new(), sides: Default::default() }
    }

    fn negotiate(&mut self, features: u64) {
        self.set("device_status", (status::ACKNOWLEDGE | status::DRIVER).into());
        for select in 0..2 {
            self.set("driver_feature_select", select);
            self.set("driver_feature", features >> (32 * select) & 0xffff_ffff);
        }
        self.set("device_status", 11);
    }

    pub fn enable(&mut self, n: u16) {
        self.describe(n, SIZE, areas(n));
        self.set("queue_enable", 1);
        assert_eq!(self.register("queue_enable"), 1);
        self.sides[usize::from(n)] = Side::default();
    }

    pub fn describe(&mut self, n: u16, size: u16, [desc, driver, device]: [u64; 3]) {
        let writes = [("queue_select", n.into()), ("queue_size", size.into()), ("queue_msix_vector", n.into()), ("queue_desc", desc), ("queue_driver", driver), ("queue_device", device)];
        writes.into_iter().for_each(|(name, value)| self.set(name, value));
    }

    pub fn set(&mut self, name: &str, value: u64) {
        let field = CommonConfig::LAYOUT.field(name).expect("a register");
        let at = window::COMMON + field.offset as u32 / 8;
        let bytes = value.to_le_bytes();
        match field.width {
            64 => {
                self.device.write(at + 4, &bytes[4..]);
                self.device.write(at, &bytes[..4]);
            }
            width => self.device.write(at, &bytes[..width / 8]),
        }
    }

    pub fn register(&mut self, name: &str) -> u64 {
        let field = CommonConfig::LAYOUT.field(name).expect("a register");
        let mut bytes = [0; 8];
        self.device.read(window::COMMON + field.offset as u32 / 8, &mut bytes[..field.width / 8]);
        u64::from_le_bytes(bytes)
    }

    pub fn count(&self, cause: VirtioCause) -> u64 {
        self.device.counters().of(cause)
    }

    /// Makes a chain available: these descriptors one behind the other in the ring, where `tail` of those with NEXT is right without being said, unless it is not 0.
    pub fn publish(&mut self, n: u16, chain: &[D]) {
        let side = self.sides[usize::from(n)];
        let desc = areas(n)[0];
        let size = u32::from(SIZE);
        for (k, d) in chain.iter().enumerate().rev() {
            let place = side.slots + k as u32;
            let slot = place % size;
            let mut raw = d.bytes();
            if self.packed {
                let wrap = place / size % 2 == 0;
                raw[12..].copy_from_slice(&PackedDesc(raw_packed(*d)).with_avail(wrap).with_used(!wrap).0[12..]);
            } else if d.flags & NEXT != 0 && d.tail == 0 {
                raw = SplitDesc(raw).with_next(((slot + 1) % size) as u16).0;
            }
            self.poke(desc + 16 * u64::from(slot), &raw);
        }
        if !self.packed {
            self.head(n, (side.slots % size) as u16);
        }
        self.sides[usize::from(n)].slots += chain.len() as u32;
    }

    /// Split: makes a head available, whatever it is.
    pub fn head(&mut self, n: u16, head: u16) {
        assert!(!self.packed);
        let chains = self.sides[usize::from(n)].chains;
        let driver = areas(n)[1];
        self.poke(driver + 4 + 2 * u64::from(chains % u32::from(SIZE)), &head.to_le_bytes());
        self.poke(driver + 2, &(chains as u16 + 1).to_le_bytes());
        self.sides[usize::from(n)].chains += 1;
    }

    /// Split: the available index goes on by so many.
    pub fn jump(&mut self, n: u16, by: u16) {
        if !self.packed {
            let at = areas(n)[1] + 2;
            if let Ok(idx) = self.ram.find(at, 2) {
                let now = u16::from_le_bytes([idx[0], idx[1]]).wrapping_add(by);
                idx.copy_from_slice(&now.to_le_bytes());
            }
        }
    }

    /// Writes where memory may not be mapped any more.
    pub fn poke(&mut self, at: u64, bytes: &[u8]) {
        if let Ok(to) = self.ram.find(at, bytes.len()) {
            to.copy_from_slice(bytes);
        }
    }

    /// Split: the head of the last chain of so many descriptors.
    pub fn head_of_last(&self, n: u16, slots: u32) -> u32 {
        (self.sides[usize::from(n)].slots - slots) % u32::from(SIZE)
    }

    pub fn notify(&mut self, n: u16) {
        self.device.write(window::NOTIFY + window::NOTIFY_MULTIPLIER * u32::from(n), &n.to_le_bytes());
    }

    /// One step; a frame that leaves stays out.
    pub fn step(&mut self, n: u16) -> Step {
        let step = self.device.step(&mut self.ram, n);
        if let Step::Frame(frame) = &step {
            self.out.push(frame.ticket);
        }
        step
    }

    /// Steps of a queue until it is idle; frames that leave are gone at once. They are returned.
    pub fn run(&mut self, n: u16) -> Vec<Vec<u8>> {
        self.notify(n);
        let mut frames = Vec::new();
        for _ in 0..10_000 {
            match self.device.step(&mut self.ram, n) {
                Step::Idle => return frames,
                Step::Worked => (),
                Step::Frame(frame) => {
                    self.device.sent(frame.ticket);
                    frames.push(frame.bytes);
                }
            }
        }
        panic!("queue {n} does not come to rest");
    }

    /// What has come back in a queue: identifier and length. `slots`: descriptors of each chain.
    pub fn used(&mut self, n: u16, slots: u32) -> Vec<(u32, u32)> {
        let [desc, _, device] = areas(n);
        let size = u32::from(SIZE);
        let mut all = Vec::new();
        loop {
            let seen = self.sides[usize::from(n)].seen;
            if self.packed {
                let entry = PackedDesc(self.ram.get(desc + 16 * u64::from(seen % size)));
                let wrap = seen / size % 2 == 0;
                if entry.avail() != wrap || entry.used() != wrap {
                    return all;
                }
                assert_eq!(entry.write(), entry.length() > 0, "WRITE says that the length counts");
                all.push((entry.id().into(), entry.length()));
                self.sides[usize::from(n)].seen += slots;
            } else {
                let idx = u16::from_le_bytes(self.ram.get(device + 2));
                if idx == seen as u16 {
                    return all;
                }
                let raw: [u8; 8] = self.ram.get(device + 4 + 8 * u64::from(seen % size));
                let entry = ferric_abi::virtio::UsedElem(raw);
                all.push((entry.id(), entry.length()));
                self.sides[usize::from(n)].seen += 1;
            }
        }
    }

    /// The function still works: a frame leaves.
    pub fn assert_works(&mut self) {
        assert_eq!(self.register("device_status"), 15);
        self.ram.put(BUFFERS + 0x3_f000, &[7; 60]);
        self.publish(TRANSMIT, &[d(0x3_f000 - 12, 72, 0)]);
        assert_eq!(self.run(TRANSMIT), [[7; 60]]);
    }

    /// It needs a reset, has said so by its configuration interrupt, and works after one.
    pub fn assert_stopped(mut self) {
        assert_eq!(self.register("device_status"), 15 | u64::from(status::NEEDS_RESET));
        assert_eq!(self.device.step(&mut self.ram, TRANSMIT), Step::Idle);
        assert_eq!(self.device.receive(&mut self.ram, 0, &[0; 60], false), Err(VirtioCause::RxDown));
        let mut isr = [0];
        self.device.read(window::ISR, &mut isr);
        assert_eq!(isr[0] & ferric_abi::virtio::isr::CONFIG, ferric_abi::virtio::isr::CONFIG);
        self.set("device_status", 0);
        let out = std::mem::take(&mut self.out);
        for ticket in out {
            assert_ne!(self.register("device_status"), 0, "a frame is out");
            self.device.sent(ticket);
        }
        assert_eq!(self.register("device_status"), 0);
    }
}

fn raw_packed(d: D) -> [u8; 16] {
    PackedDesc::default().with_addr(d.addr).with_length(d.length).with_id(d.tail).with_has_next(d.flags & NEXT != 0).with_write(d.flags & WRITE != 0).with_indirect(d.flags & INDIRECT != 0).0
}

/// An entry of an indirect table of either format.
pub fn entry(packed: bool, d: D) -> [u8; 16] {
    if packed {
        raw_packed(d)
    } else {
        d.bytes()
    }
}
