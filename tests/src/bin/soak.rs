//! The long tests: `soak random`, `soak property`, `soak twin`, `soak hostile`, `soak mutants`. See `./scripts/soak --help`.
use clap::{Parser, Subcommand};
use ferric_tests::property::differ::{self, Differ};
use ferric_tests::soak::{Coverage, Plan, Soak};
use ferric_tests::{hostile, mutants, property, strangers, uet};
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
        #[arg(long, default_value_t = 64, value_parser = queue_pairs)]
        qps: usize,
        /// Messages per seed.
        #[arg(long, default_value_t = 2000)]
        messages: u64,
        /// Largest message in bytes.
        #[arg(long, default_value_t = 262_144)]
        max_bytes: usize,
        /// Data path width in bits.
        #[arg(long, default_value_t = 64, value_parser = width)]
        width: usize,
        /// Pairs of queue pairs that fail on purpose, over and over.
        #[arg(long, default_value_t = 2)]
        doomed: usize,
        /// Functions of each card, a driver each; without it 1, 2 and 4 by turns.
        #[arg(long, value_parser = clap::value_parser!(u8).range(1..=4))]
        functions: Option<u8>,
    },
    /// Random programs of verbs against the golden model.
    Property {
        /// Seed of all programs.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Programs.
        #[arg(long, default_value_t = 3000)]
        cases: u32,
        /// Data path width in bits.
        #[arg(long, default_value_t = 64, value_parser = width)]
        width: usize,
    },
    /// The same programs and seeds on twins, on gateware and on one of each: do they come to the same?
    Twin {
        /// Seed of all programs.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Programs.
        #[arg(long, default_value_t = 300)]
        programs: u32,
        /// Seeds of random messages, 1 to this.
        #[arg(long, default_value_t = 3)]
        seeds: u64,
        /// Messages per seed.
        #[arg(long, default_value_t = 500)]
        messages: u64,
        /// Data path width in bits.
        #[arg(long, default_value_t = 64, value_parser = width)]
        width: usize,
    },
    /// Mutated frames, work requests, admin commands and doorbells.
    Hostile {
        /// Seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Frames at a card of Ultra Ethernet, beside a good pair, instead of all below.
        #[arg(long)]
        uet: bool,
        /// Mutated frames.
        #[arg(long, default_value_t = 10_000)]
        frames: u64,
        /// With --uet: cycles from one frame to the next.
        #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
        pace: u64,
        /// Mutated work requests, admin commands and doorbells, each.
        #[arg(long, default_value_t = 1000)]
        requests: u64,
        /// Packets of strangers, thrown at a real pair at work.
        #[arg(long, default_value_t = 10_000)]
        strangers: u64,
        /// Data path bits of the cards that strangers speak to.
        #[arg(long, default_value_t = 64, value_parser = width)]
        width: usize,
    },
    /// Defects put into the gateware one at a time: does a block test notice?
    Mutants {
        /// Only mutants whose name contains this (may be repeated).
        #[arg(long)]
        only: Vec<String>,
        /// Only names them.
        #[arg(long)]
        list: bool,
        /// Mutants at a time.
        #[arg(long, default_value_t = 2)]
        jobs: usize,
        /// Does not first run the tests without a mutant.
        #[arg(long)]
        no_baseline: bool,
    },
}

/// Every reject the attack is meant to provoke.
const REJECTS: &[&str] = &[
    "rx.rx_malformed",
    "rx.rx_bad_icrc",
    "resp.out_of_order",
    "resp.dup_requests",
    "resp.nak_inv_sent",
    "resp.drop_no_qp",
    "resp.drop_bad_transport",
    "resp.drop_bad_pkey",
    "complete.nak_access_sent",
    "mr.mr_refused",
    "req_rx.local_errors",
    "req_rx.bad_ack",
    "sq.sq_db_bad",
    "doorbell.db_bad",
];

/// Every mechanism the random soak is meant to reach.
const WANTED: &[&str] = &[
    "resp.nak_seq_sent",
    "req_rx.nak_seq_received",
    "complete.nak_inv_sent",
    "complete.nak_access_sent",
    "complete.nak_op_sent",
    "resp.rnr_sent",
    "req_rx.rnr_received",
    "req_rx.timeouts",
    "resp.dup_requests",
    "psn_wraps",
    "ring_wraps",
    "cq_nearly_full",
    "dma_out_of_order",
    "rx.rx_bad_icrc",
    "ackgen.ack_coalesced",
    "posted Send",
    "posted SendImm",
    "posted Write",
    "posted WriteImm",
    "posted Read",
    "posted FetchAdd",
    "posted CompareSwap",
    "reply.reads",
    "reply.atomics",
    "reply.answered_again",
    "status RemoteAccess",
    "status RemoteInvalidRequest",
    "status RemoteOperation",
    "status LocalProtection",
    "failed_on_purpose",
];

