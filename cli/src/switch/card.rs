//! The card's side of a switch: what of the book stands where in its tables. While frames pass nothing stands there; from `tables` on everything does, and each change is made under traffic.
use super::book::{Book, Line, Refusal, CLASSES};
use ferric_abi::context::{EgressCounts, FlowCounts, SenderCounts, TunnelCounts};
use ferric_abi::switch::{FlowKey, FlowRecord};
use ferric_driver::switch::{FlowPort, FlowSet, FlowTables, Packets, Sender, Station};
use ferric_driver::types::Mac;
use ferric_driver::{Context, Error, TunnelConfig};
use std::collections::BTreeMap;

/// Port class of the wire.
const CLASS: u8 = 0;

/// Where a flow stands.
#[derive(Clone, Copy, Debug)]
enum At {
    /// Among the exact entries of a packet class.
    Exact(u8),
    /// This wildcard rule.
    Rule(usize),
}

/// A flow's place: its line of the action table, and what leads there.
#[derive(Clone, Copy, Debug)]
struct Place {
    action: u16,
    at: At,
}

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The book says no.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// The card or its driver says no.
    #[error("{0}")]
    Card(#[from] Error),
}

/// The card of a physical function.
pub struct Card {
    ctx: Context,
    tables: Option<FlowTables>,
    /// What decides about frames; `None`: they pass.
    port: Option<FlowPort>,
    /// Masks of the exact entries of each packet class, and how many entries there are.
    masks: [Option<(FlowKey, usize)>; CLASSES],
    places: BTreeMap<u64, Place>,
}

impl Card {
    /// That of an open physical function. Errors: the card has neither tunnels nor flow tables.
    pub fn new(ctx: Context) -> Result<Self, Error> {
        let tables = ctx.has_flows().then(|| FlowTables::open(&ctx)).transpose()?;
        if tables.is_none() && !ctx.has_tunnel() {
            return Err(Error::Unsupported("have a flow switch or tunnels: serve one with --engines vxlan or switch"));
        }
        Ok(Self { ctx, tables, port: None, masks: Default::default(), places: BTreeMap::new() })
    }

    /// What decides about frames; `None`: they pass.
    pub fn port(&self) -> Option<&FlowPort> {
        self.port.as_ref()
    }

    fn tables(&mut self) -> Result<&mut FlowTables, Error> {
        self.tables.as_mut().ok_or(Error::Unsupported("decide about frames by flow tables: serve one with --engines switch"))
    }

    /// All flows written anew, and of each, in their order, whether it is an exact entry: those with the mask that most flows of their class have are.
    fn set(book: &Book) -> (FlowSet, Vec<Option<u8>>) {
        let mut set = FlowSet::default();
        let masks: [Option<FlowKey>; CLASSES] = std::array::from_fn(|class| commonest(book, class as u8));
        let mut exact = Vec::new();
        for entry in book.flows.values() {
            let Line { key, mask, action, macs, class, v6 } = entry.line;
            let place = set.actions.len();
            set.macs.extend(macs.map(|macs| (place, macs.map(Mac))));
            set.actions.push(action);
            let class = class.filter(|class| masks[usize::from(*class)] == Some(mask));
            match class {
                Some(class) => set.entries.push(([CLASS, class], key, place)),
                None => set.rules.push((packets(v6), [key, mask], place)),
            }
            exact.push(class);
        }
        set.masks = masks.iter().zip(0..).filter_map(|(mask, class)| Some(([CLASS, class], (*mask)?))).collect();
        set.stations = book.stations.iter().map(|((domain, mac), port)| (*domain, Mac(*mac), Station::Port(*port))).collect();
        (set, exact)
    }

