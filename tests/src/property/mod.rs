//! Property tests of whole cards: random programs of verbs under faults (proptest makes and shrinks them), judged by a golden model of what
//! the verbs mean (`golden`), which knows neither packets nor the gateware's own models.
pub mod differ;
mod golden;
mod machine;
mod program;
mod script;

use crate::pair::{Error, Pair};
use ferric_hdl::card::counters;
use ferric_sim::axi::HostTiming;
use ferric_sim::{Body, CardConfig, Faults, LinkConfig, Rng, WorldConfig};
use golden::{judge, Observed};
use machine::Lane;
use program::{program, Program};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use rand::{Rng as _, SeedableRng};
use script::Script;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Seed of all programs.
    pub seed: u64,
    /// Programs.
    pub cases: u32,
    /// Data path width in bits.
    pub width: usize,
    /// What the two cards are made of.
    pub bodies: [Body; 2],
}

/// What happened how often.
pub type Coverage = BTreeMap<String, u64>;

/// Programs that the same pair of cards runs, one after another.
const LIFE: u32 = 8;

/// Two cards, and how many programs they have run.
struct Cards {
    pair: Pair,
    lanes: Vec<Lane>,
    used: u32,
}

impl Cards {
    /// Programs run and all that the cards have counted, as text.
    fn counted(&self) -> String {
        let names = counters::names();
        let mut text = format!("program {} of cards with {} functions\n", self.used, self.pair.tenants.len() + 1);
        for (n, host) in self.pair.hosts.iter().enumerate() {
            let counts = host.ctx.counters(0, names.len() as u32).unwrap_or_default();
            let shown: Vec<_> = names.iter().zip(counts).filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name}={n}")).collect();
            text += &format!("card {n}: {}\n", shown.join(" "));
        }
        text
    }
}

/// The programs' place of work.
struct Bench {
    plan: Plan,
    cards: Option<Cards>,
    /// Pairs of cards so far.
    lives: u64,
    coverage: Coverage,
}

impl Bench {
    /// Cards whose memory answers slowly or fast, in order or not, whose streams stall at random.
    fn cards(&mut self) -> Result<&mut Cards, Error> {
        if self.cards.as_ref().is_none_or(|c| c.used >= LIFE) {
            self.retire();
            let seed = self.plan.seed ^ self.lives << 32;
            self.lives += 1;
            let mut rng = Rng::seed_from_u64(seed);
            let host = HostTiming {
                read_latency: rng.gen_range(1..=100),
                read_jitter: rng.gen_range(1..=200),
                write_latency: rng.gen_range(1..=200),
                interleave: rng.gen_bool(0.5),
                stall_percent: rng.gen_range(0..=30),
                ..Default::default()
            };
            let card = CardConfig { width: self.plan.width, chaos: true, host, mac_stall_percent: rng.gen_range(0..=30), seed, ..Default::default() };
            // One driver, two, four: the connections are shared out among them.
            let functions = [1, 2, 4][self.lives as usize % 3];
            let cards = self.plan.bodies.map(|body| CardConfig { body, ..card.clone() }).to_vec();
            let pair = Pair::with_functions(&WorldConfig { cards, seed, tick_cycles: 64, ..Default::default() }, functions)?;
            *self.coverage.entry(format!("functions {functions}")).or_default() += 1;
            self.cards = Some(Cards { lanes: Lane::all(&pair)?, pair, used: 0 });
        }
        let cards = self.cards.as_mut().expect("just made");
        cards.used += 1;
        Ok(cards)
    }

    /// Counts what the cards have counted, and lets them go.
    fn retire(&mut self) {
        let Some(Cards { pair, .. }) = self.cards.take() else { return };
        let names = counters::names();
        for host in &pair.hosts {
            for (name, n) in names.iter().zip(host.ctx.counters(0, names.len() as u32).unwrap_or_default()) {
                *self.coverage.entry(name.clone()).or_default() += n;
            }
        }
        let cycles = pair.world().cycle();
        *self.coverage.entry("cycles".into()).or_default() += cycles;
    }

