//! Second and third stage: ARP, IP with what may follow it, ports; the key.

use super::ether::{Ether, L3};
use super::{Facts, Old, Origin};
use crate::codes::ip;
use crate::prim::lookup::Lookup;
use crate::prim::mux::OneHotMux;
use crate::prim::pack::{BePick, Slice};
use crate::records::{Arp, FlowKey, Ipv4, Ipv6};
use crate::switch::be16;
use ferric_abi::wire::{self, ethertype, protocol, ROCE_PORT};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// IPv6 extension headers.
const HOP_BY_HOP: u64 = 0;
const ROUTING: u64 = 43;
const FRAGMENT: u64 = 44;
const ESP: u64 = 50;
const AUTHENTICATION: u64 = 51;
const DESTINATION: u64 = 60;
const MOBILITY: u64 = 135;

/// Places behind an IP header where the next layer may begin: 20, 24 and so on up to 60.
const PLACES: usize = 11;
/// As sets of one: behind an IPv6 header with nothing, one and two headers of eight bytes behind it.
const BEHIND_6: u64 = 1 << 5;
const BEHIND_6_AND_ONE: u64 = 1 << 7;
const BEHIND_6_AND_TWO: u64 = 1 << 9;
/// Bytes of one extension header, and of two.
const EXTENSION: u64 = 8;
const EXTENSIONS: u64 = 16;
/// What is looked at of the next layer: two words and the flags of TCP.
const UPPER: usize = 16 + 16 + 8;

/// Bytes that TCP needs at least, and UDP, ICMP and ICMPv6.
const LEAST_TCP: u64 = 20;
const LEAST: u64 = 8;
/// ARP of Ethernet and IPv4.
const ETHERNET: u64 = 1;
const MAC_BYTES: u64 = 6;
const IP_BYTES: u64 = 4;
const ARP_BYTES: u64 = wire::Arp::BYTES as u64;
const IPV6_BYTES: u64 = wire::Ipv6::BYTES as u64;

/// Values in [`FlowKey`].
const FIRST: u64 = 1;
const LATER: u64 = 2;
const MORE: u64 = 2;
/// Bits of ECN, below the DSCP.
const ECN_BITS: u64 = 2;
/// Packet classes of `ferric_model::switch::tables`.
const CLASS_ARP: u64 = 1;
const CLASS_4: u64 = 2;
const CLASS_6: u64 = 3;

/// Places of the next layer's bytes: both words and the flags, behind a header of 20 + 4 * `place` bytes.
fn upper(place: usize) -> BePick<L3, Bits<UPPER>> {
    let at = 8 * (20 + 4 * place);
    let word = |byte: usize| (0..16).map(move |bit| at + 8 * (byte + 1 - bit / 8) + bit % 8);
    BePick::new(word(0).chain(word(2)).chain((0..8).map(|bit| at + 8 * 13 + bit)).collect())
}

