//! What must hold of a board's description before anything is generated from it.

use crate::netlist::{Allowed, Dir, Expr, Module, Netlist, Param};
use crate::Board;
use std::collections::{BTreeMap, BTreeSet};

/// A mistake in a description.
#[derive(Debug, thiserror::Error, PartialEq, Eq, Clone)]
pub enum Problem {
    #[error("{instance}: there is no module {module}")]
    NoModule { instance: String, module: String },
    #[error("{instance}: {module} has no port {port}")]
    NoPort { instance: String, module: String, port: String },
    #[error("{instance}: {module} has no parameter {param}")]
    NoParam { instance: String, module: String, param: String },
    #[error("{instance}: {param} cannot be {value}")]
    BadValue { instance: String, param: String, value: String },
    #[error("{place} is connected twice")]
    ConnectedTwice { place: String },
    #[error("{place} has no driver")]
    Undriven { place: String },
    #[error("net {net} has two drivers: {first} and {second}")]
    TwoDrivers { net: String, first: String, second: String },
    #[error("net {net}, driven by {driver}, is read by nothing")]
    Unread { net: String, driver: String },
    #[error("{place} has {has} bits, what is connected to it {gets}")]
    Width { place: String, has: u32, gets: u32 },
    #[error("{place} is an output; {to} cannot be driven")]
    NotDrivable { place: String, to: String },
    #[error("{place}: bits {high}:{low} are outside of {net}")]
    Slice { place: String, net: String, high: u32, low: u32 },
    #[error("two instances are called {name}")]
    SameName { name: String },
    #[error("pin {pin} is given to {first} and to {second}")]
    PinTwice { pin: String, first: String, second: String },
    #[error("{port}[{bit}] has two pins")]
    PortPinnedTwice { port: String, bit: u32 },
    #[error("a pin is given to {port}[{bit}], which the top does not have")]
    NoSuchPortBit { port: String, bit: u32 },
    #[error("{port}[{bit}] has no pin")]
    NoPin { port: String, bit: u32 },
    #[error("{pin} is not a ball of the package")]
    BadPin { pin: String },
    #[error("{standard} on {port} is not an I/O standard of this part")]
    BadStandard { port: String, standard: String },
    #[error("clock {clock}: the top has no {object}")]
    BadClock { clock: String, object: String },
    #[error("crossing of {clock}: no such clock")]
    BadCrossing { clock: String },
    #[error("{0} is said to be unused, and is not an unread input of the top")]
    BadUnused(String),
    #[error("IP {0} is configured but not instantiated, or instantiated but not configured")]
    Ip(String),
}

/// Everything that is wrong with a board.
pub fn check(board: &Board) -> Vec<Problem> {
    let mut problems = netlist(&board.top);
    problems.extend(pins(board));
    problems.extend(clocks(board));
    problems.extend(ips(board));
    problems
}

/// One end of a net.
struct Ends<'a> {
    n: &'a Netlist,
    drivers: BTreeMap<String, (String, u32)>,
    reads: Vec<(String, u32, Expr)>,
    problems: Vec<Problem>,
}

