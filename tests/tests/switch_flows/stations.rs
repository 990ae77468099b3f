//! Stations of bridge domains decide about received frames: who is reached, who is not, and what a full table does.
use super::frames::numbered;
use super::*;
use ferric_driver::switch::Station;

/// Without entries and rules: the bridge domain's stations say which function a frame is for, and its flood group gets the rest.
fn stations_lead_to_functions_at(width: usize) {
    let mut b = Bench::new(width);
    let ctx = b.pair.hosts[1].ctx.clone();
    let bridges = |b: &Bench, generation| b.tables.decide(&ctx, &FlowPort { drop_miss: true, generation, bridge: true, ..Default::default() }).unwrap();
    let station = |b: &mut Bench, generation, f: usize, port: u16| {
        let mac = b.pair.of(f)[1].mac();
        b.tables.set_station(&ctx, generation, 0, mac, Station::Port(port as u8)).unwrap();
    };
    (0..FUNCTIONS).for_each(|f| station(&mut b, 1, f, PORT_0 + f as u16));
    bridges(&b, 1);
    (0..FUNCTIONS).for_each(|f| b.heard(f));
    moved(&b.counts(), &["port"]);
    // Nobody asks for stations if the port does not bridge.
    b.decide(1, true);
    b.not_heard(0);
    moved(&b.counts(), &["port", "miss"]);
    // In the next generation function 1's address is somebody else's, and function 0's is not there; then it is.
    station(&mut b, 2, 1, PORT_0);
    bridges(&b, 2);
    let foreign = ctx.tunnel_counts().unwrap().wrong_function();
    b.not_heard(1);
    assert!(ctx.tunnel_counts().unwrap().wrong_function() > foreign);
    let misses = b.counts().miss();
    b.not_heard(0);
    assert!(b.counts().miss() > misses);
    moved(&b.counts(), &["port", "miss"]);
    station(&mut b, 2, 0, PORT_0);
    b.heard(0);
    // An entry counts before a station; software has no queue for what the group would get.
    b.actions();
    b.packets_of(2, 0, 0, 2);
    b.not_heard(0);
    moved(&b.counts(), &["port", "miss", "acl"]);
    let mac = b.pair.of(1)[1].mac();
    assert_eq!([0, 0].map(|domain| b.tables.remove_station(&ctx, 2, domain, mac).unwrap()), [true, false]);
    b.tables.set_flood(&ctx, 0, Some(3)).unwrap();
    b.not_heard(1);
    moved(&b.counts(), &["port", "miss", "acl", "exception_no_queue"]);
    b.tables.set_flood(&ctx, 0, None).unwrap();
    station(&mut b, 2, 1, PORT_0 + 1);
    b.heard(1);
    // A driver that comes later finds no station.
    b.reopen(1, 0);
    b.tables = FlowTables::open(&b.pair.hosts[1].ctx).unwrap();
    let misses = b.counts().miss();
    b.tables.decide(&b.pair.hosts[1].ctx, &FlowPort { drop_miss: true, generation: 2, bridge: true, ..Default::default() }).unwrap();
    b.not_heard(1);
    assert!(b.counts().miss() > misses);
}

/// A frame from an address of function 0's sender to `to`, of a type that no entry and no rule knows.
fn to_station(to: Mac, number: u16) -> Vec<u8> {
    let mut frame = numbered(7, number);
    frame[..6].copy_from_slice(&to.0);
    frame
}

