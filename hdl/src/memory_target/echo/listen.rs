//! Finds ARP requests and ICMP echo requests among the received frames, one at a time, and keeps it.
use crate::codes::{arp, ip, ECHO_REQUEST};
use crate::prim::keep_mask::KeepMask;
use crate::prim::pack::BePick;
use crate::prim::ram::Ram;
use crate::records::{Arp, Eth, IcmpEcho, Ipv4};
use ferric_abi::wire::{self, ethertype, protocol};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// All lanes of a beat.
pub(super) const LANES: u64 = 0xff;
/// First byte of the IP header, and the first behind it; their beats and lanes.
const START: usize = wire::Eth::BYTES;
const START_BEAT: u64 = START as u64 / 8;
const START_LANES: u64 = (LANES << (START % 8)) & LANES;
const END: usize = START + wire::Ipv4::BYTES;
const END_BEAT: u64 = END as u64 / 8;
const END_LANES: u64 = LANES >> (8 - END % 8);
/// Lanes of the message in the header's last beat.
const MESSAGE_LANES: u64 = LANES ^ END_LANES;
/// Beat of the IP header's total length.
const LENGTH_BEAT: u64 = (START as u64 + 2) / 8;
/// First three bits of addresses that are no host's: multicast and reserved ones.
const NO_HOST: u64 = 7;
// Cycles after which it is known whom a frame asks, and whether it is right.
const ADDRESSES: u64 = 3;
const JUDGED: u64 = 7;

/// The first beats, and their bits: all of an ARP packet, and what an echo's answer changes.
pub(super) const BEATS: usize = 6;
pub(super) const BITS: usize = BEATS * 64;
/// log2 of the beats of the longest frame that is kept.
pub(super) const ROWS: usize = 8;

