//! The search in its short form.
use super::{cases, defects, search};

/// States of each case that the suite looks at; `./scripts/soak model --pdc` looks at a million and more.
const STATES: usize = 12_000;

#[test]
fn no_rule_is_broken_in_the_first_states() {
    for case in cases() {
        let found = search(&case, STATES);
        assert_eq!(found.violation, None, "{}", case.name);
        assert!(found.states == STATES || found.whole, "{}: {} states", case.name, found.states);
        assert!(found.settled > 50, "{}: {} were followed to their rest", case.name, found.settled);
    }
}

#[test]
fn broken_rules_are_found() {
    for (defect, case) in defects() {
        let found = search(&case, 400_000);
        let (what, steps) = found.violation.unwrap_or_else(|| panic!("{defect:?} is not found in {} states", found.states));
        println!("{defect:?}: {what}, after {} steps, {} states", steps.len(), found.states);
    }
}
