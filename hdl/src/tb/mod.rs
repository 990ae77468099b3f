//! The test bench every block test uses: emit, lint, Verilate, then drive ports under random stalls.
//!
//! See `hdl/README.md`, "Testing a block".

mod clocks;
mod counted;
mod fields;
#[cfg(test)]
mod tests;

pub use clocks::{ClockSpec, Clocks};
pub use counted::{Counted, Events};
pub use ferric_streams::{AxisBeat, AxisSink, AxisSource, IntoWords, Rng, Sink, Source};
pub use fields::Fields;

use ferric_streams::{port_name, Lane, Port, AXIS_FIELDS};
use rust_hdl::prelude::Block;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use verilator_sys::{cache_dir, Builder, Direction, Model, OptLevel, PortId};

/// Cycles for which `reset` is held.
const RESET_CYCLES: u32 = 4;

/// A running block with its stream drivers and monitors.
pub struct Tb {
    model: Model,
    name: String,
    seed: u64,
    rng: Rng,
    ports: Vec<Rc<dyn Port>>,
    registered: bool,
}

impl Tb {
    /// Emits, lints and builds `block` (cached by content), then resets it. `name` becomes the Verilog top: one
    /// name per block and width, e.g. `skid64`.
    ///
    /// The seed is `FERRIC_SEED` if set, else fixed by the name. With `FERRIC_TRACE` set the run is traced into
    /// `target/verilated/traces/<name>-<seed>.fst`. Panics with the reason if anything fails.
    pub fn new<B: Block>(name: &str, block: B) -> Tb {
        let fixed = name.bytes().fold(1, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
        Tb::with_seed(name, block, fixed)
    }

    /// Like [`Tb::new`] with a seed of the test's choice (`FERRIC_SEED` still wins).
    pub fn with_seed<B: Block>(name: &str, block: B, seed: u64) -> Tb {
        let verilog = crate::emit::emit(name, block).unwrap_or_else(|e| panic!("{e}"));
        Tb::from_verilog(name, &verilog, seed)
    }

    /// A test bench for Verilog text that is there already.
    pub fn from_verilog(name: &str, verilog: &str, seed: u64) -> Tb {
        let seed = self::seed(seed);
        let trace = std::env::var_os("FERRIC_TRACE").map(|_| trace_path(name, seed));
        let model = build(name, verilog, trace.as_deref());
        let mut tb = Tb { model, name: name.into(), seed, rng: Rng::new(seed), ports: Vec::new(), registered: true };
        tb.reset();
        tb
    }

    /// Drives message port `prefix` (`$data`, `$valid`, `$ready`) into the block, idle in `stall` percent of cycles.
    /// Without a `$ready` port every message counts as taken.
    pub fn source(&mut self, prefix: &str, stall: u32) -> Source {
        self.source_of(prefix, &["data"], stall)
    }

    /// Drives a valid/ready port with several payload fields, e.g. `["addr", "len"]`. A prefix that ends in `_` brings
    /// its own separator: `source_of("r_", &["id", "data"], 20)` means `r_id`, `r_data`, `r_valid`, `r_ready`.
    pub fn source_of(&mut self, prefix: &str, fields: &[&str], stall: u32) -> Source {
        let source = Source::new(Lane::new(&self.model, prefix, fields, true, stall));
        self.ports.push(source.port());
        source
    }

    /// Monitors message port `prefix` of the block, not ready in `stall` percent of cycles. Without a `$ready` port
    /// every valid cycle is one message.
    pub fn sink(&mut self, prefix: &str, stall: u32) -> Sink {
        self.sink_of(prefix, &["data"], stall)
    }

    /// Monitors a valid/ready port with several payload fields.
    pub fn sink_of(&mut self, prefix: &str, fields: &[&str], stall: u32) -> Sink {
        let sink = Sink::new(Lane::new(&self.model, prefix, fields, false, stall));
        self.ports.push(sink.port());
        sink
    }

    /// Drives frames into AXI4-Stream port `prefix` (`$data`, `$keep`, `$last`, `$valid`, `$ready`).
    pub fn axis_source(&mut self, prefix: &str, stall: u32) -> AxisSource {
        let bytes = self.width(&port_name(prefix, "keep")) as usize;
        let seed = self.rng.next_u64();
        AxisSource::new(self.source_of(prefix, &AXIS_FIELDS, stall), bytes, seed)
    }

    /// Collects frames from AXI4-Stream port `prefix`.
    pub fn axis_sink(&mut self, prefix: &str, stall: u32) -> AxisSink {
        let bytes = self.width(&port_name(prefix, "keep")) as usize;
        AxisSink::new(self.sink_of(prefix, &AXIS_FIELDS, stall), bytes)
    }

    /// Switches off the check that no stream output follows an input within the cycle.
    pub fn allow_combinational(&mut self) {
        self.registered = false;
    }

    /// One clock cycle: [`Tb::begin`], then [`Tb::end`]. Ports read after it show the state after the edge.
    pub fn cycle(&mut self) {
        self.begin();
        self.end();
    }

    /// First half of a cycle: all streams drive, the model settles. Ports read now show what the edge will sample.
    pub fn begin(&mut self) {
        for port in &self.ports {
            port.drive(&mut self.model, &mut self.rng);
        }
        self.model.settle();
        if self.registered && !self.ports.is_empty() && self.rng.below(4) == 0 {
            self.check_registered();
        }
    }

    /// Second half of a cycle: all streams sample and check the protocol, then the clock rises.
    pub fn end(&mut self) {
        for port in &self.ports {
            if let Err(fault) = port.sample(&self.model) {
                panic!("{} cycle {}: {fault}", self.name, self.model.cycles());
            }
        }
        self.model.edge();
    }

    /// Turns one stream's inputs over and looks whether any stream's outputs follow.
    fn check_registered(&mut self) {
        let before: Vec<_> = self.ports.iter().map(|port| port.outputs(&self.model)).collect();
        let chosen = self.rng.below(self.ports.len() as u64) as usize;
        self.ports[chosen].disturb(&mut self.model, &mut self.rng);
        self.model.settle();
        for (port, before) in self.ports.iter().zip(&before) {
            let (name, from) = (port.prefix(), self.ports[chosen].prefix());
            let cycle = self.model.cycles();
            let same = port.outputs(&self.model) == *before;
            assert!(same, "{} cycle {cycle}: combinational path from `{from}` to an output of `{name}`", self.name);
        }
        self.ports[chosen].restore(&mut self.model);
        self.model.settle();
    }

    /// `count` cycles.
    pub fn run(&mut self, count: u64) {
        (0..count).for_each(|_| self.cycle());
    }

    /// Cycles until `done` holds; panics after `limit` cycles.
    pub fn run_until(&mut self, limit: u64, mut done: impl FnMut(&mut Tb) -> bool) {
        let start = self.model.cycles();
        while !done(self) {
            let spent = self.model.cycles() - start;
            assert!(spent < limit, "{}: nothing came of it in {limit} cycles", self.name);
            self.cycle();
        }
    }

    /// Cycles from the one in which what was just pushed is taken (an idle block takes it at once) to the one in which
    /// `sink` takes its next message, at most `limit`.
    pub fn latency(&mut self, sink: &Sink, limit: u64) -> u64 {
        let (start, before) = (self.cycles(), sink.taken());
        self.run_until(limit + 2, |_| sink.taken() > before);
        self.cycles() - start - 1
    }

    /// Holds `reset` (if the block has one) for a few cycles with all streams quiet. Queued messages stay queued;
    /// a message being offered is offered again.
    pub fn reset(&mut self) {
        for port in &self.ports {
            port.quiet(&mut self.model);
        }
        let reset = self.model.try_port("reset").filter(|id| self.model.info(*id).direction == Direction::In);
        if let Some(reset) = reset {
            self.model.set(reset, 1);
            (0..RESET_CYCLES).for_each(|_| self.model.tick());
            self.model.set(reset, 0);
        }
    }

    /// Writes an input of up to 64 bits; it holds until written again.
    pub fn set(&mut self, port: &str, value: u64) {
        let id = self.id(port);
        self.model.set(id, value);
    }

    /// Writes an input of any width, least significant word first; missing words are zero.
    pub fn set_wide(&mut self, port: &str, value: impl IntoWords) {
        let id = self.id(port);
        let mut words = value.into_words();
        let len = self.model.info(id).width.div_ceil(32) as usize;
        assert!(words.iter().skip(len).all(|word| *word == 0), "{words:x?} does not fit `{port}`");
        words.resize(len, 0);
        self.model.set_wide(id, &words);
    }

    /// Reads a port of up to 64 bits.
    pub fn get(&self, port: &str) -> u64 {
        self.model.get(self.id(port))
    }

    /// Reads a port of any width, least significant word first.
    pub fn get_wide(&self, port: &str) -> Vec<u32> {
        let id = self.id(port);
        let mut words = vec![0; self.model.info(id).width.div_ceil(32) as usize];
        self.model.get_wide(id, &mut words);
        words
    }

    /// Width of a port in bits.
    pub fn width(&self, port: &str) -> u32 {
        self.model.info(self.id(port)).width
    }

    /// Clock edges since power-up, reset included.
    pub fn cycles(&self) -> u64 {
        self.model.cycles()
    }

    /// The seed in use.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Random numbers that follow from the seed.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// The model itself.
    pub fn model(&mut self) -> &mut Model {
        &mut self.model
    }

    fn id(&self, port: &str) -> PortId {
        self.model.port(port).unwrap_or_else(|e| panic!("{e}"))
    }
}

/// Lints, mutates when asked to, Verilates and starts `verilog`. Panics with the reason if anything fails.
fn build(name: &str, verilog: &str, trace: Option<&Path>) -> Model {
    let mutated = crate::mutants::requested(verilog);
    let broken = if mutated.is_some() { crate::mutants::BROKEN } else { "the model" };
    let mut builder = Builder::new(mutated.as_deref().unwrap_or(verilog), name).opt(OptLevel::O1).trace(trace.is_some());
    // A mutant is for the test to catch, not for the gate.
    if mutated.is_none() {
        builder = builder.judge(crate::lint::RULES, crate::lint::gate);
    }
    let library = builder.build();
    library.and_then(|library| library.instance(trace)).unwrap_or_else(|e| panic!("{broken}: {e}"))
}

/// `FERRIC_SEED` if set, else `fixed`.
fn seed(fixed: u64) -> u64 {
    std::env::var("FERRIC_SEED").ok().map_or(fixed, |text| parse_seed(&text))
}

impl Drop for Tb {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (name, seed) = (&self.name, self.seed);
            eprintln!("{name}: failed in cycle {} with seed {seed}", self.model.cycles());
            eprintln!("replay: FERRIC_SEED={seed} cargo test -p ferric-hdl <this test>; FERRIC_TRACE=1 adds");
            eprintln!("  {}", trace_path(name, seed).display());
        }
    }
}

fn trace_path(name: &str, seed: u64) -> PathBuf {
    let dir = cache_dir().join("traces");
    // If this fails, opening the trace says so.
    let _ = std::fs::create_dir_all(&dir);
    dir.join(format!("{name}-{seed}.fst"))
}

fn parse_seed(text: &str) -> u64 {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.unwrap_or_else(|e| panic!("FERRIC_SEED={text}: {e}"))
}
