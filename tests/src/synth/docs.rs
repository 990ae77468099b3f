//! Figures put into the documents, between marks.

use super::report;
use super::subject::{self, What};
use super::table::Table;
use super::Outcome;
use std::path::Path;
use std::process::Command;

/// Writes the table and the cores' figures into docs/resources.md, below `root`. `outcomes`: what was mapped; the
/// memories of the largest core are written when it is among them.
pub fn write(root: &Path, table: &Table, outcomes: &[Outcome]) -> Result<(), String> {
    let resources = root.join("docs/resources.md");
    put(&resources, "synth", &report::document(table))?;
    if let Some(core) = outcomes.iter().find(|o| matches!(o.subject.what, What::Core(top) if top.width == Some(512) && subject::is_default(top))) {
        put(&resources, "memories", &report::memories(core.subject.name, &core.mapping.memories))?;
    }
    put(&resources, "cores", &report::summary(&table.rows))
}

fn put(file: &Path, mark: &str, body: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let new = between(&text, mark, body).ok_or_else(|| format!("{} lacks the marks {mark}:begin and {mark}:end", file.display()))?;
    std::fs::write(file, new).map_err(|e| format!("{}: {e}", file.display()))
}

/// `text` with `body` between the marks in place of what stood there.
pub fn between(text: &str, mark: &str, body: &str) -> Option<String> {
    let [begin, end] = ["begin", "end"].map(|which| format!("<!-- {mark}:{which} -->"));
    let (before, rest) = text.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{}\n{end}{after}", body.trim_end()))
}

/// The commit that last touched the gateware; `+` behind it when there is more than that.
pub fn commit(root: &Path) -> String {
    let git = |args: &[&str]| Command::new("git").arg("-C").arg(root).args(args).output().ok().filter(|o| o.status.success()).map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string());
    let sources = ["--", "hdl/src", "abi/src"];
    let Some(commit) = git(&[&["log", "-1", "--format=%h"], &sources[..]].concat()).filter(|c| !c.is_empty()) else {
        return "no known commit".into();
    };
    let changed = git(&[&["status", "--porcelain"], &sources[..]].concat()).is_some_and(|s| !s.is_empty());
    commit + if changed { "+" } else { "" }
}
