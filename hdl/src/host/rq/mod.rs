//! Receive queues: receive work requests in ring order, fetched when handed out. See README.md.

mod ahead;
mod grant;
#[cfg(test)]
use ferric_model::rings::receive as model;
mod table;
#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::host::wqe_store::WqeStore;
use crate::msg::{CtlReq, CtlResp, DoorbellMsg, EqeReq, RdCmd, RdRow, RqAlloc, RqCmd, RqFlush, RqGrant, WqeData, WqeFree, WqeRead};
use ahead::{RqAhead, RqCopy, RqDue};
use ferric_hdl_derive::kernel;
use grant::RqGranter;
use rust_hdl::prelude::*;
use table::RqTable;

/// What bit i of `stat` counts.
pub const STATS: &[&str] = &["rq_db_bad", "rq_db_overrun", "rq_empty", "rq_fetched_again", "rq_flushed", "srq_limits", "srq_errors", "rq_fetched_ahead"];

/// What `fetches` and `fetch_errors` count.
pub const FETCHES: &[&str] = &["rq_fetches"];
pub const FETCH_ERRORS: &[&str] = &["rq_fetch_errors"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_db", &[]), // an operation of the table: a ring is in the active list at most once, which has a place for each
    // Until a buffer is free, and the victim's is filled; then for a place for the answer, the read and the event. Not for `m_flush`.
    ("s_alloc", &["s_free", "m_rd", "s_rd", "m_grant", "m_late", "m_event"]),
    ("m_grant", &["s_free", "m_rd", "s_rd", "m_grant", "m_late", "m_event"]),
    ("m_late", &["s_free", "m_rd", "s_rd", "m_grant", "m_late", "m_event"]),
    ("s_cmd", &[]),                          // as `s_db`
    ("s_rd", &[]),                           // rows go straight into their buffer
    ("s_read", &["m_rd", "s_rd", "m_read"]), // until the buffer is filled, whatever allocation waits
    ("m_read", &["m_rd", "s_rd", "m_read"]),
    ("s_free", &[]), // the list has a place for each buffer
    ("passed", &["fence", "m_rd"]),
    ("s_ctl", &[]), // one access at a time
    ("m_ctl", &[]), // operations in the table's pipeline pass in four cycles
];

/// Work request buffers.
pub const BUFFERS: usize = 64;

/// A decision of the table. `grant`: an answered `RqAlloc`, the slot to hand out, or nothing (`ok` 0); `hit`: it is in `block`, which is free behind it if `frees`;
/// `ring` counts if it is `shared`. `release`: `count` blocks from `block` on are given back. Neither: `count` rows are fetched ahead into `block`.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(crate) struct RqJob {
    grant: Bit,
    late: Bit,
    release: Bit,
    ok: Bit,
    dead: Bit,
    shared: Bit,
    hit: Bit,
    frees: Bit,
    block: Bits<7>,
    count: Bits<4>,
    ring: Bits<24>,
    index: Bits<16>,
    function: Bits<12>,
    base: Bits<64>,
    offset: Bits<25>,
    stride: Bits<2>,
}

/// A shared receive queue's work request could not be fetched.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(crate) struct RqFault {
    ring: Bits<24>,
}

/// Receive-queue unit for `2^LQ` receive rings: the lower half belongs to queue pairs, the upper half to shared receive queues. `2^LB` blocks of eight rows
/// hold what is fetched ahead and what passes; `LR` = `LB` + 3.
#[derive(LogicBlock, Default)]
pub struct RecvQueue<const LQ: usize, const LB: usize, const LR: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; clears the ring table (`2^LQ` cycles) and frees all buffers.
    pub reset: Signal<In, Bit>,
    pub s_db: MsgSink<DoorbellMsg>,
    pub s_alloc: MsgSink<RqAlloc>,
    /// One answer per `RqAlloc`, in order.
    pub m_grant: MsgSrc<RqGrant>,
    /// Those of allocations that are `late`, instead, in order, too; and a pulse for each one that is decided.
    pub m_late: MsgSrc<RqGrant>,
    pub told: Signal<Out, Bit>,
    /// So many requests ring `peek` had, in the next cycle, 15 or more are 15; without allocations that nothing has been told of.
    pub peek: Signal<In, Bits<24>>,
    pub posted: Signal<Out, Bits<4>>,
    pub s_cmd: MsgSink<RqCmd>,
    pub m_flush: MsgSrc<RqFlush>,
    /// Of shared receive queues: limit reached, error.
    pub m_event: MsgSrc<EqeReq>,
    pub m_rd: MsgSrc<RdCmd>,
    pub s_rd: MsgSink<RdRow>,
    pub s_read: MsgSink<WqeRead>,
    pub m_read: MsgSrc<WqeData>,
    pub s_free: MsgSink<WqeFree>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// Pulse in; pulse out when the fetch of every receive granted before has been handed on.
    pub fence: Signal<In, Bit>,
    pub passed: Signal<Out, Bit>,
    /// See [`STATS`]; whose events they are.
    pub stat: Signal<Out, Bits<8>>,
    pub stat_function: Signal<Out, Bits<12>>,
    /// See [`FETCHES`] and [`FETCH_ERRORS`]; whose events they are.
    pub fetches: Signal<Out, Bit>,
    pub fetches_function: Signal<Out, Bits<12>>,
    pub fetch_errors: Signal<Out, Bit>,
    pub fetch_errors_function: Signal<Out, Bits<12>>,
    rings: RqTable<LQ, LB>,
    granter: RqGranter,
    ahead: RqAhead<LB, LR>,
    store: WqeStore<64, 6, 9>,
    counts: DFF<Bits<8>>,
    counts_of: DFF<Bits<12>>,
    tells: DFF<Bit>,
    begins: DFF<Bit>,
    begins_of: DFF<Bits<12>>,
    fails: DFF<Bit>,
    fails_of: DFF<Bits<12>>,
    head: Signal<Local, Bits<256>>,
}

