//! The key that tables are asked with (SWITCH.md section 7): 488 bits, declared in `ferric_abi::switch`.
use super::layers::{Layers, Upper};
use ferric_abi::csr::{FUNCTION_PORTS, WIRE_PORT};
use ferric_abi::switch::FlowKey;

/// Where a frame came from, as far as the key knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Virtual port.
    pub port: u8,
    /// Bridge domain, 12 bits.
    pub domain: u16,
    /// Tunnel endpoint at the other side, 12 bits; 0: through no tunnel.
    pub remote: u16,
    /// The configured Geneve option was there.
    pub geneve_option: bool,
}

impl Origin {
    /// Of a frame as a card receives it: `function` as [`crate::net::networks::Through::bits`] has it if it came through a `tunnel`, or its sender's network has one; `sender`: the function of this card that has
    /// sent it and the number of that one's network, if it did not come off the wire. A network's bridge domain is its number and 1, the same number is the other end of its tunnel.
    pub fn received(tunnel: bool, function: u16, sender: Option<(u16, u16)>) -> Self {
        let network = sender.map_or(function & crate::net::networks::FUNCTION, |(_, network)| network);
        let domain = if tunnel { network + 1 } else { 0 };
        let (port, remote) = match sender {
            Some((function, _)) => (FUNCTION_PORTS as u8 + function as u8, 0),
            None => (WIRE_PORT as u8, domain),
        };
        Self { port, domain, remote, geneve_option: false }
    }
}

/// The key of a frame.
pub fn key(layers: &Layers, origin: Origin) -> FlowKey {
    let mut key = FlowKey::default()
        .with_in_port(origin.port)
        .with_domain(origin.domain)
        .with_remote(origin.remote)
        .with_geneve_option(origin.geneve_option)
        .with_dmac(layers.dmac)
        .with_smac(layers.smac)
        .with_ethertype(layers.ethertype)
        .with_second_tag(layers.second)
        .with_service_tag(layers.service)
        .with_src_port(layers.ports.0)
        .with_dst_port(layers.ports.1)
        .with_tcp_flags(layers.tcp_flags as u8);
    if let Some(tag) = layers.tag {
        key.set_tag_present(true).set_tag_vid(tag & 0xfff).set_tag_pcp((tag >> 13) as u8);
    }
    match layers.upper {
        Upper::Other => {}
        Upper::Arp(arp) => {
            key.set_proto(arp.op).set_src(arp.sender.into()).set_dst(arp.target.into());
        }
        Upper::Ip(ip) => {
            key.set_proto(ip.proto).set_dscp(ip.tos >> 2).set_ecn(ip.tos & 3).set_fragment(ip.fragment as u8);
            key.set_ttl_class(ip.ttl.min(2)).set_src(ip.src).set_dst(ip.dst);
        }
    }
    key
}

/// `key` where `mask` has ones, zero elsewhere.
pub fn masked(key: &FlowKey, mask: &FlowKey) -> FlowKey {
    FlowKey(std::array::from_fn(|i| key.0[i] & mask.0[i]))
}
