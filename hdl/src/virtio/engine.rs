//! The engine's list: its blocks, its own DMA reader and writer, and its wires. See README.md.

use super::{hold, note, put, queue, rx, steer, stock, tx, used, walk};
use crate::assembly::Assembly;
use crate::host::{dma_rd, dma_wr};
use crate::net::l4;
use crate::rdma::mover;
use crate::stream::arb;
use rust_hdl::prelude::*;

/// log2 of the slots for frames on their way out, with a data path of 64 bits and of 512, and of those on their way in.
const LG_SENT_NARROW: usize = 2;
const LG_SENT_WIDE: usize = 3;
const LG_HELD: usize = 2;
/// log2 of the buffers that a receive queue has in stock at most.
const LG_STOCK: usize = 6;
/// Small reads in flight of the queue unit, the walker, the used side.
const QUOTAS: [usize; 3] = [4, 4, 4];
/// log2 of the payload reads in flight.
const LG_PAYLOAD: usize = 7;

/// Blocks that say what they reject: each has the ports `<name>_told` and `<name>_told_valid`.
pub const TELLERS: [&str; 6] = ["queue", "walk", "stock", "tx", "rx", "used"];

/// log2 of the queues: with a data path of 64 bits, and of 512.
pub const LG_NARROW: usize = 3;
pub const LG_WIDE: usize = 5;

/// Queues of an engine of this width.
pub const fn queues(width: usize) -> u16 {
    1 << if width == 512 { LG_WIDE } else { LG_NARROW }
}

/// log2 of the functions whose frames are steered: as many as there are queues, so that each may have one.
const LG_WIDE_FUNCTIONS: usize = LG_WIDE;
const LG_NARROW_FUNCTIONS: usize = LG_NARROW;

/// The engine of a card with a data path of 64 bits or 512. Whoever offers a frame says its queue.
pub fn engine(width: usize) -> Assembly {
    let mut a = bare(width);
    a.expose("m_frame", "l4_fill.m_frame");
    a.expose("m_from", "l4_fill.m_from");
    a.expose("s_frame", "l4_verify.s_frame");
    a.expose("s_to", "hold.s_to");
    a
}

/// The same with steering in front: whoever offers a frame says whose it is.
pub fn steered(width: usize) -> Assembly {
    let mut a = bare(width);
    match width {
        512 => steering::<512, 64, LG_WIDE_FUNCTIONS, LG_WIDE, { LG_WIDE_FUNCTIONS + 6 }, { LG_WIDE_FUNCTIONS + 7 }, { LG_WIDE_FUNCTIONS + 10 }, { LG_WIDE_FUNCTIONS + 5 }>(&mut a),
        _ => steering::<64, 8, LG_NARROW_FUNCTIONS, LG_NARROW, { LG_NARROW_FUNCTIONS + 6 }, { LG_NARROW_FUNCTIONS + 7 }, { LG_NARROW_FUNCTIONS + 10 }, { LG_NARROW_FUNCTIONS + 5 }>(&mut a),
    }
    a
}

/// What stands between the port and `l4_verify`, and between `l4_fill` and the port. Parameters: [`steer::Steer`].
fn steering<const W: usize, const K: usize, const LF: usize, const LQ: usize, const LM: usize, const LV: usize, const LP: usize, const LY: usize>(a: &mut Assembly) {
    a.instance("steer", steer::Steer::<W, K, LF, LQ, LM, LV, LP, LY>::default).waits(steer::WAITS);
    a.instance("note", note::Note::<W, K>::default).waits(note::WAITS);
    a.expose("s_frame", "steer.s_frame");
    a.expose("s_for", "steer.s_for");
    a.join("steer.m_frame", "l4_verify.s_frame");
    a.join("steer.m_to", "hold.s_to");
    a.expose("s_steer", "steer.s_ctl");
    a.expose("m_steer", "steer.m_ctl");
    a.expose("dropped", "steer.dropped");
    a.expose("dropped_valid", "steer.dropped_valid");
    a.join("l4_fill.m_frame", "note.s_frame");
    a.join("l4_fill.m_from", "note.s_from");
    a.join("note.m_note", "steer.s_note");
    a.expose("m_frame", "note.m_frame");
    a.expose("m_from", "note.m_from");
}

