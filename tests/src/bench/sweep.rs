//! `./scripts/bench --sweep`: WRITEs of every size at every depth, host latency and alignment, as a table and a plot, for what the scenarios do not name.
use super::report::{number, Figure, Report};
use super::scenarios::{Measure, Point, Rig, Scenario, BASE};
use plotters::prelude::*;
use std::fmt::Write as _;
use std::path::Path;

/// Queue pairs that send.
const QPS: usize = 4;
/// Bytes of buffers of a queue pair, at each end: what [`Rig::Large4096`] has.
const ROOM: usize = 2 << 20;
/// Messages outstanding per queue pair, where the buffers have room for them.
const WINDOWS: &[usize] = &[1, 8, 32, 128];
/// Host latencies in cycles.
const LATENCIES: &[u32] = &[250, 500, 1000];
/// Offsets of buffers from a 64-byte line.
const OFFSETS: &[usize] = &[0, 16];

const fn write(name: &'static str, what: &'static str, size: usize) -> Scenario {
    Scenario { name, what, rig: Rig::Large4096, size, qps: QPS, measure: Measure::Efficiency, windows: WINDOWS, latencies: LATENCIES, offsets: OFFSETS, count: 16, rounds: 16, ..BASE }
}

/// By size.
const SIZES: &[Scenario] = &[
    write("sweep_64", "WRITE of 64 B, MTU 4096, 4 queue pairs, one direction", 64),
    write("sweep_256", "WRITE of 256 B, MTU 4096, 4 queue pairs, one direction", 256),
    write("sweep_1k", "WRITE of 1 KiB, MTU 4096, 4 queue pairs, one direction", 1024),
    write("sweep_4k", "WRITE of 4 KiB, MTU 4096, 4 queue pairs, one direction", 4096),
    write("sweep_16k", "WRITE of 16 KiB, MTU 4096, 4 queue pairs, one direction", 16_384),
    write("sweep_64k", "WRITE of 64 KiB, MTU 4096, 4 queue pairs, one direction", 65_536),
    write("sweep_256k", "WRITE of 256 KiB, MTU 4096, 4 queue pairs, one direction", 262_144),
];

/// Latency and offset of each column of the table, and of each part of the plot.
fn conditions() -> impl Iterator<Item = (usize, u32)> {
    OFFSETS.iter().flat_map(|offset| LATENCIES.iter().map(|latency| (*offset, *latency)))
}

/// The windows that the buffers have room for.
fn windows(s: &Scenario) -> impl Iterator<Item = usize> + '_ {
    s.windows.iter().copied().filter(|w| w * s.size <= ROOM)
}

/// All of it.
pub fn points() -> Vec<Point> {
    let of = |scenario: &'static Scenario| windows(scenario).flat_map(move |window| conditions().map(move |(offset, latency)| Point { scenario, window, offset, latency }));
    SIZES.iter().flat_map(of).collect()
}

fn figure<'a>(report: &'a Report, scenario: &'static Scenario, window: usize, (offset, latency): (usize, u32)) -> Option<&'a Figure> {
    let name = Point { scenario, window, offset, latency }.name();
    report.figures.iter().find(|f| f.name == name)
}

/// The table: efficiency in percent of the beats. A figure with a fault has a star.
pub fn table(report: &Report) -> String {
    let mut text = String::from("| message | outstanding |");
    conditions().for_each(|(offset, latency)| write!(text, " {}, {latency} cycles |", if offset == 0 { "at lines" } else { "16 bytes off" }).expect("a string takes all"));
    text += "\n|---|---|---|---|---|---|---|---|\n";
    for s in SIZES {
        for window in windows(s) {
            write!(text, "| {} B | {QPS} x {window} |", s.size).expect("a string takes all");
            for at in conditions() {
                let cell = figure(report, s, window, at).map_or("-".to_string(), |f| f.value.map_or("none".to_string(), number) + if f.faults.is_empty() { "" } else { "*" });
                write!(text, " {cell} |").expect("a string takes all");
            }
            text.push('\n');
        }
    }
    text
}

/// docs/sweep.md.
pub fn page(report: &Report) -> String {
    let faults: String = report.figures.iter().filter(|f| !f.faults.is_empty()).map(|f| format!("* `{}`: {}\n", f.name, f.faults.join(", "))).collect();
    format!(
        "\
# Sweep

`./scripts/bench --sweep --write` wrote this page and the plot; do not edit it. Gateware of commit {}, bench of {}.

WRITEs from {QPS} queue pairs of one card to another, one direction, W = 512, path MTU 4096, from buffers at 64-byte lines or 16 bytes behind one, at both ends. The host answers
reads after so many cycles, and up to 60 more. The value is *efficiency*: the beats that the best frame sequence needs for the payload, in percent of the cycles that passed.
How figures are made, and what a fault is: [figures](figures.md). A star marks a figure with a fault.

{}
![efficiency by message size](sweep.svg)

{}",
        report.gateware,
        report.commit,
        table(report),
        if faults.is_empty() { "No figure has a fault.\n".to_string() } else { format!("## Faults\n\n{faults}") }
    )
}

