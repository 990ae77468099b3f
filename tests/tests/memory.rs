//! Memory verbs on whole cards: keys that work requests take away.
use ferric_abi::codes::{CqeOpcode, EventKind, WrOpcode};
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::{Mtu, QpState};
use ferric_driver::{Access, Completion, CqeStatus, MemoryRegion, QpConfig, RecvRequest, SendRequest};
use ferric_hdl::core::counters;
use ferric_tests::pair::{Linked, Wire};
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
