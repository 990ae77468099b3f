//! Whether a function may send a frame: it speaks for itself alone, and not to the underlay. See README.md.

mod discovery;
#[cfg(test)]
pub(super) mod tests;
mod words;

use super::bank::{self, HashBank};
use super::key::Facts;
use crate::prim::pack::{Concat2, Gather};
use crate::prim::sized::Delay;
use crate::records::{FlowKey, SenderCtx, TunnelCtx};
use discovery::Message;
use ferric_abi::codes::SwitchCause;
use ferric_abi::switch::bind::{ADDRESS_AT, KEY_BITS, RESULT_BITS};
use ferric_abi::wire::{protocol, VXLAN_PORT};
use ferric_hdl_derive::{kernel, BlockDefault};
pub use ferric_model::switch::verify as model;
use rust_hdl::prelude::*;
pub(super) use words::Words;

/// Cycles from a key to what stands against its frame.
pub const LATENCY: u64 = bank::LATENCY + 1;
/// The same from the frame's window, behind `Words`.
pub const FROM_WINDOW: u64 = super::key::LATENCY + LATENCY;
/// From the comparisons to the answer of the table.
const BESIDE: usize = bank::LATENCY as usize - 2;
/// Bytes of a key, bits of the middle word of its hash, and of a line.
const BYTES: usize = KEY_BITS / 8;
const MIDDLE: usize = 64;
pub const LINE: usize = KEY_BITS + RESULT_BITS + 3;
const ADDRESS: usize = KEY_BITS - ADDRESS_AT;

/// Packet classes of `ferric_model::switch::tables`.
const ARP: u64 = 1;
const V4: u64 = 2;
const V6: u64 = 3;
const UDP: u64 = protocol::UDP as u64;
const ICMPV6: u64 = protocol::ICMPV6 as u64;
const TUNNEL: u64 = VXLAN_PORT as u64;
/// Source ports of servers that hand out addresses.
const DHCP_SERVER: u64 = 67;
const DHCPV6_SERVER: u64 = 547;
/// Types of ICMPv6.
const ROUTER_ADVERTISEMENT: u64 = 134;
const SOLICITATION: u64 = 135;
const ADVERTISEMENT: u64 = 136;

const DEEP: u64 = SwitchCause::Deep as u64;
const SPOOF_MAC: u64 = SwitchCause::SpoofMac as u64;
const SPOOF_IP: u64 = SwitchCause::SpoofIp as u64;
const SPOOF_ARP: u64 = SwitchCause::SpoofArp as u64;
const TAG_DENIED: u64 = SwitchCause::TagDenied as u64;
const ROCE_DENIED: u64 = SwitchCause::RoceDenied as u64;
const UNDERLAY_DENIED: u64 = SwitchCause::UnderlayDenied as u64;

/// What is known of a frame behind the comparisons.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Seen {
    /// What its function sends is verified.
    on: Bit,
    deep: Bit,
    arp: Bit,
    ip: Bit,
    /// Source MAC address, and ARP's sender, are the port's.
    own: Bit,
    own_arp: Bit,
    tagged: Bit,
    /// No table need know its address.
    free: Bit,
    advertises: Bit,
    /// Neighbour discovery that is not about the port, or of a form that is not looked into.
    foreign: Bit,
    to_underlay: Bit,
    roce: Bit,
    serves: Bit,
}

