//! The rows of receive work requests between the host and their buffers: blocks that are fetched ahead, and an area through which the others pass. See README.md.

#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::RdRow;
use crate::prim::ram::{Ram, RamAsync2};
use crate::stream::MsgFifo;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Rows of a block.
const ROWS: u64 = 8;
/// The passing area is the last eighth of the rows.
const PASSING: u64 = 7;

/// How many of `2^lb` blocks are for what is fetched ahead.
pub(super) const fn blocks(lb: usize) -> u64 {
    PASSING << (lb - 3)
}

/// Where the rows of a read go: through the passing area, or to a block from `row` on.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(crate) struct RqDue {
    pub(crate) passing: Bit,
    pub(crate) block: Bits<7>,
    pub(crate) row: Bits<3>,
}

/// A slot's rows go to its buffer: `passing`, or those of a block from `row` on, which is free then if `frees`. Or (`release`) `count` blocks from `block` on
/// are given back. `tag` as in `RdRow`.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(crate) struct RqCopy {
    pub(crate) release: Bit,
    pub(crate) passing: Bit,
    pub(crate) frees: Bit,
    pub(crate) block: Bits<7>,
    pub(crate) row: Bits<3>,
    pub(crate) tag: Bits<8>,
    pub(crate) count: Bits<4>,
}

/// The block behind another one of the same ring, and its slots.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(crate) struct RqLink {
    pub(crate) block: Bits<7>,
    pub(crate) slots: Bits<4>,
}

#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Row {
    data: Bits<512>,
    err: Bit,
}

/// `2^LB` blocks of 8 rows, `LR` = `LB` + 3; an eighth of them is the passing area.
#[derive(LogicBlock, BlockDefault)]
#[demand(LR == LB + 3 && LB >= 4 && LB <= 7, "2^LB blocks of 8 rows")]
pub(super) struct RqAhead<const LB: usize, const LR: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; all blocks become free.
    pub reset: Signal<In, Bit>,
    /// Fetched rows, in the order of the reads.
    pub s_rd: MsgSink<RdRow>,
    /// Whose rows come: one per read, in the order of the reads.
    pub s_due: MsgSink<RqDue>,
    /// With `s_due`: the rows of a read that passes, else 0; there is room for eight.
    pub passes: Signal<In, Bits<4>>,
    pub pass_ok: Signal<Out, Bit>,
    pub s_copy: MsgSink<RqCopy>,
    /// Rows for the buffers; they have to be taken.
    pub m_row: MsgSrc<RdRow>,
    /// A free block, and whether it is taken.
    pub block: Signal<Out, Bits<7>>,
    pub block_ok: Signal<Out, Bit>,
    pub take: Signal<In, Bit>,
    /// How many blocks a ring may have as things stand, and whether half of all are free.
    pub limit: Signal<Out, Bits<4>>,
    pub roomy: Signal<Out, Bit>,
    /// The chains: what comes behind block `link_at` is written, what comes behind `look_at` is `chained`.
    pub link_en: Signal<In, Bit>,
    pub link_at: Signal<In, Bits<7>>,
    pub link: Signal<In, RqLink>,
    pub look_at: Signal<In, Bits<7>>,
    pub chained: Signal<Out, RqLink>,
    rows: Ram<Row, LR>,
    links: RamAsync2<RqLink, LB>,
    due: MsgFifo<RqDue, 6>,
    copies: MsgFifo<RqCopy, 6>,
    free: MsgFifo<Bits<7>, LB>,
    boot: DFF<Bits<8>>,
    /// A block was taken, and is still to leave the queue.
    taken: DFF<Bit>,
    left: DFF<Bit>,
    share: DFF<Bits<4>>,
    half: DFF<Bit>,
    /// A block's rows are there when the two are equal: the one changes with its read, the other with its last row.
    asked: RamAsync2<Bit, LB>,
    came: RamAsync2<Bit, LB>,
    // The passing area: rows that are promised, rows that are there, where the next one comes and goes.
    promised: DFF<Bits<8>>,
    present: DFF<Bits<8>>,
    comes_at: DFF<Bits<LB>>,
    goes_at: DFF<Bits<LB>>,
    // The copier.
    row: DFF<Bits<3>>,
    walk: DFF<Bits<7>>,
    walked: DFF<Bits<4>>,
    out_valid: DFF<Bit>,
    /// A block is free again.
    back: DFF<Bits<7>>,
    comes_back: DFF<Bit>,
    out_tag: DFF<Bits<8>>,
    out_row: DFF<Bits<3>>,
    out_last: DFF<Bit>,
    #[init(Constant::new(blocks(LB).to_bits()))]
    blocks: Constant<Bits<8>>,
    #[init(Constant::new(((1u64 << LB) - ROWS).to_bits()))]
    most: Constant<Bits<8>>,
    #[init(Constant::new((PASSING << LB).to_bits()))]
    area: Constant<Bits<LR>>,
    booting: Signal<Local, Bit>,
    level: Signal<Local, Bits<16>>,
    eighth: Signal<Local, Bits<4>>,
    begins: Signal<Local, Bit>,
    begun: Signal<Local, Bits<7>>,
    lands: Signal<Local, Bit>,
    into: Signal<Local, Bits<7>>,
    to: Signal<Local, RqDue>,
    place: Signal<Local, Bits<3>>,
    arrives: Signal<Local, Bit>,
    passes_in: Signal<Local, Bit>,
    head: Signal<Local, RqCopy>,
    here: Signal<Local, Bits<7>>,
    filled: Signal<Local, Bit>,
    stride: Signal<Local, Bits<2>>,
    tag: Signal<Local, Bits<8>>,
    count: Signal<Local, Bits<4>>,
    last_row: Signal<Local, Bit>,
    copies_one: Signal<Local, Bit>,
    passes_on: Signal<Local, Bit>,
    releases: Signal<Local, Bit>,
    from: Signal<Local, Bits<3>>,
    walked_on: Signal<Local, Bits<4>>,
    rows_on: Signal<Local, Bits<4>>,
    over: Signal<Local, Bit>,
    gone: Signal<Local, Bits<8>>,
}

