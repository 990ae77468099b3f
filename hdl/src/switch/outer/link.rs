//! The outer Ethernet and IP header: two stages, one window per cycle.

use crate::codes::ip;
use crate::net::rx::window::WINDOW_BITS;
use crate::prim::pack::{BePick, Gather, Resize, Slice};
use crate::records::{Eth, Ipv4, Ipv6, TunnelCtx};
use crate::switch::be16;
use ferric_abi::wire::{self, ethertype, protocol};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// From the IP header to the last byte that is looked at: IPv6, UDP, VXLAN, and of the inner frame Ethernet, two tags and 20 bytes of IP.
const L3: usize = (40 + 16 + 42) * 8;
/// The same from UDP on.
pub(super) const L4: usize = L3 - 40 * 8;
/// Bytes in front of the IP header, without and with a tag.
const PLAIN: usize = wire::Eth::BYTES;
const TAGGED: usize = wire::Eth::BYTES + wire::Vlan::BYTES;

/// Bytes of IPv4 packets with a UDP header.
const LEAST_4: u64 = (wire::Ipv4::BYTES + wire::Udp::BYTES) as u64;

/// What the outer Ethernet and IP header say.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Link {
    /// A UDP packet over IPv4 without options or IPv6 without extension headers, with its UDP header, and no later fragment.
    pub ours: Bit,
    pub v6: Bit,
    pub tagged: Bit,
    /// The first fragment of a datagram.
    pub first: Bit,
    pub ecn: Bits<2>,
    /// First byte of the frame behind the packet, and bytes of the packet behind the IP header.
    pub stop: Bits<17>,
    pub payload: Bits<16>,
}

/// What was learned of the frame with its window, compared with `NF` tunnels.
#[derive(LogicBlock, BlockDefault)]
#[demand(TAGGED * 8 + L3 <= WINDOW_BITS)]
pub(super) struct LinkLayer<const NF: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ctx: [Signal<In, TunnelCtx>; NF],
    pub window: Signal<In, Bits<WINDOW_BITS>>,
    pub window_valid: Signal<In, Bit>,
    /// Two cycles later.
    pub valid: Signal<Out, Bit>,
    pub link: Signal<Out, Link>,
    /// Tunnels, a bit each: to whose addresses it is, and from whose remote endpoint, or from whomever that does not matter.
    pub to: Signal<Out, Bits<NF>>,
    pub known: Signal<Out, Bits<NF>>,
    /// UDP header and what follows.
    pub l4: Signal<Out, Bits<L4>>,
    /// Sums of the IPv4 header's 16-bit words, two each, and of the addresses', four each, as they lie on the bus.
    pub pairs: [Signal<Out, Bits<18>>; 5],
    pub quads: [Signal<Out, Bits<18>>; 4],
    // Stage 1
    #[init(BePick::of(&wire::Eth::LAYOUT, 0))]
    eth: BePick<WINDOW_BITS, Eth>,
    #[init(be16(16))]
    behind: BePick<WINDOW_BITS, Bits<16>>,
    #[init(Slice::new(PLAIN * 8))]
    plain: Slice<WINDOW_BITS, L3>,
    #[init(Slice::new(TAGGED * 8))]
    tag: Slice<WINDOW_BITS, L3>,
    outermost: Signal<Local, Bits<16>>,
    tagged: Signal<Local, Bit>,
    ethertype: Signal<Local, Bits<16>>,
    valid1: DFF<Bit>,
    tagged1: DFF<Bit>,
    type4: DFF<Bit>,
    type6: DFF<Bit>,
    station: [DFF<Bit>; NF],
    l3: DFF<Bits<L3>>,
    // Stage 2
    #[init(BePick::of(&wire::Ipv4::LAYOUT, 0))]
    ip4: BePick<L3, Ipv4>,
    #[init(BePick::of(&wire::Ipv6::LAYOUT, 0))]
    ip6: BePick<L3, Ipv6>,
    #[init(Slice::new(20 * 8))]
    behind4: Slice<L3, L4>,
    #[init(Slice::new(40 * 8))]
    behind6: Slice<L3, L4>,
    words: [Resize<16, 18>; 20],
    v4: Signal<Local, Bit>,
    v6: Signal<Local, Bit>,
    fits4: Signal<Local, Bit>,
    fits6: Signal<Local, Bit>,
    own: Signal<Local, TunnelCtx>,
    right4: Signal<Local, Bit>,
    right6: Signal<Local, Bit>,
    local4: Signal<Local, Bits<32>>,
    remote4: Signal<Local, Bits<32>>,
    tos: Gather<NF>,
    froms: Gather<NF>,
    to2: DFF<Bits<NF>>,
    known2: DFF<Bits<NF>>,
    base: Signal<Local, Bits<17>>,
    valid2: DFF<Bit>,
    link2: DFF<Link>,
    l4_2: DFF<Bits<L4>>,
    pairs2: [DFF<Bits<18>>; 5],
    quads2: [DFF<Bits<18>>; 4],
}

