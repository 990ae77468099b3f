//! A block as a list: one line per instance and one per wire. See README.md.

mod atoms;
mod block;
mod pools;
pub mod ports;
#[cfg(test)]
mod tests;
pub mod waits;
mod wiring;

pub use block::{AnyBlock, Assembled};
pub use ferric_model::admin::program::{TableName, NO_TABLE};
pub use pools::{up_to_most, Share, FEWEST_PORTS, MOST_CLIENTS};
pub use waits::WaitGraph;

use rust_hdl::prelude::*;
use std::collections::BTreeMap;

/// Which ports of a block may wait for which others: `docs/deadlock.md`, "How the graph is made".
pub type Waits = &'static [(&'static str, &'static [&'static str])];

/// Makes the block of an instance. It is asked once per assembly, in the order of the list (stalls at random take their seeds in that order).
type Make = Box<dyn Fn(&Assembly) -> block::AnyBlock>;

/// One line of the list: a block and what the card knows about it.
pub struct Instance {
    /// The part of the list that it belongs to: see [`Assembly::part`].
    pub part: &'static str,
    /// Its name in the assembly and in the Verilog.
    pub name: String,
    /// Name of its block among the synthesis tops, without the width; `None`: it is part of the whole only (a register).
    pub top: Option<String>,
    /// The Rust type of the block: two cards whose instances have one type share a top.
    pub kind: &'static str,
    /// Whether what it is built for differs between cards though the type does not.
    pub sized: bool,
    /// Which of its ports wait for which.
    pub waits: Waits,
    /// Inputs that never wait here, whatever `waits` says of the block.
    pub never_waits: Vec<&'static str>,
    make: Make,
}

impl Instance {
    /// The block goes by another name among the synthesis tops.
    pub fn top(&mut self, name: &str) -> &mut Self {
        self.top = Some(name.into());
        self
    }
    /// It is built for numbers that its type does not show.
    pub fn sized(&mut self) -> &mut Self {
        self.sized = true;
        self
    }
    /// Its ports may wait as `waits` says.
    pub fn waits(&mut self, waits: Waits) -> &mut Self {
        self.waits = waits;
        self
    }
    /// The input `port` of this instance never waits: it has a place for whatever can come.
    pub fn never_waits(&mut self, port: &'static str) -> &mut Self {
        self.never_waits.push(port);
        self
    }
}

/// One line of the list: what is joined.
#[derive(Clone, Debug, PartialEq)]
pub enum Wire {
    /// A port of an instance, and one of another instance: of the same fields, one giving what the other takes.
    Join { from: String, to: String },
    /// A port of an instance as a port of the assembly.
    Expose { port: String, inner: String },
    /// An event vector of an instance into the counters behind those before it. Whose events they are says a [`Wire::Join`].
    Count { events: String, width: usize },
}

/// Most tables of a card: the control switch has no more ports.
pub const MOST_TABLES: usize = 32;

/// A table that the control bus reaches. Its number there is its place among the tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub name: TableName,
    /// The part of the list that it belongs to.
    pub part: &'static str,
    /// The instance that owns it.
    pub instance: String,
}

/// The counters of one block.
#[derive(Clone, Debug, PartialEq)]
pub struct Counters {
    /// The name in front of each counter.
    pub block: &'static str,
    pub events: &'static [&'static str],
    /// The place at the counting instance by which they say whose they are; `None`: they are the card's.
    pub whose: Option<usize>,
    /// The part of the list that they belong to.
    pub part: &'static str,
}

/// The list. Order matters in one place only: events are counted, and tables are numbered at the control switch, in the order of their lines.
#[derive(Default)]
pub struct Assembly {
    inputs: Vec<(String, block::AnyBlock)>,
    pub instances: Vec<Instance>,
    pub wires: Vec<Wire>,
    pub tables: Vec<Table>,
    pub counters: Vec<Counters>,
    /// Outputs that nobody listens to.
    pub open: Vec<String>,
    /// Ports that a part of the list may use or leave alone.
    optional: Vec<String>,
    pools: Vec<pools::Pool>,
    chains: Vec<pools::Chain>,
    /// The part whose lines are being added.
    part: &'static str,
    /// The input, or output of an instance, that resets every instance which has a `reset`.
    reset: Option<String>,
    /// The instance that counts, by its input of events, and the bits of that.
    counts: Option<(String, usize)>,
    /// Its inputs, with a `*` for the number, for the functions whose events they are.
    whose: Option<String>,
    /// The instance that routes the control bus.
    switch: Option<String>,
    /// What was wrong with the list as it was written.
    faults: Vec<String>,
}

