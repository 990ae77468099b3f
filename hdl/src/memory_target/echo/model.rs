//! What the card answers to a frame: ARP (RFC 826) and ICMP echo (RFC 792, RFC 1122 3.2.2.6), in software.
use crate::memory_target::model::{checksum, Station};
use ferric_abi::wire::{Arp, Eth, IcmpEcho, Ipv4};

/// What becomes of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Not a request for the card.
    Ignored,
    /// A request for the card that is not as the standards say, or too long.
    Malformed,
    /// The answer.
    Answered(Vec<u8>),
}

/// Bytes of the longest frame that is answered.
pub const LONGEST: usize = 2048;
/// Frames of fewer bytes are not looked at; a MAC does not let them pass (64 with FCS).
pub const SHORTEST: usize = 49;

fn part<const N: usize>(frame: &[u8], at: usize) -> [u8; N] {
    frame[at..at + N].try_into().expect("inside")
}

/// Does `card` answer `frame`, which the MAC found to be right, and what?
pub fn judge(frame: &[u8], card: Station) -> Verdict {
    if frame.len() < SHORTEST {
        return Verdict::Ignored;
    }
    let eth = Eth(part(frame, 0));
    match eth.ethertype() {
        0x0806 => arp(eth, Arp(part(frame, 14)), card),
        0x0800 => echo(frame, eth, card),
        _ => Verdict::Ignored,
    }
}

/// First byte's lowest bit: for several stations.
fn group(mac: u64) -> bool {
    mac >> 40 & 1 == 1
}

fn arp(eth: Eth, request: Arp, card: Station) -> Verdict {
    let heard = eth.dst() == card.mac || eth.dst() == 0xffff_ffff_ffff;
    if !heard || request.oper() != 1 || request.tpa() != card.ip {
        return Verdict::Ignored;
    }
    if (request.htype(), request.ptype(), request.hlen(), request.plen()) != (1, 0x0800, 6, 4) || group(request.sha()) {
        return Verdict::Malformed;
    }
    let eth = Eth::default().with_dst(request.sha()).with_src(card.mac).with_ethertype(0x0806);
    let answer = request.with_oper(2).with_sha(card.mac).with_spa(card.ip).with_tha(request.sha()).with_tpa(request.spa());
    Verdict::Answered([&eth.0[..], &answer.0].concat())
}

fn echo(frame: &[u8], eth: Eth, card: Station) -> Verdict {
    let (ip, icmp) = (Ipv4(part(frame, 14)), IcmpEcho(part(frame, 34)));
    if eth.dst() != card.mac || ip.protocol() != 1 || ip.dst() != card.ip || (ip.ihl() == 5 && ip.fragment() == 0 && icmp.kind() != 8) {
        return Verdict::Ignored;
    }
    let length = usize::from(ip.total_length());
    let header = ip.version() == 4 && ip.ihl() == 5 && ip.flags() & 1 == 0 && ip.fragment() == 0 && checksum(&ip.0) == 0;
    // Nobody is 0.0.0.0, a group, or of class E.
    let sender = ip.src() != 0 && ip.src() >> 29 != 7 && !group(eth.src());
    if !header || !sender || length < 28 || 14 + length > frame.len() || frame.len() > LONGEST || icmp.code() != 0 || checksum(&frame[34..14 + length]) != 0 {
        return Verdict::Malformed;
    }
    let eth = Eth::default().with_dst(eth.src()).with_src(card.mac).with_ethertype(0x0800);
    let ip = Ipv4::default().with_version(4).with_ihl(5).with_dscp(ip.dscp()).with_total_length(ip.total_length()).with_flags(2).with_ttl(64).with_protocol(1).with_src(card.ip).with_dst(ip.src());
    let ip = ip.with_checksum(checksum(&ip.0));
    // Type 8 becomes 0 (RFC 1624).
    let sum = u32::from(icmp.checksum()) + 0x0800;
    let icmp = icmp.with_kind(0).with_checksum((sum + (sum >> 16)) as u16);
    Verdict::Answered([&eth.0[..], &ip.0, &icmp.0, &frame[42..14 + length]].concat())
}
