//! The golden parser by itself: against the table of the specification, and against etherparse.
use super::*;

#[test]
fn table_38() {
    // Opcode, extended headers in order, by the names of the table.
    let rc: [(u8, &[usize]); 24] = [
        (0x00, &[]),
        (0x01, &[]),
        (0x02, &[]),
        (0x03, &[4]),
        (0x04, &[]),
        (0x05, &[4]),
        (0x06, &[16]),
        (0x07, &[]),
        (0x08, &[]),
        (0x09, &[4]),
        (0x0a, &[16]),
        (0x0b, &[16, 4]),
        (0x0c, &[16]),
        (0x0d, &[4]),
        (0x0e, &[]),
        (0x0f, &[4]),
        (0x10, &[4]),
        (0x11, &[4]),
        (0x12, &[4, 8]),
        (0x13, &[28]),
        (0x14, &[28]),
        (0x16, &[4]),
        (0x1c, &[4, 16]),
        (0x1d, &[16]),
    ];
    for (opcode, sizes) in rc {
        assert_eq!(Headers::of(opcode).len, sizes.iter().sum::<usize>(), "{opcode:#x}");
        if opcode < 0x0c {
            assert_eq!(Headers::of(opcode | 0x20), Headers::of(opcode), "UC as RC: {opcode:#x}");
        }
    }
    assert_eq!((Headers::of(0x64).len, Headers::of(0x65).len, Headers::of(0x2c).len), (8, 12, 0));
}

/// The version, if there are no options, no fragment, no extension header.
fn plain(net: &Option<etherparse::NetSlice>) -> Option<u8> {
    match net {
        Some(etherparse::NetSlice::Ipv4(ip)) if ip.header().ihl() == 5 && !ip.is_payload_fragmented() => Some(4),
        Some(etherparse::NetSlice::Ipv6(ip)) if ip.extensions().is_empty() => Some(6),
        _ => None,
    }
}

#[test]
fn the_model_sees_what_etherparse_sees() {
    use etherparse::{NetSlice, SlicedPacket, TransportSlice, VlanSlice};
    let mut rng = Rng::new(11);
    let mut frames = captured();
    frames.extend((0..400).map(|_| any_frame(&mut rng)));
    let (mut checked, mut kinds) = (0, [0; 4]);
    for frame in frames {
        let Ok(p) = receive(&frame, false) else { continue };
        let Ok(packet) = SlicedPacket::from_ethernet(&frame) else { continue };
        let udp = match &packet.transport {
            Some(TransportSlice::Udp(udp)) => Some(udp),
            _ => None,
        };
        let plain4 = matches!(&packet.net, Some(NetSlice::Ipv4(ip)) if ip.header().ihl() == 5 && !ip.is_payload_fragmented());
        let plain6 = matches!(&packet.net, Some(NetSlice::Ipv6(ip)) if ip.header().next_header() == etherparse::IpNumber::UDP);
        let roce = (plain4 || plain6) && udp.is_some_and(|udp| udp.destination_port() == 4791);
        // Two tags, or one of another kind than 802.1Q's, are none for the card.
        if matches!(&packet.vlan, Some(VlanSlice::DoubleVlan(_))) || packet.vlan.is_some() && frame[12..14] != [0x81, 0] {
            continue;
        }
        assert_eq!(!p.raw, roce, "{frame:02x?}");
        let kind = match &packet.transport {
            Some(TransportSlice::Icmpv4(_)) if plain(&packet.net) == Some(4) => frame_kind::ICMP,
            Some(TransportSlice::Icmpv6(_)) if plain(&packet.net) == Some(6) => frame_kind::ICMPV6,
            _ if packet.payload_ether_type() == Some(etherparse::EtherType::ARP) => frame_kind::ARP,
            _ => frame_kind::OTHER,
        };
        assert_eq!(p.kind, kind, "{frame:02x?}");
        kinds[usize::from(kind)] += 1;
        if let (true, Some(udp)) = (roce, udp) {
            let at = usize::from(p.pay_off) + usize::from(p.pay_len) + usize::from(p.pad) + 4 - udp.payload().len();
            let start = udp.payload().as_ptr() as usize - frame.as_ptr() as usize;
            assert_eq!(at, start, "BTH place");
            assert_eq!(udp.payload()[0], p.opcode);
            checked += 1;
        }
        if let Some(VlanSlice::SingleVlan(tag)) = &packet.vlan {
            assert_eq!((p.has_vlan, p.class, p.vlan_tci & 0xfff), (true, tag.priority_code_point().value(), tag.vlan_identifier().value()));
        }
        match &packet.net {
            Some(NetSlice::Ipv4(ip)) if ip.header().ihl() == 5 => assert_eq!((p.ipv6, p.ecn), (false, ip.header().ecn().value())),
            Some(NetSlice::Ipv6(ip)) => assert_eq!((p.ipv6, p.ecn), (true, ip.header().traffic_class() & 3)),
            _ => {}
        }
    }
    assert!(checked > 100, "only {checked} frames");
    assert!(kinds.iter().all(|n| *n > 0), "{kinds:?}");
}
