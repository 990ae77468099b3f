//! `./scripts/bench --virtio`: what the card `virtio` reaches, by the traces of its pins. Drivers of rings and the wire's other end are written from the specification (VIRTIO 1.3, 2.7, 5.1.6), and know nothing of the gateware.
mod ring;
mod stand;

use super::reader;
use super::report::{number, Figure, Report};
use crate::pair::Error;
use ferric_sim::axi::HostTiming;
use ferric_sim::trace::{Event, Kind};
use stand::{Stand, JITTER, RESET};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Instant;

/// Width of the card.
const WIDTH: usize = 512;
/// Bytes of frames without FCS: the shortest, and the longest of an MTU of 1500.
const SHORT: usize = 60;
const LONG: usize = 1514;
/// Bytes per cycle of a 100G MAC at 250 MHz.
const MAC_100G: u32 = 49;
/// Cycles within which something has to come, and those between two looks at the rings.
const PATIENCE: u64 = 100_000;
const LOOK: u64 = 16;
/// Cycles in which all that one frame has brought about is over: several reads and writes, one after the other.
const QUIET: u64 = 2500;
/// Receive chains that are fetched ahead of a queue's frames (`hdl/src/virtio/stock`), of one buffer each.
const STOCK: u64 = 33;
/// Host reads: cycles.
const LATENCY: u32 = 250;
/// Cycles within which a reset has to end.
const RESET_PATIENCE: u64 = 300_000;
/// Cycles over which the other functions' frames are counted, before a reset and from its beginning on.
const SPAN: u64 = 30_000;

/// How a trace becomes a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Cycles per frame, of two directions the worse.
    PerFrame,
    /// Bytes of the frames in percent of what the MAC takes.
    Share,
    /// Cycles from the notification to the first beat on the wire less host reads.
    NotifyToWire,
    /// Cycles from the last beat received to the DMA write.
    WireToDma,
    /// Cycles from the answer of a frame's last write to the write of its used element.
    AnswerToUsed,
    /// Cycles from the driver's event, read, to the interrupt.
    EventToInterrupt,
    /// Cycles of a function's reset.
    Reset,
    /// Frames that other functions lose by a reset, in percent.
    Others,
    /// Cycles per segment: there are none.
    PerSegment,
}

/// One figure.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Stable.
    pub name: &'static str,
    /// In words.
    pub what: &'static str,
    /// Bytes of a frame without FCS.
    pub size: usize,
    /// Queues that send, and those that receive.
    pub tx: usize,
    /// See `tx`.
    pub rx: usize,
    /// Frames on their way to a receive queue at most.
    pub window: u64,
    /// Frames in the part that is measured, in each direction.
    pub count: u64,
    /// Bytes per cycle that the MAC takes; 0: a beat in each.
    pub mac: u32,
    /// One function has half of the queues, and is reset.
    pub resets: bool,
    /// How it is judged.
    pub measure: Measure,
    /// What it has to reach (issue 23).
    pub bar: f64,
    /// What limits it.
    pub limit: &'static str,
}

/// What most have in common.
const USUAL: Point = Point { name: "", what: "", size: SHORT, tx: 0, rx: 0, window: 8, count: 256, mac: 0, resets: false, measure: Measure::PerFrame, bar: 0.0, limit: "" };

