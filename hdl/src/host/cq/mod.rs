//! Completion writer. See README.md.
//!
//! Completions and doorbells go through the pipeline of `host/table` over the completion queues. An operation starts only
//! when its outcome has room.

mod act;
#[cfg(test)]
use ferric_model::rings::completion as model;
mod report;
#[cfg(test)]
mod tests;

use crate::assembly::AnyBlock;
use crate::bus::{MsgSink, MsgSrc};
use crate::for_clients;
use crate::host::table::entry::EntryOut;
use crate::host::table::ring::{RingFacts, RingLook};
use crate::host::table::TablePipe;
use crate::msg::{CqeReq, CtlReq, CtlResp, DoorbellMsg, EqeReq, WrDone, WrSmall};
use crate::prim::mux::OneHotMux;
use crate::prim::pack::{Cast, Gather};
use crate::records::{CqCtx, Cqe};
use crate::stream::{MsgArb, MsgSlice};
use act::CqAct;
use ferric_hdl_derive::{kernel, BlockDefault};
use report::Reporter;
use rust_hdl::prelude::*;

/// What bit i of `stat` counts. `cq_bad`: no such queue, or another function's. The function is that of whoever asked.
pub const STATS: &[&str] = &["cqe_written", "cq_bad", "cq_overflow", "cq_db_bad", "cq_db_overrun"];

/// What bit i of `told` counts, once the host has answered.
pub const TOLD: &[&str] = &["cq_events", "cq_write_errors"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // An operation starts with a place for its entry and for what is told of it.
    ("s_order[*]", &["m_wr", "s_done", "m_event"]),
    ("s_req[*]", &["m_wr", "s_done", "m_event"]),
    ("s_db", &["m_wr", "s_done", "m_event"]), // may bring an event, behind the entries before it
    ("s_done", &[]),                          // 64 places, at most 62 reports and hence answers are on the way
    ("passed", &["fence", "m_wr"]),
    ("s_ctl", &[]), // one access at a time
    ("m_ctl", &[]), // operations in the table's pipeline pass in four cycles
];

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

/// Requesters of `s_order`.
pub const IN_ORDER: usize = 2;

/// The unit for so many clients besides those in order.
pub fn for_number<const LQ: usize>(clients: usize) -> AnyBlock {
    for_clients!(from one, clients, <N, S, P, M> AnyBlock::new(CompletionWriter::<LQ, N, S, P, M>::default()))
}

/// Completion-queue unit for `2^LQ` queues and `N` requesters besides the two in order. `S` = `N` + 1 sources of completions, `P` counts doorbells, too, `M` the control bus as well.
///
/// The ports of `s_order` share one slice: what is taken first is written first. The flush completions of a failed queue pair
/// (req_tx) follow the completion of the failed request (req_rx), which req_rx sees taken before it orders the flush.
#[derive(LogicBlock, BlockDefault)]
#[demand(S == N + 1 && P == S + 1 && M == P + 1, "requesters, doorbells, the control bus")]
pub struct CompletionWriter<const LQ: usize, const N: usize, const S: usize, const P: usize, const M: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; clears the table (`2^LQ` cycles).
    pub reset: Signal<In, Bit>,
    pub s_order: [MsgSink<CqeReq>; IN_ORDER],
    pub s_req: [MsgSink<CqeReq>; N],
    pub s_db: MsgSink<DoorbellMsg>,
    pub m_wr: MsgSrc<WrSmall>,
    pub s_done: MsgSink<WrDone>,
    pub m_event: MsgSrc<EqeReq>,
    /// Card time in ticks.
    pub now: Signal<In, Bits<32>>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// Pulse in; pulse out when every entry decided before is with the DMA writer.
    pub fence: Signal<In, Bit>,
    pub passed: Signal<Out, Bit>,
    /// See [`STATS`]; whose events they are.
    pub stat: Signal<Out, Bits<5>>,
    pub stat_function: Signal<Out, Bits<12>>,
    /// See [`TOLD`]; whose events they are.
    pub told: Signal<Out, Bits<2>>,
    pub told_function: Signal<Out, Bits<12>>,
    ordered: MsgArb<CqeReq, IN_ORDER>,
    reqs: [MsgSlice<CqeReq>; N],
    db: MsgSlice<DoorbellMsg>,
    cqe: Cast<Cqe, Bits<256>>,
    out: EntryOut<256, 332>,
    reporter: Reporter,
    ready: Gather<P>,
    pipe: TablePipe<Op, CqCtx, LQ, P, M>,
    look: RingLook,
    act: CqAct,
    mine: DFF<Bit>,
    req_mux: OneHotMux<CqeReq, S>,
    row_req: DFF<CqeReq>,
    look_req: DFF<CqeReq>,
    act_req: DFF<CqeReq>,
    stamp: DFF<Bits<32>>,
    counts: DFF<Bits<5>>,
    counts_of: DFF<Bits<12>>,
    tells: DFF<Bits<2>>,
    tells_of: DFF<Bits<12>>,
    request: Signal<Local, CqeReq>,
    op: Signal<Local, Op>,
    row: Signal<Local, CqCtx>,
    ring: Signal<Local, RingFacts>,
    entry: Signal<Local, Cqe>,
    room: Signal<Local, Bit>,
}

