//! Ethernet, 802.1Q, IPv4 or IPv6 in front of a transport's header. Wiring, two choices and the fold of a sum; no state.
use super::{NETWORK, TRANSPORT, TRANSPORT6};
use crate::codes::{header, ip};
use crate::prim::pack::BePack;
use crate::records::{Eth, Ipv4, Ipv6, PathCtx, Vlan};
use ferric_abi::wire;
use ferric_abi::wire::ethertype;
use ferric_hdl_derive::kernel;
use ferric_hdl_derive::BlockNew;
use rust_hdl::prelude::*;

/// All headers of a frame, byte 0 in the low bits, zeros behind `len`.
#[derive(LogicBlock, BlockNew)]
#[given(protocol: u8)]
pub struct Layers {
    pub path: Signal<In, PathCtx>,
    /// Bytes behind the IP header, payload and all.
    pub length: Signal<In, Bits<16>>,
    /// What [`super::sum::Ip4Sum`] makes of both.
    pub total: Signal<In, Bits<20>>,
    /// The transport's headers, from byte [`TRANSPORT`] on, and how many bytes they are.
    pub body: Signal<In, Bits<1024>>,
    pub body_len: Signal<In, Bits<8>>,
    pub image: Signal<Out, Bits<1024>>,
    pub len: Signal<Out, Bits<8>>,
    #[init(BePack::of(&wire::Eth::LAYOUT, 0))]
    eth: BePack<1024, Eth>,
    #[init(BePack::of(&wire::Vlan::LAYOUT, NETWORK))]
    vlan: BePack<1024, Vlan>,
    #[init(BePack::of(&wire::Ipv4::LAYOUT, NETWORK))]
    ip4: BePack<1024, Ipv4>,
    #[init(BePack::of(&wire::Ipv6::LAYOUT, NETWORK))]
    ip6: BePack<1024, Ipv6>,
    #[init(Constant::new(u64::from(protocol).to_bits()))]
    protocol: Constant<Bits<8>>,
    ethertype: Signal<Local, Bits<16>>,
    tci: Signal<Local, Bits<16>>,
    class: Signal<Local, Bits<8>>,
    packet: Signal<Local, Bits<1024>>,
    base: Signal<Local, Bits<8>>,
    total_length: Signal<Local, Bits<16>>,
    fold: Signal<Local, Bits<17>>,
    folded: Signal<Local, Bits<17>>,
    checksum: Signal<Local, Bits<16>>,
}

#[kernel]
impl Logic for Layers {
    #[hdl_gen]
    fn update(&mut self) {
        self.ethertype.next = bits::<16>(ethertype::IPV4);
        self.base.next = bits::<8>(TRANSPORT as u64);
        if self.path.val().ipv6 {
            self.ethertype.next = bits::<16>(ethertype::IPV6);
            self.base.next = bits::<8>(TRANSPORT6 as u64);
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
        // IPv4 checksum
        self.total_length.next = self.length.val() + wire::Ipv4::BYTES as u64;
        self.fold.next = bit_cast::<17, 16>(self.total.val().get_bits::<16>(0)) + bit_cast::<17, 4>(self.total.val().get_bits::<4>(16));
        self.folded.next = self.fold.val();
        self.checksum.next = !(self.folded.val().get_bits::<16>(0) + bit_cast::<16, 1>(self.folded.val().get_bits::<1>(16)));
        self.ip4.x.next.version = bits::<4>(ip::VERSION_4);
        self.ip4.x.next.ihl = bits::<4>(ip::WORDS);
        self.ip4.x.next.dscp = self.class.val().get_bits::<6>(2);
        self.ip4.x.next.ecn = self.class.val().get_bits::<2>(0);
        self.ip4.x.next.total_length = self.total_length.val();
        self.ip4.x.next.ident = bits::<16>(0);
        self.ip4.x.next.flags = bits::<3>(ip::DONT_FRAGMENT);
        self.ip4.x.next.fragment = bits::<13>(0);
        self.ip4.x.next.ttl = self.path.val().hop_limit;
        self.ip4.x.next.protocol = self.protocol.val();
        self.ip4.x.next.checksum = self.checksum.val();
        self.ip4.x.next.src = bit_cast::<32, 128>(self.path.val().sip);
        self.ip4.x.next.dst = bit_cast::<32, 128>(self.path.val().dip);
        self.ip6.x.next.version = bits::<4>(ip::VERSION_6);
        self.ip6.x.next.dscp = self.class.val().get_bits::<6>(2);
        self.ip6.x.next.ecn = self.class.val().get_bits::<2>(0);
        self.ip6.x.next.flow_label = self.path.val().flow_label;
        self.ip6.x.next.payload_length = self.length.val();
        self.ip6.x.next.next_header = self.protocol.val();
        self.ip6.x.next.hop_limit = self.path.val().hop_limit;
        self.ip6.x.next.src = self.path.val().sip;
        self.ip6.x.next.dst = self.path.val().dip;
        self.len.next = self.base.val() + self.body_len.val();
        // Everything from the IP header on, then the tag: 20 and 4 bytes of displacement.
        self.packet.next = self.ip4.y.val() | self.body.val();
        if self.path.val().ipv6 {
            self.packet.next = self.ip6.y.val() | (self.body.val() << 160);
        }
        self.image.next = self.eth.y.val() | self.packet.val();
        if self.path.val().vlan {
            self.image.next = self.eth.y.val() | self.vlan.y.val() | (self.packet.val() << 32);
        }
    }
}
