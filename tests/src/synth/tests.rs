use super::cells::{area, Area};
use super::netlist::{read, Module};
use super::table::Table;
use super::walk::{walk, Count};
use super::yosys::Family;
use super::{docs, report, share, subject};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn cell(name: &str, kind: &str, pins: &[(&str, bool, &[u32])]) -> String {
    let directions: Vec<String> = pins.iter().map(|(p, out, _)| format!("\"{p}\": \"{}\"", if *out { "output" } else { "input" })).collect();
    let connections: Vec<String> = pins.iter().map(|(p, _, bits)| format!("\"{p}\": {bits:?}")).collect();
    format!("\"{name}\": {{\"type\": \"{kind}\", \"port_directions\": {{{}}}, \"connections\": {{{}}}}}", directions.join(","), connections.join(","))
}

fn lut(name: &str, from: &[u32], to: u32) -> String {
    let pins: Vec<(String, u32)> = from.iter().enumerate().map(|(i, n)| (format!("I{i}"), *n)).collect();
    let mut all: Vec<(&str, bool, &[u32])> = pins.iter().map(|(p, n)| (p.as_str(), false, std::slice::from_ref(n))).collect();
    let to = [to];
    all.push(("O", true, &to));
    cell(name, &format!("LUT{}", from.len()), &all)
}

fn flop(name: &str, d: u32, q: u32) -> String {
    cell(name, "FDRE", &[("C", false, &[1]), ("D", false, &[d]), ("Q", true, &[q])])
}

/// Ports: clock 1, input 2, output 20 where wanted. Nets 10 = `a`, 11 = `b`.
fn module(cells: &[String], output: u32) -> Module {
    let text = format!(
        "{{\"modules\": {{\"t\": {{\"ports\": {{\"clock\": {{\"direction\": \"input\", \"bits\": [1]}}, \"in\": {{\"direction\": \"input\", \"bits\": [2]}}, \"out\": {{\"direction\": \"output\", \"bits\": [{output}]}}}},
         \"cells\": {{{}}}, \"netnames\": {{\"a\": {{\"bits\": [10]}}, \"b\": {{\"bits\": [11, \"x\"]}}, \"$hidden\": {{\"hide_name\": 1, \"bits\": [30]}}}}}}}}}}",
        cells.join(",")
    );
    read(&text, "t").unwrap_or_else(|e| panic!("{e}"))
}

/// in -> FF a -> 3 LUTs -> FF b -> out; the side input reaches b through one LUT only.
#[test]
fn known_path_between_registers() {
    let cells = [flop("fa", 2, 10), lut("l1", &[10], 30), lut("l2", &[30, 10], 31), lut("l3", &[2, 31], 32), flop("fb", 32, 11)];
    let found = walk(&module(&cells, 11), Count::Cells);
    assert_eq!(found.faults, Vec::<String>::new());
    let path = &found.paths[0];
    assert_eq!((path.levels, path.start.as_str(), path.end.as_str()), (3, "a", "b[0].D"));
    assert_eq!(path.cells, ["LUT1", "LUT2", "LUT2"]);
    // A register cuts: the way into `a` and the way out of `b` have no level.
    assert!(found.paths.iter().filter(|p| p.end != "b[0].D").all(|p| p.levels == 0));
}

/// Two chained carry cells behind a LUT, then a MUXF7: 4 cells, or a LUT and a chain.
#[test]
fn carry_and_hard_multiplexers() {
    let cells = [
        flop("fa", 2, 10),
        lut("l", &[10], 30),
        cell("c1", "CARRY8", &[("S", false, &[30, 2]), ("DI", false, &[10, 2]), ("CO", true, &[33, 31])]),
        cell("c2", "CARRY8", &[("CI", false, &[31]), ("S", false, &[2]), ("O", true, &[32])]),
        cell("m", "MUXF7", &[("I0", false, &[32]), ("I1", false, &[2]), ("S", false, &[2]), ("O", true, &[34])]),
        flop("fb", 34, 11),
    ];
    let m = module(&cells, 11);
    assert_eq!(walk(&m, Count::Cells).levels(), 4);
    assert_eq!(walk(&m, Count::Chains).levels(), 2);
    let wanted = Area { lut: 1, ff: 2, carry: 2, mux: 1, ..Area::default() };
    assert_eq!(area(m.cells.values().map(|c| c.kind.as_str())), Ok(wanted));
}

/// Bit 1 of a carry cell does not reach its bit 0.
#[test]
fn carry_runs_upwards_only() {
    let carry = |s: &[u32]| cell("c", "CARRY8", &[("S", false, s), ("O", true, &[30, 31])]);
    let build = |s: &[u32]| module(&[flop("fa", 2, 10), lut("l1", &[10], 33), lut("l2", &[33], 34), carry(s), flop("fb", 30, 11)], 11);
    assert_eq!(walk(&build(&[34, 2]), Count::Cells).levels(), 3);
    assert_eq!(walk(&build(&[2, 34]), Count::Cells).levels(), 1);
}

