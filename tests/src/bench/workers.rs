//! Runs points: a process for each set-up, which makes a copy of itself for each point, so that no figure depends on what ran before it.
use super::rig::Outcome;
use super::scenarios::{points, Point, Rig, Way};
use super::{sweep, switch};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Points of one process at most: making the cards and connecting the queue pairs takes as long as some of them.
const POINTS: usize = 24;

/// A line that a worker prints.
#[derive(Serialize, Deserialize)]
struct Said {
    name: String,
    outcome: Outcome,
}

/// What has been measured so far, kept in a file so that a run that was stopped can go on. Its first line says of what sources it is.
pub struct Kept {
    file: Mutex<std::fs::File>,
    /// Of an earlier run of the same sources.
    pub outcomes: BTreeMap<String, Outcome>,
}

impl Kept {
    /// The file at `path`, of `sources`; begun anew if it is of others, or unless `resume`.
    pub fn open(path: &Path, sources: &str, resume: bool) -> std::io::Result<Self> {
        let text = if resume { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() };
        let lines = text.lines().skip(1).filter_map(|l| serde_json::from_str::<Said>(l).ok());
        let outcomes: BTreeMap<_, _> = if text.lines().next() == Some(sources) { lines.map(|s| (s.name, s.outcome)).collect() } else { BTreeMap::new() };
        let mut file = std::fs::File::create(path)?;
        writeln!(file, "{sources}")?;
        let file = Mutex::new(file);
        let kept = Self { file, outcomes };
        kept.outcomes.iter().try_for_each(|(name, outcome)| kept.keep(name, outcome))?;
        Ok(kept)
    }

    /// Writes one more.
    pub fn keep(&self, name: &str, outcome: &Outcome) -> std::io::Result<()> {
        let line = serde_json::to_string(&Said { name: name.into(), outcome: outcome.clone() })?;
        writeln!(self.file.lock().unwrap_or_else(|e| e.into_inner()), "{line}")
    }
}

/// Calls `work` in a copy of this process and gives what it returned.
fn in_a_copy(work: impl FnOnce() -> Outcome) -> Result<Outcome, String> {
    let mut ends = [0; 2];
    // SAFETY: two numbers to write to.
    if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
        return Err(format!("pipe: {}", std::io::Error::last_os_error()));
    }
    // SAFETY: both are new and nobody else's.
    let (mut from, mut to) = unsafe { (std::fs::File::from_raw_fd(ends[0]), std::fs::File::from_raw_fd(ends[1])) };
    // SAFETY: a worker has one thread (Verilator is told to use one), so the copy has all of it.
    match unsafe { libc::fork() } {
        -1 => Err(format!("fork: {}", std::io::Error::last_os_error())),
        0 => {
            // Nothing of the original's may be unwound here.
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            let said = outcome.ok().and_then(|o| serde_json::to_vec(&o).ok()).is_some_and(|text| to.write_all(&text).is_ok());
            // SAFETY: ends the copy without its destructors, which would wait for cards.
            unsafe { libc::_exit(!said as i32) }
        }
        child => {
            drop(to);
            let mut text = String::new();
            let read = from.read_to_string(&mut text);
            let mut status = 0;
            // SAFETY: our own child.
            unsafe { libc::waitpid(child, &mut status, 0) };
            read.map_err(|e| e.to_string())?;
            serde_json::from_str(&text).map_err(|_| format!("the run ended without a word, status {status:#x}"))
        }
    }
}

/// What a worker does: the points named, all of one rig and one way, each printed as it ends. `traces`: where their traces go, if anywhere.
pub fn work(names: &[String], traces: Option<&Path>) -> Result<(), String> {
    let wanted: Vec<Point> = points().into_iter().chain(sweep::points()).chain(switch::points()).filter(|p| names.contains(&p.name())).collect();
    let Some(first) = wanted.first().map(|p| p.scenario) else { return Err("no point has such a name".into()) };
    let mut set = Some(first.rig.set_up(first.way).map_err(|e| e.to_string())?);
    for point in wanted {
        let name = point.name();
        let outcome = in_a_copy(|| match set.take() {
            Some(set) => set.measure(&point, |trace| {
                if let Some(Err(e)) = traces.map(|dir| write_trace(&dir.join(format!("{name}.trace")), trace)) {
                    eprintln!("{name}: no trace, {e}");
                }
            }),
            None => Outcome::default(),
        });
        let outcome = outcome.unwrap_or_else(|e| Outcome { error: Some(e), ..Default::default() });
        let line = serde_json::to_string(&Said { name, outcome }).map_err(|e| e.to_string())?;
        println!("{line}");
    }
    // As in the copies: nobody waits for the cards.
    std::mem::forget(set);
    Ok(())
}

