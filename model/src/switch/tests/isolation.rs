//! What a function may not send (SWITCH.md section 11), and that nothing vanishes.
use super::{mac, switch, udp};
use crate::switch::key::masked;
use crate::switch::tables::{Endpoint, EndpointKind, Member, RocePolicy, Rule, Station};
use crate::switch::Switch;
use ferric_abi::codes::SwitchCause;
use ferric_abi::switch::{destination, Action, FlowKey};
use proptest::prelude::*;

const OWN: [u8; 4] = [192, 168, 7, 8];
const PEER: [u8; 4] = [192, 168, 7, 9];

/// Port 8 is verified, may use OWN and fd00::8; a tunnel ends at 10.0.0.1; everything else goes to port 9.
fn guarded() -> Switch {
    let mut s = switch();
    let t = &mut s.tables;
    if let Some(port) = t.ports.get_mut(&8) {
        (port.verify, port.bridge, port.roce) = (true, true, RocePolicy::Off);
    }
    t.bind.insert((8, false, u32::from_be_bytes(OWN).into()));
    t.bind.insert((8, true, 0xfd00 << 112 | 8));
    t.endpoints.push(Endpoint {
        v6: false,
        ip: 0x0a00_0001,
        udp_port: 4789,
        kind: EndpointKind::Vxlan,
        lenient: false,
        zero_csum6: false,
        any_remote: false,
        unknown_to_software: false,
        option: None,
    });
    t.groups.push(vec![Member { port: 9, encap: 0 }]);
    t.outbound.floods.insert(0, 0);
    t.outbound.fdb.insert((0, mac(9), 0), Station::Port(9));
    s
}

fn refused(s: &mut Switch, frame: &[u8]) -> Option<SwitchCause> {
    let out = s.receive(8, frame);
    assert_eq!(out.sent.len() + out.dropped.len(), 1, "{out:?}");
    out.dropped.first().copied()
}

fn arp(smac: u64, hardware: u64, sender: [u8; 4]) -> Vec<u8> {
    let bytes = |mac: u64| mac.to_be_bytes()[2..].to_vec();
    [vec![0xff; 6], bytes(smac), vec![8, 6, 0, 1, 8, 0, 6, 4, 0, 1], bytes(hardware), sender.to_vec(), vec![0; 6], PEER.to_vec()].concat()
}

fn icmp6(src: u128, message: &[u8]) -> Vec<u8> {
    let head = [&mac(9).to_be_bytes()[2..], &mac(8).to_be_bytes()[2..], &[0x86, 0xdd, 0x60, 0, 0, 0, 0, message.len() as u8, 58, 255]].concat();
    [head, src.to_be_bytes().to_vec(), vec![0xff; 16], message.to_vec()].concat()
}

#[test]
fn a_function_speaks_for_itself_only() {
    let s = &mut guarded();
    let good = udp(mac(9), mac(8), OWN, PEER, (1, 2), b"hello");
    assert_eq!(refused(s, &good), None);
    assert_eq!(refused(s, &udp(mac(9), mac(10), OWN, PEER, (1, 2), b"")), Some(SwitchCause::SpoofMac));
    assert_eq!(refused(s, &udp(mac(9), mac(8), PEER, OWN, (1, 2), b"")), Some(SwitchCause::SpoofIp));
    let tagged = [&good[..12], &[0x81, 0, 0, 5], &good[12..]].concat();
    assert_eq!(refused(s, &tagged), Some(SwitchCause::TagDenied));
    assert_eq!(refused(s, &arp(mac(8), mac(8), OWN)), None);
    assert_eq!(refused(s, &arp(mac(8), mac(8), [0; 4])), None);
    assert_eq!(refused(s, &arp(mac(8), mac(8), PEER)), Some(SwitchCause::SpoofArp));
    assert_eq!(refused(s, &arp(mac(8), mac(9), OWN)), Some(SwitchCause::SpoofArp));
    assert_eq!(refused(s, &udp(mac(9), mac(8), OWN, PEER, (1, 4791), b"")), Some(SwitchCause::RoceDenied));
    assert_eq!(refused(s, &udp(mac(9), mac(8), OWN, PEER, (1, 4789), b"")), Some(SwitchCause::UnderlayDenied));
    assert_eq!(refused(s, &udp(mac(9), mac(8), OWN, [10, 0, 0, 1], (1, 2), b"")), Some(SwitchCause::UnderlayDenied));
    assert_eq!(refused(s, &udp(mac(9), mac(8), OWN, PEER, (67, 68), b"")), Some(SwitchCause::SpoofIp));
    // With the port's flags most of it is allowed.
    if let Some(port) = s.tables.ports.get_mut(&8) {
        (port.trunk, port.any_ip, port.roce, port.underlay, port.server) = (true, true, RocePolicy::Flow, true, true);
        port.macs.push(mac(10));
    }
    for frame in [tagged, udp(mac(9), mac(10), PEER, OWN, (67, 4791), b""), udp(mac(9), mac(8), PEER, [10, 0, 0, 1], (1, 4789), b"")] {
        assert_eq!(refused(s, &frame), None);
    }
    assert!(s.counters[&8].conserved());
}

