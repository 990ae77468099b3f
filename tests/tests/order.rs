//! Order on whole cards: what comes behind an atomic finds it done, a key goes when nobody uses it any more, of several failures the oldest is told,
//! and states change rightly whatever happens meanwhile.
use ferric_abi::codes::WrOpcode;
use ferric_abi::csr;
use ferric_driver::device::{Device, DmaAccess};
use ferric_driver::mapping::Mapping;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::{Mtu, Path, QpType, RtrAttr, RtsAttr};
use ferric_driver::{Access, AtomicOp, AtomicRequest, CqeStatus, MemoryRegion, QpConfig, QpState, QueuePair, ReadRequest, RecvRequest, SendRequest, WindowType};
use ferric_sim::axi::HostTiming;
use ferric_sim::{CardConfig, WorldConfig};
use ferric_tests::pair::{Linked, Pair, Wire};
use ferric_tests::widths::widths;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PATIENCE: u64 = 1_000_000;
const BYTES: usize = 65_536;

/// Cards of one width, or of both ([`widths`]); the narrow ones with stalls everywhere.
fn cards(one: usize) -> Vec<WorldConfig> {
    let card = |width| {
        let card = CardConfig { width, chaos: width == 64, host: HostTiming { read_latency: 150, ..Default::default() }, ..Default::default() };
        WorldConfig { cards: vec![card.clone(), card], ..Default::default() }
    };
    widths(one).into_iter().map(card).collect()
}

fn linked(world: &WorldConfig, wire: &Wire) -> Linked {
    let pattern: Vec<u8> = (0..BYTES as u32).map(|i| (i * 7 + (i >> 8)) as u8).collect();
    let mut l = Linked::on(Pair::new(world).unwrap(), &QpConfig { max_send: 64, max_recv: 32, ..Default::default() }, wire, &pattern).unwrap();
    l.cqs = [l.pair.hosts[0].cq(256).unwrap(), l.pair.hosts[1].cq(256).unwrap()];
    l.qps = l.pair.connected(&QpConfig { max_send: 64, max_recv: 32, ..Default::default() }, wire, [&l.cqs[0], &l.cqs[1]]).unwrap();
    l
}

fn word(region: &MemoryRegion, at: usize) -> u64 {
    u64::from_le_bytes(region.to_vec(at, 8).try_into().unwrap())
}

fn add(l: &mut Linked, wr_id: u64, by: u64, to: usize, at: usize) {
    let sges = [sge(l.src.addr() + to as u64, 8, l.src.lkey())];
    let request = AtomicRequest { wr_id, op: AtomicOp::FetchAdd(by), sges: &sges, remote_addr: l.dst.addr() + at as u64, rkey: l.dst.rkey(), signaled: true, fence: false };
    l.qps[0].post_atomic(&request).unwrap();
}

fn send(l: &mut Linked, wr_id: u64, opcode: WrOpcode, payload: &[u8], at: usize, imm: u32) {
    let (remote_addr, rkey) = (l.dst.addr() + at as u64, l.dst.rkey());
    l.qps[0].post_send(&SendRequest { wr_id, opcode, payload: Payload::Inline(payload), remote_addr, rkey, imm, signaled: true, solicited: false }).unwrap();
}

/// Sixteen additions to one word, or to as many, then whatever completes a receive: it tells that they have been executed.
#[test]
fn a_receive_is_completed_behind_the_atomics() {
    for world in cards(64) {
        let mut l = linked(&world, &Wire::default());
        let far = l.pair.hosts[1].pd.register_fast(vec![0; 4096].into_boxed_slice(), Access::ALL).unwrap();
        for (n, opcode) in [WrOpcode::Send, WrOpcode::WriteImm, WrOpcode::SendImm, WrOpcode::SendInv].into_iter().enumerate() {
            for spread in [0, 8, 4096] {
                if opcode == WrOpcode::SendInv && spread != 0 {
                    continue;
                }
                l.dst.write(0, &[0; BYTES]);
                let into = [sge(l.dst.addr() + 40_000, 64, l.dst.lkey())];
                l.qps[1].post_recv(&RecvRequest { wr_id: 9, sges: &into }).unwrap();
                let words = if spread == 4096 { 8 } else { 16 };
                (0..16).for_each(|i| add(&mut l, i as u64, 1, 8 * i, spread * (i % words)));
                send(&mut l, 16, opcode, &[n as u8 + 1; 24], 50_000, far.rkey());
                let c = l.wait(1, PATIENCE).unwrap();
                assert_eq!((c.wr_id, c.status), (9, CqeStatus::Success));
                let sum: u64 = if spread == 0 { word(&l.dst, 0) } else { (0..words).map(|i| word(&l.dst, spread * i)).sum() };
                assert_eq!(sum, 16, "{opcode:?}, {spread} bytes apart: completed when {sum} had been executed");
                for i in 0..17 {
                    let c = l.wait(0, PATIENCE).unwrap();
                    assert_eq!((c.wr_id, c.status), (i, CqeStatus::Success));
                }
            }
        }
        assert_eq!(l.pair.iommu_faults(), 0);
    }
}

