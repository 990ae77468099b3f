//! Twins through the driver, without gateware: `cargo test -p ferric-sim --no-default-features --test twin`.
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::{Mac, Mtu, Path, RtrAttr, RtsAttr};
use ferric_driver::{Access, Completion, CompletionQueue, Config, Context, CqeStatus, MemoryRegion, Pd, QpConfig, QueuePair, RecvRequest, SendRequest};
use ferric_sim::{Body, CardConfig, Faults, LinkConfig, SimDevice, World, WorldConfig};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

struct Host {
    ctx: Context,
    pd: Pd,
    cq: CompletionQueue,
}

struct Twins {
    world: Arc<Mutex<World>>,
    hosts: [Host; 2],
}

fn twins(faults: Faults, seed: u64) -> Twins {
    let card = CardConfig { body: Body::Twin, ..Default::default() };
    let link = LinkConfig { faults, ..Default::default() };
    let world = Arc::new(Mutex::new(World::new(&WorldConfig { cards: vec![card.clone(), card], link, seed, ..Default::default() }).unwrap()));
    let host = |card| {
        let ctx = Context::open(SimDevice::new(&world, card, 0), Config::default()).unwrap();
        let pd = ctx.alloc_pd().unwrap();
        let eq = ctx.create_eq(8, 0).unwrap();
        let cq = ctx.create_cq(256, &eq).unwrap();
        std::mem::forget(eq);
        Host { ctx, pd, cq }
    };
    let hosts = [host(0), host(1)];
    Twins { world, hosts }
}

impl Twins {
    fn connect(&self) -> [QueuePair; 2] {
        let config = QpConfig::default();
        let mut qps = [0, 1].map(|i| self.hosts[i].pd.create_qp(&config, &self.hosts[i].cq, &self.hosts[i].cq).unwrap());
        let qpns = [qps[0].qpn(), qps[1].qpn()];
        let mac = |i: usize| Mac([2, 0, 0, 0, 0, i as u8 + 1]);
        let ip = |i: usize| IpAddr::V4(Ipv4Addr::new(10, 0, 0, i as u8 + 1));
        for (i, qp) in qps.iter_mut().enumerate() {
            qp.to_init(Access::ALL).unwrap();
            let path = Path { dmac: mac(1 - i), smac: mac(i), dip: ip(1 - i), sip: ip(i), vlan: None, udp_sport: 0xc000, tclass: 0, hop_limit: 64, flow_label: 0 };
            qp.to_rtr(Access::ALL, &RtrAttr { mtu: Mtu::M4096, dest_qpn: qpns[1 - i], rq_psn: 7, min_rnr_timer: 1, repeat_nak: false, max_dest_rd_atomic: 16, path: Some(path) }).unwrap();
            qp.to_rts(&RtsAttr { sq_psn: 7, timeout: 8, retry_cnt: 7, rnr_retry: 7, max_rd_atomic: 16 }).unwrap();
        }
        qps
    }

    fn region(&self, host: usize, len: usize) -> MemoryRegion {
        self.hosts[host].pd.register(vec![0; len].into_boxed_slice(), Access::ALL).unwrap()
    }

    fn wait(&mut self, host: usize) -> Completion {
        for _ in 0..1_000_000 {
            if let Some(c) = self.hosts[host].cq.poll() {
                return c;
            }
            self.hosts[host].cq.relax();
        }
        panic!("no completion");
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len as u32).map(|i| (i * 7 + (i >> 8)) as u8).collect()
}

