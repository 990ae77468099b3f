//! Figures put into the documents: docs/figures.md as a whole, and the block between README's marks.
use super::report::{names, number, Figure, Report, EXTRAS};
use super::scenarios::{points, SCENARIOS};
use crate::synth::docs::between;
use std::path::Path;
use std::process::Command;

/// Name of README's marks, `<!-- bench:begin -->` and `<!-- bench:end -->`.
const MARK: &str = "bench";

/// Figures that README carries: their names, and what they are called there.
const README: &[(&str, &str)] = &[
    ("write_256k_mtu4096.w8.a64.l250", "WRITE, MTU 4096, both directions at once, buffers at 64-byte lines"),
    ("write_256k_mtu4096.w8.a16.l250", "the same, buffers 16 bytes off a line"),
    ("write_256k_mtu1024.w8.a64.l250", "WRITE, MTU 1024, both directions at once, buffers at 64-byte lines"),
    ("write_64_32qp.w32.a64.l250", "64 B WRITE, 32 queue pairs"),
    ("write_64_1qp.w128.a64.l250", "64 B WRITE, one queue pair"),
    ("send_64_32qp.w32.a64.l250", "64 B SEND, 32 queue pairs"),
    ("doorbell_to_wire_64.w1.a64.l250", "doorbell to wire, 64 B, less host reads"),
    ("wire_to_dma_64.w1.a64.l250", "wire to DMA write, 64 B"),
];

/// Commit of what is below `sources`; `+` behind it when there is more than that.
pub fn commit(root: &Path, sources: &[&str]) -> String {
    let git = |args: &[&str]| {
        Command::new("git").arg("-C").arg(root).args(args).args(["--"]).args(sources).output().ok().filter(|o| o.status.success()).map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string())
    };
    let Some(commit) = git(&["log", "-1", "--format=%h"]).filter(|c| !c.is_empty()) else { return "no known commit".into() };
    let changed = git(&["status", "--porcelain"]).is_some_and(|s| !s.is_empty());
    commit + if changed { "+" } else { "" }
}

