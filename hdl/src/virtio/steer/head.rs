//! A frame's headers, 16 bits in each cycle. See README.md.

use crate::bus::{AxisSink, MsgSrc};
use crate::codes::ip;
use crate::msg::VsHead;
use crate::prim::keep_mask::KeepLen;
use crate::prim::xor_matrix::XorMatrix;
use ferric_abi::wire::{ethertype, protocol};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Ethernet types: a VLAN tag, IPv4, IPv6.
const TAG: u64 = ethertype::VLAN as u64;
const IPV4: u64 = ethertype::IPV4 as u64;
const IPV6: u64 = ethertype::IPV6 as u64;
/// Protocols that have ports.
const TCP: u64 = protocol::TCP as u64;
const UDP: u64 = protocol::UDP as u64;
/// Words that a beat still has when its last one is looked at.
const LAST_WORD: u64 = 1;
/// Words of both MAC addresses, and of the first.
const MACS: u64 = 6;
const MAC: u64 = 3;
/// Of IPv4's header in words of 16 bits: more fragments, or a fragment's offset; the protocol; the first of the addresses, of the second, behind both. The shortest header, in units of 4 bytes.
const V4_FRAGMENT: u64 = 3;
const V4_PROTOCOL: u64 = 4;
const V4_SOURCE: u64 = 6;
const V4_TARGET: u64 = 8;
const V4_OPTIONS: u64 = 10;
const V4_SHORTEST: u64 = 5;
const FRAGMENT_BITS: u64 = 0x3fff;
/// Of IPv6's header.
const V6_NEXT: u64 = 3;
const V6_SOURCE: u64 = 4;
const V6_TARGET: u64 = 12;
const V6_WORDS: u64 = 20;

