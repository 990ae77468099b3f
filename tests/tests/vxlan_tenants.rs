//! Two tenants of two cards with the same MAC and IP addresses and the same multicast group, each behind a tunnel of its own, and the host beside them behind none, all over one wire: nothing crosses,
//! and what is made to cross reaches nobody and counts once.
#[path = "vxlan_tenants/kernel.rs"]
mod kernel;
#[path = "vxlan_tenants/raw.rs"]
mod raw;

use ferric_abi::codes::WrOpcode;
use ferric_abi::context::TunnelCounts;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::{Mac, Mtu, Path, QpType, RtrAttr, RtsAttr};
use ferric_driver::ud::{AddressHandle, DatagramRequest, Source, GRH_BYTES, MULTICAST_QPN};
use ferric_driver::Address;
use ferric_driver::{Access, CompletionQueue, CqeStatus, MemoryRegion, QpConfig, QueuePair, ReadRequest, RecvRequest, SendRequest, TunnelConfig};
use ferric_hdl::card::counters;
use ferric_hdl::net::icrc::model::seal;
use ferric_sim::fabric::Fate;
use ferric_sim::{Body, CardConfig, WorldConfig};
use ferric_tests::pair::{Host, Pair};
use ferric_tests::traffic::pattern;
use ferric_tests::widths::{tunnel_engines, widths};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

/// VNIs by function; the host's has none.
const VNIS: [u32; 3] = [0, 0x00_0064, 0x00_0065];
/// Functions that talk: the host's, and two tenants'.
const FUNCTIONS: usize = 3;
const LENGTHS: [usize; 4] = [1, 1023, 4096, 9_001];
const SLOT: usize = 16_384;
const BYTES: usize = 8 * SLOT;
const PATIENCE: u64 = 600_000;
const QKEY: u32 = 0x1111;
/// Bytes of an outer header over IPv4, and where the VNI stands in it.
const OUTER: usize = 50;
const VNI_AT: usize = 46;

/// What every function of a card says it is.
fn mac(card: usize) -> Mac {
    Mac([2, 0, 0, 0, 7, card as u8 + 1])
}

fn ip(card: usize) -> IpAddr {
    Ipv4Addr::new(192, 168, 7, card as u8 + 1).into()
}

fn tunnel(card: usize, function: usize) -> TunnelConfig {
    let end = |card: usize| (Mac([6, 0, 0, 0, 0, card as u8 + 1]), IpAddr::from([192, 0, 2, card as u8 + 1]));
    let [(own, local), (next_hop, remote)] = [end(card), end(1 - card)];
    TunnelConfig { raw: true, ..TunnelConfig::new(VNIS[function], own, local, next_hop, remote) }
}

/// A function's queue pairs on both cards, with all that they need.
struct Tenant {
    cqs: [CompletionQueue; 2],
    qps: [QueuePair; 2],
    datagrams: [QueuePair; 2],
    regions: [MemoryRegion; 2],
}

fn path(card: usize) -> Path {
    Path { dmac: mac(1 - card), smac: mac(card), dip: ip(1 - card), sip: ip(card), vlan: None, udp_sport: 0xc123, tclass: 0, hop_limit: 64, flow_label: 0 }
}

fn tenant(hosts: &[Host; 2], function: usize) -> Tenant {
    let cqs = [0, 1].map(|card: usize| hosts[card].cq(64).unwrap());
    let bytes: Vec<u8> = (0..BYTES).map(|i| pattern(function as u64, i)).collect();
    let regions = [0, 1].map(|card: usize| hosts[card].region(BYTES, Access::ALL).unwrap());
    regions[0].write(0, &bytes);
    let mut qps = [0, 1].map(|card: usize| hosts[card].pd.create_qp(&QpConfig::default(), &cqs[card], &cqs[card]).unwrap());
    let qpns = [qps[0].qpn(), qps[1].qpn()];
    for (card, qp) in qps.iter_mut().enumerate() {
        // The same sequence numbers for all of them: nothing but the tunnel keeps them apart. What is lost is not sent again.
        let rtr = RtrAttr { mtu: Mtu::M1024, dest_qpn: qpns[1 - card], rq_psn: 0x77, min_rnr_timer: 1, repeat_nak: false, max_dest_rd_atomic: 4, path: Some(path(card)) };
        qp.to_init(Access::ALL).unwrap();
        qp.to_rtr(Access::ALL, &rtr).unwrap();
        qp.to_rts(&RtsAttr { sq_psn: 0x77, timeout: 0, retry_cnt: 7, rnr_retry: 7, max_rd_atomic: 4 }).unwrap();
    }
    let datagrams = [0, 1].map(|card: usize| {
        let mut qp = hosts[card].pd.create_qp(&QpConfig { qp_type: QpType::Ud, ..Default::default() }, &cqs[card], &cqs[card]).unwrap();
        qp.to_init_ud(QKEY).unwrap();
        qp.to_rtr_ud(Mtu::M1024, &Source { smac: mac(card), sip: ip(card), vlan: None, udp_sport: 0xc001, flow_label: 0 }).unwrap();
        qp.to_rts_ud(0).unwrap();
        qp
    });
    Tenant { cqs, qps, datagrams, regions }
}