/// Addresses of ports in four ways of 2^`LG` lines, tunnels of `NF` functions. One frame a cycle, never stalled.
#[derive(LogicBlock, BlockDefault)]
#[demand(LATENCY == 7)]
pub struct Verify<const NF: usize, const LG: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; what is under way is forgotten. The addresses stay.
    pub reset: Signal<In, Bit>,
    /// A frame's key and facts, as `key` makes them; `in_port` is the port that sends it.
    pub valid: Signal<In, Bit>,
    pub key: Signal<In, FlowKey>,
    pub facts: Signal<In, Facts>,
    pub message: Signal<In, Message>,
    /// With it: what that port may send.
    pub sender: Signal<In, SenderCtx>,
    /// The tunnels, which end at addresses that are nobody's.
    pub ctx: [Signal<In, TunnelCtx>; NF],
    /// [`LATENCY`] cycles later. Whether the port is verified; then a `SwitchCause`, zero if nothing stands against the frame.
    pub judged: Signal<Out, Bit>,
    pub on: Signal<Out, Bit>,
    pub cause: Signal<Out, Bits<6>>,
    /// An address is written, at any time: a line as `bank` has it.
    pub write: Signal<In, Bit>,
    pub write_way: Signal<In, Bits<2>>,
    pub write_line: Signal<In, Bits<LG>>,
    pub write_data: Signal<In, Bits<LINE>>,
    /// One is read, as `bank` does it.
    pub read: Signal<In, Bit>,
    pub read_way: Signal<In, Bits<2>>,
    pub read_line: Signal<In, Bits<LG>>,
    pub read_done: Signal<Out, Bit>,
    pub read_data: Signal<Out, Bits<LINE>>,
    bank: HashBank<KEY_BITS, BYTES, MIDDLE, RESULT_BITS, LINE, LG>,
    head: Concat2<8, 8, ADDRESS_AT>,
    whole: Concat2<ADDRESS_AT, ADDRESS, KEY_BITS>,
    is_arp: Signal<Local, Bit>,
    is_v4: Signal<Local, Bit>,
    is_v6: Signal<Local, Bit>,
    // Comparisons
    mac: [Signal<Local, Bits<48>>; 4],
    own1: DFF<Bits<4>>,
    own_arp1: DFF<Bits<4>>,
    own_named1: DFF<Bits<4>>,
    ends1: DFF<Bits<NF>>,
    own: Gather<4>,
    own_arp: Gather<4>,
    own_named: Gather<4>,
    tunnel: Signal<Local, TunnelCtx>,
    ends: Gather<NF>,
    there: Gather<NF>,
    there1: DFF<Bit>,
    tunnel1: DFF<Bit>,
    serves1: DFF<Bit>,
    advertises1: DFF<Bit>,
    solicits1: DFF<Bit>,
    announces1: DFF<Bit>,
    plain1: DFF<Bit>,
    names1: DFF<Bit>,
    about_source1: DFF<Bit>,
    speaks: Signal<Local, Bit>,
    own_target: Signal<Local, Bit>,
    unspecified1: DFF<Bit>,
    facts1: DFF<Facts>,
    arp1: DFF<Bit>,
    ip1: DFF<Bit>,
    tag1: DFF<Bit>,
    sender1: DFF<SenderCtx>,
    seen: Signal<Local, Seen>,
    seen2: DFF<Seen>,
    #[init(Delay::new(BESIDE))]
    beside: Delay<Seen>,
    known: Signal<Local, Seen>,
    free: Signal<Local, Bit>,
    judged7: DFF<Bit>,
    on7: DFF<Bit>,
    cause7: DFF<Bits<6>>,
}

