//! The outer header of the frame that is next.

use super::facts::Facts;
use super::LG_FRAMES;
use crate::net::header::layers::Layers;
use crate::net::header::sum::Ip4Sum;
use crate::net::header::udp::UdpFront;
use crate::net::header::DATAGRAM;
use crate::prim::arb::BinToOneHot;
use crate::prim::mux::OneHotMux;
use crate::prim::pack::{BePack, Gather, Resize};
use crate::records::{PathCtx, TunnelCtx, Vxlan};
use crate::stream::MsgFifo;
use ferric_abi::wire::{self, protocol, VXLAN_FLAGS, VXLAN_PORT};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bits of the longest header: a tag, IPv6.
pub(super) const HEADER: usize = 74 * 8;
/// Bytes of the UDP and the VXLAN header.
const TUNNEL: u64 = (wire::Udp::BYTES + wire::Vxlan::BYTES) as u64;
/// Source ports begin here (RFC 7348, section 5: the dynamic ones).
const PORTS: u64 = 0xc000;
/// Cycles in which the sum over what is the same in all headers follows the tunnel.
const SETTLES: u64 = 4;

/// A frame that is complete.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Whole {
    pub len: Bits<16>,
    pub function: Bits<6>,
}

/// Lengths and facts wait in order; the header is there from the second cycle on in which they wait. It is made in one cycle from one tunnel, whole or none. `NF` functions.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Head<const NF: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ctx: [Signal<In, TunnelCtx>; NF],
    pub facts: Signal<In, Facts>,
    pub facts_valid: Signal<In, Bit>,
    /// Bytes of the frame, and whose it is.
    pub len: Signal<In, Bits<16>>,
    pub sender: Signal<In, Bits<6>>,
    pub len_valid: Signal<In, Bit>,
    /// The header, byte 0 in the low bits, and its bytes; none: the frame goes as it is.
    pub valid: Signal<Out, Bit>,
    pub header: Signal<Out, Bits<HEADER>>,
    pub header_len: Signal<Out, Bits<8>>,
    /// It is taken.
    pub take: Signal<In, Bit>,
    all_facts: MsgFifo<Facts, LG_FRAMES>,
    lens: MsgFifo<Whole, LG_FRAMES>,
    both: Signal<Local, Bit>,
    waits: DFF<Bit>,
    // The tunnel of the frame that is next: all of them follow their lines, and one is taken.
    one: BinToOneHot<64, 6>,
    mine: Resize<64, NF>,
    #[init(std::array::from_fn(|_| Ip4Sum::new(protocol::UDP)))]
    fixed: [Ip4Sum; NF],
    address: Signal<Local, PathCtx>,
    settle: [DFF<Bits<3>>; NF],
    open: Gather<NF>,
    have: Gather<NF>,
    opens: Signal<Local, Bits<NF>>,
    haves: Signal<Local, Bits<NF>>,
    line: OneHotMux<TunnelCtx, NF>,
    sum: OneHotMux<Bits<20>, NF>,
    own: Signal<Local, TunnelCtx>,
    now: Signal<Local, TunnelCtx>,
    chosen: DFF<TunnelCtx>,
    /// Its line is whole; the function has a tunnel.
    opened: DFF<Bit>,
    bound: DFF<Bit>,
    tos1: DFF<Bits<8>>,
    ttl1: DFF<Bits<8>>,
    #[init(Layers::new(protocol::UDP))]
    layers: Layers,
    udp: UdpFront,
    #[init(BePack::of(&wire::Vxlan::LAYOUT, DATAGRAM))]
    vxlan: BePack<1024, Vxlan>,
    total: DFF<Bits<20>>,
    length: Signal<Local, Bits<16>>,
    tos: Signal<Local, Bits<8>>,
    dscp: Signal<Local, Bits<8>>,
    own_tos: Signal<Local, Bits<8>>,
    ttl: Signal<Local, Bits<8>>,
    second: Signal<Local, Bits<20>>,
    port: Signal<Local, Bits<14>>,
    path: Signal<Local, PathCtx>,
    #[init(Constant::new(PathCtx::default()))]
    blank: Constant<PathCtx>,
}