#[kernel]
impl<const LB: usize, const LR: usize> Logic for RqAhead<LB, LR> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, boot, taken, left, share, half, promised, present, comes_at, goes_at, row, walk, walked, out_valid, back, comes_back, out_tag, out_row, out_last);
        clock!(self, clock, rows, links, due, copies, free, asked, came);
        self.due.reset.next = self.reset.val();
        self.copies.reset.next = self.reset.val();
        self.free.reset.next = self.reset.val();
        MsgSink::<RqDue>::link(&mut self.s_due, &mut self.due.s);
        MsgSink::<RqCopy>::link(&mut self.s_copy, &mut self.copies.s);

        // ---- Free blocks: filled once with all numbers after a reset, later with what comes back ----
        self.booting.next = !(self.boot.q.val() == self.blocks.val());
        self.block.next = self.free.m.data.val();
        // The one that is taken leaves a cycle later.
        self.taken.d.next = self.take.val();
        self.block_ok.next = self.free.m.valid.val() & !self.booting.val() & !self.taken.q.val() & !self.left.q.val();
        self.free.m.ready.next = self.taken.q.val() | self.left.q.val();
        self.left.d.next = (self.taken.q.val() | self.left.q.val()) & !self.free.m.valid.val();
        self.level.next = self.free.level.val();
        self.eighth.next = self.level.val().get_bits::<4>(3);
        self.share.d.next = self.eighth.val() + 1;
        self.half.d.next = self.level.val() >= (bit_cast::<16, 8>(self.blocks.val()) >> 1);
        self.limit.next = self.share.q.val();
        self.roomy.next = self.half.q.val();
        self.links.write_en.next = self.link_en.val();
        self.links.write_addr.next = self.link_at.val().get_bits::<LB>(0);
        self.links.write_data.next = self.link.val();
        self.links.read_addr0.next = self.look_at.val().get_bits::<LB>(0);
        self.chained.next = self.links.read_data0.val();

        // ---- Rows from the host ----
        self.begun.next = self.s_due.data.val().block;
        self.begins.next = self.s_due.valid.val() & self.s_due.ready.val() & !self.s_due.data.val().passing;
        self.came.read_addr0.next = self.begun.val().get_bits::<LB>(0);
        self.asked.write_addr.next = self.begun.val().get_bits::<LB>(0);
        self.asked.write_data.next = !self.came.read_data0.val();
        self.asked.write_en.next = self.begins.val();
        self.s_rd.ready.next = self.due.m.valid.val();
        self.lands.next = self.s_rd.valid.val() & self.due.m.valid.val();
        self.to.next = self.due.m.data.val();
        self.into.next = self.to.val().block;
        self.arrives.next = self.lands.val() & self.s_rd.data.val().last;
        self.due.m.ready.next = self.arrives.val();
        self.asked.read_addr0.next = self.into.val().get_bits::<LB>(0);
        self.came.write_addr.next = self.into.val().get_bits::<LB>(0);
        self.came.write_data.next = self.asked.read_data0.val();
        self.came.write_en.next = self.arrives.val() & !self.to.val().passing;
        self.passes_in.next = self.lands.val() & self.to.val().passing;
        self.place.next = self.to.val().row + self.s_rd.data.val().row;
        self.rows.write_addr.next = (bit_cast::<LR, 7>(self.to.val().block) << 3) | bit_cast::<LR, 3>(self.place.val());
        if self.to.val().passing {
            self.rows.write_addr.next = self.area.val() | bit_cast::<LR, LB>(self.comes_at.q.val());
        }
        self.rows.write_data.next.data = self.s_rd.data.val().data;
        self.rows.write_data.next.err = self.s_rd.data.val().err;
        self.rows.write_en.next = self.lands.val();
        if self.passes_in.val() {
            self.comes_at.d.next = self.comes_at.q.val() + 1;
        }

        // ---- Rows to the buffers, a row per cycle, in the order of the grants; blocks that are given back wait in that order, too: what is copied before
        // them is out, and a read that is on its way to them has come ----
        self.head.next = self.copies.m.data.val();
        self.tag.next = self.head.val().tag;
        self.stride.next = self.tag.val().get_bits::<2>(6);
        self.count.next = bits::<4>(1) << self.stride.val();
        self.here.next = self.head.val().block;
        if self.walked.q.val().any() {
            self.here.next = self.walk.q.val();
        }
        self.asked.read_addr1.next = self.here.val().get_bits::<LB>(0);
        self.came.read_addr1.next = self.here.val().get_bits::<LB>(0);
        self.links.read_addr1.next = self.here.val().get_bits::<LB>(0);
        self.filled.next = self.asked.read_data1.val() == self.came.read_data1.val();
        self.rows_on.next = bit_cast::<4, 3>(self.row.q.val()) + 1;
        self.last_row.next = self.rows_on.val() == self.count.val();
        self.passes_on.next = self.copies.m.valid.val() & !self.head.val().release & self.head.val().passing & self.present.q.val().any();
        self.copies_one.next = self.passes_on.val() | (self.copies.m.valid.val() & !self.head.val().release & !self.head.val().passing & self.filled.val());
        self.releases.next = self.copies.m.valid.val() & self.head.val().release & self.filled.val();
        self.walked_on.next = self.walked.q.val() + 1;
        self.over.next = self.walked_on.val() == self.head.val().count;
        self.copies.m.ready.next = (self.copies_one.val() & self.last_row.val()) | (self.releases.val() & self.over.val());
        self.from.next = self.head.val().row + self.row.q.val();
        self.rows.read_addr.next = (bit_cast::<LR, 7>(self.here.val()) << 3) | bit_cast::<LR, 3>(self.from.val());
        if self.head.val().passing {
            self.rows.read_addr.next = self.area.val() | bit_cast::<LR, LB>(self.goes_at.q.val());
        }
        if self.passes_on.val() {
            self.goes_at.d.next = self.goes_at.q.val() + 1;
        }
        if self.copies_one.val() {
            self.row.d.next = self.row.q.val() + 1;
            if self.last_row.val() {
                self.row.d.next = bits::<3>(0);
            }
        }
        if self.releases.val() {
            self.walk.d.next = self.links.read_data1.val().block;
            self.walked.d.next = self.walked_on.val();
            if self.over.val() {
                self.walked.d.next = bits::<4>(0);
            }
        }
        self.out_valid.d.next = self.copies_one.val();
        self.out_tag.d.next = self.tag.val();
        self.out_row.d.next = self.row.q.val();
        self.out_last.d.next = self.last_row.val();
        self.m_row.valid.next = self.out_valid.q.val();
        self.m_row.data.next.tag = self.out_tag.q.val();
        self.m_row.data.next.row = self.out_row.q.val();
        self.m_row.data.next.last = self.out_last.q.val();
        self.m_row.data.next.err = self.rows.read_data.val().err;
        self.m_row.data.next.data = self.rows.read_data.val().data;

        // ---- What comes back ----
        self.back.d.next = self.here.val();
        self.comes_back.d.next = self.releases.val() | (self.copies_one.val() & self.last_row.val() & self.head.val().frees);
        self.free.s.data.next = self.back.q.val();
        self.free.s.valid.next = self.comes_back.q.val();
        if self.booting.val() {
            self.free.s.data.next = self.boot.q.val().get_bits::<7>(0);
            self.free.s.valid.next = true;
            if self.free.s.ready.val() {
                self.boot.d.next = self.boot.q.val() + 1;
            }
        }
        self.gone.next = bits::<8>(0);
        if self.passes_on.val() {
            self.gone.next = bits::<8>(1);
        }
        self.promised.d.next = self.promised.q.val() + bit_cast::<8, 4>(self.passes.val()) - self.gone.val();
        self.pass_ok.next = self.promised.q.val() <= self.most.val();
        if self.passes_in.val() & !self.passes_on.val() {
            self.present.d.next = self.present.q.val() + 1;
        }
        if self.passes_on.val() & !self.passes_in.val() {
            self.present.d.next = self.present.q.val() - 1;
        }
        if self.reset.val() {
            self.boot.d.next = bits::<8>(0);
            self.promised.d.next = bits::<8>(0);
            self.present.d.next = bits::<8>(0);
            self.comes_at.d.next = bits::<LB>(0);
            self.goes_at.d.next = bits::<LB>(0);
            self.row.d.next = bits::<3>(0);
            self.walked.d.next = bits::<4>(0);
            self.out_valid.d.next = false;
            self.comes_back.d.next = false;
            self.taken.d.next = false;
            self.left.d.next = false;
        }
    }
}
