//! Every block as a top of its own, with the data width and the table sizes of either card: what `./scripts/synth` maps and
//! the lint gate reads. The blocks are those of the cards' lists, and a few that no card holds by themselves.

use crate::assembly::Assembly;
use crate::card::{self, Card, CARDS};
use crate::emit::emit;
use crate::memory_target::{self, Target};
use crate::net::icrc::IcrcPipe;
use crate::net::l4;
use crate::prim::leaves::leaves;
use crate::rdma::atomics::Atomics;
use crate::stream::{AxisArb, AxisFifo, AxisSlice};
use crate::switch::bank::HashBank;
use crate::switch::count::Count;
use crate::switch::fdb::Fdb;
use crate::switch::key::Key;
use crate::switch::matching::Matching;
use crate::switch::tcam::Tcam;
use crate::switch::verify::Verify;
use crate::uet::ack::Ack;
use crate::uet::head;
use crate::uet::kept::Kept;
use crate::uet::messages::Messages;
use crate::uet::pdc::Pdc;
use crate::uet::receive::Receive;
use crate::uet::records::Records;
use crate::uet::sched::Sched;
use crate::uet::source::Source;
use crate::uet::spray::Spray;
use crate::uet::transmit::Transmit;
use crate::uet::waiting::Waiting;
use crate::uet::window::Window;
use crate::virtio::{self, engine};
use std::sync::OnceLock;

/// A block that can be emitted on its own.
pub struct Top {
    /// Name of the top module and of the file: the block, `_w` and the width where the two cards differ.
    pub name: &'static str,
    /// Data path bits of the card it belongs to; `None` where it is the same in both.
    pub width: Option<usize>,
    what: What,
}

/// Where the block comes from.
enum What {
    /// It is an instance of the card of this width.
    Instance(usize, String),
    /// It is the card of these engines and this width.
    Card(&'static [&'static str], usize),
    /// It is the virtio engine of this width by itself; with steering or without.
    Virtio(usize, bool),
    /// It is built by itself.
    Built { build: fn(&str) -> Result<String, crate::emit::EmitError>, leaves: fn(&str) -> Vec<String> },
}

fn virtio_engine(width: usize, steers: bool) -> crate::assembly::Assembly {
    if steers {
        engine::steered(width)
    } else {
        engine::engine(width)
    }
}

impl Top {
    /// The block's Verilog. Errors: what the emitter found.
    pub fn emit(&self) -> Result<String, String> {
        let name = self.name;
        self.with_stack(move |what| match what {
            What::Instance(width, instance) => emit(name, instance_of(*width, instance)?).map_err(|e| e.to_string()),
            What::Card(engines, width) => emit(name, Card::of(engines, *width)?.list().assemble().map_err(|f| f.join("\n"))?).map_err(|e| e.to_string()),
            What::Virtio(width, steers) => emit(name, virtio_engine(*width, *steers).assemble().map_err(|f| f.join("\n"))?).map_err(|e| e.to_string()),
            What::Built { build, .. } => build(name).map_err(|e| e.to_string()),
        })
    }

    /// The Verilog of a card's `instance`, as this card has it, under the name of `block`, the top that stands for it: a few blocks are built for what the card's engines
    /// ask of them. Errors: this is no card, it has no such instance, and what the emitter found.
    pub fn emit_instance(&self, instance: &str, block: &Top) -> Result<String, String> {
        let name = block.name;
        self.with_stack(move |what| {
            let What::Card(engines, width) = what else { return Err("no card".into()) };
            let built = Card::of(engines, *width)?.list().build(instance).ok_or_else(|| format!("no instance {instance}"))?;
            emit(name, built).map_err(|e| e.to_string())
        })
    }

