//! Frames for the card's MAC addresses, and those for other stations, on whole cards: a flood of the latter, functions that want one address, resets.
use ferric_abi::codes::AdminStatus;
use ferric_driver::qp::sge;
use ferric_driver::types::{Mac, Mtu, QpType, RtrAttr, RtsAttr};
use ferric_driver::{Access, CompletionQueue, Config, Context, CqeStatus, Error, MemoryRegion, QpConfig, QueuePair, RecvRequest};
use ferric_hdl::card::counters;
use ferric_sim::{CardConfig, SimDevice, World, WorldConfig};
use std::sync::{Arc, Mutex};

const ZERO: Mac = Mac([2, 0xfe, 10, 7, 0, 1]);
const ONE: Mac = Mac([2, 0xfe, 10, 7, 0, 2]);
/// Bytes of a frame, and of the longest that is received.
const FRAME: usize = 64;
const BUFFERS: usize = 64;
/// Cycles in which what was sent has come.
const PATIENCE: u64 = 20_000;

/// One card with a raw queue pair of function 0.
struct Listener {
    world: Arc<Mutex<World>>,
    ctx: Context,
    cq: CompletionQueue,
    qp: QueuePair,
    memory: MemoryRegion,
    sent: u64,
}

fn open(world: &Arc<Mutex<World>>, function: u16) -> Context {
    Context::open(SimDevice::new(world, 0, function), Config::default()).unwrap()
}

impl Listener {
    fn new(width: usize) -> Self {
        let config = WorldConfig { cards: vec![CardConfig { width, ..Default::default() }], skip_idle: false, ..Default::default() };
        let world = Arc::new(Mutex::new(World::new(&config).unwrap()));
        let ctx = open(&world, 0);
        let pd = ctx.alloc_pd().unwrap();
        let eq = ctx.create_eq(8, 0).unwrap();
        let cq = ctx.create_cq(2 * BUFFERS, &eq).unwrap();
        let memory = pd.register(vec![0; BUFFERS * FRAME].into_boxed_slice(), Access::LOCAL_WRITE).unwrap();
        let mut qp = pd.create_qp(&QpConfig { qp_type: QpType::Raw, max_recv: BUFFERS, ..Default::default() }, &cq, &cq).unwrap();
        qp.to_init(Access::ALL).unwrap();
        qp.to_rtr(Access::ALL, &RtrAttr { mtu: Mtu::M4096, dest_qpn: 0, rq_psn: 0, min_rnr_timer: 0, repeat_nak: false, max_dest_rd_atomic: 0, path: None }).unwrap();
        qp.to_rts(&RtsAttr { sq_psn: 0, timeout: 0, retry_cnt: 0, rnr_retry: 0, max_rd_atomic: 0 }).unwrap();
        let mut all = Self { world, ctx, cq, qp, memory, sent: 0 };
        (0..BUFFERS as u64).for_each(|n| all.post(n));
        all
    }

    fn post(&mut self, n: u64) {
        let into = [sge(self.memory.addr() + n * FRAME as u64, FRAME as u32, self.memory.lkey())];
        self.qp.post_recv(&RecvRequest { wr_id: n, sges: &into }).unwrap();
    }

    fn counter(&self, name: &str) -> u64 {
        self.ctx.counters(counters::index(name).expect(name) as u32, 1).unwrap()[0]
    }

    /// Sends frames and gives those that the raw queue pair got. All others count as another station's, and nothing else does.
    fn hears(&mut self, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let of = |l: &Self| ["rx.rx_frames", "rx.rx_raw", "rx.rx_other_station"].map(|name| l.counter(name));
        let before = of(self);
        {
            let mut world = self.world.lock().unwrap();
            frames.iter().for_each(|frame| world.cards[0].receive(frame.clone()));
            while world.cards[0].receive_backlog() > 0 {
                world.run(PATIENCE);
            }
            world.run(PATIENCE);
        }
        let mut got = Vec::new();
        while let Some(c) = self.cq.poll() {
            assert_eq!(c.status, CqeStatus::Success);
            got.push(self.memory.to_vec(c.wr_id as usize * FRAME, c.byte_len as usize));
            self.post(c.wr_id);
        }
        let (all, heard) = (frames.len() as u64, got.len() as u64);
        let after = of(self);
        assert_eq!([0, 1, 2].map(|n| after[n] - before[n]), [all, heard, all - heard]);
        got
    }

    /// Whether a frame to `mac` is heard.
    fn is_heard(&mut self, mac: Mac) -> bool {
        let frame = self.frame(mac, None);
        let got = self.hears(std::slice::from_ref(&frame));
        assert!(got.is_empty() || got == [frame]);
        !got.is_empty()
    }

    fn frame(&mut self, to: Mac, vlan: Option<u16>) -> Vec<u8> {
        self.sent += 1;
        let tag: Vec<u8> = vlan.map_or(Vec::new(), |vid| [[0x81, 0], vid.to_be_bytes()].concat());
        let mut frame = [&to.0[..], &[2, 0, 0, 0, 0, 99], &tag, &[0x88, 0xb5], &self.sent.to_be_bytes()].concat();
        frame.resize(FRAME, 0x5a);
        frame
    }
}

fn in_use(result: Result<(), Error>) {
    assert!(matches!(&result, Err(Error::Admin { status: AdminStatus::InUse, .. })), "{result:?}");
}