/// Additions and WRITEs of one word in turn, back to back, and READs: each finds what the one before has left.
#[test]
fn writes_and_reads_find_the_atomics_done() {
    for world in cards(512) {
        let mut l = linked(&world, &Wire { mtu: Mtu::M256, ..Default::default() });
        // Fifteen others are in front of the addition, a WRITE right behind it.
        l.dst.write(0, &[0; 256]);
        (0..15).for_each(|i| add(&mut l, i, 1, 0, 8));
        add(&mut l, 15, 1, 8, 0);
        send(&mut l, 16, WrOpcode::Write, &100u64.to_le_bytes(), 0, 0);
        for i in 0..17 {
            assert_eq!(l.wait(0, PATIENCE).unwrap().wr_id, i);
        }
        assert_eq!([word(&l.src, 8), word(&l.dst, 0), word(&l.dst, 8)], [0, 100, 15]);
        // In turn; the word lies within a WRITE of several packets.
        let mut bytes = vec![0; 1000];
        let mut number = 0u64;
        let mut post = |l: &mut Linked, what: u64, round: u64| {
            match what {
                0 => add(l, number, 1, 64 + 8 * round as usize, 512),
                1 => send(l, number, WrOpcode::Write, &(round << 32).to_le_bytes(), 512, 0),
                2 => {
                    bytes[512..520].copy_from_slice(&(round << 32 | 1 << 31).to_le_bytes());
                    l.src.write(8192 + 1024 * round as usize, &bytes);
                    let from = [sge(l.src.addr() + 8192 + 1024 * round, 1000, l.src.lkey())];
                    let (remote_addr, rkey) = (l.dst.addr(), l.dst.rkey());
                    l.qps[0].post_send(&SendRequest { wr_id: number, opcode: WrOpcode::Write, payload: Payload::Sges(&from), remote_addr, rkey, imm: 0, signaled: true, solicited: false }).unwrap();
                }
                _ => {
                    let into = [sge(l.src.addr() + 4096 + 8 * round, 8, l.src.lkey())];
                    let (remote_addr, rkey) = (l.dst.addr() + 512, l.dst.rkey());
                    l.qps[0].post_read(&ReadRequest { wr_id: number, sges: &into, remote_addr, rkey, signaled: true, fence: false }).unwrap();
                }
            }
            number += 1;
        };
        // Found by each addition, read by each READ. Rounds are waited for: a WRITE need not wait for a READ in front of it.
        let (mut value, mut found, mut read) = (word(&l.dst, 512), Vec::new(), Vec::new());
        let programs: [&[u64]; 4] = [&[1, 0, 3], &[0, 1], &[0, 2], &[2, 0, 3]];
        for round in 0..40 {
            let program = programs[round as usize % 4];
            for what in program {
                match what {
                    0 => {
                        found.push((round as usize, value));
                        value += 1;
                    }
                    1 => value = round << 32,
                    2 => value = round << 32 | 1 << 31,
                    _ => read.push((round as usize, value)),
                }
                post(&mut l, *what, round);
            }
            for _ in program {
                assert_eq!(l.wait(0, PATIENCE).unwrap().status, CqeStatus::Success);
            }
        }
        for (round, want) in found {
            assert_eq!(word(&l.src, 64 + 8 * round), want, "addition of round {round}");
        }
        for (round, want) in read {
            assert_eq!(word(&l.src, 4096 + 8 * round), want, "READ of round {round}");
        }
        assert_eq!((word(&l.dst, 512), l.pair.iommu_faults()), (value, 0));
    }
}

