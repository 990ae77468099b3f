//! The requester: both halves with their tracker and timers. See README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::context::bus::CtxClient;
use crate::msg::*;
use crate::records::ReqCtx;
use crate::roce::req_rx::RequesterRx;
use crate::roce::req_tx::RequesterTx;
use crate::roce::timer::Timers;
use crate::roce::tracker::Tracker;
use crate::stream::MsgArb;
use rust_hdl::prelude::*;

pub mod model;
#[cfg(test)]
mod tests;

/// Requester for `2^LQ` queue pairs; `LA` is `LQ` + 7. Ports as of its parts; `tx_` and `rx_` tell the halves apart.
#[derive(LogicBlock, Default)]
pub struct Requester<const LQ: usize, const LA: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Time in ticks of 1.024 us.
    pub now: Signal<In, Bits<32>>,
    pub s_wqe: MsgSink<SqWqe>,
    pub m_op: MsgSrc<TxOp>,
    pub m_free: MsgSrc<WqeFree>,
    /// Local operations, and what became of them.
    pub m_work: MsgSrc<MrWork>,
    pub s_worked: MsgSink<TxDone>,
    pub tx_ctx: CtxClient<ReqCtx>,
    pub tx_cmd: MsgSrc<SqCmd>,
    pub tx_cqe: MsgSrc<CqeReq>,
    /// See `req_tx::STATS`.
    pub tx_stat: Signal<Out, Bits<3>>,
    pub s_rx: MsgSink<RxDesc>,
    /// From egress.
    pub s_tx_done: MsgSink<TxDone>,
    pub s_error: MsgSink<QpError>,
    pub rx_ctx: [CtxClient<ReqCtx>; 2],
    pub rx_cmd: MsgSrc<SqCmd>,
    pub rx_cqe: MsgSrc<CqeReq>,
    pub m_error: MsgSrc<QpError>,
    pub m_async: MsgSrc<EqeReq>,
    pub m_cell: MsgSrc<CellRead>,
    pub m_place: MsgSrc<PlaceOp>,
    pub s_placed: MsgSink<ReadDone>,
    pub m_again: MsgSrc<WqeAgain>,
    pub s_again: MsgSink<WqeHandle>,
    pub barrier: Signal<In, Bit>,
    pub barrier_done: Signal<Out, Bit>,
    /// See `req_rx::STATS`.
    pub rx_stat: Signal<Out, Bits<13>>,
    tx: RequesterTx,
    rx: RequesterRx,
    tracker: Tracker<LQ, LA>,
    timers: Timers<LQ>,
    reports: MsgArb<TxDone, 2>,
}

impl<const LQ: usize, const LA: usize> Logic for Requester<LQ, LA> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, tx, rx, tracker, timers, reports);
        self.reports.reset.next = self.reset.val();
        self.tx.reset.next = self.reset.val();
        self.tx.fence.next = false;
        self.rx.reset.next = self.reset.val();
        self.tracker.reset.next = self.reset.val();
        self.timers.reset.next = self.reset.val();
        self.timers.now.next = self.now.val();
        MsgSink::<SqWqe>::link(&mut self.s_wqe, &mut self.tx.s_wqe);
        MsgSrc::<TxOp>::link(&mut self.m_op, &mut self.tx.m_op);
        MsgSrc::<WqeFree>::link(&mut self.m_free, &mut self.tx.m_free);
        CtxClient::<ReqCtx>::link(&mut self.tx_ctx, &mut self.tx.ctx);
        MsgSrc::<SqCmd>::link(&mut self.tx_cmd, &mut self.tx.m_cmd);
        MsgSrc::<CqeReq>::link(&mut self.tx_cqe, &mut self.tx.m_cqe);
        self.tx_stat.next = self.tx.stat.val();
        MsgSink::<RxDesc>::link(&mut self.s_rx, &mut self.rx.s_rx);
        MsgSink::<TxDone>::link(&mut self.s_tx_done, &mut self.rx.s_tx_done[1]);
        MsgSink::<QpError>::link(&mut self.s_error, &mut self.rx.s_error);
        for i in 0..2 {
            CtxClient::<ReqCtx>::link(&mut self.rx_ctx[i], &mut self.rx.ctx[i]);
        }
        MsgSrc::<SqCmd>::link(&mut self.rx_cmd, &mut self.rx.m_cmd);
        MsgSrc::<CqeReq>::link(&mut self.rx_cqe, &mut self.rx.m_cqe);
        MsgSrc::<QpError>::link(&mut self.m_error, &mut self.rx.m_error);
        MsgSrc::<EqeReq>::link(&mut self.m_async, &mut self.rx.m_async);
        MsgSrc::<CellRead>::link(&mut self.m_cell, &mut self.rx.m_cell);
        MsgSrc::<PlaceOp>::link(&mut self.m_place, &mut self.rx.m_place);
        MsgSink::<ReadDone>::link(&mut self.s_placed, &mut self.rx.s_placed);
        MsgSrc::<WqeAgain>::link(&mut self.m_again, &mut self.rx.m_again);
        MsgSink::<WqeHandle>::link(&mut self.s_again, &mut self.rx.s_again);
        self.rx.barrier.next = self.barrier.val();
        self.barrier_done.next = self.rx.barrier_done.val();
        self.rx_stat.next = self.rx.stat.val();
        MsgSrc::<MrWork>::link(&mut self.m_work, &mut self.tx.m_work);
        MsgSrc::<TxDone>::join(&mut self.tx.m_done, &mut self.reports.s[0]);
        MsgSink::<TxDone>::link(&mut self.s_worked, &mut self.reports.s[1]);
        MsgSrc::<TxDone>::join(&mut self.reports.m, &mut self.rx.s_tx_done[0]);
        MsgSrc::<TrackWrite>::join(&mut self.tx.m_track, &mut self.tracker.s_write);
        MsgSrc::<TrackRead>::join(&mut self.rx.m_track, &mut self.tracker.s_read);
        MsgSrc::<TrackEntry>::join(&mut self.tracker.m_entry, &mut self.rx.s_track);
        MsgSrc::<TimerCmd>::join(&mut self.tx.m_timer, &mut self.timers.s_cmd[0]);
        MsgSrc::<TimerCmd>::join(&mut self.rx.m_timer, &mut self.timers.s_cmd[1]);
        MsgSrc::<TimerEvent>::join(&mut self.timers.m_event, &mut self.rx.s_timer);
    }
}
