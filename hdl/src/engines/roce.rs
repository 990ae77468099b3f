//! RoCEv2, line by line.

use super::{fence, Check, Engine};
use crate::assembly::Assembly;
use crate::cc::{self, hook::CcHook};
use crate::context::{self, read_store::ReadStore, store::CtxStore};
use crate::host::admin::program::engines as program;
use crate::msg::QpError;
use crate::net::{self, dispatch::Dispatch};
use crate::rdma::{self, gather::Gather};
use crate::records::{PathCtx, ReqCtx, RspCtx};
use crate::roce::{self, ackgen::AckGen, header::HeaderBuilder, mcast::Multicast, peer::PeerCheck, reply::Reply, requester, resp::Responder};
use crate::stream::{self, MsgArb, MsgFifo};
use crate::with_sizes;
use ferric_abi::csr::{self, space};

/// log2 of the attachments to multicast groups.
const LOG_ATTACHMENTS: usize = csr::MULTICAST_ATTACHMENTS.ilog2() as usize;
/// log2 of the requests that may wait for atomics in front of them: twice as many atomics as are under way at a time.
const LOG_WAITING: usize = 5;

/// The chains of what the responder is asked, and of the queue pair that gets what is not RoCE (SET_PORT): nothing on them but what tells functions apart.
pub(super) const REQUESTS: &str = "requests for the responder";
pub(super) const RAW_QUEUE: &str = "the raw queue pair";
/// Handles of received frames that get one owner more.
pub(super) const OWNERS: &str = "owners of received frames";

/// The manifest.
pub const ROCE: Engine = Engine {
    name: "roce",
    what: "RoCEv2 over IPv4 and IPv6: RC, UC, UD and raw Ethernet queue pairs, SEND, WRITE, READ, atomics, multicast receive, loss recovery, ECN notices.",
    needs: &["verbs"],
    capabilities: 1 << csr::TRANSPORT_RC | 1 << csr::TRANSPORT_UC | 1 << csr::TRANSPORT_UD | 1 << csr::TRANSPORT_RAW | 1 << csr::FEATURE_READ_ATOMIC | 1 << csr::FEATURE_PLACEMENT | 1 << csr::FEATURE_MULTICAST,
    receives: "UDP to port 4791 over IPv4 and IPv6, from the peers of its paths; every other frame that the card takes (to a function's MAC address, to a group, or all on request) for the raw queue pair, if there is one.",
    check: Check::Icrc,
    doorbells: &[],
    commands: program::ROCE,
    reset: Some(program::reset_roce),
    lines: |a, sizes| with_sizes!(*sizes, lines::<W, K, LQ, LJ, LA, LR, LH>(a)),
};

