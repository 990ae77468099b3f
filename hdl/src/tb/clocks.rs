//! The test bench for blocks with several clocks.
//!
//! Edges come one at a time, whichever clock is due; periods are in ps and every one is off by up to a sixteenth, so that
//! edges of equal or related clocks drift past each other. Streams belong to a clock: driven before its edges, sampled at them.

use super::build;
use ferric_streams::{port_name, AxisSink, AxisSource, Lane, Port, Rng, Sink, Source, AXIS_FIELDS};
use rust_hdl::prelude::Block;
use std::rc::Rc;
use verilator_sys::{Model, PortId};

/// A clock's input, the reset input that belongs to it, and its period in ps.
pub type ClockSpec<'a> = (&'a str, Option<&'a str>, u64);

struct Domain {
    clock: PortId,
    reset: Option<PortId>,
    period: u64,
    /// Time of its next edge, ps.
    due: u64,
    edges: u64,
    ports: Vec<Rc<dyn Port>>,
}

/// A running block with several clocks. Traces are not written.
pub struct Clocks {
    model: Model,
    name: String,
    seed: u64,
    rng: Rng,
    domains: Vec<Domain>,
}

/// Edges for which each reset is held.
const RESET_EDGES: u64 = 12;

impl Clocks {
    /// Emits, lints and builds `block`, then holds all resets for a while. Seed as in [`super::Tb::new`]; the ratio of the
    /// periods is part of it.
    pub fn new<B: Block>(name: &str, block: B, clocks: &[ClockSpec]) -> Clocks {
        let verilog = crate::emit::emit(name, block).unwrap_or_else(|e| panic!("{e}"));
        Clocks::from_verilog(name, &verilog, clocks)
    }

    /// As [`Clocks::new`], but the synchroniser (`prim::cross::Sync`) called `late` notices everything an edge later, as one does whose input
    /// changes together with its clock. The others do not: what they and `late` say of one moment comes apart.
    pub fn late<B: Block>(name: &str, block: B, clocks: &[ClockSpec], late: &str) -> Clocks {
        let verilog = crate::emit::emit(name, block).unwrap_or_else(|e| panic!("{e}"));
        let start = verilog.find(&format!("module {name}${late}(")).unwrap_or_else(|| panic!("{name} has no `{late}`"));
        let (head, tail) = verilog.split_at(start);
        let meta = tail.lines().find(|line| line.ends_with(" meta;")).unwrap_or_else(|| panic!("`{late}` is no synchroniser"));
        let tail = tail.replacen(meta, &format!("{meta}\n{}", meta.replace(" meta;", " early;")), 1).replacen("meta <= x;", "early <= x;\n  meta <= early;", 1);
        Clocks::from_verilog(name, &format!("{head}{tail}"), clocks)
    }

