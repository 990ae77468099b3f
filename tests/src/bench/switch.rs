//! `./scripts/bench --switch`: what the flow switch and a tunnel cost RoCE: the same traffic on the cards `roce`, `vxlan` and `switch`, idle, deciding, and in a tunnel.
use super::report::{number, Figure, Report};
use super::scenarios::{Measure, Point, Rig, Scenario, Way, BASE, LARGE, SINGLE};
use std::fmt::Write as _;

/// Outstanding messages of the columns' figures.
const DEEP: &[usize] = &[32];
const HALF: &[usize] = &[8];
const ONE: &[usize] = &[1];
/// One latency and one alignment: how figures depend on these is the other pages' affair.
const LATENCY: &[u32] = &[250];
const LINES: &[usize] = &[0];

/// How far an idle or deciding switch may be from the card without one: of figures in cycles per message and in percent, this share of it.
const SHARE: f64 = 1.0;
/// Cycles that it may add to the latency of what leaves and of what comes.
const OUT: f64 = 8.0;
const IN: f64 = 10.0;
/// Percent of the beats of the longer frames, both ways, that a tunnel has to leave.
const TUNNELLED: f64 = 97.0;

/// The columns.
const WAYS: [Way; 5] = [Way::Plain, Way::Ends, Way::Idle, Way::Decided, Way::Tunnelled];

