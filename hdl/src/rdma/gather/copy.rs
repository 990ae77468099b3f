//! Reads of work request buffers: entries for the walker, and inline data, which go into the assembly buffer in front of their packet's seal.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{InlineWrite, SlotSeal, WqeData, WqeFree, WqeRead};
use crate::stream::{MsgFifo, MsgSlice};
use ferric_abi::codes::CqeStatus;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Inline bytes that lie within 32 aligned bytes of a work request buffer, from granule `granule` on, of a packet whose place is known.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Piece {
    pub handle: Bits<8>,
    pub granule: Bits<5>,
    pub dst: Bits<18>,
    pub len: Bits<6>,
    /// The last of the packet, and of the buffer.
    pub last: Bit,
    pub free: Bit,
}

/// The seal of a packet; `copies`: its inline bytes go first.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Sealed {
    pub seal: SlotSeal,
    pub copies: Bit,
}

/// A piece on its way out. `bad`: this one, or one of the packet before it, could not be read.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Copied {
    write: InlineWrite,
    last: Bit,
    bad: Bit,
}

/// One piece a cycle, in their order; seals in theirs.
#[derive(LogicBlock, Default)]
pub struct Copier {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// The walker's reads, which let pieces go first, and their answers.
    pub s_list: MsgSink<WqeRead>,
    pub m_list: MsgSrc<WqeData>,
    pub s_piece: MsgSink<Piece>,
    pub s_seal: MsgSink<Sealed>,
    pub m_wqe: MsgSrc<WqeRead>,
    pub s_wqe: MsgSink<WqeData>,
    pub m_inline: MsgSrc<InlineWrite>,
    pub m_seal: MsgSrc<SlotSeal>,
    /// Buffers that the walker gives back, and all that go back.
    pub s_free: MsgSink<WqeFree>,
    pub m_free: MsgSrc<WqeFree>,
    /// Pulse: all pieces of a packet have been read.
    pub copied: Signal<Out, Bit>,
    asks: MsgSlice<WqeRead>,
    /// Of each read under way, whether it is for a piece.
    askers: MsgFifo<Bit, 4>,
    pieces: MsgFifo<Piece, 4>,
    writes: MsgSlice<Copied>,
    /// Of each packet whose last piece has been taken, whether it is bad.
    outcomes: MsgFifo<Bit, 4>,
    seals: MsgFifo<Sealed, 4>,
    frees: MsgFifo<WqeFree, 2>,
    bad: DFF<Bit>,
    open: Signal<Local, Bit>,
    mine: Signal<Local, Bit>,
    may_copy: Signal<Local, Bit>,
    copies: Signal<Local, Bit>,
    /// A buffer goes back behind its last piece.
    returns: Signal<Local, Bit>,
    write: Signal<Local, InlineWrite>,
    fails: Signal<Local, Bit>,
    goes: Signal<Local, Bit>,
    spoilt: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Copier {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, bad);
        clock!(self, clock, asks, askers, pieces, writes, outcomes, seals, frees);
        self.asks.reset.next = self.reset.val();
        self.askers.reset.next = self.reset.val();
        self.pieces.reset.next = self.reset.val();
        self.writes.reset.next = self.reset.val();
        self.outcomes.reset.next = self.reset.val();
        self.seals.reset.next = self.reset.val();
        self.frees.reset.next = self.reset.val();
        MsgSrc::<WqeRead>::link(&mut self.m_wqe, &mut self.asks.m);
        MsgSink::<Sealed>::link(&mut self.s_seal, &mut self.seals.s);
        MsgSrc::<WqeFree>::link(&mut self.m_free, &mut self.frees.m);

        // Reads: there are never more pieces than the walker has ordered, so that its own reads have their turn.
        self.open.next = self.asks.s.ready.val() & self.askers.s.ready.val();
        self.s_piece.ready.next = self.open.val() & self.pieces.s.ready.val();
        self.s_list.ready.next = self.open.val() & !self.s_piece.valid.val();
        self.asks.s.data.next = self.s_list.data.val();
        self.asks.s.valid.next = self.s_list.valid.val() & self.askers.s.ready.val();
        if self.s_piece.valid.val() {
            self.asks.s.data.next.handle = self.s_piece.data.val().handle;
            self.asks.s.data.next.granule = self.s_piece.data.val().granule;
            self.asks.s.valid.next = self.pieces.s.ready.val() & self.askers.s.ready.val();
        }
        self.askers.s.valid.next = self.asks.s.valid.val() & self.asks.s.ready.val();
        self.askers.s.data.next = self.s_piece.valid.val();
        self.pieces.s.valid.next = self.s_piece.valid.val() & self.open.val();
        self.pieces.s.data.next = self.s_piece.data.val();