/// WRITEs that wait for sixteen additions to one word do not hold up another queue pair's.
#[test]
fn whoever_waits_for_atomics_waits_alone() {
    for mut world in cards(64) {
        // Additions that take their time.
        world.cards[1].host.read_latency = 1500;
        let mut l = linked(&world, &Wire::default());
        let mut cqs = [l.pair.hosts[0].cq(64).unwrap(), l.pair.hosts[1].cq(64).unwrap()];
        let mut other = l.pair.connected(&QpConfig::default(), &Wire::default(), [&cqs[0], &cqs[1]]).unwrap();
        (0..16).for_each(|i| add(&mut l, i, 1, 0, 8));
        (0..20).for_each(|i| send(&mut l, 16 + i, WrOpcode::Write, &[1; 16], 64, 0));
        for n in 0..4 {
            let (remote_addr, rkey) = (l.dst.addr() + 1024, l.dst.rkey());
            other[0].post_send(&SendRequest { wr_id: n, opcode: WrOpcode::Write, payload: Payload::Inline(&[2; 16]), remote_addr, rkey, imm: 0, signaled: true, solicited: false }).unwrap();
            assert_eq!(l.pair.wait(&mut cqs[0], PATIENCE).unwrap().status, CqeStatus::Success);
        }
        let mut done = 0;
        while l.cqs[0].poll().is_some() {
            done += 1;
        }
        assert!(done < 16, "they have waited for {done} additions of another queue pair");
        for i in done..36 {
            assert_eq!(l.wait(0, PATIENCE).unwrap().wr_id, i);
        }
    }
}

/// How a key is taken away.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    LocalInv,
    SendInv,
    Unbind,
    Rebind,
}

/// Additions come while their key goes: none is executed after that has completed, and all that succeeded have been.
#[test]
fn a_key_goes_when_no_atomic_uses_it() {
    for world in cards(512) {
        let delays: &[u64] = if world.cards[0].chaos { &[0, 500, 1200] } else { &[500] };
        for way in [Way::LocalInv, Way::SendInv, Way::Unbind, Way::Rebind] {
            let mut between = 0;
            for delay in delays {
                between += u32::from(taken_away(&world, way, *delay));
            }
            assert!(between > 0, "{way:?}: never in the midst of the additions");
        }
    }
}

/// True if some of the additions succeeded and some did not.
fn taken_away(world: &WorldConfig, way: Way, delay: u64) -> bool {
    let mut l = linked(world, &Wire::default());
    let pd = &l.pair.hosts[1].pd;
    let fast = pd.register_fast(vec![0; 4096].into_boxed_slice(), Access::ALL).unwrap();
    let plain = pd.register_bindable(vec![0; 4096].into_boxed_slice(), Access::ALL).unwrap();
    let mut window = pd.alloc_mw(WindowType::One).unwrap();
    let windowed = matches!(way, Way::Unbind | Way::Rebind);
    let mut cqs = [l.pair.hosts[0].cq(64).unwrap(), l.pair.hosts[1].cq(64).unwrap()];
    let mut other = l.pair.connected(&QpConfig::default(), &Wire::default(), [&cqs[0], &cqs[1]]).unwrap();
    let (memory, key) = if windowed {
        let key = other[1].post_bind(1, &mut window, &plain, 0..4096, Access::ALL, true).unwrap();
        assert_eq!(l.pair.wait(&mut cqs[1], PATIENCE).unwrap().status, CqeStatus::Success);
        (&plain, key)
    } else {
        (&fast, fast.rkey())
    };
    let additions = |l: &mut Linked, numbers: Range<u64>| {
        for n in numbers {
            let sges = [sge(l.src.addr() + 8 * n, 8, l.src.lkey())];
            l.qps[0].post_atomic(&AtomicRequest { wr_id: n, op: AtomicOp::FetchAdd(1), sges: &sges, remote_addr: memory.addr() + 64, rkey: key, signaled: true, fence: false }).unwrap();
        }
    };
    // Between two halves of the additions; a SEND with invalidate comes by the same wire.
    additions(&mut l, 0..8);
    l.pair.world().run(delay / 2 + if way == Way::SendInv { 0 } else { 300 });
    match way {
        Way::LocalInv => other[1].post_local_invalidate(2, key, true).unwrap(),
        Way::Unbind => other[1].post_unbind(2, &mut window, true).unwrap(),
        Way::Rebind => drop(other[1].post_bind(2, &mut window, &plain, 2048..4096, Access::ALL, true).unwrap()),
        Way::SendInv => {
            let into = [sge(l.dst.addr(), 64, l.dst.lkey())];
            other[1].post_recv(&RecvRequest { wr_id: 2, sges: &into }).unwrap();
            other[0].post_send(&SendRequest { wr_id: 2, opcode: WrOpcode::SendInv, payload: Payload::Inline(&[5; 16]), remote_addr: 0, rkey: 0, imm: key, signaled: false, solicited: false }).unwrap();
        }
    }
    l.pair.world().run(delay / 4);
    additions(&mut l, 8..16);
    let c = l.pair.wait(&mut cqs[1], PATIENCE).unwrap();
    assert_eq!((c.wr_id, c.status), (2, CqeStatus::Success), "{way:?}");
    let then = word(memory, 64);
    let mut good = 0;
    for n in 0..16 {
        let c = l.wait(0, PATIENCE).unwrap();
        assert_eq!(c.wr_id, n);
        good += u64::from(c.status == CqeStatus::Success);
    }
    l.pair.world().run(3000);
    assert_eq!(word(memory, 64), then, "{way:?} after {delay} cycles: {then} when it completed");
    assert_eq!(good, then, "{way:?} after {delay} cycles: as many succeeded as were executed");
    0 < good && good < 16
}

