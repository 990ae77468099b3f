//! Two whole cards with VXLAN tunnels between them: RoCE goes through a function's tunnel over IPv4 and IPv6, every frame on the wire is a tunnel packet as etherparse reads it, and what is not for the tunnel reaches nobody.
//! Several functions: `vxlan_tenants.rs`.
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use ferric_abi::codes::{AdminStatus, WrOpcode};
use ferric_abi::context::TunnelCounts;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::{Mac, Mtu};
use ferric_driver::{CqeStatus, Error, QpConfig, ReadRequest, RecvRequest, SendRequest, TunnelConfig};
use ferric_hdl::card::counters;
use ferric_sim::{Body, CardConfig, WorldConfig};
use ferric_tests::pair::{Linked, Pair, Wire};
use ferric_tests::traffic::pattern;
use ferric_tests::widths::tunnel_engines;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

const VNI: u32 = 0x0b_1234;
const PATIENCE: u64 = 400_000;
const SLOT: usize = 16_384;
/// Messages of each kind, their lengths, and where those of a READ begin.
const LENGTHS: [usize; 5] = [0, 1, 1023, 4096, 12_345];
const BYTES: usize = 16 * SLOT;

type Frames = Arc<Mutex<Vec<Vec<u8>>>>;

/// What both cards are made of.
const GATEWARE: [Body; 2] = [Body::Gateware; 2];

fn cards(width: usize) -> Pair {
    cards_of(width, GATEWARE)
}

fn cards_of(width: usize, bodies: [Body; 2]) -> Pair {
    let cards = bodies.map(|body| CardConfig { body, width, engines: tunnel_engines(width), ..Default::default() });
    Pair::new(&WorldConfig { cards: cards.to_vec(), ..Default::default() }).unwrap()
}

/// Addresses of the cards in the underlay: others than those of their functions.
fn underlay(card: usize, v6: bool) -> (Mac, IpAddr) {
    let n = card as u8 + 1;
    (Mac([6, 0, 0, 0, 0, n]), if v6 { [0xfdaa, 0, 0, 0, 0, 0, 0, n.into()].into() } else { [192, 0, 2, n].into() })
}

fn tunnel(card: usize, v6: bool) -> TunnelConfig {
    let [(mac, local), (next_hop, remote)] = [underlay(card, v6), underlay(1 - card, v6)];
    TunnelConfig::new(VNI, mac, local, next_hop, remote)
}

/// All frames that either card sends from now on.
fn listen(pair: &Pair) -> Frames {
    let frames = Frames::default();
    for link in &mut pair.world().links {
        let heard = frames.clone();
        link.set_hook(Some(Box::new(move |_, frame| {
            heard.lock().unwrap().push(frame.to_vec());
            None
        })));
    }
    frames
}

fn counts(pair: &Pair) -> [TunnelCounts; 2] {
    [0, 1].map(|card| pair.hosts[card].ctx.tunnel_counts().unwrap())
}

fn refused(c: &TunnelCounts) -> [u64; 10] {
    [c.miss(), c.outer_fragment(), c.outer_malformed(), c.outer_csum(), c.vxlan_flags(), c.vni_unknown(), c.remote_unknown(), c.inner_short(), c.ecn(), c.wrong_function()]
}

/// SEND, WRITE and READ of each length, and every byte compared.
fn traffic(b: &mut Linked) {
    let post = |b: &mut Linked, n: usize, opcode: WrOpcode, from: usize, to: usize, len: usize| {
        let sges = [sge(b.src.addr() + from as u64, len as u32, b.src.lkey())];
        let (remote_addr, rkey) = (b.dst.addr() + to as u64, b.dst.rkey());
        let request = SendRequest { wr_id: n as u64, opcode, payload: Payload::Sges(&sges), remote_addr, rkey, imm: 0, signaled: true, solicited: false };
        b.qps[0].post_send(&request).unwrap();
    };
    for (n, len) in LENGTHS.into_iter().enumerate() {
        let slot = [n * SLOT, (n + 5) * SLOT, (n + 10) * SLOT];
        let into = [sge(b.dst.addr() + slot[0] as u64, SLOT as u32, b.dst.lkey())];
        b.qps[1].post_recv(&RecvRequest { wr_id: n as u64, sges: &into }).unwrap();
        post(b, n, WrOpcode::Send, slot[0], slot[0], len);
        post(b, n, WrOpcode::Write, slot[1], slot[1], len);
        let sges = [sge(b.src.addr() + slot[2] as u64, len as u32, b.src.lkey())];
        b.qps[0].post_read(&ReadRequest { wr_id: n as u64, sges: &sges, remote_addr: b.dst.addr() + slot[0] as u64, rkey: b.dst.rkey(), signaled: true, fence: false }).unwrap();
        for _ in 0..3 {
            assert_eq!(b.wait(0, PATIENCE).unwrap().status, CqeStatus::Success, "length {len}");
        }
        let received = b.wait(1, PATIENCE).unwrap();
        assert_eq!((received.status, received.byte_len as usize), (CqeStatus::Success, len));
        let fill = |at: usize| (0..len).map(|i| pattern(0, at + i)).collect::<Vec<_>>();
        assert_eq!(b.dst.to_vec(slot[0], len), fill(slot[0]), "SEND of {len}");
        assert_eq!(b.dst.to_vec(slot[1], len), fill(slot[1]), "WRITE of {len}");
        assert_eq!(b.src.to_vec(slot[2], len), fill(slot[0]), "READ of {len}");
    }
}

