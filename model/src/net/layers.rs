//! Golden model: header bytes from the software codecs.
use super::sums::{finish, sum};
use ferric_abi::context::PathCtx;
use ferric_abi::wire::{ethertype, Eth, Ipv4, Ipv6, Udp, Vlan};

/// Ethernet, tag and IP in front of `length` bytes of `protocol` sent along `path`.
pub fn layers(path: &PathCtx, protocol: u8, length: u16) -> Vec<u8> {
    let mut out = Vec::new();
    put_layers(&mut out, path, protocol, length);
    out
}

/// The same, behind what is in `out`.
pub fn put_layers(out: &mut Vec<u8>, path: &PathCtx, protocol: u8, length: u16) {
    let inner = if path.ipv6() { ethertype::IPV6 } else { ethertype::IPV4 };
    let eth = Eth::default().with_dst(path.dmac()).with_src(path.smac());
    if path.vlan() {
        let tci = path.vlan_tci();
        let tag = Vlan::default().with_pcp((tci >> 13) as u8).with_dei(tci >> 12 & 1 == 1).with_vid(tci & 0xfff);
        out.extend(eth.with_ethertype(ethertype::VLAN).0);
        out.extend(tag.with_ethertype(inner).0);
    } else {
        out.extend(eth.with_ethertype(inner).0);
    }
    if path.ipv6() {
        let ip = Ipv6::default().with_version(6).with_dscp(path.tclass() >> 2).with_ecn(path.tclass() & 3);
        let ip = ip.with_flow_label(path.flow_label()).with_payload_length(length).with_next_header(protocol);
        out.extend(ip.with_hop_limit(path.hop_limit()).with_src(path.sip()).with_dst(path.dip()).0);
    } else {
        let ip = Ipv4::default().with_version(4).with_ihl(5).with_dscp(path.tclass() >> 2).with_ecn(path.tclass() & 3);
        let ip = ip.with_total_length(length + 20).with_flags(2).with_ttl(path.hop_limit()).with_protocol(protocol);
        let ip = ip.with_src(path.sip() as u32).with_dst(path.dip() as u32);
        out.extend(ip.with_checksum(finish(sum(0, &ip.0))).0);
    }
}

/// A UDP header without checksum.
pub fn udp(src_port: u16, dst_port: u16, length: u16) -> [u8; 8] {
    Udp::default().with_src_port(src_port).with_dst_port(dst_port).with_length(length).0
}