/// What stands in front of the request that the peer refuses.
#[derive(Clone, Copy, Debug)]
enum First {
    Read,
    Add,
    Write,
}

/// A request that succeeds, one that the peer refuses, one that fails at home, posted together: the second is told, with and without a time-out.
#[test]
fn the_older_of_two_failures_is_told() {
    for world in cards(64) {
        for timeout in [0, 8] {
            for (first, refusal) in [(First::Read, 0), (First::Add, 0), (First::Write, 0), (First::Read, 1), (First::Read, 2), (First::Add, 3)] {
                let mut l = linked(&world, &Wire { timeout, rnr_retry: 1, ..Default::default() });
                match first {
                    First::Read => {
                        let into = [sge(l.src.addr(), 9000, l.src.lkey())];
                        let (remote_addr, rkey) = (l.dst.addr(), l.dst.rkey());
                        l.qps[0].post_read(&ReadRequest { wr_id: 1, sges: &into, remote_addr, rkey, signaled: true, fence: false }).unwrap();
                    }
                    First::Add => add(&mut l, 1, 1, 0, 8),
                    First::Write => send(&mut l, 1, WrOpcode::Write, &[1; 16], 0, 0),
                }
                // A bad key; a receive that is too small; none; a bad address of an atomic.
                let small = [sge(l.dst.addr(), 4, l.dst.lkey())];
                let (remote_addr, rkey) = (l.dst.addr(), l.dst.rkey() ^ 1);
                let bytes = Payload::Inline(&[7; 16]);
                let status = match refusal {
                    0 => {
                        l.qps[0].post_send(&SendRequest { wr_id: 2, opcode: WrOpcode::Write, payload: bytes, remote_addr, rkey, imm: 0, signaled: true, solicited: false }).unwrap();
                        CqeStatus::RemoteAccess
                    }
                    1 | 2 => {
                        if refusal == 1 {
                            l.qps[1].post_recv(&RecvRequest { wr_id: 9, sges: &small }).unwrap();
                        }
                        l.qps[0].post_send(&SendRequest { wr_id: 2, opcode: WrOpcode::Send, payload: bytes, remote_addr: 0, rkey: 0, imm: 0, signaled: true, solicited: false }).unwrap();
                        if refusal == 1 {
                            CqeStatus::RemoteInvalidRequest
                        } else {
                            CqeStatus::RnrRetryExceeded
                        }
                    }
                    _ => {
                        let into = [sge(l.src.addr() + 64, 8, l.src.lkey())];
                        let remote_addr = l.dst.addr() + BYTES as u64;
                        let rkey = l.dst.rkey();
                        l.qps[0].post_atomic(&AtomicRequest { wr_id: 2, op: AtomicOp::FetchAdd(1), sges: &into, remote_addr, rkey, signaled: true, fence: false }).unwrap();
                        CqeStatus::RemoteAccess
                    }
                };
                let from = [sge(l.src.addr(), 64, l.src.lkey() ^ 0x40)];
                let (remote_addr, rkey) = (l.dst.addr(), l.dst.rkey());
                l.qps[0].post_send(&SendRequest { wr_id: 3, opcode: WrOpcode::Write, payload: Payload::Sges(&from), remote_addr, rkey, imm: 0, signaled: true, solicited: false }).unwrap();
                for want in [(1, CqeStatus::Success), (2, status), (3, CqeStatus::WrFlush)] {
                    let c = l.wait(0, PATIENCE).unwrap();
                    assert_eq!((c.wr_id, c.status), want, "{first:?}, refusal {refusal}, time-out {timeout}");
                }
            }
        }
    }
}

