//! Networks of several functions beside the measured case: on a twin, on a card that has no way from function to function, as large as they may be, with connection managers, with searches of raw queue pairs, and
//! with tables that decide.
use super::one_vni::{Bench, TYPE};
use super::*;
use ferric_abi::codes::AdminStatus;
use ferric_abi::switch::station::ALL_DOMAIN_BITS;
use ferric_abi::switch::{destination, Action, FlowKey};
use ferric_driver::cm::{ip_service_id, Cm, CmPort, Event, Gsi, Local, Request};
use ferric_driver::switch::{FlowPort, Packets};
use ferric_driver::Error;
use ferric_tests::raw::Raw;

/// Functions that one network has at most.
const MOST: u16 = 8;
/// The port that connection managers listen at.
const PORT: u16 = 4_791;

fn nothing_has_come(b: &Bench, talk: &mut Talk) {
    talk.say();
    talk.is_unheard(&b.pair);
    assert!((0..2).all(|side| talk.memory[side].to_vec(LEN, 2 * LEN) == vec![0; 2 * LEN]));
}

/// What a twin loops back it loops back within the network.
#[test]
fn functions_of_a_twin_reach_each_other() {
    let b = Bench::of(pair_of(64, 4));
    let mut inside = [b.talk([(1, 1), (1, 2)]), b.talk([(1, 2), (1, 2)]), b.talk([(1, 3), (1, 3)])];
    let sent = b.pair.world().links[1].counters.sent;
    inside.iter_mut().for_each(|talk| talk.talk(&b.pair));
    assert_eq!(b.pair.world().links[1].counters.sent, sent, "nothing has left the card");
    let mut outside = b.talk([(1, 2), (0, 1)]);
    outside.talk(&b.pair);
    nothing_has_come(&b, &mut b.talk([(1, 3), (1, 1)]));
    inside.iter_mut().for_each(|talk| talk.talk(&b.pair));
    assert_eq!(b.pair.iommu_faults(), 0);
}

/// The card `vxlan` has no way from function to function: what they send each other goes to the wire, in the tunnel, where nobody is that it is for; each reaches whoever is behind the wire.
#[test]
fn without_a_way_between_functions() {
    let card = || CardConfig { width: 64, engines: "vxlan", ..Default::default() };
    let b = Bench::of(named([card(), card()], 4));
    let mut outside = [b.talk([(0, 1), (1, 2)]), b.talk([(0, 2), (1, 1)]), b.talk([(0, 3), (1, 3)])];
    outside.iter_mut().for_each(|talk| talk.talk(&b.pair));
    let before = (left(&b.pair), counts(&b.pair));
    nothing_has_come(&b, &mut b.talk([(0, 1), (0, 2)]));
    let after = counts(&b.pair);
    assert!(left(&b.pair) > before.0 && after.wrapped() > before.1.wrapped());
    outside.iter_mut().for_each(|talk| talk.talk(&b.pair));
    assert_eq!(b.pair.iommu_faults(), 0);
}

/// Eight functions are a network, each reaches the next, and the ninth is refused until one has left. Twins run the program that the gateware runs.
#[test]
fn a_network_has_eight_functions() {
    let card = || CardConfig { body: Body::Twin, width: 64, engines: "vxlan", functions: 16, ..Default::default() };
    let pair = named([card(), card()], 11);
    let end = |n: u8| (Mac([6, 0, 0, 0, 0, n]), IpAddr::from([192, 0, 2, n]));
    let [(own, local), (next_hop, remote)] = [end(1), end(2)];
    let config = TunnelConfig::new(9, own, local, next_hop, remote);
    let host = &pair.hosts[0].ctx;
    (1..=MOST).for_each(|f| host.set_tunnel(f, &config).unwrap());
    let full = host.set_tunnel(MOST + 1, &config);
    assert!(matches!(full, Err(Error::Admin { status: AdminStatus::NoRoom, .. })), "{full:?}");
    // Another network beside it.
    host.set_tunnel(MOST + 1, &TunnelConfig { vni: 10, ..config.clone() }).unwrap();
    host.clear_tunnel(MOST + 1).unwrap();
    let of = |f: u16| &pair.of(f.into())[0];
    let mut ring: Vec<Talk> = (1..=MOST).map(|f| Talk::new([of(f), of(f % MOST + 1)])).collect();
    ring.iter_mut().for_each(Talk::say);
    ring.iter_mut().for_each(|talk| talk.heard(&pair));
    // One leaves, not the first; then there is room, and whoever has left is nobody's.
    host.clear_tunnel(5).unwrap();
    host.set_tunnel(MOST + 1, &config).unwrap();
    assert!(host.set_tunnel(5, &config).is_err());
    Talk::new([of(MOST + 1), of(4)]).talk(&pair);
    let mut gone = Talk::new([of(4), of(5)]);
    gone.say();
    pair.world().run(SETTLED);
    assert!(gone.cqs.iter_mut().all(|cq| cq.poll().is_none()));
}

