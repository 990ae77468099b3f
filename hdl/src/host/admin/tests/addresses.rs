//! SET_ADDRESS and RESOLVE: what is refused, whose lines are touched, and in which order. The block that answers works meanwhile, so after every write the table must say nothing that is
//! half one entry and half another.

use super::card::Event;
use super::commands::{line, words};
use super::{functions, Bench, SIZES};
use ferric_abi::codes::AdminOpcode::*;
use ferric_abi::codes::AdminStatus::{self, *};
use ferric_abi::context::{AddressCtx, NeighbourCtx};
use ferric_abi::csr::{space::ADDRESS, ADDRESSES, NEIGHBOUR_LINE, STATIONS};

const FUNCTIONS: u32 = 1 << SIZES.functions;
const MAC: u64 = 0x02ff_0a00_0001;
const LAST: u8 = 5;
/// RESOLVE's p4.
const LOOK: u32 = 0;
const ASK: u32 = 1;
const AGAIN: u32 = 3;
/// States of a search.
const NONE: u32 = 0;
const ASKED: u32 = 1;
const KNOWN: u32 = 2;

fn v4(last: u8) -> AddressCtx {
    AddressCtx::default().with_ip(0x0a00_0000 | u128::from(last)).with_mac(MAC).with_valid(true)
}
fn v6(last: u8) -> AddressCtx {
    AddressCtx::default().with_ip(0xfd00_0000_1111_2222_3333_4444_5555_0000 | u128::from(last)).with_mac(MAC).with_ipv6(true).with_valid(true)
}
fn set(b: &mut Bench, status: AdminStatus, f: usize, id: u32, address: AddressCtx) {
    b.expect(status, f, SetAddress, id, &words::<6>(&address.0));
}
fn address(b: &Bench, f: u32, id: u32) -> AddressCtx {
    AddressCtx(line(&b.card, ADDRESS, f * ADDRESSES + id))
}
fn search(b: &Bench, f: u32) -> NeighbourCtx {
    NeighbourCtx(line(&b.card, ADDRESS, NEIGHBOUR_LINE + f))
}
/// State and MAC address.
fn resolve(b: &mut Bench, f: usize, id: u32, ip: u128, p4: u32) -> (u32, u64) {
    let r = b.expect(Ok, f, Resolve, id, &seek(ip, p4));
    (r[0], u64::from(r[1]) | u64::from(r[2]) << 32)
}
fn seek(ip: u128, p4: u32) -> [u32; 5] {
    let [a, b, c, d] = words(&ip.to_le_bytes());
    [a, b, c, d, p4]
}
/// What the block does when the neighbour answers.
fn answer(b: &mut Bench, f: u32, mac: u64) {
    let known = search(b, f).with_mac(mac).with_state(KNOWN as u8);
    for (word, value) in words::<6>(&known.0).into_iter().enumerate() {
        b.card.set(ADDRESS, NEIGHBOUR_LINE + f, word as u8, value);
    }
}

pub fn all(b: &mut Bench) {
    let start = b.card.log.len();
    (0..FUNCTIONS as usize).for_each(|f| functions::reset(b, f));
    parameters(b);
    unique(b);
    foreign_macs(b);
    order(b);
    searches(b);
    isolation(b);
    resets(b);
    let exists = |line: u32| line < FUNCTIONS * ADDRESSES || (NEIGHBOUR_LINE..NEIGHBOUR_LINE + FUNCTIONS).contains(&line);
    assert!(b.card.log[start..].iter().all(|e| !matches!(e, Event::Control { space: ADDRESS, line, .. } if !exists(*line))), "lines that do not exist");
}

