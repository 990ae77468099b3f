//! Tunnels: what is wrapped is stripped again, over IPv4 and IPv6; what Open vSwitch cannot judge.
use super::{mac, switch, udp, UPLINK_MAC};
use crate::net::sums::{finish, pseudo, sum};
use crate::switch::flow::{Header, Outer, TunnelKind};
use crate::switch::layers::{parse, Upper};
use crate::switch::tables::{Endpoint, EndpointKind, InnerTag, Member, Station};
use crate::switch::wrap::{self, BadHeader};
use crate::switch::Switch;
use ferric_abi::codes::SwitchCause;
use ferric_abi::switch::{source_port, Encap};
use proptest::prelude::*;

const LOCAL: u128 = 0x0a00_0001;
const PEER: u128 = 0x0a00_0002;
const LOCAL6: u128 = 0xfd00 << 112 | 1;
const PEER6: u128 = 0xfd00 << 112 | 2;
const OPTION: (u16, u8) = (0x0102, 0x80);

/// VXLAN and Geneve end at both addresses; VNI 100 is domain 1, whose frames go to port 8.
fn endpoint() -> Switch {
    let mut s = switch();
    for (v6, ip, peer) in [(false, LOCAL, PEER), (true, LOCAL6, PEER6)] {
        for (kind, udp_port) in [(EndpointKind::Vxlan, 4789), (EndpointKind::Geneve, 6081)] {
            s.tables.vnis.insert((s.tables.endpoints.len() as u8, 100), (1, InnerTag::Keep));
            s.tables.endpoints.push(Endpoint { v6, ip, udp_port, kind, lenient: false, zero_csum6: true, any_remote: false, unknown_to_software: false, option: Some(OPTION) });
        }
        s.tables.remotes.insert((v6, peer), 1 + u16::from(v6));
    }
    s.tables.ports.values_mut().for_each(|p| p.bridge = true);
    s.tables.groups.push(vec![Member { port: 8, encap: 0 }]);
    s.tables.inbound.floods.insert(1, 0);
    s
}

/// The header that the peer sends.
fn header(v6: bool, kind: TunnelKind) -> Header {
    let outer = if v6 { Outer { v6, src: PEER6, dst: LOCAL6, tos: 0, ttl: 64, extra: 0x1234 } } else { Outer { v6, src: PEER, dst: LOCAL, tos: 0, ttl: 64, extra: 0x4000 } };
    let to = if matches!(kind, TunnelKind::Vxlan { .. }) { 4789 } else { 6081 };
    Header { dmac: UPLINK_MAC, smac: mac(2), outer, udp: (0, to, 0), kind }
}

fn vxlan(vni: u32) -> TunnelKind {
    TunnelKind::Vxlan { flags: 0x0800_0000, vni }
}

fn geneve(options: Vec<(u16, u8, Vec<u8>)>) -> TunnelKind {
    TunnelKind::Geneve { oam: false, critical: options.iter().any(|o| o.1 & 0x80 != 0), vni: 100, options }
}

fn wrapped(header: &Header, inner: &[u8]) -> Vec<u8> {
    let line = wrap::line(&header.bytes(), 1).expect("the header is right");
    wrap::wrap(&line, inner, &parse(inner).expect("the frame is in the graph")).expect("it is short enough")
}

fn inner(tos: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = udp(mac(8), mac(9), [192, 168, 7, 9], [192, 168, 7, 8], (5, 6), payload);
    let Upper::Ip(ip) = parse(&frame).expect("it is UDP").upper else { unreachable!("it is IP") };
    crate::switch::edit::set_tos(&mut frame, 14, &ip, tos);
    frame
}

