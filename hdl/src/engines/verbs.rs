//! What the transports share, line by line: rings of work, completions, memory keys, placement.

use super::{fence, Check, Engine};
use crate::assembly::{up_to_most, Assembly};
use crate::host::admin::program::engines as program;
use crate::host::{
    self, cq,
    row_share::RowShare,
    rq::RecvQueue,
    sq::{again::WqeAgainUnit, SendQueue},
};
use crate::rdma::{self, complete::Complete, mover::Mover, mr::MemoryKeys, place::Place};
use crate::with_sizes;
use ferric_abi::csr::{self, space};

/// The manifest. It is no transport: those that use it bring the packets.
pub const VERBS: Engine = Engine {
    name: "verbs",
    what: "Send and receive rings, shared receive queues, completion queues, memory regions and windows, placement of payload: what RDMA transports share.",
    needs: &[],
    capabilities: 1 << csr::FEATURE_WQE_DOORBELL | 1 << csr::FEATURE_SRQ,
    receives: "",
    check: Check::None,
    doorbells: &[(csr::DB_SQ, "send queue"), (csr::DB_RQ, "receive queue"), (csr::DB_CQ, "completion queue"), (csr::DB_WQE, "send queue, with the work request")],
    commands: program::VERBS,
    reset: None,
    lines: |a, sizes| with_sizes!(*sizes, lines::<W, K, LK, LQ, LN, LC, LM, LX, LO, LW, LV, NH, LH, LI>(a)),
};

/// `W`, `K`, `LK`: data path bits, bytes, log2 bytes. `LQ`: log2 queue pairs, `LN` = `LQ` + 1 receive rings, `LC` completion queues, `LM` memory regions.
/// `LX`: log2 of the slots of a way of the translation cache, `LO` of the page-table lines that are fetched at once.
/// `LW`: log2 of the blocks of eight rows that hold receive work requests fetched ahead, `LV` = `LW` + 3. `NH` = 2^`LH` buffers of send work requests, `LI` = `LH` + 3.
fn lines<
    const W: usize,
    const K: usize,
    const LK: usize,
    const LQ: usize,
    const LN: usize,
    const LC: usize,
    const LM: usize,
    const LX: usize,
    const LO: usize,
    const LW: usize,
    const LV: usize,
    const NH: usize,
    const LH: usize,
    const LI: usize,
>(
    a: &mut Assembly,
) {
    a.instance("sq", SendQueue::<LQ, NH, LH, LI>::default).waits(host::sq::WAITS);
    a.instance("again", WqeAgainUnit::<LQ>::default).waits(host::sq::again::WAITS);
    // The receive queues' port of small reads, with those of `again`.
    a.instance("rows", RowShare::default).top("row_share").waits(host::row_share::WAITS);
    a.instance("rq", RecvQueue::<LN, LW, LV>::default).waits(host::rq::WAITS);
    a.instance_by("cq", "CompletionWriter", |list| cq::for_number::<LC>(list.clients("completions"))).sized().waits(host::cq::WAITS);
    a.instance("keys", MemoryKeys::<LM, LX, LO>::default).waits(rdma::mr::WAITS);
    a.instance("place", || Place::<LQ>::new(true)).waits(rdma::place::WAITS);
    a.instance("mover", Mover::<W, K, LK>::default).waits(rdma::mover::WAITS);
    a.instance("complete", Complete::<LQ>::default).waits(rdma::complete::WAITS);
    wires(a, 1 << LO);
    a.count_by("sq", "sq.stat", "sq.stat_function", host::sq::STATS);
    a.count_by("sq", "sq.fetched", "sq.fetched_function", host::sq::FETCHED);
    a.count_by("sq", "sq.fetch_errors", "sq.fetch_errors_function", host::sq::FETCH_ERRORS);
    a.count("sq", "sq.work", host::sq::WORK);
    a.count_by("rq", "rq.stat", "rq.stat_function", host::rq::STATS);
    a.count_by("rq", "rq.fetches", "rq.fetches_function", host::rq::FETCHES);
    a.count_by("rq", "rq.fetch_errors", "rq.fetch_errors_function", host::rq::FETCH_ERRORS);
    a.count_by("cq", "cq.stat", "cq.stat_function", host::cq::STATS);
    a.count_by("cq", "cq.told", "cq.told_function", host::cq::TOLD);
    a.count("mr", "keys.stat", rdma::mr::STATS);
    a.count_by("place", "place.stat", "place.stat_function", rdma::place::STATS);
    a.count_by("complete", "complete.stat", "complete.stat_function", rdma::complete::STATS);
}

