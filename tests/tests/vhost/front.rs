//! A front end, in QEMU's place: the messages are the crate `vhost`'s, the guest's memory and its driver's side of the rings are ours.
use super::packed::Packed;
use memmap2::MmapMut;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use vhost::vhost_user::message::VhostUserProtocolFeatures;
use vhost::vhost_user::Frontend;
use vhost::VhostUserMemoryRegionInfo;
use vmm_sys_util::eventfd::{EventFd, EFD_NONBLOCK};

// For whoever says messages himself.
pub use vhost::vhost_user::VhostUserFrontend;
pub use vhost::{VhostBackend, VringConfigData};

/// Flags of descriptors.
pub const NEXT: u16 = 1;
pub const WRITE: u16 = 2;
pub const INDIRECT: u16 = 4;
/// Features.
pub const PROTOCOL: u64 = 1 << 30;
pub const PLAIN: u64 = 1 << 32 | PROTOCOL;
pub const MERGES: u64 = 1 << 15;
pub const TABLES: u64 = 1 << 28;
pub const EVENTS: u64 = 1 << 29;
pub const PACKED: u64 = 1 << 34;
pub const IN_ORDER: u64 = 1 << 35;
pub const CSUM: u64 = 1;
pub const GUEST_CSUM: u64 = 1 << 1;
pub const TSO: u64 = 1 << 11 | 1 << 12;
/// Rings.
pub const RX: usize = 0;
pub const TX: usize = 1;
/// Where the guest's memory is, for itself and for the front end, and its bytes.
pub const GUEST: u64 = 0x1000_0000;
const SEEN: u64 = 0x7000_0000_0000;
pub const BYTES: usize = 4 << 20;
/// Each ring has this much at the start, and behind both are the buffers.
const AREA: usize = 0x10000;
pub const BUFFERS: usize = 0x40000;
/// Bytes of a header, in front of every frame.
pub const HEADER: usize = 12;
/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// One side's view of a ring.
struct Ring {
    size: u16,
    available: u16,
    used: u16,
    packed: Packed,
    kick: EventFd,
    call: EventFd,
}

/// A front end with a guest's memory and two rings.
pub struct Front {
    pub wire: Frontend,
    /// The same connection, for messages that the crate does not send.
    raw: UnixStream,
    memory: MmapMut,
    file: File,
    rings: [Ring; 2],
    /// The ring's features.
    pub features: u64,
}

impl Front {
    /// Connects and says nothing.
    pub fn connect(socket: &Path) -> Self {
        // SAFETY: a name, and flags.
        let fd = unsafe { libc::memfd_create(c"guest".as_ptr(), libc::MFD_CLOEXEC) };
        assert!(fd >= 0);
        // SAFETY: ours alone.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(BYTES as u64).unwrap();
        // SAFETY: the file does not change its length.
        let memory = unsafe { MmapMut::map_mut(&file) }.unwrap();
        let ring = || Ring { size: 16, available: 0, used: 0, packed: Packed::default(), kick: EventFd::new(EFD_NONBLOCK).unwrap(), call: EventFd::new(EFD_NONBLOCK).unwrap() };
        let stream = UnixStream::connect(socket).unwrap();
        Self { raw: stream.try_clone().unwrap(), wire: Frontend::from_stream(stream, 2), memory, file, rings: [ring(), ring()], features: 0 }
    }

    /// As QEMU starts a device: features, memory, both rings of `size`.
    pub fn start(socket: &Path, features: u64, size: u16) -> Self {
        let mut front = Self::connect(socket);
        front.greet(features);
        [RX, TX].into_iter().for_each(|ring| front.begin(ring, size));
        front
    }

    /// Features and memory.
    pub fn greet(&mut self, features: u64) {
        self.wire.set_owner().unwrap();
        assert_eq!(self.wire.get_features().unwrap() & features, features);
        // SET_VRING_ENABLE before features are said, with an answer: QEMU does that.
        for ring in [RX, TX] {
            let words = |list: [u32; 5]| list.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
            self.raw.write_all(&words([18, 9, 8, ring as u32, 1])).unwrap();
            let mut answer = [0; 20];
            self.raw.read_exact(&mut answer).unwrap();
            assert_eq!(answer[..], words([18, 5, 8, 0, 0]));
        }
        self.wire.set_features(features).unwrap();
        assert_eq!(self.wire.get_protocol_features().unwrap(), VhostUserProtocolFeatures::REPLY_ACK);
        self.wire.set_protocol_features(VhostUserProtocolFeatures::REPLY_ACK).unwrap();
        self.wire.set_hdr_flags(vhost::vhost_user::message::VhostUserHeaderFlag::NEED_REPLY);
        self.features = features;
        self.show_memory();
    }