proptest! {
    /// Wrapped and stripped, a frame is as it was, and etherparse finds the outer header right.
    #[test]
    fn there_and_back(v6: bool, other: bool, words in 0usize..4, tos: u8, payload in prop::collection::vec(any::<u8>(), 0..80), copy_dscp: bool, copy_ttl: bool) {
        let kind = if other { geneve(vec![(OPTION.0, OPTION.1, vec![7; 4 * words])]) } else { vxlan(100) };
        let header = header(v6, kind);
        let frame = inner(tos, &payload);
        let line = wrap::line(&header.bytes(), 1).expect("the header is right").with_copy_dscp(copy_dscp).with_copy_ttl(copy_ttl);
        let out = wrap::wrap(&line, &frame, &parse(&frame).expect("UDP")).expect("it is short enough");
        let packet = etherparse::SlicedPacket::from_ethernet(&out).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let dscp = if copy_dscp { tos & 0xfc } else { 0 };
        match packet.net {
            Some(etherparse::NetSlice::Ipv4(ip)) => {
                prop_assert!(!v6);
                let h = ip.header().to_header();
                prop_assert_eq!((h.calc_header_checksum(), h.time_to_live, h.dont_fragment), (h.header_checksum, 64, true));
                prop_assert_eq!(ip.header().slice()[1], dscp | tos & 3);
            }
            Some(etherparse::NetSlice::Ipv6(ip)) => prop_assert_eq!((v6, ip.header().traffic_class(), ip.header().flow_label().value()), (true, dscp | tos & 3, 0x1234)),
            None => return Err(TestCaseError::fail("no IP")),
        }
        let Some(etherparse::TransportSlice::Udp(udp)) = packet.transport else { return Err(TestCaseError::fail("no UDP")) };
        prop_assert!(udp.source_port() >= 0xc000 && udp.checksum() == 0);
        prop_assert_eq!(usize::from(udp.length()), udp.payload().len() + 8);
        let mut s = endpoint();
        let got = s.receive(1, &out);
        prop_assert!(got.stripped);
        prop_assert_eq!(&got.sent[0].frame, &frame);
        prop_assert_eq!((got.sent.len(), got.sent[0].port), (1, 8));
    }

    /// A changed bit anywhere: an answer, and never a frame of another VNI.
    #[test]
    fn any_bit(v6: bool, other: bool, bit in any::<prop::sample::Index>(), cut in prop::option::of(any::<prop::sample::Index>())) {
        let mut out = wrapped(&header(v6, if other { geneve(vec![(OPTION.0, OPTION.1, vec![1, 2, 3, 4])]) } else { vxlan(100) }), &inner(0, b"payload"));
        let at = bit.index(out.len() * 8);
        out[at / 8] ^= 1 << (at % 8);
        if let Some(cut) = cut {
            out.truncate(cut.index(out.len()));
        }
        let mut s = endpoint();
        s.receive(1, &out);
        prop_assert!(s.counters[&1].conserved());
    }
}

#[test]
fn one_flow_one_source_port() {
    let port = |frame: &[u8]| wrap::entropy(&parse(frame).expect("UDP"));
    assert_eq!(port(&inner(0, b"a")), port(&inner(3, b"another")));
    let ports: std::collections::HashSet<u16> = (0..1000u16).map(|n| port(&udp(mac(8), mac(9), [10, 0, 0, 1], [10, 0, 0, 2], (n, 4791), b""))).collect();
    assert!(ports.len() > 900 && ports.iter().all(|p| *p >= 0xc000), "{} ports of 1000 flows", ports.len());
    let line = wrap::line(&header(false, vxlan(1)).bytes(), 1).expect("it is right").with_source_port(source_port::FIXED);
    let frame = inner(0, b"");
    assert_eq!(wrap::wrap(&line, &frame, &parse(&frame).expect("UDP")).expect("short")[34..36], [0, 0]);
}

#[test]
fn headers_that_are_none() {
    let good = header(false, vxlan(1)).bytes();
    assert_eq!(wrap::line(&good[..49], 1), Err(BadHeader::Length));
    assert_eq!(wrap::line(&[&good[..], &[0; 47]].concat(), 1), Err(BadHeader::Length));
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        wrap::line(&bytes, 1)
    };
    assert_eq!(with(14, 0x46), Err(BadHeader::NoIp));
    assert_eq!(with(12, 0x09), Err(BadHeader::NoIp));
    assert_eq!(with(23, 6), Err(BadHeader::NoUdp));
    assert_eq!(wrap::line(&[], 1), Err(BadHeader::NoIp));
    let long = inner(0, &[0; 100]);
    assert!(wrap::wrap(&wrap::line(&good, 1).expect("it is right"), &[0; 65_500], &parse(&long).expect("UDP")).is_none());
}

