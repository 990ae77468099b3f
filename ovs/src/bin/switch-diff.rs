//! `./scripts/switch-diff`: random flow tables and frames in the golden model of the flow switch and in Open vSwitch. Verdicts and bytes of every output have to be the same.
use clap::Parser;
use ferric_ovs::oracle::Oracle;
use ferric_ovs::tally::Tally;
use ferric_ovs::{case, Folder};
use indicatif::{ProgressBar, ProgressStyle};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::path::PathBuf;
use std::process::ExitCode;

/// Compares the model of the flow switch with Open vSwitch.
#[derive(Parser)]
struct Options {
    /// Flow tables.
    #[arg(long, default_value_t = 200)]
    tables: u64,
    /// Frames in all.
    #[arg(long, default_value_t = 10_000)]
    frames: u64,
    /// The first table's seed; the others' follow.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder of Open vSwitch's database, sockets and captures; it has to be new. Without, one that is deleted in the end.
    #[arg(long)]
    keep: Option<PathBuf>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let temporary = Folder::new("diff");
    let folder = options.keep.as_deref().unwrap_or(temporary.path());
    let result = Oracle::start(folder).and_then(|mut oracle| run(&options, &mut oracle));
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("switch-diff: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options, oracle: &mut Oracle) -> Result<bool, ferric_ovs::server::Error> {
    let bar = ProgressBar::new(options.tables).with_style(ProgressStyle::with_template("{bar:40} {pos}/{len} tables, {elapsed}, {msg}").unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut tally = Tally::default();
    for n in 0..options.tables {
        let mut rng = ChaCha8Rng::seed_from_u64(options.seed + n);
        let share = options.frames * (n + 1) / options.tables - options.frames * n / options.tables;
        if let Some(difference) = case(oracle, share as usize, &mut rng, &mut tally)? {
            bar.finish_and_clear();
            println!("difference with --seed {} --tables 1 --frames {share}\n{difference}", options.seed + n);
            return Ok(false);
        }
        bar.set_message(format!("{} frames", tally.compared));
        bar.inc(1);
    }
    bar.finish_and_clear();
    println!("{}", tally.table());
    println!("{} tables, {} frames compared, {} that software gets unread, 0 differences", options.tables, tally.compared, tally.excused);
    Ok(true)
}
