//! Receives on whole cards: what one peer leaves unfinished costs no other, and lives of a queue pair have nothing of each other.
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::Mtu;
use ferric_driver::{Access, AtomicOp, AtomicRequest, Completion, CompletionQueue, CqeStatus, Error, MemoryRegion, QpConfig, QueuePair, RecvRequest, SendRequest, SharedReceiveQueue, SrqConfig};
use ferric_hdl::card::counters;
use ferric_hdl::net::icrc::model as icrc;
use ferric_sim::fabric::Fate;
use ferric_sim::{CardConfig, WorldConfig};
use ferric_tests::pair::{Pair, Wire};
use ferric_tests::traffic::pattern;
use ferric_tests::widths::widths;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

const PATIENCE: u64 = 3_000_000;
const SLOT: usize = 1024;
/// The BTH behind Ethernet, IPv4 and UDP: opcode, and the last byte of the PSN.
const OPCODE: usize = 42;
const PSN: usize = 42 + 11;
/// Syndrome of the AETH behind it.
const SYNDROME: usize = 42 + 12;

struct Bench {
    pair: Pair,
    cqs: [CompletionQueue; 2],
    src: MemoryRegion,
    dst: MemoryRegion,
}

impl Bench {
    fn new(width: usize, slots: usize) -> Self {
        let card = CardConfig { width, ..Default::default() };
        let pair = Pair::new(&WorldConfig { cards: vec![card.clone(), card], ..Default::default() }).unwrap();
        let cqs = [pair.hosts[0].cq(4096).unwrap(), pair.hosts[1].cq(4096).unwrap()];
        let src = pair.hosts[0].region(4 * SLOT, Access::ALL).unwrap();
        let dst = pair.hosts[1].region(slots * SLOT, Access::ALL).unwrap();
        src.write(0, &(0..4 * SLOT).map(|i| pattern((i / SLOT) as u64, i % SLOT)).collect::<Vec<_>>());
        Self { pair, cqs, src, dst }
    }

    fn connected(&self, config: &QpConfig, wire: &Wire, srq: Option<&SharedReceiveQueue>) -> [QueuePair; 2] {
        let mut a = self.pair.hosts[0].pd.create_qp(config, &self.cqs[0], &self.cqs[0]).unwrap();
        let pd = &self.pair.hosts[1].pd;
        let mut b = match srq {
            Some(srq) => pd.create_qp_on_srq(config, &self.cqs[1], &self.cqs[1], srq).unwrap(),
            None => pd.create_qp(config, &self.cqs[1], &self.cqs[1]).unwrap(),
        };
        self.pair.connect(wire, &mut a, &mut b).unwrap();
        [a, b]
    }

    fn post(&self, qp: &mut QueuePair, n: u64, opcode: WrOpcode, len: usize, imm: u32, to: (u64, u32)) {
        let from = [sge(self.src.addr() + (n % 4) * SLOT as u64, len as u32, self.src.lkey())];
        if opcode == WrOpcode::FetchAdd {
            let request = AtomicRequest { wr_id: n, op: AtomicOp::FetchAdd(1), sges: &from, remote_addr: to.0, rkey: to.1, signaled: true, fence: false };
            return qp.post_atomic(&request).unwrap();
        }
        let request = SendRequest { wr_id: n, opcode, payload: Payload::Sges(&from), remote_addr: to.0, rkey: to.1, imm, signaled: true, solicited: false };
        qp.post_send(&request).unwrap();
    }

    /// Posts a receive into slot `slot`, of two entries.
    fn receive(&self, wr_id: u64, slot: usize, post: impl FnOnce(&RecvRequest) -> Result<(), Error>) {
        let at = self.dst.addr() + (slot * SLOT) as u64;
        let into = [sge(at, 100, self.dst.lkey()), sge(at + 100, SLOT as u32 - 100, self.dst.lkey())];
        post(&RecvRequest { wr_id, sges: &into }).unwrap();
    }