/// The responder fails while its queue pair goes from RTR to RTS, at every moment of that: both halves end in error, and what is posted then is flushed.
#[test]
fn a_failure_on_the_way_to_rts_is_not_forgotten() {
    let pair = Pair::new(&cards(64)[0]).unwrap();
    let mut cqs = [pair.hosts[0].cq(64).unwrap(), pair.hosts[1].cq(64).unwrap()];
    let regions = [pair.hosts[0].region(4096, Access::ALL).unwrap(), pair.hosts[1].region(4096, Access::ALL).unwrap()];
    let mut refused = 0;
    for n in 0..45 {
        let mut qps: Vec<QueuePair> = (0..2).map(|side| pair.hosts[side].pd.create_qp(&QpConfig::default(), &cqs[side], &cqs[side]).unwrap()).collect();
        let qpns = [qps[0].qpn(), qps[1].qpn()];
        let rts = RtsAttr { sq_psn: 0x20, timeout: 8, retry_cnt: 7, rnr_retry: 7, max_rd_atomic: 16 };
        for (side, qp) in qps.iter_mut().enumerate() {
            let (me, peer) = (&pair.hosts[side], &pair.hosts[1 - side]);
            qp.to_init(Access::ALL).unwrap();
            let path = Path { dmac: peer.mac(), smac: me.mac(), dip: peer.ip(false), sip: me.ip(false), vlan: None, udp_sport: 0xc123, tclass: 0, hop_limit: 64, flow_label: 0 };
            qp.to_rtr(Access::ALL, &RtrAttr { mtu: Mtu::M1024, dest_qpn: qpns[1 - side], rq_psn: 0x20, min_rnr_timer: 1, repeat_nak: false, max_dest_rd_atomic: 16, path: Some(path) }).unwrap();
        }
        qps[0].to_rts(&rts).unwrap();
        let (remote_addr, rkey) = (regions[1].addr(), regions[1].rkey() ^ 1);
        qps[0].post_send(&SendRequest { wr_id: 1, opcode: WrOpcode::Write, payload: Payload::Inline(&[1; 16]), remote_addr, rkey, imm: 0, signaled: true, solicited: false }).unwrap();
        pair.world().run(24 * n);
        refused += u32::from(qps[1].to_rts(&rts).is_err());
        let c = pair.wait(&mut cqs[0], PATIENCE).unwrap();
        assert_eq!((c.wr_id, c.status), (1, CqeStatus::RemoteAccess));
        pair.world().run(2000);
        let state = qps[1].query().unwrap();
        assert_eq!((state.state, state.responder_state), (QpState::Error, QpState::Error), "after {} cycles", 24 * n);
        let (remote_addr, rkey) = (regions[0].addr(), regions[0].rkey());
        if qps[1].post_send(&SendRequest { wr_id: 2, opcode: WrOpcode::Write, payload: Payload::Inline(&[1; 16]), remote_addr, rkey, imm: 0, signaled: true, solicited: false }).is_ok() {
            let c = pair.wait(&mut cqs[1], PATIENCE).unwrap();
            assert_eq!((c.wr_id, c.status), (2, CqeStatus::WrFlush), "after {} cycles", 24 * n);
        }
    }
    assert!(0 < refused && refused < 45, "{refused} of 45 too early or too late");
}

