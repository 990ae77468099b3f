//! The flow language's matches and actions as OpenFlow text.
use crate::oracle::{GENEVE, OF_GENEVE, OF_VXLAN, PEERS, VXLAN};
use ferric_model::switch::flow::{mac_text, Field, Masked, Match, Step};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Where a rule sends frames to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Port(u8),
    /// Through a tunnel to one of the peers.
    Tunnel {
        geneve: bool,
        peer: usize,
        vni: u32,
    },
}

fn with_mask(value: String, m: &Masked, full: u128, mask: impl FnOnce(u128) -> String) -> String {
    if m.mask == full {
        value
    } else {
        format!("{value}/{}", mask(m.mask))
    }
}

fn ip4(v: u128) -> String {
    Ipv4Addr::from(v as u32).to_string()
}

fn ip6(v: u128) -> String {
    Ipv6Addr::from(v).to_string()
}

/// A match. Tags beyond the first and fields that OpenFlow does not have are left out: the tables here do not have them.
pub fn matches(m: &Match) -> String {
    let mut parts = Vec::new();
    for (field, v) in &m.fields {
        let full = field.full();
        let number = |name: &str| format!("{name}={}", with_mask(format!("{:#x}", v.value), v, full, |k| format!("{k:#x}")));
        let plain = |name: &str| format!("{name}={}", v.value);
        let address4 = |name: &str| format!("{name}={}", with_mask(ip4(v.value), v, full, ip4));
        let address6 = |name: &str| format!("{name}={}", with_mask(ip6(v.value), v, full, ip6));
        let hardware = |name: &str| format!("{name}={}", with_mask(mac_text(v.value as u64), v, full, |k| mac_text(k as u64)));
        match field {
            Field::InPort => {
                let port = match v.value as u32 {
                    VXLAN => OF_VXLAN.into(),
                    GENEVE => OF_GENEVE.into(),
                    n => n,
                };
                parts.push(format!("in_port={port}"));
            }
            Field::TunId => parts.push(plain("tun_id")),
            Field::TunSrc6 => parts.push(address6("tun_ipv6_src")),
            Field::TunSrc => parts.push(address4("tun_src")),
            Field::EthSrc => parts.push(hardware("dl_src")),
            Field::EthDst => parts.push(hardware("dl_dst")),
            Field::EthType => parts.push(number("dl_type")),
            Field::Ip4Src => parts.push(address4("nw_src")),
            Field::Ip4Dst => parts.push(address4("nw_dst")),
            Field::Ip6Src => parts.push(address6("ipv6_src")),
            Field::Ip6Dst => parts.push(address6("ipv6_dst")),
            Field::ArpSip => parts.push(address4("arp_spa")),
            Field::ArpTip => parts.push(address4("arp_tpa")),
            Field::ArpOp => parts.push(plain("arp_op")),
            Field::Ip4Proto | Field::Ip6Proto => parts.push(plain("nw_proto")),
            Field::Ip4Tos | Field::Ip6Tclass => {
                if v.mask & 0xfc == 0xfc {
                    parts.push(format!("ip_dscp={}", v.value >> 2));
                }
                if v.mask & 3 == 3 {
                    parts.push(format!("nw_ecn={}", v.value & 3));
                }
            }
            Field::Ip4Ttl | Field::Ip6Hlimit => parts.push(plain("nw_ttl")),
            Field::Ip4Frag | Field::Ip6Frag => parts.push(format!("ip_frag={}", ["no", "first", "later"][v.value.min(2) as usize])),
            Field::TcpSrc => parts.push(number("tcp_src")),
            Field::TcpDst => parts.push(number("tcp_dst")),
            Field::UdpSrc => parts.push(number("udp_src")),
            Field::UdpDst => parts.push(number("udp_dst")),
            Field::TcpFlags => parts.push(format!("tcp_flags={:#x}/{:#x}", v.value, v.mask)),
            Field::IcmpType => parts.push(plain("icmp_type")),
            Field::IcmpCode => parts.push(plain("icmp_code")),
            Field::Icmp6Type => parts.push(plain("icmpv6_type")),
            Field::Icmp6Code => parts.push(plain("icmpv6_code")),
            _ => {}
        }
    }
    match m.tags.first() {
        None => parts.push("vlan_tci=0x0000/0x1000".into()),
        Some(tag) => {
            let (value, mask) = (tag.vid.value | tag.pcp.value << 13 | 0x1000, tag.vid.mask | tag.pcp.mask << 13 | 0x1000);
            parts.push(format!("vlan_tci={value:#06x}/{mask:#06x}"));
        }
    }
    parts.join(",")
}

/// A destination.
pub fn end(end: &End) -> String {
    match end {
        End::Port(port) => format!("output:{port}"),
        End::Tunnel { geneve, peer, vni } => {
            let (ip, _) = PEERS[*peer];
            let port = if *geneve { OF_GENEVE } else { OF_VXLAN };
            format!("set_field:{vni}->tun_id,set_field:{}->tun_dst,output:{port}", Ipv4Addr::from(ip))
        }
    }
}

/// Changes of a frame.
pub fn change(step: &Step) -> String {
    match step {
        Step::PushVlan { tpid, tci } => format!("push_vlan:{tpid:#06x},set_field:{}->vlan_vid,set_field:{}->vlan_pcp", tci & 0xfff | 0x1000, tci >> 13),
        Step::PopVlan => "pop_vlan".into(),
        Step::Set(fields) => {
            let one = |(field, m): (&Field, &Masked)| match field {
                Field::EthSrc => format!("set_field:{}->eth_src", mac_text(m.value as u64)),
                Field::EthDst => format!("set_field:{}->eth_dst", mac_text(m.value as u64)),
                _ => format!("set_field:{}->ip_dscp", m.value >> 2),
            };
            fields.iter().map(one).collect::<Vec<_>>().join(",")
        }
        other => other.to_string(),
    }
}
