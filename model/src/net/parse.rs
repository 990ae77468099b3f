//! Golden model of the receive parser: what the first 128 bytes and the length of a frame mean.

use super::icrc::{crc, icrc};
use super::opcode::Headers;
use super::sums::sum;
use ferric_abi::meta::frame_kind;
use ferric_abi::wire::{Aeth, AtomicAckEth, AtomicEth, Bth, Deth, Eth, Feth, ImmDt, Ipv4, Ipv6, Reth, Udp, Vlan};

/// UDP destination port of RoCEv2.
pub const ROCE_PORT: u16 = 4791;
/// Longest frame taken, bytes without FCS: what `RxDesc::pay_len` of a raw frame can say.
pub const MAX_FRAME: usize = 8191;
/// Bytes the parser sees; a shorter frame counts as filled up with zeros.
pub const WINDOW: usize = 128;

/// Why a frame was dropped, in order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop {
    MacError,
    Oversize,
    Malformed,
    BadIcrc,
}

/// A received frame's fields, named and sized as in the gateware's `RxDesc`, without the handle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    pub frame_len: u16,
    pub class: u8,
    pub ecn: u8,
    pub ipv6: bool,
    pub has_vlan: bool,
    pub vlan_tci: u16,
    pub raw: bool,
    pub pay_off: u8,
    pub pay_len: u16,
    pub pad: u8,
    pub opcode: u8,
    pub solicited: bool,
    pub ack_req: bool,
    pub becn: bool,
    pub fecn: bool,
    pub pkey: u16,
    pub dest_qpn: u32,
    pub psn: u32,
    pub va: u64,
    pub rkey: u32,
    pub dma_len: u32,
    pub imm: u32,
    pub aeth: u32,
    pub qkey: u32,
    pub src_qpn: u32,
    pub flow_hash: u32,
    pub operand: u64,
    pub compare: u64,
    pub multicast: bool,
    pub kind: u8,
}

fn at<const N: usize>(window: &[u8; WINDOW], offset: usize) -> [u8; N] {
    std::array::from_fn(|i| window[offset + i])
}

/// Flow hash: the CRC-32 register (see [`crc`]), started at zero, after source address, destination address (each in 16
/// bytes, IPv4 in the first four), source port and destination port as on the wire.
pub fn flow_hash(src: &[u8], dst: &[u8], ports: [u8; 4]) -> u32 {
    let mut bytes = [0; 36];
    bytes[..src.len()].copy_from_slice(src);
    bytes[16..16 + dst.len()].copy_from_slice(dst);
    bytes[32..].copy_from_slice(&ports);
    crc(0, &bytes)
}

