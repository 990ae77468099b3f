//! A table of queues and the four-stage pipeline over it: Select - Row - Look - Act. See README.md.

pub mod entry;
pub mod posted;
pub mod ring;
#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::context::line::CtlLine;
use crate::msg::{CtlReq, CtlResp};
use crate::prim::arb::RrPick;
use crate::prim::mux::OneHotMux;
use crate::prim::pack::Gather;
use crate::prim::ram::Ram;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Below this level a FIFO of 16 takes what comes of all operations that may be in the pipeline: up to four.
pub const ROOM_OF_16: u64 = 10;
/// The same of a FIFO of 64.
pub const ROOM_OF_64: u64 = 58;
/// The bits of an index.
pub const INDEX: u64 = 0xffff;

/// `2^LQ` rows of type `Row`, `N` sources of operations of type `Op`, and the control bus: `M` = `N` + 1.
#[derive(LogicBlock, BlockDefault)]
#[demand(M == N + 1 && N >= 2, "M counts the sources and the control bus")]
#[demand((1..=23).contains(&LQ), "a queue number has 24 bits")]
pub struct TablePipe<Op: Synth, Row: Synth, const LQ: usize, const N: usize, const M: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets the operations inside and clears the table (`2^LQ` cycles).
    pub reset: Signal<In, Bit>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// Select. Bit i: source i offers `op[i]` on queue `id[i]`, and there is room for all that may follow from it.
    pub req: Signal<In, Bits<N>>,
    pub op: [Signal<In, Op>; N],
    pub id: [Signal<In, Bits<24>>; N],
    /// One-hot or zero: that source's operation starts. Follows `req` and `id` in the same cycle.
    pub grant: Signal<Out, Bits<N>>,
    /// Row: an operation is waiting for its row.
    pub row_valid: Signal<Out, Bit>,
    pub row_op: Signal<Out, Op>,
    /// Look: an operation has its row.
    pub look_valid: Signal<Out, Bit>,
    pub look_op: Signal<Out, Op>,
    pub look_row: Signal<Out, Row>,
    /// The queue's number has no bits beyond the table.
    pub look_inside: Signal<Out, Bit>,
    /// Act: the operation, its queue, and the row as Look saw it.
    pub act_valid: Signal<Out, Bit>,
    pub act_op: Signal<Out, Op>,
    pub act_id: Signal<Out, Bits<24>>,
    pub act_row: Signal<Out, Row>,
    /// Act: `new_row` becomes the queue's row.
    pub write: Signal<In, Bit>,
    pub new_row: Signal<In, Row>,
    /// Control bus: `look_row` is the row it is going to change a word of.
    pub ctl_look: Signal<Out, Bit>,
    /// The changed row, and what is to be stored of it.
    pub ctl_row: Signal<Out, Row>,
    pub ctl_new_row: Signal<In, Row>,
    /// One cycle: it becomes the row of `ctl_line`; no operation is in the pipeline.
    pub ctl_write: Signal<Out, Bit>,
    pub ctl_line: Signal<Out, Bits<LQ>>,
    line: CtlLine<Row, LQ>,
    table_ram: Ram<Row, LQ>,
    pick: RrPick<M>,
    ops: OneHotMux<Op, N>,
    ids: OneHotMux<Bits<24>, M>,
    hit: Gather<M>,
    last: DFF<Bits<M>>,
    locked: DFF<Bit>,
    booting: DFF<Bit>,
    boot: DFF<Bits<LQ>>,
    row_on: DFF<Bit>,
    row_ctl: DFF<Bit>,
    row_o: DFF<Op>,
    row_id: DFF<Bits<24>>,
    look_on: DFF<Bit>,
    look_for_ctl: DFF<Bit>,
    look_o: DFF<Op>,
    look_id: DFF<Bits<24>>,
    look_r: DFF<Row>,
    act_on: DFF<Bit>,
    act_o: DFF<Op>,
    act_i: DFF<Bits<24>>,
    act_r: DFF<Row>,
    #[init(Constant::new(((1u64 << 24) - (1u64 << LQ)).to_bits()))]
    outside: Constant<Bits<24>>,
    #[init(Constant::new(((1u64 << LQ) - 1).to_bits()))]
    boot_last: Constant<Bits<LQ>>,
    #[init(Constant::new(Row::default()))]
    zero_row: Constant<Row>,
    queues: [Signal<Local, Bits<LQ>>; M],
    row_queue: Signal<Local, Bits<LQ>>,
    look_queue: Signal<Local, Bits<LQ>>,
    act_queue: Signal<Local, Bits<LQ>>,
    asked: Signal<Local, Bits<M>>,
    wanted: Signal<Local, Bits<M>>,
    granted: Signal<Local, Bits<N>>,
    ctl_granted: Signal<Local, Bit>,
    picked_id: Signal<Local, Bits<24>>,
    excess: Signal<Local, Bits<24>>,
}