    fn wait(&mut self, host: usize) -> Completion {
        self.pair.wait(&mut self.cqs[host], PATIENCE).unwrap()
    }

    fn arrived(&self, slot: usize, n: u64, len: usize) -> bool {
        self.dst.to_vec(slot * SLOT, len).iter().enumerate().all(|(i, b)| *b == pattern(n % 4, i))
    }

    fn counter(&self, name: &str) -> u64 {
        self.pair.hosts[1].ctx.counters(counters::index(name).expect(name) as u32, 1).unwrap()[0]
    }
}

/// 28 peers on a shared queue and 44 on queues of their own vanish behind the first packet of a SEND. The shared ring goes round under those that stand still;
/// then they come back and find the very requests that they had.
fn vanished(width: usize) {
    const SHARED: usize = 28;
    const OWN: usize = 44;
    const LEN: usize = 600;
    let mut b = Bench::new(width, 128);
    let host = &b.pair.hosts[1];
    let srq = host.pd.create_srq(&SrqConfig { max_wr: 32, max_sge: 2 }, &host.eq).unwrap();
    let wire = Wire { mtu: Mtu::M256, timeout: 13, ..Default::default() };
    let config = QpConfig { max_send: 4, max_recv: 2, ..Default::default() };
    let mut qps: Vec<_> = (0..SHARED + OWN).map(|n| b.connected(&config, &wire, (n < SHARED).then_some(&srq))).collect();
    let [mut a, mut z] = b.connected(&config, &wire, None);
    let [mut live, _on_shared] = b.connected(&config, &wire, Some(&srq));
    for slot in 0..SHARED {
        b.receive(slot as u64, slot, |wr| srq.post_srq_recv(wr));
    }
    for (slot, [_, qp]) in qps.iter_mut().enumerate().skip(SHARED) {
        b.receive(slot as u64, slot, |wr| qp.post_recv(wr));
    }
    let gone = Arc::new(AtomicBool::new(true));
    let hook = gone.clone();
    b.pair.world().links[0].set_hook(Some(Box::new(move |_, frame| (hook.load(Ordering::SeqCst) && matches!(frame[OPCODE], 1..=3)).then_some(Fate::Dropped))));
    for (n, [qp, _]) in qps.iter_mut().enumerate() {
        b.post(qp, n as u64, WrOpcode::Send, LEN, 0, (0, 0));
        b.pair.world().run(300);
    }
    b.pair.world().run(2000);
    assert_eq!(srq.query_srq().unwrap().posted, 0, "each has taken its receive");
    // Whoever has whole messages goes on, of one packet here.
    b.receive(77, 100, |wr| z.post_recv(wr));
    b.post(&mut a, 1, WrOpcode::Send, 200, 0, (0, 0));
    let (sent, got) = (b.wait(0), b.wait(1));
    assert_eq!((sent.status, got.status, got.wr_id, b.arrived(100, 1, 200)), (CqeStatus::Success, CqeStatus::Success, 77, true));
    // 150 others through the shared ring of 128 slots.
    for n in 0..150 {
        b.receive(500, 101, |wr| srq.post_srq_recv(wr));
        b.post(&mut live, n, WrOpcode::Send, 64, 0, (0, 0));
        let (sent, got) = (b.wait(0), b.wait(1));
        assert_eq!((sent.status, got.status, got.wr_id), (CqeStatus::Success, CqeStatus::Success, 500), "message {n}");
    }
    gone.store(false, Ordering::SeqCst);
    let mut seen = [false; SHARED + OWN];
    for _ in 0..SHARED + OWN {
        let c = b.wait(1);
        let slot = c.wr_id as usize;
        let n = qps.iter().position(|[_, qp]| qp.qpn() == c.qpn).expect("one of them");
        assert_eq!((c.status, c.byte_len as usize), (CqeStatus::Success, LEN));
        assert!(b.arrived(slot, n as u64, LEN), "message {n} in slot {slot}");
        assert!(!std::mem::replace(&mut seen[slot], true), "slot {slot} twice");
    }
    (0..SHARED + OWN).for_each(|_| assert_eq!(b.wait(0).status, CqeStatus::Success));
    assert!(b.counter("rq.rq_fetched_again") >= 20);
    assert_eq!((b.pair.iommu_faults(), b.counter("resp.rnr_sent")), (0, 0));
}

