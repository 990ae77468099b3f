//! The card core: every block of `docs/microarchitecture.md` and the wires between them. No logic of its own.

pub mod counters;
#[cfg(test)]
mod tests;

use crate::bus::{AxisSink, AxisSrc, MsgSrc};
use crate::cc::hook::CcHook;
use crate::context::bus::CtxClient;
use crate::context::store::CtxStore;
use crate::host::{admin::{program::Sizes, Admin}, cq::CompletionWriter, csr::Csr, ctl::switch::CtlSwitch, dma_rd::DmaRead, dma_wr::DmaWrite, doorbell::Doorbell, eq::EventWriter, row_share::RowShare, rq::RecvQueue, sq::{again::WqeAgainUnit, SendQueue}};
use crate::msg::*;
use crate::net::{cells::{CellBuffer, CellWriter}, dispatch::Dispatch, rx::RxFront, tx::Egress};
use crate::rdma::{complete::Complete, mover::Mover, mr::MemoryKeys, place::Place};
use crate::records::{PathCtx, ReqCtx, RspCtx};
use crate::roce::{ackgen::AckGen, gather::Gather, header::HeaderBuilder, mcast::Multicast, peer::PeerCheck, reply::Reply, req_rx::RequesterRx, req_tx::RequesterTx, resp::Responder, timer::Timers, tracker::Tracker};
use crate::stats::Stats;
use crate::stream::{MsgArb, MsgFifo};
use ferric_abi::csr::space;
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// The card core. `W`, `K`, `LK`: data path bits, bytes, log2 bytes. `LQ`: log2 queue pairs, `LA` = `LQ` + 7, `LR` = `LQ` + 5, `LN` = `LQ` + 1 (receive rings: queue
/// pairs and as many shared receive queues), `LC` completion queues,
/// `LM` memory regions, `LE` event queues.
#[derive(LogicBlock, BlockDefault)]
pub struct Core<const W: usize, const K: usize, const LK: usize, const LQ: usize, const LA: usize, const LR: usize, const LN: usize, const LC: usize, const LM: usize, const LE: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous, active high. Registered once inside: buses stay idle for the first two cycles after it falls.
    pub reset: Signal<In, Bit>,
    /// Ticks of 1.024 us, counted by the shell.
    pub now: Signal<In, Bits<32>>,
    // Registers: AXI4-Lite slave.
    pub csr_aw_valid: Signal<In, Bit>, pub csr_aw_ready: Signal<Out, Bit>, pub csr_aw_addr: Signal<In, Bits<32>>,
    pub csr_w_valid: Signal<In, Bit>, pub csr_w_ready: Signal<Out, Bit>, pub csr_w_data: Signal<In, Bits<32>>, pub csr_w_strb: Signal<In, Bits<4>>,
    pub csr_b_valid: Signal<Out, Bit>, pub csr_b_ready: Signal<In, Bit>, pub csr_b_resp: Signal<Out, Bits<2>>,
    pub csr_ar_valid: Signal<In, Bit>, pub csr_ar_ready: Signal<Out, Bit>, pub csr_ar_addr: Signal<In, Bits<32>>,
    pub csr_r_valid: Signal<Out, Bit>, pub csr_r_ready: Signal<In, Bit>, pub csr_r_data: Signal<Out, Bits<32>>, pub csr_r_resp: Signal<Out, Bits<2>>,
    // Doorbells: AXI4 write-only slave.
    pub db_aw_valid: Signal<In, Bit>, pub db_aw_ready: Signal<Out, Bit>, pub db_aw_addr: Signal<In, Bits<32>>, pub db_aw_len: Signal<In, Bits<8>>,
    pub db_w_valid: Signal<In, Bit>, pub db_w_ready: Signal<Out, Bit>, pub db_w_data: Signal<In, Bits<W>>, pub db_w_strb: Signal<In, Bits<K>>, pub db_w_last: Signal<In, Bit>,
    pub db_b_valid: Signal<Out, Bit>, pub db_b_ready: Signal<In, Bit>, pub db_b_resp: Signal<Out, Bits<2>>,
    // DMA: AXI4 master.
    pub ar_valid: Signal<Out, Bit>, pub ar_ready: Signal<In, Bit>, pub ar_id: Signal<Out, Bits<8>>, pub ar_addr: Signal<Out, Bits<64>>, pub ar_len: Signal<Out, Bits<8>>, pub ar_user: Signal<Out, Bits<12>>,
    pub r_valid: Signal<In, Bit>, pub r_ready: Signal<Out, Bit>, pub r_id: Signal<In, Bits<8>>, pub r_data: Signal<In, Bits<W>>, pub r_resp: Signal<In, Bits<2>>, pub r_last: Signal<In, Bit>,
    pub aw_valid: Signal<Out, Bit>, pub aw_ready: Signal<In, Bit>, pub aw_addr: Signal<Out, Bits<64>>, pub aw_len: Signal<Out, Bits<8>>, pub aw_user: Signal<Out, Bits<12>>,
    pub w_valid: Signal<Out, Bit>, pub w_ready: Signal<In, Bit>, pub w_data: Signal<Out, Bits<W>>, pub w_strb: Signal<Out, Bits<K>>, pub w_last: Signal<Out, Bit>,
    pub b_valid: Signal<In, Bit>, pub b_ready: Signal<Out, Bit>, pub b_resp: Signal<In, Bits<2>>,
    /// Interrupt requests.
    pub msix: MsgSrc<MsixReq>,
    /// MAC, receive side: `ready` is always high; `rx_err` with the last beat: the MAC found the frame bad.
    pub rx: AxisSink<W, K>,
    pub rx_err: Signal<In, Bit>,
    /// MAC, transmit side.
    pub tx: AxisSrc<W, K>,

    #[init(Csr::new(capabilities(K, [LQ, LC, LM, LE])))]
    csr: Csr,
    doorbell: Doorbell<W, K>,
    #[init(Admin::new(Sizes { qp: LQ as u32, cq: LC as u32, mr: LM as u32, pd: LOG_PDS, eq: LE as u32 }))]
    admin: Admin,
    #[init(CtlSwitch::new([space::SQ, space::RQ, space::REQ, space::RSP, space::PATH, space::CQ, space::EQ, space::MR, space::STATS, space::MCAST]))]
    switch: CtlSwitch<10>,
    stats: Stats<128>,
    dma_rd: DmaRead<W, K, LK>,
    dma_wr: DmaWrite<W, K, LK>,
    sq: SendQueue<LQ>,
    again: WqeAgainUnit<LQ>,
    /// The receive queues' port of small reads, with those of `again`.
    rows: RowShare,
    rq: RecvQueue<LN>,
    cq: CompletionWriter<LC>,
    eq: EventWriter<LE>,
    req_ctx: CtxStore<ReqCtx, LQ, 3>,
    rsp_ctx: CtxStore<RspCtx, LQ, 2>,
    path_ctx: CtxStore<PathCtx, LQ, 2>,
    keys: MemoryKeys<LM>,
    req_tx: RequesterTx,
    gather: Gather,
    header: HeaderBuilder<W, K>,
    ackgen: AckGen<LQ>,
    reply: Reply<LQ, LR>,
    congestion: CcHook,
    mcast: Multicast<6, LQ>,
    egress: Egress<W, K, LK>,
    tracker: Tracker<LQ, LA>,
    timers: Timers<LQ>,
    req_rx: RequesterRx,
    front: RxFront<W, K, LK>,
    peer: PeerCheck<LQ>,
    cells: CellBuffer<W, K>,
    dispatch: Dispatch,
    /// As many descriptors as the cell buffer has cells, so that the receive front never waits.
    resp: Responder<LQ>,
    place: Place<LQ>,
    mover: Mover<W, K, LK>,
    complete: Complete<LQ>,
    /// Error reports cross between requester and responder: room for one per queue pair, so that neither waits for the other.
    error_to_req: MsgFifo<QpError, LQ>,
    error_to_resp: MsgFifo<QpError, LQ>,
    error_from_complete: MsgFifo<QpError, LQ>,
    error_from_reply: MsgFifo<QpError, LQ>,
    req_errors: MsgArb<QpError, 2>,
    /// Local failures and local operations of the requester.
    req_reports: MsgArb<TxDone, 2>,
    resp_errors: MsgArb<QpError, 3>,
    /// Registered here: one fan-out tree for the whole core, and inputs that a simulator need not follow through every block.
    reset_q: DFF<Bit>,
    now_q: DFF<Bits<32>>,
    counted: Signal<Local, Bits<128>>,
}

