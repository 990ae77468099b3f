//! Own addresses, and neighbours that the card asks for: what the driver tells the card, how often it asks, what it remembers, and what it says when nobody answers.
#[allow(dead_code, reason = "this test wants no queues")]
mod card;

use card::Card;
use ferric_abi::codes::AdminStatus;
use ferric_abi::context::AddressCtx;
use ferric_driver::{Address, Config, Context, Error, Mac, Search};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

const OURS: Mac = Mac([2, 0xfe, 10, 0, 0, 1]);
const THEIRS: Mac = Mac([0x52, 0x54, 0, 0x12, 0x34, 0x56]);
const THEIRS_AS_NUMBER: u64 = 0x5254_0012_3456;
/// Short, for neighbours that do not answer.
const BRIEF: Search = Search { asks: 3, wait: Duration::from_millis(30) };

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn number(text: &str) -> u128 {
    match ip(text) {
        IpAddr::V4(a) => u32::from(a).into(),
        IpAddr::V6(a) => a.into(),
    }
}

fn own(text: &str) -> Address {
    Address { ip: ip(text), mac: OURS, vlan: None }
}

fn open() -> (Arc<Card>, Context) {
    let card = Card::with_network();
    let ctx = Context::open(card.clone(), Config::default()).unwrap();
    (card, ctx)
}

#[test]
fn addresses_are_told_as_the_card_has_them() {
    let (card, ctx) = open();
    ctx.set_address(0, own("10.0.0.1")).unwrap();
    ctx.set_address(15, Address { vlan: Some(4094), ..own("fd00::1:2") }).unwrap();
    let line = AddressCtx::default().with_mac(0x02fe_0a00_0001).with_valid(true);
    card.network(|n| {
        assert_eq!(n.own[&0], line.with_ip(0x0a00_0001));
        assert_eq!(n.own[&15], line.with_ip(0xfd << 120 | 0x1_0002).with_ipv6(true).with_vlan(true).with_vid(4094));
        assert_eq!(n.commands, 2);
    });
    assert_eq!(ctx.addresses(), [(0, own("10.0.0.1")), (15, Address { vlan: Some(4094), ..own("fd00::1:2") })]);
    let (first, last) = ((0, 0, own("10.0.0.1")), (0, 15, Address { vlan: Some(4094), ..own("fd00::1:2") }));
    assert_eq!(ctx.all_addresses().unwrap(), [first, last], "what the card has is what was told");
    // The same again is no command.
    ctx.set_address(0, own("10.0.0.1")).unwrap();
    card.network(|n| assert_eq!(n.commands, 2));
    assert!(matches!(ctx.set_address(1, own("10.0.0.1")), Err(Error::Admin { status: AdminStatus::InUse, .. })));
    assert!(matches!(ctx.set_address(16, own("10.0.0.9")), Err(Error::Invalid(_))));
    assert!(matches!(ctx.set_address(1, Address { vlan: Some(4095), ..own("10.0.0.9") }), Err(Error::Invalid(_))));
    ctx.clear_address(0).unwrap();
    ctx.clear_address(0).unwrap();
    assert_eq!(ctx.addresses().len(), 1);
    card.network(|n| assert_eq!(n.own.len(), 1));
    ctx.set_address(1, own("10.0.0.1")).unwrap();
}