/// The plot: efficiency over size, a line for each depth, a part for each latency and alignment.
pub fn plot(report: &Report, path: &Path) -> Result<(), String> {
    let fail = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let root = SVGBackend::new(path, (1200, 720)).into_drawing_area();
    root.fill(&WHITE).map_err(|e| fail(&e))?;
    for (area, at) in root.split_evenly((OFFSETS.len(), LATENCIES.len())).iter().zip(conditions()) {
        let title = format!("{}, host latency {} cycles", if at.0 == 0 { "at 64-byte lines" } else { "16 bytes off a line" }, at.1);
        let sizes = (SIZES[0].size as f64)..(SIZES[SIZES.len() - 1].size as f64);
        let mut chart =
            ChartBuilder::on(area).caption(title, ("sans-serif", 15)).margin(8).x_label_area_size(32).y_label_area_size(42).build_cartesian_2d(sizes.log_scale(), 0.0..100.0).map_err(|e| fail(&e))?;
        chart.configure_mesh().x_desc("bytes of a message").y_desc("% of the beats").draw().map_err(|e| fail(&e))?;
        for (n, window) in WINDOWS.iter().enumerate() {
            let line: Vec<_> = SIZES.iter().filter_map(|s| Some((s.size as f64, figure(report, s, *window, at)?.value?))).collect();
            let colour = Palette99::pick(n).to_rgba();
            let drawn = chart.draw_series(LineSeries::new(line, colour.stroke_width(2))).map_err(|e| fail(&e))?;
            drawn.label(format!("{QPS} x {window}")).legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], colour));
        }
        chart.configure_series_labels().position(SeriesLabelPosition::LowerRight).border_style(BLACK).background_style(WHITE).draw().map_err(|e| fail(&e))?;
    }
    root.present().map_err(|e| fail(&e))
}

#[cfg(test)]
mod tests {
    use super::super::report::of_point;
    use super::super::rig::Outcome;
    use super::*;
    use std::collections::BTreeSet;

    fn made_up() -> Report {
        let figures = points().iter().enumerate().map(|(n, p)| of_point(p, &Outcome { value: Some(n as f64 / 2.0), ..Default::default() })).collect();
        Report { gateware: "abc".into(), commit: "def".into(), command: "./scripts/bench --sweep".into(), figures }
    }

    #[test]
    fn every_size_has_every_latency_and_alignment_at_every_depth_that_fits() {
        let all = points();
        assert_eq!(all.iter().map(Point::name).collect::<BTreeSet<_>>().len(), all.len());
        assert_eq!(all.len(), (5 * 4 + 3 + 2) * 6);
        assert!(all.iter().all(|p| p.window * p.scenario.size <= ROOM));
        let others: BTreeSet<_> = super::super::scenarios::points().iter().map(Point::name).collect();
        assert!(all.iter().all(|p| !others.contains(&p.name())));
    }

    #[test]
    fn the_table_has_each_figure_where_it_belongs() {
        let mut report = made_up();
        let name = "sweep_4k.w32.a16.l500";
        let f = report.figures.iter_mut().find(|f| f.name == name).unwrap();
        (f.value, f.faults) = (Some(12.34), vec!["a frame sent again".into()]);
        report.figures.retain(|f| f.name != "sweep_64.w1.a64.l250");
        let text = table(&report);
        let row = |start: &str| text.lines().find(|l| l.starts_with(start)).unwrap().split('|').map(str::trim).map(String::from).collect::<Vec<_>>();
        assert_eq!(row("| 4096 B | 4 x 32 |")[7], "12.34*");
        assert_eq!(row("| 64 B | 4 x 1 |")[3], "-", "it has not run");
        assert_eq!(text.lines().count(), 2 + 5 * 4 + 3 + 2);
        assert!(page(&report).contains(&format!("* `{name}`: a frame sent again")));
    }

    #[test]
    fn the_plot_has_a_part_for_each_condition() {
        let path = std::env::temp_dir().join(format!("ferric-sweep-{}.svg", std::process::id()));
        plot(&made_up(), &path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches("host latency").count(), 6);
        assert!(text.matches("polyline").count() >= 6 * WINDOWS.len());
        std::fs::remove_file(path).unwrap();
    }
}
