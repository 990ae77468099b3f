//! Defects put into the emitted Verilog on purpose, to see whether a test notices. See README.md.
mod list;
mod pattern;
#[cfg(test)]
mod tests;

pub use list::{list, Mutant};

use pattern::Pattern;
use std::ops::Range;

/// Environment variable that names the mutant a test bench is to build.
pub const VARIABLE: &str = "FERRIC_MUTANT";
/// Starts the line on standard error that tells into which module a mutant went.
pub const APPLIED: &str = "mutant in ";
/// Starts the message of a mutant that no longer fits the gateware or does not build.
pub const BROKEN: &str = "broken mutant";

/// What became of a text.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No module of the text is meant.
    Untouched,
    /// The text with the defect, and the modules it went into.
    Mutated(String, Vec<String>),
}

impl Mutant {
    /// Puts the defect into every module of `verilog` (the text of a whole top) that it is meant for. Errors: a module is
    /// meant but does not hold the pattern as often as declared.
    pub fn apply(&self, verilog: &str) -> Result<Outcome, String> {
        let pattern = Pattern::parse(&self.find)?;
        let (mut out, mut modules, mut copied) = (String::with_capacity(verilog.len() + 64), Vec::new(), 0);
        for (name, range) in verilog_modules(verilog) {
            let path = name.split_once('$').map_or("", |(_, path)| path);
            let meant = self.module.strip_prefix('=').map_or_else(|| glob(&self.module, path), |whole| whole == name);
            if !meant {
                continue;
            }
            let hits = pattern.find_all(&verilog[range.clone()]);
            if hits.len() != self.count {
                return Err(format!("{}: `{}` occurs {} times in `{name}`, not {}", self.name, self.find, hits.len(), self.count));
            }
            for hit in hits {
                out.push_str(&verilog[copied..range.start + hit.start]);
                out.push_str(&self.put);
                copied = range.start + hit.end;
            }
            modules.push(name.to_string());
        }
        if modules.is_empty() {
            return Ok(Outcome::Untouched);
        }
        out.push_str(&verilog[copied..]);
        Ok(Outcome::Mutated(out, modules))
    }
}

/// The text a test bench is to build in place of `verilog`, if [`VARIABLE`] asks for a mutant that concerns it.
///
/// Panics if the variable names no mutant or the mutant does not fit: a mutant that changes nothing would seem to survive.
pub(crate) fn requested(verilog: &str) -> Option<String> {
    let name = std::env::var(VARIABLE).ok()?;
    let all = list().unwrap_or_else(|e| panic!("{BROKEN}: {e}"));
    let mutant = all.into_iter().find(|m| m.name == name).unwrap_or_else(|| panic!("{BROKEN}: nobody is called `{name}`"));
    match mutant.apply(verilog) {
        Ok(Outcome::Untouched) => None,
        Ok(Outcome::Mutated(text, modules)) => {
            eprintln!("{APPLIED}{}", modules.join(", "));
            Some(text)
        }
        Err(e) => panic!("{BROKEN}: {e}"),
    }
}

/// Name and place of each module in a text.
fn verilog_modules(verilog: &str) -> Vec<(&str, Range<usize>)> {
    const START: &str = "\nmodule ";
    let starts = verilog.match_indices(START).map(|(at, _)| at + 1);
    let first = verilog.starts_with(&START[1..]).then_some(0);
    let starts: Vec<usize> = first.into_iter().chain(starts).collect();
    let ends = starts.iter().skip(1).copied().chain([verilog.len()]);
    let range = starts.iter().zip(ends).map(|(start, end)| *start..end);
    range
        .map(|range| {
            let rest = &verilog[range.start + START.len() - 1..range.end];
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$')).unwrap_or(rest.len());
            (&rest[..end], range)
        })
        .collect()
}

/// Whether `text` fits `pattern`, where `*` stands for anything and `|` parts alternatives; `.` alone is the empty text (the top itself).
fn glob(pattern: &str, text: &str) -> bool {
    pattern.split('|').map(str::trim).any(|one| if one == "." { text.is_empty() } else { star(one, text) })
}

fn star(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => text.strip_prefix(head).is_some_and(|rest| (0..=rest.len()).any(|n| rest.is_char_boundary(n) && star(tail, &rest[n..]))),
    }
}
