//! rdma-core's own tests of libibverbs and librdmacm (pyverbs), on ours and two twins.
use ferric_tests::programs::{libraries, skipped};
use ferric_tests::served::alone;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Tests in the package that is fetched.
const TESTS: &str = "Ran 273 tests";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Reasons that stand in the table of docs/verbs.md.
fn documented() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("docs/verbs.md")).unwrap();
    text.lines().filter_map(|l| Some(l.strip_prefix("| \"")?.split_once('"')?.0.to_owned())).collect()
}

#[test]
fn rdma_cores_own_tests_pass() {
    let _alone = alone();
    let [fetch, folder, run] = ["tests/pyverbs/fetch", "target/pyverbs", "tests/pyverbs/run.py"].map(|p| root().join(p));
    let fetched = Command::new(fetch).output().unwrap();
    if !fetched.status.success() {
        // The package is of one version, and a distribution keeps that as long as it likes.
        skipped("rdma_cores_own_tests_pass", &format!("pyverbs cannot be fetched: {}", String::from_utf8_lossy(&fetched.stdout)));
        return;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_ferric-under-test"));
    command.args(["run", "--libraries"]).arg(libraries()).args(["--", "timeout", "100", "python3", "-B"]).arg(run).arg(&folder).arg("-v");
    let ran = command.output().expect("ferric run");
    let printed = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    // What failed comes behind a line of equals signs; without one (a time limit) what came last is what matters.
    let failed = printed.find("\n======").unwrap_or_else(|| printed.char_indices().rev().nth(4000).map_or(0, |c| c.0));
    assert!(ran.status.success() && printed.contains(TESTS) && printed.contains("\nOK"), "{}: {}", ran.status, &printed[failed..]);
    // Every module has run.
    for file in std::fs::read_dir(folder.join("usr/share/doc/rdma-core/tests")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".py").filter(|n| n.starts_with("test_")) {
            assert!(printed.contains(&format!("(tests.{module}.")), "no test of {module} in\n{printed}");
        }
    }
    // What has not run has a reason that is known.
    let documented = documented();
    for reason in printed.lines().filter_map(|l| l.split_once("... skipped ").map(|s| s.1)) {
        assert!(documented.iter().any(|known| reason.contains(known.as_str())), "docs/verbs.md does not explain: {reason}");
    }
}
