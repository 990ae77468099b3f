//! Ultra Ethernet between two whole cards: WRITEs from host memory to host memory, each ended once.
// One copy of the gateware for all programs of this crate.
use ferric_abi::codes::{AdminOpcode, AdminStatus};
use ferric_abi::uet::codes::{NackCode, ReturnCode};
use ferric_driver::types::{Mac, Path};
use ferric_driver::{Access, Config, Context, Error, MemoryRegion, Pd, UetEnd, UetEnds, UetWrite};
use ferric_hdl::card::Card;
use ferric_shared as _;
use ferric_sim::fabric::{Faults, LinkConfig};
use ferric_sim::{CardConfig, SimDevice, World, WorldConfig};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex};

/// Cycles in which something has to end.
const PATIENCE: u64 = 3_000_000;
/// Cycles of a tick, as in hardware, and where time-outs are to come sooner.
const TICK: u64 = 256;
const SHORT_TICK: u64 = 32;

struct Host {
    ctx: Context,
    pd: Pd,
    ends: UetEnds,
}

struct Street {
    world: Arc<Mutex<World>>,
    hosts: [Host; 2],
}

fn mac(n: usize) -> Mac {
    Mac([2, 0, 0, 0, 7, n as u8 + 1])
}

fn ip(n: usize, v6: bool) -> IpAddr {
    if v6 {
        Ipv6Addr::new(0xfd07, 0, 0, 0, 0, 0, 0, n as u16 + 1).into()
    } else {
        Ipv4Addr::new(10, 7, 0, n as u8 + 1).into()
    }
}

/// Peer `v6` of host `n` is the other by that version of IP.
fn befriend(ctx: &Context, n: usize, v6: bool, pd: &Pd) {
    let path = Path { dmac: mac(1 - n), smac: mac(n), dip: ip(1 - n, v6), sip: ip(n, v6), vlan: None, udp_sport: 0, tclass: 0x20, hop_limit: 64, flow_label: 0 };
    ctx.set_uet_peer(v6.into(), &path, pd).unwrap();
}

/// Host `n` begins. Peer 0 of either is the other by IPv4, peer 1 by IPv6.
fn host(world: &Arc<Mutex<World>>, n: usize) -> Host {
    let ctx = Context::open(SimDevice::new(world, n, 0), Config::default()).unwrap();
    assert!(ctx.has_uet());
    ctx.set_station(0, mac(n)).unwrap();
    let pd = ctx.alloc_pd().unwrap();
    [false, true].iter().for_each(|v6| befriend(&ctx, n, *v6, &pd));
    let ends = ctx.uet_ends(4).unwrap();
    Host { ctx, pd, ends }
}

fn street(width: usize, faults: Faults, tick_cycles: u64) -> Street {
    let card = CardConfig { engines: "uet", width, ..Default::default() };
    let config = WorldConfig { cards: vec![card.clone(), card], link: LinkConfig { faults, ..Default::default() }, tick_cycles, ..Default::default() };
    let world = Arc::new(Mutex::new(World::new(&config).unwrap()));
    let hosts = [0, 1].map(|n| host(&world, n));
    Street { world, hosts }
}

impl Street {
    fn region(&self, n: usize, len: usize, access: Access) -> MemoryRegion {
        self.hosts[n].pd.register(vec![0; len].into_boxed_slice(), access).unwrap()
    }

    /// The next end at host `n`.
    fn end(&mut self, n: usize) -> UetEnd {
        let begun = self.world.lock().unwrap().cycle();
        loop {
            if let Some(end) = self.hosts[n].ends.poll() {
                return end;
            }
            let mut world = self.world.lock().unwrap();
            assert!(world.cycle() - begun < PATIENCE, "no end");
            world.run(100);
        }
    }

    fn run(&self, cycles: u64) {
        self.world.lock().unwrap().run(cycles);
    }

    fn cycle(&self) -> u64 {
        self.world.lock().unwrap().cycle()
    }

