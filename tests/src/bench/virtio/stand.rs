//! One card `virtio`, a driver for each of its rings, and a wire whose other end sends and takes as fast as it is asked to.
use super::ring::{frame, number_of, Ring, APART, HEADER, SIZE};
use super::{Point, LATENCY, LOOK, PATIENCE, RESET_PATIENCE, WIDTH};
use crate::guest::Guest;
use crate::pair::Error;
use ferric_abi::context::VqAvail;
use ferric_abi::virtio::feature;
use ferric_abi::virtio::net::hash_type;
use ferric_driver::types::Mac;
use ferric_driver::{Config, Context};
use ferric_hdl::card::Card;
use ferric_hdl::virtio::engine;
use ferric_hdl::virtio::steer::load::Wants;
use ferric_model::virtio::filter::{Filter, Rules};
use ferric_model::virtio::rss::{Rss, KEY};
use ferric_sim::axi::HostTiming;
use ferric_sim::{CardConfig, SimDevice, World, WorldConfig};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

/// Functions of the card, and pairs of queues of one where all have as many; those of the one that is reset.
pub(super) const FUNCTIONS: u16 = 4;
const PAIRS: u16 = 4;
const MANY: u16 = 8;
/// The function that is reset.
pub(super) const RESET: u16 = 1;
/// Host reads: as many cycles more at most.
pub(super) const JITTER: u32 = 60;
/// Where a frame's queue stands in its number.
const LG_QUEUE: u64 = 32;

/// The station of a function; the other end of the wire.
fn mac(function: u16) -> [u8; 6] {
    [2, 0, 0, 7, 0, function as u8]
}
const OTHER: [u8; 6] = [2, 0, 0, 7, 1, 0];

/// Frames of a queue, by the order in which they were sent.
#[derive(Clone, Copy, Default)]
pub(super) struct Flow {
    /// What a frame says to be of this queue, for the hash.
    port: u16,
    pub(super) sent: u64,
    pub(super) came: u64,
}

pub(super) struct Stand {
    pub(super) world: Arc<Mutex<World>>,
    contexts: Vec<Context>,
    guests: Vec<Guest>,
    pub(super) rings: Vec<Ring>,
    /// By queue.
    pub(super) flows: Vec<Flow>,
    size: usize,
    /// Frames of a receive queue that are under way at most.
    window: u64,
    /// Nothing more is posted.
    pub(super) halts: bool,
}

fn stuck(text: String) -> Error {
    Error::Stuck(text)
}

/// Ports so that a frame of pair `n` goes to it.
fn ports(rss: &Rss, pairs: u16) -> Vec<u16> {
    let port = |pair: u16| (1024..u16::MAX).find(|port| rss.pair_of(&frame(OTHER, OTHER, *port, 0, 60)) == pair).unwrap_or(0);
    (0..pairs).map(port).collect()
}