/// The read address of LUT memory passes through, data written to it do not; block memory cuts.
#[test]
fn memories() {
    let ram = |data: u32, address: u32| cell("r", "RAM64X1D", &[("WCLK", false, &[1]), ("D", false, &[data]), ("A", false, &[2]), ("DPRA", false, &[address]), ("DPO", true, &[31])]);
    let base = |r: String| module(&[flop("fa", 2, 10), lut("l1", &[10], 30), r, lut("l2", &[31], 32), flop("fb", 32, 11)], 11);
    assert_eq!(walk(&base(ram(2, 30)), Count::Cells).levels(), 3);
    assert_eq!(walk(&base(ram(30, 2)), Count::Cells).levels(), 2);
    let block = cell("r", "RAMB36E2", &[("CLKARDCLK", false, &[1]), ("ADDRARDADDR", false, &[30]), ("DOUTADOUT", true, &[31])]);
    let m = base(block);
    assert_eq!(walk(&m, Count::Cells).levels(), 1);
    assert_eq!(area(m.cells.values().map(|c| c.kind.as_str())).map(|a| a.bram), Ok(1.0));
}

#[test]
fn faults_are_found() {
    let has = |cells: &[String], output: u32, words: &str| {
        let faults = walk(&module(cells, output), Count::Cells).faults;
        assert!(faults.iter().any(|f| f.contains(words)), "{words}: {faults:?}");
    };
    has(&[lut("l", &[10], 11)], 11, "a has no driver");
    has(&[lut("l", &[2], 10), lut("m", &[2], 10)], 10, "a has several drivers");
    has(&[lut("l", &[2], 2)], 2, "in");
    has(&[lut("l", &[10, 2], 11), lut("m", &[11], 10)], 11, "loop");
    has(&[cell("d", "MAGIC", &[("A", false, &[2]), ("P", true, &[11])])], 11, "unknown cell MAGIC");
    assert!(area(["MAGIC"].into_iter()).is_err());
    assert_eq!(area(["LDCE"].into_iter()).map(|a| a.latches), Ok(1));
}

/// A block put in its instance's place: the path runs from a register inside through both netlists.
#[test]
fn blocks_join() {
    let block = module(&[flop("f", 2, 10), lut("l", &[10], 11)], 11);
    let pins: &[(&str, bool, &[u32])] = &[("clock", false, &[1]), ("in", false, &[11]), ("out", true, &[10])];
    let glue = module(&[cell("one", "box", pins), lut("g", &[10], 30), flop("f", 30, 11)], 11);
    let joined = glue.inline(&BTreeMap::from([("one".to_string(), &block)])).unwrap_or_else(|e| panic!("{e}"));
    let found = walk(&joined, Count::Cells);
    assert_eq!(found.faults, Vec::<String>::new());
    assert_eq!((found.levels(), found.paths[0].start.as_str(), found.paths[0].end.as_str()), (2, "one.a", "b[0].D"));
}

/// A block's output that is constant is no open net outside.
#[test]
fn constant_outputs_join() {
    let block = r#"{"modules": {"t": {"ports": {"clock": {"direction": "input", "bits": [1]}, "out": {"direction": "output", "bits": ["0"]}}, "cells": {}, "netnames": {}}}}"#;
    let block = read(block, "t").unwrap_or_else(|e| panic!("{e}"));
    let pins: &[(&str, bool, &[u32])] = &[("clock", false, &[1]), ("out", true, &[10])];
    let glue = module(&[cell("one", "box", pins), lut("g", &[10, 2], 30), flop("f", 30, 11)], 11);
    let joined = glue.inline(&BTreeMap::from([("one".to_string(), &block)])).unwrap_or_else(|e| panic!("{e}"));
    let found = walk(&joined, Count::Cells);
    assert_eq!(found.faults, Vec::<String>::new());
    assert_eq!(found.paths[0].start, "net 2");
}

