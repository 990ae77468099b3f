//! An answer as a frame: Ethernet, IPv4, UDP, 64 bytes.
use super::window::{Sender, BEATS, BEFORE, BITS, IP_BYTES, UDP_BYTES};
use crate::bus::AxisSrc;
use crate::codes::ip;
use crate::prim::pack::BePack;
use crate::records::{Eth, Ipv4, SetupReply, Udp};
use ferric_abi::wire::{ethertype, protocol};
use ferric_abi::{target, wire};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Sum of the IP header's words that are always the same: version and length, total length, not to be fragmented, hops and UDP.
const CONSTANT_WORDS: u64 = (ip::VERSION_4 << 12) + (ip::WORDS << 8) + IP_BYTES as u64 + (ip::DONT_FRAGMENT << 13) + (ip::HOPS << 8) + protocol::UDP as u64;
/// Value of `age` with which the header's sum is there.
const RIPE: u64 = 3;
/// All lanes of a beat, and those of the last one.
const LANES: u64 = 0xff;
const LAST_LANES: u64 = LANES >> (8 - (BEFORE + target::SetupReply::BYTES) % 8);

/// `start` with everything else stable until the last beat has gone.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Answer {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub reply: Signal<In, SetupReply>,
    pub to: Signal<In, Sender>,
    pub mac: Signal<In, Bits<48>>,
    pub ip: Signal<In, Bits<32>>,
    /// Pulse, while `idle`.
    pub start: Signal<In, Bit>,
    pub idle: Signal<Out, Bit>,
    pub m: AxisSrc<64, 8>,
    /// Beats not yet sent, the next one lowest.
    shift: DFF<Bits<BITS>>,
    left: DFF<Bits<4>>,
    /// The header's sum ripens.
    age: DFF<Bits<2>>,
    sum: DFF<Bits<20>>,
    folded: DFF<Bits<17>>,
    check: DFF<Bits<16>>,
    #[init(BePack::of(&wire::Eth::LAYOUT, 0))]
    eth: BePack<BITS, Eth>,
    #[init(BePack::of(&wire::Ipv4::LAYOUT, 14))]
    ip4: BePack<BITS, Ipv4>,
    #[init(BePack::of(&wire::Udp::LAYOUT, 34))]
    udp: BePack<BITS, Udp>,
    #[init(BePack::of(&target::SetupReply::LAYOUT, BEFORE))]
    body: BePack<BITS, SetupReply>,
    #[init(Constant::new(u64::from(target::PORT).into()))]
    port: Constant<Bits<16>>,
    own: Signal<Local, Bits<32>>,
    theirs: Signal<Local, Bits<32>>,
    total: Signal<Local, Bits<17>>,
}

#[kernel]
impl Logic for Answer {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, shift, left, age, sum, folded, check);
        self.own.next = self.ip.val();
        self.theirs.next = self.to.val().ip;
        // The header's constant words (RFC 791): 0x4500, 92 bytes, no fragment, 64 hops, UDP.
        self.sum.d.next = bit_cast::<20, 16>(self.own.val().get_bits::<16>(16))
            + bit_cast::<20, 16>(self.own.val().get_bits::<16>(0))
            + bit_cast::<20, 16>(self.theirs.val().get_bits::<16>(16))
            + bit_cast::<20, 16>(self.theirs.val().get_bits::<16>(0))
            + CONSTANT_WORDS;
        self.folded.d.next = bit_cast::<17, 16>(self.sum.q.val().get_bits::<16>(0)) + bit_cast::<17, 4>(self.sum.q.val().get_bits::<4>(16));
        self.total.next = bit_cast::<17, 16>(self.folded.q.val().get_bits::<16>(0)) + bit_cast::<17, 1>(self.folded.q.val().get_bits::<1>(16));
        self.check.d.next = self.total.val().get_bits::<16>(0) ^ ip::RIGHT_SUM;
        self.eth.x.next.dst = self.to.val().mac;
        self.eth.x.next.src = self.mac.val();
        self.eth.x.next.ethertype = bits::<16>(ethertype::IPV4);
        self.ip4.x.next.version = bits::<4>(ip::VERSION_4);
        self.ip4.x.next.ihl = bits::<4>(ip::WORDS);
        self.ip4.x.next.dscp = bits::<6>(0);
        self.ip4.x.next.ecn = bits::<2>(0);
        self.ip4.x.next.total_length = bits::<16>(IP_BYTES);
        self.ip4.x.next.ident = bits::<16>(0);
        self.ip4.x.next.flags = bits::<3>(ip::DONT_FRAGMENT);
        self.ip4.x.next.fragment = bits::<13>(0);
        self.ip4.x.next.ttl = bits::<8>(ip::HOPS);
        self.ip4.x.next.protocol = bits::<8>(protocol::UDP);
        self.ip4.x.next.checksum = self.check.q.val();
        self.ip4.x.next.src = self.ip.val();
        self.ip4.x.next.dst = self.to.val().ip;
        self.udp.x.next.src_port = self.port.val();
        self.udp.x.next.dst_port = self.to.val().port;
        self.udp.x.next.length = bits::<16>(UDP_BYTES);
        self.udp.x.next.checksum = bits::<16>(0);
        self.body.x.next = self.reply.val();

        self.idle.next = !self.left.q.val().any() & !self.age.q.val().any();
        if self.start.val() {
            self.age.d.next = bits::<2>(1);
        } else if self.age.q.val().any() {
            self.age.d.next = self.age.q.val() + 1;
            if self.age.q.val() == RIPE {
                self.shift.d.next = self.eth.y.val() | self.ip4.y.val() | self.udp.y.val() | self.body.y.val();
                self.left.d.next = bits::<4>(BEATS);
            }
        }
        self.m.data.next = self.shift.q.val().get_bits::<64>(0);
        self.m.last.next = self.left.q.val() == 1;
        self.m.keep.next = bits::<8>(LANES);
        if self.left.q.val() == 1 {
            self.m.keep.next = bits::<8>(LAST_LANES);
        }
        self.m.valid.next = self.left.q.val().any();
        if self.left.q.val().any() & self.m.ready.val() {
            self.left.d.next = self.left.q.val() - 1;
            self.shift.d.next = self.shift.q.val() >> 64;
        }
        if self.reset.val() {
            self.left.d.next = bits::<4>(0);
            self.age.d.next = bits::<2>(0);
        }
    }
}
