//! Three cards `uet` at the switches of `ferric-fabric`: all write to all over several paths, of which one fails and comes back. `./scripts/demo --uet`.
use super::{Lane, LaneConfig, Way, OPEN};
use crate::pair::Error;
use crate::traffic::pattern;
use ferric_abi::uet::codes::ReturnCode;
use ferric_driver::types::Mac;
use ferric_driver::{Access, MemoryRegion, UetWrite};
use ferric_fabric::{Config, Counters, Fabric, Faults};
use ferric_sim::capture::Capture;
use ferric_sim::fabric::Fate;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

/// Cards, and paths between any two of them.
pub const CARDS: usize = 3;
/// Cycles that each path takes.
pub const PATHS: [u64; 4] = [250, 400, 550, 700];
/// The path that fails.
pub const FAILS: usize = 2;
/// Bytes of a message.
pub const BYTES: usize = 4096;
/// Messages under way from one card to another.
const WINDOW: usize = 6;
/// Cycles of a tick: a time-out (200 ticks) is more than a round trip behind full queues, and fewer than in hardware (256), so that a run is short.
const TICK: u64 = 64;
/// Cycles in which something has to end behind the last post.
const PATIENCE: u64 = 1_000_000;

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Bits of the data path.
    pub width: usize,
    /// Seed of losses, and of paths.
    pub seed: u64,
    /// Cycles in which messages are posted.
    pub cycles: u64,
    /// Cycles of a part of time.
    pub bin: u64,
    /// Frames in a million that are lost.
    pub loss: u32,
    /// Where the capture goes.
    pub capture: Option<PathBuf>,
}