#[kernel]
impl<Op: Synth, Row: Synth, const LQ: usize, const N: usize, const M: usize> Logic for TablePipe<Op, Row, LQ, N, M> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, last, locked, booting, boot, row_on, row_ctl, row_o, row_id);
        dff_setup!(self, clock, look_on, look_for_ctl, look_o, look_id, look_r, act_on, act_o, act_i, act_r);
        clock!(self, clock, line, table_ram);
        self.line.reset.next = self.reset.val();
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.line.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.line.m_ctl);

        // ---- Select: nobody whose queue has an operation in a later stage; bit 0 and place 0 are the control bus ----
        self.row_queue.next = self.row_id.q.val().get_bits::<LQ>(0);
        self.look_queue.next = self.look_id.q.val().get_bits::<LQ>(0);
        self.act_queue.next = self.act_i.q.val().get_bits::<LQ>(0);
        self.queues[0].next = self.line.addr.val();
        self.ids.x[0].next = bit_cast::<24, LQ>(self.line.addr.val());
        for i in 0..N {
            self.queues[i + 1].next = self.id[i].val().get_bits::<LQ>(0);
            self.ids.x[i + 1].next = self.id[i].val();
            self.ops.x[i].next = self.op[i].val();
        }
        for i in 0..M {
            self.hit.x[i].next = (self.row_on.q.val() & (self.queues[i].val() == self.row_queue.val()))
                | (self.look_on.q.val() & (self.queues[i].val() == self.look_queue.val()))
                | (self.act_on.q.val() & (self.queues[i].val() == self.act_queue.val()));
        }
        self.wanted.next = (bit_cast::<M, N>(self.req.val()) << 1) | bit_cast::<M, 1>(self.line.req.val().into());
        self.asked.next = bits::<M>(0);
        if !self.locked.q.val() & !self.booting.q.val() {
            self.asked.next = self.wanted.val() & !self.hit.y.val();
        }
        self.pick.req.next = self.asked.val();
        self.pick.last.next = self.last.q.val();
        if self.asked.val().any() {
            self.last.d.next = self.pick.grant.val();
        }
        self.granted.next = self.pick.grant.val().get_bits::<N>(1);
        self.ctl_granted.next = self.pick.grant.val().get_bit(0);
        self.grant.next = self.granted.val();
        if self.ctl_granted.val() {
            self.locked.d.next = true;
        }
        self.ops.sel.next = self.granted.val();
        self.ids.sel.next = self.pick.grant.val();
        self.picked_id.next = self.ids.y.val();
        self.table_ram.read_addr.next = self.picked_id.val().get_bits::<LQ>(0);
        self.row_on.d.next = self.granted.val().any();
        self.row_ctl.d.next = self.ctl_granted.val();
        self.row_o.d.next = self.ops.y.val();
        self.row_id.d.next = self.picked_id.val();

        // ---- Row ----
        self.row_valid.next = self.row_on.q.val();
        self.row_op.next = self.row_o.q.val();
        self.look_on.d.next = self.row_on.q.val();
        self.look_for_ctl.d.next = self.row_ctl.q.val();
        self.look_o.d.next = self.row_o.q.val();
        self.look_id.d.next = self.row_id.q.val();
        self.look_r.d.next = self.table_ram.read_data.val();

        // ---- Look ----
        self.look_valid.next = self.look_on.q.val();
        self.look_op.next = self.look_o.q.val();
        self.look_row.next = self.look_r.q.val();
        self.excess.next = self.look_id.q.val() & self.outside.val();
        self.look_inside.next = !self.excess.val().any();
        self.ctl_look.next = self.look_for_ctl.q.val();
        self.line.row.next = self.look_r.q.val();
        self.line.row_valid.next = self.look_for_ctl.q.val();
        self.act_on.d.next = self.look_on.q.val();
        self.act_o.d.next = self.look_o.q.val();
        self.act_i.d.next = self.look_id.q.val();
        self.act_r.d.next = self.look_r.q.val();

        // ---- Act: the table is written by the pipeline, the control bus, or the sweep after a reset ----
        self.act_valid.next = self.act_on.q.val();
        self.act_op.next = self.act_o.q.val();
        self.act_id.next = self.act_i.q.val();
        self.act_row.next = self.act_r.q.val();
        self.ctl_row.next = self.line.new_row.val();
        self.ctl_write.next = self.line.done.val() & self.line.we.val();
        self.ctl_line.next = self.line.addr.val();
        self.table_ram.write_addr.next = self.act_queue.val();
        self.table_ram.write_data.next = self.new_row.val();
        self.table_ram.write_en.next = self.write.val();
        if self.line.done.val() {
            self.table_ram.write_addr.next = self.line.addr.val();
            self.table_ram.write_data.next = self.ctl_new_row.val();
            self.table_ram.write_en.next = self.line.we.val();
            self.locked.d.next = false;
        }
        if self.booting.q.val() {
            self.table_ram.write_addr.next = self.boot.q.val();
            self.table_ram.write_data.next = self.zero_row.val();
            self.table_ram.write_en.next = true;
            self.boot.d.next = self.boot.q.val() + 1;
            if self.boot.q.val() == self.boot_last.val() {
                self.booting.d.next = false;
            }
        }
        if self.reset.val() {
            self.booting.d.next = true;
            self.boot.d.next = bits::<LQ>(0);
            self.locked.d.next = false;
            self.row_on.d.next = false;
            self.row_ctl.d.next = false;
            self.look_on.d.next = false;
            self.look_for_ctl.d.next = false;
            self.act_on.d.next = false;
            // As if the control bus had been the last: source 0 is the first.
            self.last.d.next = bits::<M>(1);
        }
    }
}
