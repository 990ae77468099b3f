//! Model ends over a bad fabric: every byte, every completion once, every pool full at the end.
use crate::end::{Arrived, Completion, Description, End, Outlook};
use crate::model::{random, Config, Counter, Defect, Mode, Policy};
use crate::wire::{Registers, CONTROL_DSCP};
use ferric_abi::uet::codes::{NackCode, ReturnCode};
use ferric_fabric::{Config as Switches, Counters as Fate, Fabric, Faults, Limits, Trimming};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Nodes.
const NODES: usize = 4;
/// Fabric addresses of a node.
const ADDRESSES: usize = 16;
/// Messages of a node that are under way at a time.
const UNDER_WAY: usize = 48;
/// Words at the start of each memory that fetching atomics add to.
const WORDS: u64 = 16;
/// Bytes that a link takes per tick.
const LINK: u64 = 64;
/// Ticks from a path's failure to its withdrawal.
const NOTICED: u64 = 20_000;
const DATA_DSCP: u8 = 8;
/// Ticks after which a run has hung.
const PATIENCE: u64 = 500_000_000;

/// What a run has come to.
#[derive(Debug, Default)]
pub struct Report {
    /// How often what was reached, of all ends.
    pub counters: BTreeMap<Counter, u64>,
    /// What the fabric did.
    pub fabric: Fate,
    /// Frames that were not taken.
    pub bad: u64,
    /// Messages that ended well, and with the error that they should.
    pub good: usize,
    /// See `good`.
    pub refused: usize,
    /// Ticks.
    pub ticks: u64,
}

/// A message that was posted.
struct Posted {
    to: usize,
    at: usize,
    data: Vec<u8>,
    fetch: bool,
    beyond: bool,
}

/// What has to be reached by all seeds together.
pub fn wanted() -> Vec<Counter> {
    let nacks = [NackCode::Trimmed, NackCode::TrimmedLastHop, NackCode::NoPdc, NackCode::NoGuaranteed, NackCode::NoMessage, NackCode::NoResource, NackCode::OutOfWindow, NackCode::RodOutOfOrder];
    let both = nacks.iter().flat_map(|code| [Counter::NackSent(*code as u8), Counter::NackTaken(*code as u8)]);
    use Counter::*;
    let rest = [
        Rto,
        Stall,
        PathLoss,
        AckRequestSent,
        AckRequestAnswered,
        ClearCommand,
        ClearRequest,
        KeptCleared,
        TargetWantsClose,
        CloseRequestTaken,
        Closed,
        Lingered,
        IdReused,
        PsnWrapped,
        PoolFull,
        WindowFull,
    ];
    both.chain(rest).chain([DuplicateAnswered, TrimmedDropped, NackStale, NackHeldBack, CloseAgain]).collect()
}

/// Registers: small pools, so that they run full.
fn config(seed: u64) -> Config {
    Config {
        pool_bits: 5,
        life_bits: 6,
        places: 24,
        share: 16,
        low: 4,
        mtu: 1024,
        // Less than the unit of `mpr`, so that a peer may send beyond it.
        window: 96,
        first_window: 64,
        default_mpr: 1,
        kept: 40,
        rto: 12_000,
        rto_max: 12,
        nack_wait: 3000,
        nack_max: 31,
        clear_wait: 9000,
        close_wait: 40_000_000,
        idle: 30_000,
        reap: 200_000_000,
        safety: 60_000,
        linger_cut: false,
        tail_loss: 8000,
        spray: if seed % 2 == 0 { Policy::Oblivious } else { Policy::Penalties },
        seed,
        first_psn: Some(0xffff_fff0),
        ..Config::default()
    }
}

fn address(node: usize, n: usize) -> u128 {
    0x0a00_0000 + ((node as u128 + 1) << 8) + n as u128
}

fn mac(node: usize) -> u64 {
    0x0200_0000_0000 + node as u64
}

fn end(node: usize, seed: u64, bytes: usize, defect: Option<Defect>) -> End {
    let registers = Registers { crc: true, ..Registers::default() };
    let outlook = Outlook { registers, native: if seed % 3 == 0 { registers.native } else { None }, data_dscp: DATA_DSCP };
    let own: Vec<u128> = (0..ADDRESSES).map(|n| address(node, n)).collect();
    let mut end = End::new(Arc::new(Config { defect, ..config(seed * 1000 + node as u64) }), outlook, mac(node), &own, bytes);
    for other in (0..NODES).filter(|other| *other != node) {
        (0..ADDRESSES).for_each(|n| end.neighbour(address(other, n), mac(other)));
    }
    (end.target.lines, end.target.tasks, end.target.slow) = (3, 5, 300);
    end
}

