//! All rules at once: a new set is written beside the one that decides, then it decides, and the old one goes (SWITCH.md, section 10).

use super::flows::{FlowTables, Packets, Station};
use super::port::{FlowPort, CLASSES, GENERATIONS};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::types::Mac;
use ferric_abi::switch::table::profile_line;
use ferric_abi::switch::{Action, FlowKey};
use std::collections::BTreeMap;

/// A whole set of rules. What leads to an action names its place in `actions`.
#[derive(Clone, Debug, Default)]
pub struct FlowSet {
    /// Actions. One that changes MAC addresses names no line of them: it has a pair below.
    pub actions: Vec<Action>,
    /// MAC addresses, destination and source, that actions give frames, by their places.
    pub macs: BTreeMap<usize, [Mac; 2]>,
    /// Masks of exact entries, by port class and packet class: see [`FlowTables::set_mask`].
    pub masks: Vec<([u8; 2], FlowKey)>,
    /// Exact entries, by the same two: see [`FlowTables::insert`].
    pub entries: Vec<([u8; 2], FlowKey, usize)>,
    /// Wildcard rules, key and mask; of several that a packet fits the first counts: see [`FlowTables::set_rule`].
    pub rules: Vec<(Packets, [FlowKey; 2], usize)>,
    /// Stations of bridge domains: see [`FlowTables::set_station`].
    pub stations: Vec<(u16, Mac, Station)>,
}

/// Where a set stands in the card: what [`FlowTables::remove`], [`FlowTables::clear_rule`] and [`FlowTables::used`] want to know of its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Its generation.
    pub generation: u8,
    /// Lines of its actions, in their order.
    pub actions: Vec<u16>,
    /// Numbers of its wildcard rules, in their order.
    pub rules: Vec<usize>,
}

impl FlowTables {
    /// Where the set stands that [`FlowTables::replace_all`] has put there; `None`: it has put none there. What was taken out of it since then is not in it any more, and rules that were added to its
    /// generation are.
    pub fn live(&self) -> Option<Standing> {
        let generation = self.sets.live?.generation;
        Some(Standing { generation, actions: self.sets.of[usize::from(generation)].iter().copied().collect(), rules: self.rules.of(Some(generation)) })
    }

    /// Lines of the action table that no set has and no program has written, in order.
    pub fn free_actions(&self) -> Vec<u16> {
        self.sets.free(self.lines)
    }

    /// Numbers that no wildcard rule has, in order.
    pub fn free_rules(&self) -> Vec<usize> {
        self.rules.of(None)
    }

    /// Puts a set of rules in the place of the one that an earlier call has put there, under traffic: every frame is treated wholly by the old set or by the new one. `port` says the rest of what is done with
    /// frames; its generation is chosen here, and is what comes back. Generations that [`FlowTables::insert`] and its like have filled by hand are left alone only if they are not the next one after the set
    /// that decides (0 behind none). Lines of [`FlowTables::set_action`], and flood groups, are common to all sets.
    ///
    /// # Errors
    /// As of the functions named at [`FlowSet`]; an action that is named and not there; no room for both sets side by side. The old set decides then, and what has been written of the new one goes before
    /// another one is written. Where the card has not answered whether it has changed over, the next call begins with saying that it has not.
    pub fn replace_all(&mut self, context: &Context, set: &FlowSet, port: &FlowPort) -> Result<u8> {
        if let Some(old) = self.sets.live.filter(|_| self.sets.unsure) {
            context.set_flow_port(Some(&old))?;
        } else if self.sets.unsure {
            context.set_flow_port(None)?;
        }
        self.sets.unsure = false;
        let old = self.sets.live.map(|port| port.generation);
        let of = old.map_or(0, |of| (of + 1) % GENERATIONS);
        self.clear(context, of)?;
        self.load(context, of, set)?;
        let port = FlowPort { generation: of, ..*port };
        context.set_flow_port(Some(&port)).inspect_err(|error| self.sets.unsure = !matches!(error, Error::Admin { .. } | Error::Invalid(_)))?;
        self.sets.live = Some(port);
        // A command takes far longer than a frame needs from its lookup to its fate. What cannot be cleared now is cleared before the number is used again.
        if let Some(old) = old {
            _ = self.clear(context, old);
        }
        Ok(of)
    }

    fn load(&mut self, context: &Context, of: u8, set: &FlowSet) -> Result<()> {
        let lines = self.sets.free(self.lines);
        if lines.len() < set.actions.len() {
            return Err(Error::Exhausted("lines for the actions of both sets"));
        }
        let numbers = self.rules.of(None);
        if numbers.len() < set.rules.len() {
            return Err(Error::Exhausted("wildcard rules for both sets"));
        }
        let line = |action: usize| lines[..set.actions.len()].get(action).copied().ok_or(Error::Invalid("the set has no such action"));
        for (place, (line, action)) in lines.iter().zip(&set.actions).enumerate() {
            if action.meter() != 0 {
                return Err(Error::Invalid("the card has no meters: the flow has to stay in software"));
            }
            let macs = set.macs.get(&place).map(|macs| self.rewrite(context, *macs)).transpose()?;
            let action = macs.map_or(*action, |macs| action.with_rewrite(macs));
            self.sets.of[usize::from(of)].insert(*line);
            self.macs.action(*line, Some(&action), |command| context.write_flow(command))?;
        }
        for ([port, packet], mask) in &set.masks {
            self.set_mask(context, of, *port, *packet, Some(mask))?;
        }
        for (class, key, action) in &set.entries {
            self.insert(context, of, *class, key, line(*action)?)?;
        }
        for (number, (packets, [key, mask], action)) in numbers.into_iter().zip(&set.rules) {
            self.set_rule(context, number, *packets, [key, mask], line(*action)?, of)?;
        }
        for (domain, mac, to) in &set.stations {
            self.set_station(context, of, *domain, *mac, *to)?;
        }
        Ok(())
    }

    /// Everything of a generation goes.
    fn clear(&mut self, context: &Context, of: u8) -> Result<()> {
        for (port, packet) in (0..CLASSES).flat_map(|port| (0..CLASSES).map(move |packet| (port, packet))) {
            if self.masks[profile_line(of, port, packet) as usize].is_some() {
                self.set_mask(context, of, port, packet, None)?;
            }
        }
        let tell = &mut |command: &_| context.write_flow(command);
        for key in self.exact.of(of) {
            self.take(tell, &key, of)?;
        }
        for number in self.rules.of(Some(of)) {
            self.change_rule(tell, number, None)?;
        }
        for key in self.stations.of(of) {
            self.evict(tell, &key, of)?;
        }
        self.sets.of[usize::from(of)].clear();
        Ok(())
    }
}