/// Listens to the MAC's stream; never stops it.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Listen {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub data: Signal<In, Bits<64>>,
    pub keep: Signal<In, Bits<8>>,
    pub last: Signal<In, Bit>,
    pub err: Signal<In, Bit>,
    pub valid: Signal<In, Bit>,
    pub mac: Signal<In, Bits<48>>,
    pub ip: Signal<In, Bits<32>>,
    /// A request for us that is right is here; it stays until `take`. `arp`: an ARP request, else an echo request.
    pub some: Signal<Out, Bit>,
    pub arp: Signal<Out, Bit>,
    pub take: Signal<In, Bit>,
    /// Pulse: a request for us was malformed.
    pub malformed: Signal<Out, Bit>,
    /// The first six beats, the number of the last byte of the echo, and any beat a cycle behind its number.
    pub head: Signal<Out, Bits<BITS>>,
    pub stop_at: Signal<Out, Bits<11>>,
    pub read_addr: Signal<In, Bits<ROWS>>,
    pub read_data: Signal<Out, Bits<64>>,
    rest: Ram<Bits<64>, ROWS>,
    words: DFF<Bits<BITS>>,
    /// Beats of the present frame, at most 256.
    count: DFF<Bits<9>>,
    inside: DFF<Bit>,
    /// The present frame began while another was kept.
    skip: DFF<Bit>,
    /// After six beats: looks like a request.
    likely: DFF<Bit>,
    /// A frame is kept, and its verdicts ripen.
    full: DFF<Bit>,
    age: DFF<Bits<3>>,
    here: DFF<Bit>,
    last_beat: DFF<Bits<9>>,
    last_keep: DFF<Bits<8>>,
    // Checksums, a beat a cycle.
    one: DFF<Bit>,
    one_at: DFF<Bits<9>>,
    one_data: DFF<Bits<64>>,
    total: DFF<Bits<16>>,
    /// Number of the IP packet's last byte in the frame.
    span: DFF<Bits<17>>,
    two: DFF<Bit>,
    two_first: DFF<Bit>,
    two_head: DFF<Bits<64>>,
    two_body: DFF<Bits<64>>,
    three: DFF<Bit>,
    three_first: DFF<Bit>,
    three_head: DFF<Bits<18>>,
    three_body: DFF<Bits<18>>,
    head_sum: DFF<Bits<20>>,
    body_sum: DFF<Bits<26>>,
    head_fold: DFF<Bits<17>>,
    body_fold: DFF<Bits<17>>,
    // Verdicts.
    is_arp: DFF<Bit>,
    call: DFF<Bit>,
    shape: DFF<Bit>,
    room: DFF<Bit>,
    head_mask: KeepMask<64, 8>,
    body_mask: KeepMask<64, 8>,
    #[init(BePick::of(&wire::Eth::LAYOUT, 0))]
    eth: BePick<BITS, Eth>,
    #[init(BePick::of(&wire::Arp::LAYOUT, 14))]
    arp_at: BePick<BITS, Arp>,
    #[init(BePick::of(&wire::Ipv4::LAYOUT, 14))]
    ip4: BePick<BITS, Ipv4>,
    #[init(BePick::of(&wire::IcmpEcho::LAYOUT, 34))]
    icmp: BePick<BITS, IcmpEcho>,
    at: Signal<Local, Bits<9>>,
    taken: Signal<Local, Bit>,
    likely_now: Signal<Local, Bit>,
    ones: Signal<Local, Bits<8>>,
    lane: Signal<Local, Bits<3>>,
    behind: Signal<Local, Bits<3>>,
    end_beat: Signal<Local, Bits<14>>,
    present: Signal<Local, Bits<14>>,
    seen: Signal<Local, Bits<14>>,
    inner: Signal<Local, Bits<8>>,
    at_end: Signal<Local, Bits<8>>,
    flags: Signal<Local, Bits<3>>,
    source: Signal<Local, Bits<32>>,
    from: Signal<Local, Bits<48>>,
    sha: Signal<Local, Bits<48>>,
    summed: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Listen {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, words, count, inside, skip, likely, full, age, here, last_beat, last_keep, one, one_at, one_data, total, span);
        dff_setup!(self, clock, two, two_first, two_head, two_body, three, three_first, three_head, three_body, head_sum, body_sum, head_fold, body_fold);
        dff_setup!(self, clock, is_arp, call, shape, room);
        clock!(self, clock, rest);
        self.eth.x.next = self.words.q.val();
        self.arp_at.x.next = self.words.q.val();
        self.ip4.x.next = self.words.q.val();
        self.icmp.x.next = self.words.q.val();
        self.ones.next = bits::<8>(LANES);

        // Most frames are known not to be requests by their seventh beat.
        self.at.next = bits::<9>(0);
        if self.inside.q.val() {
            self.at.next = self.count.q.val();
        }
        self.likely_now.next = self.likely.q.val();
        if self.count.q.val() == BEATS {
            self.likely_now.next = (self.eth.y.val().ethertype == ethertype::ARP) | ((self.eth.y.val().ethertype == ethertype::IPV4) & (self.ip4.y.val().protocol == protocol::ICMP));
        }
        self.likely.d.next = self.likely_now.val();
        self.taken.next = self.valid.val() & !self.full.q.val() & !(self.inside.q.val() & self.skip.q.val());
        if self.valid.val() {
            self.inside.d.next = !self.last.val();
            if !self.inside.q.val() {
                self.skip.d.next = self.full.q.val();
            }
        }
        if self.taken.val() {
            if self.at.val() < BEATS {
                self.words.d.next = (self.words.q.val() >> 64) | (bit_cast::<384, 64>(self.data.val()) << 320);
            }
            if !self.at.val().get_bit(8) {
                self.count.d.next = self.at.val() + 1;
            }
            if !self.inside.q.val() {
                self.likely.d.next = false;
            }
            if self.last.val() & (self.at.val() > (BEATS - 1) as u64) & self.likely_now.val() & !self.err.val() {
                self.full.d.next = true;
                self.age.d.next = bits::<3>(0);
                self.last_beat.d.next = self.at.val();
                self.last_keep.d.next = self.keep.val();
            }
        }
        self.rest.write_addr.next = self.at.val().get_bits::<8>(0);
        self.rest.write_data.next = self.data.val();
        self.rest.write_en.next = self.taken.val() & !self.at.val().get_bit(8);
        self.rest.read_addr.next = self.read_addr.val();
        self.read_data.next = self.rest.read_data.val();

        // Bytes 14 to 33 are the IP header, what follows up to its length the ICMP message. (The sums are of little-endian halves, which does not
        // matter for all ones.)
        self.one.d.next = self.taken.val();
        self.one_at.d.next = self.at.val();
        self.one_data.d.next = self.data.val();
        if self.one.q.val() & (self.one_at.q.val() == LENGTH_BEAT) {
            self.total.d.next = (bit_cast::<16, 8>(self.one_data.q.val().get_bits::<8>(0)) << 8) | bit_cast::<16, 8>(self.one_data.q.val().get_bits::<8>(8));
        }
        self.span.d.next = bit_cast::<17, 16>(self.total.q.val()) + (wire::Eth::BYTES - 1) as u64;
        self.lane.next = self.span.q.val().get_bits::<3>(0);
        self.behind.next = !self.lane.val();
        self.end_beat.next = self.span.q.val().get_bits::<14>(3);
        self.present.next = bit_cast::<14, 9>(self.one_at.q.val());
        self.inner.next = bits::<8>(0);
        if self.present.val() < self.end_beat.val() {
            self.inner.next = self.ones.val();
        } else if self.present.val() == self.end_beat.val() {
            self.inner.next = self.ones.val() >> self.behind.val();
        }
        self.head_mask.keep.next = bits::<8>(0);
        self.body_mask.keep.next = self.inner.val();
        if self.one_at.q.val() == END_BEAT {
            self.head_mask.keep.next = bits::<8>(END_LANES);
            self.body_mask.keep.next = self.inner.val() & MESSAGE_LANES;
        } else if self.one_at.q.val() < END_BEAT {
            self.body_mask.keep.next = bits::<8>(0);
            if self.one_at.q.val() > START_BEAT {
                self.head_mask.keep.next = self.ones.val();
            } else if self.one_at.q.val() == START_BEAT {
                self.head_mask.keep.next = bits::<8>(START_LANES);
            }
        }
        self.two.d.next = self.one.q.val();
        self.two_first.d.next = !self.one_at.q.val().any();
        self.two_head.d.next = self.one_data.q.val() & self.head_mask.mask.val();
        self.two_body.d.next = self.one_data.q.val() & self.body_mask.mask.val();
        self.three.d.next = self.two.q.val();
        self.three_first.d.next = self.two_first.q.val();
        self.three_head.d.next = bit_cast::<18, 16>(self.two_head.q.val().get_bits::<16>(0))
            + bit_cast::<18, 16>(self.two_head.q.val().get_bits::<16>(16))
            + bit_cast::<18, 16>(self.two_head.q.val().get_bits::<16>(32))
            + bit_cast::<18, 16>(self.two_head.q.val().get_bits::<16>(48));
        self.three_body.d.next = bit_cast::<18, 16>(self.two_body.q.val().get_bits::<16>(0))
            + bit_cast::<18, 16>(self.two_body.q.val().get_bits::<16>(16))
            + bit_cast::<18, 16>(self.two_body.q.val().get_bits::<16>(32))
            + bit_cast::<18, 16>(self.two_body.q.val().get_bits::<16>(48));
        if self.three.q.val() {
            self.head_sum.d.next = self.head_sum.q.val() + bit_cast::<20, 18>(self.three_head.q.val());
            self.body_sum.d.next = self.body_sum.q.val() + bit_cast::<26, 18>(self.three_body.q.val());
            if self.three_first.q.val() {
                // Nothing of the first beat counts.
                self.head_sum.d.next = bits::<20>(0);
                self.body_sum.d.next = bits::<26>(0);
            }
        }
        self.head_fold.d.next = bit_cast::<17, 16>(self.head_sum.q.val().get_bits::<16>(0)) + bit_cast::<17, 4>(self.head_sum.q.val().get_bits::<4>(16));
        self.body_fold.d.next = bit_cast::<17, 16>(self.body_sum.q.val().get_bits::<16>(0)) + bit_cast::<17, 10>(self.body_sum.q.val().get_bits::<10>(16));

        // Verdicts. `call`: somebody asks us; `shape`: and as the standards say.
        self.flags.next = self.ip4.y.val().flags;
        self.source.next = self.ip4.y.val().src;
        self.from.next = self.eth.y.val().src;
        self.sha.next = self.arp_at.y.val().sha;
        self.is_arp.d.next = self.eth.y.val().ethertype == ethertype::ARP;
        if self.is_arp.q.val() {
            self.call.d.next = ((self.eth.y.val().dst == self.mac.val()) | self.eth.y.val().dst.all()) & (self.arp_at.y.val().oper == arp::REQUEST) & (self.arp_at.y.val().tpa == self.ip.val());
            self.shape.d.next = (self.arp_at.y.val().htype == arp::ETHERNET)
                & (self.arp_at.y.val().ptype == ethertype::IPV4)
                & (self.arp_at.y.val().hlen == arp::MAC_BYTES)
                & (self.arp_at.y.val().plen == arp::IP_BYTES)
                & !self.sha.val().get_bit(40);
        } else {
            self.call.d.next = (self.eth.y.val().dst == self.mac.val())
                & (self.ip4.y.val().dst == self.ip.val())
                & ((self.ip4.y.val().ihl != ip::WORDS) | (self.ip4.y.val().fragment != 0) | (self.icmp.y.val().kind == ECHO_REQUEST));
            self.shape.d.next = (self.ip4.y.val().version == ip::VERSION_4)
                & (self.ip4.y.val().ihl == ip::WORDS)
                & !self.flags.val().get_bit(0)
                & (self.ip4.y.val().fragment == 0)
                & (self.icmp.y.val().code == 0)
                & (self.ip4.y.val().total_length > (wire::Ipv4::BYTES + wire::IcmpEcho::BYTES - 1) as u64)
                & self.source.val().any()
                & (self.source.val().get_bits::<3>(29) != NO_HOST)
                & !self.from.val().get_bit(40);
        }
        self.seen.next = bit_cast::<14, 9>(self.last_beat.q.val());
        self.at_end.next = self.last_keep.q.val() >> self.lane.val();
        self.room.d.next = ((self.end_beat.val() < self.seen.val()) | ((self.end_beat.val() == self.seen.val()) & self.at_end.val().get_bit(0))) & !self.last_beat.q.val().get_bit(8);
        self.summed.next = (self.head_fold.q.val() == ip::RIGHT_SUM) & (self.body_fold.q.val() == ip::RIGHT_SUM) & self.room.q.val();
        self.malformed.next = false;
        if self.full.q.val() & !self.here.q.val() {
            self.age.d.next = self.age.q.val() + 1;
            if (self.age.q.val() == ADDRESSES) & !self.call.q.val() {
                self.full.d.next = false;
            }
            if self.age.q.val() == JUDGED {
                if self.shape.q.val() & (self.is_arp.q.val() | self.summed.val()) {
                    self.here.d.next = true;
                } else {
                    self.malformed.next = true;
                    self.full.d.next = false;
                }
            }
        }
        self.some.next = self.here.q.val();
        self.arp.next = self.is_arp.q.val();
        self.head.next = self.words.q.val();
        self.stop_at.next = self.span.q.val().get_bits::<11>(0);
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