/// What becomes of a frame (from its Ethernet header on, without FCS), as long as the cell buffer has room.
pub fn receive(frame: &[u8], mac_error: bool) -> Result<Parsed, Drop> {
    if mac_error {
        return Err(Drop::MacError);
    }
    if frame.len() > MAX_FRAME {
        return Err(Drop::Oversize);
    }
    if frame.len() < Eth::BYTES {
        return Err(Drop::Malformed);
    }
    let mut window = [0; WINDOW];
    let seen = frame.len().min(WINDOW);
    window[..seen].copy_from_slice(&frame[..seen]);
    let mut p = Parsed { frame_len: frame.len() as u16, ..Default::default() };

    // Ethernet
    let mut ethertype = Eth(at(&window, 0)).ethertype();
    let mut l3 = Eth::BYTES;
    if ethertype == 0x8100 {
        let tag = Vlan(at(&window, l3));
        ethertype = tag.ethertype();
        p.has_vlan = true;
        p.vlan_tci = u16::from_be_bytes(at(&window, l3));
        p.class = tag.pcp();
        l3 += Vlan::BYTES;
    }

    // IP
    let (ip4, ip6) = (Ipv4(at(&window, l3)), Ipv6(at(&window, l3)));
    let v4 = ethertype == 0x0800 && ip4.version() == 4 && ip4.ihl() == 5;
    let v6 = ethertype == 0x86dd && ip6.version() == 6;
    p.ipv6 = v6;
    let (l4, protocol, ip_payload, whole) = match (v4, v6) {
        (true, _) => {
            p.ecn = ip4.ecn();
            let whole = ip4.flags() & 1 == 0 && ip4.fragment() == 0;
            (l3 + Ipv4::BYTES, ip4.protocol(), i32::from(ip4.total_length()) - Ipv4::BYTES as i32, whole)
        }
        (_, true) => {
            p.ecn = ip6.ecn();
            (l3 + Ipv6::BYTES, ip6.next_header(), i32::from(ip6.payload_length()), true)
        }
        _ => (l3, 0, 0, false),
    };
    let has_ports = whole && matches!(protocol, 6 | 17);
    let ports = if has_ports { at(&window, l4) } else { [0; 4] };
    if v4 {
        p.flow_hash = flow_hash(&at::<4>(&window, l3 + 12), &at::<4>(&window, l3 + 16), ports);
    } else if v6 {
        p.flow_hash = flow_hash(&at::<16>(&window, l3 + 8), &at::<16>(&window, l3 + 24), ports);
    }

    p.kind = match (v4, v6, protocol) {
        (true, _, 1) if whole => frame_kind::ICMP,
        (_, true, 58) => frame_kind::ICMPV6,
        (false, false, _) if ethertype == 0x0806 => frame_kind::ARP,
        _ => frame_kind::OTHER,
    };

    // UDP
    let udp = Udp(at(&window, l4));
    if !(whole && protocol == 17 && udp.dst_port() == ROCE_PORT) {
        return Ok(Parsed { raw: true, pay_len: p.frame_len, ..p });
    }
    if v4 && sum(0, &ip4.0) != 0xffff || i32::from(udp.length()) != ip_payload {
        return Err(Drop::Malformed);
    }
    let end = l4 + usize::from(udp.length());

    // Transport
    let bth = Bth(at(&window, l4 + Udp::BYTES));
    let headers = Headers::of(bth.opcode());
    let ext = l4 + Udp::BYTES + Bth::BYTES;
    let pay_off = ext + headers.len;
    let Some(pay_len) = end.checked_sub(pay_off + usize::from(bth.pad()) + 4) else {
        return Err(Drop::Malformed);
    };
    if end > frame.len() || bth.tver() != 0 {
        return Err(Drop::Malformed);
    }
    let sent = frame[end - 4..end].try_into().map(u32::from_le_bytes);
    if icrc(frame) != sent.ok() {
        return Err(Drop::BadIcrc);
    }
    p.pay_off = pay_off as u8;
    p.pay_len = pay_len as u16;
    p.pad = bth.pad();
    p.opcode = bth.opcode();
    p.solicited = bth.solicited();
    p.ack_req = bth.ack_req();
    p.becn = bth.becn();
    p.fecn = bth.fecn();
    p.pkey = bth.pkey();
    p.dest_qpn = bth.dest_qpn();
    p.psn = bth.psn();
    let reth = Reth(at(&window, if headers.feth { ext + Feth::BYTES } else { ext }));
    if headers.address {
        (p.va, p.rkey) = (reth.va(), reth.rkey());
    }
    if headers.length {
        p.dma_len = reth.length();
    }
    if headers.deth {
        let deth = Deth(at(&window, ext));
        (p.qkey, p.src_qpn) = (deth.qkey(), deth.src_qpn());
        p.multicast = p.dest_qpn == 0xff_ffff;
        let to = if v4 { u128::from(ip4.dst()) << 96 } else { ip6.dst() };
        (p.operand, p.compare) = (to as u64, (to >> 64) as u64);
    }
    if headers.aeth {
        let aeth = Aeth(at(&window, ext));
        p.aeth = u32::from(aeth.syndrome()) << 24 | aeth.msn();
    }
    if headers.atomic {
        let atomic = AtomicEth(at(&window, ext));
        (p.operand, p.compare) = (atomic.swap_add(), atomic.compare());
    }
    if headers.atomic_ack {
        p.operand = AtomicAckEth(at(&window, ext + Aeth::BYTES)).original();
    }
    if let Some(offset) = headers.imm {
        p.imm = ImmDt(at(&window, ext + offset)).imm();
    }
    Ok(p)
}
