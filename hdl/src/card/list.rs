//! The card, line by line: its ports, its instances, its wires, what it counts.

use super::{capabilities, LOG_PDS};
use crate::assembly::Assembly;
use crate::host::{self, admin::{program::Sizes, Admin}, cq::CompletionWriter, csr::Csr, ctl::switch::CtlSwitch, dma_rd::DmaRead, dma_wr::DmaWrite, doorbell::Doorbell, eq::EventWriter, row_share::RowShare, rq::RecvQueue, sq::{again::WqeAgainUnit, SendQueue}};
use crate::cc;
use crate::context;
use crate::cc::hook::CcHook;
use crate::context::store::CtxStore;
use crate::msg::QpError;
use crate::net::{self, cells::CellBuffer, dispatch::Dispatch, rx::RxFront, tx::Egress};
use crate::rdma::{self, complete::Complete, mover::Mover, mr::MemoryKeys, place::Place};
use crate::records::{PathCtx, ReqCtx, RspCtx};
use crate::roce::{self, ackgen::AckGen, gather::Gather, header::HeaderBuilder, mcast::Multicast, peer::PeerCheck, reply::Reply, resp::Responder};
use crate::stats::Stats;
use crate::stream::{self, MsgArb, MsgFifo};
use ferric_abi::csr::space;
use rust_hdl::prelude::*;

/// Tables on the control bus.
const TABLES: usize = 10;
/// Inputs of the statistics block.
pub const COUNTERS: usize = 128;

/// The card. `W`, `K`, `LK`: data path bits, bytes, log2 bytes. `LQ`: log2 queue pairs, `LA` = `LQ` + 7, `LR` = `LQ` + 5, `LN` = `LQ` + 1 (receive rings: queue
/// pairs and as many shared receive queues), `LC` completion queues, `LM` memory regions, `LE` event queues.
pub(super) fn card<const W: usize, const K: usize, const LK: usize, const LQ: usize, const LA: usize, const LR: usize, const LN: usize, const LC: usize, const LM: usize, const LE: usize>() -> Assembly {
    let mut a = Assembly::default();
    ports(&mut a);
    instances::<W, K, LK, LQ, LA, LR, LN, LC, LM, LE>(&mut a);
    wires(&mut a);
    counters(&mut a);
    a
}

/// The border. What is exposed has the width of the port it stands for.
fn ports(a: &mut Assembly) {
    a.input::<Clock>("clock");
    // Synchronous, active high. Registered once inside: buses stay idle for the first two cycles after it falls.
    a.input::<Bit>("reset");
    // Ticks of 1.024 us, counted by the shell.
    a.input::<Bits<32>>("now");
    // Registers: AXI4-Lite slave.
    a.expose_all("csr_", "csr", &["aw_valid", "aw_ready", "aw_addr", "w_valid", "w_ready", "w_data", "w_strb", "b_valid", "b_ready", "b_resp"]);
    a.expose_all("csr_", "csr", &["ar_valid", "ar_ready", "ar_addr", "r_valid", "r_ready", "r_data", "r_resp"]);
    // Doorbells: AXI4 write-only slave.
    a.expose_all("db_", "doorbell", &["aw_valid", "aw_ready", "aw_addr", "aw_len", "w_valid", "w_ready", "w_data", "w_strb", "w_last", "b_valid", "b_ready", "b_resp"]);
    // DMA: AXI4 master.
    a.expose_all("", "dma_rd", &["ar_valid", "ar_ready", "ar_id", "ar_addr", "ar_len", "ar_user", "r_valid", "r_ready", "r_id", "r_data", "r_resp", "r_last"]);
    a.expose_all("", "dma_wr", &["aw_valid", "aw_ready", "aw_addr", "aw_len", "aw_user", "w_valid", "w_ready", "w_data", "w_strb", "w_last", "b_valid", "b_ready", "b_resp"]);
    // Interrupt requests.
    a.expose("msix", "eq.m_msix");
    // MAC, receive side: `ready` is always high; `rx_err` with the last beat: the MAC found the frame bad.
    a.expose("rx", "front.s");
    a.expose("rx_err", "front.s_err");
    // MAC, transmit side.
    a.expose("tx", "egress.m");
    // One register for the whole card: one fan-out tree, and inputs that a simulator need not follow through every block.
    a.reset_by("reset_q.q");
    a.control_switch("switch");
    a.counted_by("stats.inc", COUNTERS);
}

