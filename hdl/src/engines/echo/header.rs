//! What a frame's headers say, and whether they are as the standards say.

use super::fetch::PIECE_BITS;
use crate::codes::{arp, icmp6, ECHO_REQUEST};
use crate::prim::pack::BePick;
use crate::records::{Arp, IcmpEcho, Ipv4, Ipv6};
use ferric_abi::meta::frame_kind;
use ferric_abi::wire::{self, ethertype};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// From the IP header or the ARP packet on.
const L3: usize = 64 * 8;
const ETH: u64 = wire::Eth::BYTES as u64;
const TAG: u64 = wire::Vlan::BYTES as u64;
/// Bytes up to the end of an ARP packet; of an IPv6 header.
const ARP_END: u64 = ETH + wire::Arp::BYTES as u64;
const IPV4: u64 = wire::Ipv4::BYTES as u64;
const IPV6_END: u64 = ETH + wire::Ipv6::BYTES as u64;
/// Shortest IPv4 packet with an echo request, and least of one in IPv6 and of a message of neighbour discovery.
const ECHO_4: u64 = (wire::Ipv4::BYTES + wire::IcmpEcho::BYTES) as u64;
const ECHO_6: u64 = wire::IcmpEcho::BYTES as u64;
const DISCOVERY: u64 = 24;
/// First three bits of IPv4 addresses that are no host's: multicast and reserved ones.
const NO_HOST: u64 = 7;
/// First byte of IPv6 groups.
const GROUP_6: u64 = 0xff;
/// The solicited-node groups ff02::1:ff00:0/104 (RFC 4291, 2.7.1), 32 bits each and eight, and their MAC addresses 33:33:ff (RFC 2464).
const NODES_TOP: u64 = 0xff02_0000;
const NODES_LOW: u64 = 1;
const NODES_LAST: u64 = 0xff;
const NODES_MAC: u64 = 0x33_33ff;

/// What a frame is to us. One of the first six is set, or none.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Sort {
    pub arp_request: Bit,
    pub arp_reply: Bit,
    pub ping: Bit,
    pub ping6: Bit,
    pub solicitation: Bit,
    pub advertisement: Bit,
}

/// Who is asked or told, for the table.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Key {
    /// Address that is to be our own.
    pub ip: Bits<128>,
    pub ipv6: Bit,
    pub mac: Bits<48>,
    /// The frame goes to a group that this address is a member of.
    pub group: Bit,
    pub vlan: Bit,
    pub vid: Bits<12>,
    /// Whose address is told.
    pub peer: Bits<128>,
}

