//! The mutation run: each defect of `hdl/mutants/` alone in the gateware, and which block test notices.
//!
//! The test binary is built once; it puts the defect into the emitted Verilog itself (`ferric_hdl::mutants`).

use ferric_hdl::mutants::{list, Mutant, APPLIED, BROKEN, VARIABLE};
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// How long one test may take, model building included.
const LIMIT: Duration = Duration::from_secs(400);

/// What is to be run.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Only mutants whose name contains one of these; all if empty.
    pub only: Vec<String>,
    /// Mutants at a time.
    pub jobs: usize,
    /// Leaves out the run without a mutant.
    pub no_baseline: bool,
}

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The test that failed, and its message.
    Killed(String, String),
    /// No test failed: a test is missing.
    Survived,
    /// Nothing was tested.
    Broken(String),
}

/// A mutant and its fate.
pub struct Verdict {
    pub mutant: Mutant,
    pub fate: Fate,
    pub seconds: f32,
}

/// The mutants a plan chooses. Errors: the list makes no sense, or nothing is chosen.
pub fn choose(only: &[String]) -> Result<Vec<Mutant>, String> {
    let mut all = list()?;
    all.retain(|m| only.is_empty() || only.iter().any(|part| m.name.contains(part.as_str())));
    if all.is_empty() {
        Err(format!("no mutant is called {only:?}"))
    } else {
        Ok(all)
    }
}

/// Runs a plan. Errors: the tests do not build, or one fails without any mutant.
pub fn run(plan: &Plan) -> Result<Vec<Verdict>, String> {
    let mutants = choose(&plan.only)?;
    let bench = Bench::build()?;
    let bar = ProgressBar::new(mutants.len() as u64).with_style(ProgressStyle::with_template("{elapsed_precise} {bar:30} {pos}/{len} {msg}").unwrap_or(ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(500));
    if !plan.no_baseline {
        let tests: BTreeSet<String> = mutants.iter().flat_map(|m| bench.tests_of(m)).collect();
        bar.set_message(format!("{} tests without a mutant", tests.len()));
        let failed: Vec<String> = each(&tests.into_iter().collect::<Vec<_>>(), plan.jobs, |test| match bench.test(test, None) {
            Run { passed: true, .. } => None,
            run => Some(format!("{test}: {}", run.reason())),
        });
        if !failed.is_empty() {
            return Err(format!("without a mutant:\n{}", failed.join("\n")));
        }
    }
    Ok(each(&mutants, plan.jobs, |mutant| {
        bar.set_message(mutant.name.clone());
        let started = Instant::now();
        let fate = bench.fate(mutant);
        let seconds = started.elapsed().as_secs_f32();
        // A bar without a terminal swallows its lines.
        let said = format!("{:26} {}", mutant.name, line(&fate));
        if bar.is_hidden() {
            println!("{said}")
        } else {
            bar.println(said)
        }
        bar.inc(1);
        Some(Verdict { mutant: mutant.clone(), fate, seconds })
    }))
}

fn line(fate: &Fate) -> String {
    match fate {
        Fate::Killed(test, reason) => format!("killed by {test}: {}", short(reason, 90)),
        Fate::Survived => "SURVIVED".into(),
        Fate::Broken(reason) => format!("BROKEN: {reason}"),
    }
}

/// The report, in Markdown, and whether every mutant was killed.
pub fn report(verdicts: &[Verdict]) -> (String, bool) {
    let mut text = String::from("# Mutation run\n\n| mutant | top | what is wrong | caught by | s |\n|---|---|---|---|---|\n");
    for v in verdicts {
        let fate = match &v.fate {
            Fate::Killed(test, _) => format!("`{test}`"),
            other => line(other),
        };
        // A `String` takes any text.
        let _ = writeln!(text, "| {} | {} | {} | {} | {:.0} |", v.mutant.name, v.mutant.top, v.mutant.what, fate.replace('|', "\\|"), v.seconds);
    }
    let count = |is: fn(&Fate) -> bool| verdicts.iter().filter(|v| is(&v.fate)).count();
    let killed = count(|f| matches!(f, Fate::Killed(..)));
    let _ = writeln!(text, "\n{killed} killed, {} survived, {} broken", count(|f| *f == Fate::Survived), count(|f| matches!(f, Fate::Broken(_))));
    (text, killed == verdicts.len())
}

/// Where the report goes; that of a choice of mutants does not take the place of the whole.
pub fn report_path(plan: &Plan) -> PathBuf {
    target().join(if plan.only.is_empty() { "report.md" } else { "report-part.md" })
}

fn target() -> PathBuf {
    root().join("target/mutants")
}

fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}

/// The block tests, built.
struct Bench {
    binary: PathBuf,
    names: Vec<String>,
}