fn instances<const W: usize, const K: usize, const LK: usize, const LQ: usize, const LA: usize, const LR: usize, const LN: usize, const LC: usize, const LM: usize, const LE: usize>(a: &mut Assembly) {
    a.instance("csr", || Csr::new(capabilities(K, [LQ, LC, LM, LE]))).sized().waits(host::csr::WAITS);
    a.instance("doorbell", Doorbell::<W, K>::default).waits(host::doorbell::WAITS);
    a.instance("admin", || Admin::new(Sizes { qp: LQ as u32, cq: LC as u32, mr: LM as u32, pd: LOG_PDS, eq: LE as u32 })).sized().waits(host::admin::WAITS);
    a.instance_for("switch", |a| CtlSwitch::<TABLES>::new(std::array::from_fn(|n| a.tables[n].space))).waits(host::ctl::switch::WAITS);
    a.instance("stats", Stats::<COUNTERS>::default).waits(crate::stats::WAITS);
    a.instance("dma_rd", DmaRead::<W, K, LK>::default).waits(host::dma_rd::WAITS);
    a.instance("dma_wr", DmaWrite::<W, K, LK>::default).waits(host::dma_wr::WAITS);
    a.instance("sq", SendQueue::<LQ>::default).waits(host::sq::WAITS);
    a.instance("again", WqeAgainUnit::<LQ>::default).waits(host::sq::again::WAITS);
    // The receive queues' port of small reads, with those of `again`.
    a.instance("rows", RowShare::default).top("row_share").waits(host::row_share::WAITS);
    a.instance("rq", RecvQueue::<LN>::default).waits(host::rq::WAITS);
    a.instance("cq", CompletionWriter::<LC>::default).waits(host::cq::WAITS);
    a.instance("eq", EventWriter::<LE>::default).waits(host::eq::WAITS);
    a.instance("req_ctx", CtxStore::<ReqCtx, LQ, 3>::default).waits(context::store::WAITS);
    a.instance("rsp_ctx", CtxStore::<RspCtx, LQ, 2>::default).waits(context::store::WAITS);
    a.instance("path_ctx", CtxStore::<PathCtx, LQ, 2>::default).waits(context::store::WAITS);
    a.instance("keys", MemoryKeys::<LM>::default).waits(rdma::mr::WAITS);
    roce::requester::lines::<LQ, LA>(a);
    a.instance("gather", Gather::default).waits(roce::gather::WAITS);
    a.instance("header", HeaderBuilder::<W, K>::default).waits(roce::header::WAITS);
    a.instance("ackgen", AckGen::<LQ>::default).waits(roce::ackgen::WAITS);
    a.instance("reply", Reply::<LQ, LR>::default).waits(roce::reply::WAITS);
    a.instance("congestion", CcHook::default).top("cc_hook").waits(cc::hook::WAITS);
    a.instance("mcast", Multicast::<6, LQ>::default).waits(roce::mcast::WAITS);
    a.instance("egress", Egress::<W, K, LK>::default).waits(net::tx::WAITS);
    a.instance("front", RxFront::<W, K, LK>::default).waits(net::rx::WAITS);
    a.instance("peer", PeerCheck::<LQ>::default).waits(roce::peer::WAITS);
    a.instance("cells", CellBuffer::<W, K>::default).waits(net::cells::WAITS);
    a.instance("dispatch", Dispatch::default).waits(net::dispatch::WAITS);
    // As many descriptors as the cell buffer has cells, so that the receive front never waits.
    a.instance("resp", Responder::<LQ>::default).waits(roce::resp::WAITS);
    a.instance("place", Place::<LQ>::default).waits(rdma::place::WAITS);
    a.instance("mover", Mover::<W, K, LK>::default).waits(rdma::mover::WAITS);
    a.instance("complete", Complete::<LQ>::default).waits(rdma::complete::WAITS);
    // Error reports cross between requester and responder: room for one per queue pair, so that neither waits for the other.
    a.instance("error_to_req", MsgFifo::<QpError, LQ>::default).top("errors").waits(stream::fifo::WAITS).never_waits("s");
    a.instance("error_to_resp", MsgFifo::<QpError, LQ>::default).top("errors").waits(stream::fifo::WAITS).never_waits("s");
    a.instance("error_from_complete", MsgFifo::<QpError, LQ>::default).top("errors").waits(stream::fifo::WAITS).never_waits("s");
    a.instance("error_from_reply", MsgFifo::<QpError, LQ>::default).top("errors").waits(stream::fifo::WAITS).never_waits("s");
    a.instance("req_errors", MsgArb::<QpError, 2>::default).top("error_arb").waits(stream::arb::WAITS);
    a.instance("resp_errors", MsgArb::<QpError, 3>::default).top("error_arb3").waits(stream::arb::WAITS);
    a.register::<Bit>("reset_q", "reset");
    a.register::<Bits<32>>("now_q", "now");
}

