//! The outer header of the frame that is next.

use super::facts::Facts;
use super::LG_FRAMES;
use crate::net::header::layers::Layers;
use crate::net::header::sum::Ip4Sum;
use crate::net::header::udp::UdpFront;
use crate::net::header::DATAGRAM;
use crate::prim::pack::BePack;
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

/// Lengths and facts wait in order; the header is there from the second cycle on in which they wait. It is made in one cycle from one tunnel, whole or none.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Head {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ctx: Signal<In, TunnelCtx>,
    pub facts: Signal<In, Facts>,
    pub facts_valid: Signal<In, Bit>,
    /// Bytes of the frame.
    pub len: Signal<In, Bits<16>>,
    pub len_valid: Signal<In, Bit>,
    /// The header, byte 0 in the low bits, and its bytes; none: the frame goes as it is.
    pub valid: Signal<Out, Bit>,
    pub header: Signal<Out, Bits<HEADER>>,
    pub header_len: Signal<Out, Bits<8>>,
    /// It is taken.
    pub take: Signal<In, Bit>,
    all_facts: MsgFifo<Facts, LG_FRAMES>,
    lens: MsgFifo<Bits<16>, LG_FRAMES>,
    both: Signal<Local, Bit>,
    waits: DFF<Bit>,
    #[init(Ip4Sum::new(protocol::UDP))]
    fixed: Ip4Sum,
    #[init(Layers::new(protocol::UDP))]
    layers: Layers,
    udp: UdpFront,
    #[init(BePack::of(&wire::Vxlan::LAYOUT, DATAGRAM))]
    vxlan: BePack<1024, Vxlan>,
    settle: DFF<Bits<3>>,
    total: DFF<Bits<20>>,
    length: Signal<Local, Bits<16>>,
    tos: Signal<Local, Bits<8>>,
    dscp: Signal<Local, Bits<8>>,
    own: Signal<Local, Bits<8>>,
    ttl: Signal<Local, Bits<8>>,
    second: Signal<Local, Bits<20>>,
    port: Signal<Local, Bits<14>>,
    path: Signal<Local, PathCtx>,
    #[init(Constant::new(PathCtx::default()))]
    blank: Constant<PathCtx>,
}

#[kernel]
impl Logic for Head {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, waits, settle, total);
        clock!(self, clock, all_facts, lens, fixed);
        self.all_facts.reset.next = self.reset.val();
        self.lens.reset.next = self.reset.val();
        self.all_facts.s.data.next = self.facts.val();
        self.all_facts.s.valid.next = self.facts_valid.val();
        self.lens.s.data.next = self.len.val();
        self.lens.s.valid.next = self.len_valid.val();
        self.all_facts.m.ready.next = self.take.val();
        self.lens.m.ready.next = self.take.val();
        self.both.next = self.all_facts.m.valid.val() & self.lens.m.valid.val();
        self.waits.d.next = self.both.val() & !self.take.val();
        self.valid.next = self.both.val() & self.waits.q.val();
        // What the frame gives
        self.length.next = self.lens.m.data.val() + TUNNEL;
        self.dscp.next = bit_cast::<8, 6>(self.ctx.val().dscp) << 2;
        self.own.next = self.all_facts.m.data.val().tos;
        self.tos.next = self.dscp.val() | bit_cast::<8, 2>(self.own.val().get_bits::<2>(0));
        if self.ctx.val().copy_dscp {
            self.tos.next = self.own.val();
        }
        self.ttl.next = self.ctx.val().hop_limit;
        if self.ctx.val().copy_ttl & self.all_facts.m.data.val().ip {
            self.ttl.next = self.all_facts.m.data.val().ttl;
        }
        // The path is the tunnel's.
        self.path.next = self.blank.val();
        self.path.next.dmac = self.ctx.val().dmac;
        self.path.next.smac = self.ctx.val().smac;
        self.path.next.vlan = self.ctx.val().vlan;
        self.path.next.vlan_tci = self.ctx.val().tci;
        self.path.next.ipv6 = self.ctx.val().ipv6;
        self.path.next.sip = self.ctx.val().local;
        self.path.next.dip = self.ctx.val().remote;
        // IPv4 checksum: of everything that is the same, then of everything.
        self.fixed.load.next = true;
        self.fixed.path.next = self.path.val();
        self.fixed.length.next = bits::<16>(0);
        self.second.next = bit_cast::<20, 8>(self.tos.val()) | (bit_cast::<20, 8>(self.ttl.val()) << 8);
        self.total.d.next = self.fixed.total.val() + bit_cast::<20, 16>(self.length.val()) + self.second.val();
        self.layers.path.next = self.path.val();
        self.layers.path.next.tclass = self.tos.val();
        self.layers.path.next.hop_limit = self.ttl.val();
        self.layers.length.next = self.length.val();
        self.layers.total.next = self.total.q.val();
        self.port.next = self.all_facts.m.data.val().port;
        self.udp.src_port.next = bit_cast::<16, 14>(self.port.val()) | PORTS;
        self.udp.dst_port.next = bits::<16>(VXLAN_PORT as u64);
        self.udp.length.next = self.length.val();
        self.vxlan.x.next.flags = bits::<8>(VXLAN_FLAGS as u64);
        self.vxlan.x.next.rsvd0 = bits::<24>(0);
        self.vxlan.x.next.vni = self.ctx.val().vni;
        self.vxlan.x.next.rsvd1 = bits::<8>(0);
        self.layers.body.next = self.udp.y.val() | self.vxlan.y.val();
        self.layers.body_len.next = bits::<8>(TUNNEL);
        self.header.next = self.layers.image.val().get_bits::<HEADER>(0);
        // A tunnel that has just been written is used when the sum is that of its addresses.
        self.header_len.next = bits::<8>(0);
        if self.ctx.val().valid & !self.settle.q.val().any() {
            self.header_len.next = self.layers.len.val();
        }
        if self.settle.q.val().any() {
            self.settle.d.next = self.settle.q.val() - 1;
        }
        if !self.ctx.val().valid {
            self.settle.d.next = bits::<3>(SETTLES);
        }
        if self.reset.val() {
            self.waits.d.next = false;
            self.settle.d.next = bits::<3>(SETTLES);
        }
    }
}
