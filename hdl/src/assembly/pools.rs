//! What several parts of a list share: ports of one block that go to one client each, and signals that pass through one block after the other.

use super::{block::AnyBlock, Assembly, Waits, Wire};

/// Ports of which every client gets one number.
pub(super) struct Pool {
    name: &'static str,
    /// The ports of a client, each with a `*` for its number; without one where they go to one client or to a share.
    ports: &'static [&'static str],
    /// Of each client, how much it may have at a time of what the block shares out.
    quotas: Vec<usize>,
    /// Whether the block can be built for clients with these quotas.
    fits: Fits,
    /// What stands between the ports and several clients, the part that it belongs to, and the first client's wires.
    share: Option<(Share, &'static str, Vec<usize>)>,
}

/// Says of the quotas of a pool's clients what its block cannot do.
pub type Fits = fn(&[usize]) -> Result<(), String>;

/// The quota of a client in a pool whose block shares nothing out.
const NO_QUOTA: usize = 1;

/// Most clients of a block that is built for as many as a pool has ([`for_clients`](crate::for_clients)).
pub const MOST_CLIENTS: usize = 8;

/// A block of [`for_clients`](crate::for_clients) can be built for these.
pub fn up_to_most(quotas: &[usize]) -> Result<(), String> {
    match quotas.len() {
        n if n > MOST_CLIENTS => Err(format!("{n} clients, and at most {MOST_CLIENTS} are possible")),
        _ => Ok(()),
    }
}

/// Fewest ports of such a block, if it does not say that it can do with one; those beyond the clients are left alone. (RustHDL writes a vector of one bit as a bit, which has no bit 0.)
pub const FEWEST_PORTS: usize = 2;

/// `$make` for `$clients` clients, at most [`MOST_CLIENTS`]; the constants `<N, P, ..>` in it are the number of ports, one more, two more and so on. The type of a block says how many
/// ports it has, and types are chosen before the list is known: hence one of each. With `from one`, a block that has one port, too.
#[macro_export]
macro_rules! for_clients {
    (@each $clients:expr, [$($number:literal)*] $names:tt $make:expr) => {
        match $clients {
            $($number => $crate::for_clients!(@one $number; $names $make),)*
            other => panic!("{other} clients, and at most {} are possible", $crate::assembly::MOST_CLIENTS),
        }
    };
    (@one $number:expr; [$name:ident $($more:ident)*] $make:expr) => {{
        const $name: usize = $number;
        $crate::for_clients!(@one $name + 1; [$($more)*] $make)
    }};
    (@one $number:expr; [] $make:expr) => { $make };
    (from one, $clients:expr, <$($name:ident),+> $make:expr) => {
        $crate::for_clients!(@each $clients.max(1), [1 2 3 4 5 6 7 8] [$($name)+] $make)
    };
    ($clients:expr, <$($name:ident),+> $make:expr) => {
        $crate::for_clients!(@each $clients.max($crate::assembly::FEWEST_PORTS), [2 3 4 5 6 7 8] [$($name)+] $make)
    };
}

/// A block that lets several clients use ports that are made for one.
#[derive(Clone, Copy)]
pub struct Share {
    /// Name of the instance.
    pub name: &'static str,
    /// Its type: see [`super::Instance::kind`].
    pub kind: &'static str,
    /// The block for the clients of a complete list, two at least.
    pub make: fn(&Assembly) -> AnyBlock,
    /// Its ports towards those of the pool, in their order.
    pub whole: &'static [&'static str],
    /// Its ports for a client, in the same order, each with a `*` for the client's number.
    pub each: &'static [&'static str],
    /// Which of its ports wait for which.
    pub waits: Waits,
}

/// Where a signal of a chain begins or ends.
#[derive(Clone)]
enum Side {
    /// At a port of an instance.
    Port(String),
    /// At a port of the assembly: the line that exposes it, by its place among the wires.
    Border(usize),
}

/// Signals that begin at some ports, pass through the blocks of several parts together, and end at other ports.
pub(super) struct Chain {
    name: &'static str,
    /// Of each signal: where it begins, and ends.
    strands: Vec<(Side, Option<Side>)>,
    /// Inputs and outputs of each block that they pass, one for each signal, with its place.
    links: Vec<(u32, Vec<String>, Vec<String>)>,
}

