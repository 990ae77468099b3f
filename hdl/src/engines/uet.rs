//! Ultra Ethernet, line by line.

use super::{fence, frame, Check, Engine};
use crate::assembly::Assembly;
use crate::host::admin::program::{engines as program, UET_ENDS, UET_GONE, UET_PEER_TABLE};
use crate::rdma::{self, mover::Mover, mr::MemoryKeys};
use crate::stream::MsgArb;
use crate::uet::peers::{reader, Peers, LINES};
use crate::uet::place::{self, spent::Spent, Place};
use crate::uet::settings::{Settings, LH, LK, LM, LP, LW};
use crate::uet::{dress, dress::Dress, ending, ending::Ending, intake, intake::Intake, pds, pds::Pds, peers, post, post::Post};
use crate::with_sizes;
use ferric_abi::csr::{self, space};

/// The manifest.
pub const UET: Engine = Engine {
    name: "uet",
    what: "Ultra Ethernet packet delivery: WRITEs by RUD and ROD over UDP to the peers of its table, of the physical function. Payload DMA is its own, so a card has it or RoCE.",
    needs: &[],
    capabilities: 1 << csr::FEATURE_UET,
    receives: "UDP to port 4793 over IPv4 and IPv6, without a tag, IP options, fragments or extension headers, from the peers of its table.",
    check: Check::None,
    doorbells: &[(csr::DB_WQE, "a WRITE (`UetPost`)")],
    commands: program::UET,
    reset: Some(program::RESET_UET),
    lines: |a, sizes| with_sizes!(*sizes, lines::<W, K, LK, LB, LM, LX, LO>(a)),
};

/// Of the arbiter of moves: one that is awaited has been offered.
const MOVES: &[(&str, &[&str])] = &[("s[*]", &["m"]), ("m", &[])];

/// What `settings` says, and the engine wants to know.
const SETTINGS: [&str; 33] = [
    "port",
    "crc",
    "rto",
    "nack_wait",
    "idle",
    "safety",
    "reap",
    "clear_wait",
    "tail_loss",
    "stall_least",
    "rto_max",
    "nack_max",
    "default_range",
    "ask_bytes",
    "mtu",
    "path_order",
    "last_slot",
    "penalties",
    "table_en",
    "table_slot",
    "table_entropy",
    "ack_bytes",
    "ack_least",
    "ack_wait",
    "window",
    "mpr",
    "share",
    "peer_share",
    "peer_initiators",
    "places",
    "low",
    "linger_cut",
    "seed",
];

/// `W`, `K`, `LL`: data path bits, bytes, log2 bytes, `LB` = `LL` + 1. `LR`: log2 of the memory regions. `LX`, `LO`: of the translation cache, as in `verbs`.
fn lines<const W: usize, const K: usize, const LL: usize, const LB: usize, const LR: usize, const LX: usize, const LO: usize>(a: &mut Assembly) {
    a.instance("uet_settings", Settings::default);
    a.instance("uet_peers", Peers::<LINES>::default).waits(peers::WAITS);
    a.instance("uet_intake", Intake::<W, K, LB, LINES>::default).waits(intake::WAITS);
    a.instance("uet_pds", Pds::<W, K, LB, LP, LH, LW, { LP + LW - 6 }, { LP + LW }, { LP + 6 }, LM, LK, { LP + 2 }>::default).waits(pds::WAITS);
    a.instance("uet_dress", Dress::<W, K, LB, LINES, LM>::default).waits(dress::WAITS);
    a.instance("uet_place", Place::<LINES, LK, { LK + 1 }>::default).waits(place::WAITS);
    a.instance("uet_spent", Spent::default).waits(place::spent::WAITS);
    a.instance("uet_post", Post::<LINES, LM>::default).waits(post::WAITS);
    a.instance("uet_ending", Ending::<LP>::default).waits(ending::WAITS);
    a.instance("uet_moves", MsgArb::<crate::msg::MoveOp, 2>::default).waits(MOVES);
    a.instance("keys", MemoryKeys::<LR, LX, LO>::default).waits(rdma::mr::WAITS);
    a.instance("mover", Mover::<W, K, LL>::default).waits(rdma::mover::WAITS);
    for name in SETTINGS {
        a.join(&format!("uet_settings.{name}"), &format!("uet_pds.{name}"));
    }
    a.join("uet_settings.port", "uet_intake.port");
    for (block, number) in [("intake", reader::INTAKE), ("dress", reader::DRESS), ("place", reader::PLACE), ("post", reader::POST)] {
        a.join(&format!("uet_{block}.line"), &format!("uet_peers.line[{number}]"));
        a.join(&format!("uet_peers.path[{number}]"), &format!("uet_{block}.path"));
    }
    frames(a);
    memory(a, 1 << LO);
    a.count("uet", "uet_intake.stat", intake::STATS);
    a.count("uet", "uet_dress.stat", dress::STATS);
    a.count("uet", "uet_place.stat", place::STATS);
    a.count("uet", "uet_post.stat", post::STATS);
    a.count("uet", "uet_pds.head_stat", &crate::uet::head::types::STATS);
    a.count("uet", "uet_pds.pdc_stat", &crate::uet::pdc::types::STATS);
    a.count("mr", "keys.stat", rdma::mr::STATS);
}

