//! Two cards `virtio`, a driver of rings for each queue of either, and what they have sent each other.
use super::driver::{Kind, Ring, APART};
use super::tb::Rng;
use super::virtio::testing::Guest;
use ferric_abi::context::VqAvail;
use ferric_driver::types::Mac;
use ferric_driver::{Config, Context};
use ferric_hdl::card::Card;
use ferric_hdl::virtio::steer::load::Wants;
use ferric_model::virtio::filter::{Filter, Rules};
use ferric_sim::{CardConfig, SimDevice, World, WorldConfig};
use std::sync::{Arc, Mutex};

/// Functions of a card, each with a pair of queues.
pub const FUNCTIONS: u16 = 4;
pub const QUEUES: u16 = 2 * FUNCTIONS;
/// Cycles in which something has to happen.
pub const PATIENCE: u64 = 1_500_000;
/// Cycles between two looks of the drivers.
const STEP: u64 = 60;
/// The longest frame that a card's port takes, and the shortest on a wire.
const LONGEST: u64 = 8191;
/// The longest that a single buffer of any receive ring takes.
const SINGLE: u64 = 1514;
const SHORTEST: usize = 60;
/// Where rings, tables and buffers of a queue lie in its part of the memory.
const RINGS: u64 = 0;
const TABLES: u64 = 0x8_0000;
const BUFFERS: u64 = 0x40_0000;

pub fn mac(card: usize, function: u16) -> [u8; 6] {
    [2, 0, 0, 7, card as u8, function as u8]
}

/// What the rings of a test are.
#[derive(Clone, Copy)]
pub struct Shape {
    pub packed: fn(u16) -> bool,
    pub events: fn(u16) -> bool,
    pub merged: fn(u16) -> bool,
}

impl Shape {
    /// Half of everything.
    pub const MIXED: Self = Self { packed: |queue| queue / 2 % 2 == 1, events: |queue| queue < QUEUES / 2, merged: |queue| queue % 4 == 2 };
}

pub struct Host {
    pub contexts: Vec<Context>,
    pub guests: Vec<Guest>,
    pub rings: Vec<Ring>,
    /// Frames that came for each queue, in the order of the wire.
    pub offered: Vec<Vec<Vec<u8>>>,
    /// How many of them are of the ring that sends to it now.
    pub fed: Vec<usize>,
}

impl Host {
    /// A function has its address, and receives.
    pub fn live(&self, card: usize, function: u16) {
        self.contexts[usize::from(function)].set_station(0, Mac(mac(card, function))).expect("its address");
        let filter = Filter::default();
        let rules = Rules { filter: &filter, modes: [false; 6], features: 0, own: mac(card, function) };
        let wants = Wants { rules, pairs: 1, first: function as u8, multiqueue: false, rss: None };
        self.contexts[0].steer_vqs(&wants.writes(function.into())).expect("steering");
        self.contexts[0].set_vq_function(function, true, false).expect("it is live");
    }
}

pub struct Street {
    pub world: Arc<Mutex<World>>,
    pub hosts: Vec<Host>,
    pub rng: Rng,
    /// How often a sender posts, in thousandths of the turns: more than a few, and the receivers have to drop.
    pub pace: u64,
}

/// Two cards whose functions have their addresses and may receive; no ring yet.
pub fn street(width: usize, seed: u64) -> Street {
    let card = CardConfig { engines: "virtio", width, ..Default::default() };
    let config = WorldConfig { cards: vec![card.clone(), card], seed, ..Default::default() };
    let world = Arc::new(Mutex::new(World::new(&config).expect("two cards")));
    let hosts = (0..2).map(|card| {
        let devices: Vec<_> = (0..FUNCTIONS).map(|function| SimDevice::new(&world, card, function)).collect();
        let contexts: Vec<Context> = devices.iter().map(|device| Context::open(device.clone(), Config::default()).expect("a function")).collect();
        assert!(contexts[0].has_virtio());
        let guests = devices.iter().map(|device| Guest::new(device, APART * u64::from(QUEUES)).expect("memory of a guest")).collect();
        let host = Host { contexts, guests, rings: Vec::new(), offered: (0..QUEUES).map(|_| Vec::new()).collect(), fed: vec![0; usize::from(QUEUES)] };
        (0..FUNCTIONS).for_each(|function| host.live(card, function));
        host
    });
    let hosts = hosts.collect();
    Street { world, hosts, rng: Rng::new(seed), pace: 5 }
}

impl Street {
    /// A ring for each queue: of function `n` number 2n receives and the one behind it sends, to the same function of the other card.
    pub fn begin_all(&mut self, shape: Shape) {
        for card in 0..2 {
            for queue in 0..QUEUES {
                self.begin(card, queue, shape);
            }
        }
    }

    pub fn begin(&mut self, card: usize, queue: u16, shape: Shape) {
        let (function, host) = (queue / 2, &mut self.hosts[card]);
        let kind = if queue % 2 == 0 { Kind::Receive } else { Kind::Transmit };
        let size = [64, 16, 32, 256, 64, 32, 128, 64][usize::from(queue % QUEUES)] - if (shape.packed)(queue) { 3 } else { 0 };
        let guest = &mut host.guests[usize::from(function)];
        let places = [RINGS, BUFFERS, TABLES].map(|place| guest.base() + place);
        let mut ring = Ring::at(queue, function, size, kind, (shape.events)(queue), places, guest);
        ring.merged = (shape.merged)(queue);
        // What fits the buffers of its peer, which are merged or not.
        ring.longest = if (shape.merged)(queue & !1) { LONGEST } else { SINGLE };
        ring.to = Some([mac(1 - card, function), mac(card, function)].concat().try_into().expect("two addresses"));
        if (shape.packed)(queue) {
            ring = ring.packed();
        }
        let [desc, driver, device] = ring.areas;
        let line = VqAvail::default().with_desc(desc).with_driver(driver).with_device(device).with_size(size).with_function(function);
        let line = line.with_receive(kind == Kind::Receive).with_events(ring.events).with_indirect(true).with_merged(ring.merged).with_packed(ring.packed.is_some());
        host.contexts[0].begin_vq(queue, &line, queue).expect("a ring");
        host.rings.retain(|other| other.queue != queue);
        host.rings.push(ring);
        host.rings.sort_by_key(|ring| ring.queue);
        if kind == Kind::Transmit {
            self.hosts[1 - card].fed[usize::from(queue - 1)] = 0;
        }
    }

