//! Memory verbs on whole cards: keys that work requests give and take away.
use ferric_abi::codes::{CqeOpcode, EventKind, WrOpcode};
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::{Mtu, QpState};
use ferric_driver::{Access, Completion, CqeStatus, FastRegion, MemoryRegion, QpConfig, ReadRequest, RecvRequest, SendRequest, WindowType};
use ferric_hdl::card::counters;
use ferric_sim::{Body, CardConfig, LinkConfig, WorldConfig};
use ferric_tests::pair::{Linked, Pair, Wire};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PATIENCE: u64 = 400_000;
const BYTES: usize = 16_384;

struct Bench(Linked);

fn bench(wire: &Wire) -> Bench {
    let pattern: Vec<u8> = (0..BYTES as u32).map(|i| (i * 5 + (i >> 7) + 1) as u8).collect();
    Bench(Linked::new(&QpConfig::default(), wire, &pattern).unwrap())
}

impl Bench {
    /// A region of host 1 that its peer may invalidate.
    fn fast(&self, access: Access) -> MemoryRegion {
        self.0.pair.hosts[1].pd.register_fast(vec![0; BYTES].into_boxed_slice(), access).unwrap()
    }
    fn send(&mut self, wr_id: u64, opcode: WrOpcode, len: u32, to: u64, rkey: u32, imm: u32) {
        let sges = [sge(self.0.src.addr(), len, self.0.src.lkey())];
        let request = SendRequest { wr_id, opcode, payload: Payload::Sges(&sges), remote_addr: to, rkey, imm, signaled: true, solicited: false };
        self.0.qps[0].post_send(&request).unwrap();
    }
    fn receive(&mut self, wr_id: u64) {
        let into = [sge(self.0.dst.addr(), BYTES as u32, self.0.dst.lkey())];
        self.0.qps[1].post_recv(&RecvRequest { wr_id, sges: &into }).unwrap();
    }
    fn wait(&mut self, host: usize) -> Completion {
        self.0.wait(host, PATIENCE).unwrap()
    }
    fn outcome(&mut self, host: usize) -> (u64, CqeStatus) {
        let c = self.wait(host);
        (c.wr_id, c.status)
    }
    /// A counter of host 1's card.
    fn count(&self, name: &str) -> u64 {
        self.0.pair.hosts[1].ctx.counters(counters::index(name).unwrap() as u32, 1).unwrap()[0]
    }
}

#[test]
fn a_send_takes_the_key_away_before_it_is_received() {
    for (n, len) in [0u32, 1, 64, 1024, 5000].into_iter().enumerate() {
        let mut b = bench(&Wire { mtu: Mtu::M1024, ..Default::default() });
        let far = b.fast(Access::ALL);
        b.receive(9);
        // All on their way at once: the packet behind the SEND is the first that is refused.
        b.send(1, WrOpcode::Write, 3000, far.addr(), far.rkey(), 0);
        b.send(2, WrOpcode::SendInv, len, 0, 0, far.rkey());
        b.send(3, WrOpcode::Write, 100, far.addr() + 8192, far.rkey(), 0);
        let c = b.wait(1);
        assert_eq!((c.wr_id, c.status, c.opcode), (9, CqeStatus::Success, CqeOpcode::Recv), "length {len}, try {n}");
        assert_eq!((c.invalidated, c.imm, c.byte_len), (Some(far.rkey()), None, len));
        assert_eq!(b.outcome(0), (1, CqeStatus::Success));
        let c = b.wait(0);
        assert_eq!((c.wr_id, c.status, c.opcode), (2, CqeStatus::Success, CqeOpcode::SendInv));
        assert_eq!(b.outcome(0), (3, CqeStatus::RemoteAccess));
        assert_eq!(far.to_vec(0, 3000), b.0.src.to_vec(0, 3000));
        assert_eq!(b.0.dst.to_vec(0, len as usize), b.0.src.to_vec(0, len as usize));
        assert_eq!(far.to_vec(3000, BYTES - 3000), vec![0; BYTES - 3000], "written with a key that was gone");
        assert_eq!((b.count("mr.invalidated"), b.count("mr.changes_refused"), b.0.pair.iommu_faults()), (1, 0, 0));
    }
}

