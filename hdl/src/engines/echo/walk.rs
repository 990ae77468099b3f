//! Goes through the bytes of a message: checksums, and the options of neighbour discovery. One 16-bit word a cycle.

use super::fetch::PIECE_BITS;
use crate::codes::{icmp6, ip::RIGHT_SUM};
use ferric_abi::wire::{self, protocol};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Place of a word is counted so that the message, behind the IP header, begins here: no place in front of it is negative.
const MESSAGE: u64 = 64;
/// Places of a frame's first byte, by version and tag.
const FIRST_4: u64 = MESSAGE - (wire::Eth::BYTES + wire::Ipv4::BYTES) as u64;
const FIRST_6: u64 = MESSAGE - (wire::Eth::BYTES + wire::Ipv6::BYTES) as u64;
const TAG: u64 = wire::Vlan::BYTES as u64;
/// Place of an IPv4 header.
const HEADER_4: u64 = MESSAGE - wire::Ipv4::BYTES as u64;
/// Place of the options behind a message of neighbour discovery.
const OPTIONS: u64 = MESSAGE + 24;
/// Bytes of a word.
const WORD: u64 = 2;
/// Length of an option with a MAC address, in 8 bytes.
const MAC_OPTION: u64 = 1;
/// Last of a piece's words.
const LAST_WORD: u64 = PIECE_BITS as u64 / 16 - 1;
const ICMPV6: u64 = protocol::ICMPV6 as u64;
/// Cycles from the last word to the verdict.
const SETTLED: u64 = 4;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// The next piece is wanted.
    Await,
    /// Its words are added.
    Words,
    /// The last sums are folded.
    Settle,
}

/// What a word is.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Word {
    value: Bits<16>,
    header: Bit,
    body: Bit,
    /// First word of eight bytes of options, or another.
    option: Bit,
    rest: Bit,
}

/// Asks for the frame's pieces from the first on.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Walk {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    /// Begins; what follows stays until `done`.
    pub start: Signal<In, Bit>,
    pub has_tag: Signal<In, Bit>,
    pub ipv6: Signal<In, Bit>,
    /// Of neighbour discovery.
    pub discovery: Signal<In, Bit>,
    /// Bytes behind the IP header.
    pub length: Signal<In, Bits<14>>,
    pub need: Signal<Out, Bit>,
    pub index: Signal<Out, Bits<7>>,
    pub came: Signal<In, Bit>,
    pub piece: Signal<In, Bits<PIECE_BITS>>,
    /// For one cycle, with the verdict.
    pub done: Signal<Out, Bit>,
    /// Checksums and options are right.
    pub right: Signal<Out, Bit>,
    /// There is a source link-layer address; there is one of the target, `mac`, that is a station's.
    pub source: Signal<Out, Bit>,
    pub target: Signal<Out, Bit>,
    pub mac: Signal<Out, Bits<48>>,
    state: DFF<State>,
    number: DFF<Bits<7>>,
    words: DFF<Bits<PIECE_BITS>>,
    left: DFF<Bits<5>>,
    at: DFF<Bits<14>>,
    stop: DFF<Bits<14>>,
    age: DFF<Bits<3>>,
    // First stage: what the word is. Second: sums, options.
    word: DFF<Word>,
    header_sum: DFF<Bits<20>>,
    body_sum: DFF<Bits<28>>,
    header_fold: DFF<Bits<17>>,
    body_fold: DFF<Bits<17>>,
    header_right: DFF<Bit>,
    body_right: DFF<Bit>,
    /// Eights of bytes still to come of the option at hand.
    more: DFF<Bits<8>>,
    taking: DFF<Bit>,
    bad: DFF<Bit>,
    source_seen: DFF<Bit>,
    target_seen: DFF<Bit>,
    found: DFF<Bits<48>>,
    value: Signal<Local, Bits<16>>,
    ends: Signal<Local, Bits<14>>,
    after: Signal<Local, Bits<14>>,
    inside: Signal<Local, Bit>,
    message: Signal<Local, Bit>,
    options: Signal<Local, Bit>,
    option_kind: Signal<Local, Bits<8>>,
    option_len: Signal<Local, Bits<8>>,
    header_total: Signal<Local, Bits<17>>,
    body_total: Signal<Local, Bits<17>>,
}