/// Takes the frame's first two pieces; [`READY`] cycles later all is known.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Header {
    pub clock: Signal<In, Clock>,
    pub piece: Signal<In, Bits<PIECE_BITS>>,
    /// `piece` is the frame's first, its second.
    pub first: Signal<In, Bit>,
    pub second: Signal<In, Bit>,
    /// Of the descriptor, until all has been read.
    pub kind: Signal<In, Bits<2>>,
    pub has_tag: Signal<In, Bit>,
    pub vid: Signal<In, Bits<12>>,
    pub frame_len: Signal<In, Bits<14>>,
    pub sort: Signal<Out, Sort>,
    pub key: Signal<Out, Key>,
    /// As it has to be, but for what stands behind the first 128 bytes, and sums.
    pub good: Signal<Out, Bit>,
    /// From the unspecified address.
    pub nobody: Signal<Out, Bit>,
    /// Bytes behind the IP header; of the frame up to the end of its packet.
    pub length: Signal<Out, Bits<14>>,
    pub stop: Signal<Out, Bits<14>>,
    pub smac: Signal<Out, Bits<48>>,
    pub arp: Signal<Out, Arp>,
    pub ip4: Signal<Out, Ipv4>,
    pub ip6: Signal<Out, Ipv6>,
    /// Checksum of the echo request.
    pub checksum: Signal<Out, Bits<16>>,
    macs: DFF<Bits<96>>,
    l3: DFF<Bits<L3>>,
    #[init(BePick::new((0..48).map(|bit| 8 * (5 - bit / 8) + bit % 8).collect()))]
    dst: BePick<96, Bits<48>>,
    #[init(BePick::new((0..48).map(|bit| 8 * (11 - bit / 8) + bit % 8).collect()))]
    src: BePick<96, Bits<48>>,
    #[init(BePick::of(&wire::Arp::LAYOUT, 0))]
    arp_at: BePick<L3, Arp>,
    #[init(BePick::of(&wire::Ipv4::LAYOUT, 0))]
    ip4_at: BePick<L3, Ipv4>,
    #[init(BePick::of(&wire::Ipv6::LAYOUT, 0))]
    ip6_at: BePick<L3, Ipv6>,
    #[init(BePick::of(&wire::IcmpEcho::LAYOUT, wire::Ipv4::BYTES))]
    echo4_at: BePick<L3, IcmpEcho>,
    #[init(BePick::of(&wire::IcmpEcho::LAYOUT, wire::Ipv6::BYTES))]
    echo6_at: BePick<L3, IcmpEcho>,
    #[init(BePick::new((0..128).map(|bit| 8 * (63 - bit / 8) + bit % 8).collect()))]
    target_at: BePick<L3, Bits<128>>,
    // First stage
    is: DFF<Sort>,
    who: DFF<Key>,
    base: DFF<Bits<17>>,
    span: DFF<Bits<17>>,
    single: DFF<Bit>,
    arp_form: DFF<Bit>,
    arp_same: DFF<Bit>,
    from4: DFF<Bit>,
    none6: DFF<Bit>,
    many6: DFF<Bit>,
    code4: DFF<Bit>,
    code6: DFF<Bit>,
    long4: DFF<Bit>,
    long6: DFF<Bit>,
    long_nd: DFF<Bit>,
    near: DFF<Bit>,
    to_target: DFF<Bit>,
    to_nodes: DFF<Bit>,
    low_same: DFF<Bit>,
    mac_nodes: DFF<Bit>,
    mac_low: DFF<Bit>,
    payload: DFF<Bits<16>>,
    // Second
    sum: DFF<Bits<17>>,
    meant: DFF<Bit>,
    sound4: DFF<Bit>,
    sound6: DFF<Bit>,
    sound_nd: DFF<Bit>,
    sound_arp: DFF<Bit>,
    // Third
    fits: DFF<Bit>,
    fine: DFF<Bit>,
    dmac: Signal<Local, Bits<48>>,
    from: Signal<Local, Bits<48>>,
    source4: Signal<Local, Bits<32>>,
    source6: Signal<Local, Bits<128>>,
    dest6: Signal<Local, Bits<128>>,
    target: Signal<Local, Bits<128>>,
    v6: Signal<Local, Bit>,
    is_arp: Signal<Local, Bit>,
    is_icmp: Signal<Local, Bit>,
    plen: Signal<Local, Bits<16>>,
    total: Signal<Local, Bits<16>>,
}

/// Cycles from the last piece to the verdict.
pub(super) const READY: u64 = 4;

