//! What a functional twin is worth to programs: unmodified perftest on two twins, and beside it on gateware, by the wall clock of this machine.
use serde::Serialize;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// What is measured with.
#[derive(Clone, Debug)]
pub struct Tools {
    /// `ferric`, optimised, for twins.
    pub twins: PathBuf,
    /// `ferric` that has the gateware.
    pub gateware: PathBuf,
    /// Folder of libibverbs and librdmacm, optimised.
    pub libraries: PathBuf,
    /// Opens queue pairs: `verbs/tests/many.c`.
    pub many: PathBuf,
    /// The page whose shell is run: `docs/ci.md`.
    pub page: PathBuf,
}

/// What a figure has to reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bar {
    /// So much or more.
    AtLeast(f64),
    /// So much or less.
    AtMost(f64),
}

impl Bar {
    fn met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bar) => value >= bar,
            Self::AtMost(bar) => value <= bar,
        }
    }
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Stable.
    pub name: &'static str,
    /// The one in the middle of `runs`; none if it could not be had.
    pub value: Option<f64>,
    /// Of the value.
    pub unit: &'static str,
    /// None of what is there for comparison.
    pub bar: Option<Bar>,
    /// What was run.
    pub what: String,
    /// What each run came to.
    pub runs: Vec<f64>,
    /// Why there is no value.
    pub error: Option<String>,
}

impl Figure {
    /// What is wrong with it.
    pub fn failure(&self) -> Option<String> {
        match (self.value, self.bar) {
            (None, _) => Some(format!("{}: {}", self.name, self.error.as_deref().unwrap_or("not measured"))),
            (Some(value), Some(bar)) if !bar.met(value) => Some(format!("{}: {value} {} misses its bar, {bar:?}", self.name, self.unit)),
            _ => None,
        }
    }
}

/// Runs of what takes no long time.
const RUNS: usize = 3;
/// perftest prints two digits behind the point: what it shows as nothing is half of the last one at most.
const LEAST: f64 = 0.005;

/// Columns of perftest's results.
const AVERAGE_OF_BANDWIDTH: usize = 3;
const TYPICAL_OF_LATENCY: usize = 4;

/// Column `column` of the line of results for messages of `size` bytes.
fn result(text: &str, size: u32, column: usize) -> Option<f64> {
    let lines = text.lines().skip_while(|l| !l.trim_start().starts_with("#bytes")).skip(1);
    lines.map(|l| l.split_whitespace().collect::<Vec<_>>()).find(|words| words.first() == Some(&&*size.to_string()))?.get(column)?.parse().ok()
}

/// The seconds that `many` prints.
fn seconds(text: &str) -> Option<f64> {
    text.lines().find_map(|l| l.strip_suffix(" s")?.split_once(" queue pairs in ")?.1.parse().ok())
}

/// The first block of shell of a page.
fn shell(page: &str) -> Option<&str> {
    page.split("```sh\n").nth(1)?.split("```").next()
}

