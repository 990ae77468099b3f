//! Ethernet, VLAN and IP: the first three stages of the parser.

use super::feed::Flags;
use super::window::WINDOW_BITS;
use crate::prim::pack::{BePick, Slice};
use crate::records::{Ipv4, Ipv6};
use ferric_abi::wire;
use rust_hdl::prelude::*;

/// From Ethernet to the last byte any field is taken from: 18 + 40 + 8 + 12 + 20.
const FRONT: usize = 98 * 8;
/// IP to extended headers.
const L3: usize = 80 * 8;
/// UDP, BTH and 20 bytes of extended headers.
pub const L4: usize = 40 * 8;

/// Link layer and IP facts.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Link {
    pub vlan: Bit,
    pub tci: Bits<16>,
    /// IPv4 without options, IPv6.
    pub v4: Bit,
    pub v6: Bit,
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
    pub total: Bits<17>,
    pub plen: Bits<17>,
}

/// Window in; three cycles later everything below UDP. All outputs are registers.
#[derive(LogicBlock)]
pub struct IpLayer {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub window: Signal<In, Bits<WINDOW_BITS>>,
    pub window_valid: Signal<In, Bit>,
    pub valid: Signal<Out, Bit>,
    pub flags: Signal<Out, Flags>,
    pub link: Signal<Out, Link>,
    pub facts: Signal<Out, IpFacts>,
    /// UDP header and what follows.
    pub l4: Signal<Out, Bits<L4>>,
    /// Source and destination address, 16 bytes each, IPv4 in the first four.
    pub addr: Signal<Out, Bits<256>>,
    /// Sums of two 16-bit words of the IPv4 header each.
    pub pairs: [Signal<Out, Bits<17>>; 5],
    stages: [DFF<Bit>; 3],
    // Stage 1: Ethernet types at both places
    front1: DFF<Bits<FRONT>>,
    tagged1: DFF<Bit>,
    plain4_1: DFF<Bit>,
    plain6_1: DFF<Bit>,
    tag4_1: DFF<Bit>,
    tag6_1: DFF<Bit>,
    // Stage 2: IP header in place
    tci: Signal<Local, Bits<16>>,
    l3_plain: Slice<FRONT, L3>,
    l3_tagged: Slice<FRONT, L3>,
    l3_2: DFF<Bits<L3>>,
    link2: DFF<Link>,
    // Stage 3: IP fields, UDP header in place
    ip4: BePick<L3, Ipv4>,
    ip6: BePick<L3, Ipv6>,
    l4_v4: Slice<L3, L4>,
    l4_v6: Slice<L3, L4>,
    addr_v6: Slice<L3, 256>,
    src4: Slice<L3, 32>,
    dst4: Slice<L3, 32>,
    stop_base: Signal<Local, Bits<17>>,
    stop_ip: Signal<Local, Bits<17>>,
    facts3: DFF<IpFacts>,
    l4_3: DFF<Bits<L4>>,
    link3: DFF<Link>,
    pairs3: [DFF<Bits<17>>; 5],
    words: [Signal<Local, Bits<16>>; 10],
    addr3: DFF<Bits<256>>,
    flags3: DFF<Flags>,
}

impl Default for IpLayer {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            reset: Default::default(),
            window: Default::default(),
            window_valid: Default::default(),
            valid: Default::default(),
            flags: Default::default(),
            link: Default::default(),
            facts: Default::default(),
            l4: Default::default(),
            addr: Default::default(),
            pairs: Default::default(),
            stages: Default::default(),
            front1: Default::default(),
            tagged1: Default::default(),
            plain4_1: Default::default(),
            plain6_1: Default::default(),
            tag4_1: Default::default(),
            tag6_1: Default::default(),
            tci: Default::default(),
            l3_plain: Slice::new(14 * 8),
            l3_tagged: Slice::new(18 * 8),
            l3_2: Default::default(),
            link2: Default::default(),
            ip4: BePick::of(&wire::Ipv4::LAYOUT, 0),
            ip6: BePick::of(&wire::Ipv6::LAYOUT, 0),
            l4_v4: Slice::new(20 * 8),
            l4_v6: Slice::new(40 * 8),
            addr_v6: Slice::new(8 * 8),
            src4: Slice::new(12 * 8),
            dst4: Slice::new(16 * 8),
            stop_base: Default::default(),
            stop_ip: Default::default(),
            facts3: Default::default(),
            l4_3: Default::default(),
            link3: Default::default(),
            pairs3: Default::default(),
            words: Default::default(),
            addr3: Default::default(),
            flags3: Default::default(),
        }
    }
}