fn verdict(f: &Figure) -> String {
    let mut words = Vec::new();
    match f.met {
        Some(true) => words.push("met".to_string()),
        Some(false) => words.push("**missed**".to_string()),
        None => {}
    }
    if !f.faults.is_empty() {
        words.push(format!("**fault**: {}", f.faults.join(", ")));
    }
    if let Some(e) = &f.error {
        // In one line of the table, however many the message has.
        words.push(format!("**no figure**: {}", e.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    words.join("; ")
}

fn row(f: &Figure) -> String {
    format!("| `{}` {}", f.name, cells(f))
}

/// A row that points to the figure's own: without backquotes, which mark that one.
fn listed(f: &Figure) -> String {
    format!("| {} {}", f.name, cells(f))
}

fn cells(f: &Figure) -> String {
    let or_dash = |n: Option<f64>| n.map_or("-".to_string(), number);
    format!("| {} | {} | {} | {} |\n", or_dash(f.value), or_dash(f.bar), or_dash(f.aim), verdict(f))
}

const HEAD: &str = "| figure | value | bar | aim | |\n|---|---|---|---|---|\n";

/// docs/figures.md.
pub fn page(report: &Report) -> String {
    let find = |name: &str| report.figures.iter().find(|f| f.name == name);
    let with = |test: &dyn Fn(&Figure) -> bool| report.figures.iter().filter(|f| test(f)).count();
    let (bars, met, faulty) = (with(&|f| f.bar.is_some()), with(&|f| f.met == Some(true)), with(&|f| !f.faults.is_empty()));
    let (aims, reached) = (with(&|f| f.aim.is_some()), with(&|f| f.aim_met == Some(true)));
    let mut text = format!(
        "\
# Figures

`./scripts/bench --write` wrote this page; do not edit it. Gateware of commit {}, bench of {}.
{met} of {bars} bars are met. {reached} of {aims} aims are reached. {faulty} of {} figures have a fault.

The figures that stood in the README up to a218d44 are withdrawn: that bench counted repeated frames as useful, left out idle time,
and showed one favourable point of each curve.

**How they are made.** Two simulated cards with W = 512 move data between two drivers, and every byte is verified. A reader of cycle-stamped traces
of the cards' pins (`tests/src/bench/reader.rs`) computes the figures; it counts payload at the receiver, each byte once. Cycles are the card's own:
where the simulation skips idle time, as before a time-out, the time counts. A frame that is sent twice, a negative acknowledge, or a counter of
drops that moves is a *fault* on a link that loses nothing, and a figure with a fault misses its bar. Such a figure makes `./scripts/bench` fail, and so does a missed bar.

**Conditions.** The host answers reads in any order, after the latency that the name gives and up to 60 cycles more. Caches are warm unless the working
set does not fit. Buffers lie in pages of 4 KiB, scattered for the card, at addresses that are the same in every run, so a figure is a function
of the gateware, the driver and the seed. One cycle is 4 ns at 250 MHz, which no tool has shown yet for W = 512.

**Names.** `scenario.wN.aN.lN`: `w` is the number of messages outstanding per queue pair; `a64` means buffers at 64-byte lines, `a16` buffers 16 bytes
behind a line at both ends; `l` is the host's read latency in cycles. *Efficiency* is the number of beats that the best frame sequence needs for the
payload, in percent of the cycles that passed. The *bar* has to be reached now; it holds at 64-byte lines and a latency of 250, as the
architecture page says. The *aim* is what the next work on speed has to reach.

",
        report.gateware,
        report.commit,
        report.figures.len()
    );
    let missed: Vec<&Figure> = report.figures.iter().filter(|f| f.met == Some(false)).collect();
    if !missed.is_empty() {
        text += &format!("## Missed bars\n\n{HEAD}");
        missed.into_iter().for_each(|f| text += &listed(f));
        text += "\n";
    }
    text += "## Figures by scenario\n\n";
    for s in SCENARIOS {
        text += &format!("### {}\n\nThis scenario is: {}. Unit: {}.\n\n{HEAD}", s.name, s.what, s.measure.unit());
        for p in points().iter().filter(|p| p.scenario.name == s.name) {
            text += &find(&p.name()).map(row).unwrap_or_default();
        }
        text += "\n";
    }
    text += "### Host and simulation\n\nThe first two depend on the driver alone, the others on the machine.\n\n";
    for e in EXTRAS {
        text += &format!("- `{}`, in {}: {}.\n", e.name, e.unit, e.what);
    }
    text += &format!("\n{HEAD}");
    for e in EXTRAS {
        text += &find(e.name).map(row).unwrap_or_default();
    }
    text
}

/// The rows of README.
pub fn summary(report: &Report) -> String {
    let mut text = format!("Gateware of {}; all figures, with their conditions: [docs/figures.md](docs/figures.md).\n\n| figure | value | bar | |\n|---|---|---|---|\n", report.gateware);
    for (name, what) in README {
        if let Some(f) = report.figures.iter().find(|f| f.name == *name) {
            let value = f.value.map_or("none".to_string(), |v| format!("{} {}", number(v), f.unit));
            text += &format!("| {what} | {value} | {} | {} |\n", f.bar.map_or("-".to_string(), number), verdict(f));
        }
    }
    text
}

/// Writes both below `root`. Gives what could not be written, which is no error.
pub fn write(root: &Path, report: &Report) -> Result<Vec<String>, String> {
    let missing: Vec<String> = names().into_iter().filter(|n| !report.figures.iter().any(|f| f.name == *n)).collect();
    if !missing.is_empty() {
        return Err(format!("docs/figures.md is of a full run; these did not run: {}", missing.join(", ")));
    }
    let put = |name: &str, text: String| std::fs::write(root.join(name), text).map_err(|e| format!("{name}: {e}"));
    put("docs/figures.md", page(report))?;
    let readme = std::fs::read_to_string(root.join("README.md")).map_err(|e| format!("README.md: {e}"))?;
    match between(&readme, MARK, &summary(report)) {
        Some(text) => put("README.md", text).map(|()| Vec::new()),
        None => Ok(vec![format!("README.md has no marks {MARK}:begin and {MARK}:end; its figures are as they were")]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rig::Outcome;
    use super::super::{report, scenarios::Point};
    use super::*;

    fn rows(page: &str) -> Vec<String> {
        page.lines().filter_map(|l| l.strip_prefix("| `")?.split_once('`')).map(|(name, _)| name.to_string()).collect()
    }

    fn made_up() -> Report {
        let outcome = Outcome { value: Some(3.5), ..Default::default() };
        let traced = points().iter().map(|p: &Point| report::of_point(p, &outcome)).collect::<Vec<_>>();
        let extras = EXTRAS.iter().map(|e| report::of_extra(e, Ok(1.0)));
        Report { gateware: "abc".into(), commit: "def".into(), command: "./scripts/bench --write".into(), figures: traced.into_iter().chain(extras).collect() }
    }

    #[test]
    fn the_page_has_every_figure_once() {
        let report = made_up();
        assert_eq!(rows(&page(&report)), names());
        assert_eq!(summary(&report).lines().filter(|l| l.starts_with("| ")).count(), README.len() + 1);
        assert!(README.iter().all(|(name, _)| names().iter().any(|n| n == name)));
    }

    /// The values are those of the last run that wrote them; rows, bars and aims have to be those of the scenarios.
    #[test]
    fn the_committed_page_is_of_these_scenarios() {
        let committed = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/figures.md")).unwrap();
        assert_eq!(rows(&committed), names(), "run ./scripts/bench --write");
        let limits = |page: &str| -> Vec<(String, String, String)> {
            let cells = |l: &str| l.split('|').map(|c| c.trim().to_string()).collect::<Vec<_>>();
            page.lines().filter(|l| l.starts_with("| `")).map(|l| (cells(l)[1].clone(), cells(l)[3].clone(), cells(l)[4].clone())).collect()
        };
        assert_eq!(limits(&committed), limits(&page(&made_up())), "run ./scripts/bench --write");
        let headings = |page: &str| page.lines().filter(|l| l.starts_with("### ") || l.starts_with("This scenario is: ")).map(String::from).collect::<Vec<_>>();
        assert_eq!(headings(&committed), headings(&page(&made_up())));
    }

    #[test]
    fn readme_is_filled_between_its_marks_only() {
        let dir = std::env::temp_dir().join(format!("ferric-bench-docs-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("docs")).unwrap();
        std::fs::write(dir.join("README.md"), "a\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nb\n").unwrap();
        assert_eq!(write(&dir, &made_up()), Ok(vec![]));
        let text = std::fs::read_to_string(dir.join("README.md")).unwrap();
        assert!(text.starts_with("a\n<!-- bench:begin -->\nGateware of abc;") && text.ends_with("\n<!-- bench:end -->\nb\n") && !text.contains("old"));
        std::fs::write(dir.join("README.md"), "nothing").unwrap();
        assert!(write(&dir, &made_up()).is_ok_and(|said| said.len() == 1));
        let mut part = made_up();
        part.figures.pop();
        assert!(write(&dir, &part).is_err_and(|e| e.contains("cosim_messages_per_second")));
        std::fs::remove_dir_all(dir).unwrap();
    }
}