/// All of them.
pub const POINTS: &[Point] = &[
    Point { name: "virtio_tx64", what: "64 B to be sent, 16 queues of 4 functions; cycles per frame", tx: 16, bar: 4.0, limit: LIMIT_TX, ..USUAL },
    Point { name: "virtio_both64", what: "the same in both directions at once, 16 queues each; of the worse", tx: 16, rx: 16, bar: 5.0, limit: LIMIT_BOTH, ..USUAL },
    Point { name: "virtio_rx64", what: "64 B received, mergeable buffers, 16 queues of 4 functions; cycles per frame", rx: 16, bar: 4.0, limit: LIMIT_RX, ..USUAL },
    Point { name: "virtio_tx64_one_queue", what: "64 B to be sent, one queue; cycles per frame", tx: 1, bar: 8.0, limit: LIMIT_TX, ..USUAL },
    Point { name: "virtio_rx64_one_queue", what: "64 B received, one queue; cycles per frame", rx: 1, window: 24, bar: 8.0, limit: LIMIT_RX, ..USUAL },
    Point {
        name: "virtio_tx1514_mac",
        what: "1514 B to be sent, 16 queues; share of a 100G MAC (49 bytes per cycle)",
        size: LONG,
        tx: 16,
        mac: MAC_100G,
        measure: Measure::Share,
        bar: 98.0,
        limit: LIMIT_TX,
        ..USUAL
    },
    Point { name: "virtio_tx1514", what: "the same with a MAC that takes a beat in each cycle; cycles per frame", size: LONG, tx: 16, bar: 27.0, limit: LIMIT_TX, ..USUAL },
    Point { name: "virtio_rx1514", what: "1514 B received into buffers of 1536, 16 queues; cycles per frame", size: LONG, rx: 16, window: 2, bar: 28.0, limit: LIMIT_RX, ..USUAL },
    Point {
        name: "virtio_tso",
        what: "64 KiB in segments of 1448 bytes; cycles per segment",
        size: LONG,
        tx: 1,
        measure: Measure::PerSegment,
        bar: 28.0,
        limit: "the gateware makes no segments: **no**",
        ..USUAL
    },
    Point {
        name: "virtio_notify_to_wire",
        what: "notification to first beat on the wire, less serial host reads: 64 B, one at a time",
        tx: 1,
        count: 16,
        measure: Measure::NotifyToWire,
        bar: 80.0,
        limit: LIMIT_OUT,
        ..USUAL
    },
    Point {
        name: "virtio_wire_to_dma",
        what: "last beat in to the address of the payload's write: 64 B, one at a time",
        rx: 1,
        window: 1,
        count: 12,
        measure: Measure::WireToDma,
        bar: 35.0,
        limit: LIMIT_IN,
        ..USUAL
    },
    Point { name: "virtio_answer_to_used", what: "write answered to used element: the same", rx: 1, window: 1, count: 12, measure: Measure::AnswerToUsed, bar: 15.0, limit: LIMIT_USED, ..USUAL },
    Point { name: "virtio_event_to_interrupt", what: "event read back to MSI-X: the same", rx: 1, window: 1, count: 12, measure: Measure::EventToInterrupt, bar: 10.0, limit: LIMIT_USED, ..USUAL },
    Point {
        name: "virtio_reset",
        what: "reset of a function with 16 queues under load, two others with 16 in all beside it; cycles",
        tx: 16,
        rx: 16,
        resets: true,
        measure: Measure::Reset,
        bar: 5000.0,
        limit: LIMIT_RESET,
        ..USUAL
    },
    Point {
        name: "virtio_reset_others",
        what: "the same: frames that the others have less in 30,000 cycles from the reset on than in as many before, in percent",
        tx: 16,
        rx: 16,
        resets: true,
        measure: Measure::Others,
        bar: 1.0,
        limit: LIMIT_RESET,
        ..USUAL
    },
];

const LIMIT_TX: &str =
    "reads one after the other, by their number, not by a trace: one turn at a time, and each begins with reads of index, heads and descriptors, one behind the other, for as many frames as slots are free, eight at most; then the payload's read in the slot";
const LIMIT_BOTH: &str = "the same, and the turns: while a receive queue's is under way, of up to 32 chains, queues that send wait";
const LIMIT_RX: &str = "by the same arithmetic: index, heads and descriptors are read one after the other, those of up to 32 chains at once, and a batch in `used`, of one chain where frames are of many queues, waits for its writes";
const LIMIT_OUT: &str = "one block behind another: turn, head, walk, slot, header, frame";
const LIMIT_IN: &str = "one block behind another: the card's buffer, `intake`, `steer`, `hold`, the stock's lookup, and the moves of the header in front of the frame's";
const LIMIT_USED: &str = "states of `rx` and `used`, one after the other";
const LIMIT_RESET: &str = "each of its queues ends by commands and turns of its own, one after the other, and the control bus waits for a chain of the turn that is under way";

impl Point {
    /// As the report says it.
    pub fn unit(&self) -> &'static str {
        match self.measure {
            Measure::PerFrame => "cycles per frame",
            Measure::Share => "% of the MAC",
            Measure::Others => "% of the frames",
            Measure::PerSegment => "cycles per segment",
            _ => "cycles",
        }
    }

    /// The bar is met.
    pub fn reaches(&self, value: f64) -> bool {
        if self.measure == Measure::Share {
            value >= self.bar
        } else {
            value <= self.bar
        }
    }
}

/// Counters that move while the card does what it was asked to; every other one tells of what must not happen where buffers are there.
const WORK: &[&str] =
    &["dma_rd.reads", "dma_wr.writes", "rx.rx_frames", "rx.rx_raw", "virtio.virtio_frames", "virtio.virtio_copies", "virtio.virtio_delivered", "virtio.virtio_sent", "virtio.virtio_rung"];
