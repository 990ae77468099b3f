//! Golden model: header bytes from the software codecs.

use crate::net::layers::{put_layers, udp};
use ferric_abi::context::PathCtx;
use ferric_abi::csr::SPECIAL;
use ferric_abi::special::is_special;
use ferric_abi::wire::{protocol, Aeth, AtomicAckEth, AtomicEth, Bth, Deth, ImmDt, Reth, ROCE_PORT};

/// Bytes of extension headers behind the BTH.
pub const fn ext_len(reth: bool, imm: bool, aeth: bool) -> usize {
    16 * reth as usize + 4 * imm as usize + 4 * aeth as usize
}

/// Bytes from the destination MAC to the end of the last extension header (`ext` bytes of them).
pub const fn header_len(ipv6: bool, vlan: bool, ext: usize) -> usize {
    14 + 4 * vlan as usize + if ipv6 { 40 } else { 20 } + 8 + 12 + ext
}

/// What a `HdrOp` says, in software types.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Op {
    pub slot: u8,
    pub qpn: u32,
    pub opcode: u8,
    pub dest_qpn: u32,
    pub psn: u32,
    pub ack_req: bool,
    pub solicited: bool,
    pub pad: u8,
    pub pay_len: u16,
    /// In front of the RETH.
    pub feth: Option<u32>,
    /// Address, key, length.
    pub reth: Option<(u64, u32, u32)>,
    pub imm: Option<u32>,
    /// Syndrome in the top byte, MSN below.
    pub aeth: Option<u32>,
    /// Address, key, swap or addend, compare.
    pub atomic: Option<(u64, u32, u64, u64)>,
    /// Original value, behind the AETH.
    pub atomic_ack: Option<u64>,
    /// Of a datagram: Q_Key, address word (`WqeHead::raddr`), destination IP address.
    pub deth: Option<(u32, u64, u128)>,
}

impl Op {
    /// Bytes of extension headers.
    pub fn ext(&self) -> usize {
        ext_len(self.reth.is_some(), self.imm.is_some() || self.feth.is_some(), self.aeth.is_some())
            + 28 * usize::from(self.atomic.is_some())
            + 8 * usize::from(self.atomic_ack.is_some())
            + 8 * usize::from(self.deth.is_some())
    }
}

impl Op {
    /// The same with the number by which its queue pair is known to others: special queue pairs are 1 on the wire (`ferric_abi::special::special_queue_pair`).
    pub fn as_heard(&self, log_share: u32) -> Self {
        Self { qpn: if is_special(self.qpn, log_share) { SPECIAL } else { self.qpn }, ..self.clone() }
    }
}

/// The header of `op` sent along `path`.
pub fn header(op: &Op, path: &PathCtx) -> Vec<u8> {
    let mut out = Vec::new();
    put_header(&mut out, op, path);
    out
}

/// The same, behind what is in `out`.
pub fn put_header(out: &mut Vec<u8>, op: &Op, path: &PathCtx) {
    let begin = out.len();
    let mut path = *path;
    if let Some((_, address, dip)) = op.deth {
        path.set_dmac(address & 0xffff_ffff_ffff).set_tclass((address >> 48) as u8).set_hop_limit((address >> 56) as u8).set_dip(dip);
    }
    let udp_len = (8 + 12 + op.ext() + op.pay_len as usize + op.pad as usize + 4) as u16;
    put_layers(out, &path, protocol::UDP, udp_len);
    out.extend(udp(path.udp_sport(), ROCE_PORT, udp_len));
    let bth = Bth::default().with_opcode(op.opcode).with_solicited(op.solicited).with_migreq(true).with_pad(op.pad);
    let bth = bth.with_pkey(path.pkey()).with_dest_qpn(op.dest_qpn).with_ack_req(op.ack_req).with_psn(op.psn);
    out.extend(bth.0);
    if let Some((qkey, ..)) = op.deth {
        let qkey = if qkey >> 31 == 1 { path.qkey() } else { qkey };
        out.extend(Deth::default().with_qkey(qkey).with_src_qpn(op.qpn).0);
    }
    if let Some(feth) = op.feth {
        out.extend(feth.to_be_bytes());
    }
    if let Some((va, rkey, length)) = op.reth {
        out.extend(Reth::default().with_va(va).with_rkey(rkey).with_length(length).0);
    }
    if let Some(imm) = op.imm {
        out.extend(ImmDt::default().with_imm(imm).0);
    }
    if let Some(aeth) = op.aeth {
        out.extend(Aeth::default().with_syndrome((aeth >> 24) as u8).with_msn(aeth & 0xff_ffff).0);
    }
    if let Some(original) = op.atomic_ack {
        out.extend(AtomicAckEth::default().with_original(original).0);
    }
    if let Some((va, rkey, operand, compare)) = op.atomic {
        out.extend(AtomicEth::default().with_va(va).with_rkey(rkey).with_swap_add(operand).with_compare(compare).0);
    }
    debug_assert_eq!(out.len() - begin, header_len(path.ipv6(), path.vlan(), op.ext()));
}
