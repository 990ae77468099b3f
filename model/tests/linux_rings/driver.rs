//! The driver: it finds the device by its registers, as Linux' virtio_pci_modern does, makes random buffers available by `virtio_ring.c` and looks at what comes back.
use crate::linux::{Handle, Linux, Piece};
use crate::world::{with, World, QUEUES};
use ferric_abi::virtio::net::control;
use ferric_abi::virtio::{feature, status, window, CommonConfig, NetHeader};
use rand::Rng;
use std::collections::{HashMap, VecDeque};

pub const RECEIVE: u16 = 0;
pub const TRANSMIT: u16 = 1;
pub const CONTROL: u16 = 2;

/// A buffer of the driver, in pieces: first those that the device reads.
struct Buffer {
    pieces: Vec<(*mut u8, usize)>,
    out: usize,
    /// Of a command, whether it should be carried out.
    good: bool,
}

impl Buffer {
    fn new(out: Vec<Vec<u8>>, in_: Vec<Vec<u8>>, good: bool) -> Self {
        let n = out.len();
        let piece = |bytes: Vec<u8>| {
            let length = bytes.len();
            (Box::into_raw(bytes.into_boxed_slice()) as *mut u8, length)
        };
        Self { pieces: out.into_iter().chain(in_).map(piece).collect(), out: n, good }
    }

    /// The first bytes of what the device writes.
    fn written(&self, bytes: usize) -> Vec<u8> {
        // SAFETY: the pieces are ours, and the device has given them back.
        let mut all: Vec<u8> = self.pieces[self.out..].iter().flat_map(|(at, length)| unsafe { std::slice::from_raw_parts(*at, *length) }.to_vec()).collect();
        assert!(bytes <= all.len(), "{bytes} bytes in a buffer of {}", all.len());
        all.truncate(bytes);
        all
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        for (at, length) in &self.pieces {
            // SAFETY: they come from `Box::into_raw`.
            drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(*at, *length)) });
        }
    }
}

/// A queue of the driver.
struct Queue {
    handle: Handle,
    size: u32,
    buffers: HashMap<u64, Buffer>,
    /// In the order in which they were made available.
    order: VecDeque<u64>,
    /// Made available since the queue was enabled.
    added: u64,
    /// The driver waits for an interrupt.
    asleep: bool,
    callbacks: Box<i32>,
}

pub struct Driver<'a> {
    linux: &'a Linux,
    device: Handle,
    pub features: u64,
    queues: Vec<Queue>,
    token: u64,
    /// Frames that have been sent, and not been seen.
    expected: VecDeque<Vec<u8>>,
    /// Buffers that were made available, frames that came, commands that failed.
    pub buffers: u64,
    pub frames: u64,
    pub refused: u64,
}

/// Bytes cut into up to `most` pieces.
fn cut(w: &mut World, mut bytes: Vec<u8>, most: usize) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    while pieces.len() + 1 < most && bytes.len() > 1 && w.rng.gen_bool(0.7) {
        let rest = bytes.split_off(w.rng.gen_range(1..bytes.len()));
        pieces.push(std::mem::replace(&mut bytes, rest));
    }
    pieces.push(bytes);
    pieces
}

fn write(name: &str, value: u64) {
    let field = CommonConfig::LAYOUT.field(name).expect(name);
    let (offset, bytes) = (window::COMMON + field.offset as u32 / 8, value.to_le_bytes());
    with(|w| match field.width {
        64 => [(0, &bytes[..4]), (4, &bytes[4..])].into_iter().for_each(|(at, half)| w.device.write(offset + at, half)),
        width => w.device.write(offset, &bytes[..width / 8]),
    });
}

fn read(name: &str) -> u64 {
    let field = CommonConfig::LAYOUT.field(name).expect(name);
    let mut bytes = [0; 8];
    with(|w| w.device.read(window::COMMON + field.offset as u32 / 8, &mut bytes[..field.width / 8]));
    u64::from_le_bytes(bytes)
}

