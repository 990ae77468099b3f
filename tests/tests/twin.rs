//! The functional twin beside the gateware. What needs no gateware stands in `sim/tests/twin.rs`.
use ferric_sim::Body;
use ferric_tests::property::{missing, run, Plan};

#[test]
fn its_counters_are_the_gatewares_own() {
    let names = ferric_hdl::card::counters::names();
    assert_eq!(ferric_twin::counters::NAMES, names);
}

/// `FERRIC_BODY=twin ./scripts/soak property` runs more.
#[test]
fn twins_do_what_the_golden_model_of_the_verbs_says() {
    let coverage = run(Plan { seed: 1, cases: 1000, width: 64, bodies: [Body::Twin; 2] }).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(missing(&coverage), [""; 0], "never happened");
}

#[test]
fn a_twin_and_gateware_understand_each_other() {
    for (seed, bodies) in [(1, [Body::Twin, Body::Gateware]), (2, [Body::Gateware, Body::Twin])] {
        run(Plan { seed, cases: 5, width: 64, bodies }).unwrap_or_else(|e| panic!("{e}"));
    }
}
