//! A twin whose queue pairs talk to each other: of two functions, of one, and of a group. There is no wire: what the card sends to others is seen in the world's outbox.
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::{Mac, Mtu, Path, QpType, RtrAttr, RtsAttr};
use ferric_driver::ud::MULTICAST_QPN;
use ferric_driver::{Access, Address, AddressHandle, Completion, CompletionQueue, Config, Context, CqeStatus, DatagramRequest, MemoryRegion, Pd, QpConfig, QueuePair, ReadRequest, RecvRequest};
use ferric_driver::{SendRequest, Source};
use ferric_sim::{Body, CardConfig, SimDevice, World, WorldConfig};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

const QKEY: u32 = 0x1234;
const BYTES: usize = 16_384;
/// Of a global routing header in front of a datagram.
const GRH: usize = 40;

/// A function of the card with a driver of its own.
struct Function {
    ctx: Context,
    pd: Pd,
    cq: CompletionQueue,
    memory: MemoryRegion,
    mac: Mac,
    ip: IpAddr,
}

struct Bench {
    world: Arc<Mutex<World>>,
    functions: Vec<Function>,
}

impl Bench {
    fn new() -> Self {
        let card = CardConfig { body: Body::Twin, ..Default::default() };
        let world = Arc::new(Mutex::new(World::new(&WorldConfig { cards: vec![card], ..Default::default() }).unwrap()));
        let open = |f: u8| {
            let ctx = Context::open(SimDevice::new(&world, 0, f.into()), Config::default()).unwrap();
            let pd = ctx.alloc_pd().unwrap();
            let eq = ctx.create_eq(8, 0).unwrap();
            let cq = ctx.create_cq(256, &eq).unwrap();
            std::mem::forget(eq);
            let (mac, ip) = (Mac([2, 0, 0, 0, 7, f + 1]), IpAddr::V4(Ipv4Addr::new(10, 0, 7, f + 1)));
            ctx.set_address(0, Address { ip, mac, vlan: None }).unwrap();
            let memory = pd.register((0..BYTES).map(|i| (i * 7) as u8 ^ f).collect(), Access::ALL).unwrap();
            Function { ctx, pd, cq, memory, mac, ip }
        };
        let functions = (0..3).map(open).collect();
        let bench = Self { world, functions };
        bench.outbox();
        bench
    }

    /// Frames that have gone to the wire since the last look.
    fn outbox(&self) -> usize {
        let mut world = self.world.lock().unwrap();
        world.run(200);
        std::mem::take(&mut world.outbox).len()
    }

    /// Queue pairs of functions `of`, connected to each other.
    fn connected(&self, qp_type: QpType, of: [usize; 2]) -> [QueuePair; 2] {
        let ends = of.map(|f| &self.functions[f]);
        let mut qps = ends.map(|f| f.pd.create_qp(&QpConfig { qp_type, ..Default::default() }, &f.cq, &f.cq).unwrap());
        let qpns = [qps[0].qpn(), qps[1].qpn()];
        for (i, qp) in qps.iter_mut().enumerate() {
            let (own, other) = (ends[i], ends[1 - i]);
            qp.to_init(Access::ALL).unwrap();
            let path = Path { dmac: other.mac, smac: own.mac, dip: other.ip, sip: own.ip, vlan: None, udp_sport: 0xc000, tclass: 0, hop_limit: 64, flow_label: 0 };
            qp.to_rtr(Access::ALL, &RtrAttr { mtu: Mtu::M1024, dest_qpn: qpns[1 - i], rq_psn: 7, min_rnr_timer: 1, repeat_nak: false, max_dest_rd_atomic: 16, path: Some(path) }).unwrap();
            qp.to_rts(&RtsAttr { sq_psn: 7, timeout: 8, retry_cnt: 7, rnr_retry: 7, max_rd_atomic: 16 }).unwrap();
        }
        qps
    }

    fn datagrams(&self, f: usize) -> QueuePair {
        let own = &self.functions[f];
        let mut qp = own.pd.create_qp(&QpConfig { qp_type: QpType::Ud, ..Default::default() }, &own.cq, &own.cq).unwrap();
        qp.to_init_ud(QKEY).unwrap();
        qp.to_rtr_ud(Mtu::M1024, &Source { smac: own.mac, sip: own.ip, vlan: None, udp_sport: 0xc000, flow_label: 0 }).unwrap();
        qp.to_rts_ud(1).unwrap();
        qp
    }

    fn wait(&mut self, f: usize) -> Completion {
        for _ in 0..100_000 {
            if let Some(c) = self.functions[f].cq.poll() {
                return c;
            }
            self.functions[f].cq.relax();
        }
        panic!("no completion");
    }

    fn receive(&self, f: usize, qp: &mut QueuePair, wr_id: u64) {
        let memory = &self.functions[f].memory;
        qp.post_recv(&RecvRequest { wr_id, sges: &[sge(memory.addr() + 8192, 8192, memory.lkey())] }).unwrap();
    }

    fn send(&self, f: usize, qp: &mut QueuePair, opcode: WrOpcode, len: usize, to: &MemoryRegion) {
        let memory = &self.functions[f].memory;
        let sges = [sge(memory.addr(), len as u32, memory.lkey())];
        qp.post_send(&SendRequest { wr_id: 1, opcode, payload: Payload::Sges(&sges), remote_addr: to.addr() + 8192, rkey: to.rkey(), imm: 5, signaled: true, solicited: false }).unwrap();
    }

