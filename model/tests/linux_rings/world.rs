//! The device with the wire behind it, as it stands while the driver runs. Linux calls into it at every memory barrier: there the device may do any number of steps, as a card would beside a
//! processor.
use crate::iommu::Iommu;
use crate::linux::Hooks;
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::window;
use ferric_model::virtio::queue::Ticket;
use ferric_model::virtio::{Device, Step};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::cell::RefCell;
use std::collections::VecDeque;

/// Queues: receive, transmit, control.
pub const QUEUES: u16 = 3;

pub struct World {
    pub device: Device,
    pub iommu: Iommu,
    pub rng: StdRng,
    /// Frames that have left, not yet compared.
    pub left: VecDeque<Vec<u8>>,
    /// Their tickets, until the wire has them.
    pub tickets: Vec<Ticket>,
    /// Frames that are in the driver's buffers.
    pub delivered: VecDeque<Vec<u8>>,
    /// Longest frame that the wire brings; 0: none.
    pub longest: usize,
    /// The driver has found fault with the device.
    pub blamed: bool,
    /// Notifications, and frames that found no buffer or too small ones.
    pub notified: u64,
    pub dropped: u64,
}

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// Something with the world. It must not be called while Linux runs, but by the hooks.
pub fn with<T>(f: impl FnOnce(&mut World) -> T) -> T {
    WORLD.with_borrow_mut(|world| f(world.as_mut().expect("a world")))
}

/// A new world with this device.
pub fn begin(device: Device, seed: u64) {
    let rng = StdRng::seed_from_u64(seed);
    let world = World { device, iommu: Iommu::default(), rng, left: VecDeque::new(), tickets: Vec::new(), delivered: VecDeque::new(), longest: 0, blamed: false, notified: 0, dropped: 0 };
    WORLD.set(Some(world));
}

impl World {
    /// One step of a queue; whether there was anything to do.
    pub fn step(&mut self, queue: u16) -> bool {
        match self.device.step(&mut self.iommu, queue) {
            Step::Idle => false,
            Step::Worked => true,
            Step::Frame(frame) => {
                assert_eq!(frame.offload, None);
                self.left.push_back(frame.bytes);
                self.tickets.push(frame.ticket);
                true
            }
        }
    }

    /// A frame has gone by the wire, any of those that are out.
    pub fn finish_one(&mut self) -> bool {
        if self.tickets.is_empty() {
            return false;
        }
        let n = self.rng.gen_range(0..self.tickets.len());
        let ticket = self.tickets.swap_remove(n);
        self.device.sent(ticket);
        true
    }

    /// A frame comes.
    pub fn arrive(&mut self, bytes: usize) -> Result<(), VirtioCause> {
        let frame: Vec<u8> = (0..bytes).map(|_| self.rng.gen()).collect();
        let outcome = self.device.receive(&mut self.iommu, 0, &frame, false);
        match outcome {
            Ok(()) => self.delivered.push_back(frame),
            Err(VirtioCause::RxNoBuffer | VirtioCause::RxSmall) => self.dropped += 1,
            Err(cause) => panic!("a frame is dropped for {cause:?}"),
        }
        outcome
    }

    /// Whatever a card may do beside a processor.
    pub fn anything(&mut self) {
        if self.rng.gen_bool(0.6) {
            return;
        }
        for _ in 0..self.rng.gen_range(1..6) {
            match self.rng.gen_range(0..6) {
                0 => _ = self.finish_one(),
                1 if self.longest > 0 => {
                    let bytes = self.rng.gen_range(14..=self.longest);
                    let _ = self.arrive(bytes);
                }
                _ => {
                    let queue = self.rng.gen_range(0..QUEUES);
                    self.step(queue);
                }
            }
        }
    }

    /// Until nothing is to be done before the driver does something.
    pub fn settle(&mut self) {
        let mut steps = 0;
        while (0..QUEUES).any(|queue| self.step(queue)) || self.finish_one() {
            steps += 1;
            assert!(steps < 1_000_000, "the device does not come to rest");
        }
    }
}

extern "C" fn barrier() {
    with(World::anything);
}

extern "C" fn fault() {
    with(|w| w.blamed = true);
}

extern "C" fn map(at: *mut u8, bytes: u64, direction: i32) -> u64 {
    with(|w| w.iommu.map(at, bytes, direction))
}

extern "C" fn unmap(address: u64, bytes: u64) {
    with(|w| w.iommu.unmap(address, bytes));
}

extern "C" fn notify(queue: u32, data: u32, has_data: bool) {
    with(|w| {
        w.notified += 1;
        w.device.write(window::NOTIFY + window::NOTIFY_MULTIPLIER * queue, if has_data { data.to_le_bytes().to_vec() } else { data.to_le_bytes()[..2].to_vec() }.as_slice());
    });
}

/// What Linux calls.
pub const HOOKS: Hooks = Hooks { barrier, fault, map, unmap, notify };
