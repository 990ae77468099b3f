//! Lookup, installing and what Open vSwitch has no word for: generations, direct RoCE, mirrors, traps.
use super::{mac, switch, udp};
use crate::switch::flow::{parse, Flow};
use crate::switch::install::{NotOffloaded, Room, TunnelPort};
use crate::switch::tables::{Member, Mirror, MissAction, RocePolicy, Route};
use crate::switch::Switch;
use ferric_abi::codes::SwitchCause;
use ferric_abi::switch::{destination, Action};

fn flow(matches: &str, steps: &str) -> Flow {
    parse::flow(matches, steps, &Default::default()).expect("the text is right")
}

fn install(s: &mut Switch, matches: &str, steps: &str) -> Result<u16, NotOffloaded> {
    s.install(&flow(matches, steps), Room::Any, &[TunnelPort { number: 4789, endpoint: 0 }])
}

fn frame(ttl: u8, ports: (u16, u16)) -> Vec<u8> {
    let mut f = udp(mac(9), mac(8), [192, 168, 7, 8], [192, 168, 7, 9], ports, b"payload");
    f[22] = ttl;
    f
}

fn to(s: &mut Switch, frame: &[u8]) -> Vec<u8> {
    s.receive(8, frame).sent.iter().map(|s| s.port).collect()
}

/// The first mask of a class is the exact table's; others are rules. The exact entry comes first.
#[test]
fn exact_entries_and_rules() {
    let s = &mut switch();
    install(s, "in_port(8),eth_type(0x0800),ipv4(dst=192.168.7.9,frag=no)", "9").expect("fits");
    install(s, "in_port(8),eth_type(0x0800),ipv4(dst=192.168.7.10,frag=no)", "10").expect("fits");
    install(s, "in_port(8),eth_type(0x0800),ipv4(proto=17),udp(dst=7)", "11").expect("fits");
    assert_eq!((s.tables.outbound.exact.len(), s.tables.outbound.tcam.len()), (2, 1));
    assert_eq!(to(s, &frame(64, (1, 7))), [9]);
    let other = udp(mac(9), mac(8), [192, 168, 7, 8], [192, 168, 7, 11], (1, 7), b"");
    assert_eq!(to(s, &other), [11]);
}

/// The new set stands beside the old one until the generation changes; then it counts, whole.
#[test]
fn generations() {
    let s = &mut switch();
    install(s, "in_port(8),eth_type(0x0800)", "9").expect("fits");
    s.tables.generation = 1;
    install(s, "in_port(8),eth_type(0x0800)", "10").expect("fits");
    install(s, "in_port(8),eth_type(0x0800),ipv4(proto=17)", "11").expect("fits");
    assert_eq!(to(s, &frame(64, (1, 2))), [10]);
    s.tables.generation = 0;
    assert_eq!(to(s, &frame(64, (1, 2))), [9]);
    s.tables.generation = 2;
    assert_eq!(s.receive(8, &frame(64, (1, 2))).software.len(), 1);
}

#[test]
fn what_stays_in_software() {
    let s = &mut switch();
    let reason = |s: &mut Switch, m: &str, a: &str| install(s, m, a).expect_err(&format!("{m} {a}")).to_string();
    let ip = "in_port(8),eth_type(0x0800)";
    for (m, a, what) in [
        ("eth_type(0x0800)", "9", "no such port"),
        ("in_port(77)", "9", "no such port"),
        ("in_port(8),ct_state(+est)", "9", "ct_state(+est)"),
        ("in_port(8),eth_type(0x86dd),ipv6(label=0x1)", "9", "Ip6Label"),
        ("in_port(8),eth_type(0x0800),ipv4(ttl=63)", "9", "Ip4Ttl"),
        ("in_port(8),ipv4(proto=6)", "9", "without its eth_type"),
        ("in_port(8),eth_type(0x0806),arp(sha=00:00:00:00:00:01)", "9", "ArpSha"),
        ("in_port(8),eth_type(0x8100),vlan(vid=1),encap(eth_type(0x8100),vlan(vid=2),encap())", "9", "second tag"),
        (ip, "ct(commit),9", "ct(commit)"),
        (ip, "set(ipv4(src=1.2.3.4)),9", "set(ipv4(src=1.2.3.4))"),
        (ip, "set(eth(src=00:00:00:00:00:01)),9", "does not say the other"),
        (ip, "set(ipv4(ttl=63)),9", "set(ipv4(ttl=63))"),
        (ip, "pop_vlan,9", "pop_vlan"),
        (ip, "push_vlan(tpid=0x88a8,vid=1,pcp=0),9", "0x88a8"),
        (ip, "push_vlan(vid=1,pcp=0),9,pop_vlan,10", "different changes"),
        (ip, "9,push_vlan(vid=1,pcp=0),10,pop_vlan,11", "different changes"),
        (ip, "9,trunc(64),10", "different changes"),
        (ip, "meter(1),9", "meter(1)"),
        (ip, "trunc(64),9", "different changes"),
        (ip, "trunc(13),10,9", "trunc(13)"),
        (ip, "8", "the frame came from"),
        (ip, "300", "port 300"),
        (ip, "userspace(pid=0),9", "userspace(pid=0)"),
        (ip, "sample(sample=30%,actions(userspace(pid=0))),9", "sample"),
        ("in_port(4789),tunnel(tun_id=0x64)", "9", "no such port or tunnel"),
    ] {
        let said = reason(s, m, a);
        assert!(said.contains(what), "{m} {a}: {said}");
    }
    assert!(s.tables.outbound.exact.is_empty() && s.tables.outbound.tcam.is_empty());
    install(s, ip, "sample(sample=25%,actions(userspace(pid=0))),9").expect("one in four");
    assert_eq!(s.tables.outbound.actions[0].map(|action| action.sample()), Some(2));
}