#[kernel]
impl<const NF: usize, const LG: usize> Logic for Verify<NF, LG> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, own1, own_arp1, own_named1, ends1, there1, tunnel1, serves1, advertises1, solicits1, announces1, plain1, names1, about_source1);
        dff_setup!(self, clock, unspecified1, facts1, arp1, ip1, tag1, sender1, seen2, judged7, on7, cause7);
        clock!(self, clock, bank, beside);
        self.is_arp.next = self.facts.val().class == ARP;
        self.is_v4.next = self.facts.val().class == V4;
        self.is_v6.next = self.facts.val().class == V6;
        // Whether the table knows the address.
        self.head.a.next = self.key.val().in_port;
        self.head.b.next = bit_cast::<8, 1>(self.is_v6.val().into());
        self.whole.a.next = self.head.y.val();
        self.whole.b.next = self.key.val().src;
        self.bank.reset.next = self.reset.val();
        self.bank.valid.next = self.valid.val();
        self.bank.key.next = self.whole.y.val();
        self.bank.generation.next = bits::<2>(0);
        self.bank.write.next = self.write.val();
        self.bank.write_way.next = self.write_way.val();
        self.bank.write_line.next = self.write_line.val();
        self.bank.write_data.next = self.write_data.val();
        self.bank.read.next = self.read.val();
        self.bank.read_way.next = self.read_way.val();
        self.bank.read_line.next = self.read_line.val();
        self.read_done.next = self.bank.read_done.val();
        self.read_data.next = self.bank.read_data.val();
        // Comparisons
        self.mac[0].next = self.sender.val().mac0;
        self.mac[1].next = self.sender.val().mac1;
        self.mac[2].next = self.sender.val().mac2;
        self.mac[3].next = self.sender.val().mac3;
        for i in 0..4 {
            self.own.x[i].next = self.mac[i].val() == self.key.val().smac;
            self.own_arp.x[i].next = self.mac[i].val() == self.facts.val().hardware;
            self.own_named.x[i].next = self.mac[i].val() == self.message.val().hardware;
        }
        for i in 0..NF {
            self.tunnel.next = self.ctx[i].val();
            self.there.x[i].next = self.tunnel.val().valid;
            self.ends.x[i].next = self.tunnel.val().valid & (self.tunnel.val().ipv6 == self.is_v6.val()) & (self.tunnel.val().local == self.key.val().dst);
        }
        self.own1.d.next = self.own.y.val() & self.sender.val().have;
        self.own_arp1.d.next = self.own_arp.y.val() & self.sender.val().have;
        self.own_named1.d.next = self.own_named.y.val() & self.sender.val().have;
        self.ends1.d.next = self.ends.y.val();
        self.there1.d.next = self.there.y.val().any();
        self.tunnel1.d.next = (self.key.val().proto == UDP) & (self.key.val().dst_port == TUNNEL);
        self.serves1.d.next = (self.key.val().proto == UDP) & ((self.is_v4.val() & (self.key.val().src_port == DHCP_SERVER)) | (self.is_v6.val() & (self.key.val().src_port == DHCPV6_SERVER)));
        self.speaks.next = self.is_v6.val() & (self.key.val().proto == ICMPV6);
        self.advertises1.d.next = self.speaks.val() & (self.key.val().src_port == ROUTER_ADVERTISEMENT);
        self.solicits1.d.next = self.speaks.val() & (self.key.val().src_port == SOLICITATION);
        self.announces1.d.next = self.speaks.val() & (self.key.val().src_port == ADVERTISEMENT);
        self.plain1.d.next = self.message.val().plain;
        self.names1.d.next = self.message.val().names;
        self.about_source1.d.next = self.message.val().target == self.key.val().src;
        self.unspecified1.d.next = !self.key.val().src.any();
        self.facts1.d.next = self.facts.val();
        self.arp1.d.next = self.is_arp.val();
        self.ip1.d.next = self.is_v4.val() | self.is_v6.val();
        self.tag1.d.next = self.key.val().tag_present;
        self.sender1.d.next = self.sender.val();
        // What they say
        self.seen.next.on = self.sender1.q.val().on;
        self.seen.next.deep = self.facts1.q.val().deep;
        self.seen.next.arp = self.arp1.q.val();
        self.seen.next.ip = self.ip1.q.val();
        self.seen.next.own = self.own1.q.val().any();
        self.seen.next.own_arp = self.own_arp1.q.val().any();
        self.seen.next.tagged = self.tag1.q.val() & !self.sender1.q.val().trunk;
        self.seen.next.free = self.unspecified1.q.val() | self.sender1.q.val().any_ip;
        self.seen.next.advertises = self.advertises1.q.val() & !self.sender1.q.val().server;
        self.own_target.next = self.sender1.q.val().any_ip | (self.about_source1.q.val() & !self.unspecified1.q.val());
        self.seen.next.foreign =
            (self.solicits1.q.val() | self.announces1.q.val()) & (!self.plain1.q.val() | (self.names1.q.val() & !self.own_named1.q.val().any()) | (self.announces1.q.val() & !self.own_target.val()));
        self.seen.next.to_underlay = !self.sender1.q.val().underlay & (self.ends1.q.val().any() | (self.tunnel1.q.val() & self.there1.q.val()));
        self.seen.next.roce = self.facts1.q.val().roce & !self.sender1.q.val().roce;
        self.seen.next.serves = self.serves1.q.val() & !self.sender1.q.val().server;
        self.seen2.d.next = self.seen.val();
        self.beside.x.next = self.seen2.q.val();
        self.known.next = self.beside.y.val();
        self.free.next = self.known.val().free | self.bank.hit.val();
        // The first thing that stands against the frame
        self.judged7.d.next = self.bank.found_valid.val();
        self.cause7.d.next = bits::<6>(0);
        self.on7.d.next = self.known.val().on;
        if self.known.val().deep {
            self.cause7.d.next = bits::<6>(DEEP);
        } else if !self.known.val().own {
            self.cause7.d.next = bits::<6>(SPOOF_MAC);
        } else if self.known.val().tagged {
            self.cause7.d.next = bits::<6>(TAG_DENIED);
        } else if self.known.val().arp {
            if !self.known.val().own_arp | !self.free.val() {
                self.cause7.d.next = bits::<6>(SPOOF_ARP);
            }
        } else if self.known.val().ip {
            if !self.free.val() {
                self.cause7.d.next = bits::<6>(SPOOF_IP);
            } else if self.known.val().advertises | self.known.val().foreign {
                self.cause7.d.next = bits::<6>(SPOOF_ARP);
            } else if self.known.val().to_underlay {
                self.cause7.d.next = bits::<6>(UNDERLAY_DENIED);
            } else if self.known.val().roce {
                self.cause7.d.next = bits::<6>(ROCE_DENIED);
            } else if self.known.val().serves {
                self.cause7.d.next = bits::<6>(SPOOF_IP);
            }
        }
        self.judged.next = self.judged7.q.val();
        self.cause.next = self.cause7.q.val();
        self.on.next = self.on7.q.val();
        if self.reset.val() {
            self.judged7.d.next = false;
        }
    }
}
