//! Running the external tools.

use crate::error::Error;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The Verilator installation in use.
#[derive(Clone, Debug)]
pub struct Verilator {
    /// Program to run.
    pub program: String,
    /// First line of `--version`.
    pub version: String,
    /// Directory of `verilated.h` and the runtime's sources.
    pub include: PathBuf,
}

/// Finds Verilator once per process: `VERILATOR` if set, else `verilator` on the path.
pub fn verilator() -> Result<&'static Verilator, Error> {
    static FOUND: OnceLock<Verilator> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(found);
    }
    let program = std::env::var("VERILATOR").unwrap_or_else(|_| "verilator".into());
    let ask = |args: &[&str]| -> Result<String, Error> {
        let out = run(Command::new(&program).args(args), &program, "(query)")?;
        Ok(String::from_utf8_lossy(&out.stdout).trim().to_string())
    };
    let version = ask(&["--version"])?;
    let root = ask(&["--getenv", "VERILATOR_ROOT"])?;
    let include = PathBuf::from(root).join("include");
    Ok(FOUND.get_or_init(|| Verilator { program, version, include }))
}

/// The C++ compiler in use.
#[derive(Clone, Debug)]
pub(crate) struct Cxx {
    /// Program to run.
    pub program: String,
    /// First line of `--version`.
    pub version: String,
    pub clang: bool,
}

/// Finds the C++ compiler once per process: `CXX` if set, else `clang++` if it is on the path (its models of cards simulate a third faster, and are built in two thirds of the time), else `g++`.
pub(crate) fn cxx() -> Result<&'static Cxx, Error> {
    static FOUND: OnceLock<Cxx> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(found);
    }
    let ask = |program: &str| -> Result<Cxx, Error> {
        let out = run(Command::new(program).arg("--version"), program, "(query)")?;
        let version = String::from_utf8_lossy(&out.stdout).lines().next().unwrap_or_default().to_string();
        Ok(Cxx { program: program.into(), clang: version.contains("clang"), version })
    };
    let cxx = match std::env::var("CXX") {
        Ok(program) => ask(&program)?,
        Err(_) => ask("clang++").or_else(|_| ask("g++"))?,
    };
    Ok(FOUND.get_or_init(|| cxx))
}

/// Runs a tool to its end; a non-zero exit becomes [`Error::ToolFailed`] with its error output.
pub(crate) fn run(command: &mut Command, tool: &str, top: &str) -> Result<Output, Error> {
    let out = command.output().map_err(|source| Error::ToolMissing { tool: tool.into(), source })?;
    if out.status.success() {
        return Ok(out);
    }
    let mut stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    const KEEP: usize = 16 * 1024;
    if stderr.len() > KEEP {
        let mut cut = KEEP;
        while !stderr.is_char_boundary(cut) {
            cut -= 1;
        }
        stderr.truncate(cut);
        stderr.push_str("\n... (cut)");
    }
    Err(Error::ToolFailed { tool: tool.into(), top: top.into(), stderr })
}
