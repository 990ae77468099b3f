//! The shared cell buffer for received frames. See README.md.

pub mod free_list;
pub mod reader;
pub mod release;
#[cfg(test)]
mod tests;
pub mod writer;

use crate::bus::{AxisSrc, MsgSink, MsgSrc};
use crate::msg::CellRead;
use crate::prim::cell_ram::{CellRam, CELL_BYTES};
use crate::stream::MsgSlice;
use ferric_hdl_derive::{kernel, BlockNew};
pub use free_list::CELLS;
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_write", &[]), // what finds no cell is dropped
    ("s_read[0]", &["m_data"]),
    ("s_read[1]", &[]), // a release takes some cycles
    ("s_retain", &[]),  // waits for releases that have been asked for
    ("m_data", &[]),    // of the oldest read whose beats are due: the mover's reads, commands and beats keep one order
];

/// Rows of K bytes in a cell.
const fn rows(k: usize) -> usize {
    CELL_BYTES / k
}

/// Receive side's half of the write port. Nothing on it can wait.
///
/// Beats of one frame after the other, then, in the same order, one verdict per frame, at most 32 frames and at the earliest
/// three cycles after its last beat. One cycle after each verdict comes `done`.
#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "CellStore"]
pub struct CellWriter<const W: usize> {
    pub data: Signal<Out, Bits<W>>,
    pub first: Signal<Out, Bit>,
    pub last: Signal<Out, Bit>,
    pub valid: Signal<Out, Bit>,
    /// Decides on the oldest frame without verdict.
    pub verdict: Signal<Out, Bit>,
    /// With `verdict`: keep the frame if it fitted; else its cells are free again.
    pub keep: Signal<Out, Bit>,
    pub done: Signal<In, Bit>,
    /// With `done`: the frame is in the buffer, `done_handle` is its name.
    pub done_ok: Signal<In, Bit>,
    /// With `done`: it was to be kept but cells ran out.
    pub done_no_room: Signal<In, Bit>,
    pub done_handle: Signal<In, Bits<12>>,
}

/// Cell buffer's half of [`CellWriter`].
#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "CellWriter"]
pub struct CellStore<const W: usize> {
    pub data: Signal<In, Bits<W>>,
    pub first: Signal<In, Bit>,
    pub last: Signal<In, Bit>,
    pub valid: Signal<In, Bit>,
    pub verdict: Signal<In, Bit>,
    pub keep: Signal<In, Bit>,
    pub done: Signal<Out, Bit>,
    pub done_ok: Signal<Out, Bit>,
    pub done_no_room: Signal<Out, Bit>,
    pub done_handle: Signal<Out, Bits<12>>,
}

/// `2^cells_log2` cells of 256 bytes; [`CELLS`] by default, as the card has.
#[derive(LogicBlock, BlockNew)]
#[given(cells_log2: usize)]
pub struct CellBuffer<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous. All cells are free as many cycles later as there are; frames that come before find no room.
    pub reset: Signal<In, Bit>,
    pub s_write: CellStore<W>,
    /// 0: reads and frees (mover), 1: frees only (requester).
    pub s_read: [MsgSink<CellRead>; 2],
    /// Beats of port 0's reads. The first byte is in lane `off` mod K: on a first beat `keep` may start above lane 0.
    pub m_data: AxisSrc<W, K>,
    /// One owner more for a frame (multicast); at most eight. Tie `valid` low if unused.
    pub s_retain: MsgSink<Bits<9>>,
    /// Free cells.
    pub free_count: Signal<Out, Bits<10>>,
    #[init(CellRam::new(cells_log2))]
    ram: CellRam<W, K>,
    #[init(free_list::FreeList::new(cells_log2))]
    list: free_list::FreeList,
    writer: writer::Writer<W, K>,
    reader: reader::Reader<W, K>,
    owners: release::Release,
    port1: MsgSlice<CellRead>,
    retain: MsgSlice<Bits<9>>,
}

impl<const W: usize, const K: usize> Default for CellBuffer<W, K> {
    fn default() -> Self {
        Self::new(CELLS.trailing_zeros() as usize)
    }
}

#[kernel]
impl<const W: usize, const K: usize> Logic for CellBuffer<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, ram, list, writer, reader, owners, port1, retain);
        self.list.reset.next = self.reset.val();
        self.writer.reset.next = self.reset.val();
        self.reader.reset.next = self.reset.val();
        self.owners.reset.next = self.reset.val();
        self.port1.reset.next = self.reset.val();
        self.retain.reset.next = self.reset.val();
        CellStore::<W>::link(&mut self.s_write, &mut self.writer.s);
        MsgSink::<CellRead>::link(&mut self.s_read[0], &mut self.reader.s);
        MsgSink::<CellRead>::link(&mut self.s_read[1], &mut self.port1.s);
        MsgSink::<Bits<9>>::link(&mut self.s_retain, &mut self.retain.s);
        AxisSrc::<W, K>::link(&mut self.m_data, &mut self.reader.m);
        // Cells
        self.ram.write_en.next = self.writer.write_en.val();
        self.ram.write_cell.next = self.writer.write_cell.val();
        self.ram.write_row.next = self.writer.write_row.val();
        self.ram.write_data.next = self.writer.write_data.val();
        self.ram.read_cell.next = self.reader.read_cell.val();
        self.ram.read_row.next = self.reader.read_row.val();
        self.reader.read_data.next = self.ram.read_data.val();
        // Free list: the receive side cannot wait, so a chain it drops goes before one that is released.
        self.writer.available.next = self.list.available.val();
        self.writer.head.next = self.list.head.val();
        self.list.pop.next = self.writer.pop.val();
        self.list.walk.next = self.reader.walk.val();
        self.reader.walk_next.next = self.list.walk_next.val();
        self.free_count.next = self.list.count.val();
        self.list.splice.next = self.writer.splice.val() | self.owners.splice.val();
        self.list.splice_head.next = self.owners.splice_head.val();
        self.list.splice_tail.next = self.owners.splice_tail.val();
        self.list.splice_count.next = self.owners.splice_count.val();
        if self.writer.splice.val() {
            self.list.splice_head.next = self.writer.chain.val().head;
            self.list.splice_tail.next = self.writer.chain.val().tail;
            self.list.splice_count.next = self.writer.chain.val().count;
        }
        self.reader.gone.next = self.owners.splice.val();
        self.reader.gone_handle.next = self.owners.splice_head.val();
        // Owners
        self.owners.commit.next = self.writer.commit.val();
        self.owners.commit_head.next = self.writer.chain.val().head;
        self.owners.commit_tail.next = self.writer.chain.val().tail;
        self.owners.commit_count.next = self.writer.chain.val().count;
        self.owners.busy.next = self.writer.splice.val();
        self.owners.init.next = self.list.init.val();
        self.owners.init_cell.next = self.list.init_cell.val();
        MsgSrc::<Bits<9>>::join(&mut self.reader.m_free, &mut self.owners.s_free[0]);
        MsgSrc::<Bits<9>>::join(&mut self.retain.m, &mut self.owners.s_retain);
        self.owners.s_free[1].data.next = self.port1.m.data.val().handle.get_bits::<9>(0);
        self.owners.s_free[1].valid.next = self.port1.m.valid.val() & self.port1.m.data.val().free;
        // A command without `free` asks for nothing here.
        self.port1.m.ready.next = self.owners.s_free[1].ready.val() | !self.port1.m.data.val().free;
    }
}