impl<'a> Driver<'a> {
    /// From reset to DRIVER_OK with rings of these sizes, taking of the features offered those in `wanted` that Linux' ring code has.
    pub fn new(linux: &'a Linux, wanted: u64, sizes: [u32; QUEUES as usize]) -> Self {
        write("device_status", 0);
        assert_eq!(read("device_status"), 0);
        let mut so_far = 0;
        let mut reach = |step: u8| {
            so_far |= u64::from(step);
            write("device_status", so_far);
            assert_eq!(read("device_status"), so_far);
        };
        reach(status::ACKNOWLEDGE);
        reach(status::DRIVER);
        let offered = (0..2).fold(0, |all, select| {
            write("device_feature_select", select);
            all | read("device_feature") << (32 * select)
        });
        // The transport of Linux, not its ring code, has queue reset.
        let transport = offered & wanted & feature::RING_RESET;
        // SAFETY: the functions of driver.c, called as it says.
        let (device, features) = unsafe {
            let device = (linux.ring_device)(offered & wanted);
            (device, (linux.ring_features)(device) | transport)
        };
        for select in 0..2 {
            write("driver_feature_select", select);
            write("driver_feature", features >> (32 * select) & 0xffff_ffff);
        }
        reach(status::FEATURES_OK);
        let mut driver = Self { linux, device, features, queues: Vec::new(), token: 0, expected: VecDeque::new(), buffers: 0, frames: 0, refused: 0 };
        driver.queues = (0..QUEUES).map(|n| driver.queue(n, sizes[usize::from(n)])).collect();
        reach(status::DRIVER_OK);
        driver
    }

    /// Makes a ring and enables it.
    fn queue(&self, n: u16, size: u32) -> Queue {
        let (mut areas, mut callbacks) = ([0; 3], Box::new(0));
        // SAFETY: as above; `callbacks` lives as long as the queue.
        let handle = unsafe { (self.linux.ring_queue)(self.device, n.into(), size, areas.as_mut_ptr(), &mut *callbacks) };
        assert!(!handle.is_null());
        write("queue_select", n.into());
        write("queue_size", size.into());
        write("queue_msix_vector", n.into());
        assert_eq!(read("queue_msix_vector"), n.into());
        for (name, address) in ["queue_desc", "queue_driver", "queue_device"].into_iter().zip(areas) {
            write(name, address);
            assert_eq!(read(name), address);
        }
        write("queue_enable", 1);
        assert_eq!(read("queue_enable"), 1);
        Queue { handle, size, buffers: HashMap::new(), order: VecDeque::new(), added: 0, asleep: false, callbacks }
    }

    /// Buffers made available in this life of a queue, and of these those that have not come back.
    pub fn counts(&self, n: u16) -> (u64, usize) {
        let queue = &self.queues[usize::from(n)];
        (queue.added, queue.order.len())
    }

    fn add(&mut self, n: u16, buffer: Buffer) -> bool {
        let queue = &mut self.queues[usize::from(n)];
        let limit = if self.features & feature::INDIRECT_DESC != 0 { 256 } else { queue.size as usize };
        if buffer.pieces.len() > limit {
            return false;
        }
        self.token += 1;
        let pieces: Vec<Piece> = buffer.pieces.iter().map(|(at, length)| Piece { at: *at, length: *length as u32 }).collect();
        let (out, in_) = (buffer.out as u32, (pieces.len() - buffer.out) as u32);
        // SAFETY: the pieces live until the buffer has come back; the token is a number, not an address.
        let status = unsafe { (self.linux.ring_add)(queue.handle, pieces.as_ptr(), out, in_, self.token as *mut _) };
        if status != 0 {
            return false;
        }
        queue.buffers.insert(self.token, buffer);
        queue.order.push_back(self.token);
        queue.added += 1;
        self.buffers += 1;
        true
    }

    /// A frame to be sent.
    pub fn send(&mut self) -> bool {
        let (pieces, frame) = with(|w| {
            let length = if w.rng.gen_bool(0.1) { w.rng.gen_range(14..9014) } else { w.rng.gen_range(14..200) };
            let frame: Vec<u8> = (0..length).map(|_| w.rng.gen()).collect();
            // Flags that nobody knows, lengths that are not right: without NEEDS_CSUM none of them counts.
            let header = NetHeader::default().with_other_flags(w.rng.gen()).with_hdr_len(w.rng.gen()).with_csum_start(w.rng.gen()).with_num_buffers(w.rng.gen());
            let most = w.rng.gen_range(1..8);
            (cut(w, [&header.0[..], &frame].concat(), most), frame)
        });
        let added = self.add(TRANSMIT, Buffer::new(pieces, Vec::new(), true));
        if added {
            self.expected.push_back(frame);
        }
        added
    }

