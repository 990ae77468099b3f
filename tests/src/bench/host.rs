//! What posting and polling cost the host: instructions counted by callgrind in `host-cost`, the driver over a card of memory.
use std::path::Path;
use std::process::Command;

/// Cost of one 8-byte WRITE: posted, and its completion polled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostCost {
    /// Instructions, the loop around both included.
    pub instructions: f64,
    /// Calls of the allocator.
    pub allocations: f64,
}

/// Runs `program` (the `host-cost` binary) under callgrind; its data file goes to `out`.
pub fn measure(program: &Path, out: &Path) -> Result<HostCost, String> {
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=measured"])
        .arg(format!("--callgrind-out-file={}", out.join("host-cost.callgrind").display()))
        .arg(program)
        .output()
        .map_err(|e| format!("valgrind: {e}; ./scripts/setup installs it"))?;
    let (stdout, stderr) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    if !run.status.success() {
        return Err(format!("{} failed:\n{stdout}{stderr}", program.display()));
    }
    parse(&stdout, &stderr).ok_or_else(|| format!("callgrind has not said what it counted:\n{stdout}{stderr}"))
}

/// `stdout` is the program's, `stderr` callgrind's.
fn parse(stdout: &str, stderr: &str) -> Option<HostCost> {
    let words: Vec<&str> = stdout.split_whitespace().collect();
    let number = |name: &str| words.iter().position(|w| *w == name).and_then(|at| words.get(at + 1)?.parse::<f64>().ok());
    let counted: f64 = stderr.lines().find_map(|l| l.split_once("Collected :"))?.1.trim().parse().ok()?;
    let requests = number("requests").filter(|n| *n > 0.0)?;
    // Nothing counted: the function was not found.
    (counted > 0.0).then_some(HostCost { instructions: counted / requests, allocations: number("allocations")? / requests })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_callgrind_says_is_read() {
        let said = "==1== Callgrind\n==1== Events    : Ir\n==1== Collected : 150000\n";
        assert_eq!(parse("requests 1000 allocations 0\n", said), Some(HostCost { instructions: 150.0, allocations: 0.0 }));
        assert_eq!(parse("requests 1000 allocations 0\n", "==1== Collected : 0\n"), None);
        assert_eq!(parse("nothing", said), None);
    }
}
