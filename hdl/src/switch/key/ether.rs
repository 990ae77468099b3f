//! First stage: Ethernet and up to two tags.

use super::Origin;
use crate::net::rx::window::WINDOW_BITS;
use crate::prim::pack::{BePick, Gather, Slice};
use crate::records::Eth;
use crate::switch::be16;
use ferric_abi::wire::{self, ethertype};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bytes in front of the layer behind the tags, by number of tags.
pub(in crate::switch) const FRONTS: [usize; 3] = [wire::Eth::BYTES, wire::Eth::BYTES + wire::Vlan::BYTES, wire::Eth::BYTES + 2 * wire::Vlan::BYTES];
/// From there to the last byte that is looked at: the flags of TCP behind an IPv4 header with all its options.
pub(in crate::switch) const L3: usize = 8 * (60 + 14);

/// Types below this one are lengths: LLC follows.
const LEAST_TYPE: u64 = 0x600;
/// MPLS, to one and to many (RFC 5332), and NSH (RFC 8300): layers that the graph does not have.
const MPLS: u64 = 0x8847;
const MPLS_MANY: u64 = 0x8848;
const NSH: u64 = 0x894f;
/// Places in lists by number of tags.
const ONE: u64 = 1;
const TWO: u64 = 2;

/// What Ethernet header and tags say.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(in crate::switch) struct Ether {
    pub dmac: Bits<48>,
    pub smac: Bits<48>,
    pub ethertype: Bits<16>,
    /// The first tag, and of what type it is; there is a second one.
    pub tci: Bits<16>,
    pub tags: Bits<2>,
    pub service: Bit,
    pub v4: Bit,
    pub v6: Bit,
    pub arp: Bit,
    /// A type that the graph does not have, or a frame that ends before its type.
    pub deep: Bit,
    /// The frame ends with the window. Then: bytes of it behind the tags.
    pub ended: Bit,
    pub room: Bits<8>,
}

/// One window a cycle.
#[derive(LogicBlock, BlockDefault)]
#[demand(8 * FRONTS[2] + L3 <= WINDOW_BITS)]
pub(in crate::switch) struct EtherLayer {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub window: Signal<In, Bits<WINDOW_BITS>>,
    pub window_valid: Signal<In, Bit>,
    pub ended: Signal<In, Bit>,
    pub len: Signal<In, Bits<8>>,
    pub origin: Signal<In, Origin>,
    /// A cycle later.
    pub valid: Signal<Out, Bit>,
    pub ether: Signal<Out, Ether>,
    pub from: Signal<Out, Origin>,
    pub l3: Signal<Out, Bits<L3>>,
    #[init(BePick::of(&wire::Eth::LAYOUT, 0))]
    eth: BePick<WINDOW_BITS, Eth>,
    #[init(be16(wire::Eth::BYTES))]
    tag: BePick<WINDOW_BITS, Bits<16>>,
    #[init(FRONTS.map(|front| be16(front - 2)))]
    types: [BePick<WINDOW_BITS, Bits<16>>; 3],
    #[init(FRONTS.map(|front| Slice::new(8 * front)))]
    layers: [Slice<WINDOW_BITS, L3>; 3],
    kind: Signal<Local, Bits<16>>,
    vlans: Gather<3>,
    services: Gather<3>,
    fours: Gather<3>,
    sixes: Gather<3>,
    arps: Gather<3>,
    unknowns: Gather<3>,
    shorts: Gather<3>,
    #[init(FRONTS.map(|front| Constant::new((front as u64).to_bits())))]
    fronts: [Constant<Bits<8>>; 3],
    tagged: Signal<Local, Bit>,
    second: Signal<Local, Bit>,
    valid1: DFF<Bit>,
    ether1: DFF<Ether>,
    from1: DFF<Origin>,
    l3_1: DFF<Bits<L3>>,
}

