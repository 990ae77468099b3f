//! `./scripts/test`: runs the test programs that `cargo test --no-run --message-format=json` built, two at a time. cargo runs one after the
//! other, and most of ours keep one core waiting: a card is made and its simulation runs in one thread.
use clap::Parser;
use ferric_sim::world::THREADS;
use ferric_tests::programs::SKIPPED;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufRead};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// Runs test programs side by side.
#[derive(Parser)]
struct Options {
    /// What cargo said of its artefacts, a JSON object per line.
    artefacts: PathBuf,
    /// Programs at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Where each program's output goes.
    #[arg(long, default_value = "target/test-logs")]
    logs: PathBuf,
    /// Minutes after which a program counts as hung and is ended.
    #[arg(long, default_value_t = 40)]
    limit: u64,
}

/// Names of programs that start first: the one that builds a copy of the workspace, for `./scripts/test` has cargo check the crates behind it, and cargo lets only one
/// build at a time into the target folder; then those that take longest, so that none of them runs alone in the end.
const FIRST: [&str; 9] = ["tests adding", "ferric_hdl", "tests switch_flows", "tests property", "tests vxlan_tenants", "tests functions", "tests srq", "tests order", "sim boundary"];

/// Lines of a failed program's log that are repeated at the end, of the first and of the last ones.
const FAILURE_LINES: usize = 12;

/// Where the suite repeats what failed, below the logs' folder; `scripts/test` shows it at its very end.
const FAILED: &str = "failed";

struct Job {
    name: String,
    command: Command,
}

/// Passed, failed, ignored, and those that say themselves that they were skipped.
#[derive(Clone, Copy, Default)]
struct Count([u64; 4]);

/// What tests say that they were skipped for. libtest counts them as passed.
fn skips(log: &str) -> impl Iterator<Item = &str> {
    log.lines().filter_map(|line| line.split_once(SKIPPED).map(|(_, said)| said))
}

/// What a failed program's log says of its failures: the first and the last lines of what libtest prints of them at the end.
fn failures(log: &str) -> String {
    let from = log.find("\nfailures:\n").map_or(0, |n| n + 1);
    let lines: Vec<_> = log[from..].lines().collect();
    let [head, tail] = [lines.len().min(FAILURE_LINES), lines.len().saturating_sub(FAILURE_LINES)];
    let cut = if tail > head { vec![format!("[{} lines in its log]", tail - head)] } else { Vec::new() };
    lines[..head].iter().map(|l| l.to_string()).chain(cut).chain(lines[tail.max(head)..].iter().map(|l| l.to_string())).map(|l| l + "\n").collect()
}

impl Count {
    /// Sums up the `test result:` lines. None if there is none.
    fn of(log: &str) -> Option<Self> {
        let mut sum = None;
        for line in log.lines().filter(|l| l.starts_with("test result:")) {
            let Count(total) = sum.get_or_insert(Count::default());
            for (n, what) in total.iter_mut().zip([" passed", " failed", " ignored"]) {
                let digits = line.split(what).next().and_then(|s| s.split([' ', '.']).next_back());
                *n += digits.and_then(|s| s.parse::<u64>().ok()).unwrap_or(0);
            }
        }
        let skipped = skips(log).count() as u64;
        sum.map(|Count([passed, failed, ignored, _])| Count([passed.saturating_sub(skipped), failed, ignored, skipped]))
    }
}

/// Where the compiler's own libraries are, which the tests of a procedural macro load; cargo says so to what it runs, too.
fn libraries() -> Result<String, String> {
    let out = Command::new("rustc").args(["--print", "target-libdir"]).output().map_err(|e| format!("rustc: {e}"))?;
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_string())
}