impl Logic for IpLayer {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, front1, tagged1, plain4_1, plain6_1, tag4_1, tag6_1, l3_2, link2, l4_3, link3, facts3, addr3, flags3);
        for i in 0..3 {
            self.stages[i].clock.next = self.clock.val();
        }
        for i in 0..5 {
            self.pairs3[i].clock.next = self.clock.val();
            self.pairs[i].next = self.pairs3[i].q.val();
        }
        self.stages[0].d.next = self.window_valid.val();
        self.stages[1].d.next = self.stages[0].q.val();
        self.stages[2].d.next = self.stages[1].q.val();
        // Stage 1. Constants are the network words as they lie on the bus, low byte first.
        self.front1.d.next = self.window.val().get_bits::<FRONT>(0);
        self.tagged1.d.next = self.window.val().get_bits::<16>(96) == 0x0081;
        self.plain4_1.d.next = self.window.val().get_bits::<16>(96) == 0x0008;
        self.plain6_1.d.next = self.window.val().get_bits::<16>(96) == 0xdd86;
        self.tag4_1.d.next = self.window.val().get_bits::<16>(128) == 0x0008;
        self.tag6_1.d.next = self.window.val().get_bits::<16>(128) == 0xdd86;
        // Stage 2
        self.tci.next = (bit_cast::<16, 8>(self.front1.q.val().get_bits::<8>(112)) << 8)
            | bit_cast::<16, 8>(self.front1.q.val().get_bits::<8>(120));
        self.l3_plain.x.next = self.front1.q.val();
        self.l3_tagged.x.next = self.front1.q.val();
        self.link2.d.next.vlan = self.tagged1.q.val();
        self.link2.d.next.ecn = bits::<2>(0);
        if self.tagged1.q.val() {
            self.l3_2.d.next = self.l3_tagged.y.val();
            self.link2.d.next.tci = self.tci.val();
            self.link2.d.next.v4 = self.tag4_1.q.val();
            self.link2.d.next.v6 = self.tag6_1.q.val();
        } else {
            self.l3_2.d.next = self.l3_plain.y.val();
            self.link2.d.next.tci = bits::<16>(0);
            self.link2.d.next.v4 = self.plain4_1.q.val();
            self.link2.d.next.v6 = self.plain6_1.q.val();
        }
        // Stage 3
        self.ip4.x.next = self.l3_2.q.val();
        self.ip6.x.next = self.l3_2.q.val();
        self.l4_v4.x.next = self.l3_2.q.val();
        self.l4_v6.x.next = self.l3_2.q.val();
        self.addr_v6.x.next = self.l3_2.q.val();
        self.src4.x.next = self.l3_2.q.val();
        self.dst4.x.next = self.l3_2.q.val();
        for i in 0..10 {
            self.words[i].next = self.l3_2.q.val().get_bits::<16>(i * 16);
        }
        self.pairs3[0].d.next = bit_cast::<17, 16>(self.words[0].val()) + bit_cast::<17, 16>(self.words[5].val());
        self.pairs3[1].d.next = bit_cast::<17, 16>(self.words[1].val()) + bit_cast::<17, 16>(self.words[6].val());
        self.pairs3[2].d.next = bit_cast::<17, 16>(self.words[2].val()) + bit_cast::<17, 16>(self.words[7].val());
        self.pairs3[3].d.next = bit_cast::<17, 16>(self.words[3].val()) + bit_cast::<17, 16>(self.words[8].val());
        self.pairs3[4].d.next = bit_cast::<17, 16>(self.words[4].val()) + bit_cast::<17, 16>(self.words[9].val());
        self.link3.d.next = self.link2.q.val();
        self.link3.d.next.v4 = self.link2.q.val().v4 & (self.ip4.y.val().version == 4) & (self.ip4.y.val().ihl == 5);
        self.link3.d.next.v6 = self.link2.q.val().v6 & (self.ip6.y.val().version == 6);
        self.facts3.d.next.whole = !self.ip4.y.val().flags.get_bit(0) & !self.ip4.y.val().fragment.any();
        self.facts3.d.next.udp4 = self.ip4.y.val().protocol == 17;
        self.facts3.d.next.udp6 = self.ip6.y.val().next_header == 17;
        self.facts3.d.next.tcp4 = self.ip4.y.val().protocol == 6;
        self.facts3.d.next.tcp6 = self.ip6.y.val().next_header == 6;
        self.facts3.d.next.total = bit_cast::<17, 16>(self.ip4.y.val().total_length);
        self.facts3.d.next.plen = bit_cast::<17, 16>(self.ip6.y.val().payload_length);
        self.stop_base.next = bits::<17>(14);
        if self.link2.q.val().v6 {
            self.l4_3.d.next = self.l4_v6.y.val();
            self.addr3.d.next = self.addr_v6.y.val();
            self.link3.d.next.ecn = self.ip6.y.val().ecn;
            self.stop_ip.next = bit_cast::<17, 16>(self.ip6.y.val().payload_length);
            self.stop_base.next = bits::<17>(54);
            if self.link2.q.val().vlan {
                self.stop_base.next = bits::<17>(58);
            }
        } else {
            self.l4_3.d.next = self.l4_v4.y.val();
            self.addr3.d.next = bit_cast::<256, 32>(self.src4.y.val()) | (bit_cast::<256, 32>(self.dst4.y.val()) << 128);
            self.link3.d.next.ecn = self.ip4.y.val().ecn;
            self.stop_ip.next = bit_cast::<17, 16>(self.ip4.y.val().total_length);
            if self.link2.q.val().vlan {
                self.stop_base.next = bits::<17>(18);
            }
        }
        self.flags3.d.next.vlan = self.link2.q.val().vlan;
        self.flags3.d.next.ipv6 = self.link2.q.val().v6;
        self.flags3.d.next.stop = self.stop_base.val() + self.stop_ip.val();
        self.valid.next = self.stages[2].q.val();
        self.flags.next = self.flags3.q.val();
        self.link.next = self.link3.q.val();
        self.facts.next = self.facts3.q.val();
        self.l4.next = self.l4_3.q.val();
        self.addr.next = self.addr3.q.val();
        if self.reset.val() {
            self.stages[0].d.next = false;
            self.stages[1].d.next = false;
            self.stages[2].d.next = false;
        }
    }
}
