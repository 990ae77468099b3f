//! Event writer. See README.md.
//!
//! Events and doorbells go through the pipeline of `host/table` over the event queues.

mod report;
#[cfg(test)]
mod tests;

use crate::assembly::AnyBlock;
use crate::bus::{MsgSink, MsgSrc};
use crate::for_clients;
use crate::host::table::entry::EntryOut;
use crate::host::table::ring::{RingFacts, RingLook};
use crate::host::table::TablePipe;
use crate::msg::{CtlReq, CtlResp, DoorbellMsg, EqeReq, MsixReq, WrDone, WrSmall};
use crate::prim::pack::{Cast, Gather};
use crate::records::{EqCtx, Eqe};
use crate::stats::flags;
use crate::stream::MsgSlice;
use ferric_hdl_derive::{kernel, BlockDefault};
use report::EventReporter;
use rust_hdl::prelude::*;

/// What bit i of `stat` counts. `eq_bad`: event for a queue that does not exist, which is nobody's and so the card's.
pub const STATS: &[&str] = &["eqe_written", "eq_bad", "eq_overflow", "eq_db_bad", "eq_db_overrun"];

/// What bit i of `told` counts, once the host has answered.
pub const TOLD: &[&str] = &["eq_msix", "eq_write_errors"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // An operation starts with a place for its entry and for its interrupt.
    ("s_req[*]", &["m_wr", "s_done", "m_msix"]),
    ("s_db", &[]),   // leads to nothing
    ("s_done", &[]), // 64 places, at most 62 reports and hence answers are on the way
    ("passed", &["fence", "m_wr"]),
    ("s_ctl", &[]), // one access at a time
    ("m_ctl", &[]), // operations in the table's pipeline pass in four cycles
];

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Kind {
    Eqe,
    Doorbell,
}

/// One operation in the pipeline; `function` and `index` are a doorbell's, the rest an event's.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Op {
    kind: Kind,
    function: Bits<12>,
    index: Bits<16>,
    event: Bits<8>,
    about: Bits<24>,
    cause: Bits<16>,
}

/// The unit for so many clients.
pub fn for_number<const LQ: usize>(clients: usize) -> AnyBlock {
    for_clients!(from one, clients, <N, P, M> AnyBlock::new(EventWriter::<LQ, N, P, M>::default()))
}

/// Event-queue unit for `2^LQ` queues and `N` requesters; `P` counts doorbells, too, `M` the control bus as well.
#[derive(LogicBlock, BlockDefault)]
#[demand(P == N + 1 && M == P + 1, "requesters, doorbells, the control bus")]
pub struct EventWriter<const LQ: usize, const N: usize, const P: usize, const M: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; clears the table (`2^LQ` cycles).
    pub reset: Signal<In, Bit>,
    pub s_req: [MsgSink<EqeReq>; N],
    pub s_db: MsgSink<DoorbellMsg>,
    pub m_wr: MsgSrc<WrSmall>,
    pub s_done: MsgSink<WrDone>,
    pub m_msix: MsgSrc<MsixReq>,
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
    reqs: [MsgSlice<EqeReq>; N],
    db: MsgSlice<DoorbellMsg>,
    eqe: Cast<Eqe, Bits<128>>,
    out: EntryOut<128, 204>,
    reporter: EventReporter,
    ready: Gather<P>,
    pipe: TablePipe<Op, EqCtx, LQ, P, M>,
    look: RingLook,
    exists: DFF<Bit>,
    mine: DFF<Bit>,
    counts: DFF<Bits<5>>,
    counts_of: DFF<Bits<12>>,
    tells: DFF<Bits<2>>,
    tells_of: DFF<Bits<12>>,
    request: Signal<Local, EqeReq>,
    source: Signal<Local, Op>,
    looked: Signal<Local, EqCtx>,
    ring: Signal<Local, RingFacts>,
    entry: Signal<Local, Eqe>,
    room: Signal<Local, Bit>,
    op: Signal<Local, Op>,
    kind: Signal<Local, Kind>,
    row: Signal<Local, EqCtx>,
    new_row: Signal<Local, EqCtx>,
    size: Signal<Local, Bits<16>>,
    full: Signal<Local, Bit>,
    producer_old: Signal<Local, Bits<16>>,
    producer_next: Signal<Local, Bits<16>>,
    write: Signal<Local, Bit>,
    issue: Signal<Local, Bit>,
    interrupt: Signal<Local, MsixReq>,
    counted: Signal<Local, Bits<5>>,
}

