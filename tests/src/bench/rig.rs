//! Sets up cards and queue pairs, and runs one point on them.
use super::load::{run, Line, Shape, Stream};
use super::reader::{self, Counters, Delivered};
use super::registrations;
use super::scenarios::{Measure, Op, Point, Rig, Way, ALL};
use crate::pair::{Error, Pair};
use ferric_abi::csr::FUNCTION_PORTS;
use ferric_abi::switch::{destination, Action, FlowKey};
use ferric_abi::wire::ethertype;
use ferric_driver::switch::{FlowPort, FlowSet, FlowTables, Sender};
use ferric_driver::types::{Mac, Mtu};
use ferric_driver::TunnelConfig;
use ferric_sim::axi::HostTiming;
use ferric_sim::fabric::{Faults, LinkConfig};
use ferric_sim::trace::Event;
use ferric_sim::{CardConfig, WorldConfig};
use serde::{Deserialize, Serialize};
use std::mem::ManuallyDrop;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Instant;

/// Simulated cycles within which something must complete.
const PATIENCE: u64 = 400_000;
/// Width of the cards.
const WIDTH: usize = 512;
/// Network of the tunnels, and packet class of IPv4 (docs/switch.md).
const VNI: u32 = 100;
const IPV4_CLASS: u8 = 2;

/// What a point came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The figure; none if the run did not end, or its trace is not of what was asked for.
    pub value: Option<f64>,
    /// Why not.
    pub error: Option<String>,
    /// What must not happen and did: repeats, drops, refusals on a link without loss.
    pub faults: Vec<String>,
    /// Frames sent again by either card, where the link loses some.
    pub repeats: u64,
    /// Simulated cycles of the measured part.
    pub cycles: u64,
    /// Messages of the measured part.
    pub messages: u64,
    /// Wall seconds of the measured part.
    pub seconds: f64,
}

/// Cards and queue pairs ready for any point of one kind of rig.
pub struct Set {
    pair: Pair,
    lines: Vec<Line>,
}

/// Cards as every figure begins with: the same in every run.
fn cards(way: Way) -> Result<Pair, Error> {
    let engines = match way {
        Way::Plain => CardConfig::default().engines,
        Way::Ends => "vxlan",
        Way::Idle | Way::Decided | Way::Tunnelled => "switch",
    };
    // Traces of both cards, for whoever asks why a figure is what it is: FILE and FILE.1, from cycle FERRIC_BENCH_FST_FROM on, for most cycles pass before the figure begins.
    let fst_from = std::env::var("FERRIC_BENCH_FST_FROM").ok().and_then(|from| from.parse().ok()).unwrap_or(0);
    let traced = |suffix: &str| {
        let fst = std::env::var_os("FERRIC_BENCH_FST").map(|mut file| {
            file.push(suffix);
            PathBuf::from(file)
        });
        CardConfig { width: WIDTH, engines, fst, fst_from, ..Default::default() }
    };
    let pair = Pair::new(&WorldConfig { cards: vec![traced(""), traced(".1")], rest: false, ..Default::default() })?;
    // As it was before there were pause frames, to compare with.
    if std::env::var_os("FERRIC_BENCH_NO_PAUSE").is_some() {
        return Ok(pair);
    }
    let pair = pair.with_pause()?;
    match way {
        Way::Plain | Way::Ends | Way::Idle => {}
        Way::Decided => decided(&pair)?,
        Way::Tunnelled => {
            for card in 0..2 {
                pair.hosts[card].ctx.set_tunnel(0, &tunnel(card))?;
            }
            decided(&pair)?;
        }
    }
    Ok(pair)
}

/// Function 0's tunnel.
fn tunnel(card: usize) -> TunnelConfig {
    let end = |card: u8| (Mac([6, 0, 0, 0, 0, card + 1]), IpAddr::from([192, 0, 2, card + 1]));
    let [(own, local), (next_hop, remote)] = [end(card as u8), end(1 - card as u8)];
    TunnelConfig::new(VNI, own, local, next_hop, remote)
}

