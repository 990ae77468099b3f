//! Gives the crate a hash of its own sources but the tests', so that generated Verilog can be cached on disk.
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

/// Tests and what serves only them: no Verilog depends on it.
fn is_test(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ["tests", "tests.rs", "tb", "mutants", "testing.rs"].contains(&&*name) || name.ends_with("_tests.rs")
}

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for path in entries.flatten().map(|e| e.path()).filter(|path| !is_test(path)) {
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

fn main() {
    let mut files = vec![PathBuf::from("Cargo.toml"), PathBuf::from("build.rs")];
    for dir in ["src", "../abi/src", "../model/src"] {
        println!("cargo:rerun-if-changed={dir}");
        sources(Path::new(dir), &mut files);
    }
    files.sort();
    let mut hash = std::hash::DefaultHasher::new();
    for f in &files {
        f.hash(&mut hash);
        std::fs::read(f).unwrap_or_default().hash(&mut hash);
    }
    println!("cargo:rustc-env=FERRIC_HDL_HASH={:016x}", hash.finish());
}
