//! Frames, as hosts send them.
use crate::engines::echo::model::solicited_node;
use crate::tb::Rng;
use etherparse::PacketBuilder;
use ferric_abi::context::AddressCtx;
use ferric_abi::wire::{Arp, Eth, Ipv6, NeighbourMessage};
use ferric_model::net::sums::{finish, sum};

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
    message[2..4].copy_from_slice(&finish(sum(0, &pseudo)).to_be_bytes());
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

/// Right checksums, as far as the frame goes.
pub fn repair(frame: &mut [u8]) {
    let l3 = if frame[12..14] == [0x81, 0] { 18 } else { 14 };
    if frame.len() < l3 + 48 {
        return;
    }
    let (four, length) = (frame[l3] >> 4 == 4, |at: usize| usize::from(u16::from_be_bytes([frame[l3 + at], frame[l3 + at + 1]])));
    if four {
        let stop = (l3 + length(2)).clamp(l3 + 24, frame.len());
        frame[l3 + 10..l3 + 12].fill(0);
        let check = finish(sum(0, &frame[l3..l3 + 20]));
        frame[l3 + 10..l3 + 12].copy_from_slice(&check.to_be_bytes());
        frame[l3 + 22..l3 + 24].fill(0);
        let check = finish(sum(0, &frame[l3 + 20..stop]));
        frame[l3 + 22..l3 + 24].copy_from_slice(&check.to_be_bytes());
    } else {
        let stop = (l3 + 40 + length(4)).clamp(l3 + 44, frame.len());
        frame[l3 + 42..l3 + 44].fill(0);
        let pseudo = [&frame[l3 + 8..l3 + 40], &((stop - l3 - 40) as u32).to_be_bytes(), &[0, 0, 0, 58], &frame[l3 + 40..stop]].concat();
        let check = finish(sum(0, &pseudo));
        frame[l3 + 42..l3 + 44].copy_from_slice(&check.to_be_bytes());
    }
}

/// What may come, most of it right.
fn any_sound(rng: &mut Rng) -> Vec<u8> {
    let card = [CARD4, CARD6, TAGGED4, TAGGED6][rng.below(4) as usize];
    let len = [rng.below(20), rng.below(120), rng.below(700)][rng.below(3) as usize] as usize;
    let data = rng.bytes(len);
    let (nodes, group) = solicited_node(card.ip);
    match rng.below(14) {
        0..=4 => ping(card, &data),
        5..=6 => who_has(card),
        7 if card.ipv6 => discovery(PEER6, card.ip, [card.mac, group][rng.below(2) as usize], &solicit(card.ip)[..24], card.vid),
        7 => arp(card.mac, 1, PEER4, 0, card.ip, card.vid),
        // Is the address free?
        8 if card.ipv6 => {
            let (nobody, whole) = (Host { ip: 0, ..PEER6 }, [24, 32][rng.below(2) as usize]);
            discovery(nobody, [nodes, card.ip][rng.below(2) as usize], group, &solicit(card.ip)[..whole], card.vid)
        }
        8 => arp(0xffff_ffff_ffff, 1, Host { ip: 0, ..PEER4 }, 0, card.ip, card.vid),
        // Options of all kinds.
        9 if card.ipv6 => {
            let mut message = solicit(card.ip)[..24].to_vec();
            for _ in 0..rng.below(4) {
                let eights = [1, 1, 2, 3, 30, 0][rng.below(6) as usize];
                message.extend([[1, 2, 3, 14][rng.below(4) as usize], eights]);
                message.extend(rng.bytes(usize::from(eights.max(1)) * 8 - 2));
            }
            message.truncate(message.len() - [0, 0, 1, 8][rng.below(4) as usize]);
            discovery(PEER6, nodes, group, &message, card.vid)
        }
        10 if card.ipv6 && rng.percent(50) => {
            // Where it is said that the peer is: in options of all kinds, at addresses that are a station's and others.
            let mut message = is_at(PEER6, card)[54 + 4 * usize::from(card.vid.is_some())..][..24].to_vec();
            for _ in 0..rng.below(3) {
                let mac = [PEER6.mac, 0, 0x0300_5e00_0002, 0x0200_5e00_0003][rng.below(4) as usize];
                message.extend([[2, 2, 1][rng.below(3) as usize], 1]);
                message.extend(bytes(mac));
            }
            discovery(PEER6, card.ip, card.mac, &message, card.vid)
        }
        9 | 10 => is_at(card.peer(), card),
        11 => {
            // To everybody, or to another of the network's addresses.
            let mut frame = ping(card, &data);
            let to = [[0xff; 6], [0x33, 0x33, 0, 0, 0, 1], [0x02, 0xfe, 0x11, 0, 0, 1], [0x02, 0xfe, 0x11, 0, 0, 2]][rng.below(4) as usize];
            frame[..6].copy_from_slice(&to);
            frame
        }
        12 => who_has(Host { ip: card.ip ^ 1 << rng.below(if card.ipv6 { 128 } else { 32 }), ..card }),
        _ => {
            let len = rng.range(14, 300) as usize;
            let mut frame = rng.bytes(len);
            frame[12] = 0x88;
            frame
        }
    }
}

/// What may come: one in two is changed, cut, or longer than it says.
pub fn any(rng: &mut Rng) -> Vec<u8> {
    let mut frame = any_sound(rng);
    if rng.percent(50) {
        return frame;
    }
    for _ in 0..rng.below(3) {
        let at = rng.below(frame.len().min(100) as u64) as usize;
        frame[at] ^= 1 << rng.below(8);
    }
    match rng.below(10) {
        0 => frame.truncate(rng.range(14, frame.len() as u64) as usize),
        1 => {
            let more = rng.below(70) as usize;
            frame.extend(rng.bytes(more));
        }
        _ => {}
    }
    if rng.percent(60) {
        repair(&mut frame);
    }
    frame
}