    fn datagram(&self, f: usize, qp: &mut QueuePair, to: &AddressHandle, dest_qpn: u32) {
        let memory = &self.functions[f].memory;
        let sges = [sge(memory.addr(), 900, memory.lkey())];
        qp.post_send_ud(&DatagramRequest { wr_id: 1, payload: Payload::Sges(&sges), to, dest_qpn, qkey: QKEY, imm: None, signaled: true, solicited: false }).unwrap();
    }
}

/// All that a connection does, between functions and inside one; nothing of it is seen outside.
#[test]
fn connections_stay_in_the_card() {
    for of in [[0, 1], [2, 0], [1, 1]] {
        for qp_type in [QpType::Rc, QpType::Uc] {
            let mut b = Bench::new();
            let [mut a, mut z] = b.connected(qp_type, of);
            b.receive(of[1], &mut z, 9);
            b.send(of[0], &mut a, WrOpcode::SendImm, 5000, &b.functions[of[1]].memory);
            let mut ends = [b.wait(of[0]), b.wait(of[1])];
            ends.sort_by_key(|c| c.wr_id);
            assert_eq!(ends.map(|c| (c.wr_id, c.status)), [(1, CqeStatus::Success), (9, CqeStatus::Success)], "{qp_type:?} {of:?}");
            assert_eq!(b.functions[of[1]].memory.to_vec(8192, 5000), b.functions[of[0]].memory.to_vec(0, 5000));
            if qp_type == QpType::Rc {
                let (near, far) = (&b.functions[of[0]].memory, &b.functions[of[1]].memory);
                let into = [sge(near.addr() + 6000, 2000, near.lkey())];
                a.post_read(&ReadRequest { wr_id: 2, sges: &into, remote_addr: far.addr() + 100, rkey: far.rkey(), signaled: true, fence: false }).unwrap();
                assert_eq!(b.wait(of[0]).status, CqeStatus::Success);
                assert_eq!(b.functions[of[0]].memory.to_vec(6000, 2000), b.functions[of[1]].memory.to_vec(100, 2000));
                // What is refused, is refused here, too.
                b.send(of[0], &mut a, WrOpcode::Write, 8193, &b.functions[of[1]].memory);
                assert_eq!(b.wait(of[0]).status, CqeStatus::RemoteAccess);
            }
            assert_eq!(b.outbox(), 0, "a frame for the card itself has left it");
        }
    }
}

#[test]
fn datagrams_stay_in_the_card() {
    for (from, to) in [(0, 1), (2, 2)] {
        let mut b = Bench::new();
        let (mut a, mut z) = (b.datagrams(from), b.datagrams(to));
        b.receive(to, &mut z, 9);
        let handle = AddressHandle::new(b.functions[to].mac, b.functions[to].ip);
        b.datagram(from, &mut a, &handle, z.qpn());
        let mut ends = [b.wait(from), b.wait(to)];
        ends.sort_by_key(|c| c.wr_id);
        assert_eq!(ends.map(|c| (c.wr_id, c.status, c.src_qp)), [(1, CqeStatus::Success, 0), (9, CqeStatus::Success, a.qpn())]);
        assert_eq!(b.functions[to].memory.to_vec(8192 + GRH, 900), b.functions[from].memory.to_vec(0, 900));
        assert_eq!(b.outbox(), 0);
        // For a number that nobody has the wire is no way out.
        b.datagram(from, &mut a, &handle, 200);
        assert_eq!((b.wait(from).status, b.outbox()), (CqeStatus::Success, 0));
    }
}

/// Members on the card get a group's datagrams, and so does the wire; a card without members hears nothing of its own.
#[test]
fn a_group_has_members_on_the_card() {
    let mut b = Bench::new();
    let (mut a, mut own, mut other) = (b.datagrams(0), b.datagrams(0), b.datagrams(1));
    let group: IpAddr = "239.1.2.3".parse().unwrap();
    let handle = AddressHandle::multicast(group).unwrap();
    b.datagram(0, &mut a, &handle, MULTICAST_QPN);
    assert_eq!((b.wait(0).status, b.outbox()), (CqeStatus::Success, 1));
    own.attach_multicast(group).unwrap();
    other.attach_multicast(group).unwrap();
    b.receive(0, &mut own, 8);
    b.receive(1, &mut other, 9);
    b.datagram(0, &mut a, &handle, MULTICAST_QPN);
    let mut ends = [b.wait(0), b.wait(0), b.wait(1)].map(|c| (c.wr_id, c.status));
    ends.sort_by_key(|c| c.0);
    assert_eq!(ends, [1, 8, 9].map(|id| (id, CqeStatus::Success)));
    assert_eq!(b.functions[1].memory.to_vec(8192 + GRH, 900), b.functions[0].memory.to_vec(0, 900));
    assert_eq!(b.outbox(), 1);
}

/// A function finds another one's MAC address, and a stranger's frames go to the wire.
#[test]
fn functions_find_each_other() {
    let b = Bench::new();
    for (from, to) in [(0, 1), (1, 0), (2, 1), (1, 1)] {
        assert_eq!(b.functions[from].ctx.resolve(0, b.functions[to].ip).unwrap(), b.functions[to].mac, "{from} asks for {to}");
    }
    assert!(b.functions[0].ctx.resolve(0, "10.0.7.77".parse().unwrap()).is_err());
}