    /// A WRITE of all of `from` by host `n`.
    fn write(&self, n: usize, peer: u16, tag: u32, len: usize, from: &MemoryRegion, to: &MemoryRegion) {
        let write =
            UetWrite { peer, ordered: tag % 2 == 1, length: len as u32, addr: from.addr(), lkey: from.lkey(), raddr: to.addr() + u64::from(tag % 16) * len as u64, rkey: to.rkey().into(), tag };
        self.hosts[n].ctx.uet_write(&write);
    }

    fn counter(&self, n: usize, name: &str) -> u64 {
        let names = Card::named("uet", 64).unwrap().list().counter_names();
        let index = names.iter().position(|other| other == name).unwrap_or_else(|| panic!("no counter {name} in {names:?}"));
        self.hosts[n].ctx.counters(index as u32, 1).unwrap()[0]
    }
}

fn text(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251 + seed * 17) as u8).collect()
}

const DONE: u8 = ReturnCode::Ok as u8;

fn one_write(width: usize) {
    let mut street = street(width, Faults::default(), TICK);
    let (from, to) = (street.region(0, 0x3000, Access::LOCAL_WRITE), street.region(1, 0x3000, Access { remote_write: true, ..Access::LOCAL_WRITE }));
    let bytes = text(1000, 1);
    from.write(40, &bytes);
    let write = UetWrite { peer: 0, ordered: false, length: 1000, addr: from.addr() + 40, lkey: from.lkey(), raddr: to.addr() + 3, rkey: to.rkey().into(), tag: 0x1234_5678 };
    street.hosts[0].ctx.uet_write(&write);
    assert_eq!(street.end(0), UetEnd { tag: 0x1234_5678, why: 0, code: DONE });
    assert_eq!(to.to_vec(3, 1000), bytes);
    assert_eq!((to.to_vec(0, 3), to.to_vec(1003, 100)), (vec![0; 3], vec![0; 100]), "nothing else was written");
    assert_eq!(["uet.uet_posts", "uet.uet_ends", "uet.uet_sent"].map(|name| street.counter(0, name)), [1, 1, 1]);
    assert_eq!(["uet.uet_placed", "uet.uet_sent"].map(|name| street.counter(1, name)), [1, 0]);
}

#[test]
fn one_write_goes_from_memory_to_memory_w64() {
    one_write(64);
}

#[test]
fn one_write_goes_from_memory_to_memory_w512() {
    one_write(512);
}

/// Messages of many lengths in both directions, RUD and ROD, IPv4 and IPv6, over a link that loses, repeats and reorders: every byte is where it belongs, and nothing else; every end comes once.
fn a_bad_link(width: usize, faults: Faults) {
    const SIZE: usize = 0x4000;
    const COUNT: usize = 24;
    let mut street = street(width, faults, SHORT_TICK);
    let from = [0, 1].map(|n| street.region(n, SIZE, Access::LOCAL_WRITE));
    let to = [0, 1].map(|n| street.region(n, COUNT * SIZE, Access { remote_write: true, ..Access::LOCAL_WRITE }));
    let texts = [0, 1].map(|n| text(SIZE, n));
    (0..2).for_each(|n| from[n].write(0, &texts[n]));
    let lengths = [0, 1, 63, 64, 65, 1000, 4095, 4096, 4097, 8192, 12_289, 16_000];
    let mut expected = [0, 1].map(|_| vec![0; COUNT * SIZE]);
    for first in (0..COUNT).step_by(8) {
        for tag in first..first + 8 {
            for (n, from) in from.iter().enumerate() {
                let (len, at, skip) = (lengths[(tag + n) % lengths.len()], tag * SIZE + tag * 7, tag * 13);
                expected[1 - n][at..at + len].copy_from_slice(&texts[n][skip..skip + len]);
                let write = UetWrite {
                    peer: (tag % 3 == 0).into(),
                    ordered: tag % 2 == 1,
                    length: len as u32,
                    addr: from.addr() + skip as u64,
                    lkey: from.lkey(),
                    raddr: to[1 - n].addr() + at as u64,
                    rkey: to[1 - n].rkey().into(),
                    tag: tag as u32,
                };
                street.hosts[n].ctx.uet_write(&write);
            }
        }
        for n in 0..2 {
            let mut ends: Vec<UetEnd> = (0..8).map(|_| street.end(n)).collect();
            ends.sort_by_key(|end| end.tag);
            let all: Vec<UetEnd> = (first..first + 8).map(|tag| UetEnd { tag: tag as u32, why: 0, code: DONE }).collect();
            assert_eq!(ends, all, "host {n}");
        }
    }
    for (n, (to, expected)) in to.iter().zip(&expected).enumerate() {
        assert!(to.to_vec(0, COUNT * SIZE) == *expected, "memory of host {n}");
        assert_eq!(street.hosts[n].ends.poll(), None);
        assert_eq!(["uet.uet_posts", "uet.uet_ends", "uet.uet_failed", "uet.uet_refused", "uet.uet_stranger"].map(|name| street.counter(n, name)), [COUNT as u64, COUNT as u64, 0, 0, 0]);
    }
}

