//! A received frame's headers, 16 bits in each cycle, as far as its checksums want them. See README.md.

use crate::bus::{AxisSink, MsgSrc};
use crate::codes::ip;
use crate::msg::L4Packet;
use crate::prim::keep_mask::KeepLen;
use ferric_abi::wire::{ethertype, protocol};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Ethernet types: a VLAN tag, a service provider's (IEEE 802.1ad), IPv4, IPv6.
const TAG: u64 = ethertype::VLAN as u64;
const SERVICE_TAG: u64 = ethertype::SERVICE_VLAN as u64;
const IPV4: u64 = ethertype::IPV4 as u64;
const IPV6: u64 = ethertype::IPV6 as u64;
const TCP: u64 = protocol::TCP as u64;
const UDP: u64 = protocol::UDP as u64;
/// Tags at most.
const TAGS: u64 = 2;
/// Words of both MAC addresses.
const MACS: u64 = 6;
/// Of IPv4's header in words of 16 bits: its length with what follows; more fragments, or a fragment's offset; the protocol; the first of the addresses, behind them. The shortest header, in units of 4 bytes.
const V4_TOTAL: u64 = 1;
const V4_FRAGMENT: u64 = 3;
const V4_PROTOCOL: u64 = 4;
const V4_ADDRESSES: u64 = 6;
const V4_OPTIONS: u64 = 10;
const V4_SHORTEST: u64 = 5;
const FRAGMENT_BITS: u64 = 0x3fff;
/// Of IPv6's header.
const V6_LENGTH: u64 = 2;
const V6_NEXT: u64 = 3;
const V6_ADDRESSES: u64 = 4;
const V6_WORDS: u64 = 20;
/// Of UDP's header: its length, its checksum. TCP's checksum ends with byte 18.
const UDP_LENGTH: u64 = 2;
const UDP_SUM: u64 = 3;
const UDP_SHORTEST: u64 = 8;
const TCP_SHORTEST: u64 = 18;
/// A sum of which all is right, in 16 bits, and with a carry that has still to be added.
const RIGHT: u64 = 0xffff;
const RIGHT_WITH_CARRY: u64 = 0x1_fffe;
/// Words that a beat still has when its last one is looked at.
const LAST_WORD: u64 = 1;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Part {
    Macs,
    Ether,
    Tag,
    Ip,
    Size,
    Weigh,
    Udp,
    Give,
    Skip,
}

