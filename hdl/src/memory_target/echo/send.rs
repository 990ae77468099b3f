//! The answer to an ARP or echo request as a frame.
use super::listen::{BEATS, BITS, LANES, ROWS};
use crate::bus::AxisSrc;
use crate::codes::{arp, ip, ECHO_REQUEST};
use crate::prim::pack::{BePack, BePick};
use crate::records::{Arp, Eth, IcmpEcho, Ipv4};
use ferric_abi::wire::{self, protocol};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Sum of the IP header's words that are always the same: version and length, not to be fragmented, hops and ICMP.
const CONSTANT_WORDS: u64 = (ip::VERSION_4 << 12) + (ip::WORDS << 8) + (ip::DONT_FRAGMENT << 13) + (ip::HOPS << 8) + protocol::ICMP as u64;
/// Last byte of a frame with an ARP packet.
const ARP_END: u64 = (wire::Eth::BYTES + wire::Arp::BYTES - 1) as u64;
/// Cycles until the headers' sums are there, less one.
const RIPE: u64 = 3;

/// What the machine does.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum State {
    Idle,
    /// The headers' sums ripen.
    Build,
    /// A beat is fetched.
    Fetch,
    Send,
}

/// Answers the request that is shown while `some`; then `take` pulses.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Send {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub mac: Signal<In, Bits<48>>,
    pub ip: Signal<In, Bits<32>>,
    pub some: Signal<In, Bit>,
    pub arp: Signal<In, Bit>,
    pub head: Signal<In, Bits<BITS>>,
    /// Number of an echo's last byte.
    pub stop_at: Signal<In, Bits<11>>,
    pub read_addr: Signal<Out, Bits<ROWS>>,
    pub read_data: Signal<In, Bits<64>>,
    pub take: Signal<Out, Bit>,
    pub m: AxisSrc<64, 8>,
    state: DFF<State>,
    age: DFF<Bits<2>>,
    /// The first six beats, the next one lowest.
    shift: DFF<Bits<BITS>>,
    beat: DFF<Bits<ROWS>>,
    final_byte: DFF<Bits<11>>,
    sum: DFF<Bits<20>>,
    folded: DFF<Bits<17>>,
    check: DFF<Bits<16>>,
    echo_sum: DFF<Bits<17>>,
    #[init(BePick::of(&wire::Eth::LAYOUT, 0))]
    eth_in: BePick<BITS, Eth>,
    #[init(BePick::of(&wire::Arp::LAYOUT, 14))]
    arp_in: BePick<BITS, Arp>,
    #[init(BePick::of(&wire::Ipv4::LAYOUT, 14))]
    ip4_in: BePick<BITS, Ipv4>,
    #[init(BePick::of(&wire::IcmpEcho::LAYOUT, 34))]
    icmp_in: BePick<BITS, IcmpEcho>,
    #[init(BePack::of(&wire::Eth::LAYOUT, 0))]
    eth: BePack<BITS, Eth>,
    #[init(BePack::of(&wire::Arp::LAYOUT, 14))]
    arp_out: BePack<BITS, Arp>,
    #[init(BePack::of(&wire::Ipv4::LAYOUT, 14))]
    ip4: BePack<BITS, Ipv4>,
    #[init(BePack::of(&wire::IcmpEcho::LAYOUT, 34))]
    icmp: BePack<BITS, IcmpEcho>,
    own: Signal<Local, Bits<32>>,
    theirs: Signal<Local, Bits<32>>,
    total: Signal<Local, Bits<17>>,
    rest: Signal<Local, Bits<48>>,
    lane: Signal<Local, Bits<3>>,
    behind: Signal<Local, Bits<3>>,
    ones: Signal<Local, Bits<8>>,
}

