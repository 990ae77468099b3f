//! Headers to fields, one layer per stage, one window per cycle: UDP and transport, on top of [`IpLayer`].

use super::feed::Flags;
use super::ip::{IpLayer, Link, L4};
use super::opcode::{entry, Headers};
use super::window::{Types, WINDOW_BITS};
use crate::codes::header;
use crate::codes::ip::RIGHT_SUM;
use crate::msg::{Network, PeerAsk, RxDesc};
use crate::net::icrc::model::crc;
use crate::prim::lookup::Lookup;
use crate::prim::pack::{BePick, Cast, Slice};
use crate::prim::xor_matrix::XorMatrix;
use crate::records::{AtomicAckEth, AtomicEth, Bth, Deth, Reth, Udp};
use ferric_abi::meta::frame_kind;
use ferric_abi::wire;
use ferric_hdl_derive::{kernel, BlockDefault};
use ferric_model::net::networks::WHOLE;
use rust_hdl::prelude::*;

// Bytes of Ethernet and IP header, less the ICRC that `Headers::need` counts.
const BEFORE_4: u64 = (wire::Eth::BYTES + wire::Ipv4::BYTES - wire::ICRC_BYTES) as u64;
const BEFORE_4_VLAN: u64 = BEFORE_4 + header::VLAN;
const BEFORE_6: u64 = (wire::Eth::BYTES + wire::Ipv6::BYTES - wire::ICRC_BYTES) as u64;
const BEFORE_6_VLAN: u64 = BEFORE_6 + header::VLAN;

/// The bit of a frame's `function` that says that it is for all of that one's network.
const ALL: usize = WHOLE.ilog2() as usize;

/// Extended headers: AtomicETH at most.
const EXT: usize = 28 * 8;

/// The entry of `entry`, named.
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
    pub atomic: Bit,
    pub atomic_ack: Bit,
    pub feth: Bit,
}