/// Frames in and out.
fn frames(a: &mut Assembly) {
    a.join("now_q.q", "uet_pds.now");
    a.link("frames", frame::LATER, "uet_intake.s_desc", "uet_intake.m_desc");
    a.client("frames in", &["uet_intake.m_cell", "uet_intake.s_cell"]);
    a.client("frames in", &["mover.m_cell", "mover.s_cell"]);
    a.join("uet_intake.m", "uet_pds.s");
    a.join("uet_intake.m_note", "uet_pds.note");
    for (number, [over, handle]) in [["uet_intake.dropped", "uet_intake.dropped_handle"], ["uet_pds.bad", "uet_pds.bad_handle"], ["uet_pds.gone", "uet_pds.gone_handle"]].iter().enumerate() {
        a.join(over, &format!("uet_spent.over[{number}]"));
        a.join(handle, &format!("uet_spent.handle[{number}]"));
    }
    a.join("uet_pds.m", "uet_dress.s");
    a.join("uet_pds.m_note", "uet_dress.s_note");
    a.join("uet_dress.token", "uet_post.token");
    a.join("uet_post.sent", "uet_dress.sent");
    a.client("frames out", &["uet_dress.m_slot", "uet_dress.s_slot", "uet_dress.m_inline", "uet_dress.m_seal"]);
    a.client_with("headers", dress::HEADER, &["uet_dress.m_row", "uet_dress.m_done"]);
    a.open("uet_pds.used");
    a.join("uet_intake.known", "uet_ending.came");
    a.join("uet_pds.bad", "uet_ending.bad");
    a.join("uet_pds.judged", "uet_ending.judged");
    a.join("uet_ending.gone", "uet_pds.parted");
    (0..2).for_each(|half| a.join(&format!("uet_ending.m[{half}]"), &format!("uet_pds.s_ending[{half}]")));
    a.join("uet_ending.settle", "uet_pds.settle");
    a.join("uet_pds.settled", "uet_ending.settled");
    a.join("uet_ending.flush", "uet_post.flush");
    a.join("uet_post.flushed", "uet_ending.flushed");
}

/// Messages, payload and keys. `fetches`: page-table lines that are fetched at once.
fn memory(a: &mut Assembly, fetches: usize) {
    a.join("doorbell.m_wqe", "uet_post.s_wqe");
    a.join("uet_post.m", "uet_pds.s_post");
    a.join("uet_pds.m_end", "uet_post.s_end");
    a.client("small writes", &["uet_post.m_wr", "uet_post.s_done"]);
    a.join("uet_dress.m_pay", "dma_rd.s_pay");
    a.join("uet_pds.m_deliver", "uet_place.s");
    a.join("uet_place.m", "uet_pds.s_done");
    a.join("uet_dress.m_key", "keys.s_req[0]");
    a.join("keys.m_resp[0]", "uet_dress.s_key");
    a.join("uet_place.m_key", "keys.s_req[1]");
    a.join("keys.m_resp[1]", "uet_place.s_key");
    a.client_with("small reads", fetches, &["keys.m_rd", "keys.s_rd"]);
    a.join("uet_place.m_move", "uet_moves.s[0]");
    a.join("uet_spent.m", "uet_moves.s[1]");
    a.join("uet_moves.m", "mover.s_move");
    a.join("mover.m_cmd", "dma_wr.s_cmd");
    a.join("mover.m_data", "dma_wr.s_data");
    a.join("dma_wr.m_cmd_done", "uet_place.s_written");
    // Local operations, invalidations by peers and atomics are not there.
    ["s_change", "m_changed", "s_work", "m_worked", "phase", "begun", "over", "over_phase"].iter().for_each(|port| a.optional(&format!("keys.{port}")));
    a.table(space::MR, "keys");
    a.table(UET_PEER_TABLE, "uet_peers");
    a.table(UET_ENDS, "uet_post");
    a.table("uet pdcs", "uet_pds");
    a.table(UET_GONE, "uet_ending");
    a.link("barrier", fence::REQUESTS, "uet_place.fence", "uet_place.passed");
    a.link("barrier", fence::ORDERS, "uet_dress.fence", "uet_dress.passed");
    a.link("barrier", fence::COMPLETIONS, "uet_post.fence", "uet_post.passed");
    a.link("translations", 0, "keys.invalidate", "keys.clean");
}
