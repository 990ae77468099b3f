//! What a block counts, by whose events they are.

use super::Tb;
use std::collections::BTreeMap;

/// Events by function and name.
pub type Events = BTreeMap<(u64, &'static str), u64>;

/// Collects the pulses of a `stat`, each with the function that stands beside it.
pub struct Counted {
    stat: &'static str,
    function: &'static str,
    names: &'static [&'static str],
    pub events: Events,
}

impl Counted {
    /// Bit i of the port `stat` is `names[i]`, of the function on the port `function`.
    pub fn new(stat: &'static str, function: &'static str, names: &'static [&'static str]) -> Counted {
        Counted { stat, function, names, events: Events::new() }
    }

    /// Takes what the ports show in this cycle.
    pub fn see(&mut self, tb: &Tb) {
        let (stat, function) = (tb.get(self.stat), tb.get(self.function));
        for (i, name) in self.names.iter().enumerate().filter(|(i, _)| stat >> i & 1 == 1) {
            *self.events.entry((function, name)).or_default() += stat >> i & 1;
        }
    }

    /// Events of a name, whoever's.
    pub fn all(&self, name: &str) -> u64 {
        self.events.iter().filter(|((_, of), _)| *of == name).map(|(_, n)| n).sum()
    }
}