#[test]
fn neighbour_discovery() {
    let s = &mut guarded();
    let own = 0xfd00u128 << 112 | 8;
    let message = |kind: u8, target: u128, option: &[u8]| [&[kind, 0, 0, 0, 0, 0, 0, 0][..], &target.to_be_bytes(), option].concat();
    let option = |kind: u8, mac: u64| [&[kind, 1], &mac.to_be_bytes()[2..]].concat();
    for (src, m, cause) in [
        (own, message(136, own, &option(2, mac(8))), None),
        (own, message(135, own + 1, &option(1, mac(8))), None),
        (0, message(135, own, &[]), None),
        (own, message(136, own + 1, &option(2, mac(8))), Some(SwitchCause::SpoofArp)),
        (own, message(136, own, &option(2, mac(9))), Some(SwitchCause::SpoofArp)),
        (own, message(135, own, &option(1, mac(9))), Some(SwitchCause::SpoofArp)),
        (own, message(136, own, &[2, 0, 0, 0, 0, 0, 0, 0]), Some(SwitchCause::SpoofArp)),
        (own, message(136, own, &[2]), Some(SwitchCause::SpoofArp)),
        (own, message(134, own, &[]), Some(SwitchCause::SpoofArp)),
        (own + 1, message(128, own, &[]), Some(SwitchCause::SpoofIp)),
    ] {
        assert_eq!(refused(s, &icmp6(src, &m)), cause, "{m:02x?}");
    }
}

proptest! {
    /// Tables full of anything, frames of anything: no panic, and every frame ends in exactly one counter of its port for each copy.
    #[test]
    fn nothing_vanishes(lines in prop::collection::vec(any::<([u8; 16], [u8; 32], u8)>(), 1..8), frames in prop::collection::vec((prop::sample::select(vec![1u8, 2, 8, 9, 77]), prop::collection::vec(any::<u8>(), 0..120), 0u8..4), 1..12)) {
        let mut s = guarded();
        s.tables.encaps = vec![Default::default(); 3];
        s.tables.rewrites.push((1, 2));
        for (action, mask, kind) in lines {
            let mut m = FlowKey::default();
            m.0[..8].copy_from_slice(&mask[..8]);
            m.0.iter_mut().for_each(|b| *b &= 1);
            for direction in [&mut s.tables.inbound, &mut s.tables.outbound] {
                direction.actions.push(Some(Action(action).with_kind(kind % 8).with_number(u16::from(kind)).with_encap(u16::from(kind % 4))));
                let line = direction.actions.len() as u16 - 1;
                direction.tcam.push(Rule { key: masked(&FlowKey::default(), &m), mask: m, action: line, generation: 0 });
            }
        }
        for (port, mut frame, kind) in frames {
            let good = udp(mac(9), mac(8), OWN, [10, 0, 0, 1], (1, 4789), &frame);
            if kind > 0 {
                frame = good;
            }
            if kind > 1 && frame.len() > 50 {
                frame[usize::from(kind) * 16] ^= 1;
            }
            let out = s.receive(port, &frame);
            prop_assert!(out.sent.len() + out.software.len() + out.dropped.len() >= 1);
            prop_assert!(s.counters[&port].conserved(), "{:?}", s.counters[&port]);
        }
    }
}

#[test]
fn sampling_counts_the_sample_as_a_copy() {
    let mut s = switch();
    s.tables.outbound.actions.push(Some(Action::default().with_kind(destination::PORT).with_number(9).with_sample(1).with_count(true)));
    s.tables.outbound.tcam.push(Rule { key: FlowKey::default(), mask: FlowKey::default(), action: 0, generation: 0 });
    for _ in 0..10 {
        s.receive(8, &udp(mac(9), mac(8), OWN, PEER, (1, 2), b""));
    }
    let counters = &s.counters[&8];
    assert_eq!((counters.received, counters.delivered, counters.software, counters.copies), (10, 10, 5, 5));
    assert_eq!(s.flows[&(false, 0)].packets, 10);
}