/// A card has 256 queue pairs, of which some fail on purpose.
fn queue_pairs(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| (1..=200).contains(n)).ok_or("1 to 200 queue pairs".into())
}

/// A width there is a card of.
fn width(text: &str) -> Result<usize, String> {
    match text {
        "64" => Ok(64),
        "512" => Ok(512),
        _ => Err("there are cards of 64 and of 512 bits".into()),
    }
}

/// Starts this program again without address randomisation: buffers are the process's own memory, so where they lie decides how
/// messages are cut, and a seed must mean the same run every time.
fn fix_addresses() {
    use std::os::unix::process::CommandExt;
    const DONE: &str = "FERRIC_FIXED_ADDRESSES";
    if std::env::var_os(DONE).is_some() {
        return;
    }
    // SAFETY: changes a flag of this process only.
    let old = unsafe { libc::personality(0xffff_ffff) };
    let set = old >= 0 && unsafe { libc::personality(old as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong) } >= 0;
    let error = match std::env::current_exe() {
        Ok(exe) if set => std::process::Command::new(exe).args(std::env::args_os().skip(1)).env(DONE, "1").exec(),
        Ok(_) => std::io::Error::last_os_error(),
        Err(e) => e,
    };
    eprintln!("soak: cannot fix memory addresses ({error}); a seed may not repeat exactly");
}

fn main() -> ExitCode {
    fix_addresses();
    env_logger::init();
    match Options::parse().what {
        What::Random { seed, seeds, qps, messages, max_bytes, width, doomed, functions } => {
            random(seed, seeds, functions, Plan { seed: 0, qps, messages, max_bytes, width, doomed, functions: 1, bodies: Default::default() })
        }
        What::Twin { seed, programs, seeds, messages, width } => twins(Differ { seed, programs, width }, seeds, messages),
        What::Property { seed, cases, width } => properties(property::Plan { seed, cases, width, bodies: Default::default() }),
        What::Hostile { uet: true, seed, frames, width, pace, .. } => attack_uet(uet::hostile::Plan { seed, frames, width, pace }),
        What::Hostile { seed, frames, requests, strangers, width, .. } => attack(hostile::Plan { seed, frames, requests }, strangers::Plan { seed, frames: strangers, width }),
        What::Mutants { only, list: true, .. } => match mutants::choose(&only) {
            Ok(chosen) => {
                chosen.iter().for_each(|m| println!("{:26} {}", m.name, m.what));
                ExitCode::SUCCESS
            }
            Err(e) => failure(&e),
        },
        What::Mutants { only, jobs, no_baseline, .. } => mutate(&mutants::Plan { only, jobs, no_baseline }),
    }
}

fn failure(why: &str) -> ExitCode {
    println!("FAILED: {why}");
    ExitCode::FAILURE
}