/// A region that can be read by its key, and memory to read it into.
struct Readable {
    far: MemoryRegion,
    near: MemoryRegion,
    bytes: Vec<u8>,
}

impl Readable {
    fn new(b: &Bench, len: usize) -> Self {
        let far = b.0.pair.hosts[1].pd.register_fast(vec![0; len].into_boxed_slice(), Access::ALL).unwrap();
        let near = b.0.pair.hosts[0].region(len, Access::ALL).unwrap();
        let bytes: Vec<u8> = (0..len).map(|i| (i * 3 + (i >> 6)) as u8).collect();
        far.write(0, &bytes);
        Self { far, near, bytes }
    }
    fn read(&self, b: &mut Bench) {
        let sges = [sge(self.near.addr(), self.bytes.len() as u32, self.near.lkey())];
        b.0.qps[0].post_read(&ReadRequest { wr_id: 1, sges: &sges, remote_addr: self.far.addr(), rkey: self.far.rkey(), signaled: true, fence: false }).unwrap();
    }
    fn take_key(&self, b: &mut Bench, fence: bool) {
        b.receive(9);
        let send = SendRequest { wr_id: 2, opcode: WrOpcode::SendInv, payload: Payload::Inline(&[7; 16]), remote_addr: 0, rkey: 0, imm: self.far.rkey(), signaled: true, solicited: false };
        let qp = &mut b.0.qps[0];
        if fence { qp.post_send_fenced(&send) } else { qp.post_send(&send) }.unwrap();
    }
    fn has_come(&self) -> bool {
        self.near.to_vec(0, self.bytes.len()) == self.bytes
    }
}

/// A SEND is executed before the answers to an earlier READ have gone, so the READ of a key that it takes away wants the fence (IBTA 10.8.3, ordering of work requests).
#[test]
fn a_read_is_answered_if_the_send_that_takes_its_key_waits() {
    // The gatherer has up to 32 keys checked ahead: the long answer has five times as many packets.
    for (len, fence) in [(25, true), (12_000, true), (40_000, true), (40_000, false)] {
        let mut b = bench(&Wire { mtu: Mtu::M256, ..Default::default() });
        let region = Readable::new(&b, len);
        region.read(&mut b);
        region.take_key(&mut b, fence);
        let ends = [b.outcome(0), b.outcome(0)];
        // Without it this READ ends in the midst of its answer, with what docs/decisions/0014 says.
        let want = if fence { [CqeStatus::Success; 2] } else { [CqeStatus::RemoteOperation, CqeStatus::WrFlush] };
        assert_eq!(ends, [(1, want[0]), (2, want[1])], "{len} bytes");
        assert_eq!((region.has_come(), b.0.pair.iommu_faults()), (fence, 0));
    }
}

/// The wire brings a READ once more, late, and the key goes while that is answered: nobody waits for the answer.
fn a_repeated_read_ends_nothing(body: Body) {
    const READ: u8 = 0x0c;
    const OPCODE_AT: usize = 42;
    let card = CardConfig { body, ..Default::default() };
    // A short wire: the SEND arrives before the answer has gone.
    let world = WorldConfig { cards: vec![card.clone(), card], link: LinkConfig { delay: 1, ..Default::default() }, ..Default::default() };
    let mut b = Bench(Linked::on(Pair::new(&world).unwrap(), &QpConfig::default(), &Wire { mtu: Mtu::M256, ..Default::default() }, &[0; BYTES]).unwrap());
    let seen: Arc<Mutex<Vec<u8>>> = Arc::default();
    let kept = seen.clone();
    let keep = move |_, frame: &[u8]| {
        if frame[OPCODE_AT] == READ {
            *kept.lock().unwrap() = frame.to_vec();
        }
        None
    };
    b.0.pair.world().links[0].set_hook(Some(Box::new(keep)));
    let region = Readable::new(&b, 100_000);
    region.read(&mut b);
    assert_eq!((b.outcome(0), region.has_come()), ((1, CqeStatus::Success), true));
    let late = seen.lock().unwrap().clone();
    b.0.pair.world().cards[1].receive(late);
    region.take_key(&mut b, false);
    assert_eq!(b.outcome(0), (2, CqeStatus::Success));
    assert_eq!(b.outcome(1), (9, CqeStatus::Success));
    assert_eq!((b.0.qps[1].query().unwrap().responder_state, b.count("resp.dup_requests")), (QpState::Rts, 1));
}

