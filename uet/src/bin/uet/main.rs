//! The long tests of Ultra Ethernet in software, for `./scripts/soak` and `./scripts/replay`.
use clap::{Parser, Subcommand};
use ferric_uet::check::{cases, defects, search};
use std::process::ExitCode;
use std::time::Instant;

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
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

fn main() -> ExitCode {
    let good = match Args::parse().command {
        Command::Model { states, .. } => model(states),
    };
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
