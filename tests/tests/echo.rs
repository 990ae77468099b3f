//! The card answers ARP, neighbour discovery and pings for its functions' addresses, and finds neighbours, with a network stack on the wire that we did not write.
use ferric_abi::codes::{AdminStatus, WrOpcode};

use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::{Mac, QpType};
use ferric_driver::{Address, Config, Context, CqeStatus, Error, QpConfig, SendRequest};
use ferric_hdl::card::counters;
use ferric_sim::{CardConfig, SimDevice, World, WorldConfig};
use ferric_station::Station;
use ferric_tests::pair::{Linked, Pair, Wire};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const CARD_MAC: Mac = Mac([2, 0xfe, 10, 9, 0, 1]);
const STATION_MAC: Mac = Mac([2, 0, 0, 0, 9, 2]);
const CARD: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1)), IpAddr::V6(Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 1))];
/// The station's addresses, with their prefixes.
const STATION: [(IpAddr, u8); 2] = [(IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2)), 16), (IpAddr::V6(Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 2)), 64)];
/// How much faster the station's clock goes than the card's: it asks for one address a second, and a second has 250 million cycles.
const HASTE: u64 = 5000;
/// Cycles in which an answer has to be there.
const PATIENCE: u64 = 200_000;

/// One card, and a station on its wire.
struct Street {
    world: Arc<Mutex<World>>,
    station: Station,
}

impl Street {
    fn new(width: usize) -> Self {
        // The station has timers of its own: no time is skipped.
        let config = WorldConfig { cards: vec![CardConfig { width, ..Default::default() }], skip_idle: false, ..Default::default() };
        let world = Arc::new(Mutex::new(World::new(&config).unwrap()));
        Self { world, station: Station::new(STATION_MAC.0, &STATION) }
    }

    fn open(&self, function: u16) -> Context {
        Context::open(SimDevice::new(&self.world, 0, function), Config::default()).unwrap()
    }

    /// Some cycles, and what they bring to either end.
    fn step(&mut self) {
        let mut world = self.world.lock().unwrap();
        world.run(100);
        let sent: Vec<_> = world.outbox.drain(..).collect();
        sent.into_iter().for_each(|frame| self.station.take(frame));
        for frame in self.station.poll(world.nanos() * HASTE) {
            world.cards[0].receive(frame);
        }
    }

    /// What the card gives back of `payload`, if it does within `cycles`.
    fn ping(&mut self, to: IpAddr, payload: &[u8], cycles: u64) -> Option<Vec<u8>> {
        self.station.ping(to, payload);
        (0..cycles / 100).find_map(|_| {
            self.step();
            self.station.answer()
        })
    }
}

fn own(ip: IpAddr) -> Address {
    Address { ip, mac: CARD_MAC, vlan: None }
}

fn counter(ctx: &Context, name: &str) -> u64 {
    ctx.counters(counters::index(name).expect(name) as u32, 1).unwrap()[0]
}

/// A host that knows nothing of the card finds it and pings it, by IPv4 and IPv6, from no data to a full frame.
fn pings(width: usize) {
    let mut street = Street::new(width);
    let ctx = street.open(0);
    assert_eq!(street.ping(CARD[0], b"nobody", 20_000), None, "no address has been set");
    let mut street = Street { station: Station::new(STATION_MAC.0, &STATION), ..street };
    CARD.iter().enumerate().for_each(|(n, ip)| ctx.set_address(n as u32, own(*ip)).unwrap());
    let before = counter(&ctx, "echo.echo_ping") + counter(&ctx, "echo.echo_ping6");
    let mut answered = 0;
    for ip in CARD {
        let most = if ip.is_ipv4() { 1472 } else { 1452 };
        for len in [56, 0, 1, 17, 1000, most] {
            let payload: Vec<u8> = (0..len).map(|i| (i * 7 + len) as u8).collect();
            assert_eq!(street.ping(ip, &payload, PATIENCE).as_ref(), Some(&payload), "{len} bytes from {ip}");
            answered += 1;
        }
    }
    assert_eq!(counter(&ctx, "echo.echo_ping") + counter(&ctx, "echo.echo_ping6") - before, answered);
    // Without the address there is no answer any more.
    ctx.clear_address(0).unwrap();
    assert_eq!(street.ping(CARD[0], b"gone", 20_000), None);
}

#[test]
fn a_stranger_pings_the_card_w64() {
    pings(64);
}

#[test]
fn a_stranger_pings_the_card_w512() {
    pings(512);
}

/// The card finds its neighbours, and says so of those that do not answer.
#[test]
fn the_card_finds_its_neighbours() {
    let mut street = Street::new(64);
    let ctx = street.open(0);
    CARD.iter().enumerate().for_each(|(n, ip)| ctx.set_address(n as u32, own(*ip)).unwrap());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let life = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                street.step();
            }
        });
        let found = [ctx.resolve(0, STATION[0].0), ctx.resolve(1, STATION[1].0)];
        let nobody = ctx.resolve(0, IpAddr::V4(Ipv4Addr::new(10, 9, 0, 77)));
        done.store(true, Ordering::Relaxed);
        life.join().unwrap();
        for mac in found {
            assert_eq!(mac.unwrap(), STATION_MAC);
        }
        assert!(matches!(nobody, Err(Error::NoNeighbour(_))), "{nobody:?}");
    });
}

