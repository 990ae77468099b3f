//! The functional twin beside the gateware. What needs no gateware stands in `sim/tests/twin.rs`.
use ferric_sim::Body;
use ferric_tests::property::{run, Plan};

#[test]
fn its_counters_are_the_gatewares_own() {
    let names = ferric_hdl::card::counters::names();
    assert_eq!(ferric_twin::counters::NAMES, names);
}

#[test]
fn twins_do_what_the_golden_model_of_the_verbs_says() {
    for seed in 1..4 {
        run(Plan { seed, cases: 200, width: 64, bodies: [Body::Twin; 2], good_wire: true }).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn a_twin_and_gateware_understand_each_other() {
    for (seed, bodies) in [(1, [Body::Twin, Body::Gateware]), (2, [Body::Gateware, Body::Twin])] {
        run(Plan { seed, cases: 12, width: 64, bodies, good_wire: true }).unwrap_or_else(|e| panic!("{e}"));
    }
}
