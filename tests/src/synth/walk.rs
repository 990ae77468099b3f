//! Logic levels between registers of a flat netlist.
//!
//! A path starts at a register's, a memory's or an input port's net and ends at the same kind of place. Every LUT, hard
//! multiplexer (MUXF7/8/9), carry cell (CARRY8) and LUT memory read on it counts one: `levels`. `levels_chain` is the laxer
//! count many projects quote: a whole carry chain is one, hard multiplexers are none.

use super::cells::{is_clock, kind, passes, Kind};
use super::netlist::{Bit, Cell, Module};
use std::collections::{BTreeMap, HashMap};

/// How cells count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Each cell is one.
    Cells,
    /// A carry chain is one, hard multiplexers are none.
    Chains,
}

/// The longest path to one group of end points.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    pub levels: u32,
    pub start: String,
    /// Cell types on the way, each with its output's name where the source gave it one.
    pub cells: Vec<String>,
    pub end: String,
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} -> {} -> {}", self.start, self.cells.join(" "), self.end)
    }
}

/// What a walk found.
#[derive(Debug, Default)]
pub struct Walk {
    /// Longest paths, longest first, one per group of end points (a vector is one group).
    pub paths: Vec<Path>,
    /// Nets used but driven by nothing, driven twice, in a loop; cells nobody knows.
    pub faults: Vec<String>,
}

impl Walk {
    pub fn levels(&self) -> u32 {
        self.paths.first().map_or(0, |p| p.levels)
    }
}

struct Edge {
    from: u32,
    to: u32,
    cell: usize,
    weight: u32,
}

fn weight(kind: Kind, input: &str, count: Count) -> u32 {
    match (count, kind) {
        (Count::Chains, Kind::Mux) => 0,
        (Count::Chains, Kind::Carry) => u32::from(!matches!(input, "CI" | "CIN")),
        _ => 1,
    }
}

fn is_output(cell: &Cell, port: &str) -> bool {
    cell.port_directions.get(port).is_some_and(|d| d == "output")
}

/// Walks `module`, whose cells must all be library cells.
pub fn walk(module: &Module, count: Count) -> Walk {
    let names = module.names();
    let name = |net: u32| names.get(&net).cloned();
    let mut result = Walk::default();
    let cells: Vec<(&String, &Cell)> = module.cells.iter().collect();
    let mut drivers: HashMap<u32, u32> = HashMap::new();
    let mut edges: Vec<Edge> = Vec::new();
    // Ends of paths: net, group, full name.
    let mut ends: Vec<(u32, String)> = Vec::new();
    for (port, p) in &module.ports {
        for (i, bit) in p.bits.iter().enumerate() {
            let Bit::Net(n) = *bit else { continue };
            if p.direction == "output" {
                ends.push((n, format!("{port}[{i}]")));
            } else {
                *drivers.entry(n).or_default() += 1;
            }
        }
    }
    for (c, (cell_name, cell)) in cells.iter().enumerate() {
        let Some(kind) = kind(&cell.kind) else {
            result.faults.push(format!("unknown cell {} ({cell_name})", cell.kind));
            continue;
        };
        let pins = |output: bool| {
            cell.connections
                .iter()
                .filter(move |(p, _)| is_output(cell, p) == output)
                .flat_map(|(p, bits)| bits.iter().enumerate().filter_map(move |(i, b)| if let Bit::Net(n) = b { Some((p.as_str(), i, *n)) } else { None }))
        };
        let outputs: Vec<_> = pins(true).collect();
        for (_, _, n) in &outputs {
            *drivers.entry(*n).or_default() += 1;
        }
        let label = || outputs.iter().find_map(|o| name(o.2)).unwrap_or_else(|| cell_name.to_string());
        for (port, i, from) in pins(false).filter(|(port, ..)| !is_clock(port)) {
            let before = edges.len();
            let through = outputs.iter().filter(|o| passes(&cell.kind, kind, (port, i), (o.0, o.1)));
            edges.extend(through.map(|o| Edge { from, to: o.2, cell: c, weight: weight(kind, port, count) }));
            // The address that LUT memory is written at is not told from the one it is read at: neither ends a path of its own.
            if edges.len() == before && !matches!(kind, Kind::Lut | Kind::Mux | Kind::Carry | Kind::Dsp) {
                ends.push((from, format!("{}.{port}", label())));
            }
        }
    }
    let shown = |n: u32| name(n).unwrap_or_else(|| format!("net {n}"));
    for (n, _) in drivers.iter().filter(|(_, times)| **times > 1) {
        result.faults.push(format!("{} has several drivers", shown(*n)));
    }
    result.faults.sort();
    let mut open: Vec<u32> = edges.iter().map(|e| e.from).chain(ends.iter().map(|e| e.0)).filter(|n| !drivers.contains_key(n)).collect();
    open.sort_unstable();
    open.dedup();
    result.faults.extend(open.iter().map(|n| format!("{} has no driver", shown(*n))));

    // Longest paths in topological order.
    let mut waiting: HashMap<u32, u32> = HashMap::new();
    let mut leaving: HashMap<u32, Vec<usize>> = HashMap::new();
    for (e, edge) in edges.iter().enumerate() {
        *waiting.entry(edge.to).or_default() += 1;
        leaving.entry(edge.from).or_default().push(e);
    }
    let mut arrival: HashMap<u32, (u32, Option<usize>)> = HashMap::new();
    let mut ready: Vec<u32> = leaving.keys().copied().filter(|n| !waiting.contains_key(n)).collect();
    // Of paths of one length the same is named every time.
    ready.sort_unstable();
    while let Some(net) = ready.pop() {
        let level = arrival.get(&net).map_or(0, |a| a.0);
        for &e in leaving.get(&net).into_iter().flatten() {
            let edge = &edges[e];
            let new = level + edge.weight;
            let best = arrival.entry(edge.to).or_insert((new, Some(e)));
            if new > best.0 {
                *best = (new, Some(e));
            }
            if let Some(left) = waiting.get_mut(&edge.to) {
                *left -= 1;
                if *left == 0 {
                    waiting.remove(&edge.to);
                    ready.push(edge.to);
                }
            }
        }
    }
    if let Some(n) = waiting.keys().min() {
        result.faults.push(format!("{} nets wait on a combinational loop, {} among them", waiting.len(), shown(*n)));
    }

    let mut groups: BTreeMap<String, (u32, u32, String)> = BTreeMap::new();
    for (net, end) in ends {
        let level = arrival.get(&net).map_or(0, |a| a.0);
        let group = end.split('[').next().unwrap_or_default().to_string();
        let best = groups.entry(group).or_insert((level, net, end.clone()));
        if level > best.0 {
            *best = (level, net, end);
        }
    }
    let mut worst: Vec<_> = groups.into_values().collect();
    worst.sort_by_key(|(level, ..)| std::cmp::Reverse(*level));
    for (levels, net, end) in worst {
        let (mut at, mut through) = (net, Vec::new());
        while let Some((_, Some(e))) = arrival.get(&at) {
            let cell = cells[edges[*e].cell].1;
            through.push(name(at).map_or_else(|| cell.kind.clone(), |n| format!("{}({n})", cell.kind)));
            at = edges[*e].from;
        }
        through.reverse();
        result.paths.push(Path { levels, start: shown(at), cells: through, end });
    }
    result
}
