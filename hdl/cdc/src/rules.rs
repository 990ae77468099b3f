//! Which paths cross, and whether they may.

use super::graph::{Graph, Register, Start};
use super::netlist::{Bit, Module};
use super::Domains;
use std::collections::{BTreeMap, BTreeSet};

/// How data crosses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// One bit, through two registers.
    Bit,
    /// A Gray code, through two registers.
    Gray,
    /// A word out of a memory with two clocks.
    Memory,
    /// A reset that is raised without the clock and released with it.
    Reset,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Bit => "bit",
            Kind::Gray => "gray",
            Kind::Memory => "memory",
            Kind::Reset => "reset",
        }
    }
}

/// What was found; all in words, in an order that does not depend on the tool.
#[derive(Default, Debug)]
pub struct Findings {
    /// `module: from -> to, kind of n bits, source -> first register`.
    pub crossings: BTreeSet<String>,
    /// Synchronised signals of one clock that meet in one place: they may be a cycle apart there, so each needs a reason.
    pub meetings: BTreeSet<String>,
    /// What is not synchronised as it should be.
    pub faults: BTreeSet<String>,
}

impl Findings {
    /// Puts other findings beside these.
    pub fn add(&mut self, other: Findings) {
        self.crossings.extend(other.crossings);
        self.meetings.extend(other.meetings);
        self.faults.extend(other.faults);
    }
}

struct Crossing {
    from: Option<String>,
    to: String,
    source: Start,
    first: usize,
}

fn shown(clock: &Option<String>) -> &str {
    clock.as_deref().unwrap_or("no clock")
}

struct Judge<'a> {
    g: &'a Graph,
    module: &'a str,
    crossings: Vec<Crossing>,
    out: Findings,
}

/// All crossings of a module.
pub fn judge(name: &str, module: &Module, domains: &Domains) -> Findings {
    let g = Graph::new(module, domains);
    let mut j = Judge { g: &g, module: name, crossings: Vec::new(), out: Findings::default() };
    j.out.faults.extend(g.faults.iter().map(|f| format!("{name}: {f}")));
    for r in 0..g.registers.len() {
        j.data(r);
        j.direct(r);
    }
    for end in &g.ends {
        if let Some(clock) = &end.clock {
            for start in j.foreign(&end.bits, clock) {
                let (from, source) = j.named(start, clock);
                j.fault(format!("{source} ({from}) reaches {} ({clock}), which is no synchroniser", end.name));
            }
        }
    }
    j.twice();
    j.meetings();
    j.out
}

