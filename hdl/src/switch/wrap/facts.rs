//! What an outer header takes from the frame inside: ECN, DSCP, time to live and the flow's hash.

use crate::codes::ip;
use crate::net::rx::window::{Window, WINDOW_BITS};
use crate::prim::pack::{BePick, Slice};
use crate::prim::xor_matrix::XorMatrix;
use crate::records::{Ipv4, Ipv6};
use crate::switch::be16;
use ferric_abi::wire::{self, ethertype, protocol};
use ferric_hdl_derive::{kernel, BlockDefault};
use ferric_model::net::parse::flow_hash;
use rust_hdl::prelude::*;

/// IPv6 and two ports.
const L3: usize = 44 * 8;
/// Both MAC addresses.
const MACS: usize = 12 * 8;
/// IP headers at most so far from the frame's beginning: behind Ethernet and two tags.
const PLACES: [usize; 3] = [14, 18, 22];

/// Of one frame.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Facts {
    /// It is IP.
    pub ip: Bit,
    /// DSCP and ECN, and time to live; of other frames zero.
    pub tos: Bits<8>,
    pub ttl: Bits<8>,
    /// The outer source port's low bits.
    pub port: Bits<14>,
}

/// Looks on as beats pass. One per frame, at most seven cycles behind its last beat.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct FactFinder<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub data: Signal<In, Bits<W>>,
    pub keep: Signal<In, Bits<K>>,
    pub last: Signal<In, Bit>,
    pub valid: Signal<In, Bit>,
    pub facts: Signal<Out, Facts>,
    pub facts_valid: Signal<Out, Bit>,
    window: Window<W, K>,
    bytes: Signal<Local, Bits<WINDOW_BITS>>,
    // Stage 1: tags
    #[init([12, 16, 20].map(be16))]
    types: [BePick<WINDOW_BITS, Bits<16>>; 3],
    #[init(PLACES.map(|at| Slice::new(at * 8)))]
    places: [Slice<WINDOW_BITS, L3>; 3],
    type0: Signal<Local, Bits<16>>,
    type1: Signal<Local, Bits<16>>,
    inner_type: Signal<Local, Bits<16>>,
    l3: DFF<Bits<L3>>,
    macs: DFF<Bits<MACS>>,
    type4: DFF<Bit>,
    type6: DFF<Bit>,
    valid1: DFF<Bit>,
    // Stage 2: IP
    #[init(BePick::of(&wire::Ipv4::LAYOUT, 0))]
    ip4: BePick<L3, Ipv4>,
    #[init(BePick::of(&wire::Ipv6::LAYOUT, 0))]
    ip6: BePick<L3, Ipv6>,
    #[init(Slice::new(20 * 8))]
    ports4: Slice<L3, 32>,
    #[init(Slice::new(40 * 8))]
    ports6: Slice<L3, 32>,
    #[init(Slice::new(12 * 8))]
    src4: Slice<L3, 32>,
    #[init(Slice::new(16 * 8))]
    dst4: Slice<L3, 32>,
    #[init(Slice::new(8 * 8))]
    both6: Slice<L3, 256>,
    #[init(Slice::new(0))]
    dmac: Slice<MACS, 48>,
    #[init(Slice::new(48))]
    smac: Slice<MACS, 48>,
    second: Signal<Local, Bits<8>>,
    proto: Signal<Local, Bits<8>>,
    whole: Signal<Local, Bit>,
    facts2: DFF<Facts>,
    address: DFF<Bits<256>>,
    ports: DFF<Bits<32>>,
    valid2: DFF<Bit>,
    // Stage 3: hash
    #[init(XorMatrix::of(|j| column(j).into()))]
    by_address: XorMatrix<256, 32>,
    #[init(XorMatrix::of(|j| column(256 + j).into()))]
    by_ports: XorMatrix<32, 32>,
    hash: DFF<Bits<32>>,
    facts3: DFF<Facts>,
    valid3: DFF<Bit>,
    folded: Signal<Local, Bits<32>>,
}

/// What bit `j` of source address, destination address and ports does to the hash (`ferric_model::switch::wrap::entropy`).
fn column(j: usize) -> u32 {
    let mut bytes = [0; 36];
    bytes[j / 8] = 1 << (j % 8);
    let ports = std::array::from_fn(|i| bytes[32 + i]);
    flow_hash(&bytes[..16], &bytes[16..32], ports)
}

