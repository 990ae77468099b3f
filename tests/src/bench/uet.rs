//! `./scripts/bench --uet`: what the card `uet` reaches between two hosts, by the traces of the cards' pins. The reader of frames is written from the specification (UE 3.5.10, 3.4.2), and knows nothing of the gateware.
mod pins;

use super::reader;
use super::report::{number, Figure, Report};
use crate::pair::Error;
use crate::traffic::pattern;
use ferric_abi::uet::codes::ReturnCode;
use ferric_driver::types::{Mac, Path};
use ferric_driver::{Access, Config, Context, MemoryRegion, Pd, UetEnds, UetWrite};
use ferric_hdl::card::Card;
use ferric_sim::axi::HostTiming;
use ferric_sim::trace::Event;
use ferric_sim::{CardConfig, SimDevice, World, WorldConfig};
use pins::*;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// Width of the cards, and bytes of a beat.
const WIDTH: usize = 512;
const BEAT: u64 = WIDTH as u64 / 8;
/// Bytes around a packet's payload: Ethernet, IPv4, UDP, PDS and SES; largest payload.
const AROUND: u64 = 14 + 20 + 8 + 12 + 44;
const MTU: u64 = 4096;
/// Cycles within which something has to end, and those between two looks at the rings.
const PATIENCE: u64 = 400_000;
const LOOK: u64 = 16;
/// Host reads: cycles, and as many more at most.
const LATENCY: u32 = 250;
const JITTER: u32 = 60;
/// log2 of the places of a ring for ends.
const LG_ENDS: u8 = 6;

/// How a trace becomes a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Ideal beats of the payload in percent of the cycles, of two directions the worse.
    Efficiency,
    /// Cycles per message.
    PerMessage,
    /// Cycles from the doorbell to the first beat on the wire less host reads.
    DoorbellToWire,
    /// Cycles from the last beat received to the DMA write.
    WireToDma,
}

/// One figure.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Stable.
    pub name: &'static str,
    /// In words.
    pub what: &'static str,
    /// Bytes of a message.
    pub size: usize,
    /// PDCs, each to an address of the other card's.
    pub pdcs: usize,
    /// Both directions at once.
    pub both: bool,
    /// Messages under way in each direction; in the part that is measured.
    pub window: usize,
    /// See `window`.
    pub count: u64,
    /// How it is judged.
    pub measure: Measure,
    /// What it has to reach (issue 25).
    pub bar: f64,
    /// What limits it.
    pub limit: &'static str,
}

/// Initiators' PDCs of a card (`hdl/src/uet/settings.rs`).
const MANY: usize = 11;

/// All of them.
pub const POINTS: &[Point] = &[
    Point {
        name: "uet_write_4096_efficiency",
        what: "WRITE of 64 KiB, packets of 4096 bytes, 4 PDCs in each direction at once; beats of the best sequence of frames in percent of the cycles",
        size: 65_536,
        pdcs: 4,
        both: true,
        window: 8,
        count: 16,
        measure: Measure::Efficiency,
        bar: 98.0,
        limit: LIMIT_PACKETS,
    },
    Point {
        name: "uet_write_1024_efficiency",
        what: "WRITE of 1024 bytes, 7 PDCs in each direction at once; likewise",
        size: 1024,
        pdcs: 7,
        both: true,
        window: 24,
        count: 256,
        measure: Measure::Efficiency,
        bar: 95.0,
        limit: LIMIT_MESSAGES,
    },
    Point {
        name: "uet_msg64",
        what: "WRITE of 64 bytes over 11 PDCs, one direction, cycles per message",
        size: 64,
        pdcs: MANY,
        both: false,
        window: 30,
        count: 512,
        measure: Measure::PerMessage,
        bar: 4.0,
        limit: LIMIT_MESSAGES,
    },
    Point {
        name: "uet_msg64_one_pdc",
        what: "WRITE of 64 bytes over one PDC, one direction, cycles per message",
        size: 64,
        pdcs: 1,
        both: false,
        window: 30,
        count: 512,
        measure: Measure::PerMessage,
        bar: 8.0,
        limit: LIMIT_MESSAGES,
    },
    Point {
        name: "uet_doorbell_to_wire",
        what: "doorbell to first beat on the wire, less serial host reads: WRITE of 64 bytes over a PDC that is open, one at a time",
        size: 64,
        pdcs: 1,
        both: false,
        window: 1,
        count: 16,
        measure: Measure::DoorbellToWire,
        bar: 70.0,
        limit: LIMIT_OUT,
    },
    Point {
        name: "uet_wire_to_dma",
        what: "last beat in to DMA write issued: WRITE of 64 bytes, one at a time",
        size: 64,
        pdcs: 1,
        both: false,
        window: 1,
        count: 16,
        measure: Measure::WireToDma,
        bar: 40.0,
        limit: LIMIT_IN,
    },
];

