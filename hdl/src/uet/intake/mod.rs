//! Frames that come: which are of Ultra Ethernet, and from which peer. See README.md.

mod front;
#[cfg(test)]
mod tests;

use super::head::tables::{WINDOW, WINDOW_BITS};
use super::head::types::Note;
use crate::bus::{AxisSink, AxisSrc, MsgSink, MsgSrc};
use crate::codes::ip::RIGHT_SUM;
use crate::msg::{CellRead, RxDesc};
use crate::prim::pack::{Gather, Slice};
use crate::records::PathCtx;
use crate::stream::{BeatsToWide, MsgSlice, WideToBeats};
use ferric_abi::wire::{Eth, Ipv4, Ipv6, Udp};
use ferric_hdl_derive::{kernel, BlockDefault};
use front::{Front, Reader, BEHIND4, BEHIND6, HEADER};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_desc", &["m_desc", "m_cell", "s_cell", "m", "m_note"]), // one frame at a time
    ("s_cell", &[]),                                            // there is a place for what was asked for
    ("m", &["m_note"]),                                         // a packet and its note leave together
    ("m_note", &["m"]),
];

/// Names of the bits of `stat`: frames of a peer, with a wrong IP header, of nobody who is a peer.
pub const STATS: &[&str] = &["uet_frames", "uet_bad_ip", "uet_stranger"];

/// Bytes of a frame that are looked at: the longest headers.
pub(super) const VIEW: usize = Eth::BYTES + Ipv6::BYTES + WINDOW;
pub(super) const VIEW_BITS: usize = 8 * VIEW;
/// Shorter frames have no UDP header.
const SHORTEST: u64 = (Eth::BYTES + Ipv4::BYTES + Udp::BYTES) as u64;
/// Bytes in front of what the lengths of IP count.
const NETWORK_BEGINS: u64 = Eth::BYTES as u64;
const LONGEST_VIEW: u64 = VIEW as u64;
const LONGEST_HEADERS: u64 = WINDOW as u64;
/// Words of 16 bits of an IPv4 header.
const LAST_WORD: u64 = Ipv4::BYTES as u64 / 2 - 1;
const WORD: usize = 16;
/// Bit of the handle that says that the frame is of IPv6; those below are the cell buffer's.
pub const SIX: usize = 12;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// Its first bytes are read.
    Look,
    Await,
    Judge,
    /// The checksum of IPv4.
    Sum,
    Fold,
    Folded,
    /// Whose it is, line by line.
    Search,
    Compare,
    /// It goes to the parser.
    Tell,
    Give,
    /// It is not ours, or nobody's.
    Pass,
    Drop,
}

/// Between the receive front and the engine. `L`: log2(K) + 1. `LE`: log2 of the peers.
#[derive(LogicBlock, BlockDefault)]
pub struct Intake<const W: usize, const K: usize, const L: usize, const LE: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets the frame at hand.
    pub reset: Signal<In, Bit>,
    /// UDP destination port of Ultra Ethernet.
    pub port: Signal<In, Bits<16>>,
    /// Frames that are no RoCE packets, and those of them that are not ours.
    pub s_desc: MsgSink<RxDesc>,
    pub m_desc: MsgSrc<RxDesc>,
    pub m_cell: MsgSrc<CellRead>,
    pub s_cell: AxisSink<W, K>,
    /// Lines of `peers`.
    pub line: Signal<Out, Bits<LE>>,
    pub path: Signal<In, PathCtx>,
    /// Headers of packets, from behind the header of IP on, and a note for each.
    pub m: AxisSrc<W, K>,
    pub m_note: MsgSrc<Note>,
    /// A pulse for each frame that is ours and goes no further.
    pub dropped: Signal<Out, Bit>,
    pub dropped_handle: Signal<Out, Bits<16>>,
    /// A pulse for each packet that goes on, when its peer has been found: the table is looked at no more.
    pub known: Signal<Out, Bit>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<3>>,
    arrived: MsgSlice<RxDesc>,
    wide: BeatsToWide<VIEW_BITS, W, K, L>,
    out: WideToBeats<WINDOW_BITS, W, K, L>,
    notes: MsgSlice<Note>,
    passed: MsgSlice<RxDesc>,
    reader: Reader,
    #[init(Slice::new(8 * BEHIND4))]
    behind4: Slice<VIEW_BITS, WINDOW_BITS>,
    #[init(Slice::new(8 * BEHIND6))]
    behind6: Slice<VIEW_BITS, WINDOW_BITS>,
    state: DFF<State>,
    desc: DFF<RxDesc>,
    view: DFF<Bits<VIEW_BITS>>,
    /// Bytes of the frame from its IP header on.
    there: DFF<Bits<17>>,
    front: DFF<Front>,
    words: DFF<Bits<HEADER>>,
    word: DFF<Bits<4>>,
    sum: DFF<Bits<20>>,
    fold: DFF<Bits<17>>,
    right: DFF<Bit>,
    at: DFF<Bits<LE>>,
    good: DFF<Bit>,
    bad: DFF<Bit>,
    stranger: DFF<Bit>,
    events: Gather<3>,
    value: Signal<Local, Bits<16>>,
    folded: Signal<Local, Bits<16>>,
    mine: Signal<Local, Bit>,
    hit: Signal<Local, Bit>,
    six: Signal<Local, Bits<16>>,
    #[init(Constant::new(((1u64 << LE) - 1).to_bits()))]
    last: Constant<Bits<LE>>,
    #[init(Constant::new((1u64 << SIX).to_bits()))]
    six_bit: Constant<Bits<16>>,
}

