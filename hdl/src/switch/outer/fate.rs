//! What becomes of a frame, from UDP on: three stages, one frame per cycle.

use super::causes;
use super::link::{Link, L4};
use crate::codes::ip;
use crate::prim::pack::{BePick, Gather, Resize, Slice};
use crate::records::{TunnelCtx, Udp, Vxlan};
use crate::switch::be16;
use ferric_abi::wire::{self, ethertype, protocol, VXLAN_FLAGS, VXLAN_PORT};
use ferric_hdl_derive::{kernel, BlockDefault};
use ferric_model::net::networks::{NOBODY, WHOLE};
use rust_hdl::prelude::*;

/// Bytes of the UDP and the VXLAN header.
const TUNNEL: usize = wire::Udp::BYTES + wire::Vxlan::BYTES;
/// Of the inner IP header, what is looked at.
const INNER: usize = 12 * 8;
/// The protocol's word of UDP's pseudo header, as it would lie on the bus.
const PROTOCOL: u64 = (protocol::UDP as u64) << 8;
/// Sum of a right header.
const RIGHT: u64 = 0xffff;
/// Codes of ECN (RFC 3168).
const NOT_ECT: u64 = 0;
const ECT_1: u64 = 1;
const ECT_0: u64 = 2;
const CE: u64 = 3;
/// What is added to the complement of an IPv4 checksum when the ECN bits become CE (less what they were), and when they become ECT(1) (RFC 1624, equation 3).
const TO_CE: u64 = RIGHT + CE;
const TO_ECT_1: u64 = RIGHT + ECT_1 - ECT_0;
const ONE: u64 = 1;
const TWO: u64 = 2;
/// Bytes of inner headers, at most without and with one and two tags: Ethernet and IPv4, Ethernet and IPv6.
const FRONT_4: u64 = (wire::Eth::BYTES + wire::Ipv4::BYTES) as u64;
const FRONT_6: u64 = (wire::Eth::BYTES + wire::Ipv6::BYTES) as u64;

/// Of a frame's `function` what says that it is for the whole network, or, through no tunnel, for no raw queue pair.
const TO_ALL: u64 = WHOLE as u64;
const NO_RAW: u64 = NOBODY as u64;

/// What becomes of a frame, known from its first bytes.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Fate {
    /// A packet of the tunnel: its header goes.
    pub tunnel: Bit,
    pub v6: Bit,
    pub tagged: Bit,
    /// Nothing of it goes on.
    pub dropped: Bit,
    /// What it counts as (`causes`), unless it is cut or its sum is wrong. `fixed`: whatever its sum is.
    pub cause: Bits<4>,
    pub fixed: Bit,
    /// The UDP checksum is to be checked; sum of everything that it covers in front of the inner frame.
    pub check: Bit,
    pub sum: Bits<18>,
    /// First byte of the frame behind the packet, bytes of the inner frame.
    pub stop: Bits<17>,
    pub inner: Bits<16>,
    /// Tags in front of the inner IP header; bits that turn over in its second byte, and in its checksum as it lies on the bus.
    pub tags: Bits<2>,
    pub turn: Bits<8>,
    pub turn_sum: Bits<16>,
    /// Whose tunnel it is; see `RxDesc`.
    pub function: Bits<12>,
}

