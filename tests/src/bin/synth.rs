//! `./scripts/synth [BLOCK...]`: area and depth of the gateware, to target/synth/report.json and report.md.
use clap::Parser;
use ferric_hdl::tops::TOPS;
use ferric_tests::synth::{docs, report, Flows, Outcome};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// What a run of everything takes without a cache: an estimate, from the UltraScale+ part measured on a busy machine.
const MINUTES: u32 = 90;

/// Faults of one top that are shown; report.json has all.
const SHOWN: usize = 10;

/// Maps blocks to UltraScale+ and ECP5, counts cells, walks the longest paths. Results are kept by content, so a second run is short.
#[derive(Parser)]
struct Options {
    /// Blocks (`dma_rd` for both widths) or tops (`dma_rd_w512`); none: all and the core.
    blocks: Vec<String>,
    /// UltraScale+ only.
    #[arg(long)]
    no_ecp5: bool,
    /// Leave out the mapping that tells the share of `prim`.
    #[arg(long)]
    no_share: bool,
    /// Try to map the core in one piece before mapping it block by block.
    #[arg(long)]
    flat_core: bool,
    /// Map nothing: report what is in the cache, the rest as faults.
    #[arg(long)]
    known_only: bool,
    /// Put the figures into docs/resources.md and README.md; for a run of all tops.
    #[arg(long, conflicts_with_all = ["blocks", "no_ecp5", "no_share"])]
    write_docs: bool,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("synth: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<bool, String> {
    let out = Path::new("target/synth");
    let mut flows = Flows::new(out)?;
    flows.ecp5 = !options.no_ecp5;
    flows.share = !options.no_share;
    flows.flat_core = options.flat_core;
    if options.known_only {
        flows.known_only();
    }
    let named = |name: &str, block: &str| name == block || name.strip_prefix(block).is_some_and(|rest| rest.starts_with("_w"));
    if let Some(unknown) = options.blocks.iter().find(|b| !TOPS.iter().any(|t| named(t.name, b))) {
        let names: Vec<&str> = TOPS.iter().map(|t| t.name).collect();
        return Err(format!("no block is called {unknown}; there are {}", names.join(" ")));
    }
    let chosen: Vec<_> = TOPS.iter().filter(|t| options.blocks.is_empty() || options.blocks.iter().any(|b| named(t.name, b))).collect();
    let mut outcomes: Vec<Outcome> = Vec::new();
    let (mut failures, mut missing) = (Vec::new(), Vec::new());
    println!("{} tops; all of them take about {MINUTES} minutes of one idle core when nothing is cached", chosen.len());
    for (n, top) in chosen.iter().enumerate() {
        let started = Instant::now();
        match flows.run(top) {
            Ok(outcome) => {
                let x = &outcome.xcup;
                println!(
                    "[{}/{}] {}: {} LUT, {} FF, {} RAMB36, {} levels ({:.0} s)",
                    n + 1, chosen.len(), top.name, x.area.lut, x.area.ff, x.area.bram, x.walk.levels(), started.elapsed().as_secs_f32()
                );
                for (family, faults) in [("xcup", Some(&x.faults)), ("ecp5", outcome.ecp5.as_ref().map(|e| &e.faults))] {
                    let faults = faults.into_iter().flatten();
                    failures.extend(faults.clone().take(SHOWN).map(|f| format!("{} on {family}: {f}", top.name)));
                    failures.extend(faults.count().checked_sub(SHOWN + 1).map(|n| format!("{} on {family}: and {} more", top.name, n + 1)));
                }
                if report::limited(&outcome) && x.walk.levels() > report::LIMIT {
                    failures.push(format!("{}: {} levels, {} allowed", top.name, x.walk.levels(), report::LIMIT));
                }
                outcomes.push(outcome);
            }
            Err(e) => {
                println!("[{}/{}] {}: no figures, {e}", n + 1, chosen.len(), top.name);
                missing.push(format!("{}: {e}", top.name));
            }
        }
        // Written after each top: a run that is stopped leaves what it has.
        let text = serde_json::to_string_pretty(&report::json(&outcomes)).map_err(|e| e.to_string())?;
        std::fs::write(out.join("report.json"), text).map_err(|e| e.to_string())?;
        std::fs::write(out.join("report.md"), report::markdown(&outcomes)).map_err(|e| e.to_string())?;
    }
    println!("\n{}", report::markdown(&outcomes));
    if options.write_docs {
        docs::write(Path::new("."), &outcomes, &missing)?;
    }
    failures.append(&mut missing);
    for failure in &failures {
        println!("FAULT {failure}");
    }
    println!("{} of {} tops mapped, {} faults; target/synth/report.json, target/synth/report.md", outcomes.len(), chosen.len(), failures.len());
    Ok(failures.is_empty())
}