    /// Names of the modules in it that are leaves of [`crate::prim`].
    pub fn leaves(&self) -> Result<Vec<String>, String> {
        let name = self.name;
        self.with_stack(move |what| match what {
            What::Instance(width, instance) => Ok(leaves(name, &instance_of(*width, instance)?)),
            What::Card(engines, width) => Ok(leaves(name, &Card::of(engines, *width)?.list().assemble().map_err(|f| f.join("\n"))?)),
            What::Virtio(width, steers) => Ok(leaves(name, &virtio_engine(*width, *steers).assemble().map_err(|f| f.join("\n"))?)),
            What::Built { leaves, .. } => Ok(leaves(name)),
        })
    }

    fn with_stack<R: Send>(&self, f: impl FnOnce(&What) -> Result<R, String> + Send) -> Result<R, String> {
        card::on_a_large_stack(|| f(&self.what)).map_err(|e| format!("{}: {e}", self.name))
    }
}

/// Engines of the `roce` card without `echo`, which has a top because limits hold for it.
const PLAIN: &[&str] = &["roce"];

/// The card with every engine that one card can have: it has every block but those of [`card::APART`].
fn all_engines(width: usize) -> Result<Assembly, String> {
    let engines: Vec<&str> = card::most().map(|e| e.name).collect();
    Card::of(&engines, width).map(|card| card.list())
}

fn instance_of(width: usize, instance: &str) -> Result<impl rust_hdl::prelude::Block, String> {
    let apart = || card::APART.iter().find_map(|name| Card::named(name, width).ok()?.list().build(instance));
    all_engines(width)?.build(instance).or_else(apart).ok_or_else(|| format!("no instance {instance}"))
}

macro_rules! built {
    ($($name:literal $width:expr, $block:expr;)*) => { [$(Top { name: $name, width: $width.into(), what: What::Built { build: |name| emit(name, $block), leaves: |name| leaves(name, &$block) } }),*] };
}

