//! The manifest of the tunnel's end, and its lines.

use super::wire::{self, OFF_THE_WIRE, TO_THE_WIRE};
use super::{Check, Engine};
use crate::assembly::Assembly;
use crate::host::admin::program::engines as program;
use crate::switch::{entry, outer::Outer, wrap, wrap::Wrap};
use crate::with_sizes;
use ferric_abi::csr::{self, space};

/// The manifest.
pub const VXLAN: Engine = Engine {
    name: "vxlan",
    what: "The end of one VXLAN tunnel (RFC 7348) that all frames of the card go through, once it is told to: what leaves gets the outer header, what comes through the tunnel loses it.",
    needs: &[],
    capabilities: 1 << csr::FEATURE_TUNNEL,
    receives: "",
    check: Check::None,
    doorbells: &[],
    commands: program::TUNNEL,
    reset: Some(program::RESET_TUNNEL),
    lines: |a, sizes| with_sizes!(*sizes, lines::<W, K, LK>(a)),
};

/// `W`, `K`, `LK`: data path bits, bytes, log2 bytes.
fn lines<const W: usize, const K: usize, const LK: usize>(a: &mut Assembly) {
    a.instance("tunnel", entry::Entry::default).waits(entry::WAITS);
    a.instance("outer", Outer::<W, K, LK>::default).waits(&[("s", &[])]);
    a.instance("wrap", Wrap::<W, K, LK>::default).waits(wrap::WAITS);
    a.join("tunnel.ctx", "outer.ctx");
    a.join("tunnel.ctx", "wrap.ctx");
    a.join("outer.stat", "tunnel.stripped");
    a.join("wrap.stat", "tunnel.wrapped");
    a.link_all(OFF_THE_WIRE, wire::SWITCH, &["outer.s", "outer.s_err"], &["outer.m", "outer.m_err"]);
    a.link(TO_THE_WIRE, wire::SWITCH, "wrap.s", "wrap.m");
    a.table(space::TUNNEL, "tunnel");
}