fn middle(runs: &[f64]) -> Option<f64> {
    let mut sorted = runs.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

impl Tools {
    fn run(&self, gateware: bool, program: &[&str]) -> Result<String, String> {
        let ferric = if gateware { &self.gateware } else { &self.twins };
        let mut command = Command::new(ferric);
        command.args(["run", "--cards", "2", if gateware { "--gateware" } else { "--twin" }, "--libraries"]).arg(&self.libraries).arg("--").args(program).env("FERRIC_MTU", "4096");
        let output = command.output().map_err(|e| format!("{}: {e}", ferric.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match output.status.success() {
            true => Ok(text),
            false => Err(format!("{program:?} ended with {}:\n{text}{}", output.status, String::from_utf8_lossy(&output.stderr))),
        }
    }

    /// What the client of a perftest program prints.
    fn perftest(&self, gateware: bool, program: &str, size: u32, iterations: u32) -> Result<String, String> {
        let port = crate::programs::free_port();
        let tool = format!("{program} -F -s {size} -n {iterations} -x 0 -p {port}");
        let script = format!("{tool} -d ferric0 > /dev/null & s=$!; until {tool} -d ferric1 127.0.0.1; do kill -0 $s; sleep 0.2; done; wait $s");
        self.run(gateware, &["timeout", "300", "sh", "-euc", &script])
    }

    /// Seconds that the shell of the page takes.
    fn example(&self) -> Result<f64, String> {
        let page = std::fs::read_to_string(&self.page).map_err(|e| format!("{}: {e}", self.page.display()))?;
        let shell = shell(&page).ok_or("the page has no block of shell")?;
        let others = std::env::var_os("PATH").unwrap_or_default();
        let folders = self.twins.parent().map(PathBuf::from).into_iter().chain(std::env::split_paths(&others));
        let path = std::env::join_paths(folders).map_err(|e| e.to_string())?;
        let start = Instant::now();
        let output = Command::new("timeout").args(["100", "sh", "-c", shell]).env("PATH", path).env("PORT", crate::programs::free_port().to_string()).output().map_err(|e| e.to_string())?;
        match output.status.success() && output.stdout.ends_with(b"RDMA works\n") {
            true => Ok(start.elapsed().as_secs_f64()),
            false => Err(format!("it ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr))),
        }
    }

    fn figure(&self, name: &'static str, unit: &'static str, bar: Option<Bar>, what: &str, runs: usize, once: impl Fn() -> Result<f64, String>) -> Figure {
        let all: Result<Vec<f64>, String> = (0..runs).map(|_| once()).collect();
        let (runs, error) = match all {
            Ok(runs) => (runs, None),
            Err(e) => (Vec::new(), Some(e)),
        };
        let figure = Figure { name, value: middle(&runs), unit, bar, what: what.into(), runs, error };
        let shown = figure.value.map_or("none".to_string(), |v| format!("{v:.3}"));
        println!("{name:32} {shown:>12} {unit:8} {what}");
        figure
    }

    /// All figures, one after another.
    pub fn measure(&self) -> Vec<Figure> {
        let read = |text: Result<String, String>, of: fn(&str) -> Option<f64>| text.and_then(|t| of(&t).ok_or(format!("no result in what it printed:\n{t}")));
        let bandwidth = |gateware, iterations| read(self.perftest(gateware, "ib_write_bw", 65_536, iterations), |t| result(t, 65_536, AVERAGE_OF_BANDWIDTH));
        let mib = "MiB/s";
        let twins = self.figure("twin_write_bw_64k", mib, Some(Bar::AtLeast(500.0)), "ib_write_bw, 64 KiB, two twins, MTU 4096, 10000 messages", RUNS, || bandwidth(false, 10_000));
        let gateware = self.figure("gateware_write_bw_64k", mib, None, "the same on gateware of 64 bits, 5 messages", 1, || bandwidth(true, 5));
        let ratio = match (twins.value, gateware.value) {
            (Some(twins), Some(gateware)) => Ok(twins / gateware.max(LEAST)),
            _ => Err("one of the two was not measured".to_string()),
        };
        let ratio = self.figure("twin_over_gateware", "", Some(Bar::AtLeast(1000.0)), "the first of these by the second", 1, || ratio.clone());
        let latency = || read(self.perftest(false, "ib_send_lat", 64, 5000), |t| result(t, 64, TYPICAL_OF_LATENCY));
        let latency = self.figure("twin_send_lat_64", "us", Some(Bar::AtMost(30.0)), "ib_send_lat, 64 bytes, two twins, typical, 5000 messages", RUNS, latency);
        let many = || read(self.run(false, &[&self.many.to_string_lossy(), "1000"]), seconds);
        let many = self.figure("twin_open_1000_qps", "s", Some(Bar::AtMost(1.0)), "1000 RC queue pairs made and brought to RTS", RUNS, many);
        let example = self.figure("ci_example", "s", Some(Bar::AtMost(5.0)), "the shell of docs/ci.md, everything built", RUNS, || self.example());
        vec![twins, gateware, ratio, latency, many, example]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_programs_print_is_read() {
        let bandwidth = " Mtu             : 4096[B]\n 65536 is no result\n #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 65536      3000             995.37             903.66 \t\t   0.014459\n---\n";
        assert_eq!(result(bandwidth, 65_536, AVERAGE_OF_BANDWIDTH), Some(903.66));
        assert_eq!(result(bandwidth, 64, AVERAGE_OF_BANDWIDTH), None);
        let latency = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]\n 64      1000          68.89          2423.44      142.01   \t       226.71\n";
        assert_eq!(result(latency, 64, TYPICAL_OF_LATENCY), Some(142.01));
        assert_eq!(seconds("1000 queue pairs in 0.194330 s\n"), Some(0.19433));
        assert_eq!(seconds("line 3: it failed\n"), None);
        assert_eq!(shell("text\n```sh\nset -e\nrun\n```\nmore"), Some("set -e\nrun\n"));
        assert_eq!(shell("text"), None);
    }

    #[test]
    fn a_bar_that_is_missed_is_named() {
        let figure = |value, bar| Figure { name: "speed", value, unit: "MiB/s", bar, what: String::new(), runs: Vec::new(), error: None };
        assert_eq!(figure(Some(500.0), Some(Bar::AtLeast(500.0))).failure(), None);
        assert!(figure(Some(499.9), Some(Bar::AtLeast(500.0))).failure().is_some_and(|f| f.contains("speed")));
        assert!(figure(Some(30.1), Some(Bar::AtMost(30.0))).failure().is_some());
        assert!(figure(None, None).failure().is_some());
        assert_eq!(figure(Some(0.1), None).failure(), None);
        assert_eq!(middle(&[3.0, 1.0, 2.0]), Some(2.0));
    }
}
