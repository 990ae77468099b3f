//! The chassis, line by line: the card's ports, its host side and its port side. Engines add their lines to these.

use super::Card;
use crate::assembly::{up_to_most, AnyBlock, Assembly, Share};
use crate::engines::wire::{OFF_THE_WIRE, TO_THE_WIRE};
use crate::host::{
    self,
    admin::Admin,
    csr::Csr,
    ctl::switch,
    dma_rd::{self, shares},
    dma_wr,
    doorbell::Doorbell,
    eq,
};
use crate::net::share::{self, cells::CellShare, slots::SlotShare};
use crate::net::{self, cells::CellBuffer, rx::RxFront, station::Stations, tx::Egress, unwanted::Unwanted};
use crate::stats::{self, COUNTERS, LANES};
use crate::with_sizes;
use ferric_abi::csr::{space, STATIONS};
use rust_hdl::prelude::*;

/// The chain of descriptors of received frames that are not RoCE packets.
pub const FRAMES: &str = "frames";

/// The chain by which the admin engine has translations dropped.
const TRANSLATIONS: &str = "translations";

/// The pool of small reads: quotas are reads in flight.
pub(super) const SMALL_READS: &str = "small reads";
const SMALL_WRITES: &str = "small writes";

/// The pool of data frames to send, and that of engines that make headers: quotas are bytes of the longest header.
const FRAMES_OUT: &str = "frames out";
const HEADERS: &str = "headers";
/// The pool of reads of received frames.
const FRAMES_IN: &str = "frames in";

/// The whole card.
pub(super) fn list(card: &Card) -> Assembly {
    let mut a = Assembly::default();
    a.part("chassis");
    ports(&mut a);
    let sizes = card.sizes;
    with_sizes!(sizes, instances::<W, K, LK, LE, LH, NF, LF, LG, ND, LD>(&mut a, card));
    with_sizes!(sizes, statistics::<LF, LS, CB, CH>(&mut a));
    wires(&mut a, (STATIONS << sizes.functions) as usize);
    counters(&mut a);
    for engine in &card.engines {
        a.part(engine.name);
        (engine.lines)(&mut a, &card.sizes);
    }
    if !a.has_links(TRANSLATIONS) {
        a.part("chassis");
        a.instance("clean", host::admin::clean::Clean::default).waits(host::admin::clean::WAITS).top = None;
        a.link(TRANSLATIONS, 0, "clean.invalidate", "clean.clean");
    }
    if !a.has_tail(FRAMES) {
        a.part("chassis");
        a.instance("unwanted", Unwanted::default).waits(net::unwanted::WAITS);
        a.join("front.m_desc", "unwanted.s");
        a.join("unwanted.m_free", "cells.s_read[1]");
        a.tail(FRAMES, "unwanted.s_raw");
        a.count("unwanted", "unwanted.stat", net::unwanted::STATS);
    }
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
    crate::engines::bus::DOORBELLS.iter().for_each(|signal| signal.border(a, "db_", "doorbell"));
    // DMA: AXI4 master.
    crate::engines::bus::READS.iter().for_each(|signal| signal.border(a, "", "dma_rd"));
    crate::engines::bus::WRITES.iter().for_each(|signal| signal.border(a, "", "dma_wr"));
    // Interrupt requests.
    a.chain_out(crate::engines::bus::INTERRUPTS, &[("eq.m_msix", "msix")]);
    // MAC, receive side: `ready` is always high; `rx_err` with the last beat: the MAC found the frame bad. A place for policy: the switch will stand here, and on the transmit side.
    a.chain_in(OFF_THE_WIRE, &[("rx", "front.s"), ("rx_err", "front.s_err")]);
    // MAC, transmit side.
    a.chain_out(TO_THE_WIRE, &[("egress.m", "tx")]);
    // One register for the whole card: one fan-out tree, and inputs that a simulator need not follow through every block.
    a.reset_by("reset_q.q");
    a.control_switch("switch");
    a.counted_by("stats.inc", COUNTERS, "stats.whose[*]", LANES);
}

