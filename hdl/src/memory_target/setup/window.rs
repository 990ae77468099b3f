//! Finds set-up requests among the received frames: one at a time, by its side the answers to "for us?" and "well formed?".
use crate::codes::ip;
use crate::prim::pack::BePick;
use crate::records::{Eth, Ipv4, SetupRequest, Udp};
use ferric_abi::wire::{ethertype, protocol};
use ferric_abi::{target, wire};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Length fields of requests and of answers.
pub(super) const UDP_BYTES: usize = wire::Udp::BYTES + target::SetupRequest::BYTES;
pub(super) const IP_BYTES: usize = wire::Ipv4::BYTES + UDP_BYTES;
/// Cycles until the verdicts are there, less one.
const JUDGED: u64 = 4;

/// Bytes before the request, and the window's beats and bits.
pub(super) const BEFORE: usize = 14 + 20 + 8;
pub(super) const BEATS: usize = 14;
pub(super) const BITS: usize = BEATS * 64;
/// So many beats show whether a frame may be a request; byte of the window where a frame of which they have come begins.
const EARLY_BEATS: usize = 6;
const EARLY: usize = (BEATS - EARLY_BEATS) * 8;

/// Where an answer goes.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Sender {
    pub mac: Bits<48>,
    pub ip: Bits<32>,
    pub port: Bits<16>,
}

/// Listens to the MAC's stream; never stops it.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Window {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub data: Signal<In, Bits<64>>,
    pub last: Signal<In, Bit>,
    pub err: Signal<In, Bit>,
    pub valid: Signal<In, Bit>,
    pub mac: Signal<In, Bits<48>>,
    pub ip: Signal<In, Bits<32>>,
    /// A request for us is here; it stays until `take`.
    pub some: Signal<Out, Bit>,
    pub malformed: Signal<Out, Bit>,
    pub sender: Signal<Out, Sender>,
    pub request: Signal<Out, SetupRequest>,
    pub take: Signal<In, Bit>,
    /// Beats come in at the top: 14 of them stand at their places.
    words: DFF<Bits<BITS>>,
    /// Beats of the present frame in the window.
    count: DFF<Bits<4>>,
    inside: DFF<Bit>,
    /// The present frame began while another was in the window.
    skip: DFF<Bit>,
    /// After six beats: looks like a request.
    likely: DFF<Bit>,
    /// The window is whole, and its verdicts ripen.
    age: DFF<Bits<3>>,
    full: DFF<Bit>,
    bad: DFF<Bit>,
    here: DFF<Bit>,
    ours: DFF<Bit>,
    proper: DFF<Bit>,
    sum_a: DFF<Bits<19>>,
    sum_b: DFF<Bits<19>>,
    sum: DFF<Bits<20>>,
    folded: DFF<Bits<17>>,
    // After six beats.
    #[init(BePick::of(&wire::Eth::LAYOUT, EARLY))]
    early_eth: BePick<BITS, Eth>,
    #[init(BePick::of(&wire::Ipv4::LAYOUT, EARLY + 14))]
    early_ip4: BePick<BITS, Ipv4>,
    #[init(BePick::of(&wire::Udp::LAYOUT, EARLY + 34))]
    early_udp: BePick<BITS, Udp>,
    #[init(BePick::of(&wire::Eth::LAYOUT, 0))]
    eth: BePick<BITS, Eth>,
    #[init(BePick::of(&wire::Ipv4::LAYOUT, 14))]
    ip4: BePick<BITS, Ipv4>,
    #[init(BePick::of(&wire::Udp::LAYOUT, 34))]
    udp: BePick<BITS, Udp>,
    #[init(BePick::of(&target::SetupRequest::LAYOUT, BEFORE))]
    setup: BePick<BITS, SetupRequest>,
    /// The IP header's 16-bit words.
    #[init(std::array::from_fn(|i| half(14 + 2 * i)))]
    half: [BePick<BITS, Bits<16>>; 10],
    #[init(Constant::new(u64::from(target::PORT).into()))]
    port: Constant<Bits<16>>,
    #[init(Constant::new(u64::from(target::MAGIC).into()))]
    magic: Constant<Bits<32>>,
    #[init(Constant::new(u64::from(target::VERSION).into()))]
    version: Constant<Bits<8>>,
    at: Signal<Local, Bits<4>>,
    likely_now: Signal<Local, Bit>,
    padding: Signal<Local, Bit>,
    flags: Signal<Local, Bits<3>>,
}

/// 16 bits from byte `at` on.
fn half(at: usize) -> BePick<BITS, Bits<16>> {
    BePick::new((0..16).map(|bit| 8 * (at + 1 - bit / 8) + bit % 8).collect())
}