impl<const W: usize, const K: usize, const LK: usize, const LQ: usize, const LA: usize, const LR: usize, const LN: usize, const LC: usize, const LM: usize, const LE: usize> Logic
    for Core<W, K, LK, LQ, LA, LR, LN, LC, LM, LE>
{
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, reset_q, now_q);
        self.reset_q.d.next = self.reset.val();
        self.now_q.d.next = self.now.val();
        clock!(self, clock, csr, doorbell, admin, switch, stats, dma_rd, dma_wr, sq, again, rows, rq, cq, eq, req_ctx, rsp_ctx, path_ctx, keys);
        clock!(self, clock, congestion, mcast, req_tx, gather, header, ackgen, reply, egress, tracker, timers, req_rx, front, peer, cells, dispatch);
        clock!(self, clock, resp, place, mover, complete, error_to_req, error_to_resp, error_from_complete, error_from_reply, req_errors, req_reports, resp_errors);
        self.csr.reset.next = self.reset_q.q.val();
        self.doorbell.reset.next = self.reset_q.q.val();
        self.admin.reset.next = self.reset_q.q.val();
        self.switch.reset.next = self.reset_q.q.val();
        self.stats.reset.next = self.reset_q.q.val();
        self.dma_rd.reset.next = self.reset_q.q.val();
        self.dma_wr.reset.next = self.reset_q.q.val();
        self.sq.reset.next = self.reset_q.q.val();
        self.again.reset.next = self.reset_q.q.val();
        self.rows.reset.next = self.reset_q.q.val();
        self.rq.reset.next = self.reset_q.q.val();
        self.cq.reset.next = self.reset_q.q.val();
        self.eq.reset.next = self.reset_q.q.val();
        self.req_ctx.reset.next = self.reset_q.q.val();
        self.rsp_ctx.reset.next = self.reset_q.q.val();
        self.path_ctx.reset.next = self.reset_q.q.val();
        self.keys.reset.next = self.reset_q.q.val();
        self.req_tx.reset.next = self.reset_q.q.val();
        self.gather.reset.next = self.reset_q.q.val();
        self.header.reset.next = self.reset_q.q.val();
        self.ackgen.reset.next = self.reset_q.q.val();
        self.reply.reset.next = self.reset_q.q.val();
        self.mcast.reset.next = self.reset_q.q.val();
        self.congestion.reset.next = self.reset_q.q.val();
        self.egress.reset.next = self.reset_q.q.val();
        self.tracker.reset.next = self.reset_q.q.val();
        self.timers.reset.next = self.reset_q.q.val();
        self.req_rx.reset.next = self.reset_q.q.val();
        self.front.reset.next = self.reset_q.q.val();
        self.cells.reset.next = self.reset_q.q.val();
        self.dispatch.reset.next = self.reset_q.q.val();
        self.resp.reset.next = self.reset_q.q.val();
        self.place.reset.next = self.reset_q.q.val();
        self.mover.reset.next = self.reset_q.q.val();
        self.complete.reset.next = self.reset_q.q.val();
        self.error_to_req.reset.next = self.reset_q.q.val();
        self.error_to_resp.reset.next = self.reset_q.q.val();
        self.error_from_complete.reset.next = self.reset_q.q.val();
        self.error_from_reply.reset.next = self.reset_q.q.val();
        self.req_errors.reset.next = self.reset_q.q.val();
        self.req_reports.reset.next = self.reset_q.q.val();
        self.resp_errors.reset.next = self.reset_q.q.val();

        // Registers
        self.csr.aw_valid.next = self.csr_aw_valid.val();
        self.csr_aw_ready.next = self.csr.aw_ready.val();
        self.csr.aw_addr.next = self.csr_aw_addr.val();
        self.csr.w_valid.next = self.csr_w_valid.val();
        self.csr_w_ready.next = self.csr.w_ready.val();
        self.csr.w_data.next = self.csr_w_data.val();
        self.csr.w_strb.next = self.csr_w_strb.val();
        self.csr_b_valid.next = self.csr.b_valid.val();
        self.csr.b_ready.next = self.csr_b_ready.val();
        self.csr_b_resp.next = self.csr.b_resp.val();
        self.csr.ar_valid.next = self.csr_ar_valid.val();
        self.csr_ar_ready.next = self.csr.ar_ready.val();
        self.csr.ar_addr.next = self.csr_ar_addr.val();
        self.csr_r_valid.next = self.csr.r_valid.val();
        self.csr.r_ready.next = self.csr_r_ready.val();
        self.csr_r_data.next = self.csr.r_data.val();
        self.csr_r_resp.next = self.csr.r_resp.val();
        self.csr.tick.next = self.now_q.q.val();
        for i in 0..4 {
            self.admin.admin_sq[i].next = self.csr.admin_sq[i].val();
            self.admin.admin_cq[i].next = self.csr.admin_cq[i].val();
            self.admin.admin_log_size[i].next = self.csr.admin_log_size[i].val();
            self.admin.admin_producer[i].next = self.csr.admin_producer[i].val();
        }
        self.admin.enable.next = self.csr.enable.val();
        self.admin.reset_req.next = self.csr.reset_req.val();
        self.csr.reset_busy.next = self.admin.reset_busy.val();

        // Doorbells
        self.doorbell.aw_valid.next = self.db_aw_valid.val();
        self.db_aw_ready.next = self.doorbell.aw_ready.val();
        self.doorbell.aw_addr.next = self.db_aw_addr.val();
        self.doorbell.aw_len.next = self.db_aw_len.val();
        self.doorbell.w_valid.next = self.db_w_valid.val();
        self.db_w_ready.next = self.doorbell.w_ready.val();
        self.doorbell.w_data.next = self.db_w_data.val();
        self.doorbell.w_strb.next = self.db_w_strb.val();
        self.doorbell.w_last.next = self.db_w_last.val();
        self.db_b_valid.next = self.doorbell.b_valid.val();
        self.doorbell.b_ready.next = self.db_b_ready.val();
        self.db_b_resp.next = self.doorbell.b_resp.val();
        MsgSrc::<DoorbellMsg>::join(&mut self.doorbell.m_sq, &mut self.sq.s_db);
        MsgSrc::<DoorbellMsg>::join(&mut self.doorbell.m_rq, &mut self.rq.s_db);
        MsgSrc::<DoorbellMsg>::join(&mut self.doorbell.m_cq, &mut self.cq.s_db);
        MsgSrc::<DoorbellMsg>::join(&mut self.doorbell.m_eq, &mut self.eq.s_db);
        MsgSrc::<WqeDoorbell>::join(&mut self.doorbell.m_wqe, &mut self.sq.s_wqe);

        // DMA bus
        self.ar_valid.next = self.dma_rd.ar_valid.val();
        self.dma_rd.ar_ready.next = self.ar_ready.val();
        self.ar_id.next = self.dma_rd.ar_id.val();
        self.ar_addr.next = self.dma_rd.ar_addr.val();
        self.ar_len.next = self.dma_rd.ar_len.val();
        self.ar_user.next = self.dma_rd.ar_user.val();
        self.dma_rd.r_valid.next = self.r_valid.val();
        self.r_ready.next = self.dma_rd.r_ready.val();
        self.dma_rd.r_id.next = self.r_id.val();
        self.dma_rd.r_data.next = self.r_data.val();
        self.dma_rd.r_resp.next = self.r_resp.val();
        self.dma_rd.r_last.next = self.r_last.val();
        self.aw_valid.next = self.dma_wr.aw_valid.val();
        self.dma_wr.aw_ready.next = self.aw_ready.val();
        self.aw_addr.next = self.dma_wr.aw_addr.val();
        self.aw_len.next = self.dma_wr.aw_len.val();
        self.aw_user.next = self.dma_wr.aw_user.val();
        self.w_valid.next = self.dma_wr.w_valid.val();
        self.dma_wr.w_ready.next = self.w_ready.val();
        self.w_data.next = self.dma_wr.w_data.val();
        self.w_strb.next = self.dma_wr.w_strb.val();
        self.w_last.next = self.dma_wr.w_last.val();
        self.dma_wr.b_valid.next = self.b_valid.val();
        self.b_ready.next = self.dma_wr.b_ready.val();
        self.dma_wr.b_resp.next = self.b_resp.val();

        // Small reads and writes
        MsgSrc::<RdCmd>::join(&mut self.admin.m_rd, &mut self.dma_rd.s_small[0]);
        MsgSrc::<RdRow>::join(&mut self.dma_rd.m_small[0], &mut self.admin.s_rd);
        MsgSrc::<RdCmd>::join(&mut self.sq.m_rd, &mut self.dma_rd.s_small[1]);
        MsgSrc::<RdRow>::join(&mut self.dma_rd.m_small[1], &mut self.sq.s_rd);
        MsgSrc::<RdCmd>::join(&mut self.rq.m_rd, &mut self.rows.s_cmd[0]);
        MsgSrc::<RdRow>::join(&mut self.rows.m_row[0], &mut self.rq.s_rd);
        MsgSrc::<RdCmd>::join(&mut self.again.m_rd, &mut self.rows.s_cmd[1]);
        MsgSrc::<RdRow>::join(&mut self.rows.m_row[1], &mut self.again.s_rd);
        MsgSrc::<RdCmd>::join(&mut self.rows.m_cmd, &mut self.dma_rd.s_small[2]);
        MsgSrc::<RdRow>::join(&mut self.dma_rd.m_small[2], &mut self.rows.s_row);
        MsgSrc::<RdCmd>::join(&mut self.keys.m_rd, &mut self.dma_rd.s_small[3]);
        MsgSrc::<RdRow>::join(&mut self.dma_rd.m_small[3], &mut self.keys.s_rd);
        MsgSrc::<RdCmd>::join(&mut self.reply.m_rd, &mut self.dma_rd.s_small[4]);
        MsgSrc::<RdRow>::join(&mut self.dma_rd.m_small[4], &mut self.reply.s_rd);
        MsgSrc::<WrSmall>::join(&mut self.admin.m_wr, &mut self.dma_wr.s_small[0]);
        MsgSrc::<WrDone>::join(&mut self.dma_wr.m_small_done[0], &mut self.admin.s_done);
        MsgSrc::<WrSmall>::join(&mut self.cq.m_wr, &mut self.dma_wr.s_small[1]);
        MsgSrc::<WrDone>::join(&mut self.dma_wr.m_small_done[1], &mut self.cq.s_done);
        MsgSrc::<WrSmall>::join(&mut self.eq.m_wr, &mut self.dma_wr.s_small[2]);
        MsgSrc::<WrDone>::join(&mut self.dma_wr.m_small_done[2], &mut self.eq.s_done);
        MsgSrc::<WrSmall>::join(&mut self.reply.m_wr, &mut self.dma_wr.s_small[3]);
        MsgSrc::<WrDone>::join(&mut self.dma_wr.m_small_done[3], &mut self.reply.s_wr);
        self.dma_wr.atomic_hold.next = self.reply.atomic_hold.val();
        self.dma_wr.atomic_page.next = self.reply.atomic_page.val();
        self.reply.atomic_clear.next = self.dma_wr.atomic_clear.val();
        self.dma_wr.atomic_begin.next = self.reply.atomic_begin.val();
        self.dma_wr.atomic_end.next = self.reply.atomic_end.val();

        // Control bus
        MsgSrc::<CtlReq>::join(&mut self.admin.m_ctl, &mut self.switch.s_req);
        MsgSrc::<CtlResp>::join(&mut self.switch.m_resp, &mut self.admin.s_ctl);
        MsgSrc::<CtlReq>::join(&mut self.switch.m_req[0], &mut self.sq.s_ctl);
        MsgSrc::<CtlResp>::join(&mut self.sq.m_ctl, &mut self.switch.s_resp[0]);
        self.again.ctl.next = self.switch.m_req[0].data.val();
        self.again.ctl_valid.next = self.switch.m_req[0].valid.val();
        MsgSrc::<CtlReq>::join(&mut self.switch.m_req[1], &mut self.rq.s_ctl);
        MsgSrc::<CtlResp>::join(&mut self.rq.m_ctl, &mut self.switch.s_resp[1]);
        MsgSrc::<CtlReq>::join(&mut self.switch.m_req[2], &mut self.req_ctx.s_ctl);
        MsgSrc::<CtlResp>::join(&mut self.req_ctx.m_ctl, &mut self.switch.s_resp[2]);
        MsgSrc::<CtlReq>::join(&mut self.switch.m_req[3], &mut self.rsp_ctx.s_ctl);
        MsgSrc::<CtlResp>::join(&mut self.rsp_ctx.m_ctl, &mut self.switch.s_resp[3]);
        MsgSrc::<CtlReq>::join(&mut self.switch.m_req[4], &mut self.path_ctx.s_ctl);
        MsgSrc::<CtlResp>::join(&mut self.path_ctx.m_ctl, &mut self.switch.s_resp[4]);
        MsgSrc::<CtlReq>::join(&mut self.switch.m_req[5], &mut self.cq.s_ctl);
        MsgSrc::<CtlResp>::join(&mut self.cq.m_ctl, &mut self.switch.s_resp[5]);
        MsgSrc::<CtlReq>::join(&mut self.switch.m_req[6], &mut self.eq.s_ctl);
        MsgSrc::<CtlResp>::join(&mut self.eq.m_ctl, &mut self.switch.s_resp[6]);
        MsgSrc::<CtlReq>::join(&mut self.switch.m_req[7], &mut self.keys.s_ctl);
        MsgSrc::<CtlResp>::join(&mut self.keys.m_ctl, &mut self.switch.s_resp[7]);
        MsgSrc::<CtlReq>::join(&mut self.switch.m_req[8], &mut self.stats.s_ctl);
        MsgSrc::<CtlResp>::join(&mut self.stats.m_ctl, &mut self.switch.s_resp[8]);
        MsgSrc::<CtlReq>::join(&mut self.switch.m_req[9], &mut self.mcast.s_ctl);
        MsgSrc::<CtlResp>::join(&mut self.mcast.m_ctl, &mut self.switch.s_resp[9]);
        // Answers to the requester first, then what the responder has: both are in order behind the barrier.
        self.req_rx.barrier.next = self.admin.barrier.val();
        self.resp.barrier.next = self.req_rx.barrier_done.val();
        self.reply.barrier.next = self.complete.barrier_done.val();
        self.reply.ends.next = self.admin.ends.val();
        self.reply.ends_qpn.next = self.admin.ends_qpn.val();
        // Then what was decided by keys, contexts and rings as they were: packet orders, payload, fetches, entries of rings.
        self.req_tx.fence.next = self.reply.barrier_done.val();
        self.gather.fence.next = self.req_tx.passed.val();
        self.sq.fence.next = self.gather.passed.val();
        self.rq.fence.next = self.sq.passed.val();
        self.rows.fence.next = self.rq.passed.val();
        self.cq.fence.next = self.rows.passed.val();
        self.eq.fence.next = self.cq.passed.val();
        self.admin.barrier_done.next = self.eq.passed.val();
        self.dma_rd.quiesce.next = self.admin.quiesce_rd.val();
        self.admin.quiesced_rd.next = self.dma_rd.quiesced.val();
        self.dma_wr.quiesce.next = self.admin.quiesce_wr.val();
        self.admin.quiesced_wr.next = self.dma_wr.quiesced.val();
        self.keys.invalidate.next = self.admin.mtt_invalidate.val();
        self.admin.mtt_clean.next = self.keys.clean.val();
        self.resp.raw_qpn.next = self.admin.raw_qpn.val();
        self.resp.over.next = self.reply.over.val();
        self.resp.over_qpn.next = self.reply.over_qpn.val();
        self.resp.over_count.next = self.reply.over_count.val();
        self.keys.over.next = self.reply.over_keyed.val();
        self.keys.over_phase.next = self.reply.over_phase.val();
        self.keys.begun.next = self.place.begun.val();
        self.place.phase.next = self.keys.phase.val();
        self.resp.answered.next = self.reply.answered.val();
        self.resp.answered_qpn.next = self.reply.answered_qpn.val();
        self.resp.answered_epoch.next = self.reply.answered_epoch.val();
        self.resp.answered_count.next = self.reply.answered_count.val();

        // Requester
        CtxClient::<ReqCtx>::join(&mut self.req_tx.ctx, &mut self.req_ctx.client[0]);
        CtxClient::<ReqCtx>::join(&mut self.req_rx.ctx[0], &mut self.req_ctx.client[1]);
        CtxClient::<ReqCtx>::join(&mut self.req_rx.ctx[1], &mut self.req_ctx.client[2]);
        MsgSrc::<SqWqe>::join(&mut self.sq.m_wqe, &mut self.req_tx.s_wqe);
        MsgSrc::<SqCmd>::join(&mut self.req_tx.m_cmd, &mut self.sq.s_cmd[0]);
        MsgSrc::<SqCmd>::join(&mut self.req_rx.m_cmd, &mut self.sq.s_cmd[1]);
        MsgSrc::<WqeFree>::join(&mut self.req_tx.m_free, &mut self.sq.s_free[0]);
        MsgSrc::<WqeFree>::join(&mut self.gather.m_free, &mut self.sq.s_free[1]);
        MsgSrc::<WqeRead>::join(&mut self.gather.m_wqe, &mut self.sq.s_read);
        MsgSrc::<WqeData>::join(&mut self.sq.m_read, &mut self.gather.s_wqe);
        MsgSrc::<TxOp>::join(&mut self.req_tx.m_op, &mut self.gather.s_op);
        MsgSrc::<TxOp>::join(&mut self.reply.m_op, &mut self.gather.s_reply);
        MsgSrc::<MrWork>::join(&mut self.req_tx.m_work, &mut self.keys.s_work);
        MsgSrc::<TxDone>::join(&mut self.req_tx.m_done, &mut self.req_reports.s[0]);
        MsgSrc::<TxDone>::join(&mut self.keys.m_worked, &mut self.req_reports.s[1]);
        MsgSrc::<TxDone>::join(&mut self.req_reports.m, &mut self.req_rx.s_tx_done[0]);
        MsgSrc::<TxDone>::join(&mut self.egress.m_done, &mut self.req_rx.s_tx_done[1]);
        MsgSrc::<TxDone>::join(&mut self.egress.m_reply_done, &mut self.reply.s_tx_done);
        MsgSrc::<CqeReq>::join(&mut self.req_tx.m_cqe, &mut self.cq.s_req[0]);
        MsgSrc::<CqeReq>::join(&mut self.req_rx.m_cqe, &mut self.cq.s_req[1]);
        MsgSrc::<TimerCmd>::join(&mut self.req_tx.m_timer, &mut self.timers.s_cmd[0]);
        MsgSrc::<TimerCmd>::join(&mut self.req_rx.m_timer, &mut self.timers.s_cmd[1]);
        MsgSrc::<TimerEvent>::join(&mut self.timers.m_event, &mut self.req_rx.s_timer);
        self.timers.now.next = self.now_q.q.val();
        self.cq.now.next = self.now_q.q.val();
        MsgSrc::<TrackWrite>::join(&mut self.req_tx.m_track, &mut self.tracker.s_write);
        MsgSrc::<TrackRead>::join(&mut self.req_rx.m_track, &mut self.tracker.s_read);
        MsgSrc::<TrackEntry>::join(&mut self.tracker.m_entry, &mut self.req_rx.s_track);

        MsgSrc::<WqeAgain>::join(&mut self.req_rx.m_again, &mut self.again.s_want);
        MsgSrc::<WqeHandle>::join(&mut self.again.m_handle, &mut self.req_rx.s_again);
        MsgSrc::<PlaceOp>::join(&mut self.req_rx.m_place, &mut self.place.s_answer);
        MsgSrc::<WqeRead>::join(&mut self.place.m_again, &mut self.again.s_read);
        MsgSrc::<WqeData>::join(&mut self.again.m_read, &mut self.place.s_again);
        MsgSrc::<WqeFree>::join(&mut self.place.m_again_free, &mut self.again.s_free);
        MsgSrc::<ReadDone>::join(&mut self.complete.m_read, &mut self.req_rx.s_placed);

        // Packets out
        MsgSrc::<MrReq>::join(&mut self.gather.m_mr, &mut self.keys.s_req[0]);
        MsgSrc::<MrResp>::join(&mut self.keys.m_resp[0], &mut self.gather.s_mr);
        MsgSrc::<SlotReq>::join(&mut self.gather.m_slot, &mut self.egress.s_slot[0]);
        MsgSrc::<SlotGrant>::join(&mut self.egress.m_slot[0], &mut self.gather.s_slot);
        MsgSrc::<SlotReq>::join(&mut self.ackgen.m_slot, &mut self.egress.s_slot[1]);
        MsgSrc::<SlotGrant>::join(&mut self.egress.m_slot[1], &mut self.ackgen.s_slot);
        MsgSrc::<SlotSeal>::join(&mut self.gather.m_seal, &mut self.egress.s_seal[0]);
        MsgSrc::<SlotSeal>::join(&mut self.ackgen.m_seal, &mut self.egress.s_seal[1]);
        MsgSrc::<PayCmd>::join(&mut self.gather.m_pay, &mut self.dma_rd.s_pay);
        MsgSrc::<PayDone>::join(&mut self.dma_rd.m_pay_done, &mut self.egress.s_pay_done);
        MsgSrc::<InlineWrite>::join(&mut self.gather.m_inline, &mut self.egress.s_inline);
        self.egress.asm_we.next = self.dma_rd.asm_we.val();
        self.egress.asm_row1.next = self.dma_rd.asm_row1.val();
        self.egress.asm_addr.next = self.dma_rd.asm_addr.val();
        self.egress.asm_data.next = self.dma_rd.asm_data.val();
        MsgSrc::<HdrOp>::join(&mut self.gather.m_hdr, &mut self.header.s_op[0]);
        MsgSrc::<HdrOp>::join(&mut self.ackgen.m_hdr, &mut self.header.s_op[1]);
        CtxClient::<PathCtx>::join(&mut self.header.ctx[0], &mut self.path_ctx.client[0]);
        CtxClient::<PathCtx>::join(&mut self.header.ctx[1], &mut self.path_ctx.client[1]);
        self.egress.hdr_we.next = self.header.hdr_we.val();
        self.egress.hdr_addr.next = self.header.hdr_addr.val();
        self.egress.hdr_data.next = self.header.hdr_data.val();
        MsgSrc::<HdrDone>::join(&mut self.header.m_ready, &mut self.egress.s_hdr);
        AxisSrc::<W, K>::link(&mut self.tx, &mut self.egress.m);

        // Packets in
        AxisSink::<W, K>::link(&mut self.rx, &mut self.front.s);
        self.front.s_err.next = self.rx_err.val();
        CellWriter::<W>::join(&mut self.front.m_cell, &mut self.cells.s_write);
        MsgSrc::<RxDesc>::join(&mut self.front.m_desc, &mut self.dispatch.s);
        // The paths are known from what the control bus writes to them.
        self.peer.ctl.next = self.switch.m_req[4].data.val();
        self.peer.ctl_valid.next = self.switch.m_req[4].valid.val();
        self.peer.ask.next = self.front.peer.val();
        self.front.peer_stranger.next = self.peer.stranger.val();
        self.dispatch.now.next = self.now_q.q.val();
        self.congestion.notice.next = self.dispatch.notice.val();
        self.congestion.notice_valid.next = self.dispatch.notice_valid.val();
        MsgSrc::<RxDesc>::join(&mut self.dispatch.m_resp, &mut self.mcast.s);
        MsgSrc::<RxDesc>::join(&mut self.mcast.m, &mut self.resp.s_rx);
        self.mcast.path_ctl.next = self.switch.m_req[4].data.val();
        self.mcast.path_ctl_valid.next = self.switch.m_req[4].valid.val();
        MsgSrc::<Bits<9>>::join(&mut self.mcast.m_retain, &mut self.cells.s_retain);
        MsgSrc::<RxDesc>::join(&mut self.dispatch.m_req, &mut self.req_rx.s_rx);
        MsgSrc::<CellRead>::join(&mut self.mover.m_cell, &mut self.cells.s_read[0]);
        MsgSrc::<CellRead>::join(&mut self.req_rx.m_cell, &mut self.cells.s_read[1]);
        AxisSrc::<W, K>::join(&mut self.cells.m_data, &mut self.mover.s_cell);

        // Responder
        for i in 0..2 {
            CtxClient::<RspCtx>::join(&mut self.resp.ctx[i], &mut self.rsp_ctx.client[i]);
        }
        MsgSrc::<RqAlloc>::join(&mut self.resp.m_alloc, &mut self.rq.s_alloc);
        MsgSrc::<RqGrant>::join(&mut self.rq.m_grant, &mut self.resp.s_grant);
        MsgSrc::<RqCmd>::join(&mut self.resp.m_rq, &mut self.rq.s_cmd);
        MsgSrc::<RqFlush>::join(&mut self.rq.m_flush, &mut self.resp.s_flush);
        MsgSrc::<PlaceOp>::join(&mut self.resp.m_op, &mut self.place.s_op);
        MsgSrc::<MrReq>::join(&mut self.place.m_mr, &mut self.keys.s_req[1]);
        MsgSrc::<MrResp>::join(&mut self.keys.m_resp[1], &mut self.place.s_mr);
        MsgSrc::<MrChange>::join(&mut self.place.m_change, &mut self.keys.s_change);
        MsgSrc::<MrChanged>::join(&mut self.keys.m_changed, &mut self.place.s_changed);
        MsgSrc::<WqeRead>::join(&mut self.place.m_wqe, &mut self.rq.s_read);
        MsgSrc::<WqeData>::join(&mut self.rq.m_read, &mut self.place.s_wqe);
        MsgSrc::<WqeFree>::join(&mut self.place.m_free, &mut self.rq.s_free);
        MsgSrc::<MoveOp>::join(&mut self.place.m_move, &mut self.mover.s_move);
        MsgSrc::<DoneOp>::join(&mut self.place.m_done, &mut self.complete.s_done);
        MsgSrc::<WrCmd>::join(&mut self.mover.m_cmd, &mut self.dma_wr.s_cmd);
        AxisSrc::<W, K>::join(&mut self.mover.m_data, &mut self.dma_wr.s_data);
        MsgSrc::<WrDone>::join(&mut self.dma_wr.m_cmd_done, &mut self.complete.s_wr);
        MsgSrc::<CqeReq>::join(&mut self.complete.m_cqe, &mut self.cq.s_req[2]);
        MsgSrc::<AckOp>::join(&mut self.complete.m_ack, &mut self.reply.s_ack);
        MsgSrc::<AckOp>::join(&mut self.reply.m_ack, &mut self.ackgen.s_ack);

        // Errors
        MsgSrc::<QpError>::join(&mut self.resp.m_error, &mut self.error_to_req.s);
        MsgSrc::<QpError>::join(&mut self.error_to_req.m, &mut self.req_errors.s[0]);
        MsgSrc::<QpError>::join(&mut self.admin.m_error[0], &mut self.req_errors.s[1]);
        MsgSrc::<QpError>::join(&mut self.req_errors.m, &mut self.req_rx.s_error);
        MsgSrc::<QpError>::join(&mut self.complete.m_error, &mut self.error_from_complete.s);
        MsgSrc::<QpError>::join(&mut self.error_from_complete.m, &mut self.resp_errors.s[0]);
        MsgSrc::<QpError>::join(&mut self.admin.m_error[1], &mut self.resp_errors.s[1]);
        MsgSrc::<QpError>::join(&mut self.reply.m_error, &mut self.error_from_reply.s);
        MsgSrc::<QpError>::join(&mut self.error_from_reply.m, &mut self.resp_errors.s[2]);
        MsgSrc::<QpError>::join(&mut self.resp_errors.m, &mut self.resp.s_error[0]);
        MsgSrc::<QpError>::join(&mut self.req_rx.m_error, &mut self.error_to_resp.s);
        MsgSrc::<QpError>::join(&mut self.error_to_resp.m, &mut self.resp.s_error[1]);

        // Events
        MsgSrc::<EqeReq>::join(&mut self.cq.m_event, &mut self.eq.s_req[0]);
        MsgSrc::<EqeReq>::join(&mut self.req_rx.m_async, &mut self.eq.s_req[1]);
        MsgSrc::<EqeReq>::join(&mut self.rq.m_event, &mut self.eq.s_req[2]);
        MsgSrc::<MsixReq>::link(&mut self.msix, &mut self.eq.m_msix);

        // Counters: the order is that of `counters::names`.
        self.counted.next = bits::<128>(0);
        // dma_rd: 2 at 0
        self.counted.next = self.counted.val() | (bit_cast::<128, 2>(self.dma_rd.stat.val()));
        // dma_wr: 2 at 2
        self.counted.next = self.counted.val() | (bit_cast::<128, 2>(self.dma_wr.stat.val()) << 2);
        // doorbell: 3 at 4
        self.counted.next = self.counted.val() | (bit_cast::<128, 3>(self.doorbell.stat.val()) << 4);
        // sq: 7 at 7
        self.counted.next = self.counted.val() | (bit_cast::<128, 7>(self.sq.stat.val()) << 7);
        // rq: 9 at 14
        self.counted.next = self.counted.val() | (bit_cast::<128, 9>(self.rq.stat.val()) << 14);
        // cq: 7 at 23
        self.counted.next = self.counted.val() | (bit_cast::<128, 7>(self.cq.stat.val()) << 23);
        // eq: 7 at 30
        self.counted.next = self.counted.val() | (bit_cast::<128, 7>(self.eq.stat.val()) << 30);
        // mr: 8 at 37
        self.counted.next = self.counted.val() | (bit_cast::<128, 8>(self.keys.stat.val()) << 37);
        // req_tx: 3 at 45
        self.counted.next = self.counted.val() | (bit_cast::<128, 3>(self.req_tx.stat.val()) << 45);
        // req_rx: 13 at 48
        self.counted.next = self.counted.val() | (bit_cast::<128, 13>(self.req_rx.stat.val()) << 48);
        // resp: 16 at 61
        self.counted.next = self.counted.val() | (bit_cast::<128, 16>(self.resp.stat.val()) << 61);
        // place: 3 at 77
        self.counted.next = self.counted.val() | (bit_cast::<128, 3>(self.place.stat.val()) << 77);
        // complete: 6 at 80
        self.counted.next = self.counted.val() | (bit_cast::<128, 6>(self.complete.stat.val()) << 80);
        // ackgen: 4 at 86
        self.counted.next = self.counted.val() | (bit_cast::<128, 4>(self.ackgen.stat.val()) << 86);
        // egress: 2 at 90
        self.counted.next = self.counted.val() | (bit_cast::<128, 2>(self.egress.stat.val()) << 90);
        // rx: 8 at 92
        self.counted.next = self.counted.val() | (bit_cast::<128, 8>(self.front.stat.val()) << 92);
        // reply: 5 at 100
        self.counted.next = self.counted.val() | (bit_cast::<128, 5>(self.reply.stat.val()) << 100);
        // cc: 2 at 105
        self.counted.next = self.counted.val() | (bit_cast::<128, 2>(self.congestion.stat.val()) << 105);
        // mcast: 2 at 107
        self.counted.next = self.counted.val() | (bit_cast::<128, 2>(self.mcast.stat.val()) << 107);
        // rx: 1 at 109
        self.counted.next = self.counted.val() | (bit_cast::<128, 1>(self.front.strange.val().into()) << 109);
        // admin: 1 at 110
        self.counted.next = self.counted.val() | (bit_cast::<128, 1>(self.admin.stat.val()) << 110);
        self.stats.inc.next = self.counted.val();
    }
}