fn wires(a: &mut Assembly) {
    // Registers
    a.join("now_q.q", "csr.tick");
    a.join_each(4, "csr.admin_sq[*]", "admin.admin_sq[*]");
    a.join_each(4, "csr.admin_cq[*]", "admin.admin_cq[*]");
    a.join_each(4, "csr.admin_log_size[*]", "admin.admin_log_size[*]");
    a.join_each(4, "csr.admin_producer[*]", "admin.admin_producer[*]");
    a.join("csr.enable", "admin.enable");
    a.join("csr.reset_req", "admin.reset_req");
    a.join("admin.reset_busy", "csr.reset_busy");
    // Doorbells
    a.join("doorbell.m_sq", "sq.s_db");
    a.join("doorbell.m_rq", "rq.s_db");
    a.join("doorbell.m_cq", "cq.s_db");
    a.join("doorbell.m_eq", "eq.s_db");
    a.join("doorbell.m_wqe", "sq.s_wqe");
    // DMA bus
    // Small reads and writes
    a.join("admin.m_rd", "dma_rd.s_small[0]");
    a.join("dma_rd.m_small[0]", "admin.s_rd");
    a.join("sq.m_rd", "dma_rd.s_small[1]");
    a.join("dma_rd.m_small[1]", "sq.s_rd");
    a.join("rq.m_rd", "rows.s_cmd[0]");
    a.join("rows.m_row[0]", "rq.s_rd");
    a.join("again.m_rd", "rows.s_cmd[1]");
    a.join("rows.m_row[1]", "again.s_rd");
    a.join("rows.m_cmd", "dma_rd.s_small[2]");
    a.join("dma_rd.m_small[2]", "rows.s_row");
    a.join("keys.m_rd", "dma_rd.s_small[3]");
    a.join("dma_rd.m_small[3]", "keys.s_rd");
    a.join("reply.m_rd", "dma_rd.s_small[4]");
    a.join("dma_rd.m_small[4]", "reply.s_rd");
    a.join("admin.m_wr", "dma_wr.s_small[0]");
    a.join("dma_wr.m_small_done[0]", "admin.s_done");
    a.join("cq.m_wr", "dma_wr.s_small[1]");
    a.join("dma_wr.m_small_done[1]", "cq.s_done");
    a.join("eq.m_wr", "dma_wr.s_small[2]");
    a.join("dma_wr.m_small_done[2]", "eq.s_done");
    a.join("reply.m_wr", "dma_wr.s_small[3]");
    a.join("dma_wr.m_small_done[3]", "reply.s_wr");
    a.join("reply.atomic_hold", "dma_wr.atomic_hold");
    a.join("reply.atomic_page", "dma_wr.atomic_page");
    a.join("dma_wr.atomic_clear", "reply.atomic_clear");
    a.join("reply.atomic_begin", "dma_wr.atomic_begin");
    a.join("reply.atomic_end", "dma_wr.atomic_end");
    // Control bus
    a.join("admin.m_ctl", "switch.s_req");
    a.join("switch.m_resp", "admin.s_ctl");
    a.table(space::SQ, "sq");
    a.watch(space::SQ, "again.ctl");
    a.table(space::RQ, "rq");
    a.table(space::REQ, "req_ctx");
    a.table(space::RSP, "rsp_ctx");
    a.table(space::PATH, "path_ctx");
    a.table(space::CQ, "cq");
    a.table(space::EQ, "eq");
    a.table(space::MR, "keys");
    a.table(space::STATS, "stats");
    a.table(space::MCAST, "mcast");
    // Answers to the requester first, then what the responder has: both are in order behind the barrier.
    a.join("admin.barrier", "req_rx.barrier");
    a.join("req_rx.barrier_done", "resp.barrier");
    a.join("complete.barrier_done", "reply.barrier");
    a.join("admin.ends", "reply.ends");
    a.join("admin.ends_qpn", "reply.ends_qpn");
    // Then what was decided by keys, contexts and rings as they were: packet orders, payload, fetches, entries of rings.
    a.join("reply.barrier_done", "req_tx.fence");
    a.join("req_tx.passed", "gather.fence");
    a.join("gather.passed", "sq.fence");
    a.join("sq.passed", "rq.fence");
    a.join("rq.passed", "rows.fence");
    a.join("rows.passed", "cq.fence");
    a.join("cq.passed", "eq.fence");
    a.join("eq.passed", "admin.barrier_done");
    a.join("admin.quiesce_rd", "dma_rd.quiesce");
    a.join("dma_rd.quiesced", "admin.quiesced_rd");
    a.join("admin.quiesce_wr", "dma_wr.quiesce");
    a.join("dma_wr.quiesced", "admin.quiesced_wr");
    a.join("admin.mtt_invalidate", "keys.invalidate");
    a.join("keys.clean", "admin.mtt_clean");
    a.join("admin.raw_qpn", "resp.raw_qpn");
    a.join("reply.over", "resp.over");
    a.join("reply.over_qpn", "resp.over_qpn");
    a.join("reply.over_count", "resp.over_count");
    a.join("reply.over_keyed", "keys.over");
    a.join("reply.over_phase", "keys.over_phase");
    a.join("place.begun", "keys.begun");
    a.join("keys.phase", "place.phase");
    a.join("reply.answered", "resp.answered");
    a.join("reply.answered_qpn", "resp.answered_qpn");
    a.join("reply.answered_epoch", "resp.answered_epoch");
    a.join("reply.answered_count", "resp.answered_count");
    // Requester
    a.join("req_tx.ctx", "req_ctx.client[0]");
    a.join("req_rx.ctx[0]", "req_ctx.client[1]");
    a.join("req_rx.ctx[1]", "req_ctx.client[2]");
    a.join("sq.m_wqe", "req_tx.s_wqe");
    a.join("req_tx.m_cmd", "sq.s_cmd[0]");
    a.join("req_rx.m_cmd", "sq.s_cmd[1]");
    a.join("req_tx.m_free", "sq.s_free[0]");
    a.join("gather.m_free", "sq.s_free[1]");
    a.join("gather.m_wqe", "sq.s_read");
    a.join("sq.m_read", "gather.s_wqe");
    a.join("req_tx.m_op", "gather.s_op");
    a.join("reply.m_op", "gather.s_reply");
    a.join("req_tx.m_work", "keys.s_work");
    a.join("keys.m_worked", "req_reports.s[1]");
    a.join("egress.m_done", "req_rx.s_tx_done[1]");
    a.join("egress.m_reply_done", "reply.s_tx_done");
    a.join("req_tx.m_cqe", "cq.s_req[0]");
    a.join("req_rx.m_cqe", "cq.s_req[1]");
    a.join("now_q.q", "timers.now");
    a.join("now_q.q", "cq.now");
    a.join("req_rx.m_again", "again.s_want");
    a.join("again.m_handle", "req_rx.s_again");
    a.join("req_rx.m_place", "place.s_answer");
    a.join("place.m_again", "again.s_read");
    a.join("again.m_read", "place.s_again");
    a.join("place.m_again_free", "again.s_free");
    a.join("complete.m_read", "req_rx.s_placed");
    // Packets out
    a.join("gather.m_mr", "keys.s_req[0]");
    a.join("keys.m_resp[0]", "gather.s_mr");
    a.join("gather.m_slot", "egress.s_slot[0]");
    a.join("egress.m_slot[0]", "gather.s_slot");
    a.join("ackgen.m_slot", "egress.s_slot[1]");
    a.join("egress.m_slot[1]", "ackgen.s_slot");
    a.join("gather.m_seal", "egress.s_seal[0]");
    a.join("ackgen.m_seal", "egress.s_seal[1]");
    a.join("gather.m_pay", "dma_rd.s_pay");
    a.join("dma_rd.m_pay_done", "egress.s_pay_done");
    a.join("gather.m_inline", "egress.s_inline");
    a.join("dma_rd.asm_we", "egress.asm_we");
    a.join("dma_rd.asm_row1", "egress.asm_row1");
    a.join("dma_rd.asm_addr", "egress.asm_addr");
    a.join("dma_rd.asm_data", "egress.asm_data");
    a.join("gather.m_hdr", "header.s_op[0]");
    a.join("ackgen.m_hdr", "header.s_op[1]");
    a.join("header.ctx[0]", "path_ctx.client[0]");
    a.join("header.ctx[1]", "path_ctx.client[1]");
    a.join("header.hdr_we", "egress.hdr_we");
    a.join("header.hdr_addr", "egress.hdr_addr");
    a.join("header.hdr_data", "egress.hdr_data");
    a.join("header.m_ready", "egress.s_hdr");
    // Packets in
    a.join("front.m_cell", "cells.s_write");
    a.join("front.m_desc", "dispatch.s");
    // The paths are known from what the control bus writes to them.
    a.watch(space::PATH, "peer.ctl");
    a.join("front.peer", "peer.ask");
    a.join("peer.stranger", "front.peer_stranger");
    a.join("now_q.q", "dispatch.now");
    a.join("dispatch.notice", "congestion.notice");
    a.join("dispatch.notice_valid", "congestion.notice_valid");
    a.join("dispatch.m_resp", "mcast.s");
    a.join("mcast.m", "resp.s_rx");
    a.watch(space::PATH, "mcast.path_ctl");
    a.join("mcast.m_retain", "cells.s_retain");
    a.join("dispatch.m_req", "req_rx.s_rx");
    a.join("mover.m_cell", "cells.s_read[0]");
    a.join("req_rx.m_cell", "cells.s_read[1]");
    a.join("cells.m_data", "mover.s_cell");
    // Responder
    a.join_each(2, "resp.ctx[*]", "rsp_ctx.client[*]");
    a.join("resp.m_alloc", "rq.s_alloc");
    a.join("rq.m_grant", "resp.s_grant");
    a.join("resp.m_rq", "rq.s_cmd");
    a.join("rq.m_flush", "resp.s_flush");
    a.join("resp.m_op", "place.s_op");
    a.join("place.m_mr", "keys.s_req[1]");
    a.join("keys.m_resp[1]", "place.s_mr");
    a.join("place.m_change", "keys.s_change");
    a.join("keys.m_changed", "place.s_changed");
    a.join("place.m_wqe", "rq.s_read");
    a.join("rq.m_read", "place.s_wqe");
    a.join("place.m_free", "rq.s_free");
    a.join("place.m_move", "mover.s_move");
    a.join("place.m_done", "complete.s_done");
    a.join("mover.m_cmd", "dma_wr.s_cmd");
    a.join("mover.m_data", "dma_wr.s_data");
    a.join("dma_wr.m_cmd_done", "complete.s_wr");
    a.join("complete.m_cqe", "cq.s_req[2]");
    a.join("complete.m_ack", "reply.s_ack");
    a.join("reply.m_ack", "ackgen.s_ack");
    // Errors
    a.join("resp.m_error", "error_to_req.s");
    a.join("error_to_req.m", "req_errors.s[0]");
    a.join("admin.m_error[0]", "req_errors.s[1]");
    a.join("req_errors.m", "req_rx.s_error");
    a.join("complete.m_error", "error_from_complete.s");
    a.join("error_from_complete.m", "resp_errors.s[0]");
    a.join("admin.m_error[1]", "resp_errors.s[1]");
    a.join("reply.m_error", "error_from_reply.s");
    a.join("error_from_reply.m", "resp_errors.s[2]");
    a.join("resp_errors.m", "resp.s_error[0]");
    a.join("req_rx.m_error", "error_to_resp.s");
    a.join("error_to_resp.m", "resp.s_error[1]");
    // Events
    a.join("cq.m_event", "eq.s_req[0]");
    a.join("req_rx.m_async", "eq.s_req[1]");
    a.join("rq.m_event", "eq.s_req[2]");
    // Who has no listener yet: there is no congestion policy, and pause frames will go by the fill of the cells.
    a.open("congestion.update");
    a.open("congestion.update_valid");
    a.open("cells.free_count");
    ["error_to_req", "error_to_resp", "error_from_complete", "error_from_reply"].iter().for_each(|fifo| a.open(&format!("{fifo}.level")));
}