/// What becomes of frames that were on their way to a function when it was reset.
const RESETS: &[&str] = &["virtio.virtio_filtered", "virtio.virtio_rx_down", "virtio.virtio_rx_no_buffer", "virtio.virtio_passed_on", "unwanted.rx_unwanted", "rx.rx_other_station"];

/// Cycles from one to the next of these events, mean.
fn apart(mut cycles: impl Iterator<Item = u64>) -> Option<f64> {
    let first = cycles.next()?;
    let (last, n) = cycles.fold((first, 0u64), |(_, n), cycle| (cycle, n + 1));
    (n > 0).then(|| (last - first) as f64 / n as f64)
}

/// Cycles per frame that left the card, and per frame whose first byte went to memory; of directions that there are the worse one. `begins`: the receive queue of which a buffer begins there.
fn per_frame(trace: &[Event], point: &Point, begins: impl Fn(u64) -> Option<u16>) -> Option<f64> {
    let sent = || apart(reader::frames(trace, 0, Kind::TxBeat).iter().map(|frame| frame.first));
    let received = || {
        // The bus says in which line a write begins: that of a buffer's first bytes has several.
        let mut last = HashMap::new();
        let writes = trace.iter().filter(|e| e.kind == Kind::WriteAddress);
        apart(writes.filter(|e| begins(e.addr).is_some_and(|queue| last.insert(queue, e.addr) != Some(e.addr))).map(|e| e.cycle).collect::<Vec<_>>().into_iter())
    };
    match (point.tx > 0, point.rx > 0) {
        (true, true) => Some(sent()?.max(received()?)),
        (true, false) => sent(),
        _ => received(),
    }
}

/// Of each frame received alone: its last beat to the first write; the answer of its last write to that of the used element; the last read before the interrupt to that. `used`: an address in the used ring.
fn stages(trace: &[Event], used: impl Fn(u64) -> bool) -> [Option<f64>; 3] {
    let answered = u64::from(HostTiming::default().write_latency);
    let mut all: [Vec<u64>; 3] = Default::default();
    let (mut came, mut written, mut read) = (None, None, None);
    for e in trace {
        match e.kind {
            Kind::RxBeat if e.last => came = Some(e.cycle),
            Kind::WriteAddress if used(e.addr) => all[1].extend(written.take().map(|at: u64| e.cycle - at - answered)),
            Kind::WriteAddress => all[0].extend(came.take().map(|at: u64| e.cycle - at)),
            // Not that of a write behind the used element.
            Kind::WriteBeat if !used(e.addr) => written = Some(e.cycle),
            Kind::ReadLast => read = Some(e.cycle),
            Kind::Interrupt => all[2].extend(read.take().map(|at: u64| e.cycle - at)),
            _ => {}
        }
    }
    all.map(|of| mean(&of))
}

/// The first beat of each frame that leaves alone: cycles since its notification, less those of the reads that one after the other led to it: of the index, of the head, of the descriptor, of the payload. `area`: what is read there.
fn notify_to_wire(trace: &[Event], area: impl Fn(u64) -> Area) -> Option<f64> {
    const LED: [Area; 4] = [Area::Payload, Area::Descriptor, Area::Available, Area::Available];
    let (mut all, mut open, mut reads, mut notified) = (Vec::new(), Vec::new(), Vec::new(), None);
    for e in trace {
        match e.kind {
            Kind::Doorbell => (notified, reads) = (Some(e.cycle), Vec::new()),
            Kind::ReadAddress => open.push((e.addr, e.addr + u64::from(e.bytes), e.cycle)),
            // It says where the read ended.
            Kind::ReadLast => {
                let (from, _, begun) = open.remove(open.iter().position(|(_, end, _)| *end == e.addr)?);
                reads.push((area(from), begun, e.cycle));
            }
            Kind::TxBeat => {
                if let Some(notified) = notified.take() {
                    let (mut spent, mut at) = (0, e.cycle);
                    for led in LED {
                        let (_, begun, done) = *reads.iter().rev().find(|(of, begun, done)| *of == led && *begun >= notified && *done <= at)?;
                        (spent, at) = (spent + done - begun, begun);
                    }
                    all.push(e.cycle - notified - spent);
                }
            }
            _ => {}
        }
    }
    mean(&all)
}

/// What is read at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Area {
    Descriptor,
    Available,
    Payload,
    Other,
}