/// Decides. See `ferric_model::switch::outer` for the meaning.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Judge<const NF: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ctx: [Signal<In, TunnelCtx>; NF],
    pub valid: Signal<In, Bit>,
    pub link: Signal<In, Link>,
    pub to: Signal<In, Bits<NF>>,
    pub known: Signal<In, Bits<NF>>,
    pub l4: Signal<In, Bits<L4>>,
    pub pairs: [Signal<In, Bits<18>>; 5],
    pub quads: [Signal<In, Bits<18>>; 4],
    /// The frame ends with the window, and how many bytes it has then.
    pub ended: Signal<In, Bit>,
    pub len: Signal<In, Bits<8>>,
    /// Three cycles later.
    pub fate_valid: Signal<Out, Bit>,
    pub fate: Signal<Out, Fate>,
    // Stage 3: UDP, VXLAN, inner Ethernet
    #[init(BePick::of(&wire::Udp::LAYOUT, 0))]
    udp: BePick<L4, Udp>,
    #[init(BePick::of(&wire::Vxlan::LAYOUT, wire::Udp::BYTES))]
    vxlan: BePick<L4, Vxlan>,
    #[init([12, 16, 20].map(|at| be16(TUNNEL + at)))]
    types: [BePick<L4, Bits<16>>; 3],
    #[init([14, 18, 22].map(|at| Slice::new((TUNNEL + at) * 8)))]
    inners: [Slice<L4, INNER>; 3],
    type0: Signal<Local, Bits<16>>,
    type1: Signal<Local, Bits<16>>,
    tag0: Signal<Local, Bit>,
    tag1: Signal<Local, Bit>,
    inner_type: Signal<Local, Bits<16>>,
    words: [Resize<16, 20>; 8],
    cut: Signal<Local, Bit>,
    length: Signal<Local, Bits<17>>,
    strict: Signal<Local, Bit>,
    valid3: DFF<Bit>,
    link3: DFF<Link>,
    tunnel3: DFF<Bit>,
    lengths3: DFF<Bit>,
    no_sum3: DFF<Bit>,
    flags3: DFF<Bit>,
    /// The tunnel that it came through, if it is one; those whose remote endpoint has sent it, or anybody may.
    hits: Gather<NF>,
    hits3: DFF<Bits<NF>>,
    known3: DFF<Bits<NF>>,
    flag3: DFF<Bit>,
    lenients: Gather<NF>,
    zeros: Gather<NF>,
    have: Gather<NF>,
    own: Signal<Local, TunnelCtx>,
    lenient: Signal<Local, Bits<NF>>,
    zero: Signal<Local, Bits<NF>>,
    from: Signal<Local, Bits<NF>>,
    zero_fine: Signal<Local, Bit>,
    flags_fine: Signal<Local, Bit>,
    known_fine: Signal<Local, Bit>,
    found: Signal<Local, Bits<12>>,
    #[init(std::array::from_fn(|function| Constant::new((function as u64).to_bits())))]
    numbers: [Constant<Bits<12>>; NF],
    inner3: DFF<Bits<16>>,
    short3: DFF<Bit>,
    tags3: DFF<Bits<2>>,
    type4: DFF<Bit>,
    type6: DFF<Bit>,
    l3: DFF<Bits<INNER>>,
    header3: DFF<Bits<20>>,
    addresses3: DFF<Bits<20>>,
    udp3: DFF<Bits<20>>,
    vxlan3: DFF<Bits<20>>,
    // Stage 4: the inner IP header, and the verdict
    version: Signal<Local, Bits<4>>,
    ihl: Signal<Local, Bits<4>>,
    least: Signal<Local, Bits<16>>,
    is_ip: Signal<Local, Bit>,
    second: Signal<Local, Bits<8>>,
    ecn: Signal<Local, Bits<2>>,
    outer_ecn: Signal<Local, Bits<2>>,
    new_ecn: Signal<Local, Bits<2>>,
    flipped: Signal<Local, Bits<2>>,
    refused: Signal<Local, Bit>,
    folded: Signal<Local, Bits<17>>,
    header_right: Signal<Local, Bit>,
    #[init(be16(10))]
    checksum: BePick<INNER, Bits<16>>,
    inverse: Signal<Local, Bits<16>>,
    more: Signal<Local, Bits<18>>,
    fate4: DFF<Fate>,
    valid4: DFF<Bit>,
    changes4: DFF<Bit>,
    old4: DFF<Bits<16>>,
    new4: DFF<Bits<18>>,
    sum4: DFF<Bits<22>>,
    // Stage 5: sums folded
    once: Signal<Local, Bits<18>>,
    twice: Signal<Local, Bits<16>>,
    new: Signal<Local, Bits<16>>,
    difference: Signal<Local, Bits<16>>,
    fate5: DFF<Fate>,
    valid5: DFF<Bit>,
}