fn write_trace(path: &Path, trace: &[ferric_sim::trace::Event]) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    for e in trace {
        let head: String = e.head.iter().map(|b| format!("{b:02x}")).collect();
        writeln!(file, "{},{},{:?},{},{},{:#x},{head}", e.cycle, e.card, e.kind, e.bytes, e.last, e.addr)?;
    }
    file.flush()
}

/// Lists of points for one process each, the longest first.
fn jobs(wanted: &[Point]) -> VecDeque<Vec<String>> {
    let mut rigs: BTreeMap<(Rig, Way), Vec<String>> = BTreeMap::new();
    for p in wanted {
        rigs.entry((p.scenario.rig, p.scenario.way)).or_default().push(p.name());
    }
    let mut jobs: Vec<Vec<String>> = Vec::new();
    for names in rigs.into_values() {
        let n = names.len().div_ceil(POINTS);
        jobs.extend((0..n).map(|i| names.iter().skip(i).step_by(n).cloned().collect()));
    }
    jobs.sort_by_key(|j: &Vec<String>| std::cmp::Reverse(j.len()));
    jobs.into()
}

/// Runs `wanted` in processes of this program, so many at a time; `done` hears of each point as it ends.
pub fn run(wanted: &[Point], at_a_time: usize, traces: Option<&PathBuf>, done: impl Fn(&str, &Outcome) + Sync) -> Result<BTreeMap<String, Outcome>, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let (jobs, outcomes) = (Mutex::new(jobs(wanted)), Mutex::new(BTreeMap::new()));
    let next = || jobs.lock().unwrap_or_else(|e| e.into_inner()).pop_front();
    let one = |names: Vec<String>| -> Result<(), String> {
        let mut command = Command::new(&program);
        command.arg("--worker").arg(names.join(",")).stdout(Stdio::piped());
        if let Some(dir) = traces {
            command.arg("--traces").arg(dir);
        }
        let mut child = command.spawn().map_err(|e| e.to_string())?;
        if let Some(out) = child.stdout.take() {
            for line in BufReader::new(out).lines() {
                let line = line.map_err(|e| e.to_string())?;
                let Said { name, outcome } = serde_json::from_str(&line).map_err(|e| format!("{line}: {e}"))?;
                done(&name, &outcome);
                outcomes.lock().unwrap_or_else(|e| e.into_inner()).insert(name, outcome);
            }
        }
        let status = child.wait().map_err(|e| e.to_string())?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("a worker ended with {status}"))
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..at_a_time.max(1))
            .map(|_| {
                scope.spawn(|| {
                    while let Some(names) = next() {
                        one(names)?;
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|t| t.join().unwrap_or_else(|_| Err("a thread of the bench has panicked".to_string())))
    })?;
    Ok(outcomes.into_inner().unwrap_or_else(|e| e.into_inner()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_says_what_it_found() {
        let outcome = Outcome { value: Some(4.5), messages: 7, ..Default::default() };
        assert_eq!(in_a_copy(|| outcome.clone()), Ok(outcome));
        // SAFETY: ends the copy only.
        assert!(in_a_copy(|| unsafe { libc::_exit(3) }).is_err_and(|e| e.contains("without a word")));
    }

    #[test]
    fn a_stopped_run_goes_on_with_the_same_sources_only() {
        let path = std::env::temp_dir().join(format!("ferric-bench-kept-{}", std::process::id()));
        let outcome = Outcome { value: Some(4.5), ..Default::default() };
        Kept::open(&path, "a", true).unwrap().keep("x", &outcome).unwrap();
        assert_eq!(Kept::open(&path, "a", true).unwrap().outcomes, BTreeMap::from([("x".to_string(), outcome)]));
        assert_eq!(Kept::open(&path, "a", true).unwrap().outcomes.len(), 1, "written again");
        assert!(Kept::open(&path, "b", true).unwrap().outcomes.is_empty());
        assert!(Kept::open(&path, "b", false).unwrap().outcomes.is_empty());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn every_point_is_in_one_job_with_those_of_its_rig() {
        let all = points();
        let jobs = jobs(&all);
        let mut names: Vec<&String> = jobs.iter().flatten().collect();
        names.sort();
        let mut expected: Vec<String> = all.iter().map(Point::name).collect();
        expected.sort();
        assert!(names.into_iter().eq(&expected));
        let rig = |name: &String| all.iter().find(|p| p.name() == *name).map(|p| p.scenario.rig);
        assert!(jobs.iter().all(|j| j.len() <= POINTS && j.iter().all(|n| rig(n) == rig(&j[0]))));
    }
}