#[kernel]
impl<const W: usize, const K: usize> Logic for FactFinder<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, l3, macs, type4, type6, valid1, facts2, address, ports, valid2, hash, facts3, valid3);
        clock!(self, clock, window);
        self.window.reset.next = self.reset.val();
        self.window.data.next = self.data.val();
        self.window.keep.next = self.keep.val();
        self.window.last.next = self.last.val();
        self.window.err.next = false;
        self.window.valid.next = self.valid.val();
        self.bytes.next = self.window.window.val();
        // Stage 1
        for i in 0..3 {
            self.types[i].x.next = self.bytes.val();
            self.places[i].x.next = self.bytes.val();
        }
        self.type0.next = self.types[0].y.val();
        self.type1.next = self.types[1].y.val();
        self.inner_type.next = self.type0.val();
        self.l3.d.next = self.places[0].y.val();
        if (self.type0.val() == ethertype::VLAN) | (self.type0.val() == ethertype::SERVICE_VLAN) {
            self.inner_type.next = self.type1.val();
            self.l3.d.next = self.places[1].y.val();
            if self.type1.val() == ethertype::VLAN {
                self.inner_type.next = self.types[2].y.val();
                self.l3.d.next = self.places[2].y.val();
            }
        }
        self.macs.d.next = self.bytes.val().get_bits::<MACS>(0);
        self.type4.d.next = self.inner_type.val() == ethertype::IPV4;
        self.type6.d.next = self.inner_type.val() == ethertype::IPV6;
        self.valid1.d.next = self.window.window_valid.val();
        // Stage 2. Addresses stand in 16 bytes each, shorter ones in the last of them.
        self.ip4.x.next = self.l3.q.val();
        self.ip6.x.next = self.l3.q.val();
        self.ports4.x.next = self.l3.q.val();
        self.ports6.x.next = self.l3.q.val();
        self.src4.x.next = self.l3.q.val();
        self.dst4.x.next = self.l3.q.val();
        self.both6.x.next = self.l3.q.val();
        self.dmac.x.next = self.macs.q.val();
        self.smac.x.next = self.macs.q.val();
        self.second.next = bits::<8>(0);
        self.proto.next = bits::<8>(0);
        self.whole.next = false;
        self.facts2.d.next.ip = false;
        self.facts2.d.next.tos = bits::<8>(0);
        self.facts2.d.next.ttl = bits::<8>(0);
        self.facts2.d.next.port = bits::<14>(0);
        self.address.d.next = (bit_cast::<256, 48>(self.smac.y.val()) << 16) | (bit_cast::<256, 48>(self.dmac.y.val()) << 144);
        self.ports.d.next = bits::<32>(0);
        if self.type4.q.val() & (self.ip4.y.val().version == ip::VERSION_4) & (self.ip4.y.val().ihl >= ip::WORDS) {
            self.second.next = self.l3.q.val().get_bits::<8>(8);
            self.proto.next = self.ip4.y.val().protocol;
            self.whole.next = (self.ip4.y.val().ihl == ip::WORDS) & !self.ip4.y.val().flags.get_bit(0) & !self.ip4.y.val().fragment.any();
            self.facts2.d.next.ip = true;
            self.facts2.d.next.tos = self.second.val();
            self.facts2.d.next.ttl = self.ip4.y.val().ttl;
            self.address.d.next = (bit_cast::<256, 32>(self.src4.y.val()) << 96) | (bit_cast::<256, 32>(self.dst4.y.val()) << 224);
            if self.whole.val() & ((self.proto.val() == protocol::TCP) | (self.proto.val() == protocol::UDP)) {
                self.ports.d.next = self.ports4.y.val();
            }
        } else if self.type6.q.val() & (self.ip6.y.val().version == ip::VERSION_6) {
            self.second.next = bit_cast::<8, 6>(self.ip6.y.val().dscp);
            self.proto.next = self.ip6.y.val().next_header;
            self.facts2.d.next.ip = true;
            self.facts2.d.next.tos = (self.second.val() << 2) | bit_cast::<8, 2>(self.ip6.y.val().ecn);
            self.facts2.d.next.ttl = self.ip6.y.val().hop_limit;
            self.address.d.next = self.both6.y.val();
            if (self.proto.val() == protocol::TCP) | (self.proto.val() == protocol::UDP) {
                self.ports.d.next = self.ports6.y.val();
            }
        }
        self.valid2.d.next = self.valid1.q.val();
        // Stage 3
        self.by_address.x.next = self.address.q.val();
        self.by_ports.x.next = self.ports.q.val();
        self.hash.d.next = self.by_address.y.val() ^ self.by_ports.y.val();
        self.facts3.d.next = self.facts2.q.val();
        self.valid3.d.next = self.valid2.q.val();
        self.folded.next = self.hash.q.val() ^ (self.hash.q.val() >> 14) ^ (self.hash.q.val() >> 28);
        self.facts.next = self.facts3.q.val();
        self.facts.next.port = self.folded.val().get_bits::<14>(0);
        self.facts_valid.next = self.valid3.q.val();
        if self.reset.val() {
            self.valid1.d.next = false;
            self.valid2.d.next = false;
            self.valid3.d.next = false;
        }
    }
}