#[kernel]
impl Logic for Send {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, age, shift, beat, final_byte, sum, folded, check, echo_sum);
        self.eth_in.x.next = self.head.val();
        self.arp_in.x.next = self.head.val();
        self.ip4_in.x.next = self.head.val();
        self.icmp_in.x.next = self.head.val();

        // The IP header is a new one, with the DSCP asked with (RFC 1349, 5.1). Its constant words: 0x4500, do not fragment, 64 hops, ICMP.
        self.own.next = self.ip.val();
        self.theirs.next = self.ip4_in.y.val().src;
        self.sum.d.next = bit_cast::<20, 16>(self.own.val().get_bits::<16>(16))
            + bit_cast::<20, 16>(self.own.val().get_bits::<16>(0))
            + bit_cast::<20, 16>(self.theirs.val().get_bits::<16>(16))
            + bit_cast::<20, 16>(self.theirs.val().get_bits::<16>(0))
            + bit_cast::<20, 16>(self.ip4_in.y.val().total_length)
            + (bit_cast::<20, 6>(self.ip4_in.y.val().dscp) << 2)
            + CONSTANT_WORDS;
        self.folded.d.next = bit_cast::<17, 16>(self.sum.q.val().get_bits::<16>(0)) + bit_cast::<17, 4>(self.sum.q.val().get_bits::<4>(16));
        self.total.next = bit_cast::<17, 16>(self.folded.q.val().get_bits::<16>(0)) + bit_cast::<17, 1>(self.folded.q.val().get_bits::<1>(16));
        self.check.d.next = self.total.val().get_bits::<16>(0) ^ ip::RIGHT_SUM;
        // Type 8 becomes 0: the sum's complement grows by as much (RFC 1624).
        self.echo_sum.d.next = bit_cast::<17, 16>(self.icmp_in.y.val().checksum) + (ECHO_REQUEST << 8) as u64;

        self.eth.x.next.dst = self.eth_in.y.val().src;
        self.eth.x.next.src = self.mac.val();
        self.eth.x.next.ethertype = self.eth_in.y.val().ethertype;
        if self.arp.val() {
            self.eth.x.next.dst = self.arp_in.y.val().sha;
        }
        self.arp_out.x.next = self.arp_in.y.val();
        self.arp_out.x.next.oper = bits::<16>(arp::REPLY);
        self.arp_out.x.next.sha = self.mac.val();
        self.arp_out.x.next.spa = self.ip.val();
        self.arp_out.x.next.tha = self.arp_in.y.val().sha;
        self.arp_out.x.next.tpa = self.arp_in.y.val().spa;
        self.ip4.x.next.version = bits::<4>(ip::VERSION_4);
        self.ip4.x.next.ihl = bits::<4>(ip::WORDS);
        self.ip4.x.next.dscp = self.ip4_in.y.val().dscp;
        self.ip4.x.next.ecn = bits::<2>(0);
        self.ip4.x.next.total_length = self.ip4_in.y.val().total_length;
        self.ip4.x.next.ident = bits::<16>(0);
        self.ip4.x.next.flags = bits::<3>(ip::DONT_FRAGMENT);
        self.ip4.x.next.fragment = bits::<13>(0);
        self.ip4.x.next.ttl = bits::<8>(ip::HOPS);
        self.ip4.x.next.protocol = bits::<8>(protocol::ICMP);
        self.ip4.x.next.checksum = self.check.q.val();
        self.ip4.x.next.src = self.ip.val();
        self.ip4.x.next.dst = self.ip4_in.y.val().src;
        self.icmp.x.next = self.icmp_in.y.val();
        self.icmp.x.next.kind = bits::<8>(0);
        self.icmp.x.next.checksum = self.echo_sum.q.val().get_bits::<16>(0) + bit_cast::<16, 1>(self.echo_sum.q.val().get_bits::<1>(16));
        self.rest.next = self.head.val().get_bits::<48>(336);

        // Beat by beat, one in two cycles: still twice the wire's rate.
        self.ones.next = bits::<8>(LANES);
        self.lane.next = self.final_byte.q.val().get_bits::<3>(0);
        self.behind.next = !self.lane.val();
        self.read_addr.next = self.beat.q.val();
        self.m.data.next = self.read_data.val();
        if self.beat.q.val() < BEATS {
            self.m.data.next = self.shift.q.val().get_bits::<64>(0);
        }
        self.m.last.next = self.beat.q.val() == self.final_byte.q.val().get_bits::<8>(3);
        self.m.keep.next = self.ones.val();
        if self.beat.q.val() == self.final_byte.q.val().get_bits::<8>(3) {
            self.m.keep.next = self.ones.val() >> self.behind.val();
        }
        self.m.valid.next = self.state.q.val() == State::Send;
        self.take.next = false;
        match self.state.q.val() {
            State::Idle => {
                self.age.d.next = bits::<2>(0);
                self.beat.d.next = bits::<8>(0);
                if self.some.val() {
                    self.state.d.next = State::Build;
                }
            }
            State::Build => {
                self.age.d.next = self.age.q.val() + 1;
                self.final_byte.d.next = self.stop_at.val();
                self.shift.d.next = self.eth.y.val() | self.ip4.y.val() | self.icmp.y.val() | (bit_cast::<384, 48>(self.rest.val()) << 336);
                if self.arp.val() {
                    // Up to byte 41.
                    self.final_byte.d.next = bits::<11>(ARP_END);
                    self.shift.d.next = self.eth.y.val() | self.arp_out.y.val();
                }
                if self.age.q.val() == RIPE {
                    self.state.d.next = State::Fetch;
                }
            }
            State::Fetch => {
                self.state.d.next = State::Send;
            }
            State::Send => {
                if self.m.ready.val() {
                    self.beat.d.next = self.beat.q.val() + 1;
                    self.shift.d.next = self.shift.q.val() >> 64;
                    self.state.d.next = State::Fetch;
                    if self.beat.q.val() == self.final_byte.q.val().get_bits::<8>(3) {
                        self.take.next = true;
                        self.state.d.next = State::Idle;
                    }
                }
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