/// Padding behind the outer datagram is none of the inner frame, and a UDP length that is not IP's is malformed. Open vSwitch looks at neither.
#[test]
fn lengths() {
    let frame = inner(0, b"abc");
    let mut out = wrapped(&header(false, vxlan(100)), &frame);
    out.extend([0; 9]);
    assert_eq!(endpoint().receive(1, &out).sent[0].frame, frame);
    out[39] += 1;
    assert_eq!(endpoint().receive(1, &out).dropped, [SwitchCause::OuterMalformed]);
}

#[test]
fn short_inner_frames() {
    let frame = [&inner(0, b"")[..12], &[0x88, 0xb5]].concat();
    let around = |bytes: &[u8]| wrap::wrap(&wrap::line(&header(false, vxlan(100)).bytes(), 1).expect("it is right"), bytes, &parse(&frame).expect("it has a type")).expect("it is short");
    for length in 0..14 {
        assert_eq!(endpoint().receive(1, &around(&frame[..length])).dropped, [SwitchCause::InnerShort], "{length} bytes");
    }
    assert_eq!(endpoint().receive(1, &around(&frame)).sent[0].frame, frame);
}

#[test]
fn checksums_over_ipv6() {
    let frame = inner(0, b"abc");
    let mut out = wrapped(&header(true, vxlan(100)), &frame);
    let strict = |s: &mut Switch| s.tables.endpoints.iter_mut().for_each(|e| e.zero_csum6 = false);
    let mut s = endpoint();
    strict(&mut s);
    assert_eq!(s.receive(1, &out).dropped, [SwitchCause::OuterCsum]);
    let check = finish(sum(pseudo(&out[22..38], &out[38..54], 17, out.len() as u32 - 54), &out[54..]));
    out[60..62].copy_from_slice(&check.to_be_bytes());
    assert_eq!(s.receive(1, &out).sent[0].frame, frame);
    out[70] ^= 1;
    assert_eq!(s.receive(1, &out).dropped, [SwitchCause::OuterCsum]);
}

#[test]
fn lenient_endpoints_ignore_what_is_reserved() {
    let frame = inner(0, b"abc");
    let out = |flags, vni| wrapped(&header(false, TunnelKind::Vxlan { flags, vni }), &frame);
    let mut last = out(0x0800_0000, 100);
    last[49] = 7;
    for lenient in [false, true] {
        let mut s = endpoint();
        s.tables.endpoints[0].lenient = lenient;
        for frame in [out(0x0800_0001, 100), out(0x4800_0000, 100), last.clone()] {
            let got = s.receive(1, &frame);
            assert_eq!((got.sent.len(), got.dropped.first()), if lenient { (1, None) } else { (0, Some(&SwitchCause::VxlanFlags)) });
        }
        assert_eq!(s.receive(1, &out(0, 100)).dropped, [SwitchCause::VxlanFlags]);
    }
}

#[test]
fn geneve_headers() {
    let frame = inner(0, b"abc");
    let got = |kind| {
        let out = wrapped(&header(false, kind), &frame);
        let got = endpoint().receive(1, &out);
        (got.sent.len(), got.software.first().map(|s| (s.cause, s.frame == out)), got.dropped.first().copied())
    };
    assert_eq!(got(geneve(vec![(9, 1, vec![0; 4]), (OPTION.0, OPTION.1, vec![0; 4])])), (1, None, None));
    assert_eq!(got(geneve(vec![(9, 0x81, vec![0; 4])])), (0, None, Some(SwitchCause::GeneveCritical)));
    assert_eq!(got(geneve(vec![(9, 1, vec![0; 40])])), (0, Some((SwitchCause::Deep, true)), None));
    assert_eq!(got(TunnelKind::Geneve { oam: true, critical: false, vni: 100, options: vec![] }), (0, Some((SwitchCause::Deep, true)), None));
    let mut out = wrapped(&header(false, geneve(vec![])), &frame);
    out[44] = 0x08;
    assert_eq!(endpoint().receive(1, &out).software[0].cause, SwitchCause::Deep);
    out[42] = 0x40;
    assert_eq!(endpoint().receive(1, &out).dropped, [SwitchCause::GeneveVersion]);
    // Options that end behind the packet, an option that ends behind the options.
    let mut out = wrapped(&header(false, geneve(vec![(9, 1, vec![0; 4])])), &frame);
    out[53] = 9;
    assert_eq!(endpoint().receive(1, &out).dropped, [SwitchCause::OuterMalformed]);
    out[42] = 0x3f;
    assert_eq!(endpoint().receive(1, &out).dropped, [SwitchCause::OuterMalformed]);
}

