//! The requester: both halves with their tracker and timers. See README.md.

use crate::assembly::Assembly;
use crate::msg::TxDone;
use crate::rdma::timer;
use crate::roce::{req_rx, req_tx, rounds, tracker};
use crate::stream::{arb, MsgArb};

pub use ferric_model::roce::requester as model;
#[cfg(test)]
mod tests;

/// The requester by itself, as its tests and mutants know it: `tx_` and `rx_` tell the ports of the halves apart.
#[cfg(test)]
pub(crate) fn alone<const LQ: usize, const LA: usize>() -> crate::assembly::Assembled {
    use rust_hdl::prelude::*;
    let mut a = Assembly::default();
    a.input::<Clock>("clock");
    a.input::<Bit>("reset");
    a.input::<Bits<32>>("now");
    a.reset_by("reset");
    lines::<LQ, LA, 7>(&mut a);
    a.join("now", "timers.now");
    for (port, inner) in [
        ("tx_ctx", "req_tx.ctx"),
        ("tx_cmd", "req_tx.m_cmd"),
        ("tx_cqe", "req_tx.m_cqe"),
        ("rx_ctx[0]", "req_rx.ctx[0]"),
        ("rx_ctx[1]", "req_rx.ctx[1]"),
        ("rx_cmd", "req_rx.m_cmd"),
        ("rx_cqe", "req_rx.m_cqe"),
        ("s_tx_done", "req_rx.s_tx_done[1]"),
        ("s_worked", "req_reports.s[1]"),
    ] {
        a.expose(port, inner);
    }
    a.expose_all("", "req_tx", &["s_wqe", "m_op", "m_free", "m_work", "fence", "passed"]);
    a.expose_all("", "req_rx", &["s_rx", "s_error", "m_error", "m_async", "m_cell", "m_place", "s_placed", "m_again", "s_again", "barrier", "barrier_done"]);
    for n in 1..rounds::READERS {
        a.expose(&format!("look[{n}]"), &format!("rounds.look[{n}]"));
        a.expose(&format!("round[{n}]"), &format!("rounds.round[{n}]"));
    }
    a.expose("tx_stat", "req_tx.stat");
    a.expose("rx_stat", "req_rx.stat");
    a.expose("tx_stat_function", "req_tx.stat_function");
    a.expose("rx_stat_function", "req_rx.stat_function");
    a.assemble().unwrap_or_else(|faults| panic!("{faults:#?}"))
}

/// Adds the requester of `2^LQ` queue pairs to a list, and what joins its parts; `LA` is `LQ` + 8; their requests have `2^LH` buffers. Everything else about them is for the list to join.
pub fn lines<const LQ: usize, const LA: usize, const LH: usize>(a: &mut Assembly) {
    a.instance("req_tx", req_tx::RequesterTx::<LH>::default).waits(req_tx::WAITS);
    a.instance("tracker", tracker::Tracker::<LQ, LA>::default).waits(tracker::WAITS);
    a.instance("timers", timer::Timers::<LQ>::default).waits(timer::WAITS);
    a.instance("rounds", rounds::Rounds::<LQ>::default).waits(rounds::WAITS);
    a.instance("req_rx", req_rx::RequesterRx::default).waits(req_rx::WAITS);
    // Local failures, and local operations that the key unit has ended.
    a.instance("req_reports", MsgArb::<TxDone, 2>::default).top("report_arb").waits(arb::WAITS);
    a.join("req_tx.m_done", "req_reports.s[0]");
    a.join("req_reports.m", "req_rx.s_tx_done[0]");
    a.join("req_tx.m_timer", "timers.s_cmd[0]");
    a.join("req_rx.m_timer", "timers.s_cmd[1]");
    a.join("timers.m_event", "req_rx.s_timer");
    a.join("req_tx.m_track", "tracker.s_write");
    a.join("req_rx.m_track", "tracker.s_read");
    a.join("tracker.m_entry", "req_rx.s_track");
    a.join("req_rx.rewound", "rounds.rewound");
    a.join("req_rx.rewound_qpn", "rounds.rewound_qpn");
    a.join("req_tx.look", "rounds.look[0]");
    a.join("rounds.round[0]", "req_tx.round");
}
