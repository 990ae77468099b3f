//! Builds the headers of what is sent, and their checksums. The tag is put in later.

use super::header::Sort;
use crate::codes::{arp, icmp6, ip};
use crate::prim::pack::BePack;
use crate::records::{AddressCtx, Arp, Eth, IcmpEcho, Ipv4, Ipv6, NeighbourMessage};
use ferric_abi::wire::{self, ethertype, protocol};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bytes of all that is built: a message of neighbour discovery. Its bits.
pub(super) const BYTES: usize = IPV6_END + wire::NeighbourMessage::BYTES;
pub(super) const BITS: usize = 8 * BYTES;
const ETH: usize = wire::Eth::BYTES;
const IPV4_END: usize = ETH + wire::Ipv4::BYTES;
const IPV6_END: usize = ETH + wire::Ipv6::BYTES;
/// Bytes of a message of neighbour discovery.
const DISCOVERY: u64 = wire::NeighbourMessage::BYTES as u64;
/// Of an option with a MAC address, in 8 bytes.
const OPTION_LEN: u64 = 1;
/// Place of the last word.
const LAST_WORD: usize = BITS - 16;
/// Words of 16 bits of all; the first of an IPv4 header and the first behind it; the first of the addresses of an IPv6 header.
const WORDS: u64 = BYTES as u64 / 2;
const HEADER_4: u64 = ETH as u64 / 2;
const HEADER_4_END: u64 = IPV4_END as u64 / 2;
const ADDRESSES_6: u64 = (ETH as u64 + 8) / 2;
/// What the pseudo-header of such a message adds (RFC 8200, 8.1).
const PSEUDO: u64 = DISCOVERY + protocol::ICMPV6 as u64;
/// Added to the checksum of an echo message when its type becomes the reply's: 8 to 0, 128 to 129 (RFC 1624).
const REPLY_4: u64 = 0x0800;
const REPLY_6: u64 = 0xfeff;
/// All nodes of the link, ff02::1 (RFC 4291, 2.7.1), and their MAC address (RFC 2464).
const LINK_GROUP: u64 = 0xff02;
const NODES: u64 = 1;
const NODES_MAC_TOP: u64 = 0x3333;
/// The solicited-node groups: 32 bits above the last 24 of the address, eight bits and 32.
const SOLICITED_LOW: u64 = 0x01ff;
const SOLICITED_MAC: u64 = 0x33_33ff;

/// Cycles until the parts are right, and until the sum is folded.
const LOADED: u64 = 3;
const FOLDED: u64 = 2;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// The parts lie side by side.
    Load,
    /// One word a cycle goes round, once.
    Sum,
    Fold,
    Insert,
    Done,
}

