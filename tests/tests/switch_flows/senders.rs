//! What functions send is verified: a tenant that speaks for itself loses nothing, one that speaks for others sends nothing, and whoever gets a function's number next begins with nothing.
use super::*;
use ferric_abi::context::SenderCounts;
use ferric_driver::switch::Sender;
use ferric_driver::ud::{AddressHandle, DatagramRequest, Source};
use ferric_driver::Address;
use ferric_sim::fabric::Fate;
use std::sync::{Arc, Mutex};

/// Where the tunnel of card 0's function 1 ends.
const ENDPOINT: [u8; 4] = [192, 0, 2, 1];
/// Datagrams of each kind, and the frames of a raw queue pair.
const EACH: u64 = 6;
const RAW_FRAMES: usize = 132;
const QKEY: u32 = 0x1111;

/// What function `f` of card 0 may send.
fn own(b: &Bench, f: usize) -> Sender {
    let host = &b.pair.of(f)[0];
    Sender { macs: vec![host.mac()], addresses: vec![host.ip(false), host.ip(true)], roce: true, ..Default::default() }
}

fn counts(b: &Bench, f: usize) -> SenderCounts {
    b.pair.hosts[0].ctx.sender_counts(f as u8).unwrap()
}

/// Verified, then by cause.
fn numbers(c: &SenderCounts) -> [u64; 8] {
    [c.verified(), c.deep(), c.spoof_mac(), c.spoof_ip(), c.spoof_arp(), c.tag_denied(), c.roce_denied(), c.underlay_denied()]
}

/// Frames of card 0 from now on; those that are to be lost are not delivered.
fn tap(b: &Bench, lost: bool) -> Arc<Mutex<Vec<Vec<u8>>>> {
    let frames = Arc::new(Mutex::new(Vec::new()));
    let heard = frames.clone();
    b.pair.world().links[0].set_hook(Some(Box::new(move |_, frame| {
        heard.lock().unwrap().push(frame.to_vec());
        lost.then_some(Fate::Dropped)
    })));
    frames
}

/// Function 1 sends datagrams by queue pairs of which it says itself from where they come.
fn datagrams(b: &Bench, source: &Source, dip: IpAddr) {
    let host = &b.pair.of(1)[0];
    let mut cq = host.cq(16).unwrap();
    let mut qp = host.pd.create_qp(&QpConfig { qp_type: QpType::Ud, ..Default::default() }, &cq, &cq).unwrap();
    let memory = host.region(64, Access::ALL).unwrap();
    qp.to_init_ud(QKEY).unwrap();
    qp.to_rtr_ud(Mtu::M1024, source).unwrap();
    qp.to_rts_ud(0).unwrap();
    let to = AddressHandle::new(b.pair.of(1)[1].mac(), dip);
    let from = [sge(memory.addr(), 64, memory.lkey())];
    for n in 0..EACH {
        qp.post_send_ud(&DatagramRequest { wr_id: n, payload: Payload::Sges(&from), to: &to, dest_qpn: 77, qkey: QKEY, imm: None, signaled: true, solicited: false }).unwrap();
        // Whether a frame passes is not the sender's business.
        assert_eq!(b.pair.wait(&mut cq, PATIENCE).unwrap().status, CqeStatus::Success);
    }
    b.pair.world().run(2_000);
}

