//! Goodput over time of `./scripts/demo --uet`, as a picture and in words.
use super::street::{Outcome, Plan, CARDS, FAILS, PATHS};
use plotters::prelude::*;
use std::fmt::Write as _;
use std::path::Path;

/// Microseconds of a cycle at 250 MHz.
const CYCLE_US: f64 = 0.004;
/// Characters of the longest bar.
const BAR: u64 = 50;

/// The parts of time in which messages were posted, but the first, in which the pipes fill.
pub fn parts<'a>(plan: &Plan, outcome: &'a Outcome) -> &'a [[u64; CARDS]] {
    let end = (plan.cycles / plan.bin) as usize;
    outcome.bins.get(1..end.min(outcome.bins.len())).unwrap_or_default()
}

/// What happened in a part of time.
fn event(plan: &Plan, begin: u64) -> String {
    let names = [format!("path {FAILS} is cut"), "the switches take the others".into(), "it is back".into()];
    plan.failure().into_iter().zip(names).find(|(at, _)| (begin..begin + plan.bin).contains(at)).map(|(_, name)| name).unwrap_or_default()
}

/// A bar for each part of time.
pub fn bars(plan: &Plan, outcome: &Outcome) -> String {
    let all = parts(plan, outcome);
    let top = all.iter().map(|bin| bin.iter().sum::<u64>()).max().unwrap_or(1).max(1);
    let mut text = String::new();
    for (n, bin) in all.iter().enumerate() {
        let (begin, sum) = ((n as u64 + 1) * plan.bin, bin.iter().sum::<u64>());
        let bar = "#".repeat((sum * BAR / top) as usize);
        writeln!(text, "{:>7.0} us {:>6.2} B/cycle {bar:<50} {}", begin as f64 * CYCLE_US, sum as f64 / plan.bin as f64, event(plan, begin)).expect("a string takes all");
    }
    text
}

/// The same as a picture. Errors: those of the file.
pub fn draw(path: &Path, plan: &Plan, outcome: &Outcome) -> Result<(), Box<dyn std::error::Error>> {
    let all = parts(plan, outcome);
    let rate = |bytes: u64| bytes as f64 / plan.bin as f64;
    let top = all.iter().map(|bin| rate(bin.iter().sum())).fold(1.0, f64::max) * 1.15;
    let middle = |n: usize| (n as f64 + 1.5) * plan.bin as f64 * CYCLE_US;
    let root = SVGBackend::new(path, (900, 540)).into_drawing_area();
    root.fill(&WHITE)?;
    let caption = format!("Verified bytes, {CARDS} cards, {} paths, {} % loss", PATHS.len(), f64::from(plan.loss) / 10_000.0);
    let mut chart =
        ChartBuilder::on(&root).caption(caption, ("sans-serif", 22)).margin(12).x_label_area_size(44).y_label_area_size(60).build_cartesian_2d(0f64..plan.cycles as f64 * CYCLE_US, 0f64..top)?;
    chart.configure_mesh().x_desc("microseconds at 250 MHz").y_desc("bytes per cycle").draw()?;
    let mut line = |points: Vec<(f64, f64)>, color: RGBColor, name: String| -> Result<(), Box<dyn std::error::Error>> {
        chart.draw_series(LineSeries::new(points, &color))?.label(name).legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], color));
        Ok(())
    };
    line(all.iter().enumerate().map(|(n, bin)| (middle(n), rate(bin.iter().sum()))).collect(), BLACK, "all".into())?;
    for (card, color) in [RED, BLUE, GREEN].into_iter().enumerate() {
        line(all.iter().enumerate().map(|(n, bin)| (middle(n), rate(bin[card]))).collect(), color, format!("to card {card}"))?;
    }
    for (at, name) in plan.failure().iter().zip(["cut", "noticed", "back"]) {
        let x = *at as f64 * CYCLE_US;
        line(vec![(x, 0.0), (x, top)], RGBColor(150, 150, 150), format!("path {FAILS} {name}"))?;
    }
    chart.configure_series_labels().border_style(BLACK).draw()?;
    root.present()?;
    Ok(())
}
