//! Figures put into the documents, between two marks.

use super::{report, Outcome};
use std::path::Path;
use std::process::Command;

const BEGIN: &str = "<!-- synth:begin -->";
const END: &str = "<!-- synth:end -->";

/// Writes the table into docs/resources.md and the core's figures into README.md, below `root`.
pub fn write(root: &Path, outcomes: &[Outcome], missing: &[String]) -> Result<(), String> {
    let state = state(root);
    put(&root.join("docs/resources.md"), &report::document(outcomes, missing, &state))?;
    put(&root.join("README.md"), &report::summary(outcomes, &state))
}

fn put(file: &Path, body: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let new = between(&text, body).ok_or_else(|| format!("{} lacks {BEGIN} and {END}", file.display()))?;
    std::fs::write(file, new).map_err(|e| format!("{}: {e}", file.display()))
}

/// `text` with `body` between the marks in place of what stood there.
pub fn between(text: &str, body: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{}\n{END}{after}", body.trim_end()))
}

/// The commit that last touched the gateware, its date, and whether there is more than that.
fn state(root: &Path) -> String {
    let git = |args: &[&str]| Command::new("git").arg("-C").arg(root).args(args).output().ok().filter(|o| o.status.success()).map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string());
    let sources = ["--", "hdl/src", "abi/src"];
    let Some(commit) = git(&[&["log", "-1", "--format=%h of %cs"], &sources[..]].concat()).filter(|c| !c.is_empty()) else {
        return "gateware of no known commit".into();
    };
    let changed = git(&[&["status", "--porcelain"], &sources[..]].concat()).is_some_and(|s| !s.is_empty());
    format!("gateware as of commit {commit}{}", if changed { ", with changes not committed" } else { "" })
}