/// Connection managers on functions of a network, and one on the function that has the addresses of the first: packets to queue pair 1 are for whose address it is, within the network.
#[test]
fn connections_within_a_network() {
    let b = Bench::of(pair_of(64, 4));
    let ends = [(0, 1), (0, 2), (0, 3), (1, 2)];
    let mut ports: Vec<CmPort> = ends
        .iter()
        .enumerate()
        .map(|(n, (card, f))| {
            let (host, (smac, sip)) = (b.host(*card, *f), Bench::name_of(&b.pair, *card, *f));
            let source = Source { smac, sip, vlan: None, udp_sport: 0xc001, flow_label: 0 };
            let gsi = Gsi::open(&host.ctx, &host.pd, &host.eq, &source).unwrap();
            let known: Vec<_> = ends.iter().map(|(card, f)| Bench::name_of(&b.pair, *card, *f)).collect();
            let neighbour = Box::new(move |ip| known.iter().find(|(_, k)| *k == ip).map(|(mac, _)| *mac));
            let mut port = CmPort::new(&host.ctx, gsi, Cm::new(0x0200_00ff_fe00_0000 + n as u64, 77 * n as u64), neighbour);
            port.cm.listen(ip_service_id(PORT));
            port
        })
        .collect();
    let local = |base: u32, n: usize| Local { qpn: base + n as u32, psn: 7, responder_resources: 1, initiator_depth: 1, rnr_retry: 7 };
    fn next(ports: &mut [CmPort]) -> Option<(usize, Event)> {
        for _ in 0..100_000 {
            ports.iter_mut().for_each(|p| p.progress().unwrap());
            if let Some(event) = ports.iter_mut().enumerate().find_map(|(n, p)| p.cm.poll().map(|e| (n, e))) {
                return Some(event);
            }
            ports[0].relax();
        }
        None
    }
    for (from, to) in [(0, 1), (1, 0), (0, 3), (3, 1), (1, 3), (2, 2)] {
        let [(card, f), (to_card, to_f)] = [ends[from], ends[to]];
        let now = ports[from].now();
        let request = Request {
            to: ports[from].address(Bench::name_of(&b.pair, to_card, to_f).1).unwrap(),
            from: Bench::name_of(&b.pair, card, f).1,
            service_id: ip_service_id(PORT),
            local: local(0x100, from),
            mtu: Mtu::M1024,
            retry_count: 7,
            ack_timeout: 14,
            ip_port: Some(40_000),
            private: vec![from as u8, to as u8],
        };
        let asked = ports[from].cm.connect(now, &request).unwrap();
        let Some((who, Event::Request { id, remote, .. })) = next(&mut ports) else { panic!("{from} {to}") };
        assert_eq!((who, remote.qpn), (to, local(0x100, from).qpn), "whose request it is");
        let now = ports[to].now();
        ports[to].cm.accept(now, id, &local(0x200, to), b"come in").unwrap();
        let Some((who, Event::Reply { id, remote, .. })) = next(&mut ports) else { panic!("{from} {to}") };
        assert_eq!((who, id, remote.qpn), (from, asked, local(0x200, to).qpn));
        ports[from].cm.confirm(asked, b"").unwrap();
        let established = [next(&mut ports).unwrap(), next(&mut ports).unwrap()];
        assert!(established.iter().all(|(n, event)| [from, to].contains(n) && matches!(event, Event::Established { .. })), "{established:?}");
        let now = ports[from].now();
        ports[from].cm.disconnect(now, asked, b"").unwrap();
        let gone = [next(&mut ports).unwrap(), next(&mut ports).unwrap()];
        assert!(gone.iter().all(|(n, event)| [from, to].contains(n) && matches!(event, Event::Disconnected { .. })), "{gone:?}");
    }
    assert_eq!(b.pair.iommu_faults(), 0);
}

/// The raw queue pairs that have heard one frame of this type since, all of them the same.
fn heard(raws: &mut [Raw], kind: [u8; 2]) -> (Vec<usize>, Vec<u8>) {
    let heard: Vec<_> = raws.iter_mut().map(|raw| raw.heard().into_iter().filter(|got| got[12..14] == kind).collect::<Vec<_>>()).collect();
    let first = heard.iter().flatten().next().cloned().unwrap_or_default();
    assert!(heard.iter().all(|all| all.len() < 2) && heard.iter().flatten().all(|frame| *frame == first));
    ((0..raws.len()).filter(|n| !heard[*n].is_empty()).collect(), first)
}

