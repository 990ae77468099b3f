//! The parser against etherparse, which knows nothing of ours.
use crate::switch::layers::{parse, Deep, Fragment, Layers};
use etherparse::{Ipv6ExtensionSlice, LinkSlice, NetSlice, SingleVlanSlice, SlicedPacket, TransportSlice, VlanSlice};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

/// A frame that makes sense, and bits of it that are changed afterwards.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let tags = prop::collection::vec((prop::sample::select(vec![0x8100u16, 0x88a8]), any::<u16>()), 0..3);
    let v4 = (0usize..3, prop::sample::select(vec![0x4000u16, 0, 0x2000, 0x2010]), prop::sample::select(vec![1u8, 6, 17, 47, 58]), any::<[u8; 8]>(), any::<u8>(), any::<u8>());
    let v6 = (prop::sample::select(vec![1u8, 6, 17, 58, 47, 60]), any::<bool>(), prop::option::of(prop::sample::select(vec![0u16, 1, 0x101])), any::<[u8; 32]>(), any::<u8>());
    let payload = prop::collection::vec(any::<u8>(), 0..60);
    let flips = prop::collection::vec(any::<prop::sample::Index>(), 0..3);
    (any::<[u8; 12]>(), tags, any::<bool>(), v4, v6, payload, prop_oneof![4 => Just(vec![]), 1 => flips], 0usize..200).prop_map(|(macs, tags, six, v4, v6, payload, flips, cut)| {
        let mut frame = macs.to_vec();
        for (tpid, tci) in tags {
            frame.extend(tpid.to_be_bytes());
            frame.extend(tci.to_be_bytes());
        }
        // A TCP header's length has to be right, everything else may be anything.
        let mut upper = vec![0x55; 20];
        upper[12] = 0x50;
        upper.extend(payload);
        if six {
            let (proto, hop, part, addresses, tos) = v6;
            frame.extend([0x86, 0xdd, 0x60 | tos >> 4, tos << 4, 0, 0]);
            let extensions = 8 * (usize::from(hop) + usize::from(part.is_some()));
            frame.extend(((upper.len() + extensions) as u16).to_be_bytes());
            let next = if part.is_some() { 44 } else { proto };
            frame.extend([if hop { 0 } else { next }, 9]);
            frame.extend(addresses);
            if hop {
                frame.extend([next, 0, 1, 4, 0, 0, 0, 0]);
            }
            if let Some(part) = part {
                frame.extend([proto, 0]);
                frame.extend(part.to_be_bytes());
                frame.extend([1, 2, 3, 4]);
            }
        } else {
            let (options, part, proto, addresses, tos, ttl) = v4;
            frame.extend([0x08, 0, 0x45 + options as u8, tos]);
            frame.extend(((20 + 4 * options + upper.len()) as u16).to_be_bytes());
            frame.extend([0, 1]);
            frame.extend(part.to_be_bytes());
            frame.extend([ttl, proto, 0, 0]);
            frame.extend(addresses);
            frame.resize(frame.len() + 4 * options, 1);
        }
        // A UDP length of zero means the rest of the datagram to etherparse; it is the same here.
        if upper.len() > 6 {
            upper[4..6].copy_from_slice(&[0, 0]);
        }
        frame.extend(upper);
        for flip in flips {
            let bit = flip.index(frame.len() * 8);
            frame[bit / 8] ^= 1 << (bit % 8);
        }
        if cut > 100 {
            frame.truncate(cut);
        }
        frame
    })
}