/// A tenant names other senders in its queue pairs, sends tags, RoCE that it may not, and to where tunnels end.
fn a_function_speaks_for_itself_at(width: usize) {
    let mut b = Bench::of(width, 0);
    let ctx = b.pair.hosts[0].ctx.clone();
    // Nobody looks yet.
    (0..FUNCTIONS).for_each(|f| b.heard(f));
    (0..FUNCTIONS).for_each(|f| assert_eq!(numbers(&counts(&b, f)), [0; 8]));
    let sender = own(&b, 1);
    b.tables.set_sender(&ctx, 1, Some(&sender)).unwrap();
    (0..3).for_each(|_| (0..FUNCTIONS).for_each(|f| b.heard(f)));
    let [verified, causes @ ..] = numbers(&counts(&b, 1));
    assert!(verified >= 9 && causes == [0; 7], "{verified} {causes:?}");
    assert_eq!(numbers(&counts(&b, 0)), [0; 8], "nobody looks at function 0");
    b.pair.world().run(SETTLED);
    // A tunnel of function 0: its end is a place where nobody sends.
    let end = |card: u8| (Mac([6, 0, 0, 0, 0, card]), IpAddr::from([192, 0, 2, card]));
    let [(smac, local), (dmac, remote)] = [end(1), end(2)];
    ctx.set_tunnel(0, &TunnelConfig::new(77, smac, local, dmac, remote)).unwrap();
    let host = &b.pair.of(1)[0];
    let (mac, ip, ip6, to, to6) = (host.mac(), host.ip(false), host.ip(true), b.pair.of(1)[1].ip(false), b.pair.of(1)[1].ip(true));
    let source = Source { smac: mac, sip: ip, vlan: None, udp_sport: 0xc001, flow_label: 0 };
    let stranger = Mac([2, 0, 0, 0, 0, 1]);
    let other6 = "fd00::77".parse().unwrap();
    let no_roce = Sender { roce: false, ..sender.clone() };
    // What it sends, under which rights, and the place of its cause.
    let attempts: Vec<(&str, Source, IpAddr, &Sender, usize)> = vec![
        ("itself", source, to, &sender, 0),
        ("itself, IPv6", Source { sip: ip6, ..source }, to6, &sender, 0),
        ("another function's MAC address", Source { smac: stranger, ..source }, to, &sender, 2),
        ("the physical function's IP address", Source { sip: b.pair.hosts[0].ip(false), ..source }, to, &sender, 3),
        ("an IPv6 address of nobody", Source { sip: other6, ..source }, to6, &sender, 3),
        ("a tag", Source { vlan: Some(5), ..source }, to, &sender, 5),
        ("RoCE", source, to, &no_roce, 6),
        ("to the tunnel's end", source, ENDPOINT.into(), &sender, 7),
    ];
    for (what, source, dip, rights, place) in attempts {
        b.tables.set_sender(&ctx, 1, Some(rights)).unwrap();
        let before = numbers(&counts(&b, 1));
        let frames = tap(&b, true);
        datagrams(&b, &source, dip);
        let after = numbers(&counts(&b, 1));
        let moved: [u64; 8] = std::array::from_fn(|n| after[n] - before[n]);
        assert_eq!(moved, std::array::from_fn(|n| if n == place { EACH } else { 0 }), "{what}");
        assert_eq!(frames.lock().unwrap().len() as u64, if place == 0 { EACH } else { 0 }, "{what}: what left");
    }
    b.pair.world().links[0].set_hook(None);
    ctx.clear_tunnel(0).unwrap();
    // Rights that it gets count.
    let trunk = Sender { trunk: true, any_ip: true, ..sender };
    b.tables.set_sender(&ctx, 1, Some(&trunk)).unwrap();
    let before = numbers(&counts(&b, 1));
    datagrams(&b, &Source { vlan: Some(5), sip: IpAddr::from([10, 9, 9, 9]), ..source }, to);
    assert_eq!(counts(&b, 1).verified() - before[0], EACH);
    b.heard(1);
    assert_eq!(numbers(&counts(&b, 1))[1..], before[1..]);
    assert_eq!(b.pair.iommu_faults(), 0);
}

#[test]
fn a_function_speaks_for_itself() {
    widths(512).into_iter().for_each(a_function_speaks_for_itself_at);
}

/// What the card itself says for a function is verified, too: acknowledges, and answers to ARP.
#[test]
fn answers_are_verified() {
    let mut b = Bench::new(64);
    let ctx = b.pair.hosts[1].ctx.clone();
    let hosts = b.pair.of(1);
    let [(ip, mac), (other, other_mac)] = [0, 1].map(|card: usize| (hosts[card].ip(false), hosts[card].mac()));
    let sender = Sender { macs: vec![other_mac], addresses: vec![other], roce: true, ..Default::default() };
    hosts[0].ctx.set_address(0, Address { ip, mac, vlan: None }).unwrap();
    hosts[1].ctx.set_address(0, Address { ip: other, mac: other_mac, vlan: None }).unwrap();
    b.tables.set_sender(&ctx, 1, Some(&sender)).unwrap();
    b.heard(1);
    b.pair.world().run(SETTLED);
    let acknowledged = ctx.sender_counts(1).unwrap().verified();
    assert!(acknowledged > 0);
    // Before its neighbour knows where it is.
    b.tables.set_sender(&ctx, 1, Some(&Sender { addresses: Vec::new(), ..sender.clone() })).unwrap();
    let search = ferric_driver::Search { wait: std::time::Duration::from_millis(1), ..Default::default() };
    assert!(b.pair.of(1)[0].ctx.resolve_within(0, other, &search).is_err());
    let counts = ctx.sender_counts(1).unwrap();
    assert!(counts.spoof_arp() > 0 && counts.verified() == acknowledged, "{counts:?}");
    b.tables.set_sender(&ctx, 1, Some(&sender)).unwrap();
    // A driver remembers for some seconds that nobody has answered; a new one asks.
    b.reopen(0, 1);
    let asker = &b.pair.of(1)[0].ctx;
    asker.set_address(0, Address { ip, mac, vlan: None }).unwrap();
    assert_eq!(asker.resolve(0, other).unwrap(), other_mac);
    let counts = ctx.sender_counts(1).unwrap();
    assert!(counts.verified() == acknowledged + 1, "{counts:?}");
}

