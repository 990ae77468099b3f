//! The functional twin beside the gateware. What needs no gateware stands in `sim/tests/twin.rs`.

#[test]
fn its_counters_are_the_gatewares_own() {
    let names = ferric_hdl::card::counters::names();
    assert_eq!(ferric_twin::counters::NAMES, names);
}