/// Send doorbells that are written some waits after they were meant to be.
#[derive(Default)]
struct Held {
    armed: Option<u32>,
    doorbells: VecDeque<(u32, u64)>,
}

/// A card whose send doorbells can be held back.
struct Late(Arc<dyn Device>, Arc<Mutex<Held>>);

impl Device for Late {
    fn read32(&self, offset: u32) -> u32 {
        self.0.read32(offset)
    }
    fn write32(&self, offset: u32, value: u32) {
        self.0.write32(offset, value);
    }
    fn write64(&self, offset: u32, value: u64) {
        let mut held = self.1.lock().unwrap();
        if held.armed.is_some() && offset == csr::DB_SQ {
            held.doorbells.push_back((offset, value));
        } else {
            self.0.write64(offset, value);
        }
    }
    unsafe fn map(&self, ptr: *mut u8, len: usize, access: DmaAccess, contiguous: bool) -> ferric_driver::error::Result<Mapping> {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.0.map(ptr, len, access, contiguous) }
    }
    fn unmap(&self, mapping: &Mapping) {
        self.0.unmap(mapping);
    }
    fn relax(&self) {
        let mut held = self.1.lock().unwrap();
        if let Some(left) = held.armed {
            held.armed = left.checked_sub(1);
            if left == 0 {
                held.doorbells.drain(..).for_each(|(offset, value)| self.0.write64(offset, value));
            }
        }
        drop(held);
        self.0.relax();
    }
    fn wait_interrupt(&self, vector: u16, timeout: Duration) -> ferric_driver::error::Result<bool> {
        self.0.wait_interrupt(vector, timeout)
    }
    fn now(&self) -> Duration {
        self.0.now()
    }
}

/// What is posted while a queue pair comes out of SQ error is flushed or executed, once, and so is everything behind it.
#[test]
fn a_post_on_the_way_out_of_sq_error_is_not_lost() {
    let held = Arc::new(Mutex::new(Held::default()));
    let pair = Pair::behind(&cards(64)[0], |card| Arc::new(Late(card, held.clone()))).unwrap();
    let config = QpConfig { qp_type: QpType::Uc, ..Default::default() };
    let mut l = Linked::on(pair, &config, &Wire { mtu: Mtu::M1024, ..Default::default() }, &[3; 4096]).unwrap();
    let post = |l: &mut Linked, wr_id: u64, bad: bool| {
        let from = [sge(l.src.addr(), 64, l.src.lkey() ^ if bad { 0x80 } else { 0 })];
        let (remote_addr, rkey) = (l.dst.addr(), l.dst.rkey());
        l.qps[0].post_send(&SendRequest { wr_id, opcode: WrOpcode::Write, payload: Payload::Sges(&from), remote_addr, rkey, imm: 0, signaled: true, solicited: false }).unwrap();
    };
    let (mut flushed, mut executed) = (0, 0);
    for n in 0..60 {
        post(&mut l, 1, true);
        assert_eq!(l.wait(0, PATIENCE).unwrap().status, CqeStatus::LocalProtection);
        while l.qps[0].query().unwrap().state != QpState::SqError {}
        held.lock().unwrap().armed = Some(n);
        post(&mut l, 2, false);
        if n % 2 == 1 {
            post(&mut l, 3, false);
        }
        l.qps[0].resume().unwrap();
        // Whatever is still held back.
        while held.lock().unwrap().armed.is_some() {
            l.cqs[0].relax();
        }
        post(&mut l, 4, false);
        for wr_id in [2, 3, 4] {
            if wr_id == 3 && n % 2 == 0 {
                continue;
            }
            let c = l.wait(0, PATIENCE).unwrap_or_else(|e| panic!("request {wr_id}, doorbell after {n} waits: {e}"));
            assert_eq!(c.wr_id, wr_id, "doorbell after {n} waits");
            match c.status {
                CqeStatus::Success => executed += 1,
                CqeStatus::WrFlush if wr_id != 4 => flushed += 1,
                other => panic!("request {wr_id}, doorbell after {n} waits: {other:?}"),
            }
        }
    }
    assert!(flushed > 0 && executed > 60, "{flushed} flushed, {executed} executed");
}