/// A counter's number is its place here.
fn counters(a: &mut Assembly) {
    a.count("dma_rd", "dma_rd.stat", host::dma_rd::STATS);
    a.count("dma_wr", "dma_wr.stat", host::dma_wr::STATS);
    a.count("doorbell", "doorbell.stat", host::doorbell::STATS);
    a.count("sq", "sq.stat", host::sq::STATS);
    a.count("rq", "rq.stat", host::rq::STATS);
    a.count("cq", "cq.stat", host::cq::STATS);
    a.count("eq", "eq.stat", host::eq::STATS);
    a.count("mr", "keys.stat", rdma::mr::STATS);
    a.count("req_tx", "req_tx.stat", roce::req_tx::STATS);
    a.count("req_rx", "req_rx.stat", roce::req_rx::STATS);
    a.count("resp", "resp.stat", roce::resp::STATS);
    a.count("place", "place.stat", rdma::place::STATS);
    a.count("complete", "complete.stat", rdma::complete::STATS);
    a.count("ackgen", "ackgen.stat", roce::ackgen::STATS);
    a.count("egress", "egress.stat", net::tx::STATS);
    a.count("rx", "front.stat", net::rx::STATS);
    a.count("reply", "reply.stat", roce::reply::STATS);
    a.count("cc", "congestion.stat", cc::hook::STATS);
    a.count("mcast", "mcast.stat", roce::mcast::STATS);
    a.count("rx", "front.strange", net::rx::STRANGERS);
    a.count("admin", "admin.stat", host::admin::STATS);
}