    /// The guest's memory.
    pub fn show_memory(&mut self) {
        let region = VhostUserMemoryRegionInfo { guest_phys_addr: GUEST, memory_size: BYTES as u64, userspace_addr: SEEN, mmap_offset: 0, mmap_handle: self.file.as_raw_fd() };
        self.wire.set_mem_table(&[region]).unwrap();
    }

    /// Where the parts of a ring are in memory: descriptors, available, used.
    pub fn areas(&self, ring: usize) -> [usize; 3] {
        let start = ring * AREA;
        [start, start + 0x8000, start + 0xa000]
    }

    /// A ring begins, or goes on with another size, where it stood.
    pub fn begin(&mut self, ring: usize, size: u16) {
        let [descriptors, available, used] = self.areas(ring).map(|at| SEEN + at as u64);
        let r = &mut self.rings[ring];
        r.size = size;
        self.wire.set_vring_num(ring, size).unwrap();
        let base = if self.features & PACKED != 0 { r.packed.base(size.into()) } else { r.available };
        self.wire.set_vring_base(ring, base).unwrap();
        let config = VringConfigData { queue_max_size: size, queue_size: size, flags: 0, desc_table_addr: descriptors, used_ring_addr: used, avail_ring_addr: available, log_addr: None };
        self.wire.set_vring_addr(ring, &config).unwrap();
        self.wire.set_vring_call(ring, &r.call).unwrap();
        self.wire.set_vring_kick(ring, &r.kick).unwrap();
        self.wire.set_vring_enable(ring, true).unwrap();
    }

    /// Stops a ring: how far it has been used.
    pub fn stop(&mut self, ring: usize) -> u16 {
        self.wire.get_vring_base(ring).unwrap() as u16
    }

    /// Of a packed ring: the first chain that has not come back.
    pub fn base(&self, ring: usize) -> u16 {
        self.rings[ring].packed.base(self.rings[ring].size.into())
    }

    /// As a driver does that has forgotten its ring: all indices are 0 again.
    pub fn forget(&mut self, ring: usize) {
        let [_, available, used] = self.areas(ring);
        self.put(available, &[0; 4]);
        self.put(used, &[0; 4]);
        (self.rings[ring].available, self.rings[ring].used) = (0, 0);
        if self.features & PACKED != 0 {
            self.put(self.areas(ring)[0], &[0; 16 * 16]);
            self.rings[ring].packed = Packed::default();
        }
    }