#[kernel]
impl<const NF: usize> Logic for Head<NF> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, waits, total, chosen, opened, bound, tos1, ttl1);
        clock!(self, clock, all_facts, lens);
        self.all_facts.reset.next = self.reset.val();
        self.lens.reset.next = self.reset.val();
        self.all_facts.s.data.next = self.facts.val();
        self.all_facts.s.valid.next = self.facts_valid.val();
        self.lens.s.data.next.len = self.len.val();
        self.lens.s.data.next.function = self.sender.val();
        self.lens.s.valid.next = self.len_valid.val();
        self.all_facts.m.ready.next = self.take.val();
        self.lens.m.ready.next = self.take.val();
        self.both.next = self.all_facts.m.valid.val() & self.lens.m.valid.val();
        self.waits.d.next = self.both.val() & !self.take.val();
        self.valid.next = self.both.val() & self.waits.q.val() & (self.opened.q.val() | !self.bound.q.val());
        // Whose it is. A tunnel that has just been written is used when the sum is that of its addresses.
        self.one.x.next = self.lens.m.data.val().function;
        self.one.en.next = true;
        self.mine.x.next = self.one.y.val();
        self.line.sel.next = self.mine.y.val();
        self.sum.sel.next = self.mine.y.val();
        for i in 0..NF {
            self.own.next = self.ctx[i].val();
            self.settle[i].clock.next = self.clock.val();
            self.settle[i].d.next = self.settle[i].q.val();
            if self.settle[i].q.val().any() {
                self.settle[i].d.next = self.settle[i].q.val() - 1;
            }
            if !self.own.val().valid | self.reset.val() {
                self.settle[i].d.next = bits::<3>(SETTLES);
            }
            self.open.x[i].next = self.own.val().valid & !self.settle[i].q.val().any();
            self.have.x[i].next = self.own.val().valid | self.own.val().bound;
            // IPv4 checksum: of everything that is the same, then of everything.
            self.address.next = self.blank.val();
            self.address.next.sip = self.own.val().local;
            self.address.next.dip = self.own.val().remote;
            self.fixed[i].clock.next = self.clock.val();
            self.fixed[i].load.next = true;
            self.fixed[i].path.next = self.address.val();
            self.fixed[i].length.next = bits::<16>(TUNNEL);
            self.line.x[i].next = self.ctx[i].val();
            self.sum.x[i].next = self.fixed[i].total.val();
        }
        self.opens.next = self.open.y.val() & self.mine.y.val();
        self.haves.next = self.have.y.val() & self.mine.y.val();
        self.opened.d.next = self.opens.val().any();
        self.bound.d.next = self.haves.val().any();
        self.now.next = self.line.y.val();
        self.chosen.d.next = self.now.val();
        // What the frame gives
        self.length.next = self.lens.m.data.val().len + TUNNEL;
        self.dscp.next = bit_cast::<8, 6>(self.now.val().dscp) << 2;
        self.own_tos.next = self.all_facts.m.data.val().tos;
        self.tos.next = self.dscp.val() | bit_cast::<8, 2>(self.own_tos.val().get_bits::<2>(0));
        if self.now.val().copy_dscp {
            self.tos.next = self.own_tos.val();
        }
        self.ttl.next = self.now.val().hop_limit;
        if self.now.val().copy_ttl & self.all_facts.m.data.val().ip {
            self.ttl.next = self.all_facts.m.data.val().ttl;
        }
        // The path is the tunnel's.
        self.path.next = self.blank.val();
        self.path.next.dmac = self.chosen.q.val().dmac;
        self.path.next.smac = self.chosen.q.val().smac;
        self.path.next.vlan = self.chosen.q.val().vlan;
        self.path.next.vlan_tci = self.chosen.q.val().tci;
        self.path.next.ipv6 = self.chosen.q.val().ipv6;
        self.path.next.sip = self.chosen.q.val().local;
        self.path.next.dip = self.chosen.q.val().remote;
        self.second.next = bit_cast::<20, 8>(self.tos.val()) | (bit_cast::<20, 8>(self.ttl.val()) << 8);
        self.tos1.d.next = self.tos.val();
        self.ttl1.d.next = self.ttl.val();
        self.total.d.next = self.sum.y.val() + bit_cast::<20, 16>(self.lens.m.data.val().len) + self.second.val();
        self.layers.path.next = self.path.val();
        self.layers.path.next.tclass = self.tos1.q.val();
        self.layers.path.next.hop_limit = self.ttl1.q.val();
        self.layers.length.next = self.length.val();
        self.layers.total.next = self.total.q.val();
        self.port.next = self.all_facts.m.data.val().port;
        self.udp.src_port.next = bit_cast::<16, 14>(self.port.val()) | PORTS;
        self.udp.dst_port.next = bits::<16>(VXLAN_PORT as u64);
        self.udp.length.next = self.length.val();
        self.vxlan.x.next.flags = bits::<8>(VXLAN_FLAGS as u64);
        self.vxlan.x.next.rsvd0 = bits::<24>(0);
        self.vxlan.x.next.vni = self.chosen.q.val().vni;
        self.vxlan.x.next.rsvd1 = bits::<8>(0);
        self.layers.body.next = self.udp.y.val() | self.vxlan.y.val();
        self.layers.body_len.next = bits::<8>(TUNNEL);
        self.header.next = self.layers.image.val().get_bits::<HEADER>(0);
        self.header_len.next = bits::<8>(0);
        if self.opened.q.val() {
            self.header_len.next = self.layers.len.val();
        }
        if self.reset.val() {
            self.waits.d.next = false;
        }
    }
}