/// The test programs among cargo's artefacts. The integration tests of a package are named `package test`, those of a program of its `package bin program`: a library and a program may
/// have one name, and each needs a log of its own.
fn jobs(artefacts: &Path) -> Result<Vec<Job>, String> {
    let file = File::open(artefacts).map_err(|e| format!("{}: {e}", artefacts.display()))?;
    let libraries = libraries()?;
    let mut jobs = Vec::new();
    for line in std::io::BufReader::new(file).lines() {
        let line = line.map_err(|e| e.to_string())?;
        let Ok(v) = serde_json::from_str::<Value>(&line) else { continue };
        let (Some(program), true) = (v["executable"].as_str(), v["profile"]["test"] == true) else { continue };
        let home = v["manifest_path"].as_str().and_then(|p| Path::new(p).parent()).ok_or("cargo names no manifest")?;
        // `path+file:///...#name@version`, or `path+file:///.../name#version`.
        let (path, rest) = v["package_id"].as_str().and_then(|id| id.split_once('#')).ok_or("cargo names no package")?;
        let package = rest.split_once('@').map_or(path.rsplit('/').next().unwrap_or(path), |(name, _)| name).trim_start_matches("ferric-");
        let (kind, target) = (v["target"]["kind"][0].as_str().unwrap_or(""), v["target"]["name"].as_str().unwrap_or(""));
        let name = match kind {
            "test" => format!("{package} {target}"),
            "bin" => format!("{package} bin {target}"),
            _ => target.replace('-', "_"),
        };
        let mut command = Command::new(program);
        command.current_dir(home).stdin(Stdio::null()).env("CARGO_MANIFEST_DIR", home).env("LD_LIBRARY_PATH", &libraries);
        // Programs that run beside each other leave a simulation no second processor.
        if std::env::var_os(ferric_sim::world::THREADS).is_none() {
            command.env(ferric_sim::world::THREADS, "1");
        }
        jobs.push(Job { name, command });
    }
    if jobs.is_empty() {
        return Err(format!("{} names no test program; run cargo test --no-run --message-format=json", artefacts.display()));
    }
    if let Some((n, job)) = jobs.iter().enumerate().find(|(n, job)| jobs[..*n].iter().any(|j: &Job| j.name == job.name)) {
        return Err(format!("test program {n} is called {} like another, and both would write one log", job.name));
    }
    jobs.sort_by_key(|j| (FIRST.iter().position(|n| *n == j.name).unwrap_or(FIRST.len()), j.name.clone()));
    Ok(jobs)
}

/// How a program ended, and the processor time of it and of all that it has waited for. None: it runs.
fn ended(child: &Child) -> io::Result<Option<(ExitStatus, Duration)>> {
    let mut status = 0;
    // SAFETY: a structure of numbers.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live variables, and nobody else waits for this child.
    match unsafe { libc::wait4(child.id() as i32, &mut status, libc::WNOHANG, &mut used) } {
        0 => Ok(None),
        n if n < 0 => Err(io::Error::last_os_error()),
        _ => {
            let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, 1000 * t.tv_usec as u32);
            Ok(Some((ExitStatus::from_raw(status), time(used.ru_utime) + time(used.ru_stime))))
        }
    }
}

/// What all programs together came to.
#[derive(Default)]
struct Total {
    tests: Count,
    failed: usize,
    /// What they said.
    failures: String,
    /// Tests that were skipped, and why.
    skipped: Vec<String>,
    /// Processor time.
    used: Duration,
}

/// Runs one.
fn run(mut job: Job, options: &Options, bar: &ProgressBar, total: &Mutex<Total>) {
    let start = Instant::now();
    let path = options.logs.join(format!("{}.log", job.name.replace(' ', "-")));
    let outcome = File::create(&path).and_then(|out| Ok((out.try_clone()?, out))).and_then(|(out, err)| job.command.stdout(out).stderr(err).spawn());
    let mut used = Duration::ZERO;
    let verdict = outcome.map_err(|e| e.to_string()).and_then(|mut child| loop {
        match ended(&child) {
            Ok(Some((status, time))) => {
                used = time;
                break if status.success() { Ok(()) } else { Err(status.to_string()) };
            }
            Ok(None) if start.elapsed() > Duration::from_secs(60 * options.limit) => {
                // Nobody waits for what may not end; the log says how far it came.
                let _ = child.kill().and_then(|()| child.wait());
                break Err(format!("not ended after {} minutes", options.limit));
            }
            Ok(None) => thread::sleep(Duration::from_millis(50)),
            Err(e) => break Err(e.to_string()),
        }
    });
    let log = fs::read(&path).map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default();
    let count = Count::of(&log);
    let Count([passed, failed, ignored, skipped]) = count.unwrap_or_default();
    let verdict = verdict.and(if count.is_none() { Err("no test result in its output".into()) } else { Ok(()) });
    {
        let mut total = total.lock().expect("no panic");
        total.tests.0.iter_mut().zip([passed, failed, ignored, skipped]).for_each(|(t, n)| *t += n);
        if let Err(e) = &verdict {
            total.failed += 1;
            total.failures += &format!("FAILED  {}: {e} ({})\n{}", job.name, path.display(), failures(&log));
        }
        total.used += used;
        total.skipped.extend(skips(&log).map(|said| format!("{}: {said}", job.name)));
    }
    let line = format!("{:30} {:6.1} s, {:6.1} s of processors  {passed} passed, {failed} failed, {ignored} ignored, {skipped} skipped", job.name, start.elapsed().as_secs_f64(), used.as_secs_f64());
    bar.inc(1);
    bar.suspend(|| match &verdict {
        Ok(()) => println!("ok      {line}"),
        Err(e) => println!("{log}\nFAILED  {line}  {e} ({})", path.display()),
    });
}

