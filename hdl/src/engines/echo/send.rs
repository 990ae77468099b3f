//! Sends a frame: a place in the egress, its bytes 16 at a time, the seal.

use super::answer::BITS as BUILT;
use super::fetch::{PIECE, PIECE_BITS};
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{InlineWrite, SlotGrant, SlotReq, SlotSeal};
use crate::prim::keep_mask::{KeepMask, LenMask};
use ferric_abi::wire::{self, ethertype};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Shortest frame, without FCS.
const SHORTEST: u64 = 60;
/// Bytes of a write, its bits, and those of a piece in as many.
const BYTES: u64 = 16;
const LAST_WRITE: u64 = PIECE as u64 / BYTES - 1;
/// Bits of what is built, with a tag.
const TAGGED: usize = BUILT + 8 * wire::Vlan::BYTES;
/// The tag's type as it lies on the bus, first byte low.
const TAG_TYPE: u64 = ethertype::VLAN.swap_bytes() as u64;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Slot,
    Grant,
    /// A piece of the request is wanted.
    Await,
    /// The piece is put together.
    Piece,
    /// Four writes at most.
    Write,
    Seal,
    Done,
}

/// What is built comes first, then, if anything is copied, the request from byte `copied_from` on.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Send {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub m_slot: MsgSrc<SlotReq>,
    pub s_slot: MsgSink<SlotGrant>,
    pub m_inline: MsgSrc<InlineWrite>,
    pub m_seal: MsgSrc<SlotSeal>,
    /// Begins; all that follows stays until `done`.
    pub start: Signal<In, Bit>,
    pub built: Signal<In, Bits<BUILT>>,
    pub vlan: Signal<In, Bit>,
    pub vid: Signal<In, Bits<12>>,
    /// Whose frame it is.
    pub sender: Signal<In, Bits<12>>,
    /// Bytes of the frame without padding.
    pub stop: Signal<In, Bits<14>>,
    /// The rest is the request's, behind so many bytes.
    pub copies: Signal<In, Bit>,
    pub copied_from: Signal<In, Bits<7>>,
    pub need: Signal<Out, Bit>,
    pub index: Signal<Out, Bits<7>>,
    pub came: Signal<In, Bit>,
    pub piece: Signal<In, Bits<PIECE_BITS>>,
    pub done: Signal<Out, Bit>,
    state: DFF<State>,
    size: DFF<Bits<14>>,
    number: DFF<Bits<7>>,
    base: DFF<Bits<18>>,
    slot: DFF<Bits<8>>,
    /// Bytes written so far.
    at: DFF<Bits<14>>,
    quarter: DFF<Bits<2>>,
    words: DFF<Bits<PIECE_BITS>>,
    write: DFF<InlineWrite>,
    writing: DFF<Bit>,
    headers: LenMask<PIECE, 7>,
    header_bits: KeepMask<PIECE_BITS, PIECE>,
    counted: LenMask<16, 5>,
    counted_bits: KeepMask<128, 16>,
    all: Signal<Local, Bits<TAGGED>>,
    made: Signal<Local, Bits<TAGGED>>,
    tail: Signal<Local, Bits<TAGGED>>,
    tag: Signal<Local, Bits<32>>,
    vid_bytes: Signal<Local, Bits<16>>,
    rest: Signal<Local, Bits<14>>,
    left: Signal<Local, Bits<14>>,
    go: Signal<Local, Bit>,
    after: Signal<Local, Bits<14>>,
    final_write: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Send {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, size, number, base, slot, at, quarter, words, write, writing);
        self.m_slot.data.next.frame_len = self.size.q.val();
        self.m_slot.data.next.hdr_len = bits::<9>(0);
        self.m_slot.data.next.pay_len = self.size.q.val().get_bits::<13>(0);
        self.m_slot.data.next.bypass = false;
        self.m_slot.data.next.raw = true;
        self.m_slot.data.next.client = bits::<3>(0);
        self.m_slot.valid.next = self.state.q.val() == State::Slot;
        self.s_slot.ready.next = self.state.q.val() == State::Grant;
        self.m_seal.data.next.slot = self.slot.q.val();
        self.m_seal.data.next.reads = bits::<9>(0);
        self.m_seal.data.next.abort = false;
        self.m_seal.data.next.notify = false;
        self.m_seal.data.next.qpn = bits::<24>(0);
        self.m_seal.data.next.epoch = bits::<8>(0);
        self.m_seal.data.next.psn = bits::<24>(0);
        self.m_seal.data.next.wqe_index = bits::<16>(0);
        self.m_seal.data.next.status = bits::<8>(0);
        self.m_seal.data.next.reply = false;
        self.m_seal.data.next.function = self.sender.val();
        self.m_seal.data.next.request = false;
        self.m_seal.data.next.round = bits::<2>(0);
        self.m_seal.valid.next = (self.state.q.val() == State::Seal) & !self.writing.q.val();
        self.m_inline.data.next = self.write.q.val();
        self.m_inline.valid.next = self.writing.q.val();
        self.need.next = self.state.q.val() == State::Await;
        self.index.next = self.number.q.val();
        self.done.next = self.state.q.val() == State::Done;

        // What is built, with the tag in its place.
        self.vid_bytes.next = (bit_cast::<16, 12>(self.vid.val()) << 8) | bit_cast::<16, 4>(self.vid.val().get_bits::<4>(8));
        self.tag.next = bits::<32>(TAG_TYPE) | (bit_cast::<32, 16>(self.vid_bytes.val()) << 16);
        self.all.next = bit_cast::<TAGGED, BUILT>(self.built.val());
        self.made.next = self.all.val();
        if self.vlan.val() {
            self.made.next = bit_cast::<TAGGED, 96>(self.all.val().get_bits::<96>(0)) | (bit_cast::<TAGGED, 32>(self.tag.val()) << 96) | ((self.all.val() >> 96) << 128);
        }
        self.tail.next = self.made.val() >> PIECE_BITS;
        self.headers.len.next = self.copied_from.val();
        self.header_bits.keep.next = self.headers.keep.val();

        // One write at a time: bytes behind the end are padding.
        self.go.next = !self.writing.q.val() | self.m_inline.ready.val();
        self.rest.next = self.size.q.val() - self.at.q.val();
        self.left.next = self.stop.val() - self.at.q.val();
        self.after.next = self.at.q.val() + BYTES;
        self.final_write.next = self.after.val() >= self.size.q.val();
        self.counted.len.next = bits::<5>(0);
        if self.at.q.val() < self.stop.val() {
            self.counted.len.next = bits::<5>(BYTES);
            if self.left.val() < BYTES {
                self.counted.len.next = self.left.val().get_bits::<5>(0);
            }
        }
        self.counted_bits.keep.next = self.counted.keep.val();
        if self.m_inline.ready.val() {
            self.writing.d.next = false;
        }
        match self.state.q.val() {
            State::Idle => {
                self.number.d.next = bits::<7>(0);
                self.at.d.next = bits::<14>(0);
                self.size.d.next = self.stop.val();
                if self.stop.val() < SHORTEST {
                    self.size.d.next = bits::<14>(SHORTEST);
                }
                if self.start.val() {
                    self.state.d.next = State::Slot;
                }
            }
            State::Slot => {
                if self.m_slot.ready.val() {
                    self.state.d.next = State::Grant;
                }
            }
            State::Grant => {
                self.base.d.next = self.s_slot.data.val().base;
                self.slot.d.next = self.s_slot.data.val().slot;
                if self.s_slot.valid.val() {
                    self.state.d.next = State::Piece;
                    if self.copies.val() {
                        self.state.d.next = State::Await;
                    }
                }
            }
            State::Await => {
                if self.came.val() {
                    self.state.d.next = State::Piece;
                }
            }
            State::Piece => {
                self.quarter.d.next = bits::<2>(0);
                self.number.d.next = self.number.q.val() + 1;
                self.words.d.next = self.piece.val();
                if !self.number.q.val().any() {
                    self.words.d.next = self.made.val().get_bits::<PIECE_BITS>(0);
                    if self.copies.val() {
                        self.words.d.next = (self.made.val().get_bits::<PIECE_BITS>(0) & self.header_bits.mask.val()) | (self.piece.val() & !self.header_bits.mask.val());
                    }
                } else if !self.copies.val() {
                    self.words.d.next = self.tail.val().get_bits::<PIECE_BITS>(0);
                }
                self.state.d.next = State::Write;
            }
            State::Write => {
                if self.go.val() {
                    self.writing.d.next = true;
                    self.write.d.next.dst = self.base.q.val() + bit_cast::<18, 14>(self.at.q.val());
                    self.write.d.next.len = bits::<6>(BYTES);
                    if self.rest.val() < BYTES {
                        self.write.d.next.len = self.rest.val().get_bits::<6>(0);
                    }
                    self.write.d.next.data = bit_cast::<256, 128>(self.words.q.val().get_bits::<128>(0) & self.counted_bits.mask.val());
                    self.words.d.next = self.words.q.val() >> 128;
                    self.at.d.next = self.after.val();
                    self.quarter.d.next = self.quarter.q.val() + 1;
                    if self.final_write.val() {
                        self.state.d.next = State::Seal;
                    } else if self.quarter.q.val() == LAST_WRITE {
                        self.state.d.next = State::Piece;
                        if self.copies.val() {
                            self.state.d.next = State::Await;
                        }
                    }
                }
            }
            State::Seal => {
                if !self.writing.q.val() & self.m_seal.ready.val() {
                    self.state.d.next = State::Done;
                }
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
            self.writing.d.next = false;
        }
    }
}