        // Answers come in the order of the reads.
        self.mine.next = self.askers.m.data.val();
        self.may_copy.next = self.askers.m.valid.val() & self.mine.val() & self.pieces.m.valid.val() & self.writes.s.ready.val() & self.frees.s.ready.val();
        self.copies.next = self.may_copy.val() & self.s_wqe.valid.val();
        self.m_list.data.next = self.s_wqe.data.val();
        self.m_list.valid.next = self.s_wqe.valid.val() & self.askers.m.valid.val() & !self.mine.val();
        self.s_wqe.ready.next = self.may_copy.val() | (self.askers.m.valid.val() & !self.mine.val() & self.m_list.ready.val());
        self.askers.m.ready.next = self.s_wqe.valid.val() & (self.may_copy.val() | (!self.mine.val() & self.m_list.ready.val()));
        self.pieces.m.ready.next = self.copies.val();
        self.fails.next = self.bad.q.val() | self.s_wqe.data.val().err;
        if self.copies.val() {
            self.bad.d.next = self.fails.val() & !self.pieces.m.data.val().last;
        }
        self.writes.s.valid.next = self.copies.val();
        self.write.next.dst = self.pieces.m.data.val().dst;
        self.write.next.len = self.pieces.m.data.val().len;
        self.write.next.data = (bit_cast::<256, 128>(self.s_wqe.data.val().more) << 128) | bit_cast::<256, 128>(self.s_wqe.data.val().data);
        self.writes.s.data.next.write = self.write.val();
        self.writes.s.data.next.last = self.pieces.m.data.val().last;
        self.writes.s.data.next.bad = self.fails.val();
        self.copied.next = self.copies.val() & self.pieces.m.data.val().last;
        self.returns.next = self.copies.val() & self.pieces.m.data.val().last & self.pieces.m.data.val().free;
        self.s_free.ready.next = self.frees.s.ready.val() & !self.returns.val();
        self.frees.s.valid.next = self.returns.val() | self.s_free.valid.val();
        self.frees.s.data.next = self.s_free.data.val();
        if self.returns.val() {
            self.frees.s.data.next.handle = self.pieces.m.data.val().handle;
        }

        // Writes, and what has become of their packets: there is a place among `outcomes` for every packet among `seals`, and a packet comes here before its seal.
        self.m_inline.data.next = self.writes.m.data.val().write;
        self.m_inline.valid.next = self.writes.m.valid.val() & self.outcomes.s.ready.val();
        self.goes.next = self.writes.m.valid.val() & self.outcomes.s.ready.val() & self.m_inline.ready.val();
        self.writes.m.ready.next = self.outcomes.s.ready.val() & self.m_inline.ready.val();
        self.outcomes.s.valid.next = self.goes.val() & self.writes.m.data.val().last;
        self.outcomes.s.data.next = self.writes.m.data.val().bad;

        // Seals.
        self.m_seal.valid.next = self.seals.m.valid.val() & (!self.seals.m.data.val().copies | self.outcomes.m.valid.val());
        self.seals.m.ready.next = self.m_seal.ready.val() & (!self.seals.m.data.val().copies | self.outcomes.m.valid.val());
        self.outcomes.m.ready.next = self.m_seal.ready.val() & self.seals.m.valid.val() & self.seals.m.data.val().copies;
        self.m_seal.data.next = self.seals.m.data.val().seal;
        self.spoilt.next = self.seals.m.data.val().copies & self.outcomes.m.data.val();
        if self.spoilt.val() {
            self.m_seal.data.next.abort = true;
            self.m_seal.data.next.status = bits::<8>(CqeStatus::LocalLength as u64);
        }
        if self.reset.val() {
            self.bad.d.next = false;
        }
    }
}
