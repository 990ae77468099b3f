//! Two hosts, two cards, one wire: the set-up almost every co-simulation test starts from.
use ferric_driver::device::Device;
use ferric_driver::eq::EventQueue;
use ferric_driver::types::{Mac, Mtu, Path, RtrAttr, RtsAttr};
use ferric_driver::{Access, Batch, Completion, CompletionQueue, Config, Context, MemoryRegion, PauseConfig, Pd, Posted, QpConfig, QueuePair, Start};
use ferric_sim::{Error as SimError, SimDevice, World, WorldConfig};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// Errors of set-up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The simulation.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The driver.
    #[error(transparent)]
    Driver(#[from] ferric_driver::Error),
    /// Something did not happen within the cycles it should need.
    #[error("{0}")]
    Stuck(String),
}

/// One host with its card.
pub struct Host {
    /// Driver context.
    pub ctx: Context,
    /// Protection domain.
    pub pd: Pd,
    /// Event queue of vector 0.
    pub eq: EventQueue,
    index: u8,
    function: u8,
}

impl Host {
    /// Takes a function of card `index` into use.
    fn open(device: Arc<dyn Device>, index: u8, function: u8) -> Result<Self, Error> {
        let ctx = Context::open(device, Config::default())?;
        let pd = ctx.alloc_pd()?;
        let eq = ctx.create_eq(8, 0)?;
        Ok(Self { ctx, pd, eq, index, function })
    }
    /// MAC address.
    pub fn mac(&self) -> Mac {
        Mac([2, 0, 0, 0, self.function, self.index + 1])
    }
    /// IP address.
    pub fn ip(&self, v6: bool) -> IpAddr {
        if v6 {
            IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, self.function.into(), self.index as u16 + 1))
        } else {
            IpAddr::V4(Ipv4Addr::new(10, 0, self.function, self.index + 1))
        }
    }
    /// Registers `len` zero bytes.
    pub fn region(&self, len: usize, access: Access) -> Result<MemoryRegion, Error> {
        Ok(self.pd.register(vec![0; len].into_boxed_slice(), access)?)
    }
    /// A completion queue.
    pub fn cq(&self, entries: usize) -> Result<CompletionQueue, Error> {
        Ok(self.ctx.create_cq(entries, &self.eq)?)
    }
}

/// Connection parameters of a test.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// Path MTU.
    pub mtu: Mtu,
    /// IPv6 instead of IPv4.
    pub v6: bool,
    /// 802.1Q tag.
    pub vlan: Option<u16>,
    /// First PSN of host 0's queue pair and of host 1's.
    pub psn: [u32; 2],
    /// ACK timeout exponent.
    pub timeout: u8,
    /// Transport retries.
    pub retry_cnt: u8,
    /// RNR retries.
    pub rnr_retry: u8,
    /// RNR timer code.
    pub min_rnr_timer: u8,
    /// Either end repeats its NAK for a gap.
    pub repeat_nak: bool,
    /// Traffic class: DSCP and ECN bits.
    pub tclass: u8,
    /// READs and atomics either side grants the other; as many as 16 are asked for.
    pub max_dest_rd_atomic: u8,
    /// Rights given to the peer.
    pub access: Access,
}

impl Wire {
    /// What tests change parts of.
    pub const DEFAULT: Wire = Wire {
        mtu: Mtu::M4096,
        v6: false,
        vlan: None,
        psn: [0x10, 0x20],
        timeout: 8,
        retry_cnt: 7,
        rnr_retry: 7,
        min_rnr_timer: 1,
        repeat_nak: false,
        tclass: 0,
        max_dest_rd_atomic: 16,
        access: Access::ALL,
    };
}

