//! Where the parts of a ring lie, and arithmetic on places in it (spec 2.7, 2.8).
use ferric_abi::virtio::MAX_SIZE;

/// The two kinds of ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Descriptors, available ring and used ring apart (spec 2.7).
    Split,
    /// One ring of descriptors that both sides write (spec 2.8).
    Packed,
}

/// A ring whose addresses and size can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    format: Format,
    size: u16,
    desc: u64,
    driver: u64,
    device: u64,
}

impl Ring {
    /// A ring of `size` descriptors, of `max` at most, whose descriptors, driver's area and device's area lie at these addresses. `None`: the size is 0, above the most, or of a
    /// split ring no power of two; an area is misaligned or runs over the end of the address space.
    pub fn new(format: Format, size: u16, max: u16, [desc, driver, device]: [u64; 3]) -> Option<Self> {
        let n = u64::from(size);
        let lies = |at: u64, align: u64, bytes: u64| at % align == 0 && at.checked_add(bytes).is_some();
        let good = match format {
            Format::Split => size.is_power_of_two() && lies(driver, 2, 6 + 2 * n) && lies(device, 4, 6 + 8 * n),
            Format::Packed => size > 0 && lies(driver, 4, 4) && lies(device, 4, 4),
        };
        (good && lies(desc, 16, 16 * n) && size <= max.min(MAX_SIZE)).then_some(Self { format, size, desc, driver, device })
    }

    /// Its format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Its descriptors.
    pub fn size(&self) -> u32 {
        self.size.into()
    }

    /// Places that are told apart. A place of a split ring is an index as the driver counts, of a packed ring a descriptor's number in the first (wrap counter 1) or second round.
    fn modulus(&self) -> u32 {
        match self.format {
            Format::Split => 1 << 16,
            Format::Packed => 2 * self.size(),
        }
    }

    /// The place `n` behind `at`.
    pub fn after(&self, at: u32, n: u32) -> u32 {
        (at + n) % self.modulus()
    }

    /// How far it is from one place to another, going forward.
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        (to + self.modulus() - from) % self.modulus()
    }

    /// Packed: descriptor and wrap counter of a place.
    pub fn slot(&self, at: u32) -> (u32, bool) {
        (at % self.size(), at < self.size())
    }

    /// Packed: the place of a descriptor under a wrap counter; `None`: the ring is not that long.
    pub fn place(&self, slot: u16, wrap: bool) -> Option<u32> {
        (slot < self.size).then(|| u32::from(slot) + if wrap { 0 } else { self.size() })
    }

    /// Address of a descriptor.
    pub fn descriptor(&self, slot: u32) -> u64 {
        self.desc + 16 * u64::from(slot)
    }

    /// Address of the available ring, or of the driver's event structure.
    pub fn driver(&self) -> u64 {
        self.driver
    }

    /// Address of the used ring, or of the device's event structure.
    pub fn device(&self) -> u64 {
        self.device
    }

    /// Split: address of the head that stands at place `at` of the available ring.
    pub fn avail_entry(&self, at: u32) -> u64 {
        self.driver + 4 + 2 * u64::from(at % self.size())
    }

    /// Split: address of `used_event`, behind the available ring.
    pub fn used_event(&self) -> u64 {
        self.driver + 4 + 2 * u64::from(self.size())
    }

    /// Split: address of the element at place `at` of the used ring.
    pub fn used_entry(&self, at: u32) -> u64 {
        self.device + 4 + 8 * u64::from(at % self.size())
    }

    /// Split: address of `avail_event`, behind the used ring.
    pub fn avail_event(&self) -> u64 {
        self.device + 4 + 8 * u64::from(self.size())
    }
}