impl Bench {
    fn build() -> Result<Bench, String> {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(root()).args(["test", "-q", "-p", "ferric-hdl", "--lib", "--no-run", "--message-format=json"]);
        let output = command.stderr(Stdio::inherit()).output().map_err(|e| format!("cargo: {e}"))?;
        if !output.status.success() {
            return Err("the block tests do not build".into());
        }
        let messages = String::from_utf8_lossy(&output.stdout);
        let executable = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()).find_map(|message| {
            let test = message["profile"]["test"] == true && message["target"]["name"] == "ferric_hdl";
            message["executable"].as_str().filter(|_| test).map(PathBuf::from)
        });
        let binary = executable.ok_or("cargo names no test binary")?;
        let output = Command::new(&binary).arg("--list").output().map_err(|e| format!("{}: {e}", binary.display()))?;
        let names = String::from_utf8_lossy(&output.stdout).lines().filter_map(|l| l.strip_suffix(": test")).map(String::from).collect();
        Ok(Bench { binary, names })
    }

    /// Full names of a mutant's tests, in the order in which they are tried.
    fn tests_of(&self, mutant: &Mutant) -> Vec<String> {
        let mut tests: Vec<String> = Vec::new();
        for filter in &mutant.tests {
            let inside = format!("{filter}::");
            let found = self.names.iter().filter(|name| *name == filter || name.starts_with(&inside));
            tests.extend(found.filter(|name| !tests.contains(name)).cloned().collect::<Vec<_>>());
        }
        tests
    }

    fn fate(&self, mutant: &Mutant) -> Fate {
        let mut applied = false;
        for test in self.tests_of(mutant) {
            let run = self.test(&test, Some(mutant));
            applied |= run.output.contains(APPLIED);
            if let Some(at) = run.output.find(BROKEN) {
                return Fate::Broken(short(&run.output[at..], 400));
            } else if !run.ended {
                return Fate::Broken(format!("{test}: {}", run.reason()));
            } else if !run.passed {
                return Fate::Killed(test, run.reason());
            }
        }
        if applied {
            Fate::Survived
        } else {
            Fate::Broken("no test builds the module".into())
        }
    }

    /// Runs one test in a process of its own.
    fn test(&self, name: &str, mutant: Option<&Mutant>) -> Run {
        let mut command = Command::new(&self.binary);
        // The only test of a process, yet not on the main thread, whose stack is small.
        command.args(["--exact", name, "--nocapture", "--test-threads=2"]).current_dir(root().join("hdl"));
        command.env("CARGO_MANIFEST_DIR", root().join("hdl")).env("RUST_MIN_STACK", "268435456").env("RUST_BACKTRACE", "0").env_remove("FERRIC_SEED").env_remove(VARIABLE);
        if let Some(mutant) = mutant {
            // A cache of their own, which can be thrown away.
            command.env(VARIABLE, &mutant.name).env("FERRIC_VERILATED_DIR", target().join("verilated"));
        }
        match finish(&mut command) {
            Ok((output, code)) => Run { passed: code == Some(0) && output.contains("1 passed"), ended: matches!(code, Some(0 | 101)), output },
            Err(e) => Run { passed: false, ended: false, output: format!("panicked\n{e}") },
        }
    }
}

/// One test's run.
struct Run {
    passed: bool,
    /// The harness itself came to an end.
    ended: bool,
    output: String,
}

impl Run {
    /// The panic's message, as far as there is one.
    fn reason(&self) -> String {
        let message = self.output.split_once("panicked").and_then(|(_, rest)| rest.split_once('\n')).map(|(_, rest)| rest);
        short(message.unwrap_or("ended without a verdict"), 200)
    }
}

/// Output and exit code of a command; no code if a signal or the time limit ended it.
fn finish(command: &mut Command) -> std::io::Result<(String, Option<i32>)> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let started = Instant::now();
    thread::scope(|scope| {
        let read = |mut from: Box<dyn Read + Send>| {
            let mut bytes = Vec::new();
            // What was read before an error is still worth showing.
            let _ = from.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let err = err.map(|e| scope.spawn(move || read(Box::new(e))));
        let out = out.map(|o| scope.spawn(move || read(Box::new(o))));
        let mut late = false;
        let status = loop {
            match child.try_wait()? {
                Some(status) => break status,
                None if started.elapsed() > LIMIT && !late => {
                    late = true;
                    child.kill()?;
                }
                None => thread::sleep(Duration::from_millis(20)),
            }
        };
        let mut text: String = [err, out].into_iter().flatten().filter_map(|reader| reader.join().ok()).collect();
        if late {
            text.push_str(&format!("\npanicked\nno end in {} s", LIMIT.as_secs()));
        }
        Ok((text, status.code()))
    })
}

/// `job` over all items, `jobs` at a time; results in the order of the items.
fn each<T: Sync, R: Send>(items: &[T], jobs: usize, job: impl Fn(&T) -> Option<R> + Sync) -> Vec<R> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, items.len().max(1)) {
            scope.spawn(|| loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(n) else { break };
                let result = job(item);
                results.lock().unwrap_or_else(|e| e.into_inner()).push((n, result));
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(|e| e.into_inner());
    results.sort_by_key(|(n, _)| *n);
    results.into_iter().filter_map(|(_, result)| result).collect()
}

fn short(text: &str, limit: usize) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(limit).collect()
}

/// Writes the report to [`report_path`]. Errors: the file system's.
pub fn save(plan: &Plan, text: &str) -> std::io::Result<()> {
    fs::create_dir_all(target())?;
    fs::write(report_path(plan), text)
}