#[test]
fn a_link_that_loses_costs_no_byte_w64() {
    a_bad_link(64, Faults { loss: 30_000, duplicate: 20_000, reorder: 30_000, corrupt: 0, reorder_cycles: 400 });
}

#[test]
fn a_good_link_loses_nothing_w512() {
    a_bad_link(512, Faults::default());
}

/// What a peer may not write ends with the target's code, and leaves its memory as it was; what may not be read here ends by time-outs. Neither disturbs what comes behind.
#[test]
fn errors_end_with_their_codes() {
    let mut street = street(64, Faults::default(), SHORT_TICK);
    let from = street.region(0, 0x2000, Access::LOCAL_WRITE);
    let (to, closed) = (street.region(1, 0x2000, Access { remote_write: true, ..Access::LOCAL_WRITE }), street.region(1, 0x1000, Access::LOCAL_WRITE));
    let elsewhere = street.hosts[1].ctx.alloc_pd().unwrap();
    let other = elsewhere.register(vec![0; 0x1000].into_boxed_slice(), Access { remote_write: true, ..Access::LOCAL_WRITE }).unwrap();
    from.write(0, &text(0x2000, 5));
    let good = UetWrite { peer: 0, ordered: false, length: 100, addr: from.addr(), lkey: from.lkey(), raddr: to.addr(), rkey: to.rkey().into(), tag: 1 };
    let key = |region: &MemoryRegion| UetWrite { raddr: region.addr(), rkey: region.rkey().into(), ..good };
    let wrong = [
        (UetWrite { rkey: good.rkey ^ 0x80, ..good }, 0, ReturnCode::BadKey),
        (UetWrite { rkey: good.rkey | 1 << 62, ..good }, 0, ReturnCode::BadKey),
        (key(&other), 0, ReturnCode::BadKey),
        (UetWrite { raddr: to.addr() + 0x2000 - 99, ..good }, 0, ReturnCode::BadAddress),
        (key(&closed), 0, ReturnCode::PermissionViolation),
        (UetWrite { lkey: good.lkey ^ 0x80, ..good }, 1, ReturnCode::Null),
    ];
    for (tag, (write, why, code)) in wrong.into_iter().enumerate() {
        street.hosts[0].ctx.uet_write(&UetWrite { tag: 100 + tag as u32, ..write });
        let end = street.end(0);
        assert_eq!((end.tag, end.why), (100 + tag as u32, why));
        if why == 0 {
            assert_eq!(end.code, code as u8, "{tag}");
        }
    }
    assert!(to.to_vec(0, 0x2000).iter().chain(&closed.to_vec(0, 0x1000)).chain(&other.to_vec(0, 0x1000)).all(|byte| *byte == 0));
    assert_eq!((street.counter(1, "uet.uet_refused"), street.counter(0, "uet.uet_failed")), (5, 6));
    assert!(street.counter(0, "uet.uet_unsent") > 0);
    // Nobody is peer 9: it is dropped and counted.
    street.hosts[0].ctx.uet_write(&UetWrite { peer: 9, tag: 9, ..good });
    street.hosts[0].ctx.uet_write(&good);
    assert_eq!(street.end(0), UetEnd { tag: 1, why: 0, code: DONE });
    assert_eq!(to.to_vec(0, 100), from.to_vec(0, 100));
    assert_eq!(street.counter(0, "uet.uet_posts_bad"), 1);
    // What a host may not say of peers.
    let refused = |n: u16, params: &[u32]| match street.hosts[0].ctx.admin(AdminOpcode::SetUetPeer, n.into(), params) {
        Err(Error::Admin { status, .. }) => status,
        other => panic!("{other:?}"),
    };
    let line = |valid: u32, hops: u32, tag: u32, pd: u32| -> Vec<u32> { [vec![0; 13], vec![hops | tag << 9 | valid << 10 | pd << 16]].concat() };
    assert_eq!(
        [refused(16, &line(1, 9, 0, 0)), refused(3, &line(1, 0, 0, 0)), refused(3, &line(1, 9, 1, 0)), refused(3, &line(1, 9, 0, 200))],
        [AdminStatus::BadId, AdminStatus::BadParameter, AdminStatus::BadParameter, AdminStatus::BadState]
    );
    let other = Context::open(SimDevice::new(&street.world, 0, 1), Config::default()).unwrap();
    assert!(matches!(other.clear_uet_peer(0), Err(Error::Admin { status: AdminStatus::Denied, .. })));
    assert!(matches!(other.uet_ends(4), Err(Error::Admin { status: AdminStatus::Denied, .. })));
    // A peer that has gone is a stranger: its frames are nobody's.
    street.hosts[1].ctx.clear_uet_peer(0).unwrap();
    street.hosts[0].ctx.uet_write(&UetWrite { tag: 2, ..good });
    assert_eq!((street.end(0).why, street.counter(1, "uet.uet_stranger") > 0), (1, true));
}

