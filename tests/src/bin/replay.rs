//! Puts the simulated card in the place of one machine of a captured RoCEv2 exchange and compares.
use clap::{Parser, ValueEnum};
use ferric_tests::replay::card::CardFactory;
use ferric_tests::replay::endpoint::Factory;
use ferric_tests::replay::golden::GoldenFactory;
use ferric_tests::replay::run::Outcome;
use ferric_tests::replay::{replay, Role};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Clone, Copy, ValueEnum)]
enum RoleArg {
    /// The machine that answers the first request.
    Responder,
    /// The machine that sends the first request.
    Requester,
    /// Each in turn.
    Both,
}

#[derive(Clone, Copy, ValueEnum)]
enum Machine {
    /// The Verilated card behind its driver.
    Card,
    /// The golden software model.
    Golden,
}

/// Replays pcap and pcapng captures of RoCEv2 exchanges.
#[derive(Parser)]
struct Args {
    /// Which captured machine is replaced.
    #[arg(long, value_enum, default_value = "both")]
    role: RoleArg,
    /// What replaces it.
    #[arg(long, value_enum, default_value = "card")]
    machine: Machine,
    /// Captures.
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

fn one(path: &Path, role: Role, factory: &dyn Factory) -> Result<Outcome, String> {
    let bytes = std::fs::read(path).map_err(|e| format!("cannot be read: {e}"))?;
    replay(&bytes, role, factory).map_err(|e| e.to_string())
}

fn main() -> ExitCode {
    env_logger::init();
    let args = Args::parse();
    let role = match args.role {
        RoleArg::Responder => Role::Responder,
        RoleArg::Requester => Role::Requester,
        RoleArg::Both => Role::Both,
    };
    let factory: Box<dyn Factory> = match args.machine {
        Machine::Card => Box::new(CardFactory::default()),
        Machine::Golden => Box::new(GoldenFactory::default()),
    };
    let (mut passed, mut failed) = (0, 0);
    for path in &args.files {
        match one(path, role, factory.as_ref()) {
            Ok(outcome) => {
                passed += 1;
                println!("PASS {} ({})", path.display(), summary(&outcome));
            }
            Err(reason) => {
                failed += 1;
                println!("FAIL {}: {reason}", path.display());
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn summary(o: &Outcome) -> String {
    let mut text = format!("{} messages", o.messages);
    for d in &o.deviations {
        text.push_str("; excused: ");
        text.push_str(d.text());
    }
    text
}
