//! `./scripts/bench`: writes `target/bench/report.json`, and with `--write` docs/figures.md; with `--sweep` the sweep's table and plot instead. Fails when a bar is missed or a figure has a fault.
use clap::Parser;
use ferric_tests::bench::report::{self, Figure, Report, EXTRAS};
use ferric_tests::bench::scenarios::points;
use ferric_tests::bench::workers::Kept;
use ferric_tests::bench::{docs, host, sweep, switch, uet, virtio, workers};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Cycle-exact figures of two simulated cards of 512 bits
#[derive(Parser)]
#[command(name = "bench")]
struct Options {
    /// Only figures whose name contains this; may be given more than once.
    #[arg(long)]
    only: Vec<String>,
    /// Only the first window and host latency of each scenario, at 64-byte lines, without loss.
    #[arg(long)]
    quick: bool,
    /// WRITEs of every size at every depth, host latency and alignment instead of the scenarios: sweep.md, sweep.svg and sweep.json.
    #[arg(long, conflicts_with = "quick")]
    sweep: bool,
    /// What the flow switch and a tunnel cost: the same traffic on the cards `roce` and `switch`, as a table: switch.json.
    #[arg(long, conflicts_with_all = ["quick", "sweep"])]
    switch: bool,
    /// What the card `uet` reaches: uet.json.
    #[arg(long, conflicts_with_all = ["quick", "sweep", "switch", "resume", "traces"])]
    uet: bool,
    /// What the card `virtio` reaches: virtio.json.
    #[arg(long, conflicts_with_all = ["quick", "sweep", "switch", "uet", "resume", "traces"])]
    virtio: bool,
    /// Prints the names of the figures.
    #[arg(long)]
    list: bool,
    /// Writes docs/figures.md and README's block, or docs/sweep.md and docs/sweep.svg, or docs/switch-figures.md, or docs/uet-figures.md, or docs/virtio-figures.md. Only with a full run.
    #[arg(long, conflicts_with_all = ["only", "quick"])]
    write: bool,
    /// Goes on with a run of the same sources that was stopped.
    #[arg(long)]
    resume: bool,
    /// Simulations at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Leaves the traces here: `cycle,card,event,bytes,last,address,first bytes of a frame` a line.
    #[arg(long)]
    traces: Option<PathBuf>,
    /// Where the report goes.
    #[arg(long, default_value = "target/bench")]
    out: PathBuf,
    /// Program whose instructions are counted.
    #[arg(long, default_value = "target/release/examples/host-cost")]
    host_cost: PathBuf,
    /// Names of points to run in this process.
    #[arg(long, hide = true, value_delimiter = ',')]
    worker: Vec<String>,
}

fn main() -> ExitCode {
    env_logger::init();
    let options = Options::parse();
    let done = if options.worker.is_empty() { run(&options) } else { workers::work(&options.worker, options.traces.as_deref()).map(|()| true) };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("bench: {e}");
            ExitCode::FAILURE
        }
    }
}

/// A bench of one card's own: what its figures are called, and how one is had.
struct Own<'a, P> {
    name: &'a str,
    points: &'a [P],
    /// Name, and what it is in words.
    says: fn(&P) -> (&'static str, &'static str),
    measure: fn(&P) -> Figure,
    table: fn(&Report) -> String,
    page: fn(&Report) -> String,
}

/// The figures of the card `uet`, or of `virtio`, so many at a time.
fn run_own<P: Sync>(options: &Options, own: &Own<P>) -> Result<bool, String> {
    let chosen = |name: &str| options.only.is_empty() || options.only.iter().any(|o| name.contains(o.as_str()));
    let wanted: Vec<_> = own.points.iter().filter(|p| chosen((own.says)(p).0)).collect();
    if options.list {
        wanted.iter().map(|p| (own.says)(p)).for_each(|(name, what)| println!("{name:30} {what}"));
        return Ok(true);
    }
    if wanted.is_empty() {
        return Err("no figure has such a name; --list prints them".into());
    }
    std::fs::create_dir_all(&options.out).map_err(|e| format!("{}: {e}", options.out.display()))?;
    let (root, started) = (Path::new("."), Instant::now());
    let sources = ["hdl/src", "abi/src", "driver/src", "sim/src", "sim/verilator-sys/src", "tests/src"];
    let (commit, gateware) = (docs::commit(root, &sources), docs::commit(root, &sources[..2]));
    let mut figures = Vec::new();
    for some in wanted.chunks(options.jobs.max(1)) {
        std::thread::scope(|scope| {
            let threads: Vec<_> = some.iter().map(|point| scope.spawn(|| (own.measure)(point))).collect();
            threads.into_iter().try_for_each(|t| t.join().map(|f| figures.push(f)).map_err(|_| "a thread of the bench has panicked".to_string()))
        })?;
    }
    let report = Report { gateware, commit, command: format!("./scripts/bench --{}", own.name), figures };
    let file = options.out.join(own.name).with_extension("json");
    let text = serde_json::to_string_pretty(&report).map_err(|e| e.to_string())?;
    std::fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    println!("{}", (own.table)(&report));
    let page = if options.write { root.join("docs") } else { options.out.clone() }.join(format!("{}-figures.md", own.name));
    std::fs::write(&page, (own.page)(&report)).map_err(|e| format!("{}: {e}", page.display()))?;
    let failures = report.failures();
    failures.iter().for_each(|f| println!("{f}"));
    println!("{} figures in {:.0} s, {} failures; {}", report.figures.len(), started.elapsed().as_secs_f64(), failures.len(), file.display());
    Ok(failures.is_empty())
}