/// A domain that a peer's packets may touch is not destroyed under it: its number would be another's, with that one's memory.
#[test]
fn a_domain_stays_as_long_as_its_peers() {
    let street = street(64, Faults::default(), SHORT_TICK);
    let ctx = &street.hosts[0].ctx;
    // Peer 6 with the domain of each number, for whether there is one.
    let line = |pd: u32| -> Vec<u32> { [vec![0; 13], vec![9 | 1 << 10 | pd << 16]].concat() };
    let there = || -> Vec<u32> {
        let all = (0..16).filter(|pd| ctx.admin(AdminOpcode::SetUetPeer, 6, &line(*pd)).is_ok()).collect();
        ctx.clear_uet_peer(6).unwrap();
        all
    };
    let before = there();
    let pd = ctx.alloc_pd().unwrap();
    let with = there();
    let [number] = with.iter().filter(|pd| !before.contains(pd)).copied().collect::<Vec<_>>()[..] else { panic!("{before:?} {with:?}") };
    let end = || match ctx.admin(AdminOpcode::DestroyPd, number, &[]) {
        Ok(_) => None,
        Err(Error::Admin { status, .. }) => Some(status),
        Err(other) => panic!("{other}"),
    };
    // Two peers, one of them set twice and then given to another domain.
    for peer in [5, 7, 5] {
        ctx.admin(AdminOpcode::SetUetPeer, peer, &line(number)).unwrap();
    }
    assert_eq!(end(), Some(AdminStatus::InUse));
    ctx.admin(AdminOpcode::SetUetPeer, 5, &line(before[0])).unwrap();
    assert_eq!(end(), Some(AdminStatus::InUse));
    ctx.clear_uet_peer(7).unwrap();
    ctx.clear_uet_peer(7).unwrap();
    assert_eq!((end(), there()), (None, before));
    // The driver's own is gone already.
    std::mem::forget(pd);
}

/// Why the messages of a peer end whose PDCs were ended at the other side.
const NO_SUCH_PDC: (u8, u8) = (3, NackCode::InvalidPdc as u8);

