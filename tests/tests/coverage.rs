//! docs/rocev2.md names tests and mutants: they exist.
use std::collections::HashSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Whether `hdl::a::b::name` is a test in `hdl/src/a/b*`, or `hdl::a::b` a module with tests.
fn in_hdl(path: &str) -> bool {
    let parts: Vec<&str> = path.split("::").filter(|p| *p != "tests").collect();
    let is_test = |file: &Path, name: &str| file.exists() && read(file).contains(&format!("fn {name}("));
    if let [folder @ .., name] = &parts[..] {
        let base = folder.iter().fold(root().join("hdl/src"), |p, f| p.join(f));
        let inner = folder.split_last().map(|(last, rest)| rest.iter().fold(root().join("hdl/src"), |p, f| p.join(f)).join(format!("tests/{last}.rs")));
        return is_test(&base.join("tests.rs"), name)
            || inner.is_some_and(|file| is_test(&file, name))
            || base.join(name).join("tests.rs").exists();
    }
    false
}

fn in_tests(path: &str) -> bool {
    let (file, name) = path.split_once("::").unwrap_or((path, ""));
    let file = root().join(format!("tests/tests/{file}.rs"));
    file.exists() && read(&file).contains(&format!("fn {name}("))
}

#[test]
fn every_name_in_the_table_exists() {
    let mutants: HashSet<String> = std::fs::read_dir(root().join("hdl/mutants"))
        .unwrap()
        .flat_map(|f| read(&f.unwrap().path()).lines().filter_map(|l| l.strip_prefix('[')?.strip_suffix(']').map(str::to_owned)).collect::<Vec<_>>())
        .collect();
    let text = read(&root().join("docs/rocev2.md"));
    let mut rows = 0;
    let mut wrong = Vec::new();
    for line in text.lines().filter(|l| l.starts_with('|')) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let Some(at) = cells.iter().position(|c| *c == "yes") else { continue };
        let (test, mutant) = (cells[at + 1], cells[at + 2]);
        rows += 1;
        if !(test.strip_prefix("hdl::").is_some_and(in_hdl) || in_tests(test)) {
            wrong.push(format!("{}: no test {test}", cells[1]));
        }
        if !["driver", "none yet"].contains(&mutant) && !mutants.contains(mutant) {
            wrong.push(format!("{}: no mutant {mutant}", cells[1]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(rows > 50, "{rows} rows: is this the table?");
}