/// A tenant's own system asks who has an address: the card answers for the function of its network that has it, to the one that asked, and for nobody else.
#[test]
fn searches_of_raw_queue_pairs() {
    let b = Bench::of(pair_of(64, 4));
    let mut raws: Vec<_> = (1..4).map(|f| raw(b.host(0, f)).unwrap().listening()).collect();
    let ask = |f: usize, ip: IpAddr| {
        let (IpAddr::V4(ip), (own, IpAddr::V4(sip))) = (ip, Bench::name_of(&b.pair, 0, f)) else { panic!("ARP is of IPv4") };
        let mut frame = [&[0xff; 6][..], &own.0, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &own.0, &sip.octets(), &[0; 6], &ip.octets()].concat();
        frame.resize(60, 0);
        frame
    };
    let [first, second] = [1, 2].map(|f| Bench::name_of(&b.pair, 0, f));
    for (from, of, answered) in [(1, second, Some(second)), (2, first, Some(first)), (3, second, None)] {
        raws[from - 1].send(&b.pair, &ask(from, of.1));
        b.pair.world().run(SETTLED);
        let (who, frame) = heard(&mut raws, [8, 6]);
        let Some((mac, IpAddr::V4(ip))) = answered else {
            assert_eq!(who, [0; 0], "{from}");
            continue;
        };
        // The question is answered and not passed on.
        assert_eq!(who, [from - 1]);
        assert_eq!((&frame[..6], &frame[6..12], frame[21]), (&Bench::name_of(&b.pair, 0, from).0 .0[..], &mac.0[..], 2), "a reply");
        assert_eq!((&frame[22..28], &frame[28..32]), (&mac.0[..], &ip.octets()[..]));
    }
}

/// What comes by the tunnel and tables give to one function is that one's alone, be it to all or to its address; without tables it is the network's again.
#[test]
fn tables_choose_within_a_network() {
    let b = Bench::of(pair_of(64, 4));
    let mut raws: Vec<_> = (1..4).map(|f| raw(b.host(0, f)).unwrap().listening()).collect();
    let mut sender = raw(b.host(1, 1)).unwrap();
    let mut say = |raws: &mut [Raw], to: [u8; 6], n: u8| {
        sender.send(&b.pair, &[&to[..], &Bench::name_of(&b.pair, 1, 1).0 .0, &TYPE, &[n; 200]].concat());
        b.pair.world().run(SETTLED);
        heard(raws, TYPE).0
    };
    let (all, first) = ([0xff; 6], Bench::name_of(&b.pair, 0, 1).0 .0);
    assert_eq!((say(&mut raws, all, 1), say(&mut raws, first, 2)), (vec![0, 1], vec![0]));
    let ctx = b.pair.hosts[0].ctx.clone();
    let mut tables = FlowTables::open(&ctx).unwrap();
    // The domain of the network is that of the function that the others have joined.
    let [key, mask] = [1 + 1, ALL_DOMAIN_BITS].map(|domain| FlowKey::default().with_domain(domain));
    tables.set_rule(&ctx, 0, Packets::Others, [&key, &mask], 0, 0).unwrap();
    tables.set_action(&ctx, 0, Some(&Action::default().with_kind(destination::DROP))).unwrap();
    tables.decide(&ctx, &FlowPort { drop_miss: true, ..Default::default() }).unwrap();
    assert_eq!((say(&mut raws, all, 3), say(&mut raws, first, 4)), (vec![], vec![]));
    for f in 1..3u16 {
        tables.set_action(&ctx, 0, Some(&Action::default().with_kind(destination::PORT).with_number(8 + f))).unwrap();
        // Function 2 has no station of the other's address, and does not get what is to it.
        let own = if f == 1 { vec![0] } else { vec![] };
        assert_eq!((say(&mut raws, all, 4 + f as u8), say(&mut raws, first, 6 + f as u8)), (vec![usize::from(f) - 1], own), "function {f}");
    }
    ctx.set_flow_port(None).unwrap();
    assert_eq!((say(&mut raws, all, 9), say(&mut raws, first, 10)), (vec![0, 1], vec![0]));
    [[(0, 1), (0, 2)], [(0, 2), (1, 1)]].into_iter().for_each(|ends| b.talk(ends).talk(&b.pair));
    assert_eq!(b.pair.iommu_faults(), 0);
}