/// The driver of host 0 is killed in the middle of traffic in both directions, three times, and another opens its function: the reset takes a bounded time, nothing of the old life is sent or written behind it,
/// and none of its messages ends in the next, which works at once. The other host's messages end, each once, with a code that says why.
fn three_lives(width: usize) {
    const LIVES: usize = 3;
    const COUNT: u32 = 8;
    const LEN: usize = 12_000;
    const SMALL: usize = 500;
    /// Cycles of a reset, in which no time-out of a PDC can be over for the last time: that takes 63 times 200 ticks.
    const RESET: u64 = 50_000;
    /// And of small messages in both directions.
    const SOON: u64 = 20_000;
    let mut street = street(width, Faults::default(), SHORT_TICK);
    let open = Access { remote_write: true, ..Access::LOCAL_WRITE };
    let other = Context::open(SimDevice::new(&street.world, 0, 1), Config::default()).unwrap();
    let theirs = [street.region(1, LEN, Access::LOCAL_WRITE), street.region(1, 16 * LEN, open)];
    theirs[0].write(0, &text(LEN, 99));
    // What a driver that was killed had is not taken down.
    let mut graves: Vec<(Host, [MemoryRegion; 2], Vec<u8>)> = Vec::new();
    let mut refused = 0;
    for life in 0..LIVES {
        let own = [street.region(0, LEN, Access::LOCAL_WRITE), street.region(0, 16 * LEN, open)];
        let bytes = text(LEN, life);
        own[0].write(0, &bytes);
        let tags = 1000 * life as u32;
        // Small messages, RUD and ROD, both ways: the life has begun.
        let begun = street.cycle();
        for tag in tags..tags + 2 {
            street.write(0, 0, tag, SMALL, &own[0], &theirs[1]);
            street.write(1, 0, tag, SMALL, &theirs[0], &own[1]);
        }
        for n in 0..2 {
            let mut ends = [street.end(n), street.end(n)];
            ends.sort_by_key(|end| end.tag);
            assert_eq!(ends, [tags, tags + 1].map(|tag| UetEnd { tag, why: 0, code: DONE }), "host {n}, life {life}");
        }
        let took = street.cycle() - begun;
        assert!(took < SOON, "{took} cycles in life {life}");
        for (to, from) in [(&theirs[1], &bytes), (&own[1], &text(LEN, 99))] {
            for tag in tags..tags + 2 {
                assert!(to.to_vec((tag % 16) as usize * SMALL, SMALL) == from[..SMALL]);
            }
        }
        // Old lives stay dead.
        for (host, [_, to], found) in &mut graves {
            assert_eq!(host.ends.poll(), None);
            assert!(to.to_vec(0, 16 * LEN) == *found, "memory of an earlier life has changed");
        }
        if life == LIVES - 1 {
            std::mem::forget(own);
            break;
        }
        // Much is under way.
        for tag in tags + 16..tags + 16 + COUNT {
            street.write(0, 0, tag, LEN, &own[0], &theirs[1]);
            street.write(1, 0, tag, LEN, &theirs[0], &own[1]);
        }
        street.run(1500 + 1000 * life as u64);
        let begun = street.cycle();
        let next = host(&street.world, 0);
        let took = street.cycle() - begun;
        println!("reset and all that a life begins with: {took} cycles");
        assert!(took < RESET, "{took} cycles");
        assert_eq!(other.alloc_pd().map(drop).map_err(|e| e.to_string()), Ok(()));
        let mut old = std::mem::replace(&mut street.hosts[0], next);
        let sent = street.counter(0, "uet.uet_sent");
        let ended = std::iter::from_fn(|| old.ends.poll()).inspect(|end| assert_eq!((end.why, end.code), (0, DONE))).count();
        assert!(ended < COUNT as usize, "traffic was under way");
        let found = own[1].to_vec(0, 16 * LEN);
        graves.push((old, own, found));
        // The other's messages end, each once.
        let mut ends: Vec<UetEnd> = (0..COUNT).map(|_| street.end(1)).collect();
        ends.sort_by_key(|end| end.tag);
        assert_eq!(ends.iter().map(|end| end.tag).collect::<Vec<_>>(), (tags + 16..tags + 16 + COUNT).collect::<Vec<_>>());
        assert!(ends.iter().all(|end| [(0, DONE), NO_SUCH_PDC].contains(&(end.why, end.code))), "{ends:?}");
        refused += ends.iter().filter(|end| end.why != 0).count();
        // Nothing of the old life was sent in the next one, in which nothing has been written yet.
        street.run(20_000);
        assert_eq!(street.counter(0, "uet.uet_sent"), sent, "packets with payload");
        assert_eq!((street.hosts[0].ends.poll(), street.hosts[1].ends.poll()), (None, None));
    }
    assert!(refused > 2, "{refused}");
    assert!(street.counter(0, "uet.uet_pdc_refused") > 0 && street.counter(0, "uet.uet_pdc_failed") > 4);
    std::mem::forget(graves);
}