fn run(options: &Options) -> Result<bool, String> {
    if options.uet {
        return run_own(options, &Own { name: "uet", points: uet::POINTS, says: |p| (p.name, p.what), measure: uet::measure, table: uet::table, page: uet::page });
    }
    if options.virtio {
        return run_own(options, &Own { name: "virtio", points: virtio::POINTS, says: |p| (p.name, p.what), measure: virtio::measure, table: virtio::table, page: virtio::page });
    }
    let chosen = |name: &str| options.only.is_empty() || options.only.iter().any(|o| name.contains(o.as_str()));
    let all = match (options.sweep, options.switch) {
        (true, _) => sweep::points(),
        (_, true) => switch::points(),
        _ => points(),
    };
    let wanted: Vec<_> = all.into_iter().filter(|p| chosen(&p.name()) && (!options.quick || p.quick())).collect();
    let extras: Vec<_> = EXTRAS.iter().filter(|e| !options.sweep && !options.switch && chosen(e.name)).collect();
    if options.list {
        wanted.iter().for_each(|p| println!("{:45} {}", p.name(), p.conditions()));
        extras.iter().for_each(|e| println!("{:45} {}", e.name, e.what));
        return Ok(true);
    }
    if wanted.is_empty() && extras.is_empty() {
        return Err("no figure has such a name; --list prints them".into());
    }
    for dir in [Some(&options.out), options.traces.as_ref()].into_iter().flatten() {
        std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    }
    let started = Instant::now();
    let root = Path::new(".");
    let sources = ["hdl/src", "abi/src", "driver/src", "sim/src", "sim/verilator-sys/src", "tests/src"];
    // Asked before the run: what is committed meanwhile is not what ran.
    let (commit, gateware) = (docs::commit(root, &sources), docs::commit(root, &sources[..2]));
    // What is not committed has no name, but the gateware's hash.
    let (outcomes, name) = match (options.sweep, options.switch) {
        (true, _) => ("sweep.jsonl", "sweep.json"),
        (_, true) => ("switch.jsonl", "switch.json"),
        _ => ("outcomes.jsonl", "report.json"),
    };
    let kept = Kept::open(&options.out.join(outcomes), &format!("{commit} {}", ferric_hdl::card::SOURCE_HASH), options.resume).map_err(|e| e.to_string())?;
    let left: Vec<_> = wanted.iter().copied().filter(|p| !kept.outcomes.contains_key(&p.name())).collect();
    let mut outcomes = workers::run(&left, options.jobs, options.traces.as_ref(), |name, outcome| {
        if let Err(e) = kept.keep(name, outcome) {
            eprintln!("{name}: not kept, {e}");
        }
        let value = outcome.value.map_or("none".to_string(), report::number);
        let trouble: Vec<&String> = outcome.error.iter().chain(&outcome.faults).collect();
        println!(
            "{name:45} {value:>9} {:>9} cycles {:>6.1} s {} {}",
            outcome.cycles,
            outcome.seconds,
            if trouble.is_empty() { "" } else { "FAULT" },
            trouble.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ")
        );
    })?;
    outcomes.extend(kept.outcomes.iter().filter(|(name, _)| wanted.iter().any(|p| p.name() == **name)).map(|(name, o)| (name.clone(), o.clone())));
    let mut command = "./scripts/bench".to_string();
    std::env::args().skip(1).filter(|a| a != "--resume").for_each(|a| command += &format!(" {a}"));
    let mut figures: Vec<_> = wanted.iter().filter_map(|p| Some(report::of_point(p, outcomes.get(&p.name())?))).collect();
    let [cycles, messages] = report::speed(&outcomes);
    let cost = extras.iter().any(|e| e.name.starts_with("post_")).then(|| host::measure(&options.host_cost, &options.out));
    for extra in extras {
        let cost = |of: fn(&host::HostCost) -> f64| cost.as_ref().map_or(Err("not measured".to_string()), |c| c.as_ref().map(of).map_err(String::clone));
        let value = match extra.name {
            "post_poll_instructions" => cost(|c| c.instructions),
            "post_allocations" => cost(|c| c.allocations),
            "cosim_cycles_per_second" => cycles.clone(),
            _ => messages.clone(),
        };
        // A part of the points says nothing of the speed.
        if value.is_ok() || !options.quick && options.only.is_empty() {
            figures.push(report::of_extra(extra, value));
        }
    }
    let mut report = Report { gateware, commit, command, figures };
    if options.switch {
        switch::judge(&mut report);
    }
    let file = options.out.join(name);
    let text = serde_json::to_string_pretty(&report).map_err(|e| e.to_string())?;
    std::fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    if options.sweep {
        println!("{}", sweep::table(&report));
        let dir = if options.write { root.join("docs") } else { options.out.clone() };
        sweep::plot(&report, &dir.join("sweep.svg"))?;
        std::fs::write(dir.join("sweep.md"), sweep::page(&report)).map_err(|e| format!("{}: {e}", dir.display()))?;
    } else if options.switch {
        println!("{}", switch::table(&report));
        let dir = if options.write { root.join("docs") } else { options.out.clone() };
        std::fs::write(dir.join("switch-figures.md"), switch::page(&report)).map_err(|e| format!("{}: {e}", dir.display()))?;
    } else if options.write {
        docs::write(root, &report)?.iter().for_each(|said| println!("{said}"));
    }
    let failures = report.failures();
    failures.iter().for_each(|f| println!("{f}"));
    println!("{} figures in {:.0} s, {} failures; {}", report.figures.len(), started.elapsed().as_secs_f64(), failures.len(), file.display());
    Ok(failures.is_empty())
}