/// Both cards' tables decide about what function 0 receives, by an exact entry, drop everything else, and verify what it sends.
fn decided(pair: &Pair) -> Result<(), Error> {
    for host in &pair.hosts {
        let IpAddr::V4(ip) = host.ip(false) else { return Err(Error::Stuck("a host without an IPv4 address".into())) };
        let mask = FlowKey::default().with_ethertype(u16::MAX).with_dst(u32::MAX.into());
        let key = FlowKey::default().with_ethertype(ethertype::IPV4).with_dst(u32::from(ip).into());
        let to_function = Action::default().with_kind(destination::PORT).with_number(FUNCTION_PORTS as u16).with_count(true);
        let set = FlowSet { actions: vec![to_function], masks: vec![([0, IPV4_CLASS], mask)], entries: vec![([0, IPV4_CLASS], key, 0)], ..Default::default() };
        let mut tables = FlowTables::open(&host.ctx)?;
        tables.set_sender(&host.ctx, 0, Some(&Sender { macs: vec![host.mac()], addresses: vec![host.ip(false)], roce: true, ..Default::default() }))?;
        tables.replace_all(&host.ctx, &set, &FlowPort { drop_miss: true, ..Default::default() })?;
    }
    Ok(())
}

impl Rig {
    fn mtu(self) -> Mtu {
        if self == Rig::Large1024 {
            Mtu::M1024
        } else {
            Mtu::M4096
        }
    }

    /// Makes and connects everything.
    pub fn set_up(self, way: Way) -> Result<Set, Error> {
        let pair = cards(way)?;
        let (small, large) = (512 * 64 + 64, 8 * 262_144 + 64);
        let (count, entries, inline, room) = match self {
            Rig::Fetched => (32, 4, 64, small),
            Rig::All => (ALL, 4, 64, 4096),
            Rig::Carried => (32, 1, 0, small),
            Rig::Large4096 => (4, 4, 64, large),
            Rig::Large1024 => (2, 4, 64, large),
            Rig::Datagrams => (8, 1, 0, 512 * 128 + 64),
            Rig::Registrations => (0, 0, 0, 0),
        };
        let line = |_| if self == Rig::Datagrams { Line::datagrams(&pair, room) } else { Line::connected(&pair, self.mtu(), entries, inline, room) };
        let lines = (0..count).map(line).collect::<Result<_, _>>()?;
        Ok(Set { pair, lines })
    }
}

impl Set {
    /// Runs one point; the set is used up, and left as it is: taking queue pairs down one by one takes longer than the run. `keep`: called with
    /// the trace.
    pub fn measure(self, point: &Point, keep: impl FnOnce(&[Event])) -> Outcome {
        self.try_measure(point, keep).unwrap_or_else(|e| Outcome { error: Some(e.to_string()), ..Default::default() })
    }