#[test]
fn a_repeated_read_whose_key_goes_ends_nothing_on_twins() {
    a_repeated_read_ends_nothing(Body::Twin);
}

#[test]
fn a_repeated_read_whose_key_goes_ends_nothing() {
    a_repeated_read_ends_nothing(Body::Gateware);
}

/// The key of one region goes, those of others stay, and messages go on.
#[test]
fn other_keys_go_on_working() {
    let mut b = bench(&Wire::default());
    let far: Vec<_> = (0..4).map(|_| b.fast(Access::ALL)).collect();
    for (n, gone) in far.iter().enumerate() {
        b.receive(n as u64);
        b.send(10, WrOpcode::SendInv, 64, 0, 0, gone.rkey());
        assert_eq!(b.wait(1).invalidated, Some(gone.rkey()));
        assert_eq!(b.outcome(0), (10, CqeStatus::Success));
        for other in &far[n + 1..] {
            b.send(11, WrOpcode::Write, 64, other.addr() + 64 * n as u64, other.rkey(), 0);
            assert_eq!(b.outcome(0), (11, CqeStatus::Success));
        }
    }
    assert_eq!(far[3].to_vec(128, 64), b.0.src.to_vec(0, 64));
    assert_eq!(b.count("mr.invalidated"), 4);
}

#[test]
fn a_key_that_may_not_be_invalidated_ends_the_queue_pairs() {
    for case in 0..6 {
        let mut b = bench(&Wire::default());
        let far = b.fast(Access { remote_write: case != 3, ..Access::LOCAL_WRITE });
        let ordinary = b.0.pair.hosts[1].region(4096, Access::ALL).unwrap();
        let domain = b.0.pair.hosts[1].ctx.alloc_pd().unwrap();
        let foreign = domain.register_fast(vec![0; 4096].into_boxed_slice(), Access::ALL).unwrap();
        let key = match case {
            // Of an ordinary region; another variant; of another protection domain; of a region that gives the peer nothing.
            0 => ordinary.rkey(),
            1 => far.rkey() ^ 1,
            2 => foreign.rkey(),
            3 => far.rkey(),
            // Of no region: free, beyond the table.
            4 => 900 << 8,
            _ => 1 << 31,
        };
        b.receive(8);
        b.receive(9);
        b.send(1, WrOpcode::SendInv, 100, 0, 0, key);
        b.send(2, WrOpcode::Write, 100, ordinary.addr(), ordinary.rkey(), 0);
        let c = b.wait(1);
        assert_eq!((c.wr_id, c.status, c.invalidated), (8, CqeStatus::RemoteInvalidRequest, None), "case {case}");
        assert_eq!(b.outcome(1), (9, CqeStatus::WrFlush));
        assert_eq!(b.outcome(0), (1, CqeStatus::RemoteAccess));
        assert_eq!(b.outcome(0), (2, CqeStatus::WrFlush));
        assert_eq!(b.0.qps[1].query().unwrap().responder_state, QpState::Error);
        let event = b.0.pair.hosts[1].eq.wait(Duration::from_millis(50)).unwrap().expect("an event");
        assert_eq!((event.kind, event.id), (EventKind::QpAccessError, b.0.qps[1].qpn()));
        assert_eq!(ordinary.to_vec(0, 4096), vec![0; 4096]);
        assert_eq!((b.count("mr.invalidated"), b.count("mr.changes_refused"), b.0.pair.iommu_faults()), (0, 1, 0));
        // Nothing was taken away.
        let mut qps = b.0.pair.connected(&QpConfig::default(), &Wire::default(), [&b.0.cqs[0], &b.0.cqs[1]]).unwrap();
        std::mem::swap(&mut b.0.qps, &mut qps);
        b.send(5, WrOpcode::Write, 64, ordinary.addr(), ordinary.rkey(), 0);
        assert_eq!(b.outcome(0), (5, CqeStatus::Success));
        if case != 3 {
            b.send(6, WrOpcode::Write, 64, far.addr(), far.rkey(), 0);
            assert_eq!(b.outcome(0), (6, CqeStatus::Success));
        }
    }
}