fn linked(pair: Pair, wire: &Wire) -> Linked {
    let bytes: Vec<u8> = (0..BYTES).map(|i| pattern(0, i)).collect();
    Linked::on(pair, &QpConfig::default(), wire, &bytes).unwrap()
}

/// A tunnel packet with a RoCE packet in it, as etherparse reads it; bytes of the frame.
fn is_tunnel_packet(frame: &[u8], v6: bool) -> usize {
    let packet = SlicedPacket::from_ethernet(frame).expect("etherparse reads it");
    match packet.net.as_ref().expect("IP") {
        NetSlice::Ipv4(ip) => {
            let h = ip.header().to_header();
            assert_eq!((v6, h.header_checksum, h.time_to_live, h.dont_fragment), (false, h.calc_header_checksum(), 64, true));
            assert!(h.destination[..3] == [192, 0, 2] && h.source[..3] == [192, 0, 2]);
        }
        NetSlice::Ipv6(ip) => assert!(v6 && ip.header().hop_limit() == 64),
    }
    let Some(TransportSlice::Udp(udp)) = packet.transport else { panic!("no UDP: {frame:02x?}") };
    assert_eq!((udp.destination_port(), udp.checksum()), (4789, 0));
    assert!(udp.source_port() >= 0xc000);
    let (header, inner) = udp.payload().split_at(8);
    assert_eq!(header, [8, 0, 0, 0, (VNI >> 16) as u8, (VNI >> 8) as u8, VNI as u8, 0]);
    let inner = SlicedPacket::from_ethernet(inner).expect("a frame in it");
    let Some(TransportSlice::Udp(roce)) = inner.transport else { panic!("no RoCE: {frame:02x?}") };
    assert_eq!(roce.destination_port(), 4791);
    frame.len()
}

/// `v6`: of the underlay; the tenant's packets are of the other version in half of the cases.
fn through(width: usize, v6: bool, mtu: Mtu, wire: &Wire) {
    through_on(cards(width), v6, mtu, wire);
}

fn through_on(pair: Pair, v6: bool, mtu: Mtu, wire: &Wire) {
    (0..2).for_each(|card| pair.hosts[card].ctx.set_tunnel(0, &tunnel(card, v6)).unwrap());
    let frames = listen(&pair);
    let mut b = linked(pair, &Wire { mtu, ..*wire });
    traffic(&mut b);
    b.pair.world().run(20_000);
    let frames = frames.lock().unwrap();
    let longest = frames.iter().map(|frame| is_tunnel_packet(frame, v6)).max().unwrap();
    let counts = counts(&b.pair);
    // What one card has sent the other has taken; nothing else came.
    assert_eq!([counts[0].wrapped(), counts[1].wrapped()], [counts[1].stripped(), counts[0].stripped()]);
    assert_eq!(counts[0].wrapped() + counts[1].wrapped(), frames.len() as u64);
    assert_eq!(counts.map(|c| refused(&c)), [[0; 10]; 2]);
    // A first WRITE packet is the longest: Ethernet, IP, UDP, BTH, RETH and ICRC around the path MTU.
    let inside = mtu.bytes() + 14 + if wire.v6 { 40 } else { 20 } + 8 + 12 + 16 + 4 + if wire.vlan.is_some() { 4 } else { 0 };
    assert_eq!(longest, inside + tunnel(0, v6).overhead());
    assert_eq!(b.pair.iommu_faults(), 0);
}

#[test]
fn roce_over_ipv4() {
    through(512, false, Mtu::M4096, &Wire::default());
    through(64, false, Mtu::M1024, &Wire { v6: true, ..Default::default() });
}

#[test]
fn roce_over_ipv6() {
    through(512, true, Mtu::M1024, &Wire { vlan: Some(5), ..Default::default() });
    through(64, true, Mtu::M4096, &Wire { v6: true, ..Default::default() });
}

