//! Completion writer. See README.md.
//!
//! Completions and doorbells go through the pipeline of `host/table` over the completion queues. An operation starts only
//! when its outcome has room.

mod act;
mod report;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::host::table::ring::{RingFacts, RingLook};
use crate::host::table::TablePipe;
use crate::msg::{CqeReq, CtlReq, CtlResp, DoorbellMsg, EqeReq, WrDone, WrSmall};
use crate::prim::mux::OneHotMux;
use crate::prim::pack::{Cast, Gather};
use crate::prim::sum::Sum;
use crate::records::{CqCtx, Cqe};
use crate::stream::{MsgArb, MsgFifo, MsgSlice};
use act::CqAct;
use report::Reporter;
use rust_hdl::prelude::*;

/// What bit i of `stat` counts. `cq_bad`: no such queue, or another function's.
pub const STATS: &[&str] =
    &["cqe_written", "cq_bad", "cq_overflow", "cq_db_bad", "cq_db_overrun", "cq_events", "cq_write_errors"];

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Kind {
    Cqe,
    Doorbell,
}

/// One operation in the pipeline (a completion's request travels beside it); `index` and the arm bits are a doorbell's.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Op {
    kind: Kind,
    function: Bits<12>,
    index: Bits<16>,
    arm: Bit,
    arm_solicited: Bit,
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
#[derive(LogicBlock, Default)]
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
    entries: MsgFifo<Entry, 4>,
    entry_bits: Cast<Cqe, Bits<256>>,
    reporter: Reporter,
    ready: Gather<3>,
    pipe: TablePipe<Op, CqCtx, LQ, 3, 4>,
    look: RingLook,
    act: CqAct,
    mine: DFF<Bit>,
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
    request: Signal<Local, CqeReq>,
    op: Signal<Local, Op>,
    row: Signal<Local, CqCtx>,
    ring: Signal<Local, RingFacts>,
    room: Signal<Local, Bit>,
    placed: Signal<Local, Entry>,
    leaving: Signal<Local, Entry>,
}

