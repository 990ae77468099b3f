//! docs/uet.md has a row for every code, and names tests and mutants that exist.
use ferric_abi::uet::codes::{ControlType, NackCode, NextHeader, PdsType, ReturnCode, SesOpcode};
use std::path::Path;

/// A row of the tables of numbers and fields: cells of number, name, model, gateware, test, notes, and the section it stands in.
fn rows() -> Vec<(String, Vec<String>)> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/uet.md")).unwrap();
    let (mut section, mut rows, mut counts) = (String::new(), Vec::new(), false);
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title.to_owned();
        }
        let head = ["| number |", "| field |"].iter().any(|start| line.starts_with(start));
        counts = head || counts && line.starts_with('|');
        if let Some(cells) = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")).filter(|_| counts && !head) {
            rows.push((section.clone(), cells.split(" | ").map(|cell| cell.trim().to_owned()).collect()));
        }
    }
    rows
}

/// A test, `file::name` below `dir`, is there.
fn exists(dir: &str, test: &str, section: &str) {
    let (file, name) = test.split_once("::").unwrap_or_else(|| panic!("{section}: {test}"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(dir).join(file);
    let source = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{section}: {}: {e}", path.display()));
    assert!(source.contains(&format!("fn {name}(")), "{section}: {file} has no {name}");
}

#[test]
fn every_row_says_what_is_there() {
    let rows = rows();
    let mutants = ["uet", "uet-pdc", "uet-pds", "uet-card"].map(|list| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../hdl/mutants/{list}.ini"))).unwrap()).concat();
    let mut gateware = 0;
    assert!(rows.len() > 150, "{} rows: is this the page?", rows.len());
    for (section, cells) in &rows {
        assert!(cells.len() >= 5, "{section}: {cells:?}");
        assert!(["yes", "**no**", "headers"].contains(&&*cells[2]), "{section}: {cells:?}");
        if cells[3] != "**no**" {
            let (test, mutant) = cells[3].split_once(", ").unwrap_or_else(|| panic!("{section}: {cells:?}"));
            exists("../hdl/src/uet", test, section);
            assert!(mutants.contains(&format!("[{mutant}]\n")), "{section}: no mutant {mutant}");
            gateware += 1;
        }
        assert!(cells[2] == "**no**" || !cells[4].is_empty(), "{section}: no test of {cells:?}");
        if !cells[4].is_empty() {
            exists("src", &cells[4], section);
        }
    }
    assert!(gateware > 15, "{gateware} rows of gateware");
}

/// Whether the section has exactly these numbers with these names.
fn has(section: &str, codes: &[(&str, u8)]) {
    let rows: Vec<_> = rows().into_iter().filter(|(title, _)| title == section).map(|(_, cells)| (cells[1].clone(), cells[0].clone())).collect();
    let number = |text: &str| text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u8::from_str_radix(hex, 16).ok());
    let there: Vec<_> = rows.iter().map(|(name, n)| (&**name, number(n).unwrap_or_else(|| panic!("{section}: {n}")))).collect();
    assert_eq!(there, codes, "{section}");
}

#[test]
fn every_code_has_a_row() {
    macro_rules! check {
        ($($section:literal $kind:ident),*) => { $( has($section, &$kind::ALL.iter().map(|(_, name, n, _)| (*name, *n)).collect::<Vec<_>>()); )* };
    }
    check!("Packet types" PdsType, "Next headers" NextHeader, "Control packets" ControlType, "NACK codes" NackCode, "Operations" SesOpcode, "Return codes" ReturnCode);
}

#[test]
fn every_parameter_has_a_row() {
    let source = include_str!("../src/model/types.rs");
    let body = source.split("pub struct Config {").nth(1).and_then(|rest| rest.split("\n}").next()).expect("the registers");
    let fields: Vec<_> = body.lines().filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(':')).map(|(name, _)| name).collect();
    let rows: Vec<_> = rows().into_iter().filter(|(title, _)| title == "Parameters").map(|(_, cells)| cells[0].clone()).collect();
    assert_eq!(rows, fields);
}