    /// From now on the tables decide, by everything that the book has: the whole set takes the place of whatever decided before, between two frames.
    pub fn decide(&mut self, book: &Book, port: FlowPort) -> Result<(), Error> {
        let ctx = self.ctx.clone();
        let (set, exact) = Self::set(book);
        let tables = self.tables()?;
        let generation = tables.replace_all(&ctx, &set, &port)?;
        let Some(standing) = tables.live() else { return Err(Error::Invalid("the card decides by no set")) };
        // Lines that were written one by one lead to the set before.
        let old: Vec<u16> = std::mem::take(&mut self.places).into_values().map(|place| place.action).filter(|line| !standing.actions.contains(line)).collect();
        let mut rules = standing.rules.into_iter();
        for ((id, class), action) in book.flows.keys().zip(&exact).zip(standing.actions) {
            let at = class.map_or_else(|| rules.next().map(At::Rule), |class| Some(At::Exact(class)));
            let Some(at) = at else { return Err(Error::Invalid("a rule of the set has no number")) };
            self.places.insert(*id, Place { action, at });
        }
        self.masks = Default::default();
        for ([_, class], mask) in set.masks {
            self.masks[usize::from(class)] = Some((mask, exact.iter().filter(|c| **c == Some(class)).count()));
        }
        self.port = Some(FlowPort { generation, ..port });
        // The new set decides whatever becomes of these.
        for line in old {
            if let Err(error) = self.release(line) {
                log::warn!("line {line} of the action table stays taken: {error}");
            }
        }
        Ok(())
    }

    /// From now on frames pass, as on a card without tables.
    pub fn pass(&mut self) -> Result<(), Error> {
        let ctx = self.ctx.clone();
        self.tables()?;
        ctx.set_flow_port(None)?;
        self.port = None;
        Ok(())
    }

    /// Writes a flow beside the others, if the tables decide. Errors: no room, or no way to say it; nothing has changed then.
    pub fn add(&mut self, id: u64, line: &Line) -> Result<(), Trouble> {
        let Some(FlowPort { generation, .. }) = self.port else {
            self.tables()?;
            return Ok(());
        };
        let ctx = self.ctx.clone();
        let class = line.class.filter(|class| self.masks[usize::from(*class)].is_none_or(|(mask, _)| mask == line.mask));
        let tables = self.tables()?;
        let action = *tables.free_actions().first().ok_or(Error::Exhausted("lines for actions"))?;
        let macs = line.macs.map(|macs| tables.rewrite(&ctx, macs.map(Mac))).transpose()?.unwrap_or(0);
        tables.set_action(&ctx, action, Some(&line.action.with_rewrite(macs)))?;
        let placed = self.place(generation, class, line, action);
        match placed {
            Ok(at) => {
                self.places.insert(id, Place { action, at });
                Ok(())
            }
            Err(trouble) => {
                self.release(action)?;
                Err(trouble)
            }
        }
    }

    fn place(&mut self, generation: u8, class: Option<u8>, line: &Line, action: u16) -> Result<At, Trouble> {
        let ctx = self.ctx.clone();
        if let Some(class) = class {
            let slot = usize::from(class);
            let fresh = self.masks[slot].is_none();
            let tables = self.tables()?;
            if fresh {
                tables.set_mask(&ctx, generation, CLASS, class, Some(&line.mask))?;
            }
            match tables.insert(&ctx, generation, [CLASS, class], &line.key, action) {
                Ok(()) => {
                    let (_, entries) = self.masks[slot].get_or_insert((line.mask, 0));
                    *entries += 1;
                    return Ok(At::Exact(class));
                }
                // A rule can say it, too.
                Err(Error::Exhausted(_)) => {}
                Err(error) => {
                    if fresh {
                        tables.set_mask(&ctx, generation, CLASS, class, None)?;
                    }
                    return Err(error.into());
                }
            }
        }
        let tables = self.tables()?;
        let number = *tables.free_rules().first().ok_or(Error::Exhausted("wildcard rules"))?;
        match tables.set_rule(&ctx, number, packets(line.v6), [&line.key, &line.mask], action, generation) {
            Err(Error::Invalid(_)) => Err(Refusal::Rule.into()),
            done => Ok(done.map(|()| At::Rule(number))?),
        }
    }

    /// Takes a flow out of the tables.
    pub fn remove(&mut self, id: u64, line: &Line) -> Result<(), Error> {
        let Some(FlowPort { generation, .. }) = self.port else { return Ok(()) };
        let Some(place) = self.places.get(&id).copied() else { return Ok(()) };
        let ctx = self.ctx.clone();
        match place.at {
            At::Exact(class) => {
                let tables = self.tables()?;
                tables.remove(&ctx, generation, [CLASS, class], &line.key)?;
                let slot = &mut self.masks[usize::from(class)];
                *slot = slot.map(|(mask, entries)| (mask, entries - 1)).filter(|(_, entries)| *entries > 0);
                if slot.is_none() {
                    self.tables()?.set_mask(&ctx, generation, CLASS, class, None)?;
                }
            }
            At::Rule(number) => self.tables()?.clear_rule(&ctx, number)?,
        }
        self.places.remove(&id);
        self.release(place.action)
    }

