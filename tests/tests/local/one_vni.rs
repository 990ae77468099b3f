//! Two functions of a card in one VNI are in one network: they reach each other without the wire, and the functions of the other card that have the VNI through it. A third, in another VNI, has the same addresses as
//! one of them, and neither hears nor reaches them.
use super::*;
use ferric_abi::codes::AdminStatus;
use ferric_driver::{Error, Search};
use std::time::Duration;

const VNI: u32 = 100;
const OTHER_VNI: u32 = 101;
/// A type that nobody knows.
pub(crate) const TYPE: [u8; 2] = [0x88, 0xb5];

fn tunnel(card: usize, function: usize) -> TunnelConfig {
    let end = |card: usize| (Mac([6, 0, 0, 0, 0, card as u8 + 1]), IpAddr::from([192, 0, 2, card as u8 + 1]));
    let [(own, local), (next_hop, remote)] = [end(card), end(1 - card)];
    TunnelConfig { raw: true, ..TunnelConfig::new(if function == 3 { OTHER_VNI } else { VNI }, own, local, next_hop, remote) }
}

/// Functions 1 and 2 of both cards are tenants of one VNI; function 3 is called like function 1.
pub(crate) struct Bench {
    pub(crate) pair: Pair,
}

impl Bench {
    fn new(width: usize) -> Self {
        Self::of(pair_of(width, 4))
    }

    pub(crate) fn of(pair: Pair) -> Self {
        for card in 0..2 {
            (1..4).for_each(|f| pair.hosts[card].ctx.set_tunnel(f as u16, &tunnel(card, f)).unwrap());
            let (third, (mac, ip)) = (&pair.of(3)[card].ctx, Self::name_of(&pair, card, 1));
            third.clear_address(0).unwrap();
            third.clear_station(0).unwrap();
            third.set_station(0, mac).unwrap();
            third.set_address(0, Address { ip, mac, vlan: None }).unwrap();
        }
        Self { pair }
    }

    pub(crate) fn name_of(pair: &Pair, card: usize, function: usize) -> (Mac, IpAddr) {
        let host = &pair.of(if function == 3 { 1 } else { function })[card];
        (host.mac(), host.ip(false))
    }

    pub(crate) fn host(&self, card: usize, function: usize) -> &Host {
        &self.pair.of(function)[card]
    }

    /// Of two functions: card and number.
    pub(crate) fn talk(&self, ends: [(usize, usize); 2]) -> Talk<'_> {
        Talk::called(ends.map(|(card, f)| self.host(card, f)), ends.map(|(card, f)| Self::name_of(&self.pair, card, f)))
    }
}

fn functions_of_a_vni_at(width: usize) {
    let b = Bench::new(width);
    // Inside, and between the cards; the third beside them with the same addresses.
    let mut inside = [b.talk([(0, 1), (0, 2)]), b.talk([(0, 1), (0, 1)])];
    let mut outside = [b.talk([(0, 1), (1, 1)]), b.talk([(0, 2), (1, 2)]), b.talk([(0, 1), (1, 2)]), b.talk([(0, 3), (1, 3)])];
    let (sent, before) = (left(&b.pair), counts(&b.pair));
    inside.iter_mut().for_each(|talk| talk.talk(&b.pair));
    let after = counts(&b.pair);
    assert_eq!((left(&b.pair), after.wrapped()), (sent, before.wrapped()), "nothing has left the card");
    assert!(after.local() - before.local() >= 2 * 2 * (10 + 2 + 1 + 5));
    for _ in 0..2 {
        outside.iter_mut().for_each(Talk::say);
        inside.iter_mut().for_each(Talk::say);
        outside.iter_mut().for_each(|talk| talk.heard(&b.pair));
        inside.iter_mut().for_each(|talk| talk.heard(&b.pair));
    }
    let after = counts(&b.pair);
    assert_eq!([after.wrong_function(), after.vni_unknown(), after.local_late(), count(&b.pair, "req_rx.retransmits")], [0; 4]);
    // The third function names the queue pair of the first, to whose addresses it has every right in its own network: nobody gets it.
    let mut across = b.talk([(0, 3), (0, 1)]);
    across.say();
    b.pair.world().run(SETTLED);
    assert!(across.cqs.iter_mut().all(|cq| cq.poll().is_none()));
    assert!((0..2).all(|side| across.memory[side].to_vec(LEN, 2 * LEN) == vec![0; 2 * LEN]));
    inside.iter_mut().chain(&mut outside).for_each(|talk| talk.talk(&b.pair));
    assert_eq!(b.pair.iommu_faults(), 0);
}

#[test]
fn functions_of_a_vni_reach_each_other() {
    functions_of_a_vni_at(512);
}

#[test]
fn functions_of_a_vni_reach_each_other_w64() {
    functions_of_a_vni_at(64);
}