    /// A buffer for frames, of this many bytes.
    pub fn post(&mut self, bytes: usize) -> bool {
        let pieces = with(|w| {
            let most = w.rng.gen_range(1..4);
            cut(w, vec![0x5a; bytes], most)
        });
        self.add(RECEIVE, Buffer::new(Vec::new(), pieces, true))
    }

    /// A command: a good one, or one that has to be refused.
    pub fn command(&mut self) -> bool {
        let (out, good) = with(|w| {
            let good = w.rng.gen_bool(0.8);
            let command = match (good, w.rng.gen_range(0..2)) {
                (true, 0) => vec![control::RX, w.rng.gen_range(control::RX_PROMISC..=control::RX_ALLMULTI), w.rng.gen_range(0..2)],
                (true, _) => [&[control::MAC, control::MAC_ADDR_SET][..], &w.rng.gen::<[u8; 6]>()].concat(),
                (false, 0) => vec![control::RX, control::RX_PROMISC],
                (false, _) => vec![w.rng.gen_range(100..200), w.rng.gen(), 0],
            };
            (cut(w, command, 3), good)
        });
        self.add(CONTROL, Buffer::new(out, vec![vec![0xee]], good))
    }

    /// What was made available is shown to the device, which is notified if it wants that.
    pub fn kick(&self, n: u16) {
        // SAFETY: as above.
        unsafe { (self.linux.ring_kick)(self.queues[usize::from(n)].handle) };
    }

    /// The next buffer that has come back, and the bytes that are in it. Buffers come back in their order.
    fn get(&mut self, n: u16) -> Option<(Buffer, usize)> {
        let queue = &mut self.queues[usize::from(n)];
        let mut length = 0;
        // SAFETY: as above.
        let token = unsafe { (self.linux.ring_get)(queue.handle, &mut length) } as u64;
        if token == 0 {
            return None;
        }
        assert_eq!(queue.order.pop_front(), Some(token), "queue {n}: buffers come back in their order");
        Some((queue.buffers.remove(&token).expect("a buffer that is out"), length as usize))
    }

    /// Everything that has come back; `false`: nothing had.
    fn reap(&mut self, n: u16) -> bool {
        let mut any = false;
        while let Some((buffer, length)) = self.get(n) {
            any = true;
            match n {
                RECEIVE => self.received(buffer, length),
                TRANSMIT => assert_eq!(length, 0),
                _ => {
                    assert_eq!(buffer.written(length), [if buffer.good { control::OK } else { control::ERR }]);
                    self.refused += u64::from(!buffer.good);
                }
            }
        }
        any
    }

    /// A frame: all its buffers have come back at once.
    fn received(&mut self, first: Buffer, length: usize) {
        let mut bytes = first.written(length);
        let mut raw = [0; NetHeader::BYTES];
        raw.copy_from_slice(&bytes[..NetHeader::BYTES]);
        let buffers = NetHeader(raw).num_buffers();
        assert_eq!(NetHeader(raw), NetHeader::default().with_num_buffers(buffers));
        assert!(buffers == 1 || buffers > 1 && self.features & feature::MRG_RXBUF != 0);
        for _ in 1..buffers {
            let (buffer, length) = self.get(RECEIVE).expect("all buffers of a frame come together");
            bytes.extend(buffer.written(length));
        }
        let wanted = with(|w| w.delivered.pop_front()).expect("a frame was delivered");
        assert!(bytes[NetHeader::BYTES..] == wanted, "a frame of {} bytes has changed", wanted.len());
        self.frames += 1;
    }

