//! Rows of descriptors that have been read, more than one at a time where several are wanted. See README.md.

use crate::msg::RdRow;
use crate::prim::ram::RamAsync;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// log2 of the rows of a block, which lies in one page; and of its bytes. A read goes to the end of its block at most.
const LG_ROWS: usize = 3;
const ROWS: u64 = 1 << LG_ROWS;
const LG_ROW: usize = 6;
const LG_BLOCK: usize = LG_ROW + LG_ROWS;
/// log2 of the descriptors in a row, and what rounds up to rows.
const LG_DESCS: usize = 2;
const ROUND_UP: u64 = (1 << LG_DESCS) - 1;
/// The bit of the first row.
const FIRST: u64 = 1;

/// A block of rows of a ring, and one of an indirect table.
#[derive(LogicBlock, BlockDefault)]
pub struct Ahead {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not while a read is in flight.
    pub reset: Signal<In, Bit>,
    /// Where a descriptor lies, of an indirect table (`inside`) or of a ring, and how many from there on will be wanted, 1 to 32.
    pub at: Signal<In, Bits<64>>,
    pub inside: Signal<In, Bit>,
    pub wanted: Signal<In, Bits<6>>,
    /// Its row is here; the row.
    pub here: Signal<Out, Bit>,
    pub row: Signal<Out, Bits<512>>,
    /// Rows of a read are still to come. Rows of the next one, from that of `at` on.
    pub busy: Signal<Out, Bit>,
    pub rows: Signal<Out, Bits<4>>,
    /// Pulse: it goes out; not while `busy`.
    pub goes: Signal<In, Bit>,
    /// A row comes.
    pub comes: Signal<In, Bit>,
    pub came: Signal<In, RdRow>,
    /// Pulses: what has been read so far says nothing any more; that of tables does not.
    pub forget: Signal<In, Bit>,
    pub forget_table: Signal<In, Bit>,
    kept: RamAsync<Bits<512>, { LG_ROWS + 1 }>,
    /// Which block, and which of its rows: of the ring, and of the table.
    ring_at: DFF<Bits<64>>,
    ring_has: DFF<Bits<8>>,
    table_at: DFF<Bits<64>>,
    table_has: DFF<Bits<8>>,
    /// Of the read that is under way: rows to come, the place of the next one, whether it is of a table, and whether it still says something.
    coming: DFF<Bits<4>>,
    next: DFF<Bits<3>>,
    of_table: DFF<Bit>,
    live: DFF<Bit>,
    number: Signal<Local, Bits<3>>,
    block: Signal<Local, Bits<64>>,
    one: Signal<Local, Bits<8>>,
    good: Signal<Local, Bit>,
    has: Signal<Local, Bits<8>>,
    same: Signal<Local, Bit>,
    most: Signal<Local, Bits<4>>,
    first: Signal<Local, Bits<6>>,
    descs: Signal<Local, Bits<6>>,
    all: Signal<Local, Bits<4>>,
}

#[kernel]
impl Logic for Ahead {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, ring_at, ring_has, table_at, table_has, coming, next, of_table, live);
        self.kept.clock.next = self.clock.val();
        self.number.next = self.at.val().get_bits::<LG_ROWS>(LG_ROW);
        self.block.next = self.at.val() >> LG_BLOCK as u64;
        self.kept.read_addr.next = bit_cast::<4, 3>(self.number.val());
        self.has.next = self.ring_has.q.val();
        self.same.next = self.block.val() == self.ring_at.q.val();
        if self.inside.val() {
            self.kept.read_addr.next = bit_cast::<4, 3>(self.number.val()) | ROWS;
            self.has.next = self.table_has.q.val();
            self.same.next = self.block.val() == self.table_at.q.val();
        }
        self.row.next = self.kept.read_data.val();
        self.here.next = self.same.val() & self.has.val().get_bit(self.number.val().index());
        self.busy.next = self.coming.q.val().any();
        self.most.next = bits::<4>(ROWS) - bit_cast::<4, 3>(self.number.val());
        self.first.next = bit_cast::<6, 2>(self.at.val().get_bits::<2>(4)) + ROUND_UP;
        self.descs.next = self.wanted.val() + self.first.val();
        self.all.next = self.descs.val().get_bits::<4>(LG_DESCS);
        self.rows.next = self.all.val();
        if self.all.val() > self.most.val() {
            self.rows.next = self.most.val();
        }

        // A row that comes.
        self.kept.write_addr.next = bit_cast::<4, 3>(self.next.q.val());
        if self.of_table.q.val() {
            self.kept.write_addr.next = bit_cast::<4, 3>(self.next.q.val()) | ROWS;
        }
        self.kept.write_data.next = self.came.val().data;
        self.kept.write_en.next = self.comes.val();
        self.one.next = bits::<8>(FIRST) << bit_cast::<8, 3>(self.next.q.val());
        self.good.next = self.comes.val() & !self.came.val().err & self.live.q.val();
        if self.comes.val() {
            self.next.d.next = self.next.q.val() + 1;
            self.coming.d.next = self.coming.q.val() - 1;
        }
        if self.good.val() & !self.of_table.q.val() {
            self.ring_has.d.next = self.ring_has.q.val() | self.one.val();
        }
        if self.good.val() & self.of_table.q.val() {
            self.table_has.d.next = self.table_has.q.val() | self.one.val();
        }
        if self.forget_table.val() {
            self.table_has.d.next = bits::<8>(0);
            if self.of_table.q.val() {
                self.live.d.next = false;
            }
        }
        if self.forget.val() {
            self.ring_has.d.next = bits::<8>(0);
            self.table_has.d.next = bits::<8>(0);
            self.live.d.next = false;
        }
        if self.goes.val() {
            self.coming.d.next = self.rows.val();
            self.next.d.next = self.number.val();
            self.of_table.d.next = self.inside.val();
            self.live.d.next = true;
            if self.inside.val() {
                self.table_at.d.next = self.block.val();
                self.table_has.d.next = bits::<8>(0);
            } else {
                self.ring_at.d.next = self.block.val();
                self.ring_has.d.next = bits::<8>(0);
            }
        }
        if self.reset.val() {
            self.coming.d.next = bits::<4>(0);
            self.ring_has.d.next = bits::<8>(0);
            self.table_has.d.next = bits::<8>(0);
        }
    }
}