fn parameters(b: &mut Bench) {
    let start = b.card.log.len();
    for id in [ADDRESSES, ADDRESSES + 1, u32::MAX] {
        set(b, BadId, 1, id, v4(1));
        set(b, BadId, 1, id, AddressCtx::default());
        b.expect(BadId, 1, Resolve, id, &seek(0x0a00_0002, ASK));
    }
    let bad = [
        v4(1).with_mac(0),
        v4(1).with_mac(MAC | 1 << 40),
        v4(1).with_mac(0xffff_ffff_ffff),
        v4(1).with_ip(0),
        v4(1).with_ip(0xe000_0001),
        v4(1).with_ip(0xf000_0001),
        v4(1).with_ip(0xffff_ffff),
        v4(1).with_ip(0x0a00_0001 | 1 << 32),
        v4(1).with_ip(0x0a00_0001 | 1 << 64),
        v4(1).with_ip(0x0a00_0001 | 1 << 127),
        v6(1).with_ip(0),
        v6(1).with_ip(0xff02 << 112 | 1),
        v6(1).with_ip(0xff << 120),
        v4(1).with_vid(1),
        v4(1).with_vid(4095),
        v4(1).with_vlan(true).with_vid(4095),
    ];
    for address in bad {
        set(b, BadParameter, 1, 0, address);
    }
    assert_eq!(b.card.written(ADDRESS, start), [], "what is refused changes nothing");
    // The last ones that are good, each at both ends of the numbers. Reserved bits stay zero.
    let good = [
        v4(1).with_mac(1),
        v4(1).with_mac(1 << 32),
        v4(1).with_mac(0xfeff_ffff_ffff),
        v4(1).with_ip(0xdfff_ffff),
        v4(1).with_ip(1),
        v6(1).with_ip(1),
        v6(1).with_ip(1 << 64),
        v6(1).with_ip(0xfeff << 112 | u128::MAX >> 16),
        v4(1).with_vlan(true).with_vid(4094),
        v4(1).with_vlan(true).with_vid(0),
    ];
    for id in [0, ADDRESSES - 1] {
        for good in good {
            set(b, Ok, 1, id, good.with_rsvd0(1));
            assert_eq!(address(b, 1, id), good);
        }
        set(b, Ok, 1, id, good[0].with_valid(false));
        assert!(!address(b, 1, id).valid());
        // What is not there may go again.
        set(b, Ok, 1, id, AddressCtx::default());
    }
    b.expect(BadState, 1, Resolve, 0, &seek(0x0a00_0002, ASK));
    set(b, Ok, 1, 0, v4(1));
    set(b, Ok, 1, 1, v6(1));
    b.expect(BadState, 1, Resolve, 2, &seek(0x0a00_0002, ASK));
    b.expect(BadParameter, 1, Resolve, 0, &seek(0x0a00_0002, 4));
    let (start, him) = (b.card.log.len(), v4(2).ip());
    for ip in [0, 0xe000_0000, 0xffff_ffff, 0xfd << 120 | 1, him | 1 << 32, him | 1 << 64] {
        b.expect(BadParameter, 1, Resolve, 0, &seek(ip, ASK));
    }
    for ip in [0, 0xff02 << 112 | 1, 0xff << 120] {
        b.expect(BadParameter, 1, Resolve, 1, &seek(ip, ASK));
    }
    assert_eq!(b.card.written(ADDRESS, start), []);
    for (id, ip) in [(0, 0xdfff_ffff), (1, u128::MAX >> 8 | 0xfe << 120)] {
        assert_eq!(resolve(b, 1, id, ip, ASK), (ASKED, 0));
    }
    functions::reset(b, 1);
}

/// An IP address of a network is one number of one function's.
fn unique(b: &mut Bench) {
    let last = FUNCTIONS as usize - 1;
    // The first and the last line of the table.
    set(b, Ok, 0, 0, v4(1));
    set(b, Ok, last, ADDRESSES - 1, v6(2));
    for (f, id) in [(0, 1), (1, 0), (last, ADDRESSES - 1)] {
        set(b, InUse, f, id, v4(1));
        set(b, InUse, f, id, v4(1).with_mac(MAC ^ 1));
        set(b, InUse, f, id, v4(1).with_mac(MAC ^ 1 << 32));
    }
    for (f, id) in [(0, 0), (last, ADDRESSES - 2)] {
        set(b, InUse, f, id, v6(2));
    }
    assert_eq!((address(b, 0, 0), address(b, last as u32, ADDRESSES - 1)), (v4(1), v6(2)), "both stay");
    // One bit of the address, the version or the network makes another of it.
    let others = [v4(1).with_ip(0x0a00_0003), v4(1).with_ipv6(true), v4(1).with_vlan(true), v4(1).with_vlan(true).with_vid(7), v4(1).with_vlan(true).with_vid(8)];
    for (id, other) in others.into_iter().enumerate() {
        set(b, Ok, 1, id as u32, other);
        set(b, InUse, 2, 0, other);
    }
    for bit in [0, 32, 64, 96] {
        set(b, Ok, 2, 1, v6(2).with_ip(v6(2).ip() ^ 1 << bit));
    }
    // Its own may be said again, moved to another MAC address, and is free for others when it goes.
    let start = b.card.log.len();
    set(b, Ok, 0, 0, v4(1));
    set(b, Ok, last, ADDRESSES - 1, v6(2));
    assert_eq!(b.card.written(ADDRESS, start), [], "the same again is no change");
    for mac in [MAC + 1, MAC ^ 1 << 33, MAC] {
        set(b, Ok, 0, 0, v4(1).with_mac(mac));
        assert_eq!(address(b, 0, 0), v4(1).with_mac(mac));
    }
    set(b, Ok, 0, 0, v4(1).with_valid(false));
    set(b, Ok, 1, 15, v4(1));
    set(b, InUse, 0, 0, v4(1));
    functions::reset(b, 1);
    set(b, Ok, 0, 0, v4(1));
    for f in [0, 2, last] {
        functions::reset(b, f);
    }
}

