//! Lays the header fields out as bytes. Wiring and two choices; no state.

use crate::codes::{header, ip};
use crate::msg::HdrOp;
use crate::prim::pack::BePack;
use crate::records::{Aeth, AtomicAckEth, AtomicEth, Bth, Deth, Eth, ImmDt, Ipv4, Ipv6, PathCtx, Reth, Udp, Vlan};
use ferric_abi::wire;
use ferric_abi::wire::{ethertype, protocol, ROCE_PORT};
use ferric_hdl_derive::kernel;
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// Where the IP header is packed (untagged frame), the transport header behind IPv4, and what follows its BTH.
const L3: usize = 14;
const L4: usize = L3 + 20;
const EXT: usize = L4 + 8 + 12;

/// Header bytes of one op, byte 0 in the low bits, zeros behind `len`.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct HeaderImage {
    pub op: Signal<In, HdrOp>,
    pub path: Signal<In, PathCtx>,
    pub udp_len: Signal<In, Bits<16>>,
    /// IPv4 total length and header checksum.
    pub total_length: Signal<In, Bits<16>>,
    pub checksum: Signal<In, Bits<16>>,
    pub image: Signal<Out, Bits<1024>>,
    pub len: Signal<Out, Bits<8>>,
    #[init(BePack::of(&wire::Eth::LAYOUT, 0))]
    eth: BePack<1024, Eth>,
    #[init(BePack::of(&wire::Vlan::LAYOUT, 14))]
    vlan: BePack<1024, Vlan>,
    #[init(BePack::of(&wire::Ipv4::LAYOUT, L3))]
    ip4: BePack<1024, Ipv4>,
    #[init(BePack::of(&wire::Ipv6::LAYOUT, L3))]
    ip6: BePack<1024, Ipv6>,
    #[init(BePack::of(&wire::Udp::LAYOUT, L4))]
    udp: BePack<1024, Udp>,
    #[init(BePack::of(&wire::Bth::LAYOUT, L4 + 8))]
    bth: BePack<1024, Bth>,
    #[init(BePack::of(&wire::Reth::LAYOUT, EXT))]
    reth: BePack<1024, Reth>,
    #[init(BePack::of(&wire::Aeth::LAYOUT, EXT))]
    aeth: BePack<1024, Aeth>,
    #[init(BePack::of(&wire::AtomicEth::LAYOUT, EXT))]
    atomic: BePack<1024, AtomicEth>,
    #[init(BePack::of(&wire::AtomicAckEth::LAYOUT, EXT + 4))]
    atomic_ack: BePack<1024, AtomicAckEth>,
    #[init(BePack::of(&wire::Deth::LAYOUT, EXT))]
    deth: BePack<1024, Deth>,
    #[init(BePack::of(&wire::ImmDt::LAYOUT, EXT + 8))]
    imm_deth: BePack<1024, ImmDt>,
    #[init(BePack::of(&wire::ImmDt::LAYOUT, EXT))]
    imm: BePack<1024, ImmDt>,
    #[init(BePack::of(&wire::ImmDt::LAYOUT, EXT + 16))]
    imm_reth: BePack<1024, ImmDt>,
    ethertype: Signal<Local, Bits<16>>,
    aeth_word: Signal<Local, Bits<32>>,
    tci: Signal<Local, Bits<16>>,
    class: Signal<Local, Bits<8>>,
    ext: Signal<Local, Bits<1024>>,
    tail: Signal<Local, Bits<1024>>,
    packet: Signal<Local, Bits<1024>>,
    base: Signal<Local, Bits<8>>,
    ext_len: Signal<Local, Bits<8>>,
}

