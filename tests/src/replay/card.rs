//! The simulated card as an endpoint, driven through the driver's verbs like by any program.
use super::endpoint::{Domain, Done, Endpoint, Factory, Post, Region, RegionSpec, Setup, Slice};
use super::error::{Error, Result};
use super::frame::Kind;
use super::ud::{Datagrams, UdSetup};
use super::Role;
use ferric_abi::codes::WrOpcode;
use ferric_driver::eq::EventQueue;
use ferric_driver::qp::{sge, LocalSge, Payload};
use ferric_driver::types::{QpType, RtrAttr, RtsAttr};
use ferric_driver::{
    AtomicOp, AtomicRequest, AtomicWriteRequest, CompletionQueue, Config, Context, FlushRequest, Flushed, MemoryRegion, Pd, QpConfig, QueuePair, ReadRequest, RecvRequest, SendRequest,
};
use ferric_sim::{Body, CardConfig, SimDevice, World, WorldConfig};
use std::sync::{Arc, Mutex, MutexGuard};

/// Cycles without activity at the card's boundary after which nothing is under way inside.
const QUIET: u64 = 500;
/// Cycles in which the card's timer scan has passed every queue pair after time was advanced.
const SCAN: u64 = 2048;
/// Cycles after which a card that is still busy is given up.
const BUSY: u64 = 4_000_000;

/// Makes simulated cards.
#[derive(Clone, Debug, Default)]
pub struct CardFactory {
    /// How the card is built and driven.
    pub card: CardConfig,
}

impl CardFactory {
    /// The card's functional twin.
    pub fn twin() -> Self {
        Self { card: CardConfig { body: Body::Twin, ..Self::default().card } }
    }
}

/// The role that the gateware plays in the suite, of the `n`th capture: either role in half of them, because a cycle of it costs so much. The twin plays both of each.
/// With `FERRIC_REPLAY_WHOLE` set the gateware does, too.
pub fn role_of_gateware(n: usize) -> Role {
    match (std::env::var_os("FERRIC_REPLAY_WHOLE"), n % 2) {
        (Some(_), _) => Role::Both,
        (None, 0) => Role::Requester,
        (None, _) => Role::Responder,
    }
}

impl Factory for CardFactory {
    fn build(&self, setup: &Setup) -> Result<Box<dyn Endpoint>> {
        Ok(Box::new(CardEndpoint::new(&self.card, setup)?))
    }
    fn datagrams(&self, setup: &UdSetup) -> Result<Box<dyn Datagrams>> {
        super::card_ud::build(&self.card, setup)
    }
}

/// A world with one card, and the frames it has sent.
pub(super) struct CardWorld {
    pub(super) world: Arc<Mutex<World>>,
    frames: Vec<(u64, Vec<u8>)>,
}