/// One frame a cycle.
#[derive(LogicBlock, BlockDefault)]
pub(in crate::switch) struct Layers {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub valid: Signal<In, Bit>,
    pub ether: Signal<In, Ether>,
    pub from: Signal<In, Origin>,
    pub l3: Signal<In, Bits<L3>>,
    /// Two cycles later.
    pub key_valid: Signal<Out, Bit>,
    pub key: Signal<Out, FlowKey>,
    pub facts: Signal<Out, Facts>,
    // Stage 2: addresses, and where the next layer is
    #[init(BePick::of(&wire::Ipv4::LAYOUT, 0))]
    ip4: BePick<L3, Ipv4>,
    #[init(BePick::of(&wire::Ipv6::LAYOUT, 0))]
    ip6: BePick<L3, Ipv6>,
    #[init(BePick::of(&wire::Arp::LAYOUT, 0))]
    arp: BePick<L3, Arp>,
    #[init([40, 48].map(|at| Slice::new(8 * at)))]
    nexts: [Slice<L3, 8>; 2],
    #[init(Slice::new(8 * 41))]
    hop_length: Slice<L3, 8>,
    #[init([42, 50].map(be16))]
    offsets: [BePick<L3, Bits<16>>; 2],
    #[init(std::array::from_fn(upper))]
    uppers: [BePick<L3, Bits<UPPER>>; PLACES],
    upper: OneHotMux<Bits<UPPER>, PLACES>,
    #[init(Lookup::of(|words| if words < 5 { 0 } else { 1 << (words - 5) }))]
    behind4: Lookup<4, PLACES>,
    #[init([0, 1, 2].map(|tags| Constant::new(((14 + 4 * tags) as u64).to_bits())))]
    fronts: [Constant<Bits<17>>; 3],
    /// With the IPv6 header.
    #[init([0, 1, 2].map(|tags| Constant::new(((14 + 4 * tags) as u64 + IPV6_BYTES).to_bits())))]
    fronts6: [Constant<Bits<17>>; 3],
    hop: Signal<Local, Bit>,
    part: Signal<Local, Bit>,
    word: Signal<Local, Bits<16>>,
    next: Signal<Local, Bits<8>>,
    odd: Signal<Local, Bit>,
    place6: Signal<Local, Bits<PLACES>>,
    room6: Signal<Local, Bits<9>>,
    long: Signal<Local, Bit>,
    base: Signal<Local, Bits<17>>,
    base6: Signal<Local, Bits<17>>,
    foreign: Signal<Local, Bit>,
    ttl: Signal<Local, Bits<8>>,
    valid2: DFF<Bit>,
    ether2: DFF<Ether>,
    from2: DFF<Origin>,
    deep2: DFF<Bit>,
    proto2: DFF<Bits<8>>,
    dscp2: DFF<Bits<6>>,
    ecn2: DFF<Bits<2>>,
    fragment2: DFF<Bits<2>>,
    ttl2: DFF<Bits<2>>,
    old_ttl2: DFF<Bits<8>>,
    checksum2: DFF<Bits<16>>,
    src2: DFF<Bits<128>>,
    dst2: DFF<Bits<128>>,
    hardware2: DFF<Bits<48>>,
    upper2: DFF<Bits<UPPER>>,
    /// Bytes of the packet: of IPv4 all, of IPv6 those behind its header; and how many of these the headers have.
    bytes2: DFF<Bits<16>>,
    headers2: DFF<Bits<8>>,
    stop2: DFF<Bits<17>>,
    // Stage 3
    left: Signal<Local, Bits<17>>,
    tcp: Signal<Local, Bit>,
    udp: Signal<Local, Bit>,
    icmp: Signal<Local, Bit>,
    is_ip: Signal<Local, Bit>,
    has_ports: Signal<Local, Bit>,
    extension: Signal<Local, Bit>,
    old: Signal<Local, Old>,
    later: Signal<Local, Bit>,
    short: Signal<Local, Bit>,
    valid3: DFF<Bit>,
    key3: DFF<FlowKey>,
    facts3: DFF<Facts>,
}