/// log2 of the protection domains.
const LOG_PDS: u32 = 8;

/// The discovery words CAPS0 to CAPS3 (`abi::csr`). `logs`: log2 of queue pairs, completion queues, memory regions, event queues.
pub(crate) fn capabilities(bytes: usize, logs: [usize; 4]) -> [u32; 4] {
    let [qps, cqs, mrs, eqs] = logs.map(|l| l as u32);
    let chaos = crate::stream::chaos::on() as u32;
    // 512-byte work requests: 480 bytes behind the head.
    [qps | cqs << 8 | mrs << 16 | LOG_PDS << 24, eqs | 2 << 8 | (bytes as u32) << 16 | 1 << 24, 30 | 480 << 8 | 3 << 24, 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 16 | chaos << 17 | 1 << 18 | 1 << ferric_abi::csr::FEATURE_SRQ | 1 << ferric_abi::csr::FEATURE_MULTICAST]
}

/// Card with 1024 queue pairs, 1024 completion queues, 4096 memory regions and 32 event queues.
pub(crate) type Card512 = Core<512, 64, 6, 10, 17, 15, 11, 10, 12, 5>;
/// Card with 256 queue pairs, 256 completion queues, 1024 memory regions and 32 event queues.
pub(crate) type Card64 = Core<64, 8, 3, 8, 15, 13, 9, 8, 10, 5>;

