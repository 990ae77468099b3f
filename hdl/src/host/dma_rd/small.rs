//! One port of small reads: a ring of tags (reads in flight) and a ring of 64-byte rows (their space), both taken in
//! command order and given back in command order, filled by the host in any order.

use super::shares::{Share, LARGEST, LOG_MOST_ROWS, SMALLEST};
use super::RdState;
use crate::bus::{MsgSink, MsgSrc};
use crate::host::dma::{BurstCmd, FrontMark};
use crate::msg::{RdCmd, RdRow};
use crate::prim::ram::RamAsync;
use crate::stream::{MsgFifo, MsgSkid};
use ferric_hdl_derive::{kernel, BlockNew};
use rust_hdl::prelude::*;

/// Rows that may be on their way to the client.
const CREDIT: u64 = 8;

/// What a tag stands for.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct TagMeta {
    /// The client's tag.
    pub tag: Bits<8>,
    /// Rows, 1 to 8.
    pub rows: Bits<4>,
    /// First row in the port's ring.
    pub start: Bits<9>,
}

/// The part of a row that does not come from the row buffer.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct RowMeta {
    /// The client's tag.
    pub tag: Bits<8>,
    /// Row number.
    pub row: Bits<3>,
    /// Last row of its command.
    pub last: Bit,
    /// The read failed.
    pub err: Bit,
}

/// The ids of a share (a power of two, aligned), each a tag of this port, and its rows of the shared row buffer.
///
/// `LT`: low bits of an id that tell small reads apart. `LR`: log2 of the rows in the row buffer. `lk`: log2 of the bytes per beat. `payload`: log2 of the ids below those of small reads.
#[derive(LogicBlock, BlockNew)]
#[given(share: Share, lk: usize, payload: usize)]
#[demand(share.ids.is_power_of_two() && (SMALLEST as u64..=LARGEST as u64).contains(&share.ids) && share.base.is_multiple_of(share.ids) && share.base >= 1 << payload)]
#[demand(share.row + share.rows <= 1 << LR && share.rows <= 1 << LOG_MOST_ROWS && share.row.is_multiple_of(share.rows), "the row buffer has rows for every share, and rings of up to 512")]
pub struct SmallPort<const LT: usize, const LR: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<RdCmd>,
    pub m: MsgSrc<RdRow>,
    /// To the arbiter.
    pub req_valid: Signal<Out, Bit>,
    pub req: Signal<Out, BurstCmd>,
    pub req_state: Signal<Out, RdState>,
    pub req_take: Signal<In, Bit>,
    /// From the landing pipeline: all rows of a tag (of any port) are in the row buffer.
    pub fin_valid: Signal<In, Bit>,
    pub fin_tag: Signal<In, Bits<LT>>,
    pub fin_err: Signal<In, Bit>,
    /// Wish to read a row; its data come in the cycle after `get_take`.
    pub get_valid: Signal<Out, Bit>,
    pub get_row: Signal<Out, Bits<LR>>,
    pub get_take: Signal<In, Bit>,
    pub row_data: Signal<In, Bits<512>>,
    pub mark: Signal<In, Bit>,
    pub clear: Signal<Out, Bit>,
    inlet: MsgSkid<RdCmd>,
    outlet: MsgFifo<RdRow, 3>,
    front: FrontMark,
    metas: RamAsync<TagMeta, 6>,
    errs: RamAsync<Bit, 6>,
    /// Request register and rings' write ends.
    rq_valid: DFF<Bit>,
    rq: DFF<BurstCmd>,
    rq_state: DFF<RdState>,
    tail: DFF<Bits<6>>,
    row_tail: DFF<Bits<9>>,
    tags_free: DFF<Bits<7>>,
    rows_free: DFF<Bits<10>>,
    /// A command was taken in the last cycle, with so many rows: counted in this one, because `s.valid` may come late.
    took: DFF<Bit>,
    took_rows: DFF<Bits<4>>,
    /// Tags whose rows have all arrived.
    done: DFF<Bits<64>>,
    /// The command whose rows are leaving.
    head: DFF<Bits<6>>,
    cur_valid: DFF<Bit>,
    cur: DFF<RowMeta>,
    cur_row: DFF<Bits<9>>,
    cur_left: DFF<Bits<4>>,
    sent_valid: DFF<Bit>,
    sent: DFF<RowMeta>,
    credit: DFF<Bits<4>>,
    /// The first id, and its tag.
    #[init(Constant::new(share.base.into()))]
    id_base: Constant<Bits<9>>,
    #[init(Constant::new((share.base & ((1 << LT) - 1)).into()))]
    tag_base: Constant<Bits<LT>>,
    #[init(Constant::new((share.ids - 1).into()))]
    tag_mask: Constant<Bits<6>>,
    #[init(Constant::new((((1 << LT) - 1) & !(share.ids - 1)).into()))]
    tag_upper: Constant<Bits<LT>>,
    #[init(Constant::new(share.row.into()))]
    row_base: Constant<Bits<LR>>,
    #[init(Constant::new((share.rows - 1).into()))]
    row_mask: Constant<Bits<9>>,
    #[init(Constant::new(share.ids.into()))]
    tags: Constant<Bits<7>>,
    #[init(Constant::new(share.rows.into()))]
    rows: Constant<Bits<10>>,
    #[init(Constant::new((6 - lk as u64).into()))]
    beats: Constant<Bits<4>>,
    #[init(Constant::new(1u64.into()))]
    one: Constant<Bits<64>>,
    take: Signal<Local, Bit>,
    load: Signal<Local, Bit>,
    tail_on: Signal<Local, Bits<6>>,
    head_on: Signal<Local, Bits<6>>,
    row_on: Signal<Local, Bits<9>>,
    want: Signal<Local, Bits<4>>,
    took10: Signal<Local, Bits<10>>,
    room: Signal<Local, Bit>,
    open: Signal<Local, Bit>,
    fin_here: Signal<Local, Bit>,
    at_head: Signal<Local, Bit>,
    last: Signal<Local, Bits<9>>,
    fin_index: Signal<Local, Bits<6>>,
    fin_upper: Signal<Local, Bits<LT>>,
    set: Signal<Local, Bits<64>>,
    unset: Signal<Local, Bits<64>>,
    is_last: Signal<Local, Bit>,
    left: Signal<Local, Bit>,
}

