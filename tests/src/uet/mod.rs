//! Cards `uet` with software on their wire: what `./scripts/soak hostile --uet`, `./scripts/replay --uet` and `./scripts/demo --uet` are made of.

pub mod forge;
pub mod good;
pub mod hostile;
pub mod judge;
pub mod plot;
pub mod pools;
pub mod replay;
pub mod street;

use crate::pair::Error;
use ferric_driver::types::{Mac, Path};
use ferric_driver::{Access, Config, Context, MemoryRegion, Pd, UetEnds};
use ferric_hdl::card::Card;
use ferric_sim::{CardConfig, SimDevice, World, WorldConfig};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};

/// A region that peers may write to.
pub const OPEN: Access = Access { remote_write: true, ..Access::LOCAL_WRITE };

/// Two addresses and the MAC address behind the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The card's.
    pub own: IpAddr,
    /// The peer's.
    pub other: IpAddr,
    /// The peer's.
    pub mac: Mac,
}

/// A card `uet` alone in its world: what it sends is taken, what it receives is given.
pub struct Lane {
    world: Arc<Mutex<World>>,
    /// The driver.
    pub ctx: Context,
    /// The domain of the peers that nothing else is said of.
    pub pd: Pd,
    /// The ring for ends.
    pub ends: UetEnds,
    /// Its MAC address.
    pub mac: Mac,
    names: Vec<String>,
}

/// How a lane is made.
#[derive(Clone, Copy, Debug)]
pub struct LaneConfig {
    /// Bits of the data path.
    pub width: usize,
    /// Cycles of a tick.
    pub tick_cycles: u64,
    /// Idle time is skipped.
    pub skip_idle: bool,
    /// log2 of the places of the ring for ends.
    pub log_ends: u8,
    /// Seed of the host's timing.
    pub seed: u64,
}

impl Default for LaneConfig {
    fn default() -> Self {
        Self { width: 64, tick_cycles: 32, skip_idle: true, log_ends: 7, seed: 1 }
    }
}

impl Lane {
    /// A card whose station is `mac`. Errors: those of the simulation and of the driver.
    pub fn new(config: &LaneConfig, mac: Mac) -> Result<Self, Error> {
        let card = CardConfig { engines: "uet", width: config.width, ..Default::default() };
        let world = WorldConfig { cards: vec![card], seed: config.seed, tick_cycles: config.tick_cycles, skip_idle: config.skip_idle, ..Default::default() };
        let world = Arc::new(Mutex::new(World::new(&world)?));
        let ctx = Context::open(SimDevice::new(&world, 0, 0), Config::default())?;
        ctx.set_station(0, mac)?;
        let pd = ctx.alloc_pd()?;
        let ends = ctx.uet_ends(config.log_ends)?;
        let names = Card::named("uet", config.width).map(|card| card.list().counter_names()).unwrap_or_default();
        Ok(Self { world, ctx, pd, ends, mac, names })
    }

    /// The simulation.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Another function of the card.
    pub fn function(&self, number: u16) -> Result<Context, Error> {
        Ok(Context::open(SimDevice::new(&self.world, 0, number), Config::default())?)
    }

    /// `way` leads to peer `number`, who may touch regions of `pd`.
    pub fn befriend(&self, number: u16, way: &Way, pd: &Pd) -> Result<(), Error> {
        let path = Path { dmac: way.mac, smac: self.mac, dip: way.other, sip: way.own, vlan: None, udp_sport: 0, tclass: 0x20, hop_limit: 64, flow_label: 0 };
        Ok(self.ctx.set_uet_peer(number, &path, pd)?)
    }

    /// A region of `len` bytes that are `fill`.
    pub fn region(&self, pd: &Pd, len: usize, fill: u8, access: Access) -> Result<MemoryRegion, Error> {
        Ok(pd.register(vec![fill; len].into_boxed_slice(), access)?)
    }

    /// A cycle; gives the frames that the card has sent.
    pub fn step(&self) -> Vec<Vec<u8>> {
        let mut world = self.world();
        world.step();
        std::mem::take(&mut world.outbox)
    }

    /// The card receives a frame.
    pub fn receive(&self, frame: Vec<u8>) {
        self.world().cards[0].receive(frame);
    }

    /// Cycles so far, without those of idle time.
    pub fn cycle(&self) -> u64 {
        self.world().cycle()
    }

    /// Ticks so far.
    pub fn ticks(&self) -> u64 {
        self.world().ticks()
    }

    /// All counters of the card.
    pub fn counters(&self) -> Result<BTreeMap<String, u64>, Error> {
        let values = self.ctx.counters(0, self.names.len() as u32)?;
        Ok(self.names.iter().cloned().zip(values).collect())
    }
}

/// By how much each counter has grown.
pub fn grown(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    after.iter().map(|(name, n)| (name.clone(), n - before.get(name).unwrap_or(&0))).collect()
}

/// A MAC address as a number.
pub fn number(mac: Mac) -> u64 {
    mac.0.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

/// An IP address as the model has it.
pub fn address(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u32::from(ip).into(),
        IpAddr::V6(ip) => ip.into(),
    }
}