impl Ends<'_> {
    fn drive(&mut self, net: &str, by: &str, width: u32) {
        if let Some((first, _)) = self.drivers.get(net) {
            self.problems.push(Problem::TwoDrivers { net: net.into(), first: first.clone(), second: by.into() });
        } else {
            self.drivers.insert(net.into(), (by.into(), width));
        }
    }

    fn instance_ports(&mut self) {
        for i in &self.n.instances {
            let Some(module) = self.n.module(&i.module) else {
                self.problems.push(Problem::NoModule { instance: i.name.clone(), module: i.module.clone() });
                continue;
            };
            params(&i.name, module, &i.params, &mut self.problems);
            let mut seen = BTreeSet::new();
            for (name, expr) in &i.conns {
                let place = format!("{}.{name}", i.name);
                let Some(port) = module.port(name) else {
                    self.problems.push(Problem::NoPort { instance: i.name.clone(), module: module.name.clone(), port: name.clone() });
                    continue;
                };
                if !seen.insert(name) {
                    self.problems.push(Problem::ConnectedTwice { place: place.clone() });
                }
                match (port.dir, expr) {
                    (Dir::Out, Expr::Net(net)) => self.drive(net, &place, port.width),
                    (Dir::Out | Dir::InOut, Expr::Open) => {}
                    (Dir::Out, to) => self.problems.push(Problem::NotDrivable { place, to: format!("{to:?}") }),
                    (Dir::In, Expr::Open) => self.problems.push(Problem::Undriven { place }),
                    (Dir::In | Dir::InOut, _) => self.reads.push((place, port.width, expr.clone())),
                }
            }
            for port in module.ports.iter().filter(|p| !seen.contains(&p.name)) {
                // Also an output: what is left open is left open by name.
                self.problems.push(Problem::Undriven { place: format!("{}.{}", i.name, port.name) });
            }
        }
    }

    fn width(&mut self, place: &str, expr: &Expr, used: &mut BTreeSet<String>) -> Option<u32> {
        let n = match expr {
            Expr::Const(w, _) => return Some(*w),
            Expr::Open => return None,
            Expr::Concat(parts) => return parts.iter().map(|p| self.width(place, p, used)).collect::<Option<Vec<_>>>().map(|w| w.iter().sum()),
            Expr::Net(n) | Expr::Slice(n, ..) => n,
        };
        used.insert(n.clone());
        let Some((_, width)) = self.drivers.get(n).cloned() else {
            self.problems.push(Problem::Undriven { place: format!("{place} (net {n})") });
            return None;
        };
        match expr {
            Expr::Slice(_, high, low) if high < low || *high >= width => {
                self.problems.push(Problem::Slice { place: place.into(), net: n.clone(), high: *high, low: *low });
                None
            }
            Expr::Slice(_, high, low) => Some(high - low + 1),
            _ => Some(width),
        }
    }
}

fn netlist(n: &Netlist) -> Vec<Problem> {
    let mut ends = Ends { n, drivers: BTreeMap::new(), reads: Vec::new(), problems: Vec::new() };
    for port in n.ports.iter().filter(|p| p.dir != Dir::Out) {
        ends.drive(&port.name, &format!("pin {}", port.name), port.width);
    }
    ends.instance_ports();
    for (name, expr) in &n.assigns {
        match n.ports.iter().find(|p| p.name == *name && p.dir == Dir::Out) {
            Some(port) => {
                ends.drive(name, &format!("assign {name}"), port.width);
                ends.reads.push((format!("assign {name}"), port.width, expr.clone()));
            }
            None => ends.problems.push(Problem::NoPort { instance: "assign".into(), module: n.name.clone(), port: name.clone() }),
        }
    }
    for port in n.ports.iter().filter(|p| p.dir == Dir::Out) {
        let assigned = n.assigns.iter().any(|(a, _)| *a == port.name);
        if !assigned {
            ends.reads.push((format!("pin {}", port.name), port.width, Expr::Net(port.name.clone())));
        }
    }
    let mut used = BTreeSet::new();
    for (place, has, expr) in std::mem::take(&mut ends.reads) {
        if let Some(gets) = ends.width(&place, &expr, &mut used) {
            if gets != has {
                ends.problems.push(Problem::Width { place, has, gets });
            }
        }
    }
    for (net, (driver, _)) in &ends.drivers {
        let excused = n.unused.iter().any(|(u, _)| u == net);
        let output = n.ports.iter().any(|p| p.name == *net && p.dir == Dir::Out);
        if !used.contains(net) && !excused && !output {
            ends.problems.push(Problem::Unread { net: net.clone(), driver: driver.clone() });
        }
    }
    for (name, _) in &n.unused {
        if used.contains(*name) || !n.ports.iter().any(|p| p.name == *name && p.dir != Dir::Out) {
            ends.problems.push(Problem::BadUnused(name.to_string()));
        }
    }
    let mut names = BTreeSet::new();
    for i in &n.instances {
        if !names.insert(&i.name) {
            ends.problems.push(Problem::SameName { name: i.name.clone() });
        }
    }
    ends.problems
}

fn params(instance: &str, module: &Module, given: &[(&'static str, String)], problems: &mut Vec<Problem>) {
    let mut seen = BTreeSet::new();
    for (name, value) in given {
        if !seen.insert(name) {
            problems.push(Problem::ConnectedTwice { place: format!("{instance} parameter {name}") });
        }
        match module.params.iter().find(|p| p.name == *name) {
            None => problems.push(Problem::NoParam { instance: instance.into(), module: module.name.clone(), param: name.to_string() }),
            Some(p) if !fits(p, value) => problems.push(Problem::BadValue { instance: instance.into(), param: name.to_string(), value: value.clone() }),
            Some(_) => {}
        }
    }
}

fn fits(param: &Param, value: &str) -> bool {
    match &param.allowed {
        Allowed::OneOf(list) => list.contains(&value),
        Allowed::Number(low, high) => {
            let number = match value.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).map(|n| n as f64).ok(),
                None => value.parse::<f64>().ok(),
            };
            number.is_some_and(|n| (*low..=*high).contains(&n))
        }
    }
}