/// The number of a function goes to another tenant: what the first one might send the second one may not, and nothing at all until somebody says so.
#[test]
fn a_function_changes_hands() {
    let mut b = Bench::of(64, 0);
    let ctx = b.pair.hosts[0].ctx.clone();
    let sender = own(&b, 1);
    b.tables.set_sender(&ctx, 1, Some(&sender)).unwrap();
    b.heard(1);
    let again = |b: &mut Bench| {
        b.reopen(0, 1);
        let new = talker(&b.pair, 1);
        std::mem::forget(std::mem::replace(&mut b.talkers[1], new));
    };
    again(&mut b);
    let spoofed = counts(&b, 1).spoof_mac();
    b.not_heard(1);
    assert!(counts(&b, 1).spoof_mac() > spoofed);
    b.heard(0);
    // Nor does it keep an address from a neighbour: it has none, whatever it says.
    let station = |f: usize, number: u32| b.pair.of(f)[0].ctx.set_station(number, Mac([2, 0, 0, 0, 77, 9]));
    [1, 0].into_iter().for_each(|f| station(f, 3).unwrap());
    assert!(matches!(station(1, 2), Err(Error::Admin { status: AdminStatus::InUse, .. })), "the neighbour, whom nobody verifies, has it now");
    // Another tenant's addresses: those of the one before are nobody's.
    let mac = Mac([2, 0, 0, 0, 77, 1]);
    let other = Sender { macs: vec![mac], addresses: vec![[10, 0, 77, 1].into()], roce: true, ..Default::default() };
    b.tables.set_sender(&ctx, 1, Some(&other)).unwrap();
    b.not_heard(1);
    let host_ip = b.pair.of(1)[0].ip(false);
    let to = b.pair.of(1)[1].ip(false);
    let source = |smac, sip| Source { smac, sip, vlan: None, udp_sport: 0xc001, flow_label: 0 };
    let before = numbers(&counts(&b, 1));
    datagrams(&b, &source(mac, host_ip), to);
    datagrams(&b, &source(mac, [10, 0, 77, 1].into()), to);
    let after = numbers(&counts(&b, 1));
    assert_eq!([after[0] - before[0], after[3] - before[3]], [EACH, EACH]);
    // It gets the first one's addresses.
    b.tables.set_sender(&ctx, 1, Some(&sender)).unwrap();
    again(&mut b);
    b.tables.set_sender(&ctx, 1, Some(&sender)).unwrap();
    b.heard(1);
    // With the physical function goes what it has said; who was verified may send nothing then.
    b.reopen(0, 0);
    let spoofed = counts(&b, 1).spoof_mac();
    b.not_heard(1);
    assert!(counts(&b, 1).spoof_mac() > spoofed);
    let ctx = b.pair.hosts[0].ctx.clone();
    b.tables = FlowTables::open(&ctx).unwrap();
    // The addresses have gone, too.
    b.tables.set_sender(&ctx, 1, Some(&Sender { addresses: Vec::new(), ..sender.clone() })).unwrap();
    let before = counts(&b, 1).spoof_ip();
    b.not_heard(1);
    assert!(counts(&b, 1).spoof_ip() > before);
    b.tables.set_sender(&ctx, 1, Some(&sender)).unwrap();
    b.heard(1);
    b.tables.set_sender(&ctx, 1, None).unwrap();
    let before = numbers(&counts(&b, 1));
    b.heard(1);
    assert_eq!(numbers(&counts(&b, 1)), before, "nobody looks any more");
}