/// All but the ports for frames.
fn bare(width: usize) -> Assembly {
    match width {
        512 => lines::<512, 64, 6, LG_WIDE, { LG_WIDE + LG_STOCK }, 8, LG_SENT_WIDE, { 1 << LG_SENT_WIDE }, { 8 + LG_SENT_WIDE }, 10>(),
        _ => lines::<64, 8, 3, LG_NARROW, { LG_NARROW + LG_STOCK }, 11, LG_SENT_NARROW, { 1 << LG_SENT_NARROW }, { 11 + LG_SENT_NARROW }, 13>(),
    }
}

/// `W`, `K`, `LK`: data path bits, bytes, log2 bytes. `LQ`: log2 of the queues, `LA` = `LQ` + [`LG_STOCK`]. `R`: log2 of a slot's rows; `LS`: log2 of the slots for frames on their way out, `S`: their number, `AT` = `R` + `LS`, `AH` = `R` + [`LG_HELD`].
fn lines<const W: usize, const K: usize, const LK: usize, const LQ: usize, const LA: usize, const R: usize, const LS: usize, const S: usize, const AT: usize, const AH: usize>() -> Assembly {
    let mut a = Assembly::default();
    a.input::<Clock>("clock");
    a.input::<Bit>("reset");
    a.reset_by("reset");
    a.instance("queue", queue::Queue::<LQ>::default).waits(queue::WAITS);
    a.instance("walk", walk::Walk::default).waits(walk::WAITS);
    a.instance("stock", stock::Stock::<LQ, LG_STOCK, LA>::default).waits(stock::WAITS);
    a.instance("tx", tx::Tx::<W, K, LK, LS, S, AT>::default).waits(tx::WAITS);
    a.instance("rx", rx::Rx::<LQ>::default).waits(rx::WAITS);
    a.instance("hold", hold::Hold::<W, K, LK, LG_HELD, { 1 << LG_HELD }, R, AH>::default).waits(hold::WAITS);
    // A slot's rows are those of the longest frame, and some.
    a.instance("l4_fill", l4::fill::Fill::<W, K, LK, R>::default).waits(l4::fill::WAITS);
    a.instance("l4_verify", l4::verify::Verify::<W, K, LK>::default).waits(l4::verify::WAITS);
    a.instance("mover", mover::Mover::<W, K, LK>::default).waits(mover::WAITS);
    a.instance("used", used::Used::<LQ>::default).waits(used::WAITS);
    a.instance("uses", crate::stream::MsgArb::<crate::msg::VqUse, 2>::default).waits(arb::WAITS);
    a.instance("put", put::Put::<W, K, LK>::default).waits(put::WAITS);
    a.instance_by("dma_rd", "DmaRead", |_| dma_rd::for_quotas::<W, K, LK, LG_PAYLOAD>(&QUOTAS)).waits(dma_rd::WAITS);
    a.instance_by("dma_wr", "DmaWrite", |_| dma_wr::for_number::<W, K, LK>(2)).waits(dma_wr::WAITS);

    // The available side, and what it finds.
    a.expose("s_avail", "queue.s_ctl");
    a.expose("m_avail", "queue.m_ctl");
    a.expose("s_notify", "queue.s_notify");
    a.join("queue.m_head", "walk.s_head");
    a.join("walk.m_walked", "queue.s_walked");
    a.join("walk.m_rx", "stock.s_piece");
    a.join("walk.m_tx", "tx.s_piece");
    a.join("tx.room", "queue.tx_room");
    a.join("queue.tx_promise", "tx.promise");
    a.join("queue.m_ask", "stock.s_ask");
    a.join("stock.m_room", "queue.s_room");
    a.join("stock.m_refill", "queue.s_refill");
    // Frames out, frames in.
    a.join("tx.m_frame", "l4_fill.s_frame");
    a.join("tx.m_order", "l4_fill.s_order");
    a.optional("l4_fill.too_long"); // there is no such frame
    a.join("l4_verify.m_frame", "hold.s_frame");
    a.join("l4_verify.m_verdict", "rx.s_verdict");
    a.join("hold.m_frame", "rx.s_frame");
    a.join("stock.m_bad", "rx.s_bad");
    a.join("queue.m_give_up", "rx.s_give_up");
    a.join("rx.m_take", "stock.s_take");
    a.join("stock.m_chain", "rx.s_chain");
    a.join("stock.m_piece", "rx.s_piece");
    a.join("rx.m_look", "queue.s_look");
    a.join("queue.m_looked", "rx.s_looked");
    a.join("rx.m_move", "mover.s_move");
    a.join("mover.m_cell", "hold.s_read");
    a.join("hold.m_cell", "mover.s_cell");
    a.expose("delivered", "rx.delivered");
    // The used side.
    a.join("tx.m_use", "uses.s[0]");
    a.join("rx.m_use", "uses.s[1]");
    a.join("uses.m", "used.s_use");
    a.expose("s_used", "used.s_ctl");
    a.expose("m_used", "used.m_ctl");
    a.expose("m_msix", "used.m_msix");
    // The host.
    for (n, block) in ["queue", "walk", "used"].into_iter().enumerate() {
        a.join(&format!("{block}.m_rd"), &format!("dma_rd.s_small[{n}]"));
        a.join(&format!("dma_rd.m_small[{n}]"), &format!("{block}.s_row"));
    }
    a.join("tx.m_pay", "dma_rd.s_pay");
    a.join("dma_rd.m_pay_done", "tx.s_pay_done");
    ["we", "row1", "addr", "data"].iter().for_each(|port| a.join(&format!("dma_rd.asm_{port}"), &format!("tx.asm_{port}")));
    for (n, block) in ["queue", "used"].into_iter().enumerate() {
        a.join(&format!("{block}.m_put"), &format!("put.s_put[{n}]"));
        a.join(&format!("put.m_done[{n}]"), &format!("{block}.s_done"));
    }
    a.join("mover.m_cmd", "put.s_cmd");
    a.join("mover.m_data", "put.s_data");
    a.join("put.m_moved", "rx.s_done");
    a.join("put.m_cmd", "dma_wr.s_cmd");
    a.join("put.m_data", "dma_wr.s_data");
    a.join("dma_wr.m_cmd_done", "put.s_done");
    for n in 0..2 {
        a.optional(&format!("dma_wr.s_small[{n}]"));
        a.optional(&format!("dma_wr.m_small_done[{n}]"));
    }
    ["hold", "page", "clear", "begin", "end"].iter().for_each(|signal| a.optional(&format!("dma_wr.atomic_{signal}")));
    for block in ["dma_rd", "dma_wr"] {
        ["quiesce", "quiesced", "stat"].iter().for_each(|port| a.optional(&format!("{block}.{port}")));
    }
    a.expose_all("", "dma_rd", &["ar_valid", "ar_ready", "ar_id", "ar_addr", "ar_len", "ar_user", "r_valid", "r_ready", "r_id", "r_data", "r_resp", "r_last"]);
    a.expose_all("", "dma_wr", &["aw_valid", "aw_ready", "aw_addr", "aw_len", "aw_user", "w_valid", "w_ready", "w_data", "w_strb", "w_last", "b_valid", "b_ready", "b_resp"]);
    for block in TELLERS {
        a.expose(&format!("{block}_told"), &format!("{block}.told"));
        a.expose(&format!("{block}_told_valid"), &format!("{block}.told_valid"));
    }
    a
}