struct Bench {
    pair: Pair,
    tenants: Vec<Tenant>,
}

impl Bench {
    fn new(bodies: [Body; 2], width: usize) -> Self {
        Self::of(tunnel_engines(width), bodies, width)
    }

    fn of(engines: &'static str, bodies: [Body; 2], width: usize) -> Self {
        let cards = bodies.map(|body| CardConfig { body, width, engines, ..Default::default() });
        let pair = Pair::with_functions(&WorldConfig { cards: cards.to_vec(), ..Default::default() }, FUNCTIONS as u8).unwrap();
        for card in 0..2 {
            (1..FUNCTIONS).for_each(|f| pair.hosts[card].ctx.set_tunnel(f as u16, &tunnel(card, f)).unwrap());
            // The same addresses for all.
            (0..FUNCTIONS).for_each(|f| pair.of(f)[card].ctx.set_address(0, Address { ip: ip(card), mac: mac(card), vlan: None }).unwrap());
        }
        let tenants = (0..FUNCTIONS).map(|f| tenant(pair.of(f), f)).collect();
        Self { pair, tenants }
    }

    fn wait(&mut self, f: usize, card: usize) -> (u64, CqeStatus, usize) {
        let done = self.pair.wait(&mut self.tenants[f].cqs[card], PATIENCE).unwrap();
        (done.wr_id, done.status, done.byte_len as usize)
    }

    fn post(&mut self, f: usize, wr_id: u64, opcode: WrOpcode, from: usize, to: usize, len: usize) {
        let t = &mut self.tenants[f];
        let sges = [sge(t.regions[0].addr() + from as u64, len as u32, t.regions[0].lkey())];
        let (remote_addr, rkey) = (t.regions[1].addr() + to as u64, t.regions[1].rkey());
        t.qps[0].post_send(&SendRequest { wr_id, opcode, payload: Payload::Sges(&sges), remote_addr, rkey, imm: 0, signaled: true, solicited: false }).unwrap();
    }

    fn count(&self, name: &str) -> u64 {
        let number = counters::index(name).unwrap() as u32;
        self.pair.hosts[1].ctx.counters(number, 1).unwrap()[0]
    }

    fn counts(&self) -> TunnelCounts {
        self.pair.hosts[1].ctx.tunnel_counts().unwrap()
    }

    /// What card 1 has dropped, by cause: of the tunnels, then of the receive path.
    fn causes(&self) -> [u64; 9] {
        let c = self.counts();
        let own = [c.vni_unknown(), c.remote_unknown(), c.wrong_function(), c.miss()];
        let card = ["rx.rx_stranger", "rx.rx_other_station", "mcast.mcast_no_group", "resp.raw_no_queue", "rx.rx_malformed"].map(|name| self.count(name));
        [own[0], own[1], own[2], own[3], card[0], card[1], card[2], card[3], card[4]]
    }
}

/// SEND, WRITE and READ of each length by all of them at once; every byte is the tenant's own.
fn side_by_side(b: &mut Bench) {
    for (n, len) in LENGTHS.into_iter().enumerate() {
        for f in 0..FUNCTIONS {
            let t = &mut b.tenants[f];
            let into = [sge(t.regions[1].addr(), SLOT as u32, t.regions[1].lkey())];
            t.qps[1].post_recv(&RecvRequest { wr_id: n as u64, sges: &into }).unwrap();
        }
        let [from, back] = [n * SLOT, (n + 4) * SLOT];
        for f in 0..FUNCTIONS {
            b.post(f, 1, WrOpcode::Send, from, 0, len);
            b.post(f, 2, WrOpcode::Write, from, 2 * SLOT, len);
            let t = &mut b.tenants[f];
            let sges = [sge(t.regions[0].addr() + back as u64, len as u32, t.regions[0].lkey())];
            t.qps[0].post_read(&ReadRequest { wr_id: 3, sges: &sges, remote_addr: t.regions[1].addr() + 2 * SLOT as u64, rkey: t.regions[1].rkey(), signaled: true, fence: false }).unwrap();
        }
        for f in 0..FUNCTIONS {
            for wr_id in 1..=3 {
                let done = b.wait(f, 0);
                assert_eq!((done.0, done.1), (wr_id, CqeStatus::Success), "function {f}, length {len}");
            }
            assert_eq!(b.wait(f, 1), (n as u64, CqeStatus::Success, len));
            let own: Vec<u8> = (0..len).map(|i| pattern(f as u64, from + i)).collect();
            let t = &b.tenants[f];
            assert_eq!(t.regions[1].to_vec(0, len), own, "SEND of function {f}");
            assert_eq!(t.regions[1].to_vec(2 * SLOT, len), own, "WRITE of function {f}");
            assert_eq!(t.regions[0].to_vec(back, len), own, "READ of function {f}");
        }
    }
}

