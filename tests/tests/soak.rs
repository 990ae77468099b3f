//! A short form of `./scripts/soak random`, by the command itself, so that what fails here is repeated by the line it prints.
use std::process::Command;

#[test]
fn random_traffic_under_faults() {
    let plan = ["random", "--seed", "1", "--qps", "16", "--messages", "200", "--max-bytes", "65536", "--width", "64"];
    let out = Command::new(env!("CARGO_BIN_EXE_soak")).args(plan).output().expect("the soak starts");
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "./scripts/soak {}\n{text}", plan.join(" "));
    // Something was lost, found out and repaired.
    for name in ["req_rx.timeouts", "resp.dup_requests", "rx.rx_bad_icrc", "psn_wraps"] {
        assert!(text.contains(name), "{name} was never counted:\n{text}");
    }
}