/// Open vSwitch writes one flow for each time to live; the card has one for all of them above 1.
#[test]
fn time_to_live() {
    let s = &mut switch();
    install(s, "in_port(8),eth_type(0x0800),ipv4(ttl=64)", "set(ipv4(ttl=63)),9").expect("one less");
    let out = s.receive(8, &frame(9, (1, 2)));
    assert_eq!(out.sent[0].frame[22], 8);
    assert!(s.receive(8, &frame(1, (1, 2))).sent.is_empty());
}

#[test]
fn direct_roce() {
    let s = &mut switch();
    let roce = udp(mac(9), mac(2), [192, 168, 7, 8], [192, 168, 7, 9], (5, 4791), b"x");
    s.tables.ports.values_mut().for_each(|p| p.miss = MissAction::Drop);
    assert_eq!(s.receive(2, &roce).dropped, [SwitchCause::Miss]);
    if let Some(port) = s.tables.ports.get_mut(&9) {
        port.roce = RocePolicy::Direct;
    }
    assert_eq!(s.receive(2, &roce).sent[0].port, 9);
    // Another bridge domain's port of that address is another port.
    if let Some(port) = s.tables.ports.get_mut(&9) {
        port.domain = 3;
    }
    assert_eq!(s.receive(2, &roce).dropped, [SwitchCause::Miss]);
    let line = install(s, "in_port(8),eth_type(0x0800)", "9").expect("fits");
    s.tables.outbound.actions[usize::from(line)].as_mut().expect("it is there").set_no_roce(true);
    assert_eq!(s.receive(8, &frame(64, (5, 4791))).dropped, [SwitchCause::RoceDenied]);
}

#[test]
fn mirrors_and_traps() {
    let s = &mut switch();
    let line = install(s, "in_port(8),eth_type(0x0800)", "trunc(30),10,push_vlan(vid=1,pcp=0),9").expect("fits");
    assert_eq!(s.tables.mirrors, [None, Some(Mirror { to: Member { port: 10, encap: 0 }, truncate: 30 })]);
    let action: &mut Action = s.tables.outbound.actions[usize::from(line)].as_mut().expect("it is there");
    action.set_trap_tcp(true);
    let f = frame(64, (1, 2));
    let out = s.receive(8, &f);
    assert_eq!(out.sent.iter().map(|s| (s.port, s.frame.len())).collect::<Vec<_>>(), [(10, 30), (9, f.len() + 4)]);
    assert_eq!(out.sent[0].frame, f[..30]);
    let mut tcp = Vec::new();
    let build = |syn: bool| {
        let b = etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 1, 8], [2, 0, 0, 0, 1, 9]).ipv4([1, 2, 3, 4], [5, 6, 7, 8], 64).tcp(1, 2, 3, 4);
        if syn {
            b.syn()
        } else {
            b.ack(1)
        }
    };
    for syn in [true, false] {
        tcp.clear();
        build(syn).write(&mut tcp, &[]).expect("a vector takes everything");
        let out = s.receive(8, &tcp);
        assert_eq!((out.software.len(), out.sent.len()), if syn { (1, 0) } else { (0, 2) });
    }
    assert!(s.counters[&8].conserved());
}

#[test]
fn ports_that_are_down_or_not_there() {
    let s = &mut switch();
    install(s, "in_port(8),eth_type(0x0800)", "9").expect("fits");
    if let Some(port) = s.tables.ports.get_mut(&9) {
        port.up = false;
    }
    assert_eq!(s.receive(8, &frame(64, (1, 2))).dropped, [SwitchCause::PortDown]);
    assert_eq!(s.receive(9, &frame(64, (1, 2))).dropped, [SwitchCause::PortDown]);
    assert_eq!(s.receive(200, &[]).dropped, [SwitchCause::InjectBad]);
    assert_eq!(s.receive(8, &[1, 2, 3]).software[0].cause, SwitchCause::Deep);
}

#[test]
fn routes_are_of_their_vrf() {
    let s = &mut switch();
    if let Some(port) = s.tables.ports.get_mut(&8) {
        (port.route, port.vrf) = (true, 7);
    }
    for (vrf, bits, to) in [(7, 16, 9), (7, 0, 10), (8, 32, 11)] {
        let action = s.tables.outbound.actions.len() as u16;
        s.tables.outbound.actions.push(Some(Action::default().with_kind(destination::PORT).with_number(to)));
        let prefix = if bits == 0 { 0 } else { 0xc0a8_0709 >> (32 - u32::from(bits)) << (32 - u32::from(bits)) };
        s.tables.outbound.lpm.push(Route { vrf, v6: false, prefix, bits, action, generation: 0 });
    }
    assert_eq!(to(s, &frame(64, (1, 2))), [9]);
    assert_eq!(to(s, &udp(mac(9), mac(8), [1, 1, 1, 1], [8, 8, 8, 8], (1, 2), b"")), [10]);
}