    /// Writes into memory.
    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// What is in memory.
    pub fn get(&self, at: usize, n: usize) -> Vec<u8> {
        // What the device writes changes behind the compiler's back.
        // SAFETY: in bounds by the slice; bytes.
        self.memory[at..at + n].iter().map(|b| unsafe { std::ptr::read_volatile(b) }).collect()
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.get(at, 2).try_into().unwrap())
    }

    /// A descriptor's bytes, of memory at `at` (an address of the guest).
    pub fn descriptor(at: u64, length: u32, flags: u16, next: u16) -> [u8; 16] {
        let mut d = [0; 16];
        d[..8].copy_from_slice(&at.to_le_bytes());
        d[8..12].copy_from_slice(&length.to_le_bytes());
        d[12..14].copy_from_slice(&flags.to_le_bytes());
        d[14..].copy_from_slice(&next.to_le_bytes());
        d
    }

    /// Descriptor `n` of a ring.
    pub fn describe(&mut self, ring: usize, n: u16, at: u64, length: u32, flags: u16, next: u16) {
        let descriptor = Self::descriptor(at, length, flags, next);
        match self.features & PACKED {
            0 => self.put(self.areas(ring)[0] + 16 * n as usize, &descriptor),
            _ => self.rings[ring].packed.describe(n, descriptor),
        }
    }

    /// Makes the chain that begins with `head` available, without a kick.
    pub fn offer(&mut self, ring: usize, head: u16) {
        let [descriptors, available, _] = self.areas(ring);
        let r = &mut self.rings[ring];
        if self.features & PACKED != 0 {
            for (at, bytes) in r.packed.offer(r.size.into(), head) {
                std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
                self.put(descriptors + at, &bytes);
            }
            return;
        }
        let (at, next) = (available + 4 + 2 * (r.available % r.size) as usize, r.available.wrapping_add(1));
        self.put(at, &head.to_le_bytes());
        self.index(ring, next);
    }

    /// Sets the available index, right or wrong.
    pub fn index(&mut self, ring: usize, value: u16) {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        let available = self.areas(ring)[1];
        self.put(available + 2, &value.to_le_bytes());
        self.rings[ring].available = value;
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }

    /// Chains made available so far.
    pub fn available(&self, ring: usize) -> u16 {
        self.rings[ring].available
    }

    /// Kicks.
    pub fn kick(&self, ring: usize) {
        self.rings[ring].kick.write(1).unwrap();
    }

    /// Whether the device wants a kick at the next chain: by the ring's flag, or its event index.
    pub fn rests(&self, ring: usize) -> bool {
        let used = self.areas(ring)[2];
        let r = &self.rings[ring];
        match self.features & EVENTS {
            0 => self.word(used) & 1 == 0,
            _ => self.word(used + 4 + 8 * r.size as usize) == r.available,
        }
    }

    /// The driver wants to be told of used chain number `at` (EVENT_IDX), or (without) of none, or all.
    pub fn want(&mut self, ring: usize, at: u16, none: bool) {
        let available = self.areas(ring)[1];
        let size = self.rings[ring].size as usize;
        self.put(available, &u16::from(none).to_le_bytes());
        self.put(available + 4 + 2 * size, &at.to_le_bytes());
    }

    /// How often the device has told since the last time.
    pub fn told(&self, ring: usize) -> u64 {
        self.rings[ring].call.read().unwrap_or(0)
    }

    /// The next used chain, if there is one: its head, and the bytes in it.
    pub fn used_now(&mut self, ring: usize) -> Option<(u32, u32)> {
        let [descriptors, _, used] = self.areas(ring);
        if self.features & PACKED != 0 {
            let mut packed = std::mem::take(&mut self.rings[ring].packed);
            let chain = packed.used(self.rings[ring].size.into(), |at, n| self.get(descriptors + at, n));
            self.rings[ring].packed = packed;
            return chain;
        }
        let r = &self.rings[ring];
        if self.word(used + 2) == r.used {
            return None;
        }
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        let entry = self.get(used + 4 + 8 * (r.used % r.size) as usize, 8);
        self.rings[ring].used = self.rings[ring].used.wrapping_add(1);
        let half = |n: usize| u32::from_le_bytes(entry[n..n + 4].try_into().unwrap());
        Some((half(0), half(4)))
    }

    /// The next used chain.
    pub fn used(&mut self, ring: usize) -> (u32, u32) {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.used_now(ring) {
                Some(chain) => return chain,
                None => assert!(Instant::now() < until, "ring {ring}: nothing has been used"),
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Offers buffer `n` of `bytes` to the receive ring, as descriptor `n`.
    pub fn receive_into(&mut self, n: u16, bytes: u32) {
        self.describe(RX, n, Self::buffer(n), bytes, WRITE, 0);
        self.offer(RX, n);
    }

    /// Where buffer `n`, of up to 16 KiB, is for the guest.
    pub fn buffer(n: u16) -> u64 {
        GUEST + (BUFFERS + (n as usize) * 0x4000) as u64
    }

    /// The bytes at an address of the guest.
    pub fn at(&self, address: u64, n: usize) -> Vec<u8> {
        self.get((address - GUEST) as usize, n)
    }

    /// Makes a frame available as chain `n` of the send ring, header and frame in one buffer; the descriptor is number `n`.
    pub fn send(&mut self, n: u16, header: &[u8], frame: &[u8]) {
        let at = Self::buffer(n);
        self.put((at - GUEST) as usize, &[header, frame].concat());
        self.describe(TX, n, at, (header.len() + frame.len()) as u32, 0, 0);
        self.offer(TX, n);
    }
}