#[kernel]
impl Logic for EtherLayer {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, valid1, ether1, from1, l3_1);
        self.eth.x.next = self.window.val();
        self.tag.x.next = self.window.val();
        // Every place where the type may stand, at once.
        for i in 0..3 {
            self.types[i].x.next = self.window.val();
            self.layers[i].x.next = self.window.val();
            self.kind.next = self.types[i].y.val();
            self.vlans.x[i].next = self.kind.val() == ethertype::VLAN;
            self.services.x[i].next = self.kind.val() == ethertype::SERVICE_VLAN;
            self.fours.x[i].next = self.kind.val() == ethertype::IPV4;
            self.sixes.x[i].next = self.kind.val() == ethertype::IPV6;
            self.arps.x[i].next = self.kind.val() == ethertype::ARP;
            // A tag here is one too many, or of a type that a second one does not have.
            self.unknowns.x[i].next = (self.kind.val() == MPLS)
                | (self.kind.val() == MPLS_MANY)
                | (self.kind.val() == NSH)
                | (self.kind.val() < LEAST_TYPE)
                | (self.kind.val() == ethertype::VLAN)
                | (self.kind.val() == ethertype::SERVICE_VLAN);
            self.shorts.x[i].next = self.len.val() < self.fronts[i].val();
        }
        self.tagged.next = self.vlans.y.val().get_bit(0) | self.services.y.val().get_bit(0);
        self.second.next = self.tagged.val() & self.vlans.y.val().get_bit(1);
        self.valid1.d.next = self.window_valid.val();
        self.from1.d.next = self.origin.val();
        self.ether1.d.next.dmac = self.eth.y.val().dst;
        self.ether1.d.next.smac = self.eth.y.val().src;
        self.ether1.d.next.service = self.services.y.val().get_bit(0);
        self.ether1.d.next.tci = self.tag.y.val();
        self.ether1.d.next.ended = self.ended.val();
        self.ether1.d.next.tags = bits::<2>(0);
        self.ether1.d.next.ethertype = self.types[0].y.val();
        self.ether1.d.next.v4 = self.fours.y.val().get_bit(0);
        self.ether1.d.next.v6 = self.sixes.y.val().get_bit(0);
        self.ether1.d.next.arp = self.arps.y.val().get_bit(0);
        self.ether1.d.next.deep = self.unknowns.y.val().get_bit(0) | (self.ended.val() & self.shorts.y.val().get_bit(0));
        self.ether1.d.next.room = self.len.val() - self.fronts[0].val();
        self.l3_1.d.next = self.layers[0].y.val();
        if self.tagged.val() {
            self.ether1.d.next.tags = bits::<2>(ONE);
            self.ether1.d.next.ethertype = self.types[1].y.val();
            self.ether1.d.next.v4 = self.fours.y.val().get_bit(1);
            self.ether1.d.next.v6 = self.sixes.y.val().get_bit(1);
            self.ether1.d.next.arp = self.arps.y.val().get_bit(1);
            self.ether1.d.next.deep = self.unknowns.y.val().get_bit(1) | (self.ended.val() & self.shorts.y.val().get_bit(1));
            self.ether1.d.next.room = self.len.val() - self.fronts[1].val();
            self.l3_1.d.next = self.layers[1].y.val();
        }
        if self.second.val() {
            self.ether1.d.next.tags = bits::<2>(TWO);
            self.ether1.d.next.ethertype = self.types[2].y.val();
            self.ether1.d.next.v4 = self.fours.y.val().get_bit(2);
            self.ether1.d.next.v6 = self.sixes.y.val().get_bit(2);
            self.ether1.d.next.arp = self.arps.y.val().get_bit(2);
            self.ether1.d.next.deep = self.unknowns.y.val().get_bit(2) | (self.ended.val() & self.shorts.y.val().get_bit(2));
            self.ether1.d.next.room = self.len.val() - self.fronts[2].val();
            self.l3_1.d.next = self.layers[2].y.val();
        }
        self.valid.next = self.valid1.q.val();
        self.ether.next = self.ether1.q.val();
        self.from.next = self.from1.q.val();
        self.l3.next = self.l3_1.q.val();
        if self.reset.val() {
            self.valid1.d.next = false;
        }
    }
}
