//! Completion writer. See README.md.
//!
//! A four-stage pipeline over the table of completion queues (Select - Row - Look - Act), one operation per cycle, never
//! stalled: an operation starts only when no other one of its queue is in the later stages and its outcome has room.

mod report;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::host::ctl::line::CtlLine;
use crate::msg::{CqeReq, CtlReq, CtlResp, DoorbellMsg, EqeReq, WrDone, WrSmall};
use crate::prim::arb::RrPick;
use crate::prim::mux::OneHotMux;
use crate::prim::pack::Cast;
use crate::prim::ram::Ram;
use crate::prim::sum::Sum;
use crate::records::{CqCtx, Cqe};
use crate::stream::{MsgArb, MsgFifo, MsgSlice};
use report::{Report, Reporter};
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// What bit i of `stat` counts. `cq_bad`: no such queue, or another function's.
pub const STATS: &[&str] =
    &["cqe_written", "cq_bad", "cq_overflow", "cq_db_bad", "cq_db_overrun", "cq_events", "cq_write_errors"];

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Kind {
    Cqe,
    Doorbell,
    Ctl,
}

/// One operation in the pipeline (a completion's request travels beside it); `index` and the arm bits are a doorbell's.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Op {
    kind: Kind,
    id: Bits<24>,
    function: Bits<12>,
    index: Bits<16>,
    arm: Bit,
    arm_solicited: Bit,
}

/// What Look finds out for Act.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Facts {
    /// The queue exists, the number has no bits beyond the table, and the function owns it.
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
    data: Bits<256>,
}

/// Completion-queue unit for `2^LQ` queues. Ports of `s_req`: req_tx, req_rx, complete.
///
/// Ports 0 and 1 share one slice: what is taken first is written first. The flush completions of a failed queue pair
/// (req_tx) follow the completion of the failed request (req_rx), which req_rx sees taken before it orders the flush.
#[derive(LogicBlock, BlockDefault)]
pub struct CompletionWriter<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; clears the table (`2^LQ` cycles).
    pub reset: Signal<In, Bit>,
    pub s_req: [MsgSink<CqeReq>; 3],
    pub s_db: MsgSink<DoorbellMsg>,
    pub m_wr: MsgSrc<WrSmall>,
    pub s_done: MsgSink<WrDone>,
    pub m_event: MsgSrc<EqeReq>,
    /// Card time in ticks.
    pub now: Signal<In, Bits<32>>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<7>>,
    sends: MsgArb<CqeReq, 2>,
    recvs: MsgSlice<CqeReq>,
    db: MsgSlice<DoorbellMsg>,
    line: CtlLine<CqCtx, LQ>,
    table_ram: Ram<CqCtx, LQ>,
    entries: MsgFifo<Entry, 4>,
    entry_bits: Cast<Cqe, Bits<256>>,
    reporter: Reporter,
    entry: DFF<Entry>,
    cqe: DFF<Cqe>,
    req_mux: OneHotMux<CqeReq, 2>,
    row_req: DFF<CqeReq>,
    look_req: DFF<CqeReq>,
    act_req: DFF<CqeReq>,
    entry_offset: DFF<Bits<24>>,
    place: Sum<64>,
    entry_valid: DFF<Bit>,
    stamp: DFF<Bits<32>>,
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
    look_row: DFF<CqCtx>,
    act_valid: DFF<Bit>,
    act_op: DFF<Op>,
    act_row: DFF<CqCtx>,
    act_facts: DFF<Facts>,
    #[init(Constant::new(((1u64 << 24) - (1u64 << LQ)).to_bits()))]
    outside: Constant<Bits<24>>,
    #[init(Constant::new(((1u64 << LQ) - 1).to_bits()))]
    boot_last: Constant<Bits<LQ>>,
    #[init(Constant::new(CqCtx::default()))]
    zero_row: Constant<CqCtx>,
    // Select
    op_send: Signal<Local, Op>,
    op_recv: Signal<Local, Op>,
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
    can_send: Signal<Local, Bit>,
    can_recv: Signal<Local, Bit>,
    can_db: Signal<Local, Bit>,
    can_ctl: Signal<Local, Bit>,
    req: Signal<Local, Bits<4>>,
    picked: Signal<Local, Op>,
    picked_id: Signal<Local, Bits<24>>,
    // Look
    facts: Signal<Local, Facts>,
    lrow: Signal<Local, CqCtx>,
    excess: Signal<Local, Bits<24>>,
    producer: Signal<Local, Bits<16>>,
    slot_mask: Signal<Local, Bits<16>>,
    slot: Signal<Local, Bits<16>>,
    wraps: Signal<Local, Bits<16>>,
    // Act
    op: Signal<Local, Op>,
    kind: Signal<Local, Kind>,
    row: Signal<Local, CqCtx>,
    new_row: Signal<Local, CqCtx>,
    fact: Signal<Local, Facts>,
    size: Signal<Local, Bits<16>>,
    full: Signal<Local, Bit>,
    producer_old: Signal<Local, Bits<16>>,
    producer_next: Signal<Local, Bits<16>>,
    write: Signal<Local, Bit>,
    issue: Signal<Local, Bit>,
    cqe_req: Signal<Local, CqeReq>,
    report: Signal<Local, Bit>,
    report_out: Signal<Local, Report>,
    wants: Signal<Local, Bit>,
    arms: Signal<Local, Bit>,
    counted: Signal<Local, Bits<7>>,
    placed: Signal<Local, Entry>,
    leaving: Signal<Local, Entry>,
}