/// Own addresses, groups, addresses that differ in one bit, with a VLAN tag and without; then everything, on request.
fn whose_frames(width: usize) {
    let mut l = Listener::new(width);
    let one = open(&l.world, 1);
    l.ctx.set_station(0, ZERO).unwrap();
    one.set_station(3, ONE).unwrap();
    let mut frames = Vec::new();
    for vlan in [None, Some(5)] {
        for mac in [ZERO, ONE, Mac([0xff; 6]), Mac([1, 0, 0x5e, 0, 0, 1]), Mac([0x33, 0x33, 0, 0, 0, 1])] {
            frames.push((l.frame(mac, vlan), true));
        }
        for own in [ZERO, ONE] {
            for byte in 0..6 {
                let mut near = own;
                near.0[byte] ^= if byte == 0 { 0x40 } else { 0x11 };
                frames.push((l.frame(near, vlan), false));
            }
        }
    }
    let all: Vec<Vec<u8>> = frames.iter().map(|f| f.0.clone()).collect();
    let own: Vec<Vec<u8>> = frames.iter().filter(|f| f.1).map(|f| f.0.clone()).collect();
    // Taken, and nobody wants them: no raw queue pair yet.
    assert!(l.hears_without(&all, own.len() as u64));
    l.ctx.set_raw_queue(Some(&l.qp)).unwrap();
    assert_eq!(l.hears(&all), own);
    l.ctx.set_promiscuous_queue(&l.qp).unwrap();
    assert_eq!(l.hears(&all), all);
    l.ctx.set_raw_queue(Some(&l.qp)).unwrap();
    assert_eq!(l.hears(&all), own);
}

impl Listener {
    /// The same where no raw queue pair is set: `taken` of the frames come as far as the responder.
    fn hears_without(&mut self, frames: &[Vec<u8>], taken: u64) -> bool {
        let of = |l: &Self| ["rx.rx_raw", "rx.rx_other_station"].map(|name| l.counter(name));
        let before = of(self);
        {
            let mut world = self.world.lock().unwrap();
            frames.iter().for_each(|frame| world.cards[0].receive(frame.clone()));
            while world.cards[0].receive_backlog() > 0 {
                world.run(PATIENCE);
            }
            world.run(PATIENCE);
        }
        let after = of(self);
        self.cq.poll().is_none() && [0, 1].map(|n| after[n] - before[n]) == [taken, frames.len() as u64 - taken]
    }
}

#[test]
fn a_card_hears_its_own_and_groups_w64() {
    whose_frames(64);
}

#[test]
fn a_card_hears_its_own_and_groups_w512() {
    whose_frames(512);
}

/// First come keeps it; its reset frees it. A function that comes back begins without.
#[test]
fn functions_keep_their_mac_addresses() {
    let mut l = Listener::new(64);
    l.ctx.set_raw_queue(Some(&l.qp)).unwrap();
    let one = open(&l.world, 1);
    one.set_station(0, ONE).unwrap();
    let refused = l.counter("admin.refused");
    in_use(l.ctx.set_station(0, ONE));
    in_use(one.set_station(1, ONE));
    assert_eq!(l.counter("admin.refused") - refused, 2);
    one.set_station(0, ONE).unwrap();
    assert!(l.is_heard(ONE));
    // Another in its place, and back.
    one.set_station(0, ZERO).unwrap();
    assert!(l.is_heard(ZERO) && !l.is_heard(ONE));
    one.clear_station(0).unwrap();
    assert!(!l.is_heard(ZERO));
    one.set_station(0, ONE).unwrap();
    drop(one);
    let one = open(&l.world, 1);
    assert!(!l.is_heard(ONE), "an address outlives its function's reset");
    l.ctx.set_station(0, ONE).unwrap();
    in_use(one.set_station(0, ONE));
    assert!(l.is_heard(ONE));
    // What is promiscuous ends with its queue pair.
    l.ctx.set_promiscuous_queue(&l.qp).unwrap();
    assert!(l.is_heard(ZERO));
    let Listener { world, ctx, cq, qp, .. } = l;
    drop(qp);
    let before = ctx.counters(counters::index("rx.rx_other_station").unwrap() as u32, 1).unwrap()[0];
    let frame = [&ZERO.0[..], &[2, 0, 0, 0, 0, 99, 0x88, 0xb5], &[0; 50]].concat();
    {
        let mut world = world.lock().unwrap();
        world.cards[0].receive(frame);
        world.run(PATIENCE);
    }
    assert_eq!(ctx.counters(counters::index("rx.rx_other_station").unwrap() as u32, 1).unwrap()[0] - before, 1);
    drop(cq);
}

/// A stranger's flood takes no cells: behind and amidst thousands of frames the card's own come.
#[test]
fn a_flood_for_others_costs_nothing() {
    let mut l = Listener::new(512);
    l.ctx.set_station(0, ZERO).unwrap();
    l.ctx.set_raw_queue(Some(&l.qp)).unwrap();
    let (mut frames, mut own) = (Vec::new(), Vec::new());
    for n in 0..4000u32 {
        let mut long = l.frame(Mac([2, 0, 0, 0, (n >> 8) as u8, n as u8]), None);
        long.resize(if n % 3 == 0 { 1500 } else { FRAME }, 1);
        frames.push(long);
        if n % 100 == 99 {
            own.push(l.frame(ZERO, None));
            frames.extend(own.last().cloned());
        }
    }
    let before = l.counter("rx.rx_no_buffer");
    assert_eq!(l.hears(&frames), own);
    assert_eq!(l.counter("rx.rx_no_buffer"), before);
}