/// By the states of `hdl/src/uet/transmit`, and by what the figure did when either half was made shorter.
const LIMIT_PACKETS: &str =
    "the half of the engine that sends: a turn of a packet takes some 60 cycles, an ACK some 100, one after another; the half that receives needs some 85 for a packet, the blocks around them less";
const LIMIT_MESSAGES: &str = "the same half: a message is an admission (some 50 cycles), a turn (some 60) and an ACK (some 100, which several messages of one PDC may share), one after another";
const LIMIT_OUT: &str = "one block behind another: the manager of PDCs (28 cycles to find a peer's), the turn, of which the walks over the packets that are out are the largest part, headers, frame";
const LIMIT_IN: &str = "one block behind another: the intake (some 30 cycles, 10 of them IPv4's sum), the parser (13), the manager (20), the window (10), key and mover";

impl Point {
    /// As the report says it.
    pub fn unit(&self) -> &'static str {
        match self.measure {
            Measure::Efficiency => "% of the beats",
            Measure::PerMessage => "cycles per message",
            _ => "cycles",
        }
    }

    /// The bar is met.
    pub fn reaches(&self, value: f64) -> bool {
        if self.measure == Measure::Efficiency {
            value >= self.bar
        } else {
            value <= self.bar
        }
    }
}

/// Counters that move while a card does what it was asked to; every other one tells of what must not happen on a link that loses nothing.
const WORK: &[&str] = &[
    "dma_rd.reads",
    "dma_wr.writes",
    "doorbell.db_rung",
    "doorbell.db_wqe",
    "egress.tx_frames",
    "rx.rx_frames",
    "rx.rx_roce",
    "rx.rx_raw",
    "mr.mr_checks",
    "mr.mtt_misses",
    "mr.mtt_ahead",
    "uet.uet_frames",
    "uet.uet_sent",
    "uet.uet_sent_control",
    "uet.uet_placed",
    "uet.uet_posts",
    "uet.uet_ends",
    "uet.uet_rx",
    "uet.uet_rx_reserved",
    "uet.uet_pdc_opened",
    "uet.uet_pdc_accepted",
    "uet.uet_pdc_reused",
    "uet.uet_pdc_closed",
    "uet.uet_pdc_lingered",
];

/// The value that `trace` says; `messages`: in each direction.
fn value(point: &Point, trace: &[Event], messages: u64) -> Result<f64, String> {
    let missing = || "the trace does not hold what the figure needs".to_string();
    match point.measure {
        Measure::DoorbellToWire => return reader::doorbell_to_wire(trace, 0).ok_or_else(missing),
        Measure::WireToDma => return wire_to_dma(trace, 1).ok_or_else(missing),
        _ => {}
    }
    let mut worst = None::<f64>;
    for from in 0..=usize::from(point.both) {
        let d = delivered(trace, 1 - from).ok_or_else(missing)?;
        if (d.messages, d.payload) != (messages, messages * point.size as u64) {
            return Err(format!("{} messages of {} bytes in all reached card {}, {messages} were sent", d.messages, d.payload, 1 - from));
        }
        let one = match point.measure {
            Measure::Efficiency => 100.0 * (d.payload / point.size as u64 * beats_of(point.size as u64)) as f64 / (d.last - d.first + 1) as f64,
            _ => (d.started - d.first) as f64 / (d.messages.max(2) - 1) as f64,
        };
        worst = Some(match (worst, point.measure) {
            (None, _) => one,
            (Some(w), Measure::Efficiency) => w.min(one),
            (Some(w), _) => w.max(one),
        });
    }
    worst.ok_or_else(missing)
}

/// Beats of the best frames for a message.
fn beats_of(bytes: u64) -> u64 {
    let rest = bytes % MTU;
    bytes / MTU * (MTU + AROUND).div_ceil(BEAT) + if rest > 0 { (rest + AROUND).div_ceil(BEAT) } else { 0 }
}