/// All tops: the cards' blocks in the order of their lists, blocks that stand inside others or in no card, the memory target (under the name that boards use), and the cards.
pub fn tops() -> &'static [Top] {
    static TOPS: OnceLock<Vec<Top>> = OnceLock::new();
    TOPS.get_or_init(|| {
        let lists: Vec<(usize, Assembly)> = card::WIDTHS.iter().filter_map(|w| Some((*w, all_engines(*w).ok()?))).collect();
        let apart: Vec<Vec<(usize, Assembly)>> = card::APART.iter().map(|name| card::WIDTHS.iter().filter_map(|w| Some((*w, Card::named(name, *w).ok()?.list()))).collect()).collect();
        let mut all: Vec<Top> = Vec::new();
        let new = |i: &crate::assembly::Instance| card::APART.contains(&i.part) && lists[0].1.instances.iter().all(|other| other.name != i.name);
        let own = apart.iter().flat_map(|lists| lists[0].1.instances.iter().enumerate().filter(|(_, i)| new(i)).map(move |(n, i)| (lists, n, i)));
        for (lists, n, instance) in lists[0].1.instances.iter().enumerate().map(|(n, i)| (&lists, n, i)).chain(own) {
            let Some(block) = &instance.top else { continue };
            let others: Vec<_> = lists.iter().map(|(w, list)| (*w, &list.instances[n])).collect();
            let same = !instance.sized && others.iter().all(|(_, other)| other.kind == instance.kind);
            for (width, _) in others {
                let name = if same { block.clone() } else { format!("{block}_w{width}") };
                if all.iter().all(|top| top.name != name) {
                    // The table is made once and lives as long as the program.
                    all.push(Top { name: name.leak(), width: (!same).then_some(width), what: What::Instance(width, instance.name.clone()) });
                }
            }
        }
        all.extend(built! {
            "atomics" None, Atomics::default();
            "icrc_w64" 64, IcrcPipe::<64, 8, 3>::default();
            "icrc_w512" 512, IcrcPipe::<512, 64, 6>::default();
            "axis_slice_w64" 64, AxisSlice::<64, 8>::default();
            "axis_slice_w512" 512, AxisSlice::<512, 64>::default();
            "axis_fifo_w64" 64, AxisFifo::<64, 8, 9>::default();
            "axis_fifo_w512" 512, AxisFifo::<512, 64, 9>::default();
            "axis_arb_w64" 64, AxisArb::<64, 8, 4>::default();
            "axis_arb_w512" 512, AxisArb::<512, 64, 4>::default();
            "flow_key" None, Key::default();
            "flow_bank_w64" 64, HashBank::<488, 61, 64, 16, 507, 6>::default();
            "flow_bank_w512" 512, HashBank::<488, 61, 64, 16, 507, 12>::default();
            "flow_tcam_w64" 64, Tcam::<2>::default();
            "flow_tcam_w512" 512, Tcam::<19>::default();
            "flow_fdb_w64" 64, Fdb::<6>::default();
            "flow_fdb_w512" 512, Fdb::<12>::default();
            "flow_verify_w64" 64, Verify::<4, 3>::default();
            "flow_verify_w512" 512, Verify::<4, 8>::default();
            "flow_count_w64" 64, Count::<6>::default();
            "flow_count_w512" 512, Count::<12>::default();
            "flow_match_w64" 64, Matching::<6, 2>::default();
            "flow_match_w512" 512, Matching::<12, 19>::default();
            "uet_window" None, Window::<10, 9, 13>::default();
            "uet_pdc" None, Pdc::<10, 11>::default();
            "uet_ack" None, Ack::<10>::default();
            "uet_records" None, Records::<4, 9, 7, 13, 10>::default();
            "uet_source" None, Source::<4, 9, 7, 13, 10>::default();
            "uet_parser_w64" 64, head::Parser::<64, 8, 4>::default();
            "uet_parser_w512" 512, head::Parser::<512, 64, 7>::default();
            "uet_builder_w64" 64, head::Builder::<64, 8, 4>::default();
            "uet_builder_w512" 512, head::Builder::<512, 64, 7>::default();
            "uet_spray" None, Spray::<10, 16>::default();
            "uet_messages" None, Messages::<10, 10>::default();
            "uet_sched" None, Sched::<10>::default();
            "uet_waiting" None, Waiting::<5>::default();
            "uet_transmit" None, Transmit::<5, 9, 8, 14, 11, 10, 7>::default();
            "uet_kept" None, Kept::<10, 11>::default();
            "uet_receive" None, Receive::<10, 9, 13, 11, 12>::default();
            "l4_fill_w64" 64, l4::fill::Fill::<64, 8, 3, 11>::default();
            "l4_fill_w512" 512, l4::fill::Fill::<512, 64, 6, 8>::default();
            "l4_verify_w64" 64, l4::verify::Verify::<64, 8, 3>::default();
            "l4_verify_w512" 512, l4::verify::Verify::<512, 64, 6>::default();
            "virtio_queue_w64" 64, virtio::queue::Queue::<3>::default();
            "virtio_queue_w512" 512, virtio::queue::Queue::<5>::default();
            "virtio_walk" None, virtio::walk::Walk::default();
            "virtio_stock_w64" 64, virtio::stock::Stock::<3, 6, 9>::default();
            "virtio_stock_w512" 512, virtio::stock::Stock::<5, 6, 11>::default();
            "virtio_tx_w64" 64, virtio::tx::Tx::<64, 8, 3, 2, 4, 13>::default();
            "virtio_tx_w512" 512, virtio::tx::Tx::<512, 64, 6, 3, 8, 11>::default();
            "virtio_rx_w64" 64, virtio::rx::Rx::<3>::default();
            "virtio_rx_w512" 512, virtio::rx::Rx::<5>::default();
            "virtio_used_w64" 64, virtio::used::Used::<3>::default();
            "virtio_used_w512" 512, virtio::used::Used::<5>::default();
            "virtio_steer_w64" 64, virtio::steer::Steer::<64, 8, 3, 3, 9, 10, 13, 8>::default();
            "virtio_steer_w512" 512, virtio::steer::Steer::<512, 64, 5, 5, 11, 12, 15, 10>::default();
            "virtio_note_w64" 64, virtio::note::Note::<64, 8>::default();
            "virtio_note_w512" 512, virtio::note::Note::<512, 64>::default();
            "virtio_put_w64" 64, virtio::put::Put::<64, 8, 3>::default();
            "virtio_put_w512" 512, virtio::put::Put::<512, 64, 6>::default();
            "ferric_target_w64" 64, Target::new(memory_target::MAC, memory_target::IP);
        });
        all.extend(card::WIDTHS.map(|width| Top { name: format!("virtio_w{width}").leak(), width: Some(width), what: What::Virtio(width, false) }));
        all.extend(card::WIDTHS.map(|width| Top { name: format!("virtio_steered_w{width}").leak(), width: Some(width), what: What::Virtio(width, true) }));
        all.extend(card::WIDTHS.map(|width| Top { name: format!("core_w{width}").leak(), width: Some(width), what: What::Card(CARDS[0].1, width) }));
        all.push(Top { name: "core_plain_w512", width: Some(512), what: What::Card(PLAIN, 512) });
        all
    })
}