/// A region that work requests of host 1 change.
fn free_region(b: &Bench) -> FastRegion {
    b.0.pair.hosts[1].pd.alloc_fast(vec![0; 8 * BYTES].into_boxed_slice()).unwrap()
}

/// One queue pair's whole life of a key, again and again: registered on other pages each time, told to the peer, used, taken away by the peer's SEND
/// or by a local invalidation, and useless from then on.
#[test]
fn registrations_follow_each_other_on_one_region() {
    let mut b = bench(&Wire { mtu: Mtu::M1024, ..Default::default() });
    let mut region = free_region(&b);
    // What cannot be posted leaves the region as it was.
    let mut idle = b.0.pair.hosts[1].pd.create_qp(&QpConfig::default(), &b.0.cqs[1], &b.0.cqs[1]).unwrap();
    let free = region.key();
    assert!(idle.post_register(1, &mut region, 0..100, Access::ALL, true).is_err());
    assert_eq!(region.key(), free);
    drop(idle);
    for n in 0..12usize {
        let range = n * 5000 + 3..n * 5000 + 9003;
        // Registration and the message that tells of it are posted together.
        let key = b.0.qps[1].post_register(1, &mut region, range.clone(), Access { remote_write: true, ..Access::READ_ONLY }, true).unwrap();
        let note = [sge(b.0.dst.addr(), 4, b.0.dst.lkey())];
        let into = [sge(b.0.src.addr() + 12_000, 4, b.0.src.lkey())];
        b.0.qps[0].post_recv(&RecvRequest { wr_id: 2, sges: &into }).unwrap();
        let tell = SendRequest { wr_id: 3, opcode: WrOpcode::SendImm, payload: Payload::Sges(&note), remote_addr: 0, rkey: 0, imm: key, signaled: true, solicited: false };
        b.0.qps[1].post_send(&tell).unwrap();
        let c = b.wait(1);
        assert_eq!((c.wr_id, c.status, c.opcode), (1, CqeStatus::Success, CqeOpcode::RegMr), "round {n}");
        let c = b.wait(0);
        assert_eq!((c.wr_id, c.imm), (2, Some(key)));
        assert_eq!(b.outcome(1), (3, CqeStatus::Success));
        b.send(4, WrOpcode::Write, 9000, region.memory().addr() + range.start as u64, key, 0);
        assert_eq!(b.outcome(0), (4, CqeStatus::Success));
        assert_eq!(region.memory().to_vec(range.start, 9000), b.0.src.to_vec(0, 9000), "round {n}: written somewhere else");
        if n % 2 == 0 {
            b.receive(5);
            b.send(6, WrOpcode::SendInv, 64, 0, 0, key);
            assert_eq!(b.wait(1).invalidated, Some(key));
            assert_eq!(b.outcome(0), (6, CqeStatus::Success));
        } else {
            b.0.qps[1].post_local_invalidate(7, key, true).unwrap();
            let c = b.wait(1);
            assert_eq!((c.wr_id, c.status, c.opcode), (7, CqeStatus::Success, CqeOpcode::LocalInv));
        }
    }
    assert_eq!((b.count("mr.registered"), b.count("mr.invalidated"), b.0.pair.iommu_faults()), (12, 12, 0));
    // The last key is gone, too.
    b.send(8, WrOpcode::Write, 64, region.memory().addr() + 60_000, region.key(), 0);
    assert_eq!(b.outcome(0), (8, CqeStatus::RemoteAccess));
}

