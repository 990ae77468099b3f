//! `./scripts/synth [BLOCK...]`: area and depth of the gateware, to target/synth/report.json and report.md; with `--check` compared with
//! the committed table, with `--update` written into it.
use clap::Parser;
use ferric_tests::synth::gate::{self, Now};
use ferric_tests::synth::subject::{self, Subject, What};
use ferric_tests::synth::table::{Row, Table};
use ferric_tests::synth::{docs, limits, placed, report, Flows, Outcome};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Faults of one top that are shown; report.json has all.
const SHOWN: usize = 10;

/// Maps blocks to UltraScale+ or ECP5, counts cells, walks the longest paths. Results are kept by content, so a second run is short.
#[derive(Parser)]
struct Options {
    /// Blocks (`dma_rd` for both widths) or tops (`dma_rd_w512`, `ferric_ecpix5`); none: all.
    blocks: Vec<String>,
    /// Compare with docs/resources.jsonl: more than 5 % larger, or a level deeper, is a fault.
    #[arg(long)]
    check: bool,
    /// Only what has changed since the table was written. With --check, as in ./scripts/test: whole cores and boards are not mapped, but
    /// named when they have.
    #[arg(long)]
    changed: bool,
    /// Write the figures into docs/resources.jsonl and docs/resources.md.
    #[arg(long, conflicts_with = "check")]
    update: bool,
    /// Write what nextpnr said of a board's image into the table: the board's name.
    #[arg(long, value_name = "BOARD", conflicts_with_all = ["blocks", "check", "changed", "update"])]
    placed: Option<String>,
    /// Where its report.json and the Verilog of the image lie; by default where ./scripts/bitstream leaves them.
    #[arg(long, requires = "placed")]
    from: Option<PathBuf>,
    /// Map once more to see the share of `prim`.
    #[arg(long)]
    share: bool,
    /// Try to map the core in one piece before mapping it block by block.
    #[arg(long)]
    flat_core: bool,
    /// Show the longest path from each block to each block, as far as it has N levels or more.
    #[arg(long, value_name = "N")]
    paths: Option<u32>,
    /// Map nothing: report what is in the cache, the rest as faults; --update lists it as without figures.
    #[arg(long)]
    known_only: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let done = match &options.placed {
        Some(board) => put_placed(board, options.from.as_deref()).map(|()| true),
        None => run(&options),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("synth: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Writes the frequencies of a board's image into its row.
fn put_placed(key: &str, from: Option<&Path>) -> Result<(), String> {
    let found = subject::all().into_iter().find_map(|s| if let What::Board(b) = &s.what { (b.key == key).then(|| (s.name, b.clone())) } else { None });
    let (name, board) = found.ok_or_else(|| format!("no board is called {key}"))?;
    let root = Path::new(".");
    let new = placed::read(&board, from.unwrap_or(&root.join("target/boards").join(key)))?;
    let mut table = Table::read(root)?;
    let row = table.rows.iter_mut().find(|r| r.top == name).ok_or_else(|| format!("{name} is not in the table yet: ./scripts/synth --update {name}"))?;
    if let Some(old) = row.placed.replace(new.clone()) {
        println!("was: {}", report::placement(row, &old).trim_end());
    }
    println!("{}", report::placement(row, &new).trim_end());
    table.write(root)?;
    docs::write(root, &table, &[])
}

/// The subjects that the command names.
fn chosen(options: &Options, all: &[Subject]) -> Result<Vec<Subject>, String> {
    let named = |name: &str, block: &str| name == block || name.strip_prefix(block).is_some_and(|rest| rest.starts_with("_w"));
    if let Some(unknown) = options.blocks.iter().find(|b| !all.iter().any(|s| named(s.name, b))) {
        let names: Vec<&str> = all.iter().map(|s| s.name).collect();
        return Err(format!("no block is called {unknown}; there are {}", names.join(" ")));
    }
    Ok(all.iter().filter(|s| options.blocks.is_empty() || options.blocks.iter().any(|b| named(s.name, b))).cloned().collect())
}

fn run(options: &Options) -> Result<bool, String> {
    let (root, out) = (Path::new("."), Path::new("target/synth"));
    let mut flows = Flows::new(out)?;
    flows.share = options.share;
    flows.flat_core = options.flat_core;
    if options.known_only {
        flows.known_only();
    }
    let all = subject::all();
    let mut table = Table::read(root)?;
    let mut failures = Vec::new();
    let names: Vec<(&str, &str)> = all.iter().map(|s| (s.name, s.family.name())).collect();
    if options.check && options.blocks.is_empty() {
        failures.extend(gate::missing(&names, &table));
    }
    if options.update {
        table.arrange(&names);
    }
    let mut work = chosen(options, &all)?;
    let hashes: Vec<String> = if options.check || options.update || options.changed { flows.hashes(&work).into_iter().collect::<Result<_, _>>()? } else { vec![] };
    let mut jobs: Vec<(Subject, Option<String>)> = work.drain(..).enumerate().map(|(n, s)| (s, hashes.get(n).cloned())).collect();
    let mut stale = Vec::new();
    if options.blocks.is_empty() {
        stale.extend(gate::unmeasured(&table));
    }
    stale.extend(misplaced(&jobs, &table));
    if options.changed {
        jobs = unchanged(options.check, jobs, &table, flows.version().ok().as_deref(), &mut stale, &mut failures);
    }
    let commit = docs::commit(root);
    let mut outcomes: Vec<Outcome> = Vec::new();
    let total = jobs.len();
    for (n, (subject, hash)) in jobs.into_iter().enumerate() {
        let started = Instant::now();
        let outcome = match flows.run(&subject) {
            Ok(outcome) => outcome,
            Err(e) => {
                println!("[{}/{total}] {}: no figures, {e}", n + 1, subject.label());
                if options.update && options.known_only {
                    table.lack(subject.name, subject.family.name(), "not mapped yet");
                }
                failures.push(format!("{}: {e}", subject.label()));
                continue;
            }
        };
        let row = Row::new(&outcome, hash.unwrap_or_default(), flows.version()?, commit.clone());
        println!(
            "[{}/{total}] {}: {} LUT, {} as memory, {} FF, {} RAM, {} levels ({:.0} s)",
            n + 1,
            subject.label(),
            row.lut,
            row.lutram,
            row.ff,
            row.bram,
            row.levels,
            started.elapsed().as_secs_f32()
        );
        failures.extend(wrong(&outcome));
        failures.extend(limits::beyond(&row));
        if let Some(old) = table.find(&row.top, &row.family).filter(|_| options.check || options.update) {
            let changes = gate::compare(old, &row);
            changes.shrunk.iter().for_each(|c| println!("smaller: {c}"));
            if options.check {
                failures.extend(changes.grown);
            } else {
                changes.grown.iter().for_each(|c| println!("larger: {c}"));
            }
        }
        if options.update {
            table.put(row.clone());
            table.arrange(&names);
        }
        outcomes.push(outcome);
        // Written after each top: a run that is stopped leaves what it has.
        if options.update {
            table.write(root)?;
        }
        let text = serde_json::to_string_pretty(&report::json(&outcomes)).map_err(|e| e.to_string())?;
        std::fs::write(out.join("report.json"), text).map_err(|e| e.to_string())?;
    }
    let rows: Vec<Row> = outcomes.iter().map(|o| Row::new(o, String::new(), String::new(), commit.clone())).collect();
    let text = report::markdown(rows.iter()) + &report::deep(&outcomes);
    std::fs::write(out.join("report.md"), &text).map_err(|e| e.to_string())?;
    if options.update {
        table.write(root)?;
        docs::write(root, &table, &outcomes)?;
    } else if !options.check {
        println!("\n{text}");
    }
    if let Some(levels) = options.paths {
        println!("{}", report::between_blocks(&outcomes, levels));
    }
    stale.iter().for_each(|s| println!("STALE {s}"));
    failures.iter().for_each(|f| println!("FAULT {f}"));
    let stale = if stale.is_empty() { String::new() } else { format!(", {} with no figures or those of other gateware", stale.len()) };
    println!("{} of {total} tops mapped, {} faults{stale}; target/synth/report.json, target/synth/report.md", outcomes.len(), failures.len());
    Ok(failures.is_empty())
}

/// What of `jobs` has changed and is to be mapped.
fn unchanged(test: bool, jobs: Vec<(Subject, Option<String>)>, table: &Table, yosys: Option<&str>, stale: &mut Vec<String>, failures: &mut Vec<String>) -> Vec<(Subject, Option<String>)> {
    let now: Vec<Now> = jobs.iter().map(|(s, hash)| Now { top: s.name, family: s.family.name(), hash: hash.clone().unwrap_or_default(), whole: s.whole() }).collect();
    if !test {
        let old = |n: &Now| table.find(n.top, n.family).is_none_or(|r| r.hash != n.hash || yosys.is_some_and(|v| v != r.yosys));
        let old: Vec<bool> = now.iter().map(old).collect();
        return jobs.into_iter().zip(old).filter(|(_, old)| *old).map(|(job, _)| job).collect();
    }
    let plan = gate::plan(&now, table, yosys);
    println!("{} of {} tops are as they were when docs/resources.jsonl was written, {} have to be mapped", plan.same, now.len(), plan.map.len());
    stale.extend(plan.stale);
    failures.extend(plan.faults);
    jobs.into_iter().enumerate().filter(|(n, _)| plan.map.contains(n)).map(|(_, job)| job).collect()
}

/// Boards whose placed figures are not of what their row says.
fn misplaced(jobs: &[(Subject, Option<String>)], table: &Table) -> Vec<String> {
    let boards = jobs.iter().filter_map(|(s, hash)| Some((s, hash.as_ref()?, table.find(s.name, s.family.name())?.placed.as_ref()?)));
    let old = boards.filter(|(_, hash, placed)| placed.hash != **hash);
    old.map(|(s, ..)| format!("{}, placed and routed: figures of other gateware; ./scripts/bitstream, then ./scripts/synth --placed", s.name)).collect()
}

/// What is wrong with a mapping, whatever its size was before.
fn wrong(outcome: &Outcome) -> Vec<String> {
    let (label, found) = (outcome.subject.label(), &outcome.mapping.faults);
    let mut wrong: Vec<String> = found.iter().take(SHOWN).map(|f| format!("{label}: {f}")).collect();
    wrong.extend(found.len().checked_sub(SHOWN + 1).map(|n| format!("{label}: and {} more", n + 1)));
    let levels = outcome.mapping.walk.levels();
    if report::limited(outcome) && levels > report::LIMIT {
        wrong.push(format!("{label}: {levels} levels, {} allowed", report::LIMIT));
    }
    wrong
}