/// The functional twin at both ends, and at one of them.
#[test]
fn twins_do_the_same() {
    for (bodies, v6) in [([Body::Twin; 2], false), ([Body::Twin; 2], true), ([Body::Twin, Body::Gateware], true), ([Body::Gateware, Body::Twin], false)] {
        through_on(cards_of(64, bodies), v6, Mtu::M1024, &Wire { v6: !v6, ..Default::default() });
    }
    what_is_not_for_the_tunnel([Body::Twin; 2]);
}

/// Packets of another VNI, from a stranger, and frames around the tunnel deliver nothing, and each counts.
#[test]
fn what_is_not_for_the_tunnel_reaches_nobody() {
    what_is_not_for_the_tunnel(GATEWARE);
}

fn what_is_not_for_the_tunnel(bodies: [Body; 2]) {
    let pair = cards_of(64, bodies);
    let ours = |card| tunnel(card, false);
    pair.hosts[0].ctx.set_tunnel(0, &TunnelConfig { vni: VNI + 1, ..ours(0) }).unwrap();
    pair.hosts[1].ctx.set_tunnel(0, &ours(1)).unwrap();
    // Two transmissions, quickly behind each other, and no third.
    let mut b = linked(pair, &Wire { timeout: 4, retry_cnt: 1, ..Default::default() });
    let write = |b: &mut Linked| {
        let sges = [sge(b.src.addr(), 64, b.src.lkey())];
        let request = SendRequest { wr_id: 1, opcode: WrOpcode::Write, payload: Payload::Sges(&sges), remote_addr: b.dst.addr(), rkey: b.dst.rkey(), imm: 0, signaled: true, solicited: false };
        b.qps[0].post_send(&request).unwrap();
        b.wait(0, 40 * PATIENCE).unwrap().status
    };
    assert_eq!(write(&mut b), CqeStatus::RetryExceeded);
    let at = |b: &Linked| refused(&counts(&b.pair)[1]);
    assert_eq!((at(&b), b.dst.to_vec(0, 64)), ([0, 0, 0, 0, 0, 2, 0, 0, 0, 0], vec![0; 64]));
    // The same VNI from another address.
    let stranger = TunnelConfig { local: [192, 0, 2, 77].into(), ..ours(0) };
    b.pair.hosts[0].ctx.set_tunnel(0, &stranger).unwrap();
    let mut b = linked(b.pair, &Wire { timeout: 4, retry_cnt: 1, ..Default::default() });
    assert_eq!(write(&mut b), CqeStatus::RetryExceeded);
    assert_eq!((at(&b)[6], b.dst.to_vec(0, 64)), (2, vec![0; 64]));
    let names = ["rx.rx_frames", "rx.rx_roce", "rx.rx_mac_error"].map(|name| counters::index(name).unwrap() as u32);
    let seen = |b: &Linked| names.map(|n| b.pair.hosts[1].ctx.counters(n, 1).unwrap()[0]);
    assert_eq!(seen(&b), [0; 3], "the card has seen none of them");
    // RoCE without a tunnel, which the queue pair would take.
    b.pair.hosts[0].ctx.clear_tunnel(0).unwrap();
    let mut b = linked(b.pair, &Wire { timeout: 4, retry_cnt: 1, ..Default::default() });
    assert_eq!(write(&mut b), CqeStatus::RetryExceeded);
    assert_eq!((at(&b)[9], b.dst.to_vec(0, 64)), (2, vec![0; 64]));
    assert_eq!(seen(&b), [2, 0, 0], "it is no function's that has a tunnel");
    // Once all functions have one nobody is there for what came through none.
    (1..4).for_each(|f| b.pair.hosts[1].ctx.set_tunnel(f, &TunnelConfig { vni: u32::from(f), ..ours(1) }).unwrap());
    let mut b = linked(b.pair, &Wire { timeout: 4, retry_cnt: 1, ..Default::default() });
    assert_eq!(write(&mut b), CqeStatus::RetryExceeded);
    assert_eq!((at(&b)[0], seen(&b), b.dst.to_vec(0, 64)), (2, [2, 0, 0], vec![0; 64]));
    (1..4).for_each(|f| b.pair.hosts[1].ctx.clear_tunnel(f).unwrap());
    // As it should be, and by a tunnel that lets all through.
    b.pair.hosts[0].ctx.set_tunnel(0, &ours(0)).unwrap();
    let mut b = linked(b.pair, &Wire::default());
    assert_eq!(write(&mut b), CqeStatus::Success);
    let taken = counts(&b.pair)[1].stripped();
    b.pair.hosts[0].ctx.clear_tunnel(0).unwrap();
    b.pair.hosts[1].ctx.clear_tunnel(0).unwrap();
    assert_eq!(write(&mut b), CqeStatus::Success, "without a tunnel, both ways");
    assert_eq!(counts(&b.pair)[1].stripped(), taken);
}