impl Default for Wire {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Metres of cable that hold as much, there and back, as a simulated link of this delay, in cycles of 4 ns: light goes 0.8 m in one. A link takes a frame whole before it hands it on, so
/// that one more comes behind a pause: of large ones so many cells are left, since more small ones need more.
fn metres(delay: u32) -> usize {
    (delay as usize * 4).div_ceil(5)
}

/// The world and its two hosts.
pub struct Pair {
    world: Arc<Mutex<World>>,
    /// Host 0 and host 1, on function 0 of their cards.
    pub hosts: [Host; 2],
    /// The same for functions 1 and on, each with a driver of its own, if they have been opened, in the order in which they were.
    pub tenants: Vec<[Host; 2]>,
}

impl Pair {
    /// Builds the cards (cached) and opens both.
    pub fn new(config: &WorldConfig) -> Result<Self, Error> {
        Self::behind(config, |device| device)
    }

    /// The same; the drivers see each card as `back_end` shows it.
    pub fn behind(config: &WorldConfig, back_end: impl Fn(Arc<dyn Device>) -> Arc<dyn Device>) -> Result<Self, Error> {
        let world = Arc::new(Mutex::new(World::new(config)?));
        let host = |i: u8| Host::open(back_end(SimDevice::new(&world, i.into(), 0)), i, 0);
        let hosts = [host(0)?, host(1)?];
        Ok(Self { world, hosts, tenants: Vec::new() })
    }

    fn open(&self, function: u8) -> Result<[Host; 2], Error> {
        let host = |i: u8| Host::open(SimDevice::new(&self.world, i.into(), function.into()), i, function);
        Ok([host(0)?, host(1)?])
    }

    /// Cards of which the first `functions` functions have a driver each.
    pub fn with_functions(config: &WorldConfig, functions: u8) -> Result<Self, Error> {
        let mut pair = Self::new(config)?;
        (1..functions).try_for_each(|_| pair.open_next())?;
        Ok(pair)
    }

    /// Either card tells the other when its receive buffer fills, and obeys it (`Context::set_pause`), as two cards with a cable between them do.
    pub fn with_pause(self) -> Result<Self, Error> {
        let metres = self.world().links.iter().map(|link| metres(link.delay())).max().unwrap_or(0);
        self.hosts.iter().try_for_each(|host| host.ctx.set_pause(&PauseConfig::between_cards(host.mac(), metres)))?;
        Ok(self)
    }

    /// Opens the first function of both cards that has no driver yet.
    pub fn open_next(&mut self) -> Result<(), Error> {
        self.open_function(self.tenants.len() as u8 + 1)
    }

    /// Opens function `function` of both cards, which is not open yet.
    pub fn open_function(&mut self, function: u8) -> Result<(), Error> {
        let hosts = self.open(function)?;
        self.tenants.push(hosts);
        Ok(())
    }

    /// A driver on function `function` of card `side` alone: not one of [`Self::of`].
    pub fn guest(&self, side: usize, function: u8) -> Result<Host, Error> {
        Host::open(SimDevice::new(&self.world, side, function.into()), side as u8, function)
    }

    /// The hosts on function `function` modulo as many as are open, if they were opened in order; else those opened as number `function`.
    pub fn of(&self, function: usize) -> &[Host; 2] {
        match function % (self.tenants.len() + 1) {
            0 => &self.hosts,
            f => &self.tenants[f - 1],
        }
    }

    /// A new driver on function `function` (as in [`Self::of`]) of card `side`, whose old one has left without a word. What was made with that is void.
    pub fn reopen(&mut self, side: usize, function: u8) -> Result<(), Error> {
        let host = self.guest(side, self.of(function.into())[side].function)?;
        let place = if function == 0 { &mut self.hosts } else { &mut self.tenants[function as usize - 1] };
        std::mem::forget(std::mem::replace(&mut place[side], host));
        Ok(())
    }

    /// New drivers on cards that old ones have left without a word, as after a `kill -9`. Everything made with the old ones is void.
    pub fn take_over(&mut self) -> Result<(), Error> {
        let hosts = self.open(0)?;
        std::mem::forget(std::mem::replace(&mut self.hosts, hosts));
        Ok(())
    }