/// The Verilog of a card: `width` 64 or 512 bits. `chaos`: random stalls on internal streams and random context latency, for soaks.
/// Errors: an unknown width, or what the emitter and the lint gate found.
pub fn generate(width: usize, chaos: bool, top: &str) -> Result<String, String> {
    emit_card(width, chaos, top).map(|v| crate::emit::split::split(&v))
}

/// Hash of everything the Verilog of a card depends on: the sources of this crate and of the abi.
pub const SOURCE_HASH: &str = env!("FERRIC_HDL_HASH");

/// As RustHDL writes it, which is what the lint gate can read.
fn emit_card(width: usize, chaos: bool, top: &str) -> Result<String, String> {
    let top = top.to_string();
    // A card is larger than an ordinary thread's stack.
    let build = move || {
        let emit = || match width {
            64 => crate::emit::emit(&top, Card64::default()).map_err(|e| e.to_string()),
            512 => crate::emit::emit(&top, Card512::default()).map_err(|e| e.to_string()),
            w => Err(format!("no card of {w} bits: 64 or 512")),
        };
        if chaos {
            crate::stream::chaos::scoped(0xfe22_1c00, emit)
        } else {
            emit()
        }
    };
    std::thread::Builder::new()
        .stack_size(512 << 20)
        .spawn(build)
        .map_err(|e| e.to_string())?
        .join()
        .map_err(|_| "the generator panicked".to_string())?
}