fn mean(all: &[u64]) -> Option<f64> {
    (!all.is_empty()).then(|| all.iter().sum::<u64>() as f64 / all.len() as f64)
}

/// Runs a point.
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
    if point.measure == Measure::PerSegment {
        return Ok((Err("the gateware makes no segments".into()), Vec::new()));
    }
    let mut stand = Stand::new(point)?;
    let value = match point.measure {
        Measure::Reset | Measure::Others => reset(&mut stand, point)?,
        Measure::PerFrame | Measure::Share => stream(&mut stand, point)?,
        _ => alone(&mut stand, point)?,
    };
    let counters = stand.counters()?;
    if std::env::var_os("FERRIC_BENCH_COUNTERS").is_some() {
        counters.iter().filter(|(_, value)| *value > 0).for_each(|(name, value)| eprintln!("{name} {value}"));
    }
    let known = |name: &str| WORK.contains(&name) || point.resets && RESETS.contains(&name);
    let faults = counters.iter().filter(|(name, value)| *value > 0 && !known(name)).map(|(name, value)| format!("{name} {value}")).collect();
    Ok((value.ok_or_else(|| "the trace does not hold what the figure needs".into()), faults))
}

/// The traced part of a run.
fn traced(stand: &mut Stand, run: impl FnOnce(&mut Stand) -> Result<(), Error>) -> Result<Vec<Event>, Error> {
    stand.world().trace = Some(Vec::new());
    run(stand)?;
    let trace = stand.world().trace.take().unwrap_or_default();
    Ok(trace)
}

/// All queues at once, after some frames, and as many as have been in stock in the beginning.
fn stream(stand: &mut Stand, point: &Point) -> Result<Option<f64>, Error> {
    let warm = point.count / 4 + STOCK * point.rx as u64;
    stand.until(warm, u64::MAX)?;
    let trace = traced(stand, |stand| stand.until(warm + point.count, u64::MAX))?;
    let cycles = per_frame(&trace, point, |address| stand.rings.iter().find(|ring| ring.receives && ring.begins(address)).map(|ring| ring.queue));
    Ok(match point.measure {
        Measure::Share => cycles.map(|cycles| 100.0 * point.size as f64 / f64::from(point.mac) / cycles),
        _ => cycles,
    })
}

/// One frame after the other, each when all is quiet.
fn alone(stand: &mut Stand, point: &Point) -> Result<Option<f64>, Error> {
    // Drivers look again when all has been done: interrupts are only for who has not looked.
    let one = |stand: &mut Stand, n: u64| -> Result<(), Error> {
        stand.turn(n, None)?;
        stand.world().run(QUIET);
        stand.until(n, n)
    };
    // Buffers are posted, and no more are while it is measured.
    one(stand, 1)?;
    stand.halts = point.rx > 0;
    let trace = traced(stand, |stand| (2..2 + point.count).try_for_each(|n| one(stand, n)))?;
    let [dma, used, interrupt] = stages(&trace, |address| stand.rings.iter().any(|ring| ring.is_used_ring(address)));
    Ok(match point.measure {
        Measure::NotifyToWire => notify_to_wire(&trace, |address| stand.rings.iter().map(|ring| ring.area(address)).find(|area| *area != Area::Other).unwrap_or(Area::Other)),
        Measure::WireToDma => dma,
        Measure::AnswerToUsed => used,
        _ => interrupt,
    })
}

