//! `report.json`, `report.md`, and what the documents show of the table.

use super::memories::Memory;
use super::table::{Placed, Row, Table};
use super::{Flow, Mapping, Outcome};
use serde_json::{json, Value};
use std::fmt::Write;

/// Levels allowed at a data path of 512 bits.
pub const LIMIT: u32 = 10;

/// Paths of a top above that limit which are shown.
const SHOWN: usize = 20;

/// The JSON report: one object per top. `width` is 0 for a block that has none.
pub fn json(outcomes: &[Outcome]) -> Value {
    outcomes
        .iter()
        .map(|o| {
            let m = &o.mapping;
            json!({
                "top": o.subject.name, "width": o.subject.width().unwrap_or(0), "family": o.subject.family.name(), "flow": flow(m),
                "lut": m.area.lut, "lutram": m.area.lutram, "ff": m.area.ff, "bram": m.area.bram, "uram": m.area.uram, "dsp": m.area.dsp,
                "carry": m.area.carry, "muxf": m.area.mux,
                "levels": m.walk.levels(), "levels_chain": m.levels_chain,
                "critical_path": critical(m), "faults": m.faults, "seconds": m.seconds,
                "prim": o.prim.as_ref().map(|p| json!({
                    "lut": p.leaves.lut, "lutram": p.leaves.lutram, "ff": p.leaves.ff, "share": p.part(),
                    "of_lut": p.all.lut, "of_lutram": p.all.lutram, "of_ff": p.all.ff,
                })),
            })
        })
        .collect()
}

fn flow(m: &Mapping) -> &'static str {
    match m.flow {
        Flow::Flat => "flat",
        Flow::Hierarchical => "hierarchical",
    }
}

fn critical(m: &Mapping) -> Value {
    m.walk.paths.first().map_or(Value::Null, |p| json!({ "start": p.start, "cells": p.cells, "end": p.end }))
}

/// A table of rows.
pub fn markdown<'a>(rows: impl Iterator<Item = &'a Row>) -> String {
    let mut text = String::from(
        "| top | LUT | LUTRAM | FF | RAM | URAM | DSP | levels | chain levels | prim | gateware of | critical path (first to last register) |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for r in rows {
        let prim = r.prim.map_or("-".into(), |p| format!("{:.0} %", 100.0 * p));
        let mark = if r.joined { " (by blocks)" } else { "" };
        let ends = if r.from.is_empty() { String::new() } else { format!("`{}` to `{}`", r.from, r.to) };
        let _ = writeln!(text, "| {}{mark} | {} | {} | {} | {} | {} | {} | {} | {} | {prim} | {} | {ends} |", r.top, r.lut, r.lutram, r.ff, r.bram, r.uram, r.dsp, r.levels, r.chain, r.commit);
    }
    text
}

/// The paths of the tops above [`LIMIT`].
pub fn deep(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for o in outcomes.iter().filter(|o| o.mapping.walk.levels() > LIMIT) {
        let _ = writeln!(text, "\n{}, paths of more than {LIMIT} levels, the longest to each end point:\n", o.subject.label());
        for p in o.mapping.walk.paths.iter().filter(|p| p.levels > LIMIT).take(SHOWN) {
            let _ = writeln!(text, "- {}: `{}` to `{}` through {}", p.levels, p.start, p.end, p.cells.join(" "));
        }
    }
    text
}

/// The block that a register, memory or port of a joined netlist stands in.
fn block(name: &str) -> &str {
    name.split_once('.').map_or(name, |(block, _)| block)
}

/// The paths of at least `levels` levels, the longest from each block to each block.
pub fn between_blocks(outcomes: &[Outcome], levels: u32) -> String {
    let mut text = String::new();
    for o in outcomes {
        let _ = writeln!(text, "\n{}, paths of {levels} levels or more, the longest from each block to each block:\n", o.subject.label());
        let mut seen: Vec<(&str, &str)> = Vec::new();
        for p in o.mapping.walk.paths.iter().take_while(|p| p.levels >= levels) {
            let ends = (block(&p.start), block(&p.end));
            if !seen.contains(&ends) {
                seen.push(ends);
                let _ = writeln!(text, "- {}: `{}` to `{}` through {}", p.levels, p.start, p.end, p.cells.join(" "));
            }
        }
    }
    text
}

