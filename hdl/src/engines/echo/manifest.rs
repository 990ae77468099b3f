//! The echo engine's manifest and lines.

use super::{Echo, STATS, WAITS};
use crate::assembly::Assembly;
use crate::engines::{frame, Check, Engine};
use crate::host::admin::program::engines as program;
use crate::with_sizes;
use ferric_abi::csr::{self, space};

/// The manifest.
pub const ECHO: Engine = Engine {
    name: "echo",
    what: "Answers ARP, IPv6 neighbour discovery and pings for the addresses of the card's functions, and finds neighbours for them.",
    needs: &[],
    capabilities: 1 << csr::FEATURE_ADDRESSES,
    receives: "ARP, ICMP and ICMPv6 for an address of its table, without IP options, fragments or extension headers.",
    check: Check::None,
    doorbells: &[],
    commands: program::ECHO,
    reset: Some(program::RESET_ECHO),
    lines: |a, sizes| with_sizes!(*sizes, lines::<W, K, LB, LF, LT>(a)),
};

/// `W`, `K`: data path bits and bytes, `LB` = log2(`K`) + 1. `LF`: log2 functions, `LT`: log2 of all their addresses.
fn lines<const W: usize, const K: usize, const LB: usize, const LF: usize, const LT: usize>(a: &mut Assembly) {
    a.instance("echo", Echo::<W, K, LB, LF, LT>::default).waits(WAITS);
    a.join("now_q.q", "echo.now");
    a.link("frames", frame::ECHO, "echo.s_desc", "echo.m_desc");
    a.client("frames in", &["echo.m_cell", "echo.s_cell"]);
    a.client("frames out", &["echo.m_slot", "echo.s_slot", "echo.m_inline", "echo.m_seal"]);
    a.optional("echo.networks");
    a.table(space::ADDRESS, "echo");
    a.count("echo", "echo.stat", STATS);
}
