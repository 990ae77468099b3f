//! The long tests of Ultra Ethernet in software, for `./scripts/soak` and `./scripts/replay`.
use clap::{Parser, Subcommand, ValueEnum};
use ferric_uet::check::{cases, defects, search};
use ferric_uet::replay::{load, replay, Role};
use ferric_uet::soak::{run, wanted};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleArg {
    /// The machine that opens the PDC.
    Initiator,
    /// The machine that answers.
    Target,
    /// Each in turn.
    Both,
}

#[derive(Subcommand)]
enum Command {
    /// Model checking of two PDC halves and a bad channel.
    Model {
        /// PDCs, which is all that is checked so far.
        #[arg(long, required = true)]
        pdc: bool,
        /// Distinct states of each case.
        #[arg(long, default_value_t = 400_000)]
        states: usize,
    },
    /// The model in the place of machines of captured exchanges.
    Replay {
        /// Which machine is replaced.
        #[arg(long, value_enum, default_value = "both")]
        role: RoleArg,
        /// Captures: pcap or pcapng.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Four model ends over a fabric that loses, repeats, corrupts, trims and fails.
    Soak {
        /// Runs.
        #[arg(long, default_value_t = 10)]
        seeds: u64,
        /// Seed of the first.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Messages of each node.
        #[arg(long, default_value_t = 400)]
        messages: usize,
    },
}

fn model(states: usize) -> bool {
    let (mut total, mut good) = (0, true);
    for case in cases() {
        let begin = Instant::now();
        let found = search(&case, states);
        total += found.states;
        let whole = if found.whole { "all there are" } else { "there are more" };
        println!("{}: {} states ({whole}), {} ends, {} followed to their rest, {:.1} s", case.name, found.states, found.ends, found.settled, begin.elapsed().as_secs_f64());
        if let Some((what, steps)) = found.violation {
            println!("VIOLATION in {}: {what}, after {steps:?}", case.name);
            good = false;
        }
    }
    println!("{total} distinct states, {} violations", if good { "0" } else { "some" });
    for (defect, case) in defects() {
        let begin = Instant::now();
        match search(&case, states).violation {
            Some((what, steps)) => println!("refuted: {defect:?} ({what}), {} steps, {:.1} s", steps.len(), begin.elapsed().as_secs_f64()),
            None => {
                println!("NOT REFUTED: {defect:?}");
                good = false;
            }
        }
    }
    good
}

fn soak(seeds: u64, first: u64, messages: usize) -> bool {
    let (mut reached, mut good) = (BTreeMap::new(), true);
    for seed in first..first + seeds {
        let begin = Instant::now();
        match run(seed, messages, None) {
            Ok(report) => {
                println!("seed {seed}: {} messages, {} refused as they should, {} ticks, {:.1} s; {:?}", report.good, report.refused, report.ticks, begin.elapsed().as_secs_f64(), report.fabric);
                report.counters.into_iter().for_each(|(counter, n)| *reached.entry(counter).or_insert(0) += n);
            }
            Err(what) => {
                println!("FAIL seed {seed}: {what}");
                good = false;
            }
        }
    }
    for (counter, n) in &reached {
        println!("  {counter:?}: {n}");
    }
    for counter in wanted().into_iter().filter(|counter| !reached.contains_key(counter)) {
        println!("NOT REACHED: {counter:?}");
        good = false;
    }
    println!("{}", if good { "every byte, every completion once, every pool full" } else { "FAILED" });
    good
}

fn replays(role: RoleArg, files: &[PathBuf]) -> bool {
    let role = match role {
        RoleArg::Initiator => Role::Initiator,
        RoleArg::Target => Role::Target,
        RoleArg::Both => Role::Both,
    };
    let mut failed = 0;
    for path in files {
        match load(path).and_then(|frames| replay(&frames, role)) {
            Ok(outcome) => {
                println!("PASS {} ({} packets of exchanges, {} frames by themselves)", path.display(), outcome.exchanged, outcome.samples);
                outcome.deviations.iter().for_each(|deviation| println!("  excused: {deviation:?}"));
                outcome.notes.iter().for_each(|note| println!("  {note}"));
            }
            Err(what) => {
                println!("FAIL {}: {what}", path.display());
                failed += 1;
            }
        }
    }
    println!("{} passed, {failed} failed", files.len() - failed);
    failed == 0
}

fn main() -> ExitCode {
    let good = match Args::parse().command {
        Command::Model { states, .. } => model(states),
        Command::Replay { role, files } => replays(role, &files),
        Command::Soak { seeds, seed, messages } => soak(seeds, seed, messages),
    };
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