#[kernel]
impl Logic for Window {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, words, count, inside, skip, likely, age, full, bad, here, ours, proper, sum_a, sum_b, sum, folded);
        self.at.next = bits::<4>(0);
        if self.inside.q.val() {
            self.at.next = self.count.q.val();
        }
        self.eth.x.next = self.words.q.val();
        self.ip4.x.next = self.words.q.val();
        self.udp.x.next = self.words.q.val();
        self.setup.x.next = self.words.q.val();
        self.early_eth.x.next = self.words.q.val();
        self.early_ip4.x.next = self.words.q.val();
        self.early_udp.x.next = self.words.q.val();
        for i in 0..10 {
            self.half[i].x.next = self.words.q.val();
        }

        // Most frames are known not to be requests by their seventh beat; the window stays open behind them.
        self.likely_now.next = self.likely.q.val();
        if self.count.q.val() == EARLY_BEATS {
            self.likely_now.next = (self.early_eth.y.val().ethertype == ethertype::IPV4) & (self.early_ip4.y.val().protocol == protocol::UDP) & (self.early_udp.y.val().dst_port == self.port.val());
        }
        self.likely.d.next = self.likely_now.val();
        self.padding.next = self.full.q.val() & (self.count.q.val() != BEATS);
        if self.valid.val() {
            self.inside.d.next = !self.last.val();
            if !self.inside.q.val() {
                self.skip.d.next = self.full.q.val();
            }
        }
        if self.padding.val() {
            // A short one moves to its place, too, to be answered.
            self.words.d.next = self.words.q.val() >> 64;
            self.count.d.next = self.count.q.val() + 1;
        } else if self.valid.val() & !self.full.q.val() & !(self.inside.q.val() & self.skip.q.val()) {
            if self.at.val() != BEATS {
                self.words.d.next = (self.words.q.val() >> 64) | (bit_cast::<896, 64>(self.data.val()) << 832);
                self.count.d.next = self.at.val() + 1;
            }
            if !self.inside.q.val() {
                self.likely.d.next = false;
            }
            if self.last.val() & self.inside.q.val() & (self.at.val() > (EARLY_BEATS - 1) as u64) & self.likely_now.val() & !self.err.val() {
                self.full.d.next = true;
                self.age.d.next = bits::<3>(0);
                self.bad.d.next = self.at.val() < (BEATS - 1) as u64;
            }
        }

        // Verdicts, a step a cycle.
        self.flags.next = self.ip4.y.val().flags;
        self.sum_a.d.next = bit_cast::<19, 16>(self.half[0].y.val())
            + bit_cast::<19, 16>(self.half[1].y.val())
            + bit_cast::<19, 16>(self.half[2].y.val())
            + bit_cast::<19, 16>(self.half[3].y.val())
            + bit_cast::<19, 16>(self.half[4].y.val());
        self.sum_b.d.next = bit_cast::<19, 16>(self.half[5].y.val())
            + bit_cast::<19, 16>(self.half[6].y.val())
            + bit_cast::<19, 16>(self.half[7].y.val())
            + bit_cast::<19, 16>(self.half[8].y.val())
            + bit_cast::<19, 16>(self.half[9].y.val());
        self.sum.d.next = bit_cast::<20, 19>(self.sum_a.q.val()) + bit_cast::<20, 19>(self.sum_b.q.val());
        self.folded.d.next = bit_cast::<17, 16>(self.sum.q.val().get_bits::<16>(0)) + bit_cast::<17, 4>(self.sum.q.val().get_bits::<4>(16));
        self.ours.d.next = (self.eth.y.val().dst == self.mac.val())
            & (self.ip4.y.val().dst == self.ip.val())
            & (self.ip4.y.val().version == ip::VERSION_4)
            & (self.ip4.y.val().ihl == ip::WORDS)
            & !self.flags.val().get_bit(0)
            & (self.ip4.y.val().fragment == 0);
        self.proper.d.next =
            (self.ip4.y.val().total_length == IP_BYTES) & (self.udp.y.val().length == UDP_BYTES) & (self.setup.y.val().magic == self.magic.val()) & (self.setup.y.val().version == self.version.val());
        if self.full.q.val() & !self.padding.val() & !self.here.q.val() {
            self.age.d.next = self.age.q.val() + 1;
            if self.age.q.val() == JUDGED {
                self.here.d.next = self.ours.q.val() & (self.folded.q.val() == ip::RIGHT_SUM);
                self.full.d.next = self.ours.q.val() & (self.folded.q.val() == ip::RIGHT_SUM);
                self.bad.d.next = self.bad.q.val() | !self.proper.q.val();
            }
        }
        self.some.next = self.here.q.val();
        self.malformed.next = self.bad.q.val();
        self.sender.next.mac = self.eth.y.val().src;
        self.sender.next.ip = self.ip4.y.val().src;
        self.sender.next.port = self.udp.y.val().src_port;
        self.request.next = self.setup.y.val();
        if self.take.val() {
            self.here.d.next = false;
            self.full.d.next = false;
        }
        if self.reset.val() {
            self.inside.d.next = false;
            self.skip.d.next = false;
            self.full.d.next = false;
            self.here.d.next = false;
        }
    }
}