#[kernel]
impl<const NF: usize> Logic for LinkLayer<NF> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, valid1, tagged1, type4, type6, l3, valid2, link2, l4_2, to2, known2);
        // Stage 1: Ethernet
        self.eth.x.next = self.window.val();
        self.behind.x.next = self.window.val();
        self.plain.x.next = self.window.val();
        self.tag.x.next = self.window.val();
        self.outermost.next = self.eth.y.val().ethertype;
        self.tagged.next = (self.outermost.val() == ethertype::VLAN) | (self.outermost.val() == ethertype::SERVICE_VLAN);
        self.ethertype.next = self.outermost.val();
        self.l3.d.next = self.plain.y.val();
        if self.tagged.val() {
            self.ethertype.next = self.behind.y.val();
            self.l3.d.next = self.tag.y.val();
        }
        self.valid1.d.next = self.window_valid.val();
        self.tagged1.d.next = self.tagged.val();
        self.type4.d.next = self.ethertype.val() == ethertype::IPV4;
        self.type6.d.next = self.ethertype.val() == ethertype::IPV6;
        for i in 0..NF {
            self.own.next = self.ctx[i].val();
            self.station[i].clock.next = self.clock.val();
            self.station[i].d.next = self.own.val().valid & (self.eth.y.val().dst == self.own.val().smac);
        }
        // Stage 2: IP
        self.ip4.x.next = self.l3.q.val();
        self.ip6.x.next = self.l3.q.val();
        self.behind4.x.next = self.l3.q.val();
        self.behind6.x.next = self.l3.q.val();
        self.v4.next = self.type4.q.val() & (self.ip4.y.val().version == ip::VERSION_4) & (self.ip4.y.val().ihl == ip::WORDS);
        self.v6.next = self.type6.q.val() & (self.ip6.y.val().version == ip::VERSION_6);
        self.fits4.next = self.v4.val() & (self.ip4.y.val().total_length >= LEAST_4);
        self.fits6.next = self.v6.val() & (self.ip6.y.val().payload_length >= wire::Udp::BYTES as u64);
        self.base.next = bits::<17>(PLAIN as u64);
        if self.type6.q.val() {
            self.base.next = bits::<17>((PLAIN + wire::Ipv6::BYTES) as u64);
        }
        if self.tagged1.q.val() {
            self.base.next = bits::<17>(TAGGED as u64);
            if self.type6.q.val() {
                self.base.next = bits::<17>((TAGGED + wire::Ipv6::BYTES) as u64);
            }
        }
        self.right6.next = self.fits6.val() & (self.ip6.y.val().next_header == protocol::UDP);
        self.right4.next = self.fits4.val() & (self.ip4.y.val().protocol == protocol::UDP) & !self.ip4.y.val().fragment.any();
        for i in 0..NF {
            self.own.next = self.ctx[i].val();
            self.local4.next = bit_cast::<32, 128>(self.own.val().local);
            self.remote4.next = bit_cast::<32, 128>(self.own.val().remote);
            self.tos.x[i].next = self.station[i].q.val() & !self.own.val().ipv6 & (self.ip4.y.val().dst == self.local4.val());
            self.froms.x[i].next = self.own.val().any_remote | (self.ip4.y.val().src == self.remote4.val());
            if self.type6.q.val() {
                self.tos.x[i].next = self.station[i].q.val() & self.own.val().ipv6 & (self.ip6.y.val().dst == self.own.val().local);
                self.froms.x[i].next = self.own.val().any_remote | (self.ip6.y.val().src == self.own.val().remote);
            }
        }
        self.to2.d.next = self.tos.y.val();
        self.known2.d.next = self.froms.y.val();
        self.to.next = self.to2.q.val();
        self.known.next = self.known2.q.val();
        self.valid2.d.next = self.valid1.q.val();
        self.link2.d.next.ours = self.right4.val();
        if self.type6.q.val() {
            self.link2.d.next.ours = self.right6.val();
        }
        self.link2.d.next.v6 = self.v6.val();
        self.link2.d.next.tagged = self.tagged1.q.val();
        if self.type6.q.val() {
            self.link2.d.next.first = false;
            self.link2.d.next.ecn = self.ip6.y.val().ecn;
            self.link2.d.next.stop = self.base.val() + bit_cast::<17, 16>(self.ip6.y.val().payload_length);
            self.link2.d.next.payload = self.ip6.y.val().payload_length;
            self.l4_2.d.next = self.behind6.y.val();
        } else {
            self.link2.d.next.first = self.ip4.y.val().flags.get_bit(0);
            self.link2.d.next.ecn = self.ip4.y.val().ecn;
            self.link2.d.next.stop = self.base.val() + bit_cast::<17, 16>(self.ip4.y.val().total_length);
            self.link2.d.next.payload = self.ip4.y.val().total_length - wire::Ipv4::BYTES as u64;
            self.l4_2.d.next = self.behind4.y.val();
        }
        for i in 0..20 {
            self.words[i].x.next = self.l3.q.val().get_bits::<16>(i * 16);
        }
        for i in 0..5 {
            self.pairs2[i].clock.next = self.clock.val();
            self.pairs[i].next = self.pairs2[i].q.val();
        }
        self.pairs2[0].d.next = self.words[0].y.val() + self.words[5].y.val();
        self.pairs2[1].d.next = self.words[1].y.val() + self.words[6].y.val();
        self.pairs2[2].d.next = self.words[2].y.val() + self.words[7].y.val();
        self.pairs2[3].d.next = self.words[3].y.val() + self.words[8].y.val();
        self.pairs2[4].d.next = self.words[4].y.val() + self.words[9].y.val();
        // Addresses are words 6 to 9 of an IPv4 header and 4 to 19 of an IPv6 header.
        for i in 0..4 {
            self.quads2[i].clock.next = self.clock.val();
            self.quads[i].next = self.quads2[i].q.val();
        }
        self.quads2[0].d.next = self.words[4].y.val() + self.words[5].y.val() + self.words[6].y.val() + self.words[7].y.val();
        self.quads2[1].d.next = self.words[8].y.val() + self.words[9].y.val() + self.words[10].y.val() + self.words[11].y.val();
        self.quads2[2].d.next = self.words[12].y.val() + self.words[13].y.val() + self.words[14].y.val() + self.words[15].y.val();
        self.quads2[3].d.next = self.words[16].y.val() + self.words[17].y.val() + self.words[18].y.val() + self.words[19].y.val();
        if !self.type6.q.val() {
            self.quads2[0].d.next = self.words[6].y.val() + self.words[7].y.val() + self.words[8].y.val() + self.words[9].y.val();
            self.quads2[1].d.next = bits::<18>(0);
            self.quads2[2].d.next = bits::<18>(0);
            self.quads2[3].d.next = bits::<18>(0);
        }
        self.valid.next = self.valid2.q.val();
        self.link.next = self.link2.q.val();
        self.l4.next = self.l4_2.q.val();
        if self.reset.val() {
            self.valid1.d.next = false;
            self.valid2.d.next = false;
        }
    }
}