/// Window in, with it [`Flags`], after four cycles the descriptor. See `model.rs` for the meaning of each field.
#[derive(LogicBlock, BlockDefault)]
pub struct Parser {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub window: Signal<In, Bits<WINDOW_BITS>>,
    pub window_valid: Signal<In, Bit>,
    pub types: Signal<In, Types>,
    /// Where the frame in `window` comes from.
    pub network: Signal<In, Network>,
    /// And what stands in `src_qpn` if it is no RoCE packet.
    pub note: Signal<In, Bits<24>>,
    /// Combinational: good as soon as the window reaches the IP length.
    pub flags: Signal<Out, Flags>,
    /// Without handle and lengths that only the frame's end tells. Transport fields are zero in a raw one, but for `src_qpn`.
    pub desc: Signal<Out, RxDesc>,
    pub malformed: Signal<Out, Bit>,
    /// A RoCE packet that `roce/peer` refuses, another frame that is for another station.
    pub refused: Signal<Out, Bit>,
    /// A RoCE packet to a queue pair of another network, whatever else is wrong with it.
    pub foreign: Signal<Out, Bit>,
    pub desc_valid: Signal<Out, Bit>,
    /// Of the frame in stage 2; in its stage 4 the answer, which counts if it is RoCE.
    pub peer: Signal<Out, PeerAsk>,
    pub peer_stranger: Signal<In, Bit>,
    pub peer_foreign: Signal<In, Bit>,
    /// With `peer_stranger`: bits of the number of the queue pair that the packet is for which it does not name.
    pub peer_line: Signal<In, Bits<24>>,
    /// Every frame's destination, in its stage 1; in its stage 4 the answer, which counts if it is not RoCE.
    pub dmac: Signal<Out, Bits<48>>,
    pub dmac_network: Signal<Out, Network>,
    pub other_station: Signal<In, Bit>,
    pub owner: Signal<In, Bits<6>>,
    pub owned: Signal<In, Bit>,
    ip: IpLayer,
    valid: [DFF<Bit>; 3],
    networks: [DFF<Network>; 3],
    notes: [DFF<Bits<24>>; 3],
    came: Signal<Local, Network>,
    // Stage 2: UDP and BTH, opcode
    #[init(BePick::of(&wire::Udp::LAYOUT, 0))]
    udp: BePick<L4, Udp>,
    #[init(BePick::of(&wire::Bth::LAYOUT, 8))]
    bth: BePick<L4, Bth>,
    #[init(Slice::new(20 * 8))]
    ext: Slice<L4, EXT>,
    #[init(Slice::new(0))]
    ports: Slice<L4, 32>,
    #[init(Lookup::of(|opcode| entry(Headers::of(opcode as u8))))]
    by_opcode: Lookup<8, 16>,
    exts: Cast<Bits<16>, Exts>,
    #[init(XorMatrix::of(|j| hash_column(0, j)))]
    hash_addr: XorMatrix<256, 32>,
    #[init(XorMatrix::of(|j| hash_column(32, j)))]
    hash_ports: XorMatrix<32, 32>,
    /// Addresses as numbers: IPv4 in the high 32 bits.
    #[init(address(0))]
    src: BePick<256, Bits<128>>,
    #[init(address(16))]
    dst: BePick<256, Bits<128>>,
    dst2: DFF<Bits<128>>,
    dst3: DFF<Bits<128>>,
    link2: DFF<Link>,
    is_udp2: DFF<Bit>,
    has_ports2: DFF<Bit>,
    kind2: DFF<Bits<2>>,
    kind3: DFF<Bits<2>>,
    roce_port2: DFF<Bit>,
    ip_payload2: DFF<Bits<17>>,
    udp_len2: DFF<Bits<17>>,
    bth2: DFF<Bth>,
    ext2: DFF<Bits<EXT>>,
    exts2: DFF<Exts>,
    sum_a2: DFF<Bits<20>>,
    sum_b2: DFF<Bits<20>>,
    sum_c2: DFF<Bits<20>>,
    hash_a2: DFF<Bits<32>>,
    hash_p2: DFF<Bits<32>>,
    // Stage 3
    link3: DFF<Link>,
    roce3: DFF<Bit>,
    bad3: DFF<Bit>,
    pay3: DFF<Bits<17>>,
    off3: DFF<Bits<8>>,
    off_base: Signal<Local, Bits<8>>,
    sum3: DFF<Bits<20>>,
    hash3: DFF<Bits<32>>,
    hash_a: Signal<Local, Bits<32>>,
    hash_p: Signal<Local, Bits<32>>,
    bth3: DFF<Bth>,
    ext3: DFF<Bits<EXT>>,
    exts3: DFF<Exts>,
    // Stage 4
    #[init(BePick::of(&wire::Reth::LAYOUT, 0))]
    reth: BePick<EXT, Reth>,
    #[init(BePick::of(&wire::Reth::LAYOUT, wire::Feth::BYTES))]
    late_reth: BePick<EXT, Reth>,
    #[init(BePick::of(&wire::Deth::LAYOUT, 0))]
    deth: BePick<EXT, Deth>,
    #[init(BePick::of(&wire::AtomicEth::LAYOUT, 0))]
    atomic: BePick<EXT, AtomicEth>,
    #[init(BePick::of(&wire::AtomicAckEth::LAYOUT, 4))]
    atomic_ack: BePick<EXT, AtomicAckEth>,
    #[init(word(0))]
    word0: BePick<EXT, Bits<32>>,
    #[init(word(8))]
    word8: BePick<EXT, Bits<32>>,
    #[init(word(16))]
    word16: BePick<EXT, Bits<32>>,
    desc4: DFF<RxDesc>,
    bad4: DFF<Bit>,
    refused4: DFF<Bit>,
    foreign4: DFF<Bit>,
    fold_high: Signal<Local, Bits<16>>,
    folded: Signal<Local, Bits<16>>,
    sum_wrong: Signal<Local, Bit>,
    #[init(Constant::new(20u64.to_bits()))]
    twenty: Constant<Bits<17>>,
    #[init(Constant::new(RxDesc::default()))]
    blank: Constant<RxDesc>,
}

/// 32-bit network-order word at byte `at` of the extended headers.
fn word(at: usize) -> BePick<EXT, Bits<32>> {
    BePick::new((0..32).map(|bit| 8 * (at + 3 - bit / 8) + bit % 8).collect())
}

/// 128-bit network-order number at byte `at` of the addresses.
fn address(at: usize) -> BePick<256, Bits<128>> {
    BePick::new((0..128).map(|bit| 8 * (at + 15 - bit / 8) + bit % 8).collect())
}

/// Column of the flow hash: bit `j` of the bytes from `from` on.
fn hash_column(from: usize, j: usize) -> u128 {
    let mut bytes = [0; 36];
    bytes[from + j / 8] = 1 << (j % 8);
    crc(0, &bytes).into()
}

