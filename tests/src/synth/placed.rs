//! What nextpnr reports of a board's image.

use super::subject::{self, What};
use super::table::Placed;
use super::yosys::Family;
use super::{joined_hash, text_hash};
use ferric_boards::Board;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// `report.json` of nextpnr.
#[derive(Deserialize)]
struct Report {
    fmax: BTreeMap<String, Speed>,
    utilization: BTreeMap<String, Use>,
}

#[derive(Deserialize)]
struct Speed {
    achieved: f64,
    constraint: f64,
}

#[derive(Deserialize)]
struct Use {
    used: u64,
    available: u64,
}

/// Kinds of cells that the table keeps.
const SHOWN: [&str; 4] = ["TRELLIS_COMB", "TRELLIS_FF", "TRELLIS_RAMW", "DP16KD"];

/// Reads `folder/report.json`, and the texts beside it that the image was made of, so that the figures are of those.
pub fn read(board: &Board, folder: &Path) -> Result<Placed, String> {
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|e| format!("{}: {e}; ./scripts/bitstream --board {} leaves it there", folder.join(name).display(), board.key));
    let mut modules = Vec::new();
    for (_, name) in subject::gateware(&board.top) {
        if !matches!(subject::module(name)?, What::Unit(_)) {
            return Err(format!("{}: only boards without a whole core are placed with open tools", board.name));
        }
        modules.push(name);
    }
    modules.dedup();
    let hashes: Result<Vec<String>, String> = modules.into_iter().map(|name| Ok(text_hash(&text(&format!("{name}.v"))?, Family::Ecp5))).collect();
    parse(&text("report.json")?, joined_hash(&text("top.v")?, &hashes?))
}

fn parse(report: &str, hash: String) -> Result<Placed, String> {
    let report: Report = serde_json::from_str(report).map_err(|e| format!("report.json of nextpnr: {e}"))?;
    let tenth = |mhz: f64| (mhz * 10.0).round() / 10.0;
    let clocks = report.fmax.into_iter().map(|(clock, s)| (clock.trim_start_matches("$glbnet$").to_string(), [tenth(s.achieved), tenth(s.constraint)])).collect();
    let used = report.utilization.into_iter().filter(|(cell, _)| SHOWN.contains(&cell.as_str())).map(|(cell, u)| (cell, [u.used, u.available])).collect();
    Ok(Placed { hash, clocks, used })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read() {
        let text = r#"{"fmax": {"$glbnet$clk_core": {"achieved": 63.871, "constraint": 62.5}}, "critical_paths": [],
            "utilization": {"DP16KD": {"available": 208, "used": 203}, "TRELLIS_IO": {"available": 365, "used": 30}}}"#;
        let placed = parse(text, "h".into()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(placed.clocks, BTreeMap::from([("clk_core".to_string(), [63.9, 62.5])]));
        assert_eq!(placed.used, BTreeMap::from([("DP16KD".to_string(), [203, 208])]));
        assert!(parse("{}", "h".into()).is_err());
    }
}