    fn try_measure(self, point: &Point, keep: impl FnOnce(&[Event])) -> Result<Outcome, Error> {
        let s = point.scenario;
        let (pair, mut lines) = (ManuallyDrop::new(self.pair), ManuallyDrop::new(self.lines));
        {
            let mut world = pair.world();
            for card in &mut world.cards {
                card.set_timing(HostTiming { read_latency: point.latency, read_jitter: 60, max_reads: s.reads, bytes_per_cycle: s.bus, ..Default::default() });
                card.pace_mac(s.mac);
            }
        }
        if let Measure::Registration(policy) = s.measure {
            let value = registrations::cost(ManuallyDrop::into_inner(pair), policy, point.offset)?;
            return Ok(Outcome { value: Some(value), ..Default::default() });
        }
        let strewn = if s.set > 0 { s.set / s.size / s.qps } else { 0 };
        let pair = &*pair;
        let asked = s.qps * (1 + usize::from(s.both));
        let mut streams = lines
            .iter_mut()
            .take(asked)
            .enumerate()
            .map(|(n, line)| {
                let shape = Shape { op: s.op, size: s.size, window: point.window, offset: point.offset, strewn, from: usize::from(n >= s.qps) };
                Stream::new(pair, line, shape)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let (warm, count) = point.counts();
        run(pair, &mut streams, warm, PATIENCE)?;
        let before = [counters(pair, 0)?, counters(pair, 1)?];
        let from = {
            let mut world = pair.world();
            let faults = Faults { loss: s.loss, ..Default::default() };
            world.links.iter_mut().for_each(|l| l.set_config(LinkConfig { faults, ..Default::default() }));
            world.trace = Some(Vec::new());
            world.cycle()
        };
        let started = Instant::now();
        run(pair, &mut streams, warm + count, PATIENCE)?;
        let seconds = started.elapsed().as_secs_f64();
        drop(streams);
        let (trace, cycles) = {
            let mut world = pair.world();
            (world.trace.take().unwrap_or_default(), world.cycle() - from)
        };
        keep(&trace);
        let messages = count * s.qps as u64;
        let mut outcome = Outcome { cycles, messages: messages * (1 + u64::from(s.both)), seconds, ..Default::default() };
        match figure(&trace, point, messages) {
            Ok(value) => outcome.value = Some(value),
            Err(e) => outcome.error = Some(e),
        }
        if std::env::var_os("FERRIC_BENCH_COUNTERS").is_some() {
            for c in 0..2 {
                let now = counters(pair, c)?;
                for (name, value) in &now {
                    let d = value - before[c].get(name).copied().unwrap_or(0);
                    if d > 0 {
                        eprintln!("card {c} {name} {d} ({:.3} a message)", d as f64 / messages as f64);
                    }
                }
            }
        }
        if s.loss == 0 {
            outcome.faults = reader::faults(&trace, &before, &[counters(pair, 0)?, counters(pair, 1)?]);
        }
        outcome.repeats = [0, 1].map(|c| reader::waste(&trace, c).repeats).iter().sum();
        Ok(outcome)
    }
}

/// A card's counters by name since it was started.
pub fn counters(pair: &Pair, card: usize) -> Result<Counters, Error> {
    let names = ferric_hdl::card::counters::names();
    let values = pair.hosts[card].ctx.counters(0, names.len() as u32)?;
    Ok(names.into_iter().zip(values).collect())
}

/// The figure of `point`; `messages`: sent in each direction while traced.
fn figure(trace: &[Event], point: &Point, messages: u64) -> Result<f64, String> {
    let s = point.scenario;
    let missing = || "the trace does not hold what the figure needs".to_string();
    match s.measure {
        Measure::DoorbellToWire => return reader::doorbell_to_wire(trace, 0).ok_or_else(missing),
        Measure::WireToDma => return reader::wire_to_dma(trace, 1).ok_or_else(missing),
        _ => {}
    }
    let answers = matches!(s.op, Op::Read | Op::Add);
    let each: Vec<f64> = (0..=u16::from(s.both))
        .map(|from| {
            let receiver = if answers { from } else { 1 - from };
            let d = reader::delivered(trace, receiver, answers).ok_or_else(missing)?;
            let payload = if s.op == Op::Add { 0 } else { messages * s.size as u64 };
            if (d.messages, d.payload) != (messages, payload) {
                return Err(format!("{} messages of {} bytes in all reached card {receiver}, {messages} of {payload} were sent", d.messages, d.payload));
            }
            value(&d, point).ok_or_else(missing)
        })
        .collect::<Result<_, String>>()?;
    // Of two directions the worse.
    let worse = |a: f64, b: f64| if s.measure.more_is_better() { a.min(b) } else { a.max(b) };
    each.into_iter().reduce(worse).ok_or_else(missing)
}

fn value(d: &Delivered, point: &Point) -> Option<f64> {
    match point.scenario.measure {
        Measure::Efficiency => {
            let around = reader::AROUND + if point.scenario.way == Way::Tunnelled { reader::TUNNEL } else { 0 };
            Some(d.efficiency(point.scenario.rig.mtu().bytes() as u64, around, WIDTH as u64 / 8))
        }
        Measure::Pace(bytes) => Some(100.0 * d.goodput() / f64::from(bytes)),
        _ => d.cycles_per_message(),
    }
}