#[kernel]
impl Logic for Layers {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, valid2, ether2, from2, deep2, proto2, dscp2, ecn2, fragment2, ttl2, src2, dst2, hardware2, upper2, bytes2, headers2, stop2);
        dff_setup!(self, clock, valid3, key3, facts3, old_ttl2, checksum2);
        self.ip4.x.next = self.l3.val();
        self.ip6.x.next = self.l3.val();
        self.arp.x.next = self.l3.val();
        for i in 0..2 {
            self.nexts[i].x.next = self.l3.val();
            self.offsets[i].x.next = self.l3.val();
        }
        self.hop_length.x.next = self.l3.val();
        // Behind an IPv6 header: hop by hop options, then a fragment header, or one of both.
        self.hop.next = self.ip6.y.val().next_header == HOP_BY_HOP;
        self.part.next = self.ip6.y.val().next_header == FRAGMENT;
        self.word.next = self.offsets[0].y.val();
        self.next.next = self.ip6.y.val().next_header;
        self.place6.next = bits::<PLACES>(BEHIND_6);
        self.headers2.d.next = bits::<8>(0);
        if self.part.val() {
            self.next.next = self.nexts[0].y.val();
            self.place6.next = bits::<PLACES>(BEHIND_6_AND_ONE);
            self.headers2.d.next = bits::<8>(EXTENSION);
        }
        if self.hop.val() {
            self.part.next = self.nexts[0].y.val() == FRAGMENT;
            self.word.next = self.offsets[1].y.val();
            self.next.next = self.nexts[0].y.val();
            self.place6.next = bits::<PLACES>(BEHIND_6_AND_ONE);
            self.headers2.d.next = bits::<8>(EXTENSION);
            if self.nexts[0].y.val() == FRAGMENT {
                self.next.next = self.nexts[1].y.val();
                self.place6.next = bits::<PLACES>(BEHIND_6_AND_TWO);
                self.headers2.d.next = bits::<8>(EXTENSIONS);
            }
        }
        // Open vSwitch and RFC 8200 differ about these bits.
        self.odd.next = (self.part.val() & self.word.val().get_bits::<2>(1).any()) | (self.hop.val() & self.hop_length.y.val().any());
        self.behind4.x.next = self.ip4.y.val().ihl;
        self.upper.sel.next = self.behind4.y.val();
        if self.ether.val().v6 {
            self.upper.sel.next = self.place6.val();
        }
        for i in 0..PLACES {
            self.uppers[i].x.next = self.l3.val();
            self.upper.x[i].next = self.uppers[i].y.val();
        }
        self.upper2.d.next = self.upper.y.val();
        self.base.next = self.fronts[0].val();
        self.base6.next = self.fronts6[0].val();
        if self.ether.val().tags.get_bit(0) {
            self.base.next = self.fronts[1].val();
            self.base6.next = self.fronts6[1].val();
        }
        if self.ether.val().tags.get_bit(1) {
            self.base.next = self.fronts[2].val();
            self.base6.next = self.fronts6[2].val();
        }
        self.valid2.d.next = self.valid.val();
        self.ether2.d.next = self.ether.val();
        self.from2.d.next = self.from.val();
        self.hardware2.d.next = self.arp.y.val().sha;
        self.room6.next = bit_cast::<9, 8>(self.ether.val().room) - IPV6_BYTES;
        // What is no IP: zero.
        self.deep2.d.next = self.ether.val().deep;
        self.proto2.d.next = bits::<8>(0);
        self.dscp2.d.next = bits::<6>(0);
        self.ecn2.d.next = bits::<2>(0);
        self.fragment2.d.next = bits::<2>(0);
        self.src2.d.next = bits::<128>(0);
        self.dst2.d.next = bits::<128>(0);
        self.bytes2.d.next = bits::<16>(0);
        self.stop2.d.next = bits::<17>(0);
        self.ttl.next = bits::<8>(0);
        self.foreign.next = (self.arp.y.val().htype != ETHERNET)
            | (self.arp.y.val().ptype != ethertype::IPV4)
            | (self.arp.y.val().hlen != MAC_BYTES)
            | (self.arp.y.val().plen != IP_BYTES)
            | (self.ether.val().ended & (self.ether.val().room < ARP_BYTES));
        self.long.next = self.ip4.y.val().total_length.get_bits::<8>(8).any() | (self.ip4.y.val().total_length.get_bits::<8>(0) > self.ether.val().room);
        if self.ether.val().arp {
            self.deep2.d.next = self.ether.val().deep | self.foreign.val();
            if !self.arp.y.val().oper.get_bits::<8>(8).any() {
                self.proto2.d.next = self.arp.y.val().oper.get_bits::<8>(0);
            }
            self.src2.d.next = bit_cast::<128, 32>(self.arp.y.val().spa);
            self.dst2.d.next = bit_cast::<128, 32>(self.arp.y.val().tpa);
        }
        if self.ether.val().v4 {
            self.deep2.d.next = self.ether.val().deep | (self.ip4.y.val().version != ip::VERSION_4) | (self.ip4.y.val().ihl < ip::WORDS) | (self.ether.val().ended & self.long.val());
            self.proto2.d.next = self.ip4.y.val().protocol;
            self.dscp2.d.next = self.ip4.y.val().dscp;
            self.ecn2.d.next = self.ip4.y.val().ecn;
            if self.ip4.y.val().flags.get_bit(0) {
                self.fragment2.d.next = bits::<2>(FIRST);
            }
            if self.ip4.y.val().fragment.any() {
                self.fragment2.d.next = bits::<2>(LATER);
            }
            self.ttl.next = self.ip4.y.val().ttl;
            self.src2.d.next = bit_cast::<128, 32>(self.ip4.y.val().src);
            self.dst2.d.next = bit_cast::<128, 32>(self.ip4.y.val().dst);
            self.bytes2.d.next = self.ip4.y.val().total_length;
            self.headers2.d.next = bit_cast::<8, 4>(self.ip4.y.val().ihl) << 2;
            self.stop2.d.next = self.base.val() + bit_cast::<17, 16>(self.ip4.y.val().total_length);
        }
        if self.ether.val().v6 {
            self.long.next =
                self.ip6.y.val().payload_length.get_bits::<8>(8).any() | self.room6.val().get_bit(8) | (self.ip6.y.val().payload_length.get_bits::<8>(0) > self.room6.val().get_bits::<8>(0));
            self.deep2.d.next = self.ether.val().deep | (self.ip6.y.val().version != ip::VERSION_6) | self.odd.val() | (self.ether.val().ended & self.long.val());
            self.proto2.d.next = self.next.val();
            self.dscp2.d.next = self.ip6.y.val().dscp;
            self.ecn2.d.next = self.ip6.y.val().ecn;
            if self.part.val() {
                if self.word.val().get_bit(0) {
                    self.fragment2.d.next = bits::<2>(FIRST);
                }
                if self.word.val().get_bits::<13>(3).any() {
                    // What follows is no header.
                    self.fragment2.d.next = bits::<2>(LATER);
                    self.proto2.d.next = bits::<8>(FRAGMENT);
                }
            }
            self.ttl.next = self.ip6.y.val().hop_limit;
            self.src2.d.next = self.ip6.y.val().src;
            self.dst2.d.next = self.ip6.y.val().dst;
            self.bytes2.d.next = self.ip6.y.val().payload_length;
            self.stop2.d.next = self.base6.val() + bit_cast::<17, 16>(self.ip6.y.val().payload_length);
        }
        self.old_ttl2.d.next = self.ttl.val();
        self.checksum2.d.next = self.ip4.y.val().checksum;
        self.ttl2.d.next = self.ttl.val().get_bits::<2>(0);
        if self.ttl.val().get_bits::<7>(1).any() {
            self.ttl2.d.next = bits::<2>(MORE);
        }
        // Stage 3: how much of the packet is behind its headers.
        self.left.next = bit_cast::<17, 16>(self.bytes2.q.val()) - bit_cast::<17, 8>(self.headers2.q.val());
        self.is_ip.next = self.ether2.q.val().v4 | self.ether2.q.val().v6;
        self.later.next = self.fragment2.q.val().get_bit(1);
        self.tcp.next = self.is_ip.val() & !self.later.val() & (self.proto2.q.val() == protocol::TCP);
        self.udp.next = self.is_ip.val() & !self.later.val() & (self.proto2.q.val() == protocol::UDP);
        // ICMP of the other version is a protocol like any other.
        self.icmp.next = !self.later.val() & ((self.ether2.q.val().v4 & (self.proto2.q.val() == protocol::ICMP)) | (self.ether2.q.val().v6 & (self.proto2.q.val() == protocol::ICMPV6)));
        self.has_ports.next = self.tcp.val() | self.udp.val();
        self.short.next =
            self.left.val().get_bit(16) | (self.tcp.val() & (self.left.val().get_bits::<16>(0) < LEAST_TCP)) | ((self.udp.val() | self.icmp.val()) & (self.left.val().get_bits::<16>(0) < LEAST));
        self.extension.next = (self.proto2.q.val() == HOP_BY_HOP)
            | (self.proto2.q.val() == ROUTING)
            | ((self.proto2.q.val() == FRAGMENT) & !self.later.val())
            | (self.proto2.q.val() == ESP)
            | (self.proto2.q.val() == AUTHENTICATION)
            | (self.proto2.q.val() == DESTINATION)
            | (self.proto2.q.val() == MOBILITY);
        self.valid3.d.next = self.valid2.q.val();
        self.facts3.d.next.deep = self.deep2.q.val() | (self.is_ip.val() & self.short.val()) | (self.ether2.q.val().v6 & self.extension.val());
        self.facts3.d.next.class = bits::<2>(0);
        if self.ether2.q.val().arp {
            self.facts3.d.next.class = bits::<2>(CLASS_ARP);
        }
        if self.ether2.q.val().v4 {
            self.facts3.d.next.class = bits::<2>(CLASS_4);
        }
        if self.ether2.q.val().v6 {
            self.facts3.d.next.class = bits::<2>(CLASS_6);
        }
        self.facts3.d.next.roce = self.udp.val() & (self.upper2.q.val().get_bits::<16>(16) == ROCE_PORT);
        self.facts3.d.next.ends = self.tcp.val() & self.upper2.q.val().get_bits::<3>(32).any();
        self.facts3.d.next.stop = self.stop2.q.val();
        self.facts3.d.next.hardware = self.hardware2.q.val();
        self.old.next.tags = self.ether2.q.val().tags;
        self.old.next.v4 = self.ether2.q.val().v4;
        self.old.next.v6 = self.ether2.q.val().v6;
        self.old.next.tos = (bit_cast::<8, 6>(self.dscp2.q.val()) << ECN_BITS) | bit_cast::<8, 2>(self.ecn2.q.val());
        self.old.next.ttl = self.old_ttl2.q.val();
        self.old.next.checksum = self.checksum2.q.val();
        self.facts3.d.next.old = self.old.val();
        self.key3.d.next.in_port = self.from2.q.val().port;
        self.key3.d.next.domain = self.from2.q.val().domain;
        self.key3.d.next.remote = self.from2.q.val().remote;
        self.key3.d.next.geneve_option = self.from2.q.val().option;
        self.key3.d.next.dmac = self.ether2.q.val().dmac;
        self.key3.d.next.smac = self.ether2.q.val().smac;
        self.key3.d.next.ethertype = self.ether2.q.val().ethertype;
        self.key3.d.next.second_tag = self.ether2.q.val().tags.get_bit(1);
        self.key3.d.next.service_tag = self.ether2.q.val().service;
        self.key3.d.next.tag_present = self.ether2.q.val().tags.any();
        self.key3.d.next.tag_vid = bits::<12>(0);
        self.key3.d.next.tag_pcp = bits::<3>(0);
        if self.ether2.q.val().tags.any() {
            self.key3.d.next.tag_vid = self.ether2.q.val().tci.get_bits::<12>(0);
            self.key3.d.next.tag_pcp = self.ether2.q.val().tci.get_bits::<3>(13);
        }
        self.key3.d.next.proto = self.proto2.q.val();
        self.key3.d.next.dscp = self.dscp2.q.val();
        self.key3.d.next.ecn = self.ecn2.q.val();
        self.key3.d.next.fragment = self.fragment2.q.val();
        self.key3.d.next.ttl_class = self.ttl2.q.val();
        self.key3.d.next.src = self.src2.q.val();
        self.key3.d.next.dst = self.dst2.q.val();
        self.key3.d.next.src_port = bits::<16>(0);
        self.key3.d.next.dst_port = bits::<16>(0);
        self.key3.d.next.tcp_flags = bits::<8>(0);
        self.key3.d.next.rsvd0 = bits::<9>(0);
        if self.has_ports.val() {
            self.key3.d.next.src_port = self.upper2.q.val().get_bits::<16>(0);
            self.key3.d.next.dst_port = self.upper2.q.val().get_bits::<16>(16);
        }
        if self.icmp.val() {
            // Type and code.
            self.key3.d.next.src_port = self.upper2.q.val().get_bits::<16>(0) >> 8;
            self.key3.d.next.dst_port = bit_cast::<16, 8>(self.upper2.q.val().get_bits::<8>(0));
        }
        if self.tcp.val() {
            self.key3.d.next.tcp_flags = self.upper2.q.val().get_bits::<8>(32);
        }
        self.key_valid.next = self.valid3.q.val();
        self.key.next = self.key3.q.val();
        self.facts.next = self.facts3.q.val();
        if self.reset.val() {
            self.valid2.d.next = false;
            self.valid3.d.next = false;
        }
    }
}
