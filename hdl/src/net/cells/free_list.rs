//! The chain of free cells. One memory of successors serves the free list and the chains of all frames.

use crate::prim::ram::RamAsync2;
use ferric_hdl_derive::{kernel, BlockNew};
use rust_hdl::prelude::*;

/// Cells in the card's buffer, and the most that a handle can name.
pub const CELLS: usize = 512;

/// A queue of free cells as a linked list: cells leave at its head, whole chains are appended at its tail.
///
/// Cells that leave one after the other stay linked, so a frame's chain needs no write at all: the successor of its cell i is
/// its cell i+1. That also holds across an empty list, because the tail stays the cell that left last and the next
/// chain is linked behind it. There must be one taker only, and it must finish a chain before it starts another.
#[derive(LogicBlock, BlockNew)]
#[given(cells_log2: usize)]
#[demand((6..=9).contains(&cells_log2), "2^{cells_log2} cells: a frame takes up to 32, and 9 bits name one")]
pub struct FreeList {
    pub clock: Signal<In, Clock>,
    /// Synchronous; all cells are free again as many cycles later.
    pub reset: Signal<In, Bit>,
    /// A cell is there and may be taken; low while the list is being built.
    pub available: Signal<Out, Bit>,
    /// The cell that `pop` takes.
    pub head: Signal<Out, Bits<9>>,
    /// Only while `available`.
    pub pop: Signal<In, Bit>,
    /// Appends the chain from `splice_head` to `splice_tail`, `splice_count` cells long.
    pub splice: Signal<In, Bit>,
    pub splice_head: Signal<In, Bits<9>>,
    pub splice_tail: Signal<In, Bits<9>>,
    pub splice_count: Signal<In, Bits<6>>,
    /// Successor of a cell, in the same cycle.
    pub walk: Signal<In, Bits<9>>,
    pub walk_next: Signal<Out, Bits<9>>,
    /// Free cells.
    pub count: Signal<Out, Bits<10>>,
    /// The list is being built; `init_cell` runs over all cells.
    pub init: Signal<Out, Bit>,
    pub init_cell: Signal<Out, Bits<9>>,
    successors: RamAsync2<Bits<9>, 9>,
    first: DFF<Bits<9>>,
    tail: DFF<Bits<9>>,
    free: DFF<Bits<10>>,
    some: DFF<Bit>,
    ready: DFF<Bit>,
    step: DFF<Bits<9>>,
    added: Signal<Local, Bits<10>>,
    left: Signal<Local, Bits<10>>,
    after: Signal<Local, Bits<10>>,
    empties: Signal<Local, Bit>,
    #[init(Constant::new((1u64 << cells_log2).to_bits()))]
    all: Constant<Bits<10>>,
    /// Its ones are the bits that a cell's number has.
    #[init(Constant::new(((1u64 << cells_log2) - 1).to_bits()))]
    last: Constant<Bits<9>>,
}

#[kernel]
impl Logic for FreeList {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, first, tail, free, some, ready, step);
        clock!(self, clock, successors);
        self.available.next = self.some.q.val();
        self.head.next = self.first.q.val();
        self.count.next = self.free.q.val();
        self.init.next = !self.ready.q.val();
        self.init_cell.next = self.step.q.val();
        self.successors.read_addr0.next = self.first.q.val() & self.last.val();
        self.successors.read_addr1.next = self.walk.val() & self.last.val();
        self.walk_next.next = self.successors.read_data1.val();
        self.successors.write_en.next = self.splice.val();
        self.successors.write_addr.next = self.tail.q.val() & self.last.val();
        self.successors.write_data.next = self.splice_head.val();
        self.added.next = bits::<10>(0);
        if self.splice.val() {
            self.added.next = bit_cast::<10, 6>(self.splice_count.val());
            self.tail.d.next = self.splice_tail.val();
        }
        self.left.next = self.free.q.val();
        if self.pop.val() {
            self.left.next = self.free.q.val() - 1;
            self.first.d.next = self.successors.read_data0.val();
        }
        // With nothing left the new chain's head comes straight in: its link is only being written.
        self.empties.next = !self.left.val().any();
        if self.splice.val() & self.empties.val() {
            self.first.d.next = self.splice_head.val();
        }
        self.after.next = self.left.val() + self.added.val();
        self.free.d.next = self.after.val();
        self.some.d.next = self.after.val().any();
        if !self.ready.q.val() {
            // Cell i leads to i+1; the last one becomes the tail.
            self.successors.write_en.next = true;
            self.successors.write_addr.next = self.step.q.val() & self.last.val();
            self.successors.write_data.next = self.step.q.val() + 1;
            self.step.d.next = self.step.q.val() + 1;
            self.free.d.next = bits::<10>(0);
            self.some.d.next = false;
            self.first.d.next = bits::<9>(0);
            self.tail.d.next = self.step.q.val();
            if self.step.q.val() == self.last.val() {
                self.ready.d.next = true;
                self.free.d.next = self.all.val();
                self.some.d.next = true;
            }
        }
        if self.reset.val() {
            self.ready.d.next = false;
            self.step.d.next = bits::<9>(0);
            self.free.d.next = bits::<10>(0);
            self.some.d.next = false;
        }
    }
}