#[kernel]
impl<const LT: usize, const LR: usize> Logic for SmallPort<LT, LR> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, rq_valid, rq, rq_state, tail, row_tail, tags_free, rows_free, done);
        dff_setup!(self, clock, head, cur_valid, cur, cur_row, cur_left, sent_valid, sent, credit, took, took_rows);
        clock!(self, clock, inlet, outlet, front, metas, errs);
        self.inlet.reset.next = self.reset.val();
        self.outlet.reset.next = self.reset.val();
        self.front.reset.next = self.reset.val();
        MsgSink::<RdCmd>::link(&mut self.s, &mut self.inlet.s);
        MsgSrc::<RdRow>::link(&mut self.m, &mut self.outlet.m);

        // A command takes a tag and its rows, and becomes a request.
        self.tail_on.next = self.tail.q.val() + 1;
        self.head_on.next = self.head.q.val() + 1;
        self.row_on.next = self.cur_row.q.val() + 1;
        self.want.next = self.inlet.m.data.val().rows;
        // Room for the largest command, so that `ready` does not follow the command on offer, and for one not counted yet.
        self.room.next = self.rows_free.q.val().get_bits::<7>(3).any() & self.tags_free.q.val().any();
        if self.took.q.val() {
            self.room.next = self.rows_free.q.val().get_bits::<6>(4).any() & self.tags_free.q.val().get_bits::<6>(1).any();
        }
        self.open.next = self.room.val() & (!self.rq_valid.q.val() | self.req_take.val());
        self.take.next = self.inlet.m.valid.val() & self.open.val();
        self.took.d.next = self.take.val();
        self.took_rows.d.next = self.want.val();
        self.inlet.m.ready.next = self.open.val();
        self.last.next = (bit_cast::<9, 4>(self.want.val()) << self.beats.val()) - 1;
        self.metas.write_addr.next = self.tail.q.val();
        self.metas.write_en.next = self.take.val();
        self.metas.write_data.next.tag = self.inlet.m.data.val().tag;
        self.metas.write_data.next.rows = self.want.val();
        self.metas.write_data.next.start = self.row_tail.q.val();
        if self.req_take.val() {
            self.rq_valid.d.next = false;
        }
        if self.take.val() {
            self.rq_valid.d.next = true;
            self.rq.d.next.addr = self.inlet.m.data.val().iova;
            self.rq.d.next.last = self.last.val();
            self.rq.d.next.function = self.inlet.m.data.val().function;
            self.rq.d.next.id = self.id_base.val() | bit_cast::<9, 6>(self.tail.q.val());
            self.rq_state.d.next.row = bit_cast::<13, LR>(self.row_base.val()) | bit_cast::<13, 9>(self.row_tail.q.val());
            self.rq_state.d.next.last = self.last.val();
            self.tail.d.next = self.tail_on.val() & self.tag_mask.val();
            self.row_tail.d.next = (self.row_tail.q.val() + bit_cast::<9, 4>(self.want.val())) & self.row_mask.val();
        }
        self.req_valid.next = self.rq_valid.q.val();
        self.req.next = self.rq.q.val();
        self.req_state.next = self.rq_state.q.val();

        // Arrival of a tag's last row.
        self.fin_index.next = self.fin_tag.val().get_bits::<6>(0) & self.tag_mask.val();
        self.fin_upper.next = self.fin_tag.val() & self.tag_upper.val();
        self.set.next = bits::<64>(0);
        self.errs.write_addr.next = self.fin_index.val();
        self.errs.write_data.next = self.fin_err.val();
        self.errs.write_en.next = false;
        self.fin_here.next = self.fin_valid.val() & (self.fin_upper.val() == self.tag_base.val());
        if self.fin_here.val() {
            self.set.next = self.one.val() << self.fin_index.val();
            self.errs.write_en.next = true;
        }

        // The oldest command, once complete, leaves row by row.
        self.metas.read_addr.next = self.head.q.val();
        self.errs.read_addr.next = self.head.q.val();
        self.at_head.next = self.fin_here.val() & (self.fin_index.val() == self.head.q.val());
        self.load.next = !self.cur_valid.q.val() & (self.done.q.val().get_bit(self.head.q.val().index()) | self.at_head.val());
        self.unset.next = bits::<64>(0);
        self.is_last.next = self.cur_left.q.val() == 1;
        self.get_valid.next = self.cur_valid.q.val() & self.credit.q.val().any();
        self.get_row.next = self.row_base.val() | bit_cast::<LR, 9>(self.cur_row.q.val());
        self.sent_valid.d.next = self.get_take.val();
        self.sent.d.next = self.cur.q.val();
        self.sent.d.next.last = self.is_last.val();
        if self.get_take.val() {
            self.cur_row.d.next = self.row_on.val() & self.row_mask.val();
            self.cur_left.d.next = self.cur_left.q.val() - 1;
            self.cur.d.next.row = self.cur.q.val().row + 1;
            if self.is_last.val() {
                self.cur_valid.d.next = false;
            }
        }
        if self.load.val() {
            self.unset.next = self.one.val() << self.head.q.val();
            self.head.d.next = self.head_on.val() & self.tag_mask.val();
            self.cur_valid.d.next = true;
            self.cur.d.next.tag = self.metas.read_data.val().tag;
            self.cur.d.next.row = bits::<3>(0);
            self.cur.d.next.err = self.errs.read_data.val();
            if self.at_head.val() {
                self.cur.d.next.err = self.fin_err.val();
            }
            self.cur_row.d.next = self.metas.read_data.val().start;
            self.cur_left.d.next = self.metas.read_data.val().rows;
        }
        self.done.d.next = (self.done.q.val() | self.set.val()) & !self.unset.val();
        self.outlet.s.valid.next = self.sent_valid.q.val();
        self.outlet.s.data.next.tag = self.sent.q.val().tag;
        self.outlet.s.data.next.row = self.sent.q.val().row;
        self.outlet.s.data.next.last = self.sent.q.val().last;
        self.outlet.s.data.next.err = self.sent.q.val().err;
        self.outlet.s.data.next.data = self.row_data.val();

        // Space: tags come back as a command starts to leave, rows as they are read, credits as the client takes them.
        self.took10.next = bit_cast::<10, 4>(self.took_rows.q.val());
        if self.took.q.val() & !self.load.val() {
            self.tags_free.d.next = self.tags_free.q.val() - 1;
        }
        if self.load.val() & !self.took.q.val() {
            self.tags_free.d.next = self.tags_free.q.val() + 1;
        }
        if self.took.q.val() & self.get_take.val() {
            self.rows_free.d.next = self.rows_free.q.val() - self.took10.val() + 1;
        } else if self.took.q.val() {
            self.rows_free.d.next = self.rows_free.q.val() - self.took10.val();
        } else if self.get_take.val() {
            self.rows_free.d.next = self.rows_free.q.val() + 1;
        }
        self.left.next = self.m.valid.val() & self.m.ready.val();
        if self.get_take.val() & !self.left.val() {
            self.credit.d.next = self.credit.q.val() - 1;
        }
        if self.left.val() & !self.get_take.val() {
            self.credit.d.next = self.credit.q.val() + 1;
        }

        self.front.push.next = self.s.valid.val() & self.s.ready.val();
        self.front.pop.next = self.req_take.val();
        self.front.mark.next = self.mark.val();
        self.clear.next = self.front.clear.val();
        if self.reset.val() {
            self.rq_valid.d.next = false;
            self.took.d.next = false;
            self.tail.d.next = bits::<6>(0);
            self.row_tail.d.next = bits::<9>(0);
            self.tags_free.d.next = self.tags.val();
            self.rows_free.d.next = self.rows.val();
            self.done.d.next = bits::<64>(0);
            self.head.d.next = bits::<6>(0);
            self.cur_valid.d.next = false;
            self.sent_valid.d.next = false;
            self.credit.d.next = bits::<4>(CREDIT);
        }
    }
}
