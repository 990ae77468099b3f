//! What the pass reads of a yosys JSON netlist.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A bit of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bit {
    Net(u32),
    Const,
}

/// A port of a module.
pub struct Port {
    pub input: bool,
    pub bits: Vec<Bit>,
}

/// A word-level cell.
pub struct Cell {
    pub kind: String,
    /// The memory that it reads or writes.
    pub memory: Option<String>,
    /// Ports that are outputs.
    pub outputs: Vec<String>,
    pub connections: BTreeMap<String, Vec<Bit>>,
}

/// A named word.
pub struct NetName {
    pub hidden: bool,
    pub bits: Vec<Bit>,
    /// Attributes that are set.
    pub marks: Vec<String>,
}

/// One module, flat.
#[derive(Default)]
pub struct Module {
    pub ports: BTreeMap<String, Port>,
    pub cells: BTreeMap<String, Cell>,
    pub netnames: BTreeMap<String, NetName>,
    /// Memories with the attributes that are set.
    pub memories: BTreeMap<String, Vec<String>>,
}

fn bits(value: &Value) -> Vec<Bit> {
    let one = |v: &Value| v.as_u64().map_or(Bit::Const, |n| Bit::Net(n as u32));
    value.as_array().map(|a| a.iter().map(one).collect()).unwrap_or_default()
}

fn entries<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value.get(key).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn marks(value: &Value) -> Vec<String> {
    let set = |v: &Value| v.as_str().is_some_and(|s| s.contains(|c| c != '0'));
    entries(value, "attributes").filter(|(_, v)| set(v)).map(|(k, _)| k.clone()).collect()
}

fn module(value: &Value) -> Module {
    let port = |p: &Value| Port { input: p["direction"] == "input", bits: bits(&p["bits"]) };
    let cell = |c: &Value| Cell {
        kind: c["type"].as_str().unwrap_or_default().into(),
        memory: c["parameters"]["MEMID"].as_str().map(|m| m.trim_start_matches('\\').into()),
        outputs: entries(c, "port_directions").filter(|(_, d)| *d == "output").map(|(p, _)| p.clone()).collect(),
        connections: entries(c, "connections").map(|(p, b)| (p.clone(), bits(b))).collect(),
    };
    let name = |n: &Value| NetName { hidden: n["hide_name"] == 1, bits: bits(&n["bits"]), marks: marks(n) };
    Module {
        ports: entries(value, "ports").map(|(k, v)| (k.clone(), port(v))).collect(),
        cells: entries(value, "cells").map(|(k, v)| (k.clone(), cell(v))).collect(),
        netnames: entries(value, "netnames").map(|(k, v)| (k.clone(), name(v))).collect(),
        memories: entries(value, "memories").map(|(k, v)| (k.clone(), marks(v))).collect(),
    }
}

/// The modules called `names`.
pub fn read(json: &str, names: &[&str]) -> Result<BTreeMap<String, Module>, String> {
    let netlist: Value = serde_json::from_str(json).map_err(|e| format!("netlist: {e}"))?;
    let take = |name: &&str| netlist["modules"].get(*name).map(|m| (name.to_string(), module(m))).ok_or_else(|| format!("the netlist holds no module {name}"));
    names.iter().map(take).collect()
}