impl Plan {
    /// When the path is cut, when the switches notice, and when it is back.
    pub fn failure(&self) -> [u64; 3] {
        [self.cycles * 3 / 10, self.cycles * 5 / 10, self.cycles * 7 / 10]
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Bytes that were verified in each part of time, by receiver.
    pub bins: Vec<[u64; CARDS]>,
    /// Messages.
    pub messages: u64,
    /// What the switches did.
    pub fabric: Counters,
    /// Frames of requests by path.
    pub paths: [u64; PATHS.len()],
    /// Requests that were sent by a card again, or refused by one.
    pub again: u64,
    /// Frames in the capture.
    pub captured: u64,
    /// Cycles until the last message had ended.
    pub cycles: u64,
}

/// What a card has under way: by tag the other card, the place and the number of a message.
struct Seat {
    lane: Lane,
    from: MemoryRegion,
    to: MemoryRegion,
    free: [Vec<usize>; CARDS],
    under_way: BTreeMap<u32, (usize, usize)>,
    next: u32,
}

fn mac(n: usize) -> Mac {
    Mac([2, 0, 0, 0, 0x0a, n as u8 + 1])
}

fn ip(n: usize) -> IpAddr {
    IpAddr::from([10, 10, 0, n as u8 + 1])
}

/// Where message places of card `from` are in the region of whoever it writes to.
fn place(from: usize, slot: usize) -> usize {
    (from * WINDOW + slot) * BYTES
}

fn text(from: usize, tag: u32) -> Vec<u8> {
    (0..BYTES).map(|i| pattern(u64::from(tag) * CARDS as u64 + from as u64, i)).collect()
}

impl Seat {
    fn new(n: usize, plan: &Plan) -> Result<Self, Error> {
        let lane = Lane::new(&LaneConfig { width: plan.width, tick_cycles: TICK, skip_idle: false, log_ends: 6, seed: plan.seed + n as u64 }, mac(n))?;
        for other in (0..CARDS).filter(|other| *other != n) {
            lane.befriend(other as u16, &Way { own: ip(n), other: ip(other), mac: mac(other) }, &lane.pd)?;
        }
        let (from, to) = (lane.region(&lane.pd, CARDS * WINDOW * BYTES, 0, Access::LOCAL_WRITE)?, lane.region(&lane.pd, CARDS * WINDOW * BYTES, 0, OPEN)?);
        let free = std::array::from_fn(|other| if other == n { Vec::new() } else { (0..WINDOW).collect() });
        Ok(Self { lane, from, to, free, under_way: BTreeMap::new(), next: 0 })
    }
}

/// Whether a frame is a request with payload, and sent again; or a refusal.
fn kind(frame: &[u8]) -> (bool, bool, bool) {
    match ferric_uet::wire::parse(frame, &super::judge::registers()).map(|parsed| parsed.pds) {
        Ok(ferric_uet::wire::Pds::Request(head, _)) => (true, head.retx(), false),
        Ok(ferric_uet::wire::Pds::Nack(_)) => (false, false, true),
        _ => (false, false, false),
    }
}

/// Runs it. Errors: a byte that is another, a message that fails or does not end.
pub fn run(plan: &Plan) -> Result<Outcome, Error> {
    let mut seats = (0..CARDS).map(|n| Seat::new(n, plan)).collect::<Result<Vec<_>, _>>()?;
    let rate = plan.width as u64 / 8;
    let config = Config { nodes: CARDS, latencies: PATHS.to_vec(), path_rate: rate, port_rate: rate, faults: Faults { loss: plan.loss, ..Default::default() }, ..Default::default() };
    let mut fabric = Fabric::new(config, plan.seed);
    (0..CARDS).for_each(|n| fabric.attach(super::number(mac(n)), n));
    let mut capture = plan.capture.as_deref().map(Capture::create).transpose()?;
    let [cut, noticed, back] = plan.failure();
    let mut outcome = Outcome { bins: Vec::new(), messages: 0, fabric: Counters::default(), paths: [0; PATHS.len()], again: 0, captured: 0, cycles: 0 };
    let mut now = 0;
    loop {
        match now {
            _ if now == cut => fabric.cut(FAILS),
            _ if now == noticed => fabric.withdraw(FAILS),
            _ if now == back => fabric.restore(FAILS),
            _ => {}
        }
        for delivery in fabric.advance(now) {
            seats[delivery.node].lane.receive(delivery.frame);
        }
        for n in 0..CARDS {
            for frame in seats[n].lane.step() {
                let (request, again, refusal) = kind(&frame);
                outcome.again += u64::from(again || refusal);
                if let (true, Some(path)) = (request, fabric.path_of(&frame)) {
                    outcome.paths[path] += 1;
                }
                let before = fabric.counters.lost;
                fabric.send(now, n, frame.clone());
                if let Some(capture) = &mut capture {
                    // Into the switches; which ones a fault takes is known at once.
                    let fate = if fabric.counters.lost > before { Fate::Dropped } else { Fate::Delivered };
                    capture.frame(now, 1, &frame, fate, None)?;
                    outcome.captured += 1;
                }
            }
        }
        if now % 16 == 0 {
            (0..CARDS).try_for_each(|n| advance(&mut seats, n, now, plan, &mut outcome))?;
            if now >= plan.cycles && seats.iter().all(|seat| seat.under_way.is_empty()) {
                break;
            }
        }
        if now > plan.cycles + PATIENCE {
            let left: usize = seats.iter().map(|seat| seat.under_way.len()).sum();
            return Err(Error::Stuck(format!("{left} messages do not end")));
        }
        now += 1;
    }
    (outcome.fabric, outcome.cycles) = (fabric.counters, now);
    if let Some(capture) = &mut capture {
        capture.flush()?;
    }
    Ok(outcome)
}

/// Takes card `n`'s ends, verifies their bytes, and posts anew.
fn advance(seats: &mut [Seat], n: usize, now: u64, plan: &Plan, outcome: &mut Outcome) -> Result<(), Error> {
    while let Some(end) = seats[n].lane.ends.poll() {
        let stuck = |what: &str| Error::Stuck(format!("message {} of card {n}: {what}, {end:?}", end.tag));
        let (to, slot) = seats[n].under_way.remove(&end.tag).ok_or_else(|| stuck("of nobody"))?;
        if (end.why, end.code) != (0, ReturnCode::Ok as u8) {
            return Err(stuck("failed"));
        }
        if seats[to].to.to_vec(place(n, slot), BYTES) != text(n, end.tag) {
            return Err(stuck("other bytes have come"));
        }
        seats[n].free[to].push(slot);
        let bin = (now / plan.bin) as usize;
        if outcome.bins.len() <= bin {
            outcome.bins.resize(bin + 1, [0; CARDS]);
        }
        outcome.bins[bin][to] += BYTES as u64;
        outcome.messages += 1;
    }
    if now >= plan.cycles {
        return Ok(());
    }
    for to in 0..CARDS {
        while let Some(slot) = seats[n].free[to].pop() {
            let (raddr, rkey) = (seats[to].to.addr() + place(n, slot) as u64, seats[to].to.rkey());
            let seat = &mut seats[n];
            let (tag, at) = (seat.next, place(to, slot));
            seat.from.write(at, &text(n, tag));
            let write = UetWrite { peer: to as u16, ordered: false, length: BYTES as u32, addr: seat.from.addr() + at as u64, lkey: seat.from.lkey(), raddr, rkey: rkey.into(), tag };
            seat.lane.ctx.uet_write(&write);
            seat.under_way.insert(tag, (to, slot));
            seat.next += 1;
        }
    }
    Ok(())
}
