//! Headers to fields, one layer per stage, one window per cycle.

use super::feed::Flags;
use super::opcode::Headers;
use super::window::WINDOW_BITS;
use crate::msg::RxDesc;
use crate::net::icrc::model::crc;
use crate::prim::lookup::Lookup;
use crate::prim::pack::{BePick, Slice};
use crate::prim::xor_matrix::XorMatrix;
use crate::records::{Bth, Deth, Ipv4, Ipv6, Reth, Udp};
use ferric_abi::wire;
use rust_hdl::prelude::*;

/// From Ethernet to the last byte any field is taken from: 18 + 40 + 8 + 12 + 20.
const FRONT: usize = 98 * 8;
/// IP to extended headers.
const L3: usize = 80 * 8;
/// UDP, BTH and 20 bytes of extended headers.
const L4: usize = 40 * 8;
/// Extended headers: RETH and immediate data at most.
const EXT: usize = 20 * 8;

/// What travels along unchanged: link layer and IP facts.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Link {
    pub vlan: Bit,
    pub tci: Bits<16>,
    /// IPv4 without options, IPv6.
    pub v4: Bit,
    pub v6: Bit,
    pub ecn: Bits<2>,
}

/// The entry of [`Headers::entry`], named.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Exts {
    pub need: Bits<6>,
    pub address: Bit,
    pub length: Bit,
    pub deth: Bit,
    pub aeth: Bit,
    pub imm0: Bit,
    pub imm8: Bit,
    pub imm16: Bit,
}

/// Window in, after three cycles [`Flags`], after seven the descriptor. See `model.rs` for the meaning of each field.
#[derive(LogicBlock)]
pub struct Parser {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub window: Signal<In, Bits<WINDOW_BITS>>,
    pub window_valid: Signal<In, Bit>,
    pub flags: Signal<Out, Flags>,
    pub flags_valid: Signal<Out, Bit>,
    /// Without handle and lengths that only the frame's end tells. Transport fields are zero in a raw one.
    pub desc: Signal<Out, RxDesc>,
    pub malformed: Signal<Out, Bit>,
    pub desc_valid: Signal<Out, Bit>,
    valid: [DFF<Bit>; 7],
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
    l4_3: DFF<Bits<L4>>,
    link3: DFF<Link>,
    whole3: DFF<Bit>,
    udp4_3: DFF<Bit>,
    udp6_3: DFF<Bit>,
    tcp4_3: DFF<Bit>,
    tcp6_3: DFF<Bit>,
    total3: DFF<Bits<17>>,
    plen3: DFF<Bits<17>>,
    pairs3: [DFF<Bits<17>>; 5],
    words: [Signal<Local, Bits<16>>; 10],
    addr3: DFF<Bits<256>>,
    flags3: DFF<Flags>,
    // Stage 4: UDP and BTH, opcode
    udp: BePick<L4, Udp>,
    bth: BePick<L4, Bth>,
    ext: Slice<L4, EXT>,
    ports: Slice<L4, 32>,
    by_opcode: Lookup<8, 13>,
    exts: crate::prim::pack::Cast<Bits<13>, Exts>,
    hash_addr: XorMatrix<256, 32>,
    hash_ports: XorMatrix<32, 32>,
    link4: DFF<Link>,
    is_udp4: DFF<Bit>,
    has_ports4: DFF<Bit>,
    roce_port4: DFF<Bit>,
    ip_payload4: DFF<Bits<17>>,
    udp_len4: DFF<Bits<17>>,
    bth4: DFF<Bth>,
    ext4: DFF<Bits<EXT>>,
    exts4: DFF<Exts>,
    sum_a4: DFF<Bits<20>>,
    sum_b4: DFF<Bits<20>>,
    sum_c4: DFF<Bits<20>>,
    hash_a4: DFF<Bits<32>>,
    hash_p4: DFF<Bits<32>>,
    // Stage 5
    link5: DFF<Link>,
    roce5: DFF<Bit>,
    bad5: DFF<Bit>,
    pay5: DFF<Bits<17>>,
    off5: DFF<Bits<8>>,
    off_base: Signal<Local, Bits<8>>,
    sum5: DFF<Bits<20>>,
    hash5: DFF<Bits<32>>,
    hash_a: Signal<Local, Bits<32>>,
    hash_p: Signal<Local, Bits<32>>,
    bth5: DFF<Bth>,
    ext5: DFF<Bits<EXT>>,
    exts5: DFF<Exts>,
    // Stage 6
    reth: BePick<EXT, Reth>,
    deth: BePick<EXT, Deth>,
    word0: BePick<EXT, Bits<32>>,
    word8: BePick<EXT, Bits<32>>,
    word16: BePick<EXT, Bits<32>>,
    desc6: DFF<RxDesc>,
    bad6: DFF<Bit>,
    pay6: DFF<Bits<17>>,
    fold6: DFF<Bits<17>>,
    v4_6: DFF<Bit>,
    fold_low: Signal<Local, Bits<17>>,
    fold_high: Signal<Local, Bits<17>>,
    // Stage 7
    desc7: DFF<RxDesc>,
    bad7: DFF<Bit>,
    negative: Signal<Local, Bit>,
    sum_wrong: Signal<Local, Bit>,
    twenty: Constant<Bits<17>>,
    blank: Constant<RxDesc>,
}