#[test]
fn three_lives_with_traffic_under_way_w64() {
    three_lives(64);
}

#[test]
fn three_lives_with_traffic_under_way_w512() {
    three_lives(512);
}

/// A peer that is taken away in the middle of traffic: when the command is done all messages to it have ended, and those to another peer go on. When it is a peer again it works at once.
#[test]
fn a_peer_that_is_taken_away_ends_at_once() {
    const COUNT: u32 = 8;
    const LEN: usize = 9000;
    let mut street = street(64, Faults::default(), SHORT_TICK);
    let open = Access { remote_write: true, ..Access::LOCAL_WRITE };
    let own = [street.region(0, LEN, Access::LOCAL_WRITE), street.region(0, 16 * LEN, open)];
    let theirs = [street.region(1, LEN, Access::LOCAL_WRITE), street.region(1, 16 * LEN, open)];
    own[0].write(0, &text(LEN, 7));
    theirs[0].write(0, &text(LEN, 8));
    for peer in 0..2 {
        street.write(0, peer, 0, 40, &own[0], &theirs[1]);
        street.write(1, peer, 1, 40, &theirs[0], &own[1]);
        assert_eq!([street.end(0), street.end(1)].map(|end| (end.why, end.code)), [(0, DONE); 2]);
    }
    // Even tags by IPv4, odd ones by IPv6: they are RUD and ROD.
    for tag in 0..2 * COUNT {
        street.write(0, (tag % 2) as u16, tag, LEN, &own[0], &theirs[1]);
    }
    street.write(1, 0, 100, LEN, &theirs[0], &own[1]);
    // With the first that ends the others are under way, in whatever order the card has taken them.
    let mut ends = vec![street.end(0)];
    street.hosts[0].ctx.clear_uet_peer(0).unwrap();
    ends.extend(std::iter::from_fn(|| street.hosts[0].ends.poll()));
    let gone = ends.iter().filter(|end| end.why == 4).count();
    assert!(gone > 0 && ends.iter().filter(|end| end.tag % 2 == 0).count() == COUNT as usize, "{ends:?}");
    ends.extend((ends.len()..2 * COUNT as usize).map(|_| street.end(0)));
    ends.sort_by_key(|end| end.tag);
    assert_eq!(ends.iter().map(|end| end.tag).collect::<Vec<_>>(), (0..2 * COUNT).collect::<Vec<_>>());
    for end in &ends {
        assert!((end.why, end.code) == (0, DONE) || end.tag % 2 == 0 && (end.why, end.code) == (4, 0), "{end:?}");
    }
    assert!((1..2 * COUNT).step_by(2).all(|tag| theirs[1].to_vec(tag as usize * LEN, LEN) == text(LEN, 7)));
    // It is a stranger, and then a peer again.
    street.run(2000);
    befriend(&street.hosts[0].ctx, 0, false, &street.hosts[0].pd);
    let end = street.end(1);
    assert!([(0, DONE), NO_SUCH_PDC].contains(&(end.why, end.code)), "{end:?}");
    street.write(0, 0, 20, 40, &own[0], &theirs[1]);
    assert_eq!(street.end(0), UetEnd { tag: 20, why: 0, code: DONE });
    // The other's PDC by ROD had nothing to do: it finds out by its next message, and the one behind that opens another.
    street.write(1, 0, 21, 40, &theirs[0], &own[1]);
    assert_eq!(street.end(1), UetEnd { tag: 21, why: NO_SUCH_PDC.0, code: NO_SUCH_PDC.1 });
    street.write(1, 0, 23, 40, &theirs[0], &own[1]);
    assert_eq!(street.end(1), UetEnd { tag: 23, why: 0, code: DONE });
    // A peer that is written anew is another one: the same holds.
    street.write(0, 1, 3, LEN, &own[0], &theirs[1]);
    street.run(500);
    befriend(&street.hosts[0].ctx, 0, true, &street.hosts[0].pd);
    assert_eq!(street.end(0), UetEnd { tag: 3, why: 4, code: 0 });
}
