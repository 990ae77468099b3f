//! Model checking of packet delivery: breadth first, all that can happen to two ends and a bad channel.
#[cfg(test)]
mod tests;
mod world;

pub use world::{Budget, Plan, Step, Verdict, World};

use crate::model::{Config, Defect, Mode, Policy};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Where a state came from: its parent, and the number of the step there.
type Parents = HashMap<u64, (u64, u16)>;

/// One state in so many is followed to its rest.
const SETTLE_EVERY: usize = 64;
/// Steps after which it has to be there.
const SETTLE_STEPS: usize = 4000;

/// What a search has found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Distinct states.
    pub states: usize,
    /// States in which nothing can happen any more: all of them are rest.
    pub ends: usize,
    /// States that were followed to their rest over a good channel.
    pub settled: usize,
    /// All states within the channel's size were seen.
    pub whole: bool,
    /// What must not be, and the way there; if it shows only over a good channel, the way to where that began.
    pub violation: Option<(String, Vec<Step>)>,
}

/// A case: registers, messages, faults.
#[derive(Clone)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// Registers of both ends.
    pub config: Config,
    /// Messages.
    pub plans: Vec<Plan>,
    /// Faults.
    pub budget: Budget,
    /// Packets under way at a time.
    pub channel: usize,
}

/// Registers with which the state stays small: windows of four, two ids, no times.
pub fn small() -> Config {
    Config {
        pool_bits: 1,
        life_bits: 1,
        share: 1,
        low: 0,
        mtu: 1,
        window: 4,
        mpr_unit: 1,
        default_mpr: 2,
        first_window: 3,
        records: 4,
        kept: 2,
        rto: 1,
        rto_max: 1,
        nack_wait: 3,
        nack_max: 1,
        nack_gap: 0,
        ack_wait: 1,
        ack_bytes: 100,
        ack_least: 1,
        tail_loss: 0,
        stall_least: 0,
        clear_wait: 5,
        close_wait: 40,
        idle: 10,
        reap: 1000,
        safety: 20,
        linger_cut: false,
        path_order: false,
        spray: Policy::Fixed,
        entropies: 1,
        first_psn: Some(0xffff_fffe),
        ..Config::default()
    }
}

/// The cases that are searched.
pub fn cases() -> Vec<Case> {
    let plan = |from, mode, packets, verdict| Plan { from, mode, packets, verdict };
    use Verdict::{Data, Error, Plain};
    let both = Config { pool_bits: 2, share: 2, ..small() };
    vec![
        Case { name: "unordered", config: small(), plans: vec![plan(0, Mode::Rud, 2, Plain), plan(0, Mode::Rud, 1, Data)], budget: Budget { losses: 1, repeats: 1, refusals: 0 }, channel: 4 },
        Case { name: "ordered", config: small(), plans: vec![plan(0, Mode::Rod, 3, Plain), plan(0, Mode::Rod, 1, Error)], budget: Budget { losses: 1, repeats: 1, refusals: 0 }, channel: 3 },
        Case { name: "refused", config: small(), plans: vec![plan(0, Mode::Rud, 1, Error), plan(0, Mode::Rud, 1, Data)], budget: Budget { losses: 1, repeats: 0, refusals: 1 }, channel: 4 },
        Case {
            name: "closed and opened",
            config: Config { limit: 1, ..small() },
            plans: vec![plan(0, Mode::Rud, 1, Plain), plan(0, Mode::Rud, 1, Data)],
            budget: Budget { losses: 1, repeats: 1, refusals: 0 },
            channel: 3,
        },
        Case { name: "both ways", config: both, plans: vec![plan(0, Mode::Rud, 1, Data), plan(1, Mode::Rud, 1, Error)], budget: Budget { losses: 1, repeats: 0, refusals: 0 }, channel: 4 },
    ]
}

/// Searches a case until `most` states are known.
pub fn search(case: &Case, most: usize) -> Found {
    let mut start = World::new(Arc::new(case.config.clone()), case.plans.clone().into(), case.budget);
    // The first message is there from the beginning: nothing can happen before.
    let posted = start.make(Step::Post);
    let root = start.fingerprint();
    let mut parents = Parents::from([(root, (root, 0))]);
    let mut found = Found { states: 1, ends: 0, settled: 0, whole: true, violation: posted.err().map(|what| (what, vec![])) };
    let mut queue = VecDeque::from([(start.clone(), root)]);
    while let Some((world, print)) = queue.pop_front() {
        let steps = world.steps();
        let mut wrong = if steps.is_empty() { world.at_rest().err() } else { None };
        found.ends += usize::from(steps.is_empty());
        if wrong.is_none() && print % SETTLE_EVERY as u64 == 0 {
            found.settled += 1;
            wrong = world.clone().settle(SETTLE_STEPS).err();
        }
        if let Some(what) = wrong {
            found.violation = Some((what, way(&start, &parents, print)));
            return found;
        }
        for (n, step) in steps.iter().enumerate() {
            let mut next = world.clone();
            if let Err(what) = next.make(*step) {
                let mut steps = way(&start, &parents, print);
                steps.push(*step);
                found.violation = Some((what, steps));
                return found;
            }
            if next.crowd() > case.channel {
                continue;
            }
            let other = next.fingerprint();
            if parents.contains_key(&other) {
                continue;
            }
            if found.states >= most {
                found.whole = false;
                continue;
            }
            parents.insert(other, (print, n as u16));
            found.states += 1;
            queue.push_back((next, other));
        }
    }
    found
}

/// The steps from the start to a state.
fn way(start: &World, parents: &Parents, mut print: u64) -> Vec<Step> {
    let mut numbers = Vec::new();
    while let Some((parent, number)) = parents.get(&print).filter(|(parent, _)| *parent != print) {
        numbers.push(*number);
        print = *parent;
    }
    let mut world = start.clone();
    let mut steps = Vec::new();
    for number in numbers.into_iter().rev() {
        let Some(step) = world.steps().get(usize::from(number)).copied() else { break };
        // It was made once, and went well.
        let _ = world.make(step);
        steps.push(step);
    }
    steps
}

/// Each broken rule with the case that refutes it.
pub fn defects() -> Vec<(Defect, Case)> {
    let case = |name: &str| cases().into_iter().find(|case| case.name == name);
    let with = |defect, name| case(name).map(|case| (defect, Case { config: Config { defect: Some(defect), ..case.config }, ..case }));
    let list = [
        with(Defect::CackPastKept, "refused"),
        with(Defect::DuplicateExecuted, "unordered"),
        with(Defect::NoLinger, "closed and opened"),
        with(Defect::NoLives, "closed and opened"),
        with(Defect::SackCompletes, "unordered"),
        with(Defect::ClearsUnanswered, "refused"),
    ];
    list.into_iter().flatten().collect()
}
