//! The manifest of pause frames, and their lines.

use super::{Pause, STATS, WAITS};
use crate::assembly::Assembly;
use crate::engines::wire::{self, OFF_THE_WIRE, TO_THE_WIRE};
use crate::engines::{Check, Engine};
use crate::host::admin::program::engines as program;
use crate::with_sizes;
use ferric_abi::csr::{self, space};

/// The manifest.
pub const PAUSE: Engine = Engine {
    name: "pause",
    what: "Sends pause frames when the receive buffer fills and obeys those of others (IEEE 802.3 annex 31B, 802.1Q clause 36), once it is told to.",
    needs: &[],
    capabilities: 1 << csr::FEATURE_PAUSE,
    receives: "",
    check: Check::None,
    doorbells: &[],
    commands: program::PAUSE,
    reset: Some(program::RESET_PAUSE),
    lines: |a, sizes| with_sizes!(*sizes, lines::<W, K>(a)),
};

/// `W`, `K`: data path bits and bytes.
fn lines<const W: usize, const K: usize>(a: &mut Assembly) {
    a.instance("pause", Pause::<W, K>::default).waits(WAITS);
    a.join("now_q.q", "pause.now");
    a.join("cells.free_count", "pause.free_cells");
    a.join("pause.hold", "egress.hold");
    a.join("pause.shallow", "egress.shallow");
    a.link_all(OFF_THE_WIRE, wire::LINK_IN, &["pause.s", "pause.s_err"], &["pause.m", "pause.m_err"]);
    a.link(TO_THE_WIRE, wire::LINK_OUT, "pause.to_s", "pause.to_m");
    a.table(space::PAUSE, "pause");
    a.count("pause", "pause.stat", STATS);
}