impl Assembly {
    /// Parts of the list may become clients of the pool `name`: the next of them gets `ports` with the next number for their `*`.
    pub fn pool(&mut self, name: &'static str, ports: &'static [&'static str]) {
        if self.pools.iter().any(|p| p.name == name) {
            return self.faults.push(format!("two pools are called {name}"));
        }
        if let Some(port) = ports.iter().find(|port| !port.contains('*')) {
            return self.faults.push(format!("{port} of pool {name} has no * for the number of a client"));
        }
        self.pools.push(Pool { name, ports, quotas: Vec::new(), fits: |_| Ok(()), share: None });
    }

    /// The block of the pool `name` is built for its clients as far as `fits` says nothing against it.
    pub fn pool_fits(&mut self, name: &str, fits: Fits) {
        match self.pools.iter_mut().find(|p| p.name == name) {
            Some(pool) => pool.fits = fits,
            None => self.faults.push(format!("{name}, which is no pool, fits nobody")),
        }
    }

    /// A pool whose `ports` are made for one client. One client has them to itself: nothing stands between. From the second on `share` stands
    /// between, built for as many clients as there are when the list is complete.
    pub fn shared(&mut self, name: &'static str, ports: &'static [&'static str], share: Share) {
        if self.pools.iter().any(|p| p.name == name) {
            return self.faults.push(format!("two pools are called {name}"));
        }
        if share.whole.len() != ports.len() || share.each.len() != ports.len() {
            return self.faults.push(format!("{} has not the ports of pool {name}", share.name));
        }
        if let Some(port) = share.each.iter().find(|port| !port.contains('*')) {
            return self.faults.push(format!("{port} of {} has no * for the number of a client", share.name));
        }
        ports.iter().for_each(|port| self.optional(port));
        self.pools.push(Pool { name, ports, quotas: Vec::new(), fits: up_to_most, share: Some((share, self.part, Vec::new())) });
    }

    /// Joins `ports`, one by one, with those of the next client of `pool`. Returns the client's number.
    pub fn client(&mut self, pool: &str, ports: &[&str]) -> usize {
        self.client_with(pool, NO_QUOTA, ports)
    }

    /// The same for a client that may have `quota` at a time of what the pool's block shares out.
    pub fn client_with(&mut self, pool: &str, quota: usize, ports: &[&str]) -> usize {
        let Some(found) = self.pools.iter_mut().find(|p| p.name == pool) else {
            self.faults.push(format!("{} is a client of {pool}, which is no pool", ports.join(", ")));
            return 0;
        };
        let (number, theirs) = (found.quotas.len(), found.ports);
        found.quotas.push(quota);
        let share = found.share.clone();
        if theirs.len() != ports.len() {
            self.faults.push(format!("a client of {pool} has {} ports, {} has {}", theirs.len(), ports.join(", "), ports.len()));
        }
        let Some((share, part, first)) = share else {
            ports.iter().zip(theirs).for_each(|(own, pattern)| self.join(own, &pattern.replace('*', &number.to_string())));
            return number;
        };
        if number == 0 {
            // A second client will move these wires.
            if let Some((_, _, first)) = self.pools.iter_mut().find(|p| p.name == pool).and_then(|p| p.share.as_mut()) {
                first.extend((self.wires.len()..).take(ports.len().min(theirs.len())));
            }
            ports.iter().zip(theirs).for_each(|(own, port)| self.join(own, port));
            return number;
        }
        let of_client = |port: &str, n: usize| format!("{}.{}", share.name, port.replace('*', &n.to_string()));
        if number == 1 {
            self.put_between(&share, part, theirs);
            for (wire, port) in first.into_iter().zip(share.each) {
                if let Wire::Join { to, .. } = &mut self.wires[wire] {
                    *to = of_client(port, 0);
                }
            }
        }
        ports.iter().zip(share.each).for_each(|(own, port)| self.join(own, &of_client(port, number)));
        number
    }

    /// The instance of `share` in front of `ports`. It belongs to the part that declared the pool.
    fn put_between(&mut self, share: &Share, part: &'static str, ports: &[&str]) {
        let (make, asking) = (share.make, std::mem::replace(&mut self.part, part));
        self.instance_by(share.name, share.kind, make).waits(share.waits);
        self.part = asking;
        share.whole.iter().zip(ports).for_each(|(own, port)| self.join(&format!("{}.{own}", share.name), port));
    }

    /// Clients of the pool called `name`.
    pub fn clients(&self, name: &str) -> usize {
        self.quotas(name).len()
    }

    /// What each client of the pool called `name` may have at a time.
    pub fn quotas(&self, name: &str) -> &[usize] {
        self.pools.iter().find(|p| p.name == name).map_or(&[], |p| &p.quotas)
    }

    /// Pools whose blocks cannot be built for their clients.
    pub(super) fn unfit_pools(&self) -> Vec<String> {
        self.pools.iter().filter_map(|p| (p.fits)(&p.quotas).err().map(|why| format!("pool {}: {why}", p.name))).collect()
    }

    /// Ports of places that have no client, as far as the pools' blocks have them (`exists`).
    pub(super) fn free_places(&self, exists: impl Fn(&str) -> bool) -> Vec<String> {
        let places = |port: &str, from: usize| (from..).map(|n| port.replace('*', &n.to_string())).take_while(|name| exists(name)).collect::<Vec<_>>();
        self.pools.iter().filter(|p| p.share.is_none()).flat_map(|p| p.ports.iter().flat_map(|port| places(port, p.quotas.len()))).collect()
    }

    /// A signal goes from `begin` through what [`Assembly::link`] adds to `end`.
    pub fn chain(&mut self, name: &'static str, begin: &'static str, end: &'static str) {
        self.add_chain(name, vec![(Side::Port(begin.into()), Some(Side::Port(end.into())))]);
    }

    fn add_chain(&mut self, name: &'static str, strands: Vec<(Side, Option<Side>)>) {
        self.chains.push(Chain { name, strands, links: Vec::new() });
    }

    /// Signals go together from ports of the assembly, the first of each pair, through what [`Assembly::link_all`] adds to the second.
    pub fn chain_in(&mut self, name: &'static str, ends: &[(&str, &str)]) {
        let strands = ends.iter().map(|(port, end)| (self.border(port, end), Some(Side::Port((*end).into())))).collect();
        self.add_chain(name, strands);
    }

    /// Signals go together from the first of each pair to the second, which is a port of the assembly.
    pub fn chain_out(&mut self, name: &'static str, begins: &[(&str, &str)]) {
        let strands = begins.iter().map(|(begin, port)| (Side::Port((*begin).into()), Some(self.border(port, begin)))).collect();
        self.add_chain(name, strands);
    }

    /// The port `port` of the assembly, in the order of its line: it is `inner`'s as long as nothing stands between.
    fn border(&mut self, port: &str, inner: &str) -> Side {
        self.expose(port, inner);
        Side::Border(self.wires.len() - 1)
    }

    /// As [`Assembly::chain`], but a part of the list takes what comes to the end ([`Assembly::tail`]).
    pub fn chain_from(&mut self, name: &'static str, begin: &'static str) {
        self.add_chain(name, vec![(Side::Port(begin.into()), None)]);
    }

    /// The chain `name` ends at `end`.
    pub fn tail(&mut self, name: &str, end: &str) {
        let Some(chain) = self.chains.iter_mut().find(|c| c.name == name) else {
            return self.faults.push(format!("{end} is the end of {name}, which is no chain"));
        };
        match &chain.strands[0].1 {
            Some(Side::Port(other)) => self.faults.push(format!("{name} ends at {other} and at {end}")),
            Some(Side::Border(_)) => self.faults.push(format!("{name} ends at a port of the whole and at {end}")),
            None => chain.strands[0].1 = Some(Side::Port(end.into())),
        }
    }

    /// Whether the chain `name` ends somewhere.
    pub fn has_tail(&self, name: &str) -> bool {
        self.chains.iter().any(|c| c.name == name && c.strands.iter().all(|s| s.1.is_some()))
    }

    /// Whether the chain `name` passes a block.
    pub fn has_links(&self, name: &str) -> bool {
        self.chains.iter().any(|c| c.name == name && !c.links.is_empty())
    }

    /// The chain `name` enters a block at `input` and leaves it at `output`, behind all links of a lower `place`.
    pub fn link(&mut self, name: &str, place: u32, input: &str, output: &str) {
        self.link_all(name, place, &[input], &[output]);
    }

    /// The same of a chain of several signals: its ports for each of them, in the order in which the chain was declared.
    pub fn link_all(&mut self, name: &str, place: u32, inputs: &[&str], outputs: &[&str]) {
        let Some(chain) = self.chains.iter_mut().find(|c| c.name == name) else {
            return self.faults.push(format!("{} is a link of {name}, which is no chain", inputs.join(", ")));
        };
        if chain.links.iter().any(|l| l.0 == place) {
            self.faults.push(format!("two links of {name} have the place {place}"));
        }
        let signals = chain.strands.len();
        if inputs.len() != signals || outputs.len() != signals {
            return self.faults.push(format!("{name} has {signals} signals, {} and {} are {} and {}", inputs.join(", "), outputs.join(", "), inputs.len(), outputs.len()));
        }
        let owned = |ports: &[&str]| ports.iter().map(|port| port.to_string()).collect();
        chain.links.push((place, owned(inputs), owned(outputs)));
    }

    /// Makes wires of the chains.
    pub(super) fn join_chains(&mut self) {
        for mut chain in std::mem::take(&mut self.chains) {
            chain.links.sort();
            for (n, (begin, end)) in chain.strands.into_iter().enumerate() {
                let mut from = begin;
                for (_, inputs, outputs) in &chain.links {
                    self.join_sides(&from, &Side::Port(inputs[n].clone()));
                    from = Side::Port(outputs[n].clone());
                }
                match (end, from) {
                    (Some(end), from) => self.join_sides(&from, &end),
                    (None, Side::Port(from)) => self.faults.push(format!("{} goes from {from} to nowhere", chain.name)),
                    // `chain_in` says the ends.
                    (None, Side::Border(_)) => {}
                }
            }
        }
    }

    /// One piece of a chain. At the border the line is there already; it shows another port now.
    fn join_sides(&mut self, from: &Side, to: &Side) {
        let (wire, port) = match (from, to) {
            (Side::Port(from), Side::Port(to)) => return self.join(from, to),
            (Side::Border(wire), Side::Port(port)) | (Side::Port(port), Side::Border(wire)) => (*wire, port),
            (Side::Border(_), Side::Border(_)) => return self.faults.push("a chain leads from a port of the whole to another".into()),
        };
        if let Wire::Expose { inner, .. } = &mut self.wires[wire] {
            *inner = port.clone();
        }
    }
}