/// Every function's member of the group gets what its own function sends, once.
fn groups(b: &mut Bench) {
    let group: IpAddr = "239.1.2.3".parse().unwrap();
    let to = AddressHandle::multicast(group).unwrap();
    b.tenants.iter().for_each(|t| t.datagrams[1].attach_multicast(group).unwrap());
    for sender in 0..FUNCTIONS {
        for t in &mut b.tenants {
            t.regions[1].write(4 * SLOT, &[0xee; 1024]);
            let into = [sge(t.regions[1].addr() + 4 * SLOT as u64, 1024, t.regions[1].lkey())];
            t.datagrams[1].post_recv(&RecvRequest { wr_id: sender as u64, sges: &into }).unwrap();
        }
        let t = &mut b.tenants[sender];
        let from = [sge(t.regions[0].addr(), 500, t.regions[0].lkey())];
        t.datagrams[0].post_send_ud(&DatagramRequest { wr_id: 9, payload: Payload::Sges(&from), to: &to, dest_qpn: MULTICAST_QPN, qkey: QKEY, imm: None, signaled: true, solicited: false }).unwrap();
        assert_eq!(b.wait(sender, 0).1, CqeStatus::Success);
        let got = b.wait(sender, 1);
        assert_eq!((got.1, got.2), (CqeStatus::Success, 500 + GRH_BYTES));
        b.pair.world().run(6_000);
        for (f, t) in b.tenants.iter_mut().enumerate() {
            assert!(t.cqs[1].poll().is_none(), "function {f} hears function {sender}");
            let bytes = t.regions[1].to_vec(4 * SLOT, 1024);
            if f == sender {
                assert!((0..500).all(|i| bytes[GRH_BYTES + i] == pattern(sender as u64, i)));
            } else {
                assert!(bytes.iter().all(|byte| *byte == 0xee), "function {f} hears function {sender}");
            }
            // Receives that nothing came for: each queue pair begins again.
            t.datagrams[1].to_reset().unwrap();
            t.datagrams[1].to_init_ud(QKEY).unwrap();
            t.datagrams[1].to_rtr_ud(Mtu::M1024, &Source { smac: mac(1), sip: ip(1), vlan: None, udp_sport: 0xc001, flow_label: 0 }).unwrap();
        }
    }
    assert_eq!((b.count("mcast.mcast_delivered"), b.count("mcast.mcast_no_group")), (3, 0));
}

/// A neighbour is who has the address in the function's own network.
fn neighbours(b: &mut Bench) {
    let sought: IpAddr = "192.168.7.99".parse().unwrap();
    let whose = |f: usize| Mac([2, 0, 0, 9, 9, f as u8]);
    (0..FUNCTIONS).for_each(|f| b.pair.of(f)[1].ctx.set_address(1, Address { ip: sought, mac: whose(f), vlan: None }).unwrap());
    for f in 0..FUNCTIONS {
        assert_eq!(b.pair.of(f)[0].ctx.resolve(0, sought).unwrap(), whose(f));
    }
    // Where there is none in the own network, others' do not count.
    b.pair.of(1)[1].ctx.clear_address(1).unwrap();
    b.pair.of(1)[0].ctx.set_address(0, Address { ip: "192.168.7.50".parse().unwrap(), mac: mac(0), vlan: None }).unwrap();
    let search = ferric_driver::Search { wait: std::time::Duration::from_millis(1), ..Default::default() };
    assert!(b.pair.of(1)[0].ctx.resolve_within(0, sought, &search).is_err());
}

/// Frames of card 0 from now on; those that are to be lost are not delivered.
fn tap(pair: &Pair, lost: bool) -> Arc<Mutex<Vec<Vec<u8>>>> {
    let frames = Arc::new(Mutex::new(Vec::new()));
    let heard = frames.clone();
    pair.world().links[0].set_hook(Some(Box::new(move |_, frame| {
        heard.lock().unwrap().push(frame.to_vec());
        lost.then_some(Fate::Dropped)
    })));
    frames
}

