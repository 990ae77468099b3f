//! Event writer. See README.md.
//!
//! The four-stage pipeline of `host/cq` over the table of event queues.

mod report;
#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::host::ctl::line::CtlLine;
use crate::msg::{CtlReq, CtlResp, DoorbellMsg, EqeReq, MsixReq, WrDone, WrSmall};
use crate::prim::arb::RrPick;
use crate::prim::mux::OneHotMux;
use crate::prim::pack::Cast;
use crate::prim::ram::Ram;
use crate::prim::sum::Sum;
use crate::records::{EqCtx, Eqe};
use crate::stream::{MsgFifo, MsgSlice};
use report::EventReporter;
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// What bit i of `stat` counts. `eq_bad`: event for a queue that does not exist.
pub const STATS: &[&str] = &["eqe_written", "eq_bad", "eq_overflow", "eq_db_bad", "eq_db_overrun", "eq_msix", "eq_write_errors"];

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Kind {
    Eqe,
    Doorbell,
    Ctl,
}

/// One operation in the pipeline; `function` and `index` are a doorbell's, the rest an event's.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Op {
    kind: Kind,
    id: Bits<24>,
    function: Bits<12>,
    index: Bits<16>,
    event: Bits<8>,
    about: Bits<24>,
    cause: Bits<16>,
}

/// What Look finds out for Act.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Facts {
    /// The queue exists and the number has no bits beyond the table.
    exists: Bit,
    /// The doorbell's function owns it.
    mine: Bit,
    /// producer - consumer.
    unread: Bits<16>,
    /// producer - index of the doorbell.
    unread_then: Bits<16>,
    /// Bytes from `base` to the next entry.
    offset: Bits<24>,
    phase: Bit,
}

/// An entry to be written.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Entry {
    iova: Bits<64>,
    function: Bits<12>,
    data: Bits<128>,
}

/// Event-queue unit for `2^LQ` queues. Ports of `s_req`: completions, asynchronous events.
#[derive(LogicBlock, BlockDefault)]
pub struct EventWriter<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; clears the table (`2^LQ` cycles).
    pub reset: Signal<In, Bit>,
    pub s_req: [MsgSink<EqeReq>; 2],
    pub s_db: MsgSink<DoorbellMsg>,
    pub m_wr: MsgSrc<WrSmall>,
    pub s_done: MsgSink<WrDone>,
    pub m_msix: MsgSrc<MsixReq>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<7>>,
    reqs: [MsgSlice<EqeReq>; 2],
    db: MsgSlice<DoorbellMsg>,
    line: CtlLine<EqCtx, LQ>,
    table_ram: Ram<EqCtx, LQ>,
    entries: MsgFifo<Entry, 4>,
    entry_bits: Cast<Eqe, Bits<128>>,
    reporter: EventReporter,
    entry: DFF<Entry>,
    eqe: DFF<Eqe>,
    entry_offset: DFF<Bits<24>>,
    place: Sum<64>,
    entry_valid: DFF<Bit>,
    counts: DFF<Bits<7>>,
    pick: RrPick<4>,
    ops: OneHotMux<Op, 4>,
    last: DFF<Bits<4>>,
    booting: DFF<Bit>,
    boot: DFF<Bits<LQ>>,
    locked: DFF<Bit>,
    row_valid: DFF<Bit>,
    row_op: DFF<Op>,
    look_valid: DFF<Bit>,
    look_op: DFF<Op>,
    look_row: DFF<EqCtx>,
    act_valid: DFF<Bit>,
    act_op: DFF<Op>,
    act_row: DFF<EqCtx>,
    act_facts: DFF<Facts>,
    #[init(Constant::new(((1u64 << 24) - (1u64 << LQ)).to_bits()))]
    outside: Constant<Bits<24>>,
    #[init(Constant::new(((1u64 << LQ) - 1).to_bits()))]
    boot_last: Constant<Bits<LQ>>,
    #[init(Constant::new(EqCtx::default()))]
    zero_row: Constant<EqCtx>,
    // Select
    op_req0: Signal<Local, Op>,
    op_req1: Signal<Local, Op>,
    op_db: Signal<Local, Op>,
    op_ctl: Signal<Local, Op>,
    ids: [Signal<Local, Bits<24>>; 4],
    row_id: Signal<Local, Bits<24>>,
    look_id: Signal<Local, Bits<24>>,
    act_id: Signal<Local, Bits<24>>,
    queue: Signal<Local, Bits<LQ>>,
    row_queue: Signal<Local, Bits<LQ>>,
    look_queue: Signal<Local, Bits<LQ>>,
    act_queue: Signal<Local, Bits<LQ>>,
    free_of_hazard: [Signal<Local, Bit>; 4],
    room: Signal<Local, Bit>,
    can_req0: Signal<Local, Bit>,
    can_req1: Signal<Local, Bit>,
    can_db: Signal<Local, Bit>,
    can_ctl: Signal<Local, Bit>,
    req: Signal<Local, Bits<4>>,
    picked: Signal<Local, Op>,
    picked_id: Signal<Local, Bits<24>>,
    // Look
    facts: Signal<Local, Facts>,
    lrow: Signal<Local, EqCtx>,
    excess: Signal<Local, Bits<24>>,
    producer: Signal<Local, Bits<16>>,
    slot_mask: Signal<Local, Bits<16>>,
    slot: Signal<Local, Bits<16>>,
    wraps: Signal<Local, Bits<16>>,
    // Act
    op: Signal<Local, Op>,
    kind: Signal<Local, Kind>,
    row: Signal<Local, EqCtx>,
    new_row: Signal<Local, EqCtx>,
    fact: Signal<Local, Facts>,
    size: Signal<Local, Bits<16>>,
    full: Signal<Local, Bit>,
    producer_old: Signal<Local, Bits<16>>,
    producer_next: Signal<Local, Bits<16>>,
    write: Signal<Local, Bit>,
    issue: Signal<Local, Bit>,
    interrupt: Signal<Local, MsixReq>,
    counted: Signal<Local, Bits<7>>,
    placed: Signal<Local, Entry>,
    leaving: Signal<Local, Entry>,
}

