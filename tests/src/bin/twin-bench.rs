//! `./scripts/bench twin`: what programs get of a functional twin, by the wall clock; writes `target/bench/twin.json` and fails when a bar is missed.
use clap::Parser;
use ferric_tests::bench::docs;
use ferric_tests::bench::twin::Tools;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Unmodified programs on two twins, and beside it on gateware
#[derive(Parser)]
#[command(name = "twin-bench")]
struct Options {
    /// `ferric`, optimised, for twins.
    #[arg(long, default_value = "target/release/ferric")]
    twins: PathBuf,
    /// `ferric` that has the gateware.
    #[arg(long, default_value = "target/debug/ferric-under-test")]
    gateware: PathBuf,
    /// Folder of the libraries.
    #[arg(long, default_value = "target/verbs")]
    libraries: PathBuf,
    /// Opens queue pairs.
    #[arg(long, default_value = "target/bench/many")]
    many: PathBuf,
    /// The page whose shell is run.
    #[arg(long, default_value = "docs/ci.md")]
    page: PathBuf,
    /// Where the figures go.
    #[arg(long, default_value = "target/bench/twin.json")]
    out: PathBuf,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(failures) if failures.is_empty() => ExitCode::SUCCESS,
        Ok(failures) => {
            failures.iter().for_each(|f| println!("FAILED: {f}"));
            ExitCode::FAILURE
        }
        Err(e) => {
            eprintln!("twin-bench: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run(o: &Options) -> Result<Vec<String>, String> {
    let whole = |path: &Path| std::path::absolute(path).map_err(|e| format!("{}: {e}", path.display()));
    let tools = Tools { twins: whole(&o.twins)?, gateware: whole(&o.gateware)?, libraries: whole(&o.libraries)?, many: whole(&o.many)?, page: whole(&o.page)? };
    let commit = docs::commit(Path::new("."), &["abi/src", "model/src", "twin/src", "driver/src", "verbs/src", "sim/src", "cli/src"]);
    let figures = tools.measure();
    let processors = std::thread::available_parallelism().map_or(0, |n| n.get());
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let report = json!({ "command": "./scripts/bench twin", "commit": commit, "processors": processors, "load_at_the_end": load.trim(), "figures": figures });
    if let Some(dir) = o.out.parent() {
        std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    }
    let text = serde_json::to_string_pretty(&report).map_err(|e| e.to_string())?;
    std::fs::write(&o.out, text).map_err(|e| format!("{}: {e}", o.out.display()))?;
    println!("{} figures in {}", figures.len(), o.out.display());
    Ok(figures.iter().filter_map(|f| f.failure()).collect())
}