/// Answers to a request, or a request of our own.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Answer {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    /// Begins; all that follows stays until `done`.
    pub start: Signal<In, Bit>,
    /// What is answered. None: a request is made for `sought`.
    pub sort: Signal<In, Sort>,
    pub asking: Signal<In, Bit>,
    pub address: Signal<In, AddressCtx>,
    pub sought: Signal<In, Bits<128>>,
    pub smac: Signal<In, Bits<48>>,
    pub nobody: Signal<In, Bit>,
    pub arp_in: Signal<In, Arp>,
    pub ip4_in: Signal<In, Ipv4>,
    pub ip6_in: Signal<In, Ipv6>,
    pub checksum: Signal<In, Bits<16>>,
    /// For one cycle; `built` stays until the next start.
    pub done: Signal<Out, Bit>,
    pub built: Signal<Out, Bits<BITS>>,
    state: DFF<State>,
    words: DFF<Bits<BITS>>,
    index: DFF<Bits<6>>,
    sum: DFF<Bits<22>>,
    fold: DFF<Bits<17>>,
    check: DFF<Bits<16>>,
    echo_sum: DFF<Bits<17>>,
    is_arp: DFF<Bit>,
    is_echo4: DFF<Bit>,
    is_echo6: DFF<Bit>,
    is_discovery: DFF<Bit>,
    #[init(BePack::of(&wire::Eth::LAYOUT, 0))]
    eth: BePack<BITS, Eth>,
    #[init(BePack::of(&wire::Arp::LAYOUT, ETH))]
    arp: BePack<BITS, Arp>,
    #[init(BePack::of(&wire::Ipv4::LAYOUT, ETH))]
    ip4: BePack<BITS, Ipv4>,
    #[init(BePack::of(&wire::Ipv6::LAYOUT, ETH))]
    ip6: BePack<BITS, Ipv6>,
    #[init(BePack::of(&wire::IcmpEcho::LAYOUT, IPV4_END))]
    echo4: BePack<BITS, IcmpEcho>,
    #[init(BePack::of(&wire::IcmpEcho::LAYOUT, IPV6_END))]
    echo6: BePack<BITS, IcmpEcho>,
    #[init(BePack::of(&wire::NeighbourMessage::LAYOUT, IPV6_END))]
    message: BePack<BITS, NeighbourMessage>,
    own: Signal<Local, Bits<128>>,
    target: Signal<Local, Bits<128>>,
    low: Signal<Local, Bits<24>>,
    echo: Signal<Local, Bits<16>>,
    value: Signal<Local, Bits<16>>,
    counts: Signal<Local, Bit>,
    total: Signal<Local, Bits<17>>,
    swapped: Signal<Local, Bits<16>>,
    of_arp: Signal<Local, Bits<BITS>>,
    of_four: Signal<Local, Bits<BITS>>,
    of_six: Signal<Local, Bits<BITS>>,
    of_message: Signal<Local, Bits<BITS>>,
    #[init(Constant::new(IcmpEcho::default()))]
    no_echo: Constant<IcmpEcho>,
}

