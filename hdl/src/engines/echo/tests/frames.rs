//! Frames, as hosts send them.
use crate::engines::echo::model::{solicited_node, sum};
use etherparse::PacketBuilder;
use ferric_abi::context::AddressCtx;
use ferric_abi::wire::{Arp, Eth, Ipv6, NeighbourMessage};

/// A host on the network; `vid`: it is a tagged one.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    pub mac: u64,
    pub ip: u128,
    pub ipv6: bool,
    pub vid: Option<u16>,
}

pub const CARD4: Host = Host { mac: 0x02fe_1100_0001, ip: 0x0a00_0001, ipv6: false, vid: None };
pub const CARD6: Host = Host { mac: 0x02fe_1100_0001, ip: 0xfe80 << 112 | 0x1234_5678, ipv6: true, vid: None };
pub const TAGGED4: Host = Host { mac: 0x02fe_1100_0002, ip: 0x0a00_0001, ipv6: false, vid: Some(0x805) };
pub const TAGGED6: Host = Host { mac: 0x02fe_1100_0002, ip: 0xfe80 << 112 | 0x77_1234_5678, ipv6: true, vid: Some(5) };
pub const PEER4: Host = Host { mac: 0x0200_5e00_0002, ip: 0x0a00_0002, ipv6: false, vid: None };
pub const PEER6: Host = Host { mac: 0x0200_5e00_0002, ip: 0xfe80 << 112 | 2, ipv6: true, vid: None };

impl Host {
    /// Its line.
    pub fn address(&self) -> AddressCtx {
        let line = AddressCtx([0; 24]).with_ip(self.ip).with_mac(self.mac).with_ipv6(self.ipv6).with_valid(true);
        line.with_vlan(self.vid.is_some()).with_vid(self.vid.unwrap_or(0))
    }

    fn bytes(&self) -> [u8; 6] {
        bytes(self.mac)
    }

    /// A peer of its version.
    pub fn peer(&self) -> Host {
        if self.ipv6 {
            PEER6
        } else {
            PEER4
        }
    }
}

pub fn bytes(mac: u64) -> [u8; 6] {
    mac.to_be_bytes()[2..].try_into().expect("6 bytes")
}

/// With the tag of the card's address, and filled up as a MAC hands it over.
pub fn finished(mut frame: Vec<u8>, vid: Option<u16>) -> Vec<u8> {
    if let Some(vid) = vid {
        let tag = [0x81, 0x00, 0x60 | (vid >> 8) as u8, vid as u8];
        frame.splice(12..12, tag);
    }
    frame.resize(frame.len().max(60), 0xee);
    frame
}

/// An echo request.
pub fn ping(card: Host, data: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    let eth = PacketBuilder::ethernet2(card.peer().bytes(), card.bytes());
    if card.ipv6 {
        let ip = eth.ipv6(PEER6.ip.to_be_bytes(), card.ip.to_be_bytes(), 61);
        ip.icmpv6_echo_request(0x1234, 7).write(&mut frame, data).expect("a frame");
    } else {
        let ip = eth.ipv4((PEER4.ip as u32).to_be_bytes(), (card.ip as u32).to_be_bytes(), 61);
        ip.icmpv4_echo_request(0x1234, 7).write(&mut frame, data).expect("a frame");
    }
    finished(frame, card.vid)
}

fn arp(to: u64, oper: u16, from: Host, tha: u64, tpa: u128, vid: Option<u16>) -> Vec<u8> {
    let eth = Eth::default().with_dst(to).with_src(from.mac).with_ethertype(0x0806);
    let arp = Arp::default().with_htype(1).with_ptype(0x0800).with_hlen(6).with_plen(4).with_oper(oper);
    let arp = arp.with_sha(from.mac).with_spa(from.ip as u32).with_tha(tha).with_tpa(tpa as u32);
    finished([&eth.0[..], &arp.0].concat(), vid)
}

/// The message with its checksum, in its packet, to `to` at `mac`.
pub fn discovery(from: Host, to: u128, mac: u64, message: &[u8], vid: Option<u16>) -> Vec<u8> {
    let eth = Eth::default().with_dst(mac).with_src(from.mac).with_ethertype(0x86dd);
    let ip = Ipv6::default().with_version(6).with_payload_length(message.len() as u16).with_next_header(58).with_hop_limit(255).with_src(from.ip).with_dst(to);
    let mut message = message.to_vec();
    message[2..4].fill(0);
    let pseudo = [&ip.0[8..40], &(message.len() as u32).to_be_bytes(), &[0, 0, 0, 58], &message[..]].concat();
    message[2..4].copy_from_slice(&(!sum(&pseudo)).to_be_bytes());
    finished([&eth.0[..], &ip.0, &message].concat(), vid)
}

/// Somebody asks for the card's MAC address, as is done first.
pub fn who_has(card: Host) -> Vec<u8> {
    if card.ipv6 {
        let (group, mac) = solicited_node(card.ip);
        return discovery(PEER6, group, mac, &solicit(card.ip), card.vid);
    }
    arp(0xffff_ffff_ffff, 1, PEER4, 0, card.ip, card.vid)
}

/// A solicitation with the sender's link-layer address.
pub fn solicit(target: u128) -> [u8; 32] {
    NeighbourMessage::default().with_kind(135).with_target(target).with_option(1).with_option_len(1).with_mac(PEER6.mac).0
}

/// `from` tells the card where it is.
pub fn is_at(from: Host, card: Host) -> Vec<u8> {
    if card.ipv6 {
        let message = NeighbourMessage::default().with_kind(136).with_flags(0x60).with_target(from.ip).with_option(2).with_option_len(1).with_mac(from.mac);
        return discovery(from, card.ip, card.mac, &message.0, card.vid);
    }
    arp(card.mac, 2, from, card.mac, card.ip, card.vid)
}