    /// The simulation.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Accesses of either card that its IOMMU refused.
    pub fn iommu_faults(&self) -> u64 {
        self.world().cards.iter().map(|c| c.iommu.fault_count()).sum()
    }

    /// Accesses of either card to memory that was the program's again, as text.
    pub fn trespasses(&self) -> Vec<String> {
        self.world().cards.iter().enumerate().flat_map(|(n, card)| card.iommu.watch.trespasses().iter().map(move |t| format!("card {n}: {t:x?}"))).collect()
    }

    /// From now on neither card is to write to `bytes` of a region of `host`, nor, with `reads`, to read them ([`ferric_sim::watch::Watch`]).
    pub fn seal(&self, host: usize, region: &MemoryRegion, bytes: Range<usize>, reads: bool) {
        self.seal_of(0, host, region, bytes, reads);
    }

    /// The same for a region of function `function`.
    pub fn seal_of(&self, function: usize, host: usize, region: &MemoryRegion, bytes: Range<usize>, reads: bool) {
        let at = region.addr() % 4096;
        self.world().cards[host].iommu.watch.seal(function as u16, region.mapping(), at + bytes.start as u64..at + bytes.end as u64, reads);
    }

    /// Ends all seals that begin there.
    pub fn unseal(&self, host: usize, region: &MemoryRegion, bytes: Range<usize>) {
        self.unseal_of(0, host, region, bytes);
    }

    /// The same for a region of function `function`.
    pub fn unseal_of(&self, function: usize, host: usize, region: &MemoryRegion, bytes: Range<usize>) {
        let at = region.addr() % 4096;
        self.world().cards[host].iommu.watch.open(function as u16, region.mapping(), at + bytes.start as u64..at + bytes.end as u64);
    }

    /// Connects one queue pair of host 0 with one of host 1 and brings both to RTS.
    pub fn connect(&self, wire: &Wire, a: &mut QueuePair, b: &mut QueuePair) -> Result<(), Error> {
        self.connect_of(0, wire, a, b)
    }

    /// The same for queue pairs of [`Pair::of`] that function. Both cards work at the same time.
    pub fn connect_of(&self, function: usize, wire: &Wire, a: &mut QueuePair, b: &mut QueuePair) -> Result<(), Error> {
        let hosts = self.of(function);
        let qpns = [a.qpn(), b.qpn()];
        let mut batches = hosts.each_ref().map(|host| host.ctx.batch());
        for (side, qp) in [a, b].into_iter().enumerate() {
            let (me, peer) = (&hosts[side], &hosts[1 - side]);
            let path = Path {
                dmac: peer.mac(),
                smac: me.mac(),
                dip: peer.ip(wire.v6),
                sip: me.ip(wire.v6),
                vlan: wire.vlan,
                udp_sport: 0xc000 | (qpns[0] ^ qpns[1]) as u16 & 0x3fff,
                tclass: wire.tclass,
                hop_limit: 64,
                flow_label: 0,
            };
            let rtr = RtrAttr {
                mtu: wire.mtu,
                dest_qpn: qpns[1 - side],
                rq_psn: wire.psn[1 - side],
                min_rnr_timer: wire.min_rnr_timer,
                repeat_nak: wire.repeat_nak,
                max_dest_rd_atomic: wire.max_dest_rd_atomic,
                path: Some(path),
            };
            let rts = RtsAttr { sq_psn: wire.psn[side], timeout: wire.timeout, retry_cnt: wire.retry_cnt, rnr_retry: wire.rnr_retry, max_rd_atomic: 16 };
            batches[side].start(qp, &Start::Connected { access: wire.access, rtr, rts })?;
        }
        together(batches)
    }