#[kernel]
impl Logic for Header {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, macs, l3, is, who, base, span, single, arp_form, arp_same, from4, none6, many6, code4, code6, long4, long6, long_nd, near);
        dff_setup!(self, clock, to_target, to_nodes, low_same, mac_nodes, mac_low, payload, sum, meant, sound4, sound6, sound_nd, sound_arp, fits, fine);
        // The tag is left out: what follows it, or would, begins with the first bit.
        if self.first.val() {
            self.macs.d.next = self.piece.val().get_bits::<96>(0);
            self.l3.d.next = self.piece.val() >> 112;
            if self.has_tag.val() {
                self.l3.d.next = self.piece.val() >> 144;
            }
        } else if self.second.val() {
            if self.has_tag.val() {
                self.l3.d.next = self.l3.q.val() | (self.piece.val() << 368);
            } else {
                self.l3.d.next = self.l3.q.val() | (self.piece.val() << 400);
            }
        }
        self.dst.x.next = self.macs.q.val();
        self.src.x.next = self.macs.q.val();
        self.arp_at.x.next = self.l3.q.val();
        self.ip4_at.x.next = self.l3.q.val();
        self.ip6_at.x.next = self.l3.q.val();
        self.echo4_at.x.next = self.l3.q.val();
        self.echo6_at.x.next = self.l3.q.val();
        self.target_at.x.next = self.l3.q.val();
        self.smac.next = self.src.y.val();
        self.arp.next = self.arp_at.y.val();
        self.ip4.next = self.ip4_at.y.val();
        self.ip6.next = self.ip6_at.y.val();
        self.checksum.next = self.echo4_at.y.val().checksum;
        if self.v6.val() {
            self.checksum.next = self.echo6_at.y.val().checksum;
        }

        // First: field against field.
        self.dmac.next = self.dst.y.val();
        self.from.next = self.src.y.val();
        self.source4.next = self.ip4_at.y.val().src;
        self.source6.next = self.ip6_at.y.val().src;
        self.dest6.next = self.ip6_at.y.val().dst;
        self.target.next = self.target_at.y.val();
        self.plen.next = self.ip6_at.y.val().payload_length;
        self.total.next = self.ip4_at.y.val().total_length;
        self.is_arp.next = self.kind.val() == frame_kind::ARP;
        self.is_icmp.next = self.kind.val() == frame_kind::ICMP;
        self.v6.next = self.kind.val() == frame_kind::ICMPV6;
        self.is.d.next.arp_request = self.is_arp.val() & (self.arp_at.y.val().oper == arp::REQUEST);
        self.is.d.next.arp_reply = self.is_arp.val() & (self.arp_at.y.val().oper == arp::REPLY);
        self.is.d.next.ping = self.is_icmp.val() & (self.echo4_at.y.val().kind == ECHO_REQUEST);
        self.is.d.next.ping6 = self.v6.val() & (self.echo6_at.y.val().kind == icmp6::ECHO_REQUEST);
        self.is.d.next.solicitation = self.v6.val() & (self.echo6_at.y.val().kind == icmp6::SOLICITATION);
        self.is.d.next.advertisement = self.v6.val() & (self.echo6_at.y.val().kind == icmp6::ADVERTISEMENT);
        self.who.d.next.ip = bit_cast::<128, 32>(self.arp_at.y.val().tpa);
        self.who.d.next.peer = bit_cast::<128, 32>(self.arp_at.y.val().spa);
        if self.is_icmp.val() {
            self.who.d.next.ip = bit_cast::<128, 32>(self.ip4_at.y.val().dst);
        }
        if self.v6.val() {
            self.who.d.next.ip = self.dest6.val();
            self.who.d.next.peer = self.target.val();
            if self.echo6_at.y.val().kind == icmp6::SOLICITATION {
                self.who.d.next.ip = self.target.val();
            }
        }
        self.who.d.next.ipv6 = self.v6.val();
        self.who.d.next.mac = self.dmac.val();
        self.who.d.next.group = self.is_arp.val() & self.dmac.val().all();
        self.who.d.next.vlan = self.has_tag.val();
        self.who.d.next.vid = self.vid.val();
        self.base.d.next = bits::<17>(ARP_END);
        self.span.d.next = bits::<17>(0);
        if self.is_icmp.val() {
            self.base.d.next = bits::<17>(ETH);
            self.span.d.next = bit_cast::<17, 16>(self.total.val());
        }
        if self.v6.val() {
            self.base.d.next = bits::<17>(IPV6_END);
            self.span.d.next = bit_cast::<17, 16>(self.plen.val());
        }
        self.single.d.next = !self.from.val().get_bit(40) & self.from.val().any();
        self.arp_form.d.next =
            (self.arp_at.y.val().htype == arp::ETHERNET) & (self.arp_at.y.val().ptype == ethertype::IPV4) & (self.arp_at.y.val().hlen == arp::MAC_BYTES) & (self.arp_at.y.val().plen == arp::IP_BYTES);
        self.arp_same.d.next = self.arp_at.y.val().sha == self.from.val();
        self.from4.d.next = self.source4.val().any() & (self.source4.val().get_bits::<3>(29) != NO_HOST);
        self.none6.d.next = !self.source6.val().any();
        self.many6.d.next = self.source6.val().get_bits::<8>(120) == GROUP_6;
        self.code4.d.next = self.echo4_at.y.val().code == 0;
        self.code6.d.next = self.echo6_at.y.val().code == 0;
        self.long4.d.next = self.total.val() >= ECHO_4;
        self.long6.d.next = self.plen.val() >= ECHO_6;
        self.long_nd.d.next = (self.plen.val() >= DISCOVERY) & !self.plen.val().get_bits::<3>(0).any();
        self.near.d.next = self.ip6_at.y.val().hop_limit == icmp6::HOPS;
        self.to_target.d.next = self.dest6.val() == self.target.val();
        self.to_nodes.d.next = (self.dest6.val().get_bits::<32>(96) == NODES_TOP)
            & !self.dest6.val().get_bits::<32>(64).any()
            & (self.dest6.val().get_bits::<32>(32) == NODES_LOW)
            & (self.dest6.val().get_bits::<8>(24) == NODES_LAST);
        self.low_same.d.next = self.dest6.val().get_bits::<24>(0) == self.target.val().get_bits::<24>(0);
        self.mac_nodes.d.next = self.dmac.val().get_bits::<24>(24) == NODES_MAC;
        self.mac_low.d.next = self.dmac.val().get_bits::<24>(0) == self.target.val().get_bits::<24>(0);
        self.payload.d.next = self.plen.val();
        if self.is_icmp.val() {
            self.payload.d.next = self.total.val() - IPV4;
        }

        // Second: what belongs together.
        self.sort.next = self.is.q.val();
        self.key.next = self.who.q.val();
        if self.is.q.val().solicitation & self.mac_nodes.q.val() & self.mac_low.q.val() {
            self.key.next.group = true;
        }
        self.sum.d.next = self.base.q.val() + self.span.q.val();
        if self.has_tag.val() {
            self.sum.d.next = self.base.q.val() + self.span.q.val() + TAG;
        }
        self.meant.d.next = (self.to_nodes.q.val() & self.low_same.q.val()) | (self.to_target.q.val() & !self.none6.q.val());
        self.sound_arp.d.next = self.single.q.val() & self.arp_form.q.val() & self.arp_same.q.val();
        self.sound4.d.next = self.single.q.val() & self.from4.q.val() & self.code4.q.val() & self.long4.q.val();
        self.sound6.d.next = self.single.q.val() & !self.many6.q.val() & self.code6.q.val();
        self.sound_nd.d.next = self.near.q.val() & self.long_nd.q.val();
        // Third: the verdict.
        self.fits.d.next = self.sum.q.val() <= bit_cast::<17, 14>(self.frame_len.val());
        self.fine.d.next = false;
        if self.is.q.val().arp_request | self.is.q.val().arp_reply {
            self.fine.d.next = self.sound_arp.q.val();
        }
        if self.is.q.val().ping {
            self.fine.d.next = self.sound4.q.val();
        }
        if self.is.q.val().ping6 {
            self.fine.d.next = self.sound6.q.val() & self.long6.q.val() & !self.none6.q.val();
        }
        if self.is.q.val().solicitation {
            self.fine.d.next = self.sound6.q.val() & self.sound_nd.q.val() & self.meant.q.val();
        }
        if self.is.q.val().advertisement {
            self.fine.d.next = self.sound6.q.val() & self.sound_nd.q.val();
        }
        self.good.next = self.fits.q.val() & self.fine.q.val();
        self.nobody.next = self.none6.q.val();
        self.length.next = self.payload.q.val().get_bits::<14>(0);
        self.stop.next = self.sum.q.val().get_bits::<14>(0);
    }
}