    fn from_verilog(name: &str, verilog: &str, clocks: &[ClockSpec]) -> Clocks {
        let fixed = name.bytes().fold(clocks.iter().map(|c| c.2).sum(), |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
        let seed = super::seed(fixed);
        let mut rng = Rng::new(seed);
        let model = build(name, verilog, None);
        let port = |name: &str| model.port(name).unwrap_or_else(|e| panic!("{e}"));
        let domain = |&(clock, reset, period): &ClockSpec| {
            let reset = reset.map(&port);
            Domain { clock: port(clock), reset, period, due: rng.below(period), edges: 0, ports: Vec::new() }
        };
        let domains = clocks.iter().map(domain).collect();
        let mut tb = Clocks { model, name: name.into(), seed, rng, domains };
        tb.reset(&(0..clocks.len()).collect::<Vec<_>>());
        tb
    }

    /// Holds the resets of these clocks together, for at least twelve edges of every clock. Streams go on at the others.
    pub fn reset(&mut self, clocks: &[usize]) {
        for &c in clocks {
            let domain = &self.domains[c];
            domain.ports.iter().for_each(|p| p.quiet(&mut self.model));
            if let Some(reset) = domain.reset {
                self.model.set(reset, 1);
            }
        }
        let start: Vec<u64> = self.domains.iter().map(|d| d.edges).collect();
        let held: Vec<Vec<Rc<dyn Port>>> = clocks.iter().map(|&c| std::mem::take(&mut self.domains[c].ports)).collect();
        while self.domains.iter().zip(&start).any(|(d, s)| d.edges < s + RESET_EDGES) {
            self.step();
        }
        for (&c, ports) in clocks.iter().zip(held) {
            self.domains[c].ports = ports;
            if let Some(reset) = self.domains[c].reset {
                self.model.set(reset, 0);
            }
        }
    }

    /// As [`super::Tb::source_of`], on clock number `clock`.
    pub fn source_of(&mut self, clock: usize, prefix: &str, fields: &[&str], stall: u32) -> Source {
        let source = Source::new(Lane::new(&self.model, prefix, fields, true, stall));
        self.domains[clock].ports.push(source.port());
        source
    }

    /// As [`super::Tb::sink_of`], on clock number `clock`.
    pub fn sink_of(&mut self, clock: usize, prefix: &str, fields: &[&str], stall: u32) -> Sink {
        let sink = Sink::new(Lane::new(&self.model, prefix, fields, false, stall));
        self.domains[clock].ports.push(sink.port());
        sink
    }

    /// Drives frames into an AXI4-Stream port.
    pub fn axis_source(&mut self, clock: usize, prefix: &str, stall: u32) -> AxisSource {
        let bytes = self.width(&port_name(prefix, "keep")) as usize;
        let seed = self.rng.next_u64();
        AxisSource::new(self.source_of(clock, prefix, &AXIS_FIELDS, stall), bytes, seed)
    }

    /// Collects frames from an AXI4-Stream port.
    pub fn axis_sink(&mut self, clock: usize, prefix: &str, stall: u32) -> AxisSink {
        let bytes = self.width(&port_name(prefix, "keep")) as usize;
        AxisSink::new(self.sink_of(clock, prefix, &AXIS_FIELDS, stall), bytes)
    }

    /// The clock whose edge [`Clocks::step`] will be. Inputs set now are seen by that edge.
    pub fn upcoming(&self) -> usize {
        let due = self.domains.iter().enumerate().min_by_key(|(_, d)| d.due);
        due.map_or(0, |(n, _)| n)
    }

    /// The next edge, whichever clock's it is; says whose it was.
    pub fn step(&mut self) -> usize {
        let n = self.upcoming();
        for port in &self.domains[n].ports {
            port.drive(&mut self.model, &mut self.rng);
        }
        self.model.set(self.domains[n].clock, 0);
        self.model.eval();
        if self.rng.below(4) == 0 {
            self.check_registered(n);
        }
        for port in &self.domains[n].ports {
            if let Err(fault) = port.sample(&self.model) {
                panic!("{} edge {} of clock {n}: {fault}", self.name, self.domains[n].edges);
            }
        }
        self.model.set(self.domains[n].clock, 1);
        self.model.eval();
        let domain = &mut self.domains[n];
        domain.edges += 1;
        let slack = domain.period / 16;
        domain.due += domain.period - slack + self.rng.below(2 * slack + 1);
        n
    }

    /// Turns the inputs of one stream of this clock over and looks whether any output of any clock follows.
    fn check_registered(&mut self, clock: usize) {
        if self.domains[clock].ports.is_empty() {
            return;
        }
        let all: Vec<_> = self.domains.iter().flat_map(|d| &d.ports).cloned().collect();
        let before: Vec<_> = all.iter().map(|p| p.outputs(&self.model)).collect();
        let chosen = self.rng.below(self.domains[clock].ports.len() as u64) as usize;
        let chosen = self.domains[clock].ports[chosen].clone();
        chosen.disturb(&mut self.model, &mut self.rng);
        self.model.eval();
        for (port, before) in all.iter().zip(&before) {
            assert!(port.outputs(&self.model) == *before, "{}: combinational path from `{}` to `{}`", self.name, chosen.prefix(), port.prefix());
        }
        chosen.restore(&mut self.model);
        self.model.eval();
    }

    /// Edges until `done` holds; panics after `limit` edges of clock 0.
    pub fn run_until(&mut self, limit: u64, mut done: impl FnMut(&mut Clocks) -> bool) {
        let end = self.domains[0].edges + limit;
        while !done(self) {
            assert!(self.domains[0].edges < end, "{}: nothing came of it in {limit} edges of clock 0", self.name);
            self.step();
        }
    }

    /// `count` edges of clock number `clock`.
    pub fn run(&mut self, clock: usize, count: u64) {
        let end = self.domains[clock].edges + count;
        while self.domains[clock].edges < end {
            self.step();
        }
    }

    /// Edges of a clock since the start.
    pub fn edges(&self, clock: usize) -> u64 {
        self.domains[clock].edges
    }

    /// Writes an input of up to 64 bits; it holds until written again.
    pub fn set(&mut self, port: &str, value: u64) {
        let id = self.id(port);
        self.model.set(id, value);
    }

    /// Reads a port of up to 64 bits: after [`Clocks::step`], what it shows after the edge.
    pub fn get(&self, port: &str) -> u64 {
        self.model.get(self.id(port))
    }

    /// Random numbers that follow from the seed.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    fn width(&self, port: &str) -> u32 {
        self.model.info(self.id(port)).width
    }

    fn id(&self, port: &str) -> PortId {
        self.model.port(port).unwrap_or_else(|e| panic!("{e}"))
    }
}

impl Drop for Clocks {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let edges: Vec<u64> = self.domains.iter().map(|d| d.edges).collect();
            eprintln!("{}: failed at edges {edges:?} with seed {}; replay: FERRIC_SEED={}", self.name, self.seed, self.seed);
        }
    }
}