fn suite(options: &Options) -> Result<bool, String> {
    let queue = VecDeque::from(jobs(&options.artefacts)?);
    fs::create_dir_all(&options.logs).map_err(|e| format!("{}: {e}", options.logs.display()))?;
    let bar = ProgressBar::new(queue.len() as u64);
    bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} test programs, {elapsed}").map_err(|e| e.to_string())?);
    bar.enable_steady_tick(Duration::from_secs(1));
    let (start, programs) = (Instant::now(), queue.len());
    let (queue, total) = (Mutex::new(queue), Mutex::new(Total::default()));
    thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| loop {
                let (job, behind) = {
                    let mut queue = queue.lock().expect("no panic");
                    (queue.pop_front(), queue.len())
                };
                let Some(mut job) = job else { break };
                // Two cards on two threads are faster where a processor would have nothing to do: elsewhere they take it from another program, and spend a part of it waiting for each other.
                if options.jobs > 1 && behind + 1 >= options.jobs && std::env::var_os(THREADS).is_none() {
                    job.command.env(THREADS, "1");
                }
                run(job, options, &bar, &total);
            });
        }
    });
    bar.finish_and_clear();
    let Total { tests: Count([ok, bad, ignored, left_out]), failed, failures, skipped, used } = total.into_inner().expect("no panic");
    let (took, used) = (start.elapsed().as_secs_f64(), used.as_secs_f64());
    println!("{programs} test programs in {took:.0} s with {used:.0} s of processors, {failed} failed; {ok} tests passed, {bad} failed, {ignored} ignored, {left_out} skipped");
    skipped.iter().for_each(|said| println!("skipped {said}"));
    let path = options.logs.join(FAILED);
    fs::write(&path, failures).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(failed == 0)
}

fn main() -> ExitCode {
    match suite(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("test: {e}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_summed_up() {
        let log = "running 2 tests\ntest result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.00s\n\
                   test result: FAILED. 3 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n";
        assert_eq!(Count::of(log).expect("there are two").0, [15, 4, 1, 0]);
        // Its line may stand behind what libtest has begun to print.
        let skipped = format!("test a ... {SKIPPED}a: there is no package\nok\n{log}");
        assert_eq!(Count::of(&skipped).expect("as above").0, [14, 4, 1, 1]);
        assert_eq!(skips(&skipped).collect::<Vec<_>>(), ["a: there is no package"]);
        assert!(Count::of("Segmentation fault").is_none());
    }

    /// A library and a program of one name have a log each, and two programs never share one.
    #[test]
    fn every_program_has_a_name_of_its_own() {
        let artefact = |kind: &str, program: &str| {
            let target = serde_json::json!({ "kind": [kind], "name": "ferric-cdc" });
            let id = "path+file:///a/cdc#ferric-cdc@0.1.0";
            serde_json::json!({ "executable": program, "profile": { "test": true }, "manifest_path": "/a/cdc/Cargo.toml", "package_id": id, "target": target }).to_string()
        };
        let path = std::env::temp_dir().join(format!("ferric-suite-{}.json", std::process::id()));
        let jobs_of = |lines: &[String]| {
            fs::write(&path, lines.join("\n")).unwrap();
            jobs(&path).map(|jobs| jobs.into_iter().map(|j| j.name).collect::<Vec<_>>())
        };
        let all = ["lib", "bin", "test"].map(|kind| artefact(kind, kind));
        assert_eq!(jobs_of(&all).unwrap(), ["cdc bin ferric-cdc", "cdc ferric-cdc", "ferric_cdc"]);
        assert!(jobs_of(&[artefact("lib", "a"), artefact("lib", "b")]).unwrap_err().contains("ferric_cdc"));
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn failures_are_shown_by_their_first_and_last_lines() {
        assert_eq!(failures("running 1 test\nnoise\n\nfailures:\n\n---- a stdout ----\nno\n"), "failures:\n\n---- a stdout ----\nno\n");
        let long = failures(&(0..100).map(|n| format!("{n}\n")).collect::<String>());
        assert!(long.starts_with("0\n1\n") && long.ends_with("98\n99\n") && long.contains("[76 lines in its log]"), "{long}");
    }
}
