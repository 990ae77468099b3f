//! Every build of this crate asks the same of the crates that others use, too. The file of the shared library has one name in all of them, so two that differ would put their own into each other's place.
use std::collections::BTreeSet;
use std::process::Command;

/// Crates that a build compiles for this machine, each with its version and features.
fn crates(selected: &[&str], kinds: &str) -> BTreeSet<String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let args = ["tree", "--locked", "--prefix", "none", "--format", "{p}|{f}", "--edges", kinds];
    let output = Command::new(cargo).args(args).args(selected).current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(|line| line.trim_end_matches(" (*)").to_string()).filter(|line| !line.is_empty()).collect()
}

#[test]
fn builds_agree_about_features() {
    let all = crates(&["--workspace"], "normal,build,dev");
    for (selected, kinds) in [(&["--package", "ferric-tests"][..], "normal,build"), (&["--package", "ferric-tests"], "normal,build,dev"), (&["--workspace"], "normal,build")] {
        let own = crates(selected, kinds);
        assert!(own.len() > 50);
        let other: Vec<_> = own.difference(&all).collect();
        assert!(other.is_empty(), "cargo with {selected:?} ({kinds}) builds these in another way than the whole workspace does: {other:?}");
    }
}