    /// A line of the action table that nothing leads to any more: whichever flow has it next counts from zero.
    fn release(&mut self, line: u16) -> Result<(), Error> {
        let ctx = self.ctx.clone();
        let tables = self.tables()?;
        tables.set_action(&ctx, line, None)?;
        tables.forget(&ctx, line).map(drop)
    }

    /// What a flow has counted; `None`: it does not stand in the card.
    pub fn used(&mut self, id: u64) -> Result<Option<FlowRecord>, Error> {
        let ctx = self.ctx.clone();
        let Some(Place { action, .. }) = self.port.and(self.places.get(&id)).copied() else { return Ok(None) };
        self.tables()?.used(&ctx, action).map(Some)
    }

    /// Where a flow stands, for people.
    pub fn whereabouts(&self, id: u64) -> String {
        match self.port.and(self.places.get(&id)) {
            None => "not in the card: frames pass".into(),
            Some(Place { action, at: At::Exact(class) }) => format!("an exact entry of packet class {class}, action {action}"),
            Some(Place { action, at: At::Rule(number) }) => format!("wildcard rule {number}, action {action}"),
        }
    }

    /// A station comes or moves; `None`: it goes.
    pub fn station(&mut self, domain: u16, mac: Mac, port: Option<u8>) -> Result<(), Error> {
        let ctx = self.ctx.clone();
        let generation = self.port.map(|port| port.generation);
        let tables = self.tables()?;
        match (generation, port) {
            (None, _) => Ok(()),
            (Some(of), Some(port)) => tables.set_station(&ctx, of, domain, mac, Station::Port(port)),
            (Some(of), None) => tables.remove_station(&ctx, of, domain, mac).map(drop),
        }
    }

    /// What a function may send; `None`: nobody looks.
    pub fn sender(&mut self, function: u8, sender: Option<&Sender>) -> Result<(), Error> {
        let ctx = self.ctx.clone();
        self.tables()?.set_sender(&ctx, function, sender)
    }

    /// The tunnel of a function; `None`: it has none.
    pub fn tunnel(&self, function: u16, tunnel: Option<&TunnelConfig>) -> Result<(), Error> {
        tunnel.map_or_else(|| self.ctx.clear_tunnel(function), |tunnel| self.ctx.set_tunnel(function, tunnel))
    }

    /// The function that this one has joined.
    pub fn leader(&self, function: u16) -> Result<Option<u16>, Error> {
        self.ctx.tunnel_leader(function)
    }

    /// What the card has counted, as far as it has it.
    pub fn counts(&self, functions: u16) -> Result<Counts, Error> {
        let flows = self.tables.is_some().then(|| self.ctx.flow_counts()).transpose()?;
        let each = || (0..functions as u8).filter(|_| flows.is_some());
        let senders = each().map(|f| self.ctx.sender_counts(f)).collect::<Result<_, _>>()?;
        let leavers = each().map(|f| self.ctx.egress_counts(f)).collect::<Result<_, _>>()?;
        let tunnels = self.ctx.has_tunnel().then(|| self.ctx.tunnel_counts()).transpose()?;
        Ok(Counts { flows, senders, leavers, tunnels })
    }
}

/// What a card has counted: of the flow tables, by function of what is sent and of what was about to leave, and of tunnels.
pub struct Counts {
    pub flows: Option<FlowCounts>,
    pub senders: Vec<SenderCounts>,
    pub leavers: Vec<EgressCounts>,
    pub tunnels: Option<TunnelCounts>,
}

/// The mask that most flows of a packet class have; of several the one that was said first.
fn commonest(book: &Book, class: u8) -> Option<FlowKey> {
    let mut counts: Vec<(FlowKey, usize)> = Vec::new();
    for line in book.flows.values().map(|e| &e.line).filter(|line| line.class == Some(class)) {
        match counts.iter_mut().find(|(mask, _)| *mask == line.mask) {
            Some((_, count)) => *count += 1,
            None => counts.push((line.mask, 1)),
        }
    }
    counts.iter().rev().max_by_key(|(_, count)| *count).map(|(mask, _)| *mask)
}

fn packets(v6: bool) -> Packets {
    match v6 {
        true => Packets::V6,
        false => Packets::Others,
    }
}