/// An address brings its MAC address, which goes with the last one that has it; what somebody asked for stays.
#[test]
fn mac_addresses_are_told_before_anybody_hears_of_them() {
    let (card, ctx) = open();
    let mac = |last: u8| Mac([2, 0xfe, 10, 0, 0, last]);
    let at = |ip: &str, last: u8| Address { mac: mac(last), ..own(ip) };
    let heard = |wanted: &[u8]| {
        let mut all: Vec<Mac> = ctx.stations().into_iter().map(|(_, mac)| mac).collect();
        all.sort_by_key(|mac| mac.0);
        assert_eq!(all, wanted.iter().map(|last| mac(*last)).collect::<Vec<_>>());
        card.network(|n| assert_eq!(n.stations.len(), all.len()));
    };
    ctx.set_address(0, at("10.0.0.1", 1)).unwrap();
    ctx.set_address(1, at("10.0.0.2", 1)).unwrap();
    heard(&[1]);
    ctx.set_address(0, at("10.0.0.1", 2)).unwrap();
    heard(&[1, 2]);
    ctx.set_address(1, at("10.0.0.2", 2)).unwrap();
    heard(&[2]);
    ctx.set_station(3, mac(9)).unwrap();
    ctx.set_address(2, at("10.0.0.3", 9)).unwrap();
    ctx.clear_address(2).unwrap();
    heard(&[2, 9]);
    // What is refused leaves nothing behind: another function's MAC address, an IP address that is not free.
    card.network(|n| n.taken.push(0x02fe_0a00_0008));
    assert!(matches!(ctx.set_address(3, at("10.0.0.4", 8)), Err(Error::Admin { status: AdminStatus::InUse, .. })));
    assert!(matches!(ctx.set_station(1, mac(8)), Err(Error::Admin { status: AdminStatus::InUse, .. })));
    assert!(matches!(ctx.set_address(3, at("10.0.0.1", 7)), Err(Error::Admin { status: AdminStatus::InUse, .. })));
    heard(&[2, 9]);
    // There are four.
    ctx.set_address(3, at("10.0.0.4", 3)).unwrap();
    ctx.set_address(4, at("10.0.0.5", 4)).unwrap();
    assert!(matches!(ctx.set_address(5, at("10.0.0.6", 5)), Err(Error::Invalid(_))));
    assert!(matches!(ctx.set_station(4, mac(5)), Err(Error::Invalid(_))));
    assert!(matches!(ctx.clear_station(4), Err(Error::Invalid(_))));
    ctx.clear_station(3).unwrap();
    ctx.set_address(5, at("10.0.0.6", 5)).unwrap();
    heard(&[2, 3, 4, 5]);
    (0..6).for_each(|number| ctx.clear_address(number).unwrap());
    heard(&[]);
}

#[test]
fn neighbours_are_found_and_remembered() {
    let (card, ctx) = open();
    for them in ["10.0.0.2", "10.0.0.3", "fd00::2"] {
        card.network(|n| n.neighbours.insert(number(them), (THEIRS_AS_NUMBER, 1, 2)));
    }
    ctx.set_address(3, own("10.0.0.1")).unwrap();
    ctx.set_address(4, own("fd00::1")).unwrap();
    for (source, them) in [(3, "10.0.0.2"), (4, "fd00::2"), (3, "10.0.0.3")] {
        assert_eq!(ctx.resolve(source, ip(them)).unwrap(), THEIRS);
    }
    card.network(|n| assert_eq!(n.asked, [(3, number("10.0.0.2")), (4, number("fd00::2")), (3, number("10.0.0.3"))]));
    // Nobody asks again, though the card's one search is another's by now.
    let before = card.network(|n| n.commands);
    for (source, them) in [(3, "10.0.0.2"), (4, "fd00::2"), (3, "10.0.0.3")] {
        assert_eq!(ctx.resolve(source, ip(them)).unwrap(), THEIRS);
    }
    assert_eq!(card.network(|n| n.commands), before);
    // What was found from an address goes with it.
    ctx.set_address(3, Address { vlan: Some(7), ..own("10.0.0.1") }).unwrap();
    card.network(|n| n.neighbours.insert(number("10.0.0.2"), (1, 1, 0)));
    assert_eq!(ctx.resolve(3, ip("10.0.0.2")).unwrap(), Mac([0, 0, 0, 0, 0, 1]));
    // Own addresses are known.
    assert_eq!(ctx.resolve(3, ip("10.0.0.1")).unwrap(), OURS);
    card.network(|n| assert_eq!(n.asked.len(), 4));
}