impl<const LQ: usize> Logic for CompletionWriter<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, mine, entry, cqe, entry_offset, entry_valid, stamp, counts, row_req, look_req, act_req);
        clock!(self, clock, sends, recvs, db, pipe, look, entries, reporter);
        self.sends.reset.next = self.reset.val();
        self.recvs.reset.next = self.reset.val();
        self.db.reset.next = self.reset.val();
        self.pipe.reset.next = self.reset.val();
        self.entries.reset.next = self.reset.val();
        self.reporter.reset.next = self.reset.val();
        for i in 0..2 {
            MsgSink::<CqeReq>::link(&mut self.s_req[i], &mut self.sends.s[i]);
        }
        MsgSink::<CqeReq>::link(&mut self.s_req[2], &mut self.recvs.s);
        MsgSink::<DoorbellMsg>::link(&mut self.s_db, &mut self.db.s);
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.pipe.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.pipe.m_ctl);
        MsgSink::<WrDone>::link(&mut self.s_done, &mut self.reporter.s_done);
        MsgSrc::<EqeReq>::link(&mut self.m_event, &mut self.reporter.m_event);
        self.stamp.d.next = self.now.val();

        // ---- The sources: send (0) and receive (1) completions, doorbells (2) ----
        self.op.next.kind = Kind::Cqe;
        self.op.next.index = bits::<16>(0);
        self.op.next.arm = false;
        self.op.next.arm_solicited = false;
        self.req_mux.x[0].next = self.sends.m.data.val();
        self.req_mux.x[1].next = self.recvs.m.data.val();
        for i in 0..2 {
            self.request.next = self.req_mux.x[i].val();
            self.op.next.function = self.request.val().function;
            self.pipe.id[i].next = self.request.val().cqn;
            self.pipe.op[i].next = self.op.val();
        }
        self.op.next.kind = Kind::Doorbell;
        self.op.next.function = self.db.m.data.val().function;
        self.op.next.index = self.db.m.data.val().index;
        self.op.next.arm = self.db.m.data.val().arm;
        self.op.next.arm_solicited = self.db.m.data.val().arm_solicited;
        self.pipe.id[2].next = self.db.m.data.val().id;
        self.pipe.op[2].next = self.op.val();
        // Up to four operations may be on their way to the FIFOs.
        self.room.next = (self.entries.level.val() < 10) & self.reporter.room.val();
        self.ready.x[0].next = self.sends.m.valid.val() & self.room.val();
        self.ready.x[1].next = self.recvs.m.valid.val() & self.room.val();
        self.ready.x[2].next = self.db.m.valid.val() & self.reporter.room.val();
        self.pipe.req.next = self.ready.y.val();
        self.sends.m.ready.next = self.pipe.grant.val().get_bit(0);
        self.recvs.m.ready.next = self.pipe.grant.val().get_bit(1);
        self.db.m.ready.next = self.pipe.grant.val().get_bit(2);
        self.req_mux.sel.next = self.pipe.grant.val().get_bits::<2>(0);
        self.row_req.d.next = self.req_mux.y.val();
        self.look_req.d.next = self.row_req.q.val();
        self.act_req.d.next = self.look_req.q.val();

        // ---- Look ----
        self.row.next = self.pipe.look_row.val();
        self.mine.d.next = self.row.val().valid
            & self.pipe.look_inside.val()
            & (self.row.val().function == self.pipe.look_op.val().function);
        self.look.producer.next = self.row.val().producer;
        self.look.consumer.next = self.row.val().consumer;
        self.look.log_size.next = self.row.val().log_size;
        self.look.index.next = self.pipe.look_op.val().index;

        // ---- Act ----
        self.act.valid.next = self.pipe.act_valid.val();
        self.act.op.next = self.pipe.act_op.val();
        self.act.id.next = self.pipe.act_id.val();
        self.act.request.next = self.act_req.q.val();
        self.act.row.next = self.pipe.act_row.val();
        self.act.mine.next = self.mine.q.val();
        self.act.ring.next = self.look.facts.val();
        self.pipe.write.next = self.act.write.val();
        self.pipe.new_row.next = self.act.new_row.val();
        self.pipe.ctl_new_row.next = self.pipe.ctl_row.val();
        self.reporter.s_report.data.next = self.act.report.val();
        self.reporter.s_report.valid.next = self.act.reports.val();

        // ---- Out: the address, then the FIFO to the DMA writer ----
        self.entry_valid.d.next = self.act.issue.val();
        self.ring.next = self.look.facts.val();
        self.entry_offset.d.next = bit_cast::<24, 16>(self.ring.val().slot) << 5;
        self.entry.d.next.iova = self.pipe.act_row.val().base;
        self.entry.d.next.function = self.pipe.act_row.val().function;
        self.request.next = self.act_req.q.val();
        self.entry.d.next.data = self.entry_bits.y.val();
        self.cqe.d.next.wqe_index = self.request.val().wqe_index;
        self.cqe.d.next.status = self.request.val().status;
        self.cqe.d.next.opcode = self.request.val().opcode;
        self.cqe.d.next.qpn = self.request.val().qpn;
        self.cqe.d.next.is_recv = self.request.val().is_recv;
        self.cqe.d.next.imm_valid = self.request.val().imm_valid;
        self.cqe.d.next.solicited = self.request.val().solicited;
        self.cqe.d.next.grh = false;
        self.cqe.d.next.rsvd0 = bits::<4>(0);
        self.cqe.d.next.byte_len = self.request.val().byte_len;
        self.cqe.d.next.imm = self.request.val().imm;
        self.cqe.d.next.src_qp = self.request.val().src_qp;
        self.cqe.d.next.rsvd1 = bits::<8>(0);
        self.cqe.d.next.timestamp = bit_cast::<64, 32>(self.stamp.q.val());
        self.cqe.d.next.syndrome = self.request.val().syndrome;
        self.cqe.d.next.rsvd2 = bits::<16>(0);
        self.cqe.d.next.rsvd3 = bits::<7>(0);
        self.cqe.d.next.phase = self.ring.val().phase;
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
        self.counts.d.next = self.act.counted.val()
            | (bit_cast::<7, 1>(self.reporter.sent.val().into()) << 5)
            | (bit_cast::<7, 1>(self.reporter.failed.val().into()) << 6);
        self.stat.next = self.counts.q.val();

        if self.reset.val() {
            self.entry_valid.d.next = false;
        }
    }
}
