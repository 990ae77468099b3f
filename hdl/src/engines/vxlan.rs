//! The manifest of the tunnels' end, and its lines.

use super::roce::{OWNERS, RAW_QUEUE, REQUESTS};
use super::wire::{self, OFF_THE_WIRE, TO_THE_WIRE};
use super::{Check, Engine};
use crate::assembly::Assembly;
use crate::host::admin::program::engines as program;
use crate::stream::{arb, MsgArb};
use crate::switch::{entry, outer::Outer, queues, queues::RawQueues, wrap, wrap::Wrap};
use crate::with_sizes;
use ferric_abi::csr::{self, space};
use rust_hdl::prelude::Bits;

/// The manifest.
pub const VXLAN: Engine = Engine {
    name: "vxlan",
    what: "The end of VXLAN tunnels (RFC 7348), one of each function that is told to have one: what the function sends gets the outer header, what comes through the tunnel loses it and is for that function only.",
    needs: &[],
    capabilities: 1 << csr::FEATURE_TUNNEL,
    receives: "",
    check: Check::None,
    doorbells: &[],
    commands: program::TUNNEL,
    reset: Some(program::RESET_TUNNEL),
    lines: |a, sizes| with_sizes!(*sizes, lines::<W, K, LK, NF, LF>(a)),
};

/// The chain of what goes with every beat on `frames off the wire` behind this engine: whose network the frame is of.
pub(super) const NETWORKS: &str = "networks of frames off the wire";

/// The chains of what is said of frames to the wire ahead of them: that one begins, and whose it is.
pub(super) const BEGINS: &str = "beginnings of frames to the wire";
pub(super) const SENDERS: &str = "senders of frames to the wire";

/// Who keeps the functions' networks apart, in the cards that have it.
const APART: [&str; 4] = ["stations", "peer", "mcast", "echo"];

/// `W`, `K`, `LK`: data path bits, bytes, log2 bytes. `NF`, `LF`: functions, and log2 of them.
fn lines<const W: usize, const K: usize, const LK: usize, const NF: usize, const LF: usize>(a: &mut Assembly) {
    a.instance("tunnel", entry::Entry::<NF>::default).waits(entry::WAITS);
    a.instance("outer", Outer::<W, K, LK, NF>::default).waits(&[("s", &[])]);
    a.instance("wrap", Wrap::<W, K, LK, NF>::default).waits(wrap::WAITS);
    a.join_each(NF, "tunnel.ends[*]", "outer.ctx[*]");
    a.join_each(NF, "tunnel.ctx[*]", "wrap.ctx[*]");
    a.join("outer.stat", "tunnel.stripped");
    a.join("wrap.stat", "tunnel.wrapped");
    a.join("front.foreign", "tunnel.foreign");
    ["tunnel.departed", "tunnel.arrived"].iter().for_each(|port| a.optional(port));
    a.chain(NETWORKS, "outer.network", "front.network");
    a.chain(BEGINS, "egress.begins", "wrap.begins");
    a.chain(SENDERS, "egress.begins_function", "wrap.begins_function");
    // What came through a tunnel to the address of one function is for that one.
    a.join("stations.owner", "front.owner");
    a.join("stations.owned", "front.owned");
    for block in APART {
        if a.instances.iter().any(|i| i.name == block) {
            a.join("tunnel.networks", &format!("{block}.networks"));
        }
    }
    if a.instances.iter().any(|i| i.name == "resp") {
        a.instance("raw_queues", RawQueues::<LF>::default).waits(queues::WAITS);
        a.instance("retains", MsgArb::<Bits<9>, 2>::default).waits(arb::WAITS);
        a.join("tunnel.networks", "raw_queues.networks");
        a.join("raw_queues.m_retain", "retains.s[1]");
        a.link(OWNERS, 10, "retains.s[0]", "retains.m");
        a.link(REQUESTS, 10, "raw_queues.s", "raw_queues.m");
        a.link(RAW_QUEUE, 10, "raw_queues.port", "raw_queues.raw_qpn");
        a.table(space::RAW, "raw_queues");
    }
    a.link_all(OFF_THE_WIRE, wire::SWITCH, &["outer.s", "outer.s_err"], &["outer.m", "outer.m_err"]);
    a.link(TO_THE_WIRE, wire::SWITCH, "wrap.s", "wrap.m");
    a.table(space::TUNNEL, "tunnel");
}