#[test]
fn peers_that_vanish_in_mid_message_cost_others_nothing() {
    vanished(512);
}

#[test]
fn peers_that_vanish_in_mid_message_cost_others_nothing_on_the_small_card() {
    vanished(64);
}

/// A queue pair with 2048 receives goes to error; a WRITE of another one comes right behind.
fn flushed(width: usize) {
    const RECEIVES: usize = 2048;
    let mut b = Bench::new(width, 4);
    let big = QpConfig { max_send: 4, max_recv: RECEIVES, ..Default::default() };
    let [mut bad, mut full] = b.connected(&big, &Wire::default(), None);
    let [mut a, _z] = b.connected(&QpConfig::default(), &Wire::default(), None);
    for n in 0..RECEIVES {
        b.receive(n as u64, 1, |wr| full.post_recv(wr));
    }
    b.pair.world().run(20_000);
    let to = (b.dst.addr(), b.dst.rkey());
    b.post(&mut bad, 9, WrOpcode::Write, 64, 0, (to.0, to.1 ^ 0x55));
    assert_eq!(b.wait(0).status, CqeStatus::RemoteAccess);
    let mut most = 0;
    for n in 0..4 {
        let before = b.pair.world().cycle();
        b.post(&mut a, n, WrOpcode::Write, 64, 0, to);
        assert_eq!(b.wait(0).status, CqeStatus::Success);
        most = most.max(b.pair.world().cycle() - before);
    }
    assert!(most < 4000, "a WRITE of 64 bytes took {most} cycles");
    for n in 0..RECEIVES {
        let c = b.wait(1);
        assert_eq!((c.wr_id, c.status), (n as u64, CqeStatus::WrFlush));
    }
}

#[test]
fn a_flush_of_thousands_lets_others_pass() {
    widths(512).into_iter().for_each(flushed);
}

/// A WRITE whose first packet is lost, and lost again when it is repeated: the responder says so again. There is no time-out.
fn lost_again(width: usize) {
    let mut b = Bench::new(width, 4);
    let wire = Wire { mtu: Mtu::M256, timeout: 0, ..Default::default() };
    let [mut a, _z] = b.connected(&QpConfig::default(), &wire, None);
    let times = Arc::new(AtomicU32::new(0));
    let hook = times.clone();
    let first = wire.psn[0] as u8;
    b.pair.world().links[0].set_hook(Some(Box::new(move |_, frame| {
        let lost = frame[OPCODE] < 0x0d && frame[PSN] == first + 1 && hook.fetch_add(1, Ordering::SeqCst) < 4;
        lost.then_some(Fate::Dropped)
    })));
    b.post(&mut a, 0, WrOpcode::Write, SLOT, 0, (b.dst.addr(), b.dst.rkey()));
    assert_eq!(b.wait(0).status, CqeStatus::Success);
    assert!(b.arrived(0, 0, SLOT));
    assert_eq!((times.load(Ordering::SeqCst), b.counter("resp.nak_seq_sent")), (5, 4));
}

#[test]
fn a_repeat_that_is_lost_is_asked_for_again() {
    widths(64).into_iter().for_each(lost_again);
}

