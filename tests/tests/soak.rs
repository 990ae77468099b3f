//! A short form of `./scripts/soak random`, by the command itself, so that what fails here is repeated by the line it prints.
use std::process::Command;

/// Something was lost, found out and repaired.
const WANTED: [&str; 4] = ["req_rx.timeouts", "resp.dup_requests", "rx.rx_bad_icrc", "psn_wraps"];

#[test]
fn random_traffic_under_faults() {
    let mut missing = WANTED.to_vec();
    // What one short run meets depends on every cycle of the gateware: a loss that only a time-out finds may take another seed.
    for (seed, functions) in [("1", "2"), ("2", "4"), ("3", "1"), ("4", "2")] {
        let plan = ["random", "--seed", seed, "--functions", functions, "--qps", "16", "--messages", "200", "--max-bytes", "65536", "--width", "64"];
        let out = Command::new(env!("CARGO_BIN_EXE_soak")).args(plan).output().expect("the soak starts");
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "./scripts/soak {}\n{text}", plan.join(" "));
        missing.retain(|name| !text.contains(name));
        if missing.is_empty() {
            return;
        }
    }
    panic!("never counted in four seeds: {missing:?}");
}