/// What both have to say of a frame.
fn same(layers: &Layers, packet: &SlicedPacket) -> Result<(), TestCaseError> {
    let Some(LinkSlice::Ethernet2(link)) = &packet.link else {
        return Err(TestCaseError::fail("no link layer"));
    };
    // A type of tag that the graph does not have, and Open vSwitch neither.
    if link.ether_type().0 == 0x9100 || layers.ethertype == 0x9100 {
        return Ok(());
    }
    let mac = |bytes: [u8; 6]| bytes.iter().fold(0u64, |v, b| v << 8 | u64::from(*b));
    prop_assert_eq!((layers.dmac, layers.smac), (mac(link.destination()), mac(link.source())));
    let tci = |v: &SingleVlanSlice| u16::from(v.priority_code_point().value()) << 13 | u16::from(v.drop_eligible_indicator()) << 12 | v.vlan_identifier().value();
    let (tag, ethertype) = match &packet.vlan {
        None => (None, link.ether_type().0),
        Some(VlanSlice::SingleVlan(v)) => (Some(tci(v)), v.ether_type().0),
        Some(VlanSlice::DoubleVlan(v)) => {
            prop_assert!(layers.second);
            (Some(tci(&v.outer())), v.inner().ether_type().0)
        }
    };
    prop_assert_eq!(layers.tag, tag);
    prop_assert_eq!(layers.ethertype, ethertype);
    match (&packet.net, layers.ip()) {
        (Some(NetSlice::Ipv4(v4)), Some(ip)) => {
            let h = v4.header();
            prop_assert!(!ip.v6);
            prop_assert_eq!((ip.src, ip.dst), (u32::from(h.source_addr()).into(), u32::from(h.destination_addr()).into()));
            prop_assert_eq!((ip.proto, ip.ttl, ip.tos), (h.protocol().0, h.ttl(), h.dcp().value() << 2 | h.ecn().value()));
            prop_assert_eq!(ip.fragment != Fragment::Whole, v4.is_payload_fragmented());
        }
        (Some(NetSlice::Ipv6(v6)), Some(ip)) => {
            let h = v6.header();
            prop_assert!(ip.v6);
            prop_assert_eq!((ip.src, ip.dst), (u128::from(h.source_addr()), u128::from(h.destination_addr())));
            prop_assert_eq!((ip.ttl, ip.tos), (h.hop_limit(), h.traffic_class()));
            // etherparse 0.16 has the fragment header's bits in other places than RFC 8200. Open vSwitch judges the class of fragments.
            if v6.extensions().clone().into_iter().all(|e| !matches!(e, Ipv6ExtensionSlice::Fragment(_))) {
                prop_assert_eq!(ip.fragment, Fragment::Whole);
            }
            if ip.fragment != Fragment::Later {
                prop_assert_eq!(ip.proto, v6.payload().ip_number.0);
            }
        }
        (None, None) => {}
        other => return Err(TestCaseError::fail(format!("{other:?}"))),
    }
    if layers.ip().is_some_and(|ip| ip.fragment == Fragment::Later) {
        return Ok(());
    }
    // etherparse reads no transport header of a first fragment.
    match &packet.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            prop_assert_eq!(layers.ports, (tcp.source_port(), tcp.destination_port()));
            let flags = [tcp.fin(), tcp.syn(), tcp.rst(), tcp.psh(), tcp.ack(), tcp.urg(), tcp.ece(), tcp.cwr(), tcp.ns()];
            prop_assert_eq!(layers.tcp_flags & 0x1ff, flags.iter().enumerate().map(|(n, f)| u16::from(*f) << n).sum::<u16>());
        }
        Some(TransportSlice::Udp(udp)) => prop_assert_eq!(layers.ports, (udp.source_port(), udp.destination_port())),
        // Its idea of ICMP in the other version of IP is that of the graph, too: a protocol like any other.
        Some(TransportSlice::Icmpv4(icmp)) if !layers.ip().is_some_and(|ip| ip.v6) => prop_assert_eq!(layers.ports, (icmp.type_u8().into(), icmp.code_u8().into())),
        Some(TransportSlice::Icmpv6(icmp)) if layers.ip().is_some_and(|ip| ip.v6) => prop_assert_eq!(layers.ports, (icmp.type_u8().into(), icmp.code_u8().into())),
        _ => {}
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Where both know a frame they say the same.
    #[test]
    fn as_etherparse(frame in frames()) {
        if let (Ok(layers), Ok(packet)) = (parse(&frame), SlicedPacket::from_ethernet(&frame)) {
            same(&layers, &packet)?;
        }
    }

    /// Whatever the bytes are, there is an answer, and it does not depend on what is behind the window but for lengths.
    #[test]
    fn any_bytes(frame in prop::collection::vec(any::<u8>(), 0..300), ethertype in prop::sample::select(vec![0x0800u16, 0x86dd, 0x0806, 0x8100, 0x88a8])) {
        let mut frame = frame;
        if frame.len() > 14 {
            frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
        }
        let layers = parse(&frame);
        let mut other = frame.clone();
        other.iter_mut().skip(128).for_each(|b| *b = !*b);
        prop_assert_eq!(layers, parse(&other));
    }
}

/// The strategy's frames are mostly understood by both: else the test above would say nothing.
#[test]
fn frames_are_understood() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = frames();
    let both = (0..500)
        .filter(|_| {
            let frame = strategy.new_tree(&mut runner).expect("a frame").current();
            parse(&frame).is_ok() && SlicedPacket::from_ethernet(&frame).is_ok()
        })
        .count();
    assert!(both > 250, "{both} of 500");
}

#[test]
fn what_is_deep() {
    let frame = |ethertype: [u8; 2], rest: &[u8]| [&[0u8; 12][..], &ethertype, rest].concat();
    assert_eq!(parse(&[0; 13]), Err(Deep::Truncated));
    assert_eq!(parse(&frame([0x81, 0], &[0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3, 8, 0])), Err(Deep::Tags));
    for ethertype in [[0x88, 0x47], [0x88, 0x48], [0x89, 0x4f], [0x00, 0x40]] {
        assert_eq!(parse(&frame(ethertype, &[0; 64])), Err(Deep::Unknown));
    }
    // ARP of another hardware; an IPv6 routing header; a hop-by-hop header of 16 bytes.
    assert_eq!(parse(&frame([0x08, 0x06], &[0, 6, 8, 0, 6, 4, 0, 1])), Err(Deep::Unknown));
    let six = |next: u8, rest: &[u8]| frame([0x86, 0xdd], &[&[0x60, 0, 0, 0, 0, rest.len() as u8, next, 64][..], &[1; 32], rest].concat());
    assert_eq!(parse(&six(43, &[17, 0, 0, 0, 0, 0, 0, 0])), Err(Deep::Unknown));
    assert_eq!(parse(&six(0, &[17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])), Err(Deep::Unknown));
    assert_eq!(parse(&six(6, &[0; 19])), Err(Deep::Truncated));
    // Two tags, IPv4 with all options and TCP end at byte 102, IPv6 with both extensions at 98: nothing of the graph ends behind the window.
    let ports = [&[0x12, 0x34, 0x56, 0x78][..], &[0; 16]].concat();
    let extensions = [&[44, 0, 1, 4, 0, 0, 0, 0, 6, 0, 0, 1, 0, 0, 0, 9][..], &ports].concat();
    let layers = parse(&six(0, &extensions)).expect("it is in the graph");
    assert_eq!((layers.ports, layers.ip().map(|ip| ip.fragment)), ((0x1234, 0x5678), Some(Fragment::First)));
}
