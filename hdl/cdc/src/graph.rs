//! What drives what, bit by bit: where a path starts, where it ends, what it passes.

use super::netlist::{Bit, Module};
use super::Domains;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Where a path starts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Start {
    /// Bit of the register word.
    Register(usize, usize),
    /// Bit of an input; its place in [`Graph::inputs`].
    Input(usize, usize),
    /// The word read from a memory; its place in [`Graph::memories`].
    Memory(usize),
}

/// A register word.
pub struct Register {
    pub name: String,
    pub clock: String,
    pub q: Vec<Bit>,
    pub d: Vec<Bit>,
    /// Pins that act without the clock: asynchronous set, reset, load.
    pub direct: Vec<Bit>,
    /// Enable and synchronous reset.
    pub control: Vec<Bit>,
    /// Marked as part of a synchroniser.
    pub synchroniser: bool,
    /// Marked as a Gray code.
    pub gray: bool,
}

/// A memory.
pub struct Memory {
    pub name: String,
    /// Clocks that write it.
    pub clocks: BTreeSet<String>,
    /// Marked as one with two clocks.
    pub cross: bool,
}

/// Where paths end, besides registers.
pub struct End {
    pub name: String,
    /// `None`: no clock.
    pub clock: Option<String>,
    pub bits: Vec<Bit>,
}

#[derive(Clone)]
enum Driver {
    Start(Start),
    /// Inputs of the logic that this net comes out of.
    Logic(Vec<u32>),
    /// A word out of a memory, at an address.
    Read(usize, Vec<u32>),
}

/// A module as a graph.
pub struct Graph {
    pub registers: Vec<Register>,
    pub memories: Vec<Memory>,
    /// Name and clock.
    pub inputs: Vec<(String, Option<String>)>,
    /// Outputs and memories' write ports.
    pub ends: Vec<End>,
    drivers: HashMap<u32, Driver>,
    /// Register bits and other places that read a net directly: register and bit of its `d`, or nothing for any other use.
    pub uses: HashMap<u32, Vec<Option<(usize, usize)>>>,
    /// What is not understood.
    pub faults: Vec<String>,
}

fn net(bit: &Bit) -> Option<u32> {
    if let Bit::Net(n) = bit {
        Some(*n)
    } else {
        None
    }
}

/// Names of a word: the readable, short ones first. With its marks.
fn naming(module: &Module, q: &[Bit]) -> (Option<String>, bool, bool) {
    let mut names: Vec<&String> = Vec::new();
    let (mut synchroniser, mut gray) = (false, false);
    for (name, n) in module.netnames.iter().filter(|(_, n)| n.bits == q) {
        let marked = |mark: &str| n.marks.iter().any(|m| m == mark);
        synchroniser |= marked("ASYNC_REG");
        gray |= marked("ferric_gray");
        if !n.hidden {
            names.push(name);
        }
    }
    // A register's own name rather than one of the wires it is also known by.
    names.sort_by_key(|n| (!n.ends_with(".q") && !["meta", "settled", "code", "count"].contains(&n.rsplit('.').next().unwrap_or_default()), n.len()));
    (names.first().map(|n| n.to_string()), synchroniser, gray)
}

impl Graph {
    /// The graph of a flat module.
    pub fn new(module: &Module, domains: &Domains) -> Graph {
        let mut g = Graph { registers: vec![], memories: vec![], inputs: vec![], ends: vec![], drivers: HashMap::new(), uses: HashMap::new(), faults: vec![] };
        let clock_of = |bits: Option<&Vec<Bit>>| {
            let n = bits.and_then(|b| b.first()).and_then(net);
            let port = module.ports.iter().find(|(_, p)| p.input && p.bits.len() == 1 && n.is_some() && net(&p.bits[0]) == n);
            port.map(|(name, _)| name.clone())
        };
        let mut clocks: BTreeSet<String> = BTreeSet::new();
        let mut memory_numbers: BTreeMap<String, usize> = BTreeMap::new();
        for (name, marks) in &module.memories {
            memory_numbers.insert(name.clone(), g.memories.len());
            g.memories.push(Memory { name: name.clone(), clocks: BTreeSet::new(), cross: marks.iter().any(|m| m == "ferric_cross") });
        }
        for (cell_name, cell) in &module.cells {
            let pin = |p: &str| cell.connections.get(p).cloned().unwrap_or_default();
            let is_register = ["$dff", "$dffe", "$adff", "$adffe", "$sdff", "$sdffe", "$sdffce", "$dffsr", "$dffsre", "$aldff", "$aldffe"].contains(&cell.kind.as_str());
            let memory = cell.memory.as_ref();
            if is_register || cell.kind.starts_with("$memwr") {
                let Some(clock) = clock_of(cell.connections.get("CLK")) else {
                    g.faults.push(format!("{cell_name}: its clock is not an input of the module"));
                    continue;
                };
                clocks.insert(clock.clone());
                if is_register {
                    let (name, synchroniser, gray) = naming(module, &pin("Q"));
                    let direct = ["ARST", "ALOAD", "AD", "SET", "CLR"].iter().flat_map(|p| pin(p)).collect();
                    let control = ["EN", "SRST"].iter().flat_map(|p| pin(p)).collect();
                    g.registers.push(Register { name: name.unwrap_or_else(|| cell_name.clone()), clock, q: pin("Q"), d: pin("D"), direct, control, synchroniser, gray });
                } else if let Some(&m) = memory.and_then(|m| memory_numbers.get(m)) {
                    g.memories[m].clocks.insert(clock.clone());
                    let bits = ["ADDR", "DATA", "EN"].iter().flat_map(|p| pin(p)).collect();
                    g.ends.push(End { name: g.memories[m].name.clone(), clock: Some(clock), bits });
                } else {
                    g.faults.push(format!("{cell_name} writes a memory that is not declared"));
                }
            } else if cell.kind.starts_with("$memrd") {
                let Some(&m) = memory.and_then(|m| memory_numbers.get(m)) else {
                    g.faults.push(format!("{cell_name} reads a memory that is not declared"));
                    continue;
                };
                let address: Vec<u32> = pin("ADDR").iter().filter_map(net).collect();
                for n in pin("DATA").iter().filter_map(net) {
                    g.drivers.insert(n, Driver::Read(m, address.clone()));
                }
            } else if cell.kind.starts_with("$meminit") || cell.kind == "$scopeinfo" {
                // No hardware.
            } else {
                g.logic(cell_name, cell);
            }
        }
        for (r, register) in g.registers.iter().enumerate() {
            for (i, n) in register.q.iter().enumerate().filter_map(|(i, b)| Some((i, net(b)?))) {
                g.drivers.insert(n, Driver::Start(Start::Register(r, i)));
            }
            for (i, n) in register.d.iter().enumerate().filter_map(|(i, b)| Some((i, net(b)?))) {
                g.uses.entry(n).or_default().push(Some((r, i)));
            }
            for n in register.direct.iter().chain(&register.control).filter_map(net) {
                g.uses.entry(n).or_default().push(None);
            }
        }
        for (name, port) in &module.ports {
            let clock = domains.of(name).map(String::from);
            if !port.input {
                g.ends.push(End { name: name.clone(), clock, bits: port.bits.clone() });
            } else if !clocks.contains(name) {
                for (i, n) in port.bits.iter().enumerate().filter_map(|(i, b)| Some((i, net(b)?))) {
                    g.drivers.insert(n, Driver::Start(Start::Input(g.inputs.len(), i)));
                }
                g.inputs.push((name.clone(), clock));
            }
        }
        for n in g.ends.iter().flat_map(|e| &e.bits).filter_map(net) {
            g.uses.entry(n).or_default().push(None);
        }
        g
    }