fn reset(stand: &mut Stand, point: &Point) -> Result<Option<f64>, Error> {
    stand.until(point.count / 2, u64::MAX)?;
    let others = |stand: &Stand| stand.came(Some(RESET)).iter().sum::<u64>();
    let (begun, from) = (others(stand), stand.world().cycle());
    while stand.world().cycle() - from < SPAN {
        stand.turn(u64::MAX, None)?;
    }
    let (before, from) = (others(stand) - begun, stand.world().cycle());
    let cycles = stand.reset()?;
    while stand.world().cycle() - from < SPAN {
        stand.turn(u64::MAX, Some(RESET))?;
    }
    let after = others(stand) - begun - before;
    Ok(match point.measure {
        Measure::Reset => Some(cycles as f64),
        _ => (before > 0).then(|| 100.0 * (before as f64 - after as f64).max(0.0) / before as f64),
    })
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

/// docs/virtio-figures.md.
pub fn page(report: &Report) -> String {
    let met = report.figures.iter().filter(|f| f.met == Some(true)).count();
    format!(
        "\
# What the card `virtio` reaches

`./scripts/bench --virtio --write` wrote this page; do not edit it. Gateware of commit {}, bench of {}. {met} of {} bars are met.

One card `virtio` ([virtio.md](virtio.md)) with W = {WIDTH}; host reads are answered after {LATENCY} to {} cycles. Split rings of 256 places with EVENT_IDX, without offloads; a chain is one descriptor with header and frame, in the order of the ring. Drivers look at their rings every {LOOK} cycles. \"64 B\" is a frame of 60 bytes, without FCS.
Every byte of each frame is verified, on the wire or in the receiver's memory, and counts once; frames are offered so that none finds too little room, and a counter that tells of a drop is a fault. Cycles per frame are those between first beats on the wire, or between the writes of frames' first bytes. The bars are those of issue 23.
Not measured: packed rings, indirect tables, checksums, and what an idle engine costs RoCE.

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
    use ferric_hdl::card::Card;

    fn event(cycle: u64, kind: Kind, addr: u64) -> Event {
        Event { cycle, card: 0, kind, bytes: 64, last: true, addr, head: vec![] }
    }

    #[test]
    fn frames_are_counted_where_they_begin() {
        let trace: Vec<_> = (0..5)
            .flat_map(|n| [event(10 * n, Kind::TxBeat, 0), event(20 * n, Kind::WriteAddress, 64 * n), event(20 * n + 1, Kind::WriteAddress, 64 * n), event(20 * n + 2, Kind::WriteAddress, 1)])
            .collect();
        let begins = |address: u64| address.is_multiple_of(64).then_some(0);
        let value = |tx, rx| per_frame(&trace, &Point { tx, rx, ..USUAL }, begins);
        assert_eq!([value(1, 0), value(0, 1), value(1, 1)], [Some(10.0), Some(20.0), Some(20.0)]);
        assert_eq!(per_frame(&trace[..1], &Point { tx: 1, ..USUAL }, begins), None);
    }

    #[test]
    fn stages_of_a_frame_are_told_apart() {
        let used = |address| address >= 1000;
        let one = [(0, Kind::RxBeat, 0), (30, Kind::WriteAddress, 64), (31, Kind::WriteBeat, 64), (33, Kind::WriteAddress, 72), (35, Kind::WriteBeat, 72)];
        let two = [(147, Kind::WriteAddress, 1000), (148, Kind::WriteBeat, 1000), (160, Kind::WriteAddress, 1002), (550, Kind::ReadLast, 0), (559, Kind::Interrupt, 0)];
        let trace: Vec<_> = one.into_iter().chain(two).map(|(cycle, kind, addr)| event(cycle, kind, addr)).collect();
        assert_eq!(stages(&trace, used), [Some(30.0), Some(12.0), Some(9.0)]);
        assert_eq!(stages(&[], used), [None; 3]);
    }

    #[test]
    fn reads_that_led_to_a_frame_are_no_part_of_its_way() {
        let area = |address| [Area::Available, Area::Descriptor, Area::Payload, Area::Other][(address / 1000) as usize];
        let reads = |all: &[(u64, Kind, u64)]| all.iter().map(|(cycle, kind, addr)| event(*cycle, *kind, *addr + if *kind == Kind::ReadLast { 64 } else { 0 })).collect::<Vec<_>>();
        let read = |from: u64, to: u64, at: u64| [(from, Kind::ReadAddress, at), (to, Kind::ReadLast, at)];
        let mut one: Vec<_> = [read(5, 255, 0), read(260, 510, 0), read(520, 800, 1000), read(530, 790, 0), read(806, 1056, 2000)].concat();
        one.extend([(0, Kind::Doorbell, 0), (1066, Kind::TxBeat, 0)]);
        one.sort_by_key(|(cycle, ..)| *cycle);
        assert_eq!(notify_to_wire(&reads(&one), area), Some((5 + 5 + 10 + 6 + 10) as f64));
        assert_eq!(notify_to_wire(&reads(&one[3..]), area), None);
    }

    #[test]
    fn bars_are_looked_at() {
        let share = Point { measure: Measure::Share, bar: 98.0, ..USUAL };
        assert!(share.reaches(98.0) && !share.reaches(97.9) && POINTS[0].reaches(4.0) && !POINTS[0].reaches(4.1));
    }

    #[test]
    fn counters_of_work_exist() {
        let names = Card::named("virtio", WIDTH).unwrap().list().counter_names();
        assert_eq!(WORK.iter().chain(RESETS).filter(|name| !names.iter().any(|n| n == *name)).collect::<Vec<_>>(), Vec::<&&str>::new(), "{names:?}");
    }
}