struct Host {
    ctx: Context,
    /// The peers are of this domain.
    _pd: Pd,
    ends: UetEnds,
    from: MemoryRegion,
    to: MemoryRegion,
    /// Places that no message has; for each message its place; what was posted, and what has ended.
    free: Vec<usize>,
    places: Vec<usize>,
    done: u64,
}

struct Street {
    world: Arc<Mutex<World>>,
    hosts: [Host; 2],
}

fn mac(n: usize) -> Mac {
    Mac([2, 0, 0, 0, 7, n as u8 + 1])
}

fn ip(n: usize, pdc: usize) -> IpAddr {
    IpAddr::from([10, 7, pdc as u8, n as u8 + 1])
}

impl Street {
    fn new(point: &Point) -> Result<Self, Error> {
        let fst_from = std::env::var("FERRIC_BENCH_FST_FROM").ok().and_then(|from| from.parse().ok()).unwrap_or(0);
        let card = |suffix: &str| {
            let fst = std::env::var_os("FERRIC_BENCH_FST").map(|mut file| {
                file.push(suffix);
                PathBuf::from(file)
            });
            CardConfig { width: WIDTH, engines: "uet", fst, fst_from, ..Default::default() }
        };
        let world = Arc::new(Mutex::new(World::new(&WorldConfig { cards: vec![card(""), card(".1")], rest: false, ..Default::default() })?));
        for card in &mut lock(&world).cards {
            card.set_timing(HostTiming { read_latency: LATENCY, read_jitter: JITTER, ..Default::default() });
        }
        let host = |n: usize| -> Result<Host, Error> {
            let ctx = Context::open(SimDevice::new(&world, n, 0), Config::default())?;
            ctx.set_station(0, mac(n))?;
            let pd = ctx.alloc_pd()?;
            for pdc in 0..point.pdcs {
                let path = Path { dmac: mac(1 - n), smac: mac(n), dip: ip(1 - n, pdc), sip: ip(n, pdc), vlan: None, udp_sport: 0, tclass: 0x20, hop_limit: 64, flow_label: 0 };
                ctx.set_uet_peer(pdc as u16, &path, &pd)?;
            }
            let region = |access| pd.register(vec![0; point.window * stride(point)].into_boxed_slice(), access);
            let (from, to) = (region(Access::LOCAL_WRITE)?, region(Access { remote_write: true, ..Access::LOCAL_WRITE })?);
            let ends = ctx.uet_ends(LG_ENDS)?;
            Ok(Host { ctx, _pd: pd, ends, from, to, free: (0..point.window).collect(), places: Vec::new(), done: 0 })
        };
        let hosts = [host(0)?, host(1)?];
        Ok(Self { world, hosts })
    }

    /// Posts what the window allows, and takes the ends that are there, whose bytes are verified.
    fn advance(&mut self, point: &Point, n: usize, count: u64) -> Result<(), Error> {
        let stuck = |text: String| Error::Stuck(text);
        while (self.hosts[n].places.len() as u64) < count {
            let Some(place) = self.hosts[n].free.pop() else { break };
            let tag = self.hosts[n].places.len();
            let (at, bytes) = (place * stride(point), (0..point.size).map(|i| pattern(tag as u64, i)).collect::<Vec<_>>());
            let (addr, rkey) = (self.hosts[1 - n].to.addr() + at as u64, self.hosts[1 - n].to.rkey());
            let host = &mut self.hosts[n];
            host.from.write(at, &bytes);
            host.places.push(place);
            host.ctx.uet_write(&UetWrite {
                peer: (tag % point.pdcs) as u16,
                ordered: false,
                length: point.size as u32,
                addr: host.from.addr() + at as u64,
                lkey: host.from.lkey(),
                raddr: addr,
                rkey: rkey.into(),
                tag: tag as u32,
            });
        }
        while let Some(end) = self.hosts[n].ends.poll() {
            if end.why != 0 || end.code != ReturnCode::Ok as u8 {
                return Err(stuck(format!("{end:?}")));
            }
            let place = *self.hosts[n].places.get(end.tag as usize).ok_or_else(|| stuck(format!("{end:?} of no message")))?;
            let got = self.hosts[1 - n].to.to_vec(place * stride(point), point.size);
            if let Some(i) = got.iter().enumerate().position(|(i, byte)| *byte != pattern(end.tag.into(), i)) {
                return Err(stuck(format!("message {}: byte {i} is {:#04x}", end.tag, got[i])));
            }
            self.hosts[n].free.push(place);
            self.hosts[n].done += 1;
        }
        Ok(())
    }