#[kernel]
impl<const LQ: usize, const N: usize, const S: usize, const P: usize, const M: usize> Logic for CompletionWriter<LQ, N, S, P, M> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, mine, stamp, counts, counts_of, tells, tells_of, row_req, look_req, act_req);
        clock!(self, clock, ordered, db, pipe, look, out, reporter);
        self.ordered.reset.next = self.reset.val();
        self.db.reset.next = self.reset.val();
        self.pipe.reset.next = self.reset.val();
        self.out.reset.next = self.reset.val();
        self.reporter.reset.next = self.reset.val();
        for i in 0..IN_ORDER {
            MsgSink::<CqeReq>::link(&mut self.s_order[i], &mut self.ordered.s[i]);
        }
        for i in 0..N {
            self.reqs[i].clock.next = self.clock.val();
            self.reqs[i].reset.next = self.reset.val();
            MsgSink::<CqeReq>::link(&mut self.s_req[i], &mut self.reqs[i].s);
        }
        MsgSink::<DoorbellMsg>::link(&mut self.s_db, &mut self.db.s);
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.pipe.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.pipe.m_ctl);
        MsgSrc::<WrSmall>::link(&mut self.m_wr, &mut self.out.m_wr);
        MsgSink::<WrDone>::link(&mut self.s_done, &mut self.reporter.s_done);
        MsgSrc::<EqeReq>::link(&mut self.m_event, &mut self.reporter.m_event);
        self.stamp.d.next = self.now.val();

        // ---- The sources: completions in order (0) and the others (1 to N), then doorbells ----
        self.op.next.kind = Kind::Cqe;
        self.op.next.index = bits::<16>(0);
        self.op.next.arm = false;
        self.op.next.arm_solicited = false;
        self.req_mux.x[0].next = self.ordered.m.data.val();
        for i in 0..N {
            self.req_mux.x[i + 1].next = self.reqs[i].m.data.val();
        }
        for i in 0..S {
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
        for i in S..P {
            self.pipe.id[i].next = self.db.m.data.val().id;
            self.pipe.op[i].next = self.op.val();
        }
        // Up to four operations may be on their way to the FIFOs.
        self.room.next = self.out.room.val() & self.reporter.room.val();
        self.ready.x[0].next = self.ordered.m.valid.val() & self.room.val();
        for i in 0..N {
            self.ready.x[i + 1].next = self.reqs[i].m.valid.val() & self.room.val();
        }
        for i in S..P {
            self.ready.x[i].next = self.db.m.valid.val() & self.reporter.room.val();
        }
        self.pipe.req.next = self.ready.y.val();
        self.ordered.m.ready.next = self.pipe.grant.val().get_bit(0);
        for i in 0..N {
            self.reqs[i].m.ready.next = self.pipe.grant.val().get_bit(i + 1);
        }
        for i in S..P {
            self.db.m.ready.next = self.pipe.grant.val().get_bit(i);
        }
        self.req_mux.sel.next = self.pipe.grant.val().get_bits::<S>(0);
        self.row_req.d.next = self.req_mux.y.val();
        self.look_req.d.next = self.row_req.q.val();
        self.act_req.d.next = self.look_req.q.val();

        // ---- Look ----
        self.row.next = self.pipe.look_row.val();
        self.mine.d.next = self.row.val().valid & self.pipe.look_inside.val() & (self.row.val().function == self.pipe.look_op.val().function);
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

        // ---- Out ----
        self.ring.next = self.look.facts.val();
        self.request.next = self.act_req.q.val();
        self.entry.next.wqe_index = self.request.val().wqe_index;
        self.entry.next.status = self.request.val().status;
        self.entry.next.opcode = self.request.val().opcode;
        self.entry.next.qpn = self.request.val().qpn;
        self.entry.next.is_recv = self.request.val().is_recv;
        self.entry.next.imm_valid = self.request.val().imm_valid;
        self.entry.next.solicited = self.request.val().solicited;
        self.entry.next.inv_valid = self.request.val().inv;
        self.entry.next.rsvd0 = bits::<3>(0);
        self.entry.next.byte_len = self.request.val().byte_len;
        self.entry.next.imm = self.request.val().imm;
        self.entry.next.grh = self.request.val().grh;
        self.entry.next.src_qp = self.request.val().src_qp;
        self.entry.next.rsvd1 = bits::<8>(0);
        self.entry.next.timestamp = bit_cast::<64, 32>(self.stamp.q.val());
        self.entry.next.syndrome = self.request.val().syndrome;
        self.entry.next.rsvd2 = bits::<16>(0);
        self.entry.next.rsvd3 = bits::<7>(0);
        self.entry.next.phase = self.ring.val().phase;
        self.cqe.x.next = self.entry.val();
        self.out.valid.next = self.act.issue.val();
        self.out.fence.next = self.fence.val();
        self.passed.next = self.out.passed.val();
        self.out.base.next = self.pipe.act_row.val().base;
        self.out.slot.next = self.ring.val().slot;
        self.out.owner.next = self.pipe.act_row.val().function;
        self.out.data.next = self.cqe.y.val();
        self.counts.d.next = self.act.counted.val();
        self.counts_of.d.next = self.pipe.act_op.val().function;
        self.stat.next = self.counts.q.val();
        self.stat_function.next = self.counts_of.q.val();
        self.tells.d.next = bit_cast::<2, 1>(self.reporter.sent.val().into()) | (bit_cast::<2, 1>(self.reporter.failed.val().into()) << 1);
        self.tells_of.d.next = self.reporter.whose.val();
        self.told.next = self.tells.q.val();
        self.told_function.next = self.tells_of.q.val();
    }
}