/// A row: the same on all ways.
const fn row(names: [&'static str; 5], what: &'static str, base: Scenario) -> [Scenario; 5] {
    let base = Scenario { what, latencies: LATENCY, offsets: LINES, bar: None, aims: &[], ..base };
    [
        Scenario { name: names[0], way: WAYS[0], ..base },
        Scenario { name: names[1], way: WAYS[1], ..base },
        Scenario { name: names[2], way: WAYS[2], ..base },
        Scenario { name: names[3], way: WAYS[3], ..base },
        Scenario { name: names[4], way: WAYS[4], ..base },
    ]
}

macro_rules! named {
    ($name:literal) => {
        [concat!("plain_", $name), concat!("ends_", $name), concat!("idle_", $name), concat!("decided_", $name), concat!("tunnelled_", $name)]
    };
}

/// All of it.
const ROWS: &[[Scenario; 5]] = &[
    row(named!("write_256k_mtu4096"), "WRITE of 256 KiB, MTU 4096, one queue pair in each direction at once", Scenario { windows: HALF, ..LARGE }),
    row(named!("write_256k_mtu1024"), "WRITE of 256 KiB, MTU 1024, one queue pair in each direction at once", Scenario { rig: Rig::Large1024, windows: HALF, ..LARGE }),
    row(named!("write_64_32qp"), "WRITE of 64 B, 32 queue pairs, one direction", Scenario { windows: DEEP, count: 384, ..BASE }),
    row(named!("write_64_both_ways"), "WRITE of 64 B, 16 queue pairs in each direction at once", Scenario { qps: 16, both: true, windows: DEEP, ..BASE }),
    row(named!("doorbell_to_wire_64"), "doorbell to first beat on the wire, less serial host reads: WRITE of 64 B", Scenario { measure: Measure::DoorbellToWire, windows: ONE, ..SINGLE }),
    row(named!("wire_to_dma_64"), "last beat in to DMA write issued: WRITE of 64 B", Scenario { measure: Measure::WireToDma, windows: ONE, ..SINGLE }),
];

fn point(scenario: &'static Scenario) -> Point {
    Point { scenario, window: scenario.windows[0], offset: scenario.offsets[0], latency: scenario.latencies[0] }
}

/// All of it.
pub fn points() -> Vec<Point> {
    ROWS.iter().flatten().map(point).collect()
}

fn figure<'a>(report: &'a Report, scenario: &'static Scenario) -> Option<&'a Figure> {
    report.figures.iter().find(|f| f.name == point(scenario).name())
}

/// What a figure has to reach, given the one of the card without a switch. None: nothing is asked of it.
fn limit(scenario: &Scenario, plain: f64) -> Option<f64> {
    match (scenario.way, scenario.measure) {
        (Way::Plain, _) => None,
        (_, Measure::DoorbellToWire) => Some(plain + OUT),
        (_, Measure::WireToDma) => Some(plain + IN),
        (Way::Tunnelled, Measure::Efficiency) => Some(TUNNELLED),
        (Way::Tunnelled, _) => None,
        (_, measure) if measure.more_is_better() => Some(plain * (1.0 - SHARE / 100.0)),
        _ => Some(plain * (1.0 + SHARE / 100.0)),
    }
}

/// Gives each figure its bar, which depends on the first column's.
pub fn judge(report: &mut Report) {
    for row in ROWS {
        let Some(plain) = figure(report, &row[0]).and_then(|f| f.value) else { continue };
        for scenario in row {
            let (of, bar) = (point(scenario), limit(scenario, plain));
            if let Some(f) = report.figures.iter_mut().find(|f| f.name == of.name()) {
                f.bar = bar;
                f.met = bar.map(|bar| f.faults.is_empty() && f.value.is_some_and(|value| of.reaches(value, bar)));
            }
        }
    }
}

/// The table. A figure with a fault has a star, one that misses its bar has the bar beside it.
pub fn table(report: &Report) -> String {
    let mut text = String::from("| | unit | card `roce` | card `vxlan`, idle | card `switch`, idle | tables decide, senders are verified | the same in a tunnel |\n|---|---|---|---|---|---|---|\n");
    for row in ROWS {
        write!(text, "| {} | {} |", row[0].what, row[0].measure.unit()).expect("a string takes all");
        for scenario in row {
            let cell = figure(report, scenario).map_or("-".to_string(), |f| {
                let missed = f.bar.filter(|_| f.met == Some(false)).map_or(String::new(), |bar| format!(" (bar {})", number(bar)));
                f.value.map_or("none".to_string(), number) + if f.faults.is_empty() { "" } else { "*" } + &missed
            });
            write!(text, " {cell} |").expect("a string takes all");
        }
        text.push('\n');
    }
    text
}

/// docs/switch-figures.md.
pub fn page(report: &Report) -> String {
    let missed = report.figures.iter().filter(|f| f.met == Some(false)).count();
    let asked = report.figures.iter().filter(|f| f.met.is_some()).count();
    let faults: String = report.figures.iter().filter(|f| !f.faults.is_empty()).map(|f| format!("* `{}`: {}\n", f.name, f.faults.join(", "))).collect();
    format!(
        "\
# What the flow switch costs

`./scripts/bench --switch --write` wrote this page; do not edit it. Gateware of commit {}, bench of {}. {} of {asked} bars are met.

The same RoCE traffic on two cards `roce`, two cards `vxlan` and two cards `switch` ([switch.md](switch.md)), W = 512, buffers at 64-byte lines, host reads answered after 250 to 310 cycles. *Idle*: frames pass. *Decide*: an exact entry
leads each received frame to its function, everything else would be dropped, and the source addresses of everything that is sent are verified. *In a tunnel*: both functions have a VXLAN tunnel over IPv4, 50 bytes a frame;
efficiency is against these longer frames. How figures are made: [figures.md](figures.md).

{}
**Bars**: a card with tunnels' ends or a switch, idle or deciding, is within {SHARE} % of the card without them; it adds {OUT} cycles at most from the doorbell to the wire and {IN} from the wire to DMA; a tunnel leaves {TUNNELLED} % of the beats of MTU-sized frames. Figures in cycles of small messages in a tunnel have no bar: the frames are longer.

{}",
        report.gateware,
        report.commit,
        asked - missed,
        table(report),
        if faults.is_empty() { "No figure has a fault.\n".to_string() } else { format!("## Faults\n\n{faults}") }
    )
}

#[cfg(test)]
mod tests {
    use super::super::report;
    use super::super::rig::Outcome;
    use super::*;

    fn made_up(value: impl Fn(&Scenario) -> f64) -> Report {
        let figures = points().iter().map(|p| report::of_point(p, &Outcome { value: Some(value(p.scenario)), ..Default::default() })).collect();
        let mut report = Report { gateware: "abc".into(), commit: "def".into(), command: String::new(), figures };
        judge(&mut report);
        report
    }

    #[test]
    fn names_are_those_of_no_other_figure() {
        let all: Vec<String> = points().iter().map(Point::name).collect();
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), WAYS.len() * ROWS.len());
        assert!(ROWS.iter().all(|row| row.each_ref().map(|s| s.way) == WAYS));
        assert!(report::names().iter().all(|name| !all.contains(name)));
    }

    /// A switch that costs what it may meets its bars; one that costs more misses them, and the run fails.
    #[test]
    fn the_first_column_is_the_bar() {
        let costs = |percent: f64, cycles: f64, tunnel: f64| {
            move |s: &Scenario| match (s.way, s.measure) {
                (Way::Plain, _) => 50.0,
                (_, Measure::DoorbellToWire | Measure::WireToDma) => 50.0 + cycles,
                (Way::Tunnelled, _) => tunnel,
                (_, m) => 50.0 * (1.0 + if m.more_is_better() { -percent } else { percent } / 100.0),
            }
        };
        let missed = |report: &Report| report.failures().len();
        assert_eq!(missed(&made_up(costs(0.9, 8.0, 97.0))), 0);
        assert_eq!(missed(&made_up(costs(1.1, 8.0, 97.0))), 12);
        assert_eq!(missed(&made_up(costs(0.9, 9.0, 97.0))), 4);
        assert_eq!(missed(&made_up(costs(0.9, 11.0, 96.0))), 10);
        let page = page(&made_up(costs(1.1, 8.0, 97.0)));
        assert!(page.contains("10 of 22 bars are met") && page.contains("(bar 49.5)"), "{page}");
        assert_eq!(table(&made_up(costs(0.0, 0.0, 97.0))).lines().count(), ROWS.len() + 2);
    }
}