fn mutate(plan: &mutants::Plan) -> ExitCode {
    let (text, clean) = match mutants::run(plan) {
        Ok(verdicts) => mutants::report(&verdicts),
        Err(e) => return failure(&e),
    };
    if let Err(e) = mutants::save(plan, &text) {
        return failure(&format!("{}: {e}", mutants::report_path(plan).display()));
    }
    println!("{text}report: {}", mutants::report_path(plan).display());
    if clean {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn attack(plan: hostile::Plan, others: strangers::Plan) -> ExitCode {
    match strangers::run(others) {
        Ok(o) => println!("  {} packets of strangers dropped and counted; {} messages of the real pair took {} cycles alone, {} among them", o.frames, o.messages, o.cycles[0], o.cycles[1]),
        Err(e) => return failure(&e.to_string()),
    }
    let counted = match hostile::run(plan) {
        Ok(c) => c,
        Err(e) => {
            println!("FAILED: {e}\n0 passed, 1 failed");
            return ExitCode::FAILURE;
        }
    };
    for (name, n) in counted.iter().filter(|(_, n)| **n > 0) {
        println!("  {name:32} {n}");
    }
    let missing: Vec<_> = REJECTS.iter().filter(|w| counted.get(**w).copied().unwrap_or(0) == 0).collect();
    if missing.is_empty() {
        println!("1 passed, 0 failed");
        return ExitCode::SUCCESS;
    }
    println!("rejects never counted: {missing:?}\n0 passed, 1 failed");
    ExitCode::FAILURE
}

fn attack_uet(plan: uet::hostile::Plan) -> ExitCode {
    let outcome = match uet::hostile::run(plan) {
        Ok(outcome) => outcome,
        Err(e) => {
            println!("FAILED: {e}\n0 passed, 1 failed");
            return ExitCode::FAILURE;
        }
    };
    for (name, n) in &outcome.counted {
        println!("  {name:32} {n}");
    }
    let [alone, among, behind] = outcome.goodput;
    println!("{} frames in {} cycles, each in one counter, the one that the codecs say; {} good messages among them, every byte verified", plan.frames, outcome.cycles, outcome.messages);
    for (n, name) in ["of the card", "to the card"].iter().enumerate() {
        println!("bytes of good messages {name} in 1000 cycles: {} alone, {} under attack ({} %), {} behind it", alone[n], among[n], among[n] * 100 / alone[n].max(1), behind[n]);
    }
    println!("every pool as full as before: {:?}", outcome.pools);
    let missing: Vec<_> = uet::hostile::REJECTS.iter().filter(|name| !outcome.counted.contains_key(**name)).collect();
    if missing.is_empty() {
        println!("1 passed, 0 failed");
        return ExitCode::SUCCESS;
    }
    println!("rejects never counted: {missing:?}\n0 passed, 1 failed");
    ExitCode::FAILURE
}

fn properties(plan: property::Plan) -> ExitCode {
    match property::run(plan) {
        Ok(coverage) => {
            show(&coverage);
            let missing = property::missing(&coverage);
            if !missing.is_empty() {
                return failure(&format!("never happened: {missing:?}"));
            }
            println!("{} passed, 0 failed", plan.cases);
            ExitCode::SUCCESS
        }
        Err(e) => failure(&e),
    }
}

/// Random programs, whose ends are compared, and random messages, each of which checks itself.
fn twins(plan: Differ, seeds: u64, messages: u64) -> ExitCode {
    let (mut passed, mut failed) = (0, 0);
    match differ::run(plan) {
        Ok(coverage) => {
            show(&coverage);
            passed += 1;
        }
        Err(e) => {
            println!("FAILED: {e}");
            failed += 1;
        }
    }
    for (seed, bodies) in (1..=seeds).flat_map(|seed| differ::PAIRS.map(|bodies| (seed, bodies))) {
        let functions = [4, 1, 2][seed as usize % 3];
        let plan = Plan { seed, qps: 32, messages, max_bytes: 65_536, width: plan.width, doomed: 2, functions, bodies };
        match Soak::new(plan).and_then(Soak::run) {
            Ok(coverage) => {
                passed += 1;
                println!("seed {seed} on {bodies:?}: ok, {} completions", coverage.get("completions").unwrap_or(&0));
            }
            Err(e) => {
                failed += 1;
                println!("seed {seed} on {bodies:?}: FAILED: {e}");
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

fn show(coverage: &Coverage) {
    println!("coverage:");
    for (name, n) in coverage.iter().filter(|(_, n)| **n > 0) {
        println!("  {name:32} {n}");
    }
}

fn random(seed: Option<u64>, seeds: u64, functions: Option<u8>, plan: Plan) -> ExitCode {
    let range = seed.map_or(1..=seeds, |s| s..=s);
    let (mut passed, mut failed, mut total) = (0, 0, Coverage::new());
    for seed in range {
        let functions = functions.unwrap_or([4, 1, 2][seed as usize % 3]);
        match Soak::new(Plan { seed, functions, ..plan }).and_then(Soak::run) {
            Ok(coverage) => {
                passed += 1;
                println!("seed {seed}: ok, {functions} functions, {} cycles", coverage.get("cycles").unwrap_or(&0));
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
    show(&total);
    let missing: Vec<_> = WANTED.iter().filter(|w| total.get(**w).copied().unwrap_or(0) == 0).collect();
    if !missing.is_empty() && failed == 0 && seed.is_none() {
        println!("not covered: {missing:?}");
        failed += 1;
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