fn pins(board: &Board) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut balls: BTreeMap<&str, String> = BTreeMap::new();
    let mut bits = BTreeSet::new();
    for pin in &board.pins {
        let here = format!("{}[{}]", pin.port, pin.bit);
        if let Some(first) = balls.insert(&pin.ball, here.clone()) {
            problems.push(Problem::PinTwice { pin: pin.ball.clone(), first, second: here });
        }
        if !bits.insert((pin.port.clone(), pin.bit)) {
            problems.push(Problem::PortPinnedTwice { port: pin.port.clone(), bit: pin.bit });
        }
        if !board.top.ports.iter().any(|p| p.name == pin.port && pin.bit < p.width) {
            problems.push(Problem::NoSuchPortBit { port: pin.port.clone(), bit: pin.bit });
        }
        if !ball(&pin.ball, board.package) {
            problems.push(Problem::BadPin { pin: pin.ball.clone() });
        }
        if pin.standard.is_some_and(|s| !board.standards.contains(&s)) {
            problems.push(Problem::BadStandard { port: pin.port.clone(), standard: pin.standard.unwrap_or_default().into() });
        }
    }
    if board.package.is_some() {
        for port in &board.top.ports {
            for bit in (0..port.width).filter(|b| !bits.contains(&(port.name.clone(), *b))) {
                problems.push(Problem::NoPin { port: port.name.clone(), bit });
            }
        }
    }
    problems
}

/// Rows of a ball grid: letters without I, O, Q, S, X, Z; after Y come AA, AB and so on (JEDEC MO-151).
const ROWS: &str = "ABCDEFGHJKLMNPRTUVWY";

/// Whether a ball like `AF12` lies in a grid of so many rows and columns.
fn ball(name: &str, grid: Option<(u32, u32)>) -> bool {
    let Some((rows, columns)) = grid else { return false };
    let letters: String = name.chars().take_while(|c| c.is_ascii_uppercase()).collect();
    let row = letters.chars().try_fold(0, |row, c| ROWS.find(c).map(|i| row * ROWS.len() + i + 1));
    let column = name[letters.len()..].parse::<u32>();
    matches!((row, column), (Some(r), Ok(c)) if (1..=rows as usize).contains(&r) && (1..=columns).contains(&c))
}

fn clocks(board: &Board) -> Vec<Problem> {
    let mut problems = Vec::new();
    for clock in &board.clocks {
        let found = match clock.object.split_once('.') {
            None => board.top.ports.iter().any(|p| p.name == clock.object && p.dir == Dir::In),
            Some((instance, port)) => board.top.instances.iter().find(|i| i.name == instance).is_some_and(|i| {
                let module = board.top.module(&i.module).and_then(|m| m.port(port));
                module.is_some_and(|p| p.dir == Dir::Out) && i.conns.iter().any(|(c, e)| c == port && *e != Expr::Open)
            }),
        };
        if !found {
            problems.push(Problem::BadClock { clock: clock.name.into(), object: clock.object.into() });
        }
    }
    for crossing in &board.crossings {
        for end in [crossing.from, crossing.to] {
            if !board.clocks.iter().any(|c| c.name == end) {
                problems.push(Problem::BadCrossing { clock: end.into() });
            }
        }
    }
    for (ports, _) in &board.false_paths {
        for port in ports.iter().filter(|p| !board.top.ports.iter().any(|t| t.name == **p)) {
            problems.push(Problem::NoSuchPortBit { port: port.to_string(), bit: 0 });
        }
    }
    problems
}

fn ips(board: &Board) -> Vec<Problem> {
    let mut problems = Vec::new();
    let made: BTreeSet<&str> = board.top.modules.iter().filter(|m| m.origin == crate::netlist::Origin::Ip).map(|m| m.name.as_str()).collect();
    let configured: BTreeSet<&str> = board.ips.iter().map(|i| i.module.as_str()).collect();
    problems.extend(made.symmetric_difference(&configured).map(|m| Problem::Ip(m.to_string())));
    for ip in &board.ips {
        if let Some(module) = board.top.module(&ip.module) {
            params(&format!("IP {}", ip.module), module, &ip.properties, &mut problems);
        }
    }
    problems
}
