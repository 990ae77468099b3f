//! Says where the programs of this crate find its shared library and Rust's own, so that scripts can start them by path.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let rustc = std::env::var("RUSTC").expect("cargo names the compiler");
    let output = Command::new(rustc).args(["--print", "target-libdir"]).output().expect("the compiler starts");
    let libraries = String::from_utf8(output.stdout).expect("a path in UTF-8");
    println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN:$ORIGIN/deps:{}", libraries.trim());
}
