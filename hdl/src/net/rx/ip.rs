//! Ethernet, VLAN and IP: the first stage of the parser.

use super::feed::Flags;
use super::window::{Types, WINDOW_BITS};
use crate::codes::ip;
use crate::prim::pack::{BePick, Slice};
use crate::records::{Ipv4, Ipv6};
use ferric_abi::wire::{self, protocol};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// From Ethernet to the last byte any field is taken from: 18 + 40 + 8 + 12 + 28.
const FRONT: usize = 106 * 8;
/// IP to extended headers.
const L3: usize = 88 * 8;
/// UDP, BTH and 28 bytes of extended headers.
pub const L4: usize = 48 * 8;

/// Link layer and IP facts.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Link {
    pub vlan: Bit,
    pub tci: Bits<16>,
    /// IPv4 without options, IPv6.
    pub v4: Bit,
    pub v6: Bit,
    pub arp: Bit,
    pub ecn: Bits<2>,
}

/// Facts of which those of the IP version at hand count. `total`, `plen`: the length fields of IPv4 and IPv6.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct IpFacts {
    /// Not a fragment.
    pub whole: Bit,
    pub udp4: Bit,
    pub udp6: Bit,
    pub tcp4: Bit,
    pub tcp6: Bit,
    pub icmp4: Bit,
    pub icmp6: Bit,
    pub total: Bits<17>,
    pub plen: Bits<17>,
}

/// Window in; in the same cycle the flags, one cycle later everything below UDP.
#[derive(LogicBlock, BlockDefault)]
pub struct IpLayer {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub window: Signal<In, Bits<WINDOW_BITS>>,
    pub window_valid: Signal<In, Bit>,
    pub types: Signal<In, Types>,
    pub valid: Signal<Out, Bit>,
    /// Of the frame in `window`; only what stands before the IP length is looked at.
    pub flags: Signal<Out, Flags>,
    pub link: Signal<Out, Link>,
    pub facts: Signal<Out, IpFacts>,
    /// UDP header and what follows.
    pub l4: Signal<Out, Bits<L4>>,
    /// Source and destination address, 16 bytes each, IPv4 in the first four.
    pub addr: Signal<Out, Bits<256>>,
    /// Destination MAC, first byte on the wire highest.
    pub dmac: Signal<Out, Bits<48>>,
    /// The same a cycle earlier, of the frame in `window`.
    pub dmac_early: Signal<Out, Bits<48>>,
    /// Sums of two 16-bit words of the IPv4 header each.
    pub pairs: [Signal<Out, Bits<17>>; 5],
    stage: DFF<Bit>,
    // IP header in place
    v4: Signal<Local, Bit>,
    v6: Signal<Local, Bit>,
    front: Signal<Local, Bits<FRONT>>,
    #[init(Slice::new(14 * 8))]
    l3_plain: Slice<FRONT, L3>,
    #[init(Slice::new(18 * 8))]
    l3_tagged: Slice<FRONT, L3>,
    l3: Signal<Local, Bits<L3>>,
    // IP fields, UDP header in place
    #[init(BePick::of(&wire::Ipv4::LAYOUT, 0))]
    ip4: BePick<L3, Ipv4>,
    #[init(BePick::of(&wire::Ipv6::LAYOUT, 0))]
    ip6: BePick<L3, Ipv6>,
    #[init(Slice::new(20 * 8))]
    l4_v4: Slice<L3, L4>,
    #[init(Slice::new(40 * 8))]
    l4_v6: Slice<L3, L4>,
    #[init(Slice::new(8 * 8))]
    addr_v6: Slice<L3, 256>,
    #[init(Slice::new(12 * 8))]
    src4: Slice<L3, 32>,
    #[init(Slice::new(16 * 8))]
    dst4: Slice<L3, 32>,
    stop_base: Signal<Local, Bits<17>>,
    stop_ip: Signal<Local, Bits<17>>,
    facts1: DFF<IpFacts>,
    l4_1: DFF<Bits<L4>>,
    link1: DFF<Link>,
    pairs1: [DFF<Bits<17>>; 5],
    words: [Signal<Local, Bits<16>>; 10],
    addr1: DFF<Bits<256>>,
    #[init(BePick::new((0..48).map(|bit| 8 * (5 - bit / 8) + bit % 8).collect()))]
    to: BePick<FRONT, Bits<48>>,
    dmac1: DFF<Bits<48>>,
}

