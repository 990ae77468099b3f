//! The manifest of virtio network functions, and its lines: the engine that served functions have, too, between the card's buses, its buffer of received frames and its port.

use super::bus::{DOORBELLS, INTERRUPTS, READS, WRITES};
use super::wire::{self, TO_THE_WIRE};
use super::{frame, Check, Engine};
use crate::assembly::Assembly;
use crate::host::admin::program::{engines as program, VQ_AVAIL, VQ_BELL, VQ_INTAKE, VQ_STEER, VQ_USED};
use crate::host::dma_rd::shares;
use crate::host::masters;
use crate::msg::MsixReq;
use crate::stream::{arb, AxisArb, MsgArb};
use crate::virtio::bell::{self, Bell};
use crate::virtio::engine::{self, TELLERS};
use crate::virtio::intake::{self, Intake};
use crate::virtio::tally::{self, Tally};
use crate::with_sizes;
use ferric_abi::csr;
use std::collections::BTreeMap;

/// The manifest.
pub const VIRTIO: Engine = Engine {
    name: "virtio",
    what: "Rings of virtio network functions, split and packed: frames from transmit queues to the port, frames for a function's MAC address, for groups, or all, into its receive queues, by filter and steering. Lines and tables are written by the physical function. Its DMA is its own.",
    needs: &[],
    capabilities: 1 << csr::FEATURE_VIRTIO,
    receives: "Every frame that the card takes and no engine in front of it, for functions that are live (SET_VQ_FUNCTION): to one of their MAC addresses, to groups, or all.",
    check: Check::None,
    doorbells: &[(csr::DB_VQ, "a queue's notification")],
    commands: program::VIRTIO,
    reset: Some(program::RESET_VIRTIO),
    lines: |a, sizes| with_sizes!(*sizes, lines::<W, K, NF, LF, ND>(a)),
};

/// The place on the buses to the host.
const BUSES: u32 = 10;
/// In front of the names of the engine's blocks.
const INSIDE: &str = "virtio_";

/// `W`, `K`: data path bits and bytes. `NF`, `LF`: functions, and log2 of them; `ND`: their MAC addresses.
fn lines<const W: usize, const K: usize, const NF: usize, const LF: usize, const ND: usize>(a: &mut Assembly) {
    let ports = a.absorb(INSIDE, engine::steered(W));
    let at = |port: &str| ports.get(port).cloned().unwrap_or_default();
    if W == 64 {
        a.instance("virtio_bell", Bell::<W, K, { engine::LG_NARROW }>::default).waits(bell::WAITS);
        a.instance("virtio_intake", Intake::<W, K, 7, NF, LF, ND>::default).waits(intake::WAITS);
    } else {
        a.instance("virtio_bell", Bell::<W, K, { engine::LG_WIDE }>::default).waits(bell::WAITS);
        a.instance("virtio_intake", Intake::<W, K, 4, NF, LF, ND>::default).waits(intake::WAITS);
    }
    a.instance("virtio_tally", Tally::default).waits(tally::WAITS);
    buses::<W, K>(a, &ports);

    // Notifications and tables.
    DOORBELLS.iter().for_each(|line| line.between(a, BUSES, "virtio_bell", "s_", "m_"));
    a.join("virtio_bell.m_notify", &at("s_notify"));
    a.table(VQ_BELL, "virtio_bell");
    a.table(VQ_INTAKE, "virtio_intake");
    for (name, block) in [(VQ_AVAIL, "avail"), (VQ_USED, "used"), (VQ_STEER, "steer")] {
        let instance = at(&format!("s_{block}")).split('.').next().unwrap_or_default().to_string();
        a.table(name, &instance);
    }
    // Frames.
    a.join_each(ND, "stations.macs[*]", "virtio_intake.macs[*]");
    a.link("frames", frame::VIRTIO, "virtio_intake.s_desc", "virtio_intake.m_desc");
    a.client("frames in", &["virtio_intake.m_cell", "virtio_intake.s_cell"]);
    a.join("virtio_intake.m_frame", &at("s_frame"));
    a.join("virtio_intake.m_for", &at("s_for"));
    a.instance("virtio_outlet", AxisArb::<W, K, 2>::default).waits(arb::WAITS);
    a.link(TO_THE_WIRE, wire::VIRTIO_OUT, "virtio_outlet.s[0]", "virtio_outlet.m");
    a.join(&at("m_frame"), "virtio_outlet.s[1]");
    a.join(&at("m_from"), "virtio_tally.s_from");
    // What becomes of them.
    for (n, teller) in TELLERS.iter().enumerate() {
        a.join(&at(&format!("{teller}_told")), &format!("virtio_tally.told[{n}]"));
        a.join(&at(&format!("{teller}_told_valid")), &format!("virtio_tally.told_valid[{n}]"));
    }
    ["dropped", "dropped_valid", "delivered"].iter().for_each(|port| a.join(&at(port), &format!("virtio_tally.{port}")));
    a.count("virtio", "virtio_intake.stat", intake::STATS);
    a.count("virtio", "virtio_tally.stat", tally::STATS);
    a.count("virtio", "virtio_bell.stat", bell::STATS);
}

/// The engine's DMA beside the card's, and its interrupts.
fn buses<const W: usize, const K: usize>(a: &mut Assembly, ports: &BTreeMap<String, String>) {
    let at = |port: &str| ports.get(port).cloned().unwrap_or_default();
    let requests = if W == 64 { super::sizes::w64::LH } else { super::sizes::w512::LH };
    a.instance_by("masters_rd", "Reads", move |list| masters::reads_for::<W, K>(shares::id_bits(list.quotas("small reads"), requests))).sized().waits(masters::READ_WAITS);
    a.instance("masters_wr", masters::Writes::<W, K>::default).waits(masters::WRITE_WAITS);
    for (lines, instance) in [(READS, "masters_rd"), (WRITES, "masters_wr")] {
        for line in lines {
            line.between(a, BUSES, instance, "", "a_");
            let (own, theirs) = (at(line.name), format!("{instance}.b_{}", line.name));
            if line.comes {
                a.join(&theirs, &own);
            } else {
                a.join(&own, &theirs);
            }
        }
    }
    a.instance("virtio_msix", MsgArb::<MsixReq, 2>::default).waits(arb::WAITS);
    a.link(INTERRUPTS, BUSES, "virtio_msix.s[0]", "virtio_msix.m");
    a.join(&at("m_msix"), "virtio_msix.s[1]");
}