    /// Interrupts wake the queues that they are for; a queue that is awake takes what has come back, and may go to sleep.
    pub fn serve(&mut self) {
        for vector in with(|w| w.device.interrupts()) {
            let queue = &mut self.queues[usize::from(vector)];
            let before = *queue.callbacks;
            // SAFETY: as above.
            let handled = unsafe { (self.linux.ring_interrupt)(queue.handle) };
            assert_eq!(i32::from(handled == 1), *queue.callbacks - before, "Linux calls the driver back for what it handles");
            if queue.asleep {
                queue.asleep = false;
                // SAFETY: as above.
                unsafe { (self.linux.ring_disable)(queue.handle) };
            }
        }
        for n in 0..QUEUES {
            if !self.queues[usize::from(n)].asleep && with(|w| w.rng.gen_bool(0.8)) {
                self.reap(n);
                let delayed = n == TRANSMIT && with(|w| w.rng.gen_bool(0.3));
                let queue = &mut self.queues[usize::from(n)];
                // SAFETY: as above. False: more has come back meanwhile, and the driver stays awake.
                queue.asleep = unsafe { (self.linux.ring_enable)(queue.handle, delayed) };
            }
        }
        self.compare();
    }

    /// Frames leave as they were given, in their order.
    fn compare(&mut self) {
        for frame in with(|w| std::mem::take(&mut w.left)) {
            let wanted = self.expected.pop_front().expect("a frame was sent");
            assert!(frame == wanted, "a frame of {} bytes has changed", wanted.len());
        }
    }

    /// Nothing is in hand any more: what has been made available has been used, and the driver has been told, without a look that it was not asked for.
    pub fn settle(&mut self) {
        (0..QUEUES).for_each(|n| self.kick(n));
        for round in 0.. {
            assert!(round < 1000, "driver and device do not come to rest");
            with(World::settle);
            self.serve();
            let asleep = self.queues.iter().all(|queue| queue.asleep);
            if asleep && with(|w| w.tickets.is_empty()) && !with(|w| (0..QUEUES).any(|queue| w.step(queue))) {
                let interrupts = with(|w| w.device.interrupts());
                if interrupts.is_empty() {
                    break;
                }
                // They are for the next round.
                interrupts.iter().for_each(|n| self.queues[usize::from(*n)].asleep = false);
            }
        }
        for n in [TRANSMIT, CONTROL] {
            assert_eq!(self.queues[usize::from(n)].order.len(), 0, "queue {n}: buffers are not used, or nobody was told");
        }
        assert!(self.expected.is_empty() && with(|w| w.delivered.is_empty()), "frames are missing");
    }

    /// Takes back what the device has not used, and ends the ring.
    fn discard(&mut self, n: u16) {
        let queue = &mut self.queues[usize::from(n)];
        // SAFETY: as above; the device does not touch the ring any more.
        unsafe {
            loop {
                let token = (self.linux.ring_detach)(queue.handle) as u64;
                if token == 0 {
                    break;
                }
                queue.buffers.remove(&token).expect("a buffer that is out");
            }
            (self.linux.ring_delete)(queue.handle);
        }
        assert!(queue.buffers.is_empty(), "queue {n}: buffers are lost");
    }

    /// Resets a queue with whatever is in it, and enables it with another size.
    pub fn reset_queue(&mut self, n: u16, size: u32) {
        write("queue_select", n.into());
        write("queue_reset", 1);
        while read("queue_reset") != 0 {
            assert!(with(World::finish_one), "a queue reset waits for nothing");
        }
        assert_eq!(read("queue_enable"), 0);
        // Frames that had left have left; what is not in the driver's hands any more never arrived.
        self.compare();
        match n {
            TRANSMIT => self.expected.clear(),
            RECEIVE => with(|w| w.delivered.clear()),
            _ => (),
        }
        // The vector's earlier interrupts are for the old ring.
        with(|w| w.device.interrupts()).into_iter().filter(|vector| *vector != n).for_each(|other| self.queues[usize::from(other)].asleep = false);
        self.discard(n);
        self.queues[usize::from(n)] = self.queue(n, size);
    }

    /// Resets the device, and takes everything back.
    pub fn end(mut self) {
        write("device_status", 0);
        while read("device_status") != 0 {
            assert!(with(World::finish_one), "a reset waits for nothing");
        }
        (0..QUEUES).for_each(|n| self.discard(n));
        // SAFETY: as above.
        unsafe { (self.linux.ring_device_free)(self.device) };
        assert_eq!(with(|w| w.iommu.len()), 0, "Linux has mappings left");
    }
}
