//! The outer header in front of a frame (gateware: `wrap`): a line of the encapsulation table and what is filled in for each frame.
use super::layers::{Fragment, Layers, Upper};
use crate::net::parse::flow_hash;
use crate::net::sums::{finish, fold, sum};
use ferric_abi::switch::{source_port, Encap};
use ferric_abi::wire::protocol;

/// Bytes that an outer header has at most.
pub const LONGEST: usize = 96;

/// A header that cannot be a line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadHeader {
    /// Longer than [`LONGEST`], or without room for IP and UDP.
    Length,
    /// No IP header behind Ethernet and at most one tag, or an IPv4 header with options.
    NoIp,
    /// The IP header's protocol is not UDP.
    NoUdp,
}

/// The line for an outer header as it goes out, from Ethernet to the tunnel's header. Length fields, checksums and ECN in it do not count.
pub fn line(header: &[u8], uplink: u8) -> Result<Encap, BadHeader> {
    if header.len() > LONGEST {
        return Err(BadHeader::Length);
    }
    let l3 = if header.get(12..14) == Some(&[0x81, 0x00]) { 18 } else { 14 };
    let ipv6 = match header.get(l3 - 2..l3 + 1) {
        Some([0x08, 0x00, 0x45]) => false,
        Some([0x86, 0xdd, version]) if version >> 4 == 6 => true,
        _ => return Err(BadHeader::NoIp),
    };
    let (l4, protocol) = if ipv6 { (l3 + 40, l3 + 6) } else { (l3 + 20, l3 + 9) };
    if header.len() < l4 + 16 {
        return Err(BadHeader::Length);
    }
    if header[protocol] != 17 {
        return Err(BadHeader::NoUdp);
    }
    let mut encap = Encap::default().with_length(header.len() as u8).with_l3_offset(l3 as u8).with_ipv6(ipv6).with_uplink(uplink).with_valid(true);
    let bytes = &mut encap.0[..LONGEST];
    bytes[..header.len()].copy_from_slice(header);
    bytes[l4 + 4..l4 + 8].fill(0);
    if ipv6 {
        bytes[l3 + 4..l3 + 6].fill(0);
        bytes[l3 + 1] &= 0xcf;
    } else {
        bytes[l3 + 2..l3 + 4].fill(0);
        bytes[l3 + 10..l3 + 12].fill(0);
        bytes[l3 + 1] &= 0xfc;
        let partial = sum(0, &bytes[l3..l3 + 20]) as u16;
        encap.set_checksum(partial);
    }
    Ok(encap)
}

/// Source port by the inner flow: one of 16,384 from 0xC000 on (RFC 7348 section 5). Frames without IP use their MAC addresses.
pub fn entropy(inner: &Layers) -> u16 {
    let hash = match inner.upper {
        Upper::Ip(ip) => {
            // The ports do not count where a fragment may lack them, so that all fragments of a datagram take one way, nor behind options and extension headers.
            let has_ports = matches!(ip.proto, protocol::TCP | protocol::UDP) && ip.fragment == Fragment::Whole;
            let right_behind = ip.l4 == inner.l3 + if ip.v6 { 40 } else { 20 };
            let ports = if has_ports && right_behind { inner.ports } else { (0, 0) };
            let ports = [ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat();
            flow_hash(&ip.src.to_be_bytes(), &ip.dst.to_be_bytes(), [ports[0], ports[1], ports[2], ports[3]])
        }
        _ => flow_hash(&inner.smac.to_be_bytes(), &inner.dmac.to_be_bytes(), [0; 4]),
    };
    0xc000 | (hash ^ hash >> 14 ^ hash >> 28) as u16 & 0x3fff
}

/// `frame` inside its outer header. `inner` are its headers as they are now. `None`: the lengths do not fit into 16 bits.
pub fn wrap(encap: &Encap, frame: &[u8], inner: &Layers) -> Option<Vec<u8>> {
    let (length, l3, v6) = (usize::from(encap.length()), usize::from(encap.l3_offset()), encap.ipv6());
    let l4 = l3 + if v6 { 40 } else { 20 };
    let mut out = [&encap.0[..length], frame].concat();
    let udp = u16::try_from(out.len() - l4).ok()?;
    let total = u16::try_from(out.len() - l3).ok()?;
    let ip = inner.ip();
    let (tos, ttl) = ip.map_or((0, None), |ip| (ip.tos, Some(ip.ttl)));
    let ttl = ttl.filter(|_| encap.copy_ttl());
    let mask = if encap.copy_dscp() { 0xff } else { 3 };
    if v6 {
        let old = out[l3] << 4 | out[l3 + 1] >> 4;
        let new = old & !mask & !3 | tos & mask;
        out[l3] = out[l3] & 0xf0 | new >> 4;
        out[l3 + 1] = out[l3 + 1] & 0x0f | new << 4;
        out[l3 + 4..l3 + 6].copy_from_slice(&udp.to_be_bytes());
        out[l3 + 7] = ttl.unwrap_or(out[l3 + 7]);
    } else {
        // The partial sum is of the header in the table; what changes is added to it.
        let (old_tos, old_ttl) = (out[l3 + 1], out[l3 + 8]);
        let new_tos = old_tos & !mask & !3 | tos & mask;
        let new_ttl = ttl.unwrap_or(old_ttl);
        out[l3 + 1] = new_tos;
        out[l3 + 2..l3 + 4].copy_from_slice(&total.to_be_bytes());
        out[l3 + 8] = new_ttl;
        let changes = u32::from(!u16::from(old_tos)) + u32::from(new_tos) + u32::from(!(u16::from(old_ttl) << 8)) + (u32::from(new_ttl) << 8);
        let header = finish(u32::from(encap.checksum()) + u32::from(total) + fold(changes));
        out[l3 + 10..l3 + 12].copy_from_slice(&header.to_be_bytes());
    }
    if encap.source_port() == source_port::ENTROPY {
        out[l4..l4 + 2].copy_from_slice(&entropy(inner).to_be_bytes());
    }
    out[l4 + 4..l4 + 6].copy_from_slice(&udp.to_be_bytes());
    Some(out)
}
