//! Frames of tenants that are not RoCE, by their raw queue pairs: each tenant of a card has its own, they leave in its tunnel and come by it, and nobody else gets one.
use super::*;
use ferric_abi::codes::AdminStatus;
use ferric_abi::switch::station::ALL_DOMAIN_BITS;
use ferric_abi::switch::{destination, Action, FlowKey};
use ferric_driver::switch::{FlowPort, FlowTables, Packets, Sender};
use ferric_driver::{Error, Start};
use ferric_tests::raw::{raw, Raw, RECEIVES};

/// A type that nobody knows.
const TYPE: [u8; 2] = [0x88, 0xb5];
/// Frames of a turn.
const TURN: usize = 10;
/// Cycles in which what was sent has come, or will not.
const SETTLED: u64 = 6_000;

/// Frame `n` of a sender to the other card's functions, of any length, padded as a MAC pads.
fn frame(function: usize, from: usize, n: usize) -> Vec<u8> {
    let mut frame = [&mac(1 - from).0[..], &mac(from).0, &TYPE, &[function as u8, from as u8, n as u8]].concat();
    let length = [60, 61, 64, 127, 128, 129, 300, 1000, 1514][n % 9];
    frame.extend((frame.len()..length).map(|i| pattern((function * 2 + from) as u64, n * 31 + i)));
    frame
}

struct Ends {
    /// By function and card.
    raws: Vec<[Raw; 2]>,
}

impl Ends {
    fn new(b: &Bench) -> Self {
        Self { raws: (0..FUNCTIONS).map(|f| [0, 1].map(|card: usize| raw(&b.pair.of(f)[card]).unwrap().listening())).collect() }
    }

    /// What functions of card 1 have got.
    fn heard(&mut self, b: &Bench) -> Vec<Vec<Vec<u8>>> {
        b.pair.world().run(SETTLED);
        self.raws.iter_mut().map(|raws| raws[1].heard()).collect()
    }

    /// Who of card 1 has got the frame, which comes off the wire.
    fn who(&mut self, b: &Bench, inner: &[u8], outer: Vec<u8>) -> Vec<usize> {
        b.pair.world().cards[1].receive(outer);
        let heard = self.heard(b);
        assert!(heard.iter().flatten().all(|frame| frame == inner));
        (0..FUNCTIONS).filter(|f| !heard[*f].is_empty()).collect()
    }
}

/// All functions send to each other from both cards, and RoCE goes on beside them.
fn everybody_speaks(b: &mut Bench, ends: &mut Ends) {
    let frames = tap(&b.pair, false);
    for n in 0..TURN {
        for f in 0..FUNCTIONS {
            (0..2).for_each(|card| ends.raws[f][card].send(&b.pair, &frame(f, card, n)));
        }
        if n == TURN / 2 {
            side_by_side(b);
        }
    }
    b.pair.world().run(SETTLED);
    for f in 0..FUNCTIONS {
        for card in 0..2 {
            let want: Vec<Vec<u8>> = (0..TURN).map(|n| frame(f, 1 - card, n)).collect();
            assert!(ends.raws[f][card].heard() == want, "function {f} of card {card} has got what its peer has sent, and nothing else");
        }
    }
    // Each in its tunnel, and the host's in none.
    let heard = std::mem::take(&mut *frames.lock().unwrap());
    for (f, vni) in VNIS.iter().enumerate() {
        let outer = if f == 0 { 0 } else { OUTER };
        let own: Vec<_> = heard.iter().filter(|frame| frame.len() > outer + 15 && frame[outer + 12..outer + 14] == TYPE && frame[outer + 14] == f as u8).collect();
        assert_eq!(own.len(), TURN);
        assert!(f == 0 || own.iter().all(|frame| frame[VNI_AT..VNI_AT + 3] == vni.to_be_bytes()[1..]));
    }
    b.pair.world().links[0].set_hook(None);
    side_by_side(b);
}