    /// Drivers take what is there and post more; time passes.
    pub fn turn(&mut self) {
        for card in 0..2 {
            let told: Vec<(u16, u16)> = self.world.lock().expect("the world").cards[card].interrupts.drain(..).collect();
            let host = &mut self.hosts[card];
            for (function, vector) in told {
                if let Some(ring) = host.rings.iter_mut().find(|ring| ring.queue == vector) {
                    assert_eq!(ring.function, function);
                    ring.told = true;
                }
            }
            let Host { contexts, guests, rings, offered, .. } = host;
            for ring in rings {
                let guest = &mut guests[usize::from(ring.function)];
                if ring.told && self.rng.percent(50) {
                    ring.collect(guest, &offered[usize::from(ring.queue)]);
                }
                if self.rng.below(1000) < (if ring.kind == Kind::Transmit { self.pace } else { 400 }) {
                    ring.post(&mut self.rng, guest);
                    if ring.wants_notification(guest) {
                        contexts[usize::from(ring.function)].notify_vq(ring.queue);
                    }
                }
            }
        }
        for card in 0..2 {
            let (here, there) = self.hosts.split_at_mut(1);
            let (own, peer) = if card == 0 { (&here[0], &mut there[0]) } else { (&there[0], &mut here[0]) };
            for ring in own.rings.iter().filter(|ring| ring.kind == Kind::Transmit) {
                let queue = usize::from(ring.queue - 1);
                for frame in &ring.frames[std::mem::replace(&mut peer.fed[queue], ring.frames.len())..] {
                    let mut padded = frame.clone();
                    padded.resize(frame.len().max(SHORTEST), 0);
                    peer.offered[queue].push(padded);
                }
            }
        }
        self.world.lock().expect("the world").run(STEP);
    }

    /// Time passes until `done`.
    pub fn until(&mut self, what: &str, done: impl Fn(&Street) -> bool) {
        let begun = self.cycle();
        while !done(self) {
            assert!(self.cycle() - begun < PATIENCE, "never {what}: {:?}", self.state());
            self.turn();
        }
    }

    pub fn cycle(&self) -> u64 {
        self.world.lock().expect("the world").cycle()
    }

    /// Of each ring: card, queue, frames, posted, returned, received.
    pub fn state(&self) -> Vec<(usize, u16, usize, u64, u64, u64)> {
        let of = |(card, host): (usize, &Host)| host.rings.iter().map(move |r| (card, r.queue, r.frames.len(), r.posted, r.returned, r.received)).collect::<Vec<_>>();
        self.hosts.iter().enumerate().flat_map(of).collect()
    }

    /// Frames that the rings of a card have sent, and received.
    pub fn frames(&self, card: usize) -> (u64, u64) {
        let rings = &self.hosts[card].rings;
        (rings.iter().map(|ring| ring.frames.len() as u64).sum(), rings.iter().map(|ring| ring.received).sum())
    }

    pub fn counters(&self, card: usize, names: &[&str]) -> Vec<u64> {
        let all = Card::named("virtio", 64).expect("the card").list().counter_names();
        let number = |name: &&str| all.iter().position(|other| other == name).unwrap_or_else(|| panic!("no counter {name} in {all:?}")) as u32;
        names.iter().map(|name| self.hosts[card].contexts[0].counters(number(name), 1).expect("a counter")[0]).collect()
    }

    /// What a card says of received frames: those that came, what the front did with them, what the engine did, what became of the copies.
    pub fn books(&self, card: usize) -> [Vec<u64>; 3] {
        let front = ["rx.rx_frames", "rx.rx_raw", "rx.rx_no_buffer", "rx.rx_other_station", "unwanted.rx_unwanted"];
        let engine = ["virtio.virtio_frames", "virtio.virtio_crowded", "virtio.virtio_passed_on", "virtio.virtio_copies"];
        let ends = ["virtio.virtio_delivered", "virtio.virtio_filtered", "virtio.virtio_rx_down", "virtio.virtio_rx_small", "virtio.virtio_rx_no_buffer", "virtio.virtio_rx_dma"];
        [self.counters(card, &front), self.counters(card, &engine), self.counters(card, &ends)]
    }

    /// Every frame that a card has received is delivered or dropped for a cause, once all that waits has been looked at. Those delivered.
    pub fn account(&mut self, card: usize) -> u64 {
        let begun = self.cycle();
        loop {
            let [front, engine, ends] = self.books(card);
            if front[1] == engine[..3].iter().sum::<u64>() && engine[3] == ends.iter().sum::<u64>() && front[0] == front[1..4].iter().sum::<u64>() {
                assert_eq!(front[4], engine[2], "what nobody wants");
                return ends[0];
            }
            assert!(self.cycle() - begun < PATIENCE, "frames of card {card}: {front:?}, {engine:?}, {ends:?}");
            (0..20).for_each(|_| self.turn());
        }
    }
}