/// Nobody but function 0 says who may send what, and what cannot be said changes nothing.
#[test]
fn who_may_say_so() {
    let mut b = Bench::of(64, 0);
    let ctx = b.pair.hosts[0].ctx.clone();
    let sender = own(&b, 1);
    b.tables.set_sender(&ctx, 1, Some(&sender)).unwrap();
    let tenant = b.pair.of(1)[0].ctx.clone();
    for command in [table::sender(1, None), table::bound(0, 0, None)] {
        assert!(matches!(tenant.write_flow(&command), Err(Error::Admin { status: AdminStatus::Denied, .. })));
    }
    assert!(tenant.sender_counts(1).is_err());
    assert!(b.tables.set_sender(&tenant, 1, None).is_err());
    for bad in [table::sender(4, None), table::bound(4, 0, None), table::bound(0, 8, None), table::sender(4, None).with_opcode(table::READ)] {
        assert!(matches!(ctx.write_flow(&bad), Err(Error::Admin { status: AdminStatus::BadParameter, .. })));
    }
    let five = Sender { macs: (0..5).map(|n| Mac([2, 0, 0, 0, 9, n])).collect(), ..Default::default() };
    assert!(matches!(b.tables.set_sender(&ctx, 1, Some(&five)), Err(Error::Invalid(_))));
    assert!(matches!(b.tables.set_sender(&ctx, 4, Some(&sender)), Err(Error::Invalid(_))));
    assert!(matches!(ctx.sender_counts(4), Err(Error::Invalid(_))));
    let many = Sender { addresses: (0..=b.tables.addresses()).map(|n| [10, 1, 0, n as u8].into()).collect(), ..sender.clone() };
    assert!(matches!(b.tables.set_sender(&ctx, 1, Some(&many)), Err(Error::Exhausted(_))));
    b.heard(1);
    assert_eq!(numbers(&counts(&b, 1))[1..], [0; 7]);
    let plain = WorldConfig { cards: vec![CardConfig { width: 64, ..Default::default() }; 2], ..Default::default() };
    let pair = Pair::new(&plain).unwrap();
    assert!(matches!(pair.hosts[0].ctx.sender_counts(0), Err(Error::Unsupported(_))));
}

fn ether(smac: Mac, kind: u16) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2][..], &smac.0, &kind.to_be_bytes()].concat()
}

fn v4(src: [u8; 4], dst: [u8; 4], from: u16, to: u16) -> Vec<u8> {
    let mut ip = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0];
    ip.extend(src);
    ip.extend(dst);
    ip.extend(from.to_be_bytes());
    ip.extend(to.to_be_bytes());
    ip.extend([0, 20, 0, 0]);
    ip.resize(40, 0x66);
    ip
}