/// `W`, `K`, `LK`: data path bits, bytes, log2 bytes. `LE`: log2 event queues. `LH`: log2 egress slots, and payload reads. `NF`, `LF`, `LG`: functions, log2 of them and of their registers' words. `ND`, `LD`: their MAC addresses, log2 of them.
fn instances<const W: usize, const K: usize, const LK: usize, const LE: usize, const LH: usize, const NF: usize, const LF: usize, const LG: usize, const ND: usize, const LD: usize>(
    a: &mut Assembly,
    card: &Card,
) {
    let (capabilities, plan) = (card.capabilities(), card.admin_plan());
    a.instance("csr", move || Csr::<NF, LF, LG>::new(capabilities)).sized().waits(host::csr::WAITS);
    a.instance("doorbell", Doorbell::<W, K, LF>::default).waits(host::doorbell::WAITS);
    a.instance_by("admin", std::any::type_name::<Admin<LF>>(), move |list| AnyBlock::new(Admin::<LF>::new(&plan.with_tables(list.tables.iter().map(|t| t.name))))).sized().waits(host::admin::WAITS);
    a.instance_by("switch", "CtlSwitch", |list| switch::for_number(list.tables.len())).waits(switch::WAITS);
    a.instance_by("dma_rd", "DmaRead", |list| dma_rd::for_quotas::<W, K, LK, LH>(list.quotas(SMALL_READS))).sized().waits(host::dma_rd::WAITS);
    a.instance_by("dma_wr", "DmaWrite", |list| dma_wr::for_number::<W, K, LK>(list.clients(SMALL_WRITES))).sized().waits(host::dma_wr::WAITS);
    a.instance_by("eq", std::any::type_name::<eq::EventWriter<LE, 1, 2, 3>>(), |list| eq::for_number::<LE>(list.clients("events"))).waits(host::eq::WAITS);
    a.instance_by("egress", std::any::type_name::<Egress<W, K, LK, 1, LH>>(), |list| {
        net::tx::for_headers::<W, K, LK, LH>(list.quotas(HEADERS), [0, 1].map(|port| header_client(list, &format!("egress.s_slot[{port}]"))))
    })
    .sized()
    .waits(net::tx::WAITS);
    a.instance("front", RxFront::<W, K, LK>::default).waits(net::rx::WAITS);
    a.instance("stations", Stations::<ND, LD, NF>::default).waits(net::station::WAITS);
    // As many descriptors as the cell buffer has cells, so that the receive front never waits.
    a.instance("cells", CellBuffer::<W, K>::default).waits(net::cells::WAITS);
    a.register::<Bit>("reset_q", "reset");
    a.register::<Bits<32>>("now_q", "now");
    shared::<W, K>(a);
}

/// `LF`: log2 of the functions. `LS`: of their sums, `CB` and `CH`: bits of a small counter, and of a sum above those.
fn statistics<const LF: usize, const LS: usize, const CB: usize, const CH: usize>(a: &mut Assembly) {
    a.instance_by("stats", "Stats", |list| stats::for_counters::<LF, LS, CB, CH>(&list.counters)).waits(stats::WAITS);
}

/// The number at the egress of the engine at `port` among those that make headers; 0 if it makes none, for then nobody asks.
fn header_client(list: &Assembly, port: &str) -> usize {
    let engine = list.user(port);
    (0..list.clients(HEADERS)).find(|n| engine.is_some() && list.user(&format!("egress.s_row[{n}]")) == engine).unwrap_or(0)
}

/// What one client has to itself, and several share.
fn shared<const W: usize, const K: usize>(a: &mut Assembly) {
    let slots = Share {
        name: "slot_share",
        kind: std::any::type_name::<SlotShare<2>>(),
        make: |list| share::slots::for_clients(&(0..list.clients(FRAMES_OUT)).map(|n| header_client(list, &format!("slot_share.s_slot[{n}]"))).collect::<Vec<_>>()),
        whole: &["m_slot", "s_grant", "m_inline", "m_seal"],
        each: &["s_slot[*]", "m_grant[*]", "s_inline[*]", "s_seal[*]"],
        waits: share::slots::WAITS,
    };
    a.shared(FRAMES_OUT, &["egress.s_slot[0]", "egress.m_slot[0]", "egress.s_inline", "egress.s_seal[0]"], slots);
    let cells = Share {
        name: "cell_share",
        kind: std::any::type_name::<CellShare<W, K, 2>>(),
        make: |list| share::cells::for_clients::<W, K>(list.clients(FRAMES_IN)),
        whole: &["m_read", "s_data"],
        each: &["s_read[*]", "m_data[*]"],
        waits: share::cells::WAITS,
    };
    a.shared(FRAMES_IN, &["cells.s_read[0]", "cells.m_data"], cells);
}