/// 32-bit network-order word at byte `at` of the extended headers.
fn word(at: usize) -> BePick<EXT, Bits<32>> {
    BePick::new((0..32).map(|bit| 8 * (at + 3 - bit / 8) + bit % 8).collect())
}

/// Column of the flow hash: bit `j` of the bytes from `from` on.
fn hash_column(from: usize, j: usize) -> u128 {
    let mut bytes = [0; 36];
    bytes[from + j / 8] = 1 << (j % 8);
    crc(0, &bytes).into()
}

impl Default for Parser {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            reset: Default::default(),
            window: Default::default(),
            window_valid: Default::default(),
            flags: Default::default(),
            flags_valid: Default::default(),
            desc: Default::default(),
            malformed: Default::default(),
            desc_valid: Default::default(),
            valid: Default::default(),
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
            l4_3: Default::default(),
            link3: Default::default(),
            whole3: Default::default(),
            udp4_3: Default::default(),
            udp6_3: Default::default(),
            tcp4_3: Default::default(),
            tcp6_3: Default::default(),
            total3: Default::default(),
            plen3: Default::default(),
            pairs3: Default::default(),
            words: Default::default(),
            addr3: Default::default(),
            flags3: Default::default(),
            udp: BePick::of(&wire::Udp::LAYOUT, 0),
            bth: BePick::of(&wire::Bth::LAYOUT, 8),
            ext: Slice::new(20 * 8),
            ports: Slice::new(0),
            by_opcode: Lookup::of(|opcode| Headers::of(opcode as u8).entry()),
            exts: Default::default(),
            hash_addr: XorMatrix::of(|j| hash_column(0, j)),
            hash_ports: XorMatrix::of(|j| hash_column(32, j)),
            link4: Default::default(),
            is_udp4: Default::default(),
            has_ports4: Default::default(),
            roce_port4: Default::default(),
            ip_payload4: Default::default(),
            udp_len4: Default::default(),
            bth4: Default::default(),
            ext4: Default::default(),
            exts4: Default::default(),
            sum_a4: Default::default(),
            sum_b4: Default::default(),
            sum_c4: Default::default(),
            hash_a4: Default::default(),
            hash_p4: Default::default(),
            link5: Default::default(),
            roce5: Default::default(),
            bad5: Default::default(),
            pay5: Default::default(),
            off5: Default::default(),
            off_base: Default::default(),
            sum5: Default::default(),
            hash5: Default::default(),
            hash_a: Default::default(),
            hash_p: Default::default(),
            bth5: Default::default(),
            ext5: Default::default(),
            exts5: Default::default(),
            reth: BePick::of(&wire::Reth::LAYOUT, 0),
            deth: BePick::of(&wire::Deth::LAYOUT, 0),
            word0: word(0),
            word8: word(8),
            word16: word(16),
            desc6: Default::default(),
            bad6: Default::default(),
            pay6: Default::default(),
            fold6: Default::default(),
            v4_6: Default::default(),
            fold_low: Default::default(),
            fold_high: Default::default(),
            desc7: Default::default(),
            bad7: Default::default(),
            negative: Default::default(),
            sum_wrong: Default::default(),
            twenty: Constant::new(20u64.to_bits()),
            blank: Constant::new(RxDesc::default()),
        }
    }
}