impl Stand {
    pub(super) fn new(point: &Point) -> Result<Self, Error> {
        let fst = std::env::var_os("FERRIC_BENCH_FST").map(PathBuf::from);
        let fst_from = std::env::var("FERRIC_BENCH_FST_FROM").ok().and_then(|from| from.parse().ok()).unwrap_or(0);
        let card = CardConfig { width: WIDTH, engines: "virtio", fst, fst_from, mac_bytes_per_cycle: point.mac, ..Default::default() };
        let mut world = World::new(&WorldConfig { cards: vec![card], rest: false, ..Default::default() })?;
        world.cards[0].set_timing(HostTiming { read_latency: LATENCY, read_jitter: JITTER, ..Default::default() });
        let world = Arc::new(Mutex::new(world));
        let devices: Vec<_> = (0..FUNCTIONS).map(|function| SimDevice::new(&world, 0, function)).collect();
        let contexts = devices.iter().map(|device| Context::open(device.clone(), Config::default())).collect::<Result<Vec<_>, _>>()?;
        let queues = engine::queues(WIDTH);
        let guests = devices.iter().map(|device| Guest::new(device, APART * u64::from(queues))).collect::<Result<Vec<_>, _>>()?;
        let mut stand = Self { world, contexts, guests, rings: Vec::new(), flows: vec![Flow::default(); queues.into()], size: point.size, window: point.window, halts: false };
        // The engine's pairs of queues: functions with their first one, and how many.
        let shares = if point.resets { vec![(0, 0, PAIRS), (2, PAIRS, PAIRS), (RESET, 2 * PAIRS, MANY)] } else { (0..FUNCTIONS).map(|f| (f, PAIRS * f, PAIRS)).collect() };
        let (mut to_send, mut to_receive) = (point.tx, point.rx);
        for (function, first, pairs) in shares {
            let pairs = pairs.min(to_send.max(to_receive) as u16);
            if pairs > 0 {
                stand.live(function, first, pairs)?;
            }
            for pair in first..first + pairs {
                for (receives, left) in [(true, &mut to_receive), (false, &mut to_send)] {
                    if *left > 0 {
                        *left -= 1;
                        stand.begin(2 * pair + u16::from(!receives), function, receives)?;
                    }
                }
            }
        }
        Ok(stand)
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The function has its address, and its frames are spread over its pairs by their ports.
    fn live(&mut self, function: u16, first: u16, pairs: u16) -> Result<(), Error> {
        let key: [u8; KEY] = std::array::from_fn(|i| crate::traffic::pattern(1, i));
        let rss = Rss { types: hash_type::UDPV4, pairs: (0..pairs).collect(), unclassified: 0, key };
        for (pair, port) in (first..).zip(ports(&rss, pairs)) {
            self.flows[usize::from(2 * pair)].port = port;
            self.flows[usize::from(2 * pair + 1)].port = port;
        }
        self.contexts[usize::from(function)].set_station(0, Mac(mac(function)))?;
        let filter = Filter::default();
        let rules = Rules { filter: &filter, modes: [false; 6], features: feature::MQ | feature::RSS, own: mac(function) };
        let wants = Wants { rules, pairs: pairs as u8, first: first as u8, multiqueue: true, rss: Some(&rss) };
        self.contexts[0].steer_vqs(&wants.writes(function.into()))?;
        Ok(self.contexts[0].set_vq_function(function, true, false)?)
    }

    fn begin(&mut self, queue: u16, function: u16, receives: bool) -> Result<(), Error> {
        let ring = Ring::new(queue, function, receives, &self.guests[usize::from(function)]);
        let [desc, driver, device] = ring.areas;
        let line = VqAvail::default().with_desc(desc).with_driver(driver).with_device(device).with_size(SIZE).with_function(function);
        let line = line.with_receive(receives).with_events(true).with_indirect(true).with_merged(receives);
        self.contexts[0].begin_vq(queue, &line, queue)?;
        self.rings.push(ring);
        Ok(())
    }

    /// A driver takes what has been used, looks at every byte of it, and posts as many chains as there is room for, at most `most`.
    fn serve(&mut self, n: usize, most: u64) -> Result<(), Error> {
        let ring = &mut self.rings[n];
        let flow = &mut self.flows[usize::from(ring.queue)];
        let guest = &mut self.guests[usize::from(ring.function)];
        while let Some(bytes) = ring.take(guest).map_err(stuck)? {
            if ring.receives {
                let mut expected = vec![0; HEADER];
                expected[HEADER - 2] = 1;
                expected.extend(frame(mac(ring.function), OTHER, flow.port, u64::from(ring.queue) << LG_QUEUE | flow.came, self.size));
                if bytes != expected {
                    return Err(stuck(format!("queue {}: {bytes:02x?} came for {expected:02x?}", ring.queue)));
                }
                flow.came += 1;
            }
        }
        let mut posted = false;
        while ring.free() > 0 && !self.halts && (ring.receives || flow.sent < most) {
            if ring.receives {
                ring.post(guest, None);
            } else {
                let bytes = frame(OTHER, mac(ring.function), flow.port, u64::from(ring.queue) << LG_QUEUE | flow.sent, self.size);
                ring.post(guest, Some(&bytes));
                flow.sent += 1;
            }
            posted = true;
        }
        if posted && ring.show(guest) {
            self.contexts[usize::from(ring.function)].notify_vq(ring.queue);
        }
        Ok(())
    }

    /// All drivers but those of a function have their turn, the wire's other end sends what its windows allow and looks at what has come; time passes. `most`: frames that a queue sends, and that are sent to one.
    pub(super) fn turn(&mut self, most: u64, but: Option<u16>) -> Result<(), Error> {
        for n in (0..self.rings.len()).filter(|n| but != Some(self.rings[*n].function)).collect::<Vec<_>>() {
            self.serve(n, most)?;
        }
        let world = self.world.clone();
        let mut world = world.lock().unwrap_or_else(|e| e.into_inner());
        // One after the other, so that they come from all at once.
        loop {
            let mut sent = false;
            for ring in self.rings.iter().filter(|ring| ring.receives && but != Some(ring.function)) {
                let flow = &mut self.flows[usize::from(ring.queue)];
                if flow.sent - flow.came < self.window && flow.sent < most {
                    world.cards[0].receive(frame(mac(ring.function), OTHER, flow.port, u64::from(ring.queue) << LG_QUEUE | flow.sent, self.size));
                    flow.sent += 1;
                    sent = true;
                }
            }
            if !sent {
                break;
            }
        }
        world.run(LOOK);
        for bytes in std::mem::take(&mut world.outbox) {
            let queue = number_of(&bytes).map_or(u64::MAX, |number| number >> LG_QUEUE) as usize;
            let ring = self.rings.iter().find(|ring| usize::from(ring.queue) == queue && !ring.receives).ok_or_else(|| stuck(format!("{bytes:02x?} is no frame of ours")))?;
            let flow = &mut self.flows[queue];
            if bytes != frame(OTHER, mac(ring.function), flow.port, (queue as u64) << LG_QUEUE | flow.came, self.size) {
                return Err(stuck(format!("queue {queue}: {bytes:02x?} has left, number {} was to", flow.came)));
            }
            flow.came += 1;
        }
        Ok(())
    }

    /// Frames that have left, and those that have been delivered, of all functions but one.
    pub(super) fn came(&self, but: Option<u16>) -> [u64; 2] {
        let of = |receives| self.rings.iter().filter(|ring| ring.receives == receives && but != Some(ring.function)).map(|ring| self.flows[usize::from(ring.queue)].came).sum();
        [of(false), of(true)]
    }

    /// Until each direction that there is has come so far.
    pub(super) fn until(&mut self, frames: u64, most: u64) -> Result<(), Error> {
        let (tx, rx) = (self.rings.iter().any(|ring| !ring.receives), self.rings.iter().any(|ring| ring.receives));
        let (mut seen, mut since) = ([u64::MAX; 2], self.world().cycle());
        loop {
            let came = self.came(None);
            if (!tx || came[0] >= frames) && (!rx || came[1] >= frames) {
                return Ok(());
            }
            let now = self.world().cycle();
            if came != seen {
                (seen, since) = (came, now);
            } else if now - since > PATIENCE {
                return Err(stuck(format!("nothing has come for {PATIENCE} cycles after {came:?}")));
            }
            self.turn(most, None)?;
        }
    }

    /// The function that is reset is written so; cycles until it says that the reset is over, while the others go on.
    pub(super) fn reset(&mut self) -> Result<u64, Error> {
        const RESETTING: u32 = 2;
        let device = SimDevice::new(&self.world, 0, RESET);
        let begun = self.world().cycle();
        device.write32(ferric_abi::csr::CONTROL, RESETTING);
        loop {
            self.turn(u64::MAX, Some(RESET))?;
            let now = self.world().cycle();
            if device.read32(ferric_abi::csr::STATUS) & RESETTING == 0 {
                return Ok(now - begun);
            }
            if now - begun > RESET_PATIENCE {
                return Err(stuck(format!("the reset does not end within {RESET_PATIENCE} cycles")));
            }
        }
    }

    pub(super) fn counters(&self) -> Result<Vec<(String, u64)>, Error> {
        let names = Card::named("virtio", WIDTH).map(|card| card.list().counter_names()).unwrap_or_default();
        let values = self.contexts[0].counters(0, names.len() as u32)?;
        Ok(names.into_iter().zip(values).collect())
    }
}
