//! The manifest of the way from one function of the card to another, and its lines.

use super::vxlan::{BEGINS, NETWORKS, SENDERS};
use super::wire::{self, OFF_THE_WIRE, TO_THE_WIRE};
use super::{Check, Engine};
use crate::assembly::Assembly;
use crate::switch::local::{Arrive, Depart, ARRIVE_WAITS, DEPART_WAITS};
use crate::with_sizes;

/// The manifest.
pub const LOCAL: Engine = Engine {
    name: "local",
    what: "Frames that a function sends to a MAC address of a function of the same card, of the same network, do not leave it: they come in as if off the wire. Frames to groups do both.",
    needs: &["vxlan"],
    capabilities: 0,
    receives: "",
    check: Check::None,
    doorbells: &[],
    commands: &[],
    reset: None,
    lines: |a, sizes| with_sizes!(*sizes, lines::<W, K, ND, LD>(a)),
};

/// `W`, `K`: data path bits and bytes. `ND`, `LD`: MAC addresses of all functions, and log2 of that.
fn lines<const W: usize, const K: usize, const ND: usize, const LD: usize>(a: &mut Assembly) {
    a.instance("depart", Depart::<W, K, ND, LD>::default).waits(DEPART_WAITS);
    a.instance("arrive", Arrive::<W, K>::default).waits(ARRIVE_WAITS);
    a.join_each(ND, "stations.macs[*]", "depart.macs[*]");
    a.join("tunnel.networks", "depart.networks");
    a.link(BEGINS, wire::LOCAL_OUT, "depart.begins", "depart.m_begins");
    a.link(SENDERS, wire::LOCAL_OUT, "depart.begins_function", "depart.m_function");
    a.link(TO_THE_WIRE, wire::LOCAL_OUT, "depart.s", "depart.m");
    a.join("depart.m_local", "arrive.s_local");
    a.join("depart.network", "arrive.network");
    a.join("depart.origin", "arrive.origin");
    // Without flow tables nobody is asked.
    ["egress", "m_ask", "told", "told_valid", "m_use"].iter().for_each(|port| a.optional(&format!("depart.{port}")));
    a.join("arrive.room", "depart.room");
    a.link_all(OFF_THE_WIRE, wire::LOCAL_IN, &["arrive.s", "arrive.s_err"], &["arrive.m", "arrive.m_err"]);
    a.link(NETWORKS, wire::LOCAL_IN, "arrive.s_network", "arrive.m_network");
    a.join("depart.stat", "tunnel.departed");
    a.join("arrive.stat", "tunnel.arrived");
}