    fn run(&mut self, point: &Point, count: u64) -> Result<(), Error> {
        let asks = 1 + usize::from(point.both);
        let (mut seen, mut since) = (u64::MAX, lock(&self.world).cycle());
        loop {
            (0..asks).try_for_each(|n| self.advance(point, n, count))?;
            let done: u64 = self.hosts.iter().map(|host| host.done).sum();
            if done == count * asks as u64 {
                return Ok(());
            }
            let now = lock(&self.world).cycle();
            if done != seen {
                (seen, since) = (done, now);
            } else if now - since > PATIENCE {
                return Err(Error::Stuck(format!("no end for {PATIENCE} cycles after {done}")));
            }
            lock(&self.world).run(LOOK);
        }
    }

    fn counters(&self, n: usize) -> Result<Vec<(String, u64)>, Error> {
        let names = Card::named("uet", WIDTH).map(|card| card.list().counter_names()).unwrap_or_default();
        let values = self.hosts[n].ctx.counters(0, names.len() as u32)?;
        Ok(names.into_iter().zip(values).collect())
    }
}

fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(|e| e.into_inner())
}

/// Bytes from one message's place to the next's.
fn stride(point: &Point) -> usize {
    point.size.next_multiple_of(64)
}

/// Runs a point: as many messages as fit in two windows first, then the measured ones.
pub fn measure(point: &Point) -> Figure {
    let started = Instant::now();
    let (value, faults, error) = match try_measure(point) {
        Ok((value, faults)) => (value.as_ref().ok().copied(), faults, value.err()),
        Err(e) => (None, Vec::new(), Some(e.to_string())),
    };
    let met = Some(faults.is_empty() && error.is_none() && value.is_some_and(|v| point.reaches(v)));
    println!("{:30} {:>9} {} ({:.1} s) {}", point.name, value.map_or("none".into(), number), point.unit(), started.elapsed().as_secs_f64(), faults.join(", "));
    Figure { name: point.name.into(), value, unit: point.unit().into(), bar: Some(point.bar), met, aim: None, aim_met: None, conditions: point.what.into(), faults, error }
}

type Measured = (Result<f64, String>, Vec<String>);

fn try_measure(point: &Point) -> Result<Measured, Error> {
    let mut street = Street::new(point)?;
    let warm = 2 * point.window as u64;
    street.run(point, warm)?;
    lock(&street.world).trace = Some(Vec::new());
    street.run(point, warm + point.count)?;
    let trace = lock(&street.world).trace.take().unwrap_or_default();
    let mut faults = Vec::new();
    for n in 0..2 {
        let (again, refused) = waste(&trace, n);
        if again + refused > 0 {
            faults.push(format!("card {n} sent {again} packets again and {refused} refusals"));
        }
        let counters = street.counters(n)?;
        if std::env::var_os("FERRIC_BENCH_COUNTERS").is_some() {
            counters.iter().filter(|(_, value)| *value > 0).for_each(|(name, value)| eprintln!("card {n} {name} {value}"));
        }
        faults.extend(counters.iter().filter(|(name, value)| *value > 0 && !WORK.contains(&name.as_str())).map(|(name, value)| format!("card {n}: {name} {value}")));
    }
    Ok((value(point, &trace, point.count), faults))
}

/// The table.
pub fn table(report: &Report) -> String {
    let mut text = String::from("| figure | value | unit | bar | | what limits it |\n|---|---|---|---|---|---|\n");
    for f in &report.figures {
        let point = POINTS.iter().find(|p| p.name == f.name);
        let verdict = match (&f.error, f.faults.is_empty(), f.met) {
            (Some(e), ..) => format!("**no figure**: {e}"),
            (None, false, _) => format!("**fault**: {}", f.faults.join(", ")),
            (.., Some(true)) => "met".into(),
            _ => "**missed**".into(),
        };
        let (value, bar) = (f.value.map_or("-".into(), number), f.bar.map_or("-".into(), number));
        writeln!(text, "| `{}`: {} | {value} | {} | {bar} | {verdict} | {} |", f.name, f.conditions, f.unit, point.map_or("", |p| p.limit)).expect("a string takes all");
    }
    text
}