#[kernel]
impl Logic for Parser {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, link2, is_udp2, has_ports2);
        dff_setup!(self, clock, roce_port2, ip_payload2, udp_len2, bth2, ext2, exts2, sum_a2, sum_b2, sum_c2, hash_a2, hash_p2);
        dff_setup!(self, clock, link3, roce3, bad3, pay3, off3, sum3, hash3, bth3, ext3, exts3);
        dff_setup!(self, clock, desc4, bad4, refused4, foreign4, dst2, dst3, kind2, kind3);
        clock!(self, clock, ip);
        for i in 0..3 {
            self.valid[i].clock.next = self.clock.val();
            self.networks[i].clock.next = self.clock.val();
            self.notes[i].clock.next = self.clock.val();
        }
        self.networks[0].d.next = self.network.val();
        self.notes[0].d.next = self.note.val();
        for i in 1..3 {
            self.networks[i].d.next = self.networks[i - 1].q.val();
            self.notes[i].d.next = self.notes[i - 1].q.val();
        }
        self.came.next = self.networks[0].q.val();
        if self.came.val().tunnel & self.came.val().function.get_bit(ALL) & self.owned.val() {
            self.networks[1].d.next.function = bit_cast::<12, 6>(self.owner.val());
        }
        // Stage 1
        self.ip.types.next = self.types.val();
        self.ip.reset.next = self.reset.val();
        self.ip.window.next = self.window.val();
        self.ip.window_valid.next = self.window_valid.val();
        self.flags.next = self.ip.flags.val();
        self.valid[0].d.next = self.ip.valid.val();
        for i in 1..3 {
            self.valid[i].d.next = self.valid[i - 1].q.val();
        }
        // Stage 2
        self.udp.x.next = self.ip.l4.val();
        self.bth.x.next = self.ip.l4.val();
        self.ext.x.next = self.ip.l4.val();
        self.ports.x.next = self.ip.l4.val();
        self.by_opcode.x.next = self.bth.y.val().opcode;
        self.exts.x.next = self.by_opcode.y.val();
        self.hash_addr.x.next = self.ip.addr.val();
        self.src.x.next = self.ip.addr.val();
        self.dst.x.next = self.ip.addr.val();
        self.dst2.d.next = self.dst.y.val();
        self.hash_ports.x.next = self.ports.y.val();
        self.link2.d.next = self.ip.link.val();
        self.is_udp2.d.next = (self.ip.link.val().v4 & self.ip.facts.val().whole & self.ip.facts.val().udp4) | (self.ip.link.val().v6 & self.ip.facts.val().udp6);
        self.has_ports2.d.next = (self.ip.link.val().v4 & self.ip.facts.val().whole & (self.ip.facts.val().udp4 | self.ip.facts.val().tcp4))
            | (self.ip.link.val().v6 & (self.ip.facts.val().udp6 | self.ip.facts.val().tcp6));
        self.kind2.d.next = bits::<2>(frame_kind::OTHER as u64);
        if self.ip.link.val().arp {
            self.kind2.d.next = bits::<2>(frame_kind::ARP as u64);
        } else if self.ip.link.val().v4 & self.ip.facts.val().whole & self.ip.facts.val().icmp4 {
            self.kind2.d.next = bits::<2>(frame_kind::ICMP as u64);
        } else if self.ip.link.val().v6 & self.ip.facts.val().icmp6 {
            self.kind2.d.next = bits::<2>(frame_kind::ICMPV6 as u64);
        }
        self.roce_port2.d.next = self.udp.y.val().dst_port == wire::ROCE_PORT;
        self.ip_payload2.d.next = self.ip.facts.val().total - self.twenty.val();
        if self.ip.link.val().v6 {
            self.ip_payload2.d.next = self.ip.facts.val().plen;
        }
        self.udp_len2.d.next = bit_cast::<17, 16>(self.udp.y.val().length);
        self.bth2.d.next = self.bth.y.val();
        self.ext2.d.next = self.ext.y.val();
        self.exts2.d.next = self.exts.y.val();
        self.sum_a2.d.next = bit_cast::<20, 17>(self.ip.pairs[0].val()) + bit_cast::<20, 17>(self.ip.pairs[1].val());
        self.sum_b2.d.next = bit_cast::<20, 17>(self.ip.pairs[2].val()) + bit_cast::<20, 17>(self.ip.pairs[3].val());
        self.sum_c2.d.next = bit_cast::<20, 17>(self.ip.pairs[4].val());
        self.hash_a2.d.next = self.hash_addr.y.val();
        self.hash_p2.d.next = self.hash_ports.y.val();
        // Whose packet it is, is looked up meanwhile, and whose frame: that begins a stage earlier, for of a packet to queue pair 1 it says which one that is.
        self.dmac.next = self.ip.dmac_early.val();
        self.dmac_network.next = self.network.val();
        self.peer.next.qpn = self.bth.y.val().dest_qpn;
        self.peer.next.tunnel = self.networks[0].q.val().tunnel;
        self.peer.next.function = self.networks[0].q.val().function;
        self.peer.next.datagram = self.bth.y.val().opcode.get_bits::<3>(5) == wire::opcode::CLASS_UD;
        self.peer.next.dmac = self.ip.dmac.val();
        self.peer.next.sip = self.src.y.val();
        self.peer.next.dip = self.dst.y.val();
        if !self.ip.link.val().v6 {
            self.peer.next.sip = self.src.y.val() >> 96;
            self.peer.next.dip = self.dst.y.val() >> 96;
        }
        self.peer.next.ipv6 = self.ip.link.val().v6;
        self.peer.next.vlan = self.ip.link.val().vlan;
        self.peer.next.vid = self.ip.link.val().tci.get_bits::<12>(0);
        // Stage 3
        self.link3.d.next = self.link2.q.val();
        self.dst3.d.next = self.dst2.q.val();
        self.kind3.d.next = self.kind2.q.val();
        self.roce3.d.next = self.is_udp2.q.val() & self.roce_port2.q.val();
        self.bad3.d.next = (self.udp_len2.q.val() != self.ip_payload2.q.val()) | self.bth2.q.val().tver.any();
        self.pay3.d.next = self.udp_len2.q.val() - bit_cast::<17, 6>(self.exts2.q.val().need) - bit_cast::<17, 2>(self.bth2.q.val().pad);
        // Ethernet and IP header, less the ICRC that `need` counts
        self.off_base.next = bits::<8>(BEFORE_4);
        if self.link2.q.val().v6 {
            self.off_base.next = bits::<8>(BEFORE_6);
            if self.link2.q.val().vlan {
                self.off_base.next = bits::<8>(BEFORE_6_VLAN);
            }
        } else if self.link2.q.val().vlan {
            self.off_base.next = bits::<8>(BEFORE_4_VLAN);
        }
        self.off3.d.next = self.off_base.val() + bit_cast::<8, 6>(self.exts2.q.val().need);
        self.sum3.d.next = self.sum_a2.q.val() + self.sum_b2.q.val() + self.sum_c2.q.val();
        self.hash_a.next = bits::<32>(0);
        self.hash_p.next = bits::<32>(0);
        if self.link2.q.val().v4 | self.link2.q.val().v6 {
            self.hash_a.next = self.hash_a2.q.val();
        }
        if self.has_ports2.q.val() {
            self.hash_p.next = self.hash_p2.q.val();
        }
        self.hash3.d.next = self.hash_a.val() ^ self.hash_p.val();
        self.bth3.d.next = self.bth2.q.val();
        self.ext3.d.next = self.ext2.q.val();
        self.exts3.d.next = self.exts2.q.val();
        // Stage 4
        self.reth.x.next = self.ext3.q.val();
        self.late_reth.x.next = self.ext3.q.val();
        self.deth.x.next = self.ext3.q.val();
        self.atomic.x.next = self.ext3.q.val();
        self.atomic_ack.x.next = self.ext3.q.val();
        self.word0.x.next = self.ext3.q.val();
        self.word8.x.next = self.ext3.q.val();
        self.word16.x.next = self.ext3.q.val();
        // Ones' complement: the carries added to the low half give 0xffff exactly if they are what is missing there.
        self.fold_high.next = bit_cast::<16, 4>(self.sum3.q.val().get_bits::<4>(16));
        self.folded.next = self.sum3.q.val().get_bits::<16>(0) ^ self.fold_high.val();
        self.sum_wrong.next = self.link3.q.val().v4 & (self.folded.val() != RIGHT_SUM);
        self.bad4.d.next = self.roce3.q.val() & (self.bad3.q.val() | self.pay3.q.val().get_bit(16) | self.sum_wrong.val());
        // A packet's path says for which MAC address it is; that need not be one of the function's.
        self.refused4.d.next = (self.roce3.q.val() & self.peer_stranger.val()) | (!self.roce3.q.val() & self.other_station.val());
        self.foreign4.d.next = self.roce3.q.val() & self.peer_foreign.val();
        self.desc4.d.next = self.blank.val();
        self.desc4.d.next.tunnel = self.networks[2].q.val().tunnel;
        self.desc4.d.next.function = self.networks[2].q.val().function;
        self.desc4.d.next.class = self.link3.q.val().tci.get_bits::<3>(13);
        self.desc4.d.next.ecn = bits::<2>(0);
        if self.link3.q.val().v4 | self.link3.q.val().v6 {
            self.desc4.d.next.ecn = self.link3.q.val().ecn;
        }
        self.desc4.d.next.ipv6 = self.link3.q.val().v6;
        self.desc4.d.next.has_vlan = self.link3.q.val().vlan;
        self.desc4.d.next.vlan_tci = self.link3.q.val().tci;
        self.desc4.d.next.flow_hash = self.hash3.q.val();
        // A RoCE packet is none of the kinds: its protocol is UDP.
        self.desc4.d.next.kind = self.kind3.q.val();
        self.desc4.d.next.raw = !self.roce3.q.val();
        self.desc4.d.next.pay_len = self.pay3.q.val().get_bits::<13>(0);
        if !self.roce3.q.val() {
            self.desc4.d.next.src_qpn = self.notes[2].q.val();
        }
        if self.roce3.q.val() {
            self.desc4.d.next.pay_off = self.off3.q.val();
            self.desc4.d.next.pad = self.bth3.q.val().pad;
            self.desc4.d.next.opcode = self.bth3.q.val().opcode;
            self.desc4.d.next.solicited = self.bth3.q.val().solicited;
            self.desc4.d.next.ack_req = self.bth3.q.val().ack_req;
            self.desc4.d.next.becn = self.bth3.q.val().becn;
            self.desc4.d.next.fecn = self.bth3.q.val().fecn;
            self.desc4.d.next.pkey = self.bth3.q.val().pkey;
            self.desc4.d.next.dest_qpn = self.bth3.q.val().dest_qpn | self.peer_line.val();
            self.desc4.d.next.psn = self.bth3.q.val().psn;
            if self.exts3.q.val().address {
                self.desc4.d.next.va = self.reth.y.val().va;
                self.desc4.d.next.rkey = self.reth.y.val().rkey;
            }
            if self.exts3.q.val().length {
                self.desc4.d.next.dma_len = self.reth.y.val().length;
            }
            if self.exts3.q.val().feth {
                self.desc4.d.next.va = self.late_reth.y.val().va;
                self.desc4.d.next.rkey = self.late_reth.y.val().rkey;
                self.desc4.d.next.dma_len = self.late_reth.y.val().length;
            }
            if self.exts3.q.val().deth {
                self.desc4.d.next.qkey = self.deth.y.val().qkey;
                self.desc4.d.next.src_qpn = self.deth.y.val().src_qpn;
                self.desc4.d.next.operand = self.dst3.q.val().get_bits::<64>(0);
                self.desc4.d.next.compare = self.dst3.q.val().get_bits::<64>(64);
                self.desc4.d.next.multicast = self.bth3.q.val().dest_qpn.all();
            }
            if self.exts3.q.val().aeth {
                self.desc4.d.next.aeth = self.word0.y.val();
            }
            if self.exts3.q.val().atomic {
                self.desc4.d.next.operand = self.atomic.y.val().swap_add;
                self.desc4.d.next.compare = self.atomic.y.val().compare;
            }
            if self.exts3.q.val().atomic_ack {
                self.desc4.d.next.operand = self.atomic_ack.y.val().original;
            }
            if self.exts3.q.val().imm0 {
                self.desc4.d.next.imm = self.word0.y.val();
            }
            if self.exts3.q.val().imm8 {
                self.desc4.d.next.imm = self.word8.y.val();
            }
            if self.exts3.q.val().imm16 {
                self.desc4.d.next.imm = self.word16.y.val();
            }
        }
        self.desc.next = self.desc4.q.val();
        self.malformed.next = self.bad4.q.val();
        self.refused.next = self.refused4.q.val();
        self.foreign.next = self.foreign4.q.val();
        self.desc_valid.next = self.valid[2].q.val();
        if self.reset.val() {
            for i in 0..3 {
                self.valid[i].d.next = false;
            }
        }
    }
}