fn order(b: &mut Bench) {
    let (f, id) = (2, 5);
    let at = f * ADDRESSES + id;
    set(b, Ok, f as usize, id, v4(1));
    let start = b.card.log.len();
    set(b, Ok, f as usize, id, v6(1).with_vlan(true).with_vid(3));
    let order: Vec<_> = b.card.written(ADDRESS, start).iter().map(|(line, word, value)| (*line, *word, *value == 0)).collect();
    assert_eq!(order, [(at, LAST, true), (at, 0, false), (at, 1, false), (at, 2, false), (at, 3, false), (at, 4, false), (at, LAST, false)]);
    // Of a search likewise; and it is asked last.
    let start = b.card.log.len();
    assert_eq!(resolve(b, f as usize, id, v6(9).ip(), ASK), (ASKED, 0));
    let at = NEIGHBOUR_LINE + f;
    let writes = b.card.written(ADDRESS, start);
    assert!(writes.iter().all(|w| w.0 == at));
    assert_eq!(writes.iter().map(|w| w.1).collect::<Vec<_>>(), [LAST, 0, 1, 2, 3, LAST, LAST]);
    let states: Vec<u32> = writes.iter().filter(|w| w.1 == LAST).map(|w| w.2).collect();
    assert_eq!(states, [0, id << 16, id << 16 | ASKED << 24]);
    functions::reset(b, f as usize);
}

fn searches(b: &mut Bench) {
    const THEIRS: u64 = 0x5251_0000_0002;
    let (him, her) = (v4(2).ip(), v4(3).ip());
    set(b, Ok, 1, 3, v4(1));
    set(b, Ok, 1, 4, v4(7));
    set(b, Ok, 1, 5, v6(7));
    assert_eq!(resolve(b, 1, 3, him, LOOK), (NONE, 0), "nobody has asked");
    assert_eq!(search(b, 1), NeighbourCtx::default().with_ip(him).with_source(3));
    // Every ask is a request, and nothing else is.
    let writes = |b: &mut Bench, p4| {
        let start = b.card.log.len();
        let outcome = resolve(b, 1, 3, him, p4);
        (outcome, b.card.written(ADDRESS, start).len())
    };
    assert_eq!(writes(b, LOOK), ((NONE, 0), 0));
    for _ in 0..2 {
        assert_eq!(writes(b, ASK), ((ASKED, 0), 1));
        assert_eq!(writes(b, LOOK), ((ASKED, 0), 0));
    }
    assert_eq!(search(b, 1), NeighbourCtx::default().with_ip(him).with_source(3).with_state(ASKED as u8));
    answer(b, 1, THEIRS);
    // What is known is not asked for, unless again.
    for p4 in [LOOK, ASK, AGAIN & !ASK] {
        assert_eq!(writes(b, p4), ((KNOWN, THEIRS), 0));
    }
    assert_eq!(writes(b, AGAIN), ((ASKED, 0), 1));
    assert_eq!(search(b, 1).mac(), THEIRS & 0xffff_ffff, "the last word is written anew, with the MAC address's high half");
    answer(b, 1, THEIRS + 1);
    assert_eq!(writes(b, LOOK), ((KNOWN, THEIRS + 1), 0));
    // Another IP address or another source: what is known is of no use.
    assert_eq!(resolve(b, 1, 3, her, LOOK), (NONE, 0));
    assert_eq!(resolve(b, 1, 3, her, ASK), (ASKED, 0));
    answer(b, 1, THEIRS);
    assert_eq!(resolve(b, 1, 4, her, LOOK), (NONE, 0));
    assert_eq!(search(b, 1), NeighbourCtx::default().with_ip(her).with_source(4).with_mac(THEIRS & 0xffff_ffff));
    assert_eq!(resolve(b, 1, 5, v6(8).ip(), ASK), (ASKED, 0));
    assert_eq!(search(b, 1).ip(), v6(8).ip());
    for bit in [0, 32, 64, 96] {
        answer(b, 1, THEIRS);
        let other = search(b, 1).ip() ^ 1 << bit;
        assert_eq!(resolve(b, 1, 5, other, ASK), (ASKED, 0));
        assert_eq!(search(b, 1), NeighbourCtx::default().with_ip(other).with_source(5).with_state(ASKED as u8).with_mac(THEIRS & 0xffff_ffff));
    }
    assert_eq!(resolve(b, 1, 5, v6(8).ip(), ASK), (ASKED, 0));
    // With an address goes what was found from it, and only that.
    answer(b, 1, THEIRS);
    set(b, Ok, 1, 4, v4(6));
    set(b, Ok, 1, 3, AddressCtx::default());
    assert_eq!(resolve(b, 1, 5, v6(8).ip(), LOOK), (KNOWN, THEIRS));
    set(b, Ok, 1, 5, v6(7).with_vlan(true));
    assert_eq!(resolve(b, 1, 5, v6(8).ip(), LOOK), (NONE, 0));
    assert_eq!(resolve(b, 1, 5, v6(8).ip(), ASK), (ASKED, 0));
    set(b, Ok, 1, 5, AddressCtx::default());
    assert_eq!(search(b, 1).state(), NONE as u8);
    b.expect(BadState, 1, Resolve, 5, &seek(v6(8).ip(), LOOK));
    functions::reset(b, 1);
}

