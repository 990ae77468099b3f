//! Send queues: doorbells, scheduler and burst fetch. See README.md.

pub mod again;
mod carried;
mod fetch;
mod merge;
#[cfg(test)]
use ferric_model::rings::send as model;
mod sched;
#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::host::wqe_store::WqeStore;
use crate::msg::{CtlReq, CtlResp, DoorbellMsg, RdCmd, RdRow, SqCmd, SqWqe, WqeData, WqeDoorbell, WqeFree, WqeRead};
use crate::stream::MsgSlice;
use ferric_hdl_derive::kernel;
use fetch::SqFetch;
use rust_hdl::prelude::*;
use sched::SqSched;

/// What bit i of `stat` counts: what is wrong with doorbells.
pub const STATS: &[&str] = &["sq_db_bad", "sq_db_overrun"];

/// What bit i of `fetched` counts.
pub const FETCHED: &[&str] = &["sq_fetches", "sq_flushed"];

/// What `fetch_errors` counts.
pub const FETCH_ERRORS: &[&str] = &["sq_fetch_errors"];

/// What bit i of `work` counts, of all functions together.
pub const WORK: &[&str] = &["sq_wqe_direct", "sq_offered"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_db", &[]),                          // an operation of the table: a queue is in the active list at most once, which has a place for each
    ("s_wqe", &[]),                         // the same; requests that wait for the fetcher leave places free (`carried.rs`)
    ("s_cmd[*]", &[]),                      // whatever `m_wqe` does
    ("s_rd", &[]),                          // rows go straight into their buffer
    ("s_read", &["m_read"]),                // a request is offered only when its buffer is filled
    ("m_read", &[]),                        // an answer follows its read; those before it are the same reader's, and of the same packet
    ("s_free[*]", &[]),                     // the list has a place for each buffer
    ("passed", &["fence", "m_rd", "s_rd"]), // a fetch number comes free with its last row
    ("s_ctl", &[]),                         // one access at a time
    ("m_ctl", &[]),                         // operations in the table's pipeline pass in four cycles
];

/// `SqJob`: what is done with its work requests.
pub(crate) mod job_kind {
    /// They are fetched.
    pub const FETCH: u64 = 0;
    /// They are flushed.
    pub const FLUSH: u64 = 1;
    /// The one that came with a doorbell.
    pub const DIRECT: u64 = 2;
}

/// The work requests the scheduler decided on, for the fetcher. `place`: of the one that a doorbell carried.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(crate) struct SqJob {
    kind: Bits<2>,
    qpn: Bits<24>,
    index: Bits<16>,
    epoch: Bits<8>,
    function: Bits<12>,
    count: Bits<4>,
    base: Bits<64>,
    offset: Bits<24>,
    stride: Bits<2>,
    place: Bits<4>,
}

/// Send-queue unit for `2^LQ` queues, with `NB` = 2^`LB` buffers of work requests, `LR` = LB + 3.
#[derive(LogicBlock, Default)]
pub struct SendQueue<const LQ: usize, const NB: usize, const LB: usize, const LR: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; clears the ring table (`2^LQ` cycles) and frees all buffers.
    pub reset: Signal<In, Bit>,
    pub s_db: MsgSink<DoorbellMsg>,
    pub s_wqe: MsgSink<WqeDoorbell>,
    pub s_cmd: [MsgSink<SqCmd>; 2],
    pub m_wqe: MsgSrc<SqWqe>,
    pub m_rd: MsgSrc<RdCmd>,
    pub s_rd: MsgSink<RdRow>,
    pub s_read: MsgSink<WqeRead>,
    pub m_read: MsgSrc<WqeData>,
    pub s_free: [MsgSink<WqeFree>; 2],
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// Pulse in; pulse out when every fetch decided before is with the DMA reader: of a ring that has been made invalid nothing is asked any more.
    pub fence: Signal<In, Bit>,
    pub passed: Signal<Out, Bit>,
    /// See [`STATS`]; whose events they are.
    pub stat: Signal<Out, Bits<2>>,
    pub stat_function: Signal<Out, Bits<12>>,
    /// The same of [`FETCHED`] and of [`FETCH_ERRORS`].
    pub fetched: Signal<Out, Bits<2>>,
    pub fetched_function: Signal<Out, Bits<12>>,
    pub fetch_errors: Signal<Out, Bit>,
    pub fetch_errors_function: Signal<Out, Bits<12>>,
    /// See [`WORK`].
    pub work: Signal<Out, Bits<2>>,
    sched: SqSched<LQ, NB>,
    fetch: SqFetch<LB>,
    store: WqeStore<NB, LB, LR>,
    free0: MsgSlice<WqeFree>,
    free1: MsgSlice<WqeFree>,
    turn: DFF<Bit>,
    counts: DFF<Bits<2>>,
    counts_of: DFF<Bits<12>>,
    begins: DFF<Bits<2>>,
    begins_of: DFF<Bits<12>>,
    fails: DFF<Bit>,
    works: DFF<Bits<2>>,
    second: Signal<Local, Bit>,
}