    /// Outputs of a cell of logic: of bitwise ones each bit depends on its own inputs, of others on all.
    fn logic(&mut self, cell_name: &str, cell: &super::netlist::Cell) {
        let output = |p: &String| cell.outputs.contains(p);
        let inputs: Vec<(&String, &Vec<Bit>)> = cell.connections.iter().filter(|(p, _)| !output(p)).collect();
        let all: Vec<u32> = inputs.iter().flat_map(|(_, b)| b.iter().filter_map(net)).collect();
        for n in &all {
            self.uses.entry(*n).or_default().push(None);
        }
        if !cell.kind.starts_with('$') {
            self.faults.push(format!("{cell_name} is a {}, of which nothing is known", cell.kind));
        }
        for (_, bits) in cell.connections.iter().filter(|(p, _)| output(p)) {
            for (i, n) in bits.iter().enumerate().filter_map(|(i, b)| Some((i, net(b)?))) {
                let from = match cell.kind.as_str() {
                    "$and" | "$or" | "$xor" | "$xnor" | "$not" | "$pos" => inputs.iter().filter_map(|(_, b)| net(b.get(i).or(b.last())?)).collect(),
                    "$mux" => inputs.iter().filter_map(|(p, b)| net(if *p == "S" { b.first()? } else { b.get(i)? })).collect(),
                    "$pmux" => inputs.iter().flat_map(|(p, b)| b.iter().enumerate().filter(move |(k, _)| *p == "S" || k % bits.len() == i)).filter_map(|(_, b)| net(b)).collect(),
                    _ => all.clone(),
                };
                self.drivers.insert(n, Driver::Logic(from));
            }
        }
    }

    /// Whether the net comes straight out of a register or an input.
    pub fn straight(&self, bit: &Bit) -> Option<Start> {
        match self.drivers.get(&net(bit)?)? {
            Driver::Start(start) => Some(*start),
            _ => None,
        }
    }

    /// Everything a net depends on without a clock between.
    pub fn starts(&self, bits: &[Bit]) -> BTreeSet<Start> {
        let mut found = BTreeSet::new();
        let mut seen: BTreeSet<u32> = BTreeSet::new();
        let mut open: Vec<u32> = bits.iter().filter_map(net).collect();
        while let Some(n) = open.pop() {
            if !seen.insert(n) {
                continue;
            }
            match self.drivers.get(&n) {
                Some(Driver::Start(start)) => drop(found.insert(*start)),
                Some(Driver::Logic(from)) => open.extend(from),
                Some(Driver::Read(memory, address)) => {
                    found.insert(Start::Memory(*memory));
                    open.extend(address);
                }
                // A clock used as data, or a net without a driver.
                None => drop(found.insert(Start::Input(usize::MAX, 0))),
            }
        }
        found
    }

    /// Clocks that a start belongs to, and its name.
    pub fn origin(&self, start: Start) -> (Vec<Option<String>>, String) {
        match start {
            Start::Register(r, _) => (vec![Some(self.registers[r].clock.clone())], self.registers[r].name.clone()),
            Start::Input(usize::MAX, _) => (vec![None], "a clock or an open net".into()),
            Start::Input(i, _) => (vec![self.inputs[i].1.clone()], self.inputs[i].0.clone()),
            Start::Memory(m) => (self.memories[m].clocks.iter().cloned().map(Some).collect(), self.memories[m].name.clone()),
        }
    }
}