#[test]
fn tags_inside_follow_the_domain() {
    let plain = inner(0, b"abc");
    let tagged = [&plain[..12], &[0x81, 0, 0, 5], &plain[12..]].concat();
    let out = wrapped(&header(false, vxlan(100)), &tagged);
    for (rule, wanted) in [(InnerTag::Keep, Some(&tagged)), (InnerTag::Strip, Some(&plain)), (InnerTag::Drop, None)] {
        let mut s = endpoint();
        s.tables.vnis.insert((0, 100), (1, rule));
        let got = s.receive(1, &out);
        assert_eq!(got.sent.first().map(|s| &s.frame), wanted);
        assert_eq!(got.dropped.is_empty(), wanted.is_some());
    }
}

#[test]
fn unknown_ends() {
    let frame = inner(0, b"abc");
    let mut s = endpoint();
    let unknown = wrapped(&header(false, vxlan(101)), &frame);
    assert_eq!(s.receive(1, &unknown).dropped, [SwitchCause::VniUnknown]);
    s.tables.endpoints[0].unknown_to_software = true;
    assert_eq!(s.receive(1, &unknown).software[0].frame, unknown);
    let mut from = header(false, vxlan(100));
    from.outer.src = 0x0a00_0009;
    assert_eq!(s.receive(1, &wrapped(&from, &frame)).dropped, [SwitchCause::RemoteUnknown]);
    s.tables.endpoints[0].any_remote = true;
    assert_eq!(s.receive(1, &wrapped(&from, &frame)).sent.len(), 1);
    // Another's MAC address: not for this endpoint, and no flow knows it.
    from.dmac = mac(11);
    assert!(!s.receive(1, &wrapped(&from, &frame)).stripped);
}

/// Between two remote endpoints nothing is forwarded by a flood group: each has got the frame from its sender.
#[test]
fn split_horizon() {
    let mut s = endpoint();
    let line: Encap = wrap::line(&header(false, vxlan(100)).bytes(), 1).expect("it is right");
    s.tables.encaps = vec![Encap::default(), line];
    s.tables.groups[0].push(Member { port: 1, encap: 1 });
    s.tables.outbound.floods.insert(0, 0);
    let frame = inner(0, b"abc");
    let from_tunnel = s.receive(1, &wrapped(&header(false, vxlan(100)), &frame));
    assert_eq!(from_tunnel.sent.iter().map(|s| s.port).collect::<Vec<_>>(), [8]);
    // The port that the frame came from gets none, and that is no drop.
    s.tables.groups[0].push(Member { port: 9, encap: 0 });
    let from_function = s.receive(9, &frame);
    assert!(from_function.dropped.is_empty());
    assert_eq!(from_function.sent.iter().map(|s| (s.port, s.frame.len())).collect::<Vec<_>>(), [(8, frame.len()), (1, frame.len() + 50)]);
    s.tables.groups[0] = vec![Member { port: 1, encap: 1 }];
    assert_eq!(s.receive(1, &wrapped(&header(false, vxlan(100)), &frame)).dropped, [SwitchCause::GroupEmpty]);
    s.tables.outbound.fdb.insert((0, mac(8), 0), Station::Remote(1));
    assert_eq!(s.receive(9, &frame).sent[0].port, 1);
}
