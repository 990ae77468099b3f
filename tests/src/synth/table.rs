//! The committed table, `docs/resources.jsonl`: one JSON object per line, from which the documents are written.

use super::cells::Area;
use super::{Flow, Outcome};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Where it lies, below the repository.
pub const FILE: &str = "docs/resources.jsonl";

/// One top on one family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub top: String,
    pub family: String,
    /// Of what was mapped: the Verilog and the mapper's command.
    pub hash: String,
    /// Version of yosys.
    pub yosys: String,
    /// The last commit that had touched the gateware when this was mapped; `+` behind it: and what was not committed.
    pub commit: String,
    pub lut: u64,
    pub lutram: u64,
    pub ff: u64,
    /// RAMB36, or blocks of 18 Kbit on ECP5.
    pub bram: f64,
    pub uram: u64,
    pub dsp: u64,
    pub levels: u32,
    /// Levels with a carry chain as one and hard multiplexers as none.
    pub chain: u32,
    /// Joined from blocks mapped each on its own.
    pub joined: bool,
    /// Where the longest path starts.
    pub from: String,
    /// Where it ends.
    pub to: String,
    /// Part of LUTs and FFs in leaves of `prim`, when that has been measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prim: Option<f64>,
    /// What nextpnr said, when it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed: Option<Placed>,
}

/// A top that has no figures yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unmeasured {
    pub top: String,
    pub family: String,
    /// Why.
    pub unmeasured: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Unmeasured(Unmeasured),
    Other(serde_json::Value),
}

/// Placed and routed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placed {
    /// Of what was placed; another than the row's: the figures are of other gateware.
    pub hash: String,
    /// By clock: MHz reached and MHz asked for.
    pub clocks: BTreeMap<String, [f64; 2]>,
    /// By kind of cell: used and there.
    pub used: BTreeMap<String, [u64; 2]>,
}

impl Row {
    pub fn new(outcome: &Outcome, hash: String, yosys: String, commit: String) -> Self {
        let m = &outcome.mapping;
        let Area { lut, ff, lutram, bram, uram, dsp, .. } = m.area;
        let ends = m.walk.paths.first().map(|p| (p.start.clone(), p.end.clone())).unwrap_or_default();
        Self {
            top: outcome.subject.name.into(),
            family: outcome.subject.family.name().into(),
            hash,
            yosys,
            commit,
            lut,
            lutram,
            ff,
            bram,
            uram,
            dsp,
            levels: m.walk.levels(),
            chain: m.levels_chain,
            joined: m.flow == Flow::Hierarchical,
            from: ends.0,
            to: ends.1,
            prim: outcome.prim.as_ref().map(|p| p.part()),
            placed: None,
        }
    }
}

/// All rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub rows: Vec<Row>,
    /// Behind the rows.
    pub unmeasured: Vec<Unmeasured>,
}

impl Table {
    /// Reads the text. Errors name the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut table = Self::default();
        for (n, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
            let wrong = |e: &dyn std::fmt::Display| format!("{FILE}, line {}: {e}", n + 1);
            let row: Row = match serde_json::from_str(line).map_err(|e| wrong(&e))? {
                Line::Unmeasured(top) => {
                    table.unmeasured.push(top);
                    continue;
                }
                Line::Other(value) => serde_json::from_value(value).map_err(|e| wrong(&e))?,
            };
            if table.find(&row.top, &row.family).is_some() {
                return Err(wrong(&format!("{} on {} stands there twice", row.top, row.family)));
            }
            table.rows.push(row);
        }
        Ok(table)
    }

    pub fn render(&self) -> String {
        let rows = self.rows.iter().map(|r| serde_json::to_string(r).expect("strings and numbers"));
        let unmeasured = self.unmeasured.iter().map(|u| serde_json::to_string(u).expect("strings"));
        rows.chain(unmeasured).map(|line| line + "\n").collect()
    }

    /// Reads the file below `root`; none is an empty table.
    pub fn read(root: &Path) -> Result<Self, String> {
        match std::fs::read_to_string(root.join(FILE)) {
            Ok(text) => Self::parse(&text),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(e) => Err(format!("{FILE}: {e}")),
        }
    }

    pub fn write(&self, root: &Path) -> Result<(), String> {
        std::fs::write(root.join(FILE), self.render()).map_err(|e| format!("{FILE}: {e}"))
    }

    pub fn find(&self, top: &str, family: &str) -> Option<&Row> {
        self.rows.iter().find(|r| r.top == top && r.family == family)
    }

    /// Lists a top that has no row as one without figures.
    pub fn lack(&mut self, top: &str, family: &str, why: &str) {
        if self.find(top, family).is_none() && !self.unmeasured.iter().any(|u| u.top == top && u.family == family) {
            self.unmeasured.push(Unmeasured { top: top.into(), family: family.into(), unmeasured: why.into() });
        }
    }

    /// Puts a row in place of the one of that name. What a mapping says nothing of stays, and so does the commit of gateware that is
    /// the same.
    pub fn put(&mut self, mut row: Row) {
        self.unmeasured.retain(|u| u.top != row.top || u.family != row.family);
        let Some(old) = self.rows.iter_mut().find(|r| r.top == row.top && r.family == row.family) else {
            self.rows.push(row);
            return;
        };
        row.placed = old.placed.take();
        if (&old.hash, &old.yosys) == (&row.hash, &row.yosys) {
            row.prim = row.prim.or(old.prim);
            row.commit.clone_from(&old.commit);
        }
        *old = row;
    }

    /// In the order of `names` (top, family); rows of others are dropped.
    pub fn arrange(&mut self, names: &[(&str, &str)]) {
        let place = |top: &str, family: &str| names.iter().position(|name| *name == (top, family));
        self.rows.retain(|r| place(&r.top, &r.family).is_some());
        self.rows.sort_by_key(|r| place(&r.top, &r.family));
        self.unmeasured.retain(|u| place(&u.top, &u.family).is_some());
        self.unmeasured.sort_by_key(|u| place(&u.top, &u.family));
    }
}