fn fabric(seed: u64) -> Fabric {
    let registers = Registers::default();
    let trimming = Trimming { trimmable: DATA_DSCP, trimmed: registers.dscp_trimmed, trimmed_last: registers.dscp_trimmed_last, keep: 24 };
    let config = Switches {
        nodes: NODES,
        latencies: (1..=8).map(|n| n * 250).collect(),
        path_rate: 24,
        port_rate: LINK,
        path_queue: Limits { mark: 8_000, trim: 16_000, drop: 24_000 },
        port_queue: Limits { mark: 10_000, trim: 20_000, drop: 30_000 },
        trimming: Some(trimming),
        control_dscp: CONTROL_DSCP,
        faults: Faults { loss: 20_000, duplicate: 10_000, corrupt: 5_000 },
    };
    let mut fabric = Fabric::new(config, seed);
    (0..NODES).for_each(|node| fabric.attach(mac(node), node));
    fabric
}

/// All messages of a run, those of each node in the order of posting, and how much memory each node needs.
fn plan(seed: u64, count: usize) -> (Vec<Vec<Posted>>, [usize; NODES]) {
    let mut state = seed ^ 0x55aa;
    let mut draw = |below: u64| random(&mut state) % below;
    let mut used = [(WORDS * 8) as usize; NODES];
    let plan = (0..NODES).map(|from| {
        let messages = (0..count).map(|_| {
            let to = (from + 1 + draw(NODES as u64 - 1) as usize) % NODES;
            let kind = draw(100);
            let bytes = match draw(10) {
                0 => 0,
                1..=5 => draw(1024) as usize,
                6..=8 => draw(20_000) as usize,
                _ => draw(120_000) as usize,
            };
            if kind < 25 {
                let at = (draw(WORDS) * 8) as usize;
                return Posted { to, at, data: (1 + draw(1000)).to_be_bytes().to_vec(), fetch: true, beyond: false };
            }
            let beyond = kind < 30;
            let data: Vec<u8> = (0..bytes).map(|_| draw(256) as u8).collect();
            let at = if beyond { usize::MAX / 2 } else { used[to] };
            used[to] += if beyond { 0 } else { bytes };
            Posted { to, at, data, fetch: false, beyond }
        });
        messages.collect()
    });
    let plan = plan.collect();
    (plan, used)
}

/// Runs `count` messages of each node, with a broken rule if there is a `defect`. `Err`: what is wrong.
pub fn run(seed: u64, count: usize, defect: Option<Defect>) -> Result<Report, String> {
    let (plans, used) = plan(seed, count);
    let mut ends: Vec<End> = (0..NODES).map(|node| end(node, seed, used[node], defect)).collect();
    let mut fabric = fabric(seed);
    let (mut state, mut now) = (seed, 0);
    let (mut posted, mut free) = ([0; NODES], [0u64; NODES]);
    let mut completions: BTreeMap<u64, Completion> = BTreeMap::new();
    let mut arrived: BTreeMap<u64, Arrived> = BTreeMap::new();
    let (mut cut_at, mut restored) = (None, false);
    loop {
        for delivery in fabric.advance(now) {
            ends[delivery.node].receive(&delivery.frame, now);
        }
        for (node, end) in ends.iter_mut().enumerate() {
            if end.deadline().is_some_and(|time| time <= now) {
                end.tick(now);
            }
            while posted[node] < count && end.under_way() < UNDER_WAY {
                post(end, node, posted[node], &plans[node][posted[node]], &mut state)?;
                posted[node] += 1;
            }
            while free[node] <= now {
                let Some(frame) = end.transmit(now) else { break };
                free[node] = now + (frame.len() as u64).div_ceil(LINK);
                fabric.send(now, node, frame);
            }
            for completion in end.completions() {
                if completions.insert(completion.token, completion).is_some() {
                    return Err(format!("message {:#x} is completed twice", completion.token));
                }
            }
            for one in end.target.arrived() {
                if arrived.insert(one.header_data, one).is_some() {
                    return Err(format!("message {:#x} arrives twice", one.header_data));
                }
            }
        }
        // A path fails in the middle, is withdrawn when somebody has noticed, and comes back.
        let done = completions.len();
        match cut_at {
            None if done * 3 > NODES * count => {
                fabric.cut(3);
                cut_at = Some(now);
            }
            Some(at) if !restored && now > at + NOTICED => fabric.withdraw(3),
            _ => {}
        }
        if !restored && done * 2 > NODES * count {
            fabric.restore(3);
            restored = true;
        }
        let links = (0..NODES).filter(|node| ends[*node].ready()).map(|node| free[node].max(now + 1)).min();
        let timers = ends.iter().filter_map(End::deadline).min().map(|time| time.max(now + 1));
        let Some(next) = [fabric.next(), links, timers].into_iter().flatten().min() else { break };
        now = next;
        if now > PATIENCE {
            return Err(format!("no rest at {now}: {} messages have ended", completions.len()));
        }
    }
    judge(&plans, &mut ends, &completions, &arrived)?;
    let mut report = Report { fabric: fabric.counters, ticks: now, ..Report::default() };
    for end in &ends {
        report.bad += end.bad.values().sum::<u64>();
        end.counters.iter().for_each(|(counter, n)| *report.counters.entry(*counter).or_insert(0) += n);
    }
    report.good = completions.values().filter(|c| c.status == Ok(ReturnCode::Ok as u8)).count();
    report.refused = completions.len() - report.good;
    let f = fabric.counters;
    if f.sent + f.copied != f.delivered + f.lost + f.cut + f.dropped + f.unknown {
        return Err(format!("frames are not conserved: {f:?}"));
    }
    Ok(report)
}