/// Whether the limit on levels holds for a top: at 64 bits and on ECP5 they are shown and not asked for.
pub fn limited(outcome: &Outcome) -> bool {
    outcome.subject.width() != Some(64) && outcome.subject.family.name() == "xcup"
}

/// What docs/resources.md shows of the table.
pub fn document(table: &Table) -> String {
    let rows = &table.rows;
    let of = |family: &'static str| rows.iter().filter(move |r| r.family == family);
    let mut text = format!("UltraScale+ (RAM: RAMB36):\n\n{}\nECP5 (LUT: LUT4; RAM: blocks of 18 Kbit):\n\n{}", markdown(of("xcup")), markdown(of("ecp5")));
    for (row, placed) in rows.iter().filter_map(|r| Some((r, r.placed.as_ref()?))) {
        let _ = write!(text, "\n{}", placement(row, placed));
    }
    if !table.unmeasured.is_empty() {
        let names: Vec<String> = table.unmeasured.iter().map(|u| format!("`{}` on {} ({})", u.top, u.family, u.unmeasured)).collect();
        let _ = writeln!(text, "\nWithout figures, so that nothing holds them: {}.", names.join(", "));
    }
    text
}

/// Placed and routed, in a sentence or two.
pub fn placement(row: &Row, placed: &Placed) -> String {
    let clocks: Vec<String> = placed.clocks.iter().map(|(c, [mhz, wanted])| format!("`{c}` {mhz:.1} MHz ({wanted:.1} asked for)")).collect();
    let used: Vec<String> = placed.used.iter().map(|(cell, [used, all])| format!("{used} of {all} {cell}")).collect();
    let stale = if placed.hash == row.hash { "" } else { " These are figures of other gateware than the row's." };
    format!("{}, placed and routed: {}; {}.{stale}\n", row.top, clocks.join(", "), used.join(", "))
}

/// The memories of a core, one a line.
pub fn memories(core: &str, memories: &[Memory]) -> String {
    let mut text = format!("Memories of `{core}`; those without cells were made of registers, or nothing reads them.\n\n");
    text += "| memory | rows x bits | Kbit | write, read ports | mapped to |\n|---|---|---|---|---|\n";
    for m in memories {
        let cells: Vec<String> = m.cells.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let lanes = if m.lanes > 1 { format!("{} x ", m.lanes) } else { String::new() };
        let _ = writeln!(text, "| `{}` | {lanes}{} x {} | {:.1} | {}, {} | {} |", m.path, m.rows, m.width, m.bits() as f64 / 1024.0, m.writes, m.reads, cells.join(", "));
    }
    text
}

/// What docs/resources.md shows first: the cores.
pub fn summary(rows: &[Row]) -> String {
    let mut text = String::new();
    for r in rows.iter().filter(|r| r.top.starts_with("core_")) {
        let prim = r.prim.map_or(String::new(), |p| format!(", {:.0} % of LUTs and FFs in hand-written leaves (`prim`)", 100.0 * p));
        let _ = writeln!(
            text,
            "Whole core{}, W = {}, on UltraScale+: {} LUT and {} as memory, {} FF, {} RAMB36, {} URAM, {} logic levels between registers{prim}; gateware of {}.  ",
            if r.top.starts_with("core_plain") { " without `echo`" } else { "" },
            r.top.rsplit_once("_w").map_or("", |(_, width)| width),
            r.lut,
            r.lutram,
            r.ff,
            r.bram,
            r.uram,
            r.levels,
            r.commit
        );
    }
    text += "256 QPs, 256 CQs and 1024 memory regions at W = 64, 1024, 1024 and 4096 at W = 512, 32 EQs; `./scripts/synth` (yosys 0.70, not placed or routed).";
    text
}