/// ICMPv6 of `kind` about `target`, with the hardware address that it names.
fn discovery(src: [u8; 16], kind: u8, target: [u8; 16], names: Mac) -> Vec<u8> {
    let mut ip = vec![0x60, 0, 0, 0, 0, 32, 58, 255];
    ip.extend(src);
    ip.extend([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    ip.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
    ip.extend(target);
    ip.extend([1, 1]);
    ip.extend(names.0);
    ip
}

fn arp(hardware: Mac, sender: [u8; 4]) -> Vec<u8> {
    [&[0, 1, 8, 0, 6, 4, 0, 2][..], &hardware.0, &sender, &[2, 0, 0, 0, 0, 2], &[10, 0, 0, 2]].concat()
}

/// Frames of any kind by a raw queue pair, right ones and wrong ones in turn: those leave as they are and in order, of these nothing does, and each counts once under its cause.
fn a_raw_queue_is_verified_at(width: usize) {
    let mut b = Bench::of(width, 0);
    let ctx = b.pair.hosts[0].ctx.clone();
    // A tunnel of another function, so that there is an underlay.
    let end = |card: u8| (Mac([6, 0, 0, 0, 0, card]), IpAddr::from([192, 0, 2, card]));
    let [(smac, local), (dmac, remote)] = [end(1), end(2)];
    ctx.set_tunnel(1, &TunnelConfig::new(77, smac, local, dmac, remote)).unwrap();
    let host = &b.pair.hosts[0];
    let (mac, other) = (host.mac(), Mac([2, 0, 0, 0, 1, 1]));
    let (IpAddr::V4(ip), IpAddr::V6(ip6)) = (host.ip(false), host.ip(true)) else { unreachable!("both versions were asked for") };
    let (ip, ip6, foreign, foreign6) = (ip.octets(), ip6.octets(), [10, 0, 1, 1], [0xfd; 16]);
    b.tables.set_sender(&ctx, 0, Some(&Sender { roce: false, ..own(&b, 0) })).unwrap();
    let to = [10, 0, 0, 2];
    let tagged = |mut frame: Vec<u8>| {
        frame.splice(12..12, [0x81, 0, 0, 5]);
        frame
    };
    let nested = {
        let mut outer = v4(ip, to, 0xc000, 4789);
        outer[2..4].copy_from_slice(&118u16.to_be_bytes());
        outer[24..26].copy_from_slice(&98u16.to_be_bytes());
        outer.truncate(28);
        outer.extend([8, 0, 0, 0, 0, 0, 77, 0]);
        outer.extend([ether(other, IPV4), v4(foreign, to, 1, 2)].concat());
        outer.resize(118, 0);
        outer
    };
    let kinds: Vec<(Vec<u8>, usize)> = vec![
        ([ether(mac, IPV4), v4(ip, to, 0xc000, 53)].concat(), 0),
        ([ether(other, IPV4), v4(ip, to, 0xc000, 53)].concat(), 2),
        ([ether(mac, IPV4), v4(foreign, to, 0xc000, 53)].concat(), 3),
        ([ether(mac, 0x0806), arp(mac, ip)].concat(), 0),
        ([ether(mac, 0x0806), arp(mac, [0; 4])].concat(), 0),
        ([ether(mac, 0x0806), arp(other, ip)].concat(), 4),
        ([ether(mac, 0x0806), arp(mac, foreign)].concat(), 4),
        (tagged([ether(mac, IPV4), v4(ip, to, 0xc000, 53)].concat()), 5),
        (tagged(tagged([ether(mac, IPV4), v4(ip, to, 0xc000, 53)].concat())), 5),
        (tagged(tagged(tagged([ether(mac, IPV4), v4(ip, to, 0xc000, 53)].concat()))), 1),
        ([ether(mac, IPV4), nested].concat(), 7),
        ([ether(mac, IPV4), v4(ip, ENDPOINT, 0xc000, 53)].concat(), 7),
        ([ether(mac, IPV4), v4(ip, to, 0xc000, 4791)].concat(), 6),
        ([ether(mac, IPV4), v4(ip, to, 67, 68)].concat(), 3),
        ([ether(mac, 0x86dd), discovery(ip6, 136, ip6, mac)].concat(), 0),
        ([ether(mac, 0x86dd), discovery(ip6, 135, foreign6, mac)].concat(), 0),
        ([ether(mac, 0x86dd), discovery(ip6, 136, foreign6, mac)].concat(), 4),
        ([ether(mac, 0x86dd), discovery(ip6, 136, ip6, other)].concat(), 4),
        ([ether(mac, 0x86dd), discovery(foreign6, 136, foreign6, mac)].concat(), 3),
        ([ether(mac, 0x86dd), discovery(ip6, 134, ip6, mac)].concat(), 4),
        ([ether(mac, 0x8847), vec![0; 50]].concat(), 1),
        ([ether(mac, TYPE), vec![7; 50]].concat(), 0),
    ];
    let mut cq = host.cq(512).unwrap();
    let memory = host.region(2048, Access::ALL).unwrap();
    let mut qp = host.pd.create_qp(&QpConfig { qp_type: QpType::Raw, ..Default::default() }, &cq, &cq).unwrap();
    qp.to_init(Access::ALL).unwrap();
    qp.to_rtr(Access::ALL, &RtrAttr { mtu: Mtu::M4096, dest_qpn: 0, rq_psn: 0, min_rnr_timer: 0, repeat_nak: false, max_dest_rd_atomic: 0, path: None }).unwrap();
    qp.to_rts(&RtsAttr { sq_psn: 0, timeout: 0, retry_cnt: 0, rnr_retry: 0, max_rd_atomic: 0 }).unwrap();
    let frames = tap(&b, true);
    let mut want = [0; 8];
    let mut passed = Vec::new();
    for n in 0..RAW_FRAMES {
        let (frame, place) = &kinds[n * 7 % kinds.len()];
        let mut frame = frame.clone();
        // Padding of any length, which tells frames apart.
        frame.resize(frame.len().max(60) + n * 13 % 700, n as u8);
        want[*place] += 1;
        memory.write(0, &frame);
        let from = [sge(memory.addr(), frame.len() as u32, memory.lkey())];
        qp.post_send(&SendRequest { wr_id: n as u64, opcode: WrOpcode::Send, payload: Payload::Sges(&from), remote_addr: 0, rkey: 0, imm: 0, signaled: true, solicited: false }).unwrap();
        assert_eq!(b.pair.wait(&mut cq, PATIENCE).unwrap().status, CqeStatus::Success);
        if *place == 0 {
            passed.push(frame);
        }
    }
    b.pair.world().run(2_000);
    assert_eq!(numbers(&counts(&b, 0)), want);
    assert_eq!(want.iter().sum::<u64>(), RAW_FRAMES as u64);
    assert!(want.iter().all(|n| *n > 0), "{want:?}");
    assert!(*frames.lock().unwrap() == passed, "what may leave leaves as it is");
}

#[test]
fn a_raw_queue_is_verified() {
    widths(64).into_iter().for_each(a_raw_queue_is_verified_at);
}
