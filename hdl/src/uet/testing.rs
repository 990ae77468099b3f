//! What tests of these blocks share: orders and answers of a block that has one at a time.
use crate::tb::{Fields, Sink, Source, Tb};
use rust_hdl::prelude::Synth;

/// The ports `s` and `m` of a block.
pub struct Asked {
    ask: Fields,
    told: Fields,
    source: Source,
    sink: Sink,
}

/// Cycles after which a block has hung.
const PATIENCE: u64 = 20_000;

impl Asked {
    /// Ports of a block that takes `A` and answers with `B`, stalled at random.
    pub fn new<A: Synth + 'static, B: Synth + 'static>(tb: &mut Tb) -> Self {
        Self { ask: Fields::of::<A>(), told: Fields::of::<B>(), source: tb.source("s", 30), sink: tb.sink("m", 30) }
    }

    /// Gives an order and waits for its answer.
    pub fn ask(&self, tb: &mut Tb, order: &[(&str, u128)]) -> Told<'_> {
        self.source.push(self.ask.pack(order));
        tb.run_until(PATIENCE, |_| !self.sink.is_empty());
        Told { fields: &self.told, words: self.sink.pop().unwrap() }
    }
}

/// An answer.
pub struct Told<'a> {
    fields: &'a Fields,
    words: Vec<u32>,
}

impl Told<'_> {
    /// One of its fields.
    pub fn get(&self, name: &str) -> u128 {
        self.fields.get(&self.words, name)
    }

    /// The same, of 32 bits at most.
    pub fn word(&self, name: &str) -> u32 {
        self.get(name) as u32
    }

    /// The same, of one bit.
    pub fn is(&self, name: &str) -> bool {
        self.get(name) == 1
    }
}