#[kernel]
impl<const LQ: usize, const LB: usize, const LR: usize> Logic for RecvQueue<LQ, LB, LR> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, tells, counts, counts_of, begins, begins_of, fails, fails_of);
        clock!(self, clock, rings, granter, ahead, store);
        self.rings.reset.next = self.reset.val();
        self.granter.reset.next = self.reset.val();
        self.ahead.reset.next = self.reset.val();
        self.store.reset.next = self.reset.val();
        MsgSink::<DoorbellMsg>::link(&mut self.s_db, &mut self.rings.s_db);
        MsgSink::<RqAlloc>::link(&mut self.s_alloc, &mut self.rings.s_alloc);
        MsgSink::<RqCmd>::link(&mut self.s_cmd, &mut self.rings.s_cmd);
        MsgSrc::<RqFlush>::link(&mut self.m_flush, &mut self.rings.m_flush);
        MsgSrc::<EqeReq>::link(&mut self.m_event, &mut self.rings.m_event);
        MsgSrc::<RqFault>::join(&mut self.granter.m_fault, &mut self.rings.s_fault);
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.rings.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.rings.m_ctl);
        MsgSrc::<RqJob>::join(&mut self.rings.m_job, &mut self.granter.s_job);
        MsgSrc::<RqGrant>::link(&mut self.m_grant, &mut self.granter.m_grant);
        MsgSrc::<RqGrant>::link(&mut self.m_late, &mut self.granter.m_late);
        self.tells.d.next = self.granter.told.val();
        self.told.next = self.tells.q.val();
        self.rings.peek.next = self.peek.val();
        self.posted.next = self.rings.posted.val();
        MsgSrc::<RdCmd>::link(&mut self.m_rd, &mut self.granter.m_rd);
        MsgSink::<RdRow>::link(&mut self.s_rd, &mut self.ahead.s_rd);
        MsgSrc::<RqDue>::join(&mut self.granter.m_due, &mut self.ahead.s_due);
        MsgSrc::<RqCopy>::join(&mut self.granter.m_copy, &mut self.ahead.s_copy);
        MsgSrc::<RdRow>::join(&mut self.ahead.m_row, &mut self.store.s_rd);
        self.ahead.passes.next = self.granter.passes.val();
        self.granter.pass_ok.next = self.ahead.pass_ok.val();
        self.granter.reading.next = self.rings.reading.val();
        self.rings.block.next = self.ahead.block.val();
        self.rings.block_ok.next = self.ahead.block_ok.val();
        self.ahead.take.next = self.rings.take.val();
        self.rings.limit.next = self.ahead.limit.val();
        self.rings.roomy.next = self.ahead.roomy.val();
        self.ahead.link_en.next = self.rings.link_en.val();
        self.ahead.link_at.next = self.rings.link_at.val();
        self.ahead.link.next = self.rings.link.val();
        self.ahead.look_at.next = self.rings.look_at.val();
        self.rings.chained.next = self.ahead.chained.val();
        MsgSink::<WqeRead>::link(&mut self.s_read, &mut self.store.s_read);
        MsgSrc::<WqeData>::link(&mut self.m_read, &mut self.store.m_read);
        MsgSink::<WqeFree>::link(&mut self.s_free, &mut self.store.s_free);
        MsgSrc::<WqeFree>::join(&mut self.store.m_buffer, &mut self.granter.s_buffer);
        self.rings.freed.next = self.store.freed.val();
        self.granter.fence.next = self.fence.val();
        self.passed.next = self.granter.passed.val();
        self.rings.filled.next = self.store.done.val();
        self.head.next = self.store.head.val();
        self.rings.copy.next = self.head.val().get_bits::<16>(32);
        self.store.map_we.next = self.granter.open_en.val();
        self.store.map_addr.next = bit_cast::<9, 6>(self.granter.fetch.val()) << 3;
        self.store.map_handle.next = self.granter.handle.val();
        self.store.open_en.next = self.granter.open_en.val();
        self.store.open_done.next = false;
        self.store.put_en.next = false;
        self.store.put_handle.next = bits::<6>(0);
        self.store.put_data.next = bits::<512>(0);
        self.store.head_addr.next = self.rings.victim.val();
        self.granter.tag_done.next = self.store.tag_done.val();
        self.granter.tag_err.next = self.store.tag_err.val();
        self.granter.tag.next = self.store.tag.val();
        self.counts.d.next = self.rings.stat.val();
        self.counts_of.d.next = self.rings.stat_function.val();
        self.stat.next = self.counts.q.val();
        self.stat_function.next = self.counts_of.q.val();
        self.begins.d.next = self.granter.open_en.val();
        self.begins_of.d.next = self.granter.open_function.val();
        self.fetches.next = self.begins.q.val();
        self.fetches_function.next = self.begins_of.q.val();
        self.fails.d.next = self.store.tag_err.val();
        self.fails_of.d.next = self.granter.tag_function.val();
        self.fetch_errors.next = self.fails.q.val();
        self.fetch_errors_function.next = self.fails_of.q.val();
    }
}
