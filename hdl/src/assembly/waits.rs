//! Who waits for whom: from the wires of a list, and from what its blocks say of their ports.
//!
//! A node is a port of an instance: the part that the instance plays in it. An input takes what is offered; an output gives what is awaited there: an answer, a grant, a line.
//! A block's row `(p, [q, ...])` says that its part in `p` may be held up until its partner at the other end of the wire of each `q` has played his. Ports of the assembly itself lead outside, where somebody always answers.

use super::block::Assembled;
use super::Waits;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The graph of a list.
pub struct WaitGraph {
    /// For every port that may wait: for which ports of others, and through which of its own.
    pub edges: BTreeMap<String, BTreeSet<Edge>>,
    /// What is missing: ports without a row, rows without a port.
    pub faults: Vec<String>,
}

/// One wait.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The port of the instance that waits.
    pub through: String,
    /// The port that it waits for: of another instance, or of the assembly (no dot).
    pub to: String,
}

impl WaitGraph {
    /// The graph of `assembled`.
    pub fn of(assembled: &Assembled) -> Self {
        Self::with(assembled, &[])
    }

    /// The same with wires that the list does not have: from a port to a port.
    pub fn with(assembled: &Assembled, more: &[(&str, &str)]) -> Self {
        let mut partners: HashMap<String, Vec<String>> = HashMap::new();
        let wires = assembled.joints.iter().map(|j| (j.from.as_str(), j.to.as_str())).chain(more.iter().copied());
        for (from, to) in wires {
            partners.entry(from.into()).or_default().push(to.into());
            partners.entry(to.into()).or_default().push(from.into());
        }
        let mut graph = WaitGraph { edges: BTreeMap::new(), faults: Vec::new() };
        let mut awaited = BTreeSet::new();
        for (instance, waits, never) in &assembled.waits {
            let ports = assembled.ports.iter().find(|(name, _)| name == instance).map_or(&[][..], |(_, ports)| ports);
            for (port, through) in rows(waits) {
                let node = format!("{instance}.{port}");
                if !partners.contains_key(&node) {
                    // A block with several of a kind has rows for as many as it can have.
                    if !ports.iter().any(|p| family(&p.name) == family(&port)) {
                        graph.faults.push(format!("{node} has a row, and no wire"));
                    }
                    continue;
                }
                let edges = graph.edges.entry(node).or_default();
                if never.contains(&port.as_str()) {
                    continue;
                }
                for own in through {
                    let end = format!("{instance}.{own}");
                    match partners.get(&end) {
                        Some(others) => edges.extend(others.iter().map(|to| Edge { through: own.clone(), to: to.clone() })),
                        None if ports.iter().any(|p| family(&p.name) == family(&own)) => {}
                        None => graph.faults.push(format!("{instance}.{port} waits for {end}, which has no wire")),
                    }
                }
            }
            for port in ports.iter().filter(|p| p.waits() && p.signals.iter().any(|s| s.input && s.field.ends_with("valid"))) {
                awaited.insert((format!("{instance}.{}", port.name), "takes"));
            }
        }
        for edge in graph.edges.values().flatten().filter(|e| e.to.contains('.')) {
            awaited.insert((edge.to.clone(), "is awaited"));
        }
        for (port, why) in awaited {
            if partners.contains_key(&port) && !graph.edges.contains_key(&port) {
                graph.faults.push(format!("{port} {why}, and its block has no row for it"));
            }
        }
        graph
    }

    /// A circle of waits, each port with the one it waits for next; `None` if there is none.
    pub fn circle(&self) -> Option<Vec<String>> {
        let mut done: BTreeSet<&str> = BTreeSet::new();
        for start in self.edges.keys() {
            let mut path: Vec<(&str, Vec<&Edge>)> = Vec::new();
            let open = |port: &'_ str| self.edges.get(port).map_or(Vec::new(), |edges| edges.iter().collect());
            if !done.contains(start.as_str()) {
                path.push((start, open(start)));
            }
            while let Some((port, left)) = path.last_mut() {
                let Some(edge) = left.pop() else {
                    done.insert(port);
                    path.pop();
                    continue;
                };
                if let Some(at) = path.iter().position(|(port, _)| *port == edge.to) {
                    return Some(path[at..].iter().map(|(port, _)| (*port).to_string()).collect());
                }
                if !done.contains(edge.to.as_str()) {
                    path.push((&edge.to, open(&edge.to)));
                }
            }
        }
        None
    }

    /// Pairs of instances, the first of which may wait for the second, with the ports through which it does.
    pub fn between_instances(&self) -> BTreeMap<(String, String), BTreeSet<String>> {
        let owner = |port: &str| port.split_once('.').map_or(port.to_uppercase(), |(instance, _)| instance.to_string());
        let mut pairs: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        for (port, edges) in &self.edges {
            for edge in edges {
                pairs.entry((owner(port), owner(&edge.to))).or_default().insert(edge.through.clone());
            }
        }
        pairs
    }
}

/// `a[3]` and `a[*]` are of the family `a`.
fn family(port: &str) -> &str {
    port.split('[').next().unwrap_or(port)
}

/// The rows with `[*]` written out, the same number on both sides, and `[..]`, every number. As many as any block has.
fn rows(waits: Waits) -> Vec<(String, Vec<String>)> {
    const MOST: usize = 64;
    let mut all = Vec::new();
    for (port, through) in waits {
        let numbers = if port.contains("[*]") { 0..MOST } else { 0..1 };
        for n in numbers {
            let number = |name: &str| name.replace("[*]", &format!("[{n}]"));
            let every = |name: &str| match name.strip_suffix("[..]") {
                Some(family) => (0..MOST).map(|m| format!("{family}[{m}]")).collect(),
                None => vec![number(name)],
            };
            all.push((number(port), through.iter().flat_map(|q| every(q)).collect()));
        }
    }
    all
}
