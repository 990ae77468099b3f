//! A short form of `./scripts/soak hostile`: the card survives, and nothing outside registered memory changes.
use ferric_tests::hostile::{run, Plan};

#[test]
fn mutated_frames_and_requests() {
    let counted = run(Plan { seed: 1, frames: 150, requests: 24 }).unwrap();
    for name in ["rx.rx_malformed", "rx.rx_bad_icrc", "resp.out_of_order", "resp.dup_requests", "resp.drop_no_qp", "resp.drop_bad_transport", "req_rx.bad_ack"] {
        assert!(counted[name] > 0, "{name} was never counted: {counted:?}");
    }
}