#[kernel]
impl<const LQ: usize, const NB: usize, const LB: usize, const LR: usize> Logic for SendQueue<LQ, NB, LB, LR> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, turn, counts, counts_of, begins, begins_of, fails, works);
        clock!(self, clock, sched, fetch, store, free0, free1);
        self.sched.reset.next = self.reset.val();
        self.fetch.reset.next = self.reset.val();
        self.store.reset.next = self.reset.val();
        self.free0.reset.next = self.reset.val();
        self.free1.reset.next = self.reset.val();
        MsgSink::<DoorbellMsg>::link(&mut self.s_db, &mut self.sched.s_db);
        MsgSink::<WqeDoorbell>::link(&mut self.s_wqe, &mut self.sched.s_wqe);
        for i in 0..2 {
            MsgSink::<SqCmd>::link(&mut self.s_cmd[i], &mut self.sched.s_cmd[i]);
        }
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.sched.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.sched.m_ctl);
        MsgSrc::<SqJob>::join(&mut self.sched.m_job, &mut self.fetch.s_job);
        MsgSrc::<SqWqe>::link(&mut self.m_wqe, &mut self.fetch.m_wqe);
        MsgSrc::<RdCmd>::link(&mut self.m_rd, &mut self.fetch.m_rd);
        MsgSink::<RdRow>::link(&mut self.s_rd, &mut self.store.s_rd);
        MsgSink::<WqeRead>::link(&mut self.s_read, &mut self.store.s_read);
        MsgSrc::<WqeData>::link(&mut self.m_read, &mut self.store.m_read);
        MsgSink::<WqeFree>::link(&mut self.s_free[0], &mut self.free0.s);
        MsgSink::<WqeFree>::link(&mut self.s_free[1], &mut self.free1.s);
        MsgSrc::<WqeFree>::join(&mut self.store.m_buffer, &mut self.fetch.s_buffer);

        self.fetch.job_came.next = self.sched.issued.val();
        self.fetch.fence.next = self.fence.val();
        self.passed.next = self.fetch.passed.val();

        // Two parties give buffers back, in turn when both do.
        self.second.next = self.free1.m.valid.val() & (self.turn.q.val() | !self.free0.m.valid.val());
        self.store.s_free.data.next = self.free0.m.data.val();
        if self.second.val() {
            self.store.s_free.data.next = self.free1.m.data.val();
        }
        self.store.s_free.valid.next = self.free0.m.valid.val() | self.free1.m.valid.val();
        self.free0.m.ready.next = self.store.s_free.ready.val() & !self.second.val();
        self.free1.m.ready.next = self.store.s_free.ready.val() & self.second.val();
        self.turn.d.next = !self.second.val();

        self.sched.freed.next = self.store.freed.val();
        self.sched.wqe_place.next = self.fetch.put_place.val();
        self.sched.wqe_taken.next = self.fetch.put_en.val() & self.store.put_ready.val();
        self.store.map_we.next = self.fetch.map_we.val();
        self.store.map_addr.next = self.fetch.map_addr.val();
        self.store.map_handle.next = self.fetch.map_handle.val();
        self.store.open_en.next = self.fetch.open_en.val();
        self.store.open_done.next = self.fetch.open_done.val();
        self.store.put_en.next = self.fetch.put_en.val();
        self.store.put_handle.next = self.fetch.put_handle.val();
        self.store.put_data.next = self.sched.wqe_data.val();
        self.store.head_addr.next = self.fetch.head_addr.val();
        self.fetch.put_ready.next = self.store.put_ready.val();
        self.fetch.done.next = self.store.done.val();
        self.fetch.err.next = self.store.err.val();
        self.fetch.tag_done.next = self.store.tag_done.val();
        self.fetch.tag.next = self.store.tag.val();
        self.fetch.head.next = self.store.head.val();
        self.fetch.sge.next = self.store.sge.val();
        self.fetch.more.next = self.store.more.val();

        self.counts.d.next = self.sched.stat.val();
        self.counts_of.d.next = self.sched.stat_function.val();
        self.stat.next = self.counts.q.val();
        self.stat_function.next = self.counts_of.q.val();
        self.begins.d.next = bit_cast::<2, 1>(self.fetch.issued.val().into()) | (bit_cast::<2, 1>(self.fetch.flushed.val().into()) << 1);
        self.begins_of.d.next = self.fetch.job_function.val();
        self.fetched.next = self.begins.q.val();
        self.fetched_function.next = self.begins_of.q.val();
        self.fails.d.next = self.store.tag_err.val();
        self.fetch_errors.next = self.fails.q.val();
        self.fetch_errors_function.next = self.fetch.tag_function.val();
        self.works.d.next = bit_cast::<2, 1>(self.sched.wqe_taken.val().into()) | (bit_cast::<2, 1>(self.fetch.offered.val().into()) << 1);
        self.work.next = self.works.q.val();
        if self.reset.val() {
            self.turn.d.next = false;
        }
    }
}