/// `W`, `K`: data path bits and bytes. `LQ`: log2 queue pairs, `LJ`: of those in a function's share, `LA` = `LQ` + 8, `LR` = `LQ` + 5. `LH`: log2 buffers of send work requests.
fn lines<const W: usize, const K: usize, const LQ: usize, const LJ: usize, const LA: usize, const LR: usize, const LH: usize>(a: &mut Assembly) {
    a.instance("req_ctx", CtxStore::<ReqCtx, LQ, 3>::default).waits(context::store::WAITS);
    a.instance("rsp_ctx", CtxStore::<RspCtx, LQ, 2>::default).waits(context::store::WAITS);
    a.instance("path_ctx", ReadStore::<PathCtx, LQ>::default).waits(context::read_store::WAITS);
    requester::lines::<LQ, LA, LH>(a);
    a.instance("gather", Gather::default).waits(rdma::gather::WAITS);
    a.instance("header", HeaderBuilder::<W, K, LJ>::default).waits(roce::header::WAITS);
    a.instance("ackgen", AckGen::<LQ>::default).waits(roce::ackgen::WAITS);
    a.instance("reply", Reply::<LQ, LR>::default).waits(roce::reply::WAITS);
    a.instance("congestion", CcHook::default).top("cc_hook").waits(cc::hook::WAITS);
    a.instance("mcast", Multicast::<LOG_ATTACHMENTS, LQ>::default).waits(roce::mcast::WAITS);
    a.instance("peer", PeerCheck::<LQ, LJ>::default).waits(roce::peer::WAITS);
    a.instance("dispatch", Dispatch::default).waits(net::dispatch::WAITS);
    a.instance("resp", Responder::<LQ, LOG_WAITING>::default).waits(roce::resp::WAITS);
    // Error reports cross between requester and responder: room for one per queue pair, so that neither waits for the other.
    a.instance("error_to_req", MsgFifo::<QpError, LQ>::default).top("errors").waits(stream::fifo::WAITS).never_waits("s");
    a.instance("error_to_resp", MsgFifo::<QpError, LQ>::default).top("errors").waits(stream::fifo::WAITS).never_waits("s");
    a.instance("error_from_complete", MsgFifo::<QpError, LQ>::default).top("errors").waits(stream::fifo::WAITS).never_waits("s");
    a.instance("error_from_reply", MsgFifo::<QpError, LQ>::default).top("errors").waits(stream::fifo::WAITS).never_waits("s");
    a.instance("req_errors", MsgArb::<QpError, 2>::default).top("error_arb").waits(stream::arb::WAITS);
    a.instance("resp_errors", MsgArb::<QpError, 3>::default).top("error_arb3").waits(stream::arb::WAITS);
    host_wires(a);
    requester_wires(a);
    transmit_wires(a);
    receive_wires(a);
    error_wires(a);
    a.count_by("req_tx", "req_tx.stat", "req_tx.stat_function", roce::req_tx::STATS);
    a.count_by("req_rx", "req_rx.stat", "req_rx.stat_function", roce::req_rx::STATS);
    a.count_by("resp", "resp.stat", "resp.stat_function", roce::resp::STATS);
    a.count_by("ackgen", "ackgen.stat", "ackgen.stat_function", roce::ackgen::STATS);
    a.count_by("reply", "reply.stat", "reply.stat_function", roce::reply::STATS);
    a.count("cc", "congestion.stat", cc::hook::STATS);
    a.count("mcast", "mcast.stat", roce::mcast::STATS);
}

fn host_wires(a: &mut Assembly) {
    // DMA.
    a.client_with("small reads", rdma::atomics::READS, &["reply.m_rd", "reply.s_rd"]);
    a.client("small writes", &["reply.m_wr", "reply.s_wr"]);
    a.join("reply.atomic_hold", "dma_wr.atomic_hold");
    a.join("reply.atomic_page", "dma_wr.atomic_page");
    a.join("dma_wr.atomic_clear", "reply.atomic_clear");
    a.join("reply.atomic_begin", "dma_wr.atomic_begin");
    a.join("reply.atomic_end", "dma_wr.atomic_end");
    // Control bus
    a.table(space::REQ, "req_ctx");
    a.table(space::RSP, "rsp_ctx");
    a.table(space::PATH, "path_ctx");
    a.table(space::MCAST, "mcast");
    // Answers to the requester first, then what the responder has: both are in order behind the barrier.
    a.link("barrier", fence::ANSWERS, "req_rx.barrier", "req_rx.barrier_done");
    a.link("barrier", fence::REQUESTS, "resp.barrier", "complete.barrier_done");
    a.link("barrier", fence::REPLIES, "reply.barrier", "reply.barrier_done");
    // Then what was decided by keys, contexts and rings as they were: packet orders, payload, and behind them fetches and entries of rings.
    a.link("barrier", fence::ORDERS, "req_tx.fence", "req_tx.passed");
    a.link("barrier", fence::PAYLOAD, "gather.fence", "gather.passed");
    a.join("admin.ends", "reply.ends");
    a.join("admin.ends_qpn", "reply.ends_qpn");
    a.chain(RAW_QUEUE, "admin.raw_qpn", "resp.raw_qpn");
}

fn requester_wires(a: &mut Assembly) {
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
    a.client("completions in order", &["req_tx.m_cqe"]);
    a.client("completions in order", &["req_rx.m_cqe"]);
    a.client("events", &["req_rx.m_async"]);
    a.join("now_q.q", "timers.now");
    a.join("req_rx.m_again", "again.s_want");
    a.join("again.m_handle", "req_rx.s_again");
    a.join("req_rx.m_place", "place.s_answer");
    a.join("complete.m_read", "req_rx.s_placed");
}