/// A packet is lost, and the one NAK for the gap, too. Packets behind it bring the NAK again where both ends are set so; there is no time-out.
fn nak_lost(width: usize) {
    const MESSAGES: u64 = 40;
    let mut b = Bench::new(width, MESSAGES as usize);
    let wire = Wire { mtu: Mtu::M256, timeout: 0, repeat_nak: true, ..Default::default() };
    let [mut a, _z] = b.connected(&QpConfig::default(), &wire, None);
    let second = wire.psn[0] as u8 + 1;
    let (mut packets, naks) = (0, Arc::new(AtomicU32::new(0)));
    b.pair.world().links[0].set_hook(Some(Box::new(move |_, frame| {
        packets += u32::from(frame[OPCODE] < 0x0d && frame[PSN] == second);
        (packets == 1 && frame[PSN] == second).then_some(Fate::Dropped)
    })));
    let seen = naks.clone();
    b.pair.world().links[1].set_hook(Some(Box::new(move |_, frame| {
        let nak = frame[OPCODE] == 0x11 && frame[SYNDROME] == 0x60;
        (nak && seen.fetch_add(1, Ordering::SeqCst) == 0).then_some(Fate::Dropped)
    })));
    for n in 0..MESSAGES {
        b.post(&mut a, n, WrOpcode::Write, SLOT, 0, (b.dst.addr() + n * SLOT as u64, b.dst.rkey()));
    }
    for n in 0..MESSAGES {
        let c = b.wait(0);
        assert_eq!((c.wr_id, c.status), (n, CqeStatus::Success));
        assert!(b.arrived(n as usize, n, SLOT));
    }
    // 158 packets are behind the gap: the second and third of them that tell may both be under way before the peer has gone back.
    let naks = u64::from(naks.load(Ordering::SeqCst));
    assert!((2..=3).contains(&naks), "{naks} NAKs");
    assert_eq!(b.counter("resp.nak_seq_sent"), naks);
}

#[test]
fn a_nak_that_is_lost_is_repeated() {
    widths(64).into_iter().for_each(nak_lost);
}

/// The responder of queue pair `b` lives 255 more lives in which nothing happens, then one in which everything has to work.
fn next_lap(bench: &mut Bench, [a, z]: &mut [QueuePair; 2]) {
    a.to_reset().unwrap();
    (0..256).for_each(|_| z.to_reset().unwrap());
    bench.pair.connect(&Wire { max_dest_rd_atomic: 4, ..Default::default() }, a, z).unwrap();
}

fn lives(width: usize) {
    let mut b = Bench::new(width, 4);
    let wire = Wire { max_dest_rd_atomic: 4, ..Default::default() };
    let mut qps = b.connected(&QpConfig { max_recv: 4, ..Default::default() }, &wire, None);
    let (to, key) = ((b.dst.addr(), b.dst.rkey()), b.dst.rkey());
    b.dst.write(0, &[7; SLOT]);
    for lap in 0..2 {
        // READs and atomics that are answered, a SEND, then a failure whose mark stays in the chain.
        for n in 0..5 {
            let opcode = if n == 3 { WrOpcode::FetchAdd } else { WrOpcode::Read };
            b.post(&mut qps[0], n, opcode, 8, 0, to);
            let c = b.wait(0);
            assert_eq!(c.status, CqeStatus::Success, "life {}, request {n}", 256 * lap + 1);
        }
        b.receive(60, 2, |wr| qps[1].post_recv(wr));
        b.post(&mut qps[0], 6, WrOpcode::Send, 500, 0, (0, 0));
        let (sent, got) = (b.wait(0), b.wait(1));
        assert_eq!((sent.status, got.status, got.wr_id), (CqeStatus::Success, CqeStatus::Success, 60), "lap {lap}");
        b.post(&mut qps[0], 5, WrOpcode::Write, 64, 0, (to.0, key ^ 0x33));
        assert_eq!(b.wait(0).status, CqeStatus::RemoteAccess, "lap {lap}");
        if lap == 0 {
            next_lap(&mut b, &mut qps);
        }
    }
}

#[test]
fn the_257th_life_has_nothing_of_the_first() {
    widths(512).into_iter().for_each(lives);
}