    /// Runs a program: what it came to, connection by connection.
    fn observe(&mut self, program: &Program, scripts: &[Script]) -> Result<Vec<Observed>, String> {
        let faults = Faults { loss: 25_000, duplicate: 10_000, reorder: 10_000, corrupt: 10_000, reorder_cycles: 300 };
        let link = LinkConfig { faults: if program.faults { faults } else { Faults::default() }, ..Default::default() };
        let Cards { pair, lanes, .. } = self.cards().map_err(|e| e.to_string())?;
        pair.world().links.iter_mut().for_each(|l| l.set_config(link));
        machine::run(pair, lanes, &program.connections, scripts).map_err(|e| e.to_string())
    }

    fn run(&mut self, program: &Program) -> Result<(), String> {
        let scripts: Vec<_> = program.connections.iter().map(Script::new).collect();
        let seen = self.observe(program, &scripts)?;
        for (n, (script, seen)) in scripts.iter().zip(&seen).enumerate() {
            judge(script, program.faults, seen).map_err(|e| format!("connection {n} ({:?}): {e}\nsent {:?}\nreceived {:?}", script.transport, seen.sent, seen.received))?;
            for act in &script.acts {
                let verb = format!("{:?}", act.op.verb);
                *self.coverage.entry(format!("{:?} {}", script.transport, verb.split(' ').next().unwrap_or_default())).or_default() += 1;
                if let Some(crime) = act.op.crime {
                    *self.coverage.entry(format!("crime {crime:?}")).or_default() += 1;
                }
            }
            for c in seen.sent.iter().chain(&seen.received) {
                *self.coverage.entry(format!("status {:?}", c.status)).or_default() += 1;
            }
        }
        Ok(())
    }
}

fn runner(seed: u64, cases: u32) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 60, ..Default::default() };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// Runs `plan.cases` programs. The error is the smallest program found that still fails, and how.
pub fn run(plan: Plan) -> Result<Coverage, String> {
    let mut runner = runner(plan.seed, plan.cases);
    let bench = RefCell::new(Bench { plan, cards: None, lives: 0, coverage: Coverage::new() });
    let result = runner.run(&program(), |mut program| {
        program.tell_the_end();
        let mut bench = bench.borrow_mut();
        bench.run(&program).map_err(|e| {
            let counted = bench.cards.take().map_or_else(String::new, |cards| cards.counted());
            TestCaseError::fail(format!("{e}\n{counted}"))
        })
    });
    let mut bench = bench.into_inner();
    bench.retire();
    result.map(|()| bench.coverage).map_err(|e| format!("seed {}: {e}", plan.seed))
}

/// Runs `plan.cases` programs and, while something of [`WANTED`] has not happened, half as many of each of the next seeds, of `more` seeds at most. What happens in a program
/// of faults depends on the cycle in which a host comes to look, so no seed is sure to bring everything.
pub fn run_until_all_happened(plan: Plan, more: u64) -> Result<Coverage, String> {
    let mut total = run(plan)?;
    for seed in plan.seed + 1..=plan.seed + more {
        if missing(&total).is_empty() {
            break;
        }
        for (name, n) in run(Plan { seed, cases: plan.cases.div_ceil(2), ..plan })? {
            *total.entry(name).or_default() += n;
        }
    }
    Ok(total)
}

/// What is meant to happen at least once in some hundred programs.
pub const WANTED: &[&str] = &[
    "functions 1",
    "functions 2",
    "functions 4",
    "Rc Send",
    "Rc SendImm",
    "Rc SendInv",
    "Rc Write",
    "Rc Put",
    "Rc WriteImm",
    "Rc Store",
    "Rc Flush",
    "Rc Read",
    "Rc FetchAdd",
    "Rc CompareSwap",
    "Uc Send",
    "Uc SendImm",
    "Uc Write",
    "Uc WriteImm",
    "Ud Send",
    "Ud SendImm",
    "crime Key",
    "crime Bounds",
    "crime Right",
    "crime Gone",
    "crime Odd",
    "crime Short",
    "crime LocalKey",
    "crime LocalBounds",
    "status Success",
    "status LocalLength",
    "status LocalProtection",
    "status WrFlush",
    "status RemoteInvalidRequest",
    "status RemoteAccess",
    "req_rx.retransmits",
    "req_rx.timeouts",
    "req_rx.rnr_received",
    "req_rx.nak_seq_received",
    "resp.dup_requests",
    "reply.answered_again",
    "rx.rx_bad_icrc",
];

/// Those of [`WANTED`] that never happened.
pub fn missing(coverage: &Coverage) -> Vec<&'static str> {
    WANTED.iter().copied().filter(|w| coverage.get(*w).copied().unwrap_or(0) == 0).collect()
}