#[kernel]
impl Logic for Walk {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, number, words, left, at, stop, age, word, header_sum, body_sum, header_fold, body_fold, header_right, body_right);
        dff_setup!(self, clock, more, taking, bad, source_seen, target_seen, found);
        self.need.next = self.state.q.val() == State::Await;
        self.index.next = self.number.q.val();

        // The word at hand, first byte on the wire high. The byte behind an odd message is none of it.
        self.ends.next = self.at.q.val() + 1;
        self.after.next = self.at.q.val() + WORD;
        self.value.next = (bit_cast::<16, 8>(self.words.q.val().get_bits::<8>(0)) << 8) | bit_cast::<16, 8>(self.words.q.val().get_bits::<8>(8));
        self.inside.next = self.state.q.val() == State::Words;
        self.message.next = self.at.q.val().get_bits::<8>(6).any();
        self.options.next = self.discovery.val() & (self.at.q.val() >= OPTIONS);
        self.word.d.next.value = self.value.val();
        if self.ends.val() == self.stop.q.val() {
            self.word.d.next.value = bit_cast::<16, 8>(self.words.q.val().get_bits::<8>(0)) << 8;
        }
        self.word.d.next.header = self.inside.val() & !self.ipv6.val() & !self.message.val() & (self.at.q.val() >= HEADER_4);
        // Of IPv6 the addresses belong to it, 32 bytes (RFC 8200, 8.1).
        self.word.d.next.body = self.inside.val() & (self.message.val() | (self.ipv6.val() & self.at.q.val().get_bit(5)));
        self.word.d.next.option = self.inside.val() & self.options.val() & !self.at.q.val().get_bits::<3>(0).any();
        self.word.d.next.rest = self.inside.val() & self.options.val() & self.at.q.val().get_bits::<3>(0).any();

        if self.word.q.val().header {
            self.header_sum.d.next = self.header_sum.q.val() + bit_cast::<20, 16>(self.word.q.val().value);
        }
        if self.word.q.val().body {
            self.body_sum.d.next = self.body_sum.q.val() + bit_cast::<28, 16>(self.word.q.val().value);
        }
        self.header_fold.d.next = bit_cast::<17, 16>(self.header_sum.q.val().get_bits::<16>(0)) + bit_cast::<17, 4>(self.header_sum.q.val().get_bits::<4>(16));
        self.body_fold.d.next = bit_cast::<17, 16>(self.body_sum.q.val().get_bits::<16>(0)) + bit_cast::<17, 12>(self.body_sum.q.val().get_bits::<12>(16));
        self.header_total.next = bit_cast::<17, 16>(self.header_fold.q.val().get_bits::<16>(0)) + bit_cast::<17, 1>(self.header_fold.q.val().get_bits::<1>(16));
        self.body_total.next = bit_cast::<17, 16>(self.body_fold.q.val().get_bits::<16>(0)) + bit_cast::<17, 1>(self.body_fold.q.val().get_bits::<1>(16));
        self.header_right.d.next = self.ipv6.val() | (self.header_total.val().get_bits::<16>(0) == RIGHT_SUM);
        self.body_right.d.next = self.body_total.val().get_bits::<16>(0) == RIGHT_SUM;

        // Options: type, eights of bytes, contents.
        self.option_kind.next = self.word.q.val().value.get_bits::<8>(8);
        self.option_len.next = self.word.q.val().value.get_bits::<8>(0);
        if self.word.q.val().option {
            self.taking.d.next = false;
            if self.more.q.val().any() {
                self.more.d.next = self.more.q.val() - 1;
            } else if self.option_len.val().any() {
                self.more.d.next = self.option_len.val() - 1;
                if self.option_kind.val() == icmp6::SOURCE {
                    self.source_seen.d.next = true;
                }
                if (self.option_kind.val() == icmp6::TARGET) & (self.option_len.val() == MAC_OPTION) {
                    self.taking.d.next = true;
                    self.target_seen.d.next = true;
                }
            } else {
                self.bad.d.next = true;
            }
        }
        if self.word.q.val().rest & self.taking.q.val() {
            self.found.d.next = (self.found.q.val() << 16) | bit_cast::<48, 16>(self.word.q.val().value);
        }
        self.right.next = self.header_right.q.val() & self.body_right.q.val() & !self.bad.q.val() & !self.more.q.val().any();
        self.source.next = self.source_seen.q.val();
        self.target.next = self.target_seen.q.val() & self.found.q.val().any() & !self.found.q.val().get_bit(40);
        self.mac.next = self.found.q.val();

        self.done.next = false;
        match self.state.q.val() {
            State::Idle => {
                self.number.d.next = bits::<7>(0);
                self.age.d.next = bits::<3>(0);
                if self.start.val() {
                    self.state.d.next = State::Await;
                    self.stop.d.next = self.length.val() + MESSAGE;
                    self.header_sum.d.next = bits::<20>(0);
                    self.body_sum.d.next = bits::<28>(0);
                    self.at.d.next = bits::<14>(FIRST_4);
                    if self.has_tag.val() {
                        self.at.d.next = bits::<14>(FIRST_4 - TAG);
                    }
                    if self.ipv6.val() {
                        self.body_sum.d.next = bit_cast::<28, 14>(self.length.val()) + ICMPV6;
                        self.at.d.next = bits::<14>(FIRST_6);
                        if self.has_tag.val() {
                            self.at.d.next = bits::<14>(FIRST_6 - TAG);
                        }
                    }
                    self.more.d.next = bits::<8>(0);
                    self.taking.d.next = false;
                    self.bad.d.next = false;
                    self.source_seen.d.next = false;
                    self.target_seen.d.next = false;
                }
            }
            State::Await => {
                self.words.d.next = self.piece.val();
                self.left.d.next = bits::<5>(LAST_WORD);
                if self.came.val() {
                    self.number.d.next = self.number.q.val() + 1;
                    self.state.d.next = State::Words;
                }
            }
            State::Words => {
                self.words.d.next = self.words.q.val() >> 16;
                self.at.d.next = self.after.val();
                self.left.d.next = self.left.q.val() - 1;
                if !self.left.q.val().any() {
                    self.state.d.next = State::Await;
                }
                if self.after.val() >= self.stop.q.val() {
                    self.state.d.next = State::Settle;
                }
            }
            State::Settle => {
                self.age.d.next = self.age.q.val() + 1;
                if self.age.q.val() == SETTLED {
                    self.done.next = true;
                    self.state.d.next = State::Idle;
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
