//! A driver of a served virtio function, over vfio-user and without a virtual machine: registers, split rings (packed ones: `packed.rs`) in memory of its own, frames by UDP datagrams at the wire's other end.
use ferric_abi::pci;
use ferric_abi::virtio::{feature, isr, window, CommonConfig, NetHeader, SplitDesc};
use ferric_driver::eventfd::EventFd;
use ferric_driver::vfio_user::client::Client;
use ferric_driver::vfio_user::wire::index::{CONFIG_REGION, MSIX_IRQ};
use ferric_sim::pci::{Endpoint, ServeConfig, Server};
use ferric_sim::virtio::{FunctionConfig, NetCounters};
use ferric_sim::wire::WireConfig;
use ferric_sim::{Body, CardConfig, LinkConfig};
use std::fs::File;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(10);
pub const SIZE: u16 = 64;
pub const RECEIVE: u16 = 0;
pub const TRANSMIT: u16 = 1;
/// Queues at most: of four pairs, and the control queue behind them.
const QUEUES: usize = 9;
/// Where the guest's memory is for the device, and how much there is. Rings come first, then a buffer for each descriptor of each ring.
pub const BASE: u64 = 0x7_0000_0000;
pub const BYTES: u64 = 0x400_0000;
const BUFFERS: u64 = 0x10_0000;
const BUFFER: u64 = 0x1_0000;
/// Of these each driver takes what is offered, unless it says otherwise.
const TAKEN: u64 = feature::VERSION_1
    | feature::ACCESS_PLATFORM
    | feature::CTRL_VQ
    | feature::CTRL_RX
    | feature::CSUM
    | feature::GUEST_CSUM
    | feature::HOST_TSO4
    | feature::MRG_RXBUF
    | feature::INDIRECT_DESC
    | feature::MQ
    | feature::RSS;

/// A card that is served, with one virtio function, and the wire's other end.
pub struct Served {
    pub server: Server,
    pub socket: PathBuf,
    pub native: PathBuf,
    pub mac: [u8; 6],
    /// Features that a driver takes unless it says otherwise.
    pub taken: u64,
    /// Its pairs of queues, 1 to 4.
    pairs: u16,
    wire: UdpSocket,
}

impl Served {
    /// With the golden model in the function's seat.
    pub fn new() -> Self {
        Self::of(Body::Twin, 64, 1)
    }