impl Logic for Parser {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, front1, tagged1, plain4_1, plain6_1, tag4_1, tag6_1, l3_2, link2, l4_3, link3, whole3);
        dff_setup!(self, clock, udp4_3, udp6_3, tcp4_3, tcp6_3, total3, plen3, addr3, flags3, link4, is_udp4, has_ports4);
        dff_setup!(self, clock, roce_port4, ip_payload4, udp_len4, bth4, ext4, exts4, sum_a4, sum_b4, sum_c4, hash_a4, hash_p4);
        dff_setup!(self, clock, link5, roce5, bad5, pay5, off5, sum5, hash5, bth5, ext5, exts5);
        dff_setup!(self, clock, desc6, bad6, pay6, fold6, v4_6, desc7, bad7);
        for i in 0..7 {
            self.valid[i].clock.next = self.clock.val();
        }
        for i in 0..5 {
            self.pairs3[i].clock.next = self.clock.val();
        }
        self.valid[0].d.next = self.window_valid.val();
        for i in 1..7 {
            self.valid[i].d.next = self.valid[i - 1].q.val();
        }
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
        self.whole3.d.next = !self.ip4.y.val().flags.get_bit(0) & !self.ip4.y.val().fragment.any();
        self.udp4_3.d.next = self.ip4.y.val().protocol == 17;
        self.udp6_3.d.next = self.ip6.y.val().next_header == 17;
        self.tcp4_3.d.next = self.ip4.y.val().protocol == 6;
        self.tcp6_3.d.next = self.ip6.y.val().next_header == 6;
        self.total3.d.next = bit_cast::<17, 16>(self.ip4.y.val().total_length);
        self.plen3.d.next = bit_cast::<17, 16>(self.ip6.y.val().payload_length);
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
        self.flags.next = self.flags3.q.val();
        self.flags_valid.next = self.valid[2].q.val();
        // Stage 4
        self.udp.x.next = self.l4_3.q.val();
        self.bth.x.next = self.l4_3.q.val();
        self.ext.x.next = self.l4_3.q.val();
        self.ports.x.next = self.l4_3.q.val();
        self.by_opcode.x.next = self.bth.y.val().opcode;
        self.exts.x.next = self.by_opcode.y.val();
        self.hash_addr.x.next = self.addr3.q.val();
        self.hash_ports.x.next = self.ports.y.val();
        self.link4.d.next = self.link3.q.val();
        self.is_udp4.d.next = (self.link3.q.val().v4 & self.whole3.q.val() & self.udp4_3.q.val())
            | (self.link3.q.val().v6 & self.udp6_3.q.val());
        self.has_ports4.d.next = (self.link3.q.val().v4 & self.whole3.q.val() & (self.udp4_3.q.val() | self.tcp4_3.q.val()))
            | (self.link3.q.val().v6 & (self.udp6_3.q.val() | self.tcp6_3.q.val()));
        self.roce_port4.d.next = self.udp.y.val().dst_port == 4791;
        self.ip_payload4.d.next = self.total3.q.val() - self.twenty.val();
        if self.link3.q.val().v6 {
            self.ip_payload4.d.next = self.plen3.q.val();
        }
        self.udp_len4.d.next = bit_cast::<17, 16>(self.udp.y.val().length);
        self.bth4.d.next = self.bth.y.val();
        self.ext4.d.next = self.ext.y.val();
        self.exts4.d.next = self.exts.y.val();
        self.sum_a4.d.next = bit_cast::<20, 17>(self.pairs3[0].q.val()) + bit_cast::<20, 17>(self.pairs3[1].q.val());
        self.sum_b4.d.next = bit_cast::<20, 17>(self.pairs3[2].q.val()) + bit_cast::<20, 17>(self.pairs3[3].q.val());
        self.sum_c4.d.next = bit_cast::<20, 17>(self.pairs3[4].q.val());
        self.hash_a4.d.next = self.hash_addr.y.val();
        self.hash_p4.d.next = self.hash_ports.y.val();
        // Stage 5
        self.link5.d.next = self.link4.q.val();
        self.roce5.d.next = self.is_udp4.q.val() & self.roce_port4.q.val();
        self.bad5.d.next = (self.udp_len4.q.val() != self.ip_payload4.q.val()) | self.bth4.q.val().tver.any();
        self.pay5.d.next = self.udp_len4.q.val() - bit_cast::<17, 6>(self.exts4.q.val().need);
        // Ethernet and IP header, less the ICRC that `need` counts
        self.off_base.next = bits::<8>(30);
        if self.link4.q.val().v6 {
            self.off_base.next = bits::<8>(50);
            if self.link4.q.val().vlan {
                self.off_base.next = bits::<8>(54);
            }
        } else if self.link4.q.val().vlan {
            self.off_base.next = bits::<8>(34);
        }
        self.off5.d.next = self.off_base.val() + bit_cast::<8, 6>(self.exts4.q.val().need);
        self.sum5.d.next = self.sum_a4.q.val() + self.sum_b4.q.val() + self.sum_c4.q.val();
        self.hash_a.next = bits::<32>(0);
        self.hash_p.next = bits::<32>(0);
        if self.link4.q.val().v4 | self.link4.q.val().v6 {
            self.hash_a.next = self.hash_a4.q.val();
        }
        if self.has_ports4.q.val() {
            self.hash_p.next = self.hash_p4.q.val();
        }
        self.hash5.d.next = self.hash_a.val() ^ self.hash_p.val();
        self.bth5.d.next = self.bth4.q.val();
        self.ext5.d.next = self.ext4.q.val();
        self.exts5.d.next = self.exts4.q.val();
        // Stage 6
        self.reth.x.next = self.ext5.q.val();
        self.deth.x.next = self.ext5.q.val();
        self.word0.x.next = self.ext5.q.val();
        self.word8.x.next = self.ext5.q.val();
        self.word16.x.next = self.ext5.q.val();
        self.bad6.d.next = self.bad5.q.val();
        self.pay6.d.next = self.pay5.q.val() - bit_cast::<17, 2>(self.bth5.q.val().pad);
        self.fold_low.next = bit_cast::<17, 16>(self.sum5.q.val().get_bits::<16>(0));
        self.fold_high.next = bit_cast::<17, 4>(self.sum5.q.val().get_bits::<4>(16));
        self.fold6.d.next = self.fold_low.val() + self.fold_high.val();
        self.v4_6.d.next = self.link5.q.val().v4;
        self.desc6.d.next = self.blank.val();
        self.desc6.d.next.class = self.link5.q.val().tci.get_bits::<3>(13);
        self.desc6.d.next.ecn = bits::<2>(0);
        if self.link5.q.val().v4 | self.link5.q.val().v6 {
            self.desc6.d.next.ecn = self.link5.q.val().ecn;
        }
        self.desc6.d.next.ipv6 = self.link5.q.val().v6;
        self.desc6.d.next.has_vlan = self.link5.q.val().vlan;
        self.desc6.d.next.vlan_tci = self.link5.q.val().tci;
        self.desc6.d.next.flow_hash = self.hash5.q.val();
        self.desc6.d.next.raw = !self.roce5.q.val();
        if self.roce5.q.val() {
            self.desc6.d.next.pay_off = self.off5.q.val();
            self.desc6.d.next.pad = self.bth5.q.val().pad;
            self.desc6.d.next.opcode = self.bth5.q.val().opcode;
            self.desc6.d.next.solicited = self.bth5.q.val().solicited;
            self.desc6.d.next.ack_req = self.bth5.q.val().ack_req;
            self.desc6.d.next.becn = self.bth5.q.val().becn;
            self.desc6.d.next.fecn = self.bth5.q.val().fecn;
            self.desc6.d.next.pkey = self.bth5.q.val().pkey;
            self.desc6.d.next.dest_qpn = self.bth5.q.val().dest_qpn;
            self.desc6.d.next.psn = self.bth5.q.val().psn;
            if self.exts5.q.val().address {
                self.desc6.d.next.va = self.reth.y.val().va;
                self.desc6.d.next.rkey = self.reth.y.val().rkey;
            }
            if self.exts5.q.val().length {
                self.desc6.d.next.dma_len = self.reth.y.val().length;
            }
            if self.exts5.q.val().deth {
                self.desc6.d.next.qkey = self.deth.y.val().qkey;
                self.desc6.d.next.src_qpn = self.deth.y.val().src_qpn;
            }
            if self.exts5.q.val().aeth {
                self.desc6.d.next.aeth = self.word0.y.val();
            }
            if self.exts5.q.val().imm0 {
                self.desc6.d.next.imm = self.word0.y.val();
            }
            if self.exts5.q.val().imm8 {
                self.desc6.d.next.imm = self.word8.y.val();
            }
            if self.exts5.q.val().imm16 {
                self.desc6.d.next.imm = self.word16.y.val();
            }
        }
        // Stage 7
        self.negative.next = self.pay6.q.val().get_bit(16);
        self.sum_wrong.next = self.v4_6.q.val() & (self.fold6.q.val() != 0xffff);
        self.desc7.d.next = self.desc6.q.val();
        self.desc7.d.next.pay_len = self.pay6.q.val().get_bits::<13>(0);
        self.bad7.d.next = !self.desc6.q.val().raw & (self.bad6.q.val() | self.negative.val() | self.sum_wrong.val());
        self.desc.next = self.desc7.q.val();
        self.malformed.next = self.bad7.q.val();
        self.desc_valid.next = self.valid[6].q.val();
        if self.reset.val() {
            for i in 0..7 {
                self.valid[i].d.next = false;
            }
        }
    }
}
