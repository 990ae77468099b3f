//! Programs of others: finding them, running them with their output in a file and a line of progress on the screen.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A step that did not work.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    #[error("{program} could not be started: {source}")]
    Start { program: String, source: std::io::Error },
    #[error("{step} failed ({status}); the last lines of {}:\n{tail}", .log.display())]
    Failed { step: String, status: String, log: PathBuf, tail: String },
    #[error("{}: {source}", .file.display())]
    File { file: PathBuf, source: std::io::Error },
}

/// The first of `names` that `path` (as in the environment) has as a file.
pub fn find(names: &[&str], path: Option<&OsStr>) -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(path?).collect();
    names.iter().find_map(|name| folders.iter().map(|f| f.join(name)).find(|f| f.is_file()))
}

/// Last `bytes` of a file, as text.
fn tail(file: &Path, bytes: u64) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = File::open(file)?;
        let length = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    read().unwrap_or_default()
}

/// Runs `command` with its output in `log`; says what it does every ten seconds.
pub fn run(step: &str, command: &mut Command, log: &Path) -> Result<(), ToolError> {
    let file = |source| ToolError::File { file: log.into(), source };
    let output = File::create(log).map_err(file)?;
    let program = command.get_program().to_string_lossy().into_owned();
    let start = Instant::now();
    println!("{step}: {program}");
    command.stdin(Stdio::null()).stdout(output.try_clone().map_err(file)?).stderr(output);
    let failed = |source| ToolError::Start { program: program.clone(), source };
    let mut child = command.spawn().map_err(failed)?;
    let mut said = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(50));
        if said.elapsed() >= Duration::from_secs(10) {
            said = Instant::now();
            let text = tail(log, 400);
            let line = text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or_default();
            println!("{step}: {} s: {}", start.elapsed().as_secs(), line.trim());
        }
    };
    if status.success() {
        println!("{step}: done in {} s", start.elapsed().as_secs());
        return Ok(());
    }
    Err(ToolError::Failed { step: step.into(), status: status.to_string(), log: log.into(), tail: tail(log, 1500) })
}