/// Invalidated, registered anew and used within one burst of work requests, without a completion asked for but the last.
#[test]
fn local_operations_execute_in_order_with_the_rest() {
    let mut b = bench(&Wire { mtu: Mtu::M1024, ..Default::default() });
    let mut region = free_region(&b);
    for n in 0..4usize {
        let far = b.0.src.rkey();
        for part in 0..2usize {
            let range = part * 20_000..part * 20_000 + 6000;
            region.memory().write(range.start, &[(n * 16 + part + 1) as u8; 6000]);
            let key = b.0.qps[1].post_register(0, &mut region, range.clone(), Access::READ_ONLY, false).unwrap();
            let from = [sge(region.memory().addr() + range.start as u64, 6000, key)];
            let write = SendRequest { wr_id: 1, opcode: WrOpcode::Write, payload: Payload::Sges(&from), remote_addr: b.0.src.addr(), rkey: far, imm: 0, signaled: false, solicited: false };
            b.0.qps[1].post_send(&write).unwrap();
            b.0.qps[1].post_local_invalidate(2, key, part == 1).unwrap();
        }
        let c = b.wait(1);
        assert_eq!((c.wr_id, c.status, c.opcode), (2, CqeStatus::Success, CqeOpcode::LocalInv), "round {n}");
        assert_eq!(b.0.src.to_vec(0, 6000), vec![(n * 16 + 2) as u8; 6000]);
    }
    // A request that uses the key behind its invalidation fails.
    let from = [sge(region.memory().addr(), 64, region.key())];
    let send = SendRequest { wr_id: 9, opcode: WrOpcode::Send, payload: Payload::Sges(&from), remote_addr: 0, rkey: 0, imm: 0, signaled: true, solicited: false };
    b.0.qps[1].post_send(&send).unwrap();
    assert_eq!(b.outcome(1), (9, CqeStatus::LocalProtection));
}

#[test]
fn refused_local_operations_end_the_queue_pair() {
    for case in 0..3 {
        let mut b = bench(&Wire::default());
        let mut region = free_region(&b);
        let ordinary = b.0.pair.hosts[1].region(4096, Access::ALL).unwrap();
        match case {
            // A key that does not work; an ordinary region's; a registration of a region that is registered.
            0 => b.0.qps[1].post_local_invalidate(1, region.key(), true).unwrap(),
            1 => b.0.qps[1].post_local_invalidate(1, ordinary.rkey(), true).unwrap(),
            _ => {
                b.0.qps[1].post_register(0, &mut region, 0..4096, Access::ALL, false).unwrap();
                b.0.qps[1].post_register(1, &mut region, 0..4096, Access::ALL, true).unwrap();
            }
        }
        b.0.qps[1].post_local_invalidate(2, region.key(), true).unwrap();
        assert_eq!(b.outcome(1), (1, CqeStatus::MwBind), "case {case}");
        assert_eq!(b.outcome(1), (2, CqeStatus::WrFlush));
        assert_eq!(b.0.qps[1].query().unwrap().state, QpState::Error);
        assert_eq!(b.count("mr.changes_refused"), 1);
    }
}

const WRITE: Access = Access { remote_write: true, ..Access::READ_ONLY };

/// Memory of host 1 in which windows can be opened.
fn bindable(b: &Bench) -> MemoryRegion {
    b.0.pair.hosts[1].pd.register_bindable(vec![0; 4 * BYTES].into_boxed_slice(), Access::ALL).unwrap()
}

/// Windows of both types, bound to other bytes each time; every way to close one is taken.
#[test]
fn windows_open_and_close() {
    let mut b = bench(&Wire { mtu: Mtu::M1024, ..Default::default() });
    let region = bindable(&b);
    let pd = &b.0.pair.hosts[1].pd;
    let mut windows = [WindowType::One, WindowType::Two].map(|kind| pd.alloc_mw(kind).unwrap());
    for n in 0..8usize {
        let window = &mut windows[n % 2];
        let range = n * 5000 + 11..n * 5000 + 9011;
        let key = b.0.qps[1].post_bind(1, window, &region, range.clone(), WRITE, true).unwrap();
        let c = b.wait(1);
        assert_eq!((c.wr_id, c.status, c.opcode), (1, CqeStatus::Success, CqeOpcode::BindMw), "round {n}");
        b.send(2, WrOpcode::Write, 9000, region.addr() + range.start as u64, key, 0);
        assert_eq!(b.outcome(0), (2, CqeStatus::Success), "round {n}");
        assert_eq!(region.to_vec(range.start, 9000), b.0.src.to_vec(0, 9000), "round {n}: written somewhere else");
        match n {
            // One of type 1 is bound anew while it is bound, or to nothing.
            0 | 4 => {}
            2 | 6 => {
                b.0.qps[1].post_unbind(3, &mut windows[0], true).unwrap();
                assert_eq!(b.outcome(1), (3, CqeStatus::Success));
            }
            1 | 5 => {
                b.receive(4);
                b.send(5, WrOpcode::SendInv, 64, 0, 0, key);
                assert_eq!(b.wait(1).invalidated, Some(key));
                assert_eq!(b.outcome(0), (5, CqeStatus::Success));
            }
            _ => {
                b.0.qps[1].post_local_invalidate(6, key, true).unwrap();
                assert_eq!(b.outcome(1), (6, CqeStatus::Success));
            }
        }
    }
    assert_eq!((b.count("mr.bound"), b.count("mr.changes_refused"), b.0.pair.iommu_faults()), (8, 0, 0));
    // Closed means closed.
    b.send(8, WrOpcode::Write, 64, region.addr() + 7 * 5000 + 11, windows[1].key(), 0);
    assert_eq!(b.outcome(0), (8, CqeStatus::RemoteAccess));
}

