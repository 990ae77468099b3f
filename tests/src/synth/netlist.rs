//! The part of a yosys JSON netlist that counting and path walking need.

use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};

/// A bit of a connection: a net of the module, or a constant (`0`, `1`, `x`, `z`).
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(from = "RawBit")]
pub enum Bit {
    Net(u32),
    Const,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawBit {
    Net(u32),
    Const(#[allow(dead_code)] String),
}

impl From<RawBit> for Bit {
    fn from(raw: RawBit) -> Self {
        match raw {
            RawBit::Net(n) => Bit::Net(n),
            RawBit::Const(_) => Bit::Const,
        }
    }
}

/// A port of a module.
#[derive(Deserialize, Clone)]
pub struct Port {
    pub direction: String,
    pub bits: Vec<Bit>,
}

/// An instance.
#[derive(Deserialize, Clone)]
pub struct Cell {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub port_directions: BTreeMap<String, String>,
    pub connections: BTreeMap<String, Vec<Bit>>,
}

/// A name of nets.
#[derive(Deserialize, Clone)]
pub struct NetName {
    #[serde(default)]
    pub hide_name: u8,
    pub bits: Vec<Bit>,
}

/// One module, flat: its cells are library cells.
#[derive(Deserialize, Clone, Default)]
pub struct Module {
    pub ports: BTreeMap<String, Port>,
    pub cells: BTreeMap<String, Cell>,
    pub netnames: BTreeMap<String, NetName>,
}

#[derive(Deserialize)]
struct Netlist {
    modules: BTreeMap<String, Module>,
}

/// Reads the module `top` out of a JSON netlist.
pub fn read(json: &str, top: &str) -> Result<Module, String> {
    let mut netlist: Netlist = serde_json::from_str(json).map_err(|e| format!("netlist of {top}: {e}"))?;
    netlist.modules.remove(top).ok_or_else(|| format!("the netlist holds no module {top}"))
}

impl Module {
    fn nets(&self) -> u32 {
        let ports = self.ports.values().flat_map(|p| &p.bits);
        let pins = self.cells.values().flat_map(|c| c.connections.values().flatten());
        let names = self.netnames.values().flat_map(|n| &n.bits);
        ports.chain(pins).chain(names).map(|b| if let Bit::Net(n) = b { n + 1 } else { 0 }).max().unwrap_or(0)
    }

    /// Puts block netlists in the place of their instances. `blocks`: instance name to the block's flat module. Constants at a
    /// block's ports are not propagated into it, hence the result is an upper bound.
    pub fn inline(mut self, blocks: &BTreeMap<String, &Module>) -> Result<Module, String> {
        let mut base = self.nets();
        // Nets of the outer module that are another name of a block's output, or constant there.
        let mut same: HashMap<u32, Bit> = HashMap::new();
        for (instance, block) in blocks {
            let outer = self.cells.remove(instance).ok_or_else(|| format!("no instance is called {instance}"))?;
            let mut map: HashMap<u32, Bit> = HashMap::new();
            for (name, port) in &block.ports {
                let Some(pins) = outer.connections.get(name) else { continue };
                for (inner, outer) in port.bits.iter().zip(pins) {
                    let Bit::Net(inner) = *inner else {
                        if let (Bit::Net(other), "output") = (outer, port.direction.as_str()) {
                            same.insert(*other, Bit::Const);
                        }
                        continue;
                    };
                    match map.get(&inner) {
                        // A block's net on two ports: both outer nets are one.
                        Some(Bit::Net(first)) => {
                            if let Bit::Net(other) = outer {
                                same.insert(*other, Bit::Net(*first));
                            }
                        }
                        _ => {
                            map.insert(inner, *outer);
                        }
                    }
                }
            }
            let moved = |bits: &[Bit]| -> Vec<Bit> {
                let one = |b: &Bit| match b {
                    Bit::Net(n) => map.get(n).copied().unwrap_or(Bit::Net(base + n)),
                    Bit::Const => Bit::Const,
                };
                bits.iter().map(one).collect()
            };
            for (name, cell) in &block.cells {
                let connections = cell.connections.iter().map(|(p, b)| (p.clone(), moved(b))).collect();
                self.cells.insert(format!("{instance}.{name}"), Cell { connections, ..cell.clone() });
            }
            for (name, net) in &block.netnames {
                self.netnames.insert(format!("{instance}.{name}"), NetName { hide_name: net.hide_name, bits: moved(&net.bits) });
            }
            base += block.nets();
        }
        let resolve = |b: &mut Bit| {
            while let Bit::Net(n) = *b {
                match same.get(&n) {
                    Some(first) if *first != *b => *b = *first,
                    _ => break,
                }
            }
        };
        let pins = self.cells.values_mut().flat_map(|c| c.connections.values_mut());
        let ports = self.ports.values_mut().map(|p| &mut p.bits);
        let names = self.netnames.values_mut().map(|n| &mut n.bits);
        pins.chain(ports).chain(names).flatten().for_each(resolve);
        Ok(self)
    }

    /// The readable name of every net that has one: the shortest of those given in the source.
    pub fn names(&self) -> HashMap<u32, String> {
        let mut names: HashMap<u32, String> = HashMap::new();
        for (name, net) in self.netnames.iter().filter(|(_, n)| n.hide_name == 0) {
            for (i, bit) in net.bits.iter().enumerate() {
                let Bit::Net(n) = bit else { continue };
                let text = if net.bits.len() == 1 { name.clone() } else { format!("{name}[{i}]") };
                match names.get(n) {
                    Some(old) if old.len() <= text.len() => {}
                    _ => drop(names.insert(*n, text)),
                }
            }
        }
        names
    }
}
