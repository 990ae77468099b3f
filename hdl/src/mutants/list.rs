//! The list of mutants: the files in `hdl/mutants/`.

use std::fs;
use std::path::Path;

/// One defect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// `block.defect`.
    pub name: String,
    /// What is wrong in the mutated gateware.
    pub what: String,
    /// A top that holds the module (`tops::TOPS`, `board::tops::TOPS`, or one of the tests' own), to check the pattern against.
    pub top: String,
    /// Which modules: their path below the top, `*` for anything, `.` for the top itself, `|` between alternatives; or
    /// `=` and a module's whole name.
    pub module: String,
    /// The text that is replaced, a `pattern::Pattern`.
    pub find: String,
    /// What stands there instead.
    pub put: String,
    /// How often `find` occurs in each of the modules; all are replaced.
    pub count: usize,
    /// Filters of the tests that may catch it, tried in order.
    pub tests: Vec<String>,
}

/// All mutants, file by file. Errors: a file that cannot be read or makes no sense.
pub fn list() -> Result<Vec<Mutant>, String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("mutants");
    let entries = fs::read_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut files: Vec<_> = entries.filter_map(|e| e.ok().map(|e| e.path())).filter(|p| p.extension().is_some_and(|e| e == "ini")).collect();
    files.sort();
    let mut all: Vec<Mutant> = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        all.extend(parse(&text).map_err(|e| format!("{}: {e}", file.display()))?);
    }
    for (n, mutant) in all.iter().enumerate() {
        if all[..n].iter().any(|other| other.name == mutant.name) {
            return Err(format!("{} stands twice", mutant.name));
        }
    }
    Ok(all)
}

/// Reads `[name]` sections of `key = value` lines; `#` at the start of a line is a comment. `top` and `tests` stay as they are
/// for the sections that follow until given anew.
pub(super) fn parse(text: &str) -> Result<Vec<Mutant>, String> {
    let (mut all, mut top, mut tests): (Vec<Mutant>, String, Vec<String>) = Default::default();
    let mut given: Vec<&str> = Vec::new();
    for (number, line) in text.lines().enumerate().map(|(n, line)| (n + 1, line.trim())) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            all.push(Mutant { name: name.into(), top: top.clone(), tests: tests.clone(), count: 1, ..Mutant::nothing() });
            given.clear();
            continue;
        }
        let (key, value) = line.split_once('=').ok_or_else(|| format!("line {number}: neither `[name]` nor `key = value`"))?;
        let (key, value) = (key.trim(), value.trim().to_string());
        let Some(mutant) = all.last_mut() else { return Err(format!("line {number}: `{key}` before the first `[name]`")) };
        if given.contains(&key) {
            return Err(format!("line {number}: `{key}` of {} is given twice", mutant.name));
        }
        given.push(key);
        match key {
            "what" => mutant.what = value,
            "module" => mutant.module = value,
            "find" => mutant.find = value,
            "put" => mutant.put = value,
            "count" => mutant.count = value.parse().map_err(|e| format!("line {number}: {e}"))?,
            "top" => {
                mutant.top.clone_from(&value);
                top = value;
            }
            "tests" => {
                mutant.tests = value.split_whitespace().map(String::from).collect();
                tests.clone_from(&mutant.tests);
            }
            _ => return Err(format!("line {number}: no key is called `{key}`")),
        }
    }
    for m in &all {
        let texts = [("what", &m.what), ("top", &m.top), ("module", &m.module), ("find", &m.find)];
        if let Some((key, _)) = texts.iter().find(|(_, value)| value.is_empty()) {
            return Err(format!("{} lacks `{key}`", m.name));
        }
        if m.tests.is_empty() || m.count == 0 {
            return Err(format!("{}: no tests, or a count of zero", m.name));
        }
    }
    Ok(all)
}

impl Mutant {
    fn nothing() -> Mutant {
        let [name, what, top, module, find, put] = Default::default();
        Mutant { name, what, top, module, find, put, count: 0, tests: Vec::new() }
    }
}