#[kernel]
impl Logic for IpLayer {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, stage, l4_1, link1, facts1, addr1, dmac1);
        for i in 0..5 {
            self.pairs1[i].clock.next = self.clock.val();
            self.pairs[i].next = self.pairs1[i].q.val();
        }
        self.stage.d.next = self.window_valid.val();
        self.valid.next = self.stage.q.val();
        self.front.next = self.window.val().get_bits::<FRONT>(0);
        self.to.x.next = self.front.val();
        self.dmac1.d.next = self.to.y.val();
        self.l3_plain.x.next = self.front.val();
        self.l3_tagged.x.next = self.front.val();
        self.link1.d.next.vlan = self.types.val().tagged;
        self.l3.next = self.l3_plain.y.val();
        self.link1.d.next.tci = bits::<16>(0);
        self.v4.next = self.types.val().plain4;
        self.v6.next = self.types.val().plain6;
        self.link1.d.next.arp = self.types.val().plain_arp;
        if self.types.val().tagged {
            self.l3.next = self.l3_tagged.y.val();
            self.link1.d.next.tci = (bit_cast::<16, 8>(self.front.val().get_bits::<8>(112)) << 8) | bit_cast::<16, 8>(self.front.val().get_bits::<8>(120));
            self.v4.next = self.types.val().tag4;
            self.v6.next = self.types.val().tag6;
            self.link1.d.next.arp = self.types.val().tag_arp;
        }
        self.ip4.x.next = self.l3.val();
        self.ip6.x.next = self.l3.val();
        self.l4_v4.x.next = self.l3.val();
        self.l4_v6.x.next = self.l3.val();
        self.addr_v6.x.next = self.l3.val();
        self.src4.x.next = self.l3.val();
        self.dst4.x.next = self.l3.val();
        for i in 0..10 {
            self.words[i].next = self.l3.val().get_bits::<16>(i * 16);
        }
        self.pairs1[0].d.next = bit_cast::<17, 16>(self.words[0].val()) + bit_cast::<17, 16>(self.words[5].val());
        self.pairs1[1].d.next = bit_cast::<17, 16>(self.words[1].val()) + bit_cast::<17, 16>(self.words[6].val());
        self.pairs1[2].d.next = bit_cast::<17, 16>(self.words[2].val()) + bit_cast::<17, 16>(self.words[7].val());
        self.pairs1[3].d.next = bit_cast::<17, 16>(self.words[3].val()) + bit_cast::<17, 16>(self.words[8].val());
        self.pairs1[4].d.next = bit_cast::<17, 16>(self.words[4].val()) + bit_cast::<17, 16>(self.words[9].val());
        self.link1.d.next.v4 = self.v4.val() & (self.ip4.y.val().version == ip::VERSION_4) & (self.ip4.y.val().ihl == ip::WORDS);
        self.link1.d.next.v6 = self.v6.val() & (self.ip6.y.val().version == ip::VERSION_6);
        self.facts1.d.next.whole = !self.ip4.y.val().flags.get_bit(0) & !self.ip4.y.val().fragment.any();
        self.facts1.d.next.udp4 = self.ip4.y.val().protocol == protocol::UDP;
        self.facts1.d.next.udp6 = self.ip6.y.val().next_header == protocol::UDP;
        self.facts1.d.next.tcp4 = self.ip4.y.val().protocol == protocol::TCP;
        self.facts1.d.next.tcp6 = self.ip6.y.val().next_header == protocol::TCP;
        self.facts1.d.next.icmp4 = self.ip4.y.val().protocol == protocol::ICMP;
        self.facts1.d.next.icmp6 = self.ip6.y.val().next_header == protocol::ICMPV6;
        self.facts1.d.next.total = bit_cast::<17, 16>(self.ip4.y.val().total_length);
        self.facts1.d.next.plen = bit_cast::<17, 16>(self.ip6.y.val().payload_length);
        self.stop_base.next = bits::<17>(wire::Eth::BYTES as u64);
        if self.v6.val() {
            self.l4_1.d.next = self.l4_v6.y.val();
            self.addr1.d.next = self.addr_v6.y.val();
            self.link1.d.next.ecn = self.ip6.y.val().ecn;
            self.stop_ip.next = bit_cast::<17, 16>(self.ip6.y.val().payload_length);
            self.stop_base.next = bits::<17>((wire::Eth::BYTES + wire::Ipv6::BYTES) as u64);
            if self.types.val().tagged {
                self.stop_base.next = bits::<17>((wire::Eth::BYTES + wire::Vlan::BYTES + wire::Ipv6::BYTES) as u64);
            }
        } else {
            self.l4_1.d.next = self.l4_v4.y.val();
            self.addr1.d.next = bit_cast::<256, 32>(self.src4.y.val()) | (bit_cast::<256, 32>(self.dst4.y.val()) << 128);
            self.link1.d.next.ecn = self.ip4.y.val().ecn;
            self.stop_ip.next = bit_cast::<17, 16>(self.ip4.y.val().total_length);
            if self.types.val().tagged {
                self.stop_base.next = bits::<17>((wire::Eth::BYTES + wire::Vlan::BYTES) as u64);
            }
        }
        self.flags.next.vlan = self.types.val().tagged;
        self.flags.next.ipv6 = self.v6.val();
        self.flags.next.stop = self.stop_base.val() + self.stop_ip.val();
        self.link.next = self.link1.q.val();
        self.facts.next = self.facts1.q.val();
        self.l4.next = self.l4_1.q.val();
        self.addr.next = self.addr1.q.val();
        self.dmac.next = self.dmac1.q.val();
        self.dmac_early.next = self.to.y.val();
        if self.reset.val() {
            self.stage.d.next = false;
        }
    }
}
