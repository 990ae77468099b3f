//! Gives the crate a hash of its own sources, so that generated Verilog can be cached on disk: generating a card takes most of a minute.
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for path in entries.flatten().map(|e| e.path()) {
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

fn main() {
    let mut files = vec![PathBuf::from("Cargo.toml"), PathBuf::from("build.rs")];
    for dir in ["src", "../abi/src"] {
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