#[kernel]
impl<const LQ: usize, const N: usize, const P: usize, const M: usize> Logic for EventWriter<LQ, N, P, M> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, exists, mine, counts, counts_of, tells, tells_of);
        clock!(self, clock, db, pipe, look, out, reporter);
        self.db.reset.next = self.reset.val();
        self.pipe.reset.next = self.reset.val();
        self.out.reset.next = self.reset.val();
        self.reporter.reset.next = self.reset.val();
        for i in 0..N {
            self.reqs[i].clock.next = self.clock.val();
            self.reqs[i].reset.next = self.reset.val();
            MsgSink::<EqeReq>::link(&mut self.s_req[i], &mut self.reqs[i].s);
        }
        MsgSink::<DoorbellMsg>::link(&mut self.s_db, &mut self.db.s);
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.pipe.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.pipe.m_ctl);
        MsgSrc::<WrSmall>::link(&mut self.m_wr, &mut self.out.m_wr);
        MsgSink::<WrDone>::link(&mut self.s_done, &mut self.reporter.s_done);
        MsgSrc::<MsixReq>::link(&mut self.m_msix, &mut self.reporter.m_msix);

        // ---- The sources: events, then doorbells ----
        // Up to four operations may be on their way to the FIFOs.
        self.room.next = self.out.room.val() & self.reporter.room.val();
        for i in 0..N {
            self.request.next = self.reqs[i].m.data.val();
            self.source.next.kind = Kind::Eqe;
            self.source.next.function = bits::<12>(0);
            self.source.next.index = bits::<16>(0);
            self.source.next.event = self.request.val().kind;
            self.source.next.about = self.request.val().id;
            self.source.next.cause = self.request.val().cause;
            self.pipe.id[i].next = bit_cast::<24, 8>(self.request.val().eqn);
            self.pipe.op[i].next = self.source.val();
            self.ready.x[i].next = self.reqs[i].m.valid.val() & self.room.val();
            self.reqs[i].m.ready.next = self.pipe.grant.val().get_bit(i);
        }
        self.source.next.kind = Kind::Doorbell;
        self.source.next.function = self.db.m.data.val().function;
        self.source.next.index = self.db.m.data.val().index;
        self.source.next.event = bits::<8>(0);
        self.source.next.about = bits::<24>(0);
        self.source.next.cause = bits::<16>(0);
        for i in N..P {
            self.pipe.id[i].next = self.db.m.data.val().id;
            self.pipe.op[i].next = self.source.val();
            self.ready.x[i].next = self.db.m.valid.val();
            self.db.m.ready.next = self.pipe.grant.val().get_bit(i);
        }
        self.pipe.req.next = self.ready.y.val();

        // ---- Look ----
        self.looked.next = self.pipe.look_row.val();
        self.exists.d.next = self.looked.val().valid & self.pipe.look_inside.val();
        self.mine.d.next = self.looked.val().function == self.pipe.look_op.val().function;
        self.look.producer.next = self.looked.val().producer;
        self.look.consumer.next = self.looked.val().consumer;
        self.look.log_size.next = self.looked.val().log_size;
        self.look.index.next = self.pipe.look_op.val().index;

        // ---- Act ----
        self.op.next = self.pipe.act_op.val();
        self.kind.next = self.op.val().kind;
        self.row.next = self.pipe.act_row.val();
        self.ring.next = self.look.facts.val();
        self.new_row.next = self.row.val();
        self.write.next = false;
        self.issue.next = false;
        self.counted.next = bits::<5>(0);
        self.size.next = bits::<16>(1) << self.row.val().log_size;
        self.full.next = self.ring.val().unread >= self.size.val();
        self.producer_old.next = self.row.val().producer;
        self.producer_next.next = self.producer_old.val() + 1;
        if self.pipe.act_valid.val() {
            match self.kind.val() {
                Kind::Eqe => {
                    if !self.exists.q.val() {
                        self.counted.next = bits::<5>(flags(STATS, &["eq_bad"]) as u64);
                    } else if self.full.val() {
                        self.counted.next = bits::<5>(flags(STATS, &["eq_overflow"]) as u64);
                        self.write.next = true;
                        self.new_row.next.overflow = true;
                    } else {
                        self.counted.next = bits::<5>(flags(STATS, &["eqe_written"]) as u64);
                        self.write.next = true;
                        self.issue.next = true;
                        self.new_row.next.producer = self.producer_next.val();
                    }
                }
                _ => {
                    if !self.exists.q.val() | !self.mine.q.val() {
                        self.counted.next = bits::<5>(flags(STATS, &["eq_db_bad"]) as u64);
                    } else if self.ring.val().unread_then > self.ring.val().unread {
                        self.counted.next = bits::<5>(flags(STATS, &["eq_db_overrun"]) as u64);
                    } else {
                        self.write.next = true;
                        self.new_row.next.consumer = self.op.val().index;
                    }
                }
            }
        }
        self.pipe.write.next = self.write.val();
        self.pipe.new_row.next = self.new_row.val();
        self.pipe.ctl_new_row.next = self.pipe.ctl_row.val();
        self.interrupt.next.function = self.row.val().function;
        self.interrupt.next.vector = self.row.val().vector;
        self.reporter.s_report.data.next = self.interrupt.val();
        self.reporter.s_report.valid.next = self.issue.val();

        // ---- Out ----
        self.entry.next.kind = self.op.val().event;
        self.entry.next.rsvd0 = bits::<8>(0);
        self.entry.next.cause = self.op.val().cause;
        self.entry.next.id = self.op.val().about;
        self.entry.next.rsvd1 = bits::<8>(0);
        self.entry.next.rsvd2 = bits::<32>(0);
        self.entry.next.rsvd3 = bits::<31>(0);
        self.entry.next.phase = self.ring.val().phase;
        self.eqe.x.next = self.entry.val();
        self.out.valid.next = self.issue.val();
        self.out.fence.next = self.fence.val();
        self.passed.next = self.out.passed.val();
        self.out.base.next = self.row.val().base;
        self.out.slot.next = self.ring.val().slot;
        self.out.owner.next = self.row.val().function;
        self.out.data.next = self.eqe.y.val();
        self.counts.d.next = self.counted.val();
        self.counts_of.d.next = self.op.val().function;
        if (self.kind.val() == Kind::Eqe) & self.exists.q.val() {
            self.counts_of.d.next = self.row.val().function;
        }
        self.stat.next = self.counts.q.val();
        self.stat_function.next = self.counts_of.q.val();
        self.tells.d.next = bit_cast::<2, 1>(self.reporter.sent.val().into()) | (bit_cast::<2, 1>(self.reporter.failed.val().into()) << 1);
        self.tells_of.d.next = self.reporter.whose.val();
        self.told.next = self.tells.q.val();
        self.told_function.next = self.tells_of.q.val();
    }
}