#[kernel]
impl<const W: usize, const K: usize, const L: usize, const LE: usize> Logic for Intake<W, K, L, LE> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, desc, view, there, front, words, word, sum, fold, right, at, good, bad, stranger);
        clock!(self, clock, arrived, wide, out, notes, passed);
        self.arrived.reset.next = self.reset.val();
        self.wide.reset.next = self.reset.val();
        self.out.reset.next = self.reset.val();
        self.notes.reset.next = self.reset.val();
        self.passed.reset.next = self.reset.val();
        MsgSink::<RxDesc>::link(&mut self.s_desc, &mut self.arrived.s);
        MsgSrc::<RxDesc>::link(&mut self.m_desc, &mut self.passed.m);
        AxisSink::<W, K>::link(&mut self.s_cell, &mut self.wide.s);
        AxisSrc::<W, K>::link(&mut self.m, &mut self.out.m);
        MsgSrc::<Note>::link(&mut self.m_note, &mut self.notes.m);
        self.arrived.m.ready.next = false;
        self.wide.m.ready.next = false;
        self.passed.s.valid.next = false;
        self.passed.s.data.next = self.desc.q.val();
        self.m_cell.valid.next = false;
        self.m_cell.data.next.handle = self.desc.q.val().handle;
        self.m_cell.data.next.off = bits::<14>(0);
        self.m_cell.data.next.len = self.desc.q.val().frame_len;
        if self.desc.q.val().frame_len > LONGEST_VIEW {
            self.m_cell.data.next.len = bits::<14>(LONGEST_VIEW);
        }
        self.m_cell.data.next.free = false;
        self.reader.view.next = self.view.q.val();
        self.reader.there.next = self.there.q.val();
        self.reader.port.next = self.port.val();
        self.value.next = (bit_cast::<16, 8>(self.words.q.val().get_bits::<8>(0)) << 8) | bit_cast::<16, 8>(self.words.q.val().get_bits::<8>(8));
        self.folded.next = self.fold.q.val().get_bits::<16>(0) + bit_cast::<16, 1>(self.fold.q.val().get_bits::<1>(16));
        self.line.next = self.at.q.val();
        self.mine.next = self.path.val().valid & (self.path.val().ipv6 == self.front.q.val().v6);
        self.hit.next = self.mine.val() & (self.path.val().sip == self.front.q.val().to) & (self.path.val().dip == self.front.q.val().from);
        self.behind4.x.next = self.view.q.val();
        self.behind6.x.next = self.view.q.val();
        self.out.s.valid.next = false;
        self.out.s.data.next = self.behind4.y.val();
        self.out.s.len.next = bits::<16>(LONGEST_HEADERS);
        if self.front.q.val().bytes < LONGEST_HEADERS {
            self.out.s.len.next = self.front.q.val().bytes;
        }
        self.six.next = bits::<16>(0);
        if self.front.q.val().v6 {
            self.out.s.data.next = self.behind6.y.val();
            self.six.next = self.six_bit.val();
        }
        self.notes.s.valid.next = false;
        self.notes.s.data.next.native = false;
        self.notes.s.data.next.trim = bits::<2>(0);
        self.notes.s.data.next.peer = bit_cast::<16, LE>(self.at.q.val());
        self.notes.s.data.next.congested = self.front.q.val().congested;
        self.notes.s.data.next.handle = bit_cast::<16, 12>(self.desc.q.val().handle) | self.six.val();
        self.notes.s.data.next.bytes = self.front.q.val().bytes;
        self.dropped.next = self.state.q.val() == State::Drop;
        self.dropped_handle.next = bit_cast::<16, 12>(self.desc.q.val().handle);
        self.known.next = self.good.q.val();
        self.good.d.next = false;
        self.bad.d.next = false;
        self.stranger.d.next = false;
        self.events.x[0].next = self.good.q.val();
        self.events.x[1].next = self.bad.q.val();
        self.events.x[2].next = self.stranger.q.val();
        self.stat.next = self.events.y.val();
        match self.state.q.val() {
            State::Idle => {
                self.desc.d.next = self.arrived.m.data.val();
                self.there.d.next = bit_cast::<17, 14>(self.arrived.m.data.val().frame_len) - NETWORK_BEGINS;
                self.arrived.m.ready.next = true;
                if self.arrived.m.valid.val() {
                    self.state.d.next = State::Pass;
                    if self.arrived.m.data.val().raw & !self.arrived.m.data.val().kind.any() & !self.arrived.m.data.val().has_vlan & (self.arrived.m.data.val().frame_len >= SHORTEST) {
                        self.state.d.next = State::Look;
                    }
                }
            }
            State::Look => {
                self.m_cell.valid.next = true;
                if self.m_cell.ready.val() {
                    self.state.d.next = State::Await;
                }
            }
            State::Await => {
                self.wide.m.ready.next = true;
                self.view.d.next = self.wide.m.data.val();
                if self.wide.m.valid.val() {
                    self.state.d.next = State::Judge;
                }
            }
            State::Judge => {
                self.front.d.next = self.reader.front.val();
                self.words.d.next = self.reader.header.val();
                self.word.d.next = bits::<4>(0);
                self.sum.d.next = bits::<20>(0);
                self.at.d.next = bits::<LE>(0);
                self.state.d.next = State::Pass;
                if self.reader.front.val().v4 {
                    self.state.d.next = State::Sum;
                } else if self.reader.front.val().v6 {
                    self.right.d.next = true;
                    self.state.d.next = State::Search;
                }
            }
            State::Sum => {
                self.sum.d.next = self.sum.q.val() + bit_cast::<20, 16>(self.value.val());
                self.words.d.next = self.words.q.val() >> WORD;
                self.word.d.next = self.word.q.val() + 1;
                if self.word.q.val() == LAST_WORD {
                    self.state.d.next = State::Fold;
                }
            }
            State::Fold => {
                self.fold.d.next = bit_cast::<17, 16>(self.sum.q.val().get_bits::<16>(0)) + bit_cast::<17, 4>(self.sum.q.val().get_bits::<4>(16));
                self.state.d.next = State::Folded;
            }
            State::Folded => {
                self.right.d.next = self.folded.val() == RIGHT_SUM;
                self.state.d.next = State::Search;
            }
            // The memory sees the line in this state and has it in the next.
            State::Search => {
                self.state.d.next = State::Compare;
                if !self.right.q.val() | !self.front.q.val().fits {
                    self.bad.d.next = true;
                    self.state.d.next = State::Drop;
                }
            }
            State::Compare => {
                self.state.d.next = State::Search;
                if self.hit.val() {
                    self.good.d.next = true;
                    self.state.d.next = State::Tell;
                } else if self.at.q.val() == self.last.val() {
                    self.stranger.d.next = true;
                    self.state.d.next = State::Drop;
                } else {
                    self.at.d.next = self.at.q.val() + 1;
                }
            }
            State::Tell => {
                self.notes.s.valid.next = true;
                if self.notes.s.ready.val() {
                    self.state.d.next = State::Give;
                }
            }
            State::Give => {
                self.out.s.valid.next = true;
                if self.out.s.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Pass => {
                self.passed.s.valid.next = true;
                if self.passed.s.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Drop => {
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