fn with_vni(frame: &[u8], vni: u32) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[VNI_AT..VNI_AT + 3].copy_from_slice(&vni.to_be_bytes()[1..]);
    frame
}

/// `inner` in the outer header of `frame`, lengths and checksum put right.
fn inside(frame: &[u8], inner: &[u8]) -> Vec<u8> {
    let mut out = [&frame[..OUTER], inner].concat();
    let (ip, udp) = ((out.len() - 14) as u16, (out.len() - 34) as u16);
    out[16..18].copy_from_slice(&ip.to_be_bytes());
    out[38..40].copy_from_slice(&udp.to_be_bytes());
    out[24..26].fill(0);
    let sum: u32 = out[14..34].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    out[24..26].copy_from_slice(&sum.to_be_bytes());
    out
}

/// An ARP request for `ip` of card 1, to `to`.
fn arp(to: Mac, ip: IpAddr) -> Vec<u8> {
    let IpAddr::V4(ip) = ip else { panic!("ARP is of IPv4") };
    let mut frame = [&to.0[..], &[2, 0, 0, 0, 9, 9], &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &[2, 0, 0, 0, 9, 9], &[192, 168, 7, 200], &[0; 6], &ip.octets()].concat();
    frame.resize(60, 0);
    frame
}

/// Packets that are right but for where they come from: each delivers nothing and counts once. Then the packet itself, from where it should, is taken.
fn hostile(b: &mut Bench) {
    b.pair.world().run(6_000);
    let group: IpAddr = "239.1.2.3".parse().unwrap();
    // A WRITE of each function, and a datagram of tenant 1 to the group, on their way and lost.
    let frames = tap(&b.pair, true);
    let mut packets = Vec::new();
    for f in 0..FUNCTIONS {
        b.tenants[f].regions[1].write(6 * SLOT, &[0x55; 700]);
        b.post(f, 7, WrOpcode::Write, 3 * SLOT, 6 * SLOT, 700);
        b.pair.world().run(6_000);
        let mut sent = std::mem::take(&mut *frames.lock().unwrap());
        assert_eq!(sent.len(), 1, "one packet of function {f}");
        packets.push(sent.remove(0));
    }
    // Only tenant 2's and the host's queue pair stay in the group.
    b.tenants[1].datagrams[1].detach_multicast(group).unwrap();
    let to = AddressHandle::multicast(group).unwrap();
    let t = &mut b.tenants[2];
    let from = [sge(t.regions[0].addr(), 64, t.regions[0].lkey())];
    t.datagrams[0].post_send_ud(&DatagramRequest { wr_id: 9, payload: Payload::Sges(&from), to: &to, dest_qpn: MULTICAST_QPN, qkey: QKEY, imm: None, signaled: false, solicited: false }).unwrap();
    b.pair.world().run(6_000);
    let datagram = std::mem::take(&mut *frames.lock().unwrap()).remove(0);
    b.pair.world().links[0].set_hook(None);
    let [plain, one, two] = [&packets[0][..], &packets[1][..], &packets[2][..]];
    let inner = |frame: &[u8]| frame[OUTER..].to_vec();
    let mut others_queue = inner(one);
    // Tenant 2's packet names tenant 1's queue pair, which has the same addresses.
    others_queue[47..50].copy_from_slice(&inner(two)[47..50]);
    seal(&mut others_queue).unwrap();
    // [VNI unknown, remote unknown, wrong function, miss, stranger, other station, no group, no raw queue, malformed]
    let attempts: Vec<(&str, Vec<u8>, [u64; 9])> = vec![
        ("tenant 1's packet with tenant 2's VNI", with_vni(one, VNIS[2]), [0, 0, 1, 0, 0, 0, 0, 0, 0]),
        ("tenant 2's packet with tenant 1's VNI", with_vni(two, VNIS[1]), [0, 0, 1, 0, 0, 0, 0, 0, 0]),
        ("with a VNI of nobody", with_vni(one, 0x66), [1, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("the host's packet through a tunnel", inside(one, plain), [0, 0, 1, 0, 0, 0, 0, 0, 0]),
        ("tenant 1's packet without a tunnel", inner(one), [0, 0, 1, 0, 0, 0, 0, 0, 0]),
        ("tenant 2's packet without a tunnel", inner(two), [0, 0, 1, 0, 0, 0, 0, 0, 0]),
        ("to a queue pair of tenant 2 in tenant 1's tunnel", inside(one, &others_queue), [0, 0, 1, 0, 0, 0, 0, 0, 0]),
        ("tunnel in the tunnel", inside(two, one), [0, 0, 0, 0, 0, 1, 0, 0, 0]),
        ("tunnel in the own tunnel", inside(one, one), [0, 0, 0, 0, 0, 1, 0, 0, 0]),
        (
            "a tunnel packet to another station",
            {
                let mut frame = one.to_vec();
                frame[5] ^= 4;
                frame
            },
            [0, 0, 0, 0, 0, 1, 0, 0, 0],
        ),
        ("tenant 2's datagram to the group in tenant 1's tunnel", with_vni(&datagram, VNIS[1]), [0, 0, 0, 0, 0, 0, 1, 0, 0]),
        (
            "from a stranger in the underlay",
            {
                let mut frame = inside(one, &inner(one));
                frame[29] ^= 8;
                inside(&frame, &inner(one))
            },
            [0, 1, 0, 0, 0, 0, 0, 0, 0],
        ),
        ("ARP for an address of tenant 2 alone, in tenant 1's tunnel", inside(one, &arp(Mac([0xff; 6]), "192.168.7.99".parse().unwrap())), [0, 0, 0, 0, 0, 0, 0, 1, 0]),
        ("a frame to a MAC address of tenant 2 alone, in tenant 1's tunnel", inside(one, &arp(Mac([2, 0, 0, 9, 9, 2]), ip(1))), [0, 0, 0, 0, 0, 1, 0, 0, 0]),
        ("a frame to a MAC address of tenant 2 alone, without a tunnel", arp(Mac([2, 0, 0, 9, 9, 2]), ip(1)), [0, 0, 0, 0, 0, 1, 0, 0, 0]),
        (
            "a frame of no kind, to all, in tenant 2's tunnel",
            {
                let mut frame = arp(Mac([0xff; 6]), ip(1));
                frame[12] = 0x99;
                inside(two, &frame)
            },
            [0, 0, 0, 0, 0, 0, 0, 1, 0],
        ),
    ];
    let start = b.causes();
    for (what, frame, causes) in &attempts {
        let before = b.causes();
        b.pair.world().cards[1].receive(frame.clone());
        b.pair.world().run(6_000);
        let after = b.causes();
        assert_eq!(std::array::from_fn::<u64, 9, _>(|n| after[n] - before[n]), *causes, "{what}");
        for (f, t) in b.tenants.iter_mut().enumerate() {
            assert_eq!(t.regions[1].to_vec(6 * SLOT, 700), [0x55; 700], "{what}: function {f}");
            assert!(t.cqs.iter_mut().all(|cq| cq.poll().is_none()), "{what}: function {f}");
        }
    }
    let end = b.causes();
    assert_eq!(end.iter().sum::<u64>() - start.iter().sum::<u64>(), attempts.len() as u64, "each is one of the causes");
    // What was lost was right.
    for (f, packet) in packets.into_iter().enumerate() {
        b.pair.world().cards[1].receive(packet);
        assert_eq!(b.wait(f, 0).1, CqeStatus::Success);
        assert_eq!(b.tenants[f].regions[1].to_vec(6 * SLOT, 700), (0..700).map(|i| pattern(f as u64, 3 * SLOT + i)).collect::<Vec<_>>());
    }
    assert_eq!(b.causes(), end);
}

fn all(bodies: [Body; 2], width: usize) {
    let mut b = Bench::new(bodies, width);
    let frames = tap(&b.pair, false);
    side_by_side(&mut b);
    // Both VNIs and plain packets were on the wire.
    let heard = std::mem::take(&mut *frames.lock().unwrap());
    for vni in &VNIS[1..] {
        assert!(heard.iter().filter(|f| f[36..38] == [0x12, 0xb5] && f[VNI_AT..VNI_AT + 3] == vni.to_be_bytes()[1..]).count() > 20);
    }
    assert!(heard.iter().filter(|f| f[36..38] == [0x12, 0xb7]).count() > 20);
    b.pair.world().links[0].set_hook(None);
    groups(&mut b);
    neighbours(&mut b);
    hostile(&mut b);
    side_by_side(&mut b);
    assert_eq!(b.pair.iommu_faults(), 0);
}

#[test]
fn tenants_with_the_same_addresses() {
    all([Body::Gateware; 2], 64);
}

#[test]
fn tenants_with_the_same_addresses_w512() {
    all([Body::Gateware; 2], 512);
}

#[test]
fn tenants_of_twins() {
    all([Body::Twin; 2], 64);
    all([Body::Twin, Body::Gateware], 64);
    all([Body::Gateware, Body::Twin], 64);
}
