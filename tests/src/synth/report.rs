//! `report.json` and `report.md`.

use super::{Flow, Outcome, Mapping};
use serde_json::{json, Value};
use std::fmt::Write;

/// Levels allowed at a data path of 512 bits.
pub const LIMIT: u32 = 10;

/// Paths of a top above that limit which are shown.
const SHOWN: usize = 20;

/// The JSON report: one object per top. `width` is 0 for a block that has none.
pub fn json(outcomes: &[Outcome]) -> Value {
    outcomes.iter().map(|o| {
        let x = &o.xcup;
        json!({
            "top": o.top.name, "width": o.top.width.unwrap_or(0), "family": "xcup", "flow": flow(x),
            "lut": x.area.lut, "lutram": x.area.lutram, "ff": x.area.ff, "bram": x.area.bram, "uram": x.area.uram,
            "carry": x.area.carry, "muxf": x.area.mux,
            "levels": x.walk.levels(), "levels_chain": x.levels_chain,
            "critical_path": critical(x), "faults": x.faults, "seconds": x.seconds,
            "prim": o.prim.as_ref().map(|p| json!({
                "lut": p.leaves.lut, "lutram": p.leaves.lutram, "ff": p.leaves.ff, "share": p.part(),
                "of_lut": p.all.lut, "of_lutram": p.all.lutram, "of_ff": p.all.ff,
            })),
            "ecp5": o.ecp5.as_ref().map(|e| json!({
                "lut": e.area.lut, "lutram": e.area.lutram, "ff": e.area.ff, "bram": e.area.bram,
                "levels": e.walk.levels(), "levels_chain": e.levels_chain, "flow": flow(e), "critical_path": critical(e), "faults": e.faults, "seconds": e.seconds,
            })),
        })
    }).collect()
}

fn flow(r: &Mapping) -> &'static str {
    match r.flow {
        Flow::Flat => "flat",
        Flow::Hierarchical => "hierarchical",
    }
}

fn critical(r: &Mapping) -> Value {
    r.walk.paths.first().map_or(Value::Null, |p| json!({ "start": p.start, "cells": p.cells, "end": p.end }))
}

/// The table, and below it the paths of the tops above [`LIMIT`].
pub fn markdown(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "| top | LUT | LUTRAM | FF | RAMB36 | URAM | levels | chain levels | prim | ECP5 LUT4 / LUTRAM / FF / EBR / levels | critical path (first to last register) |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for o in outcomes {
        let (x, a) = (&o.xcup, &o.xcup.area);
        let ends = x.walk.paths.first().map_or(String::new(), |p| format!("`{}` to `{}`", p.start, p.end));
        let ecp5 = o.ecp5.as_ref().map_or("-".into(), |e| format!("{} / {} / {} / {} / {}", e.area.lut, e.area.lutram, e.area.ff, e.area.bram, e.walk.levels()));
        let prim = o.prim.as_ref().map_or("-".into(), |p| format!("{:.0} %", 100.0 * p.part()));
        let mark = if x.flow == Flow::Hierarchical { " (by blocks)" } else { "" };
        let _ = writeln!(text, "| {}{mark} | {} | {} | {} | {} | {} | {} | {} | {prim} | {ecp5} | {ends} |", o.top.name, a.lut, a.lutram, a.ff, a.bram, a.uram, x.walk.levels(), x.levels_chain);
    }
    let deep: Vec<&Outcome> = outcomes.iter().filter(|o| o.xcup.walk.levels() > LIMIT).collect();
    if !deep.is_empty() {
        let _ = write!(text, "\nPaths of more than {LIMIT} levels, the longest to each end point:\n");
    }
    for o in deep {
        let _ = writeln!(text, "\n{}:\n", o.top.name);
        for p in o.xcup.walk.paths.iter().filter(|p| p.levels > LIMIT).take(SHOWN) {
            let _ = writeln!(text, "- {}: `{}` to `{}` through {}", p.levels, p.start, p.end, p.cells.join(" "));
        }
    }
    text
}

/// Whether the limit on levels holds for a top: at 64 bits it is shown and not asked for.
pub fn limited(o: &Outcome) -> bool {
    o.top.width != Some(64)
}

/// What docs/resources.md shows between its marks. `missing`: tops without figures, with the reason.
pub fn document(outcomes: &[Outcome], missing: &[String], state: &str) -> String {
    let mut text = format!(
        "`./scripts/synth --write-docs`, {state}; {} tops.\n\n{}",
        outcomes.len(),
        markdown(outcomes)
    );
    if !missing.is_empty() {
        let _ = write!(text, "\nWithout figures:\n\n");
        for m in missing {
            let _ = writeln!(text, "- {m}");
        }
    }
    text + &memories(outcomes)
}

/// The memories of the largest core, one a line.
fn memories(outcomes: &[Outcome]) -> String {
    let Some(core) = outcomes.iter().rfind(|o| o.top.name.starts_with("core_")) else { return String::new() };
    let mut text = format!("\nMemories of `{}`; those without cells were made of registers, or nothing reads them.\n\n", core.top.name);
    text += "| memory | rows x bits | Kbit | write, read ports | mapped to |\n|---|---|---|---|---|\n";
    for m in &core.xcup.memories {
        let cells: Vec<String> = m.cells.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let lanes = if m.lanes > 1 { format!("{} x ", m.lanes) } else { String::new() };
        let _ = writeln!(text, "| `{}` | {lanes}{} x {} | {:.1} | {}, {} | {} |", m.path, m.rows, m.width, m.bits() as f64 / 1024.0, m.writes, m.reads, cells.join(", "));
    }
    text
}

/// What README.md shows: the cores.
pub fn summary(outcomes: &[Outcome], state: &str) -> String {
    let mut text = String::new();
    for o in outcomes.iter().filter(|o| o.top.name.starts_with("core_")) {
        let (x, a) = (&o.xcup, &o.xcup.area);
        let prim = o.prim.as_ref().map_or(String::new(), |p| format!(", {:.0} % of LUTs and FFs in hand-written leaves (`prim`)", 100.0 * p.part()));
        let ecp5 = o.ecp5.as_ref().map_or(String::new(), |e| format!("; on ECP5 {} LUT4, {} FF, {} EBR, {} levels", e.area.lut, e.area.ff, e.area.bram, e.walk.levels()));
        let _ = writeln!(
            text,
            "Whole core, W = {}, on UltraScale+: {} LUT and {} as memory, {} FF, {} RAMB36, {} URAM, {} logic levels between registers{prim}{ecp5}.  ",
            o.top.width.unwrap_or(0), a.lut, a.lutram, a.ff, a.bram, a.uram, x.walk.levels()
        );
    }
    let _ = write!(text, "256 QPs, 256 CQs and 1024 memory regions at W = 64, 1024, 1024 and 4096 at W = 512, 32 EQs; `./scripts/synth` (yosys 0.70, not placed or routed), {state}. By block: [docs/resources.md](docs/resources.md).");
    text
}