fn transmit_wires(a: &mut Assembly) {
    a.join("gather.m_mr", "keys.s_req[0]");
    a.join("keys.m_resp[0]", "gather.s_mr");
    // What is stale when it could go is not sent.
    a.join("gather.look", "rounds.look[1]");
    a.join("rounds.round[1]", "gather.round");
    a.join("egress.look", "rounds.look[2]");
    a.join("rounds.round[2]", "egress.round");
    a.client("frames out", &["gather.m_slot", "gather.s_slot", "gather.m_inline", "gather.m_seal"]);
    a.join("ackgen.m_slot", "egress.s_slot[1]");
    a.join("egress.m_slot[1]", "ackgen.s_slot");
    a.join("ackgen.m_seal", "egress.s_seal[1]");
    a.join("gather.m_pay", "dma_rd.s_pay");
    a.join("gather.m_hdr", "header.s_op[0]");
    a.join("ackgen.m_hdr", "header.s_op[1]");
    a.join("header.ctx[0]", "path_ctx.client[0]");
    a.join("header.ctx[1]", "path_ctx.client[1]");
    a.client_with("headers", roce::header::BYTES, &["header.m_row", "header.m_ready"]);
}

fn receive_wires(a: &mut Assembly) {
    // What is not RoCE is for the raw queue pair: nothing is left for others.
    a.tail("frames", "dispatch.s_raw");
    a.join("front.m_desc", "dispatch.s");
    // The paths are known from what the control bus writes to them.
    a.watch(space::PATH, "peer.ctl");
    a.join("front.peer", "peer.ask");
    a.join("peer.stranger", "front.peer_stranger");
    a.join("peer.foreign", "front.peer_foreign");
    // Queue pair 1 is that of the function whose address a datagram goes to.
    a.join("stations.owner", "peer.addressee");
    a.join("peer.line_bits", "front.peer_line");
    // For functions that have networks of their own.
    ["peer.networks", "mcast.networks"].iter().for_each(|port| a.optional(port));
    a.join("now_q.q", "dispatch.now");
    a.join("dispatch.notice", "congestion.notice");
    a.join("dispatch.notice_valid", "congestion.notice_valid");
    // There is no congestion policy yet.
    a.open("congestion.update");
    a.open("congestion.update_valid");
    a.join("dispatch.m_resp", "mcast.s");
    a.chain(REQUESTS, "mcast.m", "resp.s_rx");
    a.watch(space::PATH, "mcast.path_ctl");
    a.chain(OWNERS, "mcast.m_retain", "cells.s_retain");
    a.join("dispatch.m_req", "req_rx.s_rx");
    a.join("req_rx.m_cell", "cells.s_read[1]");
    a.join_each(2, "resp.ctx[*]", "rsp_ctx.client[*]");
    a.join("resp.m_alloc", "rq.s_alloc");
    a.join("rq.m_grant", "resp.s_grant");
    a.join("resp.peek", "rq.peek");
    a.join("rq.posted", "resp.posted");
    a.join("rq.told", "resp.told");
    a.join("resp.m_rq", "rq.s_cmd");
    a.join("rq.m_flush", "resp.s_flush");
    a.join("resp.m_op", "place.s_op");
    a.join("complete.m_ack", "reply.s_ack");
    a.join("reply.m_ack", "ackgen.s_ack");
    a.join("reply.over", "resp.over");
    a.join("reply.over_qpn", "resp.over_qpn");
    a.join("reply.over_count", "resp.over_count");
    a.join("reply.over_keyed", "keys.over");
    a.join("reply.over_phase", "keys.over_phase");
    a.join("reply.answered", "resp.answered");
    a.join("reply.answered_qpn", "resp.answered_qpn");
    a.join("reply.answered_epoch", "resp.answered_epoch");
    a.join("reply.answered_count", "resp.answered_count");
}

fn error_wires(a: &mut Assembly) {
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
    ["error_to_req", "error_to_resp", "error_from_complete", "error_from_reply"].iter().for_each(|fifo| a.open(&format!("{fifo}.level")));
}