#[kernel]
impl<const NF: usize> Logic for Judge<NF> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, valid3, link3, tunnel3, lengths3, no_sum3, flags3, hits3, known3, flag3, inner3, short3, tags3, type4, type6, l3);
        dff_setup!(self, clock, header3, addresses3, udp3, vxlan3, fate4, valid4, changes4, old4, new4, sum4, fate5, valid5);
        // Stage 3
        self.udp.x.next = self.l4.val();
        self.vxlan.x.next = self.l4.val();
        for i in 0..3 {
            self.types[i].x.next = self.l4.val();
            self.inners[i].x.next = self.l4.val();
        }
        for i in 0..8 {
            self.words[i].x.next = self.l4.val().get_bits::<16>(i * 16);
        }
        self.length.next = bit_cast::<17, 8>(self.len.val());
        self.cut.next = self.ended.val() & (self.length.val() < self.link.val().stop);
        self.valid3.d.next = self.valid.val();
        self.link3.d.next = self.link.val();
        self.tunnel3.d.next = self.link.val().ours & self.to.val().any() & !self.cut.val() & (self.udp.y.val().dst_port == VXLAN_PORT);
        self.lengths3.d.next = (self.udp.y.val().length == self.link.val().payload) & (self.link.val().payload >= TUNNEL as u64);
        self.no_sum3.d.next = !self.udp.y.val().checksum.any();
        self.strict.next = (self.vxlan.y.val().flags == VXLAN_FLAGS) & !self.vxlan.y.val().rsvd0.any() & !self.vxlan.y.val().rsvd1.any();
        self.flags3.d.next = self.strict.val();
        self.flag3.d.next = self.vxlan.y.val().flags.get_bit(3);
        for i in 0..NF {
            self.own.next = self.ctx[i].val();
            self.hits.x[i].next = self.to.val().get_bit(i) & (self.vxlan.y.val().vni == self.own.val().vni);
            self.lenients.x[i].next = self.own.val().lenient;
            self.zeros.x[i].next = self.own.val().zero_csum6;
            self.have.x[i].next = self.own.val().valid | self.own.val().bound;
        }
        self.hits3.d.next = self.hits.y.val();
        self.known3.d.next = self.known.val();
        self.inner3.d.next = self.link.val().payload - TUNNEL as u64;
        self.short3.d.next = self.link.val().payload < (TUNNEL + wire::Eth::BYTES) as u64;
        self.type0.next = self.types[0].y.val();
        self.type1.next = self.types[1].y.val();
        self.tag0.next = (self.type0.val() == ethertype::VLAN) | (self.type0.val() == ethertype::SERVICE_VLAN);
        self.tag1.next = self.type1.val() == ethertype::VLAN;
        self.tags3.d.next = bits::<2>(0);
        self.inner_type.next = self.type0.val();
        self.l3.d.next = self.inners[0].y.val();
        if self.tag0.val() {
            self.tags3.d.next = bits::<2>(ONE);
            self.inner_type.next = self.type1.val();
            self.l3.d.next = self.inners[1].y.val();
            if self.tag1.val() {
                self.tags3.d.next = bits::<2>(TWO);
                self.inner_type.next = self.types[2].y.val();
                self.l3.d.next = self.inners[2].y.val();
            }
        }
        self.type4.d.next = self.inner_type.val() == ethertype::IPV4;
        self.type6.d.next = self.inner_type.val() == ethertype::IPV6;
        self.header3.d.next = bit_cast::<20, 18>(self.pairs[0].val())
            + bit_cast::<20, 18>(self.pairs[1].val())
            + bit_cast::<20, 18>(self.pairs[2].val())
            + bit_cast::<20, 18>(self.pairs[3].val())
            + bit_cast::<20, 18>(self.pairs[4].val());
        self.addresses3.d.next = bit_cast::<20, 18>(self.quads[0].val()) + bit_cast::<20, 18>(self.quads[1].val()) + bit_cast::<20, 18>(self.quads[2].val()) + bit_cast::<20, 18>(self.quads[3].val());
        // The length counts twice: in the pseudo header, too.
        self.udp3.d.next = self.words[0].y.val() + self.words[1].y.val() + self.words[2].y.val() + self.words[2].y.val() + self.words[3].y.val();
        self.vxlan3.d.next = self.words[4].y.val() + self.words[5].y.val() + self.words[6].y.val() + self.words[7].y.val();
        // Stage 4: RFC 6040 figure 4
        self.version.next = self.l3.q.val().get_bits::<4>(4);
        self.ihl.next = self.l3.q.val().get_bits::<4>(0);
        self.second.next = self.l3.q.val().get_bits::<8>(8);
        self.least.next = bits::<16>(FRONT_4) + (bit_cast::<16, 2>(self.tags3.q.val()) << 2);
        self.is_ip.next = self.type4.q.val() & (self.version.val() == ip::VERSION_4) & (self.ihl.val() >= ip::WORDS) & (self.inner3.q.val() >= self.least.val());
        self.ecn.next = self.second.val().get_bits::<2>(0);
        if self.type6.q.val() {
            self.least.next = bits::<16>(FRONT_6) + (bit_cast::<16, 2>(self.tags3.q.val()) << 2);
            self.is_ip.next = (self.version.val() == ip::VERSION_6) & (self.inner3.q.val() >= self.least.val());
            self.ecn.next = self.second.val().get_bits::<2>(4);
        }
        self.outer_ecn.next = self.link3.q.val().ecn;
        self.new_ecn.next = self.ecn.val();
        // What is added to the complement of the old checksum: the new word and the complement of the old one.
        self.more.next = bits::<18>(RIGHT);
        if (self.outer_ecn.val() == CE) & (self.ecn.val() != NOT_ECT) {
            self.new_ecn.next = bits::<2>(CE);
            self.more.next = bits::<18>(TO_CE) - bit_cast::<18, 2>(self.ecn.val());
        }
        if (self.outer_ecn.val() == ECT_1) & (self.ecn.val() == ECT_0) {
            self.new_ecn.next = bits::<2>(ECT_1);
            self.more.next = bits::<18>(TO_ECT_1);
        }
        self.refused.next = self.is_ip.val() & (self.outer_ecn.val() == CE) & (self.ecn.val() == NOT_ECT);
        self.flipped.next = self.ecn.val() ^ self.new_ecn.val();
        self.checksum.x.next = self.l3.q.val();
        self.old4.d.next = self.checksum.y.val();
        self.inverse.next = !self.checksum.y.val();
        self.new4.d.next = bit_cast::<18, 16>(self.inverse.val()) + self.more.val();
        self.changes4.d.next = self.tunnel3.q.val() & self.is_ip.val() & self.type4.q.val() & self.flipped.val().any();
        self.folded.next = bit_cast::<17, 16>(self.header3.q.val().get_bits::<16>(0)) + bit_cast::<17, 4>(self.header3.q.val().get_bits::<4>(16));
        self.header_right.next = self.link3.q.val().v6 | (self.folded.val() == RIGHT);
        self.sum4.d.next = bit_cast::<22, 20>(self.addresses3.q.val()) + bit_cast::<22, 20>(self.udp3.q.val()) + bit_cast::<22, 20>(self.vxlan3.q.val()) + PROTOCOL;
        self.valid4.d.next = self.valid3.q.val();
        self.fate4.d.next.tunnel = self.tunnel3.q.val();
        self.fate4.d.next.v6 = self.link3.q.val().v6;
        self.fate4.d.next.tagged = self.link3.q.val().tagged;
        self.fate4.d.next.stop = self.link3.q.val().stop;
        self.fate4.d.next.inner = self.inner3.q.val();
        self.fate4.d.next.tags = self.tags3.q.val();
        self.fate4.d.next.turn = bits::<8>(0);
        self.fate4.d.next.turn_sum = bits::<16>(0);
        self.fate4.d.next.sum = bits::<18>(0);
        if self.tunnel3.q.val() & self.is_ip.val() {
            self.fate4.d.next.turn = bit_cast::<8, 2>(self.flipped.val());
            if self.type6.q.val() {
                self.fate4.d.next.turn = bit_cast::<8, 2>(self.flipped.val()) << 4;
            }
        }
        // By the tunnel's own rules; where there is none of this VNI, by the strictest.
        self.lenient.next = self.hits3.q.val() & self.lenients.y.val();
        self.zero.next = self.hits3.q.val() & self.zeros.y.val();
        self.from.next = self.hits3.q.val() & self.known3.q.val();
        self.flags_fine.next = self.flags3.q.val() | (self.flag3.q.val() & self.lenient.val().any());
        self.zero_fine.next = self.zero.val().any();
        self.known_fine.next = self.from.val().any();
        self.found.next = bits::<12>(0);
        for i in 0..NF {
            if self.hits3.q.val().get_bit(i) {
                self.found.next = self.numbers[i].val();
            }
        }
        self.fate4.d.next.function = self.found.val() | TO_ALL;
        if !self.tunnel3.q.val() {
            self.fate4.d.next.function = bits::<12>(0);
            if self.have.y.val().get_bit(0) {
                self.fate4.d.next.function = bits::<12>(NO_RAW);
            }
        }
        // The first of these that holds.
        self.fate4.d.next.dropped = true;
        self.fate4.d.next.fixed = false;
        if !self.tunnel3.q.val() {
            self.fate4.d.next.dropped = self.have.y.val().all();
            self.fate4.d.next.cause = bits::<4>(causes::MISS);
        } else if self.link3.q.val().first {
            self.fate4.d.next.fixed = true;
            self.fate4.d.next.cause = bits::<4>(causes::FRAGMENT);
        } else if !self.header_right.val() | !self.lengths3.q.val() {
            self.fate4.d.next.fixed = true;
            self.fate4.d.next.cause = bits::<4>(causes::MALFORMED);
        } else if self.no_sum3.q.val() & self.link3.q.val().v6 & !self.zero_fine.val() {
            self.fate4.d.next.fixed = true;
            self.fate4.d.next.cause = bits::<4>(causes::CSUM);
        } else if !self.flags_fine.val() {
            self.fate4.d.next.cause = bits::<4>(causes::FLAGS);
        } else if !self.hits3.q.val().any() {
            self.fate4.d.next.cause = bits::<4>(causes::VNI);
        } else if !self.known_fine.val() {
            self.fate4.d.next.cause = bits::<4>(causes::REMOTE);
        } else if self.short3.q.val() {
            self.fate4.d.next.cause = bits::<4>(causes::SHORT);
        } else if self.refused.val() {
            self.fate4.d.next.cause = bits::<4>(causes::ECN);
        } else {
            self.fate4.d.next.dropped = false;
            self.fate4.d.next.cause = bits::<4>(causes::STRIPPED);
        }
        self.fate4.d.next.check = self.tunnel3.q.val() & !self.no_sum3.q.val();
        // Stage 5
        self.once.next = bit_cast::<18, 16>(self.new4.q.val().get_bits::<16>(0)) + bit_cast::<18, 2>(self.new4.q.val().get_bits::<2>(16));
        self.twice.next = self.once.val().get_bits::<16>(0) + bit_cast::<16, 2>(self.once.val().get_bits::<2>(16));
        self.new.next = !self.twice.val();
        self.difference.next = self.old4.q.val() ^ self.new.val();
        self.valid5.d.next = self.valid4.q.val();
        self.fate5.d.next = self.fate4.q.val();
        self.fate5.d.next.sum = bit_cast::<18, 16>(self.sum4.q.val().get_bits::<16>(0)) + bit_cast::<18, 6>(self.sum4.q.val().get_bits::<6>(16));
        if self.changes4.q.val() {
            self.fate5.d.next.turn_sum = (self.difference.val() << 8) | (self.difference.val() >> 8);
        }
        self.fate_valid.next = self.valid5.q.val();
        self.fate.next = self.fate5.q.val();
        if self.reset.val() {
            self.valid3.d.next = false;
            self.valid4.d.next = false;
            self.valid5.d.next = false;
        }
    }
}
