//! The wire headers against `etherparse`, both ways.
use etherparse::{
    Ethernet2Header, Ethernet2HeaderSlice, IcmpEchoHeader, Icmpv4Header, Icmpv4Type, IpNumber, Ipv4Header, Ipv4HeaderSlice, Ipv6Header, Ipv6HeaderSlice, SingleVlanHeader, SingleVlanHeaderSlice,
    UdpHeader, UdpHeaderSlice, VlanId,
};
use ferric_abi::wire::{Arp, Eth, IcmpEcho, Ipv4, Ipv6, Udp, Vlan};
use proptest::prelude::*;

fn mac(v: u64) -> [u8; 6] {
    let mut out = [0; 6];
    out.copy_from_slice(&v.to_be_bytes()[2..]);
    out
}

proptest! {
    #[test]
    fn ethernet(raw in any::<[u8; 14]>()) {
        let (ours, theirs) = (Eth(raw), Ethernet2HeaderSlice::from_slice(&raw).unwrap().to_header());
        prop_assert_eq!((mac(ours.dst()), mac(ours.src()), ours.ethertype()), (theirs.destination, theirs.source, theirs.ether_type.0));
        let built = Ethernet2Header { destination: mac(ours.dst()), source: mac(ours.src()), ether_type: ours.ethertype().into() }.to_bytes();
        prop_assert_eq!(Eth::default().with_dst(ours.dst()).with_src(ours.src()).with_ethertype(ours.ethertype()).0, built);
    }

    #[test]
    fn vlan(raw in any::<[u8; 4]>()) {
        let (ours, theirs) = (Vlan(raw), SingleVlanHeaderSlice::from_slice(&raw).unwrap().to_header());
        prop_assert_eq!((ours.pcp(), ours.dei(), ours.vid(), ours.ethertype()), (theirs.pcp.value(), theirs.drop_eligible_indicator, theirs.vlan_id.value(), theirs.ether_type.0));
        let built = SingleVlanHeader { pcp: theirs.pcp, drop_eligible_indicator: ours.dei(), vlan_id: VlanId::try_new(ours.vid()).unwrap(), ether_type: ours.ethertype().into() };
        prop_assert_eq!(Vlan::default().with_pcp(ours.pcp()).with_dei(ours.dei()).with_vid(ours.vid()).with_ethertype(ours.ethertype()).0, built.to_bytes());
    }

    #[test]
    fn icmp_echo(id: u16, seq: u16, payload in proptest::collection::vec(any::<u8>(), 0..64), request: bool) {
        let echo = IcmpEchoHeader { id, seq };
        let kind = if request { Icmpv4Type::EchoRequest(echo) } else { Icmpv4Type::EchoReply(echo) };
        let theirs = Icmpv4Header::with_checksum(kind, &payload);
        let ours = IcmpEcho::default().with_kind(if request { 8 } else { 0 }).with_checksum(theirs.checksum).with_ident(id).with_seq(seq);
        prop_assert_eq!(&ours.0[..], &theirs.to_bytes()[..]);
        prop_assert_eq!((ours.kind(), ours.code(), ours.checksum(), ours.ident(), ours.seq()), (if request { 8 } else { 0 }, 0, theirs.checksum, id, seq));
    }

    #[test]
    fn ipv4(dscp in 0u8..64, ecn in 0u8..4, length in 20u16.., ident: u16, df: bool, mf: bool, fragment in 0u16..8192, ttl: u8, src: u32, dst: u32) {
        let header = Ipv4Header {
            dscp: dscp.try_into().unwrap(), ecn: ecn.try_into().unwrap(), total_len: length, identification: ident, dont_fragment: df, more_fragments: mf,
            fragment_offset: fragment.try_into().unwrap(), time_to_live: ttl, protocol: IpNumber::UDP, header_checksum: 0, source: src.to_be_bytes(), destination: dst.to_be_bytes(),
            options: Default::default(),
        };
        let sum = header.calc_header_checksum();
        let ours = Ipv4::default()
            .with_version(4).with_ihl(5).with_dscp(dscp).with_ecn(ecn).with_total_length(length).with_ident(ident).with_flags((df as u8) << 1 | mf as u8)
            .with_fragment(fragment).with_ttl(ttl).with_protocol(17).with_checksum(sum).with_src(src).with_dst(dst);
        let theirs = Ipv4Header { header_checksum: sum, ..header };
        prop_assert_eq!(&ours.0[..], &theirs.to_bytes()[..]);
        let parsed = Ipv4HeaderSlice::from_slice(&ours.0).unwrap();
        prop_assert_eq!((ours.version(), ours.ihl(), ours.dscp(), ours.ecn()), (parsed.version(), parsed.ihl(), parsed.dcp().value(), parsed.ecn().value()));
        prop_assert_eq!((ours.total_length(), ours.ident(), ours.fragment(), ours.ttl()), (parsed.total_len(), parsed.identification(), parsed.fragments_offset().value(), parsed.ttl()));
        prop_assert_eq!((ours.flags() >> 1 & 1 == 1, ours.flags() & 1 == 1), (parsed.dont_fragment(), parsed.more_fragments()));
        prop_assert_eq!((ours.protocol(), ours.checksum(), ours.src(), ours.dst()), (parsed.protocol().0, parsed.header_checksum(), u32::from(parsed.source_addr()), u32::from(parsed.destination_addr())));
    }

    #[test]
    fn ipv6(dscp in 0u8..64, ecn in 0u8..4, flow in 0u32..1 << 20, length: u16, hops: u8, src: u128, dst: u128) {
        let theirs = Ipv6Header {
            traffic_class: dscp << 2 | ecn, flow_label: flow.try_into().unwrap(), payload_length: length, next_header: IpNumber::UDP, hop_limit: hops,
            source: src.to_be_bytes(), destination: dst.to_be_bytes(),
        };
        let ours = Ipv6::default()
            .with_version(6).with_dscp(dscp).with_ecn(ecn).with_flow_label(flow).with_payload_length(length).with_next_header(17).with_hop_limit(hops).with_src(src).with_dst(dst);
        prop_assert_eq!(ours.0, theirs.to_bytes());
        let parsed = Ipv6HeaderSlice::from_slice(&ours.0).unwrap();
        prop_assert_eq!((ours.version(), ours.dscp() << 2 | ours.ecn(), ours.flow_label(), ours.payload_length()), (parsed.version(), parsed.traffic_class(), parsed.flow_label().value(), parsed.payload_length()));
        prop_assert_eq!((ours.next_header(), ours.hop_limit(), ours.src(), ours.dst()), (parsed.next_header().0, parsed.hop_limit(), u128::from(parsed.source_addr()), u128::from(parsed.destination_addr())));
    }

    #[test]
    fn udp(source: u16, port: u16, length in 8u16.., checksum: u16) {
        let theirs = UdpHeader { source_port: source, destination_port: port, length, checksum };
        let ours = Udp::default().with_src_port(source).with_dst_port(port).with_length(length).with_checksum(checksum);
        prop_assert_eq!(ours.0, theirs.to_bytes());
        let parsed = UdpHeaderSlice::from_slice(&ours.0).unwrap();
        prop_assert_eq!((ours.src_port(), ours.dst_port(), ours.length(), ours.checksum()), (parsed.source_port(), parsed.destination_port(), parsed.length(), parsed.checksum()));
    }
}

/// etherparse 0.16 has no ARP: RFC 826 by hand.
#[test]
fn arp() {
    let bytes = [0, 1, 8, 0, 6, 4, 0, 2, 0x02, 0xfe, 0x11, 0, 0, 1, 10, 0, 0, 1, 0x02, 0, 0x5e, 0, 0, 2, 192, 168, 7, 9];
    let ours = Arp::default().with_htype(1).with_ptype(0x0800).with_hlen(6).with_plen(4).with_oper(2).with_sha(0x02fe_1100_0001).with_spa(0x0a00_0001).with_tha(0x0200_5e00_0002).with_tpa(0xc0a8_0709);
    assert_eq!(ours.0, bytes);
    let read = Arp(bytes);
    assert_eq!((read.htype(), read.ptype(), read.hlen(), read.plen(), read.oper()), (1, 0x0800, 6, 4, 2));
    assert_eq!((read.sha(), read.spa(), read.tha(), read.tpa()), (0x02fe_1100_0001, 0x0a00_0001, 0x0200_5e00_0002, 0xc0a8_0709));
}