/// `stations`: MAC addresses of all functions.
fn wires(a: &mut Assembly, stations: usize) {
    // Registers
    a.join("now_q.q", "csr.tick");
    // Functions take turns at the admin engine
    a.join("csr.look", "admin.look");
    ["look_function", "look_word", "served", "again", "reset_done"].iter().for_each(|port| a.join(&format!("admin.{port}"), &format!("csr.{port}")));
    // Doorbells
    a.join("doorbell.m_eq", "eq.s_db");
    ["m_sq", "m_rq", "m_cq", "m_wqe"].iter().for_each(|kind| a.optional(&format!("doorbell.{kind}")));
    // DMA
    a.pool(SMALL_READS, &["dma_rd.s_small[*]", "dma_rd.m_small[*]"]);
    a.pool_fits(SMALL_READS, shares::fit);
    a.pool(SMALL_WRITES, &["dma_wr.s_small[*]", "dma_wr.m_small_done[*]"]);
    a.pool_fits(SMALL_WRITES, up_to_most);
    a.client_with(SMALL_READS, 8, &["admin.m_rd", "admin.s_rd"]);
    a.client(SMALL_WRITES, &["admin.m_wr", "admin.s_done"]);
    a.client(SMALL_WRITES, &["eq.m_wr", "eq.s_done"]);
    a.join("dma_rd.m_pay_done", "egress.s_pay_done");
    a.join("dma_rd.asm_we", "egress.asm_we");
    a.join("dma_rd.asm_row1", "egress.asm_row1");
    a.join("dma_rd.asm_addr", "egress.asm_addr");
    a.join("dma_rd.asm_data", "egress.asm_data");
    ["dma_rd.s_pay", "dma_wr.s_cmd", "dma_wr.s_data", "dma_wr.m_cmd_done"].iter().for_each(|port| a.optional(port));
    ["hold", "page", "clear", "begin", "end"].iter().for_each(|signal| a.optional(&format!("dma_wr.atomic_{signal}")));
    // Control bus
    a.join("admin.m_ctl", "switch.s_req");
    a.join("switch.m_resp", "admin.s_ctl");
    a.table(space::EQ, "eq");
    a.table(space::STATS, "stats");
    a.table(space::STATION, "stations");
    a.chain("barrier", "admin.barrier", "admin.barrier_done");
    a.link("barrier", crate::engines::fence::EVENTS, "eq.fence", "eq.passed");
    a.chain(TRANSLATIONS, "admin.mtt_invalidate", "admin.mtt_clean");
    a.join("admin.quiesce_rd", "dma_rd.quiesce");
    a.join("dma_rd.quiesced", "admin.quiesced_rd");
    a.join("admin.quiesce_wr", "dma_wr.quiesce");
    a.join("dma_wr.quiesced", "admin.quiesced_wr");
    ["ends", "ends_qpn", "m_error[0]", "m_error[1]"].iter().for_each(|port| a.optional(&format!("admin.{port}")));
    // Packets out
    a.pool(HEADERS, &["egress.s_row[*]", "egress.s_hdr[*]"]);
    a.pool_fits(HEADERS, net::tx::fits_headers);
    ["s_slot[1]", "m_slot[1]", "s_seal[1]", "m_done", "m_reply_done"].iter().for_each(|port| a.optional(&format!("egress.{port}")));
    // Packets in
    a.join("front.dmac", "stations.dmac");
    a.join("front.dmac_network", "stations.network");
    a.join("stations.other", "front.other_station");
    a.join("admin.raw_qpn", "stations.port");
    a.join("front.m_cell", "cells.s_write");
    // Each engine takes its frames out and hands on the others; the last one takes all that is left. RoCE packets go straight to their engine.
    a.chain_from(FRAMES, "front.m_raw");
    ["front.peer", "front.peer_stranger", "front.peer_line", "stations.owner", "cells.s_read[1]", "cells.s_retain"].iter().for_each(|port| a.optional(port));
    // For functions that have networks of their own.
    ["front.network", "front.note", "front.peer_foreign", "front.foreign", "stations.networks", "stations.owned", "front.owner", "front.owned", "egress.begins", "egress.begins_function"]
        .iter()
        .for_each(|port| a.optional(port));
    (0..stations).for_each(|n| a.optional(&format!("stations.macs[{n}]")));
    // Without the engine that verifies what functions send, they may all have the addresses that they say.
    (0..stations / STATIONS as usize).for_each(|f| a.optional(&format!("stations.senders[{f}]")));
    // For pause frames.
    a.optional("cells.free_count");
    ["look", "round"].iter().for_each(|signal| a.optional(&format!("egress.{signal}")));
    ["hold", "shallow"].iter().for_each(|port| a.optional(&format!("egress.{port}")));
    // Events
    a.pool("events", &["eq.s_req[*]"]);
    a.pool_fits("events", up_to_most);
}

/// A counter's number is its place here, and those of the engines follow.
fn counters(a: &mut Assembly) {
    a.count("dma_rd", "dma_rd.stat", host::dma_rd::STATS);
    a.count("dma_wr", "dma_wr.stat", host::dma_wr::STATS);
    a.count_by("doorbell", "doorbell.stat", "doorbell.stat_function", host::doorbell::STATS);
    a.count_by("eq", "eq.stat", "eq.stat_function", host::eq::STATS);
    a.count_by("eq", "eq.told", "eq.told_function", host::eq::TOLD);
    a.count("egress", "egress.stat", net::tx::STATS);
    a.count("rx", "front.stat", net::rx::STATS);
    a.count("rx", "front.strange", net::rx::STRANGERS);
    a.count_by("admin", "admin.stat", "admin.stat_function", host::admin::STATS);
}