impl Assembly {
    /// An input of the assembly of type `T`; `clock` is the clock of every instance that has a port of that name.
    pub fn input<T: Synth + 'static>(&mut self, name: &str) {
        self.inputs.push((name.into(), block::AnyBlock::new(Signal::<In, T>::default())));
    }

    /// An instance of the block that `make` builds.
    pub fn instance<B: Block + 'static>(&mut self, name: &str, make: impl Fn() -> B + 'static) -> &mut Instance {
        self.add(name, std::any::type_name::<B>(), Box::new(move |_| block::AnyBlock::new(make())))
    }

    /// An instance of the block type `kind`, of which the complete list decides for how many it is built.
    pub fn instance_by(&mut self, name: &str, kind: &'static str, make: impl Fn(&Assembly) -> block::AnyBlock + 'static) -> &mut Instance {
        self.add(name, kind, Box::new(make))
    }

    fn add(&mut self, name: &str, kind: &'static str, make: Make) -> &mut Instance {
        if self.instances.iter().any(|i| i.name == name) {
            self.faults.push(format!("two instances are called {name}"));
        }
        self.instances.push(Instance { part: self.part, name: name.into(), top: Some(name.into()), kind, sized: false, waits: &[], never_waits: Vec::new(), make });
        let last = self.instances.len() - 1;
        &mut self.instances[last]
    }

    /// A register of its own: `name.q` follows `from` one cycle later.
    pub fn register<T: Synth + 'static>(&mut self, name: &str, from: &str) {
        self.instance(name, DFF::<T>::default).top = None;
        self.join(from, &format!("{name}.d"));
    }

    /// Wires a port of one instance, or an input of the assembly, to a port of another. A port is `instance.port`, one of several `instance.port[0]`, a part of one `instance.port.valid`.
    pub fn join(&mut self, from: &str, to: &str) {
        self.wires.push(Wire::Join { from: from.into(), to: to.into() });
    }

    /// The same for ports `0..n`, where both names hold a `*` for the number.
    pub fn join_each(&mut self, n: usize, from: &str, to: &str) {
        (0..n).for_each(|i| self.join(&from.replace('*', &i.to_string()), &to.replace('*', &i.to_string())));
    }

    /// The port `inner` of an instance is the assembly's port `port`.
    pub fn expose(&mut self, port: &str, inner: &str) {
        self.wires.push(Wire::Expose { port: port.into(), inner: inner.into() });
    }

    /// The ports `names` of `instance` are the assembly's, with `prefix` in front.
    pub fn expose_all(&mut self, prefix: &str, instance: &str, names: &[&str]) {
        names.iter().for_each(|name| self.expose(&format!("{prefix}{name}"), &format!("{instance}.{name}")));
    }

    /// All of `inner`, whose instances get `prefix` in front of their names and have no tops of their own. What it exposes is free to be joined: the instance's port by the name of its port.
    pub fn absorb(&mut self, prefix: &str, inner: Assembly) -> BTreeMap<String, String> {
        let mut exposed = BTreeMap::new();
        self.faults.extend(inner.faults);
        for instance in inner.instances {
            let name = format!("{prefix}{}", instance.name);
            if self.instances.iter().any(|i| i.name == name) {
                self.faults.push(format!("two instances are called {name}"));
            }
            self.instances.push(Instance { part: self.part, name, top: None, ..instance });
        }
        for wire in inner.wires {
            match wire {
                Wire::Join { from, to } => self.join(&format!("{prefix}{from}"), &format!("{prefix}{to}")),
                Wire::Expose { port, inner } => drop(exposed.insert(port, format!("{prefix}{inner}"))),
                Wire::Count { events, .. } => self.faults.push(format!("{events} of {prefix} cannot be counted")),
            }
        }
        self.open.extend(inner.open.iter().map(|port| format!("{prefix}{port}")));
        self.optional.extend(inner.optional.iter().map(|port| format!("{prefix}{port}")));
        exposed
    }

    /// `instance` routes the control bus of the admin engine to the tables.
    pub fn control_switch(&mut self, instance: &str) {
        self.switch = Some(instance.into());
    }

    /// The lines that follow belong to the part called `name`: the chassis or an engine.
    pub fn part(&mut self, name: &'static str) {
        self.part = name;
    }

    /// `instance` owns the table called `name`; its ports are `s_ctl` and `m_ctl`. It gets the next number on the control bus.
    pub fn table(&mut self, name: impl Into<TableName>, instance: &str) {
        let (name, n, switch) = (name.into(), self.tables.len(), self.switch.clone());
        let Some(switch) = switch else { return self.faults.push(format!("the table of {instance} stands before the control switch")) };
        if self.tables.iter().any(|t| t.name == name) {
            self.faults.push(format!("two tables are called {name}"));
        }
        self.tables.push(Table { name, part: self.part, instance: instance.into() });
        self.join(&format!("{switch}.m_req[{n}]"), &format!("{instance}.s_ctl"));
        self.join(&format!("{instance}.m_ctl"), &format!("{switch}.s_resp[{n}]"));
    }

    /// `port` and `port`_valid of an instance see every request for the table called `name`, without a say.
    pub fn watch(&mut self, name: impl Into<TableName>, port: &str) {
        let name = name.into();
        match (self.tables.iter().position(|t| t.name == name), self.switch.clone()) {
            (Some(n), Some(switch)) => {
                self.join(&format!("{switch}.m_req[{n}].data"), port);
                self.join(&format!("{switch}.m_req[{n}].valid"), &format!("{port}_valid"));
            }
            _ => self.faults.push(format!("{port} watches table {name}, which is not there yet")),
        }
    }

    /// Every instance with an input `reset` gets `from`.
    pub fn reset_by(&mut self, from: &str) {
        self.reset = Some(from.into());
    }

    /// Events go to the input `port` of an instance, which has `width` bits, and whose they are to its inputs `whose`, in which a `*` stands for the
    /// numbers up to `places`.
    pub fn counted_by(&mut self, port: &str, width: usize, whose: &str, places: usize) {
        self.counts = Some((port.into(), width));
        self.whose = Some(whose.into());
        (0..places).for_each(|place| self.optional(&whose.replace('*', &place.to_string())));
    }

    /// `events`, an output of an instance with a bit for each of `names`, is counted as `block.name`. They are the card's: function 0's, which is the only one to read of them.
    pub fn count(&mut self, block: &'static str, events: &str, names: &'static [&'static str]) {
        self.counters.push(Counters { block, events: names, whose: None, part: self.part });
        self.wires.push(Wire::Count { events: events.into(), width: names.len() });
    }

    /// The same of events that belong to the function on the output `function` of an instance, in the cycle in which they happen.
    pub fn count_by(&mut self, block: &'static str, events: &str, function: &str, names: &'static [&'static str]) {
        self.count(block, events, names);
        let place = self.counters.iter().filter(|c| c.whose.is_some()).count();
        if let (Some(whose), Some(counters)) = (self.whose.clone(), self.counters.last_mut()) {
            counters.whose = Some(place);
            self.join(function, &whose.replace('*', &place.to_string()));
        }
    }

    /// Nobody listens to the output `port` of an instance, and that is meant.
    pub fn open(&mut self, port: &str) {
        self.open.push(port.into());
    }

    /// Parts of the list may use the port `port` of an instance or leave it alone. Then nothing is offered to it, and what it offers vanishes.
    pub fn optional(&mut self, port: &str) {
        self.optional.push(port.into());
    }

    /// The part whose instance is joined to the port `port` of another; `None`: no instance is.
    pub fn user(&self, port: &str) -> Option<&'static str> {
        let part = |end: &str| end.split_once('.').and_then(|(owner, _)| self.instances.iter().find(|i| i.name == owner)).map(|i| i.part);
        self.wires.iter().find_map(|wire| match wire {
            Wire::Join { from, to } if to == port => part(from),
            Wire::Join { from, to } if from == port => part(to),
            _ => None,
        })
    }

    /// The block of the instance called `name`.
    pub fn build(&self, name: &str) -> Option<block::AnyBlock> {
        self.instances.iter().find(|i| i.name == name).map(|i| (i.make)(self))
    }

    /// The whole as a block. Errors: what does not fit, one line each.
    pub fn assemble(mut self) -> Result<Assembled, Vec<String>> {
        self.join_chains();
        let mut unfit = self.unfit_pools();
        if self.tables.len() > MOST_TABLES {
            unfit.push(format!("{} tables, and the control switch has ports for {MOST_TABLES}", self.tables.len()));
        }
        if !unfit.is_empty() {
            // Wires are not looked at: they begin and end at blocks that cannot be built.
            return Err([self.faults, unfit].concat());
        }
        wiring::assemble(self)
    }

    /// `block.event` of every counter, in counter order.
    pub fn counter_names(&self) -> Vec<String> {
        self.counters.iter().flat_map(|c| c.events.iter().map(move |e| format!("{}.{e}", c.block))).collect()
    }
}
