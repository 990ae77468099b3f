//! The manifest of the flow tables on the receive side, and its lines.

use super::vxlan::{BEGINS, NETWORKS, SENDERS};
use super::wire::{self, OFF_THE_WIRE, TO_THE_WIRE};
use super::{Check, Engine};
use crate::assembly::Assembly;
use crate::host::admin::program::engines as program;
use crate::switch::flows::Flows;
use crate::switch::guard::{self, Guard};
use crate::switch::program::{Program, WAITS};
use crate::with_sizes;
use ferric_abi::csr::{self, space};

/// The manifest.
pub const FLOWS: Engine = Engine {
    name: "flows",
    what: "Flow tables: exact entries, wildcard rules and stations, which function 0 writes, say which function a received frame is for, or that it is dropped or for software, and, if function 0 wants that, whether what a function sends leaves by the wire. What functions send is verified: by MAC and IP address, in ARP and neighbour discovery.",
    needs: &["vxlan", "local"],
    capabilities: 1 << csr::FEATURE_FLOWS,
    receives: "",
    check: Check::None,
    doorbells: &[],
    commands: program::FLOWS,
    reset: Some(program::RESET_FLOWS),
    lines: |a, sizes| with_sizes!(*sizes, lines::<W, K, NF, LY, LZ, LG, GY, SY>(a)),
};

/// `W`, `K`: data path bits and bytes. `NF`: functions. `LY`: log2 of the lines of a way of the exact table, and of the actions; `SY` = `LY` + 6. `LZ`: log2 of the lines of a way of the table of addresses that functions send from. `LG`: log2 of the counters of functions, 8 of each. `GY`: groups of wildcard rules.
fn lines<const W: usize, const K: usize, const NF: usize, const LY: usize, const LZ: usize, const LG: usize, const GY: usize, const SY: usize>(a: &mut Assembly) {
    a.instance("flows", Flows::<W, K, NF, LY, GY>::default).sized().waits(&[("s", &[]), ("s_ask", &[]), ("s_use", &[])]);
    a.instance("flow_program", Program::<LY, LZ, LG, GY, SY>::default).sized().waits(WAITS);
    a.instance("guard", Guard::<W, K, NF, LZ, LG>::default).waits(guard::WAITS);
    a.join("flow_program.port", "flows.port");
    a.join("flow_program.write", "flows.write");
    a.join("flow_program.command", "flows.command");
    a.join("flows.refused", "flow_program.refused");
    a.join("flow_program.forget", "flows.forget");
    a.join("flows.busy", "flow_program.reading");
    a.join("flows.answer", "flow_program.answer");
    a.join("flows.now", "flow_program.now");
    a.join("flows.stat", "flow_program.stat");
    a.link_all(OFF_THE_WIRE, wire::FLOWS, &["flows.s", "flows.s_err"], &["flows.m", "flows.m_err"]);
    a.join("tunnel.networks", "flows.networks");
    a.join("arrive.m_origin", "flows.s_origin");
    a.join("flow_program.egress", "depart.egress");
    a.join("depart.m_ask", "flows.s_ask");
    a.join("depart.m_use", "flows.s_use");
    a.join("flows.told", "depart.told");
    a.join("flows.told_valid", "depart.told_valid");
    a.join("flows.told", "flow_program.outcome");
    a.join("flows.told_valid", "flow_program.outcome_valid");
    a.link(NETWORKS, wire::FLOWS, "flows.s_network", "flows.m_network");
    a.join("flows.m_note", "front.note");
    a.join_each(NF, "tunnel.ctx[*]", "guard.ctx[*]");
    ["write", "command", "close", "closed", "forget"].iter().for_each(|port| a.join(&format!("flow_program.{port}"), &format!("guard.{port}")));
    a.join("guard.refused", "flow_program.refused_out");
    a.join("guard.reading", "flow_program.reading_out");
    a.join("guard.answer", "flow_program.answer_out");
    a.link(BEGINS, wire::GUARD, "guard.begins", "guard.m_begins");
    a.link(SENDERS, wire::GUARD, "guard.begins_function", "guard.m_function");
    a.link(TO_THE_WIRE, wire::GUARD, "guard.s", "guard.m");
    a.join("flow_program.asked", "guard.asked");
    a.join("guard.count", "flow_program.sent");
    a.join_each(NF, "guard.each[*]", "stations.senders[*]");
    a.table(space::FLOW, "flow_program");
}