    /// Destroys queue pairs of [`Pair::of`] that function, of host 0 and of host 1, on both cards at the same time.
    pub fn destroy_of(&self, function: usize, qps: impl IntoIterator<Item = [QueuePair; 2]>) -> Result<(), Error> {
        // Two commands each at most: what does not fit into the ring of one card would be waited for before the other is told.
        const AT_ONCE: usize = 16;
        let mut qps = qps.into_iter().peekable();
        while qps.peek().is_some() {
            let mut batches = self.of(function).each_ref().map(|host| host.ctx.batch());
            for pair in qps.by_ref().take(AT_ONCE) {
                pair.into_iter().zip(&mut batches).try_for_each(|(qp, batch)| batch.destroy(qp))?;
            }
            together(batches)?;
        }
        Ok(())
    }

    /// A connected pair of queue pairs on the given completion queues (one per host, sends and receives).
    pub fn connected(&self, config: &QpConfig, wire: &Wire, cqs: [&CompletionQueue; 2]) -> Result<[QueuePair; 2], Error> {
        self.connected_of(0, config, wire, cqs)
    }

    /// The same for [`Pair::of`] that function.
    pub fn connected_of(&self, function: usize, config: &QpConfig, wire: &Wire, cqs: [&CompletionQueue; 2]) -> Result<[QueuePair; 2], Error> {
        let hosts = self.of(function);
        let mut a = hosts[0].pd.create_qp(config, cqs[0], cqs[0])?;
        let mut b = hosts[1].pd.create_qp(config, cqs[1], cqs[1])?;
        self.connect_of(function, wire, &mut a, &mut b)?;
        Ok([a, b])
    }

    /// Polls until a completion comes, at most `cycles`.
    pub fn wait(&self, cq: &mut CompletionQueue, cycles: u64) -> Result<Completion, Error> {
        let end = self.world().cycle() + cycles;
        loop {
            if let Some(c) = cq.poll() {
                return Ok(c);
            }
            if self.world().cycle() >= end {
                return Err(Error::Stuck(format!("no completion within {cycles} cycles")));
            }
            cq.relax();
        }
    }
}

/// Tells all cards, then waits for all. The first error.
pub fn together<'a>(batches: impl IntoIterator<Item = Batch<'a>>) -> Result<(), Error> {
    let posted: Vec<_> = batches.into_iter().map(Batch::post).collect();
    let done: Vec<_> = posted.into_iter().flat_map(Posted::wait).collect();
    done.into_iter().try_for_each(|step| Ok(step?))
}

/// A connected pair of queue pairs with a completion queue and a region on either side.
pub struct Linked {
    /// The world.
    pub pair: Pair,
    /// One per host, 64 entries, sends and receives.
    pub cqs: [CompletionQueue; 2],
    /// Host 0's and host 1's, in RTS.
    pub qps: [QueuePair; 2],
    /// Region of host 0.
    pub src: MemoryRegion,
    /// Region of host 1, zero.
    pub dst: MemoryRegion,
}

impl Linked {
    /// On cards as they are by default; `fill` gives the bytes of host 0's region, and the length of both.
    pub fn new(config: &QpConfig, wire: &Wire, fill: &[u8]) -> Result<Self, Error> {
        Self::on(Pair::new(&WorldConfig::default())?, config, wire, fill)
    }

    /// On cards that are there.
    pub fn on(pair: Pair, config: &QpConfig, wire: &Wire, fill: &[u8]) -> Result<Self, Error> {
        let cqs = [pair.hosts[0].cq(64)?, pair.hosts[1].cq(64)?];
        let qps = pair.connected(config, wire, [&cqs[0], &cqs[1]])?;
        let src = pair.hosts[0].region(fill.len(), Access::ALL)?;
        let dst = pair.hosts[1].region(fill.len(), Access::ALL)?;
        src.write(0, fill);
        Ok(Self { pair, cqs, qps, src, dst })
    }

    /// The next completion of `host`, which has to come within `cycles`.
    pub fn wait(&mut self, host: usize, cycles: u64) -> Result<Completion, Error> {
        self.pair.wait(&mut self.cqs[host], cycles)
    }
}
