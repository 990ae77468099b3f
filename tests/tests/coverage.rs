//! docs/rocev2.md names tests and mutants: they exist.
use std::collections::HashSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The files that may hold the tests of a gateware module: `tests.rs`, and all of `tests/`.
fn test_files(module: &Path) -> Vec<PathBuf> {
    let inner = std::fs::read_dir(module.join("tests")).into_iter().flatten().map(|f| f.unwrap().path());
    inner.chain([module.join("tests.rs")]).filter(|f| f.is_file()).collect()
}

/// Whether `hdl::a::b::name` is a test of the module `hdl/src/a/b` (in `b/tests.rs`, or in any
/// file of `b/tests/`; `hdl::a::b::file::name` is one in `b/tests/file.rs`), or `hdl::a::b` a
/// module with tests.
fn in_hdl(path: &str) -> bool {
    let parts: Vec<&str> = path.split("::").filter(|p| *p != "tests").collect();
    let Some((name, folder)) = parts.split_last() else { return false };
    let base = folder.iter().fold(root().join("hdl/src"), |p, f| p.join(f));
    let is_test = |file: &Path| read(file).contains(&format!("fn {name}("));
    let inner = base.file_name().zip(base.parent()).map(|(last, module)| module.join("tests").join(last).with_extension("rs"));
    test_files(&base).iter().any(|f| is_test(f)) || inner.is_some_and(|f| f.is_file() && is_test(&f)) || !test_files(&base.join(name)).is_empty()
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