#[kernel]
impl Logic for Answer {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, words, index, sum, fold, check, echo_sum, is_arp, is_echo4, is_echo6, is_discovery);
        self.own.next = self.address.val().ip;
        self.target.next = self.own.val();
        if self.asking.val() {
            self.target.next = self.sought.val();
        }
        self.low.next = self.target.val().get_bits::<24>(0);
        self.is_arp.d.next = (self.asking.val() & !self.address.val().ipv6) | (!self.asking.val() & self.sort.val().arp_request);
        self.is_echo4.d.next = !self.asking.val() & self.sort.val().ping;
        self.is_echo6.d.next = !self.asking.val() & self.sort.val().ping6;
        self.is_discovery.d.next = (self.asking.val() & self.address.val().ipv6) | (!self.asking.val() & self.sort.val().solicitation);

        // To whom it goes: back, to all, or to the group of those that it may be.
        self.eth.x.next.dst = self.smac.val();
        self.eth.x.next.src = self.address.val().mac;
        self.eth.x.next.ethertype = bits::<16>(ethertype::IPV6 as u64);
        if self.is_arp.q.val() {
            self.eth.x.next.ethertype = bits::<16>(ethertype::ARP as u64);
            if self.asking.val() {
                self.eth.x.next.dst = !bits::<48>(0);
            }
        } else if self.is_echo4.q.val() {
            self.eth.x.next.ethertype = bits::<16>(ethertype::IPV4 as u64);
        } else if self.asking.val() {
            self.eth.x.next.dst = (bits::<48>(SOLICITED_MAC) << 24) | bit_cast::<48, 24>(self.low.val());
        } else if self.is_discovery.q.val() & self.nobody.val() {
            self.eth.x.next.dst = (bits::<48>(NODES_MAC_TOP) << 32) | bits::<48>(NODES);
        }
        self.arp.x.next.htype = bits::<16>(arp::ETHERNET);
        self.arp.x.next.ptype = bits::<16>(ethertype::IPV4 as u64);
        self.arp.x.next.hlen = bits::<8>(arp::MAC_BYTES);
        self.arp.x.next.plen = bits::<8>(arp::IP_BYTES);
        self.arp.x.next.oper = bits::<16>(arp::REPLY);
        self.arp.x.next.sha = self.address.val().mac;
        self.arp.x.next.spa = self.own.val().get_bits::<32>(0);
        self.arp.x.next.tha = self.arp_in.val().sha;
        self.arp.x.next.tpa = self.arp_in.val().spa;
        if self.asking.val() {
            self.arp.x.next.oper = bits::<16>(arp::REQUEST);
            self.arp.x.next.tha = bits::<48>(0);
            self.arp.x.next.tpa = self.target.val().get_bits::<32>(0);
        }
        // The IP headers of an echo are new ones, with the DSCP asked with.
        self.ip4.x.next.version = bits::<4>(ip::VERSION_4);
        self.ip4.x.next.ihl = bits::<4>(ip::WORDS);
        self.ip4.x.next.dscp = self.ip4_in.val().dscp;
        self.ip4.x.next.ecn = bits::<2>(0);
        self.ip4.x.next.total_length = self.ip4_in.val().total_length;
        self.ip4.x.next.ident = bits::<16>(0);
        self.ip4.x.next.flags = bits::<3>(ip::DONT_FRAGMENT);
        self.ip4.x.next.fragment = bits::<13>(0);
        self.ip4.x.next.ttl = bits::<8>(ip::HOPS);
        self.ip4.x.next.protocol = bits::<8>(protocol::ICMP as u64);
        self.ip4.x.next.checksum = bits::<16>(0);
        self.ip4.x.next.src = self.own.val().get_bits::<32>(0);
        self.ip4.x.next.dst = self.ip4_in.val().src;
        self.ip6.x.next.version = bits::<4>(ip::VERSION_6);
        self.ip6.x.next.dscp = self.ip6_in.val().dscp;
        self.ip6.x.next.ecn = bits::<2>(0);
        self.ip6.x.next.flow_label = bits::<20>(0);
        self.ip6.x.next.payload_length = self.ip6_in.val().payload_length;
        self.ip6.x.next.next_header = bits::<8>(protocol::ICMPV6 as u64);
        self.ip6.x.next.hop_limit = bits::<8>(ip::HOPS);
        self.ip6.x.next.src = self.own.val();
        self.ip6.x.next.dst = self.ip6_in.val().src;
        if self.is_discovery.q.val() {
            self.ip6.x.next.dscp = bits::<6>(0);
            self.ip6.x.next.payload_length = bits::<16>(DISCOVERY);
            self.ip6.x.next.hop_limit = bits::<8>(icmp6::HOPS);
            if self.asking.val() {
                self.ip6.x.next.dst = (bits::<128>(LINK_GROUP) << 112) | (bits::<128>(SOLICITED_LOW) << 24) | bit_cast::<128, 24>(self.low.val());
            } else if self.nobody.val() {
                self.ip6.x.next.dst = (bits::<128>(LINK_GROUP) << 112) | bits::<128>(NODES);
            }
        }
        self.echo_sum.d.next = bit_cast::<17, 16>(self.checksum.val()) + REPLY_4;
        if self.is_echo6.q.val() {
            self.echo_sum.d.next = bit_cast::<17, 16>(self.checksum.val()) + REPLY_6;
        }
        self.echo.next = self.echo_sum.q.val().get_bits::<16>(0) + bit_cast::<16, 1>(self.echo_sum.q.val().get_bits::<1>(16));
        self.echo4.x.next = self.no_echo.val();
        self.echo4.x.next.checksum = self.echo.val();
        self.echo6.x.next = self.no_echo.val();
        self.echo6.x.next.kind = bits::<8>(icmp6::ECHO_REPLY);
        self.echo6.x.next.checksum = self.echo.val();
        self.message.x.next.kind = bits::<8>(icmp6::ADVERTISEMENT);
        self.message.x.next.code = bits::<8>(0);
        self.message.x.next.checksum = bits::<16>(0);
        self.message.x.next.flags = bits::<8>(icmp6::SOLICITED + icmp6::OVERRIDE);
        self.message.x.next.rsvd0 = bits::<24>(0);
        self.message.x.next.target = self.target.val();
        self.message.x.next.option = bits::<8>(icmp6::TARGET);
        self.message.x.next.option_len = bits::<8>(OPTION_LEN);
        self.message.x.next.mac = self.address.val().mac;
        if self.asking.val() {
            self.message.x.next.kind = bits::<8>(icmp6::SOLICITATION);
            self.message.x.next.flags = bits::<8>(0);
            self.message.x.next.option = bits::<8>(icmp6::SOURCE);
        } else if self.nobody.val() {
            self.message.x.next.flags = bits::<8>(icmp6::OVERRIDE);
        }
        self.of_arp.next = bits::<BITS>(0);
        self.of_four.next = bits::<BITS>(0);
        self.of_six.next = bits::<BITS>(0);
        self.of_message.next = bits::<BITS>(0);
        if self.is_arp.q.val() {
            self.of_arp.next = self.arp.y.val();
        }
        if self.is_echo4.q.val() {
            self.of_four.next = self.ip4.y.val() | self.echo4.y.val();
        }
        if self.is_echo6.q.val() {
            self.of_six.next = self.ip6.y.val() | self.echo6.y.val();
        }
        if self.is_discovery.q.val() {
            self.of_message.next = self.ip6.y.val() | self.message.y.val();
        }

        // The words go round to be added, first byte on the wire high.
        self.value.next = (bit_cast::<16, 8>(self.words.q.val().get_bits::<8>(0)) << 8) | bit_cast::<16, 8>(self.words.q.val().get_bits::<8>(8));
        self.counts.next = (self.is_echo4.q.val() & (self.index.q.val() >= HEADER_4) & (self.index.q.val() < HEADER_4_END)) | (self.is_discovery.q.val() & (self.index.q.val() >= ADDRESSES_6));
        self.fold.d.next = bit_cast::<17, 16>(self.sum.q.val().get_bits::<16>(0)) + bit_cast::<17, 6>(self.sum.q.val().get_bits::<6>(16));
        self.total.next = bit_cast::<17, 16>(self.fold.q.val().get_bits::<16>(0)) + bit_cast::<17, 1>(self.fold.q.val().get_bits::<1>(16));
        self.check.d.next = self.total.val().get_bits::<16>(0) ^ bits::<16>(ip::RIGHT_SUM);
        self.swapped.next = (self.check.q.val() << 8) | (self.check.q.val() >> 8);
        self.built.next = self.words.q.val();
        self.done.next = self.state.q.val() == State::Done;
        match self.state.q.val() {
            State::Idle => {
                self.index.d.next = bits::<6>(0);
                if self.start.val() {
                    self.state.d.next = State::Load;
                }
            }
            State::Load => {
                // One cycle for what it is, one for the echo's checksum.
                self.index.d.next = self.index.q.val() + 1;
                self.words.d.next = self.eth.y.val() | self.of_arp.val() | self.of_four.val() | self.of_six.val() | self.of_message.val();
                self.sum.d.next = bits::<22>(0);
                if self.is_discovery.q.val() {
                    self.sum.d.next = bits::<22>(PSEUDO);
                }
                if self.index.q.val() == LOADED {
                    self.index.d.next = bits::<6>(0);
                    self.state.d.next = State::Sum;
                }
            }
            State::Sum => {
                self.index.d.next = self.index.q.val() + 1;
                self.words.d.next = (self.words.q.val() >> 16) | (bit_cast::<BITS, 16>(self.words.q.val().get_bits::<16>(0)) << LAST_WORD);
                if self.counts.val() {
                    self.sum.d.next = self.sum.q.val() + bit_cast::<22, 16>(self.value.val());
                }
                if self.index.q.val() == WORDS - 1 {
                    self.index.d.next = bits::<6>(0);
                    self.state.d.next = State::Fold;
                }
            }
            State::Fold => {
                self.index.d.next = self.index.q.val() + 1;
                if self.index.q.val() == FOLDED {
                    self.state.d.next = State::Insert;
                }
            }
            State::Insert => {
                // Its place is zero still.
                if self.is_echo4.q.val() {
                    self.words.d.next = self.words.q.val() | (bit_cast::<BITS, 16>(self.swapped.val()) << 192);
                } else if self.is_discovery.q.val() {
                    self.words.d.next = self.words.q.val() | (bit_cast::<BITS, 16>(self.swapped.val()) << 448);
                }
                self.state.d.next = State::Done;
            }
            State::Done => {
                self.state.d.next = State::Idle;
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