#[kernel]
impl Logic for HeaderImage {
    #[hdl_gen]
    fn update(&mut self) {
        self.ethertype.next = bits::<16>(ethertype::IPV4);
        self.base.next = bits::<8>(header::ROCE4);
        if self.path.val().ipv6 {
            self.ethertype.next = bits::<16>(ethertype::IPV6);
            self.base.next = bits::<8>(header::ROCE6);
        }
        self.eth.x.next.dst = self.path.val().dmac;
        self.eth.x.next.src = self.path.val().smac;
        self.eth.x.next.ethertype = self.ethertype.val();
        if self.path.val().vlan {
            self.eth.x.next.ethertype = bits::<16>(ethertype::VLAN);
            self.base.next = self.base.val() + header::VLAN;
        }
        self.tci.next = self.path.val().vlan_tci;
        self.vlan.x.next.vid = self.tci.val().get_bits::<12>(0);
        self.vlan.x.next.dei = self.tci.val().get_bit(12);
        self.vlan.x.next.pcp = self.tci.val().get_bits::<3>(13);
        self.vlan.x.next.ethertype = self.ethertype.val();
        self.class.next = self.path.val().tclass;
        self.ip4.x.next.version = bits::<4>(ip::VERSION_4);
        self.ip4.x.next.ihl = bits::<4>(ip::WORDS);
        self.ip4.x.next.dscp = self.class.val().get_bits::<6>(2);
        self.ip4.x.next.ecn = self.class.val().get_bits::<2>(0);
        self.ip4.x.next.total_length = self.total_length.val();
        self.ip4.x.next.ident = bits::<16>(0);
        self.ip4.x.next.flags = bits::<3>(ip::DONT_FRAGMENT);
        self.ip4.x.next.fragment = bits::<13>(0);
        self.ip4.x.next.ttl = self.path.val().hop_limit;
        self.ip4.x.next.protocol = bits::<8>(protocol::UDP);
        self.ip4.x.next.checksum = self.checksum.val();
        self.ip4.x.next.src = bit_cast::<32, 128>(self.path.val().sip);
        self.ip4.x.next.dst = bit_cast::<32, 128>(self.path.val().dip);
        self.ip6.x.next.version = bits::<4>(ip::VERSION_6);
        self.ip6.x.next.dscp = self.class.val().get_bits::<6>(2);
        self.ip6.x.next.ecn = self.class.val().get_bits::<2>(0);
        self.ip6.x.next.flow_label = self.path.val().flow_label;
        self.ip6.x.next.payload_length = self.udp_len.val();
        self.ip6.x.next.next_header = bits::<8>(protocol::UDP);
        self.ip6.x.next.hop_limit = self.path.val().hop_limit;
        self.ip6.x.next.src = self.path.val().sip;
        self.ip6.x.next.dst = self.path.val().dip;
        self.udp.x.next.src_port = self.path.val().udp_sport;
        self.udp.x.next.dst_port = bits::<16>(ROCE_PORT);
        self.udp.x.next.length = self.udp_len.val();
        self.udp.x.next.checksum = bits::<16>(0);
        self.bth.x.next.opcode = self.op.val().opcode;
        self.bth.x.next.solicited = self.op.val().solicited;
        self.bth.x.next.migreq = true;
        self.bth.x.next.pad = self.op.val().pad;
        self.bth.x.next.tver = bits::<4>(0);
        self.bth.x.next.pkey = self.path.val().pkey;
        self.bth.x.next.fecn = false;
        self.bth.x.next.becn = false;
        self.bth.x.next.rsvd0 = bits::<6>(0);
        self.bth.x.next.dest_qpn = self.op.val().dest_qpn;
        self.bth.x.next.ack_req = self.op.val().ack_req;
        self.bth.x.next.rsvd1 = bits::<7>(0);
        self.bth.x.next.psn = self.op.val().psn;
        self.reth.x.next.va = self.op.val().raddr;
        self.reth.x.next.rkey = self.op.val().rkey;
        self.reth.x.next.length = self.op.val().dma_len;
        self.aeth_word.next = self.op.val().aeth;
        self.aeth.x.next.syndrome = self.aeth_word.val().get_bits::<8>(24);
        self.aeth.x.next.msn = self.aeth_word.val().get_bits::<24>(0);
        self.atomic.x.next.va = self.op.val().raddr;
        self.atomic.x.next.rkey = self.op.val().rkey;
        self.atomic.x.next.swap_add = self.op.val().operand;
        self.atomic.x.next.compare = self.op.val().compare;
        self.atomic_ack.x.next.original = self.op.val().operand;
        self.imm.x.next.imm = self.op.val().imm;
        self.imm_reth.x.next.imm = self.op.val().imm;
        self.imm_deth.x.next.imm = self.op.val().imm;
        self.deth.x.next.qkey = self.op.val().rkey;
        self.deth.x.next.rsvd0 = bits::<8>(0);
        self.deth.x.next.src_qpn = self.op.val().qpn;
        // Extension headers
        self.ext.next = bits::<1024>(0);
        self.ext_len.next = bits::<8>(0);
        if self.op.val().has_reth {
            self.ext.next = self.reth.y.val();
            self.ext_len.next = bits::<8>(wire::Reth::BYTES as u64);
            if self.op.val().has_imm {
                self.ext.next = self.reth.y.val() | self.imm_reth.y.val();
                self.ext_len.next = bits::<8>((wire::Reth::BYTES + wire::ImmDt::BYTES) as u64);
            }
        } else if self.op.val().has_deth {
            self.ext.next = self.deth.y.val();
            self.ext_len.next = bits::<8>(wire::Deth::BYTES as u64);
            if self.op.val().has_imm {
                self.ext.next = self.deth.y.val() | self.imm_deth.y.val();
                self.ext_len.next = bits::<8>((wire::Deth::BYTES + wire::ImmDt::BYTES) as u64);
            }
        } else if self.op.val().has_imm {
            self.ext.next = self.imm.y.val();
            self.ext_len.next = bits::<8>(wire::ImmDt::BYTES as u64);
        } else if self.op.val().has_aeth {
            self.ext.next = self.aeth.y.val();
            self.ext_len.next = bits::<8>(wire::Aeth::BYTES as u64);
            if self.op.val().has_atomic_ack {
                self.ext.next = self.aeth.y.val() | self.atomic_ack.y.val();
                self.ext_len.next = bits::<8>((wire::Aeth::BYTES + wire::AtomicAckEth::BYTES) as u64);
            }
        } else if self.op.val().has_atomic {
            self.ext.next = self.atomic.y.val();
            self.ext_len.next = bits::<8>(wire::AtomicEth::BYTES as u64);
        }
        self.len.next = self.base.val() + self.ext_len.val();
        // Everything from the IP header on, then the tag: 20 and 4 bytes of displacement.
        self.tail.next = self.udp.y.val() | self.bth.y.val() | self.ext.val();
        self.packet.next = self.ip4.y.val() | self.tail.val();
        if self.path.val().ipv6 {
            self.packet.next = self.ip6.y.val() | (self.tail.val() << 160);
        }
        self.image.next = self.eth.y.val() | self.packet.val();
        if self.path.val().vlan {
            self.image.next = self.eth.y.val() | self.vlan.y.val() | (self.packet.val() << 32);
        }
    }
}
