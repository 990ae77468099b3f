//! The committed list of crossings.

use super::rules::Findings;
use std::collections::BTreeMap;
use std::path::PathBuf;

const HEAD: &str = "\
# Every place where data passes from one clock to another in the gateware of the boards, found in the netlist.
# Written by `./scripts/cdc --write`; `./scripts/cdc` and the tests fail when the netlist has another one.
# A line with `meets` needs its reason behind a `#`: two synchronised signals of one clock may arrive a cycle apart.
";

/// Where it lies.
pub fn file() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../constraints/crossings.txt"))
}

/// Lines and the reasons behind them.
fn parse(text: &str) -> BTreeMap<&str, &str> {
    let lines = text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty());
    lines.map(|l| l.split_once(" # ").map_or((l.trim(), ""), |(line, reason)| (line.trim(), reason.trim()))).collect()
}

/// The list for these findings, with the reasons that `old` has.
pub fn render(found: &Findings, old: &str) -> String {
    let reasons = parse(old);
    let mut text = String::from(HEAD);
    let mut module = "";
    let mut lines: Vec<(&str, &String)> = found.crossings.iter().chain(&found.meetings).map(|l| (l.split(':').next().unwrap_or_default(), l)).collect();
    lines.sort_by_key(|(m, l)| (*m, l.contains(" meets "), *l));
    for (m, line) in lines {
        if m != module {
            text.push('\n');
            module = m;
        }
        text += line;
        if let Some(reason) = reasons.get(line.as_str()).filter(|r| !r.is_empty()) {
            text += " # ";
            text += reason;
        }
        text.push('\n');
    }
    text
}

/// What is wrong: faults, crossings that are not listed, lines that nothing stands for, meetings without a reason.
pub fn compare(found: &Findings, text: &str) -> Vec<String> {
    let listed = parse(text);
    let mut wrong: Vec<String> = found.faults.iter().cloned().collect();
    let all: Vec<&String> = found.crossings.iter().chain(&found.meetings).collect();
    wrong.extend(all.iter().filter(|l| !listed.contains_key(l.as_str())).map(|l| format!("not listed: {l}")));
    wrong.extend(listed.keys().filter(|l| !all.iter().any(|a| a == *l)).map(|l| format!("listed, but not there: {l}")));
    wrong.extend(found.meetings.iter().filter(|l| listed.get(l.as_str()).is_some_and(|r| r.is_empty())).map(|l| format!("no reason given: {l}")));
    wrong
}