impl<const LQ: usize> Logic for EventWriter<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, last, booting, boot, locked, entry, eqe, entry_offset, entry_valid, counts);
        dff_setup!(self, clock, row_valid, row_op, look_valid, look_op, look_row, act_valid, act_op, act_row, act_facts);
        clock!(self, clock, db, line, table_ram, entries, reporter);
        self.db.reset.next = self.reset.val();
        self.line.reset.next = self.reset.val();
        self.entries.reset.next = self.reset.val();
        self.reporter.reset.next = self.reset.val();
        for i in 0..2 {
            self.reqs[i].clock.next = self.clock.val();
            self.reqs[i].reset.next = self.reset.val();
            MsgSink::<EqeReq>::link(&mut self.s_req[i], &mut self.reqs[i].s);
        }
        MsgSink::<DoorbellMsg>::link(&mut self.s_db, &mut self.db.s);
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.line.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.line.m_ctl);
        MsgSink::<WrDone>::link(&mut self.s_done, &mut self.reporter.s_done);
        MsgSrc::<MsixReq>::link(&mut self.m_msix, &mut self.reporter.m_msix);

        // ---- Select ----
        self.op_req0.next.kind = Kind::Eqe;
        self.op_req0.next.id = bit_cast::<24, 8>(self.reqs[0].m.data.val().eqn);
        self.op_req0.next.function = bits::<12>(0);
        self.op_req0.next.index = bits::<16>(0);
        self.op_req0.next.event = self.reqs[0].m.data.val().kind;
        self.op_req0.next.about = self.reqs[0].m.data.val().id;
        self.op_req0.next.cause = self.reqs[0].m.data.val().cause;
        self.op_req1.next.kind = Kind::Eqe;
        self.op_req1.next.id = bit_cast::<24, 8>(self.reqs[1].m.data.val().eqn);
        self.op_req1.next.function = bits::<12>(0);
        self.op_req1.next.index = bits::<16>(0);
        self.op_req1.next.event = self.reqs[1].m.data.val().kind;
        self.op_req1.next.about = self.reqs[1].m.data.val().id;
        self.op_req1.next.cause = self.reqs[1].m.data.val().cause;
        self.op_db.next = self.op_req0.val();
        self.op_db.next.kind = Kind::Doorbell;
        self.op_db.next.id = self.db.m.data.val().id;
        self.op_db.next.function = self.db.m.data.val().function;
        self.op_db.next.index = self.db.m.data.val().index;
        self.op_ctl.next = self.op_req0.val();
        self.op_ctl.next.kind = Kind::Ctl;
        self.op_ctl.next.id = bit_cast::<24, LQ>(self.line.addr.val());
        self.ops.x[0].next = self.op_req0.val();
        self.ops.x[1].next = self.op_req1.val();
        self.ops.x[2].next = self.op_db.val();
        self.ops.x[3].next = self.op_ctl.val();
        self.ids[0].next = self.op_req0.val().id;
        self.ids[1].next = self.op_req1.val().id;
        self.ids[2].next = self.op_db.val().id;
        self.ids[3].next = self.op_ctl.val().id;
        self.row_id.next = self.row_op.q.val().id;
        self.look_id.next = self.look_op.q.val().id;
        self.act_id.next = self.act_op.q.val().id;
        self.row_queue.next = self.row_id.val().get_bits::<LQ>(0);
        self.look_queue.next = self.look_id.val().get_bits::<LQ>(0);
        self.act_queue.next = self.act_id.val().get_bits::<LQ>(0);
        for i in 0..4 {
            self.queue.next = self.ids[i].val().get_bits::<LQ>(0);
            self.free_of_hazard[i].next = !((self.row_valid.q.val() & (self.queue.val() == self.row_queue.val()))
                | (self.look_valid.q.val() & (self.queue.val() == self.look_queue.val()))
                | (self.act_valid.q.val() & (self.queue.val() == self.act_queue.val())));
        }
        // Up to four operations may be on their way to the FIFOs.
        self.room.next = (self.entries.level.val() < 10) & self.reporter.room.val();
        self.can_req0.next = self.reqs[0].m.valid.val() & self.room.val() & self.free_of_hazard[0].val();
        self.can_req1.next = self.reqs[1].m.valid.val() & self.room.val() & self.free_of_hazard[1].val();
        self.can_db.next = self.db.m.valid.val() & self.free_of_hazard[2].val();
        self.can_ctl.next = self.line.req.val() & self.free_of_hazard[3].val();
        self.req.next = bits::<4>(0);
        if !self.locked.q.val() & !self.booting.q.val() {
            self.req.next = bit_cast::<4, 1>(self.can_req0.val().into())
                | (bit_cast::<4, 1>(self.can_req1.val().into()) << 1)
                | (bit_cast::<4, 1>(self.can_db.val().into()) << 2)
                | (bit_cast::<4, 1>(self.can_ctl.val().into()) << 3);
        }
        self.pick.req.next = self.req.val();
        self.pick.last.next = self.last.q.val();
        if self.req.val().any() {
            self.last.d.next = self.pick.grant.val();
        }
        self.reqs[0].m.ready.next = self.pick.grant.val().get_bit(0);
        self.reqs[1].m.ready.next = self.pick.grant.val().get_bit(1);
        self.db.m.ready.next = self.pick.grant.val().get_bit(2);
        if self.pick.grant.val().get_bit(3) {
            self.locked.d.next = true;
        }
        self.ops.sel.next = self.pick.grant.val();
        self.picked.next = self.ops.y.val();
        self.picked_id.next = self.picked.val().id;
        self.table_ram.read_addr.next = self.picked_id.val().get_bits::<LQ>(0);
        self.row_op.d.next = self.picked.val();
        self.row_valid.d.next = self.req.val().any();

        // ---- Row ----
        self.look_valid.d.next = self.row_valid.q.val();
        self.look_op.d.next = self.row_op.q.val();
        self.look_row.d.next = self.table_ram.read_data.val();

        // ---- Look ----
        self.lrow.next = self.look_row.q.val();
        self.line.row.next = self.look_row.q.val();
        self.line.row_valid.next = self.look_valid.q.val() & (self.look_op.q.val().kind == Kind::Ctl);
        self.excess.next = self.look_id.val() & self.outside.val();
        self.producer.next = self.lrow.val().producer;
        self.slot_mask.next = bits::<16>(0xFFFF) << self.lrow.val().log_size;
        self.slot.next = self.producer.val() & !self.slot_mask.val();
        self.wraps.next = self.producer.val() >> self.lrow.val().log_size;
        self.facts.next.exists = self.lrow.val().valid & !self.excess.val().any();
        self.facts.next.mine = self.lrow.val().function == self.look_op.q.val().function;
        self.facts.next.unread = self.producer.val() - self.lrow.val().consumer;
        self.facts.next.unread_then = self.producer.val() - self.look_op.q.val().index;
        self.facts.next.offset = bit_cast::<24, 16>(self.slot.val()) << 4;
        self.facts.next.phase = !self.wraps.val().get_bit(0);
        self.act_valid.d.next = self.look_valid.q.val();
        self.act_op.d.next = self.look_op.q.val();
        self.act_row.d.next = self.look_row.q.val();
        self.act_facts.d.next = self.facts.val();

        // ---- Act ----
        self.op.next = self.act_op.q.val();
        self.kind.next = self.op.val().kind;
        self.row.next = self.act_row.q.val();
        self.fact.next = self.act_facts.q.val();
        self.new_row.next = self.row.val();
        self.write.next = false;
        self.issue.next = false;
        self.counted.next = bits::<7>(0);
        self.size.next = bits::<16>(1) << self.row.val().log_size;
        self.full.next = self.fact.val().unread >= self.size.val();
        self.producer_old.next = self.row.val().producer;
        self.producer_next.next = self.producer_old.val() + 1;
        if self.act_valid.q.val() {
            match self.kind.val() {
                Kind::Eqe => {
                    if !self.fact.val().exists {
                        self.counted.next = bits::<7>(2);
                    } else if self.full.val() {
                        self.counted.next = bits::<7>(4);
                        self.write.next = true;
                        self.new_row.next.overflow = true;
                    } else {
                        self.counted.next = bits::<7>(1);
                        self.write.next = true;
                        self.issue.next = true;
                        self.new_row.next.producer = self.producer_next.val();
                    }
                }
                Kind::Doorbell => {
                    if !self.fact.val().exists | !self.fact.val().mine {
                        self.counted.next = bits::<7>(8);
                    } else if self.fact.val().unread_then > self.fact.val().unread {
                        self.counted.next = bits::<7>(16);
                    } else {
                        self.write.next = true;
                        self.new_row.next.consumer = self.op.val().index;
                    }
                }
                _ => {}
            }
        }
        self.interrupt.next.function = self.row.val().function;
        self.interrupt.next.vector = self.row.val().vector;
        self.reporter.s_report.data.next = self.interrupt.val();
        self.reporter.s_report.valid.next = self.issue.val();

        // ---- Out: the address, then the FIFO to the DMA writer ----
        self.entry_valid.d.next = self.issue.val();
        self.entry_offset.d.next = self.fact.val().offset;
        self.entry.d.next.iova = self.row.val().base;
        self.entry.d.next.function = self.row.val().function;
        self.entry.d.next.data = self.entry_bits.y.val();
        self.eqe.d.next.kind = self.op.val().event;
        self.eqe.d.next.rsvd0 = bits::<8>(0);
        self.eqe.d.next.cause = self.op.val().cause;
        self.eqe.d.next.id = self.op.val().about;
        self.eqe.d.next.rsvd1 = bits::<8>(0);
        self.eqe.d.next.rsvd2 = bits::<32>(0);
        self.eqe.d.next.rsvd3 = bits::<31>(0);
        self.eqe.d.next.phase = self.fact.val().phase;
        self.entry_bits.x.next = self.eqe.q.val();
        self.place.a.next = self.entry.q.val().iova;
        self.place.b.next = bit_cast::<64, 24>(self.entry_offset.q.val());
        self.placed.next.iova = self.place.y.val();
        self.placed.next.function = self.entry.q.val().function;
        self.placed.next.data = self.entry_bits.y.val();
        self.entries.s.data.next = self.placed.val();
        self.entries.s.valid.next = self.entry_valid.q.val();
        self.leaving.next = self.entries.m.data.val();
        self.m_wr.data.next.iova = self.leaving.val().iova;
        self.m_wr.data.next.function = self.leaving.val().function;
        self.m_wr.data.next.len = bits::<7>(16);
        self.m_wr.data.next.tag = bits::<8>(0);
        self.m_wr.data.next.data = bit_cast::<512, 128>(self.leaving.val().data);
        self.m_wr.valid.next = self.entries.m.valid.val();
        self.entries.m.ready.next = self.m_wr.ready.val();
        self.counts.d.next = self.counted.val()
            | (bit_cast::<7, 1>(self.reporter.sent.val().into()) << 5)
            | (bit_cast::<7, 1>(self.reporter.failed.val().into()) << 6);
        self.stat.next = self.counts.q.val();

        // Table write: the pipeline, a control write, or the sweep after a reset.
        self.table_ram.write_addr.next = self.act_queue.val();
        self.table_ram.write_data.next = self.new_row.val();
        self.table_ram.write_en.next = self.write.val();
        if self.line.done.val() {
            self.table_ram.write_addr.next = self.line.addr.val();
            self.table_ram.write_data.next = self.line.new_row.val();
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
            self.row_valid.d.next = false;
            self.look_valid.d.next = false;
            self.act_valid.d.next = false;
            self.last.d.next = bits::<4>(0);
            self.entry_valid.d.next = false;
        }
    }
}
