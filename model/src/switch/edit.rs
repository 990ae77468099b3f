//! Changes of a frame that are actions: tags, MAC addresses, time to live, DSCP. Each is for a frame whose headers [`super::layers::parse`] has found.
use super::layers::{Ip, Layers};
use crate::net::sums::update;
use ferric_abi::switch::{tag_op, Verdict};
use ferric_abi::wire::ethertype;

/// A frame, whose headers these are, with all that a verdict orders of these changes. `None`: it names a line of MAC addresses (destination and source) that is not there.
pub fn edited(frame: &[u8], layers: &Layers, verdict: &Verdict, rewrites: &[(u64, u64)]) -> Option<Vec<u8>> {
    let mut frame = frame.to_vec();
    if let Some(ip) = layers.ip() {
        if verdict.dec_ttl() {
            dec_ttl(&mut frame, layers.l3, ip);
        }
        if verdict.write_dscp() {
            set_tos(&mut frame, layers.l3, ip, verdict.dscp() << 2 | ip.tos & 3);
        }
    }
    if verdict.rewrite() != 0 {
        let (dst, src) = *rewrites.get(usize::from(verdict.rewrite()))?;
        set_macs(&mut frame, dst, src);
    }
    match (verdict.tag_op(), layers.tag) {
        (tag_op::PUSH, _) => push_tag(&mut frame, verdict.tag()),
        (tag_op::POP, Some(_)) => pop_tag(&mut frame),
        (tag_op::SET, Some(_)) => set_tag(&mut frame, verdict.tag()),
        _ => {}
    }
    Some(frame)
}

/// Puts an 802.1Q tag in front of the first one.
pub fn push_tag(frame: &mut Vec<u8>, tci: u16) {
    let tag = [ethertype::VLAN.to_be_bytes(), tci.to_be_bytes()].concat();
    frame.splice(12..12, tag);
}

/// Takes the first tag away.
pub fn pop_tag(frame: &mut Vec<u8>) {
    frame.drain(12..16);
}

/// Changes the tag control information of the first tag; its type becomes that of a customer's tag.
pub fn set_tag(frame: &mut [u8], tci: u16) {
    frame[12..14].copy_from_slice(&ethertype::VLAN.to_be_bytes());
    frame[14..16].copy_from_slice(&tci.to_be_bytes());
}

/// Changes both MAC addresses, 48 bits each.
pub fn set_macs(frame: &mut [u8], dst: u64, src: u64) {
    frame[..6].copy_from_slice(&dst.to_be_bytes()[2..]);
    frame[6..12].copy_from_slice(&src.to_be_bytes()[2..]);
}

/// Time to live or hop limit less one, for an IP header at `l3`. The caller has seen that it is above 1.
pub fn dec_ttl(frame: &mut [u8], l3: usize, ip: &Ip) {
    if ip.v6 {
        frame[l3 + 7] = frame[l3 + 7].saturating_sub(1);
    } else {
        let protocol = frame[l3 + 9];
        let (from, to) = (frame[l3 + 8], frame[l3 + 8].saturating_sub(1));
        frame[l3 + 8] = to;
        change_sum(frame, l3, u16::from_be_bytes([from, protocol]), u16::from_be_bytes([to, protocol]));
    }
}

/// DSCP and ECN of an IP header at `l3`.
pub fn set_tos(frame: &mut [u8], l3: usize, ip: &Ip, tos: u8) {
    if ip.v6 {
        frame[l3] = frame[l3] & 0xf0 | tos >> 4;
        frame[l3 + 1] = frame[l3 + 1] & 0x0f | tos << 4;
    } else {
        let (version, from) = (frame[l3], frame[l3 + 1]);
        frame[l3 + 1] = tos;
        change_sum(frame, l3, u16::from_be_bytes([version, from]), u16::from_be_bytes([version, tos]));
    }
}

/// The IPv4 checksum follows one changed word. It is as wrong afterwards as before: a frame with a bad checksum does not become good.
fn change_sum(frame: &mut [u8], l3: usize, from: u16, to: u16) {
    if from == to {
        return;
    }
    let old = u16::from_be_bytes([frame[l3 + 10], frame[l3 + 11]]);
    frame[l3 + 10..l3 + 12].copy_from_slice(&update(old, from, to).to_be_bytes());
}