/// Groups, searches for neighbours, and raw frames.
#[test]
fn groups_and_raw_frames_of_a_vni() {
    let b = Bench::new(64);
    let group: IpAddr = "239.129.3.4".parse().unwrap();
    let mut members: Vec<Member> = [(0, 1), (0, 2), (1, 2), (0, 3)].map(|(card, f)| Member::named(b.host(card, f), Bench::name_of(&b.pair, card, f), Some(group))).into();
    members.iter_mut().for_each(Member::listen);
    members[0].send(&b.pair, group, 0x5a);
    b.pair.world().run(SETTLED);
    assert_eq!(members.iter_mut().map(|member| member.got(0x5a)).collect::<Vec<_>>(), [true, true, true, false]);
    // Neighbours: what function 2 has, function 1 finds and function 3 does not.
    let second = Bench::name_of(&b.pair, 0, 2);
    assert_eq!(b.host(0, 1).ctx.resolve(0, second.1).unwrap(), second.0);
    let shortly = Search { wait: Duration::from_micros(50), ..Default::default() };
    assert!(b.host(0, 3).ctx.resolve_within(0, second.1, &shortly).is_err());
    // Raw frames: to all, to one of them off the wire, and to one on the card.
    let ends = [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)];
    let mut raws: Vec<_> = ends.iter().map(|(card, f)| raw(b.host(*card, *f)).unwrap().listening()).collect();
    let mut hears = |from: usize, to: [u8; 6], n: u8| {
        let (card, f) = ends[from];
        let frame = [&to[..], &Bench::name_of(&b.pair, card, f).0 .0, &TYPE, &[n; 200]].concat();
        raws[from].send(&b.pair, &frame);
        b.pair.world().run(SETTLED);
        let heard: Vec<_> = raws.iter_mut().map(|raw| raw.heard().into_iter().filter(|got| got[12..14] == TYPE).collect::<Vec<_>>()).collect();
        assert!(heard.iter().flatten().all(|got| *got == frame), "{n}");
        (0..ends.len()).filter(|n| heard[*n].len() == 1).map(|n| ends[n]).collect::<Vec<_>>()
    };
    let all = [0xff; 6];
    assert_eq!(hears(0, all, 1), [(0, 2), (1, 1), (1, 2)], "to all of the network but the sender");
    assert_eq!(hears(1, all, 2), [(0, 1), (1, 1), (1, 2)]);
    assert_eq!(hears(2, all, 3), [(1, 3)]);
    assert_eq!(hears(0, Bench::name_of(&b.pair, 0, 2).0 .0, 4), [(0, 2)], "on the card");
    assert_eq!(hears(1, Bench::name_of(&b.pair, 0, 1).0 .0, 5), [(0, 1)], "and not to the other that has this address");
    assert_eq!(hears(4, Bench::name_of(&b.pair, 0, 2).0 .0, 6), [(0, 2)], "off the wire, to the one that has not the tunnel of the VNI itself");
    assert_eq!(hears(3, Bench::name_of(&b.pair, 0, 1).0 .0, 7), [(0, 1)]);
    assert_eq!(hears(5, Bench::name_of(&b.pair, 0, 1).0 .0, 8), [(0, 3)]);
    assert_eq!(hears(4, all, 9), [(0, 1), (0, 2)], "the twin sends raw frames to the wire alone");
    // No frame is kept: there is room for as many as before.
    for n in 0..40 {
        assert_eq!(hears(1, all, n), [(0, 1), (1, 1), (1, 2)]);
    }
    assert_eq!(count(&b.pair, "resp.no_recv"), 0);
}

/// Who leaves a network is not reached any more, and who is still in it goes on; the function that the others have joined stays as it is.
#[test]
fn networks_come_and_go() {
    let b = Bench::new(64);
    let host = &b.pair.hosts[0].ctx;
    let mut talks = [b.talk([(0, 1), (0, 2)]), b.talk([(0, 1), (1, 1)]), b.talk([(0, 2), (1, 2)])];
    talks.iter_mut().for_each(|talk| talk.talk(&b.pair));
    let refused = |result: Result<(), Error>| assert!(matches!(result, Err(Error::Admin { status: AdminStatus::InUse, .. })), "{result:?}");
    refused(host.clear_tunnel(1));
    refused(host.set_tunnel(1, &TunnelConfig { vni: 7, ..tunnel(0, 1) }));
    refused(host.set_tunnel(2, &TunnelConfig { lenient: true, ..tunnel(0, 2) }));
    // Into the network of function 3, where nobody is that function 2 speaks with.
    host.set_tunnel(2, &tunnel(0, 3)).unwrap();
    let before = counts(&b.pair);
    talks[0].say();
    b.pair.world().run(SETTLED);
    assert!(talks[0].cqs.iter_mut().all(|cq| cq.poll().is_none()));
    // Function 3, which function 2 now shares a network with, is called like function 1: it gets packets to a queue pair that is not its own.
    assert!(counts(&b.pair).wrong_function() > before.wrong_function());
    assert!((0..2).all(|side| talks[0].memory[side].to_vec(LEN, LEN)[0] != pattern(talks[0].said * 2 + 1 - side as u64, 0)));
    talks[1].talk(&b.pair);
    // Back again: what was lost is sent again.
    host.set_tunnel(2, &tunnel(0, 2)).unwrap();
    talks[0].heard(&b.pair);
    talks.iter_mut().for_each(|talk| talk.talk(&b.pair));
    // Function 1 alone, when nobody is in its network any more.
    host.set_tunnel(2, &TunnelConfig { vni: 7, ..tunnel(0, 2) }).unwrap();
    host.set_tunnel(1, &TunnelConfig { vni: 8, ..tunnel(0, 1) }).unwrap();
    host.set_tunnel(1, &tunnel(0, 1)).unwrap();
    host.set_tunnel(2, &tunnel(0, 2)).unwrap();
    talks.iter_mut().for_each(|talk| talk.talk(&b.pair));
}