/// Leaves count once, whoever holds them, and instances are no cells.
#[test]
fn share_of_leaves() {
    let stat = r#"{"modules": {"\\top": {"num_cells_by_type": {"LUT2": 3, "FDRE": 5, "top$ram": 1, "$scopeinfo": 2}},
                  "\\top$ram": {"num_cells_by_type": {"RAM64M8": 1, "LUT6": 2, "FDRE": 6}}}, "design": {"num_cells_by_type": {"LUT2": 9}}}"#;
    let found = share::read(stat, &BTreeSet::from(["top$ram".to_string()])).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((found.leaves.lut, found.leaves.lutram, found.leaves.ff), (2, 8, 6));
    assert_eq!((found.all.lut, found.all.lutram, found.all.ff), (5, 8, 11));
    assert!((found.part() - 16.0 / 24.0).abs() < 1e-9);
    assert!(share::read(r#"{"modules": {"t": {"num_cells_by_type": {"MAGIC": 1}}}}"#, &BTreeSet::new()).is_err());
}

#[test]
fn documents_change_between_the_marks_only() {
    let text = "a\n<!-- synth:begin -->\nold\n<!-- synth:end -->\nb\n";
    assert_eq!(docs::between(text, "synth", "new\n").as_deref(), Some("a\n<!-- synth:begin -->\nnew\n<!-- synth:end -->\nb\n"));
    assert_eq!(docs::between("a", "synth", "new"), None);
}

/// One source: the tables in the documents are those of docs/resources.jsonl, in the order of the subjects.
#[test]
fn documents_are_written_from_the_table() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let table = Table::read(root).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(Table::parse(&table.render()).as_ref(), Ok(&table));
    let file = |name: &str| std::fs::read_to_string(root.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let text = file("docs/resources.md");
    for (mark, body) in [("synth", report::document(&table)), ("cores", report::summary(&table.rows))] {
        assert!(docs::between(&text, mark, &body).as_ref() == Some(&text), "docs/resources.md, {mark}: not what {} says: ./scripts/synth --update --changed", super::table::FILE);
    }
    let all = subject::all();
    let names: Vec<(&str, &str)> = all.iter().map(|s| (s.name, s.family.name())).collect();
    let mut arranged = table.clone();
    arranged.arrange(&names);
    assert!(arranged == table, "order of {}", super::table::FILE);
}

#[test]
fn tables_are_read_and_written() {
    let line = |top: &str, hash: &str| {
        format!(
            r#"{{"top":"{top}","family":"xcup","hash":"{hash}","yosys":"1","commit":"c","lut":1,"lutram":2,"ff":3,"bram":0.5,"uram":0,"dsp":0,"levels":4,"chain":3,"joined":false,"from":"a","to":"b"}}"#
        ) + "\n"
    };
    let text = line("a", "h") + &line("b", "h");
    let mut table = Table::parse(&text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(table.render(), text);
    assert_eq!((table.rows[0].lut, table.rows[0].bram, table.find("b", "ecp5")), (1, 0.5, None));
    let lacking = text.clone() + "{\"top\":\"c\",\"family\":\"xcup\",\"unmeasured\":\"why\"}\n";
    assert_eq!(Table::parse(&lacking).map(|t| (t.render() == lacking, t.unmeasured.len())), Ok((true, 1)));
    for (wrong, said) in [(line("a", "h") + &line("a", "i"), "line 2: a on xcup stands there twice"), ("{}\n".into(), "line 1"), (line("a", "h").replace("lut\"", "luts\""), "line 1")] {
        assert!(Table::parse(&wrong).is_err_and(|e| e.contains(said)), "{wrong}");
    }
    // Of the same gateware: the commit stays, and what was measured besides.
    let mut row = table.rows[1].clone();
    table.rows[1].prim = Some(0.5);
    row.commit = "d".into();
    row.lut = 9;
    table.put(row.clone());
    assert_eq!((table.rows[1].commit.as_str(), table.rows[1].lut, table.rows[1].prim), ("c", 9, Some(0.5)));
    row.hash = "i".into();
    table.put(row);
    assert_eq!((table.rows[1].commit.as_str(), table.rows[1].prim), ("d", None));
    table.arrange(&[("b", "xcup")]);
    assert_eq!(table.rows.len(), 1);
}

/// A vendor's block is a border and no area; a multiplier is counted, and passes through.
#[test]
fn borders_and_multipliers() {
    let border = cell("pll", super::cells::BORDER, &[("I", false, &[30]), ("O", true, &[31])]);
    let cells = [flop("fa", 2, 10), lut("l1", &[10], 30), border, cell("d", "DSP48E2", &[("A", false, &[31]), ("P", true, &[32])]), flop("fb", 32, 11)];
    let m = module(&cells, 11);
    let found = walk(&m, Count::Cells);
    assert_eq!((found.faults.len(), found.levels()), (0, 1));
    assert_eq!(area(m.cells.values().map(|c| c.kind.as_str())), Ok(Area { lut: 1, ff: 2, dsp: 1, ..Area::default() }));
}

/// What is defined for one part is read there only; what a simulation checks is nobody's; other macros stay text.
#[test]
fn a_hash_is_of_what_the_part_reads() {
    let bare = "module m;\nreg a;\n`ifndef SYNTHESIS\ninitial a = 0;\n`endif\nalways b <= a;\nendmodule\n";
    let full = "module m; // a comment\n`ifdef FERRIC_ECP5\n(* no_rw_check *)\n`endif\nreg a;\n`ifndef SYNTHESIS\n  initial a = 0;\n`endif\n`ifdef FERRIC_CHECKS\nalways b <= ~a;\n`else\nalways b <= a;\n`endif\nendmodule\n";
    let told = bare.replace("reg a;", "(* no_rw_check *)\nreg a;");
    assert_eq!(super::text_hash(full, Family::Xcup), super::text_hash(bare, Family::Xcup));
    assert_eq!(super::text_hash(full, Family::Ecp5), super::text_hash(&told, Family::Ecp5));
    assert_ne!(super::text_hash(full, Family::Ecp5), super::text_hash(bare, Family::Ecp5));
    assert_ne!(super::text_hash(&bare.replace("ifndef", "ifdef"), Family::Xcup), super::text_hash(bare, Family::Xcup));
}