/// A function answers for its own addresses only: it cannot take another's, and its reset ends its own.
#[test]
fn functions_keep_their_addresses() {
    let mut street = Street::new(64);
    let (zero, one) = (street.open(0), street.open(1));
    let other = Address { ip: IpAddr::V4(Ipv4Addr::new(10, 9, 0, 3)), mac: Mac([2, 0xfe, 10, 9, 0, 3]), vlan: None };
    zero.set_address(0, own(CARD[0])).unwrap();
    one.set_address(0, other).unwrap();
    for stolen in [own(CARD[0]), Address { mac: Mac([2, 6, 6, 6, 6, 6]), ..own(CARD[0]) }] {
        let refused = one.set_address(1, stolen);
        assert!(matches!(&refused, Err(Error::Admin { status: AdminStatus::InUse, .. })), "{refused:?}");
    }
    // The same address in another VLAN is another address.
    one.set_address(1, Address { vlan: Some(5), ip: CARD[0], ..other }).unwrap();
    // Nobody takes another's MAC address, for whatever IP address.
    let stolen = own(IpAddr::V4(Ipv4Addr::new(10, 9, 0, 4)));
    let refused = one.set_address(2, stolen);
    assert!(matches!(&refused, Err(Error::Admin { status: AdminStatus::InUse, .. })), "{refused:?}");
    for ip in [CARD[0], other.ip] {
        assert!(street.ping(ip, b"here", PATIENCE).is_some(), "{ip}");
    }
    drop(one);
    let one = street.open(1);
    assert_eq!(street.ping(other.ip, b"reset", 20_000), None, "an address outlives its function's reset");
    assert!(street.ping(CARD[0], b"here", PATIENCE).is_some(), "function 0 goes on");
    one.set_address(0, other).unwrap();
    assert!(street.ping(other.ip, b"again", PATIENCE).is_some());
}

/// A flood of pings costs RoCE no frame, and what is too much is dropped and counted.
#[test]
fn a_flood_of_pings_beside_roce() {
    let card = CardConfig { width: 512, ..Default::default() };
    let pair = Pair::new(&WorldConfig { cards: vec![card.clone(), card], ..Default::default() }).unwrap();
    let at = Address { ip: CARD[0], mac: CARD_MAC, vlan: None };
    pair.hosts[1].ctx.set_address(0, at).unwrap();
    // What a station sends, once it knows the card.
    let mut station = Station::new(STATION_MAC.0, &STATION);
    station.ping(CARD[0], &[0x55; 200]);
    let ask = station.poll(0);
    assert_eq!(ask.len(), 1, "an ARP request");
    let mut reply = ask[0].clone();
    reply[..6].copy_from_slice(&STATION_MAC.0);
    reply[6..12].copy_from_slice(&CARD_MAC.0);
    reply[21] = 2;
    let asked: Vec<u8> = reply[22..42].to_vec();
    reply[22..28].copy_from_slice(&CARD_MAC.0);
    reply[28..32].copy_from_slice(&asked[16..20]);
    reply[32..42].copy_from_slice(&asked[..10]);
    station.take(reply);
    let ping = station.poll(1_000_000).pop().expect("a ping");
    let bytes: Vec<u8> = (0..40_000u32).map(|i| (i * 7) as u8).collect();
    let mut linked = Linked::on(pair, &QpConfig { qp_type: QpType::Rc, ..Default::default() }, &Wire::default(), &bytes).unwrap();
    let from = [sge(linked.src.addr(), bytes.len() as u32, linked.src.lkey())];
    let before = linked.pair.hosts[1].ctx.counters(0, counters::names().len() as u32).unwrap();
    let mut sent = 0;
    for round in 0..4 {
        let request =
            SendRequest { wr_id: round, opcode: WrOpcode::Write, payload: Payload::Sges(&from), remote_addr: linked.dst.addr(), rkey: linked.dst.rkey(), imm: 0, signaled: true, solicited: false };
        linked.qps[0].post_send(&request).unwrap();
        for _ in 0..40 {
            let mut world = linked.pair.world();
            (0..3).for_each(|_| world.cards[1].receive(ping.clone()));
            sent += 3;
            world.run(40);
        }
        assert_eq!(linked.wait(0, 400_000).unwrap().status, CqeStatus::Success);
        assert_eq!(linked.dst.to_vec(0, bytes.len()), bytes);
    }
    // What waits is looked at one after the other.
    linked.pair.world().run(400_000);
    let after = linked.pair.hosts[1].ctx.counters(0, counters::names().len() as u32).unwrap();
    let moved = |name: &str| after[counters::index(name).unwrap()] - before[counters::index(name).unwrap()];
    assert_eq!(moved("echo.echo_ping") + moved("echo.echo_limited"), sent);
    assert!(moved("echo.echo_ping") > 0 && moved("echo.echo_limited") > 0);
    assert_eq!((moved("rx.rx_no_buffer"), moved("ackgen.nak_sent")), (0, 0));
    assert_eq!(linked.pair.hosts[0].ctx.counters(counters::index("req_rx.retransmits").unwrap() as u32, 1).unwrap()[0], 0);
}