/// Whoever has a function has no say in the outer header, whatever he sends; and the physical function is told what no tunnel can be.
#[test]
fn a_tenant_does_not_choose_the_tunnel() {
    let mut pair = cards(64);
    pair.open_next().unwrap();
    (0..2).for_each(|card| pair.hosts[card].ctx.set_tunnel(1, &tunnel(card, false)).unwrap());
    let tenant = &pair.tenants[0][0].ctx;
    for result in [tenant.set_tunnel(1, &tunnel(0, true)), tenant.set_tunnel(0, &tunnel(0, true)), tenant.clear_tunnel(1), tenant.tunnel_counts().map(drop)] {
        assert!(matches!(result, Err(Error::Admin { status: AdminStatus::Denied | AdminStatus::BadParameter, .. })), "{result:?}");
    }
    // A tenant whose packets say what they like of addresses and priority: the tunnel's header is the same for all.
    let frames = listen(&pair);
    let wire = Wire { tclass: 0xfd, v6: true, ..Default::default() };
    let cqs = [pair.tenants[0][0].cq(64).unwrap(), pair.tenants[0][1].cq(64).unwrap()];
    let [mut a, _b] = pair.connected_of(1, &QpConfig::default(), &wire, [&cqs[0], &cqs[1]]).unwrap();
    let region = pair.tenants[0][0].region(64, ferric_driver::Access::ALL).unwrap();
    let sges = [sge(region.addr(), 64, region.lkey())];
    let request = SendRequest { wr_id: 1, opcode: WrOpcode::Write, payload: Payload::Sges(&sges), remote_addr: 0, rkey: 0, imm: 0, signaled: true, solicited: false };
    a.post_send(&request).unwrap();
    pair.world().run(20_000);
    let frames = frames.lock().unwrap();
    assert!(frames.len() >= 2, "a WRITE, and what it is answered with");
    let own = [underlay(0, false), underlay(1, false)];
    for frame in frames.iter() {
        is_tunnel_packet(frame, false);
        let from = usize::from(frame[11] == 2);
        assert_eq!((&frame[..6], &frame[6..12]), (&own[1 - from].0 .0[..], &own[from].0 .0[..]));
        // Its ECN goes outside, its DSCP does not.
        assert_eq!(frame[15], frame[50 + 15] >> 4 & 3);
    }
    let ctx = &pair.hosts[0].ctx;
    let good = tunnel(0, false);
    for bad in [
        TunnelConfig { ttl: Some(0), ..good.clone() },
        TunnelConfig { local: [0, 0, 0, 0].into(), ..good.clone() },
        TunnelConfig { remote: [224, 0, 0, 1].into(), ..good.clone() },
        TunnelConfig { mac: Mac([0; 6]), ..good.clone() },
        TunnelConfig { next_hop: Mac([0xff; 6]), ..good },
    ] {
        assert!(matches!(ctx.set_tunnel(0, &bad), Err(Error::Admin { status: AdminStatus::BadParameter, .. })), "{bad:?}");
    }
    // There is no such function; and function 1 has the VNI at this address, whose network function 2 may join by the same rules only.
    assert!(matches!(ctx.set_tunnel(4, &tunnel(0, false)), Err(Error::Admin { status: AdminStatus::BadId, .. })));
    let other = TunnelConfig { any_remote: true, ..tunnel(0, false) };
    assert!(matches!(ctx.set_tunnel(2, &other), Err(Error::Admin { status: AdminStatus::InUse, .. })));
    assert!(matches!(ctx.set_tunnel(0, &tunnel(0, false)), Err(Error::Admin { status: AdminStatus::InUse, .. })));
    ctx.set_tunnel(2, &tunnel(0, false)).unwrap();
    assert_eq!([1, 2].map(|function| ctx.tunnel_leader(function).unwrap()), [None, Some(1)]);
}

/// A card without the engine says so.
#[test]
fn other_cards_have_no_tunnel() {
    let pair = Pair::new(&WorldConfig::default()).unwrap();
    let ctx = &pair.hosts[0].ctx;
    assert!(!ctx.has_tunnel());
    assert!(matches!(ctx.set_tunnel(0, &tunnel(0, false)), Err(Error::Unsupported(_))));
    assert!(matches!(ctx.tunnel_counts(), Err(Error::Unsupported(_))));
}