/// What is right but for where it comes from reaches nobody, or him alone whose it is then, and counts once.
fn strangers(b: &mut Bench, ends: &mut Ends) {
    let frames = tap(&b.pair, true);
    ends.raws[1][0].send(&b.pair, &frame(1, 0, 0));
    b.pair.world().run(2_000);
    let one = frames.lock().unwrap().remove(0);
    b.pair.world().links[0].set_hook(None);
    let inner = frame(1, 0, 0);
    let to_other = |last: u8| {
        let mut frame = inner.clone();
        frame[5] = last;
        frame
    };
    let stranger = {
        let mut frame = one.clone();
        frame[29] ^= 8;
        inside(&frame, &inner)
    };
    // A station of tenant 2 alone.
    b.pair.of(2)[1].ctx.set_station(3, Mac([2, 0, 0, 0, 7, 200])).unwrap();
    // [VNI unknown, remote unknown, wrong function, miss, stranger, other station, no group, no raw queue, malformed], and who gets it.
    type Attempt = (&'static str, Vec<u8>, Vec<u8>, [u64; 9], Vec<usize>);
    let attempts: Vec<Attempt> = vec![
        ("as it was", inner.clone(), one.clone(), [0; 9], vec![1]),
        ("a stranger's in the underlay", inner.clone(), stranger, [0, 1, 0, 0, 0, 0, 0, 0, 0], vec![]),
        ("a VNI of nobody", inner.clone(), with_vni(&one, 0x66), [1, 0, 0, 0, 0, 0, 0, 0, 0], vec![]),
        ("tenant 2's VNI, where the address is, too", inner.clone(), with_vni(&one, VNIS[2]), [0; 9], vec![2]),
        ("to all, in tenant 2's VNI", [&[0xff; 6], &inner[6..]].concat(), with_vni(&inside(&one, &[&[0xff; 6], &inner[6..]].concat()), VNIS[2]), [0; 9], vec![2]),
        ("to a station of tenant 2, in tenant 1's VNI", to_other(200), inside(&one, &to_other(200)), [0, 0, 0, 0, 0, 1, 0, 0, 0], vec![]),
        ("to the same in tenant 2's VNI", to_other(200), with_vni(&inside(&one, &to_other(200)), VNIS[2]), [0; 9], vec![2]),
        ("to the same without a tunnel", to_other(200), to_other(200), [0, 0, 0, 0, 0, 1, 0, 0, 0], vec![]),
        ("to a station of nobody", to_other(201), inside(&one, &to_other(201)), [0, 0, 0, 0, 0, 1, 0, 0, 0], vec![]),
        ("without a tunnel", inner.clone(), inner.clone(), [0; 9], vec![0]),
    ];
    for (what, inner, outer, causes, who) in attempts {
        let before = b.causes();
        assert_eq!(ends.who(b, &inner, outer), who, "{what}");
        let after = b.causes();
        assert_eq!(std::array::from_fn::<u64, 9, _>(|n| after[n] - before[n]), causes, "{what}");
    }
    b.pair.of(2)[1].ctx.clear_station(3).unwrap();
}

/// A full receive queue, none that is named, and one that has gone: each counts, the others get theirs, and RoCE goes on.
fn nobody_listens(b: &mut Bench, ends: &mut Ends) {
    const MORE: usize = 5;
    let before = ["resp.no_recv", "resp.raw_no_queue"].map(|name| b.count(name));
    for n in 0..RECEIVES + MORE {
        ends.raws[1][0].send(&b.pair, &frame(1, 0, n));
    }
    ends.raws[2][0].send(&b.pair, &frame(2, 0, 1));
    side_by_side(b);
    let heard = ends.heard(b);
    assert!(heard[1] == (0..RECEIVES).map(|n| frame(1, 0, n)).collect::<Vec<_>>() && heard[2] == [frame(2, 0, 1)] && heard[0].is_empty());
    let counts = |b: &Bench| ["resp.no_recv", "resp.raw_no_queue"].map(|name| b.count(name));
    assert_eq!(counts(b), [before[0] + MORE as u64, before[1]]);
    // Not named.
    let own = &b.pair.of(1)[1].ctx;
    own.set_raw_queue(None).unwrap();
    let speak = |b: &Bench, ends: &mut Ends| {
        (1..3).for_each(|f| ends.raws[f][0].send(&b.pair, &frame(f, 0, 3)));
        let heard = ends.heard(b);
        [0, 1, 2].map(|f| heard[f].len())
    };
    assert_eq!(speak(b, ends), [0, 0, 1]);
    b.pair.of(1)[1].ctx.set_raw_queue(Some(&ends.raws[1][1].qp)).unwrap();
    assert_eq!(speak(b, ends), [0, 1, 1]);
    assert_eq!(counts(b)[1], before[1] + 1);
    // Gone, and another one made, which has not been named: its number may be the same.
    ends.raws[1][1] = raw(&b.pair.of(1)[1]).unwrap().listening();
    b.pair.of(1)[1].ctx.set_raw_queue(None).unwrap();
    assert_eq!(speak(b, ends), [0, 0, 1]);
    b.pair.of(1)[1].ctx.set_raw_queue(Some(&ends.raws[1][1].qp)).unwrap();
    assert_eq!(speak(b, ends), [0, 1, 1]);
    assert_eq!(counts(b)[1], before[1] + 2);
    // The host's is its own.
    b.pair.hosts[1].ctx.set_raw_queue(None).unwrap();
    assert_eq!(speak(b, ends), [0, 1, 1]);
    b.pair.hosts[1].ctx.set_raw_queue(Some(&ends.raws[0][1].qp)).unwrap();
    side_by_side(b);
}

/// A path MTU that the underlay has no room for is refused in words, one at a time and in a batch; a smaller one is not.
fn path_mtus(b: &Bench) {
    b.pair.hosts[1].ctx.set_tunnel(1, &TunnelConfig { underlay_mtu: Some(1500), ..tunnel(1, 1) }).unwrap();
    let host = &b.pair.of(1)[1];
    let cq = host.cq(16).unwrap();
    let rts = RtsAttr { sq_psn: 0, timeout: 0, retry_cnt: 0, rnr_retry: 0, max_rd_atomic: 0 };
    for (mtu, fits) in [(Mtu::M4096, false), (Mtu::M2048, false), (Mtu::M1024, true), (Mtu::M256, true)] {
        let rtr = RtrAttr { mtu, dest_qpn: 5, rq_psn: 0, min_rnr_timer: 1, repeat_nak: false, max_dest_rd_atomic: 1, path: Some(path(1)) };
        let said = |result: Result<(), Error>| match result {
            Ok(()) => assert!(fits),
            Err(Error::Invalid(why)) => assert!(!fits && why.contains("path MTU"), "{why}"),
            Err(other) => panic!("{other:?}"),
        };
        let mut qps = [0; 2].map(|_| host.pd.create_qp(&QpConfig::default(), &cq, &cq).unwrap());
        qps[0].to_init(Access::ALL).unwrap();
        said(qps[0].to_rtr(Access::ALL, &rtr));
        let mut batch = host.ctx.batch();
        batch.start(&mut qps[1], &Start::Connected { access: Access::ALL, rtr, rts }).unwrap();
        batch.post().wait().into_iter().for_each(said);
    }
    b.pair.hosts[1].ctx.set_tunnel(1, &tunnel(1, 1)).unwrap();
}

/// Whoever may have no raw queue pair makes none, and none is left without a tunnel.
fn who_may(b: &mut Bench, ends: &mut Ends) {
    let status = |result: Result<(), Error>| match result {
        Err(Error::Admin { status, .. }) => status,
        other => panic!("{other:?}"),
    };
    let host = &b.pair.hosts[1].ctx;
    let plain = TunnelConfig { raw: false, ..tunnel(1, 2) };
    assert_eq!(status(host.set_tunnel(2, &plain)), AdminStatus::InUse);
    assert_eq!(status(host.clear_tunnel(2)), AdminStatus::InUse);
    // Nobody sees what others get.
    assert_eq!(status(b.pair.of(2)[1].ctx.set_promiscuous_queue(&ends.raws[2][1].qp)), AdminStatus::BadParameter);
    assert_eq!(status(b.pair.of(2)[1].ctx.set_raw_queue(Some(&ends.raws[1][1].qp))), AdminStatus::BadId);
    // A reset takes it away, and what comes then is nobody's.
    b.pair.reopen(1, 2).unwrap();
    b.pair.of(2)[1].ctx.set_address(0, Address { ip: ip(1), mac: mac(1), vlan: None }).unwrap();
    let before = b.count("resp.raw_no_queue");
    ends.raws[2][0].send(&b.pair, &frame(2, 0, 4));
    b.pair.world().run(SETTLED);
    assert_eq!(b.count("resp.raw_no_queue"), before + 1);
    let host = &b.pair.hosts[1].ctx;
    host.set_tunnel(2, &plain).unwrap();
    assert_eq!(status(raw(&b.pair.of(2)[1]).map(drop)), AdminStatus::Denied);
    assert_eq!(status(b.pair.of(2)[1].ctx.set_raw_queue(None)), AdminStatus::Denied);
    host.set_tunnel(2, &tunnel(1, 2)).unwrap();
    let mut again = raw(&b.pair.of(2)[1]).unwrap().listening();
    ends.raws[2][0].send(&b.pair, &frame(2, 0, 5));
    b.pair.world().run(SETTLED);
    assert!(again.heard() == [frame(2, 0, 5)]);
    // What was made with the driver that has left is void.
    std::mem::forget((b.tenants.pop(), ends.raws.pop()));
}

fn speak(bodies: [Body; 2], width: usize) {
    let mut b = Bench::new(bodies, width);
    let mut ends = Ends::new(&b);
    everybody_speaks(&mut b, &mut ends);
    strangers(&mut b, &mut ends);
    nobody_listens(&mut b, &mut ends);
    path_mtus(&b);
    who_may(&mut b, &mut ends);
    assert_eq!(b.pair.iommu_faults(), 0);
}

#[test]
fn raw_queues_of_tenants() {
    widths(64).into_iter().for_each(|width| speak([Body::Gateware; 2], width));
}

#[test]
fn raw_queues_of_twins() {
    speak([Body::Twin; 2], 64);
    speak([Body::Twin, Body::Gateware], 64);
}

/// A function that may send nothing sends nothing, whatever its queue pair says, and is counted; the tables say which function's raw queue pair a frame is for.
#[test]
fn tables_decide_about_raw_queues() {
    let mut b = Bench::of("switch", [Body::Gateware; 2], 64);
    let mut ends = Ends::new(&b);
    everybody_speaks(&mut b, &mut ends);
    // Closed, and open again for its own address.
    let ctx = b.pair.hosts[0].ctx.clone();
    let mut senders = FlowTables::open(&ctx).unwrap();
    senders.set_sender(&ctx, 1, Some(&Sender::default())).unwrap();
    let frames = tap(&b.pair, false);
    (1..3).for_each(|f| (0..4).for_each(|n| ends.raws[f][0].send(&b.pair, &frame(f, 0, n))));
    let heard = ends.heard(&b);
    assert_eq!([0, 1, 2].map(|f| heard[f].len()), [0, 0, 4]);
    assert_eq!(frames.lock().unwrap().len(), 4, "nothing of it leaves");
    assert_eq!((ctx.sender_counts(1).unwrap().spoof_mac(), ctx.sender_counts(1).unwrap().verified()), (4, 0));
    b.pair.world().links[0].set_hook(None);
    senders.set_sender(&ctx, 1, Some(&Sender { macs: vec![mac(0)], addresses: vec![ip(0)], roce: true, ..Default::default() })).unwrap();
    everybody_speaks(&mut b, &mut ends);
    // Frames of tenant 1's tunnel are for tenant 1, tenant 2, nobody, software, by the action.
    let ctx = b.pair.hosts[1].ctx.clone();
    let mut tables = FlowTables::open(&ctx).unwrap();
    let [key, mask] = [1 + 1, ALL_DOMAIN_BITS].map(|domain| FlowKey::default().with_domain(domain));
    let to = |kind: u8, number: u16| Action::default().with_kind(kind).with_number(number);
    tables.set_rule(&ctx, 0, Packets::Others, [&key, &mask], 0, 0).unwrap();
    let actions =
        [(to(destination::PORT, 9), Some(1)), (to(destination::PORT, 10), Some(2)), (to(destination::PORT, 11), None), (to(destination::DROP, 0), None), (to(destination::EXCEPTION, 0), Some(0))];
    tables.set_action(&ctx, 0, Some(&actions[0].0)).unwrap();
    tables.decide(&ctx, &FlowPort { drop_miss: true, ..Default::default() }).unwrap();
    for (n, (action, who)) in actions.into_iter().enumerate() {
        tables.set_action(&ctx, 0, Some(&action)).unwrap();
        let before = b.causes();
        (1..3).for_each(|f| ends.raws[f][0].send(&b.pair, &frame(f, 0, n)));
        let heard = ends.heard(&b);
        let want = [0, 1, 2].map(|f| if who == Some(f) { vec![frame(1, 0, n)] } else { vec![] });
        assert!(heard == want, "{n}: {:?}", heard.iter().map(Vec::len).collect::<Vec<_>>());
        // Function 3 has no station of that address.
        let others = b.causes().iter().sum::<u64>() - before.iter().sum::<u64>();
        assert_eq!(others, u64::from(n == 2), "{n}");
    }
    let c = ctx.flow_counts().unwrap();
    assert_eq!((c.port(), c.acl(), c.software(), c.miss()), (3, 1, 1, 5), "tenant 2's own frames are a miss");
    ctx.set_flow_port(None).unwrap();
    everybody_speaks(&mut b, &mut ends);
    assert_eq!(b.pair.iommu_faults(), 0);
}