/// A step of CRC-16 (CCITT) by a word, the CRC in the low bits of `x` and the word above: linear in both.
fn crc_step(x: u64) -> u128 {
    const GENERATOR: u64 = 0x1021;
    let crc = (0..16).fold((x ^ x >> 16) & 0xffff, |crc, _| if crc & 0x8000 != 0 { crc << 1 & 0xffff ^ GENERATOR } else { crc << 1 });
    crc.into()
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Part {
    Macs,
    Ether,
    Tag,
    Inner,
    Ip,
    Ports,
    Mix,
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
    pub m: MsgSrc<VsHead>,
    /// The destination is known, from here on until `over`; `mac` is `VsHead::mac`.
    pub known: Signal<Out, Bit>,
    pub mac: Signal<Out, Bits<48>>,
    /// A word of the addresses or ports, in their order; `paired`: the last of the addresses. The last is here a cycle before `m.valid` at the latest.
    pub feeds: Signal<Out, Bit>,
    pub feed: Signal<Out, Bits<16>>,
    pub paired: Signal<Out, Bit>,
    /// Pulse: the frame's last beat has been taken, and what it said, too.
    pub over: Signal<Out, Bit>,
    part: DFF<Part>,
    /// A beat, how many whole words of it are left, whether it is the last.
    beat: DFF<Bits<W>>,
    words: DFF<Bits<8>>,
    ends: DFF<Bit>,
    has: DFF<Bit>,
    /// Words of this part so far.
    at: DFF<Bits<6>>,
    found: DFF<VsHead>,
    is_known: DFF<Bit>,
    /// It is IPv6; the words of its header; fragment; protocol; source port.
    six: DFF<Bit>,
    length: DFF<Bits<6>>,
    fragment: DFF<Bit>,
    protocol: DFF<Bits<8>>,
    port: DFF<Bits<16>>,
    /// CRCs of both ends.
    source: DFF<Bits<16>>,
    target: DFF<Bits<16>>,
    feeds_now: DFF<Bit>,
    feed_word: DFF<Bits<16>>,
    paired_now: DFF<Bit>,
    len: KeepLen<K, 8>,
    #[init(XorMatrix::of(|j| crc_step(1 << j)))]
    step: XorMatrix<32, 16>,
    takes: Signal<Local, Bit>,
    live: Signal<Local, Bit>,
    dry: Signal<Local, Bit>,
    word: Signal<Local, Bits<16>>,
    kind: Signal<Local, Bits<16>>,
    of_source: Signal<Local, Bit>,
    of_target: Signal<Local, Bit>,
    last_address: Signal<Local, Bit>,
    last_word: Signal<Local, Bit>,
    next_at: Signal<Local, Bits<6>>,
    units: Signal<Local, Bits<4>>,
    version: Signal<Local, Bits<4>>,
    crc: Signal<Local, Bits<16>>,
    stepped: Signal<Local, Bits<16>>,
    sum: Signal<Local, Bits<16>>,
    with_ports: Signal<Local, Bit>,
    finishes: Signal<Local, Bit>,
    bits_left: Signal<Local, Bits<16>>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Head<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, part, beat, words, ends, has, at, found, is_known, six, length, fragment, protocol, port, source, target, feeds_now, feed_word, paired_now);
        // A beat.
        self.s.ready.next = !self.has.q.val();
        self.takes.next = self.s.valid.val() & !self.has.q.val();
        self.len.keep.next = self.s.keep.val();
        self.live.next = self.has.q.val() & self.words.q.val().any();
        self.dry.next = self.has.q.val() & !self.words.q.val().any();
        self.word.next = (bit_cast::<16, 8>(self.beat.q.val().get_bits::<8>(0)) << 8) | bit_cast::<16, 8>(self.beat.q.val().get_bits::<8>(8));
        self.finishes.next = false;
        if self.part.q.val() == Part::Skip {
            self.finishes.next = (self.has.q.val() & self.ends.q.val()) | (self.takes.val() & self.s.last.val());
            self.has.d.next = false;
        } else if self.takes.val() {
            self.beat.d.next = self.s.data.val();
            self.words.d.next = self.len.len.val() >> 1;
            self.ends.d.next = self.s.last.val();
            self.has.d.next = true;
        } else if self.live.val() & (self.part.q.val() != Part::Mix) & (self.part.q.val() != Part::Give) {
            self.beat.d.next = self.beat.q.val() >> 16;
            self.words.d.next = self.words.q.val() - 1;
            if (self.words.q.val() == LAST_WORD) & !self.ends.q.val() {
                self.has.d.next = false;
            }
        }
        self.over.next = self.finishes.val();

        // What a word is.
        self.next_at.next = self.at.q.val() + 1;
        self.version.next = self.word.val().get_bits::<4>(12);
        self.units.next = self.word.val().get_bits::<4>(8);
        self.bits_left.next = self.word.val() & FRAGMENT_BITS;
        self.of_source.next = (self.at.q.val() >= V4_SOURCE) & (self.at.q.val() < V4_TARGET);
        self.of_target.next = (self.at.q.val() >= V4_TARGET) & (self.at.q.val() < V4_OPTIONS);
        if self.six.q.val() {
            self.of_source.next = (self.at.q.val() >= V6_SOURCE) & (self.at.q.val() < V6_TARGET);
            self.of_target.next = self.at.q.val() >= V6_TARGET;
        }
        self.last_address.next = (self.six.q.val() & (self.next_at.val() == V6_WORDS)) | (!self.six.q.val() & (self.next_at.val() == V4_OPTIONS));
        self.last_word.next = self.next_at.val() == self.length.q.val();
        self.with_ports.next = !self.fragment.q.val() & ((self.protocol.q.val() == TCP) | (self.protocol.q.val() == UDP));
        self.kind.next = self.word.val();

        // CRCs: of an end's words in their order, its port last; the source's port waits until the target's is known to be there.
        self.crc.next = self.source.q.val();
        if ((self.part.q.val() == Part::Ip) & self.of_target.val()) | (self.part.q.val() == Part::Ports) {
            self.crc.next = self.target.q.val();
        }
        self.step.x.next = bit_cast::<32, 16>(self.crc.val()) | (bit_cast::<32, 16>(self.word.val()) << 16);
        if self.part.q.val() == Part::Mix {
            self.step.x.next = bit_cast::<32, 16>(self.crc.val()) | (bit_cast::<32, 16>(self.port.q.val()) << 16);
        }
        self.stepped.next = self.step.y.val();
        self.sum.next = self.source.q.val() + self.target.q.val() + bit_cast::<16, 8>(self.protocol.q.val());
        self.feeds_now.d.next = self.live.val() & (((self.part.q.val() == Part::Ip) & (self.of_source.val() | self.of_target.val())) | (self.part.q.val() == Part::Ports));
        self.feed_word.d.next = self.word.val();
        self.paired_now.d.next = (self.part.q.val() == Part::Ip) & self.last_address.val();

        match self.part.q.val() {
            Part::Macs => {
                if self.live.val() {
                    if self.at.q.val() < MAC {
                        self.found.d.next.mac = (self.found.q.val().mac << 16) | bit_cast::<48, 16>(self.word.val());
                    }
                    self.is_known.d.next = self.next_at.val() >= MAC;
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
                    self.found.d.next.whole = true;
                    self.six.d.next = self.kind.val() == IPV6;
                    self.part.d.next = Part::Give;
                    if self.kind.val() == TAG {
                        self.part.d.next = Part::Tag;
                    } else if (self.kind.val() == IPV4) | (self.kind.val() == IPV6) {
                        self.part.d.next = Part::Ip;
                    }
                } else if self.dry.val() {
                    self.part.d.next = Part::Give;
                }
            }
            Part::Tag => {
                if self.live.val() {
                    self.found.d.next.tag = true;
                    self.found.d.next.vlan = self.word.val().get_bits::<12>(0);
                    self.part.d.next = Part::Inner;
                } else if self.dry.val() {
                    self.part.d.next = Part::Give;
                }
            }
            Part::Inner => {
                if self.live.val() {
                    self.six.d.next = self.kind.val() == IPV6;
                    self.part.d.next = Part::Give;
                    if (self.kind.val() == IPV4) | (self.kind.val() == IPV6) {
                        self.part.d.next = Part::Ip;
                    }
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
                    if (self.at.q.val() == V4_FRAGMENT) & !self.six.q.val() {
                        self.fragment.d.next = self.bits_left.val().any();
                    }
                    if (self.at.q.val() == V4_PROTOCOL) & !self.six.q.val() {
                        self.protocol.d.next = self.word.val().get_bits::<8>(0);
                    }
                    if (self.at.q.val() == V6_NEXT) & self.six.q.val() {
                        self.protocol.d.next = self.word.val().get_bits::<8>(8);
                    }
                    if self.of_source.val() {
                        self.source.d.next = self.stepped.val();
                    }
                    if self.of_target.val() {
                        self.target.d.next = self.stepped.val();
                    }
                    if self.last_address.val() {
                        self.found.d.next.v4 = !self.six.q.val();
                        self.found.d.next.v6 = self.six.q.val();
                    }
                    if self.last_word.val() & self.at.q.val().any() {
                        self.at.d.next = bits::<6>(0);
                        self.part.d.next = Part::Give;
                        if self.with_ports.val() {
                            self.part.d.next = Part::Ports;
                        }
                    }
                } else if self.dry.val() {
                    self.part.d.next = Part::Give;
                }
            }
            Part::Ports => {
                if self.live.val() {
                    self.at.d.next = self.next_at.val();
                    self.port.d.next = self.word.val();
                    if self.at.q.val().any() {
                        self.port.d.next = self.port.q.val();
                        self.target.d.next = self.stepped.val();
                        self.found.d.next.ports = true;
                        self.found.d.next.tcp = self.protocol.q.val() == TCP;
                        self.part.d.next = Part::Mix;
                    }
                } else if self.dry.val() {
                    self.part.d.next = Part::Give;
                }
            }
            Part::Mix => {
                self.source.d.next = self.stepped.val();
                self.part.d.next = Part::Give;
            }
            Part::Give => {
                if self.m.ready.val() {
                    self.part.d.next = Part::Skip;
                }
            }
            Part::Skip => {
                if self.finishes.val() {
                    self.part.d.next = Part::Macs;
                    self.at.d.next = bits::<6>(0);
                    self.is_known.d.next = false;
                    self.found.d.next.whole = false;
                    self.found.d.next.tag = false;
                    self.found.d.next.v4 = false;
                    self.found.d.next.v6 = false;
                    self.found.d.next.ports = false;
                    self.fragment.d.next = false;
                    self.source.d.next = bits::<16>(0);
                    self.target.d.next = bits::<16>(0);
                }
            }
            _ => {
                self.part.d.next = Part::Skip;
            }
        }
        self.m.valid.next = self.part.q.val() == Part::Give;
        self.m.data.next = self.found.q.val();
        self.m.data.next.place = self.sum.val().get_bits::<10>(0);
        self.known.next = self.is_known.q.val();
        self.mac.next = self.found.q.val().mac;
        self.feeds.next = self.feeds_now.q.val();
        self.feed.next = self.feed_word.q.val();
        self.paired.next = self.paired_now.q.val();
        if self.reset.val() {
            self.part.d.next = Part::Macs;
            self.has.d.next = false;
            self.at.d.next = bits::<6>(0);
            self.is_known.d.next = false;
            self.found.d.next.whole = false;
            self.found.d.next.tag = false;
            self.found.d.next.v4 = false;
            self.found.d.next.v6 = false;
            self.found.d.next.ports = false;
            self.fragment.d.next = false;
            self.source.d.next = bits::<16>(0);
            self.target.d.next = bits::<16>(0);
            self.feeds_now.d.next = false;
        }
    }
}