/// `s` takes a frame's beats; what they say is on `m` once as much as counts has come, or the frame has ended, and the rest is passed over when that has been taken.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K, "K must be W / 8")]
pub struct Head<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not in the middle of a frame.
    pub reset: Signal<In, Bit>,
    pub s: AxisSink<W, K>,
    pub m: MsgSrc<L4Packet>,
    part: DFF<Part>,
    /// A beat, how many whole words of it are left, whether it is the last.
    beat: DFF<Bits<W>>,
    words: DFF<Bits<8>>,
    ends: DFF<Bit>,
    has: DFF<Bit>,
    /// Words of this part so far, and of the frame.
    at: DFF<Bits<6>>,
    place: DFF<Bits<7>>,
    tags: DFF<Bits<2>>,
    /// It is IPv6; the words of its header; fragment; protocol; the length that the header says.
    six: DFF<Bit>,
    length: DFF<Bits<6>>,
    fragment: DFF<Bit>,
    protocol: DFF<Bits<8>>,
    total: DFF<Bits<16>>,
    /// Bytes behind the IP header, and where they begin in the frame.
    body: DFF<Bits<17>>,
    from: DFF<Bits<8>>,
    /// The transport header is one whose checksum may count.
    good: DFF<Bit>,
    /// Sums with a carry that has still to be added: of IPv4's header; of the addresses and what else goes into the pseudo header, its bytes in the order of the lanes.
    header: DFF<Bits<17>>,
    pseudo: DFF<Bits<17>>,
    len: KeepLen<K, 8>,
    takes: Signal<Local, Bit>,
    live: Signal<Local, Bit>,
    dry: Signal<Local, Bit>,
    uses: Signal<Local, Bit>,
    word: Signal<Local, Bits<16>>,
    swapped: Signal<Local, Bits<16>>,
    next_at: Signal<Local, Bits<6>>,
    version: Signal<Local, Bits<4>>,
    units: Signal<Local, Bits<4>>,
    bits_left: Signal<Local, Bits<16>>,
    is_address: Signal<Local, Bit>,
    last_word: Signal<Local, Bit>,
    adds: Signal<Local, Bits<16>>,
    size: Signal<Local, Bits<16>>,
    behind: Signal<Local, Bits<17>>,
    is_right: Signal<Local, Bit>,
    is_tcp: Signal<Local, Bit>,
    is_udp: Signal<Local, Bit>,
    finishes: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Head<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, part, beat, words, ends, has, at, place, tags, six, length, fragment, protocol, total, body, from, good, header, pseudo);
        // A beat.
        self.s.ready.next = !self.has.q.val();
        self.takes.next = self.s.valid.val() & !self.has.q.val();
        self.len.keep.next = self.s.keep.val();
        self.live.next = self.has.q.val() & self.words.q.val().any();
        self.dry.next = self.has.q.val() & !self.words.q.val().any();
        self.uses.next = (self.part.q.val() != Part::Size) & (self.part.q.val() != Part::Weigh) & (self.part.q.val() != Part::Give);
        self.word.next = (bit_cast::<16, 8>(self.beat.q.val().get_bits::<8>(0)) << 8) | bit_cast::<16, 8>(self.beat.q.val().get_bits::<8>(8));
        self.swapped.next = self.beat.q.val().get_bits::<16>(0);
        self.finishes.next = false;
        if self.part.q.val() == Part::Skip {
            self.finishes.next = (self.has.q.val() & self.ends.q.val()) | (self.takes.val() & self.s.last.val());
            self.has.d.next = false;
        } else if self.takes.val() {
            self.beat.d.next = self.s.data.val();
            self.words.d.next = self.len.len.val() >> 1;
            self.ends.d.next = self.s.last.val();
            self.has.d.next = true;
        } else if self.live.val() & self.uses.val() {
            self.beat.d.next = self.beat.q.val() >> 16;
            self.words.d.next = self.words.q.val() - 1;
            self.place.d.next = self.place.q.val() + 1;
            if (self.words.q.val() == LAST_WORD) & !self.ends.q.val() {
                self.has.d.next = false;
            }
        }

        // What a word is.
        self.next_at.next = self.at.q.val() + 1;
        self.version.next = self.word.val().get_bits::<4>(12);
        self.units.next = self.word.val().get_bits::<4>(8);
        self.bits_left.next = self.word.val() & FRAGMENT_BITS;
        self.is_address.next = (self.at.q.val() >= V4_ADDRESSES) & (self.at.q.val() < V4_OPTIONS);
        if self.six.q.val() {
            self.is_address.next = self.at.q.val() >= V6_ADDRESSES;
        }
        self.last_word.next = self.next_at.val() == self.length.q.val();
        self.is_tcp.next = self.protocol.q.val() == TCP;
        self.is_udp.next = self.protocol.q.val() == UDP;
        self.is_right.next = self.six.q.val() | (self.header.q.val() == RIGHT) | (self.header.q.val() == RIGHT_WITH_CARRY);

        // Addresses, then the protocol, then the length.
        self.size.next = self.body.q.val().get_bits::<16>(0);
        self.adds.next = self.swapped.val();
        if self.part.q.val() == Part::Size {
            self.adds.next = bit_cast::<16, 8>(self.protocol.q.val()) << 8;
        }
        if self.part.q.val() == Part::Weigh {
            self.adds.next = (self.size.val() << 8) | (self.size.val() >> 8);
        }
        if ((self.part.q.val() == Part::Ip) & self.live.val() & self.is_address.val()) | (self.part.q.val() == Part::Size) | (self.part.q.val() == Part::Weigh) {
            self.pseudo.d.next = bit_cast::<17, 16>(self.pseudo.q.val().get_bits::<16>(0)) + bit_cast::<17, 16>(self.adds.val()) + bit_cast::<17, 1>(self.pseudo.q.val().get_bits::<1>(16));
        }
        if (self.part.q.val() == Part::Ip) & self.live.val() {
            self.header.d.next = bit_cast::<17, 16>(self.header.q.val().get_bits::<16>(0)) + bit_cast::<17, 16>(self.word.val()) + bit_cast::<17, 1>(self.header.q.val().get_bits::<1>(16));
        }
        self.behind.next = bit_cast::<17, 16>(self.total.q.val());
        if !self.six.q.val() {
            self.behind.next = bit_cast::<17, 16>(self.total.q.val()) - (bit_cast::<17, 6>(self.length.q.val()) << 1);
        }

        match self.part.q.val() {
            Part::Macs => {
                if self.live.val() {
                    self.at.d.next = self.next_at.val();
                    if self.next_at.val() == MACS {
                        self.part.d.next = Part::Ether;
                    }
                } else if self.dry.val() {
                    self.part.d.next = Part::Give;
                }
            }
            Part::Ether => {
                self.at.d.next = bits::<6>(0);
                if self.live.val() {
                    self.six.d.next = self.word.val() == IPV6;
                    self.part.d.next = Part::Give;
                    if ((self.word.val() == TAG) | (self.word.val() == SERVICE_TAG)) & (self.tags.q.val() != TAGS) {
                        self.part.d.next = Part::Tag;
                    } else if (self.word.val() == IPV4) | (self.word.val() == IPV6) {
                        self.part.d.next = Part::Ip;
                    }
                } else if self.dry.val() {
                    self.part.d.next = Part::Give;
                }
            }
            Part::Tag => {
                if self.live.val() {
                    self.tags.d.next = self.tags.q.val() + 1;
                    self.part.d.next = Part::Ether;
                } else if self.dry.val() {
                    self.part.d.next = Part::Give;
                }
            }
            Part::Ip => {
                if self.live.val() {
                    self.at.d.next = self.next_at.val();
                    if !self.at.q.val().any() {
                        self.length.d.next = bits::<6>(V6_WORDS);
                        if !self.six.q.val() {
                            self.length.d.next = bit_cast::<6, 4>(self.units.val()) << 1;
                        }
                        if (self.six.q.val() & (self.version.val() != ip::VERSION_6)) | (!self.six.q.val() & ((self.version.val() != ip::VERSION_4) | (self.units.val() < V4_SHORTEST))) {
                            self.part.d.next = Part::Give;
                        }
                    }
                    if ((self.at.q.val() == V4_TOTAL) & !self.six.q.val()) | ((self.at.q.val() == V6_LENGTH) & self.six.q.val()) {
                        self.total.d.next = self.word.val();
                    }
                    if (self.at.q.val() == V4_FRAGMENT) & !self.six.q.val() {
                        self.fragment.d.next = self.bits_left.val().any();
                    }
                    if (self.at.q.val() == V4_PROTOCOL) & !self.six.q.val() {
                        self.protocol.d.next = self.word.val().get_bits::<8>(0);
                    }
                    if (self.at.q.val() == V6_NEXT) & self.six.q.val() {
                        self.protocol.d.next = self.word.val().get_bits::<8>(8);
                    }
                    if self.last_word.val() & self.at.q.val().any() {
                        self.at.d.next = bits::<6>(0);
                        self.part.d.next = Part::Size;
                    }
                } else if self.dry.val() {
                    self.part.d.next = Part::Give;
                }
            }
            Part::Size => {
                self.body.d.next = self.behind.val();
                self.from.d.next = bit_cast::<8, 7>(self.place.q.val()) << 1;
                self.part.d.next = Part::Weigh;
            }
            // What lies behind an IPv4 header that is longer than its packet is negative: its uppermost bit says so.
            Part::Weigh => {
                self.good.d.next = self.is_right.val() & !self.fragment.q.val() & self.is_tcp.val() & !self.body.q.val().get_bit(16) & (self.size.val() >= TCP_SHORTEST);
                self.part.d.next = Part::Give;
                if self.is_udp.val() & self.is_right.val() & !self.fragment.q.val() & !self.body.q.val().get_bit(16) & (self.size.val() >= UDP_SHORTEST) {
                    self.part.d.next = Part::Udp;
                }
            }
            Part::Udp => {
                if self.live.val() {
                    self.at.d.next = self.next_at.val();
                    if (self.at.q.val() == UDP_LENGTH) & (self.word.val() != self.size.val()) {
                        self.part.d.next = Part::Give;
                    }
                    if self.at.q.val() == UDP_SUM {
                        self.good.d.next = self.word.val().any();
                        self.part.d.next = Part::Give;
                    }
                } else if self.dry.val() {
                    self.part.d.next = Part::Give;
                }
            }
            Part::Give => {
                if self.m.ready.val() {
                    self.part.d.next = Part::Skip;
                }
            }
            Part::Skip => {
                if self.finishes.val() {
                    self.part.d.next = Part::Macs;
                }
            }
            _ => {
                self.part.d.next = Part::Skip;
            }
        }
        self.m.valid.next = self.part.q.val() == Part::Give;
        self.m.data.next.checks = self.good.q.val();
        self.m.data.next.start = self.from.q.val();
        self.m.data.next.size = self.size.val();
        self.m.data.next.seed = self.pseudo.q.val();
        if ((self.part.q.val() == Part::Skip) & self.finishes.val()) | self.reset.val() {
            self.at.d.next = bits::<6>(0);
            self.place.d.next = bits::<7>(0);
            self.tags.d.next = bits::<2>(0);
            self.fragment.d.next = false;
            self.good.d.next = false;
            self.header.d.next = bits::<17>(0);
            self.pseudo.d.next = bits::<17>(0);
        }
        if self.reset.val() {
            self.part.d.next = Part::Macs;
            self.has.d.next = false;
        }
    }
}
