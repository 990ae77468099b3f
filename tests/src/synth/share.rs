//! How much of a top is Verilog written by hand, the leaves of `hdl/src/prim`.
//!
//! A flat netlist has lost the borders between modules. So the top is mapped once more with every leaf as a border that nothing is
//! optimised across, and cells are counted inside and outside. That mapping is a little larger than the flat one, on both sides.

use super::cells::{area, Area};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Cells in leaves and cells altogether, of the same mapping.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Share {
    pub leaves: Area,
    pub all: Area,
}

impl Share {
    /// Part of LUTs and FFs that leaves hold, 0 to 1. LUTs used as memory are LUTs.
    pub fn part(&self) -> f64 {
        let sum = |a: &Area| (a.lut + a.lutram + a.ff) as f64;
        sum(&self.leaves) / sum(&self.all).max(1.0)
    }
}

impl std::ops::AddAssign for Share {
    fn add_assign(&mut self, other: Self) {
        self.leaves += other.leaves;
        self.all += other.all;
    }
}

#[derive(Deserialize)]
struct Stat {
    modules: BTreeMap<String, Counts>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default)]
    num_cells_by_type: BTreeMap<String, usize>,
}

/// Reads what `stat -json` says of a design whose modules named in `leaves` were kept.
pub fn read(stat: &str, leaves: &BTreeSet<String>) -> Result<Share, String> {
    let stat: Stat = serde_json::from_str(stat).map_err(|e| format!("cell counts: {e}"))?;
    let plain = |name: &str| name.trim_start_matches('\\').to_string();
    let modules: BTreeMap<String, Counts> = stat.modules.into_iter().map(|(name, counts)| (plain(&name), counts)).collect();
    let mut share = Share::default();
    for (name, counts) in &modules {
        let cells = counts.num_cells_by_type.iter().filter(|(kind, _)| !modules.contains_key(&plain(kind)));
        let found = area(cells.flat_map(|(kind, n)| std::iter::repeat_n(kind.as_str(), *n)))?;
        share.all += found;
        if leaves.contains(name) {
            share.leaves += found;
        }
    }
    Ok(share)
}