impl<const LQ: usize> Logic for CompletionWriter<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, last, booting, boot, locked, entry, cqe, entry_offset, entry_valid, stamp, counts);
        dff_setup!(self, clock, row_req, look_req, act_req);
        dff_setup!(self, clock, row_valid, row_op, look_valid, look_op, look_row, act_valid, act_op, act_row, act_facts);
        clock!(self, clock, sends, recvs, db, line, table_ram, entries, reporter);
        self.sends.reset.next = self.reset.val();
        self.recvs.reset.next = self.reset.val();
        self.db.reset.next = self.reset.val();
        self.line.reset.next = self.reset.val();
        self.entries.reset.next = self.reset.val();
        self.reporter.reset.next = self.reset.val();
        for i in 0..2 {
            MsgSink::<CqeReq>::link(&mut self.s_req[i], &mut self.sends.s[i]);
        }
        MsgSink::<CqeReq>::link(&mut self.s_req[2], &mut self.recvs.s);
        MsgSink::<DoorbellMsg>::link(&mut self.s_db, &mut self.db.s);
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.line.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.line.m_ctl);
        MsgSink::<WrDone>::link(&mut self.s_done, &mut self.reporter.s_done);
        MsgSrc::<EqeReq>::link(&mut self.m_event, &mut self.reporter.m_event);
        self.stamp.d.next = self.now.val();

        // ---- Select ----
        self.op_send.next.kind = Kind::Cqe;
        self.op_send.next.id = self.sends.m.data.val().cqn;
        self.op_send.next.function = self.sends.m.data.val().function;
        self.op_send.next.index = bits::<16>(0);
        self.op_send.next.arm = false;
        self.op_send.next.arm_solicited = false;
        self.op_recv.next.kind = Kind::Cqe;
        self.op_recv.next.id = self.recvs.m.data.val().cqn;
        self.op_recv.next.function = self.recvs.m.data.val().function;
        self.op_recv.next.index = bits::<16>(0);
        self.op_recv.next.arm = false;
        self.op_recv.next.arm_solicited = false;
        self.op_db.next = self.op_send.val();
        self.op_db.next.kind = Kind::Doorbell;
        self.op_db.next.id = self.db.m.data.val().id;
        self.op_db.next.function = self.db.m.data.val().function;
        self.op_db.next.index = self.db.m.data.val().index;
        self.op_db.next.arm = self.db.m.data.val().arm;
        self.op_db.next.arm_solicited = self.db.m.data.val().arm_solicited;
        self.op_ctl.next = self.op_send.val();
        self.op_ctl.next.kind = Kind::Ctl;
        self.op_ctl.next.id = bit_cast::<24, LQ>(self.line.addr.val());
        self.ops.x[0].next = self.op_send.val();
        self.ops.x[1].next = self.op_recv.val();
        self.ops.x[2].next = self.op_db.val();
        self.ops.x[3].next = self.op_ctl.val();
        self.ids[0].next = self.op_send.val().id;
        self.ids[1].next = self.op_recv.val().id;
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
        self.can_send.next = self.sends.m.valid.val() & self.room.val() & self.free_of_hazard[0].val();
        self.can_recv.next = self.recvs.m.valid.val() & self.room.val() & self.free_of_hazard[1].val();
        self.can_db.next = self.db.m.valid.val() & self.reporter.room.val() & self.free_of_hazard[2].val();
        self.can_ctl.next = self.line.req.val() & self.free_of_hazard[3].val();
        self.req.next = bits::<4>(0);
        if !self.locked.q.val() & !self.booting.q.val() {
            self.req.next = bit_cast::<4, 1>(self.can_send.val().into())
                | (bit_cast::<4, 1>(self.can_recv.val().into()) << 1)
                | (bit_cast::<4, 1>(self.can_db.val().into()) << 2)
                | (bit_cast::<4, 1>(self.can_ctl.val().into()) << 3);
        }
        self.pick.req.next = self.req.val();
        self.pick.last.next = self.last.q.val();
        if self.req.val().any() {
            self.last.d.next = self.pick.grant.val();
        }
        self.sends.m.ready.next = self.pick.grant.val().get_bit(0);
        self.recvs.m.ready.next = self.pick.grant.val().get_bit(1);
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

        self.req_mux.x[0].next = self.sends.m.data.val();
        self.req_mux.x[1].next = self.recvs.m.data.val();
        self.req_mux.sel.next = self.pick.grant.val().get_bits::<2>(0);
        self.row_req.d.next = self.req_mux.y.val();
        self.look_req.d.next = self.row_req.q.val();
        self.act_req.d.next = self.look_req.q.val();

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
        self.facts.next.mine =
            self.lrow.val().valid & !self.excess.val().any() & (self.lrow.val().function == self.look_op.q.val().function);
        self.facts.next.unread = self.producer.val() - self.lrow.val().consumer;
        self.facts.next.unread_then = self.producer.val() - self.look_op.q.val().index;
        self.facts.next.offset = bit_cast::<24, 16>(self.slot.val()) << 5;
        self.facts.next.phase = !self.wraps.val().get_bit(0);
        self.act_valid.d.next = self.look_valid.q.val();
        self.act_op.d.next = self.look_op.q.val();
        self.act_row.d.next = self.look_row.q.val();
        self.act_facts.d.next = self.facts.val();

        // ---- Act ----
        self.op.next = self.act_op.q.val();
        self.kind.next = self.op.val().kind;
        self.cqe_req.next = self.act_req.q.val();
        self.row.next = self.act_row.q.val();
        self.fact.next = self.act_facts.q.val();
        self.new_row.next = self.row.val();
        self.write.next = false;
        self.issue.next = false;
        self.report.next = false;
        self.counted.next = bits::<7>(0);
        self.size.next = bits::<16>(1) << self.row.val().log_size;
        self.full.next = self.fact.val().unread >= self.size.val();
        self.producer_old.next = self.row.val().producer;
        self.producer_next.next = self.producer_old.val() + 1;
        self.wants.next = self.row.val().armed
            | (self.row.val().armed_solicited
                & ((self.cqe_req.val().status != 0) | (self.cqe_req.val().is_recv & self.cqe_req.val().solicited)));
        self.arms.next = self.op.val().arm | self.op.val().arm_solicited;
        self.report_out.next.written = false;
        self.report_out.next.event = true;
        self.report_out.next.error = false;
        self.report_out.next.eqn = self.row.val().eqn;
        self.report_out.next.cqn = self.op.val().id;
        if self.act_valid.q.val() {
            match self.kind.val() {
                Kind::Cqe => {
                    if !self.fact.val().mine {
                        self.counted.next = bits::<7>(2);
                    } else if self.row.val().overflow | self.full.val() {
                        // The queue is dead from here on; one event says so.
                        self.counted.next = bits::<7>(4);
                        self.write.next = true;
                        self.new_row.next.overflow = true;
                        self.report.next = !self.row.val().overflow;
                        self.report_out.next.error = true;
                    } else {
                        self.counted.next = bits::<7>(1);
                        self.write.next = true;
                        self.issue.next = true;
                        self.new_row.next.producer = self.producer_next.val();
                        self.report.next = true;
                        self.report_out.next.written = true;
                        self.report_out.next.event = self.wants.val();
                        if self.wants.val() {
                            self.new_row.next.armed = false;
                            self.new_row.next.armed_solicited = false;
                        }
                    }
                }
                Kind::Doorbell => {
                    if !self.fact.val().mine {
                        self.counted.next = bits::<7>(8);
                    } else if self.fact.val().unread_then > self.fact.val().unread {
                        self.counted.next = bits::<7>(16);
                    } else {
                        self.write.next = true;
                        self.new_row.next.consumer = self.op.val().index;
                        if self.arms.val() {
                            // Something is unread: the event goes at once (behind the writes it may be about).
                            self.report.next = self.fact.val().unread_then.any();
                            self.new_row.next.armed =
                                (self.row.val().armed | self.op.val().arm) & !self.fact.val().unread_then.any();
                            self.new_row.next.armed_solicited = (self.row.val().armed_solicited
                                | self.op.val().arm_solicited)
                                & !self.fact.val().unread_then.any();
                        }
                    }
                }
                _ => {}
            }
        }
        self.reporter.s_report.data.next = self.report_out.val();
        self.reporter.s_report.valid.next = self.report.val();

        // ---- Out: the address, then the FIFO to the DMA writer ----
        self.entry_valid.d.next = self.issue.val();
        self.entry_offset.d.next = self.fact.val().offset;
        self.entry.d.next.iova = self.row.val().base;
        self.entry.d.next.function = self.row.val().function;
        self.entry.d.next.data = self.entry_bits.y.val();
        self.cqe.d.next.wqe_index = self.cqe_req.val().wqe_index;
        self.cqe.d.next.status = self.cqe_req.val().status;
        self.cqe.d.next.opcode = self.cqe_req.val().opcode;
        self.cqe.d.next.qpn = self.cqe_req.val().qpn;
        self.cqe.d.next.is_recv = self.cqe_req.val().is_recv;
        self.cqe.d.next.imm_valid = self.cqe_req.val().imm_valid;
        self.cqe.d.next.solicited = self.cqe_req.val().solicited;
        self.cqe.d.next.grh = false;
        self.cqe.d.next.rsvd0 = bits::<4>(0);
        self.cqe.d.next.byte_len = self.cqe_req.val().byte_len;
        self.cqe.d.next.imm = self.cqe_req.val().imm;
        self.cqe.d.next.src_qp = self.cqe_req.val().src_qp;
        self.cqe.d.next.rsvd1 = bits::<8>(0);
        self.cqe.d.next.timestamp = bit_cast::<64, 32>(self.stamp.q.val());
        self.cqe.d.next.syndrome = self.cqe_req.val().syndrome;
        self.cqe.d.next.rsvd2 = bits::<16>(0);
        self.cqe.d.next.rsvd3 = bits::<7>(0);
        self.cqe.d.next.phase = self.fact.val().phase;
        self.entry_bits.x.next = self.cqe.q.val();
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
        self.m_wr.data.next.len = bits::<7>(32);
        self.m_wr.data.next.tag = bits::<8>(0);
        self.m_wr.data.next.data = bit_cast::<512, 256>(self.leaving.val().data);
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