/// The top called `name`.
pub fn find(name: &str) -> Option<&'static Top> {
    tops().iter().find(|t| t.name == name)
}

/// The top that stands for the card's block `instance` in a card of `width` bits.
pub fn in_core(instance: &str, width: usize) -> Option<&'static Top> {
    let lists: Vec<Assembly> =
        [all_engines(width).or_else(|_| all_engines(card::WIDTHS[0])).ok()?].into_iter().chain(card::APART.iter().filter_map(|name| Some(Card::named(name, width).ok()?.list()))).collect();
    let block = lists.iter().flat_map(|list| &list.instances).find(|i| i.name == instance).and_then(|i| i.top.as_deref()).unwrap_or(instance);
    find(block).or_else(|| find(&format!("{block}_w{width}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the core, which has a lint test of its own.
    #[test]
    fn every_block_top_emits_and_passes_the_lint_gate() {
        let mut faults = Vec::new();
        for top in tops().iter().filter(|t| !t.name.starts_with("core_")) {
            match top.emit() {
                Err(e) => faults.push(e),
                Ok(verilog) => faults.extend(crate::lint::check(top.name, &verilog).err().into_iter().flatten().map(|f| format!("{}: {f}", top.name))),
            }
        }
        assert!(faults.is_empty(), "{faults:#?}");
    }

    /// Memories and sums are leaves; registers and kernels are none.
    #[test]
    fn leaves_are_modules_of_the_text() {
        let top = find("tracker_w64").unwrap_or_else(|| panic!("no tracker"));
        let (verilog, leaves) = (top.emit().unwrap_or_default(), top.leaves().unwrap_or_default());
        assert!(!leaves.is_empty());
        for leaf in &leaves {
            let at = verilog.find(&format!("module {leaf}(")).unwrap_or_else(|| panic!("no module {leaf}"));
            let body = verilog[at..].split("endmodule").next().unwrap_or_default();
            assert!(!body.contains("q <= d;") && !body.contains(&format!("{leaf}$")), "{leaf}: {body}");
        }
        assert!(verilog.matches("endmodule").count() > leaves.len());
    }

    #[test]
    fn names_carry_the_width_and_occur_once() {
        for (n, top) in tops().iter().enumerate() {
            let suffix = top.name.rsplit_once("_w").and_then(|(_, w)| w.parse::<usize>().ok());
            assert_eq!(suffix, top.width, "{}", top.name);
            assert!(tops()[..n].iter().all(|other| other.name != top.name), "{} stands twice", top.name);
        }
        assert!(find("nobody").is_none() && find("csr_w64").is_some());
    }
}