/// What the program calls message `n` of `node`.
fn token(node: usize, n: usize) -> u64 {
    (node as u64 + 1) << 32 | (n as u64 + 1)
}

fn post(end: &mut End, node: usize, n: usize, message: &Posted, state: &mut u64) -> Result<(), String> {
    let description = Description { fetch: message.fetch, job: 1, pid: 1, index: 1, offset: message.at as u64, key: 0, header_data: token(node, n) };
    let (address, mode) = (address(message.to, random(state) as usize % ADDRESSES), if random(state) % 4 == 0 { Mode::Rod } else { Mode::Rud });
    let own = self::address(node, 0);
    if end.post(own, address, mode, description, message.data.clone()) {
        Ok(())
    } else {
        Err(format!("message {n} of node {node} is not taken"))
    }
}

/// Every byte, every completion once, everything given back.
fn judge(plans: &[Vec<Posted>], ends: &mut [End], completions: &BTreeMap<u64, Completion>, arrived: &BTreeMap<u64, Arrived>) -> Result<(), String> {
    let mut sums: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    let mut found: BTreeMap<(usize, usize), BTreeSet<u64>> = BTreeMap::new();
    for (node, plan) in plans.iter().enumerate() {
        for (n, message) in plan.iter().enumerate() {
            let token = token(node, n);
            let completion = completions.get(&token).ok_or(format!("message {n} of node {node} has no end"))?;
            let wanted = if message.beyond { ReturnCode::BadAddress } else { ReturnCode::Ok };
            if completion.status != Ok(wanted as u8) {
                return Err(format!("message {n} of node {node}, {} bytes: {:?}", message.data.len(), completion.status));
            }
            if message.fetch {
                let key = (message.to, message.at);
                let operand = message.data.first_chunk().map_or(0, |word| u64::from_be_bytes(*word));
                *sums.entry(key).or_insert(0) += operand;
                if !completion.data.is_some_and(|data| found.entry(key).or_default().insert(data)) {
                    return Err(format!("atomic {n} of node {node} found {:?}, as another did", completion.data));
                }
            } else if !message.beyond && message.at < usize::MAX / 2 {
                let there = &ends[message.to].target.memory[message.at..message.at + message.data.len()];
                if there != message.data {
                    return Err(format!("message {n} of node {node}: other bytes than were sent"));
                }
                if arrived.get(&token).map(|one| one.bytes as usize) != Some(message.data.len()) {
                    return Err(format!("message {n} of node {node}: no completion at the target"));
                }
            }
        }
    }
    for ((node, at), sum) in sums {
        let there = ends[node].target.memory[at..at + 8].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        if there != sum {
            return Err(format!("word {at} of node {node} is {there}, and {sum} was added"));
        }
    }
    let left = ends.iter().position(|end| !end.pds.at_rest() || !end.target.at_rest() || end.under_way() > 0);
    left.map_or(Ok(()), |node| Err(format!("node {node} has something left")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_over_a_bad_fabric_lose_nothing() {
        let mut reached = BTreeSet::new();
        for seed in 1..=2 {
            let report = run(seed, 120, None).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
            assert!(report.good > 400 && report.refused > 5 && report.bad > 20, "{report:?}");
            assert!(report.fabric.trimmed > 0 && report.fabric.trimmed_last > 0 && report.fabric.cut > 0 && report.fabric.lost > 100, "{report:?}");
            reached.extend(report.counters.into_keys());
        }
        // The long form reaches all of them.
        let missing: Vec<_> = wanted().into_iter().filter(|counter| !reached.contains(counter)).collect();
        assert!(missing.len() < 6, "{missing:?}");
    }

    /// What the model checker finds, ends over the fabric find, too.
    #[test]
    fn broken_rules_are_noticed() {
        for defect in [Defect::DuplicateExecuted, Defect::CackPastKept, Defect::SackCompletes] {
            assert!(run(1, 60, Some(defect)).is_err(), "{defect:?}");
        }
    }
}
