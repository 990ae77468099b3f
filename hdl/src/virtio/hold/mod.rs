//! Received frames while their buffers are looked for: what `net/cells` is on a card, small. See README.md.

use crate::bus::{AxisSink, AxisSrc, MsgSink, MsgSrc};
use crate::msg::{CellRead, VqFrame, VqNotify};
use crate::prim::keep_mask::KeepLen;
use crate::prim::ram::Ram;
use crate::stream::{AxisFifo, AxisSlice, MsgFifo, MsgSlice};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_frame", &["s_to", "m_frame"]), // a slot comes free when its frame has been read: before more frames are taken
    ("s_to", &["s_frame"]),
    ("s_read", &["m_cell"]),
    ("m_frame", &["s_frame", "s_to"]),
    ("m_cell", &[]), // of a frame that is here
];

/// log2 of a slot's bytes.
const LG_SLOT: usize = 14;
/// Below this level a row may be read: those on the way have room.
const ROOM: u64 = 8;
/// The length of a frame that is longer than a slot.
const TOO_LONG: u64 = (1 << LG_SLOT) - 1;

/// `S` = 2^`LS` slots of 16 KiB, `R` bits of a row's number in one, `A` in all.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && K == 1 << LK, "K must be W / 8, LK its logarithm")]
#[demand(S == 1 << LS && LS >= 2 && R == LG_SLOT - LK && A == LS + R, "the slots' rows")]
pub struct Hold<const W: usize, const K: usize, const LK: usize, const LS: usize, const S: usize, const R: usize, const A: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not in the middle of a frame.
    pub reset: Signal<In, Bit>,
    pub s_frame: AxisSink<W, K>,
    /// The queue of each frame.
    pub s_to: MsgSink<VqNotify>,
    pub m_frame: MsgSrc<VqFrame>,
    /// The mover's: bytes of a frame, as aligned beats.
    pub s_read: MsgSink<CellRead>,
    pub m_cell: AxisSrc<W, K>,
    inlet: AxisSlice<W, K>,
    to: MsgSlice<VqNotify>,
    memory: Ram<Bits<W>, A>,
    frames: MsgFifo<VqFrame, LS>,
    outlet: AxisFifo<W, K, 4>,
    len_of: KeepLen<K, 8>,
    /// Slots written and freed so far. Frames are freed in their order.
    written: DFF<Bits<8>>,
    freed: DFF<Bits<8>>,
    row: DFF<Bits<R>>,
    long: DFF<Bit>,
    reading: DFF<Bit>,
    read: DFF<CellRead>,
    read_row: DFF<Bits<R>>,
    rows_left: DFF<Bits<14>>,
    shows: DFF<Bit>,
    shows_last: DFF<Bit>,
    reads: MsgSlice<CellRead>,
    #[init(Constant::new((S as u64).into()))]
    slots: Constant<Bits<8>>,
    #[init(Constant::new(((1u64 << R) - 1).into()))]
    last_row: Constant<Bits<R>>,
    #[init(Constant::new((LK as u64).into()))]
    lg_width: Constant<Bits<4>>,
    #[init(Constant::new((R as u64).into()))]
    lg_rows: Constant<Bits<4>>,
    #[init(Constant::new(!Bits::<K>::from(0)))]
    every: Constant<Bits<K>>,
    used_slots: Signal<Local, Bits<8>>,
    takes: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    slot: Signal<Local, Bits<LS>>,
    len: Signal<Local, Bits<14>>,
    issues: Signal<Local, Bit>,
    handle: Signal<Local, Bits<12>>,
    off: Signal<Local, Bits<14>>,
    ending: Signal<Local, Bits<14>>,
    first: Signal<Local, Bits<14>>,
    last: Signal<Local, Bits<14>>,
    read_slot: Signal<Local, Bits<LS>>,
    opens: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize, const LS: usize, const S: usize, const R: usize, const A: usize> Logic for Hold<W, K, LK, LS, S, R, A> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, written, freed, row, long, reading, read, read_row, rows_left, shows, shows_last);
        clock!(self, clock, inlet, to, memory, frames, outlet, reads);
        self.inlet.reset.next = self.reset.val();
        self.to.reset.next = self.reset.val();
        self.frames.reset.next = self.reset.val();
        self.outlet.reset.next = self.reset.val();
        self.reads.reset.next = self.reset.val();
        AxisSink::<W, K>::link(&mut self.s_frame, &mut self.inlet.s);
        MsgSink::<VqNotify>::link(&mut self.s_to, &mut self.to.s);
        MsgSrc::<VqFrame>::link(&mut self.m_frame, &mut self.frames.m);
        MsgSink::<CellRead>::link(&mut self.s_read, &mut self.reads.s);
        AxisSrc::<W, K>::link(&mut self.m_cell, &mut self.outlet.m);

        // A frame comes, when there is a slot, and its queue is known.
        self.used_slots.next = self.written.q.val() - self.freed.q.val();
        self.slot.next = self.written.q.val().get_bits::<LS>(0);
        self.takes.next = self.inlet.m.valid.val() & self.to.m.valid.val() & (self.used_slots.val() != self.slots.val());
        self.inlet.m.ready.next = self.to.m.valid.val() & (self.used_slots.val() != self.slots.val());
        self.ends.next = self.takes.val() & self.inlet.m.last.val();
        self.to.m.ready.next = self.ends.val();
        self.memory.write_addr.next = (bit_cast::<A, LS>(self.slot.val()) << self.lg_rows.val()) | bit_cast::<A, R>(self.row.q.val());
        self.memory.write_data.next = self.inlet.m.data.val();
        self.memory.write_en.next = self.takes.val();
        self.len_of.keep.next = self.inlet.m.keep.val();
        self.len.next = (bit_cast::<14, R>(self.row.q.val()) << self.lg_width.val()) + bit_cast::<14, 8>(self.len_of.len.val());
        if self.takes.val() {
            if self.row.q.val() == self.last_row.val() {
                self.long.d.next = true;
            } else {
                self.row.d.next = self.row.q.val() + 1;
            }
        }
        self.frames.s.data.next.queue = self.to.m.data.val().queue;
        self.frames.s.data.next.handle = bit_cast::<12, LS>(self.slot.val());
        self.frames.s.data.next.len = self.len.val();
        if self.long.q.val() | (self.row.q.val() == self.last_row.val()) {
            self.frames.s.data.next.len = bits::<14>(TOO_LONG);
        }
        self.frames.s.valid.next = self.ends.val();
        if self.ends.val() {
            self.written.d.next = self.written.q.val() + 1;
            self.row.d.next = bits::<R>(0);
            self.long.d.next = false;
        }

        // Bytes are read, row by row.
        self.opens.next = !self.reading.q.val() & self.reads.m.valid.val();
        self.reads.m.ready.next = !self.reading.q.val();
        self.off.next = self.reads.m.data.val().off;
        self.ending.next = self.off.val() + self.reads.m.data.val().len - 1;
        self.first.next = self.off.val() >> self.lg_width.val();
        self.last.next = self.ending.val() >> self.lg_width.val();
        if self.opens.val() {
            self.read.d.next = self.reads.m.data.val();
            self.read_row.d.next = self.first.val().get_bits::<R>(0);
            self.rows_left.d.next = self.last.val() - self.first.val();
            self.reading.d.next = self.reads.m.data.val().len.any();
            if self.reads.m.data.val().free {
                self.freed.d.next = self.freed.q.val() + 1;
            }
        }
        self.handle.next = self.read.q.val().handle;
        self.read_slot.next = self.handle.val().get_bits::<LS>(0);
        self.memory.read_addr.next = (bit_cast::<A, LS>(self.read_slot.val()) << self.lg_rows.val()) | bit_cast::<A, R>(self.read_row.q.val());
        self.issues.next = self.reading.q.val() & (self.outlet.level.val() < ROOM);
        self.shows.d.next = self.issues.val();
        self.shows_last.d.next = !self.rows_left.q.val().any();
        if self.issues.val() {
            self.read_row.d.next = self.read_row.q.val() + 1;
            self.rows_left.d.next = self.rows_left.q.val() - 1;
            if !self.rows_left.q.val().any() {
                self.reading.d.next = false;
            }
        }
        self.outlet.s.data.next = self.memory.read_data.val();
        self.outlet.s.keep.next = self.every.val();
        self.outlet.s.last.next = self.shows_last.q.val();
        self.outlet.s.valid.next = self.shows.q.val();
        if self.reset.val() {
            self.written.d.next = bits::<8>(0);
            self.freed.d.next = bits::<8>(0);
            self.row.d.next = bits::<R>(0);
            self.long.d.next = false;
            self.reading.d.next = false;
            self.shows.d.next = false;
        }
    }
}