/// What a window does not give, and to whom.
#[test]
fn a_window_shows_no_more_than_it_should() {
    for case in 0..4 {
        let mut b = bench(&Wire::default());
        let region = bindable(&b);
        let kind = if case == 3 { WindowType::One } else { WindowType::Two };
        let mut window = b.0.pair.hosts[1].pd.alloc_mw(kind).unwrap();
        let key = b.0.qps[1].post_bind(1, &mut window, &region, 5000..9000, WRITE, true).unwrap();
        assert_eq!(b.outcome(1), (1, CqeStatus::Success));
        let at = region.addr() + 5000;
        if case >= 2 {
            // By another queue pair of the same protection domain.
            let mut others = b.0.pair.connected(&QpConfig::default(), &Wire::default(), [&b.0.cqs[0], &b.0.cqs[1]]).unwrap();
            std::mem::swap(&mut b.0.qps, &mut others);
            b.send(2, WrOpcode::Write, 64, at, key, 0);
            let status = if case == 3 { CqeStatus::Success } else { CqeStatus::RemoteAccess };
            assert_eq!(b.outcome(0), (2, status), "case {case}");
            continue;
        }
        match case {
            // One byte beyond; a READ.
            0 => b.send(2, WrOpcode::Write, 4001, at, key, 0),
            _ => {
                let into = [sge(b.0.src.addr(), 64, b.0.src.lkey())];
                b.0.qps[0].post_read(&ReadRequest { wr_id: 2, sges: &into, remote_addr: at, rkey: key, signaled: true, fence: false }).unwrap();
            }
        }
        assert_eq!(b.outcome(0), (2, CqeStatus::RemoteAccess), "case {case}");
        assert_eq!(region.to_vec(0, 4 * BYTES), vec![0; 4 * BYTES]);
    }
}

#[test]
fn refused_binds_end_the_queue_pair() {
    for case in 0..5 {
        let mut b = bench(&Wire::default());
        let region = bindable(&b);
        let mut window = b.0.pair.hosts[1].pd.alloc_mw(if case == 3 { WindowType::One } else { WindowType::Two }).unwrap();
        match case {
            // To a region that takes no windows; of another protection domain; a window that is bound; one of type 1 invalidated, one of type 2 bound to nothing.
            0 => b.0.qps[1].post_bind(1, &mut window, &b.0.dst, 0..64, WRITE, true).map(|_| ()).unwrap(),
            1 => {
                let domain = b.0.pair.hosts[1].ctx.alloc_pd().unwrap();
                let foreign = domain.register_bindable(vec![0; 4096].into_boxed_slice(), Access::ALL).unwrap();
                b.0.qps[1].post_bind(1, &mut window, &foreign, 0..64, WRITE, true).unwrap();
                assert_eq!(b.outcome(1), (1, CqeStatus::MwBind));
                continue;
            }
            2 => {
                b.0.qps[1].post_bind(0, &mut window, &region, 0..64, WRITE, false).unwrap();
                b.0.qps[1].post_bind(1, &mut window, &region, 0..64, WRITE, true).unwrap();
            }
            3 => {
                let key = b.0.qps[1].post_bind(0, &mut window, &region, 0..64, WRITE, false).unwrap();
                b.0.qps[1].post_local_invalidate(1, key, true).unwrap();
            }
            _ => b.0.qps[1].post_unbind(1, &mut window, true).unwrap(),
        }
        b.0.qps[1].post_unbind(2, &mut window, true).unwrap();
        assert_eq!(b.outcome(1), (1, CqeStatus::MwBind), "case {case}");
        assert_eq!(b.outcome(1), (2, CqeStatus::WrFlush));
        assert_eq!(b.count("mr.changes_refused"), 1);
    }
}
