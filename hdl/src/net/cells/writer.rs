//! Write side: beats into cells, and the verdict on each frame.

use super::CellStore;
use crate::prim::ram::RamAsync;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// A frame's cells: the chain from `head` to `tail`, `count` long. `overflow`: cells ran out under it.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Chain {
    pub head: Bits<9>,
    pub tail: Bits<9>,
    pub count: Bits<6>,
    pub overflow: Bit,
}

/// log2 of the frames that may lie between their last beat and their verdict.
const LG_WAITING: usize = 5;

/// Takes a cell per 256 bytes while they last. Good frames become `commit`, all others give their cells back by `splice`,
/// which nothing may delay.
#[derive(LogicBlock, BlockDefault)]
pub struct Writer<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub s: CellStore<W>,
    // Free list
    pub available: Signal<In, Bit>,
    pub head: Signal<In, Bits<9>>,
    pub pop: Signal<Out, Bit>,
    // Storage
    pub write_en: Signal<Out, Bit>,
    pub write_cell: Signal<Out, Bits<9>>,
    pub write_row: Signal<Out, Bits<5>>,
    pub write_data: Signal<Out, Bits<W>>,
    // Verdict
    pub chain: Signal<Out, Chain>,
    /// `chain` is to be given back.
    pub splice: Signal<Out, Bit>,
    /// `chain` is a good frame.
    pub commit: Signal<Out, Bit>,
    waiting: RamAsync<Chain, LG_WAITING>,
    wptr: DFF<Bits<LG_WAITING>>,
    rptr: DFF<Bits<LG_WAITING>>,
    row: DFF<Bits<5>>,
    cur: DFF<Chain>,
    closed: DFF<Bit>,
    fresh: Signal<Local, Bit>,
    row_now: Signal<Local, Bits<5>>,
    now: Signal<Local, Chain>,
    we: DFF<Bit>,
    we_cell: DFF<Bits<9>>,
    we_row: DFF<Bits<5>>,
    we_data: DFF<Bits<W>>,
    judged: DFF<Chain>,
    give_back: DFF<Bit>,
    accept: DFF<Bit>,
    done: DFF<Bit>,
    no_room: DFF<Bit>,
    #[init(Constant::new((super::rows(K) as u64 - 1).to_bits()))]
    last_row: Constant<Bits<5>>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Writer<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, wptr, rptr, row, cur, closed, we, we_cell, we_row, we_data);
        dff_setup!(self, clock, judged, give_back, accept, done, no_room);
        clock!(self, clock, waiting);
        // Where this beat goes
        self.row_now.next = self.row.q.val();
        self.now.next = self.cur.q.val();
        if self.s.first.val() {
            self.row_now.next = bits::<5>(0);
            self.now.next.count = bits::<6>(0);
            self.now.next.overflow = false;
            self.now.next.head = self.head.val();
        }
        self.fresh.next = !self.row_now.val().any() & !self.now.val().overflow;
        self.pop.next = self.s.valid.val() & self.fresh.val() & self.available.val();
        if self.fresh.val() {
            if self.available.val() {
                self.now.next.tail = self.head.val();
                self.now.next.count = self.now.val().count + 1;
            } else {
                self.now.next.overflow = true;
            }
        }
        if self.s.valid.val() {
            self.cur.d.next = self.now.val();
            self.row.d.next = self.row_now.val() + 1;
            if self.row_now.val() == self.last_row.val() {
                self.row.d.next = bits::<5>(0);
            }
        }
        self.closed.d.next = self.s.valid.val() & self.s.last.val();
        self.we.d.next = self.s.valid.val() & !self.now.val().overflow;
        self.we_cell.d.next = self.now.val().tail;
        self.we_row.d.next = self.row_now.val();
        self.we_data.d.next = self.s.data.val();
        self.write_en.next = self.we.q.val();
        self.write_cell.next = self.we_cell.q.val();
        self.write_row.next = self.we_row.q.val();
        self.write_data.next = self.we_data.q.val();
        // Complete frames wait for their verdict
        self.waiting.write_en.next = self.closed.q.val();
        self.waiting.write_addr.next = self.wptr.q.val();
        self.waiting.write_data.next = self.cur.q.val();
        self.waiting.read_addr.next = self.rptr.q.val();
        if self.closed.q.val() {
            self.wptr.d.next = self.wptr.q.val() + 1;
        }
        if self.s.verdict.val() {
            self.rptr.d.next = self.rptr.q.val() + 1;
        }
        self.judged.d.next = self.waiting.read_data.val();
        self.done.d.next = self.s.verdict.val();
        self.accept.d.next = self.s.verdict.val() & self.s.keep.val() & !self.waiting.read_data.val().overflow;
        self.no_room.d.next = self.s.verdict.val() & self.s.keep.val() & self.waiting.read_data.val().overflow;
        self.give_back.d.next = self.s.verdict.val() & (!self.s.keep.val() | self.waiting.read_data.val().overflow) & self.waiting.read_data.val().count.any();
        self.chain.next = self.judged.q.val();
        self.splice.next = self.give_back.q.val();
        self.commit.next = self.accept.q.val();
        self.s.done.next = self.done.q.val();
        self.s.done_ok.next = self.accept.q.val();
        self.s.done_no_room.next = self.no_room.q.val();
        self.s.done_handle.next = bit_cast::<12, 9>(self.judged.q.val().head);
        if self.reset.val() {
            self.wptr.d.next = bits::<LG_WAITING>(0);
            self.rptr.d.next = bits::<LG_WAITING>(0);
            self.row.d.next = bits::<5>(0);
            self.closed.d.next = false;
            self.we.d.next = false;
            self.accept.d.next = false;
            self.give_back.d.next = false;
            self.done.d.next = false;
        }
    }
}