    /// With what runs its rings, `width` bits if it is gateware, and so many pairs of queues.
    pub fn of(body: Body, width: usize, pairs: u16) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let dir = std::env::temp_dir().join(format!("ferric-virtio-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        std::fs::create_dir_all(&dir).unwrap();
        let [native, socket] = ["native", "virtio"].map(|name| dir.join(name));
        let own = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (wire, free) = (own(), own());
        let local = free.local_addr().unwrap();
        drop(free);
        wire.connect(local).unwrap();
        wire.set_read_timeout(Some(PATIENCE)).unwrap();
        let function = FunctionConfig { body, pairs, ..FunctionConfig::new(0, 4) };
        let card = CardConfig { body: Body::Twin, virtio: vec![function], ..ServeConfig::card(width) };
        let endpoints = vec![Endpoint { card: 0, function: 0, socket: native.clone() }, Endpoint { card: 0, function: 4, socket: socket.clone() }];
        let config = ServeConfig {
            cards: vec![card],
            endpoints,
            wire: WireConfig::Udp { local, remote: wire.local_addr().unwrap() },
            link: LinkConfig::default(),
            shared: false,
            sriov: false,
            capture: None,
            seed: 1,
        };
        Self { server: Server::start(&config).unwrap(), socket, native, mac: function.mac, taken: TAKEN & function.features(), pairs, wire }
    }

    pub fn send(&self, frame: &[u8]) {
        self.wire.send(frame).unwrap();
    }

    pub fn received(&self) -> Vec<u8> {
        let mut buffer = [0; 0x4000];
        let n = self.wire.recv(&mut buffer).expect("a frame");
        buffer[..n].to_vec()
    }

    /// All that have come.
    pub fn drain(&self) -> usize {
        self.wire.set_nonblocking(true).unwrap();
        let n = std::iter::from_fn(|| self.wire.recv(&mut [0; 0x4000]).ok()).count();
        self.wire.set_nonblocking(false).unwrap();
        n
    }

    /// The function has seen so many frames, and nothing is missing.
    pub fn assert_arrived(&self, frames: u64) {
        let end = Instant::now() + PATIENCE;
        loop {
            let counters = self.server.network(1);
            if counters.arrived >= frames && counters.frames_add_up() && counters.chains_add_up() {
                return;
            }
            assert!(Instant::now() < end, "{counters:?} of {frames} frames");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// So many chains of all its queues have been found.
    pub fn assert_available(&self, chains: u64) {
        let end = Instant::now() + PATIENCE;
        while self.server.network(1).chains[0] < chains {
            assert!(Instant::now() < end, "{:?}", self.server.network(1));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// What has been given back is a frame that came, one that left, or a command. The engine's lines are looked at when it rests, so this may be known a moment later than the frames.
    pub fn assert_given_back(&self) {
        let end = Instant::now() + PATIENCE;
        loop {
            let c = self.server.network(1);
            if c.chains[2] == c.device.delivered + c.device.transmitted + c.device.commands && c.chains_add_up() {
                return;
            }
            assert!(Instant::now() < end, "{c:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// What the function counts becomes what is expected: the counters that a program reads follow what it sees in its memory.
    #[track_caller]
    pub fn assert_counts<T: PartialEq + std::fmt::Debug>(&self, read: impl Fn(&NetCounters) -> T, expected: T) {
        let end = Instant::now() + PATIENCE;
        while read(&self.server.network(1)) != expected {
            if Instant::now() >= end {
                return assert_eq!(read(&self.server.network(1)), expected);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn assert_conserved(&self) {
        self.assert_arrived(0);
    }
}

/// A driver.
pub struct Guest {
    pub client: Client,
    pub memory: File,
    vectors: Vec<EventFd>,
    /// Chains made available, and used ones that have been seen.
    available: [u16; QUEUES],
    seen: [u16; QUEUES],
    /// The control queue.
    control: u16,
}

impl Guest {
    /// Connects, maps its memory, enables the function on the bus.
    pub fn connect(served: &Served) -> Self {
        let mut client = Client::connect(&served.socket).unwrap();
        // SAFETY: a name without end of its own; the descriptor is new and nobody else's.
        let memory = unsafe { File::from_raw_fd(libc::memfd_create(c"guest".as_ptr(), 0)) };
        memory.set_len(BYTES).unwrap();
        client.dma_map(BASE, BYTES, memory.as_raw_fd(), 0, true).unwrap();
        let vectors: Vec<EventFd> = (0..pci::MSIX_VECTORS).map(|_| EventFd::new().unwrap()).collect();
        client.set_eventfds(MSIX_IRQ, &vectors.iter().map(|v| v.as_fd()).collect::<Vec<_>>()).unwrap();
        client.write(CONFIG_REGION, 4, &[6, 4], false).unwrap();
        Self { client, memory, vectors, available: [0; QUEUES], seen: [0; QUEUES], control: 2 * served.pairs }
    }

    /// The same, with its queues running.
    pub fn running(served: &Served) -> Self {
        let mut guest = Self::connect(served);
        guest.begin(served.taken);
        guest
    }

    pub fn write(&mut self, offset: u32, bytes: &[u8]) {
        self.client.write(pci::BAR_WINDOW, offset.into(), bytes, false).unwrap();
    }

    pub fn read<const N: usize>(&mut self, offset: u32) -> [u8; N] {
        let mut bytes = [0; N];
        self.client.read(pci::BAR_WINDOW, offset.into(), &mut bytes).unwrap();
        bytes
    }

    pub fn config<const N: usize>(&mut self, offset: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.client.read(CONFIG_REGION, offset, &mut bytes).unwrap();
        bytes
    }

    fn place(name: &str) -> (u32, usize) {
        let field = CommonConfig::LAYOUT.field(name).expect("a register");
        (window::COMMON + field.offset as u32 / 8, field.width / 8)
    }

    pub fn set(&mut self, name: &str, value: u64) {
        let (at, width) = Self::place(name);
        let bytes = value.to_le_bytes();
        // Registers of 64 bits are written as two of 32 (spec 4.1.3.1).
        bytes[..width].chunks(4).zip((at..).step_by(4)).for_each(|(half, at)| self.write(at, half));
    }

    pub fn register(&mut self, name: &str) -> u64 {
        let (at, width) = Self::place(name);
        let mut bytes = [0; 8];
        self.client.read(pci::BAR_WINDOW, at.into(), &mut bytes[..width]).unwrap();
        u64::from_le_bytes(bytes)
    }

    /// Writes 0 to the status and reads until it is there, as Linux does.
    pub fn reset(&mut self) {
        self.set("device_status", 0);
        self.assert_register("device_status", 0);
    }

    /// A register has a value, or will have it: a reset takes its time.
    pub fn assert_register(&mut self, name: &str, value: u64) {
        let end = Instant::now() + PATIENCE;
        while self.register(name) != value {
            assert!(Instant::now() < end, "{name} does not become {value}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn area(queue: u16, part: u64) -> u64 {
        BASE + 0x4000 * u64::from(queue) + 0x1000 * part
    }

    pub fn begin(&mut self, features: u64) {
        self.prepare(features);
        self.go();
    }

    /// All but the last step of [`Self::begin`]: chains may be made available, and nobody looks at them.
    pub fn prepare(&mut self, features: u64) {
        self.reset();
        self.set("device_status", 1);
        self.set("device_status", 3);
        for word in 0..2 {
            self.set("driver_feature_select", word);
            self.set("driver_feature", features >> (32 * word) & 0xffff_ffff);
        }
        self.set("device_status", 11);
        assert_eq!(self.register("device_status"), 11);
        (0..=self.control).for_each(|queue| self.enable(queue));
    }

    /// Enables a queue, from its beginning on.
    pub fn enable(&mut self, queue: u16) {
        self.memory.write_all_at(&[0; 0x4000], Self::area(queue, 0) - BASE).unwrap();
        (self.available[usize::from(queue)], self.seen[usize::from(queue)]) = (0, 0);
        self.set("queue_select", queue.into());
        self.set("queue_size", SIZE.into());
        self.set("queue_msix_vector", u64::from(queue) + 1);
        assert_eq!(self.register("queue_msix_vector"), u64::from(queue) + 1);
        for (part, name) in [(0, "queue_desc"), (1, "queue_driver"), (2, "queue_device")] {
            self.set(name, Self::area(queue, part));
        }
        self.set("queue_enable", 1);
    }

    /// DRIVER_OK.
    pub fn go(&mut self) {
        self.set("device_status", 15);
        assert_eq!(self.register("device_status"), 15);
    }

    pub fn buffer(queue: u16, slot: u16) -> u64 {
        BASE + BUFFERS + BUFFER * (u64::from(queue) * u64::from(SIZE) + u64::from(slot))
    }

    pub fn poke(&self, at: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, at - BASE).unwrap();
    }

    pub fn peek<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.memory.read_exact_at(&mut bytes, at - BASE).unwrap();
        bytes
    }

    /// Makes a chain of one descriptor available.
    pub fn publish(&mut self, queue: u16, length: u32, write: bool) {
        let n = usize::from(queue);
        let slot = self.available[n] % SIZE;
        let desc = SplitDesc::default().with_addr(Self::buffer(queue, slot)).with_length(length).with_write(write);
        self.poke(Self::area(queue, 0) + 16 * u64::from(slot), &desc.0);
        self.show(queue, slot);
    }

    /// Makes a chain of buffers of these lengths available, one behind the other in memory, by a table behind them.
    pub fn publish_table(&mut self, queue: u16, lengths: &[u32], write: bool) {
        let slot = self.available[usize::from(queue)] % SIZE;
        let mut at = Self::buffer(queue, slot);
        let table = at + BUFFER - 0x1000;
        for (n, length) in lengths.iter().enumerate() {
            let desc = SplitDesc::default().with_addr(at).with_length(*length).with_write(write).with_has_next(n + 1 < lengths.len()).with_next(n as u16 + 1);
            self.poke(table + 16 * n as u64, &desc.0);
            at += u64::from(*length);
        }
        self.poke(Self::area(queue, 0) + 16 * u64::from(slot), &SplitDesc::default().with_addr(table).with_length(16 * lengths.len() as u32).with_indirect(true).0);
        self.show(queue, slot);
    }

    /// The next head of the available ring.
    fn show(&mut self, queue: u16, slot: u16) {
        let n = usize::from(queue);
        self.poke(Self::area(queue, 1) + 4 + 2 * u64::from(slot), &slot.to_le_bytes());
        self.available[n] = self.available[n].wrapping_add(1);
        self.poke(Self::area(queue, 1) + 2, &self.available[n].to_le_bytes());
    }

    /// The available index is somewhere else.
    pub fn jump(&mut self, queue: u16, by: u16) {
        self.poke(Self::area(queue, 1) + 2, &self.available[usize::from(queue)].wrapping_add(by).to_le_bytes());
    }

    pub fn notify(&mut self, queue: u16) {
        self.write(window::NOTIFY + window::NOTIFY_MULTIPLIER * u32::from(queue), &queue.to_le_bytes());
    }

    /// Buffers for received frames, each of `length` bytes.
    pub fn offer(&mut self, count: u16, length: u32) {
        (0..count).for_each(|_| self.publish(RECEIVE, length, true));
        self.notify(RECEIVE);
    }

    /// Sends a frame behind a header.
    pub fn transmit(&mut self, header: NetHeader, frame: &[u8]) {
        self.transmit_by(TRANSMIT, header, frame);
    }

    /// The same by a queue of any pair.
    pub fn transmit_by(&mut self, queue: u16, header: NetHeader, frame: &[u8]) {
        let at = Self::buffer(queue, self.available[usize::from(queue)] % SIZE);
        self.poke(at, &[&header.0[..], frame].concat());
        self.publish(queue, (header.0.len() + frame.len()) as u32, false);
        self.notify(queue);
    }

    /// A command and its data; what is answered.
    pub fn command(&mut self, bytes: &[u8]) -> u8 {
        // Two descriptors: what is read, then the answer.
        let (queue, slot) = (self.control, self.available[usize::from(self.control)] % SIZE);
        let (desc, at) = (Self::area(queue, 0), Self::buffer(queue, 0));
        self.poke(at, bytes);
        self.poke(at + 0x8000, &[0xee]);
        self.poke(desc + 16 * u64::from(slot), &SplitDesc::default().with_addr(at).with_length(bytes.len() as u32).with_has_next(true).with_next(SIZE - 1).0);
        self.poke(desc + 16 * u64::from(SIZE - 1), &SplitDesc::default().with_addr(at + 0x8000).with_length(1).with_write(true).0);
        self.poke(Self::area(queue, 1) + 4 + 2 * u64::from(slot), &slot.to_le_bytes());
        let available = &mut self.available[usize::from(queue)];
        *available = available.wrapping_add(1);
        self.memory.write_all_at(&available.to_le_bytes(), Self::area(queue, 1) + 2 - BASE).unwrap();
        self.notify(queue);
        self.used(queue);
        self.peek::<1>(at + 0x8000)[0]
    }

    /// The next used chain: its slot and length. It has been signalled.
    pub fn used(&mut self, queue: u16) -> (u16, u32) {
        let n = usize::from(queue);
        let end = Instant::now() + PATIENCE;
        while u16::from_le_bytes(self.peek(Self::area(queue, 2) + 2)) == self.seen[n] {
            assert!(Instant::now() < end, "nothing comes back in queue {queue}");
            std::thread::sleep(Duration::from_millis(1));
        }
        let entry: [u8; 8] = self.peek(Self::area(queue, 2) + 4 + 8 * u64::from(self.seen[n] % SIZE));
        self.seen[n] = self.seen[n].wrapping_add(1);
        let [id, length] = [0, 4].map(|at| u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]]));
        (id as u16, length)
    }

    /// The next received frame of one buffer, with its header.
    pub fn received(&mut self) -> (NetHeader, Vec<u8>) {
        self.received_by(RECEIVE)
    }

    /// The same of a queue of any pair.
    pub fn received_by(&mut self, queue: u16) -> (NetHeader, Vec<u8>) {
        let (slot, length) = self.used(queue);
        let mut bytes = vec![0; length as usize];
        self.memory.read_exact_at(&mut bytes, Self::buffer(queue, slot) - BASE).unwrap();
        let frame = bytes.split_off(NetHeader::BYTES);
        let mut header = NetHeader::default();
        header.0.copy_from_slice(&bytes);
        (header, frame)
    }

    /// The next received frame and the number of its buffers, all of which come at once.
    pub fn merged(&mut self) -> (u16, Vec<u8>) {
        let (header, mut frame) = self.received();
        let chains = header.num_buffers();
        let visible = u16::from_le_bytes(self.peek(Self::area(RECEIVE, 2) + 2)).wrapping_sub(self.seen[0]);
        assert!(visible + 1 >= chains, "{visible} more of {chains} chains are there");
        for _ in 1..chains {
            let (slot, length) = self.used(RECEIVE);
            let mut bytes = vec![0; length as usize];
            self.memory.read_exact_at(&mut bytes, Self::buffer(RECEIVE, slot) - BASE).unwrap();
            frame.extend(bytes);
        }
        (chains, frame)
    }

    /// The status of interrupts says that queues have had some, and reading it clears it. The last one may come behind what it is about, and so behind a reading.
    pub fn assert_status_read(&mut self) {
        let end = Instant::now() + PATIENCE;
        let set = std::iter::from_fn(|| Some(self.read::<1>(window::ISR)[0])).take_while(|status| *status != 0 && Instant::now() < end);
        let set: Vec<u8> = set.collect();
        assert!((1..10).contains(&set.len()) && set.iter().all(|status| *status == isr::QUEUE), "{} times {:?}", set.len(), set.first());
    }

    /// Interrupts of a queue since the last call.
    pub fn interrupts(&self, queue: u16) -> u64 {
        let end = Instant::now() + PATIENCE;
        loop {
            let n = self.vectors[usize::from(queue) + 1].take();
            if n > 0 || Instant::now() > end {
                return n;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
