//! The long tests: `soak random`, `soak hostile`. See `./scripts/soak --help`.
use clap::{Parser, Subcommand};
use ferric_tests::soak::{Coverage, Plan, Soak};
use std::process::ExitCode;

#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Random messages under random faults.
    Random {
        /// Only this seed.
        #[arg(long)]
        seed: Option<u64>,
        /// Seeds 1 to this.
        #[arg(long, default_value_t = 10)]
        seeds: u64,
        /// Queue pairs per card.
        #[arg(long, default_value_t = 64)]
        qps: usize,
        /// Messages per seed.
        #[arg(long, default_value_t = 2000)]
        messages: u64,
        /// Largest message in bytes.
        #[arg(long, default_value_t = 262_144)]
        max_bytes: usize,
        /// Data path width in bits.
        #[arg(long, default_value_t = 512)]
        width: usize,
    },
}

/// Every mechanism the random soak is meant to reach.
const WANTED: &[&str] = &[
    "resp.nak_seq_sent", "req_rx.nak_seq_received", "resp.rnr_sent", "req_rx.rnr_received", "req_rx.timeouts", "resp.dup_requests", "psn_wrap_queues", "ring_wraps",
    "cq_nearly_full", "dma_out_of_order", "rx.rx_bad_icrc", "ackgen.ack_coalesced",
];

fn main() -> ExitCode {
    env_logger::init();
    let What::Random { seed, seeds, qps, messages, max_bytes, width } = Options::parse().what;
    let range = seed.map_or(1..=seeds, |s| s..=s);
    let (mut passed, mut failed, mut total) = (0, 0, Coverage::new());
    for seed in range {
        match Soak::new(Plan { seed, qps, messages, max_bytes, width }).and_then(Soak::run) {
            Ok(coverage) => {
                passed += 1;
                println!("seed {seed}: ok, {} cycles", coverage.get("cycles").unwrap_or(&0));
                for (k, v) in coverage {
                    *total.entry(k).or_default() += v;
                }
            }
            Err(e) => {
                failed += 1;
                println!("seed {seed}: FAILED: {e}");
            }
        }
    }
    println!("coverage:");
    for (name, n) in total.iter().filter(|(_, n)| **n > 0) {
        println!("  {name:32} {n}");
    }
    let missing: Vec<_> = WANTED.iter().filter(|w| total.get(**w).copied().unwrap_or(0) == 0).collect();
    if !missing.is_empty() && failed == 0 && seed.is_none() {
        println!("not covered: {missing:?}");
        failed += 1;
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