/// `fetches`: page-table lines that are fetched at once.
fn wires(a: &mut Assembly, fetches: usize) {
    // Doorbells
    a.join("doorbell.m_sq", "sq.s_db");
    a.join("doorbell.m_rq", "rq.s_db");
    a.join("doorbell.m_cq", "cq.s_db");
    a.join("doorbell.m_wqe", "sq.s_wqe");
    // DMA
    a.client_with("small reads", 64, &["sq.m_rd", "sq.s_rd"]);
    a.join("rq.m_rd", "rows.s_cmd[0]");
    a.join("rows.m_row[0]", "rq.s_rd");
    a.join("again.m_rd", "rows.s_cmd[1]");
    a.join("rows.m_row[1]", "again.s_rd");
    // As many as `again` has buffers.
    a.client_with("small reads", 64, &["rows.m_cmd", "rows.s_row"]);
    a.client_with("small reads", fetches, &["keys.m_rd", "keys.s_rd"]);
    a.client("small writes", &["cq.m_wr", "cq.s_done"]);
    a.join("mover.m_cmd", "dma_wr.s_cmd");
    a.join("mover.m_data", "dma_wr.s_data");
    a.join("dma_wr.m_cmd_done", "complete.s_wr");
    // Control bus
    a.table(space::SQ, "sq");
    a.watch(space::SQ, "again.ctl");
    a.table(space::RQ, "rq");
    a.table(space::CQ, "cq");
    a.table(space::MR, "keys");
    a.link("barrier", fence::SEND_QUEUES, "sq.fence", "sq.passed");
    a.link("barrier", fence::RECEIVE_QUEUES, "rq.fence", "rq.passed");
    a.link("barrier", fence::ROWS, "rows.fence", "rows.passed");
    a.link("barrier", fence::COMPLETIONS, "cq.fence", "cq.passed");
    a.link("translations", 0, "keys.invalidate", "keys.clean");
    // Placement
    a.join("place.begun", "keys.begun");
    a.join("keys.phase", "place.phase");
    a.join("place.m_again", "again.s_read");
    a.join("again.m_read", "place.s_again");
    a.join("place.m_again_free", "again.s_free");
    a.client("frames in", &["mover.m_cell", "mover.s_cell"]);
    a.join("place.m_mr", "keys.s_req[1]");
    a.join("keys.m_resp[1]", "place.s_mr");
    a.join("place.m_change", "keys.s_change");
    a.join("keys.m_changed", "place.s_changed");
    a.join("place.m_wqe", "rq.s_read");
    a.join("rq.m_read", "place.s_wqe");
    a.join("place.m_free", "rq.s_free");
    a.join("rq.m_late", "place.s_late");
    a.join("place.m_move", "mover.s_move");
    a.join("place.m_done", "complete.s_done");
    // Completions and events
    a.join("now_q.q", "cq.now");
    a.pool("completions", &["cq.s_req[*]"]);
    a.pool_fits("completions", up_to_most);
    a.client("completions", &["complete.m_cqe"]);
    a.pool("completions in order", &["cq.s_order[*]"]);
    a.pool_fits("completions in order", |quotas| match quotas.len() {
        n if n > cq::IN_ORDER => Err(format!("{n} clients, and {} are possible", cq::IN_ORDER)),
        _ => Ok(()),
    });
    a.client("events", &["cq.m_event"]);
    a.client("events", &["rq.m_event"]);
}