/// A table of stations that is full: who finds no room changes nothing, those that stand there can be found, and one that goes makes room.
#[test]
fn stations_fill_their_table() {
    let mut b = Bench::new(64);
    let ctx = b.pair.hosts[1].ctx.clone();
    b.tables.decide(&ctx, &FlowPort { drop_miss: true, bridge: true, ..Default::default() }).unwrap();
    let lines = 4 * b.tables.actions() as u16;
    let mac = |n: u16| Mac([2, 0x55, 0, 0, (n >> 8) as u8, n as u8]);
    // All stations are behind function 0. Every fourth is of the frames' domain, the others are of another one.
    let domain = |n: u16| u16::from(n % 4 != 0);
    let to = Station::Port(PORT_0 as u8);
    let full = (0..2 * lines).find(|n| match b.tables.set_station(&ctx, 0, domain(*n), mac(*n), to) {
        Ok(()) => false,
        Err(Error::Exhausted(_)) => true,
        Err(error) => panic!("{error:?}"),
    });
    let full = full.expect("more stations than lines");
    assert!(full >= lines * 9 / 10, "{full} of {lines}");
    // Every address once: those of the domain are for function 0, everybody else's and the one without room are nobody's.
    let ask = |b: &Bench| {
        let before = b.counts();
        for n in 0..=full {
            b.pair.world().cards[1].receive(to_station(mac(n), n));
            if n % 32 == 0 {
                b.settle();
            }
        }
        b.settle();
        let after = b.counts();
        (after.port() - before.port(), after.miss() - before.miss())
    };
    let of_domain = |until: u16| u64::from(until.div_ceil(4));
    assert_eq!(ask(&b), (of_domain(full), u64::from(full) + 1 - of_domain(full)));
    // A station that is there already moves without room; the next one that is refused is refused again.
    b.tables.set_station(&ctx, 0, domain(0), mac(0), Station::Group(1)).unwrap();
    assert!(matches!(b.tables.set_station(&ctx, 0, domain(full), mac(full), to), Err(Error::Exhausted(_))));
    let unable = b.counts().unable();
    assert_eq!(ask(&b), (of_domain(full) - 1, u64::from(full) + 1 - of_domain(full)));
    assert_eq!(b.counts().unable(), unable + 1);
    // All go, and the last one finds room.
    for n in 0..full {
        assert!(b.tables.remove_station(&ctx, 0, domain(n), mac(n)).unwrap());
    }
    b.tables.set_station(&ctx, 0, 0, mac(full), to).unwrap();
    assert_eq!(ask(&b), (1, full.into()));
}

/// Tenants with the same MAC address in their domains: a frame finds its own domain's station alone, and one that names another tenant's address finds nobody.
fn stations_of_tenants_at(width: usize) {
    let mut b = Bench::new(width);
    for card in 0..2usize {
        let end = |card: usize| (Mac([6, 0, 0, 0, 0, card as u8 + 1]), IpAddr::from([192, 0, 2, card as u8 + 1]));
        let [(own, local), (next_hop, remote)] = [end(card), end(1 - card)];
        b.pair.hosts[card].ctx.set_tunnel(1, &TunnelConfig::new(77, own, local, next_hop, remote)).unwrap();
    }
    let ctx = b.pair.hosts[1].ctx.clone();
    let macs = [0, 1].map(|f: usize| b.pair.of(f)[1].mac());
    // Function 1's tunnel is domain 2. Its address in domain 0, and function 0's in domain 2, lead to the other one.
    for (domain, mac, f) in [(0, macs[0], 0), (2, macs[1], 1), (0, macs[1], 0), (2, macs[0], 1)] {
        b.tables.set_station(&ctx, 3, domain, mac, Station::Port(PORT_0 as u8 + f)).unwrap();
    }
    b.tables.decide(&ctx, &FlowPort { drop_miss: true, generation: 3, bridge: true, ..Default::default() }).unwrap();
    (0..FUNCTIONS).for_each(|f| b.heard(f));
    moved(&b.counts(), &["port"]);
    // A stranger without a tunnel names the tenant's address: that is domain 0's business. Then domain 0 has none, though domain 2 has.
    let before = b.counts();
    b.pair.world().cards[1].receive(to_station(macs[1], 1));
    b.settle();
    assert_eq!(b.counts().port(), before.port() + 1);
    let wrong = ctx.tunnel_counts().unwrap().wrong_function();
    assert!(b.tables.remove_station(&ctx, 3, 0, macs[1]).unwrap());
    b.pair.world().cards[1].receive(to_station(macs[1], 2));
    b.settle();
    assert_eq!((b.counts().port(), b.counts().miss()), (before.port() + 1, before.miss() + 1));
    // The tenant's own packets come as before, until its domain has no station; domain 0's is not asked, nor is its flood group.
    b.heard(1);
    assert!(b.tables.remove_station(&ctx, 3, 2, macs[1]).unwrap());
    b.tables.set_station(&ctx, 3, 0, macs[1], Station::Port(PORT_0 as u8 + 1)).unwrap();
    b.tables.set_flood(&ctx, 0, Some(9)).unwrap();
    let misses = b.counts().miss();
    b.not_heard(1);
    assert!(b.counts().miss() > misses);
    assert_eq!(ctx.tunnel_counts().unwrap().wrong_function(), wrong, "no frame went to a function that it was not for");
    moved(&b.counts(), &["port", "miss"]);
    b.heard(0);
}

#[test]
fn stations_of_tenants() {
    widths(512).into_iter().for_each(stations_of_tenants_at);
}

#[test]
fn stations_lead_to_functions() {
    widths(64).into_iter().for_each(stations_lead_to_functions_at);
}