/// SEND with invalidate to a queue pair on a shared receive queue of another protection domain: the key has to be of the queue pair's.
fn invalidated(width: usize) {
    let mut b = Bench::new(width, 8);
    let other = b.pair.hosts[1].ctx.alloc_pd().unwrap();
    let srq = other.create_srq(&SrqConfig { max_wr: 8, max_sge: 2 }, &b.pair.hosts[1].eq).unwrap();
    let pool = other.register(vec![0; 4096].into_boxed_slice(), Access::ALL).unwrap();
    let [mut a, _z] = b.connected(&QpConfig::default(), &Wire::default(), Some(&srq));
    let mine = b.pair.hosts[1].pd.register_fast(vec![0; 4096].into_boxed_slice(), Access::ALL).unwrap();
    let foreign = other.register_fast(vec![0; 4096].into_boxed_slice(), Access::ALL).unwrap();
    for n in 0..2 {
        srq.post_srq_recv(&RecvRequest { wr_id: n, sges: &[sge(pool.addr(), 1024, pool.lkey())] }).unwrap();
    }
    b.post(&mut a, 1, WrOpcode::SendInv, 64, mine.rkey(), (0, 0));
    let (sent, got) = (b.wait(0), b.wait(1));
    assert_eq!((sent.status, got.status), (CqeStatus::Success, CqeStatus::Success));
    b.post(&mut a, 2, WrOpcode::SendInv, 64, foreign.rkey(), (0, 0));
    assert_eq!(b.wait(0).status, CqeStatus::RemoteAccess, "a key of the shared queue's domain is none of the peer's");
    assert_eq!(b.wait(1).status, CqeStatus::RemoteInvalidRequest);
    // The first key works no longer; a WRITE by it, from another queue pair of its domain, says so.
    let [mut c, _d] = b.connected(&QpConfig::default(), &Wire::default(), None);
    b.post(&mut c, 3, WrOpcode::Write, 64, 0, (mine.addr(), mine.rkey()));
    assert_eq!(b.wait(0).status, CqeStatus::RemoteAccess);
}

#[test]
fn a_peer_invalidates_keys_of_the_queue_pairs_domain_only() {
    widths(64).into_iter().for_each(invalidated);
}

/// A first packet that carries as much as was announced, or a middle one behind which nothing is left, is no WRITE (IBTA 9.7.4.1.6).
fn too_much(width: usize) {
    let mut b = Bench::new(width, 4);
    for announced in [256u32, 100, 512, 300] {
        let wire = Wire { mtu: Mtu::M256, timeout: 0, ..Default::default() };
        let [mut a, _z] = b.connected(&QpConfig::default(), &wire, None);
        let held = Arc::new(Mutex::new(Vec::new()));
        let hook = held.clone();
        b.pair.world().links[0].set_hook(Some(Box::new(move |_, frame| {
            let mut held = hook.lock().unwrap();
            (frame[OPCODE] >= 6 && frame[OPCODE] <= 8 && held.len() < 4).then(|| {
                held.push(frame.to_vec());
                Fate::Dropped
            })
        })));
        b.post(&mut a, 0, WrOpcode::Write, SLOT, 0, (b.dst.addr(), b.dst.rkey()));
        b.pair.world().run(10_000);
        let mut frames = std::mem::take(&mut *held.lock().unwrap());
        assert_eq!(frames.iter().map(|frame| frame[OPCODE]).collect::<Vec<_>>(), [6, 7, 7, 8]);
        // What the RETH says is changed on the way, and the frame's check is made anew.
        frames[0][OPCODE + 24..OPCODE + 28].copy_from_slice(&announced.to_be_bytes());
        icrc::seal(&mut frames[0]).unwrap();
        let mut world = b.pair.world();
        world.links[0].set_hook(None);
        let now = world.cycle();
        for frame in frames {
            world.links[0].send(now, frame);
        }
        drop(world);
        assert_eq!(b.wait(0).status, CqeStatus::RemoteInvalidRequest, "{announced} bytes announced");
    }
}

#[test]
fn a_write_that_carries_more_than_it_announced_is_refused() {
    widths(512).into_iter().for_each(too_much);
}
