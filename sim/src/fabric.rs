//! Links: rate, delay and faults, one direction each.
use crate::Rng;
use rand::{Rng as _, SeedableRng};
use std::collections::BinaryHeap;

/// Random faults, in parts per million of frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Lost.
    pub loss: u32,
    /// Delivered twice.
    pub duplicate: u32,
    /// Delayed by up to `reorder_cycles`, so that later frames overtake.
    pub reorder: u32,
    /// One bit flipped.
    pub corrupt: u32,
    /// Longest extra delay of a reordered frame.
    pub reorder_cycles: u32,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug)]
pub struct LinkConfig {
    /// Propagation delay in cycles.
    pub delay: u32,
    /// Bytes per 256 cycles the link carries (0: unlimited). 100G at 250 MHz: 12544 (49 B per cycle) before framing.
    pub rate: u32,
    /// Faults.
    pub faults: Faults,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self { delay: 50, rate: 0, faults: Faults::default() }
    }
}

/// What happened to a frame, for captures and counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Delivered once, in order.
    Delivered,
    /// Lost.
    Dropped,
    /// Delivered twice.
    Duplicated,
    /// Delivered late.
    Reordered,
    /// Delivered with a flipped bit.
    Corrupted,
}

struct InFlight {
    arrive: u64,
    serial: u64,
    frame: Vec<u8>,
}
impl PartialEq for InFlight {
    fn eq(&self, o: &Self) -> bool {
        (self.arrive, self.serial) == (o.arrive, o.serial)
    }
}
impl Eq for InFlight {}
impl PartialOrd for InFlight {
    fn partial_cmp(&self, o: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(o))
    }
}
impl Ord for InFlight {
    // Reversed: the heap gives the earliest arrival first.
    fn cmp(&self, o: &Self) -> std::cmp::Ordering {
        (o.arrive, o.serial).cmp(&(self.arrive, self.serial))
    }
}

/// How many frames met which fate.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkCounters {
    /// Sent into the link.
    pub sent: u64,
    /// Lost.
    pub dropped: u64,
    /// Duplicated.
    pub duplicated: u64,
    /// Delayed past others.
    pub reordered: u64,
    /// Corrupted.
    pub corrupted: u64,
}

/// A deterministic decision about frame number `n`, overriding chance: for directed tests.
pub type Hook = Box<dyn FnMut(u64, &[u8]) -> Option<Fate> + Send>;

/// One direction of a link.
pub struct Link {
    config: LinkConfig,
    rng: Rng,
    busy_until: u64,
    serial: u64,
    queue: BinaryHeap<InFlight>,
    hook: Option<Hook>,
    /// Fates so far.
    pub counters: LinkCounters,
}

impl Link {
    /// A link whose faults follow `seed`.
    pub fn new(config: LinkConfig, seed: u64) -> Self {
        Self { config, rng: Rng::seed_from_u64(seed), busy_until: 0, serial: 0, queue: BinaryHeap::new(), hook: None, counters: LinkCounters::default() }
    }

    /// Replaces the configuration.
    pub fn set_config(&mut self, config: LinkConfig) {
        self.config = config;
    }

    /// Propagation delay in cycles.
    pub fn delay(&self) -> u32 {
        self.config.delay
    }

    /// Decides the fate of frames by hand.
    pub fn set_hook(&mut self, hook: Option<Hook>) {
        self.hook = hook;
    }

    /// Nothing is in flight.
    pub fn idle(&self) -> bool {
        self.queue.is_empty()
    }

    fn push(&mut self, arrive: u64, frame: Vec<u8>) {
        self.serial += 1;
        self.queue.push(InFlight { arrive, serial: self.serial, frame });
    }

    /// A whole frame has left the sender at `cycle`. Returns its fate and, when corrupted, the bytes as delivered.
    pub fn send(&mut self, cycle: u64, frame: Vec<u8>) -> (Fate, Option<Vec<u8>>) {
        let number = self.counters.sent;
        self.counters.sent += 1;
        let start = cycle.max(self.busy_until);
        let time = if self.config.rate == 0 { 0 } else { frame.len() as u64 * 256 / self.config.rate as u64 };
        self.busy_until = start + time;
        let arrive = self.busy_until + self.config.delay as u64;
        let f = self.config.faults;
        let chance = self.rng.gen_range(0..1_000_000u32);
        let fate = self.hook.as_mut().and_then(|h| h(number, &frame)).unwrap_or({
            if chance < f.loss {
                Fate::Dropped
            } else if chance < f.loss + f.duplicate {
                Fate::Duplicated
            } else if chance < f.loss + f.duplicate + f.reorder {
                Fate::Reordered
            } else if chance < f.loss + f.duplicate + f.reorder + f.corrupt {
                Fate::Corrupted
            } else {
                Fate::Delivered
            }
        });
        let mut delivered = None;
        match fate {
            Fate::Delivered => self.push(arrive, frame),
            Fate::Dropped => self.counters.dropped += 1,
            Fate::Duplicated => {
                self.counters.duplicated += 1;
                self.push(arrive, frame.clone());
                self.push(arrive, frame);
            }
            Fate::Reordered => {
                self.counters.reordered += 1;
                let extra = self.rng.gen_range(1..=f.reorder_cycles.max(1)) as u64;
                self.push(arrive + extra, frame);
            }
            Fate::Corrupted => {
                self.counters.corrupted += 1;
                let mut bad = frame;
                // Behind the Ethernet header: a real MAC would have caught it there by FCS.
                let at = self.rng.gen_range(14.min(bad.len() - 1)..bad.len());
                bad[at] ^= 1 << self.rng.gen_range(0..8);
                delivered = Some(bad.clone());
                self.push(arrive, bad);
            }
        }
        (fate, delivered)
    }

    /// The next frame that has arrived by `cycle`.
    pub fn receive(&mut self, cycle: u64) -> Option<Vec<u8>> {
        if self.queue.peek()?.arrive > cycle {
            return None;
        }
        self.queue.pop().map(|f| f.frame)
    }
}