/// Requests and answers get lost.
#[test]
fn it_is_asked_three_times() {
    let (card, ctx) = open();
    card.network(|n| n.neighbours.insert(number("10.0.0.2"), (THEIRS_AS_NUMBER, 3, 1)));
    ctx.set_address(0, own("10.0.0.1")).unwrap();
    assert_eq!(ctx.resolve_within(0, ip("10.0.0.2"), &BRIEF).unwrap(), THEIRS);
    card.network(|n| assert_eq!(n.asked.len(), 3));
}

#[test]
fn nobody_answers_and_that_is_said() {
    let (card, ctx) = open();
    ctx.set_address(0, own("10.0.0.1")).unwrap();
    let start = Instant::now();
    let e = ctx.resolve_within(0, ip("10.0.0.2"), &BRIEF).unwrap_err();
    let took = start.elapsed();
    assert!(took >= 3 * BRIEF.wait && took < Duration::from_secs(5), "{took:?}");
    assert!(matches!(e, Error::NoNeighbour(a) if a == ip("10.0.0.2")));
    assert!(e.to_string().contains("10.0.0.2") && e.to_string().contains("ARP"), "{e}");
    let (asked, commands) = card.network(|n| (n.asked.len(), n.commands));
    assert_eq!(asked, 3);
    assert!(commands < 100, "{commands} looks are too many");
    // For a while it is not asked again, and nobody waits.
    let start = Instant::now();
    assert!(matches!(ctx.resolve(0, ip("10.0.0.2")), Err(Error::NoNeighbour(_))));
    assert!(start.elapsed() < Duration::from_millis(500));
    card.network(|n| assert_eq!(n.asked.len(), 3));
    // Another own address is another network.
    ctx.set_address(1, own("10.0.0.7")).unwrap();
    card.network(|n| n.neighbours.insert(number("10.0.0.2"), (THEIRS_AS_NUMBER, 1, 1)));
    assert_eq!(ctx.resolve(1, ip("10.0.0.2")).unwrap(), THEIRS);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let (card, ctx) = open();
    assert!(matches!(ctx.resolve(0, ip("10.0.0.2")), Err(Error::Invalid(_))), "there is no address to ask from");
    ctx.set_address(0, own("10.0.0.1")).unwrap();
    assert!(matches!(ctx.resolve(0, ip("fd00::2")), Err(Error::Invalid(_))));
    card.network(|n| assert_eq!(n.asked, []));
    // A card without the engine says so, and is asked nothing.
    let plain = Context::open(Card::new(false), Config::default()).unwrap();
    assert!(!plain.has_addresses() && ctx.has_addresses());
    assert!(matches!(plain.all_addresses(), Err(Error::Unsupported(_))));
    for e in [plain.set_address(0, own("10.0.0.1")).unwrap_err(), plain.clear_address(0).unwrap_err(), plain.resolve(0, ip("10.0.0.2")).unwrap_err()] {
        assert!(matches!(e, Error::Unsupported(_)), "{e}");
    }
}

/// The card has one search for a function: threads take turns, and each gets its own answer.
#[test]
fn threads_do_not_take_each_others_answers() {
    let (card, ctx) = open();
    ctx.set_address(0, own("10.0.0.1")).unwrap();
    for n in 2..10u64 {
        card.network(|net| net.neighbours.insert(number(&format!("10.0.0.{n}")), (n, 1, 3)));
    }
    std::thread::scope(|s| {
        for n in (2..10u8).chain(2..10) {
            let ctx = ctx.clone();
            s.spawn(move || assert_eq!(ctx.resolve(0, IpAddr::from([10, 0, 0, n])).unwrap(), Mac([0, 0, 0, 0, 0, n])));
        }
    });
    card.network(|n| assert_eq!(n.asked.len(), 8, "two threads that seek the same ask once"));
}
