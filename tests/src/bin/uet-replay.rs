//! Puts the simulated card `uet` in the place of the target of captured exchanges of Ultra Ethernet and compares.
use clap::{Parser, ValueEnum};
use ferric_tests::uet::replay::Player;
use ferric_uet::replay::load;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Role {
    /// The machine that opens the PDC.
    Initiator,
    /// The machine that answers.
    Target,
    /// Each in turn.
    Both,
}

/// Replays pcap and pcapng captures of Ultra Ethernet on the card.
#[derive(Parser)]
struct Args {
    /// Which captured machine is replaced.
    #[arg(long, value_enum, default_value = "both")]
    role: Role,
    /// Bits of the card's data path: 64 or 512.
    #[arg(long, default_value_t = 64)]
    width: usize,
    /// Captures.
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.role != Role::Target {
        println!("on the card the role initiator is not possible: it sends messages of its own size, form and first PSN (uet/src/replay/README.md)");
    }
    if args.role == Role::Initiator {
        return ExitCode::FAILURE;
    }
    let mut player = match Player::new(args.width) {
        Ok(player) => player,
        Err(what) => {
            println!("FAIL: no card: {what}");
            return ExitCode::FAILURE;
        }
    };
    let mut failed = 0;
    for path in &args.files {
        match load(path).and_then(|frames| player.replay(&frames)) {
            Ok(outcome) => {
                println!("PASS {} (the card as target: {} packets of exchanges, {} frames by themselves counted as the codecs say)", path.display(), outcome.exchanged, outcome.samples);
                outcome.deviations.iter().for_each(|deviation| println!("  excused: {deviation:?}"));
                outcome.translated.iter().for_each(|what| println!("  translated: {what}"));
            }
            Err(what) => {
                println!("FAIL {} (the card as target): {what}", path.display());
                failed += 1;
            }
        }
    }
    println!("{} passed, {failed} failed", args.files.len() - failed);
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