/// docs/uet-figures.md.
pub fn page(report: &Report) -> String {
    let met = report.figures.iter().filter(|f| f.met == Some(true)).count();
    format!(
        "\
# What the card `uet` reaches

`./scripts/bench --uet --write` wrote this page; do not edit it. Gateware of commit {}, bench of {}. {met} of {} bars are met.

Two cards `uet` ([uet.md](uet.md)) with W = {WIDTH} and a link without loss; host reads are answered after {LATENCY} to {} cycles. Every byte is verified in the receiver's memory; a reader of the traces of the cards' pins counts the payload that has come, each packet's once.
A packet that is sent again, a refusal, or a counter that tells of a drop is a fault. The bars are those of issue 25. A packet of 4096 bytes is 66 beats, one of 1024 is 18, one of 64 is 3.

{}",
        report.gateware,
        report.commit,
        report.figures.len(),
        LATENCY + JITTER,
        table(report)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferric_sim::trace::Kind;

    /// The headers of a WRITE's packet of `payload` bytes (`ends`: it is its message's last).
    fn frame(psn: u32, payload: u16, ends: bool) -> Vec<u8> {
        let mut f = vec![0; 12];
        f.extend([0x08, 0, 0x45, 0]);
        f.extend((payload + 20 + 8 + 12 + 44).to_be_bytes());
        f.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 7, 0, 1, 10, 7, 0, 2, 0xc0, 0, 0x12, 0xb9]);
        f.extend((payload + 8 + 12 + 44).to_be_bytes());
        f.extend([0, 0, 0x11, 0x80, 0, 0]);
        f.extend(psn.to_be_bytes());
        f.extend([0, 1, 0, 1, 1, if ends { 0x2b } else { 0x29 }]);
        f
    }

    fn passes(trace: &mut Vec<Event>, cycle: u64, head: &[u8], bytes: u64) -> u64 {
        let beats = bytes.div_ceil(BEAT);
        for (card, kind) in [(0, Kind::TxBeat), (1, Kind::RxBeat)] {
            for beat in 0..beats {
                let last = beat + 1 == beats;
                trace.push(Event { cycle: cycle + beat, card, kind, bytes: BEAT as u32, last, addr: 0, head: if last { head.to_vec() } else { vec![] } });
            }
        }
        cycle + beats
    }

    fn trace(psns: &[u32], size: u16, gap: u64) -> Vec<Event> {
        let (mut all, mut cycle) = (Vec::new(), 0);
        for psn in psns {
            cycle = gap + passes(&mut all, cycle, &frame(*psn, size, true), u64::from(size) + AROUND);
        }
        all
    }

    #[test]
    fn a_packet_that_comes_again_gains_nothing() {
        let point = Point { size: 4096, both: false, ..POINTS[0] };
        assert_eq!((value(&point, &trace(&[1, 2, 3, 4], 4096, 0), 4), waste(&trace(&[1, 2], 4096, 0), 0)), (Ok(100.0), (0, 0)));
        let again = trace(&[1, 2, 3, 3, 4], 4096, 0);
        assert_eq!((value(&point, &again, 4), waste(&again, 0)), (Ok(80.0), (1, 0)));
        assert!(value(&point, &trace(&[1, 1], 4096, 0), 2).is_err(), "one has not come");
        let idle = Point { size: 64, both: false, ..POINTS[2] };
        assert_eq!(value(&idle, &trace(&[1, 2, 3], 64, 7), 3), Ok(10.0));
    }

    #[test]
    fn bars_are_looked_at() {
        assert!(POINTS[0].reaches(98.0) && !POINTS[0].reaches(97.9) && POINTS[2].reaches(4.0) && !POINTS[2].reaches(4.1));
        assert_eq!((beats_of(4096), beats_of(1024), beats_of(64)), (66, 18, 3));
    }

    #[test]
    fn counters_of_work_exist() {
        let names = Card::named("uet", WIDTH).unwrap().list().counter_names();
        assert_eq!(WORK.iter().filter(|name| !names.iter().any(|n| n == *name)).collect::<Vec<_>>(), Vec::<&&str>::new(), "{names:?}");
    }
}