/// No function answers with another's MAC address; its own it may have as a station, or not.
fn foreign_macs(b: &mut Bench) {
    let station = |mac: u64| [mac as u32, (mac >> 32) as u32 | 1 << 16];
    for (f, id) in [(2, 0), (2, STATIONS - 1), (0, 1), (3, 3)] {
        b.expect(Ok, f, SetStation, id, &station(MAC + 1));
        let start = b.card.log.len();
        for other in (0..FUNCTIONS as usize).filter(|o| *o != f) {
            set(b, InUse, other, 5, v4(70).with_mac(MAC + 1));
        }
        assert_eq!(b.card.written(ADDRESS, start), [], "what is refused changes nothing");
        for (n, near) in [MAC, (MAC + 1) | (1 << 47), (MAC + 1) | (1 << 31)].into_iter().enumerate() {
            set(b, Ok, 1, 6 + n as u32, v4(72 + n as u8).with_mac(near));
        }
        set(b, Ok, f, 5, v4(71).with_mac(MAC + 1));
        functions::reset(b, f);
        set(b, Ok, 1, 5, v4(70).with_mac(MAC + 1));
        functions::reset(b, 1);
    }
}

/// A function's commands write its own lines, whatever the numbers are, and tell of no other's search.
fn isolation(b: &mut Bench) {
    for f in 0..FUNCTIONS {
        set(b, Ok, f as usize, 0, v4(10 + f as u8));
        resolve(b, f as usize, 0, v4(99).ip(), ASK);
        answer(b, f, 0x1000 + u64::from(f));
    }
    for f in 0..FUNCTIONS {
        assert_eq!(resolve(b, f as usize, 0, v4(99).ip(), LOOK), (KNOWN, 0x1000 + u64::from(f)));
        let start = b.card.log.len();
        for id in [0, 1, ADDRESSES - 1] {
            set(b, Ok, f as usize, id, v4(100 + f as u8 * 20 + id as u8));
            resolve(b, f as usize, id, v4(98).ip(), ASK);
        }
        set(b, Ok, f as usize, 1, AddressCtx::default());
        let own = |line: u32| line / ADDRESSES == f || line == NEIGHBOUR_LINE + f;
        assert!(b.card.written(ADDRESS, start).iter().all(|w| own(w.0)), "function {f}");
    }
    // A function other than 0 reads no line of the table.
    b.expect(BadParameter, 1, QueryObject, 0, &[ADDRESS.into(), 0]);
    let seen = b.expect(Ok, 0, QueryObject, ADDRESSES, &[ADDRESS.into(), 0]);
    assert_eq!(seen[..6], words::<6>(&address(b, 1, 0).0));
    assert_eq!(seen[6..8], [0; 2], "the line has no more words");
    b.expect(BadId, 0, QueryObject, 0, &[ADDRESS.into(), 6]);
}

/// `isolation` has left each function with addresses and a search.
fn resets(b: &mut Bench) {
    let counts = |b: &Bench, f: u32| (0..ADDRESSES).filter(|id| address(b, f, *id).valid()).count();
    for f in 0..FUNCTIONS {
        let others: Vec<(usize, NeighbourCtx)> = (f + 1..FUNCTIONS).map(|o| (counts(b, o), search(b, o))).collect();
        assert_eq!((counts(b, f), search(b, f).state()), (2, ASKED as u8));
        functions::reset(b, f as usize);
        assert_eq!((counts(b, f), search(b, f).state()), (0, NONE as u8));
        assert_eq!((f + 1..FUNCTIONS).map(|o| (counts(b, o), search(b, o))).collect::<Vec<_>>(), others, "those of others stay");
        b.expect(BadState, f as usize, Resolve, 0, &seek(v4(98).ip(), LOOK));
        // It begins anew, although the IP address is the one that was sought before.
        set(b, Ok, f as usize, ADDRESSES - 1, v4(100 + f as u8));
        assert_eq!(resolve(b, f as usize, ADDRESSES - 1, v4(98).ip(), LOOK), (NONE, 0));
        functions::reset(b, f as usize);
    }
}
