//! What is in front of the packet: Ethernet and IP. Combinational, but for the checksum of IPv4, which takes its words one by one.
use super::{VIEW, VIEW_BITS};
use crate::codes::ip;
use crate::prim::pack::{BePick, Slice};
use crate::records::{Eth, Ipv4, Ipv6, Udp};
use ferric_abi::wire::{self, ethertype, protocol};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Where the IP header is, and what is behind either.
pub(super) const NETWORK: usize = wire::Eth::BYTES;
pub(super) const BEHIND4: usize = NETWORK + wire::Ipv4::BYTES;
pub(super) const BEHIND6: usize = NETWORK + wire::Ipv6::BYTES;
/// Bits of an IPv4 header.
pub(super) const HEADER: usize = 8 * wire::Ipv4::BYTES;
const IP4: u64 = wire::Ipv4::BYTES as u64;
const IP6: u64 = wire::Ipv6::BYTES as u64;
const UDP: u64 = wire::Udp::BYTES as u64;
/// The flag "more fragments".
const MORE: usize = 0;

/// What they say.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Front {
    /// UDP to the port in question, over IPv4 or IPv6.
    pub v4: Bit,
    pub v6: Bit,
    /// From there on: bytes behind the IP header; these lie within the frame and hold a UDP header.
    pub bytes: Bits<16>,
    pub fits: Bit,
    pub congested: Bit,
    /// IPv4 in the low 32 bits.
    pub from: Bits<128>,
    pub to: Bits<128>,
}

#[derive(LogicBlock, BlockDefault)]
#[demand(VIEW_BITS == 8 * VIEW && BEHIND6 < VIEW)]
pub struct Reader {
    pub view: Signal<In, Bits<VIEW_BITS>>,
    /// Bytes that the frame has from its IP header on.
    pub there: Signal<In, Bits<17>>,
    pub port: Signal<In, Bits<16>>,
    pub front: Signal<Out, Front>,
    pub header: Signal<Out, Bits<HEADER>>,
    #[init(BePick::of(&wire::Eth::LAYOUT, 0))]
    eth: BePick<VIEW_BITS, Eth>,
    #[init(BePick::of(&wire::Ipv4::LAYOUT, NETWORK))]
    ip4: BePick<VIEW_BITS, Ipv4>,
    #[init(BePick::of(&wire::Ipv6::LAYOUT, NETWORK))]
    ip6: BePick<VIEW_BITS, Ipv6>,
    #[init(BePick::of(&wire::Udp::LAYOUT, BEHIND4))]
    udp4: BePick<VIEW_BITS, Udp>,
    #[init(BePick::of(&wire::Udp::LAYOUT, BEHIND6))]
    udp6: BePick<VIEW_BITS, Udp>,
    #[init(Slice::new(8 * NETWORK))]
    words: Slice<VIEW_BITS, HEADER>,
    flags: Signal<Local, Bits<3>>,
    whole: Signal<Local, Bit>,
    is4: Signal<Local, Bit>,
    is6: Signal<Local, Bit>,
    /// From the IP header on, as it says.
    total: Signal<Local, Bits<17>>,
    least: Signal<Local, Bits<17>>,
    behind: Signal<Local, Bits<17>>,
}

#[kernel]
impl Logic for Reader {
    #[hdl_gen]
    fn update(&mut self) {
        self.eth.x.next = self.view.val();
        self.ip4.x.next = self.view.val();
        self.ip6.x.next = self.view.val();
        self.udp4.x.next = self.view.val();
        self.udp6.x.next = self.view.val();
        self.words.x.next = self.view.val();
        self.header.next = self.words.y.val();
        self.flags.next = self.ip4.y.val().flags;
        self.whole.next = !self.ip4.y.val().fragment.any() & !self.flags.val().get_bit(MORE);
        self.is4.next = (self.eth.y.val().ethertype == ethertype::IPV4 as u64)
            & (self.ip4.y.val().version == ip::VERSION_4)
            & (self.ip4.y.val().ihl == ip::WORDS)
            & self.whole.val()
            & (self.ip4.y.val().protocol == protocol::UDP as u64)
            & (self.udp4.y.val().dst_port == self.port.val());
        self.is6.next = (self.eth.y.val().ethertype == ethertype::IPV6 as u64)
            & (self.ip6.y.val().version == ip::VERSION_6)
            & (self.ip6.y.val().next_header == protocol::UDP as u64)
            & (self.udp6.y.val().dst_port == self.port.val());
        self.front.next.v4 = self.is4.val();
        self.front.next.v6 = self.is6.val();
        self.total.next = bit_cast::<17, 16>(self.ip4.y.val().total_length);
        self.least.next = bits::<17>(IP4 + UDP);
        self.behind.next = self.total.val() - IP4;
        self.front.next.congested = !(!self.ip4.y.val().ecn).any();
        self.front.next.from = bit_cast::<128, 32>(self.ip4.y.val().src);
        self.front.next.to = bit_cast::<128, 32>(self.ip4.y.val().dst);
        if self.is6.val() {
            self.total.next = bit_cast::<17, 16>(self.ip6.y.val().payload_length) + IP6;
            self.least.next = bits::<17>(IP6 + UDP);
            self.behind.next = bit_cast::<17, 16>(self.ip6.y.val().payload_length);
            self.front.next.congested = !(!self.ip6.y.val().ecn).any();
            self.front.next.from = self.ip6.y.val().src;
            self.front.next.to = self.ip6.y.val().dst;
        }
        self.front.next.bytes = self.behind.val().get_bits::<16>(0);
        self.front.next.fits = (self.total.val() <= self.there.val()) & (self.total.val() >= self.least.val());
    }
}
