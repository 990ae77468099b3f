//! Headers to fields, one layer per stage, one window per cycle: UDP and transport, on top of [`IpLayer`].

use super::feed::Flags;
use super::ip::{IpLayer, Link, L4};
use super::opcode::Headers;
use super::window::WINDOW_BITS;
use crate::msg::RxDesc;
use crate::net::icrc::model::crc;
use crate::prim::lookup::Lookup;
use crate::prim::pack::{BePick, Cast, Slice};
use crate::prim::xor_matrix::XorMatrix;
use crate::records::{Bth, Deth, Reth, Udp};
use ferric_abi::wire;
use rust_hdl::prelude::*;

/// Extended headers: RETH and immediate data at most.
const EXT: usize = 20 * 8;

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
    ip: IpLayer,
    valid: [DFF<Bit>; 4],
    // Stage 4: UDP and BTH, opcode
    udp: BePick<L4, Udp>,
    bth: BePick<L4, Bth>,
    ext: Slice<L4, EXT>,
    ports: Slice<L4, 32>,
    by_opcode: Lookup<8, 13>,
    exts: Cast<Bits<13>, Exts>,
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
            ip: Default::default(),
            valid: Default::default(),
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
        dff_setup!(self, clock, link4, is_udp4, has_ports4);
        dff_setup!(self, clock, roce_port4, ip_payload4, udp_len4, bth4, ext4, exts4, sum_a4, sum_b4, sum_c4, hash_a4, hash_p4);
        dff_setup!(self, clock, link5, roce5, bad5, pay5, off5, sum5, hash5, bth5, ext5, exts5);
        dff_setup!(self, clock, desc6, bad6, pay6, fold6, v4_6, desc7, bad7);
        clock!(self, clock, ip);
        for i in 0..4 {
            self.valid[i].clock.next = self.clock.val();
        }
        // Stages 1 to 3
        self.ip.reset.next = self.reset.val();
        self.ip.window.next = self.window.val();
        self.ip.window_valid.next = self.window_valid.val();
        self.flags.next = self.ip.flags.val();
        self.flags_valid.next = self.ip.valid.val();
        self.valid[0].d.next = self.ip.valid.val();
        for i in 1..4 {
            self.valid[i].d.next = self.valid[i - 1].q.val();
        }
        // Stage 4
        self.udp.x.next = self.ip.l4.val();
        self.bth.x.next = self.ip.l4.val();
        self.ext.x.next = self.ip.l4.val();
        self.ports.x.next = self.ip.l4.val();
        self.by_opcode.x.next = self.bth.y.val().opcode;
        self.exts.x.next = self.by_opcode.y.val();
        self.hash_addr.x.next = self.ip.addr.val();
        self.hash_ports.x.next = self.ports.y.val();
        self.link4.d.next = self.ip.link.val();
        self.is_udp4.d.next = (self.ip.link.val().v4 & self.ip.facts.val().whole & self.ip.facts.val().udp4)
            | (self.ip.link.val().v6 & self.ip.facts.val().udp6);
        self.has_ports4.d.next = (self.ip.link.val().v4 & self.ip.facts.val().whole & (self.ip.facts.val().udp4 | self.ip.facts.val().tcp4))
            | (self.ip.link.val().v6 & (self.ip.facts.val().udp6 | self.ip.facts.val().tcp6));
        self.roce_port4.d.next = self.udp.y.val().dst_port == 4791;
        self.ip_payload4.d.next = self.ip.facts.val().total - self.twenty.val();
        if self.ip.link.val().v6 {
            self.ip_payload4.d.next = self.ip.facts.val().plen;
        }
        self.udp_len4.d.next = bit_cast::<17, 16>(self.udp.y.val().length);
        self.bth4.d.next = self.bth.y.val();
        self.ext4.d.next = self.ext.y.val();
        self.exts4.d.next = self.exts.y.val();
        self.sum_a4.d.next = bit_cast::<20, 17>(self.ip.pairs[0].val()) + bit_cast::<20, 17>(self.ip.pairs[1].val());
        self.sum_b4.d.next = bit_cast::<20, 17>(self.ip.pairs[2].val()) + bit_cast::<20, 17>(self.ip.pairs[3].val());
        self.sum_c4.d.next = bit_cast::<20, 17>(self.ip.pairs[4].val());
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
        self.desc_valid.next = self.valid[3].q.val();
        if self.reset.val() {
            for i in 0..4 {
                self.valid[i].d.next = false;
            }
        }
    }
}