fn every_operation(mut t: Twins) {
    let [mut a, mut b] = t.connect();
    let (src, dst) = (t.region(0, 300_000), t.region(1, 300_000));
    let bytes = pattern(200_001);
    src.write(5, &bytes);
    let sges = [sge(src.addr() + 5, bytes.len() as u32, src.lkey())];
    let write = SendRequest { wr_id: 11, opcode: WrOpcode::Write, payload: Payload::Sges(&sges), remote_addr: dst.addr() + 100, rkey: dst.rkey(), imm: 0, signaled: true, solicited: false };
    a.post_send(&write).unwrap();
    let done = t.wait(0);
    assert_eq!((done.wr_id, done.status), (11, CqeStatus::Success));
    assert!(dst.to_vec(100, bytes.len()) == bytes);
    assert!(dst.to_vec(0, 100) == [0; 100]);

    let into = [sge(dst.addr(), 150_000, dst.lkey()), sge(dst.addr() + 200_000, 60_000, dst.lkey())];
    b.post_recv(&RecvRequest { wr_id: 22, sges: &into }).unwrap();
    a.post_send(&SendRequest { wr_id: 12, opcode: WrOpcode::SendImm, imm: 0xdead_beef, ..write }).unwrap();
    let got = t.wait(1);
    assert_eq!((got.wr_id, got.status, got.byte_len, got.imm), (22, CqeStatus::Success, 200_001, Some(0xdead_beef)));
    assert_eq!(t.wait(0).wr_id, 12);
    assert!(dst.to_vec(0, 150_000) == bytes[..150_000]);
    assert!(dst.to_vec(200_000, 50_001) == bytes[150_000..]);

    let back = [sge(src.addr() + 220_000, 70_000, src.lkey())];
    a.post_send(&SendRequest { wr_id: 13, opcode: WrOpcode::Read, payload: Payload::Sges(&back), remote_addr: dst.addr() + 3, ..write }).unwrap();
    let done = t.wait(0);
    assert_eq!((done.wr_id, done.status), (13, CqeStatus::Success));
    assert!(src.to_vec(220_000, 70_000) == bytes[3..70_003]);
}

#[test]
fn every_operation_arrives() {
    every_operation(twins(Faults::default(), 1));
}

#[test]
fn it_arrives_over_a_bad_wire() {
    for seed in 0..20 {
        every_operation(twins(Faults { loss: 20_000, duplicate: 5_000, reorder: 5_000, corrupt: 5_000, reorder_cycles: 2_000 }, seed));
    }
}

#[test]
fn a_wrong_key_is_refused_and_the_rest_is_flushed() {
    let mut t = twins(Faults::default(), 1);
    let [mut a, _b] = t.connect();
    let (src, dst) = (t.region(0, 4096), t.region(1, 4096));
    let sges = [sge(src.addr(), 64, src.lkey())];
    let write = SendRequest { wr_id: 1, opcode: WrOpcode::Write, payload: Payload::Sges(&sges), remote_addr: dst.addr(), rkey: dst.rkey() ^ 1, imm: 0, signaled: true, solicited: false };
    a.post_send(&write).unwrap();
    a.post_send(&SendRequest { wr_id: 2, rkey: dst.rkey(), ..write }).unwrap();
    assert_eq!([t.wait(0), t.wait(0)].map(|c| (c.wr_id, c.status)), [(1, CqeStatus::RemoteAccess), (2, CqeStatus::WrFlush)]);
    let faults: u64 = t.world.lock().unwrap().cards.iter().map(|c| c.iommu.fault_count()).sum();
    assert_eq!(faults, 0);
    assert!(t.hosts[0].ctx.capabilities().features >> ferric_abi::csr::FEATURE_TWIN & 1 == 1);
}

/// Bytes per second of WRITEs of 64 KiB, printed: `--nocapture`.
#[test]
fn pace() {
    let mut t = twins(Faults::default(), 1);
    let [mut a, _b] = t.connect();
    let (src, dst) = (t.region(0, 65_536), t.region(1, 65_536));
    src.write(0, &pattern(65_536));
    let sges = [sge(src.addr(), 65_536, src.lkey())];
    let write = SendRequest { wr_id: 1, opcode: WrOpcode::Write, payload: Payload::Sges(&sges), remote_addr: dst.addr(), rkey: dst.rkey(), imm: 0, signaled: true, solicited: false };
    let begin = std::time::Instant::now();
    let (mut posted, mut done) = (0, 0);
    let total = 2000;
    while done < total {
        while posted < total && posted - done < 16 && a.post_send(&write).is_ok() {
            posted += 1;
        }
        assert_eq!(t.wait(0).status, CqeStatus::Success);
        done += 1;
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!("{:.0} MB/s", total as f64 * 65_536.0 / seconds / 1e6);
    assert!(dst.to_vec(0, 65_536) == pattern(65_536));
}