impl CardWorld {
    pub(super) fn new(card: &CardConfig) -> Result<Self> {
        let config = WorldConfig { cards: vec![card.clone()], seed: card.seed, skip_idle: false, ..Default::default() };
        let world = World::new(&config).map_err(|e| Error::Endpoint(e.to_string()))?;
        Ok(Self { world: Arc::new(Mutex::new(world)), frames: Vec::new() })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(super) fn receive(&self, frame: &[u8]) {
        self.lock().cards[0].receive(frame.to_vec());
    }

    /// Runs `cycles`, noting when frames leave.
    pub(super) fn run(&mut self, cycles: u64) {
        let mut world = self.world.lock().unwrap_or_else(|e| e.into_inner());
        for _ in 0..cycles.div_ceil(16) {
            world.run(16);
            let now = world.ticks();
            self.frames.extend(world.outbox.drain(..).map(|f| (now, f)));
        }
    }

    /// Runs until nothing is under way.
    pub(super) fn settle(&mut self) {
        let start = self.lock().cycle();
        loop {
            self.run(64);
            let world = self.lock();
            // What has just been handed over counts as activity too.
            let active = world.cards[0].last_activity.max(start);
            let quiet = world.cards[0].idle() && world.cycle().saturating_sub(active) > QUIET;
            if quiet || world.cycle() > start + BUSY {
                return;
            }
        }
    }

    pub(super) fn take_frames(&mut self) -> Vec<(u64, Vec<u8>)> {
        std::mem::take(&mut self.frames)
    }
}

/// One card with one connected queue pair. Fields drop in order: objects before their context, the world last.
pub struct CardEndpoint {
    qp: QueuePair,
    /// Regions, and how many bytes stand before what was asked for.
    regions: Vec<(MemoryRegion, usize)>,
    cq: CompletionQueue,
    _eq: EventQueue,
    own: Pd,
    other: Pd,
    world: CardWorld,
}

impl CardEndpoint {
    fn new(card: &CardConfig, setup: &Setup) -> Result<Self> {
        let world = CardWorld::new(card)?;
        let ctx = Context::open(SimDevice::new(&world.world, 0, 0), Config::default())?;
        let (own, other) = (ctx.alloc_pd()?, ctx.alloc_pd()?);
        let eq = ctx.create_eq(6, 0)?;
        let cq = ctx.create_cq(4 * setup.depth, &eq)?;
        let mut qp = own.create_qp(&QpConfig { qp_type: if setup.unreliable { QpType::Uc } else { QpType::Rc }, max_send: setup.depth, max_recv: setup.depth, ..Default::default() }, &cq, &cq)?;
        qp.to_init(setup.access)?;
        let rtr = RtrAttr { mtu: setup.mtu, dest_qpn: setup.peer_qpn, rq_psn: setup.rq_psn, min_rnr_timer: setup.min_rnr_timer, repeat_nak: false, max_dest_rd_atomic: 16, path: Some(setup.path) };
        qp.to_rtr(setup.access, &rtr)?;
        qp.to_rts(&RtsAttr { sq_psn: setup.sq_psn, timeout: setup.timeout, retry_cnt: setup.retry_cnt, rnr_retry: setup.rnr_retry, max_rd_atomic: 16 })?;
        Ok(Self { qp, regions: Vec::new(), cq, _eq: eq, own, other, world })
    }