impl Judge<'_> {
    fn fault(&mut self, what: String) {
        self.out.faults.insert(format!("{}: {what}", self.module));
    }

    /// What the bits depend on that does not belong to `clock`.
    fn foreign(&self, bits: &[Bit], clock: &str) -> Vec<Start> {
        self.g.starts(bits).into_iter().filter(|s| self.g.origin(*s).0.iter().any(|c| c.as_deref() != Some(clock))).collect()
    }

    /// The foreign clock of a start, and its name.
    fn named(&self, start: Start, clock: &str) -> (String, String) {
        let (clocks, name) = self.g.origin(start);
        let from = clocks.iter().find(|c| c.as_deref() != Some(clock)).map_or("no clock", |c| shown(c));
        (from.to_string(), name)
    }

    fn record(&mut self, kind: Kind, source: Start, first: usize, bits: usize) {
        let g = self.g;
        let (clocks, name) = g.origin(source);
        let to = &g.registers[first].clock;
        let from = clocks.into_iter().find(|c| c.as_ref() != Some(to)).flatten();
        let line = format!("{}: {} -> {to}, {} of {bits}, {name} -> {}", self.module, shown(&from), kind.word(), g.registers[first].name);
        self.out.crossings.insert(line);
        self.crossings.push(Crossing { from, to: to.clone(), source, first });
    }

    /// The register that reads nothing but all of this one, in the same clock and marked like it.
    fn second(&self, first: usize) -> Option<usize> {
        let g = self.g;
        let mut second = None;
        for (i, bit) in g.registers[first].q.iter().enumerate() {
            let Bit::Net(n) = bit else { continue };
            let [Some((s, at))] = g.uses.get(n).map(Vec::as_slice).unwrap_or_default() else { return None };
            if *at != i || second.is_some_and(|other| other != *s) {
                return None;
            }
            second = Some(*s);
        }
        second.filter(|s| g.registers[*s].clock == g.registers[first].clock && g.registers[*s].synchroniser)
    }

    fn data(&mut self, r: usize) {
        let g = self.g;
        let Register { name, clock, d, control, synchroniser, .. } = &g.registers[r];
        for start in self.foreign(control, clock) {
            let (from, source) = self.named(start, clock);
            self.fault(format!("{source} ({from}) enables or resets {name} ({clock}) without a synchroniser"));
        }
        let mut sources: BTreeMap<usize, Start> = BTreeMap::new();
        let mut memories: BTreeSet<usize> = BTreeSet::new();
        for (i, bit) in d.iter().enumerate() {
            for start in self.foreign(std::slice::from_ref(bit), clock) {
                let (from, source) = self.named(start, clock);
                match start {
                    Start::Memory(m) if g.memories[m].cross => drop(memories.insert(m)),
                    _ if !synchroniser => self.fault(format!("{source} ({from}) reaches {name} ({clock}), which is no synchroniser")),
                    _ if g.straight(bit) != Some(start) => self.fault(format!("logic between {source} ({from}) and the synchroniser {name} ({clock})")),
                    _ => drop(sources.insert(i, start)),
                }
            }
        }
        for m in memories {
            self.record(Kind::Memory, Start::Memory(m), r, d.len());
        }
        let Some(&source) = sources.values().next() else { return };
        if self.second(r).is_none() {
            self.fault(format!("{name} ({clock}) is used itself: a synchroniser is two registers, and the first feeds nothing but the second"));
        }
        let whole = |s: &Start| matches!((s, source), (Start::Register(a, _), Start::Register(b, _)) if *a == b);
        let gray = matches!(source, Start::Register(s, _) if g.registers[s].gray) && sources.values().all(whole);
        if sources.len() > 1 && !gray {
            self.fault(format!("{} bits reach the synchroniser {name} ({clock}) together without being a Gray code", sources.len()));
        }
        self.record(if sources.len() > 1 { Kind::Gray } else { Kind::Bit }, source, r, sources.len());
    }

    /// Asynchronous resets: of the two registers of a reset synchroniser and no others.
    fn direct(&mut self, r: usize) {
        let g = self.g;
        let Register { name, clock, d, direct, synchroniser, .. } = &g.registers[r];
        let foreign = self.foreign(direct, clock);
        if foreign.is_empty() {
            return;
        }
        let (from, source) = self.named(foreign[0], clock);
        if !synchroniser {
            return self.fault(format!("{source} ({from}) resets {name} ({clock}) without the clock, and its end is not synchronised"));
        }
        if direct.iter().any(|b| g.straight(b).is_none() && *b != Bit::Const) || foreign.len() > 1 {
            return self.fault(format!("logic between {source} ({from}) and the reset of the synchroniser {name} ({clock})"));
        }
        // The second register of one whose first is judged.
        let of_first = g.registers.iter().position(|f| f.synchroniser && f.q == *d && f.direct == *direct && f.clock == *clock);
        if of_first.is_some() {
            return;
        }
        if d.iter().any(|b| *b != Bit::Const) {
            self.fault(format!("{name} ({clock}) takes data, and {source} ({from}) resets it without the clock"));
        }
        match self.second(r) {
            Some(s) if g.registers[s].direct == *direct => self.record(Kind::Reset, foreign[0], r, 1),
            _ => self.fault(format!("{name} ({clock}), reset by {source} ({from}), has no second register")),
        }
    }

    /// One signal through two synchronisers into one clock: they may disagree for a cycle.
    fn twice(&mut self) {
        let mut seen: BTreeMap<(Start, String), usize> = BTreeMap::new();
        let mut faults = Vec::new();
        for c in &self.crossings {
            if let Some(other) = seen.insert((c.source, c.to.clone()), c.first).filter(|_| !matches!(c.source, Start::Memory(_))) {
                let names = [other, c.first].map(|r| &self.g.registers[r].name);
                faults.push(format!("{} is synchronised twice: by {} and {}", self.g.origin(c.source).1, names[0], names[1]));
            }
        }
        faults.into_iter().for_each(|f| self.fault(f));
    }

    /// Places that depend on two synchronisers whose sources have one clock.
    fn meetings(&mut self) {
        let g = self.g;
        let ends: BTreeMap<usize, &Crossing> = self.crossings.iter().filter_map(|c| Some((self.second(c.first)?, c))).collect();
        let mut found = BTreeSet::new();
        let registers = g.registers.iter().map(|r| [&r.d[..], &r.control, &r.direct].concat());
        for bits in registers.chain(g.ends.iter().map(|e| e.bits.clone())) {
            let starts = g.starts(&bits);
            let here: BTreeSet<usize> = starts.iter().filter_map(|s| if let Start::Register(r, _) = s { Some(*r) } else { None }).filter(|r| ends.contains_key(r)).collect();
            for a in &here {
                for b in here.iter().filter(|b| *b > a) {
                    let (x, y) = (ends[a], ends[b]);
                    if x.from == y.from && x.from.is_some() {
                        let mut names = [&g.registers[x.first].name, &g.registers[y.first].name];
                        names.sort();
                        found.insert(format!("{}: {} meets {} in {}, both of {}", self.module, names[0], names[1], x.to, shown(&x.from)));
                    }
                }
            }
        }
        self.out.meetings.extend(found);
    }
}