    /// Every other request is cut in two, so that both ways of describing it are used.
    fn entries(&self, id: u64, place: Option<Slice>) -> Vec<LocalSge> {
        let Some(p) = place else { return Vec::new() };
        let at = p.region.addr + p.offset as u64;
        let first = if id % 2 == 1 && p.len > 1 { p.len / 3 + 1 } else { p.len };
        let mut all = vec![sge(at, first as u32, p.region.key)];
        if first < p.len {
            all.push(sge(at + first as u64, (p.len - first) as u32, p.region.key));
        }
        all
    }
}

/// Zeroed memory that ends behind `len` bytes lying at `page_offset` in their page; how many bytes stand before them.
fn memory_at(len: usize, page_offset: u64) -> (Box<[u8]>, usize) {
    let mut v: Vec<u8> = Vec::with_capacity(len + 4096);
    let slack = (page_offset as usize).wrapping_sub(v.as_ptr() as usize) & 0xfff;
    v.resize(slack + len, 0);
    (v.into_boxed_slice(), slack)
}

impl Endpoint for CardEndpoint {
    fn qpn(&self) -> u32 {
        self.qp.qpn()
    }
    fn register(&mut self, spec: &RegionSpec) -> Result<Region> {
        let pd = if spec.domain == Domain::Own { &self.own } else { &self.other };
        let (memory, slack) = if spec.exact { (vec![0; spec.len].into_boxed_slice(), 0) } else { memory_at(spec.len, spec.page_offset) };
        let mr = if spec.fast { pd.register_fast(memory, spec.access) } else { pd.register(memory, spec.access) }?;
        let region = Region { index: self.regions.len(), addr: mr.addr() + slack as u64, key: mr.rkey(), len: spec.len };
        self.regions.push((mr, slack));
        Ok(region)
    }
    fn write_memory(&mut self, region: &Region, offset: usize, bytes: &[u8]) {
        let (mr, slack) = &self.regions[region.index];
        mr.write(slack + offset, bytes);
    }
    fn read_memory(&self, region: &Region, offset: usize, len: usize) -> Vec<u8> {
        let (mr, slack) = &self.regions[region.index];
        mr.to_vec(slack + offset, len)
    }
    fn post_send(&mut self, post: &Post) -> Result<()> {
        let sges = self.entries(post.id, post.local);
        let (wr_id, (remote_addr, rkey)) = (post.id, post.remote);
        let op = match post.kind {
            Kind::ReadRequest => {
                return Ok(self.qp.post_read(&ReadRequest { wr_id, sges: &sges, remote_addr, rkey, signaled: true, fence: false })?);
            }
            Kind::AtomicWrite => {
                let value = post.local.and_then(|l| self.read_memory(&l.region, l.offset, l.len).try_into().ok());
                let value = value.ok_or_else(|| Error::Endpoint("an ATOMIC WRITE is of 8 bytes".into()))?;
                return Ok(self.qp.post_atomic_write(&AtomicWriteRequest { wr_id, value, remote_addr, rkey, signaled: true, fence: false })?);
            }
            Kind::Flush => {
                let flush = post.flush.ok_or_else(|| Error::Endpoint("a FLUSH without its header".into()))?;
                let what = if flush.whole() { Flushed::Region } else { Flushed::Range(flush.len) };
                let (global, persistent) = (flush.feth.placement() & 1 != 0, flush.feth.placement() & 2 != 0);
                return Ok(self.qp.post_flush(&FlushRequest { wr_id, what, global, persistent, remote_addr, rkey, signaled: true, fence: false })?);
            }
            Kind::CompareSwap => Some(AtomicOp::CompareSwap { swap: post.operands.0, compare: post.operands.1 }),
            Kind::FetchAdd => Some(AtomicOp::FetchAdd(post.operands.0)),
            _ => None,
        };
        if let Some(op) = op {
            return Ok(self.qp.post_atomic(&AtomicRequest { wr_id, op, sges: &sges, remote_addr, rkey, signaled: true, fence: false })?);
        }
        let opcode = match (post.kind, post.imm, post.invalidate) {
            (Kind::Send, None, None) => WrOpcode::Send,
            (Kind::Send, None, Some(_)) => WrOpcode::SendInv,
            (Kind::Send, ..) => WrOpcode::SendImm,
            (Kind::Write, None, _) => WrOpcode::Write,
            (Kind::Write, ..) => WrOpcode::WriteImm,
            (kind, ..) => return Err(Error::Endpoint(format!("{} is not a request", kind.name()))),
        };
        let imm = post.imm.or(post.invalidate).unwrap_or(0);
        let request = SendRequest { wr_id, opcode, payload: Payload::Sges(&sges), remote_addr, rkey, imm, signaled: true, solicited: post.solicited };
        Ok(self.qp.post_send(&request)?)
    }
    fn post_recv(&mut self, id: u64, place: Option<Slice>) -> Result<()> {
        let sges = self.entries(id, place);
        self.qp.post_recv(&RecvRequest { wr_id: id, sges: &sges })?;
        // The doorbell must reach the card before the frame that needs the receive.
        self.settle();
        Ok(())
    }
    fn receive(&mut self, frame: &[u8]) {
        self.world.receive(frame);
    }
    fn settle(&mut self) {
        self.world.settle();
    }
    fn ticks(&self) -> u64 {
        self.world.lock().ticks()
    }
    fn advance(&mut self, ticks: u64) {
        self.world.lock().advance_ticks(ticks);
        self.world.run(SCAN);
        self.settle();
    }
    fn poll(&mut self) -> Option<Done> {
        let c = self.cq.poll()?;
        Some(Done { id: c.wr_id, recv: c.is_recv, status: c.status, len: c.byte_len, imm: c.imm, invalidated: c.invalidated, solicited: c.solicited })
    }
    fn take_frames(&mut self) -> Vec<(u64, Vec<u8>)> {
        self.world.take_frames()
    }
}
